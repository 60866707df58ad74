"""
Work that is killed at any moment and repeated ends with the same rows as undisturbed work.

`collect`, `collect_blocks`, `diff`, `statements`, and `record` with `to_excel`, run in child
processes, which die before a file operation chosen at random (a file opened, flushed, renamed or
removed, a folder made or listed, half of a record written) or at a random time, without cleaning
up. The next child continues, also through refused requests and their repetition, until one
finishes. Then every table must be equal to that of a run that was never killed, in all rows and
their order, except for the times at which they were read.
"""

from __future__ import annotations

import hashlib
import tempfile
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from tools.campaigns._killed import SIDES, VERBS, Work
from tools.campaigns._killing import MOST_KILLS, Children

if TYPE_CHECKING:
    from tools.campaigns._campaign import Tally

COUNT = 1_000
SMALL = 5
EXPECTED = (
    "collect killed at a file operation",
    "collect_blocks killed at a file operation",
    "record killed at a file operation",
    "statements killed at a file operation",
    "equal",
)
MOST_OPERATIONS = 160  # before a child dies: about those of the whole work
FEWEST_OPERATIONS = 20  # that any of the work has
TIMED = 0.25  # the share of the children that die at a time


class Campaign(Children):
    """A folder with undisturbed results, and the kills so far."""

    def __init__(self, folder: Path, seed: int, tally: Tally) -> None:
        super().__init__(folder, seed, tally)
        self.finish(Work("collect_earlier", folder / SIDES[0], n_failures=3))
        self.undisturbed = {
            verb: self.finish(Work(verb, folder / f"{verb}-undisturbed")) for verb in VERBS
        }
        self.sides = self.digest_sides()
        n_rows = {
            verb: sum(map(len, frames.values())) for verb, (frames, _) in self.undisturbed.items()
        }
        tally.notes.append(", ".join(f"{verb}: {n:,} rows" for verb, n in n_rows.items()))

    def digest_sides(self) -> str:
        """Return a digest of the names and contents of the two collections that are compared."""
        total = hashlib.sha256()
        for path in sorted(path for name in SIDES for path in (self.folder / name).rglob("*")):
            total.update(str(path).encode() + (path.read_bytes() if path.is_file() else b""))
        return total.hexdigest()

    def disturb(self, verb: str, kills: int) -> None:
        """Repeat some work, killed at most so many times, until it ends; then compare."""
        out, last = self.folder / f"{verb}-disturbed", self.n_kills + kills
        while not self.survives(self.plan(verb, out, last)):
            pass
        while True:
            work = self.plan(verb, out, last)
            if self.survives(work._replace(n_failures=0, retry_failed=True)):
                break
        self.compare(self.undisturbed[verb][0], out)
        if self.digest_sides() != self.sides:
            self.tally.violate(f"{verb} changed the collections beside it")

    def plan(self, verb: str, out: Path, last: int) -> Work:
        """Plan a child that dies, unless there were enough kills."""
        work = Work(verb, out, n_failures=self.luck.choice((0, 0, 2, 5)))
        if self.n_kills >= last:
            return work
        if verb == "diff" or (out.exists() and self.luck.random() < TIMED):
            return work._replace(after_s=self.luck.uniform(0, 0.6) * self.undisturbed[verb][1])
        most = MOST_OPERATIONS if out.exists() else FEWEST_OPERATIONS  # the first child dies
        return work._replace(operation=self.luck.randint(1, most))


def run(count: int, seed: int, tally: Tally) -> None:
    """Kill so many children, of each verb in turn."""
    share = -(-count // len(VERBS))
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(Path(folder), seed, tally)
        for verb in cycle(VERBS):
            remaining = count - campaign.n_kills
            if remaining <= 0:
                break
            campaign.disturb(verb, min(remaining, campaign.luck.randint(1, MOST_KILLS), share))
