"""The tables of block documents: what one block has, and the trees of its transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.api.models.block_documents import UPDATE, ChangedAccount
from ledgerkit.block_data import arrow_columns, executed_tables, tree_tables
from ledgerkit.errors import DecodeError
from ledgerkit.frames import arrow_tables
from ledgerkit.frames import chain as chain_frames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ledgerkit.api.models import chain
    from ledgerkit.api.models.block_documents import (
        BlockDocument,
        Chunk,
        ChunkReceipt,
        DataReceipt,
        StateChange,
    )
    from ledgerkit.block_data.contents import DocumentContents

_DELETED = ChangedAccount("", "0", "0", 0)


def block_tables(views: Sequence[str], contents: Sequence[DocumentContents]) -> dict[str, Any]:
    """Return a `pyarrow.Table` for each view; raise `DecodeError` if a value fits no column."""
    documents = [item.document for item in contents]
    traced = [view for view in views if view in tree_tables.VIEWS]
    tables = {view: _TABLES[view](documents) for view in views if view in _TABLES}
    if not _EXECUTED.keys().isdisjoint(views):
        executed = executed_tables.Executed.of(documents)
        tables |= {view: _EXECUTED[view](executed) for view in views if view in _EXECUTED}
    if traced:
        transactions = [transaction for item in contents for transaction in item.transactions]
        tables |= tree_tables.tree_tables(traced, transactions)
    return tables


def _blocks(documents: Sequence[BlockDocument]) -> Any:
    """Build the table of blocks."""
    return arrow_tables.table_of_columns(
        "blocks", chain_frames.block_columns([document.block for document in documents])
    )


def _chunks(documents: Sequence[BlockDocument]) -> Any:
    """Build the table of chunks: new ones in full, older ones from their headers."""
    rows = [
        (document.block.header.height, header, chunk.as_node_sends() if chunk else None)
        for document in documents
        for header, chunk in _listed_chunks(document)
    ]
    return arrow_tables.table_of_columns("chunks", chain_frames.chunk_columns(rows))


def _transactions(documents: Sequence[BlockDocument]) -> Any:
    """Build the table of transactions."""
    rows = [
        (document.block.header.height, chunk.as_node_sends())
        for document in documents
        for _, chunk in _listed_chunks(document)
        if chunk is not None
    ]
    return arrow_tables.table_of_columns("transactions", chain_frames.transaction_columns(rows))


def _listed_chunks(document: BlockDocument) -> Iterator[tuple[chain.ChunkHeader, Chunk | None]]:
    """List the chunks of a block in its order: new ones in full, older ones as headers."""
    new = {shard.chunk.header.chunk_hash: shard.chunk for shard in document.shards if shard.chunk}
    if document.block.chunks is None:  # in documents of before shards had heights
        yield from ((chunk.header, chunk) for chunk in new.values())
        return
    height = document.block.header.height
    for header in document.block.chunks:
        chunk = new.get(header.chunk_hash)
        if chunk is None and header.height_included == height:
            path = "$.shards"
            sentence = f"block {height} has the new chunk {header.chunk_hash}, but no shard has it"
            raise DecodeError(sentence, path=path)
        yield header, chunk


def _balances(documents: Sequence[BlockDocument]) -> Any:
    """Build the table of balances: the accounts that changed, after each change."""
    changes: list[StateChange] = []
    heights: list[int] = []
    shard_ids: list[int] = []
    for document in documents:
        for shard in document.shards:
            changes += shard.state_changes
            heights += [document.block.header.height] * len(shard.state_changes)
            shard_ids += [shard.shard_id] * len(shard.state_changes)
    causes = [change.cause for change in changes]
    tx_hashes = _transaction_by_receipt(documents)
    accounts = [c.change if c.type == UPDATE else _DELETED for c in changes]
    integers, texts = arrow_columns.integers, arrow_columns.texts
    amounts_of_near = arrow_columns.amounts_of_near
    columns = {
        "block_height": integers(heights, "block_height"),
        "shard_id": integers(shard_ids, "shard_id"),
        "account_id": texts([change.change.account_id for change in changes]),
        "type": texts([change.type for change in changes]),
        "amount": amounts_of_near([account.amount for account in accounts], "amount"),
        "locked": amounts_of_near([account.locked for account in accounts], "locked"),
        "storage_usage": integers([a.storage_usage for a in accounts], "storage_usage"),
        "cause": texts([cause.type for cause in causes]),
        "tx_hash": texts([cause.tx_hash or tx_hashes.get(cause.receipt_hash) for cause in causes]),
        "receipt_id": texts([cause.receipt_hash for cause in causes]),
    }
    for name in ("amount", "locked", "storage_usage"):
        if columns[name].null_count:
            account_id = changes[columns[name].is_null().index(True).as_py()].change.account_id
            sentence = f"an {UPDATE} of {account_id} lacks a balance: {name}"
            raise DecodeError(sentence, path=f"$.shards[].state_changes[].change.{name}")
    return arrow_columns.table("collected_balances", columns)


def _transaction_by_receipt(documents: Sequence[BlockDocument]) -> dict[str | None, str | None]:
    """Map the executed receipts to their transactions, as far as the documents name them."""
    return {
        pair.receipt.receipt_id: pair.tx_hash
        for document in documents
        for shard in document.shards
        for pair in shard.receipt_execution_outcomes
    }


def _data_receipts(documents: Sequence[BlockDocument]) -> Any:
    """Build the table of data receipts that chunks list."""
    rows: list[tuple[int, int, ChunkReceipt, DataReceipt]] = [
        (document.block.header.height, shard.shard_id, receipt, data)
        for document in documents
        for shard in document.shards
        if shard.chunk is not None
        for receipt in shard.chunk.receipts
        if (data := receipt.receipt.data) is not None
    ]
    return arrow_columns.table(
        "collected_data_receipts",
        {
            "block_height": arrow_columns.integers([row[0] for row in rows], "height"),
            "shard_id": arrow_columns.integers([row[1] for row in rows], "shard_id"),
            "receipt_id": arrow_columns.texts([receipt.receipt_id for _, _, receipt, _ in rows]),
            "data_id": arrow_columns.texts([data.data_id for *_, data in rows]),
            "predecessor_id": arrow_columns.texts([row[2].predecessor_id for row in rows]),
            "receiver_id": arrow_columns.texts([row[2].receiver_id for row in rows]),
            "data": arrow_columns.texts([data.data for *_, data in rows]),
            "is_promise_resume": arrow_columns.booleans(
                [data.is_promise_resume for *_, data in rows]
            ),
        },
    )


_TABLES: dict[str, Callable[[Sequence[BlockDocument]], Any]] = {
    "blocks": _blocks,
    "chunks": _chunks,
    "transactions": _transactions,
    "balances": _balances,
    "data_receipts": _data_receipts,
}
_EXECUTED: dict[str, Callable[[executed_tables.Executed], Any]] = {
    "outcomes": executed_tables.outcomes,
    "actions": executed_tables.actions,
}
