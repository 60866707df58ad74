"""Arrow arrays of amounts that documents have as text."""

from __future__ import annotations

import pytest

from ledgerkit.errors import DecodeError
from ledgerkit.frames import arrow_tables

LARGEST = 10**38 - 1  # of 38 digits; the supply of NEAR has 34


def test_amounts_are_exact() -> None:
    """Every amount of up to 38 digits is stored to the last one, leading zeros or not."""
    texts = ["0", None, str(LARGEST), "0" * 30 + str(10**20)]
    array = arrow_tables.of_columns("gas_price", {"gas_price": texts})["gas_price"]
    values = [0, None, LARGEST, 10**20]
    assert [None if v is None else int(v) for v in array.to_pylist()] == values


@pytest.mark.parametrize("value", [LARGEST + 1, 2**127, 2**128 - 1, 2**128 + 5, 10**60])
def test_larger_amounts_are_refused(value: int) -> None:
    """More than 38 digits are an error, also where 128 bits overflow to a small number."""
    with pytest.raises(DecodeError, match="gas_price"):
        arrow_tables.of_columns("gas_price", {"gas_price": ["1", str(value)]})
