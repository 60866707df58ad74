"""Human units: exact both ways, or an error that names the row."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.errors import InvalidRequestError
from ledgerkit.u128.array import U128Array
from ledgerkit.u128.human_units import amount_format, from_units, to_units

TOP = 2**128 - 1
AMOUNTS = st.lists(st.one_of(st.none(), st.integers(0, TOP), st.sampled_from([0, 2**64, TOP])))


def u128(*values, name="balance", index=None):
    return pd.Series(U128Array._from_sequence(values), name=name, index=index)


# To units -------------------------------------------------------------------------------


def test_text_keeps_every_digit():
    """Text is the default: no exponent, no trailing zeros, missing stays missing."""
    balance = u128(1_500_000, None, 0, TOP, index=list("abcd"))

    shown = to_units(balance, 6)

    assert shown.dtype == pd.StringDtype("python", na_value=np.nan)
    assert shown["a"] == "1.5"
    assert shown.isna().tolist() == [False, True, False, False]
    assert shown["c"] == "0"
    assert shown["d"] == "340282366920938463463374607431768.211455"
    assert (shown.index.tolist(), shown.name) == (list("abcd"), "balance")


def test_decimals_are_exact():
    """Decimals hold more digits than the context of their arithmetic would keep."""
    shown = to_units(u128(TOP, None), 24, as_="decimal")

    assert shown.dtype == object
    assert shown[0] == Decimal("340282366920938.463463374607431768211455")
    assert shown[1] is pd.NA


def test_floats_are_rounded_once():
    """A float is the nearest one; a rounded amount over a rounded 10**24 would be the next."""
    shown = to_units(u128(10**23, None), 24, as_="float")

    assert shown.dtype == np.float64
    assert shown[0] == 0.1
    assert float(10**23) / 1e24 == 0.09999999999999999
    assert np.isnan(shown[1])


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([-1_500_000, 2_000_000], dtype=object),
        pd.Series([-1_500_000, 2_000_000]),
        pd.Series([-1_500_000, 2_000_000], dtype="Int64"),
    ],
    ids=["object", "int64", "Int64"],
)
def test_signed_integers_of_any_dtype(values):
    """A difference is below zero, in whatever dtype its integers are."""
    assert to_units(values, 6).tolist() == ["-1.5", "2"]


def test_decimals_by_row():
    """Tokens have their own decimals; without them an amount has no human units."""
    decimals = pd.Series([6, 18, pd.NA, 0], dtype="Int64")

    shown = to_units(u128(1_500_000, 5 * 10**17, 7, None), decimals)

    assert shown[:2].tolist() == ["1.5", "0.5"]
    assert shown[2:].isna().all()


def test_one_amount():
    """A single amount gives a single text, Decimal or float."""
    assert to_units(10**24, 24) == "1"
    assert to_units(10**23, 24, as_="decimal") == Decimal("0.1")
    assert to_units(10**23, 24, as_="float") == 0.1
    assert to_units(pd.NA, 24) is pd.NA


def test_no_rows():
    """An empty column stays one, with the dtype that was asked for."""
    assert to_units(u128(), 6).tolist() == []
    assert to_units(u128(), 6, as_="float").dtype == np.float64
    assert from_units(pd.Series([], dtype=object), 6).dtype == "u128"


def test_a_refused_amount_is_named_by_its_row():
    """A float is no number of smallest units."""
    with pytest.raises(InvalidRequestError) as caught:
        to_units(pd.Series([1, None, 2.5], dtype=object, name="fee"), 6)

    assert (
        caught.value.sentence
        == "fee 2.5 in row 2 is not valid: expected an integer of smallest units"
    )
    assert caught.value.field == "fee[2]"


def test_refused_decimals_are_named_by_their_row():
    """Decimals come from contracts, which may claim anything."""
    decimals = pd.Series([6, 256])

    with pytest.raises(InvalidRequestError) as caught:
        to_units(u128(1, 1), decimals)

    assert (
        caught.value.sentence
        == "decimals 256 in row 1 is not valid: expected an integer from 0 to 255"
    )
    assert caught.value.field == "decimals[1]"


def test_one_number_of_decimals_is_checked_without_rows():
    """A wrong number is refused before the first row, also where there is none."""
    with pytest.raises(InvalidRequestError, match="decimals -1 is not valid"):
        to_units(u128(), -1)


def test_decimals_of_other_rows_are_refused():
    """Rows are paired by their index; another index would pair the wrong ones."""
    decimals = pd.Series([6, 18], index=[1, 0])

    with pytest.raises(InvalidRequestError, match="a Series with the index of the values"):
        to_units(u128(1, 2), decimals)


def test_an_unknown_form_is_refused():
    """The forms there are stand in the sentence."""
    with pytest.raises(InvalidRequestError, match="one of text, decimal, float"):
        to_units(u128(1), 6, as_="str")


# From units -----------------------------------------------------------------------------


def test_texts_become_amounts():
    """What people write is read exactly, into the dtype of amounts."""
    written = pd.Series(["0.1", None, "340282366920938.463463374607431768211455"], name="paid")

    amounts = from_units(written, 24)

    assert amounts.dtype == "u128"
    assert amounts.name == "paid"
    assert amounts[0] == 10**23
    assert amounts[1] is pd.NA
    assert amounts[2] == TOP


def test_other_numbers_become_amounts():
    """Decimals, integers and floats that are what they print are taken; NaN is missing."""
    written = pd.Series([Decimal("1.25"), 3, 0.5, float("nan")], dtype=object)

    assert from_units(written, 6).tolist() == [1_250_000, 3_000_000, 500_000, pd.NA]


def test_amounts_with_decimals_by_row():
    """Each row is read by its own decimals."""
    decimals = pd.Series([6, 0, pd.NA], dtype="Int64")

    assert from_units(pd.Series(["1.5", "7", "2"]), decimals).tolist() == [1_500_000, 7, pd.NA]


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ("1.0000001", "at most 6 decimals"),
        ("-1", "digits and one point"),
        ("1,000", "digits and one point"),
        ("340282366920938463463374607431768.211456", "from 0 to 340282366920938463463374607431768"),
        (0.1, "or text such as"),
    ],
)
def test_a_refused_number_is_named_by_its_row(wrong, rule):
    """What would be rounded, guessed or cut is refused."""
    with pytest.raises(InvalidRequestError, match=rule) as caught:
        from_units(pd.Series(["1", wrong], dtype=object), 6)

    assert caught.value.sentence.startswith(f"value {wrong!r} in row 1 is not valid: ")
    assert caught.value.value == wrong


def test_one_number():
    """A single number gives a Python int."""
    assert from_units("0.1", 24) == 10**23
    assert from_units(None, 24) is pd.NA


@given(AMOUNTS, st.integers(0, 40), st.sampled_from(["text", "decimal"]))
def test_there_and_back(values, decimals, form):
    """Every column of amounts comes back from text and from Decimals."""
    balance = u128(*values)

    back = from_units(to_units(balance, decimals, as_=form), decimals)

    assert back.dtype == "u128"
    assert back.equals(balance)


# To be shown ----------------------------------------------------------------------------


def test_a_format_for_near():
    """Thousands are set apart, two decimals stay, the unit follows."""
    show = amount_format()

    assert show(1_234_500_000 * 10**18) == "1,234.5 NEAR"
    assert show(1_234_567_890 * 10**18) == "1,234.57 NEAR"
    assert amount_format(digits=None)(1_234_567_890 * 10**18) == "1,234.56789 NEAR"
    assert show(1) == "0.000000000000000000000001 NEAR"
    assert show(-(10**30)) == "-1,000,000 NEAR"
    assert show(pd.NA) == show(None) == show(float("nan")) == "<NA>"


def test_a_format_for_others():
    """Decimals, unit and separator are the caller's."""
    assert amount_format(6, "USDC", thousands="'")(1_234_567_890_000) == "1'234'567.89 USDC"
    assert amount_format(0, "", thousands="")(1_234) == "1234"
    assert amount_format(12, "Tgas")(3 * 10**13) == "30 Tgas"


def test_a_format_is_checked_when_it_is_made():
    """A wrong one would otherwise fail in the middle of showing a frame."""
    with pytest.raises(InvalidRequestError, match="from 0 to 255"):
        amount_format(256)
    with pytest.raises(InvalidRequestError, match="a comma, an underscore"):
        amount_format(thousands=".")
    with pytest.raises(InvalidRequestError, match="digits -1"):
        amount_format(digits=-1)
    with pytest.raises(InvalidRequestError, match="an integer of smallest units"):
        amount_format()(0.5)


def test_a_format_in_a_styled_frame():
    """A Styler writes cells by it."""
    frame = pd.DataFrame({"balance": u128(1_234_500_000 * 10**18, None)})

    html = frame.style.format({"balance": amount_format()}).to_html()

    assert ">1,234.5 NEAR</td>" in html
    assert ">&lt;NA&gt;</td>" in html or "><NA></td>" in html
