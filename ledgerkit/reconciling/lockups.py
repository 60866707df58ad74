"""Rewards of the lockup contracts of an account, which stake on behalf of their owner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ledgerkit.errors import LedgerError, NotRecordedError
from ledgerkit.reconciling.listing import available_documents, indexed_entry
from ledgerkit.reconciling.model import NEAR, Block, Entry, Reward
from ledgerkit.reconciling.plan import first_height
from ledgerkit.reconciling.reconcile import BalanceReader
from ledgerkit.reconciling.rewards import listed_pools, read_rewards
from ledgerkit.reconciling.stakes import pool_test, stake_entries, stake_of_transfer
from ledgerkit.tracing.trace import Trace
from ledgerkit.verbs.account_history import selected_transfers, transaction_rows
from ledgerkit.verbs.lockups import Selection, lockup_ids, read_selections, selection_note

if TYPE_CHECKING:
    from ledgerkit.api.models.services import TransferRow
    from ledgerkit.ledger import Ledger
    from ledgerkit.reconciling.stakes import PoolTest


def lockup_rewards(
    ledger: Ledger,
    owner_id: str,
    start: Block,
    stop: Block,
    notes: list[str],
    *,
    progress: bool = True,
) -> list[Reward]:
    """Read the rewards of an owner's lockup contracts, if any; add notes on what is not known."""
    rewards = []
    for account_id in lockup_ids(ledger.network, owner_id).values():
        [at_stop] = read_selections(ledger, [account_id], stop.reference)
        if note := selection_note(account_id, owner_id, at_stop):
            notes.append(note)
        if isinstance(at_stop, NotRecordedError) or _selection(at_stop).status == "no_account":
            continue
        [at_start] = read_selections(ledger, [account_id], start.reference)
        selected = [_selection(at_stop).pool_id, _selection(at_start).pool_id]
        pools = [*listed_pools(ledger, account_id), *filter(None, selected)]
        flows = [*_stake_flows(ledger, account_id, start, stop, pool_test(pools))]
        pools += [entry.counterparty_id for entry in flows if entry.counterparty_id]
        reader = BalanceReader(ledger, account_id, progress=progress)
        rewards += read_rewards(ledger, account_id, pools, start, stop, flows, reader)
    return rewards


def _selection(value: Selection | LedgerError) -> Selection:
    """Return what a lockup contract selected; raise if it could not be read."""
    if isinstance(value, LedgerError):
        raise value
    return value


def _stake_flows(
    ledger: Ledger, account_id: str, start: Block, stop: Block, is_pool: PoolTest
) -> Iterator[Entry]:
    rows = transaction_rows(ledger, account_id, first_height(start.height), stop.height)
    read_hashes: set[str] = set()
    receipt_ids: set[str] = set()
    for tx_hash, document in available_documents(ledger, (row.transaction_hash for row in rows)):
        read_hashes.add(tx_hash)
        receipt_ids |= document.result.receipt_ids()
        yield from stake_entries(Trace(document.result, document.body), account_id, is_pool)
    if ledger.network.transfers_url is None:
        return

    def is_unread(row: TransferRow) -> bool:
        # The indexer does not know the transaction of each transfer.
        return row.transaction_id not in read_hashes and row.receipt_id not in receipt_ids

    borders_ns = start.timestamp_ns, stop.timestamp_ns + 1
    for row in selected_transfers(
        ledger, account_id, borders_ns, is_unread, asset=NEAR, progress=False
    ):
        entry = indexed_entry(row)
        flow = None if entry is None else stake_of_transfer(entry, is_pool)
        if flow is not None:
            yield flow
