"""A pool of connections of aiohttp, for many requests in flight: httpx takes twice the time."""

from __future__ import annotations

import asyncio
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from ledgerkit.transport.deadlines import Deadlines
from ledgerkit.transport.response_body import BodyReader

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Coroutine, Mapping

    import aiohttp
    import yarl
    from aiohttp.connector import Connection

    from ledgerkit.transport.networks import Proxy
    from ledgerkit.transport.response_body import BodyLimits

_KEEPALIVE_S = 30
# Received at once: asyncio allocates that much each time. Its own 256 KiB are mapped and unmapped
# by glibc, for every response, which takes as long as the rest of receiving it.
_RECEIVED_BYTES = 2**16
_SWITCHING_PROTOCOLS = 101
_ADDRESS = re.compile(r"https?://\S+")


class NoConnectionError(ConnectionError):
    """The host could not be connected to, so nothing was sent."""


class RawRequest(NamedTuple):
    """
    A GET, or a POST if there is a body, and the limits of its response.

    `target` is the path of its first line. Connecting has a time limit of its own, in seconds.
    """

    origin: str
    target: str
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


class UnreadBytesError(Exception):
    """Bytes came in on an idle connection, before the request: they are no response to it."""


class ConnectionPool:
    """A pool of connections; its aiohttp session opens on the loop that first uses it."""

    def __init__(
        self,
        proxy: Proxy | None,
        tls: ssl.SSLContext,
        max_connections: int,
        headers: Mapping[str, str],
    ) -> None:
        # Imported here: on the loop the import would delay the first requests past their limit.
        import aiohttp
        import yarl

        self._new_url = yarl.URL
        self._roots: dict[str, yarl.URL] = {}
        self._errors = aiohttp
        self._proxy = None if proxy is None else yarl.URL(proxy.url)
        if self._proxy is not None and proxy is not None and proxy.login is not None:
            user, password = proxy.login
            self._proxy = self._proxy.with_user(user).with_password(password.reveal())
        self._tls = tls
        self._max_connections = max_connections
        self._headers = headers
        self._session: aiohttp.ClientSession | None = None
        self._deadlines = Deadlines()

    async def send(self, request: RawRequest) -> RawResponse:
        """Send a request over a connection without unread bytes."""
        for _ in range(self._max_connections):
            try:
                exchange = self._exchange(request)
                return await self._deadlines.limit(exchange, request.limits.deadline)
            except UnreadBytesError:  # nothing was sent, and the connection is closed
                continue
            except TimeoutError:
                raise
            except self._errors.ClientError as error:
                problem = self._error(error)
            raise problem
        msg = "the host sends data over connections without a request"
        raise ConnectionError(msg)

    async def _exchange(self, request: RawRequest) -> RawResponse:
        """Send a request over an idle connection, or a new one."""
        session = self._session or self._open()
        response = await session.request(
            "GET" if request.body is None else "POST",
            self._url(request.origin, request.target),
            headers=request.headers,
            data=request.body,
            allow_redirects=False,
            timeout=_timeout(request.connect_s),
        )
        if response.status == _SWITCHING_PROTOCOLS:
            response.close()
            msg = "the host continues with another protocol"
            raise ConnectionError(msg)
        try:
            headers = response.headers
            encodings = headers.getall("content-encoding", ())
            body = BodyReader(request.limits, encodings, headers.get("content-length"))
            content = await _read(response.content, body)
        except BaseException:
            response.close()
            raise
        close = cast("_Response", response).close_connection
        pause, location = headers.get("retry-after"), headers.get("location")
        return RawResponse(response.status, pause, content, close, location)

    def _error(self, error: aiohttp.ClientError) -> ConnectionError:
        """Return an error of aiohttp without the address, which may contain a key."""
        if isinstance(error, self._errors.ClientHttpProxyError):
            return ConnectionError(f"the proxy does not connect to the host: HTTP {error.status}")
        if isinstance(error, self._errors.ClientResponseError):  # not HTTP
            return ConnectionError(error.message)
        text = _ADDRESS.sub("the host", str(error))
        if isinstance(error, self._errors.ClientConnectorError):
            return NoConnectionError(text)
        return ConnectionError(text)

    def _url(self, origin: str, target: str) -> yarl.URL:
        """Return the address of a request; without a query the origin is not parsed again."""
        if "?" in target:
            return self._new_url(origin + target, encoded=True)
        root = self._roots.get(origin)
        if root is None:
            root = self._roots[origin] = self._new_url(origin)
        return root.with_path(target, encoded=True)

    def _open(self) -> aiohttp.ClientSession:
        """Open the session: without cookies, and with no proxy or login of the environment."""
        import aiohttp

        request_class, response_class = _classes()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._max_connections, ssl=self._tls, keepalive_timeout=_KEEPALIVE_S
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
            proxy=self._proxy,
            auto_decompress=False,
            request_class=request_class,
            response_class=response_class,
        )
        return self._session

    async def aclose(self) -> None:
        """Close all connections."""
        self._deadlines.close()
        if self._session is not None:
            await self._session.close()


async def _read(content: aiohttp.StreamReader, body: BodyReader) -> bytes:
    """Read a body; what takes more than one step is unpacked in a thread."""
    try:
        while not content.at_eof():
            body.add(await content.readany())
            if body.unpack_step():
                await asyncio.to_thread(body.unpack)
        return await asyncio.to_thread(body.whole) if body.is_large else body.whole()
    finally:
        body.stop()


class _Response(Protocol):
    """A response that can close its connection, even after it was returned to the pool."""

    close_connection: Callable[[], None]


@cache
def _classes() -> tuple[type[aiohttp.ClientRequest], type[aiohttp.ClientResponse]]:
    """Return subclasses of aiohttp's requests and responses that know their connection."""
    import aiohttp

    class Request(aiohttp.ClientRequest):
        """A request that is not sent over a connection with unread bytes."""

        def send(self, conn: Connection) -> Coroutine[Any, Any, aiohttp.ClientResponse]:
            if conn.protocol is None or conn.protocol.should_close:
                raise UnreadBytesError
            transport: Any = conn.transport
            if hasattr(transport, "max_size"):  # not on every platform's loop
                transport.max_size = _RECEIVED_BYTES
            return super().send(conn)

    class Response(aiohttp.ClientResponse):
        """A response that can close its connection."""

        def start(self, connection: Connection) -> Coroutine[Any, Any, aiohttp.ClientResponse]:
            if connection.protocol is not None:
                self.close_connection = connection.protocol.close
            return super().start(connection)

    return Request, Response


@lru_cache(maxsize=16)
def _timeout(connect_s: float) -> aiohttp.ClientTimeout:
    """Return a timeout for connecting only; cached, because most requests have the same."""
    import aiohttp

    return aiohttp.ClientTimeout(sock_connect=connect_s)
