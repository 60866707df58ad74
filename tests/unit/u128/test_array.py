"""The column itself: what it takes and refuses, what it becomes, and how pandas handles it."""

from __future__ import annotations

import io
import pickle
from collections import defaultdict
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.u128.array import U128Array, U128Dtype

TOP = 2**128 - 1
GAP = pd.NA
U128: Any = "u128"  # a dtype that the stubs do not know
EDGES = [0, 1, 2**53 + 1, 2**63, 2**64 - 1, 2**64, 2**127, TOP]

cells = st.one_of(st.sampled_from(EDGES), st.integers(0, TOP), st.none())
columns = st.lists(cells, max_size=12)


def column(values, **options):
    return pd.Series(values, dtype=U128, **options)


def cells_of(values):
    """Write missing values as pandas does."""
    return [GAP if v is None else v for v in values]


# In -------------------------------------------------------------------------------------


def test_the_dtype():
    """The dtype is known by name, equal to itself, hashable, numeric, and of Python ints."""
    dtype: Any = pd.api.types.pandas_dtype("u128")
    assert dtype == U128Dtype() == U128
    assert hash(dtype) == hash(U128Dtype())
    assert repr(dtype) == "U128Dtype()"
    assert dtype.na_value is pd.NA
    assert dtype.type is int
    assert pd.api.types.is_unsigned_integer_dtype(dtype)
    assert pd.api.types.is_numeric_dtype(column([1]))


@given(values=columns)
def test_ints_and_texts_read_alike(values):
    """Ints, digits, and the column itself give the same values; scalars are Python ints."""
    s = column(values)
    assert s.tolist() == cells_of(values)
    assert list(s.array) == cells_of(values)
    assert {type(v) for v in s if v is not GAP} <= {int}
    texts = [None if v is None else str(v) for v in values]
    for other in (texts, pd.array(texts, dtype="string"), s, np.array(values, dtype=object)):
        assert pd.array(other, dtype=U128).tolist() == cells_of(values)


def test_what_is_taken(subtests):
    """Integers of any kind, digits, whole decimals and every kind of gap are taken."""
    cases: list[Any] = [
        (np.array([1, 255], dtype=np.uint8), [1, 255]),
        (np.array([2**64 - 1], dtype=np.uint64), [2**64 - 1]),
        (np.array([5, 2**63 - 1]), [5, 2**63 - 1]),
        (pd.array([2**62 + 1, None], dtype="Int64"), [2**62 + 1, GAP]),
        (pd.Series([2**64 - 1, None], dtype="UInt64"), [2**64 - 1, GAP]),
        (pd.Index([3, 4]), [3, 4]),
        (
            [np.int64(3), np.uint64(2**64 - 1), "007", None, np.nan, pd.NA, pd.NaT, Decimal(5)],
            [3, 2**64 - 1, 7, GAP, GAP, GAP, GAP, 5],
        ),
        (np.array([np.nan, np.nan]), [GAP, GAP]),
        (np.array(["12", "3"]), [12, 3]),
        (range(3), [0, 1, 2]),
        ([], []),
        ([None], [GAP]),
        ([Decimal("1E+38"), None], [10**38, GAP]),
        (pd.Categorical([5, 5, 7]), [5, 5, 7]),
    ]
    for values, held in cases:
        with subtests.test(held=held):
            assert pd.array(values, dtype=U128).tolist() == held


def test_what_is_refused(subtests):
    """Each value that is no amount is refused by its row, alone or among others."""
    cases = [
        (-1, OverflowError, "-1 in row 1 does not fit in u128"),
        (2**128, OverflowError, "340282366920938463463374607431768211456 in row 1 does not fit"),
        (1.0, TypeError, r"1\.0 in row 1 is a float: u128 holds ints and texts of digits; a float"),
        (True, TypeError, "True in row 1 is a bool: u128 holds ints and texts of digits"),
        (np.True_, TypeError, "in row 1 is a bool"),
        (1j, TypeError, "in row 1 is a complex"),
        (b"1", TypeError, "in row 1 is a bytes"),
        ([1], TypeError, "in row 1 is a list"),
        ("-1", ValueError, "amount '-1' in row 1 is not a string of decimal digits"),
        ("+1", ValueError, "in row 1 is not a string of decimal digits"),
        (" 1", ValueError, "in row 1 is not a string of decimal digits"),
        ("1_0", ValueError, "in row 1 is not a string of decimal digits"),
        ("", ValueError, "amount '' in row 1 is not a string of decimal digits"),
        ("1.0", ValueError, "in row 1 is not a string of decimal digits"),
        ("\u0661", ValueError, "in row 1 is not a string of decimal digits"),
        (str(2**128), OverflowError, "in row 1 does not fit in u128"),
        ("9" * 5000, OverflowError, "in row 1 does not fit in u128"),
        (Decimal("1.5"), ValueError, r"amount 1\.5 in row 1 is not a whole number"),
        (Decimal("1E+9999"), ValueError, "in row 1 is not a whole number"),
    ]
    for value, error, message in cases:
        with subtests.test(value=value):
            for first in (7, "7", None, "0" * 5000):
                held = np.empty(2, dtype=object)
                held[0], held[1] = first, value
                with pytest.raises(error, match=message):
                    pd.array(held, dtype=U128)


def test_arrays_of_other_numbers_are_refused():
    """Floats, bools and negative integers of numpy are refused, naming the row."""
    with pytest.raises(TypeError, match=r"2\.0 in row 1 is a float"):
        pd.Series([np.nan, 2.0]).astype(U128)
    with pytest.raises(TypeError, match="True in row 0 is a bool"):
        pd.Series([True]).astype(U128)
    with pytest.raises(OverflowError, match="-1 in row 2 does not fit"):
        pd.Series([1, 2, -1]).astype(U128)
    with pytest.raises(TypeError, match=r"1\.5 in row 0 is a float"):
        pd.Series([1.5], dtype="Float64").astype(U128)
    with pytest.raises(TypeError, match="Timestamp"):
        pd.Series(pd.to_datetime(["2020-01-01"])).astype(U128)


def test_planes_are_checked():
    """An array is made of two planes of uint64 and a mask, of one length."""
    words = np.array([1, 2], dtype=np.uint64)
    gaps = np.array([False, True])
    array = U128Array(words, words, gaps)
    assert array.tolist() == [2**64 + 1, GAP]
    assert (array.hi.tolist(), array.lo.tolist()) == ([1, 0], [1, 0])
    assert words.tolist() == [1, 2]
    assert U128Array(words, words).tolist() == [2**64 + 1, 2**65 + 2]
    copied = U128Array(words, words, copy=True)
    copied[0] = 9
    assert words.tolist() == [1, 2]
    with pytest.raises(TypeError, match="arrays of uint64"):
        U128Array(words.astype(np.int64), words)
    with pytest.raises(ValueError, match="must have the same length"):
        U128Array(words, words[:1])


# Out ------------------------------------------------------------------------------------


@given(values=columns)
def test_casts_are_exact(values):
    """Objects and texts hold the ints; float64 is the nearest; bool is whether it is zero."""
    s, held = column(values), [v for v in values if v is not None]
    assert s.astype(object).tolist() == cells_of(values)
    assert s.astype("string").tolist() == [GAP if v is None else str(v) for v in values]
    floats = s.astype("float64")
    assert floats.dropna().tolist() == [float(v) for v in held]
    assert floats.isna().tolist() == [v is None for v in values]
    assert s.astype("boolean").tolist() == [GAP if v is None else v != 0 for v in values]
    assert s.dropna().astype(bool).tolist() == [v != 0 for v in held]
    assert column(held).astype(str).tolist() == [str(v) for v in held]
    assert s.to_numpy().tolist() == cells_of(values)
    assert np.asarray(s.array).dtype == object


def test_narrower_integers_are_checked(subtests):
    """The largest value of a dtype fits it, the next one is refused by its row."""
    for dtype in ["int8", "uint16", "int64", "uint64", "Int64", "UInt64", "UInt8"]:
        with subtests.test(dtype=dtype):
            most = int(np.iinfo(dtype.lower()).max)
            result = column([0, most]).astype(dtype)
            assert (result.dtype, result.tolist()) == (dtype, [0, most])
            with pytest.raises(
                OverflowError, match=f"{most + 1} in row 1 does not fit {dtype.lower()}"
            ):
                column([0, most + 1]).astype(dtype)


def test_gaps_need_a_dtype_with_gaps():
    """Integers and bools of numpy have no gaps: the error says what to write."""
    s = column([1, None])
    assert s.astype("Int64").tolist() == [1, GAP]
    for dtype, other in (("int64", "Int64"), ("uint64", "UInt64"), ("bool", "boolean")):
        with pytest.raises(ValueError, match=rf"fillna\(\) or dropna\(\) first, or .*'{other}'"):
            s.astype(dtype)
    assert s.to_numpy("int64", na_value=-1).tolist() == [1, -1]
    assert s.to_numpy(na_value=None).tolist() == [1, None]
    assert s.astype("Float64").tolist() == [1.0, GAP]


def test_dtypes_of_another_kind_are_refused():
    """There is no way to dates or complex numbers, and none without a copy."""
    for dtype in ("datetime64[ns]", "complex128"):
        with pytest.raises(TypeError, match=f"u128 cannot be cast to {dtype[:8]}"):
            column([1]).astype(dtype)
    with pytest.raises(ValueError, match="without a copy"):
        np.array(column([1]).array, copy=False)


def test_categories_and_back():
    """Amounts are categories like other values."""
    assert column([5, 5, None]).astype("category").astype(U128).tolist() == [5, 5, GAP]


def test_it_prints_plain_digits():
    """Every digit is printed, a gap as pandas prints it."""
    assert repr(column([TOP, None]).array) == (
        "<U128Array>\n[340282366920938463463374607431768211455, <NA>]\nLength: 2, dtype: u128"
    )
    assert column([10**38, 5]).to_string().split() == ["0", "1" + "0" * 38, "1", "5"]


def test_it_takes_17_bytes_a_value():
    """Two words and a flag: 17 bytes."""
    s = column(range(1000))
    assert s.array.nbytes == s.memory_usage(index=False) == 17_000


# Files ----------------------------------------------------------------------------------


@given(values=columns)
def test_files_are_lossless(values):
    """CSV, JSON and pickle give back each digit; JSON holds texts, which no reader rounds."""
    s = column(values, name="v", index=pd.RangeIndex(len(values)))
    frame = s.to_frame().assign(n=1)
    assert pickle.loads(pickle.dumps(s)).equals(s)  # noqa: S301 - of our own making
    text = io.StringIO(frame.to_csv(index=False))
    assert pd.read_csv(text, dtype={"v": U128})["v"].equals(s)
    for options in ({"orient": "records"}, {"orient": "records", "lines": True}, {}):
        lines: Any = {"lines": True} if "lines" in options else {}
        text = io.StringIO(frame.to_json(**options))
        found = pd.read_json(text, dtype={"v": U128}, **lines)
        assert found.get("v", s).tolist() == s.tolist()  # no rows, no columns in JSON


def test_json_holds_digits():
    """An amount is a text in JSON, a gap null."""
    s = column([TOP, None], name="v")
    assert s.to_frame().to_json(orient="values") == f'[["{TOP}"],[null]]'
    numbers = pd.__version__.startswith("3.0")  # a Series writes those there
    assert s.to_json(orient="values") == f'["{TOP}",null]'.replace('"', "" if numbers else '"')
    table = io.StringIO(s.to_frame().to_json(orient="table"))
    pd.testing.assert_series_equal(pd.read_json(table, orient="table")["v"], s)


# Rows -----------------------------------------------------------------------------------


def test_assignment_is_checked():
    """What is assigned is read as strictly as what a column is made of, or changes nothing."""
    s = column([1, 2, 3])
    s[0] = "5"
    s[[1, 2]] = [TOP, None]
    assert s.tolist() == [5, TOP, GAP]
    for value, error in (
        (-1, OverflowError),
        (2**128, OverflowError),
        (1.5, TypeError),
        ("x", ValueError),
    ):
        with pytest.raises(error):
            s[0] = value
    with pytest.raises(OverflowError):
        s[:] = [1, 2, -3]
    assert s.tolist() == [5, TOP, GAP]
    s[s > 5] = 0
    s.loc[2] = 7
    assert s.tolist() == [5, 0, 7]
    array = column([1, 2]).array
    array[:] = column([TOP, None])
    assert array.tolist() == [TOP, GAP]


def test_a_copy_is_a_copy():
    """What one frame writes, no other sees; what pandas guards is read-only."""
    s = column([1, 2, 3])
    taken, shared = s.copy(), s[:]
    s[0] = 9
    assert taken.tolist() == shared.tolist() == [1, 2, 3]
    frame = pd.DataFrame({"v": s})
    frame.loc[0, "v"] = 8
    assert s.tolist() == [9, 2, 3]
    index = pd.Index(s)
    if pd.__version__.startswith("3.0"):
        return  # guards no array of an index
    for held in (index.array, index.array[:2], index.array.view()):
        with pytest.raises(ValueError, match="Cannot modify read-only array"):
            held[0] = 1


@given(values=columns, number=cells.filter(bool))
def test_filling_and_choosing(values, number):
    """fillna, where, mask, clip and between are what they are for ints."""
    s = column(values)
    assert s.fillna(number).tolist() == [number if v is None else v for v in values]
    large = (s >= number).fillna(False)  # noqa: FBT003 - pandas names it `value`
    picked = [v is not None and v >= number for v in values]
    assert large.tolist() == picked
    assert s.where(large).tolist() == [v if p else GAP for v, p in zip(values, picked, strict=True)]
    assert s.mask(large, 0).tolist() == [
        0 if p else c for c, p in zip(cells_of(values), picked, strict=True)
    ]
    assert s.clip(upper=number).tolist() == [GAP if v is None else min(v, number) for v in values]
    assert s.clip(lower=-1, upper=2**200).tolist() == cells_of(values)
    assert s.between(0, number).tolist() == [GAP if v is None else v <= number for v in values]
    assert s.shift(1).tolist() == [GAP, *cells_of(values)][: len(values)]
    assert s.shift(-1, fill_value=5).tolist() == [*cells_of(values)[1:], 5][: len(values)]
    assert s.equals(column(values)) is True
    assert s.equals(column([*values, 1])) is False


def test_gaps_are_carried_on():
    """Filling on and back repeats values; interpolating is refused with what to write."""
    s = column([None, 2**100, None, 1])
    assert s.ffill().tolist() == [GAP, 2**100, 2**100, 1]
    assert s.bfill(limit=1).tolist() == [2**100, 2**100, 1, 1]
    assert s.dropna().tolist() == [2**100, 1]
    with pytest.raises(NotImplementedError, match=r"would be rounded: use astype\('float64'\)"):
        s.interpolate()
    with pytest.raises(NotImplementedError, match="u128 is exact and does not interpolate"):
        s.to_frame().interpolate()


def test_functions_of_rows_keep_every_digit():
    """Results of a function are u128 where they can be, else Python ints, never floats of ints."""
    s = column([5, None, 2**100])
    assert s.map(lambda v: v * 2).dtype == "u128"
    assert s.map(lambda v: v * 2).tolist() == [10, GAP, 2**101]
    assert s.map(lambda v: -v).tolist() == [-5, GAP, -(2**100)]
    assert s.map(lambda v: v - 6, na_action="ignore").tolist() == [-1, GAP, 2**100 - 6]
    assert s.map({5: 2**60 + 1}).tolist() == [2**60 + 1, GAP, GAP]
    assert s.map({5: "five"}).tolist()[0] == "five"
    assert s.dropna().map(str).dtype == "str"
    assert s.map(defaultdict(int, {5: 7})).tolist() == [7, 0, 0]
    assert s.map(pd.Series([TOP], index=column([5]), dtype=U128)).tolist() == [TOP, GAP, GAP]
    assert s.map(Decimal, na_action="ignore").tolist() == [Decimal(5), GAP, Decimal(2**100)]
    assert s.map(lambda v: v / 2).dtype == np.float64
    assert s.map(lambda v: v > 5).dtype == "boolean"
    assert s.map(lambda v: None if v is GAP else -(2**60 + 1)).tolist()[0] == -(2**60 + 1)
    assert s.dropna().combine(column([7, 2, 3]).iloc[[0, 2]], max).tolist() == [7, 2**100]
    assert s.replace(5, TOP).tolist() == [TOP, GAP, 2**100]
    with pytest.raises(OverflowError):
        s.replace(5, 2**128)


def test_rounding_to_tens():
    """Rounding leaves integers alone, but for powers of ten, where it does what Python does."""
    s = column([15, 25, None, 2**100])
    pd.testing.assert_series_equal(s.round(2), s)
    assert s.round(-1).tolist() == [20, 20, GAP, round(2**100, -1)]
    with pytest.raises(OverflowError):
        column([TOP]).round(-2)


# Frames ---------------------------------------------------------------------------------


def test_concatenation():
    """Amounts stay u128 beside each other; beside other dtypes they are Python ints."""
    s = column([2**100, None])
    assert pd.concat([s, column([1])]).dtype == "u128"
    assert pd.concat([s, column([])]).dtype == "u128"
    others = (pd.Series([-1]), pd.Series([1], dtype="uint64"), pd.Series(["x"], dtype=object))
    for other in (*others, pd.Series([0.5]), pd.Series([True]), pd.Series([1], dtype="Int64")):
        joined = pd.concat([s, other])
        assert joined.dtype == object
        assert joined.tolist() == [2**100, GAP, other.iloc[0]]
    frame = pd.concat([s.to_frame("v"), pd.DataFrame({"w": [1]})])
    assert frame["v"].dtype == "u128"
    assert frame["v"].tolist() == [2**100, GAP, GAP]


@pytest.mark.parametrize("dtype", ["u128", "int64", "uint64", "Int64", "object"])
def test_merging_on_amounts(dtype):
    """An amount meets the same number of any integer dtype, and no other."""
    left = pd.DataFrame({"v": column([2**64 + 5, 5, None, 0]), "n": range(4)})
    right = pd.DataFrame({"v": pd.Series([5, 0], dtype=dtype), "x": ["p", "q"]})
    assert left.merge(right, on="v")[["n", "x"]].to_numpy().tolist() == [[1, "p"], [3, "q"]]
    assert right.merge(left, on="v", how="left")["n"].tolist() == [1, 3]
    assert left.merge(right, on="v", how="left")["x"].isna().tolist() == [True, False, True, False]


def test_merging_gaps_and_large_keys():
    """Keys of 128 bits that differ in one bit stay apart; a gap meets a gap."""
    left = pd.DataFrame({"v": column([TOP, TOP - 1, None])})
    right = pd.DataFrame({"v": column([TOP - 1, None]), "x": [1, 2]})
    assert left.merge(right, how="left", on="v")["x"].fillna(0).tolist() == [0, 1, 2]


def test_tables_of_amounts():
    """Pivoting, stacking, reindexing and aligning keep the dtype and every digit."""
    frame = pd.DataFrame(
        {"k": list("aab"), "n": [1, 2, 1], "v": column([2**100, 1, 5]), "w": [1, 2, 3]}
    )
    assert frame.pivot_table(index="k", values="v", aggfunc="sum")["v"].tolist() == [2**100 + 1, 5]
    wide = frame.pivot_table(index="k", columns="n", values="v", aggfunc="first")
    assert set(wide.dtypes) == {U128Dtype()}
    assert wide.to_numpy().tolist() == [[2**100, 1], [5, GAP]]
    assert frame["v"].reindex([2, 7]).tolist() == [5, GAP]
    assert (frame["v"] + frame["v"].iloc[1:]).tolist() == [GAP, 2, 10]
    assert frame[["v"]].T.iloc[0].tolist() == [2**100, 1, 5]
    assert frame.drop_duplicates("v").shape == (3, 4)
    assert frame.query("v > 10**24")["n"].tolist() == [1]
    assert frame.select_dtypes("number").columns.tolist() == ["n", "v", "w"]
    assert frame.sort_values(["n", "v"])["v"].tolist() == [5, 2**100, 1]
    assert frame["v"].iloc[0] == 2**100
    assert frame[["v", "w"]].corr().shape == (2, 2)


def test_amounts_as_an_index():
    """An index of amounts finds, slices, joins and sorts."""
    index = pd.Index(column([5, 2**100, 0]))
    assert index.dtype == "u128"
    assert index.get_loc(2**100) == 1
    assert index.get_indexer(column([0, 7])).tolist() == [2, -1]
    assert index.sort_values().tolist() == [0, 5, 2**100]
    assert index.union(pd.Index(column([7]))).tolist() == [0, 5, 7, 2**100]
    s = pd.Series([1, 2, 3], index=index).sort_index()
    assert s.loc[2**100] == 2
    assert s.loc[1 : 2**99].tolist() == [1]


def test_hashes_tell_values_apart():
    """Rows hash alike if they are alike, whatever stands around them."""
    hashes = pd.util.hash_pandas_object(column([1, 2**64, None, 1, 0]), index=False)
    assert hashes[0] == hashes[3]
    assert hashes.nunique() == 4
    alone = pd.util.hash_pandas_object(column([2**64]), index=False)
    assert alone[0] == hashes[1]


def test_plots_draw_them():
    """A plot draws each amount as the float nearest to it, and leaves a gap open."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    frame = pd.DataFrame({"t": [1, 2, 3], "v": column([10**24, None, 3 * 10**24])})
    drawn = frame.plot(x="t", y="v").lines[0].get_ydata()
    assert np.ma.filled(drawn, np.nan).tolist()[::2] == [1e24, 3e24]
    assert np.isnan(np.ma.filled(drawn, np.nan)[1])
    bars: Any = frame.dropna().plot.bar(x="t", y="v").patches
    assert [bar.get_height() for bar in bars] == [1e24, 3e24]
    pyplot.close("all")
