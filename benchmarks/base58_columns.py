"""
Base58 of 100,000 ids: whole columns against the base58 package, id by id.

Prints medians of interleaved rounds in this process. Target: encoding and decoding are at
least 10 times as fast as with the base58 package, with the same results.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import base58
import numpy as np
from _verdict import finish, say

from ledgerkit.frames import base58_columns

if TYPE_CHECKING:
    from collections.abc import Callable

IDS = 100_000
ROUNDS = 7
TARGET = 10.0

rows = np.random.default_rng(58).integers(0, 256, (IDS, 32), dtype=np.uint8)
rows[::1000, 0] = 0  # more leading zeros than chance would give
values = [row.tobytes() for row in rows]
texts = [base58.b58encode(value).decode() for value in values]


def one_by_one_encode() -> list[str]:
    return [base58.b58encode(value).decode() for value in values]


def one_by_one_decode() -> list[bytes]:
    return [base58.b58decode(text) for text in texts]


WAYS: dict[str, Callable[[], Any]] = {
    "base58 encode": one_by_one_encode,
    "encode an array": lambda: base58_columns.encode(rows),
    "encode a list": lambda: base58_columns.encode(values),
    "base58 decode": one_by_one_decode,
    "decode": lambda: base58_columns.decode(texts),
}


def seconds(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def report(took: dict[str, list[float]]) -> None:
    print(f"{IDS:,} ids of 32 bytes, {ROUNDS} interleaved rounds")
    print(f"{'':<18}{'us an id':>10}{'best':>8}{'x base58':>10}")
    ratios = []
    for name, all_s in took.items():
        base = took["base58 decode" if "decode" in name else "base58 encode"]
        median = statistics.median(all_s)
        ratio = statistics.median(base) / median
        ratios += [] if name.startswith("base58") else [ratio]
        print(f"{name:<18}{median / IDS * 1e6:>10.3f}{min(all_s) / IDS * 1e6:>8.3f}{ratio:>10.1f}")
    least = min(ratios)
    claim = f"at least {TARGET:.0f} x as fast as base58, both ways"
    say(claim, f"{least:.1f}", met=least >= TARGET)


def main() -> None:
    assert base58_columns.encode(rows) == base58_columns.encode(values) == texts
    assert np.array_equal(base58_columns.decode(texts), rows)
    took: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(ROUNDS):  # interleaved, so that a busy moment affects all of them
        for name, work in WAYS.items():
            took[name].append(seconds(work))
    report(took)
    finish()


if __name__ == "__main__":
    main()
