"""Arithmetic on columns of 128-bit integers, with or without a sign."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ledgerkit.u128 import planes

if TYPE_CHECKING:
    from ledgerkit.u128.planes import Flags, Planes

# A result: the words of the values modulo 2^128, and the multiple of 2^128 to add to each: 0, -1
# for a negative value, or another one if it does not fit.
Result: TypeAlias = "tuple[Planes, Any]"


def check_range(result: Result, *, signed: bool) -> tuple[Planes, Flags]:
    """Return the planes of the dtype, and where the values are outside its range."""
    (hi, lo), high_words = result
    overflows = high_words != 0
    if not signed:
        return (hi, lo), overflows
    negative = (high_words == -1) & ((hi | lo) != 0)
    return (hi, lo, negative), overflows & ~negative


def add(a: Planes, b: Planes) -> Result:
    words, carry = planes.add(a[:2], b[:2])
    if len(a) == len(b) == 2:  # noqa: PLR2004 - no sign
        return words, carry
    return words, carry.view(np.int8) - _ones(a) - _ones(b)


def subtract(a: Planes, b: Planes) -> Result:
    borrow = planes.less(a[:2], b[:2])
    return planes.subtract(a[:2], b[:2]), _ones(b) - _ones(a) - borrow.view(np.int8)


def _ones(values: Planes) -> Any:
    return planes.flags(values).view(np.int8)


def multiply(a: Planes, b: Planes) -> Result:
    words, over = planes.multiply(planes.magnitudes(a), planes.magnitudes(b))
    opposite = planes.flags(a) ^ planes.flags(b)
    if not opposite.any():
        return words, over
    hi, lo, negative = planes.with_sign(words, opposite)
    return (hi, lo), np.where(over, 1, -negative.view(np.int8))


KERNELS: dict[str, Callable[[Planes, Planes], Result]] = {
    "add": add,
    "sub": subtract,
    "mul": multiply,
}
