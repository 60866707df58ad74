"""
The growth of stakes with a pool between two blocks, read from the stakes of other accounts.

A pool's rewards raise the price of its shares, so all stakes grow in the same proportion. The
growth of an account's stake is a reward only if the stakes of others grew as much; all else is a
deposit or a withdrawal that no source lists. The owner of a pool gets the fee on top.
"""

# Source: near/core-contracts, `staking-pool/src/internal.rs` (internal_ping) and `lib.rs`
# (get_accounts, get_owner_id, get_reward_fee_fraction, get_total_staked_balance).

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, floor
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.api.models import chain
from ledgerkit.frames import amounts
from ledgerkit.verbs.readings import value_call

if TYPE_CHECKING:
    from ledgerkit.ledger import Ledger
    from ledgerkit.reconciling.rewards import StakeReading

_N_COMPARED = 30  # accounts of a pool whose stakes are compared
_LEAST_STAKE = 10**20  # yoctoNEAR; the growth of a smaller stake is not exact enough
_NOBODY = ""  # stands for the stake that no account has
ROUNDING = 10  # yoctoNEAR; a pool rounds each time it stakes or unstakes


class _Fee(NamedTuple):
    """All stakes with a pool, and the share of rewards that its owner gets."""

    total_staked: int
    share: Fraction

    def of(self, growth: Fraction) -> Fraction:
        return max(Fraction(0), self.total_staked * (growth - 1) * self.share / (1 - self.share))


_NO_FEE = _Fee(0, Fraction(0))


class _OtherStake(NamedTuple):
    """The balance of another account with a pool; unstaking does not change the sum."""

    staked: int
    unstaked: int

    def growth(self, after: _OtherStake) -> _Growth:
        """Return the growth of the stake, before any of it was unstaked."""
        rounded = 0 if after.unstaked == self.unstaked else ROUNDING
        grown = after.staked + after.unstaked - self.unstaked
        return _Growth(
            Fraction(grown - rounded, self.staked + 1), Fraction(grown + rounded + 1, self.staked)
        )


class _Growth(NamedTuple):
    """The factor by which stakes grew, as far as balances without fractions show it."""

    low: Fraction
    high: Fraction


@dataclass(frozen=True)
class PoolGrowth:
    """
    The stakes of other accounts with a pool, which grow by the same factor as an account's.

    Parameters
    ----------
    stakes
        The stakes of other accounts after blocks, by height.
    fees
        The fees of the owner, by height; empty if the account is not the owner.
    doubtful
        Heights where a few yoctoNEAR are unexplained. Growth over such a height is not trusted.
    """

    stakes: Mapping[int, Mapping[str, _OtherStake]]
    fees: Mapping[int, _Fee]
    doubtful: Collection[int]

    def is_reward(self, growth: int, before: StakeReading, after: StakeReading) -> bool:
        """Return True if the growth of an account's balance is a payment of the pool."""
        if any(before.height < height <= after.height for height in self.doubtful):
            return False
        fee = self.fees.get(before.height, _NO_FEE)
        if fee is _NO_FEE and after.total == growth:
            return False  # a balance that grows from zero is an unlisted deposit
        common = _common_growth(self.stakes[before.height], self.stakes[after.height])
        if common is None:
            return False
        # Stakes may be added or withdrawn before or after the payment: either stake may have grown.
        bases = Fraction(before.staked), after.staked / common.low
        return any(
            floor(base * (common.low - 1) + fee.of(common.low)) - ROUNDING
            <= growth
            <= ceil((base + 1) * (common.high - 1) + fee.of(common.high)) + ROUNDING
            for base in bases
        )


def _common_growth(
    before: Mapping[str, _OtherStake], after: Mapping[str, _OtherStake]
) -> _Growth | None:
    """
    Return the growth that most stakes share; the others have deposits or withdrawals.

    If no two stakes agree it is the lowest growth: a deposit adds to it, and a withdrawal in the
    same blocks nearly always makes the stake shrink, which does not count.
    """
    all_growths = (
        stake.growth(after[name])
        for name, stake in before.items()
        if stake.staked >= _LEAST_STAKE and name in after
    )
    growths = [growth for growth in all_growths if growth.high >= 1]
    agreeing = [
        [other for other in growths if other.low <= growth.high and growth.low <= other.high]
        for growth in growths
    ]
    most = max(agreeing, key=lambda group: (len(group), -group[0].low), default=[])
    if not most:
        return None
    low, high = max(growth.low for growth in most), min(growth.high for growth in most)
    return _Growth(low, high) if low <= high else None


# Reading ----------------------------------------------------------------------------------


def read_pool_growth(
    ledger: Ledger,
    account_id: str,
    pool_id: str,
    doubtful: Collection[int],
    readings: Sequence[StakeReading],
) -> PoolGrowth:
    """Read the stakes of others with a pool, at the blocks of an account's readings."""
    heights = [reading.height for reading in readings]
    if not any(reading.staked for reading in readings):
        return PoolGrowth({height: {} for height in heights}, {}, doubtful)
    view = partial(_view, ledger, pool_id)
    [owner_id] = view("get_owner_id", str, heights[-1:])
    pages = view("get_accounts", list[chain.Delegator], heights, from_index=0, limit=_N_COMPARED)
    listed = [_stakes(page or ()) for page in pages]
    is_owner, excluded = owner_id == account_id, (account_id, owner_id)
    is_alone = any(not stakes.keys() - excluded for stakes in listed)
    totals = view("get_total_staked_balance", str | int, heights) if is_owner or is_alone else []
    if is_alone:
        for page, stakes, total in zip(pages, listed, totals, strict=True):
            # On a full page accounts may be missing. Each stake is rounded down.
            if page is not None and len(stakes) == len(page) < _N_COMPARED:
                listed_stake = sum(stake.staked for stake in stakes.values())
                missing = _amount_or_zero(total) - listed_stake - len(stakes)
                stakes[_NOBODY] = _OtherStake(missing, 0)
    by_height = {
        height: {name: stake for name, stake in stakes.items() if name not in excluded}
        for height, stakes in zip(heights, listed, strict=True)
    }
    if not is_owner:
        return PoolGrowth(by_height, {}, doubtful)
    shares = view("get_reward_fee_fraction", chain.FeeFraction, heights)
    fees = dict(zip(heights, map(_fee, totals, shares), strict=True))
    return PoolGrowth(by_height, fees, doubtful)


def _fee(total: str | int | None, share: chain.FeeFraction | None) -> _Fee:
    if share is None or not 0 <= share.numerator < share.denominator:
        return _NO_FEE
    return _Fee(_amount_or_zero(total), Fraction(share.numerator, share.denominator))


def _amount_or_zero(value: str | int | None) -> int:
    return (amounts.plain(["-" if value is None else str(value)]) or [0])[0]


def _stakes(page: Iterable[chain.Delegator]) -> dict[str, _OtherStake]:
    """Return the balances of accounts with a pool; none if one of them is not an amount."""
    delegators = list(page)
    staked = amounts.plain([str(delegator.staked_balance) for delegator in delegators])
    unstaked = amounts.plain([str(delegator.unstaked_balance) for delegator in delegators])
    if staked is None or unstaked is None:
        return {}
    names = (delegator.account_id for delegator in delegators)
    return dict(zip(names, map(_OtherStake, staked, unstaked), strict=True))


def _view(
    ledger: Ledger, pool_id: str, method: str, kind: Any, heights: Sequence[int], **args: int
) -> list[Any]:
    """Call a view method after blocks; None where it fails or returns another type."""

    def decode(result: chain.CallResult, request: str) -> Any:
        return rpc.result_json(result, kind, request)

    blocks = map(validation.block_reference, heights)
    calls = [value_call(pool_id, method, block, decode, args) for block in blocks]
    return ledger.send_many(calls, progress=False)
