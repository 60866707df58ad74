"""The graph of receipts as integers: causal order, depths, subtree sums, critical paths."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    Pairs = tuple[np.ndarray, np.ndarray]

_TOO_LARGE = 2**64


def sort(created: Pairs, roots: np.ndarray, n_rows: int, data: Pairs) -> np.ndarray:
    """
    Sort rows so that none precedes what it depends on; rows in or after a cycle are omitted.

    `created` has pairs of creator and created row, by creator. `data` has pairs of producer and
    consumer. The `roots`, which no row created, come first. Any other row follows the last row
    that it depends on.
    """
    following: list[list[int]] = [[] for _ in range(n_rows)]
    for earlier, later in (created, data):
        for before, after in zip(earlier.tolist(), later.tolist(), strict=True):
            following[before].append(after)
    waits = np.bincount(np.append(created[1], data[1]), minlength=n_rows)
    is_free = waits == 0
    first = roots[is_free[roots]]
    is_free[first] = False
    order, n_waits = [*first.tolist(), *np.flatnonzero(is_free).tolist()], waits.tolist()
    for row in order:
        for after in following[row]:
            n_waits[after] -= 1
            if not n_waits[after]:
                order.append(after)
    return np.array(order, dtype=np.int64)


def depths(parents: np.ndarray) -> np.ndarray:
    """Count the creators above each row; `parents` are the rows' creators (-1: none)."""
    counts: list[int] = []
    for parent in parents.tolist():
        counts.append(counts[parent] + 1 if parent >= 0 else 0)
    return np.array(counts, dtype=np.int64)


def subtree_sums(parents: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sum the values of each row's subtree; Python integers if a sum exceeds 64 bits."""
    sums: list[int] = values.tolist()
    for row, parent in reversed([*enumerate(parents.tolist())]):
        if parent >= 0:
            sums[parent] += sums[row]
    return np.array(sums, dtype=np.uint64 if max(sums, default=0) < _TOO_LARGE else object)


def latest_chains(ends: Sequence[int], parents: np.ndarray, data: Pairs) -> list[int]:
    """Return the positions on the critical paths that end at `ends`."""
    before = parents.copy()
    np.maximum.at(before, data[1], data[0])
    latest = before.tolist()
    path = []
    for end in ends:
        row = end
        while row >= 0:
            path.append(row)
            row = latest[row]
    return path


def by_height(
    order: np.ndarray, parents: np.ndarray, data: Pairs, heights: np.ndarray
) -> np.ndarray:
    """Sort by height; a row counts as at least as high as the rows that it depends on."""
    producers: defaultdict[int, list[int]] = defaultdict(list)
    for producer, consumer in zip(data[0].tolist(), data[1].tolist(), strict=True):
        producers[consumer].append(producer)
    raised = heights.tolist()
    for row, parent in zip(order.tolist(), parents[order].tolist(), strict=True):
        for earlier in (parent, *producers.get(row, ())):
            if earlier >= 0:
                raised[row] = max(raised[row], raised[earlier])
    return order[np.argsort(np.array(raised, dtype=np.int64)[order], kind="stable")]
