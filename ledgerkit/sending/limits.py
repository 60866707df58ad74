"""What a transaction may hold: checked before anything is signed, or even read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit import validation
from ledgerkit.errors import InvalidRequestError
from ledgerkit.protocol import (
    AddKey,
    Delegate,
    DelegateV2,
    DeleteAccount,
    DeployContract,
    DeployGlobalContract,
    FunctionCall,
    FunctionCallPermission,
    GasKeyFunctionCall,
    Stake,
)
from ledgerkit.protocol.actions import action_list, attached_gas, deposits
from ledgerkit.units import U128_MAX, gas_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.protocol import AccessKey, Action, Transaction

MOST_ACTIONS = 100
MOST_GAS = 10**15
LONGEST_ARGS = LARGEST_CODE = 4 * 2**20
LONGEST_NAMES = 2000  # of the methods of a key, each with a byte to end it
LARGEST = 1_572_864


def actions(value: Any) -> tuple[Action, ...]:
    """
    Check the actions of a transaction.

    Parameters
    ----------
    value
        A list of actions.

    Returns
    -------
    actions
        The same.

    Raises
    ------
    InvalidRequestError
        If the ledger could only refuse them; names the field, the value and the rule.
    """
    found = action_list(value)
    if not 1 <= len(found) <= MOST_ACTIONS:
        rule = f"1 to {MOST_ACTIONS} actions"
        raise InvalidRequestError.refuse("actions", f"{len(found)} actions", rule)
    if any(isinstance(action, DeleteAccount) for action in found[:-1]):
        raise _order(found, "a list whose only DeleteAccount is the last action")
    if sum(isinstance(action, Delegate | DelegateV2) for action in found) > 1:
        raise _order(found, "a list with one delegated action at most")
    for action in found:
        _check(action)
    _check_sums(found)
    return found


def _order(found: Sequence[Action], rule: str) -> InvalidRequestError:
    """Refuse actions by their names."""
    return InvalidRequestError.refuse("actions", [action.name for action in found], rule)


def _check(action: Action) -> None:
    """Check one action."""
    match action:
        case FunctionCall():
            _check_call(action)
        case DeployContract(code=code) | DeployGlobalContract(code=code):
            _check_length("code", code, LARGEST_CODE)
        case AddKey(access_key=access_key):
            _check_key(access_key)
        case Stake(public_key=key) if key.curve != "ed25519":
            raise InvalidRequestError.refuse("public_key", str(key), "an ed25519 key, to stake")
        case Delegate(delegate_action=wanted) | DelegateV2(delegate_action=wanted):
            actions(wanted.actions)


def _check_call(call: FunctionCall) -> None:
    """Check a call."""
    validation.method_name(call.method_name, "method_name")
    _check_length("args", call.args, LONGEST_ARGS)
    if not call.gas:
        raise InvalidRequestError.refuse("gas", 0, "above 0: a call without gas can't run")


def _check_length(field: str, data: bytes, most: int) -> None:
    """Refuse bytes that are too many."""
    if len(data) > most:
        raise InvalidRequestError.refuse(field, f"{len(data)} bytes", f"at most {most} bytes")


def _check_key(access_key: AccessKey) -> None:
    """Check what a key may call."""
    permission = access_key.permission
    if isinstance(permission, FunctionCallPermission | GasKeyFunctionCall):
        validation.account_id(permission.receiver_id, "receiver_id")
        names = [validation.method_name(name, "method_names") for name in permission.method_names]
        length = sum(len(name.encode()) + 1 for name in names)
        if length > LONGEST_NAMES:
            rule = f"at most {LONGEST_NAMES} bytes, one more counted for each name"
            raise InvalidRequestError.refuse("method_names", f"{length} bytes", rule)


def _check_sums(found: Sequence[Action]) -> None:
    """Check what all actions attach together."""
    gas, moved = attached_gas(found), deposits(found)
    if gas > MOST_GAS:
        rule = f"at most {gas_text(MOST_GAS)} for all calls of a transaction"
        raise InvalidRequestError.refuse("gas", gas_text(gas), rule)
    if moved > U128_MAX:
        rule = f"at most {U128_MAX} yoctoNEAR for all actions of a transaction"
        raise InvalidRequestError.refuse("deposit", moved, rule)


def size(tx: Transaction) -> int:
    """Check how many bytes a transaction has, its signature included."""
    signature = {"ed25519": 65, "secp256k1": 66}[tx.public_key.curve]
    if tx.size + signature > LARGEST:
        rule = f"at most {LARGEST} bytes with its signature; split it"
        raise InvalidRequestError.refuse("transaction", f"{tx.size + signature} bytes", rule)
    return tx.size + signature
