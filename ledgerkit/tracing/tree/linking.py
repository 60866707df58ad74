"""The receipts of a result, linked by creation and data edges, in causal order."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, count, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from pandas import NA

from ledgerkit.api.models.transactions import ActionReceipt, Receipt, ReceiptBody, Status
from ledgerkit.tracing.tree import graph
from ledgerkit.tracing.tree.bodies import Bodies, DataIds
from ledgerkit.tracing.tree.column_builders import PiecePath
from ledgerkit.tracing.tree.outcomes import NOT_EXECUTED, Outcomes, status_code

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from ledgerkit.api.models.transactions import Transaction, TxResult, TxResults
    from ledgerkit.tracing.tree.column_builders import Texts

    Blocks = Mapping[str, tuple[int, int]]

_NOT_YET = 2**62  # above every height: receipts that have not run come last
_MOST_NAMED = 3
_NO_BODIES = (
    "the document has no receipt bodies (plain tx does not send them), so actions, deposits, "
    "arguments and data edges are known for the first receipt only: use EXPERIMENTAL_tx_status"
)


@dataclass(frozen=True, slots=True)
class DataEdges:
    """Edges from the producer of data to its consumer, as positions, with the data_ids."""

    producers: np.ndarray
    consumers: np.ndarray
    data_ids: np.ndarray

    def __iter__(self) -> Iterator[tuple[int, int, str]]:
        """Iterate over (producer, consumer, data_id)."""
        ends = self.producers.tolist(), self.consumers.tolist()
        return zip(*ends, self.data_ids.tolist(), strict=True)


@dataclass(frozen=True, slots=True)
class LinkedReceipts:
    """
    The receipts of transactions, tree by tree, each in causal order; a position is a receipt.

    `trees` is the number of each receipt's transaction, and `starts` the first position of each
    tree and their end. `outcome_at` and `body_at` are the rows of each receipt in `outcomes` and
    `bodies` (-1: none). `parents` and `data` refer to positions, `depths` counts the creators
    above each receipt, and `is_local` marks the receipts that ran with the transactions
    themselves.
    """

    results: TxResults
    ids: np.ndarray
    trees: np.ndarray
    starts: np.ndarray
    outcomes: Outcomes
    bodies: Bodies
    outcome_at: np.ndarray
    body_at: np.ndarray
    parents: np.ndarray
    depths: np.ndarray
    data: DataEdges
    is_local: np.ndarray
    notes: list[str]

    def leaf(self) -> int | None:
        """
        Return the status code at which the chain of SuccessReceiptId of the first tree ends.

        It is None where there is no chain.
        """
        first = self.results.transactions[0].transaction_outcome
        if first is None:
            return None
        status = first.outcome.status
        if not isinstance(status, Status) or status.success_receipt_id is None:
            return status_code(status)
        targets = {status.success_receipt_id, *self.outcomes.result_ids.values()}
        rows = [at for at, id_ in enumerate(self.outcomes.ids) if id_ in targets]
        # Backwards: the first of repeated outcomes is written last.
        outcome_at = {self.outcomes.ids[at]: at for at in reversed(rows)}
        target, seen = status.success_receipt_id, set()
        while target not in seen:
            seen.add(target)
            at = outcome_at.get(target, -1)
            if at not in self.outcomes.result_ids:
                return NOT_EXECUTED if at < 0 else self.outcomes.codes[at]
            target = self.outcomes.result_ids[at]
        return None


def link_receipts(results: TxResults, blocks: Blocks) -> LinkedReceipts:
    """Link the receipts of transactions, and sort those of each into causal order."""
    draft = _Draft(results, blocks)
    _read_outcomes(draft)
    _read_bodies(draft)
    draft.trees = _trees(draft)
    data = _data_edges(draft)
    draft.notes += _missing_parts(draft)
    _add_missing_bodies(draft)
    ordered = graph.arrange(
        draft.created,
        draft.roots,
        len(draft.rows),
        data=(data.producers, data.consumers),
        heights=_heights(draft),
        trees=draft.trees if len(results.transactions) > 1 else None,
    )
    return _in_order(draft, ordered, data)


def is_free(result: TxResult, tokens_burnt: object) -> bool:
    """Return True if a receipt burnt no tokens although gas has a price: only refunds do."""
    first = result.transaction_outcome
    has_price = first is not None and first.outcome.tokens_burnt not in (None, "0")
    return has_price and tokens_burnt is not NA and tokens_burnt == 0


class ReceiptRows:
    """The rows of receipt ids: each id has the next row when it is first mentioned."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self.ids = list(dict.fromkeys(ids))

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.ids)

    def find(self, ids: Sequence[str]) -> np.ndarray:
        """Return the row of each id."""
        if ids == self.ids:  # many documents have all lists in the same order
            return np.arange(len(ids))
        row_of = self._row_of
        rows = np.array([row_of[id_] for id_ in ids], dtype=np.int64)
        if len(row_of) > len(self.ids):
            self.ids = list(row_of)
        return rows

    @cached_property
    def _row_of(self) -> defaultdict[str, int]:
        """The row of each id; a new id gets the next row."""
        numbered = zip(self.ids, range(len(self.ids)), strict=True)
        return defaultdict(count(len(self.ids)).__next__, numbered)


class _Draft:
    """Results while they are read; each row is a receipt, in order of first mention."""

    def __init__(self, results: TxResults, blocks: Blocks) -> None:
        """Start without receipts."""
        texts: Texts = {}
        no_rows = np.empty(0, dtype=np.int64)
        self.results = results
        self.rows = ReceiptRows()
        self.outcomes = Outcomes(texts, blocks)
        self.bodies = Bodies(texts, self.outcomes.ids)
        self.outcome_at = self.body_at = self.trees = no_rows
        self.roots: list[int] = []
        self.root_trees: list[int] = []
        self.created: graph.Pairs = (no_rows, no_rows)
        self.notes: list[str] = []

    def ids(self) -> np.ndarray:
        """Return the receipt ids by row."""
        return np.array(self.rows.ids, dtype=object)


def _read_outcomes(draft: _Draft) -> None:
    """Read the outcomes, and the receipts that each created."""
    outcomes = draft.results.outcomes
    for start, piece in outcomes.pieces():
        draft.outcomes.add(piece, PiecePath(outcomes.path, start))
    draft.rows = ReceiptRows(draft.outcomes.ids)
    draft.outcome_at = _first_at(draft, draft.outcomes.ids, "outcomes")
    roots = [
        (tree, receipt_id)
        for tree, own in enumerate(draft.results.transactions)
        for receipt_id in _root_ids(own)
    ]
    draft.root_trees = [tree for tree, _ in roots]
    _read_creation(draft, [receipt_id for _, receipt_id in roots])
    draft.outcome_at = _pad(draft.outcome_at, len(draft.rows))


def _read_creation(draft: _Draft, root_ids: list[str]) -> None:
    """Pair creators with the receipts they created; the lists of ids are then dropped."""
    outcomes, creators = draft.outcomes, np.flatnonzero(draft.outcome_at >= 0)
    counts, created_ids = np.array(outcomes.n_created, dtype=np.int64), outcomes.created_ids
    if len(creators) < len(counts):  # repeated outcomes are ignored
        is_first = np.zeros(len(counts), dtype=bool)
        is_first[draft.outcome_at] = True
        created_ids = list(compress(created_ids, np.repeat(is_first, counts).tolist()))
        counts = counts[draft.outcome_at[creators]]
    rows = draft.rows.find(root_ids + created_ids)
    draft.roots = rows[: len(root_ids)].tolist()
    draft.created = np.repeat(creators, counts), rows[len(root_ids) :]
    outcomes.created_ids, outcomes.n_created = [], []


def _read_bodies(draft: _Draft) -> None:
    """Read the bodies."""
    bodies = draft.results.bodies
    if bodies is not None:
        for start, piece in bodies.pieces():
            draft.bodies.add(piece, PiecePath(bodies.path, start))
    draft.body_at = _first_at(draft, draft.bodies.ids, "bodies")
    draft.outcome_at = _pad(draft.outcome_at, len(draft.rows))


def _trees(draft: _Draft) -> np.ndarray:
    """Return the number of each row's transaction: that of its outcome, or of its creator."""
    trees = np.zeros(len(draft.rows), dtype=np.int64)
    if len(draft.results.transactions) > 1:
        executed = draft.outcome_at >= 0
        of_outcomes = np.repeat(np.arange(len(draft.results.n_outcomes)), draft.results.n_outcomes)
        trees[draft.roots] = draft.root_trees
        trees[executed] = of_outcomes[draft.outcome_at[executed]]
        creators, created = draft.created
        trees[created] = trees[creators]
    return trees


def _root_ids(result: TxResult) -> list[str]:
    """List the receipts that the transaction itself created."""
    first = result.transaction_outcome
    return list(dict.fromkeys(first.outcome.receipt_ids or ())) if first else []


def _first_at(draft: _Draft, receipt_ids: list[str], kind: str) -> np.ndarray:
    """Return the first place of each row in a table of receipt ids (-1: none)."""
    numbers = np.arange(len(receipt_ids))
    rows = draft.rows.find(receipt_ids)
    at = np.full(len(draft.rows), -1, dtype=np.int64)
    at[rows[::-1]] = numbers[::-1]  # backwards: the first of equal ids is written last
    repeated = np.flatnonzero(at[rows] != numbers).tolist()
    if repeated:
        ids = dict.fromkeys(receipt_ids[place] for place in repeated)
        draft.notes.append(f"repeated {kind} were ignored for {first_names(list(ids))}")
    return at


def _pad(at: np.ndarray, n_rows: int) -> np.ndarray:
    """Append -1 for rows that were added later."""
    return np.append(at, np.full(n_rows - len(at), -1))


def _data_edges(draft: _Draft) -> DataEdges:
    """Pair the producer of each data_id with the receipts that wait for it."""
    rows, data_ids = _by_row(draft, draft.bodies.outputs)
    keys = _data_keys(draft, rows, data_ids)
    producers = dict(zip(keys, rows.tolist(), strict=True))
    if len(producers) < len(keys):
        producers = _first_producers(draft, keys, rows.tolist())
    rows, data_ids = _by_row(draft, draft.bodies.inputs)
    keys = _data_keys(draft, rows, data_ids)
    return pair_data(producers, keys, rows, data_ids)


def pair_data(
    producers: Mapping[Any, int], keys: Sequence[Any], rows: np.ndarray, data_ids: Sequence[str]
) -> DataEdges:
    """Pair the producers of data, by its key, with the rows that wait for it."""
    producer_rows = np.fromiter(map(producers.get, keys, repeat(-1)), np.int64, count=len(keys))
    is_known = producer_rows >= 0
    names = np.fromiter(data_ids, dtype=object, count=len(data_ids))
    return DataEdges(producer_rows[is_known], rows[is_known], names[is_known])


def _by_row(draft: _Draft, data: DataIds) -> tuple[np.ndarray, list[str]]:
    """Return the row and the text of each data_id; repeated bodies are ignored."""
    row_of = np.full(len(draft.bodies.ids) + 1, -1, dtype=np.int64)
    row_of[draft.body_at] = np.arange(len(draft.body_at))
    rows = np.repeat(row_of[:-1], np.array(data.counts, dtype=np.int64))
    is_known = rows >= 0
    if is_known.all():
        return rows, data.ids
    return rows[is_known], list(compress(data.ids, is_known.tolist()))


def _data_keys(draft: _Draft, rows: np.ndarray, data_ids: Sequence[str]) -> Sequence[Hashable]:
    """Return keys for data_ids: receipts wait for the data of their own tree only."""
    if len(draft.results.transactions) == 1:
        return data_ids
    return list(zip(draft.trees[rows].tolist(), data_ids, strict=True))


def _first_producers(
    draft: _Draft, keys: Sequence[Hashable], rows: Sequence[int]
) -> dict[Hashable, int]:
    """Return the producer of each data_id, where several receipts list the same receiver."""
    producers: dict[Hashable, int] = {}
    for key, row in zip(keys, rows, strict=True):
        earlier = producers.setdefault(key, row)
        # A receipt that passes its output on still lists the receivers of its data.
        if earlier != row and _passes_on(draft, earlier, row):
            producers[key] = row
    return producers


def _passes_on(draft: _Draft, earlier: int, later: int) -> bool:
    """Return True if only the earlier of two producers passed its output on (SuccessReceiptId)."""
    result_ids = draft.outcomes.result_ids
    return draft.outcome_at[earlier] in result_ids and draft.outcome_at[later] not in result_ids


def _missing_parts(draft: _Draft) -> list[str]:
    """Describe which parts of which receipts the document lacks."""
    ids = draft.ids()
    if draft.results.bodies is None:
        return [_NO_BODIES] if len(ids) else []
    no_body, no_outcome = draft.body_at < 0, draft.outcome_at < 0
    orphan = np.full(len(ids), bool(draft.roots))
    orphan[draft.created[1]] = False
    # The body of a local receipt is not sent: the transaction has its content.
    orphan[draft.roots] = no_body[draft.roots] = False
    gaps = (
        ("no outcome and no body", no_body & no_outcome),
        ("no body", no_body & ~no_outcome),
        ("no creator", orphan),
    )
    return [
        f"the document has {part} for {first_names(ids[rows].tolist())}"
        for part, rows in gaps
        if rows.any()
    ]


def first_names(names: Sequence[str]) -> str:
    """List the first names, and count the others."""
    others = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + others


def _add_missing_bodies(draft: _Draft) -> None:
    """Add the bodies that were not sent, from the transaction and the outcomes."""
    rows = np.flatnonzero(draft.body_at < 0)
    if not rows.size:
        return
    at, ids = draft.outcome_at, draft.ids()
    creator = np.full(len(at), -1, dtype=np.int64)
    creator[draft.created[1][::-1]] = draft.created[0][::-1]
    executors = _executors(draft.results)
    costs = draft.outcomes.tokens_burnt.take(at[rows])
    receipts = []
    for row, cost in zip(rows.tolist(), costs, strict=True):
        own = draft.results.transactions[draft.trees[row]]
        # The sender of a refund is not its creator.
        is_sent = at[row] >= 0 and creator[row] >= 0 and not is_free(own, cost)
        sender = executors[at[creator[row]]] if is_sent else None
        receipts.append(_inferred_body(own, ids[row], sender, executors[at[row]]))
    draft.body_at[rows] = np.arange(len(rows)) + len(draft.bodies.ids)
    draft.bodies.add(receipts, PiecePath("$..transaction", 0))


def _executors(results: TxResults) -> np.ndarray:
    """Return the account that executed each outcome; only documents without bodies need it."""
    pieces = (piece for _, piece in results.executions.pieces())
    executors = [outcome.outcome.executor_id for piece in pieces for outcome in piece]
    return np.array([*executors, None], dtype=object)


def _inferred_body(
    result: TxResult, receipt_id: str, sender: str | None, receiver: str | None
) -> Receipt:
    """Build a body that was not sent; the first receipt has the transaction's actions."""
    transaction = result.transaction
    if transaction is not None and receipt_id in _root_ids(result)[:1]:
        body = ReceiptBody(ActionReceipt(transaction.signer_id, transaction.actions, [], []))
        return Receipt(receipt_id, transaction.signer_id, transaction.receiver_id, body)
    signer = transaction.signer_id if transaction and sender else None
    return Receipt(receipt_id, sender, receiver, ReceiptBody(ActionReceipt(signer)))


def _heights(draft: _Draft) -> np.ndarray | None:
    """Return the heights to sort by: 0 where unknown, above all others where not executed."""
    if not draft.outcomes.has_heights:
        return None
    heights = draft.outcomes.height.take(draft.outcome_at).filled(0)
    return np.where(draft.outcome_at < 0, _NOT_YET, heights)


def _in_order(draft: _Draft, ordered: graph.Graph, data: DataEdges) -> LinkedReceipts:
    """Replace rows by positions in causal order."""
    ids, order = draft.ids(), ordered.order
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    creators, trees = ordered.parents[order], draft.trees[order]
    return LinkedReceipts(
        results=draft.results,
        ids=ids[order],
        trees=trees,
        starts=_starts(trees, len(draft.results.transactions)),
        outcomes=draft.outcomes,
        bodies=draft.bodies,
        outcome_at=draft.outcome_at[order],
        body_at=draft.body_at[order],
        parents=np.where(creators < 0, -1, position[creators]),
        depths=ordered.depths[order],
        data=data_positions(data, ordered.is_kept, position),
        is_local=_local(draft)[order],
        notes=draft.notes + _contradictions(ordered, ids),
    )


def _starts(trees: np.ndarray, n_trees: int) -> np.ndarray:
    """Return the first position of each tree, and their end."""
    starts = np.zeros(n_trees + 1, dtype=np.int64)
    np.cumsum(np.bincount(trees, minlength=n_trees), out=starts[1:])
    return starts


def _local(draft: _Draft) -> np.ndarray:
    """Mark the first receipt of each transaction whose signer is its receiver."""
    is_local = np.zeros(len(draft.rows), dtype=bool)
    firsts = dict(zip(draft.root_trees[::-1], draft.roots[::-1], strict=True))
    is_local[
        [row for tree, row in firsts.items() if _is_local(draft.results.transactions[tree])]
    ] = True
    return is_local


def data_positions(data: DataEdges, is_kept: np.ndarray, position: np.ndarray) -> DataEdges:
    """Replace the rows of the kept data edges by positions, sorted by consumer."""
    consumers = position[data.consumers[is_kept]]
    order = np.argsort(consumers, kind="stable")
    producers, data_ids = position[data.producers[is_kept]], data.data_ids[is_kept]
    return DataEdges(producers[order], consumers[order], data_ids[order])


def _contradictions(ordered: graph.Graph, ids: np.ndarray) -> list[str]:
    """Describe which edges were dropped."""
    dropped = (
        ("all creators but the first were ignored for", ordered.listed_twice),
        ("a cycle of creators was cut at", ordered.cut_from_cycle),
        ("data edges in a cycle were ignored between", ordered.cut_from_data),
    )
    return [f"{problem} {first_names(ids[rows].tolist())}" for problem, rows in dropped if rows]


def _is_local(result: TxResult) -> bool:
    """Return True if the first receipt runs in the transaction's own chunk: signer is receiver."""
    transaction: Transaction | None = result.transaction
    if transaction is None or transaction.signer_id is None:
        return False
    return transaction.signer_id == transaction.receiver_id
