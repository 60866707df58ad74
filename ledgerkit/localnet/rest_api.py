"""The REST API of the embedded ledger: a path in, a response from the index out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.http_messages import JSON_TYPE, HttpResponse, json_response
from ledgerkit.localnet.indexer import Indexer
from ledgerkit.localnet.settings import SECOND_NS
from ledgerkit.protocol import AccountId, PublicKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.localnet.indexer import ContractPairs
    from ledgerkit.localnet.world import World

VERSION = "0.10.0"  # of fastnear-api-server-rs, whose API this is
MAX_HOLDERS = 100
MAX_LATENCY_S = 10.0
MAX_BLOCKS_BEHIND = 3


def respond(world: World, path: str) -> HttpResponse:
    """Answer a GET request to a percent-encoded path."""
    try:
        route = _find_route([unquote(part, errors="strict") for part in path.split("/")[1:]])
    except (InvalidRequestError, UnicodeDecodeError):
        return json_response("Invalid argument", 400)
    if route is None:
        return HttpResponse(404, (JSON_TYPE,))
    handler, args = route
    return json_response(handler(indexer_of(world), *args))


def indexer_of(world: World) -> Indexer:
    """Return the index of a world, up to date; it is built on first use."""
    indexer = world.memo("indexer", lambda: Indexer(world))
    indexer.catch_up()
    return indexer


def _find_route(parts: list[str]) -> tuple[Callable[..., Any], list[object]] | None:
    """Find the handler of a path and its arguments."""
    match parts:
        case ["status" | "health" as name]:
            return _PAGES[name], []
        case ["v0" | "v1", "public_key", key, *suffix] if key and suffix in ([], ["all"]):
            return by_key, [PublicKey.from_text(key), bool(suffix)]
        case ["v0" | "v1" as version, "account", account_id, name] if account_id:
            handler = _ACCOUNT_PAGES.get((version, name))
            return None if handler is None else (handler, [str(AccountId(account_id))])
        case ["v1", "ft", token_id, "top"] if token_id:
            return top, [str(AccountId(token_id))]
    return None


# One function for each path ----------------------------------------------------------------


def status(indexer: Indexer) -> dict[str, Any]:
    """Return how far the index and its balances are."""
    return {
        "sync_balance_block_height": indexer.balance_block.height,
        "sync_block_height": indexer.block.height,
        "sync_block_timestamp_nanosec": str(indexer.block.timestamp_ns),
        "sync_latency_sec": indexer.latency_ns() / SECOND_NS,
        "version": VERSION,
    }


def health(indexer: Indexer) -> dict[str, str]:
    """Return "ok", or why the index is too far behind the chain."""
    latency = indexer.latency_ns() / SECOND_NS
    behind = indexer.block.height - indexer.balance_block.height
    text = "ok"
    if latency > MAX_LATENCY_S:
        text = f"HighSyncLatency {{ latency: {latency}, max_latency: {MAX_LATENCY_S} }}"
    elif behind > MAX_BLOCKS_BEHIND:
        text = (
            f"HighSyncBlockDiff {{ sync_difference: {behind}, "
            f"max_sync_difference: {MAX_BLOCKS_BEHIND} }}"
        )
    return {"status": text}


def by_key(indexer: Indexer, public_key: PublicKey, every_kind: bool) -> dict[str, Any]:  # noqa: FBT001 - a part of the path
    """List the accounts of a public key."""
    account_ids = indexer.keys.accounts(public_key, every_kind=every_kind)
    return {"account_ids": account_ids, "public_key": str(public_key)}


def staking(indexer: Indexer, account_id: str) -> dict[str, Any]:
    """List the pools that an account ever delegated to."""
    return {"account_id": account_id, "pools": _pools(indexer, account_id)}


def ft(indexer: Indexer, account_id: str) -> dict[str, Any]:
    """List the fungible tokens that an account ever held, with their balances."""
    return {"account_id": account_id, "tokens": _tokens(indexer, account_id)}


def nft(indexer: Indexer, account_id: str) -> dict[str, Any]:
    """List the NFT collections that an account ever held tokens of."""
    return {"account_id": account_id, "tokens": _collections(indexer, account_id)}


def full(indexer: Indexer, account_id: str) -> dict[str, Any]:
    """List an account's pools, tokens and collections, with its own balance."""
    return {
        "account_id": account_id,
        "nfts": _collections(indexer, account_id),
        "pools": _pools(indexer, account_id),
        "state": _state(indexer, account_id),
        "tokens": _tokens(indexer, account_id),
    }


def top(indexer: Indexer, token_id: str) -> dict[str, Any]:
    """List the largest holders of a fungible token."""
    accounts = [
        {"account_id": account_id, "balance": balance}
        for account_id, balance in indexer.holders(token_id)[:MAX_HOLDERS]
    ]
    return {"token_id": token_id, "accounts": accounts}


def staking_v0(indexer: Indexer, account_id: str) -> dict[str, Any]:
    """List the ids of the pools that an account ever delegated to."""
    return {"account_id": account_id, "pools": _contract_ids(indexer.pools, account_id)}


def ft_v0(indexer: Indexer, account_id: str) -> dict[str, Any]:
    """List the contract ids of the fungible tokens that an account ever held."""
    return {"account_id": account_id, "contract_ids": _contract_ids(indexer.tokens, account_id)}


def nft_v0(indexer: Indexer, account_id: str) -> dict[str, Any]:
    """List the contract ids of the NFT collections that an account ever held tokens of."""
    contract_ids = _contract_ids(indexer.collections, account_id)
    return {"account_id": account_id, "contract_ids": contract_ids}


_PAGES: dict[str, Callable[[Indexer], dict[str, Any]]] = {"status": status, "health": health}
_ACCOUNT_PAGES: dict[tuple[str, str], Callable[[Indexer, str], dict[str, Any]]] = {
    ("v0", "staking"): staking_v0,
    ("v0", "ft"): ft_v0,
    ("v0", "nft"): nft_v0,
    ("v1", "staking"): staking,
    ("v1", "ft"): ft,
    ("v1", "nft"): nft,
    ("v1", "full"): full,
}


# Parts of responses ------------------------------------------------------------------------


def _contract_ids(pairs: ContractPairs, account_id: str) -> list[str]:
    """List the ids of an account's contracts."""
    return [contract_id for contract_id, _ in pairs.contracts(account_id)]


def _pools(indexer: Indexer, account_id: str) -> list[dict[str, Any]]:
    """List an account's pools."""
    return [
        {"last_update_block_height": heights.last, "pool_id": pool_id}
        for pool_id, heights in indexer.pools.contracts(account_id)
    ]


def _collections(indexer: Indexer, account_id: str) -> list[dict[str, Any]]:
    """List an account's NFT collections."""
    return [
        {"contract_id": contract_id, "last_update_block_height": heights.last}
        for contract_id, heights in indexer.collections.contracts(account_id)
    ]


def _tokens(indexer: Indexer, account_id: str) -> list[dict[str, Any]]:
    """List an account's fungible tokens."""
    return [
        {
            "balance": token.balance,
            "contract_id": token.contract_id,
            "last_update_block_height": token.last,
        }
        for token in indexer.tokens_of(account_id)
    ]


def _state(indexer: Indexer, account_id: str) -> dict[str, Any] | None:
    """Return an account's balances and storage; None if it does not exist."""
    account = indexer.account(account_id)
    if account is None:
        return None
    return {
        "balance": str(account.amount),
        "locked": str(account.locked),
        "storage_bytes": account.storage_usage,
    }
