"""A world to fill oneself: one account that owns nearly everything, and a validator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.localnet.contracts.top_level_account import TopLevelAccount
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.world import World
from ledgerkit.localnet.world_summary import WorldSummary
from ledgerkit.localnet.worlds.builder import WorldGenesis
from ledgerkit.units import yocto

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "empty"
OWNED = yocto("1000000000 NEAR")
STAKED = yocto("10000000 NEAR")


def open_empty(seed: int = 0, changes: Mapping[str, Any] | None = None) -> World:
    """Open the world: nothing has happened in it."""
    genesis = WorldGenesis(NAME, seed)
    genesis.contract("near", OWNED, TopLevelAccount)
    validator = genesis.public("validator.near")
    genesis.account("validator.near", STAKED, locked=STAKED, validator_key=validator)
    world = World(Settings(**changes or {}), genesis)
    story = "owns nearly everything, and creates accounts for whoever calls create_account"
    world.summary = WorldSummary(genesis.stories({"near": story}))
    world.advance(3)
    return world
