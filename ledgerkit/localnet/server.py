"""The embedded ledger over HTTP: an ASGI application, and `serve`, which runs it."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ledgerkit.errors import InvalidRequestError
from ledgerkit.extras import require
from ledgerkit.localnet.gateway import MOST_BODY, Answer, Gateway, Request
from ledgerkit.localnet.settings import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from ledgerkit.localnet.faults import Faults
    from ledgerkit.localnet.gateway import Steps
    from ledgerkit.localnet.world import World

    # Where an ASGI server tells its own types they are these.
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Any]]
    Send = Callable[[Any], Awaitable[None]]

ABORT = "ledgerkit.abort"  # the extension by which a server lets the application hang up
BODY_S = 10.0  # a request's body may take so long, and an answer to be read
SEND_S = 30.0
PEEK_S = 1.0
MOST_READ = 8 * MOST_BODY  # of a body that is too large, before the answer says so
MOST_HELD = 256 * 2**20  # of all bodies at a time
_MOST_PORT = 65535


class StoppedError(Exception):
    """Nothing is worth waiting for any longer."""


class Clock:
    """
    Lets time pass in a world.

    Parameters
    ----------
    world
        In real time its blocks come by the clock, otherwise when one is awaited.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._came = asyncio.Event()
        self._stopped = False

    def stop(self) -> None:
        """Let nobody wait any longer."""
        self._stopped = True
        self._came.set()

    async def next_block(self) -> None:
        """Make a block, or wait for one, but not for ever: the waiting may have a limit."""
        if self._world.settings.real_time:
            with suppress(TimeoutError):
                async with asyncio.timeout(PEEK_S):
                    await self._came.wait()
            if self._stopped:
                raise StoppedError
            return
        self._advance()
        await asyncio.sleep(0)  # the others have their turn

    async def run(self) -> None:
        """Make a block whenever it is time."""
        pause = self._world.settings.block_time_ns / SECOND_NS
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due = max(due + pause, loop.time())
            await asyncio.sleep(due - loop.time())
            self._advance()
            came, self._came = self._came, asyncio.Event()
            came.set()
            if self._stopped:
                return

    def _advance(self) -> None:
        """Make one block."""
        with self._world.lock:
            self._world.advance()


class App:
    """
    The ASGI application.

    Parameters
    ----------
    gateway
        Answers.
    clock
        Makes blocks.
    """

    def __init__(self, gateway: Gateway, clock: Clock) -> None:
        self._gateway, self.clock = gateway, clock
        self._held = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            msg = f"only http is served, not {scope['type']}"
            raise NotImplementedError(msg)
        reader = _Reader(receive)
        try:
            answer = await self._answer(scope, reader)
        except ConnectionAbortedError:
            return
        finally:
            self._held -= reader.held
        await _deliver(answer, scope, receive, send)

    async def _answer(self, scope: Message, reader: _Reader) -> Answer:
        """Read the request and take the steps of its answer."""
        try:
            async with asyncio.timeout(BODY_S):
                while await reader.more():
                    self._held += reader.took
                    if self._held > MOST_HELD:
                        return _short(503, "too many large requests at a time")
        except TimeoutError:
            return _short(408, f"the request did not come within {BODY_S:g} s")
        answer = await self._take(self._gateway.answer(_request(scope, reader.body())))
        return answer if reader.whole else _closing(answer)

    async def _take(self, steps: Steps) -> Answer:
        """Wait for what the gateway waits for, until it answers."""
        with closing(steps):
            try:
                while True:
                    pause = next(steps)
                    await (self.clock.next_block() if pause is None else asyncio.sleep(pause))
            except StopIteration as end:
                answer: Answer = end.value
                return answer
            except StoppedError:
                return _short(503, "the server stops")


class _Reader:
    """The body of one request; what is too large is read for a while, and thrown away."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._parts: list[bytes] = []
        self._read = 0
        self.held = self.took = 0
        self.whole = False

    async def more(self) -> bool:
        """Read on; False when there is no more, or no more is wanted."""
        if self.whole or self._read > MOST_READ:
            return False
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ConnectionAbortedError
        part = message.get("body", b"")
        self._read += len(part)
        self.took = len(part) if self.held <= MOST_BODY else 0
        if self.took:
            self._parts.append(part)
            self.held += self.took
        self.whole = not message.get("more_body", False)
        return True

    def body(self) -> bytes:
        """Join what was kept: more than the gateway takes, if there was more."""
        return b"".join(self._parts)


def _request(scope: Message, body: bytes) -> Request:
    """Translate a request."""
    raw = scope.get("raw_path") or quote(scope["path"]).encode()
    headers = {name.decode("latin-1").lower(): v.decode("latin-1") for name, v in scope["headers"]}
    query = scope["query_string"].decode("latin-1")
    return Request(scope["method"], raw.decode("latin-1"), query, headers, body)


def _short(status: int, text: str) -> Answer:
    """Answer before anybody was asked, and hang up."""
    body = f"{text}\n".encode()
    headers = (("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(body))))
    return _closing(Answer(status, headers, body))


def _closing(answer: Answer) -> Answer:
    """Hang up after an answer: what is left of the request would be read as another one."""
    return Answer(answer.status, (*answer.headers, ("connection", "close")), answer.body)


async def _deliver(answer: Answer, scope: Message, receive: Receive, send: Send) -> None:
    """Send an answer, or as much of it as is to arrive."""
    abort = scope.get("extensions", {}).get(ABORT)
    if answer.dropped:
        await _hang_up(abort, receive)
        return
    try:
        async with asyncio.timeout(SEND_S):
            await send(_start(answer))
            await send({"type": "http.response.body", "body": answer.sent, "more_body": True})
            if answer.truncated is None:  # a second message is sent when the first one has gone
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
    except TimeoutError:
        await _hang_up(abort, receive)
        return
    await _hang_up(abort, receive, flush=True)


def _start(answer: Answer) -> Message:
    """Write the head of an answer."""
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    return {"type": "http.response.start", "status": answer.status, "headers": headers}


async def _hang_up(
    abort: Callable[[bool], None] | None, receive: Receive, *, flush: bool = False
) -> None:
    """Close the connection and wait until it is closed."""
    if abort is None:
        msg = "this server gives no way to hang up"
        raise ConnectionAbortedError(msg)
    abort(flush)
    while (await receive())["type"] != "http.disconnect":
        pass


# Running it -------------------------------------------------------------------------------


def serve(
    world: World,
    *,
    host: str = "127.0.0.1",
    port: int = 3030,
    allow_remote: bool = False,
    faults: Faults | None = None,
    ready: Callable[[str], object] | None = None,
) -> None:
    """
    Answer over HTTP until SIGINT or SIGTERM.

    Parameters
    ----------
    world
        Whose answers they are; in real time its blocks come by the clock.
    host
        The address to listen at.
    port
        The port; 0 is any free one.
    allow_remote
        Whether the address may be reached from other machines.
    faults
        What is to go wrong.
    ready
        Told the server's own address, once it answers.

    Raises
    ------
    InvalidRequestError
        If the address is not this machine's alone, or can't be had, or uvicorn is missing.
    """
    if not (allow_remote or is_loopback(host)):
        rule = "an address of this machine alone, unless remote ones are allowed"
        raise InvalidRequestError.refuse("host", host, rule)
    require("uvicorn", "serve", "A local server")
    from ledgerkit.localnet import listening

    with _bound(host, port) as sock:
        asyncio.run(_serve(Gateway(world, faults), sock, ready, listening.run))


async def _serve(
    gateway: Gateway,
    sock: socket.socket,
    ready: Callable[[str], object] | None,
    run: Callable[..., Awaitable[None]],
) -> None:
    """Run the server, and beside it the clock of a world in real time."""
    clock = Clock(gateway.world)
    app = App(gateway, clock)
    url = _address(sock)
    beside = [clock.run()] if gateway.world.settings.real_time else []
    await run(app, sock, beside, (lambda: ready(url)) if ready else None)


def is_loopback(host: str) -> bool:
    """Tell whether an address is this machine's alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bound(host: str, port: int) -> socket.socket:
    """Take an address."""
    if port not in range(_MOST_PORT + 1):
        raise InvalidRequestError.refuse("port", port, f"a number from 0 to {_MOST_PORT}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise InvalidRequestError.refuse("port", port, f"free at {host} ({error})") from None


def _address(sock: socket.socket) -> str:
    """Write a socket's address as a URL."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
