"""The headline and the explanation of a transaction, written from its result alone."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ledgerkit.api.models.actions import action_name, function_call
from ledgerkit.api.models.transactions import Status, TxResult
from ledgerkit.tracing.action_fields import deposit
from ledgerkit.tracing.action_phrases import describe_request, receiver_name
from ledgerkit.tracing.actions import SUCCEEDED
from ledgerkit.tracing.amount_texts import NEAR, plain
from ledgerkit.tracing.call_results import (
    Summary,
    as_clause,
    lost_amounts,
    net_amounts,
    reason_text,
    returned_near,
    summarize_success,
)
from ledgerkit.tracing.gas import UNKNOWN
from ledgerkit.tracing.transaction_data import Request, TransactionData, account
from ledgerkit.tracing.tree.frame_columns import SYSTEM
from ledgerkit.units import count_text, gas_amount, near_amount
from ledgerkit.visible_text import escape_invisible

if TYPE_CHECKING:
    from ledgerkit.api.models.actions import Action, Actions
    from ledgerkit.tracing.token_events import Transfer

_MAX_STEPS = 12
_MAX_NAMED = 3
_MAX_FAILURES = 4
_MAX_TRANSFERS = 8
_MAX_NOTE = 400  # characters
_MAX_HEADLINE = 600  # characters
_SUCCEEDED = ("fully_succeeded", "succeeded_with_failed_receipts")
_NS = 10**9  # nanoseconds in a second


def explain(tx: TransactionData, notes: Iterable[str]) -> str:
    """Describe a transaction: its headline, then short paragraphs."""
    paragraphs = (
        headline(tx),
        _describe_request(tx),
        _describe_outcome(tx),
        _describe_receipts(tx),
        _describe_waiting(tx),
        *_describe_failures(tx),
        _describe_transfers(tx),
        _describe_cost(tx),
        _describe_duration(tx),
        _describe_notes(notes),
    )
    text = "\n\n".join(paragraph for paragraph in paragraphs if paragraph)
    return escape_invisible(text, keep="\n")


# The headline ----------------------------------------------------------------------------


def headline(tx: TransactionData) -> str:
    """
    Return one sentence: who did what, or tried to, and what came back.

    It is empty if the document does not contain the transaction. Amounts are rounded for reading.
    """
    request = tx.request
    if request is None:
        return ""
    summary = _summarize(tx, request)
    relayer_id = request.relayer_id
    relayed = "" if relayer_id is None else f", relayed by {account(relayer_id)}"
    text = f"{account(request.sender_id)} {summary.text}{relayed}"
    lost = lost_amounts(tx)[:_MAX_NAMED]
    return plain("; ".join([text, *summary.clauses, *lost]), _MAX_HEADLINE) + "."


def _summarize(tx: TransactionData, request: Request) -> Summary:
    outcome = tx.verdict
    if outcome in _SUCCEEDED:
        summary = summarize_success(tx, request)
        clauses = () if summary.has_reason else _failure_clauses(tx)
        return Summary(summary.text, (*summary.clauses, *clauses)) if clauses else summary
    infinitive = describe_request(request, tx.amounts)
    if outcome == "failed":
        return Summary(
            f"tried to {infinitive}", (*_list_reasons(tx, request), *_list_returned(tx, request))
        )
    clause = f"{tx.lacks} the result"
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


def _list_reasons(tx: TransactionData, request: Request) -> tuple[str, ...]:
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


def _list_returned(tx: TransactionData, request: Request) -> tuple[str, ...]:
    """List the assets that came back after a failure, and those that did not."""
    near = returned_near(tx, request)
    gives, _ = net_amounts(tx.transfers, request, len(request.actions or ()))
    lost = [tx.amounts.text(asset, amount) for asset, amount in gives.items() if asset != NEAR]
    clauses = [f"{near} came back"] if near else []
    return (*clauses, *(f"{amount} did not come back" for amount in lost[:_MAX_NAMED]))


# The request -----------------------------------------------------------------------------


def _describe_request(tx: TransactionData) -> str:
    request, transaction = tx.request, tx.result.transaction
    if request is None:
        return "The document does not contain the transaction."
    tx_hash = transaction.hash if transaction else None
    name = "a transaction" if tx_hash is None else f"transaction {plain(tx_hash)}"
    sender_id, actions = account(request.sender_id), _list_actions(request.actions)
    receiver = receiver_name(request)
    if request.relayer_id is None:
        return f"{sender_id} sent {name} to {receiver}: {actions}."
    return (
        f"{sender_id} signed a delegate action for {receiver}: {actions}. "
        f"{account(request.relayer_id)} relayed it in {name} and paid for it."
    )


def _list_actions(actions: Actions | None) -> str:
    if actions is None:
        return "the document does not contain its actions"
    return ", then ".join(map(_describe_action, actions)) or "no actions"


def _describe_action(action: Action | str) -> str:
    call = function_call(action)
    yocto = deposit(action)
    amount = near_amount(yocto) if yocto else ""
    if call is None:
        return plain(action_name(action)) + (f" of {amount}" if amount else "")
    attached = [text for text in (amount, gas_amount(call.gas) if call.gas else "") if text]
    method = "a method" if call.method_name is None else plain(call.method_name)
    return f"call {method}" + (f" with {' and '.join(attached)}" if attached else "")


# The outcome -----------------------------------------------------------------------------


def _describe_outcome(tx: TransactionData) -> str:
    outcome = tx.verdict
    if outcome == "fully_succeeded":
        ending = "It succeeded, and so did all its receipts."
        if "not_executed" in tx.column("status"):
            ending = "It succeeded; only refunds may not have run yet."
        return f"{ending}{_describe_return_value(tx.result)}"
    if outcome == "succeeded_with_failed_receipts":
        return f"{_describe_partial_failure(tx)}{_describe_return_value(tx.result)}"
    if outcome == "failed":
        return _describe_failed_transaction(tx)
    if outcome == "pending":
        return "It has not finished yet."
    if tx.tree.overall == "success_value":
        return f"Its status is success, but {tx.lacks} the status of all receipts."
    return f"{tx.lacks} its result.".capitalize()


def _describe_partial_failure(tx: TransactionData) -> str:
    n_failed = len(tx.failed_receipts)
    if not n_failed:
        burnt = (
            "a refund of gas failed because its receiver no longer exists: it is part of the fee"
        )
        return f"It succeeded, but {' and '.join(lost_amounts(tx)[:_MAX_NAMED]) or burnt}."
    return (
        f"Its status is success, but {n_failed} of {_count_receipts(tx)} failed, so "
        f"the actions of {'that receipt' if n_failed == 1 else 'those receipts'} had no effect."
    )


def _count_receipts(tx: TransactionData) -> str:
    """Count the receipts without refunds, and say so if there are refunds."""
    text = count_text(len(tx.non_refunds), "receipt")
    return text if len(tx.non_refunds) == len(tx.tree) else f"{text} other than refunds"


def _describe_failed_transaction(tx: TransactionData) -> str:
    first = tx.tree.conversion
    if first.status == "failure":
        reason = first.error_message or first.error_kind or "The reason is unknown"
        return f"It failed before any receipt was created: {_as_sentence(reason)}"
    status = tx.column("status")
    n_succeeded = sum(status[position] in SUCCEEDED for position in tx.non_refunds)
    if not n_succeeded:
        return "It failed, and none of its receipts succeeded."
    succeeded = f"succeeded and {'was' if n_succeeded == 1 else 'were'} not rolled back"
    return f"It failed, but {n_succeeded} of {_count_receipts(tx)} {succeeded}."


def _describe_return_value(result: TxResult) -> str:
    value = result.status.success_value if isinstance(result.status, Status) else None
    if not isinstance(value, str) or not value:
        return ""
    try:
        text = base64.b64decode(value, validate=True).decode()
    except ValueError:
        return " It returned bytes that are not text."
    return f" It returned {plain(text)}."


def _as_sentence(text: str) -> str:
    short = plain(text)
    return short if short.endswith((".", "!", "?")) else f"{short}."


# The receipts ----------------------------------------------------------------------------


def _describe_receipts(tx: TransactionData) -> str:
    n_receipts = len(tx.non_refunds)
    if not n_receipts:
        return ""
    steps, n_refunds = _list_steps(tx), len(tx.tree) - n_receipts
    refunds = f" and {count_text(n_refunds, 'refund')}" if n_refunds else ""
    lines = [f"It led to {count_text(n_receipts, 'receipt')}{refunds}:"]
    for number, (name, ending, count) in enumerate(steps[:_MAX_STEPS], 1):
        times = f" {count} times" if count > 1 else ""
        lines.append(f"{number}. {name}{times}{ending}")
    counts: Counter[str] = Counter()
    for name, _, count in steps[_MAX_STEPS:]:
        counts[name] += count
    if counts:
        most_frequent = counts.most_common(_MAX_NAMED)
        names = [f"{name}, {count} times" if count > 1 else name for name, count in most_frequent]
        names += ["and others"] if len(counts) > len(names) else []
        lines.append(f"… and {counts.total()} more: {'; '.join(names)}")
    return "\n".join(lines)


def _list_steps(tx: TransactionData) -> list[tuple[str, str, int]]:
    """Count consecutive receipts with the same name, block, shard and status."""
    statuses, heights = tx.column("status"), tx.column("block_height")
    shards = tx.column("shard_id")
    steps: list[tuple[str, str, int]] = []
    name = ending = ""
    for position in tx.non_refunds:
        before, count = (name, ending), 1
        name = tx.name(position)
        block = "" if heights[position] is None else f" in block {heights[position]}"
        shard = "" if shards[position] is None else f", shard {shards[position]}"
        ending = f"{block}{shard}: {_STATUS_TEXTS[statuses[position]]}"
        if before == (name, ending):
            count += steps.pop()[2]
        steps.append((name, ending, count))
    return steps


_STATUS_TEXTS = {
    "success_value": "succeeded",
    "success_receipt_id": "succeeded, its result comes from another receipt",
    "failure": "failed",
    "not_executed": "has not run",
    "unknown": "status unknown",
}


def _describe_waiting(tx: TransactionData) -> str:
    producers: dict[int, list[int]] = {}
    for producer, consumer, _ in tx.data_edges:
        positions = producers.setdefault(consumer, [])
        if producer not in positions:
            positions.append(producer)
    sentences = [
        f"{tx.name(consumer)} waited for {_list_names(tx, positions)}."
        for consumer, positions in sorted(producers.items())[:_MAX_NAMED]
    ]
    n_others = len(producers) - len(sentences)
    if n_others > 0:
        sentences.append(f"{count_text(n_others, 'other receipt')} also waited for results.")
    return " ".join([*sentences, *_describe_external_data(tx)])


def _list_names(tx: TransactionData, positions: list[int]) -> str:
    counts = Counter(map(tx.name, positions))
    names = [f"{name} ({count} times)" if count > 1 else name for name, count in counts.items()]
    n_others = len(names) - _MAX_NAMED
    return " and ".join(
        names[:_MAX_NAMED] + ([count_text(n_others, "other")] if n_others > 0 else [])
    )


def _describe_external_data(tx: TransactionData) -> list[str]:
    inputs, status = tx.column("input_data_ids"), tx.column("status")
    delivered = {data_id for *_, data_id in tx.data_edges}
    waiting = [
        position
        for position in tx.non_refunds
        if inputs[position] and delivered.isdisjoint(inputs[position])
    ]
    return [
        f"{tx.name(position)} "
        f"{'still waits' if status[position] == 'not_executed' else 'waited'} "
        "for data from outside this transaction."
        for position in waiting[:_MAX_NAMED]
    ]


# The failures ----------------------------------------------------------------------------


def _describe_failures(tx: TransactionData) -> list[str]:
    groups: dict[tuple[str, str], list[int]] = {}
    for position in tx.failed_receipts:
        error = tx.failures[position]
        key = tx.name(position), str(error.args[0]) if error.args else ""
        groups.setdefault(key, []).append(position)
    paragraphs = [
        _describe_failure(tx, positions) for positions in list(groups.values())[:_MAX_FAILURES]
    ]
    n_others = len(groups) - len(paragraphs)
    if n_others > 0:
        paragraphs.append(f"Not described: {count_text(n_others, 'other kind')} of failure.")
    return paragraphs


def _describe_failure(tx: TransactionData, positions: list[int]) -> str:
    position, columns = positions[0], tx.tree.columns
    error = tx.failures[position]
    times = f" ({len(positions)} times)" if len(positions) > 1 else ""
    kind, message = columns["error_kind"][position], columns["error_message"][position]
    reason = message or "The reason is unknown"
    index = getattr(error, "index", None)
    n_actions, action = len(tx.values.actions[position] or ()), ""
    if n_actions > 1 and index is not None:
        action = f" at action {index + 1} of {n_actions}"
    parts = [
        f"{tx.name(position)} failed{action}{times}: {_as_sentence(reason)}"
        + (f" ({plain(kind)})" if kind else ""),
        _describe_rollback(tx, position),
        _describe_awaited(tx, position),
        _describe_callback(tx, positions),
        f"What to do: {error.remedy}" if error.remedy else "",
    ]
    return " ".join(part for part in parts if part)


def _describe_rollback(tx: TransactionData, position: int) -> str:
    status = tx.column("status")
    if any(status[earlier] in SUCCEEDED for earlier in tx.non_refunds if earlier < position):
        return "The changes of that receipt were rolled back; those of earlier receipts were not."
    return "Its changes were rolled back."


def _describe_awaited(tx: TransactionData, position: int) -> str:
    """List the receipts whose results a failed callback waited for."""
    producers = list(dict.fromkeys(p for p, consumer, _ in tx.data_edges if consumer == position))
    return f"It was the callback of {_list_names(tx, producers)}." if producers else ""


def _describe_callback(tx: TransactionData, positions: list[int]) -> str:
    status = tx.column("status")
    callbacks = [
        consumer
        for producer, consumer, _ in tx.data_edges
        if producer in positions and status[consumer] in SUCCEEDED
    ]
    return f"Its callback, {tx.name(callbacks[0])}, ran and succeeded." if callbacks else ""


# The transfers ---------------------------------------------------------------------------

_NEAR_KINDS = ("transfer", "deposit", "delegated", "beneficiary", "burnt")


def _describe_transfers(tx: TransactionData) -> str:
    rows = [
        row
        for row in tx.transfers
        if row.kind in _NEAR_KINDS or (row.asset != NEAR and row.kind != "fee")
    ]
    parts = [_describe_transfer(tx, row) for row in rows[:_MAX_TRANSFERS] if row.amount]
    n_others = len(rows) - _MAX_TRANSFERS
    if n_others > 0:
        parts.append(f"and {n_others} more")
    text = f"Transferred: {'; '.join(parts)}." if parts else _describe_no_transfers(tx)
    refunds = [row for row in tx.transfers if row.kind == "refund_deposit"]
    amounts = [
        f"{near_amount(row.amount or 0)} to {account(row.receiver_id)}"
        for row in refunds[:_MAX_NAMED]
    ]
    text += f" Deposits refunded: {', '.join(amounts)}." if amounts else ""
    n_others = len(refunds) - len(amounts)
    return f"{text} Also refunded: {count_text(n_others, 'more deposit')}." if n_others else text


def _describe_no_transfers(tx: TransactionData) -> str:
    """
    Describe why no transfer is listed: there was none, none yet, or it is unknown.

    A contract that logs no events can move its own tokens in any call.
    """
    status, values = tx.column("status"), tx.values
    has_unknown = any(
        name == UNKNOWN and has_run
        for name, has_run in zip(status, values.was_executed, strict=True)
    )
    if has_unknown or not status or None in values.deposits or tx.has_other_kinds:
        return f"{tx.lacks} what was transferred.".capitalize()
    calls = [
        position
        for position, names in enumerate(values.names)
        if status[position] in SUCCEEDED and "FunctionCall" in names
    ]
    if calls:
        names = _list_names(tx, calls)
        return f"No transfer was recorded, but {names} can move tokens without a record."
    if all(name in SUCCEEDED or name == "failure" for name in status):
        return "Nothing was transferred."
    return "Nothing has been transferred yet."


def _describe_transfer(tx: TransactionData, row: Transfer) -> str:
    amount = tx.amounts.with_contract(row.asset, row.amount or 0)
    sender_id, receiver_id = account(row.sender_id), account(row.receiver_id)
    if row.kind in ("burnt", "gas_key"):
        return f"{amount} {_gas_key_text(row)}"
    if row.asset != NEAR and row.sender_id is None:
        return f"{amount} minted for {receiver_id}"
    if row.asset != NEAR and row.receiver_id is None:
        return f"{amount} burnt by {sender_id}"
    return f"{amount} from {sender_id} to {receiver_id}"


def _gas_key_text(row: Transfer) -> str:
    """Describe the source or target of NEAR that was burnt or moved by a gas key."""
    sender_id = account(row.sender_id)
    if row.kind == "burnt":
        return f"of {sender_id if row.asset == NEAR else f'a gas key of {sender_id}'} burnt"
    if row.sender_id == SYSTEM:
        return f"to a gas key of {account(row.receiver_id)}"
    return f"from a gas key of {sender_id}"


_HAVE_RUN = (*SUCCEEDED, "failure", "unknown")


def _describe_cost(tx: TransactionData) -> str:
    first, gas_burnt = tx.tree.conversion, tx.column("gas_burnt")
    gas = (first.gas_burnt or 0) + sum(filter(None, gas_burnt))
    if not gas:
        return ""
    is_part = first.gas_burnt is None or any(
        burnt is None and status in _HAVE_RUN
        for status, burnt in zip(tx.column("status"), gas_burnt, strict=True)
    )
    payer = "the signer" if first.signer_id is None else account(first.signer_id)
    fee = next((row for row in tx.transfers if row.kind == "fee"), None)
    if fee is not None and fee.asset != NEAR:
        payer = f"a gas key of {payer}"
    yocto = None if fee is None else fee.amount
    cost = "an unknown amount" if yocto is None else near_amount(yocto)
    start = "So far it burnt" if tx.verdict == "pending" else "It burnt"
    text = f"{start} {'at least ' if is_part else ''}{gas_amount(gas)} of gas"
    text += f", which cost {payer} {cost}."
    rewards = _list_rewards(tx.transfers)
    return f"{text} Contract rewards from the burnt gas: {rewards}." if rewards else text


def _list_rewards(transfers: list[Transfer]) -> str:
    sums: dict[str, int] = {}
    for row in transfers:
        if row.kind == "contract_reward":
            receiver_id = account(row.receiver_id)
            sums[receiver_id] = sums.get(receiver_id, 0) + (row.amount or 0)
    amounts = [
        f"{near_amount(total)} to {account_id}"
        for account_id, total in list(sums.items())[:_MAX_NAMED]
    ]
    n_others = len(sums) - len(amounts)
    others = f" and more to {count_text(n_others, 'other account')}" if n_others > 0 else ""
    return ", ".join(amounts) + others


def _describe_duration(tx: TransactionData) -> str:
    heights = [height for height in tx.column("block_height") if height is not None]
    if not heights:
        return ""
    first, last = min(heights), max(heights)
    text = f"All receipts ran in block {first}"
    if first != last:
        text = f"Its receipts ran in blocks {first} to {last}, {count_text(last - first, 'block')}"
    stamps = [stamp for stamp in tx.column("time") if stamp is not None and stamp > 0]
    if not stamps:
        return f"{text}." if first == last else f"{text} apart."
    seconds = (max(stamps) - min(stamps)) / _NS
    start = datetime.fromtimestamp(min(stamps) // _NS, UTC)
    duration = "" if first == last else f" and {seconds:.1f} seconds apart"
    return f"{text}{duration}, starting at {start:%Y-%m-%d %H:%M:%S} UTC."


def _describe_notes(notes: Iterable[str]) -> str:
    listed = "; ".join(plain(note, _MAX_NOTE) for note in notes)
    return f"Notes: {listed}." if listed else ""
