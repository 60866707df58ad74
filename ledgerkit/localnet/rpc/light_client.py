"""
The methods for light clients: proofs of outcomes and blocks, and the blocks to follow.

Source: nearcore, chain/client/src/view_client_actor.rs (GetNextLightClientBlock,
GetExecutionOutcome, GetBlockProof) and chain/chain/src/chain.rs (create_light_client_block).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.localnet import commitments, rpc_json
from ledgerkit.localnet.rpc import blocks
from ledgerkit.localnet.rpc import params as read
from ledgerkit.localnet.rpc.errors import HandlerError, InternalError, Object
from ledgerkit.protocol import CryptoHash

if TYPE_CHECKING:
    from ledgerkit.localnet.chain import Chain
    from ledgerkit.localnet.chain_types import Block, Outcome
    from ledgerkit.localnet.world import World


def next_block(world: World, params: Any) -> Object:
    """Return the result of `next_light_client_block`; empty if there is no newer block."""
    items = read.single(params)
    value = (
        items[0] if items else read.member(read.members(params), "last_block_hash", read.anything)
    )
    last, head = _find_block(world, read.crypto_hash(value)), world.chain.head
    if head.epoch_id in (last.epoch_id, last.next_epoch_id):
        block = _light_block(world.chain, head)
        is_newer = block is not None and block.height > last.height
        return _light_client_block(world, block) if block and is_newer else {}
    end = world.chain.last_of(last.next_epoch_id)
    block = _light_block(world.chain, end) if end else None
    return _light_client_block(world, block) if block else {}


def _light_block(chain: Chain, head: Block) -> Block | None:
    """Return the last final block with two later blocks of its epoch, as seen from a head."""
    final = chain.by_hash(head.last_final_block)
    if final is None:
        return None
    for ahead in (2, 1):
        later = chain.by_height(final.height + ahead)
        if later is not None and later.epoch_id == final.epoch_id:
            if ahead == 2:  # noqa: PLR2004 - both later blocks are of its epoch
                return final
            return chain.by_hash(later.last_final_block)
    return chain.by_hash(final.last_final_block)


def _light_client_block(world: World, block: Block) -> Object:
    following = _following(world.chain, block)
    after_next = _following(world.chain, following)
    validators = world.epochs.validators_after(world.epochs.all[block.epoch_height])
    roots = commitments.block_roots(following)
    inner = commitments.inner_hash(following, following.rest_hash, roots)
    return _lite_block(block) | {
        "next_block_inner_hash": rpc_json.base58(inner),
        "next_bps": [*map(rpc_json.proposal, validators)],
        "approvals_after_next": [approval and str(approval) for approval in after_next.approvals],
    }


def _following(chain: Chain, block: Block) -> Block:
    """Return the block after a final one, which is at the next height."""
    following = chain.by_height(block.height + 1)
    if following is None:
        raise InternalError(f"no block follows {block.hash} at the next height")
    return following


def _lite_block(block: Block) -> Object:
    """Build the JSON of the parts that a block's hash covers."""
    header = rpc_json.block_header(block, 0)
    names = (
        *("height", "epoch_id", "next_epoch_id", "prev_state_root", "outcome_root", "timestamp"),
        *("timestamp_nanosec", "next_bp_hash", "block_merkle_root"),
    )
    return {
        "prev_block_hash": rpc_json.base58(block.prev_hash),
        "inner_rest_hash": rpc_json.base58(block.rest_hash),
        "inner_lite": {name: header[name] for name in names},
    }


# Proofs ---------------------------------------------------------------------------------


def outcome_proof(world: World, params: Any) -> Object:
    """Return the result of `light_client_proof`: the path from an outcome to a block."""
    members = read.members(params)
    kind = read.member(members, "type", read.text)
    if kind not in ("transaction", "receipt"):
        raise read.error(f"unknown variant `{kind}`, expected `transaction` or `receipt`")
    is_transaction = kind == "transaction"
    id_name = "transaction_hash" if is_transaction else "receipt_id"
    outcome_id = read.member(members, id_name, read.crypto_hash)
    read.member(members, "sender_id" if is_transaction else "receiver_id", read.account_id)
    head = read.member(members, "light_client_head", read.crypto_hash)
    outcome = world.outcome(outcome_id)
    if outcome is None:
        info = {"transaction_or_receipt_id": outcome_id}
        data = f"{outcome_id} does not exist"
        raise HandlerError("UNKNOWN_TRANSACTION_OR_RECEIPT", data, info)
    block = _block_with_root(world.chain, outcome)
    roots = commitments.MerkleTree(CryptoHash.of(chunk.outcome_root) for chunk in block.chunks)
    path = world.chain.outcome_path(outcome)
    return {
        "outcome_proof": rpc_json.outcome(outcome, block.hash, path),
        "outcome_root_proof": rpc_json.merkle_path(roots.path(outcome.shard_id)),
        "block_header_lite": _lite_block(block),
        "block_proof": _block_path(world, block, head),
    }


def _block_with_root(chain: Chain, outcome: Outcome) -> Block:
    """Return the block with the root over an outcome: the next block with a chunk of its shard."""
    for block in chain.above(outcome.block_height):
        if block.chunk_mask[outcome.shard_id]:
            return block
    info = {"transaction_or_receipt_id": outcome.id}
    raise HandlerError("NOT_CONFIRMED", f"{outcome.id} has not been confirmed", info)


def block_proof(world: World, params: Any) -> Object:
    """Return the result of `EXPERIMENTAL_light_client_block_proof`: the path from a block."""
    members = read.members(params)
    block = _find_block(world, read.member(members, "block_hash", read.crypto_hash))
    head = read.member(members, "light_client_head", read.crypto_hash)
    path = _block_path(world, block, head)
    return {"block_header_lite": _lite_block(block), "block_proof": path}


def _block_path(world: World, block: Block, head_hash: CryptoHash) -> list[Object]:
    head = _find_block(world, head_hash)
    first = world.chain.genesis.ordinal
    size = head.ordinal - first
    if block.ordinal >= head.ordinal:
        raise InternalError(f"block {block.hash} is not before {head_hash}")
    return rpc_json.merkle_path(world.chain.tree.path(block.ordinal - first, size))


def _find_block(world: World, block_hash: CryptoHash) -> Block:
    """Return a block, even if its state was garbage collected; raise if it is unknown."""
    reference = read.Reference("block_id", block_hash)
    block = blocks.resolve(world, reference)
    if block is None:
        raise blocks.unknown_block(world, reference, {})
    return block
