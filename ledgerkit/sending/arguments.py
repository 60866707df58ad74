"""
The arguments of verbs that send: amounts, code and actions, checked before anything is read.

`ledgerkit.protocol` checks the members of an action; this module checks a transaction's limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from ledgerkit import units, user_warnings, validation
from ledgerkit.errors import InvalidRequestError
from ledgerkit.protocol import (
    AccessKey,
    AccountId,
    Action,
    AddKey,
    CryptoHash,
    DeleteAccount,
    DeployContract,
    DeployGlobalContract,
    FunctionCall,
    FunctionCallPermission,
    GasKeyFunctionCall,
    Stake,
    Transaction,
    UseGlobalContract,
    limits,
)
from ledgerkit.protocol.access_keys import GasKey
from ledgerkit.protocol.actions import SignedDelegate, action_list, attached_gas, deposits
from ledgerkit.protocol.types import SIGNATURE_BYTES
from ledgerkit.units import U128_MAX, gas_text

_LEAST_PLAIN = 10**15  # yoctoNEAR, a billionth of a NEAR
_LEAST_PLAIN_GAS = 10**9  # a thousandth of a Tgas, with which no call runs
_MAGIC = b"\0asm"
_MODES: dict[str, Literal["CodeHash", "AccountId"]] = {
    "hash": "CodeHash",
    "account_id": "AccountId",
}
_EXPECTED = (
    "the bytes of a compiled contract, a pathlib.Path to its .wasm file, or a published global "
    "contract: a CryptoHash or an AccountId of ledgerkit.protocol"
)


# Amounts and code -------------------------------------------------------------------------


def parse_near(value: int | str, field: str = "amount") -> int:
    """
    Parse an amount of NEAR into yoctoNEAR, as `units.yocto` does.

    A small integer without a unit issues a warning: the caller may mean NEAR.
    """
    amount = units.yocto(value, field)
    if not isinstance(value, str) and 0 < amount < _LEAST_PLAIN:
        _warn_without_unit(field, amount, "yoctoNEAR", "NEAR", "yocto")
    return amount


def parse_gas(value: int | str) -> int:
    """Parse gas as `units.gas` does; a small integer issues a warning, as in `parse_near`."""
    gas = units.gas(value)
    if not isinstance(value, str) and 0 < gas < _LEAST_PLAIN_GAS:
        _warn_without_unit("gas", gas, "units of gas", "Tgas", "gas")
    return gas


def _warn_without_unit(field: str, value: int, meaning: str, large: str, small: str) -> None:
    user_warnings.warn(
        f'{field} {value} without a unit is {value} {meaning}: write "{value} {large}" if you mean'
        f' {large}, and "{value} {small}" if not'
    )


def deploy_action(code: Any, publish: str | None) -> Action:
    if publish is not None:
        validation.one_of(publish, "publish", tuple(_MODES))
    if isinstance(code, CryptoHash | AccountId):
        if publish is not None:
            msg = "publish= needs code: this is a contract that is published already"
            raise InvalidRequestError(msg, field="publish", value=publish)
        return UseGlobalContract(code)
    data = read_code(code)
    return DeployContract(data) if publish is None else DeployGlobalContract(data, _MODES[publish])


def read_code(code: Any) -> bytes:
    """Return the bytes of a compiled contract, read from its file if it is a path."""
    if isinstance(code, PathLike):
        path = Path(code)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InvalidRequestError.refuse("code", path, f"a readable file ({error})") from None
    elif isinstance(code, bytes):
        data = code
    else:
        raise InvalidRequestError.refuse("code", code, _EXPECTED)
    if not data.startswith(_MAGIC):
        expected = "a module of WebAssembly, whose first bytes are \\0asm"
        raise InvalidRequestError.refuse("code", data[:8], expected)
    return data


# Actions ----------------------------------------------------------------------------------


def check_actions(value: Any) -> tuple[Action, ...]:
    """Check the actions of a transaction by the rules of the ledger."""
    actions = action_list(value)
    if not 1 <= len(actions) <= limits.MAX_ACTIONS:
        rule = f"1 to {limits.MAX_ACTIONS} actions"
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
    return InvalidRequestError.refuse("actions", [action.name for action in actions], rule)


def _check_action(action: Action) -> None:
    match action:
        case FunctionCall():
            _check_call(action)
        case DeployContract(code=code) | DeployGlobalContract(code=code):
            _check_length("code", code, limits.MAX_CODE_BYTES)
        case AddKey(access_key=access_key):
            _check_access_key(access_key)
        case Stake(public_key=key) if key.curve != "ed25519":
            raise InvalidRequestError.refuse("public_key", str(key), "an ed25519 key, to stake")
        case SignedDelegate(delegate_action=inner):
            check_actions(inner.actions)


def _check_call(call: FunctionCall) -> None:
    validation.method_name(call.method_name, "method_name")
    _check_length("args", call.args, limits.MAX_ARGS_BYTES)
    if not call.gas:
        raise InvalidRequestError.refuse("gas", 0, "gas above 0, without which no call can run")


def _check_length(field: str, data: bytes, most: int) -> None:
    if len(data) > most:
        raise InvalidRequestError.refuse(field, f"{len(data)} bytes", f"at most {most} bytes")


def _check_access_key(access_key: AccessKey) -> None:
    permission = access_key.permission
    if isinstance(permission, FunctionCallPermission | GasKeyFunctionCall):
        validation.account_id(permission.receiver_id, "receiver_id")
        names = [validation.method_name(name, "method_names") for name in permission.method_names]
        length = sum(len(name.encode()) + 1 for name in names)
        most = limits.MAX_KEY_METHODS_BYTES
        if length > most:
            rule = f"at most {most} bytes, with one more counted for each name"
            raise InvalidRequestError.refuse("method_names", f"{length} bytes", rule)
    if isinstance(permission, GasKey):
        _check_gas_key(permission)


def _check_gas_key(permission: GasKey) -> None:
    if not 1 <= permission.num_nonces <= limits.MAX_GAS_KEY_NONCES:
        rule = f"1 to {limits.MAX_GAS_KEY_NONCES} nonces of a gas key"
        raise InvalidRequestError.refuse("num_nonces", permission.num_nonces, rule)
    if permission.balance:
        rule = "0 in a new gas key; fund it with TransferToGasKey"
        raise InvalidRequestError.refuse("balance", permission.balance, rule)
    if isinstance(permission, GasKeyFunctionCall) and permission.allowance is not None:
        rule = "None: a gas key has a balance instead"
        raise InvalidRequestError.refuse("allowance", permission.allowance, rule)


def _check_sums(actions: Sequence[Action]) -> None:
    gas, deposit = attached_gas(actions), deposits(actions)
    if gas > limits.MAX_PREPAID_GAS:
        rule = f"at most {gas_text(limits.MAX_PREPAID_GAS)} for all calls of a transaction"
        raise InvalidRequestError.refuse("gas", gas_text(gas), rule)
    if deposit > U128_MAX:
        rule = f"at most {U128_MAX} yoctoNEAR for all actions of a transaction"
        raise InvalidRequestError.refuse("deposit", deposit, rule)


def check_size(tx: Transaction) -> int:
    """Check a transaction's size and return it, in bytes with its signature."""
    size = tx.size + 1 + SIGNATURE_BYTES[tx.public_key.curve]  # one byte names the curve
    most = limits.MAX_TRANSACTION_BYTES
    if size > most:
        rule = f"at most {most} bytes with its signature; send several transactions"
        raise InvalidRequestError.refuse("transaction", f"{size} bytes", rule)
    return size
