"""Upper bounds of a transaction's cost, by the fees of the protocol configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ledgerkit import json_decoding
from ledgerkit.api.models.protocol_rules import ActionFees, Fee, RuntimeConfig, TransactionFees
from ledgerkit.protocol import (
    AccountId,
    AddKey,
    CreateAccount,
    Delegate,
    DelegateV2,
    DeleteAccount,
    DeleteKey,
    DeployContract,
    FunctionCall,
    FunctionCallPermission,
    Stake,
    Transfer,
)
from ledgerkit.protocol.actions import SignedDelegate, attached_gas, deposits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.protocol import Action, Transaction

FeeCount = tuple[Fee | None, int]


class _UnknownFeeError(Exception):
    """The error for a fee that the configuration does not state."""


def cost_bound(tx: Transaction, config: Any, gas_price: int) -> int | None:
    """Return the most yoctoNEAR that a transaction costs before refunds; None if unknown."""
    try:
        runtime = json_decoding.convert((config or {}).get("runtime_config"), RuntimeConfig)
        gas = _total_gas(tx.actions, tx.signer_id, tx.receiver_id, runtime.transaction_costs)
    except (msgspec.DecodeError, _UnknownFeeError):
        return None
    price = max(gas_price, int(runtime.min_gas_purchase_price))
    attached = attached_gas(tx.actions)
    return (gas + attached) * price + deposits(tx.actions)


def _total_gas(
    actions: Sequence[Action], sender_id: str, receiver_id: str, fees: TransactionFees
) -> int:
    """Sum the gas of sending and executing a receipt and its actions."""
    sir = sender_id == receiver_id
    total = _gas_of(fees.action_receipt_creation_config, sir=sir)
    for action in actions:
        counts = _fee_counts(action, receiver_id, fees.action_creation_config)
        total += sum(_gas_of(fee, sir=sir) * count for fee, count in counts)
        if isinstance(action, SignedDelegate):
            inner = action.delegate_action
            total += _total_gas(inner.actions, inner.sender_id, inner.receiver_id, fees)
    return total


def _gas_of(fee: Fee | None, *, sir: bool) -> int:
    """Sum the gas of sending and executing; `sir` means that the sender is the receiver."""
    send = None if fee is None else fee.send_sir if sir else fee.send_not_sir
    if fee is None or send is None:
        raise _UnknownFeeError
    return fee.execution + send


def _fee_counts(action: Action, receiver_id: str, fees: ActionFees) -> list[FeeCount]:
    """List an action's fees, each with how many times it is paid."""
    match action:
        case FunctionCall(method_name=name, args=args):
            size = len(name.encode()) + len(args)
            return [(fees.function_call_cost, 1), (fees.function_call_cost_per_byte, size)]
        case DeployContract(code=code):
            byte_fee = fees.deploy_contract_cost_per_byte
            return [(fees.deploy_contract_cost, 1), (byte_fee, len(code))]
        case AddKey(access_key=access_key):
            return _key_fees(access_key.permission, fees)
        case Transfer():
            return [(fees.transfer_cost, 1), *_creation_fees(receiver_id, fees)]
    by_action = {
        CreateAccount: fees.create_account_cost,
        Stake: fees.stake_cost,
        DeleteKey: fees.delete_key_cost,
        DeleteAccount: fees.delete_account_cost,
        Delegate: fees.delegate_cost,
        DelegateV2: fees.delegate_cost,
    }
    return [(by_action.get(type(action)), 1)]


def _key_fees(permission: object, fees: ActionFees) -> list[FeeCount]:
    """List the fees of adding a key."""
    costs = fees.add_key_cost
    if costs is None:
        raise _UnknownFeeError
    if not isinstance(permission, FunctionCallPermission):
        return [(costs.full_access_cost, 1)]
    size = sum(len(name.encode()) + 1 for name in permission.method_names)
    return [(costs.function_call_cost, 1), (costs.function_call_cost_per_byte, size)]


def _creation_fees(receiver_id: str, fees: ActionFees) -> list[FeeCount]:
    """List the fees that a transfer adds if it may create its implicit receiver."""
    kind = AccountId(receiver_id).kind
    if kind == "near-implicit":
        return [(fees.create_account_cost, 1), *_key_fees(None, fees)]
    return [(fees.create_account_cost, 1)] if kind == "eth-implicit" else []
