"""
The rows of a table that a person selects: by filters of columns, a search, and an order.

A filter is one of these: a part of a text (``alice``), a comparison (``> 5 NEAR``, ``>= 100``,
``= 12``, ``!= failed``), a range (``1..5 NEAR``), ``empty`` or ``not empty``. Quotes make any of
them a plain part of a text. A number without a unit is in the displayed unit of the row, which is
the smallest one for exact values. Amounts of several tokens sort within each token.
"""

from __future__ import annotations

import operator
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, isfinite, isnan
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ledgerkit import units
from ledgerkit.errors import InvalidRequestError, cut
from ledgerkit.frames.human import plain_text, row_units
from ledgerkit.frames.schemas import AMOUNT_UNIT, FRACTION, YOCTO

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]
    Positions = NDArray[np.intp]
    Condition = tuple[str, Fraction]

_COMPARISON = re.compile(r"(>=|<=|!=|>|<|=)\s*(.+)", re.DOTALL)
_RANGE = re.compile(r"(.+?)\s*\.\.\s*(.+)", re.DOTALL)
_QUANTITY = re.compile(r"(-?\d[\d,]*(?:\.\d+)?)\s*(.*)", re.ASCII | re.DOTALL)
_PART_OF_NUMBER = re.compile(r"-?[\d,]*\d[\d,]*", re.ASCII)
_MAX_FILTER = 200  # characters
_MAX_DIGITS = 120
_MAX_OBJECT_TEXT = 20_000  # characters of a list or dict that are searched or compared
_MAX_DISPLAYED = 1_000  # distinct texts of a column whose displayed forms are searched
_SMALLEST = {"unit": 0, "units": 0}  # units of a token with unknown decimals
_FIXED_UNITS = {YOCTO: units.NEAR_UNITS, "gas": units.GAS_UNITS, FRACTION: {"%": -2}}
_SHOWN_UNITS = {YOCTO: "NEAR", "gas": "Tgas", AMOUNT_UNIT: "units", FRACTION: "%"}
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
}
# A fraction becomes the integer that compares with integers in the same way.
_BOUNDS: dict[str, Callable[[Fraction], int]] = {"<": ceil, ">=": ceil, ">": floor, "<=": floor}
_YES, _NO = ("yes", "true"), ("no", "false")


@dataclass(frozen=True, slots=True)
class Source:
    """A column that filters apply to; its frame has the units of its rows."""

    frame: pd.DataFrame
    position: int
    kind: str  # "number", "time", "bool" or "text"
    unit: str = ""  # the unit of its numbers, as in the schemas
    name: str = ""  # for errors
    write: Callable[[object], str] | None = None  # formats a text for display
    is_exact: bool = False  # whether its numbers are shown in the smallest unit

    @property
    def is_number(self) -> bool:
        return self.kind == "number"

    @property
    def values(self) -> pd.Series[Any]:
        return self.frame.iloc[:, self.position]

    def token_codes(self) -> Positions | None:
        """Return a number for the token of each row, if the column has amounts of tokens."""
        if self.unit != AMOUNT_UNIT or self.is_exact:
            return None
        name = next((name for name in ("asset", "contract_id") if name in self.frame), None)
        units_of: Any = row_units(self.frame) if name is None else None
        tokens = self.frame[name] if name else pd.Series(units_of, dtype=object)
        return pd.factorize(tokens)[0]


def matches(source: Source, text: str) -> Flags:
    text = text.strip()
    if len(text) > _MAX_FILTER:
        raise InvalidRequestError.refuse(
            f"filter of {source.name}", text, f"at most {_MAX_FILTER} characters"
        )
    if text in ("empty", "not empty"):
        is_empty = _missing(source)
        return is_empty if text == "empty" else ~is_empty
    if len(text) > 1 and text[0] == text[-1] == '"':
        return contains(source, text[1:-1])
    comparison = _COMPARISON.fullmatch(text)
    if comparison:
        is_not = comparison[1] == "!="
        rows = _compare(source, "=" if is_not else comparison[1], comparison[2], text)
        return ~rows if is_not else rows
    between = None if source.kind == "text" else _RANGE.fullmatch(text)
    if between:
        return _between(source, between[1], between[2], text)
    if source.kind in ("time", "bool"):
        return _compare(source, "=", text, text)
    matching = search_column(source, text)
    if matching is None:
        raise _refusal(source, text)
    return matching


def search_column(source: Source, text: str) -> Flags | None:
    """Return the rows that have a text in this column; None where the column can't have it."""
    if source.kind == "number":
        return _search_numbers(source, text)
    if source.kind == "time":
        period = _period(text) if re.match(r"\d{4}-\d", text) else None
        return None if period is None else _in_period(source, "=", period)
    return None if source.kind == "bool" else contains(source, text)


def _refusal(source: Source, text: str) -> InvalidRequestError:
    symbols = (symbol for _, symbol, _ in _token_units(source))
    unit = next(symbols, "") or _SHOWN_UNITS.get(source.unit, "")
    high = f"100 {cut(unit)}".strip()
    rules = {
        "number": f'"> {high}", "= {high}", "1..{high}", digits',
        "time": '"2026-01-31", "> 2026-01", "2026-01..2026-03" (UTC)',
        "bool": '"yes" or "no"',
        "text": 'a part of the text, "= text"',
    }
    expected = f'{rules[source.kind]}, "empty" or "not empty"'
    return InvalidRequestError.refuse(f"filter of {source.name}", text, expected)


# Texts ----------------------------------------------------------------------------------


def contains(source: Source, part: str) -> Flags:
    """Return the rows whose text, as it is or as it is displayed, has a part in any case."""
    values, folded = source.values, part.casefold()
    if _has_objects(values):
        return np.array([folded in _object_text(v).casefold() for v in values], dtype=np.bool_)
    codes, distinct = pd.factorize(values)
    texts = pd.Series(distinct).astype("str").str.casefold()
    is_match = texts.str.contains(folded, regex=False, na=False).to_numpy(dtype=np.bool_)
    if source.write is not None and len(distinct) <= _MAX_DISPLAYED:
        is_match = is_match | [folded in source.write(text).casefold() for text in distinct]
    return np.append(is_match, False)[codes]  # the code of missing values is -1


def _has_objects(values: pd.Series[Any]) -> bool:
    is_text = isinstance(values.dtype, pd.StringDtype | pd.CategoricalDtype)
    return values.dtype.kind == "O" and not is_text


def _object_text(value: object) -> str:
    return plain_text(value, _MAX_OBJECT_TEXT)


def _flags(rows: pd.Series[Any]) -> Flags:
    return rows.fillna(value=False).to_numpy(dtype=np.bool_)


def _missing(source: Source) -> Flags:
    is_missing = source.values.isna().to_numpy(dtype=np.bool_)
    if source.kind != "text":
        return is_missing
    return is_missing | _flags(source.values == "")


# Comparisons ----------------------------------------------------------------------------


def _compare(source: Source, sign: str, value: str, text: str) -> Flags:
    if source.kind == "number":
        return _numbers(source, {sign: value}, text)
    if source.kind == "time":
        period = _period(value)
        if period is None:
            raise _refusal(source, text)
        return _in_period(source, sign, period)
    if sign != "=" or (source.kind == "bool" and value.lower() not in (*_YES, *_NO)):
        raise _refusal(source, text)
    if source.kind == "bool":
        return _flags(source.values == (value.lower() in _YES))
    values = source.values
    if _has_objects(values):
        return np.array([_object_text(item) == value for item in values], dtype=np.bool_)
    rows = (values.astype("str") == value).to_numpy(dtype=np.bool_)
    return rows & ~_missing(source)


def _between(source: Source, low: str, high: str, text: str) -> Flags:
    if source.kind == "number":
        _, unit = _quantity(source, high, text)
        has_unit = _quantity(source, low, text)[1] != ""
        return _numbers(source, {">=": low if has_unit else f"{low} {unit}", "<=": high}, text)
    return _compare(source, ">=", low, text) & _compare(source, "<=", high, text)


# Numbers --------------------------------------------------------------------------------


def _quantity(source: Source, value: str, text: str) -> tuple[Fraction, str]:
    match = _QUANTITY.fullmatch(value.strip())
    if match is None or len(match[1]) > _MAX_DIGITS:
        raise _refusal(source, text)
    return Fraction(match[1].replace(",", "")), match[2].strip()


def _numbers(source: Source, comparisons: dict[str, str], text: str) -> Flags:
    """Return the rows whose number meets all comparisons, each in the unit of its row."""
    quantities = {sign: _quantity(source, value, text) for sign, value in comparisons.items()}
    unit = next(iter(quantities.values()))[1]
    if any(other != unit for _, other in quantities.values()):
        raise _refusal(source, text)
    rows = np.zeros(len(source.frame), dtype=np.bool_)
    scales = list(_scales(source, unit))
    if not scales:
        raise _refusal(source, text)
    for decimals, has_unit in scales:
        limits = [(sign, _scaled(number, decimals)) for sign, (number, _) in quantities.items()]
        rows |= has_unit & _meets(source.values, limits)
    return rows


def _scales(source: Source, unit: str) -> Iterator[tuple[int, Flags | bool]]:
    """Yield the decimals of a unit, and the rows that have it; nothing for an unknown unit."""
    default_unit, tokens = _SHOWN_UNITS.get(source.unit), list(_token_units(source))
    if default_unit and not unit and source.is_exact:
        yield 0, True
        return
    if tokens and not unit:
        yield from ((decimals, has_unit) for decimals, _, has_unit in tokens)
        yield 0, ~np.any([has_unit for _, _, has_unit in tokens], axis=0)
        return
    name = (unit or default_unit or "").lower()
    fixed = _FIXED_UNITS.get(source.unit, _SMALLEST)
    if default_unit is None or (source.unit == AMOUNT_UNIT and not tokens):
        if name in ("", source.unit.lower(), *_SMALLEST):
            yield 0, True
    elif name in fixed:
        yield fixed[name], True
    for decimals, symbol, has_unit in tokens:
        if symbol.casefold() == unit.casefold():
            yield decimals, has_unit


def _scaled(number: Fraction, decimals: int) -> Fraction:
    return number * Fraction(10) ** decimals


def _token_units(source: Source) -> Iterator[tuple[int, str, Flags]]:
    if source.unit != AMOUNT_UNIT:
        return
    by_row: Any = row_units(source.frame)
    codes, distinct = pd.factorize(pd.Series(by_row, dtype=object))
    for code, (decimals, symbol) in enumerate(distinct):
        yield decimals, symbol, codes == code


def _meets(values: pd.Series[Any], limits: list[Condition]) -> Flags:
    rows = ~values.isna().to_numpy(dtype=np.bool_)
    for sign, limit in limits:
        rows &= _meets_limit(values, sign, limit)
    return rows


def _meets_limit(values: pd.Series[Any], sign: str, limit: Fraction) -> Flags:
    """Return where numbers meet a condition; missing numbers may have any result."""
    compare = _OPERATORS[sign]
    if values.dtype.kind == "O" or isinstance(values.dtype, pd.ArrowDtype):
        return np.array(
            [is_number(v) and compare(_exact(v), limit) for v in values], dtype=np.bool_
        )
    if values.dtype.kind == "f":
        return _flags(compare(values, float(limit)))
    if sign == "=" and limit.denominator != 1:
        return np.zeros(len(values), dtype=np.bool_)
    # numpy and u128 compare with integers of any size exactly.
    return _flags(compare(values, _BOUNDS.get(sign, int)(limit)))


def is_number(value: object) -> bool:
    return isinstance(value, int) or (isinstance(value, float | Decimal) and isfinite(value))


def _exact(value: Any) -> Any:
    return Fraction(value) if isinstance(value, Decimal) else value


def _search_numbers(source: Source, text: str) -> Flags | None:
    """Return the rows with these digits, or with an amount displayed as this number."""
    rows = None
    if _PART_OF_NUMBER.fullmatch(text):
        digits = text.replace(",", "")
        has_digits = [digits in str(value) for value in source.values.tolist()]
        rows = np.array(has_digits, dtype=np.bool_) & ~_missing(source)
    match = _QUANTITY.fullmatch(text)
    if match is None or len(match[1]) > _MAX_DIGITS or source.unit not in _SHOWN_UNITS:
        return rows
    number, unit = match[1].replace(",", ""), match[2].strip()
    # An amount that rounds to the number is displayed as this number.
    half = Fraction(1, 2 * 10 ** len(number.partition(".")[2])) if "." in number else Fraction(0)
    for decimals, has_unit in _scales(replace(source, is_exact=False), unit):
        low, high = (_scaled(Fraction(number) + sign * half, decimals) for sign in (-1, 1))
        matching = has_unit & _meets(source.values, [(">=", low), ("<=", high)])
        rows = matching if rows is None else rows | matching
    return rows


# Times ----------------------------------------------------------------------------------


def _period(text: str) -> pd.Period | None:
    try:
        return pd.Period(text.strip().removesuffix("UTC").rstrip("Zz ").replace("T", " "))
    except (ValueError, TypeError, OverflowError):
        return None


def _in_period(source: Source, sign: str, period: pd.Period) -> Flags:
    """Return the rows whose time compares with a period: ``>`` is after its end."""
    values = source.values
    begin, end = period.start_time, (period + 1).start_time
    if values.dt.tz is not None:
        begin, end = begin.tz_localize(UTC), end.tz_localize(UTC)  # as times are shown
    conditions = {
        "=": (values >= begin) & (values < end),
        ">": values >= end,
        ">=": values >= begin,
        "<": values < begin,
        "<=": values < end,
    }
    return _flags(conditions[sign])


# The selection ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Selection:
    """The choices of a person; columns are given by position."""

    sort: tuple[tuple[int, bool], ...] = ()  # a column and whether it descends
    filters: tuple[tuple[int, str], ...] = ()  # a column and a text
    search: str = ""  # a text to find in any column
    is_exact: bool = False  # whether numbers are shown in the smallest unit


class Rows:
    """The `count` rows of a frame, filtered and sorted; the last selection is remembered."""

    def __init__(self, sources: Sequence[Source], count: int) -> None:
        self._sources = sources
        self._count = count
        self._lock = threading.Lock()
        self._selection = Selection()
        self._rows: Positions | None = None  # None is every row in the frame's order

    def select(self, selection: Selection, check: Callable[[], None]) -> Positions | None:
        """
        Return the positions of the selected rows in order; None for all rows as they are.

        `check` is called between steps, and raises when the result is no longer needed.
        """
        with self._lock:
            check()
            if selection != self._selection:
                rows = self._filter(selection, check)
                for column, is_descending in reversed(selection.sort):
                    source = self._source(column, selection)
                    if rows is None:
                        rows = order(source.values, is_descending=is_descending)
                    else:
                        rows = rows[order(source.values.iloc[rows], is_descending=is_descending)]
                    codes = source.token_codes()
                    if codes is not None:
                        rows = rows[np.argsort(codes[rows], kind="stable")]
                    check()
                self._selection, self._rows = selection, rows
            return self._rows

    def _filter(self, selection: Selection, check: Callable[[], None]) -> Positions | None:
        flags = None
        for column, text in selection.filters:
            check()
            passed = matches(self._source(column, selection), text)
            flags = passed if flags is None else flags & passed
        if selection.search:
            passed = self._search(selection.search, check)
            flags = passed if flags is None else flags & passed
        return None if flags is None else np.flatnonzero(flags)

    def _source(self, column: int, selection: Selection) -> Source:
        return replace(self._sources[column], is_exact=selection.is_exact)

    def _search(self, text: str, check: Callable[[], None]) -> Flags:
        flags = np.zeros(self._count, dtype=np.bool_)
        for source in self._sources:
            check()
            passed = search_column(source, text)
            if passed is not None:
                flags |= passed
        return flags


def order(values: pd.Series[Any], *, is_descending: bool) -> Positions:
    """Return the positions that sort values stably, exactly, and with missing ones last."""
    if isinstance(values.dtype, pd.CategoricalDtype) and not values.cat.ordered:
        values = values.astype(values.cat.categories.dtype)
    if values.dtype == np.dtype(object):
        return _object_order(values.tolist(), is_descending=is_descending)
    options: Any = {"kind": "stable", "ascending": not is_descending, "na_position": "last"}
    return np.asarray(values.array.argsort(**options), dtype=np.intp)


def _object_order(values: list[Any], *, is_descending: bool) -> Positions:
    keys: list[Any] = [_key(value) for value in values]
    present = [i for i, key in enumerate(keys) if key is not None]
    missing = [i for i, key in enumerate(keys) if key is None]
    present.sort(key=keys.__getitem__, reverse=is_descending)  # stable in both directions
    return np.array(present + missing, dtype=np.intp)


def _key(value: Any) -> tuple[int, Any] | None:
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, float | Decimal) and isnan(value):
        return None
    if isinstance(value, int | float | Decimal):
        return 0, value
    if isinstance(value, np.number):
        return 0, value.item()
    return (1, value) if isinstance(value, str) else (2, plain_text(value, _MAX_OBJECT_TEXT))
