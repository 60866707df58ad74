"""The key-value data of the embedded ledger: a path and a body in, a result out."""

# Source: fastnear/kv-fastdata-server, src/main.rs and src/scylladb.rs.

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
from msgspec import Raw, Struct, structs

from ledgerkit import json_decoding
from ledgerkit.localnet.http_messages import json_response
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

# The members of a page token, and the row fields that tables are sorted by.
_FIELDS = {
    "k": "key",
    "b": "block_height",
    "o": "order_id",
    "p": "predecessor_id",
    "a": "current_account_id",
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
    index = KeyValueIndex.of(world)
    if method == "POST":
        return _query(index, name, ids, body)
    if method == "GET" and name in ("history", "latest") and len(ids) == _KEY_PARTS:
        rows = _filter(index.of_writer(ids[1], ids[0]), Body(key=ids[2]))
        if name == "latest":
            return {"entries": [_entry(row, metadata=False) for row in _latest(rows)]}
        return {"entries": _page(rows, Body(), "bo")["entries"]}  # there is no further page
    return None


def _query(index: KeyValueIndex, name: str, ids: list[str], body: bytes) -> _Object | None:
    match name, ids:
        case "multi", []:
            return _multi(index, requests.decode_body(body, MultiBody))
        case "history", []:
            args = requests.decode_body(body, KeyBody)
            return _page(index.by_key.get(args.key, ()), args, "bopa")
        case "all", [writer_id]:
            return _latest_page(index.of_writer(writer_id), requests.decode_body(body, Body), "ak")
        case "history" | "latest", [account_id, *writers] if len(ids) < _KEY_PARTS:
            return _read(index, name, account_id, writers, _decode(body))
    return None


def _refuse(text: str) -> RefusedError:
    return RefusedError(json_response({"error": text}, 400))


def _read(
    index: KeyValueIndex, name: str, account_id: str, writers: list[str], args: Body
) -> _Object:
    if not writers:
        rows = _filter(index.by_account.get(account_id, ()), args)
        return _latest_page(rows, args, "kp") if name == "latest" else _page(rows, args, "kbop")
    rows = _filter(index.of_writer(writers[0], account_id), args)
    if name == "latest":
        return _latest_page(rows, args, "k")
    return _page(rows, args, "kbo", "bo" if args.key is not None else "kbo")


def _multi(index: KeyValueIndex, args: MultiBody) -> _Object:
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
        latest = _latest(_filter(index.of_writer(writer_id, account_id), Body(key=key)))
        entries.append(_entry(latest[0], metadata=args.include_metadata) if latest else None)
    return {"entries": entries}


# Rows and pages ----------------------------------------------------------------------------


def _decode(body: bytes) -> Body:
    args = requests.decode_body(body, Body)
    if args.key is not None and args.key_prefix is not None:
        raise _refuse("key and key_prefix are mutually exclusive")
    return args


def _filter(rows: Iterable[KeyValueRow], args: Body) -> list[KeyValueRow]:
    return [
        row
        for row in rows
        if args.key in (None, row.key)
        and (args.key_prefix is None or _has_prefix(row.key, args.key_prefix))
    ]


def _has_prefix(key: str, prefix: str) -> bool:
    """Return True if a key is in the range of a prefix; an empty prefix ends at byte 1."""
    start = prefix.encode()
    stop = start[:-1] + bytes([start[-1] + 1]) if start else b"\x01"
    return start <= key.encode() < stop


def _latest(rows: Iterable[KeyValueRow]) -> list[KeyValueRow]:
    # Rows are in the order in which they were written.
    latest = {(row.predecessor_id, row.current_account_id, row.key): row for row in rows}
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
        fields = {member: getattr(page[-1], _FIELDS[member]) for member in sorted(members)}
        token = urlsafe_b64encode(msgspec.json.encode(fields))
        response["page_token"] = token.rstrip(b"=").decode()
    return response


def _sort_key(members: str) -> Callable[[KeyValueRow], tuple[Any, ...]]:
    names = [_FIELDS[member] for member in members]
    return lambda row: tuple(getattr(row, name) for name in names)


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
            "receipt_id": base58(row.receipt_id),
            "action_index": row.action_index,
            "tx_hash": base58(row.tx_hash),
            "signer_id": row.signer_id,
        }
    return entry | {
        "predecessor_id": row.predecessor_id,
        "current_account_id": row.current_account_id,
        "block_height": row.block_height,
        "block_timestamp": row.block_timestamp,
        "key": row.key,
        "value": Raw(row.value),
    }
