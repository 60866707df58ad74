"""
Leaves of execution outcomes: the hash by which a shard's root commits to an outcome.

A leaf commits to the id, the receipts created, the gas and tokens burnt, the executor, the status
and the logs. It commits to the fact of a failure, but neither to its kind nor to its message, and
not to the gas profile.

Source: nearcore, core/primitives/src/transaction.rs, ExecutionOutcomeWithId::to_hashes and
PartialExecutionOutcome; core/primitives/src/views.rs, ExecutionOutcomeView.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

from msgspec import UNSET

from ledgerkit.errors import DecodeError, cut
from ledgerkit.proofs.headers import decode_hashes
from ledgerkit.protocol import borsh
from ledgerkit.protocol.types import Balance

if TYPE_CHECKING:
    from ledgerkit.api.models.transactions import Status


class Committed(Protocol):
    """The members of an outcome that its leaf commits to."""

    logs: list[str]
    receipt_ids: list[str]
    gas_burnt: int
    tokens_burnt: str
    status: Status | str
    executor_id: str


MEMBERS = tuple(Committed.__annotations__)

# PartialExecutionStatus.
_UNKNOWN, _FAILURE, _SUCCESS_VALUE, _SUCCESS_RECEIPT_ID = (bytes([tag]) for tag in range(4))


def leaves(ids: Sequence[str], outcomes: Sequence[Committed]) -> list[bytes | None]:
    """Return the leaves of the outcomes with these ids; None for a status of an unknown kind."""
    return [_leaf(*pair) for pair in zip(ids, outcomes, strict=True)]


def unknown_status(status: Status | str) -> str | None:
    """Return a sentence about a status whose encoding is unknown; None for any other."""
    if isinstance(status, str):
        name = None if status == "Unknown" else status
    else:
        name = status.other.name if status.other else None
    return None if name is None else f"its status {cut(name)!r} has no known encoding"


def _leaf(outcome_id: str, outcome: Committed) -> bytes | None:
    status = _encode_status(outcome.status)
    if status is None:
        return None
    own_id, *receipt_ids = decode_hashes(outcome_id, *outcome.receipt_ids)
    partial = b"".join(
        (
            borsh.items(receipt_ids),
            borsh.u64(outcome.gas_burnt),
            borsh.u128(Balance(outcome.tokens_burnt)),
            borsh.text(outcome.executor_id),
            status,
        )
    )
    parts = [own_id, sha256(partial).digest()]
    parts += [sha256(log.encode()).digest() for log in outcome.logs]
    return sha256(borsh.items(parts)).digest()


def _encode_status(status: Status | str) -> bytes | None:
    """Encode a status; None for an unknown kind."""
    if unknown_status(status):
        return None
    if isinstance(status, str):
        return _UNKNOWN
    if status.success_receipt_id is not None:
        return _SUCCESS_RECEIPT_ID + decode_hashes(status.success_receipt_id)[0]
    if isinstance(status.success_value, str):
        try:
            value = b64decode(status.success_value, validate=True)
        except Base64Error:
            raise DecodeError("SuccessValue is not base64", path="$.status.SuccessValue") from None
        return _SUCCESS_VALUE + borsh.blob(value)
    if status.failure is UNSET:
        raise DecodeError("the status of an outcome has no value", path="$.status")
    return _FAILURE
