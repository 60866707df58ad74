"""Columns of amounts of any type, parsed into planes and a mask."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pandas as pd

from ledgerkit import units
from ledgerkit.errors import DecodeError, InvalidRequestError, cut, quote
from ledgerkit.u128 import decimal_text, planes

if TYPE_CHECKING:
    from ledgerkit.u128.planes import Flags, Objects, Planes

_LONGEST = 4300  # digits; Python's own limit for converting a text to an integer
_RULE = "{} holds ints and texts of digits"


def read(values: Any, *, signed: bool) -> tuple[Planes, Flags]:
    """Read a column of ints, texts of digits and missing values; an error names the row."""
    if type(values).__module__.partition(".")[0] == "pyarrow":
        return _from_arrow(values, signed=signed)
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, pd.ArrowDtype):
        return _from_arrow(pd.array(values).__arrow_array__(), signed=signed)
    if dtype is not None and pd.api.types.is_integer_dtype(dtype):
        words, mask = _from_integers(values)
    else:
        words, mask = _from_objects(values, signed=signed)
    return check(words, signed=signed), mask


def check(values: Planes, *, signed: bool) -> Planes:
    """Return planes of the dtype; an error names the row of the first negative value of u128."""
    if signed:
        return planes.signed(values)
    if (row := planes.first(planes.flags(values))) is not None:
        (value,) = planes.to_ints(planes.take(values, [row]))
        raise OverflowError(f"{value} in row {row} {_fit(signed=signed)}, but in i129")
    return values[:2]


def read_ints(values: Any) -> tuple[Planes, Flags]:
    """Read a column of ints and missing values; texts and Decimals are refused."""
    dtype: Any = getattr(values, "dtype", None)
    is_object = dtype is None or dtype == np.dtype(object) or isinstance(dtype, pd.ArrowDtype)
    if is_object or not pd.api.types.is_integer_dtype(dtype):
        return _from_objects(values, signed=True, ints_only=True)
    return _from_integers(values)


def objects(values: Any) -> Objects:
    if hasattr(values, "dtype"):
        return np.asarray(values, dtype=object)
    listed = list(values)
    return np.fromiter(listed, dtype=object, count=len(listed))


def as_list(other: Any) -> Any:
    """Return an operand as a list or array, of one row if it is a single value."""
    return other if pd.api.types.is_list_like(other) else [other]


def missing_in(values: Any) -> Flags:
    return np.array(pd.isna(values), dtype=np.bool_)


def raise_overflow(row: int, result: str, *, signed: bool) -> NoReturn:
    way = "astype(object) uses Python ints, which have no limit"
    raise OverflowError(f"{result} in row {row} {_fit(signed=signed)}; {way}")


def _fit(*, signed: bool) -> str:
    return f"does not fit in {planes.NAMES[signed]}"


def _from_integers(values: Any) -> tuple[Planes, Flags]:
    mask = missing_in(values)
    if isinstance(values.dtype, np.dtype):
        ints = np.asarray(values)
    else:
        ints = values.to_numpy(dtype=values.dtype.type, na_value=0)
    lo = ints.astype(np.uint64)
    negative = ints < 0
    if negative.any():
        return (np.uint64(0) - negative, lo, negative), mask
    return (np.zeros_like(lo), lo), mask


def _from_objects(values: Any, *, signed: bool, ints_only: bool = False) -> tuple[Planes, Flags]:
    values = objects(values)
    mask = missing_in(values)
    kinds = set(map(type, values[~mask]))
    if kinds == {str} and not ints_only:
        pairs = zip(values, mask, strict=True)
        texts = [None if missing else text for text, missing in pairs]
        return _from_texts(texts, signed=signed)
    ints = np.where(mask, 0, values).tolist()
    if not kinds <= {int}:
        ints = [
            value if missing else _parse_value(value, row, signed=signed, ints_only=ints_only)
            for row, (value, missing) in enumerate(zip(ints, mask.tolist(), strict=True))
        ]
    return from_ints(ints, signed=signed), mask


def from_ints(values: list[int], *, signed: bool) -> Planes:
    """Convert Python ints to planes; an error names the row of the first that does not fit."""
    try:
        return planes.from_ints(values)
    except OverflowError:
        lowest = planes.LOWEST[signed]
        row = next(i for i, value in enumerate(values) if not lowest <= value < planes.LIMIT)
        raise OverflowError(f"{cut(values[row])} in row {row} {_fit(signed=signed)}") from None


def _from_texts(values: list[str | None], *, signed: bool) -> tuple[Planes, Flags]:
    """Parse texts of digits; an error is a ValueError, because the caller passed the text."""
    try:
        return decimal_text.parse(values, name="amount", signed=signed)
    except DecodeError:
        ints = [
            0 if text is None else _parse_digits(text, row, signed=signed)
            for row, text in enumerate(values)
        ]
        mask = np.array([text is None for text in values], dtype=np.bool_)
        return from_ints(ints, signed=signed), mask


def _from_arrow(values: Any, *, signed: bool) -> tuple[Planes, Flags]:
    from ledgerkit.u128 import arrow

    try:
        return arrow.from_arrow(values, signed=signed)
    except DecodeError as error:
        raise ValueError(error.sentence) from None


def _parse_value(value: object, row: int, *, signed: bool, ints_only: bool) -> int:
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return operator.index(value)
    if isinstance(value, str) and not ints_only:
        return _parse_digits(value, row, signed=signed)
    if isinstance(value, Decimal) and not ints_only:
        return _parse_decimal(value, row)
    return _refuse(value, row, signed=signed)


def _parse_digits(text: str, row: int, *, signed: bool) -> int:
    is_negative = signed and text.startswith("-")
    digits = text[is_negative:]
    if not (digits.isascii() and digits.isdigit()):
        hint = f": write {call}" if (call := _as_yocto(text)) else ""
        msg = f"amount {quote(text)} in row {row} is not a string of decimal digits{hint}"
        raise ValueError(msg)
    digits = digits.lstrip("0")
    if len(digits) > _LONGEST:
        raise OverflowError(f"amount {quote(text)} in row {row} {_fit(signed=signed)}")
    return int(digits or "0") * (-1 if is_negative else 1)


def _parse_decimal(number: Decimal, row: int) -> int:
    if number.is_finite() and number.adjusted() < _LONGEST and number == int(number):
        return int(number)
    raise ValueError(f"amount {cut(number)} in row {row} is not a whole number")


def refuse_text(values: Iterable[object]) -> None:
    """Raise for the first text among operands, and say what to write in its place."""
    text = next((value for value in values if isinstance(value, str)), None)
    if text is not None:
        integer = _as_yocto(text) or "an integer, such as ledgerkit.units.yocto('1 NEAR'),"
        msg = f"u128 holds integers of the smallest unit: write {integer} in place of {quote(text)}"
        raise TypeError(msg) from None


def refuse_amounts(values: Iterable[object]) -> None:
    """Raise for the first amount in text, such as "1 NEAR", which would equal no integer."""
    texts = (value for value in values if isinstance(value, str))
    # Most other texts are excluded before parsing, because an error takes much longer.
    quantities = (text for text in texts if text[:1].isdigit() and text[-1:].isalpha())
    refuse_text(text for text in quantities if _as_yocto(text))


def _as_yocto(text: str) -> str:
    """Return the call that converts an amount of NEAR such as "1 NEAR"; "" for any other text."""
    try:
        units.yocto(text)
    except InvalidRequestError:
        return ""
    return f"ledgerkit.units.yocto({text!r})"


def _refuse(value: object, row: int, *, signed: bool) -> NoReturn:
    reason = (
        "; a float may have lost digits: build the column with dtype=object, then use astype"
        if isinstance(value, float)
        else ""
    )
    kind = type(value).__name__
    rule = _RULE.format(planes.NAMES[signed])
    raise TypeError(f"{quote(value)} in row {row} is a {kind}: {rule}{reason}")
