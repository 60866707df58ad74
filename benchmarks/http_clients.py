"""
CPU time of a GET of a small response, of ledgerkit's client and of others, 32 in flight.

A server in its own process answers (`_canned.py`), so that the processor time of this process is
the clients' alone, their threads included. All read the same responses; the rounds are
interleaved. ledgerkit's figure is that of `Ledger.stream`: it also limits, checks and decodes
each response. The floor writes and reads bytes and knows no HTTP.

The client compared with is aiohttp, with which ledgerkit sends its requests. The two with a runtime
of threads do not qualify. pyreqwest trusts the certificates of the system beside the given ones,
refuses a self-signed one, and reports a connection lost after the request like one that was never
made. wreq never answers in a forked process, and imitates browsers.
"""

import asyncio
import gc
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any

from _canned import running
from _verdict import finish, say

import ledgerkit as lk
from ledgerkit.api import rest

IN_FLIGHT = 32
READS = 4_000
FEW_READS = 500  # of a client whose pool takes milliseconds
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


@asynccontextmanager
async def with_httpx2(url: str) -> AsyncIterator[Get]:
    import httpx2

    limits = httpx2.Limits(max_connections=IN_FLIGHT, max_keepalive_connections=IN_FLIGHT)
    async with httpx2.AsyncClient(limits=limits, trust_env=False) as client:

        async def get(path: str) -> bytes:
            return (await client.get(url + path)).content

        yield get


@asynccontextmanager
async def with_pyreqwest(url: str) -> AsyncIterator[Get]:
    from pyreqwest.client import ClientBuilder

    async with ClientBuilder().no_proxy().build() as client:

        async def get(path: str) -> bytes:
            response = await client.get(url + path).build().send()
            return bytes(await response.bytes())

        yield get


@asynccontextmanager
async def with_wreq(url: str) -> AsyncIterator[Get]:
    import wreq

    client = wreq.Client()

    async def get(path: str) -> bytes:
        response = await client.get(url + path)
        return bytes(await response.bytes())

    yield get


# The number of reads of each, and whether it qualifies for ledgerkit.
RIVALS: dict[str, tuple[Any, int, bool]] = {
    "aiohttp": (with_aiohttp, READS, True),
    "httpx2": (with_httpx2, FEW_READS, True),
    "pyreqwest": (with_pyreqwest, READS, False),
    "wreq": (with_wreq, READS, False),
}


async def drain(get: Get, reads: int) -> None:
    """Read so many responses, with as many workers as requests may be in flight."""
    numbers = iter(range(reads))

    async def worker() -> None:
        for number in numbers:
            assert len(await get(path(number))) > 100

    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))


def rival(client: Any, url: str, reads: int) -> float:
    """Return the CPU seconds per read of a client."""

    async def measure() -> float:
        async with client(url) as get:
            await drain(get, WARM_UP)
            gc.collect()
            begin = time.process_time()
            await drain(get, reads)
            return (time.process_time() - begin) / reads

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


def report(figures: dict[str, list[float]]) -> None:
    """Print the table and the targets."""
    best = {name: statistics.median(took) for name, took in figures.items()}
    print(f"CPU of a GET, {IN_FLIGHT} in flight, median of {ROUNDS} rounds")
    for name, took in best.items():
        print(f"{name:<14}{took * 1e6:>8.0f} us, x {best['ledgerkit'] / took:.2f} is ledgerkit's")
    others = {name: took for name, took in best.items() if name in RIVALS}
    for is_usable, words in ((True, "that qualifies"), (False, "of all")):
        rivals = {n: t for n, t in others.items() if RIVALS[n][2] or not is_usable}
        if rivals:
            name = min(rivals, key=lambda rival: rivals[rival])
            ratio = best["ledgerkit"] / rivals[name]
            claim = f"at most {TARGET} x the CPU of the best client {words} ({name})"
            say(claim, f"{ratio:.2f}", met=ratio <= TARGET, binding=is_usable)


def main() -> None:
    installed = {name: rival for name, rival in RIVALS.items() if find_spec(name)}
    for name in RIVALS.keys() - installed.keys():
        print(f"missing: {name} (pip install -e '.[bench]')")
    bytes(2**20)  # once it is freed, glibc no longer maps and unmaps what asyncio receives
    with running() as url:
        ours(url)  # imports
        figures: dict[str, list[float]] = {}
        for _ in range(ROUNDS):
            figures.setdefault("floor", []).append(rival(floor, url, READS))
            for name, (client, reads, _) in installed.items():
                figures.setdefault(name, []).append(rival(client, url, reads))
            figures.setdefault("ledgerkit", []).append(ours(url))
    report(figures)
    finish()


if __name__ == "__main__":
    main()
