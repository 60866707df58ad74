"""Frames with u128 columns to Arrow tables and Parquet files, and back, digit for digit."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.u128 import arrow
from ledgerkit.u128.array import U128Dtype
from ledgerkit.u128.human_units import TEXT

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd

_END = 10**arrow.DIGITS
MARK = b"u128"  # on a column of digits: the column whose largest values they are


# Out ------------------------------------------------------------------------------------


def to_arrow(frame: pd.DataFrame) -> Any:
    """
    Hold a frame in an Arrow table that DuckDB, Polars and Parquet read exactly.

    Parameters
    ----------
    frame
        Any frame; its u128 columns become decimal128(38, 0).

    Returns
    -------
    table
        A `pyarrow.Table`. Values of 10**38 and more are null in it; their digits are in a
        column of text that follows, ``<name>_text``, which is only there when needed.

    Raises
    ------
    InvalidRequestError
        If such a column of text is needed and the frame has one of that name, or if
        pyarrow is not installed.
    OverflowError
        If the index holds such a value: `reset_index` makes it a column.

    Warns
    -----
    UserWarning
        If there are values of 10**38 and more.
    """
    return _table(frame)


def write_parquet(frame: pd.DataFrame, path: str | PathLike[str] | IO[bytes]) -> None:
    """
    Write a frame to a Parquet file, which pandas, DuckDB, Polars and Dask read exactly.

    Parameters
    ----------
    frame
        Any frame, written as `to_arrow` holds it.
    path
        The file, or one that is open for writing.

    Raises
    ------
    InvalidRequestError
        As for `to_arrow`.
    OverflowError
        As for `to_arrow`.

    Warns
    -----
    UserWarning
        If there are values of 10**38 and more: only `read_parquet` puts them back.
    """
    arrow.library("pyarrow.parquet").write_table(_table(frame), path)


def _table(frame: pd.DataFrame) -> Any:
    """Hold a frame in a table, each column's largest values as text beside it."""
    pa = arrow.library()
    small, digits = _parted(frame)
    table = _named(pa.Table.from_pandas(small), frame)
    for position, texts in sorted(digits.items(), reverse=True):
        name = table.column_names[position]
        field = pa.field(_beside(name, table), pa.string(), metadata={MARK: name})
        table = table.add_column(position + 1, field, pa.array(texts, type=pa.string()))
        _warn(name, texts)
    return table


def _named(table: Any, frame: pd.DataFrame) -> Any:
    """Name the dtype in pandas' metadata, where pyarrow calls all decimals objects."""
    metadata = table.schema.pandas_metadata
    levels = [frame.index.get_level_values(level).dtype for level in range(frame.index.nlevels)]
    for held, dtype in zip(metadata["columns"], [*frame.dtypes, *levels], strict=False):
        if isinstance(dtype, U128Dtype):
            held["numpy_type"] = dtype.name
    known = table.schema.metadata
    return table.replace_schema_metadata({**known, b"pandas": json.dumps(metadata).encode()})


def _parted(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[int, np.ndarray]]:
    """Take the values that no decimal128(38, 0) holds out of a frame, as texts by column."""
    small, digits = frame.copy(deep=False), {}
    for position, (_, column) in enumerate(frame.items()):
        if isinstance(column.dtype, U128Dtype):
            large = (column >= _END).to_numpy(dtype=bool, na_value=False)
            if large.any():
                digits[position] = np.full(len(frame), None, dtype=object)
                digits[position][large] = [str(value) for value in column[large]]
                small.isetitem(position, column.mask(large).array)
    return small, digits


def _beside(name: str, table: Any) -> str:
    """Name the column of digits that belongs to a column."""
    beside = f"{name}_text"
    if beside in table.column_names:
        msg = f"the column {beside!r} is in the way: digits of {name!r} are to be written there"
        remedy = f"Rename {beside!r}, or make {name!r} text: astype(str)."
        raise InvalidRequestError(msg, remedy=remedy, field="frame", value=beside)
    return beside


def _warn(name: str, texts: np.ndarray) -> None:
    """Say which values are not where they are expected."""
    count = sum(text is not None for text in texts)
    values = "a value" if count == 1 else f"{count} values"
    warnings.warn(
        f"{values} of {name!r} from 10**{arrow.DIGITS} up: null in decimal128({arrow.DIGITS}, 0),"
        f" and the digits in {name + '_text'!r}; ledgerkit.read_parquet puts them back",
        stacklevel=4,
    )


# In -------------------------------------------------------------------------------------


def read_parquet(path: str | PathLike[str]) -> pd.DataFrame:
    """
    Read a frame from a Parquet file, or from a folder of them.

    Parameters
    ----------
    path
        The file or folder, whoever wrote it.

    Returns
    -------
    frame
        As it was written, values of 10**38 and more included. Every decimal128(38, 0) is
        u128, also where DuckDB or Polars wrote it.

    Raises
    ------
    DecodeError
        If a row has both a number and the digits of one.
    FileNotFoundError
        If there is no such file, or none in the folder.
    InvalidRequestError
        If pyarrow is not installed.
    ValueError
        If a decimal128(38, 0) is below zero: `pandas.read_parquet` gives such Decimals.
    """
    table = whole(_read(path))
    types = {arrow.library().decimal128(arrow.DIGITS): U128Dtype(), _wide(): U128Dtype()}
    frame: pd.DataFrame = table.to_pandas(types_mapper=types.get)
    return frame.astype({name: TEXT for name, dtype in frame.dtypes.items() if dtype == "str"})


def _read(path: str | PathLike[str]) -> Any:
    """Read all columns that a file has, or one of the files of a folder."""
    keys = "hive" if Path(path).is_dir() else None  # a file's own path holds none of its columns
    dataset = arrow.library("pyarrow.dataset").dataset(path, format="parquet", partitioning=keys)
    if not dataset.files:
        raise FileNotFoundError(f"there is no file in {path}")
    # The first file's columns would stand for all: a column of digits is in those that need it.
    schemas = [dataset.schema, *(part.physical_schema for part in dataset.get_fragments())]
    schema = arrow.library().unify_schemas(schemas, promote_options="permissive")
    return dataset.replace_schema(schema).to_table()


def whole(table: Any) -> Any:
    """Put digits back where they belong."""
    for field in table.schema:
        name = (field.metadata or {}).get(MARK, b"").decode()
        if name in table.column_names:
            numbers, texts = _widened(table[name], name), _widened(table[field.name], field.name)
            _check_apart(numbers, texts, name)
            coalesce = arrow.library("pyarrow.compute").coalesce
            table = _with(table, name, coalesce(numbers, texts)).drop_columns(field.name)
    return table


def _check_apart(numbers: Any, texts: Any, name: str) -> None:
    """Refuse a row that has a number and digits: somebody has changed one of them."""
    both = ~(
        numbers.is_null().to_numpy(zero_copy_only=False)
        | texts.is_null().to_numpy(zero_copy_only=False)
    )
    if both.any():
        row = int(both.argmax())
        msg = f"{name} has a number and a text in row {row}, of which only one can be right"
        raise DecodeError(msg, path=f"{name}[{row}]")


def _wide() -> Any:
    """Give the type of Arrow that holds every value."""
    return arrow.library().decimal256(39)


def _widened(column: Any, name: str) -> Any:
    """Hold a column in the type that holds every value."""
    return arrow.to_arrow(*arrow.from_arrow(column, name=name), type=_wide())


def _with(table: Any, name: str, column: Any) -> Any:
    """Put another column in the place of one."""
    return table.set_column(table.column_names.index(name), name, column)
