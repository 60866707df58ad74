"""
Block documents whose outcomes are proved by later blocks, which validators approved.

The header of a chunk has the root of the outcomes that the previous chunk of its shard executed;
the header of the block with that chunk commits to the root, and the next block shows that
validators approved that block. So two later documents usually prove a document; more are needed
if its shard missed a chunk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from ledgerkit import proofs, validation
from ledgerkit.api import rpc
from ledgerkit.api.models.block_documents import Execution, Shard, WholeDocument
from ledgerkit.api.models.commitments import NO_HASH, Header, Validator, WholeBlock
from ledgerkit.block_data.headers import Skipped
from ledgerkit.block_data.reading import DocumentRead, read_documents, read_with_later
from ledgerkit.errors import DecodeError, LedgerError, ProofError, ProofNotReadyError
from ledgerkit.proofs.headers import decode_hashes
from ledgerkit.protocol import borsh
from ledgerkit.protocol.types import CryptoHash

if TYPE_CHECKING:
    from ledgerkit.api.models.chain import ChunkHeader
    from ledgerkit.ledger import Ledger


class Headers:
    """The headers and validators of a network, each with its hash recomputed."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._headers: dict[str, Header] = {}
        self._validators: dict[str, list[Validator]] = {}

    def read(self, block_hash: str) -> Header:
        header = self._headers.get(block_hash)
        if header is None:
            header = self.ledger.send(rpc.whole_block(validation.received_hash(block_hash))).header
            proofs.check_header(header)
            self._headers[block_hash] = header
        return header

    def validators(self, header: Header) -> list[Validator]:
        """Read the validators of a block's epoch, to which an earlier header commits."""
        if header.epoch_id not in self._validators:
            # `next_epoch_id` is the hash of the last block of the previous epoch.
            before = self.read(header.next_epoch_id)
            validators = self.ledger.send(rpc.validators_ordered(header.hash))
            proofs.check_validators(CryptoHash(before.hash), validators, before.next_bp_hash)
            self._validators[header.epoch_id] = validators
        return self._validators[header.epoch_id]


class HeaderChecks:
    """
    Checks of consecutive blocks of a chain: their headers, chunks and authors.

    The validators are read from `headers`; without them approvals and authors are not checked.
    """

    def __init__(self, headers: Headers | None) -> None:
        self._headers = headers
        self._before: Header | None = None
        self._first_height: int | None = None

    def skip(self, height: int) -> None:
        """Expect that the parent of the next block is below a height."""
        if self._first_height is None:
            self._first_height = height

    def add(self, block: WholeBlock) -> bool:
        """
        Check the next block; return True if it shows that the previous block is approved.

        After a skipped height, approvals name the height of the previous block and not its hash;
        then a later header, whose approvals name a hash, shows the approval.

        Raises `ProofError` if the hash differs, the parent differs, or at most two thirds of the
        stake approved the parent.
        """
        header = block.header
        proofs.check_header(header)
        n_chunks = header.chunks_included
        _require(n_chunks == sum(header.chunk_mask), header, f"{n_chunks} new chunks")
        if block.chunks is not None:
            _check_chunks(header, block.chunks)
        before, self._before = self._before, header
        if before is not None and header.prev_hash != before.hash:
            msg = f"Block {header.height} does not follow block {before.height}"
            raise ProofError(msg, block_hash=header.hash)
        if self._headers is None or header.prev_hash == NO_HASH:  # nobody approved the first block
            return False
        _check_author(block, self._headers.validators(header))
        prev_height = header.prev_height  # headers before version 3 have none
        if prev_height is None and (before is not None or self._first_height is not None):
            prev_height = (before or self._headers.read(header.prev_hash)).height
        self.skip(header.height)
        if prev_height is None:
            return False
        if before is None and prev_height >= (self._first_height or 0):
            msg = f"Block {prev_height} was left out: block {header.height} follows on it"
            raise ProofError(msg, block_hash=header.hash)
        prev_hash = CryptoHash(header.prev_hash)
        message = proofs.approved_message(bytes(prev_hash), prev_height, header.height)
        validators = self._headers.validators(header)
        proofs.check_approvals(prev_hash, header.approvals, validators, message)
        return header.height == prev_height + 1


def _check_chunks(header: Header, chunks: Sequence[ChunkHeader]) -> None:
    """Check the hashes of all chunks of a block, and the heights that include them."""
    hashes = decode_hashes(*(chunk.chunk_hash for chunk in chunks))
    heights = [borsh.u64(chunk.height_included) for chunk in chunks]
    # Source: nearcore, core/primitives/src/block.rs, compute_chunk_headers_root.
    leaves = [sha256(b"".join(pair)).digest() for pair in zip(hashes, heights, strict=True)]
    root = decode_hashes(header.chunk_headers_root)[0]
    _require(proofs.root_of(leaves) == root, header, "its chunks")


def _check_author(block: WholeBlock, validators: Sequence[Validator]) -> None:
    keys = {validator.account_id: validator.public_key for validator in validators}
    header = block.header
    if block.author not in keys:
        msg = f"{block.author} is no validator of the epoch of block {header.height}"
        raise ProofError(msg, block_hash=header.hash)
    proofs.check_producer(header, keys[block.author])


@dataclass(slots=True)
class VerifiedRead:
    """
    The result of reading a height, and its proof.

    `read` has an error instead of a document that is not proved. `leaves` are the leaves of
    outcomes by their ids, and `committed_by` is the last header that commits to some of them. No
    header commits yet to `missing_roots`. `unchecked_reason` says why outcomes are not in `leaves`.
    """

    read: DocumentRead
    leaves: dict[str, bytes] = field(default_factory=dict)
    committed_by: Header | None = None
    missing_roots: int = 0
    unchecked_reason: DecodeError | None = None

    def whole(self) -> DocumentRead:
        """Return the document, or an error if not all of its outcomes are proved."""
        reason = self.unchecked_reason
        return self.read if reason is None else self.read._replace(value=reason)

    def is_proved(self, approved_height: int) -> bool:
        """Return True if approved blocks commit to all roots, or show that no block exists."""
        if isinstance(self.read.value, LedgerError):
            return True
        header = self.committed_by
        return not self.missing_roots and header is not None and header.height <= approved_height


def read_verified(
    ledger: Ledger, heights: Iterable[int], headers: Headers, source: str = "documents"
) -> Generator[VerifiedRead, None, None]:
    """
    Read the document of each height, in order, once it is proved.

    As `read_documents`, but a document that the chain does not commit to is a `ProofError`, and a
    document that no final block proves yet is a `ProofNotReadyError`. A document has an
    `unchecked_reason` if the status of an outcome is of an unknown kind.
    """
    read = partial(read_documents, source=source, whole=True)
    return read_with_later(ledger, heights, DocumentChecks(headers), read)


class DocumentChecks:
    """
    The buffer of documents that are not proved yet, with the checks of their headers.

    The validators are read from `headers`; without them the caller trusts the last header.
    """

    def __init__(self, headers: Headers | None) -> None:
        self._headers = headers
        self._waiting: deque[VerifiedRead] = deque()
        self._restart()

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def add(self, read: DocumentRead, *, is_later: bool = False) -> Iterator[VerifiedRead]:
        """Add the next height; yield the heights that are proved now, except later heights."""
        pending = VerifiedRead(read)
        try:
            if isinstance(read.value, LedgerError):
                raise read.value
            if isinstance(read.value, WholeDocument):
                self._add_document(read.value, pending)
                for earlier in self._waiting:
                    if isinstance(earlier.read.value, Skipped) and earlier.committed_by is None:
                        earlier.committed_by = read.value.block.header
            else:
                self._checks.skip(read.height)
        except LedgerError as error:
            self._fail(error)
            pending.read = pending.read._replace(value=error)
        if not is_later:
            self._waiting.append(pending)
        while self._waiting and self._waiting[0].is_proved(self._approved_height):
            yield self._waiting.popleft()

    def end(self) -> Iterator[VerifiedRead]:
        """Yield the heights that are not proved, with their errors."""
        self._fail(None)
        while self._waiting:
            yield self._waiting.popleft()

    def _restart(self) -> None:
        """Forget earlier headers: the next header need not follow on them."""
        self._checks = HeaderChecks(self._headers)
        self._approved_height = -1
        self._pending: dict[int, tuple[VerifiedRead, bytes]] = {}  # by shard

    def _fail(self, error: LedgerError | None) -> None:
        """Replace the waiting documents by an error, because no later document proves them."""
        for pending in self._waiting:
            if not isinstance(pending.read.value, LedgerError):
                text = f"no later block proves block {pending.read.height} yet"
                value = error or ProofNotReadyError(text=text, block_height=pending.read.height)
                pending.read = pending.read._replace(value=value)
        self._restart()

    def _add_document(self, document: WholeDocument, pending: VerifiedRead) -> None:
        """Check a document, and the outcomes that its chunks commit to."""
        header, chunks = document.block.header, document.chunk_headers()
        is_approval = self._checks.add(document.block)
        if document.block.chunks is None:
            _check_chunks(header, chunks)
        if self._headers is None:
            self._approved_height = header.height
        elif is_approval:
            self._approved_height = header.height - 1
        hashes = decode_hashes(*map(_outcome_root, chunks))
        roots = {chunk.shard_id: root for chunk, root in zip(chunks, hashes, strict=True)}
        root = proofs.root_of([sha256(chunk_root).digest() for chunk_root in roots.values()])
        _require(root == decode_hashes(header.outcome_root)[0], header, "its chunks")
        new = {chunk.shard_id for chunk in chunks if chunk.height_included == header.height}
        for shard_id in new & self._pending.keys():
            earlier, root = self._pending.pop(shard_id)
            outcomes = f"the outcomes of shard {shard_id} in block {earlier.read.height}"
            _require(root == roots[shard_id], header, outcomes)
            earlier.missing_roots -= 1
            earlier.committed_by = header
        for shard in document.shards:
            executions = shard.executions()
            _check_accounts(shard, header)
            if shard.shard_id not in new:
                outcomes = f"outcomes of shard {shard.shard_id}, without a chunk,"
                _require(not executions, header, outcomes)
                continue
            ids = [execution.id for execution in executions]
            computed = proofs.leaves(ids, [execution.outcome for execution in executions])
            leaves = [leaf for leaf in computed if leaf is not None]
            if len(leaves) < len(ids):
                pending.unchecked_reason = _unknown_status(executions[computed.index(None)])
                continue
            pending.leaves.update(zip(ids, leaves, strict=True))
            self._pending[shard.shard_id] = pending, proofs.root_of(leaves)
            pending.missing_roots += 1
        listed = {shard.shard_id for shard in document.shards}
        _require(new <= listed, header, "the chunks that its document lacks")
        if not pending.missing_roots:
            pending.committed_by = header


def _check_accounts(shard: Shard, header: Header) -> None:
    """Check that each executor is the signer of the transaction or the receiver of the receipt."""
    for item in () if shard.chunk is None else shard.chunk.converted():
        executor_id = item.outcome.execution_outcome.outcome.executor_id
        is_signer = item.transaction.signer_id in (executor_id, None)
        _require(is_signer, header, f"the signer of {item.transaction.hash}")
    for pair in shard.receipt_execution_outcomes:
        is_receiver = pair.receipt.receiver_id == pair.execution_outcome.outcome.executor_id
        _require(is_receiver, header, f"the receiver of {pair.receipt.receipt_id}")


def _unknown_status(execution: Execution) -> DecodeError:
    """Build the error for a shard without a root, because an outcome has no leaf."""
    problem = proofs.unknown_status(execution.outcome.status)
    msg = f"{execution.id} and its shard are not checked: {problem}"
    return DecodeError(msg, path="$.shards[].receipt_execution_outcomes[].execution_outcome")


def _outcome_root(chunk: ChunkHeader) -> str:
    if chunk.outcome_root is None:
        msg = f"the chunk of shard {chunk.shard_id} has no outcome_root"
        raise DecodeError(msg, path="$.block.chunks[].outcome_root")
    return chunk.outcome_root


def _require(holds: bool, header: Header, content: str) -> None:  # noqa: FBT001 - a condition
    if not holds:
        msg = f"Block {header.height} does not commit to {content}"
        raise ProofError(msg, block_hash=header.hash)
