"""
Whole blocks, as the block service and the indexer's stream (NEAR Lake) send them.

A document has a block and its shards. NEAR Lake stores the block and each shard as a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import msgspec
from msgspec import Struct, field

from ledgerkit import json_decoding
from ledgerkit.api.models import chain, commitments
from ledgerkit.api.models.actions import Action  # noqa: TC001 - decoders read the annotations
from ledgerkit.api.models.other_kinds import (
    CHANGES,
    OTHER,
    OtherKind,
    OtherTransaction,
    decode_with_other_kinds,
)
from ledgerkit.api.models.transactions import (
    ActionReceipt,
    DataReceiver,
    DecodedList,
    ExecutionOutcome,
    Receipt,
    ReceiptBody,
    Transaction,
    TxResult,
    WholeOutcome,
    decode_error,
)
from ledgerkit.errors import DecodeError, not_as_documented


class Execution(ExecutionOutcome, gc=False):
    """An outcome and its block; height, time and shard are the document's."""

    outcome: WholeOutcome


class Conversion(Struct, gc=False):
    """The outcome of a transaction itself: its conversion into the first receipt."""

    execution_outcome: Execution


class WholeActionReceipt(ActionReceipt, gc=False):
    """The complete body of an action receipt in a block document."""

    signer_id: str
    actions: list[Action | str]
    input_data_ids: list[str]
    output_data_receivers: list[DataReceiver]


class WholeReceiptBody(ReceiptBody, gc=False, rename="pascal", forbid_unknown_fields=True):
    """The content of a receipt in a block document."""

    action: WholeActionReceipt | None = None


class WholeReceipt(Receipt, gc=False):
    """A complete receipt in a block document."""

    # Source: nearcore, core/primitives/src/views.rs, ReceiptView and ReceiptEnumView.
    predecessor_id: str
    receiver_id: str
    receipt: WholeReceiptBody


class ExecutedReceipt(Struct, gc=False):
    """A receipt that a block executed, with its outcome; old documents lack its transaction."""

    execution_outcome: Execution
    receipt: WholeReceipt
    tx_hash: str | None = None


class ConvertedTransaction(Struct, gc=False):
    """A transaction of a chunk, with its outcome."""

    transaction: chain.ChunkTransaction | OtherTransaction
    outcome: Conversion

    def __post_init__(self) -> None:
        """Fill in a missing hash from the outcome."""
        if self.transaction.hash is None:
            self.transaction = self.transaction._replace(hash=self.outcome.execution_outcome.id)


class DataReceipt(Struct, gc=False):
    """The result of a receipt, for a receipt that waits for it; `data` is base64."""

    data_id: str
    data: str | None = None
    is_promise_resume: bool | None = None  # missing before promises could yield


class ChunkReceiptBody(Struct, gc=False, rename="pascal", forbid_unknown_fields=True):
    """The content of a receipt in a chunk; only data and other kinds are read."""

    data: DataReceipt | None = None
    action: chain.AnyReceipt | None = None
    global_contract_distribution: chain.AnyReceipt | None = None
    other: OtherKind | None = field(name=OTHER, default=None)


class ChunkReceipt(chain.AnyReceipt, gc=False):
    """A receipt that a chunk lists."""

    receipt_id: str
    predecessor_id: str
    receiver_id: str
    receipt: ChunkReceiptBody


class Chunk(Struct, gc=False):
    """A chunk with the outcomes of its transactions."""

    author: str
    header: chain.ChunkHeader
    transactions: list[ConvertedTransaction | OtherTransaction]
    receipts: list[ChunkReceipt]
    local_receipts: list[chain.AnyReceipt] | None = None

    def converted(self) -> list[ConvertedTransaction]:
        """List the transactions with an outcome, which are the signed ones."""
        return [item for item in self.transactions if isinstance(item, ConvertedTransaction)]

    def local_ids(self) -> set[str]:
        """Return the ids of its local receipts, which ran with their transactions."""
        return {
            receipt_id
            for item in self.converted()
            if item.transaction.signer_id == item.transaction.receiver_id is not None
            for receipt_id in item.outcome.execution_outcome.outcome.receipt_ids or ()
        }

    def sent_receipts(self) -> list[ChunkReceipt]:
        """List the receipts as a node does, without local receipts."""
        # Before there was a member for local receipts, they came first in `receipts` (nearcore,
        # chain/indexer/src/streamer, build_streamer_message).
        local = self.local_ids() if self.local_receipts is None else ()
        return [receipt for receipt in self.receipts if receipt.receipt_id not in local]

    def as_node_sends(self) -> chain.Chunk:
        """Return the chunk in the form of a node, which has no outcomes and no local receipts."""
        transactions = [
            item.transaction if isinstance(item, ConvertedTransaction) else item
            for item in self.transactions
        ]
        return chain.Chunk(self.author, self.header, transactions, self.sent_receipts())


_UPDATE, _DELETION = ACCOUNT_CHANGES = "account_update", "account_deletion"


class ChangeCause(Struct, gc=False):
    """The cause of a change of the state: its kind, and the transaction or receipt, if any."""

    type: str
    tx_hash: str | None = None
    receipt_hash: str | None = None


class ChangedAccount(Struct, gc=False):
    """The account of a change, with its new balances; 0 after its deletion."""

    account_id: str | None = None
    amount: str | None = None
    locked: str | None = None
    storage_usage: int | None = None


class StateChange(Struct, gc=False):
    """A change of the state."""

    type: str
    cause: ChangeCause
    change: ChangedAccount

    def account(self) -> ChangedAccount:
        """
        Return the account with its new balances; raise `DecodeError` if a balance is missing.

        The balances are unknown after a change of an undeclared kind.
        """
        account = self.change
        if self.type not in ACCOUNT_CHANGES:
            return ChangedAccount(account.account_id)
        if self.type == _DELETION:
            return ChangedAccount(account.account_id, "0", "0", 0)
        members = [account.account_id, account.amount, account.locked, account.storage_usage]
        if None in members:
            name = ChangedAccount.__struct_fields__[members.index(None)]
            path = f"$.shards[].state_changes[].change.{name}"
            sentence = f"an {self.type} of {account.account_id} lacks a member at {path}"
            raise DecodeError(sentence, path=path)
        return account


class Shard(Struct, gc=False):
    """
    A shard of a block: its chunk, and the receipts that ran on it with their outcomes.

    The chunk is null if the block has no new chunk of this shard. The changes of state are those of
    accounts and of undeclared kinds.
    """

    # Source: nearcore, chain/indexer-primitives/src/lib.rs, IndexerShard.
    shard_id: chain.UInt63
    receipt_execution_outcomes: list[ExecutedReceipt]
    chunk: Chunk | None
    state_changes: list[StateChange]

    def __post_init__(self) -> None:
        """Drop the other changes of state, which are the most."""
        self.state_changes = [
            c for c in self.state_changes if c.type in ACCOUNT_CHANGES or c.type not in CHANGES
        ]

    @property
    def block_height(self) -> int | None:
        """The height of the block, which a new chunk states; None without a chunk."""
        return (self.chunk.header.height_included or None) if self.chunk else None

    def executions(self) -> list[Execution]:
        """List the outcomes in the order of the shard's root: transactions first."""
        converted = [] if self.chunk is None else self.chunk.converted()
        return [
            *(item.outcome.execution_outcome for item in converted),
            *(pair.execution_outcome for pair in self.receipt_execution_outcomes),
        ]


def result_of(
    pairs: Sequence[ExecutedReceipt],
    path: str,
    transaction: Transaction | None = None,
    conversion: Execution | None = None,
) -> TxResult:
    """Return executed receipts as a result; `path` is the path of their list in the document."""
    outcomes = DecodedList([pair.execution_outcome for pair in pairs], path)
    bodies = DecodedList([pair.receipt for pair in pairs], path)
    return TxResult(None, None, transaction, conversion, outcomes, bodies)


class BlockDocument(Struct, gc=False):
    """A whole block."""

    block: chain.Block
    shards: list[Shard]
    tracked_shards: list[chain.UInt63] | None = None  # sent by nodes; services have all shards

    def missing_shards(self) -> list[int]:
        """List the shards of the block whose executions a node's document lacks."""
        sent = {shard.shard_id for shard in self.shards}.intersection(self.tracked_shards or ())
        return [head.shard_id for head in self.chunk_headers() if head.shard_id not in sent]

    def chunks(self) -> list[chain.Chunk]:
        """List the new chunks in the block's order, as a node sends them."""
        new = {s.chunk.header.chunk_hash: s.chunk for s in self.shards if s.chunk is not None}
        hashes = [header.chunk_hash for header in self.chunk_headers()]
        return [new[chunk_hash].as_node_sends() for chunk_hash in hashes if chunk_hash in new]

    def chunk_headers(self) -> list[chain.ChunkHeader]:
        """List the chunks of the block, or only the new chunks if it has no list."""
        if self.block.chunks is not None:
            return self.block.chunks
        return [shard.chunk.header for shard in self.shards if shard.chunk is not None]


class WholeDocument(BlockDocument, gc=False):
    """A whole block with all that its hash commits to."""

    block: commitments.WholeBlock


class BlockResponse(NamedTuple):
    """The decoded document of a block, and its JSON."""

    document: BlockDocument
    body: bytes


_DOCUMENT = json_decoding.decoder(BlockDocument)
_WHOLE_DOCUMENT = json_decoding.decoder(WholeDocument)
_SHARD = json_decoding.decoder(Shard)
_CHUNK = json_decoding.decoder(Chunk)


def decode_document(body: bytes, request: str, *, whole: bool = False) -> BlockDocument:
    """
    Decode the document of a block, and fill in the height, time and shard of each outcome.

    With `whole` it is a `WholeDocument`. Raises `DecodeError` if it is not such a document, or
    contradicts itself; `request` names the document in the sentence.
    """
    decoder = _WHOLE_DOCUMENT if whole else _DOCUMENT
    document: BlockDocument = _decode(decoder, body, request)
    _fill_in_blocks(document, request)
    if document.block.chunks is None:
        _fill_in_chunks(document)
    return document


def decode_shard(body: bytes, request: str) -> Shard:
    """Decode one shard of a block, whose height and time may be unknown."""
    shard: Shard = _decode(_SHARD, body, request)
    for execution in shard.executions():
        execution.block_height, execution.shard_id = shard.block_height, shard.shard_id
    return shard


def decode_chunk(body: bytes, request: str) -> chain.Chunk:
    chunk: Chunk = _decode(_CHUNK, body, request)
    return chunk.as_node_sends()


def _decode(decoder: json_decoding.Decoder[Any], body: bytes, request: str) -> Any:
    try:
        return decode_with_other_kinds(decoder, body)
    except msgspec.DecodeError as problem:
        raise decode_error(problem, body, request) from None


def _fill_in_blocks(document: BlockDocument, request: str) -> None:
    """Fill in the height, time and shard of each outcome; raise if they are contradictory."""
    header = document.block.header
    block_hash, height, time_ns = header.hash, header.height, header.time_ns
    ids: list[str | None] = []
    for index, shard in enumerate(document.shards):
        shard_id = shard.shard_id
        expected: list[str | None]
        expected = [pair.receipt.receipt_id for pair in shard.receipt_execution_outcomes]
        if shard.chunk is not None:
            expected = [item.transaction.hash for item in shard.chunk.converted()] + expected
            if shard.chunk.header.shard_id != shard_id:
                problem = f"shard {shard_id} has a chunk of shard {shard.chunk.header.shard_id}"
                _refuse(problem, f"$.shards[{index}].chunk", request)
        ids += expected
        for execution, expected_id in zip(shard.executions(), expected, strict=True):
            if execution.id != expected_id or execution.block_hash not in (block_hash, None):
                _refuse(_mismatch(execution, expected_id), f"$.shards[{index}]", request)
            execution.block_hash = block_hash  # all share one text
            execution.block_height = height
            execution.block_timestamp = time_ns
            execution.shard_id = shard_id
    if len(set(ids)) < len(ids):
        [(repeated, _)] = Counter(ids).most_common(1)
        _refuse(f"it has two outcomes of {repeated}", "$.shards", request)


def _fill_in_chunks(document: BlockDocument) -> None:
    """Fill in the missing list of chunks, if all chunks are new and in the shards."""
    header, chunks = document.block.header, document.chunk_headers()
    is_every_shard = len(header.chunk_mask or chunks) == len(document.shards)
    is_new = all(chunk.height_included == header.height for chunk in chunks)
    if is_every_shard and is_new and len(chunks) == header.chunks_included:
        document.block.chunks = chunks


def _mismatch(execution: Execution, expected_id: str | None) -> str:
    if execution.id != expected_id:
        return f"the outcome of {expected_id} is of {execution.id}"
    return f"the outcome of {expected_id} is of the block {execution.block_hash}"


def _refuse(problem: str, path: str, request: str) -> NoReturn:
    raise not_as_documented(f"the response to {request}", problem, path, request=request)
