"""
Work that is killed at any moment and repeated ends with the same rows as undisturbed work.

`collect`, `collect_blocks`, `diff` and `statements` run in child processes, which die before a
file operation chosen at random (a file opened, flushed, renamed or removed, a folder made or
listed) or at a random time, without cleaning up. The next child continues, also through refused
requests and their repetition, until one finishes. Then every table must be equal to that of a run
that was never killed, in all rows and their order, except for the times at which they were read.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import random
import shutil
import signal
import tempfile
import time
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

import ledgerkit as lk
from tools.campaigns import _fork_server, _killed
from tools.campaigns._killed import Work

if TYPE_CHECKING:
    from tools.campaigns._tally import Tally

COUNT = 1_000
SMALL = 4
EXPECTED = (
    "collect killed at a file operation",
    "collect_blocks killed at a file operation",
    "statements killed at a file operation",
    "equal",
)
MOST_OPERATIONS = 160  # before a child dies: about those of the whole work
FEWEST_OPERATIONS = 20  # that any of the work has
MOST_KILLS = 12  # of one dataset
TIMED = 0.25  # the share of the children that die at a time


def outcome(work: Work, folder: Path) -> int:
    """Do some work in a child process; return its exit code."""
    context = multiprocessing.get_context("forkserver")
    child = context.Process(target=_killed.run, args=(work, folder))
    child.start()
    child.join()
    code = child.exitcode
    child.close()
    return code or 0


def finish(work: Work, folder: Path) -> Path:
    """Do some work in a child that is not killed; return its folder."""
    if code := outcome(work, folder):
        msg = f"{work} ended with exit code {code}"
        raise RuntimeError(msg)
    return work.out


def tables(out: Path) -> dict[str, pd.DataFrame]:
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


def digest(folder: Path) -> str:
    """Return a digest of the names and contents of all files of a folder."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        total.update(str(path).encode() + (path.read_bytes() if path.is_file() else b""))
    return total.hexdigest()


class Campaign:
    """A folder with undisturbed results, and the kills so far."""

    def __init__(self, folder: Path, seed: int, tally: Tally) -> None:
        self.folder, self.tally, self.n_kills = folder, tally, 0
        self.luck = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self.seconds: dict[str, float] = {}  # of undisturbed work
        finish(Work("collect_earlier", folder / _killed.SIDES[0], n_failures=3), folder)
        self.expected = {verb: self.undisturbed(verb) for verb in _killed.VERBS}
        self.sides = self.digest_sides()
        tally.notes.append(
            ", ".join(f"{verb}: {self.n_rows(verb):,} rows" for verb in self.expected)
        )

    def undisturbed(self, verb: str) -> dict[str, pd.DataFrame]:
        """Return the tables of work that is not killed."""
        begin = time.monotonic()
        out = finish(Work(verb, self.folder / f"{verb}-undisturbed"), self.folder)
        self.seconds[verb] = time.monotonic() - begin
        return tables(out)

    def n_rows(self, verb: str) -> int:
        """Count the rows of undisturbed work."""
        return sum(map(len, self.expected[verb].values()))

    def digest_sides(self) -> list[str]:
        """Return the digests of the two collections that are compared."""
        return [digest(self.folder / name) for name in _killed.SIDES]

    def disturb(self, verb: str, kills: int) -> None:
        """Repeat some work, killed at most so many times, until it ends; then compare."""
        out, last = self.folder / f"{verb}-disturbed", self.n_kills + kills
        while not self.is_finished(self.plan(verb, out, last)):
            pass
        while not self.is_finished(
            self.plan(verb, out, last)._replace(n_failures=0, retry_failed=True)
        ):
            pass
        stored = tables(out)
        differing = [
            name
            for name, frame in self.expected[verb].items()
            if name not in stored or not frame.equals(stored[name])
        ]
        leftovers = [path.name for path in out.rglob("*.tmp")]
        if differing or leftovers or self.digest_sides() != self.sides:
            line = f"{verb}, after {self.n_kills} kills: differing {differing}, left {leftovers}"
            self.tally.violate(line)
        else:
            self.tally.count("equal")
        shutil.rmtree(out)

    def plan(self, verb: str, out: Path, last: int) -> Work:
        """Plan a child that dies, unless there were enough kills."""
        work = Work(verb, out, n_failures=self.luck.choice((0, 0, 2, 5)))
        if self.n_kills >= last:
            return work
        if verb == "diff" or (out.exists() and self.luck.random() < TIMED):
            return work._replace(after_s=self.luck.uniform(0, 0.6) * self.seconds[verb])
        most = MOST_OPERATIONS if out.exists() else FEWEST_OPERATIONS  # the first child dies
        return work._replace(operation=self.luck.randint(1, most))

    def is_finished(self, work: Work) -> bool:
        """Run a child; return True unless it was killed."""
        code = outcome(work, self.folder)
        if code not in (-signal.SIGKILL, -signal.SIGALRM):
            if code:
                self.tally.violate(f"{work} ended with exit code {code}")
            return True
        self.n_kills += 1
        place = "a file operation" if code == -signal.SIGKILL else "a time"
        self.tally.count(f"{work.verb} killed at {place}")
        return False


def run(count: int, seed: int, tally: Tally) -> None:
    """Kill so many children, of each verb in turn."""
    _fork_server.restart("tools.campaigns._killed")
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(Path(folder), seed, tally)
        for verb in cycle(_killed.VERBS):
            if campaign.n_kills >= count:
                break
            remaining = count - campaign.n_kills
            campaign.disturb(
                verb,
                min(
                    remaining, campaign.luck.randint(1, MOST_KILLS), -(-count // len(_killed.VERBS))
                ),
            )
