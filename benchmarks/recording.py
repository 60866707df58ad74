"""
A recording of many answers: its size, the time to write and to replay it, and the memory.

A host in its own process answers with accounts of 17 tokens on average. Each phase runs in a
fresh process, whose peak memory is measured: reading without recording, reading with it, and
replaying the file, for 10^4 and for 10^5 answers.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import _canned
from _verdict import finish, say

import ledgerkit as lk
from ledgerkit.api import rest

COUNTS = (10_000, 100_000)
IN_FLIGHT = 32
MAX_OVERHEAD = 1.5  # of reading with recording, to reading alone
MAX_GROWTH = 1.15  # of memory for ten times the answers


def read(source: lk.Ledger, count: int) -> None:
    """Read accounts, a batch after the other."""
    calls = (rest.ft(account_id) for account_id in _canned.account_ids(count))
    n_answers = sum(len(batch) for batch in source.stream(calls))
    assert n_answers == count


def phase(name: str, url: str, path: str, count: int) -> None:
    """Run a phase in this process, and print its seconds and its peak memory in MB."""
    begin = time.perf_counter()
    if name == "replay":
        ledger = lk.connect(path, in_flight=1)
    else:
        record = path if name == "record" else None
        ledger = lk.connect("lab", api_url=url, record=record, rate=None, in_flight=IN_FLIGHT)
    opened = time.perf_counter() - begin
    with ledger:
        read(ledger, count)
    took = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(opened, took, peak)


def measured(name: str, url: str, path: Path, count: int) -> tuple[float, float, float]:
    """Run a phase in a fresh process; return its seconds to open and in all, and its MB."""
    command = [sys.executable, __file__, name, url, str(path), str(count)]
    opened, took, peak = subprocess.check_output(command, text=True).split()
    return float(opened), float(took), float(peak)


def main() -> None:
    """Measure each phase for each count."""
    peaks: dict[str, list[float]] = {}
    took: dict[str, float] = {}
    with _canned.running() as url, tempfile.TemporaryDirectory() as folder:
        for count in COUNTS:
            path = Path(folder) / f"{count}.lk"
            for name in ("read", "record", "replay"):
                opened, took[name], peak = measured(name, url, path, count)
                peaks.setdefault(name, []).append(peak)
                extra = f", {opened:.2f} s of it to open and check it" if name == "replay" else ""
                print(f"{count:,} answers, {name}: {took[name]:.1f} s, {peak:.0f} MB{extra}")
            print(f"{count:,} answers: {path.stat().st_size / 1e6:.1f} MB on disk")
    overhead = took["record"] / took["read"]
    say(
        f"recording at most {MAX_OVERHEAD} x reading alone",
        f"{overhead:.2f}",
        met=overhead <= MAX_OVERHEAD,
    )
    for name in ("record", "replay"):
        growth = peaks[name][1] / peaks[name][0]
        claim = f"{name}: memory for ten times the answers at most {MAX_GROWTH} x"
        say(claim, f"{growth:.2f}", met=growth <= MAX_GROWTH)
    finish()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        name_, url_, path_, count_ = sys.argv[1:]
        phase(name_, url_, path_, int(count_))
    else:
        main()
