"""
A flipped bit in a file of a collection is refused by every reader; in the disk cache it is lost.

One bit of a part, a commit, the manifest or the record of the end of a collection is flipped. A
reader must then raise DecodeError with the name of that file, and return no rows. In the file of
a disk cache, each entry must be missing afterwards, or have the bytes that were stored.
"""

from __future__ import annotations

import logging
import random
import tempfile
from collections import Counter
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ledgerkit as lk
from ledgerkit.errors import DecodeError
from ledgerkit.transport.disk_cache import DiskCache
from tests.unit.collecting.builders import Holdings, write_collection
from tools.campaigns._byte_mutations import flip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tools.campaigns._campaign import Tally

COUNT = 10_000
SMALL = 60
VIEWS = ("accounts", "ft", "nft", "staking", "exposure")
GROUPS = {
    "part": "*/part-*.parquet",
    "commit": "commits/*.json",
    "manifest": "manifest.json",
    "record of the end": "finished.json",
}
REFUSED = {group: f"refused, in a {group}" for group in GROUPS}
MISSING, STORED = "cache: entries missing", "cache: entries as stored"
EXPECTED = (*REFUSED.values(), MISSING, STORED)
READERS: dict[str, Callable[[Path, str], Any]] = {
    "pandas": lambda out, table: lk.open_collection(out).pandas(table),
    "arrow": lambda out, table: lk.open_collection(out).arrow(table),
    "dataset": lambda out, table: lk.open_collection(out).dataset(table),
    "polars": lambda out, table: lk.open_collection(out).polars(table),
    "dask": lambda out, table: lk.open_collection(out).dask(table).compute(scheduler="synchronous"),
    "check_files": lambda out, _: lk.open_collection(out).check_files(),
    "duckdb": lambda out, _: lk.open_collection(out).duckdb().close(),
    "diff": lambda out, table: lk.diff(out, out, table if table in VIEWS else "ft"),
}
CACHE_EVERY = 20  # of so many flips, one is in the cache
N_ENTRIES = 20


def write(out: Path, rng: random.Random) -> None:
    """Write a collection with large and small balances, lists and failures, in several parts."""
    accounts = {
        f"person{number}.near": Holdings(
            (rng.randrange(10**27), "ok"),
            {f"t{n}.near": (rng.randrange(2**128), "ok") for n in range(number % 4)},
            [("n.near", f"{number}:{n}") for n in range(number % 3)],
            [f"pool{n}.near" for n in range(number % 2)],
        )
        if number % 10
        else None
        for number in range(60)
    }
    write_collection(out, accounts, part_size=25)


@contextmanager
def flipped(path: Path, rng: random.Random) -> Iterator[str]:
    """Flip one bit of a file for the time of a block; yield its place."""
    body = path.read_bytes()
    damaged = flip(body, rng)
    path.write_bytes(damaged)
    at = next(n for n, (old, new) in enumerate(zip(body, damaged, strict=True)) if old != new)
    try:
        yield f"byte {at} of {path.parent.name}/{path.name}"
    finally:
        path.write_bytes(body)


def flip_in_collection(out: Path, group: str, rng: random.Random, tally: Tally) -> str:
    """Flip a bit of a file of a group, open it with a reader, and return the reader."""
    path = rng.choice(sorted(out.glob(GROUPS[group])))
    table = path.parent.name if group == "part" else "ft"
    reader = rng.choice(list(READERS))
    with flipped(path, rng) as place:
        try:
            READERS[reader](out, table)
        except DecodeError as error:
            if path.name in str(error):
                tally.count(REFUSED[group])
            else:
                tally.violate(f"{place}: {reader} names another file: {error}")
        except Exception as error:  # noqa: BLE001 - any other error is what this script looks for
            tally.violate(f"{place}: {reader} raises {type(error).__name__}: {error}")
        else:
            tally.violate(f"{place}: {reader} reads the table")
    return reader


def open_cache(folder: Path) -> DiskCache:
    return DiskCache(lk.Cache(path=folder), {"rpc": "http://localhost:1"})


def write_cache(folder: Path, rng: random.Random) -> dict[bytes, bytes]:
    """Write a cache, and return the bodies of its entries by key."""
    entries = {rng.randbytes(32): rng.randbytes(rng.randrange(2_000)) for _ in range(N_ENTRIES)}
    with closing(open_cache(folder)) as cache:
        for key, body in entries.items():
            cache.put(key, "block", 1.7e9, body)
    return entries


def flip_in_cache(
    folder: Path, entries: dict[bytes, bytes], rng: random.Random, tally: Tally
) -> None:
    """Flip a bit of the file of a cache, and read all entries."""
    [path] = folder.glob("*.sqlite3")
    with flipped(path, rng) as place:
        with closing(open_cache(folder)) as cache:
            for key, body in entries.items():
                entry = cache.get(key, "block")
                tally.count(MISSING if entry is None else STORED)
                if entry is not None and (entry.body, entry.stored_at) != (body, 1.7e9):
                    tally.violate(f"{place}: the cache has another entry")
        for journal in folder.glob("*-*"):
            journal.unlink()


def run(count: int, seed: int, tally: Tally) -> None:
    """Flip the bits, one at a time."""
    rng = random.Random(seed)
    log = logging.getLogger("ledgerkit")  # of each entry that is dropped
    level = log.level
    log.setLevel(logging.CRITICAL)
    readers: Counter[str] = Counter()
    try:
        with tempfile.TemporaryDirectory() as folder:
            out, cache = Path(folder, "run"), Path(folder, "cache")
            write(out, rng)
            entries = write_cache(cache, rng)
            groups = ["part", "part", *GROUPS]
            for number in range(count):
                if number % CACHE_EVERY == 0:
                    flip_in_cache(cache, entries, rng, tally)
                else:
                    group = groups[number % len(groups)]
                    readers[flip_in_collection(out, group, rng, tally)] += 1
            lk.open_collection(out).check_files()  # undamaged again
    finally:
        log.setLevel(level)
    tally.notes.append(", ".join(f"{reader} {n:,}" for reader, n in sorted(readers.items())))
