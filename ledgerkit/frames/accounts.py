"""Frames of accounts, their keys and what the accounts of a key are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.errors import DecodeError
from ledgerkit.frames import amounts, build

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from ledgerkit.api.models import chain, rest

STORAGE_PRICE = 10**19  # yocto locked a byte
FREE_BYTES = 770  # accounts up to this size lock nothing
NONCE_STEP = 10**6  # a new key's nonce is (creation height - 1) times this


def accounts(views: Sequence[rest.Full]) -> pd.DataFrame:
    """
    Tabulate indexed accounts.

    Parameters
    ----------
    views
        Decoded ``/full`` views; one with `state` null was never indexed.

    Returns
    -------
    accounts
        One row a view, typed as `schema("accounts")`.

    Raises
    ------
    DecodeError
        If a balance is not decimal digits of at most 128 bits.

    Notes
    -----
    Source: GET /v1/account/{account_id}/full.
    """
    states = [view.state for view in views]
    return build.build_frame(
        "accounts",
        {
            "account_id": [view.account_id for view in views],
            "status": ["not_indexed" if state is None else "ok" for state in states],
            **_holdings(
                [None if state is None else state.balance for state in states],
                [None if state is None else state.locked for state in states],
                [None if state is None else state.storage_bytes for state in states],
            ),
            "n_tokens": [len(view.tokens or ()) for view in views],
            "n_nfts": [len(view.nfts or ()) for view in views],
            "n_pools": [len(view.pools or ()) for view in views],
            "last_update_block_height": [_latest(view) for view in views],
        },
    )


def accounts_at(views: Sequence[tuple[str, chain.Account | None]]) -> pd.DataFrame:
    """
    Tabulate accounts as the chain held them at one block.

    Parameters
    ----------
    views
        Account ids with their decoded state; None where there was no such account.

    Returns
    -------
    accounts
        One row an account, typed as `schema("accounts")`; what only the indexer
        knows is missing.

    Raises
    ------
    DecodeError
        If a balance is not decimal digits of at most 128 bits.

    Notes
    -----
    Source: query view_account.
    """
    states = [state for _, state in views]
    unknown = [None] * len(views)
    return build.build_frame(
        "accounts",
        {
            "account_id": [account_id for account_id, _ in views],
            "status": ["no_account" if state is None else "ok" for state in states],
            **_holdings(
                [None if state is None else state.amount for state in states],
                [None if state is None else state.locked for state in states],
                [None if state is None else state.storage_usage for state in states],
            ),
            "n_tokens": unknown,
            "n_nfts": unknown,
            "n_pools": unknown,
            "last_update_block_height": unknown,
        },
    )


def _holdings(
    balances: list[str | None], locked: list[str | None], sizes: list[int | None]
) -> dict[str, Any]:
    """Give the columns about money and storage."""
    balance = amounts.parse(balances, name="balance")
    lock = amounts.parse(locked, name="locked")
    return {
        "balance": balance,
        "locked": lock,
        "storage_bytes": sizes,
        "storage_cost": [None if size is None else size * STORAGE_PRICE for size in sizes],
        "spendable": [
            None if size is None else spendable(free, held, size)
            for free, held, size in zip(balance, lock, sizes, strict=True)
        ],
    }


def spendable(balance: int, locked: int, storage_bytes: int) -> int:
    """Give what can leave the account: locked tokens cover storage first."""
    needed = 0 if storage_bytes <= FREE_BYTES else storage_bytes * STORAGE_PRICE
    return max(0, balance - max(0, needed - locked))


def _latest(view: rest.Full) -> int | None:
    """Find the latest change among all entries of an account."""
    entries = (*(view.pools or ()), *(view.tokens or ()), *(view.nfts or ()))
    heights = [e.last_update_block_height for e in entries]
    return max((h for h in heights if h is not None), default=None)


def accounts_of(view: rest.KeyAccounts) -> pd.DataFrame:
    """
    Tabulate the accounts of a key.

    Parameters
    ----------
    view
        The decoded view.

    Returns
    -------
    accounts
        One row an account in the wire's order, typed as `schema("accounts_of")`.

    Notes
    -----
    Source: GET /v1/public_key/{public_key}.
    """
    ids = view.account_ids or []
    columns = {
        "public_key": [view.public_key] * len(ids),
        "account_id": ids,
        "is_primary": [place == 0 for place in range(len(ids))],
    }
    return build.build_frame("accounts_of", columns)


def keys(account_id: str | None, view: chain.KeyList) -> pd.DataFrame:
    """
    Tabulate the access keys of an account.

    Parameters
    ----------
    account_id
        The account; None where it is not known.
    view
        The decoded list.

    Returns
    -------
    keys
        One row a key, typed as `schema("keys")`. `added_at_block` and `use_count`
        are read from the nonce, which starts at (block - 1) * 10^6; keys older
        than that rule started at 0 and have no `added_at_block`.

    Raises
    ------
    DecodeError
        If a permission is not one of the four known shapes.

    Notes
    -----
    Source: query view_access_key_list.
    """
    found = [_permission(entry.access_key.permission) for entry in view.keys]
    nonces = [entry.access_key.nonce for entry in view.keys]
    call = [p.get("receiver_id") is not None for _, p in found]
    return build.build_frame(
        "keys",
        {
            "account_id": [account_id] * len(nonces),
            "public_key": [entry.public_key for entry in view.keys],
            "nonce": nonces,
            "permission": [kind for kind, _ in found],
            "receiver_id": [p.get("receiver_id") for _, p in found],
            "method_names": [p.get("method_names") for _, p in found],
            "allowance": amounts.parse([p.get("allowance") for _, p in found], name="allowance"),
            "is_unlimited": [
                p.get("allowance") is None if is_call else None
                for (_, p), is_call in zip(found, call, strict=True)
            ],
            "added_at_block": [n // NONCE_STEP + 1 if n >= NONCE_STEP else None for n in nonces],
            "use_count": [nonce % NONCE_STEP for nonce in nonces],
        },
    )


def _permission(value: Any) -> tuple[str, dict[str, Any]]:
    """Read a permission: a word, or an object of one member."""
    if isinstance(value, str):
        return value, {}
    if len(value) == 1:
        kind, fields = next(iter(value.items()))
        if isinstance(fields, dict):
            return kind, fields
        if isinstance(fields, list):  # the raw form of gas keys: two objects in an array
            return kind, {
                k: v for part in fields if isinstance(part, dict) for k, v in part.items()
            }
        if fields is None:
            return kind, {}
    raise DecodeError(
        f"a key's permission {str(value)[:80]!r} is of no known shape", path="permission"
    )
