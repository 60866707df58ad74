"""
Proofs: outcomes a second from block documents, and the proof of one trace.

The outcomes are those of recorded block 151,768,255 of mainnet (371 outcomes of 7 shards, with
their paths), decoded beforehand. Hashing an outcome into its leaf is measured, and following its
path to the root of its shard. The trace is the one of the demo world with the most receipts.
Prints medians of five rounds. Without the recorded block only the trace is measured.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from _verdict import finish, say

import ledgerkit as lk
from ledgerkit import proofs
from ledgerkit.proofs.light_client import decode_path
from tests import recorded_proofs as recorded

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS, REPEATS = 5, 20
TARGET = 100_000
BLOCK = "neardata_mainnet_151768255.json"


def seconds(work: Callable[[], object]) -> float:
    """Return the median seconds of CPU time of a task."""
    took = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        work()
        took.append(time.process_time() - begin)
    return statistics.median(took)


def measure_outcomes() -> None:
    """Hash and follow the outcomes of a block, many times."""
    shards = [each for name, each in recorded.shards() if name.startswith(BLOCK)]
    executions = [execution for shard in shards for execution in shard] * REPEATS
    if not executions:
        print("without the recorded block, outcomes are not measured")
        return
    ids = [execution["id"] for execution in executions]
    outcomes = [recorded.outcome(execution) for execution in executions]
    paths = [recorded.path(execution) for execution in executions]
    leaves = proofs.leaves(ids, outcomes)

    def follow() -> None:
        for leaf, path in zip(leaves, paths, strict=True):
            proofs.root_from(decode_path(path), leaf)

    rate = len(ids) / seconds(lambda: proofs.leaves(ids, outcomes))
    whole = len(ids) / seconds(lambda: proofs.root_of(leaves))
    print(f"leaves: {rate:,.0f} outcomes a second; roots of whole shards: {whole:,.0f} leaves")
    print(f"paths, each alone: {len(ids) / seconds(follow):,.0f} outcomes a second")
    both = 1 / (1 / rate + 1 / whole)
    met = both >= TARGET
    say(f"{TARGET:,} outcomes a second of whole shards", f"{both:,.0f}", met=met)


def measure_trace() -> None:
    """Prove the largest trace of the demo world."""
    with lk.connect("local", make_default=False) as ledger:
        ledger.world.advance(5)
        transactions = ledger.world.summary.transactions
        traces = [lk.trace(each.tx_hash, each.signer_id, ledger=ledger) for each in transactions]
        trace = max(traces, key=lambda each: len(each.receipts))
        trace.verify()
        took = seconds(trace.verify)
    print(f"a trace of {len(trace.receipts)} receipts: {took * 1e3:.1f} ms")


def main() -> None:
    """Measure both."""
    measure_outcomes()
    measure_trace()
    finish()


if __name__ == "__main__":
    main()
