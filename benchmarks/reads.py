"""
Wall time of many reads from a host with latency, against the network's limit.

A server in its own process (`_canned.py`) answers each request after 50 ms. With 128 requests in
flight, no client can be faster than 50 ms / 128 = 391 us per read. ledgerkit's figure is the public
verb: requests, decoding and the frame. aiohttp only reads bytes.
"""

import asyncio
import gc
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from _canned import account_ids, count_tokens, path, running
from _floor import drain
from _measuring import alternate
from _verdict import finish, say

import ledgerkit as lk

LATENCY_S = 0.050
IN_FLIGHT = 128
READS = 2_000
ROUNDS = 7
TARGET = 1.25


def seconds_each(work: Callable[[], object]) -> float:
    """Return the seconds per read of `work`, after a garbage collection."""
    gc.collect()
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) / READS


def with_ledgerkit(url: str) -> float:
    ids = list(account_ids(READS))
    frames: list[Any] = []
    with lk.connect("lab", api_url=url, in_flight=IN_FLIGHT, rate=None) as ledger:
        took = seconds_each(lambda: frames.append(lk.ft(ids, ledger=ledger, progress=False)))
    assert len(frames[0]) == count_tokens(READS)
    return took


def with_aiohttp(url: str) -> float:
    import aiohttp

    async def work() -> None:
        async def read(number: int) -> None:
            async with session.get(url + path(number, "ft")) as response:
                assert len(await response.read()) > 100

        connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
        async with aiohttp.ClientSession(connector=connector) as session:
            await drain(read, READS, IN_FLIGHT)

    return seconds_each(lambda: asyncio.run(work()))


CLIENTS = {
    "ledgerkit.ft": with_ledgerkit,
    "raw aiohttp": with_aiohttp,
}


def report(figures: dict[str, list[float]]) -> None:
    limit = LATENCY_S / IN_FLIGHT
    print(f"{LATENCY_S * 1e3:.0f} ms latency, {IN_FLIGHT} in flight: limit {limit * 1e6:.0f} us")
    print(f"{'client':<18}{'us a read':>12}{'x limit':>9}")
    for name, took in figures.items():
        figure = statistics.median(took)
        print(f"{name:<18}{figure * 1e6:>12,.0f}{figure / limit:>9.2f}")
    ours = statistics.median(figures["ledgerkit.ft"]) / limit
    say(f"at most {TARGET} x the network's limit", f"{ours:.2f}", met=ours <= TARGET)


def main() -> None:
    with running(LATENCY_S) as url:
        with_ledgerkit(url)  # imports, and the first frame
        ways = {name: partial(measure, url) for name, measure in CLIENTS.items()}
        figures = alternate(ways, ROUNDS)
    report(figures)
    finish()


if __name__ == "__main__":
    main()
