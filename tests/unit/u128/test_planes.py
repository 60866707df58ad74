"""Planes: what only long columns, carries and rounding show of the arithmetic of u128."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerkit.u128 import planes
from ledgerkit.u128.planes import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ledgerkit.u128.planes import Planes

TOP = LIMIT - 1
EDGES = sorted(
    {0, 1, TOP, 10**24, 10**38}
    | {2**bits + more for bits in (32, 53, 63, 64, 76, 96, 127) for more in (-1, 0, 1)}
)
ROWS = 70_000  # more than a few blocks, and than one part of a sum by group

values = st.one_of(st.sampled_from(EDGES), st.integers(0, TOP), st.integers(0, 2**64 - 1))
columns = st.lists(values, max_size=30)


def readonly_planes(ints: list[int]) -> Planes:
    """Return ints as planes that cannot be written to."""
    hi, lo = planes.from_ints(ints)
    hi.flags.writeable = lo.flags.writeable = False
    return hi, lo


def ints_of(both: Planes) -> list[int]:
    """Read planes back, checking their form."""
    hi, lo = both
    assert hi.dtype == lo.dtype == np.uint64
    assert not np.may_share_memory(hi, lo)
    return planes.to_ints(hi, lo).tolist()


def many(seed: int, bits: int = 128) -> list[int]:
    """Make values of all lengths."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, bits, ROWS).tolist()
    return [int.from_bytes(rng.bytes(16), "little") >> 128 - length for length in lengths]


# In and out -----------------------------------------------------------------------------


def test_halves() -> None:
    """A value is split at 64 bits, the high half first."""
    hi, lo = planes.from_ints([3, 2**64, TOP])
    assert hi.tolist() == [0, 1, 2**64 - 1]
    assert lo.tolist() == [3, 0, 2**64 - 1]


@given(st.integers(1, 75), st.integers(2**52, 2**53 - 1), st.integers(-2, 2))
def test_floats_round_halves_to_even(shift: int, whole: int, beside: int) -> None:
    """Halfway between two floats the even one is taken, and beside it the nearer one."""
    value = (2 * whole + 1) * 2 ** (shift - 1) + beside
    assert planes.to_float(*readonly_planes([value])).tolist() == [float(value)]


def test_floats_of_many_blocks() -> None:
    """A long column is rounded like a short one."""
    ints = many(1)
    assert planes.to_float(*readonly_planes(ints)).tolist() == [float(value) for value in ints]


# Arithmetic -----------------------------------------------------------------------------


def check(
    kernel: Callable[[Planes, Planes], tuple[Planes, np.ndarray]],
    expected: list[int],
    a: list[int],
    b: list[int],
) -> None:
    """Compare results modulo 2^128, and what is told of their size."""
    found, over = kernel(readonly_planes(a), readonly_planes(b))
    assert ints_of(found) == [value % LIMIT for value in expected]
    assert over.dtype == bool
    assert over.tolist() == [value >= LIMIT for value in expected]


def test_differences_at_the_edge() -> None:
    """The widest differences and those around 2^63 and 2^127 keep sign and digits."""
    large = [0, TOP, 2**63, 0, 2**127, 0, 2**127 + 1]
    small = [TOP, 0, 0, 2**63 + 1, 0, 2**127 + 1, 0]
    expected = [-TOP, TOP, 2**63, -(2**63) - 1, 2**127, -(2**127) - 1, 2**127 + 1]
    assert planes.subtract(readonly_planes(large), readonly_planes(small)).tolist() == expected
    for a, b, difference in zip(large, small, expected, strict=True):
        assert planes.subtract(readonly_planes([a]), readonly_planes([b])).tolist() == [difference]


@given(values, st.integers(1, TOP))
def test_products_at_the_limit(value: int, factor: int) -> None:
    """The largest factor that fits is told from the one above it."""
    most = TOP // max(value, 1)
    factors = [most, min(most + 1, TOP), min(factor, most)]
    check(planes.multiply, [value * each for each in factors], [value], factors)


@given(st.integers(1, TOP), st.integers(0, TOP), st.integers(-1, 1))
def test_quotients_of_multiples(divisor: int, factor: int, beside: int) -> None:
    """Multiples and their neighbours fall on the right side."""
    value = factor % (TOP // divisor + 1) * divisor + beside
    value = min(max(value, 0), TOP)
    quotient, rest = planes.divide(readonly_planes([value]), readonly_planes([divisor]))
    assert (ints_of(quotient), ints_of(rest)) == ([value // divisor], [value % divisor])


def test_long_columns_by_one_divisor(subtests: pytest.Subtests) -> None:
    """One divisor serves a long column."""
    for divisor in [1, 10, 10**8, 2**32, 10**16, 2**64 - 1, 10**24, 2**127, TOP]:
        with subtests.test(divisor=divisor):
            ints = many(divisor % 1000)
            quotient, rest = planes.divide(readonly_planes(ints), readonly_planes([divisor]))
            assert ints_of(quotient) == [value // divisor for value in ints]
            assert ints_of(rest) == [value % divisor for value in ints]


def test_long_columns() -> None:
    """Arithmetic between long columns is that of their rows."""
    a, b = many(2), many(3, bits=100)
    check(planes.add, [x + y for x, y in zip(a, b, strict=True)], a, b)
    check(planes.multiply, [x * y for x, y in zip(a, b, strict=True)], a, b)
    assert planes.subtract(readonly_planes(a), readonly_planes(b)).tolist() == [
        x - y for x, y in zip(a, b, strict=True)
    ]
    quotient, _ = planes.divide(readonly_planes(a), readonly_planes([y + 1 for y in b]))
    assert ints_of(quotient) == [x // (y + 1) for x, y in zip(a, b, strict=True)]


exponents = st.one_of(st.integers(0, 130), st.sampled_from([2**64, 2**64 + 1, 2**127, TOP]))
bases = st.one_of(st.integers(0, 12), values)


def test_powers_by_hand() -> None:
    """The last power of 2 and of 10 that fits is told from the next; 0 to the 0 is 1."""
    bases, exponents = [2, 2, 10, 10, 0, 0, 1, TOP], [127, 128, 38, 39, 0, TOP, TOP, 1]
    found, over = planes.power(readonly_planes(bases), readonly_planes(exponents))
    assert over.tolist() == [False, True, False, True, False, False, False, False]
    assert [ints_of(found)[i] for i in (0, 2, 4, 5, 6, 7)] == [2**127, 10**38, 1, 0, 1, TOP]
    assert ints_of(planes.power(readonly_planes([3]), readonly_planes([0, 1, 80]))[0]) == [
        1,
        3,
        3**80,
    ]
    assert ints_of(planes.power(readonly_planes([0, 1, 7]), readonly_planes([2]))[0]) == [0, 1, 49]


# Order ----------------------------------------------------------------------------------


def test_order_of_long_columns() -> None:
    """Long columns with many repeated first bits are ordered down to the last bit."""
    ints = [value % 5 + 2 ** (64 + value % 7) for value in range(ROWS)]
    assert planes.argsort(*readonly_planes(ints)).tolist() == sorted(
        range(ROWS), key=ints.__getitem__
    )


# Sums -----------------------------------------------------------------------------------


@pytest.fixture(params=["Arrow", "numpy"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let long columns be added by Arrow, and by numpy where Arrow is not installed."""
    planes._arrow_sum.cache_clear()
    if request.param == "numpy":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    yield
    assert (planes._arrow_sum() is None) == (request.param == "numpy")
    planes._arrow_sum.cache_clear()


@pytest.mark.usefixtures("library")
def test_totals_of_long_columns(subtests: pytest.Subtests) -> None:
    """Nothing is lost in a long column, small at first or not, or of every third row."""
    for value in [0, 1, 2**32 - 1, 2**32, 2**64 - 2**32, 2**64 - 1, 2**64, 10**30, TOP]:
        with subtests.test(value=value):
            for ints in ([value] * ROWS, [1] * ROWS + [value] * ROWS):
                hi, lo = readonly_planes(ints)
                assert planes.total(hi, lo) == sum(ints)
                assert planes.total(hi[::3], lo[::3]) == sum(ints[::3])


# Groups ---------------------------------------------------------------------------------


def parted(rows: list[tuple[int, int]]) -> tuple[np.ndarray, Planes]:
    """Part rows into codes and planes."""
    codes = np.array([code for code, _ in rows], dtype=np.intp)
    codes.flags.writeable = False
    return codes, readonly_planes([value for _, value in rows])


def test_totals_of_groups_beyond_floats() -> None:
    """Groups whose halves pass 53 and 64 bits stay exact; one beyond 128 spoils no other."""
    ints = many(4, bits=110)
    rows = [(row % 3, value) for row, value in enumerate(ints)] + [(3, TOP), (3, 1), (4, TOP)]
    codes, both = parted(rows)
    found, over = planes.group_totals(codes, 5, *both)
    assert ints_of(found) == [sum(ints[0::3]), sum(ints[1::3]), sum(ints[2::3]), 0, TOP]
    assert over.tolist() == [False, False, False, True, False]


# The ground it stands on ----------------------------------------------------------------


@settings(max_examples=300)
@given(values, st.integers(1, TOP))
def test_estimates_are_from_below(value: int, divisor: int) -> None:
    """An estimated quotient is never too large, and lacks at most a 2^47th of it and 1."""
    estimate, rest = planes._divide_once(readonly_planes([value]), readonly_planes([divisor]))
    left = value - ints_of(estimate)[0] * divisor
    assert ints_of(rest) == [left]
    assert left * 2**47 <= value + divisor * 2**47
