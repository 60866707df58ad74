"""Amounts in human units: conversions of columns, and a format for frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np
import pandas as pd

from ledgerkit import units, validation
from ledgerkit.errors import InvalidRequestError, cut
from ledgerkit.u128 import parsing
from ledgerkit.units import NEAR_DECIMALS

# The storage is "python", so that the dtype is the same with and without pyarrow.
TEXT = pd.StringDtype("python", na_value=np.nan)
_MISSING = "<NA>"  # as pandas prints it
_SEPARATORS = ("", ",", "_", "'", "\u2019", " ", "\u00a0", "\u2009", "\u202f")
_SEPARATOR_RULE = "a comma, an underscore, an apostrophe, a space, or '' for none"


@overload
def to_units(values: pd.Series[Any], decimals: Any, *, as_: str = "text") -> pd.Series[Any]: ...
@overload
def to_units(values: Any, decimals: Any, *, as_: str = "text") -> Any: ...
def to_units(values: Any, decimals: Any, *, as_: str = "text") -> Any:
    """
    Convert amounts to human units, with every digit.

    Parameters
    ----------
    values
        A Series of integers in the smallest unit (u128, or signed as differences are), or one
        integer.
    decimals
        The decimals of the token: 24 for NEAR. For a Series of values also a Series of the same
        index, such as the column ``decimals`` of a frame of tokens.
    as_
        ``"text"``, ``"decimal"`` for Decimals, or ``"float"`` for plots, rounded once.

    Returns
    -------
    amounts
        A Series of the same index and name, or one value. Missing where the value or its
        decimals are.

    Raises
    ------
    InvalidRequestError
        If a value is not an integer or its decimals are not from 0 to 255 (the error names the
        row), or if the indexes differ.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> holders = lk.top_holders("moon.near").head(3)
    >>> lk.to_units(holders["balance"], 18)
    0    340282366920926463463.374607431768211454
    1                                    12000000
    2                        0.000000000000000001
    Name: balance, dtype: str
    """
    convert, build = _FORMATS[validation.one_of(as_, "as_", tuple(_FORMATS))]
    if isinstance(values, pd.Series):
        return _series_like(values, build(_convert_rows(convert, values, decimals)))
    return pd.NA if is_missing(values) else convert(values, decimals)


@overload
def from_units(values: pd.Series[Any], decimals: Any) -> pd.Series[Any]: ...
@overload
def from_units(values: Any, decimals: Any) -> Any: ...
def from_units(values: Any, decimals: Any) -> Any:
    """
    Convert amounts in human units to exact integers of the smallest unit.

    Parameters
    ----------
    values
        A Series of texts such as ``"0.1"``, Decimals or integers, or one of them. A float is
        accepted only if it is exactly what it prints, such as 0.5.
    decimals
        The decimals of the token, as for `to_units`.

    Returns
    -------
    amounts
        A Series of u128 with the same index and name, or one integer. Missing where the value
        or its decimals are.

    Raises
    ------
    InvalidRequestError
        If a value is not such a number, is negative, has more decimals than the token or is
        above 2^128 - 1 (the error names the row), or if the indexes differ.

    Examples
    --------
    >>> import pandas as pd
    >>> lk.from_units("0.1", 24)
    100000000000000000000000
    >>> lk.from_units(pd.Series(["12000000", "0.000000000000000001"]), 18)
    0    12000000000000000000000000
    1                             1
    dtype: u128
    """
    if isinstance(values, pd.Series):
        from ledgerkit.u128.array import U128Dtype

        dtype: Any = U128Dtype()
        ints = _convert_rows(units.from_units, values, decimals)
        return _series_like(values, pd.array(ints, dtype=dtype))
    return pd.NA if is_missing(values) else units.from_units(values, decimals, field="values")


def amount_format(
    decimals: int = NEAR_DECIMALS,
    unit: str = "NEAR",
    *,
    digits: int | None = 2,
    thousands: str = ",",
) -> Callable[[Any], str]:
    """
    Build a function that formats amounts in human units.

    Parameters
    ----------
    decimals
        The decimals of the token.
    unit
        The unit to write after each number.
    digits
        Decimals to show. An amount below 1 has this many digits after its leading zeros, so that
        only 0 is shown as 0; an amount that would look whole has up to six. None shows all digits.
    thousands
        The thousands separator: a comma, an underscore, an apostrophe, a space or "" for none.

    Returns
    -------
    format_amount
        Formats one amount of the smallest unit, such as ``"12,340.68 NEAR"``; an exact
        amount has no trailing zeros, a rounded one keeps them (``"0.50 NEAR"``). Pass it to
        ``frame.style.format({"balance": format_amount})`` or
        ``frame.to_string(formatters={"balance": format_amount})``.

    Raises
    ------
    InvalidRequestError
        If `decimals` are not from 0 to 255, `digits` is neither None nor an integer from 0 on, or
        `thousands` is another text.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> frame = lk.accounts(["alice.near", "bob.near"])[["account_id", "balance"]]
    >>> print(frame.to_string(formatters={"balance": lk.amount_format()}))
       account_id        balance
    0  alice.near 12,340.68 NEAR
    1    bob.near   454.999 NEAR
    >>> lk.amount_format(6, "GOLD", digits=None)(1252998400)
    '1,252.9984 GOLD'
    """
    if thousands not in _SEPARATORS:
        raise InvalidRequestError.refuse("thousands", thousands, _SEPARATOR_RULE)
    # Refuse invalid arguments here, not when a frame is printed.
    units.amount_text(0, decimals, unit, digits)

    def format_amount(value: Any) -> str:
        if is_missing(value):
            return _MISSING
        number = units.amount_text(value, decimals, "", digits).replace(",", thousands)
        return f"{number} {unit}" if unit else number

    return format_amount


# Rows -----------------------------------------------------------------------------------


def _convert_rows(
    convert: Callable[[Any, Any], object], values: Any, decimals: Any
) -> list[object]:
    row_decimals, missing = _decimals_of(values, decimals)
    converted: list[object] = []
    try:
        for value, places, is_na in zip(values.tolist(), row_decimals, missing, strict=True):
            converted.append(pd.NA if is_na else convert(value, places))
    except InvalidRequestError as error:
        raise _with_row(error, values.name, len(converted)) from None
    return converted


def _decimals_of(values: Any, decimals: Any) -> tuple[list[Any], list[bool]]:
    missing = values.isna()
    if not isinstance(decimals, pd.Series):
        units.to_text(0, decimals)
        return [decimals] * len(values), missing.tolist()
    if not decimals.index.equals(values.index):
        msg = "decimals must be a number, or a Series with the index of the values"
        raise InvalidRequestError(msg, field="decimals")
    return decimals.tolist(), (missing | decimals.isna()).tolist()


def _with_row(error: InvalidRequestError, name: object, row: int) -> InvalidRequestError:
    column = "values" if name is None else str(name)
    field = "decimals" if error.field == "decimals" else column
    noun = "value" if field == "values" else field
    # The value of the error is None if it may be a secret; missing amounts are not converted.
    quoted = "(value not shown)" if error.value is None else cut(repr(error.value))
    return InvalidRequestError(
        f"{noun} {quoted} in row {row} is not valid: expected {error.rule}",
        field=f"{field}[{row}]",
        value=error.value,
        rule=error.rule,
    )


def _series_like(values: Any, converted: Any) -> pd.Series[Any]:
    return pd.Series(converted, index=values.index, name=values.name, copy=False)


def is_missing(value: Any) -> bool:
    """Return True for None, NA and NaN; lists and arrays are not missing."""
    return (
        value is None or value is pd.NA or (pd.api.types.is_scalar(value) and bool(pd.isna(value)))
    )


def _floats(values: list[object]) -> np.ndarray:
    return np.array([np.nan if value is pd.NA else value for value in values], dtype=np.float64)


def _texts(values: list[object]) -> Any:
    return pd.array(parsing.objects(values), dtype=TEXT)


_FORMATS: dict[str, tuple[Callable[[Any, Any], object], Callable[[list[object]], Any]]] = {
    "text": (units.to_text, _texts),
    "decimal": (units.to_decimal, parsing.objects),
    "float": (units.to_float, _floats),
}
