"""
Collections of up to a million accounts: time, memory, rows; against a loop and the limit.

A service of the benchmark's own answers from another process (`_canned.py`): it costs little,
so that the figures are the collector's. Each collection has a fresh process, and its peak
memory is that process's own; a collection of one account goes before, for the imports. With
50 ms latency and 128 requests in flight no client can do better than 391 us an account; the
loop is what one would write with httpx and pandas.

`--small` stops at 10,000 accounts, and fails for wrong rows only: a busy machine misses targets.
"""

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from _canned import account_ids, count_tokens, running
from _verdict import finish, say

LATENCY_S = 0.050
IN_FLIGHT = (64, 128)  # the loop is held against the last
FEW = 32  # in flight where there is no latency
LOOPED = 1_000
ROUNDS = 3
AGAINST_LIMIT, AGAINST_LOOP = 1.2, 100.0
FLAT, MOST_MB = 1.2, 250.0
LIQUID = ["token3.near"]


class Figures(NamedTuple):
    """What one run took."""

    accounts: int
    seconds: float
    peak_mb: float
    rows: int
    complete: bool

    @property
    def us(self) -> float:
        """Microseconds an account."""
        return self.seconds / self.accounts * 1e6


def peak_mb() -> float:
    """Read this process's own peak memory."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return float("nan")


def stored_all(rows: dict[Any, int], count: int) -> bool:
    """Compare the tables' numbers of rows with what the service holds."""
    expected = {"subjects": count, "accounts": count, "ft": count_tokens(count), "errors": 0}
    return all(rows.get(name, 0) == number for name, number in expected.items())


def collected(url: str, count: int, in_flight: int) -> Figures:
    """Collect, as a user would."""
    import ledgerkit as lk

    with tempfile.TemporaryDirectory() as folder:
        with lk.connect("lab", api_url=url, in_flight=in_flight, rate=None) as ledger:
            one, all_of_them = f"{folder}/one", f"{folder}/out"
            for ids, out in ((account_ids(1), one), (account_ids(count), all_of_them)):
                begin = time.perf_counter()
                found = lk.collect(
                    ids, out=out, liquid_tokens=LIQUID, progress=False, ledger=ledger
                )
                took = time.perf_counter() - begin
        peak = peak_mb()  # before anything is read back
        summary = found.summary().set_index("table")
        complete = stored_all(summary["n_rows"].to_dict(), count)
        return Figures(count, took, peak, int(summary["n_rows"].sum()), complete)


def looped(url: str, count: int) -> Figures:
    """Ask for one after the other, normalize each, write it all at the end."""
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


def apart(work: Callable[..., Figures], *words: Any) -> Figures:
    """Run in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, words)


def row(name: str, found: Figures, limit_us: float | None = None) -> None:
    """Print a line of the table."""
    against = f"{found.us / limit_us:>9.2f}" if limit_us else " " * 9
    print(f"{name:<34}{found.accounts:>10,}{found.seconds:>10.2f}{found.us:>9,.0f}", end="")
    print(f"{against}{found.peak_mb:>9.0f}{found.rows:>13,}", flush=True)


def limit(in_flight: int) -> float:
    """Tell the microseconds an account below which no client gets."""
    return LATENCY_S / in_flight * 1e6


def judge(ours: dict[int, Figures], loop: Figures, *, binding: bool) -> None:
    """Hold the collector's times against the limit and the loop."""
    for in_flight, run in ours.items():
        claim = f"at most {AGAINST_LIMIT} x the network's limit, {in_flight} in flight"
        ratio = run.us / limit(in_flight)
        say(claim, f"{ratio:.2f}", met=ratio <= AGAINST_LIMIT, binding=binding)
    beaten = loop.us / ours[IN_FLIGHT[-1]].us
    claim = f"at least {AGAINST_LOOP:.0f} x as fast as the loop"
    say(claim, f"{beaten:.0f}", met=beaten >= AGAINST_LOOP, binding=binding)


def judge_memory(found: dict[int, Figures]) -> None:
    """Hold the peak memory of a million accounts against that of fewer, and the most allowed."""
    flat, top = found[10**6].peak_mb / found[10**5].peak_mb, found[10**6].peak_mb
    say(f"memory at 10^6 at most {FLAT} x that at 10^5", f"{flat:.2f}", met=flat <= FLAT)
    say(f"memory at 10^6 at most {MOST_MB:.0f} MB", f"{top:.0f} MB", met=top <= MOST_MB)


def head() -> None:
    """Print the first line of the table."""
    print(f"{'':<34}{'accounts':>10}{'seconds':>10}{'us each':>9}{'x limit':>9}", end="")
    print(f"{'peak MB':>9}{'rows':>13}")


def at_once(counts: tuple[int, ...]) -> dict[int, Figures]:
    """Collect over a host that answers at once; gives the runs by their accounts."""
    found = {}
    with running() as url:
        for count in counts:
            found[count] = apart(collected, url, count, FEW)
            row(f"no latency, {FEW} in flight", found[count])
    return found


def late(rounds: int, n_looped: int) -> tuple[dict[int, Figures], Figures]:
    """Collect over a host with latency; gives the median runs and the loop's."""
    found = {}
    with running(LATENCY_S) as url:
        for in_flight in IN_FLIGHT:
            runs = [apart(collected, url, 10**4, in_flight) for _ in range(rounds)]
            found[in_flight] = sorted(runs, key=lambda run: run.seconds)[rounds // 2]
            name = f"{LATENCY_S * 1e3:.0f} ms, {in_flight} in flight (median)"
            row(name, found[in_flight], limit(in_flight))
        loop = apart(looped, url, n_looped)
        row(f"{LATENCY_S * 1e3:.0f} ms, a loop", loop, limit(IN_FLIGHT[-1]))
    return found, loop


def main() -> None:
    options = argparse.ArgumentParser(description="Time collections.")
    options.add_argument("--small", action="store_true", help="stop at 10,000 accounts")
    small = options.parse_args().small
    head()
    found = at_once((10**3, 10**4) if small else (10**3, 10**4, 10**5, 10**6))
    runs, loop = late(1, LOOPED // 10) if small else late(ROUNDS, LOOPED)
    every = [*found.values(), *runs.values(), loop]
    stored, whole = sum(run.rows for run in every), all(run.complete for run in every)
    say("each run stored all that the service holds", f"{stored:,} rows", met=whole)
    judge(runs, loop, binding=not small)
    if not small:
        judge_memory(found)
    finish()


if __name__ == "__main__":
    main()
