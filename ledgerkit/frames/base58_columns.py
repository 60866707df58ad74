"""Base58 for whole columns of hashes, keys and signatures: rows of bytes to texts and back."""

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

# A number changes its base by one matrix product in float64. That is exact while every sum
# stays below 2^53, in any order of adding: 2^16 * 58^4 per term when encoding, 58^2 * 2^32
# when decoding, so for at most 600 terms. Only numbers too large for their size go beyond.
_SIZES = range(1, 257)
_BLOCK = 2048  # rows at a time: their arrays stay in the processor's cache
_PAIR = 58**2
_FOUR = 58**4
_WORD = 2**32
_ONE = ord("1")
_GAP = "\n"
_SHOWN = 60


@dataclass(frozen=True, eq=False)
class _Plan:
    """What is the same for all values of one size."""

    size: int
    width: int  # characters of the longest text, rounded up to fours
    to_fours: Floats  # (fours of characters, 16-bit words)
    to_words: Floats  # (32-bit words, pairs of characters)


@lru_cache(maxsize=8)
def _plan(size: int) -> _Plan:
    """Prepare the tables for values of `size` bytes."""
    if size not in _SIZES:
        raise InvalidRequestError.refuse("size", size, "1 to 256 bytes")
    fours = 1
    while _FOUR**fours < 256**size:
        fours += 1
    shorts, words = -(-size // 2), -(-size // 4)
    to_fours = [_digits(2 ** (16 * i), _FOUR, fours) for i in reversed(range(shorts))]
    to_words = [_digits(_PAIR**i, _WORD, words) for i in reversed(range(2 * fours))]
    return _Plan(size, 4 * fours, np.array(to_fours).T, np.array(to_words).T)


def _digits(number: int, base: int, count: int) -> list[float]:
    """Write a number in a base, the first digit taking all that is left."""
    digits = []
    for _ in range(count - 1):
        number, digit = divmod(number, base)
        digits.append(float(digit))
    return [float(number), *reversed(digits)]


@lru_cache(maxsize=1)
def _pairs() -> NDArray[np.uint16]:
    """List all pairs of characters in order, each as the two bytes of its text."""
    text = "".join(a + b for a in ALPHABET for b in ALPHABET)
    return np.frombuffer(text.encode(), dtype="<u2").astype(np.uint16)


@lru_cache(maxsize=1)
def _values() -> Floats:
    """List the value of every two bytes, NaN where they are no base58; a gap counts as 0."""
    one = np.full(256, np.nan)
    one[list(ALPHABET.encode())] = np.arange(58)
    one[ord(_GAP)] = 0
    two: Floats = one[:, np.newaxis] * 58 + one
    return two.T.reshape(-1)  # the first character is the low byte of the two


def _leading(mask: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Count how many of each row's first entries are true."""
    counts: NDArray[np.intp] = np.logical_and.accumulate(mask, axis=1).sum(axis=1)
    return counts


# Bytes to texts -------------------------------------------------------------------------


def encode(
    values: Bytes | Sequence[bytes | bytearray], *, size: int = 32, name: str = "id"
) -> list[str]:
    """
    Write a column of equally long values in base58.

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
        If one of the bytes objects has another length; its row is named.
    InvalidRequestError
        If an array has another shape or dtype.
    """
    plan = _plan(size)
    rows = _rows(values, size, name)
    texts: list[str] = []
    for begin in range(0, len(rows), _BLOCK):
        texts += _encoded(rows[begin : begin + _BLOCK], plan)
    return texts


def _rows(values: Bytes | Sequence[bytes | bytearray], size: int, name: str) -> Bytes:
    """Hold the values in one array, a row each."""
    if not isinstance(values, np.ndarray):
        return _joined(values, size, name)
    if values.dtype == object and values.ndim == 1:
        return _joined(values.tolist(), size, name)
    if values.dtype != np.uint8 or values.ndim != 2 or values.shape[1] != size:  # noqa: PLR2004 - rows and columns
        shown = f"array of shape {values.shape} and dtype {values.dtype}"
        raise InvalidRequestError.refuse(name, shown, f"shape (n, {size}), dtype uint8")
    return np.ascontiguousarray(values)


def _joined(values: Iterable[bytes | bytearray], size: int, name: str) -> Bytes:
    """Join bytes objects, naming the first of another length."""
    listed = list(values)
    try:
        data = b"".join(listed)
        plain = set(map(len, listed)) <= {size} and len(data) == size * len(listed)
    except TypeError:  # one is no bytes
        data, plain = b"", False
    if not plain:
        raise _first_odd(listed, size, name)
    return np.frombuffer(data, dtype=np.uint8).reshape(len(listed), size)


def _first_odd(values: list[bytes | bytearray], size: int, name: str) -> DecodeError:
    """Find the first value that is not `size` bytes."""
    for row, value in enumerate(values):
        held = len(value) if isinstance(value, bytes | bytearray) else -1
        if held != size:
            shown = f"{held} bytes" if held >= 0 else f"a {type(value).__name__}"
            return _refusal(name, row, f"({shown})", f"is not a value of {size} bytes")
    raise AssertionError("values without a fault were refused")  # pragma: no cover


def _encoded(rows: Bytes, plan: _Plan) -> list[str]:
    """Encode one block."""
    pairs = _pairs()
    fours = _base_58_4(rows, plan)
    high = fours // _PAIR
    # A space before each row, and later over its leading zeros, is what `split` cuts at.
    wide = np.full((len(rows), 1 + plan.width // 2), 0x2020, dtype="<u2")
    wide[:, 1::2] = pairs[high].T
    wide[:, 2::2] = pairs[fours - high * _PAIR].T
    _blank(wide.view(np.uint8)[:, 2:], rows)
    return wide.tobytes().decode("ascii").split()


def _base_58_4(rows: Bytes, plan: _Plan) -> NDArray[np.uint32]:
    """Write each row's number in base 58^4, a column of the result each."""
    if plan.size % 2:
        rows = np.pad(rows, ((0, 0), (1, 0)))
    sums = (plan.to_fours @ rows.view(">u2").astype(np.float64).T).astype(np.uint64)
    for i in range(len(sums) - 1, 0, -1):
        carry = sums[i] // _FOUR
        sums[i] -= carry * _FOUR
        sums[i - 1] += carry
    return sums.astype(np.uint32)


def _blank(texts: Bytes, rows: Bytes) -> None:
    """Turn the digits "1" in front into spaces, but for one per leading zero byte."""
    front = np.ones(len(texts), dtype=np.bool_)
    for column in texts.T:
        front &= column == _ONE
        if not front.any():
            break
        column[front] = ord(" ")
    (zero,) = np.nonzero(rows[:, 0] == 0)
    if zero.size:
        ends = _leading(texts[zero] == ord(" "))[:, np.newaxis]
        begins = ends - _leading(rows[zero] == 0)[:, np.newaxis]
        at = np.arange(texts.shape[1])
        texts[zero] = np.where((begins <= at) & (at < ends), _ONE, texts[zero])


# Texts to bytes -------------------------------------------------------------------------


def decode(texts: Iterable[str], *, size: int = 32, name: str = "id") -> Bytes:
    """
    Read a column of base58 texts, each of which holds equally many bytes.

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
        If a text is missing, has other characters than base58, or holds more or fewer than
        `size` bytes. The first such row is named.
    """
    plan = _plan(size)
    listed: list[str] = texts.tolist() if hasattr(texts, "tolist") else list(texts)
    values = np.empty((len(listed), size), dtype=np.uint8)
    for begin in range(0, len(listed), _BLOCK):
        block = listed[begin : begin + _BLOCK]
        rows = _decoded(block, plan)
        if rows is None:
            raise _first_fault(block, begin, plan, name)
        values[begin : begin + _BLOCK] = rows
    return values


def _decoded(texts: list[str], plan: _Plan) -> Bytes | None:
    """Decode one block; None if a text needs a closer look."""
    try:
        lengths = np.fromiter(map(len, texts), dtype=np.intp, count=len(texts))
        windows = _right_aligned(texts, lengths, plan)
    except (TypeError, UnicodeEncodeError):  # one is no text, or not ASCII
        return None
    rows = None if windows is None else _base_256(windows, plan)
    if windows is None or rows is None:
        return None
    first = np.take_along_axis(windows, plan.width - lengths[:, np.newaxis], axis=1)[:, 0]
    (front,) = np.nonzero((rows[:, 0] == 0) | (first == _ONE))
    ones = _leading((windows[front] == _ONE) | (windows[front] == ord(_GAP)))
    zeros = _leading(rows[front] == 0)
    return rows if np.array_equal(ones - (plan.width - lengths[front]), zeros) else None


def _right_aligned(texts: list[str], lengths: NDArray[np.intp], plan: _Plan) -> Bytes | None:
    """Hold the texts in rows as wide as the longest possible, gaps in front."""
    if lengths.min() < plan.size or lengths.max() > plan.width:
        return None
    # A gap is as long as the shortest text lacks: so the `width` characters before a text's
    # end are the text itself and its own gap.
    gap = _GAP * (plan.width - plan.size)
    data = (gap + gap.join(texts)).encode("ascii")
    if np.count_nonzero(np.frombuffer(data, np.uint8) == ord(_GAP)) != len(gap) * len(texts):
        return None
    begins = np.cumsum(lengths + len(gap)) - plan.width
    window = np.dtype((np.void, plan.width))
    every = np.ndarray(len(data) - plan.width + 1, window, data, strides=(1,))
    return cast("Bytes", every[begins].view(np.uint8).reshape(len(texts), plan.width))


def _base_256(windows: Bytes, plan: _Plan) -> Bytes | None:
    """Read each row as a number; None if one has wrong characters or more than `size` bytes."""
    values = _values()[windows.view("<u2")]
    sums = plan.to_words @ values.T
    if np.isnan(sums[0]).any():
        return None
    words = sums.astype(np.uint64)
    for i in range(len(words) - 1, 0, -1):
        words[i - 1] += words[i] >> np.uint64(32)
    spare = 4 * len(words) - plan.size
    if (words[0] >> np.uint64(32 - 8 * spare)).any():
        return None
    rows: Bytes = words.T.astype(">u4", order="C").view(np.uint8)
    return rows[:, spare:]


# Refusals -------------------------------------------------------------------------------


def _first_fault(texts: list[str], begin: int, plan: _Plan, name: str) -> DecodeError:
    """Find the first text of a block that is not as it must be."""
    for row, text in enumerate(texts, begin):
        if fault := _fault(text, plan):
            return _refusal(name, row, cut(repr(text), _SHOWN), fault)
    raise AssertionError("a block without a fault was refused")  # pragma: no cover


def _fault(text: object, plan: _Plan) -> str | None:
    """Say what is wrong with one text."""
    if not isinstance(text, str):
        return "is no text"
    if set(text) - set(ALPHABET):
        return "is not base58"
    if not plan.size <= len(text) <= plan.width:
        return f"has {len(text)} characters, where {plan.size} bytes take {_expected(plan)}"
    number = 0
    for character in text:
        number = number * 58 + ALPHABET.index(character)
    held = len(text) - len(text.lstrip("1")) + -(-number.bit_length() // 8)
    return None if held == plan.size else f"holds {held} bytes, not {plan.size}"


def _expected(plan: _Plan) -> str:
    """Tell how many characters a value takes."""
    most = 0
    while 58**most < 256**plan.size:
        most += 1
    return f"{plan.size} to {most}"


def _refusal(name: str, row: int, shown: str, rule: str) -> DecodeError:
    """Say which row of which field was refused, and why."""
    return DecodeError(f"{name} {shown} in row {row} {rule}", path=f"{name}[{row}]")
