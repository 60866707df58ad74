"""Mistakes of whoever comes from pandas are refused with what to write instead."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit.errors import InvalidRequestError
from ledgerkit.protocol import AccountId

UNTYPED: Any = lk  # as whoever calls it without a type checker


def refusal(call: Any, *args: Any, **options: Any) -> InvalidRequestError:
    with lk.connect("local"), pytest.raises(InvalidRequestError) as caught:
        call(*args, **options)
    return caught.value


@pytest.mark.parametrize(
    ("name", "verb"),
    [
        ("get_balance", "balance"),
        ("balances", "balance"),
        ("tokens", "ft"),
        ("get_transaction", "trace"),
        ("txs", "activity"),
        ("holders", "top_holders"),
        ("rewards", "statement"),
        ("acount", "accounts"),
    ],
)
def test_a_name_that_people_look_for(name, verb):
    """A name from another library leads to the verb that answers; the error names it."""
    with pytest.raises(AttributeError) as caught:
        getattr(lk, name)
    assert (
        str(caught.value) == f"module 'ledgerkit' has no attribute {name!r}; did you mean {verb!r}?"
    )


def test_a_text_is_no_dry_run():
    """A transaction is not sent, nor shown, for a text in place of True."""
    error = refusal(UNTYPED.transfer, "bob.near", "1 NEAR", signer_id="alice.near", dry_run="no")
    assert str(error) == "dry_run 'no' is not valid: expected True or False."


def test_a_flag_may_be_a_bool_of_numpy():
    """A cell of a boolean column is a flag."""
    with lk.connect("local"):
        assert "symbol" in UNTYPED.ft("bob.near", metadata=np.True_)


@pytest.mark.parametrize(
    ("name", "field"),
    [("staking", "pools"), ("exposure", "liquid_tokens"), ("collect", "liquid_tokens")],
)
def test_one_id_where_a_list_is_meant(name, field):
    """One id in place of a list is refused with the list to write."""
    options = {"out": "unused"} if name == "collect" else {}
    error = refusal(getattr(UNTYPED, name), "alice.near", **options, **{field: "a.near"})
    assert str(error) == (
        f"{field} 'a.near' is not valid: expected a list, Series or Index of account ids. "
        f"Pass a list: {field}=['a.near']."
    )


def test_a_whole_frame_in_place_of_ids():
    """A frame is not printed into the error, which names the column to pass."""
    frame = pd.DataFrame({"account_id": ["alice.near"], "balance": [1]})
    assert str(refusal(UNTYPED.ft, frame)) == (
        "account_ids is a whole DataFrame: expected an account id, or a list, Series or Index of "
        'account ids. Pass one of its columns, such as df["account_id"].'
    )


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA, pd.NaT])
def test_a_missing_id_is_named_with_its_row(missing):
    """A hole in a column of ids is found by its row, and how to drop it is said."""
    error = refusal(UNTYPED.ft, ["alice.near", "bob.near", missing])
    assert (error.field, error.value) == ("account_ids", None)
    assert str(error).startswith(f"account_ids is missing ({missing}) in row 2, counted from 0: ")
    assert error.remedy == "Drop missing ids first, for example with dropna()."


def test_an_account_may_have_the_name_of_a_missing_value():
    """The account "nan" is an id as any other."""
    with lk.connect("local"), warnings.catch_warnings(action="ignore"):
        assert lk.accounts(["nan"])["account_id"].tolist() == ["nan"]


@pytest.mark.parametrize("height", ["180000010", np.float64(180000010)])
def test_a_height_that_is_no_integer(height):
    """Digits in a text may be a date, and a float is not exact: the integer to write is named."""
    error = refusal(UNTYPED.accounts, "alice.near", at=height)
    assert error.remedy == "Pass a height as an integer: at=180000010."
    assert refusal(UNTYPED.blocks, height, 180000012).field == "start"


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        ("2010-01-01", "'2010-01-01'"),
        ("2010-01-01T12:00:00+02:00", "'2010-01-01T12:00:00+02:00'"),
        (datetime(2010, 1, 1, tzinfo=UTC), "'2010-01-01 00:00:00+00:00'"),
        (pd.Timestamp("2010-01-01"), "'2010-01-01 00:00:00'"),
    ],
)
def test_a_time_is_repeated_as_it_was_written(time, shown):
    """A time before the first block is named as it was passed, not as nanoseconds."""
    calls = [(lk.block, ()), (lk.keys, ("alice.near",)), (lk.view, ("gold.near", "ft_metadata"))]
    for call, arguments in calls:
        error = refusal(call, *arguments, at=time)
        assert str(error).startswith(f"at {shown} is not valid: expected a time not before")
    error = refusal(lk.history, "alice.near", "2026-08-01", time)
    assert str(error).startswith(f"stop {shown} is not valid: ")
    for call in (lk.statement, lk.account_transactions):
        assert str(refusal(call, "alice.near", start=time)).startswith(f"start {shown} is not ")
    error = refusal(lk.collect_blocks, time, "final", "transactions", "blocks", dry_run=True)
    assert str(error).startswith(f"start {shown} is not valid: ")
    assert str(refusal(lk.follow, time)).startswith(f"start {shown} is not valid: ")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (AccountId("alice.near"), "'alice.near'"),
        ([AccountId("alice.near")], "['alice.near']"),
        (np.int64(5), "5"),
        (np.float64(1.5), "1.5"),
    ],
)
def test_no_class_name_in_a_sentence(value, shown):
    """A value is shown as a person would write it, without the name of its class."""
    error = refusal(UNTYPED.transfers_of, "alice.near", direction=value)
    assert str(error) == f"direction {shown} is not valid: expected one of sender, receiver."
