"""What callers send: params read as the node reads them, and refused in its words."""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from msgspec import Struct

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.rpc.errors import ParseError
from ledgerkit.protocol import AccountId, CryptoHash, PublicKey
from ledgerkit.units import U64_MAX

T = TypeVar("T")
Members = dict[str, Any]
Read = Callable[[Any], T]

FAILED = "Failed parsing args: "
U32_MAX = 2**32 - 1
FINALITIES = ("optimistic", "near-final", "final")
CHECKPOINTS = ("genesis", "earliest_available")
_REFERENCES = ("block_id", "finality", "sync_checkpoint")
_SHORTEST, _LONGEST = 2, 64
_BASE58 = frozenset("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz")
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


class Reference(Struct, frozen=True):
    """A block, as a caller names it."""

    kind: Literal["block_id", "finality", "sync_checkpoint"]
    value: int | CryptoHash | str

    @property
    def shown(self) -> Members:
        """The same, as it was sent."""
        return {self.kind: self.value}


LATEST = Reference("finality", "optimistic")


def refuse(message: str) -> ParseError:
    """Refuse params."""
    return ParseError(FAILED + message)


# Members ---------------------------------------------------------------------------------


def members(params: Any) -> Members:
    """Take params that are an object."""
    if isinstance(params, dict):
        return params
    raise _unexpected(params, "a map")


def member(held: Members, name: str, read: Read[T]) -> T:
    """Read a member that must be there."""
    if name not in held:
        raise refuse(f"missing field `{name}`")
    return read(held[name])


def optional(held: Members, name: str, read: Read[T]) -> T | None:
    """Read a member that may be absent or null."""
    value = held.get(name)
    return None if value is None else read(value)


def single(params: Any) -> list[Any] | None:
    """Give the params if they are a list of one."""
    return params if isinstance(params, list) and len(params) == 1 else None


def pair(params: Any) -> list[Any] | None:
    """Give the params if they are a list of two."""
    return params if isinstance(params, list) and len(params) == 2 else None  # noqa: PLR2004 - a pair


# Values ----------------------------------------------------------------------------------


def anything(value: Any) -> Any:
    """Take a value as it is."""
    return value


def text(value: Any) -> str:
    """Read a text."""
    if isinstance(value, str):
        return value
    raise _unexpected(value, "a string")


def boolean(value: Any) -> bool:
    """Read yes or no."""
    if isinstance(value, bool):
        return value
    raise _unexpected(value, "a boolean")


def u64(value: Any) -> int:
    """Read a number of 64 bits."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise _unexpected(value, "u64")
    if not 0 <= value <= U64_MAX:
        raise refuse(f"invalid value: integer `{value}`, expected u64")
    return value


def limit(value: Any) -> int:
    """Read how many are wanted."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise _unexpected(value, "a nonzero u32")
    if not 0 < value <= U32_MAX:
        raise refuse(f"invalid value: integer `{value}`, expected a nonzero u32")
    return value


def many(read: Read[T]) -> Read[list[T]]:
    """Read a list, by what reads one of it."""

    def read_all(value: Any) -> list[T]:
        if not isinstance(value, list):
            raise _unexpected(value, "a sequence")
        return [read(each) for each in value]

    return read_all


def one_of(names: tuple[str, ...]) -> Read[str]:
    """Read one of some words."""

    def read_word(value: Any) -> str:
        if text(value) in names:
            return str(value)
        known = ", ".join(f"`{name}`" for name in names)
        raise refuse(f"unknown variant `{value}`, expected one of {known}")

    return read_word


def account_id(value: Any) -> AccountId:
    """Read an account id."""
    written = text(value)
    try:
        return AccountId(written)
    except InvalidRequestError:
        wrong = account_rule(written)
    raise refuse(f'invalid value: "{written}", {wrong}')


def account_rule(written: str) -> str:
    """Say which rule of account ids a text breaks."""
    size = len(written.encode(errors="replace"))
    if size < _SHORTEST:
        return "the Account ID is too short"
    if size > _LONGEST:
        return "the Account ID is too long"
    separated = True
    for at, char in enumerate(written):
        if char in "-_.":
            if separated:
                return f"the Account ID has a redundant separator {char!r} at index {at}"
            separated = True
        elif not (char.isascii() and (char.islower() or char.isdigit())):
            return f"the Account ID contains an invalid character {char!r} at index {at}"
        else:
            separated = False
    return f"the Account ID has a redundant separator {written[-1]!r} at index {len(written) - 1}"


def crypto_hash(value: Any) -> CryptoHash:
    """Read a hash."""
    written = text(value)
    try:
        return CryptoHash(written)
    except InvalidRequestError:
        wrong = _base58_rule(written, "incorrect length for hash")
    raise refuse(wrong)


def public_key(value: Any) -> PublicKey:
    """Read a public key; without a curve it is ed25519."""
    written = text(value)
    try:
        return PublicKey.from_text(written)
    except InvalidRequestError:
        curve, _, data = written.rpartition(":")
    if curve not in ("", "ed25519", "secp256k1"):
        raise refuse(f"unknown key type '{curve}'")
    raise refuse(f"invalid key data: {_base58_rule(data, 'incorrect length for key')}")


def _base58_rule(written: str, otherwise: str) -> str:
    """Say what is wrong with base58."""
    for at, char in enumerate(written):
        if char not in _BASE58:
            return f"provided string contained invalid character {char!r} at byte {at}"
    return otherwise


def base64(value: Any) -> bytes:
    """Read bytes in base64."""
    written = text(value)
    try:
        return binascii.a2b_base64(written, strict_mode=True)
    except ValueError:  # also where it holds more than ASCII
        wrong = _base64_rule(written)
    raise refuse(wrong)


def _base64_rule(written: str) -> str:
    """Say what is wrong with base64."""
    for at, char in enumerate(written.rstrip("=")):
        if char not in _BASE64:
            return f"Invalid symbol {ord(char)}, offset {at}."
    return "Invalid padding"


def block_id(value: Any) -> int | CryptoHash:
    """Read a block's height or hash."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= U64_MAX:
        return value
    try:
        return crypto_hash(value)
    except ParseError:
        pass
    raise refuse("data did not match any variant of untagged enum BlockId")


# Blocks ----------------------------------------------------------------------------------


def reference(held: Members) -> Reference:
    """Find the block reference among other members."""
    for name in held:
        if name in _REFERENCES:
            return _reference(name, held[name])
    raise refuse("no variant of enum BlockReference found in flattened data")


def lone_reference(params: Any) -> Reference:
    """Read params that are a block reference and nothing else."""
    alone = single(params)
    if alone is not None:
        return Reference("block_id", block_id(alone[0]))
    held = members(params)
    if len(held) != 1:
        raise refuse("invalid value: map, expected map with a single key")
    [(name, value)] = held.items()
    return _reference(name, value)


def _reference(name: str, value: Any) -> Reference:
    """Read a block reference by its kind."""
    kind = one_of(_REFERENCES)(name)
    if kind == "block_id":
        return Reference("block_id", block_id(value))
    if kind == "finality":
        return Reference("finality", one_of(FINALITIES)(value))
    return Reference("sync_checkpoint", one_of(CHECKPOINTS)(value))


def _unexpected(value: Any, expected: str) -> ParseError:
    """Refuse a value of another type."""
    return refuse(f"invalid type: {_named(value)}, expected {expected}")


def _named(value: Any) -> str:
    """Name a value and its type as the node does."""
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
