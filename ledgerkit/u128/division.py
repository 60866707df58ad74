"""True division of 128-bit integers: the float64 nearest to the quotient."""

from __future__ import annotations

import numbers
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from ledgerkit.u128 import parsing, planes

if TYPE_CHECKING:
    from ledgerkit.u128.array import U128Array
    from ledgerkit.u128.planes import Floats, Planes

_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_EXACT = np.uint64(2**53)  # every integer up to this is a float64
_SPLIT = 2.0**27 + 1  # splits a float64 into two halves of 26 bits (Dekker's product)


def divide(array: U128Array, other: Any, *, swapped: bool) -> Floats:
    """Divide a column by another, an array or a number, or the reverse; missing is NaN."""
    others = parsing.as_list(other)
    try:
        is_column = isinstance(other, type(array))
        values, mask = (other.planes, other.mask) if is_column else parsing.read_ints(others)
    except (TypeError, OverflowError):  # floats, or integers outside the range
        a, b = array.to_numpy(np.float64), _to_floats(others)
        return _divide_floats(b, a) if swapped else _divide_floats(a, b)
    quotients = nearest(values, array.planes) if swapped else nearest(array.planes, values)
    quotients[array.mask | mask] = np.nan
    return quotients


def _to_floats(others: Any) -> Floats:
    objects = parsing.objects(others)
    converted = np.full(len(objects), np.nan)
    for row in np.flatnonzero(~parsing.missing_in(objects)):
        value = objects[row]
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real | Decimal):
            parsing.refuse_text([value])
            raise TypeError(f"u128 and {type(value).__name__} cannot be divided: use numbers")
        converted[row] = float(value)
    return converted


def _divide_floats(a: Floats, b: Floats) -> Floats:
    """Divide floats; division by zero returns infinity or NaN, as in numpy."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient: Floats = a / b
    return quotient


def nearest(a: Planes, b: Planes) -> Floats:
    """Divide integers, rounding once: the float quotient is corrected by its rounding errors."""
    floats_a, floats_b = planes.to_float(*a), planes.to_float(*b)
    quotient = _divide_floats(floats_a, floats_b)
    if _is_exact(a) and _is_exact(b):
        return quotient
    with np.errstate(invalid="ignore", divide="ignore"):
        product, error = _multiply(quotient, floats_b)
        remainder = (floats_a - product) - error
        remainder += _rounding_error(a, floats_a) - quotient * _rounding_error(b, floats_b)
        corrected = quotient + remainder / floats_b
    return np.where(np.isfinite(corrected), corrected, quotient)


def _is_exact(values: Planes) -> bool:
    return not values[0].any() and not (values[1] > _EXACT).any()


def _rounding_error(values: Planes, rounded: Floats) -> Floats:
    """Return values minus their floats, summed so that only the last step rounds."""
    hi, lo = values
    error = (hi >> _HALF).astype(np.float64) * 2.0**96 - rounded
    error += (hi & _LOW).astype(np.float64) * 2.0**64
    error += (lo >> _HALF).astype(np.float64) * 2.0**32
    error += (lo & _LOW).astype(np.float64)
    return error


def _multiply(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Multiply floats; return the products and their rounding errors."""
    product = a * b
    a_high, b_high = _upper_half(a), _upper_half(b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _upper_half(number: Floats) -> Floats:
    wide = number * _SPLIT
    return wide - (wide - number)
