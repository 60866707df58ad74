"""The verb `collect`: many accounts to a Parquet dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Unpack, overload
from urllib.parse import unquote

from ledgerkit import client, validation
from ledgerkit.api import rest, rpc
from ledgerkit.collecting import account_sources, manifests
from ledgerkit.collecting.outcomes import Outcome, read_each
from ledgerkit.collecting.resuming import remaining_subjects
from ledgerkit.collecting.run import Options, Planning, Run, Running
from ledgerkit.errors import InvalidRequestError, LedgerError
from ledgerkit.frames import accounts as account_frames
from ledgerkit.frames import arrow_tables
from ledgerkit.frames import tokens as token_frames
from ledgerkit.frames.collected import INDEXED_VIEWS, VIEWS
from ledgerkit.verbs.declaring import shared_parameters, with_options
from ledgerkit.verbs.tokens import resolve_liquid_tokens

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call, Surface
    from ledgerkit.collecting.account_sources import Source, Subject
    from ledgerkit.collecting.collection import Collection
    from ledgerkit.collecting.manifests import Commit, Manifest
    from ledgerkit.collecting.plan import Plan
    from ledgerkit.collecting.storage import Folder
    from ledgerkit.ledger import Ledger

    BuildColumns = Callable[[Sequence[Any]], dict[str, Any]]


@overload
def collect(
    account_ids: object,
    views: str | Iterable[str] = INDEXED_VIEWS,
    out: str | PathLike[str] | None = None,
    *,
    column: str = "account_id",
    liquid_tokens: Iterable[str] | None = None,
    **options: Unpack[Running],
) -> Collection: ...
@overload
def collect(
    account_ids: object,
    views: str | Iterable[str] = INDEXED_VIEWS,
    out: str | PathLike[str] | None = None,
    *,
    column: str = "account_id",
    liquid_tokens: Iterable[str] | None = None,
    **options: Unpack[Planning],
) -> Plan: ...
@shared_parameters
@with_options(Options)
def collect(
    account_ids: object,
    views: str | Iterable[str] = INDEXED_VIEWS,
    out: str | PathLike[str] | None = None,
    *,
    column: str = "account_id",
    liquid_tokens: Iterable[str] | None = None,
    **options: Any,
) -> Collection | Plan:
    """
    Read any number of accounts into a Parquet dataset, in bounded memory.

    The run can be killed at any moment: the same call continues it, without losing or
    repeating a row. Accounts that cannot be read, malformed ids and repeated ids are rows of
    the table ``errors``.

    Parameters
    ----------
    account_ids
        Account ids: a list, Series or iterator of any length, or the path of a file (text
        with one id a line, CSV, or Parquet).
    views
        What to read: some of ``accounts``, ``ft``, ``nft``, ``staking`` and ``exposure``, with one
        request per account; or only ``contracts``, from a node: whether an account is a
        contract, and its code, as ``schema("contracts")``.
    out
        The folder to write to: a new one, or one with a run of the same views to continue; or
        an fsspec address such as ``"s3://bucket/run"``.
    resume
        Whether to continue a run in `out`; False raises if `out` has anything in it.
    retry_failed
        Whether to request accounts again that failed before.
    dry_run
        Whether to only print what would be requested and written.
    column
        The column of a CSV or Parquet file that has the ids.
    liquid_tokens
        The liquid staking tokens that count for the exposure; None is the network's list.
    part_size
        Maximum number of accounts in one set of files. A part is stored when it is full or
        a minute old, so a killed run loses at most a minute.

    Returns
    -------
    collection
        The same as `open_collection` returns; with ``dry_run=True`` a `Plan`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, `out` is of another run, or `account_ids` is not the source
        that the run was started with.
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
    Source: GET /v1/account/{account_id}/full; for a single view /ft, /nft or /staking, or query
    view_account.

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
    run = AccountRun(account_sources.source(account_ids, column), views, liquid_tokens)
    checked = Options(**options)
    return run.start(client.current(checked.ledger), out, checked)


class SourceRun(Run):
    """A run over the account ids of a source."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.total = source.total

    def remaining(self, commits: Sequence[Commit]) -> Iterator[Subject]:
        """Yield the subjects that are not stored; raise if the source is another one."""
        return remaining_subjects(self._source, commits)

    def count_remaining(self, commits: Sequence[Commit]) -> tuple[int | None, dict[str, int]]:
        """Count the subjects to request, and the others by kind; an iterator is not read."""
        if not self._source.is_repeatable:
            return None, {}
        counts = Counter(subject.problem for subject in self.remaining(commits))
        return counts[None], {kind: count for kind, count in counts.items() if kind is not None}


class AccountRun(SourceRun):
    """The run of `collect`."""

    def __init__(
        self, source: Source, views: str | Iterable[str], liquid_tokens: Iterable[str] | None
    ) -> None:
        super().__init__(source)
        self._views = validation.subset_of(views, "views", VIEWS["accounts"])
        if "contracts" in self._views and len(self._views) > 1:
            rule = (
                "contracts alone, in a folder of its own: a node answers it, the indexer the others"
            )
            raise InvalidRequestError.refuse("views", self._views, rule)
        self._liquid_tokens = liquid_tokens

    def manifest(self, ledger: Ledger, folder: Folder) -> Manifest:  # noqa: ARG002 - the folder adds nothing
        """Return the manifest, with the liquid tokens if the exposure is read."""
        liquid: list[str] = []
        if "exposure" in self._views:
            liquid = sorted(resolve_liquid_tokens(ledger, self._liquid_tokens))
        return manifests.new_manifest(
            "accounts", ledger.network.name, self._views, liquid_tokens=liquid
        )

    def open(self, ledger: Ledger, manifest: Manifest) -> AccountReader:  # noqa: ARG002 - nothing is found
        return AccountReader(manifest.views, manifest.liquid_tokens)

    def request(self, manifest: Manifest) -> tuple[str, int]:
        if "contracts" in manifest.views:
            return "query view_account", 1
        return f"GET {unquote(_call_of(manifest.views)('{account_id}').path)}", 1


# Requests and tables -------------------------------------------------------------------


def _view_account(account_id: str) -> Call[Any]:
    return rpc.view_account(account_id, validation.block_reference(None))


# Single views have smaller responses; all other sets of views need the full response.
_SINGLE_VIEW: dict[tuple[str, ...], Callable[[str], Call[Any]]] = {
    ("ft",): rest.ft,
    ("nft",): rest.nft,
    ("staking",): rest.staking,
    ("contracts",): _view_account,
}


def _call_of(views: Sequence[str]) -> Callable[[str], Call[Any]]:
    return _SINGLE_VIEW.get(tuple(views), rest.full)


class AccountReader:
    """A reader of views of accounts; the exposure counts the liquid tokens."""

    noun = "accounts"

    def __init__(self, views: Sequence[str], liquid_tokens: Iterable[str]) -> None:
        self.surfaces: tuple[Surface, ...] = ("rpc",) if "contracts" in views else ("api",)
        self._call = _call_of(views)
        exposure = partial(token_frames.exposure_columns, liquid=frozenset(liquid_tokens))
        builders: dict[str, BuildColumns] = {**_COLUMNS, "exposure": exposure}
        self._columns = {view: builders[view] for view in views}

    def read(self, ledger: Ledger, subjects: Iterable[Subject]) -> Iterator[list[Outcome]]:
        """Request accounts; yield their outcomes in order, a batch at a time."""
        return read_each(ledger, subjects, self._call)

    def tables(self, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        pairs = [
            (subject.text, value)
            for subject, value in outcomes
            if value is not None and not isinstance(value, LedgerError)
        ]
        # The state of an account on the chain does not repeat the account's id.
        values = pairs if "contracts" in self._columns else [value for _, value in pairs]
        return {
            view: arrow_tables.of_columns(view, columns(values))
            for view, columns in self._columns.items()
        }


def _nft_columns(views: Sequence[Any]) -> dict[str, Any]:
    rows = [(v.account_id, v.nfts if hasattr(v, "nfts") else v.tokens) for v in views]
    return token_frames.nft_columns(rows)


_COLUMNS: dict[str, BuildColumns] = {
    "accounts": account_frames.account_columns,
    "ft": token_frames.ft_columns,
    "nft": _nft_columns,
    "staking": lambda views: token_frames.pool_columns(token_frames.pool_rows(views)),
    "contracts": account_frames.contract_columns,
}
