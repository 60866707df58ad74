"""Arrow arrays of lists of values that were decoded from documents, without pandas between."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ledgerkit.errors import DecodeError, cut
from ledgerkit.frames import amounts, arrow_tables
from ledgerkit.u128 import arrow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Texts = Sequence[str | None]
    Integers = Sequence[int | None]

_DIGITS = (ord("0"), ord("9"))


def table(name: str, columns: Mapping[str, Any]) -> Any:
    """Build a `pyarrow.Table` with the fixed schema of a frame from arrays by column name."""
    schema = arrow_tables.schema(name)
    if set(columns) != set(schema.names):
        msg = f"{name}: these are not the declared columns: {sorted(columns)}"
        raise AssertionError(msg)
    return arrow.library().Table.from_arrays([columns[n] for n in schema.names], schema=schema)


def texts(values: Texts) -> Any:
    """Build an array of texts."""
    pa = arrow.library()
    return pa.array(values, pa.string())


def booleans(values: Sequence[bool | None]) -> Any:
    """Build an array of booleans."""
    pa = arrow.library()
    return pa.array(values, pa.bool_())


def integers(values: Integers, name: str, type_name: str = "int64") -> Any:
    """Build an array of integers; an error names the row of one that does not fit."""
    pa = arrow.library()
    try:
        return pa.array(values, type_name)
    except (OverflowError, pa.ArrowInvalid):
        limits = np.iinfo(type_name)
    row = next(at for at, n in enumerate(values) if not limits.min <= (n or 0) <= limits.max)
    msg = f"{name} {cut(str(values[row]))} in row {row} does not fit {type_name}"
    raise DecodeError(msg, path=f"{name}[{row}]")


def gas(values: Integers, name: str) -> Any:
    """Build an array of decimals from amounts of gas, which have 64 bits."""
    return integers(values, name, "uint64").cast(arrow.library().decimal128(arrow.DIGITS))


def times(values: Integers, name: str) -> Any:
    """Build an array of UTC times from nanoseconds since 1970."""
    return integers(values, name).cast(arrow.library().timestamp("ns", "UTC"))


def amounts_of_near(values: Texts, name: str) -> Any:
    """
    Build an array of decimals from digits.

    An error names the row of a text that is no amount, or above the supply of NEAR.
    """
    pa = arrow.library()
    array = pa.array(values, pa.string())
    try:
        # The cast of more digits than fit 128 bits is silently wrong (Arrow 26).
        if has_only_digits(array) and _longest(array) <= arrow.DIGITS:
            return array.cast(pa.decimal128(arrow.DIGITS))
    except pa.ArrowInvalid:  # an empty text
        pass
    parsed = amounts.parse(values, name=name)
    for row, value in enumerate(parsed):
        if value >= arrow.LIMIT:  # false for NA
            msg = f"{name} {value} in row {row} is above the supply of NEAR"
            raise DecodeError(msg, path=f"{name}[{row}]")
    return pa.array(parsed)


def has_only_digits(array: Any) -> bool:
    """Return True if all characters of an array of texts are ASCII digits."""
    data = array.buffers()[2]
    if data is None or not data.size:
        return True
    codes = np.frombuffer(data, dtype=np.uint8)
    return bool(codes.min() >= _DIGITS[0] and codes.max() <= _DIGITS[1])


def _longest(array: Any) -> int:
    """Return the number of bytes of the longest text of an array; 0 for an empty one."""
    offsets = np.frombuffer(array.buffers()[1], dtype=np.int32)[: len(array) + 1]
    return int(np.diff(offsets).max(initial=0))


def lists(values: Sequence[Sequence[str] | None]) -> Any:
    """Build an array of lists of texts; None is the empty list."""
    pa = arrow.library()
    filled = [items or () for items in values]
    ends = np.cumsum([0, *map(len, filled)], dtype=np.int32)
    items = pa.array(list(chain.from_iterable(filled)), pa.string())
    return pa.ListArray.from_arrays(pa.array(ends), items)
