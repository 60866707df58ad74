"""What traces say about balances, block by block, against the state of random worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import ledgerkit as lk
from tests.surface.test_stories import traced
from tests.unit.localnet.full_world import FullWorld
from tests.world_timeline import beyond_traces, block_differences

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World


@pytest.fixture(scope="module")
def worlds() -> list[World]:
    """Return worlds in which everything has ended."""
    return [FullWorld(seed).run(250) for seed in (2, 3, 6)]


@pytest.mark.parametrize("at", range(3))
def test_changes_are_those_of_the_state_in_every_block(worlds: list[World], at: int) -> None:
    """For each account, asset and block the listed changes are the chain's, to the last unit."""
    world = worlds[at]
    traces = traced(world)
    lk.disconnect()
    assert block_differences(world, traces) == {}
    unknown = [note for trace in traces for note in trace.notes]
    assert all(note.startswith("contract rewards") for note in unknown)
    assert len(beyond_traces(world, traces)) <= 3
