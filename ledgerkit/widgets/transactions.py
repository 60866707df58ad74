"""Panels about a transaction, with its receipts and balance changes, and about a block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ledgerkit import units
from ledgerkit.verbs import blocks, transactions
from ledgerkit.widgets import _html
from ledgerkit.widgets._blocks import Content, Page
from ledgerkit.widgets._panel import Field, Panel
from ledgerkit.widgets._table import Table
from ledgerkit.widgets._trace_view import VERDICTS, TraceView
from ledgerkit.widgets.contracts import block_reference

if TYPE_CHECKING:
    from ledgerkit.ledger import Ledger


class TransactionExplorer(Panel):
    """
    The verdict, receipt tree, timeline and balance changes of a transaction.

    Parameters
    ----------
    tx_hash, signer_id
        The initial values of the fields: the hash, and the account that signed.
    ledger
        The ledger to use; None is the session's default at the time of the request.
    """

    title = "Transaction"
    action = "Trace"
    tooltip = "Look up the receipts of this transaction"
    links: ClassVar = {"transaction": "tx_hash", "receipt": "tx_hash"}

    def __init__(
        self, tx_hash: str = "", signer_id: str = "", *, ledger: Ledger | None = None
    ) -> None:
        fields = {
            "tx_hash": Field("Transaction", tx_hash, "hash of a transaction, or receipt id"),
            "signer_id": Field("Signer", signer_id, "optional: looked up if empty"),
        }
        super().__init__(fields, ledger)

    def _read(self, values: dict[str, Any], ledger: Ledger) -> Content:
        tx_hash, signer_id = values["tx_hash"], values["signer_id"]
        if signer_id:
            trace = transactions.trace(tx_hash, signer_id, ledger=ledger)
        else:
            trace = transactions.find_trace(tx_hash, ledger)
        receipts = trace.receipts
        receipt_id = None if trace.tx_hash == tx_hash else tx_hash
        pages = (
            Page("Trace", TraceView(trace, receipt_id)),
            Page("Receipts", Table(receipts, name="receipts", slim=True)),
        )
        count = units.count_text(len(receipts), "receipt")
        verdict = VERDICTS[trace.verdict][1].capitalize()
        sentence = f"{verdict} on {ledger.network.name}: {count}."
        frames = {"receipts": receipts, "edges": trace.edges}
        return Content(sentence, receipts, pages, frames, trace)


class BlockExplorer(Panel):
    """
    The header, chunks and transactions of a block.

    Parameters
    ----------
    at
        A height, block hash, finality or time; empty is ``final``.
    ledger
        The ledger to use; None is the session's default at the time of the request.
    """

    title = "Block"
    tooltip = "Look up this block"
    links: ClassVar = {"block": "at"}

    def __init__(self, at: str = "", *, ledger: Ledger | None = None) -> None:
        super().__init__({"at": Field("Block", at, "height, hash, final or a time")}, ledger)

    def _read(self, values: dict[str, Any], ledger: Ledger) -> Content:
        block = blocks.block(block_reference(values["at"]) or "final", ledger=ledger)
        row = block.iloc[0]
        chunks = blocks.chunks(row["block_hash"], ledger=ledger)
        transactions = blocks.transactions(row["block_hash"], ledger=ledger)
        pages = (
            Page("Block", _html.facts_table(block)),
            Page("Transactions", Table(transactions, name="transactions")),
            Page("Chunks", Table(chunks, name="chunks")),
        )
        count = units.count_text(len(transactions), "transaction")
        sentence = f"Block {row['block_height']} on {ledger.network.name}: {count}."
        frames = {"block": block, "transactions": transactions, "chunks": chunks}
        return Content(sentence, block, pages, frames)
