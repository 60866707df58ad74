"""The least that a client can do: bytes over sockets, without any knowledge of HTTP."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

Ask = Callable[[bytes], Awaitable[bytes]]


class Connection(asyncio.Protocol):
    """A connection that expects a header `content-length`, and nothing else."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to use the connection."""
        self.transport: Any = transport
        self.received = b""
        self.body: asyncio.Future[bytes] | None = None

    def data_received(self, data: bytes) -> None:
        """Read a part of a response."""
        self.received += data
        head, end, body = self.received.partition(b"\r\n\r\n")
        if end and len(body) == int(head.partition(b"content-length: ")[2].split(b"\r")[0]):
            self.received = b""
            if self.body is not None:
                self.body.set_result(body)


@asynccontextmanager
async def floor(url: str, in_flight: int) -> AsyncIterator[Ask]:
    """Open connections; yield a function that sends a request and returns the body."""
    loop = asyncio.get_running_loop()
    host, port = url.removeprefix("http://").split(":")
    opened = [
        (await loop.create_connection(Connection, host, int(port)))[1] for _ in range(in_flight)
    ]
    idle = [*opened]

    async def ask(request: bytes) -> bytes:
        connection = idle.pop()
        connection.body = loop.create_future()
        connection.transport.write(request)
        body = await connection.body
        idle.append(connection)
        return body

    yield ask
    for connection in opened:
        connection.transport.abort()


def get(path: str) -> bytes:
    """Build a request."""
    return f"GET {path} HTTP/1.1\r\nhost: floor\r\n\r\n".encode()


async def drain(read: Callable[[int], Awaitable[object]], reads: int, in_flight: int) -> None:
    """Read by number, with as many workers as requests may be in flight."""
    numbers = iter(range(reads))

    async def worker() -> None:
        for number in numbers:
            await read(number)

    await asyncio.gather(*(worker() for _ in range(in_flight)))
