"""
The attempts of a failed request, the pauses between them, and when to give a host up.

`errors.from_status` decides which HTTP statuses are retryable.
"""

from __future__ import annotations

import math
import random
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import LedgerError, TransportError

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call, Surface

_FIRST_S = 0.25
_LONGEST_S = 5.0
_MAX_FAILURES = 10  # requests in a row, each with all its attempts


class Backoff:
    """The pauses between the attempts of one request, within a time.monotonic() deadline."""

    def __init__(self, attempts: int, deadline: float = math.inf) -> None:
        self._retries = attempts - 1
        self.deadline = deadline
        self._longest_s = _FIRST_S

    def next_pause(self, error: LedgerError, least_s: float = 0.0) -> float | None:
        """Return the seconds until the next attempt; None if this one was the last."""
        retry_after: float | None = getattr(error, "retry_after", None)
        pause = (least_s if retry_after is None else retry_after) + _jitter(self._longest_s)
        if self._retries <= 0 or time.monotonic() + pause >= self.deadline:
            return None
        self._retries -= 1
        self._longest_s = min(2 * self._longest_s, _LONGEST_S)
        return pause


class Outage:
    """
    Counts consecutive requests of a batch that failed for the same reason without a response.

    Any response, also an error of the host, resets the count. Hosts are counted separately.
    """

    def __init__(self) -> None:
        self._failures: dict[str, tuple[str, int]] = {}

    def record(self, surface: Surface, value: object) -> None:
        """Count the value of a call that was sent to the host of a surface."""
        reason = value.reason if isinstance(value, TransportError) else None
        if reason is None:
            self._failures.pop(surface, None)
            return
        earlier, count = self._failures.get(surface, (reason, 0))
        self._failures[surface] = reason, count + 1 if reason == earlier else 1

    def error(self, call: Call[Any], surface: Surface) -> TransportError | None:
        """Return the error of a call that is not sent; None if it should be sent."""
        reason, count = self._failures.get(surface, ("", 0))
        if count < _MAX_FAILURES:
            return None
        sentence = f"not sent, because the last {count} requests had no response: {reason}"
        return TransportError(sentence, request=call.request, not_sent=True)


def _jitter(longest_s: float) -> float:
    # A random pause keeps clients that failed together from retrying together.
    return random.uniform(0.0, longest_s)  # noqa: S311 - no secret depends on it


def parse_retry_after(text: str | None) -> float | None:
    """Parse a Retry-After header, seconds or a date, into seconds; None if it is neither."""
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
        except (ValueError, OverflowError):
            return None
    return seconds if 0 <= seconds < math.inf else None
