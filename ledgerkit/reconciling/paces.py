"""
The pace of a staking pool: what stakes with it grew by between two blocks, as others show it.

A pool's rewards raise the price of its shares, so all stakes grow in the same proportion. What the
stake of an account grew by is a reward only if the stakes of others grew as much; all else is a
deposit or a withdrawal that no source lists. The owner of a pool has its fee on top.
"""

# Source: near/core-contracts, `staking-pool/src/internal.rs` (internal_ping) and `lib.rs`
# (get_accounts, get_owner_id, get_reward_fee_fraction, get_total_staked_balance).

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, floor
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.api.models import chain
from ledgerkit.errors import DecodeError
from ledgerkit.frames import amounts
from ledgerkit.verbs.readings import unless_refused

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ledgerkit.ledger import Ledger
    from ledgerkit.reconciling.rewards import StakeReading

_N_WITNESSES = 30  # accounts of a pool whose stakes are compared
_LEAST_STAKE = 10**20  # yoctoNEAR: what a smaller one grew by is not exact enough
_NOBODY = ""  # has the stake of a pool itself
ROUNDING = 10  # yoctoNEAR: a pool rounds each time it stakes or unstakes


class _Fee(NamedTuple):
    """The stakes with a pool in all, and the share of rewards that its owner keeps."""

    total_staked: int
    share: Fraction

    def of(self, growth: Fraction) -> Fraction:
        """Return what the owner gets when stakes grow by a factor."""
        return max(Fraction(0), self.total_staked * (growth - 1) * self.share / (1 - self.share))


_NO_FEE = _Fee(0, Fraction(0))


class _Witness(NamedTuple):
    """What another account has with a pool; to unstake some of it leaves the sum."""

    staked: int
    unstaked: int

    def growth(self, after: _Witness) -> _Growth:
        """Return how its stake grew, before anything of it was unstaked."""
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
class Pace:
    """
    What a pool paid to others than an account.

    Parameters
    ----------
    stakes
        The stakes of other accounts after blocks, by height.
    fees
        What its owner gets, by height; empty if the account is another one.
    doubtful
        Heights at which a few yoctoNEAR of the account are unexplained: a growth may contain them.
    """

    stakes: Mapping[int, Mapping[str, _Witness]]
    fees: Mapping[int, _Fee]
    doubtful: Collection[int]

    def shows(self, growth: int, before: StakeReading, after: StakeReading) -> bool:
        """Return True if an account's balance grew by so much because the pool paid it."""
        if any(before.height < height <= after.height for height in self.doubtful):
            return False
        fee = self.fees.get(before.height, _NO_FEE)
        if fee is _NO_FEE and after.total == growth:
            return False  # nothing grows from nothing: no source lists the deposit
        pace = _common_growth(self.stakes[before.height], self.stakes[after.height])
        if pace is None:
            return False
        # The stake at the beginning grew, before anything was added or taken; or that at the end.
        bases = Fraction(before.staked), after.staked / pace.low
        return any(
            floor(base * (pace.low - 1) + fee.of(pace.low)) - ROUNDING
            <= growth
            <= ceil((base + 1) * (pace.high - 1) + fee.of(pace.high)) + ROUNDING
            for base in bases
        )


def _common_growth(before: Mapping[str, _Witness], after: Mapping[str, _Witness]) -> _Growth | None:
    """
    Return the growth that most stakes share; others were deposited to, or withdrawn from.

    Where no two agree it is the lowest: what is deposited adds to it, and of what is withdrawn in
    the same blocks a stake nearly always shrinks.
    """
    witnesses = (
        witness.growth(after[name])
        for name, witness in before.items()
        if witness.staked >= _LEAST_STAKE and name in after
    )
    growths = [growth for growth in witnesses if growth.high >= 1]
    agreeing = [
        [each for each in growths if each.low <= growth.high and growth.low <= each.high]
        for growth in growths
    ]
    most = max(agreeing, key=lambda group: (len(group), -group[0].low), default=[])
    if not most:
        return None
    low, high = max(each.low for each in most), min(each.high for each in most)
    return _Growth(low, high) if low <= high else None


# Reading ----------------------------------------------------------------------------------


def read_pace(
    ledger: Ledger,
    account_id: str,
    pool_id: str,
    doubtful: Collection[int],
    readings: Sequence[StakeReading],
) -> Pace:
    """Read what a pool paid to others, at the blocks of an account's readings."""
    heights = [reading.height for reading in readings]
    if not any(reading.staked for reading in readings):
        return Pace({height: {} for height in heights}, {}, doubtful)
    view = partial(_view, ledger, pool_id)
    [owner_id] = view("get_owner_id", str, heights[-1:])
    pages = view("get_accounts", list[chain.Delegator], heights, from_index=0, limit=_N_WITNESSES)
    listed = [_stakes(page or ()) for page in pages]
    is_owner, left_out = owner_id == account_id, (account_id, owner_id)
    is_alone = any(not stakes.keys() - left_out for stakes in listed)
    totals = view("get_total_staked_balance", str | int, heights) if is_owner or is_alone else []
    if is_alone:
        for page, each, total in zip(pages, listed, totals, strict=True):
            if page is not None and len(each) == len(page) < _N_WITNESSES:  # all are listed
                theirs = sum(witness.staked for witness in each.values())
                each[_NOBODY] = _Witness(_plain(total) - theirs - len(each), 0)  # and round down
    stakes = {
        height: {name: stake for name, stake in each.items() if name not in left_out}
        for height, each in zip(heights, listed, strict=True)
    }
    if not is_owner:
        return Pace(stakes, {}, doubtful)
    shares = view("get_reward_fee_fraction", chain.FeeFraction, heights)
    read = zip(heights, totals, shares, strict=True)
    fees = {height: _fee(total, share) for height, total, share in read}
    return Pace(stakes, fees, doubtful)


def _fee(total: str | int | None, share: chain.FeeFraction | None) -> _Fee:
    if share is None or not 0 <= share.numerator < share.denominator:
        return _NO_FEE
    return _Fee(_plain(total), Fraction(share.numerator, share.denominator))


def _plain(value: str | int | None) -> int:
    """Return an amount; 0 if it is none, of which nothing can be a share."""
    return (amounts.plain(["-" if value is None else str(value)]) or [0])[0]


def _stakes(page: Iterable[chain.Delegator]) -> dict[str, _Witness]:
    """Return what accounts have with a pool; nothing if one of it is no amount."""
    delegators = list(page)
    staked = amounts.plain([str(each.staked_balance) for each in delegators])
    unstaked = amounts.plain([str(each.unstaked_balance) for each in delegators])
    if staked is None or unstaked is None:
        return {}
    names = (each.account_id for each in delegators)
    return dict(zip(names, map(_Witness, staked, unstaked), strict=True))


def _view(
    ledger: Ledger, pool_id: str, method: str, kind: Any, heights: Sequence[int], **args: int
) -> list[Any]:
    """Call a view method after blocks; None where the pool has none like a staking pool's."""
    packed = validation.json_args(args)
    calls = [
        unless_refused(rpc.call_function(pool_id, method, packed, validation.block_reference(at)))
        for at in heights
    ]
    results: list[Any] = ledger.send_many(calls, progress=False)
    return [None if each is None else _value(each, kind, method) for each in results]


def _value(result: chain.CallResult, kind: Any, method: str) -> Any:
    try:
        return rpc.result_json(result, kind, method)
    except DecodeError:
        return None
