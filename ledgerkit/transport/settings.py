"""The settings of a ledger: network, key, timeouts, retries, limits, disk cache."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import urlsplit

from ledgerkit import validation
from ledgerkit.errors import InvalidRequestError
from ledgerkit.transport import networks
from ledgerkit.transport.rate_limit import Limit

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from ledgerkit.api.calls import Surface
    from ledgerkit.transport.exchange import Source, Transport
    from ledgerkit.transport.networks import ApiKey, Network

BURST_RATE = 20.0  # requests a second to a public host, until its limit for a minute is reached
MAX_IN_FLIGHT = 1024
_MIN_CACHE_BYTES = 2**20


def count(field: str, value: object) -> None:
    """Raise if a value is not an integer above zero."""
    if type(value) is not int or value < 1:
        raise InvalidRequestError.refuse(field, value, "an integer from 1 up")


def positive(field: str, value: object) -> None:
    """Raise if a value is not a finite number above zero."""
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else 0
    if not 0 < number < math.inf:
        raise InvalidRequestError.refuse(field, value, "a number above 0")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """
    Limits for the attempts of one read.

    Sending a transaction is attempted up to five times, also within `total_s`.

    Parameters
    ----------
    attempts
        Maximum number of attempts, the first included.
    total_s
        Maximum number of seconds for all attempts and the pauses between them. Waiting until
        a public host's limit for a minute has room is not counted.

    Notes
    -----
    Pauses are short and random, or as long as the host says. If a public host refuses a request
    (HTTP 429) without saying how long, the attempts are spread over `total_s`.

    Examples
    --------
    >>> ledger = lk.connect("local", retries=lk.RetryPolicy(attempts=2, total_s=5.0))
    >>> ledger.faults.add("status=503; times=1")
    >>> lk.gas_price()  # the second attempt succeeds
       gas_price
    0  100000000
    """

    attempts: int = 4
    total_s: float = 60.0

    def __post_init__(self) -> None:
        count("attempts", self.attempts)
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
        first. An open file has a journal of a few megabytes.
    metadata_s
        Seconds after which the metadata of tokens is read again, because it may change.

    Examples
    --------
    >>> ledger = lk.connect("mainnet", cache=lk.Cache("responses", max_bytes=100 * 2**20))
    >>> lk.cache_info().attrs["max_bytes"]
    104857600
    """

    path: str | os.PathLike[str] | None = None
    max_bytes: int = 2**30
    metadata_s: float = 86400.0

    def __post_init__(self) -> None:
        if self.path is not None and not (isinstance(self.path, str | os.PathLike) and self.path):
            raise InvalidRequestError.refuse("path", self.path, "a folder")
        validation.no_secret(self.path, "path")
        if type(self.max_bytes) is not int or self.max_bytes < _MIN_CACHE_BYTES:
            rule = f"an integer from {_MIN_CACHE_BYTES} (1 MiB) up"
            raise InvalidRequestError.refuse("max_bytes", self.max_bytes, rule)
        positive("metadata_s", self.metadata_s)


class Recording(Protocol):
    """A recorder of the exchanges of ledgers."""

    path: Path
    is_shared: bool  # whether it stays open when one of its ledgers is closed

    def wrap(self, transport: Transport, settings: Settings) -> Transport:
        """Return a transport that records the exchanges of another one."""

    def close(self) -> None:
        """Record nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The checked settings of a `Ledger`."""

    network: Network
    key: ApiKey | None = None
    key_in: Literal["header", "query"] = "header"
    # Replaces the network's hosts.
    transport: Transport | Source | httpx.BaseTransport | httpx.AsyncBaseTransport | None = None
    timeout_s: float = 20.0
    max_response_bytes: int = 2**28
    retries: RetryPolicy = RetryPolicy()
    rate: float | None = None  # requests a second to each host
    polite: bool = False  # whether the public hosts' limits apply, too
    in_flight: int = 16
    cache: Cache | None = None
    borrowed: bool = False  # whether the transport and recorder stay open when the ledger closes
    recorder: Recording | None = None

    def __post_init__(self) -> None:
        positive("timeout_s", self.timeout_s)
        count("max_response_bytes", self.max_response_bytes)
        if self.rate is not None:
            positive("rate", self.rate)
        validation.one_of(self.key_in, "key_in", ("header", "query"))
        if not isinstance(self.retries, RetryPolicy):
            rule = "a RetryPolicy, such as RetryPolicy(attempts=4, total_s=60)"
            raise InvalidRequestError.refuse("retries", self.retries, rule)
        if self.key is not None:
            self._check_addresses()
        if not (isinstance(self.in_flight, int) and 1 <= self.in_flight <= MAX_IN_FLIGHT):
            rule = f"an integer from 1 to {MAX_IN_FLIGHT}"
            raise InvalidRequestError.refuse("in_flight", self.in_flight, rule)

    def lowered(self, in_flight: int | None, rate: float | None) -> Settings:
        """Return these settings with other limits: a rate up to this one; None changes nothing."""
        if rate is not None:
            positive("rate", rate)
            rate = min(rate, self.rate or rate)
        in_flight = self.in_flight if in_flight is None else in_flight
        return replace(self, in_flight=in_flight, rate=rate or self.rate)

    def per_minute(self, surface: Surface) -> int | None:
        """Return how many requests a minute the host of a surface accepts; None if unknown."""
        return networks.per_minute(self.network.host(surface), has_key=self.key is not None)

    def limit(self, surface: Surface) -> Limit:
        per_minute = self.per_minute(surface) if self.polite else None
        if per_minute is None:
            return Limit(self.rate)
        reason = "without an API key" if self.key is None else "with the API key"
        return Limit(self.rate or max(BURST_RATE, per_minute / 60), per_minute, reason)

    def lowest_limit(self, surfaces: Iterable[Surface] = networks.SURFACES) -> Limit:
        """Return the limit of the host of these surfaces that accepts the fewest requests."""
        limits = [self.limit(s) for s in surfaces if self.network.address(s)]
        return min(limits, key=lambda limit: limit.sustained_rate or math.inf, default=Limit())

    def limits_text(self) -> str:
        """Describe the limits of all hosts; empty if there are none."""
        lowest = self.lowest_limit()
        if lowest.sustained_rate is None:
            return ""
        limits = {self.network.host(s): self.limit(s) for s in self.network.addresses}
        others = [
            f"{limit.per_minute:,} to {host}"
            for host, limit in limits.items()
            if limit.per_minute and limit != lowest
        ]
        return "; ".join([f"{lowest}, to each host", *others])

    def rate_limit_remedy(self, surface: Surface) -> str | None:
        """Return what to do if a host refuses more requests; None for an unknown host."""
        host, per_minute = self.network.host(surface), self.per_minute(surface)
        if per_minute is None:
            return None
        if self.key is not None:
            return (
                f"{host} accepts {per_minute:,} requests a minute with an API key of the smallest "
                "plan: wait a minute, lower rate=, or use a key of a larger plan."
            )
        return (
            f"{host} accepts about {per_minute} requests a minute without an API key: wait a "
            f"minute, or connect with a key, which allows {networks.KEY_PER_MINUTE:,} or more."
        )

    def _check_addresses(self) -> None:
        for surface, url in self.network.addresses.items():
            parts = urlsplit(url)
            if parts.scheme != "https" and not networks.is_loopback(url):
                rule = "an https address, or one of this machine, because a key is sent there"
                origin = f"{parts.scheme}://{parts.hostname}"  # a path may hold a provider's key
                raise InvalidRequestError.refuse(f"{surface}_url", origin, rule)
