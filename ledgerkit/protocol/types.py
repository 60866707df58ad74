"""
The small values: account ids, hashes, public keys, signatures, range-checked integers.

`AccountId` is a `str` and `CryptoHash` is a `bytes`: they pass wherever the plain kind
does (as a column, a dict's key, a JSON member), and a value of either type has been
checked once, so nothing behind it checks again. The integers are `int` for the same
reason; arithmetic on them gives plain integers, which are checked where they are used.
Only what asks for exact types, as msgspec's encoders do, wants `str(account_id)`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Any, ClassVar, Literal, NamedTuple, Self

from ledgerkit import validation
from ledgerkit.errors import InvalidRequestError
from ledgerkit.protocol.borsh import Borsh, Reader, text
from ledgerkit.units import U128_MAX
from ledgerkit.validation import ACCOUNT, ACCOUNT_LENGTHS, ACCOUNT_RULE, decode_base58, split_key

U16_MAX = 2**16 - 1
U64_MAX = 2**64 - 1
HASH_BYTES = 32

AccountKind = Literal["named", "near-implicit", "eth-implicit", "deterministic"]

_IMPLICIT = re.compile(r"(?P<near>[\da-f]{64})|(?P<eth>0x[\da-f]{40})|0s[\da-f]{40}", re.ASCII)
_HASH_RULE = "32 bytes, or their base58 of at most 44 characters"
_KEY_RULE = "ed25519:<base58 of 32 bytes> or secp256k1:<base58 of 64 bytes>"
_SIGNATURE_RULE = "ed25519:<base58 of 64 bytes> or secp256k1:<base58 of 65 bytes>"


class _Curve(NamedTuple):
    """A kind of key: its Borsh tag and its sizes; without a tag it is only carried through."""

    tag: int | None
    key_bytes: int
    signature_bytes: int | None


_CURVES = {
    "ed25519": _Curve(0, 32, 64),
    "secp256k1": _Curve(1, 64, 65),
    "ml-dsa-65": _Curve(None, 1952, 3309),
    "ml-dsa-65-hash": _Curve(None, 32, None),
}
_TAGS = {"ed25519": b"\0", "secp256k1": b"\1"}
_BY_TAG = ("ed25519", "secp256k1")
# Of an ed25519 signature the node refuses to read one whose last byte has any of these bits.
_NO_SCALAR = 0b1110_0000

_set = object.__setattr__  # how a frozen dataclass settles its own fields


# Integers -------------------------------------------------------------------------------


def whole(value: object, field: str, most: int) -> int:
    """Check an integer from 0 to `most`; a plain one without a further call."""
    if type(value) is int and 0 <= value <= most:
        return value
    return validation.integer(value, field, most=most)


class _Bounded(int):
    """An integer within bounds, from a number or from its digits."""

    __slots__ = ()
    _name: ClassVar[str]
    _most: ClassVar[int]

    def __new__(cls, value: int | str) -> Self:
        """Check the bounds; answers write amounts as texts of digits, which are read too."""
        number: object = value
        # Of longer texts, int() refuses some and takes long over others.
        if isinstance(value, str) and len(value) <= len(str(cls._most)):
            number = int(value) if value.isascii() and value.isdigit() else value
        return super().__new__(cls, whole(number, cls._name, cls._most))


class Balance(_Bounded):
    """An amount in the smallest unit, from 0 to 2**128 - 1."""

    __slots__ = ()
    _name, _most = "balance", U128_MAX


class Gas(_Bounded):
    """Units of gas, from 0 to 2**64 - 1."""

    __slots__ = ()
    _name, _most = "gas", U64_MAX


class Nonce(_Bounded):
    """A nonce, from 0 to 2**64 - 1."""

    __slots__ = ()
    _name, _most = "nonce", U64_MAX


class BlockHeight(_Bounded):
    """A block's height, from 0 to 2**64 - 1."""

    __slots__ = ()
    _name, _most = "block_height", U64_MAX


class ShardId(_Bounded):
    """A shard's id, from 0 to 2**64 - 1."""

    __slots__ = ()
    _name, _most = "shard_id", U64_MAX


# Account ids ----------------------------------------------------------------------------


class AccountId(str):
    """
    The name of an account, checked by the chain's rule.

    Parameters
    ----------
    value
        Such as ``"alice.near"``.
    field
        What it is, for the error.

    Raises
    ------
    InvalidRequestError
        If it is no text of 2 to 64 characters a-z, 0-9 and single separators.
    """

    __slots__ = ("packed",)
    packed: bytes  # its binary form, which every transaction needs

    def __new__(cls, value: str, field: str = "account_id") -> Self:
        """Check the text."""
        fits = isinstance(value, str) and len(value) in ACCOUNT_LENGTHS
        if not fits or not ACCOUNT.fullmatch(value):
            raise InvalidRequestError.refuse(field, value, ACCOUNT_RULE)
        made = super().__new__(cls, value)
        made.packed = text(value)
        return made

    @property
    def kind(self) -> AccountKind:
        """Where the id comes from: a name somebody chose, or a key or code that it is made of."""
        found = _IMPLICIT.fullmatch(self)
        if found is None:
            return "named"
        if found["near"]:
            return "near-implicit"
        return "eth-implicit" if found["eth"] else "deterministic"

    @property
    def is_top_level(self) -> bool:
        """Whether it is a name without a dot, as ``near``; such ids need the registrar."""
        return self.kind == "named" and "." not in self

    @property
    def is_system(self) -> bool:
        """Whether it is the chain's own name, which signs refunds and belongs to nobody."""
        return self == "system"

    @property
    def parent(self) -> AccountId | None:
        """The account that may create this one; None where there can be none."""
        _, _, rest = self.partition(".")
        return AccountId(rest) if len(rest) in ACCOUNT_LENGTHS else None

    def is_sub_account_of(self, other: str) -> bool:
        """
        Tell whether `other` may create this account: one label in front, no more.

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


_known = lru_cache(maxsize=4096)(AccountId)  # the same ones come again and again


def account_id(value: object, field: str = "account_id") -> AccountId:
    """Check an account id, once."""
    if type(value) is AccountId:
        return value
    if type(value) is str:
        try:
            return _known(value)  # which remembers no text that it refuses
        except InvalidRequestError:
            pass
    return AccountId(value, field)  # type: ignore[arg-type]  # to refuse it by its name


def read_account_id(reader: Reader) -> AccountId:
    """Take an account id; the node checks it while decoding, and so do we."""
    return reader.checked(lambda: account_id(reader.text()))


def plain_text(value: object, field: str) -> str:
    """Check a text that can be written as utf-8."""
    if isinstance(value, str):
        if value.isascii():
            return value
        try:
            value.encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            pass
        else:
            return value
    raise InvalidRequestError.refuse(field, value, "a text")


def plain_bytes(value: object, field: str) -> bytes:
    """Check bytes; what can still change is copied."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise InvalidRequestError.refuse(field, value, "bytes")


# Hashes ---------------------------------------------------------------------------------


class CryptoHash(bytes):
    """
    The 32 bytes of a hash; as text they read in base58.

    Parameters
    ----------
    value
        32 bytes, or their base58.
    field
        What it is, for the error.

    Raises
    ------
    InvalidRequestError
        If it is neither.
    """

    __slots__ = ()

    def __new__(cls, value: bytes | bytearray | memoryview | str, field: str = "hash") -> Self:
        """Check the size."""
        data = decode_base58(value, HASH_BYTES) if isinstance(value, str) else value
        if not isinstance(data, bytes | bytearray | memoryview) or len(data) != HASH_BYTES:
            raise InvalidRequestError.refuse(field, value, _HASH_RULE)
        return super().__new__(cls, data)

    @classmethod
    def of(cls, data: bytes) -> Self:
        """
        Hash bytes with SHA-256.

        Parameters
        ----------
        data
            Anything.

        Returns
        -------
        hash
            Its 32 bytes.
        """
        return bytes.__new__(cls, sha256(data).digest())

    def __str__(self) -> str:
        """Read as answers write it."""
        return to_base58(self)

    def __repr__(self) -> str:
        return f"CryptoHash({str(self)!r})"


def crypto_hash(value: Any, field: str = "block_hash") -> CryptoHash:
    """Check a hash, once."""
    return value if type(value) is CryptoHash else CryptoHash(value, field)


# Keys and signatures --------------------------------------------------------------------


def to_base58(data: bytes) -> str:
    """Write bytes as base58."""
    import base58

    return base58.b58encode(data).decode()


def hidden(field: str, rule: str) -> InvalidRequestError:
    """Refuse a value without showing it: it may be a secret in the wrong place."""
    return InvalidRequestError(
        f"{field} is not valid (its value is not shown, for it may be secret): {rule}",
        field=field,
        value=None,
        rule=rule,
    )


@dataclass(frozen=True, slots=True, repr=False)
class PublicKey(Borsh):
    """
    A public key: its curve and its bytes.

    Parameters
    ----------
    curve
        ``ed25519`` or ``secp256k1``. The texts of ``ml-dsa-65`` keys, which answers may
        hold, are carried through; they are refused in what is encoded and signed.
    data
        32 bytes for ed25519; 64 for secp256k1, the point without its leading 4.

    Raises
    ------
    InvalidRequestError
        If the curve is unknown, or the size is not the curve's.
    """

    curve: str
    data: bytes
    # Its binary form, which every transaction needs; empty where it has none.
    packed: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the size."""
        curve = _CURVES.get(self.curve)
        if curve is None or not isinstance(self.data, bytes) or len(self.data) != curve.key_bytes:
            raise hidden("public_key", _KEY_RULE)
        tag = _TAGS.get(self.curve)
        _set(self, "packed", tag + self.data if tag else b"")

    @classmethod
    def from_text(cls, value: str, field: str = "public_key") -> Self:
        """
        Read a key as answers write it.

        Parameters
        ----------
        value
            ``<curve>:<base58>``; without a curve it is ed25519.
        field
            What it is, for the error.

        Returns
        -------
        key
            The key.

        Raises
        ------
        InvalidRequestError
            If it is no key. The sentence does not show it, for it may be a secret one.
        """
        curve, written = split_key(value)
        known = _CURVES.get(curve)
        data = decode_base58(written, known.key_bytes) if known else None
        if data is None:
            del value, written
            raise hidden(field, _KEY_RULE)
        return cls(curve, data)

    def encode(self) -> bytes:
        """
        Write the binary form.

        Returns
        -------
        data
            A tag and the key.

        Raises
        ------
        InvalidRequestError
            If the curve is not one that this library signs with.
        """
        return public_key(self).packed

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Take a key."""
        curve = _BY_TAG[reader.tag(2, "a public key that can be signed with")]
        return cls(curve, reader.fixed(_CURVES[curve].key_bytes))

    def verify(self, message: bytes, signature: Signature) -> bool:
        """
        Tell whether the owner of this key signed a hash.

        Parameters
        ----------
        message
            The 32 bytes that were signed.
        signature
            What is said to be the signature.

        Returns
        -------
        signed
            False also where the curves differ, or key or signature are malformed.

        Raises
        ------
        InvalidRequestError
            If ``ledgerkit[secp256k1]`` is needed and not installed.

        Notes
        -----
        secp256k1 is verified over the hash itself, and a signature in its high form is
        refused, as nodes do. ed25519 is verified by libsodium, which refuses keys of small
        order too; no key that was ever generated is one.
        """
        from ledgerkit.protocol import curves

        if signature.curve != self.curve or len(message) != HASH_BYTES:
            return False
        return curves.verify(self.curve, self.data, bytes(message), signature.data)

    def __str__(self) -> str:
        """Read as answers write it."""
        return f"{self.curve}:{to_base58(self.data)}"

    def __repr__(self) -> str:
        return f"PublicKey.from_text({str(self)!r})"


def known_signature(curve: str, data: bytes) -> Signature:
    """Make a signature of what a curve's own library returned, unchecked."""
    made = object.__new__(Signature)
    fields = made.__dict__
    fields["curve"] = curve
    fields["data"] = data
    fields["packed"] = _TAGS[curve] + data
    return made


def public_key(value: Any, field: str = "public_key") -> PublicKey:
    """Check a public key that is to be encoded; its text is read."""
    key = value if type(value) is PublicKey else PublicKey.from_text(value, field)
    if not key.packed:
        rule = f"{key.curve} keys are read in answers only, never signed with"
        raise InvalidRequestError.refuse(field, key.curve, rule)
    return key


@dataclass(frozen=True, repr=False)
class Signature(Borsh):
    """
    A signature: its curve and its bytes.

    Parameters
    ----------
    curve
        ``ed25519`` or ``secp256k1``; ``ml-dsa-65`` is carried through.
    data
        64 bytes for ed25519; 65 for secp256k1: r, s and the recovery id.

    Raises
    ------
    InvalidRequestError
        If the curve is unknown, or the size is not the curve's.
    """

    curve: str
    data: bytes
    # Its binary form; empty where it has none.
    packed: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the size."""
        curve = _CURVES.get(self.curve)
        size = curve.signature_bytes if curve else None
        if not isinstance(self.data, bytes) or len(self.data) != size:
            raise hidden("signature", _SIGNATURE_RULE)
        tag = _TAGS.get(self.curve)
        _set(self, "packed", tag + self.data if tag else b"")

    @classmethod
    def from_text(cls, value: str, field: str = "signature") -> Self:
        """
        Read a signature as answers write it.

        Parameters
        ----------
        value
            ``<curve>:<base58>``; without a curve it is ed25519.
        field
            What it is, for the error.

        Returns
        -------
        signature
            The signature.

        Raises
        ------
        InvalidRequestError
            If it is none; the sentence does not show it.
        """
        curve, written = split_key(value)
        known = _CURVES.get(curve)
        size = known.signature_bytes if known else None
        data = decode_base58(written, size) if size else None
        if data is None:
            del value, written
            raise hidden(field, _SIGNATURE_RULE)
        return cls(curve, data)

    def encode(self) -> bytes:
        """
        Write the binary form.

        Returns
        -------
        data
            A tag and the signature.

        Raises
        ------
        InvalidRequestError
            If the curve is not one that this library signs with.
        """
        return signature(self).packed

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Take a signature."""
        at = reader.at
        curve = _BY_TAG[reader.tag(2, "a signature that can be verified")]
        size = _CURVES[curve].signature_bytes or 0
        data = reader.fixed(size)
        if curve == "ed25519" and data[-1] & _NO_SCALAR:
            raise reader.refuse("an ed25519 signature ends in a byte of no signature", at)
        return cls(curve, data)

    def __str__(self) -> str:
        """Read as answers write it."""
        return f"{self.curve}:{to_base58(self.data)}"

    def __repr__(self) -> str:
        return f"Signature.from_text({str(self)!r})"


def signature(value: Any, field: str = "signature") -> Signature:
    """Check a signature that is to be encoded; its text is read."""
    held = value if type(value) is Signature else Signature.from_text(value, field)
    if not held.packed:
        rule = f"{held.curve} signatures are read in answers only"
        raise InvalidRequestError.refuse(field, held.curve, rule)
    return held


def contract_id(value: Any, field: str) -> CryptoHash | AccountId:
    """Check what names a global contract: the hash of its code, or the account it follows."""
    return value if type(value) is CryptoHash else account_id(value, field)


def encode_contract_id(value: CryptoHash | str) -> bytes:
    """Pack what names a global contract."""
    return b"\0" + value if isinstance(value, CryptoHash) else b"\1" + text(value)


def read_contract_id(reader: Reader) -> CryptoHash | AccountId:
    """Take what names a global contract."""
    if reader.tag(2, "a global contract's identifier"):
        return read_account_id(reader)
    return CryptoHash(reader.fixed(HASH_BYTES))
