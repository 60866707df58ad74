"""
The methods that send transactions and wait until they reach an execution level.

In real time a method waits until a timeout. In logical time, where blocks come only when a request
waits, it waits until the transaction has no more events.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.localnet.clock import Clock, pass_time
from ledgerkit.localnet.execution_errors import InvalidTransactionError, Json
from ledgerkit.localnet.rpc import outcomes
from ledgerkit.localnet.rpc import params as read
from ledgerkit.localnet.rpc.errors import TIMEOUT, HandlerError, Object, ParseError
from ledgerkit.protocol import CryptoHash, SignedTransaction

if TYPE_CHECKING:
    from ledgerkit.localnet.rpc.outcomes import Execution
    from ledgerkit.localnet.settings import Settings
    from ledgerkit.localnet.world import World

NONE, INCLUDED, EXECUTED_OPTIMISTIC = "NONE", "INCLUDED", "EXECUTED_OPTIMISTIC"
# The execution levels that satisfy each `wait_until`.
_SATISFYING = {
    NONE: ("INCLUDED", "EXECUTED_OPTIMISTIC", "INCLUDED_FINAL", "EXECUTED", "FINAL"),
    INCLUDED: ("INCLUDED", "EXECUTED_OPTIMISTIC", "INCLUDED_FINAL", "EXECUTED", "FINAL"),
    EXECUTED_OPTIMISTIC: ("EXECUTED_OPTIMISTIC", "EXECUTED", "FINAL"),
    "INCLUDED_FINAL": ("INCLUDED_FINAL", "EXECUTED", "FINAL"),
    "EXECUTED": ("EXECUTED", "FINAL"),
    "FINAL": ("FINAL",),
}
_wait_until = read.one_of(tuple(_SATISFYING))


class StatusRequest(Struct, frozen=True):
    """A transaction to wait for, and the execution level to wait until."""

    tx_hash: CryptoHash
    signed: SignedTransaction | None
    wait_until: str


class Timeout:
    """The timeout of a request, in real time or in blocks without an event."""

    def __init__(self, settings: Settings) -> None:
        self._ends = time.monotonic() + settings.timeout_ns / 10**9 if settings.real_time else None
        self._max_idle_blocks = max(1, settings.timeout_ns // settings.block_time_ns)
        self._events, self._idle_blocks = 0, -1  # the first check is before the first block

    def is_over(self, events: int) -> bool:
        """Return True if the timeout is over, given the number of events so far."""
        if self._ends is not None:
            return time.monotonic() >= self._ends
        self._idle_blocks = 0 if events > self._events else self._idle_blocks + 1
        self._events = max(events, self._events)
        return self._idle_blocks >= self._max_idle_blocks


# Methods ---------------------------------------------------------------------------------


async def send_tx(world: World, params: Any, clock: Clock) -> Object:
    signed, wait_until = _parse_send(params)
    world.is_used = True
    if wait_until == NONE:
        with world.lock:
            world.broadcast(signed)
        return {"final_execution_status": NONE}
    return await _send(world, signed, wait_until, clock)


async def broadcast_tx_commit(world: World, params: Any, clock: Clock) -> Object:
    """Send a transaction and return the result of `broadcast_tx_commit`, after execution."""
    signed, _ = _parse_send(params)
    world.is_used = True
    return await _send(world, signed, EXECUTED_OPTIMISTIC, clock)


def broadcast_tx_async(world: World, params: Any) -> CryptoHash:
    """Send a transaction, valid or not, and return the result of `broadcast_tx_async`."""
    signed, _ = _parse_send(params)
    world.is_used = True
    world.broadcast(signed)
    return signed.hash


async def _send(world: World, signed: SignedTransaction, wait_until: str, clock: Clock) -> Object:
    with world.lock:
        try:
            world.submit(signed)
        except InvalidTransactionError as error:
            if not _is_resent(world, signed, error.error):
                raise _invalid_transaction(world, error) from None
    request = StatusRequest(signed.hash, signed, wait_until)
    return await _wait_for_result(world, request, clock, receipts=False)


def _is_resent(world: World, signed: SignedTransaction, error: Json) -> bool:
    """Return True if this same transaction has used the nonce."""
    is_nonce_error = isinstance(error, dict) and "InvalidNonce" in error
    return is_nonce_error and outcomes.find_transaction(world, signed.hash) is not None


async def tx(world: World, params: Any, clock: Clock, *, receipts: bool) -> Object:
    """Return the result of `tx`, or of `tx_status`, which includes the receipts."""
    request = _parse_status(params)
    if request.wait_until not in {NONE, INCLUDED}:
        await pass_time(world, clock, request.tx_hash, request.wait_until)
    elif _needs_block(world, request.tx_hash):
        await clock.next_block()  # so that polling without waiting advances the chain
    return await _wait_for_result(world, request, clock, receipts=receipts)


def _needs_block(world: World, tx_hash: CryptoHash) -> bool:
    """Return True in logical time if the transaction is not final yet."""
    if world.settings.real_time:
        return False
    with world.lock:
        execution = outcomes.find_execution(world, tx_hash)
        if execution is None:
            return world.is_pending(tx_hash)
        return outcomes.execution_level(world, execution) != "FINAL"


# Waiting ---------------------------------------------------------------------------------


async def _wait_for_result(
    world: World, request: StatusRequest, clock: Clock, *, receipts: bool
) -> Object:
    """Return a transaction's result at the requested level; raise after the timeout."""
    timeout = Timeout(world.settings)
    while True:
        with world.lock:
            result = _result_if_reached(world, request, timeout, receipts=receipts)
        if result is not None:
            return result
        await clock.next_block()


def _result_if_reached(
    world: World, request: StatusRequest, timeout: Timeout, *, receipts: bool
) -> Object | None:
    execution = outcomes.find_execution(world, request.tx_hash)
    if execution is None:
        _check_dropped(world, request)
    else:
        level = outcomes.execution_level(world, execution)
        if level in _SATISFYING[request.wait_until]:
            return outcomes.result(world, execution, receipts=receipts)
    if execution is None and request.wait_until == NONE:
        info = {"requested_transaction_hash": request.tx_hash}
        data = f"Transaction {request.tx_hash} doesn't exist"
        raise HandlerError("UNKNOWN_TRANSACTION", data, info)
    is_lost = execution is None and not world.is_pending(request.tx_hash)
    events = len(execution.outcomes) + 1 if execution else 0
    if (is_lost and not world.settings.real_time) or timeout.is_over(events):
        raise _timeout_error(world, execution, receipts=receipts)
    return None


def _check_dropped(world: World, request: StatusRequest) -> None:
    """Raise the error of a transaction that left the mempool and is invalid now."""
    if request.signed is not None and not world.is_pending(request.tx_hash):
        try:
            world.check(request.signed)
        except InvalidTransactionError as error:
            raise _invalid_transaction(world, error) from None


# Errors ----------------------------------------------------------------------------------


def _invalid_transaction(world: World, error: InvalidTransactionError) -> HandlerError:
    reason = error.error
    data = {"TxExecutionError": {"InvalidTxError": reason}}
    failure = HandlerError("INVALID_TRANSACTION", data, {})
    if world.settings.spec_errors:
        failure.error["InvalidTransaction"] = {reason: None} if isinstance(reason, str) else reason
    return failure


def _timeout_error(world: World, execution: Execution | None, *, receipts: bool) -> HandlerError:
    info: Object = {"cause": "NOT_OBSERVED"}
    if execution is not None:
        result = outcomes.result(world, execution, receipts=receipts)
        info = {"cause": "PENDING", "status": result}
    return HandlerError("TIMEOUT_ERROR", "Timeout", info, status=TIMEOUT)


# Params ----------------------------------------------------------------------------------


def _parse_send(params: Any) -> tuple[SignedTransaction, str]:
    items = read.single(params)
    if items is not None:
        return _decode(items[0]), EXECUTED_OPTIMISTIC
    if read.pair(params) is not None:
        raise ParseError("Unable to parse send request: too many params passed")
    members = read.members(params)
    signed = read.member(members, "signed_tx_base64", _decode)
    return signed, read.optional(members, "wait_until", _wait_until) or EXECUTED_OPTIMISTIC


def _parse_status(params: Any) -> StatusRequest:
    """Parse a request for a transaction's status; the sender's id is not used."""
    hash_and_sender = read.pair(params)
    if hash_and_sender is not None:
        tx_hash = read.crypto_hash(hash_and_sender[0])
        read.account_id(hash_and_sender[1])
        return StatusRequest(tx_hash, None, EXECUTED_OPTIMISTIC)
    if read.single(params) is not None or "signed_tx_base64" in read.members(params):
        signed, wait_until = _parse_send(params)
        return StatusRequest(signed.hash, signed, wait_until)
    members = read.members(params)
    tx_hash = read.member(members, "tx_hash", read.crypto_hash)
    read.member(members, "sender_account_id", read.account_id)
    wait_until = read.optional(members, "wait_until", _wait_until) or EXECUTED_OPTIMISTIC
    return StatusRequest(tx_hash, None, wait_until)


def _decode(value: Any) -> SignedTransaction:
    encoded = read.text(value)
    try:
        return SignedTransaction.decode(read.base64(encoded))
    except ParseError as error:
        reason = error.message.removeprefix(read.FAILED)
        raise ParseError(f"Failed to decode transaction: {reason}") from None
    except (DecodeError, InvalidRequestError) as error:
        raise ParseError(f"Failed to decode transaction: {error.args[0]}") from None
