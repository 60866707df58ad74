"""Verbs about accounts: their state, their keys, and the accounts of a key."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal, overload

from ledgerkit import client, validation
from ledgerkit.api import rest, rpc
from ledgerkit.api.models import chain
from ledgerkit.errors import UnknownAccountError
from ledgerkit.frames import accounts as account_tables
from ledgerkit.frames import tokens as token_tables
from ledgerkit.verbs.fetching import Ask, framed, naming, provenance

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.models import rest as indexed_wire
    from ledgerkit.client import Ledger, OnError
    from ledgerkit.verbs.fetching import Answer, Ids


@overload
def accounts(
    ids: Ids,
    *,
    at: object = None,
    on_error: Literal["raise"] = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> pd.DataFrame: ...
@overload
def accounts(
    ids: Ids,
    *,
    at: object = None,
    on_error: Literal["collect"],
    progress: bool = True,
    ledger: Ledger | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
def accounts(
    ids: Ids,
    *,
    at: object = None,
    on_error: OnError = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Answer:
    """
    Read accounts: balances, storage, what they hold.

    Parameters
    ----------
    ids
        One account id or many; repeats are dropped.
    at
        A height, a block hash, a finality name or a time: reads the chain's own
        state there, without the counts that only the indexer knows. None reads
        the indexer.
    on_error
        ``raise``, or ``collect`` to get the failures as a second frame.
    progress
        Whether a bar shows while many are read.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    accounts
        One row an account, typed as `schema("accounts")`; amounts are exact
        yoctoNEAR. `status` tells an account that is not known from an empty one.

    Raises
    ------
    InvalidRequestError
        If an id or `at` is malformed; nothing was sent then.
    LedgerError
        If an account could not be read.

    Notes
    -----
    Source: GET /v1/account/{account_id}/full, or query view_account.
    """
    ask = Ask(client.current(ledger), on_error, progress)
    many = validation.account_ids(ids)
    if at is not None:
        return _accounts_at(ask, many, at)
    views = ask.each(many, [rest.full(one) for one in many], "accounts")
    frame = ask.frame(views, account_tables.accounts, "the full view")
    return ask.answer(frame, "GET /v1/account/{account_id}/full")


def _accounts_at(ask: Ask, ids: list[str], at: object) -> Answer:
    """Read accounts from the chain at one block, the same for all."""
    block = ask.ledger.send(rpc.block(ask.ledger.locate(at)))
    pinned = validation.block_reference(block.header.hash)
    inner = Ask(ask.ledger, "collect", ask.progress)
    known = inner.each(ids, [rpc.view_account(one, pinned) for one in ids], "accounts")
    states: dict[str, chain.Account | None] = {**dict(known)}
    for account_id, error in inner.failures:
        if isinstance(error, UnknownAccountError):
            states[account_id] = None
        else:
            ask.fails(account_id, error)
    views = [(one, (one, states[one])) for one in ids if one in states]
    frame = ask.frame(views, account_tables.accounts_at, "the state")
    head = block.header
    return ask.answer(frame, "query view_account", block_height=head.height, block_hash=head.hash)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """
    Everything indexed of one account, from one call.

    Parameters
    ----------
    account_id
        The account.
    state
        One row, typed as `schema("accounts")`.
    ft
        Fungible tokens, typed as `schema("ft")`.
    nft
        NFT collections, typed as `schema("nft")`.
    staking
        Staking pools, typed as `schema("staking")`.

    Notes
    -----
    Source: GET /v1/account/{account_id}/full.
    """

    account_id: str
    state: pd.DataFrame
    ft: pd.DataFrame
    nft: pd.DataFrame
    staking: pd.DataFrame

    def __repr__(self) -> str:
        return f"<Snapshot {self.account_id}: {self._summary()}>"

    def _summary(self) -> str:
        """Count what the account holds."""
        if self.state["status"].iloc[0] == "not_indexed":
            return "not indexed"
        counts = [(self.ft, "tokens"), (self.nft, "NFT collections"), (self.staking, "pools")]
        return ", ".join(f"{len(frame)} {word}" for frame, word in counts)

    def _repr_html_(self) -> str:
        """Draw a card: the account, then a table a view; all text is escaped."""
        parts = [f"<h3>{escape(self.account_id)}</h3><p>{escape(self._summary())}</p>"]
        state = self.state.drop(columns="account_id").T
        parts.append(state.to_html(header=False, escape=True, border=0))
        views = {"Tokens": self.ft, "NFTs": self.nft, "Staking": self.staking}
        for title, frame in views.items():
            shown = frame.drop(columns="account_id")
            table = shown.to_html(max_rows=20, escape=True, border=0, index=False)
            parts.append(f"<details><summary>{title} ({len(frame)})</summary>{table}</details>")
        kept = "ledgerkit-snapshot tex2jax_ignore mathjax_ignore"  # no formulas, as in cards
        return f'<div class="{kept}">{"".join(parts)}</div>'


def snapshot(account_id: str, *, ledger: Ledger | None = None) -> Snapshot:
    """
    Read everything indexed of one account, in one call.

    Parameters
    ----------
    account_id
        The account.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    snapshot
        Frames `state`, `ft`, `nft` and `staking`; a card in a notebook.

    Raises
    ------
    InvalidRequestError
        If the id is malformed; nothing was sent then.
    LedgerError
        If the account could not be read.

    Notes
    -----
    Source: GET /v1/account/{account_id}/full.
    """
    asked = client.current(ledger)
    call = rest.full(validation.account_id(account_id))
    view = asked.send(call)
    taken = naming(lambda: snapshot_of(view), call.asked)
    told = provenance(asked, "GET /v1/account/{account_id}/full")
    for frame in (taken.state, taken.ft, taken.nft, taken.staking):
        frame.attrs.update(told)
    return taken


def snapshot_of(view: indexed_wire.Full) -> Snapshot:
    """Frame a decoded ``/full`` view."""
    pools = [
        (view.account_id, p.pool_id, p.last_update_block_height, "indexed")
        for p in view.pools or ()
    ]
    return Snapshot(
        view.account_id,
        account_tables.accounts([view]),
        token_tables.ft([view]),
        token_tables.nft([(view.account_id, view.nfts)]),
        token_tables.staking(pools),
    )


def accounts_of(
    public_key: str, *, include_limited: bool = False, ledger: Ledger | None = None
) -> pd.DataFrame:
    """
    Read the accounts that a key opens.

    Parameters
    ----------
    public_key
        Such as ``ed25519:…``; without a curve it reads as ed25519.
    include_limited
        Whether function-call keys count too, not only full-access keys.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    accounts
        One row an account in the wire's order, typed as `schema("accounts_of")`.

    Raises
    ------
    InvalidRequestError
        If the key is malformed; nothing was sent then.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: GET /v1/public_key/{public_key}, or .../all. The implicit account of
    an ed25519 key is listed even if it was never created.
    """
    asked = client.current(ledger)
    key = validation.public_key(public_key)
    view = asked.send(rest.accounts_of(key, every_kind=include_limited))
    source = "GET /v1/public_key/{public_key}" + ("/all" if include_limited else "")
    return framed(asked, lambda: account_tables.accounts_of(view), source)


def keys(
    account_id: str,
    *,
    public_key: str | None = None,
    at: object = None,
    ledger: Ledger | None = None,
) -> pd.DataFrame:
    """
    Read the access keys of an account, or one of them.

    Parameters
    ----------
    account_id
        The account.
    public_key
        The one key to read; None reads all.
    at
        A height, a block hash, a finality name or a time; None is ``final``.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    keys
        One row a key, typed as `schema("keys")`.

    Raises
    ------
    UnknownAccountError
        If there is no such account; the list alone would just be empty.
    UnknownAccessKeyError
        If the account has no such key.
    InvalidRequestError
        If an argument is malformed; nothing was sent then.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: query view_access_key_list, or view_access_key.
    """
    asked = client.current(ledger)
    account_id = validation.account_id(account_id)
    key = None if public_key is None else validation.public_key(public_key)
    point = asked.locate(at)
    view = (
        _all_keys(asked, account_id, point) if key is None else _key(asked, account_id, key, point)
    )
    return framed(
        asked,
        lambda: account_tables.keys(account_id, view),
        "query view_access_key_list" if key is None else "query view_access_key",
        block_height=view.block_height,
        block_hash=view.block_hash,
    )


def _all_keys(asked: Ledger, account_id: str, at: validation.BlockReference) -> chain.KeyList:
    """Read all keys; an account that does not exist answers with none, so it is looked up."""
    view = asked.send(rpc.view_access_key_list(account_id, at))
    if not view.keys:
        point = validation.block_reference(view.block_hash) if view.block_hash else at
        asked.send(rpc.view_account(account_id, point))
    return view


def _key(
    asked: Ledger, account_id: str, public_key: str, at: validation.BlockReference
) -> chain.KeyList:
    """Read one key as a list of one."""
    found = asked.send(rpc.view_access_key(account_id, public_key, at))
    entry = chain.KeyEntry(public_key, found)
    return chain.KeyList([entry], None, found.block_height, found.block_hash)


def gas_key_nonces(
    account_id: str, public_key: str, *, at: object = None, ledger: Ledger | None = None
) -> list[int]:
    """
    Read the nonces of a gas key, one a lane.

    Parameters
    ----------
    account_id
        The account.
    public_key
        Its gas key.
    at
        A height, a block hash, a finality name or a time; None is ``final``.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    nonces
        The last used nonce of each lane, in order.

    Raises
    ------
    UnknownAccessKeyError
        If the account has no such gas key.
    InvalidRequestError
        If an argument is malformed; nothing was sent then.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: query view_gas_key_nonces.
    """
    asked = client.current(ledger)
    account_id, key = validation.account_id(account_id), validation.public_key(public_key)
    return asked.send(rpc.view_gas_key_nonces(account_id, key, asked.locate(at))).nonces
