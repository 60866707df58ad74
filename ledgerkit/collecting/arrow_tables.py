"""Frames to Arrow tables of one fixed schema each, and back, digit for digit."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pandas as pd

from ledgerkit.errors import DecodeError
from ledgerkit.frames import build
from ledgerkit.frames.schemas import SCHEMAS
from ledgerkit.u128 import arrow, parquet
from ledgerkit.u128.array import U128Dtype

if TYPE_CHECKING:
    from collections.abc import Iterator

# Lists of texts; every other column of Python values is written as JSON.
_LISTS = (
    "direct_pools",
    "input_data_ids",
    "liquid_tokens",
    "logs",
    "waits_for",
)
_JSON = {b"holds": b"json"}
# Columns in which None is a value, JSON's null, and what is missing is NA.
_NULLABLE = ("args", "data")
_BYTES = "bytes_base64"  # how a JSON column tells bytes from a text, and NA from null
# Amounts that anybody may invent: what no decimal128(38, 0) holds stands in a text beside.
_INVENTED = ("ft.balance", "transactions.deposit", "collected_receipts.deposit")
_END = 10**arrow.DIGITS


@cache
def schema(name: str) -> Any:
    """
    Give the Arrow schema of a frame's files: the same in each of them.

    Parameters
    ----------
    name
        A key of `SCHEMAS`.

    Returns
    -------
    schema
        A `pyarrow.Schema`. It tells pandas which dtype each column has.
    """
    pa = arrow.library()
    table = parquet.to_arrow(build.empty_frame(name))
    told = json.loads(table.schema.metadata[b"pandas"])
    told["index_columns"] = []
    told["columns"] = [column for column in told["columns"] if column["name"] in table.column_names]
    return pa.schema(_fields(name), metadata={b"pandas": json.dumps(told).encode()})


def _fields(name: str) -> Iterator[Any]:
    """Declare the fields of a frame's files."""
    pa = arrow.library()
    for column in SCHEMAS[name]:
        if column.dtype == "object":
            yield _object_field(column.name)
        else:
            yield pa.field(column.name, _types()[column.dtype])
        if f"{name}.{column.name}" in _INVENTED:
            mark = {parquet.MARK: column.name.encode()}
            yield pa.field(f"{column.name}_text", pa.string(), metadata=mark)


@cache
def _types() -> dict[str, Any]:
    """Give Arrow's types by the words of `SCHEMAS`."""
    pa = arrow.library()
    return {
        "str": pa.string(),
        "u128": pa.decimal128(arrow.DIGITS),
        "Int64": pa.int64(),
        "UInt64": pa.uint64(),
        "boolean": pa.bool_(),
        "bool": pa.bool_(),
        "float64": pa.float64(),
        "time": pa.timestamp("ns", "UTC"),
    }


def _object_field(name: str) -> Any:
    """Declare a column of Python values."""
    pa = arrow.library()
    if name in _LISTS:
        return pa.field(name, pa.list_(pa.string()))
    return pa.field(name, pa.string(), metadata=_JSON)


def table(name: str, frame: pd.DataFrame) -> Any:
    """
    Hold a frame in a table of its fixed schema.

    Parameters
    ----------
    name
        A key of `SCHEMAS`.
    frame
        Typed as declared there.

    Returns
    -------
    table
        A `pyarrow.Table`.

    Raises
    ------
    DecodeError
        If an amount of NEAR is 10**38 or more, which is beyond its supply.
    """
    wanted = schema(name)
    arrays = [_array(name, frame, field) for field in wanted]
    return arrow.library().Table.from_arrays(arrays, schema=wanted)


def _array(name: str, frame: pd.DataFrame, field: Any) -> Any:
    """Hold one column, or the digits of one, in an array."""
    pa = arrow.library()
    metadata = field.metadata or {}
    if source := metadata.get(parquet.MARK):
        return _digits(frame[source.decode()])
    values = frame[field.name]
    if isinstance(values.dtype, U128Dtype):
        return _amounts(name, values)
    if metadata == _JSON:
        missing = pd.NA if field.name in _NULLABLE else None
        held = [None if value is missing else _json(value) for value in values]
        return pa.array(held, type=field.type)
    return pa.array(
        values.to_numpy(dtype=object) if values.dtype == "str" else values.array,
        type=field.type,
        from_pandas=True,
    )


def _large(values: pd.Series[Any]) -> np.ndarray:
    """Find the values that no decimal128(38, 0) holds."""
    found: np.ndarray = (values >= _END).to_numpy(dtype=bool, na_value=False)
    return found


def _amounts(name: str, values: pd.Series[Any]) -> Any:
    """Hold amounts in decimals; those that are too large are null where a text holds them."""
    large = _large(values)
    if large.any():
        if f"{name}.{values.name}" not in _INVENTED:
            row = int(large.argmax())
            msg = f"{values.name} {values.iloc[row]} in row {row} is beyond all there is of NEAR"
            raise DecodeError(msg, path=f"{values.name}[{row}]")
        values = values.mask(large)
    return arrow.library().array(values.array)


def _digits(values: pd.Series[Any]) -> Any:
    """Write the largest values as texts; null for all others."""
    pa = arrow.library()
    large = _large(values)
    if not large.any():
        return pa.nulls(len(values), pa.string())
    held = np.full(len(values), None, dtype=object)
    held[large] = [str(value) for value in values[large]]
    return pa.array(held, type=pa.string())


def _json(value: Any) -> str:
    """Write a Python value as JSON; bytes are told from texts."""
    return msgspec.json.encode(_marked(value)).decode()


def _marked(value: Any) -> Any:
    """Mark bytes and NA, alone or in a list; an object that looks like a mark gets a bar more."""
    if isinstance(value, bytes):
        return {_BYTES: value}
    if value is pd.NA:
        return {_BYTES: None}
    if isinstance(value, list):
        return [_marked(item) for item in value]
    name = _mark(value)
    return value if name is None else {f"_{name}": value[name]}


def _unmarked(value: Any) -> Any:
    """Take the marks off."""
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    name = _mark(value)
    if name is None:
        return value
    if name != _BYTES:
        return {name[1:]: value[name]}
    return pd.NA if value[name] is None else base64.b64decode(value[name])


def _mark(value: Any) -> str | None:
    """Give the only name in an object, if it is that of a mark."""
    names = list(value) if isinstance(value, dict) and len(value) == 1 else [""]
    return names[0] if names[0].lstrip("_") == _BYTES else None


def frame(name: str, found: Any) -> pd.DataFrame:
    """
    Restore a frame from a table of its fixed schema.

    Parameters
    ----------
    name
        A key of `SCHEMAS`.
    found
        A `pyarrow.Table` with all of its columns, or some.

    Returns
    -------
    frame
        Typed as `schema(name)`, amounts of 10**38 and more included; of a narrower table
        those columns it has.
    """
    whole = parquet.whole(found)
    made = build.empty_frame(name)
    names = [column for column in made.columns if column in whole.column_names]
    plain = [column for column in names if made[column].dtype != object]
    found = whole.select(plain).to_pandas(types_mapper=_mapped().get, ignore_metadata=True)
    restored: pd.DataFrame = found.astype({column: made[column].dtype for column in plain})
    for column in set(names) - set(plain):
        missing = pd.NA if column in _NULLABLE else None
        restored[column] = pd.Series(_values(whole[column], missing), dtype=object)
    return restored[names]


@cache
def _mapped() -> dict[Any, Any]:
    """Give the dtypes of pandas by Arrow's types, so that nothing passes through float64."""
    pa = arrow.library()
    return {
        pa.decimal128(arrow.DIGITS): U128Dtype(),
        pa.decimal256(arrow.DIGITS + 1): U128Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.uint64(): pd.UInt64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
        pa.string(): build.TEXT,
    }


def _values(column: Any, missing: Any) -> list[Any]:
    """Restore the Python values of a column."""
    if not arrow.library().types.is_string(column.type):
        return list(column.to_pylist())
    return [
        missing if text is None else _unmarked(msgspec.json.decode(text))
        for text in column.to_pylist()
    ]
