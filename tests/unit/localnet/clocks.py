"""A clock for requests to a world, and a driver of the coroutines that wait with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit.localnet.http_gateway import Gateway
from ledgerkit.transport.background_loop import drive

if TYPE_CHECKING:
    from ledgerkit.localnet.http_messages import HttpRequest, HttpResponse
    from ledgerkit.localnet.world import World


class InstantClock:
    """A clock that produces each block at once; `waits` lists seconds, and None for a block."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.waits: list[float | None] = []

    async def next_block(self) -> None:
        self.waits.append(None)
        self.world.advance()

    async def sleep(self, seconds: float) -> None:
        """Return at once."""
        self.waits.append(seconds)


def answer(world: World, request: HttpRequest) -> HttpResponse:
    """Answer a request; blocks are produced while it waits."""
    return drive(Gateway(world).answer(request, InstantClock(world)))
