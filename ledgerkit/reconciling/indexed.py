"""Entries for transfers that only the Transfers API lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit.reconciling.model import NEAR, Entry
from ledgerkit.tracing.tree.frame_columns import SYSTEM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.api.models.services import TransferRow
    from ledgerkit.reconciling.reconcile import BalanceReader


def indexed_entry(row: TransferRow) -> Entry | None:
    """Build the entry of a row; None if its amount is cut off at what 128 signed bits can hold."""
    change = row.change
    if change is None:
        return None
    return Entry(
        block_height=row.height,
        timestamp_ns=row.timestamp_ns,
        asset=row.asset,
        cause=_cause(row, change),
        change=change,
        tx_hash=row.transaction_id,
        receipt_id=row.receipt_id,
        counterparty_id=row.other_account_id,
        method_name=row.method_name,
        evidence="indexed",
    )


def _cause(row: TransferRow, change: int) -> str:
    if row.asset != NEAR:
        if row.other_account_id is not None:
            return "token"
        return "mint" if change > 0 else "burn"
    if row.other_account_id == SYSTEM:
        return "refund"
    return "deposit" if row.transfer_type == "AttachedDeposit" or row.method_name else "transfer"


def placed_by_balances(entries: list[Entry], reader: BalanceReader) -> Iterator[Entry]:
    """
    Yield entries in the blocks in which balances changed, with the evidence that these are.

    The service lists NEAR in the block in which it arrived. From its sender it was gone when the
    receipt was created, mostly in the block before.
    """
    # Source: fastnear/transfers-indexer, and the deposit of 1,000 NEAR in block 161,048,664 that a
    # test of petersalomonsen/near-accounting-export has.
    reader.read(
        (entry.asset, height)
        for entry in entries
        for height in range(entry.block_height - 2, entry.block_height + 1)
    )
    moved = [_moved(entry, reader) for entry in entries]
    sums: dict[tuple[str, int], int] = {}
    for entry in moved:
        place = entry.asset, entry.block_height
        sums[place] = sums.get(place, 0) + entry.change
    for entry in moved:
        change = _change(reader, entry.asset, entry.block_height)
        is_proved = change == sums[entry.asset, entry.block_height]
        yield entry._replace(evidence="proved") if is_proved else entry


def _moved(entry: Entry, reader: BalanceReader) -> Entry:
    """Return an entry, one block earlier if NEAR left the account there."""
    if entry.asset != NEAR or entry.change > 0:
        return entry
    here = _change(reader, NEAR, entry.block_height)
    before = _change(reader, NEAR, entry.block_height - 1)
    if here is None or before is None or before >= here:
        return entry
    height = entry.block_height - 1
    return entry._replace(block_height=height, timestamp_ns=reader.time_ns(height))


def _change(reader: BalanceReader, asset: str, height: int) -> int | None:
    """Return the change of a balance in a block; None if it is unknown."""
    after, before = reader.balance(asset, height), reader.balance(asset, height - 1)
    return None if after is None or before is None else after - before
