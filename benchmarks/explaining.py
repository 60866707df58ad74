"""
A thousand traces: explained, and their balance changes and transfers as frames.

The documents are those of the embedded ledger's transactions, repeated. The limit is the typed
decoding of the same documents: every outcome, gas profile and body, once, just before each of the
three in each round. Each round reads fresh traces, because a trace computes its parts once. Prints
CPU times, and the median of the rounds' ratios. Targets: each of the three takes at most three
times as long as the decoding.
"""

from __future__ import annotations

import gc
import json
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING

from _verdict import finish, say

import ledgerkit as lk
from ledgerkit.api.models.transactions import decode_transaction
from ledgerkit.tracing.trace import Trace
from ledgerkit.tracing.traces import Traces

if TYPE_CHECKING:
    from collections.abc import Callable

TRACES = 1_000
TARGET = 3.0
ROUNDS = 7


def documents() -> list[bytes]:
    """Return the results of the embedded ledger's transactions, as its node sends them."""
    ledger = lk.connect("local")
    head = ledger.rpc("status", {})["sync_info"]["latest_block_height"]
    results = []
    for height in range(180_000_000, head + 1):
        for tx_hash, trace in lk.trace_block(height, ledger=ledger).items():
            params = {"tx_hash": tx_hash, "sender_account_id": trace.signer_id}
            if trace.verdict != "pending":
                results.append(json.dumps(ledger.rpc("EXPERIMENTAL_tx_status", params)).encode())
    return (results * (TRACES // len(results) + 1))[:TRACES]


def decode_alone(whole: list[bytes]) -> None:
    """Decode all that a trace can read from documents, and drop it."""
    for data in whole:
        result = decode_transaction(data, request="a document")
        for part in (result.outcomes, result.executions, result.bodies):
            for _ in part.pieces() if part is not None else ():
                pass


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds of CPU time."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Measure and report."""
    whole = documents()

    def read() -> Traces:
        return Traces({str(at): Trace.from_json(data) for at, data in enumerate(whole)})

    ways: dict[str, Callable[[Traces], object]] = {
        "explain": lambda traces: [trace.explain() for trace in traces.values()],
        "balance_changes": lambda traces: traces.balance_changes,
        "transfers": lambda traces: traces.transfers,
    }
    taken: dict[str, list[float]] = {name: [] for name in ("decoding", "reading", *ways)}
    ratios: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        taken["reading"].append(seconds(read))
        for name, way in ways.items():
            traces = read()
            taken["decoding"].append(seconds(partial(decode_alone, whole)))
            taken[name].append(seconds(partial(way, traces)))
            ratios[name].append(taken[name][-1] / taken["decoding"][-1])
    size = sum(map(len, whole)) / len(whole)
    print(f"{len(whole):,} documents of {size / 1e3:.1f} kB, {ROUNDS} rounds, in ms")
    for name, times in taken.items():
        print(f"{name:16}{min(times) * 1e3:6.0f} to {max(times) * 1e3:4.0f}")
    for name, rounds in ratios.items():
        ratio = statistics.median(rounds)
        claim = f"{name} of {TRACES:,} traces: at most {TARGET:g} x the decoding"
        say(claim, f"{ratio:.1f}, {min(rounds):.1f} to {max(rounds):.1f}", met=ratio <= TARGET)
    finish()


if __name__ == "__main__":
    main()
