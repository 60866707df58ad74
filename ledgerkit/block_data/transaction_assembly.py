"""Transactions assembled from the documents of the blocks in which their receipts ran."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ledgerkit.errors import DecodeError

if TYPE_CHECKING:
    from ledgerkit.api.models.block_documents import BlockDocument, ExecutedReceipt, Execution
    from ledgerkit.api.models.chain import ChunkTransaction
    from ledgerkit.api.models.other_kinds import OtherTransaction
    from ledgerkit.api.models.protocol_rules import Rules


@dataclass(slots=True)
class IncludedTransaction:
    """
    A transaction of a block, and the receipts that it led to, in the order they ran.

    `receipt_ids` lists all receipts that were created. `rules` were in force in all blocks in which
    receipts ran; None if they differ or are unknown.
    """

    block_height: int
    transaction: ChunkTransaction | OtherTransaction
    conversion: Execution
    receipts: list[ExecutedReceipt] = field(default_factory=list)
    receipt_ids: list[str] = field(default_factory=list)
    rules: Rules | None = None

    def has_finished(self) -> bool:
        """Return True if all receipts have run; documents are of final blocks."""
        return len(self.receipts) == len(self.receipt_ids)


class TransactionAssembly:
    """
    The transactions of several blocks, with the receipts that they led to.

    A receipt belongs to the transaction whose conversion, or whose receipt, created it. Receipts
    of transactions before the first block are ignored.
    """

    def __init__(self) -> None:
        self._by_height: dict[int, list[IncludedTransaction]] = {}
        self._by_receipt: dict[str, IncludedTransaction] = {}
        self._executed: set[str] = set()

    def add(self, document: BlockDocument, rules: Rules | None = None) -> None:
        """
        Add the transactions of a block, and the receipts that it executed.

        Heights ascend; some may be missing. `rules` are in force at the block. Raises `DecodeError`
        if the document contradicts itself or an earlier one; then the height is forgotten, and the
        transactions whose receipts it executed stay incomplete.
        """
        try:
            self._add(document, rules)
        except DecodeError:
            self.take(document.block.header.height)
            raise

    def _add(self, document: BlockDocument, rules: Rules | None) -> None:
        height = document.block.header.height
        transactions = self._by_height[height] = []
        for number, shard in enumerate(document.shards):
            path = f"$.shards[{number}].chunk.transactions"
            for index, item in enumerate(shard.chunk.converted() if shard.chunk else ()):
                execution = item.outcome.execution_outcome
                transactions.append(IncludedTransaction(height, item.transaction, execution))
                self._add_created(execution, transactions[-1], f"{path}[{index}].outcome")
        for number, shard in enumerate(document.shards):
            path = f"$.shards[{number}].receipt_execution_outcomes"
            for index, receipt in enumerate(shard.receipt_execution_outcomes):
                self._add_executed(receipt, rules, f"{path}[{index}]")

    def transactions(self, height: int) -> list[IncludedTransaction]:
        """Return the transactions of a block, in the order of its chunks."""
        return self._by_height[height]

    def is_complete(self, height: int) -> bool:
        """Return True if all receipts of the transactions of a block have run."""
        return all(included.has_finished() for included in self._by_height[height])

    def take(self, height: int) -> list[IncludedTransaction]:
        """Return the transactions of a block, and forget them."""
        transactions = self._by_height.pop(height)
        for included in transactions:
            self._executed.difference_update(included.receipt_ids)
            for receipt_id in included.receipt_ids:
                del self._by_receipt[receipt_id]
        return transactions

    def _add_created(self, execution: Execution, included: IncludedTransaction, path: str) -> None:
        for receipt_id in execution.outcome.receipt_ids:
            earlier = self._by_receipt.get(receipt_id)
            if earlier is not None:
                problem = f"receipt {receipt_id} was created before"
                if earlier.block_height != included.block_height:
                    problem += f", by {earlier.conversion.id} of block {earlier.block_height}"
                raise _contradiction(problem, path)
            self._by_receipt[receipt_id] = included
            included.receipt_ids.append(receipt_id)

    def _add_executed(self, receipt: ExecutedReceipt, rules: Rules | None, path: str) -> None:
        receipt_id = receipt.receipt.receipt_id
        included = self._by_receipt.get(receipt_id)
        if included is None:
            return
        if receipt.tx_hash not in (None, included.conversion.id):
            problem = f"receipt {receipt_id} was created by {included.conversion.id}"
            raise _contradiction(f"{problem}, and not by {receipt.tx_hash}", f"{path}.tx_hash")
        if receipt_id in self._executed:
            raise _contradiction(f"receipt {receipt_id} was executed before", path)
        self._executed.add(receipt_id)
        if not included.receipts:
            included.rules = rules
        elif included.rules != rules:
            included.rules = None
        included.receipts.append(receipt)
        self._add_created(receipt.execution_outcome, included, path)


def _contradiction(problem: str, path: str) -> DecodeError:
    return DecodeError(f"{problem}, at {path}", path=path)
