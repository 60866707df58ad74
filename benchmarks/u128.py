"""
A million balances: the dtype u128 against Python ints in an object column, and raw arrays.

Prints the best and the median of interleaved rounds in this process. The targets are judged by
the best, since other work only adds to a time: a sum at least 8 times as fast
as that of object ints and at most 4 times the two sums of the planes, sums by group at least
4 and sorting at least 3 times as fast as object ints, a round trip through Parquet at most
1.3 times that of Arrow's own decimals, and 17 bytes a row. Every result is checked.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from _verdict import finish, say

from ledgerkit.u128 import arrow, parquet, planes
from ledgerkit.u128.array import U128Array, U128Dtype

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 1_000_000
OWNERS = 60_000  # some 17 tokens each
TOKENS = 1_000
ROUNDS = 9

draw = random.Random(128)
ints = [draw.getrandbits(draw.choice((20, 50, 80, 100, 110))) for _ in range(ROWS)]
texts = list(map(str, ints))
pick = np.random.default_rng(128)
keys = {"owner": pick.integers(0, OWNERS, ROWS), "token": pick.integers(0, TOKENS, ROWS)}
hi, lo = planes.from_ints(ints)
no_mask = np.zeros(ROWS, dtype=np.bool_)

exact = pd.DataFrame({**keys, "balance": U128Array(hi, lo, no_mask)})
objects = pd.DataFrame({**keys, "balance": pd.Series(ints, dtype=object)})
pa = arrow.library()
decimal = pd.ArrowDtype(pa.decimal128(38, 0))
decimals = pd.DataFrame({"balance": pd.Series(pa.array(exact["balance"].array), dtype=decimal)})

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


WAYS: dict[str, dict[str, Callable[[], Any]]] = {
    "parse": {
        "object": lambda: pd.Series(list(map(int, texts)), dtype=object),
        "u128": lambda: pd.Series(texts, dtype="u128"),
    },
    "sum": {
        "object": partial(add, objects["balance"]),
        "planes": lambda: (hi.sum(), lo.sum()),
        "u128": partial(add, exact["balance"]),
    },
    "sum by owner": {
        "object": partial(add_by, "owner", objects),
        "u128": partial(add_by, "owner", exact),
    },
    "sum by token": {
        "object": partial(add_by, "token", objects),
        "u128": partial(add_by, "token", exact),
    },
    "sort": {
        "object": partial(sort, objects["balance"]),
        "u128": partial(sort, exact["balance"]),
    },
    "compare": {
        "object": lambda: objects["balance"] > 10**24,
        "u128": lambda: exact["balance"] > 10**24,
    },
    "Parquet": {
        "decimal128": lambda: through_pandas(decimals, dtype_backend="pyarrow"),
        "u128": lambda: through_ledgerkit(exact[["balance"]]),
    },
}
AT_LEAST = {"sum": 8.0, "sum by owner": 4.0, "sum by token": 4.0, "sort": 3.0}
AT_MOST = {("sum", "planes"): 4.0, ("Parquet", "decimal128"): 1.3}
BYTES = 17


def check() -> None:
    assert exact["balance"].tolist() == ints
    assert exact["balance"].sum() == sum(ints)
    for by_key in (WAYS["sum by owner"], WAYS["sum by token"]):
        assert by_key["object"]().tolist() == by_key["u128"]().tolist()
    assert WAYS["sort"]["u128"]().tolist() == sorted(ints)
    assert WAYS["parse"]["u128"]().equals(exact["balance"])
    read = WAYS["Parquet"]["u128"]()["balance"]
    assert read.dtype == U128Dtype()
    assert read.equals(exact["balance"])


def seconds(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def measured() -> dict[str, dict[str, list[float]]]:
    took: dict[str, dict[str, list[float]]] = {
        work: {way: [] for way in ways} for work, ways in WAYS.items()
    }
    for _ in range(ROUNDS):  # interleaved, so that a busy moment affects all of them
        for work, ways in WAYS.items():
            for way, run in ways.items():
                took[work][way].append(seconds(run))
    return took


def report(took: dict[str, dict[str, list[float]]]) -> None:
    print(f"{ROWS:,} rows, {OWNERS:,} owners, {TOKENS:,} tokens, {ROUNDS} interleaved rounds")
    print(f"{'':<14}{'way':<12}{'best ms':>9}{'median':>9}{'u128 is x as fast':>20}")
    for work, ways in took.items():
        for way, all_s in ways.items():
            best, median = min(all_s), statistics.median(all_s)
            ratio = "" if way == "u128" else f"{best / min(ways['u128']):.2f}"
            print(f"{work:<14}{way:<12}{best * 1e3:>9.1f}{median * 1e3:>9.1f}{ratio:>20}")
    print(f"{'memory':<14}{'u128':<12}{exact['balance'].array.nbytes / ROWS:>9.1f} bytes a row")


def verdicts(took: dict[str, dict[str, list[float]]]) -> None:
    for work, least in AT_LEAST.items():
        ratio = min(took[work]["object"]) / min(took[work]["u128"])
        claim = f"{work}: at least {least:.0f} x as fast as object ints"
        say(claim, f"{ratio:.1f}", met=ratio >= least)
    for (work, way), most in AT_MOST.items():
        ratio = min(took[work]["u128"]) / min(took[work][way])
        say(f"{work}: at most {most:g} x the time of {way}", f"{ratio:.2f}", met=ratio <= most)
    size = exact["balance"].array.nbytes / ROWS
    say(f"{BYTES} bytes a row", f"{size:g}", met=size <= BYTES)


def main() -> None:
    with folder:
        check()
        took = measured()
    report(took)
    verdicts(took)
    finish()


if __name__ == "__main__":
    main()
