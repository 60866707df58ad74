"""
Sending signed bytes, and finding out what became of them; nothing is signed here.

Identical bytes may be sent as often as one likes: the ledger takes them once. That a
transaction can no longer happen is said only on evidence: a final block that rules it
out, and after it a look by which the transaction is still unknown.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from ledgerkit import validation
from ledgerkit.api import calls, rpc
from ledgerkit.errors import (
    InvalidRequestError,
    LedgerError,
    TransactionTimeoutError,
    UnknownAccessKeyError,
    UnknownAccountError,
    UnknownTransactionError,
)

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call
    from ledgerkit.api.models.chain import Block
    from ledgerkit.api.rpc import TxAnswer
    from ledgerkit.client import Ledger
    from ledgerkit.protocol import SignedTransaction
    from ledgerkit.transport.embedded import World

VIA = ("send_tx", "broadcast_tx_async", "broadcast_tx_commit")
VALIDITY = 86_400  # blocks, where the ledger does not tell its own
CERTAIN_S = 20.0  # so long a refusal waits for the final block that confirms it
PAUSE_S = 0.5  # about a block
_PAUSES_S = (0.1, 0.3, 0.9, 2.0)

_validities: WeakKeyDictionary[Ledger, int] = WeakKeyDictionary()


# Sending ----------------------------------------------------------------------------------


def sending(signed: SignedTransaction, via: str, wait_until: str) -> Call[Any]:
    """Describe the sending of signed bytes."""
    tx = signed.transaction
    params = {"signed_tx_base64": signed.to_base64()}
    asked = f"the sending of transaction {signed.hash}"
    if via == "broadcast_tx_async":
        return calls.rpc(via, params, str, asked=asked)
    if via == "send_tx":
        params["wait_until"] = wait_until
    described = rpc.transaction(str(signed.hash), str(tx.signer_id), wait_until)
    body = calls.rpc(via, params, Any, asked=asked).body
    return replace(described, asked=asked, body=body, keep=None, repeatable=False)


def deliver(ledger: Ledger, signed: SignedTransaction, via: str, wait_until: str) -> Any:
    """
    Send signed bytes until somebody answers.

    Parameters
    ----------
    ledger
        Where to.
    signed
        The bytes.
    via
        The method.
    wait_until
        How far the transaction is to be when the node answers.

    Returns
    -------
    answer
        The transaction's result; its hash where the method does not wait.

    Raises
    ------
    LedgerError
        The refusal, or the failure to reach anybody; `TransactionTimeoutError` where the
        node has it, and has not seen that level.
    """
    call = sending(signed, via, wait_until)
    for pause in _PAUSES_S:
        try:
            return ledger.send(call)
        except TransactionTimeoutError:
            raise
        except LedgerError as error:
            if not error.retryable:
                raise
            time.sleep(max(pause, getattr(error, "retry_after", None) or 0.0))
    return ledger.send(call)


# Looking ----------------------------------------------------------------------------------


def ask(ledger: Ledger, tx_hash: str, sender: str, wait_until: str) -> TxAnswer:
    """Ask once for a transaction; the node waits for the level as long as it likes."""
    call = rpc.transaction(tx_hash, sender, wait_until, receipts=False)
    return ledger.send(replace(call, repeatable=False))


def look(ledger: Ledger, tx_hash: str, sender: str) -> TxAnswer | None:
    """Look for a transaction, in the archive too; None where nobody has seen it."""
    try:
        return ledger.send(rpc.transaction(tx_hash, sender, "NONE"))
    except UnknownTransactionError:
        return None


EXPIRED, OVERTAKEN, SHORT = "expired", "nonce overtaken", "balance short"


class Fate(NamedTuple):
    """What was found out: an answer, or why there will be none, or neither yet."""

    answer: TxAnswer | None
    reason: str | None
    height: int | None
    block_hash: str | None


def fate(ledger: Ledger, signed: SignedTransaction, signed_at: int) -> Fate:
    """
    Find out what became of a transaction that was not seen.

    Parameters
    ----------
    ledger
        Where it was sent.
    signed
        The transaction.
    signed_at
        Height of the block that it refers to.

    Returns
    -------
    fate
        With a `reason` where a final block shows that no later one can take it, and it
        was unknown even after that block was read.
    """
    tx = signed.transaction
    reason, height, block_hash = _ruled_out(ledger, signed, signed_at)
    answer = look(ledger, str(signed.hash), str(tx.signer_id))
    if reason is not None and answer is None:  # the host may be several, and one of them late
        pass_time(ledger)
        answer = look(ledger, str(signed.hash), str(tx.signer_id))
    return Fate(answer, None if answer else reason, height, block_hash)


def _ruled_out(
    ledger: Ledger, signed: SignedTransaction, signed_at: int
) -> tuple[str | None, int | None, str | None]:
    """Read at the final block what would keep a transaction out of any later one."""
    tx = signed.transaction
    final = ledger.send(rpc.block(validation.block_reference("final"))).header
    where = final.height, final.hash
    last = signed_at + validity(ledger)
    if final.height > last:
        return f"{EXPIRED}: no block above {last} takes it", *where
    try:
        call = rpc.view_access_key(
            str(tx.signer_id), str(tx.public_key), validation.block_reference(final.hash)
        )
        held = ledger.send(call).nonce
    except (UnknownAccessKeyError, UnknownAccountError):
        return None, *where  # a key that was just added is in no final block yet
    if held >= tx.nonce:
        return f"{OVERTAKEN}: the key is at {held}, the transaction has {tx.nonce}", *where
    return None, *where


def is_surely_lost(ledger: Ledger, signed: SignedTransaction, signed_at: int) -> Fate | None:
    """
    Wait until it is certain that refused bytes can't land either.

    Parameters
    ----------
    ledger
        Where they were sent.
    signed
        The bytes.
    signed_at
        Height of the block that they refer to.

    Returns
    -------
    fate
        With an answer where they have landed after all, with a reason where they can't;
        None where that did not become certain in time.
    """
    until = time.monotonic() + CERTAIN_S
    while time.monotonic() < until:
        found = fate(ledger, signed, signed_at)
        if found.answer is not None or found.reason is not None:
            return found
        pass_time(ledger)
    return None


def is_still_unknown(ledger: Ledger, signed: SignedTransaction, signed_at: int) -> TxAnswer | None:
    """Wait for a final block later than the present one; give the answer, if there is one."""
    now = head(ledger).header.height
    until = time.monotonic() + CERTAIN_S
    while time.monotonic() < until:
        found = fate(ledger, signed, signed_at)
        if found.answer is not None or (found.height is not None and found.height > now):
            return found.answer
        pass_time(ledger)
    return None


def validity(ledger: Ledger) -> int:
    """Tell for how many blocks a transaction is valid; read once a ledger."""
    if ledger not in _validities:
        try:
            config = ledger.send(rpc.protocol_config(validation.block_reference("final")))
        except InvalidRequestError:  # an older node has no such method
            config = None
        told = config.get("transaction_validity_period") if isinstance(config, dict) else None
        _validities[ledger] = told if isinstance(told, int) else VALIDITY
    return _validities[ledger]


def head(ledger: Ledger) -> Block:
    """Read the newest block."""
    return ledger.send(rpc.block(validation.block_reference("optimistic")))


def pass_time(ledger: Ledger, seconds: float | None = None) -> None:
    """Let a while pass: on the embedded ledger a block, unless its time is real."""
    seconds = PAUSE_S if seconds is None else seconds
    world = world_of(ledger)
    if world is None or world.settings.real_time:
        time.sleep(seconds)
    else:
        world.advance()


def now(ledger: Ledger) -> tuple[int, int | None, str | None]:
    """Tell the time; on the embedded ledger by its newest block, which is told too."""
    world = world_of(ledger)
    if world is None:
        return time.time_ns(), None, None
    block = world.chain.head
    return block.timestamp_ns, block.height, str(block.hash)


def world_of(ledger: Ledger) -> World | None:
    """Give the world of the embedded ledger."""
    try:
        return ledger.world
    except InvalidRequestError:  # another ledger
        return None
