"""Conversion between frames with u128 columns and Arrow, Polars or Parquet files, exact."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import IO, Any

import pandas as pd

from ledgerkit import validation
from ledgerkit.errors import DecodeError, FileError, InvalidRequestError, LedgerError, cut
from ledgerkit.extras import require
from ledgerkit.files import file_errors
from ledgerkit.u128 import arrow, object_columns, planes
from ledgerkit.u128.array import I129Dtype, U128Dtype
from ledgerkit.u128.human_units import TEXT
from ledgerkit.u128.pandas_hooks import STORED_NAMES

# The metadata key of a text column that holds large values: its value is the number column's name.
# The files of a collection have such columns, because all files of a table share one schema.
MARK = b"u128"
U128_NAME, I129_NAME = STORED_NAMES
_REMEDY = "Check that the file is complete, or write it again."


# Writing --------------------------------------------------------------------------------


def to_arrow(frame: pd.DataFrame) -> Any:
    """
    Convert a frame to an Arrow table that DuckDB, Polars and Parquet read exactly.

    Parameters
    ----------
    frame
        Any frame. A column of u128 or i129 becomes decimal128(38, 0). A column of Python integers,
        dicts or mixed objects becomes JSON text, which is exact: the digits of an integer.

    Returns
    -------
    table
        A `pyarrow.Table`. Without columns of JSON text it is the same that pandas stores with
        ``frame.to_parquet``.

    Raises
    ------
    InvalidRequestError
        If an amount has 39 digits: ``frame.astype({"balance": "str"})`` keeps them as text. If two
        columns have one name, Arrow has no type for the values of a column, or pyarrow is not
        installed.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> table = lk.to_arrow(lk.ft("bob.near")[["contract_id", "balance"]])
    >>> table.schema.field("balance").type
    Decimal128Type(decimal128(38, 0))
    """
    if not isinstance(frame, pd.DataFrame):
        raise InvalidRequestError.refuse("frame", frame, "a pandas DataFrame")
    problems = arrow.library().ArrowException, OverflowError, ValueError
    try:
        return object_columns.table(frame)
    except problems as error:
        # The last argument names the column.
        reason = ": ".join(map(cut, reversed(error.args)))
        sentence = f"the frame does not fit an Arrow table: {reason}"
        remedy = "Convert the column that it names, or write CSV or Excel, which hold all digits."
        raise InvalidRequestError(sentence, field="frame", remedy=remedy) from error


def to_polars(frame: pd.DataFrame) -> Any:
    """
    Convert a frame to a Polars frame, with exact amounts.

    Parameters
    ----------
    frame
        Any frame, converted as by `to_arrow`: amounts become Decimal(38, 0), times Datetime in
        UTC, and lists and decoded JSON become JSON text.

    Returns
    -------
    frame
        A `polars.DataFrame` with the same rows. Polars frames have no `attrs`.

    Raises
    ------
    InvalidRequestError
        If an amount has 39 digits: ``frame.astype({"balance": "str"})`` keeps them as text. If
        Polars has no type for the values of a column, or is not installed.

    Notes
    -----
    Sums of all rows are exact or an error. Sums of groups wrap around above 2**127 without an
    error, which amounts of NEAR never reach.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> holders = lk.to_polars(lk.top_holders("gold.near"))
    >>> holders["balance"].dtype, holders["balance"].sum()
    (Decimal(precision=38, scale=0), Decimal('485349000000'))
    """
    return require("polars", "bulk", "A Polars frame").from_arrow(to_arrow(frame))


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
    FileError
        If the file can't be written.
    InvalidRequestError
        If `to_arrow` refuses the frame.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> lk.write_parquet(lk.top_holders("gold.near"), "holders.parquet")
    >>> lk.read_parquet("holders.parquet")["balance"].sum()
    485349000000
    """
    if not hasattr(path, "write"):
        validation.file_path(path, "path")
    table, write_table = to_arrow(frame), arrow.library("pyarrow.parquet").write_table
    with file_errors(f"write {path}"):
        write_table(table, path, write_page_checksum=True)


def open_writer(file: Any, schema: Any, **options: Any) -> Any:
    """Open a `pyarrow.parquet.ParquetWriter` of a file that ledgerkit checks when it reads it."""
    writer = arrow.library("pyarrow.parquet").ParquetWriter
    return writer(file, schema, compression="zstd", write_page_checksum=True, **options)


# Reading --------------------------------------------------------------------------------


def read_parquet(path: str | PathLike[str], *, filters: Any = None) -> pd.DataFrame:
    """
    Read a frame from a Parquet file, or from a folder of them.

    Parameters
    ----------
    path
        The file or folder, written by any program.
    filters
        Return only some rows, as `pandas.read_parquet` does: ``[("balance", ">", 10**24)]``.

    Returns
    -------
    frame
        The frame as it was written, an index of amounts included. Any other decimal128(38, 0)
        becomes u128, also in files of DuckDB or Polars.

    Raises
    ------
    DecodeError
        If a file is damaged or no Parquet; if a row has both a number and the digits of a large
        value; or if a decimal128(38, 0) is negative: `pandas.read_parquet` reads such values.
    FileError
        If the file does not exist or can't be read, or the folder has none.
    InvalidRequestError
        If the filters do not fit the columns, or pyarrow is not installed.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> holders = lk.top_holders("gold.near")
    >>> lk.write_parquet(holders, "holders.parquet")
    >>> lk.read_parquet("holders.parquet").equals(holders)
    True
    """
    if not isinstance(path, str | PathLike):
        raise InvalidRequestError.refuse("path", path, "the path of a file or folder")
    validation.no_secret(path, "path")
    with reading(path):
        table = _widen_recorded(restore_large(_read(path)))
        if filters is not None:
            table = _filter(table, filters)
        types = {
            arrow.library().decimal128(arrow.DIGITS): U128Dtype(),
            arrow.every_value(): U128Dtype(),
            arrow.every_value(signed=True): I129Dtype(),
        }
        frame: pd.DataFrame = table.to_pandas(types_mapper=types.get)
        texts = {name: TEXT for name, dtype in frame.dtypes.items() if dtype == "str"}
        frame = frame.astype(texts)
        object_columns.restore(frame, table)
        return frame


@contextmanager
def reading(source: object, remedy: str = _REMEDY) -> Iterator[None]:
    """Convert what Arrow and pandas raise for a missing file or malformed content."""
    try:
        yield
    except LedgerError:
        raise
    except FileNotFoundError:
        problem: LedgerError = FileError(operation=f"read {source}", reason="no such file")
    except Exception as error:  # noqa: BLE001 - there is no list of what hostile content can raise
        # Arrow also raises an OSError, without a number, for content that it can't read.
        if isinstance(error, OSError) and error.errno is not None:
            problem = FileError.failed(f"read {source}", error)
        else:
            reason = cut(str(error) or type(error).__name__)
            problem = DecodeError(f"{source} can't be read as Parquet: {reason}", remedy=remedy)
    else:
        return
    raise problem


def _read(path: str | PathLike[str]) -> Any:
    # Only in a folder can the names of subfolders be columns, such as "month=1".
    options = {
        "format": checked_format(),
        "partitioning": "hive" if Path(path).is_dir() else None,
    }
    open_dataset = arrow.library("pyarrow.dataset").dataset
    dataset = open_dataset(path, **options)
    if not dataset.files:
        raise FileError(operation=f"read {path}", reason="the folder has no file")
    return open_dataset(path, schema=_common_schema(dataset), **options).to_table()


def _filter(table: Any, filters: Any) -> Any:
    """Select rows with the filters of pandas, in which integers may have any size."""
    try:
        groups = filters if isinstance(filters[0], list) else [filters]
        exact = [[(name, op, _scalar(value)) for name, op, value in group] for group in groups]
        return table.filter(arrow.library("pyarrow.parquet").filters_to_expression(exact))
    except (LookupError, TypeError, ValueError, arrow.library().ArrowException) as error:
        expected = f'such as [("balance", ">", 10**24)] ({cut(str(error))})'
        raise InvalidRequestError.refuse("filters", filters, expected) from error


def _scalar(value: Any) -> Any:
    # pyarrow has no integers of more than 64 bits, and compares none with decimals of 38 digits.
    if isinstance(value, list | tuple | set):
        return [_scalar(member) for member in value]
    return Decimal(value) if type(value) is int else value


def checked_format() -> Any:
    """Return the format of a dataset whose pages are compared with their checksums."""
    dataset = arrow.library("pyarrow.dataset")
    checking = dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
    return dataset.ParquetFileFormat(default_fragment_scan_options=checking)


def _common_schema(dataset: Any) -> Any:
    """Return the schema that fits all files of a dataset, whose own schema is the first file's."""
    pa = arrow.library()
    schemas = [dataset.schema, *(part.physical_schema for part in dataset.get_fragments())]
    texts = {field.name for schema in schemas for field in schema if field.type == pa.string()}
    common = pa.unify_schemas(
        [_with_texts(s, texts) for s in schemas], promote_options="permissive"
    )
    return _with_json(common, schemas)


def _with_json(common: Any, schemas: list[Any]) -> Any:
    """Mark the columns of JSON text, which may have only nulls in the first file."""
    for field in (field for schema in schemas for field in schema if object_columns.is_json(field)):
        position = common.get_field_index(field.name)
        metadata = {**(common.field(position).metadata or {}), **field.metadata}
        common = common.set(position, common.field(position).with_metadata(metadata))
    return common


def _with_texts(schema: Any, names: set[str]) -> Any:
    """Change amounts to text, where another file has a value of 39 digits in the column."""
    pa = arrow.library()
    for position, field in enumerate(schema):
        if field.name in names and field.type == pa.decimal128(arrow.DIGITS):
            schema = schema.set(position, field.with_type(pa.string()))
    return schema


def _widen_recorded(table: Any) -> Any:
    """Convert columns of i129, and of u128 that are stored as text; one may be the index."""
    pa = arrow.library()
    metadata = table.schema.pandas_metadata or {"columns": []}
    names = {c.get("field_name"): c["numpy_type"] for c in metadata["columns"]}
    for position, field in enumerate(table.schema):
        recorded = names.get(field.name)
        if recorded == I129_NAME or (recorded == U128_NAME and field.type == pa.string()):
            column = _widen(table[position], field.name, signed=recorded == I129_NAME)
            table = table.set_column(position, field.name, column)
    return table


def restore_large(table: Any) -> Any:
    """Merge the text columns of large values into their number columns."""
    for field in table.schema:
        name = (field.metadata or {}).get(MARK, b"").decode()
        if name in table.column_names:
            numbers, texts = _widen(table[name], name), _widen(table[field.name], field.name)
            both = ~(arrow.missing(numbers) | arrow.missing(texts))
            if (row := planes.first(both)) is not None:
                msg = f"{name} has a number and a text in row {row}, of which one must be wrong"
                raise DecodeError(msg, path=f"{name}[{row}]")
            merged = arrow.library("pyarrow.compute").coalesce(numbers, texts)
            position = table.column_names.index(name)
            table = table.set_column(position, name, merged).drop_columns(field.name)
    return table


def _widen(column: Any, name: str, *, signed: bool = False) -> Any:
    values, mask = arrow.from_arrow(column, name=name, signed=signed)
    return arrow.to_arrow(values, mask, type=arrow.every_value(signed=signed))
