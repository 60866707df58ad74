"""
CPU time of a GET of a small response, of ledgerkit's client and of bare aiohttp, 32 in flight.

A server in its own process answers (`_canned.py`), so that the processor time of this process is
the clients' alone, their threads included. All read the same responses; the rounds are
interleaved. ledgerkit's figure is that of `Ledger.stream`: it also limits, checks and decodes
each response. The floor writes and reads bytes and knows no HTTP.
"""

import asyncio
import gc
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from _canned import running
from _verdict import finish, say

import ledgerkit as lk
from ledgerkit.api import rest

IN_FLIGHT = 32
READS = 4_000
WARM_UP = 200
ROUNDS = 5
TARGET = 1.8

Get = Callable[[str], Awaitable[bytes]]


def path(number: int) -> str:
    return f"/v1/account/account-{number}.near/full"


class Floor(asyncio.Protocol):
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
async def floor(url: str) -> AsyncIterator[Get]:
    loop = asyncio.get_running_loop()
    host, port = url.removeprefix("http://").split(":")
    opened = [(await loop.create_connection(Floor, host, int(port)))[1] for _ in range(IN_FLIGHT)]
    idle = [*opened]

    async def get(path: str) -> bytes:
        connection = idle.pop()
        connection.body = loop.create_future()
        connection.transport.write(f"GET {path} HTTP/1.1\r\nhost: floor\r\n\r\n".encode())
        body = await connection.body
        idle.append(connection)
        return body

    yield get
    for connection in opened:
        connection.transport.abort()


@asynccontextmanager
async def with_aiohttp(url: str) -> AsyncIterator[Get]:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def get(path: str) -> bytes:
            async with session.get(url + path) as response:
                return await response.read()

        yield get


async def drain(get: Get, reads: int) -> None:
    """Read so many responses, with as many workers as requests may be in flight."""
    numbers = iter(range(reads))

    async def worker() -> None:
        for number in numbers:
            assert len(await get(path(number))) > 100

    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))


def rival(client: Any, url: str) -> float:
    """Return the CPU seconds per read of a client."""

    async def measure() -> float:
        async with client(url) as get:
            await drain(get, WARM_UP)
            gc.collect()
            begin = time.process_time()
            await drain(get, READS)
            return (time.process_time() - begin) / READS

    return asyncio.run(measure())


def ours(url: str) -> float:
    """Return the CPU seconds per read of a ledger."""

    def work(ledger: lk.Ledger, reads: int) -> None:
        calls = (rest.full(f"account-{number}.near") for number in range(reads))
        read = [value for batch in ledger.stream(calls) for value in batch]
        assert len(read) == reads
        assert not any(isinstance(value, lk.LedgerError) for value in read)

    with lk.connect("lab", api_url=url, in_flight=IN_FLIGHT, rate=None) as ledger:
        work(ledger, WARM_UP)
        gc.collect()
        begin = time.process_time()
        work(ledger, READS)
        return (time.process_time() - begin) / READS


def main() -> None:
    with running() as url:
        ours(url)  # imports
        clients: dict[str, Callable[[str], float]] = {
            "floor": partial(rival, floor),
            "aiohttp": partial(rival, with_aiohttp),
            "ledgerkit": ours,
        }
        rounds = [{name: measure(url) for name, measure in clients.items()} for _ in range(ROUNDS)]
    medians = {name: statistics.median(figures[name] for figures in rounds) for name in rounds[0]}
    print(f"CPU of a GET, {IN_FLIGHT} in flight, median of {ROUNDS} rounds")
    for name, took in medians.items():
        ratio = medians["ledgerkit"] / took
        print(f"{name:<14}{took * 1e6:>8.0f} us, x {ratio:.2f} is ledgerkit's")
    ratio = medians["ledgerkit"] / medians["aiohttp"]
    say(f"at most {TARGET} x the CPU of bare aiohttp", f"{ratio:.2f}", met=ratio <= TARGET)
    finish()


if __name__ == "__main__":
    main()
