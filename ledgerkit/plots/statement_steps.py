"""The balances of a statement as steps, coloured by cause, with gaps hatched."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.frames.human import is_near, row_units
from ledgerkit.plots import canvas, inks, texts, token_units
from ledgerkit.plots.token_units import TokenUnit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_COLUMNS = (
    "account_id",
    "block_height",
    "time",
    "asset",
    "cause",
    "change",
    "balance_before",
    "balance_after",
)
_GAP_COLUMNS = ("asset", "start_height", "stop_height", "missing", "note")
_NATIVE = "near"
_FEW_BLOCKS = 20  # around a single height
_MAX_LINES = 7
_MAX_CAUSES = 6  # the other causes share a colour
_OTHERS = "other causes"
_HIDDEN_GAPS = "gaps of assets not drawn"
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_MAX_LARGE_DOTS = 120  # changes; the dots of more are smaller


class _Gap(NamedTuple):
    """A gap: the values of `_GAP_COLUMNS`, and its ends on the horizontal axis."""

    asset: str
    start_height: int
    stop_height: int
    missing: int | None
    note: str
    start: float
    stop: float


class _Line(NamedTuple):
    asset: str
    unit: TokenUnit
    positions: list[float]  # on the horizontal axis
    causes: list[str]
    changes: list[int]
    before: list[int | None]
    after: list[int | None]

    @property
    def extent(self) -> float:
        return max((self.unit.number(v) for v in (*self.before, *self.after) if v), default=0.0)

    def points(self, gaps: Sequence[_Gap]) -> tuple[list[float], list[float]]:
        """Return the corners of the steps; a break where a balance is unknown or jumps."""
        x: list[float] = []
        y: list[float] = []
        last: int | None = None
        waiting = sorted(gaps, reverse=True)
        for position, before, after in zip(self.positions, self.before, self.after, strict=True):
            while waiting and waiting[-1].stop < position:
                gap = waiting.pop()
                if last is None:
                    continue
                x += [gap.start, gap.start]
                y += [self.number(last), float("nan")]
                last = None if gap.missing is None else last + gap.missing
                x.append(gap.stop)
                y.append(self.number(last))
            if x and (before is None or before != last):
                x.append(position)
                y.append(float("nan"))
            x += [position, position]
            y += [self.number(before), self.number(after)]
            last = after
        return x, y

    def change_text(self, index: int) -> str:
        cause = self.causes[index].replace("_", " ")
        return f"{cause} {self.unit.text(self.changes[index])}: {self.asset}"

    def number(self, balance: int | None) -> float:
        return float("nan") if balance is None else self.unit.number(balance)


@canvas.plot
def statement(
    entries: pd.DataFrame,
    totals: pd.DataFrame | None = None,
    gaps: pd.DataFrame | None = None,
    *,
    asset: str | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """
    Draw the balances of a statement as steps, each change in the colour of its cause.

    Parameters
    ----------
    entries
        Typed as ``schema("statement")``: the entries of a statement.
    totals
        Its totals, typed as ``schema("statement_totals")``, which have symbols and decimals, as
        entries of ``lk.statement`` do. Tokens without decimals are drawn in their smallest units.
    gaps
        Its gaps, typed as ``schema("statement_gaps")``: each is hatched.
    asset
        The asset to draw, as in the entries; None draws NEAR and the largest others.
    title
        The title; None names the account.

    Returns
    -------
    ax
        The axes: a line of steps per asset. At most seven are drawn: NEAR and the largest balances;
        tokens with unknown decimals are drawn only if there are no others. In a figure made here
        each asset has axes of its own, one below the other, and the first are returned. A line is
        interrupted where the next balance does not follow from the last change. The horizontal axis
        is the time, or the block height if an entry has no time. A gap reaches from one reading of
        the balance to the next, placed by its block heights; after it the line goes on with the
        missing amount.

    Raises
    ------
    InvalidRequestError
        If a frame lacks columns, the statement has no such asset, or matplotlib is not
        installed.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> entries = lk.statement("bob.near").entries
    >>> ax = lk.plots.statement(entries, asset="near")
    >>> ax.get_title(loc="left")
    'balances of bob.near'
    """
    canvas.check_columns(entries, _COLUMNS, "lk.statement")
    canvas.distinct_values(entries, "asset", asset, "an asset of the statement")
    rows = entries if asset is None else entries[entries["asset"] == asset]
    rows = rows[rows[["block_height", "cause", "change"]].notna().all(axis=1)]
    has_times = bool(rows["time"].notna().all())
    units_of = {
        **_entry_units(entries),
        **token_units.read_units(totals, "asset", "lk.statement(...).totals"),
    }
    lines = _lines(rows, units_of, has_times=has_times)
    gap_rows = []
    if gaps is not None:
        gap_rows = canvas.read_rows(gaps, _GAP_COLUMNS, "lk.statement(...).gaps")
    if not lines:
        notes = texts.count_note(_HIDDEN_GAPS, len(gap_rows))
        return canvas.draw_empty(canvas.axes_or_new(ax, 8.0, 4.0), entries, "no entries", *notes)
    drawn = _largest(lines)
    if ax is not None or len(drawn) == 1:
        panels = {canvas.axes_or_new(ax, 8.0, 4.0): drawn}
    else:
        all_axes = canvas.stacked_axes(len(drawn), 8.0, 2.4)
        panels = {panel: [line] for panel, line in zip(all_axes, drawn, strict=True)}
    heights = [float(height) for height in rows["block_height"]]
    axis = _Axis(heights, _positions(rows, has_times=has_times))
    account_id = canvas.column_values(entries, "account_id")[0]
    styles, last = _cause_styles(drawn), list(panels)[-1]
    placed_gaps = [_Gap(*row, *map(axis.position, row[1:3])) for row in gap_rows]
    handles = [
        [*_draw_changes(panel, group, styles), *_draw_lines(panel, group, placed_gaps)]
        for panel, group in panels.items()
    ]
    areas = []
    for panel, group in panels.items():
        if not has_times:
            canvas.widen_single_position(panel, _FEW_BLOCKS)
        unit = token_units.axis_text(line.unit for line in group)
        canvas.label_time_axes(panel, f"balance ({unit})")
        if not has_times:
            canvas.label_x_axis(panel, "block height")
        areas.append(_draw_gaps(panel, placed_gaps, group))
        if panel is not last:
            panel.set_xlabel("")
            panel.tick_params(labelbottom=False)
            panel.xaxis.get_offset_text().set_visible(False)
    canvas.lay_out(last)
    notes_below = [
        *texts.count_note(_HIDDEN_GAPS, len(gap_rows) - sum(map(len, areas))),
        *texts.count_note("assets not drawn", len(lines) - len(drawn)),
    ]
    for number, (panel, group) in enumerate(panels.items()):
        names = [line.asset for line in group] if len(panels) > 1 else []
        if not number:
            names = [f"balances of {account_id}", *names]
        head = title if title and not number else partial(_title, names)
        canvas.finish(
            panel,
            entries,
            head,
            handles=[*handles[number], *areas[number][:1]],
            notes=notes_below if panel is last else (),
            is_laid_out=True,
        )
    return next(iter(panels))


def _title(names: Sequence[str], limit: int) -> str:
    return ": ".join(texts.shorten(name, limit) for name in names)


def _lines(
    rows: pd.DataFrame, units_of: Mapping[str, TokenUnit], *, has_times: bool
) -> list[_Line]:
    lines = []
    for asset, asset_rows in rows.groupby("asset", sort=False):
        name = str(asset)
        unit = token_units.NEAR if is_near(name) else units_of.get(name, token_units.SMALLEST)
        changed_rows = asset_rows[[change != 0 for change in asset_rows["change"]]]
        names = ("cause", "change", "balance_before", "balance_after")
        columns = [canvas.column_values(changed_rows, column) for column in names]
        if len(changed_rows):
            lines.append(_Line(name, unit, _positions(changed_rows, has_times=has_times), *columns))
    return lines


def _entry_units(entries: pd.DataFrame) -> Mapping[str, TokenUnit]:
    pairs = zip(entries["asset"], row_units(entries), strict=True)
    return {str(asset): TokenUnit(unit[1], unit[0]) for asset, unit in pairs if unit}


def _positions(rows: pd.DataFrame, *, has_times: bool) -> list[float]:
    """Return positions on the horizontal axis: times as matplotlib counts them, or heights."""
    if not has_times:
        return [float(height) for height in rows["block_height"]]
    times = rows["time"].dt.tz_localize(None).to_numpy()
    return [float(position) for position in canvas.mpl("dates").date2num(times)]


def _largest(lines: Sequence[_Line]) -> list[_Line]:
    """
    Choose the lines with the largest balances, in the order of the frame.

    NEAR comes first. Tokens with unknown decimals are drawn only if there are no others.
    """
    in_known_units = [i for i, line in enumerate(lines) if line.unit != token_units.SMALLEST]

    def rank(i: int) -> tuple[bool, float]:
        return lines[i].asset != _NATIVE, -lines[i].extent

    chosen = sorted(in_known_units or range(len(lines)), key=rank)[:_MAX_LINES]
    return [lines[i] for i in sorted(chosen)]


def _cause_styles(lines: Sequence[_Line]) -> dict[str, tuple[str, str]]:
    counts = Counter(cause for line in lines for cause in line.causes)
    frequent = sorted(counts, key=lambda cause: (-counts[cause], cause))[:_MAX_CAUSES]
    return {
        cause: (inks.CYCLE[index], _MARKERS[index])
        for index, cause in enumerate([*frequent, _OTHERS][: len(counts)])
    }


def _draw_changes(
    ax: Axes, lines: Sequence[_Line], styles: Mapping[str, tuple[str, str]]
) -> list[Any]:
    """Draw each change as a coloured step with a marker; return a handle per cause."""
    n_changes = sum(len(line.changes) for line in lines)
    size = 4.5 if n_changes <= _MAX_LARGE_DOTS else 2.0
    handles = []
    for cause, (colour, marker) in styles.items():
        ink = inks.inside(ax).shape(colour)
        steps = [
            (line, i)
            for line in lines
            for i, name in enumerate(line.causes)
            if (name if name in styles else _OTHERS) == cause and line.after[i] is not None
        ]
        x = [line.positions[i] for line, i in steps]
        y = [line.number(line.after[i]) for line, i in steps]
        starts = [line.number(line.before[i]) for line, i in steps]
        risers = [
            [(position, start), (position, end)]
            for position, start, end in zip(x, starts, y, strict=True)
            if start == start  # noqa: PLR0124 - not NaN
        ]
        canvas.draw_lines(ax, risers, ink, 2.2)
        if not x:
            continue
        label = texts.one_line(cause.replace("_", " "))
        (handle,) = ax.plot(x, y, ls="", marker=marker, ms=size, color=ink, label=label, zorder=3)
        canvas.set_hover(handle, *(line.change_text(i) for line, i in steps))
        handles.append(handle)
    return handles


def _draw_lines(ax: Axes, lines: Sequence[_Line], gaps: Sequence[_Gap]) -> list[Any]:
    handles = []
    for style, line in zip(canvas.LINE_STYLES, lines, strict=False):
        ink = inks.inside(ax)
        label = texts.fit(partial(texts.shorten, line.asset), canvas.legend_room(ax))
        points = line.points([gap for gap in gaps if gap.asset == line.asset])
        (handle,) = ax.plot(*points, ls=style, lw=1.0, color=ink.text, label=label, zorder=1)
        canvas.set_hover(handle, line.asset)
        handles.append(handle)
    return handles if len(lines) > 1 else []


def _draw_gaps(ax: Axes, gaps: Sequence[_Gap], lines: Sequence[_Line]) -> list[Any]:
    unit_of = {line.asset: line.unit for line in lines}
    areas = []
    left, right = ax.get_xlim()
    for gap in gaps:
        if gap.asset not in unit_of:
            continue
        ends = [min(max(end, left), right) for end in (gap.start, gap.stop)]
        ink = inks.inside(ax).faint
        area = ax.axvspan(*ends, fill=False, hatch="///", edgecolor=ink, lw=1.0, zorder=0.5)
        area.set_label("gap: no entry explains the change")
        amount = "unknown" if gap.missing is None else unit_of[gap.asset].text(gap.missing)
        blocks = f"after block {gap.start_height} up to block {gap.stop_height}"
        canvas.set_hover(area, f"gap: {amount} of {gap.asset}, {blocks}: {gap.note}")
        areas.append(area)
    ax.set_xlim(left, right)
    return areas


class _Axis(NamedTuple):
    """The positions of the entries on the horizontal axis, by height."""

    heights: Sequence[float]
    positions: Sequence[float]

    def position(self, height: float) -> float:
        """Return the position of a height, interpolated between the entries around it."""
        heights, positions = self.heights, self.positions
        later = bisect_left(heights, height)
        if later < len(heights) and heights[later] == height:
            return positions[later]
        # A height outside of the entries is placed at the average speed of their blocks.
        before, after = (0, -1) if later in {0, len(heights)} else (later - 1, later)
        if heights[before] == heights[after]:
            return math.inf if later else -math.inf
        share = (height - heights[before]) / (heights[after] - heights[before])
        return positions[before] + share * (positions[after] - positions[before])
