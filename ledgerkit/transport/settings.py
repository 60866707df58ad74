"""The settings of a ledger: network, key, timeouts, retries, limits, disk cache."""

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

MAX_IN_FLIGHT = 1024
_MIN_CACHE_BYTES = 2**20


def positive(field: str, value: object) -> None:
    """Raise if a value is not a finite number above zero."""
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else 0
    if not 0 < number < math.inf:
        raise InvalidRequestError.refuse(field, value, "a number above 0")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """
    Limits for the attempts of one read.

    Parameters
    ----------
    attempts
        Maximum number of attempts, the first included.
    total_s
        Maximum number of seconds for all attempts and the pauses between them.
    """

    attempts: int = 4
    total_s: float = 60.0

    def __post_init__(self) -> None:
        """Check the limits."""
        if not (isinstance(self.attempts, int) and self.attempts >= 1):
            raise InvalidRequestError.refuse("attempts", self.attempts, "an integer from 1 up")
        positive("total_s", self.total_s)


@dataclass(frozen=True, slots=True)
class Cache:
    """
    Settings of the disk cache, for responses that cannot change.

    Parameters
    ----------
    path
        The folder; None is this system's folder for a user's caches.
    max_bytes
        Maximum size of its file in bytes; the least recently used responses are deleted
        first. An open file has a journal of a few megabytes beside it.
    metadata_s
        Seconds after which the metadata of tokens is read again, because it may change.
    """

    path: str | os.PathLike[str] | None = None
    max_bytes: int = 2**30
    metadata_s: float = 86400.0

    def __post_init__(self) -> None:
        """Check the folder and the limits."""
        if self.path is not None and not (isinstance(self.path, str | os.PathLike) and self.path):
            raise InvalidRequestError.refuse("path", self.path, "a folder")
        is_integer = isinstance(self.max_bytes, int) and not isinstance(self.max_bytes, bool)
        if not (is_integer and self.max_bytes >= _MIN_CACHE_BYTES):
            rule = f"an integer from {_MIN_CACHE_BYTES} (1 MiB) up"
            raise InvalidRequestError.refuse("max_bytes", self.max_bytes, rule)
        positive("metadata_s", self.metadata_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The checked settings of a `Ledger`."""

    network: Network
    key: ApiKey | None = None
    key_in: Literal["header", "query"] = "header"
    transport: httpx.BaseTransport | httpx.AsyncBaseTransport | None = None
    timeout_s: float = 20.0
    retries: RetryPolicy = RetryPolicy()
    rate: float | None = None
    in_flight: int = 16
    cache: Cache | None = None
    borrowed: bool = False  # whether the transport stays open when the ledger closes

    def __post_init__(self) -> None:
        """Check each value."""
        positive("timeout_s", self.timeout_s)
        if self.rate is not None:
            positive("rate", self.rate)
        if self.key_in not in ("header", "query"):
            raise InvalidRequestError.refuse("key_in", self.key_in, "header or query")
        if not isinstance(self.retries, RetryPolicy):
            rule = "a RetryPolicy, such as RetryPolicy(attempts=4, total_s=60)"
            raise InvalidRequestError.refuse("retries", self.retries, rule)
        if self.key is not None:
            self._check_addresses()
        if not (isinstance(self.in_flight, int) and 1 <= self.in_flight <= MAX_IN_FLIGHT):
            rule = f"an integer from 1 to {MAX_IN_FLIGHT}"
            raise InvalidRequestError.refuse("in_flight", self.in_flight, rule)

    def _check_addresses(self) -> None:
        """Raise if the key would be sent where others could read it."""
        for surface in networks.SURFACES:
            url = self.network.address(surface)
            if url and networks.is_exposed(url):
                rule = "an https address, or one of this machine, because a key is sent there"
                raise InvalidRequestError.refuse(f"{surface}_url", networks.host(url), rule)
