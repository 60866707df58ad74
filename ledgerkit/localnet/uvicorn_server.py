"""The uvicorn server of the embedded ledger, with limits for slow and for many clients."""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import contextmanager, suppress
from http.client import responses
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ledgerkit.localnet.server import CLOSE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from types import FrameType

    from ledgerkit.localnet.server import App, Message, Receive, Send

HEAD_TIMEOUT_S = 10.0  # to receive the head of a request
KEEP_ALIVE_S = 15  # until the next request of a connection begins
SHUTDOWN_TIMEOUT_S = 3.0  # for open requests when the server stops
MAX_CONNECTIONS = 4096
_OTHER_FILES = 64  # of the process, beside its connections


class Connection(H11Protocol):
    """
    A connection that times out without a complete head, and that the application can close.

    When there are too many, the one that has waited longest for its client is closed.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # At its own limit uvicorn refuses all requests, of whichever connection.
        self._max_connections, self.limit_concurrency = self.limit_concurrency, None
        self._head_timeout: asyncio.TimerHandle | None = None
        self.waiting_since = self.loop.time()
        self._inner_app = self.app
        self.app = self._run_app

    async def _run_app(self, scope: Any, receive: Receive, send: Send) -> None:
        """Run the application with the extension that closes the connection."""
        self.waiting_since = self.loop.time()
        extended: Message = {**scope, "extensions": {CLOSE: self._close}}
        with suppress(asyncio.CancelledError):  # the server stops; uvicorn would log a traceback
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
        if len(self.connections) > (self._max_connections or MAX_CONNECTIONS):
            self._close_longest_waiting()

    def _close_longest_waiting(self) -> None:
        """Close the connection that has waited longest for its client: this one, if no other."""
        own = [each for each in self.connections if isinstance(each, Connection)]
        waiting = [each for each in own if each.waits_for_client]
        longest = min(waiting, key=lambda each: each.waiting_since)
        self.connections.discard(longest)
        longest.transport.abort()

    @property
    def waits_for_client(self) -> bool:
        """True while the client has to send or to read, and no response is being computed."""
        cycle = self.cycle
        is_between = cycle is None or cycle.response_complete
        return is_between or cycle.more_body or self.flow.write_paused

    def data_received(self, data: bytes) -> None:
        """Process data; single bytes of a head do not restart its timeout."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._start_head_timeout()
        else:
            self._stop_head_timeout()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.waiting_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Wait until the client has read more of a response."""
        self.waiting_since = self.loop.time()
        super().pause_writing()

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: a server may ignore an upgrade and answer in HTTP/1.1."""

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request with the status that h11 proposes, and close."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            status = getattr(sys.exc_info()[1], "error_status_hint", 400)
            head = f"HTTP/1.1 {status} {responses[status]}\r\ncontent-length: {len(msg)}\r\n"
            more = "content-type: text/plain; charset=utf-8\r\nconnection: close\r\n\r\n"
            self.transport.write(f"{head}{more}{msg}".encode())
        self.transport.close()

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
        self._loop = asyncio.get_running_loop()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept requests."""
        await super().startup(sockets)
        if self._ready is not None:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting requests, and wait a while for those under way."""
        self._stop()
        timer = self._loop.call_later(SHUTDOWN_TIMEOUT_S, self._end_requests)
        await super().shutdown(sockets)
        timer.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at the first signal, at the second at once."""
        super().handle_exit(sig, frame)
        if self.force_exit:
            self._loop.call_soon_threadsafe(self._end_requests)

    def _end_requests(self) -> None:
        """Close all connections, and cancel their requests once they are closed."""
        for connection in self.server_state.connections:
            connection.transport.abort()
        for task in self.server_state.tasks:
            self._loop.call_soon(task.cancel)

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
    # uvicorn's own limit of a stop comes after SHUTDOWN_TIMEOUT_S, and only if that fails.
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,  # it would show an API key in a query
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_max_connections(),
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=round(SHUTDOWN_TIMEOUT_S) + 2,
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


def _max_connections() -> int:
    """Raise the process's limit of open files if it has to be; return the limit of connections."""
    try:
        import resource
    except ImportError:  # on Windows, which has no such limit
        return MAX_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    needed = MAX_CONNECTIONS + _OTHER_FILES
    if soft == unlimited or soft >= needed:
        return MAX_CONNECTIONS
    allowed = needed if hard == unlimited else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(allowed - _OTHER_FILES, 1)
