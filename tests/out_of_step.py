"""
An HTTP server whose connections get out of step: it repeats, inserts and swaps whole responses.

>>> with serve(Local(open_world("crowd", size=50)), FAULTS, rate=0.1, seed=1) as server:
...     ledger = connect("lab", rpc_url=server.url, api_url=server.url)
"""

from __future__ import annotations

import random
import re
import socket
import threading
from collections import Counter, deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import httpx

from tests.loopback import raw_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Fault = Callable[[bytes, bytes], list[bytes]]

_ID = re.compile(rb'"id"\s*:\s*"[0-9a-f]{24}"')
_REMEMBERED = 100  # responses that a fault may repeat


def _http(status: int, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def _with_body(response: bytes, change: Callable[[bytes], bytes]) -> bytes:
    head, _, body = response.partition(b"\r\n\r\n")
    return _http(int(head.split()[1]), change(body))


# Each gets the right response and an earlier one, and returns what is sent, piece by piece: the
# client may have sent its next request before it receives the second piece.
FAULTS: dict[str, Fault] = {
    "a surplus response": lambda right, earlier: [right + earlier],
    "a surplus response later": lambda right, earlier: [right, earlier],
    "half a surplus response": lambda right, earlier: [right + earlier[: len(earlier) // 2]],
    "an earlier response first": lambda right, earlier: [earlier + right],
    "an earlier response instead": lambda _, earlier: [earlier],
    "twice": lambda right, _: [right + right],
    "another id": lambda right, _: [_with_body(right, lambda b: _ID.sub(b'"id":"ledgerkit"', b))],
    "no id": lambda right, _: [_with_body(right, lambda b: _ID.sub(b'"id":null', b))],
}


class Request(NamedTuple):
    """A received request, and the connection that it came on."""

    connection: int
    method: str
    target: str
    body: bytes


@dataclass
class Server:
    """A running server: its address, its requests, and how often each fault was injected."""

    url: str
    transport: httpx.BaseTransport
    faults: Sequence[str]
    rate: float
    rng: random.Random
    requests: list[Request] = field(default_factory=list)
    injected: Counter[str] = field(default_factory=Counter)
    _earlier: deque[bytes] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def respond(self, request: Request) -> list[bytes]:
        """Return what is sent in response to a request."""
        right = self._right_response(request)
        with self._lock:
            self.requests.append(request)
            earlier = self.rng.choice(self._earlier) if self._earlier else None
            self._earlier.append(right)
            if earlier is None or self.rng.random() >= self.rate:
                return [right]
            fault = self.rng.choice(self.faults)
            self.injected[fault] += 1
            return FAULTS[fault](right, earlier)

    def _right_response(self, request: Request) -> bytes:
        headers = {"content-type": "application/json"} if request.body else {}
        url, content = f"http://host{request.target}", request.body
        passed_on = httpx.Request(request.method, url, headers=headers, content=content)
        response = self.transport.handle_request(passed_on)
        return _http(response.status_code, response.read())

    def talk(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection.makefile("rb") as received:
            while request := _read_request(received, connection.getpeername()[1]):
                for piece in self.respond(request):
                    connection.sendall(piece)


@contextmanager
def serve(
    transport: httpx.BaseTransport, faults: Sequence[str], *, rate: float = 1.0, seed: int = 0
) -> Iterator[Server]:
    """Run a server in front of a transport; a share of `rate` of the responses has a fault."""
    server = Server("", transport, list(faults), rate, random.Random(seed))  # noqa: S311 - no secret
    with raw_host(server.talk) as server.url:
        yield server


def _read_request(received: BinaryIO, connection: int) -> Request | None:
    """Read a request; None if the client has closed the connection."""
    line = received.readline()
    size = 0
    while (header := received.readline()) not in {b"\r\n", b""}:
        name, _, value = header.partition(b":")
        size = int(value) if name.lower() == b"content-length" else size
    body = received.read(size)
    if not line or len(body) < size:
        return None
    method, target, _ = line.decode().split()
    return Request(connection, method, target, body)
