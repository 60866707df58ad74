"""Verbs about holdings: fungible tokens, their metadata, NFTs, staking, exposure to staking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Unpack, overload

from ledgerkit import client, errors, user_warnings, validation
from ledgerkit.api import rest
from ledgerkit.api.models import rest as rest_models
from ledgerkit.frames import tokens as token_frames
from ledgerkit.frames.tokens import PoolRow, Position, Stake
from ledgerkit.units import U128_MAX
from ledgerkit.verbs import intent_balances, readings
from ledgerkit.verbs.declaring import Collecting, Raising, verb, verb_of_many
from ledgerkit.verbs.fetching import (
    Fetcher,
    FrameResult,
    Ids,
    open_fetcher,
    read_frame,
    sourced_frame,
)
from ledgerkit.verbs.intent_balances import IntentBalances
from ledgerkit.verbs.lockups import lockup_ids, lockup_pools, lockup_sources
from ledgerkit.verbs.nft_pages import NftPages
from ledgerkit.verbs.token_facts import fetch_metadata, fetch_token_facts

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.calls import Call
    from ledgerkit.frames.accounts import Reading
    from ledgerkit.ledger import Ledger
    from ledgerkit.validation import BlockReference

_PAGE = 50
_MAX_PAGE = 1000
_BALANCE_SOURCE = "view call ft_balance_of"
_HOLDERS_SOURCE = "GET /v1/ft/{contract_id}/top"


@overload
def ft(
    account_ids: Ids,
    *,
    contracts: Ids | None = None,
    at: object = None,
    metadata: bool = False,
    intents: bool = False,
    **options: Unpack[Raising],
) -> pd.DataFrame: ...
@overload
def ft(
    account_ids: Ids,
    *,
    contracts: Ids | None = None,
    at: object = None,
    metadata: bool = False,
    intents: bool = False,
    **options: Unpack[Collecting],
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
@verb_of_many
def ft(
    account_ids: Ids,
    *,
    contracts: Ids | None = None,
    at: object = None,
    metadata: bool = False,
    intents: bool = False,
    **options: Any,
) -> FrameResult:
    """
    Return the fungible-token balances of accounts.

    Parameters
    ----------
    contracts
        The token contracts, one or several, to read the balance of each account from, all at
        one block. None reads the tokens that the indexer lists.
    at
        The block to read the balances at, from the contracts: a height, block hash, finality
        name or time. Without `contracts` these are the contracts that the indexer lists for the
        account today, including tokens held in the past. None reads the indexer's balances, or
        with `contracts` the final block.
    metadata
        Add symbol, decimals and the balance in human units. The metadata of each contract
        is read once and cached; with `at`, too, it is today's metadata.
    intents
        Add the tokens that NEAR Intents keeps for the accounts: those of which intents.near
        states a balance, at one block. With `contracts` only their tokens.

    Returns
    -------
    balances
        One row per account and token, typed as `schema("ft")` or `schema("ft_metadata")`; with
        `intents` as `schema("ft_intents")` or `schema("ft_intents_metadata")`, where `held_in`
        is ``wallet`` or ``intents.near``, and an NFT or multi-token in intents.near has its
        `token_id` and no `contract_id`.
        `balance` is exact, in the token's smallest unit; `status` distinguishes unknown
        balances from zero. The indexer lists tokens ever held. With `contracts` or `at`,
        balances of 0 are rows too, even for accounts that do not exist, which contracts can't
        tell; `last_update_block_height` is missing, and ``attrs`` have the block.

    Raises
    ------
    LedgerError
        If an account could not be read, or one of `contracts` does not exist at the block, has no
        such method, panics, or returns no amount. The error names both. For contracts that the
        indexer lists, the row has a `status` instead.

    Notes
    -----
    Source: GET /v1/account/{account_id}/ft; with `contracts` or `at` the view method
    ft_balance_of; metadata from the view method ft_metadata; with `intents` the view methods
    mt_tokens_for_owner, at least once for an account, and mt_batch_balance_of, once per 100 tokens.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> tokens = lk.ft("uma.near", metadata=True)
    >>> tokens[["contract_id", "balance", "status", "symbol", "decimals", "amount"]]
      contract_id      balance  status symbol  decimals    amount
    0   gold.near  11349750000      ok   GOLD         6  11349.75
    1   torn.near         <NA>  broken   TORN         8      <NA>

    The past balances of two accounts:

    >>> past = lk.ft(["uma.near", "dave.near"], contracts="gold.near", at=180000010)
    >>> past[["account_id", "contract_id", "balance"]]
      account_id contract_id      balance
    0   uma.near   gold.near  11349750000
    1  dave.near   gold.near    311000000
    """
    fetcher = open_fetcher(**options)
    account_ids = validation.account_ids(account_ids)
    block = validation.block_reference(at)
    has_metadata = validation.flag(metadata, "metadata")
    inside: dict[str, dict[str, int]] = {}
    if validation.flag(intents, "intents"):
        intent_balances.check_network(fetcher)
        block = fetcher.pin(block)
        inside = IntentBalances(fetcher, block).read(account_ids)
    if contracts is None:
        fetched = fetcher.fetch({name: rest.ft(name) for name in account_ids}, "tokens")
        fetcher.warn_of_unknown(
            {name: bool(response.tokens or inside.get(name)) for name, response in fetched}
        )
        source = "GET /v1/account/{account_id}/ft"
        if at is None:
            frame = fetcher.frame(fetched, token_frames.ft, "the tokens")
        else:
            listed = (
                (name, token) for name, response in fetched for token in response.tokens or ()
            )
            pairs = [(name, token.contract_id) for name, token in listed]
            frame = _read_balances_at(fetcher, pairs, readings.token_reading_call, block)
            source = f"{source}; {_BALANCE_SOURCE}"
    else:
        pairs = list(product(account_ids, validation.account_ids(contracts, "contracts")))
        frame = _read_balances_at(fetcher, pairs, readings.token_amount_call, block)
        source = _BALANCE_SOURCE
        holders = [*frame["account_id"][frame["balance"] > 0], *filter(inside.get, inside)]
        fetcher.warn_of_unknown(
            dict.fromkeys(frame["account_id"], False) | dict.fromkeys(holders, True)
        )
    if intents:
        chosen = None if contracts is None else validation.account_ids(contracts, "contracts")
        frame = token_frames.ft_intents(frame, inside, chosen)
        source = f"{source}; {intent_balances.SOURCE}"
    if has_metadata:
        facts = fetch_token_facts(fetcher, frame["contract_id"].dropna().unique().tolist())
        frame = token_frames.ft_metadata(frame, facts)
    return fetcher.result(frame, source)


def _read_balances_at(
    fetcher: Fetcher,
    pairs: Sequence[tuple[str, str]],
    build_call: Callable[[str, str, BlockReference], Call[int] | Call[Reading]],
    at: BlockReference,
) -> pd.DataFrame:
    block = fetcher.pin(at)
    subjects = {
        f"{account_id} in {contract_id}": (account_id, contract_id)
        for account_id, contract_id in pairs
    }
    calls: dict[str, Call[Any]] = {
        subject: build_call(*pair, block) for subject, pair in subjects.items()
    }
    fetched = fetcher.fetch(calls, "balances")
    rows = [
        (*subjects[subject], value, "ok")
        if isinstance(value, int)
        else (*subjects[subject], value.balance, value.status)
        for subject, value in fetched
    ]
    return token_frames.ft_at(rows)


@overload
def token_metadata(
    contract_ids: Ids, *, at: object = None, **options: Unpack[Raising]
) -> pd.DataFrame: ...
@overload
def token_metadata(
    contract_ids: Ids, *, at: object = None, **options: Unpack[Collecting]
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
@verb_of_many
def token_metadata(contract_ids: Ids, *, at: object = None, **options: Any) -> FrameResult:
    """
    Return the metadata of fungible tokens, as their contracts state it.

    Parameters
    ----------
    at
        The block to read all contracts at: a height, block hash, finality name or time. None
        reads the final block, and each contract once per ledger: its metadata is cached.

    Returns
    -------
    metadata
        One row per contract, typed as `schema("token_metadata")`: the members that NEP-148
        declares. `status` is ``missing`` if there is no contract or it has no metadata, and
        ``broken`` if symbol or decimals are unusable. A contract may state anything: identify a
        token by its `contract_id`, not by `symbol` or `name`.

    Raises
    ------
    LedgerError
        If a contract could not be read.

    Notes
    -----
    Source: view method ft_metadata (NEP-148): the required spec, name, symbol and decimals, and
    icon, reference and reference_hash, which may be null.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> tokens = lk.token_metadata(["gold.near", "wrap.near", "dave.near"])
    >>> tokens[["contract_id", "spec", "name", "symbol", "decimals", "status"]]
      contract_id      spec                         name symbol  decimals   status
    0   gold.near  ft-1.0.0                         Gold   GOLD         6       ok
    1   wrap.near  ft-1.0.0  Wrapped NEAR fungible token  wNEAR        24       ok
    2   dave.near       NaN                          NaN    NaN      <NA>  missing
    """
    fetcher = open_fetcher(**options)
    contract_ids = validation.account_ids(contract_ids, "contract_ids")
    block = validation.block_reference(at)
    if at is not None:
        block = fetcher.pin(block)
    metadata = fetch_metadata(fetcher, contract_ids, block)
    read = {name: value for name, value in metadata.items() if value != "unread"}
    return fetcher.result(token_frames.token_metadata(read), "view call ft_metadata")


@overload
def nft(account_ids: Ids, **options: Unpack[Raising]) -> pd.DataFrame: ...
@overload
def nft(account_ids: Ids, **options: Unpack[Collecting]) -> tuple[pd.DataFrame, pd.DataFrame]: ...
@verb_of_many
def nft(account_ids: Ids, **options: Any) -> FrameResult:
    """
    Return the NFT collections of accounts.

    Returns
    -------
    collections
        One row per account and collection with tokens that it ever held, typed as
        `schema("nft")`; `nft_tokens` returns the tokens. If the service lists tokens, one row
        per token, with its `token_id`.

    Notes
    -----
    Source: GET /v1/account/{account_id}/nft.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> lk.nft(["alice.near", "uma.near"])[["account_id", "contract_id"]]
       account_id         contract_id
    0  alice.near   stamps.grace.near
    1  alice.near  tickets.grace.near
    2    uma.near   stamps.grace.near
    """
    fetcher = open_fetcher(**options)
    calls = {name: rest.nft(name) for name in validation.account_ids(account_ids)}
    fetched = fetcher.fetch(calls, "NFTs")
    fetcher.warn_of_unknown({name: bool(response.tokens) for name, response in fetched})

    def build(responses: Sequence[rest_models.Collections]) -> pd.DataFrame:
        return token_frames.nft([(response.account_id, response.tokens) for response in responses])

    frame = fetcher.frame(fetched, build, "the NFTs")
    return fetcher.result(frame, "GET /v1/account/{account_id}/nft")


@overload
def nft_tokens(
    account_ids: Ids,
    contract_id: str,
    *,
    at: object = None,
    page: int = _PAGE,
    **options: Unpack[Raising],
) -> pd.DataFrame: ...
@overload
def nft_tokens(
    account_ids: Ids,
    contract_id: str,
    *,
    at: object = None,
    page: int = _PAGE,
    **options: Unpack[Collecting],
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
@verb_of_many
def nft_tokens(
    account_ids: Ids, contract_id: str, *, at: object = None, page: int = _PAGE, **options: Any
) -> FrameResult:
    """
    Return the NFTs of one collection that accounts own.

    Parameters
    ----------
    contract_id
        The collection's contract.
    at
        A height, block hash, finality name or time; None is ``final``. All pages are
        read at the same block.
    page
        Tokens per request, 1 to 1000; use fewer if the contract runs out of gas.

    Returns
    -------
    tokens
        One row per token, typed as `schema("nft_tokens")`; metadata is the contract's
        text, unchanged. Unreadable entries are named in a warning and in ``attrs["notes"]``.

    Raises
    ------
    ContractError
        If the contract has no NFT methods, or its method failed.

    Notes
    -----
    Source: view method nft_tokens_for_owner, paged until a page has no new token; then, if
    the last page was full, nft_supply_for_owner.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> stamps = lk.nft_tokens(["alice.near", "uma.near"], "stamps.grace.near")
    >>> stamps[["token_id", "owner_id", "title", "copies"]]
      token_id    owner_id               title copies
    0       17  alice.near          Lighthouse    100
    1      205    uma.near  Lighthouse at dawn      1
    2      204    uma.near         Night ferry      1
    """
    fetcher = open_fetcher(**options)
    contract_id = validation.account_id(contract_id, "contract_id")
    page = validation.integer(page, "page", least=1, most=_MAX_PAGE)
    account_ids = validation.account_ids(account_ids)
    pages = NftPages(fetcher, contract_id, page, fetcher.ledger.locate(at))
    pages.read(account_ids)
    failed = {subject for subject, _ in fetcher.failures}
    read_ids = [account_id for account_id in account_ids if account_id not in failed]
    rows = pages.rows(read_ids)
    fetcher.warn_of_unknown(dict.fromkeys(read_ids, False) | {name: True for name, _ in rows})
    notes = pages.notes(read_ids)
    for note in notes:
        user_warnings.warn(note)
    frame = token_frames.nft_tokens(contract_id, rows)
    return fetcher.result(frame, "view call nft_tokens_for_owner", notes=notes or None)


@overload
def staking(
    account_ids: Ids,
    *,
    positions: bool = False,
    pools: Iterable[str] = (),
    **options: Unpack[Raising],
) -> pd.DataFrame: ...
@overload
def staking(
    account_ids: Ids,
    *,
    positions: bool = False,
    pools: Iterable[str] = (),
    **options: Unpack[Collecting],
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
@verb_of_many
def staking(
    account_ids: Ids, *, positions: bool = False, pools: Iterable[str] = (), **options: Any
) -> FrameResult:
    """
    Return the staking pools of accounts, or all that they stake in any way.

    Parameters
    ----------
    positions
        Read the current stakes: with each pool; of the accounts' lockup contracts, below
        lockup.near and of House of Stake, with the `source` ``lockup`` and ``venear``; and in
        liquid staking tokens, with the `source` ``liquid``. Without it the frame only lists the
        pools that an account delegated to at any time.
    pools
        Additional pools to read, since the indexer's list may be incomplete; implies
        `positions`.

    Returns
    -------
    pools
        One row per account and pool, typed as `schema("staking")` or
        `schema("staking_positions")`; amounts are exact yoctoNEAR. The worth of liquid tokens is
        that of their contract's own price, and missing without one.

    Raises
    ------
    LedgerError
        If an account, a lockup contract or a pool could not be read.

    Notes
    -----
    Source: GET /v1/account/{account_id}/staking. Positions come from GET
    /v1/account/{account_id}/full and the view methods get_account of pools,
    get_staking_pool_account_id of lockup contracts, and ft_price or its like of tokens. They
    cost, per account, a request to the REST API, a request to a node for each kind of lockup
    contract, one for each pool, and for a lockup contract that exists another one to the REST API.
    Those of testnet, and of House of Stake on a network without a preset, are not known;
    ``attrs["notes"]`` says so.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> positions = lk.staking(["alice.near", "bob.near"], positions=True)
    >>> positions[["account_id", "pool_id", "staked"]]
       account_id            pool_id                       staked
    0  alice.near   east.poolv1.near                    123456789
    1  alice.near  north.poolv1.near  150000000000000000123456789
    2  alice.near        liquid.near    3500000000000000000000000
    3    bob.near  north.poolv1.near  250000000000000000123456789
    4    bob.near  south.poolv1.near   25000000000000000123456789
    """
    fetcher = open_fetcher(**options)
    account_ids = validation.account_ids(account_ids)
    extra_pools = validation.account_id_list(pools, "pools")
    has_positions = validation.flag(positions, "positions") or bool(extra_pools)
    network = fetcher.ledger.network
    has_tokens = has_positions and bool(network.liquid_tokens)
    read: Callable[[str], Call[Any]] = rest.full if has_tokens else rest.staking
    fetched = fetcher.fetch({name: read(name) for name in account_ids}, "staking")
    source = f"GET /v1/account/{{account_id}}/{'full' if has_tokens else 'staking'}"
    is_listed = {name: r.is_indexed if has_tokens else bool(r.pools) for name, r in fetched}
    unknown_ids = fetcher.warn_of_unknown(is_listed)
    if not has_positions:
        frame = fetcher.frame(fetched, token_frames.staking, "the staking pools")
        return fetcher.result(frame, source)
    rows = token_frames.pool_rows([response for _, response in fetched], extra_pools)
    lockup_rows, notes = lockup_pools(fetcher, [account_id for account_id, _ in fetched])
    stakes = [
        stake._replace(position=stake.position._replace(status="not_indexed"))
        if stake.row.source == "asked" and stake.row.account_id in unknown_ids and stake.total == 0
        else stake
        for stake in _read_stakes(fetcher, rows + lockup_rows)
    ]
    if has_tokens:
        # Source: linear-protocol/LiNEAR, contracts/linear/src/view.rs: the contract of a liquid
        # token can be a pool, too, whose stake is the worth of the account's tokens.
        as_pools = {
            stake.row[:2]
            for stake in stakes
            if stake.position.staked and stake.row.source in ("indexed", "asked")
        }
        responses = [response for _, response in fetched]
        stakes += [s for s in _liquid_stakes(fetcher, responses) if s.row[:2] not in as_pools]
    order = {account_id: number for number, account_id in enumerate(account_ids)}
    stakes.sort(key=lambda stake: order[stake.row.account_id or ""])
    frame = token_frames.staking_positions(stakes)
    return fetcher.result(frame, source + ", view call get_account", notes=notes)


def _liquid_stakes(fetcher: Fetcher, responses: Sequence[rest_models.Full]) -> list[Stake]:
    """Return the liquid staking tokens of accounts, worth what their contracts' rates say."""
    liquid_ids = fetcher.ledger.network.liquid_tokens
    tokens = [
        (response.account_id or "", token)
        for response in responses
        for token in response.tokens or ()
        if token.contract_id in liquid_ids and token.balance != "0"
    ]
    rates = _read_rates(fetcher, list({token.contract_id for _, token in tokens}))
    stakes = []
    for account_id, token in tokens:
        row = PoolRow(account_id, token.contract_id, token.last_update_block_height, "liquid")
        try:
            position = _liquid_position(token.balance, rates[token.contract_id])
        except errors.LedgerError as error:
            fetcher.fail(f"{account_id} in {token.contract_id}", error)
        else:
            stakes.append(Stake(row, position))
    return stakes


def _liquid_position(text: str | None, rate: int | errors.LedgerError | None) -> Position:
    """Return the worth of tokens at a rate; raise if either could not be read."""
    status = token_frames.BALANCE_STATUSES.get(text)
    if status is not None:
        return Position(status)
    balance = readings.integer(text or "", "the balance of a liquid staking token")
    if isinstance(rate, errors.LedgerError):
        raise rate
    worth = U128_MAX + 1 if rate is None else balance * rate // readings.ONE_TOKEN
    if worth > U128_MAX:
        return Position("no_rate", tokens=balance)
    return Position("ok", worth, tokens=balance)


def _read_rates(
    fetcher: Fetcher, contract_ids: Sequence[str]
) -> dict[str, int | errors.LedgerError | None]:
    """Read the rates of liquid staking tokens; None if the contract states none."""
    final = validation.block_reference("final")
    requests = [(name, method) for name in contract_ids for method in readings.RATE_METHODS]
    calls = [readings.value_call(*request, final) for request in requests]
    rates: dict[str, int | errors.LedgerError | None] = dict.fromkeys(contract_ids)
    for (name, _), rate in zip(requests, fetcher.send(calls, "rates"), strict=True):
        if isinstance(rate, errors.LedgerError) or rates[name] is None:
            rates[name] = rate
    return rates


def _read_stakes(fetcher: Fetcher, rows: Sequence[PoolRow]) -> list[Stake]:
    """Read the position in each pool; a pool that could not be read is a failure, not a row."""
    network, final = fetcher.ledger.network, validation.block_reference("final")
    calls = []
    for row in rows:
        owner_id = row.account_id or ""
        staker_id = lockup_ids(network, owner_id).get(row.source, owner_id)
        args = {"account_id": staker_id}
        call = readings.value_call(
            row.pool_id, "get_account", final, readings.staking_position, args
        )
        calls.append(call)
    stakes = []
    for row, position in zip(rows, fetcher.send(calls, "positions"), strict=True):
        if isinstance(position, errors.LedgerError):
            fetcher.fail(f"{row.account_id} in {row.pool_id}", position)
        else:
            stakes.append(Stake(row, position or Position("not_a_pool")))
    return stakes


@overload
def exposure(
    account_ids: Ids,
    *,
    liquid_tokens: Iterable[str] | None = None,
    nonzero: bool = False,
    lockups: bool = False,
    **options: Unpack[Raising],
) -> pd.DataFrame: ...
@overload
def exposure(
    account_ids: Ids,
    *,
    liquid_tokens: Iterable[str] | None = None,
    nonzero: bool = False,
    lockups: bool = False,
    **options: Unpack[Collecting],
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
@verb_of_many
def exposure(
    account_ids: Ids,
    *,
    liquid_tokens: Iterable[str] | None = None,
    nonzero: bool = False,
    lockups: bool = False,
    **options: Any,
) -> FrameResult:
    """
    Classify accounts by their exposure to staking: direct, liquid, both or none visible.

    Parameters
    ----------
    liquid_tokens
        Contracts of liquid staking tokens; None uses the known tokens of the network.
    nonzero
        Ignore pools and tokens whose amount is known to be zero. The current stake is
        then read from each pool. Unknown amounts count.
    lockups
        Count the pools of the accounts' lockup contracts too, below lockup.near and of House of
        Stake. Otherwise an account that stakes only through them has no visible position. Costs
        a request per account for each kind of contract.

    Returns
    -------
    exposure
        One row per account, typed as `schema("exposure")`, or with `lockups` as
        `schema("exposure_lockups")`, which names the sources: the class, and the pools and tokens
        that count. An account that the indexer does not know has no visible position
        either; its `status` is not_indexed and its counts are missing.

    Raises
    ------
    InvalidRequestError
        If an id is malformed, or no liquid tokens are known for the network.

    Notes
    -----
    Source: GET /v1/account/{account_id}/full; with `nonzero` also the view method get_account;
    with `lockups` also get_staking_pool_account_id of lockup contracts.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> classes = lk.exposure(["alice.near", "bob.near", "carol.near", "dave.near"])
    >>> classes[["account_id", "exposure_class", "n_direct", "n_liquid"]]
       account_id               exposure_class  n_direct  n_liquid
    0  alice.near                        mixed         2         1
    1    bob.near                  direct_only         2         0
    2  carol.near                  liquid_only         0         1
    3   dave.near  no_visible_staking_position         0         0
    """
    fetcher = open_fetcher(**options)
    account_ids = validation.account_ids(account_ids)
    liquid_ids = resolve_liquid_tokens(fetcher.ledger, liquid_tokens)
    validation.flag(nonzero, "nonzero")
    network = fetcher.ledger.network
    if validation.flag(lockups, "lockups") and not lockup_sources(network):
        rule = f"False on {network.name}, where the accounts of lockup contracts are not known"
        raise errors.InvalidRequestError.refuse("lockups", lockups, rule)
    fetched = fetcher.fetch({name: rest.full(name) for name in account_ids}, "exposure")
    rows = token_frames.pool_rows([response for _, response in fetched])
    notes = None
    if lockups:
        lockup_rows, notes = lockup_pools(fetcher, [account_id for account_id, _ in fetched])
        rows += lockup_rows
        _set_pools(fetched, rows)
    stakes = _read_stakes(fetcher, rows) if nonzero else None
    failed = {subject.partition(" in ")[0] for subject, _ in fetcher.failures}
    fetched = [item for item in fetched if item[0] not in failed]
    amounts = None if stakes is None else _total_stakes(stakes)
    build = partial(token_frames.exposure, liquid=liquid_ids, stakes=amounts)
    frame = fetcher.frame(fetched, build, "the state and holdings")
    if lockups:
        if stakes is not None:
            rows = [stake.row for stake in stakes if stake.total != 0]
        frame = token_frames.exposure_lockups(frame, rows)
    return fetcher.result(frame, "GET /v1/account/{account_id}/full", notes=notes)


def resolve_liquid_tokens(ledger: Ledger, liquid_tokens: Iterable[str] | None) -> frozenset[str]:
    """Return the liquid staking tokens passed, or the network's."""
    if liquid_tokens is not None:
        return frozenset(validation.account_id_list(liquid_tokens, "liquid_tokens"))
    if not ledger.network.liquid_tokens:
        rule = f"their contracts, since none are known for network {ledger.network.name!r}"
        raise errors.InvalidRequestError.required("liquid_tokens", rule)
    return frozenset(ledger.network.liquid_tokens)


def _set_pools(fetched: Sequence[tuple[str, rest_models.Full]], rows: Sequence[PoolRow]) -> None:
    """Set the pools of each account to those of its rows, which include its lockup contract."""
    pools: dict[str | None, dict[str, rest_models.Pool]] = {}
    for row in rows:
        pool = rest_models.Pool(row.pool_id, row.last_update_block_height)
        pools.setdefault(row.account_id, {}).setdefault(row.pool_id, pool)
    for account_id, response in fetched:
        response.pools = list(pools.get(account_id, {}).values())


def _total_stakes(stakes: Sequence[Stake]) -> dict[tuple[str | None, str], int | None]:
    """Add up the stakes of each account in each pool, including its lockup contracts."""
    totals: dict[tuple[str | None, str], int | None] = {}
    for stake in stakes:
        parts = totals.get(stake.row[:2], 0), stake.total
        totals[stake.row[:2]] = None if None in parts else sum(filter(None, parts))
    return totals


@verb
def top_holders(
    contract_id: str, *, metadata: bool = False, ledger: Ledger | None = None
) -> pd.DataFrame:
    """
    Return the largest holders of a fungible token.

    Parameters
    ----------
    contract_id
        The token's contract.
    metadata
        Add symbol, decimals, the balance in human units, the total supply and each holder's
        share of it. Costs two view calls.

    Returns
    -------
    holders
        At most 100 rows, the largest balance first, typed as `schema("top_holders")` or
        `schema("top_holders_metadata")`. If the supply could not be read, the shares are missing,
        with a warning and an entry of ``attrs["notes"]``.

    Notes
    -----
    Source: GET /v1/ft/{contract_id}/top; metadata and supply from the view methods ft_metadata
    and ft_total_supply. The indexer's balances may be some blocks older than the supply.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> holders = lk.top_holders("gold.near", metadata=True)
    >>> holders[["rank", "account_id", "balance", "symbol", "share"]].head(3)
       rank   account_id       balance symbol     share
    0     1     dex.near  400120000000   GOLD  0.824396
    1     2  victor.near   12367000000   GOLD  0.025481
    2     3     uma.near   11349750000   GOLD  0.023385
    """
    ledger = client.current(ledger)
    if validation.flag(metadata, "metadata"):
        return read_holders(contract_id, ledger)[0]
    call = rest.top_holders(validation.account_id(contract_id, "contract_id"))
    return read_frame(ledger, call, token_frames.top_holders, _HOLDERS_SOURCE)


def read_holders(contract_id: str, ledger: Ledger) -> tuple[pd.DataFrame, token_frames.Token]:
    """Read the largest holders of a token with their shares, and the token."""
    response = ledger.send(rest.top_holders(validation.account_id(contract_id, "contract_id")))
    token = _read_metadata_and_supply(contract_id, ledger)
    frame = sourced_frame(
        ledger,
        lambda: token_frames.top_holders(response, token),
        f"{_HOLDERS_SOURCE}, view calls ft_metadata and ft_total_supply",
    )
    if token.total_supply is None:
        note = f"the total supply of {contract_id} can't be read, so that shares are missing"
        user_warnings.warn(note)
        frame.attrs["notes"] = [note]
    return frame, token


def _read_metadata_and_supply(contract_id: str, ledger: Ledger) -> token_frames.Token:
    facts = fetch_token_facts(Fetcher(ledger, progress=False), [contract_id])[contract_id]
    final = validation.block_reference("final")
    supply = ledger.send(readings.value_call(contract_id, "ft_total_supply", final))
    return token_frames.Token(facts, supply)
