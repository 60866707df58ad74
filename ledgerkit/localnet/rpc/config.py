"""The methods that return configurations: of the genesis, the protocol and the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.localnet import fees, rpc_json
from ledgerkit.localnet.rpc import blocks, node, queries
from ledgerkit.localnet.rpc import params as read
from ledgerkit.localnet.rpc.runtime_config import runtime_config
from ledgerkit.localnet.settings import SECOND_NS, YEAR_NS, Settings

if TYPE_CHECKING:
    from ledgerkit.localnet.rpc.errors import Object
    from ledgerkit.localnet.world import World


def genesis_config(world: World) -> Object:
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
    return _common_config(world) | {"runtime_config": runtime_config(world)}


def client_config(world: World) -> Object:
    """
    Return the result of `client_config`: the part of a node's configuration that applies here.

    Members about peers, synchronization and threads, which this ledger does not have, are absent.
    """
    settings = world.settings
    seconds, nanos = divmod(settings.block_time_ns, SECOND_NS)
    block_time = f"[{seconds},{nanos}]"
    return {
        "version": node.version(),
        "chain_id": settings.chain_id,
        "rpc_addr": node.RPC_ADDRESS,
        "expected_shutdown": "null",
        "min_block_production_delay": block_time,
        "max_block_production_delay": block_time,
        "max_block_wait_delay": block_time,
        "min_num_peers": 0,
        "skip_sync_wait": True,
        "produce_empty_blocks": settings.real_time,
        "epoch_length": settings.epoch_length,
        "num_block_producer_seats": _SEATS["num_block_producer_seats"],
        "gc": {
            "gc_blocks_limit": 2,
            "gc_fork_clean_step": 100,
            "gc_num_epochs_to_keep": settings.epochs_kept,
            "gc_step_period": {"secs": 0, "nanos": 500_000_000},
        },
        "tracked_shards_config": "AllShards",
        "archive": settings.archival,
        "save_trie_changes": not settings.archival,
        "save_tx_outcomes": True,
        "save_receipt_to_tx": True,
        "save_state_changes": True,
        "trie_viewer_state_size_limit": queries.MAX_STATE_BYTES,
        "view_access_keys_limit": queries.MAX_ACCESS_KEYS,
        "max_gas_burnt_view": None,
        "transaction_pool_size_limit": None,
        "cloud_archival_writer": None,
        "chunk_distribution_network": None,
    }


def _common_config(world: World) -> Object:
    settings = world.settings
    return {
        "protocol_version": world.runtime.profile.version,
        "genesis_time": rpc_json.rfc3339(settings.genesis_time_ns),
        "chain_id": settings.chain_id,
        "genesis_height": settings.genesis_height,
        "epoch_length": settings.epoch_length,
        "transaction_validity_period": settings.validity,
        "gas_limit": fees.CHUNK_GAS,
        "min_gas_price": str(settings.gas_price),
        "max_gas_price": str(settings.gas_price * fees.MAX_GAS_PRICE_FACTOR),
        "gas_price_adjustment_rate": [1, 100],
        "num_blocks_per_year": YEAR_NS // settings.block_time_ns,
        "max_inflation_rate": [0, 1],
        "protocol_reward_rate": [0, 1],
        "protocol_treasury_account": world.chain.genesis.author,
        "shard_layout": {"V2": _shard_layout(settings)},
    } | _SEATS


def _shard_layout(settings: Settings) -> Object:
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
