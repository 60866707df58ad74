"""The clock that a request waits with: until the next block, or for some seconds."""

from __future__ import annotations

from typing import Protocol

from ledgerkit.localnet.execution_errors import LocalnetError


class Clock(Protocol):
    """
    What a request waits with; a request never holds the world's lock while it waits.

    A clock may suspend the request in an event loop, or block the thread. It raises
    `WaitEndedError` to give the request up.
    """

    async def next_block(self) -> None:
        """Produce a block, or wait for one; it may return early."""

    async def sleep(self, seconds: float) -> None:
        """Wait, or return at once for 0 seconds."""


class WaitEndedError(LocalnetError):
    """A request that waits is given up; `error` is the one that its client gets."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error
