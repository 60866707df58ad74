"""The members of a response that the model of the response does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import inspect

from ledgerkit import json_decoding
from ledgerkit.errors import cut

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_NAME = 64


def unknown_members(document: Any, model: Any) -> list[str]:
    """
    List the members of a decoded document that its model neither has nor lists as `unread`.

    Parameters
    ----------
    document
        The decoded JSON.
    model
        The type that it is decoded to, such as a `msgspec.Struct`. Members that the model
        types as `Any` are not looked into.

    Returns
    -------
    paths
        Each path once, such as ``sync_info.new`` or ``chunks[].new``.
    """
    return list(dict.fromkeys(_walk(document, inspect.type_info(model), "")))


def _walk(value: Any, kind: inspect.Type, path: str) -> Iterator[str]:
    """Yield the paths of the unknown members below a value."""
    if isinstance(kind, inspect.UnionType):
        for member in kind.types:
            yield from _walk(value, member, path)
    elif isinstance(kind, inspect.StructType) and isinstance(value, dict):
        types = {field.encode_name: field.type for field in kind.fields}
        types |= dict.fromkeys(getattr(kind.cls, "unread", ()), inspect.AnyType())
        for name, member in value.items():
            member_path = f"{path}.{name}" if path else name
            if name in types:
                yield from _walk(member, types[name], member_path)
            else:
                yield f"{path}.{cut(name, _MAX_NAME)}".lstrip(".")
    elif isinstance(kind, inspect.ListType) and isinstance(value, list):
        for item in value:
            yield from _walk(item, kind.item_type, f"{path}[]")
    elif isinstance(kind, inspect.DictType) and isinstance(value, dict):
        for item in value.values():
            yield from _walk(item, kind.value_type, f"{path}.*")


def decode(body: bytes) -> Any:
    """Decode a response for `unknown_members`: of a JSON-RPC one, its result."""
    document = json_decoding.decode(body)
    is_rpc = isinstance(document, dict) and "jsonrpc" in document
    return document.get("result") if is_rpc else document
