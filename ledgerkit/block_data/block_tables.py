"""The tables of blocks: their own contents, and the trees of their transactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ledgerkit.block_data import executed_tables, tree_tables
from ledgerkit.block_data.tree_tables import trace_included
from ledgerkit.errors import DecodeError
from ledgerkit.frames import arrow_tables
from ledgerkit.frames import chain as chain_frames
from ledgerkit.frames.chain import transaction_columns
from ledgerkit.frames.collected import TRACED

if TYPE_CHECKING:
    from ledgerkit.api.models import chain
    from ledgerkit.api.models.block_documents import BlockDocument
    from ledgerkit.block_data.contents import DocumentContents

    Columns = dict[str, Any]


def block_tables(views: Sequence[str], contents: Sequence[DocumentContents]) -> dict[str, Any]:
    """Return a `pyarrow.Table` per view; raise `DecodeError` if a value does not fit its column."""
    documents = [item.document for item in contents]
    tables = {view: _TABLES[view](documents) for view in views if view in _TABLES}
    if not {"chunks", "transactions"}.isdisjoint(views):
        tables |= node_tables(views, [(doc.block, _new_chunks(doc)) for doc in documents])
    elif "blocks" in views:
        tables |= node_tables(views, [(doc.block, []) for doc in documents])
    if not {"outcomes", "actions"}.isdisjoint(views):
        executed = executed_tables.list_executed(documents)
        tables |= {view: _EXECUTED[view](executed) for view in views if view in _EXECUTED}
    traced = [view for view in views if view in TRACED]
    if traced:
        transactions = [included for item in contents for included in item.transactions]
        tables |= tree_tables.tree_tables(traced, list(map(trace_included, transactions)))
    return tables


def _new_chunks(document: BlockDocument) -> list[chain.Chunk]:
    """Return the new chunks of a document; raise if a chunk is missing."""
    chunks = document.chunks()
    hashes = {chunk.header.chunk_hash for chunk in chunks}
    for header in document.block.new_chunks():
        if header.chunk_hash not in hashes:
            sentence = f"block {document.block.header.height} has the new chunk {header.chunk_hash}"
            raise DecodeError(f"{sentence}, but no shard has it", path="$.shards")
    return chunks


def node_tables(
    views: Sequence[str], blocks: Sequence[tuple[chain.Block, Sequence[chain.Chunk]]]
) -> dict[str, Any]:
    columns: dict[str, Callable[[], Columns]] = {
        "blocks": lambda: chain_frames.block_columns([block for block, _ in blocks]),
        "chunks": lambda: chain_frames.chunk_columns(
            [row for block, chunks in blocks for row in chain_frames.chunk_rows(block, chunks)]
        ),
        "transactions": lambda: transaction_columns(
            [(block.header.height, chunk) for block, chunks in blocks for chunk in chunks]
        ),
    }
    return {
        view: arrow_tables.of_columns(view, columns[view]()) for view in views if view in columns
    }


def _balances(documents: Sequence[BlockDocument]) -> Any:
    """Build the table of the accounts that changed, as they are after each change."""
    shards = [(doc.block.header.height, shard) for doc in documents for shard in doc.shards]
    changes = [change for _, shard in shards for change in shard.state_changes]
    accounts = [change.account() for change in changes]
    causes = [change.cause for change in changes]
    tx_hashes = {
        pair.receipt.receipt_id: pair.tx_hash
        for _, shard in shards
        for pair in shard.receipt_execution_outcomes
    }
    columns = {
        "block_height": [height for height, shard in shards for _ in shard.state_changes],
        "shard_id": [shard.shard_id for _, shard in shards for _ in shard.state_changes],
        "account_id": [account.account_id for account in accounts],
        "type": [change.type for change in changes],
        "amount": [account.amount for account in accounts],
        "locked": [account.locked for account in accounts],
        "storage_usage": [account.storage_usage for account in accounts],
        "cause": [cause.type for cause in causes],
        "tx_hash": [cause.tx_hash or tx_hashes.get(cause.receipt_hash or "") for cause in causes],
        "receipt_id": [cause.receipt_hash for cause in causes],
    }
    return arrow_tables.of_columns("balances", columns)


def _data_receipts(documents: Sequence[BlockDocument]) -> Any:
    rows = [
        (document.block.header.height, shard.shard_id, receipt, receipt.receipt)
        for document in documents
        for shard in document.shards
        if shard.chunk is not None
        for receipt in shard.chunk.receipts
        if receipt.receipt.data is not None or receipt.receipt.other is not None
    ]
    data = [body.data for *_, body in rows]
    others = [body.other for *_, body in rows]
    columns = {
        "block_height": [height for height, *_ in rows],
        "shard_id": [shard_id for _, shard_id, *_ in rows],
        "receipt_id": [receipt.receipt_id for _, _, receipt, _ in rows],
        "data_id": [item and item.data_id for item in data],
        "predecessor_id": [receipt.predecessor_id for _, _, receipt, _ in rows],
        "receiver_id": [receipt.receiver_id for _, _, receipt, _ in rows],
        "data": [item and item.data for item in data],
        "is_promise_resume": [item and item.is_promise_resume for item in data],
        "kind": ["Data" if other is None else other.name for other in others],
        "content": [other and other.content for other in others],
    }
    return arrow_tables.of_columns("data_receipts", columns)


_TABLES: dict[str, Callable[[Sequence[BlockDocument]], Any]] = {
    "balances": _balances,
    "data_receipts": _data_receipts,
}
_EXECUTED: dict[str, Callable[[Sequence[executed_tables.Executed]], Any]] = {
    "outcomes": executed_tables.outcomes,
    "actions": executed_tables.actions,
}
