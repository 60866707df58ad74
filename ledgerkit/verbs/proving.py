"""Proofs of outcomes: the paths from them to a block that is trusted, and who signed it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from ledgerkit import json_decoding, proofs, validation
from ledgerkit.api import rpc
from ledgerkit.api.models import commitments
from ledgerkit.errors import DecodeError, LedgerError, ProofError
from ledgerkit.frames import build
from ledgerkit.proofs.headers import decode_hashes
from ledgerkit.proofs.light_client import block_hashes, decode_path
from ledgerkit.protocol.types import CryptoHash, PublicKey, Signature
from ledgerkit.tracing.proof import Proof
from ledgerkit.verbs.fetching import provenance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.api.models.commitments import Header, OutcomeProof, ProvedOutcome
    from ledgerkit.client import Ledger
    from ledgerkit.tracing.trace import Trace

SOURCE = "light_client_proof, next_light_client_block, EXPERIMENTAL_validators_ordered, block"

# The block after an outcome's has its root, or a later one if the shard missed its chunk.
_MAX_MISSED_CHUNKS = 50
# The light-client blocks of so many epochs are followed, a year and more.
_MAX_EPOCHS = 1_000


def prove(ledger: Ledger, trace: Trace, document: bytes, trusted: object = None) -> Proof:
    """Prove the outcomes in the document of a trace; see `Trace.verify`."""
    outcomes = read_outcomes(document, trace.tx_hash)
    chain = _Chain(ledger)
    anchor = None if trusted is None else validation.crypto_hash(trusted, "trusted")
    anchored = _trusted_head(chain, anchor or outcomes[0].block_hash, outcomes, is_named=anchor)
    rows = _prove_outcomes(chain, outcomes, anchored)
    _check_order(outcomes, rows)
    columns = {name: [getattr(row, name) for row in rows] for name in _Row.__slots__}
    frame = build.build_frame("proof", columns, attrs=provenance(ledger, SOURCE))
    return Proof(
        rows=frame,
        head_hash=str(anchored.head.block_hash),
        head_height=anchored.head.header.height,
        is_trusted=anchored.is_named,
        trusted_hash=anchored.trusted_hash,
        is_anchored=anchor is not None,
        is_signed_by_sender=_check_signature(document, outcomes[0].id),
    )


# The document ---------------------------------------------------------------------------


class _Signed(msgspec.Struct):
    """The members of a transaction that its signature can be checked with."""

    public_key: str | None = None
    signature: str | None = None
    hash: str | None = None


class _Document(msgspec.Struct):
    """The members of a transaction's result, in any of its forms."""

    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    transactions: list[msgspec.Raw] | msgspec.UnsetType = msgspec.UNSET
    transaction: _Signed | None = None


def read_outcomes(document: bytes, tx_hash: str | None) -> list[ProvedOutcome]:
    """Decode all outcomes of a transaction, whole, its own first."""
    body = _body(document, tx_hash)
    try:
        result = json_decoding.decode(body, commitments.NodeOutcomes)
    except msgspec.ValidationError as error:
        problem = error
    else:
        return [result.transaction_outcome, *result.receipts_outcome]
    try:
        indexed = json_decoding.decode(body, commitments.IndexedOutcomes)
    except msgspec.ValidationError:
        msg = f"the outcomes are not complete: {problem}"
        raise DecodeError(msg, path=None) from None
    return [indexed.execution_outcome, *(pair.execution_outcome for pair in indexed.receipts)]


def _body(document: bytes, tx_hash: str | None) -> bytes:
    """Return the part of a document that is the result of the transaction."""
    envelope = json_decoding.decode(document, _Document)
    if envelope.result is not msgspec.UNSET:
        return bytes(envelope.result)
    if envelope.transactions is msgspec.UNSET:
        return document
    for body in map(bytes, envelope.transactions):
        signed = json_decoding.decode(body, _Document).transaction
        if signed is not None and signed.hash == tx_hash:
            return body
    raise DecodeError(f"the document has no transaction {tx_hash}", path="$.transactions")


def _check_signature(document: bytes, tx_hash: str) -> bool | None:
    """Return True if the transaction's key signed its hash; None if the document lacks either."""
    signed = json_decoding.decode(_body(document, tx_hash), _Document).transaction
    if signed is None or signed.public_key is None or signed.signature is None:
        return None
    key = PublicKey.from_text(signed.public_key, "public_key")
    return key.verify(CryptoHash(tx_hash), Signature.from_text(signed.signature))


# The head -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Anchored:
    """The block that paths lead to; `is_named` if the caller trusts it, otherwise it is signed."""

    head: proofs.Head
    trusted_hash: str
    is_named: bool


class _Chain:
    """The headers of a network, each with its hash recomputed."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def header(self, block_hash: str) -> Header:
        """Read a header by its hash, and check it."""
        header = self.ledger.send(rpc.block_header(block_hash)).header
        _check_stated(header, block_hash)
        return header

    def validators(self, header: Header) -> list[commitments.Validator]:
        """Read the validators of a block's epoch, to which an earlier header commits."""
        # `next_epoch_id` is the hash of the last block of the epoch before.
        before = self.header(header.next_epoch_id)
        validators = self.ledger.send(rpc.validators_ordered(header.hash))
        proofs.check_validators(CryptoHash(before.hash), validators, before.next_bp_hash)
        return validators

    def is_before(self, block_hash: str, later_hash: str) -> bool:
        """Return True if a block is an earlier one, at most some blocks before, or the same."""
        current = later_hash
        for _ in range(_MAX_MISSED_CHUNKS):
            if current == block_hash:
                return True
            current = self.header(current).prev_hash
        return False


def _trusted_head(
    chain: _Chain, trusted_hash: str, outcomes: Sequence[ProvedOutcome], *, is_named: object
) -> _Anchored:
    """Return the head: the named block if it is later than the outcomes, else a signed one."""
    headers = {h: chain.header(h) for h in dict.fromkeys(o.block_hash for o in outcomes)}
    last_height = max(header.height for header in headers.values())
    trusted = headers.get(trusted_hash) or chain.header(trusted_hash)
    if is_named and trusted.height > last_height:
        head = proofs.Head(CryptoHash(trusted_hash), trusted, {})
        return _Anchored(head, trusted_hash, is_named=True)
    before, validators = chain.header(trusted.next_epoch_id), chain.validators(trusted)
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
    """A row of the proof."""

    outcome_id: str
    kind: str
    executor_id: str
    leaf: str
    shard_root: str | None = None
    outcome_root: str | None = None
    block_hash: str | None = None
    block_height: int | None = None
    proved: str | None = None
    note: str | None = None


def _prove_outcomes(
    chain: _Chain, outcomes: Sequence[ProvedOutcome], anchored: _Anchored
) -> list[_Row]:
    """Read the path of each outcome, and follow it."""
    leaves = proofs.leaves([o.id for o in outcomes], [o.outcome for o in outcomes])
    head_hash = str(anchored.head.block_hash)
    calls = [
        rpc.light_client_proof(o.id, o.outcome.executor_id, head_hash, is_transaction=not at)
        for at, o in enumerate(outcomes)
    ]
    answers = chain.ledger.send_many(calls, on_error="collect", label="proofs")
    rows = []
    for at, (outcome, leaf, answer) in enumerate(zip(outcomes, leaves, answers, strict=True)):
        kind = "receipt" if at else "transaction"
        executor_id = outcome.outcome.executor_id
        row = _Row(outcome.id, kind, executor_id, str(CryptoHash(leaf)))
        rows.append(row)
        if isinstance(answer, LedgerError):
            row.note = f"its path could not be read: {answer}"
        else:
            _follow(row, outcome, answer, leaf=leaf, anchored=anchored)
            if row.proved != "no" and not chain.is_before(
                outcome.block_hash, answer.block_header_lite.prev_block_hash
            ):
                row.proved = "no"
                row.note = f"the path leads to a block that is not after {outcome.block_hash}"
    return rows


def _follow(
    row: _Row, outcome: ProvedOutcome, answer: OutcomeProof, *, leaf: bytes, anchored: _Anchored
) -> None:
    """Follow the path from an outcome to the head, as far as it leads."""
    shard_root = proofs.root_from(decode_path(answer.outcome_proof.proof), leaf)
    root = proofs.root_from(decode_path(answer.outcome_root_proof), sha256(shard_root).digest())
    lite = answer.block_header_lite
    block_hash = str(CryptoHash(block_hashes(lite).block))
    row.shard_root, row.outcome_root = str(CryptoHash(shard_root)), str(CryptoHash(root))
    row.block_hash, row.block_height = block_hash, lite.inner_lite.height
    row.proved = "no"
    if answer.outcome_proof.id != outcome.id:
        row.note = f"the path is that of {answer.outcome_proof.id}"
    elif decode_hashes(lite.inner_lite.outcome_root)[0] != root:
        row.note = "the path does not lead to the outcome root of a block"
    else:
        row.proved = "outcome"
        try:
            anchored.head.check_block(lite, answer.block_proof)
        except ProofError as error:
            row.note = str(error)
        else:
            row.proved = "block" if anchored.is_named else "signed"


def _check_order(outcomes: Sequence[ProvedOutcome], rows: Sequence[_Row]) -> None:
    """Mark receipts that no outcome created, or more than one did, or that ran before it."""
    heights = {row.outcome_id: row.block_height for row in rows}
    creators = Counter(i for o in outcomes for i in o.outcome.receipt_ids)
    parent = {i: o.id for o in outcomes for i in o.outcome.receipt_ids}
    for row in rows[1:]:
        if creators[row.outcome_id] != 1:
            row.proved, row.note = "no", "no outcome, or more than one, lists it as created"
            continue
        before = heights[parent[row.outcome_id]]
        if before is not None and row.block_height is not None and row.block_height < before:
            row.proved, row.note = "no", "it ran before the receipt that created it"


# Blocks ---------------------------------------------------------------------------------


def check_blocks(ledger: Ledger, block_hashes: Sequence[str], *, progress: bool) -> None:
    """Check that blocks are what their hashes commit to, linked, and approved by validators."""
    calls = [rpc.block_header(block_hash) for block_hash in block_hashes]
    answers = ledger.send_many(calls, progress=progress, label="headers")
    chain, validators = _Chain(ledger), dict[str, list[commitments.Validator]]()
    before: Header | None = None
    for block_hash, answer in zip(block_hashes, answers, strict=True):
        if isinstance(answer, LedgerError):
            raise answer
        header = answer.header
        _check_stated(header, block_hash)
        if before is not None and header.prev_hash != before.hash:
            msg = f"Block {header.height} does not follow block {before.height}"
            raise ProofError(msg, block_hash=header.hash)
        before = header
        if header.prev_height is None:  # genesis, and headers before version 3
            continue
        if header.epoch_id not in validators:
            validators[header.epoch_id] = chain.validators(header)
        message = proofs.approved_message(
            decode_hashes(header.prev_hash)[0], header.prev_height, header.height
        )
        block_id = CryptoHash(header.prev_hash)
        proofs.check_approvals(block_id, header.approvals, validators[header.epoch_id], message)


def _check_stated(header: Header, block_hash: str) -> None:
    """Check that a header is that of a block, and has its hash."""
    if header.hash != block_hash:
        msg = f"Block {header.hash} was sent for {block_hash}"
        raise ProofError(msg, block_hash=block_hash)
    proofs.check_header(header)
