"""The receipts of a drawing: read from the frame, and those that are alike drawn as one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING, Any

from ledgerkit.plots import canvas

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.axes import Axes

COLUMNS = (
    "receipt_id parent_id kind receiver_id actions method_name status shard_id block_height "
    "gas_burnt on_critical_path"
).split()
OK, FAILED, WAITING, REFUND = "succeeded", "failed", "not run", "refund"
COLOURS = {OK: canvas.BLUE, FAILED: canvas.VERMILION, WAITING: "white", REFUND: canvas.SKY}
MARKERS = {OK: "o", FAILED: "X", WAITING: "o", REFUND: "."}
SOURCE = "receipts, such as lk.receipts or Trace.receipts give"
UNFOLDED = 45  # rows; of more, those that are alike share one
_LINE = 0.23  # inches a row
_TALLEST, _LOWEST = 12.0, 1.7
_DASHES = (0, (4, 2))
_STATES = {"failure": FAILED, "success_value": OK, "success_receipt_id": OK}


@dataclass(slots=True)
class Row:
    """One receipt, or `times` many that are alike; `parent` is the position of its creator's."""

    receipt_id: str
    parent: int
    depth: int
    state: str
    is_refund: bool
    what: str
    receiver_id: str
    shard: int | None
    height: int | None
    gas: int
    is_critical: bool
    times: int = 1
    children: list[int] = field(default_factory=list)

    @property
    def label(self) -> str:
        """Say what runs where, and how often."""
        often = f" \N{MULTIPLICATION SIGN}{self.times:,}" if self.times > 1 else ""
        return f"{canvas.shown(self.what, 28)} · {canvas.shown(self.receiver_id, 28)}{often}"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows, creators first, and for each receipt of the frame the position of its row."""

    rows: list[Row]
    row_of: dict[str, int]

    @property
    def total(self) -> int:
        """Count the receipts."""
        return sum(row.times for row in self.rows)

    def preorder(self) -> list[int]:
        """List the rows as a tree is read: each one, then all it led to."""
        found: list[int] = []
        waiting = [at for at in reversed(range(len(self.rows))) if self.rows[at].parent < 0]
        while waiting:
            at = waiting.pop()
            found.append(at)
            waiting += reversed(self.rows[at].children)
        return found

    def states(self) -> list[str]:
        """List the states that occur, in the order of a legend."""
        occurring = {row.state for row in self.rows}
        return [state for state in COLOURS if state in occurring]


def read(receipts: pd.DataFrame) -> Rows:
    """Read the receipts of a frame, each a row."""
    canvas.require(receipts, COLUMNS, SOURCE)
    columns = {name: canvas.values(receipts, name) for name in COLUMNS}
    rows: list[Row] = []
    row_of: dict[str, int] = {}
    for told in zip(*columns.values(), strict=True):
        row = _row(dict(zip(COLUMNS, told, strict=True)), rows, row_of)
        if row.parent >= 0:
            rows[row.parent].children.append(len(rows))
        row_of[row.receipt_id] = len(rows)
        rows.append(row)
    return Rows(rows, row_of)


def _row(told: dict[str, Any], rows: Sequence[Row], row_of: dict[str, int]) -> Row:
    """Read one receipt; a creator that comes later in the frame, or never, is none."""
    parent = row_of.get(told["parent_id"], -1)
    is_refund = told["kind"] == "refund"
    state = _STATES.get(told["status"], WAITING)
    return Row(
        receipt_id=told["receipt_id"],
        parent=parent,
        depth=rows[parent].depth + 1 if parent >= 0 else 0,
        state=REFUND if is_refund and state == OK else state,
        is_refund=is_refund,
        what="refund" if is_refund else told["method_name"] or told["actions"] or "not told",
        receiver_id=told["receiver_id"] or "not told",
        shard=told["shard_id"],
        height=told["block_height"],
        gas=told["gas_burnt"] or 0,
        is_critical=bool(told["on_critical_path"]),
    )


def folded(every: Rows, most: int) -> Rows:
    """Draw siblings as one that are alike in all they led to, where rows are more than `most`."""
    if len(every.rows) <= most:
        return every
    keys = _keys(every.rows)
    kept: list[Row] = []
    row_of: dict[str, int] = {}
    place: dict[tuple[int, int], int] = {}
    for row, key in zip(every.rows, keys, strict=True):
        above = row_of[every.rows[row.parent].receipt_id] if row.parent >= 0 else -1
        at = place.setdefault((above, key), len(kept))
        row_of[row.receipt_id] = at
        if at < len(kept):
            _merge(kept[at], row)
            continue
        kept.append(replace(row, parent=above, children=[]))
        if above >= 0:
            kept[above].children.append(at)
    return Rows(kept, row_of)


def _keys(rows: Sequence[Row]) -> list[int]:
    """Give equal numbers to rows that read the same, with all they led to."""
    numbers: dict[tuple[Any, ...], int] = {}
    keys = [0] * len(rows)
    for at in reversed(range(len(rows))):
        row = rows[at]
        below = tuple(sorted(keys[child] for child in row.children))
        own = (row.is_refund, row.what, row.receiver_id, row.state, row.height, row.shard, below)
        keys[at] = numbers.setdefault(own, len(numbers))
    return keys


def _merge(kept: Row, row: Row) -> None:
    """Count a row with one that is like it."""
    kept.times += row.times
    kept.gas += row.gas
    kept.is_critical = kept.is_critical or row.is_critical


def data_pairs(edges: pd.DataFrame | None, row_of: dict[str, int]) -> list[tuple[int, int]]:
    """List which rows gave data to which, each pair once."""
    if edges is None:
        return []
    canvas.require(edges, ("parent_id", "child_id", "kind"), "edges, such as Trace.edges gives")
    data = edges[edges["kind"] == "data"]
    ends = zip(canvas.values(data, "parent_id"), canvas.values(data, "child_id"), strict=True)
    known = [(row_of[a], row_of[b]) for a, b in ends if a in row_of and b in row_of]
    return list(dict.fromkeys(known))


def told_labels(rows: Sequence[Row], room: float) -> list[int]:
    """Choose the positions of rows whose labels fit: failures first, then the critical path."""
    step = max(1.0, len(rows) / max(1.0, room))
    rank = {FAILED: 0, OK: 2, WAITING: 2, REFUND: 4}
    order = sorted(
        range(len(rows)), key=lambda at: (rank[rows[at].state] - rows[at].is_critical, at)
    )
    free = [True] * len(rows)
    chosen: list[int] = []
    for at in order:
        if free[at]:
            chosen.append(at)
            first, last = max(0, at - ceil(step) + 1), at + ceil(step)
            free[first:last] = [False] * len(free[first:last])
    return sorted(chosen)


def summary(every: Rows) -> str:
    """Count receipts and failures, for a title."""
    failed = sum(row.times for row in every.rows if row.state == FAILED)
    told = f", {failed:,} failed" if failed else ""
    return f"{every.total:,} receipt{'s' if every.total != 1 else ''}{told}"


def figure_height(n_rows: int) -> float:
    """Give a figure's height in inches."""
    return min(_TALLEST, max(_LOWEST, 1.1 + n_rows * _LINE))


def name(ax: Axes, ordered: Sequence[Row], starts: Sequence[float], end: float) -> None:
    """Name rows at the right as far as there is room, failures in bold, with a line to each."""
    ax.set_ylim(len(ordered) - 0.4, -0.6)
    named = told_labels(ordered, canvas.letters(ax)[1])
    left = [starts[y] for y in named]
    ax.hlines(named, left, end, colors=canvas.PALE, lw=0.6, linestyles="dotted", zorder=1)
    ax.yaxis.tick_right()
    ax.set_yticks(named, [ordered[y].label for y in named], size=canvas.SMALL, parse_math=False)
    for y, text in zip(named, ax.get_yticklabels(), strict=True):
        if ordered[y].state == FAILED:
            text.set(color=canvas.VERMILION, weight="bold")


def draw_data(
    ax: Axes,
    every: Rows,
    pairs: Sequence[tuple[int, int]],
    ends: Sequence[tuple[tuple[float, float], tuple[float, float]]],
    *,
    bend: float = 0.25,
) -> None:
    """Draw an arrow from each row that gave data to the one that waited, bent to the right."""
    for (giver, taker), (tail, head) in zip(pairs, ends, strict=True):
        is_critical = every.rows[giver].is_critical and every.rows[taker].is_critical
        ax.annotate(
            "",
            xy=head,
            xytext=tail,
            arrowprops={
                "arrowstyle": "-|>",
                "color": canvas.PURPLE,
                "linestyle": _DASHES,
                "linewidth": 2.0 if is_critical else 1.2,
                "connectionstyle": f"arc3,rad={-bend if head[1] > tail[1] else bend}",
                "shrinkA": 3,
                "shrinkB": 4,
            },
            zorder=4,
        )


def data_handle() -> Any:
    """Make the legend's entry for data."""
    line = canvas.library("lines").Line2D
    return line([], [], color=canvas.PURPLE, ls=_DASHES, lw=1.2, label="gives data to")
