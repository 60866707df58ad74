"""Rows and edges as integers: one creator per row, causal order, no cycles."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Pairs = tuple[np.ndarray, np.ndarray]

_MANY_LEVELS = 512
_SAFE = 2.0**62  # sums up to here fit 64 bits, whatever the rounding of floats


@dataclass(frozen=True, slots=True)
class Graph:
    """
    Rows in causal order, and the edges that were kept.

    `parents` is the creator of each row (-1: none), `depths` the number of creators above it, and
    `is_kept` marks the pairs of producer and consumer that were kept. The other three list rows of
    which an edge was dropped, because it contradicted an earlier one.
    """

    order: np.ndarray
    parents: np.ndarray
    depths: np.ndarray
    is_kept: np.ndarray
    listed_twice: list[int]
    cut_from_cycle: list[int]
    cut_from_data: list[int]


def arrange(
    created: Pairs,
    roots: Sequence[int],
    n_rows: int,
    *,
    data: Pairs,
    heights: np.ndarray | None = None,
    trees: np.ndarray | None = None,
) -> Graph:
    """
    Sort rows so that none precedes what it depends on.

    `created` are pairs of creator and created row, by creator, and `data` pairs of producer and
    consumer. No row created the `roots`; they come first. With `heights` (0 where unknown), rows of
    lower blocks come first, as far as the edges allow. With `trees`, the number of each row's
    tree, rows are sorted tree by tree; no edge leads from one to another.
    """
    created, listed_twice = _one_creator_each(created, roots, n_rows)
    cut: list[int] = []
    parents = _parents(created, n_rows)
    depths = _depths(parents)
    if depths.max(initial=0) >= n_rows:
        created, cut = _cut_cycles(created, parents, set(np.flatnonzero(depths >= n_rows).tolist()))
        parents = _parents(created, n_rows)
        depths = _depths(parents)
    is_kept = data[0] != data[1]
    order = _order(created, roots, depths, _select(data, is_kept))
    cyclic: list[int] = []
    if len(order) < n_rows:
        cyclic = sorted(_unreached(order, n_rows))
        is_kept &= ~(np.isin(data[0], cyclic) & np.isin(data[1], cyclic))
        order = _order(created, roots, depths, _select(data, is_kept))
    if heights is not None:
        order = _by_height(order, parents, _select(data, is_kept), heights)
    if trees is not None:
        order = order[np.argsort(trees[order], kind="stable")]
    return Graph(order, parents, depths, is_kept, listed_twice, cut, cyclic)


def _select(pairs: Pairs, is_kept: np.ndarray) -> Pairs:
    """Return the pairs that are marked."""
    return pairs if is_kept.all() else (pairs[0][is_kept], pairs[1][is_kept])


def _depths(parents: np.ndarray) -> np.ndarray:
    """Count the creators above each row; in or below a cycle, they are as many as the rows."""
    depths = np.zeros(len(parents) + 1, dtype=np.int64)  # the last element is above all rows
    depths[:-1] = parents >= 0
    for above in _ancestors(parents):
        depths += depths[above]
    return np.minimum(depths[:-1], len(parents), out=depths[:-1])


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


def _one_creator_each(created: Pairs, roots: Sequence[int], n_rows: int) -> tuple[Pairs, list[int]]:
    """Drop all creators of a row but the first; the transaction comes before all receipts."""
    creators, rows = created
    times = np.bincount(rows, minlength=n_rows)
    times[list(roots)] += 1
    if times.max(initial=0) <= 1:
        return created, []
    keep = np.zeros(len(rows), dtype=bool)
    keep[np.unique(rows, return_index=True)[1]] = True
    keep &= ~np.isin(rows, list(roots))
    return (creators[keep], rows[keep]), rows[~keep].tolist()


def _parents(created: Pairs, n_rows: int) -> np.ndarray:
    """Return the creator of each row; -1 for none."""
    creators, rows = created
    parents = np.full(n_rows, -1, dtype=np.int64)
    parents[rows] = creators
    return parents


def _order(created: Pairs, roots: Sequence[int], depths: np.ndarray, data: Pairs) -> np.ndarray:
    """Sort rows topologically, level by level; rows in or after a cycle are omitted."""
    order = None if len(data[0]) else _order_by_depth(created, roots, depths)
    return _order_by_level(created, roots, len(depths), data) if order is None else order


def _order_by_depth(created: Pairs, roots: Sequence[int], depths: np.ndarray) -> np.ndarray | None:
    """Sort rows by depth; None if rows of one depth are not in the order of their creation."""
    # The fastest to sort are 16 bits.
    is_short = depths.max(initial=0) <= np.iinfo(np.int16).max
    order = np.argsort(depths.astype(np.int16) if is_short else depths, kind="stable")
    creation = np.arange(len(depths)) - len(depths)  # of rows without a creator
    creation[list(roots)] = np.arange(len(roots)) - 2 * len(depths)
    creation[created[1]] = np.arange(len(created[1]))
    by_depth, in_order = depths[order], creation[order]
    rises = (by_depth[1:] > by_depth[:-1]) | (in_order[1:] > in_order[:-1])
    return order if rises.all() else None


def _order_by_level(created: Pairs, roots: Sequence[int], n_rows: int, data: Pairs) -> np.ndarray:
    """Sort rows by the longest way from a row that waits for no other."""
    starts, following = _adjacent(created, n_rows, data)
    waits = np.bincount(following, minlength=n_rows)
    free = waits == 0
    first = [root for root in roots if free[root]]
    free[first] = False
    level = np.append(np.array(first, dtype=np.int64), np.flatnonzero(free))
    levels = [level]
    while level.size and len(levels) < _MANY_LEVELS:
        level = _next_level(level, starts, following, waits)
        levels.append(level)
    if not level.size:
        return np.concatenate(levels)
    deeper = _walk(level.tolist(), starts.tolist(), following.tolist(), waits)
    return np.concatenate([*levels, np.array(deeper, dtype=np.int64)])


def _adjacent(created: Pairs, n_rows: int, data: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """Return the successors of all rows in one array, and where each row's part begins."""
    counts = np.bincount(created[0], minlength=n_rows) + np.bincount(data[0], minlength=n_rows)
    starts = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    if not len(data[0]):
        return starts, created[1]
    by_producer = np.argsort(data[0], kind="stable")
    is_data = merged_places(created[0], data[0][by_producer])
    return starts, interleave(is_data, created[1], data[1][by_producer])


def merged_places(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Mark the places of the second of two sorted arrays when merged; equal values follow."""
    is_second = np.zeros(len(first) + len(second), dtype=bool)
    is_second[np.searchsorted(first, second, side="right") + np.arange(len(second))] = True
    return is_second


def interleave(is_second: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Merge two arrays of row numbers; `is_second` marks the places of the second."""
    if not len(second):
        return first
    values = np.empty(len(is_second), dtype=np.int64)
    values[is_second], values[~is_second] = second, first
    return values


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


def _walk(
    level: list[int], starts: list[int], following: list[int], waits: np.ndarray
) -> list[int]:
    """Continue the sort row by row: deep trees have narrow levels, for which arrays are slow."""
    waiting = waits.tolist()
    order = []
    while level:
        level, before = [], level
        for row in before:
            for reached in following[starts[row] : starts[row + 1]]:
                waiting[reached] -= 1
                if not waiting[reached]:
                    level.append(reached)
        order += level
    return order


def _unreached(order: np.ndarray, n_rows: int) -> set[int]:
    """Return the rows that are missing in an order."""
    return set(range(n_rows)).difference(order.tolist())


def _cut_cycles(created: Pairs, parents: np.ndarray, cyclic: set[int]) -> tuple[Pairs, list[int]]:
    """Cut each cycle of creators at one row; `cyclic` are the rows in or below one."""
    creators, rows = created
    cut = sorted(_cycle_rows(parents.tolist(), cyclic))
    keep = ~np.isin(rows, cut)
    return (creators[keep], rows[keep]), cut


def _cycle_rows(parents: list[int], rows: set[int]) -> set[int]:
    """Return one row of each cycle: the first that is reached twice on the way up."""
    cycle_rows = set()
    walk_of: dict[int, int] = {}
    for start in sorted(rows):
        row = start
        while row not in walk_of:
            walk_of[row] = start
            row = parents[row]
        if walk_of[row] == start:
            cycle_rows.add(row)
    return cycle_rows


def _by_height(
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
