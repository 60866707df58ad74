"""
The methods of a sandbox: patching the state, and fast forward.

Source: nearcore, chain/jsonrpc/src/lib.rs and chain/jsonrpc-primitives/src/types/sandbox.rs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.localnet.rpc import params as read
from ledgerkit.localnet.rpc.errors import InternalError
from ledgerkit.localnet.sandbox.records import misplaced_code, state_record

if TYPE_CHECKING:
    from ledgerkit.localnet.clock import Clock
    from ledgerkit.localnet.rpc.errors import Object
    from ledgerkit.localnet.rpc.params import Read, T
    from ledgerkit.localnet.sandbox.world import SandboxWorld

_MIN_EPOCH_LENGTH = 4
_BLOCKS_PER_STEP = 50  # of a fast forward, before other requests are answered


async def patch_state(world: SandboxWorld, params: Any, clock: Clock) -> Object:
    """Return the result of `sandbox_patch_state`, after the next block."""
    records = _only_member(params, "records", read.many(state_record))
    with world.lock:
        reason = misplaced_code(records, world.store)
        if reason is not None:  # the node's process panics
            raise InternalError(reason)
        world.patch(records)
    while not world.is_patched:
        await clock.next_block()
    return {}


async def fast_forward(world: SandboxWorld, params: Any, clock: Clock) -> Object:
    """Return the result of `sandbox_fast_forward`, when the head is so much higher."""
    delta_height = _only_member(params, "delta_height", read.u64)
    if world.settings.epoch_length < _MIN_EPOCH_LENGTH:
        reason = "Unsupported: fast_forward with an epoch length of 3 or less"
        raise InternalError(f'sandbox failed to fast forward due to: "{reason}"')
    for index, _ in enumerate(world.fast_forward(delta_height)):
        if index % _BLOCKS_PER_STEP == _BLOCKS_PER_STEP - 1:
            await clock.sleep(0)
    return {}


def _only_member(params: Any, name: str, read_value: Read[T]) -> T:
    """Read the only member of params, which may be a list of its value."""
    items = read.single(params)
    return read.member({name: items[0]} if items else read.members(params), name, read_value)
