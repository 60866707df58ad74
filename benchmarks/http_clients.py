"""
CPU time of a GET of a small response, of ledgerkit's client and of bare aiohttp, 32 in flight.

A server in its own process answers (`_canned.py`), so that the processor time of this process is
the clients' alone, their threads included. All read the same responses; the rounds are
interleaved. ledgerkit's figure is that of `Ledger.stream`: it also limits, checks and decodes
each response. The floor writes and reads bytes and knows no HTTP.
"""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from _canned import path, running
from _floor import drain, floor, get
from _measuring import cpu_seconds, medians
from _verdict import finish, say

import ledgerkit as lk
from ledgerkit.api import rest

IN_FLIGHT = 32
READS = 4_000
WARM_UP = 200
ROUNDS = 5
TARGET = 1.8

Read = Callable[[int], Awaitable[bytes]]


@asynccontextmanager
async def with_bytes(url: str) -> AsyncIterator[Read]:
    async with floor(url, IN_FLIGHT) as ask:
        yield lambda number: ask(get(path(number)))


@asynccontextmanager
async def with_aiohttp(url: str) -> AsyncIterator[Read]:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def read(number: int) -> bytes:
            async with session.get(url + path(number)) as response:
                return await response.read()

        yield read


def rival(client: Any, url: str) -> float:
    """Return the CPU seconds per read of a client."""

    async def measure() -> float:
        async with client(url) as read:
            await drain(read, WARM_UP, IN_FLIGHT)
            gc.collect()
            begin = time.process_time()
            await drain(read, READS, IN_FLIGHT)
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
        return cpu_seconds(lambda: work(ledger, READS)) / READS


def main() -> None:
    with running() as url:
        ours(url)  # imports
        clients: dict[str, Callable[[], float]] = {
            "floor": partial(rival, with_bytes, url),
            "aiohttp": partial(rival, with_aiohttp, url),
            "ledgerkit": partial(ours, url),
        }
        took = medians(clients, ROUNDS)
    print(f"CPU of a GET, {IN_FLIGHT} in flight, median of {ROUNDS} rounds")
    for name, each in took.items():
        print(f"{name:<14}{each * 1e6:>8.0f} us, x {took['ledgerkit'] / each:.2f} is ledgerkit's")
    ratio = took["ledgerkit"] / took["aiohttp"]
    say(f"at most {TARGET} x the CPU of bare aiohttp", f"{ratio:.2f}", met=ratio <= TARGET)
    finish()


if __name__ == "__main__":
    main()
