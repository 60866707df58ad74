"""What the node tells of itself: who it is, how far it is, and a few figures."""

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

VERSION = "2.13.1"  # of the node whose answers these are
_SECOND = 10**9
_LISTENS = "127.0.0.1:3030"


def status(world: World) -> Object:
    """Tell who the node is, and how far it is."""
    head, genesis = world.chain.head, world.chain.genesis
    version = blocks.version(world)
    return {
        "version": {"version": VERSION, "build": "localnet", "commit": "", "rustc_version": ""},
        "chain_id": world.settings.chain_id,
        "genesis_hash": genesis.hash,
        "protocol_version": version,
        "latest_protocol_version": version,
        "rpc_addr": _LISTENS,
        "validators": [{"account_id": name} for name in world.epochs.current.validators],
        "sync_info": _sync_info(world, head),
        "validator_account_id": None,
        "validator_public_key": None,
        "node_public_key": str(_node_key(world)),
        "node_key": None,
        "uptime_sec": (head.timestamp_ns - genesis.timestamp_ns) // _SECOND,
        "detailed_debug_status": None,
    }


def _sync_info(world: World, head: Block) -> Object:
    """Tell the newest block, and the oldest whose state is kept."""
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
    """Give the key of the node, which nothing is ever signed with."""
    return PublicKey("ed25519", sha256(world.chain.genesis.hash).digest())


def metrics(world: World) -> str:
    """Tell a few figures, as a monitor reads them."""
    chain = world.chain
    figures = {
        "near_block_height_head": ("Height of the current head of the blockchain", chain.head),
        "near_final_block_height": ("Height of the last final block", chain.final),
        "near_chain_tail_height": ("Height of the oldest block that is kept", chain.earliest),
    }
    return "".join(
        f"# HELP {name} {meaning}\n# TYPE {name} gauge\n{name} {block.height}\n"
        for name, (meaning, block) in figures.items()
    )
