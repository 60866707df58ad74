"""HTTP requests and responses of the embedded ledger, and the JSON they carry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from ledgerkit.protocol import AccountId, CryptoHash

Header = tuple[str, str]

JSON_TYPE: Header = ("content-type", "application/json")
_JSON_TYPE = re.compile(r"application/(?:json|[\w.-]+\+json)\s*(?:;|$)", re.IGNORECASE)


class HttpRequest(Struct, frozen=True):
    """An HTTP request; its path is percent-encoded, its header names are in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        """Return a text without the headers and the query, which may contain an API key."""
        return f"<HttpRequest {self.method} {self.path}>"

    @property
    def has_json(self) -> bool:
        """True if the body is said to be JSON."""
        return _JSON_TYPE.match(self.headers.get("content-type", "")) is not None


class HttpResponse(Struct, frozen=True):
    """An HTTP response; its header names are in lower case."""

    status: int
    headers: tuple[Header, ...] = ()
    body: bytes = b""
    dropped: bool = False  # the connection is closed without a response
    truncated: int | None = None  # the bytes of the body to send before closing; None: all

    @property
    def sent_body(self) -> bytes:
        return self.body[: self.truncated]


@lru_cache(maxsize=4096)  # most responses name one of the last blocks
def _encode_other(value: Any) -> str:
    if isinstance(value, AccountId | CryptoHash):
        return str(value)
    raise TypeError(f"{type(value).__name__} can't be written as JSON")


encode_json = msgspec.json.Encoder(enc_hook=_encode_other).encode


def json_response(value: Any, status: int = 200, *headers: Header) -> HttpResponse:
    """Build a response with a JSON body, account ids and hashes as strings."""
    return HttpResponse(status, (JSON_TYPE, *headers), encode_json(value))


def text_response(text: str, status: int, *headers: Header, kind: str = "plain") -> HttpResponse:
    content_type = ("content-type", f"text/{kind}; charset=utf-8")
    return HttpResponse(status, (content_type, *headers), text.encode())
