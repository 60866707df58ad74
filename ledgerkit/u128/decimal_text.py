"""Decimal texts of 128-bit integers, with or without a sign, converted by whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
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
_ZEROS = np.uint64(0x3030303030303030)  # the characters 0: a digit plus this is its character
_SPACES = np.uint64(0x2020202020202020)
_TO_SPACE = np.uint64(0x1010101010101010)  # turns the character 0 into a space by xor
_TO_SPACE_BUT_LAST = np.uint64(0x0010101010101010)
_FOUR = np.array([10**4], dtype=np.uint64)
_EIGHT = np.array([10**8], dtype=np.uint64)
_SIXTEEN = np.array([10**16], dtype=np.uint64)
_ZERO = np.zeros(1, dtype=np.uint64)

_LONGEST = 39  # digits of the largest value
_BLOCK = 8192  # rows at a time, so that their arrays stay in the processor's cache


# Texts to numbers -----------------------------------------------------------------------


def parse(
    texts: Sequence[str | None] | NDArray[np.object_],
    *,
    name: str = "balance",
    signed: bool = False,
) -> tuple[Planes, Flags]:
    """Parse a column of decimal texts; an error names the row, and the field by `name`."""
    listed = texts if isinstance(texts, list) else np.asarray(texts, dtype=object).tolist()
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
        values: Planes | None = _parse_block(block)
        if values is None:
            missing[rows] = [text is None for text in block]
            values = _parse_irregular(block, begin, name)
        hi[rows], lo[rows] = values
    return (hi, lo), missing


def _parse_irregular(texts: list[str | None], begin: int, name: str) -> Planes:
    if None in texts:
        values = _parse_block(["0" if text is None else text for text in texts])
        if values is not None:
            return values
    return planes.from_ints([_parse_text(text, row, name) for row, text in enumerate(texts, begin)])


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
    if text is None:
        return 0
    if not (isinstance(text, str) and text.isascii() and text.isdigit()):
        raise _refuse(name, row, text, "is not a string of decimal digits")
    digits = text.lstrip("0")
    if len(digits) > _LONGEST or int(digits or "0") >= LIMIT:
        raise _refuse(name, row, text, "does not fit in u128")
    return int(digits or "0")


def _refuse(name: str, row: int, value: object, reason: str) -> DecodeError:
    return DecodeError(f"{name} {cut(repr(value))} in row {row} {reason}", path=f"{name}[{row}]")


# Numbers to texts -----------------------------------------------------------------------


def format_texts(values: Planes) -> Objects:
    """Format the values as decimal texts, without leading zeros."""
    hi, lo = planes.magnitudes(values)
    texts = np.empty(len(hi), dtype=object)
    for begin in range(0, len(hi), _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        texts[rows] = _format_block(hi[rows], lo[rows])
    negative = planes.flags(values)
    if negative.any():
        texts[negative] = "-" + texts[negative]
    return texts


def _format_block(hi: Words, lo: Words) -> list[str]:
    eights = _split_eights(hi, lo)
    # Spaces precede each row and replace its leading zeros, so that `split` returns the texts.
    characters = np.full((len(hi), 1 + len(eights)), _SPACES, dtype=_WORD)
    blank = np.full(len(hi), _TO_SPACE)
    for column, number in enumerate(eights, 1):
        if column == len(eights):
            blank &= _TO_SPACE_BUT_LAST
        digits = _spread(number)
        leading = ~digits & (digits - np.uint64(1))  # the bits below the lowest one that is set
        characters[:, column] = (digits | _ZEROS) ^ (leading & blank)
        blank *= digits == 0
    return characters.tobytes().decode("ascii").split()


def _split_eights(hi: Words, lo: Words) -> list[Words]:
    values: Planes = (hi, lo)
    eights: list[Words] = []
    while not eights or values[0].any() or values[1].any():
        values, (_, eight) = planes.divide(values, (_ZERO, _EIGHT))
        eights.insert(0, eight)
    return eights


def _spread(number: Words) -> Words:
    """Spread the digits of numbers over the bytes of words, the first digit in the lowest byte."""
    first = number // _FOUR
    second = (number - first * _FOUR).astype(np.intp)
    return _four_digit_table().take(first.astype(np.intp)) | _four_digit_table().take(
        second
    ) << np.uint64(32)


@lru_cache(maxsize=1)
def _four_digit_table() -> Words:
    """Return the digits of 0000 to 9999, a byte per digit, the first digit lowest."""
    numbers = np.arange(10**4, dtype=np.uint64)
    digits = np.stack([numbers // np.uint64(10**i) % np.uint64(10) for i in (3, 2, 1, 0)], axis=1)
    return digits.astype(np.uint8).view("<u4").ravel().astype(np.uint64)
