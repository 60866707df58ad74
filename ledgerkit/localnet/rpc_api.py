"""The JSON-RPC of the embedded ledger: the body of a call in, a response out; its methods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ledgerkit import json_decoding
from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.clock import pass_time
from ledgerkit.localnet.http_messages import json_response, text_response
from ledgerkit.localnet.rpc import (
    blocks,
    changes,
    config,
    errors,
    light_client,
    node,
    outcomes,
    queries,
    sending,
    validators,
)
from ledgerkit.localnet.sandbox import world as sandbox
from ledgerkit.localnet.services import block_documents

if TYPE_CHECKING:
    from ledgerkit.localnet.clock import Clock
    from ledgerkit.localnet.http_messages import Header, HttpRequest, HttpResponse
    from ledgerkit.localnet.world import World

MAX_BODY_BYTES = 10 * 2**20
FAILURES = (429, errors.SERVER_ERROR)  # statuses whose failures have the form of JSON-RPC

_TX_STATUS_VERSION = 87  # the first version with it (nearcore, pull request 16270)
_NULL = msgspec.Raw(b"null")
_FAILED = "the embedded ledger failed to answer; its log has the reason"
_NOT_A_CALL = "JSON RPC Request format was expected"  # nearcore, chain/jsonrpc/src/lib.rs


class _CallId(msgspec.Struct):
    id: msgspec.Raw = _NULL


class _RpcCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON-RPC call; its id is not decoded."""

    jsonrpc: Literal["2.0"]
    method: str
    params: Any = None
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def refuse_body(request: HttpRequest) -> HttpResponse | None:
    """Refuse a body of another media type or that is too large; None accepts it."""
    if not request.has_json:
        return text_response("Expected request with `Content-Type: application/json`", 415)
    if len(request.body) > MAX_BODY_BYTES:
        return text_response("Failed to buffer the request body: length limit exceeded", 413)
    return None


async def respond(world: World, body: bytes, clock: Clock) -> HttpResponse:
    """Answer the body of a call, which may wait for a block."""
    try:
        if not body.isascii():
            body.decode()  # msgspec does not check the UTF-8 of members that it skips
        call = json_decoding.decode(body, _RpcCall)
    except ValueError as error:  # not UTF-8, or not a call
        return _refuse_non_call(body, str(error))
    if isinstance(call.id, msgspec.UnsetType):
        return _error_response(errors.ParseError(_NOT_A_CALL), _NULL)
    try:
        result = await _run_method(world, call.method, call.params, clock)
    except errors.RpcError as error:
        return _error_response(error, call.id)
    except InvalidRequestError as error:  # a library that the request needs is not installed
        return _error_response(errors.InternalError(str(error)), call.id)
    return json_response({"jsonrpc": "2.0", "result": result, "id": call.id})


def failure(body: bytes, status: int, text: str, *headers: Header) -> HttpResponse:
    """Build the failure of a call: the node's internal error, or a proxy's error."""
    try:
        call_id = json_decoding.decode(body, _CallId).id
    except msgspec.DecodeError:
        call_id = _NULL
    error = {"code": -status, "message": text}
    if status == errors.SERVER_ERROR:
        error = errors.InternalError(_FAILED, _FAILED).error
    return json_response({"jsonrpc": "2.0", "error": error, "id": call_id}, status, *headers)


def _error_response(error: errors.RpcError, call_id: msgspec.Raw) -> HttpResponse:
    return json_response({"jsonrpc": "2.0", "error": error.error, "id": call_id}, error.status)


def _refuse_non_call(body: bytes, error: str) -> HttpResponse:
    """Refuse a body that is a batch, another JSON value, or not JSON."""
    # axum's extractor of JSON bodies sends these texts.
    try:
        is_batch = isinstance(json_decoding.decode(body), list)
    except msgspec.DecodeError:
        return text_response(f"Failed to parse the request body as JSON: {error}", 400)
    if is_batch:
        return _error_response(errors.ParseError(_NOT_A_CALL), _NULL)
    reason = "data did not match any variant of untagged enum Message"
    return text_response(f"Failed to deserialize the JSON body into the target type: {reason}", 422)


# The methods ------------------------------------------------------------------------------

_METHODS: dict[str, Callable[[World, Any], Any]] = {
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
    "next_light_client_block": light_client.next_block,
    "light_client_proof": light_client.outcome_proof,
    "EXPERIMENTAL_light_client_proof": light_client.outcome_proof,
    "EXPERIMENTAL_light_client_block_proof": light_client.block_proof,
    "maintenance_windows": validators.maintenance_windows,
    "EXPERIMENTAL_maintenance_windows": validators.maintenance_windows,
    "EXPERIMENTAL_congestion_level": blocks.congestion_level,
    "EXPERIMENTAL_indexer_block": block_documents.indexer_block,
    "EXPERIMENTAL_split_storage_info": node.split_storage_info,
    "network_info": node.network_info,
    "client_config": lambda world, _: config.client_config(world),
    "EXPERIMENTAL_protocol_config": config.protocol_config,
    "genesis_config": lambda world, _: config.genesis_config(world),
    "EXPERIMENTAL_genesis_config": lambda world, _: config.genesis_config(world),
    "status": lambda world, _: node.status(world),
    "health": lambda _, __: None,
} | {
    f"EXPERIMENTAL_{request_type}": partial(queries.single_type, request_type)
    for request_type in queries.SINGLE_TYPES
}
_WAITING_METHODS: dict[str, Callable[[World, Any, Clock], Awaitable[Any]]] = {
    "send_tx": sending.send_tx,
    "broadcast_tx_commit": sending.broadcast_tx_commit,
    "tx": partial(sending.tx, receipts=False),
    "tx_status": partial(sending.tx, receipts=True),
    "EXPERIMENTAL_tx_status": partial(sending.tx, receipts=True),
}
_SANDBOX_METHODS: dict[str, Callable[[sandbox.SandboxWorld, Any, Clock], Awaitable[Any]]] = {
    "sandbox_patch_state": sandbox.patch_state,
    "sandbox_fast_forward": sandbox.fast_forward,
    "sandbox_dump_state": sandbox.dump_state,
}
METHOD_NAMES = frozenset({*_METHODS, *_WAITING_METHODS})


async def _run_method(world: World, name: str, params: Any, clock: Clock) -> Any:
    """Run a method, which may wait for a block; return its result."""
    if name == "tx_status" and world.runtime.profile.version < _TX_STATUS_VERSION:
        raise errors.MethodNotFoundError(name)
    if name in _WAITING_METHODS:
        return await _WAITING_METHODS[name](world, params, clock)
    if name in _SANDBOX_METHODS and isinstance(world, sandbox.SandboxWorld):
        return await _SANDBOX_METHODS[name](world, params, clock)
    method = _METHODS.get(name)
    if method is None:
        raise errors.MethodNotFoundError(name)
    finality = params.get("finality") if isinstance(params, dict) else None
    is_behind = name == "status" or finality in ("final", "near-final")
    await pass_time(world, clock, name, params, is_behind=is_behind)
    with world.lock:
        return method(world, params)
