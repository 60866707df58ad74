"""Columns of a document: the values of rows, in their order or in another."""

from __future__ import annotations

import numpy as np
import pytest

from ledgerkit.tracing.tree.column_builders import ObjectColumn


@pytest.mark.parametrize("count", [3, 5000])
def test_rows_have_their_values(count: int):
    """All rows in order, some in another order, and -1 for a row without a value."""
    values = [[number] for number in range(count)]
    column = ObjectColumn("missing")
    column.add(values[:2])
    column.add(values[2:])
    assert column.take(np.arange(count)).tolist() == values
    assert column.take(np.arange(count - 1)).tolist() == values[:-1]
    assert column.take(np.array([2, -1, 0])).tolist() == [[2], "missing", [0]]
    assert column.take(np.arange(count)[::-1]).tolist() == values[::-1]


def test_a_change_of_taken_values_is_not_seen_by_others():
    """Each call returns an array of its own."""
    column = ObjectColumn()
    column.add(["a"] * 5000)
    rows = np.arange(5000)
    column.take(rows)[0] = "changed"
    assert column.take(rows)[0] == "a"
