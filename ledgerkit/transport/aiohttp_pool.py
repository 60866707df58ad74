"""A connection pool of aiohttp, for many requests in flight: httpx takes twice the time."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.transport import response_body
from ledgerkit.transport.response_body import BodyReader

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    import aiohttp

    from ledgerkit.transport.response_body import BodyLimits

_KEEPALIVE_S = 30


class NoConnectionError(ConnectionError):
    """The host could not be connected to, so nothing was sent."""


class RawResponse(NamedTuple):
    """The parts of a response that are used, with the body unpacked."""

    status: int
    retry_after: str | None
    body: bytes


class AiohttpPool:
    """A pool of connections; its aiohttp session opens on the loop that first uses it."""

    def __init__(
        self,
        proxy: str | None,
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
        self._proxy = None if proxy is None else yarl.URL(proxy)
        self._tls = tls
        self._max_connections = max_connections
        self._headers = headers
        self._session: aiohttp.ClientSession | None = None

    async def send(
        self,
        url: str,
        headers: dict[str, str],
        body: bytes | None,
        connect_s: float,
        limits: BodyLimits,
    ) -> RawResponse:
        """Send a GET, or a POST if there is a body; connecting has a time limit of its own."""
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
                encodings = received.getall("content-encoding", ())
                reader = BodyReader(limits, encodings, received.get("content-length"))
                content = await response_body.read_async(response.content.iter_any(), reader)
                return RawResponse(response.status, received.get("retry-after"), content)
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
