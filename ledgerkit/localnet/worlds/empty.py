"""The empty world: one account that owns nearly everything, and a validator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.localnet.contracts.factory import TopLevelAccount
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.world import World, WorldSummary
from ledgerkit.localnet.worlds.builder import WorldGenesis
from ledgerkit.units import yocto

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "empty"
OWNER_BALANCE = yocto("1000000000 NEAR")
STAKE = yocto("10000000 NEAR")


def open_empty(seed: int = 0, changes: Mapping[str, Any] | None = None) -> World:
    """Open the world, without any transaction, with some of its settings changed."""
    genesis = WorldGenesis(NAME, seed)
    genesis.contract("near", OWNER_BALANCE, TopLevelAccount)
    validator_key = genesis.public_key("validator.near")
    genesis.account("validator.near", STAKE, locked=STAKE, validator_key=validator_key)
    world = World(Settings(**changes or {}), genesis)
    description = "owns nearly everything, and creates accounts for whoever calls create_account"
    world.summary = WorldSummary(genesis.account_summaries({"near": description}))
    world.advance(3)
    return world
