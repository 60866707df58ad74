"""The tables of block documents: equal to the frames of traces, and to the documents' members."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ledgerkit as lk
from ledgerkit.api.models.block_documents import decode_document
from ledgerkit.block_data import block_frames
from ledgerkit.block_data.block_tables import block_tables
from ledgerkit.block_data.contents import DocumentContents
from ledgerkit.block_data.reading import read_document
from ledgerkit.block_data.skipped_heights import Skipped
from ledgerkit.collecting.manifests import VIEWS, schema_name
from ledgerkit.errors import DecodeError
from ledgerkit.frames import arrow_tables, build
from ledgerkit.frames import chain as chain_frames
from ledgerkit.localnet.worlds import open_world
from ledgerkit.tracing import actions as trace_actions
from ledgerkit.tracing.tree import build_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from ledgerkit.api.models.block_documents import BlockDocument

BLOCKS = Path(__file__).resolve().parents[3].parent / "shared" / "wire" / "samples" / "blocks"
NAMES = [
    "borealis_mainnet_34834052",
    "borealis_mainnet_34834053",
    "borealis_mainnet_70834061_no_chunks",
    "borealis_testnet_120572296",
    "neardata_mainnet_151768255",
    "neardata_testnet_232952651",
]
OF_BLOCKS = [
    *("blocks", "chunks", "transactions"),
    *("outcomes", "actions", "balances", "data_receipts"),
]
EXECUTED = ("block_height", "tx_hash", "receipt_id")


def body_of(name: str) -> bytes:
    """Read a recorded document; skip where the recordings are not here."""
    if not BLOCKS.is_dir():
        pytest.skip("the recorded blocks are not here")
    return (BLOCKS / f"{name}.json").read_bytes()


def documents_of(source: str) -> list[BlockDocument]:
    """Read a recorded document, or those of the demo world."""
    if source != "demo":
        return [decode_document(body_of(source), "the document")]
    world = open_world("demo")
    with lk.connect(world=world, make_default=False) as ledger:
        heights = range(world.chain.genesis.height, world.chain.final.height + 1)
        documents = [read_document(ledger, height) for height in heights]
    return [document for document in documents if not isinstance(document, Skipped)]


@pytest.fixture(scope="module", params=["demo", *NAMES])
def documents(request: pytest.FixtureRequest) -> list[BlockDocument]:
    """The documents of one source."""
    return documents_of(request.param)


def table(view: str, documents: Sequence[BlockDocument]) -> Any:
    """Build one table of documents."""
    contents = [DocumentContents(document, [], 0) for document in documents]
    return block_tables([view], contents)[view]


def frame(view: str, documents: Sequence[BlockDocument]) -> pd.DataFrame:
    """Build the frame of one table of documents."""
    return arrow_tables.frame(schema_name(view), table(view, documents))


def rows(view: str, documents: Sequence[BlockDocument]) -> list[dict[str, Any]]:
    """List the rows of one table of documents."""
    listed: list[dict[str, Any]] = table(view, documents).to_pylist()
    return listed


@pytest.mark.parametrize("view", OF_BLOCKS)
def test_tables_have_their_schema(view: str, documents: list[BlockDocument]) -> None:
    """Each table has the fixed schema of its frame, with its metadata, also without rows."""
    for each in (documents, []):
        built = table(view, each)
        built.validate(full=True)
        assert built.schema.equals(arrow_tables.schema(schema_name(view)), check_metadata=True)


@pytest.mark.parametrize(
    ("view", "slow_frame"),
    [
        ("blocks", lambda document: chain_frames.blocks([document.block])),
        (
            "chunks",
            lambda document: chain_frames.chunks(
                chain_frames.chunk_rows(document.block, document.chunks())
            ),
        ),
        (
            "transactions",
            lambda document: chain_frames.transactions(
                [(document.block.header.height, chunk) for chunk in document.chunks()]
            ),
        ),
    ],
)
def test_blocks_are_as_single_frames(
    view: str,
    slow_frame: Callable[[BlockDocument], pd.DataFrame],
    documents: list[BlockDocument],
) -> None:
    """Blocks, chunks and transactions are those of the frames of each document."""
    expected = [arrow_tables.table(view, slow_frame(document)) for document in documents]
    assert rows(view, documents) == [row for part in expected for row in part.to_pylist()]


def executed(documents: Sequence[BlockDocument], view: str) -> pd.DataFrame:
    """Return the rows of executed receipts."""
    whole = frame(view, documents)
    return whole[whole["receipt_id"].notna()].reset_index(drop=True)


def test_outcomes_are_those_of_the_receipts_frame(documents: list[BlockDocument]) -> None:
    """Each executed receipt has the accounts, status, error, logs and costs of its frame."""
    outcomes = executed(documents, "outcomes")
    expected = [block_frames.receipts(document.shards, document) for document in documents]
    shared = sorted(set(outcomes.columns) & set(expected[0].columns))
    assert len(shared) == 15
    for column in shared:
        values = [value for part in expected for value in part[column].tolist()]
        assert plain(outcomes[column].tolist()) == plain(values), column


def plain(values: list[Any]) -> list[Any]:
    """List values, with None for what is missing."""
    return [None if str(value) in ("<NA>", "nan", "NaT") else value for value in values]


def test_actions_are_those_of_the_actions_frame(documents: list[BlockDocument]) -> None:
    """Each action has the values that the actions of a trace have."""
    expected = []
    for document in documents:
        for shard in document.shards:
            result = shard.result("$")
            tree = build_tree(result)
            ran = {pair.receipt.receipt_id for pair in shard.receipt_execution_outcomes}
            columns = trace_actions.action_columns(tree, trace_actions.actions_by_receipt(tree))
            columns = trace_actions.with_receipts(columns, tree.columns)
            values = arrow_tables.table("actions", build.build_frame("actions", columns))
            expected += [row for row in values.to_pylist() if row["receipt_id"] in ran]
    for row in expected:
        del row["order"]
    actual = rows("actions", documents)
    for row in actual:
        del row["tx_hash"], row["args_base64"]
    key = ("receipt_id", "action_index", "inner_index")

    def by_key(row: dict[str, Any]) -> list[str]:
        return [str(row[name]) for name in key]

    assert sorted(actual, key=by_key) == sorted(expected, key=by_key)


@pytest.mark.parametrize("name", NAMES)
def test_outcomes_have_the_members_of_documents(name: str) -> None:
    """Ids, results and gas profiles are those of the document, in its order."""
    document = json.loads(body_of(name))
    expected = []
    for shard in document["shards"]:
        chunk = shard["chunk"] or {"transactions": []}
        expected += [(i["transaction"]["hash"], None, i["outcome"]) for i in chunk["transactions"]]
        pairs = shard["receipt_execution_outcomes"]
        expected += [(p.get("tx_hash"), p["receipt"]["receipt_id"], p) for p in pairs]
    actual = rows("outcomes", documents_of(name))
    assert [(row["tx_hash"], row["receipt_id"]) for row in actual] == [e[:2] for e in expected]
    for row, (_, _, pair) in zip(actual, expected, strict=True):
        outcome = pair["execution_outcome"]["outcome"]
        assert row["success_value"] == outcome["status"].get("SuccessValue")
        assert row["success_receipt_id"] == outcome["status"].get("SuccessReceiptId")
        failure = outcome["status"].get("Failure")
        assert (row["failure"] and json.loads(row["failure"])) == failure
        assert row["receipt_ids"] == outcome["receipt_ids"]
        assert row["executor_id"] == outcome["executor_id"]
        profile = outcome["metadata"]["gas_profile"]
        if profile is None:
            assert (row["wasm_gas"], row["host_gas"], row["action_gas"]) == (None, None, None)
            continue
        totals = {"wasm_gas": 0, "host_gas": 0, "action_gas": 0}
        for cost in profile:
            is_wasm = cost["cost"] == "WASM_INSTRUCTION"
            is_action = cost["cost_category"] == "ACTION_COST"
            total = "wasm_gas" if is_wasm else "action_gas" if is_action else "host_gas"
            totals[total] += int(cost["gas_used"])
        assert {total: row[total] for total in totals} == totals


@pytest.mark.parametrize("name", NAMES)
def test_arguments_can_be_read_as_they_were_sent(name: str) -> None:
    """The arguments of a call are the text of `args`, or `args_base64` if they differ from it."""
    document = json.loads(body_of(name))
    calls = {
        (pair["receipt"]["receipt_id"], index): action["FunctionCall"]["args"]
        for shard in document["shards"]
        for pair in shard["receipt_execution_outcomes"]
        for index, action in enumerate(pair["receipt"]["receipt"]["Action"]["actions"])
        if "FunctionCall" in action
    }
    sent = {
        (row["receipt_id"], row["action_index"]): row["args_base64"]
        or base64.b64encode(row["args"].encode()).decode()
        for row in rows("actions", documents_of(name))
        if row["action"] == "FunctionCall" and row["inner_index"] is None
    }
    assert sent == calls


@pytest.mark.parametrize("name", NAMES)
def test_balances_are_the_changes_of_accounts(name: str) -> None:
    """Each change of an account is one row, with what caused it."""
    document = json.loads(body_of(name))
    transactions = {
        pair["receipt"]["receipt_id"]: pair.get("tx_hash")
        for shard in document["shards"]
        for pair in shard["receipt_execution_outcomes"]
    }
    expected = [
        (
            document["block"]["header"]["height"],
            shard["shard_id"],
            item["change"]["account_id"],
            item["type"],
            int(item["change"].get("amount", 0)),
            int(item["change"].get("locked", 0)),
            item["change"].get("storage_usage", 0),
            item["cause"]["type"],
            item["cause"].get("tx_hash") or transactions[item["cause"]["receipt_hash"]],
            item["cause"].get("receipt_hash"),
        )
        for shard in document["shards"]
        for item in shard["state_changes"]
        if item["type"].startswith("account_")
    ]
    actual = [tuple(row.values()) for row in rows("balances", documents_of(name))]
    assert actual == expected


@pytest.mark.parametrize("name", NAMES)
def test_data_receipts_are_those_of_chunks(name: str) -> None:
    """Each data receipt of a chunk is one row."""
    document = json.loads(body_of(name))
    expected = [
        (
            document["block"]["header"]["height"],
            shard["shard_id"],
            receipt["receipt_id"],
            data["data_id"],
            receipt["predecessor_id"],
            receipt["receiver_id"],
            data["data"],
            data.get("is_promise_resume"),
        )
        for shard in document["shards"]
        for receipt in (shard["chunk"] or {"receipts": []})["receipts"]
        if (data := receipt["receipt"].get("Data"))
    ]
    actual = [tuple(row.values()) for row in rows("data_receipts", documents_of(name))]
    assert actual == expected


def test_a_busy_block() -> None:
    """Block 151,768,255 of mainnet: rows of each table, and sums of what was burnt."""
    [document] = documents_of("neardata_mainnet_151768255")
    counts = {view: len(rows(view, [document])) for view in OF_BLOCKS}
    assert counts == {
        "blocks": 1,
        "chunks": 8,
        "transactions": 58,
        "outcomes": 371,
        "actions": 379,
        "balances": 482,
        "data_receipts": 16,
    }


def changed(change: Callable[[Any], object]) -> list[BlockDocument]:
    """Return the busy document with a change."""
    document = json.loads(body_of("neardata_mainnet_151768255"))
    change(document)
    return [decode_document(json.dumps(document).encode(), "the document")]


def outcome_of(document: Any) -> Any:
    """Return the outcome of the first executed receipt of a document."""
    return document["shards"][0]["receipt_execution_outcomes"][0]["execution_outcome"]["outcome"]


def profile_of(document: Any) -> Any:
    """Return the first entry of the first gas profile of a document that has one."""
    pairs = document["shards"][0]["receipt_execution_outcomes"]
    profiles = [p["execution_outcome"]["outcome"]["metadata"]["gas_profile"] for p in pairs]
    return next(profile for profile in profiles if profile)[0]


def update_of(document: Any) -> Any:
    """Return the first update of an account in a document."""
    changes = document["shards"][0]["state_changes"]
    return next(item["change"] for item in changes if item["type"] == "account_update")


REFUSED: list[tuple[str, Callable[[Any], object], str]] = [
    ("outcomes", lambda d: outcome_of(d).update(tokens_burnt="-1"), "tokens_burnt"),
    ("outcomes", lambda d: outcome_of(d).update(tokens_burnt="1e9"), "tokens_burnt .1e9"),
    ("outcomes", lambda d: outcome_of(d).update(tokens_burnt=""), "tokens_burnt ''"),
    ("outcomes", lambda d: outcome_of(d).update(tokens_burnt="1" + "0" * 38), "above the supply"),
    ("outcomes", lambda d: outcome_of(d).update(gas_burnt=2**64), "gas_burnt 18446744073709551616"),
    ("outcomes", lambda d: profile_of(d).update(gas_used="1.0"), "not a text of digits"),
    ("outcomes", lambda d: profile_of(d).update(gas_used=1), "expected str instance"),
    ("outcomes", lambda d: profile_of(d).update(gas_used=str(2**64)), "does not fit uint64"),
    ("outcomes", lambda d: profile_of(d).update(cost_category="DISK"), "cost_category 'DISK'"),
    ("balances", lambda d: update_of(d).update(amount="1" + "0" * 38), "above the supply"),
    ("balances", lambda d: update_of(d).update(amount="+1"), "amount"),
    ("balances", lambda d: update_of(d).update(locked=None), "lacks a balance"),
    ("balances", lambda d: update_of(d).update(storage_usage=2**63), "storage_usage"),
    ("chunks", lambda d: d["shards"].pop(), "no shard has it"),
    ("transactions", lambda d: d["shards"].pop(), "no shard has it"),
]


@pytest.mark.parametrize(("view", "change", "problem"), REFUSED)
def test_values_that_fit_no_column_are_refused(
    view: str, change: Callable[[Any], object], problem: str
) -> None:
    """A number that is none, or above its column, is an error that names it."""
    with pytest.raises(DecodeError, match=problem) as caught:
        table(view, changed(change))
    assert caught.value.path


def test_every_view_of_blocks_has_a_test() -> None:
    """The tables of blocks alone and those of trees are all views of a collection."""
    assert {*OF_BLOCKS, "receipts", "events", "transfers"} == set(VIEWS["blocks"])
