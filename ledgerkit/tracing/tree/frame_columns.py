"""The columns of the receipts and edges frames, from linked receipts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ledgerkit.api.models.transactions import Status
from ledgerkit.frames.amounts import exact
from ledgerkit.tracing.tree import graph
from ledgerkit.tracing.tree.column_builders import EMPTY_LIST
from ledgerkit.tracing.tree.linking import is_free
from ledgerkit.tracing.tree.outcomes import NOT_EXECUTED, STATUS_NAMES, UNKNOWN
from ledgerkit.u128.array import U128Array

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.tracing.tree.linking import DataEdges, LinkedReceipts

    Columns = dict[str, Any]
    ShardOf = Callable[[str], int | None]

SYSTEM = "system"  # the sender of refunds
_STATUSES = np.array(STATUS_NAMES, dtype=object)
_EDGE_KINDS = np.array(["creation", "data"], dtype=object)
_RECEIPT_KINDS = np.array(["action", "refund", None], dtype=object)


def receipt_columns(receipts: LinkedReceipts, shard_of: ShardOf | None = None) -> Columns:
    """Compute the columns of the receipts frame; `shard_of` is for results without shards."""
    outcomes, bodies = receipts.outcomes, receipts.bodies
    outcome_at, body_at = receipts.outcome_at, receipts.body_at
    gas_burnt = outcomes.gas_burnt.take(outcome_at)
    tokens_burnt = outcomes.tokens_burnt.take(outcome_at)
    predecessors = bodies.predecessor_id.take(body_at)
    receivers = bodies.receiver_id.take(body_at)
    waits_for, on_critical_path = _waiting(receipts)
    shards = outcomes.shard_id.take(outcome_at)
    kinds = _kinds(receipts, predecessors, tokens_burnt)
    return {
        "receipt_id": receipts.ids.copy(),
        "parent_id": _parent_ids(receipts),
        "depth": receipts.depths,
        "order": np.arange(len(receipts.ids)) - receipts.starts[receipts.trees],
        "kind": kinds,
        "is_local": receipts.is_local,
        "predecessor_id": predecessors,
        "receiver_id": receivers,
        "signer_id": bodies.signer_id.take(body_at),
        "shard_id": _fill_shards(shards, outcome_at, receivers, shard_of),
        "block_hash": outcomes.block_hash.take(outcome_at),
        "block_height": outcomes.height.take(outcome_at),
        "time": outcomes.time.take(outcome_at),
        "actions": bodies.actions.take(body_at),
        "method_name": bodies.method_name.take(body_at),
        "args": bodies.args.take(body_at),
        "deposit": bodies.deposit.take(body_at),
        "gas_attached": bodies.gas_attached.take(body_at),
        "gas_burnt": gas_burnt,
        "tokens_burnt": tokens_burnt,
        **_status_columns(receipts, _not_given(receipts, kinds)),
        "logs": outcomes.logs.take(outcome_at),
        "input_data_ids": bodies.input_data_ids.take(body_at),
        "output_data_receivers": bodies.output_data_receivers.take(body_at),
        "waits_for": waits_for,
        "subtree_gas": _sums(graph.subtree_sums(receipts.parents, gas_burnt.filled(0))),
        "on_critical_path": on_critical_path,
    }


def edge_columns(ids: np.ndarray, parents: np.ndarray, data: DataEdges) -> Columns:
    """Compute the columns of the edges frame: by child, its creation before its data edges."""
    created = np.flatnonzero(parents >= 0)
    is_data = graph.merged_places(created, data.consumers)  # both are by child
    creators = graph.interleave(is_data, parents[created], data.producers)
    children = graph.interleave(is_data, created, data.consumers)
    data_ids = np.full(len(is_data), None, dtype=object)
    data_ids[is_data] = data.data_ids
    return {
        "parent_id": ids[creators],
        "child_id": ids[children],
        "kind": _EDGE_KINDS[is_data.astype(np.int8)],
        "data_id": data_ids,
    }


def _fill_shards(
    shards: np.ma.MaskedArray[Any, Any],
    outcome_at: np.ndarray,
    receivers: np.ndarray,
    shard_of: ShardOf | None,
) -> np.ma.MaskedArray[Any, Any]:
    """Fill in missing shards: a receipt runs on the shard of its receiver."""
    missing = np.ma.getmaskarray(shards) & (outcome_at >= 0)
    if shard_of is None or not missing.any():
        return shards
    shard_by_account = {name: shard_of(name) for name in set(receivers[missing]) - {None}}
    for at in np.flatnonzero(missing).tolist():
        shard_id = shard_by_account.get(receivers[at])
        if shard_id is not None:
            shards[at] = shard_id
    return shards


def _parent_ids(receipts: LinkedReceipts) -> np.ndarray:
    """Return the id of each receipt's creator; None at position -1."""
    parent_ids: np.ndarray = receipts.ids[receipts.parents]
    parent_ids[receipts.parents < 0] = None
    return parent_ids


def _kinds(
    receipts: LinkedReceipts, predecessors: np.ndarray, tokens_burnt: U128Array
) -> np.ndarray:
    """Return the kind of each receipt; None for one with neither body nor outcome."""
    codes = (predecessors == SYSTEM).astype(np.int8)
    transactions = receipts.results.transactions
    for at in np.flatnonzero(predecessors == None).tolist():  # noqa: E711 - an array compares each value
        refunded = is_free(transactions[receipts.trees[at]], tokens_burnt[at])
        codes[at] = 2 if receipts.outcome_at[at] < 0 else refunded
    kinds: np.ndarray = _RECEIPT_KINDS[codes]
    return kinds


def _not_given(receipts: LinkedReceipts, kinds: np.ndarray) -> np.ndarray:
    """Return whether each receipt has run by its transaction's status, but has no outcome."""
    has_run = np.zeros(len(kinds), dtype=bool)
    missing = receipts.outcome_at < 0
    for tree in set(receipts.trees[missing].tolist()):
        result, first = receipts.results.transactions[tree], int(receipts.starts[tree])
        rows = slice(first, int(receipts.starts[tree + 1]))
        level, own = result.final_execution_status, result.transaction_outcome
        if level == "FINAL":
            has_run[rows] = True
        elif level in ("EXECUTED_OPTIMISTIC", "EXECUTED"):  # only refunds may be missing
            has_run[rows] = kinds[rows] == _RECEIPT_KINDS[0]
        if isinstance(result.status, Status):  # the result comes from the first receipt
            has_run[first] |= own is not None and receipts.ids[first] in (
                own.outcome.receipt_ids or ()
            )
    return has_run & missing


def _status_columns(receipts: LinkedReceipts, not_given: np.ndarray) -> Columns:
    """Return the status of each receipt, and the error of those that failed."""
    codes = np.frombuffer(receipts.outcomes.codes + bytes([NOT_EXECUTED]), dtype=np.uint8)
    statuses = _STATUSES[codes[receipts.outcome_at]]
    statuses[not_given] = STATUS_NAMES[UNKNOWN]
    kinds = np.full(len(codes), None, dtype=object)
    messages = kinds.copy()
    for at, (kind, message) in receipts.outcomes.failures.items():
        kinds[at], messages[at] = kind, message
    at_receipts = receipts.outcome_at
    return {
        "status": statuses,
        "error_kind": kinds[at_receipts],
        "error_message": messages[at_receipts],
    }


def _waiting(receipts: LinkedReceipts) -> tuple[list[list[str]], np.ndarray]:
    """Return the producers that each receipt waits for, and whether it is on the critical path."""
    waits_for: list[list[str]] = [EMPTY_LIST] * len(receipts.parents)
    ends = receipts.data.consumers.tolist(), receipts.data.producers.tolist()
    for consumer, producer in dict.fromkeys(zip(*ends, strict=True)):
        if waits_for[consumer] is EMPTY_LIST:
            waits_for[consumer] = [receipts.ids[producer]]
        else:
            waits_for[consumer].append(receipts.ids[producer])
    critical = np.zeros(len(receipts.parents), dtype=bool)
    critical[_critical_path(receipts)] = True
    return waits_for, critical


def _critical_path(receipts: LinkedReceipts) -> list[int]:
    """Return the positions on the critical path of each tree: it ends in the last that ran."""
    executed = np.flatnonzero(receipts.outcome_at >= 0)
    trees = receipts.trees[executed]
    is_last = np.append(trees[1:] != trees[:-1], True)[: len(executed)]
    data = receipts.data.producers, receipts.data.consumers
    return graph.latest_chains(executed[is_last].tolist(), receipts.parents, data)


def _sums(values: np.ndarray) -> U128Array:
    """Convert sums to u128; they are Python integers only if one may exceed 64 bits."""
    if values.dtype == object:
        return exact(values.tolist(), name="subtree_gas")
    words = values.astype(np.uint64)
    return U128Array.of((np.zeros_like(words), words), np.zeros(len(words), dtype=np.bool_))
