"""A single receipt, with the block in which it ran and the transaction that it belongs to."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ledgerkit import json_decoding, validation
from ledgerkit.api import rpc, services
from ledgerkit.api.models.services import ReceiptBodies
from ledgerkit.api.models.transactions import Transaction, decode_member
from ledgerkit.block_data.headers import headers_by_hash
from ledgerkit.errors import (
    NotFoundError,
    RateLimitedError,
    RpcMethodNotFoundError,
    TransportError,
    UnknownReceiptError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ledgerkit.api.models.chain import BlockHeader
    from ledgerkit.api.models.transactions import ExecutionOutcome, TransactionResponse, TxResult
    from ledgerkit.ledger import Ledger

    Json = dict[str, Any]

# Those of EXPERIMENTAL_receipt; the Transactions API has more.
# Source: ReceiptView of nearcore, core/primitives/src/views.rs.
_MEMBERS = ("predecessor_id", "priority", "receipt", "receipt_id", "receiver_id")


def read_receipt(ledger: Ledger, receipt_id: str) -> Json:
    """Read a receipt from the Transactions API or, if that does not have it, from a node."""
    if ledger.network.transactions_url is not None:
        with suppress(NotFoundError, RateLimitedError, TransportError):
            response = ledger.send(services.receipt_document(receipt_id))
            return _body(response, receipt_id) | _origin(ledger, response, receipt_id)
    body: Json = ledger.send(rpc.receipt(receipt_id))
    return body | _origin(ledger, _transaction_from_node(ledger, receipt_id), receipt_id)


def _body(response: TransactionResponse, receipt_id: str) -> Json:
    """Return a receipt of a document with the members that a node sends."""
    bodies = json_decoding.decode(response.body, ReceiptBodies)
    for raw in (*(pair.receipt for pair in bodies.receipts), *bodies.data_receipts):
        body = decode_member(raw, "$..receipts")
        if isinstance(body, dict) and body.get("receipt_id") == receipt_id:
            return {name: body[name] for name in _MEMBERS if name in body}
    raise UnknownReceiptError(receipt_id=receipt_id)


def _transaction_from_node(ledger: Ledger, receipt_id: str) -> TransactionResponse | None:
    try:
        origin = ledger.send(rpc.receipt_origin(receipt_id))
    except (NotFoundError, RpcMethodNotFoundError):  # only some nodes have the index
        return None
    sender = validation.account_id(origin.sender_account_id, "sender")
    return ledger.send(rpc.transaction(origin.transaction_hash, sender, "NONE"))


def _origin(ledger: Ledger, response: TransactionResponse | None, receipt_id: str) -> Json:
    """Return the members about the block of a receipt and about its transaction."""
    transaction = (response and response.transaction) or Transaction()
    first = response and response.result.transaction_outcome
    own = None if response is None else _outcome(response.result, receipt_id)
    hashes = [
        outcome.block_hash
        for outcome in (own, first)
        if outcome and outcome.block_hash and outcome.block_height is None
    ]
    headers = headers_by_hash(ledger, list(dict.fromkeys(hashes)))
    height, time_ns = _place(own, headers)
    tx_height, tx_time_ns = _place(first, headers)
    return {
        "block_height": height,
        "block_timestamp": time_ns,
        "transaction_hash": transaction.hash,
        "signer_id": transaction.signer_id,
        "tx_block_height": tx_height,
        "tx_block_timestamp": tx_time_ns,
    }


def _outcome(result: TxResult, receipt_id: str) -> ExecutionOutcome | None:
    return next((outcome for outcome in result.outcomes if outcome.id == receipt_id), None)


def _place(
    outcome: ExecutionOutcome | None, headers: Mapping[str, BlockHeader]
) -> tuple[int | None, int | None]:
    if outcome is None:
        return None, None
    if outcome.block_height is not None:
        return outcome.block_height, outcome.block_timestamp
    header = headers.get(outcome.block_hash or "")
    return (None, None) if header is None else (header.height, header.time_ns)
