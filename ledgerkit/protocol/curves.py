"""Signature schemes and Keccak, as implemented by maintained libraries."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ledgerkit.errors import InvalidRequestError
from ledgerkit.extras import require

_SEED_BYTES = 32
_RECOVERY_IDS = 4
_EXTRAS = {
    "Crypto.Hash.keccak": ("secp256k1", "An account id of a secp256k1 key or of state"),
    "coincurve": ("secp256k1", "A secp256k1 key"),
    "cryptography.hazmat.primitives.asymmetric.mldsa": ("ml-dsa", "An ML-DSA-65 signature"),
    "mnemonic": ("seed", "A seed phrase"),
    "slip10": ("seed", "A seed phrase"),
}


_VERIFIERS = {
    "secp256k1": "coincurve",
    "ml-dsa-65": "cryptography.hazmat.primitives.asymmetric.mldsa",
}


def need_verifier(curve: str) -> None:
    """Import the library that verifies signatures of a curve; raise if it is not installed."""
    if curve in _VERIFIERS:
        need(_VERIFIERS[curve])


def missing(*modules: str) -> InvalidRequestError | None:
    """Return the error for the first of these modules that can't be imported, or None."""
    for module in modules:
        try:
            need(module)
        except InvalidRequestError as error:
            return error.with_traceback(None)
    return None


def need(module: str) -> Any:
    """Import a module of an optional library."""
    return require(module, *_EXTRAS[module])


def keccak256(data: bytes) -> bytes:
    """Compute the Keccak-256 hash that Ethereum uses, which pads differently from SHA3-256."""
    keccak = need("Crypto.Hash.keccak")
    return bytes(keccak.new(digest_bits=256, data=data).digest())


class Ed25519:
    """An ed25519 key in the form that libsodium needs, built from a seed of 32 bytes."""

    __slots__ = ("_pair", "_sign", "public")

    def __init__(self, seed: bytes) -> None:
        from nacl import bindings

        self.public, self._pair = bindings.crypto_sign_seed_keypair(seed)
        # Looked up once, because a signature takes only 15 us.
        self._sign: Callable[[bytes, bytes], bytes] = bindings.crypto_sign

    def sign(self, message: bytes) -> bytes:
        return self._sign(message, self._pair)[:64]

    def secret(self) -> bytes:
        """Return the seed followed by the public key."""
        return self._pair


class Secp256k1:
    """A secp256k1 key in the form that libsecp256k1 needs, built from its 32 bytes."""

    __slots__ = ("_key", "public")

    def __init__(self, secret: bytes) -> None:
        self._key = need("coincurve").PrivateKey(secret)
        self.public: bytes = self._key.public_key.format(compressed=False)[1:]

    def sign(self, message: bytes) -> bytes:
        """Sign a hash without hashing it again; return r, s and the recovery id."""
        return bytes(self._key.sign_recoverable(message, hasher=None))

    def secret(self) -> bytes:
        return bytes(self._key.secret)


Signer = Ed25519 | Secp256k1  # a secret key of one curve


def signer(curve: str, secret: bytes) -> Signer | InvalidRequestError | None:
    """Build a signer from a secret key; None if the bytes are not a key of the curve."""
    # Errors are returned, not raised: a traceback through this frame would show the secret.
    if curve == "ed25519":
        seed, public = secret[:_SEED_BYTES], secret[_SEED_BYTES:]
        key = Ed25519(seed) if len(seed) == _SEED_BYTES else None
        return key if key and public in (b"", key.public) else None
    if curve != "secp256k1" or len(secret) != _SEED_BYTES:
        return None
    error = missing("coincurve")
    if error is not None:
        return error
    try:
        return Secp256k1(secret)
    except ValueError:  # zero, or not below the order of the group
        return None


def random_signer(curve: str) -> Signer | InvalidRequestError | None:
    """Build a signer from the system's randomness; errors are returned."""
    return signer(curve, secrets.token_bytes(_SEED_BYTES))


def verify(curve: str, key: bytes, message: bytes, signature: bytes) -> bool:
    """Return True if a key made a signature over 32 bytes."""
    if curve == "ed25519":
        return _verify_ed25519(key, message, signature)
    if curve == "secp256k1":
        return _verify_secp256k1(key, message, signature)
    return curve == "ml-dsa-65" and _verify_ml_dsa(key, message, signature)


def _verify_ed25519(key: bytes, message: bytes, signature: bytes) -> bool:
    from nacl import bindings, exceptions

    try:
        bindings.crypto_sign_open(signature + message, key)
    except exceptions.BadSignatureError:
        return False
    return True


def _verify_secp256k1(key: bytes, message: bytes, signature: bytes) -> bool:
    """Verify with libsecp256k1, which refuses the high form of a signature."""
    coincurve = need(_VERIFIERS["secp256k1"])
    if signature[-1] >= _RECOVERY_IDS:
        return False
    ecdsa = import_module("coincurve.ecdsa")
    try:
        plain = ecdsa.recoverable_convert(ecdsa.deserialize_recoverable(signature))
        point = coincurve.PublicKey(b"\4" + key)
        return bool(point.verify(ecdsa.cdata_to_der(plain), message, hasher=None))
    except ValueError:  # not a point of the curve, or numbers outside the group
        return False


def _verify_ml_dsa(key: bytes, message: bytes, signature: bytes) -> bool:
    """Verify by FIPS 204, with an empty context."""
    mldsa = need(_VERIFIERS["ml-dsa-65"])
    invalid = import_module("cryptography.exceptions").InvalidSignature
    try:
        mldsa.MLDSA65PublicKey.from_public_bytes(key).verify(signature, message)
    except invalid:
        return False
    return True


def seed_of_phrase(phrase: str, passphrase: str, path: str) -> bytes | InvalidRequestError | None:
    """Derive an ed25519 seed by BIP-39 and SLIP-10; None if the phrase is invalid."""
    # Errors are returned, not raised: a traceback through this frame would show the phrase.
    error = missing("mnemonic", "slip10")
    if error is not None:
        return error
    words = " ".join(phrase.lower().split())
    bip39 = import_module("mnemonic").Mnemonic("english")
    if not bip39.check(words):
        return None
    master = import_module("slip10").SLIP10.from_seed(
        bip39.to_seed(words, passphrase), curve_name="ed25519"
    )
    return bytes(master.get_privkey_from_path(path))
