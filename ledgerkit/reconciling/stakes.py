"""Deposits with staking pools and withdrawals, as entries of the asset `stake:<pool>`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ledgerkit.reconciling.model import NEAR, STAKE, Entry

if TYPE_CHECKING:
    from ledgerkit.tracing.trace import Trace

    PoolTest = Callable[[str], bool]

# Only the factories can create accounts with these names, and the whitelist of lockup contracts
# trusts them.
# Source: near/core-contracts, `staking-pool-factory/src/lib.rs`, and Nearblocks/nearblocks, which
# reads staking events of contracts with these names (POOL_PATTERN).
_POOL_ID = re.compile(r".+\.pool(v1)?\.near|.+\.pool\..+\.m0", re.ASCII)
_DEPOSIT_METHODS = frozenset({"deposit", "deposit_and_stake"})


def pool_test(listed: Iterable[str]) -> PoolTest:
    """Return a function that recognizes staking pools: the listed ones, and others by name."""
    pool_ids = frozenset(listed)
    return lambda contract_id: contract_id in pool_ids or bool(_POOL_ID.fullmatch(contract_id))


def stake_entries(trace: Trace, account_id: str, is_pool: PoolTest) -> list[Entry]:
    """
    Return an account's deposits with pools and withdrawals in a transaction, from pools' logs.

    Anybody may have signed the transaction: a lockup contract calls pools on behalf of its owner.
    Staking and unstaking within a pool is a change of 0. Receipts of unknown height are left out.
    """
    entries = []
    for change in trace.stake_timeline():
        pool_id, amount = change.counterparty_id, change.change
        is_flow = change.account_id == account_id and pool_id is not None and is_pool(pool_id)
        if is_flow and change.height is not None and amount is not None:
            entry = Entry(
                block_height=change.height,
                timestamp_ns=change.time_ns,
                asset=change.asset,
                cause=change.kind,
                change=amount,
                tx_hash=trace.tx_hash,
                receipt_id=change.receipt_id,
                counterparty_id=pool_id,
                method_name=change.method_name,
            )
            entries.append(entry)
    return entries


def stake_of_transfer(entry: Entry, is_pool: PoolTest) -> Entry | None:
    """
    Return the entry of the stake for a transfer of NEAR to or from a pool; None if there is none.

    Use this only for transfers whose document was not read. NEAR sent to a pool without a deposit's
    method is not a deposit: it belongs to all delegators. Refunds come from the system, not from
    the pool.
    """
    pool_id = entry.counterparty_id
    if entry.asset != NEAR or pool_id is None or not is_pool(pool_id):
        return None
    if entry.change < 0 and entry.method_name not in _DEPOSIT_METHODS:
        return None
    cause = "stake" if entry.change < 0 else "withdraw"
    return entry._replace(asset=STAKE + pool_id, cause=cause, change=-entry.change)


def with_pool_cause(entry: Entry, is_pool: PoolTest) -> Entry:
    """Relabel a deposit with a pool as `stake` and a withdrawal as `withdraw`."""
    flow = stake_of_transfer(entry, is_pool) if entry.cause in {"deposit", "transfer"} else None
    return entry if flow is None else entry._replace(cause=flow.cause)
