"""Rows of receipt plots: one per receipt, or one for several equal receipts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING, Any

from ledgerkit import units
from ledgerkit.plots import canvas, inks, texts
from ledgerkit.plots.texts import SMALL

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

COLUMNS = (
    "receipt_id parent_id kind receiver_id actions method_name status shard_id block_height "
    "gas_burnt on_critical_path"
).split()
OK, FAILED, WAITING, REFUND = "succeeded", "failed", "not executed", "refund"
UNKNOWN = "status unknown"
_COLOURS = {
    OK: inks.BLUE,
    FAILED: inks.VERMILION,
    UNKNOWN: inks.GREY,
    WAITING: None,
    REFUND: inks.SKY,
}
STATES = tuple(_COLOURS)
MARKERS = {OK: "o", FAILED: "X", UNKNOWN: "D", WAITING: "o", REFUND: "."}
SOURCE = "lk.receipts or Trace.receipts"
MAX_UNMERGED = 45  # rows; in a larger plot, equal receipts share a row
_MAX_ROWS = 400  # more rows would be unreadable
_ROW_HEIGHT = 0.23  # inches
_MAX_HEIGHT, _MIN_HEIGHT = 12.0, 1.7  # inches
_DASHES = (0, (4, 2))
_STATES = {"failure": FAILED, "success_value": OK, "success_receipt_id": OK}


@dataclass(slots=True)
class Row:
    """One receipt, or `times` equal ones; `parent` is the index of its parent's row, or -1."""

    receipt_id: str
    parent: int
    depth: int
    state: str
    is_refund: bool
    action: str
    receiver_id: str
    shard: int | None
    height: int | None
    gas: int
    is_critical: bool
    n_unknown_gas: int = 0  # receipts that have run, but whose gas is unknown
    times: int = 1
    children: list[int] = field(default_factory=list)

    def add(self, row: Row) -> None:
        self.times += row.times
        self.gas += row.gas
        self.n_unknown_gas += row.n_unknown_gas
        self.is_critical = self.is_critical or row.is_critical

    def label(self, limit: int) -> str:
        """Return the action, the receiver and the number of receipts; names are shortened."""
        times = f" \N{MULTIPLICATION SIGN}{self.times:,}" if self.times > 1 else ""
        action, receiver_id = (texts.shorten(t, limit) for t in (self.action, self.receiver_id))
        return f"{action} · {receiver_id}{times}"

    @property
    def hover_text(self) -> str:
        """The label in full, the state, the block, the shard and the gas."""
        facts = [self.label(200), self.state]
        facts += [] if self.height is None else [f"block {self.height}"]
        facts += [] if self.shard is None else [f"shard {self.shard}"]
        facts += [f"{units.gas_amount(self.gas)} burnt"] if self.gas else []
        return ", ".join([*facts, *([f"receipt {self.receipt_id}"] if self.times == 1 else [])])


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows with parents first, the index of the row of each receipt id, and title and notes."""

    rows: list[Row]
    row_of: dict[str, int]
    summary: str = ""
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return sum(row.times for row in self.rows)

    def preorder(self) -> list[int]:
        """Return the indexes of the rows so that each row is followed by its descendants."""
        order: list[int] = []
        stack = [i for i in reversed(range(len(self.rows))) if self.rows[i].parent < 0]
        while stack:
            i = stack.pop()
            order.append(i)
            stack += reversed(self.rows[i].children)
        return order

    def states(self) -> list[str]:
        """Return the states that occur, in the order of a legend."""
        occurring = {row.state for row in self.rows}
        return [state for state in STATES if state in occurring]


def merged_rows(receipts: pd.DataFrame) -> Rows:
    """Read the rows of all receipts; if there are many, equal receipts share a row."""
    rows = _merge_equal(_read_rows(receipts))
    n_failed = sum(row.times for row in rows.rows if row.state == FAILED)
    failed = f", {n_failed:,} failed" if n_failed else ""
    return replace(rows, summary=f"{units.count_text(rows.total, 'receipt')}{failed}")


def drawn_rows(receipts: pd.DataFrame) -> Rows:
    """Read at most 400 rows: failures, the critical path, then the first ones, with ancestors."""
    rows = merged_rows(receipts)
    if len(rows.rows) <= _MAX_ROWS:
        return rows
    chosen: set[int] = set()
    for i in sorted(range(len(rows.rows)), key=lambda i: (_rank(rows.rows[i]), i)):
        path = _path_to(rows.rows, i, chosen)
        if len(chosen) + len(path) <= _MAX_ROWS:
            chosen.update(path)
    new_index = {i: new for new, i in enumerate(sorted(chosen))}
    selected = [
        replace(
            rows.rows[i],
            parent=new_index.get(rows.rows[i].parent, -1),
            children=[new_index[c] for c in rows.rows[i].children if c in new_index],
        )
        for i in new_index
    ]
    n_hidden = rows.total - sum(row.times for row in selected)
    note = (
        f"{n_hidden:,} of {rows.total:,} receipts are not drawn: failed receipts, the critical "
        "path and the first receipts come first"
    )
    row_of = {name: new_index[i] for name, i in rows.row_of.items() if i in new_index}
    return Rows(selected, row_of, rows.summary, (note,))


def _path_to(rows: Sequence[Row], i: int, chosen: set[int]) -> list[int]:
    path = []
    while i >= 0 and i not in chosen:
        path.append(i)
        i = rows[i].parent
    return path


def _read_rows(receipts: pd.DataFrame) -> Rows:
    rows: list[Row] = []
    row_of: dict[str, int] = {}
    for values in canvas.read_rows(receipts, COLUMNS, SOURCE):
        row = _read_row(dict(zip(COLUMNS, values, strict=True)), rows, row_of)
        if row.parent >= 0:
            rows[row.parent].children.append(len(rows))
        row_of[row.receipt_id] = len(rows)
        rows.append(row)
    return Rows(rows, row_of)


def _read_row(record: dict[str, Any], rows: Sequence[Row], row_of: dict[str, int]) -> Row:
    """Read one receipt; it has a parent only if the parent's row comes before it."""
    parent = row_of.get(record["parent_id"], -1)
    is_refund = record["kind"] == "refund"
    state, gas = _STATES.get(record["status"], WAITING), record["gas_burnt"]
    if record["status"] == "unknown" and gas != 0:
        state = UNKNOWN
    return Row(
        receipt_id=record["receipt_id"],
        parent=parent,
        depth=rows[parent].depth + 1 if parent >= 0 else 0,
        state=REFUND if is_refund and state == OK else state,
        is_refund=is_refund,
        action="refund" if is_refund else record["method_name"] or record["actions"] or "unknown",
        receiver_id=record["receiver_id"] or "unknown",
        shard=record["shard_id"],
        height=record["block_height"],
        gas=gas or 0,
        is_critical=record["on_critical_path"] is True,
        n_unknown_gas=int(gas is None and state != WAITING),
    )


def _merge_equal(rows: Rows) -> Rows:
    if len(rows.rows) <= MAX_UNMERGED:
        return rows
    merged: list[Row] = []
    row_of: dict[str, int] = {}
    index_of: dict[tuple[int, int], int] = {}
    for row, key in zip(rows.rows, _subtree_keys(rows.rows), strict=True):
        parent = row_of[rows.rows[row.parent].receipt_id] if row.parent >= 0 else -1
        i = index_of.setdefault((parent, key), len(merged))
        row_of[row.receipt_id] = i
        if i < len(merged):
            merged[i].add(row)
            continue
        merged.append(replace(row, parent=parent, children=[]))
        if parent >= 0:
            merged[parent].children.append(i)
    return Rows(merged, row_of)


def _subtree_keys(rows: Sequence[Row]) -> list[int]:
    """Return a number per row; rows with equal subtrees have equal numbers."""
    numbers: dict[tuple[Any, ...], int] = {}
    keys = [0] * len(rows)
    for i in reversed(range(len(rows))):
        row = rows[i]
        subtrees = tuple(sorted(keys[child] for child in row.children))
        block = row.height, row.shard
        key = (row.is_refund, row.action, row.receiver_id, row.state, *block, subtrees)
        keys[i] = numbers.setdefault(key, len(numbers))
    return keys


def data_pairs(edges: pd.DataFrame | None, row_of: dict[str, int]) -> list[tuple[int, int]]:
    """List the pairs of rows with a data dependency, each pair once."""
    if edges is None:
        return []
    ends = canvas.read_rows(edges, ("parent_id", "child_id", "kind"), "Trace.edges")
    pairs = [
        (row_of[parent], row_of[child])
        for parent, child, kind in ends
        if kind == "data" and parent in row_of and child in row_of
    ]
    return list(dict.fromkeys(pairs))


def _rank(row: Row) -> int:
    rank = {FAILED: 0, UNKNOWN: 1, OK: 2, WAITING: 2, REFUND: 4}
    return rank[row.state] - row.is_critical


def labelled_rows(rows: Sequence[Row], capacity: float) -> list[int]:
    """Choose the rows whose labels fit: failures first, then the critical path."""
    step = max(1.0, len(rows) / max(1.0, capacity))
    is_free = [True] * len(rows)
    chosen: list[int] = []
    for i in sorted(range(len(rows)), key=lambda i: (_rank(rows[i]), i)):
        if is_free[i]:
            chosen.append(i)
            first, last = max(0, i - ceil(step) + 1), i + ceil(step)
            is_free[first:last] = [False] * len(is_free[first:last])
    return sorted(chosen)


def colour(state: str, ink: inks.Inks) -> str:
    """Return the colour of a state; a receipt that has not been executed is an outline."""
    palette = _COLOURS[state]
    return ink.face if palette is None else ink.shape(palette)


def figure_height(n_rows: int) -> float:
    """Return a figure's height in inches."""
    return min(_MAX_HEIGHT, max(_MIN_HEIGHT, 1.1 + n_rows * _ROW_HEIGHT))


def label_rows(ax: Axes, rows: Sequence[Row], starts: Sequence[float], end: float) -> None:
    """Label rows at the right where labels fit, failures in bold, with a line to each label."""
    ax.set_ylim(len(rows) - 0.4, -0.6)
    levels = labelled_rows(rows, canvas.line_capacity(ax))
    line_starts = [starts[y] for y in levels]
    guides: dict[str, Any] = {"lw": 0.5, "linestyles": (0, (1, 3)), "zorder": 1}
    ax.hlines(levels, line_starts, end, colors=inks.inside(ax).faint, **guides)
    ax.yaxis.tick_right()
    room = canvas.side_room(ax)
    labels = [texts.fit(rows[y].label, room, is_bold=rows[y].state == FAILED) for y in levels]
    ax.set_yticks(levels, labels, size=SMALL, parse_math=False)
    for y, text in zip(levels, ax.get_yticklabels(), strict=True):
        if rows[y].state == FAILED:
            text.set(color=inks.outside(ax).text_colour(inks.VERMILION), weight="bold")
    canvas.hide_spines(ax)
    ax.grid(visible=False)
    ax.tick_params(axis="y", length=0)


def draw_data(
    ax: Axes,
    rows: Rows,
    pairs: Sequence[tuple[int, int]],
    ends: Sequence[tuple[tuple[float, float], tuple[float, float]]],
    *,
    bend: float = 0.25,
) -> None:
    """Draw a bent arrow for each data dependency."""
    purple = inks.inside(ax).shape(inks.PURPLE)
    for (sender, receiver), (tail, head) in zip(pairs, ends, strict=True):
        is_critical = rows.rows[sender].is_critical and rows.rows[receiver].is_critical
        ax.annotate(
            "",
            xy=head,
            xytext=tail,
            arrowprops={
                "arrowstyle": "-|>",
                "color": purple,
                "linestyle": _DASHES,
                "linewidth": 2.0 if is_critical else 1.2,
                "connectionstyle": f"arc3,rad={-bend if head[1] > tail[1] else bend}",
                "shrinkA": 3,
                "shrinkB": 4,
            },
            zorder=4,
        )


def data_handle(ax: Axes) -> Any:
    line, colour = canvas.mpl("lines").Line2D, inks.inside(ax).shape(inks.PURPLE)
    return line([], [], color=colour, ls=_DASHES, lw=1.2, label="data dependency")
