"""Changes of the state: by kind and account, and the accounts that a block touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.localnet import rpc_json
from ledgerkit.localnet.chain_types import NO_CODE, Account, Change
from ledgerkit.localnet.rpc import blocks
from ledgerkit.localnet.rpc import params as read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ledgerkit.localnet.chain_types import Block
    from ledgerkit.localnet.rpc.errors import Object
    from ledgerkit.localnet.rpc.params import Members
    from ledgerkit.localnet.world import World
    from ledgerkit.protocol import CryptoHash


def changes(world: World, params: Any) -> Object:
    """Answer `changes`: those of one kind, to the accounts or keys that are named."""
    held = read.members(params)
    reference = read.reference(held)
    wanted = read.member(held, "changes_type", read.one_of(tuple(_WANTED)))
    keep = _WANTED[wanted](held)
    block = blocks.find(world, reference)
    found = [rpc_json.change(change) for change in _changes(world, block) if keep(change)]
    return {"block_hash": block.hash, "changes": found}


def changes_in_block(world: World, params: Any) -> Object:
    """Answer `block_effects`: whose state a block changed."""
    block = blocks.find(world, read.lone_reference(params))
    return {"block_hash": block.hash, "changes": rpc_json.touched_accounts(_changes(world, block))}


def _changes(world: World, block: Block) -> list[Change]:
    """List a block's changes, each change of code after the account's."""
    found: list[Change] = []
    codes: dict[str, CryptoHash] = {}
    for change in world.chain.changes(block.height):
        found.append(change)
        if change.kind == "account":
            found.extend(_change_of_code(world, block, change, codes))
    return found


def _change_of_code(
    world: World, block: Block, change: Change, codes: dict[str, CryptoHash]
) -> Iterator[Change]:
    """Give the change of code that goes with a change of an account, if there is one."""
    name = change.account_id
    if name not in codes:
        before = world.state(block.prev_height).account(name)
        codes[name] = NO_CODE if before is None else before.code_hash
    now = change.value.code_hash if isinstance(change.value, Account) else NO_CODE
    if now != codes[name]:
        codes[name] = now
        yield Change(change.cause, "code", name, b"", world.store.codes[now] or None)


def _of_accounts(kind: str) -> Callable[[Members], Callable[[Change], bool]]:
    """Want the changes of a kind, to some accounts."""

    def wanted(held: Members) -> Callable[[Change], bool]:
        names = set(read.member(held, "account_ids", read.many(read.account_id)))
        return lambda change: change.kind == kind and change.account_id in names

    return wanted


def _of_keys(held: Members) -> Callable[[Change], bool]:
    """Want the changes of some access keys."""
    keys = set(read.member(held, "keys", read.many(_key)))
    return lambda change: change.kind == "access_key" and (change.account_id, change.key) in keys


def _key(value: Any) -> tuple[str, bytes]:
    """Read an account and one of its keys."""
    held = read.members(value)
    account_id = read.member(held, "account_id", read.account_id)
    return account_id, read.member(held, "public_key", read.public_key).packed


def _of_data(held: Members) -> Callable[[Change], bool]:
    """Want the changes of some contracts' records whose keys begin so."""
    of_accounts = _of_accounts("data")(held)
    prefix = read.member(held, "key_prefix_base64", read.base64)
    return lambda change: of_accounts(change) and change.key.startswith(prefix)


_WANTED: dict[str, Callable[[Members], Callable[[Change], bool]]] = {
    "account_changes": _of_accounts("account"),
    "single_access_key_changes": _of_keys,
    "all_access_key_changes": _of_accounts("access_key"),
    "contract_code_changes": _of_accounts("code"),
    "data_changes": _of_data,
}
