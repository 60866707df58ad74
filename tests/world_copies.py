"""
Copies of the worlds by name: `connect("local")` opens one instead of building the world again.

Each test still has a world of its own. Building the demo world takes seven times as long.
`open_world` itself, and other processes, build as ever.
"""

from __future__ import annotations

import io
import pickle
import threading
from functools import cache
from typing import TYPE_CHECKING, Any

from ledgerkit.localnet.worlds import open_world
from ledgerkit.protocol import SecretKey

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World

_LOCK = type(threading.RLock())


class _Writer(pickle.Pickler):
    """Writes a world; its keys, which are never pickled, are listed beside it."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.keys: list[SecretKey] = []

    def persistent_id(self, value: Any) -> int | None:
        if not isinstance(value, SecretKey):
            return None
        self.keys.append(value)
        return len(self.keys) - 1

    def reducer_override(self, value: Any) -> Any:
        """Write a lock as one that nobody holds."""
        return (threading.RLock, ()) if isinstance(value, _LOCK) else NotImplemented


class _Reader(pickle.Unpickler):
    """Reads a world, with the same keys."""

    def __init__(self, file: io.BytesIO, keys: list[SecretKey]) -> None:
        super().__init__(file)
        self.keys = keys

    def persistent_load(self, place: int) -> SecretKey:
        return self.keys[place]


@cache
def _written(name: str, size: int | None, seed: int) -> tuple[bytes, list[SecretKey]]:
    file = io.BytesIO()
    writer = _Writer(file)
    writer.dump(open_world(name, size=size, seed=seed))
    return file.getvalue(), writer.keys


def open_copy(name: str, *, size: int | None = None, seed: int = 0) -> World:
    """Open a copy of a world, as `open_world` does a new one."""
    written, keys = _written(name, size, seed)
    world: World = _Reader(io.BytesIO(written), keys).load()
    return world
