"""Amounts as people read them: columns to human units and back, and a format for frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pandas as pd

from ledgerkit import units, validation
from ledgerkit.errors import InvalidRequestError, cut
from ledgerkit.units import NEAR_DECIMALS

if TYPE_CHECKING:
    from collections.abc import Callable

# One storage whether or not pyarrow is installed: dtypes must not depend on an extra.
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
    Write amounts in human units, every digit kept.

    Parameters
    ----------
    values
        A Series of integers in the smallest unit (u128, or signed as differences are), or one.
    decimals
        How many decimals the token has: 24 for NEAR. With a Series of values also a Series of
        the same index, such as the column ``decimals`` of a frame of tokens.
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
        If a value is no integer or its decimals are not from 0 to 255, naming the row, or
        if the indexes differ.
    """
    convert, hold = _WAYS[validation.one_of(as_, "as_", tuple(_WAYS))]
    if isinstance(values, pd.Series):
        return _like(values, hold(_each(convert, values, decimals)))
    return pd.NA if _is_missing(values) else convert(values, decimals)


@overload
def from_units(values: pd.Series[Any], decimals: Any) -> pd.Series[Any]: ...
@overload
def from_units(values: Any, decimals: Any) -> Any: ...
def from_units(values: Any, decimals: Any) -> Any:
    """
    Read amounts in human units as exact numbers of the smallest unit.

    Parameters
    ----------
    values
        A Series of texts such as ``"0.1"``, Decimals or integers, or one of them. A float
        only where it is exactly what it prints, such as 0.5.
    decimals
        How many decimals the token has, as for `to_units`.

    Returns
    -------
    amounts
        A Series of u128 with the same index and name, or one integer. Missing where the value
        or its decimals are.

    Raises
    ------
    InvalidRequestError
        If a value is no such number, is below zero, has more decimals than the token or is
        above 2^128 - 1, naming the row, or if the indexes differ.
    """
    if isinstance(values, pd.Series):
        return _like(values, pd.array(_each(units.from_units, values, decimals), dtype=_u128()))
    return pd.NA if _is_missing(values) else units.from_units(values, decimals)


def amount_format(
    decimals: int = NEAR_DECIMALS, unit: str = "NEAR", *, thousands: str = ","
) -> Callable[[Any], str]:
    """
    Make a format that shows amounts in human units, every digit kept.

    Parameters
    ----------
    decimals
        How many decimals the token has.
    unit
        A name to put after each number.
    thousands
        What to put between thousands: a comma, an underscore, an apostrophe, a space or "".

    Returns
    -------
    show
        Writes one amount of the smallest unit, such as ``"1,234.5 NEAR"``. For
        ``frame.style.format({"balance": show})`` and
        ``frame.to_string(formatters={"balance": show})``.

    Raises
    ------
    InvalidRequestError
        If `decimals` are not from 0 to 255, or `thousands` is another text.
    """
    if thousands not in _SEPARATORS:
        raise InvalidRequestError.refuse("thousands", thousands, _SEPARATOR_RULE)
    units.to_text(0, decimals)  # refuses the decimals here, not when a frame is shown

    def show(value: Any) -> str:
        """Write one amount."""
        if _is_missing(value):
            return _MISSING
        return units.to_text(value, decimals, unit, thousands=thousands)

    return show


# Row by row -----------------------------------------------------------------------------


def _each(convert: Callable[[Any, Any], object], values: Any, decimals: Any) -> list[object]:
    """Convert each value that is there, naming the row of one that is refused."""
    places, missing = _places(values, decimals)
    converted: list[object] = []
    try:
        for value, place, gap in zip(values.tolist(), places, missing, strict=True):
            converted.append(pd.NA if gap else convert(value, place))
    except InvalidRequestError as error:
        raise _in_row(error, values.name, len(converted)) from None
    return converted


def _places(values: Any, decimals: Any) -> tuple[list[Any], list[bool]]:
    """Give the decimals of each row, and where they or the value are missing."""
    missing = values.isna()
    if not isinstance(decimals, pd.Series):
        units.to_text(0, decimals)
        return [decimals] * len(values), missing.tolist()
    if not decimals.index.equals(values.index):
        rule = "a number, or a Series with the index of the values"
        raise InvalidRequestError.refuse("decimals", "with another index", rule)
    return decimals.tolist(), (missing | decimals.isna()).tolist()


def _in_row(error: InvalidRequestError, name: object, row: int) -> InvalidRequestError:
    """Say in which row a value was refused."""
    field = "amount" if name is None else str(name)
    what = field if error.field != "decimals" else "decimals"
    return InvalidRequestError(
        f"{what} {cut(repr(error.value))} in row {row} is not valid: {error.rule}",
        field=f"{what}[{row}]",
        value=error.value,
        rule=error.rule,
    )


def _like(values: Any, held: Any) -> pd.Series[Any]:
    """Put converted values beside the ones they came from."""
    return pd.Series(held, index=values.index, name=values.name, copy=False)


def _is_missing(value: Any) -> bool:
    """Tell None, NA and NaN from values, lists and arrays."""
    return (
        value is None or value is pd.NA or (pd.api.types.is_scalar(value) and bool(pd.isna(value)))
    )


def _u128() -> Any:
    """Load the dtype."""
    from ledgerkit.u128.array import U128Dtype

    return U128Dtype()


def _objects(values: list[object]) -> np.ndarray:
    """Hold Python objects one by one."""
    return np.fromiter(values, dtype=object, count=len(values))


def _floats(values: list[object]) -> np.ndarray:
    """Hold floats, NaN where missing."""
    return np.array([np.nan if value is pd.NA else value for value in values], dtype=np.float64)


def _texts(values: list[object]) -> Any:
    """Hold texts as the columns of text in every frame are held."""
    return pd.array(_objects(values), dtype=TEXT)


_WAYS: dict[str, tuple[Callable[[Any, Any], object], Callable[[list[object]], Any]]] = {
    "text": (units.to_text, _texts),
    "decimal": (units.to_decimal, _objects),
    "float": (units.to_float, _floats),
}
