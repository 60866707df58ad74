"""Waiting by polling in logical time, as clients that know nothing of it do: with plain HTTP."""

from __future__ import annotations

import base64
from itertools import count
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from ledgerkit.localnet import open_world
from ledgerkit.protocol import (
    AccessKey,
    AccountId,
    AddKey,
    FullAccess,
    SecretKey,
    Transaction,
    Transfer,
)
from tests.local_transport import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.localnet import World
    from ledgerkit.protocol import Action

N = 10**24
NEW_ID = "a" * 64  # a transfer creates it
HEAD = {"finality": "optimistic"}
MAX_POLLS = 12  # a loop that needs more does not end


class Poller:
    """A client with nothing but HTTP."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._client = httpx.Client(transport=LocalTransport(world), base_url="http://ledger.test")
        self._ids = count(1)

    def call(self, method: str, params: Any) -> Any:
        """Call a JSON-RPC method, with another id each time; return the result or the error."""
        body = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        answer = self._client.post("/", json=body).json()
        return answer["result"] if "result" in answer else answer["error"]

    def get(self, path: str) -> Any:
        response = self._client.get(path, follow_redirects=True)
        return response.json() if response.content else None

    def post(self, path: str, body: Any) -> Any:
        return self._client.post(path, json=body).json()

    def send(
        self,
        action: Action = Transfer(N),  # noqa: B008 - it is frozen
        wait_until: str = "EXECUTED_OPTIMISTIC",
        receiver_id: str = NEW_ID,
    ) -> str:
        """Send an action as `near`; return the transaction's hash."""
        key, head = SecretKey.from_text(self.world.keys()["near"]), self.world.chain.head
        tx = Transaction(
            AccountId("near"),
            key.public_key,
            head.height * 10**6 - 1,
            AccountId(receiver_id),
            head.hash,
            (action,),
        )
        signed = base64.b64encode(tx.sign(key).encode()).decode()
        self.call("send_tx", {"signed_tx_base64": signed, "wait_until": wait_until})
        return str(tx.hash)

    def balance(self, finality: str) -> int:
        """Read the new account's balance; 0 before it exists."""
        query = {"request_type": "view_account", "account_id": NEW_ID, "finality": finality}
        return int(self.call("query", query).get("amount", 0))


def until(reached: Callable[[], bool]) -> int:
    """Repeat a read until it is True; return how often that was."""
    for polls in range(1, MAX_POLLS + 1):
        if reached():
            return polls
    raise AssertionError(f"the answer is the same after {MAX_POLLS} polls")


@pytest.fixture
def poller() -> Poller:
    """Open a client of a small world."""
    world = open_world("empty")
    world.advance(3)
    return Poller(world)


@pytest.mark.parametrize("wait_until", ["NONE", "INCLUDED", "EXECUTED_OPTIMISTIC", "FINAL"])
@pytest.mark.parametrize("finality", ["optimistic", "near-final", "final"])
def test_an_account_read_again_and_again(poller: Poller, wait_until: str, finality: str) -> None:
    """A transfer shows at any finality, whatever level its sender waited for."""
    poller.send(wait_until=wait_until)
    until(lambda: poller.balance(finality) == N)


def test_blocks_by_finality_and_status(poller: Poller) -> None:
    """The final block and the head of `status` pass the block of a sent transaction."""
    poller.send()
    head = poller.world.chain.head.height

    def final_height() -> int:
        height: int = poller.call("block", {"finality": "final"})["header"]["height"]
        return height

    def latest_height() -> int:
        height: int = poller.call("status", [])["sync_info"]["latest_block_height"]
        return height

    assert (final_height(), latest_height()) == (head - 1, head + 2)  # a block each
    assert until(lambda: final_height() >= head) == 1


def test_the_page_of_the_status(poller: Poller) -> None:
    """`GET /status` makes time pass as the method does."""
    poller.send()
    head = poller.world.chain.head.height
    pages = [poller.get("/status")["sync_info"]["latest_block_height"] for _ in range(3)]
    assert pages == [head + 1, head + 2, head + 3]


@pytest.mark.parametrize("method", ["tx", "EXPERIMENTAL_tx_status"])
def test_a_transaction_polled_at_a_level_that_it_has_reached(poller: Poller, method: str) -> None:
    """The level in the answer goes up to FINAL, though each request returns at once."""
    params = {"tx_hash": poller.send(), "sender_account_id": "near"}
    until(lambda: poller.call(method, params)["final_execution_status"] == "FINAL")


def test_an_index_that_is_behind() -> None:
    """The REST API and the services show what happened, however far behind the chain they are."""
    poller = Poller(open_world("empty", indexer_lag=4, balance_lag=2))
    new_key = SecretKey.generate().public_key
    tx_hash = poller.send(AddKey(new_key, AccessKey(0, FullAccess())), receiver_id="near")
    until(lambda: "near" in poller.get(f"/api/v1/public_key/{new_key}")["account_ids"])
    found = poller.post("/transactions/v0/transactions", {"tx_hashes": [tx_hash]})
    assert len(found["transactions"]) == 1
    height = poller.world.chain.head.height
    other = poller.send()
    read = "/transactions/v0/transactions", {"tx_hashes": [other]}
    until(lambda: len(poller.post(*read)["transactions"]) == 1)
    until(lambda: poller.get("/blocks/v0/last_block/final")["block"]["header"]["height"] > height)


def test_a_chain_at_rest_stands_still(poller: Poller) -> None:
    """Once all is final, and where nothing was ever sent, reads produce no block."""

    def head_after_reads() -> int:
        for _ in range(5):
            poller.balance("final")
            poller.call("status", [])
            poller.get("/status")
        return poller.world.chain.head.height

    start = poller.world.chain.head.height
    assert head_after_reads() == start
    poller.send(wait_until="FINAL")
    end = head_after_reads()
    assert head_after_reads() == end
    assert poller.world.chain.final.height < end < start + 8


def test_reads_of_the_head_that_differ_produce_no_block(poller: Poller) -> None:
    """Only a repeated read of the head waits: a walk over many subjects sees one state."""
    poller.send()
    head = poller.world.chain.head.height
    for name in range(100):
        query = {"request_type": "view_account", "account_id": f"a{name}", **HEAD}
        poller.call("query", query)
    assert poller.world.chain.head.height == head
    poller.call("query", query)
    assert poller.world.chain.head.height == head + 1


def test_real_time_is_the_clocks() -> None:
    """With a clock, no read produces a block."""
    world = open_world("empty", real_time=True, block_time_ns=10**7)
    poller, head = Poller(world), world.chain.head
    poller.send(wait_until="NONE")
    for _ in range(5):
        poller.balance("final")
    assert world.chain.head is head
