"""The methods that return the validators of an epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.localnet import rpc_json
from ledgerkit.localnet.rpc import blocks
from ledgerkit.localnet.rpc import params as read
from ledgerkit.localnet.rpc.errors import HandlerError, Object

if TYPE_CHECKING:
    from ledgerkit.localnet.chain_types import Block, Proposal
    from ledgerkit.localnet.epochs import Epoch
    from ledgerkit.localnet.world import World


def validators(world: World, params: Any) -> Object:
    block = _epoch_block(world, params)
    epoch = world.epochs.all[block.epoch_height]
    shards = list(world.settings.shard_ids)
    start = world.chain.by_height(block.epoch_start_height) or block
    produced = block.ordinal - start.ordinal + 1  # one validator produces all blocks
    return {
        "current_validators": [
            _validator(seat, shards, produced if seat.account_id == block.author else 0)
            for seat in epoch.validators.values()
        ],
        "next_validators": [_seat(seat, shards) for seat in world.epochs.validators_after(epoch)],
        "current_fishermen": [],
        "next_fishermen": [],
        "current_proposals": [rpc_json.proposal(proposal) for proposal in epoch.proposals.values()],
        "prev_epoch_kickout": _kicked_out(world, epoch),
        "epoch_start_height": epoch.start_height,
        "epoch_height": epoch.height,
        "validator_reward_paid_prev_epoch": {
            name: str(reward) for name, reward in epoch.rewards.items()
        },
    }


def _epoch_block(world: World, params: Any) -> Block:
    if params in ("latest", ["latest"], {"latest": None}):
        return world.chain.head
    items = read.single(params)
    if items is not None:
        return world.chain.head if items[0] is None else _last_block_of_epoch(world, items[0])
    members = read.members(params)
    if "epoch_id" in members:
        last = world.chain.last_of(read.crypto_hash(members["epoch_id"]))
        if last is None:
            raise _unknown_epoch()
        return last
    return _last_block_of_epoch(world, read.member(members, "block_id", read.anything))


def _last_block_of_epoch(world: World, value: Any) -> Block:
    reference = read.Reference("block_id", read.block_id(value))
    block = blocks.resolve(world, reference)
    if block is None:
        raise _unknown_epoch()
    following = next(world.chain.above(block.height), None)
    if following is None or following.epoch_height == block.epoch_height:
        raise HandlerError("VALIDATOR_INFO_UNAVAILABLE", "Validator info unavailable")
    return block


def _unknown_epoch() -> HandlerError:
    return HandlerError("UNKNOWN_EPOCH", "Unknown Epoch")


def _seat(record: Proposal, shards: list[int]) -> Object:
    return {
        "account_id": record.account_id,
        "public_key": str(record.public_key),
        "stake": str(record.stake),
        "shards": shards,
    }


def _validator(record: Proposal, shards: list[int], produced: int) -> Object:
    """Format a validator and its production: a chunk in every shard of every block."""
    per_shard = [produced] * len(shards)
    chunks = sum(per_shard)
    counts: Object = {"num_produced_blocks": produced, "num_expected_blocks": produced}
    for name in ("chunks", "endorsements"):
        for verb in ("produced", "expected"):
            counts |= {f"num_{verb}_{name}": chunks, f"num_{verb}_{name}_per_shard": per_shard}
    members = _seat(record, shards) | {"is_slashed": False, "shards_endorsed": shards}
    return members | counts


def _kicked_out(world: World, epoch: Epoch) -> list[Object]:
    """List the validators that left, which they do by unstaking only."""
    if not epoch.height:
        return []
    before = world.epochs.all[epoch.height - 1].validators
    left_ids = [name for name in before if name not in epoch.validators]
    return [{"account_id": name, "reason": "Unstaked"} for name in left_ids]


def validators_ordered(world: World, params: Any) -> list[Object]:
    members = read.members(params)
    block_id = read.optional(members, "block_id", read.block_id)
    reference = read.LATEST if block_id is None else read.Reference("block_id", block_id)
    block = blocks.resolve(world, reference)
    if block is None:
        raise _unknown_epoch()
    epoch = world.epochs.all[block.epoch_height]
    return [rpc_json.proposal(seat) for seat in epoch.validators.values()]


def maintenance_windows(world: World, params: Any) -> list[Object]:
    """Return the result of `maintenance_windows`: heights at which an account produces nothing."""
    account_id = read.member(read.members(params), "account_id", read.account_id)
    head = world.chain.head
    if account_id == head.author:  # the only producer of blocks and chunks
        return []
    return [{"start": head.height, "end": head.epoch_start_height + world.settings.epoch_length}]
