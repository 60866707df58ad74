"""A connection of the pool: whatever a host sends is a response, or one of few errors."""

from __future__ import annotations

import asyncio
import gzip
import time
from typing import Any

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.errors import ResponseTooLargeError
from ledgerkit.transport.connection_pool import RawResponse, _Connection
from ledgerkit.transport.response_body import BodyLimits, EncodingError

BODY = b'{"account_id":"a.near","tokens":[]}'
PACKED = gzip.compress(BODY)
LIMIT = 1000
ERRORS = (ConnectionError, EncodingError, ResponseTooLargeError)

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


class Wire:
    """A transport that delivers what is given to it, and then ends."""

    def __init__(self, connection: _Connection, pieces: list[bytes]) -> None:
        self.connection, self.pieces = connection, pieces
        self.is_paused = self.has_ended = False

    def write(self, _request: bytes) -> None:
        """Begin to deliver."""
        asyncio.get_running_loop().call_soon(self._deliver)

    def _deliver(self) -> None:
        """Deliver one piece; after the last one the connection ends."""
        if self.has_ended or self.is_paused:
            return
        if not self.pieces:
            self.abort()
            return
        self.connection.data_received(self.pieces.pop(0))
        asyncio.get_running_loop().call_soon(self._deliver)

    def pause_reading(self) -> None:
        """Deliver nothing for now."""
        self.is_paused = True

    def resume_reading(self) -> None:
        """Deliver the rest."""
        self.is_paused = False
        asyncio.get_running_loop().call_soon(self._deliver)

    def abort(self) -> None:
        """End the connection."""
        if not self.has_ended:
            self.has_ended = True
            self.connection.connection_lost(None)


def exchange(pieces: list[bytes]) -> tuple[RawResponse, bool]:
    """Return the response to a request, and whether its connection may be used again."""

    async def work() -> tuple[RawResponse, bool]:
        parser_errors = (httptools.HttpParserError, httptools.HttpParserUpgrade)
        connection = _Connection(httptools.HttpResponseParser, parser_errors, set())
        wire: Any = Wire(connection, [piece for piece in pieces if piece])
        connection.connection_made(wire)
        limits = BodyLimits("the test", LIMIT, time.monotonic() + 60)
        response = await connection.exchange(b"GET / HTTP/1.1\r\n\r\n", limits)
        return response, connection.is_open

    return asyncio.run(work())


def split(data: bytes, places: list[int]) -> list[bytes]:
    """Split bytes at some places."""
    ends = sorted({place % (len(data) + 1) for place in places} | {len(data)})
    return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


@pytest.mark.parametrize("kind", RESPONSES)
@given(places=st.lists(st.integers(0, 500), max_size=8))
def test_a_response_in_any_pieces(kind, places):
    """Wherever the network splits a response, it is the same one."""
    response, is_open = exchange(split(RESPONSES[kind], places))
    assert (response.status, response.retry_after, response.body) == (200, "7", BODY)
    assert is_open == (kind != "no length")


@pytest.mark.parametrize("kind", RESPONSES)
@given(
    place=st.integers(0, 500),
    removed=st.integers(0, 40),
    inserted=st.binary(max_size=40),
    places=st.lists(st.integers(0, 500), max_size=4),
)
def test_a_damaged_response(kind, place, removed, inserted, places):
    """A damaged response is read, or is one of the errors for what is no response."""
    whole = RESPONSES[kind]
    place %= len(whole)
    damaged = whole[:place] + inserted + whole[place + removed :]
    try:
        response, _ = exchange(split(damaged, places))
    except ERRORS:
        return
    assert len(response.body) <= LIMIT


@pytest.mark.parametrize("surplus", [b"x", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200", b"\x00"])
def test_bytes_after_a_response(surplus):
    """A response with bytes after it is read, and its connection is not used again."""
    response, is_open = exchange([RESPONSES["length"] + surplus])
    assert (response.body, is_open) == (BODY, False)


@pytest.mark.parametrize("kind", ["length", "chunks", "gzip"])
def test_a_response_that_ends_early(kind):
    """A response without its end is an error, never a shorter body."""
    whole = RESPONSES[kind]
    for stop in range(1, len(whole)):
        with pytest.raises(ConnectionError, match=r"within the response|not HTTP"):
            exchange([whole[:stop]])
    with pytest.raises(ConnectionError, match="without a response"):
        exchange([])
