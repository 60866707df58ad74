"""
What a chain commits to: Merkle trees of outcomes and blocks, hashes of headers, approvals.

Source: nearcore, core/primitives/src/merkle.rs, block_header.rs (version 5 of a header), and
transaction.rs (ExecutionOutcomeWithId::to_hashes). The roots of the state, of the receipts
that a shard sent, and of a block's body hash other contents than the node's.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.localnet.chain_types import NO_CODE, Failure, SuccessReceiptId
from ledgerkit.protocol import CryptoHash
from ledgerkit.protocol.borsh import blob, items, text, u32, u64, u128

if TYPE_CHECKING:
    from ledgerkit.localnet.chain_types import Block, Outcome, Proposal

PathItem = tuple[CryptoHash, bool]  # a neighbour, and True if it is on the left
_ABSENT, _PRESENT = b"\0", b"\1"
_ENDORSEMENT, _SKIP = b"\0", b"\1"
_FAILURE, _SUCCESS_VALUE, _SUCCESS_RECEIPT_ID = b"\1", b"\2", b"\3"


def combine(left: bytes, right: bytes) -> CryptoHash:
    return CryptoHash.of(left + right)


class MerkleTree:
    """
    A Merkle tree that grows by leaves, with the roots and paths of all its former sizes.

    Only whole subtrees are stored; those at the end of a former size are computed when needed.
    """

    def __init__(self, leaves: Iterable[CryptoHash] = ()) -> None:
        self._levels: list[list[CryptoHash]] = [[]]
        for leaf in leaves:
            self.append(leaf)

    def __len__(self) -> int:
        return len(self._levels[0])

    def append(self, leaf: CryptoHash) -> None:
        node, level = leaf, 0
        while True:
            nodes = self._levels[level]
            nodes.append(node)
            if len(nodes) % 2:
                return
            node, level = combine(*nodes[-2:]), level + 1
            if level == len(self._levels):
                self._levels.append([])

    def root(self, size: int | None = None) -> CryptoHash:
        """Return the root of the first leaves; zeros if there are none."""
        size = len(self) if size is None else size
        return self._node(_height(size), 0, size) if size else NO_CODE

    def path(self, index: int, size: int | None = None) -> list[PathItem]:
        """Return the path from a leaf to the root of the first leaves."""
        size = len(self) if size is None else size
        path = []
        for level in range(_height(size)):
            neighbour = index ^ 1
            if neighbour < _width(level, size):
                path.append((self._node(level, neighbour, size), neighbour < index))
            index >>= 1
        return path

    def _node(self, level: int, index: int, size: int) -> CryptoHash:
        if index < size >> level:
            return self._levels[level][index]
        left = self._node(level - 1, 2 * index, size)
        if 2 * index + 1 < _width(level - 1, size):
            return combine(left, self._node(level - 1, 2 * index + 1, size))
        return left


def _height(size: int) -> int:
    return (size - 1).bit_length() if size else 0


def _width(level: int, size: int) -> int:
    return -(-size >> level)


def root_of_leaves(leaves: list[bytes]) -> CryptoHash:
    """Compute the root of leaves without their paths; zeros if there are none."""
    while len(leaves) > 1:
        pairs = zip(leaves[::2], leaves[1::2], strict=False)
        above = [sha256(left + right).digest() for left, right in pairs]
        leaves = above + leaves[-1:] if len(leaves) % 2 else above
    return CryptoHash(leaves[0]) if leaves else NO_CODE


def root_of(items: Iterable[bytes]) -> CryptoHash:
    return root_of_leaves([sha256(item).digest() for item in items])


def outcome_leaf(outcome: Outcome) -> CryptoHash:
    """Return the hash by which the root of a shard commits to an outcome."""
    status = outcome.status
    if isinstance(status, Failure):
        packed = _FAILURE
    elif isinstance(status, SuccessReceiptId):
        packed = _SUCCESS_RECEIPT_ID + status.receipt_id
    else:
        packed = _SUCCESS_VALUE + blob(status.value)
    receipt_ids = outcome.receipt_ids
    head = u32(len(receipt_ids)), *receipt_ids, u64(outcome.gas_burnt)
    partial = b"".join((*head, u128(outcome.tokens_burnt), text(outcome.executor_id), packed))
    logs = [sha256(log.encode()).digest() for log in outcome.logs]
    return CryptoHash.of(items((outcome.id, sha256(partial).digest(), *logs)))


# Headers --------------------------------------------------------------------------------


class Roots(NamedTuple):
    """The roots in a header."""

    state: CryptoHash
    receipts: CryptoHash
    chunks: CryptoHash
    transactions: CryptoHash
    outcomes: CryptoHash


def block_roots(block: Block) -> Roots:
    chunks = block.chunks
    return Roots(
        state=root_of(chunk.prev_state_root for chunk in chunks),
        receipts=root_of(chunk.outgoing_receipts_root for chunk in chunks),
        chunks=root_of(chunk.chunk_hash + u64(chunk.height_included) for chunk in chunks),
        transactions=root_of(chunk.tx_root for chunk in chunks),
        outcomes=root_of(chunk.outcome_root for chunk in chunks),
    )


def rest_hash(block: Block, version: int, roots: Roots) -> CryptoHash:
    """Return the hash of the part of a header that light clients do not read."""
    mask = block.chunk_mask
    approvals = [_PRESENT + a.encode() if a else _ABSENT for a in block.approvals]
    parts = (
        *(roots.chunks, roots.receipts, roots.chunks, roots.transactions, NO_CODE),
        *(block.random_value, encode_validators(proposals(block)), blob(bytes(mask))),
        *(u128(block.gas_price), u128(block.total_supply), u32(0)),
        *(block.last_final_block, block.last_ds_final_block),
        *(u64(block.ordinal), u64(block.prev_height or 0), _ABSENT),
        *(items(approvals), u32(version)),
        items([blob(bytes(bits)) for bits in endorsements(block)]),
    )
    return CryptoHash.of(b"".join(parts))


def inner_hash(block: Block, rest_digest: bytes, roots: Roots) -> CryptoHash:
    """Return the hash of both parts of a header; light clients read only the first."""
    parts = u64(block.height), block.epoch_id, block.next_epoch_id, roots.state, roots.outcomes
    end = u64(block.timestamp_ns), block.next_bp_hash, block.block_merkle_root
    return combine(sha256(b"".join((*parts, *end))).digest(), rest_digest)


def proposals(block: Block) -> list[Proposal]:
    """Return the stakes that were proposed in a block's new chunks."""
    return [proposal for chunk in block.new_chunks for proposal in chunk.validator_proposals]


def endorsements(block: Block) -> list[list[int]]:
    """Return the endorsement bits of each chunk: all set in a new one, none in a repeated one."""
    return [[255] if is_new else [] for is_new in block.chunk_mask]


def encode_validators(validators: Iterable[Proposal]) -> bytes:
    return items([
        _ABSENT + text(validator.account_id) + validator.public_key.encode() + u128(validator.stake)
        for validator in validators
    ])  # fmt: skip


def validators_hash(validators: Iterable[Proposal]) -> CryptoHash:
    """Return the hash by which a header commits to the validators of the next epoch."""
    return CryptoHash.of(encode_validators(validators))


def approved_message(prev_hash: bytes, prev_height: int, height: int) -> bytes:
    """Return the bytes that validators sign to approve a block, for the next block's height."""
    if height == prev_height + 1:
        return _ENDORSEMENT + prev_hash + u64(height)
    return _SKIP + u64(prev_height) + u64(height)
