"""Which receipts a result tells of, how they are linked, and in which order they stand."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from pandas import NA

from ledgerkit.api.models.transactions import ActionReceipt, Receipt, ReceiptBody, Status
from ledgerkit.tracing.tree import graph
from ledgerkit.tracing.tree.names import Names
from ledgerkit.tracing.tree.tables import NOT_EXECUTED, Bodies, Outcomes, Texts, Where, status_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ledgerkit.api.models.transactions import Transaction, TxResult

    Blocks = Mapping[str, tuple[int, int]]

_LATER = 2**62  # above every height: what has not run comes last
_SHOWN = 3
_PLAIN = (
    "the document has no receipt bodies, as plain tx sends it: actions, deposits, arguments and "
    "data edges are known for the first receipt only; EXPERIMENTAL_tx_status tells them all"
)


@dataclass(frozen=True, slots=True)
class DataEdges:
    """Who delivers what to whom: producers and consumers as integers, and the data_ids."""

    producers: np.ndarray
    consumers: np.ndarray
    data_ids: np.ndarray

    def __iter__(self) -> Iterator[tuple[int, int, str]]:
        """Go through the edges."""
        ends = self.producers.tolist(), self.consumers.tolist()
        return zip(*ends, self.data_ids.tolist(), strict=True)


@dataclass(frozen=True, slots=True)
class Rows:
    """
    The receipts of one transaction in causal order; a position is a receipt.

    `outcome_at` and `body_at` say which outcome and which body a position has (-1: none).
    `parents` and `data` speak of positions, and `local` is the
    position of the receipt that ran where the transaction did (-1: none). `leaf` is the code
    of the status at which the chain of SuccessReceiptId ends, None where there is no chain.
    """

    ids: np.ndarray
    outcomes: Outcomes
    bodies: Bodies
    outcome_at: np.ndarray
    body_at: np.ndarray
    parents: np.ndarray
    data: DataEdges
    local: int
    leaf: int | None
    notes: list[str]


def collect(result: TxResult, blocks: Blocks) -> Rows:
    """
    Find the receipts of a transaction, link them and put them into causal order.

    Parameters
    ----------
    result
        The decoded result.
    blocks
        Height and time by block hash, for documents that do not bring them.

    Returns
    -------
    rows
        One position a receipt.

    Raises
    ------
    DecodeError
        If an outcome or a body is not as documented.
    """
    found = _Found(result, blocks)
    _read_outcomes(found)
    _read_bodies(found)
    data = _data_edges(found)
    found.notes += _gaps(found)
    _complete(found)
    arranged = graph.arrange(
        found.created,
        found.roots,
        len(found.names),
        data=(data.producers, data.consumers),
        heights=_heights(found),
    )
    return _in_order(found, arranged, data)


def costs_nothing(result: TxResult, tokens_burnt: object) -> bool:
    """
    Tell whether a receipt was free although gas is not: only refunds are.

    Parameters
    ----------
    result
        The whole result.
    tokens_burnt
        What the receipt burnt.

    Returns
    -------
    free
        True for what can only be a refund.
    """
    first = result.transaction_outcome
    priced = first is not None and first.outcome.tokens_burnt not in (None, "0")
    return priced and tokens_burnt is not NA and tokens_burnt == 0


class _Found:
    """What is found of a result, bit by bit; a row is a receipt, in order of first mention."""

    def __init__(self, result: TxResult, blocks: Blocks) -> None:
        """Begin with nothing."""
        texts, nowhere = Texts(), np.empty(0, dtype=np.int64)
        self.result = result
        self.names = Names()
        self.outcomes = Outcomes(texts, blocks)
        self.bodies = Bodies(texts, self.outcomes.ids)
        self.outcome_at = self.body_at = nowhere
        self.roots: list[int] = []
        self.created: graph.Pairs = (nowhere, nowhere)
        self.notes: list[str] = []

    def ids(self) -> np.ndarray:
        """List the receipts by row."""
        return self.names.texts()


def _read_outcomes(found: _Found) -> None:
    """Read what ran, and what it created."""
    told = found.result.outcomes
    for start, piece in told.pieces():
        found.outcomes.add(piece, Where(told.path, start))
    found.names = Names(found.outcomes.ids)
    found.outcome_at = _first_at(found, found.outcomes.ids, "outcome")
    found.roots = found.names.rows(_roots(found.result)).tolist()
    found.created = _created(found)
    found.outcome_at = _longer(found.outcome_at, len(found.names))


def _read_bodies(found: _Found) -> None:
    """Read what was asked."""
    sent = found.result.bodies
    if sent is not None:
        for start, piece in sent.pieces():
            found.bodies.add(piece, Where(sent.path, start))
    found.body_at = _first_at(found, found.bodies.ids, "body")
    found.outcome_at = _longer(found.outcome_at, len(found.names))


def _roots(result: TxResult) -> list[str]:
    """List the receipts that the transaction itself made."""
    first = result.transaction_outcome
    return list(dict.fromkeys(first.outcome.receipt_ids or ())) if first else []


def _first_at(found: _Found, receipt_ids: list[str], what: str) -> np.ndarray:
    """Say at which place of a table each row comes first (-1: nowhere)."""
    numbers = np.arange(len(receipt_ids))
    if receipt_ids == found.names.ids:
        return numbers
    places = found.names.rows(receipt_ids)
    at = np.full(len(found.names), -1, dtype=np.int64)
    at[places[::-1]] = numbers[::-1]
    again = np.flatnonzero(at[places] != numbers).tolist()
    if again:
        twice = dict.fromkeys(receipt_ids[place] for place in again)
        found.notes.append(f"a second {what} was left aside for {_some(list(twice))}")
    return at


def _longer(at: np.ndarray, n_rows: int) -> np.ndarray:
    """Make room for rows that were mentioned later; they are nowhere."""
    return np.append(at, np.full(n_rows - len(at), -1))


def _created(found: _Found) -> graph.Pairs:
    """Pair creators with what they created; the lists of names are not needed after that."""
    creators, made = np.flatnonzero(found.outcome_at >= 0), found.outcomes.made
    if len(creators) < len(made):  # what a second outcome lists does not count
        made = [made[at] for at in found.outcome_at[creators].tolist()]
    counts = np.fromiter(map(len, made), dtype=np.int64, count=len(made))
    listed = chain.from_iterable(made)
    rows = found.names.rows(np.fromiter(listed, dtype=object, count=int(counts.sum())))
    found.outcomes.made = []
    return np.repeat(creators, counts), rows


def _data_edges(found: _Found) -> DataEdges:
    """Pair whoever delivers a data_id with whoever waits for it."""
    rows = np.full(len(found.bodies.ids) + 1, -1, dtype=np.int64)
    rows[found.body_at] = np.arange(len(found.body_at))
    rows[-1] = -1
    row_of = rows.tolist()  # a second body of a receipt has no row
    producers: dict[str, int] = {}
    for at, receivers in found.bodies.outputs:
        row = row_of[at]
        for receiver in receivers if row >= 0 else ():
            known = producers.setdefault(receiver.get("data_id", ""), row)
            if known != row and _gives_way(found, known, row):
                producers[receiver["data_id"]] = row
    waiting = [
        (row_of[at], data_id)
        for at, data_ids in found.bodies.inputs
        for data_id in data_ids
        if data_id in producers and row_of[at] >= 0
    ]
    names = [data_id for _, data_id in waiting]
    return DataEdges(
        np.array([producers[data_id] for data_id in names], dtype=np.int64),
        np.array([row for row, _ in waiting], dtype=np.int64),
        np.fromiter(names, dtype=object, count=len(names)),
    )


def _gives_way(found: _Found, known: int, other: int) -> bool:
    """Tell whether the first of two producers handed its result on, and the second did not."""
    handed_on = found.outcomes.handed_on
    return found.outcome_at[known] in handed_on and found.outcome_at[other] not in handed_on


def _gaps(found: _Found) -> list[str]:
    """Say what the document does not tell about which receipts."""
    ids = found.ids()
    if found.result.bodies is None:
        return [_PLAIN] if len(ids) else []
    unasked, not_run = found.body_at < 0, found.outcome_at < 0
    orphan = np.full(len(ids), bool(found.roots))
    orphan[found.created[1]] = False
    orphan[found.roots] = unasked[found.roots] = False
    gaps = (
        ("no outcome and no body for", unasked & not_run),
        ("no body for", unasked & ~not_run),
        ("no creator for", orphan),
    )
    told = [(what, ids[which].tolist()) for what, which in gaps if which.any()]
    return [f"the document has {what} {_some(names)}" for what, names in told]


def _some(names: Sequence[str]) -> str:
    """Name a few of many."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _complete(found: _Found) -> None:
    """Fill in the bodies that were not sent: from the transaction, or with what is certain."""
    rows = np.flatnonzero(found.body_at < 0)
    if not rows.size:
        return
    at = found.outcome_at
    creator = np.full(len(at), -1, dtype=np.int64)
    creator[found.created[1][::-1]] = found.created[0][::-1]
    executors = _executors(found.result)
    costs = found.outcomes.tokens_burnt.take(at)
    senders = executors[np.where(creator < 0, -1, at[creator])]
    senders[(at < 0) | [costs_nothing(found.result, cost) for cost in costs]] = None
    guessed = zip(found.ids()[rows], senders[rows], executors[at[rows]], strict=True)
    receipts = [_body(found.result, *told) for told in guessed]
    found.body_at[rows] = np.arange(len(rows)) + len(found.bodies.ids)
    found.bodies.add(receipts, Where("$..transaction", 0))


def _executors(result: TxResult) -> np.ndarray:
    """List who executed; only documents without bodies need it."""
    pieces = (piece for _, piece in result.executions.pieces())
    executors = [outcome.outcome.executor_id for piece in pieces for outcome in piece]
    return np.array([*executors, None], dtype=object)


def _body(result: TxResult, receipt_id: str, sender: str | None, receiver: str | None) -> Receipt:
    """Write a body that was not sent; a refund's sender is not its creator."""
    transaction = result.transaction
    if transaction is not None and receipt_id in _roots(result)[:1]:
        asked = ReceiptBody(ActionReceipt(transaction.signer_id, transaction.actions, [], []))
        return Receipt(receipt_id, transaction.signer_id, transaction.receiver_id, asked)
    signer = transaction.signer_id if transaction and sender else None
    return Receipt(receipt_id, sender, receiver, ReceiptBody(ActionReceipt(signer)))


def _heights(found: _Found) -> np.ndarray | None:
    """Say by which heights to sort: unknown ones follow their creator, open receipts come last."""
    if not found.outcomes.has_heights:
        return None
    heights = found.outcomes.height.take(found.outcome_at).filled(0)
    return np.where(found.outcome_at < 0, _LATER, heights)


def _in_order(found: _Found, arranged: graph.Graph, data: DataEdges) -> Rows:
    """Turn rows into positions."""
    ids, order = found.ids(), arranged.order
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    creators = arranged.parents[order]
    return Rows(
        ids=ids[order],
        outcomes=found.outcomes,
        bodies=found.bodies,
        outcome_at=found.outcome_at[order],
        body_at=found.body_at[order],
        parents=np.where(creators < 0, -1, position[creators]),
        data=_data_positions(data, arranged.kept, position),
        local=int(position[found.roots[0]]) if found.roots and _is_local(found.result) else -1,
        leaf=_leaf(found),
        notes=found.notes + _contradictions(arranged, ids),
    )


def _data_positions(data: DataEdges, kept: np.ndarray, position: np.ndarray) -> DataEdges:
    """Turn the rows of the data edges that were kept into positions, by consumer."""
    consumers = position[data.consumers[kept]]
    order = np.argsort(consumers, kind="stable")
    producers, names = position[data.producers[kept]], data.data_ids[kept]
    return DataEdges(producers[order], consumers[order], names[order])


def _contradictions(arranged: graph.Graph, ids: np.ndarray) -> list[str]:
    """Say which edges were dropped."""
    dropped = (
        ("a further creator was left aside for", arranged.listed_twice),
        ("a ring of creators was cut at", arranged.cut_from_ring),
        ("data edges in a ring were left aside between", arranged.cut_from_data),
    )
    return [f"{what} {_some(ids[rows].tolist())}" for what, rows in dropped if rows]


def _is_local(result: TxResult) -> bool:
    """Tell whether the first receipt runs where the transaction did."""
    transaction: Transaction | None = result.transaction
    if transaction is None or transaction.signer_id is None:
        return False
    return transaction.signer_id == transaction.receiver_id


def _leaf(found: _Found) -> int | None:
    """Follow SuccessReceiptId from the transaction to the first receipt that did not hand on."""
    first = found.result.transaction_outcome
    if first is None:
        return None
    status = first.outcome.status
    if not isinstance(status, Status) or status.success_receipt_id is None:
        return status_code(status)
    target, seen = status.success_receipt_id, set()
    while target not in seen:
        seen.add(target)
        row = found.names.find(target)
        at = -1 if row is None else int(found.outcome_at[row])
        if at not in found.outcomes.handed_on:
            return NOT_EXECUTED if at < 0 else found.outcomes.codes[at]
        target = found.outcomes.handed_on[at]
    return None
