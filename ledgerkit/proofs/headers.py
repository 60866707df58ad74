"""
Hashes of block headers, recomputed from the JSON that nodes and services send.

A block's hash commits to every member of its header except `timestamp` (`timestamp_nanosec` is
committed), `chunks_included` since version 2, `rent_paid`, `validator_reward`, the challenges
since version 6, and `signature`, by which the block's producer signs the hash.

Source: nearcore, core/primitives/src/block_header.rs, BlockHeaderInnerLite, BlockHeaderInnerRest
to BlockHeaderInnerRestV6, and BlockHeader::compute_hash.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from ledgerkit import validation
from ledgerkit.api.models.commitments import NO_HASH, Header, LiteHeader, Validator
from ledgerkit.errors import DecodeError, InvalidRequestError, ProofError, cut
from ledgerkit.proofs.merkle import combine
from ledgerkit.protocol import borsh
from ledgerkit.protocol.types import Balance, PublicKey, Signature

_ABSENT, _PRESENT = b"\0", b"\1"

# The first versions with, or without, some members.
_FIRST_WITH_ORDINAL = 3
_FIRST_WITH_BODY_HASH = 4
_FIRST_WITH_ENDORSEMENTS = 5
_FIRST_WITHOUT_CHALLENGES = 6


class HeaderHash(NamedTuple):
    """The hash of a block and its parts, named as in `BlockHeader`."""

    lite: bytes
    rest: bytes
    prev: bytes

    @property
    def inner(self) -> bytes:
        return combine(self.lite, self.rest)

    @property
    def block(self) -> bytes:
        return combine(self.inner, self.prev)


def lite_hash(header: LiteHeader) -> bytes:
    """Return the hash of the part of a header that light clients read."""
    hashes = decode_hashes(
        *(header.epoch_id, header.next_epoch_id, header.prev_state_root, header.outcome_root),
        *(header.next_bp_hash, header.block_merkle_root),
    )
    parts = borsh.u64(header.height), *hashes[:4], borsh.u64(int(header.timestamp_nanosec))
    return sha256(b"".join((*parts, *hashes[4:]))).digest()


def versions(header: Header) -> tuple[int, ...]:
    if header.shard_split is not None:
        return (6,)
    if header.chunk_endorsements is not None:
        return 5, 6
    if header.block_body_hash is not None:
        return (4,)
    return (3,) if header.block_ordinal is not None else (2, 1)


def rest_hash(header: Header, version: int) -> bytes:
    hashes = decode_hashes(
        *(header.chunk_receipts_root, header.chunk_headers_root, header.chunk_tx_root),
        *(header.challenges_root, header.random_value, header.last_final_block),
        *(header.last_ds_final_block, header.block_body_hash or NO_HASH),
    )
    receipts, chunks, transactions, challenges, random_value, *final, body = hashes
    has_ordinal = version >= _FIRST_WITH_ORDINAL
    has_challenges = version < _FIRST_WITHOUT_CHALLENGES
    proposals = [encode_validator(v, is_versioned=has_ordinal) for v in header.validator_proposals]
    challenged = header.challenges_result
    slashed = [borsh.text(v.account_id) + bytes([v.is_double_sign]) for v in challenged]
    parts = [
        body if version >= _FIRST_WITH_BODY_HASH else b"",
        *(receipts, chunks, transactions),
        borsh.u64(header.chunks_included) if version == 1 else b"",
        challenges if has_challenges else b"",
        *(random_value, borsh.items(proposals), borsh.blob(bytes(header.chunk_mask))),
        *(_u128(header.gas_price), _u128(header.total_supply)),
        borsh.items(slashed) if has_challenges else b"",
        *final,
        _encode_numbers(header) if has_ordinal else b"",
        borsh.items([_encode_option(approval) for approval in header.approvals]),
        borsh.u32(header.latest_protocol_version),
        _encode_endorsements(header) if version >= _FIRST_WITH_ENDORSEMENTS else b"",
        b"" if has_challenges else _encode_split(header),
    ]
    return sha256(b"".join(parts)).digest()


def encode_validator(validator: Validator, *, is_versioned: bool = True) -> bytes:
    """Encode a validator in Borsh; headers before version 3 lack the tag of its version."""
    key = PublicKey.from_text(validator.public_key, "public_key").encode()
    tag = b"\0" if is_versioned else b""  # V1, the only variant
    return tag + borsh.text(validator.account_id) + key + _u128(validator.stake)


def _encode_numbers(header: Header) -> bytes:
    """Encode the ordinal, the previous height and `epoch_sync_data_hash`."""
    numbers = borsh.u64(header.block_ordinal or 0) + borsh.u64(header.prev_height or 0)
    if header.epoch_sync_data_hash is None:
        return numbers + _ABSENT
    return numbers + _PRESENT + decode_hashes(header.epoch_sync_data_hash)[0]


def _encode_endorsements(header: Header) -> bytes:
    return borsh.items([borsh.blob(bytes(bits)) for bits in header.chunk_endorsements or ()])


def _encode_split(header: Header) -> bytes:
    if header.shard_split is None:
        return _ABSENT
    shard_id, boundary = header.shard_split
    return _PRESENT + borsh.u64(shard_id) + borsh.text(boundary)


def check_header(header: Header) -> HeaderHash:
    """Recompute the hash of a header; raise `ProofError` if the header has another hash."""
    stated, prev_hash = decode_hashes(header.hash, header.prev_hash)
    lite = lite_hash(header)
    for version in versions(header):
        computed = HeaderHash(lite, rest_hash(header, version), prev_hash)
        if computed.block == stated:
            return computed
    msg = f"The header of block {header.height} does not have the hash {header.hash}"
    raise ProofError(msg, block_hash=header.hash)


def check_producer(header: Header, public_key: str) -> None:
    """Check that a block is signed with its producer's key; raise `ProofError` if not."""
    if not verify_ed25519(public_key, decode_hashes(header.hash)[0], header.signature):
        msg = f"Block {header.height} is not signed with the key {public_key} of its producer"
        raise ProofError(msg, block_hash=header.hash)


def verify_ed25519(public_key: str, message: bytes, signature: str) -> bool:
    from ledgerkit.protocol import curves

    try:
        key, signed = PublicKey.from_text(public_key), Signature.from_text(signature)
    except InvalidRequestError:
        return False
    if {key.curve, signed.curve} != {"ed25519"}:
        return False
    return curves.verify("ed25519", key.data, message, signed.data)


def decode_hashes(*texts: str) -> list[bytes]:
    """Decode hashes; raise `DecodeError` for a text that is not 32 bytes in base58."""
    hashes = []
    for text in texts:
        data = validation.decode_base58(text, validation.HASH_BYTES)
        if data is None:
            raise DecodeError(f"{cut(text)!r} is not a hash, 32 bytes in base58", path="hash")
        hashes.append(data)
    return hashes


def _u128(text: str) -> bytes:
    return borsh.u128(Balance(text))


def _encode_option(signature: str | None) -> bytes:
    if signature is None:
        return _ABSENT
    return _PRESENT + Signature.from_text(signature).encode()
