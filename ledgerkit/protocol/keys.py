"""
Secret keys: made, read, signed with; shown only on request.

A secret key is in no repr, pickle, log or exception, and no frame of a traceback out of
here has its text in a local variable: what is wrong with a text is found first, the text
is let go, and only then is the error raised. `reveal` is the one way back to text. No
file and no environment is read here.
"""

from __future__ import annotations

import hmac
import json
import re
from dataclasses import dataclass
from typing import Any, Literal, Never, Self

from ledgerkit.errors import InvalidRequestError, LedgerError
from ledgerkit.protocol import curves
from ledgerkit.protocol.types import (
    HASH_BYTES,
    AccountId,
    PublicKey,
    Signature,
    account_id,
    hidden,
    known_signature,
    to_base58,
)
from ledgerkit.validation import decode_base58, split_key

NEAR_PATH = "m/44'/397'/0'"

_PATH = re.compile(r"m(/\d{1,10}')+", re.ASCII)
_HARDENED = 2**31
_SECRET_SIZES = {"ed25519": (64, 32), "secp256k1": (32,)}
_WRITTEN = "ed25519:<base58 of 64 bytes> or secp256k1:<base58 of 32 bytes>"
_PHRASE_RULE = "12 to 24 words of the English BIP-39 list, whose last one fits the others"
_FILE_RULE = "the JSON of a NEAR CLI file, with public_key and private_key of one pair"


class SecretKey:
    """
    A secret key that can sign; made by `generate`, `from_text` and its neighbours.

    Equal to a key of the same secret, compared in constant time; prints as
    ``<SecretKey ed25519:… hidden>``; can't be pickled.

    Parameters
    ----------
    signer
        The key, ready to sign. Callers use the methods named above.
    """

    __slots__ = ("_signer", "curve", "public_key")
    _signer: curves.Signer
    curve: str
    public_key: PublicKey

    def __init__(self, signer: curves.Signer) -> None:
        if not isinstance(signer, curves.Ed25519 | curves.Secp256k1):
            del signer  # perhaps the text of a key
            msg = "a SecretKey is made by SecretKey.from_text, generate or from_seed_phrase"
            raise TypeError(msg)
        curve = "ed25519" if isinstance(signer, curves.Ed25519) else "secp256k1"
        object.__setattr__(self, "_signer", signer)
        object.__setattr__(self, "curve", curve)
        object.__setattr__(self, "public_key", PublicKey(curve, signer.public))

    @classmethod
    def generate(cls, curve: Literal["ed25519", "secp256k1"] = "ed25519") -> Self:
        """
        Make a new key of the system's randomness.

        Parameters
        ----------
        curve
            ``ed25519``, or ``secp256k1`` with the extra of that name.

        Returns
        -------
        key
            A key nobody else has.

        Raises
        ------
        InvalidRequestError
            If there is no such curve, or its extra is not installed.
        """
        if curve not in _SECRET_SIZES:
            raise InvalidRequestError.refuse("curve", curve, "one of ed25519, secp256k1")
        return cls(_settled(curves.random_signer(curve), "curve", curve))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """
        Read a key as files write it.

        Parameters
        ----------
        text
            ``<curve>:<base58>``; without a curve it is ed25519, of which the 32 bytes of
            the seed are enough.

        Returns
        -------
        key
            The key.

        Raises
        ------
        InvalidRequestError
            If it is no secret key, or the extra of its curve is not installed. The
            sentence does not show it.
        """
        found = _read(text)
        del text
        return cls(_settled(found, "secret_key", _WRITTEN))

    @classmethod
    def from_seed_phrase(cls, phrase: str, path: str = NEAR_PATH, passphrase: str = "") -> Self:
        """
        Derive the ed25519 key of a seed phrase, as wallets do.

        Parameters
        ----------
        phrase
            The words; case and spaces do not matter.
        path
            Where in the tree of keys; every step is hardened.
        passphrase
            A further secret, where one was set.

        Returns
        -------
        key
            The key.

        Raises
        ------
        InvalidRequestError
            If the words or their checksum are wrong, the path is none, or
            ``ledgerkit[seed]`` is not installed. The sentence shows no words.

        Notes
        -----
        BIP-39 by the library mnemonic, SLIP-10 by the library slip10.
        """
        steps = [int(step) for step in re.findall(r"\d+", path)] if isinstance(path, str) else []
        if not _PATH.fullmatch(str(path)) or any(step >= _HARDENED for step in steps):
            del phrase, passphrase
            raise InvalidRequestError.refuse("path", path, f"hardened steps, such as {NEAR_PATH}")
        known = isinstance(phrase, str) and isinstance(passphrase, str)
        seed = curves.seed_of_phrase(phrase, passphrase, path) if known else None
        del phrase, passphrase
        found = curves.signer("ed25519", seed) if isinstance(seed, bytes) else seed
        del seed
        return cls(_settled(found, "seed_phrase", _PHRASE_RULE))

    @classmethod
    def from_credentials(cls, text: str | bytes) -> Self:
        """
        Read the key of a NEAR CLI credentials file.

        Parameters
        ----------
        text
            What the file holds; `Credentials.from_text` keeps its account id too.

        Returns
        -------
        key
            The key.

        Raises
        ------
        InvalidRequestError
            If it is no such file, or its two keys are no pair. The sentence shows
            nothing of it.
        """
        found = _read_file(text)
        del text
        return cls(_settled(found[0], "credentials", _FILE_RULE))

    def sign(self, message: bytes) -> Signature:
        """
        Sign a hash.

        Parameters
        ----------
        message
            32 bytes. secp256k1 takes them as they are, without hashing again.

        Returns
        -------
        signature
            Always the same for the same hash.

        Raises
        ------
        InvalidRequestError
            If these are not 32 bytes.
        """
        if len(message) != HASH_BYTES or not isinstance(message, bytes):
            raise InvalidRequestError.refuse("message", message, "the 32 bytes of a hash")
        return known_signature(self.curve, self._signer.sign(message))

    def reveal(self) -> str:
        """
        Write the key as text, for where it is to be kept.

        Returns
        -------
        text
            ``<curve>:<base58>``, which `from_text` reads. Whoever sees it owns the account.
        """
        return f"{self.curve}:{to_base58(self._signer.secret())}"

    def __eq__(self, other: object) -> bool:
        """Compare in constant time, so that no timing tells how much agrees."""
        if not isinstance(other, SecretKey):
            return NotImplemented
        same = hmac.compare_digest(self._signer.secret(), other._signer.secret())
        return same and self.curve == other.curve

    def __hash__(self) -> int:
        return hash(self.public_key)

    def __repr__(self) -> str:
        curve = getattr(self, "curve", "?")  # a traceback may show one that was not finished
        return f"<SecretKey {curve}:… hidden>"

    def __setattr__(self, name: str, value: object) -> Never:
        """Stay what was made: a public key beside another secret would sign in vain."""
        del value
        msg = f"a SecretKey does not change; {name} cannot be set"
        raise AttributeError(msg)

    def __reduce__(self) -> Never:
        """Refuse to be pickled."""
        msg = "a SecretKey is never pickled; write reveal() where it is to be kept"
        raise TypeError(msg)

    def __copy__(self) -> Self:
        """Stay one object: it never changes."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Stay one object: it never changes."""
        return self


@dataclass(frozen=True, slots=True)
class Credentials:
    """
    What a NEAR CLI credentials file holds.

    Parameters
    ----------
    account_id
        Whose key it is; None in files that do not say.
    secret_key
        The key.
    """

    account_id: AccountId | None
    secret_key: SecretKey

    @classmethod
    def from_text(cls, text: str | bytes) -> Self:
        """
        Read a credentials file.

        Parameters
        ----------
        text
            What the file holds: JSON with ``public_key`` and ``private_key`` (or
            ``secret_key``), and mostly ``account_id``.

        Returns
        -------
        credentials
            The account id and its key.

        Raises
        ------
        InvalidRequestError
            If it is no such file, or its two keys are no pair. The sentence shows
            nothing of it.
        """
        found, name = _read_file(text)
        del text
        key = SecretKey(_settled(found, "credentials", _FILE_RULE))
        return cls(None if name is None else account_id(name), key)


def _settled(found: curves.Signer | LedgerError | None, field: str, rule: str) -> curves.Signer:
    """Raise what was found to be wrong, now that no frame holds the secret."""
    if found is None:
        raise hidden(field, rule)
    if isinstance(found, LedgerError):
        raise found
    return found


def _read(text: object) -> curves.Signer | LedgerError | None:
    """Read `<curve>:<base58>`; what is wrong is returned."""
    curve, written = split_key(text)
    for size in _SECRET_SIZES.get(curve, ()):
        data = decode_base58(written, size)
        if data is not None:
            return curves.signer(curve, data)
    return None


def _read_file(text: str | bytes) -> tuple[curves.Signer | LedgerError | None, str | None]:
    """Read key and account id of a credentials file; what is wrong is returned."""
    try:
        fields = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None, None
    if not isinstance(fields, dict):
        return None, None
    found = _read(fields.get("private_key") or fields.get("secret_key"))
    if found is None or isinstance(found, LedgerError):
        return found, None
    if _stated(fields.get("public_key")) != found.public:
        return None, None
    name = fields.get("account_id") or fields.get("implicit_account_id")
    return found, name


def _stated(written: object) -> bytes | None:
    """Read the public key that stands beside a secret one."""
    if not isinstance(written, str):
        return None
    try:
        return PublicKey.from_text(written).data
    except InvalidRequestError:
        return None
