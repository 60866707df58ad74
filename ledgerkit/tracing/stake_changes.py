"""The changes of accounts' balances with staking pools, from the pools' own log lines."""

# Source: near/core-contracts, `staking-pool/src/internal.rs`, logs each change of an account in
# this form, and so does `staking-farm`; what is deposited is the attached deposit, and what is
# withdrawn is the amount of the transfer. Nearblocks/nearblocks reads the same lines for its table
# of staking events.

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ledgerkit.api.models.actions import function_calls
from ledgerkit.tracing.actions import SUCCEEDED
from ledgerkit.tracing.balance_timeline import BalanceChange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ledgerkit.tracing.gas import ReceiptValues

POOL_METHODS = re.compile(r"(deposit|deposit_and_stake|(un)?stake(_all)?|withdraw(_all)?)")
_LINE = re.compile(r"@(\S+) (deposited|staking|unstaking|withdrawing) (\d{1,39})\.", re.ASCII)
# What staking and unstaking move within a pool is no change of the balance with it.
_KINDS = {
    "deposited": ("stake", 1),
    "staking": ("stake", 0),
    "unstaking": ("unstake", 0),
    "withdrawing": ("withdraw", -1),
}


def read_pool_lines(lines: Iterable[str]) -> Iterator[tuple[str, str, int]]:
    """Yield account, verb (such as ``deposited``) and amount of a pool's log lines."""
    for match in filter(None, map(_LINE.match, lines)):
        yield match[1], match[2], int(match[3])


def stake_changes(values: ReceiptValues) -> list[BalanceChange]:
    """List the changes that contracts with a pool's methods logged, in the order of receipts."""
    columns = ("block_height", "time", "receipt_id", "method_name")
    heights, times, ids, methods = map(values.forest.listed, columns)
    changes: list[BalanceChange] = []
    for at, pool_id in enumerate(values.receivers):
        for account_id, kind, change in _changes_in(values, at):
            place, names = (heights[at], times[at]), (ids[at], methods[at], "FunctionCall")
            ends = account_id, pool_id
            asset = f"stake:{pool_id}"
            changes.append(BalanceChange(*place, at, *names, kind, asset, *ends, change, None))
    return changes


def _changes_in(values: ReceiptValues, at: int) -> Iterator[tuple[str, str, int]]:
    """Yield account, kind and signed amount of the changes in one receipt."""
    if values.status[at] not in SUCCEEDED or values.receivers[at] is None:
        return
    calls = function_calls(values.actions[at] or ())
    if not any(POOL_METHODS.fullmatch(call.method_name or "") for call in calls):
        return
    lines = [*read_pool_lines(values.forest.columns["logs"][at])]
    depositors = {account_id for account_id, verb, _ in lines if verb == "deposited"}
    for account_id, verb, amount in lines:
        kind, sign = _KINDS[verb]
        if verb != "staking" or account_id not in depositors:
            yield account_id, kind, sign * amount
