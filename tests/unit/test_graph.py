"""Rows in causal order, and sums below them."""

from __future__ import annotations

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


@given(created_pairs(), st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=12))
def test_no_row_precedes_what_it_depends_on(
    drawn: tuple[list[tuple[int, int]], list[int], int], drawn_data: list[tuple[int, int]]
):
    """Rows follow their creators and producers; only those in or after a cycle are left out."""
    listed, roots, n_rows = drawn
    data = [(before % n_rows, after % n_rows) for before, after in drawn_data]
    order = graph.sort(listed, roots, n_rows, data)

    waits_for = {row: {b for b, after in [*listed, *data] if after == row} for row in range(n_rows)}
    place = {row: at for at, row in enumerate(order)}
    assert len(place) == len(order)
    assert all(place[b] < place[row] for row in order for b in waits_for[row])
    free = [row for row in range(n_rows) if not waits_for[row]]
    free_roots = [root for root in roots if root in free]
    assert order[: len(free)] == [*free_roots, *(row for row in free if row not in roots)]
    for row in set(range(n_rows)) - set(order):
        assert not waits_for[row] <= set(order)


@given(created_pairs())
def test_depths_and_sums_of_sorted_rows(drawn: tuple[list[tuple[int, int]], list[int], int]):
    """A row is one deeper than its creator, and its sum is its value and its children's sums."""
    listed, roots, n_rows = drawn
    place = {row: at for at, row in enumerate(graph.sort(listed, roots, n_rows, []))}
    parents = [-1] * n_rows
    for creator, row in listed:
        parents[place[row]] = place[creator]
    depths, sums = graph.depths(parents), graph.subtree_sums(parents, [2**63] * n_rows)
    for at, parent in enumerate(parents):
        assert depths[at] == (0 if parent < 0 else depths[parent] + 1)
        below = [sums[child] for child in range(n_rows) if parents[child] == at]
        assert sums[at] == 2**63 + sum(below)
