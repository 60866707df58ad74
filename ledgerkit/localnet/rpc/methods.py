"""The methods of the JSON-RPC by their names."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ledgerkit.localnet.clock import pass_time
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
    from ledgerkit.localnet.world import World

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
_SANDBOX_METHODS: dict[str, Callable[[SandboxWorld, Any, Clock], Awaitable[Any]]] = {
    "sandbox_patch_state": sandbox.patch_state,
    "sandbox_fast_forward": sandbox.fast_forward,
}
NAMES = frozenset({*_METHODS, *_WAITING_METHODS})


async def run(world: World, name: str, params: Any, clock: Clock) -> Any:
    """Return the result of a method, which may wait for a block."""
    if name in _WAITING_METHODS:
        return await _WAITING_METHODS[name](world, params, clock)
    if name in _SANDBOX_METHODS and isinstance(world, SandboxWorld):
        return await _SANDBOX_METHODS[name](world, params, clock)
    method = _METHODS.get(name)
    if method is None:
        raise errors.MethodNotFoundError(name)
    finality = params.get("finality") if isinstance(params, dict) else None
    is_behind = name == "status" or finality in ("final", "near-final")  # the head
    await pass_time(world, clock, name, params, is_behind=is_behind)
    with world.lock:
        return method(world, params)
