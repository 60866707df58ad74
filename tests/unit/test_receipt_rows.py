"""Receipt ids become rows: each id has one row, known or new."""

from __future__ import annotations

import pytest

from ledgerkit.tracing.tree.linking import ReceiptRows

IDS = [f"id {number}" for number in range(5)]


def test_rows_are_places_of_first_mention():
    """Known ids have their place; new ones get the next, and keep it."""
    rows = ReceiptRows(IDS)
    assert rows.find(IDS).tolist() == [0, 1, 2, 3, 4]
    assert rows.find(["id 2", "id 0", "id 2"]).tolist() == [2, 0, 2]
    assert rows.find(["new", "id 1", "newer", "new"]).tolist() == [5, 1, 6, 5]
    assert rows.find(["newer"]).tolist() == [6]
    assert len(rows) == 7
    assert rows.ids == [*IDS, "new", "newer"]
    assert rows.find([]).tolist() == []


@pytest.mark.parametrize("ids", [["a", "b", "a"], [*IDS, "id 3"]])
def test_a_repeated_id_has_one_row(ids: list[str]):
    """The first of equal ids counts."""
    rows = ReceiptRows(ids)
    assert len(rows) == len(ids) - 1
    assert rows.find([ids[-1]]).tolist() == [ids.index(ids[-1])]


def test_the_callers_list_is_not_grown():
    """New ids are added to a list of its own."""
    ids = list(IDS)
    ReceiptRows(ids).find(["new"])
    assert ids == IDS
