"""Frames as files: CSV and Parquet, with every integer exact."""

from __future__ import annotations

import base64
import io
import json
import warnings
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_ROWS = 5_000  # a link holds the file in the page
_MOST_BYTES = 1_000_000


def portable(frame: pd.DataFrame) -> pd.DataFrame:
    """
    Write Python objects as text, which every format holds exactly.

    Parameters
    ----------
    frame
        Any frame.

    Returns
    -------
    frame
        Where a column holds Python objects, texts stay and anything else is JSON: an
        integer of any size reads as its digits. Other columns are as they were.
    """
    texts = {
        name: pd.Series([_text(value) for value in column], dtype="str", index=frame.index)
        for name, column in frame.items()
        if column.dtype == object
    }
    return frame.assign(**{str(name): column for name, column in texts.items()})


def csv(frame: pd.DataFrame) -> bytes:
    """Write CSV."""
    return portable(frame).to_csv(index=False).encode()


def parquet(frame: pd.DataFrame) -> bytes:
    """Write Parquet, which needs pyarrow; the largest amounts stand as text beside their column."""
    from ledgerkit.u128.parquet import write_parquet

    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about that text: nobody asked to save yet
        write_parquet(portable(frame), buffer)
    return buffer.getvalue()


FORMATS: dict[str, Callable[[pd.DataFrame], bytes]] = {"csv": csv, "parquet": parquet}
_NAMES = {"csv": "CSV", "parquet": "Parquet"}
_MEDIA_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}


def links(frame: pd.DataFrame, name: str) -> str:
    """Write links that save a frame; one too large for a page is saved in the next cell."""
    kinds = ("csv", "parquet") if find_spec("pyarrow") else ("csv",)
    files = {kind: FORMATS[kind](frame) for kind in kinds if len(frame) <= _MOST_ROWS}
    found = [
        f'<a download="{escape(name)}.{kind}" href="data:{_MEDIA_TYPES[kind]};base64,'
        f'{base64.b64encode(data).decode("ascii")}">{_NAMES[kind]}</a>'
        for kind, data in files.items()
        if len(data) <= _MOST_BYTES
    ]
    return f"<p>Save as {' or '.join(found)}</p>" if found else "<p>Save it with .save(path)</p>"


def _text(value: Any) -> str | None:
    """Write one value."""
    if isinstance(value, str):
        return value
    if value is None or value is pd.NA or isinstance(value, float):
        return None if value is None or pd.isna(value) else json.dumps(value)
    return json.dumps(value, default=str)
