"""Rows in causal order, and sums below them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.tracing.tree import graph


@st.composite
def created_pairs(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[int], int]:
    """Draw pairs of creator and created row, by creator, the roots and the number of rows."""
    n_rows = draw(st.integers(1, 12))
    rows = draw(st.permutations(range(n_rows))) if draw(st.booleans()) else list(range(n_rows))
    # Each row is created by one of the rows before it, or by none.
    creators = [draw(st.integers(-1, at - 1)) for at in range(n_rows)]
    pairs = [(rows[by], rows[at]) for at, by in enumerate(creators) if by >= 0]
    free = [rows[at] for at, by in enumerate(creators) if by < 0]
    roots = draw(st.lists(st.sampled_from(free), unique=True))
    return sorted(pairs, key=lambda pair: pair[0]), roots, n_rows


def sort_row_by_row(created: list[tuple[int, int]], roots: list[int], n_rows: int, data: Any):
    """Sort the plain way: a row follows when the last of those it depends on is passed."""
    following: list[list[int]] = [[] for _ in range(n_rows)]
    waits = [0] * n_rows
    for before, after in [*created, *sorted(data, key=lambda pair: pair[0])]:
        following[before].append(after)
        waits[after] += 1
    free = [row for row in range(n_rows) if not waits[row]]
    order = [*(root for root in roots if root in free), *(row for row in free if row not in roots)]
    for row in order:
        for after in following[row]:
            waits[after] -= 1
            if not waits[after]:
                order.append(after)
    return order


@given(created_pairs(), st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=12))
def test_rows_are_sorted_as_row_by_row(
    drawn: tuple[list[tuple[int, int]], list[int], int], drawn_data: list[tuple[int, int]]
):
    """By depth without data, by levels with data, which may be listed twice or in a cycle."""
    listed, roots, n_rows = drawn
    creators, rows = np.array(listed, dtype=np.int64).reshape(-1, 2).T
    parents = np.full(n_rows, -1)
    parents[rows] = creators
    for data in ([], [(before % n_rows, after % n_rows) for before, after in drawn_data]):
        producers, consumers = np.array(data, dtype=np.int64).reshape(-1, 2).T
        depths, first = graph.depths(parents), np.array(roots, dtype=np.int64)
        order = graph.sort((creators, rows), first, depths, (producers, consumers))
        assert order.tolist() == sort_row_by_row(listed, roots, n_rows, data)
