"""Whatever a column of amounts may come from, read into planes and a mask."""

from __future__ import annotations

import operator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pandas as pd

from ledgerkit.errors import DecodeError, cut
from ledgerkit.u128 import decimal_text, planes

if TYPE_CHECKING:
    from ledgerkit.u128.planes import Flags, Objects, Planes

_LONGEST = 4300  # digits that Python turns into an integer
_FIT = "does not fit 128 bits unsigned"
_RULE = "u128 holds ints and texts of digits"


def read(values: Any) -> tuple[Planes, Flags]:
    """
    Read ints, texts of digits and gaps.

    Parameters
    ----------
    values
        A list, an array, a Series or an Arrow array. None, NA and NaN are gaps.

    Returns
    -------
    both
        The planes, 0 where a value is missing, and the mask that says where.

    Raises
    ------
    TypeError
        If a value is of another kind, such as a float or a bool; its row is named.
    ValueError
        If a text is not digits, or a decimal is not whole.
    OverflowError
        If a number is below 0 or above 2^128 - 1.
    """
    if type(values).__module__.partition(".")[0] == "pyarrow":
        return _from_arrow(values)
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, pd.ArrowDtype):
        return _from_arrow(pd.array(values).__arrow_array__())
    if dtype is not None and pd.api.types.is_integer_dtype(dtype):
        return _from_integers(values)
    if isinstance(dtype, np.dtype) and dtype.kind in "fb":
        return _from_floats(np.asarray(values))
    return _from_objects(values, texts_too=True)


def read_ints(values: Any) -> tuple[Planes, Flags]:
    """Read ints and gaps, as `read` does; texts and decimals are refused."""
    dtype = getattr(values, "dtype", None)
    if dtype is None or dtype == np.dtype(object):
        return _from_objects(values, texts_too=False)
    if isinstance(dtype, pd.ArrowDtype) or not pd.api.types.is_integer_dtype(dtype):
        return _from_objects(values, texts_too=False)
    return _from_integers(values)


def objects(values: Any) -> Objects:
    """Hold values one by one in an array of Python objects."""
    if hasattr(values, "dtype"):
        return np.asarray(values, dtype=object)
    listed = list(values)
    return np.fromiter(listed, dtype=object, count=len(listed))


def overflow(row: int, shown: str) -> NoReturn:
    """Refuse a result that is outside the range, naming its row."""
    msg = f"{shown} in row {row} {_FIT}; astype(object) counts in Python ints, without a limit"
    raise OverflowError(msg)


def _from_integers(values: Any) -> tuple[Planes, Flags]:
    """Read an integer dtype of at most 64 bits, with or without gaps."""
    mask = np.array(pd.isna(values), dtype=np.bool_)
    if isinstance(values.dtype, np.dtype):
        held = np.asarray(values)
    else:
        held = values.to_numpy(dtype=values.dtype.type, na_value=0)
    if held.dtype.kind == "i" and held.size and held.min() < 0:
        row = int(np.argmax(held < 0))
        raise OverflowError(f"{held[row]} in row {row} {_FIT}")
    lo = held.astype(np.uint64)
    return (np.zeros_like(lo), lo), mask


def _from_floats(values: np.ndarray) -> tuple[Planes, Flags]:
    """Take floats that are nothing but gaps; refuse the first other one, and bools."""
    mask = np.array(pd.isna(values), dtype=np.bool_)
    if not mask.all():
        row = int(np.argmin(mask))
        _refuse(values[row].item(), row)
    zeros = np.zeros(len(values), dtype=np.uint64)
    return (zeros, zeros.copy()), mask


def _from_objects(values: Any, *, texts_too: bool) -> tuple[Planes, Flags]:
    """Read Python objects, all at once where they are of one kind."""
    listed = objects(values).tolist() if hasattr(values, "dtype") else list(values)
    kinds = set(map(type, listed))
    if kinds <= {int}:
        return from_ints(listed), np.zeros(len(listed), dtype=np.bool_)
    if kinds <= {str, type(None)} and texts_too:
        return _from_texts(listed)
    return _with_gaps(objects(listed), texts_too=texts_too)


def _with_gaps(held: Objects, *, texts_too: bool) -> tuple[Planes, Flags]:
    """Read Python objects some of which may be missing."""
    mask = np.array(pd.isna(held), dtype=np.bool_)
    kinds = set(map(type, held[~mask]))
    if kinds == {str} and texts_too:
        return _from_texts([None if gap else text for text, gap in zip(held, mask, strict=True)])
    ints = np.where(mask, 0, held).tolist()
    if not kinds <= {int}:
        ints = [
            value if gap else _one(value, row, texts_too=texts_too)
            for row, (value, gap) in enumerate(zip(ints, mask.tolist(), strict=True))
        ]
    return from_ints(ints), mask


def from_ints(values: list[int]) -> Planes:
    """Hold Python ints in planes, naming the row of the first that does not fit."""
    try:
        return planes.from_ints(values)
    except OverflowError:
        row = next(i for i, value in enumerate(values) if not 0 <= value < planes.LIMIT)
        raise OverflowError(f"{cut(values[row])} in row {row} {_FIT}") from None


def _from_texts(values: list[str | None]) -> tuple[Planes, Flags]:
    """Parse texts of digits; what is refused is the caller's value, not an answer's."""
    try:
        return decimal_text.parse(values, name="amount")
    except DecodeError:
        ints = [0 if text is None else _digits(text, row) for row, text in enumerate(values)]
        return from_ints(ints), np.array([text is None for text in values], dtype=np.bool_)


def _from_arrow(values: Any) -> tuple[Planes, Flags]:
    """Read an array of pyarrow's."""
    from ledgerkit.u128 import arrow

    try:
        hi, lo, mask = arrow.from_arrow(values)
    except DecodeError as error:
        raise ValueError(error.sentence) from None
    return (hi, lo), mask


def _one(value: object, row: int, *, texts_too: bool) -> int:
    """Read one value that is no gap."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return operator.index(value)
    if texts_too and isinstance(value, str):
        return _digits(value, row)
    if texts_too and isinstance(value, Decimal):
        return _whole(value, row)
    return _refuse(value, row)


def _digits(text: str, row: int) -> int:
    """Read one text of digits."""
    if not (text.isascii() and text.isdigit()):
        shown = cut(repr(text))
        raise ValueError(f"amount {shown} in row {row} is not a string of decimal digits")
    digits = text.lstrip("0")
    if len(digits) > _LONGEST:
        raise OverflowError(f"amount {cut(repr(text))} in row {row} {_FIT}")
    return int(digits or "0")


def _whole(number: Decimal, row: int) -> int:
    """Read one decimal without decimals."""
    if number.is_finite() and number.adjusted() < _LONGEST and number == int(number):
        return int(number)
    raise ValueError(f"amount {cut(number)} in row {row} is not a whole number")


def _refuse(value: object, row: int) -> NoReturn:
    """Refuse a value of another kind."""
    kind = type(value).__name__
    why = "; a float may have lost digits" if isinstance(value, float) else ""
    raise TypeError(f"{cut(repr(value))} in row {row} is a {kind}: {_RULE}{why}")
