"""Sentences on what an account earned by staking: the amount, the epochs and the yearly rate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from ledgerkit import units
from ledgerkit.errors import cut
from ledgerkit.reconciling.model import NEAR, STAKE, Reward, StatementData

if TYPE_CHECKING:
    import pandas as pd


_DIGITS = 3
_MAX_POOLS = 10
_YEAR_NS = 365 * 24 * 3600 * 10**9


def sentences(facts: StatementData, totals: pd.DataFrame) -> Iterator[str]:
    """Yield sentences on all earnings and those with each pool, or why a stake earned nothing."""
    inflows = totals.loc[totals["asset"] == NEAR, "in_by_cause"]
    validated = sum(causes.get("validator_reward", 0) for causes in inflows)
    if validated:
        yield f"earned {units.near_amount(validated, _DIGITS)} as a validator"
    by_pool: dict[str, list[Reward]] = {}
    for row in facts.rewards:
        lockup = row.account_id if row.account_id not in (None, facts.account_id) else None
        name = cut(row.pool_id) if lockup is None else f"{cut(row.pool_id)} by {cut(lockup)}"
        by_pool.setdefault(name, []).append(row)
    stakes = totals[totals["asset"].str.startswith(STAKE)]
    gaps = {gap.asset for gap in facts.gaps}
    n_doubtful = int((stakes["asset"].isin(gaps) | stakes["missing"].isna()).sum())
    if not by_pool and not n_doubtful:
        if len(stakes):
            yield no_rewards(facts, totals)
    elif len(by_pool) == 1:
        yield f"earned {_amount_and_rate(facts.rewards)}, with {next(iter(by_pool))}"
    elif by_pool:
        yield f"earned {_amount_and_rate(facts.rewards)}, in all"
        lines = (f"with {name}: {_amount_and_rate(rows)}" for name, rows in by_pool.items())
        yield from islice(lines, _MAX_POOLS)
        if len(by_pool) > _MAX_POOLS:
            yield f"and {units.count_text(len(by_pool) - _MAX_POOLS, 'more pool')}"
    if n_doubtful:
        pools = units.count_text(n_doubtful, "pool")
        rewards = "other staking rewards" if by_pool else "staking rewards"
        yield f"{rewards} are unknown: the balance with {pools} is unknown or has gaps"


def no_rewards(facts: StatementData, totals: pd.DataFrame) -> str:
    """Return why there is no reward in a period."""
    n_pools = int(totals["asset"].str.startswith(STAKE).sum())
    if n_pools:
        return (
            f"no staking rewards: the balance with {units.count_text(n_pools, 'pool')} did not "
            "grow by itself; a pool adds rewards once an epoch, when it is called"
        )
    if facts.assets is not None:
        return "staking rewards were not read: the chosen assets include no stake"
    return "no staking rewards: no balance with a staking pool is known in this period"


def _amount_and_rate(rewards: Sequence[Reward]) -> str:
    amount = units.near_amount(sum(row.reward for row in rewards), _DIGITS)
    n_known = len({row.epoch_id for row in rewards if row.apy is not None})
    epochs = {row.epoch_id for row in rewards}
    n_epochs = units.count_text(len(epochs), "epoch")
    if None in epochs:  # a row without an epoch spans several
        n_epochs = f"at least {units.count_text(max(2, len(epochs) - 1), 'epoch')}"
    rate = _annual_rate(rewards)
    if rate is None:
        return f"{amount} in {n_epochs}, yearly rate unknown"
    with_rate = "" if n_known == len(epochs) else f" in {n_known:,} of them"
    return f"{amount} in {n_epochs}, {100 * rate:.1f} % a year{with_rate}"


def _annual_rate(rewards: Sequence[Reward]) -> float | None:
    """
    Return the mean compounded yearly rate of the rows; None if no row has a known rate.

    Stake and time are the weights. A row may contain the rewards of earlier epochs without a row,
    so its time begins where the row before ended, if the stake has not moved since.
    """
    growth = stake_years = 0.0
    for before, row in pairwise((None, *rewards)):
        if row is None or not row.apy or row.apy <= -1:
            continue
        log_growth = math.log1p(row.reward / row.total_before)
        years = log_growth / math.log1p(row.apy)
        if before is not None and _continues(before, row):
            years = ((row.timestamp_ns or 0) - (before.timestamp_ns or 0)) / _YEAR_NS
        growth += row.total_before * log_growth
        stake_years += row.total_before * years
    return math.expm1(growth / stake_years) if stake_years > 0 else None


def _continues(before: Reward, row: Reward) -> bool:
    is_same = (before.account_id, before.pool_id) == (row.account_id, row.pool_id)
    is_timed = before.timestamp_ns is not None and row.timestamp_ns is not None
    return is_same and is_timed and before.total_after == row.total_before
