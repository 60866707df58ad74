"""
Exact conversions: yocto and NEAR, gas and Tgas, tokens by their decimals.

The ledger counts in whole smallest units, people in decimal ones. Everything here is
integer arithmetic: nothing is rounded, what does not come out even is refused.

A bare float is accepted only where nothing can be lost: it is at most 2**53, and the
digits it prints are its exact value. So 0.5 and 2.0 pass; 0.1 (which is
0.1000000000000000055…) and 1e23 (which is 99999999999999991611392) are refused, and the
sentence says to write the number as text.
"""

from __future__ import annotations

import operator
import re
from decimal import Decimal
from typing import SupportsIndex

from ledgerkit.errors import InvalidRequestError

NEAR_DECIMALS = 24
TGAS_DECIMALS = 12
U64_MAX = 2**64 - 1
U128_MAX = 2**128 - 1

Number = int | str | Decimal | float

_LONGEST = 120  # more digits than any amount has, on either side of the point
_MOST_DECIMALS = 255
_EXACT_FLOAT = 2.0**53
_MARK = 10**6  # nobody reads 0.000000000000000000000001 NEAR
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]+)", re.ASCII)
_NEAR_UNITS = {"near": NEAR_DECIMALS, "yocto": 0, "yoctonear": 0}
_GAS_UNITS = {"tgas": TGAS_DECIMALS, "ggas": 9, "gas": 0}
_NUMBER_RULE = (
    "a number such as 5, '0.1' or Decimal('0.1'): digits and one point, no sign, exponent or _"
)
_FLOAT_RULE = "a float that is not exactly what it prints; write the number as text, such as '0.1'"


def yocto(value: int | str, field: str = "amount") -> int:
    """
    Read an amount of NEAR as the ledger counts it.

    Parameters
    ----------
    value
        Text that names its unit, such as ``"0.1 NEAR"`` or ``"1 yocto"``; an integer is
        yoctoNEAR already. A bare ``"1"`` would be a guess, so it is refused.
    field
        The argument's name, for the error.

    Returns
    -------
    yocto
        Whole yoctoNEAR, from 0 to 2**128 - 1.

    Raises
    ------
    InvalidRequestError
        If it is none of these, has more than 24 decimals, or is out of range.
    """
    return _quantity(value, field, _NEAR_UNITS, U128_MAX, "'0.1 NEAR', '1 yocto'")


def gas(value: int | str, field: str = "gas") -> int:
    """
    Read an amount of gas as the ledger counts it.

    Parameters
    ----------
    value
        Text that names its unit, such as ``"30 Tgas"`` or ``"500 Ggas"``; an integer is
        gas already.
    field
        The argument's name, for the error.

    Returns
    -------
    gas
        Whole units of gas, from 0 to 2**64 - 1.

    Raises
    ------
    InvalidRequestError
        If it is none of these, does not come out even, or is out of range.
    """
    return _quantity(value, field, _GAS_UNITS, U64_MAX, "'30 Tgas', '500 Ggas'")


def _quantity(value: object, field: str, units: dict[str, int], most: int, such_as: str) -> int:
    """Read text with a unit, or an integer in the smallest one."""
    rule = f"text with its unit, such as {such_as}, or an integer of the smallest unit"
    if isinstance(value, str):
        found = _QUANTITY.fullmatch(value.strip()) if len(value) <= _LONGEST else None
        decimals = units.get(found[2].lower()) if found else None
        if found is None or decimals is None:
            raise InvalidRequestError.refuse(field, value, rule)
        return _bounded(_shifted(found[1], decimals, value, field), value, field, most)
    whole = _integer(value)
    if whole is None:
        raise InvalidRequestError.refuse(field, value, rule)
    return _bounded(whole, value, field, most)


def from_units(
    number: Number, decimals: int, *, field: str = "amount", most: int = U128_MAX
) -> int:
    """
    Convert a number of tokens to the token's smallest unit, exactly.

    Parameters
    ----------
    number
        Whole or decimal tokens: int, text of digits and one point, or Decimal. A float
        only where it is exactly what it prints, such as 0.5.
    decimals
        How many decimals the token has: 24 for NEAR, 6 for most dollars.
    field
        The argument's name, for the error.
    most
        The largest result allowed.

    Returns
    -------
    units
        Whole smallest units.

    Raises
    ------
    InvalidRequestError
        If it is no such number, has more decimals than the token, or is out of range.
    """
    _check_decimals(decimals)
    return _bounded(_shifted(_digits(number, field), decimals, number, field), number, field, most)


def to_text(units: int, decimals: int, unit: str = "", *, thousands: str = "") -> str:
    """
    Write a number of smallest units as people read it, every digit kept.

    Parameters
    ----------
    units
        Whole smallest units; below zero for a change.
    decimals
        How many decimals the token has.
    unit
        A name to put after the number.
    thousands
        What to put between thousands, such as ``","``.

    Returns
    -------
    text
        Such as ``"0.1 NEAR"``; no exponent, no trailing zeros, no rounding.

    Raises
    ------
    InvalidRequestError
        If `units` is no integer, or `decimals` is not from 0 to 255.
    """
    whole = _smallest(units, decimals)
    before, after = divmod(abs(whole), 10**decimals)
    grouped = f"{before:,}".replace(",", thousands) if thousands else str(before)
    fraction = f".{after:0{decimals}d}".rstrip("0") if after else ""
    number = f"{'-' if whole < 0 else ''}{grouped}{fraction}"
    return f"{number} {unit}" if unit else number


def to_decimal(units: int, decimals: int) -> Decimal:
    """
    Convert smallest units to a Decimal of tokens, every digit kept.

    Parameters
    ----------
    units
        Whole smallest units; below zero for a change.
    decimals
        How many decimals the token has.

    Returns
    -------
    number
        Exact, whatever the precision of the current decimal context.

    Raises
    ------
    InvalidRequestError
        If `units` is no integer, or `decimals` is not from 0 to 255.
    """
    return Decimal(to_text(units, decimals))  # a constructor rounds nothing, arithmetic would


def to_float(units: int, decimals: int) -> float:
    """
    Round smallest units to a float of tokens, for plots.

    Parameters
    ----------
    units
        Whole smallest units; below zero for a change.
    decimals
        How many decimals the token has.

    Returns
    -------
    number
        The nearest float64, rounded once.

    Raises
    ------
    InvalidRequestError
        If `units` is no integer, or `decimals` is not from 0 to 255.
    """
    number: float = _smallest(units, decimals) / 10**decimals
    return number


def near_to_yocto(number: Number) -> int:
    """
    Convert a number of NEAR to yoctoNEAR.

    Parameters
    ----------
    number
        As for `from_units`.

    Returns
    -------
    yocto
        Whole yoctoNEAR.
    """
    return from_units(number, NEAR_DECIMALS)


def yocto_to_near(yocto: int) -> Decimal:
    """
    Convert yoctoNEAR to a number of NEAR.

    Parameters
    ----------
    yocto
        Whole yoctoNEAR.

    Returns
    -------
    number
        Exact.
    """
    return to_decimal(yocto, NEAR_DECIMALS)


def tgas_to_gas(number: Number) -> int:
    """
    Convert Tgas to gas.

    Parameters
    ----------
    number
        As for `from_units`.

    Returns
    -------
    gas
        Whole units of gas.
    """
    return from_units(number, TGAS_DECIMALS, field="gas", most=U64_MAX)


def gas_to_tgas(gas: int) -> Decimal:
    """
    Convert gas to Tgas.

    Parameters
    ----------
    gas
        Whole units of gas.

    Returns
    -------
    number
        Exact.
    """
    return to_decimal(gas, TGAS_DECIMALS)


def near_text(yocto: int) -> str:
    """
    Write an amount of NEAR as people read it.

    Parameters
    ----------
    yocto
        Whole yoctoNEAR.

    Returns
    -------
    text
        Such as ``"0.1 NEAR"``, or ``"1 yocto"`` for amounts that only mark something;
        `yocto` reads it back.
    """
    if 0 < yocto < _MARK:
        return to_text(yocto, 0, "yocto")
    return to_text(yocto, NEAR_DECIMALS, "NEAR")


def gas_text(gas: int) -> str:
    """
    Write an amount of gas as people read it.

    Parameters
    ----------
    gas
        Whole units of gas.

    Returns
    -------
    text
        Such as ``"30 Tgas"``; `gas` reads it back.
    """
    return to_text(gas, TGAS_DECIMALS, "Tgas")


def _integer(value: object) -> int | None:
    """Take an integer, numpy's too; None for anything else."""
    if type(value) is int:  # asking a protocol takes ten times as long as all the rest
        return value
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        return int(operator.index(value))
    except TypeError:  # numpy's bool and arrays only look like integers
        return None


def _digits(number: object, field: str) -> str:
    """Write a number as plain digits with at most one point."""
    text = number if isinstance(number, str) else _plain(number, field)
    if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
        raise InvalidRequestError.refuse(field, number, _NUMBER_RULE)
    return text


def _plain(number: object, field: str) -> str:
    """Write an int, Decimal or harmless float as text."""
    whole = _integer(number)
    if whole is not None and whole.bit_length() <= 3 * _LONGEST:
        return str(whole)
    if isinstance(number, float):
        if abs(number) <= _EXACT_FLOAT and Decimal(number) == Decimal(repr(float(number))):
            return f"{Decimal(number):f}"
        raise InvalidRequestError.refuse(field, number, _FLOAT_RULE)
    if isinstance(number, Decimal) and number.is_finite():
        exponent = int(number.as_tuple().exponent)
        if abs(number.adjusted()) <= _LONGEST and abs(exponent) <= _LONGEST:
            return f"{number:f}"
    raise InvalidRequestError.refuse(field, number, _NUMBER_RULE)


def _shifted(digits: str, decimals: int, value: object, field: str) -> int:
    """Move the point to the right; refuse what would be left behind it."""
    before, _, after = digits.partition(".")
    after = after.rstrip("0")
    if len(after) > decimals:
        rule = f"at most {decimals} decimals, or a part of the smallest unit is left"
        raise InvalidRequestError.refuse(field, value, rule)
    return int(before + after + "0" * (decimals - len(after)))


def _bounded(units: int, value: object, field: str, most: int) -> int:
    """Refuse what the ledger cannot hold."""
    if 0 <= units <= most:
        return units
    rule = f"from 0 to {most} of the smallest unit"
    raise InvalidRequestError.refuse(field, value, rule)


def _smallest(units: object, decimals: object) -> int:
    """Take a number of smallest units, having checked the decimals it goes with."""
    _check_decimals(decimals)
    whole = _integer(units)
    if whole is None:
        raise InvalidRequestError.refuse("units", units, "an integer of smallest units")
    return whole


def _check_decimals(decimals: object) -> None:
    """Refuse a hostile number of decimals before it is a power of ten."""
    whole = _integer(decimals)
    if whole is None or not 0 <= whole <= _MOST_DECIMALS:
        rule = f"an integer from 0 to {_MOST_DECIMALS}"
        raise InvalidRequestError.refuse("decimals", decimals, rule)
