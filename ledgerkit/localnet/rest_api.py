"""The REST API: paths in, the index's answers out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.http_messages import Reply, json_reply
from ledgerkit.localnet.indexer import Indexer
from ledgerkit.protocol import AccountId, PublicKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.localnet.indexer import Pairs
    from ledgerkit.localnet.world import World

VERSION = "0.10.0"  # of the API that is answered here
MAX_HOLDERS = 100
MAX_LATENCY_S = 10.0
MAX_BLOCKS_BEHIND = 3
SECOND_NS = 10**9

_indexers: WeakKeyDictionary[World, Indexer] = WeakKeyDictionary()


def respond(world: World, path: str) -> Reply:
    """
    Answer a GET.

    Parameters
    ----------
    world
        Of which the answer tells.
    path
        Still percent-encoded, such as ``/v1/account/alice.near/ft``.

    Returns
    -------
    reply
        200 with JSON, 400 with a JSON text for a malformed id or key, 404 without a body.
    """
    try:
        found = _route([unquote(part, errors="strict") for part in path.split("/")[1:]])
    except (InvalidRequestError, UnicodeDecodeError):
        return json_reply("Invalid argument", 400)
    if found is None:
        return Reply(404, b"")
    view, args = found
    return json_reply(view(indexer_of(world), *args))


def indexer_of(world: World) -> Indexer:
    """Give the index of a world, caught up with it; it is made when first asked for."""
    found = _indexers.get(world)
    if found is None:
        found = _indexers[world] = Indexer(world)
    found.catch_up()
    return found


def _route(parts: list[str]) -> tuple[Callable[..., Any], list[object]] | None:
    """Find what answers a path, and its arguments; None where there is no such path."""
    match parts:
        case ["status" | "health" as name]:
            return _PAGES[name], []
        case ["v0" | "v1", "public_key", key, *rest] if key and rest in ([], ["all"]):
            return by_key, [PublicKey.from_text(key), bool(rest)]
        case ["v0" | "v1" as version, "account", account_id, name] if account_id:
            view = _VIEWS.get((version, name))
            return None if view is None else (view, [str(AccountId(account_id))])
        case ["v1", "ft", token_id, "top"] if token_id:
            return top, [str(AccountId(token_id))]
    return None


# One function for each path ----------------------------------------------------------------


def status(indexer: Indexer) -> dict[str, Any]:
    """Tell how far the index is."""
    return {
        "sync_balance_block_height": indexer.balance_block.height,
        "sync_block_height": indexer.block.height,
        "sync_block_timestamp_nanosec": str(indexer.block.timestamp_ns),
        "sync_latency_sec": indexer.latency_ns() / SECOND_NS,
        "version": VERSION,
    }


def health(indexer: Indexer) -> dict[str, str]:
    """Tell whether the index is near the head of the chain, and its balances near it."""
    latency = indexer.latency_ns() / SECOND_NS
    behind = indexer.block.height - indexer.balance_block.height
    told = "ok"
    if latency > MAX_LATENCY_S:
        told = f"HighSyncLatency {{ latency: {latency}, max_latency: {MAX_LATENCY_S} }}"
    elif behind > MAX_BLOCKS_BEHIND:
        told = (
            f"HighSyncBlockDiff {{ sync_difference: {behind}, "
            f"max_sync_difference: {MAX_BLOCKS_BEHIND} }}"
        )
    return {"status": told}


def by_key(indexer: Indexer, public_key: PublicKey, every_kind: bool) -> dict[str, Any]:  # noqa: FBT001 - a part of the path
    """Tell the accounts of a key."""
    account_ids = indexer.keys.accounts(public_key, every_kind=every_kind)
    return {"account_ids": account_ids, "public_key": str(public_key)}


def staking(indexer: Indexer, account_id: str) -> dict[str, Any]:
    """Tell the pools an account ever delegated to."""
    return {"account_id": account_id, "pools": _pools(indexer, account_id)}


def ft(indexer: Indexer, account_id: str) -> dict[str, Any]:
    """Tell the tokens an account ever held, and the balances."""
    return {"account_id": account_id, "tokens": _tokens(indexer, account_id)}


def nft(indexer: Indexer, account_id: str) -> dict[str, Any]:
    """Tell the collections an account ever held from."""
    return {"account_id": account_id, "tokens": _collections(indexer, account_id)}


def full(indexer: Indexer, account_id: str) -> dict[str, Any]:
    """Tell all of it, and what the account itself has."""
    return {
        "account_id": account_id,
        "nfts": _collections(indexer, account_id),
        "pools": _pools(indexer, account_id),
        "state": _state(indexer, account_id),
        "tokens": _tokens(indexer, account_id),
    }


def top(indexer: Indexer, token_id: str) -> dict[str, Any]:
    """Tell the largest holders of a token."""
    accounts = [
        {"account_id": account_id, "balance": balance}
        for account_id, balance in indexer.holders(token_id)[:MAX_HOLDERS]
    ]
    return {"token_id": token_id, "accounts": accounts}


def staking_v0(indexer: Indexer, account_id: str) -> dict[str, Any]:
    """Tell the pools an account ever delegated to, by their ids alone."""
    return {"account_id": account_id, "pools": _ids(indexer.pools, account_id)}


def ft_v0(indexer: Indexer, account_id: str) -> dict[str, Any]:
    """Tell the tokens an account ever held, by their contracts' ids alone."""
    return {"account_id": account_id, "contract_ids": _ids(indexer.tokens, account_id)}


def nft_v0(indexer: Indexer, account_id: str) -> dict[str, Any]:
    """Tell the collections an account ever held from, by their contracts' ids alone."""
    return {"account_id": account_id, "contract_ids": _ids(indexer.collections, account_id)}


_PAGES: dict[str, Callable[[Indexer], dict[str, Any]]] = {"status": status, "health": health}
_VIEWS: dict[tuple[str, str], Callable[[Indexer, str], dict[str, Any]]] = {
    ("v0", "staking"): staking_v0,
    ("v0", "ft"): ft_v0,
    ("v0", "nft"): nft_v0,
    ("v1", "staking"): staking,
    ("v1", "ft"): ft,
    ("v1", "nft"): nft,
    ("v1", "full"): full,
}


# Their parts -------------------------------------------------------------------------------


def _ids(pairs: Pairs, account_id: str) -> list[str]:
    """List an account's contracts."""
    return [contract_id for contract_id, _ in pairs.contracts(account_id)]


def _pools(indexer: Indexer, account_id: str) -> list[dict[str, Any]]:
    """List an account's pools."""
    return [
        {"last_update_block_height": touch.last, "pool_id": pool_id}
        for pool_id, touch in indexer.pools.contracts(account_id)
    ]


def _collections(indexer: Indexer, account_id: str) -> list[dict[str, Any]]:
    """List an account's collections."""
    return [
        {"contract_id": contract_id, "last_update_block_height": touch.last}
        for contract_id, touch in indexer.collections.contracts(account_id)
    ]


def _tokens(indexer: Indexer, account_id: str) -> list[dict[str, Any]]:
    """List an account's tokens."""
    return [
        {
            "balance": token.balance,
            "contract_id": token.contract_id,
            "last_update_block_height": token.last,
        }
        for token in indexer.tokens_of(account_id)
    ]


def _state(indexer: Indexer, account_id: str) -> dict[str, Any] | None:
    """Tell what an account has; None where there is no such account."""
    account = indexer.account(account_id)
    if account is None:
        return None
    return {
        "balance": str(account.amount),
        "locked": str(account.locked),
        "storage_bytes": account.storage_usage,
    }
