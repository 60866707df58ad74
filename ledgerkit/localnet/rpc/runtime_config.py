"""The rules of execution: the member `runtime_config` of the protocol's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit.localnet import fees, promises, vm
from ledgerkit.localnet.chain_types import ACCOUNT_BYTES
from ledgerkit.localnet.fees import Feature, Fee, Profile
from ledgerkit.localnet.wasm import guest, modules
from ledgerkit.protocol import limits

if TYPE_CHECKING:
    from ledgerkit.localnet.rpc.errors import Object
    from ledgerkit.localnet.settings import Settings
    from ledgerkit.localnet.world import World


def runtime_config(world: World) -> Object:
    profile = world.runtime.profile
    return {
        "storage_amount_per_byte": str(fees.STORAGE_BYTE_PRICE),
        "min_gas_purchase_price": str(profile.min_purchase_price),
        "account_creation_charge": str(profile.creation_charge),
        "transaction_costs": _transaction_costs(profile),
        "wasm_config": _vm_config(world),
        "account_creation_config": {
            "min_allowed_top_level_account_length": 65,
            "registrar_account_id": "registrar",
        },
        "congestion_control_config": _CONGESTION,
        "witness_config": _WITNESS,
    }


def _vm_config(world: World) -> Object:
    profile = world.runtime.profile
    costs = {name.lower(): gas for name, gas in fees.HOST_COSTS.items()} | _OTHER_COSTS
    if profile.version < _FLAGS["yield_with_id_host_fns"]:
        costs["yield_create_with_id_base"] = _UNUSABLE
    flags = {name: profile.version >= since for name, since in _FLAGS.items()}
    return {
        "ext_costs": costs,
        "grow_mem_cost": 1,
        "regular_op_cost": fees.REGULAR_OP,
        "linear_op_base_cost": 26_328_192,
        "linear_op_unit_cost": fees.REGULAR_OP,
        "vm_kind": "Wasmtime",
        "storage_get_mode": "FlatStorage",
        "limit_config": _limits(world.settings, profile),
    } | flags


def _transaction_costs(profile: Profile) -> Object:
    table = profile.table
    has_ml_dsa = profile.has(Feature.POST_QUANTUM_SIGNATURES)
    reward = [profile.reward_percent // 10, 10] if profile.reward_percent else [0, 1]
    return {
        "action_receipt_creation_config": _fee(table["new_action_receipt"]),
        "data_receipt_creation_config": {
            "base_cost": _fee(table["data_receipt_base"]),
            "cost_per_byte": _fee(table["data_receipt_byte"]),
        },
        "action_creation_config": _action_costs(profile),
        "storage_usage_config": {
            "num_bytes_account": ACCOUNT_BYTES,
            "num_extra_bytes_record": fees.RECORD_BYTES,
        },
        "burnt_gas_reward": reward,
        "pessimistic_gas_price_inflation_ratio": [1, 1],
        "ml_dsa_65_verification_cost": fees.ML_DSA_VERIFICATION if has_ml_dsa else 0,
    }


def _action_costs(profile: Profile) -> Object:
    table = profile.table
    names = (
        "create_account deploy_contract deploy_contract_byte function_call function_call_byte"
        " transfer stake delete_key delete_account delegate"
    )
    costs = {
        f"{name}_cost".replace("_byte_cost", "_cost_per_byte"): _fee(table[name])
        for name in names.split()
    }
    add_key = {
        "full_access_cost": _fee(table["add_full_access_key"]),
        "function_call_cost": _fee(table["add_function_call_key"]),
        "function_call_cost_per_byte": _fee(table["add_function_call_key_byte"]),
    }
    return costs | {"add_key_cost": add_key}


def _fee(fee: Fee) -> Object:
    return {
        "send_sir": fee.send_sir,
        "send_not_sir": fee.send_other,
        "execution": fee.execute,
    }


def _limits(settings: Settings, profile: Profile) -> Object:
    has_87 = profile.has(Feature.STATE_INIT_LIMIT)
    config = {
        "max_gas_burnt": fees.MAX_GAS_BURNT,
        "max_total_prepaid_gas": limits.MAX_PREPAID_GAS,
        "max_actions_per_receipt": limits.MAX_ACTIONS,
        "max_deploy_actions_per_receipt": limits.MAX_DEPLOY_ACTIONS,
        "max_length_method_name": limits.MAX_METHOD_NAME_BYTES,
        "max_number_bytes_method_names": limits.MAX_KEY_METHODS_BYTES,
        "max_arguments_length": limits.MAX_ARGS_BYTES,
        "max_contract_size": limits.MAX_CODE_BYTES,
        "max_transaction_size": limits.MAX_TRANSACTION_BYTES,
        "max_number_logs": vm.MAX_LOGS,
        "max_total_log_length": vm.MAX_LOG_BYTES,
        "max_promises_per_function_call_action": promises.MAX_PROMISES,
        "max_number_input_data_dependencies": promises.MAX_INPUT_DATA,
        "max_length_returned_data": vm.MAX_RESULT_BYTES,
        "max_length_storage_key": limits.MAX_KEY_BYTES,
        "max_length_storage_value": limits.MAX_VALUE_BYTES,
        "max_yield_payload_size": promises.MAX_YIELD_PAYLOAD_BYTES,
        "yield_timeout_length_in_blocks": settings.yield_timeout,
        "account_id_validity_rules_version": 2,
        "max_receipt_total_input_size": promises.MAX_INPUT_BYTES if has_87 else 2**32 - 1,
        "max_state_init_entries": limits.MAX_STATE_INIT_ENTRIES if has_87 else 2**32 - 1,
    }
    if has_87:
        config["max_universal_state_init_keys"] = limits.MAX_STATE_INIT_KEYS
        config["min_contract_size_per_local"] = modules.MODULE_BYTES_PER_LOCAL
    if profile.version >= modules.GLOBALS_SINCE:
        config["max_globals_per_contract"] = modules.MAX_GLOBALS
    return config | _MODULE_LIMITS


# Values that this ledger does not use, from nearcore's core/parameters/src/snapshots, files
# near_parameters__config_store__tests__84, 85 and 87, and runtime_configs/87.yaml there.

_UNUSABLE = 300 * fees.TGAS
_FLAGS = {  # with the protocol version that brought them
    "discard_custom_sections": 0,
    "global_contract_host_fns": 0,
    "reftypes_bulk_memory": 0,
    "implicit_account_creation": 0,
    "eth_implicit_accounts": 0,
    "gas_key_host_fns": 85,
    "one_yocto_on_promise": 85,
    "p256_verify_host_fn": 85,
    "yield_with_id_host_fns": 85,
    "chain_id_host_fn": 85,
    "sha3_host_fns": 87,
    "ml_dsa_verify_host_fn": 87,
    "universal_accounts": 87,
    "fix_contract_loading_cost": 129,
    "bls12381_not_in_group_fix": 129,
}
_OTHER_COSTS = {
    **dict.fromkeys(
        (
            *("storage_iter_create_prefix_base", "storage_iter_create_prefix_byte"),
            *("storage_iter_create_range_base", "storage_iter_create_from_byte"),
            *("storage_iter_create_to_byte", "storage_iter_next_base"),
            *("storage_iter_next_key_byte", "storage_iter_next_value_byte"),
        ),
        0,
    ),
    "ml_dsa_verify_base": 540_000_000_000,
    "ml_dsa_verify_byte": 11_000_000,
    "touching_trie_node": 2_280_000_000,
    "read_cached_trie_node": 2_280_000_000,
    "contract_compile_base": 0,
    "contract_compile_bytes": 0,
} | {
    f"{name}_{part}": mgas * 10**6
    for name, costs in {
        "alt_bn128_g1_multiexp": (713_000, 320_000),
        "alt_bn128_g1_sum": (3_000, 5_000),
        "alt_bn128_pairing_check": (9_686_000, 5_102_000),
        "bls12381_p1_sum": (16_500, 6_000),
        "bls12381_p2_sum": (18_600, 15_000),
        "bls12381_g1_multiexp": (16_500, 930_000),
        "bls12381_g2_multiexp": (18_600, 1_995_000),
        "bls12381_map_fp_to_g1": (1_500, 252_000),
        "bls12381_map_fp2_to_g2": (1_500, 900_000),
        "bls12381_pairing": (2_130_000, 2_130_000),
        "bls12381_p1_decompress": (15_000, 81_000),
        "bls12381_p2_decompress": (15_000, 165_000),
    }.items()
    for part, mgas in zip(("base", "element"), costs, strict=True)
}
_MODULE_LIMITS = {
    "max_stack_height": 262_144,
    "initial_memory_pages": modules.INITIAL_PAGES,
    "max_memory_pages": modules.MAX_PAGES,
    "registers_memory_limit": guest.MAX_REGISTERS_BYTES,
    "max_register_size": guest.MAX_REGISTER_BYTES,
    "max_number_registers": guest.MAX_REGISTERS,
    "max_receipt_size": 4 * 2**20,
    "max_functions_number_per_contract": modules.MAX_FUNCTIONS,
    "max_locals_per_contract": modules.MAX_LOCALS,
    "max_params_per_contract": 50_000,
    "max_params_per_function": 64,
    "max_operand_stack_bytes_per_function": 8192,
    "max_tables_per_contract": modules.MAX_TABLES,
    "max_elements_per_contract_table": modules.MAX_TABLE_ELEMENTS,
    "max_function_body_size": modules.MAX_BODY_BYTES,
    "max_instrumented_code_size": 16 * 2**20,
    "max_blocks_per_function": 5000,
    "max_blocks_per_contract": 50_000,
    "max_types_per_contract": 1024,
    "per_receipt_storage_proof_size_limit": 4_000_000,
}
_CONGESTION = {
    "max_congestion_incoming_gas": 400_000 * fees.TGAS,
    "max_congestion_outgoing_gas": 10_000 * fees.TGAS,
    "max_congestion_memory_consumption": 10**9,
    "max_congestion_missed_chunks": 125,
    "max_outgoing_gas": 300_000 * fees.TGAS,
    "min_outgoing_gas": 1000 * fees.TGAS,
    "allowed_shard_outgoing_gas": 1000 * fees.TGAS,
    "max_tx_gas": 500 * fees.TGAS,
    "min_tx_gas": 20 * fees.TGAS,
    "reject_tx_congestion_threshold": 0.8,
}
_WITNESS = {
    "main_storage_proof_size_soft_limit": 4_000_000,
    "combined_transactions_size_limit": 4 * 2**20,
    "new_transactions_validation_state_size_soft_limit": 572_864,
}
