"""Verbs about accounts: state, balances, access keys, and the accounts of a key."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, overload

from ledgerkit import cards, client, prompt_text, validation
from ledgerkit.api import rest, rpc
from ledgerkit.api.models import chain, services
from ledgerkit.errors import InvalidRequestError, cut
from ledgerkit.frames import accounts as account_frames
from ledgerkit.frames import tokens as token_frames
from ledgerkit.frames.human import human, record_html
from ledgerkit.frames.schemas import CODE
from ledgerkit.verbs import readings
from ledgerkit.verbs.declaring import verb, verb_of_many
from ledgerkit.verbs.fetching import (
    Fetcher,
    open_fetcher,
    provenance,
    read_frame,
    request_in_errors,
)
from ledgerkit.verbs.token_facts import read_token_facts
from ledgerkit.visible_text import html_text

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.ledger import Ledger
    from ledgerkit.validation import BlockReference
    from ledgerkit.verbs.declaring import Collecting, Raising
    from ledgerkit.verbs.fetching import FrameResult, Ids


@overload
def accounts(
    account_ids: Ids, *, code: bool = False, at: object = None, **options: Unpack[Raising]
) -> pd.DataFrame: ...
@overload
def accounts(
    account_ids: Ids, *, code: bool = False, at: object = None, **options: Unpack[Collecting]
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
@verb_of_many
def accounts(
    account_ids: Ids, *, code: bool = False, at: object = None, **options: Any
) -> FrameResult:
    """
    Return the state of accounts: balances, storage use, counts of tokens and pools.

    Parameters
    ----------
    code
        Whether to also read from the chain which accounts are contracts, and their code; costs
        one more request per account. Without it `contract` and the three columns after it are
        missing, unless `at` is passed.
    at
        The block to read the chain's state at: a height, block hash, finality name or
        time. Columns that only the indexer has, such as the counts, are then missing.
        None reads the indexer.

    Returns
    -------
    accounts
        One row per account, typed as `schema("accounts")`; amounts are exact
        yoctoNEAR. `status` distinguishes accounts without a state from empty accounts.

    Notes
    -----
    Source: GET /v1/account/{account_id}/full; with `code` query view_account too, with `at`
    block and query view_account instead.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> frame = lk.accounts(["alice.near", "erin.near"])
    >>> frame[["account_id", "status", "balance", "n_tokens"]]
       account_id status                        balance  n_tokens
    0  alice.near     ok  12340675470645764809599999996         7
    1   erin.near     ok                              0         1

    Which of them are contracts?

    >>> frame = lk.accounts(["alice.near", "gold.near"], code=True)
    >>> frame[["account_id", "contract", "code_hash"]]
       account_id contract                                     code_hash
    0  alice.near     none                                           NaN
    1   gold.near    local  3W3HkDeGGnsaYapN7U6TAdcU44qdKwVDxipY8Z89rJoC
    """
    fetcher = open_fetcher(**options)
    account_ids = validation.account_ids(account_ids)
    with_chain_states = validation.flag(code, "code")
    if at is not None:
        return _accounts_at(fetcher, account_ids, at)
    fetched = fetcher.fetch({name: rest.full(name) for name in account_ids}, "accounts")
    source, states = "GET /v1/account/{account_id}/full", None
    if with_chain_states:
        source += "; query view_account"
        states = _chain_states(fetcher, [name for name, _ in fetched], fetcher.ledger.locate(None))
        fetched = [(name, response) for name, response in fetched if name in states]
    build = partial(account_frames.accounts, states=states)
    return fetcher.result(fetcher.frame(fetched, build, "the state and holdings"), source)


def _accounts_at(fetcher: Fetcher, account_ids: list[str], at: object) -> FrameResult:
    states = _chain_states(fetcher, account_ids, fetcher.pin(at))
    fetched = [(name, (name, states[name])) for name in account_ids if name in states]
    frame = fetcher.frame(fetched, account_frames.accounts_at, "the state")
    return fetcher.result(frame, "query view_account")


def _chain_states(
    fetcher: Fetcher, account_ids: list[str], at: BlockReference
) -> dict[str, chain.Account | None]:
    """Return the states of accounts on the chain; None for accounts that do not exist."""
    calls = {name: readings.unless_refused(rpc.view_account(name, at)) for name in account_ids}
    return dict(fetcher.fetch(calls, "accounts"))


@verb
def balance(
    account_id: str, asset: str = "NEAR", *, at: object = None, ledger: Ledger | None = None
) -> int:
    """
    Return one balance of an account, exactly and in the smallest unit of the asset.

    Parameters
    ----------
    asset
        ``NEAR``, or the contract id of a fungible token, also as ``nep141:<contract>``.

    Returns
    -------
    balance
        For ``NEAR`` the unlocked yoctoNEAR of the account, `amount` in the response. It excludes
        the stake as a validator and delegations to pools; a part of it may have to stay for
        storage. `accounts` has the columns `locked` and `spendable`, `staking` the pools. Token
        contracts return 0 for accounts that do not exist.

    Raises
    ------
    UnknownAccountError
        If the account, or the token's contract, does not exist at the block.
    ContractError
        If the token's account has no contract, or the contract has no such method or panics.
    DecodeError
        If the contract did not return an amount.

    Notes
    -----
    Source: query view_account, or the view method ft_balance_of. One request, and those that
    locate the block of a time.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> lk.balance("alice.near")
    12340675470645764809599999996
    >>> lk.balance("alice.near", "gold.near")
    1252998400
    """
    ledger = client.current(ledger)
    account_id, contract_id = validation.account_id(account_id), _token_contract(asset)
    block = ledger.locate(at)
    if contract_id is not None:
        return ledger.send(readings.token_amount_call(account_id, contract_id, block))
    call = rpc.view_account(account_id, block)
    return readings.integer(ledger.send(call).amount, call.request)


def _token_contract(asset: object) -> str | None:
    """Return the contract of a token; None for NEAR."""
    text = validation.plain_str(asset) if isinstance(asset, str) else ""
    if text in ("NEAR", "near"):
        return None
    contract_id = text.removeprefix(services.FT)
    if validation.is_account_id(contract_id):
        return contract_id
    rule = "NEAR, or the contract id of a fungible token"
    raise InvalidRequestError.refuse("asset", asset, rule, choices=["NEAR"])


@dataclass(frozen=True, slots=True)
class Snapshot(prompt_text.HasContext):
    """
    The indexed state and holdings of one account, from one request.

    Parameters
    ----------
    account_id
        The account.
    state
        One row, typed as `schema("accounts")`.
    ft
        Fungible tokens, typed as `schema("ft")` or `schema("ft_metadata")`.
    nft
        NFT collections, typed as `schema("nft")`.
    staking
        Staking pools, typed as `schema("staking")`.

    Notes
    -----
    Source: GET /v1/account/{account_id}/full.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> snapshot = lk.snapshot("alice.near")
    >>> snapshot.ft[["contract_id", "balance", "status"]].head(3)
       contract_id                    balance status
    0    dust.near                          0     ok
    1    gold.near                 1252998400     ok
    2  liquid.near  3500000000000000000000000     ok
    """

    account_id: str
    state: pd.DataFrame
    ft: pd.DataFrame
    nft: pd.DataFrame
    staking: pd.DataFrame

    def __repr__(self) -> str:
        return f"<Snapshot {cut(self.account_id)}: {self._summary()}>"

    def _summary(self) -> str:
        nouns = {"n_tokens": "tokens", "n_nfts": "NFT collections", "n_pools": "pools"}
        counts = self.state[list(nouns)].iloc[0]
        if counts.isna().any():
            return "not indexed"
        return ", ".join(f"{counts[name]} {noun}" for name, noun in nouns.items())

    def _prompt_context(self) -> prompt_text.Context:
        parts = {"state": self.state, "ft": self.ft, "nft": self.nft, "staking": self.staking}
        return prompt_text.Context("snapshot of an account", parts, self.state.attrs)

    def _repr_html_(self) -> str:
        parts = [
            f"<h3>{html_text(self.account_id)}</h3>",
            cards.network_line(self.state.attrs.get("network")),
            f"<p>{html_text(self._summary())}</p>",
            # A snapshot does not read the code from a node.
            record_html(self.state.drop(columns=["account_id", *(c.name for c in CODE)])),
        ]
        frames = {"Tokens": self.ft, "NFTs": self.nft, "Staking": self.staking}
        for title, frame in frames.items():
            table = human(frame.drop(columns="account_id"))._repr_html_()
            parts.append(f"<details><summary>{title} ({len(frame)})</summary>{table}</details>")
        return cards.card("ledgerkit-snapshot", parts)


@verb
def snapshot(account_id: str, *, metadata: bool = False, ledger: Ledger | None = None) -> Snapshot:
    """
    Return the indexed state and holdings of one account, with one request.

    Parameters
    ----------
    metadata
        Add symbol, decimals and the balance in human units to `ft`. Costs a view call for each
        token whose metadata is not cached; if the call fails, `metadata_status` is ``unread``.

    Returns
    -------
    snapshot
        The account's frames `state`, `ft`, `nft` and `staking`; a notebook displays it as
        a card.

    Raises
    ------
    LedgerError
        If the account could not be read.

    Notes
    -----
    Source: GET /v1/account/{account_id}/full.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> alice = lk.snapshot("alice.near")
    >>> alice
    <Snapshot alice.near: 7 tokens, 2 NFT collections, 2 pools>
    >>> alice.staking
       account_id            pool_id  last_update_block_height
    0  alice.near   east.poolv1.near                      <NA>
    1  alice.near  north.poolv1.near                      <NA>
    """
    ledger = client.current(ledger)
    account_id = validation.account_id(account_id)
    has_metadata = validation.flag(metadata, "metadata")
    call = rest.full(account_id)
    response = ledger.send(call)
    with request_in_errors(call.request):
        ft = token_frames.ft([response])
        if has_metadata:
            facts = read_token_facts(ledger, ft["contract_id"].tolist())
            ft = token_frames.ft_metadata(ft, facts)
        snapshot = Snapshot(
            account_id,
            account_frames.accounts([response]),
            ft,
            token_frames.nft([(response.account_id, response.nfts)]),
            token_frames.staking([response]),
        )
    attrs = provenance(ledger, "GET /v1/account/{account_id}/full")
    for frame in (snapshot.state, snapshot.ft, snapshot.nft, snapshot.staking):
        frame.attrs.update(attrs)
    return snapshot


@verb
def accounts_of(
    public_key: str, *, include_limited: bool = False, ledger: Ledger | None = None
) -> pd.DataFrame:
    """
    Return the accounts that have a public key.

    Parameters
    ----------
    public_key
        The key, such as ``ed25519:…``; without a curve it is an ed25519 key.
    include_limited
        Include accounts that have it only as a function-call key.

    Returns
    -------
    accounts
        One row per account, in the response's order, typed as `schema("accounts_of")`.

    Notes
    -----
    Source: GET /v1/public_key/{public_key}; with `include_limited` the same path with
    /all. The implicit account of an ed25519 key is listed even if it was never created.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> key = lk.keys("alice.near")["public_key"][0]
    >>> lk.accounts_of(key)["account_id"].tolist()
    ['alice.near', '6e980912b718be64126cec4ca8e5ad4fb65a7775e3d99ccb01081f06f05d65d8']
    """
    every_kind = validation.flag(include_limited, "include_limited")
    call = rest.accounts_of(validation.public_key(public_key), every_kind=every_kind)
    source = "GET /v1/public_key/{public_key}" + ("/all" if include_limited else "")
    return read_frame(ledger, call, account_frames.accounts_of, source)


@overload
def keys(
    account_ids: Ids,
    *,
    public_key: str | None = None,
    at: object = None,
    **options: Unpack[Raising],
) -> pd.DataFrame: ...
@overload
def keys(
    account_ids: Ids,
    *,
    public_key: str | None = None,
    at: object = None,
    **options: Unpack[Collecting],
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
@verb_of_many
def keys(
    account_ids: Ids, *, public_key: str | None = None, at: object = None, **options: Any
) -> FrameResult:
    """
    Return the access keys of accounts, or a single key of each.

    Parameters
    ----------
    public_key
        The only key to read; None reads all.
    at
        A height, block hash, finality name or time; None is ``final``. Several accounts are
        read at the same block.

    Returns
    -------
    keys
        One row per key, by account, typed as `schema("keys")`. Gas keys have a balance and
        a number of nonces.

    Raises
    ------
    UnknownAccountError
        If an account does not exist.
    UnknownAccessKeyError
        If an account has no such key.
    LedgerError
        If a response could not be read and failures are not collected.

    Notes
    -----
    Source: query view_access_key_list, in pages until all keys are read, or view_access_key;
    for several accounts also block.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> lk.keys("alice.near")[["permission", "receiver_id", "allowance", "use_count"]]
         permission  receiver_id                 allowance  use_count
    0    FullAccess          NaN                      <NA>         15
    1  FunctionCall  social.near                      <NA>          0
    2  FunctionCall    shop.near  250000000000000000000000          0
    """
    fetcher = open_fetcher(**options)
    account_ids = validation.account_ids(account_ids)
    key = None if public_key is None else validation.public_key(public_key)
    block = fetcher.ledger.locate(at)
    if len(account_ids) > 1:
        block = validation.block_reference(fetcher.ledger.send(rpc.block(block)).header.hash)
    if key is None:
        lists, source = _all_keys(fetcher, account_ids, block), "query view_access_key_list"
    else:
        calls = {name: rpc.view_access_key(name, key, block) for name in account_ids}
        lists, source = [], "query view_access_key"
        for name, access_key in fetcher.fetch(calls, "accounts"):
            entries = [chain.KeyEntry(key, access_key)]
            height, block_hash = access_key.block_height, access_key.block_hash
            listed = chain.KeyList(entries, block_height=height, block_hash=block_hash)
            lists.append((name, listed))
    frame = fetcher.frame([(item[0], item) for item in lists], account_frames.keys, "the keys")
    first = lists[0][1] if lists else chain.KeyList([])
    return fetcher.result(
        frame, source, block_height=first.block_height, block_hash=first.block_hash
    )


def _all_keys(
    fetcher: Fetcher, account_ids: list[str], at: BlockReference
) -> list[tuple[str, chain.KeyList]]:
    calls = {name: rpc.view_access_key_list(name, at) for name in account_ids}
    lists: dict[str, chain.KeyList] = {}
    while calls:
        pages = dict(fetcher.fetch(calls, "accounts"))
        for name in calls.keys() - pages.keys():
            lists.pop(name, None)
        calls = {}
        for name, page in pages.items():
            if name in lists:
                lists[name].keys += page.keys
            first = lists.setdefault(name, page)
            if page.last_key is not None:
                calls[name] = rpc.view_access_key_list(name, _block_of(first, at), page.last_key)
    # Nodes return an empty list for an account that does not exist, too; reading the account gives
    # the error.
    existence_calls = {
        name: rpc.view_account(name, _block_of(listed, at))
        for name, listed in lists.items()
        if not listed.keys
    }
    existing = dict(fetcher.fetch(existence_calls, "accounts"))
    missing = existence_calls.keys() - existing.keys()
    return [(name, listed) for name, listed in lists.items() if name not in missing]


def _block_of(page: chain.KeyList, at: BlockReference) -> BlockReference:
    return validation.block_reference(page.block_hash) if page.block_hash else at
