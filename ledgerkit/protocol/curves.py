"""The two curves and keccak, by the maintained libraries that implement them."""

from __future__ import annotations

import secrets
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from ledgerkit.errors import InvalidRequestError
from ledgerkit.extras import require

if TYPE_CHECKING:
    from collections.abc import Callable

_SEED_BYTES = 32
_RECOVERY_IDS = 4
_EXTRAS = {
    "Crypto.Hash.keccak": ("secp256k1", "An account id of a secp256k1 key or of state"),
    "coincurve": ("secp256k1", "A secp256k1 key"),
    "mnemonic": ("seed", "A seed phrase"),
    "slip10": ("seed", "A seed phrase"),
}


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
    """
    Hash with the Keccak that came before SHA-3.

    Parameters
    ----------
    data
        Anything.

    Returns
    -------
    digest
        32 bytes. hashlib's `sha3_256` pads differently and gives other ones.

    Raises
    ------
    InvalidRequestError
        If ``ledgerkit[secp256k1]`` is not installed.
    """
    keccak = need("Crypto.Hash.keccak")
    return bytes(keccak.new(digest_bits=256, data=data).digest())


class Signer(Protocol):
    """What a secret key of one curve can do."""

    public: bytes

    def sign(self, message: bytes) -> bytes:
        """Sign 32 bytes."""
        ...

    def secret(self) -> bytes:
        """Give the bytes of the key."""
        ...


class Ed25519:
    """
    An ed25519 key held ready for libsodium.

    Parameters
    ----------
    seed
        32 bytes.
    """

    __slots__ = ("_pair", "_sign", "public")

    def __init__(self, seed: bytes) -> None:
        from nacl import bindings

        self.public, self._pair = bindings.crypto_sign_seed_keypair(seed)
        # Found once: a signature takes 20 us, of which looking it up would be a noticeable part.
        self._sign: Callable[[bytes, bytes], bytes] = bindings.crypto_sign

    def sign(self, message: bytes) -> bytes:
        """Sign bytes."""
        return self._sign(message, self._pair)[:64]

    def secret(self) -> bytes:
        """Give the seed and the public key behind it."""
        return self._pair


class Secp256k1:
    """
    A secp256k1 key held ready for libsecp256k1.

    Parameters
    ----------
    secret
        32 bytes, a number from 1 to the order of the group less 1.
    """

    __slots__ = ("_key", "public")

    def __init__(self, secret: bytes) -> None:
        self._key = need("coincurve").PrivateKey(secret)
        self.public: bytes = self._key.public_key.format(compressed=False)[1:]

    def sign(self, message: bytes) -> bytes:
        """Sign a hash as it is, so that the key can be recovered: r, s and the recovery id."""
        return bytes(self._key.sign_recoverable(message, hasher=None))

    def secret(self) -> bytes:
        """Give the number."""
        return bytes(self._key.secret)


def signer(curve: str, secret: bytes) -> Signer | InvalidRequestError | None:
    """Make a signer of the bytes of a secret key; None where they are no key of the curve."""
    # What is wrong is returned, not raised: a traceback through here would hold the secret.
    if curve == "ed25519":
        seed, stated = secret[:_SEED_BYTES], secret[_SEED_BYTES:]
        key = Ed25519(seed) if len(seed) == _SEED_BYTES else None
        return key if key and stated in (b"", key.public) else None
    if curve != "secp256k1" or len(secret) != _SEED_BYTES:
        return None
    absent = missing("coincurve")
    if absent is not None:
        return absent
    try:
        return Secp256k1(secret)
    except ValueError:  # zero, or beyond the group
        return None


def random_signer(curve: str) -> Signer | InvalidRequestError | None:
    """Make a signer of fresh randomness; what is wrong is returned."""
    return signer(curve, secrets.token_bytes(_SEED_BYTES))


def verify(curve: str, key: bytes, message: bytes, signature: bytes) -> bool:
    """Tell whether a signature over 32 bytes is a key's."""
    if curve == "ed25519":
        return _verify_ed25519(key, message, signature)
    return curve == "secp256k1" and _verify_secp256k1(key, message, signature)


def _verify_ed25519(key: bytes, message: bytes, signature: bytes) -> bool:
    """Ask libsodium."""
    from nacl import bindings, exceptions

    try:
        bindings.crypto_sign_open(signature + message, key)
    except exceptions.BadSignatureError:
        return False
    return True


def _verify_secp256k1(key: bytes, message: bytes, signature: bytes) -> bool:
    """Ask libsecp256k1, which refuses the high of the two forms of a signature."""
    coincurve = need("coincurve")
    if signature[-1] >= _RECOVERY_IDS:
        return False
    ecdsa = import_module("coincurve.ecdsa")
    try:
        plain = ecdsa.recoverable_convert(ecdsa.deserialize_recoverable(signature))
        point = coincurve.PublicKey(b"\4" + key)
        return bool(point.verify(ecdsa.cdata_to_der(plain), message, hasher=None))
    except ValueError:  # no point of the curve, or numbers beyond the group
        return False


def seed_of_phrase(phrase: str, passphrase: str, path: str) -> bytes | InvalidRequestError | None:
    """Derive the ed25519 seed of a phrase by BIP-39 and SLIP-10; None where it is none."""
    # What is wrong is returned, not raised: a traceback through here would hold the phrase.
    absent = missing("mnemonic", "slip10")
    if absent is not None:
        return absent
    words = " ".join(phrase.lower().split())
    reader = import_module("mnemonic").Mnemonic("english")
    if not reader.check(words):
        return None
    master = import_module("slip10").SLIP10.from_seed(
        reader.to_seed(words, passphrase), curve_name="ed25519"
    )
    return bytes(master.get_privkey_from_path(path))
