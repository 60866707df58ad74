"""Validation of arguments, before anything is sent."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from os import PathLike
from pathlib import Path
from typing import Any, SupportsIndex, TypeGuard
from urllib.parse import SplitResult, parse_qsl, urlsplit

from ledgerkit import units
from ledgerkit.errors import DecodeError, InvalidRequestError, cut, quote
from ledgerkit.redaction import hide, is_surely_secret

FINALITIES = ("optimistic", "near-final", "final")
CHECKPOINTS = ("genesis", "earliest_available")
WHOLE_BLOCK_SOURCES = ("documents", "indexer_rpc")
BLOCK_SOURCES = ("rpc", *WHOLE_BLOCK_SOURCES)
WAIT_LEVELS = ("NONE", "INCLUDED", "EXECUTED_OPTIMISTIC", "INCLUDED_FINAL", "EXECUTED", "FINAL")

ACCOUNT = re.compile(r"(([a-z\d]+[-_])*[a-z\d]+\.)*([a-z\d]+[-_])*[a-z\d]+", re.ASCII)
ACCOUNT_LENGTHS = range(2, 65)
ACCOUNT_RULE = "2 to 64 characters: a-z, 0-9, and single - _ . between them"
_BELOW_MICROSECONDS = re.compile(r"[.,]\d{6}(\d{1,3})", re.ASCII)
_PERIOD = re.compile(r"(\d{4})-(0[1-9]|1[0-2])|(last|this) (month|year)", re.ASCII)
_BASE58 = re.compile(r"[1-9A-HJ-NP-Za-km-z]+")
_HASH_RULE = "32 bytes in base58, 43 or 44 characters"
KEY_BYTES = {"ed25519": 32, "secp256k1": 64, "ml-dsa-65": 1952}
KEY_RULE = (
    "ed25519:<base58 of 32 bytes>, secp256k1:<base58 of 64 bytes> or "
    "ml-dsa-65:<base58 of 1952 bytes>"
)
_MAX_METHOD_BYTES = 256
HASH_BYTES = 32
_MISSING = ("nan", "<NA>", "NaT", "None")  # compared as texts, so that pandas is not imported
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class BlockReference:
    """A block reference as RPC params, or a time whose block has to be located."""

    params: dict[str, str | int]
    timestamp_ns: int | None = None
    written: object = field(default=None, compare=False, repr=False)  # a time, as it was passed

    @property
    def height(self) -> int | None:
        block_id = self.params.get("block_id")
        return block_id if isinstance(block_id, int) else None

    @property
    def as_passed(self) -> object:
        """The height, hash, finality, checkpoint or time, as it was passed."""
        return next(iter(self.params.values()), self.written)

    @property
    def pinned(self) -> bool:
        """True for a block hash: responses at a block hash never change."""
        return isinstance(self.params.get("block_id"), str)


class Checked:
    """The base of hashes and keys that `ledgerkit.protocol` has already validated."""

    __slots__ = ()


def _text(value: object) -> object:
    if isinstance(value, str):
        return plain_str(value)
    return str(value) if isinstance(value, Checked) else value


def plain_str(value: str) -> str:
    """Convert a subclass of str to str, since msgspec refuses subclasses."""
    return str.__str__(value)  # `str(value)` would be the name of an enumeration's member


def account_id(value: object, field: str = "account_id") -> str:
    if is_account_id(value):
        return plain_str(value)
    raise InvalidRequestError.refuse(field, value, ACCOUNT_RULE, choices=similar_account_ids(value))


def similar_account_ids(value: object) -> list[str]:
    """Return the account id that a malformed one may mean, if there is one."""
    lower = value.strip().lower() if isinstance(value, str) else ""
    return [lower] if is_account_id(lower) else []


def is_account_id(value: object) -> TypeGuard[str]:
    if not isinstance(value, str) or len(value) not in ACCOUNT_LENGTHS:
        return False
    return ACCOUNT.fullmatch(value) is not None


def account_ids(value: object, field: str = "account_ids") -> list[str]:
    """Check one or many account ids; return them in order, without repeats."""
    if isinstance(value, str):
        return [account_id(value, field)]
    expected = "an account id, or a list, Series or Index of account ids"
    return _listed_ids(value, field, expected)


def account_id_list(value: object, field: str) -> list[str]:
    """Check a list of account ids; a single id is refused."""
    expected = "a list, Series or Index of account ids"
    if not isinstance(value, str):
        return _listed_ids(value, field, expected)
    error = InvalidRequestError.refuse(field, value, expected)
    if error.value is not None:  # not a secret
        error.remedy = f"Pass a list: {field}=[{quote(value)}]."
    raise error


def _listed_ids(value: object, field: str, expected: str) -> list[str]:
    if hasattr(value, "columns"):  # a DataFrame, which would iterate over its column names
        sentence = f"{field} is a whole DataFrame: expected {expected}"
        remedy = 'Pass one of its columns, such as df["account_id"].'
        raise InvalidRequestError(sentence, field=field, rule=expected, remedy=remedy)
    if not hasattr(value, "__iter__") or isinstance(value, bytes | dict):
        raise InvalidRequestError.refuse(field, value, expected)
    ids_by_row = (_listed_id(item, field, row) for row, item in enumerate(elements(value)))
    return list(dict.fromkeys(ids_by_row))


def elements(values: Any) -> Any:
    """Return the Python values of a pyarrow array; other values are returned unchanged."""
    return values.to_pylist() if hasattr(values, "to_pylist") else values


def _listed_id(value: object, field: str, row: int) -> str:
    if str(value) not in _MISSING or isinstance(value, str):
        return account_id(value, field)
    sentence = f"{field} is missing ({value}) in row {row}, counted from 0: expected {ACCOUNT_RULE}"
    remedy = "Drop missing ids first, for example with dropna()."
    raise InvalidRequestError(sentence, field=field, rule=ACCOUNT_RULE, remedy=remedy)


def crypto_hash(value: object, field: str = "tx_hash") -> str:
    """Check a 32-byte hash in base58."""
    value = _text(value)
    if isinstance(value, str) and decode_base58(value, HASH_BYTES):
        return value
    raise InvalidRequestError.refuse(field, value, _HASH_RULE)


def public_key(value: object, field: str = "public_key") -> str:
    """Check a public key; a key without a curve is ed25519."""
    value = _text(value)
    curve, encoded = split_key(value)
    if curve not in KEY_BYTES or not decode_base58(encoded, KEY_BYTES[curve]):
        raise InvalidRequestError.refuse(field, value, KEY_RULE)
    return f"{curve}:{encoded}"


def split_key(text: object) -> tuple[str, str]:
    """Split `<curve>:<base58>`; a key without a curve is ed25519."""
    curve, _, encoded = text.rpartition(":") if isinstance(text, str) else ("?", "", "")
    return curve or "ed25519", encoded


def decode_base58(text: str, size: int) -> bytes | None:
    """Decode base58 of exactly `size` bytes; None if it is not."""
    # Decoding time grows with the square of the length, so long texts are refused first.
    if not size <= len(text) <= size * 1.38 + 1 or not _BASE58.fullmatch(text):
        return None
    import base58

    data = base58.b58decode(text)
    return data if len(data) == size else None


def method_name(value: object, field: str = "method_name") -> str:
    if isinstance(value, str) and 1 <= len(value) <= _MAX_METHOD_BYTES:
        # Hosts accept any text, so a secret would be sent to them.
        is_secret = is_surely_secret(value) or hide(value) != value
        with suppress(UnicodeEncodeError):  # a lone surrogate
            if len(value.encode()) <= _MAX_METHOD_BYTES and not is_secret:
                return plain_str(value)
    raise InvalidRequestError.refuse(field, value, "a str of 1 to 256 bytes")


def no_secret(value: object, field: str) -> None:
    """Raise if a path or an address surely has a secret key or phrase, which errors would show."""
    if isinstance(value, str | PathLike) and is_surely_secret(str(value)):
        raise InvalidRequestError.refuse(field, value, "a path without a secret")


def request_path(value: object) -> str:
    """Check the path of a request to a service, and its query if it has one."""
    if not isinstance(value, str) or not value.startswith("/") or "#" in value:
        rule = "a path that begins with /, without a fragment"
        if isinstance(value, str):
            value = value.partition("?")[0]  # the query may hold a key
        raise InvalidRequestError.refuse("path", value, rule)
    no_secret(value, "path")
    path, _, query = value.partition("?")
    if "apikey" in (name.lower() for name, _ in parse_qsl(query, keep_blank_values=True)):
        rule = "a path without the key: pass api_key= to connect()"
        raise InvalidRequestError.refuse("path", path, rule)
    return plain_str(value)


def plain_text(value: object, field: str) -> str:
    """Check a str that UTF-8 can encode."""
    if isinstance(value, str):
        with suppress(UnicodeEncodeError):  # a lone surrogate
            value.encode()
            return plain_str(value)
    raise InvalidRequestError.refuse(field, value, "a str that UTF-8 can encode")


def raw_bytes(value: object, field: str) -> bytes:
    """Check bytes; a bytearray or memoryview, which may still change, is copied."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise InvalidRequestError.refuse(field, value, "bytes")


def file_bytes(value: object, field: str) -> bytes:
    if not isinstance(value, str | PathLike):
        raise InvalidRequestError.refuse(field, value, "the path of a file")
    no_secret(value, field)
    try:
        return Path(value).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        rule = f"the path of a readable file ({getattr(error, 'strerror', error)})"
    raise InvalidRequestError.refuse(field, str(value), rule)


def file_path(value: object, field: str) -> Path:
    with suppress(UnicodeEncodeError):  # a lone surrogate, which no path has
        if isinstance(value, str | PathLike) and b"\0" not in os.fsencode(value):
            no_secret(value, field)
            return Path(os.fsdecode(value))
    raise InvalidRequestError.refuse(field, value, "the path of a file")


def block_height(value: object, field: str = "block_height") -> int:
    return integer(value, field, most=units.U64_MAX, noun="a block height")


def integer(value: object, field: str, *, most: int, least: int = 0, noun: str = "a number") -> int:
    number = units.as_integer(value)
    if number is None or not least <= number <= most:
        expected = f"{noun}, an integer from {least} to {most}"
        raise InvalidRequestError.refuse(field, value, expected)
    return number


def flag(value: object, field: str) -> bool:
    if type(value).__name__ not in ("bool", "bool_"):  # Python's, and numpy's in each version
        raise InvalidRequestError.refuse(field, value, "True or False")
    return bool(value)


def one_of(value: object, field: str, allowed: tuple[str, ...]) -> str:
    """Check a word against the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        expected = f"one of {', '.join(allowed) or 'none'}"
        raise InvalidRequestError.refuse(field, value, expected, choices=allowed)
    return plain_str(value)


def subset_of(value: object, field: str, allowed: tuple[str, ...]) -> list[str]:
    """Check one or several words against the allowed words; return them in that order."""
    names = [value] if isinstance(value, str) else value
    chosen = list(names) if isinstance(names, Iterable) else []
    if chosen and all(isinstance(name, str) and name in allowed for name in chosen):
        return [name for name in allowed if name in chosen]
    misspelt = (name for name in chosen if isinstance(name, str) and name not in allowed)
    unknown = next(misspelt, value)
    expected = f"one or more of {', '.join(allowed)}"
    raise InvalidRequestError.refuse(field, unknown, expected, choices=allowed)


def block_reference(value: object, field: str = "at") -> BlockReference:
    """
    Parse a height, hash, finality, checkpoint or time; None is final.

    A time without a zone is UTC. A date is its midnight, and a period of months its first midnight.
    """
    if isinstance(value, BlockReference):
        return value
    if value is None:
        return BlockReference({"finality": "final"})
    if isinstance(value, str):
        return _text_reference(plain_str(value), field)
    if isinstance(value, SupportsIndex):
        return BlockReference({"block_id": block_height(value, field)})
    # NaT of pandas and numpy is not equal to itself.
    if isinstance(value, date) and value == value:  # noqa: PLR0124 - excludes NaT
        return BlockReference({}, _nanoseconds(value), value)
    if type(value).__name__ == "datetime64":  # numpy's, without importing numpy
        with suppress(OverflowError):  # from numpy 2.5 on; before, it wraps
            exact = value.astype("M8[ns]")  # type: ignore[attr-defined]  # known by its name
            if exact.astype(value.dtype) == value:  # type: ignore[attr-defined]  # as above
                return BlockReference({}, int(exact.astype("int64")), value)
    raise _refused_reference(value, field)


def period_ends(start: object, stop: object) -> tuple[object, object]:
    """Return the ends; a period such as "2026-07" without a `stop` becomes both."""
    return (_months(start) if stop is None else None) or (start, stop)


def _months(period: object) -> tuple[str, str] | None:
    """Return the first day of a period of months and the day after it; None for other values."""
    match = _PERIOD.fullmatch(period) if isinstance(period, str) else None
    if match is None:
        return None
    year, month, which, unit = match.groups()
    today = datetime.now(UTC)
    length = 12 if unit == "year" else 1
    first = (12 * today.year + today.month - 1) // length - (which == "last")
    if year:
        first = 12 * int(year) + int(month) - 1
    return _first_day(first * length), _first_day((first + 1) * length)


def _first_day(month: int) -> str:
    """Return the date of the first day of a month, which is counted from the year 0."""
    return f"{month // 12:04}-{month % 12 + 1:02}-01"


def received_hash(text: str) -> BlockReference:
    """Return the reference of a block whose hash a host sent; any other text is a DecodeError."""
    # `block_reference` would read "final" as a finality and "2026-01-01" as a time.
    if decode_base58(text, HASH_BYTES):
        return BlockReference({"block_id": text})
    msg = f"the response has the block hash {cut(text)!r}, which is not {_HASH_RULE}"
    raise DecodeError(msg, path="$..block_hash")


_REFERENCE_RULE = (
    "a height, a block hash, optimistic, near-final, final, genesis, earliest_available, or a time"
)


def _text_reference(value: str, field: str) -> BlockReference:
    if value in FINALITIES:
        return BlockReference({"finality": value})
    if value in CHECKPOINTS:
        return BlockReference({"sync_checkpoint": value})
    if decode_base58(value, HASH_BYTES):
        return BlockReference({"block_id": value})
    months = _months(value)
    # fromisoformat would read digits alone as a date; a height must be an int.
    timestamp_ns = None if value.isdigit() else _iso_nanoseconds(months[0] if months else value)
    if timestamp_ns is None:
        raise _refused_reference(value, field)
    return BlockReference({}, timestamp_ns, value)


def height_or_text(text: str) -> int | str:
    """Convert digits to a height; leave any other text."""
    is_height = text.isascii() and text.isdecimal() and len(text) <= len(str(units.U64_MAX))
    return int(text) if is_height else text


def _refused_reference(value: object, field: str) -> InvalidRequestError:
    """Build the error for an invalid reference; digits in a text or a float may mean a height."""
    names = (*FINALITIES, *CHECKPOINTS)
    error = InvalidRequestError.refuse(field, value, _REFERENCE_RULE, choices=names)
    digits = str(value).removesuffix(".0") if isinstance(value, str | float) else ""
    if isinstance(height_or_text(digits), int):
        error.remedy = f"Pass a height as an integer: {field}={digits}."
    return error


def _iso_nanoseconds(text: str) -> int | None:
    try:
        to_microseconds = _nanoseconds(datetime.fromisoformat(text))  # it drops further decimals
    except ValueError:
        return None
    decimals = _BELOW_MICROSECONDS.search(text)
    return to_microseconds + (int(decimals[1].ljust(3, "0")) if decimals else 0)


def _nanoseconds(time: date) -> int:
    if not isinstance(time, datetime):
        time = datetime(time.year, time.month, time.day, tzinfo=UTC)
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    delta = time - datetime(1970, 1, 1, tzinfo=UTC)
    nanoseconds = (delta.days * 86_400 + delta.seconds) * _NS + delta.microseconds * 1000
    return nanoseconds + int(getattr(time, "nanosecond", 0))  # pandas' Timestamp has them


def url(value: object, field: str) -> str:
    """Check the URL of a service; errors show its scheme and host only, never credentials."""
    if not isinstance(value, str):
        raise InvalidRequestError.refuse(field, value, _URL_RULE)
    parts = split_url(value)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidRequestError.refuse(field, _scheme_and_host(value), _URL_RULE)
    if parts.username or parts.password or parts.query or parts.fragment:
        expected = "a URL without user, query or fragment; pass a key as api_key="
        raise InvalidRequestError.refuse(field, _scheme_and_host(value), expected)
    return parts.geturl().rstrip("/")  # with a lower-case scheme


_URL_RULE = "a URL such as https://rpc.example.com"
_HOST = re.compile(r"([A-Za-z][A-Za-z\d+.-]*://)?(?:[^/?#]*@)?(\[[^]/?#]*\]?|[^/?#:]*)")


def split_url(text: str) -> SplitResult | None:
    """Split a URL; None if its host or port is malformed."""
    try:
        parts = urlsplit(text)
        _ = parts.port  # reading it validates it
    except ValueError:
        return None
    return parts if text.isprintable() and " " not in text else None


def _scheme_and_host(text: str) -> str:
    """Return the parts of a URL that cannot contain a key."""
    match = _HOST.match(text)
    return "".join(part or "" for part in match.groups()) if match else ""


def json_args(value: Any, field: str = "args") -> bytes:
    """Encode the arguments of a method call as JSON; bytes are returned unchanged."""
    if isinstance(value, bytes):
        return value
    return json_bytes(value, field, "bytes, or a value")


def json_text(text: str, expected: str = "JSON") -> bytes:
    """Check that a method's arguments are JSON; encode them unchanged, since parsing may round."""
    import msgspec

    from ledgerkit import json_decoding

    try:
        json_decoding.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidRequestError.refuse("args", text, f"{expected} ({error})") from None
    return text.encode()


def json_bytes(value: Any, field: str, noun: str = "values") -> bytes:
    import msgspec

    try:
        return msgspec.json.encode(value, enc_hook=_json_text)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        expected = f"{noun} that JSON can encode ({error})"
        raise InvalidRequestError.refuse(field, value, expected) from None


def _json_text(value: object) -> str:
    if isinstance(value, str):
        return plain_str(value)
    msg = f"Encoding objects of type {type(value).__name__} is unsupported"
    raise TypeError(msg)
