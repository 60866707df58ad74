"""The HTTP server of the embedded ledger: an ASGI application, and `serve`, which runs it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msgspec import structs

from ledgerkit.errors import InvalidRequestError
from ledgerkit.extras import require
from ledgerkit.localnet.clock import WaitEndedError
from ledgerkit.localnet.http_gateway import MAX_BODY_BYTES, Gateway
from ledgerkit.localnet.http_messages import (
    HttpRequest,
    HttpResponse,
    text_response,
    with_length,
)
from ledgerkit.localnet.settings import SECOND_NS
from ledgerkit.localnet.web_access import WebAccess, is_loopback

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, MutableMapping

    from ledgerkit.localnet.faults import Faults
    from ledgerkit.localnet.world import World

    # The types of the ASGI specification.
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Any]]
    Send = Callable[[Any], Awaitable[None]]

CLOSE = "ledgerkit.close"  # ASGI has no message to close a connection: a scope extension does it
BODY_TIMEOUT_S = 10.0  # to receive the body of a request
SEND_TIMEOUT_S = 30.0  # to send a response
MAX_WAIT_S = 1.0  # for a block, before a waiting request checks its own timeout
MAX_DISCARDED_BYTES = 8 * MAX_BODY_BYTES  # of a body that is too large, before the 413
MAX_BUFFERED_BYTES = 256 * 2**20  # of all bodies together
PARENT_CHECK_S = 0.5
_MAX_PORT = 65535


class BlockClock:
    """Producer of blocks: by the clock in real time, otherwise when a request waits for one."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._new_block = asyncio.Event()
        self._stopped = False

    def stop(self) -> None:
        """End all waiting."""
        self._stopped = True
        self._new_block.set()

    async def next_block(self) -> None:
        """Produce a block, or wait for one for at most `MAX_WAIT_S` seconds."""
        if self._world.settings.real_time:
            with suppress(TimeoutError):
                async with asyncio.timeout(MAX_WAIT_S):
                    await self._new_block.wait()
            if self._stopped:
                raise WaitEndedError(ConnectionAbortedError("the server is stopping"))
            return
        self._advance()
        await asyncio.sleep(0)  # lets other requests run

    async def sleep(self, seconds: float) -> None:
        """Let other requests run."""
        await asyncio.sleep(seconds)

    async def run(self) -> None:
        """Produce a block every block time until stopped."""
        interval = self._world.settings.block_time_ns / SECOND_NS
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due = max(due + interval, loop.time())
            await asyncio.sleep(due - loop.time())
            self._advance()
            new_block, self._new_block = self._new_block, asyncio.Event()
            new_block.set()
            if self._stopped:
                return

    def _advance(self) -> None:
        """Produce one block."""
        with self._world.lock:
            self._world.advance()


class App:
    """The ASGI application."""

    def __init__(self, gateway: Gateway, clock: BlockClock, access: WebAccess) -> None:
        self._gateway, self.clock, self._access = gateway, clock, access
        self._buffered_bytes = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise NotImplementedError(f"only http is served, not {scope['type']}")
        reader = _BodyReader(receive)
        try:
            response = await self._respond(scope, reader)
        except ConnectionAbortedError:
            return
        finally:
            self._buffered_bytes -= reader.buffered_bytes
        await _send_response(response, scope, receive, send)

    async def _respond(self, scope: Message, reader: _BodyReader) -> HttpResponse:
        """Read the request and compute its response."""
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                while await reader.read_part():
                    self._buffered_bytes += reader.part_bytes
                    if self._buffered_bytes > MAX_BUFFERED_BYTES:
                        return _server_error(503, "too many large requests at a time")
        except TimeoutError:
            return _server_error(408, f"the request did not come within {BODY_TIMEOUT_S:g} s")
        request = _request(scope, reader.body())
        response = _framing_refusal(scope, request) or self._access.intercept(request)
        if response is None:
            try:
                response = await self._gateway.answer(request, self.clock)
            except WaitEndedError as error:
                response = _server_error(503, str(error))
        response = self._access.share(request, response)
        return response if reader.is_complete else _closing(response)


class _BodyReader:
    """Reader of one request's body; the rest of a body that is too large is discarded."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._parts: list[bytes] = []
        self._read_bytes = 0
        self.buffered_bytes = self.part_bytes = 0
        self.is_complete = False

    async def read_part(self) -> bool:
        """Read the next part; return False after the end, or if the body is far too large."""
        if self.is_complete or self._read_bytes > MAX_DISCARDED_BYTES:
            return False
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ConnectionAbortedError
        part = message.get("body", b"")
        self._read_bytes += len(part)
        self.part_bytes = len(part) if self.buffered_bytes <= MAX_BODY_BYTES else 0
        if self.part_bytes:
            self._parts.append(part)
            self.buffered_bytes += self.part_bytes
        self.is_complete = not message.get("more_body", False)
        return True

    def body(self) -> bytes:
        """Return the stored bytes: more than the gateway accepts if the body was too large."""
        return b"".join(self._parts)


def _request(scope: Message, body: bytes) -> HttpRequest:
    """Build a request from its ASGI scope."""
    raw = scope.get("raw_path") or quote(scope["path"]).encode()
    headers = {name.decode("latin-1").lower(): v.decode("latin-1") for name, v in scope["headers"]}
    query = scope["query_string"].decode("latin-1")
    return HttpRequest(scope["method"], raw.decode("latin-1"), query, headers, body)


def _framing_refusal(scope: Message, request: HttpRequest) -> HttpResponse | None:
    """Return the refusal of a request whose end or version is ambiguous; None if it is clear."""
    if "content-length" in request.headers and "transfer-encoding" in request.headers:
        # A proxy may go by the other one, and pass a request within the body (RFC 9112, 6.1).
        return _server_error(400, "a request has content-length or transfer-encoding, not both")
    if scope.get("http_version", "1.1") not in ("1.0", "1.1"):
        return _server_error(505, "only HTTP/1.1 is served")
    return None


def _server_error(status: int, text: str) -> HttpResponse:
    """Build a response of the server itself, after which the connection is closed."""
    return _closing(with_length(text_response(f"{text}\n", status)))


def _closing(response: HttpResponse) -> HttpResponse:
    """Close the connection after a response: unread bytes would be parsed as a request."""
    return structs.replace(response, headers=(*response.headers, ("connection", "close")))


async def _send_response(
    response: HttpResponse, scope: Message, receive: Receive, send: Send
) -> None:
    """Send a response, or the part of it that a fault leaves."""
    close = scope.get("extensions", {}).get(CLOSE)
    if response.dropped:
        await _close_connection(close, receive)
        return
    try:
        async with asyncio.timeout(SEND_TIMEOUT_S):
            await send(_start_message(response))
            body = {"type": "http.response.body", "body": response.sent_body, "more_body": True}
            await send(body)
            if response.truncated is None:
                # The end is a message of its own: sending it waits until the body has gone, so
                # that the timeout applies to clients that do not read.
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
    except TimeoutError:
        await _close_connection(close, receive)
        return
    await _close_connection(close, receive, flush=True)


def _start_message(response: HttpResponse) -> Message:
    """Build the ASGI message with a response's status and headers."""
    headers = [
        (name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers
    ]
    return {"type": "http.response.start", "status": response.status, "headers": headers}


async def _close_connection(
    close: Callable[[bool], None] | None, receive: Receive, *, flush: bool = False
) -> None:
    """Close the connection and wait until it is closed."""
    if close is None:
        raise ConnectionAbortedError("this server has no extension to close a connection")
    close(flush)
    while (await receive())["type"] != "http.disconnect":
        pass


# Running it -------------------------------------------------------------------------------


def serve(
    world: World,
    *,
    host: str = "127.0.0.1",
    port: int = 3030,  # 0: any free port
    allow_remote: bool = False,
    allow_hosts: Iterable[str] = (),  # other names of the server
    allow_origins: Iterable[str] = (),  # of web pages, beside those on localhost
    faults: Faults | None = None,
    ready: Callable[[str], object] | None = None,  # called with the URL
    with_parent: bool = False,  # stop too when the process ends that started this one
) -> None:
    """Serve a world over HTTP until SIGINT or SIGTERM."""
    if not (allow_remote or is_loopback(host)):
        expected = "a loopback address such as 127.0.0.1, or allow_remote=True"
        raise InvalidRequestError.refuse("host", host, expected)
    access = WebAccess(host, allow_hosts, allow_origins)
    for library in ("uvicorn", "httptools"):
        require(library, "serve", "A local server")
    from ledgerkit.localnet import uvicorn_server

    app = App(Gateway(world, faults), BlockClock(world), access)
    with _bind(host, port) as sock:
        background = [app.clock.run] if world.settings.real_time else []
        if with_parent and not _is_detached():
            background.append(_parent_end)
        with asyncio.Runner(loop_factory=uvicorn_server.new_event_loop) as runner:
            runner.run(_serve(app, sock, ready, background, uvicorn_server.run))


async def _serve(
    app: App,
    sock: socket.socket,
    ready: Callable[[str], object] | None,
    background: list[Callable[[], Coroutine[Any, Any, None]]],
    run: Callable[..., Awaitable[None]],
) -> None:
    """Run the server, with what runs beside it: the end of one of these stops it."""
    url = _url(sock)
    started = [each() for each in background]
    await run(app, sock, started, (lambda: ready(url)) if ready else None)


def _is_detached() -> bool:
    """Return True for a process that is meant to outlive its parent: by nohup, or as a service."""
    if sys.platform == "win32":  # a parent's end does not show there
        return True
    return signal.getsignal(signal.SIGHUP) is signal.SIG_IGN or os.getsid(0) == os.getpid()


async def _parent_end() -> None:
    """Wait until the process has ended that started this one."""
    parent_id = os.getppid()
    while os.getppid() == parent_id:  # noqa: ASYNC110 - no event comes from the system
        await asyncio.sleep(PARENT_CHECK_S)


def _bind(host: str, port: int) -> socket.socket:
    """Open a listening socket."""
    if port not in range(_MAX_PORT + 1):
        raise InvalidRequestError.refuse("port", port, f"a number from 0 to {_MAX_PORT}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        expected = f"a free port on {host} ({error})"
        raise InvalidRequestError.refuse("port", port, expected) from None


def _url(sock: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
