"""Arithmetic and comparison: what Python's own integers give, or the error that they call for."""

from __future__ import annotations

import math
import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ledgerkit.u128.array
import ledgerkit.units

TOP = 2**128 - 1
EDGES = sorted(
    {0, 1, 2, 3, TOP - 1, TOP, 10**24, 10**38}
    | {2**bits + more for bits in (32, 53, 63, 64, 76, 96, 127) for more in (-1, 0, 1)}
)
GAP = pd.NA

amounts = st.one_of(st.sampled_from(EDGES), st.integers(0, TOP), st.integers(0, 300))
cells = st.one_of(amounts, st.none())
signed = st.one_of(amounts, st.sampled_from([-1, -(2**64), -TOP, TOP + 1, 2**200]), st.integers())
floats = st.one_of(
    st.floats(allow_nan=False),
    st.sampled_from([2.0**64, 2.0**128, -0.5, 0.5, math.inf, -math.inf, 2.0**53 + 2]),
    amounts.map(float),
)
pairs = st.lists(st.tuples(cells, cells), max_size=12)

WHOLE = [operator.add, operator.mul, operator.floordiv, operator.mod]
few = settings(max_examples=40)  # for each operator
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def column(values):
    return pd.Series(values, dtype="u128")


def expected(op, first, second):
    """Compute row by row with Python ints; None where a side is missing."""
    rows = zip(first, second, strict=True)
    return [None if a is None or b is None else op(a, b) for a, b in rows]


def first_outside(values):
    """Find the first row that u128 does not hold."""
    rows = (row for row, v in enumerate(values) if v is not None and not 0 <= v <= TOP)
    return next(rows, None)


def check(op, left, right, first, second):
    """Compare an operation with Python's, errors included."""
    if op in {operator.floordiv, operator.mod}:
        zeros = [
            r
            for r, (a, b) in enumerate(zip(first, second, strict=True))
            if a is not None and b == 0
        ]
        if zeros:
            with pytest.raises(ZeroDivisionError, match=f"in row {zeros[0]}$"):
                op(left, right)
            return
    wanted = expected(op, first, second)
    row = first_outside(wanted)
    if row is not None:
        with pytest.raises(OverflowError, match=f"in row {row} does not fit in u128"):
            op(left, right)
        return
    result = op(left, right)
    assert result.dtype == "u128"
    assert result.tolist() == [GAP if v is None else v for v in wanted]


def check_signed(op, left, right, wanted):
    """Compare a difference, or an operation of signed columns, with Python's."""
    row = next((row for row, v in enumerate(wanted) if v is not None and abs(v) > TOP), None)
    if row is not None:
        with pytest.raises(OverflowError, match=f"in row {row} does not fit in i129"):
            op(left, right)
        return
    result = op(left, right)
    assert result.dtype == "i129"
    assert result.tolist() == [GAP if v is None else v for v in wanted]


@pytest.mark.parametrize("op", WHOLE, ids=lambda op: op.__name__)
@few
@given(rows=pairs)
def test_columns_compute_like_ints(op, rows):
    """Two columns give Python's results, or name the row that leaves the range."""
    first, second = [a for a, _ in rows], [b for _, b in rows]
    check(op, column(first), column(second), first, second)


@pytest.mark.parametrize("op", WHOLE, ids=lambda op: op.__name__)
@few
@given(values=st.lists(cells, max_size=12), number=signed)
def test_columns_compute_with_ints_of_any_size_and_sign(op, values, number):
    """A number beside a column, on either side, computes exactly or names the row."""
    check(op, column(values), number, values, [number] * len(values))
    check(op, number, column(values), [number] * len(values), values)


@pytest.mark.parametrize("op", WHOLE, ids=lambda op: op.__name__)
@few
@given(rows=st.lists(st.tuples(cells, st.integers(-(2**63), 2**63 - 1) | st.none()), max_size=12))
def test_columns_compute_with_integers_of_64_bits(op, rows):
    """Columns and arrays of integers count as their ints, on either side, gaps included."""
    first, second = [a for a, _ in rows], [b for _, b in rows]
    gas = pd.Series(second, dtype="Int64")
    check(op, column(first), gas, first, second)
    check(op, gas, column(first), second, first)
    if None not in second:
        check(op, column(first), np.array(second, dtype=np.int64), first, second)
        check(op, gas.astype("int64"), column(first), second, first)
    wanted = expected(operator.sub, second, first)
    check_signed(operator.sub, gas, column(first), wanted)


@pytest.mark.parametrize("dtype", ["Int64", "UInt64", "Float64", "int64", "float64"])
def test_any_numbers_may_be_compared_from_the_left(dtype):
    """Numbers of any dtype on the left of amounts compare as Python's do."""
    numbers, values = [3, 2**53, 0], [4, 2**53 + 1, 0]
    for op in COMPARISONS:
        result = op(pd.Series(numbers, dtype=dtype), column(values))
        assert result.dtype == "boolean"
        assert result.tolist() == [op(a, b) for a, b in zip(numbers, values, strict=True)]


@example(rows=[(0, TOP), (TOP, 0), (2**63, 0), (0, 2**63 + 1), (2**127, 0), (0, 2**127 + 1)])
@given(rows=st.lists(st.tuples(cells, st.one_of(signed, st.none())), max_size=12))
def test_differences_are_exact_and_signed(rows):
    """Subtraction gives i129, whatever the values, or names the row that leaves its range."""
    first, second = [a for a, _ in rows], [b for _, b in rows]
    others = pd.Series(second, dtype=object)
    check_signed(operator.sub, column(first), others, expected(operator.sub, first, second))
    check_signed(operator.sub, others, column(first), expected(operator.sub, second, first))


@given(values=st.lists(cells, max_size=12))
def test_minus_and_diff_are_signed(values):
    """-s and s.diff() are i129, and their absolute values u128 again; + and abs stay u128."""
    s = column(values)
    steps = expected(operator.sub, values, [None, *values][: len(values)])
    for result, wanted in ((-s, [None if v is None else -v for v in values]), (s.diff(), steps)):
        assert (result.dtype, abs(result).dtype) == ("i129", "u128")
        assert result.tolist() == [GAP if v is None else v for v in wanted]
        assert abs(result).tolist() == [GAP if v is None else abs(v) for v in wanted]
    pd.testing.assert_series_equal(+s, s)
    pd.testing.assert_series_equal(abs(s), s)
    assert (~column([0, TOP - 1])).tolist() == [-1, -TOP]


@example(rows=[(2, 127), (10, 38), (0, 0), (0, TOP), (1, TOP), (TOP, 1)])
@example(rows=[(2, 128)])
@example(rows=[(10, 39)])
@given(
    rows=st.lists(st.tuples(cells, st.one_of(st.none(), st.integers(0, 140), amounts)), max_size=9)
)
def test_powers_are_exact_or_refused(rows):
    """Powers are Python's up to the range; 1 ** NA and NA ** 0 are 1, as for pandas."""

    def power(a, b):
        if b == 0 or a == 1:
            return 1
        if a is None or b is None:
            return None
        return a ** min(b, 130) if a > 1 else a

    first, second = [a for a, _ in rows], [b for _, b in rows]
    wanted = [power(a, b) for a, b in rows]
    row = first_outside(wanted)
    if row is not None:
        with pytest.raises(OverflowError, match=f"in row {row} does not fit"):
            column(first) ** column(second)
    else:
        result = column(first) ** column(second)
        assert result.tolist() == [GAP if v is None else v for v in wanted]


def test_powers_with_numbers():
    """(-1) ** s knows odd from even, however large; a negative power is refused."""
    assert (3 ** column([0, 1, 80])).tolist() == [1, 3, 3**80]
    assert (column([0, 1, 7]) ** 2).tolist() == [0, 1, 49]
    assert ((-1) ** column([0, 2**127])).tolist() == [1, 1]
    with pytest.raises(OverflowError, match=r"-1 \*\* \d+ in row 0"):
        _ = (-1) ** column([2**127 + 1])
    with pytest.raises(OverflowError, match=r"-3 \*\* \d+ in row 0"):
        _ = (-3) ** column([2**127])
    with pytest.raises(
        ValueError, match="exponent -1 in row 0 is negative: the power is not an integer"
    ):
        _ = column([2]) ** -1
    assert (column([None, None]) ** -1).tolist() == [GAP, GAP]
    assert (column([2, 3]) ** pd.Series([1, None], dtype="Int64")).tolist() == [2, GAP]


@example(rows=[(5, 2**64 - 1), (2**55 + 1, 9)])  # a divisor that no other integer dtype holds
@example(rows=[(26682, 319575898560906960364954638154669271005)])  # its float is not exact
@example(rows=[(2**53 + 1, 2**128 - 2)])  # nearly halfway between two floats
@given(rows=st.lists(st.tuples(cells, cells), max_size=12))
def test_true_division_gives_the_nearest_float64(rows):
    """True division is Python's own, rounded once; by zero it is infinite or NaN."""
    first, second = [a for a, _ in rows], [b for _, b in rows]
    result = column(first) / column(second)
    assert result.dtype == np.float64
    for a, b, quotient in zip(first, second, result, strict=True):
        if a is None or b is None or (a == 0 and b == 0):
            assert math.isnan(quotient)
        else:
            assert quotient == (a / b if b else math.inf)


@given(values=st.lists(cells, max_size=12), number=signed.filter(lambda n: 0 < abs(n) < 2**900))
def test_true_division_by_a_number(values, number):
    """Dividing by an int of any size, or an int by the column, gives float64."""
    for got, v in zip(column(values) / number, values, strict=True):
        assert math.isnan(got) if v is None else got == pytest.approx(v / number, rel=1e-15)
    for got, v in zip(number / column(values), values, strict=True):
        if v:
            assert got == pytest.approx(number / v, rel=1e-15)


def test_near_and_half_come_out_even():
    """Whole NEAR divide to whole floats, although 10^24 is no float64."""
    near = column([k * 10**24 for k in range(1, 2000)])
    assert (near / 10**24).tolist() == [float(k) for k in range(1, 2000)]
    assert (near / 0.5).tolist()[:2] == [2e24, 4e24]
    assert (column([3, None]) / pd.Series([2.0, 1.0])).tolist()[0] == 1.5


@pytest.mark.parametrize("other", [True, 1j], ids=repr)
def test_division_is_by_numbers(other):
    """Bools and complex numbers divide nothing."""
    with pytest.raises(TypeError, match=r"u128 and (bool|complex) cannot be divided: use numbers"):
        _ = column([1, 2]) / other


def test_divmod_gives_both():
    """Quotients and remainders come together, on either side."""
    quotient, remainder = divmod(column([10**30 + 7, None]), 10**24)
    assert quotient.tolist() == [10**6, GAP]
    assert remainder.tolist() == [7, GAP]
    quotient, remainder = divmod(7, column([2, 4]))
    assert (quotient.tolist(), remainder.tolist()) == ([3, 1], [1, 3])


@pytest.mark.parametrize("gap", [None, pd.NA, np.nan, pd.NaT], ids=str)
def test_gaps_pass_through(gap):
    """Whatever stands for missing makes the result missing."""
    assert (column([1, 2]) + gap).tolist() == [GAP, GAP]
    assert (column([1, 2]) / gap).isna().tolist() == [True, True]
    assert (column([1]) == gap).tolist() == [GAP]


@pytest.mark.parametrize("op", [*WHOLE, operator.sub, operator.pow], ids=lambda op: op.__name__)
def test_what_is_no_integer_is_refused(op):
    """Arithmetic with floats and bools is refused, saying what to write."""
    for other in (1.5, 2.0, True, Decimal(1), Fraction(1, 2), np.float64(1)):
        with pytest.raises(TypeError, match=r"is not exact; to round, write astype\('float64'\)"):
            op(column([1, 2]), other)


_IN_PLACE = "u128 holds integers of the smallest unit: write {} in place of {}"
_YOCTO = "ledgerkit.units.yocto('1 NEAR')"


@pytest.mark.parametrize(
    "op",
    [*WHOLE, *COMPARISONS, operator.sub, operator.pow, operator.truediv],
    ids=lambda op: op.__name__,
)
def test_an_amount_in_text_is_refused_with_what_to_write(op):
    """A column and an amount in text neither compute nor compare: the error has the call."""
    for other in ("1 NEAR", ["1 NEAR", 5], pd.Series([5, "1 NEAR"])):
        with pytest.raises(TypeError) as caught:
            op(column([1, 2]), other)
        assert str(caught.value) == _IN_PLACE.format(_YOCTO, "'1 NEAR'")
    assert (column([10**24 + 1]) - ledgerkit.units.yocto("1 NEAR")).tolist() == [1]


def test_an_amount_in_text_is_refused_on_either_side_and_by_each_method():
    """Swapped operands, methods, filters and queries say the same; other texts get an example."""
    frame = pd.DataFrame({"balance": column([1, 2])})
    balance: Any = frame["balance"]
    for compute in (
        lambda: "1 NEAR" - balance,
        lambda: balance <= "1 NEAR",
        lambda: balance.sub("1 NEAR"),
        lambda: balance.between("1 NEAR", "2 NEAR"),
        lambda: balance.clip("1 NEAR"),
        lambda: balance.searchsorted("1 NEAR"),
        lambda: frame[balance > "1 NEAR"],
        lambda: frame.query("balance > '1 NEAR'"),
    ):
        with pytest.raises(TypeError) as caught:
            compute()
        assert str(caught.value) == _IN_PLACE.format(_YOCTO, "'1 NEAR'")
    for text in ("5", "80 GOLD", ""):
        with pytest.raises(TypeError) as caught:
            balance + text
        example = f"an integer, such as {_YOCTO},"
        assert str(caught.value) == _IN_PLACE.format(example, repr(text))
    with pytest.raises(ValueError, match=r"not a string of decimal digits: write ledgerkit\.units"):
        column([1, None]).fillna("1 NEAR")


def test_lengths_must_match():
    """Arrays of another length are refused."""
    with pytest.raises(ValueError, match="Lengths must match: 2 rows and 3"):
        column([1, 2]).array + np.array([1, 2, 3])
    assert (column([1, 2]).array + (k for k in (1, 2))).tolist() == [2, 4]
    with pytest.raises(ValueError, match="Lengths must match"):
        _ = column([1, 2]).array == column([1]).array
    with pytest.raises(NotImplementedError, match="one dimension"):
        column([1, 2]).array + np.ones((2, 2), dtype=int)


def test_the_error_shows_both_sides_and_the_way_out():
    """An overflow names both operands, the row, and what counts on."""
    with pytest.raises(OverflowError) as caught:
        _ = column([1, TOP]) + column([1, 5])
    assert str(caught.value) == (
        "340282366920938463463374607431768211455 + 5 in row 1 does not fit in u128; "
        "astype(object) uses Python ints, which have no limit"
    )


# Comparison -----------------------------------------------------------------------------


def compared(result, wanted):
    """Check a boolean column with gaps."""
    assert result.dtype == "boolean"
    assert result.tolist() == [GAP if v is None else v for v in wanted]


@given(op=st.sampled_from(COMPARISONS), rows=pairs)
def test_columns_compare_like_ints(op, rows):
    """Two columns compare row by row; with a gap it is unknown."""
    first, second = [a for a, _ in rows], [b for _, b in rows]
    compared(op(column(first), column(second)), expected(op, first, second))


@given(
    op=st.sampled_from(COMPARISONS),
    values=st.lists(cells, max_size=12),
    number=st.one_of(signed, floats, st.fractions()),
)
def test_columns_compare_exactly_with_any_number(op, values, number):
    """Ints of any size and sign, floats, infinities and fractions compare exactly."""
    compared(op(column(values), number), expected(op, values, [number] * len(values)))


@given(
    op=st.sampled_from(COMPARISONS),
    rows=st.lists(st.tuples(cells, st.one_of(signed, floats)), max_size=12),
)
def test_columns_compare_with_mixed_arrays(op, rows):
    """An array of ints and floats compares row by row, as Python does."""
    first, second = [a for a, _ in rows], [b for _, b in rows]
    others = np.fromiter(second, dtype=object, count=len(second))
    compared(op(column(first), others), expected(op, first, second))


def test_other_kinds_compare_as_in_python():
    """Texts are unequal and have no order; Decimal and bool are numbers."""
    s = column([1, 5, None])
    compared(s == "5", [False, False, None])
    compared(s != pd.Series(["1", "x", "y"]), [True, True, None])
    compared(s > Decimal("4.5"), [False, True, None])
    compared(s == True, [True, False, None])  # noqa: E712 - the comparison is what is tested
    compared(s < np.float32(1.5), [True, False, None])
    compared(s >= np.array(5), [False, True, None])
    with pytest.raises(TypeError, match="not supported between"):
        _ = s < 1j


# numpy's functions ----------------------------------------------------------------------


def test_functions_of_numpy():
    """Those that are operators compute exactly, logarithms and roots give float64."""
    s = column([100, None, 2**100])
    assert np.add(s, 1).tolist() == [101, GAP, 2**100 + 1]
    assert np.subtract(0, s).tolist() == [-100, GAP, -(2**100)]
    assert np.log2(s).tolist()[2] == 100.0
    assert np.sqrt(s.array).dtype == np.float64
    assert np.maximum(column([1, 2**70]), 5).tolist() == [5, 2**70]
    assert np.add.reduce(s.array[[0, 2]]) == 2**100 + 100
    assert np.add.reduce(s.array) is GAP
    assert np.sum(s) == 2**100 + 100
    assert (np.array([1, 2, 3]) + s.array).dtype == "u128"


def test_scalars_of_numpy_on_the_left():
    """Integers of numpy leave the operation to the column."""
    assert (np.uint64(2**64 - 1) * column([2**60])).tolist() == [(2**64 - 1) * 2**60]
    assert (np.int64(-1) - column([1])).tolist() == [-2]
    assert (column([1]).array + np.array(5)).tolist() == [6]
