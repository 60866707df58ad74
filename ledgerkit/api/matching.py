"""
Matching responses to requests.

A host, a proxy or a connection that is out of step may send the response of another request. The
id of a JSON-RPC call is therefore unique and compared, and so is every member of a response that
repeats a part of its request: an account, a key, a hash, a height.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from ledgerkit import errors, json_decoding

if TYPE_CHECKING:
    from ledgerkit.errors import LedgerError

# The paths of members, separated by dots, and their values; "" is the response itself. A list has
# all allowed values.
Expected = Mapping[str, object]
_Members = dict[str, tuple[str, ...]]

# All calls have this id until they are sent, so that equal calls have equal bodies.
PLACEHOLDER = "ledgerkit"

_NO_ID = (None, b"null")
_ABOUT_HOST = (errors.RateLimitedError, errors.AuthError, errors.NodeError)

# The members of a result, or of an error's info, that repeat a parameter, by method and parameter.
# `block_id` is replaced by `block_hash` or `block_height`. `tx` is no query: its sender only
# selects the shard.
_QUERY_KINDS = (
    "call_function view_account view_code view_state view_access_key view_access_key_list "
    "view_gas_key_nonces"
).split()
_QUERY: _Members = {
    "account_id": ("account_id",),
    "public_key": ("public_key",),
    "code_hash": ("hash",),
    "block_hash": ("block_hash",),
    "block_height": ("block_height",),
}
_TRANSACTION: _Members = {"tx_hash": ("transaction.hash", "transaction_hash")}
_BLOCK_HASH: _Members = {"block_hash": ("block_hash",)}
_CHANGES: _Members = {**_BLOCK_HASH, "account_ids": ("changes.change.account_id",)}
_REPEATED: dict[str, _Members] = {
    "block": {"block_hash": ("header.hash",), "block_height": ("header.height",)},
    "chunk": {"chunk_id": ("header.chunk_hash", "chunk_hash")},
    "EXPERIMENTAL_receipt": {"receipt_id": ("receipt_id",)},
    **dict.fromkeys(("tx", "tx_status", "EXPERIMENTAL_tx_status"), _TRANSACTION),
    **dict.fromkeys(("changes", "EXPERIMENTAL_changes"), _CHANGES),
    **dict.fromkeys(("block_effects", "EXPERIMENTAL_changes_in_block"), _BLOCK_HASH),
    "query": _QUERY,
    **{f"EXPERIMENTAL_{kind}": _QUERY for kind in _QUERY_KINDS},
}

# The subjects of the REST API's paths, and the members that repeat them.
_SUBJECT = re.compile(r"/v\d/(account|public_key|ft)/([^/?]+)")
_SUBJECT_MEMBERS = {"account": "account_id", "public_key": "public_key", "ft": "token_id"}


# The id of a JSON-RPC call ----------------------------------------------------------------


def new_id() -> str:
    """Return an id that is unique among the calls of all processes."""
    return secrets.token_hex(12)


def replace_placeholder(body: bytes, call_id: str) -> bytes:
    return body.replace(_quote(PLACEHOLDER), _quote(call_id), 1)


def restore_placeholder(body: bytes, call_id: str) -> bytes | None:
    """Return the body of a response with the placeholder as its id; None if its id differs."""
    return _replace_id(body, call_id, PLACEHOLDER)


def insert_id(body: bytes, call_id: str) -> bytes:
    """Return the body of a recorded response with the id of a call, if it has the placeholder."""
    return _replace_id(body, PLACEHOLDER, call_id) or body


def _replace_id(body: bytes, call_id: str, new_id: str) -> bytes | None:
    """Return the body of a response with another id; None if its id is not `call_id`."""
    members = _decode_members(body)
    if members is None or members.get("id") != msgspec.Raw(_quote(call_id)):
        return None
    return msgspec.json.encode(members | {"id": msgspec.Raw(_quote(new_id))})


def _decode_members(body: bytes) -> dict[str, msgspec.Raw] | None:
    """Return the encoded members of a response; None if it is no object."""
    try:
        return json_decoding.decode(body, dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return None


def _quote(call_id: str) -> bytes:
    return f'"{call_id}"'.encode()


def wrong_id_error(value: object, body: bytes, request: str) -> LedgerError:
    """
    Return the error for the value of a response without the id of its call.

    Some errors are returned unchanged: errors about the host, because gateways that refuse a
    request do not always read its id; errors about the request in a response without an id, which
    JSON-RPC sends if it could not parse the request; and errors of a response that is not JSON.
    """
    members = _decode_members(body)
    received = None if members is None else bytes(members.get("id", b"null"))
    accepted = _ABOUT_HOST if received not in _NO_ID else (*_ABOUT_HOST, errors.InvalidRequestError)
    if isinstance(value, errors.LedgerError) and (received is None or isinstance(value, accepted)):
        return value
    if type(value) is errors.TransportError:  # a failing status; subclasses are read from responses
        return value
    reason = "it has no id" if received in _NO_ID else "its id is that of another request"
    return _mismatch(request, reason)


# The members that repeat the request ------------------------------------------------------


def expected_of_params(method: str, params: Any) -> Expected:
    """Return the members by which the response of a JSON-RPC method repeats its parameters."""
    repeated = _REPEATED.get(method)
    if repeated is None or not isinstance(params, dict):
        return {}
    block_id = params.get("block_id")
    block = {"block_hash" if isinstance(block_id, str) else "block_height": block_id}
    return {
        path: value
        for name, value in (params | block).items()
        if value is not None
        for path in repeated.get(name, ())
    }


def expected_of_path(path: str) -> Expected:
    """Return the member by which a response of the REST API repeats the subject of its path."""
    match = _SUBJECT.match(path)
    if match is None:
        return {}
    kind, subject = match[1], unquote(match[2])
    if kind == "public_key" and ":" not in subject:
        subject = f"ed25519:{subject}"  # the curve of a key without a prefix
    return {_SUBJECT_MEMBERS[kind]: subject}


def check_members(value: object, expected: Expected, request: str) -> None:
    """
    Check that a decoded response, or its error, is about the request.

    Raises `UnmatchedResponseError` if a member has another value than in the request. Missing
    members are not compared, nor members of another type, which the decoder refuses.
    """
    if isinstance(value, errors.UnknownBlockError):
        return  # nodes name the block in prose, and may name another block that they searched
    for path, expected_value in expected.items():
        if getattr(value, path, None) == expected_value:  # the usual case
            continue
        allowed = expected_value if isinstance(expected_value, list) else [expected_value]
        kind = str if isinstance(next(iter(allowed), None), str) else int
        for received in _values(value, path):
            if isinstance(received, kind) and received not in allowed:
                texts = errors.cut(", ".join(map(str, allowed)))
                reason = f"{path or 'it'} is {errors.cut(received)}, not {texts}"
                raise _mismatch(request, reason)


def check_document(body: bytes, expected: Expected, request: str) -> None:
    """Check whether an undecodable response of a REST service belongs to another request."""
    try:
        document = json_decoding.decode(body)
    except msgspec.DecodeError:
        return
    if isinstance(document, dict) and "jsonrpc" in document:
        raise _mismatch(request, "it is the response of a JSON-RPC call")
    check_members(document, expected, request)


def _values(value: object, path: str) -> list[object]:
    values = [value]
    for name in filter(None, path.split(".")):
        members = [_member(value, name) for value in values]
        values = [item for m in members for item in (m if isinstance(m, list) else [m])]
    return values


def _member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def _mismatch(request: str, reason: str) -> errors.UnmatchedResponseError:
    sentence = f"a response to {request} belongs to another request: {reason}"
    return errors.UnmatchedResponseError(sentence, request=request, reason=reason)
