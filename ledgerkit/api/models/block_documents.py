"""
Whole blocks, as the block service and the indexer's stream (NEAR Lake) send them.

A document has a block and its shards. NEAR Lake stores it as one file of the block and one of each
shard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Raw, Struct

from ledgerkit import json_decoding
from ledgerkit.api.models import chain
from ledgerkit.api.models.transactions import (
    DecodedList,
    Receipt,
    TxResult,
    WholeOutcome,
    decode_member,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

Digits = Annotated[str, Meta(pattern="^[0-9]{1,39}$")]  # of a u128


class Block(Struct, gc=False):
    """A block; some services leave out the headers of its chunks."""

    author: str
    header: chain.BlockHeader
    chunks: list[chain.ChunkHeader] | None = None


class Execution(Struct, gc=False):
    """An outcome and its place; height, time and shard are those of the document."""

    id: str
    outcome: WholeOutcome
    block_hash: str | None = None
    block_height: chain.UInt63 | None = None
    block_timestamp: chain.UInt63 | None = None
    shard_id: chain.UInt63 | None = None


class Conversion(Struct, gc=False):
    """The outcome of a transaction itself: its conversion into the first receipt."""

    execution_outcome: Execution


class ExecutedReceipt(Struct, gc=False):
    """A receipt that a block executed, with its outcome; old documents lack its transaction."""

    execution_outcome: Execution
    receipt: Receipt
    tx_hash: str | None = None


class ConvertedTransaction(Struct, gc=False):
    """A transaction of a chunk, with its outcome."""

    transaction: chain.ChunkTransaction
    outcome: Conversion


class _ReceiptId(Struct, gc=False):
    """A receipt of which only the id is read."""

    receipt_id: str


_RECEIPT_ID = json_decoding.decoder(_ReceiptId)


class Chunk(Struct, gc=False):
    """A chunk with the outcomes of its transactions."""

    author: str
    header: chain.ChunkHeader
    transactions: list[ConvertedTransaction]
    receipts: list[Raw] = []
    local_receipts: list[Raw] | None = None

    def local_ids(self) -> set[str]:
        """Return the ids of its local receipts, which ran with their transactions."""
        return {
            receipt_id
            for item in self.transactions
            if item.transaction.signer_id == item.transaction.receiver_id
            for receipt_id in item.outcome.execution_outcome.outcome.receipt_ids or ()
        }

    def as_node_sends(self) -> chain.Chunk:
        """Return the chunk in the form of a node, which has no outcomes and no local receipts."""
        receipts = self.receipts
        if self.local_receipts is None:
            # Before there was a member for local receipts, they came first among all receipts
            # (nearcore, chain/indexer/src/streamer, build_streamer_message).
            local = self.local_ids()
            ids = [
                decode_member(raw, f"$.chunk.receipts[{at}]", _RECEIPT_ID).receipt_id
                for at, raw in enumerate(receipts)
            ]
            receipts = [raw for raw, i in zip(receipts, ids, strict=True) if i not in local]
        transactions = [item.transaction for item in self.transactions]
        return chain.Chunk(self.author, self.header, transactions, receipts)


class ChangeCause(Struct, gc=False):
    """The cause of a change of the state: its kind, and the transaction or receipt, if any."""

    type: str
    tx_hash: str | None = None
    receipt_hash: str | None = None


class ChangedAccount(Struct, gc=False):
    """The account of a change, with its new balances if they changed and it was not deleted."""

    account_id: str
    amount: Digits | None = None
    locked: Digits | None = None
    storage_usage: int | None = None


class StateChange(Struct, gc=False):
    """One change of the state."""

    type: str
    cause: ChangeCause
    change: ChangedAccount


_CHANGE = json_decoding.decoder(StateChange)


class Shard(Struct, gc=False):
    """
    One shard of a block: its chunk, and the receipts that ran on it with their outcomes.

    The chunk is null if the block has no new one of this shard.
    """

    shard_id: chain.UInt63
    receipt_execution_outcomes: list[ExecutedReceipt]
    chunk: Chunk | None = None
    state_changes: list[Raw] = []

    @property
    def block_height(self) -> int | None:
        """The height of the block, if its chunk states it: new chunks only are listed."""
        return (self.chunk.header.height_included or None) if self.chunk else None

    def changes(self, path: str) -> Iterator[StateChange]:
        """Iterate over the changes of state; `path` is the place of their list in the document."""
        for at, raw in enumerate(self.state_changes):
            yield decode_member(raw, f"{path}[{at}]", _CHANGE)

    def result(self, path: str) -> TxResult:
        """Return the executed receipts; `path` is the place of their list in the document."""
        pairs = self.receipt_execution_outcomes
        executions = [pair.execution_outcome for pair in pairs]
        return TxResult(
            None,
            None,
            None,
            None,
            DecodedList(executions, path),
            DecodedList(executions, path),
            DecodedList([pair.receipt for pair in pairs], path),
        )


class BlockDocument(Struct, gc=False):
    """A whole block."""

    block: Block
    shards: list[Shard]
