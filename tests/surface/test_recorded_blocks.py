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


def collect(documents: Documents, out: Path, n_blocks: int = FEW) -> lk.types.Collection:
    """Collect the ten heights around documents, with every table; transactions wait there."""
    start, stop = range_of(documents)
    with lab(with_neighbours(documents, n_blocks)) as (server, ledger):
        options: Any = {"source": "documents", "progress": False, "ledger": ledger}
        with warning() if waits(documents) else nullcontext():
            run: lk.types.Collection = lk.collect_blocks(start, stop, out=out, **options)
        archives = [path for path in server.paths if path.endswith(".tgz")]
    assert bool(archives) == (n_blocks == MANY)
    return run


def warning() -> Any:
    """Expect the warning of a height with transactions that are not complete."""
    return pytest.warns(UserWarning, match="transactions that are not final yet")


def waits(documents: Documents) -> bool:
    """Return True if a document has transactions: some of their receipts were not recorded."""
    return any(own_tables(document)["transactions"] for document in documents.values())


def rows(run: lk.types.Collection, view: str) -> list[dict[str, Any]]:
    """Return the rows of a table as plain values; what is missing is None."""
    return plain_rows(run.pandas(view).drop(columns="fetched_at", errors="ignore"))


def row(run: lk.types.Collection, view: str, **key: Any) -> dict[str, Any]:
    [match] = [each for each in rows(run, view) if key.items() <= each.items()]
    return match


@pytest.fixture(scope="module")
def mainnet(tmp_path_factory: pytest.TempPathFactory) -> lk.types.Collection:
    """Return the collection of the busy block of mainnet, by single documents."""
    return collect(recorded("mainnet"), tmp_path_factory.mktemp("mainnet") / "out")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> lk.types.Collection:
    """Return the collection of two blocks of 2021, which follow on each other."""
    return collect(recorded("old_mainnet"), tmp_path_factory.mktemp("old") / "out")


@pytest.fixture(scope="module")
def old_testnet(tmp_path_factory: pytest.TempPathFactory) -> lk.types.Collection:
    """Return the collection of a block of 2023 in which a call panicked."""
    return collect(recorded("old_testnet"), tmp_path_factory.mktemp("old_testnet") / "out")


@pytest.fixture(scope="module")
def testnet(tmp_path_factory: pytest.TempPathFactory) -> lk.types.Collection:
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


@pytest.mark.parametrize("view", ["outcomes", "actions", "balances", "data_receipts"])
def test_a_saved_document_is_read_as_its_tables(view: str, mainnet: lk.types.Collection) -> None:
    """`read` returns the rows that a collection of the block has."""
    saved = lk.read_response(SAMPLES / f"{RECORDED['mainnet'][0]}.json", view)
    collected = mainnet.pandas(view)
    collected = collected[collected["block_height"] == MAINNET].reset_index(drop=True)
    assert_frame_equal(saved, collected)


def test_its_transactions_wait_for_blocks_that_were_not_recorded(
    mainnet: lk.types.Collection,
) -> None:
    """Each transaction was converted, and its receipt has not run: the height is waiting."""
    errors = mainnet.errors()
    assert errors["position"].tolist() == [MAINNET]
    assert errors["kind"].tolist() == ["waiting"]
    receipts = rows(mainnet, "receipts")
    assert {each["tx_block_height"] for each in receipts} == {MAINNET}
    assert len({each["tx_hash"] for each in receipts}) == 58
    assert Counter(each["status"] for each in receipts) == {"not_executed": 58}
    assert rows(mainnet, "events") == []


def test_the_header_of_the_busy_block(mainnet: lk.types.Collection) -> None:
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
    run: lk.types.Collection = request.getfixturevalue(name)
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


def test_a_receipt_ran_in_the_block_after_its_transaction(old: lk.types.Collection) -> None:
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


def test_a_local_receipt_ran_with_its_transaction(old: lk.types.Collection) -> None:
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


def test_the_next_chunk_has_the_gas_of_the_outcomes(old: lk.types.Collection) -> None:
    """What the outcomes of a block burnt is in the headers of the next one's chunks."""
    outcomes = [each for each in rows(old, "outcomes") if each["block_height"] == OLD - 1]
    header = recorded("old_mainnet")[OLD]["shards"][0]["chunk"]["header"]
    assert sum(each["gas_burnt"] for each in outcomes) == header["gas_used"] == 2_852_950_080_508
    burnt = sum(each["tokens_burnt"] for each in outcomes)
    assert burnt == int(header["balance_burnt"]) == 285_295_008_050_800_000_000


# Failures ----------------------------------------------------------------------------------


def test_a_panic_and_its_error(old_testnet: lk.types.Collection) -> None:
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


def test_a_block_without_chunks(tmp_path: Path) -> None:
    """A block without new chunks has no rows but its own; the height before it was skipped."""
    run = collect(recorded("no_chunks"), tmp_path / "out")
    assert row(run, "blocks", block_height=70_834_061)["prev_height"] == 70_834_059
    assert run.counts == {"ok": 9, "skipped": 1}
    assert run.errors()["position"].tolist() == [70_834_060]
    assert all(not rows(run, view) for view in run.views if view not in ("blocks", "chunks"))
