"""The kinds of saved documents, recognized by their members, and the views that read them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ledgerkit import json_decoding
from ledgerkit.frames.collected import DOCUMENT_VIEWS


class Kind(NamedTuple):
    """A kind of document: its name, the views that read it, and advice if there is none."""

    name: str
    views: tuple[str, ...] = ()
    advice: str = "Save the response of another request."


_TRACE_VIEWS = ("receipts", "edges", "events")
WHOLE_BLOCK = Kind(
    "a whole block of the block service or NEAR Lake",
    ("blocks", "chunks", "transactions", "receipts", "events", *DOCUMENT_VIEWS),
)
SHARD = Kind(
    "one shard of a block of the block service or NEAR Lake",
    ("chunks", "transactions", "receipts", "events"),
)
BLOCK = Kind("a block", ("blocks", "chunks"))
_TRANSACTION = Kind("the result of a transaction", _TRACE_VIEWS)
_TRANSACTIONS = Kind("a response of the Transactions API", _TRACE_VIEWS)
FULL = Kind("a response of /v1/account/…/full", ("accounts", "ft", "nft", "staking"))
_TOKENS = Kind("a list of tokens", ("ft", "nft"))
_VERSION_0 = Kind(
    "a response of version 0 of the REST API, which lists ids only",
    advice="Save the response of version 1, whose path begins with /v1.",
)
_NULL = Kind(
    "null, which the block service sends for a height without a block",
    advice="Read the next block: its prev_height shows whether this height was skipped.",
)

# A document is of the first kind whose members it all has.
_KINDS: tuple[tuple[set[str], Kind], ...] = (
    ({"block", "shards"}, WHOLE_BLOCK),
    ({"shard_id", "receipt_execution_outcomes"}, SHARD),
    ({"header", "transactions", "receipts"}, Kind("a chunk", ("chunks", "transactions"))),
    ({"header", "author"}, BLOCK),
    ({"transaction_outcome"}, _TRANSACTION),
    ({"receipts_outcome"}, _TRANSACTION),
    ({"final_execution_status"}, _TRANSACTION),
    ({"transaction", "execution_outcome"}, _TRANSACTIONS),
    ({"account_txs"}, Kind("a response of /v0/account", ("account_transactions",))),
    ({"transactions"}, _TRANSACTIONS),
    ({"transfers"}, Kind("a response of /v0/transfers", ("transfers_of",))),
    ({"entries"}, Kind("a response of the key-value data", ("key_values",))),
    ({"contract_ids"}, _VERSION_0),
    ({"nfts"}, FULL),
    ({"account_id", "state"}, FULL),
    ({"pools", "tokens"}, FULL),
    ({"pools"}, Kind("a response of /v1/account/…/staking", ("staking",))),
    ({"account_ids"}, Kind("a response of /v1/public_key/…", ("accounts_of",))),
    ({"token_id", "accounts"}, Kind("a response of /v1/ft/…/top", ("top_holders",))),
    ({"version", "sync_block_height"}, Kind("a response of /status")),
    ({"sync_info", "chain_id"}, Kind("a response of status", ("status",))),
    ({"current_validators"}, Kind("a response of validators", ("validators",))),
    ({"keys", "block_hash"}, Kind("a response of view_access_key_list", ("keys",))),
    ({"values", "block_hash"}, Kind("a response of view_state", ("state",))),
    ({"changes", "block_hash"}, Kind("a response of EXPERIMENTAL_changes", ("changes",))),
    ({"gas_price"}, Kind("a response of gas_price", ("gas_price",))),
    ({"amount", "code_hash"}, Kind("a response of view_account")),
    ({"nonce", "permission"}, Kind("a response of view_access_key")),
    ({"result", "logs"}, Kind("a response of call_function")),
    ({"receipt_id", "receipt"}, Kind("a response of EXPERIMENTAL_receipt")),
)


class _Entry(Struct, gc=False):
    """An entry of `tokens`: only fungible tokens have a balance."""

    balance: Raw | UnsetType = UNSET


class _Tokens(Struct, gc=False):
    tokens: list[_Entry] | None = None


def recognize(body: bytes) -> Kind | None:
    """Return the kind of a document; None if it is not known, or the document is an error."""
    if body.strip() == b"null":
        return _NULL
    members = _members(body)
    if members is not None and {"jsonrpc", "id"} & members.keys() and "result" in members:
        members = _members(bytes(members["result"]))
    if members is None or "error" in members:
        return None
    if members.keys() == {"status"}:
        return Kind("a response of /health")
    if "tokens" in members and not {"pools", "nfts", "state"} & members.keys():
        return _TOKENS
    kind = next((kind for marks, kind in _KINDS if marks <= members.keys()), None)
    is_version_0 = bytes(members.get("pools", b""))[1:].lstrip().startswith(b'"')
    return _VERSION_0 if is_version_0 else kind


def _members(body: bytes) -> dict[str, Raw] | None:
    """Return the members of a JSON object; None if the text is anything else."""
    try:
        members: dict[str, Raw] = json_decoding.decode(body, dict[str, Raw])
    except msgspec.DecodeError:
        return None
    return members


def refine(kind: Kind | None, body: bytes) -> Kind | None:
    """Distinguish lists of fungible tokens from lists of NFTs; an empty one may be either."""
    if kind is not _TOKENS:
        return kind
    try:
        entries = json_decoding.decode(body, _Tokens).tokens
    except msgspec.DecodeError:
        return kind
    if not entries:
        return kind
    view = "ft" if any(entry.balance is not UNSET for entry in entries) else "nft"
    return Kind(f"a response of /v1/account/…/{view}", (view,))
