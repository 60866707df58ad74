"""The computation of rewards from readings of a balance, and the search for epochs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ledgerkit as lk
from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.block_data.epoch_starts import epoch_starts
from ledgerkit.localnet import Genesis, Settings, World
from ledgerkit.reconciling.model import NEAR, STAKE, Entry
from ledgerkit.reconciling.rewards import (
    StakeReading,
    annual_yield,
    compute_rewards,
    reward_entries,
    rewards_frame,
)
from ledgerkit.reconciling.stakes import pool_test, stake_of_transfer

POOL = "astro-stakers.poolv1.near"
YEAR_NS = 365 * 24 * 3600 * 10**9


def reading(height: int, total: int, time_ns: int | None = None) -> StakeReading:
    """Build a reading at the first block of an epoch."""
    names = f"epoch {height}", f"epoch {height + 10}"
    return StakeReading(height, time_ns, *names, begins_epoch=True, total=total, staked=total)


def paid(_growth: int, _before: StakeReading, _after: StakeReading) -> bool:
    return True


@given(
    st.lists(st.integers(1, 10**30), min_size=2, max_size=20),
    st.lists(st.tuples(st.integers(-20, 250), st.integers(-(10**30), 10**30)), max_size=20),
)
def test_rewards_and_moves_add_up_exactly(totals: list[int], moves: list[tuple[int, int]]) -> None:
    """Rewards, deposits and withdrawals add up to the change of the balance, in each row too."""
    readings = [reading(10 * at, total) for at, total in enumerate(totals)]
    rows = compute_rewards("alice.near", POOL, readings, moves, paid)
    inside = [amount for height, amount in moves if 0 < height <= readings[-1].height]
    assert sum(row.reward for row in rows) + sum(inside) == totals[-1] - totals[0]
    assert sum(entry.change for entry in reward_entries(rows)) == sum(r.reward for r in rows)
    for row in rows:
        assert row.total_before + row.reward + row.deposits - row.withdrawals == row.total_after
    frame = rewards_frame("alice.near", rows)
    assert frame["reward"].tolist() == [row.reward for row in rows]


def test_a_deposit_alone_is_no_reward() -> None:
    """An epoch in which a balance grew by its deposit only has no row."""
    readings = [reading(0, 0), reading(10, 10**27)]
    assert compute_rewards("alice.near", POOL, readings, [(7, 10**27)], paid) == []


def test_an_epoch_with_a_deposit_has_no_yield() -> None:
    """The same growth is a yield without a deposit, and none with one."""
    readings = [reading(0, 100, 0), reading(10, 121, YEAR_NS // 10)]
    [row] = compute_rewards("alice.near", POOL, readings, [(5, 20)], paid)
    assert (row.reward, row.apy) == (1, None)
    [row] = compute_rewards("alice.near", POOL, readings, [(5, -20)], paid)
    assert row.reward == 41
    assert row.apy == pytest.approx(1.41**10 - 1)


def test_a_part_of_an_epoch_has_no_yield() -> None:
    """A yield needs a reading at both ends of an epoch."""
    whole = [reading(0, 100, 0), reading(10, 121, YEAR_NS // 10)]
    for part in (0, 1):
        readings = list(whole)
        readings[part] = whole[part]._replace(begins_epoch=False)
        [row] = compute_rewards("alice.near", POOL, readings, [], paid)
        assert (row.reward, row.apy) == (21, None)


@pytest.mark.parametrize(
    ("before", "after", "reward"),
    [
        (reading(0, 10, None), reading(10, 11, 5), 1),
        (reading(0, 0, 0), reading(10, 11, 5), 1),
        (reading(0, 10, 5), reading(10, 11, 5), 1),
        (reading(0, 10, 0), reading(10, 0, 5), -10),
        (reading(0, 1, 0), reading(10, 10**30, 1), 10**30),
    ],
)
def test_a_yield_that_cannot_be_known_is_missing(
    before: StakeReading, after: StakeReading, reward: int
) -> None:
    """Without times, time in between, or a balance there is no yield."""
    assert annual_yield(reward, before, after) is None


def test_a_yield_is_compounded() -> None:
    """A tenth of a year's growth of 1 % compounds to 1.01^10 - 1."""
    before, after = reading(0, 100, 0), reading(10, 101, YEAR_NS // 10)
    assert annual_yield(1, before, after) == pytest.approx(1.01**10 - 1)


@settings(deadline=None, max_examples=25)
@given(
    st.integers(5, 40),
    st.lists(st.integers(1, 6), min_size=1, max_size=60),
    st.integers(0, 100),
)
def test_the_epochs_found_are_those_of_the_chain(length: int, steps: list[int], share: int) -> None:
    """With skipped heights too, the first blocks of all epochs between two blocks are found."""
    world = World(Settings(genesis_height=1000, epoch_length=length), Genesis())
    for step in [*steps, 1, 1, 1] * 2:
        world.advance(skip=step - 1 if step > 4 else 0)
    with lk.connect("local", world=world, make_default=False) as ledger:
        head = world.chain.final.height
        start = 1000 + (head - 1000) * share // 100
        stop = ledger.send(rpc.block(validation.block_reference(head))).header
        # Genesis is the last block of an epoch of its own, as in nearcore.
        first = min(block.height for block in world.chain.blocks() if block.height > 1000)
        starts = {first, *(epoch.start_height for epoch in world.epochs.all[1:])}
        expected = [height for height in sorted(starts) if start < height <= head]
        assert [header.height for header in epoch_starts(ledger, start, stop)] == expected


def test_pools_are_known_by_their_names_or_by_a_list() -> None:
    """Only the factories can create accounts with these names."""
    is_pool = pool_test(["own.near"])
    pools = ["own.near", POOL, "a.pool.near", "b.pool.f863973.m0"]
    others = ["poolv1.near", "a.poolv1.near.evil.near", "pool.near", "a.spool.near", "near"]
    assert [is_pool(name) for name in pools] == [True] * 4
    assert [is_pool(name) for name in others] == [False] * 5


@pytest.mark.parametrize(
    ("change", "method", "counterparty", "expected"),
    [
        # Source: shared/vectors/history/account.json, block 161,048,664.
        (-(10**27), "deposit_and_stake", POOL, ("stake", 10**27)),
        (5, None, POOL, ("withdraw", -5)),
        (-5, None, POOL, None),
        (5, None, "system", None),
        (-5, "deposit", "alice.near", None),
    ],
)
def test_a_transfer_shows_what_moved_to_a_pool(
    change: int, method: str | None, counterparty: str, expected: tuple[str, int] | None
) -> None:
    """A deposit needs a deposit's method; what the pool pays is a withdrawal."""
    entry = Entry(1, None, NEAR, "deposit", change, None, None, counterparty, method)
    flow = stake_of_transfer(entry, pool_test([]))
    assert (flow and (flow.cause, flow.change)) == expected
    assert flow is None or flow.asset == STAKE + POOL
