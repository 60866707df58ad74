"""Frames as Excel files, with every digit."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from ledgerkit import validation
from ledgerkit.errors import InvalidRequestError
from ledgerkit.extras import require
from ledgerkit.files import file_errors, replacing
from ledgerkit.frames.human import row_units
from ledgerkit.frames.schemas import AMOUNT_UNIT, YOCTO, declared_columns
from ledgerkit.u128.array import WideDtype
from ledgerkit.u128.human_units import to_units
from ledgerkit.units import NEAR_DECIMALS

# Limits of Excel: https://support.microsoft.com/office/1672b34d-7043-467e-8e27-269d656771c3
_MAX_ROWS = 1_048_576  # rows of a sheet, with the header
_MAX_TEXT = 32_767  # characters of a cell
_MAX_NAME = 31  # characters of a sheet's name
_NOT_IN_NAMES = set("[]:*?/\\")
_EXACT = 10**15  # Excel keeps every digit of smaller integers
# Without these, a text that begins with "=" would be a formula, and an address a link.
_PLAIN_TEXT = {"strings_to_formulas": False, "strings_to_urls": False}
# Rounded amounts of at least 0.01 have two decimals; Excel formats smaller amounts.
_NUMBER_FORMAT = "[>=0.01]#,##0.00;[<=-0.01]-#,##0.00;General"
_WIDTH = 24  # characters: Excel displays "####" in a column that is too narrow
_ROUNDED = ", rounded)"
_TIME_FORMAT = "yyyy-mm-dd hh:mm:ss.000"


def to_excel(
    frame: pd.DataFrame, path: str | PathLike[str] | BinaryIO, *, sheet_name: str | None = None
) -> None:
    """
    Write a frame to an Excel file, with every digit of its integers.

    Excel rounds numbers to 15 digits, so amounts are written as text. If their decimals are known,
    a column beside them has rounded numbers in human units to compute with.

    Parameters
    ----------
    frame
        Any frame. An amount of a column that ledgerkit declares in yoctoNEAR is also written in
        NEAR, and any other amount in tokens if the frame has a column ``decimals``, or if a
        column says that the row is about NEAR. Times are written in UTC, to the millisecond. An
        index that is not just a row number is written as columns.
    path
        The file to write, named ``*.xlsx``, or a file open for writing.
    sheet_name
        The name of the sheet. By default the name of the network that the frame was read from,
        so that invented and real data can be distinguished; "Sheet1" if it is unknown.

    Raises
    ------
    FileError
        If the file can't be written. Its previous content stays.
    InvalidRequestError
        If the frame has more rows than a sheet, a text is longer than a cell, the columns have
        several levels, a value of ``decimals`` is not from 0 to 255, the path or the sheet's
        name is not valid for Excel, or xlsxwriter is not installed.

    Examples
    --------
    >>> import pandas as pd
    >>> ledger = lk.connect("local")
    >>> lk.to_excel(lk.accounts(["alice.near", "bob.near"]), "accounts.xlsx")
    >>> pd.read_excel("accounts.xlsx", dtype=str)[["account_id", "balance"]]
       account_id                        balance
    0  alice.near  12340675470645764809599999996
    1    bob.near    454999448234985267100000000
    """
    require("xlsxwriter", "excel", "An Excel file")
    if not isinstance(frame, pd.DataFrame):
        raise InvalidRequestError.refuse("frame", frame, "a pandas DataFrame")
    network = str(frame.attrs.get("network", ""))
    default = network if _is_sheet_name(network) else "Sheet1"
    name = default if sheet_name is None else sheet_name
    _check_limits(frame, path, name)
    cells = list(_all_cells(frame))
    sheet = pd.DataFrame(dict(enumerate(values for _, values in cells)))
    workbook = io.BytesIO()
    with (
        _file_errors(path),
        pd.ExcelWriter(
            workbook,
            engine="xlsxwriter",
            datetime_format=_TIME_FORMAT,
            engine_kwargs={"options": _PLAIN_TEXT},
        ) as writer,
    ):
        sheet.to_excel(writer, sheet_name=name, index=False, header=[header for header, _ in cells])
        rounded = {n for n, c in declared_columns(frame).items() if c.dtype == "Float64"}
        number_format = writer.book.add_format({"num_format": _NUMBER_FORMAT})
        for position, (header, _) in enumerate(cells):
            if header.endswith(_ROUNDED) or header in rounded:
                writer.sheets[name].set_column(position, position, _WIDTH, number_format)
    opened: Any = nullcontext(path) if hasattr(path, "write") else replacing(Path(path))
    with _file_errors(path), opened as file:
        file.write(workbook.getbuffer())


@contextmanager
def _file_errors(path: object) -> Iterator[None]:
    """Convert an `OSError`, also of a temporary file, which xlsxwriter wraps."""
    exceptions = require("xlsxwriter.exceptions", "excel", "An Excel file")
    with file_errors(f"write {path}"):
        try:
            yield
        except exceptions.FileCreateError as error:
            # The traceback is dropped: its frames have an open archive, which would fail to close.
            raise error.args[0].with_traceback(None) from None


def _is_sheet_name(name: str) -> bool:
    has_size = 0 < len(name) <= _MAX_NAME
    return has_size and not _NOT_IN_NAMES & set(name) and name.strip("'") == name


def _check_limits(frame: pd.DataFrame, path: Any, sheet_name: str) -> None:
    if len(frame) >= _MAX_ROWS:
        rule = f"at most {_MAX_ROWS - 1:,} rows, which a sheet of Excel holds: use Parquet or CSV"
        raise InvalidRequestError.refuse("frame", f"{len(frame):,} rows", rule)
    if frame.columns.nlevels > 1:
        rule = "columns of one level"
        raise InvalidRequestError.refuse("frame", f"{frame.columns.nlevels} levels", rule)
    if not hasattr(path, "write") and validation.file_path(path, "path").suffix != ".xlsx":
        raise InvalidRequestError.refuse("path", path, 'a name that ends in ".xlsx"')
    if not _is_sheet_name(sheet_name):
        rule = f"1 to {_MAX_NAME} characters, none of []:*?/\\ and no apostrophe at an end"
        raise InvalidRequestError.refuse("sheet_name", sheet_name, rule)


def _all_cells(frame: pd.DataFrame) -> Iterator[tuple[str, pd.Series[Any]]]:
    for position, level in enumerate(frame.index.names):
        if not isinstance(frame.index, pd.RangeIndex):
            labels: Any = frame.index.get_level_values(position)
            name = "index" if level is None else str(level)
            yield from _cells(name, pd.Series(labels, index=range(len(frame))))
    declared = declared_columns(frame)
    for header, column in frame.items():
        name, values = str(header), column.reset_index(drop=True)
        yield from _cells(name, values)
        is_amount = name in declared and isinstance(values.dtype, WideDtype)
        unit = declared[name].unit if is_amount else ""
        if unit == YOCTO:
            yield f"{name} (NEAR{_ROUNDED}", to_units(values, NEAR_DECIMALS, as_="float")
        elif unit == AMOUNT_UNIT:
            decimals = _row_decimals(frame)
            if decimals.notna().any():
                yield f"{name} (tokens{_ROUNDED}", to_units(values, decimals, as_="float")


def _row_decimals(frame: pd.DataFrame) -> pd.Series[Any]:
    if "decimals" in frame:
        return frame["decimals"].reset_index(drop=True)
    decimals = [None if unit is None else unit[0] for unit in row_units(frame)]
    return pd.Series(decimals, dtype="Int64")


def _cells(name: str, values: pd.Series[Any]) -> Iterator[tuple[str, pd.Series[Any]]]:
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        yield f"{name} (UTC)", values.dt.tz_convert("UTC").dt.tz_localize(None)
    elif values.dtype.kind == "O" or _has_many_digits(values):  # decimals and categories too
        yield name, _checked(pd.Series([_text(value) for value in values], dtype=object), name)
    else:
        yield name, _checked(values, name)


def _has_many_digits(values: pd.Series[Any]) -> bool:
    """Return True for amounts and for integers that Excel would round."""
    if isinstance(values.dtype, WideDtype):
        return True
    is_integer = pd.api.types.is_integer_dtype(values.dtype)
    return is_integer and any(abs(int(value)) >= _EXACT for value in values.dropna())


def _text(value: Any) -> str | None:
    if isinstance(value, (list, dict)):
        return json.dumps(value, default=str)
    if value is None or value is pd.NA or (isinstance(value, float) and pd.isna(value)):
        return None
    return str(value)


def _checked(values: pd.Series[Any], name: str) -> pd.Series[Any]:
    """Check that Excel would not truncate the texts of a column, and return the column."""
    for row, value in enumerate(values):
        if isinstance(value, str) and len(value) > _MAX_TEXT:
            sentence = f"{name} in row {row} has {len(value):,} characters"
            raise InvalidRequestError(
                f"{sentence}, and a cell of Excel at most {_MAX_TEXT:,}",
                field=name,
                remedy="Drop the column, or use Parquet or CSV.",
            )
    return values
