"""Transactions are put together from the blocks in which their receipts ran."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledgerkit import json_decoding
from ledgerkit.api.models.block_documents import BlockDocument
from ledgerkit.api.models.protocol_rules import Rules
from ledgerkit.block_data.transaction_assembly import TransactionAssembly
from ledgerkit.errors import DecodeError

BLOCKS = Path(__file__).resolve().parents[3].parent / "shared" / "wire" / "samples" / "blocks"
recorded = pytest.mark.skipif(not BLOCKS.is_dir(), reason="the recordings are not here")
DECODER = json_decoding.decoder(BlockDocument)
RULES = Rules(86, (3, 10), (), (0,), 1, 1, 1)


def header(height: int) -> dict[str, Any]:
    """Build the header of a block."""
    texts = dict.fromkeys(("prev_hash", "epoch_id", "gas_price", "total_supply"), "1")
    return {"height": height, "hash": f"block{height}", "chunks_included": 1, **texts}


def outcome(id_: str, *created: str) -> dict[str, Any]:
    """Build the outcome of an execution, and the receipts that it created."""
    members = {"receipt_ids": list(created), "status": {"SuccessValue": ""}, "logs": []}
    cost = {"gas_burnt": 0, "tokens_burnt": "0", "executor_id": "b.near"}
    return {"id": id_, "outcome": members | cost}


def ran(receipt_id: str, *created: str, tx_hash: str | None = None) -> dict[str, Any]:
    """Build a receipt that ran."""
    parties = {"predecessor_id": "a.near", "receiver_id": "b.near"}
    receipt = {"receipt_id": receipt_id, **parties, "receipt": {}}
    execution = outcome(receipt_id, *created)
    return {"execution_outcome": execution, "receipt": receipt, "tx_hash": tx_hash}


def included(tx_hash: str, *created: str) -> dict[str, Any]:
    """Build a transaction of a chunk."""
    names = ("signer_id", "receiver_id", "public_key")
    transaction = {"hash": tx_hash, "nonce": 1, "actions": [], **dict.fromkeys(names, "a.near")}
    return {
        "transaction": transaction,
        "outcome": {"execution_outcome": outcome(tx_hash, *created), "receipt": None},
    }


def document(
    height: int, transactions: list[dict[str, Any]], *receipts: dict[str, Any]
) -> dict[str, Any]:
    """Build the document of a block with one shard."""
    numbers = dict.fromkeys(("shard_id", "height_created", "gas_used", "gas_limit"), 0)
    chunk_header = {"chunk_hash": "c", "height_included": height, "balance_burnt": "0", **numbers}
    chunk = {"author": "v", "header": chunk_header, "transactions": transactions, "receipts": []}
    executed = {"receipt_execution_outcomes": list(receipts), "state_changes": []}
    shard = {"shard_id": 0, "chunk": chunk, **executed}
    return {"block": {"author": "v", "header": header(height)}, "shards": [shard]}


def block(
    height: int, transactions: list[dict[str, Any]], *receipts: dict[str, Any]
) -> BlockDocument:
    """Build the decoded document of a block with one shard."""
    decoded: BlockDocument = DECODER.decode(json.dumps(document(height, transactions, *receipts)))
    return decoded


def recording(name: str) -> BlockDocument:
    """Decode a recorded document."""
    document: BlockDocument = DECODER.decode((BLOCKS / f"{name}.json").read_bytes())
    return document


def ids(assembly: TransactionAssembly, height: int) -> dict[str, list[str]]:
    """Take a height; return the receipts of each transaction."""
    return {
        item.transaction.hash: [receipt.receipt.receipt_id for receipt in item.receipts]
        for item in assembly.take(height)
    }


def test_receipts_belong_to_the_transaction_that_led_to_them() -> None:
    """Receipts follow their creators through blocks, whether a document names their transaction."""
    assembly = TransactionAssembly()
    assembly.add(block(7, [included("t", "r"), included("u", "local")], ran("local", "x")))
    assert not assembly.is_complete(7)
    assembly.add(block(9, [], ran("r", "s", tx_hash="t"), ran("x")))
    assert not assembly.is_complete(7)
    assert assembly.is_complete(9)
    assembly.add(block(10, [], ran("s")))
    assert assembly.is_complete(7)
    assert ids(assembly, 7) == {"t": ["r", "s"], "u": ["local", "x"]}
    assert assembly.take(9) == assembly.take(10) == []


def test_receipts_of_earlier_transactions_are_ignored() -> None:
    """A transaction before the first block, or one that was taken, has no more receipts."""
    assembly = TransactionAssembly()
    assembly.add(block(7, [included("t", "r")], ran("old", "older", tx_hash="early")))
    assert ids(assembly, 7) == {"t": []}
    assembly.add(block(8, [], ran("r", "s", tx_hash="t"), ran("older")))
    assert assembly.is_complete(8)
    assembly.add(block(9, [included("u", "r")], ran("r")))  # nothing of it is in memory
    assert ids(assembly, 9) == {"u": ["r"]}


def test_rules_are_those_of_all_blocks_in_which_receipts_ran() -> None:
    """Without receipts, or with different rules at its blocks, a transaction has none."""
    assembly, other = TransactionAssembly(), Rules(87, (3, 10), (), (0,), 1, 1, 1)
    transactions = [included("t", "r", "s"), included("u", "v"), included("w"), included("x", "y")]
    assembly.add(block(7, transactions, ran("r"), ran("y", "z")), RULES)
    assembly.add(block(8, [], ran("s"), ran("z")), Rules(86, (3, 10), (), (0,), 1, 1, 1))
    assembly.add(block(9, [], ran("v", "v2")), RULES)
    assembly.add(block(10, [], ran("v2", "v3")), other)
    assembly.add(block(11, [], ran("v3")), RULES)
    taken = {item.transaction.hash: item.rules for item in assembly.take(7)}
    assert taken == {"t": RULES, "u": None, "w": None, "x": RULES}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (block(8, [], ran("r"), ran("r")), "receipt r was executed before"),
        (block(8, [included("u", "r")]), "receipt r was created before"),
        (block(8, [], ran("r", "s", "s")), "receipt s was created before"),
        (block(8, [], ran("r", tx_hash="u")), "receipt r was created by t, and not by u"),
    ],
)
def test_contradictions_are_refused(document: BlockDocument, message: str) -> None:
    """A receipt has one creator, one execution and one transaction."""
    assembly = TransactionAssembly()
    assembly.add(block(7, [included("t", "r")]))
    with pytest.raises(DecodeError, match=message) as caught:
        assembly.add(document)
    assert caught.value.path is not None
    assert caught.value.path.startswith("$.shards[0].")
    assert "t" in ids(assembly, 7)


@recorded
def test_recorded_receipts_are_followed_into_the_next_block() -> None:
    """The receipts of two transactions of mainnet ran in the next block, but not their refunds."""
    assembly = TransactionAssembly()
    assembly.add(recording("borealis_mainnet_34834052"))
    assembly.add(recording("borealis_mainnet_34834053"))
    assert not assembly.is_complete(34_834_052)
    assert not assembly.is_complete(34_834_053)
    assert ids(assembly, 34_834_052) == {
        "4pXUBfv1zy4q9SLy52x5FUfn9ZKf8DLs4SZeP9fajfHm": [
            "Ho1beLf8B4qLWn6YjNH6NHm6cZKd4jqD2Agrmhk8BBcM"
        ],
        "5ACKi5B5BduvoAWNxRWh1HCL7HKd6RCQpAbMEZWtZspt": [
            "GcFFzVqhdGdVbKjynXj4kJe6iC8ixfVZ4Cxc12KS3ycX"
        ],
    }
    # This one signed a call of itself: its first receipt is local.
    assert ids(assembly, 34_834_053) == {
        "uQ6hiGNnVW371JKwnLLQM4iMdBNE7xJqVjPGecbmL4D": [
            "EkdeeCvozyK5zXZSd3tk2VpakH4kiGfLHCBzfXZVAVvd"
        ]
    }


@recorded
def test_recorded_shards_are_followed_into_the_next_block() -> None:
    """Of four transactions of a recorded shard, only the receipt of one ran in its next block."""
    assembly = TransactionAssembly()
    for name in ("lake_000107503704", "lake_000107503705"):
        written = {
            "block": json.loads((BLOCKS / f"{name}_block.json").read_bytes()),
            "shards": [json.loads((BLOCKS / f"{name}_shard_2.json").read_bytes())],
        }
        assembly.add(DECODER.decode(json.dumps(written)))
    assert list(ids(assembly, 107_503_704).values()) == [
        ["CVFtNTk8PwvzokB3sGwuwjJ5Wy6Yc2GeL3KksKe68Bh7"],
        [],
        [],
        [],
    ]
