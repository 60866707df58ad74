"""One run of a collection: what is left is asked and stored, and what failed before again."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ledgerkit import client
from ledgerkit.collecting import manifest as collecting_manifest
from ledgerkit.collecting import part_writer, resume
from ledgerkit.collecting.part_files import now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ledgerkit.client import Ledger
    from ledgerkit.collecting.dask_engine import Spread
    from ledgerkit.collecting.manifest import Commit, Manifest
    from ledgerkit.collecting.part_writer import Job
    from ledgerkit.collecting.sources import Subject
    from ledgerkit.collecting.storage import Folder

MOST_IN_PART = 10**6


class Subjects(Protocol):
    """All that a run is to ask about."""

    @property
    def what(self) -> str:
        """What they are called."""
        ...

    @property
    def total(self) -> int | None:
        """How many there are, where that is known."""
        ...

    def left(self, commits: Sequence[Commit]) -> Iterable[Subject]:
        """Give those that are not stored."""
        ...

    def stored(self, commits: Sequence[Commit]) -> int:
        """Count those that are stored."""
        ...

    def within(self, commits: Sequence[Commit]) -> Sequence[Commit]:
        """Choose the stretches in which some of them are."""
        ...


@dataclass(frozen=True)
class Run:
    """
    One run.

    Parameters
    ----------
    job
        What is asked, and where it is stored.
    wanted
        The run as its manifest tells it.
    ledger
        Of whom it is asked.
    subjects
        About whom.
    spread
        Who asks; None is this process.
    progress
        Whether a bar shows.
    """

    job: Job
    wanted: Manifest
    ledger: Ledger
    subjects: Subjects
    spread: Spread | None
    progress: bool

    def go(self, *, retry_failed: bool) -> None:
        """Ask about what is left and, where asked to, about what failed before."""
        folder = self.job.folder
        manifest = collecting_manifest.begin(folder, self.wanted)
        with collecting_manifest.run(folder):
            self._go(manifest, retry_failed=retry_failed)
        _warn(folder, self.subjects.what)

    def _go(self, manifest: Manifest, *, retry_failed: bool) -> None:
        """Ask, where no earlier run is at work any more."""
        folder = self.job.folder
        stored = collecting_manifest.commits(folder)
        collecting_manifest.sweep(folder, manifest, stored)
        before = resume.failed(self.subjects.within(stored)) if retry_failed else []
        with self._bar(stored, before) as bar:
            for _ in self._written(self.subjects.left(stored), bar.update):
                bar.refresh()
            found = collecting_manifest.commits(folder)
            collecting_manifest.finish(
                folder, sum(commit.stop - commit.start for commit in found), now()
            )
            for _ in self._retried(before, bar.update):
                bar.refresh()

    def _written(self, left: Iterable[Subject], done: Callable[[int], object]) -> Iterator[Commit]:
        """Ask about what is left."""
        if self.spread is None:
            return part_writer.write(self.job, self.ledger, left, done)
        return self.spread.write(self.job, self.ledger, left, done)

    def _retried(
        self, commits: Sequence[Commit], done: Callable[[int], object]
    ) -> Iterator[Commit]:
        """Ask again about those asked in vain."""
        if self.spread is not None:
            yield from self.spread.retry(self.job, self.ledger, commits, done)
            return
        for commit in commits:
            yield resume.retry(self.job, self.ledger, commit)
            done(commit.counts[part_writer.FAILED])

    def _bar(self, stored: Sequence[Commit], before: Sequence[Commit]) -> Any:
        """Open the progress bar: how many are through, how many a second, how long still."""
        again = sum(commit.counts[part_writer.FAILED] for commit in before)
        total = self.subjects.total
        return client.bar(
            total=None if total is None else total + again,
            initial=self.subjects.stored(stored),
            unit=f" {self.subjects.what}",
            desc=f"collect to {self.job.folder}",
            disable=not self.progress,
            delay=0.5,
        )


def _warn(folder: Folder, what: str) -> None:
    """Say that some were asked in vain, and what to do about it."""
    counts = [
        commit.counts.get(part_writer.FAILED, 0) for commit in collecting_manifest.commits(folder)
    ]
    if sum(counts):
        warnings.warn(
            f"{sum(counts):,} {what} could not be read: see open_collection({str(folder)!r})"
            ".errors(); the same call with retry_failed=True asks them again",
            stacklevel=client.depth(),
        )
