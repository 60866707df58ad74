"""
Fault injection: late, refused, garbled and lost responses, and disturbances of the chain.

A fault is a text such as ``"latency=0.2"``, ``"status=429; retry-after=1; times=2"``,
``"html"``, ``"drop"`` or ``"truncate=20"``. It is passed to the gateway or, for one request,
in the header ``X-Ledgerkit-Fault``.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from ledgerkit import json_decoding
from ledgerkit.errors import InvalidRequestError

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World

HEADER = "x-ledgerkit-fault"
MAX_LATENCY_S = 60.0

_BARE_WORDS = {"html": "true", "drop": "before"}  # the values of words written without a value

Count = Annotated[int, Meta(ge=1, le=1_000_000)]


class Fault(Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """A fault to inject into responses or into the chain."""

    latency: Annotated[float, Meta(ge=0, le=MAX_LATENCY_S)] = 0.0  # seconds before processing
    # The HTTP status and the header `Retry-After` of a failure that replaces the response.
    status: Annotated[int, Meta(ge=400, le=599)] | None = None
    retry_after: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_ ,:.+-]{1,40}$")] | None = None
    html: bool = False  # an HTML page in place of JSON; without `status` its status is 502
    drop: Literal["before", "after"] | None = None  # when to close the connection
    truncate: Annotated[int, Meta(ge=0)] | None = None  # the bytes of the body that are sent
    times: Count | None = None  # the requests that fail; None: every request
    drop_transactions: Count | None = None  # accepted next, but never included in a block
    skip_blocks: Count | None = None  # the heights before the next block
    hold_finality: bool | None = None  # True stops blocks from becoming final, False resumes

    @property
    def replaces_response(self) -> bool:
        """True if a failure is sent in place of the response."""
        return self.html or self.status is not None

    def disturb_chain(self, world: World) -> None:
        """Apply the part of the fault that concerns the chain."""
        if self.drop_transactions is not None:
            world.drop_transactions(self.drop_transactions)
        if self.skip_blocks is not None:
            world.advance(skip=self.skip_blocks)
        if self.hold_finality is not None:
            world.hold_finality(hold=self.hold_finality)


def parse_fault(text: str) -> Fault:
    """Parse a fault: words separated by semicolons, each ``name=value``, ``html`` or ``drop``."""
    words: dict[str, str] = {}
    for part in text.split(";"):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name in words:
            raise InvalidRequestError.refuse("fault", text, f"a text with {name!r} only once")
        words[name] = value if equals else _BARE_WORDS.get(name, "")
    try:
        return json_decoding.convert(words, Fault, strict=False)
    except msgspec.DecodeError as error:
        names = ", ".join(Fault.__struct_encode_fields__)
        expected = f"words out of {names}, with their values ({error})"
        raise InvalidRequestError.refuse("fault", text, expected) from None


class Faults:
    """A queue of faults to inject, as texts; each is used up before the next."""

    def __init__(self, *texts: str) -> None:
        self._lock = threading.Lock()
        self._queue: deque[tuple[Fault, int | None]] = deque()  # with the remaining uses
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Add a fault to the end of the queue."""
        fault = parse_fault(text)
        with self._lock:
            self._queue.append((fault, fault.times))

    def clear(self) -> None:
        """Remove all faults from the queue."""
        with self._lock:
            self._queue.clear()

    def pick(self, header: str | None = None) -> Fault:
        """Return a request's fault: from its own header, or the first of the queue."""
        if header is not None:
            return parse_fault(header)
        with self._lock:
            if not self._queue:
                return Fault()
            fault, uses = self._queue.popleft()
            if uses is None or uses > 1:
                self._queue.appendleft((fault, None if uses is None else uses - 1))
            return fault
