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
_BLOCK = 8192  # rows at a time, so that their arrays stay in the processor's cache
_MANY = 2**16  # rows; from here on Arrow adds faster than numpy, and groups are added in parts
# The factor with which a quotient of two results of `_approximate` is never too large.
_SHRINK = 1 - 2.0**-49


def _by_blocks(kernel: Callable[..., tuple[Any, ...]], *columns: Words) -> tuple[Any, ...]:
    """Apply a kernel block by block; a column of one value is passed with every block."""
    size = np.broadcast(*columns).size
    if size <= _BLOCK:
        return kernel(*columns)
    parts = []
    for begin in range(0, size, _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        parts.append(kernel(*[x if len(x) == 1 else x[rows] for x in columns]))
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


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
    ints: Objects = hi.astype(object) if hi.any() else lo.astype(object)
    if hi.any():
        ints <<= _BITS
        ints |= lo
    negative = flags(values)
    if negative.any():
        ints[negative] -= LIMIT
    return ints


def to_float(values: Planes) -> Floats:
    """Convert each value to the nearest float64, ties to even."""
    hi, lo = magnitudes(values)
    floats: Floats
    (floats,) = _by_blocks(_to_float, hi, lo) if hi.any() else (lo.astype(np.float64),)
    if flags(values).any():
        np.negative(floats, out=floats, where=flags(values))
    return floats


def _to_float(hi: Words, lo: Words) -> tuple[Floats]:
    # The two floats represent the value exactly, so adding them rounds only once.
    floats = _float(hi << np.uint64(41) | lo >> np.uint64(23), 23)
    floats += _float(lo & np.uint64(2**23 - 1), 0)
    (large,) = np.nonzero(hi >> np.uint64(12))
    if large.size:
        floats[large] = _large_to_float(hi[large], lo[large])
    return (floats,)


def _large_to_float(hi: Words, lo: Words) -> Floats:
    """Convert values from 2^76, whose last 22 bits matter only by being zero or not."""
    low = (hi & np.uint64(2**11 - 1)) << np.uint64(42) | lo >> np.uint64(22)
    low |= (lo & np.uint64(2**22 - 1)) != 0
    return _float(hi >> np.uint64(11), 75) + _float(low, 22)


def _float(words: Words, shift: int) -> Floats:
    """Convert words of at most 53 bits, times a power of two, without rounding."""
    floats: Floats = words.astype(np.float64)
    floats *= 2.0**shift
    return floats


def _from_float(floats: Floats) -> Planes:
    hi = (floats * 2.0**-_BITS).astype(np.uint64)
    lo = (floats - hi * 2.0**_BITS).astype(np.uint64)
    return hi, lo


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
    hi, lo, over = _by_blocks(_multiply, *a, *b)
    return (hi, lo), over


def _multiply(a_hi: Words, a_lo: Words, b_hi: Words, b_lo: Words) -> tuple[Words, Words, Flags]:
    hi, lo = _multiply_words(a_lo, b_lo)
    if not a_hi.any():
        a_hi, a_lo, b_hi, b_lo = b_hi, b_lo, a_hi, a_lo
        if not a_hi.any():
            return hi, lo, np.zeros(len(lo), dtype=np.bool_)
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


def divide(a: Planes, b: Planes) -> tuple[Planes, Planes]:
    """Return the quotients, rounded down, and the remainders; no divisor may be zero."""
    hi, lo, remainder_hi, remainder_lo = _by_blocks(_divide, *a, *b)
    return (hi, lo), (remainder_hi, remainder_lo)


def _divide(a_hi: Words, a_lo: Words, b_hi: Words, b_lo: Words) -> tuple[Words, ...]:
    """Divide a block of values by the cheapest method that is valid for all of them."""
    if b_hi.any():
        return _divide_any((a_hi, a_lo), (b_hi, b_lo))
    if not a_hi.any():
        return _divide_words(a_lo, b_lo)
    if (b_lo >> _HALF).any():
        return _divide_any((a_hi, a_lo), (b_hi, b_lo))
    return _divide_by_halves(a_hi, a_lo, b_lo)


def _divide_words(a: Words, b: Words) -> tuple[Words, ...]:
    quotient = a // b
    return np.zeros_like(quotient), quotient, np.zeros_like(quotient), a - quotient * b


def _divide_by_halves(hi: Words, lo: Words, b: Words) -> tuple[Words, ...]:
    """Divide by divisors below 2^32 in long division, with digits of 32 bits."""
    remainder = np.zeros(1, dtype=np.uint64)
    digits = []
    for digit in (hi >> _HALF, hi & _LOW, lo >> _HALF, lo & _LOW):
        part = remainder << _HALF | digit
        quotient = part // b
        remainder = part - quotient * b
        digits.append(quotient)
    quotient_hi = digits[0] << _HALF | digits[1]
    return quotient_hi, digits[2] << _HALF | digits[3], np.zeros_like(remainder), remainder


def _divide_any(a: Planes, b: Planes) -> tuple[Words, ...]:
    """Divide by subtracting estimated multiples until every remainder is below its divisor."""
    a, b = _broadcast(a, b)
    quotient, remainder = _divide_once(a, b)
    (rows,) = np.nonzero(~less(remainder, b))
    while rows.size:
        divisor = take(b, rows)
        estimate, reduced = _divide_once(take(remainder, rows), divisor)
        sums, _ = add(take(quotient, rows), estimate)
        for plane, new in zip((*quotient, *remainder), (*sums, *reduced), strict=True):
            plane[rows] = new
        rows = rows[~less(reduced, divisor)]
    return *quotient, *remainder


def _broadcast(a: Planes, b: Planes) -> tuple[Planes, Planes]:
    a_hi, a_lo, b_hi, b_lo = np.broadcast_arrays(*a, *b)
    return (a_hi, a_lo), (b_hi, b_lo)


def _divide_once(a: Planes, b: Planes) -> tuple[Planes, Planes]:
    """Estimate quotients from below, nonzero ones by at least 1; return the remainders, too."""
    estimate = _from_float(_approximate(a) / _approximate(b) * _SHRINK)
    estimate[1][((estimate[0] | estimate[1]) == 0) & ~less(a, b)] = 1
    hi, lo = _multiply_words(estimate[1], b[1])
    hi += estimate[0] * b[1]
    hi += estimate[1] * b[0]
    return estimate, subtract(a, (hi, lo))


def _approximate(a: Planes) -> Floats:
    """Convert to floats with a relative error of at most 2^-52."""
    floats: Floats = a[0].astype(np.float64)
    floats *= 2.0**_BITS
    floats += a[1]
    return floats


def power(a: Planes, b: Planes) -> tuple[Planes, Flags]:
    """Compute powers; return them, and flags for those that overflow."""
    a, b = _broadcast(a, b)
    result = np.zeros_like(a[0]), np.ones_like(a[0])
    over, base_over = np.zeros((2, len(a[0])), dtype=np.bool_)
    # From the exponent 128 on, only powers of 0 and 1 do not overflow.
    exponent = np.where(b[0] != 0, np.uint64(128), np.minimum(b[1], np.uint64(128)))
    while exponent.any():
        odd = (exponent & np.uint64(1)) != 0
        product, product_over = multiply(result, a)
        over |= odd & (product_over | base_over)
        result = np.where(odd, product[0], result[0]), np.where(odd, product[1], result[1])
        a, square_over = multiply(a, a)
        base_over |= square_over
        exponent >>= np.uint64(1)
    return result, over


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


def argsort(values: Planes, *, stable: bool = True) -> Rows:
    """Return the rows in ascending order of their values; `stable` keeps the order of equals."""
    negative = flags(values)
    if not negative.any():
        return _argsort(*values[:2], stable=stable)
    # Sort each sign by magnitude: the negative ones from the end, which makes them stable too.
    below, above = np.flatnonzero(negative)[::-1], np.flatnonzero(~negative)
    parts = (_argsort(*magnitudes(take(values, rows)), stable=stable) for rows in (below, above))
    lower, upper = (rows[order] for rows, order in zip((below, above), parts, strict=True))
    return np.concatenate([lower[::-1], upper])


def _argsort(hi: Words, lo: Words, *, stable: bool) -> Rows:
    shift = _BITS - int(hi.max(initial=0)).bit_length()
    # Sort by the leading 64 bits first: few values share them with another one.
    first = hi << np.uint64(shift) | lo >> np.uint64(_BITS - shift) if shift < _BITS else lo
    order = np.argsort(first, kind="stable" if stable else None)
    if shift < _BITS:
        _sort_ties(order, first[order], lo)
    return order


def _sort_ties(order: Rows, ranked: Words, lo: Words) -> None:
    """Sort, in place, the rows whose leading 64 bits equal those of a neighbour."""
    ties = ranked[1:] == ranked[:-1]
    (positions,) = np.nonzero(np.append(ties, False) | np.append(False, ties))
    rows, first = order[positions], ranked[positions]
    last = lo[rows]
    if ((last[1:] < last[:-1]) & (first[1:] == first[:-1])).any():
        order[positions] = rows[np.lexsort((last, first))]


def extreme(values: Planes, *, largest: bool) -> int:
    """Return the first row of the largest or smallest value; there must be one."""
    negative = flags(values)
    preferred = ~negative if largest else negative
    if negative.any() and preferred.any():
        (rows,) = np.nonzero(preferred)
        return int(rows[extreme(take(values[:2], rows), largest=largest)])
    hi, lo = values[:2]
    best = hi.max() if largest else hi.min()
    (rows,) = np.nonzero(hi == best)
    candidates = lo[rows]
    return int(rows[candidates.argmax() if largest else candidates.argmin()])


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
