"""Copies of a JSON text, made by writing other values in its marked places."""

import re
from collections.abc import Mapping

import base58

SUFFIX = 8  # digits of an id that are the number of its copy

Mark = tuple[str, str]  # the name of the group that matched, and what it matched


def encode(number: int) -> bytes:
    """Write a number as the last digits of an id."""
    return base58.b58encode_int(number).rjust(SUFFIX, b"1")


def decode(id_text: str) -> int:
    """Read the number in the last digits of an id."""
    return base58.b58decode_int(id_text[-SUFFIX:])


class Template:
    """A text with marks, which are the named groups of a pattern."""

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self._parts: list[bytes] = []
        self._marks: list[Mark] = []  # after each part but the last
        end = 0
        for match in pattern.finditer(text):
            name = match.lastgroup or ""
            self._parts.append(text[end : match.start(name)].encode())
            self._marks.append((name, match[name]))
            end = match.end(name)
        self._end = text[end:].encode()
        self.marks = set(self._marks)

    def fill(self, values: Mapping[Mark, bytes]) -> bytes:
        """Return the text with a value for each mark."""
        pieces = [b""] * (2 * len(self._parts))
        pieces[::2] = self._parts
        pieces[1::2] = [values[mark] for mark in self._marks]
        return b"".join((*pieces, self._end))
