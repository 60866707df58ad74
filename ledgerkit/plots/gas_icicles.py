"""Gas burnt by contract, as an icicle: each receipt above the receipts that it made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit import units
from ledgerkit.plots import canvas, receipt_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ledgerkit.plots.receipt_rows import Rows

_COLOURED = 6  # contracts with a colour of their own
# Both contain a space, so neither can be an account id.
_OTHERS, _REFUNDS = "other contracts", "refund receipts"
_MIN_LABEL = 6  # characters; narrower boxes have no label
_LABEL_SHARE = 0.9  # of a box's width
_MIN_LEVEL_HEIGHT = 0.9  # lines of text; lower boxes have no label
_HATCHES = ("", "//", "..", "\\\\", "xx", "--", "")


def gas_icicle(receipts: pd.DataFrame, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """
    Draw the gas burnt by each contract.

    Parameters
    ----------
    receipts
        Typed as ``schema("receipts")``.
    ax
        The axes to draw on; None makes a figure.
    title
        The title; None shows the total gas.

    Returns
    -------
    ax
        The axes: one box per receipt, as wide as the gas burnt by it and its descendants, with
        its children below it. The width without a child is the gas that the receipt itself
        burnt. The contracts that burnt most have colours; refunds are light. Receipts that have
        run, but whose gas is unknown, are counted in a note.

    Raises
    ------
    InvalidRequestError
        If the frame lacks columns, or matplotlib is not installed.
    """
    rows = receipt_rows.drawn_rows(receipts)
    burnt = _subtree_gas(rows)
    levels = 1 + max((row.depth for row in rows.rows), default=0)
    ax = canvas.axes_or_new(ax, 9.0, min(9.0, max(2.2, 1.2 + levels * 0.36)))
    total = sum(row.gas for row in rows.rows)
    n_unknown = sum(row.n_unknown_gas for row in rows.rows)
    notes = [f"receipts whose gas is unknown: {n_unknown:,}"] if n_unknown else []
    if not total:
        return canvas.draw_empty(ax, *(notes or ["no gas burnt"]))
    gas_by_name = _gas_by_name(rows)
    _draw_boxes(ax, rows, burnt, total, list(gas_by_name))
    _label_axes(ax, levels, total)
    canvas.add_notes(ax, notes)
    usual = f"{canvas.format_number(_tgas(total))} Tgas in {receipt_rows.summary(rows)}"
    canvas.draw_title(ax, title or usual, _legend_handles(gas_by_name, total))
    return ax


def _tgas(gas: int) -> float:
    """Convert gas to Tgas."""
    return units.to_float(gas, units.TGAS_DECIMALS)


def _subtree_gas(rows: Rows) -> list[int]:
    """Sum the gas of each row and its descendants."""
    burnt = [row.gas for row in rows.rows]
    for at in reversed(range(len(burnt))):
        parent = rows.rows[at].parent
        if parent >= 0:
            burnt[parent] += burnt[at]
    return burnt


def _gas_by_name(rows: Rows) -> dict[str, int]:
    """Sum the gas of the largest contracts, of all others, and of refunds."""
    by_contract: dict[str, int] = {}
    refunds = 0
    for row in rows.rows:
        if row.is_refund:
            refunds += row.gas
        else:
            by_contract[row.receiver_id] = by_contract.get(row.receiver_id, 0) + row.gas
    order = sorted(by_contract, key=lambda name: (-by_contract[name], name))
    largest = {name: by_contract[name] for name in order[:_COLOURED]}
    others = sum(by_contract[name] for name in order[_COLOURED:])
    sums = {_OTHERS: others, _REFUNDS: refunds}
    return largest | {name: gas for name, gas in sums.items() if gas}


def _style(name: str, legend: list[str]) -> dict[str, Any]:
    """Return the colour and hatch of a contract's boxes."""
    if name == _REFUNDS:
        return {"facecolor": "#F4F4F4", "hatch": ""}
    if name not in legend or name == _OTHERS:
        return {"facecolor": canvas.PALE, "hatch": ""}
    place = legend.index(name)
    return {"facecolor": canvas.CYCLE[place], "hatch": _HATCHES[place], "hatch_linewidth": 0.6}


def _draw_boxes(ax: Axes, rows: Rows, burnt: list[int], total: int, legend: list[str]) -> None:
    """Draw a box per row, below the box of its creator."""
    rectangle = canvas.mpl("patches").Rectangle
    across, down = canvas.text_capacity(ax)
    has_labels = down / (1 + max(row.depth for row in rows.rows)) >= _MIN_LEVEL_HEIGHT
    starts = _starts(rows, burnt)
    for at, row in enumerate(rows.rows):
        if not burnt[at]:
            continue
        width = burnt[at] / total
        style = _style(_REFUNDS if row.is_refund else row.receiver_id, legend)
        border = 0.8 if width * across > 1 else 0.0
        corner = (_tgas(starts[at]), row.depth)
        box = rectangle(corner, _tgas(burnt[at]), 1, edgecolor="white", linewidth=border, **style)
        ax.add_patch(box)
        capacity = int(width * across * _LABEL_SHARE)
        if has_labels and capacity >= _MIN_LABEL:
            _label_box(ax, box, row.label, capacity)


def _starts(rows: Rows, burnt: list[int]) -> list[int]:
    """Return the gas at which each box begins: roots side by side, children from the left."""
    starts = [0] * len(burnt)
    next_child: dict[int, int] = {}
    for at, row in enumerate(rows.rows):
        start = next_child.get(row.parent, 0)
        starts[at] = start
        next_child[row.parent] = start + burnt[at]
        next_child[at] = start
    return starts


def _label_box(ax: Axes, box: Any, label: str, capacity: int) -> None:
    """Write a label into its box."""
    background = box.get_facecolor()
    colour = canvas.text_colour(canvas.mpl("colors").to_hex(background))
    ax.text(
        box.get_x() + box.get_width() / 2,
        box.get_y() + 0.5,
        canvas.one_line(label, capacity),
        ha="center",
        va="center",
        size=canvas.SMALL,
        color=colour,
        parse_math=False,
        bbox={"color": background, "pad": 1.0, "lw": 0},
        clip_on=True,
    )


def _label_axes(ax: Axes, levels: int, total: int) -> None:
    """Label the horizontal axis in Tgas."""
    ax.set_xlim(0, _tgas(total))
    ax.set_ylim(levels, 0)
    ax.set_yticks([])
    canvas.label_x_axis(ax, "gas burnt (Tgas)")
    canvas.hide_spines(ax)


def _legend_handles(gas_by_name: dict[str, int], total: int) -> list[Any]:
    """Return the legend entries: contracts with their share of the gas."""
    patch = canvas.mpl("patches").Patch
    return [
        patch(
            edgecolor="white" if name != _REFUNDS else canvas.FAINT,
            label=f"{canvas.one_line(name, 32)} {100 * gas / total:.0f}%",
            **_style(name, list(gas_by_name)),
        )
        for name, gas in gas_by_name.items()
    ]
