"""Frames of fungible tokens, their metadata, NFTs, staking, and the exposure to staking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pandas import NA

from ledgerkit.api.models import chain
from ledgerkit.errors import cut
from ledgerkit.frames import amounts, build
from ledgerkit.frames.schemas import SCHEMAS
from ledgerkit.units import MAX_DECIMALS

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.models import rest

    # The pools or the liquid staking tokens of accounts, with their amounts if known.
    Entries = list[list[tuple[str, int | None]]]

_MAX_SYMBOL = 64
# The indexer sends null for a balance that is not indexed yet, "" for a failed contract call.
BALANCE_STATUSES = {None: "pending", "": "broken"}

CLASSES = {  # by whether there are pools, and liquid staking tokens
    (True, True): "mixed",
    (True, False): "direct_only",
    (False, True): "liquid_only",
    (False, False): "no_visible_staking_position",
}


class TokenFacts(NamedTuple):
    """The checked symbol, decimals and name of a token, and the status of its metadata."""

    status: str
    symbol: str | None = None
    decimals: int | None = None
    name: str | None = None


# The metadata that a token's contract returned, or why there is none: missing, broken or unread.
Metadata = chain.FtMetadata | str


class Token(NamedTuple):
    """A token with its supply in the smallest unit, which is None if it is unknown."""

    facts: TokenFacts
    total_supply: int | None


def token_facts(metadata: Metadata) -> TokenFacts:
    """
    Check a token's metadata: a contract may send members of any type.

    The symbol and the name become one line of at most 64 visible characters, and the decimals are
    kept if they are from 0 to 255. The status is ``broken`` if symbol or decimals are not usable.
    """
    if isinstance(metadata, str):
        return TokenFacts(metadata)
    symbol, decimals = _one_line(metadata.symbol), metadata.decimals
    if type(decimals) is not int or not 0 <= decimals <= MAX_DECIMALS:
        decimals = None
    status = "broken" if symbol is None or decimals is None else "ok"
    return TokenFacts(status, symbol, decimals, _one_line(metadata.name))


def token_metadata(metadata: Mapping[str, Metadata]) -> pd.DataFrame:
    facts = list(map(token_facts, metadata.values()))
    columns: dict[str, Any] = {"contract_id": list(metadata)}
    columns |= {name: [getattr(fact, name) for fact in facts] for name in TokenFacts._fields}
    columns["spec"] = [_one_line(getattr(value, "spec", None)) for value in metadata.values()]
    for name in ("icon", "reference", "reference_hash"):
        columns[name] = [_text(getattr(value, name, None)) for value in metadata.values()]
    return build.build_frame("token_metadata", columns)


def _one_line(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    return cut(value, 4 * _MAX_SYMBOL)[:_MAX_SYMBOL].strip() or None


def ft(responses: Sequence[rest.FungibleTokens | rest.Full]) -> pd.DataFrame:
    return build.build_frame("ft", ft_columns(responses))


def ft_at(rows: Sequence[tuple[str, str, int | None, str]]) -> pd.DataFrame:
    """Build the ft frame from account ids, contracts, balances at a block, and statuses."""
    names = ("account_id", "contract_id", "balance", "status")
    columns: dict[str, Any] = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    columns["last_update_block_height"] = [None] * len(rows)
    return build.build_frame("ft", columns)


def ft_intents(
    frame: pd.DataFrame,
    balances: Mapping[str, Mapping[str, int]],
    contracts: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Add balances within intents.near, by account and token id, to the ft frame."""
    rows = [
        (account_id, _nep141_contract(token_id), token_id, balance)
        for account_id, tokens in balances.items()
        for token_id, balance in tokens.items()
        if contracts is None or _nep141_contract(token_id) in contracts
    ]
    names = ("account_id", "contract_id", "token_id", "balance")
    added = {name: [row[index] for row in rows] for index, name in enumerate(names)}
    added |= {"status": ["ok"] * len(rows), "held_in": ["intents.near"] * len(rows)}
    wallet = frame.assign(held_in="wallet", token_id=None)
    order = {account_id: index for index, account_id in enumerate(balances)}
    columns = {
        column.name: [*wallet[column.name], *added.get(column.name, [None] * len(rows))]
        for column in SCHEMAS["ft_intents"]
    }
    with_intents = build.build_frame("ft_intents", columns)
    ranks = with_intents["account_id"].map(order)
    with_intents = with_intents.iloc[ranks.argsort(kind="stable")].reset_index(drop=True)
    with_intents.attrs = {**frame.attrs, "schema": "ft_intents"}
    return with_intents


def _nep141_contract(token_id: str) -> str | None:
    # Source: near/intents, crates/primitives/token-id: nep141:contract, nep171:contract:token_id,
    # nep245:contract:token_id or imt:minter:token_id.
    standard, _, contract_id = token_id.partition(":")
    return contract_id if standard == "nep141" else None


def ft_metadata(frame: pd.DataFrame, metadata: Mapping[str, TokenFacts]) -> pd.DataFrame:
    schema = "ft_intents" if "held_in" in frame else "ft"
    facts = [
        metadata.get(contract_id, TokenFacts("missing")) for contract_id in frame["contract_id"]
    ]
    columns: dict[str, Any] = {c.name: frame[c.name].array for c in SCHEMAS[schema]}
    columns |= _metadata_columns(frame["balance"].tolist(), facts)
    with_metadata = build.build_frame(f"{schema}_metadata", columns)
    with_metadata.attrs = {**frame.attrs, **with_metadata.attrs}
    return with_metadata


def _metadata_columns(balances: Sequence[Any], facts: Sequence[TokenFacts]) -> dict[str, Any]:
    """Return the columns that the metadata of tokens adds to their balances, NA if unknown."""
    return {
        "symbol": [fact.symbol for fact in facts],
        "decimals": [fact.decimals for fact in facts],
        "amount": [
            None if value is NA or fact.decimals is None else value / 10**fact.decimals
            for value, fact in zip(balances, facts, strict=True)
        ],
        "metadata_status": [fact.status for fact in facts],
    }


def ft_columns(responses: Sequence[rest.FungibleTokens | rest.Full]) -> dict[str, Any]:
    tokens = [token for response in responses for token in response.tokens or ()]
    account_ids = np.array([response.account_id for response in responses], dtype=object)
    return {
        "account_id": np.repeat(account_ids, [len(r.tokens or ()) for r in responses]),
        "contract_id": [token.contract_id for token in tokens],
        **_balances([token.balance for token in tokens]),
        "last_update_block_height": [token.last_update_block_height for token in tokens],
    }


def _balances(texts: Sequence[str | None]) -> dict[str, Any]:
    return {
        "balance": [text or None for text in texts],
        "status": [BALANCE_STATUSES.get(text, "ok") for text in texts],
    }


def top_holders(response: rest.TopHolders, token: Token | None = None) -> pd.DataFrame:
    """Build the top_holders frame, or top_holders_metadata with the token; largest first."""
    holders = response.accounts or []
    columns = {
        "contract_id": [response.token_id] * len(holders),
        "rank": range(1, len(holders) + 1),
        "account_id": [holder.account_id for holder in holders],
        **_balances([holder.balance for holder in holders]),
    }
    if token is None:
        return build.build_frame("top_holders", columns)
    columns["balance"] = build.build_frame("top_holders", columns)["balance"].array
    balances, supply = columns["balance"].tolist(), token.total_supply
    columns |= _metadata_columns(balances, [token.facts] * len(holders)) | {
        "total_supply": [supply] * len(holders),
        # A supply of zero has no shares.
        "share": [None if value is NA or not supply else value / supply for value in balances],
    }
    return build.build_frame("top_holders_metadata", columns)


def nft(responses: Sequence[tuple[str | None, Sequence[rest.Collection] | None]]) -> pd.DataFrame:
    """Build the nft frame from account ids with their collections; None counts as empty."""
    return build.build_frame("nft", nft_columns(responses))


def nft_columns(
    responses: Sequence[tuple[str | None, Sequence[rest.Collection] | None]],
) -> dict[str, Any]:
    rows = [(account_id, row) for account_id, collections in responses for row in collections or ()]
    return {
        "account_id": [account_id for account_id, _ in rows],
        "contract_id": [row.contract_id for _, row in rows],
        "token_id": [row.token_id for _, row in rows],
        "last_update_block_height": [row.last_update_block_height for _, row in rows],
    }


def nft_tokens(contract_id: str, rows: Sequence[tuple[str, chain.NftToken]]) -> pd.DataFrame:
    """Build the nft_tokens frame of a collection from account ids and their tokens."""
    details = [token.metadata for _, token in rows]
    owners = [token.owner_id for _, token in rows]
    columns: dict[str, Any] = {
        "account_id": [account_id for account_id, _ in rows],
        "contract_id": [contract_id] * len(rows),
        "token_id": [token.token_id for _, token in rows],
        "owner_id": [_text(owner) for owner in owners],  # some send {"Account": "a.near"}
        "approved_account_ids": [token.approved_account_ids for _, token in rows],
    }
    columns |= {
        name: [_text(getattr(detail, name, None)) for detail in details]
        for name in chain.NftMetadata.__struct_fields__
    }
    return build.build_frame("nft_tokens", columns)


def _text(value: Any) -> str | None:
    """Return a text unchanged, any other value as JSON: contracts may send both."""
    if value is None or isinstance(value, str):
        return value
    import msgspec

    return msgspec.json.encode(value).decode()


class PoolRow(NamedTuple):
    """A staking pool of an account, or a liquid token; `source` as in the frame of positions."""

    account_id: str | None
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
    return build.build_frame("staking", pool_columns(pool_rows(responses)))


def pool_columns(rows: Sequence[PoolRow]) -> dict[str, Any]:
    return build.columns_of("staking", rows)


class Position(NamedTuple):
    """The position of an account in a pool; amounts are None if the contract is not a pool."""

    status: str
    staked: int | None = None
    unstaked: int | None = None
    can_withdraw: bool | None = None
    tokens: int | None = None  # balance of a liquid token


class Stake(NamedTuple):
    """A row of a staking pool with the position there."""

    row: PoolRow
    position: Position

    @property
    def total(self) -> int | None:
        """The staked and unstaked yoctoNEAR; None if unknown."""
        staked, unstaked = self.position.staked, self.position.unstaked
        return None if staked is None or unstaked is None else staked + unstaked


def staking_positions(stakes: Sequence[Stake]) -> pd.DataFrame:
    rows, positions = [stake.row for stake in stakes], [stake.position for stake in stakes]
    columns = pool_columns(rows) | {"source": [row.source for row in rows]}
    columns |= {name: [getattr(p, name) for p in positions] for name in Position._fields}
    return build.build_frame("staking_positions", columns)


# Exposure ---------------------------------------------------------------------------------


def exposure(
    responses: Sequence[rest.Full],
    *,
    liquid: frozenset[str],
    stakes: Mapping[tuple[str | None, str], int | None] | None = None,
) -> pd.DataFrame:
    """Build the exposure frame; with `stakes`, pools and tokens with an amount of 0 are ignored."""
    return build.build_frame("exposure", exposure_columns(responses, liquid, stakes))


def exposure_lockups(frame: pd.DataFrame, rows: Sequence[PoolRow]) -> pd.DataFrame:
    """Add the sources of the pools and tokens that count to an exposure frame."""
    sources: dict[str | None, dict[str, None]] = {}
    for row in rows:
        sources.setdefault(row.account_id, {})[row.source] = None
    columns: dict[str, Any] = {
        column.name: frame[column.name].array for column in SCHEMAS["exposure"]
    }
    columns["sources"] = [
        [*sources.get(account_id, ()), *(["liquid"] if tokens else [])]
        for account_id, tokens in zip(frame["account_id"], frame["liquid_tokens"], strict=True)
    ]
    return build.build_frame("exposure_lockups", columns)


def exposure_columns(
    responses: Sequence[rest.Full],
    liquid: frozenset[str],
    stakes: Mapping[tuple[str | None, str], int | None] | None = None,
) -> dict[str, Any]:
    """Return the columns of the exposure frame; `stakes` as in `exposure`."""
    amounts_staked = stakes or {}
    pools = [
        [(p.pool_id, amounts_staked.get((r.account_id, p.pool_id))) for p in r.pools or ()]
        for r in responses
    ]
    tokens = _liquid_tokens(responses, liquid)
    if stakes is not None:
        pools, tokens = _nonzero(pools), _nonzero(tokens)
    indexed = [response.is_indexed for response in responses]
    rows = list(zip(pools, tokens, indexed, strict=True))
    return {
        "account_id": [response.account_id for response in responses],
        "exposure_class": [CLASSES[bool(direct), bool(listed)] for direct, listed, _ in rows],
        "status": ["ok" if is_indexed else "not_indexed" for is_indexed in indexed],
        "n_direct": [len(direct) if is_indexed else None for direct, _, is_indexed in rows],
        "n_liquid": [len(listed) if is_indexed else None for _, listed, is_indexed in rows],
        "n_unknown": [
            [amount for _, amount in direct + listed].count(None) if is_indexed else None
            for direct, listed, is_indexed in rows
        ],
        "direct_pools": [[pool_id for pool_id, _ in direct] for direct in pools],
        "liquid_tokens": [[contract_id for contract_id, _ in listed] for listed in tokens],
    }


def _liquid_tokens(responses: Sequence[rest.Full], liquid: frozenset[str]) -> Entries:
    tokens = [[t for t in r.tokens or () if t.contract_id in liquid] for r in responses]
    # All balances are parsed at once: one call per account would be slow.
    texts = [token.balance or None for listed in tokens for token in listed]
    parsed = amounts.parse(texts).tolist()
    balances = iter([b if isinstance(b, int) else None for b in parsed])
    return [[(token.contract_id, next(balances)) for token in listed] for listed in tokens]


def _nonzero(entries: Entries) -> Entries:
    return [[entry for entry in account if entry[1] != 0] for account in entries]
