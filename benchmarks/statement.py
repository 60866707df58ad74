"""
Statements of accounts with up to 100,000 transactions: requests, time, memory and pace.

The services of an invented account run in another process (`_account_host.py`) and answer each
request after 50 ms. One page of transactions leads to the next, so the network's limit is the
latency times their number, plus that of all other requests divided by those in flight. To it come
3 ms of work for each transaction, 20,000 a minute, and a second for the few requests that come one
after the other. The pace counts the CPU time of the whole process, also of requests and decoding.
Each statement is built in a fresh process, whose peak memory is measured, after one that loads the
libraries, and whose CPU time is that of the first statement of a session.

`--small` stops at 1,000 transactions and judges no time, because a busy machine misses its targets.
"""

import json
import time
from contextlib import redirect_stdout
from typing import NamedTuple
from urllib.request import urlopen

from _account_host import ACCOUNT, running
from _measuring import apart, is_small, peak_mb
from _verdict import finish, say

LATENCY_S = 0.050
COUNTS = (10, 10**3, 10**4, 10**5)
IN_FLIGHT = 16  # the default
# Of a transaction: the attached yoctoNEAR, gas bought, three refunds of gas, and the tokens.
ENTRIES = 6
A_MINUTE = 20_000
FIXED_S = 1.0
FIRST_MS = 60.0
FLAT, MOST_MB = 1.5, 450.0


class Figures(NamedTuple):
    """The time, memory, requests and entries of a statement."""

    transactions: int
    seconds: float
    cpu_s: float
    peak_mb: float
    requests: dict[str, int]
    planned: dict[str, int]
    entries: int
    adds_up: bool
    first_cpu_s: float

    @property
    def limit_s(self) -> float:
        """The least seconds that the latency allows."""
        pages = self.requests["/v0/account"]
        return LATENCY_S * (pages + (sum(self.requests.values()) - pages) / IN_FLIGHT)

    @property
    def a_minute(self) -> float:
        """Transactions per minute of CPU time."""
        return self.transactions / self.cpu_s * 60


def take_requests(url: str) -> dict[str, int]:
    """Return the numbers of requests since the last call, by path or method."""
    with urlopen(f"{url}/requests") as response:  # noqa: S310 - the host of this benchmark
        counts: dict[str, int] = json.load(response)
    return counts


def build(url: str, count: int, warm_up_url: str) -> Figures:
    """Build two statements through the public function, the first one of a small account."""
    import pandas  # noqa: ICN001, F401 - loaded by any verb, and not what is measured

    import ledgerkit as lk

    cpu_s = []
    for address in (warm_up_url, url):
        with lk.connect(
            "lab",
            rpc_url=address,
            transactions_url=address,
            transfers_url=address,
            in_flight=IN_FLIGHT,
            rate=None,
        ) as ledger:
            begin, begin_cpu = time.perf_counter(), time.process_time()
            statement = lk.statement(ACCOUNT, progress=False, ledger=ledger)
            took = time.perf_counter() - begin
            cpu_s.append(time.process_time() - begin_cpu)
            peak, requests = peak_mb(), take_requests(address)
            with redirect_stdout(None):  # a dry run prints its plan
                plan = lk.statement(ACCOUNT, dry_run=True, ledger=ledger)
    totals, entries = statement.totals, len(statement.store)
    adds_up = len(totals) == 2 and not totals["missing"].any() and statement.gaps.empty
    is_whole = adds_up and entries == count * ENTRIES and not statement.facts.notes
    first, cpu = cpu_s
    return Figures(count, took, cpu, peak, requests, plan.requests, entries, is_whole, first)


def measured(count: int) -> Figures:
    """Build a statement in a fresh process, and print its row of the table."""
    with running(10, 0.0) as first, running(count, LATENCY_S) as url:
        run = apart(build, url, count, first)
    print(f"{count:>12,}{sum(run.requests.values()):>10,}{run.seconds:>10.2f}", end="")
    print(f"{run.limit_s:>10.2f}{run.cpu_s:>10.2f}{run.a_minute:>11,.0f}", end="")
    print(f"{run.entries / run.cpu_s:>12,.0f}{run.peak_mb:>9.0f}", flush=True)
    return run


def judge(runs: dict[int, Figures]) -> None:
    """Compare entries and requests with what they must be."""
    right = sum(run.adds_up for run in runs.values())
    figure = f"{sum(run.entries for run in runs.values()):,} entries"
    say("each statement has all entries and adds up", figure, met=right == len(runs))
    listed = [
        run.requests["/v0/account"] + run.requests["/v0/transactions"] for run in runs.values()
    ]
    planned = [run.planned["Transactions API"] for run in runs.values()]
    claim = "a dry run predicts the requests for transactions"
    say(claim, f"{sum(listed):,} requests", met=listed == planned)


def judge_scale(runs: dict[int, Figures]) -> None:
    """Judge the times, and pace and memory at many transactions."""
    few, many = runs[10**4], runs[10**5]
    first_ms = min(run.first_cpu_s for run in runs.values()) * 1e3
    claim = f"the first of a session: at most {FIRST_MS:.0f} ms of CPU beside pandas"
    say(claim, f"{first_ms:.0f} ms", met=first_ms <= FIRST_MS)
    allowed_s = many.limit_s + many.transactions * 60 / A_MINUTE + FIXED_S
    claim = f"{many.transactions:,} transactions: at most {allowed_s:,.0f} s"
    figure = f"{many.seconds:.0f} s, the network's limit {many.limit_s:.0f} s"
    say(claim, figure, met=many.seconds <= allowed_s)
    claim = f"at least {A_MINUTE:,} transactions a minute a core"
    say(claim, f"{many.a_minute:,.0f}", met=many.a_minute >= A_MINUTE)
    flat = many.peak_mb / few.peak_mb
    say(f"memory at 10^5 at most {FLAT} x that at 10^4", f"{flat:.2f}", met=flat <= FLAT)
    say(
        f"memory at 10^5 at most {MOST_MB:.0f} MB",
        f"{many.peak_mb:.0f} MB",
        met=many.peak_mb <= MOST_MB,
    )


def main() -> None:
    small = is_small("Time statements.")
    print(f"{'transactions':>12}{'requests':>10}{'seconds':>10}{'limit':>10}", end="")
    print(f"{'CPU':>10}{'a minute':>11}{'entries/s':>12}{'peak MB':>9}")
    runs = {count: measured(count) for count in (COUNTS[:2] if small else COUNTS)}
    judge(runs)
    if not small:
        judge_scale(runs)
    finish()


if __name__ == "__main__":
    main()
