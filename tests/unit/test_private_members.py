"""What pandas and pyarrow do not document is there, and has the signature that is relied upon."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest
from pandas.api.extensions import ExtensionArray
from pyarrow import pandas_compat

from ledgerkit.u128.array import U128Array
from ledgerkit.u128.pandas_hooks import PandasHooks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIGNATURES = {
    "_cast_pointwise_result": "self values",
    "_values_for_json": "self",
    "_quantile": "self qs interpolation",
    "_groupby_op": "self how has_dropped_na min_count ngroups ids kwargs",
    "_groupby_quantile": "self qs interpolation ids ngroups starts ends",
}
CALLS: dict[str, Callable[[pd.Series], Any]] = {
    "_cast_pointwise_result": lambda column: column.combine(column, max),
    "_values_for_json": lambda column: column.to_json(),
    "_quantile": lambda column: column.quantile(),
    "_groupby_op": lambda column: column.groupby([0, 0, 1]).cumsum(),
    "_groupby_quantile": lambda column: column.groupby([0, 0, 1]).quantile(),
}


@pytest.fixture
def column() -> Any:
    return pd.Series([2**100, 5, 7], dtype="u128")


def parameters(function: Any) -> str:
    return " ".join(inspect.signature(function).parameters)


def test_every_hook_is_listed() -> None:
    """The tables of this module have every method of the mixin."""
    hooks = {name for name, value in vars(PandasHooks).items() if inspect.isfunction(value)}
    assert hooks == SIGNATURES.keys() == CALLS.keys()


@pytest.mark.parametrize("name", SIGNATURES)
def test_pandas_has_the_hook(name: str) -> None:
    """The base class has the method, with the parameters that are relied upon."""
    assert parameters(getattr(ExtensionArray, name)) == SIGNATURES[name]


@pytest.mark.parametrize("name", CALLS)
def test_pandas_calls_the_hook(name: str, column: pd.Series, monkeypatch: Any) -> None:
    """A documented method reaches the hook."""
    original, calls = getattr(U128Array, name), []

    def count(*values: Any, **options: Any) -> Any:
        calls.append(name)
        return original(*values, **options)

    monkeypatch.setattr(U128Array, name, count)
    CALLS[name](column)
    assert calls


def test_pandas_marks_what_it_lends(column: pd.Series) -> None:
    """The array of an Index is read-only, and so are its views."""
    assert vars(ExtensionArray)["_readonly"] is False
    array: Any = pd.Index(column).array
    for lent in (array, array[1:]):
        with pytest.raises(ValueError, match="read-only"):
            lent[0] = 1


@pytest.mark.parametrize("name", ["nlargest", "nsmallest"])
def test_patched_selection(name: str, column: pd.Series) -> None:
    """Frames and groups select with the patched method of Series."""
    assert parameters(getattr(pd.Series, name)) == "self n keep"
    value = {"nlargest": 2**100, "nsmallest": 5}[name]
    frame = column.to_frame("amount")
    assert getattr(column, name)(1).tolist() == [value]
    assert getattr(frame, name)(1, "amount")["amount"].tolist() == [value]
    assert getattr(column.groupby([0, 0, 0]), name)(1).tolist() == [value]


def test_patched_excel(column: pd.Series, tmp_path: Path) -> None:
    """`to_excel` of a frame and of a Series warn of rounded digits."""
    frame = column.to_frame("amount")
    for data in (frame, frame["amount"]):
        with pytest.warns(UserWarning, match="round numbers to 15 digits: amount"):
            data.to_excel(tmp_path / "file.xlsx")


def test_pyarrow_asks_for_metadata(column: pd.Series) -> None:
    """A frame with the dtype has it after Arrow, by the metadata of the patched function."""
    assert parameters(pandas_compat.get_column_metadata) == "column name arrow_type field_name"
    frame = column.to_frame("amount")
    assert pa.Table.from_pandas(frame).to_pandas().dtypes["amount"] == "u128"
