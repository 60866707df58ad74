"""Columns of Python objects in Arrow tables and Parquet files, exact."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerkit as lk
from ledgerkit.errors import InvalidRequestError
from ledgerkit.frames import arrow_tables, build

pa = pytest.importorskip("pyarrow", reason="the extra `bulk`")

WIDE = 2**160
INTEGERS = st.integers(-WIDE, WIDE)
JSON = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
MISSING = st.none() | st.just(pd.NA)


def objects(values: list[Any]) -> pd.DataFrame:
    column = pd.Series(np.fromiter(values, dtype=object, count=len(values)), dtype=object)
    return pd.DataFrame({"change": column, "row": range(len(values))})


def assert_same(read: pd.DataFrame, values: list[Any]) -> None:
    """Check values and types of the column; NA and None are different."""
    column = read["change"].tolist()
    assert list(map(repr, column)) == list(map(repr, values))
    assert read["row"].tolist() == list(range(len(values)))


@given(st.lists(INTEGERS | MISSING, max_size=20))
def test_integers_of_any_size_come_back(tmp_path_factory, values):
    """A file brings back each signed integer, NA and None."""
    path = tmp_path_factory.mktemp("objects") / "x.parquet"

    lk.write_parquet(objects(values), path)

    assert_same(lk.read_parquet(path), values)


@given(st.lists(JSON | st.text(max_size=5) | st.binary(max_size=5) | MISSING, max_size=8))
def test_mixed_objects_come_back(tmp_path_factory, values):
    """A file brings back dicts of large integers, lists, texts and bytes, one beside another."""
    path = tmp_path_factory.mktemp("objects") / "x.parquet"
    frame = objects([{"a": 2**64}, *values])

    lk.write_parquet(frame, path)

    assert_same(lk.read_parquet(path), [{"a": 2**64}, *values])


def test_other_programs_read_digits():
    """An integer is its digits in Arrow, and NA is null."""
    table = lk.to_arrow(objects([-(2**128), pd.NA, 7]))

    assert table["change"].to_pylist() == [str(-(2**128)), None, "7"]


def test_columns_that_arrow_holds_stay_its_own():
    """Texts, bytes, lists of texts and Decimals have types of Arrow; lists come back as lists."""
    for values, kind in (
        (["a", None], pa.string()),
        ([b"a", None], pa.binary()),
        ([["a"], None], pa.list_(pa.string())),
        ([Decimal("1.5"), None], pa.decimal128(2, 1)),
        ([None, None], pa.null()),
    ):
        assert lk.to_arrow(objects(values)).schema.field("change").type == kind


def test_lists_come_back_as_lists(tmp_path):
    """A list is no array after it was in a file."""
    lk.write_parquet(objects([["a", "b"], None]), tmp_path / "x.parquet")

    assert_same(lk.read_parquet(tmp_path / "x.parquet"), [["a", "b"], None])


def test_a_folder_may_begin_with_a_file_of_missing_values(tmp_path):
    """The integers of a later file are read, although the first file has none."""
    lk.write_parquet(objects([None]), tmp_path / "1.parquet")
    lk.write_parquet(objects([2**100]), tmp_path / "2.parquet")

    assert lk.read_parquet(tmp_path)["change"].tolist() == [None, 2**100]


def test_labels_need_not_be_text(tmp_path):
    """Columns that are named by integers, and a named index, are restored too."""
    frame = pd.DataFrame({0: [2**100, 1], 1: ["a", "b"]}, index=pd.Index(["x", "y"], name="id"))
    frame[0] = frame[0].astype(object)

    lk.write_parquet(frame, tmp_path / "x.parquet")

    assert lk.read_parquet(tmp_path / "x.parquet")[0].to_dict() == {"x": 2**100, "y": 1}


def test_values_without_a_type_are_refused():
    """An object that neither Arrow nor JSON has a type for is an error that names the column."""
    with pytest.raises(InvalidRequestError, match="change"):
        lk.to_arrow(objects([object()]))
    with pytest.raises(InvalidRequestError, match="does not fit an Arrow table"):
        lk.to_arrow(objects([{1: 2**100}]))
    with pytest.raises(InvalidRequestError, match="Duplicate column names"):
        lk.to_polars(pd.DataFrame([[1, 2]], columns=["a", "a"]))


@pytest.mark.parametrize("frame", [[1], pd.Series([1]), None], ids=["list", "series", "none"])
def test_what_is_no_frame_is_refused(tmp_path, frame):
    """Each function names the argument and what would be right."""
    for write in (
        lk.to_arrow,
        lk.to_polars,
        lambda frame: lk.write_parquet(frame, tmp_path / "x.parquet"),
        lambda frame: lk.to_excel(frame, tmp_path / "x.xlsx"),
    ):
        with pytest.raises(InvalidRequestError, match="expected a pandas DataFrame"):
            write(frame)


@pytest.mark.parametrize("frame", ["entries", "gaps", "totals", "rewards"])
def test_the_frames_of_a_statement_come_back(tmp_path, frame):
    """Signed changes, sums and dicts by cause come back from Parquet, and fit Excel."""
    with lk.connect("local") as ledger:
        written = getattr(lk.statement("ivan.near", progress=False, ledger=ledger), frame)

    lk.write_parquet(written, tmp_path / "x.parquet")
    lk.to_excel(written, tmp_path / "x.xlsx")

    pd.testing.assert_frame_equal(lk.read_parquet(tmp_path / "x.parquet"), written)


def test_the_frames_of_a_trace_come_back(tmp_path):
    """Receipts with decoded arguments and balance changes come back from Parquet."""
    with lk.connect("local") as ledger:
        hashes = lk.transactions(180000032, ledger=ledger)["tx_hash"]
        traces = lk.traces(hashes.tolist(), progress=False, ledger=ledger)

    for name in ("receipts", "actions", "events", "balance_changes", "transfers"):
        written = getattr(traces, name)
        lk.write_parquet(written, tmp_path / "x.parquet")
        pd.testing.assert_frame_equal(lk.read_parquet(tmp_path / "x.parquet"), written)


def test_an_unknown_missing_amount_is_null_in_a_collection():
    """The gap of a statement whose amount is unknown is null in the files, and NA in the frame."""
    columns: dict[str, list[Any]] = {
        "account_id": ["a.near"] * 2,
        "asset": ["near"] * 2,
        "start_height": [1, 2],
        "stop_height": [2, 3],
        "missing": [pd.NA, -(2**127)],
        "symbol": ["NEAR"] * 2,
        "amount": [None, "1"],
        "note": ["a"] * 2,
    }
    table = arrow_tables.of_frame("gaps", build.build_frame("statement_gaps", columns))

    assert table["missing"].to_pylist() == [None, str(-(2**127))]
    assert arrow_tables.frame("gaps", table)["missing"].tolist() == columns["missing"]
