"""
Actions in responses: their names, deposits and calls.

An action is an object of one member, which is its name, or a name alone. Every reader of actions
uses these functions, so there is one rule for actions that `ledgerkit.protocol` does not declare:
they have a name, and transfer their member `deposit`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from ledgerkit import json_decoding
from ledgerkit.api.models.other_kinds import OTHER, OtherKind, decode_with_other_kinds
from ledgerkit.api.models.protocol_rules import Gas
from ledgerkit.errors import not_as_documented
from ledgerkit.protocol.actions import KINDS_BY_NAME
from ledgerkit.units import U128_MAX

if TYPE_CHECKING:
    from ledgerkit.api.models.chain import ChunkTransaction
    from ledgerkit.api.models.other_kinds import OtherTransaction
    from ledgerkit.protocol.actions import Kind


class FunctionCall(Struct, gc=False):
    """A call of a contract's method; `args` are base64 on the wire."""

    method_name: str | None = None
    args: bytes | None = None
    gas: Gas | None = None
    deposit: str | None = None


class Deposit(Struct, gc=False):
    """An action whose only member that is read is the deposit."""

    deposit: str | None = None


class GasKeyDeposit(Struct, gc=False):
    """A transfer into the balance of a gas key (NEP-611)."""

    public_key: str | None = None
    deposit: str | None = None


class GasKeyWithdrawal(Struct, gc=False):
    """A transfer out of the balance of a gas key (NEP-611)."""

    public_key: str | None = None
    amount: str | None = None


class KeyDeletion(Struct, gc=False):
    """The deletion of an access key."""

    public_key: str | None = None


class Beneficiary(Struct, gc=False):
    """The deletion of an account."""

    beneficiary_id: str | None = None


class DelegateAction(Struct, gc=False):
    """The signed content of a Delegate; later versions are one member deeper."""

    sender_id: str | None = None
    receiver_id: str | None = None
    actions: list[Action | str] | None = None
    v2: DelegateAction | None = field(name="V2", default=None)
    other: OtherKind | None = field(name=OTHER, default=None)


class Delegate(Struct, gc=False):
    """A Delegate action, which a relayer sends (NEP-366)."""

    delegate_action: DelegateAction | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` if its content has no known member."""
        if self.delegate_action == DelegateAction():
            raise ValueError("has an unknown version")


class _ReadActions(Struct, gc=False, rename="pascal", forbid_unknown_fields=True):
    """The actions whose members are read."""

    function_call: FunctionCall | None = None
    transfer: Deposit | None = None
    delegate: Delegate | None = None
    delegate_v2: Delegate | None = None
    deterministic_state_init: Deposit | None = None
    universal_state_init: Deposit | None = None
    transfer_to_gas_key: GasKeyDeposit | None = None
    withdraw_from_gas_key: GasKeyWithdrawal | None = None
    delete_key: KeyDeletion | None = None
    delete_account: Beneficiary | None = None
    other: OtherKind | None = field(name=OTHER, default=None)


def _attribute(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


if TYPE_CHECKING:
    Action: TypeAlias = _ReadActions
else:
    # The members of all other kinds stay encoded, because they are only displayed, and their
    # spelling differs inside a Delegate.
    Action = msgspec.defstruct(
        "Action",
        [
            (_attribute(name), Raw | UnsetType, UNSET)
            for name in KINDS_BY_NAME
            if name not in _ReadActions.__struct_encode_fields__
        ],
        bases=(_ReadActions,),
        module=__name__,
        namespace={"__doc__": "One action: an object of one member, which is its name."},
        gc=False,
    )

Actions: TypeAlias = "Sequence[Action | str]"
_FIELDS = tuple(zip(Action.__struct_fields__, Action.__struct_encode_fields__, strict=True))
_WITHOUT_DEPOSIT = {name for name, kind in KINDS_BY_NAME.items() if not kind.has_deposit}
_DIGITS = re.compile("[0-9]{1,39}")  # deposits of undeclared kinds; others are checked later
_CONTENT = json_decoding.decoder(Any)


# Reading ---------------------------------------------------------------------------------


def read_actions(transaction: ChunkTransaction | OtherTransaction) -> list[Action | str] | None:
    """Read the actions of an item of a chunk; raise `DecodeError` if one is malformed."""
    if transaction.actions is None:
        return None
    document = msgspec.json.encode({"actions": transaction.actions})
    try:
        listed: _Listed = decode_with_other_kinds(json_decoding.decoder(_Listed), document)
    except msgspec.DecodeError as problem:
        raise not_as_documented(f"transaction {transaction.hash}", problem) from None
    return listed.actions


class _Listed(Struct, gc=False):
    actions: list[Action | str]


def action_name(action: Action | str) -> str:
    """Return the action's name on the wire; "Unknown" for an empty object."""
    return action if isinstance(action, str) else named_content(action)[0]


def named_content(action: Action) -> tuple[str, Any]:
    """Return the name of an action and its content: a struct, `Raw`, or any JSON type."""
    if action.other is not None:
        return action.other.name, action.other.content
    for attribute, name in _FIELDS:
        content = getattr(action, attribute)
        if content is not None and content is not UNSET:
            return name, content
    return "Unknown", None


def kind_of(action: Action | str) -> Kind | None:
    """Return the declared kind of an action; None for an undeclared kind."""
    return KINDS_BY_NAME.get(action_name(action))


def deposit_digits(action: Action | str) -> str | None:
    """Return the deposit of an action as it was sent; "0" for a Delegate, None if unknown."""
    if isinstance(action, str):
        return "0" if action in KINDS_BY_NAME else None
    name, content = named_content(action)
    if name in _WITHOUT_DEPOSIT:
        return "0"
    members = _CONTENT.decode(content) if isinstance(content, Raw) else content
    if isinstance(members, dict):
        digits = members.get("deposit")
        if not isinstance(digits, str) or not _DIGITS.fullmatch(digits):
            return None
        return digits if int(digits) <= U128_MAX else None
    return getattr(members, "deposit", None)


def deposit_texts(actions: Actions) -> list[str] | None:
    """List the deposits of actions, without those in a Delegate; None if a deposit is unknown."""
    texts = [digits for digits in map(deposit_digits, actions) if digits is not None]
    return texts if len(texts) == len(actions) else None


def delegate_action(action: Action | str) -> DelegateAction | None:
    """
    Return the signed content of a Delegate; None for any other action.

    The content of an unknown version has no fields: its `actions` are None.
    """
    if isinstance(action, str):
        return None
    delegate = action.delegate or action.delegate_v2
    if delegate is None:
        return None
    inner = delegate.delegate_action or DelegateAction()
    return inner.v2 or inner


class ActionRow(NamedTuple):
    """An action: the position of its list, its index there, its sender and receiver."""

    position: int
    action_index: int
    inner_index: int | None
    action: Action | str
    sender_id: str | None
    receiver_id: str | None


def action_rows(
    lists: Iterable[tuple[Actions | None, str | None, str | None]],
) -> Iterator[ActionRow]:
    """List the actions of lists with sender and receiver, a Delegate before its own actions."""
    for position, (actions, *parties) in enumerate(lists):
        for index, action in enumerate(actions or ()):
            yield ActionRow(position, index, None, action, *parties)
            inner = delegate_action(action) or DelegateAction()
            for inner_index, inner_action in enumerate(inner.actions or ()):
                signers = inner.sender_id, inner.receiver_id
                yield ActionRow(position, index, inner_index, inner_action, *signers)


def function_call(action: Action | str) -> FunctionCall | None:
    """Return the call of an action; None for any other action."""
    return None if isinstance(action, str) else action.function_call


def function_calls(actions: Actions) -> Iterator[FunctionCall]:
    """List the function calls of actions, including those inside a Delegate."""
    for action in actions:
        call, inner = function_call(action), delegate_action(action)
        if call is not None:
            yield call
        yield from function_calls((inner.actions if inner else None) or ())


def total_gas(calls: Iterable[FunctionCall]) -> int | None:
    """Sum the gas attached to calls; None if the gas of a call is unknown."""
    attached = [call.gas for call in calls]
    amounts = [gas for gas in attached if gas is not None]
    return sum(amounts) if len(amounts) == len(attached) else None
