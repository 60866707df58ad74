"""The responses of a recording, looked up by request."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from ledgerkit import validation
from ledgerkit.api import matching
from ledgerkit.api.calls import Response, Surface
from ledgerkit.errors import (
    InvalidRequestError,
    LedgerError,
    NotRecordedError,
    RecordingError,
    ResponseTooLargeError,
    TransportError,
    excerpt,
)
from ledgerkit.transport import networks
from ledgerkit.transport.exchange import Exchange, Transport
from ledgerkit.transport.networks import Network
from ledgerkit.transport.recording_files import (
    Position,
    Record,
    RecordedExchange,
    RecordedNetwork,
    RecordFile,
)

if TYPE_CHECKING:
    from pathlib import Path


_FRESH = re.compile(r"(?<=[?&]fresh=)[0-9a-f]+")  # a random number against proxies' caches
_LONGEST_WAIT_S = 60.0  # seconds to wait for a response that differs from the last


class Replay(Transport):
    """
    A transport that answers from a recording alone, without a socket; waiting takes no time.

    The file is read once, and checked; the responses stay on disk. All ledgers that use it share
    one position: each goes on where the last one stopped.

    A request that was sent several times gets its recorded responses in order, then the last one
    again. After a minute of waiting for another response `NotRecordedError` is raised, because
    there is none.
    """

    in_process = is_recording = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = RecordFile(path)
        self.network = replayed_network(path, self.file.header.network)
        self._waited_s = 0.0
        self._asked_at: int | None = None  # the time of the last response, in ns
        self._idle_s = 0.0
        self._repeated: str | None = None
        self._lock = threading.Lock()
        self._positions: dict[bytes, list[Position]] = defaultdict(list)  # by request
        self._n_used: Counter[bytes] = Counter()  # returned responses
        for record in self.file.records():
            if not record.exchange.names_chain:
                self._positions[record.exchange.key].append(record.position)

    def __len__(self) -> int:
        return sum(map(len, self._positions.values()))

    async def exchange(self, exchange: Exchange) -> Response | LedgerError:
        record, is_new = self._next_record(request_of(exchange, self.network).key)
        if record is None:
            return self._not_recorded(f"{self.path} has no answer to", exchange.call.request)
        self._repeated = None if is_new else exchange.call.request
        self._idle_s = 0.0 if is_new else self._idle_s
        self._asked_at = record.asked_at
        return self._response(record, exchange)

    def next_response(self, exchange: Exchange, network: Network) -> Response | LedgerError | None:
        """Return the next response to a request of a network; None if there are no more."""
        record, is_new = self._next_record(request_of(exchange, network).key)
        return self._response(record, exchange) if record and is_new else None

    def wait(self, seconds: float) -> float:
        """Skip a wait, which takes 0 s; raise if there is nothing to wait for."""
        self._waited_s += seconds
        if self._repeated is not None:
            self._idle_s += seconds
            if self._idle_s > _LONGEST_WAIT_S:
                raise self._not_recorded(f"{self.path} ends while waiting for", self._repeated)
        return 0.0

    def monotonic(self) -> float:
        """Return seconds that never go back, including skipped waits."""
        return time.monotonic() + self._waited_s

    def time_ns(self) -> int:
        """Return the time of the last response in ns; before the first one, the present."""
        return time.time_ns() if self._asked_at is None else self._asked_at

    def _next_record(self, key: bytes) -> tuple[Record | None, bool]:
        """Return the next record of a key, or the last one once more; and whether it is new."""
        with self._lock:
            positions, n_used = self._positions.get(key), self._n_used[key]
            if positions is None:
                return None, False
            is_new = n_used < len(positions)
            self._n_used[key] += is_new
            return self.file.read(positions[n_used] if is_new else positions[-1]), is_new

    def _response(self, record: Record, exchange: Exchange) -> Response | LedgerError:
        recorded, request = record.exchange, exchange.call.request
        if recorded.withheld:
            sentence = f"the answer to {request} is not in {self.path}: {recorded.withheld}"
            return NotRecordedError(sentence, request=request, remedy="Connect to the network.")
        if recorded.error is not None:
            details = msgspec.structs.asdict(recorded.error)
            is_too_large = recorded.error.max_bytes is not None
            error_class = ResponseTooLargeError if is_too_large else TransportError
            return error_class(details.pop("sentence"), request=request, **details)
        body = record.body
        if exchange.call_id is not None:
            body = matching.insert_id(body, exchange.call_id)
        return Response(body, recorded.status, recorded.retry_after)

    def _not_recorded(self, begin: str, request: str) -> NotRecordedError:
        remedy = f'Ask it once more while connected: with lk.record("{self.path}", mode="extend").'
        return NotRecordedError(f"{begin} {excerpt(request)}", remedy=remedy, request=request)


def request_of(exchange: Exchange, network: Network) -> RecordedExchange:
    """Return the request of an exchange as it is stored: without the host's address and the id."""
    call = exchange.call
    root = network.address(exchange.surface) or ""
    url, path = call.url, call.path
    if url.startswith(root):
        url, path = "", url[len(root) :] + path
    body = None if call.body is None else call.body.decode()
    return RecordedExchange(exchange.surface, _FRESH.sub("0", path), url, body)


def recorded_network(network: Network) -> RecordedNetwork:
    """Return the stored form of a network: hosts without paths, which may contain a key."""
    urls: dict[Surface, str] = {}
    for surface, url in network.addresses.items():
        parts = urlsplit(url)
        urls[surface] = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return RecordedNetwork(
        network.name, urls, network.liquid_tokens, network.archive_urls, network.venear_id
    )


def replayed_network(path: Path, recorded: RecordedNetwork) -> Network:
    urls: dict[str, Any] = {f"{surface}_url": None for surface in networks.SURFACES}
    try:
        if error := networks.name_error(recorded.name):
            raise error
        for surface, url in recorded.urls.items():
            urls[f"{surface}_url"] = validation.url(url, surface)
    except InvalidRequestError as error:
        raise RecordingError(f"{path} names a network that cannot be: {error.sentence}") from None
    return Network(
        recorded.name,
        liquid_tokens=recorded.liquid_tokens,
        archive_urls=recorded.archive_urls,
        venear_id=recorded.venear_id,
        **urls,
    )
