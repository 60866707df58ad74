"""Base58 for columns of hashes, keys and signatures: rows of bytes to texts and back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from ledgerkit.errors import DecodeError, InvalidRequestError, cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    Bytes: TypeAlias = NDArray[np.uint8]
    Floats: TypeAlias = NDArray[np.float64]

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

# One matrix product in float64 converts numbers to another base. It is exact while every sum
# stays below 2^53, in any order of addition: a term is below 2^16 * 58^4 when encoding and
# 58^2 * 2^32 when decoding, so 600 terms fit. Only texts that are too large exceed that.
_SIZES = range(1, 257)
_BLOCK = 2048  # rows at a time, so that their arrays stay in the processor's cache
_PAIR = 58**2
_FOUR = 58**4
_WORD = 2**32
_ONE = ord("1")
_GAP = "\n"
_QUOTED = 60  # characters of a bad text in an error


@dataclass(frozen=True, eq=False)
class _Plan:
    size: int
    width: int  # characters of the longest text, rounded up to fours
    to_fours: Floats  # (fours of characters, 16-bit words)
    to_words: Floats  # (32-bit words, pairs of characters)


@lru_cache(maxsize=8)
def _plan(size: int) -> _Plan:
    if size not in _SIZES:
        raise InvalidRequestError.refuse("size", size, "a size of 1 to 256 bytes")
    fours = 1
    while _FOUR**fours < 256**size:
        fours += 1
    shorts, words = -(-size // 2), -(-size // 4)
    to_fours = [_digits(2 ** (16 * i), _FOUR, fours) for i in reversed(range(shorts))]
    to_words = [_digits(_PAIR**i, _WORD, words) for i in reversed(range(2 * fours))]
    return _Plan(size, 4 * fours, np.array(to_fours).T, np.array(to_words).T)


def _digits(number: int, base: int, count: int) -> list[float]:
    """Convert a number to `count` digits of a base; the first digit has no upper limit."""
    digits = []
    for _ in range(count - 1):
        number, digit = divmod(number, base)
        digits.append(float(digit))
    return [float(number), *reversed(digits)]


@lru_cache(maxsize=1)
def _pairs() -> NDArray[np.uint16]:
    """Return all pairs of characters in order, each as the two bytes of its text."""
    text = "".join(a + b for a in ALPHABET for b in ALPHABET)
    return np.frombuffer(text.encode(), dtype="<u2").astype(np.uint16)


@lru_cache(maxsize=1)
def _values() -> Floats:
    """Return the value of each pair of bytes, NaN if not base58; a gap has the value 0."""
    digits = np.full(256, np.nan)
    digits[list(ALPHABET.encode())] = np.arange(58)
    digits[ord(_GAP)] = 0
    pairs: Floats = digits[:, np.newaxis] * 58 + digits
    return pairs.T.reshape(-1)  # the first character is the low byte of the two


def _count_leading(mask: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Count the true entries at the start of each row."""
    counts: NDArray[np.intp] = np.logical_and.accumulate(mask, axis=1).sum(axis=1)
    return counts


# Bytes to texts -------------------------------------------------------------------------


def encode(
    values: Bytes | Sequence[bytes | bytearray], *, size: int = 32, name: str = "id"
) -> list[str]:
    """
    Encode a column of values of one size as base58.

    Parameters
    ----------
    values
        Array of shape (n, `size`) and dtype uint8, or n bytes objects.
    size
        Bytes of each value: 32 for hashes and ed25519 keys, 64 for signatures; at most 256.
    name
        The field, for the error.

    Returns
    -------
    texts
        n texts; each leading zero byte is a leading "1".

    Raises
    ------
    DecodeError
        If a bytes object has another length; the message has its row.
    InvalidRequestError
        If an array has another shape or dtype.
    """
    plan = _plan(size)
    rows = _to_rows(values, size, name)
    texts: list[str] = []
    for begin in range(0, len(rows), _BLOCK):
        texts += _encode_block(rows[begin : begin + _BLOCK], plan)
    return texts


def _to_rows(values: Bytes | Sequence[bytes | bytearray], size: int, name: str) -> Bytes:
    if not isinstance(values, np.ndarray):
        return _join(values, size, name)
    if values.dtype == object and values.ndim == 1:
        return _join(values.tolist(), size, name)
    if values.dtype != np.uint8 or values.ndim != 2 or values.shape[1] != size:  # noqa: PLR2004 - rows and columns
        raise InvalidRequestError(
            f"{name} has shape {values.shape} and dtype {values.dtype}: expected shape "
            f"(n, {size}) and dtype uint8",
            field=name,
        )
    return np.ascontiguousarray(values)


def _join(values: Iterable[bytes | bytearray], size: int, name: str) -> Bytes:
    """Join bytes objects; raise for the first of another length."""
    listed = list(values)
    try:
        data = b"".join(listed)
        is_valid = set(map(len, listed)) <= {size} and len(data) == size * len(listed)
    except TypeError:  # one is not bytes
        data, is_valid = b"", False
    if not is_valid:
        raise _size_error(listed, size, name)
    return np.frombuffer(data, dtype=np.uint8).reshape(len(listed), size)


def _size_error(values: list[bytes | bytearray], size: int, name: str) -> DecodeError:
    for row, value in enumerate(values):
        n_bytes = len(value) if isinstance(value, bytes | bytearray) else -1
        if n_bytes != size:
            size_text = f"({n_bytes} bytes)" if n_bytes >= 0 else f"(a {type(value).__name__})"
            return _row_error(name, row, size_text, f"is not a value of {size} bytes")
    raise AssertionError("all values have the right size")  # pragma: no cover


def _encode_block(rows: Bytes, plan: _Plan) -> list[str]:
    pairs = _pairs()
    fours = _base_58_4(rows, plan)
    high = fours // _PAIR
    # Each row starts with a space, and its padding becomes spaces, so that `split` separates rows.
    wide = np.full((len(rows), 1 + plan.width // 2), 0x2020, dtype="<u2")
    wide[:, 1::2] = pairs[high].T
    wide[:, 2::2] = pairs[fours - high * _PAIR].T
    _clear_padding(wide.view(np.uint8)[:, 2:], rows)
    return wide.tobytes().decode("ascii").split()


def _base_58_4(rows: Bytes, plan: _Plan) -> NDArray[np.uint32]:
    """Convert each row to a number in base 58^4, a column of the result each."""
    if plan.size % 2:
        rows = np.pad(rows, ((0, 0), (1, 0)))
    sums = (plan.to_fours @ rows.view(">u2").astype(np.float64).T).astype(np.uint64)
    for i in range(len(sums) - 1, 0, -1):
        carry = sums[i] // _FOUR
        sums[i] -= carry * _FOUR
        sums[i - 1] += carry
    return sums.astype(np.uint32)


def _clear_padding(texts: Bytes, rows: Bytes) -> None:
    """Replace leading digits "1" by spaces, except one for each leading zero byte."""
    is_padding = np.ones(len(texts), dtype=np.bool_)
    for column in texts.T:
        is_padding &= column == _ONE
        if not is_padding.any():
            break
        column[is_padding] = ord(" ")
    (zero,) = np.nonzero(rows[:, 0] == 0)
    if zero.size:
        ends = _count_leading(texts[zero] == ord(" "))[:, np.newaxis]
        begins = ends - _count_leading(rows[zero] == 0)[:, np.newaxis]
        at = np.arange(texts.shape[1])
        texts[zero] = np.where((begins <= at) & (at < ends), _ONE, texts[zero])


# Texts to bytes -------------------------------------------------------------------------


def decode(texts: Iterable[str], *, size: int = 32, name: str = "id") -> Bytes:
    """
    Decode a column of base58 texts to values of one size.

    Parameters
    ----------
    texts
        List, array or Series of n texts.
    size
        Bytes of each value: 32 for hashes and ed25519 keys, 64 for signatures; at most 256.
    name
        The field, for the error.

    Returns
    -------
    values
        Array of shape (n, `size`), dtype uint8.

    Raises
    ------
    DecodeError
        If a text is missing, has characters other than base58, or does not decode to `size`
        bytes; the message has the first such row.
    """
    plan = _plan(size)
    listed: list[str] = texts.tolist() if hasattr(texts, "tolist") else list(texts)
    values = np.empty((len(listed), size), dtype=np.uint8)
    for begin in range(0, len(listed), _BLOCK):
        block = listed[begin : begin + _BLOCK]
        rows = _decode_block(block, plan)
        if rows is None:
            raise _text_error(block, begin, plan, name)
        values[begin : begin + _BLOCK] = rows
    return values


def _decode_block(texts: list[str], plan: _Plan) -> Bytes | None:
    """Decode one block of texts; None if one is not valid."""
    try:
        lengths = np.fromiter(map(len, texts), dtype=np.intp, count=len(texts))
        windows = _right_aligned(texts, lengths, plan)
    except (TypeError, UnicodeEncodeError):  # one is not a text, or not ASCII
        return None
    rows = None if windows is None else _base_256(windows, plan)
    if windows is None or rows is None:
        return None
    first = np.take_along_axis(windows, plan.width - lengths[:, np.newaxis], axis=1)[:, 0]
    # Each leading "1" must be a leading zero byte, and vice versa.
    (at,) = np.nonzero((rows[:, 0] == 0) | (first == _ONE))
    ones = _count_leading((windows[at] == _ONE) | (windows[at] == ord(_GAP)))
    zeros = _count_leading(rows[at] == 0)
    return rows if np.array_equal(ones - (plan.width - lengths[at]), zeros) else None


def _right_aligned(texts: list[str], lengths: NDArray[np.intp], plan: _Plan) -> Bytes | None:
    """Right-align the texts in rows as wide as the longest possible, with gaps in front."""
    if lengths.min() < plan.size or lengths.max() > plan.width:
        return None
    # Each gap is long enough for the shortest text: the last `width` characters up to the end of
    # a text are the text and the end of the gap before it.
    gap = _GAP * (plan.width - plan.size)
    data = (gap + gap.join(texts)).encode("ascii")
    if np.count_nonzero(np.frombuffer(data, np.uint8) == ord(_GAP)) != len(gap) * len(texts):
        return None
    begins = np.cumsum(lengths + len(gap)) - plan.width
    window = np.dtype((np.void, plan.width))
    every = np.ndarray(len(data) - plan.width + 1, window, data, strides=(1,))
    return cast("Bytes", every[begins].view(np.uint8).reshape(len(texts), plan.width))


def _base_256(windows: Bytes, plan: _Plan) -> Bytes | None:
    """Convert each row to bytes; None if one has wrong characters or more than `size` bytes."""
    values = _values()[windows.view("<u2")]
    sums = plan.to_words @ values.T
    if np.isnan(sums[0]).any():
        return None
    words = sums.astype(np.uint64)
    for i in range(len(words) - 1, 0, -1):
        words[i - 1] += words[i] >> np.uint64(32)
    n_leading = 4 * len(words) - plan.size
    if (words[0] >> np.uint64(32 - 8 * n_leading)).any():
        return None
    rows: Bytes = words.T.astype(">u4", order="C").view(np.uint8)
    return rows[:, n_leading:]


# Errors ---------------------------------------------------------------------------------


def _text_error(texts: list[str], begin: int, plan: _Plan, name: str) -> DecodeError:
    """Build the error for the first text of a block that is not valid."""
    for row, text in enumerate(texts, begin):
        if problem := _problem(text, plan):
            return _row_error(name, row, cut(repr(text), _QUOTED), problem)
    raise AssertionError("all texts of the block are valid")  # pragma: no cover


def _problem(text: object, plan: _Plan) -> str | None:
    """Describe what is wrong with one text; None if it is valid."""
    if not isinstance(text, str):
        return "is not a text"
    if set(text) - set(ALPHABET):
        return "is not base58"
    if not plan.size <= len(text) <= plan.width:
        return f"has {len(text)} characters; {plan.size} bytes are {_lengths(plan)} characters"
    number = 0
    for character in text:
        number = number * 58 + ALPHABET.index(character)
    n_bytes = len(text) - len(text.lstrip("1")) + -(-number.bit_length() // 8)
    return None if n_bytes == plan.size else f"is {n_bytes} bytes, not {plan.size}"


def _lengths(plan: _Plan) -> str:
    """Return the range of characters that a value may have."""
    most = 0
    while 58**most < 256**plan.size:
        most += 1
    return f"{plan.size} to {most}"


def _row_error(name: str, row: int, value: str, problem: str) -> DecodeError:
    return DecodeError(f"{name} {value} in row {row} {problem}", path=f"{name}[{row}]")
