"""What pandas and numpy would compute with floats: exact, refused with a way out, or named."""

from __future__ import annotations

import operator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerkit as lk

TOP = 2**128 - 1
GAP = pd.NA
BOTH = pytest.mark.parametrize("dtype", ["u128", "i129"])
LARGE = [3 * 10**38, 1, 10**38, 10**18, 2 * 10**38, 14, 3, 14]

values = st.lists(st.one_of(st.integers(0, 2**96), st.integers(0, 9), st.none()), max_size=12)


def least(dtype):
    """Give the sign of a value that only i129 holds."""
    return -1 if dtype == "i129" else 1


# Windows --------------------------------------------------------------------------------


@BOTH
def test_windows_are_refused(dtype):
    """Windows, which pandas adds up as floats, name what is exact and how to round."""
    column = pd.Series(LARGE, dtype=dtype)
    frame = pd.DataFrame({"k": 1, "v": column})
    for windows in (
        column.rolling(3),
        column.rolling(3, center=True, min_periods=1),
        column.set_axis(pd.date_range("2026", periods=8)).rolling("2D"),
        column.expanding(),
        column.ewm(2),
        frame.rolling(3),
        frame[["v"]].expanding(),
        frame.groupby("k")["v"].rolling(3),
        frame.groupby("k").rolling(3)["v"],
        frame.groupby("k")["v"].expanding(),
        frame.groupby("k")["v"].ewm(2),
    ):
        for name in ("sum", "mean", "std", "min", "max", "median"):
            if hasattr(windows, name):
                with pytest.raises(FloatingPointError, match=f"windows of {dtype}") as caught:
                    getattr(windows, name)()
                assert "cumsum()" in str(caught.value)
                assert "astype('float64')" in str(caught.value)


@given(values)
def test_what_is_exact_in_place_of_windows(some):
    """Each window as a column, and running results, are what Python's integers give."""
    for dtype in ("u128", "i129"):
        signed = [None if value is None else value * least(dtype) for value in some]
        column = pd.Series(signed, dtype=dtype)
        known = [0 if value is None else value for value in signed]
        sums = [sum(known[max(0, end - 2) : end + 1]) for end in range(len(known))]
        assert [window.sum() for window in column.rolling(3)] == sums
        totals = [sum(known[: end + 1]) for end in range(len(known))]
        assert column.fillna(0).cumsum().tolist() == totals
        floats = pd.Series(known, dtype="float64").where(column.notna())
        assert column.rolling(3).count().equals(floats.rolling(3).count())


@BOTH
def test_a_window_of_missing_values_is_missing(dtype):
    """Where no value is known nothing can be rounded."""
    assert pd.Series([None, None], dtype=dtype).rolling(1).sum().isna().all()


@BOTH
def test_floats_on_request(dtype):
    """A caller who asks for floats gets the nearest ones, as plots and statistics do."""
    column = pd.Series([10**24 + 1, None], dtype=dtype)
    for floats in (
        column.to_numpy("float64", na_value=np.nan),
        column.to_numpy(np.float64, na_value=np.nan),
        column.array.to_numpy(np.float64),
        column.astype("float64").to_numpy(),
        np.asarray(column, dtype=float),
    ):
        assert floats[0] == 1e24
        assert np.isnan(floats[1])


# Rows and groups --------------------------------------------------------------------------


@BOTH
def test_rows_of_the_largest_and_smallest(dtype):
    """Frames find the rows of extremes by all digits, beside columns of other dtypes."""
    sign = least(dtype)
    frame = pd.DataFrame(
        {
            "v": pd.Series([10**24 * sign, (10**24 + 1) * sign, None], dtype=dtype),
            "w": pd.Series([3, 2, 1], dtype="u128"),
            "n": [1.0, 5.0, 2.0],
        }
    )
    assert frame.idxmax().to_dict() == {"v": int(sign > 0), "w": 0, "n": 1}
    assert frame.idxmin().to_dict() == {"v": int(sign < 0), "w": 2, "n": 0}
    with pytest.raises(ValueError, match="all NA"):
        frame.iloc[2:].idxmax()


@BOTH
def test_open_high_low_and_close(dtype):
    """The four of each group, or of each day, are exact and keep the dtype."""
    sign = least(dtype)
    column = pd.Series([TOP, None, 5 * sign, 2**64, 2**64 + 1], dtype=dtype)
    by_group = column.groupby(list("aaabb")).ohlc()
    extremes = [max(TOP, 5 * sign), min(TOP, 5 * sign)]
    assert by_group.to_numpy().tolist() == [
        [TOP, *extremes, 5 * sign],
        [2**64, 2**64 + 1, 2**64, 2**64 + 1],
    ]
    assert set(by_group.dtypes) == {column.dtype}
    groups = column.groupby(list("aaabb"))
    assert groups.idxmin().tolist() == [2, 3]
    assert groups.idxmax().tolist() == [0, 4]
    assert groups.min().tolist() == [5 * sign, 2**64]
    assert by_group.index.tolist() == ["a", "b"]
    days = column.set_axis(pd.date_range("2026", periods=5, freq="8h")).resample("1D").ohlc()
    assert days.columns.tolist() == ["open", "high", "low", "close"]
    assert days["close"].tolist() == [5 * sign, 2**64 + 1]


# Functions of numpy -------------------------------------------------------------------------


@BOTH
def test_functions_of_floats_give_floats(dtype):
    """What numpy computes with floats for any integer is the same as for Int64."""
    column, same = (pd.Series([4, 9, None], dtype=name) for name in (dtype, "Int64"))
    for function in (np.rint, np.sin, np.sqrt, np.cbrt, np.fabs, np.degrees, np.log10):
        assert function(column)[:2].tolist() == function(same)[:2].tolist(), function
        assert np.isnan(function(column)[2])
    assert np.float_power(column, 0.5)[:2].tolist() == [2.0, 3.0]
    assert np.float_power(2, column)[:2].tolist() == [16.0, 512.0]
    assert np.hypot(column, column)[:1].tolist() == [np.hypot(4, 4)]
    assert np.multiply(column, 2, dtype=float)[:2].tolist() == [8.0, 18.0]
    assert np.multiply(column, 2).dtype == dtype


@BOTH
def test_questions_about_floats(dtype):
    """No amount is infinite or NaN; whether a missing one is, is unknown."""
    column = pd.Series([TOP, least(dtype), None], dtype=dtype)
    for function, answers in {
        np.isnan: [False, False, GAP],
        np.isinf: [False, False, GAP],
        np.isfinite: [True, True, GAP],
        np.signbit: [False, dtype == "i129", GAP],
    }.items():
        assert function(column).dtype == "boolean"
        assert function(column).tolist() == answers, function


# Decimals and rows of documents -------------------------------------------------------------


@BOTH
def test_a_quotient_of_decimals_is_refused(dtype):
    """Division by a Decimal names the exact way to Decimals."""
    column = pd.Series([5 * 10**24 + 5], dtype=dtype)
    unit = Decimal(10**24)
    for first, second in (
        (column, unit),
        (unit, column),
        (column, pd.Series([unit], dtype=object)),
        (column, [unit]),
    ):
        with pytest.raises(TypeError, match=r"to_units\(…, 24, as_=.decimal.\)"):
            operator.truediv(first, second)
    assert lk.to_units(column, 24, as_="decimal").tolist() == [
        Decimal("5.000000000000000000000005")
    ]
    assert (column / 10**24)[0] == 5.0


@BOTH
def test_rows_with_a_missing_amount(dtype):
    """Documents as rows, of which pandas makes floats first, name the way that works."""
    rows = [{"a": 5}, {"a": None}]
    with pytest.raises(TypeError, match=r"5\.0 in row 0 is a float.*dtype=object, then use astype"):
        pd.DataFrame(rows, dtype=dtype)
    assert pd.DataFrame(rows, dtype=object).astype(dtype)["a"].tolist() == [5, GAP]


# What pandas has no hook for ------------------------------------------------------------------


def test_classes_of_amounts():
    """Where `cut` compares floats, `searchsorted` finds the class of each amount exactly."""
    column = pd.Series([1, 10**24, 10**24 + 1, 10**26], dtype="u128")
    edges = pd.Series([0, 10**24, 10**26], dtype="u128")
    classes = np.array(["shrimp", "whale"])[edges.searchsorted(column) - 1]
    assert classes.tolist() == ["shrimp", "shrimp", "whale", "whale"]


def test_expressions_of_amounts():
    """`eval` and `query` compare amounts with any number; they refuse to compute with others."""
    frame: Any = pd.DataFrame({"v": pd.Series([2, 3], dtype="u128"), "n": [1, 2]})
    assert frame.query("v > 2 and n < v")["n"].tolist() == [2]
    assert frame.eval("v * v").tolist() == [4, 9]
    with pytest.raises(TypeError, match="unsupported operand type"):
        frame.eval("v * n")
    assert frame.assign(n=frame["n"].astype("u128")).eval("v * n").tolist() == [2, 6]


def test_numbers_among_the_columns():
    """Amounts are among the numbers of a frame; only numpy's integers are integers for pandas."""
    frame = pd.DataFrame({"v": pd.Series([1], dtype="u128"), "n": [1], "t": ["a"]})
    assert frame.select_dtypes("number").columns.tolist() == ["v", "n"]
    assert frame.select_dtypes("integer").columns.tolist() == ["n"]
    assert [name for name, dtype in frame.dtypes.items() if dtype == "u128"] == ["v"]


@pytest.mark.parametrize("other", ["u128", "int64", "Int64", "uint64"])
@pytest.mark.parametrize("how", ["inner", "left", "right", "outer"])
def test_keys_of_two_dtypes(other, how):
    """`merge` refuses signed keys beside keys of another dtype, and merges them when converted."""
    signed = pd.DataFrame({"v": pd.Series([2, 1, -(2**80), 2], dtype="i129"), "n": [1, 2, 3, 4]})
    others = pd.DataFrame({"v": pd.Series([3, 2, 2, 1], dtype=other), "m": [1, 2, 3, 4]})
    for left, right in ((signed, others), (others, signed)):
        with pytest.raises(KeyError):
            left.merge(right, on="v", how=how)
        merged, expected = (
            left.astype({"v": kind}).merge(right.astype({"v": kind}), on="v", how=how).fillna(-1)
            for kind in ("i129", object)
        )
        assert merged["v"].dtype == "i129"
        assert merged.to_numpy().tolist() == expected.to_numpy().tolist()


@pytest.mark.parametrize("how", ["right", "outer"])
def test_an_int64_key_beside_larger_amounts(how):
    """`merge` fails where pandas would keep Int64, and holds every digit after a conversion."""
    small = pd.DataFrame({"v": pd.Series([1], dtype="Int64")})
    large = pd.DataFrame({"v": pd.Series([1, 2**100], dtype="u128")})
    with pytest.raises(OverflowError):
        small.merge(large, on="v", how=how)
    merged = small.astype({"v": "u128"}).merge(large, on="v", how=how)
    assert merged["v"].tolist() == [1, 2**100]


@BOTH
def test_means_of_groups_are_rounded_once(dtype):
    """The mean of a group is that of its integers, also where amounts cancel each other out."""
    less = 2**100 * least(dtype)
    column = pd.Series([2**100, less, 3, None, 7, None], dtype=dtype)
    groups = column.groupby(list("aaabbc"))
    means = [(2**100 + less + 3) / 3, 7.0]
    assert groups.mean().tolist()[:2] == means
    assert np.isnan(groups.mean()["c"])
    assert groups.mean(skipna=False).isna().tolist() == [False, True, True]
    assert groups.transform("mean").tolist()[:5] == [means[0]] * 3 + [7.0] * 2


def test_the_newest_row_before_is_found_by_searchsorted():
    """`merge_asof` takes no amounts as keys, but their ranks."""
    first, second = (pd.DataFrame({"h": pd.Series(h, dtype="u128")}) for h in ([1, 5], [0, 4]))
    with pytest.raises(TypeError):
        pd.merge_asof(first, second.assign(z=[1, 2]), on="h")
    assert second["h"].searchsorted(first["h"], side="right").tolist() == [1, 2]


def test_plots_of_floats():
    """What of matplotlib takes numpy's numbers only refuses amounts, and draws their floats."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    column = pd.Series([10**24, 2 * 10**24, 3 * 10**24], dtype="u128")
    for draw in (
        lambda values: pyplot.bar([1, 2, 3], values),
        pyplot.pie,
        lambda values: pyplot.fill_between([1, 2, 3], values),
        lambda values: pyplot.stackplot([1, 2, 3], values),
        pyplot.hist,
        lambda values: values.plot.hist(),
    ):
        with pytest.raises((TypeError, OverflowError)):
            draw(column)
        draw(column.astype("float64"))
        pyplot.close("all")
