"""From rows in causal order to the columns of the receipts and edges frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ledgerkit.amounts import exact
from ledgerkit.tree import graph
from ledgerkit.tree.rows import costs_nothing
from ledgerkit.tree.tables import NOT_EXECUTED, NOTHING, WORDS

if TYPE_CHECKING:
    from ledgerkit.tree.rows import Rows
    from ledgerkit.u128.array import U128Array
    from ledgerkit.wire.transactions import TxResult

    Columns = dict[str, Any]

SYSTEM = "system"
_STATUS = np.array(WORDS, dtype=object)
_KIND = np.array(["action", "refund", None], dtype=object)


def receipt_columns(rows: Rows, result: TxResult) -> Columns:
    """
    Compute the columns of the receipts frame.

    Parameters
    ----------
    rows
        The receipts in causal order.
    result
        The result they come from.

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
    parents = rows.parents.tolist()
    gas_burnt = outcomes.gas_burnt.take(ran)
    tokens_burnt = outcomes.tokens_burnt.take(ran)
    predecessors = bodies.predecessor_id.take(asked)
    waits_for, critical = _waiting(rows, parents)
    return {
        "receipt_id": rows.ids.copy(),
        "parent_id": _parent_ids(rows),
        "depth": np.array(graph.depths(parents), dtype=np.int64),
        "order": np.arange(len(parents)),
        "kind": _kinds(rows, result, predecessors, tokens_burnt),
        "is_local": np.arange(len(parents)) == rows.local,
        "predecessor_id": predecessors,
        "receiver_id": bodies.receiver_id.take(asked),
        "signer_id": bodies.signer_id.take(asked),
        "shard_id": outcomes.shard_id.take(ran),
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
        "subtree_gas": exact(graph.subtree_sums(parents, gas_burnt.filled(0).tolist())),
        "on_critical_path": critical,
    }


def edge_columns(ids: np.ndarray, parents: np.ndarray, data: list[tuple[int, int, str]]) -> Columns:
    """
    Compute the columns of the edges frame.

    Parameters
    ----------
    ids
        The receipts in causal order.
    parents
        The position of each one's creator; -1 for none.
    data
        Positions of producers and consumers, and the data_id.

    Returns
    -------
    columns
        One sequence a column: for each receipt the edge from its creator, then those from
        the producers of its data.
    """
    created = [
        (parent, child, None) for child, parent in enumerate(parents.tolist()) if parent >= 0
    ]
    edges = sorted([*created, *data], key=lambda edge: edge[1])
    return {
        "parent_id": ids[[parent for parent, _, _ in edges]] if edges else [],
        "child_id": ids[[child for _, child, _ in edges]] if edges else [],
        "kind": ["creation" if data_id is None else "data" for _, _, data_id in edges],
        "data_id": [data_id for _, _, data_id in edges],
    }


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


def _waiting(rows: Rows, parents: list[int]) -> tuple[list[list[str]], np.ndarray]:
    """List whom each receipt waits for, and mark the chain that ends in the last to run."""
    producers: dict[int, list[int]] = {}
    for producer, consumer, _ in rows.data:
        known = producers.setdefault(consumer, [])
        if producer not in known:
            known.append(producer)
    waits_for: list[list[str]] = [NOTHING] * len(parents)
    for consumer, positions in producers.items():
        waits_for[consumer] = [rows.ids[position] for position in positions]
    critical = np.zeros(len(parents), dtype=bool)
    ran = [-1, *np.flatnonzero(rows.outcome_at >= 0)[-1:].tolist()]
    critical[graph.latest_chain(ran[-1], parents, producers)] = True
    return waits_for, critical
