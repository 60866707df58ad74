"""
Exact conversions between the smallest units of NEAR, gas and tokens, and decimal numbers.

All conversions use integer arithmetic: nothing is rounded, and a number with more decimals than
the unit has is an error.

There are two kinds of texts. `to_text`, `near_text` and `gas_text` write every digit, without
thousands separators: for a text that is parsed again, signed, or compared with another amount.
`amount_text`, `near_amount` and `gas_amount` round: for a text that a person reads.

A float is accepted only if no digit can be lost: it is at most 2**53, and its printed digits are
its exact value. 0.5 and 2.0 are accepted; 0.1 (which is 0.1000000000000000055…) and
1e23 (which is 99999999999999991611392) are errors, and the message says to pass text instead.
"""

from __future__ import annotations

import operator
import re
from decimal import Decimal
from typing import TYPE_CHECKING, SupportsIndex

from ledgerkit.errors import InvalidRequestError, suggest_attributes

NEAR_DECIMALS = 24
TGAS_DECIMALS = 12
U64_MAX = 2**64 - 1
U128_MAX = 2**128 - 1

Number = int | str | Decimal | float

_MAX_DIGITS = 120  # more than any amount has, on either side of the decimal point
MAX_DECIMALS = 255  # NEP-148 declares them as u8
_EXACT_FLOAT = 2.0**53  # all integers up to here are floats
_GROUP = 3  # digits between two separators
_MAX_ROUNDED = 6  # decimals of a rounded amount above 1
_TINY = 10**6  # yoctoNEAR; 0.000000000000000000000001 NEAR would be hard to read
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]+)", re.ASCII)
# One word with a letter. Letters of other scripts may look like these, or be read to the left.
_SYMBOL = re.compile(r"(?=.*[A-Za-z])[\w.$+-]{1,20}", re.ASCII)
TOKENS = "tokens"  # in place of a symbol
NEAR_UNITS = {"near": NEAR_DECIMALS, "yocto": 0, "yoctonear": 0}
GAS_UNITS = {"tgas": TGAS_DECIMALS, "ggas": 9, "gas": 0}
_NUMBER_RULE = "a number such as 5, '0.1' or Decimal('0.1'), with digits and one point only"
_FLOAT_RULE = "a float whose printed digits are its exact value, or text such as '0.1'"


def yocto(value: int | str, field: str = "amount") -> int:
    """
    Parse an amount of NEAR into yoctoNEAR.

    Parameters
    ----------
    value
        Text with a unit, such as ``"0.1 NEAR"`` or ``"1 yocto"``, or an integer of yoctoNEAR.
        Text without a unit, such as ``"1"``, is ambiguous and an error.
    field
        The argument's name, for the error.

    Returns
    -------
    yocto
        yoctoNEAR, from 0 to 2**128 - 1.

    Raises
    ------
    InvalidRequestError
        If `value` is none of these, has more than 24 decimals, or is out of range.
    """
    return _parse_quantity(value, field, NEAR_UNITS, U128_MAX, "'0.1 NEAR' or '1 yocto'")


def gas(value: int | str, field: str = "gas") -> int:
    """
    Parse an amount of gas.

    Parameters
    ----------
    value
        Text with a unit, such as ``"30 Tgas"`` or ``"500 Ggas"``, or an integer of gas.
    field
        The argument's name, for the error.

    Returns
    -------
    gas
        Units of gas, from 0 to 2**64 - 1.

    Raises
    ------
    InvalidRequestError
        If `value` is none of these, is not a whole number of gas, or is out of range.
    """
    return _parse_quantity(value, field, GAS_UNITS, U64_MAX, "'30 Tgas' or '500 Ggas'")


def _parse_quantity(
    value: object, field: str, units: dict[str, int], maximum: int, examples: str
) -> int:
    expected = f"text with its unit, such as {examples}, or an integer of the smallest unit"
    if isinstance(value, str):
        match = _QUANTITY.fullmatch(value.strip()) if len(value) <= _MAX_DIGITS else None
        decimals = units.get(match[2].lower()) if match else None
        if match is None or decimals is None:
            raise InvalidRequestError.refuse(field, value, expected)
        return _check_range(_to_smallest(match[1], decimals, value, field), value, field, maximum)
    integer = as_integer(value)
    if integer is None:
        raise InvalidRequestError.refuse(field, value, expected)
    return _check_range(integer, value, field, maximum)


def from_units(number: Number, decimals: int, *, field: str = "amount") -> int:
    """
    Convert a number of tokens to the token's smallest unit, exactly.

    Parameters
    ----------
    number
        Tokens as an integer, text of digits and one point, or Decimal. A float only if its
        printed digits are its exact value, such as 0.5.
    decimals
        Decimals of the token: 24 for NEAR, 6 for most dollar tokens.
    field
        The argument's name, for the error.

    Returns
    -------
    units
        Smallest units.

    Raises
    ------
    InvalidRequestError
        If `number` is none of these, has more decimals than the token, or is out of range.
    """
    _check_decimals(decimals)
    digits = _plain_digits(number, field)
    return _check_range(_to_smallest(digits, decimals, number, field), number, field, U128_MAX)


def to_text(units: int, decimals: int, unit: str = "", *, thousands: str = "") -> str:
    """
    Format smallest units as a decimal number with all digits.

    Parameters
    ----------
    units
        Smallest units; negative for a decrease.
    decimals
        Decimals of the token.
    unit
        Text after the number, such as ``"NEAR"``.
    thousands
        The thousands separator, such as ``","``.

    Returns
    -------
    text
        Text such as ``"0.1 NEAR"``, without exponent, trailing zeros or rounding.

    Raises
    ------
    InvalidRequestError
        If `units` is not an integer, or `decimals` is not from 0 to 255.
    """
    return _format(_check_units(units, decimals), decimals, unit, None, thousands)


def to_decimal(units: int, decimals: int) -> Decimal:
    """
    Convert smallest units to a Decimal of tokens with all digits.

    Parameters
    ----------
    units
        Smallest units; negative for a decrease.
    decimals
        Decimals of the token.

    Returns
    -------
    number
        The exact number, for any precision of the decimal context.

    Raises
    ------
    InvalidRequestError
        If `units` is not an integer, or `decimals` is not from 0 to 255.
    """
    return Decimal(to_text(units, decimals))  # unlike arithmetic, the constructor does not round


def to_float(units: int, decimals: int) -> float:
    """
    Convert smallest units to a float of tokens, for plots.

    Parameters
    ----------
    units
        Smallest units; negative for a decrease.
    decimals
        Decimals of the token.

    Returns
    -------
    number
        The nearest float64, rounded once.

    Raises
    ------
    InvalidRequestError
        If `units` is not an integer, or `decimals` is not from 0 to 255.
    """
    number: float = _check_units(units, decimals) / 10**decimals
    return number


def near_text(yocto: int) -> str:
    """
    Format an amount of NEAR.

    Parameters
    ----------
    yocto
        yoctoNEAR.

    Returns
    -------
    text
        Text such as ``"0.1 NEAR"``, or ``"1 yocto"`` for tiny amounts; `yocto` parses it.
    """
    if 0 < yocto < _TINY:
        return to_text(yocto, 0, "yocto")
    return to_text(yocto, NEAR_DECIMALS, "NEAR")


def gas_text(gas: int) -> str:
    """
    Format an amount of gas.

    Parameters
    ----------
    gas
        Units of gas.

    Returns
    -------
    text
        Text such as ``"30 Tgas"``; `gas` parses it.
    """
    return to_text(gas, TGAS_DECIMALS, "Tgas")


def amount_text(value: int, decimals: int, symbol: str, digits: int | None = 2) -> str:
    """
    Format an amount for a person to read: rounded, and never to zero.

    Parameters
    ----------
    value
        Smallest units; negative for a decrease.
    decimals
        Decimals of the token.
    symbol
        Text after the number, such as ``"NEAR"``; "" for none.
    digits
        Decimals to show. An amount below 1 has this many digits after its leading zeros, at least
        one; an amount that would look whole has as many as show that it is not, up to six
        (``"0.999999 GOLD"``). None shows all digits.

    Returns
    -------
    text
        Text such as ``"12,340.68 NEAR"``. An exact amount has no trailing zeros (``"80 GOLD"``);
        a rounded one keeps them (``"0.50 GOLD"``).

    Raises
    ------
    InvalidRequestError
        If `value` is not an integer, `decimals` is not from 0 to 255, or `digits` is neither None
        nor an integer from 0 on.

    Notes
    -----
    A tie rounds to the even digit, as Python's own formats do.
    """
    integer, places = _check_units(value, decimals), as_integer(digits)
    if digits is not None and (places is None or places < 0):
        raise InvalidRequestError.refuse("digits", digits, "None, or an integer from 0 on")
    return _format(integer, decimals, symbol, places, ",")


def token_symbol(symbol: object) -> str:
    """
    Return the symbol to write after an amount of a token, which its contract chooses freely.

    Parameters
    ----------
    symbol
        The symbol in the token's metadata.

    Returns
    -------
    text
        The symbol if it is one plain word that does not read as NEAR, otherwise ``"tokens"``.
    """
    is_plain = isinstance(symbol, str) and _SYMBOL.fullmatch(symbol) is not None
    return str(symbol) if is_plain and str(symbol).lower() not in NEAR_UNITS else TOKENS


def near_amount(yocto: int, digits: int | None = 2) -> str:
    """
    Format an amount of NEAR for a person to read, as `amount_text` does.

    Parameters
    ----------
    yocto
        yoctoNEAR; negative for a decrease.
    digits
        As in `amount_text`.

    Returns
    -------
    text
        Text such as ``"12,340.68 NEAR"``, or ``"1 yocto"`` for tiny amounts.
    """
    if 0 < abs(yocto) < _TINY:
        return amount_text(yocto, 0, "yocto")
    return amount_text(yocto, NEAR_DECIMALS, "NEAR", digits)


def gas_amount(gas: int, digits: int | None = 2) -> str:
    """
    Format an amount of gas for a person to read, as `amount_text` does.

    Parameters
    ----------
    gas
        Units of gas.
    digits
        As in `amount_text`.

    Returns
    -------
    text
        Text such as ``"2.43 Tgas"``.
    """
    return amount_text(gas, TGAS_DECIMALS, "Tgas", digits)


def duration_text(seconds: float) -> str:
    if seconds < 2 * 60:
        return f"{seconds:.0f} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:,.1f} h"


def count_text(count: int, noun: str) -> str:
    """
    Format a count with its noun.

    Parameters
    ----------
    count
        The number of things.
    noun
        Its noun in the singular, which takes an "s" in the plural.

    Returns
    -------
    text
        Text such as ``"1 receipt"`` or ``"1,200 receipts"``.
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _format(units: int, decimals: int, symbol: str, digits: int | None, thousands: str) -> str:
    """Format smallest units with all digits, or rounded to `digits` as `amount_text` does."""
    number = str(abs(units))
    if digits is not None and len(number) <= decimals:  # below 1
        digits = max(digits, 1) + decimals - len(number)
    before, after = _split(number, decimals)
    after = after.rstrip("0")
    if digits is not None and len(after) > digits:
        before, after = _round(before, after, digits)
    if thousands and len(before) > _GROUP:
        before = f"{int(before):,}".replace(",", thousands)
    text = f"{'-' if units < 0 else ''}{before}{'.' if after else ''}{after}"
    return f"{text} {symbol}" if symbol else text


def _round(before: str, after: str, digits: int) -> tuple[str, str]:
    """Round to `digits` decimals, or to more where a number that is not whole would look whole."""
    whole = before
    for places in (digits, *range(digits + 1, _MAX_ROUNDED + 1)):
        dropped, rounded = after[places:], int(before + after[:places])
        rounded += dropped > "5" or (dropped == "5" and rounded % 2)
        whole, fraction = _split(str(rounded), places)
        if not digits or fraction.strip("0"):
            return whole, fraction
    return whole, "0" * digits


def _split(number: str, decimals: int) -> tuple[str, str]:
    digits = number.zfill(decimals + 1)
    point = len(digits) - decimals
    return digits[:point], digits[point:]


def as_integer(value: object) -> int | None:
    """Return an integer, also from numpy; None for any other value."""
    if type(value) is int:  # ten times as fast as the protocol check below
        return value
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        return int(operator.index(value))
    except TypeError:  # numpy's bool and arrays have __index__ and raise when it is called
        return None


def _plain_digits(number: object, field: str) -> str:
    text = number if isinstance(number, str) else _number_text(number, field)
    if len(text) > _MAX_DIGITS or not _NUMBER.fullmatch(text):
        raise InvalidRequestError.refuse(field, number, _NUMBER_RULE)
    return text


def _number_text(number: object, field: str) -> str:
    integer = as_integer(number)
    if integer is not None and integer.bit_length() <= 3 * _MAX_DIGITS:
        return str(integer)
    if isinstance(number, float):
        if abs(number) <= _EXACT_FLOAT and Decimal(number) == Decimal(repr(float(number))):
            return f"{Decimal(number):f}"
        raise InvalidRequestError.refuse(field, number, _FLOAT_RULE)
    if isinstance(number, Decimal) and number.is_finite():
        exponent = int(number.as_tuple().exponent)
        # Formatting 1e999999 would write a million digits.
        if abs(number.adjusted()) <= _MAX_DIGITS and abs(exponent) <= _MAX_DIGITS:
            return f"{number:f}"
    raise InvalidRequestError.refuse(field, number, _NUMBER_RULE)


def _to_smallest(digits: str, decimals: int, value: object, field: str) -> int:
    before, _, after = digits.partition(".")
    after = after.rstrip("0")
    if len(after) > decimals:
        raise InvalidRequestError.refuse(field, value, f"at most {decimals} decimals")
    return int(before + after + "0" * (decimals - len(after)))


def _check_range(units: int, value: object, field: str, maximum: int) -> int:
    if 0 <= units <= maximum:
        return units
    raise InvalidRequestError.refuse(
        field, value, f"an amount from 0 to {maximum} of the smallest unit"
    )


def _check_units(units: object, decimals: object) -> int:
    _check_decimals(decimals)
    integer = as_integer(units)
    if integer is None:
        raise InvalidRequestError.refuse("units", units, "an integer of smallest units")
    return integer


def _check_decimals(decimals: object) -> None:
    """Raise unless the decimals are from 0 to 255, before computing a power of ten."""
    integer = as_integer(decimals)
    if integer is None or not 0 <= integer <= MAX_DECIMALS:
        expected = f"an integer from 0 to {MAX_DECIMALS}"
        raise InvalidRequestError.refuse("decimals", decimals, expected)


if not TYPE_CHECKING:  # type checkers report unknown names
    __getattr__ = suggest_attributes(__name__)
