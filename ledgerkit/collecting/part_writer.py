"""Writing outcomes to parts: the ends of parts, and storage after a failure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit.collecting.manifests import FAILED, OK, WAITING, Commit
from ledgerkit.collecting.outcomes import Outcome, SubjectReader, read_outcomes
from ledgerkit.collecting.part_files import Part
from ledgerkit.errors import DecodeError, InvalidRequestError, LedgerError
from ledgerkit.frames import arrow_tables, collected

if TYPE_CHECKING:
    from ledgerkit.collecting.account_sources import Subject
    from ledgerkit.collecting.storage import Folder
    from ledgerkit.ledger import Ledger

PART_SIZE = 20_000
_PART_S = 60.0  # the maximum work that a kill may lose
_BATCH = 1_024
_BATCH_BYTES = 2**22
# Rewriting a part reads its tables into memory, so the size of its documents is limited.
_PART_BYTES = 2**29
_MAX_PENDING_S = 5.0
_NOT_REQUESTED = InvalidRequestError()


@dataclass(frozen=True)
class Job:
    """The settings for reading and storing subjects; they can be sent to another process."""

    folder: Folder
    reader: SubjectReader
    part_size: int = PART_SIZE
    part_s: float = _PART_S
    part_bytes: float = _PART_BYTES


def write(
    job: Job, ledger: Ledger, subjects: Iterable[Subject], done: Callable[[int], object]
) -> Iterator[Commit]:
    """
    Read subjects and store them; yield the commit of each part once it is stored.

    The subjects are in order of position; a gap in the positions ends a part. `done` is called
    with the number of subjects that were processed since the last call. Raises `LedgerError` if
    the service does not respond or a file cannot be written; earlier responses are stored.
    """
    with closing(PartWriter(job)) as writer:
        try:
            for batch in read_outcomes(job.reader, ledger, subjects):
                yield from writer.add(batch)
                done(len(batch))
        finally:  # an interrupted run stores its responses
            commits = writer.finish()
        yield from commits


class Batch:
    """Outcomes that are converted together, because a small table costs as much as a large one."""

    def __init__(self) -> None:
        self._outcomes: list[Outcome] = []
        self._n_bytes = 0
        self._since = 0.0

    def add(self, outcomes: Sequence[Outcome], size: int = _BATCH) -> bool:
        """Add outcomes; return True if they should be converted now."""
        now = time.monotonic()
        self._since = self._since if self._outcomes else now
        self._outcomes += outcomes
        self._n_bytes += sum(map(_size, outcomes))
        is_large = len(self._outcomes) >= size or self._n_bytes >= _BATCH_BYTES
        return is_large or now - self._since > _MAX_PENDING_S

    def take(self) -> list[Outcome]:
        outcomes, self._outcomes, self._n_bytes = self._outcomes, [], 0
        return outcomes


def in_batches(batches: Iterable[Sequence[Outcome]]) -> Iterator[list[Outcome]]:
    """Group outcomes for the conversion to tables; the last group may be empty."""
    batch = Batch()
    for outcomes in batches:
        if batch.add(outcomes):
            yield batch.take()
    yield batch.take()


class Extent:
    """The extent of a part: consecutive positions, up to a maximum size and age."""

    def __init__(self, start: int, size: int, seconds: float) -> None:
        self._next, self._stop = start, start + size
        self._ends_at = time.monotonic() + seconds

    def takes(self, position: int) -> bool:
        """Return True if the next subject belongs to the part, and extend the part to it."""
        is_within = position == self._next < self._stop and time.monotonic() <= self._ends_at
        self._next += is_within
        return is_within


class PartWriter:
    """A writer of outcomes, one part after another."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._part: Part | None = None
        self._extent = Extent(0, 0, 0.0)  # takes no subject
        self._n_bytes = 0
        self._pending = Batch()

    def add(self, outcomes: Sequence[Outcome]) -> list[Commit]:
        """Add outcomes, which are stored in batches; return the commits of parts that ended."""
        is_due = self._pending.add(outcomes, min(_BATCH, self._job.part_size))
        return self._flush() if is_due else []

    def finish(self) -> list[Commit]:
        """Store the pending outcomes and commit the last part."""
        return self._flush() + self._commit()

    def _flush(self) -> list[Commit]:
        """Store the pending outcomes; a part ends at a gap in the positions, or when full."""
        commits: list[Commit] = []
        batch: list[Outcome] = []
        for outcome in self._pending.take():
            position = outcome.subject.position
            if self._n_bytes >= self._job.part_bytes or not self._extent.takes(position):
                self._store(batch)
                batch = []
                commits += self._commit()
                self._extent = Extent(position, self._job.part_size, self._job.part_s)
                self._extent.takes(position)
            batch.append(outcome)
        self._store(batch)
        return commits

    def _store(self, batch: Sequence[Outcome]) -> None:
        """Add outcomes to the part, after the conversion to tables, which may fail."""
        if not batch:
            return
        batch, tables = to_tables(self._job.reader, batch)
        if self._part is None:
            self._part = Part(self._job.folder, batch[0].subject.position)
        self._n_bytes += sum(map(_size, batch))
        try:
            for outcome in batch:
                self._part.add_subject(outcome.subject, kind_of(outcome))
            for name, table in tables.items():
                self._part.add(name, table)
        except BaseException:  # the tables would have different subjects
            self.close()
            raise

    def _commit(self) -> list[Commit]:
        part, self._part, self._n_bytes = self._part, None, 0
        if part is None:
            return []
        with closing(part):
            return [part.commit()]

    def close(self) -> None:
        """Discard a part that was not committed."""
        part, self._part = self._part, None
        if part is not None:
            part.close()


def _size(outcome: Outcome) -> int:
    """Return the bytes of a document; 0 for small responses."""
    size: int = getattr(outcome.value, "size", 0)
    return size


def to_tables(
    reader: SubjectReader, batch: Sequence[Outcome]
) -> tuple[Sequence[Outcome], dict[str, Any]]:
    """Convert outcomes to tables; a response that fits no column becomes a failed subject."""
    try:
        tables = reader.tables(batch)
    except DecodeError:
        batch = [_check_columns(reader, outcome) for outcome in batch]
        tables = reader.tables(batch)
    return batch, {**tables, **_status_tables(batch)}


def _check_columns(reader: SubjectReader, outcome: Outcome) -> Outcome:
    """Return the outcome, with the error as its value if its response fits no column."""
    try:
        reader.tables([outcome])
    except DecodeError as error:
        return outcome._replace(value=error)
    return outcome


def kind_of(outcome: Outcome) -> str:
    """Return the kind of an outcome, one of `manifests.OUTCOMES`."""
    subject, value = outcome
    if subject.problem or isinstance(value, LedgerError):
        return subject.problem or FAILED
    return OK if _waiting_error(value) is None else WAITING


def _waiting_error(value: object) -> LedgerError | None:
    error: LedgerError | None = getattr(value, "waiting", None)
    return error


def _status_tables(batch: Sequence[Outcome]) -> dict[str, Any]:
    fetched_at = pd.Timestamp.now("UTC").value
    kinds = [kind_of(outcome) for outcome in batch]
    good = [s for (s, _), kind in zip(batch, kinds, strict=True) if kind in (OK, WAITING)]
    bad = [
        (s, _waiting_error(value) or value, kind)
        for (s, value), kind in zip(batch, kinds, strict=True)
        if kind != OK
    ]
    subjects = {
        "position": [subject.position for subject in good],
        "subject": [subject.text for subject in good],
        "fetched_at": [fetched_at] * len(good),
    }
    failures = {
        "position": [subject.position for subject, *_ in bad],
        "subject": [subject.text for subject, *_ in bad],
        "kind": [kind for *_, kind in bad],
        "error": [type(error or _NOT_REQUESTED).__name__ for _, error, _ in bad],
        "message": [subject.message if subject.problem else str(e) for subject, e, _ in bad],
        "retryable": [not subject.problem and error.retryable for subject, error, _ in bad],
        "fetched_at": [fetched_at] * len(bad),
    }
    columns = {collected.SUBJECTS: subjects, collected.ERRORS: failures}
    return {table: arrow_tables.of_columns(table, values) for table, values in columns.items()}
