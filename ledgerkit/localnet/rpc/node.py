"""The methods and pages about the node itself: its status, its key and its metrics."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ledgerkit.localnet import commitments, rpc_json
from ledgerkit.localnet.http_messages import HttpResponse, json_response, text_response
from ledgerkit.localnet.rpc import params as read
from ledgerkit.localnet.settings import SECOND_NS
from ledgerkit.protocol import PublicKey

if TYPE_CHECKING:
    from ledgerkit.localnet.chain_types import Block
    from ledgerkit.localnet.rpc.errors import Object
    from ledgerkit.localnet.world import World

VERSION = "2.13.1"  # the version of nearcore with these responses
RPC_ADDRESS = "127.0.0.1:3030"


def status(world: World) -> Object:
    head, genesis = world.chain.head, world.chain.genesis
    protocol_version = world.runtime.profile.version
    return {
        "version": version(),
        "chain_id": world.settings.chain_id,
        "genesis_hash": genesis.hash,
        "protocol_version": protocol_version,
        "latest_protocol_version": protocol_version,
        "rpc_addr": RPC_ADDRESS,
        "validators": [{"account_id": name} for name in world.epochs.current.validators],
        "sync_info": _sync_info(world, head),
        "validator_account_id": None,
        "validator_public_key": None,
        # There is no secret key for it.
        "node_public_key": str(PublicKey("ed25519", sha256(genesis.hash).digest())),
        "node_key": None,
        "uptime_sec": (head.timestamp_ns - genesis.timestamp_ns) // SECOND_NS,
        "detailed_debug_status": None,
    }


def version() -> Object:
    return {"version": VERSION, "build": "localnet", "commit": "", "rustc_version": ""}


def network_info(_world: World, _params: Any) -> Object:
    """Return the result of `network_info`: a node without peers."""
    return {
        "active_peers": [],
        "num_active_peers": 0,
        "peer_max_count": 0,
        "sent_bytes_per_sec": 0,
        "received_bytes_per_sec": 0,
        "known_producers": [],
    }


def split_storage_info(world: World, params: Any) -> Object:
    """Return the result of `EXPERIMENTAL_split_storage_info`: there is no cold storage."""
    read.members(params)
    return {
        "head_height": world.chain.head.height,
        "final_head_height": world.chain.final.height,
        "cold_head_height": None,
        "hot_db_kind": "Archive" if world.settings.archival else "RPC",
    }


def _sync_info(world: World, head: Block) -> Object:
    earliest = world.chain.earliest
    return {
        "latest_block_hash": head.hash,
        "latest_block_height": head.height,
        "latest_state_root": commitments.block_roots(head).state,
        "latest_block_time": rpc_json.rfc3339(head.timestamp_ns),
        "syncing": False,
        "earliest_block_hash": earliest.hash,
        "earliest_block_height": earliest.height,
        "earliest_block_time": rpc_json.rfc3339(earliest.timestamp_ns),
        "epoch_id": head.epoch_id,
        "epoch_start_height": head.epoch_start_height,
    }


def metrics(world: World) -> str:
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


# The pages that a node serves besides its JSON-RPC.
PAGES: dict[str, Callable[[World], HttpResponse]] = {
    "/status": lambda world: json_response(status(world)),
    "/health": lambda _: json_response(None),
    "/metrics": lambda world: text_response(metrics(world), 200),
}
