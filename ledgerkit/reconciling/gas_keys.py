"""
Gas keys that were deleted: what became of their balances.

The deletion of an account burns the balances of its gas keys, and its transaction does not name
them. A refund of gas to a gas key that another transaction has deleted goes to the account.
"""

# Source: nearcore, runtime/runtime/src: `action_delete_account` and `refund_gas_key`, NEP-611.

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.reconciling.model import GAS_KEY, NEAR, Entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ledgerkit.reconciling.model import Gap
    from ledgerkit.reconciling.reconcile import BalanceReader


class Settled(NamedTuple):
    """Entries that are those of the account, entries of deletions, and the gaps that remain."""

    moved: frozenset[Entry]
    entries: list[Entry]
    gaps: list[Gap]


def settle_gas_keys(
    gaps: Sequence[Gap], entries: Iterable[Entry], reader: BalanceReader
) -> Settled:
    """Explain the gaps of gas keys after whose block there is no balance."""
    emptied = [gap for gap in gaps if _is_emptied(gap, reader)]
    refunds: dict[tuple[str, int], list[Entry]] = defaultdict(list)
    for entry in entries if emptied else ():
        if entry.asset.startswith(GAS_KEY) and entry.cause == "fee" and entry.change > 0:
            refunds[entry.asset, entry.block_height].append(entry)
    missing = {(gap.asset, gap.stop_height): gap.missing for gap in gaps}
    moved: set[Entry] = set()
    deleted: list[Entry] = []
    for gap in emptied:
        lost, height = -(gap.missing or 0), gap.stop_height
        own = _with_sum(refunds[gap.asset, height], lost)
        to_account = missing.get((NEAR, height))
        if own and to_account:
            moved.update(own)
            missing[NEAR, height] = to_account - lost
        elif to_account != lost:  # the balance did not go to the account: it was burnt
            time_ns = reader.time_ns(height)
            deleted.append(Entry(height, time_ns, gap.asset, "deleted", -lost, evidence="proved"))
        else:
            continue
        missing[gap.asset, height] = 0
    updated = [gap._replace(missing=missing[gap.asset, gap.stop_height]) for gap in gaps]
    return Settled(frozenset(moved), deleted, [gap for gap in updated if gap.missing != 0])


def _is_emptied(gap: Gap, reader: BalanceReader) -> bool:
    """Return True for a gap of a gas key in one block, after which it has no balance."""
    is_lost = gap.has_block and (gap.missing or 0) < 0 and gap.asset.startswith(GAS_KEY)
    return is_lost and reader.balance(gap.asset, gap.stop_height) == 0


def _with_sum(refunds: list[Entry], total: int) -> list[Entry]:
    """Return all refunds, or one of them, if they are this sum; otherwise nothing."""
    choices = [refunds, *([refund] for refund in refunds)]
    return next((each for each in choices if sum(e.change for e in each) == total), [])
