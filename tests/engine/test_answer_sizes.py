"""The size of an answer: limited as sent and unpacked, on every way, within the time."""

from __future__ import annotations

import gzip
import json
import threading
import time
import tracemalloc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import ledgerkit as lk
from ledgerkit.errors import InvalidRequestError, ResponseTooLargeError, TransportError
from ledgerkit.transport import response_body
from ledgerkit.transport.response_body import BodyReader
from tests.loopback import TOKEN, Reply, as_json, raw_host, serve

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.usefixtures("short_pauses")

LIMIT = 2**20


def account(account_id: str) -> dict[str, object]:
    return {"account_id": account_id, "tokens": [TOKEN]}


ACCOUNT = as_json(account("a.near"))
two_ways = pytest.mark.parametrize("way", ["own", "sync"], indirect=True)
on_the_loop = pytest.mark.parametrize("way", ["own", "async"], indirect=True)


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    """Measure the peak of allocated bytes, which is the list's one item after the block."""
    peak: list[int] = []
    tracemalloc.start()
    try:
        yield peak
        peak.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


@contextmanager
def reading(url: str, **options: Any) -> Iterator[lk.Ledger]:
    """Connect to an address with a limit of a mebibyte and two attempts."""
    retries = lk.RetryPolicy(attempts=2, total_s=30)
    options = {"max_response_bytes": LIMIT, "retries": retries, **options}
    with lk.connect("lab", api_url=url, **options) as ledger:
        yield ledger


def padded(size: int) -> bytes:
    """Build an answer without tokens of so many bytes."""
    return ACCOUNT.body + b" " * (size - len(ACCOUNT.body))


def packed(body: bytes, encoding: str = "gzip") -> Reply:
    return Reply(200, body, {"content-encoding": encoding})


def failure(reply: Reply, **options: Any) -> tuple[TransportError, int]:
    """Return the error of a read, and how many requests the host received."""
    with serve(lambda *_: reply) as server, reading(server.url, **options) as ledger:
        with pytest.raises(TransportError) as caught:
            lk.ft("a.near", ledger=ledger)
        return caught.value, len(server.requests)


OK = b"HTTP/1.1 200 OK\r\n"


def saying(head: bytes, *repeated: bytes) -> Callable[[socket.socket], None]:
    """Answer with a head, then with the rest again and again until the client closes."""

    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(head)
        while repeated:
            connection.sendall(b"".join(repeated))
        connection.recv(1)

    return talk


# The limit --------------------------------------------------------------------------------


@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "gzip"])
def test_the_limit_is_exact(way, is_packed):
    """An answer as large as the limit is read, and one with a byte more is not, packed or not."""
    bodies = [padded(LIMIT), padded(LIMIT + 1)]
    replies = [packed(gzip.compress(body)) if is_packed else Reply(200, body) for body in bodies]
    with serve(lambda *_: replies.pop(0)) as server, reading(server.url, **way) as ledger:
        assert len(lk.ft("a.near", ledger=ledger)) == 1
        with pytest.raises(ResponseTooLargeError):
            lk.ft("a.near", ledger=ledger)


def test_an_answer_that_is_too_large_is_final(way):
    """The error names the request, the limit and the option, and nothing is asked again."""
    error, requests = failure(packed(gzip.compress(bytes(LIMIT + 1))), **way)
    assert str(error) == (
        "the response to the tokens of a.near has more than 1,048,576 bytes. "
        "Request less at once, or allow more with connect(max_response_bytes=...)."
    )
    assert (type(error), error.retryable, requests) == (ResponseTooLargeError, False, 1)
    assert vars(error) == {"request": "the tokens of a.near", "max_bytes": LIMIT}
    assert error.__context__ is None


@pytest.mark.parametrize("status", [302, 404, 429, 503])
def test_the_body_of_an_error_is_limited(way, status):
    """An error's body may be no larger either, and is not read again."""
    bomb = Reply(status, gzip.compress(bytes(LIMIT + 1)), {"content-encoding": "gzip"})
    error, requests = failure(bomb, **way)
    assert (type(error), requests) == (ResponseTooLargeError, 1)


def test_an_announced_size_is_refused_unread(way):
    """A Content-Length above the limit is refused, though not a byte of the body was sent."""
    with (
        raw_host(saying(OK + b"content-length: 1048577\r\n\r\n")) as url,
        reading(url, **way) as ledger,
        pytest.raises(ResponseTooLargeError),
    ):
        lk.ft("a.near", ledger=ledger)


CHUNKED = OK + b"transfer-encoding: chunked\r\n"


def test_the_next_request_has_another_connection(way):
    """After a refused answer the same ledger reads on, and what is left of it is not read."""
    replies = [Reply(200, padded(3 * LIMIT)), ACCOUNT]
    with serve(lambda *_: replies.pop(0)) as server, reading(server.url, **way) as ledger:
        with pytest.raises(ResponseTooLargeError):
            lk.ft("a.near", ledger=ledger)
        assert len(lk.ft("a.near", ledger=ledger)) == 1


def test_one_large_answer_of_many(way):
    """In a batch only the account whose answer is too large is a failure."""

    def handler(_method: str, path: str, *_: object) -> Reply:
        account_id = path.split("/")[3]
        large = Reply(200, padded(LIMIT + 1))
        return large if account_id == "a3.near" else as_json(account(account_id))

    ids = [f"a{number}.near" for number in range(8)]
    with serve(handler) as server, reading(server.url, **way) as ledger:
        _, errors = lk.ft(ids, ledger=ledger, on_error="collect", progress=False)
    assert errors["subject"].tolist() == ["a3.near"]
    assert errors["error"].tolist() == ["ResponseTooLargeError"]
    assert errors["retryable"].tolist() == [False]


# Encodings --------------------------------------------------------------------------------


def test_only_gzip_is_requested(way):
    """The header names the one encoding that is read."""
    with serve(lambda *_: ACCOUNT) as server, reading(server.url, **way) as ledger:
        lk.ft("a.near", ledger=ledger)
    assert server.requests[0].headers["accept-encoding"] == "gzip"


@two_ways
@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "GZIP", "identity, gzip", " gzip ,"])
def test_names_of_gzip(way, encoding):
    """The encoding is known by both names of RFC 9110, 8.4.1.3, in any case."""
    reply = packed(gzip.compress(ACCOUNT.body), encoding)
    with serve(lambda *_: reply) as server, reading(server.url, **way) as ledger:
        assert len(lk.ft("a.near", ledger=ledger)) == 1


@two_ways
@pytest.mark.parametrize("encoding", ["", "identity", "identity, Identity"])
def test_names_of_no_encoding(way, encoding):
    """A body without an encoding is read as it is."""
    reply = packed(ACCOUNT.body, encoding)
    with serve(lambda *_: reply) as server, reading(server.url, **way) as ledger:
        assert len(lk.ft("a.near", ledger=ledger)) == 1


@two_ways
@pytest.mark.parametrize("encoding", ["br", "deflate", "x-odd", "gzip, gzip", "gzip, br"])
def test_other_encodings_are_refused(way, encoding):
    """An encoding that was not requested, and a second one, are an error before the body."""
    head = OK + b"content-length: 100\r\ncontent-encoding: %s\r\n\r\n" % encoding.encode()
    refused = pytest.raises(TransportError)
    with raw_host(saying(head)) as url, reading(url, **way) as ledger, refused as caught:
        lk.ft("a.near", ledger=ledger)
    assert caught.value.sentence == (
        "the request to 127.0.0.1 for the tokens of a.near failed: the body has the content "
        f"encoding {encoding}; only gzip is read"
    )


def test_two_headers_are_two_encodings(way):
    """An encoding that is stacked by repeating the header is refused, too."""
    head = OK + b"content-encoding: gzip\r\n" * 2 + b"content-length: 1\r\n\r\n"
    refused = pytest.raises(TransportError, match="the content encoding gzip, gzip;")
    with raw_host(saying(head)) as url, reading(url, **way) as ledger, refused:
        lk.ft("a.near", ledger=ledger)


# Time -------------------------------------------------------------------------------------


SLOW = packed(gzip.compress(bytes(2**23)))  # with steps of a byte


def test_unpacking_counts_in_the_time(way, monkeypatch):
    """An answer that is here in time, and takes longer to unpack, is a timeout."""
    monkeypatch.setattr(response_body, "_STEP_BYTES", 1)
    error, _ = failure(SLOW, **way, timeout_s=0.3, max_response_bytes=2**28)
    assert error.sentence.endswith("failed: no answer within 0.3 s")


@on_the_loop
def test_others_are_read_while_one_is_unpacked(way, monkeypatch):
    """While a large answer is unpacked, the same ledger reads other answers."""
    has_begun, may_go_on = threading.Event(), threading.Event()
    unpack = BodyReader.unpack

    def slow_unpack(reader: BodyReader) -> None:
        has_begun.set()
        assert may_go_on.wait(60)
        unpack(reader)

    monkeypatch.setattr(BodyReader, "unpack", slow_unpack)
    large = packed(gzip.compress(json.dumps(account("large.near")).encode() + b" " * LIMIT))

    def handler(_method: str, path: str, *_: object) -> Reply:
        return large if "large.near" in path else ACCOUNT

    frames = []
    options = {**way, "max_response_bytes": 2 * LIMIT}
    with serve(handler) as server, reading(server.url, **options) as ledger:
        work = threading.Thread(
            target=lambda: frames.append(lk.ft("large.near", ledger=ledger)), daemon=True
        )
        work.start()
        assert has_begun.wait(60)
        assert len(lk.ft("a.near", ledger=ledger)) == 1
        assert frames == []
        may_go_on.set()
        work.join(60)
    assert [len(frame) for frame in frames] == [1]


@on_the_loop
def test_a_timeout_ends_the_thread_that_unpacks(way, monkeypatch):
    """The thread that unpacks ends with its request: it makes no further step."""
    monkeypatch.setattr(response_body, "_STEP_BYTES", 1)
    ended = threading.Event()
    unpack = BodyReader.unpack

    def watched_unpack(reader: BodyReader) -> None:
        reader._request = reader._request._replace(deadline=time.monotonic() + 60)
        try:
            unpack(reader)
        finally:
            ended.set()

    monkeypatch.setattr(BodyReader, "unpack", watched_unpack)
    error, _ = failure(SLOW, **way, timeout_s=0.3, max_response_bytes=2**28)
    assert error.sentence.endswith("failed: no answer within 0.3 s")
    assert ended.wait(60)


# Headers ----------------------------------------------------------------------------------


FIELD = b"x-more: y\r\n"
HEADS = {
    "headers": (OK, FIELD),
    "one header": (OK + b"x: ", b"x" * 4096),
    "trailers": (CHUNKED + b"\r\n0\r\n", FIELD),
}


@pytest.mark.parametrize("kind", HEADS)
def test_endless_headers_are_refused(way, kind):
    """Headers without an end are refused by the HTTP library, at its own limit."""
    refused = pytest.raises(TransportError)
    with (
        raw_host(saying(*HEADS[kind])) as url,
        reading(url, **way) as ledger,
        peak_memory() as peak,
        refused as caught,
    ):
        lk.ft("a.near", ledger=ledger)
    assert "no answer within" not in str(caught.value)
    assert peak[0] < 8 * LIMIT


def test_endless_interim_responses_end_with_the_time(way):
    """A host that only asks to continue does not outlast the time of an attempt."""
    if isinstance(way.get("transport"), httpx.HTTPTransport):
        pytest.skip("what a synchronous transport does before it answers cannot be cut short")
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    options = {**way, "timeout_s": 0.3}
    refused = pytest.raises(TransportError, match=r"no answer within 0\.3 s")
    with raw_host(saying(interim, interim)) as url, reading(url, **options) as ledger, refused:
        lk.ft("a.near", ledger=ledger)


# The option -------------------------------------------------------------------------------


class Prepared(httpx.BaseTransport):
    """A transport whose responses are complete, and unpacked by httpx."""

    def handle_request(self, _request: httpx.Request) -> httpx.Response:
        headers = {"content-encoding": "gzip"}
        return httpx.Response(200, content=gzip.compress(padded(2**20)), headers=headers)


class AsyncPrepared(httpx.AsyncBaseTransport):
    """The same on a loop."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return Prepared().handle_request(request)


@pytest.mark.parametrize("kind", [Prepared, AsyncPrepared])
def test_a_complete_response_of_a_transport(kind):
    """The limit applies to what a transport of the user has unpacked itself."""
    with lk.connect("lab", transport=kind(), max_response_bytes=2**20) as ledger:
        assert len(lk.ft("a.near", ledger=ledger)) == 1
    refused = pytest.raises(ResponseTooLargeError)
    with lk.connect("lab", transport=kind(), max_response_bytes=2**20 - 1) as ledger, refused:
        lk.ft("a.near", ledger=ledger)


def test_the_embedded_ledger_has_the_limit():
    """The limit is that of every ledger, and of its siblings."""
    with lk.connect("local", max_response_bytes=100) as ledger:
        with pytest.raises(ResponseTooLargeError):
            lk.ft("alice.near", ledger=ledger)
        with ledger.sibling() as sibling, pytest.raises(ResponseTooLargeError):
            lk.ft("alice.near", ledger=sibling)


@pytest.mark.parametrize("value", [0, -1, True, 1.5, 1e9, "1", None])
def test_the_limit_is_a_positive_integer(value):
    """Anything else is refused by connect()."""
    with pytest.raises(InvalidRequestError, match="expected an integer from 1 up") as caught:
        lk.connect("local", max_response_bytes=value)
    assert caught.value.field == "max_response_bytes"
