"""Transactions of documents: their rules, and the order of their rows, which is a node's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from ledgerkit.api.models.block_documents import decode_document
from ledgerkit.api.models.protocol_rules import Rules
from ledgerkit.block_data.transaction_assembly import TransactionAssembly
from ledgerkit.block_data.tree_tables import trace_included, tree_tables
from ledgerkit.errors import DecodeError

if TYPE_CHECKING:
    from ledgerkit.api.models.block_documents import BlockDocument

EVENT = {"standard": "nep141", "event": "ft_mint"}


RULES = Rules(86, (3, 10), (), (0,), 1, 1, 1)


def header(height: int) -> dict[str, Any]:
    texts = dict.fromkeys(("prev_hash", "epoch_id", "gas_price", "total_supply"), "1")
    return {"height": height, "hash": f"block{height}", "chunks_included": 1, **texts}


def outcome(id_: str, *created: str) -> dict[str, Any]:
    """Build the outcome of an execution, and the receipts that it created."""
    members = {"receipt_ids": list(created), "status": {"SuccessValue": ""}, "logs": []}
    cost = {"gas_burnt": 0, "tokens_burnt": "0", "executor_id": "b.near"}
    return {"id": id_, "outcome": members | cost}


def ran(receipt_id: str, *created: str, tx_hash: str | None = None) -> dict[str, Any]:
    parties = {"predecessor_id": "a.near", "receiver_id": "b.near"}
    receipt = {"receipt_id": receipt_id, **parties, "receipt": {}}
    execution = outcome(receipt_id, *created)
    return {"execution_outcome": execution, "receipt": receipt, "tx_hash": tx_hash}


def included(tx_hash: str, *created: str) -> dict[str, Any]:
    names = ("signer_id", "receiver_id", "public_key")
    transaction = {"hash": tx_hash, "nonce": 1, "actions": [], **dict.fromkeys(names, "a.near")}
    return {
        "transaction": transaction,
        "outcome": {"execution_outcome": outcome(tx_hash, *created), "receipt": None},
    }


def document(
    height: int, transactions: list[dict[str, Any]], *receipts: dict[str, Any]
) -> dict[str, Any]:
    numbers = dict.fromkeys(("shard_id", "height_created", "gas_used", "gas_limit"), 0)
    chunk_header = {"chunk_hash": "c", "height_included": height, "balance_burnt": "0", **numbers}
    chunk = {"author": "v", "header": chunk_header, "transactions": transactions, "receipts": []}
    executed = {"receipt_execution_outcomes": list(receipts), "state_changes": []}
    shard = {"shard_id": 0, "chunk": chunk, **executed}
    return {"block": {"author": "v", "header": header(height)}, "shards": [shard]}


def decode(written: dict[str, Any]) -> BlockDocument:
    return decode_document(json.dumps(written).encode(), "a test")


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
        assembly.add(decode(written))
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


def test_rules_are_those_of_all_blocks_in_which_receipts_ran() -> None:
    """Without receipts, or with different rules at its blocks, a transaction has none."""
    assembly = TransactionAssembly()
    transactions = [included("t", "r", "s"), included("u", "v"), included("w"), included("x", "y")]
    blocks = [
        (document(7, transactions, ran("r"), ran("y", "z")), RULES),
        (document(8, [], ran("s"), ran("z")), Rules(86, (3, 10), (), (0,), 1, 1, 1)),
        (document(9, [], ran("v", "v2")), RULES),
        (document(10, [], ran("v2", "v3")), Rules(87, (3, 10), (), (0,), 1, 1, 1)),
        (document(11, [], ran("v3")), RULES),
    ]
    for written, rules in blocks:
        assembly.add(decode(written), rules)
    taken = {item.transaction.hash: item.rules for item in assembly.take(7)}
    assert taken == {"t": RULES, "u": None, "w": None, "x": RULES}


def test_a_receipt_runs_once() -> None:
    """Two blocks that execute one receipt are refused with the place in the second one."""
    assembly = TransactionAssembly()
    assembly.add(decode(document(7, [included("t", "r", "s")], ran("r"))))
    with pytest.raises(DecodeError, match="receipt r was executed before") as caught:
        assembly.add(decode(document(8, [], ran("r"))))
    assert caught.value.path == "$.shards[0].receipt_execution_outcomes[0]"
