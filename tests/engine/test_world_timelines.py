"""What traces say about balances, block by block, against the state of random worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import ledgerkit as lk
from ledgerkit.localnet.chain_types import ActionReceipt, Failure
from tests.surface.test_stories import traced
from tests.unit.localnet.full_world import FullWorld
from tests.world_timeline import beyond_traces, block_differences

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World


@pytest.fixture(scope="module")
def worlds() -> list[World]:
    """Return worlds in which everything has ended."""
    return [FullWorld(seed).run(250) for seed in (2, 3, 6)]


def test_every_contract_of_the_world_is_used(worlds: list[World]) -> None:
    """Tokens, staking, an exchange, a database and factories run, fail and refund elsewhere."""
    methods: set[str] = set()
    failed = elsewhere = 0
    for world in worlds:
        for receipt in world.receipts():
            outcome = world.outcome(receipt.receipt_id)
            if outcome is None or not isinstance(receipt, ActionReceipt):
                continue
            elsewhere += receipt.refund_to is not None
            if isinstance(outcome.status, Failure):
                failed += 1
                continue
            names = (getattr(action, "method_name", "") for action in receipt.actions)
            methods.update(f"{receipt.receiver_id}.{name}" for name in names)
    assert failed > 200
    assert elsewhere > 5
    assert {
        "wrap.near_deposit",
        "liquid.near.epoch_stake",
        "pool.near.deposit_and_stake",
        "dex.near.ft_on_transfer",
        "nft.nft_mint",
        "multi.mint",
        "social.near.set",
        "factory.create",
        "near.create_account",
        "async.near.join",
    } <= methods


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
