"""The transactions of a block with all that they led to, from the documents of blocks."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from ledgerkit import json_decoding
from ledgerkit.api.models.transactions import decode_indexed
from ledgerkit.block_data.reading import Skipped, read_documents
from ledgerkit.errors import LedgerError, UnknownBlockError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.api.models.block_documents import BlockDocument
    from ledgerkit.api.models.transactions import TransactionResponse
    from ledgerkit.block_data.reading import DocumentRead
    from ledgerkit.ledger import Ledger

SOURCE = "/v0/block"
_FIRST_LOOK = 4  # heights; most receipts run within three blocks
# Heights in which the receipts of a block may run: a yielded one is resumed after 200 blocks at
# most, and congestion delays receipts further. Source: nearcore,
# core/parameters/res/runtime_configs/parameters.yaml, yield_timeout_length_in_blocks.
_MAX_LOOK = 640


class _Execution(Struct):
    """An outcome as it was sent."""

    id: str
    outcome: Raw
    block_hash: str | None = None


class _Conversion(Struct):
    """The outcome of a transaction itself."""

    execution_outcome: _Execution


class _Included(Struct):
    """A transaction of a chunk."""

    transaction: Raw
    outcome: _Conversion


class _Chunk(Struct):
    """The transactions of a chunk."""

    transactions: list[_Included]


class _Executed(Struct):
    """A receipt that ran."""

    execution_outcome: _Execution
    receipt: Raw


class _Shard(Struct):
    """The executions of one shard."""

    receipt_execution_outcomes: list[_Executed]
    chunk: _Chunk | None = None


class _Document(Struct):
    """The parts of a document that documents of transactions have too, as they were sent."""

    shards: list[_Shard]


class _Created(Struct):
    """The receipts that an outcome created."""

    receipt_ids: list[str] | None = None


@dataclass(slots=True)
class _Assembled:
    """The parts of the document of a transaction."""

    transaction: Raw
    conversion: dict[str, Any]
    receipts: list[dict[str, Any]] = field(default_factory=list)


class _Assembly:
    """
    The transactions of one block, with their receipts as blocks execute them.

    A receipt belongs to the transaction whose outcome, or whose receipt, created it.
    """

    def __init__(self) -> None:
        self.transactions: list[_Assembled] = []
        self.pending: dict[str, _Assembled] = {}  # by the id of a receipt that has not run yet

    def add(self, body: bytes, document: BlockDocument, *, is_first: bool) -> None:
        """Add a block: of the first one its transactions, of each the receipts that it ran."""
        head = document.block.header
        place = {"block_height": head.height, "block_timestamp": head.time_ns}
        shards = json_decoding.decode(body, _Document).shards
        for shard in shards if is_first else ():
            for item in shard.chunk.transactions if shard.chunk else ():
                execution = item.outcome.execution_outcome
                assembled = _Assembled(item.transaction, _with_place(execution, place))
                self.transactions.append(assembled)
                self._expect(execution, assembled)
        for shard in shards:
            for receipt in shard.receipt_execution_outcomes:
                execution = receipt.execution_outcome
                creator = self.pending.pop(execution.id, None)
                if creator is not None:
                    outcome = _with_place(execution, place)
                    creator.receipts.append(
                        {"receipt": receipt.receipt, "execution_outcome": outcome}
                    )
                    self._expect(execution, creator)

    def _expect(self, execution: _Execution, assembled: _Assembled) -> None:
        """Wait for the receipts that an outcome created."""
        created = json_decoding.decode(execution.outcome, _Created).receipt_ids
        self.pending |= dict.fromkeys(created or (), assembled)


def _with_place(execution: _Execution, place: dict[str, Any]) -> dict[str, Any]:
    """Return an outcome with the height and time of its block."""
    return {**msgspec.structs.asdict(execution), **place}


def read_transactions(
    ledger: Ledger, height: int
) -> tuple[BlockDocument, list[TransactionResponse]]:
    """
    Read the document of a block, and its transactions in the order of its chunks.

    Each is in the form of the Transactions API. Blocks are read until all receipts have run, or up
    to the last final one: later receipts are not part of the transactions then.
    """
    assembly = _Assembly()
    first: BlockDocument | None = None
    for read in _following(ledger, height):
        value = read.value
        if isinstance(value, UnknownBlockError) and first is not None:
            break
        if isinstance(value, LedgerError):
            raise value
        if isinstance(value, Skipped):
            if first is None:
                remedy = f"The height was skipped; the block before is {value.previous_height}."
                raise UnknownBlockError(block=height, remedy=remedy)
            continue
        assembly.add(read.body, value, is_first=first is None)
        first = first or value
        if not assembly.pending:
            break
    if first is None:
        raise UnknownBlockError(block=height)
    request = f"the document of block {height}"
    return first, [_decode(assembled, request) for assembled in assembly.transactions]


def _following(ledger: Ledger, height: int) -> Iterator[DocumentRead]:
    """Read the documents from a height on, more at a time the further they go."""
    start, size = height, _FIRST_LOOK
    while start < height + _MAX_LOOK:
        heights = range(start, start + size)
        start, size = heights.stop, 2 * size
        with closing(read_documents(ledger, heights, with_bodies=True)) as reads:
            yield from reads


def _decode(assembled: _Assembled, request: str) -> TransactionResponse:
    """Decode a transaction in the form of the Transactions API."""
    document = {
        "transaction": assembled.transaction,
        "execution_outcome": assembled.conversion,
        "receipts": assembled.receipts,
        "data_receipts": [],
    }
    answer = decode_indexed(msgspec.json.encode(document), request=request)
    return answer._replace(source=SOURCE)
