"""Many objects are made without a search for garbage, and count as old afterwards."""

from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING

import pytest

from ledgerkit.garbage_collector import MANY_OBJECTS, collector_paused
from ledgerkit.tracing.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator

OLDEST = 2


@pytest.fixture(autouse=True)
def running_collector() -> Iterator[None]:
    """Start with nothing frozen; afterwards the collector runs, and all is frozen as before."""
    assert gc.isenabled()
    gc.unfreeze()  # what conftest.py froze
    yield
    gc.enable()
    gc.freeze()


def new_objects(count: int = MANY_OBJECTS) -> list[object]:
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


def test_the_objects_of_a_long_saved_trace_are_old() -> None:
    """No later search among the young objects meets the lists of its frames."""
    outcome = {"logs": ["a line"], "receipt_ids": [], "status": {"SuccessValue": ""}}
    outcomes = [{"id": str(number), "outcome": outcome} for number in range(MANY_OBJECTS)]
    document = json.dumps({"receipts_outcome": outcomes})
    del outcomes
    trace = Trace.from_json(document)
    assert is_old(trace.receipts["logs"][0])
