"""What spares the hosts: an even rate, and a memory of answers that can't change."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict

_CACHE_BYTES = 64 * 2**20


class Pacer:
    """
    Spaces requests evenly, and more widely for a while after a host found them too many.

    Too many means half the rate at which requests started lately, but not below one a
    second; from there it grows evenly up to what is allowed. Where there is no limit it is
    lifted again at twice the rate that was too much.

    Parameters
    ----------
    rate
        Most requests a second; None is no limit.
    """

    def __init__(self, rate: float | None) -> None:
        self._ceiling = self._rate = rate or math.inf
        self._gap = 1 / self._ceiling
        self._free_at = self._held_until = 0.0
        self._starts = self._starts_before = 0  # in the second that ends then, and in the last
        self._second_ends = -math.inf
        self._slowed_at = -math.inf
        self._slowed_to = self._growth = self._lifted_at = math.inf
        self._lock = threading.Lock()
        self.turn = 0  # places taken in an earlier one are void

    @property
    def rate(self) -> float:
        """Most requests a second at this moment."""
        with self._lock:
            self._recover(time.monotonic())
            return self._rate

    def reserve(self, until: float) -> float | None:
        """Take the next place and tell the seconds to it; None if it comes too late."""
        with self._lock:
            now = time.monotonic()
            self._recover(now)
            start = max(now, self._free_at)
            if start > until:
                return None
            self._free_at = start + self._gap
            if start >= self._second_ends:
                self._next_second(start)
            self._starts += 1
        return start - now

    def give_back(self, turn: int) -> None:
        """Return a place that was taken in a turn and not used."""
        with self._lock:
            if turn == self.turn:
                self._free_at -= self._gap

    def pause(self, seconds: float) -> None:
        """Let nobody start for a while, those that have a place neither."""
        with self._lock:
            until = time.monotonic() + seconds
            if until > self._held_until:
                self._held_until = until
                self._empty(until)

    def slow_down(self, began: float) -> float | None:
        """
        Take note that a request was one too many.

        Parameters
        ----------
        began
            When it began. One that began before the last slowing down tells nothing new.

        Returns
        -------
        rate
            Requests a second from now on; None where nothing changes.
        """
        with self._lock:
            if began < self._slowed_at:
                return None
            now = time.monotonic()
            self._recover(now)
            lately = min(max(self._starts, self._starts_before, 1), self._rate)
            self._slowed_at = now
            self._slowed_to = max(lately / 2, min(1.0, self._ceiling))
            self._growth = max(1.0, lately / 5)  # each second
            self._lifted_at = 2 * lately if math.isinf(self._ceiling) else self._ceiling
            self._set(self._slowed_to)
            self._empty(max(now, self._held_until))
            return self._rate

    def _recover(self, now: float) -> None:
        """Allow more, the longer it went well."""
        if self._rate == self._ceiling:
            return
        well = now - max(self._slowed_at, self._held_until)
        rate = self._slowed_to + self._growth * max(0.0, well)
        self._set(self._ceiling if rate >= self._lifted_at else rate)

    def _set(self, rate: float) -> None:
        """Space requests for this rate."""
        self._rate = rate
        self._gap = 1 / rate

    def _empty(self, free_at: float) -> None:
        """Take all places back; who waits for one asks again."""
        self._free_at = free_at
        self.turn += 1

    def _next_second(self, start: float) -> None:
        """Begin to count anew."""
        recent = start < self._second_ends + 1.0
        self._starts_before = self._starts if recent else 0
        self._starts = 0
        self._second_ends = start + 1.0


class Cache:
    """
    Bodies of answers, the least used dropped first.

    Parameters
    ----------
    limit
        Most bytes in all.
    """

    def __init__(self, limit: int = _CACHE_BYTES) -> None:
        self._held: OrderedDict[object, tuple[bytes, float]] = OrderedDict()
        self._left = limit
        self._lock = threading.Lock()

    def get(self, key: object, now: float = 0.0) -> bytes | None:
        """Find a body that is not too old."""
        with self._lock:
            body, until = self._held.get(key, (None, math.inf))
            if body is None or now >= until:
                return None
            self._held.move_to_end(key)
            return body

    def put(self, key: object, body: bytes, until: float = math.inf) -> None:
        """Keep a body, for ever or until some time."""
        with self._lock:
            self._left += len(self._held.pop(key, (b"", 0))[0])
            self._held[key] = body, until
            self._left -= len(body)
            while self._left < 0:
                self._left += len(self._held.popitem(last=False)[1][0])

    def clear(self) -> None:
        """Forget all bodies."""
        with self._lock:
            self._left += sum(len(body) for body, _ in self._held.values())
            self._held.clear()
