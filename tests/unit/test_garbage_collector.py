"""Many objects are made with few searches for garbage, or with none; they may then be old."""

from __future__ import annotations

import gc
import json
import weakref
from typing import TYPE_CHECKING

import pytest

from ledgerkit.garbage_collector import (
    IN_USE,
    MANY_OBJECTS,
    collector_paused,
    collector_slowed,
)
from ledgerkit.tracing.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator

OLDEST = 2


@pytest.fixture(autouse=True)
def running_collector() -> Iterator[None]:
    """Start with nothing frozen; afterwards the collector runs, and all is frozen as before."""
    assert gc.isenabled()
    gc.unfreeze()  # what conftest.py froze
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.enable()
    gc.freeze()


def new_objects(count: int = 2 * MANY_OBJECTS) -> list[object]:
    """Return a list of objects that the collector tracks."""
    return [[] for _ in range(count)]


def is_old(item: object) -> bool:
    """Return True if an object is in the collector's oldest generation."""
    return any(item is old for old in gc.get_objects(generation=OLDEST))


def test_the_collector_is_paused_while_objects_are_made() -> None:
    """Also after a block within the block, and no longer afterwards."""
    with collector_paused():
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_many_objects_are_old() -> None:
    """No later search among the young objects meets them; a few stay young."""
    with collector_paused(ages=True):
        made = new_objects()
    assert is_old(made)
    assert gc.get_freeze_count() == 0
    with collector_paused(ages=True):
        few = new_objects(10)
    assert not is_old(few)


def test_objects_that_were_made_before_the_block_are_not_counted() -> None:
    """A short block is not followed by a look at all objects because its caller made many."""
    gc.set_threshold(10 * MANY_OBJECTS)
    before = new_objects()
    with collector_paused(ages=True):
        new_objects(10)
    assert not is_old(before)


def test_an_error_passes_and_the_collector_runs_again() -> None:
    """The error is that of the block."""
    with pytest.raises(ZeroDivisionError), collector_paused():
        _ = 1 // 0
    assert gc.isenabled()


def test_a_collector_that_the_caller_has_stopped_stays_so() -> None:
    """Nothing is changed for a caller without a collector."""
    gc.disable()
    with collector_paused(ages=True):
        made = new_objects()
    assert not gc.isenabled()
    assert not is_old(made)


def test_what_the_caller_has_frozen_stays_so() -> None:
    """Frozen objects are not returned to the collector."""
    frozen = new_objects(1)
    gc.freeze()
    with collector_paused(ages=True):
        new_objects()
    assert not is_old(frozen)
    assert gc.get_freeze_count() > 0
    assert gc.isenabled()


class Cycle:
    """An object that only the collector can free."""

    def __init__(self) -> None:
        self.itself = self


def test_a_slowed_collector_searches_after_more_objects() -> None:
    """Fewer are not searched; more are, so that garbage does not pile up."""
    garbage = weakref.ref(Cycle())
    with collector_slowed():
        few = new_objects(IN_USE // 2)
        assert garbage() is not None
        more = new_objects(IN_USE)
        assert garbage() is None
    assert len(few) + len(more) > IN_USE


def test_the_collector_is_as_fast_as_before_after_the_last_block() -> None:
    """Blocks may begin and end in any order, as in two threads; an error ends one too."""
    gc.set_threshold(500, 5, 6)
    first, second = collector_slowed(), collector_slowed()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold() == (IN_USE, 5, 6)
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (500, 5, 6)
    with pytest.raises(ZeroDivisionError), collector_slowed():
        _ = 1 // 0
    assert gc.get_threshold() == (500, 5, 6)


@pytest.mark.parametrize("threshold", [0, 10 * IN_USE])
def test_a_collector_that_the_caller_has_slowed_more_stays_so(threshold: int) -> None:
    """With 0 it never searches by itself."""
    gc.set_threshold(threshold)
    with collector_slowed():
        assert gc.get_threshold()[0] == threshold


def test_the_objects_of_a_long_saved_trace_are_old() -> None:
    """No later search among the young objects meets the lists of its frames."""
    outcome = {"logs": ["a line"], "receipt_ids": [], "status": {"SuccessValue": ""}}
    outcomes = [{"id": str(number), "outcome": outcome} for number in range(MANY_OBJECTS)]
    document = json.dumps({"receipts_outcome": outcomes})
    del outcomes
    trace = Trace.from_json(document)
    assert is_old(trace.receipts["logs"][0])
