"""Statements from services that lose, repeat and misname things: nothing counts twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import ledgerkit as lk
from ledgerkit.block_data import transaction_documents
from ledgerkit.errors import LedgerError, TransportError
from ledgerkit.transport.settings import RetryPolicy
from tests.local_transport import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ledgerkit.localnet.world import World

    Edit = Callable[[dict[str, Any]], httpx.Response | None]

BOB = "bob.near"
SENT = 180000004  # bob sends 50 NEAR to a pool, which arrive in the next block
DOCUMENTS, ACCOUNT, TRANSFERS = "/v0/transactions", "/v0/account", "/v0/transfers"
METADATA, CHANGES = "ft_metadata", "EXPERIMENTAL_changes"


class Edited(LocalTransport):
    """A transport to a world some of whose responses are edited, by a part of their request."""

    def __init__(self, world: World, edits: dict[str, Edit]) -> None:
        super().__init__(world)
        self.edits = edits

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        target: bytes = request.extensions.get("target") or request.url.raw_path
        body = request.read()
        for part, edit in self.edits.items():
            if target.endswith(part.encode()) or part.encode() in body:
                document = json.loads(super().handle_request(request).read())
                return edit(document) or httpx.Response(200, json=document)
        return super().handle_request(request)


@pytest.fixture(scope="module")
def world() -> World:
    return lk.connect("local", make_default=False).world


def statement(world: World, *ends: int | None, **options: Any) -> lk.Statement:
    """Build a statement, bob's by default, from edited responses."""
    account_id, edits = options.pop("account_id", BOB), options.pop("edits", {})
    retries = RetryPolicy(attempts=1) if options.pop("fails", False) else None
    with lk.connect(
        "local", transport=Edited(world, edits), make_default=False, retries=retries
    ) as own:
        return lk.statement(account_id, *ends, ledger=own, progress=False, **options)


def sums(own: lk.Statement) -> dict[tuple[int, str], int]:
    """Return the change of each asset in each block."""
    changes: dict[tuple[int, str], int] = {}
    for entry in own.store:
        place = entry.block_height, entry.asset
        changes[place] = changes.get(place, 0) + entry.change
    return {place: change for place, change in changes.items() if change}


def hashes(own: lk.Statement) -> Iterator[str]:
    yield from dict.fromkeys(entry.tx_hash for entry in own.store if entry.tx_hash)


@pytest.mark.parametrize(
    "ends", [(None, None), (None, SENT + 1), (SENT + 1, None), (SENT + 1, SENT + 2)]
)
def test_the_transfers_of_a_lost_document_are_used(world: World, ends: tuple[int | None, ...]):
    """A listed transaction without a document: each amount stands in its block all the same."""
    whole = statement(world, *ends)
    for tx_hash in hashes(whole):

        def lose(page: dict[str, Any], tx_hash: str = tx_hash) -> None:
            page["transactions"] = [
                each for each in page["transactions"] if each["transaction"]["hash"] != tx_hash
            ]

        own = statement(world, *ends, edits={DOCUMENTS: lose})
        assert sums(own) == sums(whole)
        assert own.facts.gaps == []
        assert "unknown" not in {e.cause for e in own.store if e.tx_hash == tx_hash}
        assert any(tx_hash in note for note in own.facts.notes)


def test_a_transfer_without_its_transaction_is_not_counted_twice(world: World):
    """The service may not know the transaction of a receipt that a document has."""
    # Source: the table of fastnear/transfers-indexer, "sometimes our indexer is missing the
    # transaction hash".

    def forget(page: dict[str, Any]) -> None:
        for row in page["transfers"]:
            row["transaction_id"] = None

    for assets in (None, ["near"], ["stake:north.poolv1.near"]):
        own = statement(world, edits={TRANSFERS: forget}, assets=assets)
        assert list(own.store) == list(statement(world, assets=assets).store)
        assert own.facts.gaps == []


def test_a_transaction_that_is_listed_twice_is_read_once(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    """A hash at two places in the chain is one transaction, however far apart they are."""
    monkeypatch.setattr(transaction_documents, "_MAX_GROUP", 1)

    def repeat(page: dict[str, Any]) -> None:
        rows = page["account_txs"]
        page["account_txs"] = rows + [row | {"tx_block_height": SENT + 40} for row in rows[:1]]

    assert list(statement(world, edits={ACCOUNT: repeat}).store) == list(statement(world).store)


@pytest.mark.parametrize("path", [DOCUMENTS, METADATA])
def test_what_could_not_be_read_is_not_read_as_missing(world: World, path: str):
    """A failed request is an error, or a note: not a transaction or a symbol that is not there."""

    def unlist(page: dict[str, Any]) -> None:
        page.clear()
        page["account_txs"] = []

    def fail(_page: dict[str, Any]) -> httpx.Response:
        return httpx.Response(500, json="Internal server error (Clickhouse)")

    if path == DOCUMENTS:
        with pytest.raises(TransportError, match="HTTP 500"):
            statement(world, edits={ACCOUNT: unlist, path: fail}, fails=True)
    else:
        notes = statement(world, edits={path: fail}, fails=True).facts.notes
        assert "the symbol and decimals of gold.near could not be read" in notes


@pytest.mark.parametrize("status", [500, 400])
def test_a_gap_whose_block_could_not_be_read_is_no_unknown_cause(world: World, status: int):
    """While hosts fail the statement is an error; where none has the block a gap remains."""

    def fail(_page: dict[str, Any]) -> httpx.Response:
        return httpx.Response(status, json={"error": "no"})

    edits: dict[str, Edit] = {
        ACCOUNT: lambda page: page.update(account_txs=[], resume_token=None, txs_count=0),
        TRANSFERS: lambda page: page.update(transfers=[], resume_token=None),
        "/blocks/v0/block/180000004": fail,
        CHANGES: fail,
    }
    if status == 500:
        with pytest.raises(LedgerError):
            statement(world, SENT, SENT + 1, edits=edits, fails=True)
    else:
        (gap,) = statement(world, SENT, SENT + 1, edits=edits).facts.gaps
        assert (gap.asset, gap.stop_height) == ("near", SENT)
        assert gap.missing == sums(statement(world, SENT, SENT + 1))[SENT, "near"]


@pytest.mark.parametrize(
    "asset_id", ["foo:bar", "nep141:Not An Account!", "nep245:intents.near", "nep141:"]
)
def test_an_asset_of_an_unknown_kind_is_a_note(world: World, asset_id: str):
    """Its balance cannot be read, and its amount is of no other asset."""

    def rename(page: dict[str, Any]) -> None:
        row = page["transfers"][0]
        page["transfers"].append(row | {"asset_id": asset_id, "transfer_index": 10**6})
        page["transfers"][-1]["transaction_id"] = None
        page["transfers"].sort(key=lambda row: int(row["block_timestamp"]))

    own = statement(world, edits={TRANSFERS: rename})
    assert list(own.store) == list(statement(world).store)
    assert any(asset_id in note for note in own.facts.notes)


def test_a_transfer_above_the_newest_block_is_not_of_the_period(world: World):
    """The service may be ahead of the node, which does not know the block yet."""

    def advance(page: dict[str, Any]) -> None:
        page["transfers"][-1].update(block_height="180009999", transaction_id=None)

    own = statement(world, edits={TRANSFERS: advance})
    assert list(own.store) == list(statement(world).store)


def test_what_is_listed_but_never_moved_is_in_the_totals(world: World):
    """Stake with a pool, without a deposit in the period, is a balance of the account."""
    own = statement(world, SENT + 30)
    for pool in ("north", "south"):
        assert own.facts.opening[f"stake:{pool}.poolv1.near"]
        assert own.facts.closing[f"stake:{pool}.poolv1.near"]


def test_a_token_that_only_transfers_name_is_compared_with_its_balance(world: World):
    """Also if its transaction is listed, and its document says nothing of it."""

    def rename(page: dict[str, Any]) -> None:
        page["transfers"][0]["asset_id"] = "nep141:wrap.near"

    assert "nep141:wrap.near" not in statement(world).facts.closing
    assert statement(world, edits={TRANSFERS: rename}).facts.closing["nep141:wrap.near"] == 0


def test_tokens_of_pages_that_lead_back_are_not_followed_for_ever(world: World):
    """A service that sends the same two pages by turns is asked no further."""
    pages: list[dict[str, Any]] = []

    def alternate(page: dict[str, Any]) -> None:
        pages.append(page)
        assert len(pages) < 50
        page.update(txs_count=100, resume_token=str(len(pages)))
        rows = [
            {"account_id": BOB, "transaction_hash": digit * 32, "tx_block_height": height}
            for digit, height in (("2", SENT), ("3", SENT + 9))
        ]
        row = rows[len(pages) % 2] | {"tx_index": 0, "tx_block_timestamp": "1", "is_success": True}
        page["account_txs"] = [row]

    transport = ResumesAnywhere(world, {ACCOUNT: alternate})
    with lk.connect("local", transport=transport, make_default=False) as own:
        assert len(lk.account_transactions(BOB, ledger=own, progress=False)) <= 2
    assert len(pages) > 1


class ResumesAnywhere(Edited):
    """Edited responses, whatever the token of the request."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        target: bytes = request.extensions.get("target") or request.url.raw_path
        if not target.endswith(ACCOUNT.encode()):
            return super().handle_request(request)
        body = json.loads(request.read())
        body.pop("resume_token", None)
        plain = httpx.Request("POST", request.url, json=body)
        plain.extensions = request.extensions
        return super().handle_request(plain)


def test_a_node_that_lacks_a_transaction_leaves_a_note(world: World):
    """A profile that the document lacks and the node does not have is unknown: not an error."""
    # Source: nearcore, chain/jsonrpc/src/lib.rs, tx_status_fetch: for a transaction that a node
    # does not know, UNKNOWN_TRANSACTION is sent for the level NONE alone; other levels time out.

    def without_profiles(page: dict[str, Any]) -> None:
        for each in page["transactions"]:
            for executed in (each, *each["receipts"]):
                executed["execution_outcome"]["outcome"]["metadata"]["gas_profile"] = None

    def failed(status: int, cause: str) -> Edit:
        error = {"name": "HANDLER_ERROR", "cause": {"name": cause, "info": {}}, "code": -32000}
        error |= {"message": "Server error", "data": "none"}
        return lambda sent: httpx.Response(
            status, json={"jsonrpc": "2.0", "id": sent["id"], "error": error}
        )

    edits = {
        DOCUMENTS: without_profiles,
        '"wait_until":"NONE"': failed(200, "UNKNOWN_TRANSACTION"),
        '"tx_hash"': failed(408, "TIMEOUT_ERROR"),
    }
    own = statement(world, account_id="stamps.grace.near", edits=edits, fails=True)
    assert [note for note in own.facts.notes if note.startswith("an amount of transaction")]
