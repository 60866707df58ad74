"""`ledgerkit serve`: the embedded ledger behind a real socket, in a process of its own."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import re
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.api.chain_errors import NotEnoughBalanceError
from ledgerkit.cli import main
from ledgerkit.localnet import server
from ledgerkit.localnet.worlds import open_world
from ledgerkit.protocol import AccountId, CryptoHash, SecretKey, Transaction, Transfer

if TYPE_CHECKING:
    from collections.abc import Iterator


ROOT = Path(__file__).resolve().parents[2]
CALL = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "gas_price", "params": [None]}).encode()
EVERYWHERE = "0.0.0.0"  # noqa: S104 - what is refused, unless told
JSON = {"content-type": "application/json"}


class Running(NamedTuple):
    """A server in a process."""

    process: subprocess.Popen[str]
    line: str
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self, **options: Any) -> lk.Ledger:
        once = lk.RetryPolicy(attempts=1, total_s=20)
        api_url = f"{self.url}/api"
        return lk.connect("served", rpc_url=self.url, api_url=api_url, retries=once, **options)

    def ask(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Make one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            told = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, JSON | told)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def open(self, data: bytes) -> socket.socket:
        """Open a connection and send something."""
        opened = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        with suppress(ConnectionError):  # nobody may want to hear all of it
            opened.sendall(data)
        return opened

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; gives the exit code and what was complained about."""
        self.process.send_signal(how)
        _, complaints = self.process.communicate(timeout=60)
        return self.process.returncode, complaints


@contextmanager
def serving(*options: str, script: str = "", **variables: str) -> Iterator[Running]:
    """Serve the empty world at a free port until the block ends."""
    start = ["-c", script] if script else ["-m", "ledgerkit"]
    command = [sys.executable, "-W", "error", *start, "serve", "--world", "empty", "--port", "0"]
    with subprocess.Popen(
        [*command, *options],
        cwd=ROOT,
        env=variables or None,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            found = re.search(r"http://[\w.\[\]:]+:(\d+) ", line)
            assert found, process.communicate(timeout=60)
            yield Running(process, line, int(found[1]))
        finally:
            lk.disconnect()
            process.kill()


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """Serve the empty world to several tests."""
    with serving() as found:
        yield found


# Answers --------------------------------------------------------------------------------


def test_the_services_are_served_beside_the_node(running: Running) -> None:
    """Each service has a prefix; pages of this machine may use it, also after a preflight."""
    origin = "http://localhost:8888"
    status, headers, _ = running.ask("OPTIONS", "/kv/v0/multi", origin=origin)
    assert (status, headers["access-control-allow-origin"]) == (200, origin)
    status, headers, body = running.ask(
        "POST", "/kv/v0/multi", b'{"keys": ["a/b/c"]}', origin=origin
    )
    assert (status, json.loads(body)) == (200, {"entries": [None]})
    assert headers["access-control-allow-origin"] == origin
    status, _, body = running.ask("POST", "/transactions/v0/blocks", b'{"limit": 1, "desc": false}')
    assert (status, len(json.loads(body)["blocks"])) == (200, 1)
    status, _, body = running.ask("POST", "/transactions/v0/blocks", b"{")
    assert (status, body[:23]) == (400, b"Json deserialize error:")


def test_one_line_tells_both_addresses(running: Running) -> None:
    """Whoever started it sees where to connect, and how to stop it."""
    assert running.line == (
        f"ledgerkit: world empty on {running.url} (JSON-RPC), {running.url}/api (REST); "
        "stop with Ctrl-C\n"
    )


def test_both_surfaces_answer(running: Running) -> None:
    """Verbs read the served world as they read any network."""
    with running.connect() as ledger:
        assert lk.accounts("near", ledger=ledger)["status"].tolist() == ["ok"]
        assert lk.accounts("near", at="final", ledger=ledger)["balance"].tolist() == [10**33]
        assert lk.gas_price(ledger=ledger)["gas_price"].tolist() == [100_000_000]


def test_a_served_world_is_the_same_as_in_process(running: Running) -> None:
    """The seed decides: both give the same block."""
    with running.connect() as ledger, lk.connect("local", world="empty") as inside:
        hashes = [lk.block(180_000_001, ledger=each)["block_hash"][0] for each in (ledger, inside)]
    assert hashes[0] == hashes[1]


def test_heads_of_answers(running: Running) -> None:
    """No response names the server's software, and HEAD has the length of what GET sends."""
    status, headers, body = running.ask("GET", "/api/health")
    assert (status, body) == (200, b'{"status":"ok"}')
    assert "server" not in headers
    status, headers, body = running.ask("HEAD", "/api/health")
    assert (status, headers["content-length"], body) == (200, "15", b"")
    assert running.ask("GET", "/nothing")[0] == 404


# What is no request ---------------------------------------------------------------------


@pytest.mark.parametrize("size", [10_485_761, 30_000_000])
def test_a_body_that_is_too_large(running: Running, size: int) -> None:
    """It is refused, and the next request is answered."""
    for body in (bytes(size), iter([bytes(65_536)] * (size // 65_536 + 1))):
        status, _, told = running.ask("POST", "/", body)
        assert (status, told) == (
            413,
            b"Failed to buffer the request body: length limit exceeded",
        )
    assert running.ask("POST", "/", CALL)[0] == 200


def _last_words(opened: socket.socket) -> bytes:
    """Read until the other side closes, or cuts off."""
    read = b""
    with suppress(ConnectionError):
        while part := opened.recv(10_000):
            read += part
    return read


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_another_content_type(running: Running, kind: str) -> None:
    """What a form of a foreign page could send is not taken for a call."""
    status, headers, told = running.ask("POST", "/", CALL, content_type=kind)
    assert (status, headers["content-type"]) == (415, "text/plain; charset=utf-8")
    assert told == b"Expected request with `Content-Type: application/json`"


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"[]", b"[1,2]", b"7", b'{"a":' * 100_000],
    ids=["empty", "open", "no-utf8", "deep-array", "batch", "numbers", "number", "deep-object"],
)
def test_a_body_that_is_no_call(running: Running, body: bytes) -> None:
    """Whatever comes, it is the caller's mistake, and the server goes on."""
    assert running.ask("POST", "/", body)[0] in (400, 422)
    assert running.ask("POST", "/", CALL)[0] == 200


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"NONSENSE\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["tls", "nonsense", "bad-chunk"],
)
def test_what_is_no_http(running: Running, data: bytes) -> None:
    """A malformed request is refused, and the server goes on."""
    with running.open(data) as opened:
        assert _last_words(opened).startswith(b"HTTP/1.1 400 ")
    assert running.ask("GET", "/api/health")[0] == 200


# Web pages ------------------------------------------------------------------------------


def test_another_site_can_neither_read_nor_send(running: Running) -> None:
    """A call from a page of another site, or to its name, is refused without any data."""
    for headers in ({"origin": "https://evil.example"}, {"host": f"evil.example:{running.port}"}):
        status, received, body = running.ask("POST", "/", CALL, **headers)
        assert (status, b"gas_price" in body) == (403, False)
        assert "access-control-allow-origin" not in received


def test_listed_pages_and_other_machines_are_let_in() -> None:
    """A page of this machine may read; other pages, names and machines are added by options."""
    page = "https://app.example"
    options = ("--allow-origin", page, "--allow-origin", "null", "--allow-host", "hub.example")
    with serving(*options, "--host", EVERYWHERE, "--allow-remote") as running:
        assert running.line.startswith("ledgerkit: world empty on http://0.0.0.0:")
        for origin in ("http://localhost:5173", page, "null"):
            status, headers, _ = running.ask("POST", "/", CALL, origin=origin)
            assert (status, headers["access-control-allow-origin"]) == (200, origin)
        assert running.ask("GET", "/api/health", host="hub.example")[0] == 200
        headers = running.ask("OPTIONS", "/", origin=page)[1]
        assert headers["access-control-allow-methods"] == "GET, HEAD, POST, OPTIONS"


def _rejected(running: Running) -> dict[str, Any]:
    """Send more than there is, by the client and by hand; return the error that was sent."""
    secret_key = SecretKey.from_text(open_world("empty").keys()["near"])
    with running.connect() as ledger:
        with pytest.raises(NotEnoughBalanceError) as refusal:
            lk.transfer("bob.near", 10**34, ledger=ledger, signer_id="near", key=secret_key)
        block_hash = CryptoHash(lk.block("final", ledger=ledger)["block_hash"].item())
    assert refusal.value.signer_id == "near"
    transaction = Transaction(
        AccountId("near"),
        secret_key.public_key,
        1,
        AccountId("bob.near"),
        block_hash,
        (Transfer(10**34),),
    )
    params = [base64.b64encode(transaction.sign(secret_key).encode()).decode()]
    call = {"jsonrpc": "2.0", "id": 1, "method": "broadcast_tx_commit", "params": params}
    error: dict[str, Any] = json.loads(running.ask("POST", "/", json.dumps(call))[2])["error"]
    return error


def test_rejections_have_the_members_of_a_node_and_on_request_the_path_of_the_specification(
    running: Running,
) -> None:
    """`--spec-errors` adds `error.InvalidTransaction.<variant>`; the client reads both forms."""
    error = _rejected(running)
    reason = error["data"]["TxExecutionError"]["InvalidTxError"]
    assert (list(reason), reason["NotEnoughBalance"]["signer_id"]) == (["NotEnoughBalance"], "near")
    with serving("--spec-errors") as other:
        assert _rejected(other) == error | {"InvalidTransaction": reason}


def test_upgrades_are_ignored_in_silence() -> None:
    """A request for WebSocket or HTTP/2 is answered in HTTP/1.1, and nothing is logged."""
    with serving() as running:
        for protocol in ("websocket", "h2c"):
            for _ in range(3):
                headers = {"connection": "upgrade", "upgrade": protocol}
                assert running.ask("GET", "/api/health", **headers)[0] == 200
        assert running.stop() == (0, "")


# Connections ----------------------------------------------------------------------------

HALF_HEAD = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-ty"
HALF_BODY = HALF_HEAD + b"pe: application/json\r\ncontent-length: 99\r\n\r\n{"


def test_several_requests_on_one_connection(running: Running) -> None:
    """A connection is kept, also for requests that were sent before the first was answered."""
    one = (
        b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: "
    )
    one += str(len(CALL)).encode() + b"\r\n\r\n" + CALL
    count = 100
    with running.open(one * count) as opened:
        read = b""
        while read.count(b'"gas_price":"100000000"') < count:
            part = opened.recv(1_000_000)
            assert part
            read += part
    assert read.count(b"HTTP/1.1 200 OK") == count


def test_an_answer_leaves_at_once(running: Running) -> None:
    """Small answers don't wait for the other side to confirm their heads: 40 ms each."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    times = []
    for _ in range(150):
        begin = time.monotonic()
        connection.request("POST", "/", CALL, JSON)
        assert connection.getresponse().read().endswith(b"}")
        times.append(time.monotonic() - begin)
    assert sorted(times)[15] < 0.035  # all but the first few would wait; the machine may be busy
    connection.close()


JSON_LINE = "content-type: application/json\r\n"
GENESIS_CALL = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "genesis_config"}).encode()
GENESIS = (
    f"POST / HTTP/1.1\r\nhost: localhost\r\n{JSON_LINE}content-length: {len(GENESIS_CALL)}\r\n\r\n"
).encode() + GENESIS_CALL
BRIEF_STOP = (
    "import sys\n"
    "from ledgerkit.localnet import server\n"
    "server.SHUTDOWN_TIMEOUT_S = 1\n"
    "from ledgerkit.cli import main\n"
    "sys.exit(main(sys.argv[1:]))\n"
)
PATIENT_STOP = BRIEF_STOP.replace("= 1", "= 600")  # what waits is never ended by this limit

# Faults ---------------------------------------------------------------------------------


def test_a_lost_and_a_cut_answer(running: Running) -> None:
    """The connection is really closed, before the answer and in its midst."""
    with pytest.raises(http.client.RemoteDisconnected):
        running.ask("GET", "/api/health", x_ledgerkit_fault="drop")
    with pytest.raises(http.client.IncompleteRead) as caught:
        running.ask("GET", "/api/health", x_ledgerkit_fault="truncate=4")
    assert (caught.value.partial, caught.value.expected) == (b'{"st', 11)
    assert running.ask("GET", "/api/health")[0] == 200


LATE = b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nx-ledgerkit-fault: latency=1.5\r\n\r\n"
LATER = LATE.replace(b"1.5", b"60")


def test_a_late_answer(running: Running) -> None:
    """One request waits, and no other with it."""
    with running.open(LATE) as late:
        assert running.ask("GET", "/api/health")[0] == 200
        assert not select.select([late], [], [], 0)[0]
        assert late.recv(100).startswith(b"HTTP/1.1 200 OK")


# Stopping, refusing, time, keys -------------------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it(how: signal.Signals) -> None:
    """It stops at once where nothing is under way, closes what is open, and exits with 0."""
    once = b"GET /api/health HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with serving(script=PATIENT_STOP) as running, running.open(once) as idle:
        assert idle.recv(1) == b"H"
        assert running.stop(how) == (0, "")
        assert _last_words(idle).endswith(b'{"status":"ok"}')


def test_whoever_waits_for_a_block_is_told_that_it_stops() -> None:
    """A transaction nobody has seen is waited for; a stop ends that at once, without complaint."""
    nobody = {"tx_hash": "1" * 32, "sender_account_id": "near", "wait_until": "FINAL"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tx", "params": nobody}
    with serving("--block-time", "0.05", script=PATIENT_STOP) as running:
        body = json.dumps(call).encode()
        head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        waiting = running.open(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        time.sleep(0.2)
        assert running.ask("GET", "/api/health")[0] == 200  # so the other has arrived
        assert running.stop() == (0, "")
        assert waiting.recv(65_536).startswith(b"HTTP/1.1 503 ")
        waiting.close()


def test_it_waits_for_what_is_under_way() -> None:
    """A request that was being answered when the signal came is answered."""
    with serving() as running, running.open(LATE) as late:
        assert running.ask("GET", "/api/health")[0] == 200  # so the other has arrived
        assert running.stop() == (0, "")
        assert _last_words(late).endswith(b'{"status":"ok"}')


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_ends_what_does_not_end_by_itself(how: signal.Signals) -> None:
    """Late responses and half bodies fail, and clients that do not read are cut off."""
    with serving(script=BRIEF_STOP) as running, ExitStack() as clients:
        late = clients.enter_context(running.open(LATER))
        half = clients.enter_context(running.open(HALF_BODY))
        deaf = clients.enter_context(running.open(b""))
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(GENESIS * 200)
        assert running.ask("GET", "/api/health")[0] == 200
        assert running.stop(how) == (0, "")
        for client in (late, half):
            assert _last_words(client).startswith(b"HTTP/1.1 500 ")


def test_a_second_interrupt_stops_at_once() -> None:
    """A second Ctrl-C ends the server without waiting for its requests."""
    with serving(script=PATIENT_STOP) as running, running.open(LATER) as late:
        assert running.ask("GET", "/api/health")[0] == 200
        running.process.send_signal(signal.SIGINT)
        while _listens(running):
            time.sleep(0.01)
        assert running.stop(signal.SIGINT) == (0, "")
        assert _last_words(late).startswith(b"HTTP/1.1 500 ")


def _listens(running: Running) -> bool:
    """Return True if the server accepts a connection."""
    try:
        running.open(b"").close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_server_in_a_thread_ends_with_its_program() -> None:
    """When the program ends, as a notebook's kernel does, open requests leave no traceback."""
    command = [sys.executable, "-W", "error", "-c", IN_A_THREAD]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", "200\n")


IN_A_THREAD = """
import socket, threading, urllib.request
from queue import Queue
from ledgerkit.localnet import open_world
from ledgerkit.localnet.server import serve
urls = Queue()
more = {"port": 0, "ready": urls.put}
threading.Thread(target=serve, args=[open_world("empty")], kwargs=more, daemon=True).start()
url = urls.get()
late = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))
late.sendall(b"GET /api/health HTTP/1.1\\r\\nhost: localhost\\r\\n"
             b"x-ledgerkit-fault: latency=60\\r\\n\\r\\n")
print(urllib.request.urlopen(f"{url}/api/health").status)
late.detach()
"""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", EVERYWHERE], "host '0.0.0.0' is not valid: expected a loopback address"),
        (["--world", "no-such"], "world 'no-such' is not valid"),
        (["--block-time", "fast"], "--block-time 'fast' is not valid"),
        (["--block-time", "nan"], "0.01 to 3600 seconds"),
        (["--port", "70000"], "port 70000 is not valid"),
        (["--require-key"], "LEDGERKIT_API_KEY"),
        (["--allow-origin", "app.example"], "allow_origins 'app.example' is not valid"),
        (["--allow-host", "hub:80"], "allow_hosts 'hub:80' is not valid"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_not_served(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong argument is exit code 2 and a sentence, before anything is opened."""
    assert main(["serve", "--world", "empty", *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.startswith("ledgerkit: ")


def test_a_port_that_is_taken(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    """Two servers don't share a port."""
    assert main(["serve", "--world", "empty", "--port", str(running.port)]) == 2
    assert (
        f"port {running.port} is not valid: expected a free port on 127.0.0.1"
        in capsys.readouterr().err
    )


def test_blocks_come_by_the_clock() -> None:
    """With a block time heights grow by themselves, and what waits gets its blocks."""
    with serving("--block-time", "0.05") as running, running.connect() as ledger:
        first = ledger.rpc("block", {"finality": "optimistic"})["header"]["height"]
        end, later = time.monotonic() + 60, first
        while later < first + 4 and time.monotonic() < end:
            time.sleep(0.05)
            later = ledger.rpc("block", {"finality": "optimistic"})["header"]["height"]
        assert later >= first + 4
        assert running.stop() == (0, "")


def test_a_wait_ends_before_the_block_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where blocks are far apart, what waits may look now and then whether its time is up."""
    monkeypatch.setattr(server, "MAX_WAIT_S", 0.01)
    world = open_world("empty", real_time=True, block_time_ns=3600 * 10**9)
    height = world.chain.head.height

    async def wait() -> None:
        async with asyncio.timeout(60):
            await server.ServerClock(world).next_block()

    asyncio.run(wait())
    assert world.chain.head.height == height


def test_a_clock_that_fails_stops_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A world that can make no more blocks does not go on as if nothing were."""
    world = open_world("empty", real_time=True, block_time_ns=10**7)
    monkeypatch.setattr(world, "advance", lambda: 1 // 0)
    with pytest.raises(ExceptionGroup) as caught:
        server.serve(world, port=0)
    assert isinstance(caught.value.exceptions[0], ZeroDivisionError)


def test_a_key_is_demanded_when_told() -> None:
    """The key of the environment opens the served world, and is printed nowhere."""
    key = "PLANTED-key-0123456789"
    with serving("--require-key", LEDGERKIT_API_KEY=key) as running:
        assert running.ask("GET", "/api/health")[0] == 401
        assert running.ask("GET", f"/api/health?apiKey={key}")[0] == 200
        assert running.ask("POST", "/", CALL, authorization=f"Bearer {key}")[0] == 200
        assert running.ask("POST", "/", b"{", authorization="Bearer wrong")[0] == 401
        with running.connect(api_key=key) as ledger:
            assert lk.gas_price(ledger=ledger)["gas_price"].tolist() == [100_000_000]
        running.open(f"GET /api/health?apiKey={key} NONSENSE\r\n\r\n".encode()).close()
        code, complaints = running.stop()
    assert (code, key in complaints + running.line) == (0, False)


def test_transfers_and_block_documents_are_served(running: Running) -> None:
    """An old block is read through a redirect; the transfers of an account are a page."""
    query = b'{"account_id": "near"}'
    status, _, body = running.ask("POST", "/transfers/v0/transfers", query)
    assert (status, json.loads(body)) == (200, {"transfers": [], "resume_token": None})
    genesis = 180_000_000
    for height in (genesis + 8, genesis + 16):  # they are waited for
        status, _, body = running.ask("GET", f"/blocks/v0/block/{height}")
        assert (status, json.loads(body)["block"]["header"]["height"]) == (200, height)
    status, headers, _ = running.ask("GET", f"/blocks/v0/block/{genesis}")
    assert (status, headers["location"]) == (302, f"/blocks/archive/v0/block/{genesis}")
    body = running.ask("GET", headers["location"])[2]
    assert json.loads(body)["block"]["header"]["height"] == genesis


def test_uvicorn_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra the error says what to install."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(errors.InvalidRequestError) as caught:
        server.serve(open_world("empty"), port=0)
    assert 'needs uvicorn: pip install "ledgerkit[serve]"' in str(caught.value)


# Who lives there --------------------------------------------------------------------------


def test_a_world_tells_its_stories(capsys: pytest.CaptureFixture[str]) -> None:
    """`ledgerkit world` prints the published keys, as JSON for programs."""
    assert main(["world", "empty", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert sorted(told) == ["accounts", "contracts", "transactions"]
    assert [sorted(account) for account in told["accounts"]] == [
        ["account_id", "description", "secret_key"]
    ]
    assert told["accounts"][0]["account_id"] == "near"
    assert told["accounts"][0]["secret_key"].startswith("ed25519:")
    assert main(["world", "empty"]) == 0
    assert capsys.readouterr().out.startswith(f"near  {told['accounts'][0]['secret_key']}  owns ")
    assert main(["world", "no-such"]) == 2
