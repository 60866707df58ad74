"""The parsing of JSON-RPC params, with the node's rules and error messages."""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.rpc.errors import ParseError
from ledgerkit.protocol import AccountId, CryptoHash, PublicKey
from ledgerkit.units import U64_MAX
from ledgerkit.validation import is_account_id

T = TypeVar("T")
Members = dict[str, Any]
Read = Callable[[Any], T]

FAILED = "Failed parsing args: "
U32_MAX = 2**32 - 1
_MIN_ACCOUNT_ID, _MAX_ACCOUNT_ID = 2, 64  # bytes
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


class Reference(Struct, frozen=True):
    """A block reference."""

    kind: str
    value: int | CryptoHash | str


LATEST = Reference("finality", "optimistic")


def error(message: str) -> ParseError:
    return ParseError(FAILED + message)


# Members ---------------------------------------------------------------------------------


def members(params: Any) -> Members:
    if isinstance(params, dict):
        return params
    raise _unexpected(params, "a map")


def variant(value: Any) -> tuple[str, Any]:
    if len(members(value)) != 1:
        raise error("invalid value: map, expected map with a single key")
    [(name, contents)] = value.items()
    return name, contents


def member(params: Members, name: str, read: Read[T]) -> T:
    if name not in params:
        raise error(f"missing field `{name}`")
    return read(params[name])


def optional(params: Members, name: str, read: Read[T]) -> T | None:
    """Read a member that may be absent or null."""
    value = params.get(name)
    return None if value is None else read(value)


def single(params: Any) -> list[Any] | None:
    """Return params if they are a list of one item, or None."""
    return params if isinstance(params, list) and len(params) == 1 else None


def pair(params: Any) -> list[Any] | None:
    """Return params if they are a list of two items, or None."""
    return params if isinstance(params, list) and len(params) == 2 else None  # noqa: PLR2004 - a pair


# Values ----------------------------------------------------------------------------------


def anything(value: Any) -> Any:
    return value


def text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise _unexpected(value, "a string")


def boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise _unexpected(value, "a boolean")


def u64(value: Any) -> int:
    return _integer(value, range(U64_MAX + 1), "u64")


def limit(value: Any) -> int:
    return _integer(value, range(1, U32_MAX + 1), "a nonzero u32")


def _integer(value: Any, bounds: range, expected: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _unexpected(value, expected)
    if value not in bounds:
        raise error(f"invalid value: integer `{value}`, expected {expected}")
    return value


def many(read: Read[T]) -> Read[list[T]]:
    """Build the reader of a list from the reader of its items."""

    def read_all(value: Any) -> list[T]:
        if not isinstance(value, list):
            raise _unexpected(value, "a sequence")
        return [read(item) for item in value]

    return read_all


def one_of(names: tuple[str, ...]) -> Read[str]:
    """Build the reader of a string that must be one of `names`."""

    def read_name(value: Any) -> str:
        if text(value) in names:
            return str(value)
        variants = ", ".join(f"`{name}`" for name in names)
        raise error(f"unknown variant `{value}`, expected one of {variants}")

    return read_name


def account_id(value: Any) -> AccountId:
    name = text(value)
    if is_account_id(name):
        return AccountId(name)
    raise error(f'invalid value: "{name}", {account_rule(name)}')


def account_rule(name: str) -> str:
    """Return the error of a string that is not an account id."""
    size = len(name.encode(errors="replace"))
    if size < _MIN_ACCOUNT_ID:
        return "the Account ID is too short"
    if size > _MAX_ACCOUNT_ID:
        return "the Account ID is too long"
    after_separator = True
    for index, char in enumerate(name):
        if char in "-_.":
            if after_separator:
                return f"the Account ID has a redundant separator {char!r} at index {index}"
            after_separator = True
        elif not (char.isascii() and (char.islower() or char.isdigit())):
            return f"the Account ID contains an invalid character {char!r} at index {index}"
        else:
            after_separator = False
    return f"the Account ID has a redundant separator {name[-1]!r} at index {len(name) - 1}"


def crypto_hash(value: Any) -> CryptoHash:
    data = text(value)
    try:
        return CryptoHash(data)
    except InvalidRequestError:
        reason = base58_rule(data) or "incorrect length for hash"
    raise error(reason)


def public_key(value: Any) -> PublicKey:
    """Read a public key; without a curve's prefix it is ed25519."""
    key = stored_key(value)
    if not key.packed:
        raise error(f"unknown key type '{key.curve}'")
    return key


def stored_key(value: Any) -> PublicKey:
    """Read a public key, or the hash by which an ML-DSA-65 key is listed."""
    key = text(value)
    try:
        return PublicKey.from_text(key)
    except InvalidRequestError:
        curve, _, data = key.rpartition(":")
    if curve not in ("", "ed25519", "secp256k1", "ml-dsa-65"):
        raise error(f"unknown key type '{curve}'")
    raise error(f"invalid key data: {base58_rule(data) or 'incorrect length for key'}")


def base58_rule(data: str) -> str | None:
    """Return the error of a character that base58 does not have, or None."""
    for index, char in enumerate(data):
        if char not in _BASE58:
            return f"provided string contained invalid character {char!r} at byte {index}"
    return None


def base64(value: Any) -> bytes:
    data = text(value)
    try:
        return binascii.a2b_base64(data, strict_mode=True)
    except ValueError:  # also for characters outside ASCII
        reason = _base64_rule(data)
    raise error(reason)


def _base64_rule(data: str) -> str:
    for index, char in enumerate(data.rstrip("=")):
        if char not in _BASE64:
            return f"Invalid symbol {ord(char)}, offset {index}."
    return "Invalid padding"


def block_id(value: Any) -> int | CryptoHash:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= U64_MAX:
        return value
    try:
        return crypto_hash(value)
    except ParseError:
        pass
    raise error("data did not match any variant of untagged enum BlockId")


# Blocks ----------------------------------------------------------------------------------


def reference(params: Members) -> Reference:
    """Read the block reference among other members."""
    for name in params:
        if name in _REFERENCES:
            return _reference(name, params[name])
    raise error("no variant of enum BlockReference found in flattened data")


def lone_reference(params: Any) -> Reference:
    items = single(params)
    if items is not None:
        return Reference("block_id", block_id(items[0]))
    return _reference(*variant(params))


def _reference(name: str, value: Any) -> Reference:
    kind = one_of(tuple(_REFERENCES))(name)
    return Reference(kind, _REFERENCES[kind](value))


_REFERENCES: dict[str, Read[int | CryptoHash | str]] = {
    "block_id": block_id,
    "finality": one_of(("optimistic", "near-final", "final")),
    "sync_checkpoint": one_of(("genesis", "earliest_available")),
}


def _unexpected(value: Any, expected: str) -> ParseError:
    return error(f"invalid type: {_describe(value)}, expected {expected}")


def _describe(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return f"boolean `{str(value).lower()}`"
        case int():
            return f"integer `{value}`"
        case float():
            return f"floating point `{value}`"
        case str():
            return f'string "{value}"'
        case _:
            return "sequence" if isinstance(value, list) else "map"
