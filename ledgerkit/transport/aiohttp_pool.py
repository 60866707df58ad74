"""Many requests in flight, asked of aiohttp itself: no object of httpx is made for any."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping, Sequence

    import aiohttp

_KEPT_S = 30  # an idle connection


class Reply(NamedTuple):
    """What came back: the body as it came, and what it was compressed with, in that order."""

    status: int
    pause: str | None
    encodings: Sequence[str]
    body: bytes


class Bulk:
    """
    Asks over a pool of connections; its session opens on the loop that uses it.

    Parameters
    ----------
    proxy
        The address of an http proxy, if there is one.
    tls
        Whom to trust.
    size
        Most connections at a time.
    headers
        What each request says.
    """

    def __init__(
        self, proxy: str | None, tls: ssl.SSLContext, size: int, headers: Mapping[str, str]
    ) -> None:
        # Now: on the loop they would take their time from the first request.
        import aiohttp
        import yarl

        self._url = yarl.URL
        self._no_http = aiohttp.ClientResponseError
        self._proxy = None if proxy is None else yarl.URL(proxy)
        self._tls = tls
        self._size = size
        self._headers = headers
        self._session: aiohttp.ClientSession | None = None

    async def ask(
        self, url: str, headers: dict[str, str], body: bytes | None, patience: float
    ) -> Reply:
        """
        Get, or post a body.

        Parameters
        ----------
        url
            The address, quoted as it is to be sent.
        headers
            What only this request says.
        body
            What to post.
        patience
            Seconds to connect in; the caller limits the whole.

        Returns
        -------
        reply
            Its body is whole.

        Raises
        ------
        ConnectionError
            The answer is not HTTP; aiohttp's own error would quote the whole address.
        """
        session = self._session or self._open()
        asking = session.request(
            "GET" if body is None else "POST",
            self._url(url, encoded=True),
            headers=headers,
            data=body,
            allow_redirects=False,
            timeout=_timeout(patience),
        )
        try:
            async with asking as response:
                told = response.headers
                pause, encodings = told.get("retry-after"), told.getall("content-encoding", ())
                return Reply(response.status, pause, encodings, await response.read())
        except self._no_http as error:
            problem = error.message
        raise ConnectionError(problem)

    def _open(self) -> aiohttp.ClientSession:
        """Open the session: it keeps no cookies, and takes nothing from the environment."""
        import aiohttp

        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._size, ssl=self._tls, keepalive_timeout=_KEPT_S
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
def _timeout(patience: float) -> aiohttp.ClientTimeout:
    """Limit the connecting alone; nearly every request has the same limit."""
    import aiohttp

    return aiohttp.ClientTimeout(sock_connect=patience)
