"""What became of transactions and receipts, and what a block changed."""

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
from ledgerkit.localnet.rpc.errors import HandlerError
from ledgerkit.protocol import CryptoHash

if TYPE_CHECKING:
    from ledgerkit.localnet.execution_errors import Json
    from ledgerkit.localnet.rpc.errors import Object
    from ledgerkit.localnet.world import World


# Transactions ----------------------------------------------------------------------------


class Progress(Struct, frozen=True):
    """How far a transaction is."""

    record: TransactionRecord
    outcomes: tuple[Outcome, ...]  # of its receipts, each before those that it made
    missing: tuple[CryptoHash, ...]  # receipts that were not executed yet


def find(world: World, tx_hash: CryptoHash) -> TransactionRecord | None:
    """Find a transaction in a block that is still kept."""
    record = world.transaction(tx_hash)
    dropped = record is not None and record.outcome.block_height < world.chain.earliest.height
    return None if dropped else record


def progress(world: World, record: TransactionRecord) -> Progress:
    """Follow a transaction through all its receipts."""
    outcomes: list[Outcome] = []
    missing: list[CryptoHash] = []
    ahead = [record.receipt.receipt_id]
    while ahead:
        receipt_id = ahead.pop()
        outcome = world.outcome(receipt_id)
        if outcome is None:
            missing.append(receipt_id)
        else:
            outcomes.append(outcome)
            ahead.extend(reversed(outcome.receipt_ids))
    return Progress(record, tuple(outcomes), tuple(missing))


def level(world: World, seen: Progress) -> str:
    """Name how far a transaction is: refunds count for the last level only."""
    final = world.chain.final.height
    included_final = seen.record.outcome.block_height <= final
    if not all(_is_refund(world, receipt_id) for receipt_id in seen.missing):
        return "INCLUDED_FINAL" if included_final else "INCLUDED"
    if not included_final:
        return "EXECUTED_OPTIMISTIC"
    last = max((outcome.block_height for outcome in seen.outcomes), default=final)
    return "EXECUTED" if seen.missing or last > final else "FINAL"


def _is_refund(world: World, receipt_id: CryptoHash) -> bool:
    """Tell whether a receipt gives back what was not used."""
    receipt = world.receipt(receipt_id)
    return isinstance(receipt, ActionReceipt) and receipt.is_refund


def result(world: World, seen: Progress, *, receipts: bool) -> Object:
    """Show a transaction and everything that followed, with its receipts if wanted."""
    record = seen.record
    shown = {
        "final_execution_status": level(world, seen),
        "status": _status(seen),
        "transaction": rpc_json.transaction(record.signed),
        "transaction_outcome": _outcome(world, record.outcome),
        "receipts_outcome": [_outcome(world, outcome) for outcome in seen.outcomes],
    }
    return shown | {"receipts": _receipts(world, seen)} if receipts else shown


def _status(seen: Progress) -> Json:
    """Show how a transaction ended: as the receipt did that tells its result."""
    outcomes = {outcome.id: outcome for outcome in (seen.record.outcome, *seen.outcomes)}
    ended: Outcome | None = seen.record.outcome
    while ended is not None:
        if not isinstance(ended.status, SuccessReceiptId):
            return rpc_json.outcome_status(ended)
        ended = outcomes.get(ended.status.receipt_id)
    return "Started"


def _outcome(world: World, outcome: Outcome) -> Object:
    """Show an outcome, and where it is."""
    block = world.chain.by_height(outcome.block_height)
    if block is None:
        raise LookupError(f"an outcome is of height {outcome.block_height}, which was skipped")
    return rpc_json.outcome(outcome, block.hash)


def _receipts(world: World, seen: Progress) -> list[Object]:
    """Show the receipts that were executed, but for one that never left its own block."""
    local = seen.record.receipt.receipt_id if seen.record.is_local else None
    found = (world.receipt(outcome.id) for outcome in seen.outcomes if outcome.id != local)
    return [rpc_json.receipt(receipt) for receipt in found if receipt is not None]


# Receipts --------------------------------------------------------------------------------


def receipt(world: World, params: Any) -> Object:
    """Answer `EXPERIMENTAL_receipt`."""
    receipt_id = read.member(read.members(params), "receipt_id", read.crypto_hash)
    found = world.receipt(receipt_id)
    if found is None:
        raise _unknown(receipt_id)
    return rpc_json.receipt(found)


def receipt_to_tx(world: World, params: Any) -> Object:
    """Answer `EXPERIMENTAL_receipt_to_tx`."""
    receipt_id = read.member(read.members(params), "receipt_id", read.crypto_hash)
    makers = _makers(world)
    maker: CryptoHash | None = receipt_id
    while maker is not None:
        record = find(world, maker)
        if record is not None:
            sender = record.signed.transaction.signer_id
            return {"transaction_hash": maker, "sender_account_id": sender}
        maker = makers.get(maker)
    raise _unknown(receipt_id)


def _makers(world: World) -> dict[CryptoHash, CryptoHash]:
    """Tell of every receipt which transaction or receipt made it."""
    return {
        made: outcome.id
        for block in world.chain.blocks()
        for outcome in world.chain.outcomes_at(block.height)
        for made in outcome.receipt_ids
    }


def _unknown(receipt_id: CryptoHash) -> HandlerError:
    """Say that there is no such receipt."""
    data = f"Receipt with id {receipt_id} has never been observed on this node"
    return HandlerError("UNKNOWN_RECEIPT", data, {"receipt_id": receipt_id})
