"""Writing outcomes to parts: where a part ends, and what is stored after a failure."""

from __future__ import annotations

import math
import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit.collecting import manifests
from ledgerkit.collecting.manifests import FAILED, OK, WAITING
from ledgerkit.collecting.part_files import Part
from ledgerkit.errors import DecodeError, InvalidRequestError, LedgerError
from ledgerkit.frames import arrow_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ledgerkit.collecting.manifests import Commit
    from ledgerkit.collecting.outcomes import Outcome, SubjectReader
    from ledgerkit.collecting.sources import Subject
    from ledgerkit.collecting.storage import Folder
    from ledgerkit.ledger import Ledger

PART_SIZE = 20_000
_PART_S = 60.0  # the most work that a kill may cost
# Outcomes are converted to tables together: small tables cost as much as large ones.
_BATCH = 1_024
_BATCH_BYTES = 2**23
# Of the documents in a part: its tables are read whole when it is rewritten.
PART_BYTES = 2**29
_MAX_PENDING_S = 5.0
_NOT_REQUESTED = InvalidRequestError()


@dataclass(frozen=True)
class Job:
    """The settings for reading and storing subjects; they can be sent to another process."""

    folder: Folder
    reader: SubjectReader
    part_size: int = PART_SIZE
    part_s: float = _PART_S
    part_bytes: float = math.inf


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
            for batch in job.reader.read(ledger, subjects):
                yield from writer.add(batch)
                done(len(batch))
        finally:  # an interrupted run stores the responses it has
            commits = writer.finish()
        yield from commits


class PartWriter:
    """A writer of outcomes, one part after another."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._part: Part | None = None
        self._part_ends = 0.0
        self._part_bytes = 0
        self._pending: list[Outcome] = []
        self._pending_since = 0.0
        self._pending_bytes = 0

    def add(self, batch: Sequence[Outcome]) -> Iterator[Commit]:
        """Add outcomes; they are stored many at a time."""
        now = time.monotonic()
        self._pending_since = self._pending_since if self._pending else now
        self._pending += batch
        self._pending_bytes += sum(map(_size, batch))
        enough = min(_BATCH, self._job.part_size)
        is_large = len(self._pending) >= enough or self._pending_bytes >= _BATCH_BYTES
        if is_large or now - self._pending_since > _MAX_PENDING_S:
            yield from self._flush()

    def finish(self) -> list[Commit]:
        """Store the pending outcomes and commit the last part."""
        commits = [*self._flush(), self._commit()]
        return [commit for commit in commits if commit is not None]

    def _flush(self) -> Iterator[Commit]:
        """Store the pending outcomes; a part ends at a gap in the positions, or when full."""
        batch, self._pending, self._pending_bytes = self._pending, [], 0
        while batch:
            part = self._part
            if part and (batch[0].subject.position != part.stop or self._is_full(part)):
                commit = self._commit()
                if commit is not None:
                    yield commit
            n_fitting = self._count_fitting(batch)
            self._store(batch[:n_fitting])
            batch = batch[n_fitting:]

    def _is_full(self, part: Part) -> bool:
        """Return True if a part has its maximum size or age."""
        n_subjects, job = part.stop - part.start, self._job
        is_large = n_subjects >= job.part_size or self._part_bytes >= job.part_bytes
        return is_large or time.monotonic() > self._part_ends

    def _count_fitting(self, batch: Sequence[Outcome]) -> int:
        """Count the outcomes that are consecutive and fit into the part."""
        first = batch[0].subject.position
        start = self._part.start if self._part else first
        room = start + self._job.part_size - first
        gaps = (n for n, outcome in enumerate(batch) if outcome.subject.position != first + n)
        return min(room, next(gaps, len(batch)))

    def _store(self, batch: Sequence[Outcome]) -> None:
        """Add outcomes to the part; the conversion to tables may fail, so it comes first."""
        batch, tables = to_tables(self._job.reader, batch)
        if self._part is None:
            self._part = Part(self._job.folder, batch[0].subject.position)
            self._part_ends = time.monotonic() + self._job.part_s
            self._part_bytes = 0
        self._part_bytes += sum(map(_size, batch))
        with self._part.adding():
            for subject, value in batch:
                self._part.add_subject(subject, failure_kind(subject, value) or OK)
            for name, table in tables.items():
                self._part.add(name, table)

    def _commit(self) -> Commit | None:
        """Commit the part, if there is one and it is consistent."""
        part, self._part = self._part, None
        if part is None:
            return None
        with part:
            return part.commit() if part.is_consistent else None

    def close(self) -> None:
        """Discard a part that was not committed."""
        if self._part is not None:
            with self._part:
                self._part = None


def in_batches(batches: Iterable[Sequence[Outcome]]) -> Iterator[list[Outcome]]:
    """Group outcomes as they are converted together."""
    pending: list[Outcome] = []
    for batch in batches:
        pending += batch
        if len(pending) >= _BATCH or sum(map(_size, pending)) >= _BATCH_BYTES:
            yield pending
            pending = []
    if pending:
        yield pending


def _size(outcome: Outcome) -> int:
    """Return the bytes of a document that was read; 0 for a response that is small."""
    size: int = getattr(outcome.value, "size", 0)
    return size


def to_tables(
    reader: SubjectReader, batch: Sequence[Outcome]
) -> tuple[Sequence[Outcome], dict[str, Any]]:
    """Convert outcomes to tables; a response that fits no column becomes a failed subject."""
    try:
        tables = reader.tables(batch)
    except DecodeError:
        batch = [_checked(reader, outcome) for outcome in batch]
        tables = reader.tables(batch)
    return batch, {**tables, **_status_tables(batch)}


def _checked(reader: SubjectReader, outcome: Outcome) -> Outcome:
    """Return an outcome, with the error as its value if its response fits no column."""
    try:
        reader.tables([outcome])
    except DecodeError as error:
        return outcome._replace(value=error)
    return outcome


def failure_kind(subject: Subject, value: object) -> str | None:
    """Return why a subject has no response, or no complete one; None if it has one."""
    if subject.problem or isinstance(value, LedgerError):
        return subject.problem or FAILED
    return WAITING if _waiting_error(value) else None


def _waiting_error(value: object) -> LedgerError | None:
    """Return why a response is not complete yet, if it is not."""
    error: LedgerError | None = getattr(value, "waiting", None)
    return error


def _status_tables(batch: Sequence[Outcome]) -> dict[str, Any]:
    """Return the tables of subjects that were read, and of those that were not, or in part."""
    at = pd.Timestamp.now("UTC").value
    kinds = [failure_kind(s, value) for s, value in batch]
    good = [s for (s, _), kind in zip(batch, kinds, strict=True) if kind in (None, WAITING)]
    bad = [
        (s, _waiting_error(value) or value, kind)
        for (s, value), kind in zip(batch, kinds, strict=True)
        if kind is not None
    ]
    subjects = {
        "position": [subject.position for subject in good],
        "subject": [subject.text for subject in good],
        "fetched_at": [at] * len(good),
    }
    failures = {
        "position": [subject.position for subject, *_ in bad],
        "subject": [subject.text for subject, *_ in bad],
        "kind": [kind for *_, kind in bad],
        "error": [type(error or _NOT_REQUESTED).__name__ for _, error, _ in bad],
        "message": [subject.message if subject.problem else str(e) for subject, e, _ in bad],
        "retryable": [not subject.problem and error.retryable for subject, error, _ in bad],
        "fetched_at": [at] * len(bad),
    }
    columns = {manifests.SUBJECTS: subjects, manifests.ERRORS: failures}
    return {
        table: arrow_tables.table_of_columns(manifests.schema_name(table), values)
        for table, values in columns.items()
    }
