"""The rows and documents of the Transactions API."""

# Source: fastnear/explorer-api, src/types.rs; for the documents FastNEAR's indexer,
# src/transactions.rs and src/types.rs, and recorded responses.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.localnet import rpc_json
from ledgerkit.localnet.chain_types import Block, Failure, Outcome
from ledgerkit.localnet.rpc_json import base58
from ledgerkit.localnet.services.transaction_index import (
    ROLES,
    Appearance,
    IndexedBlock,
    IndexedTransaction,
    ReceiptRow,
)

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World

_Object = dict[str, Any]


# Rows --------------------------------------------------------------------------------------


def account_row(account_id: str, transaction: IndexedTransaction) -> _Object:
    roles = transaction.roles[account_id]
    return {
        "account_id": account_id,
        **_position(transaction),
        **{role: role in roles for role in ROLES},
        "is_success": transaction.is_success,
    }


def _position(transaction: IndexedTransaction) -> _Object:
    return {
        "transaction_hash": base58(transaction.record.signed.hash),
        "tx_block_height": transaction.block.height,
        "tx_block_timestamp": str(transaction.block.timestamp_ns),
        "tx_index": transaction.index,
    }


def transaction_row(world: World, transaction: IndexedTransaction) -> _Object:
    tx = transaction.record.signed.transaction
    real_signer_id, real_receiver_id = transaction.real_accounts
    # The indexer counts the receipts only, not the transaction's own gas.
    outcomes = [row.outcome for row in transaction.receipts if row.outcome is not None]
    return {
        **_position(transaction),
        "signer_id": tx.signer_id,
        "tx_block_hash": base58(transaction.block.hash),
        "last_block_height": transaction.receipts[-1].block.height,
        "is_completed": not transaction.missing,
        "shard_id": world.settings.shard_ids[transaction.record.outcome.shard_id],
        "receiver_id": tx.receiver_id,
        "signer_public_key": base58(tx.public_key),
        "priority_fee": 0,
        "nonce": tx.nonce,
        "is_relayed": transaction.delegate is not None,
        "real_signer_id": real_signer_id,
        "real_receiver_id": real_receiver_id,
        "is_success": transaction.is_success,
        "gas_burnt": sum(outcome.gas_burnt for outcome in outcomes),
        "tokens_burnt": str(sum(outcome.tokens_burnt for outcome in outcomes)),
    }


def receipt_row(world: World, row: ReceiptRow) -> _Object:
    """Build the row of a receipt that was executed, or of a data receipt that was used."""
    receipt = row.appearance.receipt
    return {
        "receipt_id": base58(receipt.receipt_id),
        "block_height": row.block.height,
        "block_timestamp": str(row.block.timestamp_ns),
        "receipt_index": row.index,
        "appear_block_height": row.appearance.block.height,
        "appear_receipt_index": row.appearance.index,
        **_position(row.transaction),
        "predecessor_id": receipt.predecessor_id,
        "receiver_id": receipt.receiver_id,
        "receipt_type": "Data" if row.outcome is None else "Action",
        "priority": 0,
        "shard_id": world.settings.shard_ids[row.shard],
        "is_success": row.outcome is None or not isinstance(row.outcome.status, Failure),
    }


def block_row(entry: IndexedBlock, version: int) -> _Object:
    block = entry.block
    return {
        "block_height": block.height,
        "prev_block_height": block.prev_height,
        "block_hash": base58(block.hash),
        "prev_block_hash": base58(block.prev_hash),
        "block_timestamp": str(block.timestamp_ns),
        "epoch_id": base58(block.epoch_id),
        "next_epoch_id": base58(block.next_epoch_id),
        "chunks_included": len(block.new_chunks),
        "author_id": block.author,
        "protocol_version": version,
        "gas_price": str(block.gas_price),
        "block_ordinal": block.ordinal,
        "total_supply": str(block.total_supply),
        "num_transactions": len(entry.transactions),
        "num_receipts": len(entry.receipts),
        "gas_burnt": str(sum(chunk.gas_used for chunk in block.new_chunks)),
        "tokens_burnt": str(sum(chunk.balance_burnt for chunk in block.new_chunks)),
    }


# Documents ---------------------------------------------------------------------------------


def document(transaction: IndexedTransaction) -> _Object:
    record, block = transaction.record, transaction.block
    return {
        "transaction": rpc_json.transaction(record.signed),
        "execution_outcome": _outcome(record.outcome, block, transaction.index),
        "receipts": [
            {
                "execution_outcome": _outcome(row.outcome, row.block, row.index),
                "receipt": _receipt(row.appearance),
            }
            for row in transaction.receipts
            if row.outcome is not None
        ],
        "data_receipts": [_receipt(row.appearance) for row in transaction.data_receipts],
    }


def _outcome(outcome: Outcome, block: Block, index: int) -> _Object:
    """Build an outcome; the indexer removes its proof and gas profile."""
    members = rpc_json.outcome(outcome, block.hash)
    del members["proof"]
    members["outcome"]["metadata"]["gas_profile"] = None
    return members | {
        "block_height": block.height,
        "block_timestamp": block.timestamp_ns,
        "index": index,
    }


def _receipt(appearance: Appearance) -> _Object:
    members, block = rpc_json.receipt(appearance.receipt), appearance.block
    contents = members["receipt"].get("Action", {})
    if contents.get("refund_to", "") is None:
        del contents["refund_to"]  # absent from the recorded documents
    return members | {
        "block_hash": base58(block.hash),
        "block_height": block.height,
        "block_timestamp": block.timestamp_ns,
        "receipt_index": appearance.index,
    }
