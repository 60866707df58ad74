"""`collect_blocks` by block documents and by RPC: the same tables; and their inner sums."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import ledgerkit as lk
from tests.collected_blocks import assert_same, collect, ends, read_rows, yielding_world
from tests.document_rows import own_tables, plain_rows
from tests.unit.localnet.chaos import Chaos
from tests.unit.localnet.full_world import FullWorld
from tests.world_hosts import documents_of

if TYPE_CHECKING:
    from pathlib import Path

    from ledgerkit.localnet import World

SHARED = ("blocks", "chunks", "transactions", "receipts", "events", "transfers")
TABLES = (*SHARED, "subjects", "errors")


# Random worlds -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def settled() -> dict[int, World]:
    """Return worlds with failures, refunds, deletions and gaps, in which everything ended."""
    return {seed: FullWorld(seed).run(120) for seed in (3, 8)}


@pytest.mark.parametrize("seed", [3, 8])
def test_settled_worlds_are_the_same_by_both_sources(
    settled: dict[int, World], seed: int, tmp_path: Path
) -> None:
    """Common tables and errors are equal, row by row; others are as the documents' JSON."""
    world = settled[seed]
    ledger = lk.connect(world=world, make_default=False)
    heights = ends(world)
    by_rpc = collect(*heights, tmp_path / "rpc", ledger, views=SHARED, source="rpc")
    documents = collect(*heights, tmp_path / "documents", ledger, source="documents")
    assert_same(by_rpc, documents, TABLES)
    assert_same(documents, collect(*heights, tmp_path / "node", ledger, source="indexer_rpc"))
    assert len(read_rows(documents, "receipts")) > 200
    assert len(read_rows(documents, "events"))
    assert len(read_rows(documents, "transfers")) > 200
    plain = [own_tables(json.loads(each)) for each in documents_of(world).values()]
    for view in ("outcomes", "actions", "balances", "data_receipts"):
        expected = [row for tables in plain for row in tables[view]]
        assert plain_rows(documents.pandas(view)[list(expected[0])]) == expected


def test_the_middle_of_a_chain_is_the_same_from_a_node(
    settled: dict[int, World], tmp_path: Path
) -> None:
    """Receipts of transactions before the range have these transactions, too."""
    world = settled[3]
    first, stop = ends(world)
    ledger = lk.connect(world=world, make_default=False)
    views = ("outcomes", "actions", "balances")
    runs = [
        collect(first + 6, stop - 4, tmp_path / source, ledger, views=views, source=source)
        for source in ("documents", "indexer_rpc")
    ]
    assert_same(*runs)
    assert read_rows(runs[1], "outcomes")["tx_hash"].notna().all()


def test_gaps_in_the_chain_are_the_same_by_both_sources(tmp_path: Path) -> None:
    """Skipped heights are proven by both; a missing chunk is a row that is not new."""
    chaos = Chaos(11)
    for _ in range(6):
        chaos.block()
    world: World = chaos.world
    world.advance(1, skip=3)
    world.advance(1, missing=[world.settings.shard_ids[0]])
    for _ in range(10):
        world.advance(1, skip=1)
    world.settle()
    ledger = lk.connect(world=world, make_default=False)
    heights = ends(world)
    runs = [
        collect(*heights, tmp_path / source, ledger, views=SHARED, source=source)
        for source in ("rpc", "documents")
    ]
    assert_same(runs[0], runs[1], TABLES)
    assert runs[1].counts["skipped"] >= 13
    assert not read_rows(runs[1], "chunks")["is_new"].all()


def test_waiting_heights_are_the_same_by_both_sources(tmp_path: Path) -> None:
    """A receipt waits for data that did not come yet: its rows so far, and the height's error."""
    world, waiting = yielding_world(200, 75)
    ledger = lk.connect(world=world, make_default=False)
    heights = ends(world)
    runs = []
    for source in ("rpc", "documents"):
        with pytest.warns(UserWarning, match="1 height with transactions that are not final yet"):
            runs.append(collect(*heights, tmp_path / source, ledger, views=SHARED, source=source))
    assert_same(runs[0], runs[1], TABLES)
    assert [run.counts["waiting"] for run in runs] == [1, 1]
    receipts = read_rows(runs[1], "receipts")
    of_transaction = receipts[receipts["tx_hash"] == waiting]
    assert of_transaction["status"].tolist().count("not_executed") == 1


def test_a_yielded_receipt_is_the_same_by_both_sources(tmp_path: Path) -> None:
    """A receipt that waited for data over 70 blocks, and then ran without it."""
    world, waiting = yielding_world(70, 75)
    ledger = lk.connect(world=world, make_default=False)
    heights = ends(world)
    runs = [
        collect(*heights, tmp_path / source, ledger, views=SHARED, source=source)
        for source in ("rpc", "documents")
    ]
    assert_same(runs[0], runs[1], TABLES)
    receipts = read_rows(runs[1], "receipts")
    of_transaction = receipts[receipts["tx_hash"] == waiting]
    assert (of_transaction["block_height"] - of_transaction["created_height"]).max() == 71
    assert (of_transaction["status"] != "not_executed").all()
