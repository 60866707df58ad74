"""Signed amounts: u128 and i129 side by side, compared with Python's integers."""

from __future__ import annotations

import io
import itertools
import math
import operator
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ledgerkit as lk
from ledgerkit.types import I129Dtype, U128Dtype

TOP = 2**128 - 1
LOWEST = {"u128": 0, "i129": -TOP}
EDGES = [0, 1, 2, 3, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**24, 2**127, TOP - 1, TOP]
DTYPES = ("u128", "i129")

amounts = st.one_of(st.sampled_from(EDGES), st.integers(0, TOP), st.integers(0, 9))
signed = st.builds(operator.mul, amounts, st.sampled_from([1, -1]))
cells = {"u128": amounts | st.none(), "i129": signed | st.none()}
small = st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9) | st.none()

ARITHMETIC = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def column(values: list[Any], dtype: str = "i129") -> Any:
    return pd.Series(values, dtype=dtype)


def listed(values: list[Any]) -> list[Any]:
    """Write missing values as pandas does."""
    return [pd.NA if value is None else value for value in values]


def by_row(op: Any, first: list[Any], second: list[Any]) -> list[Any]:
    """Compute row by row with Python's integers; None where one is missing."""
    rows = zip(first, second, strict=True)
    return [None if a is None or b is None else op(a, b) for a, b in rows]


def check(result_dtype: str, compute: Any, expected: list[Any]) -> None:
    """Compare a result with Python's, or the error with the first row that does not fit."""
    lowest = LOWEST[result_dtype]
    outside = (row for row, v in enumerate(expected) if v is not None and not lowest <= v <= TOP)
    row = next(outside, None)
    if row is not None:
        message = rf"in row {row} does not fit in {result_dtype}; astype\(object\)"
        with pytest.raises(OverflowError, match=message):
            compute()
        return
    result = compute()
    assert result.dtype == result_dtype
    assert result.tolist() == listed(expected)


# The pairs of the table in docs/explanations/u128.md: dtypes of both sides, and of the result of
# all operations but minus, which is i129.
PAIRS = {
    ("u128", "u128"): "u128",
    ("u128", "i129"): "i129",
    ("i129", "u128"): "i129",
    ("i129", "i129"): "i129",
    ("u128", "int"): "u128",
    ("i129", "int"): "i129",
    ("u128", "Int64"): "u128",
    ("i129", "Int64"): "i129",
}


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
@settings(max_examples=30)
@given(data=st.data())
def test_pairs_compute_like_ints(pair: tuple[str, str], data: Any) -> None:
    """Each pair of types gives the type of the table and Python's values, on either side."""
    left, right = pair
    if right == "int":
        a = data.draw(st.lists(cells[left], max_size=6))
        number = data.draw(signed | st.integers(-(2**200), 2**200))
        b, other = [number] * len(a), number
    else:
        both = st.tuples(cells[left], small if right == "Int64" else cells[right])
        rows = data.draw(st.lists(both, max_size=6))
        a, b = [x for x, _ in rows], [y for _, y in rows]
        other = column(b, right)
    values = column(a, left)
    for sign, op in ARITHMETIC.items():
        result_dtype = "i129" if sign == "-" else PAIRS[pair]
        for x, y, first, second in ((values, other, a, b), (other, values, b, a)):
            zero = any(p is not None and q == 0 for p, q in zip(first, second, strict=True))
            if sign in {"//", "%"} and zero:
                with pytest.raises(ZeroDivisionError, match="division by zero in row"):
                    op(x, y)
                continue
            check(result_dtype, lambda: op(x, y), by_row(op, first, second))  # noqa: B023 - called at once
    for op in COMPARISONS:
        assert op(values, other).tolist() == listed(by_row(op, a, b))
        assert op(other, values).tolist() == listed(by_row(op, b, a))
    for p, q, quotient in zip(a, b, values / other, strict=True):
        if p is not None and q and abs(q) <= TOP:
            assert quotient == p / q


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=50)
@given(data=st.data())
def test_columns_reduce_sort_and_group_like_ints(dtype: str, data: Any) -> None:
    """Sums, running sums, order, groups and casts of both types are those of Python's integers."""
    rows = data.draw(st.lists(st.tuples(st.sampled_from("abc"), cells[dtype]), max_size=8))
    keys, values = [k for k, _ in rows], [v for _, v in rows]
    s, known = column(values, dtype), [v for v in values if v is not None]
    exact = {"sum": sum(known), "prod": math.prod(known)}
    for name, value in exact.items():
        if LOWEST[dtype] <= value <= TOP:
            assert getattr(s, name)() == value
        else:
            with pytest.raises(OverflowError, match=f"does not fit in {dtype}"):
                getattr(s, name)()
    if known:
        assert (s.min(), s.max(), s.mean()) == (min(known), max(known), sum(known) / len(known))
        assert s.idxmin() == values.index(min(known))
        assert s.idxmax() == values.index(max(known))
    sums = itertools.accumulate(known)
    check(dtype, s.cumsum, [None if v is None else next(sums) for v in values])
    kept = [row for row, v in enumerate(values) if v is not None]
    up = sorted(kept, key=values.__getitem__)
    assert s.dropna().sort_values(kind="stable").index.tolist() == up
    down = sorted(kept, key=lambda row: -values[row])
    assert s.dropna().sort_values(ascending=False, kind="stable").index.tolist() == down
    assert s.dropna().nlargest(2).tolist() == [values[row] for row in down[:2]]
    assert s.unique().tolist() == list(dict.fromkeys(listed(values)))
    assert s.isin([-1, 0, TOP]).tolist() == [v in {-1, 0, TOP} for v in values]
    assert s.astype("float64").dropna().tolist() == [float(v) for v in known]
    assert column(s.astype("string"), dtype).equals(s)
    assert (-s).tolist() == listed([None if v is None else -v for v in values])
    check("u128", s.abs, [None if v is None else abs(v) for v in values])
    check("i129", s.diff, by_row(operator.sub, values, [None, *values][: len(values)]))
    balances: dict[str, int] = dict.fromkeys(keys, 0)
    running: list[Any] = []
    for key, value in rows:
        balances[key] += value or 0
        running.append(None if value is None else balances[key])
    groups = s.groupby(keys)
    if all(v is None or LOWEST[dtype] <= v <= TOP for v in running):
        assert groups.cumsum().tolist() == listed(running)
    else:
        with pytest.raises(
            OverflowError, match=f"the group's sum in row . does not fit in {dtype}"
        ):
            groups.cumsum()
    if all(LOWEST[dtype] <= v <= TOP for v in balances.values()):
        assert groups.sum().to_dict() == balances
    of_group = {k: [v for key, v in rows if key == k and v is not None] for k in balances}
    for name, best in (("min", min), ("max", max)):
        wanted = {k: best(group) if group else pd.NA for k, group in of_group.items()}
        assert dict(getattr(groups, name)().items()) == wanted


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=15)
@given(data=st.data())
def test_files_bring_the_dtype_back(dtype: str, data: Any, tmp_path_factory: Any) -> None:
    """Parquet, JSON, CSV and Arrow give back each value and the dtype."""
    fits = cells[dtype].filter(lambda v: v is None or abs(v) < 10**38)
    values = data.draw(st.lists(fits, min_size=1, max_size=6))
    frame = pd.DataFrame({"n": range(len(values)), "v": column(values, dtype)})
    path = tmp_path_factory.mktemp("files") / "f.parquet"
    frame.to_parquet(path)
    assert pd.read_parquet(path).equals(frame)
    lk.write_parquet(frame.set_index("v"), path)
    assert lk.read_parquet(path).equals(frame.set_index("v"))
    table = lk.to_arrow(frame)
    assert str(table.schema.field("v").type) == "decimal128(38, 0)"
    assert column(table["v"], dtype).equals(frame["v"])
    text = io.StringIO(frame.to_json(orient="records"))
    assert pd.read_json(text, dtype={"v": dtype})["v"].tolist() == frame["v"].tolist()
    text = io.StringIO(frame.to_json(orient="table"))
    assert pd.read_json(text, orient="table")["v"].equals(frame["v"])
    text = io.StringIO(frame.to_csv(index=False))
    assert pd.read_csv(text, dtype={"v": dtype})["v"].equals(frame["v"])
    texts = lk.to_units(frame["v"], 3).tolist()
    known = [(text, v) for text, v in zip(texts, values, strict=True) if v is not None]
    assert [Fraction(text) * 1000 for text, _ in known] == [v for _, v in known]


def test_39_digits_are_refused_by_decimals() -> None:
    """A signed amount of 39 digits is no decimal of 38: the error names it and a way out."""
    s = column([1, -(10**38)])
    with pytest.raises(lk.errors.InvalidRequestError, match=r"-1\d{38} in row 1 is too large"):
        lk.to_arrow(s.to_frame("v"))
    assert column(s.astype("str")).equals(s)


def test_what_does_not_fit_is_an_error() -> None:
    """i129 ends at both sides of 2^128 - 1; a column of u128 takes no negative value."""
    assert column([-TOP, TOP, "-5", None]).tolist() == [-TOP, TOP, -5, pd.NA]
    for value in (-TOP - 1, TOP + 1, str(-TOP - 1)):
        with pytest.raises(OverflowError, match="in row 1 does not fit in i129"):
            column([0, value])
    for text in ("--5", "-", "+5", "- 5"):
        with pytest.raises(ValueError, match="in row 0 is not a string of decimal digits"):
            column([text])
    with pytest.raises(OverflowError, match="-1 in row 1 does not fit in u128, but in i129"):
        column([1, -1]).astype("u128")
    with pytest.raises(
        OverflowError, match="-129 in row 0 does not fit int8, which begins at -128"
    ):
        column([-129]).astype("int8")
    assert column([-128, 127]).astype("int8").tolist() == [-128, 127]


@settings(max_examples=100)
@given(data=st.data())
@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_are_those_of_ints(dtype: str, data: Any) -> None:
    """Powers of a column, of a number and by a number are exact, or name the row."""
    exponents = st.integers(0, 140) | st.sampled_from([2**64, TOP])
    bases = cells[dtype] | st.integers(LOWEST[dtype] and -3, 3)
    rows = data.draw(st.lists(st.tuples(bases, exponents | st.none()), max_size=6))
    number, base = data.draw(exponents), data.draw(st.integers(LOWEST[dtype] and -9, 9))
    values, powers = [a for a, _ in rows], [b for _, b in rows]

    def power(a: Any, b: Any) -> Any:
        if a == 1 or b == 0:  # also where the other is missing, as in pandas
            return 1
        if a is None or b is None:
            return None
        return a ** (b if b < 300 else 300 + b % 2)

    check(
        dtype,
        lambda: column(values, dtype) ** column(powers, dtype),
        list(map(power, values, powers)),
    )
    check(dtype, lambda: column(values, dtype) ** number, [power(a, number) for a in values])
    check(dtype, lambda: base ** column(powers, dtype), [power(base, b) for b in powers])


def test_types_do_not_depend_on_values() -> None:
    """Columns of both types below each other, or beside each other, are i129."""
    u, i = column([5, None], "u128"), column([-5, 7])
    assert pd.concat([u, i]).dtype == pd.concat([i, column([1], "Int64")]).dtype == "i129"
    assert (u - u).dtype == (0 - u).dtype == u.diff().dtype == (-u).dtype == (~u).dtype == "i129"
    frame = pd.DataFrame({"k": ["a", "a"], "u": u, "i": i})
    assert frame[["u", "i"]].sum(axis=1).tolist() == [0, 7]
    assert frame.sum(numeric_only=True).to_dict() == {"u": 5, "i": 2}
    assert frame.groupby("k").sum(numeric_only=True).dtypes.to_dict() == {
        "u": U128Dtype(),
        "i": I129Dtype(),
    }
    assert (i**3).tolist() == [-125, 343]
    assert ((-2) ** column([3, 4])).tolist() == [-8, 16]
    with pytest.raises(ValueError, match="exponent -5 in row 0 is negative"):
        2**i


def test_differences_run_and_are_drawn() -> None:
    """What people do with changes: running sums, extremes, rounding, plots."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    unit = 10**24 + 1
    balance = column([5 * unit, 7 * unit, None, 4 * unit, unit], "u128")
    changes = balance.diff()
    assert balance.dropna().diff().cumsum().iloc[-1] == -4 * unit
    assert changes.nlargest(1).tolist() == [2 * unit]
    assert changes.round(-24).tolist()[1] == 2 * 10**24
    assert changes.astype("float64").isna().tolist() == [True, False, True, True, False]
    assert changes.groupby([1, 1, 2, 2, 2]).std().isna().tolist() == [True, True]
    drawn: Any = changes.plot().lines[0].get_ydata()
    assert drawn[1] == 2e24
    pyplot.close("all")
