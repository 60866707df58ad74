"""How to ask: where, as whom, how patiently, how many requests at a time."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ledgerkit.errors import InvalidRequestError
from ledgerkit.transport import networks

if TYPE_CHECKING:
    import httpx

    from ledgerkit.transport.networks import ApiKey, Network

MOST_IN_FLIGHT = 1024
_LEAST_BYTES = 2**20


def positive(field: str, value: object) -> None:
    """Refuse what is not a number above zero."""
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else 0
    if not 0 < number < math.inf:
        raise InvalidRequestError.refuse(field, value, "a number above 0")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """
    How often and how long one read is tried.

    Parameters
    ----------
    attempts
        Tries in all, the first included.
    total_s
        Seconds in all, waits included.
    """

    attempts: int = 4
    total_s: float = 60.0

    def __post_init__(self) -> None:
        """Refuse what would never try, or never end."""
        if not (isinstance(self.attempts, int) and self.attempts >= 1):
            raise InvalidRequestError.refuse("attempts", self.attempts, "an integer from 1 up")
        positive("total_s", self.total_s)


@dataclass(frozen=True, slots=True)
class Cache:
    """
    What is kept on disk from one session to the next: answers that can't change.

    Parameters
    ----------
    path
        The folder; None is the one that this system has for a user's caches.
    max_bytes
        Most bytes its file takes; the answers used least recently go first. While it is
        open, a journal of a few megabytes stands beside it.
    metadata_s
        Seconds for which the metadata of tokens is believed: it may change.
    """

    path: str | os.PathLike[str] | None = None
    max_bytes: int = 2**30
    metadata_s: float = 86400.0

    def __post_init__(self) -> None:
        """Refuse what is no folder, and bounds that would keep nothing."""
        if self.path is not None and not (isinstance(self.path, str | os.PathLike) and self.path):
            raise InvalidRequestError.refuse("path", self.path, "a folder")
        whole = isinstance(self.max_bytes, int) and not isinstance(self.max_bytes, bool)
        if not (whole and self.max_bytes >= _LEAST_BYTES):
            rule = f"an integer from {_LEAST_BYTES} (1 MiB) up"
            raise InvalidRequestError.refuse("max_bytes", self.max_bytes, rule)
        positive("metadata_s", self.metadata_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything a `Ledger` needs to know before it asks."""

    network: Network
    key: ApiKey | None = None
    key_in: Literal["header", "query"] = "header"
    transport: httpx.BaseTransport | httpx.AsyncBaseTransport | None = None
    timeout_s: float = 20.0
    retries: RetryPolicy = RetryPolicy()
    rate: float | None = None
    in_flight: int = 8
    cache: Cache | None = None
    borrowed: bool = False  # whether the transport is for someone else to close

    def __post_init__(self) -> None:
        """Refuse values that make no sense, by name."""
        positive("timeout_s", self.timeout_s)
        if self.rate is not None:
            positive("rate", self.rate)
        if self.key_in not in ("header", "query"):
            raise InvalidRequestError.refuse("key_in", self.key_in, "header or query")
        if not isinstance(self.retries, RetryPolicy):
            rule = "a RetryPolicy, such as RetryPolicy(attempts=4, total_s=60)"
            raise InvalidRequestError.refuse("retries", self.retries, rule)
        if self.key is not None:
            self._refuse_exposure()
        if not (isinstance(self.in_flight, int) and 1 <= self.in_flight <= MOST_IN_FLIGHT):
            rule = f"an integer from 1 to {MOST_IN_FLIGHT}"
            raise InvalidRequestError.refuse("in_flight", self.in_flight, rule)

    def _refuse_exposure(self) -> None:
        """Refuse to send a key where anyone on the way could read it."""
        for surface in networks.SURFACES:
            url = self.network.address(surface)
            if url and networks.is_exposed(url):
                rule = "a key is only sent over https, or to this machine"
                raise InvalidRequestError.refuse(f"{surface}_url", networks.host(url), rule)
