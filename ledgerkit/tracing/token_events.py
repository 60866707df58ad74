"""Token transfers: from events of the standards, else from log lines, else from arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.tracing import actions, token_calls
from ledgerkit.tracing.token_standards import (
    FUNGIBLE,
    MULTI_TOKEN,
    NEARX,
    NON_FUNGIBLE,
    STANDARDS,
    TokenStandardError,
)
from ledgerkit.tracing.tree.linking import first_names

if TYPE_CHECKING:
    from ledgerkit.tracing.actions import Event
    from ledgerkit.tracing.gas import ReceiptValues
    from ledgerkit.tracing.token_calls import CallReader, TokenCall
    from ledgerkit.tracing.token_standards import Movement

_KINDS = {FUNGIBLE: "token", NON_FUNGIBLE: "nft", MULTI_TOKEN: "multi_token"}
_QUOTED = 60  # characters of a log line in a note
_BAD_EVENTS = "events that do not follow their standard are not counted"
_UNREAD = "token movements that could not be read are not counted"
_UNREAD_LINES = (
    "log lines that read like token movements, but not of a method that is known to write them, "
    "are not counted"
)
_UNKNOWN_CONTRACTS = "tokens whose contract the document does not contain are not counted"


class Transfer(NamedTuple):
    """A transfer and its receipt's position: -1 is the first transaction itself, -2 the second."""

    position: int
    kind: str
    asset: str
    sender_id: str | None
    receiver_id: str | None
    amount: int | None
    memo: str | None = None
    evidence: str | None = None


def token_transfers(
    values: ReceiptValues, events: Iterable[Event]
) -> tuple[list[Transfer], tuple[str, ...]]:
    """Return the token transfers of receipts that succeeded, and notes on what is not counted."""
    reports = _Reports(token_calls.CallReader(values))
    by_receipt: dict[int, list[Movement]] = {}
    for event in events:
        if values.status[event.position] in actions.SUCCEEDED:
            by_receipt.setdefault(event.position, []).extend(event.movements)
            reports.add(event.position, event.movements, "event")
            if event.note and event.standard in (None, NEARX, *STANDARDS):
                reports.note(_BAD_EVENTS, event.position, event.event or "one", event.note)
    for position, (status, names) in enumerate(zip(values.status, values.names, strict=True)):
        if status in actions.SUCCEEDED:
            calls = reports.reader.calls(position) if "FunctionCall" in names else []
            if calls or reports.reader.lines[position]:
                _read_without_events(reports, position, calls, by_receipt.get(position, []))
    return reports.transfers, reports.notes()


class _Reports:
    """The transfers of a transaction, and what could not be read."""

    def __init__(self, reader: CallReader) -> None:
        self.reader = reader
        self.transfers: list[Transfer] = []
        self._notes: dict[str, dict[str, None]] = {}  # the inner dicts are ordered sets

    def add(self, position: int, movements: list[Movement], evidence: str) -> None:
        contract_id = self.reader.values.receivers[position]
        if contract_id is None:
            if movements:
                self.note(_UNKNOWN_CONTRACTS, position, evidence)
            return
        for standard, token_id, sender_id, receiver_id, amount, memo in movements:
            asset = f"{standard}:{contract_id}" + ("" if token_id is None else f":{token_id}")
            fields = sender_id, receiver_id, amount, memo, evidence
            self.transfers.append(Transfer(position, _KINDS[standard], asset, *fields))

    def note(self, sentence: str, position: int, name: str, reason: str | None = None) -> None:
        values = self.reader.values
        contract_id = values.receivers[position] or "an unknown contract"
        text = f"{name} of {contract_id} in {values.forest.ids[position]}"
        names = self._notes.setdefault(sentence, {})
        names[f"{text} ({reason})" if reason else text] = None

    def notes(self) -> tuple[str, ...]:
        return tuple(f"{note}: {first_names(list(names))}" for note, names in self._notes.items())


def _read_without_events(
    reports: _Reports, position: int, calls: list[TokenCall], movements: list[Movement]
) -> None:
    """Read the movements that the events of a receipt leave out; `movements` are the events'."""
    reader = reports.reader
    lines, n_calls = reader.lines[position], Counter(call.method for call in calls)
    if reader.values.receivers[position] == token_calls.META_POOL:
        _read_meta_pool(reports, position, lines)
    if lines and not movements and all(call.rule.standard == FUNGIBLE for call in calls):
        for line in lines:
            if token_calls.is_unread(line, n_calls):
                reports.note(_UNREAD_LINES, position, repr(line[:_QUOTED]))
    if not calls:
        return
    n_methods = len(n_calls)
    logged = [
        movement
        for movement in token_calls.line_movements(lines, calls)
        if not _covers(movements, FUNGIBLE, (movement.verb,), n_methods)
    ]
    reports.add(position, [movement for movement in logged if movement.amount], "log")
    for call in calls:
        rule, reported = call.rule, [*movements, *logged]
        if not _covers(reported, rule.standard, rule.verbs, n_methods, n_calls[call.method]):
            _read_arguments(reports, call, reported)


def _read_meta_pool(reports: _Reports, position: int, lines: list[str]) -> None:
    """Read the events of Meta Pool; note the movements that they leave out."""
    for event in token_calls.meta_pool_events(lines):
        reports.add(position, event.movements, "log")
        if event.gap:
            reports.note(_UNREAD, position, event.name, event.gap)


def _read_arguments(reports: _Reports, call: TokenCall, movements: list[Movement]) -> None:
    """Read a call that the movements of its receipt leave out; note it if it cannot be read."""
    rule = call.rule
    try:
        read = rule.read(call, reports.reader)
    except TokenStandardError as problem:
        reports.note(_UNREAD, call.position, call.method, str(problem))
        return
    if read and any(movement.standard == rule.standard for movement in movements):
        reason = "other movements of its receipt are logged, this one is not"
        reports.note(_UNREAD, call.position, call.method, reason)
    else:
        reports.add(call.position, read, "arguments")


def _covers(
    movements: Iterable[Movement],
    standard: str,
    verbs: tuple[str, ...],
    n_methods: int,
    n_calls: int = 1,
) -> bool:
    """
    Return True if the movements of a receipt include those of all calls of a method.

    If a receipt calls only one token method, all its movements belong to the method, whatever the
    verb of their events. If it calls several, those with the method's verbs do.
    """
    matching = [
        movement
        for movement in movements
        if standard in (movement.standard, token_calls.ANY)
        and (n_methods == 1 or movement.verb in verbs)
    ]
    return len(matching) >= n_calls
