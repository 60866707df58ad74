"""Checks of a transaction's limits, before anything is read or signed."""

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
from ledgerkit.protocol.access_keys import GasKey
from ledgerkit.protocol.actions import SignedDelegate, action_list, attached_gas, deposits
from ledgerkit.units import U128_MAX, gas_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.protocol import AccessKey, Action, Transaction

# By the `limit_config` of the protocol's parameters.
MAX_ACTIONS = 100
MAX_GAS = 10**15
MAX_ARGS_BYTES = MAX_CODE_BYTES = 4 * 2**20
MAX_METHOD_NAMES_BYTES = 2000  # of an access key; each name counts one byte more
MAX_TRANSACTION_BYTES = 1_572_864
MAX_GAS_KEY_NONCES = 1024


def check_actions(value: Any) -> tuple[Action, ...]:
    """Check the actions of a transaction by the rules of the ledger."""
    actions = action_list(value)
    if not 1 <= len(actions) <= MAX_ACTIONS:
        rule = f"1 to {MAX_ACTIONS} actions"
        raise InvalidRequestError.refuse("actions", f"{len(actions)} actions", rule)
    if any(isinstance(action, DeleteAccount) for action in actions[:-1]):
        raise _refuse_names(actions, "a list whose only DeleteAccount is the last action")
    if sum(isinstance(action, SignedDelegate) for action in actions) > 1:
        raise _refuse_names(actions, "a list with one delegated action at most")
    for action in actions:
        _check_action(action)
    _check_sums(actions)
    return actions


def _refuse_names(actions: Sequence[Action], rule: str) -> InvalidRequestError:
    """Build the error for a list of actions, which it quotes by their names."""
    return InvalidRequestError.refuse("actions", [action.name for action in actions], rule)


def _check_action(action: Action) -> None:
    """Check one action."""
    match action:
        case FunctionCall():
            _check_call(action)
        case DeployContract(code=code) | DeployGlobalContract(code=code):
            _check_length("code", code, MAX_CODE_BYTES)
        case AddKey(access_key=access_key):
            _check_access_key(access_key)
        case Stake(public_key=key) if key.curve != "ed25519":
            raise InvalidRequestError.refuse("public_key", str(key), "an ed25519 key, to stake")
        case Delegate(delegate_action=inner) | DelegateV2(delegate_action=inner):
            check_actions(inner.actions)


def _check_call(call: FunctionCall) -> None:
    """Check a function call."""
    validation.method_name(call.method_name, "method_name")
    _check_length("args", call.args, MAX_ARGS_BYTES)
    if not call.gas:
        raise InvalidRequestError.refuse("gas", 0, "gas above 0, without which no call can run")


def _check_length(field: str, data: bytes, most: int) -> None:
    """Check the length of bytes."""
    if len(data) > most:
        raise InvalidRequestError.refuse(field, f"{len(data)} bytes", f"at most {most} bytes")


def _check_access_key(access_key: AccessKey) -> None:
    """Check the receiver and the method names of a function-call key, and a gas key's nonces."""
    permission = access_key.permission
    if isinstance(permission, FunctionCallPermission | GasKeyFunctionCall):
        validation.account_id(permission.receiver_id, "receiver_id")
        names = [validation.method_name(name, "method_names") for name in permission.method_names]
        length = sum(len(name.encode()) + 1 for name in names)
        if length > MAX_METHOD_NAMES_BYTES:
            rule = f"at most {MAX_METHOD_NAMES_BYTES} bytes, with one more counted for each name"
            raise InvalidRequestError.refuse("method_names", f"{length} bytes", rule)
    if isinstance(permission, GasKey):
        _check_gas_key(permission)


def _check_gas_key(permission: GasKey) -> None:
    """Check a new gas key."""
    if not 1 <= permission.num_nonces <= MAX_GAS_KEY_NONCES:
        rule = f"1 to {MAX_GAS_KEY_NONCES} nonces of a gas key"
        raise InvalidRequestError.refuse("num_nonces", permission.num_nonces, rule)
    if permission.balance:
        rule = "0 in a new gas key; fund it with TransferToGasKey"
        raise InvalidRequestError.refuse("balance", permission.balance, rule)
    if isinstance(permission, GasKeyFunctionCall) and permission.allowance is not None:
        rule = "None: a gas key has a balance instead"
        raise InvalidRequestError.refuse("allowance", permission.allowance, rule)


def _check_sums(actions: Sequence[Action]) -> None:
    """Check the sums of gas and deposits."""
    gas, deposit = attached_gas(actions), deposits(actions)
    if gas > MAX_GAS:
        rule = f"at most {gas_text(MAX_GAS)} for all calls of a transaction"
        raise InvalidRequestError.refuse("gas", gas_text(gas), rule)
    if deposit > U128_MAX:
        rule = f"at most {U128_MAX} yoctoNEAR for all actions of a transaction"
        raise InvalidRequestError.refuse("deposit", deposit, rule)


def check_size(tx: Transaction) -> int:
    """Check a transaction's size and return it, in bytes with its signature."""
    size = tx.size + {"ed25519": 65, "secp256k1": 66}[tx.public_key.curve]
    if size > MAX_TRANSACTION_BYTES:
        rule = (
            f"at most {MAX_TRANSACTION_BYTES} bytes with its signature; send several transactions"
        )
        raise InvalidRequestError.refuse("transaction", f"{size} bytes", rule)
    return size
