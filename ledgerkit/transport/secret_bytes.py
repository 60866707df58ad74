"""Secrets in the bytes of an answer, as they are or encoded, so that no file stores one."""

from __future__ import annotations

import re
import string
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING

import base58
from nacl.bindings import crypto_sign_seed_keypair

from ledgerkit import redaction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.redaction import SecretText

_NOUN = "a secret key"
_SEED_BYTES, _KEY_BYTES = 32, 64
_SHORTEST_RUN = 86  # digits of 64 bytes in base58, or in base64 without padding
_ALPHABET = (string.ascii_letters + string.digits).encode()
_LETTERS = bytes(ord("a") if byte in _ALPHABET else ord(" ") for byte in range(256))
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]+")
_BASE64_KEY = re.compile(rb"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{86}(?===)")
_NUMBERS = re.compile(rb"(?:\d{1,3},\s?)+\d{1,3}")
# Of a key of secp256k1, only a secret one has 32 bytes.
_SECP256K1 = re.compile(rb"secp256k1:[1-9A-HJ-NP-Za-km-z]{43,44}(?![1-9A-HJ-NP-Za-km-z])")
_CURVES = (b"ed25519:", b"secp256k1:")


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
        if any(spelling in data for spelling in spellings(text)):
            return noun
    return _NOUN if any(_has_key(form) for form in (data, *_decoded(data))) else None


def spellings(text: bytes) -> Iterator[bytes]:
    """Yield the encodings of a text in which it would be found."""
    yield text
    yield text.hex().encode()
    yield ",".join(map(str, text)).encode()
    yield ", ".join(map(str, text)).encode()
    yield from _base64_spellings(text)


def _base64_spellings(text: bytes) -> Iterator[bytes]:
    """Yield the digits that are the same wherever a text stands in the bytes encoded."""
    for before in range(3):
        encoded = b64encode(bytes(before) + text)
        whole = 4 * ((before + len(text)) // 3)
        yield encoded[(0, 2, 3)[before] : whole]


_BASE64_CURVES = tuple(digits for curve in _CURVES for digits in _base64_spellings(curve))
_NUMBER_CURVES = tuple(
    comma.join(map(str, curve)).encode() for comma in (",", ", ") for curve in _CURVES
)


def _decoded(data: bytes) -> Iterator[bytes]:
    """Yield the decoded parts of some bytes that name a curve in base64, or as a list."""
    if any(map(data.__contains__, _BASE64_CURVES)):
        for run in _BASE64.findall(data):
            if any(map(run.__contains__, _BASE64_CURVES)):
                yield _unpadded(run)
    if any(map(data.__contains__, _NUMBER_CURVES)):
        for run in _NUMBERS.findall(data):
            yield bytes(int(number) & 0xFF for number in run.split(b","))


def _unpadded(run: bytes) -> bytes:
    """Decode base64 without its padding, of either alphabet."""
    digits = run.translate(bytes.maketrans(b"-_", b"+/"))
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    return b64decode(digits + b"=" * (-len(digits) % 4))


def _has_key(data: bytes) -> bool:
    """Return True if some bytes contain a whole secret key."""
    if b"secp256k1:" in data and _SECP256K1.search(data):
        return True
    candidates = [*_runs(data)]
    if b"==" in data:
        candidates += [b64decode(run + b"==") for run in _BASE64_KEY.findall(data)]
    return any(map(_is_secret_key, candidates))


def _runs(data: bytes) -> Iterator[bytes]:
    """Yield the bytes that runs of letters and digits stand for, if they may be 64 bytes."""
    mask, end = data.translate(_LETTERS), 0
    needle = b"a" * _SHORTEST_RUN
    while (start := mask.find(needle, end)) >= 0:
        start = mask.rfind(b" ", end, start) + 1 or end
        end = mask.find(b" ", start)
        end = len(data) if end < 0 else end
        run = data[start:end]
        try:
            if len(run) == 2 * _KEY_BYTES:
                yield bytes.fromhex(run.decode())
            elif len(run) <= _SHORTEST_RUN + 2:
                yield base58.b58decode(run)
        except ValueError:
            continue


def _is_secret_key(key: bytes) -> bool:
    """Return True if the second half of 64 bytes is the public key of the first."""
    if len(key) != _KEY_BYTES:
        return False
    public_key, _ = crypto_sign_seed_keypair(key[:_SEED_BYTES])
    return bool(public_key == key[_SEED_BYTES:])
