"""The hashes and signatures of host functions, as implemented by maintained libraries."""

from functools import cache
from importlib import import_module
from typing import Any

from ledgerkit.extras import require

SIGNATURE_BYTES = 64  # ed25519 and P-256, and secp256k1 without its recovery id
RECOVERY_IDS = 4
ED25519_KEY_BYTES = 32
P256_KEY_BYTES = 33  # compressed
UNREDUCED = 0b1110_0000  # bits of an ed25519 signature that are set only if it is malformed
_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141  # secp256k1


@cache
def _module(name: str) -> Any:
    require(name.partition(".")[0], "wasm", "A host function of Wasm contracts")
    return import_module(name)


def keccak(data: bytes, bits: int) -> bytes:
    """Compute a Keccak hash, which pads differently from SHA-3."""
    return bytes(_module("Crypto.Hash.keccak").new(digest_bits=bits, data=data).digest())


def ripemd160(data: bytes) -> bytes:
    return bytes(_module("Crypto.Hash.RIPEMD160").new(data).digest())


def recover_secp256k1(message: bytes, signature: bytes, *, reject_upper: bool) -> bytes | None:
    """Return the 64 bytes of the key that signed a hash, or None if the signature is invalid."""
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
    if not (0 < r < _ORDER and 0 < s < _ORDER) or (reject_upper and s > _ORDER // 2):
        return None
    coincurve = _module("coincurve")
    try:
        key = coincurve.PublicKey.from_signature_and_message(signature, message, hasher=None)
    except Exception:  # noqa: BLE001 - the library raises a bare Exception if there is no key
        return None
    return bytes(key.format(compressed=False)[1:])


def verify_p256(key: bytes, message: bytes, signature: bytes) -> bool:
    ecc, dss = _module("Crypto.PublicKey.ECC"), _module("Crypto.Signature.DSS")
    try:
        point = ecc.import_key(key, curve_name="P-256")
        dss.new(point, "fips-186-3").verify(_Prehashed(message), signature)
    except ValueError:
        return False
    return True


class _Prehashed:
    """A hash in the form of the library's hash objects."""

    oid = "2.16.840.1.101.3.4.2.1"  # SHA-256

    def __init__(self, digest: bytes) -> None:
        self._digest = digest
        self.digest_size = len(digest)

    def digest(self) -> bytes:
        return self._digest
