"""Fixtures of several modules: each way to a host, and a world in which much has happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ledgerkit.transport import retry
from tests.loopback import WAYS, way_options
from tests.unit.localnet.chaos import Chaos

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the options of `connect` that choose each way to a host."""
    return way_options(request.param)


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the random waits between attempts."""
    monkeypatch.setattr(retry, "_jitter", lambda _longest_s: 0.01)


@pytest.fixture(scope="module")
def busy() -> World:
    """Return a world in which much has happened, with heights left out and chunks missing."""
    chaos = Chaos(11)
    for _ in range(12):
        chaos.block()
    world: World = chaos.world
    world.advance(1, skip=3)
    world.advance(1, missing=[world.settings.shard_ids[0]])
    world.settle()
    return world
