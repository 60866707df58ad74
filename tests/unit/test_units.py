"""Exact conversions, and what they refuse to guess."""

import decimal
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit import units
from ledgerkit.errors import InvalidRequestError

U64 = st.integers(0, 2**64 - 1)
U128 = st.integers(0, 2**128 - 1)


def test_amounts_of_near(subtests):
    """Text names its unit; an integer is yocto already."""
    cases: list[Any] = [
        ("1 NEAR", 10**24),
        ("0.1 NEAR", 10**23),
        ("0.1near", 10**23),
        (" 2.50 Near ", 25 * 10**23),
        ("0 NEAR", 0),
        ("0.000000000000000000000001 NEAR", 1),
        ("1 yocto", 1),
        ("1 yoctoNEAR", 1),
        ("340282366920938463463374607431768211455 yocto", 2**128 - 1),
        (5, 5),
        (np.int64(5), 5),
    ]
    for text, yocto in cases:
        with subtests.test(text=text):
            assert units.yocto(text) == yocto
            assert type(units.yocto(text)) is int


@pytest.mark.parametrize(
    ("text", "gas"),
    [
        ("30 Tgas", 30 * 10**12),
        ("0.5 TGas", 5 * 10**11),
        ("500 Ggas", 5 * 10**11),
        ("7 gas", 7),
        (300_000_000_000_000, 3 * 10**14),
    ],
)
def test_amounts_of_gas(text, gas):
    """Text names its unit; an integer is gas already."""
    assert units.gas(text) == gas


def test_no_amount_of_near(subtests):
    """What is ambiguous, inexact or out of range is refused by the argument's name."""
    cases: list[Any] = [
        "1",
        "1_000 NEAR",
        "1,5 NEAR",
        "-1 NEAR",
        "+1 NEAR",
        "1e3 NEAR",
        ".5 NEAR",
        "5. NEAR",
        "1   NEAR",
        "NEAR",
        "",
        "1 BTC",
        "1 Tgas",
        "\u0661 NEAR",
        "0.0000000000000000000000001 NEAR",
        "0.5 yocto",
        "340282366920938463463374607431768211456 yocto",
        "1" * 500 + " NEAR",
        1.0,
        Decimal(1),
        -1,
        2**128,
        True,
        None,
        b"1 NEAR",
        np.True_,
    ]
    for value in cases:
        with subtests.test(value=value):
            with pytest.raises(InvalidRequestError) as caught:
                units.yocto(value, "deposit")

            assert caught.value.field == "deposit"


@pytest.mark.parametrize("value", ["30", "30 NEAR", "0.0000000000001 Tgas", 2**64, 1.5])
def test_no_amount_of_gas(value):
    """Gas is refused as amounts are."""
    with pytest.raises(InvalidRequestError):
        units.gas(value)


def test_tokens(subtests):
    """Human numbers become whole units by the token's decimals, digit by digit."""
    cases: list[Any] = [
        ("1.5", 6, 1_500_000),
        ("1.500000000", 6, 1_500_000),
        (5, 6, 5_000_000),
        (Decimal("0.000001"), 6, 1),
        (Decimal("1E+3"), 0, 1000),
        (Decimal("340282366920938463463.374607431768211455"), 18, 2**128 - 1),
        ("7", 0, 7),
        (0.5, 6, 500_000),
        (2.0, 6, 2_000_000),
        (np.float64(0.25), 2, 25),
    ]
    for number, decimals, whole in cases:
        with subtests.test(number=number):
            assert units.from_units(number, decimals) == whole


def test_floats_that_lose(subtests):
    """A float that is not what it prints is refused, whether or not it would come out even."""
    cases = [0.1, 0.3, 1e23, 2.0**53 + 2, float("nan"), float("inf"), -0.5, np.float64(0.7)]
    for number in cases:
        with subtests.test(number=number):
            with pytest.raises(InvalidRequestError) as caught:
                units.from_units(number, 24)

            assert caught.value.field == "amount"


def test_no_numbers(subtests):
    """What is no plain number is refused, however hostile its size."""
    cases: list[Any] = [
        *["", "1e5", "1_000", "-1", " 1", "1.", "nan", Decimal("NaN"), Decimal("1e999999")],
        *[Decimal("1e-999999"), Decimal(-1), 10**400, [1], b"1", True, None],
    ]
    for number in cases:
        with subtests.test(number=number), pytest.raises(InvalidRequestError):
            units.from_units(number, 6)


def test_too_many_decimals():
    """A part of the smallest unit is never rounded away."""
    with pytest.raises(InvalidRequestError, match="at most 6 decimals"):
        units.from_units("0.0000001", 6)


@pytest.mark.parametrize("decimals", [-1, 256, 10**9, "6", 6.0, None])
def test_decimals(decimals):
    """A token with senseless decimals is refused before anything is computed."""
    with pytest.raises(InvalidRequestError):
        units.from_units("1", decimals)
    with pytest.raises(InvalidRequestError):
        units.to_text(1, decimals)


def test_texts():
    """Amounts are written with every digit and no other."""
    assert units.near_text(10**23) == "0.1 NEAR"
    assert units.near_text(0) == "0 NEAR"
    assert units.near_text(1) == "1 yocto"
    assert units.near_text(-(10**24)) == "-1 NEAR"
    assert units.near_text(2**128 - 1) == "340282366920938.463463374607431768211455 NEAR"
    assert units.gas_text(30 * 10**12) == "30 Tgas"
    assert units.gas_text(1) == "0.000000000001 Tgas"
    assert units.to_text(1_500_000, 6) == "1.5"
    assert units.to_text(1_500_000, 6, "USDC") == "1.5 USDC"
    assert units.to_text(7, 0) == "7"


def test_no_units():
    """Only integers are units."""
    with pytest.raises(InvalidRequestError, match=r"units 1\.5 is not valid"):
        units.to_text(1.5, 6)  # type: ignore[arg-type]  # what is refused here


@given(U128)
def test_near_round_trip(yocto):
    """Any amount survives its text, whatever the decimal context."""
    with decimal.localcontext(prec=3):
        assert units.yocto(units.near_text(yocto)) == yocto


@given(U64)
def test_gas_round_trip(gas):
    """Any gas survives its text."""
    assert units.gas(units.gas_text(gas)) == gas


@given(U128, st.integers(0, 255))
def test_tokens_round_trip(whole, decimals):
    """Any balance survives its Decimal, whatever the token's decimals that digits can hold."""
    number = units.to_decimal(whole, decimals)
    if decimals <= 80:
        assert units.from_units(number, decimals) == whole
    assert number.scaleb(decimals, decimal.Context(prec=400)) == whole


@given(st.floats(min_value=0, max_value=2.0**53))
def test_floats(number):
    """A float is either converted to exactly what it prints, or refused."""
    try:
        whole = units.from_units(number, 24)
    except InvalidRequestError:
        return
    assert units.to_decimal(whole, 24) == Decimal(number) == Decimal(repr(number))


# For people -----------------------------------------------------------------------------


def test_amounts_for_people(subtests):
    """Amounts have thousands separators and few decimals; a rounded one keeps its zeros."""
    cases = [
        (12_340_680_000, 6, "NEAR", 2, "12,340.68 NEAR"),
        (80 * 10**6, 6, "GOLD", 2, "80 GOLD"),
        (80 * 10**6 + 1, 6, "GOLD", 2, "80.000001 GOLD"),
        (80 * 10**7 + 1, 7, "GOLD", 2, "80.00 GOLD"),
        (1_252_998_400, 6, "GOLD", 2, "1,252.998 GOLD"),
        (-454_997_949, 6, "GOLD", 2, "-454.998 GOLD"),
        (12_500_000, 6, "GOLD", 2, "12.5 GOLD"),
        (12_504_000, 6, "GOLD", 2, "12.50 GOLD"),
        (240, 6, "NEAR", 2, "0.00024 NEAR"),
        (123_456, 6, "GOLD", 2, "0.12 GOLD"),
        (999_999, 6, "GOLD", 2, "0.999999 GOLD"),
        (1, 24, "GOLD", 0, "0.000000000000000000000001 GOLD"),
        (-12_345_678, 6, "GOLD", 2, "-12.35 GOLD"),
        (1_235, 3, "", 2, "1.24"),
        (1_245, 3, "", 2, "1.24"),  # a tie goes to the even digit
        (2_500, 3, "", 0, "2"),
        (3_500, 3, "", 0, "4"),
        (0, 24, "NEAR", 2, "0 NEAR"),
        (1_234, 0, "DUST", 2, "1,234 DUST"),
        (2**128 - 1, 24, "NEAR", 2, "340,282,366,920,938.46 NEAR"),
        (2**128 - 1, 24, "", None, "340,282,366,920,938.463463374607431768211455"),
    ]
    for value, decimals, symbol, digits, text in cases:
        with subtests.test(value=value):
            assert units.amount_text(value, decimals, symbol, digits) == text


def test_amounts_of_near_and_gas_for_people():
    """A tiny amount of NEAR is counted in yocto."""
    assert units.near_amount(12_340_675 * 10**21) == "12,340.68 NEAR"
    assert units.near_amount(1) == "1 yocto"
    assert units.near_amount(-1_500) == "-1,500 yocto"
    assert units.near_amount(999_999) == "999,999 yocto"
    assert units.near_amount(10**6, None) == "0.000000000000000001 NEAR"
    assert (units.near_text(999_999), units.near_text(10**6)) == (
        "999999 yocto",
        "0.000000000000000001 NEAR",
    )
    assert units.near_amount(0) == "0 NEAR"
    assert units.near_amount(10**24 + 1, None) == "1.000000000000000000000001 NEAR"
    assert units.gas_amount(2_427_934_563_000) == "2.43 Tgas"


SIGNED = st.integers(-(2**128), 2**128)
DECIMALS = st.integers(0, 40)
DIGITS = st.integers(0, 12)


@given(SIGNED, DECIMALS, DIGITS)
def test_rounded_amounts_are_the_nearest(value, decimals, digits):
    """The error is at most half of the last digit, and no amount but 0 reads as 0."""
    text = units.amount_text(value, decimals, "", digits)
    written = Decimal(text.replace(",", ""))
    exact = Decimal(f"{value}e-{decimals}")
    with decimal.localcontext() as context:
        context.prec = 200
        error = abs(written - exact)
        half = Decimal(f"0.5e{written.as_tuple().exponent}")
        looks_whole = abs(exact - exact.to_integral_value()) * 2 <= Decimal(f"1e-{digits}")
        is_whole = written == written.to_integral_value()

    assert error <= half if error else True
    assert (written == 0) == (value == 0)
    assert len(text.partition(".")[2]) <= max(digits, 1) or abs(exact) < 1 or looks_whole
    assert not error or digits == 0 or not is_whole or error < Decimal("1e-6")


@given(SIGNED, DECIMALS)
def test_all_digits_can_be_read_back(value, decimals):
    """Without a limit nothing is lost: the text is the amount."""
    number = units.amount_text(value, decimals, "", None).replace(",", "")

    assert Decimal(number).scaleb(decimals, decimal.Context(prec=400)) == value


@pytest.mark.parametrize("digits", [-1, 0.5, "2", True])
def test_refused_digits(digits):
    """A number of digits is an integer from 0 on."""
    with pytest.raises(InvalidRequestError, match="digits"):
        units.amount_text(1, 2, "", digits)


def test_symbols_of_tokens(subtests):
    """A contract chooses its symbol: only a plain word that is not NEAR's follows an amount."""
    cases = [
        ("GOLD", "GOLD"),
        ("USDC.e", "USDC.e"),
        ("NEAR", "tokens"),
        ("Near", "tokens"),
        ("yocto", "tokens"),
        ("0 NEAR +", "tokens"),
        ("\u0405USD", "tokens"),
        ("5", "tokens"),
        (None, "tokens"),
        (float("nan"), "tokens"),
    ]
    for symbol, text in cases:
        with subtests.test(symbol=symbol):
            assert units.token_symbol(symbol) == text
