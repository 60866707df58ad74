"""Conversion of the tables of collections between frames and Arrow, by fixed schemas."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from ledgerkit.errors import DecodeError
from ledgerkit.frames import build
from ledgerkit.frames.collected import schema_name
from ledgerkit.frames.schemas import SCHEMAS
from ledgerkit.u128 import arrow, object_columns, parquet, planes
from ledgerkit.u128.array import I129Dtype, U128Array, U128Dtype
from ledgerkit.u128.human_units import TEXT

# Columns of lists of strings. Other columns of Python objects are stored as JSON, and so are signed
# amounts, as digits, because amounts of tokens may have 39 digits.
_LISTS = ("direct_pools", "input_data_ids", "liquid_tokens", "logs", "receipt_ids", "waits_for")
# Columns in which None is a value (null in JSON) and NA means missing.
_NULLABLE = ("args", "data", "details", "missing")
# Any token may report any amount. Amounts above 38 digits do not fit decimal128(38, 0) and are
# stored as text in a second column.
_UNBOUNDED = (
    "ft.balance",
    "transactions.deposit",
    "collected_receipts.deposit",
    "collected_transfers.amount",
    "collected_intents.given",
    "collected_intents.received",
    "collected_intents.fee",
    "statement.balance_before",
    "statement.balance_after",
    "statement_totals.opening",
    "statement_totals.closing",
)


@cache
def schema(table: str) -> Any:
    """Return the `pyarrow.Schema` of a table's files; its metadata has the pandas dtypes."""
    pa, name = arrow.library(), schema_name(table)
    empty = parquet.to_arrow(build.empty_frame(name))
    metadata = json.loads(empty.schema.metadata[b"pandas"])
    metadata["index_columns"] = []
    metadata["columns"] = [
        column for column in metadata["columns"] if column["name"] in empty.column_names
    ]
    return pa.schema(_fields(name), metadata={b"pandas": json.dumps(metadata).encode()})


def _fields(name: str) -> Iterator[Any]:
    pa = arrow.library()
    for column in SCHEMAS[name]:
        if column.name in _LISTS:
            yield pa.field(column.name, pa.list_(pa.string()))
        elif column.dtype in ("object", "i129"):
            yield pa.field(column.name, pa.string(), metadata=object_columns.JSON)
        else:
            yield pa.field(column.name, _types()[column.dtype])
        if f"{name}.{column.name}" in _UNBOUNDED:
            mark = {parquet.MARK: column.name.encode()}
            yield pa.field(f"{column.name}_text", pa.string(), metadata=mark)


@cache
def _types() -> dict[str, Any]:
    pa = arrow.library()
    return {
        "str": pa.string(),
        "u128": pa.decimal128(arrow.DIGITS),
        "Int64": pa.int64(),
        "UInt64": pa.uint64(),
        "boolean": pa.bool_(),
        "bool": pa.bool_(),
        "float64": pa.float64(),
        "Float64": pa.float64(),
        "time": pa.timestamp("ns", "UTC"),
    }


def of_frame(table: str, frame: pd.DataFrame) -> Any:
    """
    Convert a frame to a `pyarrow.Table` with its fixed schema.

    Raises `DecodeError` if an amount of NEAR is 10**38 or more, which is above its supply.
    """
    columns = {column: frame[column] for column in frame.columns}
    # An array of objects replaces NA by None when it is iterated.
    arrays = {
        column: values.to_numpy() if values.dtype == object else values.array
        for column, values in columns.items()
    }
    return _build_table(table, arrays)


def of_frames(table: str, frames: Iterable[pd.DataFrame]) -> Any:
    """Convert frames as `of_frame` does, one below the other, into one table."""
    tables = [of_frame(table, frame) for frame in frames]
    return arrow.library().concat_tables([schema(table).empty_table(), *tables])


def of_columns(table: str, columns: Mapping[str, Any]) -> Any:
    """
    Convert the columns that `build.build_frame` takes, with the result of `of_frame`.

    Arrow arrays are not converted.
    """
    plain = {c.name: c for c in SCHEMAS[schema_name(table)] if c.dtype not in ("str", "object")}
    arrays = {
        name: build.build_array(plain[name], values) if name in plain else values
        for name, values in columns.items()
    }
    return _build_table(table, arrays)


def _build_table(table: str, columns: Mapping[str, Any]) -> Any:
    """Convert arrays of Arrow or pandas; texts and objects may be any sequences."""
    fixed_schema, name = schema(table), schema_name(table)
    arrays = [_array(name, columns, field) for field in fixed_schema]
    return arrow.library().Table.from_arrays(arrays, schema=fixed_schema)


def _array(name: str, columns: Mapping[str, Any], field: Any) -> Any:
    pa = arrow.library()
    metadata = field.metadata or {}
    if source := metadata.get(parquet.MARK):
        return _large_as_text(columns[source.decode()])
    values = columns[field.name]
    if isinstance(values, pa.Array):
        return values
    if isinstance(values, U128Array):
        path = f"{name}.{field.name}"
        return pa.array(values, field.type) if values.signed else _amounts(path, values)
    if object_columns.is_json(field):
        return object_columns.to_arrow(values, _missing(field.name))
    if pa.types.is_string(field.type) and isinstance(values, ExtensionArray):
        values = values.to_numpy(dtype=object)
    elif isinstance(values, np.ndarray) and values.dtype == object:
        with suppress(TypeError, pa.ArrowInvalid):  # NaN or NA instead of None
            return pa.array(values.tolist(), type=field.type)
    return pa.array(values, type=field.type, from_pandas=True)


def _missing(column: str) -> Any:
    return pd.NA if column in _NULLABLE else None


def _amounts(path: str, values: U128Array) -> Any:
    """Convert amounts to decimals; large ones are null if there is a text column for them."""
    large = arrow.too_large(values.planes, values.mask)
    if (row := planes.first(large)) is not None:
        if path not in _UNBOUNDED:
            column = path.partition(".")[2]
            msg = f"{column} {values[row]} in row {row} is above the supply of NEAR"
            raise DecodeError(msg, path=f"{column}[{row}]")
        values = U128Array.of(values.planes, values.mask | large)
    return arrow.library().array(values)


def _large_as_text(values: U128Array) -> Any:
    is_small = ~arrow.too_large(values.planes, values.mask)
    return arrow.library().array(U128Array.of(values.planes, is_small), arrow.library().string())


def frame(table: str, rows: Any, **attrs: Any) -> pd.DataFrame:
    """
    Convert a `pyarrow.Table` of a table's rows to a frame with `attrs` and its schema's name.

    Amounts of 10**38 and more are included. The frame has only the columns of `rows`.
    """
    name = schema_name(table)
    whole = parquet.restore_large(rows)
    empty = build.empty_frame(name)
    names = [column for column in empty.columns if column in whole.column_names]
    dtypes = empty.dtypes
    plain = [column for column in names if dtypes[column] not in (object, I129Dtype())]
    converted = whole.select(plain).to_pandas(types_mapper=_dtypes().get, ignore_metadata=True)
    result: pd.DataFrame = converted.astype({column: dtypes[column] for column in plain})
    for column in set(names) - set(plain):
        if dtypes[column] == I129Dtype():
            result[column] = I129Dtype().__from_arrow__(whole[column])
        else:
            result[column] = pd.Series(_objects(whole[column], _missing(column)), dtype=object)
    result = result[names]
    result.attrs.update(attrs, schema=name)
    return result


@cache
def _dtypes() -> dict[Any, Any]:
    """Return the pandas dtypes by Arrow type, so that no integer passes through float64."""
    pa = arrow.library()
    return {
        pa.decimal128(arrow.DIGITS): U128Dtype(),
        arrow.every_value(): U128Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.uint64(): pd.UInt64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
        pa.string(): TEXT,
    }


def _objects(column: Any, missing: Any) -> list[Any]:
    if not arrow.library().types.is_string(column.type):
        return list(column.to_pylist())
    return object_columns.from_arrow(column, missing)
