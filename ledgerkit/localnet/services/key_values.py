"""The key-value data of the embedded ledger: a path and a body in, a response out."""

# Source: fastnear/kv-fastdata-server, src/main.rs and src/scylladb.rs.

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
from msgspec import Raw, Struct, structs

from ledgerkit import json_decoding
from ledgerkit.localnet.http_messages import HttpResponse, json_response
from ledgerkit.localnet.rpc_json import base58
from ledgerkit.localnet.services import requests
from ledgerkit.localnet.services.key_value_index import indexed_values
from ledgerkit.localnet.services.requests import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ledgerkit.localnet.services.key_value_index import KeyValueRow
    from ledgerkit.localnet.world import World

_DEFAULT_LIMIT = 50
_MAX_LIMIT = 200
_MAX_KEYS = 100
_KEY_PARTS = 3  # of a key of /v0/multi: contract, writer, key
_INVALID_TOKEN = "Invalid page_token"  # noqa: S105 - a text, no secret

# The members of a page token and the fields of a row; a table is sorted by such fields.
_FIELDS = {
    "k": "key",
    "b": "block_height",
    "o": "order_id",
    "p": "predecessor_id",
    "a": "current_account_id",
}


class Body(Struct):
    """The body of a query."""

    key: str | None = None
    key_prefix: str | None = None
    limit: int | None = None
    page_token: str | None = None
    include_metadata: bool = False
    asc: bool = False


class MultiBody(Struct):
    """The body of /v0/multi."""

    keys: list[str]
    include_metadata: bool = False


class KeyBody(Struct):
    """The body of /v0/history, for every writer of a key."""

    key: str
    limit: int | None = None
    page_token: str | None = None
    include_metadata: bool = False
    asc: bool = False


def respond(world: World, method: str, path: str, query: str, body: bytes) -> HttpResponse:  # noqa: ARG001 - the signature of all services
    """Answer a request."""
    name, *ids = [unquote(part) for part in path.removeprefix("/v0/").split("/")]
    ids[2:] = ["/".join(ids[2:])] if ids[2:] else []  # a key may have slashes
    handler = _HANDLERS.get((method, name, len(ids)))
    if handler is None or not all(ids[:2]) or not path.startswith("/v0/"):
        return HttpResponse(404)
    try:
        return json_response(handler(world, ids, body))
    except RefusedError as refused:
        return refused.response


def _refuse(text: str) -> RefusedError:
    """Build the refusal of an argument."""
    return RefusedError(json_response({"error": text}, 400))


# One function for each path ----------------------------------------------------------------


def _history_of_path(world: World, ids: list[str], _body: bytes) -> dict[str, Any]:
    """List the newest values that a writer wrote under a key; there is no further page."""
    body = Body(key=ids[2])
    rows = _filter(indexed_values(world).by_writer.get(ids[1], ()), body, account_id=ids[0])
    return {"entries": _page(rows, body, "bo")["entries"]}


def _latest_of_path(world: World, ids: list[str], _body: bytes) -> dict[str, Any]:
    """List the last value that a writer wrote under a key."""
    body = Body(key=ids[2])
    rows = _filter(indexed_values(world).by_writer.get(ids[1], ()), body, account_id=ids[0])
    return {"entries": [_entry(row, metadata=False) for row in _latest(rows)]}


def _history_of_writer(world: World, ids: list[str], body: bytes) -> dict[str, Any]:
    """List the values that a writer wrote for a contract."""
    args = _decode(body)
    rows = _filter(indexed_values(world).by_writer.get(ids[1], ()), args, account_id=ids[0])
    return _page(rows, args, "kbo", "bo" if args.key is not None else "kbo")


def _latest_of_writer(world: World, ids: list[str], body: bytes) -> dict[str, Any]:
    """List the last values that a writer wrote for a contract."""
    args = _decode(body)
    rows = _filter(indexed_values(world).by_writer.get(ids[1], ()), args, account_id=ids[0])
    return _page(_latest(rows), _ascending(args), "k")


def _history_of_account(world: World, ids: list[str], body: bytes) -> dict[str, Any]:
    """List the values that were written for a contract."""
    args = _decode(body)
    return _page(_filter(indexed_values(world).by_account.get(ids[0], ()), args), args, "kbop")


def _latest_of_account(world: World, ids: list[str], body: bytes) -> dict[str, Any]:
    """List the last values that each writer wrote for a contract."""
    args = _decode(body)
    rows = _filter(indexed_values(world).by_account.get(ids[0], ()), args)
    return _page(_latest(rows), _ascending(args), "kp")


def _all(world: World, ids: list[str], body: bytes) -> dict[str, Any]:
    """List the last values that a writer wrote for all contracts."""
    args = requests.decode_body(body, Body)
    return _page(_latest(indexed_values(world).by_writer.get(ids[0], ())), _ascending(args), "ak")


def _history_of_key(world: World, _ids: list[str], body: bytes) -> dict[str, Any]:
    """List the values that anybody wrote under a key."""
    args = requests.decode_body(body, KeyBody)
    return _page(indexed_values(world).by_key.get(args.key, ()), args, "bopa")


def _multi(world: World, _ids: list[str], body: bytes) -> dict[str, Any]:
    """List the last values of several keys, in their order; null for one that was not written."""
    args = requests.decode_body(body, MultiBody)
    if len(args.keys) > _MAX_KEYS:
        raise _refuse(f"Maximum {_MAX_KEYS} keys per request")
    split = [text.split("/", _KEY_PARTS - 1) for text in args.keys]
    for text, parts in zip(args.keys, split, strict=True):
        if len(parts) < _KEY_PARTS or not all(parts):
            quoted = msgspec.json.encode(text).decode()
            expected = "current_account_id/predecessor_id/key"
            raise _refuse(f"Invalid key format: {quoted}. Expected {expected}")
    index, entries = indexed_values(world), []
    for account_id, writer_id, key in split:
        rows = _filter(index.by_writer.get(writer_id, ()), Body(key=key), account_id=account_id)
        latest = _latest(rows)
        entries.append(_entry(latest[0], metadata=args.include_metadata) if latest else None)
    return {"entries": entries}


_HANDLERS: dict[tuple[str, str, int], Callable[[World, list[str], bytes], dict[str, Any]]] = {
    ("GET", "history", 3): _history_of_path,
    ("GET", "latest", 3): _latest_of_path,
    ("POST", "history", 0): _history_of_key,
    ("POST", "history", 1): _history_of_account,
    ("POST", "history", 2): _history_of_writer,
    ("POST", "latest", 1): _latest_of_account,
    ("POST", "latest", 2): _latest_of_writer,
    ("POST", "all", 1): _all,
    ("POST", "multi", 0): _multi,
}

# Rows and pages ----------------------------------------------------------------------------


def _decode(body: bytes) -> Body:
    """Decode the body of a query with a key, the beginning of one, or neither."""
    args = requests.decode_body(body, Body)
    if args.key is not None and args.key_prefix is not None:
        raise _refuse("key and key_prefix are mutually exclusive")
    return args


def _ascending(args: Body) -> Body:
    """Return a query in the order of the tables of last values, which have one order only."""
    return structs.replace(args, asc=True)


def _filter(
    rows: Iterable[KeyValueRow], args: Body, *, account_id: str | None = None
) -> list[KeyValueRow]:
    """List the rows with the key, or its beginning, and the contract of a query."""
    return [
        row
        for row in rows
        if account_id in (None, row.current_account_id)
        and args.key in (None, row.key)
        and (args.key_prefix is None or _has_prefix(row.key, args.key_prefix))
    ]


def _has_prefix(key: str, prefix: str) -> bool:
    """Return True if a key is in the range of a prefix; that of an empty one ends at 1."""
    start = prefix.encode()
    stop = start[:-1] + bytes([start[-1] + 1]) if start else b"\x01"
    return start <= key.encode() < stop


def _latest(rows: Iterable[KeyValueRow]) -> list[KeyValueRow]:
    """List the last value of each writer, contract and key."""
    # Rows are in the order in which they were written.
    latest = {(row.predecessor_id, row.current_account_id, row.key): row for row in rows}
    return list(latest.values())


def _page(
    rows: Iterable[KeyValueRow], args: Body | KeyBody, members: str, token_members: str = ""
) -> dict[str, Any]:
    """Sort rows by the fields of a token's members, and return those after the page token."""
    # A key in the body replaces the one of the token, which is then not read.
    after = _parse_token(args, token_members or members)
    limit = max(1, min(_DEFAULT_LIMIT if args.limit is None else args.limit, _MAX_LIMIT))
    place = _sort_key(members)
    ordered = sorted(rows, key=place, reverse=not args.asc)
    if after is not None:
        start = tuple(after[member] for member in members)
        ordered = [
            row for row in ordered if (place(row) > start if args.asc else place(row) < start)
        ]
    page = ordered[:limit]
    response: dict[str, Any] = {
        "entries": [_entry(row, metadata=args.include_metadata) for row in page]
    }
    if len(page) == limit:
        response["page_token"] = _token(page[-1], members)
    return response


def _sort_key(members: str) -> Callable[[KeyValueRow], tuple[Any, ...]]:
    """Return a function of a row's fields, by the members of a token."""
    names = [_FIELDS[member] for member in members]
    return lambda row: tuple(getattr(row, name) for name in names)


def _token(row: KeyValueRow, members: str) -> str:
    """Encode the token of the page after a row."""
    document = {member: getattr(row, _FIELDS[member]) for member in sorted(members)}
    return urlsafe_b64encode(msgspec.json.encode(document)).rstrip(b"=").decode()


def _parse_token(args: Body | KeyBody, members: str) -> dict[str, Any] | None:
    """Decode a page token, with the key of the body if the token need not have it."""
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
    """Build an entry."""
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
