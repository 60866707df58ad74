"""The kinds of saved documents, recognized by their members, and the views that read them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ledgerkit.api import calls
from ledgerkit.api.models.chain import MALFORMED

_FT, _NFT, _STAKING, _FULL = (
    f"GET /v1/account/{{account_id}}/{name}" for name in ("ft", "nft", "staking", "full")
)
_TRACE_VIEWS = ("receipts", "edges", "events")


class Kind(NamedTuple):
    """A kind of document: what it is in a few words, and the views that it can be read as."""

    name: str
    views: tuple[str, ...] = ()


_NULL = Kind("null, which the block service sends for a height without a block")
WHOLE_BLOCK = Kind(
    "a whole block (block service, NEAR Lake)",
    ("blocks", "chunks", "transactions", "receipts", "events"),
)
SHARD = Kind(
    "one shard of a block (block service, NEAR Lake)",
    ("chunks", "transactions", "receipts", "events"),
)
_CHUNK = Kind("a chunk", ("chunks", "transactions"))
BLOCK = Kind("a block", ("blocks", "chunks"))
_TRANSACTION = Kind("the result of a transaction", _TRACE_VIEWS)

# The first whose members are all there. Members that other kinds have too come with others.
_KINDS: tuple[tuple[set[str], Kind], ...] = (
    ({"block", "shards"}, WHOLE_BLOCK),
    ({"shard_id", "receipt_execution_outcomes"}, SHARD),
    ({"header", "transactions", "receipts"}, _CHUNK),
    ({"header", "author"}, BLOCK),
    ({"transaction_outcome"}, _TRANSACTION),
    ({"receipts_outcome"}, _TRANSACTION),
    ({"final_execution_status"}, _TRANSACTION),
    (
        {"execution_outcome", "transaction"},
        Kind("a transaction of the Transactions API", _TRACE_VIEWS),
    ),
    ({"transactions"}, Kind("a response of the Transactions API", _TRACE_VIEWS)),
    ({"contract_ids"}, Kind("version 0 of the REST API, which has no balances: request version 1")),
    ({"account_id", "nfts"}, Kind(_FULL, ("accounts", "ft", "nft", "staking"))),
    ({"account_id", "state"}, Kind(_FULL, ("accounts", "ft", "nft", "staking"))),
    ({"pools", "tokens"}, Kind(_FULL, ("accounts", "ft", "nft", "staking"))),
    ({"nfts"}, Kind(_FULL, ("accounts", "ft", "nft", "staking"))),
    ({"pools"}, Kind(_STAKING, ("staking",))),
    ({"account_ids"}, Kind("GET /v1/public_key/{public_key}", ("accounts_of",))),
    ({"token_id", "accounts"}, Kind("GET /v1/ft/{token_id}/top", ("top_holders",))),
    ({"version", "sync_block_height"}, Kind("GET /status", ("indexer_status",))),
    ({"sync_info", "chain_id"}, Kind("status", ("status",))),
    ({"current_validators"}, Kind("validators", ("validators",))),
    ({"keys", "block_hash"}, Kind("query view_access_key_list", ("keys",))),
    ({"values", "block_hash"}, Kind("query view_state", ("state",))),
    ({"changes", "block_hash"}, Kind("EXPERIMENTAL_changes", ("changes",))),
    ({"gas_price"}, Kind("gas_price", ("gas_price",))),
    ({"amount", "code_hash"}, Kind("query view_account")),
    ({"nonce", "permission"}, Kind("query view_access_key")),
    ({"result", "logs"}, Kind("query call_function")),
    ({"receipt", "receipt_id"}, Kind("EXPERIMENTAL_receipt")),
)


class _Entry(Struct, gc=False):
    """An entry of `tokens`: only fungible tokens have a balance."""

    balance: Raw | UnsetType = UNSET


class _Tokens(Struct, gc=False):
    """A document that lists tokens."""

    tokens: list[_Entry] | None = None


def recognize(body: bytes) -> Kind | None:
    """Return the kind of a document; None if it is not known, or the document is an error."""
    if body.strip() == b"null":
        return _NULL
    members = _members(body)
    if members is None:
        return None
    if {"jsonrpc", "id"} & members.keys() and "result" in members:
        members = _members(bytes(members["result"]))
    if members is None or "error" in members:
        return None
    if "tokens" in members and not {"pools", "nfts", "state"} & members.keys():
        return _kind_of_tokens(body)
    return next((kind for marks, kind in _KINDS if marks <= members.keys()), None)


def _members(body: bytes) -> dict[str, Raw] | None:
    """Return the members of a JSON object; None if the text is anything else."""
    try:
        members: dict[str, Raw] = calls.decoder(dict[str, Raw]).decode(body)
    except MALFORMED:
        return None
    return members


def _kind_of_tokens(body: bytes) -> Kind | None:
    """Distinguish lists of fungible tokens from lists of NFTs; an empty one may be either."""
    try:
        entries = msgspec.json.decode(body, type=_Tokens).tokens
    except MALFORMED:
        return None
    if not entries:
        return Kind(f"{_FT} or {_NFT}", ("ft", "nft"))
    has_balance = any(entry.balance is not UNSET for entry in entries)
    return Kind(_FT, ("ft",)) if has_balance else Kind(_NFT, ("nft",))
