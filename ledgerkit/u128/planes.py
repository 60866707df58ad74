"""Exact arithmetic on columns of unsigned 128-bit integers, each held as two planes of uint64."""

from __future__ import annotations

import operator
import sys
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Words: TypeAlias = NDArray[np.uint64]
Planes: TypeAlias = tuple[Words, Words]  # high and low halves, of the same length
Flags: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = NDArray[np.intp]
Floats: TypeAlias = NDArray[np.float64]
Objects: TypeAlias = NDArray[np.object_]

LIMIT = 2**128

_BITS = 64
_ONES = 2**64 - 1
_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_BLOCK = 8192  # rows at a time: their arrays stay in the processor's cache
_FEW = 256  # rows to look at before looking at all
_UPPER = 1 if sys.byteorder == "little" else 0  # where a word has its upper half
# What the quotient of two such floats as `_near` gives may be too large by, and a little more.
_SHRINK = 1 - 2.0**-49


def _by_blocks(kernel: Callable[..., tuple[Any, ...]], *columns: Words) -> tuple[Any, ...]:
    """Apply a kernel block by block; a column of one value goes with every block."""
    size = np.broadcast(*columns).size
    if size <= _BLOCK:
        return kernel(*columns)
    parts = []
    for begin in range(0, size, _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        parts.append(kernel(*[x if len(x) == 1 else x[rows] for x in columns]))
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


# In and out -----------------------------------------------------------------------------


def split(value: int) -> tuple[np.uint64, np.uint64]:
    """Give the high and the low half of one integer."""
    return np.uint64(value >> _BITS), np.uint64(value & _ONES)


def from_ints(values: Sequence[int]) -> Planes:
    """Hold Python ints, none below zero or above 2^128 - 1."""
    count = len(values)
    try:
        low = np.fromiter(values, dtype=np.uint64, count=count)
    except OverflowError:  # one has more than 64 bits
        high = np.fromiter(map(operator.rshift, values, repeat(_BITS)), np.uint64, count)
        low = np.fromiter(map(operator.and_, values, repeat(_ONES)), np.uint64, count)
        return high, low
    return np.zeros_like(low), low


def to_ints(hi: Words, lo: Words) -> Objects:
    """Give the values as Python ints."""
    return _signed_ints(hi, lo) if hi.any() else lo.astype(object)


def _signed_ints(hi: Words | NDArray[np.int64], lo: Words) -> Objects:
    """Put halves together, the high ones with or without a sign."""
    ints = hi.astype(object)
    ints <<= _BITS
    ints |= lo
    return ints


def to_float(hi: Words, lo: Words) -> Floats:
    """Round each value to the nearest float64, ties to even."""
    if not hi.any():
        return lo.astype(np.float64)
    floats: Floats
    (floats,) = _by_blocks(_to_float, hi, lo)
    return floats


def _to_float(hi: Words, lo: Words) -> tuple[Floats]:
    """Round a block of values."""
    # Two floats that hold the value exactly, so that adding them rounds once.
    floats = _float(hi << np.uint64(41) | lo >> np.uint64(23), 23)
    floats += _float(lo & np.uint64(2**23 - 1), 0)
    (large,) = np.nonzero(hi >> np.uint64(12))
    if large.size:
        floats[large] = _large_to_float(hi[large], lo[large])
    return (floats,)


def _large_to_float(hi: Words, lo: Words) -> Floats:
    """Round values from 2^76 up, where the last 22 bits only matter by being zero or not."""
    rest = (hi & np.uint64(2**11 - 1)) << np.uint64(42) | lo >> np.uint64(22)
    rest |= (lo & np.uint64(2**22 - 1)) != 0
    return _float(hi >> np.uint64(11), 75) + _float(rest, 22)


def _float(words: Words, shift: int) -> Floats:
    """Convert words of at most 53 bits, times a power of two, without any rounding."""
    floats: Floats = words.astype(np.float64)
    floats *= 2.0**shift
    return floats


def _from_float(floats: Floats) -> Planes:
    """Cut floats from 0 up and below 2^128 to integers."""
    hi = (floats * 2.0**-_BITS).astype(np.uint64)
    lo = (floats - hi * 2.0**_BITS).astype(np.uint64)
    return hi, lo


# Arithmetic -----------------------------------------------------------------------------


def add(a: Planes, b: Planes) -> tuple[Planes, Flags]:
    """Add modulo 2^128, and tell which sums are too large."""
    lo = a[1] + b[1]
    carry = lo < b[1]
    hi = a[0] + b[0]
    over = hi < b[0]
    hi += carry
    over |= carry & (hi == 0)
    return (hi, lo), over


def subtract(a: Planes, b: Planes) -> Objects:
    """Give the exact differences, which may be below zero, as Python ints."""
    negative = less(a, b)
    hi, lo = _minus(a, b)
    signed = lo.view(np.int64)
    short = ((signed < 0) == negative) & (hi == np.uint64(0) - negative)
    if short.all():
        return signed.astype(object)
    ints = _signed_ints(hi.view(np.int64), lo)
    below = hi.view(np.int64) < 0
    ints[negative & ~below] -= LIMIT  # 2^127 or more away from zero, as below
    ints[below & ~negative] += LIMIT
    return ints


def _minus(a: Planes, b: Planes) -> Planes:
    """Subtract modulo 2^128."""
    lo = a[1] - b[1]
    hi = a[0] - b[0]
    hi -= a[1] < b[1]
    return hi, lo


def multiply(a: Planes, b: Planes) -> tuple[Planes, Flags]:
    """Multiply modulo 2^128, and tell which products are too large."""
    hi, lo, over = _by_blocks(_multiply, *a, *b)
    return (hi, lo), over


def _multiply(a_hi: Words, a_lo: Words, b_hi: Words, b_lo: Words) -> tuple[Words, Words, Flags]:
    """Multiply a block of values."""
    hi, lo = _wide(a_lo, b_lo)
    if not a_hi.any():
        a_hi, a_lo, b_hi, b_lo = b_hi, b_lo, a_hi, a_lo
        if not a_hi.any():
            return hi, lo, np.zeros(len(lo), dtype=np.bool_)
    if not b_hi.any():
        above, cross = _wide(a_hi, b_lo)
        hi += cross
        return hi, lo, (above != 0) | (hi < cross)
    a_large, b_large = a_hi != 0, b_hi != 0
    # Unless both are large, one of the two products of a high with a low half is zero.
    above, cross = _wide(np.where(a_large, a_hi, b_hi), np.where(a_large, b_lo, a_lo))
    both = a_large & b_large
    cross += both * a_lo * b_hi
    hi += cross
    return hi, lo, both | (above != 0) | (hi < cross)


def _wide(a: Words, b: Words) -> Planes:
    """Multiply 64 by 64 bits to 128."""
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
    """Give the quotients, rounded down, and the remainders; no divisor may be zero."""
    hi, lo, rest_hi, rest_lo = _by_blocks(_divide, *a, *b)
    return (hi, lo), (rest_hi, rest_lo)


def _divide(a_hi: Words, a_lo: Words, b_hi: Words, b_lo: Words) -> tuple[Words, ...]:
    """Divide a block of values in the cheapest way that does for all of them."""
    if b_hi.any():
        return _divide_any((a_hi, a_lo), (b_hi, b_lo))
    if not a_hi.any():
        return _divide_words(a_lo, b_lo)
    if (b_lo >> _HALF).any():
        return _divide_any((a_hi, a_lo), (b_hi, b_lo))
    return _divide_by_halves(a_hi, a_lo, b_lo)


def _divide_words(a: Words, b: Words) -> tuple[Words, ...]:
    """Divide values below 2^64 by such."""
    quotient = a // b
    return np.zeros_like(quotient), quotient, np.zeros_like(quotient), a - quotient * b


def _divide_by_halves(hi: Words, lo: Words, b: Words) -> tuple[Words, ...]:
    """Divide by divisors below 2^32, a digit of 32 bits at a time."""
    rest = np.zeros(1, dtype=np.uint64)
    digits = []
    for digit in (hi >> _HALF, hi & _LOW, lo >> _HALF, lo & _LOW):
        part = rest << _HALF | digit
        quotient = part // b
        rest = part - quotient * b
        digits.append(quotient)
    quotient_hi = digits[0] << _HALF | digits[1]
    return quotient_hi, digits[2] << _HALF | digits[3], np.zeros_like(rest), rest


def _divide_any(a: Planes, b: Planes) -> tuple[Words, ...]:
    """Divide by taking off, again and again, a multiple that is surely not too large."""
    a, b = _level(a, b)
    quotient, rest = _taken(a, b)
    (rows,) = np.nonzero(~less(rest, b))
    while rows.size:
        divisor = _rows(b, rows)
        more, left = _taken(_rows(rest, rows), divisor)
        sums, _ = add(_rows(quotient, rows), more)
        for plane, new in zip((*quotient, *rest), (*sums, *left), strict=True):
            plane[rows] = new
        rows = rows[~less(left, divisor)]
    return *quotient, *rest


def _level(a: Planes, b: Planes) -> tuple[Planes, Planes]:
    """Repeat a single value as often as the other operand has rows."""
    a_hi, a_lo, b_hi, b_lo = np.broadcast_arrays(*a, *b)
    return (a_hi, a_lo), (b_hi, b_lo)


def _rows(a: Planes, rows: Rows) -> Planes:
    """Pick rows."""
    return a[0][rows], a[1][rows]


def _taken(a: Planes, b: Planes) -> tuple[Planes, Planes]:
    """Estimate quotients from below, at least 1 where they are, and give what is left."""
    estimate = _from_float(_near(a) / _near(b) * _SHRINK)
    estimate[1][((estimate[0] | estimate[1]) == 0) & ~less(a, b)] = 1
    hi, lo = _wide(estimate[1], b[1])
    hi += estimate[0] * b[1]
    hi += estimate[1] * b[0]
    return estimate, _minus(a, (hi, lo))


def _near(a: Planes) -> Floats:
    """Convert to floats, wrong by at most one part in 2^52."""
    floats = a[0].astype(np.float64)
    floats *= 2.0**_BITS
    floats += a[1]
    return floats


def power(a: Planes, b: Planes) -> tuple[Planes, Flags]:
    """Raise to powers, and tell which are too large: what stands there means nothing."""
    a, b = _level(a, b)
    result = np.zeros_like(a[0]), np.ones_like(a[0])
    over, base_over = np.zeros((2, len(a[0])), dtype=np.bool_)
    # 128 as an exponent stands for all above it: only 0 and 1 stay small.
    left = np.where(b[0] != 0, np.uint64(128), np.minimum(b[1], np.uint64(128)))
    while left.any():
        odd = (left & np.uint64(1)) != 0
        product, too_large = multiply(result, a)
        over |= odd & (too_large | base_over)
        result = np.where(odd, product[0], result[0]), np.where(odd, product[1], result[1])
        a, too_large = multiply(a, a)
        base_over |= too_large
        left >>= np.uint64(1)
    return result, over


# Order ----------------------------------------------------------------------------------


def less(a: Planes, b: Planes) -> Flags:
    """Tell where a is below b."""
    below: Flags = (a[0] < b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
    return below


def equal(a: Planes, b: Planes) -> Flags:
    """Tell where a is b."""
    same: Flags = (a[0] == b[0]) & (a[1] == b[1])
    return same


def argsort(hi: Words, lo: Words, *, stable: bool = True) -> Rows:
    """
    Order the values, the smallest first.

    Parameters
    ----------
    hi
        The high halves.
    lo
        The low halves.
    stable
        Whether equal values stay in the order they came in.

    Returns
    -------
    order
        The row of each value.
    """
    shift = _BITS - int(hi.max(initial=0)).bit_length()
    # Ordered by their first 64 bits, few need a second look.
    first = hi << np.uint64(shift) | lo >> np.uint64(_BITS - shift) if shift < _BITS else lo
    order = np.argsort(first, kind="stable" if stable else None)
    if shift < _BITS:
        _settle(order, first[order], lo)
    return order


def _settle(order: Rows, ranked: Words, lo: Words) -> None:
    """Put right, in place, the rows whose first 64 bits are those of a neighbour."""
    same = ranked[1:] == ranked[:-1]
    (at,) = np.nonzero(np.append(same, False) | np.append(False, same))
    rows, first = order[at], ranked[at]
    last = lo[rows]
    if ((last[1:] < last[:-1]) & (first[1:] == first[:-1])).any():
        order[at] = rows[np.lexsort((last, first))]


def extreme(hi: Words, lo: Words, *, largest: bool) -> int:
    """Find the first row of the largest value, or of the smallest; there must be one."""
    best = hi.max() if largest else hi.min()
    (rows,) = np.nonzero(hi == best)
    among = lo[rows]
    return int(rows[among.argmax() if largest else among.argmin()])


# Sums -----------------------------------------------------------------------------------


def total(hi: Words, lo: Words) -> int:
    """Add all values, as far as Python's integers go."""
    return (_sum(hi) << _BITS) + _sum(lo)


def _sum(words: Words) -> int:
    """Add words without losing a carry."""
    if _sums_fit(words):
        return int(words.sum())
    halves = np.ascontiguousarray(words).view(np.uint32)
    high = int(halves[_UPPER::2].sum(dtype=np.uint64)) << 32
    # The sum modulo 2^64 tells what the lower halves add up to, which is less than that.
    return high + (int(words.sum()) - high) % 2**64


def _sums_fit(words: Words) -> bool:
    """Tell whether no sum of any of these words can pass 64 bits."""
    most = _ONES // max(len(words), 1)
    return all(int(part.max(initial=0)) <= most for part in (words[:_FEW], words))


def cumulate(hi: Words, lo: Words) -> tuple[Planes, Flags]:
    """Add up row by row modulo 2^128, and tell from which row on the sums are too large."""
    low = np.cumsum(lo)
    carried = hi + (low < lo)
    high = np.cumsum(carried)
    over = (high < carried) | (carried < hi)
    return (high, low), np.logical_or.accumulate(over)


# Groups ---------------------------------------------------------------------------------


def group_totals(codes: Rows, count: int, hi: Words, lo: Words) -> tuple[Planes, Flags]:
    """
    Add the values of each group modulo 2^128.

    Parameters
    ----------
    codes
        The group of each row, from 0 up; rows of group -1 are left out.
    count
        How many groups there are.
    hi
        The high halves.
    lo
        The low halves.

    Returns
    -------
    totals
        The planes of `count` sums.
    over
        Which of them are too large for 128 bits.
    """
    codes, hi, lo = _grouped(codes, hi, lo)
    over_high, high = _group_words(codes, count, hi)
    carried, low = _group_words(codes, count, lo)
    high += carried
    return (high, low), (over_high != 0) | (high < carried)


def _grouped(codes: Rows, hi: Words, lo: Words) -> tuple[Rows, Words, Words]:
    """Leave out the rows without a group."""
    held = codes >= 0
    if held.all():
        return codes, hi, lo
    return codes[held], hi[held], lo[held]


def _group_words(codes: Rows, count: int, words: Words) -> Planes:
    """Add words by group to sums of 128 bits."""
    low, upper = np.zeros((2, count), dtype=np.uint64)
    np.add.at(low, codes, words)
    if _sums_fit(words):
        return upper, low
    np.add.at(upper, codes, words >> _HALF)
    # As in `_sum`: the lower halves add up to less than 2^64.
    return (upper >> _HALF) + (low < upper << _HALF), low


def group_extremes(codes: Rows, count: int, hi: Words, lo: Words, *, largest: bool) -> Rows:
    """
    Find the first row of each group's largest value, or of its smallest.

    Parameters
    ----------
    codes
        The group of each row, from 0 up; rows of group -1 are left out.
    count
        How many groups there are.
    hi
        The high halves.
    lo
        The low halves.
    largest
        Whether the largest is looked for.

    Returns
    -------
    rows
        `count` rows, -1 for a group without any.
    """
    rows = np.nonzero(codes >= 0)[0]
    for words in (hi, lo):
        best = _best(codes[rows], count, words[rows], largest=largest)
        rows = rows[words[rows] == best[codes[rows]]]
    found = np.full(count, len(codes), dtype=np.intp)
    np.minimum.at(found, codes[rows], rows)
    found[found == len(codes)] = -1
    return found


def _best(codes: Rows, count: int, words: Words, *, largest: bool) -> Words:
    """Find the largest or smallest word of each group."""
    best = np.full(count, 0 if largest else _ONES, dtype=np.uint64)
    (np.maximum if largest else np.minimum).at(best, codes, words)
    return best
