"""Reductions of columns of 128-bit integers to one value, and running results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ledgerkit.u128 import arithmetic, ordering, parsing, planes

if TYPE_CHECKING:
    from ledgerkit.u128.array import U128Array
    from ledgerkit.u128.planes import Flags, Planes

EXACT = ("sum", "prod", "min", "max")
LOGICAL = ("any", "all")
ROUNDED = ("mean", "median", "std", "var", "sem", "skew", "kurt")
DOCSTRING = """
Reduce the column to one value: `{name}`, as pandas defines it.

Parameters
----------
skipna
    Whether to skip missing values; if not, a missing value makes the result missing.
**options
    Options of pandas, such as `min_count` and `ddof`.

Returns
-------
value
    An int for sum, prod, min and max, a bool for any and all, otherwise a float.
"""
_MOST_FACTORS = 127  # factors from 2 on with a product below 2^128


def reduce(
    array: U128Array, name: str, *, skipna: bool = True, min_count: int = 0, **options: Any
) -> Any:
    """Reduce a column to an int, a bool or a float, or to NA or NaN if the result is missing."""
    if name == "count":
        return int(len(array) - np.count_nonzero(array.mask))
    if name in LOGICAL:
        return _reduce_to_bool(array, name, skipna=skipna)
    if name in {"argmin", "argmax"}:
        return ordering.extreme(array.planes, array.mask, largest=name == "argmax", skipna=skipna)
    is_missing = not skipna and bool(array.mask.any())
    if name in ROUNDED:
        return math.nan if is_missing else _reduce_to_float(array, name, options)
    if name not in EXACT:
        raise TypeError(f"{array.dtype} does not support operation '{name}'")
    needed = min_count if name in {"sum", "prod"} else 1
    if is_missing or (needed > 0 and len(array) - np.count_nonzero(array.mask) < needed):
        return pd.NA
    return _reduce_to_int(array, name)


def as_array(array: U128Array, name: str, value: Any) -> Any:
    """Return a reduced value as an array of one row, for the columns of a frame."""
    if name in EXACT:
        return array.of(*parsing.read([value], signed=array.signed))
    if name in LOGICAL:
        return pd.array([value], dtype="boolean")
    return np.array([value])


def _reduce_to_bool(array: U128Array, name: str, *, skipna: bool) -> Any:
    """Return whether any or all values are nonzero; NA if it depends on a missing value."""
    nonzero = pd.arrays.BooleanArray((array.hi | array.lo) != 0, array.mask)
    result = nonzero.any(skipna=skipna) if name == "any" else nonzero.all(skipna=skipna)
    return result if result is pd.NA else bool(result)


def _reduce_to_float(array: U128Array, name: str, options: dict[str, Any]) -> float:
    present = array[~array.mask] if array.mask.any() else array
    if name == "mean":
        return planes.total(present.planes) / len(present) if len(present) else math.nan
    ddof = {"ddof": options["ddof"]} if "ddof" in options else {}
    return float(getattr(pd.Series(present.to_numpy(np.float64)), name)(**ddof))


def _reduce_to_int(array: U128Array, name: str) -> int:
    if name in {"min", "max"}:
        largest = name == "max"
        return int(array[ordering.extreme(array.planes, array.mask, largest=largest, skipna=True)])
    if name == "sum":
        return _check_range(array, planes.total(array.planes), "the sum")
    return _check_range(array, product(array[~array.mask].planes), "the product")


def product(values: Planes) -> int:
    """Multiply all values, or as many as show that the product does not fit."""
    hi, lo = planes.magnitudes(values)
    if ((hi | lo) == 0).any():
        return 0
    factors = planes.to_ints(planes.take((hi, lo), (hi != 0) | (lo != 1)))
    sign = -1 if np.count_nonzero(planes.flags(values)) % 2 else 1
    return sign * math.prod(factors[: _MOST_FACTORS + 1])


def _check_range(array: U128Array, value: int, name: str) -> int:
    if planes.LOWEST[array.signed] <= value < planes.LIMIT:
        return value
    msg = f"{name} {value} does not fit in {array.dtype}; astype(object) has no limit"
    raise OverflowError(msg)


# Running results ------------------------------------------------------------------------


def accumulate(array: U128Array, name: str, *, skipna: bool) -> U128Array:
    """Compute the running sum, product, minimum or maximum."""
    mask = array.mask if skipna else np.logical_or.accumulate(array.mask)
    values = planes.clean(array.planes, mask)
    if name == "cumsum":
        sums, overflows = arithmetic.check_range(planes.cumulate(values), signed=array.signed)
        if (row := planes.first(overflows)) is not None:
            parsing.raise_overflow(row, "the running sum", signed=array.signed)
        return array.of(planes.clean(sums, mask), mask.copy())
    if name == "cumprod":
        every_row, ints = range(len(mask)), planes.to_ints(values)
        products = running_products(ints, mask, every_row, signed=array.signed)
        return array.of(products, mask.copy())
    ranks = ordering.ranks(values)
    rows = ordering.first_rows(ranks)
    sign = 1 if name == "cummax" else -1
    best = np.maximum.accumulate(np.where(mask, -len(ranks), sign * ranks)) * sign
    results = planes.take(values, rows[np.where(mask, 0, best)])
    return array.of(planes.clean(results, mask), mask.copy())


def running_products(ints: Any, mask: Flags, rows: Sequence[int], *, signed: bool) -> Planes:
    """Compute the running product over `rows`, in their order."""
    products, last = [0] * len(rows), 1
    lowest = planes.LOWEST[signed]
    for i, row in enumerate(rows):
        if not mask[row]:
            last = products[i] = last * ints[row]
            if not lowest <= last < planes.LIMIT:
                parsing.raise_overflow(row, "the running product", signed=signed)
    values = planes.from_ints(products)
    return planes.signed(values) if signed else values
