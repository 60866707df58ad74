"""Rows and the edges between them, as integers: one creator each, causal order, no rings."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Edge = tuple[int, int]
    Pairs = tuple[np.ndarray, np.ndarray]

_MANY_LEVELS = 512


@dataclass(frozen=True, slots=True)
class Graph:
    """
    Rows in causal order, and the edges that were kept.

    `parents` is the creator of each row (-1: none) and `data` holds pairs of producer and
    consumer; the other three are rows whose further edges contradicted what came before.
    """

    order: np.ndarray
    parents: np.ndarray
    data: list[Edge]
    listed_twice: list[int]
    cut_from_ring: list[int]
    cut_from_data: list[int]


def arrange(
    created: Pairs,
    roots: Sequence[int],
    n_rows: int,
    *,
    data: Iterable[Edge] = (),
    heights: Sequence[int] | None = None,
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
        Pairs of producer and consumer.
    heights
        A block height for each row, 0 where it is not known: lower ones come first, as far
        as the edges allow.

    Returns
    -------
    graph
        The order and the edges it respects.
    """
    created, twice = _one_creator_each(created, roots, n_rows)
    pairs = [pair for pair in dict.fromkeys(data) if pair[0] != pair[1]]
    order = _order(created, roots, n_rows, pairs)
    cut: list[int] = []
    late: set[int] = set()
    if len(order) < n_rows:
        created, cut = _without_rings(created, n_rows)
        late = _left_out(_order(created, roots, n_rows, pairs), n_rows)
        pairs = [pair for pair in pairs if not late.issuperset(pair)]
        order = _order(created, roots, n_rows, pairs)
    parents = _parents(created, n_rows)
    if heights is not None:
        order = _by_height(order, parents, pairs, heights)
    return Graph(order, parents, pairs, twice, cut, sorted(late))


def depths(parents: Iterable[int]) -> list[int]:
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
    found: list[int] = []
    for parent in parents:
        found.append(found[parent] + 1 if parent >= 0 else 0)
    return found


def subtree_sums(parents: Sequence[int], values: Sequence[int]) -> list[int]:
    """
    Add to each row's value those of everything below it.

    Parameters
    ----------
    parents
        Positions of the creators, each before its row; -1 for none.
    values
        One value a row.

    Returns
    -------
    sums
        One sum a row, however large.
    """
    sums = list(values)
    for row in range(len(sums) - 1, -1, -1):
        parent = parents[row]
        if parent >= 0:
            sums[parent] += sums[row]
    return sums


def latest_chain(
    end: int, parents: Sequence[int], producers: Mapping[int, Sequence[int]]
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


def _order(created: Pairs, roots: Sequence[int], n_rows: int, data: list[Edge]) -> np.ndarray:
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


def _adjacent(created: Pairs, n_rows: int, data: list[Edge]) -> tuple[np.ndarray, np.ndarray]:
    """List what follows each row in one array, and where each row's part begins."""
    creators, rows = created
    if data:
        producers, consumers = np.array(data, dtype=np.int64).T
        creators, rows = np.append(creators, producers), np.append(rows, consumers)
        by_creator = np.argsort(creators, kind="stable")
        creators, rows = creators[by_creator], rows[by_creator]
    return np.searchsorted(creators, np.arange(n_rows + 1)), rows


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
    ringed = _left_out(_order(created, (), n_rows, []), n_rows)
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
    order: np.ndarray, parents: np.ndarray, data: list[Edge], heights: Sequence[int]
) -> np.ndarray:
    """Sort by height, raised where a row would otherwise precede what it depends on."""
    before: defaultdict[int, list[int]] = defaultdict(list)
    for producer, consumer in data:
        before[consumer].append(producer)
    raised = list(heights)
    for row, parent in zip(order.tolist(), parents[order].tolist(), strict=True):
        known = [raised[other] for other in (parent, *before.get(row, ())) if other >= 0]
        raised[row] = max([raised[row], *known])
    return np.array(sorted(order.tolist(), key=raised.__getitem__), dtype=np.int64)
