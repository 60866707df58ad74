"""
The receipt tree of one transaction: rows, edges and verdict, computed from its result.

`tables` takes the result apart, `rows` finds the receipts and puts them into causal order with
`graph`, and `columns` describes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from ledgerkit.api.models.transactions import Outcome, Status, Transaction, collector_paused
from ledgerkit.tracing.tree.columns import edge_columns, receipt_columns
from ledgerkit.tracing.tree.rows import collect
from ledgerkit.tracing.tree.tables import NOT_EXECUTED, WORDS, amount, failure_texts, status_code

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np

    from ledgerkit.api.models.transactions import TxResult
    from ledgerkit.tracing.tree.rows import DataEdges

__all__ = ["Conversion", "Tree", "tree", "verdict"]


@dataclass(frozen=True, slots=True)
class Conversion:
    """What became of the transaction itself, which is no receipt: its first receipt, or not."""

    tx_hash: str | None
    signer_id: str | None
    receiver_id: str | None
    block_hash: str | None
    gas_burnt: int | None
    tokens_burnt: int | None
    status: str
    error_kind: str | None
    error_message: str | None


@dataclass(frozen=True, slots=True)
class Tree:
    """
    A receipt tree, rows in causal order.

    `columns` are those of the receipts frame; `parents` holds the position of each row's creator
    (-1: none) and `data` positions of producers and consumers, with the data_id.
    `overall` and `level` are what the document says of the whole; `leaf` is the status at
    which the chain of SuccessReceiptId ends. Each is None where the document says nothing.
    """

    columns: Mapping[str, Any]
    conversion: Conversion
    overall: str | None
    level: str | None
    leaf: str | None
    notes: tuple[str, ...]
    ids: np.ndarray = field(repr=False)
    parents: np.ndarray = field(repr=False)
    data: DataEdges = field(repr=False)

    def __len__(self) -> int:
        """Count the receipts."""
        return len(self.parents)

    def edges(self) -> Mapping[str, Any]:
        """
        Compute the columns of the edges frame.

        Returns
        -------
        columns
            For each receipt the edge from its creator, then those from its data's producers.
        """
        return edge_columns(self.ids, self.parents, self.data)


def tree(
    result: TxResult,
    *,
    blocks: Mapping[str, tuple[int, int]] | None = None,
    shard_of: Callable[[str], int | None] | None = None,
) -> Tree:
    """
    Compute the receipt tree of a transaction.

    Parameters
    ----------
    result
        The decoded result; see `ledgerkit.api.models.transactions`.
    blocks
        Height and time (nanoseconds since 1970) by block hash, for documents that do not
        bring their own. Some of the blocks are enough.
    shard_of
        Tells where an account lives, for documents that do not tell it of receipts.

    Returns
    -------
    tree
        One row a receipt, in causal order: topological along creation and data edges, lower
        blocks first where heights are known, then as the receipts list their children.

    Raises
    ------
    DecodeError
        If an amount is not decimal digits of at most 128 bits, or gas exceeds an Int64.

    Notes
    -----
    Creation edges come from `receipt_ids`. A data edge leads from the receipt that lists a
    data_id among its receivers to the one that lists it among its inputs; a receipt that
    handed its result on (SuccessReceiptId) gives way to the one that delivers it.

    The critical path ends in the receipt that ran last, by `order`, and goes back from each
    receipt to whichever of its creator and its data's producers comes last.

    A document that contradicts itself (an id twice, two creators, a ring) is read all the
    same: what comes first counts, and `notes` says what was left aside.
    """
    with collector_paused():
        rows = collect(result, blocks or {})
        return Tree(
            columns=receipt_columns(rows, result, shard_of),
            conversion=_conversion(result),
            overall=_overall(result.status),
            level=result.final_execution_status,
            leaf=None if rows.leaf is None else WORDS[rows.leaf],
            notes=tuple(rows.notes),
            ids=rows.ids,
            parents=rows.parents,
            data=rows.data,
        )


def verdict(tree: Tree, *, expired: bool = False) -> str:
    """
    Judge the whole transaction.

    Parameters
    ----------
    tree
        Its receipt tree.
    expired
        Whether it can no longer be included, which no document tells.

    Returns
    -------
    verdict
        The first of these that holds:

        - ``failed``: its result is a failure. The result is the overall status or, where the
          document has none, the end of the chain of SuccessReceiptId from the transaction
        - ``succeeded_with_failed_receipts``: its result is a value, but some receipt failed
        - ``pending``: there is no result yet, or a receipt that is no refund has still to run
          (after EXECUTED_OPTIMISTIC only refunds can be missing)
        - ``fully_succeeded``: its result is a value, no receipt failed and none is missing
        - ``dropped``: nothing of it is on the chain and it is `expired`
        - ``unknown``: the document does not say
    """
    ending = tree.overall if tree.overall in _FINAL else tree.leaf
    if ending == "failure":
        return "failed"
    if ending == "success_value":
        return _beside_success(tree)
    if expired and tree.leaf is None and not len(tree):
        return "dropped"
    is_told = ending or tree.level or tree.overall in _STARTING
    return "pending" if is_told else "unknown"


_FINAL = ("failure", "success_value")
_STARTING = ("NotStarted", "Started")
_ALL_BUT_REFUNDS = ("EXECUTED_OPTIMISTIC", "EXECUTED", "FINAL")
_OPEN = ("not_executed", "unknown")


def _beside_success(tree: Tree) -> str:
    """Judge what ran beside a result that is a value."""
    statuses = list(tree.columns["status"])
    if "failure" in statuses:
        return "succeeded_with_failed_receipts"
    if tree.level in _ALL_BUT_REFUNDS:
        return "fully_succeeded"
    rows = zip(statuses, tree.columns["kind"], strict=True)
    waiting = any(status in _OPEN and kind != "refund" for status, kind in rows)
    return "pending" if waiting else "fully_succeeded"


def _overall(status: Status | str | None) -> str | None:
    """Name the overall status; NotStarted and Started keep their words."""
    return status if status is None or isinstance(status, str) else WORDS[status_code(status)]


def _conversion(result: TxResult) -> Conversion:
    """Read what became of the transaction itself."""
    transaction = result.transaction or Transaction()
    first = result.transaction_outcome
    outcome = first.outcome if first else Outcome()
    failure = outcome.status.failure if isinstance(outcome.status, Status) else UNSET
    kind, message = (None, None) if failure is UNSET else failure_texts(bytes(failure))
    tokens = outcome.tokens_burnt
    return Conversion(
        tx_hash=transaction.hash or (first.id if first else None),
        signer_id=transaction.signer_id,
        receiver_id=transaction.receiver_id,
        block_hash=first.block_hash if first else None,
        gas_burnt=outcome.gas_burnt,
        tokens_burnt=None if tokens is None else amount(tokens, "$..transaction_outcome"),
        status=WORDS[status_code(outcome.status) if first else NOT_EXECUTED],
        error_kind=kind,
        error_message=message,
    )
