"""
The passing of logical time for clients that wait by asking again.

In logical time, blocks come only when a request waits for one. While something is not final yet,
two kinds of reads produce a block too: those that are behind the head, and, once a request has
sent a transaction, those that were already answered since the last block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

    from ledgerkit.localnet.world import World

_MAX_READS = 10_000  # remembered since the last block


def pass_time(world: World, *read: object, is_behind: bool = False) -> Generator[None, None, None]:
    """Wait for a block if a read is behind the head or repeated, with the world locked."""
    if not world.lags:
        return
    key = hash(repr(read))
    if is_behind or key in world.answered_reads:
        yield
    if world.is_used and len(world.answered_reads) < _MAX_READS:
        world.answered_reads.add(key)
