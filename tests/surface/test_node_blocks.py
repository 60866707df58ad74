"""Whole blocks from a node: the same rows as by block documents, and what a node cannot send."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from near_jsonrpc_models import RpcIndexerBlockResponse

import ledgerkit as lk
from ledgerkit.errors import (
    DecodeError,
    NotFoundError,
    RpcMethodNotFoundError,
    UnavailableShardError,
)
from tests import loopback
from tests.collected_blocks import assert_same, collect
from tests.surface import test_recorded_blocks as recordings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.loopback import Reply, Server

    Documents = dict[int, Any]

METHOD = "EXPERIMENTAL_indexer_block"
pytestmark = recordings.pytestmark


class Node:
    """
    A node that serves recorded blocks as nearcore does: without the transactions of receipts.

    `fault` is called with the result for a block, and returns the response in its place.
    """

    # Source: nearcore, chain/jsonrpc (pull request 16407) and chain/indexer-primitives.

    def __init__(self, documents: Documents, fault: Callable[[Any], Reply | None]) -> None:
        self._by_height = documents
        self._by_hash = {each["block"]["header"]["hash"]: each for each in documents.values()}
        self._fault = fault
        self._origins = {
            each["receipt"]["receipt_id"]: each["tx_hash"]
            for document in documents.values()
            for shard in document["shards"]
            for each in shard["receipt_execution_outcomes"]
            if each.get("tx_hash")
        }
        self._slots = threading.Semaphore(1)  # indexer_max_concurrent_requests

    def __call__(self, _method: str, _path: str, _headers: object, body: bytes) -> Reply:
        call = json.loads(body)
        params = call["params"]
        if call["method"] == "block":
            height = params.get("block_id", max(self._by_height))
            document = self._by_height.get(height, self._by_hash.get(height))
            return loopback.result(document["block"]) if document else unknown_block()
        if call["method"] == METHOD:
            return self._block(**params)
        if call["method"] == "EXPERIMENTAL_receipt_to_tx" and params["receipt_id"] in self._origins:
            tx_hash = self._origins[params["receipt_id"]]
            return loopback.result({"transaction_hash": tx_hash, "sender_account_id": "any.near"})
        return loopback.failure("METHOD_NOT_FOUND", code=-32601)

    def _block(self, block_hash: str) -> Reply:
        if not self._slots.acquire(blocking=False):
            return loopback.failure("BUSY")
        try:
            document = json.loads(json.dumps(self._by_hash[block_hash]))
            for shard in document["shards"]:
                for executed in shard["receipt_execution_outcomes"]:
                    executed.pop("tx_hash", None)
            tracked = [chunk["shard_id"] for chunk in document["block"]["chunks"]]
            result = document | {"tracked_shards": tracked}
            return self._fault(result) or loopback.result(result)
        finally:
            self._slots.release()


def unknown_block() -> Reply:
    """Build the response for a height without a block."""
    return loopback.failure("UNKNOWN_BLOCK", status=422)


@contextmanager
def node(
    documents: Documents, fault: Callable[[Any], Reply | None] = lambda _: None, attempts: int = 1
) -> Iterator[tuple[Server, lk.Ledger]]:
    """Serve the blocks of a recording, and connect."""
    retries = lk.RetryPolicy(attempts=attempts, total_s=20.0)
    with loopback.serve(Node(documents, fault)) as server:
        options: Any = {"rpc_url": server.url, "retries": retries, "make_default": False}
        with lk.connect("lab", **options) as ledger:
            yield server, ledger


def empty_chain(n_blocks: int = recordings.FEW) -> Documents:
    """Return a chain of blocks in which nothing happens, around a recorded one."""
    return recordings.with_neighbours(recordings.recorded("mainnet"), n_blocks)


@pytest.mark.parametrize("name", ["mainnet", "testnet"])
def test_recorded_blocks_are_the_same_by_both_sources(name: str, tmp_path: Path) -> None:
    """Every table of a busy block is equal, with the transaction of each receipt."""
    documents = recordings.recorded(name)
    start, stop = recordings.range_of(documents)
    by_documents = recordings.collect(documents, tmp_path / "documents")
    with (
        node(recordings.with_neighbours(documents, recordings.FEW)) as (server, ledger),
        recordings.warning() if recordings.waits(documents) else nullcontext(),
    ):
        by_node = collect(start, stop, tmp_path / "node", ledger, source="indexer_rpc")
    assert_same(by_documents, by_node)
    assert by_node.pandas("outcomes")["tx_hash"].notna().all()
    assert METHOD in {call["method"] for call in server.calls}


def test_one_block_is_requested_at_a_time(tmp_path: Path) -> None:
    """A node puts one block together at a time: no request meets another."""
    _, first = recordings.range_of(recordings.recorded("mainnet"))
    with node(empty_chain(recordings.MANY)) as (_, ledger):
        run = collect(first, first + 20, tmp_path / "node", ledger, source="indexer_rpc")
    assert run.counts == {"ok": 20}


def test_a_busy_node_is_asked_again(tmp_path: Path) -> None:
    """A refusal because of other clients passes."""
    refused: set[str] = set()

    def fault(result: Any) -> Reply | None:
        block_hash = result["block"]["header"]["hash"]
        if block_hash in refused:
            return None
        refused.add(block_hash)
        return loopback.failure("BUSY")

    documents = empty_chain()
    _, stop = recordings.range_of(recordings.recorded("mainnet"))
    with node(documents, fault, attempts=2) as (_, ledger):
        run = collect(stop, stop + 1, tmp_path / "node", ledger, source="indexer_rpc")
    assert run.counts == {"ok": 1}


def without_shards(*missing: int) -> Callable[[Any], Reply | None]:
    """Return the fault of a node that does not track some shards, and so has nothing of them."""

    def fault(result: Any) -> Reply | None:
        for shard in result["shards"]:
            if shard["shard_id"] in missing:
                shard |= {"chunk": None, "receipt_execution_outcomes": [], "state_changes": []}
        tracked = [each for each in result["tracked_shards"] if each not in missing]
        return loopback.result(result | {"tracked_shards": tracked})

    return fault


def test_a_node_without_all_shards_is_refused(tmp_path: Path) -> None:
    """A block of which a node lacks shards is never passed off as a whole one."""
    documents = recordings.recorded("mainnet")
    [height] = documents
    chain = recordings.with_neighbours(documents, recordings.FEW)
    shard_ids = [chunk["shard_id"] for chunk in documents[height]["block"]["chunks"]]
    with node(chain, without_shards(*shard_ids[1:3])) as (_, ledger):
        with pytest.raises(UnavailableShardError) as raised:
            lk.trace_block(height, source="indexer_rpc", ledger=ledger)
        first, second = shard_ids[1:3]
        assert f"does not track shard {first}, {second} of block {height}" in str(raised.value)
        assert "tracked_shards_config" in raised.value.remedy
        with pytest.warns(UserWarning, match="1 height could not be read"):
            run = collect(height, height + 1, tmp_path / "run", ledger, source="indexer_rpc")
    assert run.errors()["error"].tolist() == ["UnavailableShardError"]


def test_a_collection_of_a_node_without_shards_does_not_begin(tmp_path: Path) -> None:
    """If the last final block lacks shards, nothing is read."""
    documents = recordings.recorded("mainnet")
    [height] = documents
    with node(documents, without_shards(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)) as (server, ledger):
        with pytest.raises(UnavailableShardError):
            collect(height, height + 1, tmp_path / "run", ledger, source="indexer_rpc")
        with pytest.raises(UnavailableShardError):
            lk.follow(source="indexer_rpc", ledger=ledger)
    assert len(server.calls) == 4


@pytest.mark.parametrize(
    ("response", "error", "words"),
    [
        (
            loopback.failure("METHOD_NOT_FOUND", code=-32601),
            RpcMethodNotFoundError,
            "enable_indexer_rpc",
        ),
        (
            loopback.failure("UNSUPPORTED", {"error_message": "save_tx_outcomes must be enabled"}),
            lk.LedgerError,
            "save_tx_outcomes must be enabled",
        ),
        (
            loopback.failure("DATA_UNAVAILABLE", {"error_message": "outcome index"}),
            NotFoundError,
            "outcome index",
        ),
        (
            loopback.failure("INCOMPLETE_DATA", {"error_message": "missing receipt"}),
            NotFoundError,
            "missing receipt",
        ),
        (loopback.failure("LIMIT_EXCEEDED"), lk.LedgerError, 'source="rpc"'),
        (loopback.result(None), DecodeError, "is not as documented"),
        (
            loopback.result(recordings.recorded("mainnet")[recordings.MAINNET])
            if recordings.SAMPLES.exists()
            else loopback.result(None),
            DecodeError,
            "tracked_shards",
        ),
    ],
)
def test_each_refusal_says_what_to_do(
    response: Reply, error: type[lk.LedgerError], words: str, tmp_path: Path
) -> None:
    """A node that does not serve a block says so before anything is collected."""
    documents = recordings.recorded("mainnet")
    height = recordings.MAINNET
    with node(documents, lambda _: response) as (_, ledger), pytest.raises(error) as raised:
        collect(height, height + 1, tmp_path / "run", ledger, source="indexer_rpc")
    assert words in f"{raised.value} {raised.value.remedy}"


def test_the_block_of_another_hash_is_refused() -> None:
    """A response about another block is no answer."""
    chain = empty_chain()
    first, *_ = chain.values()

    def fault(result: Any) -> Reply | None:
        return loopback.result(result | {"block": first["block"], "shards": []})

    with (
        node(chain, fault) as (_, ledger),
        pytest.raises(lk.LedgerError, match="belongs to another request"),
    ):
        lk.trace_block(recordings.MAINNET, source="indexer_rpc", ledger=ledger)


def test_the_embedded_ledger_serves_the_documented_form() -> None:
    """The published model of the method accepts the answer, and another member is refused."""
    with lk.connect("local", make_default=False) as ledger:
        header: Mapping[str, Any] = ledger.rpc("block", {"block_id": 180000034})["header"]
        params = {"block_hash": header["hash"]}
        answer = ledger.rpc(METHOD, params)
        model = RpcIndexerBlockResponse.model_validate(answer)
        assert [shard.shard_id.root for shard in model.shards] == answer["tracked_shards"]
        assert len(answer["tracked_shards"]) == 9
        with pytest.raises(lk.LedgerError, match="unknown field `finality`"):
            ledger.rpc(METHOD, {**params, "finality": "final"})
        with pytest.raises(NotFoundError):
            ledger.rpc(METHOD, {"block_hash": "1" * 32})
