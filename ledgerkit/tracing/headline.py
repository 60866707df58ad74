"""The headline of a transaction: one sentence that says who did what, and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit.tracing.action_phrases import describe_request
from ledgerkit.tracing.amount_texts import plain
from ledgerkit.tracing.call_results import (
    Summary,
    as_clause,
    lost_amounts,
    net_amounts,
    reason_text,
    returned_near,
    summarize_calls,
    summarize_plainly,
)
from ledgerkit.tracing.transaction_data import account

if TYPE_CHECKING:
    from ledgerkit.tracing.transaction_data import Request, TransactionData

_MAX_CHARACTERS = 600
_MAX_LOST = 3
_SUCCEEDED = ("fully_succeeded", "succeeded_with_failed_receipts")


def headline(tx: TransactionData) -> str:
    """
    Return one sentence: who did what, or tried to, and what came back.

    It is empty if the document does not contain the transaction. Amounts are
    rounded for reading.
    """
    request = tx.request
    if request is None:
        return ""
    summary = _summarize(tx, request)
    relayer_id = request.relayer_id
    relayed = "" if relayer_id is None else f", relayed by {account(relayer_id)}"
    text = f"{account(request.sender_id)} {summary.text}{relayed}"
    lost = lost_amounts(tx)[:_MAX_LOST]
    return plain("; ".join([text, *summary.clauses, *lost]), _MAX_CHARACTERS) + "."


def _summarize(tx: TransactionData, request: Request) -> Summary:
    outcome = tx.verdict
    if outcome in _SUCCEEDED:
        summary = summarize_calls(tx, request) or summarize_plainly(tx, request)
        clauses = () if summary.has_reason else _failure_clauses(tx)
        return Summary(summary.text, (*summary.clauses, *clauses)) if clauses else summary
    infinitive = describe_request(request, tx.amounts).infinitive
    if outcome == "failed":
        return Summary(f"tried to {infinitive}", (*_reasons(tx, request), *_returned(tx, request)))
    clause = "the document does not contain the result"
    clause = "this has not finished" if outcome == "pending" else clause
    return Summary(f"asked to {infinitive}", (clause,))


def _failure_clauses(tx: TransactionData) -> tuple[str, ...]:
    failed = tx.failed_receipts
    if not failed:
        return ()
    clause = f"{tx.name(failed[0])} failed ({reason_text(tx, failed[0])[1]})"
    n_others = len(failed) - 1
    receipts = "receipt" if n_others == 1 else "receipts"
    return (clause + (f", and so did {n_others} other {receipts}" if n_others else ""),)


def _reasons(tx: TransactionData, request: Request) -> tuple[str, ...]:
    first = tx.tree.conversion
    if first.status == "failure":
        reason = as_clause(first.error_message or first.error_kind or "")
        return (f"the network refused it: {reason}" if reason else "the network refused it",)
    failed = tx.failed_receipts
    if not failed:
        return ("it failed",)
    is_panic, reason = reason_text(tx, failed[-1])
    if not is_panic:
        return (reason,)
    receiver_id = tx.tree.columns["receiver_id"][failed[-1]]
    name = "the contract" if receiver_id == request.receiver_id else account(receiver_id)
    return (f"{name} panicked: {reason}",)


def _returned(tx: TransactionData, request: Request) -> tuple[str, ...]:
    """List what came back after a failure, and what did not."""
    near = returned_near(tx, request)
    gives, _ = net_amounts(tx.transfers, request, len(request.actions or ()))
    lost = [tx.amounts.text(asset, amount) for asset, amount in gives.items() if asset != "near"]
    clauses = [f"{near} came back"] if near else []
    return (*clauses, *(f"{amount} did not come back" for amount in lost[:3]))
