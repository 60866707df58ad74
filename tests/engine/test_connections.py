"""Connections to hosts: whatever a host sends is a response, or one of few errors."""

from __future__ import annotations

import asyncio
import gzip
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerkit.api.calls import Response
from ledgerkit.errors import ResponseTooLargeError
from ledgerkit.transport.connections import NetworkConnections
from ledgerkit.transport.exchange import RawRequest
from ledgerkit.transport.response_body import EncodingError

BODY = b'{"account_id":"a.near","tokens":[]}'
PACKED = gzip.compress(BODY)
LIMIT = 1000
# aiohttp waits for the rest of some damaged responses, whose connection has ended.
ERRORS = (ConnectionError, EncodingError, ResponseTooLargeError, TimeoutError)
TIMEOUT_S = 0.5
KEY = "PLANTED-0123"

RESPONSES = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 35\r\nRetry-After: 7\r\n\r\n" + BODY,
    "chunks": (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nretry-after: 7\r\n\r\n"
        b"5;name=x\r\n" + BODY[:5] + b"\r\n1e\r\n" + BODY[5:] + b"\r\n0\r\nx-trailer: y\r\n\r\n"
    ),
    "gzip": (
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\nretry-after: 7\r\n"
        b"content-length: %d\r\n\r\n" % len(PACKED) + PACKED
    ),
    "no length": b"HTTP/1.1 200 OK\r\nretry-after: 7\r\n\r\n" + BODY,
    "interim": (
        b"HTTP/1.1 100 Continue\r\nretry-after: 9\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nretry-after: 7\r\ncontent-length: 35\r\n\r\n" + BODY
    ),
}


def exchange(
    pieces: list[bytes],
    requests: int = 1,
    timeout_s: float = 60.0,
    *,
    seen: list[bytes] | None = None,
    origin: str = "",
    path: str = f"/?apiKey={KEY}",
    **fields: Any,
) -> tuple[list[Response], int]:
    """
    Return the responses of a host that sends these pieces, and its number of connections.

    `seen` gets what the host receives, and `fields` are those of the requests. With another origin
    the host is the proxy of the environment.
    """
    connections = 0
    seen = [] if seen is None else seen
    writers: list[asyncio.StreamWriter] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writers.append(writer)
        while received := await reader.read(65536):
            seen.append(received)
            for piece in pieces:
                writer.write(piece)
                await asyncio.sleep(0)
            if requests == 1:
                break
        writer.close()

    async def work() -> list[Response]:
        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.MonkeyPatch.context() as patch:
            if origin:
                patch.setenv("http_proxy", url)
                patch.setenv("no_proxy", "")
            pool = NetworkConnections({"api": origin or url}, 4)
        try:
            address, deadline = (origin or url) + path, time.monotonic() + timeout_s
            request = RawRequest("api", address, {}, None, "the test", LIMIT, deadline)
            request = request._replace(**fields)
            return [await pool.send(request) for _ in range(requests)]
        finally:
            await pool.aclose()
            for writer in writers:
                writer.close()
            server.close()
            await asyncio.sleep(0.005)  # until the sockets are closed

    return asyncio.run(work()), connections


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {KEY}\r\nx: y"},
        {"authorization": f"Bearer {KEY}\x00"},
    ],
)
def test_a_header_that_would_be_another_request(headers):
    """Nothing is sent of a request whose header would end it, and the error has no key."""
    seen: list[bytes] = []
    with pytest.raises(ValueError, match="header") as caught:
        exchange([RESPONSES["length"]], seen=seen, headers=headers)
    assert not seen
    assert KEY not in str(caught.value)


def response_or_error(pieces: list[bytes]) -> Response | BaseException:
    """Return the response of a host that sends these pieces, or the error."""
    try:
        return exchange(pieces, timeout_s=TIMEOUT_S)[0][0]
    except ERRORS as error:
        return error


def split(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places} | {len(data)})
    return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


@pytest.mark.parametrize("kind", RESPONSES)
@given(places=st.lists(st.integers(0, 500), max_size=8))
@settings(max_examples=20, deadline=None)
def test_a_response_in_any_pieces(kind, places):
    """Wherever a host splits a response, it is the same one."""
    [response], _ = exchange(split(RESPONSES[kind], places))
    assert (response.status, response.retry_after, response.body) == (200, 7.0, BODY)


@pytest.mark.parametrize("kind", RESPONSES)
@given(
    place=st.integers(0, 500),
    removed=st.integers(0, 40),
    inserted=st.binary(max_size=40),
    places=st.lists(st.integers(0, 500), max_size=4),
)
@settings(max_examples=20, deadline=None)
def test_a_damaged_response(kind, place, removed, inserted, places):
    """A damaged response is read, or is one of the errors for what is no response."""
    whole = RESPONSES[kind]
    place %= len(whole)
    damaged = whole[:place] + inserted + whole[place + removed :]
    result = response_or_error(split(damaged, places))
    if isinstance(result, Response):
        assert len(result.body) <= LIMIT
    assert KEY not in str(result)


@pytest.mark.parametrize("surplus", [b"x", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200", b"\x00"])
def test_bytes_after_a_response(surplus):
    """Bytes after a response are no part of the next one; the first may be refused for them."""
    try:
        responses, _ = exchange([RESPONSES["length"] + surplus], requests=2)
    except ConnectionError:
        return
    assert [response.body for response in responses] == [BODY, BODY]


@pytest.mark.parametrize("kind", ["length", "chunks", "gzip"])
def test_a_response_that_ends_early(kind):
    """A response without its end is an error, never a shorter body."""
    whole = RESPONSES[kind]
    for stop in range(len(whole)):
        with pytest.raises((ConnectionError, TimeoutError)):
            exchange([whole[:stop]], timeout_s=TIMEOUT_S)
