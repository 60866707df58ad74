"""The seam through which every exact amount enters a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ledgerkit.errors import DecodeError, cut
from ledgerkit.units import U128_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LONGEST = 4300  # digits that Python turns into an integer


def parse(texts: Sequence[str | None], *, name: str = "balance") -> np.ndarray:
    """
    Parse decimal texts into exact integers.

    Parameters
    ----------
    texts
        Decimal digits as the wire sends them; None is missing.
    name
        The field, for the error.

    Returns
    -------
    amounts
        Object array of Python ints, `pandas.NA` where missing.

    Raises
    ------
    DecodeError
        If a text is not ASCII digits, or above 2^128 - 1. Signs, spaces,
        underscores and empty texts are refused; the row is named.
    """
    values = plain(texts)
    gaps = values is None and None in texts
    if gaps:
        values = plain(["0" if text is None else text for text in texts])
    if values is None:
        return exact([_one(text, row, name) for row, text in enumerate(texts)], name=name)
    held = np.fromiter(values, dtype=object, count=len(values))
    if gaps:
        held[[text is None for text in texts]] = pd.NA
    return held


def plain(texts: Sequence[Any]) -> list[int] | None:
    """Parse texts of digits all at once; None if one of them needs a closer look."""
    try:
        joined = "".join(texts)
        clean = joined.isascii() and joined.encode().isdigit()
        values = list(map(int, texts)) if clean else []
    except (TypeError, ValueError):  # one is no text, or empty, or has thousands of digits
        return None
    return values if values and max(values) <= U128_MAX else None


def exact(values: Iterable[object], *, name: str = "amount") -> np.ndarray:
    """Check Python ints (None or NA is missing) and hold them in an object array."""
    listed = list(values)
    held = np.fromiter(listed, dtype=object, count=len(listed))
    missing = pd.isna(held)
    held[missing] = pd.NA
    known = held[~missing]
    if known.size and not (known.min() >= 0 and known.max() <= U128_MAX):
        row = next(i for i, v in enumerate(held) if v is not pd.NA and not 0 <= v <= U128_MAX)
        raise _refusal(name, row, held[row], "does not fit 128 bits unsigned")
    return held


def _one(text: str | None, row: int, name: str) -> object:
    """Parse one text, naming its row when it is refused."""
    if text is None:
        return pd.NA
    if not (text.isascii() and text.isdigit()):
        raise _refusal(name, row, text, "is not a string of decimal digits")
    if len(text) > _LONGEST:
        raise _refusal(name, row, text, "does not fit 128 bits unsigned")
    return int(text)


def _refusal(name: str, row: int, value: object, rule: str) -> DecodeError:
    """Say which row of which field was refused, and why."""
    shown = cut(repr(value))
    return DecodeError(f"{name} {shown} in row {row} {rule}", path=f"{name}[{row}]")
