"""Messages signed for a service, not for the chain (NEP-413)."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Self

from ledgerkit.errors import InvalidRequestError
from ledgerkit.protocol.borsh import Borsh, Reader, option, text, u32
from ledgerkit.protocol.types import CryptoHash, PublicKey, Signature, plain_bytes, plain_text

if TYPE_CHECKING:
    from ledgerkit.protocol.keys import SecretKey

# 2**31 plus the number of the proposal, so that no transaction can be taken for one.
PREFIX = u32(2**31 + 413)
NONCE_BYTES = 32


@dataclass(frozen=True, slots=True)
class OffchainMessage(Borsh):
    """
    A message that proves to a service who signed it.

    Parameters
    ----------
    message
        What the signer sees and agrees to.
    nonce
        32 bytes that the service has not seen before.
    recipient
        For whom it is, such as ``"myapp.com"``.
    callback_url
        Where a wallet sends the signature; None where it stays here.

    Raises
    ------
    InvalidRequestError
        If a field is of another kind or size.
    """

    message: str
    nonce: bytes
    recipient: str
    callback_url: str | None = None

    def __post_init__(self) -> None:
        """Check the fields."""
        plain_text(self.message, "message")
        object.__setattr__(self, "nonce", plain_bytes(self.nonce, "nonce"))
        if len(self.nonce) != NONCE_BYTES:
            raise InvalidRequestError.refuse("nonce", self.nonce, f"{NONCE_BYTES} bytes")
        plain_text(self.recipient, "recipient")
        if self.callback_url is not None:
            plain_text(self.callback_url, "callback_url")

    @property
    def hash(self) -> CryptoHash:
        """What is signed."""
        return CryptoHash(sha256(PREFIX + self.encode()).digest())

    def sign(self, secret_key: SecretKey) -> Signature:
        """
        Sign it.

        Parameters
        ----------
        secret_key
            A full access key of the account that speaks.

        Returns
        -------
        signature
            Services mostly expect the base64 of its `data`.
        """
        return secret_key.sign(self.hash)

    def verify(self, public_key: PublicKey, signature: Signature) -> bool:
        """
        Tell whether the owner of a key signed this.

        Parameters
        ----------
        public_key
            The key; whether it is the account's, only the chain knows.
        signature
            What is said to be the signature.

        Returns
        -------
        signed
            False also for a malformed signature.
        """
        return public_key.verify(self.hash, signature)

    def encode(self) -> bytes:
        """Write the binary form, without the prefix that the hash is made with."""
        callback = option(None if self.callback_url is None else text(self.callback_url))
        return text(self.message) + self.nonce + text(self.recipient) + callback

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Take one."""
        message, nonce = reader.text(), reader.fixed(NONCE_BYTES)
        return cls(message, nonce, reader.text(), reader.option(reader.text))
