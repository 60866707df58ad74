"""What a caller may pass: each argument is checked here before anything is sent."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, SupportsIndex
from urllib.parse import SplitResult, urlsplit

from ledgerkit.errors import InvalidRequestError

FINALITIES = ("optimistic", "near-final", "final")
CHECKPOINTS = ("genesis", "earliest_available")
WAIT_LEVELS = ("NONE", "INCLUDED", "EXECUTED_OPTIMISTIC", "INCLUDED_FINAL", "EXECUTED", "FINAL")

ACCOUNT = re.compile(r"(([a-z\d]+[-_])*[a-z\d]+\.)*([a-z\d]+[-_])*[a-z\d]+", re.ASCII)
ACCOUNT_LENGTHS = range(2, 65)
ACCOUNT_RULE = "2 to 64 characters: a-z, 0-9, and single - _ . between them"
_BELOW_MICROSECONDS = re.compile(r"[.,]\d{6}(\d{1,3})", re.ASCII)
_BASE58 = re.compile(r"[1-9A-HJ-NP-Za-km-z]+")
_HASH_RULE = "32 bytes in base58, 43 or 44 characters"
_KEY_BYTES = {"ed25519": 32, "secp256k1": 64, "ml-dsa-65": 1952}
# Where a secret key of that curve is as long in base58, also one with a few characters lost.
_SECRET_LENGTHS = {"ed25519": range(60, 101), "secp256k1": range(30, 61)}
_KEY_RULE = "ed25519:<base58 of 32 bytes> or secp256k1:<base58 of 64 bytes>"
_LONGEST_METHOD = 256
_HASH_BYTES = 32
_U64_MAX = 2**64 - 1
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class BlockReference:
    """A point in the chain's history: one block reference, or a time to be found."""

    params: dict[str, str | int]
    timestamp_ns: int | None = None

    @property
    def pinned(self) -> bool:
        """Whether it names one block by its hash, so that the answer can't change."""
        return isinstance(self.params.get("block_id"), str)


def account_id(value: object, field: str = "account_id") -> str:
    """Check an account id by the chain's rule."""
    if isinstance(value, str) and len(value) in ACCOUNT_LENGTHS and ACCOUNT.fullmatch(value):
        return str(value)  # encoders refuse subclasses, such as protocol's AccountId
    raise InvalidRequestError.refuse(field, value, ACCOUNT_RULE)


def _text(value: object) -> object:
    """Take the text of a hash or key that `ledgerkit.protocol` has checked."""
    return str(value) if type(value).__module__ == "ledgerkit.protocol.types" else value


def account_ids(value: object, field: str = "account_id") -> list[str]:
    """Check one account id or many; repeats are dropped, the order is kept."""
    if isinstance(value, str):
        return [account_id(value, field)]
    if not hasattr(value, "__iter__") or isinstance(value, bytes | dict) or _is_table(value):
        raise InvalidRequestError.refuse(
            field, value, "an account id, or a list, Series or Index of them"
        )
    many: Iterable[object] = value
    return list(dict.fromkeys(account_id(one, field) for one in many))


def _is_table(value: object) -> bool:
    """Whether it is a DataFrame, which iterates over its column names."""
    return hasattr(value, "columns")


def crypto_hash(value: object, field: str = "tx_hash") -> str:
    """Check a 32-byte hash in base58."""
    value = _text(value)
    if isinstance(value, str) and decode_base58(value, _HASH_BYTES):
        return value
    raise InvalidRequestError.refuse(field, value, _HASH_RULE)


def public_key(value: object, field: str = "public_key") -> str:
    """Check a public key; one without a curve reads as ed25519."""
    value = _text(value)
    curve, text = split_key(value)
    if len(text) in _SECRET_LENGTHS.get(curve, ()):
        raise InvalidRequestError(
            f"{field} looks like a secret key, which is never sent and not shown here",
            field=field,
            value=None,
            rule=_KEY_RULE,
        )
    if curve not in _KEY_BYTES or not decode_base58(text, _KEY_BYTES[curve]):
        raise InvalidRequestError.refuse(field, value, _KEY_RULE)
    return f"{curve}:{text}"


def split_key(written: object) -> tuple[str, str]:
    """Split `<curve>:<base58>`; a bare key is ed25519."""
    curve, _, rest = written.rpartition(":") if isinstance(written, str) else ("?", "", "")
    return curve or "ed25519", rest


def decode_base58(written: str, size: int) -> bytes | None:
    """Read the base58 of so many bytes; None where it is not."""
    # The time to read it grows with the square of its length: a long one is not tried.
    if not size <= len(written) <= size * 1.38 + 1 or not _BASE58.fullmatch(written):
        return None
    import base58

    data = base58.b58decode(written)
    return data if len(data) == size else None


def method_name(value: object, field: str = "method") -> str:
    """Check the name of a contract's method."""
    if not isinstance(value, str) or not 1 <= len(value.encode()) <= _LONGEST_METHOD:
        raise InvalidRequestError.refuse(field, value, "a text of 1 to 256 bytes")
    return value


def raw_bytes(value: object, field: str) -> bytes:
    """Check bytes."""
    if not isinstance(value, bytes):
        raise InvalidRequestError.refuse(field, value, "bytes")
    return value


def block_height(value: object, field: str = "block_height") -> int:
    """Check a block height."""
    return integer(value, field, most=_U64_MAX, unit="a block height")


def integer(value: object, field: str, *, most: int, least: int = 0, unit: str = "a number") -> int:
    """Check an integer within bounds."""
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        with suppress(TypeError):  # numpy's bool and arrays only look like integers
            number = operator.index(value)
            if least <= number <= most:
                return number
    raise InvalidRequestError.refuse(field, value, f"{unit}, an integer from {least} to {most}")


def one_of(value: object, field: str, allowed: tuple[str, ...]) -> str:
    """Check a word against the words there are."""
    if value not in allowed:
        raise InvalidRequestError.refuse(field, value, f"one of {', '.join(allowed)}")
    return str(value)


def subset_of(value: object, field: str, allowed: tuple[str, ...]) -> list[str]:
    """Check one word or several against the words there are; gives them in that order."""
    words = [value] if isinstance(value, str) else value
    if isinstance(words, Iterable) and (listed := list(words)) and set(listed) <= set(allowed):
        return [word for word in allowed if word in listed]
    raise InvalidRequestError.refuse(field, value, f"some of {', '.join(allowed)}")


def block_reference(value: object, field: str = "at") -> BlockReference:
    """
    Read a point in the chain's history.

    Parameters
    ----------
    value
        A height, a block hash, a finality name, ``genesis`` or
        ``earliest_available``, or a time (datetime, Timestamp, ISO text; without
        a zone it is UTC). None is ``final``.
    field
        The argument's name, for the error.

    Returns
    -------
    at
        A block reference, or a time still to be found.

    Raises
    ------
    InvalidRequestError
        If it is none of these.
    """
    if value is None:
        return BlockReference({"finality": "final"})
    if isinstance(value, str):
        return _at_text(value, field)
    if isinstance(value, SupportsIndex):
        return BlockReference({"block_id": block_height(value, field)})
    # The missing times of pandas and numpy are unlike themselves.
    if isinstance(value, datetime) and value == value:  # noqa: PLR0124 - as said above
        return BlockReference({}, _nanoseconds(value))
    if type(value).__name__ == "datetime64":  # numpy's, without importing numpy
        exact = value.astype("M8[ns]")  # type: ignore[attr-defined]  # by its name
        if exact.astype(value.dtype) == value:  # type: ignore[attr-defined]  # as above
            return BlockReference({}, int(exact.astype("int64")))
    raise InvalidRequestError.refuse(field, value, _AT_RULE)


_AT_RULE = (
    "a height, a block hash, optimistic, near-final, final, genesis, earliest_available, or a time"
)


def _at_text(value: str, field: str) -> BlockReference:
    """Read a finality, checkpoint, hash or ISO time."""
    if value in FINALITIES:
        return BlockReference({"finality": value})
    if value in CHECKPOINTS:
        return BlockReference({"sync_checkpoint": value})
    if decode_base58(value, _HASH_BYTES):
        return BlockReference({"block_id": value})
    timestamp_ns = None if value.isdigit() else _iso_nanoseconds(value)  # a height is no text
    if timestamp_ns is None:
        raise InvalidRequestError.refuse(field, value, _AT_RULE)
    return BlockReference({}, timestamp_ns)


def _iso_nanoseconds(text: str) -> int | None:
    """Read an ISO time with all its digits; None if it is none."""
    try:
        cut = _nanoseconds(datetime.fromisoformat(text))  # to microseconds
    except ValueError:
        return None
    rest = _BELOW_MICROSECONDS.search(text)
    return cut + (int(rest[1].ljust(3, "0")) if rest else 0)


def _nanoseconds(time: datetime) -> int:
    """Count nanoseconds since 1970, exactly."""
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    gap = time - datetime(1970, 1, 1, tzinfo=UTC)
    whole_ns = (gap.days * 86_400 + gap.seconds) * _NS + gap.microseconds * 1000
    return whole_ns + int(getattr(time, "nanosecond", 0))  # pandas' Timestamp has them


def url(value: object, field: str) -> str:
    """Check the address of a service; it may hold no credentials, and none is shown."""
    if not isinstance(value, str):
        raise InvalidRequestError.refuse(field, value, _URL_RULE)
    parts = _split(value)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidRequestError.refuse(field, _host(value), _URL_RULE)
    if parts.username or parts.password or parts.query or parts.fragment:
        rule = "no user, query or fragment in an address; pass a key as api_key="
        raise InvalidRequestError.refuse(field, _host(value), rule)
    return parts.geturl().rstrip("/")  # the scheme in lower case


_URL_RULE = "an address such as https://rpc.example.com"
_HOST = re.compile(r"([A-Za-z][A-Za-z\d+.-]*://)?(?:[^/?#]*@)?(\[[^]/?#]*\]?|[^/?#:]*)")


def _split(text: str) -> SplitResult | None:
    """Take an address apart; None where its host or port is malformed."""
    try:
        parts = urlsplit(text)
        _ = parts.port  # read, it complains
    except ValueError:
        return None
    return parts if text.isprintable() and " " not in text else None


def _host(text: str) -> str:
    """Show of an address what can be no key: scheme and host."""
    found = _HOST.match(text)
    return "".join(part or "" for part in found.groups()) if found else ""


def json_args(value: Any, field: str = "args") -> bytes:
    """Encode a view call's arguments: JSON from a dict or list, bytes as they are."""
    if isinstance(value, bytes):
        return value
    import msgspec

    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRequestError.refuse(field, value, f"JSON or bytes ({error})") from None
