"""
The JSON-RPC of the embedded ledger: the body of a call in, a response out.

The methods are in `ledgerkit.localnet.rpc`. This module has the envelope and the table of methods.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ledgerkit import json_decoding
from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.http_messages import json_response, text_response
from ledgerkit.localnet.polling import pass_time
from ledgerkit.localnet.rpc import (
    blocks,
    changes,
    config,
    errors,
    light_client,
    node,
    outcomes,
    queries,
    sandbox,
    sending,
    validators,
)
from ledgerkit.localnet.sandbox.world import SandboxWorld

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ledgerkit.localnet.clock import Clock
    from ledgerkit.localnet.http_messages import HttpResponse
    from ledgerkit.localnet.world import World

_NULL = msgspec.Raw(b"null")
# The texts of nearcore (chain/jsonrpc/src/lib.rs), and of axum's extractor of JSON bodies.
_NOT_A_CALL = "JSON RPC Request format was expected"
_NOT_JSON = "Failed to parse the request body as JSON: "
_WRONG_TYPE = (
    "Failed to deserialize the JSON body into the target type: "
    "data did not match any variant of untagged enum Message"
)


class RpcCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON-RPC call; its id is not decoded."""

    jsonrpc: Literal["2.0"]
    method: str
    params: Any = None
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


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
    "EXPERIMENTAL_split_storage_info": node.split_storage_info,
    "network_info": node.network_info,
    "client_config": lambda world, _: config.client_config(world),
    "EXPERIMENTAL_protocol_config": config.protocol_config,
    "genesis_config": lambda world, _: config.genesis_config(world),
    "EXPERIMENTAL_genesis_config": lambda world, _: config.genesis_config(world),
    "status": lambda world, _: node.status(world),
    "health": lambda _, __: None,
    "EXPERIMENTAL_view_access_key_list": queries.access_key_list,
    "EXPERIMENTAL_view_account": partial(queries.single_type, "view_account"),
    "EXPERIMENTAL_view_code": partial(queries.single_type, "view_code"),
    "EXPERIMENTAL_view_state": partial(queries.single_type, "view_state"),
    "EXPERIMENTAL_view_access_key": partial(queries.single_type, "view_access_key"),
    "EXPERIMENTAL_view_gas_key_nonces": partial(queries.single_type, "view_gas_key_nonces"),
    "EXPERIMENTAL_call_function": partial(queries.single_type, "call_function"),
}
_WAITING_METHODS: dict[str, Callable[[World, Any, Clock], Awaitable[Any]]] = {
    "send_tx": sending.send_tx,
    "broadcast_tx_commit": sending.broadcast_tx_commit,
    "tx": sending.tx,
    "tx_status": sending.tx_status,
    "EXPERIMENTAL_tx_status": sending.tx_status,
}
_SANDBOX_METHODS: dict[str, Callable[[SandboxWorld, Any, Clock], Awaitable[Any]]] = {
    "sandbox_patch_state": sandbox.patch_state,
    "sandbox_fast_forward": sandbox.fast_forward,
}
METHODS = frozenset({*_METHODS, *_WAITING_METHODS})


async def respond(world: World, body: bytes, clock: Clock) -> HttpResponse:
    """Answer a JSON-RPC call, which may wait for a block."""
    try:
        if not body.isascii():
            body.decode()  # msgspec does not check the UTF-8 of members that it skips
        call = json_decoding.decode(body, RpcCall)
    except ValueError as error:  # not UTF-8, or not a call
        return _refuse_body(body, error)
    if isinstance(call.id, msgspec.UnsetType):
        return _error_response(errors.ParseError(_NOT_A_CALL), _NULL)
    try:
        result = await _call_method(world, call, clock)
    except errors.RpcError as error:
        return _error_response(error, call.id)
    except InvalidRequestError as error:  # a library that the request needs is not installed
        return _error_response(errors.InternalError(str(error)), call.id)
    return json_response({"jsonrpc": "2.0", "result": result, "id": call.id})


async def _call_method(world: World, call: RpcCall, clock: Clock) -> Any:
    if call.method in _WAITING_METHODS:
        return await _WAITING_METHODS[call.method](world, call.params, clock)
    if call.method in _SANDBOX_METHODS and isinstance(world, SandboxWorld):
        return await _SANDBOX_METHODS[call.method](world, call.params, clock)
    method = _METHODS.get(call.method)
    if method is None:
        raise errors.MethodNotFoundError(call.method)
    finality = call.params.get("finality") if isinstance(call.params, dict) else None
    is_behind = call.method == "status" or finality in ("final", "near-final")  # the head
    await pass_time(world, clock, call.method, call.params, is_behind=is_behind)
    with world.lock:
        return method(world, call.params)


def _error_response(error: errors.RpcError, call_id: msgspec.Raw) -> HttpResponse:
    return json_response({"jsonrpc": "2.0", "error": error.error, "id": call_id}, error.status)


def _refuse_body(body: bytes, error: Exception) -> HttpResponse:
    """Build the refusal of a body that is not a call: a batch, another JSON value, or no JSON."""
    try:
        value = json_decoding.decode(body)
    except msgspec.DecodeError:
        return text_response(f"{_NOT_JSON}{error}", errors.BAD_REQUEST)
    if isinstance(value, list):
        return _error_response(errors.ParseError(_NOT_A_CALL), _NULL)
    return text_response(_WRONG_TYPE, errors.UNPROCESSABLE)
