"""What receipts ask for and what they say, one by one: actions, log lines, events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from pandas import NA

from ledgerkit.api.models.transactions import Action, DelegateAction, Transaction
from ledgerkit.tracing.tree.tables import action_name, amount, decoded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ledgerkit.api.models.transactions import TxResult
    from ledgerkit.tracing.tree import Tree

    Actions = Sequence[Action | str]
    Columns = dict[str, Any]

EVENT = "EVENT_JSON:"
SUCCEEDED = ("success_value", "success_receipt_id")
_BROKEN = (msgspec.DecodeError, UnicodeError, RecursionError)
_SHOWN = 80


def at_receipts(tree: Tree, places: Sequence[int]) -> Columns:
    """
    Say of which receipts rows are.

    Parameters
    ----------
    tree
        The receipt tree.
    places
        The position of each row's receipt; -1 is the transaction itself.

    Returns
    -------
    columns
        The receipt, its order and the height of its block; missing for the transaction.
    """
    at = np.array(places, dtype=np.int64)
    heights, n_rows = tree.columns["block_height"], len(tree)
    ids = np.full(n_rows + 1, None, dtype=object)  # the last is the transaction's, as any at -1
    known, unknown = np.zeros(n_rows + 1, dtype=np.int64), np.ones(n_rows + 1, dtype=bool)
    ids[:-1], known[:-1], unknown[:-1] = tree.ids, heights.filled(0), np.ma.getmaskarray(heights)
    return {
        "receipt_id": ids[at],
        "order": np.ma.MaskedArray(at, at < 0),
        "block_height": np.ma.MaskedArray(known[at], unknown[at]),
    }


def asked(tree: Tree, result: TxResult) -> list[Actions | None]:
    """
    List what each receipt asks for.

    Parameters
    ----------
    tree
        The receipt tree.
    result
        The result it was made from.

    Returns
    -------
    actions
        By position; None where the document does not tell.
    """
    position = {receipt_id: at for at, receipt_id in enumerate(tree.ids.tolist())}
    found: list[Actions | None] = [None] * len(tree)
    for at, actions in _first_asked(tree, result):
        found[at] = actions
    pieces = result.bodies.pieces() if result.bodies is not None else ()
    for receipt in reversed([receipt for _, piece in pieces for receipt in piece]):
        body = receipt.receipt.action if receipt.receipt else None
        if body is not None and receipt.receipt_id in position:
            found[position[receipt.receipt_id]] = body.actions or ()
    return found


def _first_asked(tree: Tree, result: TxResult) -> Iterator[tuple[int, Actions]]:
    """Find the first receipt, whose body may be left out: it asks what the transaction asked."""
    first, transaction = result.transaction_outcome, result.transaction or Transaction()
    made = (first.outcome.receipt_ids or ()) if first else ()
    for at in np.flatnonzero(tree.ids == made[0])[:1].tolist() if made else ():
        if transaction.actions is not None:
            yield at, transaction.actions


class Deed(NamedTuple):
    """One action: its receipt, its place there, whose it is and on whom."""

    at: int
    place: int
    inner: int | None
    action: Action | str
    sender_id: str | None
    receiver_id: str | None


def deeds(tree: Tree, actions: Iterable[Actions | None]) -> Iterator[Deed]:
    """
    Go through all actions, those inside a Delegate after it.

    Parameters
    ----------
    tree
        The receipt tree.
    actions
        What each receipt asks for, from `asked`.

    Yields
    ------
    deed
        An action and where it stands.
    """
    senders, receivers = tree.columns["predecessor_id"], tree.columns["receiver_id"]
    for at, those in enumerate(actions):
        for place, action in enumerate(those or ()):
            yield Deed(at, place, None, action, senders[at], receivers[at])
            inner = delegated(action) or DelegateAction()
            for within, each in enumerate(inner.actions or ()):
                yield Deed(at, place, within, each, inner.sender_id, inner.receiver_id)


def delegated(action: Action | str) -> DelegateAction | None:
    """
    Open a Delegate.

    Parameters
    ----------
    action
        Any action.

    Returns
    -------
    inner
        What somebody else signed; None if the action is no Delegate.
    """
    if isinstance(action, str):
        return None
    delegate = action.delegate or action.delegate_v2
    inner = delegate.delegate_action if delegate else None
    return inner.v2 or inner if inner else None


def deposit(action: Action | str) -> int | None:
    """
    Say what one action moves by itself.

    Parameters
    ----------
    action
        Any action; what is inside a Delegate is not counted.

    Returns
    -------
    deposit
        In yoctoNEAR; None where the document does not tell.
    """
    if isinstance(action, str):
        return 0 if action == "CreateAccount" else None
    for name in _MOVING:
        moving = getattr(action, name)
        if moving is not None:
            return None if moving.deposit is None else amount(moving.deposit, f"$..{name}")
    return 0


_MOVING = ("function_call", "transfer", "deterministic_state_init", "transfer_to_gas_key")


def action_columns(tree: Tree, actions: Iterable[Actions | None]) -> Columns:
    """
    Compute the columns of the actions frame.

    Parameters
    ----------
    tree
        The receipt tree.
    actions
        What each receipt asks for, from `asked`.

    Returns
    -------
    columns
        One sequence a column, one row an action.
    """
    rows = list(deeds(tree, actions))
    calls = [None if isinstance(row.action, str) else row.action.function_call for row in rows]
    deposits = [deposit(row.action) for row in rows]
    return at_receipts(tree, [row.at for row in rows]) | {
        "action_index": [row.place for row in rows],
        "inner_index": [row.inner for row in rows],
        "action": [action_name(row.action) for row in rows],
        "sender_id": [row.sender_id for row in rows],
        "receiver_id": [row.receiver_id for row in rows],
        "method_name": [call.method_name if call else None for call in calls],
        "args": [decoded(call) if call else NA for call in calls],
        "gas_attached": [call.gas if call else None for call in calls],
        "deposit": [NA if moved is None else moved for moved in deposits],
        "details": [_details(row.action) for row in rows],
    }


def _details(action: Action | str) -> Any:
    """Decode the members of an action that is neither call nor transfer."""
    if isinstance(action, str) or action.function_call or action.transfer:
        return NA
    inner = delegated(action)
    if inner is not None:
        return {"sender_id": inner.sender_id, "receiver_id": inner.receiver_id}
    members = (getattr(action, name) for name in Action.__struct_fields__)
    raw = next((m for m in members if isinstance(m, msgspec.Raw)), None)
    return NA if raw is None else msgspec.json.decode(raw)


def log_columns(tree: Tree) -> Columns:
    """
    Compute the columns of the logs frame.

    Parameters
    ----------
    tree
        The receipt tree.

    Returns
    -------
    columns
        One sequence a column, one row a line.
    """
    places, indices, lines = _lines(tree)
    return at_receipts(tree, places) | {
        "log_index": indices,
        **_logged(tree, places),
        "log": lines,
        "is_event": [line.startswith(EVENT) for line in lines],
    }


def _lines(tree: Tree) -> tuple[list[int], list[int], list[str]]:
    """List all log lines, with the positions of their receipts and their own places there."""
    rows = [
        (at, index, line)
        for at, lines in enumerate(tree.columns["logs"])
        for index, line in enumerate(lines)
    ]
    places, indices, lines = zip(*rows, strict=True) if rows else ((), (), ())
    return list(places), list(indices), list(lines)


def _logged(tree: Tree, places: list[int]) -> Columns:
    """Say who logged, and whether it counts."""
    effective = np.isin(tree.columns["status"].astype(str), SUCCEEDED)
    return {
        "contract_id": tree.columns["receiver_id"][places] if places else [],
        "is_effective": effective[places] if places else [],
    }


class Event(NamedTuple):
    """One event: where it was logged, what it says, and what is wrong with it."""

    at: int
    place: int
    standard: str | None
    version: str | None
    event: str | None
    data: Any
    note: str | None


def events(tree: Tree) -> list[Event]:
    """
    Read all events, those of failed receipts too.

    Parameters
    ----------
    tree
        The receipt tree.

    Returns
    -------
    events
        In the order of the receipts; one that can't be read has its `note`.
    """
    rows = zip(*_lines(tree), strict=True)
    return [_event(at, index, line) for at, index, line in rows if line.startswith(EVENT)]


def _event(at: int, index: int, line: str) -> Event:
    """Read one event; whoever wrote it may have written anything."""
    text = line[len(EVENT) :]
    try:
        told = msgspec.json.decode(text)
    except _BROKEN as problem:
        return Event(at, index, None, None, None, NA, f"broken JSON ({problem}): {text[:_SHOWN]}")
    if not isinstance(told, dict):
        return Event(at, index, None, None, None, NA, f"no object: {text[:_SHOWN]}")
    names = [told.get(name) for name in ("standard", "version", "event")]
    standard, version, event = [name if isinstance(name, str) else None for name in names]
    note = None if standard and event else f"no standard or no event: {text[:_SHOWN]}"
    return Event(at, index, standard, version, event, told.get("data", NA), note)


def event_columns(tree: Tree) -> Columns:
    """
    Compute the columns of the events frame.

    Parameters
    ----------
    tree
        The receipt tree.

    Returns
    -------
    columns
        One sequence a column, one row an event.
    """
    found = events(tree)
    places = [event.at for event in found]
    return at_receipts(tree, places) | {
        "log_index": [event.place for event in found],
        **_logged(tree, places),
        "standard": [event.standard for event in found],
        "version": [event.version for event in found],
        "event": [event.event for event in found],
        "data": [event.data for event in found],
        "note": [event.note for event in found],
    }
