"""Gas burnt by contract, as an icicle: each receipt above its children."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ledgerkit import units
from ledgerkit.plots import canvas, inks, receipt_rows, texts
from ledgerkit.plots.texts import SMALL

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ledgerkit.plots.inks import Inks
    from ledgerkit.plots.receipt_rows import Row, Rows

_MAX_COLOURED = 6  # contracts; the others share a colour
# Both contain a space, so neither can be an account id.
_OTHERS, _REFUNDS = "other contracts", "refund receipts"
_MIN_WIDTH = 0.3  # points; narrower boxes are not drawn
_PADDING = 4.0  # points of a box that its label leaves free
_MIN_LEVEL_HEIGHT = 0.9  # lines of text; lower boxes have no label
_HATCHES = ("", "//", "||", "\\\\", "xx", "--", "")


@canvas.plot
def gas_icicle(receipts: pd.DataFrame, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """
    Draw the gas burnt by each contract.

    Parameters
    ----------
    receipts
        Typed as ``schema("receipts")``.
    title
        The title; None shows the total gas.

    Returns
    -------
    ax
        The axes: one box per receipt, as wide as the gas burnt by it and its descendants, with
        its children below it. The width without a child is the gas that the receipt itself
        burnt. The contracts that burnt most have colours; refunds are outlines. Executed
        receipts whose gas is unknown, and those too narrow to draw, are counted in a note.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> trace = lk.trace("AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY", "ivan.near")
    >>> ax = lk.plots.gas_icicle(trace.receipts)
    >>> ax.get_title(loc="left")
    '7.83 Tgas in 6 receipts, 1 failed'
    """
    rows = receipt_rows.merged_rows(receipts)
    burnt = _subtree_gas(rows)
    levels = 1 + max((row.depth for row in rows.rows), default=0)
    ax = canvas.axes_or_new(ax, 9.0, min(9.0, max(2.2, 1.2 + levels * 0.36)))
    total = sum(row.gas for row in rows.rows)
    n_unknown = sum(row.n_unknown_gas for row in rows.rows)
    notes = texts.count_note("receipts whose gas is unknown", n_unknown)
    if not total:
        return canvas.draw_empty(ax, receipts, *(notes or ["no gas burnt"]))
    gas_by_name = _gas_by_name(rows)
    _label_axes(ax, levels, total)
    boxes, n_narrow = _draw_boxes(ax, rows, burnt, list(gas_by_name))
    notes += texts.count_note("receipts too narrow to draw", n_narrow)
    default_title = f"{units.gas_amount(total)} in {rows.summary}"
    handles = _legend_handles(ax, gas_by_name, total)
    canvas.finish(ax, receipts, title or default_title, handles=handles, notes=notes)
    _label_boxes(ax, boxes, levels)
    return ax


def _tgas(gas: int) -> float:
    return units.to_float(gas, units.TGAS_DECIMALS)


def _subtree_gas(rows: Rows) -> list[int]:
    burnt = [row.gas for row in rows.rows]
    for i in reversed(range(len(burnt))):
        parent = rows.rows[i].parent
        if parent >= 0:
            burnt[parent] += burnt[i]
    return burnt


def _gas_by_name(rows: Rows) -> dict[str, int]:
    by_contract: dict[str, int] = {}
    refunds = 0
    for row in rows.rows:
        if row.is_refund:
            refunds += row.gas
        else:
            by_contract[row.receiver_id] = by_contract.get(row.receiver_id, 0) + row.gas
    order = sorted(by_contract, key=lambda name: (-by_contract[name], name))
    largest = {name: by_contract[name] for name in order[:_MAX_COLOURED]}
    others = sum(by_contract[name] for name in order[_MAX_COLOURED:])
    sums = {_OTHERS: others, _REFUNDS: refunds}
    return largest | {name: gas for name, gas in sums.items() if gas}


def _style(name: str, legend: Sequence[str], ink: Inks) -> dict[str, Any]:
    if name == _REFUNDS:
        return {"facecolor": ink.face, "edgecolor": ink.faint}
    if name not in legend or name == _OTHERS:
        return {"facecolor": ink.faint, "edgecolor": ink.face}
    index = legend.index(name)
    style = {"facecolor": ink.shape(inks.CYCLE[index]), "edgecolor": ink.face}
    return {**style, "hatch": _HATCHES[index], "hatch_linewidth": 0.6}


def _draw_boxes(
    ax: Axes, rows: Rows, burnt: list[int], legend: Sequence[str]
) -> tuple[list[tuple[Any, Row]], int]:
    """Draw a box per row, below its parent's; count the receipts that are too narrow."""
    rectangle, ink = canvas.mpl("patches").Rectangle, inks.inside(ax)
    styles = {name: _style(name, legend, ink) for name in (*legend, _OTHERS, _REFUNDS)}
    points_per_gas = canvas.size(ax)[0] / sum(row.gas for row in rows.rows)
    boxes, n_narrow = [], 0
    for row, gas, start in zip(rows.rows, burnt, _starts(rows, burnt), strict=True):
        points = gas * points_per_gas
        if points < _MIN_WIDTH:
            n_narrow += row.times if gas else 0
            continue
        name = _REFUNDS if row.is_refund else row.receiver_id
        style = styles.get(name, styles[_OTHERS])
        border = 0.8 if points > SMALL / 2 or row.is_refund else 0.0
        corner = (_tgas(start), row.depth)
        box = rectangle(corner, _tgas(gas), 1, linewidth=border, **style)
        canvas.set_hover(box, f"{row.hover_text}, {units.gas_amount(gas)} with its descendants")
        boxes.append((ax.add_patch(box), row))
    return boxes, n_narrow


def _starts(rows: Rows, burnt: list[int]) -> list[int]:
    """Return the gas at which each box begins: roots side by side, children from the left."""
    starts = [0] * len(burnt)
    next_child: dict[int, int] = {}
    for i, row in enumerate(rows.rows):
        start = next_child.get(row.parent, 0)
        starts[i] = start
        next_child[row.parent] = start + burnt[i]
        next_child[i] = start
    return starts


def _label_boxes(ax: Axes, boxes: Sequence[tuple[Any, Row]], levels: int) -> None:
    if canvas.line_capacity(ax) / levels < _MIN_LEVEL_HEIGHT:
        return
    points_per_tgas = canvas.size(ax)[0] / ax.get_xlim()[1]
    for box, row in boxes:
        room = box.get_width() * points_per_tgas - _PADDING
        for format_text in (row.label, partial(texts.shorten, row.action)):
            label = texts.fit(format_text, room)
            if texts.width(label) <= room:
                _label_box(ax, box, label)
                break


def _label_box(ax: Axes, box: Any, label: str) -> None:
    background = box.get_facecolor()
    ax.text(
        box.get_x() + box.get_width() / 2,
        box.get_y() + 0.5,
        label,
        ha="center",
        va="center",
        size=SMALL,
        color=inks.on_colour(background),
        parse_math=False,
        bbox={"color": background, "pad": 1.0, "lw": 0},
        clip_on=True,
    )


def _label_axes(ax: Axes, levels: int, total: int) -> None:
    ax.set_xlim(0, _tgas(total))
    ax.set_ylim(levels, 0)
    ax.set_yticks([])
    canvas.label_x_axis(ax, "gas burnt (Tgas)")
    canvas.hide_spines(ax)
    ax.grid(visible=False)


def _legend_handles(ax: Axes, gas_by_name: dict[str, int], total: int) -> list[Any]:
    patch, ink = canvas.mpl("patches").Patch, inks.inside(ax)
    room = canvas.legend_room(ax)
    handles = []
    for name, gas in gas_by_name.items():
        format_text = partial(_share_text, name, f"{100 * gas / total:.0f}%")
        style = _style(name, list(gas_by_name), ink)
        handles.append(patch(label=texts.fit(format_text, room), **style))
    return handles


def _share_text(name: str, share: str, limit: int) -> str:
    return f"{texts.shorten(name, limit)} {share}"
