"""The content of a host's response, a file or a variable raises no error of another library."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import errors
from tests.loopback import Reply, asking
from tests.unit import builders
from tools.campaigns._replay import Replay, connect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HASH = "1" * 32
PAIR = (HASH, "alice.near")
DEEP = b"[" * 100_000 + b"]" * 100_000
NO_UTF8 = b'"\xff"'
# Members that a decoder of the whole document leaves unread, and what decoding one would raise.
UNREADABLE = pytest.mark.parametrize("member", [NO_UTF8, b"1e999"])


def document(**replaced: bytes) -> bytes:
    """Write a transaction's result, with these texts in place of the values of the same name."""
    failing = builders.failing("FAILURE")
    ran = builders.outcome("R0", status=failing)
    body = builders.body("R0", {"Stake": {"stake": "STAKE"}})
    text = json.dumps(builders.result([ran], [body], status=failing)).encode()
    for name, value in replaced.items():
        text = text.replace(f'"{name}"'.encode(), value)
    return text.replace(json.dumps(failing["Failure"]).encode(), replaced.get("FAILURE", b"{}"))


def served(body: bytes, read: Callable[[], Any]) -> Any:
    """Read from a host that answers every request with one body."""
    with asking(lambda *_: Reply(200, body)):
        return read()


@UNREADABLE
def test_an_unreadable_error_member(member: bytes) -> None:
    """An `error` that is no text in UTF-8, or too large a number, is a DecodeError."""
    body = b'{"jsonrpc":"2.0","id":"ledgerkit","error":' + member + b"}"
    with pytest.raises(errors.DecodeError):
        served(body, lambda: lk.block("final"))
    with pytest.raises(errors.DecodeError):
        lk.read(body, "blocks")


@UNREADABLE
def test_an_unreadable_failure(member: bytes) -> None:
    """A failure that can't be decoded is a DecodeError with the place in the document."""
    with pytest.raises(errors.DecodeError) as caught:
        lk.Trace.from_json(document(FAILURE=member))
    assert "Failure" in (caught.value.path or "")


@UNREADABLE
def test_an_unreadable_action(member: bytes) -> None:
    """The content of an action is decoded with its frame, and a malformed one named."""
    trace = lk.Trace.from_json(document(STAKE=member))
    with pytest.raises(errors.DecodeError, match="Stake"):
        _ = trace.actions


@pytest.mark.parametrize("name", ["FAILURE", "STAKE"])
def test_a_member_nested_too_deeply(name: str) -> None:
    """Deep nesting is a DecodeError of the whole document."""
    with pytest.raises(errors.DecodeError, match="nested too deeply"):
        lk.Trace.from_json(document(**{name: DEEP}))


def test_an_unreadable_context() -> None:
    """A saved trace whose added member is not UTF-8 is read without it."""
    text = b'{"ledgerkit":{"blocks":{' + NO_UTF8 + b":[1,2]}}," + document()[1:]
    assert lk.Trace.from_json(text).tx_hash == "T"


def test_a_data_id_that_is_no_text() -> None:
    """An object in place of a data_id is a DecodeError, not an unhashable key."""
    receivers = [{"data_id": {"a": 1}, "receiver_id": "bob.near"}]
    body = builders.body("R0", builders.transfer(1), output_data_receivers=receivers)
    text = json.dumps(builders.result([builders.outcome("R0")], [body]))
    with pytest.raises(errors.DecodeError, match="data_id"):
        lk.Trace.from_json(text)


def test_pairs_without_outcomes() -> None:
    """A Transactions API document whose receipts have not run yet has no rows of outcomes."""
    pairs = [{"receipt": builders.body("R0", builders.transfer(1)), "execution_outcome": None}]
    transaction = {"hash": "T", "signer_id": "alice.near", "receiver_id": "bob.near"}
    trace = lk.Trace.from_json(
        {"transaction": transaction, "execution_outcome": None, "receipts": pairs}
    )
    assert trace.receipts["status"].tolist() == ["not_executed"]


@pytest.mark.parametrize(
    "body",
    [document(), b'{"transactions":[]}', b'{"result":null}', b"{}", b"[]", b'{"result":' + DEEP],
    ids=["bare", "Transactions API", "null", "empty", "list", "deep"],
)
def test_tx_of_another_document(body: bytes) -> None:
    """`tx` returns the result of a JSON-RPC response; any other document is a typed error."""
    with pytest.raises(errors.LedgerError):
        served(body, lambda: lk.tx(*PAIR))


def test_unreadable_members_of_a_list() -> None:
    """A member name that is no UTF-8 in a response without content is a DecodeError."""
    with pytest.raises(errors.DecodeError):
        lk.read(b'{"\xff":1}', "ft")


def test_a_returned_value_that_is_not_base64() -> None:
    """The value of a submission is a DecodeError if the node did not send base64."""
    replay = Replay()
    replay.change = lambda body, status: (
        re.sub(b'"SuccessValue":"[^"]*"', b'"SuccessValue":"%"', body),
        status,
    )
    sent = replay.local.world.summary.transactions[0]
    with connect(replay) as ledger:
        submission = lk.resume(sent.tx_hash, sent.signer_id, ledger=ledger)
        with pytest.raises(errors.DecodeError, match="base64"):
            _ = submission.value
    lk.disconnect()


@pytest.mark.parametrize("block_hash", [b"final", b"2026-01-01", b"x"])
def test_a_block_hash_that_is_none(block_hash: bytes) -> None:
    """A text in place of a block hash is a DecodeError, and never read as a finality or a time."""
    replay = Replay()
    sent = replay.local.world.summary.transactions[0]
    replay.change = lambda body, status: (
        re.sub(b'"block_hash":"[^"]*"', b'"block_hash":"' + block_hash + b'"', body),
        status,
    )
    with connect(replay) as ledger:
        for verb in (lk.trace, lk.resume):
            with pytest.raises(errors.DecodeError, match="block hash"):
                verb(sent.tx_hash, sent.signer_id, ledger=ledger)
    lk.disconnect()


def traced(pattern: bytes, text: bytes) -> lk.Trace:
    """Trace a transfer of the demo world; a pattern in the responses is replaced by a text."""
    replay = Replay()
    replay.change = lambda body, status: (re.sub(pattern, text, body), status)
    sent = replay.local.world.summary.transactions[0]
    with connect(replay) as ledger:
        return lk.trace(sent.tx_hash, sent.signer_id, ledger=ledger)


@pytest.mark.parametrize(
    ("member", "number"), [("height", -(2**63) - 1), ("height", 2**63), ("timestamp", 2**63)]
)
def test_a_number_that_fits_no_column(member: str, number: int) -> None:
    """A height or time of a block that a column cannot hold is refused."""
    with pytest.raises(errors.DecodeError, match=r"`int` [<>]= "):
        traced(rb'"%s":[0-9]+' % member.encode(), b'"%s":%d' % (member.encode(), number))


def test_a_shard_that_fits_no_column() -> None:
    """Rules with a shard id that a column cannot hold are not used."""
    trace = traced(rb'"shard_ids":\[[0-9]+', b'"shard_ids":[%d' % (2**63))
    assert trace.receipts["shard_id"].isna().all()


@pytest.mark.parametrize("data", ["\ud800", {"a": {1, 2}}, {"a": float("nan")}, 7, None])
def test_a_trace_of_something_else(data: Any) -> None:
    """Data that is no document, or that JSON cannot express, is refused; 7 is not seven bytes."""
    with pytest.raises(errors.LedgerError):
        lk.Trace.from_json(data)


@pytest.mark.parametrize("layout", ["\ud800", {"a": {"\ud800": 1}}])
def test_rules_with_a_lone_surrogate(layout: Any) -> None:
    """Rules that are no text in UTF-8 are a DecodeError."""
    with pytest.raises(errors.DecodeError):
        lk.Trace.from_json(document(), rules={"protocol_version": layout})


@pytest.mark.parametrize("path", ["missing.json", "nul\0l"])
def test_a_trace_of_no_file(path: str) -> None:
    """A path that can't be read is refused as by `read`."""
    with pytest.raises(errors.InvalidRequestError, match="a readable file"):
        lk.Trace.load(path)


def test_damaged_parquet(tmp_path: Path) -> None:
    """A file that is cut, or has a byte set to 255, is a frame or a DecodeError."""
    path = tmp_path / "ft.parquet"
    lk.write_parquet(pd.DataFrame({"balance": pd.Series([1, 2**127], dtype="u128")}), path)
    valid = path.read_bytes()
    cuts = [valid[:size] for size in range(0, len(valid), 97)]
    marks = [valid[:at] + b"\xff" + valid[at + 1 :] for at in range(0, len(valid), 41)]
    refused = 0
    for data in cuts + marks:
        path.write_bytes(data)
        try:
            lk.read_parquet(path)
        except errors.DecodeError:
            refused += 1
    assert refused >= len(cuts)


def test_the_doctor_of_an_unreadable_member() -> None:
    """A member that ledgerkit does not know and can't read is the error of its surface."""
    replay = Replay()
    replay.change = lambda body, status: (
        body.replace(b'"jsonrpc":"2.0"', b'"jsonrpc":"2.0\xff"'),
        status,
    )
    with connect(replay) as ledger:
        frame = lk.doctor(ledger=ledger)
    lk.disconnect()
    errors_by_surface = dict(zip(frame["surface"], frame["error"], strict=True))
    assert errors_by_surface["rpc"] == "DecodeError"
    assert pd.isna(errors_by_surface["api"])
