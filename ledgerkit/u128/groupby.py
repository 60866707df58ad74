"""Operations by group on columns of 128-bit integers, behind pandas' `_groupby_op`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ledgerkit.u128 import arithmetic, ordering, parsing, planes, reductions

if TYPE_CHECKING:
    from ledgerkit.u128.array import U128Array
    from ledgerkit.u128.planes import Flags, Rows

# Options of `_groupby_op` that the methods of groups do not have.
_HOOK_OPTIONS = {"has_dropped_na", "ids", "min_count", "ngroups"}


def apply(array: U128Array, how: str, options: dict[str, Any]) -> Any:
    """Compute an operation by group; `options` are those that pandas passes to `_groupby_op`."""
    if how in _OPERATIONS:
        return _OPERATIONS[how](array, how, options)
    if how in reductions.ROUNDED:
        return _to_floats(_by_pandas(array.astype("Float64"), how, options))
    if how in reductions.LOGICAL:
        return _by_pandas(array.astype("boolean"), how, options)
    # pandas then calls a method of that name, if columns have one, group by group.
    raise NotImplementedError(f"{array.dtype} has no {how} by group")


def quantile(array: U128Array, options: dict[str, Any]) -> np.ndarray:
    """Compute quantiles by group, as float64; the values are in the order of the groups."""
    count = options["ngroups"]
    ids = np.repeat(np.arange(count), options["ends"] - options["starts"])
    groups = _groups(array.to_numpy(np.float64), ids, count)
    return _to_floats(groups.quantile(options["qs"], interpolation=options["interpolation"]))


def _groups(values: Any, ids: Rows, count: int) -> Any:
    """Group values of a type that pandas computes with; -1 is no group."""
    keys: Any = pd.Categorical.from_codes(ids, categories=pd.RangeIndex(count))
    return pd.Series(values).groupby(keys, observed=False)


def _by_pandas(values: Any, how: str, options: dict[str, Any]) -> Any:
    """Compute an operation with the method of pandas' groups; return an array."""
    public = {name: value for name, value in options.items() if name not in _HOOK_OPTIONS}
    groups = _groups(values, options["ids"], options["ngroups"])
    return getattr(groups, how)(**public).array


def _to_floats(result: Any) -> np.ndarray:
    floats: np.ndarray = result.to_numpy(np.float64, na_value=np.nan)
    return floats


def _as_integers(positions: Any, mask: Flags) -> Any:
    """Convert rows or ranks, which represent the values, to an array that pandas computes with."""
    return pd.arrays.IntegerArray(positions.astype(np.int64), mask.copy())


def _ranks(array: U128Array, how: str, options: dict[str, Any]) -> np.ndarray:
    ranks = _as_integers(ordering.ranks(array.planes), array.mask)
    options["method"] = options.pop("ties_method")
    return _to_floats(_by_pandas(ranks, how, options))


def _first_or_last(array: U128Array, how: str, options: dict[str, Any]) -> U128Array:
    rows = _as_integers(np.arange(len(array)), array.mask)
    groups = _groups(rows, options["ids"], options["ngroups"])
    skipna = options.get("skipna", True)
    chosen = getattr(groups, how)(min_count=options["min_count"], skipna=skipna)
    return array.take(chosen.to_numpy(np.intp, na_value=-1), allow_fill=True)


def _running_extremes(array: U128Array, how: str, options: dict[str, Any]) -> U128Array:
    ranks = ordering.ranks(array.planes)
    result = _by_pandas(_as_integers(ranks, array.mask), how, options)
    best = result.to_numpy(np.intp, na_value=-1)
    rows = ordering.first_rows(ranks)[best]
    return array.of(planes.clean(planes.take(array.planes, rows), best < 0), best < 0)


def _missing_groups(array: U128Array, options: dict[str, Any], min_count: int) -> Flags:
    """Return which groups have no result: too few values, or a missing one with skipna=False."""
    ids, count = options["ids"], options["ngroups"]
    missing, needed = np.zeros(count, dtype=np.bool_), max(options["min_count"], min_count)
    if needed > 0:
        missing |= np.bincount(ids[(ids >= 0) & ~array.mask], minlength=count) < needed
    if not options.get("skipna", True):
        missing |= np.bincount(ids[(ids >= 0) & array.mask], minlength=count) > 0
    return missing


def _codes(array: U128Array, options: dict[str, Any]) -> Rows:
    codes: Rows = options["ids"]
    return np.where(array.mask, -1, codes) if array.mask.any() else codes


def _extreme_rows(array: U128Array, how: str, options: dict[str, Any]) -> Rows:
    codes, count = _codes(array, options), options["ngroups"]
    rows = planes.group_extremes(codes, count, array.planes, largest=how in {"max", "idxmax"})
    return np.where(_missing_groups(array, options, min_count=1), -1, rows)


def _extremes(array: U128Array, how: str, options: dict[str, Any]) -> U128Array:
    return array.take(_extreme_rows(array, how, options), allow_fill=True)


def _open_high_low_close(array: U128Array, _: str, options: dict[str, Any]) -> dict[str, U128Array]:
    return {
        "open": _first_or_last(array, "first", options),
        "high": _extremes(array, "max", options),
        "low": _extremes(array, "min", options),
        "close": _first_or_last(array, "last", options),
    }


def _totals(array: U128Array, _: str, options: dict[str, Any]) -> U128Array:
    codes, count = _codes(array, options), options["ngroups"]
    totals = planes.group_totals(codes, count, array.planes)
    sums, overflows = arithmetic.check_range(totals, signed=array.signed)
    missing = _missing_groups(array, options, min_count=0)
    if (group := planes.first(overflows & ~missing)) is not None:
        (rows,) = np.nonzero(codes == group)
        running = planes.cumulate(planes.take(array.planes, rows))
        exceeds = arithmetic.check_range(running, signed=array.signed)[1]
        row = int(rows[exceeds.argmax()])
        parsing.raise_overflow(row, "the group's sum", signed=array.signed)
    return array.of(planes.clean(sums, missing), missing)


def _means(array: U128Array, _: str, options: dict[str, Any]) -> np.ndarray:
    codes, count = _codes(array, options), options["ngroups"]
    words, high_words = planes.group_totals(codes, count, array.planes)
    groups = np.flatnonzero(~_missing_groups(array, options, min_count=1))
    totals = (
        planes.to_ints(planes.take(words, groups))
        + high_words[groups].astype(object) * planes.LIMIT
    )
    means = np.full(count, np.nan)
    means[groups] = totals / np.bincount(codes[codes >= 0], minlength=count)[groups]
    return means


def _products(array: U128Array, _: str, options: dict[str, Any]) -> U128Array:
    codes, missing = _codes(array, options), _missing_groups(array, options, min_count=0)
    ordered = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[ordered], np.arange(options["ngroups"] + 1))
    groups = [array[ordered[begin:end]] for begin, end in pairwise(ends)]
    products = [
        0 if is_missing else group.prod() for group, is_missing in zip(groups, missing, strict=True)
    ]
    values = parsing.read(products, signed=array.signed)[0]
    return array.of(values, missing)


def _running_mask(array: U128Array, how: str, options: dict[str, Any]) -> Flags:
    """Return where pandas leaves a running result missing."""
    mask: Flags = _by_pandas(_as_integers(np.zeros(len(array)), array.mask), how, options).isna()
    return mask


def _running_sums(array: U128Array, how: str, options: dict[str, Any]) -> U128Array:
    mask = _running_mask(array, how, options)
    ids = np.where(mask, -1, options["ids"])
    ordered = np.argsort(ids, kind="stable")
    words, high_words = planes.cumulate(planes.take(array.planes, ordered))
    # Subtract the sum of all groups before.
    before = np.searchsorted(ids[ordered], ids[ordered]) - 1
    first = before < 0
    words_before: Any = tuple(np.where(first, 0, plane[before]) for plane in words)
    borrow = planes.less(words, words_before).view(np.int8)
    high_words = high_words - np.where(first, 0, high_words[before]) - borrow
    result = planes.subtract(words, words_before), high_words
    sums, overflows = arithmetic.check_range(result, signed=array.signed)
    mask |= ids < 0
    overflows &= ~mask[ordered]
    if overflows.any():
        row = int(ordered[overflows].min())
        parsing.raise_overflow(row, "the group's sum", signed=array.signed)
    rows = np.empty_like(ordered)
    rows[ordered] = np.arange(len(rows))
    return array.of(planes.clean(planes.take(sums, rows), mask), mask)


def _running_products(array: U128Array, how: str, options: dict[str, Any]) -> U128Array:
    mask = _running_mask(array, how, options)
    ids, ints = options["ids"], planes.to_ints(array.planes)
    results = np.zeros(len(ints), dtype=object)
    for group in range(options["ngroups"]):
        (rows,) = np.nonzero(ids == group)
        products = reductions.running_products(ints, mask, rows.tolist(), signed=array.signed)
        results[rows] = planes.to_ints(products)
    values = parsing.read(results, signed=array.signed)[0]
    return array.of(values, mask | (ids < 0))


_OPERATIONS: dict[str, Callable[[U128Array, str, dict[str, Any]], Any]] = {
    "sum": _totals,
    "mean": _means,
    "prod": _products,
    "min": _extremes,
    "max": _extremes,
    "idxmin": _extreme_rows,
    "idxmax": _extreme_rows,
    "ohlc": _open_high_low_close,
    "rank": _ranks,
    "first": _first_or_last,
    "last": _first_or_last,
    "cumsum": _running_sums,
    "cumprod": _running_products,
    "cummin": _running_extremes,
    "cummax": _running_extremes,
}
