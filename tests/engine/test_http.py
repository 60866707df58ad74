"""How hosts are asked: retries, time, rate, cache, archive, concurrency, interrupts, the end."""

from __future__ import annotations

import asyncio
import gc
import io
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from email.utils import formatdate
from functools import partial
from pathlib import Path
from socket import SO_REUSEADDR, SOL_SOCKET, socket
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tqdm.auto import tqdm

import ledgerkit as lk
from ledgerkit import progress
from ledgerkit.api import rest, rpc
from ledgerkit.errors import (
    AuthError,
    DecodeError,
    InvalidRequestError,
    LedgerError,
    RateLimitedError,
    TransportError,
    UnknownAccountError,
    UnknownBlockError,
)
from ledgerkit.transport import (
    connections,
    http_transport,
    networks,
    rate_limit,
    retry,
    session,
)
from tests.interrupts import LONG_S, interrupt
from tests.loopback import TOKEN, Reply, as_json, connected, failure, raw_host, result, serve
from tests.scripts import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.loopback import Handler

pytestmark = pytest.mark.usefixtures("short_pauses")

BLOCK = "11111111111111111111111111111111"
ONCE = lk.RetryPolicy(attempts=1, total_s=10)
QUICK = lk.RetryPolicy(attempts=3, total_s=10)
PATIENT = lk.RetryPolicy(attempts=1, total_s=2 * LONG_S)
asking = partial(connected, retries=QUICK)


# Where the way to the host makes little difference: one loop, one set of threads.
two_ways = pytest.mark.parametrize("way", ["own", "sync"], indirect=True)


@pytest.fixture
def dead_host() -> Iterator[str]:
    """Return an address on this machine where nobody listens, and that nobody else can get."""
    with socket() as bound:
        bound.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)  # unless a server takes it as its port
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


def tokens(path: str) -> Reply:
    account_id = path.split("/")[3]
    row = {"contract_id": f"of-{account_id}", "balance": "1", "last_update_block_height": 1}
    return as_json({"account_id": account_id, "tokens": [row]})


def by_path(_method: str, path: str, _headers: Mapping[str, str], _body: bytes) -> Reply:
    return tokens(path)


def in_turn(*replies: Reply) -> Handler:
    """Reply with one after the other, then with the last forever."""
    left = list(replies)

    def handler(*_asked: object) -> Reply:
        return left.pop(0) if len(left) > 1 else left[0]

    return handler


OK = as_json({"account_id": "a.near", "tokens": [TOKEN]})
GAS = result({"gas_price": "100"})


def seconds(work: Callable[[], object]) -> float:
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


# One and many ---------------------------------------------------------------------------


def test_every_way_gives_the_same(way):
    """One read or many, each on its own connection or not: the same rows in the order asked."""
    ids = [f"a{number}.near" for number in range(60)]
    with asking(by_path, **way) as (ledger, server):
        one = lk.ft("a7.near", ledger=ledger)
        many = lk.ft(ids, ledger=ledger, progress=False)
    assert one["contract_id"].tolist() == ["of-a7.near"]
    assert many["contract_id"].tolist() == [f"of-{one}" for one in ids]
    assert len(server.requests) == 61
    assert {request.headers["host"] for request in server.requests} == {server.url[7:]}
    assert {request.headers["accept"] for request in server.requests} == {"application/json"}


def test_every_way_posts(way):
    """A call of the RPC is posted as JSON, with its length."""
    with asking(lambda *_: GAS, **way) as (ledger, server):
        assert lk.gas_price(ledger=ledger)["gas_price"].tolist() == [100]
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/")
    assert request.headers["content-type"] == "application/json"
    assert int(request.headers["content-length"]) == len(request.body)
    assert "transfer-encoding" not in request.headers
    assert request.json["method"] == "gas_price"


def test_every_way_sends_the_same(way):
    """A path is quoted alike, the headers are the same few, and no cookie is sent back."""
    cookie = Reply(200, OK.body, {"set-cookie": "session=1; Path=/", "x": "y"})
    with asking(lambda *_: cookie, **way) as (ledger, server):
        for path in ("/a%2Fb", "/é b", "/a/../b", "/plain"):
            ledger.get(path)
    assert server.paths == ["/a%2Fb", "/%C3%A9%20b", "/b", "/plain"]
    names = ["accept", "accept-encoding", "host", "user-agent"]
    assert [sorted(one.headers) for one in server.requests] == [names] * 4


class Counting:
    """Counts how many requests are being answered at the same time, and waits for as many."""

    def __init__(self, delay: float, until: int) -> None:
        self.delay, self.until = delay, until
        self.is_full = threading.Event()
        self.now = self.most = 0
        self.lock = threading.Lock()

    def __call__(self, _method: str, path: str, *_: object) -> Reply:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now == self.until:
                self.is_full.set()
        self.is_full.wait(ONCE.total_s / 2)
        time.sleep(self.delay)
        with self.lock:
            self.now -= 1
        return tokens(path)


@two_ways
def test_no_more_in_flight_than_asked_for(way):
    """As many requests as `in_flight` are under way at the same time, and never more."""
    handler = Counting(0.03, until=way["in_flight"])
    ids = [f"a{number}.near" for number in range(4 * way["in_flight"])]
    with asking(handler, **way) as (ledger, _):
        lk.ft(ids, ledger=ledger, progress=False)
    assert handler.most == way["in_flight"]


def test_threads_of_the_user_share_the_limit():
    """Verbs called from several threads keep to the limit together, and none times out for it."""
    handler = Counting(0.4, until=2)
    with asking(handler, in_flight=2, timeout_s=2.0) as (ledger, _):
        work = [
            threading.Thread(target=lk.ft, args=(f"a{i}.near",), kwargs={"ledger": ledger})
            for i in range(12)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
    assert handler.most == 2


def test_a_bar_shows_unless_silenced(capsys):
    """Many slow reads show a bar on stderr that counts them; `progress=False` shows none."""
    ids = [f"a{number}.near" for number in range(12)]
    with asking(Counting(0.3, until=6), in_flight=6) as (ledger, _):
        lk.ft(ids, ledger=ledger, progress=False)
        assert capsys.readouterr().err == ""
        lk.ft(ids, ledger=ledger)
        told = capsys.readouterr().err
    assert "tokens" in told
    assert "/12" in told


@two_ways
def test_a_bar_counts_in_the_callers_thread(way, monkeypatch):
    """Only the thread that calls a verb writes its bar, wherever requests are answered."""
    threads: set[threading.Thread] = set()

    class Stderr(io.StringIO):
        def write(self, text: str) -> int:
            threads.add(threading.current_thread())
            return super().write(text)

    monkeypatch.setattr(tqdm, "monitor_interval", 0)  # tqdm's own thread refreshes bars that hang
    monkeypatch.setattr(sys, "stderr", Stderr())
    ids = [f"a{number}.near" for number in range(12)]
    with asking(Counting(0.3, until=6), **way | {"in_flight": 6}) as (ledger, _):
        lk.ft(ids, ledger=ledger)
    assert threads == {threading.current_thread()}


# Retries --------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 429, 500, 599])
def test_what_is_asked_again(status):
    """A status that may pass is asked again, on both surfaces."""
    with asking(in_turn(Reply(status, b"busy"), OK)) as (ledger, server):
        assert len(lk.ft("a.near", ledger=ledger)) == 1
    assert len(server.requests) == 2
    with asking(in_turn(Reply(status, b"busy"), GAS)) as (ledger, server):
        assert len(lk.gas_price(ledger=ledger)) == 1
    assert len(server.requests) == 2
    assert server.calls[0]["params"] == server.calls[1]["params"]
    assert server.calls[0]["id"] != server.calls[1]["id"]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, InvalidRequestError),
        (401, AuthError),
        (402, AuthError),
        (403, AuthError),
        (404, LedgerError),
        (422, InvalidRequestError),
    ],
)
def test_what_is_not_asked_again(status, error):
    """A refusal is final after one request."""
    with asking(lambda *_: Reply(status, b"no")) as (ledger, server):
        with pytest.raises(error) as caught:
            lk.ft("a.near", ledger=ledger)
        assert not caught.value.retryable
    assert len(server.requests) == 1


@two_ways
@pytest.mark.parametrize("attempts", [1, 2, 4])
def test_attempts_are_bounded(way, attempts):
    """A host that stays busy is asked exactly as often as allowed; the last failure is raised."""
    policy = lk.RetryPolicy(attempts=attempts, total_s=10)
    with asking(lambda *_: Reply(503, b"busy"), **way, retries=policy) as (ledger, server):
        with pytest.raises(TransportError, match=r"HTTP 503 in response to .*: busy") as caught:
            lk.ft("a.near", ledger=ledger)
        assert caught.value.status == 503
    assert len(server.requests) == attempts


@two_ways
def test_total_time_is_bounded(way, monkeypatch):
    """However many attempts are allowed, the total time ends them."""
    monkeypatch.setattr(retry, "_jitter", lambda _longest: 0.25)
    policy = lk.RetryPolicy(attempts=1000, total_s=1.2)
    with asking(lambda *_: Reply(503, b"busy"), **way, retries=policy) as (ledger, server):
        begin = time.monotonic()
        with pytest.raises(TransportError, match=r"HTTP 503|no answer within 0\."):
            lk.ft("a.near", ledger=ledger)
        assert time.monotonic() - begin < 60
    assert 2 <= len(server.requests) <= 6


def test_a_slow_host(way):
    """A host that does not answer in time is asked again; the error tells the time it had."""
    slow = as_json({"account_id": "a.near", "tokens": [TOKEN]}, delay=20.0)
    policy = lk.RetryPolicy(attempts=2, total_s=10)
    with asking(lambda *_: slow, **way, retries=policy, timeout_s=0.3) as (ledger, server):
        begin = time.monotonic()
        with pytest.raises(
            TransportError, match=r"for the tokens of a.near failed: no answer within 0.3 s"
        ):
            lk.ft("a.near", ledger=ledger)
        assert 0.6 <= time.monotonic() - begin < 20
        assert server.settled() == 2


def test_a_cut_answer_is_asked_again(way):
    """A connection lost in the middle of an answer is a failure to ask, never half an answer."""
    cut = as_json({"account_id": "a.near", "tokens": [TOKEN]}, truncate=10)
    with asking(in_turn(cut, OK), **way) as (ledger, server):
        assert len(lk.ft("a.near", ledger=ledger)) == 1
        assert len(server.requests) == 2
    with asking(lambda *_: cut, **way) as (ledger, server):
        with pytest.raises(TransportError, match=r"the request to 127\.0\.0\.1 for the tokens"):
            lk.ft("a.near", ledger=ledger)
        assert len(server.requests) == 3


def dripping(head: bytes) -> Callable[[socket], None]:
    """Send a byte at a time, forever, after a beginning."""

    def talk(connection: socket) -> None:
        connection.recv(65536)
        connection.sendall(head)
        while True:
            connection.sendall(b"x")
            time.sleep(0.02)

    return talk


@pytest.mark.parametrize("part", ["body", "headers"])
def test_a_dripping_host(way, part):
    """A host that sends a byte now and then does not outlast the time of an attempt."""
    if part == "headers" and isinstance(way.get("transport"), httpx.HTTPTransport):
        pytest.skip("what a synchronous transport does before it answers cannot be cut short")
    body = b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n"
    head = body if part == "body" else b"HTTP/1.1 200 OK\r\nx-more: "
    with (
        raw_host(dripping(head)) as url,
        lk.connect("lab", api_url=url, **way, timeout_s=0.15, retries=PATIENT) as ledger,
    ):
        begin = time.monotonic()
        with pytest.raises(TransportError, match=r"no answer within 0\.15 s"):
            lk.ft("a.near", ledger=ledger)
        assert time.monotonic() - begin < LONG_S


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\x00\x01\x02 nonsense\r\n\r\n",
        b"HTTP/1.1 999999 No\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nx",
    ],
    ids=["nothing", "noise", "status", "upgrade"],
)
def test_a_host_that_speaks_something_else(way, answer):
    """A host that hangs up, or does not speak HTTP, could not be asked; its path is not quoted."""

    def talk(connection: socket) -> None:
        connection.recv(65536)
        connection.sendall(answer)

    with (
        raw_host(talk) as url,
        lk.connect(
            "lab", api_url=f"{url}/secret-place", **way, timeout_s=LONG_S, retries=QUICK
        ) as ledger,
        pytest.raises(
            TransportError, match=r"the request to 127\.0\.0\.1 for the tokens"
        ) as caught,
    ):
        lk.ft("a.near", ledger=ledger)
    assert "no answer within" not in str(caught.value)
    assert "secret-place" not in str(caught.value)
    assert caught.value.retryable


def test_nobody_listens(way, dead_host):
    """A refused connection could not be asked; the sentence names host and question."""
    with (
        lk.connect("lab", rpc_url=dead_host, **way, retries=QUICK) as ledger,
        pytest.raises(
            TransportError, match=r"the request to 127\.0\.0\.1 for the gas price failed"
        ) as caught,
    ):
        lk.gas_price(ledger=ledger)
    assert caught.value.status is None
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


# What a host asks for -------------------------------------------------------------------


def busy(after: str, status: int = 429) -> Reply:
    """Reply that it is too much, and when to come back."""
    return Reply(status, b"slow down", {"retry-after": after})


@two_ways
@pytest.mark.parametrize("status", [429, 503])
def test_the_pause_a_host_asks_for(way, status):
    """`Retry-After` in seconds is waited for, at least."""
    with asking(in_turn(OK, busy("0.2", status), OK), **way) as (ledger, server):
        lk.ft("a.near", ledger=ledger)  # imports and connects
        took = seconds(lambda: lk.ft("a.near", ledger=ledger))
    assert 0.2 <= took < 10
    assert len(server.requests) == 3


def test_the_date_a_host_names():
    """`Retry-After` as a date is waited for."""
    until = time.time() + 1
    with asking(in_turn(busy(formatdate(until, usegmt=True)), OK)) as (ledger, _):
        lk.ft("a.near", ledger=ledger)
    assert int(until) <= time.time() < until + 60


@pytest.mark.parametrize(
    "after", ["3600", formatdate(time.time() + 7200, usegmt=True)], ids=["seconds", "date"]
)
def test_a_pause_too_long_is_told(after):
    """A pause beyond the total time is not slept through: the error tells it at once."""
    with asking(lambda *_: busy(after), retries=replace(QUICK, total_s=1000)) as (ledger, server):
        begin = time.monotonic()
        with pytest.raises(RateLimitedError) as caught:
            lk.ft("a.near", ledger=ledger)
        assert caught.value.retry_after is not None
        assert caught.value.retry_after >= 3600
        assert len(server.requests) == 1
        with pytest.raises(RateLimitedError):  # nor does anybody else wait for it
            lk.ft("b.near", ledger=ledger)
        assert time.monotonic() - begin < LONG_S


def test_a_pause_in_json_rpc_form():
    """A rate limit told as a JSON-RPC error has the pause of its header."""
    told = {"jsonrpc": "2.0", "id": 1, "error": {"code": -429, "message": "Rate limit exceeded"}}
    reply = as_json(told, 429)
    limited = Reply(reply.status, reply.body, {**reply.headers, "retry-after": "0.3"})
    with asking(in_turn(limited, GAS)) as (ledger, _):
        assert seconds(lambda: lk.gas_price(ledger=ledger)) >= 0.3
    with (
        asking(lambda *_: limited, retries=ONCE) as (ledger, _),
        pytest.raises(RateLimitedError) as caught,
    ):
        lk.gas_price(ledger=ledger)
    assert caught.value.retry_after == 0.3


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (None, "about 50 requests a minute without an API key: wait a minute, or connect with a"),
        ("Sesame-0123456789", "10,000 requests a minute with an API key of the smallest plan:"),
    ],
    ids=["anonymous", "key"],
)
def test_a_refusal_of_a_public_host_names_its_limit(key, words):
    """HTTP 429 of a public host says how much it accepts, and what a key changes."""
    transport = httpx.MockTransport(lambda _request: httpx.Response(429, text="slow down"))
    with (
        lk.connect("mainnet", transport=transport, api_key=key, retries=ONCE) as ledger,
        pytest.raises(RateLimitedError, match=r"HTTP 429 .*: slow down") as caught,
    ):
        lk.ft("a.near", ledger=ledger)
    assert f"api.fastnear.com accepts {words}" in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - our own


def test_hosts_are_limited_separately():
    """A pause that one host requests does not delay requests to another."""
    with (
        serve(lambda *_: GAS) as node,
        serve(lambda *_: busy("30")) as indexer,
        lk.connect("lab", rpc_url=node.url, api_url=indexer.url, retries=ONCE) as ledger,
    ):
        ledger.session._rate_limiters["api"].pause(5 * LONG_S)
        assert seconds(lambda: lk.gas_price(ledger=ledger)) < LONG_S


@two_ways
def test_services_on_one_host_share_its_rate(way):
    """Requests to two services of one host start no faster together than its rate."""

    def handler(method: str, path: str, *_: object) -> Reply:
        return GAS if method == "POST" else tokens(path)

    def work() -> None:
        for _ in range(2):
            lk.ft("a.near", ledger=ledger)
            lk.gas_price(ledger=ledger)

    with asking(handler, **way, rate=10) as (ledger, _):
        assert seconds(work) >= 0.3


@two_ways
def test_a_rate_limit_holds_everyone(way):
    """When one request is told to pause, those that follow pause as well."""
    times: list[float] = []

    def handler(_method: str, path: str, *_: object) -> Reply:
        times.append(time.monotonic())
        return busy("0.3") if len(times) == 1 else tokens(path)

    with asking(handler, **(way | {"in_flight": 1})) as (ledger, _):
        work = [
            threading.Thread(target=lk.ft, args=(f"a{i}.near",), kwargs={"ledger": ledger})
            for i in range(3)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
    assert len(times) == 4
    assert all(later - times[0] >= 0.3 for later in times[1:])


# Body and status ------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 400, 408, 422, 429, 500, 503])
def test_the_body_is_believed_before_the_status(status):
    """A typed error in the body decides, whatever the status: an unknown account is final."""
    gone = failure("UNKNOWN_ACCOUNT", {"requested_account_id": "a.near"}, status)
    with (
        asking(lambda *_: gone) as (ledger, server),
        pytest.raises(UnknownAccountError, match=r"a\.near"),
    ):
        lk.keys("a.near", ledger=ledger)
    assert len(server.requests) == 1


@pytest.mark.parametrize("cause", ["INTERNAL_ERROR", "NO_SYNCED_BLOCKS", "NOT_SYNCED_YET"])
def test_a_cause_that_may_pass_is_asked_again(cause):
    """A node that is behind, or failed, is asked again even if it says so with status 200."""
    with asking(in_turn(failure(cause), GAS)) as (ledger, server):
        assert len(lk.gas_price(ledger=ledger)) == 1
    assert len(server.requests) == 2


# What may be repeated -------------------------------------------------------------------


def test_identical_signed_bytes_are_sent_again():
    """Sending signed bytes again is safe, and they are the same bytes."""
    ok = result({"final_execution_status": "NONE"})
    with asking(in_turn(Reply(503), Reply(503), ok)) as (ledger, server):
        ledger.rpc("send_tx", {"signed_tx_base64": "AAAA", "wait_until": "NONE"})
    assert len(server.requests) == 3
    assert [call["params"]["signed_tx_base64"] for call in server.calls] == ["AAAA"] * 3


@pytest.mark.parametrize("reply", [Reply(503), Reply(429), failure("UNKNOWN_BLOCK")])
def test_what_is_not_known_to_be_a_read_is_sent_once(reply):
    """A method that ledgerkit does not know is never sent twice, nor to another host."""
    with (
        serve(lambda *_: GAS) as archive,
        asking(lambda *_: reply, archival_rpc_url=archive.url) as (ledger, server),
    ):
        with pytest.raises(LedgerError):
            ledger.rpc("novel_method", [])
        assert len(server.requests) == 1
        assert archive.requests == []


# The archival host ----------------------------------------------------------------------

GONE = failure("UNKNOWN_BLOCK")
COLLECTED = failure("GARBAGE_COLLECTED_BLOCK", {"block_height": 1, "block_hash": BLOCK}, 422)


@two_ways
@pytest.mark.parametrize("reply", [GONE, COLLECTED], ids=["unknown", "collected"])
def test_the_archive_is_asked_next(way, reply):
    """What the regular host has dropped is asked of the archival one: each once."""
    with (
        serve(lambda *_: GAS) as archive,
        asking(lambda *_: reply, **way, archival_rpc_url=archive.url) as (ledger, server),
    ):
        assert lk.gas_price(at=7, ledger=ledger)["gas_price"].tolist() == [100]
    assert [call["params"] for call in server.calls + archive.calls] == [[7], [7]]


@pytest.mark.parametrize(
    ("reply", "error", "requests"),
    [
        # The second one asks for the newest block, which the error would name.
        (GONE, pytest.raises(UnknownBlockError, match="block 7"), (2, 2)),
        (Reply(502, b"down"), pytest.raises(TransportError, match=r"HTTP 502 .*: down"), (1, 3)),
    ],
    ids=["unknown", "down"],
)
def test_an_archive_that_has_no_answer(reply, error, requests):
    """What both hosts do not know is unknown; an archive that is down leaves the question open."""
    with (
        serve(lambda *_: reply) as archive,
        asking(lambda *_: GONE, archival_rpc_url=archive.url) as (ledger, server),
    ):
        with error:
            lk.block(7, ledger=ledger)
        assert (len(server.requests), len(archive.requests)) == requests


@pytest.mark.parametrize("reply", [GAS, Reply(503, b"busy"), failure("UNKNOWN_ACCOUNT")])
def test_the_archive_is_left_alone(reply):
    """A host that knows, is busy, or says there is none leaves nothing to ask the archive."""
    with (
        serve(lambda *_: GAS) as archive,
        asking(lambda *_: reply, archival_rpc_url=archive.url) as (ledger, _),
    ):
        with pytest.raises(LedgerError) if reply is not GAS else nullcontext():
            lk.gas_price(ledger=ledger)
        assert archive.requests == []


def test_hosts_share_the_total_time(monkeypatch):
    """The archive has the time that the regular host left, and no more."""
    monkeypatch.setattr(retry, "_jitter", lambda _longest: 0.05)
    slow = Reply(GONE.status, GONE.body, delay=0.4)
    policy = lk.RetryPolicy(attempts=100, total_s=3.0)
    with (
        serve(lambda *_: Reply(200, b"{}", delay=20.0)) as archive,
        asking(lambda *_: slow, archival_rpc_url=archive.url, retries=policy) as (ledger, _),
    ):
        begin = time.monotonic()
        with pytest.raises(TransportError, match=r"no answer within [0-2](\.\d+)? s"):
            lk.block(7, ledger=ledger)
        assert time.monotonic() - begin < 20


# Rate and cache -------------------------------------------------------------------------


@two_ways
def test_the_rate_is_kept(way):
    """Requests start no faster than the rate, however many are in flight."""
    ids = [f"a{i}.near" for i in range(13)]
    with asking(by_path, **way, rate=20) as (ledger, _):
        assert seconds(lambda: lk.ft(ids, ledger=ledger, progress=False)) > 0.59


@two_ways
def test_a_queue_longer_than_the_timeout(way):
    """Waiting for the rate is our own doing: it uses up nobody's time to answer."""
    policy = lk.RetryPolicy(attempts=1, total_s=2.0)
    with asking(by_path, **way, rate=4, retries=policy, timeout_s=2.0) as (ledger, _):
        frame = lk.ft([f"a{i}.near" for i in range(10)], ledger=ledger, progress=False)
    assert len(frame) == 10


def block() -> dict[str, Any]:
    header = {
        "height": 7,
        "hash": BLOCK,
        "prev_hash": BLOCK,
        "epoch_id": BLOCK,
        "next_epoch_id": BLOCK,
        "timestamp": 1,
        "timestamp_nanosec": "1",
        "gas_price": "1",
        "total_supply": "1",
        "chunks_included": 0,
        "latest_protocol_version": 80,
    }
    return {"author": "a.near", "header": header, "chunks": []}


@two_ways
def test_what_cannot_change_is_asked_once(way):
    """A block by its hash is asked once a session, and costs no place in the rate."""
    with asking(lambda *_: result(block()), **way, rate=1) as (ledger, server):
        first = lk.block(BLOCK, ledger=ledger)
        took = seconds(lambda: [lk.block(BLOCK, ledger=ledger) for _ in range(20)])
        again = lk.block(BLOCK, ledger=ledger)
    assert len(server.requests) == 1
    assert took < 15
    assert again.drop(columns=[]).equals(first)


def test_what_can_change_is_asked_each_time():
    """The head of the chain is another one each time."""
    with asking(lambda *_: result(block())) as (ledger, server):
        for _ in range(3):
            lk.block("final", ledger=ledger)
    assert len(server.requests) == 3


# Failures among many --------------------------------------------------------------------


@two_ways
def test_a_dead_host_ends_a_batch_early(way, monkeypatch, dead_host):
    """After ten requests without a response the others are not sent, and each says so."""
    attempts: list[str] = []
    once = http_transport.HttpTransport._failure

    def count(self: Any, exchange: Any, error: BaseException) -> LedgerError:
        attempts.append(exchange.call.request)
        return once(self, exchange, error)

    monkeypatch.setattr(http_transport.HttpTransport, "_failure", count)
    ids = [f"a{number}.near" for number in range(100)]
    with lk.connect("lab", api_url=dead_host, **way, retries=QUICK) as ledger:
        frame, errors = lk.ft(ids, ledger=ledger, on_error="collect", progress=False)
    in_flight = way["in_flight"]
    assert 10 * QUICK.attempts <= len(attempts) <= (10 + in_flight) * QUICK.attempts
    assert frame.empty
    assert errors["subject"].tolist() == ids
    assert set(errors["error"]) == {"TransportError"}
    assert errors["retryable"].all()
    assert errors["message"][0].startswith("the request to 127.0.0.1 for the tokens of a0.near")
    last = errors["message"][99]
    # Requests that were under way when the tenth ended may be counted too.
    sentence = r"not sent, because the last 1\d requests had no response: 127\.0\.0\.1: "
    assert re.match(sentence, last)
    assert "(request: the tokens of a99.near). Check the connection" in last
    not_sent = errors["message"].str.startswith("not sent").sum()
    assert 90 - in_flight <= not_sent <= 90


def test_a_response_in_between_keeps_a_batch_going():
    """Nine lost connections in a row, again and again, are no dead host: all are sent."""
    n_requests = 0

    def handler(_method: str, path: str, *_: object) -> Reply:
        nonlocal n_requests
        n_requests += 1
        cut = Reply(200, b"{}", truncate=0)
        return tokens(path) if n_requests % 10 == 0 else cut

    ids = [f"a{number}.near" for number in range(60)]
    with asking(handler, in_flight=1, retries=ONCE) as (ledger, server):
        frame, errors = lk.ft(ids, ledger=ledger, on_error="collect", progress=False)
    assert (len(frame), len(errors), len(server.requests)) == (6, 54, 60)


def test_a_host_that_never_answers_is_a_dead_one():
    """Timeouts in a row end a batch as refused connections do."""
    ids = [f"a{number}.near" for number in range(60)]
    slow = Reply(200, b"{}", delay=20.0)
    with asking(lambda *_: slow, timeout_s=0.2, retries=ONCE, in_flight=4) as (ledger, _):
        _, errors = lk.ft(ids, ledger=ledger, on_error="collect", progress=False)
    assert errors["message"].str.contains("no answer within 0.2 s", regex=False).sum() <= 14
    last = errors["message"][59]
    # Requests that were under way when the tenth ended may be counted too.
    sentence = r"not sent, because the last 1\d requests had no response: 127\.0\.0\.1: "
    assert re.match(sentence, last)
    assert "no answer in time (request: the tokens of a59.near)" in last


def test_a_failing_host_is_no_dead_one():
    """A host that answers 503 has answered: each request of a batch is sent."""
    ids = [f"a{number}.near" for number in range(40)]
    with asking(lambda *_: Reply(503), retries=ONCE) as (ledger, server):
        _, errors = lk.ft(ids, ledger=ledger, on_error="collect", progress=False)
    assert (len(errors), len(server.requests)) == (40, 40)


def test_a_dead_host_stops_no_other(dead_host):
    """In a batch for two hosts only the requests to the dead one are not sent."""
    calls: list[Any] = []
    for n in range(40):
        calls += [rest.ft(f"a{n}.near"), rpc.gas_price(n)]
    with (
        serve(lambda *_: GAS) as node,
        lk.connect("lab", rpc_url=node.url, api_url=dead_host, retries=ONCE) as ledger,
    ):
        values: list[Any] = ledger.send_many(calls, on_error="collect", progress=False)
    assert [value.gas_price for value in values[1::2]] == ["100"] * 40
    assert [value.not_sent for value in values[::2]].count(True) >= 20
    assert len(node.requests) == 40


def test_a_dead_archival_host_stops_no_other(dead_host):
    """After ten old blocks that only a dead archival host has, newer ones are still read."""

    def handler(_method: str, _path: str, _headers: Mapping[str, str], body: bytes) -> Reply:
        return GAS if b"[1000]" in body else failure("UNKNOWN_BLOCK")

    calls = [rpc.gas_price(height) for height in [*range(30), *[1000] * 5]]
    with (
        serve(handler) as node,
        lk.connect(
            "lab", rpc_url=node.url, archival_rpc_url=dead_host, retries=ONCE, in_flight=1
        ) as ledger,
    ):
        values: list[Any] = ledger.send_many(calls, on_error="collect", progress=False)
    assert [value.gas_price for value in values[30:]] == ["100"] * 5
    assert [value.not_sent for value in values[:30]].count(True) == 20
    assert len(node.requests) == 35


@pytest.fixture
def public(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, float], None]:
    """Treat this machine as a public host with so many requests in so many seconds."""

    def limit(count: int, window_s: float) -> None:
        monkeypatch.setattr(session, "_shared_limiters", {})
        monkeypatch.setattr(networks, "_PER_MINUTE", {"0.0.1": count})
        monkeypatch.setattr(rate_limit, "MINUTE_S", window_s)

    return limit


def test_a_dead_host_with_a_limit_ends_a_batch_early(public, dead_host):
    """Attempts without a connection do not use up the limit of a minute."""
    public(50, 600.0)
    ids = [f"a{number}.near" for number in range(100)]
    with lk.connect("lab", api_url=dead_host, retries=lk.RetryPolicy(attempts=4)) as ledger:
        start = time.monotonic()
        _, errors = lk.ft(ids, ledger=ledger, on_error="collect", progress=False)
    assert time.monotonic() - start < 300
    assert len(errors) == 100
    assert errors["message"].str.startswith("not sent").sum() >= 74


@pytest.mark.parametrize("n_accounts", [1, 2])
def test_a_long_wait_for_a_limit_is_shown(public, monkeypatch, n_accounts):
    """A request that waits for the next minute says how long and why, where it is seen."""
    public(2, 2.0)
    monkeypatch.setattr(session, "_LONG_WAIT_S", 0.1)
    texts: list[str] = []
    monkeypatch.setattr(progress.Line, "show", lambda _, text: texts.append(text))
    ids = [f"a{number}.near" for number in range(n_accounts)]
    with serve(by_path) as server, lk.connect("lab", api_url=server.url) as ledger:
        lk.ft(["b.near", "c.near"], progress=False, ledger=ledger)
        assert texts == []
        lk.ft(ids, progress=False, ledger=ledger)
    limit = "at most 2 requests a minute without an API key, to 127.0.0.1"
    assert [re.sub("waiting [12] s", "waiting", text) for text in texts] == (
        [f"waiting: {limit}"] * n_accounts
    )


def test_a_refusal_for_a_minute_is_waited_for(public):
    """After a 429 without Retry-After the attempts are spread over the total time."""
    public(50, 61.0)
    times: list[float] = []

    def handler(_method: str, path: str, *_: object) -> Reply:
        times.append(time.monotonic())
        return tokens(path) if len(times) == 3 else Reply(429)

    policy = lk.RetryPolicy(attempts=4, total_s=4)
    with (
        serve(handler) as server,
        lk.connect("lab", api_url=server.url, retries=policy) as ledger,
    ):
        begin = time.monotonic()
        assert len(lk.ft("a.near", ledger=ledger)) == 1
    assert len(times) == 3
    assert times[2] - begin > 1.9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_counts_the_minute_for_itself(public):
    """A child has a minute of its own, although its parent has used up the same one."""
    public(1, 600.0)
    with serve(by_path) as server, lk.connect("lab", api_url=server.url) as ledger:
        lk.ft("a.near", ledger=ledger)
        process = multiprocessing.get_context("fork").Process(
            target=lk.ft, args=("b.near",), kwargs={"ledger": ledger}
        )
        process.start()
        process.join(2 * LONG_S)
        process.kill()
        assert (process.exitcode, len(server.requests)) == (0, 2)


def test_a_host_that_is_back_is_asked_again(dead_host):
    """Each batch tries anew: nothing is remembered of a host that was dead."""
    ids = [f"a{number}.near" for number in range(30)]
    with lk.connect("lab", api_url=dead_host, retries=ONCE) as ledger:
        _, errors = lk.ft(ids, ledger=ledger, on_error="collect", progress=False)
        assert len(errors) == 30
        with serve(by_path, port=int(dead_host.rpartition(":")[2])):
            assert len(lk.ft(ids, ledger=ledger, progress=False)) == 30


def test_the_first_failure_ends_it(way):
    """Unless collected, the first failure is raised and what was not begun is never asked."""
    is_raised = threading.Event()

    def handler(_method: str, path: str, *_: object) -> Reply:
        if "/a3." in path:
            return Reply(200, b"<html>")
        is_raised.wait(LONG_S)
        return tokens(path)

    ids = [f"a{number}.near" for number in range(500)]
    with asking(handler, **way) as (ledger, server):
        with pytest.raises(DecodeError, match=r"the tokens of a3\.near"):
            lk.ft(ids, ledger=ledger, progress=False)
        is_raised.set()
        assert server.settled() <= way["in_flight"] + 1
        assert lk.ft("a7.near", ledger=ledger)["account_id"].tolist() == ["a7.near"]


# Interrupts, loops, processes -----------------------------------------------------------


@pytest.fixture(params=[False, True], ids=["usual", "restarting"])
def _sigint(request):
    """Let a wait go on after Ctrl-C, as it does where Polars has put its own handler."""
    signal.siginterrupt(signal.SIGINT, not request.param)
    yield
    signal.siginterrupt(signal.SIGINT, True)  # noqa: FBT003 - it has no other form


@pytest.mark.usefixtures("_sigint")
@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_ctrl_c(way, many):
    """Ctrl-C ends a verb at once; nothing more is asked, and the ledger goes on working."""
    go_on, first = threading.Event(), threading.Event()

    def slow(_method: str, path: str, *_: object) -> Reply:
        first.set()
        go_on.wait(LONG_S)
        return tokens(path)

    ids = [f"a{number}.near" for number in range(100)] if many else "a0.near"
    patient = lk.RetryPolicy(attempts=1, total_s=LONG_S)
    with asking(slow, **way, rate=200, retries=patient) as (ledger, server):
        interrupt(lambda: lk.ft(ids, ledger=ledger, progress=False), after=first)
        go_on.set()
        asked = server.settled()
        assert asked <= way["in_flight"]
        assert len(lk.ft(["a.near", "b.near"], ledger=ledger, progress=False)) == 2
        assert len(server.requests) == asked + 2


def test_inside_a_running_loop(way):
    """In a notebook, where a loop is always running, verbs work as anywhere."""

    async def cell() -> int:
        return len(lk.ft(["a.near", "b.near"], ledger=ledger, progress=False))

    with asking(by_path, **way) as (ledger, _):
        assert asyncio.run(cell()) == 2


SCRIPT = """
import os, sys, warnings
import ledgerkit as lk
from ledgerkit.api import rest as indexed

url, = sys.argv[1:]
calls = [indexed.ft(f"a{i}.near") for i in range(30)]
ledger = lk.connect("lab", api_url=url)
asked = [view.account_id for view in ledger.send_many(calls, progress=False)]
assert asked == [f"a{i}.near" for i in range(30)]
"""
FORK = """
warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons advise against forking
if child := os.fork():
    assert len(ledger.send_many(calls, progress=False)) == 30
    assert os.waitpid(child, 0)[1] == 0
    assert len(ledger.send_many(calls, progress=False)) == 30
else:
    assert len(ledger.send_many(calls, progress=False)) == 30
    assert ledger.send(calls[0]).account_id == "a0.near"
    ENDING
"""


@pytest.mark.parametrize(
    "ending", ["", "del ledger; lk.disconnect()", "ledger.close()", "ledger.close(); os._exit(0)"]
)
def test_nothing_is_left_at_the_end(ending):
    """A script that ends, however, leaves no connection, no task, no warning."""
    with serve(by_path) as server:
        ended = run(SCRIPT + ending, server.url)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("ending", ["", "ledger.close()"])
def test_a_forked_child_asks_on_its_own(ending):
    """After a fork parent and child both work, on connections of their own, and both end."""
    with serve(by_path) as server:
        ended = run(SCRIPT + FORK.replace("ENDING", ending), server.url)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(server.requests) == 30 * 4 + 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_that_asks_nothing_disturbs_nobody():
    """A child that ends, and with it all it has from its parent, leaves the parent's loop alone."""
    script = FORK.partition("else:")[0] + "del ledger, calls"
    with serve(by_path) as server:
        ended = run(SCRIPT + script, server.url)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(server.requests) == 30 * 3


# Redirects, proxies, TLS ----------------------------------------------------------------


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Return what sets the proxies of an environment that names no exceptions."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@two_ways
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(way, status):
    """A redirect is an error that says so; the other host is never asked, the first once."""
    with serve(by_path) as other:
        moved = Reply(status, b"{}", {"location": other.url + "/v1/account/a.near/ft"})
        with asking(lambda *_: moved, **way) as (ledger, server):
            for verb in (lambda: lk.ft("a.near", ledger=ledger), lambda: ledger.rpc("block")):
                with pytest.raises(
                    TransportError, match=rf"redirects the request for .* \(HTTP {status}\)"
                ) as caught:
                    verb()
                assert caught.value.status == status
                assert not caught.value.retryable
        assert len(server.requests) == 2
        assert other.requests == []


def test_the_proxy_of_the_environment(environment):
    """A proxy of the environment gets its login and requests to other hosts, not to this one."""
    with serve(lambda _m, path, *_: tokens(path[len("http://api.example") :])) as proxy:
        environment.setenv("http_proxy", proxy.url.replace("//", "//me:p%40ss@"))
        options: dict[str, Any] = {"retries": ONCE}
        with serve(lambda *_: GAS) as server:
            urls: dict[str, Any] = {"api_url": "http://api.example", "rpc_url": server.url}
            with lk.connect("lab", **urls, **options) as ledger:
                assert lk.ft("a.near", ledger=ledger)["account_id"].tolist() == ["a.near"]
                assert len(lk.gas_price(ledger=ledger)) == 1
    assert proxy.paths == ["http://api.example/v1/account/a.near/ft"]
    assert proxy.requests[0].headers["proxy-authorization"] == "Basic bWU6cEBzcw=="
    assert server.paths == ["/"]


def test_each_scheme_has_its_proxy(certificate, environment):
    """A host with http has the proxy of http, and one with https the proxy of ALL_PROXY."""
    urls: dict[str, Any] = {"api_url": "http://api.example", "rpc_url": "https://rpc.example"}
    seen: list[bytes] = []
    with serve(lambda *_: OK) as proxy, raw_host(tunnel(certificate, seen, b"403 No")) as other:
        environment.setenv("http_proxy", proxy.url)
        environment.setenv("ALL_PROXY", other.replace("//", "//me:opensesame@"))
        with lk.connect("lab", **urls, retries=ONCE) as ledger:
            assert len(lk.ft("a.near", ledger=ledger)) == 1
            with pytest.raises(TransportError, match="403") as caught:
                lk.gas_price(ledger=ledger)
    assert "opensesame" not in str(caught.value)
    assert [one.split(b" HTTP")[0] for one in seen] == [b"CONNECT rpc.example:443"]
    assert proxy.paths == ["http://api.example/v1/account/a.near/ft"]


def test_a_host_without_a_proxy(environment):
    """A host that NO_PROXY names is asked directly, and the others through the proxy."""
    environment.setenv("no_proxy", "127.0.0.1")
    environment.setattr(networks, "is_loopback", lambda _url: False)
    with serve(lambda *_: OK) as proxy, serve(lambda *_: GAS) as server:
        environment.setenv("all_proxy", proxy.url)
        urls: dict[str, Any] = {"api_url": "http://api.example", "rpc_url": server.url}
        with lk.connect("lab", **urls, retries=ONCE) as ledger:
            assert len(lk.ft("a.near", ledger=ledger)) == 1
            assert len(lk.gas_price(ledger=ledger)) == 1
    assert proxy.paths == ["http://api.example/v1/account/a.near/ft"]
    assert server.paths == ["/"]


def socks_server(seen: list[bytes]) -> Callable[[socket], None]:
    """Answer as a SOCKS5 proxy that wants a login, and then as the host behind it."""
    # Source: RFC 1928 and, for the login, RFC 1929.

    def talk(connection: socket) -> None:
        reader = connection.makefile("rb")
        assert reader.read(1) == b"\x05"
        reader.read(reader.read(1)[0])
        connection.sendall(b"\x05\x02")
        assert reader.read(1) == b"\x01"
        login = [reader.read(reader.read(1)[0]) for _ in ("user", "password")]
        connection.sendall(b"\x01\x00")
        assert reader.read(4) == b"\x05\x01\x00\x03"
        name = reader.read(reader.read(1)[0])
        seen.extend([*login, name, reader.read(2)])
        connection.sendall(b"\x05\x00\x00\x01" + bytes(6))
        while line := reader.readline():  # empty at the end of the connection
            seen.append(line.strip())
            while reader.readline().strip():
                pass
            connection.sendall(replying(OK.body))

    return talk


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_a_socks_proxy(scheme, environment):
    """A SOCKS5 proxy gets its login and the name of the host, and its connection is kept."""
    seen: list[bytes] = []
    with raw_host(socks_server(seen)) as proxy:
        environment.setenv("ALL_PROXY", proxy.replace("http://", f"{scheme}://me:p%40ss@"))
        with lk.connect("lab", api_url="http://api.example", retries=ONCE) as ledger:
            for _ in range(2):
                assert len(lk.ft("a.near", ledger=ledger)) == 1
    requests = [b"GET /v1/account/a.near/ft HTTP/1.1"] * 2
    assert seen == [b"me", b"p@ss", b"api.example", b"\x00P", *requests]


def test_a_socks_proxy_without_its_extra(environment):
    """Without aiohttp-socks the error says how to install it, and does not quote the proxy."""
    environment.setenv("ALL_PROXY", "socks5://me:opensesame@127.0.0.1:9")
    environment.setitem(sys.modules, "aiohttp_socks", None)
    with pytest.raises(InvalidRequestError) as caught:
        lk.connect("lab", api_url="http://api.example")
    assert 'pip install "ledgerkit[socks]"' in str(caught.value)
    assert "opensesame" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["gopher", "socks4"])
def test_a_proxy_that_cannot_be_used(scheme, environment):
    """A proxy of another kind is refused without quoting its password."""
    environment.setenv("ALL_PROXY", f"{scheme}://me:secret-word@127.0.0.1:9")
    with pytest.raises(InvalidRequestError, match=f"the {scheme} proxy") as caught:
        lk.connect("lab", api_url="http://api.example")
    assert "secret-word" not in str(caught.value)


def test_a_proxy_that_repeats_its_login(environment):
    """A proxy's password is hidden in what the proxy answers, in either spelling."""

    def handler(_method: str, _path: str, headers: Any, _body: bytes) -> Reply:
        return Reply(407, f"{headers['proxy-authorization']} me:opensesame".encode())

    with serve(handler) as proxy:
        environment.setenv("http_proxy", proxy.url.replace("//", "//me:opensesame@"))
        with (
            lk.connect("lab", api_url="http://api.example") as ledger,
            pytest.raises(LedgerError, match=r"me:\[password hidden\]") as caught,
        ):
            ledger.get("/x")
    text = f"{caught.value} {vars(caught.value)}"
    assert "opensesame" not in text
    assert "bWU6b3BlbnNlc2FtZQ" not in text  # me:opensesame in base64


def test_plain_http_behind_an_https_address(way):
    """A host that does not speak TLS could not be asked."""
    with (
        serve(by_path) as server,
        lk.connect(
            "lab", api_url=server.url.replace("http:", "https:"), **way, retries=ONCE
        ) as ledger,
        pytest.raises(TransportError, match="the request to "),
    ):
        lk.ft("a.near", ledger=ledger)


@two_ways  # httpcore's asynchronous pool may leave the socket open
def test_a_handshake_without_an_end(way):
    """A host that never finishes its greeting is given up; when it hangs up, no socket is open."""
    is_given_up, hung_up = threading.Event(), threading.Event()

    def hang_up(_: socket) -> None:
        is_given_up.wait(LONG_S)
        threading.Timer(0.3, hung_up.set).start()

    options = way | {"timeout_s": 0.2, "retries": ONCE}
    with (
        raw_host(hang_up) as url,
        lk.connect("lab", api_url=url.replace("http:", "https:"), **options) as ledger,
    ):
        with pytest.raises(TransportError, match=r"no answer within 0\.2 s"):
            lk.ft("a.near", ledger=ledger)
        is_given_up.set()
    assert hung_up.wait(LONG_S)
    gc.collect()  # a socket left open would warn, which is an error


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a certificate that nobody has signed but itself."""
    if not (openssl := shutil.which("openssl")):
        pytest.skip("openssl makes the certificate")
    path = tmp_path_factory.mktemp("tls") / "own.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    out = ["-newkey", "rsa:2048", "-nodes", "-keyout", str(path), "-out", f"{path}.crt"]
    subprocess.run(
        [openssl, "req", "-x509", "-days", "2", *names, *out], capture_output=True, check=True
    )
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path


def tls_host(certificate: Path) -> Callable[[socket], None]:
    """Answer one request a connection over TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def talk(connection: socket) -> None:
        with context.wrap_socket(connection, server_side=True) as stream:
            path = stream.recv(65536).split()[1].decode()
            body = tokens(path).body
            stream.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n" % len(body))
            stream.sendall(b"connection: close\r\n\r\n" + body)

    return talk


def test_certificates_are_verified(certificate, monkeypatch):
    """A host that nobody vouches for is not asked; one that the environment trusts is."""
    with raw_host(tls_host(certificate)) as plain, serve(lambda *_: GAS) as server:
        url = plain.replace("http:", "https:")
        urls: dict[str, Any] = {
            "api_url": url,
            "rpc_url": server.url,
        }  # plain http beside it changes nothing
        options: dict[str, Any] = {"retries": ONCE}
        with (
            lk.connect("lab", **urls, **options) as ledger,
            pytest.raises(TransportError, match=r"(?i)certificate"),
        ):
            lk.ft("a.near", ledger=ledger)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with lk.connect("lab", **urls, **options, api_key="PLANTED-0123") as ledger:
            ids = [f"a{number}.near" for number in range(20)]
            assert lk.ft(ids, ledger=ledger, progress=False)["account_id"].tolist() == ids


def test_the_certificate_of_a_proxy_is_verified(certificate, environment):
    """An https proxy that nobody vouches for gets neither its login nor a request."""
    seen: list[str] = []

    def talk(connection: socket) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        with context.wrap_socket(connection, server_side=True) as stream:
            seen.append(stream.recv(65536).decode())

    with raw_host(talk) as plain:
        environment.setenv("http_proxy", plain.replace("http://", "https://me:word@"))
        with (
            lk.connect("lab", api_url="http://api.example", retries=ONCE) as ledger,
            pytest.raises(TransportError, match=r"(?i)certificate"),
        ):
            lk.ft("a.near", ledger=ledger)
    assert not any(seen)


def tunnel(certificate: Path, seen: list[bytes], status: bytes) -> Callable[[socket], None]:
    """Answer as a proxy: open a tunnel to a host with TLS, or refuse it."""
    host = tls_host(certificate)

    def talk(connection: socket) -> None:
        seen.append(connection.recv(65536))
        connection.sendall(b"HTTP/1.1 " + status + b"\r\n\r\n")
        if status.startswith(b"200"):
            host(connection)

    return talk


def test_a_tunnel_through_a_proxy(certificate, environment):
    """A proxy with a login opens a tunnel to a host with TLS, whose certificate is verified."""
    options: dict[str, Any] = {"retries": ONCE}
    seen: list[bytes] = []
    with raw_host(tunnel(certificate, seen, b"200 OK")) as proxy:
        environment.setenv("https_proxy", proxy.replace("//", "//me:p%40ss@"))
        refused = pytest.raises(TransportError, match=r"(?i)certificate")
        with lk.connect("lab", api_url="https://api.example", **options) as ledger, refused:
            lk.ft("a.near", ledger=ledger)
        environment.setenv("SSL_CERT_FILE", str(certificate))
        environment.setattr(networks, "is_loopback", lambda _url: False)
        with lk.connect("lab", api_url="https://localhost:444", **options) as ledger:
            assert lk.ft("a.near", ledger=ledger)["account_id"].tolist() == ["a.near"]
    assert seen[0].startswith(b"CONNECT api.example:443 HTTP/1.1\r\n")
    assert seen[1].startswith(b"CONNECT localhost:444 HTTP/1.1\r\n")
    assert all(b"\r\nproxy-authorization: basic bwu6cebzcw==" in head.lower() for head in seen)


# Connections ----------------------------------------------------------------

BULK: dict[str, Any] = {"in_flight": 16, "retries": ONCE}


def replying(body: bytes, head: bytes = b"") -> bytes:
    return b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body)


def test_a_connection_that_the_host_has_closed():
    """A GET that an idle connection lost is sent over a new one; a POST is not sent twice."""
    received: list[bytes] = []
    bodies = {b"GET": OK.body, b"POS": GAS.body.replace(b'"ledgerkit"', b"null")}

    def talk(connection: socket) -> None:
        received.append(connection.recv(65536))
        connection.sendall(replying(bodies[received[-1][:3]]))
        received.append(connection.recv(65536))  # and no response

    with raw_host(talk) as url, lk.connect("lab", rpc_url=url, api_url=url, **BULK) as ledger:
        for _ in range(3):
            assert len(lk.ft("a.near", ledger=ledger)) == 1
        with pytest.raises(TransportError, match="Server disconnected"):
            lk.gas_price(ledger=ledger)
    assert [head[:4] for head in received] == [b"GET ", b"GET ", b"GET ", b"GET ", b"GET ", b"POST"]


def test_idle_connections_are_closed(monkeypatch):
    """A connection that no request used for a while is closed by the pool."""
    monkeypatch.setattr(connections, "_KEEPALIVE_S", 0.05)
    ended = threading.Event()

    def talk(connection: socket) -> None:
        connection.recv(65536)
        connection.sendall(replying(OK.body))
        if not connection.recv(65536):
            ended.set()

    with raw_host(talk) as url, lk.connect("lab", api_url=url, **BULK) as ledger:
        assert len(lk.ft("a.near", ledger=ledger)) == 1
        assert ended.wait(LONG_S)
