"""Frames as CSV and Parquet files and download links, with exact integers."""

from __future__ import annotations

import base64
import io
import json
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit.frames.csv_text import csv_text

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_ROWS = 5_000  # of a link, which embeds the file in the page
_MAX_BYTES = 1_000_000


def objects_as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert columns of Python objects to text: texts stay, other values become JSON."""
    # As JSON an integer of any size keeps its digits; the file formats would lose some.
    texts = {
        str(name): pd.Series(
            [_cell_text(value) for value in column], dtype="str", index=frame.index
        )
        for name, column in frame.items()
        if column.dtype == object
    }
    return frame.assign(**texts)


def to_csv(frame: pd.DataFrame) -> bytes:
    """Write a frame as CSV for a spreadsheet."""
    return csv_text(objects_as_text(frame)).encode()


def to_parquet(frame: pd.DataFrame) -> bytes:
    """Write a frame as Parquet, which needs pyarrow."""
    from ledgerkit.u128.parquet import write_parquet

    buffer = io.BytesIO()
    write_parquet(objects_as_text(frame), buffer)
    return buffer.getvalue()


FORMATS: dict[str, Callable[[pd.DataFrame], bytes]] = {"csv": to_csv, "parquet": to_parquet}
_LABELS = {"csv": "CSV", "parquet": "Parquet"}
_MEDIA_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}


def links(frame: pd.DataFrame, name: str) -> str:
    """Format download links of a frame, or say how to save one that is too large for a page."""
    formats = ("csv", "parquet") if find_spec("pyarrow") else ("csv",)
    files = {suffix: FORMATS[suffix](frame) for suffix in formats if len(frame) <= _MAX_ROWS}
    anchors = [
        f'<a download="{escape(name)}.{suffix}" href="data:{_MEDIA_TYPES[suffix]};base64,'
        f'{base64.b64encode(data).decode("ascii")}">{_LABELS[suffix]}</a>'
        for suffix, data in files.items()
        if len(data) <= _MAX_BYTES
    ]
    if not anchors:
        return "<p>Too large for a download link: save it with .save(path)</p>"
    return f"<p>Save as {' or '.join(anchors)}</p>"


def _cell_text(value: Any) -> str | None:
    """Convert one value to text."""
    if isinstance(value, str):
        return value
    if value is None or value is pd.NA or isinstance(value, float):
        return None if value is None or pd.isna(value) else json.dumps(value)
    return json.dumps(value, default=str)
