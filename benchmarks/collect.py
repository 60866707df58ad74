"""
Collections of up to a million accounts: time, memory and rows, against a loop and the limit.

A fast server in another process answers (`_canned.py`), so that the figures are the collector's.
Each collection runs in a fresh process, whose peak memory is measured; a collection of one
account before it loads the libraries. With 50 ms latency and 128 requests in flight, no client
can be faster than 391 us per account. The loop is the usual code with httpx and pandas. Without
latency the limit is the exchange and the decoding alone: bytes over a socket, and msgspec.

The stream alone is `Ledger.stream` with the same requests, whose responses are dropped as bytes:
what a collection could take if tables cost nothing. Its rounds alternate with the collections.

`--small` stops at 10,000 accounts and judges no time, because a busy machine misses its targets.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec
from _canned import account_ids, count_tokens, path, running
from _floor import drain, floor, get
from _measuring import alternate, apart, is_small, peak_mb
from _verdict import finish, say

LATENCY_S = 0.050
IN_FLIGHT = (64, 128)  # the loop is compared with the last
FEW = 32  # in flight where there is no latency
FEW_ACCOUNTS = 10**4
LOOPED = 1_000
ROUNDS = 3
BATCH = 256  # as many responses as a collection takes at a time
AGAINST_LIMIT, AGAINST_LOOP = 1.15, 100.0
MOST_US, GROWTH = 200.0, 1.2  # per account without latency
FLAT, MOST_MB = 1.2, 250.0
LIQUID = ["token3.near"]


class Figures(NamedTuple):
    """The time, memory and rows of a run."""

    accounts: int
    seconds: float
    peak_mb: float
    rows: int
    complete: bool

    @property
    def us(self) -> float:
        """Microseconds per account."""
        return self.seconds / self.accounts * 1e6


def stored_all(rows: dict[Any, int], count: int) -> bool:
    """Return True if each table has as many rows as the service holds."""
    expected = {"subjects": count, "accounts": count, "ft": count_tokens(count), "errors": 0}
    return all(rows.get(name, 0) == number for name, number in expected.items())


def collected(url: str, count: int, in_flight: int) -> Figures:
    """Collect through the public function."""
    import ledgerkit as lk

    with tempfile.TemporaryDirectory() as folder:
        with lk.connect("lab", api_url=url, in_flight=in_flight, rate=None) as ledger:
            warm_up, all_accounts = f"{folder}/one", f"{folder}/out"
            for ids, out in ((account_ids(1), warm_up), (account_ids(count), all_accounts)):
                begin = time.perf_counter()
                collection = lk.collect(
                    ids, out=out, liquid_tokens=LIQUID, progress=False, ledger=ledger
                )
                took = time.perf_counter() - begin
        peak = peak_mb()  # before the files are read back
        summary = collection.summary().set_index("table")
        complete = stored_all(summary["n_rows"].to_dict(), count)
        return Figures(count, took, peak, int(summary["n_rows"].sum()), complete)


def exchanged(url: str, count: int) -> Figures:
    """Read and decode the responses, and do nothing else."""
    from ledgerkit.api.models.rest import Full

    decode = msgspec.json.Decoder(Full).decode
    rows = 0

    async def work() -> float:
        async with floor(url, FEW) as ask:

            async def read(number: int) -> None:
                nonlocal rows
                body = await ask(get(path(number)))
                rows += len(decode(body).tokens or ())

            begin = time.perf_counter()
            await drain(read, count, FEW)
            return time.perf_counter() - begin

    took = asyncio.run(work())
    return Figures(count, took, peak_mb(), rows, complete=rows == count_tokens(count))


def streamed(url: str, count: int, in_flight: int) -> Figures:
    """Read the responses as collections do, and drop them."""
    import ledgerkit as lk
    from ledgerkit.api import rest

    def calls(count: int) -> Iterator[Any]:
        for account_id in account_ids(count):
            call: Any = rest.full(account_id)
            call.read = lambda response: len(response.body)
            yield call

    with lk.connect("lab", api_url=url, in_flight=in_flight, rate=None) as ledger:
        for _ in ledger.stream(calls(1), size=BATCH):
            pass
        begin = time.perf_counter()
        read = sum(len(batch) for batch in ledger.stream(calls(count), size=BATCH))
        took = time.perf_counter() - begin
    return Figures(count, took, peak_mb(), 0, complete=read == count)


def looped(url: str, count: int) -> Figures:
    """Read account by account, normalize each response, write one file at the end."""
    import httpx
    import pandas as pd

    ids = list(account_ids(count))
    begin = time.perf_counter()
    frames = []
    with httpx.Client(trust_env=False) as client, tempfile.TemporaryDirectory() as folder:
        for account_id in ids:
            view = client.get(f"{url}/v1/account/{account_id}/full").json()
            frames.append(pd.json_normalize(view, "tokens", "account_id"))
        whole = pd.concat(frames, ignore_index=True)
        whole.to_parquet(f"{folder}/ft.parquet")
    took, complete = time.perf_counter() - begin, len(whole) == count_tokens(count)
    return Figures(count, took, peak_mb(), len(whole), complete)


def row(name: str, run: Figures, limit_us: float | None = None) -> None:
    """Print a row of the table."""
    against = f"{run.us / limit_us:>9.2f}" if limit_us else " " * 9
    print(f"{name:<34}{run.accounts:>10,}{run.seconds:>10.2f}{run.us:>9,.0f}", end="")
    print(f"{against}{run.peak_mb:>9.0f}{run.rows:>13,}", flush=True)


def limit(in_flight: int) -> float:
    """Return the least microseconds per account that the latency allows."""
    return LATENCY_S / in_flight * 1e6


def judge(ours: dict[int, Figures], streams: dict[int, Figures], loop: Figures) -> None:
    """Compare the collector's times with the limit and the loop."""
    for in_flight, run in ours.items():
        claim = f"at most {AGAINST_LIMIT} x the network's limit, {in_flight} in flight"
        ratio = run.us / limit(in_flight)
        figure = f"{ratio:.2f}, the stream alone {streams[in_flight].us / limit(in_flight):.2f}"
        say(claim, figure, met=ratio <= AGAINST_LIMIT)
    ratio = loop.us / ours[IN_FLIGHT[-1]].us
    claim = f"at least {AGAINST_LOOP:.0f} x as fast as the loop"
    say(claim, f"{ratio:.0f}", met=ratio >= AGAINST_LOOP)


def judge_at_once(runs: dict[int, Figures], stream: Figures, bare: Figures) -> None:
    """Compare the times without latency with their limits."""
    ours = runs[FEW_ACCOUNTS].us
    claim = f"at most {MOST_US:.0f} us an account without latency, {FEW} in flight"
    figure = (
        f"{ours:.0f} us, {ours / stream.us:.2f} x the stream alone,"
        f" {ours / bare.us:.1f} x exchange and decoding alone"
    )
    say(claim, figure, met=ours <= MOST_US)
    growth = runs[max(runs)].us / ours
    claim = f"an account of {max(runs):,} takes at most {GROWTH} x one of {FEW_ACCOUNTS:,}"
    say(claim, f"{growth:.2f}", met=growth <= GROWTH)


def judge_memory(runs: dict[int, Figures]) -> None:
    """Compare the peak memory at a million accounts with that at fewer, and with its limit."""
    flat, top = runs[10**6].peak_mb / runs[10**5].peak_mb, runs[10**6].peak_mb
    say(f"memory at 10^6 at most {FLAT} x that at 10^5", f"{flat:.2f}", met=flat <= FLAT)
    say(f"memory at 10^6 at most {MOST_MB:.0f} MB", f"{top:.0f} MB", met=top <= MOST_MB)


def head() -> None:
    """Print the header of the table."""
    print(f"{'':<34}{'accounts':>10}{'seconds':>10}{'us each':>9}{'x limit':>9}", end="")
    print(f"{'peak MB':>9}{'rows':>13}")


def alternating(url: str, in_flight: int, rounds: int) -> tuple[Figures, Figures]:
    """Collect, and read the stream alone, in turns; return the median runs of both."""
    each = (FEW_ACCOUNTS, in_flight)
    works = (collected, streamed)
    ways = {work.__name__: partial(apart, work, url, *each) for work in works}
    by_time = [
        sorted(runs, key=lambda run: run.seconds) for runs in alternate(ways, rounds).values()
    ]
    ours, stream = (runs[len(runs) // 2] for runs in by_time)
    return ours, stream


def at_once(rounds: int, more: tuple[int, ...]) -> tuple[dict[int, Figures], Figures, Figures]:
    """
    Collect from a host without latency, also more accounts.

    Return the runs by their number of accounts, the stream alone, and the limit.
    """
    runs = {}
    with running() as url:
        bare = apart(exchanged, url, FEW_ACCOUNTS)
        row("no latency, exchange and decoding", bare)
        runs[FEW_ACCOUNTS], stream = alternating(url, FEW, rounds)
        row("no latency, the stream alone", stream)
        row(f"no latency, {FEW} in flight", runs[FEW_ACCOUNTS])
        for count in more:
            runs[count] = apart(collected, url, count, FEW)
            row(f"no latency, {FEW} in flight", runs[count])
    return runs, stream, bare


def late(rounds: int, n_looped: int) -> tuple[dict[int, Figures], dict[int, Figures], Figures]:
    """Collect from a host with latency; return the runs, the streams alone, and the loop's."""
    runs, streams = {}, {}
    with running(LATENCY_S) as url:
        for in_flight in IN_FLIGHT:
            runs[in_flight], streams[in_flight] = alternating(url, in_flight, rounds)
            name = f"{LATENCY_S * 1e3:.0f} ms, {in_flight}"
            row(f"{name}, the stream alone", streams[in_flight], limit(in_flight))
            row(f"{name} in flight", runs[in_flight], limit(in_flight))
        loop = apart(looped, url, n_looped)
        row(f"{LATENCY_S * 1e3:.0f} ms, a loop", loop, limit(IN_FLIGHT[-1]))
    return runs, streams, loop


def main() -> None:
    small = is_small("Time collections.")
    head()
    rounds = 1 if small else ROUNDS
    instant, stream, bare = at_once(rounds, (10**3,) if small else (10**3, 10**5, 10**6))
    runs, streams, loop = late(rounds, LOOPED // 10 if small else LOOPED)
    every = [bare, stream, *instant.values(), *streams.values(), *runs.values(), loop]
    stored, whole = sum(run.rows for run in every), all(run.complete for run in every)
    say("each run stored all that the service holds", f"{stored:,} rows", met=whole)
    if not small:
        judge_at_once(instant, stream, bare)
        judge(runs, streams, loop)
        judge_memory(instant)
    finish()


if __name__ == "__main__":
    main()
