"""Actions, log lines and events of receipts: one row each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from pandas import NA

from ledgerkit import json_decoding
from ledgerkit.api.models.actions import (
    Action,
    action_name,
    action_rows,
    delegate_action,
    deposit_digits,
    function_call,
    named_content,
)
from ledgerkit.api.models.transactions import decode_member
from ledgerkit.tracing.action_fields import decode_all_args, deposit
from ledgerkit.tracing.intent_events import DIP4, IntentEvent, read_intents
from ledgerkit.tracing.token_standards import Movement, TokenStandardError, read_event

if TYPE_CHECKING:
    from ledgerkit.api.models.actions import ActionRow
    from ledgerkit.tracing.tree import Forest

    Columns = dict[str, Any]

EVENT_PREFIX = "EVENT_JSON:"  # NEP-297
SUCCEEDED = ("success_value", "success_receipt_id")
RECEIPT_COLUMNS = ("receipt_id", "order", "block_height")
_QUOTED = 80  # characters of an invalid event in its note


def with_receipts(columns: Columns, receipts: Mapping[str, Any]) -> Columns:
    """
    Replace the `position` of each row's receipt, if it is given, by columns that identify it.

    A negative position stands for a transaction itself.
    """
    if "position" not in columns:
        return columns
    keys = {name: [*receipts[name], None] for name in RECEIPT_COLUMNS}
    rows = [max(position, -1) for position in columns["position"]]
    return {
        **{name: [values[row] for row in rows] for name, values in keys.items()},
        **{name: values for name, values in columns.items() if name != "position"},
    }


def action_columns(forest: Forest) -> Columns:
    """Compute the columns of the actions frame, by position of the receipt."""
    parties = forest.columns["predecessor_id"], forest.columns["receiver_id"]
    rows = list(action_rows(zip(forest.actions(), *parties, strict=True)))
    calls = [function_call(row.action) for row in rows]
    return {
        "position": [row.position for row in rows],
        **shared_columns(rows),
        "args": decode_all_args([call.args if call else None for call in calls]),
        "deposit": [deposit(row.action) for row in rows],
        "is_effective": _are_effective(forest, rows),
    }


def _are_effective(forest: Forest, rows: Sequence[ActionRow]) -> list[bool | None]:
    """Return whether each action took effect; None if its receipt has not run, or may not have."""
    effective = {**dict.fromkeys(SUCCEEDED, True), "failure": False}
    statuses = forest.columns["status"]
    return [
        effective.get(statuses[row.position]) if row.inner_index is None else False for row in rows
    ]


def shared_columns(rows: Sequence[ActionRow]) -> Columns:
    """Compute the columns of actions that frames of traces and of blocks have in common."""
    actions = [row.action for row in rows]
    calls = list(map(function_call, actions))
    return {
        "action_index": [row.action_index for row in rows],
        "inner_index": [row.inner_index for row in rows],
        "action": list(map(action_name, actions)),
        "sender_id": [row.sender_id for row in rows],
        "receiver_id": [row.receiver_id for row in rows],
        "method_name": [call.method_name if call else None for call in calls],
        "gas_attached": [call.gas if call else None for call in calls],
        "details": list(map(action_details, actions)),
    }


def action_details(action: Action | str) -> Any:
    """Decode the members of an action other than a call or transfer."""
    if isinstance(action, str) or action.function_call or action.transfer:
        return NA
    inner = delegate_action(action)
    if inner is not None and inner.other is not None:
        return {inner.other.name: inner.other.content}
    if inner is not None:
        return {"sender_id": inner.sender_id, "receiver_id": inner.receiver_id}
    name, content = named_content(action)
    if isinstance(content, msgspec.Raw):
        content = decode_member(content, f"$..actions[].{name}")
    elif isinstance(content, msgspec.Struct):
        return _without_deposit(msgspec.to_builtins(content)) or NA
    if isinstance(content, dict) and deposit_digits(action) is not None:
        return _without_deposit(content)
    return NA if content is None else content


def _without_deposit(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != "deposit"}


def log_columns(forest: Forest) -> Columns:
    """Compute the columns of the logs frame, by position of the receipt."""
    positions: list[int] = []
    indices: list[int] = []
    lines: list[str] = []
    for position, logged in enumerate(forest.columns["logs"]):
        positions += [position] * len(logged)
        indices += range(len(logged))
        lines += logged
    return {
        "position": positions,
        "log_index": indices,
        **_contract_columns(forest, positions),
        "log": lines,
        "is_event": [line.startswith(EVENT_PREFIX) for line in lines],
    }


def _contract_columns(forest: Forest, positions: list[int]) -> Columns:
    receivers, statuses = forest.columns["receiver_id"], forest.columns["status"]
    return {
        "contract_id": [receivers[position] for position in positions],
        "is_effective": [statuses[position] in SUCCEEDED for position in positions],
    }


class Event(NamedTuple):
    """
    An event (NEP-297): the position of its receipt, the line's index, its content.

    `note` says what is wrong with an event that does not follow NEP-297 or the standard of its
    token; `movements` are the token movements that it reports, `intents` the executed intents.
    """

    position: int
    log_index: int
    standard: str | None
    version: str | None
    event: str | None
    data: Any
    note: str | None
    movements: list[Movement]
    intents: list[IntentEvent]


def parse_events(forest: Forest) -> list[Event]:
    """Parse all events in the order of receipts; invalid events have a `note`."""
    return [
        _parse_event(position, index, line)
        for position, lines in enumerate(forest.columns["logs"])
        for index, line in enumerate(lines)
        if line.startswith(EVENT_PREFIX)
    ]


def _parse_event(position: int, index: int, line: str) -> Event:
    text = line[len(EVENT_PREFIX) :]
    try:
        document = json_decoding.decode(text)
    except msgspec.DecodeError as problem:
        return _broken_event(position, index, f"not valid JSON ({problem}): {text[:_QUOTED]}")
    if not isinstance(document, dict):
        return _broken_event(position, index, f"not a JSON object: {text[:_QUOTED]}")
    names = [document.get(name) for name in ("standard", "version", "event")]
    standard, version, event = [name if isinstance(name, str) else None for name in names]
    data = document.get("data", NA)
    note, movements, intents = None, list[Movement](), list[IntentEvent]()
    try:
        if standard and event:
            movements = read_event(standard, event, data)
            intents = read_intents(event, data) if standard == DIP4 else []
        else:
            note = f"{_wrong_name(document)}: {text[:_QUOTED]}"
    except TokenStandardError as problem:
        note = str(problem)
    return Event(position, index, standard, version, event, data, note, movements, intents)


def _wrong_name(document: dict[str, Any]) -> str:
    standard = document.get("standard")
    name = "event" if isinstance(standard, str) and standard else "standard"
    if name not in document:
        return f"{name} is missing"
    return f"{name} is empty" if document[name] == "" else f"{name} is not a text"


def _broken_event(position: int, index: int, note: str) -> Event:
    return Event(position, index, None, None, None, NA, note, [], [])


def event_columns(forest: Forest, events: Sequence[Event]) -> Columns:
    """Compute the columns of the events frame, by position of the receipt."""
    names = ("position", "log_index", "standard", "version", "event", "data", "note")
    columns: Columns = {name: [getattr(event, name) for event in events] for name in names}
    return columns | _contract_columns(forest, columns["position"])
