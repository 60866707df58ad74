"""Verbs about accounts: state, access keys, and the accounts of a key."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal, overload

from ledgerkit import client, validation
from ledgerkit.api import rest, rpc
from ledgerkit.api.models import chain
from ledgerkit.errors import UnknownAccountError
from ledgerkit.frames import accounts as account_frames
from ledgerkit.frames import tokens as token_frames
from ledgerkit.verbs.fetching import Fetcher, provenance, request_in_errors, sourced_frame

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.models import rest as rest_models
    from ledgerkit.client import Ledger, OnError
    from ledgerkit.verbs.fetching import FrameResult, Ids


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
) -> FrameResult:
    """
    Return the state of accounts: balances, storage use, counts of tokens and pools.

    Parameters
    ----------
    ids
        One account id or several; duplicates are dropped.
    at
        The block to read the chain's state at: a height, block hash, finality name or
        time. Columns that only the indexer has, such as the counts, are then missing.
        None reads the indexer.
    on_error
        ``raise`` raises the first failure; ``collect`` returns a second frame of all
        failures.
    progress
        Show a progress bar.
    ledger
        The ledger to read from; None is the session's default.

    Returns
    -------
    accounts
        One row per account, typed as `schema("accounts")`; amounts are exact
        yoctoNEAR. `status` distinguishes accounts without a state from empty ones.

    Raises
    ------
    InvalidRequestError
        If an id or `at` is malformed. Nothing is sent.
    LedgerError
        If an account could not be read.

    Notes
    -----
    Source: GET /v1/account/{account_id}/full; with `at` block and query view_account.
    """
    fetcher = Fetcher(client.current(ledger), on_error, progress)
    account_ids = validation.account_ids(ids)
    if at is not None:
        return _accounts_at(fetcher, account_ids, at)
    fetched = fetcher.fetch(account_ids, [rest.full(name) for name in account_ids], "accounts")
    frame = fetcher.frame(fetched, account_frames.accounts, "the state and holdings")
    return fetcher.result(frame, "GET /v1/account/{account_id}/full")


def _accounts_at(fetcher: Fetcher, account_ids: list[str], at: object) -> FrameResult:
    """Read the state of all accounts at one block."""
    height, block_hash = fetcher.ledger.pin(at)
    block = validation.block_reference(block_hash)
    # Errors are collected first: an unknown account is a row, and no failure.
    collector = Fetcher(fetcher.ledger, "collect", fetcher.progress)
    calls = [rpc.view_account(name, block) for name in account_ids]
    existing = collector.fetch(account_ids, calls, "accounts")
    states: dict[str, chain.Account | None] = {**dict(existing)}
    for account_id, error in collector.failures:
        if isinstance(error, UnknownAccountError):
            states[account_id] = None
        else:
            fetcher.fail(account_id, error)
    fetched = [(name, (name, states[name])) for name in account_ids if name in states]
    frame = fetcher.frame(fetched, account_frames.accounts_at, "the state")
    source = "query view_account"
    return fetcher.result(frame, source, block_height=height, block_hash=block_hash)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """
    The indexed state and holdings of one account, from one request.

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
        """Format the counts of tokens, collections and pools."""
        if self.state["status"].iloc[0] == "not_indexed":
            return "not indexed"
        counts = [(self.ft, "tokens"), (self.nft, "NFT collections"), (self.staking, "pools")]
        return ", ".join(f"{len(frame)} {word}" for frame, word in counts)

    def _repr_html_(self) -> str:
        """Render the account and its frames as a card; all text is escaped."""
        parts = [f"<h3>{escape(self.account_id)}</h3><p>{escape(self._summary())}</p>"]
        state = self.state.drop(columns="account_id").T
        parts.append(state.to_html(header=False, escape=True, border=0))
        frames = {"Tokens": self.ft, "NFTs": self.nft, "Staking": self.staking}
        for title, frame in frames.items():
            columns = frame.drop(columns="account_id")
            table = columns.to_html(max_rows=20, escape=True, border=0, index=False)
            parts.append(f"<details><summary>{title} ({len(frame)})</summary>{table}</details>")
        # Without these classes MathJax would typeset a token's name that contains $A$.
        classes = "ledgerkit-snapshot tex2jax_ignore mathjax_ignore"
        return f'<div class="{classes}">{"".join(parts)}</div>'


def snapshot(account_id: str, *, ledger: Ledger | None = None) -> Snapshot:
    """
    Return the indexed state and holdings of one account, with one request.

    Parameters
    ----------
    account_id
        The account.
    ledger
        The ledger to read from; None is the session's default.

    Returns
    -------
    snapshot
        The account's frames `state`, `ft`, `nft` and `staking`; a notebook displays it as
        a card.

    Raises
    ------
    InvalidRequestError
        If the id is malformed. Nothing is sent.
    LedgerError
        If the account could not be read.

    Notes
    -----
    Source: GET /v1/account/{account_id}/full.
    """
    ledger = client.current(ledger)
    call = rest.full(validation.account_id(account_id))
    response = ledger.send(call)
    with request_in_errors(call.request):
        snapshot = build_snapshot(response)
    attrs = provenance(ledger, "GET /v1/account/{account_id}/full")
    for frame in (snapshot.state, snapshot.ft, snapshot.nft, snapshot.staking):
        frame.attrs.update(attrs)
    return snapshot


def build_snapshot(response: rest_models.Full) -> Snapshot:
    """Build a snapshot from a decoded ``/full`` response."""
    return Snapshot(
        response.account_id,
        account_frames.accounts([response]),
        token_frames.ft([response]),
        token_frames.nft([(response.account_id, response.nfts)]),
        token_frames.staking([response]),
    )


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
        Include the accounts on which it is only a function-call key.
    ledger
        The ledger to read from; None is the session's default.

    Returns
    -------
    accounts
        One row per account, in the response's order, typed as `schema("accounts_of")`.

    Raises
    ------
    InvalidRequestError
        If the key is malformed. Nothing is sent.
    LedgerError
        If the response could not be read.

    Notes
    -----
    Source: GET /v1/public_key/{public_key}; with `include_limited` the same path with
    /all. The implicit account of an ed25519 key is listed even if it was never created.
    """
    ledger = client.current(ledger)
    key = validation.public_key(public_key)
    response = ledger.send(rest.accounts_of(key, every_kind=include_limited))
    source = "GET /v1/public_key/{public_key}" + ("/all" if include_limited else "")
    return sourced_frame(ledger, lambda: account_frames.accounts_of(response), source)


def keys(
    account_id: str,
    *,
    public_key: str | None = None,
    at: object = None,
    ledger: Ledger | None = None,
) -> pd.DataFrame:
    """
    Return the access keys of an account, or one of them.

    Parameters
    ----------
    account_id
        The account.
    public_key
        The only key to read; None reads all.
    at
        A height, block hash, finality name or time; None is ``final``.
    ledger
        The ledger to read from; None is the session's default.

    Returns
    -------
    keys
        One row per key, typed as `schema("keys")`.

    Raises
    ------
    UnknownAccountError
        If there is no such account.
    UnknownAccessKeyError
        If the account has no such key.
    InvalidRequestError
        If an argument is malformed. Nothing is sent.
    LedgerError
        If the response could not be read.

    Notes
    -----
    Source: query view_access_key_list, or view_access_key.
    """
    ledger = client.current(ledger)
    account_id = validation.account_id(account_id)
    key = None if public_key is None else validation.public_key(public_key)
    block = ledger.locate(at)
    if key is None:
        response, source = _all_keys(ledger, account_id, block), "query view_access_key_list"
    else:
        response, source = _one_key(ledger, account_id, key, block), "query view_access_key"
    return sourced_frame(
        ledger,
        lambda: account_frames.keys(account_id, response),
        source,
        block_height=response.block_height,
        block_hash=response.block_hash,
    )


def _all_keys(ledger: Ledger, account_id: str, at: validation.BlockReference) -> chain.KeyList:
    """Read all keys of an account."""
    response = ledger.send(rpc.view_access_key_list(account_id, at))
    if not response.keys:
        # A node also returns an empty list for an account that does not exist; reading the
        # account raises the error for it.
        block_hash = response.block_hash
        block = validation.block_reference(block_hash) if block_hash else at
        ledger.send(rpc.view_account(account_id, block))
    return response


def _one_key(
    ledger: Ledger, account_id: str, public_key: str, at: validation.BlockReference
) -> chain.KeyList:
    """Read one key, as a list."""
    key = ledger.send(rpc.view_access_key(account_id, public_key, at))
    entry = chain.KeyEntry(public_key, key)
    return chain.KeyList([entry], None, key.block_height, key.block_hash)


def gas_key_nonces(
    account_id: str, public_key: str, *, at: object = None, ledger: Ledger | None = None
) -> list[int]:
    """
    Return the nonces of a gas key, one per nonce index.

    Parameters
    ----------
    account_id
        The account.
    public_key
        Its gas key.
    at
        A height, block hash, finality name or time; None is ``final``.
    ledger
        The ledger to read from; None is the session's default.

    Returns
    -------
    nonces
        The last used nonce of each index, in order.

    Raises
    ------
    UnknownAccessKeyError
        If the account has no such gas key.
    InvalidRequestError
        If an argument is malformed. Nothing is sent.
    LedgerError
        If the response could not be read.

    Notes
    -----
    Source: query view_gas_key_nonces.
    """
    ledger = client.current(ledger)
    account_id, key = validation.account_id(account_id), validation.public_key(public_key)
    return ledger.send(rpc.view_gas_key_nonces(account_id, key, ledger.locate(at))).nonces
