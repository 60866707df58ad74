"""What a surface answers: a status, a body, and how values are written in it."""

from __future__ import annotations

from typing import Any

import msgspec

from ledgerkit.protocol import AccountId, CryptoHash

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"


class Reply(msgspec.Struct, frozen=True):
    """An answer, before what belongs to the connection is added."""

    status: int
    body: bytes
    content_type: str = JSON


def _write(value: Any) -> str:
    """Write a value of a kind that JSON does not have."""
    if isinstance(value, AccountId | CryptoHash):
        return str(value)
    raise TypeError(f"{type(value).__name__} can't be written as JSON")


_encoder = msgspec.json.Encoder(enc_hook=_write)


def encode(value: Any) -> bytes:
    """Write JSON, compact: account ids and hashes are texts."""
    return _encoder.encode(value)


def json_reply(value: Any, status: int = 200) -> Reply:
    """Answer with JSON."""
    return Reply(status, encode(value))


def text_reply(text: str, status: int) -> Reply:
    """Answer with plain text."""
    return Reply(status, text.encode(), TEXT)
