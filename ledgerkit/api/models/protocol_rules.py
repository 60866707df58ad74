"""The protocol's rules that are needed to read the result of a transaction."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ledgerkit import errors, json_decoding
from ledgerkit.api.models.chain import UInt63

Gas = Annotated[int, Meta(ge=0)]
Divisor = Annotated[int, Meta(gt=0)]


class Rules(Struct, frozen=True):
    """
    The rules of an epoch.

    `reward` is the contract's share of the gas that its calls burn, as numerator and denominator;
    `boundaries` are the accounts at which a new shard begins. The last three members are execution
    costs in gas: for a receipt, a call, and a byte of its method and arguments.
    """

    protocol_version: int
    reward: tuple[Gas, Divisor]
    boundaries: tuple[str, ...] | None
    shard_ids: tuple[UInt63, ...]
    receipt_gas: Gas
    call_gas: Gas
    call_byte_gas: Gas

    def shard_of(self, account_id: str) -> int | None:
        """Return the shard of an account; None if the layout has no boundary accounts."""
        if self.boundaries is None:
            return None
        index = bisect_right(self.boundaries, account_id)
        return self.shard_ids[index] if index < len(self.shard_ids) else None


class Fee(Struct, frozen=True):
    """The gas to execute an action, and to send it to oneself (sir) or to others."""

    execution: Gas
    send_sir: Gas | None = None
    send_not_sir: Gas | None = None


class KeyFees(Struct, frozen=True):
    """The fees of adding a key."""

    full_access_cost: Fee
    function_call_cost: Fee
    function_call_cost_per_byte: Fee


class ActionFees(Struct, frozen=True):
    """The fees of actions; older protocols lack some of them."""

    function_call_cost: Fee
    function_call_cost_per_byte: Fee
    create_account_cost: Fee | None = None
    deploy_contract_cost: Fee | None = None
    deploy_contract_cost_per_byte: Fee | None = None
    transfer_cost: Fee | None = None
    stake_cost: Fee | None = None
    add_key_cost: KeyFees | None = None
    delete_key_cost: Fee | None = None
    delete_account_cost: Fee | None = None
    delegate_cost: Fee | None = None


class TransactionFees(Struct, frozen=True):
    """The fees of receipts and actions, and the contracts' share of burnt gas."""

    burnt_gas_reward: tuple[Gas, Divisor]
    action_receipt_creation_config: Fee
    action_creation_config: ActionFees
    ml_dsa_65_verification_cost: Gas = 0


class RuntimeConfig(Struct, frozen=True):
    """The rules of execution."""

    transaction_costs: TransactionFees
    # Since protocol 86 gas is bought at no less than this price; the difference is refunded.
    min_gas_purchase_price: Annotated[str, Meta(pattern=r"\A[0-9]{1,39}\Z")] = "1000000000"


class _ShardLayout(Struct):
    """The accounts of each shard, in the versions that have boundary accounts."""

    boundary_accounts: tuple[str, ...] | None = None
    shard_ids: tuple[UInt63, ...] | None = None


class _ProtocolConfig(Struct):
    protocol_version: int
    runtime_config: RuntimeConfig
    shard_layout: dict[str, _ShardLayout] | None = None


def rules_of(config: Mapping[str, Any]) -> Rules:
    """Read the rules from the decoded result of EXPERIMENTAL_protocol_config."""
    try:
        decoded = json_decoding.convert(config, _ProtocolConfig)
    except msgspec.DecodeError as problem:
        remedy = "Pass the whole result of EXPERIMENTAL_protocol_config."
        document = "the protocol configuration"
        raise errors.not_as_documented(document, problem, remedy=remedy) from None
    costs = decoded.runtime_config.transaction_costs
    # The layout is an object of one member, named for the layout's version. Old versions of the
    # protocol have no layout.
    layout = next(iter((decoded.shard_layout or {}).values()), _ShardLayout())
    boundaries = layout.boundary_accounts
    ids = tuple(range(0 if boundaries is None else len(boundaries) + 1))
    return Rules(
        decoded.protocol_version,
        costs.burnt_gas_reward,
        boundaries,
        layout.shard_ids or ids,
        costs.action_receipt_creation_config.execution,
        costs.action_creation_config.function_call_cost.execution,
        costs.action_creation_config.function_call_cost_per_byte.execution,
    )
