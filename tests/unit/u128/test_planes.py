"""Planes: every kernel gives what Python's own integers give, and leaves its inputs alone."""

from __future__ import annotations

import sys
from itertools import accumulate
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
# Pairs of columns of the same length, or one of them with a single value for all rows.
pairs = st.one_of(
    st.lists(st.tuples(values, values), max_size=30).map(
        lambda rows: ([a for a, _ in rows], [b for _, b in rows])
    ),
    st.tuples(columns, values.map(lambda value: [value])),
    st.tuples(values.map(lambda value: [value]), columns),
)
groups = st.lists(st.tuples(st.integers(-1, 4), values), max_size=40)


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


def levelled(a: list[int], b: list[int]) -> list[tuple[int, int]]:
    """Pair the values as numpy does."""
    size = 0 if not (a and b) else max(len(a), len(b))
    return list(zip(a * (size // len(a)), b * (size // len(b)), strict=True)) if size else []


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


@given(columns)
def test_ints_return(ints: list[int]) -> None:
    """What goes in as Python ints comes out as the same Python ints."""
    found = planes.to_ints(*readonly_planes(ints))
    assert found.dtype == object
    assert found.tolist() == ints
    assert all(type(value) is int for value in found)


@pytest.mark.parametrize("value", [-1, -(2**64), LIMIT, 2**192], ids=str)
def test_no_int_is_cut(value: int) -> None:
    """A value outside the range is refused, among small ones and among large ones."""
    for others in ([], [1], [2**70]):
        with pytest.raises(OverflowError):
            planes.from_ints([*others, value])


@given(columns)
def test_floats_are_the_nearest(ints: list[int]) -> None:
    """Each float64 is the one that Python rounds the integer to."""
    assert planes.to_float(*readonly_planes(ints)).tolist() == [float(value) for value in ints]


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


def test_sums_by_hand() -> None:
    """Carries pass from the low half to the high one and out of it."""
    check(planes.add, [2**64, LIMIT, 2 * TOP], [2**64 - 1, TOP, TOP], [1, 1, TOP])


@given(pairs)
def test_sums(pair: tuple[list[int], list[int]]) -> None:
    """Sums are Python's modulo 2^128, and those past the range are told."""
    check(planes.add, [a + b for a, b in levelled(*pair)], *pair)


@given(pairs)
def test_differences(pair: tuple[list[int], list[int]]) -> None:
    """Differences are exact Python ints of either sign."""
    found = planes.subtract(readonly_planes(pair[0]), readonly_planes(pair[1]))
    assert found.dtype == object
    assert found.tolist() == [a - b for a, b in levelled(*pair)]
    assert all(type(value) is int for value in found)


def test_differences_at_the_edge() -> None:
    """The widest differences and those around 2^63 and 2^127 keep sign and digits."""
    large = [0, TOP, 2**63, 0, 2**127, 0, 2**127 + 1]
    small = [TOP, 0, 0, 2**63 + 1, 0, 2**127 + 1, 0]
    expected = [-TOP, TOP, 2**63, -(2**63) - 1, 2**127, -(2**127) - 1, 2**127 + 1]
    assert planes.subtract(readonly_planes(large), readonly_planes(small)).tolist() == expected
    for a, b, difference in zip(large, small, expected, strict=True):
        assert planes.subtract(readonly_planes([a]), readonly_planes([b])).tolist() == [difference]


@given(pairs)
def test_products(pair: tuple[list[int], list[int]]) -> None:
    """Products are Python's modulo 2^128, and those past the range are told."""
    check(planes.multiply, [a * b for a, b in levelled(*pair)], *pair)


@given(values, st.integers(1, TOP))
def test_products_at_the_limit(value: int, factor: int) -> None:
    """The largest factor that fits is told from the one above it."""
    most = TOP // max(value, 1)
    factors = [most, min(most + 1, TOP), min(factor, most)]
    check(planes.multiply, [value * each for each in factors], [value], factors)


@given(pairs)
def test_quotients(pair: tuple[list[int], list[int]]) -> None:
    """Quotients are rounded down, and remainders are what is left."""
    divisors = [value or 1 for value in pair[1]]
    quotient, rest = planes.divide(readonly_planes(pair[0]), readonly_planes(divisors))
    rows = levelled(pair[0], divisors)
    assert ints_of(quotient) == [a // b for a, b in rows]
    assert ints_of(rest) == [a % b for a, b in rows]
    assert not any(np.may_share_memory(x, y) for x in quotient for y in rest)


@given(st.integers(1, TOP), st.integers(0, TOP), st.integers(-1, 1))
def test_quotients_of_multiples(divisor: int, factor: int, beside: int) -> None:
    """Multiples and their neighbours fall on the right side."""
    value = factor % (TOP // divisor + 1) * divisor + beside
    value = min(max(value, 0), TOP)
    quotient, rest = planes.divide(readonly_planes([value]), readonly_planes([divisor]))
    assert (ints_of(quotient), ints_of(rest)) == ([value // divisor], [value % divisor])


@pytest.mark.parametrize("divisor", [1, 10, 10**8, 2**32, 10**16, 2**64 - 1, 10**24, 2**127, TOP])
def test_long_columns_by_one_divisor(divisor: int) -> None:
    """One divisor serves a long column."""
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


@given(st.lists(st.tuples(bases, exponents), max_size=20))
def test_powers(rows: list[tuple[int, int]]) -> None:
    """Powers that fit are exact, and all others are told."""
    found, over = planes.power(
        readonly_planes([base for base, _ in rows]), readonly_planes([e for _, e in rows])
    )
    expected = [base ** min(exponent, 128) for base, exponent in rows]
    assert over.tolist() == [value >= LIMIT for value in expected]
    kept = [value for value, beyond in zip(ints_of(found), over, strict=True) if not beyond]
    assert kept == [value for value in expected if value < LIMIT]


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


@given(pairs)
def test_comparisons(pair: tuple[list[int], list[int]]) -> None:
    """Values compare as Python ints do."""
    rows = levelled(*pair)
    a, b = map(readonly_planes, pair)
    assert planes.less(a, b).tolist() == [x < y for x, y in rows]
    assert planes.equal(a, b).tolist() == [x == y for x, y in rows]


close = st.integers(0, 5).flatmap(
    lambda low: st.sampled_from([low, 2**64 + low, 2**127 + low, 2**90 + low])
)


@given(st.one_of(columns, st.lists(close, max_size=40)))
def test_order(ints: list[int]) -> None:
    """Rows are ordered by value, equal ones staying as they were if asked."""
    order = planes.argsort(*readonly_planes(ints))
    assert order.tolist() == sorted(range(len(ints)), key=ints.__getitem__)
    loose = planes.argsort(*readonly_planes(ints), stable=False).tolist()
    assert sorted(loose) == list(range(len(ints)))
    assert [ints[row] for row in loose] == sorted(ints)


def test_order_of_long_columns() -> None:
    """Long columns with many repeated first bits are ordered down to the last bit."""
    ints = [value % 5 + 2 ** (64 + value % 7) for value in range(ROWS)]
    assert planes.argsort(*readonly_planes(ints)).tolist() == sorted(
        range(ROWS), key=ints.__getitem__
    )


@given(st.one_of(columns, st.lists(close, max_size=40)).filter(bool))
def test_extremes(ints: list[int]) -> None:
    """The first row of the largest and of the smallest value is found."""
    assert planes.extreme(*readonly_planes(ints), largest=True) == ints.index(max(ints))
    assert planes.extreme(*readonly_planes(ints), largest=False) == ints.index(min(ints))


# Sums -----------------------------------------------------------------------------------


@given(columns)
def test_totals(ints: list[int]) -> None:
    """A total is exact even where it passes 128 bits."""
    found = planes.total(*readonly_planes(ints))
    assert type(found) is int
    assert found == sum(ints)


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
@pytest.mark.parametrize(
    "value", [0, 1, 2**32 - 1, 2**32, 2**64 - 2**32, 2**64 - 1, 2**64, 10**30, TOP], ids=str
)
def test_totals_of_long_columns(value: int) -> None:
    """Nothing is lost in a long column, small at first or not, or of every third row."""
    for ints in ([value] * ROWS, [1] * ROWS + [value] * ROWS):
        hi, lo = readonly_planes(ints)
        assert planes.total(hi, lo) == sum(ints)
        assert planes.total(hi[::3], lo[::3]) == sum(ints[::3])


@given(columns)
def test_running_sums(ints: list[int]) -> None:
    """Running sums are Python's modulo 2^128; from the first too large, all are told."""
    sums = list(accumulate(ints))
    found, over = planes.cumulate(*readonly_planes(ints))
    assert ints_of(found) == [value % LIMIT for value in sums]
    assert over.tolist() == [value >= LIMIT for value in sums]


# Groups ---------------------------------------------------------------------------------


def parted(rows: list[tuple[int, int]]) -> tuple[np.ndarray, Planes]:
    """Part rows into codes and planes."""
    codes = np.array([code for code, _ in rows], dtype=np.intp)
    codes.flags.writeable = False
    return codes, readonly_planes([value for _, value in rows])


@given(groups)
def test_totals_of_groups(rows: list[tuple[int, int]]) -> None:
    """Totals of groups are Python's modulo 2^128, 0 where nothing is, and the rest is told."""
    codes, both = parted(rows)
    found, over = planes.group_totals(codes, 6, *both)
    expected = [sum(value for code, value in rows if code == group) for group in range(6)]
    assert ints_of(found) == [value % LIMIT for value in expected]
    assert over.tolist() == [value >= LIMIT for value in expected]


def test_totals_of_groups_beyond_floats() -> None:
    """Groups whose halves pass 53 and 64 bits stay exact; one beyond 128 spoils no other."""
    ints = many(4, bits=110)
    rows = [(row % 3, value) for row, value in enumerate(ints)] + [(3, TOP), (3, 1), (4, TOP)]
    codes, both = parted(rows)
    found, over = planes.group_totals(codes, 5, *both)
    assert ints_of(found) == [sum(ints[0::3]), sum(ints[1::3]), sum(ints[2::3]), 0, TOP]
    assert over.tolist() == [False, False, False, True, False]


@given(st.one_of(groups, st.lists(st.tuples(st.integers(-1, 4), close), max_size=40)))
def test_extremes_of_groups(rows: list[tuple[int, int]]) -> None:
    """The first row of each group's largest and smallest value is found, -1 for no row."""
    codes, both = parted(rows)
    for largest in (True, False):
        found = planes.group_extremes(codes, 6, *both, largest=largest).tolist()
        for group, row in enumerate(found):
            among = [i for i, (code, _) in enumerate(rows) if code == group]
            pick = max if largest else min
            best = pick((rows[i][1] for i in among), default=None)
            assert row == next((i for i in among if rows[i][1] == best), -1)


# The ground it stands on ----------------------------------------------------------------


@settings(max_examples=300)
@given(values, st.integers(1, TOP))
def test_estimates_are_from_below(value: int, divisor: int) -> None:
    """An estimated quotient is never too large, and lacks at most a 2^47th of it and 1."""
    estimate, rest = planes._divide_once(readonly_planes([value]), readonly_planes([divisor]))
    left = value - ints_of(estimate)[0] * divisor
    assert ints_of(rest) == [left]
    assert left * 2**47 <= value + divisor * 2**47
