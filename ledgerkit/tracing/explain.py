"""The explanation of a transaction: a few paragraphs in plain words, from its result alone."""

from __future__ import annotations

import base64
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import UNSET

from ledgerkit.api import chain_errors
from ledgerkit.api.models.transactions import Status
from ledgerkit.tracing.action_fields import action_name, delegate_action, deposit
from ledgerkit.tracing.actions import SUCCEEDED
from ledgerkit.tracing.tree import verdict
from ledgerkit.units import gas_text, near_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledgerkit.api.models.transactions import Action, TxResult
    from ledgerkit.errors import LedgerError
    from ledgerkit.tracing.action_fields import Actions
    from ledgerkit.tracing.token_events import Transfer
    from ledgerkit.tracing.tree import Tree

_MOST_STEPS = 12
_MOST_NAMED = 3
_MOST_FAILURES = 4
_MOST_TRANSFERS = 8
_MOST_CHARACTERS = 160
_NS = 10**9  # nanoseconds in a second
_DELEGATES = ("Delegate", "DelegateV2")


@dataclass(frozen=True, slots=True)
class _Story:
    """The material of an explanation."""

    tree: Tree
    result: TxResult
    transfers: list[Transfer]
    actions: list[Actions | None]
    failures: dict[int, LedgerError]

    def column(self, name: str) -> Any:
        """Return a column of the receipts as a list, None where a value is missing."""
        return self.tree.columns[name].tolist()

    def own_receipts(self) -> list[int]:
        """List the positions of receipts other than refunds."""
        kinds = self.tree.columns["kind"]
        return [at for at, kind in enumerate(kinds) if kind != "refund"]

    def name(self, at: int) -> str:
        """Return a name for a receipt: its method or actions, and its receiver."""
        columns = self.tree.columns
        receiver_id = columns["receiver_id"][at] or "an unknown account"
        if columns["kind"][at] == "refund":
            return f"the refund to {receiver_id}"
        actions = columns["actions"][at] or "unknown actions"
        method = None if actions in _DELEGATES else columns["method_name"][at]
        return _shorten(f"{method} on {receiver_id}" if method else f"{actions} to {receiver_id}")


def explain(
    tree: Tree,
    result: TxResult,
    actions: list[Actions | None],
    transfers: list[Transfer],
    notes: Iterable[str],
) -> str:
    """Describe a transaction in short paragraphs, always the same for the same arguments."""
    story = _Story(tree, result, transfers, actions, _failures(tree, result))
    paragraphs = (
        _describe_request(story),
        _describe_outcome(story),
        _describe_receipts(story),
        _describe_waiting(story),
        *_describe_failures(story),
        _describe_transfers(story),
        _describe_cost(story),
        _describe_duration(story),
        _describe_notes(notes),
    )
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _failures(tree: Tree, result: TxResult) -> dict[int, LedgerError]:
    """Return the errors of receipts by position; of repeated outcomes the first is used."""
    position = {receipt_id: at for at, receipt_id in enumerate(tree.ids.tolist())}
    errors: dict[int, LedgerError] = {}
    for _, piece in result.outcomes.pieces():
        for outcome in piece:
            status, at = outcome.outcome.status, position.get(outcome.id)
            if isinstance(status, Status) and status.failure is not UNSET and at is not None:
                failure = msgspec.json.decode(status.failure)
                error = chain_errors.receipt_failure(failure, receipt_id=outcome.id)
                errors.setdefault(at, error)
    return errors


# The request -----------------------------------------------------------------------------


def _describe_request(story: _Story) -> str:
    """Describe the transaction's actions, and who sent them to whom."""
    transaction = story.result.transaction
    if transaction is None or transaction.signer_id is None:
        return "The document does not contain the transaction."
    actions = transaction.actions or []
    inner = delegate_action(actions[0]) if len(actions) == 1 else None
    name = "a transaction" if transaction.hash is None else f"transaction {transaction.hash}"
    if inner is None:
        receiver = _receiver(transaction.receiver_id, transaction.signer_id)
        return f"{transaction.signer_id} sent {name} to {receiver}: {_list_actions(actions)}."
    receiver = _receiver(inner.receiver_id, inner.sender_id)
    return (
        f"{inner.sender_id} signed a delegate action for {receiver}: "
        f"{_list_actions(inner.actions or [])}. "
        f"{transaction.signer_id} relayed it in {name} and paid for it."
    )


def _receiver(receiver_id: str | None, sender_id: str | None) -> str:
    """Return the receiver, or "itself" if it is the sender."""
    return "itself" if receiver_id == sender_id else str(receiver_id)


def _list_actions(actions: Actions) -> str:
    """List actions in their order."""
    return ", then ".join(map(_describe_action, actions)) or "no actions"


def _describe_action(action: Action | str) -> str:
    """Describe one action."""
    call = None if isinstance(action, str) else action.function_call
    yocto = deposit(action)
    amount = near_text(yocto) if yocto else ""
    if call is None:
        return action_name(action) + (f" of {amount}" if amount else "")
    attached = [text for text in (amount, gas_text(call.gas) if call.gas else "") if text]
    return _shorten(f"call {call.method_name}") + (
        f" with {' and '.join(attached)}" if attached else ""
    )


# The outcome -----------------------------------------------------------------------------


def _describe_outcome(story: _Story) -> str:
    """Describe how the transaction ended; its status and that of its receipts may differ."""
    outcome = verdict(story.tree)
    if outcome == "fully_succeeded":
        ending = "It succeeded, and so did all its receipts."
        if "not_executed" in story.tree.columns["status"]:
            ending = "It succeeded; only refunds can still be missing."
        return f"{ending}{_describe_return_value(story.result)}"
    if outcome == "succeeded_with_failed_receipts":
        return f"{_describe_partial_failure(story)}{_describe_return_value(story.result)}"
    if outcome == "failed":
        return _describe_failed_transaction(story)
    if outcome == "pending":
        return "It has not finished yet."
    return "The document does not say how it ended."


def _describe_partial_failure(story: _Story) -> str:
    """Describe which receipts failed although the transaction's status is success."""
    own = story.own_receipts()
    n_failed = len(set(own).intersection(story.failures))
    if not n_failed:
        return (
            "It succeeded, but a refund failed because its receiver no longer exists: that amount "
            "is lost."
        )
    return (
        f"Its status is success, but {n_failed} of {_count(len(own), 'receipt')} failed, so the "
        f"actions of {'that receipt' if n_failed == 1 else 'those receipts'} had no effect."
    )


def _describe_failed_transaction(story: _Story) -> str:
    """Describe why the transaction failed, and which receipts succeeded nevertheless."""
    first = story.tree.conversion
    if first.status == "failure":
        reason = first.error_message or first.error_kind
        return f"It failed before any receipt was created: {_sentence(str(reason))}"
    status, own = story.column("status"), story.own_receipts()
    n_succeeded = sum(status[at] in SUCCEEDED for at in own)
    if not n_succeeded:
        return "It failed, and none of its receipts succeeded."
    verb = "was" if n_succeeded == 1 else "were"
    return (
        f"It failed, but {n_succeeded} of {_count(len(own), 'receipt')} succeeded and {verb} not "
        "rolled back."
    )


def _count(count: int, noun: str) -> str:
    """Return a count with its noun in the singular or plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _describe_return_value(result: TxResult) -> str:
    """Quote the return value if it is text."""
    value = result.status.success_value if isinstance(result.status, Status) else None
    if not isinstance(value, str) or not value:
        return ""
    try:
        text = base64.b64decode(value, validate=True).decode()
    except ValueError:
        return " It returned bytes that are not text."
    return f" It returned {_shorten(text)}."


def _shorten(text: str) -> str:
    """Shorten a text and replace its line breaks and other control characters."""
    plain = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    if len(plain) <= _MOST_CHARACTERS:
        return plain
    return plain[: _MOST_CHARACTERS - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _sentence(text: str) -> str:
    """Return a text that ends with one full stop."""
    short = _shorten(text)
    return short if short.endswith((".", "!", "?")) else f"{short}."


# The receipts ----------------------------------------------------------------------------


def _describe_receipts(story: _Story) -> str:
    """List the receipts in order, with block and shard; of many, the first and a count."""
    own = story.own_receipts()
    if not own:
        return ""
    steps = _steps(story, own)
    lines = [f"It led to {_count(len(own), 'receipt')}:"]
    for number, (place, positions) in enumerate(steps[:_MOST_STEPS], 1):
        times = f" {len(positions)} times" if len(positions) > 1 else ""
        first = positions[0]
        lines.append(f"{number}. {story.name(first)}{times}{place}: {_status_text(story, first)}")
    others = [at for _, positions in steps[_MOST_STEPS:] for at in positions]
    if others:
        counts = Counter(map(story.name, others))
        most_frequent = counts.most_common(_MOST_NAMED)
        names = [f"{name}, {count} times" if count > 1 else name for name, count in most_frequent]
        names += ["and others"] if len(counts) > len(names) else []
        lines.append(f"… and {len(others)} more: {'; '.join(names)}")
    return "\n".join(lines)


def _steps(story: _Story, own: list[int]) -> list[tuple[str, list[int]]]:
    """Group consecutive receipts with the same name, place and status."""
    heights, shards = story.column("block_height"), story.column("shard_id")
    groups: list[tuple[tuple[str, ...], str, list[int]]] = []
    for at in own:
        place = _place(heights[at], shards[at])
        key = (story.name(at), place, _status_text(story, at))
        if groups and groups[-1][0] == key:
            groups[-1][2].append(at)
        else:
            groups.append((key, place, [at]))
    return [(place, positions) for _, place, positions in groups]


def _place(height: int | None, shard_id: int | None) -> str:
    """Return block and shard, as far as they are known."""
    block = "" if height is None else f" in block {height}"
    return block + ("" if shard_id is None else f", shard {shard_id}")


_STATUS_TEXTS = {
    "success_value": "succeeded",
    "success_receipt_id": "succeeded, its result comes from another receipt",
    "failure": "failed",
    "not_executed": "has not run",
    "unknown": "status unknown",
}


def _status_text(story: _Story, at: int) -> str:
    """Return how one receipt ended."""
    return _STATUS_TEXTS[story.tree.columns["status"][at]]


def _describe_waiting(story: _Story) -> str:
    """Describe which receipts waited for the results of others."""
    producers: dict[int, list[int]] = {}
    for producer, consumer, _ in story.tree.data:
        positions = producers.setdefault(consumer, [])
        if producer not in positions:
            positions.append(producer)
    sentences = [
        f"{story.name(consumer)} waited for {_list_names(story, positions)}."
        for consumer, positions in sorted(producers.items())[:_MOST_NAMED]
    ]
    n_others = len(producers) - len(sentences)
    if n_others > 0:
        sentences.append(f"{_count(n_others, 'other receipt')} also waited for results.")
    return " ".join([*sentences, *_describe_external_data(story)])


def _list_names(story: _Story, positions: list[int]) -> str:
    """List the names of receipts, equal names once."""
    counts = Counter(map(story.name, positions))
    names = [f"{name} ({count} times)" if count > 1 else name for name, count in counts.items()]
    n_others = len(names) - _MOST_NAMED
    return " and ".join(names[:_MOST_NAMED] + ([f"{n_others} others"] if n_others > 0 else []))


def _describe_external_data(story: _Story) -> list[str]:
    """Describe the receipts that wait for data from outside the transaction (NEP-519)."""
    delivered = {data_id for *_, data_id in story.tree.data}
    inputs, status = story.column("input_data_ids"), story.column("status")
    waiting = [
        at for at in story.own_receipts() if inputs[at] and not delivered.intersection(inputs[at])
    ]
    verbs = {True: "still waits", False: "waited"}
    return [
        f"{story.name(at)} {verbs[status[at] == 'not_executed']} for data from outside this "
        "transaction."
        for at in waiting[:_MOST_NAMED]
    ]


# The failures ----------------------------------------------------------------------------


def _describe_failures(story: _Story) -> list[str]:
    """Describe each kind of failure once."""
    groups: dict[tuple[str, str], list[int]] = {}
    for at in [at for at in story.own_receipts() if at in story.failures]:
        error = story.failures[at]
        groups.setdefault((story.name(at), str(error.args[0]) if error.args else ""), []).append(at)
    paragraphs = [
        _describe_failure(story, positions) for positions in list(groups.values())[:_MOST_FAILURES]
    ]
    n_others = len(groups) - len(paragraphs)
    return paragraphs + ([f"There are {n_others} more kinds of failure."] if n_others > 0 else [])


def _describe_failure(story: _Story, positions: list[int]) -> str:
    """Describe one kind of failure: its reason, its effect, and what to do."""
    at, columns = positions[0], story.tree.columns
    error = story.failures[at]
    times = f" ({len(positions)} times)" if len(positions) > 1 else ""
    kind, message = columns["error_kind"][at], columns["error_message"][at]
    index = getattr(error, "index", None)
    n_actions, where = len(story.actions[at] or ()), ""
    if n_actions > 1 and index is not None:
        where = f" at action {index + 1} of {n_actions}"
    parts = [
        f"{story.name(at)} failed{where}{times}: {_sentence(str(message))} ({kind})",
        "The changes of that receipt were rolled back; those of earlier receipts were not.",
        _describe_callers(story, at),
        _describe_callback(story, positions),
        f"What to do: {error.remedy}" if error.remedy else "",
    ]
    return " ".join(part for part in parts if part)


def _describe_callers(story: _Story, at: int) -> str:
    """List the receipts whose callback failed."""
    producers = list(dict.fromkeys(p for p, consumer, _ in story.tree.data if consumer == at))
    return f"It was the callback of {_list_names(story, producers)}." if producers else ""


def _describe_callback(story: _Story, positions: list[int]) -> str:
    """Describe the callback that ran after the failure, if it succeeded."""
    status = story.column("status")
    callbacks = [
        consumer
        for producer, consumer, _ in story.tree.data
        if producer in positions and status[consumer] in SUCCEEDED
    ]
    return f"Its callback, {story.name(callbacks[0])}, ran and succeeded." if callbacks else ""


# The transfers ---------------------------------------------------------------------------

_NEAR_KINDS = ("transfer", "deposit", "delegated", "beneficiary")


def _describe_transfers(story: _Story) -> str:
    """Describe the transfers between accounts, and the deposits that were refunded."""
    rows = [row for row in story.transfers if row.kind in _NEAR_KINDS or row.asset != "near"]
    parts = [_describe_transfer(row) for row in rows[:_MOST_TRANSFERS] if row.amount]
    n_others = len(rows) - _MOST_TRANSFERS
    if n_others > 0:
        parts.append(f"and {n_others} more")
    text = f"Transferred: {'; '.join(parts)}." if parts else "Nothing was transferred."
    refunds = [row for row in story.transfers if row.kind == "refund_deposit"]
    amounts = [f"{near_text(row.amount)} to {row.receiver_id}" for row in refunds[:_MOST_NAMED]]
    text += f" Deposits refunded: {', '.join(amounts)}." if amounts else ""
    n_others = len(refunds) - len(amounts)
    return text + (f" {n_others} more deposits were refunded." if n_others > 0 else "")


def _describe_transfer(row: Transfer) -> str:
    """Describe one transfer."""
    if row.asset == "near":
        return f"{near_text(row.amount)} from {row.sender_id} to {row.receiver_id}"
    standard, _, token = row.asset.partition(":")
    contract_id, _, token_id = token.partition(":")
    amount = f"{row.amount} units of {contract_id}"
    if standard != "nep141":
        amount = f"token {_shorten(token_id)} of {contract_id}"
        amount = amount if row.amount == 1 else f"{row.amount} of {amount}"
    if row.sender_id is None:
        return f"{amount} minted for {row.receiver_id}"
    if row.receiver_id is None:
        return f"{amount} of {row.sender_id} burnt"
    return f"{amount} from {row.sender_id} to {row.receiver_id}"


def _describe_cost(story: _Story) -> str:
    """Describe the gas burnt, its cost and payer, gas refunds and contract rewards."""
    first = story.tree.conversion
    gas = (first.gas_burnt or 0) + int(story.tree.columns["gas_burnt"].filled(0).sum())
    tokens = (first.tokens_burnt or 0) + sum(
        tokens for tokens in story.tree.columns["tokens_burnt"] if isinstance(tokens, int)
    )
    if not gas:
        return ""
    payer = first.signer_id or "the signer"
    parts = [f"It burnt {gas_text(gas)} of gas, which cost {payer} {near_text(tokens)}."]
    refunds = _sum_by_receiver(story.transfers, "refund_gas")
    parts += [f"Refunded for unused gas: {refunds}."] if refunds else []
    rewards = _sum_by_receiver(story.transfers, "contract_reward")
    parts += [f"Contract rewards from the burnt gas: {rewards}."] if rewards else []
    return " ".join(parts)


def _sum_by_receiver(transfers: list[Transfer], kind: str) -> str:
    """Sum the transfers of one kind by receiver."""
    sums: dict[str, int] = {}
    for row in transfers:
        if row.kind == kind:
            sums[str(row.receiver_id)] = sums.get(str(row.receiver_id), 0) + row.amount
    amounts = [
        f"{near_text(total)} to {account_id}"
        for account_id, total in list(sums.items())[:_MOST_NAMED]
    ]
    n_others = len(sums) - len(amounts)
    return ", ".join(amounts) + (f" and more to {n_others} other accounts" if n_others > 0 else "")


def _describe_duration(story: _Story) -> str:
    """Describe how long the receipts took, in blocks and seconds."""
    heights, times = story.tree.columns["block_height"], story.tree.columns["time"]
    with_heights = np.ma.compressed(heights)
    if not len(with_heights):
        return ""
    first, last = int(with_heights.min()), int(with_heights.max())
    text = f"All receipts ran in block {first}"
    if first != last:
        text = f"Its receipts ran in blocks {first} to {last}, {_count(last - first, 'block')}"
    stamps = [int(stamp) for stamp in np.ma.compressed(times) if stamp > 0]
    if not stamps:
        return f"{text}." if first == last else f"{text} apart."
    seconds = (max(stamps) - min(stamps)) / _NS
    start = datetime.fromtimestamp(min(stamps) // _NS, UTC)
    duration = "" if first == last else f" and {seconds:.1f} seconds apart"
    return f"{text}{duration}, starting at {start:%Y-%m-%d %H:%M:%S} UTC."


def _describe_notes(notes: Iterable[str]) -> str:
    """List what is unknown."""
    listed = "; ".join(notes)
    return f"Notes: {listed}." if listed else ""
