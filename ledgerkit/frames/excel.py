"""Frames as Excel files, with every digit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, BinaryIO

import pandas as pd

from ledgerkit import validation
from ledgerkit.errors import InvalidRequestError
from ledgerkit.extras import require
from ledgerkit.frames.schemas import AMOUNT_UNIT, SCHEMAS, YOCTO
from ledgerkit.u128.array import U128Dtype
from ledgerkit.u128.human_units import to_units
from ledgerkit.units import NEAR_DECIMALS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

# Limits of Excel: https://support.microsoft.com/office/1672b34d-7043-467e-8e27-269d656771c3
_MAX_ROWS = 1_048_576  # of a sheet, with the header
_MAX_TEXT = 32_767  # characters of a cell
_MAX_NAME = 31  # characters of a sheet's name
_NOT_IN_NAMES = set("[]:*?/\\")
_EXACT = 10**15  # below, Excel keeps every digit of an integer
# Without these, a text that begins with "=" would be a formula, and an address a link.
_PLAIN_TEXT = {"strings_to_formulas": False, "strings_to_urls": False}
_TIME_FORMAT = "yyyy-mm-dd hh:mm:ss.000"


def to_excel(
    frame: pd.DataFrame, path: str | PathLike[str] | BinaryIO, *, sheet_name: str = "Sheet1"
) -> None:
    """
    Write a frame to an Excel file, with every digit of its integers.

    Excel rounds numbers to 15 digits. So amounts are written as text, and beside them, where
    their decimals are known, a column of rounded numbers in human units to compute with.

    Parameters
    ----------
    frame
        Any frame. An amount of a column that ledgerkit declares in yoctoNEAR is also written in
        NEAR, and any other amount in tokens if the frame has a column ``decimals``. Times are
        written in UTC, to the millisecond. An index that is not just a row number is written
        as columns.
    path
        The file to write, named ``*.xlsx``, or a file open for writing.
    sheet_name
        The name of the sheet.

    Raises
    ------
    FileError
        If the file can't be written.
    InvalidRequestError
        If the frame has more rows than a sheet, a text is longer than a cell, the columns have
        several levels, a value of ``decimals`` is not from 0 to 255, the path or the sheet's
        name is not valid for Excel, or xlsxwriter is not installed.
    """
    require("xlsxwriter", "excel", "An Excel file")
    _check(frame, path, sheet_name)
    cells = list(_all_cells(frame))
    sheet = pd.DataFrame(dict(enumerate(values for _, values in cells)))
    with (
        validation.writing(path),
        pd.ExcelWriter(
            path,
            engine="xlsxwriter",
            datetime_format=_TIME_FORMAT,
            engine_kwargs={"options": _PLAIN_TEXT},
        ) as writer,
    ):
        sheet.to_excel(
            writer, sheet_name=sheet_name, index=False, header=[header for header, _ in cells]
        )


def _check(frame: pd.DataFrame, path: Any, sheet_name: str) -> None:
    """Check everything that does not depend on the values."""
    if len(frame) >= _MAX_ROWS:
        rule = f"at most {_MAX_ROWS - 1:,} rows, which a sheet of Excel holds: use Parquet or CSV"
        raise InvalidRequestError.refuse("frame", f"{len(frame):,} rows", rule)
    if frame.columns.nlevels > 1:
        rule = "columns of one level"
        raise InvalidRequestError.refuse("frame", f"{frame.columns.nlevels} levels", rule)
    if not hasattr(path, "write") and validation.file_path(path, "path").suffix != ".xlsx":
        raise InvalidRequestError.refuse("path", path, 'a name that ends in ".xlsx"')
    is_valid = 0 < len(sheet_name) <= _MAX_NAME and not _NOT_IN_NAMES & set(sheet_name)
    if not is_valid or sheet_name.strip("'") != sheet_name:
        rule = f"1 to {_MAX_NAME} characters, none of []:*?/\\ and no apostrophe at an end"
        raise InvalidRequestError.refuse("sheet_name", sheet_name, rule)


def _all_cells(frame: pd.DataFrame) -> Iterator[tuple[str, pd.Series[Any]]]:
    """Yield the header and the cells of each column of the sheet."""
    for position, level in enumerate(frame.index.names):
        if not isinstance(frame.index, pd.RangeIndex):
            labels: Any = frame.index.get_level_values(position)
            name = "index" if level is None else str(level)
            yield from _cells(name, pd.Series(labels, index=range(len(frame))))
    decimals = _decimals_by_unit(frame)
    for header, column in frame.items():
        name, values = str(header), column.reset_index(drop=True)
        yield from _cells(name, values)
        unit = _unit(name, frame)
        if isinstance(values.dtype, U128Dtype) and unit in decimals:
            label, places = decimals[unit]
            yield f"{name} ({label}, rounded)", to_units(values, places, as_="float")


def _decimals_by_unit(frame: pd.DataFrame) -> dict[str, tuple[str, Any]]:
    """Return the name and the decimals of each unit that can be converted to human units."""
    known: dict[str, tuple[str, Any]] = {YOCTO: ("NEAR", NEAR_DECIMALS)}
    if "decimals" in frame:
        known[AMOUNT_UNIT] = ("tokens", frame["decimals"].reset_index(drop=True))
    return known


def _unit(name: str, frame: pd.DataFrame) -> str:
    """Return the unit of a column if all schemas that it may be of agree, else a token's."""
    schemas = [{column.name: column.unit for column in columns} for columns in SCHEMAS.values()]
    matching = [units for units in schemas if set(frame.columns) <= units.keys()]
    possible = {units[name] for units in matching or schemas if name in units}
    return possible.pop() if len(possible) == 1 else AMOUNT_UNIT


def _cells(name: str, values: pd.Series[Any]) -> Iterator[tuple[str, pd.Series[Any]]]:
    """Yield a column in the form that Excel stores exactly, with its header."""
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        yield f"{name} (UTC)", values.dt.tz_convert("UTC").dt.tz_localize(None)
    elif values.dtype.kind == "O" or _has_many_digits(values):  # also decimals, and categories
        yield name, _checked(pd.Series([_text(value) for value in values], dtype=object), name)
    else:
        yield name, _checked(values, name)


def _has_many_digits(values: pd.Series[Any]) -> bool:
    """Return True for amounts, and for other integers that Excel would round."""
    if isinstance(values.dtype, U128Dtype):
        return True
    is_integer = pd.api.types.is_integer_dtype(values.dtype)
    return is_integer and any(abs(int(value)) >= _EXACT for value in values.dropna())


def _text(value: Any) -> str | None:
    """Convert a value to text; lists and dicts become JSON."""
    if isinstance(value, (list, dict)):
        return json.dumps(value, default=str)
    if value is None or value is pd.NA or (isinstance(value, float) and pd.isna(value)):
        return None
    return str(value)


def _checked(values: pd.Series[Any], name: str) -> pd.Series[Any]:
    """Return a column, after checking that Excel would not truncate its texts."""
    for row, value in enumerate(values):
        if isinstance(value, str) and len(value) > _MAX_TEXT:
            sentence = f"{name} in row {row} has {len(value):,} characters"
            raise InvalidRequestError(
                f"{sentence}, and a cell of Excel at most {_MAX_TEXT:,}",
                field=name,
                remedy="Drop the column, or use Parquet or CSV.",
            )
    return values
