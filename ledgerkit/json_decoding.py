"""
JSON decoders, the only ones of the package.

msgspec inspects a type when it first decodes it. If another thread uses the type meanwhile, the
process crashes, because both share an incomplete description. Here a type is inspected under a
lock, before it is used (docs/explanations/security.md). A rule of ruff refuses msgspec's
own functions elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import RLock
from typing import Any, Generic, TypeVar, overload

import msgspec
from msgspec import DecodeError

T = TypeVar("T")

TOO_DEEP = "nested too deeply"

_decoders: dict[Any, Decoder[Any]] = {}
_lock = RLock()  # the import of a module that builds decoders may be part of a build


class Decoder(Generic[T]):
    """A decoder of JSON to a type, for any thread; `dec_hook` is that of msgspec."""

    __slots__ = ("_decode",)

    def __init__(self, decoded_type: Any, dec_hook: Callable[..., Any] | None = None) -> None:
        with _lock:
            self._decode = msgspec.json.Decoder(decoded_type, dec_hook=dec_hook).decode

    def decode(self, data: bytes | msgspec.Raw | str) -> T:
        """
        Decode a document.

        It raises `msgspec.DecodeError` if the document is not JSON, not UTF-8, nested too deeply,
        or not of the type.
        """
        return self.decode_all((data,))[0]

    def decode_all(self, documents: Iterable[bytes | msgspec.Raw | str]) -> list[T]:
        """Decode several documents; raise `msgspec.DecodeError` if one is malformed."""
        try:
            return list(map(self._decode, documents))
        except UnicodeError as error:
            raise DecodeError(str(error)) from None
        except RecursionError:
            raise DecodeError(TOO_DEEP) from None


def decoder(decoded_type: Any, dec_hook: Callable[..., Any] | None = None) -> Decoder[Any]:
    """Return the decoder for a type, built once."""
    key = decoded_type if dec_hook is None else (decoded_type, dec_hook)
    cached = _decoders.get(key)
    if cached is None:
        with _lock:
            cached = _decoders.get(key)
            if cached is None:
                cached = _decoders[key] = Decoder(decoded_type, dec_hook)
    return cached


@overload
def decode(
    data: bytes | msgspec.Raw | str,
    decoded_type: type[T],
    dec_hook: Callable[..., Any] | None = None,
) -> T: ...
@overload
def decode(data: bytes | msgspec.Raw | str, decoded_type: Any = Any) -> Any: ...
def decode(
    data: bytes | msgspec.Raw | str,
    decoded_type: Any = Any,
    dec_hook: Callable[..., Any] | None = None,
) -> Any:
    """Decode a document to a type; raise `msgspec.DecodeError` if it is malformed."""
    return decoder(decoded_type, dec_hook).decode(data)


def convert(value: Any, decoded_type: type[T], *, strict: bool = True) -> T:
    """Convert decoded JSON to a type; raise `msgspec.DecodeError` if it does not fit."""
    decoder(decoded_type)  # inspects the type
    try:
        return msgspec.convert(value, decoded_type, strict=strict)
    except UnicodeError as error:
        raise DecodeError(str(error)) from None
    except RecursionError:
        raise DecodeError(TOO_DEEP) from None
