"""The receipts of results, linked by creation and data edges, in causal order."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

from ledgerkit.api.models.transactions import ActionReceipt, Receipt, ReceiptBody, TxResult
from ledgerkit.errors import DecodeError
from ledgerkit.tracing.tree import graph
from ledgerkit.tracing.tree.bodies import Bodies
from ledgerkit.tracing.tree.outcomes import Outcomes

if TYPE_CHECKING:
    from ledgerkit.tracing.tree.outcomes import Texts

    Blocks = Mapping[str, tuple[int, int]]

_NOT_YET = 2**63  # above every height: receipts that have not run come last
_MOST_NAMED = 3
_NO_BODIES = (
    "the document has no receipt bodies (plain tx does not send them), so actions, deposits, "
    "arguments and data edges are known for the first receipt only: use tx_status, or "
    "EXPERIMENTAL_tx_status on older nodes"
)


class LinkedReceipts:
    """
    The receipts of transactions, tree by tree, in causal order within a tree.

    Before `_sort` the receipts are in order of first mention, and a receipt's number is its row;
    afterwards it is its position. `outcome_at` and `body_at` are the rows of each in `outcomes` and
    `bodies` (-1: none), `parents` the numbers of creators (-1: none), `trees` the numbers of
    transactions, and `data` producers of data, consumers and data_ids.

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
        """Assign a row to each receipt, and list the rows of creators and created receipts."""
        outcomes, self.row_of = self.outcomes, dict[str, int]()
        executed = self._rows_of(outcomes.ids, "it has two outcomes of {}")
        roots = [
            (tree, i) for tree, result in enumerate(self.results) for i in result.created_ids()
        ]
        created_ids = [*(i for _, i in roots), *outcomes.created_ids]
        created = self._rows_of(created_ids, "receipt {} was created twice")
        self.body_rows = self._rows_of(self.bodies.ids, "it has two bodies of {}")
        self.ids = [*self.row_of]
        self.outcome_at = [*executed, *[-1] * (len(self.ids) - len(executed))]
        self.body_at = [-1] * len(self.ids)
        for body_row, row in enumerate(self.body_rows):
            self.body_at[row] = body_row
        # The transaction that created each root, and the receipt that created each other receipt.
        self.root_trees = {row: tree for row, (tree, _) in zip(created, roots, strict=False)}
        self.created = created[len(roots) :]

    def created_pairs(self) -> Iterable[tuple[int, int]]:
        """Pair the rows of creators and the receipts that they created, by creator."""
        return zip(self.outcomes.creators, self.created, strict=True)

    def _rows_of(self, ids: Sequence[str], problem: str) -> list[int]:
        """Return the row of each id, the next one for a new id; raise if an id is repeated."""
        row_of = self.row_of
        rows = [row_of.setdefault(receipt_id, len(row_of)) for receipt_id in ids]
        if len(set(rows)) < len(rows):
            [(repeated, _)] = Counter(ids).most_common(1)
            raise contradiction(problem.format(repeated))
        return rows

    def _assign_trees(self) -> None:
        """Assign each receipt its creator (-1: none) and its transaction."""
        self.parents, self.trees = [-1] * len(self.ids), [0] * len(self.ids)
        for creator, row in self.created_pairs():
            self.parents[row] = creator
        if len(self.results) == 1:
            return
        for row, tree in self.root_trees.items():
            self.trees[row] = tree
        for rows, lists in (
            (self.body_at, self.bodies.lists),
            (self.outcome_at, self.outcomes.lists),
        ):
            for row, listed_row in enumerate(rows):
                if listed_row >= 0:
                    self.trees[row] = lists.number(listed_row)
        for creator, row in self.created_pairs():
            self.trees[row] = self.trees[creator]

    def _add_missing_bodies(self) -> None:
        rows = [row for row, body_row in enumerate(self.body_at) if body_row < 0]
        outcomes = chain.from_iterable(result.outcomes for result in self.results)
        executors = [*(item.outcome.executor_id for item in outcomes), None] if rows else []
        self.inferred = [_infer_body(self, row, executors) for row in rows]
        if rows:
            for body_row, row in enumerate(rows, len(self.bodies.ids)):
                self.body_at[row] = body_row
            self.bodies.add_inferred(self.inferred)

    def _sort(self, order: list[int]) -> None:
        """Put the receipts into an order; rows become positions."""
        position = [0] * len(order)
        for place, row in enumerate(order):
            position[row] = place
        position.append(-1)  # no creator
        self.parents = [position[self.parents[row]] for row in order]
        data = [(position[before], position[after], name) for before, after, name in self.data]
        self.data = sorted(data, key=itemgetter(1))
        for name in ("ids", "is_local", "trees", "outcome_at", "body_at"):
            values = getattr(self, name)
            setattr(self, name, [values[row] for row in order])
        self.starts = [bisect_left(self.trees, tree) for tree in range(len(self.results) + 1)]


def contradiction(problem: str) -> DecodeError:
    """Build the error for receipts that contradict each other."""
    return DecodeError(f"the document contradicts itself: {problem}", path="$")


def _causal_order(receipts: LinkedReceipts) -> list[int]:
    """Sort rows tree by tree: each after the rows it depends on, and lower blocks first."""
    data = [(producer, consumer) for producer, consumer, _ in receipts.data]
    roots, n_rows = receipts.root_trees, len(receipts.ids)
    order = graph.sort(receipts.created_pairs(), roots, n_rows, data)
    if len(order) < n_rows:
        problem = "waits for data that comes after it"
        creation_order = graph.sort(receipts.created_pairs(), roots, n_rows, [])
        if len(creation_order) < n_rows:
            order, problem = creation_order, "is among its own creators"
        waiting = min(set(range(n_rows)).difference(order))
        raise contradiction(f"receipt {receipts.ids[waiting]} {problem}")
    by_outcome = receipts.outcomes.columns["block_height"]
    if any(height is not None for height in by_outcome):
        heights = [_NOT_YET if row < 0 else by_outcome[row] or 0 for row in receipts.outcome_at]
        order = graph.by_height(order, receipts.parents, data, heights)
    return sorted(order, key=receipts.trees.__getitem__)


def is_refund_by_cost(result: TxResult, tokens_burnt: object) -> bool:
    """Return True if a receipt burnt no tokens although gas has a price: only refunds are free."""
    first = result.transaction_outcome
    has_price = first is not None and first.outcome.tokens_burnt not in (None, "0")
    return has_price and tokens_burnt == 0


def _data_edges(receipts: LinkedReceipts) -> list[tuple[int, int, str]]:
    """Pair the producers of data with its consumers."""
    bodies = receipts.bodies
    producers: dict[tuple[int, str], int] = {}
    for index, data_id in bodies.outputs:
        row = receipts.body_rows[index]
        key = receipts.trees[row], data_id
        earlier = producers.setdefault(key, row)
        # A receipt that passes its output on still lists the receivers of its data.
        if earlier != row and _passes_on(receipts, earlier) and not _passes_on(receipts, row):
            producers[key] = row
    consumers = [(receipts.body_rows[index], data_id) for index, data_id in bodies.inputs]
    return [
        (producers[receipts.trees[row], data_id], row, data_id)
        for row, data_id in consumers
        if (receipts.trees[row], data_id) in producers
    ]


def _passes_on(receipts: LinkedReceipts, row: int) -> bool:
    """Return True if another receipt has the result of a receipt (SuccessReceiptId)."""
    return receipts.outcome_at[row] in receipts.outcomes.result_ids


def _missing_parts(receipts: LinkedReceipts) -> list[str]:
    if any(result.bodies is None for result in receipts.results):
        return [_NO_BODIES] if receipts.ids else []
    gaps: dict[str, list[str]] = {
        "no outcome and no body": [],
        "no body": [],
        "no creator": [],
    }
    links = enumerate(zip(receipts.body_at, receipts.parents, strict=True))
    for row in [row for row, (body_row, parent) in links if body_row < 0 or parent < 0]:
        # Nodes do not send the body of a local receipt: the transaction has its content.
        if row in receipts.root_trees:
            continue
        receipt_id, has_run = receipts.ids[row], receipts.outcome_at[row] >= 0
        if receipts.body_at[row] < 0:
            gaps["no body" if has_run else "no outcome and no body"].append(receipt_id)
        if receipts.parents[row] < 0 and receipts.root_trees:
            gaps["no creator"].append(receipt_id)
    return [
        f"the document has {part} for {first_names(names)}" for part, names in gaps.items() if names
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
        tokens_burnt = receipts.outcomes.columns["tokens_burnt"][outcome_row]
        if not is_refund_by_cost(result, tokens_burnt):
            sender = executors[receipts.outcome_at[parent]]
    signer = transaction.signer_id if transaction and sender else None
    return Receipt(receipt_id, sender, executors[outcome_row], ReceiptBody(ActionReceipt(signer)))


def _mark_local(receipts: LinkedReceipts) -> list[bool]:
    """Mark first receipts that run in their transaction's chunk: the signer is the receiver."""
    is_local = [False] * len(receipts.ids)
    for root, tree in receipts.root_trees.items():
        transaction = receipts.results[tree].transaction
        if transaction is not None and transaction.signer_id is not None:
            is_local[root] = transaction.signer_id == transaction.receiver_id
    return is_local
