"""The transactions of a block in the form of the Transactions API, from the documents of blocks."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ledgerkit import json_decoding
from ledgerkit.api.models.transactions import decode_indexed
from ledgerkit.block_data.headers import Skipped
from ledgerkit.block_data.reading import look_ahead, read_documents
from ledgerkit.block_data.transaction_assembly import TransactionAssembly
from ledgerkit.errors import LedgerError, UnknownBlockError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.api.models.block_documents import BlockDocument
    from ledgerkit.api.models.transactions import TransactionResponse
    from ledgerkit.block_data.reading import DocumentRead
    from ledgerkit.block_data.transaction_assembly import IncludedTransaction
    from ledgerkit.ledger import Ledger

SOURCE = "/v0/block"


def read_transactions(
    ledger: Ledger, height: int
) -> tuple[BlockDocument, list[TransactionResponse]]:
    """
    Read the document of a block, and its transactions in the order of its chunks.

    Blocks are read until all receipts have run, or up to the last final one: later receipts are not
    part of the transactions then.
    """
    read = partial(read_documents, with_bodies=True)
    [first] = read(ledger, [height])
    document = _block(first)
    if isinstance(document, Skipped):
        remedy = f"The height was skipped; the block before is {document.previous_height}."
        raise UnknownBlockError(block=height, remedy=remedy)
    assembly = _Assembly(height)
    assembly.add(document, first.body)
    later = look_ahead(ledger, height + 1, lambda: assembly.is_waiting, read)
    with closing(later) as reads:
        for each in reads:
            block = _block(each)
            if not isinstance(block, Skipped):
                assembly.add(block, each.body)
    return document, assembly.responses()


def _block(read: DocumentRead) -> BlockDocument | Skipped:
    if isinstance(read.value, LedgerError):
        raise read.value
    return read.value


class _Assembly:
    """The transactions of one block, with the JSON of their executions as it was sent."""

    def __init__(self, height: int) -> None:
        self._height = height
        self._assembly = TransactionAssembly()
        self._sent: dict[str, dict[str, Any]] = {}  # by the hash or the id of what was executed

    @property
    def is_waiting(self) -> bool:
        return not self._assembly.is_complete(self._height)

    def add(self, document: BlockDocument, body: bytes) -> None:
        """Add a block."""
        self._assembly.add(document)
        included = self._assembly.transactions(self._height)
        ids = {each.transaction.hash for each in included}
        ids.update(receipt_id for each in included for receipt_id in each.receipt_ids)
        header = document.block.header
        place = {"block_height": header.height, "block_timestamp": header.time_ns}
        for sent in _sent_pairs(json_decoding.decode(body)):
            execution = sent["execution_outcome"]
            if execution["id"] in ids:
                known = {name: execution.get(name) for name in ("id", "outcome", "block_hash")}
                self._sent[execution["id"]] = {**sent, "execution_outcome": {**known, **place}}

    def responses(self) -> list[TransactionResponse]:
        """Return the transactions as far as their receipts have run."""
        return [self._response(each) for each in self._assembly.transactions(self._height)]

    def _response(self, included: IncludedTransaction) -> TransactionResponse:
        receipts = [self._sent[pair.receipt.receipt_id] for pair in included.receipts]
        document = self._sent[included.transaction.hash]
        body = msgspec.json.encode({**document, "receipts": receipts, "data_receipts": []})
        answer = decode_indexed(body, request=f"the document of block {self._height}")
        return answer._replace(source=SOURCE)


def _sent_pairs(document: Any) -> Iterator[dict[str, Any]]:
    """Yield the transactions and receipts of a document, each with its outcome."""
    for shard in document["shards"]:
        for item in (shard["chunk"] or {}).get("transactions", ()):
            execution = item["outcome"]["execution_outcome"]
            yield {"transaction": item["transaction"], "execution_outcome": execution}
        for pair in shard["receipt_execution_outcomes"]:
            yield {"receipt": pair["receipt"], "execution_outcome": pair["execution_outcome"]}
