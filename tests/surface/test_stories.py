"""Traces of what the embedded ledger really did: trees, value to the yocto, stories."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.localnet import open_world
from ledgerkit.protocol import (
    AccessKey,
    AddKey,
    DeleteKey,
    GasKeyFullAccess,
    GasKeyFunctionCall,
    TransferToGasKey,
    WithdrawFromGasKey,
)
from tests.unit.localnet.chaos import Chaos
from tests.unit.localnet.ledger import TGAS, Ledger, N, do, public

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledgerkit.localnet import World

pytestmark = pytest.mark.usefixtures("no_session_left")

GAS_KEYS = (GasKeyFullAccess, GasKeyFunctionCall)
TRACE_FRAMES = "receipts edges actions logs events transfers balance_changes gas".split()
ALONE = {"boundaries": (), "shard_ids": (0,)}


@pytest.fixture(scope="module")
def demo() -> World:
    """Return the demo world after everything in it has ended, what waited for nothing too."""
    world = open_world("demo")
    world.advance(250)
    return world


@pytest.fixture
def story(demo: World) -> Any:
    """Return what traces a story of the demo world by its words."""
    lk.connect(world=demo)

    def find(words: str) -> lk.Trace:
        told = next(one for one in demo.summary.transactions if one.description == words)
        return lk.trace(told.tx_hash, told.signer_id)

    return find


def included(world: World) -> list[tuple[str, str]]:
    return [
        (str(signed.hash), str(signed.transaction.signer_id))
        for block in world.chain.blocks()
        for chunk in block.chunks
        if chunk.height_included == block.height
        for signed in chunk.transactions
    ]


def traced(world: World) -> list[lk.Trace]:
    ledger = lk.connect(world=world)
    return [lk.trace(*pair, ledger=ledger) for pair in included(world)]


def summed(traces: Iterable[lk.Trace]) -> Counter[tuple[str, str]]:
    """Add up the balance changes of transactions."""
    sums: Counter[tuple[str, str]] = Counter()
    for trace in traces:
        assert [note for note in trace.notes if not note.startswith("contract rewards")] == []
        for account_id, asset, change in trace.balance_changes.itertuples(index=False):
            sums[account_id, asset] += change
    return sums


def difference(world: World, names: Iterable[str]) -> dict[str, int]:
    """Tell by how much the chain's own balances changed since genesis, staked or in gas keys."""
    found = {}
    for name in names:
        before, after = [
            balance(world.state(at.height), name) for at in (world.chain.genesis, world.chain.head)
        ]
        found[name] = after - before
    return found


def balance(state: Any, name: str) -> int:
    """Add up what an account has, staked or in gas keys."""
    account = state.account(name)
    own = 0 if account is None else account.amount + account.locked
    permissions = [key.permission for _, key in state.access_keys(name)]
    return own + sum(each.balance for each in permissions if isinstance(each, GAS_KEYS))


def units(world: World, contract_id: str, account_id: str) -> int:
    """Tell by how many units of a token an account's balance changed since genesis."""
    args = b'{"account_id":"' + account_id.encode() + b'"}'
    places = (world.chain.genesis, world.chain.head)
    before, after = [world.view(contract_id, "ft_balance_of", args, at).result for at in places]
    return int(after.strip(b'"')) - int(before.strip(b'"'))


def test_the_demo_worlds_changes_add_up(demo: World) -> None:
    """All transactions' changes are what balances changed by: NEAR to the yocto, and tokens."""
    sums = summed(traced(demo))
    near = {account_id: total for (account_id, asset), total in sums.items() if asset == "near"}
    assert near == difference(demo, near)
    assert {name for name, by in difference(demo, demo.account_ids()).items() if by} <= near.keys()
    tokens = {key: total for key, total in sums.items() if key[1].startswith("nep141")}
    told = {(who, asset): units(demo, asset.removeprefix("nep141:"), who) for who, asset in tokens}
    assert tokens == told
    assert len(tokens) > 8
    stamps = {key[0]: total for key, total in sums.items() if key[1].endswith("grace.near:204")}
    assert stamps == {"alice.near": 0, "uma.near": 1}


def test_random_trees_are_causal_and_add_up() -> None:
    """Gas sums to the root's, receipts have one parent, order respects both kinds of edges."""
    chaos = Chaos(8)
    while chaos.made < 100:
        chaos.block()
    chaos.world.advance(chaos.settings.yield_timeout + 2)
    chaos.world.settle()
    lk.connect(world=chaos.world)
    pairs = included(chaos.world)
    for tx_hash, signer_id in pairs:
        found = lk.trace(tx_hash, signer_id)
        receipts, edges = found.receipts, found.edges
        order = dict(zip(receipts["receipt_id"], receipts["order"], strict=True))
        assert receipts["receipt_id"].is_unique
        made = edges[edges["kind"] == "creation"]
        assert made["child_id"].is_unique
        assert receipts["parent_id"].notna().sum() == len(made)
        assert all(
            order[a] < order[b] for a, b in zip(edges["parent_id"], edges["child_id"], strict=True)
        )
        roots = receipts[receipts["parent_id"].isna()]
        assert roots["subtree_gas"].sum() == receipts["gas_burnt"].sum()
        heights = receipts["block_height"].tolist()
        assert heights == sorted(heights)
        total = found.gas["tokens_burnt"].sum()
        fee = found.transfers.loc[found.transfers["kind"] == "fee", "amount"].sum()
        refunds = receipts[(receipts["kind"] == "refund") & (receipts["signer_id"] != "system")]
        assert (
            fee
            == total
            - found.gas["balance_burnt"].sum()
            + refunds.loc[refunds["status"] == "failure", "deposit"].sum()
        )
        assert found.gas["gas_refund"].sum() == refunds["deposit"].sum()


# Trees with known answers ---------------------------------------------------------------


def scripted(**settings: Any) -> Ledger:
    """Open a world of one person and three contracts that do as they are told."""
    names = ("s.near", "t.near", "u.near")
    return Ledger("ann.near", scripts=names, **(ALONE | settings))


def run(ledger: Ledger, *steps: Any, gas: int = 300 * TGAS) -> lk.Trace:
    """Let a contract do steps, and trace that."""
    tx_hash = ledger.send("ann.near", "s.near", do(*steps, gas=gas))
    ledger.world.advance(20)
    lk.connect(world=ledger.world)
    return lk.trace(str(tx_hash), "ann.near")


def test_a_join_of_three() -> None:
    """The callback is in the block after its three producers, and waits for exactly them."""
    ledger = scripted()
    calls = [["call", name, f"{name}.near", [["value", name]]] for name in "stu"]
    joined = [["join", "all", "s", "t", "u"], ["then", "back", "all", "s.near", [["results"]]]]
    found = run(ledger, *calls, *joined, ["give", "back"])
    receipts = found.receipts[found.receipts["kind"] == "action"]
    start = receipts["block_height"].iloc[0]
    assert (receipts["block_height"] - start).tolist() == [0, 1, 1, 1, 2]
    assert receipts["depth"].tolist() == [0, 1, 1, 1, 1]
    assert receipts["waits_for"].iloc[4] == receipts["receipt_id"].iloc[1:4].tolist()
    assert found.edges["kind"].value_counts().to_dict() == {
        "creation": len(found.receipts) - 1,
        "data": 3,
    }
    assert (
        "do on s.near waited for do on s.near and do on t.near and do on u.near." in found.explain()
    )


def test_a_yield_that_nobody_resumed() -> None:
    """A yielded call runs when its time is up, and the story says that it waited."""
    ledger = scripted(yield_timeout=8)
    found = run(ledger, ["wait", "w", [["results"]]], ["give", "w"])
    receipts = found.receipts[found.receipts["kind"] == "action"]
    # Time is up after 8 blocks, and the news of it arrives in the block after that.
    assert receipts["block_height"].diff().tolist()[1:] == [9]
    assert "do on s.near waited for data from outside this transaction." in found.explain()
    assert found.verdict == "fully_succeeded"


def test_changes_of_gas_keys_add_up() -> None:
    """What a gas key paid, got back, received and lost is its balance, not its account's."""
    ledger = scripted()
    key, burnt = public("gas"), public("burnt")
    access = AccessKey(0, GasKeyFullAccess(0, 2))
    adding = [AddKey(each, access) for each in (key, burnt)]
    funding = [TransferToGasKey(key, N), TransferToGasKey(burnt, 7)]
    ledger.run("ann.near", "ann.near", *adding, *funding)
    by_key = {"key": "gas", "version": 1, "nonce_index": 1}
    for call in (do(["value", 1], deposit=N), do(["panic", "no"])):
        nonce = ledger.world.state().gas_key_nonce("ann.near", key.packed, 1)
        assert nonce is not None
        ledger.run("ann.near", "s.near", call, nonce=nonce + 1, **by_key)
    ledger.run("ann.near", "ann.near", WithdrawFromGasKey(key, N // 2), DeleteKey(burnt))
    sums = summed(traced(ledger.world))
    left = ledger.access_key("ann.near", "gas").permission.balance
    assert 0 < left < N // 2
    assert sums["ann.near", f"gas_key:{key}"] == left
    assert sums["ann.near", f"gas_key:{burnt}"] == 0
    assert sums["ann.near", "near"] == ledger.account("ann.near").amount - 1000 * N


def test_a_chain_of_sixty() -> None:
    """Each receipt makes the next, a block later; all of them are on the critical path."""
    ledger = scripted(vm_gas={".do": TGAS // 2})
    steps: list[Any] = [["value", "end"]]
    for place in range(60):
        steps = [["call", "p", "tu"[place % 2] + ".near", steps], ["give", "p"]]
    found = run_long(ledger, steps)
    own = found.receipts[found.receipts["kind"] == "action"]
    assert own["depth"].tolist() == list(range(61))
    assert own["block_height"].diff().tolist()[1:] == [1] * 60
    assert own["on_critical_path"].all()
    assert own["subtree_gas"].iloc[0] == found.receipts["gas_burnt"].sum()
    assert "… and 49 more: do on " in found.explain()


def run_long(ledger: Ledger, steps: Any) -> lk.Trace:
    """Let a contract do steps with all the gas there may be, and trace that to its end."""
    tx_hash = ledger.send("ann.near", "s.near", do(*steps, gas=990 * TGAS))
    ledger.world.settle()
    lk.connect(world=ledger.world)
    return lk.trace(str(tx_hash), "ann.near")


# What happened, in words ----------------------------------------------------------------


def test_who_signed_is_told_from_who_relayed(story: Any) -> None:
    """The user asks, the relayer pays."""
    found = story("a relayed token transfer")
    assert (found.sender_id, found.signer_id) == ("kate.near", "relay.near")
    paragraphs = found.explain().split("\n\n")
    assert paragraphs[0] == "kate.near sent 3 GOLD to alice.near, relayed by relay.near."
    assert paragraphs[1].startswith(
        "kate.near signed a delegate action for gold.near: call ft_transfer with 1 yocto and "
        "15 Tgas. relay.near relayed it in transaction "
    )


def test_the_action_that_failed_is_counted_from_one(story: Any) -> None:
    """A batch that rolled back names the action, and gives its deposit back."""
    text = story("a batch that rolls back at its third action").explain()
    assert "failed at action 3 of 4: shop.judy.near already has key" in text
    assert "It failed, and none of its receipts succeeded." in text
    assert "Deposits refunded: 3 NEAR to judy.near." in text


# Many at once ---------------------------------------------------------------------------


def test_many_traces_are_one_frame_of_each_kind(demo: World) -> None:
    """Every frame of many transactions holds the rows of each, with its hash and a time."""
    ledger = lk.connect(world=demo)
    pairs = included(demo)[10:40]
    found = lk.traces(pairs)
    alone = {pair[0]: lk.trace(*pair, ledger=ledger) for pair in pairs}
    assert list(found) == list(alone)
    for name in TRACE_FRAMES:
        frame = getattr(found, name)
        assert frame.columns.tolist() == lk.schema(f"traces_{name}")["name"].tolist()
        assert frame["time"].notna().all()
        singles = {tx_hash: getattr(trace, name) for tx_hash, trace in alone.items()}
        assert frame["tx_hash"].tolist() == [
            h for h, one in singles.items() for _ in range(len(one))
        ]
        for tx_hash, single in singles.items():
            own = frame[frame["tx_hash"] == tx_hash][list(single.columns)].reset_index(drop=True)
            pd.testing.assert_frame_equal(own, single)
    assert found.receipts["shard_id"].notna().all()
    assert found.receipts["block_height"].notna().all()
    assert found.receipts.attrs["source"] == "EXPERIMENTAL_tx_status"


def test_a_row_has_the_time_of_its_receipt(demo: World) -> None:
    """A transfer has its receipt's time, an edge its child's, and a fee the first receipt's."""
    lk.connect(world=demo)
    found = lk.traces(included(demo)[10:40])
    times = found.receipts.set_index("receipt_id")["time"]
    with_receipt = found.transfers.dropna(subset="receipt_id")
    assert with_receipt["time"].tolist() == times[with_receipt["receipt_id"]].tolist()
    first = found.receipts.groupby("tx_hash")["time"].first()
    assert found.edges["time"].tolist() == times[found.edges["child_id"]].tolist()
    fees = found.transfers[found.transfers["receipt_id"].isna()]
    assert fees["time"].tolist() == first[fees["tx_hash"]].tolist()
    assert found.balance_changes["time"].tolist() == (
        first[found.balance_changes["tx_hash"]].tolist()
    )


def test_traces_without_blocks_or_without_transactions_keep_their_columns(demo: World) -> None:
    """Unknown times are missing, and no transaction is a frame of no rows and the same dtypes."""
    lk.connect(world=demo)
    bare, nothing = lk.traces(included(demo)[:2], blocks=False), lk.traces([])
    assert bare.receipts["block_height"].isna().all()
    assert bare.receipts["shard_id"].isna().all()
    for name in TRACE_FRAMES:
        frame = getattr(bare, name)
        assert frame["time"].isna().all()
        pd.testing.assert_frame_equal(
            getattr(nothing, name), frame.head(0).reset_index(drop=True), check_index_type=False
        )
    assert repr(nothing) == "<Traces: 0 transactions>"
    assert "0 transactions" in nothing._repr_html_()


def test_traces_are_a_mapping_of_single_traces(demo: World) -> None:
    """One of them is a `Trace` like any other; their notes begin with its hash."""
    lk.connect(world=demo)
    pairs = included(demo)[:3]
    found = lk.traces([*pairs, pairs[0]], blocks=False)
    assert len(found) == 3
    assert pairs[1][0] in found
    assert "1" * 32 not in found
    single = found[pairs[1][0]]
    assert (single.tx_hash, single.signer_id) == pairs[1]
    assert found.notes == tuple(f"{h}: {note}" for h in found for note in found[h].notes)
    assert found.notes
    assert repr(found) == "<Traces: 3 transactions (3 fully_succeeded)>"
    html = found._repr_html_()
    assert all(tx_hash in html for tx_hash in found)
    with pytest.raises(KeyError):
        found["1" * 32]


@pytest.mark.parametrize("tx_hashes", [[("1" * 32,)], [5], ["ab"], "1" * 32], ids=repr)
def test_traces_take_hashes_and_pairs(tx_hashes: Any) -> None:
    """Anything else is refused before anything is sent."""
    lk.connect(world="empty")
    with pytest.raises(errors.InvalidRequestError) as caught:
        lk.traces(tx_hashes)
    assert caught.value.field in {"tx_hash", "tx_hashes"}


def test_a_hash_alone_gives_the_same_traces(demo: World) -> None:
    """The Transactions API and the node give equal frames, verdicts and notes."""
    ledger = lk.connect(world=demo)
    pairs = included(demo)
    by_hash = lk.traces([tx_hash for tx_hash, _ in pairs], ledger=ledger)
    by_pair = lk.traces(pairs, ledger=ledger)

    assert list(by_hash) == list(by_pair)
    assert by_hash.notes == by_pair.notes
    assert [t.verdict for t in by_hash.values()] == [t.verdict for t in by_pair.values()]
    for name in TRACE_FRAMES:
        pd.testing.assert_frame_equal(getattr(by_hash, name), getattr(by_pair, name))
    assert by_hash.receipts.attrs["source"] == "/v0/transactions"
    assert by_pair.receipts.attrs["source"] == "EXPERIMENTAL_tx_status"


def test_receipts_of_a_world_name_their_transaction(demo: World) -> None:
    """Both services give the same receipt, with the height at which its trace has it."""
    ledger = lk.connect(world=demo)
    network = replace(ledger.network, transactions_url=None)
    node = lk.Ledger(replace(ledger.session.settings, network=network, borrowed=True))
    for tx_hash, signer_id in included(demo)[:12]:
        trace = lk.trace(tx_hash, ledger=ledger)
        rows = trace.receipts
        for receipt_id, height in zip(rows["receipt_id"], rows["block_height"], strict=True):
            receipt = lk.receipt(receipt_id, ledger=ledger)
            from_node = lk.receipt(receipt_id, ledger=node)
            # In recorded documents `refund_to` is left out where a node sends null.
            assert from_node["receipt"]["Action"].pop("refund_to") is None
            assert receipt == from_node
            assert receipt["block_height"] == height
            assert (receipt["transaction_hash"], receipt["signer_id"]) == (tx_hash, signer_id)
            included_at = trace.balance_timeline()[0].height
            assert receipt["tx_block_height"] == included_at


def test_a_block_is_traced_whole(demo: World) -> None:
    """All transactions of a block, in its order."""
    lk.connect(world=demo)
    block = next(b for b in demo.chain.blocks() if sum(len(c.transactions) for c in b.chunks) > 3)
    found = lk.trace_block(block.height)
    listed = lk.transactions(block.height)["tx_hash"].tolist()
    assert list(found) == listed
    same, failed = lk.trace_block(block.height, on_error="collect")
    pd.testing.assert_frame_equal(same.transfers, found.transfers)
    assert len(failed) == 0
    assert len(lk.trace_block(demo.chain.genesis.height)) == 0


def test_a_call_that_waits_for_its_data_is_pending() -> None:
    """In the fresh demo world one call of a block waits; the others of its block are whole."""
    ledger = lk.connect("local")
    block = lk.transactions(180_000_012)
    verdicts = {
        row.method_name: lk.trace(str(row.tx_hash), str(row.signer_id)).verdict
        for row in block.itertuples()
        if row.receiver_id == "async.near"
    }
    assert verdicts == {
        "join": "succeeded_with_failed_receipts",
        "chain": "fully_succeeded",
        "fan_out": "fully_succeeded",
        "wait_for": "pending",
    }
    whole, failed = lk.trace_block(180_000_012, on_error="collect")
    assert list(whole) == block["tx_hash"].tolist()
    assert len(failed) == 0
    ledger.world.advance(250)
    [waited] = block[block["method_name"] == "wait_for"].itertuples()
    assert lk.trace(str(waited.tx_hash), str(waited.signer_id)).verdict == "fully_succeeded"


def test_a_graph_for_networkx(story: Any) -> None:
    """Nodes are receipts with their columns, edges are both kinds, and it has no ring."""
    import networkx as nx

    found = story("three calls, of which two fail, and one callback")
    graph = found.to_networkx()
    assert graph.number_of_nodes() == len(found.receipts) == 10
    kinds = Counter(kind for *_, kind in graph.edges(data="kind"))
    assert kinds == {"creation": 9, "data": 3}
    assert nx.is_directed_acyclic_graph(graph)
    first = found.receipts["receipt_id"].iloc[0]
    assert graph.nodes[first]["method_name"] == "join"
