"""An even rate of requests, which adapts to what a host accepts."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from dataclasses import dataclass

# A second more than the window of the hosts: requests need different times to arrive.
_MINUTE_S = 61.0


@dataclass(frozen=True, slots=True)
class Limit:
    """
    How many requests a host is sent.

    Parameters
    ----------
    rate
        Maximum number of requests a second; None is no limit.
    per_minute
        Maximum number of requests in any minute; None is no limit.
    reason
        What the second limit depends on, such as "without an API key".
    """

    rate: float | None = None
    per_minute: int | None = None
    reason: str = ""

    @property
    def sustained_rate(self) -> float | None:
        """The maximum number of requests a second over many minutes; None is no limit."""
        if self.per_minute is None:
            return self.rate
        return min(self.rate or math.inf, self.per_minute / _MINUTE_S)

    def seconds(self, requests: int) -> float | None:
        """Return the minimum time of some requests in seconds; None if there is no limit."""
        if self.sustained_rate is None:
            return None
        minutes = 0 if self.per_minute is None else max(0, requests - 1) // self.per_minute
        return max(minutes * _MINUTE_S, requests / (self.rate or math.inf))

    def __str__(self) -> str:
        if self.sustained_rate is None:
            return "no rate limit"
        if self.per_minute is None or self.sustained_rate == self.rate:
            return f"at most {self.rate:g} requests a second"
        return f"at most {self.per_minute:,} requests a minute {self.reason}".rstrip()


class RateLimiter:
    """
    A limiter that spaces the starts of requests evenly, further apart after a refusal.

    A refusal (HTTP 429) halves the rate at which requests recently started, but not below
    one a second. From there the rate grows evenly up to the limit. Without a limit, it is
    unlimited again from twice the refused rate.

    Parameters
    ----------
    rate
        Maximum number of requests a second; None is no limit.
    per_minute
        Maximum number of requests in any minute; None is no limit. Until it is reached they
        start at `rate`.
    """

    def __init__(self, rate: float | None, per_minute: int | None = None) -> None:
        self._limit = self._rate = rate or math.inf
        self._gap_s = 1 / self._limit
        self._free_at = self._paused_until = 0.0
        # Starts in the second that ends at `_second_ends`, and in the second before.
        self._starts = self._starts_before = 0
        self._second_ends = -math.inf
        self._slowed_at = -math.inf
        self._slowed_to = self._growth = self._unlimited_from = math.inf
        # The last starts, future ones included, as many as a minute may have.
        self._minute: deque[float] = deque(maxlen=per_minute or 0)
        self._lock = threading.Lock()
        self.epoch = 0  # a pause begins a new one: slots that were reserved before are void

    @property
    def rate(self) -> float:
        """The current maximum number of requests a second."""
        with self._lock:
            self._recover(time.monotonic())
            return self._rate

    def reserve(self, until: float) -> float | None:
        """Reserve the next slot and return the seconds until it; None if it is after `until`."""
        with self._lock:
            now = time.monotonic()
            self._recover(now)
            start = max(now, self._free_at)
            if self._minute and len(self._minute) == self._minute.maxlen:
                start = max(start, self._minute[0] + _MINUTE_S)
            if start > until:
                return None
            self._minute.append(start)
            self._free_at = start + self._gap_s
            if start >= self._second_ends:
                self._start_second(start)
            self._starts += 1
        return start - now

    def release(self, epoch: int) -> None:
        """Return a slot that was reserved in this epoch and not used."""
        with self._lock:
            if epoch == self.epoch:
                self._free_at -= self._gap_s
                if self._minute:
                    self._minute.pop()

    def uncount(self) -> None:
        """Leave a request that did not reach the host out of the limit of a minute."""
        with self._lock:
            if self._minute:  # the first one: its place would have been free at the earliest
                self._minute.popleft()

    def pause(self, seconds: float) -> None:
        """Start no request for some seconds; reserved slots are void."""
        with self._lock:
            until = time.monotonic() + seconds
            if until > self._paused_until:
                self._paused_until = until
                self._void_slots(until)

    def slow_down(self, started: float) -> float | None:
        """
        Lower the rate after a request was refused.

        Parameters
        ----------
        started
            `time.monotonic()` when the request started. One that started before the last
            slowdown changes nothing: it was sent at the old rate.

        Returns
        -------
        rate
            Requests a second from now on; None if unchanged.
        """
        with self._lock:
            if started < self._slowed_at:
                return None
            now = time.monotonic()
            self._recover(now)
            recent = min(max(self._starts, self._starts_before, 1), self._rate)
            self._slowed_at = now
            self._slowed_to = max(recent / 2, min(1.0, self._limit))
            self._growth = max(1.0, recent / 5)  # requests a second, each second
            self._unlimited_from = 2 * recent if math.isinf(self._limit) else self._limit
            self._set_rate(self._slowed_to)
            self._void_slots(max(now, self._paused_until))
            return self._rate

    def _recover(self, now: float) -> None:
        """Raise the rate with the time since the last refusal or pause."""
        if self._rate == self._limit:
            return
        seconds = now - max(self._slowed_at, self._paused_until)
        rate = self._slowed_to + self._growth * max(0.0, seconds)
        self._set_rate(self._limit if rate >= self._unlimited_from else rate)

    def _set_rate(self, rate: float) -> None:
        """Set the rate and the gap between two starts."""
        self._rate = rate
        self._gap_s = 1 / rate

    def _void_slots(self, free_at: float) -> None:
        """Void all reserved slots: requests that wait for one reserve again."""
        now = time.monotonic()
        while self._minute and self._minute[-1] > now:
            self._minute.pop()
        self._free_at = free_at
        self.epoch += 1

    def _start_second(self, start: float) -> None:
        """Count the starts of the next second."""
        is_next = start < self._second_ends + 1.0
        self._starts_before = self._starts if is_next else 0
        self._starts = 0
        self._second_ends = start + 1.0
