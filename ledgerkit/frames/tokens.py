"""Frames of fungible tokens, NFTs and staking."""

from __future__ import annotations

from itertools import chain as chained
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ledgerkit.frames import amounts, build

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from ledgerkit.api.models import chain, rest

_LONGEST_SYMBOL = 64
_MOST_DECIMALS = 255
_OK = np.array(["ok"], dtype=object)


class TokenFacts(NamedTuple):
    """What frames use of a token's metadata, made harmless."""

    status: str
    symbol: str | None = None
    decimals: int | None = None


def token_facts(metadata: chain.FtMetadata) -> TokenFacts:
    """
    Make a token's metadata harmless: it is the contract's own word.

    Parameters
    ----------
    metadata
        The decoded metadata, its members of any type.

    Returns
    -------
    facts
        The symbol as one printable line of at most 64 characters, the decimals if
        from 0 to 255; ``broken`` where either is not usable.
    """
    symbol, decimals = metadata.symbol, metadata.decimals
    if isinstance(symbol, str):
        symbol = "".join(c if c.isprintable() else " " for c in symbol[: 4 * _LONGEST_SYMBOL])
        symbol = " ".join(symbol.split())[:_LONGEST_SYMBOL] or None
    else:
        symbol = None
    if type(decimals) is not int or not 0 <= decimals <= _MOST_DECIMALS:
        decimals = None
    status = "broken" if symbol is None or decimals is None else "ok"
    return TokenFacts(status, symbol, decimals)


def ft(
    views: Sequence[rest.FungibleTokens | rest.Full],
    metadata: Mapping[str, TokenFacts] | None = None,
) -> pd.DataFrame:
    """
    Tabulate the fungible tokens of accounts.

    Parameters
    ----------
    views
        Decoded views; an absent `tokens` list counts as empty.
    metadata
        What is known of each contract; adds columns.

    Returns
    -------
    balances
        One row a token, in the views' order, typed as `schema("ft")` or
        `schema("ft_metadata")`. `balance` is exact, in the token's smallest unit.

    Raises
    ------
    DecodeError
        If a balance is neither digits of at most 128 bits, null nor empty.

    Notes
    -----
    Source: GET /v1/account/{account_id}/ft.
    """
    tokens = list(chained.from_iterable(view.tokens or () for view in views))
    contracts = [token.contract_id for token in tokens]
    columns: dict[str, Any] = {
        "account_id": _owners(views, [len(view.tokens or ()) for view in views]),
        "contract_id": contracts,
        **_balances([token.balance for token in tokens]),
        "last_update_block_height": [token.last_update_block_height for token in tokens],
    }
    if metadata is None:
        return build.build_frame("ft", columns)
    facts = [metadata[contract_id] for contract_id in contracts]
    columns |= {
        "symbol": [fact.symbol for fact in facts],
        "decimals": [fact.decimals for fact in facts],
        "amount": [
            None if value is None or fact.decimals is None else human(value, fact.decimals)
            for value, fact in zip(columns["balance"].tolist(), facts, strict=True)
        ],
        "metadata_status": [fact.status for fact in facts],
    }
    return build.build_frame("ft_metadata", columns)


def human(balance: Any, decimals: int) -> float | None:
    """Give a balance in human units, rounded once; None where it is missing."""
    return balance / 10**decimals if isinstance(balance, int) else None


def _owners(views: Sequence[Any], counts: Sequence[int]) -> np.ndarray:
    """Repeat each view's account for each of its rows."""
    return np.repeat(np.array([view.account_id for view in views], dtype=object), counts)


def _balances(texts: Sequence[str | None]) -> dict[str, Any]:
    """Keep null, empty and "0" apart: not fetched yet, the call failed, none."""
    if all(texts):
        return {"balance": amounts.parse(texts), "status": np.repeat(_OK, len(texts))}
    words = {None: "pending", "": "broken"}
    return {
        "balance": amounts.parse([text or None for text in texts]),
        "status": [words.get(text, "ok") for text in texts],
    }


def top_holders(view: rest.TopHolders) -> pd.DataFrame:
    """
    Tabulate the largest holders of a token.

    Parameters
    ----------
    view
        The decoded view.

    Returns
    -------
    holders
        One row a holder, largest first, at most 100, typed as `schema("top_holders")`.

    Raises
    ------
    DecodeError
        If a balance is neither digits of at most 128 bits, null nor empty.

    Notes
    -----
    Source: GET /v1/ft/{contract_id}/top.
    """
    holders = view.accounts or []
    columns = {
        "contract_id": [view.token_id] * len(holders),
        "rank": range(1, len(holders) + 1),
        "account_id": [holder.account_id for holder in holders],
        **_balances([holder.balance for holder in holders]),
    }
    return build.build_frame("top_holders", columns)


def nft(views: Sequence[tuple[str, Sequence[rest.Collection] | None]]) -> pd.DataFrame:
    """
    Tabulate the NFT collections of accounts.

    Parameters
    ----------
    views
        Account ids with their collections; an absent list counts as empty.

    Returns
    -------
    collections
        One row a collection, typed as `schema("nft")`; the wire names no token.

    Notes
    -----
    Source: GET /v1/account/{account_id}/nft.
    """
    rows = [(account_id, row) for account_id, listed in views for row in listed or ()]
    columns = {
        "account_id": [account_id for account_id, _ in rows],
        "contract_id": [row.contract_id for _, row in rows],
        "last_update_block_height": [row.last_update_block_height for _, row in rows],
    }
    return build.build_frame("nft", columns)


_NFT_TEXTS = (
    "title",
    "description",
    "media",
    "media_hash",
    "copies",
    "issued_at",
    "expires_at",
    "starts_at",
    "updated_at",
    "extra",
    "reference",
    "reference_hash",
)


def nft_tokens(contract_id: str, rows: Sequence[tuple[str, chain.NftToken]]) -> pd.DataFrame:
    """
    Tabulate individual tokens of a collection.

    Parameters
    ----------
    contract_id
        The collection.
    rows
        The account asked about, and a token of it.

    Returns
    -------
    tokens
        One row a token, typed as `schema("nft_tokens")`; metadata is text as sent.

    Notes
    -----
    Source: view call nft_tokens_for_owner.
    """
    details = [token.metadata for _, token in rows]
    owners = [token.owner_id for _, token in rows]
    columns: dict[str, Any] = {
        "account_id": [account_id for account_id, _ in rows],
        "contract_id": [contract_id] * len(rows),
        "token_id": [token.token_id for _, token in rows],
        # some contracts wrap the owner, as in {"Account": "a.near"}
        "owner_id": [o if isinstance(o, str) else _text(o) for o in owners],
        "approved_account_ids": [token.approved_account_ids for _, token in rows],
    }
    columns |= {name: [_text(getattr(d, name, None)) for d in details] for name in _NFT_TEXTS}
    return build.build_frame("nft_tokens", columns)


def _text(value: Any) -> str | None:
    """Keep a text; write other JSON as text, since contracts send either."""
    if value is None or isinstance(value, str):
        return value
    import msgspec

    return msgspec.json.encode(value).decode()


class PoolRow(NamedTuple):
    """A staking pool of an account; `source` is ``indexed`` or ``asked``."""

    account_id: str
    pool_id: str
    last_update_block_height: int | None
    source: str


def pool_rows(
    responses: Sequence[rest.Staking | rest.Full], extra_pools: Sequence[str] = ()
) -> list[PoolRow]:
    """List the pools of each account, then the extra pools that its response lacks."""
    rows: list[PoolRow] = []
    for response in responses:
        account_id, pools = response.account_id, response.pools or ()
        rows += [
            PoolRow(account_id, pool.pool_id, pool.last_update_block_height, "indexed")
            for pool in pools
        ]
        if extra_pools:
            indexed = {pool.pool_id for pool in pools}
            missing = [pool_id for pool_id in extra_pools if pool_id not in indexed]
            rows += [PoolRow(account_id, pool_id, None, "asked") for pool_id in missing]
    return rows


def staking(responses: Sequence[rest.Staking | rest.Full]) -> pd.DataFrame:
    """Tabulate the staking pools of accounts, typed as `schema("staking")`."""
    return build.build_frame("staking", _pool_columns(pool_rows(responses)))


def _pool_columns(rows: Sequence[PoolRow]) -> dict[str, Any]:
    """Return the columns that both frames of pools begin with."""
    return {
        "account_id": [row.account_id for row in rows],
        "pool_id": [row.pool_id for row in rows],
        "last_update_block_height": [row.last_update_block_height for row in rows],
    }


class Position(NamedTuple):
    """A pool's record of an account's stake; amounts are missing if it is no pool."""

    status: str
    staked: str | None = None
    unstaked: str | None = None
    can_withdraw: bool | None = None


def staking_positions(rows: Sequence[PoolRow], positions: Sequence[Position]) -> pd.DataFrame:
    """Tabulate positions in pools, typed as `schema("staking_positions")`."""
    columns = _pool_columns(rows) | {
        "staked": amounts.parse([p.staked for p in positions], name="staked"),
        "unstaked": amounts.parse([p.unstaked for p in positions], name="unstaked"),
        "can_withdraw": [p.can_withdraw for p in positions],
        "status": [p.status for p in positions],
        "source": [row.source for row in rows],
    }
    return build.build_frame("staking_positions", columns)
