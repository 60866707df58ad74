"""The seam through which every exact amount enters a frame: texts and ints to u128 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ledgerkit.errors import DecodeError, cut
from ledgerkit.u128 import decimal_text, planes
from ledgerkit.u128.array import U128Array
from ledgerkit.units import U128_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def parse(values: Sequence[str | None], *, name: str = "balance") -> U128Array:
    """
    Parse decimal texts into a column of exact integers.

    Parameters
    ----------
    values
        Decimal digits as the wire sends them; None is missing.
    name
        The field, for the error.

    Returns
    -------
    amounts
        Of dtype u128, `pandas.NA` where missing.

    Raises
    ------
    DecodeError
        If a text is not ASCII digits, or above 2^128 - 1. Signs, spaces,
        underscores and empty texts are refused; the row is named.
    """
    return U128Array.of(*decimal_text.parse(values, name=name))


def plain(values: Sequence[Any]) -> list[int] | None:
    """Parse texts of digits into ints, all at once; None if one needs a closer look."""
    try:
        joined = "".join(values)
        clean = joined.isascii() and joined.encode().isdigit()
        found = list(map(int, values)) if clean else []
    except (TypeError, ValueError):  # one is no text, or empty, or has thousands of digits
        return None
    return found if found and max(found) <= U128_MAX else None


def exact(values: Iterable[Any], *, name: str = "amount") -> U128Array:
    """Check Python ints (None or NA is missing) and hold them in a column."""
    listed = list(values)
    mask = np.asarray(pd.isna(listed), dtype=np.bool_)
    known = [0 if gap else value for value, gap in zip(listed, mask, strict=True)]
    if known and not (min(known) >= 0 and max(known) <= U128_MAX):
        row = next(i for i, v in enumerate(known) if not 0 <= v <= U128_MAX)
        shown = cut(repr(known[row]))
        sentence = f"{name} {shown} in row {row} does not fit 128 bits unsigned"
        raise DecodeError(sentence, path=f"{name}[{row}]")
    return U128Array.of(planes.from_ints(known), mask)
