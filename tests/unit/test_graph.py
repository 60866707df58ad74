"""Rows in causal order: sorted by depth where that is enough, otherwise level by level."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.tracing.tree import graph

NO_DATA = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


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


@given(created_pairs())
def test_the_order_by_depth_is_that_by_level(drawn: tuple[list[tuple[int, int]], list[int], int]):
    """The fast sort gives the same order as the general one, or none."""
    listed, roots, n_rows = drawn
    creators, rows = np.array(listed, dtype=np.int64).reshape(-1, 2).T
    created = (creators, rows)
    depths = graph._depths(graph._parents(created, n_rows))
    by_level = graph._order_by_level(created, roots, n_rows, NO_DATA).tolist()
    by_depth = graph._order_by_depth(created, roots, depths)
    assert by_depth is None or by_depth.tolist() == by_level
    if by_level == list(range(n_rows)):
        assert by_depth is not None


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_sums_of_integers_pass_through_no_float(dtype: type):
    """Sums above 2^53 keep their last digit."""
    sums = graph.subtree_sums(np.array([-1, 0, 1]), np.array([1, 2**53, 1], dtype=dtype))
    assert sums.dtype == dtype
    assert sums.tolist() == [2**53 + 2, 2**53 + 1, 1]


def test_sums_beyond_64_bits_are_exact():
    """A chain and a star of large values have the sums of Python's integers."""
    chain, star = np.array([-1, 0, 1]), np.array([-1, 0, 0])
    values = np.array([2**63, 2**63, 2**63], dtype=np.uint64)
    assert graph.subtree_sums(chain, values).tolist() == [3 * 2**63, 2**64, 2**63]
    assert graph.subtree_sums(star, values).tolist() == [3 * 2**63, 2**63, 2**63]


@pytest.mark.parametrize("parents", [[0], [1, 0, 0], [1, 2, 0, 2]])
def test_rows_in_or_below_a_cycle_have_the_largest_depth(parents: list[int]):
    """Their depths are the number of rows, which no depth outside a cycle reaches."""
    below = np.array([*parents, -1, len(parents)])
    n_rows = len(below)
    assert graph._depths(below).tolist() == [n_rows] * len(parents) + [0, 1]


@given(created_pairs(), st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=12))
def test_the_order_by_arrays_is_that_row_by_row(
    drawn: tuple[list[tuple[int, int]], list[int], int], drawn_data: list[tuple[int, int]]
):
    """With data edges too, listed twice or in a cycle, both ways to sort deep trees agree."""
    listed, roots, n_rows = drawn
    creators, rows = np.array(listed, dtype=np.int64).reshape(-1, 2).T
    producers, consumers = np.array(drawn_data, dtype=np.int64).reshape(-1, 2).T % n_rows
    sort = partial(graph._order_by_level, (creators, rows), roots, n_rows, (producers, consumers))
    by_arrays = sort().tolist()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(graph, "_MANY_LEVELS", 1)
        assert sort().tolist() == by_arrays
