"""
The fifteen actions and what is delegated in them, with the specification's names.

Each class checks its fields once, when it is made; its Borsh form is then written without
looking again. Text is accepted where a key or an account id belongs, and becomes one. A
list of actions may hold whatever the format can say: whether the chain allows it (how many
actions, how much gas) is the chain's to judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from ledgerkit.errors import InvalidRequestError
from ledgerkit.protocol.access_keys import AccessKey
from ledgerkit.protocol.borsh import Borsh, Reader, blob, items, text, u16, u32, u64, u128
from ledgerkit.protocol.types import (
    U16_MAX,
    U64_MAX,
    CryptoHash,
    PublicKey,
    Signature,
    account_id,
    contract_id,
    encode_contract_id,
    plain_bytes,
    plain_text,
    public_key,
    read_account_id,
    read_contract_id,
    signature,
    whole,
)
from ledgerkit.units import U128_MAX

if TYPE_CHECKING:
    from ledgerkit.protocol.keys import SecretKey

_set = object.__setattr__  # how a frozen dataclass settles its own fields
_SHOWN = 200
_CALL = Struct("<BI").pack  # the tag of a call and the length of its method's name
_LISTS = (list, tuple)  # written out in a check, the pair would be made each time

# 2**30 plus the number of the proposal, so that no transaction can be taken for one.
DELEGATE_PREFIX = u32(2**30 + 366)
DELEGATE_V2_PREFIX = u32(2**30 + 611)


def shown(data: bytes) -> str:
    """Show short bytes, and how many there are of long ones."""
    return repr(data) if len(data) <= _SHOWN else f"<{len(data)} bytes>"


class Action(Borsh):
    """One thing a transaction does; `tag` is its place in the list that the chain knows."""

    __slots__ = ()
    tag: ClassVar[int]

    @property
    def name(self) -> str:
        """The specification's name."""
        return type(self).__name__

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields, after the tag."""
        raise NotImplementedError

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Take one action, of this class."""
        at = reader.at
        action = read_action(reader)
        if not isinstance(action, cls):
            raise reader.refuse(f"a {action.name} stands there", at)
        return action


@dataclass(frozen=True, slots=True)
class CreateAccount(Action):
    """Create the receiver."""

    tag: ClassVar[int] = 0

    def encode(self) -> bytes:
        """Write the binary form."""
        return b"\0"

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take nothing."""
        del reader
        return cls()


@dataclass(frozen=True, slots=True, repr=False)
class DeployContract(Action):
    """
    Put code on the receiver.

    Parameters
    ----------
    code
        The compiled contract.
    """

    code: bytes
    tag: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Check the field."""
        _set(self, "code", plain_bytes(self.code, "code"))

    def encode(self) -> bytes:
        """Write the binary form."""
        return b"\1" + blob(self.code)

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields."""
        return cls(reader.blob())

    def __repr__(self) -> str:
        return f"DeployContract(code={shown(self.code)})"


@dataclass(frozen=True, init=False, repr=False)
class FunctionCall(Action):
    """
    Call a method of the receiver's contract.

    Parameters
    ----------
    method_name
        The method.
    args
        Its arguments, mostly JSON.
    gas
        How much gas to attach.
    deposit
        How many yoctoNEAR to attach.
    """

    method_name: str
    args: bytes
    gas: int
    deposit: int = 0
    tag: ClassVar[int] = 2

    def __init__(self, method_name: str, args: bytes, gas: int, deposit: int = 0) -> None:
        # The most frequent action: through setattr, as generated, it would take twice as long.
        fields = self.__dict__
        plain = type(method_name) is str and method_name.isascii()
        fields["method_name"] = method_name if plain else plain_text(method_name, "method_name")
        fields["args"] = args if type(args) is bytes else plain_bytes(args, "args")
        plain = type(gas) is int and 0 <= gas <= U64_MAX
        fields["gas"] = gas if plain else whole(gas, "gas", U64_MAX)
        plain = type(deposit) is int and 0 <= deposit <= U128_MAX
        fields["deposit"] = deposit if plain else whole(deposit, "deposit", U128_MAX)

    def encode(self) -> bytes:
        """Write the binary form."""
        name, args = self.method_name.encode(), self.args
        numbers = (self.gas | self.deposit << 64).to_bytes(24, "little")  # they are neighbours
        return b"".join((_CALL(2, len(name)), name, u32(len(args)), args, numbers))

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields."""
        return cls(reader.text(), reader.blob(), reader.u64(), reader.u128())

    def __repr__(self) -> str:
        return (
            f"FunctionCall(method_name={self.method_name!r}, args={shown(self.args)},"
            f" gas={self.gas}, deposit={self.deposit})"
        )


@dataclass(frozen=True, slots=True, init=False)  # the one that is made most often
class Transfer(Action):
    """
    Send NEAR to the receiver.

    Parameters
    ----------
    deposit
        How many yoctoNEAR.
    """

    deposit: int
    tag: ClassVar[int] = 3

    def __init__(self, deposit: int) -> None:
        _set(self, "deposit", whole(deposit, "deposit", U128_MAX))

    def encode(self) -> bytes:
        """Write the binary form."""
        return b"\3" + self.deposit.to_bytes(16, "little")

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields."""
        return cls(reader.u128())


@dataclass(frozen=True, slots=True)
class Stake(Action):
    """
    Stake the receiver's own tokens, to validate.

    Parameters
    ----------
    stake
        How many yoctoNEAR to have at stake.
    public_key
        The validator's key.
    """

    stake: int
    public_key: PublicKey
    tag: ClassVar[int] = 4

    def __post_init__(self) -> None:
        """Check the fields."""
        _set(self, "stake", whole(self.stake, "stake", U128_MAX))
        _set(self, "public_key", public_key(self.public_key))

    def encode(self) -> bytes:
        """Write the binary form."""
        return b"\4" + u128(self.stake) + self.public_key.encode()

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields."""
        return cls(reader.u128(), PublicKey.read(reader))


@dataclass(frozen=True, slots=True)
class AddKey(Action):
    """
    Let a key sign for the receiver.

    Parameters
    ----------
    public_key
        The key.
    access_key
        What it may sign; everything, unless said otherwise.
    """

    public_key: PublicKey
    access_key: AccessKey = field(default_factory=AccessKey)
    tag: ClassVar[int] = 5

    def __post_init__(self) -> None:
        """Check the fields."""
        _set(self, "public_key", public_key(self.public_key))
        if not isinstance(self.access_key, AccessKey):
            raise InvalidRequestError.refuse("access_key", self.access_key, "an AccessKey")

    def encode(self) -> bytes:
        """Write the binary form."""
        return b"\5" + self.public_key.encode() + self.access_key.encode()

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields."""
        return cls(PublicKey.read(reader), AccessKey.read(reader))


@dataclass(frozen=True, slots=True)
class DeleteKey(Action):
    """
    Let a key sign for the receiver no more.

    Parameters
    ----------
    public_key
        The key.
    """

    public_key: PublicKey
    tag: ClassVar[int] = 6

    def __post_init__(self) -> None:
        """Check the field."""
        _set(self, "public_key", public_key(self.public_key))

    def encode(self) -> bytes:
        """Write the binary form."""
        return b"\6" + self.public_key.encode()

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields."""
        return cls(PublicKey.read(reader))


@dataclass(frozen=True, slots=True)
class DeleteAccount(Action):
    """
    Delete the receiver.

    Parameters
    ----------
    beneficiary_id
        Who gets what it holds.
    """

    beneficiary_id: str
    tag: ClassVar[int] = 7

    def __post_init__(self) -> None:
        """Check the field."""
        _set(self, "beneficiary_id", account_id(self.beneficiary_id, "beneficiary_id"))

    def encode(self) -> bytes:
        """Write the binary form."""
        return b"\7" + text(self.beneficiary_id)

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields."""
        return cls(read_account_id(reader))


# Delegated actions ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DelegateAction(Borsh):
    """
    What somebody wants done and a relayer pays for (NEP-366).

    Parameters
    ----------
    sender_id
        Who wants it.
    receiver_id
        To whom it is done.
    actions
        What is done; none of them delegated in turn.
    nonce
        Above the one of the sender's key.
    max_block_height
        The last block at which it may happen.
    public_key
        The sender's key.
    """

    sender_id: str
    receiver_id: str
    actions: Sequence[Action]
    nonce: int
    max_block_height: int
    public_key: PublicKey

    def __post_init__(self) -> None:
        """Check the fields."""
        _check_delegate(self)

    @property
    def hash(self) -> CryptoHash:
        """What the sender signs."""
        return CryptoHash(sha256(DELEGATE_PREFIX + self.encode()).digest())

    def sign(self, secret_key: SecretKey) -> Delegate:
        """
        Sign it, for a relayer to send.

        Parameters
        ----------
        secret_key
            The sender's, of the public key that stands in it.

        Returns
        -------
        action
            To be put in the relayer's transaction to the sender.

        Raises
        ------
        InvalidRequestError
            If the key is another one.
        """
        check_pair(secret_key, self.public_key)
        return Delegate(self, secret_key.sign(self.hash))

    def encode(self) -> bytes:
        """Write the binary form."""
        return (
            text(self.sender_id)
            + text(self.receiver_id)
            + items([action.encode() for action in self.actions])
            + u64(self.nonce)
            + u64(self.max_block_height)
            + self.public_key.encode()
        )

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Take one."""
        sender_id, receiver_id = read_account_id(reader), read_account_id(reader)
        actions = reader.items(lambda: read_action(reader, delegated=True))
        nonce, max_block_height = reader.u64(), reader.u64()
        return cls(sender_id, receiver_id, actions, nonce, max_block_height, PublicKey.read(reader))


@dataclass(frozen=True, slots=True)
class DelegateActionV2(Borsh):
    """
    What somebody wants done and a relayer pays for, with a gas key if wanted.

    Parameters
    ----------
    sender_id
        Who wants it.
    receiver_id
        To whom it is done.
    actions
        What is done; none of them delegated in turn.
    nonce
        Above the one of the sender's key.
    max_block_height
        The last block at which it may happen.
    public_key
        The sender's key.
    nonce_index
        Which of a gas key's nonces; None for an ordinary key.
    """

    sender_id: str
    receiver_id: str
    actions: Sequence[Action]
    nonce: int
    max_block_height: int
    public_key: PublicKey
    nonce_index: int | None = None

    def __post_init__(self) -> None:
        """Check the fields."""
        _check_delegate(self)
        if self.nonce_index is not None:
            _set(self, "nonce_index", whole(self.nonce_index, "nonce_index", U16_MAX))

    @property
    def hash(self) -> CryptoHash:
        """What the sender signs."""
        return CryptoHash(sha256(DELEGATE_V2_PREFIX + self.encode()).digest())

    def sign(self, secret_key: SecretKey) -> DelegateV2:
        """
        Sign it, for a relayer to send.

        Parameters
        ----------
        secret_key
            The sender's, of the public key that stands in it.

        Returns
        -------
        action
            To be put in the relayer's transaction to the sender.

        Raises
        ------
        InvalidRequestError
            If the key is another one.
        """
        check_pair(secret_key, self.public_key)
        return DelegateV2(self, secret_key.sign(self.hash))

    def encode(self) -> bytes:
        """Write the binary form, behind the tag of its version."""
        return (
            b"\0"
            + text(self.sender_id)
            + text(self.receiver_id)
            + items([action.encode() for action in self.actions])
            + encode_nonce(self.nonce, self.nonce_index)
            + u64(self.max_block_height)
            + self.public_key.encode()
        )

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Take one."""
        reader.tag(1, "a versioned delegate action")
        sender_id, receiver_id = read_account_id(reader), read_account_id(reader)
        actions = reader.items(lambda: read_action(reader, delegated=True))
        nonce, nonce_index = read_nonce(reader)
        height = reader.u64()
        key = PublicKey.read(reader)
        return cls(sender_id, receiver_id, actions, nonce, height, key, nonce_index)


def _check_delegate(self: DelegateAction | DelegateActionV2) -> None:
    """Check the fields that both versions have."""
    _set(self, "sender_id", account_id(self.sender_id, "sender_id"))
    _set(self, "receiver_id", account_id(self.receiver_id, "receiver_id"))
    actions = action_list(self.actions)
    if any(isinstance(action, Delegate | DelegateV2) for action in actions):
        rule = "actions that are not delegated in turn"
        raise InvalidRequestError.refuse("actions", [a.name for a in actions], rule)
    _set(self, "actions", actions)
    _set(self, "nonce", whole(self.nonce, "nonce", U64_MAX))
    height = whole(self.max_block_height, "max_block_height", U64_MAX)
    _set(self, "max_block_height", height)
    _set(self, "public_key", public_key(self.public_key))


def check_pair(secret_key: SecretKey, stated: PublicKey) -> None:
    """Refuse a secret key that is not the stated public key's."""
    own = secret_key.public_key
    if own is not stated and own != stated:
        rule = f"the key that signs, which is {own}"
        raise InvalidRequestError.refuse("public_key", str(stated), rule)


def encode_nonce(nonce: int, nonce_index: int | None) -> bytes:
    """Pack a nonce of a key, or of one lane of a gas key."""
    if nonce_index is None:
        return b"\0" + u64(nonce)
    return b"\1" + u64(nonce) + u16(nonce_index)


def read_nonce(reader: Reader) -> tuple[int, int | None]:
    """Take a nonce, and which lane it is of."""
    gas_key = reader.tag(2, "a nonce")
    return reader.u64(), reader.u16() if gas_key else None


@dataclass(frozen=True, slots=True)
class Delegate(Action):
    """
    Do what somebody else signed; the signer of the transaction pays.

    Parameters
    ----------
    delegate_action
        What is wanted.
    signature
        The sender's.
    """

    delegate_action: DelegateAction
    signature: Signature
    tag: ClassVar[int] = 8

    def __post_init__(self) -> None:
        """Check the fields."""
        _check_signed(self, DelegateAction)

    def verify(self) -> bool:
        """
        Tell whether the sender signed this.

        Returns
        -------
        signed
            False also for a malformed signature.
        """
        wanted = self.delegate_action
        return wanted.public_key.verify(wanted.hash, self.signature)

    def encode(self) -> bytes:
        """Write the binary form."""
        return b"\x08" + self.delegate_action.encode() + self.signature.encode()

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields."""
        return cls(DelegateAction.read(reader), Signature.read(reader))


def _check_signed(self: Delegate | DelegateV2, kind: type[Borsh]) -> None:
    """Check the two parts of a signed delegate action."""
    if not isinstance(self.delegate_action, kind):
        raise InvalidRequestError.refuse("delegate_action", self.delegate_action, kind.__name__)
    _set(self, "signature", signature(self.signature))


# Global contracts and accounts made of state ----------------------------------------------

_MODES = ("CodeHash", "AccountId")


@dataclass(frozen=True, slots=True, repr=False)
class DeployGlobalContract(Action):
    """
    Publish code that other accounts may use.

    Parameters
    ----------
    code
        The compiled contract.
    deploy_mode
        Whether users name it by ``CodeHash``, which never changes, or by ``AccountId``,
        whose owner may change the code.
    """

    code: bytes
    deploy_mode: Literal["CodeHash", "AccountId"]
    tag: ClassVar[int] = 9

    def __post_init__(self) -> None:
        """Check the fields."""
        _set(self, "code", plain_bytes(self.code, "code"))
        if self.deploy_mode not in _MODES:
            rule = f"one of {', '.join(_MODES)}"
            raise InvalidRequestError.refuse("deploy_mode", self.deploy_mode, rule)

    def encode(self) -> bytes:
        """Write the binary form."""
        return b"\x09" + blob(self.code) + bytes([_MODES.index(self.deploy_mode)])

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields."""
        code = reader.blob()
        by_account = reader.tag(len(_MODES), "a deploy mode")
        return cls(code, "AccountId" if by_account else "CodeHash")

    def __repr__(self) -> str:
        return f"DeployGlobalContract(code={shown(self.code)}, deploy_mode={self.deploy_mode!r})"


@dataclass(frozen=True, slots=True)
class UseGlobalContract(Action):
    """
    Let the receiver run published code.

    Parameters
    ----------
    contract_identifier
        A `CryptoHash` for code that never changes, or the account id that publishes it.
    """

    contract_identifier: CryptoHash | str
    tag: ClassVar[int] = 10

    def __post_init__(self) -> None:
        """Check the field."""
        named = contract_id(self.contract_identifier, "contract_identifier")
        _set(self, "contract_identifier", named)

    def encode(self) -> bytes:
        """Write the binary form."""
        return b"\x0a" + encode_contract_id(self.contract_identifier)

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields."""
        return cls(read_contract_id(reader))


@dataclass(frozen=True, slots=True)
class StateInit(Borsh):
    """
    What a deterministic account starts with, and what its id is made of.

    Parameters
    ----------
    code
        A `CryptoHash`, or the account id that publishes the code.
    data
        The first records of its state.
    """

    code: CryptoHash | str
    data: Mapping[bytes, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the fields and sort the records, as their encoding is."""
        _set(self, "code", contract_id(self.code, "code"))
        if not isinstance(self.data, Mapping):
            raise InvalidRequestError.refuse("data", self.data, "a mapping of bytes to bytes")
        pairs = ((plain_bytes(k, "data"), plain_bytes(v, "data")) for k, v in self.data.items())
        _set(self, "data", dict(sorted(pairs)))

    def __hash__(self) -> int:
        return hash(self.encode())

    def encode(self) -> bytes:
        """Write the binary form, behind the tag of its version."""
        records = [blob(key) + blob(value) for key, value in self.data.items()]
        return b"\0" + encode_contract_id(self.code) + items(records)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Take one."""
        reader.tag(1, "a state init")
        code = read_contract_id(reader)
        at = reader.at
        records = reader.items(lambda: (reader.blob(), reader.blob()), 8)
        keys = [key for key, _ in records]
        if any(key >= following for key, following in pairwise(keys)):
            raise reader.refuse("records are not in the order of their keys", at)
        return cls(code, dict(records))


@dataclass(frozen=True, slots=True)
class DeterministicStateInit(Action):
    """
    Create the receiver, an account made of its first state.

    Parameters
    ----------
    state_init
        What it starts with.
    deposit
        How many yoctoNEAR it gets for its storage.
    """

    state_init: StateInit
    deposit: int = 0
    tag: ClassVar[int] = 11

    def __post_init__(self) -> None:
        """Check the fields."""
        if not isinstance(self.state_init, StateInit):
            raise InvalidRequestError.refuse("state_init", self.state_init, "a StateInit")
        _set(self, "deposit", whole(self.deposit, "deposit", U128_MAX))

    def encode(self) -> bytes:
        """Write the binary form."""
        return b"\x0b" + self.state_init.encode() + u128(self.deposit)

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields."""
        return cls(StateInit.read(reader), reader.u128())


# Gas keys -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TransferToGasKey(Action):
    """
    Fill a gas key of the receiver.

    Parameters
    ----------
    public_key
        The gas key.
    deposit
        How many yoctoNEAR.
    """

    public_key: PublicKey
    deposit: int
    tag: ClassVar[int] = 12

    def __post_init__(self) -> None:
        """Check the fields."""
        _set(self, "public_key", public_key(self.public_key))
        _set(self, "deposit", whole(self.deposit, "deposit", U128_MAX))

    def encode(self) -> bytes:
        """Write the binary form."""
        return b"\x0c" + self.public_key.encode() + u128(self.deposit)

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields."""
        return cls(PublicKey.read(reader), reader.u128())


@dataclass(frozen=True, slots=True)
class WithdrawFromGasKey(Action):
    """
    Take NEAR back from a gas key of the receiver.

    Parameters
    ----------
    public_key
        The gas key.
    amount
        How many yoctoNEAR.
    """

    public_key: PublicKey
    amount: int
    tag: ClassVar[int] = 13

    def __post_init__(self) -> None:
        """Check the fields."""
        _set(self, "public_key", public_key(self.public_key))
        _set(self, "amount", whole(self.amount, "amount", U128_MAX))

    def encode(self) -> bytes:
        """Write the binary form."""
        return b"\x0d" + self.public_key.encode() + u128(self.amount)

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields."""
        return cls(PublicKey.read(reader), reader.u128())


@dataclass(frozen=True, slots=True)
class DelegateV2(Action):
    """
    Do what somebody else signed, second version; protocol versions 85 and 86 know it.

    Parameters
    ----------
    delegate_action
        What is wanted.
    signature
        The sender's.
    """

    delegate_action: DelegateActionV2
    signature: Signature
    tag: ClassVar[int] = 14

    def __post_init__(self) -> None:
        """Check the fields."""
        _check_signed(self, DelegateActionV2)

    def verify(self) -> bool:
        """
        Tell whether the sender signed this.

        Returns
        -------
        signed
            False also for a malformed signature.
        """
        wanted = self.delegate_action
        return wanted.public_key.verify(wanted.hash, self.signature)

    def encode(self) -> bytes:
        """Write the binary form."""
        return b"\x0e" + self.delegate_action.encode() + self.signature.encode()

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields."""
        return cls(DelegateActionV2.read(reader), Signature.read(reader))


# Borsh writes the variant's position: appending is safe, sorting is not.
ACTIONS: tuple[type[Action], ...] = (
    CreateAccount,
    DeployContract,
    FunctionCall,
    Transfer,
    Stake,
    AddKey,
    DeleteKey,
    DeleteAccount,
    Delegate,
    DeployGlobalContract,
    UseGlobalContract,
    DeterministicStateInit,
    TransferToGasKey,
    WithdrawFromGasKey,
    DelegateV2,
)


def read_action(reader: Reader, *, delegated: bool = False) -> Action:
    """Take an action of any kind; a delegated one is not delegated in turn."""
    at = reader.at
    kind = ACTIONS[reader.tag(len(ACTIONS), "an action")]
    if delegated and kind in (Delegate, DelegateV2):
        raise reader.refuse(f"a {kind.__name__} is within a delegated action", at)
    return kind.body(reader)


def action_list(value: Any) -> tuple[Action, ...]:
    """Check a list of actions."""
    if isinstance(value, _LISTS):
        for action in value:
            if not isinstance(action, Action):
                break
        else:
            return tuple(value)
    raise InvalidRequestError.refuse("actions", value, "a list of actions, such as [Transfer(1)]")
