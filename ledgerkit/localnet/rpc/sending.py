"""
Sending transactions, and waiting until they are as far as the caller wants.

Each method is a generator: it yields where another block must come before it can answer.
Where time is logical a block comes whenever it is waited for, so that waiting ends when
nothing happens any more to the transaction, not when a clock says so.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ledgerkit.localnet import transaction_validity
from ledgerkit.localnet.execution_errors import InvalidTransactionError, UndecodableError
from ledgerkit.localnet.rpc import outcomes
from ledgerkit.localnet.rpc import params as read
from ledgerkit.localnet.rpc.errors import TIMEOUT, HandlerError, ParseError
from ledgerkit.protocol import CryptoHash, SignedTransaction

if TYPE_CHECKING:
    from ledgerkit.localnet.execution_errors import Json
    from ledgerkit.localnet.rpc.errors import Object
    from ledgerkit.localnet.rpc.outcomes import Progress
    from ledgerkit.localnet.settings import Settings
    from ledgerkit.localnet.world import World

Steps = Generator[None, None, Any]

NONE, INCLUDED, EXECUTED_OPTIMISTIC = "NONE", "INCLUDED", "EXECUTED_OPTIMISTIC"
# How far a transaction may be for a caller to be content.
_SATISFIED = {
    NONE: ("INCLUDED", "EXECUTED_OPTIMISTIC", "INCLUDED_FINAL", "EXECUTED", "FINAL"),
    INCLUDED: ("INCLUDED", "EXECUTED_OPTIMISTIC", "INCLUDED_FINAL", "EXECUTED", "FINAL"),
    EXECUTED_OPTIMISTIC: ("EXECUTED_OPTIMISTIC", "EXECUTED", "FINAL"),
    "INCLUDED_FINAL": ("INCLUDED_FINAL", "EXECUTED", "FINAL"),
    "EXECUTED": ("EXECUTED", "FINAL"),
    "FINAL": ("FINAL",),
}
_wait_until = read.one_of(tuple(_SATISFIED))


class Wanted(Struct, frozen=True):
    """A transaction, and how far the caller wants it to be."""

    tx_hash: CryptoHash
    signed: SignedTransaction | None
    wait_until: str


class Patience:
    """
    Tells when waiting is over.

    Parameters
    ----------
    settings
        How long the node waits, and by which clock.
    """

    def __init__(self, settings: Settings) -> None:
        self._ends = time.monotonic() + settings.timeout_ns / 10**9 if settings.real_time else None
        self._blocks = max(1, settings.timeout_ns // settings.block_time_ns)
        self._events, self._idle = 0, -1  # the first look is before the first block

    def over(self, events: int) -> bool:
        """Tell whether it is over, now that so many things have happened in all."""
        if self._ends is not None:
            return time.monotonic() >= self._ends
        self._idle = 0 if events > self._events else self._idle + 1
        self._events = max(events, self._events)
        return self._idle >= self._blocks


# Methods ---------------------------------------------------------------------------------


def send_tx(world: World, params: Any) -> Steps:
    """Answer `send_tx`."""
    signed, wait_until = _to_send(world, params)
    if wait_until == NONE:
        world.broadcast(signed)
        return {"final_execution_status": NONE}
    return (yield from _send(world, signed, wait_until))


def broadcast_tx_commit(world: World, params: Any) -> Steps:
    """Answer `broadcast_tx_commit`, which always waits for execution."""
    signed, _ = _to_send(world, params)
    return (yield from _send(world, signed, EXECUTED_OPTIMISTIC))


def broadcast_tx_async(world: World, params: Any) -> CryptoHash:
    """Answer `broadcast_tx_async`: whether it is valid does not matter."""
    signed, _ = _to_send(world, params)
    world.broadcast(signed)
    return signed.hash


def tx(world: World, params: Any) -> Steps:
    """Answer `tx`."""
    return (yield from _ask(world, params, receipts=False))


def tx_status(world: World, params: Any) -> Steps:
    """Answer `EXPERIMENTAL_tx_status`, which shows the receipts too."""
    return (yield from _ask(world, params, receipts=True))


def _send(world: World, signed: SignedTransaction, wait_until: str) -> Steps:
    """Pass a transaction on and wait for it."""
    try:
        world.submit(signed)
    except InvalidTransactionError as error:
        if not _is_repeated(world, signed, error.error):
            raise _invalid(error) from None
    wanted = Wanted(signed.hash, signed, wait_until)
    seen = yield from _wait(world, wanted, receipts=False)
    return outcomes.result(world, seen, receipts=False)


def _is_repeated(world: World, signed: SignedTransaction, error: Json) -> bool:
    """Tell whether a nonce is used up by the very same transaction."""
    used = isinstance(error, dict) and "InvalidNonce" in error
    return used and outcomes.find(world, signed.hash) is not None


def _ask(world: World, params: Any, *, receipts: bool) -> Steps:
    """Wait for a transaction that was sent before."""
    wanted = _to_ask(world, params)
    if wanted.wait_until in {NONE, INCLUDED} and _moves(world, wanted.tx_hash):
        yield  # who only looks, time and again, must see it go on
    seen = yield from _wait(world, wanted, receipts=receipts)
    return outcomes.result(world, seen, receipts=receipts)


def _moves(world: World, tx_hash: CryptoHash) -> bool:
    """Tell whether a look at a transaction lets a block come: one that is not final yet."""
    if world.settings.real_time:
        return False
    record = outcomes.find(world, tx_hash)
    if record is None:
        return world.is_pending(tx_hash)
    return outcomes.level(world, outcomes.progress(world, record)) != "FINAL"


# Waiting ---------------------------------------------------------------------------------


def _wait(world: World, wanted: Wanted, *, receipts: bool) -> Generator[None, None, Progress]:
    """Wait until a transaction is as far as it is wanted."""
    patience = Patience(world.settings)
    while True:
        seen = _seen(world, wanted)
        if seen is not None and outcomes.level(world, seen) in _SATISFIED[wanted.wait_until]:
            return seen
        if seen is None and wanted.wait_until == NONE:
            raise _unknown(wanted.tx_hash)
        nothing_comes = not world.settings.real_time and not (
            seen or world.is_pending(wanted.tx_hash)
        )
        if nothing_comes or patience.over(len(seen.outcomes) + 1 if seen else 0):
            raise _timeout(world, seen, receipts=receipts)
        yield


def _seen(world: World, wanted: Wanted) -> Progress | None:
    """Look how far a transaction is; if it is nowhere any more, check it anew."""
    record = outcomes.find(world, wanted.tx_hash)
    if record is not None:
        return outcomes.progress(world, record)
    if wanted.signed is not None and not world.is_pending(wanted.tx_hash):
        try:
            world.check(wanted.signed)
        except InvalidTransactionError as error:
            raise _invalid(error) from None
    return None


# Errors ----------------------------------------------------------------------------------


def _invalid(error: InvalidTransactionError) -> HandlerError:
    """Say why no block takes a transaction."""
    reason = error.error
    data = {"TxExecutionError": {"InvalidTxError": reason}}
    failure = HandlerError("INVALID_TRANSACTION", data, {})
    # The way to the reason that the specification gives; clients of nodes pass it by.
    failure.error["InvalidTransaction"] = {reason: None} if isinstance(reason, str) else reason
    return failure


def _unknown(tx_hash: CryptoHash) -> HandlerError:
    """Say that there is no such transaction."""
    data = f"Transaction {tx_hash} doesn't exist"
    return HandlerError("UNKNOWN_TRANSACTION", data, {"requested_transaction_hash": tx_hash})


def _timeout(world: World, seen: Progress | None, *, receipts: bool) -> HandlerError:
    """Say that waiting is over, and how far the transaction is."""
    info: Object = {"cause": "NOT_OBSERVED"}
    if seen is not None:
        info = {"cause": "PENDING", "status": outcomes.result(world, seen, receipts=receipts)}
    return HandlerError("TIMEOUT_ERROR", "Timeout", info, status=TIMEOUT)


# Params ----------------------------------------------------------------------------------


def _to_send(world: World, params: Any) -> tuple[SignedTransaction, str]:
    """Read a transaction to send, and how far it is wanted to be."""
    alone = read.single(params)
    if alone is not None:
        return _decoded(world, alone[0]), EXECUTED_OPTIMISTIC
    if read.pair(params) is not None:
        raise ParseError("Unable to parse send request: too many params passed")
    held = read.members(params)
    signed = read.member(held, "signed_tx_base64", lambda value: _decoded(world, value))
    return signed, read.optional(held, "wait_until", _wait_until) or EXECUTED_OPTIMISTIC


def _to_ask(world: World, params: Any) -> Wanted:
    """Read which transaction is asked for; whose it is says only where to look."""
    both = read.pair(params)
    if both is not None:
        tx_hash = read.crypto_hash(both[0])
        read.account_id(both[1])
        return Wanted(tx_hash, None, EXECUTED_OPTIMISTIC)
    if read.single(params) is not None or "signed_tx_base64" in read.members(params):
        signed, wait_until = _to_send(world, params)
        return Wanted(signed.hash, signed, wait_until)
    held = read.members(params)
    tx_hash = read.member(held, "tx_hash", read.crypto_hash)
    read.member(held, "sender_account_id", read.account_id)
    wait_until = read.optional(held, "wait_until", _wait_until) or EXECUTED_OPTIMISTIC
    return Wanted(tx_hash, None, wait_until)


def _decoded(world: World, value: Any) -> SignedTransaction:
    """Read a transaction."""
    written = read.text(value)
    try:
        return transaction_validity.decode(read.base64(written), world.runtime.profile)
    except ParseError as error:
        wrong = error.message.removeprefix(read.FAILED)
        raise ParseError(f"Failed to decode transaction: {wrong}") from None
    except UndecodableError as error:
        raise ParseError(error.message) from None
