"""Axes, colours, titles and number formats that all plots share."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit import extras
from ledgerkit.errors import InvalidRequestError, cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
INK, FAINT, PALE = "#333333", "#999999", "#DDDDDD"
LINE_STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW)
SMALL = 8.0  # points; the size of every text but the title
_MAX_TEXT = 60  # characters
_MAX_NOTE = 110  # characters
_CHARACTER_WIDTH = 0.62  # of the font size; wider than the average character
_LINE_HEIGHT = 1.25  # of the font size
_SMALLEST, _LARGEST = 1e-6, 1e15  # numbers outside are written with an exponent
_DARK = 0.45  # luminance
_LEGEND_WIDTH = 1.15  # of the axes' width


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return `ax`, or the axes of a new figure of this size in inches."""
    if ax is not None:
        return ax
    new: Axes = mpl("pyplot").subplots(figsize=(width, height), layout="constrained")[1]
    return new


def mpl(module: str) -> Any:
    """Import a module of matplotlib, such as "patches"."""
    return extras.require(f"matplotlib.{module}", "notebook", "A plot")


def check_columns(frame: pd.DataFrame, columns: Iterable[str], source: str) -> None:
    """Raise InvalidRequestError if a frame lacks columns; `source` names a verb that has them."""
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        expected = f"a frame of {source} with the columns {', '.join(missing)}"
        raise InvalidRequestError.refuse("frame", list(frame.columns), expected)


def column_values(frame: pd.DataFrame, column: str) -> list[Any]:
    """Return a column as a list of Python values, with None for missing ones."""
    return [None if _is_missing(value) else value for value in frame[column].astype(object)]


def _is_missing(value: object) -> bool:
    """Return True for None, NA, NaT and NaN."""
    return value is None or value is pd.NA or value is pd.NaT or value != value  # noqa: PLR0124 - NaN


def one_line(text: object, limit: int = _MAX_TEXT) -> str:
    """Format a text from the chain as one short line without invisible characters."""
    return cut(text, limit)


def format_number(value: float) -> str:
    """Format a number with three significant digits or its whole part, grouped by thousands."""
    if not value or not isfinite(value):
        return "0" if not value else str(value)
    if not _SMALLEST <= abs(value) < _LARGEST:
        digits, _, exponent = f"{value:.2e}".partition("e")
        return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"
    decimals = max(0, 2 - int(f"{value:e}".partition("e")[2]))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def label_x_axis(ax: Axes, label: str) -> None:
    """Label the horizontal axis, and format its numbers plainly."""
    ax.xaxis.set_major_formatter(lambda value, _: format_number(value))
    ax.set_xlabel(label, size=SMALL)


def label_rows(ax: Axes, labels: list[str]) -> None:
    """Label rows from top to bottom."""
    ax.set_yticks(range(len(labels)), labels, size=SMALL, parse_math=False)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    hide_spines(ax)
    ax.tick_params(axis="y", length=0)


def write_beside(ax: Axes, text: str, x: float, y: float, *, points: float = 4.0) -> None:
    """Write a text to the right of a point."""
    offset: dict[str, Any] = {"xytext": (points, 0), "textcoords": "offset points"}
    ax.annotate(text, (x, y), va="center", size=SMALL, **offset)


def text_capacity(ax: Axes, size: float = SMALL) -> tuple[float, float]:
    """Return how many characters fit across the axes, and how many lines fit in their height."""
    box = ax.get_window_extent()
    pixels = size * ax.figure.get_dpi() / 72
    return (
        float(box.width / (pixels * _CHARACTER_WIDTH)),
        float(box.height / (pixels * _LINE_HEIGHT)),
    )


def draw_lines(ax: Axes, lines: Sequence[Any], colour: str, width: float) -> None:
    """Draw many lines of one colour as a single collection."""
    if lines:
        collection = mpl("collections").LineCollection
        ax.add_collection(collection(lines, colors=colour, linewidths=width, zorder=2))


def draw_title(ax: Axes, text: str | None, handles: Sequence[Any] = ()) -> None:
    """Write the title, and below it the legend in as few lines as the width allows."""
    widths = [len(str(handle.get_label())) + 5 for handle in handles]
    across = int(_LEGEND_WIDTH * text_capacity(ax)[0] // max(widths, default=1))
    columns = max(1, min(len(widths), across))
    lines = -(-len(widths) // columns)
    if handles:
        _draw_legend(ax, handles, columns)
    pad = 6 + lines * SMALL * 1.6
    ax.set_title(one_line(text or "", 90), loc="left", size=SMALL + 2, pad=pad, parse_math=False)


def _draw_legend(ax: Axes, handles: Sequence[Any], columns: int) -> None:
    """Draw the legend between the title and the axes."""
    legend = ax.legend(
        handles=list(handles),
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        fontsize=SMALL,
        frameon=False,
        borderaxespad=0.2,
        borderpad=0.2,
        handlelength=1.6,
        columnspacing=1.2,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def add_notes(ax: Axes, notes: Sequence[str]) -> None:
    """Write notes below the label of the horizontal axis."""
    label = ax.get_xlabel()
    lines = [one_line(note, _MAX_NOTE) for note in notes]
    ax.set_xlabel("\n".join([label, *lines] if label else lines), fontsize=SMALL, parse_math=False)


def hide_spines(ax: Axes, *, keep: Sequence[str] = ("bottom",)) -> None:
    """Hide the sides of the frame except those in `keep`, and make tick labels small."""
    for side, spine in ax.spines.items():
        spine.set_visible(side in keep)
    ax.tick_params(labelsize=SMALL, length=2)


def draw_empty(ax: Axes, *notes: str) -> Axes:
    """Write notes in place of a drawing, for a frame that has nothing to draw."""
    text = "\n".join(one_line(note, _MAX_NOTE) for note in notes)
    centre: dict[str, Any] = {"ha": "center", "va": "center", "transform": ax.transAxes}
    ax.text(0.5, 0.5, text, color=INK, size=SMALL, parse_math=False, **centre)
    ax.set_axis_off()
    return ax


def text_colour(background: str) -> str:
    """Return black or white, whichever is readable on a background colour."""
    red, green, blue = (int(background[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return "white" if 0.3 * red + 0.59 * green + 0.11 * blue < _DARK else BLACK
