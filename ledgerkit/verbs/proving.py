"""Proofs of outcomes: Merkle paths to a trusted or signed block, and its signatures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import proofs, validation
from ledgerkit.api import rpc
from ledgerkit.api.models.block_documents import WholeDocument
from ledgerkit.block_data.reading import read_documents
from ledgerkit.block_data.verified_documents import (
    DocumentChecks,
    HeaderChecks,
    Headers,
    read_verified,
)
from ledgerkit.errors import DecodeError, InvalidRequestError, LedgerError, ProofError
from ledgerkit.frames import build
from ledgerkit.proofs.headers import decode_hashes
from ledgerkit.proofs.light_client import block_hashes, decode_path
from ledgerkit.proofs.merkle import position
from ledgerkit.proofs.outcomes import MEMBERS
from ledgerkit.protocol.types import CryptoHash, PublicKey, Signature
from ledgerkit.tracing.proof import Proof
from ledgerkit.verbs.fetching import provenance
from ledgerkit.verbs.stated_facts import contradictions, receipts_without_outcome

if TYPE_CHECKING:
    from ledgerkit.api.models.commitments import Header, OutcomeProof
    from ledgerkit.api.models.transactions import ExecutionOutcome, Transaction, TxResult
    from ledgerkit.block_data.verified_documents import VerifiedRead
    from ledgerkit.ledger import Ledger

SOURCES = {
    "rpc": "light_client_proof, next_light_client_block, EXPERIMENTAL_validators_ordered, block",
    "documents": "the block documents, EXPERIMENTAL_validators_ordered, block",
    "indexer_rpc": "EXPERIMENTAL_indexer_block, EXPERIMENTAL_validators_ordered, block",
}

# The block after an outcome's block has its root, or a later one if the shard missed its chunk.
_MAX_MISSED_CHUNKS = 50
_MAX_EPOCHS = 1_000  # light-client blocks to follow, more than a year
_MAX_BETWEEN = 10  # heights read per needed height
_MAX_LINKED = 1_000  # blocks from an outcome to a trusted one, if documents prove it


def check_anchor(trusted: object, source: str) -> str | None:
    """Check the options of a proof; return the hash of the block that the caller trusts."""
    validation.one_of(source, "source", validation.BLOCK_SOURCES)
    return None if trusted is None else validation.crypto_hash(trusted, "trusted")


def prove(
    ledger: Ledger,
    result: TxResult,
    shown_blocks: Mapping[str, tuple[int, int]],
    trusted: object = None,
    source: str = "rpc",
) -> Proof:
    """
    Prove the outcomes in the result of a transaction; see `Trace.verify`.

    `shown_blocks` are the heights and times of blocks that the trace shows, by hash.
    """
    anchor = check_anchor(trusted, source)
    outcomes = _list_outcomes(result)
    chain = Headers(ledger)
    headers = {block_hash: chain.read(block_hash) for block_hash in _block_hashes(outcomes)}
    if source != "rpc":
        rows, anchored = _prove_by_documents(chain, outcomes, anchor, source)
    else:
        anchored = _trusted_head(chain, anchor or outcomes[0].block_hash, outcomes, is_named=anchor)
        rows = _prove_outcomes(chain, outcomes, anchored)
    listed = [outcome.stated for outcome in outcomes]
    by_id = {row.outcome_id: row for row in rows}
    for outcome_id, note in contradictions(result, listed, headers, shown_blocks):
        if by_id[outcome_id].proved != "no":
            by_id[outcome_id].proved, by_id[outcome_id].note = "no", note
    for receipt_id, note in receipts_without_outcome(result, listed).items():
        rows.append(_Row(receipt_id, "receipt", note=note))
    attrs = provenance(ledger, SOURCES[source])
    frame = build.build_frame("proof", build.columns_of("proof", rows), attrs=attrs)
    return Proof(
        rows=frame,
        head_hash=str(anchored.head.block_hash),
        head_height=anchored.head.header.height,
        is_trusted=anchored.is_named,
        trusted_hash=anchored.trusted_hash,
        is_anchored=anchor is not None,
        is_signed_by_sender=_check_signature(result.transaction, outcomes[0].id),
    )


# The document ---------------------------------------------------------------------------


class _Outcome(NamedTuple):
    """An outcome of the trace, with all members that its leaf commits to."""

    id: str
    block_hash: str
    outcome: Any
    leaf: bytes | None  # None for a status of an unknown kind
    stated: ExecutionOutcome


def _block_hashes(outcomes: Sequence[_Outcome]) -> list[str]:
    return list(dict.fromkeys(outcome.block_hash for outcome in outcomes))


def _list_outcomes(result: TxResult) -> list[_Outcome]:
    if result.transaction_outcome is None:
        raise DecodeError("the outcome of the transaction is missing", path=None)
    outcomes = [result.transaction_outcome, *result.outcomes]
    for outcome in outcomes:
        members = [outcome.block_hash, *(getattr(outcome.outcome, name) for name in MEMBERS)]
        if None in members:
            name = ("block_hash", *MEMBERS)[members.index(None)]
            msg = f"the outcomes are not complete: that of {outcome.id} has no {name}"
            raise DecodeError(msg, path=None)
    contents: list[Any] = [outcome.outcome for outcome in outcomes]
    leaves = proofs.leaves([outcome.id for outcome in outcomes], contents)
    return [
        _Outcome(outcome.id, outcome.block_hash or "", outcome.outcome, leaf, outcome)
        for outcome, leaf in zip(outcomes, leaves, strict=True)
    ]


def _check_signature(transaction: Transaction | None, tx_hash: str) -> bool | None:
    """Return True if the transaction's key signed its hash; None if the document lacks either."""
    if transaction is None or transaction.public_key is None or transaction.signature is None:
        return None
    key = PublicKey.from_text(transaction.public_key, "public_key")
    is_signed = key.verify(CryptoHash(tx_hash), Signature.from_text(transaction.signature))
    return is_signed and transaction.hash in (None, tx_hash)


# The head -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Anchored:
    """The block that paths lead to: named by the caller (`is_named`), or signed by validators."""

    head: proofs.Head
    trusted_hash: str
    is_named: bool


def _ran_in_block(chain: Headers, block_hash: str, path: OutcomeProof) -> bool:
    """
    Return True if a block has the chunk whose outcomes have the root that a path leads to.

    The root is in the next chunk of the shard, which may be some blocks later. After a split of
    shards, it may be any block since all shards had a chunk.
    """
    header = chain.read(str(CryptoHash(block_hashes(path.block_header_lite).block)))
    n_shards, n_chunks = len(header.chunk_mask), 0
    shard = position(decode_path(path.outcome_root_proof), n_shards)
    for _ in range(_MAX_MISSED_CHUNKS):
        is_split = len(header.chunk_mask) != n_shards
        if is_split and n_chunks and header.hash == block_hash:
            return True
        n_chunks += all(header.chunk_mask) if is_split else header.chunk_mask[shard]
        if n_chunks > 1:
            return header.hash == block_hash
        header = chain.read(header.prev_hash)
    return False


def _trusted_head(
    chain: Headers, trusted_hash: str, outcomes: Sequence[_Outcome], *, is_named: object
) -> _Anchored:
    """Return the head: the named block if it is later than the outcomes, else a signed block."""
    last_height = max(chain.read(block_hash).height for block_hash in _block_hashes(outcomes))
    trusted = chain.read(trusted_hash)
    if is_named and trusted.height > last_height:
        head = proofs.Head(CryptoHash(trusted_hash), trusted, {})
        return _Anchored(head, trusted_hash, is_named=True)
    before, validators = chain.read(trusted.next_epoch_id), chain.validators(trusted)
    head = proofs.Head(CryptoHash(before.hash), before, {trusted.epoch_id: validators})
    for _ in range(_MAX_EPOCHS):
        block = chain.ledger.send(rpc.next_light_client_block(str(head.block_hash)))
        if block is None:
            break
        head = head.advance(block)
        if head.header.height > last_height + _MAX_MISSED_CHUNKS:
            break
    return _Anchored(head, trusted_hash, is_named=False)


# The outcomes ---------------------------------------------------------------------------


@dataclass(slots=True)
class _Row:
    outcome_id: str
    kind: str
    executor_id: str | None = None
    leaf: str | None = None
    shard_root: str | None = None
    outcome_root: str | None = None
    block_hash: str | None = None
    block_height: int | None = None
    proved: str | None = None
    note: str | None = None


def _rows_of(outcomes: Sequence[_Outcome]) -> list[_Row]:
    rows = [_Row(o.id, "receipt", o.outcome.executor_id) for o in outcomes]
    rows[0].kind = "transaction"
    for row, outcome in zip(rows, outcomes, strict=True):
        row.leaf = None if outcome.leaf is None else str(CryptoHash(outcome.leaf))
        if outcome.leaf is None:
            row.note = f"not checked: {proofs.unknown_status(outcome.outcome.status)}"
    return rows


def _prove_outcomes(
    chain: Headers, outcomes: Sequence[_Outcome], anchored: _Anchored
) -> list[_Row]:
    head_hash = str(anchored.head.block_hash)
    calls = [
        rpc.light_client_proof(o.id, o.outcome.executor_id, head_hash, is_transaction=not index)
        for index, o in enumerate(outcomes)
    ]
    paths = chain.ledger.send_many(calls, on_error="collect", label="proofs")
    rows = _rows_of(outcomes)
    for row, outcome, path in zip(rows, outcomes, paths, strict=True):
        if outcome.leaf is None:
            continue
        if isinstance(path, LedgerError):
            row.note = f"its path could not be read: {path}"
        else:
            _follow_path(row, outcome.id, outcome.leaf, path, anchored)
            if row.proved != "no" and not _ran_in_block(chain, outcome.block_hash, path):
                row.proved, row.note = "no", f"it did not run in block {outcome.block_hash}"
    return rows


def _follow_path(
    row: _Row, outcome_id: str, leaf: bytes, path: OutcomeProof, anchored: _Anchored
) -> None:
    shard_root = proofs.root_from(decode_path(path.outcome_proof.proof), leaf)
    root = proofs.root_from(decode_path(path.outcome_root_proof), sha256(shard_root).digest())
    lite = path.block_header_lite
    block_hash = str(CryptoHash(block_hashes(lite).block))
    row.shard_root, row.outcome_root = str(CryptoHash(shard_root)), str(CryptoHash(root))
    row.block_hash, row.block_height = block_hash, lite.inner_lite.height
    row.proved = "no"
    if path.outcome_proof.id != outcome_id:
        row.note = f"the path is that of {path.outcome_proof.id}"
    elif decode_hashes(lite.inner_lite.outcome_root)[0] != root:
        row.note = "the path does not lead to the outcome root of a block"
    else:
        row.proved = "outcome"
        try:
            anchored.head.check_block(lite, path.block_proof)
        except ProofError as error:
            row.note = str(error)
        else:
            row.proved = "block" if anchored.is_named else "signed"


# From block documents -------------------------------------------------------------------


def _prove_by_documents(
    headers: Headers, outcomes: Sequence[_Outcome], trusted: str | None, source: str
) -> tuple[list[_Row], _Anchored]:
    """Prove outcomes by the documents of their blocks and of the following blocks."""
    ledger = headers.ledger
    heights = {
        block_hash: headers.read(block_hash).height for block_hash in _block_hashes(outcomes)
    }
    end = None if trusted is None else headers.read(trusted)
    ordered = sorted(heights.values())
    if end is None:
        reads = _read_runs(ledger, ordered, headers, source)
    else:
        reads = _read_up_to(ledger, ordered, end, source)
    verified = {block.read.height: block for block in reads if block.read.height in ordered}
    rows = _rows_of(outcomes)
    for row, outcome in zip(rows, outcomes, strict=True):
        if outcome.leaf is None:
            continue
        block = verified[heights[outcome.block_hash]]
        document = block.read.value
        if isinstance(document, LedgerError):
            row.note, row.proved = str(document), "no" if isinstance(document, ProofError) else None
            continue
        header = document.block.header if isinstance(document, WholeDocument) else None
        if header is None or header.hash != outcome.block_hash:
            row.note = f"{outcome.block_hash} is not the block at height {block.read.height}"
            row.proved = "no"
            continue
        header = block.committed_by
        if block.unchecked_reason is not None and outcome.id not in block.leaves:
            row.note = str(block.unchecked_reason)
            continue
        if header is None or block.leaves.get(outcome.id) != outcome.leaf:
            row.note, row.proved = f"block {block.read.height} has not this outcome", "no"
            continue
        if end is not None and header.height > end.height:
            row.note = f"block {header.height}, which commits to it, is after the one you named"
            continue
        row.block_hash, row.block_height = header.hash, header.height
        row.outcome_root, row.proved = header.outcome_root, "block" if end else "signed"
    committing = [block.committed_by for block in verified.values() if block.committed_by]
    head = end or max(committing, key=lambda header: header.height, default=None)
    if head is None:
        head = headers.read(outcomes[0].block_hash)
    anchored_head = proofs.Head(CryptoHash(head.hash), head, {})
    return rows, _Anchored(anchored_head, head.hash, is_named=end is not None)


def _read_runs(
    ledger: Ledger, heights: Sequence[int], headers: Headers, source: str
) -> Iterator[VerifiedRead]:
    """Read the blocks at heights, and the blocks between if there are few."""
    runs = [range(heights[0], heights[-1] + 1)]
    if len(runs[0]) > _MAX_BETWEEN * len(heights):  # a receipt may have waited for many blocks
        runs = [range(height, height + 1) for height in heights]
    for run in runs:
        with closing(read_verified(ledger, run, headers, source)) as results:
            yield from results


def _read_up_to(
    ledger: Ledger, heights: Sequence[int], end: Header, source: str
) -> Iterator[VerifiedRead]:
    """Read the blocks from the first height to a trusted block; they need no approvals."""
    if not heights[-1] < end.height <= heights[-1] + _MAX_LINKED:
        first = heights[-1] + 1
        rule = f"a block from {first} to {first - 1 + _MAX_LINKED}, to which documents are read"
        raise InvalidRequestError.refuse("trusted", end.hash, rule)
    checks, verification = HeaderChecks(None), DocumentChecks(None)
    blocks, header = range(heights[0], end.height + 1), None
    with closing(read_documents(ledger, blocks, source=source, whole=True)) as reads:
        for read in reads:
            if isinstance(read.value, LedgerError):
                raise read.value
            if isinstance(read.value, WholeDocument):
                header = read.value.block.header
                checks.add(read.value.block)
            yield from verification.add(read)
    if header is None or header.hash != end.hash:
        msg = f"Block {end.height} of the documents is not the trusted one"
        raise ProofError(msg, block_hash=end.hash)
    yield from verification.end()
