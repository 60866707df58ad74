"""Columns of Python values: each comes back from Arrow as it was, digit for digit."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledgerkit.errors import DecodeError
from ledgerkit.frames import arrow_tables, build
from ledgerkit.frames.schemas import SCHEMAS

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**128), 2**128)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
MARKS = st.sampled_from(["bytes_base64", "_bytes_base64", "__bytes_base64", "_", ""])
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS | MARKS, inner, max_size=3),
    max_leaves=8,
)
ARGS = JSON | st.binary() | st.just(pd.NA)
HELD = ARGS | st.lists(ARGS, max_size=4)


def same(one: Any, other: Any) -> bool:
    """Compare values and their types, all the way down."""
    if one is pd.NA or other is pd.NA:
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    return type(one) is type(other) and repr(one) == repr(other)


def through(name: str, **held: Any) -> pd.DataFrame:
    """Write rows in which only some columns have values, and read them again."""
    rows = len(next(iter(held.values())))
    blank = {"bool": False, "float64": 0.0}
    told = {c.name: [blank.get(c.dtype)] * rows for c in SCHEMAS[name]} | held
    return arrow_tables.frame(name, arrow_tables.of_frame(name, build.build_frame(name, told)))


@given(st.lists(HELD, min_size=1, max_size=5))
@example(["", pd.NA])
def test_arguments_come_back(values: list[Any]) -> None:
    """Any JSON, integers of any size, floats, bytes, what is missing and null, alone or listed."""
    found = through("collected_receipts", args=values)["args"].tolist()
    assert all(map(same, found, values))
    found = through("collected_events", data=values)["data"].tolist()
    assert all(map(same, found, values))


@settings(max_examples=30)
@given(st.lists(st.none() | st.lists(TEXTS, max_size=3), min_size=1, max_size=5))
def test_lists_of_texts_come_back(values: list[Any]) -> None:
    """Empty lists and missing ones are told apart."""
    columns = ("logs", "input_data_ids", "waits_for")
    found = through("collected_receipts", **dict.fromkeys(columns, values))
    for column in columns:
        assert all(map(same, found[column].tolist(), values))


@settings(max_examples=30)
@given(st.lists(st.none() | st.lists(st.dictionaries(TEXTS, TEXTS)), min_size=1, max_size=3))
def test_lists_of_objects_come_back(values: list[Any]) -> None:
    """Missing ones stay None."""
    found = through("collected_receipts", output_data_receivers=values)
    assert all(map(same, found["output_data_receivers"].tolist(), values))


@pytest.mark.parametrize("name", ["transactions", "collected_receipts"])
def test_what_anybody_may_wish_to_pay_is_held(name: str) -> None:
    """A deposit that nobody has is written all the same, and comes back."""
    values = [0, 10**38 - 1, 10**38, 2**128 - 1, pd.NA]
    assert through(name, deposit=values)["deposit"].tolist() == values


def test_what_is_beyond_all_near_is_refused() -> None:
    """A fee of 10^38 yoctoNEAR is no fee."""
    with pytest.raises(DecodeError, match="tokens_burnt 100000000000000000000000000000000000000"):
        through("collected_receipts", tokens_burnt=[10**38])
