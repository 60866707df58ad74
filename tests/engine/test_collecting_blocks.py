"""`collect_blocks`: a range of heights to Parquet; each complete in all tables, or in none."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import ledgerkit as lk
from ledgerkit.cli import main
from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.worlds import open_world
from tests.collected_blocks import assert_same, collect, ends, heights_of, read_rows
from tests.local_transport import LocalTransport, responding
from tests.loopback import Reply, Server, as_json, failure, result, serve
from tests.unit.localnet.ledger import Ledger, do

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ledgerkit.localnet.world import World

    Script = Callable[[dict[str, Any]], Reply | None]

TABLES = ("blocks", "chunks", "transactions", "receipts", "events", "subjects", "errors")
VIEWS = TABLES[:5]
COUNTED = ["author", "n_transactions", "n_receipts"]
UNTYPED: Any = lk  # as whoever calls it without a type checker


@pytest.fixture
def empty() -> World:
    """Return a world in which nothing happens; from its first on, heights 15 to 17 are skipped."""
    world = open_world("empty")
    world.advance(14 - (world.chain.head.height - world.chain.genesis.height))
    world.advance(13, skip=3)
    world.advance(3)
    return world


def quiet(_: dict[str, Any]) -> None:
    """Disturb nothing."""


def respond(way: LocalTransport, body: bytes) -> Reply:
    """Answer as the world does."""
    return responding(way)("POST", "/", {"content-type": "application/json"}, body)


@contextmanager
def lab(world: World, script: Script = quiet, **options: Any) -> Iterator[tuple[Server, lk.Ledger]]:
    """Serve a world, but for what the script answers, and connect; a failure is final at once."""
    way = LocalTransport(world)

    def handler(_method: str, _path: str, _headers: object, body: bytes) -> Reply:
        return script(json.loads(body)) or respond(way, body)

    options = {"retries": lk.RetryPolicy(attempts=1, total_s=20.0), "in_flight": 16, **options}
    with serve(handler) as server, lk.connect("lab", rpc_url=server.url, **options) as ledger:
        yield server, ledger
    lk.disconnect()


def stacked(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Put frames one below the other."""
    frame = pd.concat(frames, ignore_index=True)
    frame.attrs.clear()
    return frame


def test_the_dataset_holds_what_the_verbs_answer(busy: World, tmp_path: Path) -> None:
    """Each table equals the frames of the verbs, value by value, arguments and logs included."""
    first, stop = ends(busy)
    with lab(busy) as (_, ledger):
        found = collect(first, stop, tmp_path / "out", ledger)
        blocks = lk.blocks(first, stop, progress=False)
        headers = stacked([lk.chunks(height) for height in blocks["block_height"]])
        sent = stacked([lk.transactions(h, progress=False) for h in blocks["block_height"]])
        pairs = list(zip(sent["tx_hash"], sent["signer_id"], strict=True))
        traces = lk.traces(pairs, progress=False)
        receipts, events = traces.receipts, traces.events.drop(columns="time")
        new = [lk.chunks(chunk_id=one) for one in headers["chunk_hash"][headers["is_new"]]]
    for frame in (blocks, receipts, events):
        frame.attrs.clear()
    assert len(sent) > 100
    assert {"failure", "success_value"} <= set(receipts["status"])
    assert_frame_equal(read_rows(found, "blocks"), blocks)
    chunks = read_rows(found, "chunks")
    assert_frame_equal(chunks.drop(columns=COUNTED), headers.drop(columns=COUNTED))
    assert_frame_equal(
        chunks.loc[chunks["is_new"], COUNTED].reset_index(drop=True), stacked(new)[COUNTED]
    )
    assert chunks.loc[~chunks["is_new"], COUNTED].isna().all(axis=None)
    assert len(chunks) > chunks["is_new"].sum()
    assert_frame_equal(read_rows(found, "transactions"), sent)
    included = dict(zip(sent["tx_hash"], sent["block_height"], strict=True))
    for table, wanted in (("receipts", receipts), ("events", events)):
        rows = read_rows(found, table)
        assert rows.pop("tx_block_height").tolist() == [included[one] for one in rows["tx_hash"]]
        assert_frame_equal(rows.drop(columns="created_height", errors="ignore"), wanted)
    assert len(read_rows(found, "events"))


def test_every_height_is_a_row_of_subjects_or_was_skipped(busy: World, tmp_path: Path) -> None:
    """Heights with a block are subjects; those that the chain skipped are errors of that kind."""
    first, stop = ends(busy)
    with lab(busy) as (_, ledger):
        found = collect(first, stop, tmp_path / "out", ledger)
    there = heights_of(busy)
    gone = sorted(set(range(first, stop)) - set(there))
    assert found.pandas("subjects")["position"].tolist() == there
    errors = found.errors()
    assert errors["position"].tolist() == gone
    assert set(errors["kind"]) == {"skipped"}
    assert set(errors["error"]) == {"UnknownBlockError"}
    assert not errors["retryable"].any()
    assert found.counts == {"ok": len(there), "skipped": len(gone)}
    assert found.finished
    before = max(height for height in there if height < gone[0])
    assert errors["message"][0] == (
        f"the chain skipped height {gone[0]}: the previous block is {before}"
    )


def count_methods(server: Server) -> Counter[str]:
    return Counter(call["method"] for call in server.calls)


def test_only_what_the_views_need_is_asked(busy: World, tmp_path: Path) -> None:
    """One request a height, one a new chunk, one a transaction, one an epoch; none twice."""
    first, stop = ends(busy)
    with lab(busy) as (server, ledger):
        collect(first, stop, tmp_path / "blocks", ledger, views="blocks")
        assert count_methods(server) == {"block": stop - first + 1}  # and the final one
        server.requests.clear()
        found = collect(first, stop, tmp_path / "all", ledger)
        epochs = found.pandas("blocks")["epoch_id"].nunique()
        assert count_methods(server) == {
            "block": stop - first + 1,
            "chunk": found.pandas("chunks")["is_new"].sum(),
            "tx_status": 1,  # finds out that the host has the other name
            "EXPERIMENTAL_tx_status": len(found.pandas("transactions")),
            "EXPERIMENTAL_protocol_config": count_methods(server)["EXPERIMENTAL_protocol_config"],
        }
        assert count_methods(server)["EXPERIMENTAL_protocol_config"] <= epochs
        server.requests.clear()
        collect(first, stop, tmp_path / "all", ledger)
        assert count_methods(server) == {"block": 1}
    assert not (tmp_path / "blocks/chunks").exists()


@pytest.mark.parametrize("start", range(13, 20))
def test_a_gap_at_either_end_of_a_range_is_proven(empty: World, tmp_path: Path, start: int) -> None:
    """Whether a range begins before, in or behind a gap, and wherever it ends."""
    first = empty.chain.genesis.height
    skipped = {15, 16, 17}
    with lab(empty) as (_, ledger):
        for stop in range(start + 1, 21):
            out = tmp_path / f"{stop}"
            found = collect(first + start, first + stop, out, ledger, views="blocks", part_size=2)
            wanted = set(range(start, stop))
            there = {position - first for position in found.pandas("subjects")["position"]}
            assert there == wanted - skipped
            assert {p - first for p in found.errors()["position"]} == wanted & skipped
            assert set(found.counts) <= {"ok", "skipped"}


def without_heights(world: World) -> Script:
    """Answer as old nodes do, which do not tell the height of a block's parent."""
    way = LocalTransport(world)

    def script(request: dict[str, Any]) -> Reply | None:
        answer = json.loads(respond(way, json.dumps(request).encode()).body)
        if request["method"] != "block" or "result" not in answer:
            return None
        del answer["result"]["header"]["prev_height"]
        return as_json(answer)

    return script


def test_old_nodes_prove_a_gap_too(empty: World, tmp_path: Path) -> None:
    """The parent of the next block is asked for by its hash."""
    first = empty.chain.genesis.height
    with lab(empty, without_heights(empty)) as (_, ledger):
        found = collect(first + 16, first + 20, tmp_path / "out", ledger, views="blocks")
    assert found.counts == {"ok": 2, "skipped": 2}
    assert found.pandas("blocks")["prev_height"].isna().all()


def unknown(*heights: int) -> Script:
    """Know nothing of some heights."""

    def script(request: dict[str, Any]) -> Reply | None:
        is_one = request["method"] == "block" and request["params"].get("block_id") in heights
        return failure("UNKNOWN_BLOCK", status=422) if is_one else None

    return script


@pytest.mark.parametrize("views", ["blocks", VIEWS])
def test_a_block_that_is_not_told_is_a_failure(
    empty: World, tmp_path: Path, views: str | tuple[str, ...]
) -> None:
    """Beside a gap, too: only what lies above the next block's parent was skipped."""
    first = empty.chain.genesis.height
    lost = [first + 12, first + 14]
    with lab(empty, unknown(*lost)) as (_, ledger), pytest.warns(UserWarning, match="2 heights"):
        found = collect(first + 10, first + 20, tmp_path / "out", ledger, views=views)
    errors = found.errors().set_index("position")
    assert errors["kind"].to_dict() == {
        **dict.fromkeys(lost, "failed"),
        **dict.fromkeys(range(first + 15, first + 18), "skipped"),
    }
    assert "archival_rpc_url=" in errors["message"][lost[0]]
    assert found.pandas("blocks")["block_height"].tolist() == [
        first + n for n in (10, 11, 13, 18, 19)
    ]


def test_what_a_host_has_dropped_is_asked_of_the_archival_one(tmp_path: Path) -> None:
    """Without one these heights are failures, and a later run with one completes them."""
    worlds = []
    for archival in (False, True):
        made = Ledger("a.near", archival=archival, epoch_length=5, epochs_kept=3)
        made.world.advance(4, skip=2)
        made.world.advance(30)
        worlds.append(made.world)
    young, old = worlds
    first, stop = young.chain.genesis.height + 1, young.chain.final.height + 1
    kept = young.chain.earliest.height
    with lab(young) as (_, ledger), pytest.warns(UserWarning, match=f"{kept - first} heights"):
        found = collect(first, stop, tmp_path / "out", ledger)
    assert found.counts == {"failed": kept - first, "ok": stop - kept}
    assert found.errors()["message"].str.contains("archival_rpc_url=").all()
    with lab(old) as (server, _), lab(young, archival_rpc_url=server.url) as (_, ledger):
        found = collect(first, stop, tmp_path / "out", ledger, retry_failed=True)
        whole = collect(first, stop, tmp_path / "peace", ledger)
    assert found.counts == {"ok": stop - first - 2, "skipped": 2}
    assert_same(found, whole)


def test_a_wider_range_fills_what_is_missing(busy: World, tmp_path: Path) -> None:
    """Before, behind and between; what is stored is asked no more."""
    first, stop = ends(busy)
    with lab(busy) as (server, ledger):
        collect(first + 21, first + 24, tmp_path / "out", ledger)
        collect(first + 11, first + 14, tmp_path / "out", ledger)
        partial = collect(first + 13, first + 22, tmp_path / "out", ledger)
        assert partial.n_subjects == 13
        assert partial.finished
        server.requests.clear()
        found = collect(first, stop, tmp_path / "out", ledger)
        heights = {c["params"].get("block_id") for c in server.calls if c["method"] == "block"}
        whole = collect(first, stop, tmp_path / "peace", ledger)
    assert not heights & set(range(first + 11, first + 24))
    assert found.finished
    assert_same(found, whole)


def test_hashes_times_and_names_are_heights(busy: World, tmp_path: Path) -> None:
    """A time is the first block at or after it; without a stop all final blocks are read."""
    there = heights_of(busy)
    blocks = {block.height: block for block in busy.chain.blocks()}
    at = pd.Timestamp(blocks[there[8]].timestamp_ns + 1, tz="UTC")
    with lab(busy) as (_, ledger):
        found = collect(str(blocks[there[4]].hash), at, tmp_path / "out", ledger, views="blocks")
        assert found.pandas("blocks")["block_height"].tolist() == there[4:9]
        named = collect("genesis", "final", tmp_path / "named", ledger, views="blocks")
        whole = collect("genesis", None, tmp_path / "whole", ledger, views="blocks")
    assert named.pandas("blocks")["block_height"].tolist() == there[:-1]
    assert whole.pandas("blocks")["block_height"].tolist() == there


def test_a_height_that_lacks_a_part_is_in_no_table(busy: World, tmp_path: Path) -> None:
    """A block, a chunk or a transaction that is not told; retry_failed completes the height."""
    first, stop = ends(busy)
    with lab(busy) as (_, ledger):
        whole = collect(first, stop, tmp_path / "peace", ledger)
    sent = read_rows(whole, "transactions").drop_duplicates("block_height").iloc[3:6]
    chunks = read_rows(whole, "chunks")
    apart = ~chunks["block_height"].isin(sent["block_height"])
    fresh = chunks[chunks["is_new"] & apart]
    gone = whole.errors()["position"].iloc[0]
    ill: dict[str, str] = dict.fromkeys(sent["tx_hash"], "UNKNOWN_TRANSACTION")
    ill |= {fresh["chunk_hash"].iloc[20]: "UNKNOWN_CHUNK", str(gone): "INTERNAL_ERROR"}
    lost = {*sent["block_height"], fresh["block_height"].iloc[20], gone}

    def script(request: dict[str, Any]) -> Reply | None:
        named = (str(request["params"].get(name)) for name in ("tx_hash", "chunk_id", "block_id"))
        cause = next((ill[name] for name in named if name in ill), None)
        return failure(cause) if cause else None

    with lab(busy, script) as (_, ledger):
        with pytest.warns(UserWarning, match=f"{len(lost)} heights could not be read"):
            found = collect(first, stop, tmp_path / "out", ledger)
        errors = found.errors()
        errors = errors[errors["kind"] == "failed"].set_index("position")
        assert set(errors.index) == lost
        for tx_hash, height in zip(sent["tx_hash"], sent["block_height"], strict=True):
            assert tx_hash in errors["message"][height]
            assert errors["error"][height] == "UnknownTransactionError"
        for table in VIEWS:
            column = "tx_block_height" if table in ("receipts", "events") else "block_height"
            rows, every = read_rows(found, table), read_rows(whole, table)
            assert_frame_equal(rows, every[~every[column].isin(lost)].reset_index(drop=True))
        ill.clear()
        again = collect(first, stop, tmp_path / "out", ledger, retry_failed=True)
    assert again.counts == whole.counts
    assert_same(again, whole)


def waiting_world() -> World:
    """Return a world in which one call of a block waits for its data, and others do not."""
    made = Ledger("a.near", scripts=["s.near"], yield_timeout=20)
    made.send("a.near", "s.near", do(["log", "done"]))
    made.send("a.near", "s.near", do(["wait", "later", [["log", "late"]]], ["give", "later"]))
    made.world.advance(6)
    return made.world


def not_over(world: World, info: Any = None) -> Script:
    """Time out on transactions that are not final, whatever is waited for: no block passes."""
    way = LocalTransport(world)

    def script(request: dict[str, Any]) -> Reply | None:
        if request["method"] != "EXPERIMENTAL_tx_status":
            return None
        waits = request["params"]["wait_until"] == "FINAL"
        request["params"]["wait_until"] = "NONE"
        reply = respond(way, json.dumps(request).encode())
        is_final = b'"final_execution_status":"FINAL"' in reply.body
        return reply if is_final or not waits else failure("TIMEOUT_ERROR", info, 408)

    return script


@pytest.mark.parametrize("retry_failed", [False, True])
def test_a_height_whose_receipts_wait_is_kept_and_completed(
    tmp_path: Path, *, retry_failed: bool
) -> None:
    """One call that waits for its data marks its block; the next run completes it."""
    world = waiting_world()
    first, stop = ends(world)
    options: dict[str, Any] = {"part_size": 100, "retry_failed": retry_failed}
    with lab(world, not_over(world)) as (_, ledger):
        with pytest.warns(UserWarning, match="1 height with transactions that are not final"):
            found = collect(first, stop, tmp_path / "out", ledger, **options)
        assert found.counts == {"ok": stop - first - 1, "waiting": 1}
        assert (found.n_subjects, found.finished) == (stop - first, True)
        assert found.pandas("blocks")["block_height"].tolist() == list(range(first, stop))
        assert found.pandas("subjects")["position"].tolist() == list(range(first, stop))
        [row] = found.errors().itertuples()
        sent = found.pandas("transactions")
        assert (row.kind, row.error, row.retryable) == ("waiting", "TransactionTimeoutError", True)
        assert row.position == sent["block_height"].iloc[1]
        assert f"transaction {sent['tx_hash'].iloc[1]} is not final yet" in row.message
        receipts = read_rows(found, "receipts")
        assert set(receipts["tx_hash"]) == set(sent["tx_hash"])
        assert "not_executed" in receipts["status"].tolist()
        assert ["done"] in receipts["logs"].tolist()
        with pytest.warns(UserWarning, match="1 height"):
            again = collect(first, stop, tmp_path / "out", ledger, **options)
        assert again.counts == found.counts
        assert_frame_equal(read_rows(again, "receipts"), receipts)
        assert again.errors()["position"].tolist() == [row.position]
    world.settle()
    with lab(world) as (server, ledger):
        plan = collect(first, stop, tmp_path / "out", ledger, dry_run=True)
        assert (plan.requests, plan.failed) == (1, 0)
        server.requests.clear()
        found = collect(first, stop, tmp_path / "out", ledger, **options)
        assert count_methods(server)["EXPERIMENTAL_tx_status"] == len(sent)
        whole = collect(first, stop, tmp_path / "peace", ledger, part_size=100)
    assert found.counts == {"ok": stop - first}
    assert ["late"] in found.pandas("receipts")["logs"].tolist()
    assert_same(found, whole)


def test_a_waiting_height_that_cannot_be_read_again_keeps_its_rows(tmp_path: Path) -> None:
    """A failure later on takes nothing away: the height goes on waiting."""
    world = waiting_world()
    first, stop = ends(world)
    with (
        lab(world, not_over(world)) as (_, ledger),
        pytest.warns(UserWarning, match="1 height with"),
    ):
        found = collect(first, stop, tmp_path / "out", ledger)
    [height] = found.errors()["position"]

    def script(request: dict[str, Any]) -> Reply | None:
        is_waiting = request["params"].get("block_id") == height
        return failure("INTERNAL_ERROR") if is_waiting else None

    with lab(world, script) as (_, ledger), pytest.warns(UserWarning, match="1 height"):
        again = collect(first, stop, tmp_path / "out", ledger, retry_failed=True)
    assert again.counts == found.counts
    assert_same(again, found)


def test_a_transaction_that_has_not_run_yet_leaves_its_height_waiting(
    busy: World, tmp_path: Path
) -> None:
    """Of a transaction in a chunk that was not executed, nodes send the level alone."""
    first, stop = ends(busy)
    with lab(busy) as (_, ledger):
        whole = collect(first, stop, tmp_path / "peace", ledger)
    tx_hash = read_rows(whole, "transactions")["tx_hash"].iloc[0]

    def script(request: dict[str, Any]) -> Reply | None:
        if request["params"].get("tx_hash") != tx_hash:
            return None
        is_patient = request["params"]["wait_until"] == "FINAL"
        level = {"final_execution_status": "INCLUDED"}
        return failure("TIMEOUT_ERROR", status=408) if is_patient else result(level)

    with lab(busy, script) as (_, ledger), pytest.warns(UserWarning, match="1 height"):
        found = collect(first, stop, tmp_path / "out", ledger)
    assert found.counts["waiting"] == 1
    assert_frame_equal(read_rows(found, "transactions"), read_rows(whole, "transactions"))
    receipts = read_rows(whole, "receipts")
    rest = receipts[receipts["tx_hash"] != tx_hash].reset_index(drop=True)
    assert_frame_equal(read_rows(found, "receipts"), rest)


def test_a_dry_run_writes_nothing(
    busy: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It tells what is known: a request a height, and that more depends on what is in them."""
    first, stop = ends(busy)
    with lab(busy, rate=1_000.0) as (server, ledger):
        collect(first, first + 12, tmp_path / "out", ledger)
        server.requests.clear()
        plan = collect(first + 2, stop, tmp_path / "out", ledger, dry_run=True, rate=2.0)
        assert count_methods(server) == {"block": 1}
        fresh = collect(first, stop, tmp_path / "new", ledger, dry_run=True, views="blocks")
    assert (plan.requests, plan.stored, plan.failed) == (stop - first - 12, 10, 0)
    assert plan.seconds == (stop - first - 12) / 2
    assert plan.request == (
        "block; one chunk for each new chunk of a block; one tx_status for each transaction"
    )
    assert (fresh.requests, fresh.request) == (stop - first, "block")
    assert plan.schemas["receipts"]["tx_block_height"] == "int64"
    assert f"would collect from lab to {tmp_path / 'out'}" in capsys.readouterr().out
    assert not (tmp_path / "new").exists()


def test_a_plan_has_the_limit_of_the_host_that_is_asked(busy: World, tmp_path: Path) -> None:
    """Blocks of a node of one's own are not limited by what the public REST API accepts."""
    first, stop = ends(busy)
    with lab(busy) as (server, _), lk.connect("mainnet", rpc_url=server.url) as ledger:
        plan = collect(first, stop, tmp_path / "out", ledger, dry_run=True)
        assert str(plan.limit) == "no rate limit"
        accounts = lk.collect(["a.near"], "ft", tmp_path / "ft", ledger=ledger, dry_run=True)
        assert str(accounts.limit) == "at most 50 requests a minute without an API key"


@pytest.mark.parametrize(
    ("ends", "options", "field"),
    [
        ((-1, 5), {}, "start"),
        (("soon", 5), {}, "start"),
        ((5, 1.5), {}, "stop"),
        ((True, 5), {}, "start"),
        ((5, 9), {"views": "accounts"}, "views"),
        ((5, 9), {"verify": "x"}, "verify"),
        ((5, 4), {}, "stop"),
    ],
)
def test_bad_arguments_are_named(
    empty: World, tmp_path: Path, ends: tuple[Any, Any], options: dict[str, Any], field: str
) -> None:
    """Before anything is asked or written."""
    with lab(empty) as (server, ledger), pytest.raises(InvalidRequestError) as refused:
        collect(*ends, tmp_path / "out", ledger, **options)
    assert refused.value.field == field
    assert not server.requests
    assert not (tmp_path / "out").exists()


def test_blocks_that_are_not_final_are_refused(empty: World, tmp_path: Path) -> None:
    """They may still be replaced; the last final one is named."""
    final = empty.chain.final.height
    with lab(empty) as (_, ledger):
        with pytest.raises(InvalidRequestError, match=f"the last final block is {final}"):
            collect(final - 3, final + 2, tmp_path / "out", ledger)
        assert not (tmp_path / "out").exists()
        found = collect(final - 3, final + 1, tmp_path / "out", ledger)
        assert found.pandas("blocks")["block_height"].tolist()[-1] == final
        assert collect(final, final, tmp_path / "none", ledger).n_subjects == 0


def test_a_folder_of_another_run_is_refused(empty: World, tmp_path: Path) -> None:
    """Accounts do not continue a run of blocks."""
    final = empty.chain.final.height
    with lab(empty) as (_, ledger):
        collect(final - 2, final, tmp_path / "out", ledger, views="blocks")
        with pytest.raises(
            InvalidRequestError, match="its kind is blocks, and this run's is accounts"
        ):
            lk.collect(["a.near"], "ft", tmp_path / "out", ledger=ledger)


def test_sql_and_python_agree(busy: World, tmp_path: Path) -> None:
    """DuckDB sees JSON texts and lists where pandas has values, and the same exact sums."""
    first, stop = ends(busy)
    with lab(busy) as (_, ledger):
        found = collect(first, stop, tmp_path / "out", ledger)
    receipts = found.pandas("receipts")
    sums = "SELECT sum(tokens_burnt), sum(len(logs)) FROM receipts"
    with found.duckdb() as db:
        [(burnt, logged)] = db.sql(sums).fetchall()
        names = db.sql("SELECT DISTINCT data->>'$[0].amount' FROM events").fetchall()
    assert int(burnt) == receipts["tokens_burnt"].sum()
    assert logged == sum(len(logs) for logs in receipts["logs"])
    amounts = {data[0].get("amount") for data in found.pandas("events")["data"]}
    assert {name for (name,) in names} == amounts


def test_a_table_without_accounts_names_the_missing_column(tmp_path: Path) -> None:
    """A table of blocks that has no column account_id cannot be read by account."""
    with lk.connect("local") as ledger:
        run = collect(180_000_004, 180_000_006, tmp_path / "out", ledger, source="documents")
    with pytest.raises(InvalidRequestError, match="table 'transfers' has no column account_id"):
        run.pandas("transfers", account_ids="alice.near")
    balances = run.pandas("balances", account_ids="dave.near")
    assert set(balances["account_id"]) == {"dave.near"}


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`collect-blocks` takes heights or times, and prints what is there then."""
    out = str(tmp_path / "out")
    command = ["collect-blocks", "180000000", "180000009", out, "--network", "local"]
    assert main([*command, "--views", "blocks,transactions", "--dry-run"]) == 0
    assert "1 x archive of ten blocks" in capsys.readouterr().out
    assert main([*command, "--views", "blocks,transactions", "--dry-run", "--source", "rpc"]) == 0
    assert "9 x block; one chunk" in capsys.readouterr().out
    assert main([*command, "--views", "blocks,transactions"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in printed if "blocks" in line] == [["blocks", "1", "9"]]
    assert main([*command[:2], "400000000", f"{out}2", *command[4:]]) == 2
    assert "the last final block is" in capsys.readouterr().err
