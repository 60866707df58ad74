"""The verb `collect`: many accounts to a Parquet dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from ledgerkit import client, validation
from ledgerkit.collecting import dask_engine, manifests, plan, sources, storage
from ledgerkit.collecting.accounts import VIEWS, AccountReader, request_for
from ledgerkit.collecting.collection import Collection
from ledgerkit.collecting.manifests import MAX_PART_SIZE, Manifest
from ledgerkit.collecting.part_files import utc_now
from ledgerkit.collecting.part_writer import PART_SIZE, Job
from ledgerkit.collecting.resuming import RemainingSubjects
from ledgerkit.collecting.run import Run
from ledgerkit.verbs.tokens import resolve_liquid_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from ledgerkit.collecting.manifests import Commit
    from ledgerkit.collecting.plan import Plan
    from ledgerkit.collecting.sources import Source, Subject
    from ledgerkit.ledger import Ledger


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
    Read any number of accounts into a Parquet dataset, in bounded memory.

    The run can be killed at any moment: the same call continues it, without losing or
    repeating a row. Accounts that cannot be read, malformed ids and repeated ids are rows of
    the table ``errors``.

    Parameters
    ----------
    ids
        Account ids: a list, Series or iterator of any length, or the path of a file (text
        with one id a line, CSV, or Parquet).
    views
        What to read: some of ``accounts``, ``ft``, ``nft``, ``staking``, ``exposure``. One
        request for each account reads all of them.
    out
        The folder to write to: a new one, or one with a run of the same views to continue; or
        an fsspec address such as ``"s3://bucket/run"``.
    engine
        ``"local"``, or a `dask.distributed.Client`, whose workers then send the requests and
        write the files; they share the rate.
    in_flight
        Maximum number of concurrent requests; None is that of the ledger.
    rate
        Maximum number of requests a second, up to that of the ledger; None is that of the
        ledger. It is lowered automatically while the host rate limits requests.
    resume
        Whether to continue a run in `out`; False raises if `out` has anything in it.
    retry_failed
        Whether to request the accounts again that failed before.
    dry_run
        Whether to only print what would be requested and written.
    column
        The column of a CSV or Parquet file that has the ids.
    liquid_tokens
        The liquid staking tokens that count for the exposure; None is the network's list.
    part_size
        Maximum number of accounts in one set of files. A part is stored when it is full or
        a minute old, so a killed run loses at most a minute.
    progress
        Whether to show a progress bar.
    ledger
        The ledger to read from; None is the session's default.

    Returns
    -------
    collection
        The same as `open_collection` returns; with ``dry_run=True`` a `Plan`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, `out` is of another run, or `ids` is not the source that
        the run was started with.
    AuthError
        If the host refuses the API key.
    RateLimitedError
        If every request is rate limited for ten minutes.
    TransportError
        If 64 accounts in a row have no usable response, or 10 requests none at all; responses
        before that are stored.
    FileError
        If a file cannot be written.

    Warns
    -----
    UserWarning
        If accounts could not be read.

    Notes
    -----
    Source: GET /v1/account/{account_id}/full; for a single view /ft, /nft or /staking.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> run = lk.collect(["alice.near", "bob.near"], "ft", "monday")
    >>> run
    <Collection monday of local: finished, 2 ok>
    >>> run.pandas("ft", columns=["account_id", "contract_id", "balance"]).head(3)
       account_id  contract_id                    balance
    0  alice.near    dust.near                          0
    1  alice.near    gold.near                 1252998400
    2  alice.near  liquid.near  3500000000000000000000000
    """
    validation.integer(part_size, "part_size", least=1, most=MAX_PART_SIZE)
    base = client.current(ledger)
    dask = None if engine == "local" else dask_engine.engine(engine, base)
    manifest = _manifest(base, validation.subset_of(views, "views", VIEWS), liquid_tokens)
    folder, source = storage.required_folder(out), sources.source(ids, column)
    job = Job(folder, AccountReader(manifest.views, manifest.liquid_tokens), part_size)
    manifests.check_resume(folder, manifest, resume=resume)
    with base.sibling(in_flight=in_flight, rate=rate) as paced:
        if dry_run:
            return _print_plan(job, manifest, paced, source, retry_failed=retry_failed)
        run = Run(job, manifest, paced, AccountSubjects(source), dask, progress=progress)
        with folder.lock():
            run.execute(retry_failed=retry_failed)
    return Collection(folder)


def _print_plan(
    job: Job, manifest: Manifest, ledger: Ledger, source: Source, *, retry_failed: bool
) -> Plan:
    """Print and return what the run would do."""
    planned = plan.plan_run(
        manifest,
        str(job.folder),
        manifests.read_commits(job.folder),
        source,
        request=request_for(manifest.views),
        limit=ledger.session.ready().settings.lowest_limit(job.reader.surfaces),
        retry_failed=retry_failed,
    )
    print(planned)  # noqa: T201 - the purpose of a dry run
    return planned


def _manifest(ledger: Ledger, views: list[str], liquid_tokens: Iterable[str] | None) -> Manifest:
    """Return the manifest of the run."""
    liquid = sorted(resolve_liquid_tokens(ledger, liquid_tokens)) if "exposure" in views else []
    return Manifest(
        kind="accounts",
        network=ledger.network.name,
        views=views,
        schemas=manifests.table_schemas(views),
        liquid_tokens=liquid,
        created_at=utc_now(),
    )


class AccountSubjects:
    """The account ids of a run."""

    noun = "accounts"
    settled = 0  # none waits

    def __init__(self, source: Source) -> None:
        self._source = source
        self.total = source.total

    def remaining(self, commits: Sequence[Commit]) -> Iterable[Subject]:
        """Return the subjects that are not stored."""
        return RemainingSubjects(self._source, commits)

    def count_stored(self, commits: Sequence[Commit]) -> int:
        """Count the subjects that are stored."""
        return sum(commit.stop - commit.start for commit in commits)

    def overlapping(self, commits: Sequence[Commit]) -> Sequence[Commit]:
        """Return the commits that have some of the subjects: all of them."""
        return commits
