"""True division of 128-bit integers: the float64 that is nearest to the quotient."""

from __future__ import annotations

import numbers
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ledgerkit.u128 import parsing, planes

if TYPE_CHECKING:
    from ledgerkit.u128.array import U128Array
    from ledgerkit.u128.planes import Floats, Planes

_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_EXACT = np.uint64(2**53)  # up to here an integer is a float64
_SPLIT = 2.0**27 + 1  # cuts a float64 into two halves of 26 bits, as Dekker showed


def divide(array: U128Array, other: Any, *, swapped: bool) -> Floats:
    """Divide by a column, an array or one number, or those by the column; a gap is NaN."""
    try:
        theirs, mask = parsing.read_ints(_listed(array, other))
    except (TypeError, OverflowError):  # floats, or integers of another size
        mine = array.to_numpy(np.float64)
        return _of_floats(floats(other), mine) if swapped else _of_floats(mine, floats(other))
    a, b = (theirs, array.planes) if swapped else (array.planes, theirs)
    found = nearest(a, b)
    found[array.mask | mask] = np.nan
    return found


def _listed(array: U128Array, other: Any) -> Any:
    """Hold one number as a list."""
    return other if isinstance(other, type(array)) or pd.api.types.is_list_like(other) else [other]


def floats(other: Any) -> Floats:
    """Round numbers to float64; NaN where missing."""
    listed = parsing.objects(other if pd.api.types.is_list_like(other) else [other])
    found = np.full(len(listed), np.nan)
    for row in np.flatnonzero(~np.array(pd.isna(listed), dtype=np.bool_)):
        value = listed[row]
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real | Decimal):
            raise TypeError(f"u128 / {type(value).__name__}: divide by numbers")
        found[row] = float(value)
    return found


def _of_floats(a: Floats, b: Floats) -> Floats:
    """Divide floats; by zero it gives infinity or NaN, as everywhere in numpy."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient: Floats = a / b
    return quotient


def nearest(a: Planes, b: Planes) -> Floats:
    """Divide integers, rounding once: the float quotient is mended by what it left out."""
    floats_a, floats_b = planes.to_float(*a), planes.to_float(*b)
    quotient = _of_floats(floats_a, floats_b)
    if _small(a) and _small(b):
        return quotient
    with np.errstate(invalid="ignore", divide="ignore"):
        product, error = _product(quotient, floats_b)
        rest = (floats_a - product) - error
        rest += _left_out(a, floats_a) - quotient * _left_out(b, floats_b)
        mended = quotient + rest / floats_b
    return np.where(np.isfinite(mended), mended, quotient)


def _small(held: Planes) -> bool:
    """Tell whether all values are floats already."""
    return not held[0].any() and not (held[1] > _EXACT).any()


def _left_out(held: Planes, rounded: Floats) -> Floats:
    """Give what rounding took from the values, summed so that no step but the last rounds."""
    hi, lo = held
    rest = (hi >> _HALF).astype(np.float64) * 2.0**96 - rounded
    rest += (hi & _LOW).astype(np.float64) * 2.0**64
    rest += (lo >> _HALF).astype(np.float64) * 2.0**32
    rest += (lo & _LOW).astype(np.float64)
    return rest


def _product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Multiply floats, and give what rounding the product took from it."""
    product = a * b
    a_high, b_high = _cut(a), _cut(b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _cut(number: Floats) -> Floats:
    """Keep the upper half of each float's bits."""
    wide = number * _SPLIT
    return wide - (wide - number)
