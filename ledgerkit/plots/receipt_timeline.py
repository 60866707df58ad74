"""The timeline: what ran in which block and shard, what waited, and for whom."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ledgerkit.plots import canvas, receipt_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.axes import Axes

    from ledgerkit.plots.receipt_rows import Row, Rows

_GAP = 5  # blocks; a longer time in which nothing ran is drawn this long, and marked
_LETTERS = 6  # of a tick's label
_THICK = 0.72
_FINE = 0.2  # points; around bars that are thin themselves


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where blocks stand; `places` has each in which something ran, and `first` is the first."""

    places: dict[int, float]
    first: int | None

    @property
    def end(self) -> float:
        """Tell where the last block ends."""
        return max(self.places.values()) + 1

    def ticks(self, room: float) -> tuple[list[float], list[str]]:
        """Give the middles of as many blocks as there is room to name, and their names."""
        step = max(1.0, len(self.places) * _LETTERS / max(1.0, room))
        named = list(self.places)[:: int(step) + (step > int(step))]
        sign = "" if self.first is None else "+"
        return [self.places[at] + 0.5 for at in named], [
            f"{sign}{at - (self.first or 0):,}" for at in named
        ]

    def breaks(self) -> list[tuple[float, int]]:
        """List the shortened times: where their middle is, and how many blocks they were."""
        return [
            ((self.places[a] + 1 + self.places[b]) / 2, b - a - 1)
            for a, b in pairwise(self.places)
            if b - a > _GAP
        ]


@dataclass(frozen=True, slots=True)
class _Bar:
    """One row drawn: its level, when it could have run and when it ran."""

    row: Row
    level: int
    start: float
    ran: float


def timeline(
    receipts: pd.DataFrame,
    edges: pd.DataFrame | None = None,
    *,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """
    Draw receipts over blocks, by shard.

    Parameters
    ----------
    receipts
        Typed as ``schema("receipts")``.
    edges
        Typed as ``schema("edges")``; adds who waited for whose result.
    ax
        Where to draw; None makes a figure.
    title
        Above the drawing; None counts the receipts.

    Returns
    -------
    ax
        Where it is drawn: a row a receipt, solid in the block in which it ran and hatched from
        when it could have run, which is the block after its creator. Times of more than 5
        blocks in which nothing ran are shortened and marked. Where no height is known, the
        creators above count instead. Rows are shared as in `receipt_tree`.

    Raises
    ------
    InvalidRequestError
        If a frame lacks columns, or matplotlib is not installed.
    """
    every = receipt_rows.folded(receipt_rows.read(receipts), receipt_rows.UNFOLDED)
    ax = canvas.axes(ax, 8.0, receipt_rows.figure_height(len(every.rows)))
    if not every.rows:
        return canvas.empty(ax, "no receipts")
    scale = _scale(every.rows)
    bars = _bars(every, scale)
    pairs = receipt_rows.data_pairs(edges, every.row_of)
    _draw_shards(ax, every, bars)
    _draw_bars(ax, bars)
    _draw_creation(ax, every, bars)
    ends = [(_end(bars[a], 0.9), _end(bars[b], 0.25)) for a, b in pairs]
    receipt_rows.draw_data(ax, every, pairs, ends, bend=0.1)
    _finish(ax, bars, scale)
    canvas.header(
        ax, title or receipt_rows.summary(every), _handles(every, bars, has_data=bool(pairs))
    )
    return ax


def _scale(drawn: Sequence[Row]) -> _Scale:
    """Place the blocks in which something ran."""
    heights = sorted({row.height for row in drawn if row.height is not None})
    if not heights:
        return _Scale({depth: float(depth) for depth in sorted({row.depth for row in drawn})}, None)
    places, at = {heights[0]: 0.0}, 0.0
    for before, height in pairwise(heights):
        at += min(height - before, _GAP)
        places[height] = at
    return _Scale(places, heights[0])


def _bars(every: Rows, scale: _Scale) -> list[_Bar]:
    """Place the rows: shards in the order in which they came to run something."""
    level = {at: y for y, at in enumerate(_by_shard(every.rows))}
    bars: list[_Bar] = []
    for at, row in enumerate(every.rows):
        key = row.depth if scale.first is None else row.height
        ran = scale.end if key is None else scale.places[key]
        after = bars[row.parent].ran + 1 if row.parent >= 0 else ran
        bars.append(_Bar(row, level[at], min(after, ran), ran))
    return bars


def _end(bar: _Bar, part: float) -> tuple[float, float]:
    """Give a spot inside a bar's solid part, for an end of an arrow."""
    return bar.ran + part, float(bar.level)


def _by_shard(every: Sequence[Row]) -> list[int]:
    """Order the rows by shard, then as they ran."""
    shards = list(dict.fromkeys(row.shard for row in every if row.shard is not None))
    rank = {shard: place for place, shard in enumerate([*shards, None])}
    return sorted(range(len(every)), key=lambda at: (rank[every[at].shard], _when(every[at]), at))


def _when(row: Row) -> float:
    """Tell when a row ran; what has not comes last."""
    return float("inf") if row.height is None else row.height


def _draw_shards(ax: Axes, every: Rows, bars: Sequence[_Bar]) -> None:
    """Name the shards at the left, with a line between them."""
    levels: dict[int | None, list[int]] = {}
    for bar in bars:
        levels.setdefault(bar.row.shard, []).append(bar.level)
    room = canvas.letters(ax)[1] / len(every.rows)
    free = -1.0
    for shard, own in sorted(levels.items(), key=lambda item: min(item[1])):
        middle = (min(own) + max(own)) / 2
        if max(own) + 1 < len(every.rows):
            ax.axhline(max(own) + 0.5, color=canvas.FAINT, lw=0.6, zorder=0)
        if (middle - free) * room < 1 and free >= 0:
            continue
        free = middle
        name = "shard\nnot told" if shard is None else f"shard {shard}"
        ax.text(
            -0.015,
            middle,
            name,
            transform=ax.get_yaxis_transform(),
            ha="right",
            va="center",
            size=canvas.SMALL,
            color=canvas.INK,
        )


def _draw_bars(ax: Axes, bars: Sequence[_Bar]) -> None:
    """Draw the waiting hatched, the running solid."""
    waited = [bar for bar in bars if bar.ran > bar.start]
    _draw(ax, waited, [(bar.start, bar.ran - bar.start) for bar in waited], **_WAITED)
    for state, colour in receipt_rows.COLOURS.items():
        own = [bar for bar in bars if bar.row.state == state]
        _draw(ax, own, [(bar.ran, 1.0) for bar in own], **_look(state, colour))


_WAITED = {
    "color": "white",
    "edgecolor": canvas.FAINT,
    "hatch": "////",
    "hatch_linewidth": 0.6,
    "linewidth": 0.6,
}


def _draw(
    ax: Axes, bars: Sequence[_Bar], spans: Sequence[tuple[float, float]], **look: Any
) -> None:
    """Draw one bar a row."""
    if bars:
        lefts, widths = zip(*spans, strict=True)
        levels = [bar.level for bar in bars]
        if len(bars) > receipt_rows.UNFOLDED:
            look |= {"linewidth": _FINE}
        ax.barh(levels, widths, left=lefts, height=_THICK, zorder=3, **look)


def _look(state: str, colour: str) -> dict[str, Any]:
    """Describe the bar of a state: failures are crossed, what has not run is an outline."""
    if state == receipt_rows.WAITING:
        return {"color": "white", "edgecolor": canvas.INK, "linestyle": "--", "linewidth": 0.8}
    hatch = "xxx" if state == receipt_rows.FAILED else None
    return {
        "color": colour,
        "edgecolor": "white",
        "hatch": hatch,
        "hatch_linewidth": 0.6,
        "linewidth": 0.4,
    }


def _draw_creation(ax: Axes, every: Rows, bars: Sequence[_Bar]) -> None:
    """Draw a line from the end of each creator to the start of what it made."""
    made = [(bars[row.parent], bars[at]) for at, row in enumerate(every.rows) if row.parent >= 0]
    lines = [[(a.ran + 1, a.level), (b.start, b.level)] for a, b in made]
    collection = canvas.library("collections").LineCollection
    if lines:
        width = 0.8 if len(bars) <= receipt_rows.UNFOLDED else _FINE
        ax.add_collection(collection(lines, colors=canvas.FAINT, linewidths=width, zorder=2))


def _finish(ax: Axes, bars: Sequence[_Bar], scale: _Scale) -> None:
    """Name rows and blocks, as far as there is room, and mark the shortened times."""
    ordered = [bar.row for bar in sorted(bars, key=lambda bar: bar.level)]
    end = max(bar.ran for bar in bars) + 1
    ax.set_xlim(-0.15, end + 0.15)
    receipt_rows.name(
        ax, ordered, [bar.ran + 1 for bar in sorted(bars, key=lambda bar: bar.level)], end
    )
    ax.set_xticks(*scale.ticks(canvas.letters(ax)[0]), size=canvas.SMALL)
    for middle, blocks in scale.breaks():
        ax.axvspan(middle - 1, middle + 1, color=canvas.PALE, alpha=0.5, lw=0, zorder=0)
        ax.text(
            middle,
            -0.5,
            f"{blocks:,}\nblocks",
            ha="center",
            va="top",
            size=canvas.SMALL - 1,
            color=canvas.INK,
            zorder=5,
            bbox={"color": "white", "alpha": 0.8, "pad": 1.5, "lw": 0},
        )
    known = scale.first is not None
    ax.set_xlabel(
        f"block, counted from {scale.first}" if known else "creators above: no height is known",
        size=canvas.SMALL,
    )
    canvas.bare(ax)
    ax.tick_params(axis="y", length=0)


def _handles(every: Rows, bars: Sequence[_Bar], *, has_data: bool) -> list[Any]:
    """Make the legend: running, waiting and what the lines are."""
    patch = canvas.library("patches").Patch
    line = canvas.library("lines").Line2D
    handles = []
    for state in every.states():
        look = _look(state, receipt_rows.COLOURS[state])
        handles.append(patch(facecolor=look.pop("color"), **look, label=_WORDS.get(state, state)))
    if any(bar.ran > bar.start for bar in bars):
        look = {**_WAITED}
        handles.append(patch(facecolor=look.pop("color"), **look, label="waiting"))
    handles.append(line([], [], color=canvas.FAINT, lw=0.8, label="created"))
    if has_data:
        handles.append(receipt_rows.data_handle())
    return handles


_WORDS = {
    receipt_rows.OK: "ran",
    receipt_rows.FAILED: "ran and failed",
    receipt_rows.WAITING: "not run yet",
}
