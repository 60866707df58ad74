"""Secrets in the bytes of requests and responses, plain or encoded, so that no file stores one."""

from __future__ import annotations

import re
from base64 import b32decode, b32encode, b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import base58
from nacl.bindings import crypto_sign_seed_keypair

from ledgerkit import redaction

if TYPE_CHECKING:
    from ledgerkit.redaction import SecretText

_KEY, _PHRASE = "a secret key", "a seed phrase"
_SEED_BYTES, _KEY_BYTES = 32, 64
_MOST_CODINGS = 3  # nested, such as a key in base64 in the arguments of a call
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})|\\+u00([0-9A-Fa-f]{2})")
_NUMBERS = re.compile(rb"(?:\d{1,3},\s?){40,}\d{1,3}")
# A phrase of 12 words has at least 47 characters, which are 63 in base64 and 94 in hexadecimal.
_CODED = re.compile(rb"[0-9A-Za-z+/_-]{60,}")
_ALPHANUMERIC = re.compile(rb"[0-9A-Za-z]{60,}")
_HEX = re.compile(rb"(?:[0-9A-Fa-f]{2}){40,}")
_BASE32 = re.compile(rb"[A-Za-z2-7]+")
# The lengths in base58 of 64 bytes, and of the text of a key with its curve.
_BASE58_SIZES = {*range(72, 76), *range(86, 89), *range(128, 134)}
_LETTERS = bytes(ord("a") if re.match(rb"[0-9A-Za-z+/_-]", bytes([n])) else n for n in range(256))
_LONG_RUN = b"a" * 60
_GROUPS = {6: 3, 5: 5}  # bytes in a group of whole digits, by the bits of a digit
# Only secret keys of secp256k1 have 32 bytes.
_SECP256K1 = re.compile(rb"secp256k1:[1-9A-HJ-NP-Za-km-z]{43,44}(?![1-9A-HJ-NP-Za-km-z])")


def secret_in(
    data: bytes, key: SecretText | None = None, *, is_request: bool = False
) -> str | None:
    """
    Return the kind of secret that bytes contain, such as "a secret key"; None if there is none.

    All `forms` of the bytes are searched for the API keys and passwords that this process uses, for
    whole secret keys (in ed25519 64 bytes, whose second half is the public key of the first) and
    for seed phrases. `key` is searched for even if it is too short to be hidden elsewhere. In a
    request, words that may be a phrase count as one.
    """
    if key is not None and key.reveal().encode() in data:
        return key.noun
    in_use = [(noun, tuple(_spellings(text))) for noun, text in redaction.secrets_in_use()]
    for form in forms(data):
        for noun, spellings in in_use:
            if any(spelling in form for spelling in spellings):
                return noun
        if _is_secret_key(form) or (b"secp256k1:" in form and _SECP256K1.search(form)):
            return _KEY
        if redaction.has_phrase(form, is_request=is_request):
            return _PHRASE
    return None


def forms(data: bytes, depth: int = _MOST_CODINGS) -> Iterator[bytes]:
    r"""
    Yield the bytes, and the bytes that parts of them encode.

    This decodes escapes of URLs and JSON, base64 and its form for URLs, base58, base32, hexadecimal
    digits, and lists of bytes in JSON, also within each other.
    """
    yield data
    if depth:
        for part in _decoded(data):
            yield from forms(part, depth - 1)


def _decoded(data: bytes) -> Iterator[bytes]:
    if b"%" in data or b"\\u00" in data:
        plain, count = _ESCAPE.subn(
            lambda match: bytes.fromhex((match[1] or match[2]).decode()), data
        )
        if count:
            yield plain
    for run in _NUMBERS.findall(data):
        yield bytes(int(number) & 0xFF for number in run.split(b","))
    if _LONG_RUN in data.translate(_LETTERS):  # six times as fast as the pattern
        for run in _CODED.findall(data):
            whole = run[:-1] if len(run) % 4 == 1 else run
            yield b64decode(whole + b"==", altchars=b"-_")
            for part in _ALPHANUMERIC.findall(run):
                yield from _decoded_part(part)


def _decoded_part(part: bytes) -> Iterator[bytes]:
    """Yield the bytes that letters and digits encode in notations other than base64."""
    for digits in _HEX.findall(part):
        yield bytes.fromhex(digits.decode())
    with suppress(ValueError):  # it is not in this notation
        if len(part) in _BASE58_SIZES:
            yield base58.b58decode(part)
    with suppress(ValueError):
        if _BASE32.fullmatch(part):
            yield b32decode(part + b"=" * (-len(part) % 8), casefold=True)


def _spellings(text: bytes) -> Iterator[bytes]:
    """Yield a text as it is, and as it is encoded at any position in other bytes."""
    yield from (text, text.hex().encode(), text.hex().upper().encode(), base58.b58encode(text))
    for comma in (",", ", "):
        yield comma.join(map(str, text)).encode()
    for digits in _shifted(text, b64encode, 6):
        yield from {digits, digits.translate(bytes.maketrans(b"+/", b"-_"))}
    for digits in _shifted(text, b32encode, 5):
        yield from (digits, digits.lower())


def _shifted(text: bytes, encode: Callable[[bytes], bytes], bits: int) -> Iterator[bytes]:
    """Yield the digits that the bytes before and after a text do not change."""
    for n_before in range(_GROUPS[bits]):
        start, stop = -(-8 * n_before // bits), 8 * (n_before + len(text)) // bits
        yield encode(bytes(n_before) + text)[start:stop]


def _is_secret_key(key: bytes) -> bool:
    """Return True if the second half of 64 bytes is the public key of the first."""
    if len(key) != _KEY_BYTES:
        return False
    public_key, _ = crypto_sign_seed_keypair(key[:_SEED_BYTES])
    return bool(public_key == key[_SEED_BYTES:])
