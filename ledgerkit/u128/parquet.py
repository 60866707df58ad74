"""Conversion between frames with u128 columns and Arrow tables or Parquet files, exact."""

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

# The metadata key of a text column that holds large values: its value is the number column's name.
MARK = b"u128"


# Writing --------------------------------------------------------------------------------


def to_arrow(frame: pd.DataFrame) -> Any:
    """
    Convert a frame to an Arrow table that DuckDB, Polars and Parquet read exactly.

    Parameters
    ----------
    frame
        Any frame; its u128 columns become decimal128(38, 0).

    Returns
    -------
    table
        A `pyarrow.Table`. Values of 10**38 and more are null, and their digits are in a text
        column ``<name>_text`` after it, which is added only when needed.

    Raises
    ------
    InvalidRequestError
        If a text column is needed and the frame has a column of that name, or if pyarrow is
        not installed.
    OverflowError
        If the index holds such a value: make it a column with `reset_index`.

    Warns
    -----
    UserWarning
        If there are values of 10**38 and more.
    """
    return _to_table(frame)


def write_parquet(frame: pd.DataFrame, path: str | PathLike[str] | IO[bytes]) -> None:
    """
    Write a frame to a Parquet file, which pandas, DuckDB, Polars and Dask read exactly.

    Parameters
    ----------
    frame
        Any frame, written as `to_arrow` converts it.
    path
        The file to write: a path, or a file open for writing.

    Raises
    ------
    InvalidRequestError
        As for `to_arrow`.
    OverflowError
        As for `to_arrow`.

    Warns
    -----
    UserWarning
        If there are values of 10**38 and more: only `read_parquet` restores them.
    """
    arrow.library("pyarrow.parquet").write_table(_to_table(frame), path)


def _to_table(frame: pd.DataFrame) -> Any:
    """Convert a frame to a table, with the largest values of each column as text after it."""
    pa = arrow.library()
    numbers, texts = _split_large(frame)
    table = _set_pandas_dtypes(pa.Table.from_pandas(numbers), frame)
    for position, digits in sorted(texts.items(), reverse=True):
        name = table.column_names[position]
        field = pa.field(_text_column(name, table), pa.string(), metadata={MARK: name})
        table = table.add_column(position + 1, field, pa.array(digits, type=pa.string()))
        _warn(name, digits)
    return table


def _set_pandas_dtypes(table: Any, frame: pd.DataFrame) -> Any:
    """Write u128 into pandas' metadata, in which pyarrow calls every decimal an object."""
    metadata = table.schema.pandas_metadata
    levels = [frame.index.get_level_values(level).dtype for level in range(frame.index.nlevels)]
    for column, dtype in zip(metadata["columns"], [*frame.dtypes, *levels], strict=False):
        if isinstance(dtype, U128Dtype):
            column["numpy_type"] = dtype.name
    encoded = {**table.schema.metadata, b"pandas": json.dumps(metadata).encode()}
    return table.replace_schema_metadata(encoded)


def _split_large(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[int, np.ndarray]]:
    """Split off the values that do not fit decimal128(38, 0), as texts by column position."""
    numbers, texts = frame.copy(deep=False), {}
    for position, (_, column) in enumerate(frame.items()):
        if isinstance(column.dtype, U128Dtype):
            large = (column >= arrow.LIMIT).to_numpy(dtype=bool, na_value=False)
            if large.any():
                texts[position] = np.full(len(frame), None, dtype=object)
                texts[position][large] = [str(value) for value in column[large]]
                numbers.isetitem(position, column.mask(large).array)
    return numbers, texts


def _text_column(name: str, table: Any) -> str:
    """Return the name of the text column for the large values of a column."""
    text_name = f"{name}_text"
    if text_name in table.column_names:
        msg = f"the frame has a column {text_name!r}, which the large values of {name!r} need"
        remedy = f"Rename {text_name!r}, or convert {name!r} to text: astype(str)."
        raise InvalidRequestError(msg, remedy=remedy, field="frame", value=text_name)
    return text_name


def _warn(name: str, texts: np.ndarray) -> None:
    """Warn that large values are in a text column."""
    count = sum(text is not None for text in texts)
    values = "1 value" if count == 1 else f"{count} values"
    warnings.warn(
        f"{values} of {name!r} at or above 10**{arrow.DIGITS}: null in"
        f" decimal128({arrow.DIGITS}, 0), with the digits in {name + '_text'!r};"
        " ledgerkit.read_parquet restores them",
        stacklevel=4,
    )


# Reading --------------------------------------------------------------------------------


def read_parquet(path: str | PathLike[str]) -> pd.DataFrame:
    """
    Read a frame from a Parquet file, or from a folder of them.

    Parameters
    ----------
    path
        The file or folder, written by any program.

    Returns
    -------
    frame
        The frame as it was written, values of 10**38 and more included. Every
        decimal128(38, 0) becomes u128, also in files of DuckDB or Polars.

    Raises
    ------
    DecodeError
        If a row has both a number and the digits of a large value.
    FileNotFoundError
        If the file does not exist, or the folder has none.
    InvalidRequestError
        If pyarrow is not installed.
    ValueError
        If a decimal128(38, 0) is negative: `pandas.read_parquet` reads such values.
    """
    table = restore_large(_read(path))
    types = {arrow.library().decimal128(arrow.DIGITS): U128Dtype(), _wide(): U128Dtype()}
    frame: pd.DataFrame = table.to_pandas(types_mapper=types.get)
    return frame.astype({name: TEXT for name, dtype in frame.dtypes.items() if dtype == "str"})


def _read(path: str | PathLike[str]) -> Any:
    """Read all columns of a file, or of all files of a folder."""
    # Only in a folder can the names of subfolders be columns, such as "month=1".
    partitioning = "hive" if Path(path).is_dir() else None
    dataset = arrow.library("pyarrow.dataset").dataset(
        path, format="parquet", partitioning=partitioning
    )
    if not dataset.files:
        raise FileNotFoundError(f"there is no file in {path}")
    # By default a dataset has the columns of its first file, but only some have a text column.
    schemas = [dataset.schema, *(part.physical_schema for part in dataset.get_fragments())]
    schema = arrow.library().unify_schemas(schemas, promote_options="permissive")
    return dataset.replace_schema(schema).to_table()


def restore_large(table: Any) -> Any:
    """Merge the text columns of large values into their number columns."""
    for field in table.schema:
        name = (field.metadata or {}).get(MARK, b"").decode()
        if name in table.column_names:
            numbers, texts = _widen(table[name], name), _widen(table[field.name], field.name)
            _check_exclusive(numbers, texts, name)
            merged = arrow.library("pyarrow.compute").coalesce(numbers, texts)
            position = table.column_names.index(name)
            table = table.set_column(position, name, merged).drop_columns(field.name)
    return table


def _check_exclusive(numbers: Any, texts: Any, name: str) -> None:
    """Check that no row has both a number and a text, which would contradict each other."""
    both = ~(
        numbers.is_null().to_numpy(zero_copy_only=False)
        | texts.is_null().to_numpy(zero_copy_only=False)
    )
    if both.any():
        row = int(both.argmax())
        msg = f"{name} has a number and a text in row {row}, of which one must be wrong"
        raise DecodeError(msg, path=f"{name}[{row}]")


def _wide() -> Any:
    """Return the Arrow type that fits every value."""
    return arrow.library().decimal256(39)


def _widen(column: Any, name: str) -> Any:
    """Convert a column to the type that fits every value."""
    return arrow.to_arrow(*arrow.from_arrow(column, name=name), type=_wide())
