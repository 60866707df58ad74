"""The uvicorn server of the embedded ledger, with time limits for slow clients."""

from __future__ import annotations

import asyncio
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ledgerkit.localnet.server import CLOSE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from ledgerkit.localnet.server import App, Message, Receive, Send

HEAD_TIMEOUT_S = 10.0  # to receive the head of a request
KEEP_ALIVE_S = 15  # until the next request of a connection begins
SHUTDOWN_TIMEOUT_S = 3  # for open requests when the server stops
MAX_CONNECTIONS = 1000


class Connection(H11Protocol):
    """A connection that times out without a complete head, and that the application can close."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_timeout: asyncio.TimerHandle | None = None
        self._inner_app = self.app
        self.app = self._run_app

    async def _run_app(self, scope: Any, receive: Receive, send: Send) -> None:
        """Run the application with the extension that closes the connection."""
        extended: Message = {**scope, "extensions": {CLOSE: self._close}}
        await self._inner_app(extended, receive, send)

    def _close(self, flush: bool) -> None:  # noqa: FBT001 - a callback's one argument
        """Close the connection, at once or after the buffered bytes are sent."""
        if flush:
            self.transport.close()
        else:
            self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its base
        """Start the timeout of the first head."""
        super().connection_made(transport)
        # asyncio sets TCP_NODELAY only on sockets opened with an explicit IPPROTO_TCP; without
        # it each response waits for the client's delayed ACK, about 40 ms.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._start_head_timeout()

    def data_received(self, data: bytes) -> None:
        """Process data; single bytes of a head do not restart its timeout."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._start_head_timeout()
        else:
            self._stop_head_timeout()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timeout."""
        self._stop_head_timeout()
        super().connection_lost(exc)

    def _start_head_timeout(self) -> None:
        """Start the timeout unless it is running."""
        if self._head_timeout is None:
            self._head_timeout = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.close)

    def _stop_head_timeout(self) -> None:
        """Stop the timeout."""
        if self._head_timeout is not None:
            self._head_timeout.cancel()
            self._head_timeout = None


class Server(uvicorn.Server):
    """A uvicorn server that reports its start, and for which a stop signal is not an error."""

    def __init__(
        self,
        config: uvicorn.Config,
        ready: Callable[[], object] | None,
        stop: Callable[[], object],
    ) -> None:
        super().__init__(config)
        self._ready, self._stop = ready, stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept requests."""
        await super().startup(sockets)
        if self._ready is not None:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting requests."""
        self._stop()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal without raising it again, as uvicorn would on exit."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


async def run(
    app: App,
    sock: socket.socket,
    background: list[Coroutine[Any, Any, None]],
    ready: Callable[[], object] | None,
) -> None:
    """Serve until a signal comes or a background task ends; raise that task's error."""
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,  # it would show an API key in a query
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
    )
    server = Server(config, ready, app.clock.stop)
    tasks = [asyncio.create_task(each) for each in background]
    for task in tasks:
        task.add_done_callback(lambda _: setattr(server, "should_exit", True))
    try:
        await server.serve(sockets=[sock])
    finally:
        for task in tasks:
            task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            raise result
