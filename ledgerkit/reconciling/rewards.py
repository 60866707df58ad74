"""
Rewards of staking: the growth of a balance with a pool, epoch by epoch.

Pools do not report rewards. The growth of an account's balance between two blocks, less deposits
and plus withdrawals, is its reward if the stakes of others grew as much (`pool_growth`). The
reward is exact, and includes the few yoctoNEAR by which a pool rounds when it stakes or unstakes.
Without that evidence the growth does not count: a deposit that no source lists looks the same.

Balances are read at the first block of each epoch, in which the protocol pays the rewards of the
previous epoch. A pool distributes them at the next call, so they may show an epoch later. Where a
balance and those of others grew differently, the blocks of the change are located and compared
separately.
"""

# Source: near/core-contracts, `staking-pool/src/internal.rs` (internal_ping, internal_stake).

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import validation
from ledgerkit.api import rest, rpc
from ledgerkit.block_data.epoch_starts import epoch_starts
from ledgerkit.frames.build import build_frame, columns_of
from ledgerkit.reconciling.model import STAKE, Block, Entry, Reward
from ledgerkit.reconciling.pool_growth import PoolGrowth, read_pool_growth
from ledgerkit.reconciling.reconcile import BalanceReader, Sums, find_gaps
from ledgerkit.verbs.readings import stake_call

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.models import chain
    from ledgerkit.ledger import Ledger
    from ledgerkit.validation import BlockReference

    ReadHoldings = Callable[[Sequence[chain.BlockHeader]], list["Holding | None"]]
    RewardTest = Callable[[int, "StakeReading", "StakeReading"], bool]

_YEAR_NS = 365 * 24 * 3600 * 10**9


class Holding(NamedTuple):
    """The balance of an account with a pool, or in a liquid token, after a block."""

    total: int  # staked and unstaked, or the value of the token, in yoctoNEAR
    staked: int  # the part that earns: the stake in yoctoNEAR, or the token in its smallest unit


class StakeReading(NamedTuple):
    """The balance of an account with a pool after a block."""

    height: int
    time_ns: int | None
    epoch_id: str
    next_epoch_id: str | None
    begins_epoch: bool
    total: int  # as in `Holding`
    staked: int


def listed_pools(ledger: Ledger, account_id: str) -> list[str]:
    """Return the pools that the indexer lists for an account; none if there is no indexer."""
    if ledger.network.api_url is None:
        return []
    pools = ledger.send(rest.staking(account_id)).pools
    return [pool.pool_id for pool in pools or ()]


def read_rewards(  # noqa: PLR0917 - an account and a period, as everywhere
    ledger: Ledger,
    account_id: str,
    pools: Iterable[str],
    start: Block,
    stop: Block,
    flows: Iterable[Entry],
    reader: BalanceReader,
    doubtful: Collection[int] = (),
) -> list[Reward]:
    """
    Read the rewards of an account with pools between two blocks: by pool, oldest first.

    `flows` must have all deposits and withdrawals between the two blocks; other entries are
    ignored. At `doubtful` heights a few yoctoNEAR of the account are unexplained, which look like
    the rounding of a pool. Epochs with an empty balance are not read.
    """
    flows, rewards = [e for e in flows if e.cause != "staking_reward"], list[Reward]()
    for pool_id in dict.fromkeys(pools):
        moves = [(e.block_height, e.change) for e in flows if e.asset == STAKE + pool_id]
        read = partial(_read_stakes, ledger, account_id, pool_id, progress=reader.progress)
        read_growth = partial(read_pool_growth, ledger, account_id, pool_id, doubtful)
        compute = partial(_proven_rewards, account_id, pool_id, moves, read_growth)
        readings = read_at_epochs(ledger, (start, stop), [height for height, _ in moves], read)
        rows = compute(readings)
        while borders := _unexplained_borders(STAKE + pool_id, readings, moves, rows, reader):
            headers = [_header(ledger, block) for block in borders]
            n_readings = len(readings)
            readings = sorted({*readings, *_readings(headers, read(headers))})
            if len(readings) == n_readings:  # the height before a gap's block may be skipped
                break
            rows = compute(readings)
        rewards += rows
    return rewards


def _proven_rewards(
    account_id: str,
    pool_id: str,
    moves: Sequence[tuple[int, int]],
    read_growth: Callable[[Sequence[StakeReading]], PoolGrowth],
    readings: Sequence[StakeReading],
) -> list[Reward]:
    """Compute the rewards that agree with other stakes, which are read where the balance grew."""
    grown = compute_rewards(account_id, pool_id, readings, moves, lambda *_: True)
    heights = {height for row in grown for height in (row.start_height, row.stop_height)}
    growth = read_growth([reading for reading in readings if reading.height in heights])
    return compute_rewards(account_id, pool_id, readings, moves, growth.is_reward)


def _unexplained_borders(
    asset: str,
    readings: Sequence[StakeReading],
    moves: Iterable[tuple[int, int]],
    rewards: Iterable[Reward],
    reader: BalanceReader,
) -> list[BlockReference]:
    """Return the unread blocks around unexplained changes of a balance."""
    changes = [*moves, *((reward.stop_height, reward.reward) for reward in rewards)]
    if len(readings) < 2:  # noqa: PLR2004 - nothing between them
        return []
    first, last = readings[0], readings[-1]
    explained = sum(change for height, change in changes if first.height < height <= last.height)
    if last.total - first.total == explained:
        return []
    gaps = find_gaps(reader, {asset: Sums(sorted(changes))}, first.height, last.height)
    located = [gap for gap in gaps if gap.has_block]
    heights = {height for gap in located for height in (gap.start_height, gap.stop_height)}
    heights -= {reading.height for reading in readings}
    return [validation.received_hash(reader.point(height).hash) for height in sorted(heights)]


def read_at_epochs(
    ledger: Ledger, ends: tuple[Block, Block], flow_heights: Sequence[int], read: ReadHoldings
) -> list[StakeReading]:
    """
    Read a balance at two blocks, and between them at the first block of each epoch.

    Epochs with an empty balance before the first flow or after the last one are left out, and so
    are blocks at which the balance is unknown.
    """
    start, stop = (_header(ledger, block.reference) for block in ends)
    opening, closing = read([start, stop])
    starts = _active_starts(ledger, (start, stop), (opening, closing), flow_heights)
    inner = [header for header in starts if header.hash != stop.hash]
    return _readings([start, *inner, stop], [opening, *read(inner), closing])


def _readings(
    headers: Sequence[chain.BlockHeader], holdings: Sequence[Holding | None]
) -> list[StakeReading]:
    return [
        StakeReading(
            *(header.height, header.time_ns, header.epoch_id, header.next_epoch_id),
            begins_epoch=header.prev_hash == header.next_epoch_id,
            total=holding.total,
            staked=holding.staked,
        )
        for header, holding in zip(headers, holdings, strict=True)
        if holding is not None
    ]


def compute_rewards(
    account_id: str,
    pool_id: str,
    readings: Sequence[StakeReading],
    moves: Iterable[tuple[int, int]],
    is_reward: RewardTest,
) -> list[Reward]:
    """
    Compute the rewards between consecutive readings; no reward gives no row.

    A balance that appears without a deposit is not a reward, except for the pool's owner, who gets
    the fee as a balance; the first fee is left out.

    `moves` are heights and amounts: deposits positive, withdrawals negative. `is_reward` gets a
    growth and the readings around it.
    """
    moves, rewards = list(moves), []
    for before, after in pairwise(readings):
        between = [amount for height, amount in moves if before.height < height <= after.height]
        is_whole = before.begins_epoch and after.begins_epoch
        reward = Reward(
            pool_id=pool_id,
            epoch_id=before.epoch_id if _in_one_epoch(before, after) else None,
            start_height=before.height,
            stop_height=after.height,
            timestamp_ns=after.time_ns,
            total_before=before.total,
            deposits=sum(amount for amount in between if amount > 0),
            withdrawals=-sum(amount for amount in between if amount < 0),
            total_after=after.total,
            apy=None,
            account_id=account_id,
        )
        if reward.reward and is_reward(reward.reward, before, after):
            # It is unknown when a deposit began to earn.
            is_even = is_whole and not reward.deposits
            apy = annual_yield(reward.reward, before, after) if is_even else None
            rewards.append(reward._replace(apy=apy))
    return rewards


def annual_yield(reward: int, before: StakeReading, after: StakeReading) -> float | None:
    """Return a reward as a yearly rate, compounded at the pace of its epoch; None if unknown."""
    elapsed_ns = (after.time_ns or 0) - (before.time_ns or 0)
    is_timed = before.time_ns is not None and after.time_ns is not None and elapsed_ns > 0
    if not is_timed or before.total <= 0 or before.total + reward <= 0:
        return None
    try:
        return math.expm1(math.log1p(reward / before.total) * (_YEAR_NS / elapsed_ns))
    except OverflowError:
        return None


def reward_entries(rewards: Iterable[Reward]) -> list[Entry]:
    """Return the entries of rewards, at the blocks where they were read."""
    return [
        Entry(
            block_height=reward.stop_height,
            timestamp_ns=reward.timestamp_ns,
            asset=STAKE + reward.pool_id,
            cause="staking_reward",
            change=reward.reward,
            counterparty_id=reward.pool_id,
            evidence="proved",
        )
        for reward in rewards
    ]


def rewards_frame(account_id: str, rewards: Sequence[Reward]) -> pd.DataFrame:
    account_ids = [reward.account_id or account_id for reward in rewards]
    members = {"time": "timestamp_ns"}
    columns = columns_of("statement_rewards", rewards, members, account_id=account_ids)
    return build_frame("statement_rewards", columns)


# Reading ----------------------------------------------------------------------------------


def _header(ledger: Ledger, block: BlockReference) -> chain.BlockHeader:
    return ledger.send(rpc.block(block)).header


def _active_starts(
    ledger: Ledger,
    ends: Sequence[chain.BlockHeader],
    holdings: Sequence[Holding | None],
    flow_heights: Sequence[int],
) -> list[chain.BlockHeader]:
    first, last = ends
    start_height = first.height
    opening, closing = (None if holding is None else holding.total for holding in holdings)
    is_idle = opening == closing == 0 and not flow_heights
    if is_idle or (opening is None and closing is None):
        return []
    if opening == 0 and flow_heights:
        start_height = max(start_height, min(flow_heights) - 1)
    if closing == 0 and flow_heights and max(flow_heights) < last.height:
        last = _header(ledger, validation.block_reference(max(flow_heights)))
    return epoch_starts(ledger, start_height, last)


def _read_stakes(
    ledger: Ledger,
    account_id: str,
    pool_id: str,
    headers: Sequence[chain.BlockHeader],
    *,
    progress: bool = False,
) -> list[Holding | None]:
    blocks = [validation.received_hash(header.hash) for header in headers]
    calls = [stake_call(account_id, pool_id, block) for block in blocks]
    readings: list[Any] = ledger.send_many(calls, progress=progress, label="stakes")
    return [
        None if reading.total is None else Holding(reading.total, reading.staked or 0)
        for reading in readings
    ]


def _in_one_epoch(before: StakeReading, after: StakeReading) -> bool:
    """Return True if an epoch, or a part of one, lies between two readings."""
    is_next = after.begins_epoch and after.epoch_id == before.next_epoch_id
    return is_next or after.epoch_id == before.epoch_id
