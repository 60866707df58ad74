"""Verbs about what accounts hold: fungible tokens, NFTs, staking, exposure."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

import msgspec

from ledgerkit import client, validation
from ledgerkit.api import calls, rest, rpc
from ledgerkit.api.models import chain
from ledgerkit.errors import (
    ContractError,
    ContractPanicError,
    DecodeError,
    InvalidRequestError,
    UnknownAccountError,
)
from ledgerkit.frames import amounts
from ledgerkit.frames import exposure as frames_exposure
from ledgerkit.frames import tokens as tables
from ledgerkit.frames.build import build_frame
from ledgerkit.verbs.fetching import Ask, framed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    from ledgerkit.api.models import rest as indexed_wire
    from ledgerkit.client import Ledger, OnError
    from ledgerkit.verbs.fetching import Answer, Ids

_NO_CONTRACT = (ContractError, UnknownAccountError)
_PAGE = 50
_MOST_PAGE = 1000
_MOST_TOKENS = 100_000  # of one account; a hostile contract never ends


@overload
def ft(
    ids: Ids,
    *,
    metadata: bool = False,
    on_error: Literal["raise"] = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> pd.DataFrame: ...
@overload
def ft(
    ids: Ids,
    *,
    metadata: bool = False,
    on_error: Literal["collect"],
    progress: bool = True,
    ledger: Ledger | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
def ft(
    ids: Ids,
    *,
    metadata: bool = False,
    on_error: OnError = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Answer:
    """
    Read the fungible tokens of accounts.

    Parameters
    ----------
    ids
        One account id or many; repeats are dropped.
    metadata
        Whether to add symbol, decimals and the balance in human units; each
        contract is asked once a session.
    on_error
        ``raise``, or ``collect`` to get the failures as a second frame.
    progress
        Whether a bar shows while many are read.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    balances
        One row a token ever held, typed as `schema("ft")` or
        `schema("ft_metadata")`. `balance` is exact, in the token's smallest unit;
        `status` tells 0 from not known.

    Raises
    ------
    InvalidRequestError
        If an id is malformed; nothing was sent then.
    LedgerError
        If an account could not be read.

    Notes
    -----
    Source: GET /v1/account/{account_id}/ft; metadata: view call ft_metadata.
    """
    ask = Ask(client.current(ledger), on_error, progress)
    many = validation.account_ids(ids)
    views = ask.each(many, [rest.ft(one) for one in many], "tokens")
    facts = _token_facts(ask, [view for _, view in views]) if metadata else None
    frame = ask.frame(views, lambda some: tables.ft(some, facts), "the tokens")
    return ask.answer(frame, "GET /v1/account/{account_id}/ft")


def _token_facts(
    ask: Ask, views: Sequence[indexed_wire.FungibleTokens]
) -> dict[str, tables.TokenFacts]:
    """Read the metadata of each contract once; a contract without any is told so."""
    contracts = list(dict.fromkeys(t.contract_id for view in views for t in view.tokens or ()))
    final = validation.block_reference("final")
    asked = [rpc.call_function(c, "ft_metadata", b"{}", final, keep=True) for c in contracts]
    quiet = Ask(ask.ledger, "collect", ask.progress)
    facts = {c: _facts(answer) for c, answer in quiet.each(contracts, asked, "metadata")}
    for contract_id, error in quiet.failures:
        if isinstance(error, _NO_CONTRACT):
            facts[contract_id] = tables.TokenFacts("missing")
        elif isinstance(error, DecodeError):
            facts[contract_id] = tables.TokenFacts("broken")
        else:  # the balances are known all the same
            ask.fails(contract_id, error)
            facts[contract_id] = tables.TokenFacts("unread")
    return facts


def _facts(answer: chain.CallResult) -> tables.TokenFacts:
    """Decode a token's metadata; what is not an object is broken, not an error."""
    try:
        return tables.token_facts(
            calls.decoder(chain.FtMetadata).decode(rpc.returned(answer, "ft_metadata"))
        )
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, DecodeError):
        return tables.TokenFacts("broken")


@overload
def nft(
    ids: Ids,
    *,
    on_error: Literal["raise"] = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> pd.DataFrame: ...
@overload
def nft(
    ids: Ids,
    *,
    on_error: Literal["collect"],
    progress: bool = True,
    ledger: Ledger | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
def nft(
    ids: Ids,
    *,
    on_error: OnError = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Answer:
    """
    Read the NFT collections of accounts.

    Parameters
    ----------
    ids
        One account id or many; repeats are dropped.
    on_error
        ``raise``, or ``collect`` to get the failures as a second frame.
    progress
        Whether a bar shows while many are read.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    collections
        One row a collection ever held from, typed as `schema("nft")`; for the
        tokens themselves see `nft_tokens`.

    Raises
    ------
    InvalidRequestError
        If an id is malformed; nothing was sent then.
    LedgerError
        If an account could not be read.

    Notes
    -----
    Source: GET /v1/account/{account_id}/nft.
    """
    ask = Ask(client.current(ledger), on_error, progress)
    many = validation.account_ids(ids)
    views = ask.each(many, [rest.nft(one) for one in many], "NFTs")
    frame = ask.frame(views, _nft_frame, "the NFTs")
    return ask.answer(frame, "GET /v1/account/{account_id}/nft")


def _nft_frame(views: Sequence[indexed_wire.Collections]) -> pd.DataFrame:
    """Frame the collections of accounts."""
    return tables.nft([(view.account_id, view.tokens) for view in views])


@overload
def nft_tokens(
    ids: Ids,
    contract_id: str,
    *,
    at: object = None,
    page: int = _PAGE,
    on_error: Literal["raise"] = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> pd.DataFrame: ...
@overload
def nft_tokens(
    ids: Ids,
    contract_id: str,
    *,
    at: object = None,
    page: int = _PAGE,
    on_error: Literal["collect"],
    progress: bool = True,
    ledger: Ledger | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
def nft_tokens(
    ids: Ids,
    contract_id: str,
    *,
    at: object = None,
    page: int = _PAGE,
    on_error: OnError = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Answer:
    """
    Read the tokens that accounts hold of one NFT collection.

    Parameters
    ----------
    ids
        One account id or many; repeats are dropped.
    contract_id
        The collection.
    at
        A height, a block hash, a finality name or a time; None is ``final``. All
        pages are read at the same block.
    page
        How many tokens one call asks for; smaller where a contract runs out of gas.
    on_error
        ``raise``, or ``collect`` to get the failures as a second frame.
    progress
        Whether a bar shows while many are read.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    tokens
        One row a token, typed as `schema("nft_tokens")`; metadata is text as sent.

    Raises
    ------
    ContractError
        If the contract is no NFT contract, or its call failed.
    InvalidRequestError
        If an argument is malformed; nothing was sent then.
    LedgerError
        If an account could not be read.

    Notes
    -----
    Source: view call nft_tokens_for_owner, paged until a page brings nothing new.
    """
    ask = Ask(client.current(ledger), on_error, progress)
    contract_id = validation.account_id(contract_id, "contract_id")
    page = validation.integer(page, "page", least=1, most=_MOST_PAGE)
    many = validation.account_ids(ids)
    block = ask.ledger.send(rpc.block(ask.ledger.locate(at)))
    pinned = validation.block_reference(block.header.hash)
    found: dict[str, dict[str, chain.NftToken]] = {account_id: {} for account_id in many}
    open_ids = many
    while open_ids:
        asked = [_nft_page(one, contract_id, len(found[one]), page, pinned) for one in open_ids]
        open_ids = _take_pages(ask, found, ask.each(open_ids, asked, "NFT tokens"), contract_id)
    failed = {subject for subject, _ in ask.failures}
    rows = [(a, t) for a, tokens in found.items() if a not in failed for t in tokens.values()]
    head = block.header
    return ask.answer(
        tables.nft_tokens(contract_id, rows),
        "view call nft_tokens_for_owner",
        block_height=head.height,
        block_hash=head.hash,
    )


def _nft_page(
    account_id: str, contract_id: str, start: int, limit: int, at: validation.BlockReference
) -> calls.Call[chain.CallResult]:
    """Describe one page of an owner's tokens."""
    args = {"account_id": account_id, "from_index": str(start), "limit": limit}
    described = rpc.call_function(
        contract_id, "nft_tokens_for_owner", validation.json_args(args), at
    )
    return replace(described, read=partial(_read_page, described)) if start else described


def _read_page(described: calls.Call[chain.CallResult], answer: calls.Response) -> chain.CallResult:
    """Read a further page; contracts of the standard's library panic where there is none."""
    try:
        return described.read(answer)
    except ContractPanicError as error:
        if "out of bounds" not in error.panic_msg.lower():
            raise
        return chain.CallResult(list(b"[]"))


def _take_pages(
    ask: Ask,
    found: dict[str, dict[str, chain.NftToken]],
    pages: Sequence[tuple[str, chain.CallResult]],
    contract_id: str,
) -> list[str]:
    """Take pages in; gives the accounts whose page brought something new."""
    going_on = []
    for account_id, answer in pages:
        asked = f"nft_tokens_for_owner of {contract_id}"
        try:
            tokens = rpc.decoded(answer, list[chain.NftToken], asked)
        except DecodeError as error:
            ask.fails(account_id, error)
            continue
        held = found[account_id]
        new = [token for token in tokens if token.token_id not in held]
        held.update((token.token_id, token) for token in new)
        if len(held) > _MOST_TOKENS:
            ask.fails(account_id, ContractError(f"{asked} names more than {_MOST_TOKENS} tokens"))
        elif new:  # a contract may cap its pages below what was asked
            going_on.append(account_id)
    return going_on


@overload
def staking(
    ids: Ids,
    *,
    positions: bool = False,
    pools: Iterable[str] = (),
    on_error: Literal["raise"] = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> pd.DataFrame: ...
@overload
def staking(
    ids: Ids,
    *,
    positions: bool = False,
    pools: Iterable[str] = (),
    on_error: Literal["collect"],
    progress: bool = True,
    ledger: Ledger | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
def staking(
    ids: Ids,
    *,
    positions: bool = False,
    pools: Iterable[str] = (),
    on_error: OnError = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Answer:
    """
    Read the staking pools of accounts.

    Parameters
    ----------
    ids
        One account id or many; repeats are dropped.
    positions
        Whether to ask each pool for the present stake; the list only tells where an
        account ever delegated.
    pools
        More pools to ask, since the indexed list is known to miss some; implies
        `positions`.
    on_error
        ``raise``, or ``collect`` to get the failures as a second frame.
    progress
        Whether a bar shows while many are read.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    pools
        One row a pool, typed as `schema("staking")` or
        `schema("staking_positions")`; amounts are exact yoctoNEAR.

    Raises
    ------
    InvalidRequestError
        If an id is malformed; nothing was sent then.
    LedgerError
        If an account or a pool could not be read.

    Notes
    -----
    Source: GET /v1/account/{account_id}/staking; positions: view call get_account.
    """
    ask = Ask(client.current(ledger), on_error, progress)
    many = validation.account_ids(ids)
    more = validation.account_ids(pools, "pools")
    views = ask.each(many, [rest.staking(one) for one in many], "staking")
    source = "GET /v1/account/{account_id}/staking"
    if not (positions or more):
        return ask.answer(ask.frame(views, _pools_frame, "the staking"), source)
    rows = [row for _, view in views for row in _pool_rows(view, more)]
    rows, told = _positions(ask, rows)
    return ask.answer(tables.staking(rows, told), source + ", view call get_account")


PoolRow = tuple[str, str, int | None, str]


def _pools_frame(views: Sequence[indexed_wire.Staking]) -> pd.DataFrame:
    """Frame the pools of accounts."""
    return tables.staking([row for view in views for row in _pool_rows(view)])


def _pool_rows(
    view: indexed_wire.Staking | indexed_wire.Full, more: Sequence[str] = ()
) -> list[PoolRow]:
    """List an account's pools, then those named besides."""
    listed: list[PoolRow] = [
        (view.account_id, pool.pool_id, pool.last_update_block_height, "indexed")
        for pool in view.pools or ()
    ]
    known = {row[1] for row in listed}
    return listed + [(view.account_id, p, None, "asked") for p in more if p not in known]


def _positions(ask: Ask, rows: Sequence[PoolRow]) -> tuple[list[PoolRow], list[tables.Position]]:
    """Ask each row's pool; a row that could not be asked is left to the failures."""
    final = validation.block_reference("final")
    asked = [
        rpc.call_function(
            row[1], "get_account", validation.json_args({"account_id": row[0]}), final
        )
        for row in rows
    ]
    quiet = Ask(ask.ledger, "collect", ask.progress)
    kept: list[PoolRow] = []
    told: list[tables.Position] = []
    answers: list[Any] = quiet.send(asked, "positions")
    for row, answer in zip(rows, answers, strict=True):
        position = _position(answer, row[1])
        if isinstance(position, tables.Position):
            kept.append(row)
            told.append(position)
        else:
            ask.fails(f"{row[0]} in {row[1]}", position)
    return kept, told


def _position(answer: Any, pool_id: str) -> Any:
    """Read a pool's answer; a contract that does not answer as a pool is told so."""
    if isinstance(answer, _NO_CONTRACT):
        return tables.Position("not_a_pool")
    if not isinstance(answer, chain.CallResult):
        return answer
    try:
        found = rpc.decoded(answer, chain.StakingPosition, f"get_account of {pool_id}")
        amounts.parse([found.staked_balance, found.unstaked_balance])
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return tables.Position("not_a_pool")
    return tables.Position("ok", found.staked_balance, found.unstaked_balance, found.can_withdraw)


@overload
def exposure(
    ids: Ids,
    *,
    liquid_tokens: Iterable[str] | None = None,
    nonzero: bool = False,
    on_error: Literal["raise"] = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> pd.DataFrame: ...
@overload
def exposure(
    ids: Ids,
    *,
    liquid_tokens: Iterable[str] | None = None,
    nonzero: bool = False,
    on_error: Literal["collect"],
    progress: bool = True,
    ledger: Ledger | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
def exposure(
    ids: Ids,
    *,
    liquid_tokens: Iterable[str] | None = None,
    nonzero: bool = False,
    on_error: OnError = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Answer:
    """
    Class accounts by how they are exposed to staking: directly, liquidly, both.

    Parameters
    ----------
    ids
        One account id or many; repeats are dropped.
    liquid_tokens
        Contracts of liquid staking tokens; None is the network's well-known ones.
    nonzero
        Whether entries known to be zero are dropped: pools are then asked for the
        present stake. Entries whose amount is unknown stay.
    on_error
        ``raise``, or ``collect`` to get the failures as a second frame.
    progress
        Whether a bar shows while many are read.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    exposure
        One row an account, typed as `schema("exposure")`: the class and its evidence.

    Raises
    ------
    InvalidRequestError
        If an id is malformed, or no liquid tokens are known for the network.
    LedgerError
        If an account could not be read.

    Notes
    -----
    Source: GET /v1/account/{account_id}/full; with `nonzero` also view call get_account.
    """
    ask = Ask(client.current(ledger), on_error, progress)
    many = validation.account_ids(ids)
    liquid = liquid_tokens_of(ask.ledger, liquid_tokens)
    views = ask.each(many, [rest.full(one) for one in many], "exposure")
    rows = [row for _, view in views for row in _pool_rows(view)]
    staked: dict[tuple[str, str], int | None] = {}
    if nonzero:
        kept, told = _positions(ask, rows)
        staked = {row[:2]: _stake(p) for row, p in zip(kept, told, strict=True)}
        unread = {row[0] for row in rows if row[:2] not in staked}
        views = [(one, view) for one, view in views if view.account_id not in unread]

    classed = partial(exposure_of, liquid=liquid, staked=staked if nonzero else None)
    frame = ask.frame(views, classed, "the full view")
    return ask.answer(frame, "GET /v1/account/{account_id}/full")


def exposure_of(
    views: Sequence[indexed_wire.Full],
    *,
    liquid: frozenset[str],
    staked: dict[tuple[str, str], int | None] | None = None,
) -> pd.DataFrame:
    """Class accounts by what is listed for them; by what is not zero, where pools told."""
    held = [[t for t in view.tokens or () if t.contract_id in liquid] for view in views]
    balances = iter(amounts.parse([t.balance or None for some in held for t in some]).tolist())
    found = [
        frames_exposure.classify(
            _direct(view, staked or {}),
            [_liquid(token, next(balances)) for token in tokens],
            nonzero=staked is not None,
        )
        for view, tokens in zip(views, held, strict=True)
    ]
    return _exposure_frame([view.account_id for view in views], found)


def liquid_tokens_of(ledger: Ledger, given: Iterable[str] | None) -> frozenset[str]:
    """Take the tokens given, or the network's."""
    if given is not None:
        return frozenset(validation.account_ids(given, "liquid_tokens"))
    if not ledger.network.liquid_tokens:
        rule = f"given, since none are known for network {ledger.network.name!r}"
        raise InvalidRequestError.refuse("liquid_tokens", given, rule)
    return frozenset(ledger.network.liquid_tokens)


def _stake(position: tables.Position) -> int | None:
    """Sum what a pool holds for an account; None where it is not known."""
    if position.staked is None or position.unstaked is None:
        return None
    return int(position.staked) + int(position.unstaked)


def _direct(
    view: indexed_wire.Full, staked: Mapping[tuple[str, str], int | None]
) -> list[frames_exposure.Entry]:
    """List the pools of an account, with its stake where it is known."""
    return [
        frames_exposure.Entry(pool.pool_id, staked.get((view.account_id, pool.pool_id)))
        for pool in view.pools or ()
    ]


def _liquid(token: indexed_wire.Token, balance: Any) -> frames_exposure.Entry:
    """List a liquid staking token, with its balance where it is known."""
    return frames_exposure.Entry(token.contract_id, balance if isinstance(balance, int) else None)


def _exposure_frame(ids: Sequence[str], found: Sequence[frames_exposure.Exposure]) -> pd.DataFrame:
    """Tabulate classes with their evidence."""
    columns = {
        "account_id": ids,
        "exposure_class": [e.exposure_class for e in found],
        "n_direct": [len(e.direct) for e in found],
        "n_liquid": [len(e.liquid) for e in found],
        "n_unknown": [e.n_unknown for e in found],
        "direct_pools": [[entry.contract_id for entry in e.direct] for e in found],
        "liquid_tokens": [[entry.contract_id for entry in e.liquid] for e in found],
    }
    return build_frame("exposure", columns)


def top_holders(contract_id: str, *, ledger: Ledger | None = None) -> pd.DataFrame:
    """
    Read the largest holders of a fungible token.

    Parameters
    ----------
    contract_id
        The token's contract.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    holders
        At most 100 rows, largest first, typed as `schema("top_holders")`.

    Raises
    ------
    InvalidRequestError
        If the id is malformed; nothing was sent then.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: GET /v1/ft/{contract_id}/top.
    """
    asked = client.current(ledger)
    view = asked.send(rest.top_holders(validation.account_id(contract_id, "contract_id")))
    return framed(asked, lambda: tables.top_holders(view), "GET /v1/ft/{contract_id}/top")
