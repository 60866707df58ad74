"""
The node's JSON-RPC: a call's body in, the answer's body and HTTP status out.

What a method does is in `ledgerkit.localnet.rpc`; here are the envelope, the list of the
methods, and the pages the node has beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ledgerkit.localnet import http_messages
from ledgerkit.localnet.rpc import (
    blocks,
    changes,
    config,
    node,
    outcomes,
    queries,
    sending,
    validators,
)
from ledgerkit.localnet.rpc.errors import (
    BAD_REQUEST,
    OK,
    UNPROCESSABLE,
    MethodNotFoundError,
    ParseError,
    RpcError,
)

if TYPE_CHECKING:
    from ledgerkit.localnet.http_messages import Reply
    from ledgerkit.localnet.world import World

Answer = Callable[["World", Any], Any]

_NULL = msgspec.Raw(b"null")
_NO_CALL = "JSON RPC Request format was expected"
_UNREADABLE = "Failed to parse the request body as JSON: "
_UNFIT = (
    "Failed to deserialize the JSON body into the target type: "
    "data did not match any variant of untagged enum Message"
)


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call; its id is kept as it was written."""

    jsonrpc: Literal["2.0"]
    method: str
    params: Any = None
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_ANSWERS: dict[str, Answer] = {
    "block": blocks.block,
    "chunk": blocks.chunk,
    "gas_price": blocks.gas_price,
    "query": queries.query,
    "changes": changes.changes,
    "EXPERIMENTAL_changes": changes.changes,
    "block_effects": changes.changes_in_block,
    "EXPERIMENTAL_changes_in_block": changes.changes_in_block,
    "EXPERIMENTAL_receipt": outcomes.receipt,
    "EXPERIMENTAL_receipt_to_tx": outcomes.receipt_to_tx,
    "broadcast_tx_async": sending.broadcast_tx_async,
    "validators": validators.validators,
    "EXPERIMENTAL_validators_ordered": validators.validators_ordered,
    "EXPERIMENTAL_protocol_config": config.protocol_config,
    "genesis_config": lambda world, _: config.genesis_config(world),
    "EXPERIMENTAL_genesis_config": lambda world, _: config.genesis_config(world),
    "status": lambda world, _: node.status(world),
    "health": lambda _, __: None,
    "EXPERIMENTAL_view_access_key_list": queries.access_key_list,
} | {
    f"EXPERIMENTAL_{name}": partial(queries.single_type, name)
    for name in (
        "view_account",
        "view_code",
        "view_state",
        "view_access_key",
        "view_gas_key_nonces",
        "call_function",
    )
}
_WAITING: dict[str, Callable[[World, Any], sending.Steps]] = {
    "send_tx": sending.send_tx,
    "broadcast_tx_commit": sending.broadcast_tx_commit,
    "tx": sending.tx,
    "EXPERIMENTAL_tx_status": sending.tx_status,
}
METHODS = frozenset({*_ANSWERS, *_WAITING})


def respond(world: World, body: bytes) -> Generator[None, None, Reply]:
    """
    Answer a call.

    Parameters
    ----------
    world
        The world; its lock is held while this runs.
    body
        The call.

    Returns
    -------
    reply
        The answer, be it an error.

    Yields
    ------
    pause
        Where another block may have come before it goes on.
    """
    try:
        call = _read(body)
    except RecursionError:
        return http_messages.text_reply(f"{_UNREADABLE}recursion limit exceeded", BAD_REQUEST)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _unreadable(body, error)
    if isinstance(call.id, msgspec.UnsetType):
        return _failed(ParseError(_NO_CALL), _NULL)
    try:
        result = yield from _answer(world, call)
    except RpcError as error:
        return _failed(error, call.id)
    return http_messages.json_reply({"jsonrpc": "2.0", "result": result, "id": call.id})


def _read(body: bytes) -> Call:
    """Read a call."""
    if not body.isascii():
        body.decode()
    return msgspec.json.decode(body, type=Call)


def _answer(world: World, call: Call) -> sending.Steps:
    """Find the method and let it answer."""
    steps = _WAITING.get(call.method)
    if steps is not None:
        return (yield from steps(world, call.params))
    answer = _ANSWERS.get(call.method)
    if answer is None:
        raise MethodNotFoundError(call.method)
    return answer(world, call.params)


def _failed(error: RpcError, call_id: msgspec.Raw) -> Reply:
    """Answer with an error."""
    told = {"jsonrpc": "2.0", "error": error.error, "id": call_id}
    return http_messages.json_reply(told, error.status)


def _unreadable(body: bytes, error: Exception) -> Reply:
    """Refuse a body that is no call: several at once, another value, or no JSON."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return http_messages.text_reply(f"{_UNREADABLE}{error}", BAD_REQUEST)
    if isinstance(value, list):
        return _failed(ParseError(_NO_CALL), _NULL)
    return http_messages.text_reply(_UNFIT, UNPROCESSABLE)


def node_page(world: World, path: str) -> Reply | None:
    """Show a page of the node's own; None where there is none."""
    if path == "/status":
        return http_messages.json_reply(node.status(world))
    if path == "/health":
        return http_messages.json_reply(None)
    return http_messages.text_reply(node.metrics(world), OK) if path == "/metrics" else None
