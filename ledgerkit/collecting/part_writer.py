"""Outcomes into parts: which end where, and what is kept when something goes wrong."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit.collecting import arrow_tables, manifest
from ledgerkit.collecting.part_files import Part
from ledgerkit.errors import DecodeError, InvalidRequestError, LedgerError
from ledgerkit.frames import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ledgerkit.client import Ledger
    from ledgerkit.collecting.account_requests import Asker, Outcome
    from ledgerkit.collecting.manifest import Commit
    from ledgerkit.collecting.sources import Subject
    from ledgerkit.collecting.storage import Folder

PART_SIZE = 20_000
_PART_S = 60.0  # what a kill may cost, where requests are slow
OK, FAILED = "ok", "failed"
_AT_ONCE = 1_024  # outcomes tabulated together
_LONGEST_WAIT_S = 5.0
_NOT_ASKED = InvalidRequestError()


@dataclass(frozen=True)
class Job:
    """What it takes to ask about subjects and store them, in this process or another."""

    folder: Folder
    asker: Asker
    part_size: int = PART_SIZE
    part_s: float = _PART_S


def write(
    job: Job, ledger: Ledger, subjects: Iterable[Subject], done: Callable[[int], object]
) -> Iterator[Commit]:
    """
    Ask about subjects and store what is answered, part by part.

    Parameters
    ----------
    job
        What to ask and where to store it.
    ledger
        Whom to ask.
    subjects
        In order of position; where one is left out, a part ends.
    done
        Told how many more subjects are through.

    Yields
    ------
    commit
        Of each part, once it is stored.

    Raises
    ------
    LedgerError
        If the service answers nobody, or a file cannot be written. What was answered
        before is stored all the same.
    """
    with closing(_Writer(job)) as writer:
        try:
            for batch in job.asker.ask(ledger, subjects):
                yield from writer.take(batch)
                done(len(batch))
        finally:  # also when interrupted: what was answered is not asked again
            made = writer.finish()
        yield from made


class _Writer:
    """
    Fills one part after the other.

    Parameters
    ----------
    job
        What is asked, and where it is stored.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._part: Part | None = None
        self._until = 0.0
        self._waiting: list[Outcome] = []
        self._since = 0.0

    def take(self, batch: Sequence[Outcome]) -> Iterator[Commit]:
        """Store outcomes, many at once: to tabulate a few costs as much."""
        now = time.monotonic()
        self._since = self._since if self._waiting else now
        self._waiting += batch
        enough = min(_AT_ONCE, self._job.part_size)
        if len(self._waiting) >= enough or now - self._since > _LONGEST_WAIT_S:
            yield from self._flush()

    def finish(self) -> list[Commit]:
        """Store what waits, and the last part."""
        made = [*self._flush(), self._commit()]
        return [commit for commit in made if commit is not None]

    def _flush(self) -> Iterator[Commit]:
        """Store what waits; a part ends where a position is left out, or when it is full."""
        batch, self._waiting = self._waiting, []
        while batch:
            part = self._part
            if part and (batch[0].subject.position != part.stop or self._is_full(part)):
                made = self._commit()
                if made is not None:
                    yield made
            fitting = self._fitting(batch)
            self._store(batch[:fitting])
            batch = batch[fitting:]

    def _is_full(self, part: Part) -> bool:
        """Tell whether a part has all it may have, or is old enough to be worth keeping."""
        return part.stop - part.start >= self._job.part_size or time.monotonic() > self._until

    def _fitting(self, batch: Sequence[Outcome]) -> int:
        """Count how many outcomes follow each other and have room in the part."""
        first = batch[0].subject.position
        start = self._part.start if self._part else first
        room = start + self._job.part_size - first
        in_line = (n for n, outcome in enumerate(batch) if outcome.subject.position != first + n)
        return min(room, next(in_line, len(batch)))

    def _store(self, batch: Sequence[Outcome]) -> None:
        """Put outcomes into the part; first into tables, which may fail, then into files."""
        batch, tables = tabulated(self._job.asker, batch)
        if self._part is None:
            self._part = Part(self._job.folder, batch[0].subject.position)
            self._until = time.monotonic() + self._job.part_s
        with self._part.adding():
            for subject, value in batch:
                self._part.subject(subject, kind_of(subject, value) or OK)
            for name, table in tables.items():
                self._part.add(name, table)

    def _commit(self) -> Commit | None:
        """Store the part, if there is one that is whole."""
        part, self._part = self._part, None
        if part is None:
            return None
        with part:
            return part.commit() if part.whole else None

    def close(self) -> None:
        """Let go of a part that was not stored."""
        if self._part is not None:
            with self._part:
                self._part = None


def tabulated(asker: Asker, batch: Sequence[Outcome]) -> tuple[Sequence[Outcome], dict[str, Any]]:
    """Hold outcomes in tables; an answer that fits no column is its own subject's failure."""
    try:
        tables = asker.tables(batch)
    except DecodeError:
        batch = [_fitted(asker, outcome) for outcome in batch]
        tables = asker.tables(batch)
    return batch, {**tables, **_records(batch)}


def _fitted(asker: Asker, outcome: Outcome) -> Outcome:
    """Replace an answer that fits no column by its error."""
    try:
        asker.tables([outcome])
    except DecodeError as error:
        return outcome._replace(value=error)
    return outcome


def kind_of(subject: Subject, value: object) -> str | None:
    """Tell why a subject has no answer; None if it has one."""
    return subject.problem or (FAILED if isinstance(value, LedgerError) else None)


def _records(batch: Sequence[Outcome]) -> dict[str, Any]:
    """Tabulate who was answered, and who was not, and why."""
    at = pd.Timestamp.now("UTC").value
    good = [s for s, value in batch if kind_of(s, value) is None]
    bad = [(s, value) for s, value in batch if kind_of(s, value) is not None]
    answered = {
        "position": [subject.position for subject in good],
        "subject": [subject.text for subject in good],
        "fetched_at": [at] * len(good),
    }
    failed = {
        "position": [subject.position for subject, _ in bad],
        "subject": [subject.text for subject, _ in bad],
        "kind": [kind_of(subject, value) for subject, value in bad],
        "error": [type(v or _NOT_ASKED).__name__ for _, v in bad],
        "message": [subject.message if subject.problem else str(v) for subject, v in bad],
        "retryable": [not subject.problem and v.retryable for subject, v in bad],
        "fetched_at": [at] * len(bad),
    }
    made = {manifest.SUBJECTS: answered, manifest.ERRORS: failed}
    return {
        table: arrow_tables.table(name, build.build_frame(name, made[table]))
        for table in made
        for name in [manifest.frame_name(table)]
    }
