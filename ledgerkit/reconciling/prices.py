"""Prices of assets at times, and exact values of amounts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from decimal import Context, Decimal, InvalidOperation
from typing import Any, NamedTuple

import pandas as pd

from ledgerkit import units
from ledgerkit.errors import InvalidRequestError

COLUMNS = ("asset", "time", "price", "currency")
# A product has at most as many digits as both factors together: no value is rounded.
_MAX_DIGITS = 60
EXACT = Context(prec=200)


class Price(NamedTuple):
    """The price of one whole token."""

    amount: Decimal
    currency: str

    def value(self, amount: int, decimals: int) -> Decimal:
        """Compute the exact value of an amount in smallest units."""
        return EXACT.multiply(units.to_decimal(amount, decimals), self.amount)


class Prices:
    """
    The prices of the frame passed to `Statement.to_csv`, by asset and time.

    A float counts as its shortest decimal text.
    """

    def __init__(self, frame: pd.DataFrame | None) -> None:
        self._times: dict[str, list[int]] = {}
        self._prices: dict[str, list[Price]] = {}
        for asset, time_ns, price in sorted(_rows(frame), key=lambda row: row[:2]):
            times = self._times.setdefault(asset, [])
            if times and times[-1] == time_ns:
                raise _refusal("time", pd.Timestamp(time_ns, tz="UTC"), "one price of an asset")
            times.append(time_ns)
            self._prices.setdefault(asset, []).append(price)

    @property
    def currencies(self) -> list[str]:
        names = (price.currency for prices in self._prices.values() for price in prices)
        return list(dict.fromkeys(names))

    def at(self, asset: str, time_ns: int | None) -> Price | None:
        """Return the last price at or before a time; None if there is none."""
        if time_ns is None:
            return None
        count = bisect_right(self._times.get(asset, []), time_ns)
        return self._prices[asset][count - 1] if count else None


def _rows(frame: pd.DataFrame | None) -> Iterator[tuple[str, int, Price]]:
    if frame is None:
        return
    if not isinstance(frame, pd.DataFrame):
        expected = f"a frame with the columns {', '.join(COLUMNS)}"
        raise InvalidRequestError.refuse("price", frame, expected)
    for name in COLUMNS:
        if name not in frame.columns:
            raise InvalidRequestError.required(f'price["{name}"]', "a column of the prices")
    for asset, time_ns, price, currency in zip(
        _texts(frame, "asset"),
        _times(frame["time"]),
        map(_number, frame["price"]),
        _texts(frame, "currency"),
        strict=True,
    ):
        yield asset, time_ns, Price(price, currency)


def _texts(frame: pd.DataFrame, name: str) -> Iterator[str]:
    for value in frame[name]:
        if not isinstance(value, str) or not value:
            raise _refusal(name, value, "a text")
        yield value


def _times(column: pd.Series[Any]) -> list[int]:
    if not isinstance(column.dtype, pd.DatetimeTZDtype) or column.isna().any():
        raise _refusal("time", column.dtype, "times with a time zone, none of them missing")
    utc = column.dt.tz_convert("UTC").dt.as_unit("ns").astype("int64")
    return [int(value) for value in utc]


def _number(value: Any) -> Decimal:
    text = repr(float(value)) if isinstance(value, float) else str(value)
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise _refusal("price", value, "a number") from None
    if not number.is_finite() or number < 0 or isinstance(value, bool):
        raise _refusal("price", value, "a number from 0 on")
    if len(f"{number:f}") > _MAX_DIGITS:
        raise _refusal("price", value, f"a number of at most {_MAX_DIGITS} digits")
    return number


def _refusal(column: str, value: object, expected: str) -> InvalidRequestError:
    return InvalidRequestError.refuse(f'price["{column}"]', value, expected)
