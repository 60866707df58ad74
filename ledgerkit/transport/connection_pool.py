"""
A pool of connections for many requests in flight, which httpx would take ten times as long for.

asyncio has the connections, TLS and timeouts; httptools, the parser of Node.js, reads responses.
"""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

from ledgerkit.transport.response_body import BodyReader

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from ledgerkit.transport.networks import Proxy
    from ledgerkit.transport.response_body import BodyLimits

_KEEPALIVE_S = 30.0
_MAX_HEAD_BYTES = 2**16  # of headers, trailers and what surrounds chunks; the parser has no limit
_SURPLUS = "the host sent bytes that no request asked for"
_MAX_QUOTED = 100  # bytes of a malformed response
_HTTP_PORT = 80
_FIRST_FINAL, _OK = 200, range(200, 300)


class NoConnectionError(ConnectionError):
    """The host could not be connected to, so nothing was sent."""


class _UnansweredError(ConnectionError):
    """The host closed the connection without a byte of a response."""


class Origin(NamedTuple):
    """Where requests are sent: the host and port of an address, and the header that names them."""

    is_tls: bool
    host: str
    port: int
    header: bytes


class RawRequest(NamedTuple):
    """
    A GET, or a POST if there is a body, and the limits of its response.

    `target` is the path of its first line. Connecting has a time limit of its own, in seconds.
    """

    origin: Origin
    target: bytes
    headers: Mapping[str, str]
    body: bytes | None
    connect_s: float
    limits: BodyLimits


class RawResponse(NamedTuple):
    """
    The parts of a response that are used, with the body unpacked.

    `close` closes the connection that it was received on.
    """

    status: int
    retry_after: str | None
    body: bytes
    close: Callable[[], object] | None
    location: str | None = None


class ConnectionPool:
    """A pool of connections to any hosts, which open on the loop of the first request."""

    def __init__(
        self, proxy: Proxy | None, tls: ssl.SSLContext, headers: Mapping[str, str]
    ) -> None:
        import httptools  # here: on the loop the import would delay the first requests

        self._new_parser = httptools.HttpResponseParser
        self._parser_errors = (httptools.HttpParserError, httptools.HttpParserUpgrade)
        self._proxy = None if proxy is None else _proxy_address(proxy.url)
        self._proxy_login = b"" if proxy is None else _login(proxy)
        self._tls = tls
        self._headers = _header_lines(headers)
        self._idle: dict[Origin, list[_Connection]] = {}
        self._open: set[_Connection] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def send(self, request: RawRequest) -> RawResponse:
        """Send a request over an idle connection, or a new one."""
        data = self._encode(request)
        while True:
            self._check_open()
            idle = self._take_idle(request.origin)
            connection = idle or await self._connect(request)
            try:
                response = await connection.exchange(data, request.limits)
            except _UnansweredError:  # the host may have closed it before the request
                if idle is None or request.body is not None:
                    raise
                continue
            if connection.is_open:
                self._add_idle(request.origin, connection)
            return response

    def _encode(self, request: RawRequest) -> bytes:
        """Return the bytes of a request."""
        origin, target, headers, body, _, _ = request
        lines = self._headers + _header_lines(headers)
        if self._proxy is not None and not origin.is_tls:
            target = b"http://%b%b" % (origin.header, target)
            lines += self._proxy_login
        if body is None:
            return b"GET %b HTTP/1.1\r\nhost: %b\r\n%b\r\n" % (target, origin.header, lines)
        head = b"POST %b HTTP/1.1\r\nhost: %b\r\n%bcontent-length: %d\r\n\r\n"
        return head % (target, origin.header, lines, len(body)) + body

    def _take_idle(self, origin: Origin) -> _Connection | None:
        """Return the idle connection that was used last; None if there is none."""
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            if connection.is_open:
                return connection
        return None

    def _add_idle(self, origin: Origin, connection: _Connection) -> None:
        """Keep a connection open for the next request."""
        connection.idle_since = time.monotonic()
        self._idle.setdefault(origin, []).append(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_KEEPALIVE_S, self._close_idle)

    def _close_idle(self) -> None:
        """Close the connections that were idle for long."""
        self._timer = None
        before = time.monotonic() - _KEEPALIVE_S
        for origin, idle in list(self._idle.items()):
            del self._idle[origin]
            for connection in idle:
                if connection.idle_since <= before:
                    connection.close()
                elif connection.is_open:
                    self._idle.setdefault(origin, []).append(connection)
        if self._idle:
            self._timer = asyncio.get_running_loop().call_later(_KEEPALIVE_S, self._close_idle)

    async def _connect(self, request: RawRequest) -> _Connection:
        """Open a connection, through the proxy if there is one."""
        connection = _Connection(self._new_parser, self._parser_errors, self._open)
        try:
            async with asyncio.timeout(request.connect_s):
                await self._open_connection(connection, request)
            self._check_open()
        except BaseException as error:
            connection.close()
            if not isinstance(error, OSError) or isinstance(error, TimeoutError | _ProxyError):
                raise
            problem = NoConnectionError(str(error))
        else:
            return connection
        raise problem

    def _check_open(self) -> None:
        """Raise if the pool was closed, as it may be while a connection is opened."""
        if self._is_closed:
            msg = "the connections are closed"
            raise ConnectionError(msg)

    async def _open_connection(self, connection: _Connection, request: RawRequest) -> None:
        """Connect to the host, or to the proxy and for TLS through it."""
        loop, origin = asyncio.get_running_loop(), request.origin
        tls = self._tls if origin.is_tls else None
        host, port = self._proxy or (origin.host, origin.port)
        await loop.create_connection(
            lambda: connection,
            host,
            port,
            ssl=None if self._proxy else tls,
            happy_eyeballs_delay=0.25,  # RFC 8305, section 5
        )
        if self._proxy is None or tls is None:
            return
        host = f"[{origin.host}]" if ":" in origin.host else origin.host
        name = f"{host}:{origin.port}".encode()
        head = b"CONNECT %b HTTP/1.1\r\nhost: %b\r\n%b\r\n" % (name, name, self._proxy_login)
        await connection.open_tunnel(head, request.limits)
        await connection.start_tls(tls, origin.host)

    async def aclose(self) -> None:
        """Close all connections, and open no other."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        opened = list(self._open)
        for connection in opened:
            connection.close()
        if opened:
            await asyncio.wait([connection.lost for connection in opened], timeout=1.0)


class _ProxyError(ConnectionError):
    """The proxy answered, and does not connect to the host."""


class _Connection(asyncio.Protocol):
    """
    A connection, which sends one request after the other.

    Bytes that no request has asked for close it: they would be read as the next response.
    """

    def __init__(
        self, new_parser: Any, parser_errors: tuple[type[Exception], ...], opened: set[_Connection]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._new_parser, self._parser_errors = new_parser, parser_errors
        self._parser = new_parser(self)
        self._opened = opened
        self._transport: Any = None
        self.is_open, self.idle_since = False, 0.0
        self.lost: asyncio.Future[None] = self._loop.create_future()
        # The state of the exchange: complete where none is under way.
        self._is_complete, self._is_tunnel = True, False
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    # Requests -----------------------------------------------------------------------------

    async def exchange(self, data: bytes, limits: BodyLimits) -> RawResponse:
        """Send a request and return its response; a failure closes the connection."""
        if not self.is_open:
            msg = "the host sends data over connections without a request"
            raise ConnectionError(msg)
        self._begin(limits)
        try:
            self._transport.write(data)
            while self._is_behind or not self._is_complete:
                await self._wait()
            content = await self._content()
        except BaseException:
            self.close()
            raise
        finally:
            self._is_complete = True
            if self._body is not None:
                self._body.stop()
        pause, location = self._header(b"retry-after"), self._header(b"location")
        return RawResponse(self._status, pause, content, self.close, location)

    def _begin(self, limits: BodyLimits) -> None:
        """Begin an exchange."""
        self._limits = limits
        self._headers: dict[bytes, list[str]] = {}
        self._status, self._n_unread = 0, 0
        self._body: BodyReader | None = None
        self._error: BaseException | None = None
        self._is_complete = self._is_behind = self._is_answered = False
        if self._timer is None or self._timer.when() > limits.deadline:
            self._set_timer()

    async def _content(self) -> bytes:
        """Return the whole body; a tunnel has none."""
        body = self._body
        if body is None:
            return b""
        return await asyncio.to_thread(body.whole) if body.is_large else body.whole()

    async def _wait(self) -> None:
        """Wait until the response is complete, or has a part to unpack in a thread."""
        if not (self._is_behind or self._error):
            self._waiter = self._loop.create_future()
            await self._waiter
        if self._error is not None:
            error, self._error = self._error, None
            try:
                raise error
            finally:
                del error  # its traceback holds this frame
        if self._is_behind:
            async with asyncio.timeout_at(self._limits.deadline):
                await asyncio.to_thread(cast("BodyReader", self._body).unpack)
            self._is_behind = False
            if self.is_open:
                self._transport.resume_reading()

    def _set_timer(self) -> None:
        """Call `_check_time` at the end of the time; later requests use the timer again."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._limits.deadline, self._check_time)

    def _check_time(self) -> None:
        """End the exchange if its time is over."""
        self._timer = None
        if self._is_complete:
            return
        if self._loop.time() < self._limits.deadline:
            self._set_timer()
        else:
            self._fail(TimeoutError())

    async def open_tunnel(self, data: bytes, limits: BodyLimits) -> None:
        """Request a connection to the host from a proxy."""
        self._is_tunnel = True
        response = await self.exchange(data, limits)
        if response.status not in _OK:
            msg = f"the proxy does not connect to the host: HTTP {response.status}"
            raise _ProxyError(msg)
        self._is_tunnel = False
        self._parser = self._new_parser(self)

    async def start_tls(self, tls: ssl.SSLContext, host: str) -> None:
        """Continue with TLS."""
        self._transport = await self._loop.start_tls(
            self._transport, self, tls, server_hostname=host
        )

    def close(self) -> None:
        """Close the connection at once."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to use a connection."""
        self._transport = transport
        self.is_open = True
        self._opened.add(self)

    def data_received(self, data: bytes) -> None:
        """Read a part of the response."""
        if self._is_complete:
            self.close()
            return
        self._n_unread += len(data)
        is_first, self._is_answered = not self._is_answered, True
        try:
            self._parser.feed_data(data)
        except self._parser_errors as error:
            if self._is_complete:  # bytes follow the response
                self.is_open = False
            elif isinstance(error.__context__, Exception):  # of the methods below
                self._error = error.__context__
            else:
                line = data.splitlines()[0][:_MAX_QUOTED]
                reason = f"{error}; status line {line!r}" if is_first else str(error)
                self._error = ConnectionError(f"the response is not HTTP: {reason}")
        if self._n_unread > _MAX_HEAD_BYTES and not self._is_complete:
            self._error = ConnectionError("the headers of the response are too large")
        if self._is_complete or self._is_behind or self._error:
            self._wake()
        if self._is_complete and not self.is_open:
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        """End the exchange: without a length, the body is what came until now."""
        self.is_open = False
        self._opened.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if not self.lost.done():
            self.lost.set_result(None)
        if self._is_complete:
            return
        if error is None and self._body is not None and self._ends_with_connection():
            self._is_complete = True
            self._wake()
        elif self._is_answered:
            self._fail(error or ConnectionError("the connection was closed within the response"))
        else:
            reason = str(error) if error else "the host closed the connection without a response"
            self._fail(_UnansweredError(reason))

    def _ends_with_connection(self) -> bool:
        """Return True if the end of the connection ends the body."""
        return not self._headers.keys() & {b"content-length", b"transfer-encoding"}

    def _fail(self, error: BaseException) -> None:
        """End the exchange with an error."""
        self._error = error
        self._wake()

    def _wake(self) -> None:
        """Continue the request that waits."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # What the parser calls ----------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Refuse bytes after the response."""
        if self._is_complete:
            raise ConnectionError(_SURPLUS)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header."""
        self._headers.setdefault(name.lower(), []).append(value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        """Check the announced size; a proxy's tunnel has no body."""
        self._status = self._parser.get_status_code()
        if self._status < _FIRST_FINAL:
            return
        self._n_unread = 0
        if self._is_tunnel and self._status in _OK:
            self._is_complete = True
            return
        encodings = self._headers.get(b"content-encoding", ())
        self._body = BodyReader(self._limits, encodings, self._header(b"content-length"))

    def on_body(self, chunk: bytes) -> None:
        """Add a part of the body; what takes more than one step is unpacked in a thread."""
        if self._body is None:
            raise ConnectionError(_SURPLUS)
        self._n_unread = 0
        self._body.add(chunk)
        if not self._is_behind and self._body.unpack_step():
            self._is_behind = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        """End the response; one that asks to continue is followed by another."""
        if self._status < _FIRST_FINAL:
            self._headers.clear()
            self._n_unread = 0
            return
        self._is_complete = True
        if not self._parser.should_keep_alive():
            self.is_open = False

    def _header(self, name: bytes) -> str | None:
        """Return the first value of a header; None if there is none."""
        values = self._headers.get(name)
        return values[0] if values else None


def _header_lines(headers: Mapping[str, str]) -> bytes:
    """Return the lines of some headers."""
    return "".join(f"{name}: {text}\r\n" for name, text in headers.items()).encode()


def _proxy_address(url: str) -> tuple[str, int]:
    """Return the host and port of a proxy."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or _HTTP_PORT


def _login(proxy: Proxy) -> bytes:
    """Return the header with the login of a proxy, if it has one."""
    if proxy.login is None:
        return b""
    user, password = proxy.login
    basic = b64encode(f"{user}:{password.reveal()}".encode())
    return b"proxy-authorization: Basic %b\r\n" % basic
