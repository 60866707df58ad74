"""A connection pool of aiohttp, for many requests in flight: httpx takes twice the time."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping, Sequence

    import aiohttp

    from ledgerkit.transport.networks import Proxy

_KEEPALIVE_S = 30


class NoConnectionError(ConnectionError):
    """The host could not be connected to, so nothing was sent."""


class RawResponse(NamedTuple):
    """A response as received: its body still has these content encodings, the last outermost."""

    status: int
    retry_after: str | None
    encodings: Sequence[str]
    body: bytes


class AiohttpPool:
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

        self._url = yarl.URL
        self._connector_error = aiohttp.ClientConnectorError
        self._response_error = aiohttp.ClientResponseError
        self._proxy = None if proxy is None else yarl.URL(proxy.url)
        if self._proxy is not None and proxy is not None and proxy.login is not None:
            user, password = proxy.login
            self._proxy = self._proxy.with_user(user).with_password(password.reveal())
        self._tls = tls
        self._max_connections = max_connections
        self._headers = headers
        self._session: aiohttp.ClientSession | None = None

    async def send(
        self, url: str, headers: dict[str, str], body: bytes | None, connect_s: float
    ) -> RawResponse:
        """Send a GET, or a POST if there is a body; connecting alone is limited here."""
        session = self._session or self._open()
        request = session.request(
            "GET" if body is None else "POST",
            self._url(url, encoded=True),
            headers=headers,
            data=body,
            allow_redirects=False,
            timeout=_timeout(connect_s),
        )
        try:
            async with request as response:
                received = response.headers
                return RawResponse(
                    response.status,
                    received.get("retry-after"),
                    received.getall("content-encoding", ()),
                    await response.read(),
                )
        except self._connector_error as error:
            problem: ConnectionError = NoConnectionError(str(error))
        except self._response_error as error:  # not HTTP; the error's text quotes the whole address
            problem = ConnectionError(error.message)
        raise problem

    def _open(self) -> aiohttp.ClientSession:
        """Open the session: without cookies, and with no proxy or login of the environment."""
        import aiohttp

        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._max_connections, ssl=self._tls, keepalive_timeout=_KEEPALIVE_S
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
            proxy=self._proxy,
            auto_decompress=False,
        )
        return self._session

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()


@lru_cache(maxsize=16)
def _timeout(connect_s: float) -> aiohttp.ClientTimeout:
    """Return a timeout for connecting only; cached, because most requests have the same."""
    import aiohttp

    return aiohttp.ClientTimeout(sock_connect=connect_s)
