"""What accounts did lately: `ledgerkit.activity`, its costs, and what it does not know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLES = Path(__file__).parents[3] / "shared/wire/samples/txapi"
recorded = pytest.mark.skipif(not SAMPLES.exists(), reason="the recorded answers are not here")
UNTYPED: Any = lk  # as whoever calls it without a type checker
SWAP = "AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY"
LOST = "11111111111111111111111111111111"
RELAYER = "0-relay.hot.tg"


@pytest.fixture
def local() -> Iterator[lk.Ledger]:
    with lk.connect("local") as ledger:
        yield ledger


def served(documents: dict[str, Any], hashes: list[str]) -> tuple[Any, list[str]]:
    """Serve transactions of one account; return the transport, and the paths it was asked for."""
    paths: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.path)
        body = json.loads(request.content)
        if request.url.path.endswith("/v0/account"):
            rows = [
                {
                    "account_id": body["account_id"],
                    "transaction_hash": tx_hash,
                    "tx_block_height": 100 + number,
                    "tx_block_timestamp": str(10**18 + number),
                    "tx_index": 0,
                }
                for number, tx_hash in enumerate(hashes)
            ][::-1]
            return httpx.Response(200, json={"account_txs": rows, "txs_count": len(rows)})
        known = [documents[h] for h in body["tx_hashes"] if h in documents]
        return httpx.Response(200, json={"transactions": known})

    return httpx.MockTransport(answer), paths


def connected(transport: Any) -> lk.Ledger:
    """Connect to a network with a Transactions API alone."""
    url = "http://127.0.0.1:1/tx"
    return lk.connect("lab", transport=transport, transactions_url=url, make_default=False)


@pytest.mark.usefixtures("local")
def test_a_failed_swap_is_not_a_success() -> None:
    """The index lists a success; the verdict is over all receipts, and the headline says why."""
    newest = lk.activity("ivan.near").iloc[0]
    listed = lk.account_transactions("ivan.near").set_index("tx_hash")

    assert (newest["tx_hash"], listed.loc[SWAP, "is_success"]) == (SWAP, True)
    assert newest["verdict"] == "succeeded_with_failed_receipts"
    assert newest["headline"].endswith(
        "the exchange panicked and the tokens came back (the contract is paused)."
    )
    assert (newest["method_name"], newest["counterparty_id"]) == ("ft_transfer_call", "dex.near")


@pytest.mark.usefixtures("local")
def test_changes_are_exact_and_their_texts_are_in_whole_tokens() -> None:
    """The change of NEAR is that of the balance, fees included; tokens have their symbols."""
    frame = lk.activity("ivan.near", limit=2)
    before, after = (
        int(lk.accounts("ivan.near", at=at)["balance"].iloc[0]) for at in (180000031, 180000040)
    )

    assert frame["near_change"][0] == after - before
    assert frame["token_changes"].tolist()[0] == {}
    assert frame["token_changes"][1]["nep141:gold.near"] == -120 * 10**6
    assert frame["amounts"][1] == "-0.0012 NEAR, -120 GOLD, +1.50 wNEAR"
    raw = lk.activity("ivan.near", limit=2, metadata=False)
    assert "-120,000,000 units of gold.near" in raw["amounts"][1]


@pytest.mark.usefixtures("local")
def test_the_newest_come_first_for_each_account() -> None:
    """The order is that of the accounts, and each one's newest transactions are on top."""
    frame = lk.activity(["alice.near", "ivan.near"], limit=3)
    listed = [lk.account_transactions(a)["tx_hash"] for a in ("alice.near", "ivan.near")]

    expected = [tx_hash for hashes in listed for tx_hash in hashes[:-4:-1]]
    assert frame["tx_hash"].tolist() == expected
    assert frame.attrs["schema"] == "activity"
    assert list(frame.columns) == lk.schema("activity")["name"].tolist()
    assert lk.activity("nobody.near").empty


@pytest.mark.usefixtures("local")
def test_an_unknown_reward_leaves_the_change_unknown() -> None:
    """A contract earns a part of the gas, which needs rules that no document contains."""
    frame = lk.activity("gold.near", limit=1)

    assert frame["near_change"].isna().tolist() == [True]
    assert frame["amounts"][0] == "unknown change of NEAR"


@recorded
def test_a_relayer_paid_what_the_recorded_document_burnt() -> None:
    """The relayer's change is the burnt gas of all outcomes; the sender is at the other end."""
    [document] = json.loads((SAMPLES / "delegate_small.json").read_bytes())["transactions"]
    outcomes = [document["execution_outcome"]] + [
        receipt["execution_outcome"] for receipt in document["receipts"]
    ]
    burnt = sum(int(outcome["outcome"]["tokens_burnt"]) for outcome in outcomes)
    tx_hash = document["transaction"]["hash"]
    transport, paths = served({tx_hash: document}, [tx_hash])

    with connected(transport) as ledger:
        row = lk.activity(RELAYER, metadata=False, ledger=ledger).iloc[0]

    assert row["near_change"] == -burnt
    assert (row["counterparty_id"], row["method_name"]) == ("manhcoi83.tg", "l2_claim")
    assert row["verdict"] == "fully_succeeded"
    assert paths == ["/tx/v0/account", "/tx/v0/transactions"]


@recorded
def test_a_transaction_that_could_not_be_read_stays_a_row() -> None:
    """Its time and hash are known, its verdict is missing, and the error names it."""
    [document] = json.loads((SAMPLES / "delegate_small.json").read_bytes())["transactions"]
    tx_hash = document["transaction"]["hash"]
    transport, _ = served({tx_hash: document}, [tx_hash, LOST])

    with connected(transport) as ledger:
        frame, failed = lk.activity(RELAYER, metadata=False, on_error="collect", ledger=ledger)
        with pytest.raises(errors.UnknownTransactionError, match=LOST):
            lk.activity(RELAYER, metadata=False, ledger=ledger)

    assert frame["tx_hash"].tolist() == [LOST, tx_hash]
    unknown = ["headline", "verdict", "amounts", "near_change", "token_changes"]
    assert frame.loc[0, unknown].isna().all()
    assert frame["time"][0] == pd.Timestamp(10**18 + 1, tz="UTC")
    assert failed[["subject", "error"]].values.tolist() == [[LOST, "UnknownTransactionError"]]


@pytest.mark.parametrize(("limit", "n_requests"), [(20, 2), (21, 3), (41, 4)])
def test_twenty_transactions_cost_one_request(limit: int, n_requests: int) -> None:
    """One request lists them, and each twenty documents are one more."""
    hashes = [f"{LOST[:-2]}{a}{b}" for a in "23456789" for b in "23456789"]
    transport, paths = served({}, hashes)

    with connected(transport) as ledger:
        frame, _ = lk.activity(RELAYER, limit=limit, on_error="collect", ledger=ledger)

    assert (len(frame), len(paths)) == (limit, n_requests)


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": 1_001}, {"metadata": "yes"}])
def test_a_malformed_argument_is_named(options: dict[str, Any]) -> None:
    """Nothing is sent for an argument that is not valid."""
    transport, paths = served({}, [])
    with connected(transport) as ledger, pytest.raises(errors.InvalidRequestError) as caught:
        UNTYPED.activity(RELAYER, **options, ledger=ledger)
    assert (caught.value.field, paths) == (next(iter(options)), [])
