"""
The work of one child process of the campaigns of kills, and the ways in which it dies.

The fork server imports this module once, with the worlds, so that a child starts in
milliseconds.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import warnings
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

import ledgerkit as lk
from ledgerkit.localnet.worlds import open_world
from ledgerkit.transport import recording_files

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

# Audit events are raised before the operation, with the path as their first argument.
OPERATIONS = {"open", "os.rename", "os.remove", "os.mkdir", "os.listdir", "os.scandir"}
EARLIER, CROWD = (open_world("crowd", size=120, seed=seed) for seed in (1, 0))
DEMO = open_world("demo")
FIRST, STOP = DEMO.chain.final.height - 23, DEMO.chain.final.height + 1
DEMO_IDS = ("alice.near", "bob.near", "ivan.near", "grace.near")
SIDES = ("before", "collect-undisturbed")
UNTYPED: Any = lk  # its arguments are typed by their names
# What the children would import, in addition to what this module does.
for name in "collect collect_blocks diff open_collection record statements to_excel trace".split():
    getattr(lk, name)
for name in "aiohttp duckdb filelock openpyxl xlsxwriter".split():
    import_module(name)
for name in ("pandas_compat", "parquet"):
    import_module(f"pyarrow.{name}")


class Work(NamedTuple):
    """
    The work of a child, and when it dies.

    Parameters
    ----------
    verb
        One of `WORKS`.
    out
        The folder to write to.
    operation
        The number of the file operation before which the child gets SIGKILL; 0 is none.
    after_s
        The seconds after which it gets SIGALRM, which it does not handle; 0 is never.
    n_failures
        How many requests fail first.
    retry_failed
        Whether failed subjects are requested again.
    urls, heights
        The addresses of a node and of block documents, and the ends of the range to collect from
        them.
    n_workers
        The number of processes to collect it with; 0 is this one.
    """

    verb: str
    out: Path
    operation: int = 0
    after_s: float = 0.0
    n_failures: int = 0
    retry_failed: bool = False
    urls: tuple[str, str] = ("", "")
    heights: tuple[int, int] = (0, 0)
    n_workers: int = 0


def account_ids() -> list[str]:
    """Return the ids to collect, a malformed one and a repeated one among them."""
    ids = [f"person{number:07}.near" for number in range(120)]
    return [*ids[:40], "NOT AN ID", ids[7], *ids[40:]]


def options(work: Work, world: Any) -> dict[str, Any]:
    """Return the options of a verb, with a ledger of which some requests fail."""
    ledger = lk.connect("local", world=world, in_flight=4, retries=lk.RetryPolicy(attempts=1))
    if work.n_failures:
        # `collect_blocks` reads the final height first, `statements` both ends of the period.
        ledger.faults.add("latency=0; times=2")
        ledger.faults.add(f"status=503; times={work.n_failures}")
    shared = {"out": work.out, "progress": False, "ledger": ledger}
    return {**shared, "retry_failed": work.retry_failed}


def collect(work: Work, world: Any = CROWD) -> None:
    UNTYPED.collect(account_ids(), part_size=25, **options(work, world))


def collect_earlier(work: Work) -> None:
    """Collect the same accounts with other holdings."""
    collect(work, EARLIER)


def collect_blocks(work: Work) -> None:
    """Collect blocks by RPC: of documents there is a campaign of its own."""
    UNTYPED.collect_blocks(FIRST, STOP, source="rpc", part_size=6, **options(work, DEMO))


def collect_documents(work: Work) -> None:
    rpc_url, blocks_url = work.urls
    ledger = lk.connect("lab", rpc_url=rpc_url, blocks_url=blocks_url, in_flight=4)
    shared: dict[str, Any] = {"out": work.out, "progress": False, "ledger": ledger}
    UNTYPED.collect_blocks(*work.heights, part_size=100, workers=work.n_workers or None, **shared)


def statements(work: Work) -> None:
    ids = [*DEMO_IDS, "NOT AN ID", DEMO_IDS[0]]
    UNTYPED.statements(ids, stop=STOP, **options(work, DEMO))


def diff(work: Work) -> None:
    """Compare two collections beside the folder, and store the changes."""
    work.out.mkdir(exist_ok=True)
    before, after = (work.out.parent / name for name in SIDES)
    for view in ("accounts", "ft"):
        difference = lk.diff(before, after, view)
        for name in ("changes", "not_compared"):
            frame = getattr(difference, name)
            frame.attrs.clear()
            frame.to_pickle(work.out / f"{view}-{name}.pickle")


def record(work: Work) -> None:
    """Extend a recording, and write what it answers to an Excel file and a table."""
    case, book = work.out / "case.lk", work.out / "ft.xlsx"
    work.out.mkdir(exist_ok=True)
    for path in work.out.glob(".*.tmp"):
        path.unlink()  # a process that was killed leaves what had no name yet
    if case.exists() and not case.stat().st_size:
        case.unlink()  # it was killed before anything was recorded
    if book.exists():
        pd.read_excel(book)  # raises unless it is whole
    mode: Any = "extend" if case.exists() else "new"
    ids = account_ids()[:20]
    with lk.connect("local", world=CROWD), lk.record(case, mode=mode):
        for account_id in ids:
            lk.ft(account_id)
    with lk.connect(case):
        frame = pd.concat([lk.ft(account_id) for account_id in ids], ignore_index=True)
    lk.to_excel(frame, book)
    frame.attrs.clear()
    frame.to_pickle(work.out / "ft.pickle")


VERBS = {
    "collect": collect,
    "collect_blocks": collect_blocks,
    "diff": diff,
    "record": record,
    "statements": statements,
}
WORKS = {**VERBS, "collect_earlier": collect_earlier, "collect_documents": collect_documents}


def die_at(number: int) -> None:
    """Kill this process before a file operation below the folder of temporary files."""
    numbers = count(1)
    patched: Any = os
    fsync, write_all = os.fsync, recording_files._write_all  # noqa: SLF001 - has no audit event

    def operate(event: str, arguments: tuple[Any, ...]) -> None:
        if event in OPERATIONS and str(arguments[0]).startswith(tempfile.gettempdir()):
            step()

    def step() -> None:
        if next(numbers) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def synchronize(file: int) -> None:
        step()
        fsync(file)

    def write(file: BinaryIO, data: bytes) -> None:
        step()
        if file.tell():  # the header is small
            write_all(file, data[: len(data) // 2])
            step()
            data = data[len(data) // 2 :]
        write_all(file, data)

    patched.fsync = synchronize  # it has no audit event
    recording_files._write_all = write  # noqa: SLF001 - as above
    sys.addaudithook(operate)


def run(work: Work, temporary: Path) -> None:
    """Do the work, and die in the middle if so planned."""
    warnings.simplefilter("ignore")  # failed subjects
    tempfile.tempdir = str(temporary)
    if work.operation:
        die_at(work.operation)
    signal.setitimer(signal.ITIMER_REAL, work.after_s)
    WORKS[work.verb](work)
    lk.disconnect()
    signal.setitimer(signal.ITIMER_REAL, 0)
