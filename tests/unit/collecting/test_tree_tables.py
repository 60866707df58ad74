"""Tables of transactions have the order of rows that a node's results give."""

from __future__ import annotations

import json
from typing import Any

from ledgerkit.api.models.block_documents import decode_document
from ledgerkit.block_data.transaction_assembly import TransactionAssembly
from ledgerkit.block_data.tree_tables import trace_included, tree_tables
from tests.unit.collecting.test_transaction_assembly import document, included, ran

EVENT = {"standard": "nep141", "event": "ft_mint"}


def with_data(
    executed: dict[str, Any], *, inputs: tuple[str, ...] = (), outputs: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Add the data that a receipt waited for, and the data that it produced."""
    receivers = [{"data_id": data_id, "receiver_id": "b.near"} for data_id in outputs]
    body = {"signer_id": "a.near", "actions": [], "input_data_ids": list(inputs)}
    executed["receipt"]["receipt"] = {"Action": {**body, "output_data_receivers": receivers}}
    return executed


def tables(*documents: dict[str, Any]) -> dict[str, Any]:
    """Return the tables of the transactions of the first of these blocks."""
    assembly = TransactionAssembly()
    for written in documents:
        assembly.add(decode_document(json.dumps(written).encode(), "a test"))
    height = documents[0]["block"]["header"]["height"]
    return tree_tables(("receipts", "transfers"), list(map(trace_included, assembly.take(height))))


def test_receipts_that_wait_for_one_result_are_sorted_as_a_node_lists_them() -> None:
    """Two receipts of one block come in the order of their creation, not of their execution."""
    # Source: nearcore, chain/chain/src/chain.rs, get_recursive_transaction_results: an outcome
    # is followed by those of the receipts that it created, in their order.
    receipts = tables(
        document(7, [included("t", "x")]),
        document(8, [], ran("x", "producer", "first", "second")),
        document(9, [], with_data(ran("producer"), outputs=("1", "2"))),
        document(
            10, [], with_data(ran("second"), inputs=("2",)), with_data(ran("first"), inputs=("1",))
        ),
    )["receipts"]
    assert receipts["receipt_id"].to_pylist() == ["x", "producer", "first", "second"]
    assert receipts["order"].to_pylist() == [0, 1, 2, 3]
    assert receipts["waits_for"].to_pylist() == [[], [], ["producer"], ["producer"]]
    assert receipts["created_height"].to_pylist() == [7, 8, 8, 8]
    assert receipts["on_critical_path"].to_pylist() == [True, True, False, True]


def test_tokens_of_any_amount_are_stored() -> None:
    """A contract may log any amount: one of more than 38 digits is stored as text."""
    largest = str(2**128 - 1)
    event = EVENT | {"data": [{"owner_id": "a.near", "amount": largest}]}
    executed = ran("r")
    executed["execution_outcome"]["outcome"]["logs"] = [f"EVENT_JSON:{json.dumps(event)}"]
    transfers = tables(document(7, [included("t", "r")], executed))["transfers"]
    [row] = [row for row in transfers.to_pylist() if row["kind"] == "token"]
    assert row["amount"] is None
    assert row["amount_text"] == largest
