"""Children that are killed and continued, and the comparison of what they leave."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import threading
import time
from multiprocessing import forkserver
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

import ledgerkit as lk
from tools.campaigns import _killed

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext

    from tools.campaigns._campaign import Tally
    from tools.campaigns._killed import Work

MOST_KILLS = 12  # of one folder

Tables = dict[str, pd.DataFrame]


def fork_server(module: str) -> ForkServerContext:
    """Start the fork server anew, with a module that its children then need not import."""
    # One that another campaign started has not loaded what the children need.
    server: Any = forkserver
    server._forkserver._stop()  # noqa: SLF001 - it has no public way to end
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([module])
    return context


def tables(out: Path) -> Tables:
    """Read all tables, without the times at which rows were read, and without provenance."""
    if not (out / "manifest.json").exists():
        return {path.name: pd.read_pickle(path) for path in sorted(out.glob("*.pickle"))}  # noqa: S301 - written by a child
    collection = lk.open_collection(out)
    frames = {name: collection.pandas(name) for name in collection.tables}
    for frame in frames.values():
        frame.attrs.clear()
    return {
        name: frame.drop(columns="fetched_at", errors="ignore") for name, frame in frames.items()
    }


def differing(expected: Tables, found: Tables) -> list[str]:
    """Return the names of the tables that are missing or not equal."""
    return [
        name
        for name, frame in expected.items()
        if name not in found or not frame.equals(found[name])
    ]


class Children:
    """
    Child processes that do some work, and the kills so far.

    Parameters
    ----------
    folder
        The folder of all files.
    seed
        Chooses the times of the kills.
    tally
        Counts the kills and the comparisons.
    """

    def __init__(self, folder: Path, seed: int, tally: Tally) -> None:
        self.folder, self.tally, self.n_kills = folder, tally, 0
        self.luck = random.Random(seed)
        self._context = fork_server("tools.campaigns._killed")

    def finish(self, work: Work) -> tuple[Tables, float]:
        """Do some work in a child that is not killed; return its tables, and the seconds."""
        begin = time.monotonic()
        if code := self._exit_code(work):
            msg = f"{work} ended with exit code {code}"
            raise RuntimeError(msg)
        return tables(work.out), time.monotonic() - begin

    def survives(self, work: Work, worker_dies_after_s: float | None = None) -> bool:
        """Run a child, of which a worker may be killed; return True unless it was killed."""
        code = self._exit_code(work, worker_dies_after_s)
        if code not in (-signal.SIGKILL, -signal.SIGALRM):
            if code:
                self.tally.violate(f"{work} ended with exit code {code}")
            return True
        place = "a file operation" if code == -signal.SIGKILL else "a time"
        self._count(f"{work.verb} killed at {place}" + (", with workers" * bool(work.n_workers)))
        return False

    def _exit_code(self, work: Work, worker_dies_after_s: float | None = None) -> int:
        """Run a child, of which a worker may be killed; return its exit code."""
        child: Any = self._context.Process(target=_killed.run, args=(work, self.folder))
        child.start()
        if worker_dies_after_s is not None:
            timer = threading.Timer(worker_dies_after_s, self._kill_worker, [child.pid])
            timer.start()
            child.join()
            timer.cancel()
        child.join()
        code = child.exitcode
        child.close()
        return code or 0

    def _kill_worker(self, pid: int) -> None:
        """Kill a worker process below a child, if there is one."""
        # Each thread has a list: that of Dask's loop starts the workers.
        lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
        listed = " ".join(lists).split()
        for worker in self.luck.sample(listed, len(listed)):
            name = Path(f"/proc/{worker}/cmdline").read_bytes()
            if b"spawn_main" in name:
                os.kill(int(worker), signal.SIGKILL)
                self._count("a worker killed")
                return

    def _count(self, result: str) -> None:
        self.n_kills += 1
        self.tally.count(result)

    def compare(self, expected: Tables, out: Path) -> None:
        """Compare the tables of work that was killed with the expected ones, and remove them."""
        stored = tables(out)
        unequal = differing(expected, stored)
        leftovers = [path.name for path in out.rglob("*.tmp")]
        if unequal or leftovers:
            failed = stored["errors"]["message"].tolist()[:1] if "errors" in stored else []
            line = f"{out.name}, after {self.n_kills} kills: differing {unequal}, left {leftovers}"
            self.tally.violate(f"{line}, {failed}")
        else:
            self.tally.count("equal")
        shutil.rmtree(out)
