"""
Threads that meet at a type that nothing has decoded yet do not crash the process.

Each case is a fresh process: a fork of one that has imported the libraries, but not ledgerkit.
Its threads switch every microsecond, and each of them does the same things for the first time,
in another order: reads traces, blocks, keys and rules of a saved chain, opens a collection and
an embedded ledger. The process must end with exit code 0.
"""

from __future__ import annotations

import multiprocessing
import random
import signal
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.campaigns._campaign import Tally

COUNT = 1_000
SMALL = 2
EXPECTED = ("ended well",)
THREADS = 6
TRACES = 12
SWITCH_S = 1e-6
LONGEST_S = 120
LIBRARIES = ["httpx", "msgspec", "numpy", "pandas", "pyarrow.parquet", "tqdm", "nacl.signing"]


def write_documents(folder: str) -> None:
    """Save a trace and a collection, in a process that ends before the others begin."""
    import ledgerkit as lk

    with lk.connect("local") as ledger:
        for number, sent in enumerate(ledger.world.summary.transactions[:TRACES]):
            trace = lk.trace(sent.tx_hash, sent.signer_id, ledger=ledger)
            trace.save(Path(folder, f"{number}.json"))
        lk.collect(["alice.near"], "ft", Path(folder, "ft"), ledger=ledger, progress=False)


def jobs(folder: Path) -> list[Callable[[], Any]]:
    import ledgerkit as lk

    def trace() -> None:
        for number in range(TRACES):
            lk.Trace.load(folder / f"{number}.json").explain()

    def embedded() -> None:
        with lk.connect("local", world="empty") as ledger:
            lk.accounts("near", ledger=ledger)
            lk.keys("near", ledger=ledger)
            lk.block("final", ledger=ledger)
            lk.validators(ledger=ledger)

    def rules() -> None:
        with lk.connect("local", world="empty") as ledger:
            lk.protocol_config(ledger=ledger)
            lk.transfer("aa", "1 NEAR", signer_id="near", dry_run=True, ledger=ledger)

    def collection() -> None:
        lk.open_collection(folder / "ft").pandas("ft")

    return [trace, embedded, rules, collection]


def case(folder: Path, seed: int) -> None:
    """Run the jobs in threads that begin together."""
    sys.setswitchinterval(SWITCH_S)
    tasks = jobs(folder)

    def work(number: int) -> None:
        order = tasks.copy()
        random.Random(seed * THREADS + number).shuffle(order)
        for task in order:
            task()

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))


def run(count: int, seed: int, tally: Tally) -> None:
    """Run the processes, one on each core."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LIBRARIES)
    with tempfile.TemporaryDirectory() as name:
        writer = multiprocessing.get_context("spawn").Process(target=write_documents, args=[name])
        writer.start()
        writer.join()
        for number in range(count):
            child = context.Process(target=case, args=[Path(name), seed + number])
            child.start()
            child.join(LONGEST_S)
            if child.exitcode is None:
                child.kill()
                child.join()
            code = child.exitcode or 0
            if code == 0:
                tally.count("ended well")
            else:
                end = signal.Signals(-code).name if code < 0 else f"exit code {code}"
                tally.violate(f"process {seed + number} ended by {end}")
