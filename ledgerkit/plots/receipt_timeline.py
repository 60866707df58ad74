"""Receipts over blocks and shards: when each ran, and how long it waited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Any

from ledgerkit.plots import canvas, inks, receipt_rows, texts
from ledgerkit.plots.texts import SMALL

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ledgerkit.plots.inks import Inks
    from ledgerkit.plots.receipt_rows import Row, Rows

_MAX_GAP = 5  # blocks; longer gaps without receipts are shortened to this, and marked
_GAP_ROOM = _MAX_GAP - 2  # blocks of a gap that its label may take
_BAR_HEIGHT = 0.72
_THIN_LINE = 0.2  # points; for plots of many rows
_STATE_LABELS = {receipt_rows.OK: "executed", receipt_rows.FAILED: "executed, failed"}


@dataclass(frozen=True, slots=True)
class _Scale:
    """The horizontal positions of blocks in which receipts ran; `first` is the first height."""

    positions: dict[int, float]
    first: int | None

    @property
    def end(self) -> float:
        return max(self.positions.values()) + 1

    def ticks(self, room: float) -> tuple[list[float], list[str]]:
        """Return the positions and labels of as many ticks as fit into `room` points."""
        sign = "" if self.first is None else "+"
        labels = [f"{sign}{height - (self.first or 0):,}" for height in self.positions]
        tick_width = max(map(texts.width, labels)) + 2 * SMALL
        step = max(1, ceil(len(labels) * tick_width / max(1.0, room)))
        return [p + 0.5 for p in list(self.positions.values())[::step]], labels[::step]

    def gaps(self) -> list[tuple[float, int]]:
        return [
            ((self.positions[a] + 1 + self.positions[b]) / 2, b - a - 1)
            for a, b in pairwise(self.positions)
            if b - a > _MAX_GAP
        ]


@dataclass(frozen=True, slots=True)
class _Bar:
    """The bar of a row: its level, the earliest block in which it could run, and when it ran."""

    row: Row
    level: int
    start: float
    ran: float


@canvas.plot
def timeline(
    receipts: pd.DataFrame,
    edges: pd.DataFrame | None = None,
    *,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """
    Draw receipts over blocks, grouped by shard.

    Parameters
    ----------
    receipts
        Typed as ``schema("receipts")``.
    edges
        Typed as ``schema("edges")``; adds an arrow per data dependency.
    title
        The title; None counts the receipts.

    Returns
    -------
    ax
        The axes: one row per receipt, solid in the block in which it was executed and hatched
        while it waited, from the block after its parent's. Gaps of more than 5 blocks without
        receipts are shortened and marked. If no height is known, the depth in the receipt tree
        replaces it. Equal receipts share rows, and some are left out, as in `receipt_tree`.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> trace = lk.trace("AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY", "ivan.near")
    >>> ax = lk.plots.timeline(trace.receipts, trace.edges)
    >>> ax.get_title(loc="left")
    '6 receipts, 1 failed'
    """
    rows = receipt_rows.drawn_rows(receipts)
    ax = canvas.axes_or_new(ax, 8.0, receipt_rows.figure_height(len(rows.rows)))
    if not rows.rows:
        return canvas.draw_empty(ax, receipts, "no receipts")
    scale = _block_scale(rows.rows)
    bars = _bars(rows, scale)
    pairs = receipt_rows.data_pairs(edges, rows.row_of)
    _label_shards(ax, bars)
    _draw_bars(ax, bars)
    _draw_creation(ax, rows, bars)
    ends = [(_arrow_end(bars[a], 0.9), _arrow_end(bars[b], 0.25)) for a, b in pairs]
    receipt_rows.draw_data(ax, rows, pairs, ends, bend=0.1)
    _label_axes(ax, bars, scale)
    handles = _legend_handles(ax, rows, bars, has_data=bool(pairs))
    canvas.finish(ax, receipts, title or rows.summary, handles=handles, notes=rows.notes)
    return ax


def _block_scale(rows: Sequence[Row]) -> _Scale:
    """Scale the axis by the blocks in which receipts ran, or by depth if no height is known."""
    heights = sorted({row.height for row in rows if row.height is not None})
    if not heights:
        return _Scale({depth: float(depth) for depth in sorted({row.depth for row in rows})}, None)
    positions, position = {heights[0]: 0.0}, 0.0
    for before, height in pairwise(heights):
        position += min(height - before, _MAX_GAP)
        positions[height] = position
    return _Scale(positions, heights[0])


def _bars(rows: Rows, scale: _Scale) -> list[_Bar]:
    level = {i: y for y, i in enumerate(_by_shard(rows.rows))}
    bars: list[_Bar] = []
    for i, row in enumerate(rows.rows):
        key = row.depth if scale.first is None else row.height
        ran = scale.end if key is None else scale.positions[key]
        earliest = bars[row.parent].ran + 1 if row.parent >= 0 else ran
        # A local receipt runs in the block of its parent.
        bars.append(_Bar(row, level[i], min(earliest, ran), ran))
    return bars


def _arrow_end(bar: _Bar, share: float) -> tuple[float, float]:
    return bar.ran + share, float(bar.level)


def _by_shard(rows: Sequence[Row]) -> list[int]:
    shards = list(dict.fromkeys(row.shard for row in rows if row.shard is not None))
    rank = {shard: position for position, shard in enumerate([*shards, None])}
    heights = [float("inf") if row.height is None else row.height for row in rows]
    return sorted(range(len(rows)), key=lambda i: (rank[rows[i].shard], heights[i], i))


def _label_shards(ax: Axes, bars: Sequence[_Bar]) -> None:
    levels: dict[int | None, list[int]] = {}
    for bar in bars:
        levels.setdefault(bar.row.shard, []).append(bar.level)
    lines_per_row = canvas.line_capacity(ax) / len(bars)
    ink, margin = inks.inside(ax), inks.outside(ax)
    last_label = -1.0
    for shard, shard_levels in sorted(levels.items(), key=lambda item: min(item[1])):
        middle = (min(shard_levels) + max(shard_levels)) / 2
        if max(shard_levels) + 1 < len(bars):
            ax.axhline(max(shard_levels) + 0.5, color=ink.faint, lw=0.6, zorder=1)
        if (middle - last_label) * lines_per_row < 1 and last_label >= 0:
            continue
        last_label = middle
        ax.text(
            -0.015,
            middle,
            "shard\nunknown" if shard is None else f"shard {shard}",
            transform=ax.get_yaxis_transform(),
            ha="right",
            va="center",
            size=SMALL,
            color=margin.text,
        )


def _draw_bars(ax: Axes, bars: Sequence[_Bar]) -> None:
    ink = inks.inside(ax)
    waited = [bar for bar in bars if bar.ran > bar.start]
    spans = [(bar.start, bar.ran - bar.start) for bar in waited]
    _draw_spans(ax, waited, spans, **_waiting_style(ink))
    for state in receipt_rows.STATES:
        state_bars = [bar for bar in bars if bar.row.state == state]
        _draw_spans(ax, state_bars, [(bar.ran, 1.0) for bar in state_bars], **_style(state, ink))


def _draw_spans(
    ax: Axes, bars: Sequence[_Bar], spans: Sequence[tuple[float, float]], **style: Any
) -> None:
    if not bars:
        return
    lefts, widths = zip(*spans, strict=True)
    if len(bars) > receipt_rows.MAX_UNMERGED:
        style |= {"linewidth": _THIN_LINE}
    levels = [bar.level for bar in bars]
    drawn = ax.barh(levels, widths, left=lefts, height=_BAR_HEIGHT, zorder=3, **style)
    for bar, patch in zip(bars, drawn, strict=True):
        canvas.set_hover(patch, bar.row.hover_text)


def _waiting_style(ink: Inks) -> dict[str, Any]:
    hatch = {"hatch": "////", "hatch_linewidth": 0.6}
    return {"color": ink.face, "edgecolor": ink.faint, "linewidth": 0.6, **hatch}


def _style(state: str, ink: Inks) -> dict[str, Any]:
    if state == receipt_rows.WAITING:
        return {"color": ink.face, "edgecolor": ink.text, "linestyle": "--", "linewidth": 0.8}
    return {
        "color": receipt_rows.colour(state, ink),
        "edgecolor": ink.face,
        "hatch": "xxx" if state == receipt_rows.FAILED else None,
        "hatch_linewidth": 0.6,
        "linewidth": 0.4,
    }


def _draw_creation(ax: Axes, rows: Rows, bars: Sequence[_Bar]) -> None:
    pairs = [(bars[row.parent], bars[i]) for i, row in enumerate(rows.rows) if row.parent >= 0]
    lines = [[(a.ran + 1, a.level), (b.start, b.level)] for a, b in pairs]
    width = 0.8 if len(bars) <= receipt_rows.MAX_UNMERGED else _THIN_LINE
    canvas.draw_lines(ax, lines, inks.inside(ax).faint, width)


def _label_axes(ax: Axes, bars: Sequence[_Bar], scale: _Scale) -> None:
    ordered = sorted(bars, key=lambda bar: bar.level)
    end = max(bar.ran for bar in bars) + 1
    ax.set_xlim(-0.15, end + 0.15)
    ran_ends = [bar.ran + 1 for bar in ordered]
    receipt_rows.label_rows(ax, [bar.row for bar in ordered], ran_ends, end)
    ax.set_xticks(*scale.ticks(canvas.size(ax)[0]), size=SMALL)
    for middle, n_blocks in scale.gaps():
        _mark_gap(ax, middle, n_blocks)
    label = "depth (block heights are unknown)"
    if scale.first is not None:
        label = f"blocks after block {scale.first}"
    ax.set_xlabel(label, size=SMALL)


def _mark_gap(ax: Axes, middle: float, n_blocks: int) -> None:
    ink = inks.inside(ax)
    area = ax.axvspan(middle - 1, middle + 1, color=ink.shade, lw=0, zorder=0)
    canvas.set_hover(area, f"{n_blocks:,} blocks without receipts")
    left, right = ax.get_xlim()
    room = _GAP_ROOM * canvas.size(ax)[0] / (right - left)
    lines = [line for line in (f"{n_blocks:,}", "blocks") if texts.width(line, SMALL - 1) <= room]
    ax.text(
        middle,
        -0.5,
        "\n".join(lines),
        ha="center",
        va="top",
        size=SMALL - 1,
        color=ink.text,
        zorder=5,
        bbox={"color": ink.face, "pad": 1.5, "lw": 0},
    )


def _legend_handles(ax: Axes, rows: Rows, bars: Sequence[_Bar], *, has_data: bool) -> list[Any]:
    patch, line = canvas.mpl("patches").Patch, canvas.mpl("lines").Line2D
    ink = inks.inside(ax)
    styles = {_STATE_LABELS.get(state, state): _style(state, ink) for state in rows.states()}
    if any(bar.ran > bar.start for bar in bars):
        styles["waiting"] = _waiting_style(ink)
    handles = [
        patch(facecolor=style.pop("color"), **style, label=label) for label, style in styles.items()
    ]
    if any(row.parent >= 0 for row in rows.rows):
        handles.append(line([], [], color=ink.faint, lw=0.8, label="parent to child"))
    if has_data:
        handles.append(receipt_rows.data_handle(ax))
    return handles
