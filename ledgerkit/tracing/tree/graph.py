"""Rows and the edges between them, as integers: one creator each, causal order, no rings."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Pairs = tuple[np.ndarray, np.ndarray]

_MANY_LEVELS = 512
_SAFE = 2.0**62  # sums up to here fit 64 bits, whatever the rounding of floats


@dataclass(frozen=True, slots=True)
class Graph:
    """
    Rows in causal order, and the edges that were kept.

    `parents` is the creator of each row (-1: none) and `kept` says which of the pairs of
    producer and consumer hold; the other three are rows whose further edges contradicted what
    came before.
    """

    order: np.ndarray
    parents: np.ndarray
    kept: np.ndarray
    listed_twice: list[int]
    cut_from_ring: list[int]
    cut_from_data: list[int]


def arrange(
    created: Pairs,
    roots: Sequence[int],
    n_rows: int,
    *,
    data: Pairs,
    heights: np.ndarray | None = None,
) -> Graph:
    """
    Put rows into an order in which nothing precedes what it depends on.

    Parameters
    ----------
    created
        Pairs of creator and created row, as two arrays; by creator.
    roots
        Rows that no row created; they come first.
    n_rows
        How many rows there are.
    data
        Pairs of producer and consumer, as two arrays.
    heights
        A block height for each row, 0 where it is not known: lower ones come first, as far
        as the edges allow.

    Returns
    -------
    graph
        The order and the edges it respects.
    """
    created, twice = _one_creator_each(created, roots, n_rows)
    kept = data[0] != data[1]
    order = _order(created, roots, n_rows, _chosen(data, kept))
    cut: list[int] = []
    late: list[int] = []
    if len(order) < n_rows:
        created, cut = _without_rings(created, n_rows)
        late = sorted(_left_out(_order(created, roots, n_rows, _chosen(data, kept)), n_rows))
        kept &= ~(np.isin(data[0], late) & np.isin(data[1], late))
        order = _order(created, roots, n_rows, _chosen(data, kept))
    parents = _parents(created, n_rows)
    if heights is not None:
        order = _by_height(order, parents, _chosen(data, kept), heights)
    return Graph(order, parents, kept, twice, cut, late)


def _chosen(pairs: Pairs, kept: np.ndarray) -> Pairs:
    """Leave out some pairs."""
    return pairs if kept.all() else (pairs[0][kept], pairs[1][kept])


def depths(parents: np.ndarray) -> np.ndarray:
    """
    Count the creators above each row.

    Parameters
    ----------
    parents
        Positions of the creators, each before its row; -1 for none.

    Returns
    -------
    depths
        0 for a row without a creator.
    """
    n_rows = len(parents)
    above = np.append(np.where(parents < 0, n_rows, parents), n_rows)
    found = (above < n_rows).astype(np.int64)
    while (above < n_rows).any():  # each round looks twice as far up
        found += found[above]
        above = above[above]
    return found[:-1]


def subtree_sums(parents: np.ndarray, values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """
    Add to each row's value those of everything below it.

    Parameters
    ----------
    parents
        Positions of the creators, each before its row; -1 for none.
    values
        One 64-bit integer a row, not below zero.
    levels
        The depth of each row.

    Returns
    -------
    sums
        One sum a row, however large: where they may exceed 64 bits, Python integers.
    """
    n_levels = int(levels.max(initial=0)) + 1
    if n_levels > _MANY_LEVELS or values.sum(dtype=np.float64) > _SAFE:
        return _sums_one_by_one(parents.tolist(), values.tolist())
    sums = values.copy()
    by_level = np.argsort(levels.astype(np.int16), kind="stable")  # the fastest to sort
    starts = np.cumsum(np.bincount(levels, minlength=n_levels))
    for level in range(n_levels - 1, 0, -1):
        rows = by_level[starts[level - 1] : starts[level]]
        np.add.at(sums, parents[rows], sums[rows])
    return sums


def _sums_one_by_one(parents: list[int], values: list[int]) -> np.ndarray:
    """Add with integers of any size, row by row: a deep tree has narrow levels."""
    for row in range(len(values) - 1, -1, -1):
        parent = parents[row]
        if parent >= 0:
            values[parent] += values[row]
    return np.fromiter(values, dtype=object, count=len(values))


def latest_chain(
    end: int, parents: Sequence[int], producers: Mapping[int, Iterable[int]]
) -> list[int]:
    """
    Go back from a row, always to the latest of its creator and its data's producers.

    Parameters
    ----------
    end
        The position to start from; -1 for none.
    parents
        Positions of the creators, each before its row; -1 for none.
    producers
        Positions of the producers of each consumer's data.

    Returns
    -------
    chain
        Positions, latest first.
    """
    found = []
    while end >= 0:
        found.append(end)
        end = max(parents[end], *producers.get(end, (-1,)))
    return found


def _one_creator_each(created: Pairs, roots: Sequence[int], n_rows: int) -> tuple[Pairs, list[int]]:
    """Let the first creator of each row keep it; the transaction comes before all."""
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
    """Find the creator of each row."""
    creators, rows = created
    parents = np.full(n_rows, -1, dtype=np.int64)
    parents[rows] = creators
    return parents


def _order(created: Pairs, roots: Sequence[int], n_rows: int, data: Pairs) -> np.ndarray:
    """Visit rows level by level, each after everything it depends on."""
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
    deeper = _walk(level.tolist(), starts.tolist(), following.tolist(), waits) if level.size else []
    return np.concatenate([*levels, np.array(deeper, dtype=np.int64)])


def _adjacent(created: Pairs, n_rows: int, data: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """List what follows each row in one array, and where each row's part begins."""
    creators, rows = created
    if len(data[0]):
        creators, rows = np.append(creators, data[0]), np.append(rows, data[1])
        by_creator = np.argsort(creators, kind="stable")
        creators, rows = creators[by_creator], rows[by_creator]
    starts = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(creators, minlength=n_rows), out=starts[1:])
    return starts, rows


def _next_level(
    level: np.ndarray, starts: np.ndarray, following: np.ndarray, waits: np.ndarray
) -> np.ndarray:
    """Find the rows that waited for this level last, and count down what the others wait for."""
    counts = starts[level + 1] - starts[level]
    ends = np.cumsum(counts)
    within = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
    reached = following[np.repeat(starts[level], counts) + within]
    np.subtract.at(waits, reached, 1)
    ready = reached[waits[reached] == 0]
    place = np.arange(len(ready))
    waits[ready] = place  # a row reached twice keeps its last place
    last: np.ndarray = ready[waits[ready] == place]
    waits[ready] = 0
    return last


def _walk(
    level: list[int], starts: list[int], following: list[int], waits: np.ndarray
) -> list[int]:
    """Go on row by row: a deep tree has narrow levels, for which arrays are slow."""
    waiting = waits.tolist()
    found = []
    while level:
        level, before = [], level
        for row in before:
            for reached in following[starts[row] : starts[row + 1]]:
                waiting[reached] -= 1
                if not waiting[reached]:
                    level.append(reached)
        found += level
    return found


def _left_out(order: np.ndarray, n_rows: int) -> set[int]:
    """Find the rows that an order does not reach."""
    return set(range(n_rows)).difference(order.tolist())


def _without_rings(created: Pairs, n_rows: int) -> tuple[Pairs, list[int]]:
    """Cut each ring of creators at one row."""
    creators, rows = created
    ringed = _left_out(_order(created, (), n_rows, (created[0][:0], created[1][:0])), n_rows)
    cut = sorted(_ring_members(_parents(created, n_rows).tolist(), ringed))
    keep = ~np.isin(rows, cut)
    return (creators[keep], rows[keep]), cut


def _ring_members(parents: list[int], rows: set[int]) -> set[int]:
    """Find one row of each ring: the first one met again on the way up."""
    found = set()
    walk_of: dict[int, int] = {}
    for start in sorted(rows):
        row = start
        while row not in walk_of:
            walk_of[row] = start
            row = parents[row]
        if walk_of[row] == start:
            found.add(row)
    return found


def _by_height(
    order: np.ndarray, parents: np.ndarray, data: Pairs, heights: np.ndarray
) -> np.ndarray:
    """Sort by height, raised where a row would otherwise precede what it depends on."""
    made = np.flatnonzero(parents >= 0)
    rises = (heights[parents[made]] <= heights[made]).all()
    if not (rises and (heights[data[0]] <= heights[data[1]]).all()):
        heights = _raised(order, parents, data, heights)
    return order[np.argsort(heights[order], kind="stable")]


def _raised(order: np.ndarray, parents: np.ndarray, data: Pairs, heights: np.ndarray) -> np.ndarray:
    """Raise heights to those of what each row depends on."""
    before: defaultdict[int, list[int]] = defaultdict(list)
    for producer, consumer in zip(data[0].tolist(), data[1].tolist(), strict=True):
        before[consumer].append(producer)
    raised = heights.tolist()
    for row, parent in zip(order.tolist(), parents[order].tolist(), strict=True):
        known = [raised[other] for other in (parent, *before.get(row, ())) if other >= 0]
        raised[row] = max([raised[row], *known])
    return np.array(raised, dtype=np.int64)
