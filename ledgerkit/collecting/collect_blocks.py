"""The verb `collect_blocks`: the blocks of a range of heights to a Parquet dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from ledgerkit import client, validation
from ledgerkit.api import rpc
from ledgerkit.collecting import manifest, part_writer, plan, storage
from ledgerkit.collecting import resume as collecting_resume
from ledgerkit.collecting.blocks import VIEWS, Heights
from ledgerkit.collecting.collection import Collection
from ledgerkit.collecting.manifest import Manifest
from ledgerkit.collecting.part_files import now
from ledgerkit.collecting.part_writer import PART_SIZE, Job
from ledgerkit.collecting.plan import Plan
from ledgerkit.collecting.run import MOST_IN_PART, Run
from ledgerkit.collecting.sources import Subject
from ledgerkit.errors import InvalidRequestError, LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from os import PathLike

    from ledgerkit.client import Ledger
    from ledgerkit.collecting.manifest import Commit


@overload
def collect_blocks(
    start: object,
    stop: object,
    views: str | Iterable[str] = VIEWS,
    out: str | PathLike[str] | None = None,
    *,
    in_flight: int | None = None,
    rate: float | None = None,
    resume: bool = True,
    retry_failed: bool = False,
    dry_run: Literal[False] = False,
    part_size: int = PART_SIZE,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Collection: ...
@overload
def collect_blocks(
    start: object,
    stop: object,
    views: str | Iterable[str] = VIEWS,
    out: str | PathLike[str] | None = None,
    *,
    in_flight: int | None = None,
    rate: float | None = None,
    resume: bool = True,
    retry_failed: bool = False,
    dry_run: Literal[True],
    part_size: int = PART_SIZE,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Plan: ...
def collect_blocks(
    start: object,
    stop: object,
    views: str | Iterable[str] = VIEWS,
    out: str | PathLike[str] | None = None,
    *,
    in_flight: int | None = None,
    rate: float | None = None,
    resume: bool = True,
    retry_failed: bool = False,
    dry_run: bool = False,
    part_size: int = PART_SIZE,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Collection | Plan:
    """
    Read the blocks of a range of heights, and what is in them, into a Parquet dataset.

    Killed at any moment, the same call goes on where it was: no row is lost and none is
    there twice. A height is in all tables with everything, or in none and a row of the table
    ``errors``: of kind ``failed`` where the block or anything in it could not be read, of
    kind ``skipped`` where the chain has no block, as the next block's parent proves.
    Another range, be it wider or elsewhere, fills what is missing in the same folder.

    Parameters
    ----------
    start
        The first height; or a block hash, a finality name or a time, read as the height of
        the block that it names.
    stop
        The height after the last, as in `range`, or as `start`. Only final blocks are read.
    views
        What to read: some of ``blocks`` (one request a height), ``chunks`` and
        ``transactions`` (one more a new chunk), ``receipts`` and ``events`` (one more a
        transaction).
    out
        The folder to write to, new or one that a run with the same views was begun in; or
        an address that fsspec reaches.
    in_flight
        Most requests at a time; None is the ledger's.
    rate
        Most requests a second, at most the ledger's; None is the ledger's.
    resume
        Whether to go on in a folder that holds a collection already.
    retry_failed
        Whether to ask again about heights that failed before, in the stretches that the
        range touches.
    dry_run
        Whether only to print what would be done. The final block is asked for all the same,
        and those that `start` and `stop` name.
    part_size
        Most heights in one set of files. A part is stored when it is full, or a minute
        old: so much a kill costs.
    progress
        Whether a bar shows.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    collection
        What `open_collection` gives; with ``dry_run=True`` a `Plan`. Receipts and events are
        those of the transactions that the range includes, wherever they ran. ``finished``
        says that the range asked for last is whole.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, a height is not final yet, or `out` belongs to another
        run.
    AuthError
        If the host refuses the key.
    RateLimitedError
        If the host bears nothing for ten minutes.
    TransportError
        If 64 heights in a row are not answered; what was answered before is stored.
    FileError
        If a file cannot be written.

    Warns
    -----
    UserWarning
        If heights were asked in vain.

    Notes
    -----
    Source: block; chunk; EXPERIMENTAL_tx_status, with block for heights and times and
    EXPERIMENTAL_protocol_config for shards.
    """
    validation.integer(part_size, "part_size", least=1, most=MOST_IN_PART)
    asked = client.current(ledger)
    wanted = _manifest(asked, validation.subset_of(views, "views", VIEWS))
    folder = storage.given(out)
    job = Job(folder, Heights(wanted.views), part_size)
    ends = validation.block_reference(start, "start"), validation.block_reference(stop, "stop")
    manifest.check_new(folder, wanted, resume=resume)
    with asked.sibling(in_flight=in_flight, rate=rate) as paced:
        span = _Span(_range(paced, *ends))
        if dry_run:
            return _planned(job, wanted, paced, span, retry_failed=retry_failed)
        with folder.lock():
            Run(job, wanted, paced, span, None, progress=progress).go(retry_failed=retry_failed)
    return Collection(folder)


def _manifest(asked: Ledger, views: list[str]) -> Manifest:
    """Describe the run."""
    return Manifest(
        kind="blocks",
        network=asked.network.name,
        views=views,
        schemas=manifest.schemas(views),
        created_at=now(),
    )


def _range(
    asked: Ledger, start: validation.BlockReference, stop: validation.BlockReference
) -> range:
    """Find the heights that are meant; all of them final."""
    first, last = _height(asked, start), _height(asked, stop)
    if last < first:
        raise InvalidRequestError.refuse("stop", last, f"not below start, which is {first}")
    head = asked.send(rpc.block(validation.block_reference("final"))).header.height
    if last > head + 1:
        rule = f"at most {head + 1}: block {head} is the last final one just now"
        raise InvalidRequestError.refuse("stop", last, rule)
    return range(first, last)


def _height(asked: Ledger, at: validation.BlockReference) -> int:
    """Find the height that is meant."""
    height = at.params.get("block_id")
    if isinstance(height, int):
        return height
    [point] = asked.locate_many([at])
    if isinstance(point, LedgerError):
        raise point
    return point.height


class _Span:
    """
    The heights of a run.

    Parameters
    ----------
    heights
        From the first to the last.
    """

    what = "heights"

    def __init__(self, heights: range) -> None:
        self._heights = heights
        self.total = len(heights)

    def left(self, commits: Sequence[Commit]) -> Iterator[Subject]:
        """Give those that are not stored."""
        for missing in self._missing(commits):
            for height in missing:
                yield Subject(height, str(height))

    def stored(self, commits: Sequence[Commit]) -> int:
        """Count those that are stored."""
        return self.total - sum(len(missing) for missing in self._missing(commits))

    def within(self, commits: Sequence[Commit]) -> list[Commit]:
        """Choose the stretches in which some of them are."""
        start, stop = self._heights.start, self._heights.stop
        return [commit for commit in commits if commit.stop > start and commit.start < stop]

    def _missing(self, commits: Sequence[Commit]) -> Iterator[range]:
        """Find what no stretch covers."""
        at, stop = self._heights.start, self._heights.stop
        for commit in self.within(commits):
            if commit.start > at:
                yield range(at, commit.start)
            at = max(at, commit.stop)
        if at < stop:
            yield range(at, stop)


def _planned(
    job: Job, wanted: Manifest, ledger: Ledger, span: _Span, *, retry_failed: bool
) -> Plan:
    """Print what the run would do."""
    commits = span.within(manifest.commits(job.folder))
    failed = sum(commit.counts[part_writer.FAILED] for commit in collecting_resume.failed(commits))
    stored = span.stored(commits)
    told = Plan(
        str(job.folder),
        wanted.network,
        _request(wanted.views),
        span.total - stored + (failed if retry_failed else 0),
        ledger.rate,
        stored,
        failed,
        schemas=plan.schemas(wanted),
    )
    print(told)  # noqa: T201 - what it was asked for
    return told


def _request(views: Sequence[str]) -> str:
    """Name the requests that answer these views."""
    more = [] if list(views) == ["blocks"] else ["one chunk for each that is new in a block"]
    if not {"receipts", "events"}.isdisjoint(views):
        more.append("one EXPERIMENTAL_tx_status a transaction")
    return "; ".join(["block", *more])
