"""A panel about one block: its header, chunks and transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit import units
from ledgerkit.verbs import blocks
from ledgerkit.widgets import _html
from ledgerkit.widgets._blocks import Content, Page
from ledgerkit.widgets._fields import Field
from ledgerkit.widgets._panel import Panel
from ledgerkit.widgets._table import Table
from ledgerkit.widgets.contracts import block_reference

if TYPE_CHECKING:
    from ledgerkit.ledger import Ledger


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

    def __init__(self, at: str = "", *, ledger: Ledger | None = None) -> None:
        super().__init__({"at": Field("Block", at, "height, hash, final or a time")}, ledger)

    def _read(self, values: dict[str, Any], ledger: Ledger) -> Content:
        block = blocks.block(block_reference(values["at"]) or "final", ledger=ledger)
        row = _html.records(block)[0]
        chunks = blocks.chunks(row["block_hash"], ledger=ledger)
        transactions = blocks.transactions(row["block_hash"], ledger=ledger)
        pages = (
            Page("Block", _html.record(block)),
            Page("Transactions", Table(transactions, name="transactions")),
            Page("Chunks", Table(chunks, name="chunks")),
        )
        count = units.count_text(len(transactions), "transaction")
        sentence = f"Block {row['block_height']} on {ledger.network.name}: {count}."
        frames = {"block": block, "transactions": transactions, "chunks": chunks}
        return Content(sentence, block, pages, frames)
