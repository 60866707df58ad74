"""Messages that are signed for a service, not for the chain (NEP-413)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ledgerkit.errors import InvalidRequestError
from ledgerkit.protocol.borsh import TEXT, Codec, Record, optional, u32
from ledgerkit.protocol.types import CryptoHash, PublicKey, Signature
from ledgerkit.validation import raw_bytes

if TYPE_CHECKING:
    from ledgerkit.protocol.keys import SecretKey

# 2**31 plus the number of the NEP, so that no transaction has the same bytes (near/NEPs#461).
PREFIX = u32(2**31 + 413)
NONCE_BYTES = 32


def _check_nonce(value: object, name: str) -> bytes:
    nonce = raw_bytes(value, name)
    if len(nonce) != NONCE_BYTES:
        raise InvalidRequestError.refuse(name, nonce, f"{NONCE_BYTES} bytes")
    return nonce


_NONCE = Codec(_check_nonce, bytes, lambda reader: reader.fixed(NONCE_BYTES))


@dataclass(frozen=True, slots=True)
class OffchainMessage(Record):
    """
    A message that proves to a service which key signed it.

    Parameters
    ----------
    message
        The text that the signer sees and agrees to.
    nonce
        32 bytes that the service has not seen before.
    recipient
        The service, such as ``"myapp.com"``.
    callback_url
        The address that a wallet sends the signature to; None if it is not sent.

    Raises
    ------
    InvalidRequestError
        If a field has another type or size.
    """

    message: str = field(metadata={"borsh": TEXT})
    nonce: bytes = field(metadata={"borsh": _NONCE})
    recipient: str = field(metadata={"borsh": TEXT})
    callback_url: str | None = field(default=None, metadata={"borsh": optional(TEXT)})

    @property
    def hash(self) -> CryptoHash:
        """The hash that is signed."""
        return CryptoHash.of(PREFIX + self.encode())

    def sign(self, secret_key: SecretKey) -> Signature:
        """
        Sign the message.

        Parameters
        ----------
        secret_key
            A full access key of the account.

        Returns
        -------
        signature
            Most services expect the base64 of its `data`.
        """
        return secret_key.sign(self.hash)

    def verify(self, public_key: PublicKey, signature: Signature) -> bool:
        """
        Return True if the owner of a key signed the message.

        Parameters
        ----------
        public_key
            The key. Only the chain knows whether it is a key of the account.
        signature
            The signature to verify.

        Returns
        -------
        signed
            False also for a malformed signature.
        """
        return public_key.verify(self.hash, signature)
