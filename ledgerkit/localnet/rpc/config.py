"""The methods that return the chain's rules: the genesis and protocol configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.localnet import fees, rpc_json, transaction_validity, vm
from ledgerkit.localnet.rpc import blocks
from ledgerkit.localnet.rpc import params as read

if TYPE_CHECKING:
    from ledgerkit.localnet.fees import Fee, Profile
    from ledgerkit.localnet.rpc.errors import Object
    from ledgerkit.localnet.settings import Settings
    from ledgerkit.localnet.world import World

_YEAR_NS = 365 * 24 * 3600 * 10**9


def genesis_config(world: World) -> Object:
    """Return the result of `genesis_config`."""
    validators = world.epochs.all[0].validators.values()
    return _common_config(world) | {
        "total_supply": str(world.chain.genesis.total_supply),
        "num_chunk_producer_seats": 1,
        "num_chunk_validator_seats": 1,
        "chunk_producer_assignment_changes_limit": 0,
        "use_production_config": False,
        "validators": [
            {
                "account_id": validator.account_id,
                "public_key": str(validator.public_key),
                "amount": str(validator.stake),
            }
            for validator in validators
        ],
    }


def protocol_config(world: World, params: Any) -> Object:
    """Return the result of `EXPERIMENTAL_protocol_config`, the same at every block."""
    blocks.find(world, read.lone_reference(params))
    return _common_config(world) | {"runtime_config": _runtime_config(world)}


def _common_config(world: World) -> Object:
    """Return the members of both configurations."""
    settings = world.settings
    return {
        "protocol_version": blocks.protocol_version(world),
        "genesis_time": rpc_json.rfc3339(settings.genesis_time_ns),
        "chain_id": settings.chain_id,
        "genesis_height": settings.genesis_height,
        "epoch_length": settings.epoch_length,
        "transaction_validity_period": settings.validity,
        "gas_limit": fees.CHUNK_GAS,
        "min_gas_price": str(settings.gas_price),
        "max_gas_price": str(settings.gas_price * fees.MAX_GAS_PRICE_FACTOR),
        "gas_price_adjustment_rate": [1, 100],
        "num_blocks_per_year": _YEAR_NS // settings.block_time_ns,
        "max_inflation_rate": [0, 1],
        "protocol_reward_rate": [0, 1],
        "protocol_treasury_account": world.chain.genesis.author,
        "shard_layout": {"V2": _shard_layout(settings)},
    } | _SEATS


def _shard_layout(settings: Settings) -> Object:
    """Return the shards and the account ids at their boundaries."""
    ids = settings.shard_ids
    return {
        "boundary_accounts": list(settings.boundaries),
        "shard_ids": list(ids),
        "id_to_index_map": {str(shard_id): index for index, shard_id in enumerate(ids)},
        "index_to_id_map": {str(index): shard_id for index, shard_id in enumerate(ids)},
        "shards_split_map": None,
        "shards_parent_map": None,
        "version": 3,
    }


# One validator produces all blocks, and no validator is ever kicked out.
_SEATS: Object = {
    "num_block_producer_seats": 1,
    "minimum_validators_per_shard": 1,
    "target_validator_mandates_per_shard": 1,
    "block_producer_kickout_threshold": 0,
    "chunk_producer_kickout_threshold": 0,
    "chunk_validator_only_kickout_threshold": 0,
    "max_kickout_stake_perc": 0,
    "online_min_threshold": [0, 1],
    "online_max_threshold": [1, 1],
    "minimum_stake_divisor": 10,
    "minimum_stake_ratio": [0, 1],
    "protocol_upgrade_stake_threshold": [1, 1],
    "fishermen_threshold": "0",
    "dynamic_resharding": False,
    "shuffle_shard_assignment_for_chunk_producers": False,
}


def _runtime_config(world: World) -> Object:
    """Return the costs and size limits of execution."""
    profile = world.runtime.profile
    return {
        "storage_amount_per_byte": str(fees.STORAGE_BYTE),
        "min_gas_purchase_price": str(profile.min_purchase_price),
        "account_creation_charge": str(profile.creation_charge),
        "transaction_costs": _transaction_costs(profile),
        "wasm_config": {
            "ext_costs": _host_costs(),
            "regular_op_cost": fees.REGULAR_OP,
            "implicit_account_creation": True,
            "eth_implicit_accounts": True,
            "global_contract_host_fns": True,
            "limit_config": _limits(world.settings),
        },
        "account_creation_config": {
            "min_allowed_top_level_account_length": 65,
            "registrar_account_id": "registrar",
        },
    }


def _transaction_costs(profile: Profile) -> Object:
    """Return the fees of receipts, actions and storage."""
    table = profile.table
    return {
        "action_receipt_creation_config": _fee(table["new_action_receipt"]),
        "data_receipt_creation_config": {
            "base_cost": _fee(table["data_receipt_base"]),
            "cost_per_byte": _fee(table["data_receipt_byte"]),
        },
        "action_creation_config": _action_costs(profile),
        "storage_usage_config": {
            "num_bytes_account": 100,
            "num_extra_bytes_record": fees.RECORD_BYTES,
        },
        "burnt_gas_reward": [profile.reward_percent, 100],
        "pessimistic_gas_price_inflation_ratio": [1, 1],
    }


def _action_costs(profile: Profile) -> Object:
    """Return the fees of actions."""
    table = profile.table
    table_names = {
        "create_account_cost": "create_account",
        "deploy_contract_cost": "deploy_contract",
        "deploy_contract_cost_per_byte": "deploy_contract_byte",
        "function_call_cost": "function_call",
        "function_call_cost_per_byte": "function_call_byte",
        "transfer_cost": "transfer",
        "stake_cost": "stake",
        "delete_key_cost": "delete_key",
        "delete_account_cost": "delete_account",
        "delegate_cost": "delegate",
    }
    add_key = {
        "full_access_cost": _fee(table["add_full_access_key"]),
        "function_call_cost": _fee(table["add_function_call_key"]),
        "function_call_cost_per_byte": _fee(table["add_function_call_key_byte"]),
    }
    return {name: _fee(table[key]) for name, key in table_names.items()} | {"add_key_cost": add_key}


def _fee(fee: Fee) -> Object:
    """Format a fee."""
    return {
        "send_sir": fee.send_sir,
        "send_not_sir": fee.send_other,
        "execution": fee.execute,
    }


def _host_costs() -> Object:
    """Return the gas costs of host functions."""
    return {name.lower(): gas for name, gas in fees.HOST_COSTS.items()}


def _limits(settings: Settings) -> Object:
    """Return the limits on sizes and numbers."""
    return {
        "max_gas_burnt": fees.VIEW_GAS,
        "max_total_prepaid_gas": transaction_validity.MAX_PREPAID_GAS,
        "max_actions_per_receipt": transaction_validity.MAX_ACTIONS,
        "max_length_method_name": transaction_validity.MAX_METHOD_NAME_BYTES,
        "max_number_bytes_method_names": transaction_validity.MAX_KEY_METHODS_BYTES,
        "max_arguments_length": transaction_validity.MAX_ARGS_BYTES,
        "max_contract_size": transaction_validity.MAX_CODE_BYTES,
        "max_transaction_size": transaction_validity.MAX_TRANSACTION_BYTES,
        "max_number_logs": vm.MAX_LOGS,
        "max_total_log_length": vm.MAX_LOG_BYTES,
        "max_promises_per_function_call_action": vm.MAX_PROMISES,
        "max_number_input_data_dependencies": vm.MAX_INPUT_DATA,
        "max_length_returned_data": vm.MAX_RESULT_BYTES,
        "max_length_storage_key": transaction_validity.MAX_KEY_BYTES,
        "max_length_storage_value": transaction_validity.MAX_VALUE_BYTES,
        "max_yield_payload_size": vm.MAX_YIELD_PAYLOAD_BYTES,
        "yield_timeout_length_in_blocks": settings.yield_timeout,
        "account_id_validity_rules_version": 2,
    }
