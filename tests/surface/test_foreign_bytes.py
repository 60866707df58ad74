"""The content of a host's response, a file or a variable raises no error of another library."""

from __future__ import annotations

import json
import re

import pytest

import ledgerkit as lk
from ledgerkit import errors
from tests.unit import builders
from tools.campaigns._replay import Replay, connect

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


@UNREADABLE
def test_an_unreadable_action(member: bytes) -> None:
    """The content of an action is decoded with its frame, and a malformed one named."""
    trace = lk.Trace.from_json(document(STAKE=member))
    with pytest.raises(errors.DecodeError, match="Stake"):
        _ = trace.actions


def test_an_unreadable_context() -> None:
    """A saved trace whose added member is not UTF-8 is read without it."""
    text = b'{"ledgerkit":{"blocks":{' + NO_UTF8 + b":[1,2]}}," + document()[1:]
    assert lk.Trace.from_json(text).tx_hash == "T"


def test_pairs_without_outcomes() -> None:
    """A Transactions API document whose receipts have not run yet has no rows of outcomes."""
    pairs = [{"receipt": builders.body("R0", builders.transfer(1)), "execution_outcome": None}]
    transaction = {"hash": "T", "signer_id": "alice.near", "receiver_id": "bob.near"}
    trace = lk.Trace.from_json(
        {"transaction": transaction, "execution_outcome": None, "receipts": pairs}
    )
    assert trace.receipts["status"].tolist() == ["not_executed"]


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
        for verb in (lk.trace, lk.track):
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


@pytest.mark.parametrize("path", ["missing.json", "nul\0l"])
def test_a_trace_of_no_file(path: str) -> None:
    """A path that can't be read is refused as by `read`."""
    with pytest.raises(errors.InvalidRequestError, match="a readable file"):
        lk.Trace.load(path)
