"""The uvicorn server of the embedded ledger, with limits for slow and for many clients."""

from __future__ import annotations

import asyncio
import socket
from contextlib import contextmanager, suppress
from http.client import responses
from typing import TYPE_CHECKING, Any

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ledgerkit.localnet.server import CLOSE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from types import FrameType

    from ledgerkit.localnet.server import App, Receive, Send

HEAD_TIMEOUT_S = 10.0  # to receive the head of a request
KEEP_ALIVE_S = 15  # until the next request of a connection begins
SHUTDOWN_TIMEOUT_S = 3.0  # for open requests when the server stops
MAX_CONNECTIONS = 4096
MAX_HEAD_BYTES = 16 * 2**10
_PART_BYTES = 4 * 2**10  # parsed at a time: later requests wait as bytes, not as objects
_LONG_BYTES = 16 * 2**10  # of a body that is not sent together with its head
_BAD_REQUEST, _HEAD_TOO_LONG, _NOT_IMPLEMENTED, _OTHER_VERSION = 400, 431, 501, 505
_OTHER_FILES = 64  # of the process, beside its connections


class RefusedError(Exception):
    """A request that is refused with a status before the application sees it."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class JoinedWrites:
    """A transport that sends a head and a short body together: two packets take twice the time."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        """Return what is not changed here."""
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """Return True if the transport is closed or about to be."""
        return self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Send data after this turn of the loop, or at once if it is long."""
        self._parts.append(data)
        if len(data) > _LONG_BYTES:  # whoever sends it has to feel that its reader is slow
            self._flush()
        elif len(self._parts) == 1:
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Send what was written."""
        parts, self._parts = self._parts, []
        if parts:
            self._transport.write(b"".join(parts))

    def close(self) -> None:
        """Close the connection after what was written is sent."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._parts.clear()
        self._transport.abort()


class Connection(HttpToolsProtocol):
    """
    A connection that times out without a complete head, and that the application can close.

    When there are too many, the one that has waited longest for its client is closed. What is
    received behind a request waits, unparsed, until that one is answered.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # At its own limit uvicorn refuses all requests, of whichever connection.
        self._max_connections, self.limit_concurrency = self.limit_concurrency, None
        self._head_timeout: asyncio.TimerHandle | None = None
        self.waiting_since = self.loop.time()
        self._inner_app = self.app
        self.app = self._run_app
        self._unparsed = b""
        self._pending_bytes = 0  # of a head, or of trailers, that are not complete
        self._in_head = False
        self._refused: Exception | None = None
        # Data behind a request to close is not read; the others are refused by the application.
        self.parser.set_dangerous_leniencies(
            lenient_data_after_close=True, lenient_chunked_length=True, lenient_version=True
        )

    async def _run_app(self, scope: Any, receive: Receive, send: Send) -> None:
        """Run the application with the extension that closes the connection."""
        self.waiting_since = self.loop.time()
        scope["extensions"] = {CLOSE: self._close}
        with suppress(asyncio.CancelledError):  # the server stops; uvicorn would log a traceback
            await self._inner_app(scope, receive, send)

    def _close(self, flush: bool) -> None:  # noqa: FBT001 - a callback's one argument
        """Close the connection, at once or after the buffered bytes are sent."""
        if flush:
            self.transport.close()
        else:
            self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its base
        """Start the timeout of the first head."""
        joined: Any = JoinedWrites(transport, self.loop)  # has what uvicorn calls of a transport
        super().connection_made(joined)
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
        return not self._is_answering or self.flow.write_paused

    @property
    def _is_answering(self) -> bool:
        """True from the end of a request to the end of its response."""
        if self.pipeline:  # the last request waits for one before it
            return True
        cycle = self.cycle
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def data_received(self, data: bytes) -> None:
        """Process data; single bytes of a head do not restart its timeout."""
        if self._refused is None:
            self._parse(self._unparsed + data)

    def _parse(self, data: bytes) -> None:
        """Parse data up to a request that is being answered."""
        self._unset_keepalive_if_required()
        position = 0
        while position < len(data) and not self._is_answering:
            part = data[position : position + _PART_BYTES]
            try:
                position += self._parse_part(part)
            except (httptools.HttpParserError, RefusedError) as error:
                self._refuse(error)
                return
        self._unparsed = data[position:]
        if self._unparsed:
            self.flow.pause_reading()
        if self.cycle is None or self.cycle.response_complete:
            self._start_head_timeout()
        else:
            self._stop_head_timeout()

    def _parse_part(self, part: bytes) -> int:
        """Parse a part of the received data; return the bytes that were parsed."""
        try:
            self.parser.feed_data(part)
        except httptools.HttpParserUpgrade as upgrade:  # ignored: it is answered in HTTP/1.1
            parsed: int = upgrade.args[0]
            return parsed
        self._pending_bytes += len(part)
        if self._pending_bytes > MAX_HEAD_BYTES:
            raise RefusedError(_HEAD_TOO_LONG)
        if self._in_head and self.parser.get_http_version() == "2.0":
            raise RefusedError(_OTHER_VERSION)
        return len(part)

    def on_message_begin(self) -> None:
        """Begin to read a head."""
        super().on_message_begin()
        self._in_head, self._pending_bytes = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header, but none that comes behind a body."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the application, unless the head is refused."""
        self._in_head, self._pending_bytes = False, 0
        _check_head(self.url, self.headers, self.parser.get_http_version())
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass on a piece of the body."""
        self._pending_bytes = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Go on with the next request, or wait for it."""
        self.waiting_since = self.loop.time()
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if self._refused is not None:
            self._refuse(self._refused)
        elif self._unparsed:
            self._parse(self._unparsed)

    def pause_writing(self) -> None:
        """Wait until the client has read more of a response."""
        self.waiting_since = self.loop.time()
        super().pause_writing()

    def _refuse(self, error: Exception) -> None:
        """Refuse a malformed request and close, after the response to one before it."""
        self._refused = error
        if self._is_answering:
            return
        text = "Invalid HTTP request received."
        self.logger.warning(text)
        cycle = self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            cause = error.__context__ if isinstance(error, httptools.HttpParserError) else error
            status = cause.status if isinstance(cause, RefusedError) else _BAD_REQUEST
            head = f"HTTP/1.1 {status} {responses[status]}\r\ncontent-length: {len(text)}\r\n"
            more = "content-type: text/plain; charset=utf-8\r\nconnection: close\r\n\r\n"
            self.transport.write(f"{head}{more}{text}".encode())
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


def _check_head(target: bytes, headers: list[tuple[bytes, bytes]], version: str) -> None:
    """Check what the parser does not: the target, the host and the transfer coding."""
    names = [name for name, _ in headers]
    hosts = names.count(b"host")
    if hosts > 1 or (not hosts and version == "1.1") or target[:1] not in {b"/", b"*"}:
        raise RefusedError(_BAD_REQUEST)
    if b"transfer-encoding" in names:
        codings = [value.lower() for name, value in headers if name == b"transfer-encoding"]
        if codings != [b"chunked"]:
            raise RefusedError(_NOT_IMPLEMENTED)


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


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Build an event loop: that of uvloop, which does not exist for Windows, if it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


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
