"""The outcomes of transactions and receipts, and the methods that return receipts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ledgerkit.localnet import rpc_json
from ledgerkit.localnet.chain_types import (
    ActionReceipt,
    Outcome,
    SuccessReceiptId,
    TransactionRecord,
)
from ledgerkit.localnet.rpc import params as read
from ledgerkit.localnet.rpc.errors import HandlerError, Object
from ledgerkit.protocol import CryptoHash

if TYPE_CHECKING:
    from ledgerkit.localnet.execution_errors import Json
    from ledgerkit.localnet.world import World


# Transactions ----------------------------------------------------------------------------


class Execution(Struct):
    """A transaction and the outcomes of its receipts, as far as it is executed."""

    record: TransactionRecord
    outcomes: list[Outcome] = []  # the receipts' outcomes, parents before children
    missing: list[CryptoHash] = []  # receipts that are not executed yet


def find_transaction(world: World, tx_hash: CryptoHash) -> TransactionRecord | None:
    """Return a transaction; None if it is unknown or garbage collected."""
    record = world.transaction(tx_hash)
    if record is None or record.outcome.block_height < world.chain.earliest.height:
        return None
    return record


def find_execution(world: World, tx_hash: CryptoHash) -> Execution | None:
    """Return a transaction with its outcomes; None if it is unknown or garbage collected."""
    record = find_transaction(world, tx_hash)
    if record is None:
        return None
    execution = Execution(record)
    stack = [record.receipt.receipt_id]
    while stack:
        receipt_id = stack.pop()
        outcome = world.outcome(receipt_id)
        if outcome is None:
            execution.missing.append(receipt_id)
        else:
            execution.outcomes.append(outcome)
            stack.extend(reversed(outcome.receipt_ids))
    return execution


def execution_level(world: World, execution: Execution) -> str:
    """Return the execution level that a transaction has reached, as in `wait_until`."""
    # Only FINAL includes refund receipts (nearcore, TxExecutionStatus).
    final = world.chain.final.height
    included_final = execution.record.outcome.block_height <= final
    if not all(_is_refund(world, receipt_id) for receipt_id in execution.missing):
        return "INCLUDED_FINAL" if included_final else "INCLUDED"
    if not included_final:
        return "EXECUTED_OPTIMISTIC"
    last = max((outcome.block_height for outcome in execution.outcomes), default=final)
    return "EXECUTED" if execution.missing or last > final else "FINAL"


def _is_refund(world: World, receipt_id: CryptoHash) -> bool:
    receipt = world.receipt(receipt_id)
    return isinstance(receipt, ActionReceipt) and receipt.is_refund


def result(world: World, execution: Execution, *, receipts: bool) -> Object:
    """Return a transaction's result as `tx` does, or with its receipts if `receipts` is set."""
    record = execution.record
    members = {
        "final_execution_status": execution_level(world, execution),
        "status": _status(world, record.outcome),
        "transaction": rpc_json.transaction(record.signed),
        "transaction_outcome": _outcome(world, record.outcome),
        "receipts_outcome": [_outcome(world, outcome) for outcome in execution.outcomes],
    }
    return members | {"receipts": _receipts(world, execution)} if receipts else members


def _status(world: World, outcome: Outcome | None) -> Json:
    """Return a transaction's status: the status of the receipt with its result."""
    while outcome is not None and isinstance(outcome.status, SuccessReceiptId):
        outcome = world.outcome(outcome.status.receipt_id)
    return "Started" if outcome is None else rpc_json.outcome_status(outcome)


def _outcome(world: World, outcome: Outcome) -> Object:
    block = world.chain.by_height(outcome.block_height)
    if block is None:
        raise LookupError(f"there is no block at the outcome's height {outcome.block_height}")
    return rpc_json.outcome(outcome, block.hash, world.chain.outcome_path(outcome))


def _receipts(world: World, execution: Execution) -> list[Object]:
    """Return the executed receipts, except a local one, which no chunk contains."""
    local = execution.record.receipt.receipt_id if execution.record.is_local else None
    receipts = (world.receipt(outcome.id) for outcome in execution.outcomes if outcome.id != local)
    return [rpc_json.receipt(receipt) for receipt in receipts if receipt is not None]


# Receipts --------------------------------------------------------------------------------


def receipt(world: World, params: Any) -> Object:
    receipt_id = read.member(read.members(params), "receipt_id", read.crypto_hash)
    receipt = world.receipt(receipt_id)
    if receipt is None:
        raise _unknown_receipt(receipt_id)
    return rpc_json.receipt(receipt)


def receipt_to_tx(world: World, params: Any) -> Object:
    receipt_id = read.member(read.members(params), "receipt_id", read.crypto_hash)
    tx_hash = world.origin(receipt_id)
    record = find_transaction(world, tx_hash)
    if record is None:
        raise _unknown_receipt(receipt_id)
    sender = record.signed.transaction.signer_id
    return {"transaction_hash": tx_hash, "sender_account_id": sender}


def _unknown_receipt(receipt_id: CryptoHash) -> HandlerError:
    data = f"Receipt with id {receipt_id} has never been observed on this node"
    return HandlerError("UNKNOWN_RECEIPT", data, {"receipt_id": receipt_id})
