"""`collect_blocks` from block documents: the rows of a node, however the service fails."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from pandas.testing import assert_frame_equal

import ledgerkit as lk
from ledgerkit.block_data import contents, reading
from ledgerkit.errors import (
    DecodeError,
    InvalidRequestError,
    TransportError,
    UnknownTransactionError,
)
from ledgerkit.localnet.worlds import open_world
from ledgerkit.protocol import FunctionCall
from tests.collected_blocks import assert_same, collect, ends, read_rows, yielding_world
from tests.document_host import DocumentHost, hosting, scattered
from tests.loopback import Reply
from tests.unit.localnet.ledger import Ledger as Small
from tests.world_hosts import documents_of, hosts

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from ledgerkit.localnet.world import World

COMMON = ("blocks", "chunks", "transactions", "receipts", "events", "transfers")
UNTYPED: Any = lk  # as whoever calls it without a type checker


@pytest.fixture(scope="module")
def documents(busy: World) -> dict[int, bytes]:
    return documents_of(busy)


def test_a_folder_can_be_continued_from_the_other_source(busy: World, tmp_path: Path) -> None:
    """With the same views: the rows are the same, and what is stored is not requested again."""
    ledger = lk.connect("local", world=busy)
    first, stop = ends(busy)
    middle, options = (first + stop) // 2, {"views": COMMON}
    collect(first, middle, tmp_path / "out", ledger, source="rpc", **options)
    mixed = collect(first, stop, tmp_path / "out", ledger, source="documents", **options)
    whole = collect(first, stop, tmp_path / "whole", ledger, source="documents", **options)
    assert_same(mixed, whole)
    with pytest.raises(InvalidRequestError, match="its views is"):
        collect(first, stop, tmp_path / "out", ledger)
    lk.disconnect()


@pytest.mark.parametrize("views", [None, "blocks"])
def test_an_interrupted_run_is_continued(tmp_path: Path, views: str | None) -> None:
    """A service that fails in the middle ends the run; the next call reads the other heights."""
    world = open_world("empty")
    world.advance(200, skip=2)
    documents = documents_of(world)
    first, stop = ends(world)
    is_down = True

    def fail_late(path: str, _earlier: int) -> Reply | None:
        start = path.rpartition("/")[2].removesuffix(".tgz")
        return Reply(503) if is_down and start.isdigit() and int(start) >= first + 100 else None

    host = DocumentHost(documents, final=stop - 1, fault=fail_late)
    options = {"part_size": 50, "views": views}
    with hosts(world, host, retries=lk.RetryPolicy(attempts=1), in_flight=1) as ledger:
        with pytest.raises(TransportError, match="run the same command again"):
            collect(first, stop, tmp_path / "out", ledger, **options)
        partial = lk.open_collection(tmp_path / "out")
        assert 90 < partial.n_subjects < 110
        assert "failed" not in partial.counts
        is_down = False
        again = collect(first, stop, tmp_path / "out", ledger, **options)
        whole = collect(first, stop, tmp_path / "whole", ledger, **options)
    assert again.finished
    assert_same(again, whole)


def test_faults_of_the_service_change_nothing(
    busy: World, documents: dict[int, bytes], tmp_path: Path
) -> None:
    """Errors, cut archives, missing archives and nulls of late blocks: the rows are the same."""
    first, stop = ends(busy)
    host = DocumentHost(
        documents,
        final=stop - 1,
        archived=first + 12,
        missing_archives=[(first + 10) // 10 * 10],
        late=list(documents)[5::7],
        fault=scattered(3, 0.4),
    )
    with hosts(busy, host) as ledger:
        disturbed = collect(first, stop, tmp_path / "out", ledger)
        expected = collect(first, stop, tmp_path / "rpc", ledger, source="rpc")
    assert_same(expected, disturbed, expected.tables)


def test_a_document_that_cannot_be_read_fails_the_heights_that_need_it(
    busy: World, documents: dict[int, bytes], tmp_path: Path
) -> None:
    """Its own height and those whose receipts it executed; retry_failed completes them."""
    first, stop = ends(busy)
    height = list(documents)[8]
    host = DocumentHost({**documents, height: b'{"block": 1}'}, final=stop - 1)
    with hosts(busy, host) as ledger:
        with pytest.warns(UserWarning, match="could not be read"):
            partial = collect(first, stop, tmp_path / "out", ledger)
        failed = partial.errors().query("kind == 'failed'")
        assert failed["position"].max() == height
        assert set(failed["error"]) == {"DecodeError"}
        kept = set(partial.pandas("transactions")["block_height"])
        assert kept.isdisjoint(failed["position"])
        assert len(failed) > 1
        host.documents = documents
        again = collect(first, stop, tmp_path / "out", ledger, retry_failed=True)
        whole = collect(first, stop, tmp_path / "whole", ledger)
    assert again.counts == whole.counts
    assert_same(again, whole)


def test_receipts_beyond_the_range_are_read(busy: World, tmp_path: Path) -> None:
    """Each range has the receipts that a range over all heights has of its transactions."""
    ledger = lk.connect("local", world=busy)
    first, stop = ends(busy)
    whole = collect(first, stop, tmp_path / "whole", ledger)
    for start in range(first, first + 12, 3):
        part = collect(start, start + 3, tmp_path / f"{start}", ledger)
        for table in ("receipts", "events", "transfers"):
            rows = read_rows(whole, table)
            is_inside = rows["tx_block_height"].between(start, start + 2)
            assert_frame_equal(read_rows(part, table), rows[is_inside].reset_index(drop=True))
    lk.disconnect()


@pytest.mark.parametrize("limit", [2**26, 1], ids=["held", "not held"])
def test_a_height_that_waits_is_completed_by_a_later_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """At the head of the chain nothing is waited for; the rows known so far are stored."""
    monkeypatch.setattr(contents, "_MAX_BYTES", limit)
    world, tx_hash = yielding_world()
    ledger = lk.connect("local", world=world)
    first, stop = ends(world)
    with pytest.warns(UserWarning, match="not final yet"):
        early = collect(first, stop, tmp_path / "out", ledger)
    [row] = early.errors().query("kind == 'waiting'").to_dict("records")
    assert row["message"].startswith(f"transaction {tx_hash} is not final yet")
    assert "not_executed" in set(early.pandas("receipts")["status"])
    world.advance(250)
    late = collect(first, stop, tmp_path / "out", ledger)
    assert "waiting" not in late.counts
    by_rpc = collect(first, stop, tmp_path / "rpc", ledger, source="rpc")
    assert_same(by_rpc, late, by_rpc.tables)
    lk.disconnect()


def test_heights_that_need_more_than_is_held_are_read_twice_in_one_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receipt is resumed 200 blocks later; few documents are held, and the rows are complete."""
    monkeypatch.setattr(contents, "_MAX_BYTES", 30_000)
    world, _ = yielding_world()
    world.advance(reading.LOOK_AHEAD + 20)
    ledger = lk.connect("local", world=world)
    first, _ = ends(world)
    collected = collect(first, first + 30, tmp_path / "out", ledger, part_size=10)
    by_rpc = collect(first, first + 30, tmp_path / "rpc", ledger, source="rpc", part_size=10)
    assert collected.counts == {"ok": 30}
    assert_same(by_rpc, collected, by_rpc.tables)
    generations = [commit.generation for commit in collected.files.commits]
    assert max(generations) == 1
    lk.disconnect()


def test_a_view_that_the_source_lacks_is_refused(busy: World, tmp_path: Path) -> None:
    """The error names the source; a network without documents cannot be that source."""
    ledger = lk.connect("local", world=busy)
    first, stop = ends(busy)
    with pytest.raises(InvalidRequestError, match="source='rpc'"):
        collect(first, stop, tmp_path / "out", ledger, views="balances", source="rpc")
    with pytest.raises(InvalidRequestError, match="source 'lake' is not valid"):
        collect(first, stop, tmp_path / "out", ledger, source="lake")
    with (
        lk.connect("lab", rpc_url="http://127.0.0.1:1") as other,
        pytest.raises(InvalidRequestError, match="pass blocks_url= to connect"),
    ):
        collect(first, stop, tmp_path / "out", other, source="documents")
    with pytest.raises(InvalidRequestError, match="it is for engine="):
        collect(first, stop, tmp_path / "out", ledger, workers=2, engine="other")
    with pytest.raises(InvalidRequestError, match="another process cannot use the embedded ledger"):
        collect(first, stop, tmp_path / "out", ledger, workers=2)
    assert not (tmp_path / "out").exists()
    lk.disconnect()


def test_a_dry_run_counts_the_requests_of_each_source(
    busy: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An archive has ten heights; what is stored already is not requested."""
    ledger = lk.connect("local", world=busy)
    first, stop = ends(busy)
    plan = collect(first, stop, tmp_path / "out", ledger, dry_run=True)
    assert plan.requests == -(-(stop - first) // 10)
    assert f"{plan.requests} x archive of ten blocks" in capsys.readouterr().out
    collect(first, first + 8, tmp_path / "out", ledger)
    plan = collect(first, stop, tmp_path / "out", ledger, dry_run=True)
    assert (plan.stored, plan.requests) == (8, -(-(stop - first - 8) // 10))
    assert collect(first, stop, tmp_path / "x", ledger, dry_run=True, source="rpc").requests == (
        stop - first
    )
    lk.disconnect()


# Traces -----------------------------------------------------------------------------------

FRAMES = ("receipts", "edges", "actions", "logs", "events", "transfers", "balance_changes", "gas")


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    frame = frame.copy()
    frame.attrs.clear()
    return frame


@pytest.fixture(scope="module")
def stored(busy: World, tmp_path_factory: pytest.TempPathFactory) -> lk.types.Collection:
    with lk.connect("local", world=busy, make_default=False) as ledger:
        collection: lk.types.Collection = collect(*ends(busy), tmp_path_factory.mktemp("x"), ledger)
    return collection


def test_stored_traces_are_those_of_the_services(busy: World, stored: lk.types.Collection) -> None:
    """Each frame of all transactions equals that of `traces`, from either service."""
    sent = stored.pandas("transactions")
    hashes = sent["tx_hash"].tolist()
    with lk.connect("local", world=busy, make_default=False) as ledger:
        traces = stored.traces(hashes, ledger=ledger)
        indexed = lk.traces(hashes, progress=False, ledger=ledger)
        pairs = list(zip(hashes, sent["signer_id"], strict=True))
        by_rpc = lk.traces(pairs, progress=False, ledger=ledger)
    assert list(traces) == hashes
    assert len(traces.receipts) > 300
    for name in FRAMES:
        assert_frame_equal(plain(getattr(traces, name)), plain(getattr(by_rpc, name)))
        assert_frame_equal(plain(getattr(traces, name)), plain(getattr(indexed, name)))
    for tx_hash in hashes:
        assert traces[tx_hash].notes == indexed[tx_hash].notes
        assert traces[tx_hash].explain() == indexed[tx_hash].explain()


def test_without_a_ledger_no_request_is_sent(stored: lk.types.Collection, tmp_path: Path) -> None:
    """Only the contracts' share of the gas is missing then; a trace can be saved and loaded."""
    tx_hash = stored.pandas("transactions")["tx_hash"][0]
    trace = stored.traces([tx_hash])[tx_hash]
    loaded = lk.Trace.load(trace.save(tmp_path / "trace.json"))
    assert_frame_equal(plain(loaded.receipts), plain(trace.receipts))
    assert trace.receipts["shard_id"].notna().all()


def test_a_trace_that_reaches_beyond_the_blocks_is_unfinished(
    busy: World, stored: lk.types.Collection, tmp_path: Path
) -> None:
    """Its later receipts have not run, as its notes say; its transaction is known."""
    receipts = stored.pandas("receipts")
    crossing = receipts[receipts["block_height"] > receipts["tx_block_height"] + 2].iloc[0]
    height, tx_hash = int(crossing["tx_block_height"]), crossing["tx_hash"]
    with lk.connect("local", world=busy, make_default=False) as ledger:
        part = collect(height, height + 2, tmp_path / "out", ledger)
        trace = part.traces([tx_hash], ledger=ledger)[tx_hash]
    executed = receipts.query("tx_hash == @tx_hash and block_height < @height + 2")
    frame = trace.receipts
    assert set(frame.loc[frame["status"] != "not_executed", "receipt_id"]) == set(
        executed["receipt_id"]
    )
    assert "not_executed" in set(frame["status"])
    assert any("no outcome and no body" in note for note in trace.notes)


def include_again(documents: dict[int, Any], height: int) -> None:
    """Include the transaction of a block in the next block too, with receipts of its own."""
    receipt_ids = set(re.findall(r'"receipt_id": "(\w+)"', json.dumps(documents)))
    for at in (height + 2, height + 1, height):
        own, later = documents[at], documents[at + 1]
        text = json.dumps(own["shards"])
        text = text.replace(own["block"]["header"]["hash"], later["block"]["header"]["hash"])
        for receipt_id in receipt_ids:
            text = text.replace(receipt_id, f"{receipt_id[:-2]}{receipt_id[-1]}{receipt_id[-2]}")
        for copy, shard in zip(json.loads(text), later["shards"], strict=True):
            shard["receipt_execution_outcomes"] += copy["receipt_execution_outcomes"]
            shard["chunk"]["transactions"] += copy["chunk"]["transactions"]


def test_a_transaction_that_two_blocks_include(tmp_path: Path) -> None:
    """Each block has its trace; a collection, whose traces go by hash, names both blocks."""
    # Source: near/docs, pull request 746, "Postmortem about hash collisions"
    world = open_world("demo")
    world.advance(6)
    documents = {at: json.loads(body) for at, body in documents_of(world).items()}
    height = 180000026
    include_again(documents, height)
    host = DocumentHost(
        {at: json.dumps(document).encode() for at, document in documents.items()},
        final=max(documents),
    )
    with hosting(host) as (ledger, _):
        for at in (height, height + 1):
            [trace] = lk.trace_block(at, source="documents", blocks=False, ledger=ledger).values()
            assert trace.receipts["block_height"].tolist() == [at + 1, at + 2]
        run = collect(height, height + 5, tmp_path / "out", ledger)
    assert run.pandas("transactions")["block_height"].tolist() == [height, height + 1]
    with pytest.raises(InvalidRequestError, match=f"in the blocks {height} and {height + 1}"):
        run.traces([trace.tx_hash])


def test_a_receipt_that_two_blocks_execute_has_no_trace(tmp_path: Path) -> None:
    """A collection of such documents has both outcomes, and none of them is chosen for a trace."""
    # Source: nearcore, runtime/runtime/src/lib.rs: a receipt is executed once.
    world = open_world("demo")
    world.advance(6)
    documents = {at: json.loads(body) for at, body in documents_of(world).items()}
    height = 180000026
    first, second = documents[height + 1], documents[height + 3]
    text = json.dumps(first["shards"])
    text = text.replace(first["block"]["header"]["hash"], second["block"]["header"]["hash"])
    for copy, shard in zip(json.loads(text), second["shards"], strict=True):
        shard["receipt_execution_outcomes"] += copy["receipt_execution_outcomes"]
    bodies = {at: json.dumps(document).encode() for at, document in documents.items()}
    views = ["blocks", "transactions", "outcomes", "actions"]
    with hosting(DocumentHost(bodies, final=max(documents))) as (ledger, _):
        run = collect(height, height + 5, tmp_path / "out", ledger, views=views)
    [tx_hash] = run.pandas("transactions")["tx_hash"]
    with pytest.raises(DecodeError, match="it has two outcomes of"):
        run.traces([tx_hash])[tx_hash].receipts  # noqa: B018 - a property that computes


def test_traces_of_what_is_not_stored_are_refused(
    busy: World, stored: lk.types.Collection, tmp_path: Path
) -> None:
    """An unknown hash, missing tables, another network, a text in place of a list."""
    unknown = "1" * 31 + "2"
    with pytest.raises(UnknownTransactionError, match="does not have transaction"):
        stored.traces([unknown])
    with pytest.raises(InvalidRequestError, match="several hashes"):
        stored.traces(unknown)
    first, _ = ends(busy)
    with lk.connect("local", world=busy, make_default=False) as ledger:
        few = collect(first, first + 2, tmp_path / "out", ledger, views=["blocks", "outcomes"])
    with pytest.raises(InvalidRequestError, match="the views transactions, actions"):
        few.traces([unknown])
    with (
        lk.connect("testnet", make_default=False) as other,
        pytest.raises(InvalidRequestError, match="a ledger of local"),
    ):
        stored.traces([unknown], ledger=other)


def test_documents_that_do_not_name_transactions_have_traces(
    busy: World, documents: dict[int, bytes], stored: lk.types.Collection, tmp_path: Path
) -> None:
    """Receipts without tx_hash belong to the transaction that created them."""

    def unnamed(body: bytes) -> bytes:
        whole = json.loads(body)
        for shard in whole["shards"]:
            for executed in shard["receipt_execution_outcomes"]:
                executed["tx_hash"] = None
        return json.dumps(whole).encode()

    first, stop = ends(busy)
    anonymous = {height: unnamed(body) for height, body in documents.items()}
    hashes = stored.pandas("transactions")["tx_hash"].tolist()
    with hosts(busy, DocumentHost(anonymous, final=stop - 1)) as ledger:
        collection = collect(first, stop, tmp_path / "out", ledger)
    assert collection.pandas("outcomes").query("receipt_id.notna()")["tx_hash"].isna().all()
    traces, expected = collection.traces(hashes), stored.traces(hashes)
    for name in FRAMES:
        assert_frame_equal(plain(getattr(traces, name)), plain(getattr(expected, name)))
    assert_same(collection, stored, COMMON)


def test_the_exact_bytes_of_arguments_are_stored(tmp_path: Path) -> None:
    """Spaces in JSON count for the gas of a call: `args_base64` has them, if there are any."""
    small = Small("a.near", scripts=["s.near"])
    texts = [b'{"a": 1}', b'{"a":1}', b"\xff\x00", b'{"bytes_base64":"AA=="}', b'{ "a":1e2 }']
    calls = [FunctionCall("log", text, 10**13, 0) for text in texts]
    hashes = [str(small.send("a.near", "s.near", call)) for call in calls]
    small.world.settle()
    ledger = lk.connect("local", world=small.world)
    collection = collect(*ends(small.world), tmp_path / "out", ledger)
    actions = collection.pandas("actions").query("method_name == 'log'")
    assert actions["args_base64"].notna().tolist() == [True, False, True, True, True]
    traces = collection.traces(hashes, ledger=ledger)
    expected = lk.traces(hashes, progress=False)
    assert_frame_equal(plain(traces.gas), plain(expected.gas))
    assert traces.gas["gas_in_calls"].notna().all()
    lk.disconnect()
