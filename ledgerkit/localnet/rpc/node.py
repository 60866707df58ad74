"""The methods and pages about the node itself: its status, its key and its metrics."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from ledgerkit.localnet import rpc_json
from ledgerkit.localnet.rpc import blocks
from ledgerkit.protocol import PublicKey

if TYPE_CHECKING:
    from ledgerkit.localnet.chain_types import Block
    from ledgerkit.localnet.rpc.errors import Object
    from ledgerkit.localnet.world import World

VERSION = "2.13.1"  # of the nearcore node whose responses these are
_NS_PER_SECOND = 10**9
_RPC_ADDRESS = "127.0.0.1:3030"


def status(world: World) -> Object:
    """Return the result of `status`."""
    head, genesis = world.chain.head, world.chain.genesis
    version = blocks.protocol_version(world)
    return {
        "version": {"version": VERSION, "build": "localnet", "commit": "", "rustc_version": ""},
        "chain_id": world.settings.chain_id,
        "genesis_hash": genesis.hash,
        "protocol_version": version,
        "latest_protocol_version": version,
        "rpc_addr": _RPC_ADDRESS,
        "validators": [{"account_id": name} for name in world.epochs.current.validators],
        "sync_info": _sync_info(world, head),
        "validator_account_id": None,
        "validator_public_key": None,
        "node_public_key": str(_node_key(world)),
        "node_key": None,
        "uptime_sec": (head.timestamp_ns - genesis.timestamp_ns) // _NS_PER_SECOND,
        "detailed_debug_status": None,
    }


def _sync_info(world: World, head: Block) -> Object:
    """Return the latest block, and the earliest with a state."""
    earliest = world.chain.earliest
    return {
        "latest_block_hash": head.hash,
        "latest_block_height": head.height,
        "latest_state_root": rpc_json.state_root(head),
        "latest_block_time": rpc_json.rfc3339(head.timestamp_ns),
        "syncing": False,
        "earliest_block_hash": earliest.hash,
        "earliest_block_height": earliest.height,
        "earliest_block_time": rpc_json.rfc3339(earliest.timestamp_ns),
        "epoch_id": head.epoch_id,
        "epoch_start_height": head.epoch_start_height,
    }


def _node_key(world: World) -> PublicKey:
    """Return a public key for the node; it has no secret key."""
    return PublicKey("ed25519", sha256(world.chain.genesis.hash).digest())


def metrics(world: World) -> str:
    """Return a few metrics in the Prometheus text format."""
    chain = world.chain
    gauges = {
        "near_block_height_head": ("Height of the current head of the blockchain", chain.head),
        "near_final_block_height": ("Height of the last final block", chain.final),
        "near_chain_tail_height": ("Height of the oldest block that is kept", chain.earliest),
    }
    return "".join(
        f"# HELP {name} {meaning}\n# TYPE {name} gauge\n{name} {block.height}\n"
        for name, (meaning, block) in gauges.items()
    )
