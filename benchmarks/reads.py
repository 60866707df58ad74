"""
Wall time of many reads from a host with latency, against the network's limit.

A server in its own process (`_canned.py`) answers each request after 50 ms. With 128 requests in
flight, no client can be faster than 50 ms / 128 = 391 us per read. ledgerkit's figure is the public
verb: requests, decoding and the frame. The others only read bytes.
"""

import asyncio
import gc
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import httpx
from _canned import account_ids, count_tokens, running
from _verdict import finish, say

import ledgerkit as lk

LATENCY_S = 0.050
IN_FLIGHT = 128
READS = 2_000
# The slow clients do fewer reads, and are compared per read. A sequential loop costs the same for
# each; a gather costs more the more it queues, so fewer reads favour it.
SEQUENTIAL_READS = 40
GATHER_READS = 400
ROUNDS = 7
TARGET = 1.25


def path(number: int) -> str:
    return f"/v1/account/account-{number}.near/ft"


def seconds_per(reads: int, work: Callable[[], object]) -> float:
    """Return the seconds per read of `work`, after a garbage collection."""
    gc.collect()
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) / reads


def with_ledgerkit(url: str) -> float:
    ids = list(account_ids(READS))
    frames: list[Any] = []
    with lk.connect("lab", api_url=url, in_flight=IN_FLIGHT, rate=None) as ledger:
        took = seconds_per(READS, lambda: frames.append(lk.ft(ids, ledger=ledger, progress=False)))
    assert len(frames[0]) == count_tokens(READS)
    return took


def with_aiohttp(url: str) -> float:
    import aiohttp

    async def work() -> None:
        numbers = iter(range(READS))

        async def worker() -> None:
            for number in numbers:
                async with session.get(url + path(number)) as response:
                    assert len(await response.read()) > 100

        connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
        async with aiohttp.ClientSession(connector=connector) as session:
            await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))

    return seconds_per(READS, lambda: asyncio.run(work()))


def with_gather(url: str) -> float:
    limits = httpx.Limits(max_connections=IN_FLIGHT, max_keepalive_connections=IN_FLIGHT)

    async def work() -> None:
        async with httpx.AsyncClient(limits=limits, timeout=60, trust_env=False) as client:
            await asyncio.gather(*(client.get(url + path(n)) for n in range(GATHER_READS)))

    return seconds_per(GATHER_READS, lambda: asyncio.run(work()))


def one_by_one(url: str) -> float:
    def work() -> None:
        with httpx.Client(trust_env=False) as client:
            for number in range(SEQUENTIAL_READS):
                client.get(url + path(number))

    return seconds_per(SEQUENTIAL_READS, work)


CLIENTS = {
    "ledgerkit.ft": (with_ledgerkit, READS),
    "raw aiohttp": (with_aiohttp, READS),  # of the extra `bench`
    "httpx gather": (with_gather, GATHER_READS),
    "httpx sequential": (one_by_one, SEQUENTIAL_READS),
}


def report(figures: dict[str, list[float]]) -> None:
    limit = LATENCY_S / IN_FLIGHT
    print(f"{LATENCY_S * 1e3:.0f} ms latency, {IN_FLIGHT} in flight: limit {limit * 1e6:.0f} us")
    print(f"{'client':<18}{'reads':>7}{'us a read':>12}{'x limit':>9}{'best':>12}{'x limit':>9}")
    for name, took in figures.items():
        print(f"{name:<18}{CLIENTS[name][1]:>7}", end="")
        for figure in (statistics.median(took), min(took)):
            print(f"{figure * 1e6:>12,.0f}{figure / limit:>9.2f}", end="")
        print()
    ours = statistics.median(figures["ledgerkit.ft"]) / limit
    say(f"at most {TARGET} x the network's limit", f"{ours:.2f}", met=ours <= TARGET)


def main() -> None:
    if not find_spec("aiohttp"):
        print("missing: aiohttp (pip install -e '.[bench]')")
        del CLIENTS["raw aiohttp"]
    with running(LATENCY_S) as url:
        with_ledgerkit(url)  # imports, and the first frame
        figures: dict[str, list[float]] = {name: [] for name in CLIENTS}
        for _ in range(ROUNDS):  # interleaved, so that a busy moment affects all of them
            for name, (measure, _reads) in CLIENTS.items():
                figures[name].append(measure(url))
    report(figures)
    finish()


if __name__ == "__main__":
    main()
