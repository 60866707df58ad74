"""A pool of connections of aiohttp, for many requests in flight: httpx takes twice the time."""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ledgerkit.transport.deadlines import Deadlines
from ledgerkit.transport.response_body import BodyReader

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    import aiohttp
    import yarl
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import Connection

    from ledgerkit.transport.networks import Proxy
    from ledgerkit.transport.response_body import BodyLimits

_KEEPALIVE_S = 30
# Received at once. asyncio allocates as much for each response: its own 256 KiB are mapped and
# unmapped by glibc, in a process that has freed no larger block, which takes some 14 us.
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
    """A pool of connections; its aiohttp connector opens on the loop that first uses it."""

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

        self._aiohttp = aiohttp
        self._new_url = yarl.URL
        self._roots: dict[str, yarl.URL] = {}
        self._proxy = None if proxy is None else yarl.URL(proxy.url)
        if self._proxy is not None and proxy is not None and proxy.login is not None:
            user, password = proxy.login
            self._proxy = self._proxy.with_user(user).with_password(password.reveal())
        self._tls = tls
        self._max_connections = max_connections
        self._headers = headers
        self._connector: aiohttp.TCPConnector | None = None
        self._deadlines = Deadlines()

    async def send(self, request: RawRequest) -> RawResponse:
        """Send a request and return its response."""
        try:
            return await self._deadlines.limit(self._exchange(request), request.limits.deadline)
        except TimeoutError:
            raise
        except self._aiohttp.ClientError as error:
            problem = self._error(error)
        raise problem

    async def _exchange(self, request: RawRequest) -> RawResponse:
        """Send a request over a connection without unread bytes, and read its response."""
        may_repeat = request.body is None
        for _ in range(self._max_connections + 1):
            prepared = self._prepare(request)
            connection = await self._connect(prepared, request.connect_s)
            protocol = cast("ResponseHandler", connection.protocol)
            try:
                response = await _start(prepared, connection, protocol)
            except UnreadBytesError:  # nothing was sent, and the connection is closed
                continue
            except (self._aiohttp.ClientOSError, self._aiohttp.ServerDisconnectedError):
                if not may_repeat:  # only a GET, once: the host may have closed an idle connection
                    raise
                may_repeat = False
                continue
            return await _receive(response, request.limits, protocol.close)
        msg = "the host sends data over connections without a request"
        raise ConnectionError(msg)

    def _prepare(self, request: RawRequest) -> aiohttp.ClientRequest:
        """Build a request as aiohttp sends it."""
        # A session of aiohttp would build it, too, and takes a sixth of the time for cookies,
        # redirects, logins and traces, which are not wanted here.
        return self._aiohttp.ClientRequest(
            "GET" if request.body is None else "POST",
            self._url(request.origin, request.target),
            headers={**self._headers, **request.headers},
            data=request.body,
            proxy=self._proxy,
            proxy_headers=self._headers,
        )

    async def _connect(self, prepared: aiohttp.ClientRequest, connect_s: float) -> Connection:
        """Return an idle connection, or a new one."""
        connector = self._connector or self._open()
        connection = await connector.connect(prepared, [], _timeout(connect_s))
        transport: Any = connection.transport
        if hasattr(transport, "max_size"):  # not on every platform's loop
            transport.max_size = _RECEIVED_BYTES
        return connection

    def _error(self, error: aiohttp.ClientError) -> ConnectionError:
        """Return an error of aiohttp without the address, which may contain a key."""
        if isinstance(error, self._aiohttp.ClientHttpProxyError):
            return ConnectionError(f"the proxy does not connect to the host: HTTP {error.status}")
        if isinstance(error, self._aiohttp.ClientResponseError):  # not HTTP
            return ConnectionError(error.message)
        text = _ADDRESS.sub("the host", str(error))
        if isinstance(error, self._aiohttp.ClientConnectorError):
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

    def _open(self) -> aiohttp.TCPConnector:
        """Open the connector, on the loop that it belongs to."""
        self._connector = self._aiohttp.TCPConnector(
            limit=self._max_connections, ssl=self._tls, keepalive_timeout=_KEEPALIVE_S
        )
        return self._connector

    async def aclose(self) -> None:
        """Close all connections."""
        self._deadlines.close()
        if self._connector is not None:
            await self._connector.close()


async def _start(
    prepared: aiohttp.ClientRequest, connection: Connection, protocol: ResponseHandler
) -> aiohttp.ClientResponse:
    """Send a request and receive the headers of its response; close the connection on failure."""
    protocol.set_response_params(read_until_eof=True, auto_decompress=False)
    if protocol.should_close:
        connection.close()
        raise UnreadBytesError
    try:
        response = await prepared.send(connection)
    except BaseException:
        connection.close()
        raise
    try:
        return await response.start(connection)
    except BaseException:
        response.close()
        raise


async def _receive(
    response: aiohttp.ClientResponse, limits: BodyLimits, close: Callable[[], object]
) -> RawResponse:
    """Receive the body of a response, and return what is used of it."""
    if response.status == _SWITCHING_PROTOCOLS:
        response.close()
        msg = "the host continues with another protocol"
        raise ConnectionError(msg)
    try:
        headers = response.headers
        encodings = headers.getall("content-encoding", ())
        body = BodyReader(limits, encodings, headers.get("content-length"))
        content = await _read(response.content, body)
    except BaseException:
        response.close()
        raise
    pause, location = headers.get("retry-after"), headers.get("location")
    return RawResponse(response.status, pause, content, close, location)


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


@lru_cache(maxsize=16)
def _timeout(connect_s: float) -> aiohttp.ClientTimeout:
    """Return a timeout for connecting only; cached, because most requests have the same."""
    import aiohttp

    return aiohttp.ClientTimeout(sock_connect=connect_s)
