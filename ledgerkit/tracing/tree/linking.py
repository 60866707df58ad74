"""The receipts of results, linked by creation and data edges, in causal order."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING

import numpy as np
from pandas import NA

from ledgerkit.api.models.transactions import ActionReceipt, Receipt, ReceiptBody
from ledgerkit.errors import DecodeError
from ledgerkit.tracing.tree import graph
from ledgerkit.tracing.tree.arrays import take
from ledgerkit.tracing.tree.bodies import Bodies
from ledgerkit.tracing.tree.outcomes import SUCCESS_RECEIPT_ID, Outcomes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ledgerkit.api.models.transactions import TxResult
    from ledgerkit.tracing.tree.outcomes import Texts

    Blocks = Mapping[str, tuple[int, int]]

_NOT_YET = 2**62  # above every height: receipts that have not run come last
_MOST_NAMED = 3
_NO_ROWS = np.array([], dtype=np.int64)
_NO_BODIES = (
    "the document has no receipt bodies (plain tx does not send them), so actions, deposits, "
    "arguments and data edges are known for the first receipt only: use tx_status, or "
    "EXPERIMENTAL_tx_status on older nodes"
)


@dataclass(frozen=True, slots=True)
class DataEdges:
    """Edges from producers of data to its consumers, as positions, with the data_ids."""

    producers: np.ndarray
    consumers: np.ndarray
    data_ids: np.ndarray

    def __iter__(self) -> Iterator[tuple[int, int, str]]:
        """Iterate over (producer, consumer, data_id)."""
        ends = self.producers.tolist(), self.consumers.tolist()
        return zip(*ends, self.data_ids.tolist(), strict=True)


class LinkedReceipts:
    """
    The receipts of transactions, tree by tree, in causal order within a tree.

    Before `_sort` the receipts are in order of first mention, and a receipt's number is its row;
    afterwards it is its position.

    Raises `DecodeError` if a receipt was created twice, or by a receipt that it led to.
    """

    def __init__(self, results: Sequence[TxResult], blocks: Blocks) -> None:
        self.results = results
        texts: Texts = {}
        self.outcomes, self.bodies = Outcomes(results, blocks, texts), Bodies(results, texts)
        self._assign_rows()
        self._assign_trees()
        self.data = _data_edges(self)
        self.is_local = _mark_local(self)
        self.notes = _missing_parts(self)
        order = _causal_order(self)
        self._add_missing_bodies()
        self._sort(order)

    def _assign_rows(self) -> None:
        """Assign a row to each receipt, and pair the rows of creators and created receipts."""
        outcomes, bodies = self.outcomes, self.bodies
        for listed, kind in ((outcomes.ids, "outcomes"), (bodies.ids, "bodies")):
            if len(set(listed)) < len(listed):
                raise contradiction(f"it has two {kind} of {_repeated(listed)}")
        root_ids = [receipt_id for result in self.results for receipt_id in result.created_ids()]
        mentioned = [*root_ids, *outcomes.created_ids]
        names, (rows, self.body_rows) = number_ids(outcomes.ids, mentioned, bodies.ids)
        self.roots, children = rows[: len(root_ids)], rows[len(root_ids) :]
        executed = np.arange(len(outcomes.ids))
        self.ids = np.array(names, dtype=object)
        # The index of each receipt in `outcomes` and in `bodies`; -1 if it is not there.
        self.outcome_at = _positions_in(executed, len(names))
        self.body_at = _positions_in(self.body_rows, len(names))
        creators = np.repeat(executed, np.array(outcomes.n_created, dtype=np.int64))
        self.created: graph.Pairs = (creators, children)
        times = np.bincount(np.append(children, self.roots), minlength=len(names))
        if times.max(initial=0) > 1:
            raise contradiction(f"receipt {self.ids[times.argmax()]} was created twice")
        outcomes.created_ids, outcomes.n_created = [], []

    def _assign_trees(self) -> None:
        """Assign each receipt its creator (-1: none) and its transaction."""
        creators, children = self.created
        self.parents = np.full(len(self.ids), -1, dtype=np.int64)
        self.parents[children] = creators
        counts = [len(result.created_ids()) for result in self.results]
        self.root_trees = np.repeat(np.arange(len(counts)), counts)
        self.trees = np.zeros(len(self.ids), dtype=np.int64)  # the number of its transaction
        if len(self.results) > 1:
            n_outcomes = len(self.outcomes.ids)
            self.trees[self.roots] = self.root_trees
            self.trees[self.body_rows] = self.bodies.lists.numbers(len(self.bodies.ids))
            self.trees[:n_outcomes] = self.outcomes.lists.numbers(n_outcomes)
            self.trees[children] = self.trees[creators]

    def _add_missing_bodies(self) -> None:
        rows = np.flatnonzero(self.body_at < 0)
        outcomes = chain.from_iterable(result.outcomes for result in self.results)
        executors = [*(item.outcome.executor_id for item in outcomes), None] if rows.size else []
        self.inferred = [_infer_body(self, row, executors) for row in rows.tolist()]
        self.body_at[rows] = np.arange(len(rows)) + len(self.bodies.ids)
        self.bodies.add_inferred(self.inferred)

    def _sort(self, order: np.ndarray) -> None:
        """Put the receipts into an order; rows become positions."""
        position = _positions_in(order, len(order))
        creators, data = self.parents[order], self.data
        self.parents = np.where(creators < 0, -1, position[creators])
        consumers = position[data.consumers]
        rows = np.argsort(consumers, kind="stable")
        producers = position[data.producers[rows]]
        self.data = DataEdges(producers, consumers[rows], data.data_ids[rows])
        self.depths = graph.depths(self.parents)  # the number of creators above each receipt
        for name in ("ids", "is_local", "trees", "outcome_at", "body_at"):
            setattr(self, name, getattr(self, name)[order])
        sizes = np.bincount(self.trees, minlength=len(self.results))
        # The first position of each tree, and the end of the last tree.
        self.starts = np.concatenate([[0], np.cumsum(sizes)])


def number_ids(ids: list[str], *lists: list[str]) -> tuple[list[str], list[np.ndarray]]:
    """Return `ids` and the new ids of `lists` as rows, and the rows of the ids of each list."""
    if all(listed == ids for listed in lists):  # the usual order of nodes
        return ids, [np.arange(len(ids))] * len(lists)
    numbered = zip(ids, range(len(ids)), strict=True)
    row_of = defaultdict(count(len(ids)).__next__, numbered)
    rows = [np.fromiter(map(row_of.__getitem__, listed), dtype=np.int64) for listed in lists]
    return list(row_of), rows


def _repeated(ids: Iterable[str]) -> str:
    [(repeated, _)] = Counter(ids).most_common(1)
    return repeated


def _positions_in(rows: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the position of each row in `rows` (-1: none)."""
    positions = np.full(n_rows, -1, dtype=np.int64)
    positions[rows] = np.arange(len(rows))
    return positions


def contradiction(problem: str) -> DecodeError:
    """Build the error for receipts that contradict each other."""
    return DecodeError(f"the document contradicts itself: {problem}", path="$")


def _causal_order(receipts: LinkedReceipts) -> np.ndarray:
    """Sort rows tree by tree: each after the rows it depends on, and lower blocks first."""
    ends = receipts.data.producers, receipts.data.consumers
    n_rows = len(receipts.ids)
    order = graph.sort(receipts.created, receipts.roots, n_rows, ends)
    if len(order) < n_rows:
        problem = "waits for data that comes after it"
        no_data = _NO_ROWS, _NO_ROWS
        creation_order = graph.sort(receipts.created, receipts.roots, n_rows, no_data)
        if len(creation_order) < n_rows:
            order, problem = creation_order, "is among its own creators"
        waiting = np.setdiff1d(np.arange(n_rows), order)[0]
        raise contradiction(f"receipt {receipts.ids[waiting]} {problem}")
    heights = take(receipts.outcomes.height, receipts.outcome_at)
    if not heights.isna().all():
        has_run = receipts.outcome_at >= 0
        filled = np.where(has_run, heights.to_numpy(np.int64, na_value=0), _NOT_YET)
        order = graph.by_height(order, receipts.parents, ends, filled)
    return order[np.argsort(receipts.trees[order], kind="stable")]


def is_refund_by_cost(result: TxResult, tokens_burnt: object) -> bool:
    """Return True if a receipt burnt no tokens although gas has a price: only refunds are free."""
    first = result.transaction_outcome
    has_price = first is not None and first.outcome.tokens_burnt not in (None, "0")
    return has_price and tokens_burnt is not NA and tokens_burnt == 0


def _data_edges(receipts: LinkedReceipts) -> DataEdges:
    rows, trees = receipts.body_rows.tolist(), receipts.trees[receipts.body_rows].tolist()
    producers: dict[tuple[int, str], int] = {}
    for index, data_id in receipts.bodies.outputs:
        row, key = rows[index], (trees[index], data_id)
        earlier = producers.setdefault(key, row)
        # A receipt that passes its output on still lists the receivers of its data.
        if earlier != row and _passes_on(receipts, earlier) and not _passes_on(receipts, row):
            producers[key] = row
    edges = [
        (producers[trees[index], data_id], rows[index], data_id)
        for index, data_id in receipts.bodies.inputs
        if (trees[index], data_id) in producers
    ]
    return DataEdges(
        np.array([producer for producer, _, _ in edges], dtype=np.int64),
        np.array([consumer for _, consumer, _ in edges], dtype=np.int64),
        np.array([data_id for _, _, data_id in edges], dtype=object),
    )


def _passes_on(receipts: LinkedReceipts, row: int) -> bool:
    """Return True if another receipt has the result of a receipt (SuccessReceiptId)."""
    outcome_row = receipts.outcome_at[row]
    return bool(outcome_row >= 0) and receipts.outcomes.codes[outcome_row] == SUCCESS_RECEIPT_ID


def _missing_parts(receipts: LinkedReceipts) -> list[str]:
    ids, has_run = receipts.ids, receipts.outcome_at >= 0
    if any(result.bodies is None for result in receipts.results):
        return [_NO_BODIES] if len(ids) else []
    no_body = receipts.body_at < 0
    orphan = receipts.parents < 0 if len(receipts.roots) else np.zeros(len(ids), dtype=bool)
    # Nodes do not send the body of a local receipt: the transaction has its content.
    orphan[receipts.roots] = no_body[receipts.roots] = False
    gaps = (
        ("no outcome and no body", no_body & ~has_run),
        ("no body", no_body & has_run),
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


def _infer_body(receipts: LinkedReceipts, row: int, executors: Sequence[str | None]) -> Receipt:
    """Build a body that the results lack; the first receipt has the transaction's actions."""
    result, receipt_id = receipts.results[receipts.trees[row]], receipts.ids[row]
    transaction = result.transaction
    if transaction is not None and receipt_id in result.created_ids()[:1]:
        body = ReceiptBody(ActionReceipt(transaction.signer_id, transaction.actions))
        return Receipt(receipt_id, transaction.signer_id, transaction.receiver_id, body)
    outcome_row, parent, sender = receipts.outcome_at[row], receipts.parents[row], None
    # The creator of a receipt is its sender, except for refunds.
    if outcome_row >= 0 and parent >= 0:
        tokens_burnt = receipts.outcomes.tokens_burnt[outcome_row]
        if not is_refund_by_cost(result, tokens_burnt):
            sender = executors[receipts.outcome_at[parent]]
    signer = transaction.signer_id if transaction and sender else None
    return Receipt(receipt_id, sender, executors[outcome_row], ReceiptBody(ActionReceipt(signer)))


def _mark_local(receipts: LinkedReceipts) -> np.ndarray:
    """Mark first receipts that run in their transaction's chunk: the signer is the receiver."""
    is_local = np.zeros(len(receipts.ids), dtype=bool)
    transactions = [result.transaction for result in receipts.results]
    for tree, root in zip(receipts.root_trees.tolist(), receipts.roots.tolist(), strict=True):
        transaction = transactions[tree]
        if transaction is not None and transaction.signer_id is not None:
            is_local[root] = transaction.signer_id == transaction.receiver_id
    return is_local
