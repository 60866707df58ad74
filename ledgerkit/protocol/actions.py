"""
The sixteen actions and the delegate actions, under the names they have in nearcore.

An action checks its fields when it is built, so encoding checks nothing. A text is accepted where
a key or an account id belongs, and is parsed. The limits of a transaction, such as the number of
its actions and their gas, are left to the chain to check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.protocol import borsh, types
from ledgerkit.protocol.access_keys import AccessKey
from ledgerkit.protocol.types import CryptoHash, PublicKey, Signature
from ledgerkit.units import U64_MAX, U128_MAX
from ledgerkit.validation import integer, one_of, plain_text, raw_bytes

if TYPE_CHECKING:
    from ledgerkit.protocol.keys import SecretKey

_LONGEST_SHOWN = 200  # bytes
_CALL_HEAD = Struct("<BI").pack  # the tag of a call and the length of its method name
_LISTS = (list, tuple)  # as a constant, because `list | tuple` would be built for each check


class Action(borsh.Variant):
    """One step of a transaction; `tag` is its position in the chain's list of actions."""

    __slots__ = ()
    enum: ClassVar[str] = "an action"

    @property
    def name(self) -> str:
        """The name of the kind of action, such as ``Transfer``."""
        return type(self).__name__

    def __repr__(self) -> str:
        # Actions with bytes use this; the bytes may be a contract of megabytes.
        values = ((name, getattr(self, name)) for name, _ in borsh.layout_of(type(self)))
        return f"{self.name}({', '.join(f'{name}={_short(value)}' for name, value in values)})"


def _short(value: object) -> str:
    is_long = isinstance(value, bytes) and len(value) > _LONGEST_SHOWN
    return f"<{len(value)} bytes>" if is_long else repr(value)  # type: ignore[arg-type]  # bytes


@dataclass(frozen=True, slots=True)
class CreateAccount(Action):
    """Create the receiver."""


@dataclass(frozen=True, slots=True, repr=False)
class DeployContract(Action):
    """
    Deploy a contract to the receiver.

    Parameters
    ----------
    code
        The compiled contract.
    """

    code: bytes = field(metadata={"borsh": borsh.BLOB})


# FunctionCall and Transfer, the most frequent actions, write out by hand what their declared layout
# says: building and encoding one takes 0.8 and 0.3 us instead of 2.5 and 1.0 us, next to 15 us for
# a signature.
@dataclass(frozen=True, init=False, repr=False)
class FunctionCall(Action):
    """
    Call a method of the receiver's contract.

    Parameters
    ----------
    method_name
        The method.
    args
        Its arguments, usually JSON.
    gas
        The gas to attach.
    deposit
        The yoctoNEAR to attach.
    """

    method_name: str = field(metadata={"borsh": borsh.TEXT})
    args: bytes = field(metadata={"borsh": borsh.BLOB})
    gas: int = field(metadata={"borsh": borsh.U64})
    deposit: int = field(default=0, metadata={"borsh": borsh.U128})

    def __init__(self, method_name: str, args: bytes, gas: int, deposit: int = 0) -> None:
        fields = self.__dict__
        plain = type(method_name) is str and method_name.isascii()
        fields["method_name"] = method_name if plain else plain_text(method_name, "method_name")
        fields["args"] = args if type(args) is bytes else raw_bytes(args, "args")
        plain = type(gas) is int and 0 <= gas <= U64_MAX
        fields["gas"] = gas if plain else integer(gas, "gas", most=U64_MAX)
        plain = type(deposit) is int and 0 <= deposit <= U128_MAX
        fields["deposit"] = deposit if plain else integer(deposit, "deposit", most=U128_MAX)

    def encode(self) -> bytes:
        name, args = self.method_name.encode(), self.args
        numbers = (self.gas | self.deposit << 64).to_bytes(24, "little")  # adjacent fields
        return b"".join((_CALL_HEAD(2, len(name)), name, borsh.u32(len(args)), args, numbers))


@dataclass(frozen=True, slots=True, init=False)
class Transfer(Action):
    """
    Send NEAR to the receiver.

    Parameters
    ----------
    deposit
        The yoctoNEAR to send.
    """

    deposit: int = field(metadata={"borsh": borsh.U128})

    def __init__(self, deposit: int) -> None:
        plain = type(deposit) is int and 0 <= deposit <= U128_MAX
        checked = deposit if plain else integer(deposit, "deposit", most=U128_MAX)
        borsh.set_field(self, "deposit", checked)

    def encode(self) -> bytes:
        return b"\3" + self.deposit.to_bytes(16, "little")


@dataclass(frozen=True, slots=True)
class Stake(Action):
    """
    Stake the receiver's own NEAR, to validate.

    Parameters
    ----------
    stake
        The yoctoNEAR to have staked.
    public_key
        The validator's key.
    """

    stake: int = field(metadata={"borsh": borsh.U128})
    public_key: PublicKey = field(metadata={"borsh": types.PUBLIC_KEY})


@dataclass(frozen=True, slots=True)
class AddKey(Action):
    """
    Add an access key to the receiver.

    Parameters
    ----------
    public_key
        The key.
    access_key
        What the key may sign; full access by default.
    """

    public_key: PublicKey = field(metadata={"borsh": types.PUBLIC_KEY})
    access_key: AccessKey = field(
        default_factory=AccessKey, metadata={"borsh": borsh.nested(AccessKey, "an AccessKey")}
    )


@dataclass(frozen=True, slots=True)
class DeleteKey(Action):
    """
    Delete an access key of the receiver.

    Parameters
    ----------
    public_key
        The key.
    """

    public_key: PublicKey = field(metadata={"borsh": types.PUBLIC_KEY})


@dataclass(frozen=True, slots=True)
class DeleteAccount(Action):
    """
    Delete the receiver.

    Parameters
    ----------
    beneficiary_id
        The account that receives its remaining balance.
    """

    beneficiary_id: str = field(metadata={"borsh": types.ACCOUNT_ID})


# Delegate actions -----------------------------------------------------------------------


def action_list(value: Any, name: str = "actions") -> tuple[Action, ...]:
    if isinstance(value, _LISTS):
        for action in value:
            if not isinstance(action, Action):
                break
        else:
            return tuple(value)
    raise InvalidRequestError.refuse(name, value, "a list of actions, such as [Transfer(1)]")


def _check_undelegated(value: Any, name: str) -> tuple[Action, ...]:
    actions = action_list(value, name)
    if any(isinstance(action, SignedDelegate) for action in actions):
        names = [action.name for action in actions]
        raise InvalidRequestError.refuse(name, names, "actions without delegate actions")
    return actions


def _read_undelegated(reader: borsh.Reader) -> Action:
    start = reader.position
    kind = Action.read_kind(reader)
    if issubclass(kind, SignedDelegate):
        raise reader.refuse(f"a {kind.__name__} is inside a delegate action", start)
    return kind.read_fields(reader)


_UNDELEGATED = borsh.Codec(
    _check_undelegated,
    lambda actions: borsh.items([action.encode() for action in actions]),
    lambda reader: reader.items(_read_undelegated),
)


@dataclass(frozen=True, slots=True)
class _Delegated(borsh.Record):
    """The fields and the hash that both versions of a delegate action share."""

    sender_id: str = field(metadata={"borsh": types.ACCOUNT_ID})
    receiver_id: str = field(metadata={"borsh": types.ACCOUNT_ID})
    actions: Sequence[Action] = field(metadata={"borsh": _UNDELEGATED})
    nonce: int = field(metadata={"borsh": borsh.U64})
    max_block_height: int = field(metadata={"borsh": borsh.U64})
    public_key: PublicKey = field(metadata={"borsh": types.PUBLIC_KEY})
    # 2**30 plus the number of the NEP, so that no transaction has the same bytes (near/NEPs#461).
    prefix: ClassVar[bytes]

    @property
    def hash(self) -> CryptoHash:
        """The hash that the sender signs."""
        return CryptoHash.of(self.prefix + self.encode())


@dataclass(frozen=True, slots=True)
class DelegateAction(_Delegated):
    """
    Actions that a sender signs and a relayer pays for (NEP-366).

    Parameters
    ----------
    sender_id
        The account that signs.
    receiver_id
        The receiver of the actions.
    actions
        The actions; none of them is a delegate action.
    nonce
        Greater than the nonce of the sender's key.
    max_block_height
        The last block that may include the actions.
    public_key
        The sender's key.
    """

    prefix: ClassVar[bytes] = borsh.u32(2**30 + 366)

    def sign(self, secret_key: SecretKey) -> Delegate:
        """
        Sign the delegate action, for a relayer to send.

        Parameters
        ----------
        secret_key
            The secret key of `public_key`.

        Returns
        -------
        action
            An action for the relayer's transaction to the sender.

        Raises
        ------
        InvalidRequestError
            If it is the secret key of another public key.
        """
        check_pair(secret_key, self.public_key)
        return Delegate(self, secret_key.sign(self.hash))


@dataclass(frozen=True, slots=True)
class DelegateActionV2(_Delegated):
    """
    Actions that a sender signs, also with a gas key (NEP-611), and a relayer pays for.

    Parameters
    ----------
    sender_id
        The account that signs.
    receiver_id
        The receiver of the actions.
    actions
        The actions; none of them is a delegate action.
    nonce
        Greater than the nonce of the sender's key.
    max_block_height
        The last block that may include the actions.
    public_key
        The sender's key.
    nonce_index
        The index of a gas key's nonce; None for an ordinary key.
    """

    nonce_index: int | None = field(default=None, metadata={"borsh": borsh.optional(borsh.U16)})
    prefix: ClassVar[bytes] = borsh.u32(2**30 + 611)

    def sign(self, secret_key: SecretKey) -> DelegateV2:
        """
        Sign the delegate action, for a relayer to send.

        Parameters
        ----------
        secret_key
            The secret key of `public_key`.

        Returns
        -------
        action
            An action for the relayer's transaction to the sender.

        Raises
        ------
        InvalidRequestError
            If it is the secret key of another public key.
        """
        check_pair(secret_key, self.public_key)
        return DelegateV2(self, secret_key.sign(self.hash))

    # In Borsh, the nonce and its index are one value at the position of the nonce.

    def encode_fields(self) -> bytes:
        """Encode the fields after the tag of the version."""
        layout = borsh.layout_of(_Delegated)
        encoded = {name: codec.encode(getattr(self, name)) for name, codec in layout}
        encoded["nonce"] = encode_nonce(self.nonce, self.nonce_index)
        return b"\0" + b"".join(encoded.values())

    @classmethod
    def read_fields(cls, reader: borsh.Reader) -> Self:
        """Read the fields after the tag of the version."""
        reader.tag(1, "a versioned delegate action")
        sender_id, receiver_id = types.ACCOUNT_ID.read(reader), types.ACCOUNT_ID.read(reader)
        actions = _UNDELEGATED.read(reader)
        nonce, nonce_index = read_nonce(reader)
        height, key = reader.u64(), PublicKey.read(reader)
        return cls(sender_id, receiver_id, actions, nonce, height, key, nonce_index)


def check_pair(secret_key: SecretKey, public_key: PublicKey) -> None:
    derived = secret_key.public_key
    if derived is not public_key and derived != public_key:
        expected = f"the public key of the secret key, {derived}"
        raise InvalidRequestError.refuse("public_key", str(public_key), expected)


def encode_nonce(nonce: int, nonce_index: int | None) -> bytes:
    """Encode a nonce of an ordinary key, or a nonce of a gas key with its index."""
    if nonce_index is None:
        return b"\0" + borsh.u64(nonce)
    return b"\1" + borsh.u64(nonce) + borsh.u16(nonce_index)


def read_nonce(reader: borsh.Reader) -> tuple[int, int | None]:
    """Read a nonce and its index; None for an ordinary key."""
    is_gas_key = reader.tag(2, "a nonce")
    return reader.u64(), reader.u16() if is_gas_key else None


class SignedDelegate(Action):
    """A delegate action of either version with its sender's signature."""

    __slots__ = ()
    delegate_action: DelegateAction | DelegateActionV2
    signature: Signature

    @classmethod
    def from_base64(cls, text: str) -> Self:
        """
        Decode the base64 of a signed delegate action, as wallets and relayers exchange it.

        Parameters
        ----------
        text
            The base64 alone, of the bytes that `from_bytes` decodes.

        Returns
        -------
        action
            The action. The signature is not verified: call `verify`.

        Raises
        ------
        DecodeError
            If the text is not base64, or not that of a signed delegate action.

        Examples
        --------
        >>> from base64 import b64encode
        >>> from ledgerkit.protocol import Delegate, Transfer
        >>> ledger = lk.connect("local")
        >>> signed = lk.delegate("bob.near", [Transfer(1)], signer_id="alice.near")
        >>> Delegate.from_base64(b64encode(signed.encode()[1:]).decode()) == signed
        True
        """
        return cls.from_bytes(borsh.decode_base64(text, cls.__name__))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """
        Decode the Borsh of a signed delegate action, which has no tag of an action before it.

        Parameters
        ----------
        data
            All the bytes of a ``SignedDelegate``.

        Returns
        -------
        action
            The action. The signature is not verified: call `verify`.

        Raises
        ------
        DecodeError
            If the bytes are malformed.

        Examples
        --------
        >>> from ledgerkit.protocol import Delegate, Transfer
        >>> ledger = lk.connect("local")
        >>> signed = lk.delegate("bob.near", [Transfer(1)], signer_id="alice.near")
        >>> Delegate.from_bytes(signed.encode()[1:]).delegate_action.sender_id
        AccountId('alice.near')
        """
        # Source: near/near-api-js, encodeSignedDelegate; near/near-cli-rs, SignedDelegateAction.
        return cls.decode(bytes([cls.tag]) + data)

    def verify(self) -> bool:
        """
        Return True if the sender signed the delegate action.

        Returns
        -------
        signed
            False also for a malformed signature.
        """
        delegated = self.delegate_action
        return delegated.public_key.verify(delegated.hash, self.signature)


@dataclass(frozen=True, slots=True)
class Delegate(SignedDelegate):
    """
    Execute actions that another account signed; the transaction's signer pays.

    Parameters
    ----------
    delegate_action
        The actions.
    signature
        The sender's signature.
    """

    delegate_action: DelegateAction = field(
        metadata={"borsh": borsh.nested(DelegateAction, "a DelegateAction")}
    )
    signature: Signature = field(metadata={"borsh": types.SIGNATURE})


# Global contracts and initial states ----------------------------------------------------

_MODES = ("CodeHash", "AccountId")  # in the order of their tags
_MODE = borsh.Codec(
    lambda value, name: one_of(value, name, _MODES),
    lambda mode: bytes([_MODES.index(mode)]),
    lambda reader: _MODES[reader.tag(len(_MODES), "a deploy mode")],
)


@dataclass(frozen=True, slots=True, repr=False)
class DeployGlobalContract(Action):
    """
    Deploy a global contract, which other accounts may use.

    Parameters
    ----------
    code
        The compiled contract.
    deploy_mode
        How its users refer to it: by ``CodeHash``, which never changes, or by ``AccountId``,
        whose owner may change the code.
    """

    code: bytes = field(metadata={"borsh": borsh.BLOB})
    deploy_mode: Literal["CodeHash", "AccountId"] = field(metadata={"borsh": _MODE})


@dataclass(frozen=True, slots=True)
class UseGlobalContract(Action):
    """
    Make the receiver use a global contract.

    Parameters
    ----------
    contract_identifier
        A `CryptoHash` for code that never changes, or the id of the account that deployed it.
    """

    contract_identifier: CryptoHash | str = field(metadata={"borsh": types.GLOBAL_CONTRACT})


def _check_records(value: Any, name: str) -> dict[bytes, bytes]:
    if not isinstance(value, Mapping):
        raise InvalidRequestError.refuse(name, value, "a mapping of bytes to bytes")
    pairs = ((raw_bytes(k, name), raw_bytes(v, name)) for k, v in value.items())
    return dict(sorted(pairs))


def _read_record(reader: borsh.Reader) -> tuple[bytes, bytes]:
    return reader.blob(), reader.blob()


def _read_records(reader: borsh.Reader) -> dict[bytes, bytes]:
    """Read the records of a state, which Borsh sorts by their keys."""
    start = reader.position
    records = reader.items(_read_record, 8)  # two lengths of 4 bytes
    keys = [key for key, _ in records]
    if any(key >= following for key, following in pairwise(keys)):
        raise reader.refuse("the records are not sorted by their keys", start)
    return dict(records)


_RECORDS = borsh.Codec(
    _check_records,
    lambda records: borsh.items([borsh.blob(k) + borsh.blob(v) for k, v in records.items()]),
    _read_records,
)


@dataclass(frozen=True, slots=True)
class StateInit(borsh.Variant):
    """
    The initial state of a deterministic account, which its id is derived from.

    Parameters
    ----------
    code
        A `CryptoHash`, or the id of the account that deployed the global contract.
    data
        The initial records of its state.
    """

    enum = "a state init"

    code: CryptoHash | str = field(metadata={"borsh": types.GLOBAL_CONTRACT})
    data: Mapping[bytes, bytes] = field(default_factory=dict, metadata={"borsh": _RECORDS})

    def __hash__(self) -> int:
        return hash(self.encode())


borsh.number_variants(StateInit, [StateInit])


def _check_keys(value: Any, name: str) -> tuple[PublicKey, ...]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InvalidRequestError.refuse(name, value, "a list of public keys")
    keys = {types.STORED_KEY.check(key, name) for key in value}
    return tuple(sorted(keys, key=types.STORED_KEY.encode))


_KEYS = borsh.Codec(
    _check_keys,
    lambda keys: borsh.items([types.STORED_KEY.encode(key) for key in keys]),
    lambda reader: _check_keys(reader.items(types.STORED_KEY.read, 33), "access_keys"),
)

# The id of a universal account is the hash of the bytes that were sent. A node does not require
# them to be sorted, and sorts records and keys and drops duplicates when it reads them.
_ANY_RECORDS = _RECORDS._replace(
    read=lambda reader: dict(sorted(dict(reader.items(_read_record, 8)).items()))
)


@dataclass(frozen=True, slots=True)
class UniversalStateInitV1(borsh.Variant):
    """
    The initial state of a universal account, which its id is derived from (NEP-655).

    Parameters
    ----------
    code
        A `CryptoHash`, or the id of the account that deployed the global contract; None for an
        account without code.
    data
        The initial records of its state.
    access_keys
        Its first access keys, with full access.
    """

    enum = "a universal state init"

    code: CryptoHash | str | None = field(
        default=None, metadata={"borsh": borsh.optional(types.GLOBAL_CONTRACT)}
    )
    data: Mapping[bytes, bytes] = field(default_factory=dict, metadata={"borsh": _ANY_RECORDS})
    access_keys: Sequence[PublicKey] = field(default=(), metadata={"borsh": _KEYS})

    def __hash__(self) -> int:
        return hash(self.encode())


borsh.number_variants(UniversalStateInitV1, [UniversalStateInitV1])


@dataclass(frozen=True, slots=True)
class DeterministicStateInit(Action):
    """
    Create the receiver, an account whose id is derived from its initial state.

    Parameters
    ----------
    state_init
        The initial state.
    deposit
        The yoctoNEAR to attach for its storage.
    """

    state_init: StateInit = field(metadata={"borsh": borsh.nested(StateInit, "a StateInit")})
    deposit: int = field(default=0, metadata={"borsh": borsh.U128})


# Gas keys -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TransferToGasKey(Action):
    """
    Add NEAR to a gas key of the receiver.

    Parameters
    ----------
    public_key
        The gas key.
    deposit
        The yoctoNEAR to add.
    """

    public_key: PublicKey = field(metadata={"borsh": types.PUBLIC_KEY})
    deposit: int = field(metadata={"borsh": borsh.U128})


@dataclass(frozen=True, slots=True)
class WithdrawFromGasKey(Action):
    """
    Withdraw NEAR from a gas key of the receiver.

    Parameters
    ----------
    public_key
        The gas key.
    amount
        The yoctoNEAR to withdraw.
    """

    public_key: PublicKey = field(metadata={"borsh": types.PUBLIC_KEY})
    amount: int = field(metadata={"borsh": borsh.U128})


@dataclass(frozen=True, slots=True)
class DelegateV2(SignedDelegate):
    """
    Execute actions that another account signed, in the second version.

    It needs protocol version 85 or later.

    Parameters
    ----------
    delegate_action
        The actions.
    signature
        The sender's signature.
    """

    delegate_action: DelegateActionV2 = field(
        metadata={"borsh": borsh.nested(DelegateActionV2, "a DelegateActionV2")}
    )
    signature: Signature = field(metadata={"borsh": types.SIGNATURE})


# Universal accounts ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class UniversalStateInit(Action):
    """
    Initialize the receiver, a universal account, or create it (NEP-655).

    It needs protocol version 87 or later.

    Parameters
    ----------
    state_init
        The bytes of the initial state, such as `UniversalStateInitV1.encode` returns: the
        account's id is their hash.
    deposit
        The yoctoNEAR to attach for its storage.
    """

    state_init: bytes = field(metadata={"borsh": borsh.BLOB})
    deposit: int = field(default=0, metadata={"borsh": borsh.U128})

    @property
    def decoded(self) -> UniversalStateInitV1 | None:
        """The initial state; None for bytes that are none, which no node accepts."""
        try:
            return UniversalStateInitV1.decode(self.state_init)
        except DecodeError:
            return None


# Kinds of actions ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kind:
    """
    The properties of one kind of action, in addition to the members of its class.

    A member named `deposit` is transferred, whatever the kind, even if it is not declared here.

    Parameters
    ----------
    action
        Its class.
    fee
        The name of its fee in the protocol's configuration.
    charged_bytes
        The number of bytes that are charged for an action; None if it has a flat fee.
    phrase
        What a transaction did with it, as infinitive, past tense and object; None if that depends
        on its members. The object may refer to `amount`, `receiver` and `place`.
    transfer
        The kind of the transfers that its deposit, or the deposits of its signed actions, make.
    burns
        What it may burn in addition to fees: the price of published ``code``, or the balance of gas
        ``keys``.
    is_own
        True if only the receiver itself may send it.
    other_names
        Further names in responses, in addition to the name of the class.
    """

    action: type[Action]
    fee: str
    charged_bytes: Callable[[Any], int] | None = None
    _: KW_ONLY
    phrase: tuple[str, str, str] | None = None
    transfer: str = "deposit"
    burns: Literal["", "code", "keys"] = ""
    is_own: bool = False
    other_names: tuple[str, ...] = ()

    @property
    def has_deposit(self) -> bool:
        return any(name == "deposit" for name, _ in borsh.layout_of(self.action))


def call_bytes(method_name: str, args: bytes) -> int:
    """Return the number of bytes of a function call that have a fee each."""
    return len(method_name.encode()) + len(args)


# Borsh writes a kind's position, so new ones are appended and none is moved.
KINDS = (
    Kind(CreateAccount, "create_account"),
    Kind(
        DeployContract,
        "deploy_contract",
        lambda action: len(action.code),
        phrase=("deploy", "deployed", "a contract{place}"),
        is_own=True,
    ),
    Kind(FunctionCall, "function_call", lambda call: call_bytes(call.method_name, call.args)),
    Kind(
        Transfer, "transfer", phrase=("send", "sent", "{amount} to {receiver}"), transfer="transfer"
    ),
    Kind(Stake, "stake", is_own=True),
    Kind(AddKey, "add_key", is_own=True),
    Kind(
        DeleteKey,
        "delete_key",
        phrase=("delete", "deleted", "a key{place}"),
        burns="keys",
        is_own=True,
    ),
    Kind(DeleteAccount, "delete_account", burns="keys", is_own=True),
    Kind(Delegate, "delegate", transfer="delegated"),
    Kind(
        DeployGlobalContract,
        "deploy_global_contract",
        lambda action: len(action.code),
        phrase=("deploy", "deployed", "a global contract for all accounts{place}"),
        burns="code",
        is_own=True,
        other_names=("DeployGlobalContractByAccountId",),
    ),
    Kind(
        UseGlobalContract,
        "use_global_contract",
        lambda action: len(action.contract_identifier),
        phrase=("deploy", "deployed", "a global contract{place}"),
        is_own=True,
        other_names=("UseGlobalContractByAccountId",),
    ),
    Kind(
        DeterministicStateInit,
        "deterministic_state_init",
        lambda action: sum(len(k) + len(v) for k, v in action.state_init.data.items()),
        phrase=("initialize", "initialized", "the account{place}"),
    ),
    Kind(
        TransferToGasKey,
        "gas_key_transfer",
        phrase=("add", "added", "{amount} to a gas key{place}"),
        transfer="gas_key",
    ),
    Kind(
        WithdrawFromGasKey,
        "gas_key_transfer",
        phrase=("withdraw", "withdrew", "NEAR from a gas key{place}"),
        is_own=True,
    ),
    Kind(DelegateV2, "delegate", transfer="delegated"),
    Kind(
        UniversalStateInit,
        "universal_state_init",
        lambda action: len(action.state_init),
        phrase=("initialize", "initialized", "the account{place}"),
    ),
)
KIND_OF = {kind.action: kind for kind in KINDS}
KINDS_BY_NAME = {name: kind for kind in KINDS for name in (kind.action.__name__, *kind.other_names)}
borsh.number_variants(Action, [kind.action for kind in KINDS])


def is_delegate(name: str | None) -> bool:
    """Return True for the name of a kind that contains signed actions."""
    kind = KINDS_BY_NAME.get(name or "")
    return kind is not None and issubclass(kind.action, SignedDelegate)


def with_delegated(actions: Iterable[Action]) -> list[Action]:
    """List the actions, each delegate action followed by its inner actions."""
    listed = []
    for action in actions:
        listed.append(action)
        if isinstance(action, SignedDelegate):
            listed += action.delegate_action.actions
    return listed


def attached_gas(actions: Iterable[Action]) -> int:
    """Sum the gas attached to calls, delegated ones included."""
    return sum([a.gas for a in with_delegated(actions) if isinstance(a, FunctionCall)])


def deposits(actions: Iterable[Action]) -> int:
    """Sum the deposits in yoctoNEAR, delegated ones included: the relayer pays them too."""
    return sum(map(deposit_of, with_delegated(actions)))


def deposit_of(action: Action) -> int:
    """Return the deposit of an action in yoctoNEAR, which its sender pays."""
    # nearcore, core/primitives/src/action/mod.rs: Action::get_deposit_balance.
    deposit: int = getattr(action, "deposit", 0)
    return deposit
