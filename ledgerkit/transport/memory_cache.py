"""Response bodies in memory, within a limit of bytes."""

from __future__ import annotations

import math
import threading

_MAX_BYTES = 64 * 2**20


class MemoryCache:
    """Response bodies by key; the least recently used are dropped first."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._entries: dict[object, tuple[bytes, float]] = {}  # ordered by last use
        self._max_bytes = self._free_bytes = max_bytes
        self._lock = threading.Lock()

    def get(self, key: object, now: float = 0.0) -> bytes | None:
        """Return a body that has not expired; None if there is none."""
        with self._lock:
            body, expires_at = self._entries.get(key, (None, math.inf))
            if body is None or now >= expires_at:
                return None
            self._entries[key] = self._entries.pop(key)
            return body

    def put(self, key: object, body: bytes, expires_at: float = math.inf) -> None:
        """Add or replace a body; a body above the limit is not stored."""
        if len(body) > self._max_bytes:  # it would drop all others, and then itself
            return
        with self._lock:
            self._drop(key)
            self._entries[key] = body, expires_at
            self._free_bytes -= len(body)
            while self._free_bytes < 0:
                self._drop(next(iter(self._entries)))

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._free_bytes = self._max_bytes

    def _drop(self, key: object) -> None:
        body, _ = self._entries.pop(key, (b"", 0.0))
        self._free_bytes += len(body)
