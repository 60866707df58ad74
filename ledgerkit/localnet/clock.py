"""
The clock of requests: how they wait for a block, and which reads produce a block.

In logical time, blocks come only when a request waits for one. While something is not final yet,
two kinds of reads produce a block too: reads of blocks behind the head, and, once a request has
sent a transaction, reads that repeat an earlier one since the last block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World

_MAX_READS = 10_000  # remembered since the last block


class Clock(Protocol):
    """
    A clock that a request waits with, never while it holds the world's lock.

    A clock may suspend the request in an event loop, or block the thread. It raises
    `WaitEndedError` to give the request up.
    """

    async def next_block(self) -> None:
        """Produce a block, or wait for one; it may return early."""

    async def sleep(self, seconds: float) -> None:
        """Wait, or return at once for 0 seconds."""


class UnansweredError(Exception):
    """A request that gets no response; `error` is the exception that its client gets."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class WaitEndedError(UnansweredError):
    """A waiting request that was given up."""


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
