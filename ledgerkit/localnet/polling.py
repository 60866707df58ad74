"""
The passing of logical time for clients that wait by asking again.

In logical time, blocks come only when a request waits for one. While something is not final yet,
two kinds of reads produce a block too: those that are behind the head, and, once a request has
sent a transaction, those that were already answered since the last block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledgerkit.localnet.clock import Clock
    from ledgerkit.localnet.world import World

_MAX_READS = 10_000  # remembered since the last block


async def pass_time(world: World, clock: Clock, *read: object, is_behind: bool = False) -> None:
    """Wait for a block if a read is behind the head or repeated."""
    with world.lock:
        if not world.lags:
            return
        key = hash(repr(read))
        needs_block = is_behind or key in world.answered_reads
    if needs_block:
        await clock.next_block()
    with world.lock:
        if world.is_used and len(world.answered_reads) < _MAX_READS:
            world.answered_reads.add(key)
