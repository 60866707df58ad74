"""Frames as CSV, Parquet and Excel files, with exact integers."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from ledgerkit.errors import InvalidRequestError
from ledgerkit.frames.csv_text import csv_text
from ledgerkit.frames.excel import to_excel
from ledgerkit.u128.parquet import write_parquet

if TYPE_CHECKING:
    from pathlib import Path


class Format(NamedTuple):
    """A file format: its name, the library that it needs, its media type and its function."""

    label: str
    library: str
    media_type: str
    write: Callable[[pd.DataFrame], bytes]


def file_bytes(frame: pd.DataFrame, path: Path) -> bytes:
    """Write a frame in the format that a path's ending names."""
    chosen = FORMATS.get(path.suffix.removeprefix("."))
    if chosen is None:
        expected = "a path that ends in .csv, .parquet or .xlsx"
        raise InvalidRequestError.refuse("path", str(path), expected)
    return chosen.write(frame)


def available() -> dict[str, str]:
    return {end: form.label for end, form in FORMATS.items() if find_spec(form.library)}


def objects_as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert columns of Python objects to text: texts stay, other values become JSON."""
    # As JSON an integer of any size keeps its digits; the file formats would lose some.
    columns = [
        pd.Series([_cell_text(value) for value in column], dtype="str", index=frame.index)
        if column.dtype == object
        else column
        for _, column in frame.items()
    ]
    texts = pd.DataFrame(dict(enumerate(columns)), index=frame.index)
    return texts.set_axis(frame.columns, axis="columns")


def _in_memory(write: Callable[..., None], frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    write(frame, buffer)
    return buffer.getvalue()


FORMATS = {
    "csv": Format(
        "CSV", "pandas", "text/csv", lambda frame: csv_text(objects_as_text(frame)).encode()
    ),
    "parquet": Format(
        "Parquet",
        "pyarrow",
        "application/vnd.apache.parquet",
        lambda frame: _in_memory(write_parquet, objects_as_text(frame)),
    ),
    "xlsx": Format(
        "Excel",
        "xlsxwriter",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        partial(_in_memory, to_excel),
    ),
}


def _cell_text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if value is None or value is pd.NA or isinstance(value, float):
        return None if value is None or pd.isna(value) else json.dumps(value)
    return json.dumps(value, default=str)
