"""Columns of 128-bit integers reduced by group: what pandas asks of `_groupby_op`."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ledgerkit.u128 import casts, ordering, parsing, planes, reductions

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.u128.array import U128Array
    from ledgerkit.u128.planes import Flags, Rows

_BY_RANK = ("idxmin", "idxmax", "rank")


def apply(array: U128Array, how: str, **options: Any) -> Any:
    """
    Compute one of pandas' operations by group.

    Parameters
    ----------
    array
        The column.
    how
        The operation, as pandas calls it.
    **options
        What pandas tells: `ids`, the group of each row or -1, `ngroups`, `min_count`, `skipna`.

    Returns
    -------
    result
        A column of a row a group, or of a row a row where the operation runs along.
    """
    if how in _OWN:
        return _OWN[how](array, how, options)
    if how in reductions.ROUNDED:
        return _floats(_theirs(casts.nullable(array), how, options))
    if how in reductions.LOGICAL:
        return _theirs(array.astype("boolean"), how, options)
    if how in _BY_RANK:
        return _ranked(array, how, options)
    # For a method that columns have, pandas goes on to call it group by group.
    raise NotImplementedError(f"u128 has no {how} by group")


def quantile(array: U128Array, options: dict[str, Any]) -> np.ndarray:
    """Compute quantiles by group, of float64."""
    found = casts.nullable(array)._groupby_quantile(**options)  # noqa: SLF001 - pandas' own hook
    return _floats(found)


def _floats(found: Any) -> np.ndarray:
    """Hold what pandas computed in numpy's float64, a gap as NaN."""
    floats: np.ndarray = found.to_numpy(np.float64, na_value=np.nan)
    return floats


def _theirs(array: Any, how: str, options: dict[str, Any]) -> Any:
    """Let one of pandas' own arrays compute."""
    return array._groupby_op(how=how, **options)  # noqa: SLF001 - pandas' own hook


def _numbered(rows: Any, mask: Flags) -> Any:
    """Let rows or ranks stand for the values: pandas computes with small integers."""
    return pd.arrays.IntegerArray(rows.astype(np.int64), mask.copy())


def _picked(array: U128Array, rows: Any) -> U128Array:
    """Take the rows that pandas found, a gap where it found none."""
    return array.take(rows.to_numpy(np.intp, na_value=-1), allow_fill=True)


def _ranked(array: U128Array, how: str, options: dict[str, Any]) -> Any:
    """Compute what depends on the order only."""
    found = _theirs(_numbered(ordering.ranks(array.planes), array.mask), how, options)
    return found if isinstance(found, np.ndarray) else _floats(found)


def _first_or_last(array: U128Array, how: str, options: dict[str, Any]) -> U128Array:
    """Find the first or last value of each group."""
    rows = _numbered(np.arange(len(array)), array.mask)
    return _picked(array, _theirs(rows, how, options))


def _running_extremes(array: U128Array, how: str, options: dict[str, Any]) -> U128Array:
    """Give the smallest or largest value of the group so far."""
    ranks = ordering.ranks(array.planes)
    found = _theirs(_numbered(ranks, array.mask), how, options)
    best = found.to_numpy(np.intp, na_value=-1)
    rows = ordering.firsts(ranks)[best]
    return type(array)(array.hi[rows], array.lo[rows], best < 0)


def _gaps(array: U128Array, options: dict[str, Any], least: int) -> Flags:
    """Tell which groups have no result: too few values, or a gap that is not skipped."""
    ids, count = options["ids"], options["ngroups"]
    gaps, needed = np.zeros(count, dtype=np.bool_), max(options["min_count"], least)
    if needed > 0:
        gaps |= np.bincount(ids[(ids >= 0) & ~array.mask], minlength=count) < needed
    if not options.get("skipna", True):
        gaps |= np.bincount(ids[(ids >= 0) & array.mask], minlength=count) > 0
    return gaps


def _codes(array: U128Array, options: dict[str, Any]) -> Rows:
    """Give the group of each value, -1 for gaps."""
    codes: Rows = options["ids"]
    return np.where(array.mask, -1, codes) if array.mask.any() else codes


def _extremes(array: U128Array, how: str, options: dict[str, Any]) -> U128Array:
    """Find the smallest or largest value of each group."""
    codes, count = _codes(array, options), options["ngroups"]
    rows = planes.group_extremes(codes, count, *array.planes, largest=how == "max")
    gaps = _gaps(array, options, least=1)
    return array.take(np.where(gaps, -1, rows), allow_fill=True)


def _totals(array: U128Array, _: str, options: dict[str, Any]) -> U128Array:
    """Add up each group."""
    (hi, lo), over = planes.group_totals(_codes(array, options), options["ngroups"], *array.planes)
    gaps = _gaps(array, options, least=0)
    _check_totals(array, over & ~gaps, options)
    return type(array)(hi, lo, gaps)


def _check_totals(array: U128Array, over: Flags, options: dict[str, Any]) -> None:
    """Name the row with which the first too large sum leaves the range."""
    if over.any():
        (rows,) = np.nonzero(options["ids"] == over.argmax())
        _, past = planes.cumulate(array.hi[rows], array.lo[rows])
        parsing.overflow(int(rows[past.argmax()]), "the group's sum")


def _products(array: U128Array, _: str, options: dict[str, Any]) -> U128Array:
    """Multiply each group."""
    codes, gaps = _codes(array, options), _gaps(array, options, least=0)
    ordered = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[ordered], np.arange(options["ngroups"] + 1))
    groups = [array[ordered[begin:end]] for begin, end in pairwise(ends)]
    found = [
        0 if gap else reductions.product(group.planes)
        for group, gap in zip(groups, gaps, strict=True)
    ]
    return array.of(planes.from_ints(found), gaps)


def _running_sums(array: U128Array, how: str, options: dict[str, Any]) -> U128Array:
    """Add up each group row by row; where its total stays in the range, all before it do."""
    mask = _theirs(_numbered(np.zeros(len(array)), array.mask), how, options).isna()
    ids = np.where(mask, -1, options["ids"])
    _, over = planes.group_totals(ids, options["ngroups"], *array.planes)
    _check_totals(array, over, options)
    ordered = np.argsort(ids, kind="stable")
    (hi, lo), _ = planes.cumulate(*(words[ordered] for words in array.planes))
    # Modulo 2^128, what was added before the group began comes off again.
    before = np.searchsorted(ids[ordered], ids[ordered]) - 1
    hi_off, lo_off = (np.where(before < 0, 0, words[before]) for words in (hi, lo))
    found = array.of((np.empty_like(hi), np.empty_like(lo)), mask)
    found.hi[ordered] = hi - hi_off - (lo < lo_off)
    found.lo[ordered] = lo - lo_off
    return type(array)(found.hi, found.lo, mask | (ids < 0))


def _running_products(array: U128Array, how: str, options: dict[str, Any]) -> U128Array:
    """Multiply each group row by row."""
    mask = _theirs(_numbered(np.zeros(len(array)), array.mask), how, options).isna()
    ids, ints = options["ids"], planes.to_ints(*array.planes)
    hi, lo = np.zeros((2, len(array)), dtype=np.uint64)
    for group in range(options["ngroups"]):
        (rows,) = np.nonzero(ids == group)
        hi[rows], lo[rows] = reductions.running_products(ints, mask, rows.tolist())
    return type(array)(hi, lo, mask | (ids < 0))


_OWN: dict[str, Callable[[U128Array, str, dict[str, Any]], Any]] = {
    "sum": _totals,
    "prod": _products,
    "min": _extremes,
    "max": _extremes,
    "first": _first_or_last,
    "last": _first_or_last,
    "cumsum": _running_sums,
    "cumprod": _running_products,
    "cummin": _running_extremes,
    "cummax": _running_extremes,
}
