"""`collect_blocks` by block documents and by RPC: the same tables; and their inner sums."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pandas.testing import assert_frame_equal

import ledgerkit as lk
from tests import loopback
from tests.document_host import DocumentHost, documents_of
from tests.document_rows import own_tables, plain_rows
from tests.recorded_chain import RecordedNode, chain_of
from tests.unit.localnet.chaos import Chaos
from tests.unit.localnet.full_world import FullWorld
from tests.unit.localnet.ledger import Ledger, do
from tests.world_timeline import near_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from ledgerkit.localnet import World
    from tests.loopback import Reply

SAMPLE = Path(__file__).parents[3] / "shared/wire/samples/blocks/neardata_mainnet_151768255.json"
SHARED = ("blocks", "chunks", "transactions", "receipts", "events", "transfers")
TABLES = (*SHARED, "subjects", "errors")
Key = tuple[str, int]  # account and height


def collect(ledger: lk.Ledger, heights: range, out: Path, **options: Any) -> lk.Collection:
    """Collect heights, quietly, in small parts."""
    options = {"part_size": 8, "progress": False, "ledger": ledger, **options}
    run: lk.Collection = lk.collect_blocks(heights.start, heights.stop, out=out, **options)
    return run


def rows(run: lk.Collection, table: str) -> pd.DataFrame:
    """Read a table without the times of reading and without provenance."""
    frame = run.pandas(table).drop(columns="fetched_at", errors="ignore")
    frame.attrs.clear()
    return frame


def assert_same(run: lk.Collection, other: lk.Collection) -> None:
    """Compare the tables that both sources have, row by row."""
    for table in TABLES:
        assert_frame_equal(rows(run, table), rows(other, table), obj=table)


def final_heights(world: World) -> range:
    """Return the heights of a world up to the last final block."""
    return range(world.chain.genesis.height, world.chain.final.height + 1)


# Random worlds -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def settled() -> dict[int, World]:
    """Return worlds with failures, refunds, deletions and gaps, in which everything ended."""
    return {seed: FullWorld(seed).run(120) for seed in (2, 3, 8, 9, 12)}


@pytest.mark.parametrize("seed", [2, 3, 8, 9, 12])
def test_settled_worlds_are_the_same_by_both_sources(
    settled: dict[int, World], seed: int, tmp_path: Path
) -> None:
    """All common tables of a random world are equal, row for row, and so are its errors."""
    world = settled[seed]
    ledger = lk.connect(world=world, make_default=False)
    heights = final_heights(world)
    by_rpc = collect(ledger, heights, tmp_path / "rpc", views=SHARED, source="rpc")
    documents = collect(ledger, heights, tmp_path / "documents", source="documents")
    assert_same(by_rpc, documents)
    assert len(rows(documents, "receipts")) > 200
    assert len(rows(documents, "events"))
    assert len(rows(documents, "transfers")) > 200


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
    heights = final_heights(world)
    runs = [
        collect(ledger, heights, tmp_path / source, views=SHARED, source=source)
        for source in ("rpc", "documents")
    ]
    assert_same(*runs)
    assert runs[1].counts["skipped"] >= 13
    assert not rows(runs[1], "chunks")["is_new"].all()


def test_waiting_heights_are_the_same_by_both_sources(tmp_path: Path) -> None:
    """A receipt waits for data that did not come yet: its rows so far, and the height's error."""
    world, waiting = yielding_world(timeout=200)
    ledger = lk.connect(world=world, make_default=False)
    heights = final_heights(world)
    runs = []
    for source in ("rpc", "documents"):
        with pytest.warns(UserWarning, match="1 height with transactions that are not final yet"):
            runs.append(collect(ledger, heights, tmp_path / source, views=SHARED, source=source))
    assert_same(*runs)
    assert [run.counts["waiting"] for run in runs] == [1, 1]
    receipts = rows(runs[1], "receipts")
    of_transaction = receipts[receipts["tx_hash"] == waiting]
    assert of_transaction["status"].tolist().count("not_executed") == 1


def test_a_yielded_receipt_is_the_same_by_both_sources(tmp_path: Path) -> None:
    """A receipt that waited for data over 70 blocks, and then ran without it."""
    world, waiting = yielding_world(timeout=70)
    ledger = lk.connect(world=world, make_default=False)
    heights = final_heights(world)
    runs = [
        collect(ledger, heights, tmp_path / source, views=SHARED, source=source)
        for source in ("rpc", "documents")
    ]
    assert_same(*runs)
    receipts = rows(runs[1], "receipts")
    of_transaction = receipts[receipts["tx_hash"] == waiting]
    assert (of_transaction["block_height"] - of_transaction["created_height"]).max() == 71
    assert (of_transaction["status"] != "not_executed").all()


def yielding_world(timeout: int) -> tuple[World, str]:
    """Build a world in which a receipt waits for data in vain, and the transaction's hash."""
    ledger = Ledger("ann.near", scripts=["s.near"], yield_timeout=timeout)
    tx_hash = ledger.send("ann.near", "s.near", do(["wait", "w", [["results"]]], ["give", "w"]))
    ledger.world.advance(75)
    ledger.world.settle()
    return ledger.world, str(tx_hash)


# What the tables of documents say of each other ---------------------------------------------


@pytest.mark.parametrize("seed", [2, 3, 8, 9, 12])
def test_the_own_tables_are_those_of_the_documents(
    settled: dict[int, World], seed: int, tmp_path: Path
) -> None:
    """Outcomes, actions, balances and data equal a plain reading of the documents' JSON."""
    world = settled[seed]
    ledger = lk.connect(world=world, make_default=False)
    run = collect(ledger, final_heights(world), tmp_path / "out", source="documents")
    documents = [own_tables(each) for each in documents_of(world).values()]
    for view in ("outcomes", "actions", "balances", "data_receipts"):
        expected = [row for tables in documents for row in tables[view]]
        assert plain_rows(run.pandas(view)[list(expected[0])]) == expected


@pytest.mark.parametrize("seed", [2, 3, 8])
def test_transfers_explain_the_balances_of_each_block(
    settled: dict[int, World], seed: int, tmp_path: Path
) -> None:
    """For each account and block the transfers' sum is the difference of `balances`."""
    world = settled[seed]
    ledger = lk.connect(world=world, make_default=False)
    run = collect(ledger, final_heights(world), tmp_path / "out", source="documents")
    assert explained(run) == changes(run, world)


def changes(run: lk.Collection, world: World) -> Counter[Key]:
    """Sum the differences between an account's balances, but for those by the chain itself."""
    genesis = world.state(world.chain.genesis.height)
    amounts: dict[str, int] = {}
    sums: Counter[Key] = Counter()
    for row in plain_rows(run.pandas("balances")):
        account_id, amount = row["account_id"], row["amount"] + row["locked"]
        before = amounts.get(account_id, near_of(genesis, account_id)["near"])
        amounts[account_id] = amount
        if row["receipt_id"] or row["tx_hash"]:
            sums[account_id, row["block_height"]] += amount - before
    return without_zeros(sums)


def explained(run: lk.Collection) -> Counter[Key]:
    """
    Sum what transfers move, out of the sender when the receipt was made.

    A fee is what was paid at first less all refunds of gas, which arrive later.
    """
    receipts, transfers = run.pandas("receipts"), run.pandas("transfers")
    created = dict(zip(receipts["receipt_id"], receipts["created_height"], strict=True))
    included = dict(zip(receipts["tx_hash"], receipts["tx_block_height"], strict=True))
    sums: Counter[Key] = Counter()
    near = transfers[transfers["asset"] == "near"]
    for row in plain_rows(near):
        has_run = row["receipt_id"] is not None
        sent = created[row["receipt_id"]] if has_run else row["tx_block_height"]
        sums[row["sender_id"], sent] -= row["amount"]
        sums[row["receiver_id"], row["block_height"] if has_run else sent] += row["amount"]
    listed = set(near.loc[near["kind"].isin(["refund_deposit", "beneficiary"]), "receipt_id"])
    for row in plain_rows(receipts[receipts["kind"] == "refund"]):
        if row["receipt_id"] not in listed and row["status"] != "failure":
            sums[row["receiver_id"], row["block_height"]] += row["deposit"]
            sums[row["receiver_id"], included[row["tx_hash"]]] -= row["deposit"]
    return without_zeros(Counter({key: n for key, n in sums.items() if is_account(key[0])}))


def is_account(name: object) -> bool:
    """Return True for an account, which the system and a missing party are not."""
    return isinstance(name, str) and name != "system"


def without_zeros(sums: Counter[Key]) -> Counter[Key]:
    """Return the sums that are not 0."""
    return Counter({key: total for key, total in sums.items() if total})


# Recorded transactions ----------------------------------------------------------------------


def test_recorded_trees_are_the_same_by_both_sources(tmp_path: Path) -> None:
    """A chain of copies of a recorded block: a node made of its documents gives equal rows."""
    if not SAMPLE.exists():
        pytest.skip("the recorded blocks are not here")
    documents = chain_of(json.loads(SAMPLE.read_bytes()), 5)
    heights = range(min(documents), min(documents) + 3)
    node = RecordedNode(documents, max(documents))
    host = DocumentHost(
        {height: json.dumps(each).encode() for height, each in documents.items()},
        final=max(documents),
    )

    def handler(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        return (node if method == "POST" else host)(method, path, headers, body)

    with loopback.serve(handler) as server:
        options: Any = {"rpc_url": server.url, "blocks_url": server.url}
        with lk.connect("lab", make_default=False, **options) as ledger:
            by_rpc = collect(ledger, heights, tmp_path / "rpc", views=SHARED, source="rpc")
            run = collect(ledger, heights, tmp_path / "documents", source="documents")
            sent = run.pandas("transactions")[["tx_hash", "signer_id"]]
            traces = lk.traces(sent.itertuples(index=False), progress=False, ledger=ledger)
            # Their receipts ran in the two blocks after the range, too.
            views = ("blocks", "transactions", "outcomes", "actions")
            beyond = range(heights[0], max(documents) + 1)
            wider = collect(ledger, beyond, tmp_path / "wider", views=views, source="documents")
            stored = wider.traces(sent["tx_hash"], ledger=ledger)
    assert_same(by_rpc, run)
    for name in ("receipts", "actions", "logs", "events", "transfers", "gas", "edges"):
        assert_frame_equal(getattr(stored, name), getattr(traces, name), obj=name)
    receipts = rows(run, "receipts")
    assert len(receipts) == 3 * 313
    assert Counter(receipts["depth"]) == {0: 3 * 58, 1: 3 * (313 - 58)}
    assert receipts["waits_for"].str.len().sum() > 0
    rewards = rewards_by_balances(run)
    assert len(rewards) == 169  # in the last two of the three blocks
    assert rewards_by_transfers(run, heights) == rewards


def rewards_by_transfers(run: lk.Collection, heights: range) -> dict[str, int]:
    """Return what contracts were paid for their calls in blocks, by receipt."""
    transfers = run.pandas("transfers")
    is_read = transfers["block_height"].isin(heights)
    paid = transfers[(transfers["kind"] == "contract_reward") & is_read]
    return dict(zip(paid["receipt_id"], paid["amount"], strict=True))


def rewards_by_balances(run: lk.Collection) -> dict[str, int]:
    """Return the differences of balances by them, of receipts whose transactions were read."""
    known = set(run.pandas("receipts")["receipt_id"])
    before: dict[Key, int] = {}
    rewards = {}
    for row in plain_rows(run.pandas("balances")):
        key = row["account_id"], row["block_height"]
        if row["cause"] == "action_receipt_gas_reward" and row["receipt_id"] in known:
            rewards[row["receipt_id"]] = row["amount"] - before[key]
        before[key] = row["amount"]
    return rewards
