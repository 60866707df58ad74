"""An API key reaches the host, in its place, and is found nowhere else, whatever goes wrong."""

from __future__ import annotations

import copy
import gc
import io
import json
import logging
import pickle
import threading
import time
import traceback
from contextlib import contextmanager, suppress
from functools import partial
from socket import create_server
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import ledgerkit as lk
from ledgerkit import redaction
from ledgerkit.errors import (
    AuthError,
    DecodeError,
    InvalidRequestError,
    LedgerError,
    RateLimitedError,
    TransportError,
)
from ledgerkit.transport import retry
from tests.interrupts import LONG_S, interrupt
from tests.loopback import Reply, as_json, connected, result, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from tests.loopback import Handler

KEY = "PLANTED-mossw0rt/Qx+42=z&y"  # letters that URLs spell differently
PARTS = (KEY, "PLANTED", "mossw0rt", "Qx+42", "Qx%2B42")
asking = partial(connected, api_key=KEY, retries=lk.RetryPolicy(attempts=2, total_s=5))
PLACES = pytest.mark.parametrize("key_in", ["header", "query"])


def found(text: object) -> list[str]:
    """Look for the key, or parts of it, in a text."""
    return [part for part in PARTS if part in str(text)]


@pytest.fixture(autouse=True)
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Listen to every logger at its most talkative; afterwards the key is in no line."""
    monkeypatch.setattr(retry, "_jitter", lambda _longest: 0.01)
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.setFormatter(Everything())
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    for name in ("httpx", "httpcore", "aiohttp", "asyncio", "ledgerkit"):
        monkeypatch.setattr(logging.getLogger(name), "disabled", False)
    try:
        yield lines
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
    lk.disconnect()
    assert found(lines.getvalue()) == []


class Everything(logging.Formatter):
    """Writes a record with all its attributes, shown or not."""

    def format(self, record: logging.LogRecord) -> str:
        return f"{record.name} {record.getMessage()} {vars(record)!r}"


def echo(status: int) -> Handler:
    """Repeat the whole request in the answer, as a debug page does."""

    def handler(method: str, path: str, headers: Any, body: bytes) -> Reply:
        told = {"error": f"{method} {path}", "headers": dict(headers), "body": body.decode()}
        return as_json({**told, "account_id": headers.get("authorization", path)}, status)

    return handler


def chain(error: BaseException | None) -> list[BaseException]:
    """List an error with all that hangs on it, suppressed or not."""
    seen: list[BaseException] = []
    left = [error]
    while left:
        one = left.pop()
        if one is not None and one not in seen:
            seen.append(one)
            left += [one.__cause__, one.__context__]
    return seen


def assert_clean(error: BaseException) -> None:
    """Look for the key in an error: its words, attributes, pickle, and every frame's variables."""
    for one in chain(error):
        assert isinstance(one, LedgerError | KeyboardInterrupt), f"{type(one)} hangs on an error"
        assert found(str(one) + repr(one) + repr(one.args) + repr(vars(one))) == []
        told = traceback.TracebackException(
            type(one), one, inside(one.__traceback__), capture_locals=True
        )
        assert found("".join(told.format())) == []
        for frame, _line in traceback.walk_tb(inside(one.__traceback__)):
            assert_clean_frame(frame.f_code.co_qualname, frame.f_locals)
    with suppress(TypeError):
        assert found(pickle.dumps(error)) == []
        assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - our own


def inside(trace: TracebackType | None) -> TracebackType | None:
    """Skip the frames of the test itself, which knows the key."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


def assert_clean_frame(name: str, variables: dict[str, object]) -> None:
    """Look for the key in what a frame holds, and what holds the key in a frame."""
    for variable, value in variables.items():
        assert found(repr(value)) == [], f"{name}: {variable}"
        assert not isinstance(value, httpx.Request | httpx.Response | httpx.URL | httpx.Headers), (
            name
        )


# Where the key goes ---------------------------------------------------------------------


def both(ledger: lk.Ledger) -> None:
    assert ledger.get("/health") == {"status": "ok"}
    assert lk.gas_price(ledger=ledger)["gas_price"].tolist() == [100]


def fine(method: str, *_: object) -> Reply:
    return result({"gas_price": "100"}) if method == "POST" else as_json({"status": "ok"})


@PLACES
def test_the_key_travels_in_one_place(way, key_in):
    """Both surfaces get the key as a bearer token, or on request as `apiKey=`, and only so."""
    with asking(fine, **way, key_in=key_in) as (ledger, server):
        both(ledger)
    token, query = (f"Bearer {KEY}", {}) if key_in == "header" else (None, {"apiKey": KEY})
    urls = [httpx.URL("http://host" + path) for path in server.paths]
    assert [url.path for url in urls] == ["/health", "/"]
    assert [dict(url.params) for url in urls] == [query] * 2
    assert [request.headers.get("authorization") for request in server.requests] == [token] * 2


def test_the_archive_gets_the_key_too():
    """The archival host is of the same service: it gets the key in the same place."""
    gone = {"jsonrpc": "2.0", "id": 1, "error": {"cause": {"name": "UNKNOWN_BLOCK"}}}
    with (
        serve(fine) as archive,
        asking(lambda *_: as_json(gone), archival_rpc_url=archive.url) as (ledger, _),
    ):
        lk.gas_price(ledger=ledger)
    assert archive.requests[0].headers["authorization"] == f"Bearer {KEY}"


@PLACES
def test_the_key_follows_no_redirect(way, key_in, log):
    """A redirect that repeats the key leads nowhere: not to another host, nor into a log."""
    with serve(fine) as other:

        def handler(_method: str, path: str, *_: object) -> Reply:
            return Reply(302, path.encode(), {"location": other.url + path})

        with asking(handler, **way, key_in=key_in) as (ledger, server):
            with pytest.raises(
                TransportError, match=r"redirects the request for .* \(HTTP 302\)"
            ) as caught:
                ledger.get("/health")
            assert_clean(caught.value)
        assert len(server.requests) == 1
        assert other.requests == []
    if way == {"in_flight": 8}:
        assert "receive_response_headers.complete" in log.getvalue()  # httpcore was heard


def test_the_key_is_not_sent_where_others_can_read():
    """With a key, plain http to any host but this machine is refused, and shows no key."""
    with pytest.raises(InvalidRequestError, match="expected an https address") as caught:
        lk.connect("lab", rpc_url="http://c.example", api_key=KEY)
    assert_clean(caught.value)


def test_a_key_of_the_environment(monkeypatch):
    """The key of the environment goes to a preset's hosts, never to an address given here."""
    monkeypatch.setenv("LEDGERKIT_API_KEY", KEY)
    assert lk.connect("mainnet").session.settings.key is not None
    with serve(fine) as server:
        with lk.connect("lab", rpc_url=server.url, api_url=server.url) as ledger:
            both(ledger)
        assert all("authorization" not in request.headers for request in server.requests)
    with pytest.raises(InvalidRequestError) as caught:
        lk.connect("mainet")
    assert_clean(caught.value)


SIGNING_KEY = "ed25519:" + "3dZ9" * 22


def test_secrets_in_a_list_of_accounts(tmp_path):
    """A collection stores that an entry was refused, and not what it was."""
    ids = tmp_path / "ids.txt"
    ids.write_text(f"alice.near\n{SIGNING_KEY}\nAlice\n")
    empty = {"account_id": "alice.near", "tokens": []}
    with asking(lambda *_: as_json(empty)) as (ledger, _):
        collection = lk.collect(ids, ["ft"], out=tmp_path / "out", ledger=ledger, progress=False)
    errors = collection.errors()
    assert sorted(errors.loc[errors["kind"] == "malformed", "subject"]) == ["(not shown)", "Alice"]
    for path in (tmp_path / "out").rglob("*"):
        assert path.is_dir() or b"3dZ93dZ9" not in path.read_bytes()


def test_a_submission_is_not_pickled():
    """A submission belongs to a ledger, which may have a key: its hash is stored instead."""
    ledger = lk.connect("local")
    signer_id = "alice.near"
    submission = lk.transfer("bob.near", "1 NEAR", signer_id=signer_id, ledger=ledger)
    for attempt in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="a Submission is never pickled: store its tx_hash"):
            attempt(submission)


# What goes wrong ------------------------------------------------------------------------


@PLACES
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidRequestError),
        (401, AuthError),
        (403, AuthError),
        (408, TransportError),
        (429, RateLimitedError),
        (500, TransportError),
        (503, TransportError),
    ],
)
def test_a_host_that_repeats_the_request(key_in, status, kind):
    """A failing host that repeats header or URL in its body is quoted without the key."""
    with asking(echo(status), key_in=key_in) as (ledger, server):
        for verb in (lambda: lk.ft("a.near", ledger=ledger), lambda: lk.gas_price(ledger=ledger)):
            with pytest.raises(kind) as caught:
                verb()
            assert_clean(caught.value)
            assert f"HTTP {status}" in str(caught.value)
    assert found(server.paths + [dict(request.headers) for request in server.requests])


def test_a_host_that_repeats_the_key_is_quoted():
    """What a host says about the key is kept; only the key is taken out."""
    body = f"no such key: {KEY}, sorry".encode()
    with (
        asking(lambda *_: Reply(401, body)) as (ledger, _),
        pytest.raises(AuthError, match=r"no such key: \[key hidden\], sorry"),
    ):
        ledger.get("/health")


@PLACES
def test_a_json_rpc_error_that_repeats_the_key(key_in):
    """A JSON-RPC error keeps its attributes, without the key."""

    def handler(_method: str, path: str, headers: Any, _body: bytes) -> Reply:
        told = {"message": f"{headers.get('authorization')} {path}", "code": -32000, "data": path}
        return as_json({"jsonrpc": "2.0", "id": 1, "error": told}, 200)

    with asking(handler, key_in=key_in) as (ledger, _), pytest.raises(LedgerError) as caught:
        lk.gas_price(ledger=ledger)
    assert_clean(caught.value)


@PLACES
@pytest.mark.parametrize("cut", [None, -3], ids=["shape", "json"])
def test_an_answer_that_cannot_be_read(key_in, cut):
    """An answer of the wrong shape, or no JSON, is told without what it repeats."""

    def handler(_method: str, path: str, headers: Any, body: bytes) -> Reply:
        members = {"account_id": 7, "key": headers.get("authorization"), path: path}
        told = json.dumps({"id": "", **members} if body else members)
        return Reply(200, told.encode()[:cut])

    with asking(handler, key_in=key_in) as (ledger, _):
        for verb in (lambda: lk.ft("a.near", ledger=ledger), lambda: lk.gas_price(ledger=ledger)):
            with pytest.raises(DecodeError) as caught:
                verb()
            assert_clean(caught.value)


@contextmanager
def bad_host(kind: str) -> Iterator[str]:
    """Run a host that cannot be asked, each in its way."""
    if kind == "nobody":
        with create_server(("127.0.0.1", 0)) as closed:
            url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        yield url
        return
    reply = Reply(200, b"{}", delay=0.4) if kind == "late" else Reply(200, b"x" * 99, truncate=5)
    with serve(lambda *_: reply) as server:
        yield server.url.replace("http:", "https:") if kind == "no tls" else server.url


@PLACES
@pytest.mark.parametrize("kind", ["nobody", "late", "cut", "no tls"])
def test_failures_to_ask(way, key_in, kind):
    """A refused connection, a timeout, a lost one, a bad greeting: no key in any of them."""
    options: dict[str, Any] = {**way, "key_in": key_in, "retries": lk.RetryPolicy(2, 5)}
    timeout_s = 1.0 if kind == "no tls" else 0.1  # a shorter one may cancel a slow greeting
    with (
        bad_host(kind) as url,
        lk.connect(
            "lab", rpc_url=url, api_url=url, api_key=KEY, timeout_s=timeout_s, **options
        ) as ledger,
    ):
        for ask in (lambda: ledger.get("/health"), lambda: ledger.rpc("block")):
            with pytest.raises(TransportError, match="the request to 127") as caught:
                ask()
            assert_clean(caught.value)
        _, errors = lk.ft(["a.near", "b.near"], ledger=ledger, on_error="collect", progress=False)
        assert errors["subject"].tolist() == ["a.near", "b.near"]
        assert found(errors.to_csv()) == []
        if kind != "no tls":  # httpcore leaves the socket of a cancelled greeting to the collector
            with pytest.raises(TransportError) as caught:
                lk.ft(["a.near", "b.near", "c.near"], ledger=ledger, progress=False)
            assert_clean(caught.value)


class Leaking(httpx.BaseTransport):
    """A transport that fails with all it knows."""

    def __init__(self, kind: Callable[[str], BaseException]) -> None:
        self.kind = kind

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Fail, with the request in the words and in the cause."""
        told = f"{request.headers.get('authorization')} {request.url}"
        raise self.kind(told) from httpx.ConnectError(told, request=request)


class AsyncLeaking(httpx.AsyncBaseTransport):
    """The same, on a loop."""

    def __init__(self, kind: Callable[[str], BaseException]) -> None:
        self.inner = Leaking(kind)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return self.inner.handle_request(request)


@PLACES
@pytest.mark.parametrize("transport", [Leaking, AsyncLeaking])
@pytest.mark.parametrize(
    "kind",
    [KeyError, ValueError, OSError, httpx.ReadError, httpx.InvalidURL, lambda t: LookupError(t, t)],
    ids=["KeyError", "ValueError", "OSError", "ReadError", "InvalidURL", "LookupError"],
)
def test_a_transport_that_fails_with_all_it_knows(key_in, transport, kind):
    """Whatever a user's transport raises, with the request in it, is told without the key."""
    ledger = lk.connect("lab", transport=transport(kind), api_key=KEY, key_in=key_in)
    with ledger, pytest.raises(TransportError) as caught:
        ledger.get("/health")
    assert_clean(caught.value)
    assert "[key hidden]" in str(caught.value)


@PLACES
@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_ctrl_c(way, key_in, many):
    """An interrupt carries no frame that has seen the key."""
    first, go_on = threading.Event(), threading.Event()

    def handler(*_: object) -> Reply:
        first.set()
        go_on.wait(LONG_S)
        return Reply(200, b"{}")

    ids = ["a.near", "b.near"] if many else "a.near"
    patient = lk.RetryPolicy(attempts=1, total_s=LONG_S)
    with asking(handler, **way, key_in=key_in, retries=patient) as (ledger, _):
        caught = interrupt(lambda: lk.ft(ids, ledger=ledger, progress=False), after=first)
        go_on.set()
        assert_clean(caught.value)


@PLACES
def test_a_closed_ledger(key_in):
    """A closed ledger refuses without showing what it held."""
    with asking(fine, key_in=key_in) as (ledger, _):
        ledger.close()
        with pytest.raises(InvalidRequestError) as caught:
            ledger.get("/health")
        assert_clean(caught.value)


# Where else it could be -----------------------------------------------------------------


@PLACES
def test_what_is_shown_of_what_holds_the_key(way, key_in):
    """No repr or attribute of a ledger and its parts shows the key, before or after a read."""
    with asking(fine, **way, key_in=key_in) as (ledger, _):
        for _ in range(2):
            http = ledger.session
            settings = http.settings
            parts = [ledger, ledger.network, http, settings, settings.key, settings.retries]
            parts.append(http._transport)
            assert found([repr(part) + str(part) for part in parts]) == []
            assert found(vars(ledger)) == []
            assert found(vars(http)) == found(vars(http._transport)) == []
            assert found(f"{settings.key}{settings.key!r}{settings.key!s}") == []
            assert not hasattr(settings.key, "__dict__")
            both(ledger)


def test_what_refuses_to_be_pickled():
    """A ledger and a key cannot be pickled or copied, nor what holds them."""
    with asking(fine) as (ledger, _):
        for thing in (ledger, ledger.session.settings.key, ledger.session.settings):
            for attempt in (pickle.dumps, copy.deepcopy):
                with pytest.raises(TypeError) as caught:
                    attempt(thing)
                assert found(caught.value) == []


@PLACES
def test_frames_of_a_host_that_repeats_the_key(key_in):
    """A host that puts the key into good answers does not get it into a frame, CSV or attrs."""

    def handler(_method: str, path: str, headers: Any, _body: bytes) -> Reply:
        name = f"{headers.get('authorization')} {path}"
        row = {"contract_id": name, "balance": "1", "last_update_block_height": 1}
        return as_json({"tokens": [row]})

    with asking(handler, key_in=key_in) as (ledger, _):
        frame = lk.ft(["a.near", "b.near"], ledger=ledger, progress=False)
        assert frame["contract_id"].str.contains("[key hidden]", regex=False).all()
        assert found(frame.to_csv() + str(frame.attrs) + frame.to_html()) == []
        assert found(pickle.dumps(frame)) == []
        assert found(ledger.get("/anything")) == []


def test_nothing_is_remembered_with_the_key():
    """What a session keeps of answers does not hold the key either."""
    block = {"jsonrpc": "2.0", "id": 1, "result": {"gas_price": "1", "key": KEY}}
    with asking(lambda *_: as_json(block)) as (ledger, _):
        lk.gas_price(at="1" * 32, ledger=ledger)
        assert found(ledger.session._memory_cache._entries) == []


def test_a_key_is_forgotten_with_its_ledger():
    """A dropped ledger's key is dropped as well; what guards the log does not keep it."""
    ledger = lk.connect("lab", api_url="https://a.example", api_key="another-" + KEY)
    assert "another-" + KEY in [key.reveal() for key in redaction._in_use]
    ledger.close()
    lk.disconnect()
    del ledger
    deadline = time.monotonic() + 60  # the loop may still hold what it just closed
    while "another-" + KEY in [key.reveal() for key in redaction._in_use]:
        assert time.monotonic() < deadline
        gc.collect()
