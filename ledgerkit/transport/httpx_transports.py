"""Transports of httpx that a caller passes to `connect`, as connections of a ledger."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import httpx

from ledgerkit.errors import InvalidRequestError
from ledgerkit.redaction import hide
from ledgerkit.transport.exchange import (
    HEADERS,
    HTTPX_TRANSPORT,
    Connections,
    NoConnectionError,
    http_response,
)
from ledgerkit.transport.response_body import BodyReader

if TYPE_CHECKING:
    from ledgerkit.api.calls import Response
    from ledgerkit.transport.exchange import RawRequest

T = TypeVar("T")
AnyTransport = httpx.BaseTransport | httpx.AsyncBaseTransport

_NO_TIMEOUTS: dict[str, float | None] = dict.fromkeys(("connect", "read", "write", "pool"))
# The share of the time that connecting may take. If it were cancelled in a TLS handshake,
# httpcore would leave its socket open, so connecting has to time out first.
_CONNECT_SHARE = 0.9
_CLOSING_S = 1.0  # seconds for a transport to close


def _hide_keys(record: logging.LogRecord) -> bool:
    record.msg, record.args = hide(record.getMessage()), ()
    return True


# httpcore logs the headers of responses, and those of a redirect repeat the query with the key.
logging.getLogger("httpcore.http11").addFilter(_hide_keys)


class HttpxConnections(Connections):
    """
    The connections of a caller's transport; a synchronous one runs in threads.

    A borrowed transport stays open when the ledger closes.
    """

    def __init__(self, transport: AnyTransport, *, is_borrowed: bool) -> None:
        if not isinstance(transport, httpx.BaseTransport | httpx.AsyncBaseTransport):
            raise InvalidRequestError.refuse("transport", transport, HTTPX_TRANSPORT)
        self._transport = transport
        self._is_borrowed = is_borrowed
        self._outcomes: set[asyncio.Future[Any]] = set()  # results of running threads

    async def send(self, request: RawRequest) -> Response:
        seconds = request.deadline - time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                if isinstance(self._transport, httpx.AsyncBaseTransport):
                    timeouts = _NO_TIMEOUTS | {"connect": _CONNECT_SHARE * seconds}
                    sent = _httpx_request(request, timeout=timeouts)
                    return await _send_async(self._transport, sent, request)
                sent = _httpx_request(request, timeout=dict.fromkeys(_NO_TIMEOUTS, seconds))
                return await self._in_thread(partial(_send, self._transport, sent, request))
        except httpx.TimeoutException as error:
            raise TimeoutError from error
        except httpx.ConnectError as error:
            raise NoConnectionError(str(error)) from error
        except httpx.HTTPError as error:
            raise ConnectionError(str(error) or type(error).__name__) from error

    async def aclose(self) -> None:
        """Close the transport, unless it is borrowed."""
        if self._is_borrowed:
            return
        if self._outcomes:  # it should be closed when no thread uses it any more
            await asyncio.wait(self._outcomes, timeout=_CLOSING_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_S):
                if isinstance(self._transport, httpx.AsyncBaseTransport):
                    await self._transport.aclose()
                else:
                    await self._in_thread(self._transport.close)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run a function in a new thread, which may hang without delaying other requests."""
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()
        self._outcomes.add(outcome)
        outcome.add_done_callback(self._outcomes.discard)

        def run() -> None:
            value, error = None, None
            try:
                value = work()
            except BaseException as caught:  # noqa: BLE001 - raised where the result is awaited
                error = caught
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(outcome.set_result, (value, error))

        threading.Thread(target=run, name="ledgerkit_transport", daemon=True).start()
        value, error = await asyncio.shield(outcome)  # a thread goes on after a cancellation
        if error is not None:
            raise error
        return cast("T", value)


def _httpx_request(request: RawRequest, **extensions: Any) -> httpx.Request:
    options: Any = {"headers": HEADERS | request.headers, "extensions": extensions}
    return httpx.Request(request.method, request.url, content=request.body, **options)


def _send(transport: httpx.BaseTransport, sent: httpx.Request, request: RawRequest) -> Response:
    with closing(transport.handle_request(sent)) as response:
        reader = _reader(response, request)
        chunks: Any = [response.content] if response.is_stream_consumed else response.stream
        for chunk in chunks:
            reader.add(chunk)
        return _response(response, reader.whole())


async def _send_async(
    transport: httpx.AsyncBaseTransport, sent: httpx.Request, request: RawRequest
) -> Response:
    response = await transport.handle_async_request(sent)
    try:
        reader = _reader(response, request)
        if response.is_stream_consumed:
            reader.add(response.content)
        else:
            chunks: Any = response.stream  # httpx's own iterators would unpack without a limit
            async for chunk in chunks:
                await reader.add_async(chunk)
        return _response(response, reader.whole())
    finally:
        await response.aclose()


def _reader(response: httpx.Response, request: RawRequest) -> BodyReader:
    """Build the reader of a body; the transport may have unpacked it."""
    if response.is_stream_consumed:
        return BodyReader(request)
    encodings = response.headers.get_list("content-encoding")
    return BodyReader(request, encodings, response.headers.get("content-length"))


def _response(response: httpx.Response, body: bytes) -> Response:
    stream = response.extensions.get("network_stream")
    connection: socket.socket | None = stream and stream.get_extra_info("socket")
    give_up = None if connection is None else partial(_shut_down, connection)
    return http_response(response.status_code, response.headers, body, give_up)


async def _shut_down(connection: socket.socket) -> None:
    """Close both directions of a connection; its pool finds it closed before the next request."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
