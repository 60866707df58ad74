"""Decimal texts of 128-bit integers, with or without a sign, converted by whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ledgerkit.errors import DecodeError, cut
from ledgerkit.u128 import planes
from ledgerkit.u128.planes import LIMIT, Flags, Objects, Planes, Words

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Eight digits are the eight bytes of a word, the first digit in its lowest byte, so that one
# operation on the word works on all of them.
_WORD = "<u8"
_SIZE = 8
_EIGHT = np.array([10**8], dtype=np.uint64)
_SIXTEEN = np.array([10**16], dtype=np.uint64)
_ZERO = np.zeros(1, dtype=np.uint64)

_LONGEST = 39  # digits of the largest value
_BLOCK = 8192  # rows at a time, so that their arrays stay in the processor's cache


def parse(
    texts: Sequence[str | None] | NDArray[np.object_],
    *,
    name: str = "balance",
    signed: bool = False,
) -> tuple[Planes, Flags]:
    """Parse a column of decimal texts; an error names the row, and the field by `name`."""
    listed = list(texts)
    if signed:
        negative = np.array([type(text) is str and text[:1] == "-" for text in listed], np.bool_)
        digits = [text[1:] if minus else text for text, minus in zip(listed, negative, strict=True)]
        (hi, lo), missing = parse(digits, name=name)
        return planes.with_sign((hi, lo), negative), missing
    hi, lo = np.empty((2, len(listed)), dtype=np.uint64)
    missing = np.zeros(len(listed), dtype=np.bool_)
    for begin in range(0, len(listed), _BLOCK):
        block = listed[begin : begin + _BLOCK]
        rows = slice(begin, begin + len(block))
        if None in block:
            missing[rows] = [text is None for text in block]
            block = ["0" if text is None else text for text in block]
        values: Planes | None = _parse_block(block)
        if values is None:
            ints = [_parse_text(text, row, name) for row, text in enumerate(block, begin)]
            values = planes.from_ints(ints)
        hi[rows], lo[rows] = values
    return (hi, lo), missing


def _parse_block(texts: list[str | None]) -> Planes | None:
    """Parse a block of texts at once; None if that is not possible for one of them."""
    try:
        digits = _digits(texts)
    except (TypeError, ValueError):  # not a text, not ASCII, or 256 digits or more
        return None
    if digits is None or digits.max() > 9:  # noqa: PLR2004 - the last digit
        return None
    values, over = _join_eights(_parse_eights(digits.view(_WORD).T))
    return None if over.any() else values


def _digits(texts: list[str | None]) -> NDArray[np.uint8] | None:
    """Return the digits in rows of equal width, padded with zeros; None if one is too long."""
    # bytearray is the fastest way to collect the lengths, and refuses those above 255.
    lengths = np.frombuffer(bytearray(map(len, texts)), dtype=np.uint8)  # type: ignore[arg-type]  # a missing text raises
    if lengths.min() == 0 or lengths.max() > _LONGEST:
        return None
    # With `width` zeros before each text, the last `width` characters up to its end are the
    # padded text.
    width = -(-int(lengths.max()) // _SIZE) * _SIZE
    data = ("0" * width).join(["", *texts]).encode("ascii")  # type: ignore[list-item]  # as above
    row_type = np.dtype((np.void, width))
    rows_by_start = np.ndarray(len(data) - width + 1, row_type, data, strides=(1,))
    begins = np.cumsum(lengths, dtype=np.intp) + np.arange(len(texts)) * width
    rows: NDArray[np.uint8] = rows_by_start[begins].view(np.uint8)
    return rows.reshape(len(texts), width) - np.uint8(ord("0"))


def _parse_eights(words: Words) -> Words:
    number = words.astype(np.uint64, order="C")
    for tens, bits, lanes in (
        (10, 8, 0x00FF00FF00FF00FF),
        (100, 16, 0x0000FFFF0000FFFF),
        (10000, 32, 0x00000000FFFFFFFF),
    ):
        second = number >> np.uint64(bits)
        number *= np.uint64(tens)
        number += second
        number &= np.uint64(lanes)
    return number


def _join_eights(eights: Words) -> tuple[Planes, Flags]:
    """Join the numbers of eight digits of each value; return flags for overflows too."""
    odd = len(eights) % 2
    words = list(eights[:odd]) + list(eights[odd::2] * _EIGHT + eights[odd + 1 :: 2])
    values: Planes = (np.zeros_like(words[0]), words[0])
    over = np.zeros(len(words[0]), dtype=np.bool_)
    for low_word in words[1:]:
        values, product_over = planes.multiply(values, (_ZERO, _SIXTEEN))
        values, sum_over = planes.add(values, (_ZERO, low_word))
        over |= product_over | sum_over
    return values, over


def _parse_text(text: object, row: int, name: str) -> int:
    if not (isinstance(text, str) and text.isascii() and text.isdigit()):
        raise _refuse(name, row, text, "is not a string of decimal digits")
    digits = text.lstrip("0")
    if len(digits) > _LONGEST or int(digits or "0") >= LIMIT:
        raise _refuse(name, row, text, "does not fit in u128")
    return int(digits or "0")


def _refuse(name: str, row: int, value: object, reason: str) -> DecodeError:
    return DecodeError(f"{name} {cut(repr(value))} in row {row} {reason}", path=f"{name}[{row}]")


def format_texts(values: Planes) -> Objects:
    """Format the values as decimal texts, without leading zeros."""
    ints = planes.to_ints(values)
    return np.fromiter(map(str, ints), dtype=object, count=len(ints))
