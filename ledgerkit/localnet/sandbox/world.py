"""The world of a sandbox, whose state can be patched and whose heights can be skipped."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ledgerkit.localnet.sandbox.records import StateRecord, apply_records
from ledgerkit.localnet.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ledgerkit.localnet.genesis import Genesis
    from ledgerkit.localnet.settings import Settings

# A skip ends so far before the next epoch: the blocks between make it final, and the epoch ends
# as any other (nearcore: ClientActor::sandbox_process_fast_forward).
_EPOCH_MARGIN = 3


class SandboxWorld(World):
    """
    A chain whose blocks have the time of the clock.

    Parameters
    ----------
    settings, genesis
        As in `World`.
    skip_ns
        The time that passes with each height of a fast forward.
    clock
        Returns the Unix time in nanoseconds.
    """

    def __init__(
        self,
        settings: Settings,
        genesis: Genesis,
        skip_ns: int,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        super().__init__(settings, genesis)
        self._clock, self._skip_ns = clock, skip_ns
        self._skipped_ns = 0  # by all fast forwards
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
        """Return the height of a fast forward's next block: no epoch is skipped."""
        head = self.chain.head
        before_epoch = head.epoch_start_height + self.settings.epoch_length - _EPOCH_MARGIN
        return max(head.height + 1, min(target, before_epoch))

    def _make_block(self, height: int, missing: frozenset[int]) -> None:
        """Produce a block at the time of the clock, apply it, and patch the state."""
        # As `get_block_metadata` does in nearcore, core/primitives/src/utils.rs.
        now = self._clock() + self._skipped_ns
        self.chain.next_timestamp_ns = max(now, self.chain.head.timestamp_ns + 1)
        super()._make_block(height, missing)
        if self._patch:
            # After all receipts of the block, as `Runtime::apply_state_patch` does in nearcore.
            apply_records(self._patch, self.store)
            self._patch = []
            self.chain.add_changes(height, self.store.commit(height, ("migration", None)))
