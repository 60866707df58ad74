"""Objects that live on are made without a search for garbage, and count as old afterwards."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from ledgerkit.lasting_objects import make_lasting

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


def new_object() -> list[object]:
    """Return an object that the collector tracks."""
    return [[]]


def is_old(item: object) -> bool:
    """Return True if an object is in the collector's oldest generation."""
    return any(item is old for old in gc.get_objects(generation=OLDEST))


def test_the_collector_is_paused_while_objects_are_made() -> None:
    """Also in a call within another one, and no longer afterwards."""

    def make() -> list[bool]:
        before = gc.isenabled()
        return [before, make_lasting(gc.isenabled), gc.isenabled()]

    assert make_lasting(make) == [False, False, False]
    assert gc.isenabled()


def test_the_objects_are_old() -> None:
    """No later search among the young objects meets them."""
    made = make_lasting(new_object)
    assert is_old(made)
    assert not is_old(new_object())
    assert gc.get_freeze_count() == 0


def test_an_error_passes_and_the_collector_runs_again() -> None:
    """The error is the function's own."""
    with pytest.raises(ZeroDivisionError):
        make_lasting(lambda: 1 // 0)
    assert gc.isenabled()


def test_a_collector_that_the_caller_has_stopped_stays_so() -> None:
    """Nothing is changed for a caller without a collector."""
    gc.disable()
    made = make_lasting(new_object)
    assert not gc.isenabled()
    assert not is_old(made)


def test_what_the_caller_has_frozen_stays_so() -> None:
    """Frozen objects are not returned to the collector."""
    frozen = new_object()
    gc.freeze()
    make_lasting(new_object)
    assert not is_old(frozen)
    assert gc.get_freeze_count() > 0
    assert gc.isenabled()
