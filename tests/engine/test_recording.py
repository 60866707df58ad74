"""Recordings: each exchange in one file, without secrets, from which alone answers come."""

from __future__ import annotations

import asyncio
import base64
import errno
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import base58
import httpx
import pytest

import ledgerkit as lk
from ledgerkit import client
from ledgerkit.api import rpc
from ledgerkit.cli import main
from ledgerkit.errors import (
    FileError,
    InvalidRequestError,
    LedgerError,
    NotRecordedError,
    RecordingError,
    TransportError,
    UnknownAccountError,
)
from ledgerkit.localnet.worlds import open_world
from ledgerkit.protocol import (
    DelegateAction,
    DelegateActionV2,
    SecretKey,
    Transaction,
    Transfer,
)
from ledgerkit.transport import recording_files, secret_bytes
from ledgerkit.transport.recording_files import RecordFile, zstd
from ledgerkit.validation import block_reference
from tests.loopback import TOKEN, Reply, serve
from tests.served_world import addresses
from tests.served_world import serve as serve_world

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.localnet.world import World

pytestmark = pytest.mark.usefixtures("no_session_left")

ROOT = Path(__file__).resolve().parents[2]
KEY = "planted-api-key-7f3a9c2e51d84b06"
NO_RETRIES = lk.RetryPolicy(attempts=1, total_s=5.0)


@pytest.fixture
def case(tmp_path: Path) -> Path:
    return tmp_path / "case.lk"


def forbid_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no socket connect, and no name be looked up."""

    def refuse(*_arguments: object) -> None:
        raise AssertionError("a replay opens a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def reply(value: object, status: int = 200) -> Reply:
    return Reply(status, json.dumps(value).encode())


def unpacked(path: Path) -> bytes:
    data: bytes = zstd().decompress(path.read_bytes())
    return data


# What was asked is answered again ---------------------------------------------------------


def verbs(world: World) -> dict[str, Any]:
    """Return the results of verbs of every surface."""
    chosen = world.summary.transactions[4]
    trace = lk.trace(chosen.tx_hash)
    with lk.follow(180_000_020, max_blocks=5, progress=False) as followed:
        heights = [block.height for block in followed]
    return {
        "accounts": lk.accounts(["alice.near", "bob.near"]),
        "snapshot": lk.snapshot("alice.near").ft,
        "keys": lk.keys("alice.near"),
        "blocks": lk.blocks(180_000_010, 180_000_015),
        "documents": lk.blocks(180_000_010, 180_000_015, source="documents"),
        "history": lk.history("alice.near", 180_000_010, 180_000_050, every=20),
        "transfers": lk.transfers_of("nina.near"),
        "transactions": lk.account_transactions("alice.near"),
        "receipts": trace.receipts,
        "explained": trace.explain(),
        "time": lk.block("2026-08-01T00:00:20"),
        "statement": lk.statement("alice.near", progress=False).entries,
        "followed": heights,
    }


def test_every_surface_over_http_then_without_sockets(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read over HTTP is read again from the file alone, and is the same."""
    world = open_world("demo")
    with lk.connect("local", record=case, **addresses(serve_world(world))):
        recorded = verbs(world)
    forbid_sockets(monkeypatch)
    with lk.connect(case):
        replayed = verbs(world)
    for name, value in recorded.items():
        is_frame = hasattr(value, "equals")
        assert value.equals(replayed[name]) if is_frame else value == replayed[name], name


def test_answers_come_in_the_order_in_which_they_were_asked(case: Path) -> None:
    """The head of the chain moves in a replay as it did; after its end the last one repeats."""
    with lk.connect("local", record=case) as ledger:
        heights = []
        for _ in range(3):
            heights.append(lk.block("final")["block_height"][0])
            ledger.world.advance(5)
    with lk.connect(case):
        replayed = [lk.block("final")["block_height"][0] for _ in range(5)]
    assert replayed == [*heights, heights[-1], heights[-1]]
    assert len(set(heights)) == 3


def test_a_request_that_was_not_recorded_is_an_error_that_names_it(case: Path) -> None:
    """What the file lacks is neither absent nor zero: it is not known, and can be added."""
    with lk.connect("local", record=case):
        lk.ft("alice.near")
    with lk.connect(case), pytest.raises(NotRecordedError) as caught:
        lk.ft("bob.near")
    assert caught.value.request == "the tokens of bob.near"
    assert str(caught.value) == (
        f"{case} has no answer to the tokens of bob.near. Ask it once more while connected: with "
        f'lk.record("{case}", mode="extend").'
    )
    with lk.connect(case):
        frame, failures = lk.ft(["alice.near", "bob.near"], on_error="collect")
    assert (frame["account_id"].unique().tolist(), failures["error"].tolist()) == (
        ["alice.near"],
        ["NotRecordedError"],
    )


def test_extending_asks_only_for_what_is_missing(case: Path) -> None:
    """An extended recording answers what it has: the new answers belong to the same blocks."""
    requests: list[str] = []

    def node(_method: str, path: str, _headers: object, _body: bytes) -> Reply:
        requests.append(path)
        account_id = path.split("/")[3]
        return reply({"account_id": account_id, "tokens": [TOKEN], "n": len(requests)})

    with serve(node) as server:
        options: Any = {"api_url": server.url}
        with lk.connect("lab", record=case, **options) as ledger:
            first = ledger.get("/v1/account/a.near/ft")
        with lk.connect("lab", **options), lk.record(case, mode="extend") as ledger:
            assert ledger.get("/v1/account/a.near/ft") == first
            second = ledger.get("/v1/account/b.near/ft")
            third = ledger.get("/v1/account/a.near/ft")  # the file has no second answer to it
    assert requests == ["/v1/account/a.near/ft", "/v1/account/b.near/ft", "/v1/account/a.near/ft"]
    with lk.connect(case) as ledger:
        assert ledger.get("/v1/account/b.near/ft") == second
        assert ledger.get("/v1/account/a.near/ft") == first
        assert ledger.get("/v1/account/a.near/ft") == third


@pytest.mark.parametrize(
    "response",
    [
        '{"result":"ledgerkit","jsonrpc":"2.0","id":%s}',
        '{"id":%s,"jsonrpc":"2.0","result":["ledgerkit",{"id":"ledgerkit"}]}',
        '{"ledgerkit":1,"result":{"id":"ledgerkit"},"id":%s,"more":{"ledgerkit":"ledgerkit"}}',
        '{"result":{"a":{"id":"ledgerkit"},"id":"ledgerkit"}, "id" : %s, "b": "ledgerkit"}',
        '{"result":"a \\"ledgerkit\\" b","id":%s}',
        '{"id":%s,"jsonrpc":"2.0","error":{"code":-32000,"message":"ledgerkit","data":"x"}}',
    ],
)
def test_an_answer_with_the_word_that_stands_for_ids(case: Path, response: str) -> None:
    """An answer may have the word "ledgerkit" anywhere: a replay is the same all the same."""

    def node(_method: str, _path: str, _headers: object, body: bytes) -> Reply:
        return Reply(200, (response % json.dumps(json.loads(body)["id"])).encode())

    def ask(ledger: lk.Ledger) -> Any:
        try:
            return ledger.rpc("any")
        except LedgerError as error:
            return type(error), str(error)

    with (
        serve(node) as server,
        lk.connect("lab", rpc_url=server.url, record=case, retries=NO_RETRIES) as ledger,
    ):
        recorded = ask(ledger)
    with lk.connect(case, retries=NO_RETRIES) as ledger:
        assert ask(ledger) == recorded


def test_failures_are_replayed_with_their_errors(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refusals, retries and lost connections are the same errors in a replay, at once."""
    replies = {
        "/v1/account/a.near/ft": [Reply(429, headers={"retry-after": "1"}), reply({"n": 1})],
        "/v1/account/b.near/ft": [Reply(429, headers={"retry-after": "9"})] * 9,
        "/v1/account/c.near/ft": [Reply(dropped=True)] * 9,
        "/v1/account/d.near/ft": [Reply(404, b'{"error": "<b>no</b>"}')] * 9,
    }

    def node(_method: str, path: str, _headers: object, _body: bytes) -> Reply:
        return replies[path].pop(0)

    def ask(ledger: lk.Ledger) -> list[tuple[type, str]]:
        paths = [path for path in replies if not path.startswith("/v1/account/b")]
        answers: list[tuple[type, str]] = []
        for path in paths:
            try:
                answers.append((dict, str(ledger.get(path))))
            except LedgerError as error:
                answers.append((type(error), str(error)))
        return answers

    policy = lk.RetryPolicy(attempts=2, total_s=20.0)
    with (
        serve(node) as server,
        lk.connect("lab", api_url=server.url, record=case, retries=policy) as ledger,
    ):
        recorded = ask(ledger)
    sleep = asyncio.sleep

    def wait_in_servers_alone(delay: float, result: Any = None) -> Any:
        # The servers of other tests run on in threads, and sleep between their checks.
        assert threading.current_thread().name.endswith("(serve)"), "a replay waits"
        return sleep(delay, result)

    monkeypatch.setattr(asyncio, "sleep", wait_in_servers_alone)
    with lk.connect(case, retries=policy) as ledger:
        assert ask(ledger) == recorded
    kinds = [kind for kind, _ in recorded]
    assert kinds[:2] == [dict, TransportError]
    assert issubclass(kinds[2], LedgerError)


def test_a_wait_takes_no_time_and_ends(case: Path) -> None:
    """Sending and waiting are replayed at once; a wait for more than was recorded ends."""
    # All senders of a process share the nonces of a chain: other tests use that of seed 0.
    world = open_world("demo", seed=7)
    url = serve_world(world)

    def send() -> lk.types.Submission:
        lk.use_signer("alice.near", world.keys()["alice.near"])
        return lk.transfer("bob.near", "1 NEAR").wait("FINAL", timeout_s=30)

    with lk.connect("local", record=case, **addresses(url)):
        recorded = send()
    assert b"signed_tx" not in unpacked(case)
    begin = time.monotonic()
    with lk.connect(case) as ledger:
        replayed = send()
        final = rpc.block(block_reference("final"))
        for _ in range(10):
            ledger.send(final)
            ledger.session.sleep(6)
        with pytest.raises(NotRecordedError, match="ends while waiting for block final"):
            ledger.session.sleep(6)
    assert time.monotonic() - begin < 30  # of the 66 s that it waits for
    assert replayed.tx_hash == recorded.tx_hash
    assert replayed.stages["stage"].tolist() == recorded.stages["stage"].tolist()


def test_a_fork_of_a_recording(case: Path) -> None:
    """A lazy fork reads from a recording what it read of the network, and runs on from there."""

    def simulate(fork: Any, **options: Any) -> str:
        with lk.connect("local", fork=fork, **options) as ledger:
            trace = lk.simulate("bob.near", Transfer(10**24), signer_id="alice.near", ledger=ledger)
            return trace.balance_changes.to_csv()

    world = open_world("demo")
    with lk.connect("local", record=case, **addresses(serve_world(world))) as ledger:
        recorded = simulate(ledger)
    assert simulate(case) == recorded
    assert recorded


def test_frames_say_when_they_were_read(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time in a frame's attributes is that of the recorded request, not of its replay."""
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000 * 10**9)
    with lk.connect("local", record=case):
        lk.accounts("alice.near")
    monkeypatch.undo()
    with lk.connect(case):
        assert lk.accounts("alice.near").attrs["fetched_at"] == "2023-11-14T22:13:20+00:00"
    assert set(lk.read_recording(case)["asked_at"].astype(str)) == {"2023-11-14 22:13:20+00:00"}


# What is in a file ------------------------------------------------------------------------


def test_inspect_lists_the_requests(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Hosts, methods, accounts, sizes and times are listed, and the chain that the node named."""
    with lk.connect("local", record=case):
        lk.ft("alice.near")
        lk.view("counter.near", "get_num")
        with pytest.raises(UnknownAccountError):
            lk.view("none.near", "get_num")
    frame = lk.read_recording(case)
    assert frame["method"].tolist() == [
        "status",
        "/v1/account/alice.near/ft",
        "query call_function",
        "query call_function",
    ]
    assert frame["account_id"].tolist()[1:] == ["alice.near", "counter.near", "none.near"]
    assert frame["size_bytes"].sum() == sum(len(item.body) for item in RecordFile(case).records())
    assert frame["asked_at"].is_monotonic_increasing
    assert {name: frame.attrs[name] for name in ("network", "chain_id", "torn_bytes")} == {
        "network": "local",
        "chain_id": "localnet",
        "torn_bytes": 0,
    }
    assert frame.attrs["size_bytes"] == case.stat().st_size
    assert main(["inspect", str(case), "--columns", "method,account_id"]) == 0
    assert "4 requests to local (chain id localnet), recorded by ledgerkit" in (
        capsys.readouterr().out
    )


def test_inspect_escapes_what_others_wrote(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A chain's name, a method and an account are printed in one line, and move no cursor."""
    hostile = "x\x1b[2J\u202e\n99 requests to mainnet"

    def node(_method: str, _path: str, _headers: object, body: bytes) -> Reply:
        return reply({"id": json.loads(body)["id"], "result": {"chain_id": hostile}})

    with serve(node) as server, lk.connect("lab", rpc_url=server.url, record=case) as ledger:
        ledger.rpc(f"query{hostile}", {"account_id": hostile})
    assert main(["inspect", str(case)]) == 0
    printed = capsys.readouterr().out
    assert "(chain id x\\x1b[2J\\u202e\\n99 requests to mainnet), recorded by" in printed
    assert not [line for line in printed.splitlines() if line.startswith("99")]
    assert not set("\x1b\u202e") & set(printed)


def test_the_same_exchanges_give_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the times, two recordings of the same are equal, though each request had an id."""

    def recorded(name: str) -> Path:
        path = tmp_path / name
        with lk.connect("local", record=path, in_flight=1):
            lk.accounts(["alice.near"])
            lk.block("final")
            list(lk.blocks(180_000_010, 180_000_012, source="documents")["block_height"])
        return path

    first, second = recorded("a.lk"), recorded("b.lk")
    assert lk.read_recording(first).attrs["digest"] == lk.read_recording(second).attrs["digest"]
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000 * 10**9)
    assert recorded("c.lk").read_bytes() == recorded("d.lk").read_bytes()


def test_a_file_is_readable_with_the_usual_tool(case: Path) -> None:
    """A recording is plain Zstandard: a line of JSON for each request, and the answer as it was."""
    with lk.connect("local", record=case) as ledger:
        body = ledger.rpc("gas_price", [None])
    header, *lines = unpacked(case).split(b"\n")
    assert json.loads(header)["network"]["name"] == "local"
    line = json.loads(lines[2])["exchange"]
    assert json.loads(line["body"])["method"] == "gas_price"
    assert json.loads(lines[3])["result"] == body


# Secrets ----------------------------------------------------------------------------------


def encodings(secret: str) -> list[bytes]:
    """Return a secret as files and answers may write it."""
    data = secret.encode()
    shifted = [base64.b64encode(bytes(n) + data + bytes(2)) for n in range(3)]
    return [data, data.hex().encode(), *(text[4:-8] for text in shifted)]


@pytest.mark.parametrize("key_in", ["header", "query"])
def test_the_key_is_in_no_recording(case: Path, key_in: Any) -> None:
    """An answer that repeats the API key has it hidden; one that encodes it is withheld."""
    secret = SecretKey.generate().reveal()
    texts = [KEY, KEY.encode().hex(), base64.b64encode(b"x" + KEY.encode()).decode()]
    answers: list[Any] = [*texts, list(KEY.encode()), secret, list(secret.encode()), "public"]
    answers.append(base64.b64encode(secret.encode()).decode())

    def node(_method: str, path: str, _headers: object, _body: bytes) -> Reply:
        return reply({"n": answers[int(path.split("?", maxsplit=1)[0].rpartition("/")[2])]})

    options: Any = {"api_key": KEY, "key_in": key_in, "retries": NO_RETRIES}
    with (
        serve(node) as server,
        lk.connect("lab", api_url=server.url, record=case, **options) as ledger,
    ):
        seen = [ledger.get(f"/{number}") for number in range(len(answers))]
    assert seen[6] == {"n": "public"}
    assert seen[4] == {"n": secret}  # the one who asked gets it
    data = unpacked(case)
    spelled = [*encodings(KEY), *encodings(secret), str(list(KEY.encode()))[1:-1].encode()]
    assert [text for text in spelled if text in data] == []
    withheld = lk.read_recording(case)["withheld"].tolist()
    assert withheld[0] != withheld[0]
    assert withheld[1:4] == ["it contains what looks like an API key"] * 3
    assert withheld[4:6] == ["it contains what looks like a secret key"] * 2
    with lk.connect(case) as ledger:
        assert ledger.get("/0") == {"n": "[key hidden]"}
        with pytest.raises(NotRecordedError, match="looks like a secret key"):
            ledger.get("/4")
        assert ledger.get("/6") == {"n": "public"}


def test_the_path_of_a_host_and_signed_bytes_are_not_stored(case: Path) -> None:
    """A provider's key in an address, and the bytes of a signed transaction, stay out."""
    world = open_world("demo")
    url = serve_world(world)
    signed: list[str] = []

    def node(_method: str, _path: str, _headers: object, body: bytes) -> Reply:
        params = json.loads(body)["params"]
        if "signed_tx_base64" in params:
            signed.append(params["signed_tx_base64"])
        response = httpx.post(url, content=body, headers={"content-type": "application/json"})
        return Reply(response.status_code, response.content)

    lk.use_signer("alice.near", world.keys()["alice.near"])
    with (
        serve(node) as server,
        lk.connect("lab", rpc_url=f"{server.url}/v3/{KEY}", record=case),
    ):
        lk.transfer("bob.near", "1 NEAR").wait("FINAL", timeout_s=30)
    data = unpacked(case)
    assert signed
    assert [text for text in (KEY, signed[0], signed[0][:40]) if text.encode() in data] == []
    assert world.keys()["alice.near"].encode() not in data


SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "base64": lambda text: base64.b64encode(b"??>" + text.encode()).decode(),
    "base64url": lambda text: base64.urlsafe_b64encode(b"??>" + text.encode()).decode().rstrip("="),
    "percent": lambda text: "".join(f"%{ord(char):02X}" for char in text),
    "json": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
    "base58": lambda text: base58.b58encode(text.encode()).decode(),
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "base32 lower": lambda text: base64.b32encode(text.encode()).decode().rstrip("=").lower(),
}
PHRASE = "legal winner thank year wave sausage worth useful legal winner thank yellow"  # BIP-39's


def echo(_method: str, _path: str, _headers: object, body: bytes) -> Reply:
    """Answer with the id and the parameters of a request, as they are spelled."""
    call = json.loads(body)
    start = body.index(b'"params":') + len(b'"params":')
    return Reply(200, b'{"id":"%b","result":%b' % (call["id"].encode(), body[start:]))


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("curve", ["ed25519", "secp256k1", "API key"])
def test_keys_are_in_no_recording_however_they_are_spelled(
    case: Path, spelling: str, curve: Any
) -> None:
    """A key in the arguments of a call, or in an answer, is not stored in any spelling."""
    secret = KEY if curve == "API key" else SecretKey.generate(curve).reveal()
    spelled = SPELLINGS[spelling](secret)
    with (
        serve(echo) as server,
        lk.connect(
            "lab", rpc_url=server.url, api_key=KEY, retries=NO_RETRIES, record=case
        ) as ledger,
    ):
        ledger.rpc("call", {"args": spelled})
        args = base64.b64encode(json.dumps({"k": spelled}).encode()).decode()
        ledger.rpc("query", {"args_base64": args})
    assert spelled.encode() not in unpacked(case)
    assert args.encode() not in unpacked(case)
    frame = lk.read_recording(case)
    assert frame["withheld"].notna().tolist() == [False, True, True]
    assert frame["method"].isna().tolist() == [False, True, True]


@pytest.mark.parametrize(
    "spelled", [PHRASE, PHRASE.upper(), PHRASE.replace(" ", "\n"), PHRASE.split(), f"it: {PHRASE}!"]
)
def test_seed_phrases_in_arguments_are_in_no_recording(case: Path, spelled: Any) -> None:
    """A seed phrase in the arguments of a view call is not stored; a replay answers the call."""
    with lk.connect("local", record=case):
        recorded = lk.view("counter.near", "get_num", {"phrase": spelled})
    args = base64.b64encode(json.dumps({"phrase": spelled}, separators=(",", ":")).encode())
    assert args not in unpacked(case)
    assert lk.read_recording(case)["withheld"].tolist()[1] == "the request"
    with lk.connect(case):
        assert lk.view("counter.near", "get_num", {"phrase": spelled}) == recorded


def test_a_seed_phrase_in_an_answer_is_withheld(case: Path) -> None:
    """An answer with a seed phrase is withheld, also where a view method returned it as bytes."""
    prose = "Each of these words is in the list of a phrase, but the text has others, as texts do."
    answers = [PHRASE, list(json.dumps({"seed": PHRASE}).encode()), prose]

    def node(_method: str, path: str, _headers: object, _body: bytes) -> Reply:
        return reply({"n": answers[int(path[1:])]})

    with serve(node) as server, lk.connect("lab", api_url=server.url, record=case) as ledger:
        for number in range(len(answers)):
            ledger.get(f"/{number}")
    withheld = lk.read_recording(case)["withheld"].fillna("").tolist()
    assert withheld == [*["it contains what looks like a seed phrase"] * 2, ""]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        # Source: nearcore, chain/jsonrpc/src/api/transactions.rs, decode_signed_transaction.
        *((name, "list") for name in ("tx", "EXPERIMENTAL_tx_status", "broadcast_tx_async")),
        *((name, "list") for name in ("broadcast_tx_commit", "send_tx", "EXPERIMENTAL_check_tx")),
        ("tx", "object"),
        ("any_relayer", "hex"),
        ("any_relayer", "bytes"),
        ("any_relayer", "delegate"),
        ("any_relayer", "delegate_v2"),
        ("any_relayer", "delegate without tag"),
    ],
)
def test_signed_bytes_are_stored_in_no_method(case: Path, method: str, params: str) -> None:
    """Signed transactions and delegate actions stay out, whichever method carries them."""
    key = SecretKey.generate()
    action: Any = {"sender_id": "alice.near", "receiver_id": "bob.near", "actions": [Transfer(1)]}
    action |= {"nonce": 7, "max_block_height": 9, "public_key": key.public_key}
    transaction = Transaction("alice.near", key.public_key, 7, "bob.near", bytes(32), [Transfer(1)])
    signed = transaction.sign(key)
    delegate = DelegateAction(**action).sign(key).encode()
    delegates = {
        "delegate": delegate,
        "delegate without tag": delegate[1:],
        "delegate_v2": DelegateActionV2(**action).sign(key).encode(),
    }
    data = delegates.get(params, signed.encode())
    encoded = base64.b64encode(data).decode()
    sent: Any = {"list": [encoded], "object": {"signed_tx_base64": encoded}, "hex": [data.hex()]}
    sent |= {"bytes": list(data)}
    with (
        serve(lambda *_: Reply(503)) as server,
        lk.connect("lab", rpc_url=server.url, retries=NO_RETRIES, record=case) as ledger,
        pytest.raises(LedgerError),
    ):
        ledger.rpc(method, sent.get(params, [encoded]))
    frame = lk.read_recording(case)
    assert frame["withheld"].iloc[-1] == "the request"
    for spelled in (encoded, data.hex(), str(list(data))[1:-1].replace(" ", "")):
        assert spelled.encode() not in unpacked(case)


def test_recorded_answers_are_not_taken_for_secrets() -> None:
    """Nothing in real answers of the chain and its services is withheld as a secret."""
    files = list((ROOT.parent / "shared" / "wire" / "samples").rglob("*.json"))
    if not files:
        pytest.skip("there are no recorded answers here")
    assert [path.name for path in files if secret_bytes.secret_in(path.read_bytes())] == []


@pytest.mark.parametrize("curve", ["ed25519", "secp256k1"])
def test_whole_secret_keys_are_found_and_public_data_is_not(curve: Any) -> None:
    """A secret key is found in each encoding; signatures, hashes and public keys are not."""
    key = SecretKey.generate(curve)
    text = key.reveal().encode()
    assert secret_bytes.secret_in(b'{"a":"' + text + b'"}') == "a secret key"
    assert secret_bytes.secret_in(b'"' + base64.b64encode(b"..." + text) + b'"') == "a secret key"
    assert secret_bytes.secret_in(json.dumps(list(b"q" + text)).encode()) == "a secret key"
    signature = str(key.sign(bytes(32))).encode()
    public = [signature, str(key.public_key).encode(), b"9" * 88, base64.b64encode(bytes(64))]
    assert [data for data in public if secret_bytes.secret_in(b'"' + data + b'"')] == []


def test_a_secret_key_without_its_name_is_found() -> None:
    """The 64 bytes of a key are found as digits alone."""
    key = SecretKey.generate()
    digits = key.reveal().partition(":")[2]
    raw = base58.b58decode(digits)
    for text in (digits, raw.hex(), base64.b64encode(raw).decode()):
        assert secret_bytes.secret_in(f'{{"k":"{text}"}}'.encode()) == "a secret key"


# Files that are not what a recorder wrote ---------------------------------------------------


def small(case: Path) -> bytes:
    """Record a few answers, and return the file."""
    with lk.connect("local", record=case):
        for account_id in ("alice.near", "bob.near", "nina.near"):
            lk.ft(account_id)
    return case.read_bytes()


def refused(path: Path) -> str:
    with pytest.raises(RecordingError) as caught:
        lk.connect(path)
    with pytest.raises(RecordingError):
        lk.read_recording(path)
    return str(caught.value)


def test_a_file_of_another_kind_or_version(case: Path) -> None:
    """What is no recording is refused in a sentence, and what is newer names the remedy."""
    assert "No such file" in refused(case)
    case.write_bytes(b"")
    assert "its header is incomplete" in refused(case)
    case.write_bytes(b'{"a": 1}')
    assert "it cannot be unpacked" in refused(case)
    case.write_bytes(zstd().compress(b'{"ledgerkit_recording":2,"more":{}}\n'))
    assert "version 2 of the format; this ledgerkit reads version 1" in refused(case)
    assert "newer ledgerkit" in refused(case)
    case.write_bytes(zstd().compress(b'{"some":"json"}\n'))
    assert "its header is not of this format" in refused(case)


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("<script>alert(1)</script>", "https://x.test"),
        ("lab", "javascript:alert(1)"),
        ("lab", "https://user:password@x.test"),
    ],
)
def test_a_header_with_what_no_network_is(case: Path, name: str, url: str) -> None:
    """A network's name and addresses are checked as those of `connect` are."""
    network = {"name": name, "urls": {"rpc": url}}
    header = {"ledgerkit_recording": 1, "ledgerkit": "0.1.0", "network": network}
    case.write_bytes(zstd().compress(json.dumps(header).encode() + b"\n"))
    assert "names a network that cannot be" in refused(case)


def test_a_bomb_is_refused_within_its_limit(case: Path) -> None:
    """A few bytes that unpack to gigabytes are refused before they take memory."""
    data = small(case)
    compressor = zstd().ZstdCompressor()
    zeros = bytes(2**24)
    bomb = b"".join(compressor.compress(zeros) for _ in range(24)) + compressor.flush()
    assert len(bomb) < 2**17
    case.write_bytes(bomb)
    assert "unpacks to more than an answer may have" in refused(case)
    case.write_bytes(data + bomb)
    assert "unpacks to more than an answer may have" in refused(case)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_killed_process_loses_no_answer(case: Path) -> None:
    """What a process had read when it was killed is in the file, and can be extended."""
    script = (
        "import ledgerkit as lk, sys\n"
        "with lk.connect('local', record=sys.argv[1]) as ledger:\n"
        "    for number in range(10**6):\n"
        "        lk.ft(['alice.near', 'bob.near', 'nina.near'][number % 3])\n"
        "        print(number, flush=True)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(case)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) == 40:
                break
        process.send_signal(signal.SIGKILL)
    n_recorded = len(lk.read_recording(case))
    assert n_recorded >= 42  # with the request for the chain
    with lk.connect("local"), lk.record(case, mode="extend"):
        lk.ft("alice.near")
        lk.staking("leo.near")
    frame = lk.read_recording(case)
    assert (len(frame), frame.attrs["torn_bytes"]) == (n_recorded + 1, 0)
    with lk.connect(case):
        assert len(lk.staking("leo.near")) == 1


WRITE = recording_files._write_all


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n_before", [1, 3])
def test_an_interrupt_while_a_record_is_written(
    case: Path, monkeypatch: pytest.MonkeyPatch, share: float, n_before: int
) -> None:
    """Ctrl-C before, within or after the writing of a record costs none of the others."""

    def interrupt(file: Any, data: bytes) -> None:
        monkeypatch.undo()
        WRITE(file, data[: int(len(data) * share)])
        raise KeyboardInterrupt

    accounts = ["alice.near", "bob.near", "nina.near"]
    with lk.connect("local", record=case):
        for account_id in accounts[:n_before]:
            lk.ft(account_id)
        monkeypatch.setattr(recording_files, "_write_all", interrupt)
        with pytest.raises(KeyboardInterrupt):
            lk.staking("leo.near")
        assert (
            lk.read_recording(case)["account_id"].tolist()[1 : n_before + 1] == accounts[:n_before]
        )
        recorded = [lk.ft(account_id) for account_id in accounts]
    assert zstd().decompress(case.read_bytes())  # it has an end
    with lk.connect(case):
        assert all(
            lk.ft(name).equals(frame) for name, frame in zip(accounts, recorded, strict=True)
        )


def test_a_second_writer_is_refused(case: Path) -> None:
    """While a process records, no other can extend its file; the file has all that was read."""
    script = (
        "import ledgerkit as lk, sys\n"
        "lk.connect('local')\n"
        "for _ in sys.stdin:\n"
        "    try:\n"
        "        with lk.record(sys.argv[1], mode='extend'):\n"
        "            lk.ft('nina.near')\n"
        "        print('written', flush=True)\n"
        "    except lk.errors.InvalidRequestError as error:\n"
        "        print(error, flush=True)\n"
    )
    command = [sys.executable, "-c", script, str(case)]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (
        subprocess.Popen(command, env=variables, **pipes) as process,
        lk.connect("local", record=case),
    ):
        other: Any = process  # with pipes
        lk.ft("alice.near")
        other.stdin.write("try\n")
        other.stdin.flush()
        assert "expected a recording that nobody else is writing to" in other.stdout.readline()
        with (
            pytest.raises(InvalidRequestError, match="nobody else"),
            lk.record(case, mode="extend"),
        ):
            pass
        lk.ft("bob.near")
        lk.disconnect()
        assert other.communicate("again\n", timeout=300)[0] == "written\n"
    assert lk.read_recording(case)["account_id"].dropna().tolist() == [
        "alice.near",
        "bob.near",
        "nina.near",
    ]


# Bad input --------------------------------------------------------------------------------


def test_a_path_that_cannot_be_a_recording(tmp_path: Path, case: Path) -> None:
    """Another ending, an existing file and a wrong mode are refused before anything is sent."""
    with lk.connect("local"):
        with pytest.raises(InvalidRequestError, match=r"a file that ends in \.lk"):
            lk.connect("local", record=tmp_path / "case.zst")
        case.write_bytes(b"")
        with pytest.raises(InvalidRequestError, match=r'record\(path, mode="extend"\) adds to one'):
            lk.connect("local", record=case)
        with (
            pytest.raises(InvalidRequestError, match="mode 'append' is not valid"),
            lk.record(case, mode="append"),  # type: ignore[arg-type]  # refused
        ):
            pass
        with pytest.raises(RecordingError), lk.record(tmp_path / "none.lk", mode="extend"):
            pass


@pytest.mark.parametrize(
    "options",
    [
        {"api_key": KEY},
        {"rpc_url": "https://x.test"},
        {"world": "demo"},
        {"cache": True},
        {"record": "b.lk"},
        {"seed": 1},
    ],
)
def test_a_recording_answers_alone(case: Path, options: Any) -> None:
    """A recording with another source of answers, or with a key, is refused."""
    small(case)
    with pytest.raises(InvalidRequestError, match="is a recording, which answers alone"):
        lk.connect(case, **options)


def test_ledgers_of_two_chains_are_not_mixed(tmp_path: Path, case: Path) -> None:
    """In one file are the answers of one network: a second one is refused."""
    with lk.connect("local"), lk.record(case):
        lk.ft("alice.near")
        with lk.connect("local", seed=1), pytest.raises(InvalidRequestError, match="another"):
            lk.ft("alice.near")
        with (
            lk.connect("lab", api_url="http://127.0.0.1:1"),
            pytest.raises(InvalidRequestError, match="records local, and cannot have answers"),
        ):
            lk.ft("alice.near")
        with (
            pytest.raises(InvalidRequestError, match="only one recording can be at a time"),
            lk.record(tmp_path / "b.lk"),
        ):
            pass
    assert not (tmp_path / "b.lk").exists()


def test_within_a_block_connect_records_and_the_default_comes_back(case: Path) -> None:
    """A ledger that is opened in the block is recorded too; after it the old default is used."""
    with lk.connect("local") as outer:
        url = serve_world(outer.world)
        unrecorded = lk.connect("local", make_default=False, **addresses(url))
        with lk.record(case):
            with lk.connect("local") as inner:
                lk.ft("alice.near")
            assert inner is not outer
            with pytest.warns(UserWarning, match="was opened before .* which does not record it"):
                lk.ft("bob.near", ledger=unrecorded)
        assert client.default() is outer
        lk.ft("nina.near")
    assert lk.read_recording(case)["account_id"].dropna().tolist() == ["alice.near"]


def test_other_processes_cannot_add_to_a_recording(case: Path) -> None:
    """A cluster's workers and forked processes are refused: their answers would be missing."""
    with (
        serve(lambda *_: reply({"n": 1})) as server,
        lk.connect("lab", api_url=server.url, record=case) as ledger,
    ):
        ledger.get("/x")
        with pytest.raises(InvalidRequestError, match="another process cannot add"):
            ledger.description()
    with lk.connect(case) as ledger, pytest.raises(InvalidRequestError, match="in this one"):
        ledger.description()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_cannot_add_to_a_recording(case: Path) -> None:
    """A child is refused and sends nothing, leaves the file alone, and the parent goes on."""
    with (
        serve(lambda *_: reply({"n": 1})) as server,
        lk.connect("lab", api_url=server.url, record=case) as ledger,
    ):
        ledger.get("/x")

        def child() -> None:
            with pytest.raises(InvalidRequestError, match="a forked one cannot add"):
                ledger.get("/y")
            ledger.close()

        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join(120)
        assert process.exitcode == 0
        ledger.get("/z")
    assert server.paths == ["/x", "/z"]
    assert len(lk.read_recording(case)) == 2


def test_doctor_saves_a_report_that_is_a_test_case(case: Path) -> None:
    """The report of one connection is read elsewhere, and names the same versions and errors."""
    with lk.connect("local"):
        recorded = lk.doctor(save=case)
    with lk.connect(case):
        replayed = lk.doctor()
    same = ["surface", "version", "protocol_version", "block_height", "error"]
    assert replayed[same].equals(recorded[same])
    assert lk.read_recording(case).attrs["chain_id"] == "localnet"


def test_the_command_line_records_and_replays(
    case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--record` keeps what a command read, and `--network FILE.lk` prints the same from it."""
    assert main(["ft", "alice.near", "--network", "local", "--record", str(case)]) == 0
    recorded = capsys.readouterr().out
    assert main(["ft", "alice.near", "--network", str(case)]) == 0
    assert capsys.readouterr().out == recorded
    assert main(["ft", "bob.near", "--network", str(case)]) == 4
    assert "has no answer to the tokens of bob.near" in capsys.readouterr().err


def test_large_answers_in_many_frames(case: Path) -> None:
    """Answers of megabytes, between small ones, are each found again."""
    bodies = [os.urandom(700_000).hex() if n % 3 == 0 else str(n) for n in range(12)]

    def node(_method: str, path: str, _headers: object, _body: bytes) -> Reply:
        return reply({"n": bodies[int(path[1:])]})

    def ask(ledger: lk.Ledger, number: int) -> Any:
        return ledger.get(f"/{number}")["n"]

    with serve(node) as server, lk.connect("lab", api_url=server.url, record=case) as ledger:
        for number in range(12):
            ask(ledger, number)
    assert len({record.position.frame for record in RecordFile(case).records()}) > 3
    with lk.connect(case) as ledger:
        for number in (11, 0, 5, 3, 9, 1, 6):
            assert ask(ledger, number) == bodies[number]


def test_a_full_disk_ends_the_recording(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a record could not be written, no answer is returned that the file would lack."""

    def full(file: Any, data: bytes) -> None:
        file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    with lk.connect("local", record=case):
        lk.ft("alice.near")
        monkeypatch.setattr(recording_files, "_write_all", full)
        for _ in range(2):
            with pytest.raises(FileError, match=r"Could not write .*No space left") as caught:
                lk.ft("bob.near")
        assert "Free some disk space" in str(caught.value)
        monkeypatch.undo()
    with lk.connect(case):
        assert lk.ft("alice.near")["account_id"].unique().tolist() == ["alice.near"]
