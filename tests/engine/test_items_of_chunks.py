"""An item of a chunk that is no signed transaction is a row for every reader of blocks."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import httpx
import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit.localnet.worlds import open_world
from tests.collected_blocks import collect, read_rows
from tests.document_host import DocumentHost, hosting
from tests.local_transport import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Source: near-jsonrpc-client 1.0.102, EccTransactionView.
CALL = {"contract_id": "c.near", "hash": "2" * 32, "payload": "AAAA"}
TABLES = ("blocks", "chunks", "transactions", "receipts", "events", "transfers")


class Node(LocalTransport):
    """A node of which one chunk has an external contract call."""

    def __init__(self, chunk_hash: str | None) -> None:
        super().__init__(open_world("demo"))
        self._chunk_hash = chunk_hash

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        sent = json.loads(request.read() or b"{}")
        if sent.get("method") != "chunk":
            return response
        document = json.loads(response.read())
        if document["result"]["header"]["chunk_hash"] == self._chunk_hash:
            document["result"]["transactions"].append(CALL)
        return httpx.Response(response.status_code, json=document)


@pytest.fixture(scope="module")
def blocks() -> dict[int, dict[str, Any]]:
    with lk.connect("local") as ledger:
        transactions = lk.account_transactions("alice.near", ledger=ledger)
        first = int(transactions["tx_block_height"].min())
        heights = range(first, first + 12)
        documents = [ledger.get(f"/v0/block/{height}", surface="blocks") for height in heights]
    return {d["block"]["header"]["height"]: d for d in documents if d is not None}


def chunks(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for shard in document["shards"]:
        if shard["chunk"] and shard["chunk"]["transactions"]:
            yield shard["chunk"]


def collected(
    folder: Path, blocks: dict[int, dict[str, Any]], chunk_hash: str | None, source: str
) -> lk.types.Collection:
    first, stop = min(blocks), min(blocks) + 4
    options: dict[str, Any] = {"views": TABLES, "source": source}
    if source == "rpc":
        node = Node(chunk_hash)
        with lk.connect("lab", rpc_url="http://node.test", transport=node) as ledger:
            return collect(first, stop, folder, ledger, **options)
    bodies = {height: json.dumps(document).encode() for height, document in blocks.items()}
    with hosting(DocumentHost(bodies, final=max(bodies))) as (ledger, _):
        return collect(first, stop, folder, ledger, **options)


@pytest.mark.parametrize("source", ["rpc", "documents"])
def test_an_external_contract_call_is_a_row_of_a_collection(
    tmp_path: Path, blocks: dict[int, dict[str, Any]], source: str
) -> None:
    """It is stored with its content, and every other row is as without it."""
    height = min(blocks)
    changed = copy.deepcopy(blocks)
    chunk = next(chunks(changed[height]))
    chunk["transactions"].append(CALL)
    chunk_hash = chunk["header"]["chunk_hash"]
    before = collected(tmp_path / "before", blocks, None, source)
    after = collected(tmp_path / "after", changed, chunk_hash, source)
    for table in TABLES:
        rows, expected = read_rows(after, table), read_rows(before, table)
        if table == "transactions":
            [item] = rows[rows["kind"] != "signed"].to_dict("records")
            assert (item["kind"], item["content"]) == ("external_contract_call", CALL)
            assert (item["block_height"], item["tx_hash"]) == (height, CALL["hash"])
            rows = rows[rows["kind"] == "signed"].reset_index(drop=True)
        if table == "chunks":
            is_own = rows["chunk_hash"] == chunk_hash
            assert (rows["n_transactions"] - expected["n_transactions"])[is_own].tolist() == [1]
            rows.loc[is_own, "n_transactions"] -= 1
        pd.testing.assert_frame_equal(rows, expected, obj=table)


def test_the_other_readers_of_blocks_go_on(blocks: dict[int, dict[str, Any]]) -> None:
    """Traces of a block, its transactions, its chunk, and the blocks that are followed."""
    height, blocks = min(blocks), copy.deepcopy(blocks)
    chunk = next(chunks(blocks[height]))
    chunk_hash, n_signed = chunk["header"]["chunk_hash"], len(chunk["transactions"])
    with lk.connect("lab", rpc_url="http://node.test", transport=Node(chunk_hash)) as ledger:
        assert lk.chunks(chunk_id=chunk_hash, ledger=ledger)["n_transactions"].tolist() == [
            n_signed + 1
        ]
        items = lk.transactions(height, progress=False, ledger=ledger)
        assert (items["kind"] == "external_contract_call").sum() == 1
        traces = lk.trace_block(height, progress=False, ledger=ledger)
        assert list(traces) == items.loc[items["kind"] == "signed", "tx_hash"].tolist()
        [note] = [note for note in traces.notes if "no signed transaction" in note]
        assert note.startswith(f"{CALL['hash']} is an item of a chunk")
    chunk["transactions"].append(CALL)
    bodies = {number: json.dumps(document).encode() for number, document in blocks.items()}
    with hosting(DocumentHost(bodies, final=max(bodies))) as (ledger, _):
        options: dict[str, Any] = {"progress": False, "ledger": ledger}
        by_documents = lk.trace_block(height, source="documents", **options)
        assert list(by_documents) == list(traces)
        assert note in by_documents.notes
        [frame] = lk.follow(height, "transactions", max_blocks=1, **options)
        assert frame["kind"].tolist() == items["kind"].tolist()


def test_a_stored_trace_of_a_receipt_of_an_unknown_kind(
    tmp_path: Path, blocks: dict[int, dict[str, Any]]
) -> None:
    """It is named as in a live trace; nobody says that its transaction has no actions."""
    height, blocks = min(blocks), copy.deepcopy(blocks)
    item = next(chunks(blocks[height]))["transactions"][0]
    tx_hash = item["transaction"]["hash"]
    [receipt_id] = item["outcome"]["execution_outcome"]["outcome"]["receipt_ids"]
    for document in blocks.values():
        for shard in document["shards"]:
            for executed in shard["receipt_execution_outcomes"]:
                receipt = executed["receipt"]
                if receipt["receipt_id"] == receipt_id:
                    receipt["receipt"] = {"ActionV9": receipt["receipt"]["Action"]}
    bodies = {number: json.dumps(document).encode() for number, document in blocks.items()}
    with hosting(DocumentHost(bodies, final=max(bodies))) as (ledger, _):
        run = collect(height, height + 4, tmp_path / "run", ledger, source="documents")
        live = lk.trace_block(height, source="documents", progress=False, ledger=ledger)[tx_hash]
    trace = run.traces([tx_hash])[tx_hash]
    assert trace.receipts["actions"][0] == "ActionV9"
    assert trace.receipts["actions"].equals(live.receipts["actions"])
    assert "the document does not contain its actions" in trace.explain()
    assert "what receipts of the kind ActionV9 did is not known" in str(trace.notes)
