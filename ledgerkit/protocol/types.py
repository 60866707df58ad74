"""
Small values: account ids, hashes, public keys, signatures and range-checked integers.

`AccountId` is a `str` and `CryptoHash` is `bytes`, so both work wherever the plain type does: as
a column, a dict key or a JSON member. A value of either type has been checked and is not checked
again. The integers are `int` for the same reason; arithmetic on them returns plain integers, which
are checked where they are used. Only code that requires exact types, such as msgspec's encoders,
needs `str(account_id)`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha3_256, sha256
from typing import Any, ClassVar, Literal, Self, TypeVar

from ledgerkit import validation
from ledgerkit.errors import InvalidRequestError
from ledgerkit.protocol.borsh import Borsh, Codec, Reader, set_field, text
from ledgerkit.units import U64_MAX, U128_MAX
from ledgerkit.validation import HASH_BYTES, Checked, decode_base58, split_key

AccountKind = Literal["named", "near-implicit", "eth-implicit", "deterministic", "universal"]

# A universal id has 52 symbols of Crockford's base 32; the last one has a single bit (NEP-655).
BASE32 = "0123456789abcdefghjkmnpqrstvwxyz"
_DERIVED_IDS: dict[AccountKind, str] = {
    "near-implicit": r"[\da-f]{64}",
    "eth-implicit": r"0x[\da-f]{40}",
    "deterministic": r"0s[\da-f]{40}",
    "universal": rf"0u[{BASE32}]{{51}}[0g]",
}
_DERIVED_ID = re.compile("|".join(f"({pattern})" for pattern in _DERIVED_IDS.values()), re.ASCII)
_DERIVED_KINDS = tuple(_DERIVED_IDS)
_HASH_RULE = "32 bytes, or their base58 of at most 44 characters"
_SIGNATURE_RULE = (
    "ed25519:<base58 of 64 bytes>, secp256k1:<base58 of 65 bytes> or "
    "ml-dsa-65:<base58 of 3309 bytes>"
)
_TAGS = {"ed25519": b"\0", "secp256k1": b"\1", "ml-dsa-65": b"\2"}
_CURVES = tuple(_TAGS)
# An ML-DSA-65 key is stored as its hash, which occurs in responses only: its text is read and
# written, but never encoded. Source: nearcore, core/crypto/src/signature.rs, PublicKeyHandle.
_HASHED = "ml-dsa-65-hash"
_HASHED_TAG = b"\3"
_HASH_DOMAIN = b"near:ml-dsa-65-pubkey-hash:v1"
_KEY_BYTES = {**validation.KEY_BYTES, _HASHED: HASH_BYTES}
SIGNATURE_BYTES = {"ed25519": 64, "secp256k1": 65, "ml-dsa-65": 3309}
# A node does not decode an ed25519 signature whose last byte has any of these bits set: its second
# half is not a reduced scalar.
_UNREDUCED = 0b1110_0000


# Integers -------------------------------------------------------------------------------


class _Bounded(int):
    """An integer within bounds, built from a number or its digits."""

    __slots__ = ()
    _name: ClassVar[str]
    _most: ClassVar[int]

    def __new__(cls, value: int | str) -> Self:
        """Check the bounds; a text of digits, as in responses, is converted."""
        number: object = value
        # int() is slow on long texts, and refuses very long ones with an error of its own.
        if isinstance(value, str) and len(value) <= len(str(cls._most)):
            number = int(value) if value.isascii() and value.isdigit() else value
        return super().__new__(cls, validation.integer(number, cls._name, most=cls._most))


class Balance(_Bounded):
    """An amount in the smallest unit, from 0 to 2**128 - 1."""

    __slots__ = ()
    _name, _most = "balance", U128_MAX


class Gas(_Bounded):
    """An amount of gas, from 0 to 2**64 - 1."""

    __slots__ = ()
    _name, _most = "gas", U64_MAX


class Nonce(_Bounded):
    """A nonce, from 0 to 2**64 - 1."""

    __slots__ = ()
    _name, _most = "nonce", U64_MAX


class BlockHeight(_Bounded):
    """A block height, from 0 to 2**64 - 1."""

    __slots__ = ()
    _name, _most = "block_height", U64_MAX


class ShardId(_Bounded):
    """A shard id, from 0 to 2**64 - 1."""

    __slots__ = ()
    _name, _most = "shard_id", U64_MAX


# Account ids ----------------------------------------------------------------------------


class AccountId(str):
    """
    An account id, checked by the chain's rule.

    Parameters
    ----------
    value
        Such as ``"alice.near"``.
    field
        The argument's name, for the error.

    Raises
    ------
    InvalidRequestError
        If it is not a text of 2 to 64 characters: a-z, 0-9 and single separators.
    """

    __slots__ = ("packed",)
    packed: bytes  # the Borsh form, which every transaction needs

    def __new__(cls, value: str, field: str = "account_id") -> Self:
        account = super().__new__(cls, validation.account_id(value, field))
        account.packed = text(account)
        return account

    @property
    def kind(self) -> AccountKind:
        """The origin of the id: a chosen name, or the key or code that it is derived from."""
        match = _DERIVED_ID.fullmatch(self)
        return "named" if match is None else _DERIVED_KINDS[(match.lastindex or 1) - 1]

    @property
    def is_top_level(self) -> bool:
        """True for a name without a dot, such as ``near``; only the registrar creates these."""
        return self.kind == "named" and "." not in self

    @property
    def is_system(self) -> bool:
        """True for the chain's own account id, which signs refunds and has no owner."""
        return self == "system"

    @property
    def parent(self) -> AccountId | None:
        """The account that may create this one; None if there is none."""
        _, _, parent = self.partition(".")
        return AccountId(parent) if len(parent) in validation.ACCOUNT_LENGTHS else None

    def is_sub_account_of(self, other: str) -> bool:
        """
        Return True if `other` may create this account: this id is one label longer.

        Parameters
        ----------
        other
            The account id of the possible parent.

        Returns
        -------
        direct
            True for ``a.b`` of ``b``, False for ``c.a.b`` of ``b``.
        """
        return self.partition(".")[1:] == (".", str(other))

    def __repr__(self) -> str:
        return f"AccountId({str(self)!r})"


_cached_id = lru_cache(maxsize=4096)(AccountId)  # a few ids are used again and again


def account_id(value: object, field: str = "account_id") -> AccountId:
    """Check an account id, unless it is one already."""
    if type(value) is AccountId:
        return value
    if type(value) is str:
        return _cached_id(value, field)
    return AccountId(value, field)  # type: ignore[arg-type]  # refused if it is not a str


def read_account_id(reader: Reader) -> AccountId:
    """Read an account id; a malformed one is a decoding error, as in a node."""
    return reader.checked(lambda: account_id(reader.text()))


ACCOUNT_ID = Codec(account_id, lambda account: account.packed, read_account_id)


# Hashes ---------------------------------------------------------------------------------


class CryptoHash(bytes, Checked):
    """
    The 32 bytes of a hash; its `str` is base58.

    Parameters
    ----------
    value
        32 bytes, or their base58.
    field
        The argument's name, for the error.

    Raises
    ------
    InvalidRequestError
        If it is neither.
    """

    __slots__ = ()

    def __new__(cls, value: bytes | bytearray | memoryview | str, field: str = "hash") -> Self:
        data = decode_base58(value, HASH_BYTES) if isinstance(value, str) else value
        if not isinstance(data, bytes | bytearray | memoryview) or len(data) != HASH_BYTES:
            raise InvalidRequestError.refuse(field, value, _HASH_RULE)
        return super().__new__(cls, data)

    @classmethod
    def of(cls, data: bytes) -> Self:
        """
        Compute the SHA-256 hash of bytes.

        Parameters
        ----------
        data
            The bytes to hash.

        Returns
        -------
        hash
            The 32 bytes of the hash.
        """
        return bytes.__new__(cls, sha256(data).digest())

    def __str__(self) -> str:
        return to_base58(self)

    def __repr__(self) -> str:
        return f"CryptoHash({str(self)!r})"


def crypto_hash(value: Any, field: str = "block_hash") -> CryptoHash:
    """Check a hash, unless it is one already."""
    return value if type(value) is CryptoHash else CryptoHash(value, field)


# Keys and signatures --------------------------------------------------------------------


def to_base58(data: bytes) -> str:
    import base58

    return base58.b58encode(data).decode()


def refuse_hidden(field: str, expected: str) -> InvalidRequestError:
    """Build the error for a value that must not be shown, because it may be a secret key."""
    return InvalidRequestError(
        f"{field} is not valid: expected {expected}. The value is not shown: it may be secret",
        field=field,
        value=None,
        rule=expected,
    )


class _CurveBytes(Borsh):
    """The bytes of a public key or signature, with the curve they belong to."""

    __slots__ = ()
    curve: str
    data: bytes
    packed: bytes
    _name: ClassVar[str]  # the argument's name, for errors
    _rule: ClassVar[str]
    _sizes: ClassVar[Mapping[str, int]]

    def __post_init__(self) -> None:
        if not isinstance(self.data, bytes) or len(self.data) != self._sizes.get(self.curve):
            raise refuse_hidden(self._name, self._rule)
        tag = _TAGS.get(self.curve)
        set_field(self, "packed", tag + self.data if tag else b"")

    @classmethod
    def from_text(cls, value: str, field: str | None = None) -> Self:
        """
        Parse the text that requests and responses contain.

        Parameters
        ----------
        value
            ``<curve>:<base58>``; without a curve it is ed25519.
        field
            The argument's name, for the error.

        Returns
        -------
        parsed
            The key or signature.

        Raises
        ------
        InvalidRequestError
            If the text is malformed. The error does not show it, because it may be secret.
        """
        curve, encoded = split_key(value)
        size = cls._sizes.get(curve)
        data = decode_base58(encoded, size) if size else None
        if data is None:
            del value, encoded  # a traceback shows local variables
            raise refuse_hidden(field or cls._name, cls._rule)
        return cls(curve, data)  # type: ignore[call-arg]  # a dataclass in each subclass

    def encode(self) -> bytes:
        """
        Encode the curve's tag and the bytes.

        Returns
        -------
        data
            Borsh; equal values have equal bytes.

        Raises
        ------
        InvalidRequestError
            If it is only the hash of a key.
        """
        return _check_encodable(type(self), self, self._name).packed

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read a tag and the bytes of its curve."""
        curve = _CURVES[reader.tag(len(_CURVES), "a curve")]
        return cls(curve, reader.fixed(cls._sizes[curve]))  # type: ignore[call-arg]  # as above

    def __str__(self) -> str:
        return f"{self.curve}:{to_base58(self.data)}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}.from_text({str(self)!r})"


@dataclass(frozen=True, slots=True, repr=False)
class PublicKey(_CurveBytes, Checked):
    """
    A public key: its curve and its bytes.

    Parameters
    ----------
    curve
        ``ed25519``, ``secp256k1`` or ``ml-dsa-65``. The hash of an ML-DSA-65 key, which responses
        contain as ``ml-dsa-65-hash``, can be read and written as text, but not encoded.
    data
        32 bytes for ed25519; 64 for secp256k1, the point without its leading 4; 1952 for
        ml-dsa-65.

    Raises
    ------
    InvalidRequestError
        If the curve is unknown, or the size is not the curve's.
    """

    curve: str
    data: bytes
    # The Borsh form, which every transaction needs; empty for a curve that is never encoded.
    packed: bytes = field(init=False, repr=False, compare=False)
    _name: ClassVar[str] = "public_key"
    _rule: ClassVar[str] = validation.KEY_RULE
    _sizes: ClassVar[Mapping[str, int]] = _KEY_BYTES

    @property
    def stored(self) -> bytes:
        """The bytes that stand for the key in the state: a tag and the key, or its hash."""
        if self.curve == "ml-dsa-65":
            return _HASHED_TAG + sha3_256(_HASH_DOMAIN + self.data).digest()
        return self.packed or _HASHED_TAG + self.data

    @classmethod
    def from_stored(cls, data: bytes) -> Self:
        """
        Decode the bytes that stand for a key in the state.

        Parameters
        ----------
        data
            The bytes, such as `stored` returns.

        Returns
        -------
        public_key
            The key; for ML-DSA-65 only its hash, which cannot be encoded.

        Raises
        ------
        DecodeError
            If the bytes stand for no key.
        """
        if data[:1] == _HASHED_TAG:
            return cls(_HASHED, data[1:])
        return cls.decode(data)

    def verify(self, message: bytes, signature: Signature) -> bool:
        """
        Return True if the owner of this key signed a hash.

        Parameters
        ----------
        message
            The 32 bytes that were signed.
        signature
            The signature to verify.

        Returns
        -------
        signed
            False also if the curves differ, or if the key or signature is malformed.

        Raises
        ------
        InvalidRequestError
            If ``ledgerkit[secp256k1]`` or ``ledgerkit[ml-dsa]`` is needed and not installed.

        Notes
        -----
        secp256k1 is verified over the hash itself, and a signature in its high form is refused,
        as on nodes. ed25519 is verified by libsodium, which also refuses keys of small order;
        no generated key is one. ml-dsa-65 (FIPS 204, with an empty context) is verified by the
        library cryptography.
        """
        from ledgerkit.protocol import curves

        if signature.curve != self.curve or len(message) != HASH_BYTES:
            return False
        return curves.verify(self.curve, self.data, bytes(message), signature.data)


@dataclass(frozen=True, repr=False)
class Signature(_CurveBytes):
    """
    A signature: its curve and its bytes.

    Parameters
    ----------
    curve
        ``ed25519``, ``secp256k1`` or ``ml-dsa-65``.
    data
        64 bytes for ed25519; 65 for secp256k1: r, s and the recovery id; 3309 for ml-dsa-65.

    Raises
    ------
    InvalidRequestError
        If the curve is unknown, or the size is not the curve's.
    """

    curve: str
    data: bytes
    packed: bytes = field(init=False, repr=False, compare=False)
    _name: ClassVar[str] = "signature"
    _rule: ClassVar[str] = _SIGNATURE_RULE
    _sizes: ClassVar[Mapping[str, int]] = SIGNATURE_BYTES

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read a signature; a signature that no node decodes is malformed."""
        start = reader.position
        signature = super().read(reader)
        if signature.curve == "ed25519" and signature.data[-1] & _UNREDUCED:
            raise reader.refuse("an ed25519 signature has an unreduced scalar", start)
        return signature


_C = TypeVar("_C", bound=_CurveBytes)


def _check_encodable(kind: type[_C], value: Any, field: str) -> _C:
    """Check a key or signature that is to be encoded; its text is parsed."""
    parsed = value if type(value) is kind else kind.from_text(value, field)
    if not parsed.packed:
        expected = f"a key of {', '.join(_CURVES)}; a key's hash is only read from responses"
        raise InvalidRequestError.refuse(field, parsed.curve, expected)
    return parsed


def public_key(value: Any, field: str = "public_key") -> PublicKey:
    """Check a public key that is to be encoded; its text is parsed."""
    return _check_encodable(PublicKey, value, field)


def unchecked_signature(curve: str, data: bytes) -> Signature:
    """Build a signature that a curve's own library returned; it is not checked, for speed."""
    built = object.__new__(Signature)
    fields = built.__dict__
    fields["curve"] = curve
    fields["data"] = data
    fields["packed"] = _TAGS[curve] + data
    return built


def _check_stored(value: Any, field: str) -> PublicKey:
    """Check a public key or the hash of an ML-DSA-65 key; an ML-DSA-65 key becomes its hash."""
    key = value if type(value) is PublicKey else PublicKey.from_text(value, field)
    return PublicKey.from_stored(key.stored) if key.curve == "ml-dsa-65" else key


def _read_stored(reader: Reader) -> PublicKey:
    """Read a public key in the form of the state."""
    start = reader.position
    curve = {0: "ed25519", 1: "secp256k1", 3: _HASHED}.get(reader.u8())
    if curve is None:
        raise reader.refuse("a key has an unknown curve", start)
    return PublicKey(curve, reader.fixed(_KEY_BYTES[curve]))


PUBLIC_KEY = Codec(public_key, lambda key: key.packed, PublicKey.read)
STORED_KEY = Codec(_check_stored, lambda key: key.stored, _read_stored)
SIGNATURE = Codec(
    lambda value, field: _check_encodable(Signature, value, field),
    lambda value: value.packed,
    Signature.read,
)


# Global contracts -----------------------------------------------------------------------


def _read_contract(reader: Reader) -> CryptoHash | AccountId:
    if reader.tag(2, "a global contract identifier"):
        return read_account_id(reader)
    return CryptoHash(reader.fixed(HASH_BYTES))


# The identifier of a global contract: its code hash, or the account that deployed it.
GLOBAL_CONTRACT = Codec(
    lambda value, field: value if type(value) is CryptoHash else account_id(value, field),
    lambda value: b"\0" + value if isinstance(value, CryptoHash) else b"\1" + value.packed,
    _read_contract,
)
