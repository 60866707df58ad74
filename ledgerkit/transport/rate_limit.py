"""An even rate of requests, which adapts to what a host accepts."""

from __future__ import annotations

import math
import threading
import time


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
    """

    def __init__(self, rate: float | None) -> None:
        self._limit = self._rate = rate or math.inf
        self._gap_s = 1 / self._limit
        self._free_at = self._paused_until = 0.0
        # Starts in the second that ends at `_second_ends`, and in the second before.
        self._starts = self._starts_before = 0
        self._second_ends = -math.inf
        self._slowed_at = -math.inf
        self._slowed_to = self._growth = self._unlimited_from = math.inf
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
            if start > until:
                return None
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
        self._free_at = free_at
        self.epoch += 1

    def _start_second(self, start: float) -> None:
        """Count the starts of the next second."""
        is_next = start < self._second_ends + 1.0
        self._starts_before = self._starts if is_next else 0
        self._starts = 0
        self._second_ends = start + 1.0
