"""
Failures on demand: late, refused, garbled and lost answers, and a chain that stumbles.

A fault is a text such as ``"latency=0.2"``, ``"status=429; retry-after=1; times=2"``,
``"html"``, ``"drop"`` or ``"truncate=20"``, given when a gateway is made or, for one
request, in its header ``X-Ledgerkit-Fault``.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from ledgerkit.errors import InvalidRequestError

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World

HEADER = "x-ledgerkit-fault"
LONGEST_LATENCY = 60.0

_BARE = {"html": "true", "drop": "before"}  # what a word means without a value
_REMEMBERED = 1024  # texts in headers whose uses are counted

Count = Annotated[int, Meta(ge=1, le=1_000_000)]


class Fault(Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """
    One way to fail.

    Parameters
    ----------
    latency
        Seconds before anything happens.
    status
        The HTTP status that stands in the answer's place.
    retry_after
        The header `Retry-After` beside it: seconds, or a date.
    html
        Whether a page for people stands there instead of JSON; alone its status is 502.
    drop
        Whether the connection is lost, before the request is looked at or after.
    truncate
        How many bytes of the body arrive of those announced.
    times
        How many requests fail; None is every one.
    drop_transactions
        How many of the transactions that come next never get into a block.
    skip_blocks
        How many heights are left out before the next block.
    hold_finality
        Whether blocks stop, or go on again, to become final.
    """

    latency: Annotated[float, Meta(ge=0, le=LONGEST_LATENCY)] = 0.0
    status: Annotated[int, Meta(ge=400, le=599)] | None = None
    retry_after: Annotated[str, Meta(pattern=r"^[\w ,:.+-]{1,40}$")] | None = None
    html: bool = False
    drop: Literal["before", "after"] | None = None
    truncate: Annotated[int, Meta(ge=0)] | None = None
    times: Count | None = None
    drop_transactions: Count | None = None
    skip_blocks: Count | None = None
    hold_finality: bool | None = None

    @property
    def replaces(self) -> bool:
        """Whether something else stands in the answer's place."""
        return self.html or self.status is not None

    def stumble(self, world: World) -> None:
        """Do to the chain what is asked for."""
        if self.drop_transactions is not None:
            world.drop_transactions(self.drop_transactions)
        if self.skip_blocks is not None:
            world.advance(skip=self.skip_blocks)
        if self.hold_finality is not None:
            world.hold_finality(held=self.hold_finality)


def parse(text: str) -> Fault:
    """
    Read a fault.

    Parameters
    ----------
    text
        Words divided by semicolons, each ``name=value``, ``html`` or ``drop``.

    Returns
    -------
    fault
        The fault.

    Raises
    ------
    InvalidRequestError
        If a word or its value is not known, or comes twice.
    """
    words: dict[str, str] = {}
    for part in text.split(";"):
        name, given, value = (piece.strip() for piece in part.partition("="))
        if name in words:
            raise InvalidRequestError.refuse("fault", text, f"a text with {name!r} only once")
        words[name] = value if given else _BARE.get(name, "")
    try:
        return msgspec.convert(words, Fault, strict=False)
    except msgspec.ValidationError as error:
        names = ", ".join(Fault.__struct_encode_fields__)
        rule = f"words out of {names}, with their values ({error})"
        raise InvalidRequestError.refuse("fault", text, rule) from None


class Faults:
    """
    The faults still to come.

    Parameters
    ----------
    *texts
        Each a fault, as `parse` reads it; one after the other is used up.
    """

    def __init__(self, *texts: str) -> None:
        self._lock = threading.Lock()
        self._ahead: deque[tuple[Fault, int | None]] = deque()
        self._used: dict[str, int] = {}
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Put one more fault behind the others."""
        fault = parse(text)
        with self._lock:
            self._ahead.append((fault, fault.times))

    def clear(self) -> None:
        """Forget the faults that were added."""
        with self._lock:
            self._ahead.clear()

    def pick(self, header: str | None = None) -> Fault | None:
        """
        Choose the fault of one request.

        Parameters
        ----------
        header
            What its own header asks for; with ``times`` only the first requests that
            say just this fail.

        Returns
        -------
        fault
            None if all goes well.

        Raises
        ------
        InvalidRequestError
            If the header is malformed.
        """
        fault = None if header is None else parse(header)
        with self._lock:
            if header is not None and fault is not None:
                return fault if self._counts(header, fault.times) else None
            return self._next()

    def _counts(self, header: str, times: int | None) -> bool:
        """Tell whether a header's fault is still due, and count it."""
        if times is None:
            return True
        used = self._used.pop(header, 0)
        self._used[header] = used + 1  # put last: what is not used any more is forgotten first
        if len(self._used) > _REMEMBERED:
            del self._used[next(iter(self._used))]
        return used < times

    def _next(self) -> Fault | None:
        """Take the first fault that is ahead."""
        if not self._ahead:
            return None
        fault, left = self._ahead.popleft()
        if left is None or left > 1:
            self._ahead.appendleft((fault, None if left is None else left - 1))
        return fault
