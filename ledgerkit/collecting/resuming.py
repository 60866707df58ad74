"""Resuming a run: the subjects that are not stored yet, and retries of stored ones."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from ledgerkit.collecting import manifests
from ledgerkit.collecting.account_sources import Digest, Subject
from ledgerkit.collecting.manifests import FAILED, OK, WAITING, Commit
from ledgerkit.collecting.outcomes import read_outcomes
from ledgerkit.collecting.part_files import Part, read_table
from ledgerkit.collecting.part_writer import Job, in_batches, kind_of, to_tables
from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.frames import collected
from ledgerkit.u128 import arrow, parquet

if TYPE_CHECKING:
    from ledgerkit.ledger import Ledger


def remaining_subjects(subjects: Iterable[Subject], commits: Sequence[Commit]) -> Iterator[Subject]:
    """
    Yield the subjects of a source that are in no commit.

    Raises `InvalidRequestError` if the other subjects differ from those of the commits.
    """
    stored = deque(commits)
    digest, stop = Digest(), 0
    for subject in subjects:
        stop = subject.position + 1
        if not stored or subject.position < stored[0].start:
            yield subject
            continue
        digest.add(subject)
        if stop == stored[0].stop:
            commit = stored.popleft()
            if digest.text() != commit.digest:
                raise _other_source(f"the stored entries {commit.start} to {stop - 1} differ")
            digest = Digest()
    if stored:
        raise _other_source(f"it has {stop} entries, and {stored[-1].stop} are stored")


def _other_source(reason: str) -> InvalidRequestError:
    msg = f"account_ids is not the source that this collection was started with: {reason}"
    remedy = "Pass the same ids in the same order (more may follow), or a new folder as out."
    return InvalidRequestError(msg, remedy=remedy, field="account_ids")


def with_kinds(commits: Iterable[Commit], kinds: Sequence[str]) -> list[Commit]:
    """Return the stored parts that have subjects of some kinds, such as `FAILED`."""
    return [commit for commit in commits if manifests.count([commit], kinds)]


def retry_parts(
    job: Job,
    ledger: Ledger,
    commits: Iterable[Commit],
    kinds: Sequence[str],
    done: Callable[[int], object],
) -> Iterator[Commit]:
    """Rewrite stored parts as `retry` does; `done` is called with the number of subjects."""
    for commit in commits:
        yield retry(job, ledger, commit, kinds)
        done(manifests.count([commit], kinds))


def retry(job: Job, ledger: Ledger, commit: Commit, kinds: Sequence[str]) -> Commit:
    """
    Request the subjects of some kinds again, rewrite their part and return its commit.

    The rows are in the order of an uninterrupted run. A waiting subject that cannot be read
    again keeps its rows. Raises `LedgerError` if the service does not respond, or a file cannot
    be read or written; the stored part is then unchanged.
    """
    entries = [entry for entry in _stored_errors(job, commit) if entry[2] in kinds]
    kinds_before = {position: kind for position, _, kind in entries}
    subjects = [Subject(position, text) for position, text, _ in entries]
    replaced: list[Subject] = []
    new: dict[str, list[Any]] = {}
    counts = Counter(commit.counts)
    for batch in in_batches(read_outcomes(job.reader, ledger, subjects)):
        usable = [
            outcome
            for outcome in batch
            if kinds_before[outcome.subject.position] == FAILED or kind_of(outcome) != FAILED
        ]
        if not usable:
            continue
        outcomes, tables = to_tables(job.reader, usable)
        replaced += [subject for subject, _ in outcomes]
        counts -= Counter(kinds_before[subject.position] for subject, _ in outcomes)
        counts += Counter(map(kind_of, outcomes))
        for name, table in tables.items():
            new.setdefault(name, []).append(table)
    if not replaced:
        return commit
    with closing(Part(job.folder, commit.start, commit)) as part:
        for name, table in _merge_tables(job, commit, replaced, new):
            part.add(name, table)
        part.counts = dict(counts)
        new_commit = part.commit()
    for file in commit.files.values():
        job.folder.remove(file.name)
    return new_commit


def has_waiting_before(job: Job, commit: Commit, height: int) -> bool:
    """Return True if a waiting subject of a part has a position below a height."""
    return bool(manifests.count([commit], [WAITING])) and any(
        kind == WAITING and position < height for position, _, kind in _stored_errors(job, commit)
    )


def _stored_errors(job: Job, commit: Commit) -> list[tuple[int, str, str]]:
    """Return position, text and kind of the subjects of a part that are not ok."""
    errors = read_table(job.folder, commit, collected.ERRORS)
    with parquet.reading(f"the errors of {commit.path}", commit.remedy):
        columns = [errors[name].to_pylist() for name in ("position", "subject", "kind")]
    positions, texts, kinds = columns
    counts = Counter(commit.counts)
    del counts[OK]
    is_in_part = set(positions) <= set(range(commit.start, commit.stop))
    is_unique = len(set(positions)) == len(positions)
    if not (is_in_part and is_unique and None not in texts and Counter(kinds) == counts):
        msg = f"the rows of errors of {commit.path} are not those that it counts"
        raise DecodeError(msg, remedy=commit.remedy, path=commit.path)
    return list(zip(positions, texts, kinds, strict=True))


def _merge_tables(
    job: Job, commit: Commit, replaced: Sequence[Subject], new: dict[str, list[Any]]
) -> Iterator[tuple[str, Any]]:
    """Yield the tables of a part with the new rows of subjects, in the order of the subjects."""
    concat = arrow.library().concat_tables
    positions = [str(subject.position) for subject in replaced]
    texts = [subject.text for subject in replaced]
    order = None
    for name in (collected.ERRORS, collected.SUBJECTS):
        stored = _drop_rows(read_table(job.folder, commit, name), "position", positions)
        table = concat([stored, *new.pop(name)]).sort_by("position")
        yield name, table
        order = table["subject"]
    for name, tables in new.items():
        key_column = collected.key_column(name)
        stored = _drop_rows(read_table(job.folder, commit, name), key_column, texts)
        yield name, _sorted_by_subject(concat([stored, *tables]), key_column, order)


def _drop_rows(table: Any, column: str, values: Sequence[str]) -> Any:
    """Drop the rows of a table whose value in a column is one of `values`, compared as text."""
    pa, compute = arrow.library(), arrow.library("pyarrow.compute")
    is_in = compute.is_in(table[column].cast(pa.string()), pa.array(values, pa.string()))
    return table.filter(compute.invert(is_in))


def _sorted_by_subject(table: Any, key_column: str, order: Any) -> Any:
    """Sort rows by the order of subjects, stable within a subject."""
    pa, compute = arrow.library(), arrow.library("pyarrow.compute")
    indices = compute.index_in(table[key_column].cast(pa.string()), value_set=order).to_numpy()
    return table.take(np.argsort(indices, kind="stable"))
