"""Connections to hosts with aiohttp, kept open for later requests."""

from __future__ import annotations

import asyncio
import io
import os
import re
import ssl
import time
import weakref
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp  # noqa: TID253 - this module loads with the first ledger that has hosts
import yarl

from ledgerkit.errors import InvalidRequestError
from ledgerkit.transport import background_loop, forks, networks
from ledgerkit.transport.exchange import HEADERS, Connections, NoConnectionError, http_response
from ledgerkit.transport.response_body import BodyReader

if TYPE_CHECKING:
    from ledgerkit.api.calls import Response, Surface
    from ledgerkit.transport.exchange import RawRequest
    from ledgerkit.transport.networks import Proxy

_KEEPALIVE_S = 30
_SOCKS_PORT = 1080
_SWITCHING_PROTOCOLS = 101
_ADDRESS = re.compile(r"https?://\S+")


class NetworkConnections(Connections):
    """The connections of one ledger; they open on the loop that first uses them."""

    def __init__(self, addresses: Mapping[Surface, str], max_connections: int) -> None:
        self._max_connections = max_connections
        self._proxies = {surface: networks.proxy_for(url) for surface, url in addresses.items()}
        proxies = {proxy for proxy in self._proxies.values() if proxy is not None}
        for proxy in proxies:
            _check_proxy(proxy)
        urls = [*addresses.values(), *(proxy.url for proxy in proxies)]
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts no certificate
        if any(urlsplit(url).scheme == "https" for url in urls):
            self._tls = _trusted_certificates()  # takes some 20 ms
        self._pools = _Pools()
        self._end: weakref.finalize[..., NetworkConnections] | None = None
        forks.register(self)

    def after_fork(self) -> None:
        """Open new connections in a forked child."""
        forks.inherited.append(self._pools)
        self._pools = _Pools()
        if self._end is not None:
            self._end.detach()
            self._end = None

    async def send(self, request: RawRequest) -> Response:
        """Send a request over an idle connection or a new one, and return its response."""
        proxy = self._proxies[request.surface]
        if request.needs_new_connection:
            pool = _Pool(self._open_session(proxy))
            pool.is_given_up = True  # after this request
        else:
            pool = self._pool(proxy)
        pool.n_requests += 1
        try:
            async with (
                asyncio.timeout(request.deadline - time.monotonic()),
                _begin(pool.session, request, proxy) as response,
            ):
                body = await _read_body(response, request)
                give_up = partial(self._give_up, pool)
                return http_response(response.status, response.headers, body, give_up)
        except TimeoutError:
            raise
        except (aiohttp.ClientError, aiohttp.http.HttpProcessingError) as error:
            problem = _connection_error(error)
        finally:
            pool.n_requests -= 1
            if pool.is_given_up:
                await pool.close_if_unused()
        raise problem

    def _pool(self, proxy: Proxy | None) -> _Pool:
        """Return the pool of a SOCKS proxy, or the pool of all other requests."""
        key = proxy if proxy is not None and proxy.is_socks else None
        if self._end is None:  # made after the loop, and so called before its end
            self._end = weakref.finalize(self, _close_later, self._pools)
        if self._pools.are_closed:
            msg = "the connections of the ledger are closed"
            raise ConnectionError(msg)
        if key not in self._pools:
            self._pools[key] = _Pool(self._open_session(key))
        return self._pools[key]

    async def _give_up(self, pool: _Pool) -> None:
        """Use a pool no more, after a connection of it returned the response to another request."""
        for key in [key for key, other in self._pools.items() if other is pool]:
            del self._pools[key]
        pool.is_given_up = True
        await pool.close_if_unused()

    def _open_session(self, proxy: Proxy | None) -> aiohttp.ClientSession:
        """Open a session of aiohttp without cookies, redirects and unpacking."""
        options: dict[str, Any] = {
            "limit": self._max_connections,
            "ssl": self._tls,
            "keepalive_timeout": _KEEPALIVE_S,
        }
        if proxy is not None and proxy.is_socks:
            from aiohttp_socks import ProxyConnector

            user, password = proxy.login or (None, None)
            options |= {"username": user, "password": password and password.reveal()}
            parts = urlsplit(proxy.url)
            connector: aiohttp.TCPConnector = ProxyConnector(
                parts.hostname or "", parts.port or _SOCKS_PORT, **options
            )
        else:
            connector = aiohttp.TCPConnector(**options)
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers=HEADERS,
            timeout=aiohttp.ClientTimeout(total=None),  # requests have deadlines
        )

    async def aclose(self) -> None:
        await self._pools.aclose()


def _connection_error(error: Exception) -> ConnectionError:
    """Return an error of aiohttp without the address, which may contain a key."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return ConnectionError(f"the proxy does not connect to the host: HTTP {error.status}")
    if isinstance(error, aiohttp.http.HttpProcessingError | aiohttp.ClientResponseError):
        return ConnectionError(error.message)
    text = _ADDRESS.sub("the host", str(error))
    if isinstance(error, aiohttp.ClientConnectorError):
        return NoConnectionError(text)
    return ConnectionError(text)


class _Pool:
    """A session of aiohttp; once it is given up, it is closed after its last request."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session
        self.n_requests = 0
        self.is_given_up = False

    async def close_if_unused(self) -> None:
        """Close a session that is given up and has no more requests."""
        if self.is_given_up and not self.n_requests:
            await self.session.close()


class _Pools(dict["Proxy | None", _Pool]):
    """The pools of a ledger; once they are closed, none is opened."""

    are_closed = False

    async def aclose(self) -> None:
        self.are_closed = True
        while self:
            await self.popitem()[1].session.close()


def _close_later(pools: _Pools) -> None:
    """Close the connections of a ledger that was garbage-collected without being closed."""
    background_loop.current().run_later(pools.aclose())


def _begin(
    session: aiohttp.ClientSession, request: RawRequest, proxy: Proxy | None
) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
    """Return a context manager that sends a request, and receives the head of its response."""
    url = yarl.URL(request.url, encoded=True)
    options: dict[str, Any] = {"headers": request.headers}
    if proxy is not None and not proxy.is_socks:
        options = _proxy_options(proxy, url, request.headers)
    if request.body is not None:  # a stream, because aiohttp warns of long bytes
        options["data"] = io.BytesIO(request.body)
    return session.request(request.method, url, allow_redirects=False, **options)


async def _read_body(response: aiohttp.ClientResponse, request: RawRequest) -> bytes:
    if response.status == _SWITCHING_PROTOCOLS:
        msg = "the host continues with another protocol"
        raise ConnectionError(msg)
    encodings = response.headers.getall("content-encoding", ())
    reader = BodyReader(request, encodings, response.headers.get("content-length"))
    while not response.content.at_eof():
        await reader.add_async(await response.content.readany())
    return reader.whole()


def _proxy_options(proxy: Proxy, url: yarl.URL, headers: dict[str, str]) -> dict[str, Any]:
    """Return the options of a request through a proxy; only a tunnel has separate headers."""
    # Idle connections are found by the proxy's headers. aiohttp adds the host to them after it
    # has opened a connection, and would not find that one again.
    proxy_headers = {"Host": url.host_port_subcomponent or ""}
    if url.scheme == "https":
        proxy_headers |= proxy.headers()
    else:
        headers = headers | proxy.headers()
    return {"headers": headers, "proxy": proxy.url, "proxy_headers": proxy_headers}


def _check_proxy(proxy: Proxy) -> None:
    proxy.check()
    if proxy.scheme in ("socks5", "socks5h"):
        from ledgerkit.extras import require

        require("aiohttp_socks", "socks", "A SOCKS proxy")
    elif proxy.scheme not in ("http", "https"):
        msg = f"the {proxy.scheme} proxy of the environment cannot be used"
        raise InvalidRequestError(msg, remedy="Use an http or a SOCKS5 proxy.", field="proxy")


def _trusted_certificates() -> ssl.SSLContext:
    """Return a context that trusts the environment's certificates, or Mozilla's."""
    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context()  # OpenSSL reads the variables
    import certifi

    return ssl.create_default_context(cafile=certifi.where())
