"""Casts of columns of 128-bit integers: floats are rounded, all others are exact or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.extensions import no_default

from ledgerkit.u128 import decimal_text, parsing, planes

if TYPE_CHECKING:
    from ledgerkit.u128.array import U128Array

_MISSING = (
    "a value is missing, which {dtype} cannot hold: fillna() or dropna() first, or {nullable}"
)
_NULLABLE = {"b": "astype('boolean')", "i": "astype('Int64')", "u": "astype('UInt64')"}


def to_numpy(array: U128Array, dtype: np.dtype[Any], na_value: Any = no_default) -> np.ndarray:
    """Convert to a numpy array; missing values become `na_value`."""
    if dtype.kind not in _CASTS:
        raise TypeError(f"{array.dtype} cannot be cast to {dtype}")
    values = _CASTS[dtype.kind](array, dtype)
    if array.mask.any():
        values[array.mask] = _missing_value(dtype) if na_value is no_default else na_value
    return values.astype(dtype, copy=False)


def to_extension(array: U128Array, dtype: Any) -> Any:
    """Convert to one of pandas' own extension arrays; None for another extension dtype."""
    kind = dtype.construct_array_type()
    if isinstance(dtype, pd.StringDtype):
        return pd.array(to_texts(array), dtype=dtype)
    if not issubclass(kind, _MASKED):
        return None
    values = _CASTS[dtype.kind](array, dtype.numpy_dtype)
    return kind(values.astype(dtype.numpy_dtype, copy=False), array.isna())


def to_texts(array: U128Array) -> np.ndarray:
    """Format the digits of each value, NA where missing."""
    texts = decimal_text.format_texts(array.planes)
    texts[array.mask] = pd.NA
    return texts


def lookup(table: dict[Any, Any]) -> Callable[[Any], Any]:
    """Build a function that looks values up; missing ones are NA, or the table's default."""
    if hasattr(table, "__missing__"):
        return table.__getitem__
    return lambda value: table.get(value, pd.NA)


def from_results(results: Any) -> Any:
    """Build an array from a function's results, if they are ints, bools or floats; else None."""
    values = parsing.objects(results)
    mask = parsing.missing_in(values)
    kinds = set(map(type, values[~mask]))
    if kinds and kinds <= {bool, np.bool_}:
        return pd.arrays.BooleanArray(np.where(mask, 0, values).astype(np.bool_), mask)
    if kinds and kinds <= {float, np.float64}:
        return np.where(mask, np.nan, values).astype(np.float64)
    if int not in kinds:
        return None
    ints = values.copy()  # pandas would convert ints with missing values to floats
    ints[mask] = pd.NA
    return ints


def _missing_value(dtype: np.dtype[Any]) -> Any:
    if dtype.kind in _NULLABLE:
        raise ValueError(_MISSING.format(dtype=dtype, nullable=_NULLABLE[dtype.kind]))
    return np.nan if dtype.kind == "f" else pd.NA


def _to_integers(array: U128Array, dtype: np.dtype[Any]) -> np.ndarray:
    integers: np.ndarray = array.lo.astype(dtype)
    read, _ = parsing.read_ints(integers)
    if (row := planes.first(~planes.equal(array.planes, read))) is not None:
        limits = np.iinfo(dtype)
        edge = f"begins at {limits.min}" if array[row] < 0 else f"ends at {limits.max}"
        raise OverflowError(f"{array[row]} in row {row} does not fit {dtype}, which {edge}")
    return integers


_MASKED = (pd.arrays.IntegerArray, pd.arrays.FloatingArray, pd.arrays.BooleanArray)
_CASTS: dict[str, Callable[[U128Array, Any], np.ndarray]] = {
    "O": lambda array, _: planes.to_ints(array.planes),
    "f": lambda array, _: planes.to_ints(array.planes).astype(np.float64),
    "b": lambda array, _: (array.hi | array.lo) != 0,
    "i": _to_integers,
    "u": _to_integers,
    "U": lambda array, _: decimal_text.format_texts(array.planes),
    "S": lambda array, _: decimal_text.format_texts(array.planes),
}
