"""The changes of balances by block: those that traces list, and those of a world's own state."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from ledgerkit.localnet.chain_types import Account
from ledgerkit.localnet.contract_sdk import to_json
from ledgerkit.protocol import CryptoHash, PublicKey
from ledgerkit.protocol.access_keys import GasKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import ledgerkit as lk
    from ledgerkit.localnet.state import State
    from ledgerkit.localnet.world import World
    from ledgerkit.tracing.balance_timeline import BalanceChange

NEAR = "near"  # an account's balance and stake
GAS_KEY = "gas_key"  # the balance of a gas key: gas_key:public_key
Key = tuple[str, str, int]  # account, asset, height


# What transactions say --------------------------------------------------------------------


def traced_changes(world: World, traces: Iterable[lk.Trace]) -> Counter[Key]:
    """Sum the changes that traces list, in the smallest unit of the asset."""
    changes: Counter[Key] = Counter()
    for trace in traces:
        outcome = world.outcome(CryptoHash(str(trace.tx_hash)))
        assert outcome is not None
        for change in trace.balance_timeline():
            # A node does not send the height of the transaction itself.
            height = outcome.block_height if change.height is None else change.height
            if not change.asset.startswith("nep171") and change.change is not None:
                changes[change.account_id, change.asset, height] += change.change
    return changes


def beyond_traces(world: World, traces: Iterable[lk.Trace]) -> Counter[Key]:
    """
    Sum the changes that no single trace can know, from the chain's changes of state.

    A trace does not know the reward of a failed call if it cannot know whether the contract's
    account existed, nor that another transaction deleted the gas key to which a refund belongs, so
    that the account receives it.
    """
    changes: Counter[Key] = Counter()
    rewards = _rewards(world)
    for trace in traces:
        unknown = trace.gas[trace.gas["contract_reward"].isna()]
        for receipt_id, account_id, height in zip(
            unknown["receipt_id"], unknown["account_id"], unknown["block_height"], strict=True
        ):
            changes[account_id, NEAR, height] += rewards[receipt_id]
        for change in trace.balance_timeline():
            is_refund = change.kind == "refund_gas" and change.asset.startswith(GAS_KEY)
            if is_refund and _has_changed_account(world, change):
                assert change.change is not None
                assert change.height is not None
                changes[change.account_id, NEAR, change.height] += change.change
                changes[change.account_id, change.asset, change.height] -= change.change
    return changes


def _rewards(world: World) -> Counter[str]:
    """Return the contract rewards that the chain paid, by receipt."""
    rewards: Counter[str] = Counter()
    genesis = world.state(world.chain.genesis.height)
    amounts = {name: near_of(genesis, name)[NEAR] for name in world.store.accounts.head}
    for block in world.chain.blocks():
        for change in world.chain.changes(block.height):
            if change.kind == "account":
                cause, receipt_id = change.cause
                account = change.value if isinstance(change.value, Account) else Account(0)
                amount = account.amount + account.locked
                if cause == "action_receipt_gas_reward":
                    rewards[str(receipt_id)] += amount - amounts[change.account_id]
                amounts[change.account_id] = amount
    return rewards


def _has_changed_account(world: World, change: BalanceChange) -> bool:
    """Return True if a receipt changed the account itself."""
    assert change.height is not None
    cause = ("receipt_processing", CryptoHash(change.receipt_id or ""))
    written = world.chain.changes(change.height)
    return any(each.cause == cause and each.kind == "account" for each in written)


# What the state says ----------------------------------------------------------------------


def near_changes(world: World, account_ids: Iterable[str]) -> Counter[Key]:
    """Return the changes of NEAR in the chain's state, those of each gas key apart."""
    changes: Counter[Key] = Counter()
    names = sorted(account_ids)
    first, *blocks = world.chain.blocks()
    before = {name: near_of(world.state(first.height), name) for name in names}
    for block in blocks:
        state = world.state(block.height)
        for name in names:
            after = near_of(state, name)
            if after != before[name]:
                for asset in {*after, *before[name]}:
                    change = after.get(asset, 0) - before[name].get(asset, 0)
                    changes[name, asset, block.height] += change
                before[name] = after
    return changes


def near_of(state: State, account_id: str) -> dict[str, int]:
    """Return the yoctoNEAR of an account, with its stake, and of its gas keys."""
    account = state.account(account_id)
    balances = {NEAR: 0 if account is None else account.amount + account.locked}
    for packed, key in state.access_keys(account_id):
        if isinstance(key.permission, GasKey):
            public_key = PublicKey("ed25519", packed[1:])
            balances[f"{GAS_KEY}:{public_key}"] = key.permission.balance
    return balances


def minted(world: World) -> Counter[Key]:
    """Return the rewards of validators, which the chain pays when an epoch begins."""
    epochs = world.epochs.all
    return Counter({
        (name, NEAR, epoch.start_height): reward
        for epoch in epochs
        for name, reward in epoch.rewards.items()
    })  # fmt: skip


def token_changes(world: World, assets: Iterable[str], account_ids: Iterable[str]) -> Counter[Key]:
    """Return the changes of token balances, by the contracts' views after each of their blocks."""
    changes: Counter[Key] = Counter()
    names = sorted(account_ids)
    for asset in assets:
        contract_id, balance_of = token_view(world, asset)
        before = {name: balance_of(name, world.chain.genesis.height) for name in names}
        for block in world.chain.blocks():
            written = world.chain.changes(block.height)
            if not any(each.kind == "data" and each.account_id == contract_id for each in written):
                continue
            for name in names:
                after = balance_of(name, block.height)
                changes[name, asset, block.height] += after - before[name]
                before[name] = after
    return changes


def token_view(world: World, asset: str) -> tuple[str, Callable[[str, int], int]]:
    """Return the contract of a token, and what reads a balance of it after a block."""
    standard, contract_id, *token_id = asset.split(":", 2)
    method = "mt_balance_of" if standard == "nep245" else "ft_balance_of"
    extra = {"token_id": token_id[0]} if token_id else {}

    def balance_of(account_id: str, height: int) -> int:
        block = world.chain.by_height(height)
        assert block is not None
        args = to_json({"account_id": account_id, **extra})
        return int(json.loads(world.view(contract_id, method, args, block).result))

    return contract_id, balance_of


# Both -------------------------------------------------------------------------------------


def state_changes(world: World, expected: Iterable[Key]) -> Counter[Key]:
    """Return the changes of all accounts in the chain's state, of NEAR and the expected assets."""
    names, assets = set(world.store.accounts.head), set()
    for account_id, asset, _ in expected:
        names.add(account_id)
        assets.add(asset)
    changes = near_changes(world, names)
    tokens = sorted(asset for asset in assets if asset.startswith("nep"))
    changes.update(token_changes(world, tokens, names))
    return changes


def block_differences(world: World, traces: list[lk.Trace]) -> dict[Key, int]:
    """Return the changes of state, by account, asset and block, that nothing explains."""
    expected = traced_changes(world, traces)
    expected.update(beyond_traces(world, traces))
    expected.update(minted(world))
    return differences(_one_gas_key(expected), _one_gas_key(state_changes(world, expected)))


def _one_gas_key(changes: Counter[Key]) -> Counter[Key]:
    """Sum the changes of an account's gas keys: a trace may not know which one was deleted."""
    sums: Counter[Key] = Counter()
    for (account_id, asset, height), change in changes.items():
        sums[account_id, GAS_KEY if asset.startswith(GAS_KEY) else asset, height] += change
    return sums


def differences(expected: Counter[Key], actual: Counter[Key]) -> dict[Key, int]:
    """Return by how much the actual changes exceed the expected ones, where they do."""
    keys = sorted(expected.keys() | actual.keys())
    return {key: by for key in keys if (by := actual[key] - expected[key])}
