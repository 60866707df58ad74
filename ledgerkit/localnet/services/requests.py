"""Request bodies of the services, and the refusals of their web framework."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from ledgerkit import json_decoding
from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.execution_errors import LocalnetError
from ledgerkit.localnet.http_messages import HttpResponse, text_response
from ledgerkit.protocol import AccountId, CryptoHash

T = TypeVar("T")

Unsigned = Annotated[int, Meta(ge=0)]


class RefusedError(LocalnetError):
    """A request that a service refuses, with the response to it."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__(response.status)
        self.response = response


def crypto_hash(text: str) -> CryptoHash:
    """Parse a hash in a body; raise RefusedError if it is malformed."""
    try:
        return CryptoHash(text)
    except InvalidRequestError as error:
        raise RefusedError(refusal(str(error))) from None


def decode_body(body: bytes, body_type: type[T]) -> T:
    """Decode the body of a request; raise RefusedError as actix-web's `Json` does."""
    try:
        decoded: T = json_decoding.decode(body, body_type, _parse)
    except (msgspec.DecodeError, InvalidRequestError) as error:
        raise RefusedError(refusal(str(error))) from None
    return decoded


def page_length(limit: int | None, most: int, default: int | None = None) -> int:
    """Return the length of a page, from 1 to the most; without a limit the default."""
    if limit is None:
        limit = most if default is None else default
    return max(1, min(limit, most))


def refusal(reason: str) -> HttpResponse:
    return text_response(f"Json deserialize error: {reason}", 400)


def _parse(expected: type, value: object) -> object:
    if not isinstance(value, str):
        raise TypeError(f"expected a string for {expected.__name__}")
    if issubclass(expected, AccountId):
        return AccountId(value)
    if issubclass(expected, CryptoHash):
        return CryptoHash(value)
    raise NotImplementedError
