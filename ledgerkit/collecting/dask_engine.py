"""Collecting with a Dask cluster: one task per part, each with a separate ledger."""

from __future__ import annotations

import logging
import math
import socket
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from ledgerkit import client as ledgers
from ledgerkit import errors, validation
from ledgerkit._version import __version__
from ledgerkit.collecting import manifests, part_writer, resuming
from ledgerkit.collecting.part_writer import Extent, Job
from ledgerkit.collecting.storage import Folder, LocalFolder
from ledgerkit.errors import FileError, InvalidRequestError, LedgerError, TransportError, cut
from ledgerkit.extras import require

if TYPE_CHECKING:
    from ledgerkit.collecting.account_sources import Subject
    from ledgerkit.collecting.manifests import Commit
    from ledgerkit.ledger import Description, Ledger

_MAX_SUBJECTS = 50_000  # per task: about 2 MB
_MIN_SUBJECTS = 1_000  # per task, even at a low rate: each task writes separate files
_MAX_DOCUMENTS = 1_000  # per task: each has up to a megabyte
_MAX_LOSSES = 3  # losses of the same part; Dask itself tries each task four times
_NO_WORKERS_S = 300.0
_STOP_S = 10.0  # for workers to store their responses when a run ends early
_POLL_S = 1.0
_MAX_WORKERS = 1_024  # on this machine
_WORKERS_DIE = f"Find out why the workers die and {errors.RUN_AGAIN}"


@dataclass(frozen=True)
class PartWork:
    """
    The work of one task, which ends with one commit.

    It reads new subjects, or rereads subjects of some kinds, such as ``failed``, of a stored part.
    """

    start: int  # the position of the first subject of the part
    size: int  # the number of subjects to request
    subjects: tuple[Subject, ...] = ()
    retried: Commit | None = None
    kinds: tuple[str, ...] = ()

    def stored(self, folder: Folder) -> Commit | None:
        """Return the commit if the work is done; a commit of fewer subjects will be replaced."""
        commit = manifests.read_commit(folder, self.start)
        if commit is None:
            return None
        if self.retried is not None:
            return commit if commit.generation > self.retried.generation else None
        return commit if commit.stop >= self.start + self.size else None

    def write(self, job: Job, ledger: Ledger, done: Callable[[int], object]) -> Commit:
        """Store the subjects in one part: if two workers do it, they write the same files."""
        if self.retried is not None:
            return resuming.retry(job, ledger, self.retried, self.kinds)
        job = replace(job, part_size=self.size, part_s=math.inf, part_bytes=math.inf)
        [commit] = part_writer.write(job, ledger, self.subjects, done)
        return commit


class _FencedFolder:
    """
    A folder that refuses files of a task that is done or whose run has ended.

    A worker that the scheduler considers dead may still be writing while another worker
    does the same task, or after the run has ended.
    """

    def __init__(self, folder: Folder, run: str, work: PartWork) -> None:
        self._folder, self._run, self._work = folder, run, work
        self._next_poll = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._folder, name)

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        with self._folder.create(name) as file:
            yield file
            self._check()

    def write(self, name: str, body: bytes) -> None:
        self._check()
        self._folder.write(name, body)

    def _check(self) -> bool:
        """Raise if the run has ended or the part is stored; return False if the run should stop."""
        is_active = _is_active(self._folder, self._run)
        if self._work.stored(self._folder) is not None:
            raise _AlreadyStored
        return is_active

    def poll(self, _count: int) -> None:
        """Raise if the run was stopped; checks at most once a second."""
        if time.monotonic() >= self._next_poll:
            if not self._check():
                raise _RunStopped
            self._next_poll = time.monotonic() + _POLL_S


class _AlreadyStored(Exception):  # noqa: N818 - internal, never raised to a caller
    """Another worker has stored the same part."""


class _RunStopped(Exception):  # noqa: N818 - as above
    """The run was stopped; responses received before are stored."""


def _is_active(folder: Folder, run: str) -> bool:
    """Return True if a run is active, False if it should stop; raise if it has ended."""
    current = manifests.current_run(folder)
    if current not in (run, run + manifests.STOP):
        msg = f"the run that was writing to {folder} has ended, or another one has started"
        raise FileError(msg, remedy="Let one process at a time collect to a folder.")
    return current == run


class Limits(NamedTuple):
    """The limits of a task, or of all together: requests in flight, and requests a second."""

    in_flight: int
    rate: float | None

    def for_next_task(self, active: Iterable[Limits], workers: int) -> Limits | None:
        """
        Return the limits of the next task; None if no worker is free or too little is left.

        Each active task reserves its limits until it ends.
        """
        active = list(active)
        n_tasks = min(max(workers, 1), self.in_flight)
        n_free = n_tasks - len(active)
        in_flight = self.in_flight - sum(limits.in_flight for limits in active)
        if n_free < 1 or in_flight < 1:
            return None
        if self.rate is None:
            return Limits(max(1, in_flight // n_free), None)
        rate = (self.rate - sum(limits.rate or 0 for limits in active)) / n_free
        is_enough = rate >= self.rate / n_tasks / 2
        return Limits(max(1, in_flight // n_free), rate) if is_enough else None


@dataclass(frozen=True)
class Task:
    """The work sent to a worker; it does not contain the API key."""

    job: Job
    run: str
    description: Description
    limits: Limits
    work: PartWork

    def __call__(self) -> Commit:
        """Store the part, unless another worker did and died after writing the commit."""
        folder = self.job.folder
        _is_active(folder, self.run)
        if stored := self.work.stored(folder):
            return stored
        fenced = _FencedFolder(folder, self.run, self.work)
        job = replace(self.job, folder=cast("Folder", fenced))
        in_flight, rate = self.limits
        try:
            with ledgers.reopen(self.description, in_flight=in_flight, rate=rate) as ledger:
                return self.work.write(job, ledger, fenced.poll)
        except (LedgerError, _AlreadyStored):
            commit = self.work.stored(folder)
            if commit is None:
                raise
            return commit


class DaskRun:
    """The tasks of a run on a cluster: active tasks, and lost work to submit again."""

    def __init__(self, cluster: Any, job: Job, ledger: Ledger) -> None:
        if isinstance(job.folder, LocalFolder):
            job = replace(job, folder=LocalFolder(job.folder.path.absolute()))
        self._cluster, self._job, self._description = cluster, job, ledger.description()
        settings = self._description.settings
        rate = ledger.session.ready().settings.lowest_limit(job.reader.surfaces).sustained_rate
        self._limits = Limits(settings.in_flight, rate)
        self._run = manifests.current_run(job.folder)
        self._active: dict[Any, Task] = {}
        self._lost: deque[PartWork] = deque()
        self._n_losses: Counter[int] = Counter()
        self._workers_seen_at = time.monotonic()

    def write(self, subjects: Iterable[Subject], done: Callable[[int], object]) -> Iterator[Commit]:
        """
        Read subjects and store them, a part for each task, as `part_writer.write` does.

        All workers together keep to the rate of the ledger. Subjects are read only as fast
        as tasks are submitted. Raises `LedgerError` if a worker raised it, or the cluster lost
        the same part several times.
        """
        self.check_workers()
        parts = _split(subjects, self._job.part_s, self._part_size)
        works = (PartWork(part[0].position, len(part), part) for part in parts)
        yield from self.execute(works, done)

    def retry(
        self, commits: Sequence[Commit], kinds: Sequence[str], done: Callable[[int], object]
    ) -> Iterator[Commit]:
        """Request the subjects of some kinds in stored parts again, as `write` does."""
        works = [
            PartWork(
                commit.start, manifests.count([commit], kinds), retried=commit, kinds=tuple(kinds)
            )
            for commit in commits
        ]
        if works:
            self.check_workers()
            yield from self.execute(iter(works), done)

    def _part_size(self) -> int:
        """Return the number of subjects of a task: the maximum work that a kill may lose."""
        job, (in_flight, rate) = self._job, self._limits
        size = _MAX_DOCUMENTS if "blocks" in job.reader.surfaces else _MAX_SUBJECTS
        if rate is not None:
            n_tasks = min(max(self._count_workers(), 1), in_flight)
            size = min(size, max(_MIN_SUBJECTS, math.ceil(rate / n_tasks * job.part_s)))
        return min(job.part_size, size)

    def check_workers(self) -> None:
        """Raise if a worker cannot collect to the folder."""
        args = (self._job.folder, self._run, self._description, __version__)
        with _dask_errors():
            # Adaptive clusters start workers only when there is a task.
            task = (
                None
                if self._count_workers()
                else self._cluster.submit(_check_worker, *args, pure=False)
            )
            while task is not None and not self._count_workers():
                time.sleep(_POLL_S / 10)
            results = self._cluster.run(_check_worker, *args, on_error="return")
        for error in results.values():
            if error is not None:
                raise error

    def execute(self, works: Iterator[PartWork], done: Callable[[int], object]) -> Iterator[Commit]:
        """Submit tasks as workers are free; yield their commits as they are stored."""
        try:
            while True:
                self._submit(works)
                if not self._active:
                    break
                for task, commit in self._completed():
                    done(task.work.size)
                    yield commit
        except BaseException:
            self._stop()
            raise
        # Killed workers may have left unfinished files.
        manifest = manifests.read_manifest(folder := self._job.folder)
        if manifest is not None:
            manifests.remove_uncommitted(folder, manifest, manifests.read_commits(folder))

    def _submit(self, works: Iterator[PartWork]) -> None:
        """Submit a task for each free worker; subjects are read only as they are submitted."""
        while limits := self._next_limits():
            work = self._lost.popleft() if self._lost else next(works, None)
            if work is None:
                return
            task = Task(self._job, self._run, self._description, limits, work)
            key = f"ledgerkit-{self._run}-{work.start}-{self._n_losses[work.start]}"
            with _dask_errors():
                self._active[self._cluster.submit(task, key=key, pure=False)] = task

    def _next_limits(self) -> Limits | None:
        active = (task.limits for task in self._active.values())
        return self._limits.for_next_task(active, self._count_workers())

    def _count_workers(self) -> int:
        with _dask_errors():
            n_threads: int = sum(self._cluster.nthreads().values())
        now = time.monotonic()
        if n_threads:
            self._workers_seen_at = now
        elif now - self._workers_seen_at > _NO_WORKERS_S:
            sentence = f"the cluster has had no workers for {_NO_WORKERS_S:.0f} seconds"
            raise TransportError(sentence, remedy=_WORKERS_DIE)
        return n_threads

    def _completed(self) -> Iterator[tuple[Task, Commit]]:
        """Wait for tasks; yield stored tasks with their commits, and requeue lost tasks."""
        from distributed import CancelledError, KilledWorker

        with _dask_errors():
            _wait(self._active, _POLL_S, "FIRST_COMPLETED")
        for future in [future for future in self._active if future.status != "pending"]:
            task = self._active.pop(future)
            try:
                commit: Commit = future.result(timeout=_STOP_S)
            except (KilledWorker, CancelledError, TimeoutError, OSError) as error:
                self._requeue(task.work, error)
            else:
                yield task, commit

    def _requeue(self, work: PartWork, error: BaseException) -> None:
        self._n_losses[work.start] += 1
        if self._n_losses[work.start] >= _MAX_LOSSES:
            reason = cut(str(error) or type(error).__name__)
            sentence = f"the cluster lost the part at {work.start} {_MAX_LOSSES} times: {reason}"
            raise TransportError(sentence, remedy=_WORKERS_DIE)
        self._lost.append(work)

    def _stop(self) -> None:
        """Wait for the workers to store their responses, then cancel the tasks."""
        if not self._active:
            return
        with suppress(LedgerError):
            manifests.request_stop(self._job.folder, self._run)
        with suppress(LedgerError, TimeoutError), _dask_errors():
            _wait(self._active, _STOP_S, "ALL_COMPLETED")
            self._cluster.cancel(list(self._active), force=True)


def _split(
    subjects: Iterable[Subject], seconds: float, part_size: Callable[[], int]
) -> Iterator[tuple[Subject, ...]]:
    part: list[Subject] = []
    extent = Extent(0, 0, 0.0)  # takes no subject
    for subject in subjects:
        if not extent.takes(subject.position):
            if part:
                yield tuple(part)
            part, extent = [], Extent(subject.position, part_size(), seconds)
            extent.takes(subject.position)
        part.append(subject)
    if part:
        yield tuple(part)


def _wait(futures: Iterable[Any], seconds: float, until: str) -> None:
    """Wait for tasks; failures are read from their status."""
    from distributed import CancelledError, wait

    with suppress(TimeoutError, CancelledError):
        wait(list(futures), timeout=seconds, return_when=until)  # type: ignore[no-untyped-call]  # Dask's own


def _check_worker(folder: Folder, run: str, description: Description, version: str) -> None:
    """Raise, in a worker, if it cannot collect to the folder."""
    host = socket.gethostname()
    if version != __version__:
        expected = f"a cluster whose workers have ledgerkit {version}; {host} has {__version__}"
        raise InvalidRequestError.refuse("engine", "Client", expected)
    if manifests.current_run(folder) != run:
        expected = (
            "a folder that every worker can access, on a shared disk or at an address such as"
            f" s3://bucket/run; {host} has another folder or none there"
        )
        raise InvalidRequestError.refuse("out", str(folder), expected)
    ledgers.reopen(description).close()


@contextmanager
def _dask_errors() -> Iterator[None]:
    """Convert the errors of Dask, such as those of a lost scheduler."""
    try:
        yield
    except LedgerError:
        raise
    except (ImportError, AttributeError) as error:
        expected = f"a cluster whose workers have this version of ledgerkit: {cut(error)}"
        raise InvalidRequestError.refuse("engine", "Client", expected) from error
    except (OSError, RuntimeError) as error:
        if isinstance(error, TimeoutError):
            raise
        sentence = f"the cluster does not respond: {cut(str(error) or type(error).__name__)}"
        raise TransportError(sentence, remedy=_WORKERS_DIE) from error


def choose(engine: Any, workers: int | None, ledger: Ledger) -> AbstractContextManager[Any]:
    """
    Return the cluster for the arguments `engine` and `workers`, or None for this process.

    Workers of this machine start when the context is entered, and end with it. Raises
    `InvalidRequestError` if the engine is not an open client, or if workers in other processes
    cannot use the ledger.
    """
    if engine == "local" and workers is None:
        return nullcontext()
    if workers is None:
        _check_client(engine)
    elif engine != "local":
        expected = 'left out with engine=: it is for engine="local"'
        raise InvalidRequestError.refuse("workers", workers, expected)
    else:
        validation.integer(workers, "workers", least=1, most=_MAX_WORKERS)
    ledger.description()  # raises if other processes cannot use it
    return nullcontext(engine) if workers is None else _local_cluster(workers)


def _check_client(client: Any) -> None:
    client_type = getattr(sys.modules.get("distributed"), "Client", None)
    if client_type is None or not isinstance(client, client_type) or client.asynchronous:
        expected = '"local", or a dask.distributed.Client (not an asynchronous one)'
        raise InvalidRequestError.refuse("engine", client, expected, choices=["local"])
    if client.status != "running":
        raise InvalidRequestError.refuse("engine", client, "a Client that is still open")


@contextmanager
def _local_cluster(workers: int) -> Iterator[Any]:
    """Start worker processes on this machine; raise `InvalidRequestError` if they do not start."""
    distributed = require("distributed", "dask", "Collecting with several processes")
    options = {
        "threads_per_worker": 1,
        "dashboard_address": "127.0.0.1:0",
        "silence_logs": logging.CRITICAL,
    }
    try:
        cluster = distributed.LocalCluster(n_workers=workers, **options)
    except (OSError, RuntimeError) as error:
        raise InvalidRequestError(
            f"workers={workers}: the processes did not start ({cut(str(error))})",
            remedy=_GUARD,
            field="workers",
            value=workers,
        ) from error
    with cluster, distributed.Client(cluster) as connected:
        yield connected


# Source: https://docs.python.org/3/library/multiprocessing.html#the-spawn-and-forkserver-start-methods
_GUARD = (
    'In a script, call it below `if __name__ == "__main__":`, because each process imports the'
    " script."
)
