"""The commitments of the chain: whole block headers, Merkle paths and light-client blocks."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from ledgerkit.api.models import chain
from ledgerkit.api.models.chain import UInt63

UInt8 = Annotated[int, Meta(ge=0, lt=2**8)]
UInt32 = Annotated[int, Meta(ge=0, lt=2**32)]
Nanoseconds = Annotated[str, Meta(pattern="^[0-9]{1,19}$")]
UInt128Text = Annotated[str, Meta(pattern="^[0-9]{1,39}$")]

NO_HASH = "1" * 32  # 32 zero bytes, instead of a hash


class PathItem(Struct, frozen=True, gc=False):
    """A step of a Merkle path: the neighbour's hash, and its side."""

    hash: str
    direction: Literal["Left", "Right"]


class OutcomePath(Struct, frozen=True, gc=False):
    """The path from an outcome to the root of its shard."""

    id: str
    proof: list[PathItem] = []


class Validator(Struct, frozen=True, gc=False):
    """A validator, its key and its stake."""

    account_id: str
    public_key: str
    stake: UInt128Text
    validator_stake_struct_version: Literal["V1"] | None = None


class SlashedValidator(Struct, frozen=True, gc=False):
    """A validator that lost its stake."""

    account_id: str
    is_double_sign: bool


class LiteHeader(Struct, frozen=True, gc=False):
    """The part of a header that light clients read: `inner_lite`."""

    height: UInt63
    epoch_id: str
    next_epoch_id: str
    prev_state_root: str
    outcome_root: str
    timestamp_nanosec: Nanoseconds
    next_bp_hash: str
    block_merkle_root: str


class Header(LiteHeader, frozen=True, gc=False, kw_only=True):
    """A whole header; earlier versions lack the members of later versions."""

    hash: str
    prev_hash: str
    chunk_receipts_root: str
    chunk_headers_root: str
    chunk_tx_root: str
    random_value: str
    chunk_mask: list[bool]
    gas_price: UInt128Text
    total_supply: UInt128Text
    last_final_block: str
    last_ds_final_block: str
    latest_protocol_version: UInt32
    chunks_included: UInt63
    approvals: list[str | None]
    signature: str
    validator_proposals: list[Validator]
    challenges_root: str = NO_HASH
    challenges_result: list[SlashedValidator] = []
    prev_height: UInt63 | None = None
    block_ordinal: UInt63 | None = None
    epoch_sync_data_hash: str | None = None
    block_body_hash: str | None = None
    chunk_endorsements: list[list[UInt8]] | None = None
    shard_split: tuple[UInt63, str] | None = None

    @property
    def time_ns(self) -> int:
        """Nanoseconds since 1970."""
        return int(self.timestamp_nanosec)


class WholeBlock(chain.Block, gc=False):
    """``block`` with its whole header, from which the hash can be computed."""

    header: Header  # type: ignore[assignment]  # it has all members that are read


class LiteBlock(Struct, frozen=True, gc=False):
    """A block in a proof: the parts of its hash."""

    prev_block_hash: str
    inner_rest_hash: str
    inner_lite: LiteHeader


class LightClientBlock(LiteBlock, frozen=True, gc=False, kw_only=True):
    """``next_light_client_block``: a block, and the approvals of the next block."""

    next_block_inner_hash: str
    next_bps: list[Validator] | None = None
    approvals_after_next: list[str | None]


class NoBlock(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """``next_light_client_block`` without a newer block: an empty object."""


class OutcomeProof(Struct, frozen=True, gc=False):
    """``light_client_proof``: the path from an outcome to a trusted block."""

    outcome_proof: OutcomePath
    outcome_root_proof: list[PathItem]
    block_header_lite: LiteBlock
    block_proof: list[PathItem]
