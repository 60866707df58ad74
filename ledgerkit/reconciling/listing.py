"""The transactions, transfers and pools that services list, and the entries of bare transfers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.block_data.transaction_documents import stream_documents
from ledgerkit.errors import LedgerError, UnknownTransactionError
from ledgerkit.ledger import Ledger, locate_arguments
from ledgerkit.progress import Bar
from ledgerkit.reconciling import rewards
from ledgerkit.reconciling.balances import is_asset
from ledgerkit.reconciling.model import NEAR, STAKE, Entry
from ledgerkit.reconciling.plan import PART, Scope, block_before, first_height
from ledgerkit.reconciling.transfer_values import TransferValues
from ledgerkit.tracing.tree.frame_columns import SYSTEM
from ledgerkit.verbs.account_history import selected_transfers, transaction_rows

if TYPE_CHECKING:
    from ledgerkit.api.models.services import TransferRow
    from ledgerkit.api.models.transactions import TransactionResponse
    from ledgerkit.block_search.bisection import Point
    from ledgerkit.reconciling.reconcile import BalanceReader

_LATEST_ARRIVAL_NS = 10 * 10**9  # NEAR that left in the last block arrives in a later one


class ListedTx(NamedTuple):
    """A transaction in the order of the chain."""

    height: int
    position: int  # in the block
    tx_hash: str


class Listing:
    """The lists of the services, with the assets that they name, and the values of transfers."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._borders_ns: list[int] = []  # between parts of the transactions
        self.assets: dict[str, None] = {}  # in order
        self.values = TransferValues()
        self.notes: list[str] = []

    def transactions(self) -> list[ListedTx]:
        """List the transactions of the account in the order of the chain."""
        scope = self._scope
        first = 0 if scope.start is None else first_height(scope.start.height)
        with Bar(desc="transactions", disable=not scope.progress) as tracker:
            listed: dict[str, ListedTx] = {}  # by hash: two rows of a transaction would count twice
            for row in transaction_rows(scope.ledger, scope.account_id, first, scope.stop.height):
                tracker.update(1)
                if len(listed) % PART == PART - 1:
                    self._borders_ns.append(row.timestamp_ns)
                transaction = ListedTx(row.tx_block_height, row.tx_index or 0, row.transaction_hash)
                listed.setdefault(row.transaction_hash, transaction)
        return list(listed.values())

    def transfers_of_other_transactions(self, listed: list[ListedTx]) -> list[TransferRow]:
        """List transfers that no listed transaction has; read assets and values of all of them."""
        scope, network = self._scope, self._scope.ledger.network
        if network.transfers_url is None:
            self.notes.append(
                f"{network.name} has no Transfers API: what no transaction lists, "
                "such as tokens that a contract's owner creates, shows only as gaps"
            )
            return []
        listed_hashes = {transaction.tx_hash for transaction in listed}

        def is_unlisted(row: TransferRow) -> bool:
            self.assets[row.asset] = None
            if scope.has_values and scope.has_asset(row.asset):
                self.values.add(row)
            return row.transaction_id not in listed_hashes

        transfers = self._transfers(is_unlisted)
        self.notes += [
            f"the Transfers API lists {asset}, which is of an unknown kind"
            for asset in self.assets
            if not is_asset(asset)
        ]
        return transfers

    def transfers_of(self, hashes: set[str]) -> list[TransferRow]:
        """List the transfers of transactions whose documents are missing."""
        if not hashes or self._scope.ledger.network.transfers_url is None:
            return []
        return self._transfers(lambda row: row.transaction_id in hashes)

    def _transfers(self, where: Callable[[TransferRow], bool]) -> list[TransferRow]:
        """Read the transfers of the period, with those that may have left in its last block."""
        scope = self._scope
        first_ns = 0 if scope.start is None else scope.start.time_ns + 1
        last_ns = scope.stop.time_ns + _LATEST_ARRIVAL_NS + 1
        inner = [time_ns for time_ns in self._borders_ns if first_ns < time_ns < last_ns]
        borders_ns = sorted({first_ns, *inner, last_ns})
        rows = selected_transfers(
            scope.ledger, scope.account_id, borders_ns, where, progress=scope.progress
        )
        return [r for r in rows if r.height <= scope.stop.height + 1 and is_asset(r.asset)]

    def pools(self) -> list[str]:
        """List the pools among the requested assets, or else those that the indexer knows."""
        scope = self._scope
        if scope.assets is not None:
            return [a.removeprefix(STAKE) for a in scope.assets if a.startswith(STAKE)]
        pools = rewards.listed_pools(scope.ledger, scope.account_id)
        self.assets.update((STAKE + pool_id, None) for pool_id in pools)
        return pools


def find_start(ledger: Ledger, listed: list[ListedTx], transfers: list[TransferRow]) -> Point:
    """Return the block before the first listed change of the account."""
    heights = [*(tx.height for tx in listed[:1]), *(row.height - 1 for row in transfers[:1])]
    first = min(heights, default=0)
    if first:
        return block_before(ledger, first)
    return locate_arguments(ledger, {"start": "genesis"})["start"]


def add_unlisted(
    ledger: Ledger, listed: list[ListedTx], transfers: list[TransferRow], unfinished: Iterable[str]
) -> tuple[list[ListedTx], list[TransferRow]]:
    """Add unfinished transactions and those of transfers; return also transfers without one."""
    hashes = dict.fromkeys(row.transaction_id for row in transfers if row.transaction_id)
    listed_hashes = {transaction.tx_hash for transaction in listed}
    hashes.update(dict.fromkeys(h for h in unfinished if h not in listed_hashes))
    unlisted = {}
    for tx_hash, document in available_documents(ledger, hashes):
        outcome = document.result.transaction_outcome
        if outcome is not None and outcome.block_height is not None:
            unlisted[tx_hash] = ListedTx(outcome.block_height, 0, tx_hash)
    without_document = [row for row in transfers if row.transaction_id not in unlisted]
    return sorted([*listed, *unlisted.values()]), without_document


def available_documents(
    ledger: Ledger, hashes: Iterable[str]
) -> Iterator[tuple[str, TransactionResponse]]:
    """Yield the documents of transactions, leaving out transactions that the service lacks."""
    for batch in stream_documents(ledger, hashes):
        for tx_hash, document in batch:
            if isinstance(document, UnknownTransactionError):
                continue
            if isinstance(document, LedgerError):
                raise document
            yield tx_hash, document


# Transfers without a transaction ------------------------------------------------------------


def indexed_entry(row: TransferRow) -> Entry | None:
    """Build the entry of a row; None if the service cut its amount off at 128 signed bits."""
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


def locate_by_balances(entries: list[Entry], reader: BalanceReader) -> Iterator[Entry]:
    """
    Yield entries in the blocks in which balances changed; proved if the balances agree.

    The service lists NEAR in the block in which it arrived. It left the sender when the receipt was
    created, mostly in the block before.
    """
    # Source: fastnear/transfers-indexer, and a test of petersalomonsen/near-accounting-export with
    # the deposit of 1,000 NEAR in block 161,048,664.
    reader.read(
        (entry.asset, height)
        for entry in entries
        for height in range(entry.block_height - 2, entry.block_height + 1)
    )
    located = [_move_to_departure(entry, reader) for entry in entries]
    sums: Counter[tuple[str, int]] = Counter()
    for entry in located:
        sums[entry.asset, entry.block_height] += entry.change
    for entry in located:
        change = _change(reader, entry.asset, entry.block_height)
        is_proved = change == sums[entry.asset, entry.block_height]
        yield entry._replace(evidence="proved") if is_proved else entry


def _move_to_departure(entry: Entry, reader: BalanceReader) -> Entry:
    """Return the entry, one block earlier if NEAR left the account there."""
    if entry.asset != NEAR or entry.change > 0:
        return entry
    arrival = _change(reader, NEAR, entry.block_height)
    departure = _change(reader, NEAR, entry.block_height - 1)
    if arrival is None or departure is None or departure >= arrival:
        return entry
    height = entry.block_height - 1
    return entry._replace(block_height=height, timestamp_ns=reader.time_ns(height))


def _change(reader: BalanceReader, asset: str, height: int) -> int | None:
    after, before = reader.balance(asset, height), reader.balance(asset, height - 1)
    return None if after is None or before is None else after - before
