"""pandas' own suite for extension arrays, run on u128 and i129."""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

import pandas as pd
import pandas.testing as tm
import pytest
from pandas.tests.extension import base  # type: ignore[import-not-found]  # not in the stubs
from pandas.tests.extension.conftest import *  # type: ignore[import-not-found]  # noqa: F403 - the suite's fixtures

from ledgerkit.types import I129Dtype

FLOATS = frozenset("mean median std var sem skew kurt".split())
EXACT: dict[str, Any] = {"sum": sum, "prod": math.prod, "min": min, "max": max, "count": len}
RUNNING: dict[str, Any] = {
    "cumsum": operator.add,
    "cumprod": operator.mul,
    "cummin": min,
    "cummax": max,
}
# What of pandas' suite does not apply, and why; each has a test of its own in its place.
REASONS = {
    "test_arith_series_with_array": (
        "expects what numpy's int64 scalars give, which overflow beside a larger int"
    ),
    "test_reduce_frame": "expects an extension array; means are of float64, which numpy holds",
    "test_getitem_series_integer_with_missing_raises": "pandas expects to fail here itself",
    "Dim2CompatTests": "a column has one dimension",
}


@pytest.fixture(params=["u128", "i129"])
def dtype(request):
    return pd.api.types.pandas_dtype(request.param)


@pytest.fixture
def data(dtype):
    less = -3 if dtype == "i129" else 3
    values = [1, 2, 2**64, less, 1, 4, 5, None, 7, 2**33 + 1]
    return pd.array(values, dtype=dtype)


@pytest.fixture
def data_for_twos(dtype):
    return pd.array([2] * 10, dtype=dtype)


@pytest.fixture
def data_missing(dtype):
    return pd.array([None, 2**90], dtype=dtype)


@pytest.fixture
def data_for_sorting(dtype):
    least = -(2**66) if dtype == "i129" else 5
    return pd.array([2**64, 2**64 + 1, least], dtype=dtype)


@pytest.fixture
def data_missing_for_sorting(dtype):
    least = -(2**66) if dtype == "i129" else 5
    return pd.array([2**64, None, least], dtype=dtype)


@pytest.fixture
def data_for_grouping(dtype):
    a = -(2**64) - 7 if dtype == "i129" else 7
    b, c = 2**64 + 7, 2**65 + 7
    return pd.array([b, b, None, None, a, a, b, c], dtype=dtype)


class TestBothDtypes(base.ExtensionTests):  # type: ignore[misc]  # as above
    """Each of pandas' tests, with what it asks the author of a dtype to say."""

    _combine_le_expected_dtype = "boolean"

    @pytest.fixture(autouse=True)
    def skip_if_doesnt_support_2d(self, request):
        if request.function.__qualname__.startswith("Dim2CompatTests"):
            pytest.skip(REASONS["Dim2CompatTests"])

    def _get_expected_exception(self, op_name, obj, other):  # noqa: ARG002 - pandas names them
        if op_name != "__rpow__":
            return None
        dtypes = set(obj.dtypes) if isinstance(obj, pd.DataFrame) else {obj.dtype}
        return ValueError if dtypes == {I129Dtype()} else None  # an exponent is negative

    def _cast_pointwise_result(self, op_name, obj, other, pointwise_result):  # noqa: ARG002 - as above
        if isinstance(pointwise_result, pd.DataFrame):
            return pointwise_result.apply(
                lambda c: self._cast_pointwise_result(op_name, c, other, c)
            )
        if op_name in {"__sub__", "__rsub__"}:
            return pointwise_result.astype("i129")
        if op_name in {"__truediv__", "__rtruediv__"}:
            return pointwise_result.astype(object).fillna(float("nan")).astype("float64")
        if op_name in {"eq", "ne", "lt", "le", "gt", "ge"}:
            return pointwise_result.astype("boolean")
        return pointwise_result

    def _supports_reduction(self, ser, op_name):  # noqa: ARG002 - as above
        return True

    def check_reduce(self, ser, op_name, skipna):
        known = [value for value in ser if value is not pd.NA]
        if op_name == "count":
            assert ser.count() == len(known)
            return
        result = getattr(ser, op_name)(skipna=skipna)
        if op_name == "any":
            assert result is True
        elif op_name == "all" or (op_name in EXACT and not skipna):
            assert result is (True if skipna else pd.NA)
        elif op_name in EXACT:
            assert (type(result), result) == (int, EXACT[op_name](known))
        else:
            expected = getattr(pd.Series(ser.to_numpy("float64")), op_name)(skipna=skipna)
            assert result == pytest.approx(expected, nan_ok=True)

    def _get_expected_reduction_dtype(self, arr, op_name, skipna):  # noqa: ARG002 - as above
        return "float64" if op_name in FLOATS else arr.dtype

    def _supports_accumulation(self, ser, op_name):  # noqa: ARG002 - as above
        return True

    def check_accumulate(self, ser, op_name, skipna):
        known = list(itertools.accumulate(ser.dropna(), RUNNING[op_name]))
        expected = [*known[:7], None, *(known[7:] if skipna else [None, None])]
        result = getattr(ser, op_name)(skipna=skipna)
        tm.assert_series_equal(result, pd.Series(expected, dtype=ser.dtype))

    def test_arith_series_with_array(self, data, all_arithmetic_operators):
        """An operation with a column is the operation row by row."""
        ser = pd.Series(data)
        other = pd.Series([data[0]] * len(ser), dtype=data.dtype)
        self.check_opname(ser, all_arithmetic_operators, other)

    @pytest.mark.parametrize("skipna", [True, False])
    def test_reduce_frame(self, data, all_numeric_reductions, skipna):
        """A frame reduces each column as the column itself does."""
        if all_numeric_reductions not in FLOATS:
            super().test_reduce_frame(data, all_numeric_reductions, skipna)
            return
        frame = pd.DataFrame({"a": data})
        result = getattr(frame, all_numeric_reductions)(skipna=skipna)
        alone = getattr(frame["a"], all_numeric_reductions)(skipna=skipna)
        tm.assert_series_equal(result, pd.Series([alone], index=["a"]))


def test_each_exception_is_listed():
    """A test is replaced for a reason that stands in the table, and for no other."""
    replaced = {name for name in vars(TestBothDtypes) if name.startswith("test_")}
    skipped = {"Dim2CompatTests", "test_getitem_series_integer_with_missing_raises"}
    assert replaced | skipped == set(REASONS)
