"""
Sending to the embedded ledger: over HTTP with latency and faults, and in process with one key.

Every request takes 200 ms, and one in twenty fails: refused, rate limited, cut short, or lost
before or after the node has read it. Target: each of 1,000 transfers is applied exactly once,
and all sums are exact; the times have no target. Then 500 transfers from one key over 16
threads, in process.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
from _verdict import finish, say

import ledgerkit as lk
from ledgerkit.localnet import open_world

TRANSFERS = 1_000
ONE_KEY = 500
THREADS = 16
LATENCY_S = 0.2
FAULTY = 0.05
SENDERS = 20
RECEIVER = "erin.near"
CROWD = 200
NEAR = 10**24
FAULTS = (
    "status=503",
    "status=500",
    "status=429; retry-after=1",
    "html",
    "drop=before",
    "drop=after",
    "truncate=20",
)


class Late(httpx.BaseTransport):
    """An HTTP transport that requests latency and faults by a header."""

    def __init__(self) -> None:
        limits = httpx.Limits(max_connections=2 * THREADS)
        self._inner = httpx.HTTPTransport(limits=limits)
        self._random = random.Random(6)
        self._lock = threading.Lock()
        self.seen: Counter[str] = Counter()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, one in twenty with a fault."""
        with self._lock:
            failing = self._random.random() < FAULTY
            fault = self._random.choice(FAULTS) if failing else ""
            self.seen.update(["requests", fault] if fault else ["requests"])
        request.headers["x-ledgerkit-fault"] = f"latency={LATENCY_S}; {fault}".rstrip("; ")
        return self._inner.handle_request(request)


def send_all(
    ledger: lk.Ledger, receiver_id: str, senders: dict[str, str]
) -> tuple[list[lk.Submission], float]:
    names = list(senders)

    def send(number: int) -> lk.Submission:
        name = names[number % len(names)]
        return lk.transfer(
            receiver_id, f"{number} yocto", signer_id=name, key=senders[name], ledger=ledger
        )

    begin = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        sent = list(pool.map(send, range(1, TRANSFERS + 1)))
    return sent, time.perf_counter() - begin


def fees(sent: lk.Submission) -> int:
    result = lk.tx(sent.tx_hash, sent.signer_id, ledger=sent.ledger)
    outcomes = [result["transaction_outcome"], *result["receipts_outcome"]]
    return sum(int(outcome["outcome"]["tokens_burnt"]) for outcome in outcomes)


def over_http() -> None:
    world = open_world("crowd", size=CROWD)  # the served world has the same keys
    keys = {name: key for name, key in world.keys().items() if (world.balance(name) or 0) > NEAR}
    receiver, *names = list(keys)[: SENDERS + 1]
    command = [sys.executable, "-m", "ledgerkit", "serve", "--port", "0"]
    command += ["--world", "crowd", "--size", str(CROWD)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split(" on ")[1].split(" ")[0]
        try:
            report(url, receiver, {name: keys[name] for name in names})
        finally:
            server.terminate()


def balances(ids: list[str], ledger: lk.Ledger) -> dict[str, int]:
    frame = lk.accounts(ids, at="final", ledger=ledger)
    return dict(zip(frame["account_id"], frame["balance"], strict=True))


def report(url: str, receiver: str, senders: dict[str, str]) -> None:
    late = Late()
    retries = lk.RetryPolicy(attempts=10, total_s=120)
    options: dict[str, Any] = {"rpc_url": url, "api_url": f"{url}/api", "retries": retries}
    options["in_flight"] = 2 * THREADS
    direct = lk.connect("served", **options)
    before = balances([*senders, receiver], direct)
    sent, took = send_all(lk.connect("served", transport=late, **options), receiver, senders)
    resumed = [lk.resume(tx.tx_hash, tx.signer_id, ledger=direct) for tx in sent]
    succeeded = [tx.wait("final", 60).fully_succeeded for tx in resumed]
    after = balances([*senders, receiver], direct)
    gained = after[receiver] - before[receiver]
    paid = sum(before[name] - after[name] for name in senders)
    spent = gained + sum(map(fees, resumed))
    print(f"{TRANSFERS:,} transfers from {len(senders)} keys over {THREADS} threads, over HTTP")
    print(f"  {'seconds':<28}{took:>12.1f}   {TRANSFERS / took:.0f} a second")
    for name, count in late.seen.most_common():
        print(f"  {name:<28}{count:>12,}")
    print(f"  {'fully succeeded, final':<28}{succeeded.count(True):>12,}")
    hashes, amount = len({tx.tx_hash for tx in sent}), sum(range(1, TRANSFERS + 1))
    print(f"  {'hashes':<28}{hashes:>12,}")
    print(f"  {'yocto sent, and arrived':<28}{amount:>12,} = {gained:,}")
    print(f"  {'yocto paid, sent and burnt':<28}{paid:,} = {spent:,}")
    once = succeeded == [True] * TRANSFERS and hashes == TRANSFERS
    figure = f"{succeeded.count(True):,} succeeded, {hashes:,} hashes"
    say(f"late and faulty: each of {TRANSFERS:,} transfers applied exactly once", figure, met=once)
    off = abs(gained - amount) + abs(paid - spent)
    say("late and faulty: all sums exact", f"{off:,} yocto off", met=off == 0)


def one_key() -> None:
    ledger = lk.connect("local")
    before = ledger.world.balance(RECEIVER) or 0
    begin = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        sends = range(1, ONE_KEY + 1)
        sent = list(
            pool.map(lambda n: lk.transfer(RECEIVER, f"{n} yocto", signer_id="alice.near"), sends)
        )
    took = time.perf_counter() - begin
    ledger.world.settle()
    arrived = (ledger.world.balance(RECEIVER) or 0) - before
    print(f"{ONE_KEY} transfers from one key over {THREADS} threads, in process")
    print(f"  {'seconds':<28}{took:>12.1f}   {ONE_KEY / took:.0f} a second")
    print(f"  {'hashes':<28}{len({tx.tx_hash for tx in sent}):>12,}")
    print(f"  {'yocto sent, and arrived':<28}{sum(sends):>12,} = {arrived:,}")
    off = abs(arrived - sum(sends))
    say(f"one key: the sum of {ONE_KEY} transfers exact", f"{off:,} yocto off", met=off == 0)


def main() -> None:
    over_http()
    one_key()
    finish()


if __name__ == "__main__":
    main()
