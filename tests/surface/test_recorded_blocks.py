"""Recorded blocks, collected from block documents: each value against the recording."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import base58
import pytest
from pandas.testing import assert_frame_equal

import ledgerkit as lk
from tests import loopback
from tests.document_host import DocumentHost
from tests.document_rows import own_tables, plain_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.loopback import Reply, Server

    Documents = dict[int, Any]

SAMPLES = Path(__file__).parents[3] / "shared/wire/samples/blocks"
pytestmark = pytest.mark.skipif(not SAMPLES.exists(), reason="the recorded blocks are not here")

MAINNET, TESTNET, OLD = 151_768_255, 232_952_651, 34_834_053
RECORDED = {
    "mainnet": ["neardata_mainnet_151768255"],
    "testnet": ["neardata_testnet_232952651"],
    "old_mainnet": ["borealis_mainnet_34834052", "borealis_mainnet_34834053"],
    "old_testnet": ["borealis_testnet_120572296"],
    "no_chunks": ["borealis_mainnet_70834061_no_chunks"],
}
FEW, MANY = 12, 40  # blocks from the first of the range to the last final one
TGAS = 10**12


# Collecting --------------------------------------------------------------------------------


def recorded(name: str) -> Documents:
    """Return the documents of a recording, by height."""
    documents = [json.loads((SAMPLES / f"{stem}.json").read_bytes()) for stem in RECORDED[name]]
    return {document["block"]["header"]["height"]: document for document in documents}


def range_of(documents: Mapping[int, Any]) -> tuple[int, int]:
    """Return the first and the end of the ten heights around documents."""
    first = min(documents) // 10 * 10
    return first, first + 10


def with_neighbours(documents: Documents, n_blocks: int) -> Documents:
    """
    Add empty blocks in place of those that were not recorded, which follow on each other.

    A height that the recorded block names as skipped is left out.
    """
    first, _ = range_of(documents)
    hashes = {height: hash_of(height) for height in range(first - 5, first + n_blocks)}
    for height, document in documents.items():
        header = document["block"]["header"]
        before = header.get("prev_height") or height - 1
        hashes |= {height: header["hash"], before: header["prev_hash"]}
        for skipped in range(before + 1, height):
            del hashes[skipped]
    template = next(iter(documents.values()))["block"]
    heights = sorted(hashes)
    chain = {}
    for before, height in pairwise(heights):
        own = {"height": height, "hash": hashes[height], "prev_hash": hashes[before]}
        empty = {"chunks_included": 0, "chunk_mask": [], "prev_height": before}
        header = {**template["header"], **own, **empty}
        chain[height] = {"block": {**template, "header": header, "chunks": []}, "shards": []}
    return chain | documents


def hash_of(height: int) -> str:
    """Return a hash for a block that was not recorded."""
    encoded: bytes = base58.b58encode(height.to_bytes(32, "big"))
    return encoded.decode()


@contextmanager
def lab(documents: Documents) -> Iterator[tuple[Server, lk.Ledger]]:
    """Serve documents; the node knows the last block alone, and no rules of the protocol."""
    final = max(documents)
    host = DocumentHost(
        {h: json.dumps(each).encode() for h, each in documents.items()}, final=final
    )

    def node(_method: str, _path: str, _headers: object, body: bytes) -> Reply:
        if json.loads(body)["method"] != "block":
            return loopback.failure("METHOD_NOT_FOUND", code=-32601)
        return loopback.result(documents[final]["block"])

    def handler(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        return (node if method == "POST" else host)(method, path, headers, body)

    retries = lk.RetryPolicy(attempts=1, total_s=20.0)
    with loopback.serve(handler) as server:
        options: Any = {"rpc_url": server.url, "blocks_url": server.url, "retries": retries}
        with lk.connect("lab", make_default=False, **options) as ledger:
            yield server, ledger


def collect(documents: Documents, out: Path, n_blocks: int = FEW) -> lk.Collection:
    """Collect the ten heights around documents, with every table; transactions wait there."""
    start, stop = range_of(documents)
    with lab(with_neighbours(documents, n_blocks)) as (server, ledger):
        options: Any = {"source": "documents", "progress": False, "ledger": ledger}
        with warning() if waits(documents) else nullcontext():
            run: lk.Collection = lk.collect_blocks(start, stop, out=out, **options)
        archives = [path for path in server.paths if path.endswith(".tgz")]
    assert bool(archives) == (n_blocks == MANY)
    return run


def warning() -> Any:
    """Expect the warning of a height with transactions that are not complete."""
    return pytest.warns(UserWarning, match="transactions that are not final yet")


def waits(documents: Documents) -> bool:
    """Return True if a document has transactions: some of their receipts were not recorded."""
    return any(own_tables(document)["transactions"] for document in documents.values())


def rows(run: lk.Collection, view: str) -> list[dict[str, Any]]:
    """Return the rows of a table as plain values; what is missing is None."""
    return plain_rows(run.pandas(view).drop(columns="fetched_at", errors="ignore"))


def row(run: lk.Collection, view: str, **key: Any) -> dict[str, Any]:
    """Return the only row with these values."""
    [match] = [each for each in rows(run, view) if key.items() <= each.items()]
    return match


@pytest.fixture(scope="module")
def mainnet(tmp_path_factory: pytest.TempPathFactory) -> lk.Collection:
    """Return the collection of the busy block of mainnet, by single documents."""
    return collect(recorded("mainnet"), tmp_path_factory.mktemp("mainnet") / "out")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> lk.Collection:
    """Return the collection of two blocks of 2021, which follow on each other."""
    return collect(recorded("old_mainnet"), tmp_path_factory.mktemp("old") / "out")


@pytest.fixture(scope="module")
def old_testnet(tmp_path_factory: pytest.TempPathFactory) -> lk.Collection:
    """Return the collection of a block of 2023 in which a call panicked."""
    return collect(recorded("old_testnet"), tmp_path_factory.mktemp("old_testnet") / "out")


@pytest.fixture(scope="module")
def testnet(tmp_path_factory: pytest.TempPathFactory) -> lk.Collection:
    """Return the collection of a quiet block of 2026."""
    return collect(recorded("testnet"), tmp_path_factory.mktemp("testnet") / "out")


# Every value -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(RECORDED))
@pytest.mark.parametrize("n_blocks", [FEW, MANY])
def test_every_value_is_the_recorded_one(name: str, n_blocks: int, tmp_path: Path) -> None:
    """Each column of each row equals the JSON's member, by single documents and by archives."""
    documents = recorded(name)
    run = collect(documents, tmp_path / "out", n_blocks)
    for height, document in documents.items():
        for view, expected in own_tables(document).items():
            received = [each for each in rows(run, view) if each["block_height"] == height]
            names = list(expected[0]) if expected else []
            assert [{name: each[name] for name in names} for each in received] == expected, view


# The busy block of mainnet -------------------------------------------------------------------


def test_counts_of_the_busy_block(mainnet: lk.Collection) -> None:
    """58 transactions and 313 receipts ran; 482 balances and 16 data receipts are listed."""
    own = [name for name in mainnet.views if name not in ("receipts", "events", "transfers")]
    counts = {
        name: sum(each["block_height"] == MAINNET for each in rows(mainnet, name)) for name in own
    }
    assert counts == {
        "blocks": 1,
        "chunks": 8,
        "transactions": 58,
        "outcomes": 58 + 313,
        # 136 transfers, 111 calls, and 66 Delegates of one call each.
        "actions": 136 + 111 + 66 + 66,
        # Each transaction and receipt, and the reward of each call.
        "balances": 58 + 313 + 111,
        "data_receipts": 16,
    }


@pytest.mark.parametrize("view", ["outcomes", "actions", "balances", "data_receipts"])
def test_a_saved_document_is_read_as_its_tables(view: str, mainnet: lk.Collection) -> None:
    """`read` returns the rows that a collection of the block has."""
    saved = lk.read(SAMPLES / f"{RECORDED['mainnet'][0]}.json", view)
    collected = mainnet.pandas(view)
    collected = collected[collected["block_height"] == MAINNET].reset_index(drop=True)
    assert_frame_equal(saved, collected)


def test_its_transactions_wait_for_blocks_that_were_not_recorded(mainnet: lk.Collection) -> None:
    """Each transaction was converted, and its receipt has not run: the height is waiting."""
    errors = mainnet.errors()
    assert errors["position"].tolist() == [MAINNET]
    assert errors["kind"].tolist() == ["waiting"]
    receipts = rows(mainnet, "receipts")
    assert {each["tx_block_height"] for each in receipts} == {MAINNET}
    assert len({each["tx_hash"] for each in receipts}) == 58
    assert Counter(each["status"] for each in receipts) == {"not_executed": 58}
    assert rows(mainnet, "events") == []


def test_the_header_of_the_busy_block(mainnet: lk.Collection) -> None:
    """The row of the block has the header's members and the sums over its chunks."""
    block = row(mainnet, "blocks", block_height=MAINNET)
    assert block == {
        "block_height": MAINNET,
        "block_hash": "Cheits2cCF7tY8jp2Jti3A8rnos1xrqkZJsJcWe2KaEd",
        "time": 1_750_330_952_547_030_645,
        "author": "future_is_near.poolv1.near",
        "prev_height": 151_768_254,
        "prev_hash": "CXeCuxH6PA1RM2Nk9DguAJ6jQWRXPHHjiUe2k1u7TQFp",
        "epoch_id": "8GQSHEbNkCpV7y1gqjuGLFsLHTmHBsaCegVDzwsYBUdF",
        "last_final_block": "HSEtGbzeL7PpBzeP9UkZ7B9ZUEZR3URFLkVnBKG1Vqg8",
        "n_chunks": 8,
        "chunks_included": 8,
        # 15.356 + 0 + 4.232 + 110.158 + 55.394 + 47.324 + 33.256 + 69.515 Tgas
        "gas_used": 335_233_778_815_093,
        "gas_limit": 8_000 * TGAS,
        "gas_price": 100_000_000,
        "total_supply": 1_256_115_339_264_720_034_040_442_770_238_981,
        "protocol_version": 77,
    }


def test_balances_before_and_after(mainnet: lk.Collection) -> None:
    """A contract's balance after each receipt; the one before is that of its previous row."""
    names = "cause", "receipt_id", "amount"
    claims = [
        tuple(each[name] for name in names)
        for each in rows(mainnet, "balances")
        if each["account_id"] == "claim.sweat"
    ]
    first = "6GwByS9AqPEcSd9xM1cFLZgkLoUFGk6SGoPYbDQBKb72"
    second = "9TFZfnyxaQmQBfwkgH3vyfh6YeNYfQK6SWkpnbCcsvHm"
    assert claims == [
        ("receipt_processing", first, 17_239_009_363_134_201_388_471_219_874),
        ("action_receipt_gas_reward", first, 17_239_010_502_969_721_781_271_219_874),
        ("receipt_processing", second, 17_239_010_502_969_721_781_271_219_874),
        ("action_receipt_gas_reward", second, 17_239_011_608_246_341_099_971_219_874),
    ]


def test_a_refund_raises_its_receiver_by_the_deposit(mainnet: lk.Collection) -> None:
    """The largest refund of the block: action, outcome and balance agree to the yoctoNEAR."""
    receipt_id = "CU8nCaDf3xiMAppPZvG4hnFfrLuyw9rqRQbF3ur7EBgR"
    action = row(mainnet, "actions", receipt_id=receipt_id)
    assert (action["action"], action["sender_id"], action["receiver_id"], action["deposit"]) == (
        "Transfer",
        "system",
        "sweat-relayer.near",
        188_149_479_172_960_364_467_444,
    )
    balances = [
        each for each in rows(mainnet, "balances") if each["account_id"] == "sweat-relayer.near"
    ]
    [at] = [at for at, each in enumerate(balances) if each["receipt_id"] == receipt_id]
    assert balances[at]["amount"] - balances[at - 1]["amount"] == action["deposit"]
    outcome = row(mainnet, "outcomes", receipt_id=receipt_id)
    assert (outcome["gas_burnt"], outcome["tokens_burnt"]) == (223_182_562_500, 0)


def test_a_receipt_followed_through(mainnet: lk.Collection) -> None:
    """The token's receiver answered with data, for which the token's callback waited; it ran."""
    data = row(mainnet, "data_receipts", data_id="E2BxFzN8V56KrgFkZUzLrNdw9b9kt6QRtSFogD99z7M2")
    assert data == {
        "block_height": MAINNET,
        "shard_id": 7,  # of the producer, as are all receipts that a chunk lists
        "receipt_id": "5UTj4834cmRGVNwjjVNcaeuQFEVoyaeVjMbDKb5vvXTc",
        "data_id": "E2BxFzN8V56KrgFkZUzLrNdw9b9kt6QRtSFogD99z7M2",
        "predecessor_id": "intents.near",
        "receiver_id": "wrap.near",
        "data": "IjAi",
        "is_promise_resume": False,
    }
    callback = "9daDHmcLyhXRBSBtBPPkQGZQhFzueuEwgFh1zgkNKfxF"
    [outcome] = [
        each for each in rows(mainnet, "outcomes") if data["data_id"] in each["input_data_ids"]
    ]
    assert outcome["receipt_id"] == callback
    assert outcome["tx_hash"] == "ExNTPqbRy2pQPwiwuKHMdToaHSpjoCnFqjrVkEAgjoJ7"
    assert outcome["signer_id"] == "bockrecuk.near"
    assert outcome["success_value"] == "IjQ2MjI4MTU5MDAwMDAwMDAwMDAwMDAwMCI="
    assert outcome["receipt_ids"] == ["HFLgFSj3v81rPwzdoJ34iTJY83CD5sUdauYV9s6QgWeN"]
    action = row(mainnet, "actions", receipt_id=callback)
    assert action["method_name"] == "ft_resolve_transfer"
    assert action["gas_attached"] == 5 * TGAS
    assert action["args"] == {
        "sender_id": "bockrecuk.near",
        "receiver_id": "intents.near",
        "amount": "462281590000000000000000",
    }
    after, rewarded = [each for each in rows(mainnet, "balances") if each["receipt_id"] == callback]
    assert after["amount"] == 14_183_644_589_676_496_541_541_931_320_285
    assert rewarded["amount"] == 14_183_644_589_693_762_502_272_531_320_285


def test_the_gas_profile_of_a_receipt(mainnet: lk.Collection) -> None:
    """WASM instructions apart from the sum of all other costs, added up by hand."""
    outcome = row(mainnet, "outcomes", receipt_id="9daDHmcLyhXRBSBtBPPkQGZQhFzueuEwgFh1zgkNKfxF")
    assert outcome["gas_burnt"] == 1_463_846_420_830
    assert outcome["wasm_gas"] == 44_577_742_836
    assert outcome["host_gas"] == sum([
        4_765_825_998,
        35_445_963,
        202_200_384_375,
        13_680_000_000,
        10_439_452_800,
        247_086_645,
        12_585_825_930,
        14_291_490,
        56_356_845_749,
        154_762_665,
        162_719_116,
        64_196_736_000,
        931_401_903,
        352_414_335,
        899_537_631,
        128_815_647_408,
        16_822_769_166,
        438_527_292,
        17_193_134_916,
        661_472_136,
    ])  # fmt: skip
    assert outcome["action_gas"] == 0


@pytest.mark.parametrize(
    ("name", "n_calls"), [("mainnet", 111), ("testnet", 1), ("old_testnet", 1)]
)
def test_the_gas_profiles_explain_the_rewards_of_contracts(
    name: str, n_calls: int, request: pytest.FixtureRequest
) -> None:
    """Three tenths of the gas of a call's profile, at the block's price, went to the contract."""
    # Source: nearcore, runtime/runtime/src/lib.rs, Runtime::process_transactions_receipts:
    # gas_burnt_for_function_call * burnt_gas_reward, times the gas price; a profile adds up to
    # the gas of the call.
    run: lk.Collection = request.getfixturevalue(name)
    profiles = {
        each["receipt_id"]: each["wasm_gas"] + each["host_gas"] + each["action_gas"]
        for each in rows(run, "outcomes")
        if each["receipt_id"]
    }
    amounts: dict[str, int] = {}
    rewards = {}
    for each in rows(run, "balances"):
        if each["cause"] == "action_receipt_gas_reward":
            before = amounts.get(each["account_id"])
            if before is not None:
                rewards[each["receipt_id"]] = each["amount"] - before
        amounts[each["account_id"]] = each["amount"]
    assert len(rewards) == n_calls
    assert rewards == {i: profiles[i] * 3 // 10 * 100_000_000 for i in rewards}


# Two blocks of 2021 that follow on each other ------------------------------------------------


def test_a_receipt_ran_in_the_block_after_its_transaction(old: lk.Collection) -> None:
    """The account "aurora" was created: transaction, receipt, outcome, balance and refund."""
    tx_hash = "4pXUBfv1zy4q9SLy52x5FUfn9ZKf8DLs4SZeP9fajfHm"
    receipt_id = "Ho1beLf8B4qLWn6YjNH6NHm6cZKd4jqD2Agrmhk8BBcM"
    refund_id = "74kmp9QGyFntj2FcPutLVe3Lftk4ZLRY8uiCVg8L8YQo"
    transaction = row(old, "transactions", tx_hash=tx_hash)
    assert transaction["block_height"] == OLD - 1
    assert transaction["actions"] == "CreateAccount+Transfer+AddKey"
    assert row(old, "outcomes", tx_hash=tx_hash, receipt_id=None)["receipt_ids"] == [receipt_id]
    executed = row(old, "outcomes", receipt_id=receipt_id)
    assert (executed["block_height"], executed["tx_hash"]) == (OLD, None)
    assert executed["gas_burnt"] == 424_555_062_500
    assert executed["receipt_ids"] == [refund_id]
    balance = row(old, "balances", receipt_id=receipt_id)
    assert (balance["account_id"], balance["amount"]) == ("aurora", 10**23)
    # By the tables of its transaction, the receipt is known to belong to it.
    receipt = row(old, "receipts", receipt_id=receipt_id)
    assert (receipt["tx_hash"], receipt["tx_block_height"]) == (tx_hash, OLD - 1)
    assert (receipt["created_height"], receipt["block_height"]) == (OLD - 1, OLD)
    assert receipt["status"] == "success_value"
    refund = row(old, "receipts", receipt_id=refund_id)
    assert (refund["tx_hash"], refund["parent_id"]) == (tx_hash, receipt_id)
    assert (refund["created_height"], refund["block_height"]) == (OLD, None)
    assert refund["status"] == "not_executed"


def test_a_local_receipt_ran_with_its_transaction(old: lk.Collection) -> None:
    """An account deleted itself: its receipt ran in the same block, and nothing is left."""
    tx_hash = "uQ6hiGNnVW371JKwnLLQM4iMdBNE7xJqVjPGecbmL4D"
    receipt_id = "EkdeeCvozyK5zXZSd3tk2VpakH4kiGfLHCBzfXZVAVvd"
    account_id = "7230958475842401ef072aaeb2b0b3f6d45096c9688715277127badd0b51d033"
    receipt = row(old, "receipts", receipt_id=receipt_id)
    assert receipt["is_local"]
    assert (receipt["tx_hash"], receipt["actions"]) == (tx_hash, "DeleteAccount")
    assert (receipt["created_height"], receipt["block_height"]) == (OLD, OLD)
    names = "type", "amount", "cause", "receipt_id"
    changes = [
        tuple(each[name] for name in names)
        for each in rows(old, "balances")
        if each["account_id"] == account_id
    ]
    left = 48_856_657_354_023_895_200_000_000
    assert changes == [
        ("account_update", left, "transaction_processing", None),
        ("account_deletion", 0, "receipt_processing", receipt_id),
    ]


def test_old_outcomes_have_no_gas_profile(old: lk.Collection) -> None:
    """Nodes of 2021 did not record profiles: they are missing, not 0."""
    for outcome in rows(old, "outcomes"):
        assert (outcome["wasm_gas"], outcome["host_gas"], outcome["action_gas"]) == (None,) * 3


def test_the_next_chunk_has_the_gas_of_the_outcomes(old: lk.Collection) -> None:
    """What the outcomes of a block burnt is in the headers of the next one's chunks."""
    outcomes = [each for each in rows(old, "outcomes") if each["block_height"] == OLD - 1]
    header = recorded("old_mainnet")[OLD]["shards"][0]["chunk"]["header"]
    assert sum(each["gas_burnt"] for each in outcomes) == header["gas_used"] == 2_852_950_080_508
    burnt = sum(each["tokens_burnt"] for each in outcomes)
    assert burnt == int(header["balance_burnt"]) == 285_295_008_050_800_000_000


# Failures ----------------------------------------------------------------------------------


def test_a_panic_and_its_error(old_testnet: lk.Collection) -> None:
    """A call that panicked: its error, its log, its profile, and its reward all the same."""
    receipt_id = "BSqNTR6ZKZeBKG7UXdcNnAvUHHrKXsdFaq82Q9yYxukf"
    failures = [each for each in rows(old_testnet, "outcomes") if each["status"] == "failure"]
    [outcome] = failures
    assert outcome["receipt_id"] == receipt_id
    assert outcome["executor_id"] == "manager_v1.croncat.testnet"
    assert outcome["error_kind"] == "FunctionCallError.ExecutionError"
    assert outcome["error_message"] == (
        "Smart contract panicked: panicked at 'called `Option::unwrap()` on a `None` value',"
        " manager/src/lib.rs:198:62"
    )
    assert outcome["logs"] == ["Slot 1665171660000000000 cleaned"]
    assert (outcome["wasm_gas"], outcome["host_gas"], outcome["action_gas"]) == (
        350_792_716_428,
        8_357_753_524_245,
        2_319_861_500_000 + 51_426_482 + 216_119_000_000 + 115_123_062_500,
    )


def test_a_delegate_waits_in_its_transaction(old_testnet: lk.Collection) -> None:
    """A relayer's transaction of a Delegate: named, and no deposit of the relayer's own."""
    transaction = row(old_testnet, "transactions", signer_id="nomnomnom.testnet")
    assert (transaction["actions"], transaction["deposit"]) == ("Delegate", 0)
    assert transaction["receiver_id"] == "relayer_test0.testnet"


def test_shards_of_the_quiet_block(testnet: lk.Collection) -> None:
    """Nine shards, not numbered in order; the callback's transaction is known, its data is not."""
    chunks = [each for each in rows(testnet, "chunks") if each["block_height"] == TESTNET]
    assert [each["shard_id"] for each in chunks] == [10, 11, 1, 8, 9, 6, 7, 4, 5]
    executed = rows(testnet, "outcomes")
    assert [(each["shard_id"], each["executor_id"]) for each in executed] == [
        (8, "crocus.testnet"),
        (9, "engine.crocus.testnet"),
    ]
    tx_hash = "8Ye3rMZZXjtjDbgi9t2Jc9entF4wdwb324dr8K3URwVX"
    assert {each["tx_hash"] for each in executed} == {tx_hash}
    assert testnet.counts == {"ok": 10}
    # The transaction was included earlier: its receipts belong to a height before the range.
    assert rows(testnet, "receipts") == rows(testnet, "transactions") == []
    [data] = rows(testnet, "data_receipts")
    assert data["data_id"] in executed[1]["input_data_ids"]


def test_a_block_without_chunks(tmp_path: Path) -> None:
    """A block without new chunks has no rows but its own; the height before it was skipped."""
    run = collect(recorded("no_chunks"), tmp_path / "out")
    assert row(run, "blocks", block_height=70_834_061)["prev_height"] == 70_834_059
    assert run.counts == {"ok": 9, "skipped": 1}
    assert run.errors()["position"].tolist() == [70_834_060]
    assert all(not rows(run, view) for view in run.views if view not in ("blocks", "chunks"))
