"""Ids become rows: the same ones, few or many, known or new."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.tracing.tree import id_index
from ledgerkit.tracing.tree.id_index import IdIndex

MANY = [f"id {number}" for number in range(5000)]


@pytest.mark.parametrize("count", [3, 5000])
def test_rows_are_places_of_first_mention(count: int):
    """Known ids have their place; new ones get the next, and keep it."""
    found = IdIndex(MANY[:count])
    assert found.rows(["id 2", "id 0", "id 2"]).tolist() == [2, 0, 2]
    assert found.rows(["new", "id 1", "newer", "new"]).tolist() == [count, 1, count + 1, count]
    assert found.rows(["newer"]).tolist() == [count + 1]
    assert len(found) == count + 2
    assert found.id_array().tolist() == [*MANY[:count], "new", "newer"]
    assert found.rows([]).tolist() == []


@pytest.mark.parametrize("ids", [["a", "b", "a"], [*MANY, "id 7"]], ids=["few", "many"])
def test_a_repeated_id_has_one_row(ids: list[str]):
    """The first of equal ids counts."""
    found = IdIndex(ids)
    assert len(found) == len(ids) - 1
    assert found.rows([ids[-1]]).tolist() == [ids.index(ids[-1])]


def test_the_callers_list_is_not_grown():
    """New ids are this object's own."""
    ids = list(MANY)
    IdIndex(ids).rows(["new"])
    assert ids == MANY


class Alike(str):
    """A text whose hash is that of another."""

    __slots__ = ()

    def __hash__(self) -> int:
        """Collide with the first id."""
        return hash(MANY[0])


def test_an_unknown_id_with_a_known_hash_is_not_mistaken():
    """A hit is compared: an equal hash alone makes no row."""
    found = IdIndex(MANY)
    assert found.rows([Alike("other")]).tolist() == [len(MANY)]
    assert found.rows([MANY[0]]).tolist() == [0]


@given(st.lists(st.integers(0, 50), min_size=1), st.lists(st.integers(0, 50)))
def test_rows_of_equal_last_bits_are_found(numbers: list[int], wanted: list[int]):
    """A row whose place in the table is taken is found; equal hashes are reported."""
    hashes = np.array(numbers, dtype=np.int64) << 40  # the last bits are all zero
    table = id_index._HashTable(hashes)
    assert table.has_equal == (len(set(numbers)) < len(numbers))
    known = [number for number in wanted if number in numbers]
    rows = table.rows(np.array(known, dtype=np.int64) << 40)
    assert [numbers[row] for row in rows.tolist()] == known


@given(st.lists(st.text(max_size=2)), st.lists(st.lists(st.text(max_size=2)), max_size=4))
def test_both_ways_agree(ids: list[str], wanted: list[list[str]]):
    """With hashes and without, every sequence of questions has the same answers."""
    plain = IdIndex(ids)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(id_index, "_MANY", 1)
        hashed = IdIndex(ids)
    for some in wanted:
        assert plain.rows(some).tolist() == hashed.rows(some).tolist()
    assert plain.id_array().tolist() == hashed.id_array().tolist()
