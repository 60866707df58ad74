"""Secrets in the bytes of an answer, as they are or encoded, so that no file stores one."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from contextlib import suppress
from typing import TYPE_CHECKING

import base58
from nacl.bindings import crypto_sign_seed_keypair

from ledgerkit import redaction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.redaction import SecretText

_NOUN = "a secret key"
_SEED_BYTES, _KEY_BYTES = 32, 64
_HEX_DIGITS, _BASE58_DIGITS = 128, (86, 87, 88)  # of the 64 bytes of a key
_RUN = re.compile(rb"[0-9A-Za-z]+")
_LETTERS = _RUN.sub(lambda run: b"a" * len(run[0]), bytes(range(256)))  # each becomes an "a"
_SHORTEST_RUN = b"a" * min(_BASE58_DIGITS)
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]+")
_BASE64_KEY = re.compile(rb"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{86}(?===)")
_NUMBERS = re.compile(rb"(?:\d{1,3},\s?)+\d{1,3}")
# Of a key of secp256k1, only a secret one has 32 bytes.
_SECP256K1 = re.compile(rb"secp256k1:[1-9A-HJ-NP-Za-km-z]{43,44}(?![1-9A-HJ-NP-Za-km-z])")


def secret_in(data: bytes, key: SecretText | None = None) -> str | None:
    """
    Return what secret some bytes contain, such as "a secret key"; None if there is none.

    Found are the API keys and passwords that this process uses, and every whole secret key: of
    ed25519 it is 64 bytes, of which the second half is the public key of the first. Both are found
    as they are, in base64, in hexadecimal digits, and as a list of bytes in JSON. `key` is one that
    is found even if it is too short to be hidden elsewhere.
    """
    if key is not None and key.reveal().encode() in data:
        return key.noun
    for noun, text in redaction.secrets_in_use():
        spellings = (text, text.hex().encode(), *_number_spellings(text), *_base64_spellings(text))
        if any(spelling in data for spelling in spellings):
            return noun
    return _NOUN if any(_has_key(form) for form in (data, *_decoded(data))) else None


def _number_spellings(text: bytes) -> Iterator[bytes]:
    for comma in (",", ", "):
        yield comma.join(map(str, text)).encode()


def _base64_spellings(text: bytes) -> Iterator[bytes]:
    """Yield the digits that are the same wherever a text stands in the bytes encoded."""
    for before in range(3):
        encoded = b64encode(bytes(before) + text)
        whole = 4 * ((before + len(text)) // 3)
        yield encoded[(0, 2, 3)[before] : whole]


_CURVES = (b"ed25519:", b"secp256k1:")
_BASE64_CURVES = tuple(digits for curve in _CURVES for digits in _base64_spellings(curve))
_NUMBER_CURVES = tuple(numbers for curve in _CURVES for numbers in _number_spellings(curve))


def _decoded(data: bytes) -> Iterator[bytes]:
    """Yield the decoded parts of some bytes that name a curve in base64, or as a list."""
    if any(map(data.__contains__, _BASE64_CURVES)):
        for run in _BASE64.findall(data):
            whole = run[:-1] if len(run) % 4 == 1 else run
            yield b64decode(whole + b"==", altchars=b"-_")
    if any(map(data.__contains__, _NUMBER_CURVES)):
        for run in _NUMBERS.findall(data):
            yield bytes(int(number) & 0xFF for number in run.split(b","))


def _has_key(data: bytes) -> bool:
    if b"secp256k1:" in data and _SECP256K1.search(data):
        return True
    return any(map(_is_secret_key, _key_candidates(data)))


def _key_candidates(data: bytes) -> Iterator[bytes]:
    has_long_runs = _SHORTEST_RUN in data.translate(_LETTERS)  # six times as fast as the pattern
    for run in _RUN.findall(data) if has_long_runs else ():
        with suppress(ValueError):  # it is no number in this notation
            if len(run) in _BASE58_DIGITS:
                yield base58.b58decode(run)
            elif len(run) == _HEX_DIGITS:
                yield bytes.fromhex(run.decode())
    if b"==" in data:
        yield from (b64decode(run + b"==") for run in _BASE64_KEY.findall(data))


def _is_secret_key(key: bytes) -> bool:
    """Return True if the second half of 64 bytes is the public key of the first."""
    if len(key) != _KEY_BYTES:
        return False
    public_key, _ = crypto_sign_seed_keypair(key[:_SEED_BYTES])
    return bool(public_key == key[_SEED_BYTES:])
