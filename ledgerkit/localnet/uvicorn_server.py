"""Sockets by uvicorn, with a time limit for what never finishes."""

from __future__ import annotations

import asyncio
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ledgerkit.localnet.server import ABORT

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from ledgerkit.localnet.server import App, Message, Receive, Send

HEAD_S = 10.0  # the head of a request may take so long
IDLE_S = 15  # and the next one to begin
STOP_S = 3  # whoever still waits when the server stops
MOST_CONNECTIONS = 1000


class Connection(H11Protocol):
    """One connection: it is closed when a request's head does not come, or when told to."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._deadline: asyncio.TimerHandle | None = None
        self._answering = self.app
        self.app = self._answer

    async def _answer(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer with a way to hang up."""
        told: Message = {**scope, "extensions": {ABORT: self._hang_up}}
        await self._answering(told, receive, send)

    def _hang_up(self, flush: bool) -> None:  # noqa: FBT001 - a callback's one argument
        """Close the connection, after what is on its way or at once."""
        if flush:
            self.transport.close()
        else:
            self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its base
        """Begin to wait for a head."""
        super().connection_made(transport)
        # asyncio does so only for sockets that name their protocol, which ours do not.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        """Take in data; a part of a head does not earn more time."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._expect_head()
        else:
            self._forget_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._forget_deadline()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        """Set the time limit, unless it is set."""
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_S, self.transport.close)

    def _forget_deadline(self) -> None:
        """Lift the time limit."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class Server(uvicorn.Server):
    """
    Uvicorn's server: it tells when it answers, and a signal that stops it is no failure.

    Parameters
    ----------
    config
        Its settings.
    ready
        Told once it answers.
    stop
        Told when it ends: whoever waits for a block is to wait no longer.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        ready: Callable[[], object] | None,
        stop: Callable[[], object],
    ) -> None:
        super().__init__(config)
        self._ready, self._stop = ready, stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to answer."""
        await super().startup(sockets)
        if self._ready is not None:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop to answer."""
        self._stop()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal, and raise it no second time."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


async def run(
    app: App,
    sock: socket.socket,
    beside: list[Coroutine[Any, Any, None]],
    ready: Callable[[], object] | None,
) -> None:
    """Serve until a signal comes, or what runs beside it fails."""
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,  # it would tell a key in a query
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=STOP_S,
    )
    server = Server(config, ready, app.clock.stop)
    tasks = [asyncio.create_task(each) for each in beside]
    for task in tasks:
        task.add_done_callback(lambda _: setattr(server, "should_exit", True))
    try:
        await server.serve(sockets=[sock])
    finally:
        for task in tasks:
            task.cancel()
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(ended, Exception):
            raise ended
