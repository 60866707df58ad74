"""
The person world: one person who uses NEAR as people do, with the contracts that this takes.

Each part of the person's life is a `Part`: accounts of the genesis, then transactions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.localnet.contracts.factory import TopLevelAccount
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.world import World, WorldSummary
from ledgerkit.localnet.worlds.builder import TransactionSender, WorldGenesis, function_call
from ledgerkit.protocol import Transfer
from ledgerkit.units import yocto

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NAME = "person"
NEAR = yocto("1 NEAR")
PERSON = "maria.near"
POOL, LIQUID = "north.poolv1.near", "liquid.near"


class Part(NamedTuple):
    """A part of the person's life, added after the parts before it."""

    accounts: Mapping[str, str]  # with their descriptions; the others are created later
    add: Callable[[WorldGenesis], None]
    send: Callable[[TransactionSender], None]
    contracts: Mapping[str, str | list[str]]  # by the names that `World.summary` uses


def open_person(seed: int = 0, changes: Mapping[str, Any] | None = None) -> World:
    """Open the world after all of its transactions, with some of its settings changed."""
    genesis = WorldGenesis(NAME, seed)
    for part in PARTS:
        part.add(genesis)
    world = World(replace(Settings(), **changes or {}), genesis)
    accounts = {name: text for part in PARTS for name, text in part.accounts.items()}
    contracts = {name: value for part in PARTS for name, value in part.contracts.items()}
    world.summary = WorldSummary(genesis.account_summaries(accounts), contracts)
    world.advance(3)
    sender = TransactionSender(world, genesis)
    for part in PARTS:
        part.send(sender)
        world.settle()
    return world


# A wallet ----------------------------------------------------------------------------------


def _add_wallet(genesis: WorldGenesis) -> None:
    genesis.account(PERSON, 1_000 * NEAR, keys=[genesis.public_key(PERSON)])
    genesis.account("friend.near", 50 * NEAR, keys=[genesis.public_key("friend.near")])
    genesis.contract("near", 1_000_000 * NEAR, TopLevelAccount)


def _send_wallet(sender: TransactionSender) -> None:
    sender.send("a transfer to a friend", PERSON, "friend.near", Transfer(2 * NEAR))


# Staking -----------------------------------------------------------------------------------


def _add_stakes(genesis: WorldGenesis) -> None:
    genesis.staking_pool(POOL, "near", 500_000 * NEAR, {"friend.near": (30 * NEAR, 0)})
    genesis.liquid_staking("near", {"friend.near": 10 * NEAR}, [POOL])


def _send_stakes(sender: TransactionSender) -> None:
    stake = function_call("deposit_and_stake", gas=50, deposit="100 NEAR")
    sender.send("a stake with a pool", PERSON, POOL, stake)
    liquid = function_call("deposit_and_stake", gas=50, deposit="40 NEAR")
    sender.send("a stake through the liquid token", PERSON, LIQUID, liquid)


PARTS = (
    Part(
        {
            PERSON: "the person",
            "friend.near": "a friend",
            "near": "creates accounts under near",
        },
        _add_wallet,
        _send_wallet,
        {},
    ),
    Part(
        {POOL: "a staking pool, which validates", LIQUID: "a liquid staking token"},
        _add_stakes,
        _send_stakes,
        {"pools": [POOL], "liquid": LIQUID},
    ),
)
