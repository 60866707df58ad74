"""Blocks, chunks and gas prices; and how a call's block reference is followed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.localnet import fees, rpc_json
from ledgerkit.localnet.rpc import params as read
from ledgerkit.localnet.rpc.errors import OK, UNPROCESSABLE, HandlerError

if TYPE_CHECKING:
    from ledgerkit.localnet.chain_types import Block, Chunk
    from ledgerkit.localnet.rpc.errors import Object
    from ledgerkit.localnet.rpc.params import Reference
    from ledgerkit.localnet.world import World
    from ledgerkit.protocol import CryptoHash


def named(world: World, reference: Reference) -> Block | None:
    """Find the block that a reference names; None where there is none."""
    chain, value = world.chain, reference.value
    if isinstance(value, int):
        return chain.by_height(value)
    if reference.kind == "block_id":
        return chain.by_hash(value)  # type: ignore[arg-type]  # a hash, as it was read
    places = {
        "optimistic": chain.head,
        "near-final": chain.near_final,
        "final": chain.final,
        "genesis": chain.genesis,
        "earliest_available": chain.earliest,
    }
    return places[str(value)]


def find(world: World, reference: Reference) -> Block:
    """Find a block that is still kept."""
    block = named(world, reference)
    if block is None or (is_dropped(world, block) and block is not world.chain.genesis):
        raise unknown(world, reference, {})
    return block


def is_dropped(world: World, block: Block) -> bool:
    """Tell whether a block's state is no longer kept."""
    return block.height < world.chain.earliest.height


def unknown(
    world: World, reference: Reference, info: Object, header: str = "BLOCK"
) -> HandlerError:
    """Say that there is no such block; what is below the head will never come."""
    value = reference.value
    is_height = isinstance(value, int)
    name = f"BLOCK HEIGHT: {value}" if is_height else f"{header}: {value}"
    past = is_height and int(value) < world.chain.head.height
    status = UNPROCESSABLE if past else OK
    data = f"DB Not Found Error: {name} \n Cause: Unknown"
    return HandlerError("UNKNOWN_BLOCK", data, info, status=status)


def block(world: World, params: Any) -> Object:
    """Answer `block`."""
    return rpc_json.block(find(world, read.lone_reference(params)), version(world))


def version(world: World) -> int:
    """Give the protocol version."""
    return fees.PROFILES[world.settings.profile].version


def gas_price(world: World, params: Any) -> Object:
    """Answer `gas_price`."""
    found = find(world, _at(params))
    return {"gas_price": str(found.gas_price)}


def _at(params: Any) -> Reference:
    """Read a block that may be left out."""
    alone = read.single(params)
    held = {"block_id": alone[0]} if alone is not None else read.members(params)
    value = read.member(held, "block_id", read.anything)
    return read.LATEST if value is None else read.Reference("block_id", read.block_id(value))


# Chunks ----------------------------------------------------------------------------------


def chunk(world: World, params: Any) -> Object:
    """Answer `chunk`."""
    alone = read.single(params)
    if alone is not None:
        place = read.pair(alone[0])
        if place is not None:
            return _by_shard(world, *place)
        return _by_hash(world, read.crypto_hash(alone[0]))
    held = read.members(params)
    if "chunk_id" in held:
        return _by_hash(world, read.crypto_hash(held["chunk_id"]))
    if "block_id" in held and "shard_id" in held:
        return _by_shard(world, held["block_id"], held["shard_id"])
    raise read.refuse("data did not match any variant of untagged enum ChunkReference")


def _by_hash(world: World, chunk_hash: CryptoHash) -> Object:
    """Show a chunk by its hash."""
    found = world.chain.chunk(chunk_hash)
    if found is None or is_dropped(world, found[1]):
        data = (
            f"Chunk Missing (unavailable on the node): ChunkHash(`{chunk_hash}`) \n Cause: Unknown"
        )
        raise HandlerError("UNKNOWN_CHUNK", data, {"chunk_hash": chunk_hash})
    return _shown(*found)


def _by_shard(world: World, block_id: Any, shard_id: Any) -> Object:
    """Show a chunk by its block and shard."""
    wanted = read.u64(shard_id)
    within = find(world, read.Reference("block_id", read.block_id(block_id)))
    for each in within.chunks:
        if each.shard_id == wanted:
            return _shown(each, within)
    data = f"Shard id {wanted} does not exist"
    raise HandlerError("INVALID_SHARD_ID", data, {"shard_id": wanted})


def _shown(found: Chunk, within: Block) -> Object:
    """Show a chunk."""
    return rpc_json.chunk(found, within.author)
