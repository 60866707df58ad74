"""Build DataFrames with exactly the declared columns and dtypes of a schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from ledgerkit import validation
from ledgerkit.errors import DecodeError
from ledgerkit.frames import amounts
from ledgerkit.frames.schemas import SCHEMAS, Column
from ledgerkit.u128.array import U128Array
from ledgerkit.u128.human_units import TEXT


def build_frame(
    name: str, columns: Mapping[str, Any], *, attrs: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """
    Build the frame `name` with exactly its declared columns, in order and with their dtypes.

    The frame's `attrs` are `attrs` and the name of its schema. Raises `DecodeError` if a value does
    not fit its column's dtype.
    """
    declared = SCHEMAS[name]
    if len(columns) != len(declared):
        msg = f"{name}: these are not the declared columns: {sorted(columns)}"
        raise AssertionError(msg)
    arrays = {c.name: build_array(c, columns[c.name], f"{name}.{c.name}") for c in declared}
    frame = pd.DataFrame(arrays, copy=False)
    frame.attrs.update(attrs or {}, schema=name)
    return frame


def of_rows(
    name: str, rows: Sequence[Mapping[str, Any]], attrs: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """Build the frame `name` from rows with the values of its columns."""
    columns = {column.name: [row[column.name] for row in rows] for column in SCHEMAS[name]}
    return build_frame(name, columns, attrs=attrs)


def columns_of(
    name: str, rows: Sequence[Any], members: Mapping[str, str] | None = None, **computed: Any
) -> dict[str, Any]:
    """
    Return the columns of the frame `name`: the computed ones, and the members of rows.

    A member has the name of its column, unless `members` has another name.
    """
    names = {c.name: c.name for c in SCHEMAS[name] if c.name not in computed}
    names.update(members or {})
    read = {column: list(map(attrgetter(member), rows)) for column, member in names.items()}
    return read | computed


def build_array(column: Column, values: Any, name: str = "") -> Any:
    """Build the array of one column; `name` is its name in errors."""
    return _BUILDERS[column.dtype](values, name or column.name)


def empty_frame(name: str) -> pd.DataFrame:
    return build_frame(name, {column.name: [] for column in SCHEMAS[name]})


def schema(name: str) -> pd.DataFrame:
    """
    Return the schema of a frame: its columns, dtypes, units and meanings.

    Parameters
    ----------
    name
        The frame, such as ``"ft"`` or ``"receipts"``.

    Returns
    -------
    columns
        One row per column of the frame, with four columns of dtype str: name, dtype, unit
        and meaning.

    Raises
    ------
    InvalidRequestError
        If there is no such frame; the message lists the frames.

    Examples
    --------
    >>> lk.schema("top_holders")[["name", "dtype", "unit"]]
              name  dtype                        unit
    0  contract_id    str
    1         rank  Int64                       count
    2   account_id    str
    3      balance   u128  smallest unit of the token
    4       status    str
    """
    validation.one_of(name, "name", tuple(SCHEMAS))
    fields = ("name", "dtype", "unit", "meaning")
    return pd.DataFrame({f: [getattr(c, f) for c in SCHEMAS[name]] for f in fields}, dtype=TEXT)


def _objects(values: Sequence[Any] | np.ndarray) -> np.ndarray:
    """Convert Python values to an array of objects; lists stay lists."""
    if isinstance(values, np.ndarray):
        return values
    return np.fromiter(values, dtype=object, count=len(values))


def _text(values: Sequence[Any] | np.ndarray, _: str) -> Any:
    return pd.array(_objects(values), dtype=TEXT, copy=False)


def _amount(values: Any, name: str, *, signed: bool = False) -> Any:
    if isinstance(values, U128Array):
        return values
    if signed:
        return amounts.exact(values, name=name, signed=True)
    if isinstance(values, np.ndarray | pd.arrays.IntegerArray) and values.dtype.kind == "u":
        array = integers(values, name, np.uint64)
        words = array.to_numpy(np.uint64, na_value=0)
        return U128Array.of((np.zeros_like(words), words), array.isna())
    if str in set(map(type, values)):
        return amounts.parse(values, name=name.rpartition(".")[2])
    return amounts.exact(values, name=name)


def integers(values: Any, name: str, kind: Any = np.int64) -> Any:
    """Build an array of nullable integers of 64 bits, which never pass through float64."""
    if isinstance(values, pd.arrays.IntegerArray):
        return values
    if not isinstance(values, np.ndarray):
        with suppress(TypeError, ValueError, OverflowError):  # a value is missing or too large
            values = np.fromiter(values, dtype=kind, count=len(values))
    if isinstance(values, np.ndarray) and values.dtype == kind:
        return pd.arrays.IntegerArray(values, np.zeros(len(values), dtype=np.bool_))
    objects = _objects(values)
    missing = pd.isna(objects)
    if missing.all():
        return pd.arrays.IntegerArray(np.zeros(len(objects), kind), missing)
    filled = np.where(missing, 0, objects)
    try:
        return pd.arrays.IntegerArray(filled.astype(kind), missing)
    except OverflowError:
        limits = np.iinfo(kind)
        row = next(i for i, v in enumerate(filled) if not limits.min <= v <= limits.max)
        msg = f"{name} {filled[row]} in row {row} does not fit {np.dtype(kind).name}"
        raise DecodeError(msg, path=f"{name}[{row}]") from None


def _floats(values: Sequence[Any] | np.ndarray, _: str) -> Any:
    return np.array([np.nan if v is None or v is pd.NA else v for v in values], dtype=np.float64)


_NAT = np.iinfo(np.int64).min


def _times(values: Sequence[Any] | np.ndarray, name: str) -> Any:
    stamps = integers(values, name).to_numpy(dtype=np.int64, na_value=_NAT).view("M8[ns]")
    return pd.DatetimeIndex(stamps).tz_localize("UTC")


_BUILDERS: dict[str, Callable[[Any, str], Any]] = {
    "str": _text,
    "u128": _amount,
    "i129": partial(_amount, signed=True),
    "Int64": integers,
    "UInt64": partial(integers, kind=np.uint64),
    "boolean": lambda values, _: pd.array(_objects(values), dtype="boolean"),
    "bool": lambda values, _: np.asarray(values, dtype=bool),
    "float64": _floats,
    "Float64": lambda values, _: pd.array(_objects(values), dtype="Float64"),
    "time": _times,
    # From an array of only texts and NA, pandas would infer a column of dtype str.
    "object": lambda values, _: pd.Series(_objects(values), dtype=object, copy=False),
}
