"""
Requests and round trips of verbs that need several requests, at a host with latency.

Each verb runs once with a new connection to a new demo world; every request takes 100 ms. The
time divided by the latency is the number of round trips that the verb waits for, plus the work
of ledger and client.
"""

import statistics
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import httpx
from _verdict import finish, say

import ledgerkit as lk
from ledgerkit.localnet.worlds import open_world
from tests.local_transport import LocalTransport

LATENCY_S = 0.100
ROUNDS = 3
ACCOUNT, COLLECTION = "alice.near", "stamps.grace.near"


class Distant(httpx.BaseTransport):
    """The embedded ledger behind a latency, with a count of the requests."""

    def __init__(self, local: LocalTransport) -> None:
        self.local, self.world = local, local.world
        self.requests = 0
        self._lock = threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request after the latency."""
        with self._lock:
            self.requests += 1
        time.sleep(LATENCY_S)
        return self.local.handle_request(request)


class Case(NamedTuple):
    """A verb with its arguments, and the most round trips that it should wait for."""

    name: str
    run: Callable[[lk.Ledger], object]
    target: float


def cases() -> list[Case]:
    """List the verbs, with ids of the demo world."""
    with lk.connect("local") as ledger:
        summary, head = ledger.world.summary, ledger.world.chain.head
        swap = next(tx for tx in summary.transactions if tx.description == "a swap")
        key = next(a.secret_key for a in summary.accounts if a.account_id == ACCOUNT)
        blocks = lk.blocks(head.height - 40, head.height - 2, ledger=ledger)
    first, last = int(blocks["block_height"].iloc[0]), int(blocks["block_height"].iloc[-1])
    middle = blocks["time"].iloc[20]
    signer: dict[str, Any] = {"signer_id": ACCOUNT, "key": key}
    return [
        Case("accounts at a time", lambda on: lk.accounts(ACCOUNT, at=middle, ledger=on), 4.5),
        Case("nft_tokens", lambda on: lk.nft_tokens("uma.near", COLLECTION, ledger=on), 2.5),
        Case("history, 24 heights", lambda on: lk.history(ACCOUNT, first, last, ledger=on), 4.5),
        Case("trace", lambda on: lk.trace(swap.tx_hash, swap.signer_id, ledger=on), 2.3),
        Case("transfer, dry run", lambda on: transfer(on, dry_run=True, **signer), 2.5),
        Case("transfer", lambda on: transfer(on, **signer), 3.5),
    ]


def transfer(ledger: lk.Ledger, **options: Any) -> object:
    """Transfer 1 NEAR."""
    return lk.transfer("bob.near", "1 NEAR", ledger=ledger, **options)


def measure(case: Case) -> tuple[int, float]:
    """Run a verb with a new connection to a new world; return its requests and round trips."""
    distant = Distant(LocalTransport(open_world("demo")))
    url = "http://127.0.0.1:3030"
    with lk.connect("lab", rpc_url=url, api_url=f"{url}/api", transport=distant) as ledger:
        begin = time.perf_counter()
        case.run(ledger)
        took = time.perf_counter() - begin
    return distant.requests, took / LATENCY_S


def main() -> None:
    """Print the table, and compare the round trips with the targets."""
    print(f"| verb | requests | round trips of {LATENCY_S * 1e3:.0f} ms |\n|---|---|---|")
    for case in cases():
        figures = [measure(case) for _ in range(ROUNDS)]
        requests, round_trips = figures[0][0], statistics.median(trips for _, trips in figures)
        print(f"| {case.name} | {requests} | {round_trips:.1f} |", flush=True)
        claim = f"{case.name}: at most {case.target} round trips"
        say(claim, f"{round_trips:.1f}", met=round_trips <= case.target)
    finish()


if __name__ == "__main__":
    main()
