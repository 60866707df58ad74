"""Texts of plots: one line each, measured, and shortened only where there is no room."""

from __future__ import annotations

import textwrap
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import isfinite

from ledgerkit import extras
from ledgerkit.errors import cut

SMALL = 8.0  # points; the size of every text but the title
_LONGEST, _SHORTEST = 260, 6  # characters
_MAX_NAMES = 4
_LONG_AMOUNT = 1e10
_SMALLEST, _LARGEST = 1e-6, 1e15  # numbers outside are written with an exponent


def one_line(text: object, limit: int = _LONGEST) -> str:
    """Format a text from the chain as one line without invisible characters."""
    return cut(text, limit)


def shorten(text: object, limit: int) -> str:
    """Format a text from the chain as one line, shortened in the middle, as ids are."""
    line = one_line(text)
    if len(line) <= limit:
        return line
    n_end = (limit - 1) // 2
    return f"{line[: limit - 1 - n_end]}…{line[len(line) - n_end :]}"


def fit(
    format_text: Callable[[int], str], room: float, *, size: float = SMALL, is_bold: bool = False
) -> str:
    """
    Return the longest text that fits into `room` points.

    `format_text` formats the text with its names shortened to a number of characters.
    """
    text = format_text(_LONGEST)
    if width(text, size, is_bold=is_bold) <= room:
        return text
    limits = range(_SHORTEST, _LONGEST)
    n_fitting = bisect_right(
        limits, room, key=lambda limit: width(format_text(limit), size, is_bold=is_bold)
    )
    return format_text(limits[max(0, n_fitting - 1)])


def wrap(notes: Iterable[str], room: float) -> list[str]:
    """Write notes in as few lines of at most `room` points as possible."""
    lines: list[str] = []
    for note in notes:
        joined = f"{lines[-1]} · {note}" if lines else note
        if lines and width(joined) <= room:
            lines[-1] = joined
        else:
            limit = max(_SHORTEST, int(len(note) * min(1.0, room / max(1.0, width(note)))))
            lines += textwrap.wrap(note, limit)
    return lines


def width(text: str, size: float = SMALL, *, is_bold: bool = False) -> float:
    """Measure a line of text in points, without drawing it."""
    return size * sum(_advance(character, is_bold) for character in text)


@lru_cache(maxsize=4096)
def _advance(character: str, is_bold: bool) -> float:  # noqa: FBT001 - lru_cache needs no keyword
    """Return the width of a character, as a share of the font size."""
    fonts = extras.require("matplotlib.font_manager", "notebook", "A plot")
    flags = extras.require("matplotlib.ft2font", "notebook", "A plot").LoadFlags
    properties = fonts.FontProperties(weight="bold" if is_bold else "normal")
    font = fonts.get_font(fonts.findfont(properties))
    if not font.get_char_index(ord(character)):
        return 1.0  # drawn with another font, or as a box
    font.set_size(100, 72)
    glyph = font.load_char(ord(character), flags=flags.NO_HINTING)
    return float(glyph.linearHoriAdvance) / 65536 / 100


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


def format_amount(value: float) -> str:
    """Format an amount with all digits that a tick can have; large ones have fewer."""
    return f"{value:,.10g}" if abs(value) < _LONG_AMOUNT else format_number(value)


def count_note(label: str, count: int) -> list[str]:
    return [f"{label}: {count:,}"] if count > 0 else []


def percent(part: int, whole: int) -> str:
    """Format a share; less than the whole is never rounded to 100%."""
    text = f"{100 * part / whole:.0f}%"
    return "over 99%" if part < whole and text == "100%" else text


def join_names(names: Sequence[object], limit: int) -> str:
    """Join the first names, each shortened to `limit` characters, and count the others."""
    listed = ", ".join(shorten(name, limit) for name in names[:_MAX_NAMES])
    n_others = len(names) - _MAX_NAMES
    return f"{listed} and {n_others:,} more" if n_others > 0 else listed
