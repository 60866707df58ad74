"""
JSON-RPC responses about blocks, accounts, keys, state and the node.

`unread` lists documented members that nothing reads; `doctor` reports all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ledgerkit.api.models.other_kinds import OtherTransaction

T = TypeVar("T")

# Heights, shards and nanoseconds: frames store them as nullable Int64.
UInt63 = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Envelope(Struct, Generic[T], gc=False):
    """A JSON-RPC 2.0 response: a result or an error."""

    result: T | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class AtBlock(Struct, gc=False, kw_only=True):
    """A result of `query`, with its block."""

    block_height: int | None = None
    block_hash: str | None = None


class QueryFailure(AtBlock, gc=False):
    """An error that `query` sends as a result."""

    error: str


class Account(AtBlock, gc=False):
    """``view_account``."""

    unread: ClassVar = ("state", "storage_paid_at")

    amount: str
    locked: str
    code_hash: str
    storage_usage: int
    global_contract_hash: str | None = None
    global_contract_account_id: str | None = None
    bootstrap_nonce: int | None = None


class AccessKey(AtBlock, gc=False):
    """``view_access_key``; the permission is a string or an object of one member."""

    nonce: int
    permission: str | dict[str, Any]


class KeyEntry(Struct, gc=False):
    """One entry of a key list."""

    public_key: str
    access_key: AccessKey


class KeyList(AtBlock, gc=False):
    """``view_access_key_list``."""

    keys: list[KeyEntry]
    last_key: str | None = None


class CallResult(AtBlock, gc=False):
    """``call_function``: the returned bytes as integers."""

    result: list[int]
    logs: list[str] = []


class StateItem(Struct, gc=False):
    """A key of a contract's state and its value; base64 on the wire."""

    key: bytes
    value: bytes


class State(AtBlock, gc=False):
    """``view_state``."""

    values: list[StateItem]
    last_key: bytes | None = None


class Code(AtBlock, gc=False):
    """``view_code``; base64 on the wire."""

    code_base64: bytes
    hash: str


class ChunkHeader(Struct, gc=False):
    """A chunk's header; ``gas_used`` was burnt by the shard's previous chunk."""

    unread: ClassVar = """
        prev_block_hash tx_root prev_state_root encoded_merkle_root encoded_length rent_paid
        validator_reward outgoing_receipts_root validator_proposals congestion_info
        bandwidth_requests proposed_split signature
    """.split()

    chunk_hash: str
    shard_id: int
    height_created: int
    height_included: UInt63
    gas_used: int
    gas_limit: int
    balance_burnt: str
    outcome_root: str | None = None


class BlockHeader(Struct, gc=False):
    """A block's header."""

    unread: ClassVar = """
        prev_state_root block_body_hash chunk_receipts_root chunk_headers_root chunk_tx_root
        chunk_execution_root outcome_root challenges_root challenges_result random_value
        validator_proposals block_ordinal rent_paid validator_reward last_ds_final_block
        next_bp_hash block_merkle_root epoch_sync_data_hash approvals signature
        chunk_endorsements shard_split
    """.split()

    height: UInt63
    hash: str
    prev_hash: str
    epoch_id: str
    chunks_included: int
    gas_price: str
    total_supply: str
    timestamp: UInt63 | None = None
    timestamp_nanosec: Annotated[str, Meta(pattern="^[0-9]{1,19}$")] | None = None
    prev_height: UInt63 | None = None
    next_epoch_id: str | None = None
    last_final_block: str | None = None
    latest_protocol_version: int | None = None
    chunk_mask: list[bool] | None = None

    @property
    def time_ns(self) -> int | None:
        """Nanoseconds since 1970; old nodes send only the integer."""
        return int(self.timestamp_nanosec) if self.timestamp_nanosec else self.timestamp


class Block(Struct, gc=False):
    """``block``; some services leave out the headers of its chunks."""

    author: str
    header: BlockHeader
    chunks: list[ChunkHeader] | None = None

    def new_chunks(self) -> list[ChunkHeader]:
        """List the new chunks of this block; the others are repeated from earlier blocks."""
        return [c for c in self.chunks or () if c.height_included == self.header.height]


class ChunkTransaction(Struct, gc=False):
    """A signed transaction in a chunk; only gas keys have a `nonce_index`."""

    hash: str
    signer_id: str
    receiver_id: str
    public_key: str
    nonce: int
    actions: list[Any]
    nonce_index: int | None = None


class AnyReceipt(Struct, gc=False):
    """A receipt whose members are not read."""


class Chunk(Struct, gc=False):
    """``chunk``."""

    author: str
    header: ChunkHeader
    transactions: list[ChunkTransaction | OtherTransaction] = []
    receipts: Sequence[AnyReceipt] = ()


class GasPrice(Struct, gc=False):
    """``gas_price``."""

    gas_price: str


class Validator(Struct, gc=False):
    """A validator of this or the next epoch, or a proposal."""

    account_id: str
    public_key: str
    stake: str
    shards: list[int] | None = None
    num_produced_blocks: int | None = None
    num_expected_blocks: int | None = None
    num_produced_chunks: int | None = None
    num_expected_chunks: int | None = None
    num_produced_endorsements: int | None = None
    num_expected_endorsements: int | None = None


class Kickout(Struct, gc=False):
    """A validator that lost its seat, and the reason."""

    account_id: str
    reason: str | dict[str, Any] | None = None


class Validators(Struct, gc=False):
    """``validators``."""

    current_validators: list[Validator]
    next_validators: list[Validator] = []
    current_proposals: list[Validator] = []
    prev_epoch_kickout: list[Kickout] = []
    epoch_height: int | None = None
    epoch_start_height: int | None = None


class NodeVersion(Struct, gc=False):
    """The node's version."""

    unread: ClassVar = ["commit", "rustc_version"]

    version: str
    build: str | None = None


class SyncInfo(Struct, gc=False):
    """The progress of a node's synchronization."""

    unread: ClassVar = ["latest_state_root", "earliest_block_hash", "earliest_block_time"]

    latest_block_hash: str
    latest_block_height: int
    latest_block_time: str
    syncing: bool
    earliest_block_height: int | None = None
    epoch_id: str | None = None
    epoch_start_height: int | None = None


class Status(Struct, gc=False):
    """``status``."""

    unread: ClassVar = """
        genesis_hash rpc_addr validator_account_id validator_public_key node_public_key node_key
        uptime_sec detailed_debug_status
    """.split()

    chain_id: str
    sync_info: SyncInfo
    version: NodeVersion
    protocol_version: int | None = None
    latest_protocol_version: int | None = None
    validators: list[Any] = []


class Change(Struct, gc=False):
    """One change of state."""

    type: str
    cause: dict[str, Any]
    change: dict[str, Any]


class Changes(Struct, gc=False):
    """``changes``."""

    block_hash: str
    changes: list[Change]


class FtMetadata(Struct, gc=False):
    """A token's metadata with the members of NEP-148; contracts send any JSON type."""

    spec: Any = None
    name: Any = None
    symbol: Any = None
    icon: Any = None
    reference: Any = None
    reference_hash: Any = None
    decimals: Any = None


class StakingPosition(Struct, gc=False):
    """A staking pool's ``get_account``."""

    staked_balance: str | int
    unstaked_balance: str | int
    can_withdraw: bool


class Delegator(Struct, gc=False):
    """An account of a staking pool's ``get_accounts``."""

    account_id: str
    staked_balance: str | int
    unstaked_balance: str | int


class FeeFraction(Struct, gc=False):
    """A staking pool's ``get_reward_fee_fraction``: the owner's share of the rewards."""

    numerator: int
    denominator: int


class NftMetadata(Struct, gc=False):
    """A token's metadata; some contracts send numbers instead of texts and vice versa."""

    title: Any = None
    description: Any = None
    media: Any = None
    media_hash: Any = None
    copies: Any = None
    issued_at: Any = None
    expires_at: Any = None
    starts_at: Any = None
    updated_at: Any = None
    extra: Any = None
    reference: Any = None
    reference_hash: Any = None


class NftToken(Struct, gc=False):
    """An NFT from a contract's view method."""

    token_id: str
    owner_id: Any = None
    metadata: NftMetadata | None = None
    approved_account_ids: dict[str, Any] | None = None


NFT_MEMBERS: dict[str, Any] = {
    "metadata": NftMetadata | None,
    "approved_account_ids": dict[str, Any] | None,
}


class GasKeyNonces(AtBlock, gc=False):
    """``view_gas_key_nonces``: the nonces by index."""

    nonces: list[int]
