"""Round trips of verbs: requests that do not depend on each other are sent concurrently."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import httpx
import pandas as pd
import pytest

import ledgerkit as lk
from tests import world_copies
from tests.local_transport import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.localnet import World

LATENCY_S = 0.3  # requests of one round trip start within it, also on a busy machine


class Distant(httpx.BaseTransport):
    """The embedded ledger behind a latency, with the length of the longest chain of requests."""

    def __init__(self, local: LocalTransport) -> None:
        self.local, self.world = local, local.world
        self.round_trips = 0
        self._lock = threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request; it may depend on all that were answered before it began."""
        with self._lock:
            place = self.round_trips + 1
        time.sleep(LATENCY_S)
        response = self.local.handle_request(request)
        with self._lock:
            self.round_trips = max(self.round_trips, place)
        return response


def swap(world: World) -> tuple[str, str]:
    """Return hash and signer of a transaction with several receipts."""
    return next(
        (tx.tx_hash, tx.signer_id)
        for tx in world.summary.transactions
        if tx.description == "a swap"
    )


def send_options(world: World) -> dict[str, Any]:
    """Return the options of a verb that sends, for an account with a key."""
    account = next(a for a in world.summary.accounts if a.account_id == "alice.near")
    return {"signer_id": account.account_id, "key": account.secret_key}


def height(world: World, back: int) -> int:
    """Return a height below the final block."""
    return int(world.chain.final.height) - back


# The first call of `tx_status` finds out that this host has the other name only.
CASES: dict[str, tuple[int, Callable[[World, lk.Ledger], object]]] = {
    "trace": (3, lambda w, on: lk.trace(*swap(w), ledger=on)),
    "transfer, dry run": (
        1,
        lambda w, on: lk.transfer(
            "bob.near", "1 yocto", **send_options(w), dry_run=True, ledger=on
        ),
    ),
    "transfer": (3, lambda w, on: lk.transfer("bob.near", "1 yocto", **send_options(w), ledger=on)),
    "history of 24 heights": (
        2,
        lambda w, on: lk.history("alice.near", height(w, 40), height(w, 1), ledger=on),
    ),
    "accounts at a time": (
        3,
        lambda w, on: lk.accounts(
            "alice.near", at=pd.Timestamp(w.chain.timestamp_ns(height(w, 9)), tz="UTC"), ledger=on
        ),
    ),
    "nft_tokens": (2, lambda _, on: lk.nft_tokens("uma.near", "stamps.grace.near", ledger=on)),
}


@pytest.mark.parametrize("name", CASES)
def test_round_trips(name: str) -> None:
    """The longest chain of requests, each of which needs the answer to the one before it."""
    round_trips, run = CASES[name]
    distant = Distant(LocalTransport(world_copies.open_copy("demo")))
    with lk.connect("lab", transport=distant, in_flight=64) as ledger:
        run(distant.world, ledger)
    assert distant.round_trips == round_trips
