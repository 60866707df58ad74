"""The protocol's rules that reading a transaction's result depends on."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ledgerkit import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

Gas = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Divisor = Annotated[int, Meta(gt=0)]


class Rules(Struct, frozen=True):
    """
    The rules of one epoch.

    `reward` is the contract's share of the gas that its calls burn, as numerator and
    denominator; `boundaries` are the accounts at which a new shard begins. The last three are
    execution costs in gas: of a receipt, of a call, and of each byte of its method and arguments.
    """

    protocol_version: int
    reward: tuple[Gas, Divisor]
    boundaries: tuple[str, ...] | None
    shard_ids: tuple[int, ...]
    receipt_gas: Gas
    call_gas: Gas
    call_byte_gas: Gas

    def shard_of(self, account_id: str) -> int | None:
        """Return the shard of an account; None if the layout has no boundary accounts."""
        if self.boundaries is None:
            return None
        index = bisect_right(self.boundaries, account_id)
        return self.shard_ids[index] if index < len(self.shard_ids) else None


class _Fee(Struct):
    """The cost of an action; only the execution part is read."""

    execution: Gas


class _ActionFees(Struct):
    """The fees of actions; only those of calls are read."""

    function_call_cost: _Fee
    function_call_cost_per_byte: _Fee


class _TransactionCosts(Struct):
    """The costs of transactions."""

    burnt_gas_reward: tuple[Gas, Divisor]
    action_receipt_creation_config: _Fee
    action_creation_config: _ActionFees


class _RuntimeConfig(Struct):
    """The rules of execution."""

    transaction_costs: _TransactionCosts


class _ShardLayout(Struct):
    """The accounts of each shard, in the versions that have boundary accounts."""

    boundary_accounts: tuple[str, ...] | None = None
    shard_ids: tuple[int, ...] | None = None


class _ProtocolConfig(Struct):
    """A protocol configuration."""

    protocol_version: int
    runtime_config: _RuntimeConfig
    shard_layout: dict[str, _ShardLayout]


def rules_of(config: Mapping[str, Any]) -> Rules:
    """Read the rules from the decoded result of EXPERIMENTAL_protocol_config."""
    try:
        decoded = msgspec.convert(config, _ProtocolConfig)
    except msgspec.ValidationError as problem:
        reason, _, path = str(problem).partition(" - at `")
        path = path.rstrip("`")
        sentence = f"the protocol configuration is not as documented: {reason} at {path}"
        raise errors.DecodeError(sentence, path=path) from None
    costs = decoded.runtime_config.transaction_costs
    # The layout is an object of one member, whose name is the layout's version.
    layout = next(iter(decoded.shard_layout.values()))
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
