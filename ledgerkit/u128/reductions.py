"""Columns of 128-bit integers reduced to one value, and running results."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pandas as pd

from ledgerkit.u128 import ordering, parsing, planes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.u128.array import U128Array
    from ledgerkit.u128.planes import Flags, Planes

EXACT = ("sum", "prod", "min", "max")
LOGICAL = ("any", "all")
ROUNDED = ("mean", "median", "std", "var", "sem", "skew", "kurt")
DESCRIBED = """
Reduce the column by {name}.

Parameters
----------
skipna
    Whether missing values are left out; otherwise they make the result one.
**options
    What pandas passes on, such as `min_count` and `ddof`.

Returns
-------
value
    An int for sum, prod, min and max, a bool for any and all, otherwise a float.
"""
_MOST_FACTORS = 127  # of 2 or more whose product may stay below 2^128


def reduce(
    array: U128Array, name: str, *, skipna: bool = True, min_count: int = 0, **options: Any
) -> Any:
    """
    Reduce a column to one value.

    Parameters
    ----------
    array
        The column.
    name
        The reduction, as pandas calls it.
    skipna
        Whether gaps are left out; otherwise they make the result one.
    min_count
        How many values a sum or a product needs not to be missing.
    **options
        What pandas passes on, such as `ddof`.

    Returns
    -------
    value
        A Python int for sum, prod, min and max, a bool for any and all, otherwise a float.

    Raises
    ------
    OverflowError
        If a sum or a product is above 2^128 - 1.
    """
    if name == "count":
        return int(len(array) - np.count_nonzero(array.mask))
    if name in LOGICAL:
        return _logical(array, name, skipna=skipna)
    gap = not skipna and bool(array.mask.any())
    if name in ROUNDED:
        return math.nan if gap else _rounded(array, name, options)
    if name not in EXACT:
        raise TypeError(f"u128 does not support operation '{name}'")
    count = len(array) - int(np.count_nonzero(array.mask))
    if gap or count < (min_count if name in {"sum", "prod"} else 1):
        return pd.NA
    return _exact(array, name)


def as_column(array: U128Array, name: str, value: Any) -> Any:
    """Hold one reduced value in an array, for the columns of a frame."""
    if name in EXACT:
        return array.of(*parsing.read([value]))
    if name in LOGICAL:
        return pd.array([value], dtype="boolean")
    return np.array([value])


def _logical(array: U128Array, name: str, *, skipna: bool) -> Any:
    """Tell whether any or all values are other than zero; a gap that may decide is NA."""
    truth = pd.arrays.BooleanArray((array.hi | array.lo) != 0, array.mask)
    found = truth.any(skipna=skipna) if name == "any" else truth.all(skipna=skipna)
    return found if found is pd.NA else bool(found)


def _rounded(array: U128Array, name: str, options: dict[str, Any]) -> float:
    """Reduce to a float64."""
    known = array[~array.mask] if array.mask.any() else array
    if name == "mean":
        return planes.total(*known.planes) / len(known) if len(known) else math.nan
    kept = {"ddof": options["ddof"]} if "ddof" in options else {}
    return float(getattr(pd.Series(known.to_numpy(np.float64)), name)(**kept))


def _exact(array: U128Array, name: str) -> int:
    """Reduce to an integer; there is at least one value, or the sum or product of none."""
    if name in {"min", "max"}:
        largest = name == "max"
        return int(array[ordering.extreme(array.planes, array.mask, largest=largest, skipna=True)])
    if name == "sum":
        found = planes.total(*array.planes)
        return found if found < planes.LIMIT else _too_large("the sum", found)
    return product(array[~array.mask].planes)


def product(held: Planes) -> int:
    """Multiply all values exactly, looking at no more than decide."""
    hi, lo = held
    if ((hi | lo) == 0).any():
        return 0
    factors = planes.to_ints(*(words[(hi != 0) | (lo != 1)] for words in held))
    found = math.prod(factors[: _MOST_FACTORS + 1])
    return found if found < planes.LIMIT else _too_large("the product", found)


def _too_large(what: str, value: int) -> NoReturn:
    """Refuse a reduced value above the range."""
    msg = f"{what} {value} does not fit 128 bits unsigned; astype(object) has no limit"
    raise OverflowError(msg)


# Running results ------------------------------------------------------------------------


def accumulate(array: U128Array, name: str, *, skipna: bool) -> U128Array:
    """Give the running sum, product, smallest or largest value."""
    mask = array.mask if skipna else np.logical_or.accumulate(array.mask)
    if mask is not array.mask:
        array = type(array)(*array.planes, mask)
    if name == "cumsum":
        return _sums(array)
    if name == "cumprod":
        ints = planes.to_ints(*array.planes)
        return array.of(running_products(ints, mask, range(len(ints))), mask.copy())
    ranks = ordering.ranks(array.planes)
    rows = ordering.firsts(ranks)
    sign = 1 if name == "cummax" else -1
    best = np.maximum.accumulate(np.where(mask, -len(ranks), sign * ranks)) * sign
    found = array.take(rows[np.where(mask, 0, best)])
    return type(array)(*found.planes, mask.copy())


def _sums(array: U128Array) -> U128Array:
    """Add up row by row."""
    (hi, lo), over = planes.cumulate(*array.planes)
    if over.any():
        parsing.overflow(int(over.argmax()), "the running sum")
    return type(array)(hi, lo, array.mask.copy())


def running_products(ints: Any, mask: Flags, rows: Sequence[int]) -> Planes:
    """Multiply row by row, in the order of `rows`."""
    found, last = [0] * len(rows), 1
    for i, row in enumerate(rows):
        if not mask[row]:
            last = found[i] = last * ints[row]
            if last >= planes.LIMIT:
                parsing.overflow(row, "the running product")
    return planes.from_ints(found)
