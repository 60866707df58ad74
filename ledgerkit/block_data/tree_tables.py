"""The tables of receipts, events and transfers of transactions, from block documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ledgerkit.api.models.actions import read_actions
from ledgerkit.api.models.transactions import DecodedList, Transaction, TxResult, TxResults
from ledgerkit.errors import DecodeError
from ledgerkit.frames import arrow_tables
from ledgerkit.tracing.actions import (
    actions_by_receipt,
    event_columns,
    parse_events,
    with_receipts,
)
from ledgerkit.tracing.gas import ReceiptValues
from ledgerkit.tracing.transfers import list_transfers, transfer_columns
from ledgerkit.tracing.tree import build_forest

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ledgerkit.api.models.actions import Action
    from ledgerkit.api.models.block_documents import ExecutedReceipt
    from ledgerkit.api.models.chain import ChunkTransaction
    from ledgerkit.block_data.transaction_assembly import IncludedTransaction
    from ledgerkit.tracing.actions import Event
    from ledgerkit.tracing.token_events import Transfer
    from ledgerkit.tracing.tree import Forest

    Columns = dict[str, Any]

VIEWS = ("receipts", "events", "transfers")
_NO_LIST = DecodedList((), "$")


def tree_tables(
    views: Collection[str], transactions: Sequence[IncludedTransaction]
) -> dict[str, Any]:
    """
    Return a `pyarrow.Table` for each view, some of `VIEWS`; its rows are by transaction.

    Raises `DecodeError` if a value fits no column.
    """
    forest = build_forest(_results(transactions))
    events = parse_events(forest) if {"events", "transfers"}.intersection(views) else []
    columns: dict[str, tuple[np.ndarray, Columns]] = {
        "receipts": (forest.trees, _receipts(forest, transactions)),
        "events": (
            _trees(forest, events),
            with_receipts(event_columns(forest, events), forest.columns),
        ),
    }
    if "transfers" in views:
        transfers = _transfers(forest, transactions, events)
        keyed = with_receipts(transfer_columns(transfers), forest.columns)
        columns["transfers"] = _trees(forest, transfers), keyed
    return {view: _table(view, transactions, *columns[view]) for view in views}


def _table(
    view: str, transactions: Sequence[IncludedTransaction], trees: np.ndarray, columns: Columns
) -> Any:
    heights = np.array([item.block_height for item in transactions], dtype=np.int64)
    hashes = np.array([item.transaction.hash for item in transactions], dtype=object)
    own = {"tx_block_height": heights[trees], "tx_hash": hashes[trees]}
    return arrow_tables.table_of_columns(f"collected_{view}", own | columns)


def _trees(forest: Forest, rows: Sequence[Event | Transfer]) -> np.ndarray:
    at = np.array([row.at for row in rows], dtype=np.int64)
    trees = ~at  # position -1 is the first transaction itself, -2 the second one
    trees[at >= 0] = forest.trees[at[at >= 0]]
    return trees


def _receipts(forest: Forest, transactions: Sequence[IncludedTransaction]) -> Columns:
    """Return the columns of the receipts, and the heights at which they were created."""
    heights = np.array([item.block_height for item in transactions], dtype=np.int64)
    created, is_first = forest.columns["block_height"][forest.parents], forest.parents < 0
    created[is_first] = heights[forest.trees[is_first]]
    return {**forest.columns, "created_height": created}


def _transfers(
    forest: Forest, transactions: Sequence[IncludedTransaction], events: Sequence[Event]
) -> list[Transfer]:
    rules = [item.rules for item in transactions]
    values = ReceiptValues(forest, actions_by_receipt(forest), rules)
    return list_transfers(values, events)[0]


def _results(transactions: Sequence[IncludedTransaction]) -> TxResults:
    receipts: list[ExecutedReceipt] = []
    n_outcomes, results = [], []
    for item in transactions:
        executed = _in_node_order(item)
        receipts += executed
        n_outcomes.append(len(executed))
        results.append(_result(item, executed))
    executions = [receipt.execution_outcome for receipt in receipts]
    bodies = [receipt.receipt for receipt in receipts]
    lists = (DecodedList(values, "$.receipts") for values in (executions, executions, bodies))
    return TxResults(results, n_outcomes, *lists)


def _in_node_order(included: IncludedTransaction) -> list[ExecutedReceipt]:
    """List the receipts as a node does, if it matters: what a receipt created comes after it."""
    # Source: nearcore, chain/chain/src/chain.rs, get_recursive_transaction_results.
    if not any(map(_has_receivers, included.receipts)):
        return included.receipts
    by_id = {receipt.receipt.receipt_id: receipt for receipt in included.receipts}
    following = list(reversed(included.conversion.outcome.receipt_ids))
    receipts = []
    while following:
        receipt = by_id.get(following.pop())
        if receipt is not None:
            receipts.append(receipt)
            following += reversed(receipt.execution_outcome.outcome.receipt_ids)
    return receipts


def _has_receivers(executed: ExecutedReceipt) -> bool:
    body = executed.receipt.receipt
    if body is None or body.action is None:
        return False
    return len(body.action.output_data_receivers or ()) > 1


def _result(included: IncludedTransaction, executed: Sequence[ExecutedReceipt]) -> TxResult:
    own = included.transaction
    # The first receipt has the transaction's actions, which are needed until it has run.
    first = (included.conversion.outcome.receipt_ids)[:1]
    has_run = not first or (bool(executed) and executed[0].receipt.receipt_id == first[0])
    actions = None if has_run else _actions(own)
    names = own.signer_id, own.public_key, own.nonce_index, own.receiver_id
    transaction = Transaction(own.hash, *names, actions)
    conversion: Any = included.conversion  # it has the members of an ExecutionOutcome
    return TxResult(None, None, transaction, conversion, _NO_LIST, _NO_LIST, _NO_LIST)


def _actions(transaction: ChunkTransaction) -> list[Action | str]:
    try:
        return read_actions(transaction.actions)
    except msgspec.DecodeError as problem:
        sentence = f"transaction {transaction.hash} is not as documented: {problem}"
        raise DecodeError(sentence, path="$..transaction.actions") from None
