"""Arrow arrays of amounts that documents have as text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.errors import DecodeError
from ledgerkit.frames import arrow_tables

LARGEST = 10**38 - 1  # of 38 digits; the supply of NEAR has 34


def amounts(texts: list[Any]) -> Any:
    """Convert amounts as a column of a table."""
    return arrow_tables.of_columns("gas_price", {"gas_price": texts})["gas_price"]


@given(st.lists(st.integers(0, LARGEST) | st.none()))
def test_amounts_are_exact(values: list[int | None]) -> None:
    """Every amount of up to 38 digits is stored to the last one."""
    texts = [None if value is None else str(value) for value in values]
    array = amounts(texts)
    assert [None if v is None else int(v) for v in array.to_pylist()] == values


@given(st.integers(LARGEST + 1, 10**60), st.lists(st.integers(0, LARGEST)))
def test_larger_amounts_are_refused(value: int, others: list[int]) -> None:
    """More than 38 digits are an error, also where 128 bits overflow to a small number."""
    texts = [*map(str, others), str(value)]
    with pytest.raises(DecodeError):
        amounts(texts)


@pytest.mark.parametrize("value", [10**38, 2**127, 2**128 - 1, 2**128, 2**128 + 5, 2**130])
def test_amounts_around_the_limits_are_refused(value: int) -> None:
    """Arrow's own cast makes 5 of 2**128 + 5."""
    with pytest.raises(DecodeError, match="gas_price"):
        amounts(["1", str(value)])


def test_leading_zeros_are_no_digits_more() -> None:
    """A text may be longer than 38 digits for its zeros."""
    array = amounts(["0" * 30 + str(10**20)])
    assert [int(value) for value in array.to_pylist()] == [10**20]
