"""The tables of receipts, events, transfers and intents of transactions, from either source."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.api.models.actions import read_actions
from ledgerkit.api.models.block_documents import ExecutedReceipt, result_of
from ledgerkit.api.models.transactions import DecodedList, Transaction, TxResult
from ledgerkit.block_data.protocol_rules import common_rules
from ledgerkit.frames import arrow_tables
from ledgerkit.tracing.actions import (
    Event,
    event_columns,
    parse_events,
    with_receipts,
)
from ledgerkit.tracing.gas import ReceiptValues
from ledgerkit.tracing.intents import IntentMove, intent_columns, list_intents
from ledgerkit.tracing.transfers import list_transfers, transfer_columns
from ledgerkit.tracing.tree import Forest, build_forest

if TYPE_CHECKING:
    from ledgerkit.api.models.chain import BlockHeader
    from ledgerkit.api.models.protocol_rules import Rules
    from ledgerkit.block_data.transaction_assembly import IncludedTransaction
    from ledgerkit.tracing.token_events import Transfer

    Columns = dict[str, Any]


class TracedTransaction(NamedTuple):
    """A transaction, its block, and the rules in force in all blocks in which it ran."""

    block_height: int
    hash: str
    result: TxResult
    rules: Rules | None


def tree_tables(
    views: Collection[str], transactions: Sequence[TracedTransaction]
) -> dict[str, Any]:
    """
    Return a `pyarrow.Table` for each view, one of `collected.TRACED`, its rows by transaction.

    Raises `DecodeError` if a value does not fit its column.
    """
    forest = build_forest([item.result for item in transactions])
    has_events = not {"events", "transfers", "intents"}.isdisjoint(views)
    events = parse_events(forest) if has_events else []
    columns: dict[str, tuple[list[int], Columns]] = {
        "receipts": (forest.trees, _receipts(forest, transactions)),
        "events": (
            _tree_numbers(forest, events),
            with_receipts(event_columns(forest, events), forest.columns),
        ),
    }
    if "transfers" in views:
        rules = [item.rules for item in transactions]
        transfers = list_transfers(ReceiptValues(forest, rules), events)[0]
        keyed = with_receipts(transfer_columns(transfers), forest.columns)
        columns["transfers"] = _tree_numbers(forest, transfers), keyed
    if "intents" in views:
        moves = list_intents(forest, events)[0]
        keyed = with_receipts(intent_columns(moves), forest.columns)
        columns["intents"] = _tree_numbers(forest, moves), keyed
    return {view: _build_table(view, transactions, *columns[view]) for view in views}


def _build_table(
    view: str, transactions: Sequence[TracedTransaction], trees: Sequence[int], columns: Columns
) -> Any:
    keys = {
        "tx_block_height": [transactions[tree].block_height for tree in trees],
        "tx_hash": [transactions[tree].hash for tree in trees],
    }
    return arrow_tables.of_columns(view, keys | columns)


def _tree_numbers(forest: Forest, rows: Sequence[Event | Transfer | IntentMove]) -> list[int]:
    positions = (row.position for row in rows)
    # Position -1 is the first transaction itself, -2 the second.
    return [forest.trees[row] if row >= 0 else ~row for row in positions]


def _receipts(forest: Forest, transactions: Sequence[TracedTransaction]) -> Columns:
    """Return the columns of the receipts, and the heights at which they were created."""
    heights = forest.columns["block_height"]
    created = [
        heights[parent] if parent >= 0 else transactions[tree].block_height
        for parent, tree in zip(forest.parents, forest.trees, strict=True)
    ]
    return {**forest.columns, "created_height": created}


# From a node ----------------------------------------------------------------------------


def trace_result(
    height: int,
    tx_hash: str,
    result: TxResult,
    headers: Mapping[str, BlockHeader],
    rules: Mapping[str, Rules | None],
) -> TracedTransaction:
    """Add heights, times and shards to a node's result: headers are by hash, rules by epoch."""
    epochs = [headers[block_hash].epoch_id for block_hash in result.block_hashes()]
    common = common_rules([rules.get(epoch_id) for epoch_id in epochs])
    outcomes = list(result.outcomes)
    for outcome in outcomes:
        header = headers.get(outcome.block_hash or "")
        if header is not None:
            outcome.block_height, outcome.block_timestamp = header.height, header.time_ns
        executor_id = outcome.outcome.executor_id
        if common is not None and executor_id is not None:
            outcome.shard_id = common.shard_of(executor_id)
    complete = replace(result, outcomes=DecodedList(outcomes, result.outcomes.path))
    return TracedTransaction(height, tx_hash, complete, common)


# From block documents -------------------------------------------------------------------


def trace_included(included: IncludedTransaction) -> TracedTransaction:
    """Return a transaction of a block document, as far as its receipts have run."""
    item = included.transaction
    names = item.signer_id, item.public_key, item.nonce_index, item.receiver_id
    transaction = Transaction(item.hash, *names, read_actions(item))
    result = result_of(_in_node_order(included), "$.receipts", transaction, included.conversion)
    tx_hash = included.conversion.id
    return TracedTransaction(included.block_height, tx_hash, result, included.rules)


def _in_node_order(included: IncludedTransaction) -> list[ExecutedReceipt]:
    """List the receipts in a node's order, creators before their receipts, if it matters."""
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
