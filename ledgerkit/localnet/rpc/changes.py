"""Changes of the state: by kind and account, and the accounts that a block touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ledgerkit.localnet import rpc_json
from ledgerkit.localnet.chain_types import NO_CODE, Account, Block, Change
from ledgerkit.localnet.rpc import blocks
from ledgerkit.localnet.rpc import params as read
from ledgerkit.localnet.state import split_nonce_key

if TYPE_CHECKING:
    from ledgerkit.localnet.rpc.errors import Object
    from ledgerkit.localnet.rpc.params import Members
    from ledgerkit.localnet.world import World
    from ledgerkit.protocol import CryptoHash


_TYPES = (
    *("account_changes", "single_access_key_changes", "all_access_key_changes"),
    *("contract_code_changes", "data_changes"),
)
_KINDS = {"account_changes": "account", "contract_code_changes": "code", "data_changes": "data"}


def changes(world: World, params: Any) -> Object:
    """Return the result of `changes`: the changes of one kind, by account or key."""
    members = read.members(params)
    reference = read.reference(members)
    changes_type = read.member(members, "changes_type", read.one_of(_TYPES))
    matches = _parse_filter(changes_type, members)
    block = blocks.find(world, reference)
    matching = [rpc_json.change(change) for change in of_block(world, block) if matches(change)]
    return {"block_hash": block.hash, "changes": matching}


def changes_in_block(world: World, params: Any) -> Object:
    """Return the result of `block_effects`: the accounts whose state a block changed."""
    block = blocks.find(world, read.lone_reference(params))
    return {"block_hash": block.hash, "changes": rpc_json.touched_accounts(of_block(world, block))}


def of_block(world: World, block: Block) -> list[Change]:
    """Return a block's changes, each code change after the change of its account."""
    changes: list[Change] = []
    code_hashes: dict[str, CryptoHash] = {}
    for change in world.chain.changes(block.height):
        changes.append(change)
        if change.kind == "account":
            changes.extend(_code_change(world, block, change, code_hashes))
    return changes


def _code_change(
    world: World, block: Block, change: Change, code_hashes: dict[str, CryptoHash]
) -> Iterator[Change]:
    """Yield the change of code within an account's change, and update `code_hashes`."""
    account_id = change.account_id
    if account_id not in code_hashes:
        account = world.state(block.prev_height).account(account_id)
        code_hashes[account_id] = NO_CODE if account is None else account.code_hash
    code_hash = change.value.code_hash if isinstance(change.value, Account) else NO_CODE
    if code_hash != code_hashes[account_id]:
        code_hashes[account_id] = code_hash
        yield Change(change.cause, "code", account_id, b"", world.store.codes[code_hash] or None)


def _parse_filter(changes_type: str, members: Members) -> Callable[[Change], bool]:
    if changes_type == "single_access_key_changes":
        keys = set(read.member(members, "keys", read.many(_account_and_key)))
        return lambda change: (change.account_id, _public_key(change)) in keys
    account_ids = set(read.member(members, "account_ids", read.many(read.account_id)))
    if changes_type == "all_access_key_changes":
        return lambda change: _public_key(change) is not None and change.account_id in account_ids
    kind, prefix = _KINDS[changes_type], b""
    if kind == "data":
        prefix = read.member(members, "key_prefix_base64", read.base64)
    return lambda change: (
        change.kind == kind and change.account_id in account_ids and change.key.startswith(prefix)
    )


def _public_key(change: Change) -> bytes | None:
    if change.kind == "gas_key_nonce":
        return split_nonce_key(change.key)[0]
    return change.key if change.kind == "access_key" else None


def _account_and_key(value: Any) -> tuple[str, bytes]:
    members = read.members(value)
    account_id = read.member(members, "account_id", read.account_id)
    return account_id, read.member(members, "public_key", read.public_key).stored
