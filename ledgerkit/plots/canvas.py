"""Axes, titles, legends, notes and hover texts that all plots share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ledgerkit import extras
from ledgerkit.docstrings import F, share
from ledgerkit.errors import InvalidRequestError
from ledgerkit.plots import inks, texts
from ledgerkit.plots.texts import SMALL
from ledgerkit.u128.human_units import is_missing

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LINE_STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
_TITLE = SMALL + 2  # points
_WIDEST_TIME = "00:00:00.0"  # the widest label of a time axis
_HOUR = 1 / 24  # days, the unit of a time axis
_MAX_NETWORK = 30  # characters
_LINE_HEIGHT = 1.25  # font sizes
_GAP = 8.0  # points between the title and the network
_SIDE_SHARE = 0.6  # share of the axes' width; longer labels are shortened
# Points of a legend without text: the handle of an entry, and the ends of a line.
_HANDLE, _LEGEND_ENDS = 3.6 * SMALL, 0.5 * SMALL
_BACKGROUND: ContextVar[str | None] = ContextVar("background", default=None)


def plot(function: F) -> F:
    """Add to the docstring of a plot what all of them share."""
    parameters = {"ax": "The axes to draw on; None makes a figure."}
    error = "If a frame lacks columns, or matplotlib is not installed."
    return share(function, parameters, {"InvalidRequestError": error})


# Axes -----------------------------------------------------------------------------------


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return `ax`, or the axes of a new figure of this size in inches, in readable colours."""
    if ax is None:
        ax = _new_axes(width, height)
    readable = inks.outside(ax).readable_or_text
    for axis in (ax.xaxis, ax.yaxis):
        tick = axis.get_major_ticks(1)[0]
        label, mark = readable(tick.label1.get_color()), readable(tick.tick1line.get_color())
        axis.set_tick_params(labelcolor=label, color=mark)
        axis.label.set_color(readable(axis.label.get_color()))
        axis.get_offset_text().set_color(label)
    for spine in ax.spines.values():
        spine.set_edgecolor(readable(spine.get_edgecolor()))
    return ax


def stacked_axes(count: int, width: float, height: float) -> list[Axes]:
    """Return axes of a new figure, one below the other, with the same horizontal axis."""
    first = axes_or_new(None, width, height * count)
    figure: Any = first.get_figure(root=True)
    grid = figure.add_gridspec(count, 1)
    first.set_subplotspec(grid[0])
    face = first.get_facecolor()
    others = [figure.add_subplot(grid[n], sharex=first, facecolor=face) for n in range(1, count)]
    return [first, *(axes_or_new(ax, width, height) for ax in others)]


def _new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure, made by pyplot unless `without_pyplot` is in effect."""
    background = _BACKGROUND.get()
    options: dict[str, Any] = {"figsize": (width, height), "layout": "constrained"}
    if background is None:
        ax: Axes = mpl("pyplot").subplots(**options)[1]
        # Otherwise a cell that ends with the axes prints them below their figure.
        ax._ipython_display_ = partial(_display, ax)  # type: ignore[attr-defined]  # for IPython
        return ax
    figure = mpl("figure").Figure(facecolor=background, **options)
    new: Axes = figure.add_subplot(facecolor=background)
    return new


def _display(ax: Axes) -> None:
    """Display the figure of the axes, unless the notebook displays it at the end of the cell."""
    if not mpl("pyplot").fignum_exists(ax.figure.number):  # type: ignore[union-attr]  # never None here
        extras.require("IPython.display", "notebook", "A plot").display(ax.figure)


@contextmanager
def without_pyplot(background: str) -> Iterator[None]:
    """Make new figures with this background and without pyplot, which is not thread-safe."""
    token = _BACKGROUND.set(background)
    try:
        yield
    finally:
        _BACKGROUND.reset(token)


def mpl(module: str) -> Any:
    """Import a module of matplotlib, such as "patches"."""
    return extras.require(f"matplotlib.{module}", "notebook", "A plot")


def size(ax: Axes) -> tuple[float, float]:
    """Return the width and the height of the axes in points."""
    box = ax.get_window_extent()
    return float(box.width * 72 / _dpi(ax)), float(box.height * 72 / _dpi(ax))


def _dpi(ax: Axes) -> float:
    return float(ax.figure.get_dpi())


def side_room(ax: Axes) -> float:
    """Return the points that labels beside the axes may take from their width."""
    return _SIDE_SHARE * size(ax)[0]


def legend_room(ax: Axes) -> float:
    """Return the points that the text of an entry of the legend may take."""
    return size(ax)[0] - _HANDLE - _LEGEND_ENDS


def line_capacity(ax: Axes) -> float:
    """Return how many lines of text fit into the height of the axes."""
    return size(ax)[1] / (SMALL * _LINE_HEIGHT)


# Frames ---------------------------------------------------------------------------------


def read_rows(frame: pd.DataFrame, columns: Sequence[str], source: str) -> list[tuple[Any, ...]]:
    """Return the values of columns row by row, None where missing, after checking for them."""
    check_columns(frame, columns, source)
    return list(zip(*(column_values(frame, name) for name in columns), strict=True))


def check_columns(frame: pd.DataFrame, columns: Iterable[str], source: str) -> None:
    """Raise InvalidRequestError if a frame lacks columns; `source` names a verb that has them."""
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        expected = f"a frame of {source} with the columns {', '.join(missing)}"
        raise InvalidRequestError.refuse("frame", list(frame.columns), expected)


def distinct_values(
    frame: pd.DataFrame, column: str, chosen: str | None, expected: str
) -> list[str]:
    """Return the different values of a column; raise if `chosen` is not one of them."""
    values = list(dict.fromkeys(column_values(frame, column)))
    if chosen is not None and chosen not in values:
        rule = f"{expected}, which has {', '.join(values) or 'none'}"
        raise InvalidRequestError.refuse(column, chosen, rule, choices=values)
    return values


def column_values(frame: pd.DataFrame, column: str) -> list[Any]:
    """Return a column as a list of Python values, with None for missing ones."""
    return [None if is_missing(value) else value for value in frame[column].astype(object)]


# Labels ---------------------------------------------------------------------------------


def label_x_axis(ax: Axes, label: str) -> None:
    ax.xaxis.set_major_formatter(lambda value, _: texts.format_number(value))
    ax.set_xlabel(label, size=SMALL)


def label_rows(
    ax: Axes, labels: Sequence[Callable[[int], str]], *, right_texts: Sequence[str] = ()
) -> None:
    """
    Label rows from top to bottom; the labels shorten their names as far as necessary.

    `right_texts` are written at the right of the rows and need room, too.
    """
    room = side_room(ax) - max(map(texts.width, right_texts), default=0.0)
    shortened = [texts.fit(label, room) for label in labels]
    ax.set_yticks(range(len(labels)), shortened, size=SMALL, parse_math=False)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    hide_spines(ax)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")


def label_time_axes(ax: Axes, unit: str) -> None:
    """Label the time below and the amounts, with all digits, at the left."""
    dates = mpl("dates")
    widen_single_position(ax, _HOUR)
    max_ticks = int(size(ax)[0] // (texts.width(_WIDEST_TIME) + SMALL))
    locator = dates.AutoDateLocator(minticks=3, maxticks=max(3, max_ticks))
    locator.intervald[dates.SECONDLY] = [1, 2, 5, 10, 15, 30]
    ax.xaxis.set_major_locator(locator)
    # By default matplotlib writes "07", which could be an hour, a minute or a second.
    formatter = dates.ConciseDateFormatter(locator)
    formatter.formats[-1] = "%H:%M:%S.%f"
    formatter.zero_formats[-1] = "%H:%M:%S"
    formatter.offset_formats[-1] = "%Y-%b-%d"
    ax.xaxis.set_major_formatter(formatter)
    ax.yaxis.set_major_formatter(lambda value, _: texts.format_amount(value))
    ax.xaxis.get_offset_text().set_fontsize(SMALL)
    ax.set_xlabel("time (UTC)", size=SMALL)
    ax.set_ylabel(unit, size=SMALL)
    hide_spines(ax, keep=("bottom", "left"))


def widen_single_position(ax: Axes, width: float) -> None:
    """Set the width of a horizontal axis with one position, where matplotlib would show years."""
    shared = ax.get_shared_x_axes().get_siblings(ax)
    left = min(sibling.dataLim.x0 for sibling in shared)
    right = max(sibling.dataLim.x1 for sibling in shared)
    if left == right:
        ax.set_xlim(left - width / 2, left + width / 2)


def label_point(ax: Axes, text: str, x: float, y: float, *, points: float = 4.0) -> None:
    offset: dict[str, Any] = {"xytext": (points, 0), "textcoords": "offset points"}
    colour = inks.outside(ax).text_colour(inks.inside(ax).text)
    ax.annotate(text, (x, y), va="center", size=SMALL, color=colour, parse_math=False, **offset)


def draw_lines(ax: Axes, lines: Sequence[Any], colour: str, width: float) -> None:
    """Draw many lines of one colour as a single collection."""
    if lines:
        collection = mpl("collections").LineCollection
        ax.add_collection(collection(lines, colors=colour, linewidths=width, zorder=2))


def set_hover(artist: Any, *hover_texts: str) -> None:
    """Set the texts that an SVG shows under the pointer: one, or one per marker."""
    artist.hover_texts = [texts.one_line(text, 300) for text in hover_texts]


def finish(
    ax: Axes,
    frame: pd.DataFrame,
    title: str | Callable[[int], str],
    *,
    handles: Sequence[Any] = (),
    notes: Sequence[str] = (),
    is_laid_out: bool = False,
) -> None:
    """
    Write title, network and legend above the labelled axes, and notes below.

    A function as `title` formats it with names shortened to a number of characters.
    """
    if not is_laid_out:
        lay_out(ax)
    if notes:
        label = ax.get_xlabel()
        lines = texts.wrap(notes, size(ax)[0])
        text = "\n".join([label, *lines] if label else lines)
        ax.set_xlabel(text, fontsize=SMALL, parse_math=False)
    n_lines = _draw_legend(ax, handles) if handles else 0
    style: dict[str, Any] = {"pad": 6 + n_lines * SMALL * 1.6, "parse_math": False}
    style["color"] = inks.outside(ax).text
    network = texts.one_line(frame.attrs.get("network") or "", _MAX_NETWORK)
    ax.set_title(network, loc="right", size=SMALL, **style)
    room = size(ax)[0] - (texts.width(network) + _GAP if network else 0)
    format_text = title if callable(title) else partial(texts.one_line, title)
    ax.set_title(texts.fit(format_text, room, size=_TITLE), loc="left", size=_TITLE, **style)


def lay_out(ax: Axes) -> None:
    """Lay out the figure, so that the size of the axes is that of the picture."""
    figure: Any = ax.get_figure(root=True)
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)


def _draw_legend(ax: Axes, handles: Sequence[Any]) -> int:
    widths = [_HANDLE + texts.width(str(handle.get_label())) for handle in handles]
    columns = _legend_columns(widths, _room_above(ax) - _LEGEND_ENDS)
    legend = ax.legend(
        handles=list(handles),
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=len(columns),
        fontsize=SMALL,
        frameon=False,
        borderaxespad=0.2,
        borderpad=0.2,
        handlelength=1.6,
        columnspacing=1.2,
        labelcolor=inks.outside(ax).text,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    return len(columns[0])


def _room_above(ax: Axes) -> float:
    """Return the points from the left side of the axes to the right end of what is drawn."""
    box, drawn = ax.get_window_extent(), ax.get_tightbbox()
    right = max(box.x1, drawn.x1) if drawn else box.x1
    return float((right - box.x0) * 72 / _dpi(ax))


def _legend_columns(widths: Sequence[float], room: float) -> list[Sequence[float]]:
    """Divide the entries into as many columns as fit, as matplotlib divides them."""
    columns: list[Sequence[float]] = []
    for n_columns in range(len(widths), 0, -1):
        length, n_longer = divmod(len(widths), n_columns)
        ends = [column * length + min(column, n_longer) for column in range(n_columns + 1)]
        columns = [widths[start:end] for start, end in pairwise(ends)]
        if sum(map(max, columns)) <= room:
            break
    return columns


def hide_spines(ax: Axes, *, keep: Sequence[str] = ("bottom",)) -> None:
    """Hide the sides of the frame except those in `keep`, and make tick labels small."""
    for side, spine in ax.spines.items():
        spine.set_visible(side in keep)
    ax.tick_params(labelsize=SMALL, length=2)


def draw_empty(ax: Axes, frame: pd.DataFrame, *notes: str) -> Axes:
    """Write notes in place of a drawing, for a frame that has nothing to draw."""
    room = size(ax)[0]
    text = "\n".join([*texts.wrap(notes[:1], room), *texts.wrap(notes[1:], room)])
    centre: dict[str, Any] = {"ha": "center", "va": "center", "transform": ax.transAxes}
    ax.text(0.5, 0.5, text, color=inks.outside(ax).text, size=SMALL, parse_math=False, **centre)
    ax.set_axis_off()
    finish(ax, frame, "")
    return ax
