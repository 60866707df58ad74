"""An even rate of requests, which adapts to what a host accepts."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from dataclasses import dataclass

from ledgerkit.transport import forks

# A second more than the window of the hosts: requests need different times to arrive.
MINUTE_S = 61.0
_RESPONSES = 100  # the share of refused requests is measured over the last 50 to 100
_SCATTERED = 0.08  # up to this share, refusals are not taken for a limit
_CHANCE = 2.5  # this number of refusals above that share may be a coincidence
_SLOWED_TOLERANCE = 0.5  # factor for both after a slowdown, since the host has a limit
_DOUBLED_S = 10.0  # a lowered rate doubles in this time
_FORGOTTEN_S = 60.0  # after this time without a slowdown, only the given limit holds
_MAX_STARTS = 10_000  # remembered without a limit per minute; more than start in a second


@dataclass(frozen=True, slots=True)
class Limit:
    """The maximum number of requests to a host, a second and in any minute; None is no limit."""

    rate: float | None = None
    per_minute: int | None = None
    reason: str = ""  # the condition of `per_minute`, such as "without an API key"

    @property
    def sustained_rate(self) -> float | None:
        """The maximum number of requests a second over many minutes; None is no limit."""
        if self.per_minute is None:
            return self.rate
        return min(self.rate or math.inf, self.per_minute / MINUTE_S)

    def seconds(self, requests: int) -> float | None:
        """Return the minimum time of some requests in seconds; None if there is no limit."""
        if self.sustained_rate is None:
            return None
        minutes = 0 if self.per_minute is None else max(0, requests - 1) // self.per_minute
        return max(minutes * MINUTE_S, requests / (self.rate or math.inf))

    def __str__(self) -> str:
        if self.sustained_rate is None:
            return "no rate limit"
        if self.per_minute is None or self.sustained_rate == self.rate:
            return f"at most {self.rate:g} requests a second"
        return f"at most {self.per_minute:,} requests a minute {self.reason}".rstrip()


class RateLimiter:
    """
    A limiter that spaces the starts of requests evenly, further apart after refusals.

    Scattered refusals (HTTP 429), up to 8 % of the responses, change nothing. If more requests
    are refused, the rate at which requests recently started is lowered by half of the refused
    share, but not below one a second. It then doubles every 10 s, up to the limit; without a
    limit, it is unlimited again after a minute. Until then, refusals above 4 % lower it again.
    The cut is that of DCTCP (RFC 8257, section 3.3).

    With a limit per minute, requests start at `rate` until it is reached. Each refusal then
    counts, because the host is known to have a limit.
    """

    def __init__(self, rate: float | None, per_minute: int | None = None) -> None:
        self._limit = rate or math.inf
        self._per_minute = per_minute
        self.after_fork()
        forks.register(self)

    def after_fork(self) -> None:
        """Reset the counts in a forked child, where another thread's lock would never be free."""
        self._lowered_rate = self._limit
        self._slowed_at = self._growing_since = -math.inf
        self._free_at = self._paused_until = 0.0
        # The responses to requests that started after the last slowdown; halved when many.
        self._responses = self._refusals = 0.0
        # The last starts, future ones included, up to the limit per minute.
        self._starts: deque[float] = deque(maxlen=self._per_minute or _MAX_STARTS)
        self._lock = threading.Lock()
        self.void_count = 0  # how often all reserved slots were voided

    @property
    def rate(self) -> float:
        """The current maximum number of requests a second."""
        seconds = max(time.monotonic(), self._paused_until) - self._growing_since
        if seconds > _FORGOTTEN_S:
            return self._limit
        return min(self._lowered_rate * 2 ** (seconds / _DOUBLED_S), self._limit)

    def reserve(self, until: float) -> float | None:
        """Reserve the next slot and return the seconds until it; None if it is after `until`."""
        with self._lock:
            now = time.monotonic()
            start = max(now, self._free_at)
            if len(self._starts) == self._per_minute:
                start = max(start, self._starts[0] + MINUTE_S)
            if start > until:
                return None
            self._starts.append(start)
            self._free_at = start + 1 / self.rate
        return start - now

    def release(self, void_count: int) -> None:
        """Return an unused slot, unless it was voided after it was reserved at this count."""
        with self._lock:
            if void_count == self.void_count:
                self._free_at -= 1 / self.rate
                if self._starts:
                    self._starts.pop()

    def uncount(self) -> None:
        """Leave a request that did not reach the host out of the limit per minute."""
        with self._lock:
            if self._starts:  # the earliest start, which expires first
                self._starts.popleft()

    def pause(self, seconds: float) -> None:
        """Start no request for some seconds, in which the rate does not grow."""
        with self._lock:
            now = time.monotonic()
            until = now + seconds
            if until > self._paused_until:
                self._growing_since += until - max(now, self._paused_until)
                self._paused_until = until
                self._void_slots(now, until)

    def record(self, started: float, *, refused: bool) -> float | None:
        """
        Count a response; return the rate if it is lowered because many requests are refused.

        The response to a request that started before the last slowdown, in time.monotonic(), is
        not counted: it was sent at the old rate.
        """
        with self._lock:
            if started < self._slowed_at:
                return None
            if self._responses >= _RESPONSES:
                self._responses, self._refusals = self._responses / 2, self._refusals / 2
            self._responses += 1
            self._refusals += refused
            return self._slow_down() if refused and self._exceeds(_CHANCE) else None

    @property
    def is_scattered(self) -> bool:
        """True if few of the last requests were refused, so that the others need not wait."""
        return not self._exceeds(0)

    def _exceeds(self, chance: float) -> bool:
        """Return True if too many requests were refused since the last slowdown."""
        if self._per_minute:  # each refusal means that the minute is full
            return True
        tolerance = 1.0 if self.rate == self._limit else _SLOWED_TOLERANCE
        return self._refusals >= tolerance * (chance + _SCATTERED * self._responses)

    def _slow_down(self) -> float:
        """Lower the rate of the last second by half of the refused share, and reset the counts."""
        now = time.monotonic()
        last_second = sum(start > self._starts[-1] - 1.0 for start in self._starts)
        rate = min(max(last_second, 1), self.rate)
        lowered = rate * (1 - self._refusals / self._responses / 2)
        self._lowered_rate = max(lowered, min(1.0, self._limit))
        self._slowed_at, self._growing_since = now, max(now, self._paused_until)
        self._responses = self._refusals = 0.0
        self._void_slots(now, self._growing_since)
        return self._lowered_rate

    def _void_slots(self, now: float, free_at: float) -> None:
        """Void all reserved slots: requests that wait for one reserve again."""
        while self._starts and self._starts[-1] > now:
            self._starts.pop()
        self._free_at = free_at
        self.void_count += 1
