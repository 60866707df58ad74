"""
One response of each service, with all documented members.

Verbs decode fewer members; these models have all documented ones, so that unknown ones are found.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ledgerkit.api.models import chain


class Version(chain.NodeVersion, gc=False):
    """The node's version."""

    commit: Any = None
    rustc_version: Any = None


class SyncInfo(chain.SyncInfo, gc=False):
    """The progress of a node's synchronization."""

    latest_state_root: Any = None
    earliest_block_hash: Any = None
    earliest_block_time: Any = None


class ValidatorInfo(Struct, gc=False):
    """A validator of the current epoch; old nodes say whether it was slashed."""

    account_id: str
    is_slashed: Any = None


class NodeStatus(Struct, gc=False):
    """``status`` of JSON-RPC."""

    chain_id: str
    sync_info: SyncInfo
    version: Version
    protocol_version: int | None = None
    latest_protocol_version: int | None = None
    validators: list[ValidatorInfo] = []
    genesis_hash: Any = None
    rpc_addr: Any = None
    validator_account_id: Any = None
    validator_public_key: Any = None
    node_public_key: Any = None
    node_key: Any = None
    uptime_sec: Any = None
    detailed_debug_status: Any = None


class BlockRow(Struct, gc=False):
    """A block of the Transactions API."""

    block_height: int
    protocol_version: int
    prev_block_height: Any = None
    block_hash: Any = None
    prev_block_hash: Any = None
    block_timestamp: Any = None
    epoch_id: Any = None
    next_epoch_id: Any = None
    chunks_included: Any = None
    author_id: Any = None
    gas_price: Any = None
    block_ordinal: Any = None
    total_supply: Any = None
    num_transactions: Any = None
    num_receipts: Any = None
    gas_burnt: Any = None
    tokens_burnt: Any = None


class BlockRows(Struct, gc=False):
    """``/v0/blocks`` of the Transactions API."""

    blocks: list[BlockRow]


class TransferRow(Struct, gc=False):
    """A transfer of the Transfers API."""

    block_height: str
    account_id: Any = None
    block_timestamp: Any = None
    transaction_id: Any = None
    receipt_id: Any = None
    action_index: Any = None
    log_index: Any = None
    transfer_index: Any = None
    signer_id: Any = None
    predecessor_id: Any = None
    receipt_account_id: Any = None
    other_account_id: Any = None
    asset_id: Any = None
    asset_type: Any = None
    amount: Any = None
    method_name: Any = None
    transfer_type: Any = None
    human_amount: Any = None
    usd_amount: Any = None
    start_of_block_balance: Any = None
    end_of_block_balance: Any = None


class Transfers(Struct, gc=False):
    """``/v0/transfers`` of the Transfers API."""

    transfers: list[TransferRow]
    resume_token: Any = None


class BlockHeader(chain.BlockHeader, gc=False):
    """The header in a block document."""

    next_epoch_id: Any = None
    prev_state_root: Any = None
    block_body_hash: Any = None
    chunk_receipts_root: Any = None
    chunk_headers_root: Any = None
    chunk_tx_root: Any = None
    chunk_execution_root: Any = None
    outcome_root: Any = None
    challenges_root: Any = None
    challenges_result: Any = None
    random_value: Any = None
    validator_proposals: Any = None
    block_ordinal: Any = None
    rent_paid: Any = None
    validator_reward: Any = None
    last_ds_final_block: Any = None
    next_bp_hash: Any = None
    block_merkle_root: Any = None
    epoch_sync_data_hash: Any = None
    approvals: Any = None
    signature: Any = None
    chunk_endorsements: Any = None
    shard_split: Any = None


class ChunkHeader(chain.ChunkHeader, gc=False):
    """A chunk's header in a block document."""

    prev_block_hash: Any = None
    outcome_root: Any = None
    prev_state_root: Any = None
    encoded_merkle_root: Any = None
    encoded_length: Any = None
    rent_paid: Any = None
    validator_reward: Any = None
    outgoing_receipts_root: Any = None
    validator_proposals: Any = None
    congestion_info: Any = None
    bandwidth_requests: Any = None
    proposed_split: Any = None
    signature: Any = None


class BlockDocument(Struct, gc=False):
    """``/v0/block/{height}/headers`` of the block documents."""

    author: str
    header: BlockHeader
    chunks: list[ChunkHeader] = []


class KeyValue(Struct, gc=False):
    """An entry of the key-value data."""

    block_height: int
    predecessor_id: Any = None
    current_account_id: Any = None
    block_timestamp: Any = None
    key: Any = None
    value: Any = None
    receipt_id: Any = None
    action_index: Any = None
    tx_hash: Any = None
    signer_id: Any = None


class KeyValues(Struct, gc=False):
    """``/v0/latest/{contract}/{predecessor}/{key}`` of the key-value data."""

    entries: list[KeyValue]
    page_token: Any = None
