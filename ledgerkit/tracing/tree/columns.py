"""From rows in causal order to the columns of the receipts and edges frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ledgerkit.frames.amounts import exact
from ledgerkit.tracing.tree import graph
from ledgerkit.tracing.tree.rows import costs_nothing
from ledgerkit.tracing.tree.tables import NOT_EXECUTED, NOTHING, WORDS
from ledgerkit.u128.array import U128Array

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.api.models.transactions import TxResult
    from ledgerkit.tracing.tree.rows import DataEdges, Rows

    Columns = dict[str, Any]
    ShardOf = Callable[[str], int | None]

SYSTEM = "system"
_STATUS = np.array(WORDS, dtype=object)
_KIND = np.array(["action", "refund", None], dtype=object)
_EDGE = np.array(["creation", "data"], dtype=object)


def receipt_columns(rows: Rows, result: TxResult, shard_of: ShardOf | None = None) -> Columns:
    """
    Compute the columns of the receipts frame.

    Parameters
    ----------
    rows
        The receipts in causal order.
    result
        The result they come from.
    shard_of
        Tells where an account lives, for results that do not tell it of receipts.

    Returns
    -------
    columns
        One sequence a column, in the frame's order.

    Raises
    ------
    DecodeError
        If an amount of the result is not one.
    """
    outcomes, bodies, ran, asked = rows.outcomes, rows.bodies, rows.outcome_at, rows.body_at
    depths = graph.depths(rows.parents)
    gas_burnt = outcomes.gas_burnt.take(ran)
    tokens_burnt = outcomes.tokens_burnt.take(ran)
    predecessors = bodies.predecessor_id.take(asked)
    receivers = bodies.receiver_id.take(asked)
    waits_for, critical = _waiting(rows)
    return {
        "receipt_id": rows.ids.copy(),
        "parent_id": _parent_ids(rows),
        "depth": depths,
        "order": np.arange(len(depths)),
        "kind": _kinds(rows, result, predecessors, tokens_burnt),
        "is_local": np.arange(len(depths)) == rows.local,
        "predecessor_id": predecessors,
        "receiver_id": receivers,
        "signer_id": bodies.signer_id.take(asked),
        "shard_id": _shards(outcomes.shard_id.take(ran), ran, receivers, shard_of),
        "block_hash": outcomes.block_hash.take(ran),
        "block_height": outcomes.height.take(ran),
        "time": outcomes.time.take(ran),
        "actions": bodies.actions.take(asked),
        "method_name": bodies.method_name.take(asked),
        "args": bodies.args.take(asked),
        "deposit": bodies.deposit.take(asked),
        "gas_attached": bodies.gas_attached.take(asked),
        "gas_burnt": gas_burnt,
        "tokens_burnt": tokens_burnt,
        **_endings(rows),
        "logs": outcomes.logs.take(ran),
        "input_data_ids": bodies.input_data_ids.take(asked),
        "output_data_receivers": bodies.output_data_receivers.take(asked),
        "waits_for": waits_for,
        "subtree_gas": _sums(graph.subtree_sums(rows.parents, gas_burnt.filled(0), depths)),
        "on_critical_path": critical,
    }


def edge_columns(ids: np.ndarray, parents: np.ndarray, data: DataEdges) -> Columns:
    """
    Compute the columns of the edges frame.

    Parameters
    ----------
    ids
        The receipts in causal order.
    parents
        The position of each one's creator; -1 for none.
    data
        Positions of producers and consumers, by consumer, and the data_ids.

    Returns
    -------
    columns
        One sequence a column: for each receipt the edge from its creator, then those from
        the producers of its data.
    """
    created = np.flatnonzero(parents >= 0)
    children = np.append(created, data.consumers)
    by_child = np.argsort(children, kind="stable")
    is_data = by_child >= len(created)
    data_ids = np.full(len(children), None, dtype=object)
    data_ids[is_data] = data.data_ids  # as they are by consumer, so are their places
    creators = np.append(parents[created], data.producers)
    return {
        "parent_id": ids[creators[by_child]],
        "child_id": ids[children[by_child]],
        "kind": _EDGE[is_data.astype(np.int8)],
        "data_id": data_ids,
    }


def _shards(
    told: np.ma.MaskedArray[Any, Any],
    ran: np.ndarray,
    receivers: np.ndarray,
    shard_of: ShardOf | None,
) -> np.ma.MaskedArray[Any, Any]:
    """Fill in where receipts ran: where their receivers live."""
    missing = np.ma.getmaskarray(told) & (ran >= 0)
    if shard_of is None or not missing.any():
        return told
    homes = {name: shard_of(name) for name in set(receivers[missing]) - {None}}
    for at in np.flatnonzero(missing).tolist():
        home = homes.get(receivers[at])
        if home is not None:
            told[at] = home
    return told


def _parent_ids(rows: Rows) -> np.ndarray:
    """Name each receipt's creator; there is none at position -1."""
    ids = np.full(len(rows.ids) + 1, None, dtype=object)
    ids[:-1] = rows.ids
    named: np.ndarray = ids[rows.parents]
    return named


def _kinds(
    rows: Rows, result: TxResult, predecessors: np.ndarray, tokens_burnt: U128Array
) -> np.ndarray:
    """Tell refunds from actions; what has neither body nor outcome may be either."""
    codes = (predecessors == SYSTEM).astype(np.int8)
    for position in np.flatnonzero(predecessors == None).tolist():  # noqa: E711 - one by one
        is_free = costs_nothing(result, tokens_burnt[position])
        codes[position] = 2 if rows.outcome_at[position] < 0 else is_free
    kinds: np.ndarray = _KIND[codes]
    return kinds


def _endings(rows: Rows) -> Columns:
    """Tell how each receipt ended, and why where it failed."""
    codes = np.array([*rows.outcomes.codes, NOT_EXECUTED], dtype=np.int8)
    kinds = np.full(len(codes), None, dtype=object)
    messages = kinds.copy()
    for at, (kind, message) in rows.outcomes.failures.items():
        kinds[at], messages[at] = kind, message
    ran = rows.outcome_at
    return {
        "status": _STATUS[codes[ran]],
        "error_kind": kinds[ran],
        "error_message": messages[ran],
    }


def _waiting(rows: Rows) -> tuple[list[list[str]], np.ndarray]:
    """List whom each receipt waits for, and mark the chain that ends in the last to run."""
    producers: dict[int, dict[int, None]] = {}  # the inner ones are ordered sets
    for producer, consumer, _ in rows.data:
        producers.setdefault(consumer, {})[producer] = None
    waits_for: list[list[str]] = [NOTHING] * len(rows.parents)
    for consumer, positions in producers.items():
        waits_for[consumer] = [rows.ids[position] for position in positions]
    critical = np.zeros(len(rows.parents), dtype=bool)
    ran = [-1, *np.flatnonzero(rows.outcome_at >= 0)[-1:].tolist()]
    critical[graph.latest_chain(ran[-1], rows.parents.tolist(), producers)] = True
    return waits_for, critical


def _sums(values: np.ndarray) -> U128Array:
    """Hold sums, which are Python integers only where some may exceed 64 bits."""
    if values.dtype == object:
        return exact(values.tolist(), name="subtree_gas")
    words = values.astype(np.uint64)
    return U128Array.of((np.zeros_like(words), words), np.zeros(len(words), dtype=np.bool_))
