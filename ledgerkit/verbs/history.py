"""The verb of time travel: what an account held, at many blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, overload

import pandas as pd

from ledgerkit import client, validation
from ledgerkit.api import rest, rpc
from ledgerkit.api.models import chain
from ledgerkit.errors import (
    ContractError,
    DecodeError,
    GarbageCollectedBlockError,
    InvalidRequestError,
    LedgerError,
    NoContractCodeError,
    NoGlobalContractCodeError,
    UnknownAccountError,
)
from ledgerkit.frames import amounts
from ledgerkit.frames import history as tables
from ledgerkit.frames.history import Reading
from ledgerkit.verbs import sampling
from ledgerkit.verbs.fetching import Ask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ledgerkit.api.calls import Call
    from ledgerkit.api.calls import Response as Told
    from ledgerkit.block_search.bisection import Point
    from ledgerkit.client import Ledger, OnError
    from ledgerkit.validation import BlockReference
    from ledgerkit.verbs.fetching import Answer

_NO_CONTRACT = (UnknownAccountError, NoContractCodeError, NoGlobalContractCodeError)
_SOURCES = {
    "accounts": "query view_account",
    "ft": "view call ft_balance_of",
    "staking": "view call get_account",
}
_ARCHIVE = "Connect with archival_rpc_url=, whose host keeps the state of every block."


@overload
def history(
    account_id: str,
    start: object,
    stop: object,
    *,
    every: object = None,
    views: str | Iterable[str] = ("accounts",),
    contracts: str | Iterable[str] | None = (),
    pools: str | Iterable[str] | None = (),
    on_error: Literal["raise"] = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> pd.DataFrame: ...
@overload
def history(
    account_id: str,
    start: object,
    stop: object,
    *,
    every: object = None,
    views: str | Iterable[str] = ("accounts",),
    contracts: str | Iterable[str] | None = (),
    pools: str | Iterable[str] | None = (),
    on_error: Literal["collect"],
    progress: bool = True,
    ledger: Ledger | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
def history(
    account_id: str,
    start: object,
    stop: object,
    *,
    every: object = None,
    views: str | Iterable[str] = ("accounts",),
    contracts: str | Iterable[str] | None = (),
    pools: str | Iterable[str] | None = (),
    on_error: OnError = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Answer:
    """
    Read what an account held over time, block by block.

    Parameters
    ----------
    account_id
        The account.
    start, stop
        The first reading, and the last if the spacing meets it: each a height, a block
        hash, a finality name or a time.
    every
        The spacing. A number of heights; or a duration as pandas writes it, such as
        ``"6h"``, ``"1D"`` or ``"MS"`` (the first of each month), stepping in UTC as
        `pandas.date_range` does. None takes 24 readings evenly from `start` to `stop`,
        both among them: by time where both are times, else by height.
    views
        What is read at each block: ``accounts`` (balance, locked, storage), ``ft`` (the
        balance at each of `contracts`), ``staking`` (the stake with each of `pools`).
    contracts
        For ``ft``: the tokens; none given are those that the indexer lists.
    pools
        For ``staking``: the pools; none given are those that the indexer lists.
    on_error
        ``raise``, or ``collect`` to get the failures as a second frame.
    progress
        Whether a bar shows while many are read.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    history
        One row a block, view and contract, in order of height, typed as
        `schema("history")`; all rows of a block are read at the same hash. A time, or a
        height that was skipped, is read at the last block before it; a time still to come
        at the final block. `status` tells an account that was not there yet from an empty
        one.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, or there would be more than 10,000 readings; nothing
        was sent then, unless an end or the contracts had to be looked up. Also if `start`
        is a time before the first block.
    UnknownBlockError
        If a block is not here: not yet, or the host has dropped it.
    GarbageCollectedBlockError
        If the host has dropped the state of a block; connect with ``archival_rpc_url``.
    LedgerError
        If something could not be read.

    Notes
    -----
    Source: block, query view_account, view calls ft_balance_of and get_account; which
    contracts: GET /v1/account/{account_id}/ft and /staking.
    """
    ask = Ask(client.current(ledger), on_error, progress)
    account_id = validation.account_id(account_id)
    chosen = _views(views)
    named = {
        "accounts": (),
        "ft": _named(contracts, "contracts", "ft", chosen),
        "staking": _named(pools, "pools", "staking", chosen),
    }
    grid = sampling.checked(start, stop, every, width=sum(len(named[v]) or 1 for v in chosen))
    subjects = _subjects(ask, account_id, chosen, named)
    grid = replace(grid, width=max(1, len(subjects)))
    places = grid.points(ask.ledger.locate_many) if subjects else []
    points = _points(ask, account_id, places, start)
    frame = _read(ask, subjects, points)
    return ask.answer(frame, ", ".join(_SOURCES[view] for view in chosen))


def _views(views: str | Iterable[str]) -> list[str]:
    """Check which views are read; one may be named alone."""
    if not hasattr(views, "__iter__"):
        raise InvalidRequestError.refuse("views", views, f"one of {', '.join(_SOURCES)}, or a list")
    listed = [views] if isinstance(views, str) else list(views)
    checked = (validation.one_of(view, "views", tuple(_SOURCES)) for view in listed)
    chosen = list(dict.fromkeys(checked))
    if not chosen:
        raise InvalidRequestError.refuse("views", views, f"at least one of {', '.join(_SOURCES)}")
    return chosen


def _named(
    ids: str | Iterable[str] | None, field: str, view: str, chosen: Sequence[str]
) -> list[str]:
    """Check the contracts of a view; without the view they would be ignored."""
    listed = validation.account_ids(() if ids is None else ids, field)
    if listed and view not in chosen:
        raise InvalidRequestError.refuse(field, listed, f'left out, or "{view}" among views')
    return listed


# What is read ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Subject:
    """One thing that is read at each block."""

    account_id: str
    view: str
    contract_id: str | None

    def __str__(self) -> str:
        where = "" if self.contract_id is None else f" in {self.contract_id}"
        return f"{self.account_id}{where}"

    def call(self, at: BlockReference) -> Call[Reading]:
        """Describe its reading at a block."""
        if self.contract_id is None:
            return _as_reading(rpc.view_account(self.account_id, at), _state)
        method, read = _METHODS[self.view]
        args = validation.json_args({"account_id": self.account_id})
        return _as_reading(rpc.call_function(self.contract_id, method, args, at), read)


def _subjects(
    ask: Ask, account_id: str, chosen: Sequence[str], named: dict[str, Sequence[str]]
) -> list[_Subject]:
    """List what is read, looking up the contracts that nobody named."""
    found: list[_Subject] = []
    for view in chosen:
        if view == "accounts":
            found.append(_Subject(account_id, view, None))
        else:
            contracts = named[view] or _looked_up(ask, account_id, view)
            found += [_Subject(account_id, view, one) for one in contracts]
    return found


def _looked_up(ask: Ask, account_id: str, view: str) -> list[str]:
    """Ask the indexer which contracts an account ever had to do with."""
    if view == "ft":
        told = ask.each([account_id], [rest.ft(account_id)], "tokens")
        return [token.contract_id for _, found in told for token in found.tokens or ()]
    listed = ask.each([account_id], [rest.staking(account_id)], "staking")
    return [pool.pool_id for _, found in listed for pool in found.pools or ()]


def _points(
    ask: Ask, account_id: str, places: Sequence[BlockReference], start: object
) -> list[Point]:
    """Locate the blocks to read at, each once."""
    found: dict[str, Point] = {}
    for place, point in zip(places, ask.ledger.locate_many(places), strict=True):
        if isinstance(point, InvalidRequestError) and point.field == "at":
            raise InvalidRequestError.refuse("start", start, point.rule or "")
        if isinstance(point, LedgerError):
            ask.fails(f"{account_id} at {_shown(place)}", point)
        else:
            found[point.hash] = point
    return list(found.values())


def _shown(place: BlockReference) -> str:
    """Name a point in history."""
    if place.timestamp_ns is None:
        return f"block {next(iter(place.params.values()))}"
    return pd.Timestamp(place.timestamp_ns, tz="UTC").isoformat()


def _read(ask: Ask, subjects: Sequence[_Subject], points: Sequence[Point]) -> pd.DataFrame:
    """Read all subjects at all blocks."""
    asked = [(point, subject) for point in points for subject in subjects]
    calls: list[Call[Any]] = [
        subject.call(validation.block_reference(point.hash)) for point, subject in asked
    ]
    answers: list[Any] = ask.send(calls, "readings")
    rows: list[tuple[str, tables.Row]] = []
    for (point, subject), told in zip(asked, answers, strict=True):
        name = f"{subject} at block {point.height}"
        if isinstance(told, LedgerError):
            ask.fails(name, told)
        else:
            whose = subject.account_id, subject.view, subject.contract_id
            rows.append((name, tables.Row(*whose, point, told)))
    return ask.frame(rows, tables.history, "the reading")


# How answers are read ---------------------------------------------------------------------


def _as_reading(call: Call[Any], read: Callable[[Call[Any], Told], Reading]) -> Call[Reading]:
    """Read a call's answer as a status with amounts; only what is there is remembered."""

    def reading(answer: Told) -> Reading:
        try:
            return read(call, answer)
        except GarbageCollectedBlockError as error:
            error.remedy = _ARCHIVE
            raise

    return replace(call, read=reading, keep=_is_ok)


def _is_ok(reading: Reading) -> bool:
    """Tell an answer from an error that was answered."""
    return reading.status == "ok"


def _state(call: Call[chain.Account], answer: Told) -> Reading:
    """Read an account's state."""
    try:
        found = call.read(answer)
    except UnknownAccountError:
        return Reading("no_account")
    known = amounts.plain([found.amount, found.locked])
    if known is None:
        told = f"{found.amount!r} and {found.locked!r} are no amounts"
        raise DecodeError(told, asked=call.asked, path="$.result.amount")
    return Reading("ok", known[0], known[1], storage_bytes=found.storage_usage)


def _token(call: Call[chain.CallResult], answer: Told) -> Reading:
    """Read a token's balance: the contract's own word."""
    try:
        found = call.read(answer)
    except _NO_CONTRACT:
        return Reading("no_contract")
    except ContractError:
        return Reading("broken")
    known = amounts.plain([_content(found, str, call.asked)])
    return Reading("broken") if known is None else Reading("ok", known[0])


def _stake(call: Call[chain.CallResult], answer: Told) -> Reading:
    """Read the stake with a pool; a contract that does not answer as a pool is told so."""
    try:
        found = call.read(answer)
    except _NO_CONTRACT:
        return Reading("no_contract")
    except ContractError:
        return Reading("not_a_pool")
    position = _content(found, chain.StakingPosition, call.asked)
    if position is None:
        return Reading("not_a_pool")
    known = amounts.plain([position.staked_balance, position.unstaked_balance])
    if known is None:
        return Reading("not_a_pool")
    return Reading("ok", staked=known[0], unstaked=known[1])


def _content(answer: chain.CallResult, kind: Any, asked: str) -> Any:
    """Decode what a contract returned; None where it is something else."""
    try:
        return rpc.decoded(answer, kind, asked)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None


_METHODS = {"ft": ("ft_balance_of", _token), "staking": ("get_account", _stake)}
