"""The verb `collect`: many accounts to a Parquet dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from ledgerkit import client, validation
from ledgerkit.collecting import dask_engine, manifest, plan, sources, storage
from ledgerkit.collecting.accounts import VIEWS, Accounts, source_of
from ledgerkit.collecting.collection import Collection
from ledgerkit.collecting.manifest import Manifest
from ledgerkit.collecting.part_files import now
from ledgerkit.collecting.part_writer import PART_SIZE, Job
from ledgerkit.collecting.resume import Left
from ledgerkit.collecting.run import MOST_IN_PART, Run
from ledgerkit.verbs.tokens import liquid_tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from ledgerkit.client import Ledger
    from ledgerkit.collecting.manifest import Commit
    from ledgerkit.collecting.plan import Plan
    from ledgerkit.collecting.sources import Source, Subject


@overload
def collect(
    ids: object,
    views: str | Iterable[str] = VIEWS,
    out: str | PathLike[str] | None = None,
    *,
    engine: Any = "local",
    in_flight: int | None = None,
    rate: float | None = None,
    resume: bool = True,
    retry_failed: bool = False,
    dry_run: Literal[False] = False,
    column: str = "account_id",
    liquid_tokens: Iterable[str] | None = None,
    part_size: int = PART_SIZE,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Collection: ...
@overload
def collect(
    ids: object,
    views: str | Iterable[str] = VIEWS,
    out: str | PathLike[str] | None = None,
    *,
    engine: Any = "local",
    in_flight: int | None = None,
    rate: float | None = None,
    resume: bool = True,
    retry_failed: bool = False,
    dry_run: Literal[True],
    column: str = "account_id",
    liquid_tokens: Iterable[str] | None = None,
    part_size: int = PART_SIZE,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Plan: ...
def collect(
    ids: object,
    views: str | Iterable[str] = VIEWS,
    out: str | PathLike[str] | None = None,
    *,
    engine: Any = "local",
    in_flight: int | None = None,
    rate: float | None = None,
    resume: bool = True,
    retry_failed: bool = False,
    dry_run: bool = False,
    column: str = "account_id",
    liquid_tokens: Iterable[str] | None = None,
    part_size: int = PART_SIZE,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Collection | Plan:
    """
    Read many accounts into a Parquet dataset, in bounded memory.

    Killed at any moment, the same call goes on where it was: no row is lost and none is
    there twice. An account that cannot be read, a malformed id and one that stands in the
    source twice are rows of the table ``errors``.

    Parameters
    ----------
    ids
        Account ids: a list, Series or iterator of any length, or the path of a file (text
        with a line each, CSV, or Parquet).
    views
        What to read: some of ``accounts``, ``ft``, ``nft``, ``staking``, ``exposure``. One
        request an account answers all.
    out
        The folder to write to, new or one that a run with the same views was begun in; or
        an address that fsspec reaches, such as ``"s3://bucket/run"``.
    engine
        ``"local"``, or a `dask.distributed.Client`, whose workers then ask and write, each
        with its share of the rate.
    in_flight
        Most requests at a time; None is as the ledger was connected. Many need the extra
        ``ledgerkit[bulk]``.
    rate
        Most requests a second, if the ledger allows as many; None is as it was connected.
        A host that says it is asked too much is asked less, down to what it bears.
    resume
        Whether to go on with what `out` holds; False refuses a folder that holds anything.
    retry_failed
        Whether to ask those again that were asked in vain before.
    dry_run
        Whether only to print what would be asked and written.
    column
        The column of a CSV or Parquet file that holds the ids.
    liquid_tokens
        The liquid staking tokens by which exposure is classed; None is the network's own.
    part_size
        Most accounts in one set of files. A part is stored when it is full, or a minute
        old: so much a kill costs.
    progress
        Whether a bar shows.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    collection
        What `open_collection` gives; with ``dry_run=True`` a `Plan`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, `out` belongs to another run or `ids` is another source
        than the one it was begun with.
    AuthError
        If the service refuses the key.
    RateLimitedError
        If the service bears nothing for ten minutes.
    TransportError
        If 64 accounts in a row are not answered; what was answered before is stored.
    FileError
        If a file cannot be written.

    Warns
    -----
    UserWarning
        If accounts were asked in vain.

    Notes
    -----
    Source: GET /v1/account/{account_id}/full, or of a single view /ft, /nft or /staking.
    """
    validation.integer(part_size, "part_size", least=1, most=MOST_IN_PART)
    asked = client.current(ledger)
    spread = None if engine == "local" else dask_engine.engine(engine, asked)
    wanted = _manifest(asked, validation.subset_of(views, "views", VIEWS), liquid_tokens)
    folder, source = storage.given(out), sources.source(ids, column)
    job = Job(folder, Accounts(wanted.views, wanted.liquid_tokens), part_size)
    manifest.check_new(folder, wanted, resume=resume)
    with asked.sibling(in_flight=in_flight, rate=rate) as paced:
        if dry_run:
            return _planned(job, wanted, paced, source, retry_failed=retry_failed)
        run = Run(job, wanted, paced, _Ids(source), spread, progress=progress)
        with folder.lock():
            run.go(retry_failed=retry_failed)
    return Collection(folder)


def _planned(
    job: Job, wanted: Manifest, ledger: Ledger, source: Source, *, retry_failed: bool
) -> Plan:
    """Print what the run would do."""
    told = plan.plan(
        wanted,
        str(job.folder),
        manifest.commits(job.folder),
        source,
        request=source_of(wanted.views),
        rate=ledger.rate,
        retry_failed=retry_failed,
    )
    print(told)  # noqa: T201 - what it was asked for
    return told


def _manifest(asked: Ledger, views: list[str], given: Iterable[str] | None) -> Manifest:
    """Describe the run."""
    liquid = sorted(liquid_tokens_of(asked, given)) if "exposure" in views else []
    return Manifest(
        kind="accounts",
        network=asked.network.name,
        views=views,
        schemas=manifest.schemas(views),
        liquid_tokens=liquid,
        created_at=now(),
    )


class _Ids:
    """
    The account ids of a run.

    Parameters
    ----------
    source
        Where they come from.
    """

    what = "accounts"

    def __init__(self, source: Source) -> None:
        self._source = source
        self.total = source.total

    def left(self, commits: Sequence[Commit]) -> Iterable[Subject]:
        """Give those that are not stored."""
        return Left(self._source, commits)

    def stored(self, commits: Sequence[Commit]) -> int:
        """Count those that are stored."""
        return sum(commit.stop - commit.start for commit in commits)

    def within(self, commits: Sequence[Commit]) -> Sequence[Commit]:
        """Choose the stretches in which some of them are: all."""
        return commits
