"""
Transactions: built, encoded, hashed, signed, verified and read back, byte for byte.

One class serves both versions. They say the same things; the second adds a lane of a gas
key and strict nonces, which are options here and need ``version=1``. What sends, retries
or shows a transaction need not ask which it has.
"""

from __future__ import annotations

import binascii
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, Self

from ledgerkit import units
from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.protocol import types
from ledgerkit.protocol.actions import (
    Action,
    Delegate,
    DelegateV2,
    DeterministicStateInit,
    FunctionCall,
    Transfer,
    TransferToGasKey,
    action_list,
    check_pair,
    encode_nonce,
    read_action,
    read_nonce,
)
from ledgerkit.protocol.borsh import Borsh, Reader, items, u32, u64
from ledgerkit.protocol.types import (
    HASH_BYTES,
    U16_MAX,
    U64_MAX,
    AccountId,
    CryptoHash,
    PublicKey,
    Signature,
    account_id,
    crypto_hash,
    read_account_id,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from ledgerkit.protocol.keys import SecretKey

_set = object.__setattr__  # how a frozen dataclass settles its own fields
_MODES = ("monotonic", "strict")
_SHOWN = 40  # characters of a method's name

NonceMode = Literal["monotonic", "strict"]


@dataclass(frozen=True, init=False, repr=False)
class Transaction(Borsh):
    """
    What somebody asks of the chain, before it is signed.

    Parameters
    ----------
    signer_id
        Whose key signs, and who pays.
    public_key
        The key that signs.
    nonce
        Above the last one of that key.
    receiver_id
        To whom it is done.
    block_hash
        A recent block; the transaction expires about a day after it.
    actions
        What is done, in order, all or nothing.
    version
        0, or 1 for what the next two parameters say.
    nonce_index
        Which nonce of a gas key; None for an ordinary key.
    nonce_mode
        ``strict`` where the nonce must be the next one exactly.

    Raises
    ------
    InvalidRequestError
        If a value is not of its kind or range, or needs the other version.
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

    def __init__(  # noqa: PLR0917  # in the order of the bytes, as everybody lists them
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
        known = type(public_key) is PublicKey and public_key.packed
        plain = type(nonce) is int and 0 <= nonce <= U64_MAX
        # Straight into the dict: a frozen dataclass takes three times as long field by field,
        # which beside a signature of 20 us would be noticed.
        fields = self.__dict__
        fields["signer_id"] = account_id(signer_id, "signer_id")
        fields["public_key"] = public_key if known else types.public_key(public_key)
        fields["nonce"] = nonce if plain else whole(nonce, "nonce", U64_MAX)
        fields["receiver_id"] = account_id(receiver_id, "receiver_id")
        plain = type(block_hash) is CryptoHash
        fields["block_hash"] = block_hash if plain else crypto_hash(block_hash)
        fields["actions"] = action_list(actions)
        if version != 0 or nonce_index is not None or nonce_mode != "monotonic":
            fields["nonce_index"] = _later(version, nonce_index, nonce_mode)
            fields["version"], fields["nonce_mode"] = version, nonce_mode
        fields["packed"] = self._encode()

    def encode(self) -> bytes:
        """
        Give the binary form, which was written when this was made.

        Returns
        -------
        data
            What is hashed.
        """
        return self.packed

    def _encode(self) -> bytes:
        """Write the binary form."""
        if self.version == 0:
            actions = self.actions
            head = (
                self.signer_id.packed,
                self.public_key.packed,
                u64(self.nonce),
                self.receiver_id.packed,
                self.block_hash,
                u32(len(actions)),
            )
            if len(actions) == 1:
                return b"".join((*head, actions[0].encode()))
            return b"".join((*head, *(action.encode() for action in actions)))
        return b"".join([
            b"\1",
            self.signer_id.packed,
            self.public_key.encode(),
            encode_nonce(self.nonce, self.nonce_index),
            self.receiver_id.packed,
            self.block_hash,
            items([action.encode() for action in self.actions]),
            bytes([_MODES.index(self.nonce_mode)]),
        ])  # fmt: skip

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Take one of either version."""
        # The first begins with a length of at most 64, so its second byte is 0.
        later = reader.data[reader.at + 1 : reader.at + 2] not in (b"", b"\0")
        if later and reader.u8() != 1:
            raise reader.refuse("no such version", reader.at - 1)
        signer_id, key = read_account_id(reader), PublicKey.read(reader)
        nonce, nonce_index = read_nonce(reader) if later else (reader.u64(), None)
        receiver_id, block_hash = read_account_id(reader), CryptoHash(reader.fixed(HASH_BYTES))
        actions = reader.items(lambda: read_action(reader))
        if not later:
            return cls(signer_id, key, nonce, receiver_id, block_hash, actions)
        mode: NonceMode = "strict" if reader.tag(2, "a nonce mode") else "monotonic"
        return cls(
            signer_id,
            key,
            nonce,
            receiver_id,
            block_hash,
            actions,
            version=1,
            nonce_index=nonce_index,
            nonce_mode=mode,
        )

    @classmethod
    def from_base64(cls, text: str) -> Self:
        """
        Read the base64 of the binary form.

        Parameters
        ----------
        text
            Base64, and nothing else.

        Returns
        -------
        transaction
            Not signed.

        Raises
        ------
        DecodeError
            If it is no base64, or not of a transaction.
        """
        return cls.decode(_bytes_of(text, cls.__name__))

    def to_base64(self) -> str:
        """
        Write the binary form as base64.

        Returns
        -------
        text
            On one line.
        """
        return binascii.b2a_base64(self.encode(), newline=False).decode()

    @property
    def hash(self) -> CryptoHash:
        """The transaction's hash, which is what is signed."""
        return CryptoHash(self._digest())

    def _digest(self) -> bytes:
        """Hash the binary form, once."""
        held: bytes | None = self.__dict__.get("_hashed")
        if held is None:
            held = self.__dict__["_hashed"] = sha256(self.packed).digest()
        return held

    @property
    def size(self) -> int:
        """How many bytes it has, without a signature."""
        return len(self.encode())

    def sign(self, secret_key: SecretKey) -> SignedTransaction:
        """
        Sign it.

        Parameters
        ----------
        secret_key
            Of the public key that stands in it.

        Returns
        -------
        signed
            Ready to be sent; signing again gives the same bytes.

        Raises
        ------
        InvalidRequestError
            If the key is another one.
        """
        if secret_key.public_key is not self.public_key:
            check_pair(secret_key, self.public_key)
        signed = object.__new__(SignedTransaction)  # of parts that were checked
        fields = signed.__dict__
        fields["transaction"] = self
        digest = self.__dict__["_hashed"] = sha256(self.packed).digest()
        fields["signature"] = secret_key.sign(digest)
        return signed

    def to_frame(self) -> pd.DataFrame:
        """
        Tabulate it.

        Returns
        -------
        transactions
            One row, typed as `schema("transactions")`; the block is not known yet.

        Raises
        ------
        DecodeError
            If the gas of all calls together does not fit the column.
        """
        from ledgerkit.frames import build

        return build.build_frame("transactions", {k: [v] for k, v in self._row().items()})

    def _row(self) -> dict[str, Any]:
        """Give the values of its row."""
        calls = list(_calls(self.actions))
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
            "deposit": sum(map(_deposit, self.actions)),
            "gas_attached": sum(call.gas for call in calls),
        }

    def __repr__(self) -> str:
        lane = "" if self.nonce_index is None else f" of lane {self.nonce_index}"
        strict = " strict" if self.nonce_mode == "strict" else ""
        return (
            f"<Transaction {self.signer_id} -> {self.receiver_id}: {_told(self.actions)};"
            f"{strict} nonce {self.nonce}{lane}>"
        )


@dataclass(frozen=True, repr=False)
class SignedTransaction(Borsh):
    """
    A transaction and its signature: what is sent.

    Parameters
    ----------
    transaction
        What is asked.
    signature
        Of the transaction's hash. `verify` tells whether it is the right one.

    Raises
    ------
    InvalidRequestError
        If a part is of another kind.
    """

    transaction: Transaction
    signature: Signature

    def __post_init__(self) -> None:
        """Check the two parts."""
        if not isinstance(self.transaction, Transaction):
            raise InvalidRequestError.refuse("transaction", self.transaction, "a Transaction")
        _set(self, "signature", types.signature(self.signature))

    def encode(self) -> bytes:
        """
        Write the binary form.

        Returns
        -------
        data
            What is sent, before base64.
        """
        return self.transaction.packed + self.signature.packed

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Take one."""
        return cls(Transaction.read(reader), Signature.read(reader))

    @classmethod
    def from_base64(cls, text: str) -> Self:
        """
        Read a transaction as it is sent.

        Parameters
        ----------
        text
            Base64, and nothing else.

        Returns
        -------
        signed
            Not verified: `verify` does.

        Raises
        ------
        DecodeError
            If it is no base64, or not of a signed transaction.
        """
        return cls.decode(_bytes_of(text, cls.__name__))

    def to_base64(self) -> str:
        """
        Write it as it is sent.

        Returns
        -------
        text
            On one line.
        """
        data = self.transaction.packed + self.signature.packed
        return binascii.b2a_base64(data, newline=False).decode()

    @property
    def hash(self) -> CryptoHash:
        """The transaction's hash; the signature is no part of it."""
        return self.transaction.hash

    @property
    def size(self) -> int:
        """How many bytes the chain counts: those that were signed."""
        return self.transaction.size

    @property
    def wire_size(self) -> int:
        """How many bytes are sent, with the signature."""
        return len(self.encode())

    def verify(self) -> bool:
        """
        Tell whether the stated key signed exactly this.

        Returns
        -------
        signed
            False also for a malformed signature or another curve. Whether the key is the
            account's, only the chain knows.
        """
        return self.transaction.public_key.verify(self.hash, self.signature)

    def to_frame(self) -> pd.DataFrame:
        """
        Tabulate it.

        Returns
        -------
        transactions
            One row, typed as `schema("transactions")`; the block is not known yet.
        """
        return self.transaction.to_frame()

    def __repr__(self) -> str:
        return f"<Signed{repr(self.transaction)[1:-1]}, hash {self.hash}>"


def _later(version: int, nonce_index: int | None, nonce_mode: str) -> int | None:
    """Check what only the second version can say."""
    if nonce_mode not in _MODES:
        raise InvalidRequestError.refuse("nonce_mode", nonce_mode, f"one of {', '.join(_MODES)}")
    if type(version) is not int or version != 1:
        rule = "0, or 1, which nonce_index= and nonce_mode= need"
        raise InvalidRequestError.refuse("version", version, rule)
    return None if nonce_index is None else whole(nonce_index, "nonce_index", U16_MAX)


def _bytes_of(written: str, what: str) -> bytes:
    """Read base64 of one spelling: padded, without spaces or other characters."""
    try:
        data = binascii.a2b_base64(written, strict_mode=True)
    except (ValueError, TypeError):  # also where it holds more than ASCII
        data = None
    if data is None or binascii.b2a_base64(data, newline=False).decode() != written:
        raise DecodeError(
            f"This is not the base64 of a {what}",
            remedy="Give the base64 text alone, complete, without spaces.",
            path="base64",
        )
    return data


def _each(actions: Sequence[Action]) -> Iterator[Action]:
    """Go through the actions, into delegated ones too."""
    for action in actions:
        yield action
        if isinstance(action, Delegate | DelegateV2):
            yield from action.delegate_action.actions


def _calls(actions: Sequence[Action]) -> Iterator[FunctionCall]:
    """Go through the function calls, the delegated ones too."""
    return (action for action in _each(actions) if isinstance(action, FunctionCall))


def _deposit(action: Action) -> int:
    """Give the yoctoNEAR that an action moves."""
    moves = Transfer | FunctionCall | DeterministicStateInit | TransferToGasKey
    return action.deposit if isinstance(action, moves) else 0


def _told(actions: Sequence[Action]) -> str:
    """Say in few words what actions do."""
    words = [_word(action) for action in actions[:4]]
    more = len(actions) - len(words)
    return ", ".join([*words, *([f"{more} more"] if more > 0 else [])]) or "no actions"


def _word(action: Action) -> str:
    """Say in few words what an action does."""
    deposit = _deposit(action)
    amount = f" {units.near_text(deposit)}" if deposit else ""
    if isinstance(action, FunctionCall):
        method = action.method_name
        shown = method if len(method) <= _SHOWN and method.isprintable() else ascii(method[:_SHOWN])
        return f"{shown}() with {units.gas_text(action.gas)}{' and' if amount else ''}{amount}"
    return action.name + amount
