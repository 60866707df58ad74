"""Decoders are built by one thread at a time, and raise one kind of error."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from ledgerkit import json_decoding

THREADS = 8


class First(msgspec.Struct):
    """A type that nothing has decoded before."""

    number: int


class Second(msgspec.Struct):
    """One that holds the other."""

    first: First


def test_threads_that_meet_at_a_type_build_one_decoder(monkeypatch: pytest.MonkeyPatch):
    """Eight threads that decode two new types at once build two decoders, one after the other."""
    plain = msgspec.json.Decoder
    inside: list[Any] = []
    built: list[Any] = []

    def slow(kind: Any, **options: Any) -> Any:
        inside.append(kind)
        time.sleep(0.02)
        built.append((kind, len(inside)))
        inside.remove(kind)
        return plain(kind, **options)

    monkeypatch.setattr(msgspec.json, "Decoder", slow)
    together = threading.Barrier(THREADS)

    def decode(at: int) -> int:
        together.wait()
        if at % 2:
            return json_decoding.convert({"first": {"number": 1}}, Second).first.number
        return json_decoding.decode(b'{"number":1}', First).number

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(decode, range(THREADS))) == [1] * THREADS
    assert sorted(built, key=str) == sorted([(First, 1), (Second, 1)], key=str)


@pytest.mark.parametrize(
    "document",
    [b"[" * 100_000, b'"\xff"', b'["\\ud800"]', b"1e999", b"[" + b"9" * 10_000 + b"]", b"", b"{"],
)
def test_malformed_documents_raise_one_error(document: bytes):
    """Whatever is wrong with a document, decoding raises one kind of error."""
    with pytest.raises(msgspec.DecodeError):
        json_decoding.decode(document)
