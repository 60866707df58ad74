"""
Single HTTP exchanges: each sends a call and returns its response or an error.

An exception of an HTTP library holds the request, and with it the key. So failures are
returned as values, without cause, context or traceback, and only the frames of this module
see the key.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import time
import traceback
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast
from urllib.parse import urlsplit

from ledgerkit._version import __version__
from ledgerkit.api import matching
from ledgerkit.api.calls import Call, Response
from ledgerkit.errors import InvalidRequestError, LedgerError, TransportError, cut
from ledgerkit.redaction import hide
from ledgerkit.transport import networks, response_body
from ledgerkit.transport.connection_pool import (
    ConnectionPool,
    NoConnectionError,
    RawRequest,
    RawResponse,
)
from ledgerkit.transport.httpx_library import httpx
from ledgerkit.transport.response_body import BodyLimits, BodyReader, EncodingError
from ledgerkit.transport.retry import parse_retry_after

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ledgerkit.transport.networks import Surface
    from ledgerkit.transport.settings import Settings

E = TypeVar("E", bound=BaseException)

HEADERS = {
    "accept": "application/json",
    "accept-encoding": response_body.ACCEPTED_ENCODING,
    "user-agent": f"ledgerkit/{__version__}",
}
OK = 200
_REQUEST_ERRORS = httpx.HTTPError | OSError | EncodingError  # of any transport
_REDIRECT = range(300, 400)
# Surfaces that redirect between hosts of their own: the block documents send old heights to hosts
# of archives, as https://a0.mainnet.neardata.xyz.
# Source: fastnear/neardata-server, src/api.rs, check_archive_redirects.
_REDIRECTING: tuple[Surface, ...] = ("blocks",)
_KEY_PARAM = "apiKey"
# The share of an exchange's time that connecting may take. Were it cancelled in a TLS handshake,
# httpcore would leave its socket open, so connecting has to time out first.
_CONNECT_SHARE = 0.9
# Paths that httpx uses unchanged.
_PLAIN_PATH = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+")


def _encode_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Encode headers as httpx keeps them."""
    return [(name.encode(), text.encode()) for name, text in headers.items()]


_HEADER_BYTES = _encode_headers(HEADERS)


def _redact_record(record: logging.LogRecord) -> bool:
    """Hide the keys in use in a log record."""
    record.msg, record.args = hide(record.getMessage()), ()
    return True


# httpcore logs response headers at debug level, and a redirect's repeat the query with the key.
logging.getLogger("httpcore.http11").addFilter(_redact_record)


class Address:
    """The address of one surface, to which the path of each call is added."""

    def __init__(self, root: str) -> None:
        self.root_url = httpx.URL(root)
        self.host = self.root_url.host
        self._root = root
        self.origin = _origin(self.root_url)
        self._path = urlsplit(root).path

    def target(self, path: str) -> bytes:
        """Return the path of a request's first line, quoted as httpx does."""
        whole = self._path + path
        return whole.encode() if _PLAIN_PATH.fullmatch(whole) else self.url(path).raw_path

    def url(self, path: str) -> httpx.URL:
        """Return the URL of a path."""
        return httpx.URL(self._root + path) if path else self.root_url


def _origin(url: httpx.URL) -> str:
    """Return the part of an address before the path."""
    return f"{url.scheme}://{url.netloc.decode()}"


class Exchange(NamedTuple):
    """
    One HTTP exchange: its call, the surface to send it to, and its timeout in seconds.

    `call_id` is the id of a JSON-RPC call. `anew` is True if it needs a connection of its own,
    because a response on a shared one belonged to another request. `url` is the address that a
    redirect leads to, without the key.
    """

    call: Call[Any]
    surface: Surface
    timeout_s: float
    call_id: str | None = None
    anew: bool = False
    url: httpx.URL | None = None

    @property
    def body(self) -> bytes | None:
        """The body to send, with the id of the call."""
        body = self.call.body
        if body is None or self.call_id is None:
            return body
        return matching.replace_placeholder(body, self.call_id)


class Redirect(NamedTuple):
    """A redirect to another host of the same service: the address, without the key."""

    url: httpx.URL


class HttpClient:
    """A sender of single requests over the transports of a ledger."""

    def __init__(self, settings: Settings) -> None:
        roots = {s: settings.network.address(s) for s in networks.SURFACES}
        self.roots = {surface: url for surface, url in roots.items() if url}
        self._network = cut(settings.network.name)
        self.transports: dict[Surface, Any] = {}
        # Opens a connection for one exchange; only for transports of the ledger itself.
        self.connectors: Mapping[Surface, Callable[[], Any]] = {}
        own = settings.transport is None
        self.is_async = own or isinstance(settings.transport, httpx.AsyncBaseTransport)
        self._max_bytes = settings.max_answer_bytes
        self._key = settings.key
        self._has_query_key = settings.key is not None and settings.key_in == "query"
        self._has_own_transport = own
        self._addresses = {surface: Address(url) for surface, url in self.roots.items()}

    def exchange(self, exchange: Exchange) -> Response | Redirect | LedgerError:
        """Make an exchange over a synchronous transport."""
        limits = self._body_limits(exchange)
        error: BaseException
        try:
            transport = self._transport(exchange)
            with closing(transport.handle_request(self._request(exchange))) as response:
                body = _read_body(response, limits)
                close = _connection_closer(response)  # before another request can use it
            return self._response(exchange, _received(response, body, close))
        except Exception as caught:  # noqa: BLE001 - a user's transport may raise anything
            return self._failure(exchange, caught)
        except BaseException as caught:  # noqa: BLE001 - raised again below
            error = strip_error(caught)
        raise error

    async def exchange_async(self, exchange: Exchange) -> Response | Redirect | LedgerError:
        """Make an exchange over an asynchronous transport."""
        limits = self._body_limits(exchange)
        try:
            transport = self._transport(exchange)
            if isinstance(transport, ConnectionPool):  # which has the deadline of `limits`
                raw = await transport.send(self._raw_request(exchange, limits))
                return self._response(exchange, raw)
            async with asyncio.timeout(exchange.timeout_s):
                response = await transport.handle_async_request(self._request(exchange))
                try:
                    body = await _read_body_async(response, limits)
                    close = _connection_closer(response)
                finally:
                    await response.aclose()
            return self._response(exchange, _received(response, body, close))
        # The last two would end the background loop, which no transport may do.
        except (Exception, KeyboardInterrupt, SystemExit) as caught:  # noqa: BLE001 - as above
            return self._failure(exchange, caught)

    def has_key(self, body: bytes) -> bool:
        """Return True if a body repeats the key, hidden or too short to be hidden."""
        key = self._key
        return key is not None and (b"[key hidden]" in body or key.reveal().encode() in body)

    def timeout_error(self, call: Call[Any], surface: Surface) -> LedgerError:
        """Build the error of a call for which no time is left."""
        return self._failure(Exchange(call, surface, 0.0), TimeoutError())

    def _body_limits(self, exchange: Exchange) -> BodyLimits:
        """Build the limits of a response that is requested now."""
        deadline = time.monotonic() + exchange.timeout_s
        return BodyLimits(exchange.call.request, self._max_bytes, deadline)

    def _transport(self, exchange: Exchange) -> Any:
        """Return the transport of an exchange's surface."""
        if exchange.surface not in self.transports:
            field = f"{exchange.surface}_url"
            service = networks.SERVICES[exchange.surface]
            msg = f"{self._network} has no {service}, which {exchange.call.request} would come from"
            remedy = f"Pass connect() its address as {field}=, if there is one."
            raise InvalidRequestError(msg, remedy=remedy, field=field)
        if exchange.anew and exchange.surface in self.connectors:
            return self.connectors[exchange.surface]()
        return self.transports[exchange.surface]

    def _headers(self, exchange: Exchange) -> dict[str, str]:
        """Build the headers that differ between requests, with the key if it is sent there."""
        headers = {} if exchange.call.body is None else {"content-type": "application/json"}
        if self._key is not None and not self._has_query_key:
            headers["authorization"] = f"Bearer {self._key.reveal()}"
        return headers

    def _url(self, exchange: Exchange) -> httpx.URL:
        """Build the URL, with the key if it is sent there."""
        url = exchange.url or self._address(exchange).url(exchange.call.path)
        if self._key is None or not self._has_query_key:
            return url
        return url.copy_merge_params({_KEY_PARAM: self._key.reveal()})

    def _address(self, exchange: Exchange) -> Address:
        """Return the address that the path of a call is below."""
        call = exchange.call
        return Address(call.url) if call.url else self._addresses[exchange.surface]

    def _raw_request(self, exchange: Exchange, limits: BodyLimits) -> RawRequest:
        """Build the request for the pool of connections."""
        if self._has_query_key or exchange.url is not None:
            url = self._url(exchange)
            origin, target = _origin(url), url.raw_path
        else:
            address = self._address(exchange)
            origin, target = address.origin, address.target(exchange.call.path)
        connect_s = _CONNECT_SHARE * exchange.timeout_s
        return RawRequest(
            origin, target.decode(), self._headers(exchange), exchange.body, connect_s, limits
        )

    def _request(self, exchange: Exchange) -> httpx.Request:
        """Build the request for a transport of httpx."""
        body = exchange.body
        extensions: dict[str, Any] = {"timeout": self._timeouts(exchange.timeout_s)}
        transport = self.transports[exchange.surface]
        if getattr(transport, "reads_exchange", False):  # a recording
            extensions["exchange"] = exchange
        reads_target = getattr(transport, "reads_target", False)
        if reads_target and not self._has_query_key and exchange.url is None:
            address = self._address(exchange)
            url, extensions["target"] = address.root_url, address.target(exchange.call.path)
        else:
            url = self._url(exchange)
        headers = [
            *_HEADER_BYTES,
            (b"host", url.netloc),
            *_encode_headers(self._headers(exchange)),
        ]
        if body is not None:
            headers.append((b"content-length", str(len(body)).encode()))
        # With a stream httpx uses the headers unchanged, which takes a fifth of the time.
        request = httpx.Request(
            "GET" if body is None else "POST",
            url,
            headers=headers,
            stream=httpx.ByteStream(body or b""),
            extensions=extensions,
        )
        request.read()
        return request

    def _timeouts(self, seconds: float) -> dict[str, float | None]:
        """Limit each phase of a request; asynchronous ones are limited as a whole."""
        if not self.is_async:
            return dict.fromkeys(("connect", "read", "write", "pool"), seconds)
        return {"connect": _CONNECT_SHARE * seconds, "read": None, "write": None, "pool": None}

    def _response(
        self, exchange: Exchange, received: RawResponse
    ) -> Response | Redirect | LedgerError:
        """Build the response, with the key hidden; a redirect to another service is an error."""
        status, body = received.status, received.body
        if status in _REDIRECT:
            return self._redirect(exchange, received) or self._redirect_error(exchange, status)
        if self._key is not None:
            body = self._key.hide(body)
        pause = parse_retry_after(received.retry_after)
        return Response(body, status, pause, received.close)

    def _redirect(self, exchange: Exchange, received: RawResponse) -> Redirect | None:
        """Return the redirect that a response is, if the key may be sent there; else None."""
        if exchange.surface not in _REDIRECTING or received.location is None:
            return None
        try:
            url = self._url(exchange).join(received.location)
        except httpx.InvalidURL:
            return None
        root = self._addresses[exchange.surface].root_url
        is_own = url.host == root.host or url.host.endswith(f".{root.host}")
        if not is_own or (url.scheme, url.port, url.userinfo) != (root.scheme, root.port, b""):
            return None
        return Redirect(url.copy_remove_param(_KEY_PARAM))

    def _redirect_error(self, exchange: Exchange, status: int) -> TransportError:
        """Build the error for a redirect that is not followed."""
        request = exchange.call.request
        return TransportError(
            f"{self._addresses[exchange.surface].host} redirects the request for {request}"
            f" (HTTP {status})",
            remedy="Redirects are not followed: pass connect() the address it leads to.",
            retryable=False,
            status=status,
            request=request,
        )

    def too_many_redirects(self, exchange: Exchange) -> TransportError:
        """Build the error for a service that redirects a request again and again."""
        request = exchange.call.request
        return TransportError(
            f"{self._addresses[exchange.surface].host} redirects {request} too often",
            retryable=False,
            request=request,
        )

    def _failure(self, exchange: Exchange, error: BaseException) -> LedgerError:
        """Build the error of a failed exchange, without the key and the address's path."""
        if isinstance(error, LedgerError):
            return strip_error(error)
        request = exchange.call.request
        host = self._addresses[exchange.surface].host
        begin = f"the request to {host} for {request} failed"
        if isinstance(error, TimeoutError | httpx.TimeoutException):
            seconds = exchange.timeout_s
            if not seconds:  # nothing was sent
                return TransportError(f"{begin}: no time was left", request=request)
            sentence = f"{begin}: no answer within {seconds:.3g} s"
            return TransportError(sentence, request=request, reason=f"{host}: no answer in time")
        text = hide(str(error) or type(error).__name__)
        if self._has_own_transport or isinstance(error, _REQUEST_ERRORS):
            text = cut(text)
            return TransportError(
                f"{begin}: {text}",
                request=request,
                reason=f"{host}: {text}",
                no_connection=isinstance(error, NoConnectionError | httpx.ConnectError),
            )
        sentence = f"{begin}: error in the transport: {type(error).__name__}: {cut(text)}"
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


def _location(error: BaseException) -> str:
    """Return the file, line and function that raised an error."""
    frame, line = list(traceback.walk_tb(error.__traceback__))[-1]
    code = frame.f_code
    return f"{Path(code.co_filename).name}, line {line}, in {code.co_name}"


def _header(response: httpx.Response, name: bytes) -> str | None:
    """Return the first value of a header."""
    return next(iter(_header_values(response, name)), "") or None


def _header_values(response: httpx.Response, name: bytes) -> list[str]:
    """Return all values of a header; `response.headers` would guess an encoding at each use."""
    raw = response.headers.raw
    return [text.decode("latin-1") for key, text in raw if key.lower() == name]


def _received(
    response: httpx.Response, body: bytes, close: Callable[[], object] | None
) -> RawResponse:
    """Return the parts of a response of httpx that are used."""
    pause, location = (_header(response, name) for name in (b"retry-after", b"location"))
    return RawResponse(response.status_code, pause, body, close, location)


def _connection_closer(response: httpx.Response) -> Callable[[], object] | None:
    """
    Return a function that closes the connection of a response, if its transport has one.

    It is closed at once if bytes follow the response: they would be read as the next one.
    """
    stream = response.extensions.get("network_stream")
    connection: socket.socket | None = stream and stream.get_extra_info("socket")
    if connection is None:
        return None
    # The pool finds the connection closed when it would use it again.
    close = partial(_shut_down, connection)
    if _unread_bytes(response):
        close()
    return close


def _shut_down(connection: socket.socket) -> None:
    """Close both directions of a connection, unless it is closed already."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _unread_bytes(response: httpx.Response) -> bytes:
    """Return what was received after a response; httpx has no public name for it."""
    # A socket with unread bytes is closed by httpcore itself. These were received together with
    # the response, and wait in the parser for the next request.
    value: Any = getattr(response.stream, "stream", response.stream)  # of `SingleConnections`
    for name in ("_httpcore_stream", "_stream", "_connection", "_h11_state", "trailing_data"):
        value = getattr(value, name, None)
    return value[0] if value else b""


def _read_body(response: httpx.Response, limits: BodyLimits) -> bytes:
    """Read and unpack the body of a synchronous transport."""
    if response.is_stream_consumed:  # the transport has unpacked it
        return response_body.read([response.read()], BodyReader(limits, (), None))
    stream = cast("httpx.SyncByteStream", response.stream)  # httpx's would release the connection
    return response_body.read(stream, _body_reader(response, limits))


async def _read_body_async(response: httpx.Response, limits: BodyLimits) -> bytes:
    """Read and unpack the body of an asynchronous transport."""
    if response.is_stream_consumed:
        return response_body.read([await response.aread()], BodyReader(limits, (), None))
    stream = cast("httpx.AsyncByteStream", response.stream)  # without httpx's costly layers
    return await response_body.read_async(stream, _body_reader(response, limits))


def _body_reader(response: httpx.Response, limits: BodyLimits) -> BodyReader:
    """Build the reader of a response's body."""
    encodings = _header_values(response, b"content-encoding")
    return BodyReader(limits, encodings, _header(response, b"content-length"))
