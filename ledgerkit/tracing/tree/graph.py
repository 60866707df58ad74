"""Rows and edges as integers: one creator per row, causal order, no cycles."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Pairs = tuple[np.ndarray, np.ndarray]

_SAFE = 2.0**62  # sums up to here fit 64 bits, whatever the rounding of floats


def depths(parents: np.ndarray) -> np.ndarray:
    """
    Count the creators above each row.

    `parents` is the creator of each row (-1: none). In or below a cycle, the count is that of all
    rows.
    """
    counts = np.zeros(len(parents) + 1, dtype=np.int64)  # the last element is above all rows
    counts[:-1] = parents >= 0
    for above in _ancestors(parents):
        counts += counts[above]
    return np.minimum(counts[:-1], len(parents))


def _ancestors(parents: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the creator of each row, then those 2, 4, 8 … above it; `len(parents)` if none."""
    n_rows = len(parents)
    above = np.full(n_rows + 1, n_rows, dtype=np.int64)
    np.copyto(above[:-1], parents, where=parents >= 0)
    for _ in range(n_rows.bit_length()):  # more only in a cycle
        if above.min() == n_rows:
            return
        yield above
        above = above[above]


def subtree_sums(parents: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sum each row's value and those below it; Python integers if a sum may exceed 64 bits."""
    fits = values.sum(dtype=np.float64) <= _SAFE
    # The last element is the sum of all rows, several times over.
    sums = np.zeros(len(values) + 1, dtype=values.dtype if fits else object)
    sums[:-1] = values
    for above in _ancestors(parents):
        np.add.at(sums, above[:-1], sums[:-1].copy())
    return sums[:-1]


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


def sort(created: Pairs, roots: np.ndarray, depths: np.ndarray, data: Pairs) -> np.ndarray:
    """
    Sort rows so that none precedes what it depends on; rows in or after a cycle are omitted.

    `created` are pairs of creator and created row, by creator, and `data` pairs of producer and
    consumer. No row created the `roots`; they come first.
    """
    order = None if len(data[0]) else _order_by_depth(created, roots, depths)
    return _order_by_level(created, roots, len(depths), data) if order is None else order


def _order_by_depth(created: Pairs, roots: np.ndarray, depths: np.ndarray) -> np.ndarray | None:
    """Sort rows by depth; None if rows of one depth are not in the order of their creation."""
    # The fastest to sort are 16 bits.
    is_short = depths.max(initial=0) <= np.iinfo(np.int16).max
    order = np.argsort(depths.astype(np.int16) if is_short else depths, kind="stable")
    creation = np.arange(len(depths)) - len(depths)  # of rows without a creator
    creation[roots] = np.arange(len(roots)) - 2 * len(depths)
    creation[created[1]] = np.arange(len(created[1]))
    by_depth, in_order = depths[order], creation[order]
    rises = (by_depth[1:] > by_depth[:-1]) | (in_order[1:] > in_order[:-1])
    return order if rises.all() else None


def _order_by_level(created: Pairs, roots: np.ndarray, n_rows: int, data: Pairs) -> np.ndarray:
    """Sort rows by the longest way from a row that waits for no other."""
    starts, following = _adjacent(created, n_rows, data)
    waits = np.bincount(following, minlength=n_rows)
    is_free = waits == 0
    first = roots[is_free[roots]]
    is_free[first] = False
    levels = [np.append(first, np.flatnonzero(is_free))]
    while levels[-1].size:
        levels.append(_next_level(levels[-1], starts, following, waits))
    return np.concatenate(levels)


def _adjacent(created: Pairs, n_rows: int, data: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """Return the successors of all rows in one array, and where each row's part begins."""
    earlier, later = (np.append(*ends) for ends in zip(created, data, strict=True))
    starts = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(earlier, minlength=n_rows), out=starts[1:])
    return starts, later[np.argsort(earlier, kind="stable")]


def _next_level(
    level: np.ndarray, starts: np.ndarray, following: np.ndarray, waits: np.ndarray
) -> np.ndarray:
    """Return the rows that wait for no other row after this level; update `waits`."""
    begins = starts[level]
    counts = starts[level + 1] - begins
    places = np.repeat(begins - np.cumsum(counts) + counts, counts)
    places += np.arange(len(places))
    reached: np.ndarray = following[places]
    is_ready = waits[reached] == 1
    if is_ready.all():
        return reached
    others = np.flatnonzero(~is_ready)  # places of rows that wait for several, or are reached twice
    np.subtract.at(waits, reached[others], 1)
    done = others[waits[reached[others]] == 0]
    waits[reached[done]] = done  # a row reached twice keeps its last place
    is_ready[done] = waits[reached[done]] == done
    ready: np.ndarray = reached[is_ready]
    return ready


def by_height(
    order: np.ndarray, parents: np.ndarray, data: Pairs, heights: np.ndarray
) -> np.ndarray:
    """Sort by height, raised where a row would otherwise precede what it depends on."""
    created = np.flatnonzero(parents >= 0)
    rises = (heights[parents[created]] <= heights[created]).all()
    if not (rises and (heights[data[0]] <= heights[data[1]]).all()):
        heights = _raise_heights(order, parents, data, heights)
    return order[np.argsort(heights[order], kind="stable")]


def _raise_heights(
    order: np.ndarray, parents: np.ndarray, data: Pairs, heights: np.ndarray
) -> np.ndarray:
    """Raise the height of each row to the largest of the rows it depends on."""
    producers: defaultdict[int, list[int]] = defaultdict(list)
    for producer, consumer in zip(data[0].tolist(), data[1].tolist(), strict=True):
        producers[consumer].append(producer)
    raised = heights.tolist()
    for row, parent in zip(order.tolist(), parents[order].tolist(), strict=True):
        earlier = [raised[other] for other in (parent, *producers.get(row, ())) if other >= 0]
        raised[row] = max([raised[row], *earlier])
    return np.array(raised, dtype=np.int64)
