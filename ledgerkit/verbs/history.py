"""The verb `history`: the holdings of an account at many blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack, overload

import pandas as pd

from ledgerkit import errors, validation
from ledgerkit.api import rest
from ledgerkit.frames import accounts as account_frames
from ledgerkit.frames.accounts import Reading, Row
from ledgerkit.ledger import refuse_reference
from ledgerkit.verbs import readings, sampling
from ledgerkit.verbs.declaring import Collecting, Raising, verb_of_many
from ledgerkit.verbs.fetching import Fetcher, FrameResult, open_fetcher

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call
    from ledgerkit.block_search.bisection import Point
    from ledgerkit.validation import BlockReference

_SOURCES = {
    "accounts": "query view_account",
    "ft": "view call ft_balance_of",
    "staking": "view call get_account",
}


@overload
def history(
    account_id: str,
    start: object,
    stop: object = None,
    *,
    every: object = None,
    views: str | Iterable[str] = ("accounts",),
    contracts: str | Iterable[str] | None = None,
    pools: str | Iterable[str] | None = None,
    **options: Unpack[Raising],
) -> pd.DataFrame: ...
@overload
def history(
    account_id: str,
    start: object,
    stop: object = None,
    *,
    every: object = None,
    views: str | Iterable[str] = ("accounts",),
    contracts: str | Iterable[str] | None = None,
    pools: str | Iterable[str] | None = None,
    **options: Unpack[Collecting],
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
@verb_of_many
def history(
    account_id: str,
    start: object,
    stop: object = None,
    *,
    every: object = None,
    views: str | Iterable[str] = ("accounts",),
    contracts: str | Iterable[str] | None = None,
    pools: str | Iterable[str] | None = None,
    **options: Any,
) -> FrameResult:
    """
    Return the holdings of an account at points from `start` to `stop`, both included.

    The state after each block is read. `stop` is a point too, unlike in verbs that list rows of
    blocks or events.

    Parameters
    ----------
    start, stop
        The ends, each a height, block hash, finality name or time; a time is the last block at or
        before it. None stops at the final block. The last reading is at or before `stop`. A
        period such as ``"2026-07"`` or ``"last month"`` sets both ends.
    every
        The spacing: a number of heights, or a duration in the notation of pandas, such as
        ``"6h"``, ``"1D"`` or ``"MS"`` (the first day of each month), in UTC as in
        `pandas.date_range`. None makes 24 readings from `start` to `stop` inclusive,
        evenly spaced by time if both are times, else by height.
    views
        What to read at each block: ``accounts`` (balance, locked, storage), ``ft`` (the
        balance at each of `contracts`), ``staking`` (the stake with each of `pools`).
    contracts
        For ``ft``: the token contracts; None reads the tokens that the indexer lists.
    pools
        For ``staking``: the pools; None reads the pools that the indexer lists.

    Returns
    -------
    history
        One row per block, view and contract, in order of height, typed as
        `schema("history")`. All rows of a block are read at the same block hash. A time or
        a skipped height is read at the last block before it, a future time at the final
        block. `status` distinguishes accounts that did not exist yet from empty accounts.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, more than 10,000 readings would be made, or `start` is
        a time before the first block. Nothing is sent, unless an end or the contracts have
        to be looked up.
    UnknownBlockError
        If a block does not exist yet, or the node no longer has it.
    GarbageCollectedBlockError
        If the node no longer has the state of a block. Connect with `archival_rpc_url`.
    LedgerError
        If a reading failed.

    Notes
    -----
    Source: block, query view_account, view methods ft_balance_of and get_account; the
    contracts from GET /v1/account/{account_id}/ft and /staking.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> past = lk.history("nina.near", "2026-08-01", "2026-08-01T00:00:30", every="10s")
    >>> past[["block_height", "time", "status", "balance"]]
       block_height                          time      status                    balance
    0     180000000 2026-08-01 00:00:00.000+00:00  no_account                       <NA>
    1     180000016 2026-08-01 00:00:09.600+00:00  no_account                       <NA>
    2     180000033 2026-08-01 00:00:19.800+00:00  no_account                       <NA>
    3     180000050 2026-08-01 00:00:30.000+00:00          ok  2000000000000000000000000
    """
    fetcher = open_fetcher(**options)
    account_id = validation.account_id(account_id)
    view_names = check_views(views)
    contract_ids: dict[str, Sequence[str | None] | None] = {
        "accounts": [None],
        "ft": _check_contracts(contracts, "contracts", "ft", view_names),
        "staking": _check_contracts(pools, "pools", "staking", view_names),
    }
    readings_per_point = sum(len(contract_ids[view] or [None]) for view in view_names)
    sampling_range = sampling.check_range(start, stop, every, readings_per_point=readings_per_point)
    subjects = _list_subjects(fetcher, account_id, view_names, contract_ids)
    sampling_range = replace(sampling_range, readings_per_point=max(1, len(subjects)))
    references = sampling_range.points(fetcher.ledger.locate_many) if subjects else []
    points = _locate_points(fetcher, account_id, references, start)
    frame = _read_all(fetcher, subjects, points)
    return fetcher.result(frame, ", ".join(_SOURCES[view] for view in view_names))


def check_views(views: str | Iterable[str]) -> list[str]:
    names = ", ".join(_SOURCES)
    if not hasattr(views, "__iter__"):
        raise errors.InvalidRequestError.refuse(
            "views", views, f"one of {names}, or a list of them"
        )
    listed = [views] if isinstance(views, str) else list(views)
    checked = (validation.one_of(view, "views", tuple(_SOURCES)) for view in listed)
    view_names = list(dict.fromkeys(checked))
    if not view_names:
        raise errors.InvalidRequestError.refuse("views", views, f"at least one of {names}")
    return view_names


def _check_contracts(
    ids: str | Iterable[str] | None, field: str, view: str, view_names: Sequence[str]
) -> list[str] | None:
    contract_ids = None if ids is None else validation.account_ids(ids, field)
    if contract_ids and view not in view_names:
        msg = f'{field}= needs "{view}" among views'
        raise errors.InvalidRequestError(msg, field=field, value=contract_ids)
    return contract_ids


# Subjects and points ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Subject:
    """A quantity to read at each block: an account's state, token or stake."""

    account_id: str
    view: str
    contract_id: str | None

    def __str__(self) -> str:
        contract = "" if self.contract_id is None else f" in {self.contract_id}"
        return f"{self.account_id}{contract}"

    def call(self, at: BlockReference) -> Call[Reading]:
        """Build the call that reads the quantity at a block."""
        if self.contract_id is None:
            return readings.state_call(self.account_id, at)
        call = readings.token_reading_call if self.view == "ft" else readings.stake_call
        return call(self.account_id, self.contract_id, at)


def _list_subjects(
    fetcher: Fetcher,
    account_id: str,
    view_names: Sequence[str],
    contract_ids: Mapping[str, Sequence[str | None] | None],
) -> list[_Subject]:
    subjects: list[_Subject] = []
    for view in view_names:
        contracts = contract_ids[view]
        if contracts is None:
            contracts = _indexed_contracts(fetcher, account_id, view)
        subjects += [_Subject(account_id, view, contract_id) for contract_id in contracts]
    return subjects


def _indexed_contracts(fetcher: Fetcher, account_id: str, view: str) -> list[str]:
    if view == "ft":
        tokens = fetcher.fetch({account_id: rest.ft(account_id)}, "tokens")
        return [token.contract_id for _, listed in tokens for token in listed.tokens or ()]
    pools = fetcher.fetch({account_id: rest.staking(account_id)}, "staking")
    return [pool.pool_id for _, listed in pools for pool in listed.pools or ()]


def _locate_points(
    fetcher: Fetcher, account_id: str, references: Sequence[BlockReference], start: object
) -> list[Point]:
    points: dict[str, Point] = {}
    located = fetcher.ledger.locate_many(references)
    for reference, point in zip(references, located, strict=True):
        if isinstance(point, errors.LedgerError):
            refuse_reference(point, "start", start)
            fetcher.fail(f"{account_id} at {_reference_text(reference)}", point)
        else:
            points[point.hash] = point
    return list(points.values())


def _reference_text(reference: BlockReference) -> str:
    if reference.timestamp_ns is None:
        return f"block {next(iter(reference.params.values()))}"
    return pd.Timestamp(reference.timestamp_ns, tz="UTC").isoformat()


def _read_all(
    fetcher: Fetcher, subjects: Sequence[_Subject], points: Sequence[Point]
) -> pd.DataFrame:
    pairs = [(point, subject) for point in points for subject in subjects]
    calls: list[Call[Any]] = [
        subject.call(validation.block_reference(point.hash)) for point, subject in pairs
    ]
    results: list[Any] = fetcher.send(calls, "readings")
    rows: list[tuple[str, Row]] = []
    for (point, subject), reading in zip(pairs, results, strict=True):
        name = f"{subject} at block {point.height}"
        if isinstance(reading, errors.LedgerError):
            fetcher.fail(name, reading)
        else:
            row = Row(subject.account_id, subject.view, subject.contract_id, point, reading)
            rows.append((name, row))
    return fetcher.frame(rows, account_frames.history, "the reading")
