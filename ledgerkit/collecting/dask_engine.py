"""Stretches of subjects to the workers of a Dask cluster, each with ledgers of its own."""

from __future__ import annotations

import math
import socket
import sys
import time
from collections import Counter, deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from ledgerkit import client as ledgers
from ledgerkit._version import __version__
from ledgerkit.collecting import manifest as collecting_manifest
from ledgerkit.collecting import part_writer, resume
from ledgerkit.collecting.storage import LocalFolder
from ledgerkit.errors import FileError, InvalidRequestError, LedgerError, TransportError, cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ledgerkit.client import Description, Ledger
    from ledgerkit.collecting.manifest import Commit
    from ledgerkit.collecting.part_writer import Job
    from ledgerkit.collecting.sources import Subject
    from ledgerkit.collecting.storage import Folder

_MOST = 50_000  # subjects in a task: about 2 MB
_LEAST = 1_000  # subjects in a task, however slow the rate: each has files of its own
_TRIES = 3  # of a stretch that the cluster lost; Dask itself tries each of them four times
_PATIENCE_S = 300.0  # with a cluster that has no workers
_PARTING_S = 10.0  # for workers to store what they have when a run ends early
_LOOK_S = 1.0


class Piece(Protocol):
    """Work for one worker, which ends in one commit."""

    @property
    def start(self) -> int:
        """The position of its first subject."""
        ...

    @property
    def size(self) -> int:
        """How many subjects are to be asked about."""
        ...

    def stored(self, folder: Folder) -> Commit | None:
        """Find the commit, if it was done already."""
        ...

    def write(self, job: Job, ledger: Ledger, done: Callable[[int], object]) -> Commit:
        """Do it."""
        ...


@dataclass(frozen=True)
class Stretch:
    """Subjects that follow each other and were never asked about."""

    subjects: tuple[Subject, ...]

    @property
    def start(self) -> int:
        """The position of the first."""
        return self.subjects[0].position

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.subjects)

    def stored(self, folder: Folder) -> Commit | None:
        """Find the commit of all of them; one that ends before is to be replaced."""
        found = collecting_manifest.stored(folder, self.start)
        return found if found is not None and found.stop >= self.start + self.size else None

    def write(self, job: Job, ledger: Ledger, done: Callable[[int], object]) -> Commit:
        """Store all in one part, whenever that is full: written twice, its files are the same."""
        job = replace(job, part_size=self.size, part_s=math.inf)
        [made] = part_writer.write(job, ledger, self.subjects, done)
        return made


@dataclass(frozen=True)
class Again:
    """Those of a stored stretch who were asked in vain."""

    commit: Commit

    @property
    def start(self) -> int:
        """The position of the stretch."""
        return self.commit.start

    @property
    def size(self) -> int:
        """How many were asked in vain."""
        return self.commit.counts[part_writer.FAILED]

    def stored(self, folder: Folder) -> Commit | None:
        """Find the commit of a later generation."""
        found = collecting_manifest.stored(folder, self.start)
        return found if found and found.generation > self.commit.generation else None

    def write(self, job: Job, ledger: Ledger, done: Callable[[int], object]) -> Commit:  # noqa: ARG002 - all at once
        """Store the stretch anew."""
        return resume.retry(job, ledger, self.commit)


class _Guarded:
    """
    A folder in which nothing appears that came too late.

    A worker that was believed dead may still be at work while another does the same, or
    after the run: its files vanish.

    Parameters
    ----------
    folder
        The collection's.
    run
        The run that writes.
    piece
        What is being written.
    """

    def __init__(self, folder: Folder, run: str, piece: Piece) -> None:
        self._folder, self._run, self._piece = folder, run, piece
        self._next = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._folder, name)

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file for writing that appears whole when the block ends, or not at all."""
        with self._folder.create(name) as file:
            yield file
            self._check()

    def write(self, name: str, body: bytes) -> None:
        """Write a file whole."""
        self._check()
        self._folder.write(name, body)

    def _check(self) -> bool:
        """Refuse to be too late; tells whether the run goes on."""
        goes_on = _goes_on(self._folder, self._run)
        if self._piece.stored(self._folder) is not None:
            raise _Late
        return goes_on

    def look(self, _count: int) -> None:
        """Stop where the run has ended, looking at most once a second."""
        if time.monotonic() >= self._next:
            if not self._check():
                raise _Stopped
            self._next = time.monotonic() + _LOOK_S


class _Late(Exception):  # noqa: N818 - nobody ever sees it
    """Another worker has stored the same meanwhile."""


class _Stopped(Exception):  # noqa: N818 - as above: whoever stopped the run looks no more
    """The run was stopped; what was answered is stored."""


def _goes_on(folder: Folder, run: str) -> bool:
    """Tell whether a run goes on or is about to stop; refuse one that is over."""
    found = collecting_manifest.running(folder)
    if found not in (run, run + collecting_manifest.STOP):
        msg = f"the run that began to write to {folder} is over, or another one has begun"
        raise FileError(msg, remedy="Let one process at a time collect to a folder.")
    return found == run


class Share(NamedTuple):
    """What a task may do: so many requests at a time, and a second."""

    lanes: int
    rate: float | None


@dataclass(frozen=True)
class Pace:
    """What all tasks together may do; what one has, no other gets before it is through."""

    lanes: int
    rate: float | None

    def share(self, given: Iterable[Share], workers: int) -> Share | None:
        """
        Work out the next task's share.

        Parameters
        ----------
        given
            The shares of the tasks under way.
        workers
            How many tasks can run at a time now.

        Returns
        -------
        share
            None while there is no worker or too little left.
        """
        given = list(given)
        most = min(max(workers, 1), self.lanes)
        free = most - len(given)
        lanes = self.lanes - sum(share.lanes for share in given)
        if free < 1 or lanes < 1:
            return None
        if self.rate is None:
            return Share(max(1, lanes // free), None)
        rate = (self.rate - sum(share.rate or 0 for share in given)) / free
        enough = rate >= self.rate / most / 2
        return Share(max(1, lanes // free), rate) if enough else None

    def stretch(self, job: Job, workers: int) -> int:
        """Work out how many subjects a task gets: as many as a kill may cost."""
        if self.rate is None:
            return min(job.part_size, _MOST)
        within = math.ceil(self.rate / min(max(workers, 1), self.lanes) * job.part_s)
        return min(job.part_size, _MOST, max(_LEAST, within))


@dataclass(frozen=True)
class Task:
    """What is sent to a worker; no key is in it."""

    job: Job
    run: str
    description: Description
    share: Share
    piece: Piece

    def __call__(self) -> Commit:
        """Do a piece, unless it is done: a worker may have died after that."""
        folder = self.job.folder
        _goes_on(folder, self.run)
        return self.piece.stored(folder) or self._written(folder)

    def _written(self, folder: Folder) -> Commit:
        """Do a piece with a ledger of its own."""
        guarded = _Guarded(folder, self.run, self.piece)
        job = replace(self.job, folder=cast("Folder", guarded))
        lanes, rate = self.share
        try:
            with ledgers.reopen(self.description, in_flight=lanes, rate=rate) as ledger:
                return self.piece.write(job, ledger, guarded.look)
        except (LedgerError, _Late):
            found = self.piece.stored(folder)
            if found is None:
                raise
            return found


class Spread:
    """
    Writes over a cluster.

    Parameters
    ----------
    cluster
        An open `dask.distributed.Client`.
    """

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster

    def write(
        self, job: Job, ledger: Ledger, subjects: Iterable[Subject], done: Callable[[int], object]
    ) -> Iterator[Commit]:
        """
        Ask about subjects and store what is answered, a stretch a task.

        Parameters
        ----------
        job
            What to ask and where to store it.
        ledger
            Whom to ask, and how fast all workers together.
        subjects
            In order of position; read only as fast as they are handed out.
        done
            Told how many more subjects are through.

        Yields
        ------
        commit
            Of each part, once it is stored.

        Raises
        ------
        LedgerError
            If a worker raised it, or the cluster loses the same stretch again and again.
        """
        round_ = self._round(job, ledger)
        yield from round_.go(_stretches(subjects, job.part_s, round_.stretch), done)

    def retry(
        self, job: Job, ledger: Ledger, commits: Sequence[Commit], done: Callable[[int], object]
    ) -> Iterator[Commit]:
        """Ask again about those of stored stretches who were asked in vain, as `write` does."""
        if commits:
            yield from self._round(job, ledger).go(map(Again, commits), done)

    def _round(self, job: Job, ledger: Ledger) -> _Round:
        """Look whether the workers can do it, before anything is asked."""
        if isinstance(job.folder, LocalFolder):
            job = replace(job, folder=LocalFolder(job.folder.path.absolute()))
        round_ = _Round(self._cluster, job, ledger.description())
        round_.check()
        return round_


class _Round:
    """Pieces on their way to workers and back."""

    def __init__(self, cluster: Any, job: Job, description: Description) -> None:
        self._cluster, self._job, self._description = cluster, job, description
        self._pace = Pace(description.settings.in_flight, description.settings.rate)
        self._run = collecting_manifest.running(job.folder)
        self._under_way: dict[Any, Task] = {}
        self._again: deque[Piece] = deque()
        self._lost: Counter[int] = Counter()
        self._seen_workers = time.monotonic()

    def stretch(self) -> int:
        """Tell how many subjects the next task gets."""
        return self._pace.stretch(self._job, self._workers())

    def check(self) -> None:
        """Ask all workers whether they have what it takes."""
        wanted = (self._job.folder, self._run, self._description, __version__)
        with _told():
            # Some clusters grow only when there is something to do.
            waiting = None if self._workers() else self._cluster.submit(_ready, *wanted, pure=False)
            while waiting is not None and not self._workers():
                time.sleep(_LOOK_S / 10)
            found = self._cluster.run(_ready, *wanted, on_error="return")
        for error in found.values():
            if error is not None:
                raise error

    def go(self, pieces: Iterator[Piece], done: Callable[[int], object]) -> Iterator[Commit]:
        """Hand out pieces, as many as can run; gives their commits as they come."""
        try:
            while True:
                self._hand_out(pieces)
                if not self._under_way:
                    break
                for task, made in self._finished():
                    done(task.piece.size)
                    yield made
        except BaseException:
            self._stop()
            raise
        self._sweep()

    def _hand_out(self, pieces: Iterator[Piece]) -> None:
        """Give each worker that is free a piece; the source is read no further."""
        while share := self._next_share():
            piece = self._again.popleft() if self._again else next(pieces, None)
            if piece is None:
                return
            task = Task(self._job, self._run, self._description, share, piece)
            key = f"ledgerkit-{self._run}-{piece.start}-{self._lost[piece.start]}"
            with _told():
                self._under_way[self._cluster.submit(task, key=key, pure=False)] = task

    def _next_share(self) -> Share | None:
        """Work out what the next task may do."""
        given = (task.share for task in self._under_way.values())
        return self._pace.share(given, self._workers())

    def _workers(self) -> int:
        """Count the threads of all workers, each of which runs a task."""
        with _told():
            found: int = sum(self._cluster.nthreads().values())
        now = time.monotonic()
        if found:
            self._seen_workers = now
        elif now - self._seen_workers > _PATIENCE_S:
            sentence = f"the cluster has had no workers for {_PATIENCE_S:.0f} seconds"
            raise TransportError(sentence, remedy=_LATER)
        return found

    def _finished(self) -> Iterator[tuple[Task, Commit]]:
        """Wait a moment; gives what is stored."""
        with _told():
            _wait(self._under_way, _LOOK_S, "FIRST_COMPLETED")
        for future in [future for future in self._under_way if future.status != "pending"]:
            task = self._under_way.pop(future)
            made = self._result(future, task.piece)
            if made is not None:
                yield task, made

    def _result(self, future: Any, piece: Piece) -> Commit | None:
        """Take a result; a piece that the cluster lost is handed out again."""
        from distributed import CancelledError, KilledWorker

        try:
            made: Commit = future.result(timeout=_PARTING_S)
        except (KilledWorker, CancelledError, TimeoutError, OSError) as error:
            self._lose(piece, error)
            return None
        return made

    def _lose(self, piece: Piece, error: BaseException) -> None:
        """Hand out a piece once more, so and so many times."""
        self._lost[piece.start] += 1
        if self._lost[piece.start] >= _TRIES:
            why = cut(str(error) or type(error).__name__)
            sentence = f"the cluster lost the stretch at {piece.start} {_TRIES} times: {why}"
            raise TransportError(sentence, remedy=_LATER)
        self._again.append(piece)

    def _stop(self) -> None:
        """Let the workers store what they have, for a while, and forget the rest."""
        if not self._under_way:
            return
        with suppress(LedgerError):
            collecting_manifest.stop(self._job.folder, self._run)
        with suppress(LedgerError, TimeoutError), _told():
            _wait(self._under_way, _PARTING_S, "ALL_COMPLETED")
            self._cluster.cancel(list(self._under_way), force=True)

    def _sweep(self) -> None:
        """Remove what killed workers had begun to write."""
        folder = self._job.folder
        manifest = collecting_manifest.read(folder)
        if manifest is not None:
            collecting_manifest.sweep(folder, manifest, collecting_manifest.commits(folder))


_LATER = "See why its workers die, and run the same command again: what is stored is kept."


def _stretches(
    subjects: Iterable[Subject], seconds: float, most: Callable[[], int]
) -> Iterator[Piece]:
    """Cut subjects where a position is left out, a stretch is full, or its first waited long."""
    held: list[Subject] = []
    room, until = 0, 0.0
    for subject in subjects:
        if held and (
            subject.position != held[-1].position + 1
            or len(held) >= room
            or time.monotonic() > until
        ):
            yield Stretch(tuple(held))
            held = []
        if not held:
            room, until = most(), time.monotonic() + seconds
        held.append(subject)
    if held:
        yield Stretch(tuple(held))


def _wait(futures: Iterable[Any], seconds: float, until: str) -> None:
    """Wait for tasks; what has become of them their status tells."""
    from distributed import CancelledError, wait

    with suppress(TimeoutError, CancelledError):
        wait(list(futures), timeout=seconds, return_when=until)  # type: ignore[no-untyped-call]  # Dask's own


def _ready(folder: Folder, run: str, description: Description, version: str) -> None:
    """Look, in a worker, whether it has what it takes."""
    here = socket.gethostname()
    if version != __version__:
        rule = f"a cluster whose workers have ledgerkit {version}; on {here} it is {__version__}"
        raise InvalidRequestError.refuse("engine", "Client", rule)
    if collecting_manifest.running(folder) != run:
        rule = (
            "a folder that every worker sees, on a disk that they share or at an address such as "
            f"s3://bucket/run; on {here} there is another one, or none"
        )
        raise InvalidRequestError.refuse("out", str(folder), rule)
    ledgers.reopen(description).close()


@contextmanager
def _told() -> Iterator[None]:
    """Translate what Dask says when its scheduler is gone."""
    try:
        yield
    except LedgerError:
        raise
    except (ImportError, AttributeError) as error:
        rule = f"a cluster whose workers have this ledgerkit: {cut(error)}"
        raise InvalidRequestError.refuse("engine", "Client", rule) from error
    except (OSError, RuntimeError) as error:
        if isinstance(error, TimeoutError):
            raise
        sentence = f"the cluster cannot be asked: {cut(str(error) or type(error).__name__)}"
        raise TransportError(sentence, remedy=_LATER) from error


def engine(client: Any, ledger: Ledger) -> Spread:
    """
    Take a Dask client.

    Parameters
    ----------
    client
        What `collect` was given.
    ledger
        The ledger that is to be asked.

    Returns
    -------
    spread
        Nothing was sent yet.

    Raises
    ------
    InvalidRequestError
        If it is no open client, or no other process can ask the ledger.
    """
    kind = getattr(sys.modules.get("distributed"), "Client", None)
    if kind is None or not isinstance(client, kind) or client.asynchronous:
        rule = '"local", or a dask.distributed.Client (not an asynchronous one)'
        raise InvalidRequestError.refuse("engine", client, rule)
    if client.status != "running":
        raise InvalidRequestError.refuse("engine", client, "a Client that is still open")
    ledger.description()
    return Spread(client)
