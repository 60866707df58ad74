"""Recorded blocks, whole and by shard, give the frames that a node's answers give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.frames.schemas import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BLOCKS = Path(__file__).resolve().parents[2].parent / "shared" / "wire" / "samples" / "blocks"
recorded = pytest.mark.skipif(not BLOCKS.is_dir(), reason="the recordings are not here")
WHOLE = [
    "borealis_mainnet_34834052",
    "borealis_mainnet_34834053",
    "borealis_mainnet_70834061_no_chunks",
    "borealis_testnet_120572296",
    "neardata_mainnet_151768255",
    "neardata_mainnet_151768255_sliced",
    "neardata_testnet_232952651",
]
SHARDS = [
    "lake_000000879765_shard_0",
    "lake_000107503704_shard_1",
    "lake_000107503704_shard_2",
    "lake_000107503705_shard_2",
]
BLOCKS_ALONE = ["lake_000000879765_block", "lake_000107503704_block", "lake_000107503705_block"]
OF_SHARDS = ("chunks", "transactions", "receipts", "events")


def document(name: str) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads((BLOCKS / f"{name}.json").read_bytes())
    return decoded


def saved(name: str, view: str) -> pd.DataFrame:
    return lk.read_response(BLOCKS / f"{name}.json", view)


def shards_of(name: str) -> list[dict[str, Any]]:
    decoded = document(name)
    shards: list[dict[str, Any]] = decoded.get("shards", [decoded])
    return shards


def executions(name: str) -> Iterator[tuple[int, dict[str, Any], dict[str, Any]]]:
    """Yield the shard, receipt and outcome of each receipt that ran, in the document's order."""
    for shard in shards_of(name):
        for pair in shard["receipt_execution_outcomes"]:
            yield shard["shard_id"], pair["receipt"], pair["execution_outcome"]["outcome"]


def plain(values: Any) -> list[Any]:
    """List values, with None for what is missing."""
    return [None if value is pd.NA or value != value else value for value in values]  # noqa: PLR0124 - NaN and NaT


def test_every_recording_has_a_test() -> None:
    """No recorded block is left out."""
    names = {path.stem for path in BLOCKS.glob("*.json")} if BLOCKS.is_dir() else set()
    assert names <= {*WHOLE, *SHARDS, *BLOCKS_ALONE}


@recorded
@pytest.mark.parametrize("name", [*WHOLE, *SHARDS])
def test_frames_have_their_columns(subtests: pytest.Subtests, name: str) -> None:
    """Each frame has exactly the declared columns and dtypes, also without rows."""
    for view in OF_SHARDS:
        with subtests.test(view=view):
            frame = saved(name, view)
            assert list(frame.columns) == [column.name for column in SCHEMAS[view]]
            kinds = {column.name: column.dtype for column in SCHEMAS[view]}
            integers = [name for name, kind in kinds.items() if kind == "Int64"]
            assert {str(frame[column].dtype) for column in integers} == {"Int64"}


@recorded
@pytest.mark.parametrize("name", WHOLE)
def test_blocks(name: str) -> None:
    """The header is read as a node's, to the nanosecond."""
    header = document(name)["block"]["header"]
    frame = saved(name, "blocks")
    assert frame["block_height"].tolist() == [header["height"]]
    assert frame["block_hash"].tolist() == [header["hash"]]
    assert frame["time"].iloc[0].value == int(header["timestamp_nanosec"])
    assert plain(frame["prev_height"]) == [header.get("prev_height")]
    assert frame["total_supply"].tolist() == [int(header["total_supply"])]


@recorded
def test_a_busy_block() -> None:
    """Block 151,768,255 of mainnet: 8 shards, 58 transactions, 313 receipts, sums exact."""
    name = "neardata_mainnet_151768255"
    block = saved(name, "blocks").iloc[0]
    assert (block["n_chunks"], block["chunks_included"]) == (8, 8)
    chunks = saved(name, "chunks")
    assert chunks["shard_id"].tolist() == [0, 1, 8, 9, 6, 7, 4, 5]
    assert chunks["n_transactions"].tolist() == [2, 0, 0, 0, 0, 47, 9, 0]
    assert chunks["n_receipts"].tolist() == [36, 0, 7, 112, 16, 58, 54, 64]
    assert chunks["is_new"].all()
    assert block["gas_used"] == sum(c["gas_used"] for c in document(name)["block"]["chunks"])
    assert len(saved(name, "transactions")) == 58
    assert len(saved(name, "receipts")) == 313


@recorded
@pytest.mark.parametrize("name", [*WHOLE, *SHARDS])
def test_transactions(name: str) -> None:
    """The transactions of all chunks are listed, in the document's order."""
    items = [
        (shard["shard_id"], item["transaction"])
        for shard in shards_of(name)
        for item in (shard["chunk"] or {"transactions": ()})["transactions"]
    ]
    frame = saved(name, "transactions")
    assert frame["shard_id"].tolist() == [shard_id for shard_id, _ in items]
    for column, member in (("tx_hash", "hash"), ("nonce", "nonce"), ("signer_id", "signer_id")):
        assert frame[column].tolist() == [tx[member] for _, tx in items]


@recorded
@pytest.mark.parametrize("name", [*WHOLE, *SHARDS])
def test_receipts(name: str) -> None:
    """Each receipt that ran is one row: who, where, what it burnt, and how it ended."""
    ran = list(executions(name))
    frame = saved(name, "receipts")
    assert frame["order"].tolist() == list(range(len(ran)))
    assert frame["shard_id"].tolist() == [shard_id for shard_id, _, _ in ran]
    for column in ("receipt_id", "predecessor_id", "receiver_id"):
        assert frame[column].tolist() == [receipt[column] for _, receipt, _ in ran]
    assert frame["gas_burnt"].tolist() == [outcome["gas_burnt"] for _, _, outcome in ran]
    assert frame["tokens_burnt"].tolist() == [int(o["tokens_burnt"]) for _, _, o in ran]
    assert [list(lines) for lines in frame["logs"]] == [o["logs"] for _, _, o in ran]
    words = {
        "SuccessValue": "success_value",
        "SuccessReceiptId": "success_receipt_id",
        "Failure": "failure",
    }
    assert frame["status"].tolist() == [words[next(iter(o["status"]))] for _, _, o in ran]
    refunds = [receipt["predecessor_id"] == "system" for _, receipt, _ in ran]
    assert (frame["kind"] == "refund").tolist() == refunds


@recorded
@pytest.mark.parametrize("name", ["neardata_mainnet_151768255", "lake_000107503704_shard_2"])
def test_what_one_block_does_not_show(name: str) -> None:
    """The tree of a transaction spans blocks: what others have is missing, and a note says so."""
    frame = saved(name, "receipts")
    for column in ("parent_id", "depth", "subtree_gas"):
        assert frame[column].isna().all()
    assert frame["on_critical_path"].isna().all()
    waits = [waits_for is None for waits_for in frame["waits_for"]]
    assert waits == [len(data_ids) > 0 for data_ids in frame["input_data_ids"]]
    assert any(waits)
    assert "other blocks" in frame.attrs["notes"][0]


@recorded
def test_a_local_receipt() -> None:
    """A local receipt ran with its transaction, and is not among the receipts of the chunk."""
    name = "borealis_mainnet_34834053"
    receipts = saved(name, "receipts")
    assert receipts["is_local"].tolist() == [True, False, False]
    assert receipts["receipt_id"].iloc[0] == "EkdeeCvozyK5zXZSd3tk2VpakH4kiGfLHCBzfXZVAVvd"
    assert receipts["actions"].iloc[0] == "DeleteAccount"
    chunk = shards_of(name)[0]["chunk"]
    assert len(chunk["receipts"]) == 3
    assert saved(name, "chunks")["n_receipts"].tolist() == [2]


@recorded
def test_failures_are_named() -> None:
    """A failure without fields is named by its kind, a panic by its words."""
    expired = saved("lake_000000879765_shard_0", "receipts").iloc[0]
    assert (expired["status"], expired["error_kind"]) == ("failure", "DelegateActionExpired")
    assert expired["actions"] == "Delegate"
    panic = saved("lake_000107503704_shard_1", "receipts").iloc[0]
    assert panic["receipt_id"] == "BZDV6HVpNPeCQCByp56CyULNKgSbC1zgPMK4hoMjVFqG"
    assert "ERR_OUT_OF_FUND" in panic["error_message"]


@recorded
@pytest.mark.parametrize("name", [*WHOLE, *SHARDS])
def test_events(name: str) -> None:
    """Each event is one row, with the place of its receipt in the block."""
    prefix = "EVENT_JSON:"
    lines = [
        (order, receipt["receiver_id"], at, line)
        for order, (_, receipt, outcome) in enumerate(executions(name))
        for at, line in enumerate(outcome["logs"])
        if line.startswith(prefix)
    ]
    frame = saved(name, "events")
    places = zip(frame["order"], frame["contract_id"], frame["log_index"], strict=True)
    assert list(places) == [line[:3] for line in lines]
    bodies = [json.loads(line.removeprefix(prefix)) for *_, line in lines]
    assert frame["event"].tolist() == [body["event"] for body in bodies]
    assert frame["data"].tolist() == [body["data"] for body in bodies]


@recorded
def test_heights_of_a_shard() -> None:
    """A shard has no header: its new chunk states the height, and nothing the time."""
    receipts = saved("lake_000107503704_shard_2", "receipts")
    assert receipts["block_height"].tolist() == [107503704] * 6
    assert receipts["time"].isna().all()
    assert (
        saved("lake_000107503704_shard_2", "transactions")["block_height"].tolist()
        == [107503704] * 4
    )
    # The node of this private chain sent height_included 0 with the chunk.
    assert plain(saved("lake_000000879765_shard_0", "receipts")["block_height"]) == [None]


@recorded
def test_a_block_without_a_list_of_chunks() -> None:
    """Where the block lists no chunks, the shards have the new ones, and the mask their number."""
    block = saved("borealis_testnet_120572296", "blocks").iloc[0]
    limit = 4 * 1_000_000_000_000_000
    assert plain(block[["n_chunks", "gas_used", "gas_limit"]]) == [4, 65_779_310_854_781, limit]
    block = saved("borealis_mainnet_70834061_no_chunks", "blocks").iloc[0]
    assert plain(block[["n_chunks", "gas_used", "gas_limit"]]) == [4, 0, 0]
    chunks = saved("borealis_testnet_120572296", "chunks")
    assert chunks["shard_id"].tolist() == [0, 1, 2, 3]
    assert chunks["n_transactions"].tolist() == [0, 0, 0, 3]
    assert len(saved("borealis_mainnet_70834061_no_chunks", "chunks")) == 0


@recorded
def test_a_block_whose_shards_are_not_complete() -> None:
    """A document that lacks a shard, or the chunk of one, leaves gas and number unknown."""
    whole = document("borealis_testnet_120572296")
    without_chunk = [{**shard, "chunk": None} for shard in whole["shards"][:1]]
    for shards in (whole["shards"][1:], [*without_chunk, *whole["shards"][1:]]):
        data = json.dumps({**whole, "shards": shards}).encode()
        block = lk.read_response(data, "blocks").iloc[0]
        assert plain(block[["n_chunks", "gas_used", "gas_limit"]]) == [None, None, None]


@recorded
@pytest.mark.parametrize("name", BLOCKS_ALONE)
def test_the_block_file_of_a_lake(name: str) -> None:
    """The file of a block alone is a node's block: header and chunk headers."""
    header = document(name)["header"]
    assert saved(name, "blocks")["block_hash"].tolist() == [header["hash"]]
    chunks = document(name)["chunks"]
    assert saved(name, "chunks")["chunk_hash"].tolist() == [c["chunk_hash"] for c in chunks]
    with pytest.raises(errors.DecodeError, match=r'view="blocks" or view="chunks"'):
        saved(name, "receipts")


@recorded
def test_parts_of_a_block() -> None:
    """A chunk, a shard and the block alone, each as the service sends it, are read too."""
    name = "neardata_mainnet_151768255"
    whole = document(name)
    shard = whole["shards"][5]
    assert len(lk.read_response(json.dumps(whole["block"]).encode(), "chunks")) == 8
    chunk = json.dumps(shard["chunk"]).encode()
    assert lk.read_response(chunk, "chunks")["n_transactions"].tolist() == [47]
    assert len(lk.read_response(chunk, "transactions")) == 47
    assert len(lk.read_response(json.dumps(shard).encode(), "receipts")) == 99


HEADER = {
    "height": 8,
    "hash": "1" * 32,
    "prev_hash": "1" * 32,
    "epoch_id": "1" * 32,
    "chunks_included": 0,
    "gas_price": "100",
    "total_supply": "1000",
    "timestamp_nanosec": "5",
}
PAIR: dict[str, Any] = {
    "receipt": {
        "receipt_id": "1" * 32,
        "predecessor_id": "a.near",
        "receiver_id": "b.near",
        "receipt": {
            "Action": {
                "signer_id": "a.near",
                "actions": ["NewAction"],
                "input_data_ids": [],
                "output_data_receivers": [],
            }
        },
    },
    "execution_outcome": {
        "id": "1" * 32,
        "block_hash": "1" * 32,
        "outcome": {
            "logs": [],
            "receipt_ids": ["2" * 32],
            "gas_burnt": 7,
            "tokens_burnt": "9",
            "executor_id": "b.near",
            "status": {"SuccessValue": ""},
        },
    },
}


def block_of(*pairs: object) -> bytes:
    executed = {"receipt_execution_outcomes": pairs, "state_changes": []}
    shard = {"shard_id": 3, "chunk": None, **executed}
    block = {"author": "v.near", "header": HEADER}
    return json.dumps({"block": block, "shards": [shard]}).encode()


def test_a_receipt_without_a_chunk() -> None:
    """Receipts run on a shard without a new chunk; what they create is no row of this block."""
    frame = lk.read_response(block_of(PAIR), "receipts")
    assert frame["receipt_id"].tolist() == ["1" * 32]
    assert frame["actions"].tolist() == ["NewAction"]
    assert (frame["shard_id"].tolist(), frame["block_height"].tolist()) == ([3], [8])
    assert frame["time"].iloc[0].value == 5


def test_an_unknown_action_keeps_its_deposit_and_members() -> None:
    """An action of tomorrow has its name, its deposit and its other members in the table."""
    pair = json.loads(json.dumps(PAIR))
    later = {"Later": {"deposit": "5", "level": 2}}
    pair["receipt"]["receipt"]["Action"]["actions"] = [later]
    row = lk.read_response(block_of(pair), "actions").iloc[0]
    assert (row["action"], row["deposit"], row["details"]) == ("Later", 5, {"level": 2})


@pytest.mark.parametrize("view", ["blocks", "chunks", "transactions", "receipts", "events", "ft"])
def test_a_height_without_a_block(view: str) -> None:
    """The block service sends null for a skipped height, and the error says so."""
    with pytest.raises(errors.DecodeError, match="a height without a block") as caught:
        lk.read_response(b" null\n", view)
    assert "prev_height" in caught.value.remedy


# Documents that are refused ---------------------------------------------------------------


def pairs_of(document: Any) -> Any:
    """Return the executed receipts of the first shard of a document."""
    return document["shards"][0]["receipt_execution_outcomes"]


def execution_of(document: Any) -> Any:
    """Return the execution of the first executed receipt of a document."""
    return pairs_of(document)[0]["execution_outcome"]


def outcome_of(document: Any) -> Any:
    """Return the outcome of the first executed receipt of a document."""
    return execution_of(document)["outcome"]


def profile_of(document: Any) -> Any:
    """Return the first entry of the first gas profile of a document that has one."""
    outcomes = [pair["execution_outcome"]["outcome"] for pair in pairs_of(document)]
    profiles = [outcome["metadata"]["gas_profile"] for outcome in outcomes]
    return next(profile for profile in profiles if profile)[0]


def update_of(document: Any) -> Any:
    changes = document["shards"][0]["state_changes"]
    return next(item["change"] for item in changes if item["type"] == "account_update")


def header_of(document: Any) -> Any:
    return document["block"]["header"]


WASM_OR_HOST = {"cost_category": "WASM_HOST_COST", "gas_used": "7"}
EXECUTED = r"\$.shards\[0\].receipt_execution_outcomes\[0\]"
REFUSED: list[tuple[str, Callable[[Any], object], str]] = [
    ("outcomes", lambda d: outcome_of(d).update(tokens_burnt="-1"), "tokens_burnt"),
    ("outcomes", lambda d: outcome_of(d).update(tokens_burnt="1e9"), "tokens_burnt .1e9"),
    ("outcomes", lambda d: outcome_of(d).update(tokens_burnt=""), "tokens_burnt ''"),
    ("outcomes", lambda d: outcome_of(d).update(tokens_burnt="1" + "0" * 38), "above the supply"),
    ("outcomes", lambda d: outcome_of(d).update(gas_burnt=2**64), "gas_burnt 18446744073709551616"),
    ("outcomes", lambda d: outcome_of(d).update(gas_burnt="7"), f"{EXECUTED}.*gas_burnt"),
    ("outcomes", lambda d: profile_of(d).update(gas_used="1.0"), "not a text of digits"),
    ("outcomes", lambda d: profile_of(d).update(gas_used=1), "expected str instance"),
    ("outcomes", lambda d: profile_of(d).update(gas_used=str(2**64)), "does not fit uint64"),
    (
        "outcomes",
        lambda d: outcome_of(d).update(metadata={"gas_profile": [WASM_OR_HOST]}),
        "an entry without its cost",
    ),
    ("balances", lambda d: update_of(d).update(amount="1" + "0" * 38), "above the supply"),
    ("balances", lambda d: update_of(d).update(amount="+1"), "amount"),
    ("balances", lambda d: update_of(d).update(locked=None), "lacks a member"),
    ("balances", lambda d: update_of(d).update(storage_usage=2**63), "storage_usage"),
    ("receipts", lambda d: pairs_of(d)[0].update(receipt=None), rf"{EXECUTED}.receipt"),
    ("receipts", lambda d: execution_of(d).update(id="1" * 44), "is of 1111"),
    ("receipts", lambda d: execution_of(d).update(block_hash="1" * 44), "is of the block 1111"),
    ("receipts", lambda d: pairs_of(d).append(pairs_of(d)[0]), "two outcomes of "),
    ("receipts", lambda d: d["shards"].append(d["shards"][0]), "two outcomes of "),
    ("receipts", lambda d: d["shards"][0].update(shard_id=9), "shard 9 has a chunk of shard 0"),
    ("blocks", lambda d: header_of(d).update(height=-1), r"\$.block.header.height"),
    ("blocks", lambda d: header_of(d).update(height=2**63), r"\$.block.header.height"),
]


def refuse(change: Callable[[Any], object], view: str, problem: str) -> None:
    changed = document("neardata_mainnet_151768255_sliced")
    change(changed)
    with pytest.raises(errors.DecodeError, match=problem) as caught:
        lk.read_response(json.dumps(changed).encode(), view)
    assert caught.value.path


def without(part: Callable[[Any], Any], member: str) -> Callable[[Any], object]:
    return lambda document: part(document).pop(member)


@recorded
def test_other_documents_are_refused(subtests: pytest.Subtests) -> None:
    """A value that fits no column, or contradicts another one, is an error that names it."""
    for number, (view, change, problem) in enumerate(REFUSED):
        with subtests.test(number=number, problem=problem):
            refuse(change, view, problem)


@recorded
def test_no_member_is_taken_to_be_empty(subtests: pytest.Subtests) -> None:
    """A document without a list of the node's own documents is refused: it is not empty."""
    # Source: nearcore, chain/indexer-primitives/src/lib.rs, IndexerShard and IndexerChunkView;
    # core/primitives/src/views.rs, ExecutionOutcomeView and ReceiptView: all are required.
    required: list[tuple[Callable[[Any], Any], str]] = [
        (outcome_of, "logs receipt_ids gas_burnt status executor_id"),
        (lambda d: pairs_of(d)[0]["receipt"], "predecessor_id receiver_id receipt"),
        (
            lambda d: pairs_of(d)[0]["receipt"]["receipt"]["Action"],
            "actions input_data_ids output_data_receivers",
        ),
        (lambda d: d["shards"][0], "chunk receipt_execution_outcomes state_changes"),
        (lambda d: d["shards"][0]["chunk"], "receipts"),
    ]
    for part, members in required:
        for member in members.split():
            with subtests.test(member=member):
                problem = f"missing required field `{member}`"
                refuse(without(part, member), "receipts", problem)
