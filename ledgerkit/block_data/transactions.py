"""The transactions of a block in the form of the Transactions API, from the documents of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ledgerkit import json_decoding
from ledgerkit.api import matching
from ledgerkit.api.models.other_kinds import OtherTransaction
from ledgerkit.api.models.transactions import TransactionResponse, decode_indexed
from ledgerkit.block_data.headers import Skipped
from ledgerkit.block_data.reading import DocumentRead, read_documents, read_with_later
from ledgerkit.block_data.transaction_assembly import IncludedTransaction, TransactionAssembly
from ledgerkit.errors import LedgerError, UnknownBlockError

if TYPE_CHECKING:
    from ledgerkit.api.models.block_documents import BlockDocument
    from ledgerkit.ledger import Ledger

SOURCES = {"documents": "/v0/block", "indexer_rpc": "EXPERIMENTAL_indexer_block"}


def read_transactions(
    ledger: Ledger, height: int, block_hash: str | None, source: str
) -> tuple[list[TransactionResponse], list[OtherTransaction]]:
    """
    Read the transactions of a block, with this hash if it is known, in the order of its chunks.

    Blocks are read until all receipts have run, or up to the last final block: later receipts are
    then missing. The second list has the items without an outcome.
    """
    read = partial(read_documents, source=source, with_bodies=True)
    buffer = _Transactions(height, block_hash, SOURCES[source])
    return list(read_with_later(ledger, [height], buffer, read)), buffer.others


class _Transactions:
    """The transactions of one block, with the JSON of their executions as it was sent."""

    def __init__(self, height: int, block_hash: str | None, source: str) -> None:
        self._height, self._block_hash = height, block_hash
        self._source = source
        self._request = f"the document of block {height}"
        self._assembly = TransactionAssembly()
        self._sent: dict[str, dict[str, Any]] = {}  # by transaction hash or receipt id
        self.others: list[OtherTransaction] = []

    @property
    def is_waiting(self) -> bool:
        return not self._assembly.is_complete(self._height)

    def add(self, read: DocumentRead, *, is_later: bool = False) -> tuple[()]:
        """Add a block; the transactions are returned at the end."""
        value = read.value
        if isinstance(value, LedgerError):
            raise value
        if isinstance(value, Skipped):
            if not is_later:
                remedy = f"The height was skipped; the block before is {value.previous_height}."
                raise UnknownBlockError(block=self._height, remedy=remedy)
            return ()
        if not is_later and self._block_hash is not None:
            expected: matching.Expected = {"block.header.hash": self._block_hash}
            matching.check_members(value, expected, self._request)
        self._add(value, read.body)
        if not is_later:
            chunks = [shard.chunk for shard in value.shards if shard.chunk is not None]
            items = [item for chunk in chunks for item in chunk.transactions]
            self.others = [item for item in items if isinstance(item, OtherTransaction)]
        return ()

    def end(self) -> list[TransactionResponse]:
        """Return the transactions as far as their receipts have run."""
        return list(map(self._response, self._assembly.transactions(self._height)))

    def _add(self, document: BlockDocument, body: bytes) -> None:
        self._assembly.add(document)
        included = self._assembly.transactions(self._height)
        ids = {item.conversion.id for item in included}
        ids.update(receipt_id for item in included for receipt_id in item.receipt_ids)
        header = document.block.header
        block = {"block_height": header.height, "block_timestamp": header.time_ns}
        for sent in _sent_pairs(json_decoding.decode(body)):
            execution = sent["execution_outcome"]
            # A transaction may be included again in a later block (near/docs pull request 746).
            if execution["id"] in ids and execution["id"] not in self._sent:
                members = {name: execution.get(name) for name in ("id", "outcome", "block_hash")}
                self._sent[execution["id"]] = {**sent, "execution_outcome": {**members, **block}}

    def _response(self, included: IncludedTransaction) -> TransactionResponse:
        receipts = [self._sent[pair.receipt.receipt_id] for pair in included.receipts]
        document = self._sent[included.conversion.id]
        body = msgspec.json.encode({**document, "receipts": receipts, "data_receipts": []})
        return decode_indexed(body, request=self._request, source=self._source)


def _sent_pairs(document: Any) -> Iterator[dict[str, Any]]:
    for shard in document["shards"]:
        for item in (shard["chunk"] or {}).get("transactions", ()):
            if "outcome" in item:  # unsigned items have none
                execution = item["outcome"]["execution_outcome"]
                yield {"transaction": item["transaction"], "execution_outcome": execution}
        for pair in shard["receipt_execution_outcomes"]:
            yield {"receipt": pair["receipt"], "execution_outcome": pair["execution_outcome"]}
