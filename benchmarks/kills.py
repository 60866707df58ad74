"""
A collection that is killed many times stores the same rows as an undisturbed one.

A child process collects invented accounts from a service in another process. After a random
time it gets SIGKILL, and the next child continues. No time is measured: both datasets must be
equal, table by table, row by row and in order, except for the times at which rows were read.

`python benchmarks/kills.py --accounts 10000 --kills 5` is the small edition.
"""

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from _canned import account_ids, running
from _verdict import finish, say

import ledgerkit as lk

TABLES = ("accounts", "ft", "nft", "staking", "exposure", "subjects", "errors")
PART_SIZE = 200
SEED = 9


def write_ids(path: Path, count: int) -> Path:
    """Write the ids to a file: each 1,000th is malformed, and the next one is a repeat."""
    entries = list(account_ids(count))
    for place in range(999, count - 1, 1_000):
        entries[place : place + 2] = [f"NOT AN ID {place}", entries[place - 900]]
    path.write_text("\n".join(entries))
    return path


def collect(ids: Path, out: Path, url: str, rate: float | None) -> None:
    """Collect all views through the public function."""
    network = {"api_url": url, "in_flight": 32, "rate": rate}
    with lk.connect("lab", **network) as ledger:  # type: ignore[arg-type]  # typed by their names
        options = {"part_size": PART_SIZE, "liquid_tokens": ["token3.near"], "progress": False}
        lk.collect(ids, out=out, ledger=ledger, **options)  # type: ignore[call-overload]  # as above


def stored(out: Path) -> int:
    """Count the parts that are stored."""
    return len(list((out / "commits").glob("*.json")))


def killed(ids: Path, out: Path, url: str, rate: float, kills: int) -> int:
    """Collect in children that are killed; return how many were killed at work."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", "pandas", "pyarrow.parquet", "aiohttp"])
    chance = random.Random(SEED)
    count = len(ids.read_text().splitlines())
    life = count / rate / kills  # average seconds, so that all kills happen during work
    hits = 0
    while True:
        child = context.Process(target=collect, args=(ids, out, url, rate))
        child.start()
        before, begin = stored(out), time.monotonic()
        while hits < kills and child.is_alive() and time.monotonic() - begin < 5:
            if stored(out) > before:  # it is at work: wait a random time
                time.sleep(chance.uniform(0, life))
                break
            time.sleep(0.002)
        if hits < kills and child.is_alive():
            os.kill(child.pid or 0, signal.SIGKILL)
            hits += 1
        child.join()
        if child.exitcode == 0:
            return hits
        if child.exitcode != -signal.SIGKILL:
            sys.exit(f"a collector stopped with exit code {child.exitcode}")


def table(out: Path, name: str) -> pa.Table:
    """Read a table in the order of its files, without the times at which rows were read."""
    files = sorted((out / name).glob("*.parquet"))
    parts = [pq.ParquetFile(file).read() for file in files]
    whole = pa.concat_tables(parts) if parts else pa.table({})
    dropped = [column for column in whole.column_names if column == "fetched_at"]
    return whole.drop_columns(dropped).combine_chunks()


def main() -> None:
    options = argparse.ArgumentParser(description="Kill collections, compare what they store.")
    options.add_argument("--accounts", type=int, default=50_000)
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--rate", type=float, default=1_200.0, help="requests a second")
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, running() as url:
        ids = write_ids(Path(folder, "ids.txt"), arguments.accounts)
        undisturbed, disturbed = Path(folder, "undisturbed"), Path(folder, "disturbed")
        collect(ids, undisturbed, url, None)
        hits = killed(ids, disturbed, url, arguments.rate, arguments.kills)
        differing = [name for name in TABLES if table(undisturbed, name) != table(disturbed, name)]
        rows = {name: len(table(disturbed, name)) for name in ("accounts", "ft", "errors")}
    counts = ", ".join(f"{count:,} of {name}" for name, count in rows.items())
    print(f"{arguments.accounts:,} ids, killed {hits} times at work; rows: {counts}")
    if hits < arguments.kills:
        sys.exit(f"the collection finished after {hits} kills of {arguments.kills}: lower --rate")
    figure = f"differing: {', '.join(differing)}" if differing else f"{hits} kills"
    say("equal to the undisturbed collection, row for row", figure, met=not differing)
    finish()


if __name__ == "__main__":
    main()
