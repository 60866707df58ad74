"""Columns of Python objects as JSON text in Arrow tables: integers of any size, dicts and lists."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable
from typing import Any

import msgspec
import pandas as pd

from ledgerkit import json_decoding
from ledgerkit.u128 import arrow, parsing
from ledgerkit.u128.human_units import TEXT

# The metadata of a field with JSON text: its nulls are None, or NA.
JSON = {b"holds": b"json"}
JSON_WITH_NA = {**JSON, b"missing": b"NA"}
_NA = type(pd.NA)
_TYPES = {bool, bytes, dict, float, int, list, str}
_BYTES = "bytes_base64"  # the key that marks bytes and NA within JSON


# Values ---------------------------------------------------------------------------------


def encode(value: Any) -> str:
    """Encode a Python value as JSON; bytes and NA are marked."""
    return msgspec.json.encode(_marked(value)).decode()


def decode(text: str) -> Any:
    """Decode a value that `encode` returned."""
    return _unmarked(json_decoding.decode(text))


def _marked(value: Any) -> Any:
    """Mark bytes and NA, also in a list; escape a dict that looks like a mark with "_"."""
    if isinstance(value, bytes):
        return {_BYTES: value}
    if value is pd.NA:
        return {_BYTES: None}
    if isinstance(value, list):
        return [_marked(item) for item in value]
    name = _mark_name(value)
    return value if name is None else {f"_{name}": value[name]}


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    name = _mark_name(value)
    if name is None:
        return value
    if name != _BYTES:
        return {name[1:]: value[name]}
    return pd.NA if value[name] is None else base64.b64decode(value[name])


def _mark_name(value: Any) -> str | None:
    """Return the only key of a dict if it is the key of a mark, escaped or not."""
    names = list(value) if isinstance(value, dict) and len(value) == 1 else [""]
    return names[0] if names[0].lstrip("_") == _BYTES else None


# Columns --------------------------------------------------------------------------------


def to_arrow(values: Iterable[Any], missing: Any) -> Any:
    """Convert values to an Arrow array of JSON text, in which `missing`, None or NA, is null."""
    texts = [None if value is missing else encode(value) for value in values]
    return arrow.library().array(texts, type=arrow.library().string())


def from_arrow(column: Any, missing: Any) -> list[Any]:
    return [missing if text is None else decode(text) for text in column.to_pylist()]


def table(frame: pd.DataFrame) -> Any:
    """Convert a frame to an Arrow table; fields of JSON text are marked in their metadata."""
    stored, fields = frame.copy(deep=False), {}
    for position, dtype in enumerate(frame.dtypes):
        values = frame.iloc[:, position].tolist() if dtype.kind == "O" else []
        if _needs_json(values):
            has_na = any(value is pd.NA for value in values)
            values = [None if _is_nan(value) else value for value in values]
            texts = to_arrow(values, pd.NA if has_na else None).to_pylist()
            stored.isetitem(position, pd.array(texts, dtype=TEXT))
            fields[position] = JSON_WITH_NA if has_na else JSON
    converted = arrow.library().Table.from_pandas(stored)
    schema = converted.schema
    for position, metadata in fields.items():
        schema = schema.set(position, schema.field(position).with_metadata(metadata))
    return arrow.library().Table.from_arrays(converted.columns, schema=schema)


def restore(frame: pd.DataFrame, source: Any) -> None:
    """Restore the Python objects of a frame that was converted from a table, in place."""
    index = (source.schema.pandas_metadata or {}).get("index_columns", [])
    fields = [
        (column, field) for column, field in enumerate(source.schema) if field.name not in index
    ]
    for position, (column, field) in enumerate(fields):
        if is_json(field):
            values = from_arrow(source[column], _missing(field.metadata))
        elif arrow.library().types.is_list(field.type):  # pandas converts them to arrays
            values = source[column].to_pylist()
        else:
            continue
        frame.isetitem(position, parsing.objects(values))


def is_json(field: Any) -> bool:
    """Return True if the metadata of an Arrow field says that it has JSON text."""
    return (field.metadata or {}).items() >= JSON.items()


def _missing(metadata: Any) -> Any:
    return pd.NA if metadata.items() >= JSON_WITH_NA.items() else None


def _needs_json(values: list[Any]) -> bool:
    """
    Return True for values that only JSON holds exactly.

    Arrow's integers have 64 bits, and its structs the same members in each row. Texts, bytes, lists
    of texts, and values that JSON lacks have types in Arrow.
    """
    present = [value for value in values if not (value is None or _is_nan(value))]
    types = {list if isinstance(value, list) else type(value) for value in present} - {_NA}
    if types == {list}:
        lists = (value for value in present if isinstance(value, list))
        is_native = all(type(item) is str for items in lists for item in items)
    else:
        is_native = len(types) < 2 and not types & {dict, int}  # noqa: PLR2004 - of one type
    if not types:
        return any(value is pd.NA for value in values)
    return not is_native and types <= _TYPES and all(map(_is_exact, values))


def _is_exact(value: Any, *, is_member: bool = False) -> bool:
    if isinstance(value, dict):
        return all(
            type(key) is str and _is_exact(member, is_member=True) for key, member in value.items()
        )
    if isinstance(value, list):
        return all(_is_exact(item, is_member=is_member) for item in value)
    if isinstance(value, float):
        return math.isfinite(value) or not is_member
    return not is_member or value is None or (type(value) in _TYPES and type(value) is not bytes)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
