"""Exact amounts: every digit kept, everything else refused by row."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.errors import DecodeError
from ledgerkit.frames import amounts
from ledgerkit.u128.array import U128Dtype

U128_MAX = 340282366920938463463374607431768211455


@given(st.lists(st.none() | st.integers(0, U128_MAX)))
def test_every_amount_is_exact(values: list[int | None]) -> None:
    """Any list of u128 texts, with gaps, gives the same integers with NA in the gaps."""
    parsed = amounts.parse([None if value is None else str(value) for value in values])
    assert parsed.dtype == U128Dtype()
    assert [None if value is pd.NA else value for value in parsed] == values
    assert all(type(value) is int for value in parsed if value is not pd.NA)


@pytest.mark.parametrize("text", ["-1", "1.0", str(2**128), "1" * 5000], ids=len)
def test_anything_else_is_refused_by_row(text: str) -> None:
    """What is not a u128 in ASCII digits is refused, naming field, value and row."""
    for others in (["1", "2"], [None, "2"]):
        with pytest.raises(DecodeError) as caught:
            amounts.parse([*others, text], name="locked")
        assert caught.value.path == "locked[2]"
        assert "locked" in str(caught.value)
        assert "in row 2" in str(caught.value)
        assert repr(text)[1:20] in str(caught.value)
        assert len(str(caught.value)) < 300


def test_the_first_refused_row_is_named() -> None:
    """Of several refused rows the first is named."""
    with pytest.raises(DecodeError) as caught:
        amounts.parse(["1", "x", "y"])
    assert caught.value.path == "balance[1]"


def test_exact_takes_integers_as_they_are() -> None:
    """Integers already decoded pass, None and NA are missing."""
    held = amounts.exact([0, U128_MAX, None, pd.NA], name="deposit")
    assert held.tolist()[:2] == [0, U128_MAX]
    assert held[2] is pd.NA
    assert held[3] is pd.NA


@pytest.mark.parametrize("value", [-1, U128_MAX + 1])
def test_exact_refuses_what_is_no_u128(value: int) -> None:
    """An integer outside 0 to 2^128-1 is refused by row."""
    with pytest.raises(DecodeError) as caught:
        amounts.exact([1, value], name="deposit")
    assert caught.value.path == "deposit[1]"


def test_no_amounts() -> None:
    """No texts are an empty column of the same kind."""
    assert amounts.parse([]).dtype == U128Dtype()
    assert len(amounts.parse([])) == 0
