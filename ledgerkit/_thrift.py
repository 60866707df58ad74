"""What spares the hosts: an even rate, and a memory of answers that can't change."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

_CACHE_BYTES = 64 * 2**20


class Pacer:
    """
    Spaces requests evenly; a pause asked for by a host holds all that come later.

    Parameters
    ----------
    rate
        Most requests a second; None is no limit.
    """

    def __init__(self, rate: float | None) -> None:
        self._gap = 1 / rate if rate else 0.0
        self._free_at = 0.0
        self._lock = threading.Lock()

    def reserve(self, until: float) -> float | None:
        """Take the next place and tell the seconds to it; None if it comes too late."""
        with self._lock:
            now = time.monotonic()
            start = max(now, self._free_at)
            if start > until:
                return None
            self._free_at = start + self._gap
        return start - now

    def give_back(self) -> None:
        """Return a place that was taken and not used."""
        with self._lock:
            self._free_at -= self._gap

    def pause(self, seconds: float) -> None:
        """Let nobody start for a while."""
        with self._lock:
            self._free_at = max(self._free_at, time.monotonic() + seconds)


class Cache:
    """
    Bodies of answers, the least used dropped first.

    Parameters
    ----------
    limit
        Most bytes in all.
    """

    def __init__(self, limit: int = _CACHE_BYTES) -> None:
        self._held: OrderedDict[object, bytes] = OrderedDict()
        self._left = limit
        self._lock = threading.Lock()

    def get(self, key: object) -> bytes | None:
        """Find a body."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
            return self._held.get(key)

    def put(self, key: object, body: bytes) -> None:
        """Keep a body."""
        with self._lock:
            self._left += len(self._held.pop(key, b""))
            self._held[key] = body
            self._left -= len(body)
            while self._left < 0:
                self._left += len(self._held.popitem(last=False)[1])
