"""
Swaps, deposits, withdrawals and transfers within NEAR Intents, and moves over the Omni Bridge.

A swap is one event `token_diff` (DIP-4) of the verifier contract. Tokens enter and leave the
contract by its NEP-245 mints and burns. Only the contracts on mainnet count: any contract can log
events of the same form.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ledgerkit import json_decoding
from ledgerkit.api.models.actions import Actions, function_calls
from ledgerkit.tracing.action_fields import decode_args
from ledgerkit.tracing.actions import SUCCEEDED, Event
from ledgerkit.tracing.amount_texts import INTENTS
from ledgerkit.tracing.intent_events import (
    DIP4,
    KNOWN_EVENTS,
    STORAGE_DEPOSIT,
    TOKEN_DIFF,
    TRANSFER,
    IntentEvent,
)
from ledgerkit.tracing.token_standards import (
    FUNGIBLE,
    MULTI_TOKEN,
    Movement,
    TokenStandardError,
    read_amount,
    read_text,
)
from ledgerkit.tracing.tree.linking import first_names

if TYPE_CHECKING:
    from ledgerkit.tracing.tree import Forest

# Source: duneanalytics/spellbook, dbt_subprojects/daily_spellbook/models/near/
# near_bridge_omni.sql, and near_defi_fact_intents.sql for intents.near.
BRIDGE = "omni.bridge.near"
SWAP = "swap"
# Source: near/intents, contracts/defuse/src/contract/tokens: the memos of mints and burns.
_MINTS = {"deposit": "deposit", "refund": "refund"}
_BURNS = {"withdraw": "withdrawal", "refund": "refund"}
# Source: near/intents, contracts/poa/token/src/lib.rs, WITHDRAW_MEMO_PREFIX.
_ADDRESS_MEMO = "WITHDRAW_TO:"
_BAD = "intents that could not be read are not counted"
_FOREIGN = "DIP-4 events of contracts other than intents.near are not counted"
_BAD_MOVES = "moves over the Omni Bridge that could not be read are not counted"


class IntentMove(NamedTuple):
    """A row of the frame `intents`; `position` is its receipt's."""

    position: int
    log_index: int
    contract_id: str
    kind: str
    account_id: str | None
    given_asset: str | None = None
    given: int | None = None
    received_asset: str | None = None
    received: int | None = None
    fee: int | None = None
    counterparty_id: str | None = None
    referral: str | None = None
    intent_hash: str | None = None
    chain: str | None = None
    address: str | None = None
    memo: str | None = None


def list_intents(
    forest: Forest, events: Iterable[Event]
) -> tuple[list[IntentMove], tuple[str, ...]]:
    """List the moves in the order of receipts, and notes on what is not counted."""
    notes: defaultdict[str, dict[str, None]] = defaultdict(dict)
    logged = _events_by_receipt(forest, events, notes)
    actions = forest.actions() if logged else []
    moves = [move for at, group in logged.items() for move in _receipt_moves(group, actions[at])]
    moves += _bridge_moves(forest, notes)
    listed = tuple(f"{note}: {first_names(list(names))}" for note, names in notes.items())
    return sorted(moves, key=lambda move: move[:2]), listed


def _events_by_receipt(
    forest: Forest, events: Iterable[Event], notes: defaultdict[str, dict[str, None]]
) -> dict[int, list[Event]]:
    """Return the events of the verifier contract's receipts; note those that do not count."""
    statuses, contracts = forest.columns["status"], forest.columns["receiver_id"]
    by_receipt: defaultdict[int, list[Event]] = defaultdict(list)
    for event in events:
        contract_id = contracts[event.position]
        if statuses[event.position] not in SUCCEEDED:
            continue
        name = f"{event.event} of {contract_id} in {forest.ids[event.position]}"
        if contract_id == INTENTS:
            by_receipt[event.position].append(event)
            note = event.note or (None if event.event in KNOWN_EVENTS else "an unknown event")
            if event.standard == DIP4 and note:
                notes[_BAD][f"{name} ({note})"] = None
        elif event.standard == DIP4:
            notes[_FOREIGN][name] = None
    return by_receipt


def _receipt_moves(events: Sequence[Event], actions: Actions | None) -> Iterator[IntentMove]:
    """Iterate over the moves that one receipt of the verifier contract logged."""
    executed = [(event, intent) for event in events for intent in event.intents]
    diffs = [intent for _, intent in executed if intent.event == TOKEN_DIFF]
    withdrawals = [
        [intent, [*intent.changes]]
        for _, intent in executed
        if intent.event not in (TOKEN_DIFF, TRANSFER)
    ]
    # The transfers of such receipts settle intents, which have rows of their own.
    is_settled = any(e.standard == DIP4 and e.event in (TOKEN_DIFF, TRANSFER) for e in events)
    for event, intent in executed:
        key = event.position, event.log_index, INTENTS
        if intent.event == TOKEN_DIFF:
            yield from _swap(key, intent, diffs)
        elif intent.event == TRANSFER:
            for token_id, change in intent.changes:
                yield IntentMove(
                    *key, TRANSFER, intent.account_id, token_id, -change, **_facts(intent)
                )
    for event in events:
        key = event.position, event.log_index, INTENTS
        for movement in event.movements if event.standard == MULTI_TOKEN else ():
            if movement.sender_id is None:
                yield _mint(key, movement, actions)
            elif movement.receiver_id is None:
                yield _burn(key, movement, withdrawals)
            elif not is_settled:
                yield _transfer(key, movement)


_Key = tuple[int, int, str]


def _facts(intent: IntentEvent) -> dict[str, Any]:
    return {
        "counterparty_id": intent.receiver_id,
        "referral": intent.referral,
        "intent_hash": intent.intent_hash,
        "memo": intent.memo,
    }


def _swap(key: _Key, intent: IntentEvent, diffs: Sequence[IntentEvent]) -> Iterator[IntentMove]:
    """Build the row of a swap; a swap of more than two tokens is a row for each token."""
    given = [(token_id, -change) for token_id, change in intent.changes if change < 0]
    received = [(token_id, change) for token_id, change in intent.changes if change > 0]
    kind = SWAP if given and received else "one_sided"
    facts = {**_facts(intent), "counterparty_id": _counterparties(intent, diffs)}
    pairs: list[Any]
    none = None, None
    if max(len(given), len(received)) > 1:
        pairs = [*((side, none) for side in given), *((none, side) for side in received)]
    else:
        pairs = [*zip_longest(given, received, fillvalue=none)]  # none for a diff of 0
    for (given_asset, amount), (received_asset, got) in pairs:
        # Source: near/intents, token_diff.rs: a fee is part of what is given, and 0 if not named.
        fee = None if given_asset is None else intent.fees.get(given_asset, 0)
        sides = given_asset, amount, received_asset, got, fee
        yield IntentMove(*key, kind, intent.account_id, *sides, **facts)


def _counterparties(intent: IntentEvent, diffs: Sequence[IntentEvent]) -> str | None:
    """Join the accounts of the receipt whose swaps change a token in the opposite direction."""
    changes = dict(intent.changes)
    names = [
        other.account_id
        for other in diffs
        if other.account_id != intent.account_id
        and any(change * changes.get(token_id, 0) < 0 for token_id, change in other.changes)
    ]
    return "+".join(dict.fromkeys(names)) or None


def _mint(key: _Key, movement: Movement, actions: Actions | None) -> IntentMove:
    kind = _MINTS.get(movement.memo or "", "mint")
    sender_id = None
    if kind == "deposit":
        args = [decode_args(call) for call in function_calls(actions or ())]
        senders = [value.get("sender_id") for value in args if isinstance(value, dict)]
        sender_id = senders[0] if len(senders) == 1 and isinstance(senders[0], str) else None
    return IntentMove(
        *key,
        kind,
        movement.receiver_id,
        received_asset=movement.token_id,
        received=movement.amount,
        counterparty_id=sender_id,
        memo=movement.memo,
    )


def _burn(key: _Key, movement: Movement, withdrawals: list[list[Any]]) -> IntentMove:
    """Build the row of tokens that left, with the facts of the intent that asked for it."""
    kind = _BURNS.get(movement.memo or "", "burn")
    sides = movement.sender_id, movement.token_id, movement.amount
    for intent, changes in withdrawals:
        change = next((c for c in changes if _is_burn(c, intent, movement)), None)
        if change is not None:
            changes.remove(change)
            facts = _facts(intent) | {"memo": intent.memo or movement.memo}
            if change[0] is None and intent.event != "native_withdraw":
                kind = STORAGE_DEPOSIT
            return IntentMove(*key, kind, *sides, **facts | _destination(intent))
    return IntentMove(*key, kind, *sides, memo=movement.memo)


def _is_burn(change: tuple[str | None, int], intent: IntentEvent, burn: Movement) -> bool:
    token_id, amount = change
    # The events of storage deposits had two members `account_id` once: the last is not the owner.
    has_owner = intent.account_id == burn.sender_id or intent.event == STORAGE_DEPOSIT
    is_wrapped = token_id is None and (burn.token_id or "").startswith(f"{FUNGIBLE}:")
    return has_owner and -amount == burn.amount and (is_wrapped or token_id == burn.token_id)


def _destination(intent: IntentEvent) -> dict[str, Any]:
    """Return the address on another chain that a withdrawal names, and its chain if it does."""
    if (intent.memo or "").startswith(_ADDRESS_MEMO):
        return {"address": (intent.memo or "").removeprefix(_ADDRESS_MEMO)}
    message = _decode(intent.msg or "") if intent.receiver_id == BRIDGE else None
    if isinstance(message, dict):
        # Source: Near-One/omni-bridge, near/omni-bridge/src/lib.rs, ft_on_transfer.
        message = message.get("InitTransfer", message)
        recipient = message.get("recipient") if isinstance(message, dict) else None
        if isinstance(recipient, str) and ":" in recipient:
            return dict(zip(("chain", "address"), recipient.split(":", 1), strict=True))
    return {}


def _transfer(key: _Key, movement: Movement) -> IntentMove:
    kind = "refund" if movement.memo == "refund" else TRANSFER
    sides = movement.sender_id, movement.token_id, movement.amount
    return IntentMove(*key, kind, *sides, counterparty_id=movement.receiver_id, memo=movement.memo)


# The Omni Bridge --------------------------------------------------------------------------

# Source: Near-One/omni-bridge, near/omni-types/src/near_events.rs: the log lines are JSON objects
# with one member. These report no move, or one that another event reports, too.
_OUT, _IN = "InitTransferEvent", "FinTransferEvent"
_KINDS, _NEAR = {_OUT: "bridge_out", _IN: "bridge_in"}, "near:"
_OTHER_EVENTS = {
    *("SignTransferEvent", "FailedFinTransferEvent", "UpdateFeeEvent", "LogMetadataEvent"),
    *("ClaimFeeEvent", "DeployTokenEvent", "BindTokenEvent", "MigrateTokenEvent"),
    "FastTransferEvent",
}


def _bridge_moves(forest: Forest, notes: defaultdict[str, dict[str, None]]) -> Iterator[IntentMove]:
    """Iterate over the moves that the bridge logged; note those that could not be read."""
    receipts = zip(forest.columns["receiver_id"], forest.columns["status"], strict=True)
    for position, (contract_id, status) in enumerate(receipts):
        if contract_id != BRIDGE or status not in SUCCEEDED:
            continue
        for index, line in enumerate(forest.columns["logs"][position]):
            try:
                move = _bridge_move(position, index, line)
            except TokenStandardError as problem:
                notes[_BAD_MOVES][f"{forest.ids[position]} ({problem})"] = None
            else:
                yield from [move] if move else []


def _bridge_move(position: int, index: int, line: str) -> IntentMove | None:
    """Return the move that a log line of the bridge reports; None if it reports none."""
    document = _decode(line)
    if not isinstance(document, dict) or len(document) != 1:
        return None
    [(name, content)] = document.items()
    if name in _OTHER_EVENTS or not name.endswith("Event"):
        return None
    message = content.get("transfer_message") if isinstance(content, dict) else None
    if name not in (_OUT, _IN) or not isinstance(message, dict):
        raise TokenStandardError(name)
    sender, recipient = read_text(message, "sender", name), read_text(message, "recipient", name)
    # A token of another chain has no NEP-141 name in the log.
    token, fees = read_text(message, "token", name), message.get("fee")
    asset = f"{FUNGIBLE}:{token.removeprefix(_NEAR)}" if token.startswith(_NEAR) else token
    fee = read_amount(fees if isinstance(fees, dict) else {}, "fee", f"{name}.fee")
    amount, memo = read_amount(message, "amount", name), message.get("msg")
    if fee > amount:
        raise TokenStandardError(f"{name}.fee is above the amount")
    ends_here = (sender if name == _OUT else recipient).startswith(_NEAR)
    account_id = (sender if name == _OUT else recipient).removeprefix(_NEAR) if ends_here else None
    chain, _, address = (sender if name == _IN and ends_here else recipient).partition(":")
    facts: dict[str, Any] = {"given_asset": asset, "given": amount}
    if name == _IN:
        facts = {"received_asset": asset, "received": amount - fee}
    facts |= {"fee": fee, "chain": chain, "address": address}
    facts["memo"] = memo if isinstance(memo, str) and memo else None
    kind = _KINDS[name] if ends_here else "bridge_through"
    return IntentMove(position, index, BRIDGE, kind, account_id, **facts)


def _decode(text: str) -> Any:
    try:
        return json_decoding.decode(text)
    except msgspec.DecodeError:
        return None


def intent_columns(moves: Sequence[IntentMove]) -> dict[str, Any]:
    """Compute the columns of the intents frame, by position of the receipt."""
    columns = zip(*moves, strict=True) if moves else [()] * len(IntentMove._fields)
    return dict(zip(IntentMove._fields, columns, strict=True))
