"""What a transaction costs at most, by the fees that the ledger publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

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
from ledgerkit.protocol.actions import attached_gas, deposits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.protocol import Action, Transaction


class Fee(Struct, frozen=True):
    """Gas to send to oneself, to send to others, and to execute."""

    send_sir: int
    send_not_sir: int
    execution: int

    def gas(self, *, sir: bool) -> int:
        """Sum sending and executing; sir: sender is receiver."""
        return self.execution + (self.send_sir if sir else self.send_not_sir)


class _KeyCosts(Struct, frozen=True):
    """Fees of adding a key."""

    full_access_cost: Fee
    function_call_cost: Fee
    function_call_cost_per_byte: Fee


class _ActionCosts(Struct, frozen=True):
    """Fees of actions."""

    create_account_cost: Fee
    deploy_contract_cost: Fee
    deploy_contract_cost_per_byte: Fee
    function_call_cost: Fee
    function_call_cost_per_byte: Fee
    transfer_cost: Fee
    stake_cost: Fee
    add_key_cost: _KeyCosts
    delete_key_cost: Fee
    delete_account_cost: Fee
    delegate_cost: Fee


class _Costs(Struct, frozen=True):
    """Fees of receipts and actions."""

    action_receipt_creation_config: Fee
    action_creation_config: _ActionCosts


class _Runtime(Struct, frozen=True):
    """As much of the runtime's configuration as tells what a transaction costs."""

    transaction_costs: _Costs
    # Since protocol 86 gas is bought at this price at least, and the rest given back.
    min_gas_purchase_price: str = "1000000000"


class _Config(Struct, frozen=True):
    """As much of the protocol's configuration."""

    runtime_config: _Runtime


def bound(tx: Transaction, config: Any, gas_price: int) -> int | None:
    """
    Bound what a transaction takes from its signer.

    Parameters
    ----------
    tx
        The transaction.
    config
        The answer of ``EXPERIMENTAL_protocol_config``.
    gas_price
        The present price of gas.

    Returns
    -------
    yocto
        Fees, attached gas and deposits, before anything is given back; None where the
        configuration does not tell the fee of an action.
    """
    try:
        runtime = msgspec.convert(config, _Config).runtime_config
    except msgspec.ValidationError:
        return None
    gas = _gas(tx.actions, tx.signer_id, tx.receiver_id, runtime.transaction_costs)
    if gas is None:
        return None
    price = max(gas_price, int(runtime.min_gas_purchase_price))
    attached = attached_gas(tx.actions)
    return (gas + attached) * price + deposits(tx.actions)


def _gas(actions: Sequence[Action], sender_id: str, receiver_id: str, costs: _Costs) -> int | None:
    """Sum the gas of a receipt and its actions, sent and executed."""
    sir = sender_id == receiver_id
    total = costs.action_receipt_creation_config.gas(sir=sir)
    for action in actions:
        fees = _fees(action, receiver_id, costs.action_creation_config)
        if fees is None:
            return None
        total += sum(fee.gas(sir=sir) * times for fee, times in fees)
        if isinstance(action, Delegate | DelegateV2):
            inner = action.delegate_action
            more = _gas(inner.actions, inner.sender_id, inner.receiver_id, costs)
            if more is None:
                return None
            total += more
    return total


def _fees(action: Action, receiver_id: str, costs: _ActionCosts) -> list[tuple[Fee, int]] | None:
    """List an action's fees, each with how many times it is paid; None where not told."""
    match action:
        case FunctionCall(method_name=name, args=args):
            size = len(name.encode()) + len(args)
            return [(costs.function_call_cost, 1), (costs.function_call_cost_per_byte, size)]
        case DeployContract(code=code):
            byte = costs.deploy_contract_cost_per_byte
            return [(costs.deploy_contract_cost, 1), (byte, len(code))]
        case AddKey(access_key=access_key):
            return _key_fees(access_key.permission, costs.add_key_cost)
        case Transfer():
            return [(costs.transfer_cost, 1), *_creation(receiver_id, costs)]
    simple = {
        CreateAccount: costs.create_account_cost,
        Stake: costs.stake_cost,
        DeleteKey: costs.delete_key_cost,
        DeleteAccount: costs.delete_account_cost,
        Delegate: costs.delegate_cost,
        DelegateV2: costs.delegate_cost,
    }
    fee = simple.get(type(action))
    return None if fee is None else [(fee, 1)]


def _key_fees(permission: object, costs: _KeyCosts) -> list[tuple[Fee, int]]:
    """List the fees of adding a key."""
    if not isinstance(permission, FunctionCallPermission):
        return [(costs.full_access_cost, 1)]
    size = sum(len(name.encode()) + 1 for name in permission.method_names)
    return [(costs.function_call_cost, 1), (costs.function_call_cost_per_byte, size)]


def _creation(receiver_id: str, costs: _ActionCosts) -> list[tuple[Fee, int]]:
    """List what a transfer costs more because its receiver may come to exist by it."""
    kind = AccountId(receiver_id).kind
    if kind == "near-implicit":
        return [(costs.create_account_cost, 1), (costs.add_key_cost.full_access_cost, 1)]
    return [(costs.create_account_cost, 1)] if kind == "eth-implicit" else []
