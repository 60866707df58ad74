r"""
Text as it is shown: characters that are invisible or act on a terminal become escapes.

Anyone can choose a name or write a log. A terminal executes control characters such as ESC, a
direction override reorders the line around it, and a zero-width character cannot be seen. Where
ledgerkit displays a text, it writes such a character as Python does: U+001B as ``\x1b``, U+202E as
``\u202e``. Frames and attributes have the exact text.
"""

from __future__ import annotations

import re
from html import escape
from unicodedata import bidirectional, category, combining

_NOT_ASCII = re.compile(r"[^ -~]")
_MAX_MARKS = 4  # combining marks on one letter; no language uses more
_VIRAMA = 9  # the combining class
_NON_JOINER, _JOINER, _KEYCAP = "\u200c", "\u200d", "\u20e3"
_STYLES = "\ufe0e\ufe0f"  # variation selectors: show the symbol before as text or as an emoji
# The letters and marks among Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties.txt
_INVISIBLE = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def escape_invisible(text: str, *, keep: str = "", as_json: bool = False) -> str:
    """
    Return a text with every invisible or unprintable character escaped.

    These are control characters, direction overrides, zero-width and unassigned characters,
    lone surrogates, and combining marks after the fourth on a letter. Joiners that emoji and
    some scripts need are left. `keep` are characters to leave, such as a line break; with
    `as_json` the text is JSON, and stays the same document.
    """
    if text.isascii():
        others = text
        for char in keep:
            others = others.replace(char, "")
        if others.isprintable():
            return text
    write = _json_escape if as_json else _python_escape

    def replace(match: re.Match[str]) -> str:
        char = match[0]
        return char if char in keep or _is_visible(text, match.start()) else write(char)

    return _NOT_ASCII.sub(replace, text)


def html_text(text: str, *, keep: str = "") -> str:
    """Return a text as HTML, with markup and invisible characters escaped."""
    return escape(escape_invisible(text, keep=keep))


def _python_escape(char: str) -> str:
    r"""Write a character as in a Python string, such as ``\u202e``."""
    return char.encode("unicode_escape").decode("ascii")


def _json_escape(char: str) -> str:
    """Write a character as in a JSON string: one or two UTF-16 code units."""
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def _is_visible(text: str, index: int) -> bool:
    """Return True if the character at an index is visible, and does not act on its neighbours."""
    char, before, after = text[index], text[index - 1 : index], text[index + 1 : index + 2]
    if char in _STYLES:
        is_keycap = before in set("0123456789#*") and after == _KEYCAP
        return is_keycap or _is_symbol(before)
    if char == _JOINER:
        is_emoji = (_is_symbol(before) or before in set(_STYLES)) and _is_symbol(after)
        return is_emoji or _is_virama(before)
    if char == _NON_JOINER:  # as RFC 5892, appendix A, allows it in names, for Arabic letters only
        return _is_virama(before) or (_is_arabic(before) and _is_arabic(after))
    if _INVISIBLE.match(char):
        return False
    if _is_mark(char):
        return index > 0 and not (
            index > _MAX_MARKS and all(map(_is_mark, text[index - _MAX_MARKS : index]))
        )
    return char.isprintable() or category(char) == "Zs"


def _is_symbol(char: str) -> bool:
    return bool(char) and not char.isascii() and category(char)[0] in "SP"


def _is_virama(char: str) -> bool:
    """Return True for the signs that join the consonants of Indic scripts."""
    return bool(char) and combining(char) == _VIRAMA


def _is_arabic(char: str) -> bool:
    return bool(char) and bidirectional(char) == "AL"


def _is_mark(char: str) -> bool:
    return category(char).startswith("M")
