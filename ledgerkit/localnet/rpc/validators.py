"""Who validates, in which epoch, and with what stake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.localnet import rpc_json
from ledgerkit.localnet.rpc import blocks
from ledgerkit.localnet.rpc import params as read
from ledgerkit.localnet.rpc.errors import HandlerError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledgerkit.localnet.chain_types import Block, Proposal
    from ledgerkit.localnet.epochs import Epoch
    from ledgerkit.localnet.rpc.errors import Object
    from ledgerkit.localnet.world import World
    from ledgerkit.protocol import CryptoHash


def validators(world: World, params: Any) -> Object:
    """Answer `validators`."""
    block = _epoch_block(world, params)
    epoch = world.epochs.all[block.epoch_height]
    shards = list(world.settings.shard_ids)
    produced = _produced(world, block)
    return {
        "current_validators": [
            _validator(each, shards, produced if each.account_id == block.author else 0)
            for each in epoch.validators.values()
        ],
        "next_validators": [_seat(each, shards) for each in _next(world, epoch)],
        "current_fishermen": [],
        "next_fishermen": [],
        "current_proposals": [rpc_json.proposal(each) for each in epoch.proposals.values()],
        "prev_epoch_kickout": _kicked_out(world, epoch),
        "epoch_start_height": epoch.start_height,
        "epoch_height": epoch.height,
        "validator_reward_paid_prev_epoch": {
            name: str(reward) for name, reward in epoch.rewards.items()
        },
    }


def _next(world: World, epoch: Epoch) -> Iterable[Proposal]:
    """List the validators of the epoch after one."""
    if epoch is world.epochs.current:
        return world.epochs.next_validators.values()
    return world.epochs.all[epoch.height + 1].validators.values()


def _epoch_block(world: World, params: Any) -> Block:
    """Find a block of the epoch that is asked for."""
    if params in ("latest", ["latest"], {"latest": None}):
        return world.chain.head
    alone = read.single(params)
    if alone is not None:
        return world.chain.head if alone[0] is None else _last_block(world, alone[0])
    held = read.members(params)
    if "epoch_id" in held:
        return _of_epoch(world, read.crypto_hash(held["epoch_id"]))
    return _last_block(world, read.member(held, "block_id", read.anything))


def _last_block(world: World, value: Any) -> Block:
    """Find a block that must be the last of its epoch."""
    reference = read.Reference("block_id", read.block_id(value))
    found = blocks.named(world, reference)
    if found is None:
        raise _unknown_epoch()
    following = _following(world, found)
    if following is None or following.epoch_height == found.epoch_height:
        raise HandlerError("VALIDATOR_INFO_UNAVAILABLE", "Validator info unavailable")
    return found


def _following(world: World, block: Block) -> Block | None:
    """Find the block after one; None after the head."""
    later = range(block.height + 1, world.chain.head.height + 1)
    found = (world.chain.by_height(height) for height in later)
    return next((each for each in found if each is not None), None)


def _of_epoch(world: World, epoch_id: CryptoHash) -> Block:
    """Find the last block of an epoch, by its id; the first two epochs have the same."""
    found = [block for block in world.chain.blocks() if block.epoch_id == epoch_id]
    if not found:
        raise _unknown_epoch()
    return found[-1]


def _unknown_epoch() -> HandlerError:
    """Say that there is no such epoch."""
    return HandlerError("UNKNOWN_EPOCH", "Epoch not found")


def _produced(world: World, block: Block) -> int:
    """Count the blocks of an epoch, up to one of them: one validator makes them all."""
    start = world.chain.by_height(block.epoch_start_height) or block
    return block.ordinal - start.ordinal + 1


def _seat(record: Proposal, shards: list[int]) -> Object:
    """Show a validator of the next epoch."""
    return {
        "account_id": record.account_id,
        "public_key": str(record.public_key),
        "stake": str(record.stake),
        "shards": shards,
    }


def _validator(record: Proposal, shards: list[int], produced: int) -> Object:
    """Show a validator, and what it was to make and made: a chunk in each block and shard."""
    per_shard = [produced] * len(shards)
    chunks = sum(per_shard)
    counts: Object = {"num_produced_blocks": produced, "num_expected_blocks": produced}
    for name in ("chunks", "endorsements"):
        for verb in ("produced", "expected"):
            counts |= {f"num_{verb}_{name}": chunks, f"num_{verb}_{name}_per_shard": per_shard}
    shown = _seat(record, shards) | {"is_slashed": False, "shards_endorsed": shards}
    return shown | counts


def _kicked_out(world: World, epoch: Epoch) -> list[Object]:
    """Show who no longer validates: here only who wanted so."""
    if not epoch.height:
        return []
    before = world.epochs.all[epoch.height - 1].validators
    gone = [name for name in before if name not in epoch.validators]
    return [{"account_id": name, "reason": "Unstaked"} for name in gone]


def validators_ordered(world: World, params: Any) -> list[Object]:
    """Answer `EXPERIMENTAL_validators_ordered`."""
    held = read.members(params)
    block_id = read.optional(held, "block_id", read.block_id)
    reference = read.LATEST if block_id is None else read.Reference("block_id", block_id)
    epoch = world.epochs.all[blocks.find(world, reference).epoch_height]
    return [rpc_json.proposal(each) for each in epoch.validators.values()]
