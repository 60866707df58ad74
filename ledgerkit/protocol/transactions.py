"""
Transactions: built, encoded, hashed, signed, verified and decoded, byte for byte.

One class serves both versions. Version 1 adds the index of a gas key's nonce and strict nonces,
which are options here, so code that sends or shows a transaction works with either version.
"""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, Self

from ledgerkit import units
from ledgerkit.errors import InvalidRequestError, cut
from ledgerkit.protocol import borsh, types
from ledgerkit.protocol.actions import (
    Action,
    FunctionCall,
    UniversalStateInit,
    action_list,
    check_pair,
    deposit_of,
    encode_nonce,
    read_nonce,
    with_delegated,
)
from ledgerkit.protocol.derived_ids import universal_account_id
from ledgerkit.protocol.types import AccountId, CryptoHash, PublicKey, Signature
from ledgerkit.units import U64_MAX
from ledgerkit.validation import HASH_BYTES, integer, one_of

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.protocol.keys import SecretKey

_MODES = ("monotonic", "strict")  # in the order of their tags
_LONGEST_SHOWN = 40  # characters of a method name
_MAX_DESCRIBED = 4  # actions

NonceMode = Literal["monotonic", "strict"]


class _Base64(borsh.Borsh):
    """A value that is sent as base64."""

    @classmethod
    def from_base64(cls, text: str) -> Self:
        """
        Decode the base64 of the binary form.

        Parameters
        ----------
        text
            The base64 alone.

        Returns
        -------
        value
            The value. The signature of a signed transaction is not verified: call `verify`.

        Raises
        ------
        DecodeError
            If the text is not base64, or not that of such a value.
        """
        return cls.decode(borsh.decode_base64(text, cls.__name__))

    def to_base64(self) -> str:
        """
        Encode the binary form as base64.

        Returns
        -------
        text
            One line.
        """
        return binascii.b2a_base64(self.encode(), newline=False).decode()


@dataclass(frozen=True, init=False, repr=False)
class Transaction(_Base64):
    """
    A transaction before it is signed.

    Parameters
    ----------
    signer_id
        The account that signs and pays.
    public_key
        The key that signs.
    nonce
        Greater than the last nonce of that key.
    receiver_id
        The account that the actions are executed on.
    block_hash
        A recent block; the transaction expires about a day after it.
    actions
        The actions, executed in order and all or none.
    version
        0, or 1 if one of the next two parameters is used.
    nonce_index
        The index of a gas key's nonce; None for an ordinary key.
    nonce_mode
        ``strict`` if the nonce must be exactly the next one.

    Raises
    ------
    InvalidRequestError
        If a value has the wrong type or range, or needs the other version.
    """

    signer_id: AccountId
    public_key: PublicKey
    nonce: int
    receiver_id: AccountId
    block_hash: CryptoHash
    actions: tuple[Action, ...]
    version: int = 0
    nonce_index: int | None = None
    nonce_mode: NonceMode = "monotonic"
    packed: bytes = field(init=False, repr=False, compare=False)

    def __init__(  # noqa: PLR0917  # in the order of the bytes
        self,
        signer_id: str,
        public_key: PublicKey | str,
        nonce: int,
        receiver_id: str,
        block_hash: bytes | str,
        actions: Sequence[Action],
        *,
        version: int = 0,
        nonce_index: int | None = None,
        nonce_mode: NonceMode = "monotonic",
    ) -> None:
        is_packed = type(public_key) is PublicKey and public_key.packed
        plain = type(nonce) is int and 0 <= nonce <= U64_MAX
        # Setting the fields of a frozen dataclass one by one takes three times as long, which
        # would be noticeable next to a signature of 15 us.
        fields = self.__dict__
        fields["signer_id"] = types.account_id(signer_id, "signer_id")
        fields["public_key"] = public_key if is_packed else types.public_key(public_key)
        fields["nonce"] = nonce if plain else integer(nonce, "nonce", most=U64_MAX)
        fields["receiver_id"] = types.account_id(receiver_id, "receiver_id")
        plain = type(block_hash) is CryptoHash
        fields["block_hash"] = block_hash if plain else types.crypto_hash(block_hash)
        fields["actions"] = action_list(actions)
        if version != 0 or nonce_index is not None or nonce_mode != "monotonic":
            fields["nonce_index"] = _check_version_1(version, nonce_index, nonce_mode)
            fields["version"], fields["nonce_mode"] = version, nonce_mode
        fields["packed"] = self._encode()

    def encode(self) -> bytes:
        """
        Return the binary form, which was encoded when the transaction was built.

        Returns
        -------
        data
            The bytes that are hashed and signed.
        """
        return self.packed

    def _encode(self) -> bytes:
        is_plain = self.version == 0
        parts = [
            self.signer_id.packed,
            self.public_key.packed,
            borsh.u64(self.nonce) if is_plain else encode_nonce(self.nonce, self.nonce_index),
            self.receiver_id.packed,
            self.block_hash,
            borsh.u32(len(self.actions)),
            *[action.encode() for action in self.actions],
        ]
        if not is_plain:
            parts = [b"\1", *parts, bytes([_MODES.index(self.nonce_mode)])]
        return b"".join(parts)

    @classmethod
    def read(cls, reader: borsh.Reader) -> Self:
        """Read a transaction of either version."""
        # Version 0 has no tag: it begins with a length of at most 64, so its second byte is 0.
        start = reader.position
        is_tagged = reader.data[start + 1 : start + 2] not in (b"", b"\0")
        if is_tagged and reader.u8() != 1:
            raise reader.refuse("the version is unknown", start)
        signer_id, key = types.read_account_id(reader), PublicKey.read(reader)
        nonce, nonce_index = read_nonce(reader) if is_tagged else (reader.u64(), None)
        receiver_id = types.read_account_id(reader)
        block_hash = CryptoHash(reader.fixed(HASH_BYTES))
        actions = reader.items(Action.read)
        options: dict[str, Any] = {}
        if is_tagged:
            mode = _MODES[reader.tag(len(_MODES), "a nonce mode")]
            options = {"version": 1, "nonce_index": nonce_index, "nonce_mode": mode}
        return cls(signer_id, key, nonce, receiver_id, block_hash, actions, **options)

    @property
    def hash(self) -> CryptoHash:
        """The transaction hash, which is signed."""
        cached: CryptoHash | None = self.__dict__.get("_hash")
        if cached is None:
            cached = self.__dict__["_hash"] = CryptoHash.of(self.packed)
        return cached

    @property
    def size(self) -> int:
        """The number of bytes, without a signature."""
        return len(self.packed)

    @property
    def initializes_signer(self) -> bool:
        """True if it initializes its signer, a universal account, with the key that signs."""
        # The signer has no access key yet. Source: NEP-655, and nearcore #16321.
        inits = [a for a in self.actions if isinstance(a, UniversalStateInit)]
        states = [a.decoded for a in inits if universal_account_id(a.state_init) == self.signer_id]
        keys = {key.stored for state in states if state is not None for key in state.access_keys}
        is_own = self.nonce_index is None and self.signer_id == self.receiver_id
        return is_own and self.public_key.stored in keys

    def sign(self, secret_key: SecretKey) -> SignedTransaction:
        """
        Sign the transaction.

        Parameters
        ----------
        secret_key
            The secret key of `public_key`.

        Returns
        -------
        signed
            Ready to be sent; signing again returns the same bytes.

        Raises
        ------
        InvalidRequestError
            If it is the secret key of another public key.
        """
        if secret_key.public_key is not self.public_key:
            check_pair(secret_key, self.public_key)
        signed = object.__new__(SignedTransaction)  # both parts are valid
        fields = signed.__dict__
        fields["transaction"] = self
        fields["signature"] = secret_key.sign(sha256(self.packed).digest())
        return signed

    def to_frame(self) -> pd.DataFrame:
        """
        Build a frame of the transaction.

        Returns
        -------
        transactions
            One row, typed as `schema("transactions")`; its block is not known yet.

        Raises
        ------
        DecodeError
            If the sum of the calls' gas does not fit the column.
        """
        from ledgerkit.frames import build

        return build.of_rows("transactions", [self._row()])

    def _row(self) -> dict[str, Any]:
        calls = [a for a in with_delegated(self.actions) if isinstance(a, FunctionCall)]
        return {
            "block_height": None,
            "shard_id": None,
            "tx_hash": str(self.hash),
            "signer_id": str(self.signer_id),
            "receiver_id": str(self.receiver_id),
            "nonce": self.nonce,
            "public_key": str(self.public_key),
            "actions": "+".join(action.name for action in self.actions),
            "method_name": "+".join(call.method_name for call in calls) or None,
            "deposit": sum(map(deposit_of, self.actions)),
            "gas_attached": sum(call.gas for call in calls),
            "kind": "signed",
            "content": None,
        }

    def __repr__(self) -> str:
        index = "" if self.nonce_index is None else f" at index {self.nonce_index}"
        strict = " strict" if self.nonce_mode == "strict" else ""
        return (
            f"<Transaction {self.signer_id} -> {self.receiver_id}: {_summary(self.actions)};"
            f"{strict} nonce {self.nonce}{index}>"
        )


@dataclass(frozen=True, repr=False)
class SignedTransaction(_Base64, borsh.Record):
    """
    A transaction and its signature, ready to be sent.

    Parameters
    ----------
    transaction
        The transaction.
    signature
        The signature of the transaction's hash; `verify` checks it.

    Raises
    ------
    InvalidRequestError
        If a part has the wrong type.
    """

    transaction: Transaction = field(metadata={"borsh": borsh.nested(Transaction, "a Transaction")})
    signature: Signature = field(metadata={"borsh": types.SIGNATURE})

    def encode(self) -> bytes:
        """
        Encode the signed transaction.

        Returns
        -------
        data
            Both parts, which were encoded when they were built.
        """
        return self.transaction.packed + self.signature.packed

    @property
    def hash(self) -> CryptoHash:
        """The transaction hash, which does not depend on the signature."""
        return self.transaction.hash

    @property
    def size(self) -> int:
        """The number of bytes that the chain counts: those that were signed."""
        return self.transaction.size

    @property
    def wire_size(self) -> int:
        """The number of bytes that are sent, with the signature."""
        return len(self.transaction.packed) + len(self.signature.packed)

    def verify(self) -> bool:
        """
        Return True if the transaction's public key signed it.

        Returns
        -------
        signed
            False also for a malformed signature or another curve. Only the chain knows whether
            the key is an access key of the account.
        """
        return self.transaction.public_key.verify(self.hash, self.signature)

    def to_frame(self) -> pd.DataFrame:
        """
        Build a frame of the transaction.

        Returns
        -------
        transactions
            One row, typed as `schema("transactions")`; its block is not known yet.
        """
        return self.transaction.to_frame()

    def __repr__(self) -> str:
        return f"<Signed{repr(self.transaction)[1:-1]}, hash {self.hash}>"


def _check_version_1(version: int, nonce_index: int | None, nonce_mode: str) -> int | None:
    one_of(nonce_mode, "nonce_mode", _MODES)
    if type(version) is not int or version != 1:
        expected = "0, or 1 with nonce_index= or nonce_mode="
        raise InvalidRequestError.refuse("version", version, expected)
    return None if nonce_index is None else integer(nonce_index, "nonce_index", most=borsh.U16_MAX)


def _summary(actions: Sequence[Action]) -> str:
    texts = [_describe(action) for action in actions[:_MAX_DESCRIBED]]
    omitted = len(actions) - len(texts)
    return ", ".join([*texts, *([f"{omitted} more"] if omitted else [])]) or "no actions"


def _describe(action: Action) -> str:
    deposit = deposit_of(action)
    amount = f" {units.near_text(deposit)}" if deposit else ""
    if not isinstance(action, FunctionCall):
        return action.name + amount
    method = cut(action.method_name, _LONGEST_SHOWN)
    return f"{method}() with {units.gas_text(action.gas)}{' and' if amount else ''}{amount}"
