"""The hash of a header of version 6, of which no block was recorded: its bytes are listed here."""

import struct
from hashlib import sha256

import msgspec
import pytest

from ledgerkit import proofs
from ledgerkit.api.models.commitments import Header
from ledgerkit.errors import ProofError
from ledgerkit.protocol.types import to_base58

HASHES = {
    name: bytes([at]) * 32
    for at, name in enumerate(
        (
            *("prev_hash", "epoch_id", "next_epoch_id", "prev_state_root", "outcome_root"),
            *("next_bp_hash", "block_merkle_root", "block_body_hash", "chunk_receipts_root"),
            *("chunk_headers_root", "chunk_tx_root", "random_value", "last_final_block"),
            "last_ds_final_block",
        ),
        start=1,
    )
}
NUMBERS = {"height": 7, "block_ordinal": 5, "prev_height": 6, "latest_protocol_version": 88}


def sha(*parts: bytes) -> bytes:
    return sha256(b"".join(parts)).digest()


def u64(*values: int) -> bytes:
    """Return the Borsh of numbers of 64 bits."""
    return struct.pack(f"<{len(values)}Q", *values)


def header(split: bytes, **members: object) -> Header:
    """Return a header with the hash that its bytes have when they end with these of a split."""
    h = HASHES
    lite = sha(
        *(u64(7), h["epoch_id"], h["next_epoch_id"], h["prev_state_root"], h["outcome_root"]),
        *(u64(123), h["next_bp_hash"], h["block_merkle_root"]),
    )
    rest = sha(
        *(h["block_body_hash"], h["chunk_receipts_root"], h["chunk_headers_root"]),
        *(h["chunk_tx_root"], h["random_value"]),
        b"\0\0\0\0",  # no proposals
        b"\2\0\0\0\1\0",  # the chunk mask
        *(u64(9, 0), u64(11, 0)),  # gas price and supply, of 128 bits
        *(h["last_final_block"], h["last_ds_final_block"]),
        *(u64(5, 6), b"\0"),  # the ordinal, the height before, no hash for synchronization
        b"\1\0\0\0\0",  # one approval, which is absent
        struct.pack("<I", 88),
        b"\1\0\0\0\1\0\0\0\xff",  # the endorsements
        split,
    )
    document: dict[str, object] = {name: to_base58(value) for name, value in h.items()}
    document |= {"timestamp_nanosec": "123", "gas_price": "9", "total_supply": "11", **NUMBERS}
    document |= {"chunk_mask": [True, False], "chunks_included": 1, "approvals": [None]}
    document |= {"validator_proposals": [], "chunk_endorsements": [[255]], "signature": ""}
    document |= {"hash": to_base58(sha(sha(lite, rest), h["prev_hash"]))}
    return msgspec.convert(document | members, Header)


def test_a_header_of_version_6_has_a_split_in_place_of_challenges():
    """Its bytes end with the shard to split and the border; challenges are not among them."""
    # Source: nearcore, docs/architecture, dynamic resharding: BlockHeaderInnerRestV6 has "all V5
    # fields except deprecated challenges_root and challenges_result", and `shard_split`.
    split = b"\1" + u64(3) + b"\4\0\0\0m.tg"
    for good in (header(b"\0"), header(split, shard_split=[3, "m.tg"])):
        assert to_base58(proofs.check_header(good).block) == good.hash
    for wrong in (header(b""), header(split), header(split, shard_split=[3, "n.tg"])):
        with pytest.raises(ProofError, match="does not have the hash"):
            proofs.check_header(wrong)
