"""The HTTP transports of a ledger: httpx, single connections, or a pool, by proxy and load."""

from __future__ import annotations

import ssl
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import urlsplit

from ledgerkit.errors import InvalidRequestError
from ledgerkit.transport import background_loop, networks
from ledgerkit.transport.connection_pool import ConnectionPool
from ledgerkit.transport.httpx_library import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

    from ledgerkit.transport.networks import Network, Proxy, Surface

AnyTransport = httpx.BaseTransport | httpx.AsyncBaseTransport
OwnTransport = httpx.AsyncBaseTransport | ConnectionPool

_HTTPX_POOL = 8  # with more requests in flight httpcore's shared pool gets slow


class SingleConnections(httpx.AsyncBaseTransport):
    """One connection for each request in flight: faster than a large shared pool of httpcore."""

    def __init__(self, connect: Callable[[], httpx.AsyncBaseTransport]) -> None:
        self._connect = connect
        self._all = [connect()]  # at once: it raises for a proxy that can't be used
        self._free = [*self._all]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request over a free connection, or a new one; closing the body frees it."""
        connection = self._free.pop() if self._free else self._open()
        release = partial(self._free.append, connection)
        try:
            response = await connection.handle_async_request(request)
        except BaseException:
            release()
            raise
        stream = cast("httpx.AsyncByteStream", response.stream)
        response.stream = _ReleasingBody(stream, release)
        return response

    def _open(self) -> httpx.AsyncBaseTransport:
        """Open one more connection."""
        self._all.append(self._connect())
        return self._all[-1]

    async def aclose(self) -> None:
        """Close all connections."""
        for connection in self._all:
            await connection.aclose()


class _ReleasingBody(httpx.AsyncByteStream):
    """A body whose connection is released when it is closed."""

    def __init__(self, stream: httpx.AsyncByteStream, release: Callable[[], None]) -> None:
        self.stream = stream
        self._release = release

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self.stream)

    async def aclose(self) -> None:
        """Close the body, without which the connection accepts no other request."""
        try:
            await self.stream.aclose()
        finally:
            self._release()


def check_transport(transport: AnyTransport) -> AnyTransport:
    """Return the transport; raise if it is not one of httpx."""
    if not isinstance(transport, httpx.BaseTransport | httpx.AsyncBaseTransport):
        rule = "an httpx.BaseTransport or httpx.AsyncBaseTransport"
        raise InvalidRequestError.refuse("transport", transport, rule)
    return transport


class Transports(NamedTuple):
    """The transport of each surface, and a function that opens one for a single request."""

    shared: dict[Surface, OwnTransport]
    connectors: dict[Surface, Callable[[], httpx.AsyncBaseTransport]]


def open_transports(network: Network, in_flight: int, headers: Mapping[str, str]) -> Transports:
    """Open the transport of each surface: one for all, unless their proxies differ."""
    urls = {s: url for s in networks.SURFACES if (url := network.address(s))}
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts no certificate
    if any(urlsplit(url).scheme == "https" for url in urls.values()):
        tls = httpx.create_ssl_context()  # takes some 20 ms
    proxies = {surface: networks.proxy_for(url) for surface, url in urls.items()}
    opened = {proxy: _open(proxy, tls, in_flight, headers) for proxy in set(proxies.values())}
    shared = {surface: opened[proxy] for surface, proxy in proxies.items()}
    return Transports(shared, {s: partial(_httpx_pool, p, tls, 1, 0) for s, p in proxies.items()})


def _open(
    proxy: Proxy | None, tls: ssl.SSLContext, in_flight: int, headers: Mapping[str, str]
) -> OwnTransport:
    """Open the transport that is fastest with this many requests in flight."""
    if proxy is not None:
        proxy.check()
    scheme = proxy.scheme if proxy else "http"
    try:
        if in_flight <= _HTTPX_POOL:
            return _httpx_pool(proxy, tls, in_flight)
        if scheme == "http" and find_spec("aiohttp"):
            return ConnectionPool(proxy, tls, in_flight, headers)
        return SingleConnections(lambda: _httpx_pool(proxy, tls, 1))
    except (ImportError, ValueError, httpx.InvalidURL):  # its frames hold the proxy's password
        msg = f"the {scheme} proxy of the environment cannot be used"
    remedy = "Use an http proxy, or for a SOCKS one: pip install 'httpx[socks]'."
    raise InvalidRequestError(msg, remedy=remedy, field="proxy")


def _httpx_pool(
    proxy: Proxy | None, tls: ssl.SSLContext, max_connections: int, max_idle: int | None = None
) -> httpx.AsyncBaseTransport:
    """Open httpx's own connection pool, which keeps all idle connections open by default."""
    max_idle = max_connections if max_idle is None else max_idle
    limits = httpx.Limits(max_connections=max_connections, max_keepalive_connections=max_idle)
    address = None if proxy is None else _httpx_proxy(proxy)
    return httpx.AsyncHTTPTransport(verify=tls, limits=limits, proxy=address)


def _httpx_proxy(proxy: Proxy) -> httpx.Proxy:
    """Return a proxy as httpx takes it."""
    login = None if proxy.login is None else (proxy.login[0], proxy.login[1].reveal())
    return httpx.Proxy(proxy.url, auth=login)


async def close_all(transports: Iterable[OwnTransport]) -> None:
    """Close each transport once."""
    for transport in set(transports):
        await transport.aclose()


def close_unclosed(loop: background_loop.Loop, transports: Sequence[OwnTransport]) -> None:
    """Close the transports of a ledger that was garbage-collected without being closed."""
    if loop.alive:
        loop.run_later(close_all(transports))
    else:
        background_loop.leave_to_parent(transports)
