"""The icicle: whose code burnt the gas, each receipt as wide as all that it led to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.plots import canvas, receipt_rows
from ledgerkit.units import TGAS_DECIMALS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ledgerkit.plots.receipt_rows import Rows

_COLOURED = 6  # contracts with a colour of their own
# No account can be called so: a space is in it.
_OTHERS, _REFUNDS = "other contracts", "refund receipts"
_NARROW = 6  # letters; narrower boxes go without a name
_SPARE = 0.9  # of a box's width is for its name
_NAMED_LEVELS = 0.9  # lines of text a level needs
_HATCHES = ("", "//", "..", "\\\\", "xx", "--", "")


def gas_icicle(receipts: pd.DataFrame, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """
    Draw who burnt the gas.

    Parameters
    ----------
    receipts
        Typed as ``schema("receipts")``.
    ax
        Where to draw; None makes a figure.
    title
        Above the drawing; None tells the sum.

    Returns
    -------
    ax
        Where it is drawn: each receipt is as wide as the gas burnt by it and all that it led
        to, with what it made below it; what nothing stands below, it burnt itself. The
        contracts that burnt most have colours, refunds are light.

    Raises
    ------
    InvalidRequestError
        If the frame lacks columns, or matplotlib is not installed.
    """
    every = receipt_rows.folded(receipt_rows.read(receipts), receipt_rows.UNFOLDED)
    burnt = _burnt_below(every)
    levels = 1 + max((row.depth for row in every.rows), default=0)
    ax = canvas.axes(ax, 9.0, min(9.0, max(2.2, 1.2 + levels * 0.36)))
    total = sum(row.gas for row in every.rows)
    if not total:
        return canvas.empty(ax, "no gas was burnt")
    shares = _shares(every)
    _draw(ax, every, burnt, total, list(shares))
    _finish(ax, levels, total)
    told = (
        f"{canvas.number(canvas.human(total, TGAS_DECIMALS))} Tgas in {receipt_rows.summary(every)}"
    )
    canvas.header(ax, title or told, _handles(shares, total))
    return ax


def _burnt_below(every: Rows) -> list[int]:
    """Sum the gas of each row and of all it led to, exactly."""
    burnt = [row.gas for row in every.rows]
    for at in reversed(range(len(burnt))):
        parent = every.rows[at].parent
        if parent >= 0:
            burnt[parent] += burnt[at]
    return burnt


def _shares(every: Rows) -> dict[str, int]:
    """Sum the gas by contract, the greatest first; the rest is gathered, refunds come last."""
    by_contract: dict[str, int] = {}
    refunds = 0
    for row in every.rows:
        if row.is_refund:
            refunds += row.gas
        else:
            by_contract[row.receiver_id] = by_contract.get(row.receiver_id, 0) + row.gas
    order = sorted(by_contract, key=lambda name: (-by_contract[name], name))
    shares = {name: by_contract[name] for name in order[:_COLOURED]}
    rest = sum(by_contract[name] for name in order[_COLOURED:])
    gathered = {_OTHERS: rest, _REFUNDS: refunds}
    return shares | {name: gas for name, gas in gathered.items() if gas}


def _look(name: str, named: list[str]) -> dict[str, Any]:
    """Describe a contract's boxes: a colour, and a hatch that shows without it."""
    if name == _REFUNDS:
        return {"facecolor": "#F4F4F4", "hatch": ""}
    if name not in named or name == _OTHERS:
        return {"facecolor": canvas.PALE, "hatch": ""}
    place = named.index(name)
    return {"facecolor": canvas.CYCLE[place], "hatch": _HATCHES[place], "hatch_linewidth": 0.6}


def _draw(ax: Axes, every: Rows, burnt: list[int], total: int, named: list[str]) -> None:
    """Draw a box a row, below the box of its creator."""
    rectangle = canvas.library("patches").Rectangle
    across, down = canvas.letters(ax)
    has_lines = down / (1 + max(row.depth for row in every.rows)) >= _NAMED_LEVELS
    starts = _starts(every, burnt)
    for at, row in enumerate(every.rows):
        if not burnt[at]:
            continue
        width = burnt[at] / total
        name = _REFUNDS if row.is_refund else row.receiver_id
        look = _look(name, named)
        line = 0.8 if width * across > 1 else 0.0
        corner = (canvas.human(starts[at], TGAS_DECIMALS), row.depth)
        tgas = canvas.human(burnt[at], TGAS_DECIMALS)
        box = rectangle(corner, tgas, 1, edgecolor="white", linewidth=line, **look)
        ax.add_patch(box)
        room = int(width * across * _SPARE)
        if has_lines and room >= _NARROW:
            _name(ax, box, row.label, room)


def _starts(every: Rows, burnt: list[int]) -> list[int]:
    """Give the gas at which each box begins: roots side by side, children from the left."""
    starts = [0] * len(burnt)
    free: dict[int, int] = {}
    for at, row in enumerate(every.rows):
        start = free.get(row.parent, 0)
        starts[at] = start
        free[row.parent] = start + burnt[at]
        free[at] = start
    return starts


def _name(ax: Axes, box: Any, label: str, room: int) -> None:
    """Write a name into its box."""
    ground = box.get_facecolor()
    colour = canvas.contrast(canvas.library("colors").to_hex(ground))
    ax.text(
        box.get_x() + box.get_width() / 2,
        box.get_y() + 0.5,
        canvas.shown(label, room),
        ha="center",
        va="center",
        size=canvas.SMALL,
        color=colour,
        parse_math=False,
        bbox={"color": ground, "pad": 1.0, "lw": 0},
        clip_on=True,
    )


def _finish(ax: Axes, levels: int, total: int) -> None:
    """Count gas along the bottom."""
    ax.set_xlim(0, canvas.human(total, TGAS_DECIMALS))
    ax.set_ylim(levels, 0)
    ax.set_yticks([])
    canvas.count(ax, "gas burnt, Tgas")
    canvas.bare(ax)


def _handles(shares: dict[str, int], total: int) -> list[Any]:
    """Make the legend: contracts with their share of the gas."""
    patch = canvas.library("patches").Patch
    return [
        patch(
            edgecolor="white" if name != _REFUNDS else canvas.FAINT,
            label=f"{canvas.shown(name, 32)} {100 * gas / total:.0f}%",
            **_look(name, list(shares)),
        )
        for name, gas in shares.items()
    ]
