"""Saved answers are framed as live ones, whole or bare, and told apart when they are not that."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.frames.schemas import SCHEMAS
from ledgerkit.verbs import saved_responses

if TYPE_CHECKING:
    from pathlib import Path

HASH = "1" * 32
KEY = "ed25519:" + "1" * 32
FULL = {
    "account_id": "a.near",
    "pools": [{"pool_id": "p.near", "last_update_block_height": 3}],
    "tokens": [{"contract_id": "t.near", "balance": "5", "last_update_block_height": 9}],
    "nfts": [{"contract_id": "n.near", "last_update_block_height": None}],
    "state": {"balance": "10", "locked": "0", "storage_bytes": 1},
}
CHUNK_HEADER = {
    "chunk_hash": HASH,
    "shard_id": 4,
    "height_created": 7,
    "height_included": 8,
    "gas_used": 1,
    "gas_limit": 2,
    "balance_burnt": "3",
}
TX = {
    "hash": HASH,
    "signer_id": "a.near",
    "receiver_id": "b.near",
    "public_key": KEY,
    "nonce": 5,
    "actions": [{"Transfer": {"deposit": "7"}}],
}
CHUNK = {"author": "v.near", "header": CHUNK_HEADER, "transactions": [TX], "receipts": []}
BLOCK = {
    "author": "v.near",
    "chunks": [CHUNK_HEADER],
    "header": {
        "height": 8,
        "hash": HASH,
        "prev_hash": HASH,
        "epoch_id": HASH,
        "chunks_included": 1,
        "gas_price": "100",
        "total_supply": "1000",
        "timestamp": 1,
    },
}
OUTCOME = {
    "logs": [],
    "receipt_ids": [HASH],
    "gas_burnt": 1,
    "tokens_burnt": "1",
    "executor_id": "a.near",
    "status": {"SuccessReceiptId": HASH},
}
TX_RESULT = {
    "status": {"SuccessValue": ""},
    "transaction": TX,
    "transaction_outcome": {"id": HASH, "block_hash": HASH, "outcome": OUTCOME},
    "receipts_outcome": [
        {
            "id": HASH,
            "block_hash": HASH,
            "outcome": OUTCOME | {"receipt_ids": [], "status": {"SuccessValue": ""}},
        }
    ],
}
VALIDATOR = {"account_id": "v.near", "public_key": KEY, "stake": "9"}
STATUS = {
    "chain_id": "lab",
    "version": {"version": "2"},
    "sync_info": {
        "latest_block_hash": HASH,
        "latest_block_height": 5,
        "latest_block_time": "2026-02-14T22:03:20Z",
        "syncing": True,
    },
}
ACCOUNT_TX = {
    "account_id": "a.near",
    "transaction_hash": HASH,
    "tx_block_height": 5,
    "tx_block_timestamp": "9",
}
TRANSFER = {
    "account_id": "a.near",
    "asset_id": "native:near",
    "block_height": "5",
    "block_timestamp": "9",
    "amount": "-5",
}
ENTRY = {
    "current_account_id": "a.near",
    "predecessor_id": "b.near",
    "block_height": 5,
    "block_timestamp": 9,
    "key": "k",
    "value": {"a": 1},
}
# By view: a JSON-RPC result, and one column with the value that it gives.
RPC: dict[str, tuple[Any, str, Any]] = {
    "keys": (
        {"keys": [{"public_key": KEY, "access_key": {"nonce": 1, "permission": "FullAccess"}}]},
        "permission",
        "FullAccess",
    ),
    "blocks": (BLOCK, "block_height", 8),
    "chunks": (CHUNK, "n_transactions", 1),
    "transactions": (CHUNK, "deposit", 7),
    "receipts": (TX_RESULT, "receipt_id", HASH),
    "state": ({"values": [{"key": "aw==", "value": "dg=="}]}, "value", b"v"),
    "changes": (
        {"block_hash": HASH, "changes": [{"type": "t", "cause": {"type": "c"}, "change": {}}]},
        "cause",
        "c",
    ),
    "validators": ({"current_validators": [VALIDATOR]}, "stake", 9),
    "gas_price": ({"gas_price": "100"}, "gas_price", 100),
    "status": (STATUS, "syncing", True),
}
REST: dict[str, tuple[Any, str, Any]] = {
    "accounts": (FULL, "balance", 10),
    "accounts_of": ({"public_key": KEY, "account_ids": ["a.near"]}, "account_id", "a.near"),
    "ft": (FULL, "balance", 5),
    "nft": (FULL, "contract_id", "n.near"),
    "staking": (FULL, "pool_id", "p.near"),
    "top_holders": (
        {"token_id": "t.near", "accounts": [{"account_id": "a.near", "balance": "1"}]},
        "rank",
        1,
    ),
    "account_transactions": ({"account_txs": [ACCOUNT_TX], "txs_count": 1}, "tx_hash", HASH),
    "transfers_of": ({"transfers": [TRANSFER], "resume_token": None}, "change", -5),
    "key_values": ({"entries": [ENTRY]}, "value", {"a": 1}),
}


def dump(value: object) -> bytes:
    return json.dumps(value).encode()


def check(frame: pd.DataFrame, view: str, column: str, value: object) -> None:
    assert list(frame.columns) == [c.name for c in SCHEMAS[view]]
    assert frame[column].tolist() == [value]


def test_every_view_has_a_test() -> None:
    """No view of `read` is left out here; edges and events have one below."""
    assert {*RPC, *REST, *WHOLE_BLOCK, "edges", "events"} == set(saved_responses._VIEWS)


WHOLE_BLOCK = {
    "outcomes": ("gas_burnt", [1, 1]),
    "actions": ("deposit", [7]),
    "balances": ("amount", [2**126 - 1]),
    "data_receipts": ("data", ["MQ=="]),
}


@pytest.mark.parametrize("view", WHOLE_BLOCK)
def test_tables_of_a_whole_block(view: str) -> None:
    """A block document is read as each table that a collection of blocks has of it alone."""
    action = {
        "signer_id": "a.near",
        "actions": TX["actions"],
        "input_data_ids": [],
        "output_data_receivers": [],
    }
    receipt = {"predecessor_id": "a.near", "receiver_id": "b.near", "receipt_id": "2" * 32}
    data = {"Data": {"data_id": HASH, "data": "MQ==", "is_promise_resume": False}}
    conversion = {"id": HASH, "block_hash": HASH, "outcome": OUTCOME | {"receipt_ids": ["2" * 32]}}
    execution = {"id": "2" * 32, "block_hash": HASH, "outcome": OUTCOME | {"receipt_ids": []}}
    balance = {"amount": str(2**126 - 1), "locked": "0", "storage_usage": 1, "code_hash": HASH}
    shard = {
        "shard_id": 4,
        "chunk": {
            **CHUNK,
            "transactions": [
                {"transaction": TX, "outcome": {"execution_outcome": conversion, "receipt": None}}
            ],
            "receipts": [receipt | {"receipt_id": HASH, "receipt": data}],
        },
        "receipt_execution_outcomes": [
            {
                "execution_outcome": execution,
                "receipt": receipt | {"receipt": {"Action": action}},
                "tx_hash": HASH,
            }
        ],
        "state_changes": [
            {
                "type": "account_update",
                "cause": {"type": "receipt_processing", "receipt_hash": "2" * 32},
                "change": {"account_id": "b.near", **balance},
            }
        ],
    }
    frame = lk.read_response(dump({"block": BLOCK, "shards": [shard]}), view)
    column, values = WHOLE_BLOCK[view]
    assert list(frame.columns) == [c.name for c in SCHEMAS[f"collected_{view}"]]
    assert frame[column].tolist() == values
    assert frame["block_height"].tolist() == [8] * len(values)


@pytest.mark.parametrize("view", RPC)
def test_rpc_results(view: str) -> None:
    """A bare result is read as the whole answer is, whatever stands beside it there."""
    result, column, value = RPC[view]
    bare = lk.read_response(dump(result), view)
    check(bare, view, column, value)
    for extra in ({}, {"id": "x", "extra": []}):
        whole = lk.read_response(dump({"jsonrpc": "2.0", **extra, "result": result}), view)
        pd.testing.assert_frame_equal(bare, whole)


def test_rest_bodies(subtests: pytest.Subtests) -> None:
    """A body of the REST API is read as it is."""
    for view, (body, column, value) in REST.items():
        with subtests.test(view=view):
            check(lk.read_response(dump(body), view), view, column, value)


# By kind of document: one that is short, and all views that read it.
KINDS: dict[str, tuple[Any, set[str]]] = {
    "full": (FULL, {"accounts", "ft", "nft", "staking"}),
    "ft": ({"account_id": "a.near", "tokens": FULL["tokens"]}, {"ft"}),
    "nft": ({"account_id": "a.near", "tokens": FULL["nfts"]}, {"nft"}),
    "empty": ({"account_id": "a.near", "tokens": []}, {"ft", "nft"}),
    "staking": ({"account_id": "a.near", "pools": FULL["pools"]}, {"staking"}),
    "v0": ({"account_id": "a.near", "contract_ids": ["t.near"]}, set()),
    "v0 staking": ({"account_id": "a.near", "pools": ["p.near"]}, set()),
    "accounts_of": (REST["accounts_of"][0], {"accounts_of"}),
    "top_holders": (REST["top_holders"][0], {"top_holders"}),
    "indexer_status": ({"version": "1", "sync_block_height": 5}, set()),
    "health": ({"status": "ok"}, set()),
    "keys": (RPC["keys"][0] | {"block_hash": HASH}, {"keys"}),
    "block": (BLOCK, {"blocks", "chunks"}),
    "chunk": (CHUNK, {"chunks", "transactions"}),
    "transaction": (TX_RESULT, {"receipts", "edges", "events"}),
    "state": (RPC["state"][0] | {"block_hash": HASH}, {"state"}),
    "changes": (RPC["changes"][0], {"changes"}),
    "validators": (RPC["validators"][0], {"validators"}),
    "gas_price": (RPC["gas_price"][0], {"gas_price"}),
    "status": (STATUS, {"status"}),
    "account_transactions": (REST["account_transactions"][0], {"account_transactions"}),
    "transfers_of": (REST["transfers_of"][0], {"transfers_of"}),
    "key_values": (REST["key_values"][0], {"key_values"}),
    "view_account": ({"amount": "1", "code_hash": HASH, "block_hash": HASH}, set()),
    "view_access_key": ({"nonce": 1, "permission": "FullAccess"}, set()),
    "call_function": ({"result": [1], "logs": [], "block_hash": HASH}, set()),
    "nothing": ({}, set()),
    "unknown": ({"account_id": "a.near", "items": []}, set()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_document(kind: str) -> None:
    """A document is read as its own views; as any other it is an error, never an empty frame."""
    body, views = KINDS[kind]
    for view in views:
        frame = lk.read_response(dump(body), view)
        assert list(frame.columns) == [column.name for column in SCHEMAS[view]]
    for view in {
        "ft",
        "nft",
        "blocks",
        "edges",
        "actions",
        "key_values",
    } - views:  # a reader of each kind
        with pytest.raises(errors.DecodeError) as caught:
            lk.read_response(dump(body), view)
        assert view in str(caught.value)
        assert "has changed" not in str(caught.value)
        assert all(f'view="{name}"' in caught.value.remedy for name in views)
        assert caught.value.path is not None


@pytest.mark.parametrize("kind", ["v0", "v0 staking"])
def test_version_0_is_named(kind: str) -> None:
    """A response of version 0 has ids only: the error says so, and which version to save."""
    with pytest.raises(errors.DecodeError, match="version 0") as caught:
        lk.read_response(dump(KINDS[kind][0]), "staking")
    assert "/v1" in caught.value.remedy


@pytest.mark.parametrize(
    ("view", "body", "column", "value"),
    [
        ("ft", {"tokens": [{"contract_id": "t.near", "balance": "5"}]}, "balance", 5),
        ("nft", {"tokens": [{"contract_id": "n.near", "token_id": "1"}]}, "token_id", "1"),
        ("staking", {"pools": [{"pool_id": "p.near"}]}, "pool_id", "p.near"),
        ("accounts", {"tokens": [], "pools": [], "state": {}}, "n_tokens", 0),
    ],
)
def test_documents_without_their_account(
    view: str, body: dict[str, Any], column: str, value: object
) -> None:
    """A file does not know what was requested: the account is missing, the rest is read."""
    frame = lk.read_response(dump(body), view)
    assert frame[column].tolist() == [value]
    assert frame["account_id"].isna().tolist() == [True]


def test_accounts_without_their_key() -> None:
    """A list of account ids alone is read; its key is missing."""
    frame = lk.read_response(dump({"account_ids": ["a.near", "b.near"]}), "accounts_of")
    assert frame["account_id"].tolist() == ["a.near", "b.near"]
    assert frame["public_key"].isna().all()


def test_events() -> None:
    """The events of a saved transaction are those of its trace."""
    logs = ['EVENT_JSON:{"standard":"nep171","version":"1.0.0","event":"nft_mint","data":[]}']
    result = OUTCOME | {"receipt_ids": [], "status": {"SuccessValue": ""}, "logs": logs}
    executed = {"id": HASH, "block_hash": HASH, "outcome": result}
    frame = lk.read_response(dump(TX_RESULT | {"receipts_outcome": [executed]}), "events")
    assert frame[["receipt_id", "event"]].values.tolist() == [[HASH, "nft_mint"]]


def test_the_error_of_a_file_is_about_the_file() -> None:
    """A value that does not fit is named by its place; asking again would not help."""
    body = {"account_id": "a.near", "tokens": [{"contract_id": "t.near", "balance": 5}]}
    with pytest.raises(errors.DecodeError) as caught:
        lk.read_response(dump(body), "ft")
    assert caught.value.path == "$.tokens[0].balance"
    assert caught.value.sentence == (
        "the document can't be read as 'ft': "
        "Expected `str | null`, got `int` at $.tokens[0].balance"
    )
    assert "complete" in caught.value.remedy


@pytest.mark.parametrize("body", [b"{}", b"nonsense", dump({"receipts_outcome": {}})])
def test_a_trace_of_no_transaction(body: bytes) -> None:
    """The error of a trace's document is about the document too."""
    with pytest.raises(errors.DecodeError) as caught:
        lk.Trace.from_json(body)
    assert "has changed" not in str(caught.value)
    assert "complete" in caught.value.remedy


def test_several_transactions_are_read_one_by_one() -> None:
    """The advice for a document with several transactions is one that can be followed."""
    hashes = ("T1", "T2")
    body = dump({"transactions": [{"transaction": {"hash": name}} for name in hashes]})
    with pytest.raises(errors.InvalidRequestError) as caught:
        lk.read_response(body, "receipts")
    assert "several transactions" in caught.value.sentence
    assert "Trace.from_json(data, tx_hash=…)" in caught.value.remedy
    assert [lk.Trace.from_json(body, tx_hash=name).tx_hash for name in hashes] == list(hashes)


def test_edges() -> None:
    """A tree of one receipt has no edges."""
    assert len(lk.read_response(dump(TX_RESULT), "edges")) == 0


def test_what_a_view_call_returned() -> None:
    """A saved view call gives the decoded JSON, or bytes."""
    assert saved_responses.returned_value(dump({"result": list(b'{"a":1}'), "logs": []})) == {
        "a": 1
    }
    assert saved_responses.returned_value(dump({"result": [0, 255], "logs": []})) == b"\x00\xff"


def test_files_and_bytes(tmp_path: Path) -> None:
    """A path, its text and its bytes give the same frame."""
    path = tmp_path / "answer.json"
    path.write_bytes(dump(FULL))
    frames = [lk.read_response(source, "ft") for source in (path, str(path), path.read_bytes())]
    assert frames[0]["balance"].tolist() == [5]
    pd.testing.assert_frame_equal(frames[0], frames[1])
    pd.testing.assert_frame_equal(frames[0], frames[2])


@pytest.mark.parametrize("view", ["keys", "blocks", "chunks", "receipts", "view"])
def test_a_saved_error_names_no_request(view: str) -> None:
    """A file does not say what was requested: the error names no account, hash or block."""
    cause = {"name": "UNKNOWN_BLOCK", "info": {}}
    body = dump({"jsonrpc": "2.0", "id": 1, "error": {"name": "HANDLER_ERROR", "cause": cause}})
    with pytest.raises(errors.UnknownBlockError) as caught:
        saved_responses.returned_value(body) if view == "view" else lk.read_response(body, view)
    assert caught.value.request is None
    assert "request:" not in str(caught.value)


@pytest.mark.parametrize("view", ["keys", "ft", "blocks", "chunks", "receipts", "key_values"])
def test_what_is_no_answer(subtests: pytest.Subtests, view: str) -> None:
    """Anything else is a DecodeError with a path, for each view."""
    cases = [b"", b"nonsense", b"<html></html>", b"[1]", b"7", b"\xff", b'{"a":', b"[" * 10**5]
    for body in cases:
        with subtests.test(body=body[:20]):
            with pytest.raises(errors.DecodeError) as caught:
                lk.read_response(body, view)
            assert caught.value.path is not None
            assert caught.value.path.startswith("$")


@pytest.mark.parametrize("source", ["/no/such/file.json", "", "\0", ".", 5, None], ids=repr)
def test_sources_that_cannot_be_read(source: Any) -> None:
    """A file that is not there is refused by name."""
    with pytest.raises(errors.InvalidRequestError) as caught:
        lk.read_response(source, "ft")
    assert caught.value.field == "source"


@pytest.mark.parametrize("view", ["", "FT", "tokens", "edge", None, []], ids=repr)
def test_views_that_do_not_exist(view: Any) -> None:
    """A view that does not exist is refused, with those that do."""
    with pytest.raises(errors.InvalidRequestError) as caught:
        lk.read_response(b"{}", view)
    assert caught.value.field == "view"
    assert "accounts_of" in str(caught.value)
