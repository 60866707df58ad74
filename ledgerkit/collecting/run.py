"""Running a collection: reading the subjects that a folder lacks, and storing them."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ledgerkit import progress, user_warnings, validation
from ledgerkit.collecting import dask_engine, manifests, part_writer, resuming, storage
from ledgerkit.collecting.collection import Collection
from ledgerkit.collecting.manifests import FAILED, WAITING, Commit, Manifest
from ledgerkit.collecting.part_writer import PART_SIZE, Job
from ledgerkit.collecting.plan import Plan, arrow_types
from ledgerkit.errors import InvalidRequestError
from ledgerkit.units import count_text

if TYPE_CHECKING:
    from ledgerkit.collecting.account_sources import Subject
    from ledgerkit.collecting.outcomes import SubjectReader
    from ledgerkit.collecting.storage import Folder
    from ledgerkit.ledger import Ledger


class RunOptions(TypedDict, total=False):
    """The shared options of `collect` and `collect_blocks`, for their overloads."""

    engine: Any
    in_flight: int | None
    rate: float | None
    resume: bool
    retry_failed: bool
    part_size: int
    progress: bool
    ledger: Ledger | None


class Running(RunOptions, total=False):
    """The options with which a verb runs."""

    dry_run: Literal[False]


class Planning(RunOptions):
    """The options with which a verb returns its plan."""

    dry_run: Literal[True]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The shared options; `collect` documents them."""

    engine: Any = "local"
    in_flight: int | None = None
    rate: float | None = None
    resume: bool = True
    retry_failed: bool = False
    dry_run: bool = False
    part_size: int = PART_SIZE
    progress: bool = True
    ledger: Ledger | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of stored subjects that are requested again."""
        return (WAITING, FAILED) if self.retry_failed else (WAITING,)


class Run(ABC):
    """
    A run of a collection; subclasses declare the subjects and their reader.

    All kinds of runs share planning, reading, storing, resuming and retrying.
    """

    total: int | None  # the number of subjects, if it is known
    workers: int | None = None  # processes of this machine
    span = range(sys.maxsize)  # the positions of the subjects
    retry_limit_position = 0  # waiting subjects below this position can now be completed

    @abstractmethod
    def manifest(self, ledger: Ledger, folder: Folder) -> Manifest:
        """Return the manifest; raise if an argument is malformed."""

    @abstractmethod
    def open(self, ledger: Ledger, manifest: Manifest) -> SubjectReader:
        """Find the subjects, and return their reader."""

    def request(self, manifest: Manifest) -> tuple[str, int]:
        """Return the most frequent request, and the number of subjects that it reads."""
        raise NotImplementedError  # only runs with a plan have it

    @abstractmethod
    def remaining(self, commits: Sequence[Commit]) -> Iterable[Subject]:
        """Return the subjects that are not stored."""

    def count_remaining(self, commits: Sequence[Commit]) -> tuple[int | None, dict[str, int]]:
        """Count the subjects to request, None if unknown, and the other subjects by kind."""
        return sum(map(len, self.gaps(commits))), {}

    def overlapping(self, commits: Sequence[Commit]) -> list[Commit]:
        start, stop = self.span.start, self.span.stop
        return [commit for commit in commits if commit.stop > start and commit.start < stop]

    def gaps(self, commits: Sequence[Commit]) -> Iterator[range]:
        """Yield the positions that are not stored: before, between and after the commits."""
        start = self.span.start
        for commit in self.overlapping(commits):
            yield range(start, commit.start)
            start = commit.stop
        yield range(start, self.span.stop)

    def count_stored(self, commits: Sequence[Commit]) -> int:
        return len(self.span) - sum(map(len, self.gaps(commits)))

    def start(self, ledger: Ledger, out: object, options: Options) -> Collection | Plan:
        is_planned = validation.flag(options.dry_run, "dry_run")
        return (self.print_plan if is_planned else self.execute)(ledger, out, options)

    def execute(self, ledger: Ledger, out: object, options: Options) -> Collection:
        with (
            self._opened(ledger, out, options) as (job, manifest, paced, connecting),
            connecting as cluster,
            manifests.writing(job.folder, manifest) as stored,
        ):
            self._fill(job, paced, cluster, stored, options)
        _warn_of_failures(job)
        return Collection(job.folder)

    def print_plan(self, ledger: Ledger, out: object, options: Options) -> Plan:
        with self._opened(ledger, out, options) as (job, manifest, paced, _):
            commits = self.overlapping(manifests.read_commits(job.folder))
            n_subjects, skipped = self.count_remaining(commits)
            limit = paced.session.ready().settings.lowest_limit(job.reader.surfaces)
        request, per_request = self.request(manifest)
        n_requests = None
        if n_subjects is not None:
            n_subjects += manifests.count(commits, options.kinds)
            n_requests = -(-n_subjects // per_request)
        plan = Plan(
            str(job.folder),
            manifest.network,
            request,
            n_requests,
            limit,
            self.count_stored(commits),
            manifests.count(commits, [FAILED]),
            skipped,
            arrow_types(manifest),
        )
        print(plan)  # noqa: T201 - the purpose of a dry run
        return plan

    @contextmanager
    def _opened(
        self, ledger: Ledger, out: object, options: Options
    ) -> Iterator[tuple[Job, Manifest, Ledger, AbstractContextManager[Any]]]:
        """Check all arguments, and find the subjects; yield the cluster last, not yet started."""
        validation.integer(options.part_size, "part_size", least=1, most=manifests.MAX_PART_SIZE)
        for name in ("resume", "retry_failed", "progress"):
            validation.flag(getattr(options, name), name)
        connecting = dask_engine.choose(options.engine, self.workers, ledger)
        if out is None:
            raise InvalidRequestError.required("out", "the folder to write to")
        folder = storage.folder(out)
        with ledger.sibling(in_flight=options.in_flight, rate=options.rate) as paced:
            manifest = self.manifest(paced, folder)
            stored = manifests.check_same_run(folder, manifest)
            if stored is not None and not options.resume:
                msg = (
                    f"out {str(folder)!r} has a collection already: pass resume=True to continue it"
                )
                raise InvalidRequestError(msg, field="out", value=str(folder))
            job = Job(folder, self.open(paced, manifest), options.part_size)
            yield job, manifest, paced, connecting

    def _fill(
        self, job: Job, ledger: Ledger, cluster: Any, stored: Sequence[Commit], options: Options
    ) -> None:
        """Read the remaining subjects, and again waiting subjects and, on request, failed ones."""
        write: Callable[..., Iterator[Commit]]
        retry: Callable[..., Iterator[Commit]]
        if cluster is None:
            write = partial(part_writer.write, job, ledger)
            retry = partial(resuming.retry_parts, job, ledger)
        else:
            run = dask_engine.DaskRun(cluster, job, ledger)
            write, retry = run.write, run.retry
        kinds = options.kinds
        retried = resuming.with_kinds(self.overlapping(stored), kinds)
        bar: Any = progress.Bar(
            total=None if self.total is None else self.total + manifests.count(retried, kinds),
            initial=self.count_stored(stored),
            unit=f" {job.reader.noun}",
            desc=f"collect to {job.folder}",
            disable=not options.progress,
            leave=True,
        )
        with bar:
            for _ in write(self.remaining(stored), bar.update):
                bar.refresh()
            manifests.write_finished(job.folder)
            for _ in retry(retried, kinds, bar.update):
                bar.refresh()
            completable = self._completable(job, stored)
            for _ in retry(completable, [WAITING], lambda _: None):
                bar.refresh()

    def _completable(self, job: Job, earlier: Sequence[Commit]) -> list[Commit]:
        """Return new parts with waiting subjects that can now be completed."""
        starts, limit = {commit.start for commit in earlier}, self.retry_limit_position
        return [
            commit
            for commit in manifests.read_commits(job.folder)
            if commit.start not in starts and resuming.has_waiting_before(job, commit, limit)
        ]


def _warn_of_failures(job: Job) -> None:
    commits = manifests.read_commits(job.folder)
    noun = job.reader.noun.removesuffix("s")
    errors = f"see open_collection({str(job.folder)!r}).errors()"
    if n_failed := manifests.count(commits, [FAILED]):
        user_warnings.warn(
            f"{count_text(n_failed, noun)} could not be read: {errors}. Repeat the call with"
            " retry_failed=True to request them again."
        )
    if n_waiting := manifests.count(commits, [WAITING]):
        user_warnings.warn(
            f"{count_text(n_waiting, noun)} with transactions that are not final yet: {errors}."
            " Repeat the call later to complete them."
        )
