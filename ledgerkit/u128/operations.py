"""Arithmetic and comparison of columns of 128-bit integers with columns and numbers."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import pandas as pd

from ledgerkit.errors import cut
from ledgerkit.u128 import division, parsing, planes

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.u128.array import U128Array
    from ledgerkit.u128.planes import Flags, Objects, Planes

# Functions of numpy that give floats whatever they are given.
ROUNDED = frozenset("sqrt cbrt log log2 log10 log1p exp exp2 expm1".split())

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "pow": "**"}
_NEVER = np.zeros(1, dtype=np.bool_)  # a quotient is not too large
_KERNELS: dict[str, Callable[[Planes, Planes], tuple[Planes, Flags]]] = {
    "add": planes.add,
    "mul": planes.multiply,
    "pow": planes.power,
    "floordiv": lambda a, b: (planes.divide(a, b)[0], _NEVER),
    "mod": lambda a, b: (planes.divide(a, b)[1], _NEVER),
}
_HIGHEST_POWER = 130  # of 2 or more: above the range, whatever is added to it
# The integer that stands for a fraction when it is compared with integers.
_BOUNDS = {"lt": math.ceil, "ge": math.ceil, "gt": math.floor, "le": math.floor}


class Side(NamedTuple):
    """An operand: planes if all of it fits them, otherwise Python ints; one row, or each."""

    held: Planes | None
    mask: Flags
    ints: Objects | None = None

    def exactly(self) -> Any:
        """Give Python ints."""
        return self.ints if self.held is None else planes.to_ints(*self.held)


# Arithmetic -----------------------------------------------------------------------------


def arithmetic(array: U128Array, other: Any, name: str) -> Any:
    """
    Compute one of the operations, named as in `operator`, or with an "r" in front.

    Parameters
    ----------
    array
        The column.
    other
        A column, an array or a list of as many integers, or one integer.
    name
        The operation; `rsub` is `other - array`.

    Returns
    -------
    result
        A column; Python ints for differences; float64 for true division.

    Raises
    ------
    OverflowError
        If a result is below 0 or above 2^128 - 1; its row is named.
    TypeError
        If the other operand is no integer.
    """
    swapped = name.startswith("r")
    name = name.removeprefix("r")
    if name == "truediv":
        return division.divide(array, _aligned(array, other), swapped=swapped)
    mine = Side(array.planes, array.mask)
    try:
        theirs = side(array, other)
    except TypeError as error:
        _refuse(name, other, error)
    a, b = (theirs, mine) if swapped else (mine, theirs)
    if name == "sub":
        return _differences(a, b)
    if name == "divmod":
        return _whole(array, a, b, "floordiv"), _whole(array, a, b, "mod")
    return _whole(array, a, b, name)


def side(array: U128Array, other: Any) -> Side:
    """Read an operand of integers and gaps."""
    other = _aligned(array, other)
    if isinstance(other, type(array)):
        return Side(other.planes, other.mask)
    listed = other if pd.api.types.is_list_like(other) else parsing.objects([other])
    try:
        return Side(*parsing.read_ints(listed))
    except OverflowError:
        held = parsing.objects(listed)
        mask = np.array(pd.isna(held), dtype=np.bool_)
        ints = [0 if gap else operator.index(v) for v, gap in zip(held, mask, strict=True)]
        return Side(None, mask, np.fromiter(ints, dtype=object, count=len(ints)))


def _aligned(array: U128Array, other: Any) -> Any:
    """Check that an operand is of one row, or of as many as the column."""
    if isinstance(other, np.ndarray) and other.ndim == 0:
        return other.item()
    if not pd.api.types.is_list_like(other):
        return other
    if getattr(other, "ndim", 1) != 1:
        raise NotImplementedError("u128 works with one dimension only")
    other = other if hasattr(other, "__len__") else list(other)
    if len(other) != len(array):
        raise ValueError(f"Lengths must match: {len(array)} rows and {len(other)}")
    return other


def _refuse(name: str, other: Any, error: TypeError) -> NoReturn:
    """Say which operation is not there for which operand, and what to write."""
    kind = getattr(other, "dtype", type(other).__name__)
    sign = _SIGNS.get(name, name)
    why = f": {error}" if pd.api.types.is_list_like(other) else ""
    msg = f"u128 {sign} {kind} is not exact{why}; to round, write astype('float64') {sign} …"
    raise TypeError(msg) from None


def _differences(a: Side, b: Side) -> Objects:
    """Subtract exactly: what is below zero stays an integer."""
    if a.held is None or b.held is None:
        found = np.asarray(a.exactly() - b.exactly())
    else:
        found = planes.subtract(a.held, b.held)
    found[a.mask | b.mask] = pd.NA
    return found


def _whole(array: U128Array, a: Side, b: Side, name: str) -> U128Array:
    """Compute an operation whose results stay within the range."""
    mask = a.mask | b.mask
    if name == "pow":
        mask &= ~(_known(a, 1) | _known(b, 0))
    if name in {"floordiv", "mod"}:
        b = _divisors(b, mask)
    if a.held is None or b.held is None:
        return array.of(_exact(a, b, name, mask), mask)
    (hi, lo), over = _KERNELS[name](a.held, b.held)
    over = over & ~mask
    if over.any():
        _overflow(a, b, name, int(over.argmax()))
    return type(array)(hi, lo, mask)


def _known(operand: Side, value: int) -> Flags:
    """Tell where an operand is a value."""
    if operand.held is None:
        return ~operand.mask & np.asarray(operand.exactly() == value, dtype=np.bool_)
    return ~operand.mask & planes.equal(operand.held, planes.from_ints([value]))


def _divisors(b: Side, mask: Flags) -> Side:
    """Refuse a division by zero, and divide by 1 where the result is missing anyway."""
    zero = _known(b._replace(mask=np.zeros_like(b.mask)), 0)
    if (zero & ~mask).any():
        row = int((zero & ~mask).argmax())
        raise ZeroDivisionError(f"division by zero in row {row}")
    if b.held is None:
        return b._replace(ints=np.where(zero, 1, b.exactly()))
    return b._replace(held=(b.held[0], np.where(zero, np.uint64(1), b.held[1])))


def _exact(a: Side, b: Side, name: str, mask: Flags) -> Planes:
    """Compute with Python ints, which know numbers of any size and sign."""
    first, second = np.broadcast_arrays(np.where(a.mask, 0, a.exactly()), b.exactly())
    if name == "pow":
        second = _exponents(second, mask)
    found = np.where(mask, 0, getattr(operator, name)(first, second))
    out = np.array([not 0 <= value < planes.LIMIT for value in found], dtype=np.bool_)
    if out.any():
        _overflow(a, b, name, int(out.argmax()))
    return planes.from_ints(found.tolist())


def _exponents(exponents: Objects, mask: Flags) -> Objects:
    """Refuse exponents below zero, and shorten those that leave the range for sure."""
    below = np.asarray(exponents < 0, dtype=np.bool_) & ~mask
    if below.any():
        row = int(below.argmax())
        raise ValueError(f"exponent {exponents[row]} in row {row}: the power is no integer")
    # Odd ones stay odd, for the powers of -1.
    short = [max(e, 0) if e < _HIGHEST_POWER else _HIGHEST_POWER + e % 2 for e in exponents]
    return np.array(short, dtype=object)


def _overflow(a: Side, b: Side, name: str, row: int) -> NoReturn:
    """Name the row whose result is outside the range."""
    first, second = (cut(s.exactly()[row if len(s.mask) > 1 else 0], 60) for s in (a, b))
    parsing.overflow(row, f"{first} {_SIGNS[name]} {second}")


# Comparison -----------------------------------------------------------------------------


def compare(array: U128Array, other: Any, op: Callable[[Any, Any], Any]) -> Any:
    """Compare with a column, an array, or a number of any size, sign and kind, exactly."""
    other = _aligned(array, other)
    if isinstance(other, float | np.floating) and math.isfinite(other):
        other = _bound(float(other), op.__name__)
    if not pd.api.types.is_list_like(other) and not _in_range(other):
        return _against_one(array, other, op)
    try:
        theirs = side(array, other)
    except TypeError:
        theirs = None
    if theirs is None or theirs.held is None:
        return _one_by_one(array, other, op)
    found = _compared(array.planes, theirs.held, op.__name__)
    return pd.arrays.BooleanArray(found, array.mask | theirs.mask)


def _bound(number: float, name: str) -> float:
    """Give the integer that decides a comparison with a float."""
    if name in _BOUNDS:
        return int(_BOUNDS[name](number))
    return int(number) if number.is_integer() else number


def _in_range(value: object) -> bool:
    """Tell an integer that a column may hold."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and 0 <= value < planes.LIMIT  # type: ignore[operator]  # an integer, by the line above


def _against_one(array: U128Array, other: Any, op: Callable[[Any, Any], Any]) -> Any:
    """Compare with one value that no row may hold, or that is none."""
    if pd.isna(other):
        return pd.arrays.BooleanArray(np.zeros(len(array), bool), np.ones(len(array), bool))
    if isinstance(other, int | float | np.integer | np.floating) and not isinstance(other, bool):
        found = np.full(len(array), bool(op(0, other)))  # all integers of the range compare alike
        return pd.arrays.BooleanArray(found, array.isna())
    return _one_by_one(array, other, op)


def _one_by_one(array: U128Array, other: Any, op: Callable[[Any, Any], Any]) -> Any:
    """Compare row by row as Python does, which is exact for every kind of number."""
    alone = not pd.api.types.is_list_like(other)
    others = [other] * len(array) if alone else parsing.objects(other)
    mask = array.mask | np.array(pd.isna(others), dtype=np.bool_)
    ints = planes.to_ints(*array.planes)
    pairs = zip(ints, others, mask, strict=True)
    found = [not gap and bool(op(value, theirs)) for value, theirs, gap in pairs]
    return pd.arrays.BooleanArray(np.array(found, dtype=np.bool_), mask)


def _compared(a: Planes, b: Planes, name: str) -> Flags:
    """Compare planes."""
    if name in {"eq", "ne"}:
        same = planes.equal(a, b)
        return same if name == "eq" else ~same
    below = planes.less(a, b) if name in {"lt", "ge"} else planes.less(b, a)
    return below if name in {"lt", "gt"} else ~below
