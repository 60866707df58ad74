"""
A million balances: the dtype u128 against Python ints in an object column, raw arrays and peers.

Prints the best and the median CPU time of interleaved rounds in this process; the targets are
judged by the best, since other work only adds to a time. Against object ints: a sum at least 8
times as fast, sums by group at least 4 and sorting at least 3. Against the rest: a sum at most
1.5 times the sums of the two planes, which wrap at 64 bits; sums of 10,000 groups, by integers
and by texts, at most the time of the fastest of Arrow, DuckDB and Polars; a round trip through
Parquet at most 1.3 times that of Arrow's own decimals; and 17 bytes a row. Every result is
checked. "pandas, 64 bits" is the limit of a sum by group: that of a column of uint64, which
wraps. Most of it is pandas' search for the distinct keys, before a column is asked to add.
"""

from __future__ import annotations

import random
import statistics
import tempfile
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from _measuring import alternate, cpu_seconds
from _verdict import finish, say

from ledgerkit.u128 import arrow, parquet, planes
from ledgerkit.u128.array import U128Array, U128Dtype

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 1_000_000
OWNERS = 60_000  # some 17 tokens each
TOKENS = 10_000
ROUNDS = 9

draw = random.Random(128)
# The sum of all fits 38 digits, since DuckDB and Polars have no more.
ints = [draw.getrandbits(draw.choice((20, 50, 80, 100, 106))) for _ in range(ROWS)]
pick = np.random.default_rng(128)
tokens = pick.integers(0, TOKENS, ROWS)
contracts = np.array([f"token-{number}.factory.near" for number in range(TOKENS)])
keys = {
    "owner": pick.integers(0, OWNERS, ROWS),
    "token": tokens,
    "contract": pd.array(contracts[tokens], dtype="str"),
}
hi, lo = planes.from_ints(ints)
no_mask = np.zeros(ROWS, dtype=np.bool_)

exact = pd.DataFrame({**keys, "balance": U128Array(hi, lo, no_mask)})
objects = pd.DataFrame({**keys, "balance": pd.Series(ints, dtype=object)})
pa = arrow.library()
decimal = pd.ArrowDtype(pa.decimal128(38, 0))
table = pa.table({name: pa.array(exact[name].array) for name in exact})
decimals = pd.DataFrame({"balance": pd.Series(table["balance"], dtype=decimal)})
plain = exact.assign(balance=lo)

folder = tempfile.TemporaryDirectory()


def through_pandas(frame: pd.DataFrame, **options: Any) -> pd.DataFrame:
    path = Path(folder.name, "pandas.parquet")
    frame.to_parquet(path)
    return pd.read_parquet(path, **options)


def through_ledgerkit(frame: pd.DataFrame) -> pd.DataFrame:
    path = Path(folder.name, "ledgerkit.parquet")
    parquet.write_parquet(frame, path)
    return parquet.read_parquet(path)


def add(column: Any) -> Any:
    return column.sum()


def add_by(key: str, frame: pd.DataFrame) -> Any:
    return frame.groupby(key)["balance"].sum()


def sort(column: Any) -> Any:
    return column.sort_values()


Peer = tuple["Callable[[], Any]", "Callable[[str], Any]"]  # sums all, and by a key


def with_arrow() -> Peer:
    compute = import_module("pyarrow.compute")
    return (
        lambda: compute.sum(table["balance"]),
        lambda key: table.group_by(key).aggregate([("balance", "sum")]),
    )


def with_duckdb() -> Peer:
    connection = import_module("duckdb").connect()
    connection.register("arrow", table)
    connection.execute("create table balances as from arrow")
    query = "select {}sum(balance) as balance_sum from balances"
    return (
        lambda: connection.sql(query.format("")).to_arrow_table(),
        lambda key: connection.sql(query.format(f"{key}, ") + f" group by {key}").to_arrow_table(),
    )


def with_polars() -> Peer:
    polars = import_module("polars")
    frame = polars.from_arrow(table)
    total = polars.col("balance").sum().alias("balance_sum")
    return frame["balance"].sum, lambda key: frame.group_by(key).agg(total)


GROUPED = ("token", "contract")
PEERS = {"Arrow": with_arrow, "DuckDB": with_duckdb, "Polars": with_polars}

WAYS: dict[str, dict[str, Callable[[], Any]]] = {
    "sum": {
        "object": partial(add, objects["balance"]),
        "planes": lambda: (hi.sum(), lo.sum()),
        "u128": partial(add, exact["balance"]),
    },
    "sort": {
        "object": partial(sort, objects["balance"]),
        "u128": partial(sort, exact["balance"]),
    },
    "Parquet": {
        "decimal128": lambda: through_pandas(decimals, dtype_backend="pyarrow"),
        "u128": lambda: through_ledgerkit(exact[["balance"]]),
    },
}
FRAMES = {"object": objects, "u128": exact, "pandas, 64 bits": plain}
for key in keys:
    WAYS[f"sum by {key}"] = {name: partial(add_by, key, frame) for name, frame in FRAMES.items()}
AT_LEAST = {"sum": 8.0, "sum by owner": 4.0, "sum by token": 4.0, "sort": 3.0}
AT_MOST = {("sum", "planes"): 1.5, ("Parquet", "decimal128"): 1.3}
BYTES = 17


def add_peers() -> None:
    """Add the installed peers to the ways, and print those that are not."""
    for name, prepare in PEERS.items():
        try:
            add_all, add_group = prepare()
        except ImportError as error:
            print(f"{name}: not installed ({error})")
            continue
        print(f"{name} {version('pyarrow' if name == 'Arrow' else name.lower())}")
        WAYS["sum"][name] = add_all
        for key in GROUPED:
            WAYS[f"sum by {key}"][name] = partial(add_group, key)


def check() -> None:
    assert exact["balance"].tolist() == ints
    assert exact["balance"].sum() == sum(ints)
    for work in ("sum by owner", "sum by token", "sum by contract"):
        assert WAYS[work]["object"]().tolist() == WAYS[work]["u128"]().tolist()
    for key in GROUPED:
        by_key = WAYS[f"sum by {key}"]
        expected = by_key["u128"]().to_dict()
        for name in PEERS.keys() & by_key.keys():
            sums = pa.table(by_key[name]()).to_pydict()
            assert dict(zip(sums[key], map(int, sums["balance_sum"]), strict=True)) == expected
    assert WAYS["sort"]["u128"]().tolist() == sorted(ints)
    read = WAYS["Parquet"]["u128"]()["balance"]
    assert read.dtype == U128Dtype()
    assert read.equals(exact["balance"])


def report(took: dict[str, dict[str, list[float]]]) -> None:
    print(f"{ROWS:,} rows, {OWNERS:,} owners, {TOKENS:,} tokens, {ROUNDS} interleaved rounds")
    print(f"{'CPU time':<17}{'way':<17}{'best ms':>9}{'median':>9}{'u128 is x as fast':>20}")
    for work, ways in took.items():
        for way, all_s in ways.items():
            best, median = min(all_s), statistics.median(all_s)
            ratio = "" if way == "u128" else f"{best / min(ways['u128']):.2f}"
            print(f"{work:<17}{way:<17}{best * 1e3:>9.1f}{median * 1e3:>9.1f}{ratio:>20}")
    print(f"{'memory':<17}{'u128':<17}{exact['balance'].array.nbytes / ROWS:>9.1f} bytes a row")


def verdicts(took: dict[str, dict[str, list[float]]]) -> None:
    for work, least in AT_LEAST.items():
        ratio = min(took[work]["object"]) / min(took[work]["u128"])
        claim = f"{work}: at least {least:.0f} x as fast as object ints"
        say(claim, f"{ratio:.1f}", met=ratio >= least)
    for (work, way), most in AT_MOST.items():
        ratio = min(took[work]["u128"]) / min(took[work][way])
        say(f"{work}: at most {most:g} x the time of {way}", f"{ratio:.2f}", met=ratio <= most)
    for work in (f"sum by {key}" for key in GROUPED):
        bests = {name: min(took[work][name]) for name in PEERS.keys() & took[work].keys()}
        if bests:
            first = min(bests, key=lambda name: bests[name])
            ratio = min(took[work]["u128"]) / bests[first]
            claim = f"{work}: at most the time of the fastest of {', '.join(PEERS)}"
            say(claim, f"{ratio:.2f} x {first}", met=ratio <= 1)
    size = exact["balance"].array.nbytes / ROWS
    say(f"{BYTES} bytes a row", f"{size:g}", met=size <= BYTES)


def main() -> None:
    add_peers()
    with folder:
        check()
        timed = {
            work: {way: partial(cpu_seconds, run) for way, run in ways.items()}
            for work, ways in WAYS.items()
        }
        took = {work: alternate(ways, ROUNDS) for work, ways in timed.items()}
    report(took)
    verdicts(took)
    finish()


if __name__ == "__main__":
    main()
