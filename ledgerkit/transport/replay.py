"""The answers of a recording, each found by its request."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from array import array
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from ledgerkit import validation
from ledgerkit.api import matching
from ledgerkit.api.calls import Response
from ledgerkit.errors import (
    InvalidRequestError,
    LedgerError,
    NotRecordedError,
    RecordingError,
    ResponseTooLargeError,
    TransportError,
    excerpt,
)
from ledgerkit.transport import networks, recording_files
from ledgerkit.transport.exchange import Source
from ledgerkit.transport.networks import Network
from ledgerkit.transport.recording_files import Exchange, Position, RecordedNetwork, RecordFile

if TYPE_CHECKING:
    from pathlib import Path

    from ledgerkit.transport import exchange as exchanges
    from ledgerkit.transport.recording_files import Header, Record

_FRESH = re.compile(r"(?<=[?&]fresh=)[0-9a-f]+")  # a number for a proxy not to know the request
_LONGEST_WAIT_S = 60.0  # for an answer that differs from the last recorded one


class RecordedAnswers:
    """
    The answers of a recording; a request that was asked several times has its answers in order.

    Parameters
    ----------
    path
        The file. It is read once, and checked; the answers stay on disk.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._file = RecordFile(path)
        self._frames: dict[int, bytes] = {}
        keys, frames, offsets = array("Q"), array("Q"), array("Q")
        for record in self._file.records():
            if record.exchange.names_chain:
                continue
            keys.append(_index_key(_key(record.exchange)))
            frames.append(record.position.frame)
            offsets.append(record.position.offset)
        key_array = np.asarray(keys, dtype=np.uint64)
        order = np.argsort(key_array, kind="stable")
        self._keys = key_array[order]
        self._used = np.zeros(len(order), dtype=np.uint32)  # answers returned, at the first
        self._positions = np.stack([np.asarray(frames), np.asarray(offsets)], axis=1)[order]

    @property
    def header(self) -> Header:
        """The header of the file."""
        return self._file.header

    @property
    def torn_bytes(self) -> int:
        """The bytes of a last record that is not complete."""
        return self._file.torn_bytes

    def __len__(self) -> int:
        return len(self._keys)

    def next_answer(
        self, exchange: exchanges.Exchange, network: Network
    ) -> Response | LedgerError | None:
        """Return the next answer to a request; None if there is no further one."""
        record, is_new = self._next(_key(request_of(exchange, network)))
        return self._answer(record, exchange) if record and is_new else None

    def _next(self, key: str) -> tuple[Record | None, bool]:
        """Return the next record of a key, or the last one once more; and whether it is new."""
        number = _index_key(key)
        with self._lock:
            start = int(np.searchsorted(self._keys, np.uint64(number), "left"))
            stop = int(np.searchsorted(self._keys, np.uint64(number), "right"))
            if start == stop:
                return None, False
            used = int(self._used[start])
            self._used[start] = min(used + 1, stop - start)
            frame, offset = self._positions[min(start + used, stop - 1)]
            record = self._file.read(Position(int(frame), int(offset)), self._frames)
        if _key(record.exchange) != key:
            return None, False
        return record, used < stop - start

    def _answer(self, record: Record, exchange: exchanges.Exchange) -> Response | LedgerError:
        """Return the answer of a record: the response, or the error there was in place of it."""
        error, request = record.exchange.error, exchange.call.request
        if record.exchange.withheld:
            sentence = f"the answer to {request} is not in {self.path}: {record.exchange.withheld}"
            return NotRecordedError(sentence, request=request, remedy="Connect to the network.")
        if error is not None:
            kind = TransportError if error.max_bytes is None else ResponseTooLargeError
            restored = kind(error.sentence, remedy=error.remedy, request=request)
            for name in ("retryable", "reason", "status", "no_connection", "max_bytes"):
                setattr(restored, name, getattr(error, name))
            return restored
        body = record.body
        if exchange.call_id is not None:
            body = matching.insert_id(body, exchange.call_id)
        return Response(body, record.exchange.status, record.exchange.retry_after)


class Replay(RecordedAnswers, Source):
    """
    A transport that answers from a recording alone, without a socket; waiting takes no time.

    Further requests for the same are answered by the last recorded answer. After a minute of such
    waiting `NotRecordedError` is raised, because nothing else will come.
    """

    kind = "recording"
    in_process = is_recording = True

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.network = replayed_network(path, self.header.network)
        self._waited_s = self._idle_s = 0.0
        self._repeated: str | None = None
        self._asked_at: int | None = None  # of the last answer, in ns

    def open(self, *_: object) -> Replay:
        """Return this recording: all ledgers read on where the last one has stopped."""
        return self

    async def exchange(self, exchange: exchanges.Exchange) -> Response | LedgerError:
        """Return the recorded answer."""
        record, is_new = self._next(_key(request_of(exchange, self.network)))
        if record is None:
            return self._not_recorded(f"{self.path} has no answer to", exchange.call.request)
        self._repeated = None if is_new else exchange.call.request
        self._idle_s = 0.0 if is_new else self._idle_s
        self._asked_at = record.asked_at
        return self._answer(record, exchange)

    async def aclose(self) -> None:
        """Do nothing: another ledger may read on."""

    def wait(self, seconds: float) -> float:
        """Pass over a wait, which takes 0 s; raise if there is nothing to wait for."""
        self._waited_s += seconds
        if self._repeated is not None:
            self._idle_s += seconds
            if self._idle_s > _LONGEST_WAIT_S:
                raise self._not_recorded(f"{self.path} ends while waiting for", self._repeated)
        return 0.0

    def monotonic(self) -> float:
        """Return seconds that never go back, with the waits that were passed over."""
        return time.monotonic() + self._waited_s

    def time_ns(self) -> int:
        """Return the time of the last answer in ns; before the first one, the present."""
        return time.time_ns() if self._asked_at is None else self._asked_at

    def _not_recorded(self, begin: str, request: str) -> NotRecordedError:
        """Build the error for a request without an answer."""
        remedy = f'Ask it once more while connected: with lk.record("{self.path}", mode="extend").'
        return NotRecordedError(f"{begin} {excerpt(request)}", remedy=remedy, request=request)


def request_of(exchange: exchanges.Exchange, network: Network) -> Exchange:
    """Return the request of an exchange as it is stored: without the host's address and the id."""
    call = exchange.call
    root = network.address(exchange.surface) or ""
    url, path = call.url, call.path
    if url.startswith(root):
        url, path = "", url[len(root) :] + path
    body = None if call.body is None else call.body.decode()
    return Exchange(exchange.surface, _FRESH.sub("0", path), url, body)


def _key(request: Exchange) -> str:
    """Return the digest by which a request is found."""
    return request.request_digest or digest_of(request)


def digest_of(request: Exchange) -> str:
    """Return the digest of a request: surface, host, path and body."""
    body = None if request.body is None else "\0" + request.body
    text = f"{request.surface}\0{request.url}\0{request.path}\0{body or ''}"
    return hashlib.blake2b(text.encode(), digest_size=recording_files.DIGEST_BYTES).hexdigest()


def recorded_network(network: Network) -> RecordedNetwork:
    """Return what is stored of a network: hosts without paths, which may hold a key."""
    urls: dict[str, str] = {s: _origin(url) for s, url in network.addresses.items()}
    return RecordedNetwork(network.name, urls, network.liquid_tokens, network.archive_urls)


def replayed_network(path: Path, recorded: RecordedNetwork) -> Network:
    """Return the network of a recording."""
    try:
        error = networks.name_error(recorded.name)
        if error is not None:
            raise error
        urls: dict[str, Any] = {
            f"{s}_url": validation.url(recorded.urls[s], s) if s in recorded.urls else None
            for s in networks.SURFACES
        }
    except InvalidRequestError as error:
        raise RecordingError(f"{path} names a network that cannot be: {error.sentence}") from None
    return Network(
        recorded.name,
        liquid_tokens=recorded.liquid_tokens,
        archive_urls=recorded.archive_urls,
        **urls,
    )


def _origin(url: str) -> str:
    """Return the scheme, host and port of an address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _index_key(key: str) -> int:
    """Return the part of a key that the index has."""
    return int(key[:16], 16)
