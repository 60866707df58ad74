"""Upper bounds of a transaction's cost, by the fees of the protocol configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ledgerkit import json_decoding
from ledgerkit.api.models.protocol_rules import ActionFees, Fee, RuntimeConfig, TransactionFees
from ledgerkit.protocol import AccountId, AddKey, FullAccess, FunctionCallPermission, Transfer
from ledgerkit.protocol.actions import KIND_OF, SignedDelegate, attached_gas, deposits

if TYPE_CHECKING:
    from ledgerkit.protocol import Action, Transaction
    from ledgerkit.protocol.access_keys import Permission

FeeCount = tuple[Fee, int]  # a fee, and how many times it is paid


class _UnknownFeeError(Exception):
    """The error for a fee that the configuration does not state."""


def cost_bound(tx: Transaction, config: Any, gas_price: int) -> int | None:
    """Return the most yoctoNEAR that a transaction costs before refunds; None if unknown."""
    try:
        runtime = json_decoding.convert((config or {}).get("runtime_config"), RuntimeConfig)
        gas = _prepaid_gas(tx, runtime.transaction_costs)
    except (msgspec.DecodeError, _UnknownFeeError):
        return None
    price = max(gas_price, int(runtime.min_gas_purchase_price))
    return (gas + attached_gas(tx.actions)) * price + deposits(tx.actions)


def _prepaid_gas(tx: Transaction, fees: TransactionFees) -> int:
    """Sum the gas to send and execute a transaction, without the gas attached to its calls."""
    is_to_self = tx.signer_id == tx.receiver_id
    keys = [tx.public_key]
    keys += [a.delegate_action.public_key for a in tx.actions if isinstance(a, SignedDelegate)]
    n_slow = sum(key.curve == "ml-dsa-65" for key in keys)  # verifying other curves has no fee
    return (
        n_slow * fees.ml_dsa_65_verification_cost
        + _send_gas(fees.action_receipt_creation_config, is_to_self=is_to_self)
        + _gas_to_send(tx.actions, tx.receiver_id, fees, is_to_self=is_to_self)
        + _gas_to_execute(tx.actions, tx.receiver_id, fees)
    )


def _gas_to_send(
    actions: Sequence[Action], receiver_id: str, fees: TransactionFees, *, is_to_self: bool
) -> int:
    """Sum the gas to send actions, including delegated ones."""
    total = 0
    for action in actions:
        counts = _fee_counts(action, receiver_id, fees.action_creation_config)
        total += sum(_send_gas(fee, is_to_self=is_to_self) * count for fee, count in counts)
        if isinstance(action, SignedDelegate):
            inner = action.delegate_action
            total += _gas_to_send(inner.actions, inner.receiver_id, fees, is_to_self=is_to_self)
    return total


def _gas_to_execute(actions: Sequence[Action], receiver_id: str, fees: TransactionFees) -> int:
    """Sum the gas to execute a receipt, and to send and execute its delegated actions."""
    total = fees.action_receipt_creation_config.execution
    for action in actions:
        counts = _fee_counts(action, receiver_id, fees.action_creation_config)
        total += sum(fee.execution * count for fee, count in counts)
        if isinstance(action, SignedDelegate):
            inner = action.delegate_action
            is_to_self = inner.sender_id == inner.receiver_id
            total += _gas_to_send(inner.actions, inner.receiver_id, fees, is_to_self=is_to_self)
            total += _gas_to_execute(inner.actions, inner.receiver_id, fees)
    return total


def _send_gas(fee: Fee, *, is_to_self: bool) -> int:
    """Return the gas to send; it is lower if the sender is the receiver."""
    gas = fee.send_sir if is_to_self else fee.send_not_sir
    if gas is None:
        raise _UnknownFeeError
    return gas


def _fee_counts(action: Action, receiver_id: str, costs: ActionFees) -> list[FeeCount]:
    if isinstance(action, AddKey):
        return _key_fees(action.access_key.permission, costs)
    kind = KIND_OF[type(action)]
    counts = [(_fee(costs, f"{kind.fee}_cost"), 1)]
    if kind.charged_bytes is not None:
        counts.append((_fee(costs, f"{kind.fee}_cost_per_byte"), kind.charged_bytes(action)))
    origin = AccountId(receiver_id).kind
    if isinstance(action, Transfer) and origin != "named":  # it may create its receiver
        counts.append((_fee(costs, "create_account_cost"), 1))
        counts += _key_fees(FullAccess(), costs) if origin == "near-implicit" else []
    return counts


def _fee(costs: ActionFees, name: str) -> Fee:
    fee = getattr(costs, name, None)
    if not isinstance(fee, Fee):
        raise _UnknownFeeError
    return fee


def _key_fees(permission: Permission, costs: ActionFees) -> list[FeeCount]:
    """List the fees of adding a key; the fees of a gas key are not in the configuration."""
    fees = costs.add_key_cost
    if fees is None or not isinstance(permission, FullAccess | FunctionCallPermission):
        raise _UnknownFeeError
    if isinstance(permission, FullAccess):
        return [(fees.full_access_cost, 1)]
    size = sum(len(name.encode()) + 1 for name in permission.method_names)
    return [(fees.function_call_cost, 1), (fees.function_call_cost_per_byte, size)]
