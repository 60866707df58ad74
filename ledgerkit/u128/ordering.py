"""Order, equality and distinct values of columns of 128-bit integers with missing values."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ledgerkit.u128 import parsing, planes

if TYPE_CHECKING:
    from ledgerkit.u128.array import U128Array
    from ledgerkit.u128.planes import Flags, Planes, Rows


def argsort(values: Planes, mask: Flags, *, ascending: bool, na: str) -> Rows:
    """Sort the rows stably, with the missing values "first" or "last"."""
    (rows,) = np.nonzero(~mask)
    (missing,) = np.nonzero(mask)
    rows = rows if ascending else rows[::-1]
    ordered = rows[planes.argsort(planes.take(values, rows))]
    ordered = ordered if ascending else ordered[::-1]
    return np.concatenate([missing, ordered] if na == "first" else [ordered, missing])


def ranks(values: Planes) -> Rows:
    """Return the position of each value among the distinct values in ascending order."""
    ordered = planes.argsort(values)
    ranked = planes.take(values, ordered)
    is_new = np.zeros(len(ordered), dtype=np.intp)
    is_new[1:] = ~planes.equal(planes.take(ranked, slice(1, None)), planes.take(ranked, slice(-1)))
    positions = np.empty(len(ordered), dtype=np.intp)
    positions[ordered] = np.cumsum(is_new)
    return positions


def first_rows(codes: Rows) -> Rows:
    """Return the first row of each code; the codes are 0, 1, 2 and so on without gaps."""
    firsts = np.empty(codes.max(initial=-1) + 1, dtype=np.intp)
    # In reverse, because the last assignment to a code counts.
    firsts[codes[::-1]] = np.arange(len(codes))[::-1]
    return firsts


def extreme(values: Planes, mask: Flags, *, largest: bool, skipna: bool) -> int:
    """Return the first row of the largest or smallest value."""
    name = "argmax" if largest else "argmin"
    if not len(mask):
        raise ValueError(f"attempt to get {name} of an empty sequence")
    if mask.any() and not skipna:
        raise ValueError("Encountered an NA value with skipna=False")
    if mask.all():
        raise ValueError("Encountered all NA values")
    one_group = np.where(mask, -1, 0)
    return int(planes.group_extremes(one_group, 1, values, largest=largest)[0])


def searchsorted(array: U128Array, others: Any, side: str) -> Any:
    """Return the positions of numbers of any size in sorted values."""
    bisection = bisect.bisect_left if side == "left" else bisect.bisect_right
    is_list = pd.api.types.is_list_like(others)
    values, ordered = parsing.objects(parsing.as_list(others)), array.tolist() if is_list else array
    try:
        positions = np.array([bisection(ordered, value) for value in values], dtype=np.intp)
    except TypeError:
        parsing.refuse_text(values)
        raise
    return positions if is_list else positions[0]


def isin(array: U128Array, others: Any) -> Flags:
    """Return which values are among others; missing values are, if one of the others is missing."""
    objects = parsing.objects(others)
    missing = parsing.missing_in(objects)
    ints = pd.Series(planes.to_ints(array.planes), dtype=object)
    return np.where(array.mask, missing.any(), ints.isin(objects[~missing]))
