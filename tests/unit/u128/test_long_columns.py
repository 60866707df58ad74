"""Long columns, carries and roundings: what only many rows and the edges of a word show."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerkit.u128.array  # noqa: F401 - registers the dtype
from ledgerkit.u128 import planes

if TYPE_CHECKING:
    from collections.abc import Iterator

TOP = 2**128 - 1
EDGES = sorted(
    {0, 1, TOP, 10**24, 10**38}
    | {2**bits + more for bits in (32, 53, 63, 64, 76, 96, 127) for more in (-1, 0, 1)}
)
ROWS = 70_000  # more than a few blocks, and than one part of a sum by group

values = st.one_of(st.sampled_from(EDGES), st.integers(0, TOP), st.integers(0, 2**64 - 1))


def column(ints: list[int]) -> Any:
    return pd.Series(ints, dtype="u128")


def many(seed: int, bits: int = 128) -> list[int]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, bits, ROWS).tolist()
    return [int.from_bytes(rng.bytes(16), "little") >> 128 - length for length in lengths]


@given(st.integers(1, 75), st.integers(2**52, 2**53 - 1), st.integers(-2, 2))
def test_floats_round_halves_to_even(shift: int, whole: int, beside: int) -> None:
    """Halfway between two floats the even one is taken, and beside it the nearer one."""
    value = (2 * whole + 1) * 2 ** (shift - 1) + beside
    assert column([value]).astype("float64").tolist() == [float(value)]


@given(values, st.integers(1, TOP))
def test_products_at_the_limit(value: int, factor: int) -> None:
    """The largest factor that fits is told from the one above it."""
    most = TOP // max(value, 1)
    factors = [most, min(factor, most)]
    assert (column(factors) * value).tolist() == [value * each for each in factors]
    if value > 1:
        with pytest.raises(OverflowError):
            column([most + 1]) * value


@given(st.integers(1, TOP), st.integers(0, TOP), st.integers(-1, 1))
def test_quotients_of_multiples(divisor: int, factor: int, beside: int) -> None:
    """Multiples and their neighbours fall on the right side."""
    value = factor % (TOP // divisor + 1) * divisor + beside
    value = min(max(value, 0), TOP)
    quotient, rest = divmod(column([value]), divisor)
    assert (quotient.tolist(), rest.tolist()) == ([value // divisor], [value % divisor])


def test_long_columns_by_one_divisor(subtests: pytest.Subtests) -> None:
    """One divisor serves a long column."""
    ints = many(1)
    amounts = column(ints)
    for divisor in [1, 10, 10**8, 2**32, 10**16, 2**64 - 1, 10**24, 2**127, TOP]:
        with subtests.test(divisor=divisor):
            quotient, rest = divmod(amounts, divisor)
            assert quotient.tolist() == [value // divisor for value in ints]
            assert rest.tolist() == [value % divisor for value in ints]


def test_long_columns() -> None:
    """Arithmetic between long columns is that of their rows, and so is their conversion."""
    a, b = many(2, bits=127), many(3, bits=100)
    pairs = list(zip(a, b, strict=True))
    assert column(a).astype("float64").tolist() == [float(x) for x in a]
    assert (column(a) - column(b)).tolist() == [x - y for x, y in pairs]
    assert (column(a) // column([y + 1 for y in b])).tolist() == [x // (y + 1) for x, y in pairs]
    assert (column(a) + column(b)).tolist() == [x + y for x, y in pairs]
    for bits in (28, 64, 100):
        c, d = many(4, bits=128 - bits), many(5, bits)
        assert (column(c) * column(d)).tolist() == [x * y for x, y in zip(c, d, strict=True)]


def test_order_of_long_columns() -> None:
    """Long columns with many repeated first bits are ordered down to the last bit."""
    ints = [value % 5 + 2 ** (64 + value % 7) for value in range(ROWS)]
    ordered = column(ints).sort_values(kind="stable")
    assert ordered.index.tolist() == sorted(range(ROWS), key=ints.__getitem__)


@pytest.fixture(params=["Arrow", "numpy"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let long columns be added by Arrow, and by numpy where Arrow is not installed."""
    planes._arrow_sum.cache_clear()
    if request.param == "numpy":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    yield
    assert (planes._arrow_sum() is None) == (request.param == "numpy")
    planes._arrow_sum.cache_clear()


def total(amounts: Any) -> int:
    """Return a sum, or the one that an error names because it is too large."""
    try:
        return int(amounts.sum())
    except OverflowError as error:
        return int(str(error).split()[2])


@pytest.mark.usefixtures("library")
def test_totals_of_long_columns(subtests: pytest.Subtests) -> None:
    """Nothing is lost in a long column, small at first or not, or of every third row."""
    for value in [0, 1, 2**32 - 1, 2**32, 2**64 - 2**32, 2**64 - 1, 2**64, 10**30, TOP]:
        with subtests.test(value=value):
            for ints in ([value] * ROWS, [1] * ROWS + [value] * ROWS):
                for step in (1, 3):
                    assert total(column(ints).iloc[::step]) == sum(ints[::step])


def test_totals_of_groups_beyond_floats() -> None:
    """Groups whose halves pass 53 and 64 bits stay exact, up to the largest value."""
    ints = [*many(4, bits=110), TOP]
    groups = [*(row % 3 for row in range(ROWS)), 3]
    sums = column(ints).groupby(groups).sum()
    assert sums.tolist() == [sum(ints[:ROWS][at::3]) for at in range(3)] + [TOP]
