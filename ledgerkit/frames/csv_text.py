"""Frames as CSV text that is safe in a terminal and in a spreadsheet."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from ledgerkit.visible_text import escape_invisible

# A spreadsheet reads a cell that begins with one of these as a formula; some accept the last four,
# the full-width forms, too. Where the comma is not the separator of cells, a semicolon, tab or line
# break begins a new cell: https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = re.compile(r"(^|[;\t\r\n])(?=[\s\"]*[=+\-@\uff1d\uff0b\uff0d\uff20])")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")


def csv_text(frame: pd.DataFrame, *, header: bool = True) -> str:
    """
    Write a frame as CSV for a spreadsheet; its index is left out.

    A text that a spreadsheet could read as a formula gets an apostrophe in front, and invisible
    characters are escaped. Signed numbers stay exact.
    """
    columns = [_safe_column(column) for _, column in frame.items()]
    cells = pd.DataFrame(dict(enumerate(columns)), index=frame.index)
    names = [_safe_cell(str(name)) for name in frame.columns]
    return cells.to_csv(index=False, header=names if header else False, lineterminator="\n")


def _safe_column(column: pd.Series[Any]) -> pd.Series[Any]:
    if column.dtype.kind != "O":  # numbers, amounts and times
        return column
    values = [value if _is_number(value) else _safe_cell(str(value)) for value in column]
    return pd.Series(values, index=column.index, dtype=object)


def _is_number(value: Any) -> bool:
    is_missing = pd.api.types.is_scalar(value) and pd.isna(value)
    return bool(is_missing or pd.api.types.is_number(value))


def _safe_cell(text: str) -> str:
    """Return a text that is safe from formulas, with invisible characters escaped."""
    visible = escape_invisible(text, keep="\n")
    return visible if _NUMBER.fullmatch(visible) else _FORMULA.sub(r"\1'", visible)
