"""
The rules of a light client for a block: its signers and their stake.

Source: the light client's specification of the protocol, and nearcore,
core/primitives/src/views.rs, LightClientBlockView, and block_header.rs, ApprovalInner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from ledgerkit.errors import ProofError
from ledgerkit.proofs.headers import (
    HeaderHash,
    decode_hashes,
    encode_validator,
    lite_hash,
    verify_ed25519,
)
from ledgerkit.proofs.merkle import combine, root_from
from ledgerkit.protocol import borsh
from ledgerkit.protocol.types import CryptoHash

if TYPE_CHECKING:
    from ledgerkit.api.models.commitments import (
        LightClientBlock,
        LiteBlock,
        LiteHeader,
        PathItem,
        Validator,
    )

_ENDORSEMENT, _SKIP = b"\0", b"\1"  # the variants of ApprovalInner


def block_hashes(block: LiteBlock) -> HeaderHash:
    rest_hash, prev_hash = decode_hashes(block.inner_rest_hash, block.prev_block_hash)
    return HeaderHash(lite_hash(block.inner_lite), rest_hash, prev_hash)


def message_after_next(block: LightClientBlock) -> bytes:
    """Return the bytes by which validators approve the next block, two heights later."""
    (inner_hash,) = decode_hashes(block.next_block_inner_hash)
    next_hash = combine(inner_hash, block_hashes(block).block)
    return _ENDORSEMENT + next_hash + borsh.u64(block.inner_lite.height + 2)


@dataclass(frozen=True)
class Head:
    """A trusted block, and the validators of its epoch and of the next epoch, by epoch id."""

    block_hash: CryptoHash
    header: LiteHeader
    validators: Mapping[str, Sequence[Validator]]

    def advance(self, block: LightClientBlock) -> Head:
        """Return the head after a block; raise `ProofError` if the block proves nothing new."""
        block_hash = CryptoHash(block_hashes(block).block)
        header = block.inner_lite
        if header.height <= self.header.height:
            raise _refuse(block_hash, f"height {header.height} is not above {self.header.height}")
        epochs = self.header.epoch_id, self.header.next_epoch_id
        validators = self.validators.get(header.epoch_id)
        if header.epoch_id not in epochs or validators is None:
            raise _refuse(block_hash, f"its epoch {header.epoch_id} has no known validators")
        if header.epoch_id == epochs[1] and block.next_bps is None:
            raise _refuse(block_hash, "the validators of the epoch after it are missing")
        check_approvals(
            block_hash, block.approvals_after_next, validators, message_after_next(block)
        )
        by_epoch = {header.epoch_id: validators}
        if block.next_bps is not None:
            check_validators(block_hash, block.next_bps, header.next_bp_hash)
            by_epoch[header.next_epoch_id] = block.next_bps
        elif header.next_epoch_id in self.validators:
            by_epoch[header.next_epoch_id] = self.validators[header.next_epoch_id]
        return Head(block_hash, header, by_epoch)

    def check_block(self, block: LiteBlock, path: Sequence[PathItem]) -> None:
        block_hash = block_hashes(block).block
        if block_hash != self.block_hash:
            (expected,) = decode_hashes(self.header.block_merkle_root)
            if root_from(decode_path(path), block_hash) != expected:
                reason = f"it is not among the blocks before {self.block_hash}"
                raise _refuse(CryptoHash(block_hash), reason)


def check_validators(
    block_hash: CryptoHash, validators: Sequence[Validator], next_bp_hash: str
) -> None:
    """Check the validators of the next epoch against the hash in a header."""
    stated = decode_hashes(next_bp_hash)[0]
    tags = (True, False)
    encodings = ([encode_validator(v, is_versioned=tag) for v in validators] for tag in tags)
    if all(sha256(borsh.items(packed)).digest() != stated for packed in encodings):
        raise _refuse(block_hash, "the validators of the next epoch are not those it commits to")


def approved_message(prev_hash: bytes, prev_height: int, height: int) -> bytes:
    """Return the bytes that the approvals in a block sign: its predecessor and its height."""
    is_next = height == prev_height + 1
    subject = _ENDORSEMENT + prev_hash if is_next else _SKIP + borsh.u64(prev_height)
    return subject + borsh.u64(height)


def check_approvals(
    block_hash: CryptoHash,
    approvals: Sequence[str | None],
    validators: Sequence[Validator],
    message: bytes,
) -> None:
    """
    Check that validators with more than two thirds of the stake signed a message.

    In an epoch's last blocks, `approvals` also lists the next epoch's validators, after these.
    """
    total = sum(int(validator.stake) for validator in validators)
    approving = 0
    for validator, approval in zip(validators, approvals, strict=False):
        if approval is None:
            continue
        if not verify_ed25519(validator.public_key, message, approval):
            raise _refuse(block_hash, f"the approval of {validator.account_id} is not its own")
        approving += int(validator.stake)
    if approving <= total * 2 // 3:
        share = f"{approving} of {total} yoctoNEAR of stake"
        raise _refuse(block_hash, f"validators with {share} approved it; it takes two thirds")


def decode_path(path: Sequence[PathItem]) -> list[tuple[bytes, bool]]:
    """Decode the hashes of a path, with True for a hash on the left."""
    hashes = decode_hashes(*(item.hash for item in path))
    sides = (item.direction == "Left" for item in path)
    return list(zip(hashes, sides, strict=True))


def _refuse(block_hash: CryptoHash, reason: str) -> ProofError:
    return ProofError(f"Block {block_hash} is not proved: {reason}", block_hash=str(block_hash))
