"""The columns of the receipts and edges frames, from linked receipts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ledgerkit.api.models.transactions import Status
from ledgerkit.tracing.tree import graph
from ledgerkit.tracing.tree.linking import LinkedReceipts, is_refund_by_cost
from ledgerkit.tracing.tree.lists import EMPTY_LIST
from ledgerkit.tracing.tree.outcomes import STATUS_NAMES, UNKNOWN

if TYPE_CHECKING:
    Columns = dict[str, list[Any]]
    ShardOf = Callable[[str], int | None]

SYSTEM = "system"  # the sender of refunds
LEVELS_BEFORE_REFUNDS = ("EXECUTED_OPTIMISTIC", "EXECUTED")  # all receipts but refunds have run


def receipt_columns(receipts: LinkedReceipts, shard_of: ShardOf | None = None) -> Columns:
    """Compute the columns of the receipts frame; `shard_of` is for results without shards."""
    columns: Columns = {}
    for source, rows in (
        (receipts.outcomes.columns, receipts.outcome_at),
        (receipts.bodies.columns, receipts.body_at),
    ):
        for name, values in source.items():
            columns[name] = list(map(values.__getitem__, rows))
    ids, parents = receipts.ids, receipts.parents
    kinds = _kinds(receipts, columns["predecessor_id"], columns["tokens_burnt"])
    for position in _lacking_outcomes(receipts, kinds):
        columns["status"][position] = STATUS_NAMES[UNKNOWN]
    if shard_of is not None:
        _fill_shards(columns["shard_id"], receipts.outcome_at, columns["receiver_id"], shard_of)
    on_critical_path = [False] * len(ids)
    for position in _critical_path(receipts):
        on_critical_path[position] = True
    starts = [receipts.starts[tree] for tree in receipts.trees]
    return columns | {
        "receipt_id": ids,
        "parent_id": [None if parent < 0 else ids[parent] for parent in parents],
        "depth": graph.depths(parents),
        "order": [position - start for position, start in enumerate(starts)],
        "kind": kinds,
        "is_local": receipts.is_local,
        "waits_for": _waits_for(receipts),
        "subtree_gas": graph.subtree_sums(parents, [gas or 0 for gas in columns["gas_burnt"]]),
        "on_critical_path": on_critical_path,
    }


def edge_columns(
    ids: Sequence[str], parents: Sequence[int], data: Sequence[tuple[int, int, str]]
) -> Columns:
    """Compute the columns of the edges frame: by child, its creation before its data edges."""
    created = [(parent, child, None) for child, parent in enumerate(parents) if parent >= 0]
    edges = sorted([*created, *data], key=itemgetter(1))
    return {
        "parent_id": [ids[parent] for parent, _, _ in edges],
        "child_id": [ids[child] for _, child, _ in edges],
        "kind": ["creation" if data_id is None else "data" for _, _, data_id in edges],
        "data_id": [data_id for _, _, data_id in edges],
    }


def _fill_shards(
    shards: list[int | None],
    outcome_at: Sequence[int],
    receivers: Sequence[str | None],
    shard_of: ShardOf,
) -> None:
    for position, receiver_id in enumerate(receivers):
        if shards[position] is None and outcome_at[position] >= 0 and receiver_id is not None:
            shards[position] = shard_of(receiver_id)


def _kinds(
    receipts: LinkedReceipts,
    predecessors: Sequence[str | None],
    tokens_burnt: Sequence[int | None],
) -> list[str | None]:
    kinds: list[str | None] = []
    for position, predecessor_id in enumerate(predecessors):
        is_refund = predecessor_id == SYSTEM
        if predecessor_id is None:
            if receipts.outcome_at[position] < 0:
                kinds.append(None)
                continue
            result = receipts.results[receipts.trees[position]]
            is_refund = is_refund_by_cost(result, tokens_burnt[position])
        kinds.append("refund" if is_refund else "action")
    return kinds


def _lacking_outcomes(receipts: LinkedReceipts, kinds: Sequence[str | None]) -> list[int]:
    """List the receipts without an outcome that have run according to their transaction."""
    lacking = []
    for position, outcome_row in enumerate(receipts.outcome_at):
        if outcome_row >= 0:
            continue
        tree = receipts.trees[position]
        result, is_first = receipts.results[tree], position == receipts.starts[tree]
        level = result.final_execution_status
        has_run = level == "FINAL" or (
            level in LEVELS_BEFORE_REFUNDS and kinds[position] == "action"
        )
        if is_first and isinstance(result.status, Status):  # its result comes from the first
            has_run |= receipts.ids[position] in result.created_ids()
        if has_run:
            lacking.append(position)
    return lacking


def _waits_for(receipts: LinkedReceipts) -> list[list[str]]:
    waits_for: list[list[str]] = [EMPTY_LIST] * len(receipts.ids)
    for producer, consumer in dict.fromkeys((edge[0], edge[1]) for edge in receipts.data):
        if waits_for[consumer] is EMPTY_LIST:
            waits_for[consumer] = []
        waits_for[consumer].append(receipts.ids[producer])
    return waits_for


def _critical_path(receipts: LinkedReceipts) -> list[int]:
    last = {
        tree: position
        for position, tree in enumerate(receipts.trees)
        if receipts.outcome_at[position] >= 0
    }
    data = [(producer, consumer) for producer, consumer, _ in receipts.data]
    return graph.latest_chains(last.values(), receipts.parents, data)
