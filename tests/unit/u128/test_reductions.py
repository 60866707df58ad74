"""Reductions, running results, groups and order: Python's own, exact or refused."""

from __future__ import annotations

import itertools
import math
import operator
import statistics

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerkit.u128.array import U128Array

TOP = 2**128 - 1
GAP = pd.NA
EDGES = [0, 1, 2, 2**64 - 1, 2**64, 2**64 + 1, 2**127 - 1, 2**127, 2**127 + 1, TOP]

amounts = st.one_of(st.sampled_from(EDGES), st.integers(0, TOP), st.integers(0, 5))
cells = st.one_of(amounts, st.none())
columns = st.lists(cells, max_size=14)
grouped = st.lists(st.tuples(st.sampled_from("abc"), cells), min_size=1, max_size=14)


def column(values):
    return pd.Series(values, dtype="u128")


def known(values):
    """Leave the gaps out."""
    return [v for v in values if v is not None]


def cell(value):
    """Write a missing value as pandas does."""
    return GAP if value is None else value


# One value ------------------------------------------------------------------------------


@given(values=columns)
def test_sums_and_extremes_are_exact(values):
    """Sum, product, min and max are Python ints; a sum past the range is refused, not wrapped."""
    s, held = column(values), known(values)
    for name, exact in (("sum", sum(held)), ("prod", math.prod(held))):
        if exact > TOP:
            with pytest.raises(OverflowError, match="does not fit in u128"):
                getattr(s, name)()
        else:
            assert getattr(s, name)() == exact
            assert type(getattr(s, name)()) is int
    assert s.min() == min(held) if held else s.min() is GAP
    assert s.max() == max(held) if held else s.max() is GAP
    assert s.count() == len(held)


@given(values=columns.filter(known))
def test_means_are_float64(values):
    """The mean is rounded once; the median and quantiles are of the rounded values."""
    s, held = column(values), known(values)
    assert s.mean() == sum(held) / len(held)
    floats = pd.Series([float(v) for v in held])
    for name in ("median", "std", "var", "sem", "skew", "kurt"):
        wanted = getattr(floats, name)()
        assert getattr(s, name)() == pytest.approx(wanted, rel=1e-12, nan_ok=True)
    pd.testing.assert_series_equal(s.quantile([0, 0.25, 1]), floats.quantile([0, 0.25, 1]))
    assert s.quantile(0.5) == floats.quantile(0.5)
    assert s.std(ddof=0) == pytest.approx(floats.std(ddof=0), rel=1e-12)


def test_the_mean_needs_no_room_in_the_range():
    """The mean of values whose sum is past the range is still exact before rounding."""
    assert column([TOP, TOP, TOP - 2]).mean() == float(2**128)
    assert column([1, 2, 3]).mean() == 2.0
    assert column([2**127, 2**127]).median() == 2.0**127


def test_reductions_of_nothing():
    """Nothing sums to 0 and multiplies to 1, and has no extreme and no mean."""
    s = column([None])
    assert (s.sum(), s.prod(), s.count(), s.any(), s.all()) == (0, 1, 0, False, True)
    assert s.min() is s.max() is s.sum(min_count=1) is GAP
    assert math.isnan(s.mean())
    assert math.isnan(s.median())
    assert math.isnan(s.quantile(0.5))


def test_gaps_that_are_not_skipped():
    """skipna=False makes a result missing, unless it is certain without the gap."""
    s = column([None, 0, 3])
    assert s.sum(skipna=False) is GAP
    assert s.min(skipna=False) is GAP
    assert math.isnan(s.mean(skipna=False))
    assert s.any(skipna=False) is True
    assert s.all(skipna=False) is False
    assert column([None, 3]).all(skipna=False) is GAP


def test_frames_reduce_each_column():
    """A frame's sums keep the dtype, beside other columns they are Python ints."""
    frame = pd.DataFrame({"a": column([2**127, 5]), "b": column([1, None])})
    assert frame.sum().dtype == "u128"
    assert frame.sum().tolist() == [2**127 + 5, 1]
    assert frame.assign(c=[-1, -2]).sum().tolist() == [2**127 + 5, 1, -3]
    assert frame.mean().dtype == np.float64
    assert frame.max().tolist() == [2**127, 1]
    assert frame.any().tolist() == [True, True]


def test_rows_of_frames_reduce_too():
    """Across columns of amounts the sum is exact, and refused past the range."""
    frame = pd.DataFrame({"a": column([2**127, None]), "b": column([5, 7])})
    assert frame.sum(axis=1).dtype == "u128"
    assert frame.sum(axis=1).tolist() == [2**127 + 5, 7]
    assert frame.max(axis=1).tolist() == [2**127, 7]
    with pytest.raises(OverflowError):
        frame.assign(c=frame["a"]).sum(axis=1)


def test_unknown_reductions_are_refused():
    """What is no reduction of numbers is named."""
    with pytest.raises(TypeError, match="u128 does not support operation 'mad'"):
        column([1]).array._reduce("mad")


def test_describe_is_of_floats():
    """A description is of Float64, rounded, as for every nullable dtype."""
    found = column([1, None, 2, 2**100]).describe()
    assert found.dtype == "Float64"
    assert found["count"] == 3
    assert found["min"] == 1.0
    assert found["50%"] == 2.0
    assert found["max"] == 2.0**100
    assert found["mean"] == (3 + 2**100) / 3


# Running results ------------------------------------------------------------------------

RUNNING = {"cumsum": operator.add, "cumprod": operator.mul, "cummin": min, "cummax": max}


def run(values, step):
    """Accumulate with Python ints, passing over gaps."""
    steps = iter(itertools.accumulate(known(values), step))
    return [None if v is None else next(steps) for v in values]


@pytest.mark.parametrize("name", RUNNING)
@given(values=columns)
def test_running_results_are_exact_or_refused(name, values):
    """Each running result is Python's, or the first row past the range is named."""
    wanted = run(values, RUNNING[name])
    row = next((row for row, v in enumerate(wanted) if v is not None and v > TOP), None)
    if row is not None:
        with pytest.raises(OverflowError, match=f"in row {row} does not fit"):
            getattr(column(values), name)()
        return
    result = getattr(column(values), name)()
    assert result.dtype == "u128"
    assert result.tolist() == [cell(v) for v in wanted]


def test_running_results_stop_at_a_gap_when_told():
    """skipna=False leaves nothing known after the first gap, however large the rest."""
    for name in RUNNING:
        result = getattr(column([3, 2, None, TOP, TOP]), name)(skipna=False)
        assert result.isna().tolist() == [False, False, True, True, True]


# Groups ---------------------------------------------------------------------------------


def frame_of(rows):
    """Hold keys and amounts in a frame."""
    return pd.DataFrame({"k": [k for k, _ in rows], "v": column([v for _, v in rows])})


def by_key(rows):
    """Collect the known amounts of each key, in the keys' order."""
    return {k: known(v for key, v in rows if key == k) for k in sorted({k for k, _ in rows})}


def check_groups(rows):
    """Compare each exact aggregation with Python's."""
    groups, held = frame_of(rows).groupby("k")["v"], by_key(rows)
    exact = {"min": lambda g: min(g, default=None), "max": lambda g: max(g, default=None)}
    exact |= {"first": lambda g: g[0] if g else None, "last": lambda g: g[-1] if g else None}
    exact |= {"sum": sum, "prod": math.prod}
    for name, reduced in exact.items():
        wanted = {k: reduced(g) for k, g in held.items()}
        if any(v is not None and v > TOP for v in wanted.values()):
            with pytest.raises(OverflowError, match="does not fit in u128"):
                getattr(groups, name)()
            continue
        result = getattr(groups, name)()
        assert result.dtype == "u128"
        assert dict(result.items()) == {k: cell(v) for k, v in wanted.items()}


@given(rows=grouped)
def test_groups_are_exact_or_refused(rows):
    """Sums, products, extremes, first and last of groups are Python's, or refused."""
    check_groups(rows)


@pytest.mark.parametrize("name", RUNNING)
@settings(max_examples=60)
@given(rows=grouped)
def test_running_results_of_groups(name, rows):
    """Each group runs along by itself; a sum past the range names its row."""
    wanted = [None] * len(rows)
    for k in by_key(rows):
        at = [row for row, (key, _) in enumerate(rows) if key == k]
        for row, v in zip(at, run([rows[row][1] for row in at], RUNNING[name]), strict=True):
            wanted[row] = v
    groups = frame_of(rows).groupby("k")["v"]
    over = [row for row, v in enumerate(wanted) if v is not None and v > TOP]
    if over:
        with pytest.raises(OverflowError, match=f"in row ({'|'.join(map(str, over))}) does not"):
            getattr(groups, name)()
    else:
        assert getattr(groups, name)().tolist() == [cell(v) for v in wanted]


def test_a_group_past_the_range_names_the_row():
    """The row with which a group's sum leaves the range is named."""
    frame = pd.DataFrame({"k": list("abab"), "v": column([TOP, TOP, 0, 1])})
    with pytest.raises(OverflowError, match="the group's sum in row 3 does not fit in u128"):
        frame.groupby("k").sum()
    with pytest.raises(OverflowError, match="the group's sum in row 3 does not fit in u128"):
        frame.groupby("k").cumsum()


def test_groups_of_floats_and_bools():
    """Means, deviations and quantiles of groups are float64; any and all are boolean."""
    frame = pd.DataFrame({"k": list("aabb"), "v": column([10**30, 3 * 10**30, None, 0])})
    groups = frame.groupby("k")["v"]
    assert groups.mean().dtype == np.float64
    assert groups.mean().tolist() == [2e30, 0.0]
    assert groups.median().tolist() == [2e30, 0.0]
    assert groups.quantile(0.25).tolist() == [1.5e30, 0.0]
    assert groups.std().iloc[0] == pytest.approx(2**0.5 * 1e30)
    assert groups.any().tolist() == [True, False]
    assert groups.all().tolist() == [True, False]
    assert groups.rank().tolist()[:2] == [1.0, 2.0]
    assert groups.idxmax().tolist() == [1, 3]
    assert groups.count().tolist() == [2, 1]
    assert groups.nunique().tolist() == [2, 1]
    assert groups.diff().tolist() == [GAP, 2 * 10**30, GAP, GAP]
    assert groups.ffill().tolist() == [10**30, 3 * 10**30, GAP, 0]
    assert groups.transform("sum").tolist() == [4 * 10**30] * 2 + [0, 0]
    assert groups.agg(lambda x: x.max() - x.min()).tolist() == [2 * 10**30, 0]
    assert groups.nlargest(1).tolist() == [3 * 10**30, 0]
    assert groups.describe()["max"].tolist() == [3e30, 0.0]


@pytest.mark.parametrize("values", [[1, None, 3, None, 2], [None, None], [], [1, 2, 3]])
def test_too_few_values_have_no_result(values):
    """min_count and skipna mean for a column and a row what they mean for Int64 of pandas."""
    options = itertools.product(("sum", "prod"), [-1, 0, 1, 2, 3, 4], [True, False])
    for name, min_count, skipna in options:
        results = []
        for dtype in ("u128", "Int64"):
            frame = pd.DataFrame({"a": values, "b": [1] * len(values)}, dtype=dtype)
            rows = getattr(frame, name)(axis=1, min_count=min_count, skipna=skipna)
            alone = getattr(frame["a"], name)(min_count=min_count, skipna=skipna)
            results.append([str(value) for value in (alone, *rows)])
        assert results[0] == results[1], (name, min_count, skipna)


KEYS = ["a", "a", "b", "b", "c", "c", None, "d"]


def grouped_by(name, dtype, **options):
    """Reduce groups by key, by category and by day, with the options of pandas."""
    categories = pd.Series(pd.Categorical(KEYS, categories=list("abcde")))
    days = pd.to_datetime(["2024-01-01"] * 4 + ["2024-01-03"] * 4)
    s = pd.Series([1, None, None, None, 4, 5, 7, 2], dtype=dtype)
    groups = [s.groupby(KEYS, dropna=False), s.groupby(categories, observed=False)]
    by_group = [getattr(group, name)(**options).tolist() for group in groups]
    by_group.append(s.groupby(KEYS).transform(name, **options).tolist())
    by_day = getattr(s.set_axis(days).resample("D"), name)(min_count=options["min_count"])
    return repr([*by_group, by_day.tolist()])


@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "first", "last"])
def test_groups_with_too_few_values_have_no_result(name):
    """min_count and skipna mean for each group what they mean for Int64 of pandas."""
    for min_count, skipna in itertools.product([-1, 0, 1, 2, 3], [True, False]):
        options = {"min_count": min_count, "skipna": skipna}
        assert grouped_by(name, "u128", **options) == grouped_by(name, "Int64", **options), options


def test_rows_without_a_key_are_left_out():
    """A missing key joins no group, and has no running result."""
    frame = pd.DataFrame({"k": ["a", None, "a"], "v": column([1, TOP, 2])})
    assert frame.groupby("k")["v"].sum().to_dict() == {"a": 3}
    assert frame.groupby("k")["v"].cumsum().tolist() == [1, GAP, 3]
    assert frame.groupby("k")["v"].cumprod().tolist() == [1, GAP, 2]
    assert frame.groupby("k")["v"].prod().to_dict() == {"a": 2}


@given(rows=st.lists(cells, min_size=1, max_size=14))
def test_amounts_are_keys(rows):
    """Amounts group, sort and count as the ints they are."""
    frame = pd.DataFrame({"v": column(rows), "n": 1})
    found = frame.groupby("v")["n"].sum()
    assert found.index.tolist() == sorted(set(known(rows)))
    assert found.tolist() == [rows.count(v) for v in sorted(set(known(rows)))]
    assert len(frame.groupby("v", dropna=False)) == len(set(rows))


# Order ----------------------------------------------------------------------------------


@given(values=columns)
def test_sorting_is_stable_and_exact(values):
    """Rows sort as ints do, equal ones as they came, gaps first or last."""
    s = column(values)
    rows = [row for row, v in enumerate(values) if v is not None]
    gaps = [row for row, v in enumerate(values) if v is None]
    up = sorted(rows, key=values.__getitem__)
    down = sorted(rows, key=lambda row: -values[row])
    assert s.sort_values(kind="stable").index.tolist() == up + gaps
    assert s.sort_values(na_position="first").index.tolist() == gaps + up
    assert s.sort_values(ascending=False).index.tolist() == down + gaps
    assert s.is_monotonic_increasing is (not gaps and known(values) == sorted(known(values)))


@given(
    values=columns,
    method=st.sampled_from(["average", "min", "max", "first", "dense"]),
    ascending=st.booleans(),
    keep=st.sampled_from(["keep", "top", "bottom"]),
)
def test_ranks(values, method, ascending, keep):
    """Ranks are those of the places of the ints among all, as float64."""
    places = {v: float(place) for place, v in enumerate(sorted(set(known(values))))}
    reference = pd.Series([places.get(v, math.nan) for v in values], dtype="float64")
    options = {"method": method, "ascending": ascending, "na_option": keep}
    pd.testing.assert_series_equal(column(values).rank(**options), reference.rank(**options))


@given(values=columns)
def test_distinct_values(values):
    """unique, factorize, duplicated, value_counts and mode know each int from its neighbour."""
    s = column(values)
    seen = list(dict.fromkeys(values))
    assert s.unique().tolist() == [cell(v) for v in seen]
    codes, uniques = pd.factorize(s.array)
    assert uniques.tolist() == list(dict.fromkeys(known(values)))
    assert [uniques[code] if code >= 0 else None for code in codes] == values
    assert s.duplicated().tolist() == [v in values[:row] for row, v in enumerate(values)]
    counts = s.value_counts(dropna=False)
    assert {k: counts.iloc[row] for row, k in enumerate(counts.index)} == {
        cell(v): values.count(v) for v in seen
    }
    modes = sorted(statistics.multimode(known(values)))
    assert s.mode().tolist() == modes
    assert s.nunique() == len(set(known(values)))


@given(values=columns, wanted=st.lists(st.one_of(cells, st.integers(-5, 5), st.just(2**200))))
def test_isin(values, wanted):
    """A value is among others if it is one of them; a gap is, where those have a gap."""
    assert column(values).isin(wanted).tolist() == [v in wanted for v in values]


def test_isin_takes_whole_floats_and_no_texts():
    """5.0 is 5; "5" and 5.5 are not."""
    s = column([5, 2**64])
    assert s.isin([5.0, 2.0**64]).tolist() == [True, True]
    assert s.isin(["5", 5.5, math.inf, math.nan]).tolist() == [False, False]
    assert s.isin(column([2**64])).tolist() == [False, True]


def test_values_of_related_words_stay_apart():
    """Two values whose words a hash could mix to the same one are still two values."""
    low = np.array([0, 0x9E3779B97F4A7C15], dtype=np.uint64)
    array = U128Array(np.array([0, 1], dtype=np.uint64), low)
    assert array.factorize()[0].tolist() == [0, 1]
    assert array.isin([2**64 + 0x9E3779B97F4A7C15]).tolist() == [False, True]
    assert pd.Series(array).nunique() == 2


@given(
    values=st.lists(amounts, max_size=10).map(sorted),
    wanted=st.lists(amounts, max_size=5),
    side=st.sampled_from(["left", "right"]),
)
def test_searchsorted(values, wanted, side):
    """Places among sorted values are those of Python's ints, for columns, lists and numbers."""
    reference = np.array(values, dtype=object).searchsorted(np.array(wanted, dtype=object), side)
    held = column(values).array
    assert held.searchsorted(column(wanted).array, side).tolist() == reference.tolist()
    assert held.searchsorted(wanted, side).tolist() == reference.tolist()
    assert [held.searchsorted(v, side) for v in wanted] == reference.tolist()


def test_searchsorted_takes_any_number_and_no_gaps():
    """Numbers outside the range belong at the ends; gaps have no place."""
    held = column([1, 5]).array
    assert held.searchsorted([-1, 2.5, 2**200]).tolist() == [0, 1, 2]
    assert column([5, 1]).array.searchsorted(5, sorter=[1, 0]) == 1
    with pytest.raises(ValueError, match="drop the missing ones first"):
        column([1, None]).array.searchsorted(1)


@given(values=columns, n=st.integers(0, 5), keep=st.sampled_from(["first", "last", "all"]))
def test_nlargest_and_nsmallest(values, n, keep):
    """The largest and smallest rows are those of the values' places among all."""
    places = {v: float(place) for place, v in enumerate(sorted(set(known(values))))}
    reference = pd.Series([places.get(v, math.nan) for v in values], dtype="float64")
    s = column(values)
    for name in ("nlargest", "nsmallest"):
        rows = getattr(reference, name)(n, keep=keep).index
        assert getattr(s, name)(n, keep=keep).index.tolist() == rows.tolist()
        assert getattr(s, name)(n, keep=keep).tolist() == s.loc[rows].tolist()


def test_nlargest_of_frames_and_of_other_dtypes():
    """A frame's rows are chosen by amounts too; other dtypes go pandas' own way."""
    frame = pd.DataFrame({"v": column([3, 2**100, 2**100 + 1]), "w": [1, 2, 3]})
    frame.index = list("aab")
    assert frame.nlargest(2, "v")["w"].tolist() == [3, 2]
    assert frame.nsmallest(1, ["v", "w"])["w"].tolist() == [1]
    assert frame["w"].nlargest(1).to_dict() == {"b": 3}
