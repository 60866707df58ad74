"""Base58 of many hashes at once: texts to rows of 32 bytes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from ledgerkit.errors import DecodeError, cut

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes: TypeAlias = NDArray[np.uint8]
    Floats: TypeAlias = NDArray[np.float64]

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
SIZE = 32  # bytes of a hash
_SHORTEST, _LONGEST = 32, 44  # characters of a hash

# A matrix product in float64 converts numbers from base 58^2 to base 2^32. It is exact while every
# sum stays below 2^53, in any order of addition: each of the 22 terms is below 58^2 * 2^32.
_BLOCK = 2048  # rows at a time, so that their arrays stay in the processor's cache
_PAIR = 58**2
_ONE = ord("1")
_GAP = "\n"
_QUOTED = 60  # characters of an invalid text in an error


@lru_cache(maxsize=1)
def _words_of_pairs() -> Floats:
    """Return the words of a pair of characters by its position: shape (words, pairs)."""
    powers = [_PAIR**i for i in reversed(range(_LONGEST // 2))]
    shifts = [32 * i for i in reversed(range(SIZE // 4))]
    words = [[power >> shift & (2**32 - 1) for power in powers] for shift in shifts]
    return np.array(words, dtype=np.float64)


@lru_cache(maxsize=1)
def _values() -> Floats:
    """Return the value of each pair of bytes, NaN if not base58; a gap is 0."""
    digits = np.full(256, np.nan)
    digits[list(ALPHABET.encode())] = np.arange(58)
    digits[ord(_GAP)] = 0
    pairs: Floats = digits[:, np.newaxis] * 58 + digits
    return pairs.T.reshape(-1)  # the first character is the low byte of the two


def decode(texts: Sequence[str], *, name: str = "id") -> Bytes:
    """
    Decode hashes to an array of bytes, of shape (n, 32).

    Raises `DecodeError` with row and `name` if a text is missing or not 32 bytes in base58.
    """
    values = np.empty((len(texts), SIZE), dtype=np.uint8)
    for begin in range(0, len(texts), _BLOCK):
        block = texts[begin : begin + _BLOCK]
        rows = _decode_block(block)
        if rows is None:
            raise _text_error(block, begin, name)
        values[begin : begin + _BLOCK] = rows
    return values


def _decode_block(texts: Sequence[str]) -> Bytes | None:
    """Decode a block of texts; None if a text is invalid."""
    try:
        lengths = np.fromiter(map(len, texts), dtype=np.intp, count=len(texts))
        windows = _right_align(texts, lengths)
    except (TypeError, UnicodeEncodeError):  # a value is not a text, or not ASCII
        return None
    rows = None if windows is None else _base_256(windows)
    if windows is None or rows is None:
        return None
    first = np.take_along_axis(windows, _LONGEST - lengths[:, np.newaxis], axis=1)[:, 0]
    # Each leading "1" must be a leading zero byte, and vice versa.
    (padded,) = np.nonzero((rows[:, 0] == 0) | (first == _ONE))
    ones = _count_leading((windows[padded] == _ONE) | (windows[padded] == ord(_GAP)))
    zeros = _count_leading(rows[padded] == 0)
    return rows if np.array_equal(ones - (_LONGEST - lengths[padded]), zeros) else None


def _right_align(texts: Sequence[str], lengths: NDArray[np.intp]) -> Bytes | None:
    """Right-align the texts in rows as wide as the longest possible, with gaps in front."""
    if lengths.min() < _SHORTEST or lengths.max() > _LONGEST:
        return None
    # A gap is long enough for the shortest text: the last `_LONGEST` characters up to the end of a
    # text are the text and the end of the gap before it.
    gap = _GAP * (_LONGEST - _SHORTEST)
    data = (gap + gap.join(texts)).encode("ascii")
    if np.count_nonzero(np.frombuffer(data, np.uint8) == ord(_GAP)) != len(gap) * len(texts):
        return None
    begins = np.cumsum(lengths + len(gap)) - _LONGEST
    window = np.dtype((np.void, _LONGEST))
    every = np.ndarray(len(data) - _LONGEST + 1, window, data, strides=(1,))
    return cast("Bytes", every[begins].view(np.uint8).reshape(len(texts), _LONGEST))


def _base_256(windows: Bytes) -> Bytes | None:
    """Convert rows to bytes; None if a row has wrong characters or more than 32 bytes."""
    values = _values()[windows.view("<u2")]
    sums = _words_of_pairs() @ values.T
    if np.isnan(sums[0]).any():
        return None
    words = sums.astype(np.uint64)
    for i in range(len(words) - 1, 0, -1):
        words[i - 1] += words[i] >> np.uint64(32)
    if (words[0] >> np.uint64(32)).any():
        return None
    return cast("Bytes", words.T.astype(">u4", order="C").view(np.uint8))


def _count_leading(mask: NDArray[np.bool_]) -> NDArray[np.intp]:
    counts: NDArray[np.intp] = np.logical_and.accumulate(mask, axis=1).sum(axis=1)
    return counts


def _text_error(texts: Sequence[str], begin: int, name: str) -> DecodeError:
    problems = ((row, text, _describe_problem(text)) for row, text in enumerate(texts, begin))
    row, text, problem = next(item for item in problems if item[2])
    sentence = f"{name} {cut(repr(text), _QUOTED)} in row {row} {problem}"
    return DecodeError(sentence, path=f"{name}[{row}]")


def _describe_problem(text: object) -> str | None:
    """Describe the problem with a text; None if it is valid."""
    if not isinstance(text, str):
        return "is not a text"
    if set(text) - set(ALPHABET):
        return "is not base58"
    if not _SHORTEST <= len(text) <= _LONGEST:
        lengths = f"{_SHORTEST} to {_LONGEST} characters"
        return f"has {len(text)} characters; {SIZE} bytes are {lengths}"
    number = 0
    for character in text:
        number = number * 58 + ALPHABET.index(character)
    n_bytes = len(text) - len(text.lstrip("1")) + -(-number.bit_length() // 8)
    return None if n_bytes == SIZE else f"is {n_bytes} bytes, not {SIZE}"
