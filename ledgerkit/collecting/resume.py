"""What of a source is stored already, what is left, and what failed and may be asked again."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Any

import numpy as np

from ledgerkit.collecting import arrow_tables, manifest, part_writer
from ledgerkit.collecting.part_files import Part
from ledgerkit.collecting.part_writer import FAILED, OK
from ledgerkit.collecting.sources import Digest, Subject
from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.u128 import arrow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ledgerkit.client import Ledger
    from ledgerkit.collecting.manifest import Commit
    from ledgerkit.collecting.part_writer import Job
    from ledgerkit.collecting.storage import Folder


class Left:
    """
    The subjects of a source that no commit holds; the others are compared with it.

    Parameters
    ----------
    subjects
        The source.
    commits
        What is stored, by position.
    """

    def __init__(self, subjects: Iterable[Subject], commits: Sequence[Commit]) -> None:
        self._subjects = subjects
        self._stored = deque(commits)
        self.seen = 0

    def __iter__(self) -> Iterator[Subject]:
        digest = Digest()
        for subject in self._subjects:
            self.seen = subject.position + 1
            if not self._stored or subject.position < self._stored[0].start:
                yield subject
                continue
            digest.add(subject)
            if self.seen == self._stored[0].stop:
                self._compare(digest, self._stored.popleft())
                digest = Digest()
        if self._stored:
            _differs(f"it ends at {self.seen}, and {self._stored[-1].stop} were stored")

    def _compare(self, digest: Digest, stored: Commit) -> None:
        """Refuse a source in which other subjects stand where some are stored."""
        if digest.text() != stored.digest:
            last = stored.stop - 1
            _differs(f"others were stored of positions {stored.start} to {last}")


def _differs(how: str) -> None:
    """Refuse a source that is not the one of the run."""
    msg = f"ids is not the source that this collection was begun with: {how}"
    remedy = "Give the same ids in the same order (more may follow), or a new folder as out."
    raise InvalidRequestError(msg, remedy=remedy, field="ids")


def failed(commits: Sequence[Commit]) -> list[Commit]:
    """Find the stretches in which somebody was asked in vain."""
    return [commit for commit in commits if commit.counts.get(FAILED)]


def retry(job: Job, ledger: Ledger, commit: Commit) -> Commit:
    """
    Ask those of a stretch again who were asked in vain, and store the stretch anew.

    Parameters
    ----------
    job
        What to ask and where it is stored.
    ledger
        Whom to ask.
    commit
        The stretch.

    Returns
    -------
    commit
        The one that stands in its place; rows are in the order of an undisturbed run.

    Raises
    ------
    LedgerError
        If the service answers nobody, or a file cannot be read or written; the stretch
        stands as it was then.
    """
    errors = read_table(job.folder, commit, manifest.ERRORS)
    kinds = errors["kind"].to_pylist()
    listed = zip(errors["position"].to_pylist(), errors["subject"].to_pylist(), strict=True)
    vain = [Subject(*entry) for entry, kind in zip(listed, kinds, strict=True) if kind == FAILED]
    asked = [outcome for batch in job.asker.ask(ledger, vain) for outcome in batch]
    outcomes, fresh = part_writer.tabulated(job.asker, asked)
    kept = errors.filter(arrow.library("pyarrow.compute").field("kind") != FAILED)
    with Part(job.folder, commit.start, commit.generation + 1) as part:
        for name, table in _merged(job, commit, kept, fresh).items():
            part.add(name, table)
        again = Counter(part_writer.kind_of(*outcome) or OK for outcome in outcomes)
        made = part.replace(commit, _counts(commit.counts, again))
    for file in commit.files.values():
        job.folder.remove(file.name)
    return made


def _counts(counts: dict[str, int], again: Counter[str]) -> dict[str, int]:
    """Count anew: who was asked in vain before is answered now, or still is not."""
    told = Counter({**counts, FAILED: 0}) + again
    return dict(told)


def _merged(job: Job, commit: Commit, errors: Any, fresh: dict[str, Any]) -> dict[str, Any]:
    """Join the stored rows of a stretch with fresh ones, in the order of its subjects."""
    pa = arrow.library()
    stored = {
        name: errors if name == manifest.ERRORS else read_table(job.folder, commit, name)
        for name in fresh
    }
    joined = {name: pa.concat_tables([stored[name], fresh[name]]) for name in fresh}
    for name in (manifest.SUBJECTS, manifest.ERRORS):
        joined[name] = joined[name].sort_by("position")
    order = joined[manifest.SUBJECTS]["subject"]
    for name in set(joined) - {manifest.SUBJECTS, manifest.ERRORS}:
        joined[name] = _in_order(joined[name], job.asker.key(name), order)
    return joined


def _in_order(table: Any, key: str, order: Any) -> Any:
    """Sort rows by the place of their subject; those of one subject stay as they are."""
    pa, compute = arrow.library(), arrow.library("pyarrow.compute")
    places = compute.index_in(table[key].cast(pa.string()), value_set=order).to_numpy()
    return table.take(np.argsort(places, kind="stable"))


def read_table(folder: Folder, commit: Commit, name: str) -> Any:
    """
    Read a table of one stretch.

    Parameters
    ----------
    folder
        The collection's.
    commit
        The stretch.
    name
        The table.

    Returns
    -------
    table
        A `pyarrow.Table`, without rows where the stretch has none.

    Raises
    ------
    DecodeError
        If the file is missing or torn.
    FileError
        If it cannot be read.
    """
    schema = arrow_tables.schema(manifest.frame_name(name))
    if name not in commit.files:
        return schema.empty_table()
    pa, path = arrow.library(), commit.files[name].name
    body = folder.read(path)
    try:
        return arrow.library("pyarrow.parquet").read_table(pa.BufferReader(body or b""))
    except (pa.ArrowInvalid, OSError) as error:  # OSError is what a compressed page is torn with
        problem = "is not there" if body is None else f"cannot be read ({error})"
    msg = f"{folder.uri(path)}, which {commit.path} names, {problem}"
    remedy = f"Remove {commit.path}: its stretch is asked for again then."
    raise DecodeError(msg, remedy=remedy, path=path)
