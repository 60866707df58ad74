"""Exact arithmetic on columns of 128-bit integers, with or without a sign, in arrays of words."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]
Flags: TypeAlias = NDArray[np.bool_]
# The high and low halves of the values; for i129 the halves of the values modulo 2^128, and flags
# for negative values. Planes of operands may have one row.
Planes: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = NDArray[np.intp]
Floats: TypeAlias = NDArray[np.float64]
Objects: TypeAlias = NDArray[np.object_]

LIMIT = 2**128
NONE = np.zeros(1, dtype=np.bool_)
# The dtypes without and with a sign: both end at 2^128 - 1.
NAMES = ("u128", "i129")
LOWEST = (0, 1 - LIMIT)

_BITS = 64
_ONES = 2**64 - 1
_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_MANY = 2**16  # rows; from here on Arrow adds faster than numpy, and groups are added in parts


def first(flags: Flags) -> int | None:
    """Return the first row that is flagged; None if none is."""
    return int(flags.argmax()) if flags.any() else None


# Signs ----------------------------------------------------------------------------------


def flags(values: Planes) -> Any:
    """Return where values are negative; one row if they have no sign."""
    return values[2] if len(values) > 2 else NONE  # noqa: PLR2004 - a third plane


def signed(values: Planes) -> Planes:
    return values if len(values) > 2 else (*values, np.zeros(len(values[0]), dtype=np.bool_))  # noqa: PLR2004 - as above


def magnitudes(values: Planes) -> Planes:
    return negate(values[:2], values[2]) if len(values) > 2 else values  # noqa: PLR2004 - as above


def with_sign(values: Planes, negative: Flags) -> Planes:
    """Return planes of i129 from magnitudes; 0 has no sign."""
    negative = negative & ((values[0] | values[1]) != 0)
    return *negate(values, negative), negative


def negate(values: Planes, flagged: Flags) -> Planes:
    """Return 2^128 minus the values that are flagged, and the others as they are."""
    ones = np.uint64(0) - flagged
    lo = (values[1] ^ ones) + flagged
    return (values[0] ^ ones) + (flagged & (lo == 0)), lo


def clean(values: Planes, mask: Flags) -> Planes:
    """Return planes that are 0 where a value is missing."""
    if mask.any() and any(plane[mask].any() for plane in values):
        values = tuple(np.where(mask, plane.dtype.type(0), plane) for plane in values)
    return values


# Conversions ----------------------------------------------------------------------------


def from_ints(values: Sequence[int]) -> Planes:
    """Convert Python ints between -2^128 and 2^128; without a sign if none is negative."""
    try:
        return _from_unsigned(values)
    except OverflowError:
        negative = np.fromiter((value < 0 for value in values), np.bool_, len(values))
        if not negative.any() or min(values) == -LIMIT:
            raise
        hi, lo = _from_unsigned([value + LIMIT if value < 0 else value for value in values])
        return hi, lo, negative


def _from_unsigned(values: Sequence[int]) -> Planes:
    count = len(values)
    try:
        low = np.fromiter(values, dtype=np.uint64, count=count)
    except OverflowError:  # one has more than 64 bits
        high = np.fromiter(map(operator.rshift, values, repeat(_BITS)), np.uint64, count)
        low = np.fromiter(map(operator.and_, values, repeat(_ONES)), np.uint64, count)
        return high, low
    return np.zeros_like(low), low


def to_ints(values: Planes) -> Objects:
    hi, lo = values[:2]
    ints: Objects = lo.astype(object)
    if hi.any():
        ints |= hi.astype(object) << _BITS
    negative = flags(values)
    if negative.any():
        ints[negative] -= LIMIT
    return ints


# Arithmetic -----------------------------------------------------------------------------


def add(a: Planes, b: Planes) -> tuple[Planes, Flags]:
    """Add modulo 2^128; return the sums and flags for those that overflow."""
    lo = a[1] + b[1]
    carry = lo < b[1]
    hi = a[0] + b[0]
    over = hi < b[0]
    hi += carry
    over |= carry & (hi == 0)
    return (hi, lo), over


def subtract(a: Planes, b: Planes) -> Planes:
    """Subtract modulo 2^128."""
    lo = a[1] - b[1]
    hi = a[0] - b[0]
    hi -= a[1] < b[1]
    return hi, lo


def multiply(a: Planes, b: Planes) -> tuple[Planes, Flags]:
    """Multiply modulo 2^128; return the products and flags for those that overflow."""
    hi, lo, over = _multiply(*a, *b)
    return (hi, lo), over


def _multiply(a_hi: Words, a_lo: Words, b_hi: Words, b_lo: Words) -> tuple[Words, Words, Flags]:
    hi, lo = _multiply_words(a_lo, b_lo)
    if not a_hi.any():
        a_hi, a_lo, b_hi, b_lo = b_hi, b_lo, a_hi, a_lo
    if not b_hi.any():
        above, cross = _multiply_words(a_hi, b_lo)
        hi += cross
        return hi, lo, (above != 0) | (hi < cross)
    a_large, b_large = a_hi != 0, b_hi != 0
    # Unless both are large, one of the two products of a high and a low half is zero.
    above, cross = _multiply_words(np.where(a_large, a_hi, b_hi), np.where(a_large, b_lo, a_lo))
    both_large = a_large & b_large
    cross += both_large * a_lo * b_hi
    hi += cross
    return hi, lo, both_large | (above != 0) | (hi < cross)


def _multiply_words(a: Words, b: Words) -> Planes:
    a_high, a_low, b_high, b_low = a >> _HALF, a & _LOW, b >> _HALF, b & _LOW
    middle = a_high * b_low
    middle += (a_low * b_low) >> _HALF
    other = a_low * b_high
    other += middle & _LOW
    hi = a_high * b_high
    hi += middle >> _HALF
    hi += other >> _HALF
    return hi, a * b


# Order ----------------------------------------------------------------------------------


def take(values: Planes, rows: Any) -> Planes:
    return tuple(plane[rows] for plane in values)


def join(columns: Sequence[Planes]) -> Planes:
    """Put columns of one dtype below each other."""
    return tuple(map(np.concatenate, zip(*columns, strict=True)))


def less(a: Planes, b: Planes) -> Flags:
    is_less: Flags = (a[0] < b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
    if len(a) > 2 or len(b) > 2:  # noqa: PLR2004 - one has a sign
        is_less = (flags(a) & ~flags(b)) | ((flags(a) == flags(b)) & is_less)
    return is_less


def equal(a: Planes, b: Planes) -> Flags:
    is_equal: Flags = (a[0] == b[0]) & (a[1] == b[1])
    if len(a) > 2 or len(b) > 2:  # noqa: PLR2004 - one has a sign
        is_equal &= flags(a) == flags(b)
    return is_equal


def compare(a: Planes, b: Planes, name: str) -> Flags:
    """Compare by the name of one of the six comparisons of `operator`."""
    if name in {"eq", "ne"}:
        is_equal = equal(a, b)
        return is_equal if name == "eq" else ~is_equal
    is_less = less(a, b) if name in {"lt", "ge"} else less(b, a)
    return is_less if name in {"lt", "gt"} else ~is_less


def argsort(values: Planes) -> Rows:
    """Return the rows in ascending order of their values, stably."""
    hi, lo, *negative = values
    return np.lexsort((lo, hi, *(~is_negative for is_negative in negative)))


# Sums -----------------------------------------------------------------------------------


# A sum of values is its words plus its `tops` times 2^128.


def total(values: Planes) -> int:
    """Add all values to a Python int, which has no limit."""
    tops = -int(np.count_nonzero(flags(values)))
    return (tops << 2 * _BITS) + (_sum(values[0]) << _BITS) + _sum(values[1])


def _sum(words: Words) -> int:
    low = int(words.sum())
    # The whole sum is `low` plus the carries times 2^64. Divided by 2^32 - 1, a power of 2^32
    # leaves 1, so the sum leaves the same remainder as its digits: that of `low` and the carries,
    # which are fewer than 2^32 - 1.
    carries = (_sum_digits(words) - low) % int(_LOW)
    return (carries << _BITS) + low


def _sum_digits(words: Words) -> int:
    """Add the halves of all words, their digits of 32 bits; there must be at most 2^31 words."""
    digits = np.ascontiguousarray(words).view(np.uint32)
    add = _arrow_sum() if len(words) >= _MANY else None
    return int(digits.sum(dtype=np.uint64)) if add is None else add(digits)


@cache
def _arrow_sum() -> Callable[[NDArray[np.uint32]], int] | None:
    """Return Arrow's sum of an array, which is three times as fast as numpy's, or None."""
    try:
        import pyarrow as pa
        import pyarrow.compute as pc
    except ImportError:
        return None
    return lambda digits: int(pc.sum(pa.array(digits)).as_py())


def cumulate(values: Planes) -> tuple[Planes, NDArray[np.signedinteger[Any]]]:
    """Return the words of the running sums, and their tops."""
    hi, lo = values[:2]
    low = np.cumsum(lo)
    carried = hi + (low < lo)
    high = np.cumsum(carried)
    steps = ((high < carried) | (carried < hi)).view(np.int8) - flags(values).view(np.int8)
    return (high, low), np.cumsum(steps, dtype=np.intp) if steps.any() else steps


# Groups ---------------------------------------------------------------------------------


# Below, `codes` has the group of each row, from 0 to `count` - 1, or -1 for none.


def group_totals(codes: Rows, count: int, values: Planes) -> tuple[Planes, Rows]:
    """Add the values of each group; return the words of the sums, and their tops."""
    if codes.min(initial=0) < 0:
        (rows,) = np.nonzero(codes >= 0)
        codes, values = codes[rows], take(values, rows)
    tops, high = _sum_words_by_group(codes, count, values[0])
    carried, low = _sum_words_by_group(codes, count, values[1])
    high += carried
    tops += high < carried
    negative = flags(values)
    counts = np.bincount(codes[negative], minlength=count) if negative.any() else 0
    return (high, low), tops.astype(np.intp) - counts


def _sum_words_by_group(codes: Rows, count: int, words: Words) -> Planes:
    low, upper = np.zeros((2, count), dtype=np.uint64)
    fits = _sum(words) <= _ONES  # then the sum of each group does
    for begin in range(0, len(words), _MANY):
        rows = slice(begin, begin + _MANY)
        np.add.at(low, codes[rows], words[rows])
        if not fits:
            np.add.at(upper, codes[rows], words[rows] >> _HALF)
    # The lower halves of a group add up to less than 2^64, so they carry at most once.
    return (upper >> _HALF) + (low < upper << _HALF), low


def group_extremes(codes: Rows, count: int, values: Planes, *, largest: bool) -> Rows:
    """Return the first row of each group's largest or smallest value; -1 for an empty group."""
    rows = np.nonzero(codes >= 0)[0]
    for words in (*(~negative for negative in values[2:]), *values[:2]):
        best = np.zeros(count, dtype=words.dtype)
        best = best if largest else ~best
        (np.maximum if largest else np.minimum).at(best, codes[rows], words[rows])
        rows = rows[words[rows] == best[codes[rows]]]
    firsts = np.full(count, len(codes), dtype=np.intp)
    np.minimum.at(firsts, codes[rows], rows)
    firsts[firsts == len(codes)] = -1
    return firsts
