"""The HTTP server of the embedded ledger: a small ASGI application, run by uvicorn."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import InvalidRequestError
from ledgerkit.extras import require
from ledgerkit.localnet.clock import UnansweredError, WaitEndedError
from ledgerkit.localnet.http_gateway import Gateway
from ledgerkit.localnet.http_messages import HttpRequest, HttpResponse, text_response
from ledgerkit.localnet.rpc_api import MAX_BODY_BYTES
from ledgerkit.localnet.settings import SECOND_NS
from ledgerkit.localnet.web_access import WebAccess, is_loopback

if TYPE_CHECKING:
    import uvicorn

    from ledgerkit.localnet.world import World

    # The types of the ASGI specification.
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    Application = Callable[[Message, Receive, Send], Awaitable[None]]

MAX_WAIT_S = 1.0  # for a block, before a waiting request checks its own timeout
SHUTDOWN_TIMEOUT_S = 3  # for open requests when the server stops
CHECK_S = 0.1  # between two checks whether the server must stop
_MAX_PORT = 65535


class ServerClock:
    """A clock that produces blocks in real time, or else when a request waits."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._wake = asyncio.Event()
        self.is_stopped = False

    async def next_block(self) -> None:
        """Produce a block, or wait at most `MAX_WAIT_S` seconds for a block."""
        if self._world.settings.real_time:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), MAX_WAIT_S)
        else:
            self._world.advance()
        await self.sleep(0)  # lets other requests run

    async def sleep(self, seconds: float) -> None:
        """Suspend the request; 0 seconds let others run, and raise once the server stops."""
        await asyncio.sleep(seconds)
        if self.is_stopped and not seconds:
            raise WaitEndedError(ConnectionAbortedError("the server is stopping"))

    async def run(self) -> None:
        """Produce a block every block time, if time is real."""
        interval_s = self._world.settings.block_time_ns / SECOND_NS
        due = time.monotonic()
        while self._world.settings.real_time:
            due = max(due + interval_s, time.monotonic())
            await asyncio.sleep(due - time.monotonic())
            self._world.advance()
            self._wake.set()  # wakes the requests that wait now
            self._wake.clear()


def application(gateway: Gateway, clock: ServerClock, access: WebAccess) -> Application:
    """Build the ASGI application, which answers one request at each call."""

    async def answer(scope: Message, receive: Receive, send: Send) -> None:
        request = await _read_request(scope, receive)
        if request is None:
            return
        try:
            response = access.intercept(request) or await gateway.answer(request, clock)
        except UnansweredError as error:
            response = text_response(f"{error}\n", 503)
        await _send_response(access.share(request, response), send)

    return answer


async def _read_request(scope: Message, receive: Receive) -> HttpRequest | None:
    """Read a request, with a part of a body that is too large; None if the client has left."""
    body, more = bytearray(), True
    while more and len(body) <= MAX_BODY_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
    return HttpRequest(scope["method"], path, query, headers, bytes(body))


async def _send_response(response: HttpResponse, send: Send) -> None:
    """Send a response, or the part of it that a fault leaves."""
    headers = {"content-length": str(len(response.body)), **dict(response.headers)}
    if response.dropped:
        # uvicorn closes a connection without a response only if the response cannot be started,
        # as with an invalid header.
        headers = {"\n": ""}
    encoded = [(name.encode("latin-1"), text.encode("latin-1")) for name, text in headers.items()]
    await send({"type": "http.response.start", "status": response.status, "headers": encoded})
    # uvicorn also closes the connection after an incomplete response.
    more = response.truncated is not None
    await send({"type": "http.response.body", "body": response.sent_body, "more_body": more})


def serve(
    world: World,
    *,
    host: str = "127.0.0.1",
    port: int = 3030,  # 0: any free port
    allow_remote: bool = False,
    allow_hosts: Collection[str] = (),  # other names of the server
    allow_origins: Collection[str] = (),  # sites of web pages, besides localhost
    ready: Callable[[str], object] | None = None,  # called with the URL
    with_parent: bool = False,  # also stop when the parent process ends
) -> None:
    """Serve a world over HTTP until SIGINT or SIGTERM."""
    if not (allow_remote or is_loopback(host)):
        expected = "a loopback address such as 127.0.0.1, or allow_remote=True"
        raise InvalidRequestError.refuse("host", host, expected)
    access = WebAccess(host, allow_hosts, allow_origins)
    uvicorn = require("uvicorn", "serve", "A local server")
    clock = ServerClock(world)
    config = uvicorn.Config(
        application(Gateway(world), clock, access),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # its log would repeat the text of clients unescaped
        access_log=False,  # it would show an API key in a query
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
    )
    server = uvicorn.Server(config)
    with _bind(host, port) as sock, _stopped_by_signals(server):
        if ready is not None:
            ready(_url(sock))
        asyncio.run(_run(server, clock, sock, with_parent=with_parent and not _is_detached()))


async def _run(
    server: uvicorn.Server, clock: ServerClock, sock: socket.socket, *, with_parent: bool
) -> None:
    """Run the server and its clock until a signal comes or the parent process ends."""
    parent_id = os.getppid()
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server.serve(sockets=[sock]))
        blocks = tasks.create_task(clock.run())
        while not serving.done():
            await asyncio.wait([serving], timeout=CHECK_S)
            if with_parent and os.getppid() != parent_id:
                server.should_exit = True
            clock.is_stopped = server.should_exit
            if server.force_exit:  # a second Ctrl-C, after which uvicorn waits from Python 3.12 on
                serving.cancel()
        blocks.cancel()


@contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Stop the server at a signal, which uvicorn raises again when it has stopped."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        server.should_exit = True

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _is_detached() -> bool:
    """Return True for a process that is meant to outlive its parent: by nohup, or as a service."""
    if sys.platform == "win32":  # a parent's end does not show there
        return True
    return signal.getsignal(signal.SIGHUP) is signal.SIG_IGN or os.getsid(0) == os.getpid()


def _bind(host: str, port: int) -> socket.socket:
    if port not in range(_MAX_PORT + 1):
        raise InvalidRequestError.refuse("port", port, f"a number from 0 to {_MAX_PORT}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        sock = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        expected = f"a free port on {host} ({error})"
        raise InvalidRequestError.refuse("port", port, expected) from None
    # Connections inherit the option. Without it a body waits about 40 ms for its head's ACK.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _url(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
