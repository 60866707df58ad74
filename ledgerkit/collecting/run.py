"""The run of a collection: it reads the subjects that are not stored, and retries failed ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ledgerkit import progress, user_warnings
from ledgerkit.collecting import manifests, part_writer, resuming
from ledgerkit.collecting.part_files import utc_now
from ledgerkit.units import count_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ledgerkit.collecting.dask_engine import DaskEngine
    from ledgerkit.collecting.manifests import Commit, Manifest
    from ledgerkit.collecting.part_writer import Job
    from ledgerkit.collecting.sources import Subject
    from ledgerkit.collecting.storage import Folder
    from ledgerkit.ledger import Ledger


class Subjects(Protocol):
    """All subjects of a run."""

    @property
    def noun(self) -> str:
        """The plural noun for the subjects, such as "accounts"."""
        ...

    @property
    def total(self) -> int | None:
        """The number of subjects, if it is known."""
        ...

    def remaining(self, commits: Sequence[Commit]) -> Iterable[Subject]:
        """Return the subjects that are not stored."""
        ...

    def count_stored(self, commits: Sequence[Commit]) -> int:
        """Count the subjects that are stored."""
        ...

    @property
    def settled(self) -> int:
        """The position below which a subject that waits would be complete if it were read again."""
        ...

    def overlapping(self, commits: Sequence[Commit]) -> Sequence[Commit]:
        """Return the commits that have some of the subjects."""
        ...


@dataclass(frozen=True)
class Run:
    """The run of a collection: with Dask its workers read and write, otherwise this process."""

    job: Job
    manifest: Manifest
    ledger: Ledger
    subjects: Subjects
    dask: DaskEngine | None
    progress: bool

    def execute(self, *, retry_failed: bool) -> None:
        """Read the remaining subjects, those that wait and, if requested, those that failed."""
        folder = self.job.folder
        manifest = manifests.open_manifest(folder, self.manifest)
        with manifests.marked_run(folder):
            self._execute(manifest, retry_failed=retry_failed)
        _warn_of_failures(folder, self.subjects.noun.removesuffix("s"))

    def _execute(self, manifest: Manifest, *, retry_failed: bool) -> None:
        """Read the subjects, once no earlier run writes to the folder."""
        folder = self.job.folder
        stored = manifests.read_commits(folder)
        manifests.remove_uncommitted(folder, manifest, stored)
        kinds = resuming.retried_kinds(retry_failed=retry_failed)
        overlapping = self.subjects.overlapping(stored)
        retried = [commit for commit in overlapping if resuming.count([commit], kinds)]
        with self._progress_bar(stored, resuming.count(retried, kinds)) as bar:
            for _ in self._write(self.subjects.remaining(stored), bar.update):
                bar.refresh()
            commits = manifests.read_commits(folder)
            n_subjects = sum(commit.stop - commit.start for commit in commits)
            manifests.write_finished(folder, n_subjects, utc_now())
            for _ in self._retry(retried, kinds, bar.update):
                bar.refresh()
            for _ in self._retry(self._unsettled(stored), [manifests.WAITING], lambda _: None):
                bar.refresh()

    def _unsettled(self, earlier: Sequence[Commit]) -> list[Commit]:
        """Return new parts with subjects that wait although all that they need can be read."""
        starts = {commit.start for commit in earlier}
        return [
            commit
            for commit in manifests.read_commits(self.job.folder)
            if commit.start not in starts
            and resuming.has_waiting_before(self.job, commit, self.subjects.settled)
        ]

    def _write(
        self, subjects: Iterable[Subject], done: Callable[[int], object]
    ) -> Iterator[Commit]:
        """Read subjects and store them."""
        if self.dask is None:
            return part_writer.write(self.job, self.ledger, subjects, done)
        return self.dask.write(self.job, self.ledger, subjects, done)

    def _retry(
        self, commits: Sequence[Commit], kinds: Sequence[str], done: Callable[[int], object]
    ) -> Iterator[Commit]:
        """Request the subjects of some kinds in stored parts again."""
        if self.dask is not None:
            yield from self.dask.retry(self.job, self.ledger, commits, kinds, done)
            return
        for commit in commits:
            yield resuming.retry(self.job, self.ledger, commit, kinds)
            done(resuming.count([commit], kinds))

    def _progress_bar(self, stored: Sequence[Commit], n_retried: int) -> Any:
        """Open the progress bar."""
        total = self.subjects.total
        return progress.bar(
            total=None if total is None else total + n_retried,
            initial=self.subjects.count_stored(stored),
            unit=f" {self.subjects.noun}",
            desc=f"collect to {self.job.folder}",
            disable=not self.progress,
            delay=0.5,
        )


def _warn_of_failures(folder: Folder, noun: str) -> None:
    """Warn if subjects could not be read, or not completely."""
    commits = manifests.read_commits(folder)
    errors = f"see open_collection({str(folder)!r}).errors()"
    if n_failed := resuming.count(commits, [manifests.FAILED]):
        user_warnings.warn(
            f"{count_text(n_failed, noun)} could not be read: {errors}. Repeat the call with"
            " retry_failed=True to request them again."
        )
    if n_waiting := resuming.count(commits, [manifests.WAITING]):
        user_warnings.warn(
            f"{count_text(n_waiting, noun)} with transactions that are not final yet: {errors}."
            " Repeat the call later to complete them."
        )
