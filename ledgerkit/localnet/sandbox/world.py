"""
The world of a sandbox, and the methods that patch its state and skip its heights.

Source: nearcore, chain/jsonrpc/src/lib.rs and chain/jsonrpc-primitives/src/types/sandbox.rs.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ledgerkit.localnet.clock import Clock
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.localnet.mempool import ChunkMempool
from ledgerkit.localnet.rpc import params as read
from ledgerkit.localnet.rpc.errors import InternalError, Object
from ledgerkit.localnet.rpc.params import Read, T
from ledgerkit.localnet.sandbox.records import (
    StateRecord,
    apply_records,
    code_hash_error,
    state_record,
    state_records,
)
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.world import World

# A skip ends this many heights before the next epoch, so that final blocks end the epoch as usual
# (nearcore: ClientActor::sandbox_process_fast_forward).
_EPOCH_MARGIN = 3
_MIN_EPOCH_LENGTH = 4
_BLOCKS_PER_STEP = 50  # a fast forward lets other requests run after so many blocks


class SandboxWorld(World):
    """A chain whose blocks take their times from a clock."""

    def __init__(
        self,
        settings: Settings,
        genesis: Genesis,
        skip_ns: int,  # the time that passes with each height of a fast forward
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        super().__init__(settings, genesis)
        self.mempool: ChunkMempool = ChunkMempool(settings.shard_of)
        self._clock, self._skip_ns = clock, skip_ns
        self._skipped_ns = 0  # in all fast forwards
        self._patch: list[StateRecord] = []

    @property
    def is_patched(self) -> bool:
        """False while a patch waits for the next block."""
        return not self._patch

    def patch(self, records: Iterable[StateRecord]) -> None:
        """Write records to the state at the end of the next block."""
        self._patch += records

    def fast_forward(self, delta_height: int) -> Iterator[None]:
        """Produce blocks until the head is `delta_height` higher; yield after each one."""
        target = self.chain.head.height + delta_height
        while self.chain.head.height < target:
            with self.lock:
                height = self._next_height(target)
                skipped = height - self.chain.head.height
                self._skipped_ns += skipped * self._skip_ns
                self.advance(skip=skipped - 1)
            yield

    def _next_height(self, target: int) -> int:
        """Return the height of a fast forward's next block; it never skips an epoch."""
        head = self.chain.head
        before_epoch = head.epoch_start_height + self.settings.epoch_length - _EPOCH_MARGIN
        return max(head.height + 1, min(target, before_epoch))

    def _make_block(self, height: int, missing: frozenset[int]) -> None:
        """Produce a block at the time of the clock, apply it, and patch the state."""
        # Source: nearcore, core/primitives/src/utils.rs, `get_block_metadata`.
        now = self._clock() + self._skipped_ns
        self.chain.next_timestamp_ns = max(now, self.chain.head.timestamp_ns + 1)
        super()._make_block(height, missing)
        if self._patch:
            # The node patches after the block's receipts too (Runtime::apply_state_patch).
            apply_records(self._patch, self.store)
            self._patch = []
            self.chain.add_changes(height, self.store.commit(height, ("migration", None)))
        self.mempool.begin_chunks()


# Methods ---------------------------------------------------------------------------------


async def patch_state(world: SandboxWorld, params: Any, clock: Clock) -> Object:
    """Return the result of `sandbox_patch_state`, after the next block."""
    records = _only_member(params, "records", read.many(state_record))
    with world.lock:
        reason = code_hash_error(records, world.store)
        if reason is not None:  # the node's process panics
            raise InternalError(reason)
        world.patch(records)
    while not world.is_patched:
        await clock.next_block()
    return {}


async def fast_forward(world: SandboxWorld, params: Any, clock: Clock) -> Object:
    """Return the result of `sandbox_fast_forward`, after the last block."""
    delta_height = _only_member(params, "delta_height", read.u64)
    if world.settings.epoch_length < _MIN_EPOCH_LENGTH:
        reason = "Unsupported: fast_forward with an epoch length of 3 or less"
        raise InternalError(f'sandbox failed to fast forward due to: "{reason}"')
    for index, _ in enumerate(world.fast_forward(delta_height)):
        if index % _BLOCKS_PER_STEP == _BLOCKS_PER_STEP - 1:
            await clock.sleep(0)
    return {}


async def dump_state(world: SandboxWorld, _params: Any, _clock: Clock) -> Object:
    """Return the members of a genesis that continues from the head; no node has this method."""
    # Source: nearcore, tools/state-viewer/src/state_dump.rs, `state_dump`.
    with world.lock:
        validators = world.epochs.current.validators
        records, total_supply = state_records(world.store), 0
        for record in records:
            if "Account" in record:
                account_id, account = record["Account"].values()
                stake = validators[account_id].stake if account_id in validators else 0
                amount, locked = int(account["amount"]), int(account["locked"])
                stake = min(stake, locked)
                account |= {"amount": str(amount + locked - stake), "locked": str(stake)}
                total_supply += amount + locked
        return {
            "protocol_version": world.runtime.profile.version,
            "genesis_height": world.chain.head.height + 1,
            "validators": [
                {
                    "account_id": account_id,
                    "public_key": str(validator.public_key),
                    "amount": str(validator.stake),
                }
                for account_id, validator in sorted(validators.items())
            ],
            "total_supply": str(total_supply),
            "records": records,
        }


def _only_member(params: Any, name: str, read_value: Read[T]) -> T:
    """Read the only member of params, which may be a list of its value."""
    items = read.single(params)
    return read.member({name: items[0]} if items else read.members(params), name, read_value)
