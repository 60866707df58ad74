"""What every drawing shares: where it goes, its colours, texts and numbers."""

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
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW)
SMALL = 8.0  # points; the size of every text but the title
_LONGEST = 60
_WIDE = 0.62  # of the font size: how wide a letter is, on the safe side
_HIGH = 1.25  # of the font size: a line
_LEAST, _GREATEST = 1e-6, 1e15  # beyond, a number is read more easily with an exponent
_DARK = 0.45
_LEGEND = 1.15  # a legend may stand out over the axes a little


def axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Take the given axes, or make a figure of this size in inches, which notebooks show."""
    if ax is not None:
        return ax
    _, made = library("pyplot").subplots(figsize=(width, height), layout="constrained")
    drawn: Axes = made
    return drawn


def library(module: str) -> Any:
    """Import a module of matplotlib."""
    return extras.require(f"matplotlib.{module}", "notebook", "A plot")


def require(frame: pd.DataFrame, columns: Iterable[str], source: str) -> None:
    """Refuse a frame that lacks columns, and say what makes a right one."""
    absent = [name for name in columns if name not in frame.columns]
    if absent:
        rule = f"a frame of {source}, with its columns {', '.join(absent)}"
        raise InvalidRequestError.refuse("frame", list(frame.columns), rule)


def values(frame: pd.DataFrame, column: str) -> list[Any]:
    """Give a column as Python values, None where one is missing."""
    return [None if _is_missing(value) else value for value in frame[column].astype(object)]


def _is_missing(value: object) -> bool:
    """Tell what stands for no value."""
    return value is None or value is pd.NA or value is pd.NaT or value != value  # noqa: PLR0124 - NaN


def shown(text: object, limit: int = _LONGEST) -> str:
    """Make a text of the chain fit for drawing: one short line of visible characters."""
    line = cut(text, limit)
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in line)


def number(value: float) -> str:
    """Write a number with three digits or all before the point, grouped by thousands."""
    if not value or not isfinite(value):
        return "0" if not value else str(value)
    if not _LEAST <= abs(value) < _GREATEST:
        digits, _, exponent = f"{value:.2e}".partition("e")
        return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"
    decimals = max(0, 2 - int(f"{value:e}".partition("e")[2]))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(ax: Axes, words: str) -> None:
    """Count along the bottom in plain numbers, and say what is counted."""
    ax.xaxis.set_major_formatter(lambda value, _: number(value))
    ax.set_xlabel(words, size=SMALL)


def human(units: int, decimals: int) -> float:
    """Turn an exact amount into tokens, rounded once."""
    return float(units / 10**decimals)


def letters(ax: Axes, size: float = SMALL) -> tuple[float, float]:
    """Tell how many letters fit across the axes, and how many lines down."""
    box = ax.get_window_extent()
    point = ax.figure.get_dpi() / 72
    return float(box.width / (size * _WIDE * point)), float(box.height / (size * _HIGH * point))


def header(ax: Axes, text: str | None, handles: Sequence[Any] = ()) -> None:
    """Write the title, and below it the legend in as few lines as the width allows."""
    told = [len(str(handle.get_label())) + 5 for handle in handles]
    columns = max(1, min(len(told), int(_LEGEND * letters(ax)[0] // max(told, default=1))))
    lines = -(-len(told) // columns)
    if told:
        _legend(ax, handles, columns)
    pad = 6 + lines * SMALL * 1.6
    ax.set_title(shown(text or "", 90), loc="left", size=SMALL + 2, pad=pad, parse_math=False)


def _legend(ax: Axes, handles: Sequence[Any], columns: int) -> None:
    """Put the legend between the title and the axes, where nothing is drawn."""
    drawn = ax.legend(
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
    for text in drawn.get_texts():
        text.set_parse_math(False)


def note(ax: Axes, sentences: Sequence[str]) -> None:
    """Write below the horizontal axis what is not drawn, under the axis' own words."""
    axis = ax.get_xlabel()
    lines = [shown(sentence, 110) for sentence in sentences]
    ax.set_xlabel("\n".join([axis, *lines] if axis else lines), fontsize=SMALL, parse_math=False)


def bare(ax: Axes, *, keep: Sequence[str] = ("bottom",)) -> None:
    """Leave only the named sides of the frame, and small figures on the axes."""
    for side, spine in ax.spines.items():
        spine.set_visible(side in keep)
    ax.tick_params(labelsize=SMALL, length=2)


def empty(ax: Axes, *sentences: str) -> Axes:
    """Say that there is nothing to draw, and what is not drawn."""
    told = "\n".join(shown(sentence, 110) for sentence in sentences)
    where: dict[str, Any] = {"ha": "center", "va": "center", "transform": ax.transAxes}
    ax.text(0.5, 0.5, told, color=INK, size=SMALL, parse_math=False, **where)
    ax.set_axis_off()
    return ax


def contrast(colour: str) -> str:
    """Choose black or white letters for a ground of this colour."""
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return "white" if 0.3 * red + 0.59 * green + 0.11 * blue < _DARK else BLACK
