"""
Exchanges over HTTP.

An exception of an HTTP library holds the request, and with it the key. So failures are
returned as values, without cause, context or traceback, and only the frames of this module and
of the connections below it see the key.
"""

from __future__ import annotations

import asyncio
import re
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlencode, urljoin, urlsplit

from ledgerkit.errors import LedgerError, TransportError, cut
from ledgerkit.redaction import hide
from ledgerkit.transport import exchange as exchanges
from ledgerkit.transport import networks
from ledgerkit.transport.exchange import NoConnectionError, RawRequest, Transport
from ledgerkit.transport.response_body import EncodingError

if TYPE_CHECKING:
    from ledgerkit.api.calls import Response, Surface
    from ledgerkit.transport.exchange import Connections, Exchange
    from ledgerkit.transport.settings import Settings

E = TypeVar("E", bound=BaseException)

# Source: fastnear/libs, neardata-fetcher, which follows as many.
MAX_REDIRECTS = 5
_REDIRECT = range(300, 400)
# Surfaces that redirect between hosts of their own: the block documents send old heights to archive
# hosts, such as https://a0.mainnet.neardata.xyz.
# Source: fastnear/neardata-server, src/api.rs, check_archive_redirects.
_REDIRECTING: tuple[Surface, ...] = ("blocks",)
_KEY_PARAM = "apiKey"
_PRINTABLE = re.compile("[!-~]+")
# Addresses that need no quoting, and have no segment that begins with a dot.
_SEGMENTS = r"(?:/(?:[\w~%:\x40=&?,+-][\w~%:\x40=&?,+.-]*)?)*"  # \x40: @ after : reads as a login
_QUOTED = re.compile(r"https?://[\w.:\[\]-]+" + _SEGMENTS, re.ASCII)


class HttpTransport(Transport):
    """
    The exchanges of a ledger with its hosts.

    `wait_for_slot` waits for a slot of a host's rate limit; it returns False if none is free before
    the deadline.
    """

    def __init__(
        self,
        settings: Settings,
        connections: Connections,
        wait_for_slot: Callable[[Surface, float], Awaitable[bool]],
    ) -> None:
        self.in_process = connections.in_process
        self._connections = connections
        self._wait_for_slot = wait_for_slot
        self._network = settings.network
        self._max_bytes = settings.max_response_bytes
        self._key = settings.key
        self._has_query_key = settings.key is not None and settings.key_in == "query"
        self._has_custom_transport = settings.transport is not None

    async def aclose(self) -> None:
        await self._connections.aclose()

    async def exchange(self, exchange: Exchange) -> Response | LedgerError:
        """Make an exchange, and follow redirects within its service."""
        deadline = time.monotonic() + exchange.timeout_s
        host, request = self._network.host(exchange.surface), exchange.call.request
        try:
            url = self._url(exchange)
            for _ in range(MAX_REDIRECTS + 1):
                response = await self._connections.send(self._request(exchange, url, deadline))
                if self._key is not None:
                    response = response._replace(body=self._key.hide(response.body))
                if response.status not in _REDIRECT:
                    return response
                target = self._redirect_target(exchange.surface, url, response.location)
                if target is None:
                    return self._redirect_error(exchange, response.status)
                url = target
                if not await self._wait_for_slot(exchange.surface, deadline):
                    return exchanges.timeout_error(request, host, 0.0)
            sentence = f"{host} redirects {request} too often"
            return TransportError(sentence, retryable=False, request=request)
        except GeneratorExit:  # this coroutine is closed
            raise
        except BaseException as caught:
            if self.in_process and not isinstance(caught, Exception):
                interrupt = strip_error(caught)
            elif _is_cancelled(caught):
                raise
            else:
                return self._failure(exchange, caught)
        raise interrupt

    def _request(self, exchange: Exchange, url: str, deadline: float) -> RawRequest:
        headers = {}
        if exchange.call.body is not None:
            headers["content-type"] = "application/json"
        if self._key is not None and self._has_query_key:
            url += ("&" if "?" in url else "?") + urlencode({_KEY_PARAM: self._key.reveal()})
        elif self._key is not None:
            headers["authorization"] = f"Bearer {self._key.reveal()}"
        return RawRequest(
            exchange.surface,
            url,
            headers,
            exchange.body,
            exchange.call.request,
            self._max_bytes,
            deadline,
            exchange.needs_new_connection,
        )

    def _url(self, exchange: Exchange) -> str:
        call, surface = exchange.call, exchange.surface
        root = call.url or self._network.required_address(surface, call.request)
        url = root + (call.path or ("" if urlsplit(root).path else "/"))
        if _QUOTED.fullmatch(url):
            return url
        import yarl

        return str(yarl.URL(url))

    def _redirect_target(self, surface: Surface, url: str, location: str | None) -> str | None:
        """Return the address that a redirect leads to, if the key may be sent there; else None."""
        if surface not in _REDIRECTING or location is None or not _PRINTABLE.fullmatch(location):
            return None
        try:
            target = urlsplit(urljoin(url, location))
            service = urlsplit(self._network.address(surface) or "")
            is_same_port = networks.port_of(target) == networks.port_of(service)
        except ValueError:
            return None
        host, own_host = target.hostname or "", service.hostname or ""
        is_own = host == own_host or host.endswith(f".{own_host}")
        if not (is_own and is_same_port) or target.scheme != service.scheme or "@" in target.netloc:
            return None
        parts = target.query.split("&")
        query = "&".join(part for part in parts if part.partition("=")[0] != _KEY_PARAM)
        return target._replace(query=query, fragment="").geturl()

    def _redirect_error(self, exchange: Exchange, status: int) -> TransportError:
        host, request = self._network.host(exchange.surface), exchange.call.request
        return TransportError(
            f"{host} redirects the request for {request} (HTTP {status})",
            remedy="Redirects are not followed: pass connect() the address it leads to.",
            retryable=False,
            status=status,
            request=request,
        )

    def _failure(self, exchange: Exchange, error: BaseException) -> LedgerError:
        """Build the error of a failed exchange, without the key and the address's path."""
        if isinstance(error, LedgerError):
            return strip_error(error)
        request, host = exchange.call.request, self._network.host(exchange.surface)
        if isinstance(error, TimeoutError):
            return exchanges.timeout_error(request, host, exchange.timeout_s)
        begin = f"the request to {host} for {request} failed"
        text = cut(hide(str(error) or type(error).__name__))
        if not self._has_custom_transport or isinstance(error, OSError | EncodingError):
            return TransportError(
                f"{begin}: {text}",
                request=request,
                reason=f"{host}: {text}",
                no_connection=isinstance(error, NoConnectionError),
            )
        sentence = f"{begin}: error in the transport: {type(error).__name__}: {text}"
        return TransportError(
            f"{sentence} ({_location(error)})",
            remedy="Correct the transport passed to connect().",
            retryable=False,
            request=request,
        )


def strip_error(error: E) -> E:
    """Remove an error's cause, context and traceback, which may hold the key."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _is_cancelled(error: BaseException) -> bool:
    """Return True if the task is cancelled; a caller's transport may raise the error by itself."""
    task = asyncio.current_task() if isinstance(error, asyncio.CancelledError) else None
    return task is not None and task.cancelling() > 0


def _location(error: BaseException) -> str:
    frame, line = list(traceback.walk_tb(error.__traceback__))[-1]
    code = frame.f_code
    return f"{Path(code.co_filename).name}, line {line}, in {code.co_name}"
