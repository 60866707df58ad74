"""Transactions that a block includes, with all receipts that they led to in whichever block."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ledgerkit.api.models.block_documents import BlockDocument, ExecutedReceipt, Execution
    from ledgerkit.api.models.chain import ChunkTransaction
    from ledgerkit.api.models.protocol_rules import Rules
    from ledgerkit.errors import TransactionTimeoutError


@dataclass(slots=True)
class IncludedTransaction:
    """
    A transaction of a block, and the receipts that it led to, in the order they ran.

    `rules` are those of all blocks in which receipts ran; None if they differ or are unknown.
    """

    block_height: int  # of the block that includes it
    transaction: ChunkTransaction
    conversion: Execution
    receipts: list[ExecutedReceipt] = field(default_factory=list)
    rules: Rules | None = None


class DocumentContents(NamedTuple):
    """
    What was read for one height.

    `waiting` is set if receipts of its transactions have not run yet: those known so far are in
    `transactions`, which is empty if no table needs it.
    """

    document: BlockDocument
    transactions: list[IncludedTransaction]
    size: int  # bytes of the document
    waiting: TransactionTimeoutError | None = None
