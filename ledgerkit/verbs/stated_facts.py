"""
Comparing the statements of a transaction's result with the contents that its outcomes commit to.

An outcome commits to its executor, its status and the receipts that it created. From these follow
the receiver and the predecessor of each receipt, the sender and receiver of the transaction, and
its final status. The block of an outcome has its height and time, and is not before the block of
its creator. Statements that contradict these are reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from ledgerkit.api.models.transactions import ExecutionOutcome, Receipt, Status, TxResult
from ledgerkit.tracing.tree.frame_columns import SYSTEM

if TYPE_CHECKING:
    from ledgerkit.api.models.commitments import Header

# Services that pass integers through JavaScript round times: in recordings by up to 256 ns.
_ROUNDED_NS = 256


def contradictions(
    result: TxResult,
    outcomes: Sequence[ExecutionOutcome],
    headers: Mapping[str, Header],
    shown_blocks: Mapping[str, tuple[int, int]],
) -> Iterator[tuple[str, str]]:
    """
    Yield the ids of outcomes that the result or `shown_blocks` contradict, each with a note.

    `outcomes` are the outcomes of the transaction and of all its receipts, `headers` the headers of
    their blocks by hash, and `shown_blocks` the heights and times that a trace shows, by hash.
    """
    first = outcomes[0]
    by_id = {outcome.id: outcome for outcome in outcomes}
    creators = {i: outcome for outcome in outcomes for i in outcome.outcome.receipt_ids or ()}
    yield from ((first.id, note) for note in _transaction_notes(result, by_id))
    for outcome in outcomes:
        block_hash = outcome.block_hash or ""
        header, creator = headers[block_hash], creators.get(outcome.id)
        if creator is None and outcome is not first:
            yield outcome.id, "no outcome lists it as created"
        elif creator and header.height < headers[creator.block_hash or ""].height:
            yield outcome.id, "it ran before the receipt that created it"
        stated = outcome.block_height, outcome.block_timestamp
        for height, time_ns in {stated, shown_blocks.get(block_hash, stated)}:
            is_later = time_ns is not None and abs(time_ns - header.time_ns) > _ROUNDED_NS
            if is_later or height not in (None, header.height):
                yield outcome.id, f"it ran in block {header.height}"
    for body in result.bodies or ():
        ran, creator = by_id.get(body.receipt_id), creators.get(body.receipt_id)
        if ran is not None and creator is not None:
            notes = _receipt_notes(body, ran, creator, first.outcome.executor_id)
            yield from ((ran.id, note) for note in notes)


def receipts_without_outcome(
    result: TxResult, outcomes: Sequence[ExecutionOutcome]
) -> dict[str, str]:
    """Return notes on receipts that were created or are listed, but did not run."""
    notes = {
        body.receipt_id: "the document has no outcome of it, and none that created it"
        for body in result.bodies or ()
    }
    for outcome in outcomes:
        note = f"{outcome.id} created it, and the document does not have its outcome"
        notes |= dict.fromkeys(outcome.outcome.receipt_ids or (), note)
    ran_ids = {outcome.id for outcome in outcomes[1:]}  # the first outcome is the transaction's
    return {receipt_id: note for receipt_id, note in notes.items() if receipt_id not in ran_ids}


def _transaction_notes(result: TxResult, by_id: Mapping[str, ExecutionOutcome]) -> Iterator[str]:
    outcome, transaction = next(iter(by_id.values())), result.transaction
    if result.status is not None and _end_status(result.status) != _end_status(
        _last_status(outcome, by_id)
    ):
        yield "the status of the result is not that of its outcomes"
    if transaction is None:
        return
    if transaction.hash not in (None, outcome.id):
        yield f"the result has the transaction {transaction.hash}"
    if transaction.signer_id not in (None, outcome.outcome.executor_id):
        yield f"its signer is not {transaction.signer_id}, but {outcome.outcome.executor_id}"
    for receipt_id in outcome.outcome.receipt_ids or ():
        receiver_id = by_id[receipt_id].outcome.executor_id if receipt_id in by_id else None
        if receiver_id is not None and transaction.receiver_id not in (None, receiver_id):
            yield f"its receiver is not {transaction.receiver_id}, but {receiver_id}"


def _last_status(outcome: ExecutionOutcome, by_id: Mapping[str, ExecutionOutcome]) -> Any:
    # Source: nearcore, chain/chain/src/chain.rs, get_execution_status.
    status = outcome.outcome.status
    while isinstance(status, Status) and (ran := by_id.get(status.success_receipt_id or "")):
        status = ran.outcome.status
    return status


def _end_status(status: Status | str) -> object:
    """Return a final status as far as outcomes commit to it; None if it is not final."""
    if isinstance(status, str) or status.success_receipt_id is not None:
        return None
    if status.other is not None:
        return status.other
    return "failure" if status.success_value is UNSET else status.success_value


def _receipt_notes(
    body: Receipt, ran: ExecutionOutcome, creator: ExecutionOutcome, signer_id: str | None
) -> Iterator[str]:
    if body.receiver_id not in (None, ran.outcome.executor_id):
        yield f"its receiver is not {body.receiver_id}, but {ran.outcome.executor_id}"
    # Only refunds may burn no gas; other receipts burn at least the gas of a transfer.
    # Source: nearcore, runtime/runtime/src/lib.rs, apply_action_receipt.
    is_refund = body.predecessor_id == SYSTEM
    expected = SYSTEM if is_refund or ran.outcome.gas_burnt == 0 else creator.outcome.executor_id
    if body.predecessor_id not in (None, expected):
        yield f"its predecessor is not {body.predecessor_id}, but {expected}"
    action = None if body.receipt is None else body.receipt.action
    signers = (None, signer_id, SYSTEM) if is_refund else (None, signer_id)
    if action is not None and action.signer_id not in signers:
        yield f"its signer is not {action.signer_id}, but {signer_id}"
