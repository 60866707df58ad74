"""Order, equality and distinct values of columns of 128-bit integers with gaps."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ledgerkit.u128 import parsing, planes

if TYPE_CHECKING:
    from ledgerkit.u128.array import U128Array
    from ledgerkit.u128.planes import Flags, Planes, Rows, Words

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, which spreads well


# Order ----------------------------------------------------------------------------------


def argsort(held: Planes, mask: Flags, *, ascending: bool, na: str) -> Rows:
    """Order the rows, equal values as they came, the gaps "first" or "last"."""
    (rows,) = np.nonzero(~mask)
    (gaps,) = np.nonzero(mask)
    rows = rows if ascending else rows[::-1]
    ordered = rows[planes.argsort(*_at(held, rows))]
    ordered = ordered if ascending else ordered[::-1]
    return np.concatenate([gaps, ordered] if na == "first" else [ordered, gaps])


def _at(held: Planes, rows: Any) -> Planes:
    """Pick rows of both planes."""
    return held[0][rows], held[1][rows]


def ranks(held: Planes) -> Rows:
    """Give each value its place among the distinct ones, from the smallest up."""
    ordered = planes.argsort(*held)
    hi, lo = _at(held, ordered)
    new = np.zeros(len(hi), dtype=np.intp)
    new[1:] = (hi[1:] != hi[:-1]) | (lo[1:] != lo[:-1])
    found = np.empty(len(hi), dtype=np.intp)
    found[ordered] = np.cumsum(new)
    return found


def firsts(codes: Rows, rows: Rows | None = None) -> Rows:
    """Give the first row of each code; the codes leave no number out."""
    rows = np.arange(len(codes)) if rows is None else rows
    found = np.empty(codes.max(initial=-1) + 1, dtype=np.intp)
    found[codes[::-1]] = rows[::-1]  # where a code comes again, the last one written stays
    return found


def extreme(held: Planes, mask: Flags, *, largest: bool, skipna: bool) -> int:
    """Find the first row of the largest or smallest value."""
    name = "argmax" if largest else "argmin"
    if not len(mask):
        raise ValueError(f"attempt to get {name} of an empty sequence")
    if mask.any() and not skipna:
        raise ValueError("Encountered an NA value with skipna=False")
    if mask.all():
        raise ValueError("Encountered all NA values")
    (rows,) = np.nonzero(~mask)
    return int(rows[planes.extreme(*_at(held, rows), largest=largest)])


def places(held: Planes, wanted: Planes, side: str) -> Rows:
    """Find where values belong among sorted ones, by sorting both together."""
    first, second = (wanted, held) if side == "left" else (held, wanted)
    both = (np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]]))
    ordered = planes.argsort(*both)
    begin = 0 if side == "left" else len(held[0])
    ours = (ordered < begin) | (ordered >= begin + len(wanted[0]))
    found = np.empty(len(wanted[0]), dtype=np.intp)
    found[ordered[~ours] - begin] = np.cumsum(ours)[~ours]
    return found


def places_of(array: U128Array, wanted: Any, side: str) -> Any:
    """Find where numbers of any size belong among sorted values."""
    place = bisect.bisect_left if side == "left" else bisect.bisect_right
    if not pd.api.types.is_list_like(wanted):
        return np.intp(place(array, wanted))
    return np.array([place(array, value) for value in parsing.objects(wanted)], dtype=np.intp)


# Distinct values ------------------------------------------------------------------------


def factorize(held: Planes, mask: Flags, *, gaps: bool) -> tuple[Rows, Rows]:
    """Code the distinct values as they come, and give the first row of each; a gap is -1."""
    (rows,) = np.nonzero(~mask)
    codes = np.full(len(mask), -1, dtype=np.intp)
    codes[rows] = _codes(_at(held, rows) if mask.any() else held)
    found = firsts(codes[rows], rows)
    if gaps and mask.any():  # they are a value of their own
        row = int(mask.argmax())
        code = codes[:row].max(initial=-1) + 1
        codes[codes >= code] += 1
        codes[mask] = code
        found = np.insert(found, code, row)
    return codes, found


def _codes(held: Planes) -> Rows:
    """Code distinct values by one word mixed from both halves, unless two mix alike."""
    codes, _ = pd.factorize(_mixed(held))
    if planes.equal(held, _at(held, firsts(codes)[codes])).all():
        return codes
    low, found = pd.factorize(held[1])
    high, _ = pd.factorize(held[0])
    return pd.factorize(high * len(found) + low)[0]


def _mixed(held: Planes) -> Words:
    """Mix each value's halves into one word."""
    return held[0] * _ODD ^ held[1]


def isin(array: U128Array, wanted: Any) -> Flags:
    """Tell which values are among others; a gap is, where those have one."""
    listed = parsing.objects(wanted)
    gaps = np.array(pd.isna(listed), dtype=np.bool_)
    kept = [number for number in map(_whole, listed[~gaps]) if 0 <= number < planes.LIMIT]
    others = planes.from_ints(kept)
    (rows,) = np.nonzero(pd.Series(_mixed(array.planes)).isin(_mixed(others)))
    both = zip(_at(array.planes, rows), others, strict=True)
    hi, lo = (np.concatenate(pair) for pair in both)
    codes = _codes((hi, lo))
    found = np.zeros(len(array), dtype=np.bool_)
    found[rows] = np.isin(codes[: len(rows)], codes[len(rows) :])
    found[array.mask] = gaps.any()
    return found


def _whole(value: Any) -> int:
    """Give the integer that a value is, or -1, which no amount is."""
    try:
        return int(value) if int(value) == value else -1
    except (TypeError, ValueError, OverflowError):
        return -1


def hashes(held: Planes, mask: Flags, key: str) -> Words:
    """Hash each value by both halves."""
    hi, lo = (pd.util.hash_array(words, hash_key=key) for words in held)
    hashed = _mixed((hi, lo))
    hashed[mask] = _ODD
    return hashed
