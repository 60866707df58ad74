"""What can't change is kept on disk: apart by network, without the key, checked when read."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import multiprocessing
import os
import shutil
import sqlite3
import stat
import struct
import subprocess
import sys
import warnings
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

import base58
import httpx
import pytest

import ledgerkit as lk
from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.errors import (
    InvalidRequestError,
    UnknownBlockError,
    UnmatchedResponseError,
)
from ledgerkit.frames import schemas
from ledgerkit.transport import disk_cache
from ledgerkit.verbs import readings
from tests.loopback import Reply, Server, as_json, failure, result, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.api.calls import Call

ROOT = Path(__file__).resolve().parents[2]
KEY = "PLANTED-mossw0rt/Qx+42=z&y"
DAY = 86400.0
HEADER = {
    "height": 100,
    "prev_hash": "1" * 32,
    "epoch_id": "1" * 32,
    "timestamp": 1,
    "timestamp_nanosec": "1",
    "gas_price": "1",
    "total_supply": "1",
    "chunks_included": 0,
    "latest_protocol_version": 80,
}
METADATA = json.dumps({"symbol": "TOK", "decimals": 6, "name": "Token", "spec": "ft-1.0.0"})


def name(text: object) -> str:
    """Invent a hash: 32 bytes in base58."""
    return base58.b58encode(hashlib.sha256(str(text).encode()).digest()).decode()


MOCK = httpx.MockTransport(lambda _: httpx.Response(200))
BLOCK, CHUNK, TX = name("block"), name("chunk"), name("tx")


class Chain:
    """A node that answers by the book; its state is another one with each answer."""

    def __init__(self, **more: Any) -> None:
        self.asked = 0
        self.more = more

    def __call__(self, _method: str, _path: str, _headers: object, body: bytes) -> Reply:
        self.asked += 1
        call = json.loads(body)
        name = call["method"].removeprefix("EXPERIMENTAL_")
        answer = self.more.get(name) or getattr(self, name)(call["params"])
        return answer if isinstance(answer, Reply) else result(answer)

    def block(self, params: dict[str, Any]) -> Any:
        """Answer `block`."""
        wanted = params.get("block_id")
        found = wanted if isinstance(wanted, str) else BLOCK
        return {"author": "a.near", "header": {**HEADER, "hash": found}, "chunks": []}

    def chunk(self, params: dict[str, Any]) -> Any:
        """Answer `chunk`."""
        numbers = dict.fromkeys(("shard_id", "gas_used", "gas_limit"), 0)
        header = {
            **numbers,
            "chunk_hash": params.get("chunk_id", CHUNK),
            "height_created": 100,
            "height_included": 100,
            "balance_burnt": "0",
        }
        return {"author": "a.near", "header": header, "transactions": [], "receipts": []}

    def query(self, params: dict[str, Any]) -> Any:
        """Answer `query`."""
        wanted = params.get("block_id")
        place = {"block_hash": wanted if isinstance(wanted, str) else BLOCK, "block_height": 100}
        if params["request_type"] == "call_function":
            return {"result": list(METADATA.encode()), "logs": [], **place}
        if params["request_type"] == "view_code":
            code = base64.b64encode(bytes(range(256)) * 8192).decode()
            return {"code_base64": code, "hash": BLOCK, **place}
        account = {"locked": "0", "code_hash": "1" * 32, "storage_usage": 100}
        return {"amount": str(self.asked), **account, **place}

    def tx_status(self, params: dict[str, Any]) -> Any:
        """Answer `tx`."""
        transaction = {"hash": params["tx_hash"], "signer_id": "a.near", "receiver_id": "b.near"}
        return {
            "final_execution_status": params["wait_until"],
            "status": {"SuccessValue": ""},
            "transaction": {**transaction, "actions": [], "nonce": 1, "public_key": "k"},
            "transaction_outcome": {
                "id": params["tx_hash"],
                "block_hash": BLOCK,
                "outcome": {
                    "logs": [],
                    "receipt_ids": [],
                    "gas_burnt": 1,
                    "tokens_burnt": "1",
                    "executor_id": "a.near",
                    "status": {"SuccessValue": ""},
                },
                "proof": [],
            },
            "receipts_outcome": [],
            "receipts": [],
        }

    tx = tx_status


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder that is not there yet."""
    return tmp_path / "kept"


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Give a clock of one's own, by which entries grow old."""
    time = [1_700_000_000.0]
    monkeypatch.setattr(disk_cache.DiskCache, "now", lambda _: time[0])
    return time


@contextmanager
def opened(server: Server, cache: Any, **options: Any) -> Iterator[lk.Ledger]:
    options = {"retries": lk.RetryPolicy(attempts=1), "rpc_url": server.url, **options}
    try:
        with lk.connect("lab", api_url=server.url, cache=cache, **options) as ledger:
            yield ledger
    finally:
        lk.disconnect()


AT = validation.block_reference(BLOCK)
FINAL = validation.block_reference("final")
KEPT: dict[str, Call[Any]] = {
    "block": rpc.block(AT),
    "chunk": rpc.chunk(CHUNK),
    "chunk of a block": rpc.chunk_of(BLOCK, 0),
    "transaction": rpc.transaction(TX, "a.near", "FINAL"),
    "transaction alone": rpc.transaction(TX, "a.near", "FINAL", receipts=False),
    "account": rpc.view_account("a.near", AT),
    "code": rpc.view_code("a.near", AT),
    "view": rpc.call_function("a.near", "get", b"{}", AT),
    "metadata": readings.metadata_call("a.near", FINAL),
}
NOT_KEPT: dict[str, Call[Any]] = {
    "block by finality": rpc.block(FINAL),
    "optimistic block": rpc.block(validation.block_reference("optimistic")),
    "block by height": rpc.block(validation.block_reference(100)),
    "genesis": rpc.block(validation.block_reference("genesis")),
    "chunk by height": rpc.chunk_of(100, 0),
    "account at the head": rpc.view_account("a.near", FINAL),
    "account by height": rpc.view_account("a.near", validation.block_reference(100)),
    "view at the head": rpc.call_function("a.near", "get", b"{}", FINAL),
    "executed": rpc.transaction(TX, "a.near", "EXECUTED"),
    "raw": rpc.call("block", {"block_id": BLOCK}),
}


# What is kept, and what is not ------------------------------------------------------------


@pytest.mark.parametrize("call", KEPT.values(), ids=KEPT)
@pytest.mark.parametrize("in_flight", [8, 16])
def test_a_second_session_asks_nothing_that_cannot_change(call, in_flight, folder):
    """What can't change is answered from the folder, equal to what the host sent."""
    with serve(Chain()) as server:
        with opened(server, folder, in_flight=in_flight) as ledger:
            first = ledger.send(call)
        with opened(server, folder, in_flight=in_flight) as ledger:
            again = ledger.send(call)
            assert ledger.send_many([call] * 3, progress=False) == [first] * 3
        assert again == first
        assert len(server.requests) == 1


@pytest.mark.parametrize("call", NOT_KEPT.values(), ids=NOT_KEPT)
def test_what_may_change_is_asked_each_time(call, folder):
    """The head, a height that may be reorganised and an unfinished transaction are not kept."""
    with serve(Chain()) as server:
        for _ in range(2):
            with opened(server, folder) as ledger:
                ledger.send(call)
        assert len(server.requests) == 2
        with opened(server, folder) as ledger:
            assert lk.cache_info(ledger)["entries"].sum() == 0


LIES: dict[str, tuple[Call[Any], str, dict[str, str]]] = {
    "another block": (rpc.block(AT), "block", {"block_id": name("other")}),
    "another chunk": (rpc.chunk(CHUNK), "chunk", {"chunk_id": name("other")}),
    "an account elsewhere": (
        rpc.view_account("a.near", AT),
        "query",
        {"block_id": name("other"), "request_type": "view_account"},
    ),
    "another transaction": (
        rpc.transaction(TX, "a.near", "FINAL"),
        "tx_status",
        {"tx_hash": name("other"), "wait_until": "FINAL"},
    ),
}


@pytest.mark.parametrize(("call", "method", "params"), LIES.values(), ids=LIES)
def test_an_answer_about_something_else_is_neither_returned_nor_kept(call, method, params, folder):
    """An answer about another block, chunk or transaction than was asked for is an error."""
    wrong = getattr(Chain(), method)(params)
    with serve(Chain(**{method: wrong})) as server:
        for _ in range(2):
            with opened(server, folder) as ledger, pytest.raises(UnmatchedResponseError):
                ledger.send(call)
        assert len(server.requests) == 2


PANIC = {"error": "wasm execution failed: x", "logs": [], "block_hash": BLOCK, "block_height": 1}


@pytest.mark.parametrize(
    "reply",
    [failure("UNKNOWN_BLOCK", {}), Reply(500, b"{}"), Reply(200, b"<html>"), result(PANIC)],
    ids=["unknown", "failed", "html", "panic"],
)
def test_an_error_is_never_kept(reply, folder):
    """What failed once is asked again, at a block's hash too."""
    call = KEPT["view"]
    with serve(Chain(query=reply)) as server, opened(server, folder) as ledger:
        for _ in range(2):
            with pytest.raises(lk.LedgerError):
                ledger.send(call)
        assert len(server.requests) == 2
        assert lk.cache_info(ledger)["entries"].sum() == 0


def test_an_answer_with_a_failing_status_stays_in_memory(folder):
    """A body is believed before its status, but not for the next session."""
    document = {"jsonrpc": "2.0", "id": 1, "result": Chain().block({"block_id": BLOCK})}
    reply = as_json(document, 500)
    with serve(Chain(block=reply)) as server:
        for _ in range(2):
            with opened(server, folder) as ledger:
                assert ledger.send(KEPT["block"]) == ledger.send(KEPT["block"])
        assert len(server.requests) == 2


def test_metadata_is_asked_again_after_its_lifetime(folder, now):
    """Metadata is believed for a day, or as long as one says, also within one session."""
    call = KEPT["metadata"]
    with serve(Chain()) as server:
        with opened(server, folder) as ledger:
            ledger.send(call)
            now[0] += DAY - 1
            ledger.send(call)
            assert len(server.requests) == 1
        with opened(server, folder) as ledger:
            ledger.send(call)
            assert len(server.requests) == 1
            now[0] += 1
            ledger.send(call)
            assert len(server.requests) == 2
        now[0] += 61
        with opened(server, lk.Cache(folder, metadata_s=60)) as ledger:
            ledger.send(call)
            assert len(server.requests) == 3
            now[0] -= 10  # a clock that was set back: its age is unknown
        with opened(server, folder) as ledger:
            ledger.send(call)
            assert len(server.requests) == 4


def test_what_cannot_change_has_no_lifetime(folder, now):
    """A block is believed after years."""
    with serve(Chain()) as server:
        for _ in range(2):
            with opened(server, folder) as ledger:
                ledger.send(KEPT["block"])
            now[0] += 3650 * DAY
        assert len(server.requests) == 1


def test_metadata_that_is_none_is_not_kept(folder):
    """What a contract returns in place of metadata may be corrected any time."""
    broken = {"result": list(b"null"), "logs": [], "block_hash": BLOCK, "block_height": 100}
    with serve(Chain(query=broken)) as server:
        for _ in range(2):
            with opened(server, folder) as ledger:
                ledger.send(KEPT["metadata"])
        assert len(server.requests) == 2


def test_off_unless_asked_for(folder, monkeypatch):
    """Without `cache=`, or with False, nothing is written anywhere."""
    monkeypatch.chdir(folder.parent)
    with serve(Chain()) as server:
        for cache in (None, False):
            with opened(server, cache) as ledger:
                ledger.send(KEPT["block"])
                with pytest.raises(InvalidRequestError) as caught:
                    lk.cache_info(ledger)
                assert "lab was connected without a cache" in str(caught.value)
        assert len(server.requests) == 2
    assert list(folder.parent.iterdir()) == []


# Networks apart ---------------------------------------------------------------------------


def test_two_networks_never_share_an_entry(folder):
    """The same hash on another host, port or path is another question."""
    with serve(Chain()) as one, serve(Chain()) as other:
        for server, path in ((one, ""), (other, ""), (one, "/v1"), (one, "/v2")):
            with opened(server, folder, rpc_url=server.url + path) as ledger:
                ledger.send(KEPT["account"])
        with opened(one, folder, rpc_url=one.url + "/") as ledger:
            assert ledger.send(KEPT["account"]).amount == "1"
        assert len(one.requests) == 3
        assert len(other.requests) == 1


def test_an_archival_answer_belongs_to_the_archival_host(folder):
    """What the archival host answered is found again where it is connected, and nowhere else."""
    gone = Chain(block=failure("UNKNOWN_BLOCK", {}))
    with serve(gone) as near, serve(Chain()) as archive:
        for _ in range(2):
            with opened(near, folder, archival_rpc_url=archive.url) as ledger:
                ledger.send(KEPT["block"])
        assert (len(near.requests), len(archive.requests)) == (1, 1)
        with opened(near, folder) as ledger, pytest.raises(UnknownBlockError):
            ledger.send(KEPT["block"])


UNFIT: list[tuple[dict[str, Any], str]] = [
    # The worlds of the embedded ledger begin anew with the same hashes.
    ({"network": "local", "cache": True}, "cannot be used with the embedded ledger"),
    ({"network": "local", "cache": lk.Cache("kept")}, "cannot be used with the embedded ledger"),
    # What answers in the place of mainnet must not leave answers under its address.
    ({"network": "mainnet", "transport": MOCK, "cache": True}, "cache"),
    # Answers of earlier sessions would be missing in the recording.
    ({"network": "mainnet", "record": "case.lk", "cache": "kept"}, "used while recording"),
    # The user's own folder is for networks that live on.
    (
        {"network": "lab", "rpc_url": "http://127.0.0.1:3030", "cache": True},
        "expected a folder, because a ledger on this machine",
    ),
]


@pytest.mark.parametrize(("options", "words"), UNFIT)
def test_a_ledger_whose_answers_are_not_kept(options, words, tmp_path, monkeypatch):
    """A cache is refused where answers are not those of a lasting network; nothing is written."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidRequestError, match=words) as caught:
        lk.connect(**options)
    assert caught.value.field == "cache"
    assert list(tmp_path.iterdir()) == []


def test_the_default_folder(monkeypatch, tmp_path):
    """True is the folder that the system has for a user's caches; connecting makes none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with lk.connect("mainnet", cache=True) as ledger:
        info = lk.cache_info(ledger)
    lk.disconnect()
    assert Path(info.attrs["path"]).is_relative_to(tmp_path)
    assert info.attrs["max_bytes"] == 2**30
    assert list(tmp_path.iterdir()) == []


def test_the_missing_extra_is_named(monkeypatch):
    """Without platformdirs the error says how to install it, or to name a folder."""
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    with pytest.raises(InvalidRequestError) as caught:
        lk.connect("mainnet", cache=True)
    assert 'pip install "ledgerkit[cache]"' in str(caught.value)


BAD = [
    ({"path": 7}, "path 7"),
    ({"path": ""}, "path ''"),
    ({"max_bytes": 10}, "max_bytes 10"),
    ({"max_bytes": 1e9}, "max_bytes 1000000000.0"),
    ({"metadata_s": 0}, "metadata_s 0"),
]


@pytest.mark.parametrize(("options", "told"), BAD)
def test_bad_bounds_are_named(options, told):
    """What makes no sense is refused by name."""
    with pytest.raises(InvalidRequestError) as caught:
        lk.Cache(**options)
    assert told in str(caught.value)


# Bounds -----------------------------------------------------------------------------------


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def test_the_bound_holds_and_what_was_used_least_goes(folder, now):
    """The file stays below its bound; what was used lately stays, the oldest goes."""
    bound = 2**20
    accounts = [rpc.view_account(f"{'x' * 40}{i}.near", AT) for i in range(6000)]
    with serve(Chain()) as server, opened(server, lk.Cache(folder, max_bytes=bound)) as ledger:
        store = ledger.disk_cache
        assert store is not None
        body = b"x" * 300
        for i, call in enumerate(accounts):
            now[0] += 1
            store.put(store.key(call, "rpc"), "read", now[0], body)
            if i % 500 == 0:
                now[0] += 4000  # the last use is known to the hour
                assert store.get(store.key(accounts[0], "rpc"), "read") is not None
        held = [c for c in accounts if store.get(store.key(c, "rpc"), "read")]
        assert 1000 < len(held) < 6000
        assert held == [accounts[0], *accounts[1 - len(held) :]]
        store.put(store.key(KEPT["code"], "rpc"), "read", now[0], b"x" * bound)  # larger than all
        assert store.get(store.key(KEPT["code"], "rpc"), "read") is None
    assert size_of(folder) <= bound


def test_large_answers_keep_to_the_bound_too(folder):
    """A bound counts what the file takes, whatever the answers' size."""
    bound = 4 * 2**20
    with serve(Chain()) as server, opened(server, lk.Cache(folder, max_bytes=bound)) as ledger:
        store = ledger.disk_cache
        assert store is not None
        for size in (900_000, 200, 5000, 70_000) * 30:
            call = rpc.view_account(f"a{os.urandom(8).hex()}.near", AT)
            store.put(store.key(call, "rpc"), "read", 1.0, b"x" * size)
        assert 0.5 * bound < int(lk.cache_info(ledger)["bytes"].sum()) < bound
    assert size_of(folder) <= bound


# The key ----------------------------------------------------------------------------------


def spellings(key: str) -> list[bytes]:
    """Spell a key in every way it might be written."""
    found = [key, quote(key), quote(key, safe=""), quote_plus(key), json.dumps(key)[1:-1]]
    for pad in range(3):  # base64 has three ways to begin
        codes = (base64.b64encode, base64.urlsafe_b64encode)
        found += [encode(b"-" * pad + key.encode())[4:-4].decode() for encode in codes]
    digest = hashlib.sha256(key.encode()).hexdigest()
    return [one.encode() for one in (*found, key[:7], "mossw0rt", digest, key.encode().hex())]


@pytest.mark.parametrize("key_in", ["header", "query"])
def test_the_key_is_nowhere_in_the_folder(key_in, folder):
    """The folder holds the key in no spelling, also where a host or an address repeats it."""

    def echo(method: str, path: str, headers: Any, body: bytes) -> Reply:
        answer = json.loads(Chain()(method, path, headers, body).body)
        if json.loads(body)["params"].get("account_id") == "echo.near":
            answer["seen"] = f"{path} {headers.get('authorization')}"
        return as_json(answer)

    with serve(echo) as server:
        at = f"{server.url}/{quote('path-' + KEY, safe='')}"
        for _ in range(2):
            with opened(server, folder, rpc_url=at, api_key=KEY, key_in=key_in) as ledger:
                ledger.send_many(list(KEPT.values()), progress=False)
                ledger.send(rpc.view_account("echo.near", AT))
                files = list(folder.iterdir())  # with the journal of an open file
                data = b"".join(file.read_bytes() for file in files)
                assert [one for one in spellings(KEY) if one in data] == []
                assert b"127.0.0.1" not in data
                assert lk.cache_info(ledger)["entries"].sum() == len(KEPT)
        assert len(server.requests) == len(KEPT) + 2
    data = b"".join(file.read_bytes() for file in folder.iterdir())
    assert [one for one in spellings(KEY) if one in data] == []


def test_a_short_key_that_a_host_repeats_is_not_kept(folder):
    """A key too short to be hidden keeps the whole answer out of the folder."""
    answer = {**Chain().block({"block_id": BLOCK}), "author": "hunter2"}
    with serve(Chain(block=answer)) as server, opened(server, folder, api_key="hunter2") as ledger:
        ledger.send(KEPT["block"])
        assert lk.cache_info(ledger)["entries"].sum() == 0


def test_the_folder_is_the_users_alone(folder):
    """Who else works on the machine reads nothing."""
    with serve(Chain()) as server, opened(server, folder) as ledger:
        ledger.send(KEPT["block"])
        if os.name == "posix":
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


# Nothing is believed ----------------------------------------------------------------------


FILE = "answers-1.sqlite3"
HARM = {
    "body": "UPDATE answers SET body = body || x'20'",
    "cut": "UPDATE answers SET body = substr(body, 1, 20)",
    "kind": "UPDATE answers SET kind = 'chunk'",
    "bad text": "UPDATE answers SET kind = CAST(x'ff' AS TEXT)",
    "number": "UPDATE answers SET body = 7",
    "age": "UPDATE answers SET since = 'x'",
    "older": "UPDATE answers SET since = since - 1",
    "seal": "UPDATE answers SET seal = x'00'",
}


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
def test_an_entry_that_was_changed_is_dropped_and_asked_anew(harm, folder, caplog):
    """A damaged or foreign entry is not used, is logged, and is replaced."""
    call = KEPT["block"]
    with serve(Chain()) as server:
        with opened(server, folder) as ledger:
            first = ledger.send(call)
        with closing(sqlite3.connect(folder / FILE)) as base:
            base.execute(harm)
            base.commit()
        with caplog.at_level(logging.INFO, "ledgerkit"), opened(server, folder) as ledger:
            assert ledger.send(call) == first
        assert "was dropped: its checksum is wrong" in caplog.text
        with opened(server, folder) as ledger:
            assert ledger.send(call) == first
        assert len(server.requests) == 2


def test_entries_in_each_others_place_are_dropped(folder):
    """A whole entry under the key of another is not believed."""
    other = rpc.block(validation.block_reference(name("other")))
    with serve(Chain()) as server:
        with opened(server, folder) as ledger:
            ledger.send_many([KEPT["block"], other], progress=False)
        with closing(sqlite3.connect(folder / FILE)) as base:
            (one, two) = base.execute("SELECT key FROM answers").fetchall()
            for old, new in ((one[0], b"x"), (two[0], one[0]), (b"x", two[0])):
                base.execute("UPDATE answers SET key = ? WHERE key = ?", (new, old))
            base.commit()
        with opened(server, folder) as ledger:
            assert ledger.send(KEPT["block"]).header.hash == BLOCK
            assert ledger.send(other).header.hash == name("other")
        assert len(server.requests) == 4


def test_a_fitting_entry_that_answers_something_else_is_dropped(folder, caplog):
    """A checksum proves no answer: what is read is checked as a live answer is."""
    wrong = json.dumps({"result": Chain().block({"block_id": name("other")})}).encode()
    with serve(Chain()) as server, opened(server, folder) as ledger:
        store = ledger.disk_cache
        assert store is not None
        store.put(store.key(KEPT["block"], "rpc"), "block", 1.0, wrong)
        assert ledger.send(KEPT["block"]).header.hash == BLOCK
    assert "was dropped: it is no response to its call" in caplog.text


@pytest.mark.parametrize("harm", ["noise", "cut", "middle", "schema", "name"])
def test_a_broken_file_begins_anew(harm, folder, caplog):
    """A file that is no database any more is replaced; the answers come all the same."""
    calls = [rpc.view_code(f"a{i}.near", AT) for i in range(3)]
    with serve(Chain()) as server:
        with opened(server, folder) as ledger:
            first = ledger.send_many(calls, progress=False)
        data = (folder / FILE).read_bytes()
        harmed = {
            "noise": os.urandom(5000),
            "cut": data[: len(data) // 2 // 4096 * 4096],
            "schema": data.replace(b"CREATE INDEX by_use", b"\xca\xfeEATE INDEX by_use"),
            "name": data.replace(b"answers", b"answerz"),
            "middle": data[:4096] + b"\xff" * (len(data) - 8192) + data[-4096:],
        }
        (folder / FILE).write_bytes(harmed[harm])
        for _ in range(2):
            with opened(server, folder) as ledger:
                assert ledger.send_many(calls, progress=False) == first
        with opened(server, folder) as ledger:
            assert lk.cache_info(ledger)["entries"].sum() == 3
        assert len(server.requests) == 6
    assert "was broken and is recreated" in caplog.text


def test_a_folder_that_is_removed_costs_no_answer(folder):
    """A folder may go while it is in use."""
    with serve(Chain()) as server:
        with warnings.catch_warnings(), opened(server, folder) as ledger:
            warnings.simplefilter("ignore", UserWarning)
            ledger.send(KEPT["block"])
            shutil.rmtree(folder)
            ledger.send(KEPT["chunk"])
            ledger.send(KEPT["account"])
        with opened(server, folder) as ledger:
            ledger.send(KEPT["chunk"])
            assert lk.cache_info(ledger)["entries"].sum() == 1


def test_another_programs_file_is_left_alone(folder):
    """A database of another program is not touched: one warning, and every answer comes."""
    folder.mkdir()
    with closing(sqlite3.connect(folder / FILE)) as base:
        base.execute("CREATE TABLE theirs (x)")
        base.commit()
    before = (folder / FILE).read_bytes()
    with serve(Chain()) as server, opened(server, folder) as ledger:
        with pytest.warns(UserWarning, match="belongs to another program") as told:
            ledger.send(KEPT["block"])
        assert len(told) == 1
        ledger.send(KEPT["account"])
    assert (folder / FILE).read_bytes() == before


ENDLESS = {
    "view": """
        ALTER TABLE answers RENAME TO old;
        CREATE VIEW answers AS
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers)
        SELECT CAST(n AS BLOB) AS key, kind, since, used, size, seal, body FROM numbers, old""",
    "trigger": """
        DELETE FROM answers;
        CREATE TRIGGER endless AFTER INSERT ON answers BEGIN
            DELETE FROM answers WHERE 0 > (SELECT sum(n) FROM (
                WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers)
                SELECT n FROM numbers
            ));
        END""",
}


@pytest.mark.parametrize("harm", ENDLESS.values(), ids=ENDLESS)
def test_a_file_computes_nothing(harm, folder, caplog):
    """A file with a view or a trigger, which could compute without an end, is recreated."""
    with serve(Chain()) as server:
        with opened(server, folder) as ledger:
            first = ledger.send(KEPT["block"])
        with closing(sqlite3.connect(folder / FILE)) as base:
            base.executescript(harm)
        for _ in range(2):
            with opened(server, folder) as ledger:
                assert ledger.send(KEPT["block"]) == first
        assert len(server.requests) == 2
    assert "its tables are not those of ledgerkit" in caplog.text


def hot_journal(path: Path) -> bytes:
    """Return a rollback journal that names a super-journal, which SQLite deletes afterwards."""
    # https://www.sqlite.org/fileformat.html#the_rollback_journal and, for the end of the file,
    # `readSuperJournal` in SQLite's pager.c.
    magic = bytes.fromhex("d9d505f920a163d7")
    header = magic + struct.pack(">5I", 0, 0, 1, 512, 4096)
    name = bytes(path)
    total = sum(name)
    end = struct.pack(">I", 2**30 // 4096 + 1) + name + struct.pack(">2I", len(name), total) + magic
    return header.ljust(512, b"\0") + end


def test_a_journal_deletes_no_file_that_it_names(folder, tmp_path):
    """SQLite deletes the super-journal that a journal names: no journal is ever used."""
    mine = tmp_path / "anything.txt"
    mine.write_text("mine")
    with serve(Chain()) as server:
        with opened(server, folder) as ledger:
            ledger.send(KEPT["block"])
        (folder / f"{FILE}-journal").write_bytes(hot_journal(mine))
        with opened(server, folder) as ledger:
            assert ledger.send(KEPT["block"]).header.hash == BLOCK
        assert mine.read_text() == "mine"
        assert len(server.requests) == 1


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["link", "dangling", "folder", "pipe"])
def test_only_regular_files_are_opened(kind, suffix, folder, tmp_path):
    """A link, folder or pipe in place of a file switches the cache off, and nothing is touched."""
    folder.mkdir()
    path, outside = folder / f"{FILE}{suffix}", tmp_path / "outside"
    if kind == "link":
        outside.write_bytes(b"")
    if kind in ("link", "dangling"):
        path.symlink_to(outside)
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    with (
        serve(Chain()) as server,
        opened(server, folder) as ledger,
        pytest.warns(UserWarning, match="is not a regular file"),
    ):
        assert ledger.send(KEPT["block"]).header.hash == BLOCK
    assert outside.exists() == (kind == "link")
    assert not outside.exists() or outside.read_bytes() == b""
    assert path.is_symlink() == (kind in ("link", "dangling"))


# A disk that fails ------------------------------------------------------------------------


def test_a_folder_that_cannot_be_made(tmp_path):
    """Where there can be no folder the answers come, with one warning that names it."""
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "kept"
    with serve(Chain()) as server, opened(server, folder) as ledger:
        with pytest.warns(UserWarning, match="the cache in .*kept is switched off") as told:
            ledger.send_many(list(KEPT.values()), progress=False)
        assert len(told) == 1
        assert told[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ledger.send(rpc.block(validation.block_reference(name("other"))))
            info = lk.cache_info(ledger)
        assert info["entries"].sum() == 0
        assert info["misses"].sum() == len(KEPT) + 1
        assert len(server.requests) == len(KEPT) + 1


def test_a_full_disk(folder):
    """A disk that is full costs no answer."""
    with serve(Chain()) as server, opened(server, folder) as ledger:
        ledger.send(KEPT["block"])
        store = ledger.disk_cache
        assert store is not None
        assert store._connection is not None
        [pages] = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.warns(UserWarning, match="full"):
            assert len(ledger.send(KEPT["code"]).code_base64) == 2**21
        assert len(server.requests) == 2


def test_a_busy_file_costs_no_answer(folder, monkeypatch):
    """While another process holds the file, answers come without it, and without a warning."""
    monkeypatch.setattr(disk_cache, "_BUSY_S", 0.01)
    with serve(Chain()) as server, opened(server, folder) as ledger:
        ledger.send(KEPT["block"])
        with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as base:
            base.execute("BEGIN IMMEDIATE")
            ledger.send(KEPT["account"])
            base.execute("ROLLBACK")
        assert lk.cache_info(ledger)["entries"].sum() == 1
        ledger.send(KEPT["chunk"])
        assert lk.cache_info(ledger)["entries"].sum() == 2


# Side by side -----------------------------------------------------------------------------


PROCESS = """
import sys, base58, hashlib, ledgerkit as lk
from ledgerkit import validation as checks
from ledgerkit.api import rpc
url, folder = sys.argv[1:]
names = [base58.b58encode(hashlib.sha256(str(i).encode()).digest()).decode() for i in range(150)]
with lk.connect("lab", rpc_url=url, api_url=url, cache=lk.Cache(folder, max_bytes=2**20)) as ledger:
    calls = [rpc.block(checks.block_reference(one)) for one in names]
    ids = [f"{one.lower()[:30]}.near" for one in names]
    calls += map(rpc.view_account, ids, map(checks.block_reference, names))
    for _ in range(3):
        ledger.session._memory_cache.clear()
        found = ledger.send_many(calls, progress=False)
        assert [one.header.hash for one in found[:150]] == names
        assert [one.block_hash for one in found[150:]] == names
"""


def test_two_processes_share_a_folder(folder):
    """Two processes fill one folder at once from nothing; the file is whole afterwards."""
    with serve(Chain()) as server:
        words = [sys.executable, "-W", "error", "-c", PROCESS, server.url, str(folder)]
        running = [subprocess.Popen(words, cwd=ROOT) for _ in range(2)]
        assert [process.wait(300) for process in running] == [0, 0]
        asked = len(server.requests)
        assert 300 <= asked <= 600
        with opened(server, folder) as ledger:
            ledger.send_many(
                [rpc.block(validation.block_reference(name(i))) for i in range(150)], progress=False
            )
        assert len(server.requests) == asked
    with closing(sqlite3.connect(folder / FILE)) as base:
        assert base.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert base.execute("SELECT count(*) FROM answers").fetchone() == (300,)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_opens_the_file_anew(folder):
    """A child answers from the same folder over a connection of its own; the parent goes on."""
    other = rpc.block(validation.block_reference(name("other")))
    with serve(Chain()) as server, opened(server, folder) as ledger:
        ledger.send(KEPT["block"])

        def child() -> None:
            assert ledger.send(KEPT["block"]).header.hash == BLOCK
            assert ledger.send(other).header.hash == name("other")
            ledger.close()

        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join(120)
        assert process.exitcode == 0
        assert ledger.send(other).header.hash == name("other")
        assert ledger.send(rpc.chunk(CHUNK)).header.chunk_hash == CHUNK
        assert len(server.requests) == 3
        assert lk.cache_info(ledger)["entries"].sum() == 3


# What is told -----------------------------------------------------------------------------


def test_cache_info_counts_by_kind(folder):
    """The frame tells what is kept, and how often this session had to ask."""
    with serve(Chain()) as server:
        with opened(server, lk.Cache(folder, max_bytes=2**21)) as ledger:
            ledger.send_many(list(KEPT.values()), progress=False)
        with opened(server, lk.Cache(folder, max_bytes=2**21)):
            empty = lk.cache_info()
            lk.connect("lab", rpc_url=server.url, cache=lk.Cache(folder, max_bytes=2**21))
            lk.block(BLOCK)
            lk.block(BLOCK)
            lk.block(name("other"))
            info = lk.cache_info()
            lk.disconnect()
    told = {c.name: c.dtype for c in schemas.SCHEMAS["cache"]}
    assert list(info.columns) == list(told)
    assert info["kind"].tolist() == ["block", "chunk", "transaction", "read", "metadata"]
    assert info["entries"].tolist() == [2, 2, 2, 2, 1]
    assert empty["hits"].sum() == empty["misses"].sum() == 0
    assert info["hits"].tolist() == [2, 0, 0, 0, 0]
    assert info["misses"].tolist() == [1, 0, 0, 0, 0]
    assert (info["bytes"] > 0).all()
    assert info.attrs == {"path": str(folder), "max_bytes": 2**21, "schema": "cache"}


def test_clear_cache_forgets_all(folder):
    """After clearing everything is asked anew, in this session too."""
    with serve(Chain()) as server, opened(server, folder) as ledger:
        lk.block(BLOCK)
        before = lk.cache_info()["entries"].sum()
        lk.clear_cache()
        assert (before, lk.cache_info(ledger)["entries"].sum()) == (1, 0)
        lk.block(BLOCK)
        assert len(server.requests) == 2
        assert lk.cache_info()["entries"].sum() == 1


def test_clearing_what_is_in_use_is_an_error(folder, monkeypatch):
    """What could not be cleared is told, never passed over."""
    monkeypatch.setattr(disk_cache, "_BUSY_S", 0.01)
    with serve(Chain()) as server, opened(server, folder):
        lk.block(BLOCK)
        with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as base:
            base.execute("BEGIN IMMEDIATE")
            with pytest.raises(InvalidRequestError) as caught:
                lk.clear_cache()
            base.execute("ROLLBACK")
    assert "is in use and was not cleared" in str(caught.value)


def test_what_is_known_costs_no_place_in_the_rate(folder):
    """Answers from the folder do not wait for the rate."""
    calls = [rpc.block(validation.block_reference(name(i))) for i in range(50)]
    with serve(Chain()) as server:
        with opened(server, folder) as ledger:
            ledger.send_many(calls, progress=False)
        with opened(server, folder, rate=0.01) as ledger:
            found = ledger.send_many(calls, progress=False)
    assert len(found) == 50
    assert len(server.requests) == 50
