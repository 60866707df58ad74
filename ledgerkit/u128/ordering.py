"""Order, equality and distinct values of columns of 128-bit integers with missing values."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ledgerkit.u128 import parsing, planes

if TYPE_CHECKING:
    from ledgerkit.u128.array import U128Array
    from ledgerkit.u128.planes import Flags, Planes, Rows, Words

# 2^64 divided by the golden ratio: Knuth's multiplier, which spreads the products evenly.
_ODD = np.uint64(0x9E3779B97F4A7C15)


# Order ----------------------------------------------------------------------------------


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


def first_rows(codes: Rows, rows: Rows | None = None) -> Rows:
    """Return the first row of each code; the codes are 0, 1, 2 and so on without gaps."""
    rows = np.arange(len(codes)) if rows is None else rows
    firsts = np.empty(codes.max(initial=-1) + 1, dtype=np.intp)
    firsts[codes[::-1]] = rows[::-1]  # in reverse, because the last assignment to a code counts
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
    (rows,) = np.nonzero(~mask)
    return int(rows[planes.extreme(planes.take(values, rows), largest=largest)])


def searchsorted(values: Planes, others: Planes, side: str) -> Rows:
    """Return the positions of other values in sorted ones, by sorting both together."""
    columns = [others, values] if side == "left" else [values, others]
    ordered = planes.argsort(planes.join(list(map(planes.signed, columns))))
    begin = 0 if side == "left" else len(values[0])
    is_value = (ordered < begin) | (ordered >= begin + len(others[0]))
    positions = np.empty(len(others[0]), dtype=np.intp)
    positions[ordered[~is_value] - begin] = np.cumsum(is_value)[~is_value]
    return positions


def searchsorted_ints(array: U128Array, others: Any, side: str) -> Any:
    """Return the positions of numbers of any size in sorted values."""
    bisection = bisect.bisect_left if side == "left" else bisect.bisect_right
    values = parsing.objects(parsing.as_list(others))
    try:
        positions = np.array([bisection(array, value) for value in values], dtype=np.intp)
    except TypeError:
        parsing.refuse_text(values)
        raise
    return positions if pd.api.types.is_list_like(others) else positions[0]


# Distinct values ------------------------------------------------------------------------


def factorize(values: Planes, mask: Flags, *, code_missing: bool) -> tuple[Rows, Rows]:
    """Compute codes of the distinct values, in the order of their first rows, and these rows."""
    # The code of missing values is -1, or a separate code with `code_missing`.
    (rows,) = np.nonzero(~mask)
    codes = np.full(len(mask), -1, dtype=np.intp)
    codes[rows] = _codes(planes.take(values, rows) if mask.any() else values)
    firsts = first_rows(codes[rows], rows)
    if code_missing and mask.any():
        row = int(mask.argmax())
        code = codes[:row].max(initial=-1) + 1
        codes[codes >= code] += 1
        codes[mask] = code
        firsts = np.insert(firsts, code, row)
    return codes, firsts


def _codes(values: Planes) -> Any:
    """Compute codes from a word that mixes both halves, unless two values have the same word."""
    codes, _ = pd.factorize(_mix(values))
    if planes.equal(values, planes.take(values, first_rows(codes)[codes])).all():
        return codes
    codes = np.zeros(len(values[0]), dtype=np.intp)
    for plane in values:
        more, distinct = pd.factorize(plane)
        codes, _ = pd.factorize(codes * len(distinct) + more)
    return codes


def _mix(values: Planes) -> Any:
    mixed = values[0] * _ODD ^ values[1]
    return mixed if len(values) == 2 else mixed ^ values[2] * _ODD  # noqa: PLR2004 - no sign


def isin(array: U128Array, others: Any) -> Flags:
    """Return which values are among others; missing values are, if one of the others is missing."""
    objects = parsing.objects(others)
    missing = parsing.missing_in(objects)
    lowest = planes.LOWEST[array.signed]
    ints = [i for i in map(_as_int, objects[~missing]) if lowest <= i < planes.LIMIT]
    values, other_values = map(planes.signed, (array.planes, planes.from_ints(ints)))
    (rows,) = np.nonzero(pd.Series(_mix(values)).isin(_mix(other_values)))
    codes = _codes(planes.join([planes.take(values, rows), other_values]))
    is_in = np.zeros(len(array), dtype=np.bool_)
    is_in[rows] = np.isin(codes[: len(rows)], codes[len(rows) :])
    is_in[array.mask] = missing.any()
    return is_in


def _as_int(value: Any) -> int:
    """Return the integer that a value equals, or an integer outside the range."""
    try:
        return int(value) if int(value) == value else planes.LIMIT
    except (TypeError, ValueError, OverflowError):
        return planes.LIMIT


def hashes(values: Planes, mask: Flags, key: str) -> Words:
    hi, lo = (pd.util.hash_array(words, hash_key=key) for words in values[:2])
    hashed: Words = _mix((hi, lo, *values[2:]))
    hashed[mask] = _ODD
    return hashed
