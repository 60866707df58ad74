"""
Secret keys: generation, parsing and signing.

A secret key appears in no repr, pickle, log or exception, and in no local variable of a traceback
from here: an invalid text is deleted before its error is raised.
`reveal` is the only way to get the text back. This module reads no file and no environment.
"""

from __future__ import annotations

import hmac
import json
import re
from dataclasses import dataclass
from typing import Any, Literal, Never, Self, TypeAlias

from ledgerkit.errors import InvalidRequestError, LedgerError
from ledgerkit.protocol import curves
from ledgerkit.protocol.types import (
    AccountId,
    PublicKey,
    Signature,
    account_id,
    refuse_hidden,
    to_base58,
    unchecked_signature,
)
from ledgerkit.redaction import Secret
from ledgerkit.validation import HASH_BYTES, decode_base58, one_of, split_key

NEAR_PATH = "m/44'/397'/0'"

_PATH = re.compile(r"m(/\d{1,10}')+", re.ASCII)
_HARDENED = 2**31
_SECRET_SIZES = {"ed25519": (64, 32), "secp256k1": (32,)}
_TEXT_RULE = "ed25519:<base58 of 64 bytes> or secp256k1:<base58 of 32 bytes>"
_PHRASE_RULE = "12 to 24 words of the English BIP-39 list with a valid checksum"
_FILE_RULE = "a NEAR CLI credentials file: JSON with the public_key and private_key of one pair"


class SecretKey(Secret):
    """
    A secret key that can sign.

    Build one with `generate`, `from_text`, `from_seed_phrase` or `from_credentials`. It prints as
    ``<SecretKey ed25519:… hidden>`` and cannot be pickled. Two keys are compared in constant time.

    Parameters
    ----------
    signer
        The key of one curve. Only the methods named above pass it.
    """

    __slots__ = ("_signer", "curve", "public_key")
    _signer: curves.Signer
    curve: str
    public_key: PublicKey

    def __init__(self, signer: curves.Signer) -> None:
        if not isinstance(signer, curves.Signer):
            del signer  # it may be the text of a key
            msg = "build a SecretKey with SecretKey.from_text, generate or from_seed_phrase"
            raise TypeError(msg)
        curve = "ed25519" if isinstance(signer, curves.Ed25519) else "secp256k1"
        object.__setattr__(self, "_signer", signer)
        object.__setattr__(self, "curve", curve)
        object.__setattr__(self, "public_key", PublicKey(curve, signer.public))

    @classmethod
    def generate(cls, curve: Literal["ed25519", "secp256k1"] = "ed25519") -> Self:
        """
        Generate a key from the system's randomness.

        Parameters
        ----------
        curve
            ``ed25519``, or ``secp256k1`` with the extra of that name.

        Returns
        -------
        key
            A new key.

        Raises
        ------
        InvalidRequestError
            If the curve is unknown, or its extra is not installed.
        """
        one_of(curve, "curve", tuple(_SECRET_SIZES))
        return cls(_raise_if_invalid(curves.random_signer(curve), "curve", curve))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """
        Parse the text of a secret key.

        Parameters
        ----------
        text
            ``<curve>:<base58>``; without a curve it is ed25519. For ed25519, the 32 bytes of the
            seed are enough.

        Returns
        -------
        key
            The key.

        Raises
        ------
        InvalidRequestError
            If it is not a secret key, or the extra of its curve is not installed. The error does
            not show the text.
        """
        signer = _parse(text)
        del text
        return cls(_raise_if_invalid(signer, "secret_key", _TEXT_RULE))

    @classmethod
    def from_seed_phrase(cls, phrase: str, path: str = NEAR_PATH, passphrase: str = "") -> Self:
        """
        Derive the ed25519 key of a seed phrase, as wallets do.

        Parameters
        ----------
        phrase
            The words; case and spacing do not matter.
        path
            The derivation path; every step is hardened.
        passphrase
            The BIP-39 passphrase, if one was set.

        Returns
        -------
        key
            The key.

        Raises
        ------
        InvalidRequestError
            If the words or their checksum are wrong, the path is invalid, or
            ``ledgerkit[seed]`` is not installed. The error shows no words.

        Notes
        -----
        BIP-39 is implemented by the library mnemonic, SLIP-10 by the library slip10.
        """
        is_path = isinstance(path, str) and _PATH.fullmatch(path) is not None
        if not is_path or any(int(step) >= _HARDENED for step in re.findall(r"\d+", path)):
            del phrase, passphrase
            raise InvalidRequestError.refuse("path", path, f"hardened steps, such as {NEAR_PATH}")
        are_texts = isinstance(phrase, str) and isinstance(passphrase, str)
        seed = curves.seed_of_phrase(phrase, passphrase, path) if are_texts else None
        del phrase, passphrase
        signer = curves.signer("ed25519", seed) if isinstance(seed, bytes) else seed
        del seed
        return cls(_raise_if_invalid(signer, "seed_phrase", _PHRASE_RULE))

    @classmethod
    def from_credentials(cls, text: str | bytes) -> Self:
        """
        Parse the key of a NEAR CLI credentials file.

        Parameters
        ----------
        text
            The content of the file. `Credentials.from_text` returns its account id too.

        Returns
        -------
        key
            The key.

        Raises
        ------
        InvalidRequestError
            If it is not such a file, or its two keys are not a pair. The error shows nothing
            of it.
        """
        signer, _ = _parse_file(text)
        del text
        return cls(_raise_if_invalid(signer, "credentials", _FILE_RULE))

    def sign(self, message: bytes) -> Signature:
        """
        Sign a hash.

        Parameters
        ----------
        message
            32 bytes. secp256k1 signs them without hashing them again.

        Returns
        -------
        signature
            The same for the same hash.

        Raises
        ------
        InvalidRequestError
            If the message is not 32 bytes.
        """
        if len(message) != HASH_BYTES or not isinstance(message, bytes):
            raise InvalidRequestError.refuse("message", message, "the 32 bytes of a hash")
        return unchecked_signature(self.curve, self._signer.sign(message))

    def sign_as_validator(self, message: bytes) -> Signature:
        """
        Sign a block, or the approval of one, as validators do.

        Parameters
        ----------
        message
            The hash of the block, or the bytes of the approval, which are not hashed before.

        Returns
        -------
        signature
            The same for the same bytes.

        Raises
        ------
        InvalidRequestError
            If the key is not an ed25519 key: no other can validate.
        """
        if self.curve != "ed25519":
            raise InvalidRequestError.refuse("curve", self.curve, "ed25519, to validate")
        return unchecked_signature(self.curve, self._signer.sign(message))

    def reveal(self) -> str:
        """
        Return the text of the secret key, to store it.

        Returns
        -------
        text
            ``<curve>:<base58>``, which `from_text` parses. Whoever has it controls the account.
        """
        return f"{self.curve}:{to_base58(self._signer.secret())}"

    def __eq__(self, other: object) -> bool:
        """Compare in constant time, so that the timing reveals nothing about the secret."""
        if not isinstance(other, SecretKey):
            return NotImplemented
        is_same = hmac.compare_digest(self._signer.secret(), other._signer.secret())
        return is_same and self.curve == other.curve

    def __hash__(self) -> int:
        return hash(self.public_key)

    def __repr__(self) -> str:
        curve = getattr(self, "curve", "?")  # a traceback may show a key that __init__ refused
        return f"<SecretKey {curve}:… hidden>"

    def __setattr__(self, name: str, value: object) -> Never:
        """Raise AttributeError, because a key with another public key would sign invalidly."""
        del value
        msg = f"a SecretKey is immutable: {name} cannot be set"
        raise AttributeError(msg)

    def __reduce__(self) -> Never:
        """Raise TypeError, because a pickle would contain the secret."""
        msg = "a SecretKey is never pickled; store the text that reveal() returns"
        raise TypeError(msg)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


@dataclass(frozen=True, slots=True)
class Credentials:
    """
    The content of a NEAR CLI credentials file.

    Parameters
    ----------
    account_id
        The account of the key; None if the file does not name one.
    secret_key
        The key.
    """

    account_id: AccountId | None
    secret_key: SecretKey

    @classmethod
    def from_text(cls, text: str | bytes) -> Self:
        """
        Parse a credentials file.

        Parameters
        ----------
        text
            The content of the file: JSON with ``public_key`` and ``private_key`` (or
            ``secret_key``), and usually ``account_id``.

        Returns
        -------
        credentials
            The account id and its key.

        Raises
        ------
        InvalidRequestError
            If it is not such a file, or its two keys are not a pair. The error shows nothing
            of it.
        """
        signer, name = _parse_file(text)
        del text
        key = SecretKey(_raise_if_invalid(signer, "credentials", _FILE_RULE))
        return cls(None if name is None else account_id(name), key)


_Parsed: TypeAlias = curves.Signer | LedgerError | None  # None is an invalid text


def _raise_if_invalid(parsed: _Parsed, field: str, expected: str) -> curves.Signer:
    """Return the signer, or raise its error; by now no frame holds the secret."""
    if parsed is None:
        raise refuse_hidden(field, expected)
    if isinstance(parsed, LedgerError):
        raise parsed
    return parsed


def _parse(text: object) -> _Parsed:
    """Parse `<curve>:<base58>`; an error is returned."""
    curve, encoded = split_key(text)
    for size in _SECRET_SIZES.get(curve, ()):
        data = decode_base58(encoded, size)
        if data is not None:
            return curves.signer(curve, data)
    return None


def _parse_file(text: str | bytes) -> tuple[_Parsed, str | None]:
    """Parse the key and the account id of a credentials file; an error is returned."""
    try:
        fields = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None, None
    if not isinstance(fields, dict):
        return None, None
    signer = _parse(fields.get("private_key") or fields.get("secret_key"))
    if signer is None or isinstance(signer, LedgerError):
        return signer, None
    if _parse_public(fields.get("public_key")) != signer.public:
        return None, None
    return signer, fields.get("account_id") or fields.get("implicit_account_id")


def _parse_public(text: object) -> bytes | None:
    if not isinstance(text, str):
        return None
    try:
        return PublicKey.from_text(text).data
    except InvalidRequestError:
        return None
