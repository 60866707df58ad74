"""The key-value data of the embedded ledger: a path and a body in, a result out."""

# Source: fastnear/kv-fastdata-server, src/main.rs and src/scylladb.rs.

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
from msgspec import Raw, Struct, structs

from ledgerkit import json_decoding
from ledgerkit.localnet.http_messages import encode_json, json_response
from ledgerkit.localnet.rpc_json import base58
from ledgerkit.localnet.services import requests
from ledgerkit.localnet.services.key_value_index import KeyValueIndex, KeyValueRow
from ledgerkit.localnet.services.requests import RefusedError

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World

_Object = dict[str, Any]

_DEFAULT_LIMIT = 50
_MAX_LIMIT = 200
_MAX_KEYS = 100
_KEY_PARTS = 3  # a key of /v0/multi: contract, writer, key
_INVALID_TOKEN = "Invalid page_token"  # noqa: S105 - a text, no secret

# The members of a page token, which tables are sorted by.
_FIELDS: dict[str, Callable[[KeyValueRow], str | int]] = {
    "k": attrgetter("key"),
    "b": attrgetter("block.height"),
    "o": attrgetter("order_id"),
    "p": attrgetter("receipt.predecessor_id"),
    "a": attrgetter("receipt.receiver_id"),
}


class _PageBody(Struct, kw_only=True):
    limit: int | None = None
    page_token: str | None = None
    include_metadata: bool = False
    asc: bool = False


class Body(_PageBody, kw_only=True):
    """The body of a query."""

    key: str | None = None
    key_prefix: str | None = None


class KeyBody(_PageBody, kw_only=True):
    """The body of /v0/history, for every writer of a key."""

    key: str


class MultiBody(Struct):
    """The body of /v0/multi."""

    keys: list[str]
    include_metadata: bool = False


def respond(world: World, method: str, path: str, body: bytes) -> _Object | None:
    """Answer a request; None for an unknown path."""
    name, *ids = [unquote(part) for part in path.removeprefix("/v0/").split("/")]
    ids[2:] = ["/".join(ids[2:])] if ids[2:] else []  # a key may have slashes
    if not path.startswith("/v0/") or not all(ids[:2]):
        return None
    rows = KeyValueIndex.of(world).rows
    if method == "POST":
        return _query(rows, name, ids, body)
    if method == "GET" and name in ("history", "latest") and len(ids) == _KEY_PARTS:
        rows = _filter(rows, Body(key=ids[2]), ids[0], ids[1])
        if name == "latest":
            return {"entries": [_entry(row, metadata=False) for row in _latest(rows)]}
        return {"entries": _page(rows, Body(), "bo")["entries"]}  # there is no further page
    return None


def _query(rows: list[KeyValueRow], name: str, ids: list[str], body: bytes) -> _Object | None:
    match name, ids:
        case "multi", []:
            return _multi(rows, requests.decode_body(body, MultiBody))
        case "history", []:
            key_args = requests.decode_body(body, KeyBody)
            return _page(_filter(rows, Body(key=key_args.key)), key_args, "bopa")
        case "all", [writer_id]:
            args = requests.decode_body(body, Body)
            return _latest_page(_filter(rows, Body(), writer_id=writer_id), args, "ak")
        case "history" | "latest", [account_id]:
            args = _decode(body)
            rows = _filter(rows, args, account_id)
            return _latest_page(rows, args, "kp") if name == "latest" else _page(rows, args, "kbop")
        case "history" | "latest", [account_id, writer_id]:
            args = _decode(body)
            rows = _filter(rows, args, account_id, writer_id)
            token = "kbo" if args.key is None else "bo"
            last = name == "latest"
            return _latest_page(rows, args, "k") if last else _page(rows, args, "kbo", token)
    return None


def _refuse(text: str) -> RefusedError:
    return RefusedError(json_response({"error": text}, 400))


def _multi(rows: list[KeyValueRow], args: MultiBody) -> _Object:
    """List the last values of keys, in their order; null for a key that was not written."""
    if len(args.keys) > _MAX_KEYS:
        raise _refuse(f"Maximum {_MAX_KEYS} keys per request")
    split = [text.split("/", _KEY_PARTS - 1) for text in args.keys]
    for text, parts in zip(args.keys, split, strict=True):
        if len(parts) < _KEY_PARTS or not all(parts):
            quoted = msgspec.json.encode(text).decode()
            expected = "current_account_id/predecessor_id/key"
            raise _refuse(f"Invalid key format: {quoted}. Expected {expected}")
    entries = []
    for account_id, writer_id, key in split:
        latest = _latest(_filter(rows, Body(key=key), account_id, writer_id))
        entries.append(_entry(latest[0], metadata=args.include_metadata) if latest else None)
    return {"entries": entries}


# Rows and pages ----------------------------------------------------------------------------


def _decode(body: bytes) -> Body:
    args = requests.decode_body(body, Body)
    if args.key is not None and args.key_prefix is not None:
        raise _refuse("key and key_prefix are mutually exclusive")
    return args


def _filter(
    rows: list[KeyValueRow],
    args: Body,
    account_id: str | None = None,
    writer_id: str | None = None,
) -> list[KeyValueRow]:
    return [
        row
        for row in rows
        if account_id in (None, row.receipt.receiver_id)
        and writer_id in (None, row.receipt.predecessor_id)
        and args.key in (None, row.key)
        and (args.key_prefix is None or _has_prefix(row.key, args.key_prefix))
    ]


def _has_prefix(key: str, prefix: str) -> bool:
    """Return True if a key is in the range of a prefix; an empty prefix ends at byte 1."""
    start = prefix.encode()
    stop = start[:-1] + bytes([start[-1] + 1]) if start else b"\x01"
    return start <= key.encode() < stop


def _latest(rows: Iterable[KeyValueRow]) -> list[KeyValueRow]:
    # Rows are in the order in which they were written.
    latest = {(row.receipt.predecessor_id, row.receipt.receiver_id, row.key): row for row in rows}
    return list(latest.values())


def _latest_page(rows: Iterable[KeyValueRow], args: Body, members: str) -> _Object:
    """Return a page of last values, whose tables have an ascending order only."""
    return _page(_latest(rows), structs.replace(args, asc=True), members)


def _page(
    rows: Iterable[KeyValueRow], args: Body | KeyBody, members: str, token_members: str = ""
) -> _Object:
    """Sort rows by the fields of a token's members; return the page after the token."""
    # A key in the body replaces the key of the token, which is not read then.
    after = _parse_token(args, token_members or members)
    limit = requests.page_length(args.limit, _MAX_LIMIT, _DEFAULT_LIMIT)
    sort_key = _sort_key(members)
    ordered = sorted(rows, key=sort_key, reverse=not args.asc)
    if after is not None:
        start = tuple(after[member] for member in members)
        ordered = [
            row for row in ordered if (sort_key(row) > start if args.asc else sort_key(row) < start)
        ]
    page = ordered[:limit]
    response: _Object = {"entries": [_entry(row, metadata=args.include_metadata) for row in page]}
    if len(page) == limit:
        fields = {member: _FIELDS[member](page[-1]) for member in sorted(members)}
        token = urlsafe_b64encode(encode_json(fields))
        response["page_token"] = token.rstrip(b"=").decode()
    return response


def _sort_key(members: str) -> Callable[[KeyValueRow], tuple[Any, ...]]:
    return lambda row: tuple(_FIELDS[member](row) for member in members)


def _parse_token(args: Body | KeyBody, members: str) -> _Object | None:
    """Decode a page token; a key in the body replaces a missing one."""
    if args.page_token is None:
        return None
    try:
        padded = args.page_token + "=" * (-len(args.page_token) % 4)
        document = json_decoding.decode(b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, msgspec.DecodeError):
        document = None
    if not isinstance(document, dict):
        raise _refuse(_INVALID_TOKEN)
    for member in members:
        if type(document.get(member)) is not (int if member in "bo" else str):
            raise _refuse(_INVALID_TOKEN)
    return {"k": args.key} | {member: document[member] for member in members}


def _entry(row: KeyValueRow, *, metadata: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    if metadata:
        entry = {
            "receipt_id": base58(row.receipt.receipt_id),
            "action_index": row.action_index,
            "tx_hash": base58(row.tx_hash),
            "signer_id": row.receipt.signer_id,
        }
    return entry | {
        "predecessor_id": row.receipt.predecessor_id,
        "current_account_id": row.receipt.receiver_id,
        "block_height": row.block.height,
        "block_timestamp": row.block.timestamp_ns,
        "key": row.key,
        "value": Raw(row.value),
    }
