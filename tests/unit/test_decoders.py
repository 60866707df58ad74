"""Decoders are made by one thread at a time: where two met at a new type, the process died."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec

from ledgerkit.api import calls

if TYPE_CHECKING:
    import pytest

THREADS = 8


class First(msgspec.Struct):
    """A type that nothing has decoded before."""

    number: int


class Second(msgspec.Struct):
    """One that holds the other."""

    first: First


def test_threads_that_meet_at_a_type_make_one_decoder(monkeypatch: pytest.MonkeyPatch):
    """Eight threads that decode two new types at once make two decoders, one after the other."""
    plain = msgspec.json.Decoder
    inside: list[Any] = []
    made: list[Any] = []

    def slow(kind: Any) -> Any:
        inside.append(kind)
        time.sleep(0.02)
        made.append((kind, len(inside)))
        inside.remove(kind)
        return plain(kind)

    monkeypatch.setattr(msgspec.json, "Decoder", slow)
    together = threading.Barrier(THREADS)

    def decode(at: int) -> int:
        together.wait()
        found = calls.decoder((First, Second)[at % 2]).decode(b'{"number":1,"first":{"number":1}}')
        return int(getattr(found, "first", found).number)

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(decode, range(THREADS)))

    assert found == [1] * THREADS
    assert sorted(made, key=str) == sorted([(First, 1), (Second, 1)], key=str)
