"""Columns of 128-bit integers in other dtypes: floats are rounded, all else is exact or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.extensions import no_default

from ledgerkit.u128 import decimal_text, parsing, planes

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.u128.array import U128Array

_GAPS = "a value is missing, and {dtype} has no gaps: fillna() or dropna() first, or {other}"
_INSTEAD = {"b": "astype('boolean')", "i": "astype('Int64')", "u": "astype('UInt64')"}


def to_numpy(array: U128Array, dtype: np.dtype[Any], na_value: Any = no_default) -> np.ndarray:
    """Hold the values in a numpy array of a dtype, gaps as `na_value`."""
    if dtype.kind not in _WRITERS:
        raise TypeError(f"u128 does not become {dtype}")
    written = _WRITERS[dtype.kind](array, dtype)
    if array.mask.any():
        written[array.mask] = _gap(dtype) if na_value is no_default else na_value
    return written.astype(dtype, copy=False)


def to_extension(array: U128Array, dtype: Any) -> Any:
    """Hold the values in one of pandas' own arrays; None for a dtype of another kind."""
    kind = dtype.construct_array_type()
    if isinstance(dtype, pd.StringDtype):
        return pd.array(to_texts(array), dtype=dtype)
    if not issubclass(kind, _MASKED):
        return None
    held = _WRITERS[dtype.kind](array, dtype.numpy_dtype)
    return kind(held.astype(dtype.numpy_dtype, copy=False), array.isna())


def nullable(array: U128Array) -> Any:
    """Hold the values rounded to float64, gaps kept."""
    return pd.arrays.FloatingArray(planes.to_float(*array.planes), array.isna())


def to_texts(array: U128Array) -> np.ndarray:
    """Write the digits of each value, NA where missing."""
    written = decimal_text.write(*array.planes)
    written[array.mask] = pd.NA
    return written


def lookup(table: dict[Any, Any]) -> Callable[[Any], Any]:
    """Look values up; what the table lacks is missing, unless it has a default of its own."""
    if hasattr(table, "__missing__"):
        return table.__getitem__
    return lambda value: table.get(value, pd.NA)


def results(found: Any) -> Any:
    """Hold what a function gave row by row, if that is ints, bools or floats; None otherwise."""
    held = parsing.objects(found)
    mask = np.array(pd.isna(held), dtype=np.bool_)
    kinds = set(map(type, held[~mask]))
    if kinds and kinds <= {bool, np.bool_}:
        return pd.arrays.BooleanArray(np.where(mask, 0, held).astype(np.bool_), mask)
    if kinds and kinds <= {float, np.float64}:
        return np.where(mask, np.nan, held).astype(np.float64)
    if int not in kinds:
        return None
    ints = held.copy()  # beside gaps pandas would make floats of them
    ints[mask] = pd.NA
    return ints


def _gap(dtype: np.dtype[Any]) -> Any:
    """Give what stands for a gap in a numpy dtype."""
    if dtype.kind in _INSTEAD:
        raise ValueError(_GAPS.format(dtype=dtype, other=_INSTEAD[dtype.kind]))
    return np.nan if dtype.kind == "f" else pd.NA


def _integers(array: U128Array, dtype: np.dtype[Any]) -> np.ndarray:
    """Cast to integers of fewer bits, refusing the first value that has more."""
    most = np.iinfo(dtype).max
    over = (array.hi != 0) | (array.lo > np.uint64(most))
    if over.any():
        row = int(over.argmax())
        raise OverflowError(f"{array[row]} in row {row} does not fit {dtype}, which ends at {most}")
    return array.lo.astype(dtype)


_MASKED = (pd.arrays.IntegerArray, pd.arrays.FloatingArray, pd.arrays.BooleanArray)
_WRITERS: dict[str, Callable[[U128Array, Any], np.ndarray]] = {
    "O": lambda array, _: planes.to_ints(*array.planes),
    "f": lambda array, _: planes.to_float(*array.planes),
    "b": lambda array, _: (array.hi | array.lo) != 0,
    "i": _integers,
    "u": _integers,
    "U": lambda array, _: decimal_text.write(*array.planes),
    "S": lambda array, _: decimal_text.write(*array.planes),
}
