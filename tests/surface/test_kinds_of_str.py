"""Arguments of other types than str: its subclasses, arrays of pyarrow, dates."""

from __future__ import annotations

from datetime import date
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import ledgerkit as lk
from ledgerkit.protocol import AccountId

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("no_session_left")


class Text(str):
    """A plain subclass."""

    __slots__ = ()


class Account(str, Enum):  # noqa: UP042 - the `str` of a StrEnum is its text
    """An enumeration whose `str` is the name of the member, not its text."""

    ALICE = "alice.near"


IDS = (AccountId("alice.near"), np.str_("alice.near"), Text("alice.near"), Account.ALICE)
READS: dict[str, Callable[[Any, Callable[[str], Any]], Any]] = {
    "accounts": lambda account_id, _: lk.accounts(account_id).to_dict(),
    "keys": lambda account_id, _: lk.keys(account_id).to_dict(),
    "transfers_of": lambda account_id, _: lk.transfers_of(account_id).to_dict(),
    "statement": lambda account_id, text: lk.statement(
        account_id, assets=[text("near")], progress=False
    ).entries.to_dict(),
    "view": lambda account_id, text: lk.view(
        "gold.near", text("ft_balance_of"), {text("account_id"): account_id}, at=text("final")
    ),
    "rpc": lambda account_id, text: lk.connect("local").rpc(
        text("query"),
        {text("request_type"): text("view_account"), "account_id": account_id, "finality": "final"},
    ),
    "get": lambda account_id, text: lk.connect("local").get(
        text(f"/v1/account/{str.__str__(account_id)}/ft")
    ),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("account_id", IDS, ids=lambda account_id: type(account_id).__name__)
def test_a_subclass_of_str_is_the_text_that_it_has(account_id: str, read: Any) -> None:
    """Any kind of str, also within arguments and parameters, is read as the same plain text."""
    with lk.connect("local"):
        assert read(account_id, Text) == read("alice.near", str)


@pytest.mark.parametrize("kind", [np.str_, Text])
def test_hashes_and_ids_of_many(kind: Any, tmp_path: Path) -> None:
    """Hashes in `trace` and `traces`, and the ids of `statements`, may be of any kind, too."""
    with lk.connect("local"):
        tx_hash = lk.account_transactions("alice.near")["tx_hash"][0]
        expected = lk.trace(tx_hash).receipts
        assert lk.trace(kind(tx_hash), kind("alice.near")).receipts.equals(expected)
        assert lk.traces([kind(tx_hash)]).receipts["receipt_id"].equals(expected["receipt_id"])
        collected = lk.statements([kind("alice.near")], tmp_path / "out", progress=False)
        alone = lk.statement("alice.near", progress=False)
        assert len(collected.pandas("entries")) == len(alone.entries) > 0


def test_arrays_of_pyarrow(tmp_path: Path) -> None:
    """Ids and hashes may stand in an array of pyarrow, such as a column that DuckDB returned."""
    ids = pa.chunked_array([["alice.near"], ["bob.near"]])
    with lk.connect("local"):
        assert lk.accounts(ids).equals(lk.accounts(["alice.near", "bob.near"]))
        hashes = lk.account_transactions("alice.near")["tx_hash"]
        read = lk.traces(pa.array(hashes)).receipts
        assert read.equals(lk.traces(hashes).receipts)
        collected = lk.collect(ids, "accounts", tmp_path / "out", progress=False)
        assert (
            collected.pandas("accounts", account_ids=ids)["account_id"].tolist() == ids.to_pylist()
        )


def test_dates_and_months() -> None:
    """A date and a month stand for their first moment, in UTC."""
    with lk.connect("local"):
        first = lk.block("2026-08-01T00:00:00Z")
        assert (
            first["block_height"].tolist()
            != lk.block("2026-08-01T00:00:01Z")["block_height"].tolist()
        )
        for at in (date(2026, 8, 1), "2026-08"):
            assert lk.block(at).equals(first)
