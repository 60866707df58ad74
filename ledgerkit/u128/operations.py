"""Arithmetic and comparison of columns of 128-bit integers with columns and numbers."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import pandas as pd

from ledgerkit.errors import cut
from ledgerkit.u128 import arithmetic as kernels
from ledgerkit.u128 import parsing, planes
from ledgerkit.u128.pandas_hooks import is_column

if TYPE_CHECKING:
    from ledgerkit.u128.array import U128Array
    from ledgerkit.u128.planes import Flags, Floats, Objects, Planes

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "pow": "**"}
# From this exponent on, powers of 2 and larger bases are outside the range.
_LARGEST_EXPONENT = 130
# Functions that round a fraction to an integer with the same comparisons to integers.
_BOUNDS = {"lt": math.ceil, "ge": math.ceil, "gt": math.floor, "le": math.floor}


class Operand(NamedTuple):
    """
    The values of an operand: as planes if all fit, otherwise as Python ints.

    It has one row, or as many as the other operand.
    """

    planes: Planes | None
    mask: Flags
    ints: Objects | None = None

    def to_ints(self) -> Any:
        return self.ints if self.planes is None else planes.to_ints(self.planes)


# Arithmetic -----------------------------------------------------------------------------


def arithmetic(array: U128Array, other: Any, name: str) -> Any:
    """Compute an operation of `operator`; with an "r" in front of its name, other comes first."""
    swapped = name.startswith("r")
    name = name.removeprefix("r")
    if name == "truediv":
        return divide(array, _check_length(array, other), swapped=swapped)
    a = Operand(array.planes, array.mask)
    try:
        b = _read_operand(array, other)
    except TypeError as error:
        _refuse(name, other, error)
    if swapped:
        a, b = b, a
    signed = name == "sub" or array.signed or (is_column(other) and other.signed)
    if name == "divmod":
        results = (_compute(a, b, part, signed=signed) for part in ("floordiv", "mod"))
        return tuple(array.of(*result) for result in results)
    return array.of(*_compute(a, b, name, signed=signed))


def _read_operand(array: U128Array, other: Any) -> Operand:
    other = _check_length(array, other)
    if is_column(other):
        return Operand(other.planes, other.mask)
    listed = parsing.as_list(other)
    try:
        return Operand(*parsing.read_ints(listed))
    except OverflowError:
        values = parsing.objects(listed)
        mask = parsing.missing_in(values)
        pairs = zip(values, mask, strict=True)
        ints = [0 if missing else operator.index(value) for value, missing in pairs]
        return Operand(None, mask, parsing.objects(ints))


def _check_length(array: U128Array, other: Any) -> Any:
    if isinstance(other, np.ndarray) and other.ndim == 0:
        return other.item()
    if not pd.api.types.is_list_like(other):
        return other
    if getattr(other, "ndim", 1) != 1:
        raise NotImplementedError("u128 supports one dimension only")
    other = other if hasattr(other, "__len__") else list(other)
    if len(other) != len(array):
        raise ValueError(f"Lengths must match: {len(array)} rows and {len(other)}")
    return other


def _refuse(name: str, other: Any, error: TypeError) -> NoReturn:
    parsing.refuse_text(parsing.as_list(other))
    kind = getattr(other, "dtype", type(other).__name__)
    sign = _SIGNS.get(name, name)
    reason = f": {error}" if pd.api.types.is_list_like(other) else ""
    msg = f"u128 {sign} {kind} is not exact{reason}; to round, write astype('float64') {sign} …"
    raise TypeError(msg) from None


def _compute(a: Operand, b: Operand, name: str, *, signed: bool) -> tuple[Planes, Flags]:
    mask = a.mask | b.mask
    if name == "pow":  # 1 ** NA and NA ** 0 are 1, as in pandas
        mask = mask & ~(_equals(a, 1) | _equals(b, 0))
    if name not in kernels.KERNELS or a.planes is None or b.planes is None:
        values, overflows = _compute_ints(a, b, name, mask, signed=signed)
    else:
        result = kernels.KERNELS[name](a.planes, b.planes)
        values, overflows = kernels.check_range(result, signed=signed)
    if (row := planes.first(overflows & ~mask)) is not None:
        first, second = (cut(x.to_ints()[row if len(x.mask) > 1 else 0], 60) for x in (a, b))
        parsing.raise_overflow(row, f"{first} {_SIGNS[name]} {second}", signed=signed)
    return planes.clean(values, mask), mask


def _equals(operand: Operand, value: int) -> Flags:
    is_equal: Flags = (operand.to_ints() == value).astype(np.bool_)
    return is_equal & ~operand.mask


def _compute_ints(
    a: Operand, b: Operand, name: str, mask: Flags, *, signed: bool
) -> tuple[Planes, Flags]:
    """Compute with Python ints; return the planes of the results, and where they do not fit."""
    first, second = np.broadcast_arrays(a.to_ints(), b.to_ints())
    if name == "pow":
        if (row := planes.first((second < 0).astype(np.bool_) & ~mask)) is not None:
            msg = f"exponent {second[row]} in row {row} is negative: the power is not an integer"
            raise ValueError(msg)
        # An odd exponent stays odd, for the powers of -1.
        second = np.where(second < _LARGEST_EXPONENT, second, _LARGEST_EXPONENT + second % 2)
    is_zero = (second == 0).astype(np.bool_) & ~mask
    if name in {"floordiv", "mod"} and (row := planes.first(is_zero)) is not None:
        raise ZeroDivisionError(f"division by zero in row {row}")
    compute, lowest = getattr(operator, name), planes.LOWEST[signed]

    def result(x: int, y: int) -> int | None:
        value: int = compute(x, y)
        return value if lowest <= value < planes.LIMIT else None

    results = np.zeros(len(mask), dtype=object)
    results[~mask] = np.frompyfunc(result, 2, 1)(first[~mask], second[~mask])
    overflows = parsing.missing_in(results)
    values = planes.from_ints(np.where(overflows, 0, results).tolist())
    return (planes.signed(values) if signed else values), overflows


# Comparison -----------------------------------------------------------------------------


def compare(array: U128Array, other: Any, op: Callable[[Any, Any], Any]) -> Any:
    """Compare exactly with a column, an array, or a number of any size, sign and type."""
    other = _check_length(array, other)
    if isinstance(other, float | np.floating) and math.isfinite(other):
        other = _to_bound(float(other), op.__name__)
    try:
        operand = _read_operand(array, other)
    except TypeError:
        return _compare_objects(array, other, op)
    if operand.planes is None:
        return _compare_objects(array, other, op)
    result = planes.compare(array.planes, operand.planes, op.__name__)
    return pd.arrays.BooleanArray(result, array.mask | operand.mask)


def _to_bound(number: float, name: str) -> float:
    """Return the integer that compares with integers as a float does, or the float itself."""
    if name in _BOUNDS:
        return int(_BOUNDS[name](number))
    return int(number) if number.is_integer() else number


def _compare_objects(array: U128Array, other: Any, op: Callable[[Any, Any], Any]) -> Any:
    parsing.refuse_amounts(parsing.as_list(other))
    is_list = pd.api.types.is_list_like(other)
    others = parsing.objects(other) if is_list else [other] * len(array)
    mask = array.mask | parsing.missing_in(others)
    rows = zip(planes.to_ints(array.planes), others, mask, strict=True)
    try:
        result = [
            not missing and bool(op(value, other_value)) for value, other_value, missing in rows
        ]
    except TypeError:
        parsing.refuse_text(others)
        raise
    return pd.arrays.BooleanArray(np.array(result, dtype=np.bool_), mask)


# Functions of numpy -----------------------------------------------------------------------


def is_rounded(ufunc: np.ufunc, options: dict[str, Any]) -> bool:
    """Return True for a function that numpy computes with floats, or not for Python's integers."""
    if np.dtype(options.get("dtype") or object).kind == "f":
        return True
    return not {"q", "O"} <= {loop[0] for loop in ufunc.types}


def round_inputs(array: U128Array, ufunc: np.ufunc, inputs: Any, options: dict[str, Any]) -> Any:
    """Compute a function of the rounded values; the flags of missing values are missing."""
    rounded = [value.to_numpy(np.float64) if is_column(value) else value for value in inputs]
    result = ufunc(*rounded, **options)
    has_flags = getattr(result, "dtype", None) == np.bool_
    return pd.arrays.BooleanArray(result, array.isna()) if has_flags else result


# True division ----------------------------------------------------------------------------


def divide(array: U128Array, other: Any, *, swapped: bool) -> Floats:
    """Divide a column by another, an array or a number, or the reverse; missing is NaN."""
    others = parsing.as_list(other)
    if not hasattr(others, "dtype") or others.dtype == object:
        _refuse_decimals(array, others)
    try:
        values, mask = (other.planes, other.mask) if is_column(other) else parsing.read_ints(others)
    except (TypeError, OverflowError):  # floats, or integers outside the range
        a, b = array.to_numpy(np.float64), _to_floats(others)
        return _divide_floats(b, a) if swapped else _divide_floats(a, b)
    quotients = nearest(values, array.planes) if swapped else nearest(array.planes, values)
    quotients[array.mask | mask] = np.nan
    return quotients


def _refuse_decimals(array: U128Array, others: Any) -> None:
    if any(isinstance(value, Decimal) for value in others):
        msg = (
            f"a quotient of {array.dtype} and Decimal would be rounded: ledgerkit.to_units(…, 24, "
            "as_='decimal') divides exactly by 10**24; to round, divide by an int or a float"
        )
        raise TypeError(msg)


def _to_floats(others: Any) -> Floats:
    objects = parsing.objects(others)
    converted = np.full(len(objects), np.nan)
    for row in np.flatnonzero(~parsing.missing_in(objects)):
        value = objects[row]
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
            parsing.refuse_text([value])
            raise TypeError(f"u128 and {type(value).__name__} cannot be divided: use numbers")
        converted[row] = float(value)
    return converted


def _divide_floats(a: Floats, b: Floats) -> Floats:
    """Divide floats; division by zero returns infinity or NaN, as in numpy."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient: Floats = a / b
    return quotient


def nearest(a: Planes, b: Planes) -> Floats:
    """Divide integers as Python does, which rounds once; by zero the result is infinite or NaN."""
    first, second = np.broadcast_arrays(planes.to_ints(a), planes.to_ints(b))
    quotients = _divide_floats(first.astype(np.float64), second.astype(np.float64))
    rows = np.isfinite(quotients)
    quotients[rows] = first[rows] / second[rows]
    return quotients
