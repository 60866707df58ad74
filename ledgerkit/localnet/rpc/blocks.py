"""The methods that return blocks, chunks and gas prices; and the resolution of block references."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.localnet import rpc_json
from ledgerkit.localnet.rpc import params as read
from ledgerkit.localnet.rpc.errors import OK, UNPROCESSABLE, HandlerError, Object

if TYPE_CHECKING:
    from ledgerkit.localnet.chain_types import Block
    from ledgerkit.localnet.rpc.params import Reference
    from ledgerkit.localnet.world import World
    from ledgerkit.protocol import CryptoHash


def resolve(world: World, reference: Reference) -> Block | None:
    chain, value = world.chain, reference.value
    if isinstance(value, int):
        return chain.by_height(value)
    if reference.kind == "block_id":
        return chain.by_hash(value)  # type: ignore[arg-type]  # parsed as a hash
    blocks = {
        "optimistic": chain.head,
        "near-final": chain.near_final,
        "final": chain.final,
        "genesis": chain.genesis,
        "earliest_available": chain.earliest,
    }
    return blocks[str(value)]


def find(world: World, reference: Reference) -> Block:
    """Return the block of a reference, or raise if it is unknown or garbage collected."""
    block = resolve(world, reference)
    if block is None or (is_collected(world, block) and block is not world.chain.genesis):
        raise unknown_block(world, reference, {})
    return block


def is_collected(world: World, block: Block) -> bool:
    """Return True if a block's state was garbage collected."""
    return block.height < world.chain.earliest.height


def unknown_block(
    world: World, reference: Reference, info: Object, header: str = "BLOCK"
) -> HandlerError:
    """Build the error for an unknown block; a missing height below the head has status 422."""
    value = reference.value
    is_height = isinstance(value, int)
    name = f"BLOCK HEIGHT: {value}" if is_height else f"{header}: {value}"
    is_past = is_height and int(value) < world.chain.head.height
    data = f"DB Not Found Error: {name} \n Cause: Unknown"
    return HandlerError("UNKNOWN_BLOCK", data, info, status=UNPROCESSABLE if is_past else OK)


def block(world: World, params: Any) -> Object:
    block = find(world, read.lone_reference(params))
    return rpc_json.block(block, world.runtime.profile.version)


def gas_price(world: World, params: Any) -> Object:
    items = read.single(params)
    members = {"block_id": items[0]} if items is not None else read.members(params)
    value = read.member(members, "block_id", read.anything)
    is_latest = value is None
    reference = read.LATEST if is_latest else read.Reference("block_id", read.block_id(value))
    return {"gas_price": str(find(world, reference).gas_price)}


# Chunks ----------------------------------------------------------------------------------


def chunk(world: World, params: Any) -> Object:
    items = read.single(params)
    if items is not None:
        block_and_shard = read.pair(items[0])
        if block_and_shard is not None:
            return _chunk_by_shard(world, *block_and_shard)
        return _chunk_by_hash(world, read.crypto_hash(items[0]))
    members = read.members(params)
    if "chunk_id" in members:
        return _chunk_by_hash(world, read.crypto_hash(members["chunk_id"]))
    if "block_id" in members and "shard_id" in members:
        return _chunk_by_shard(world, members["block_id"], members["shard_id"])
    raise read.error("data did not match any variant of untagged enum ChunkReference")


def congestion_level(world: World, params: Any) -> Object:
    """Return the result of `EXPERIMENTAL_congestion_level`: no shard is ever congested."""
    chunk(world, params)
    return {"congestion_level": 0.0}


def _chunk_by_hash(world: World, chunk_hash: CryptoHash) -> Object:
    chunk_and_block = world.chain.chunk(chunk_hash)
    if chunk_and_block is None or is_collected(world, chunk_and_block[1]):
        data = (
            f"Chunk Missing (unavailable on the node): ChunkHash(`{chunk_hash}`) \n Cause: Unknown"
        )
        raise HandlerError("UNKNOWN_CHUNK", data, {"chunk_hash": chunk_hash})
    chunk, block = chunk_and_block
    return rpc_json.chunk(chunk, block.author)


def _chunk_by_shard(world: World, block_value: Any, shard_value: Any) -> Object:
    shard_id = read.u64(shard_value)
    block = find(world, read.Reference("block_id", read.block_id(block_value)))
    for chunk in block.chunks:
        if chunk.shard_id == shard_id:
            return rpc_json.chunk(chunk, block.author)
    data = f"Shard id {shard_id} does not exist"
    raise HandlerError("INVALID_SHARD_ID", data, {"shard_id": shard_id})
