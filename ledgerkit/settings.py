"""How to ask: where, as whom, how patiently, how many requests at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ledgerkit import networks
from ledgerkit.errors import InvalidRequestError

if TYPE_CHECKING:
    import httpx

    from ledgerkit.networks import ApiKey, Network

MOST_IN_FLIGHT = 1024


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
