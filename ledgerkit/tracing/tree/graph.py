"""The graph of receipts as integers: causal order, depths, subtree sums, critical paths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Pairs = Sequence[tuple[int, int]]


def sort(
    created: Iterable[tuple[int, int]], roots: Iterable[int], n_rows: int, data: Pairs
) -> list[int]:
    """
    Sort rows so that none precedes what it depends on; rows in or after a cycle are omitted.

    `created` has pairs of creator and created row, by creator. `data` has pairs of producer and
    consumer. The `roots`, which no row created, come first. Any other row follows the last row
    that it depends on.
    """
    # Lists of each row's followers would be many objects for the garbage collector to visit.
    created_rows: list[int] = []
    counts, n_waits = [0] * n_rows, [0] * n_rows
    for before, after in created:
        created_rows.append(after)
        counts[before] += 1
        n_waits[after] += 1
    consumers: defaultdict[int, list[int]] = defaultdict(list)
    for before, after in data:
        consumers[before].append(after)
        n_waits[after] += 1
    starts = [0, *accumulate(counts)]
    first = dict.fromkeys(chain(roots, range(n_rows)))
    order = [row for row in first if not n_waits[row]]
    for row in order:
        for after in chain(created_rows[starts[row] : starts[row + 1]], consumers.get(row, ())):
            n_waits[after] -= 1
            if not n_waits[after]:
                order.append(after)
    return order


def depths(parents: Iterable[int]) -> list[int]:
    """Count the creators above each row; `parents` are the rows' creators (-1: none)."""
    counts: list[int] = []
    for parent in parents:
        counts.append(counts[parent] + 1 if parent >= 0 else 0)
    return counts


def subtree_sums(parents: Sequence[int], values: Sequence[int]) -> list[int]:
    """Sum the values of each row's subtree."""
    sums = list(values)
    for row in range(len(parents) - 1, -1, -1):
        if parents[row] >= 0:
            sums[parents[row]] += sums[row]
    return sums


def latest_chains(ends: Iterable[int], parents: Sequence[int], data: Pairs) -> list[int]:
    """Return the positions on the critical paths that end at `ends`."""
    latest = list(parents)
    for producer, consumer in data:
        latest[consumer] = max(latest[consumer], producer)
    path = []
    for end in ends:
        row = end
        while row >= 0:
            path.append(row)
            row = latest[row]
    return path


def by_height(
    order: Sequence[int], parents: Sequence[int], data: Pairs, heights: Sequence[int]
) -> list[int]:
    """Sort by height; a row counts as at least as high as the rows that it depends on."""
    producers: defaultdict[int, list[int]] = defaultdict(list)
    for producer, consumer in data:
        producers[consumer].append(producer)
    raised = list(heights)
    for row in order:
        if parents[row] >= 0:
            raised[row] = max(raised[row], raised[parents[row]])
        for producer in producers.get(row, ()):
            raised[row] = max(raised[row], raised[producer])
    return sorted(order, key=raised.__getitem__)
