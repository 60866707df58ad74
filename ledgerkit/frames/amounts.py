"""Conversion of decimal texts and Python integers to exact columns of u128 and i129."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ledgerkit.errors import DecodeError, cut
from ledgerkit.u128 import decimal_text, parsing, planes
from ledgerkit.u128.array import U128Array
from ledgerkit.units import U128_MAX

_FEW = 32


def parse(values: Sequence[str | None], *, name: str = "balance") -> U128Array:
    """Parse decimal texts (None is missing) into a column; an error has the invalid text's row."""
    # Converting a few texts one by one is faster than arrays.
    integers = plain(values) if len(values) <= _FEW else None
    if integers is not None:
        return U128Array.of(planes.from_ints(integers), np.zeros(len(integers), dtype=np.bool_))
    return U128Array.of(*decimal_text.parse(values, name=name))


def plain(values: Sequence[Any]) -> list[int] | None:
    """Parse texts of digits into integers; None if there are no texts or one is invalid."""
    try:
        joined = "".join(values)
        is_digits = joined.isascii() and joined.encode().isdigit()
        integers = list(map(int, values)) if is_digits else []
    except (TypeError, ValueError):  # not a text, an empty text, or thousands of digits
        return None
    return integers if integers and max(integers) <= U128_MAX else None


def exact(values: Iterable[Any], *, name: str = "amount", signed: bool = False) -> U128Array:
    """Convert Python integers (None or NA is missing) to a column; raise if a value doesn't fit."""
    listed = list(values)
    if set(map(type, listed)) <= {int}:  # nothing is missing
        mask, filled = np.zeros(len(listed), dtype=np.bool_), listed
    else:
        mask = parsing.missing_in(listed)
        filled = [0 if missing else value for value, missing in zip(listed, mask, strict=True)]
    lowest = planes.LOWEST[signed]
    if filled and not (min(filled) >= lowest and max(filled) <= U128_MAX):
        row = next(i for i, v in enumerate(filled) if not lowest <= v <= U128_MAX)
        dtype = planes.NAMES[signed]
        sentence = f"{name} {cut(repr(filled[row]))} in row {row} does not fit in {dtype}"
        raise DecodeError(sentence, path=f"{name}[{row}]")
    ints = planes.from_ints(filled)
    return U128Array.of(planes.signed(ints) if signed else ints, mask)


def difference(value: Any) -> Any:
    """Return a difference of amounts; NA if it is unknown or does not fit i129."""
    return pd.NA if value is None or value is pd.NA or abs(value) > U128_MAX else value
