"""
A pool of connections for many requests in flight; httpx takes several times as long.

aiohttp opens and keeps the connections, and parses the responses. Its session and its request and
response objects are not used: they also handle cookies, redirects, logins, uploads and traces, and
take nearly as long again.
"""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.transport.deadlines import Deadlines
from ledgerkit.transport.response_body import BodyReader

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    import aiohttp
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import Connection
    from aiohttp.http import HttpProcessingError, RawResponseMessage

    from ledgerkit.transport.networks import Proxy
    from ledgerkit.transport.response_body import BodyLimits

_KEEPALIVE_S = 30
# Received at once. asyncio allocates as much for each response: its own 256 KiB are mapped and
# unmapped by glibc, in a process that has freed no larger block, which takes some 14 us.
_RECEIVED_BYTES = 2**16
_INTERIM = range(100, 200)
_SWITCHING_PROTOCOLS = 101
_TARGET = re.compile("[!-~]+")  # printable ASCII without the space, which would end it
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
        self._lost = (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)
        self._hosts: dict[str, _Host] = {}
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
        except (self._aiohttp.ClientError, self._aiohttp.http.HttpProcessingError) as error:
            problem = self._error(error)
        raise problem

    async def _exchange(self, request: RawRequest) -> RawResponse:
        """Send a request over a connection without unread bytes, and read its response."""
        host = self._hosts.get(request.origin) or self._add_host(request.origin)
        may_repeat = request.body is None  # only a GET, once
        for _ in range(self._max_connections + 1):
            connection = await self._connect(host.request, request.connect_s)
            protocol = connection.protocol
            if protocol is None or protocol.should_close:  # nothing was sent
                connection.close()
                continue
            try:
                response = await _exchange_over(protocol, host.serialize(request), request.limits)
            except BaseException as error:
                connection.close()
                is_lost = isinstance(error, self._lost)
                if not (is_lost and may_repeat):  # the host may have closed an idle connection
                    raise
                may_repeat = False
            else:
                connection.release()
                return response
        msg = "the host sends data over connections without a request"
        raise ConnectionError(msg)

    def _add_host(self, origin: str) -> _Host:
        """Add a host, whose connections are opened for a request of aiohttp."""
        import yarl

        url = yarl.URL(origin)
        request = self._aiohttp.ClientRequest(
            "GET",
            url,
            headers=self._headers,
            proxy=self._proxy,
            # Idle connections are looked up by these headers. aiohttp adds the host to them after
            # it has opened the first connection, and would not find that one again.
            proxy_headers={**self._headers, "Host": url.host_port_subcomponent or ""},
        )
        host = self._hosts[origin] = _Host(request)
        return host

    async def _connect(self, prepared: aiohttp.ClientRequest, connect_s: float) -> Connection:
        """Return an idle connection, or a new one."""
        connector = self._connector or self._open()
        connection = await connector.connect(prepared, [], _timeout(connect_s))
        transport: Any = connection.transport
        if hasattr(transport, "max_size"):  # not on every platform's loop
            transport.max_size = _RECEIVED_BYTES
        return connection

    def _error(self, error: aiohttp.ClientError | HttpProcessingError) -> ConnectionError:
        """Return an error of aiohttp without the address, which may contain a key."""
        if isinstance(error, self._aiohttp.ClientHttpProxyError):
            return ConnectionError(f"the proxy does not connect to the host: HTTP {error.status}")
        if isinstance(error, self._aiohttp.http.HttpProcessingError):
            return ConnectionError(error.message)
        text = _ADDRESS.sub("the host", str(error))
        if isinstance(error, self._aiohttp.ClientConnectorError):
            return NoConnectionError(text)
        return ConnectionError(text)

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


class _Host:
    """
    A host and what all requests to it have in common.

    Parameters
    ----------
    request
        The request of aiohttp that connections are opened for.
    """

    def __init__(self, request: aiohttp.ClientRequest) -> None:
        self.request = request
        is_forwarded = request.proxy is not None and not request.is_ssl()
        self._prefix = str(request.url.origin()) if is_forwarded else ""
        self._headers = ""

    def serialize(self, request: RawRequest) -> bytes:
        """Return a request as it is sent; connecting comes first, and may add a proxy's login."""
        self._headers = self._headers or _header_lines(self.request.headers)
        own, body = _header_lines(request.headers), request.body or b""
        if not _TARGET.fullmatch(request.target):
            msg = "the path of a request cannot be sent: it has characters that are not quoted"
            raise ValueError(msg)
        method = "GET"
        if request.body is not None:
            method, own = "POST", f"{own}content-length: {len(body)}\r\n"
        first = f"{method} {self._prefix}{request.target} HTTP/1.1\r\n"
        return f"{first}{self._headers}{own}\r\n".encode() + body


def _header_lines(headers: Mapping[str, str]) -> str:
    """Return headers as they are sent."""
    if not all(map(str.isprintable, headers.values())):
        msg = "a header cannot be sent: it has control characters"  # its value may be the key
        raise ValueError(msg)
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


async def _exchange_over(
    protocol: ResponseHandler, request: bytes, limits: BodyLimits
) -> RawResponse:
    """Send a request, receive its response, and return what is used of it."""
    protocol.set_response_params(read_until_eof=True, auto_decompress=False)
    transport: Any = protocol.transport  # there is one while `should_close` is false
    transport.write(request)
    message, content = await _receive_head(protocol)
    headers = message.headers
    encodings = headers.getall("content-encoding", ())
    body = await _read(content, BodyReader(limits, encodings, headers.get("content-length")))
    pause, location = headers.get("retry-after"), headers.get("location")
    return RawResponse(message.code, pause, body, protocol.close, location)


async def _receive_head(
    protocol: ResponseHandler,
) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
    """Receive the headers of a response; interim responses precede it."""
    while True:
        message, content = await protocol.read()
        if message.code == _SWITCHING_PROTOCOLS:
            msg = "the host continues with another protocol"
            raise ConnectionError(msg)
        if message.code not in _INTERIM:
            return message, content


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
