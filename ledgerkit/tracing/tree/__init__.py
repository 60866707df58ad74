"""
The receipt trees of transactions: rows, edges and verdict, computed from their results.

`outcomes` and `bodies` decode the results into columns, `linking` links the receipts and sorts
them with `graph`, and `frame_columns` computes the columns of the frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET

from ledgerkit.api.models.transactions import Outcome, Status, Transaction
from ledgerkit.tracing.action_fields import parse_amount
from ledgerkit.tracing.tree.frame_columns import (
    LEVELS_BEFORE_REFUNDS,
    edge_columns,
    receipt_columns,
)
from ledgerkit.tracing.tree.linking import LinkedReceipts
from ledgerkit.tracing.tree.outcomes import (
    NOT_EXECUTED,
    STATUS_NAMES,
    describe_other_status,
    other_status,
    read_failure,
    status_code,
)

if TYPE_CHECKING:
    from ledgerkit.api.models.actions import Actions
    from ledgerkit.api.models.transactions import ExecutionOutcome, TxResult
    from ledgerkit.tracing.tree.frame_columns import ShardOf

__all__ = ["Conversion", "Forest", "Tree", "build_forest", "build_tree", "verdict"]


class Conversion(NamedTuple):
    """The conversion of the transaction into its first receipt: cost, status and error."""

    tx_hash: str | None
    signer_id: str | None
    gas_burnt: int | None
    tokens_burnt: int | None
    status: str
    error_kind: str | None
    error_message: str | None


class Forest:
    """
    The receipt trees of transactions, one after another, rows of each in causal order.

    `columns` are the lists of the receipts frame's values, None where one is missing (NA among
    `args`), `conversions` those of the transactions, `trees` is the number of each row's
    transaction, and `starts` the first row of each tree and their end. `parents` is the position of
    each row's creator (-1: none), and `outcome_at` the position of its outcome in the joined lists
    of the results (-1: not executed). `inferred` are the bodies that the results lack. `data` are
    the producers and consumers of data, by position, and the data_ids.
    """

    def __init__(self, receipts: LinkedReceipts, shard_of: ShardOf | None = None) -> None:
        self.results, self.notes = receipts.results, tuple(receipts.notes)
        self.columns = receipt_columns(receipts, shard_of)
        self.conversions = tuple(map(_conversion, receipts.results))
        self.ids, self.trees, self.starts = receipts.ids, receipts.trees, receipts.starts
        self.parents, self.data = receipts.parents, receipts.data
        self.outcome_at, self.inferred = receipts.outcome_at, receipts.inferred

    def __len__(self) -> int:
        return len(self.parents)

    def executions(self) -> list[ExecutionOutcome | None]:
        """List the outcomes of the receipts; None where a receipt has not run."""
        outcomes = [outcome for result in self.results for outcome in result.outcomes]
        return [outcomes[row] if row >= 0 else None for row in self.outcome_at]

    def actions(self) -> list[Actions | None]:
        """List the actions of the receipts; None where the document lacks them."""
        bodies = chain.from_iterable(result.bodies or () for result in self.results)
        actions = {
            body.receipt_id: body.receipt.action.actions
            for body in chain(bodies, self.inferred)
            if body.receipt is not None and body.receipt.action is not None
        }
        return list(map(actions.get, self.ids))

    def edges(self) -> dict[str, list[Any]]:
        """Compute the columns of the edges frame."""
        return edge_columns(self.ids, self.parents, self.data)


class Tree(Forest):
    """
    A receipt tree: a forest of one transaction.

    `overall` is the transaction's status, `level` its `final_execution_status`, and `leaf` the
    status at which the chain of SuccessReceiptId ends; each is None where unknown.
    """

    def __init__(self, receipts: LinkedReceipts, shard_of: ShardOf | None) -> None:
        super().__init__(receipts, shard_of)
        [result] = receipts.results
        self.overall = _overall_status(result.status)
        self.level = result.final_execution_status
        self.leaf = _leaf(result, receipts)

    @property
    def conversion(self) -> Conversion:
        """The conversion of the transaction into its first receipt."""
        return self.conversions[0]


def build_tree(
    result: TxResult,
    *,
    blocks: Mapping[str, tuple[int, int]] | None = None,
    shard_of: ShardOf | None = None,
) -> Tree:
    """
    Compute the receipt tree of a transaction, in causal order.

    That order is topological along creation and data edges. Lower blocks come first where heights
    are known; within a block, the order is that in which receipts list their children. `blocks` are
    heights and times (nanoseconds since 1970) by block hash, for documents without them; `shard_of`
    is for documents without shards.

    Creation edges come from `receipt_ids`. A data edge leads from the receipt that lists a data_id
    in `output_data_receivers`, the producer, to the receipt that lists it in `input_data_ids`. If
    two receipts list the same data_id, the producer is the one without SuccessReceiptId.

    The critical path ends in the executed receipt with the highest `order`. Before each receipt
    on it comes the latest of its creator and the producers of its data.
    """
    receipts = LinkedReceipts([result], blocks or {})
    receipts.notes += _undeclared_statuses(result)
    return Tree(receipts, shard_of)


def build_forest(results: Sequence[TxResult]) -> Forest:
    """Compute the receipt trees of many transactions at once, as `build_tree` does."""
    return Forest(LinkedReceipts(results, {}))


def _leaf(result: TxResult, receipts: LinkedReceipts) -> str | None:
    """Return the status at which the chain of SuccessReceiptId ends; None without a chain."""
    if result.transaction_outcome is None:
        return None
    status = result.transaction_outcome.outcome.status
    name = STATUS_NAMES[status_code(status)]
    target = status.success_receipt_id if isinstance(status, Status) else None
    outcomes, seen = receipts.outcomes, set()
    while target is not None:
        if target in seen:
            return None
        seen.add(target)
        row = min(receipts.row_of.get(target, -1), len(outcomes.ids))  # the last has not run
        name, target = outcomes.columns["status"][row], outcomes.result_ids.get(row)
    return name


def verdict(tree: Tree) -> str:
    """
    Return the result of the whole transaction: the first of these that holds.

    - ``failed``: its result is a failure. The result is the overall status or, where the
      document has none, the end of the chain of SuccessReceiptId from the transaction
    - ``succeeded_with_failed_receipts``: its result is a value, but some receipt failed
    - ``pending``: there is no result yet, or a receipt other than a refund has not run
      (after EXECUTED_OPTIMISTIC only refunds can be missing)
    - ``fully_succeeded``: its result is a value, no receipt failed and none is missing
    - ``unknown``: the document does not contain enough, such as the status of a receipt
      that has run
    """
    status = tree.leaf if tree.overall in (None, *_STARTING) else tree.overall
    if status == "failure":
        return "failed"
    if status == "success_value":
        return _verdict_on_success(tree)
    is_known = status or tree.level or tree.overall in _STARTING
    unknown_gas = _gas_of_unknown(tree)
    has_run = status == "unknown" and bool(unknown_gas) and 0 not in unknown_gas
    return "pending" if is_known and not has_run else "unknown"


_FINAL = ("failure", "success_value")
_STARTING = ("NotStarted", "Started")


def _verdict_on_success(tree: Tree) -> str:
    statuses = tree.columns["status"]
    if "failure" in statuses:
        return "succeeded_with_failed_receipts"
    unknown_gas, all_ran = _gas_of_unknown(tree), tree.level in (*LEVELS_BEFORE_REFUNDS, "FINAL")
    columns = zip(tree.columns["kind"], statuses, strict=True)
    is_waiting = any(kind != "refund" and name == "not_executed" for kind, name in columns)
    if not all_ran and (is_waiting or 0 in unknown_gas):
        return "pending"
    return "unknown" if unknown_gas else "fully_succeeded"


def _gas_of_unknown(tree: Tree) -> list[int | None]:
    """List the gas burnt by receipts of unknown status: 0 for a receipt that has not run."""
    names = ("status", "kind", "gas_burnt")
    columns = zip(*map(tree.columns.__getitem__, names), strict=True)
    return [gas for status, kind, gas in columns if status == "unknown" and kind != "refund"]


def _undeclared_statuses(result: TxResult) -> Iterator[str]:
    first = result.transaction_outcome
    names = [None if _overall_status(result.status) in _STARTING else other_status(result.status)]
    names.append(other_status(first.outcome.status) if first else None)
    yield from (f"{describe_other_status(name)}: the transaction" for name in names if name)


def _overall_status(status: Status | str | None) -> str | None:
    if status is None or status in _STARTING:
        return status
    return STATUS_NAMES[status_code(status)]


def _conversion(result: TxResult) -> Conversion:
    transaction = result.transaction or Transaction()
    first = result.transaction_outcome
    outcome = first.outcome if first else Outcome()
    failure = outcome.status.failure if isinstance(outcome.status, Status) else UNSET
    path = "$..transaction_outcome.outcome.status.Failure"
    read = None if failure is UNSET else read_failure(failure, path, {})
    tokens = outcome.tokens_burnt
    return Conversion(
        tx_hash=transaction.hash or (first.id if first else None),
        signer_id=transaction.signer_id,
        gas_burnt=outcome.gas_burnt,
        tokens_burnt=None if tokens is None else parse_amount(tokens, "$..transaction_outcome"),
        status=STATUS_NAMES[status_code(outcome.status) if first else NOT_EXECUTED],
        error_kind=read and read.kind,
        error_message=read and read.message,
    )
