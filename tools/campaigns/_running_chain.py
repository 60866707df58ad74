"""
A chain that goes on by the clock, in a process that can be killed.

Its blocks are those of a seed: whoever opens it again has the same ones.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any

import httpx

from ledgerkit.localnet.server import serve
from tests.unit.localnet.chaos import Chaos
from tools.campaigns._killing import fork_server

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World

BLOCK_TIME_NS = 60_000_000
SENT = 3  # most transactions before a block
READY_S = 60.0  # to open a chain again


class CalmChaos(Chaos):
    """A world in which few transactions happen at a time."""

    def block(self) -> None:
        """Send a few transactions and make a block, now and then after a gap."""
        for _ in range(self.random.randrange(SENT)):
            self.send()
        self.world.advance(skip=self.random.choice([0] * 12 + [1, 3, 11]))


def open_chain(seed: int, n_blocks: int) -> World:
    """Open a chain and produce its first blocks; each later one is made as these are."""
    chaos: Any = CalmChaos(seed, real_time=True, block_time_ns=BLOCK_TIME_NS)
    world: World = chaos.world
    patched: Any = world
    produce = world.advance

    def advance() -> None:
        patched.advance = produce
        chaos.block()
        patched.advance = advance

    patched.advance = advance
    for _ in range(n_blocks):
        advance()
    return world


def serve_chain(seed: int, n_blocks: int, port: int) -> None:
    """Serve a chain that has so many blocks already."""
    serve(open_chain(seed, n_blocks), port=port)


class ChainServer:
    """The server of a chain with so many blocks at the beginning; it goes on while it is down."""

    def __init__(self, seed: int, n_blocks: int) -> None:
        self._seed, self._n_blocks = seed, n_blocks
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._context = fork_server("tools.campaigns._running_chain")
        self._began = time.monotonic()
        self._process: Any = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start the server, and wait until it responds."""
        n_new = int((time.monotonic() - self._began) * 10**9 / BLOCK_TIME_NS)
        args = (self._seed, self._n_blocks + n_new, self._port)
        self._process = self._context.Process(target=serve_chain, args=args, daemon=True)
        self._process.start()
        last = time.monotonic() + READY_S
        while not self._responds():
            if time.monotonic() > last or not self._process.is_alive():
                raise RuntimeError("the server of the chain did not start")
            time.sleep(0.02)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._process.close()

    def _responds(self) -> bool:
        """Return True if the server answers a request."""
        try:
            return httpx.get(f"{self.url}/blocks/health").is_success
        except httpx.TransportError:
            return False
