"""Decimal texts of unsigned 128-bit integers, whole columns at a time."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ledgerkit.errors import DecodeError, cut
from ledgerkit.u128 import planes
from ledgerkit.u128.planes import LIMIT, Flags, Objects, Planes, Words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# Eight digits are the eight bytes of a word, the first digit in its lowest byte, and are
# multiplied and divided side by side there.
_WORD = "<u8"
_SIZE = 8
_ZEROS = np.uint64(0x3030303030303030)  # what a text adds to its digits
_SPACES = np.uint64(0x2020202020202020)
_TO_SPACE = np.uint64(0x1010101010101010)  # what tells a digit 0 from a space
_TO_SPACE_BUT_LAST = np.uint64(0x0010101010101010)
_FOUR = np.array([10**4], dtype=np.uint64)
_EIGHT = np.array([10**8], dtype=np.uint64)
_SIXTEEN = np.array([10**16], dtype=np.uint64)
_ZERO = np.zeros(1, dtype=np.uint64)

_LONGEST = 39  # digits of the largest value
_BLOCK = 8192  # rows at a time: their arrays stay in the processor's cache


# Texts to numbers -----------------------------------------------------------------------


def parse(
    texts: Sequence[str | None] | NDArray[np.object_], *, name: str = "balance"
) -> tuple[Planes, Flags]:
    """
    Parse a column of decimal texts.

    Parameters
    ----------
    texts
        Decimal digits, with any number of zeros in front; None is missing.
    name
        The field, for the error.

    Returns
    -------
    values
        The planes of the values, 0 where missing.
    missing
        Which of them are missing.

    Raises
    ------
    DecodeError
        If a text is not ASCII digits, or above 2^128 - 1. Signs, spaces,
        underscores and empty texts are refused; the row is named.
    """
    listed = _listed(texts)
    hi, lo = np.empty((2, len(listed)), dtype=np.uint64)
    missing = np.zeros(len(listed), dtype=np.bool_)
    for begin in range(0, len(listed), _BLOCK):
        block = listed[begin : begin + _BLOCK]
        rows = slice(begin, begin + len(block))
        values = _parsed(block)
        if values is None:
            missing[rows] = [text is None for text in block]
            values = _gapped(block, begin, name)
        hi[rows], lo[rows] = values
    return (hi, lo), missing


def _listed(texts: Sequence[str | None] | NDArray[np.object_]) -> list[str | None]:
    """Give the texts as a list, the same one if they are in a list."""
    if isinstance(texts, np.ndarray):
        listed: list[str | None] = texts.tolist()
        return listed
    return texts if isinstance(texts, list) else list(texts)


def _gapped(texts: list[str | None], begin: int, name: str) -> Planes:
    """Parse a block of which some texts are missing, unusually long or to be refused."""
    values = _parsed(["0" if text is None else text for text in texts]) if None in texts else None
    if values is None:
        return planes.from_ints([_one(text, row, name) for row, text in enumerate(texts, begin)])
    return values


def _parsed(texts: list[str | None]) -> Planes | None:
    """Parse a block all at once; None if one of them needs a closer look."""
    try:
        digits = _digits(texts)
    except (TypeError, ValueError):  # one is no text, or not ASCII, or has 256 digits
        return None
    if digits is None or digits.max() > 9:  # noqa: PLR2004 - the last digit
        return None
    values, over = _joined(_eights(digits.view(_WORD).T))
    return None if over.any() else values


def _digits(texts: list[str | None]) -> NDArray[np.uint8] | None:
    """Hold the texts in rows of equal width, zeros in front; None if one has no such row."""
    # A byte for each length: the quickest way there is, and wide enough.
    lengths = np.frombuffer(bytearray(map(len, texts)), dtype=np.uint8)  # type: ignore[arg-type]  # a missing text raises
    if lengths.min() == 0 or lengths.max() > _LONGEST:
        return None
    # Zeros go before each text: the `width` characters before its end are the text and some.
    width = -(-int(lengths.max()) // _SIZE) * _SIZE
    data = ("0" * width).join(["", *texts]).encode("ascii")  # type: ignore[list-item]  # as above
    window = np.dtype((np.void, width))
    every = np.ndarray(len(data) - width + 1, window, data, strides=(1,))
    begins = np.cumsum(lengths, dtype=np.intp) + np.arange(len(texts)) * width
    rows: NDArray[np.uint8] = every[begins].view(np.uint8)
    return rows.reshape(len(texts), width) - np.uint8(ord("0"))


def _eights(words: Words) -> Words:
    """Read each word of eight digits as a number."""
    number = words.astype(np.uint64, order="C")
    for tens, bits, lanes in (
        (10, 8, 0x00FF00FF00FF00FF),
        (100, 16, 0x0000FFFF0000FFFF),
        (10000, 32, 0x00000000FFFFFFFF),
    ):
        later = number >> np.uint64(bits)
        number *= np.uint64(tens)
        number += later
        number &= np.uint64(lanes)
    return number


def _joined(eights: Words) -> tuple[Planes, Flags]:
    """Put the numbers in a column together, and tell which are too large."""
    odd = len(eights) % 2
    words = list(eights[:odd]) + list(eights[odd::2] * _EIGHT + eights[odd + 1 :: 2])
    values: Planes = (np.zeros_like(words[0]), words[0])
    over = np.zeros(len(words[0]), dtype=np.bool_)
    for word in words[1:]:
        values, too_large = planes.multiply(values, (_ZERO, _SIXTEEN))
        values, too_large_now = planes.add(values, (_ZERO, word))
        over |= too_large | too_large_now
    return values, over


def _one(text: object, row: int, name: str) -> int:
    """Parse one text, naming its row when it is refused."""
    if text is None:
        return 0
    if not (isinstance(text, str) and text.isascii() and text.isdigit()):
        raise _refusal(name, row, text, "is not a string of decimal digits")
    digits = text.lstrip("0")
    if len(digits) > _LONGEST or int(digits or "0") >= LIMIT:
        raise _refusal(name, row, text, "does not fit 128 bits unsigned")
    return int(digits or "0")


def _refusal(name: str, row: int, value: object, rule: str) -> DecodeError:
    """Say which row of which field was refused, and why."""
    shown = cut(repr(value))
    return DecodeError(f"{name} {shown} in row {row} {rule}", path=f"{name}[{row}]")


# Numbers to texts -----------------------------------------------------------------------


def write(hi: Words, lo: Words) -> Objects:
    """Write the values as decimal texts, without zeros in front."""
    texts = np.empty(len(hi), dtype=object)
    for begin in range(0, len(hi), _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        texts[rows] = _written(hi[rows], lo[rows])
    return texts


def _written(hi: Words, lo: Words) -> list[str]:
    """Write a block."""
    eights = _eights_of(hi, lo)
    # A column of spaces goes before each row, and spaces over its zeros: `split` cuts there.
    wide = np.full((len(hi), 1 + len(eights)), _SPACES, dtype=_WORD)
    blank = np.full(len(hi), _TO_SPACE)
    for column, number in enumerate(eights, 1):
        if column == len(eights):
            blank &= _TO_SPACE_BUT_LAST
        digits = _spread(number)
        before = ~digits & (digits - np.uint64(1))  # the bits before the first that is set
        wide[:, column] = (digits | _ZEROS) ^ (before & blank)
        blank *= digits == 0
    return wide.tobytes().decode("ascii").split()


def _eights_of(hi: Words, lo: Words) -> list[Words]:
    """Cut values into numbers of eight digits, the first digits first."""
    values: Planes = (hi, lo)
    eights: list[Words] = []
    while not eights or values[0].any() or values[1].any():
        values, (_, eight) = planes.divide(values, (_ZERO, _EIGHT))
        eights.insert(0, eight)
    return eights


def _spread(number: Words) -> Words:
    """Spread numbers of eight digits over the bytes of a word, the first digit lowest."""
    first = number // _FOUR
    second = (number - first * _FOUR).astype(np.intp)
    return _fours().take(first.astype(np.intp)) | _fours().take(second) << np.uint64(32)


@lru_cache(maxsize=1)
def _fours() -> Words:
    """List the digits of all numbers of four digits, a byte each, the first digit lowest."""
    numbers = np.arange(10**4, dtype=np.uint64)
    digits = np.stack([numbers // np.uint64(10**i) % np.uint64(10) for i in (3, 2, 1, 0)], axis=1)
    return digits.astype(np.uint8).view("<u4").ravel().astype(np.uint64)
