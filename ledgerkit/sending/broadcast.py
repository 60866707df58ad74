"""
Broadcasting signed transactions and polling their status; nothing is signed here.

Sending identical bytes again is safe: the ledger applies a transaction once. A transaction
counts as dropped only on evidence: a final block rules it out, and it is still unknown when
it is looked up after that block.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import validation
from ledgerkit.api import calls, rpc
from ledgerkit.errors import (
    DecodeError,
    InvalidRequestError,
    LedgerError,
    TransactionTimeoutError,
    UnknownAccessKeyError,
    UnknownAccountError,
    UnknownTransactionError,
)
from ledgerkit.transport.retry import Backoff

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call
    from ledgerkit.api.models.chain import Block
    from ledgerkit.api.models.transactions import TransactionResponse
    from ledgerkit.ledger import Ledger
    from ledgerkit.protocol import SignedTransaction
    from ledgerkit.transport.embedded import World
    from ledgerkit.validation import BlockReference

METHODS = ("send_tx", "broadcast_tx_async", "broadcast_tx_commit")
DEFAULT_VALIDITY = 86_400  # blocks, where the protocol configuration does not state it
CONFIRM_TIMEOUT_S = 20.0  # the longest wait for a final block that confirms a refusal
POLL_INTERVAL_S = 0.5  # about one block
_ATTEMPTS = 5  # to send the same bytes, after retryable errors


# Sending ----------------------------------------------------------------------------------


def send_call(signed: SignedTransaction, via: str, wait_until: str) -> Call[Any]:
    """Build the call that sends signed bytes by one of `METHODS`."""
    tx = signed.transaction
    params = {"signed_tx_base64": signed.to_base64()}
    request = f"the sending of transaction {signed.hash}"
    if via == "broadcast_tx_async":
        return calls.rpc(via, params, str, request=request, expected={"": str(signed.hash)})
    if via == "send_tx":
        params["wait_until"] = wait_until
    status_call = rpc.transaction(str(signed.hash), str(tx.signer_id), wait_until)
    body = calls.rpc(via, params, Any, request=request).body
    return replace(status_call, request=request, body=body, newer=None, keep=None, repeatable=False)


def send_signed(
    ledger: Ledger,
    signed: SignedTransaction,
    via: str,
    wait_until: str,
    failed: list[LedgerError] | None = None,
) -> Any:
    """
    Send signed bytes, and retry after retryable errors; return the result or the hash.

    The errors that were followed by another attempt are added to `failed`.
    """
    # The transport does not repeat these calls. After a timeout the node has the bytes, and
    # the caller polls; the other retryable errors are retried here.
    call = send_call(signed, via, wait_until)
    backoff = Backoff(_ATTEMPTS, time.monotonic() + ledger.session.settings.retries.total_s)
    while True:
        try:
            return ledger.send(call)
        except TransactionTimeoutError:
            raise
        except LedgerError as error:
            pause_s = backoff.next_pause(error) if error.retryable else None
            if pause_s is None:
                raise
            if failed is not None:
                failed.append(error)
        ledger.session.sleep(pause_s)


# Polling ----------------------------------------------------------------------------------


def poll_status(
    ledger: Ledger, tx_hash: str, sender_id: str, wait_until: str
) -> TransactionResponse:
    """Request a transaction's status once; the node waits for the level up to its own limit."""
    call = rpc.transaction(tx_hash, sender_id, wait_until, receipts=False)
    return ledger.send(replace(call, repeatable=False))


def find_status(ledger: Ledger, tx_hash: str, sender_id: str) -> TransactionResponse | None:
    """Return a transaction's status and receipts, archive included; None if it is unknown."""
    try:
        return ledger.send(rpc.transaction(tx_hash, sender_id, "NONE"))
    except UnknownTransactionError:
        return None


# Drops ------------------------------------------------------------------------------------


EXPIRED, OVERTAKEN, SHORT = "expired", "nonce overtaken", "balance short"


class DropCheck(NamedTuple):
    """The result of a drop check: the status, the reason of the drop, or neither yet."""

    response: TransactionResponse | None
    reason: str | None
    height: int | None
    block_hash: str | None


def check_drop(ledger: Ledger, signed: SignedTransaction, anchor_height: int) -> DropCheck:
    """Check at a final block whether an unseen transaction can still be included."""
    tx = signed.transaction
    reason, height, block_hash = _drop_evidence(ledger, signed, anchor_height)
    response = find_status(ledger, str(signed.hash), str(tx.signer_id))
    if reason is not None and response is None:
        # Several nodes may answer under one address, and one of them may lag behind.
        wait_for_block(ledger)
        response = find_status(ledger, str(signed.hash), str(tx.signer_id))
    return DropCheck(response, None if response else reason, height, block_hash)


def _drop_evidence(
    ledger: Ledger, signed: SignedTransaction, anchor_height: int
) -> tuple[str | None, int | None, str | None]:
    """Return why no later block can include a transaction, or None, and the final block."""
    tx = signed.transaction
    final = ledger.send(rpc.block(validation.block_reference("final"))).header
    block = final.height, final.hash
    last_height = anchor_height + validity_period(ledger)
    if final.height > last_height:
        return f"{EXPIRED}: no block above {last_height} can include it", *block
    try:
        at = validation.received_hash(final.hash)
        names = str(tx.signer_id), str(tx.public_key)
        ak_nonce = read_nonce(ledger, *names, tx.nonce_index, at)
    except (UnknownAccessKeyError, UnknownAccountError):
        return None, *block  # a new key may not be in a final block yet
    if ak_nonce >= tx.nonce:
        return f"{OVERTAKEN}: the key is at {ak_nonce}, the transaction has {tx.nonce}", *block
    return None, *block


def read_nonce(
    ledger: Ledger, account_id: str, public_key: str, nonce_index: int | None, at: BlockReference
) -> int:
    if nonce_index is None:
        return ledger.send(rpc.view_access_key(account_id, public_key, at)).nonce
    nonces = ledger.send(rpc.view_gas_key_nonces(account_id, public_key, at)).nonces
    if nonce_index >= len(nonces):
        message = f"gas key {public_key} has {len(nonces)} nonces, and none at index {nonce_index}"
        raise DecodeError(message, path="nonces")
    return nonces[nonce_index]


def validity_period(ledger: Ledger) -> int:
    """Return for how many blocks a transaction is valid; read once for each ledger."""

    def read() -> int:
        try:
            config = ledger.send(rpc.protocol_config(validation.block_reference("final")))
        except InvalidRequestError:  # an older node has no such method
            return DEFAULT_VALIDITY
        return validity_in(config)

    return ledger.memo("transaction_validity", read)


def validity_in(config: Any) -> int:
    """Return the validity period of a protocol configuration, or the default without it."""
    blocks = config.get("transaction_validity_period") if isinstance(config, dict) else None
    return blocks if isinstance(blocks, int) else DEFAULT_VALIDITY


# Blocks and time --------------------------------------------------------------------------


def newest_block(ledger: Ledger) -> Block:
    return ledger.send(rpc.block(validation.block_reference("optimistic")))


def wait_for_block(ledger: Ledger, seconds: float | None = None) -> None:
    """Wait about one block; an embedded ledger without real time adds a block at once."""
    world = embedded_world(ledger)
    if world is None or world.settings.real_time:
        ledger.session.sleep(POLL_INTERVAL_S if seconds is None else seconds)
    else:
        world.advance()


def current_time(ledger: Ledger) -> tuple[int, int | None, str | None]:
    """Return the time in ns; on the embedded ledger its newest block's, with height and hash."""
    world = embedded_world(ledger)
    if world is None:
        return ledger.clock.time_ns(), None, None
    block = world.chain.head
    return block.timestamp_ns, block.height, str(block.hash)


def embedded_world(ledger: Ledger) -> World | None:
    """Return the world of the embedded ledger; None for other ledgers."""
    return ledger.world if ledger.is_embedded else None
