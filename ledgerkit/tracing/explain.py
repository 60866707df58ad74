"""What happened in a transaction, told in plain words and from its result alone."""

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
from ledgerkit.tracing import actions as tracing_actions
from ledgerkit.tracing.tree import verdict
from ledgerkit.tracing.tree.tables import action_name
from ledgerkit.units import gas_text, near_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ledgerkit.api.models.transactions import Action, TxResult
    from ledgerkit.errors import LedgerError
    from ledgerkit.tracing.token_events import Moved
    from ledgerkit.tracing.transfers import Movements
    from ledgerkit.tracing.tree import Tree

    Actions = Sequence[Action | str]

_MOST_STEPS = 12
_MOST_NAMED = 3
_MOST_FAILURES = 4
_MOST_MOVES = 8
_LONGEST = 160
_NS = 10**9
_DELEGATES = ("Delegate", "DelegateV2")


@dataclass(frozen=True, slots=True)
class _Story:
    """What there is to tell from."""

    tree: Tree
    result: TxResult
    moved: Movements
    asked: list[Actions | None]
    failures: dict[int, LedgerError]

    def column(self, name: str) -> Any:
        """Give a column of the receipts, None where a value is missing."""
        return self.tree.columns[name].tolist()

    def own(self) -> list[int]:
        """List the receipts that are no refunds."""
        kinds = self.tree.columns["kind"]
        return [at for at, kind in enumerate(kinds) if kind != "refund"]

    def name(self, at: int) -> str:
        """Name a receipt by what it does, and where."""
        columns = self.tree.columns
        receiver_id = columns["receiver_id"][at] or "an unknown account"
        if columns["kind"][at] == "refund":
            return f"the refund to {receiver_id}"
        actions = columns["actions"][at] or "something unknown"
        is_relayed = actions in _DELEGATES
        what = actions if is_relayed else columns["method_name"][at] or actions
        return _cut(f"{what} of {receiver_id}")


def explain(
    tree: Tree,
    result: TxResult,
    asked: list[Actions | None],
    moved: Movements,
    notes: Iterable[str],
) -> str:
    """
    Tell what happened.

    Parameters
    ----------
    tree
        The receipt tree.
    result
        The result it was made from.
    asked
        What each receipt asks for, from `ledgerkit.tracing.actions.asked`.
    moved
        What moved in it.
    notes
        What is not known.

    Returns
    -------
    text
        Short paragraphs; the same for the same arguments.
    """
    story = _Story(tree, result, moved, asked, _failures(tree, result))
    told = (
        _asking(story),
        _ending(story),
        _running(story),
        _waiting(story),
        *_failing(story),
        _moving(story),
        _paying(story),
        _lasting(story),
        _lacking(notes),
    )
    return "\n\n".join(paragraph for paragraph in told if paragraph)


def _failures(tree: Tree, result: TxResult) -> dict[int, LedgerError]:
    """Read why receipts failed; what comes first counts."""
    position = {receipt_id: at for at, receipt_id in enumerate(tree.ids.tolist())}
    found: dict[int, LedgerError] = {}
    for _, piece in result.outcomes.pieces():
        for outcome in piece:
            status, at = outcome.outcome.status, position.get(outcome.id)
            if isinstance(status, Status) and status.failure is not UNSET and at is not None:
                failure = msgspec.json.decode(status.failure)
                told = chain_errors.receipt_failure(failure, receipt_id=outcome.id)
                found.setdefault(at, told)
    return found


# What was asked --------------------------------------------------------------------------


def _asking(story: _Story) -> str:
    """Say who asked whom for what."""
    transaction = story.result.transaction
    if transaction is None or transaction.signer_id is None:
        return "Who asked for what is not told."
    actions = transaction.actions or []
    inner = tracing_actions.delegated(actions[0]) if len(actions) == 1 else None
    named = "" if transaction.hash is None else f" (transaction {transaction.hash})"
    if inner is None:
        whom = _whom(transaction.receiver_id, transaction.signer_id)
        return f"{transaction.signer_id} asked {whom} for {_listed(actions)}{named}."
    whom = _whom(inner.receiver_id, inner.sender_id)
    return (
        f"{inner.sender_id} asked {whom} for {_listed(inner.actions or [])}; "
        f"{transaction.signer_id} relayed it, signed the transaction and paid for it{named}."
    )


def _whom(receiver_id: str | None, sender_id: str | None) -> str:
    """Name an account, or say that it is the same one."""
    return "itself" if receiver_id == sender_id else str(receiver_id)


def _listed(actions: Actions) -> str:
    """List actions as one asks for them."""
    return ", then ".join(map(_action, actions)) or "nothing"


def _action(action: Action | str) -> str:
    """Describe one action."""
    call = None if isinstance(action, str) else action.function_call
    moved = tracing_actions.deposit(action)
    with_it = [near_text(moved)] if moved else []
    if call is None:
        return " of ".join([action_name(action), *with_it])
    with_it += [gas_text(call.gas)] if call.gas else []
    return _cut(f"{call.method_name}") + (f" with {' and '.join(with_it)}" if with_it else "")


# How it ended ----------------------------------------------------------------------------


def _ending(story: _Story) -> str:
    """Say how the whole ended; a status and what lies under it may differ."""
    ended = verdict(story.tree)
    if ended == "fully_succeeded":
        rest = ", and so did everything it led to"
        if "not_executed" in story.tree.columns["status"]:
            rest = "; what has not run yet can only be refunds"
        return f"It succeeded{rest}.{_returned(story.result)}"
    if ended == "succeeded_with_failed_receipts":
        return f"{_but(story)}{_returned(story.result)}"
    if ended == "failed":
        return _failed(story)
    if ended == "pending":
        return "It has not ended yet."
    return "How it ended is not told."


def _but(story: _Story) -> str:
    """Say what failed under a status that says success."""
    own = story.own()
    failed = len(set(own).intersection(story.failures))
    if not failed:
        return (
            "It succeeded, but for a refund that reached nobody, since its receiver is gone: the "
            "amount is lost."
        )
    return (
        f"Its status says success, but {_count(failed, 'receipt')} of {len(own)} failed, and what "
        f"{_they(failed)} {'was' if failed == 1 else 'were'} to do was not done."
    )


def _failed(story: _Story) -> str:
    """Say that it failed, and what stays done all the same."""
    first = story.tree.conversion
    if first.status == "failure":
        why = first.error_message or first.error_kind
        return f"It failed at once, without a receipt: {_ended(str(why))}"
    status = story.column("status")
    done = [at for at in story.own() if status[at] in tracing_actions.SUCCEEDED]
    if not done:
        return "It failed, and nothing of it was done."
    return (
        f"It failed, but not all of it: {_count(len(done), 'receipt')} of {len(story.own())} "
        f"succeeded, and what {_they(len(done))} did was not undone."
    )


def _they(count: int) -> str:
    """Refer to one or several."""
    return "it" if count == 1 else "they"


def _count(count: int, what: str) -> str:
    """Count things."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _returned(result: TxResult) -> str:
    """Quote what it returned, where that is short text."""
    value = result.status.success_value if isinstance(result.status, Status) else None
    if not isinstance(value, str) or not value:
        return ""
    try:
        text = base64.b64decode(value, validate=True).decode()
    except ValueError:
        return " It returned bytes that are no text."
    return f" It returned {_cut(text)}."


def _cut(text: str) -> str:
    """Shorten a text, and keep it on its line."""
    plain = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _ended(sentence: str) -> str:
    """End a sentence with one full stop."""
    shown = _cut(sentence)
    return shown if shown.endswith((".", "!", "?")) else f"{shown}."


# What ran --------------------------------------------------------------------------------


def _running(story: _Story) -> str:
    """List what ran, in order and with its place; of many, the first and a count."""
    own = story.own()
    if not own:
        return ""
    steps = _steps(story, own)
    lines = [f"What ran, in {_count(len(own), 'receipt')}:"]
    for number, (place, those) in enumerate(steps[:_MOST_STEPS], 1):
        times = f" {len(those)} times" if len(those) > 1 else ""
        lines.append(f"{number}. {story.name(those[0])}{times}{place}: {_word(story, those[0])}")
    rest = [at for _, those in steps[_MOST_STEPS:] for at in those]
    if rest:
        counted = Counter(map(story.name, rest))
        more = [f"{name}, {count} times" if count > 1 else name for name, count in _most(counted)]
        others = "" if len(counted) <= len(more) else "; and others"
        lines.append(f"… and {len(rest)} more: {'; '.join(more)}{others}")
    return "\n".join(lines)


def _steps(story: _Story, own: list[int]) -> list[tuple[str, list[int]]]:
    """Put together what ran alike, one after the other and in the same place."""
    heights, shards = story.column("block_height"), story.column("shard_id")
    found: list[tuple[tuple[str, ...], str, list[int]]] = []
    for at in own:
        place = _place(heights[at], shards[at])
        same = (story.name(at), place, _word(story, at))
        if found and found[-1][0] == same:
            found[-1][2].append(at)
        else:
            found.append((same, place, [at]))
    return [(place, those) for _, place, those in found]


def _most(counted: Counter[str]) -> list[tuple[str, int]]:
    """Give what is most frequent; of equals what comes first."""
    return counted.most_common(_MOST_NAMED)


def _place(height: int | None, shard_id: int | None) -> str:
    """Name a block and a shard, as far as they are known."""
    block = "" if height is None else f" in block {height}"
    return block + ("" if shard_id is None else f", shard {shard_id}")


_WORDS = {
    "success_value": "succeeded",
    "success_receipt_id": "succeeded, and left its result to another receipt",
    "failure": "failed",
    "not_executed": "has not run",
    "unknown": "how it ended is not told",
}


def _word(story: _Story, at: int) -> str:
    """Say how one receipt ended."""
    return _WORDS[story.tree.columns["status"][at]]


def _waiting(story: _Story) -> str:
    """Say what waited for what."""
    producers: dict[int, list[int]] = {}
    for producer, consumer, _ in story.tree.data:
        known = producers.setdefault(consumer, [])
        if producer not in known:
            known.append(producer)
    told = [
        f"{story.name(consumer)} waited for {_several(story, found)}."
        for consumer, found in sorted(producers.items())[:_MOST_NAMED]
    ]
    left = len(producers) - len(told)
    told += [f"{_count(left, 'other receipt')} waited likewise."] if left > 0 else []
    return " ".join([*told, *_unresumed(story)])


def _several(story: _Story, places: list[int]) -> str:
    """Name receipts, those of one name together."""
    counted = Counter(map(story.name, places))
    names = [f"{name} ({count} times)" if count > 1 else name for name, count in counted.items()]
    left = len(names) - _MOST_NAMED
    return " and ".join(names[:_MOST_NAMED] + ([f"{left} others"] if left > 0 else []))


def _unresumed(story: _Story) -> list[str]:
    """Name what waits for data that no receipt of this transaction brings."""
    brought = {data_id for *_, data_id in story.tree.data}
    inputs, status = story.column("input_data_ids"), story.column("status")
    lone = [at for at in story.own() if inputs[at] and not brought.intersection(inputs[at])]
    tense = {True: "still waits", False: "waited"}
    return [
        f"{story.name(at)} {tense[status[at] == 'not_executed']} for data from outside this "
        "transaction."
        for at in lone[:_MOST_NAMED]
    ]


# What failed -----------------------------------------------------------------------------


def _failing(story: _Story) -> list[str]:
    """Tell each kind of failure once: what, why, what came of it, what to do."""
    groups: dict[tuple[str, str], list[int]] = {}
    for at in [at for at in story.own() if at in story.failures]:
        error = story.failures[at]
        groups.setdefault((story.name(at), str(error.args[0]) if error.args else ""), []).append(at)
    told = [_failure(story, places) for places in list(groups.values())[:_MOST_FAILURES]]
    left = len(groups) - len(told)
    return told + ([f"There are {left} more kinds of failure."] if left > 0 else [])


def _failure(story: _Story, places: list[int]) -> str:
    """Tell one failure."""
    at, columns = places[0], story.tree.columns
    error = story.failures[at]
    times = f" ({len(places)} times)" if len(places) > 1 else ""
    kind, message = columns["error_kind"][at], columns["error_message"][at]
    index = getattr(error, "index", None)
    n_actions, where = len(story.asked[at] or ()), ""
    if n_actions > 1 and index is not None:
        where = f" at action {index + 1} of {n_actions}"
    parts = [
        f"{story.name(at)} failed{where}{times}: {_ended(str(message))} ({kind})",
        "What that receipt had done was rolled back; what ran before it was not.",
        _callback_of(story, at),
        _callback(story, places),
        f"What to do: {error.remedy}" if error.remedy else "",
    ]
    return " ".join(part for part in parts if part)


def _callback_of(story: _Story, at: int) -> str:
    """Say of a callback whom it was to hear of."""
    producers = list(dict.fromkeys(p for p, c, _ in story.tree.data if c == at))
    return f"It was the callback of {_several(story, producers)}." if producers else ""


def _callback(story: _Story, places: list[int]) -> str:
    """Say who was told of the failure, and went on."""
    status = story.column("status")
    told = [
        c for p, c, _ in story.tree.data if p in places and status[c] in tracing_actions.SUCCEEDED
    ]
    if not told:
        return ""
    return f"Its callback, {story.name(told[0])}, ran and succeeded."


# What moved ------------------------------------------------------------------------------

_GIVEN = ("transfer", "deposit", "delegated", "beneficiary")


def _moving(story: _Story) -> str:
    """Say what moved between accounts, and which deposits came back."""
    rows = [row for row in story.moved.rows if row.kind in _GIVEN or row.asset != "near"]
    told = [_movement(row) for row in rows[:_MOST_MOVES] if row.amount]
    left = len(rows) - _MOST_MOVES
    if left > 0:
        told.append(f"and {left} more movements")
    text = f"What moved: {'; '.join(told)}." if told else "Nothing moved but gas."
    back = [row for row in story.moved.rows if row.kind == "refund_deposit"]
    given = [f"{near_text(row.amount)} to {row.receiver_id}" for row in back[:_MOST_NAMED]]
    text += f" Deposits given back: {', '.join(given)}." if given else ""
    left = len(back) - len(given)
    return text + (f" And {left} more were given back." if left > 0 else "")


def _movement(row: Moved) -> str:
    """Describe one movement."""
    if row.asset == "near":
        return f"{near_text(row.amount)} from {row.sender_id} to {row.receiver_id}"
    standard, _, named = row.asset.partition(":")
    contract_id, _, token_id = named.partition(":")
    what = f"{row.amount} units of {contract_id}"
    if standard != "nep141":
        what = f"token {_cut(token_id)} of {contract_id}"
        what = what if row.amount == 1 else f"{row.amount} of {what}"
    if row.sender_id is None:
        return f"{what} made for {row.receiver_id}"
    if row.receiver_id is None:
        return f"{what} of {row.sender_id} destroyed"
    return f"{what} from {row.sender_id} to {row.receiver_id}"


def _paying(story: _Story) -> str:
    """Say what it cost, who paid, and who got gas money back or a share of it."""
    first = story.tree.conversion
    burnt = (first.gas_burnt or 0) + int(story.tree.columns["gas_burnt"].filled(0).sum())
    tokens = (first.tokens_burnt or 0) + sum(
        cost for cost in story.tree.columns["tokens_burnt"] if isinstance(cost, int)
    )
    if not burnt:
        return ""
    parts = [f"It burnt {gas_text(burnt)} of gas, for which {first.signer_id} paid"]
    parts[0] += f" {near_text(tokens)}."
    back = _by_receiver(story.moved.rows, "refund_gas")
    parts += [f"Gas not used came back: {back}."] if back else []
    shares = _by_receiver(story.moved.rows, "contract_reward")
    parts += [f"Of what was burnt, contracts got: {shares}."] if shares else []
    return " ".join(parts)


def _by_receiver(rows: list[Moved], kind: str) -> str:
    """Add up what each account got of one kind."""
    sums: dict[str, int] = {}
    for row in rows:
        if row.kind == kind:
            sums[str(row.receiver_id)] = sums.get(str(row.receiver_id), 0) + row.amount
    named = [f"{near_text(total)} to {who}" for who, total in list(sums.items())[:_MOST_NAMED]]
    left = len(sums) - len(named)
    return ", ".join(named) + (f" and more to {left} others" if left > 0 else "")


def _lasting(story: _Story) -> str:
    """Say how long it took, in blocks and seconds."""
    heights, times = story.tree.columns["block_height"], story.tree.columns["time"]
    known = np.ma.compressed(heights)
    if not len(known):
        return ""
    low, high = int(known.min()), int(known.max())
    if low == high:
        text = f"All receipts ran in block {low}"
    else:
        text = f"Its receipts ran in blocks {low} to {high}, {_count(high - low, 'block')}"
    stamps = [int(stamp) for stamp in np.ma.compressed(times) if stamp > 0]
    if not stamps:
        return f"{text}."
    seconds = (max(stamps) - min(stamps)) / _NS
    begun = datetime.fromtimestamp(min(stamps) // _NS, UTC)
    took = "" if low == high else f" and {seconds:.1f} seconds apart"
    return f"{text}{took}, from {begun:%Y-%m-%d %H:%M:%S} UTC."


def _lacking(notes: Iterable[str]) -> str:
    """Say what is not known."""
    told = list(notes)
    return "Not known: " + "; ".join(told) + "." if told else ""
