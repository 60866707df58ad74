"""The columns of the receipts and edges frames, from linked receipts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ledgerkit.api.models.transactions import Status
from ledgerkit.frames.build import integers
from ledgerkit.tracing.tree import graph
from ledgerkit.tracing.tree.arrays import EMPTY_LIST, objects
from ledgerkit.tracing.tree.linking import is_refund_by_cost
from ledgerkit.tracing.tree.outcomes import STATUS_NAMES, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from ledgerkit.tracing.tree.linking import DataEdges, LinkedReceipts
    from ledgerkit.u128.array import U128Array

    Columns = dict[str, Any]
    ShardOf = Callable[[str], int | None]

SYSTEM = "system"  # the sender of refunds
LEVELS_BEFORE_REFUNDS = ("EXECUTED_OPTIMISTIC", "EXECUTED")  # all receipts but refunds have run
_EDGE_KINDS = np.array(["creation", "data"], dtype=object)
_RECEIPT_KINDS = np.array(["action", "refund", None], dtype=object)


def receipt_columns(receipts: LinkedReceipts, shard_of: ShardOf | None = None) -> Columns:
    """Compute the columns of the receipts frame; `shard_of` is for results without shards."""
    outcomes = receipts.outcomes.columns(receipts.outcome_at)
    bodies = receipts.bodies.columns(receipts.body_at)
    kinds = _kinds(receipts, bodies["predecessor_id"], outcomes["tokens_burnt"])
    outcomes["status"][_lack_outcome(receipts, kinds)] = STATUS_NAMES[UNKNOWN]
    if shard_of is not None:
        _fill_shards(outcomes["shard_id"], receipts.outcome_at, bodies["receiver_id"], shard_of)
    gas_burnt = outcomes["gas_burnt"].to_numpy(np.uint64, na_value=0)
    on_critical_path = np.zeros(len(kinds), dtype=bool)
    on_critical_path[_critical_path(receipts)] = True
    return {
        "receipt_id": receipts.ids.copy(),
        "parent_id": objects(receipts.ids)[receipts.parents],
        "depth": receipts.depths,
        "order": integers(np.arange(len(receipts.ids)) - receipts.starts[receipts.trees], "order"),
        "kind": kinds,
        "is_local": receipts.is_local,
        **outcomes,
        **bodies,
        "waits_for": _waits_for(receipts),
        "subtree_gas": graph.subtree_sums(receipts.parents, gas_burnt),
        "on_critical_path": on_critical_path,
    }


def edge_columns(ids: np.ndarray, parents: np.ndarray, data: DataEdges) -> Columns:
    """Compute the columns of the edges frame: by child, its creation before its data edges."""
    created = np.flatnonzero(parents >= 0)
    children = np.append(created, data.consumers)
    by_child = np.argsort(children, kind="stable")
    creators = np.append(parents[created], data.producers)[by_child]
    children, is_data = children[by_child], by_child >= len(created)
    data_ids = np.full(len(is_data), None, dtype=object)
    data_ids[is_data] = data.data_ids
    return {
        "parent_id": ids[creators],
        "child_id": ids[children],
        "kind": _EDGE_KINDS[is_data.astype(np.int8)],
        "data_id": data_ids,
    }


def _fill_shards(
    shards: pd.arrays.IntegerArray,
    outcome_at: np.ndarray,
    receivers: np.ndarray,
    shard_of: ShardOf,
) -> None:
    missing = shards.isna() & (outcome_at >= 0)
    shard_by_account = {name: shard_of(name) for name in set(receivers[missing]) - {None}}
    for position in np.flatnonzero(missing).tolist():
        shard_id = shard_by_account.get(receivers[position])
        if shard_id is not None:
            shards[position] = shard_id


def _kinds(
    receipts: LinkedReceipts, predecessors: np.ndarray, tokens_burnt: U128Array
) -> np.ndarray:
    codes = (predecessors == SYSTEM).astype(np.int8)
    for position in np.flatnonzero(predecessors == None).tolist():  # noqa: E711 - compares values
        result = receipts.results[receipts.trees[position]]
        is_refund = is_refund_by_cost(result, tokens_burnt[position])
        codes[position] = 2 if receipts.outcome_at[position] < 0 else is_refund
    kinds: np.ndarray = _RECEIPT_KINDS[codes]
    return kinds


def _lack_outcome(receipts: LinkedReceipts, kinds: np.ndarray) -> np.ndarray:
    """Mark the receipts without an outcome that have run according to their transaction."""
    has_run = np.zeros(len(kinds), dtype=bool)
    missing = receipts.outcome_at < 0
    for tree in set(receipts.trees[missing].tolist()):
        result, first = receipts.results[tree], int(receipts.starts[tree])
        rows = slice(first, int(receipts.starts[tree + 1]))
        level = result.final_execution_status
        if level == "FINAL":
            has_run[rows] = True
        elif level in LEVELS_BEFORE_REFUNDS:
            has_run[rows] = kinds[rows] == _RECEIPT_KINDS[0]
        if isinstance(result.status, Status):  # the result comes from the first receipt
            has_run[first] |= receipts.ids[first] in result.created_ids()
    return has_run & missing


def _waits_for(receipts: LinkedReceipts) -> list[list[str]]:
    waits_for: list[list[str]] = [EMPTY_LIST] * len(receipts.ids)
    for producer, consumer in dict.fromkeys((edge[0], edge[1]) for edge in receipts.data):
        if waits_for[consumer] is EMPTY_LIST:
            waits_for[consumer] = []
        waits_for[consumer].append(receipts.ids[producer])
    return waits_for


def _critical_path(receipts: LinkedReceipts) -> list[int]:
    executed = np.flatnonzero(receipts.outcome_at >= 0)
    trees = receipts.trees[executed]
    is_last = np.append(trees[1:] != trees[:-1], True)[: len(executed)]
    data = receipts.data.producers, receipts.data.consumers
    return graph.latest_chains(executed[is_last].tolist(), receipts.parents, data)
