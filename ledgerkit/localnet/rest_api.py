"""The REST API of the embedded ledger: a path in, a response from the index out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.http_messages import JSON_TYPE, HttpResponse, json_response
from ledgerkit.localnet.indexer import ContractPairs, Indexer
from ledgerkit.localnet.settings import SECOND_NS
from ledgerkit.protocol import AccountId, PublicKey

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World

Object = dict[str, Any]

VERSION = "0.10.0"  # the version of fastnear-api-server-rs, whose API this is
MAX_HOLDERS = 100
MAX_LATENCY_S = 10.0
MAX_BLOCKS_BEHIND = 3


def respond(world: World, path: str) -> HttpResponse:
    """Answer a GET request to a percent-encoded path."""
    try:
        body = _read_path(world, [unquote(part, errors="strict") for part in path.split("/")[1:]])
    except (InvalidRequestError, UnicodeDecodeError):
        return json_response("Invalid argument", 400)
    return HttpResponse(404, (JSON_TYPE,)) if body is None else json_response(body)


def _read_path(world: World, parts: list[str]) -> Object | None:
    match parts:
        case ["status"]:
            return _status(Indexer.of(world))
        case ["health"]:
            return {"status": _health_text(Indexer.of(world))}
        case ["v0" | "v1", "public_key", text, *suffix] if text and suffix in ([], ["all"]):
            key = PublicKey.from_text(text)
            account_ids = Indexer.of(world).keys.accounts(key, every_kind=bool(suffix))
            return {"account_ids": account_ids, "public_key": str(key)}
        case ["v0" | "v1" as version, "account", text, name] if text and (version, name) in _LISTS:
            account_id, indexer = str(AccountId(text)), Indexer.of(world)
            lists = _LISTS[version, name]
            return {"account_id": account_id} | {
                member: read(indexer, account_id) for member, read in lists.items()
            }
        case ["v1", "ft", text, "top"] if text:
            token_id = str(AccountId(text))
            holders = Indexer.of(world).holders(token_id)[:MAX_HOLDERS]
            accounts = [{"account_id": holder, "balance": balance} for holder, balance in holders]
            return {"token_id": token_id, "accounts": accounts}
    return None


def _status(indexer: Indexer) -> Object:
    return {
        "sync_balance_block_height": indexer.balance_block.height,
        "sync_block_height": indexer.block.height,
        "sync_block_timestamp_nanosec": str(indexer.block.timestamp_ns),
        "sync_latency_sec": indexer.latency_ns() / SECOND_NS,
        "version": VERSION,
    }


def _health_text(indexer: Indexer) -> str:
    """Return "ok", or the error of an index that is too far behind the chain."""
    latency = indexer.latency_ns() / SECOND_NS
    behind = indexer.block.height - indexer.balance_block.height
    if latency > MAX_LATENCY_S:
        return f"HighSyncLatency {{ latency: {latency}, max_latency: {MAX_LATENCY_S} }}"
    if behind > MAX_BLOCKS_BEHIND:
        limit = f"max_sync_difference: {MAX_BLOCKS_BEHIND}"
        return f"HighSyncBlockDiff {{ sync_difference: {behind}, {limit} }}"
    return "ok"


def _contract_ids(pairs: ContractPairs, account_id: str) -> list[str]:
    return [contract_id for contract_id, _ in pairs.contracts(account_id)]


def _pools(indexer: Indexer, account_id: str) -> list[Object]:
    return [
        {"last_update_block_height": heights.last, "pool_id": pool_id}
        for pool_id, heights in indexer.pools.contracts(account_id)
    ]


def _collections(indexer: Indexer, account_id: str) -> list[Object]:
    return [
        {"contract_id": contract_id, "last_update_block_height": heights.last}
        for contract_id, heights in indexer.collections.contracts(account_id)
    ]


def _tokens(indexer: Indexer, account_id: str) -> list[Object]:
    return [
        {"balance": balance, "contract_id": contract_id, "last_update_block_height": last}
        for contract_id, balance, last in indexer.tokens_of(account_id)
    ]


def _state(indexer: Indexer, account_id: str) -> Object | None:
    """Return an account's balances and storage; None if it does not exist."""
    account = indexer.account(account_id)
    if account is None:
        return None
    return {
        "balance": str(account.amount),
        "locked": str(account.locked),
        "storage_bytes": account.storage_usage,
    }


# The members of an account's responses besides its id, by version and last part of the path.
_LISTS: dict[tuple[str, str], dict[str, Callable[[Indexer, str], Any]]] = {
    ("v0", "staking"): {"pools": lambda index, name: _contract_ids(index.pools, name)},
    ("v0", "ft"): {"contract_ids": lambda index, name: _contract_ids(index.tokens, name)},
    ("v0", "nft"): {"contract_ids": lambda index, name: _contract_ids(index.collections, name)},
    ("v1", "staking"): {"pools": _pools},
    ("v1", "ft"): {"tokens": _tokens},
    ("v1", "nft"): {"tokens": _collections},
    ("v1", "full"): {"nfts": _collections, "pools": _pools, "state": _state, "tokens": _tokens},
}
