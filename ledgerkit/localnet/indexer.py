"""
The index behind the REST API: who holds what, by final blocks.

It begins with a walk through the state at genesis, whose entries have no height, and goes
on from block to block: keys by the changes of state, tokens and collections by events
(NEP-297) and by the calls that move balances without one, pools by calls. What failed
counts for nothing, and what once was held stays listed; a deleted key does not. Balances
are what the contracts tell, and may lag further behind.
"""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import msgspec

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.chain_types import Account, ActionReceipt, Block, Failure
from ledgerkit.localnet.contract_sdk import CONTRACTS_BY_HASH, Contract
from ledgerkit.localnet.contracts.fungible import PREFIX, FungibleBase
from ledgerkit.localnet.contracts.nonfungible import NonFungible
from ledgerkit.localnet.contracts.pool import StakingPool
from ledgerkit.localnet.execution_errors import LocalnetError
from ledgerkit.protocol import (
    AccessKey,
    AccountId,
    FullAccess,
    FunctionCall,
    GasKeyFullAccess,
    PublicKey,
    implicit_account_id,
)
from ledgerkit.protocol.borsh import text
from ledgerkit.units import U128_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.localnet.chain_types import Change, Outcome
    from ledgerkit.localnet.state import State
    from ledgerkit.localnet.world import World

_EVENT = "EVENT_JSON:"
# Where an event names those whose holdings it changes.
_PARTIES = {
    ("nep141", "ft_mint"): ("owner_id",),
    ("nep141", "ft_burn"): ("owner_id",),
    ("nep141", "ft_transfer"): ("old_owner_id", "new_owner_id"),
    ("nep171", "nft_mint"): ("owner_id",),
    ("nep171", "nft_burn"): ("owner_id",),
    ("nep171", "nft_transfer"): ("old_owner_id", "new_owner_id"),
}
# What a pool's delegators call, and what puts an account into a token without an event.
_DELEGATING = frozenset(
    "deposit deposit_and_stake stake stake_all unstake unstake_all withdraw withdraw_all".split()
)
_SILENT = frozenset("near_deposit near_withdraw storage_deposit".split())
_DIGITS = len(str(U128_MAX))


class Touch(NamedTuple):
    """When an account and a contract first and last had to do with each other."""

    first: int | None = None  # None: at genesis
    last: int | None = None


class Token(NamedTuple):
    """A token that an account ever held."""

    contract_id: str
    balance: str | None  # None: not asked yet; empty: the contract does not tell
    last: int | None


class Event(msgspec.Struct):
    """What a contract logs for everybody to understand."""

    standard: str
    event: str
    data: list[dict[str, Any]] = []


class Registration(msgspec.Struct):
    """The arguments of `storage_deposit`: for whom it is, if not for the caller."""

    account_id: str | None = None


class ContractPairs:
    """Accounts and the contracts they ever had to do with."""

    def __init__(self) -> None:
        self._contracts: dict[str, dict[str, Touch]] = {}
        self._accounts: dict[str, set[str]] = {}

    def touch(self, account_id: str, contract_id: str, height: int | None) -> None:
        """Note that an account and a contract had to do with each other."""
        row = self._contracts.setdefault(account_id, {})
        known = row.get(contract_id)
        row[contract_id] = Touch(height if known is None else known.first, height)
        if known is None:
            self._accounts.setdefault(contract_id, set()).add(account_id)

    def contracts(self, account_id: str) -> list[tuple[str, Touch]]:
        """Give an account's contracts, in the order of their ids."""
        return sorted(self._contracts.get(account_id, {}).items())

    def accounts(self, contract_id: str) -> list[tuple[str, Touch]]:
        """Give a contract's accounts, in the order of their ids."""
        names = sorted(self._accounts.get(contract_id, ()))
        return [(name, self._contracts[name][contract_id]) for name in names]


class Keys:
    """Accounts by their keys."""

    def __init__(self) -> None:
        self._accounts: dict[bytes, dict[str, bool]] = {}

    def put(self, packed_key: bytes, account_id: str, key: AccessKey | None) -> None:
        """Note a key of an account, with None that it is gone."""
        holders = self._accounts.setdefault(packed_key, {})
        if key is None:
            holders.pop(account_id, None)
        else:
            holders[account_id] = isinstance(key.permission, FullAccess | GasKeyFullAccess)

    def accounts(self, public_key: PublicKey, *, every_kind: bool = False) -> list[str]:
        """Give the accounts of a key, in order; last the one the key itself makes, if it can."""
        holders = self._accounts.get(public_key.packed, {})
        names = {name for name, full in holders.items() if full or every_kind}
        if public_key.curve != "ed25519":
            return sorted(names)
        own = str(implicit_account_id(public_key))
        return [*sorted(names - {own}), own]


class Balances:
    """
    Token balances as the contracts tell them, kept until a contract changes.

    Parameters
    ----------
    world
        Whose contracts are asked.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[str, dict[str, str]] = {}
        self._asked: dict[str, int] = {}
        self._changed: dict[str, int] = {}
        self._code_changed = -1

    def note(self, change: Change, height: int) -> None:
        """Note that a contract may tell something else from a height on."""
        if change.kind == "global_code":
            self._code_changed = height
        elif change.kind != "access_key":
            self._changed[change.account_id] = height

    def get(self, account_id: str, contract_id: str, block: Block) -> str:
        """Give a balance as of a block, as the contract writes it; empty if it does not tell."""
        changed = max(self._changed.get(contract_id, -1), self._code_changed)
        asked = self._asked.get(contract_id, -1)
        if asked < min(changed, block.height):
            self._known[contract_id] = {}
        self._asked[contract_id] = block.height
        known = self._known.setdefault(contract_id, {})
        if account_id not in known:
            known[account_id] = self._ask(account_id, contract_id, block)
        return known[account_id]

    def _ask(self, account_id: str, contract_id: str, block: Block) -> str:
        """Call the contract."""
        args = msgspec.json.encode({"account_id": account_id})
        with suppress(LocalnetError, msgspec.DecodeError):
            answer = self._world.view(contract_id, "ft_balance_of", args, block)
            told = msgspec.json.decode(answer.result, type=str)
            if told.isascii() and told.isdigit() and len(told) <= _DIGITS:
                return told
        return ""


class Indexer:
    """
    What the REST API knows of a world.

    Parameters
    ----------
    world
        Whose final blocks it follows. It is not kept alive by this.
    """

    def __init__(self, world: World) -> None:
        self._world: World = weakref.proxy(world)  # so that one who keeps both can let go
        self.keys, self.pools, self.tokens, self.collections = (
            Keys(),
            ContractPairs(),
            ContractPairs(),
            ContractPairs(),
        )
        self._by_standard = {"nep141": self.tokens, "nep171": self.collections}
        self._balances = Balances(self._world)
        self.block = self.balance_block = world.chain.genesis
        self._walk(world.store.at(self.block.height))

    # Asking ------------------------------------------------------------------------------

    def account(self, account_id: str) -> Account | None:
        """Give an account as of the index's block."""
        return self._world.state(self.block.height).account(account_id)

    def tokens_of(self, account_id: str) -> list[Token]:
        """Give the tokens an account ever held, in the order of their contracts' ids."""
        return [
            Token(contract_id, self._balance(account_id, contract_id, touch), touch.last)
            for contract_id, touch in self.tokens.contracts(account_id)
        ]

    def holders(self, contract_id: str) -> list[tuple[str, str | None]]:
        """Give who ever held a token, the largest balance first, unknown ones last."""
        held = [
            (account_id, self._balance(account_id, contract_id, touch))
            for account_id, touch in self.tokens.accounts(contract_id)
        ]
        return sorted(held, key=lambda one: int(one[1] or -1), reverse=True)

    def latency_ns(self) -> int:
        """Tell how far the index is behind the newest block."""
        return self._world.chain.head.timestamp_ns - self.block.timestamp_ns

    def _balance(self, account_id: str, contract_id: str, touch: Touch) -> str | None:
        """Give a balance; None where the pair is younger than the balances are."""
        if touch.first is not None and touch.first > self.balance_block.height:
            return None
        return self._balances.get(account_id, contract_id, self.balance_block)

    # Following the chain -----------------------------------------------------------------

    def catch_up(self) -> None:
        """Read the blocks that became final."""
        settings = self._world.settings
        last = self._before(self._world.chain.final, settings.indexer_lag)
        for block in self._after(last):
            self._read(block.height)
            self.block = block
        self.balance_block = self._before(self.block, settings.balance_lag)

    def _before(self, block: Block, count: int) -> Block:
        """Go back so many blocks, at most to genesis."""
        for _ in range(count):
            before = self._world.chain.by_hash(block.prev_hash)
            if before is None:
                break
            block = before
        return block

    def _after(self, last: Block) -> list[Block]:
        """List the blocks from the first unread one to a given one."""
        blocks = []
        block: Block | None = last
        while block is not None and block.height > self.block.height:
            blocks.append(block)
            block = self._world.chain.by_hash(block.prev_hash)
        return blocks[::-1]

    def _read(self, height: int) -> None:
        """Read what one block changed and executed."""
        for change in self._world.chain.changes(height):
            self._balances.note(change, height)
            if change.kind == "access_key" and not isinstance(change.value, Account | bytes):
                self.keys.put(change.key, str(change.account_id), change.value)
        for outcome in self._world.chain.outcomes_at(height):
            if not isinstance(outcome.status, Failure):
                self._follow(outcome, height)

    def _follow(self, outcome: Outcome, height: int) -> None:
        """Read what a receipt that succeeded did."""
        contract_id = str(outcome.executor_id)
        for log in outcome.logs:
            if log.startswith(_EVENT):
                standard, named = parties(log)
                for account_id in named:
                    self._by_standard[standard].touch(account_id, contract_id, height)
        receipt = self._world.receipt(outcome.id)
        if isinstance(receipt, ActionReceipt):
            for action in receipt.actions:
                if isinstance(action, FunctionCall):
                    self._called(contract_id, str(receipt.predecessor_id), action, height)

    def _called(self, contract_id: str, caller_id: str, action: FunctionCall, height: int) -> None:
        """Read what a call tells by its name: who delegates to a pool, who is in a token."""
        name = action.method_name
        if name not in _DELEGATING and name not in _SILENT:
            return
        kind = contract_class(self._world.state(height), contract_id)
        if name in _DELEGATING and is_pool(kind):
            self.pools.touch(caller_id, contract_id, height)
        elif name in _SILENT and is_token(kind):
            account_id = registered(action.args) if name == "storage_deposit" else None
            self.tokens.touch(account_id or caller_id, contract_id, height)

    def _walk(self, state: State) -> None:
        """Read who has what at genesis."""
        for account_id in state.store.accounts.head:
            for packed_key, key in state.access_keys(account_id):
                self.keys.put(packed_key, str(account_id), key)
            kind = contract_class(state, account_id)
            if kind is not None:
                self._held(state, str(account_id), kind)

    def _held(self, state: State, contract_id: str, kind: type[Contract]) -> None:
        """Read who is in a contract at genesis, where its records are known to tell."""
        kept = (
            (FungibleBase, PREFIX, self.tokens),
            (NonFungible, b"n", self.collections),
            (StakingPool, StakingPool.prefix, self.pools),
        )
        for known, prefix, pairs in kept:
            if issubclass(kind, known):
                for account_id in named_in_keys(state, contract_id, prefix):
                    pairs.touch(account_id, contract_id, None)


def parties(log: str) -> tuple[str, list[str]]:
    """Read an event's standard and the accounts in it; what is malformed names nobody."""
    try:
        event = msgspec.json.decode(log.removeprefix(_EVENT), type=Event)
    except (msgspec.DecodeError, RecursionError):
        return "", []
    members = _PARTIES.get((event.standard, event.event), ())
    named = [row.get(member) for row in event.data for member in members]
    return event.standard, [name for name in named if is_account_id(name)]


def registered(args: bytes) -> str | None:
    """Read whom a deposit for storage is for; None for the caller."""
    try:
        account_id = msgspec.json.decode(args or b"{}", type=Registration).account_id
    except (msgspec.DecodeError, RecursionError):
        return None
    return account_id if is_account_id(account_id) else None


def named_in_keys(state: State, contract_id: str, prefix: bytes) -> Iterator[str]:
    """Go through the accounts that a contract's records are named after."""
    skip = len(prefix + text(""))
    for key, _ in state.records(contract_id, prefix):
        name = key[skip:].decode(errors="replace")
        if key == prefix + text(name):  # another kind of record may begin with the same byte
            yield name


def is_account_id(value: object) -> TypeGuard[str]:
    """Tell whether something is an account id."""
    try:
        AccountId(value)  # type: ignore[arg-type]  # it is what finds out
    except InvalidRequestError:
        return False
    return True


def contract_class(state: State, account_id: str) -> type[Contract] | None:
    """Find the contract that an account runs, where it is one that is known."""
    account = state.account(account_id)
    code_hash = None if account is None else state.code_hash(account)
    return None if code_hash is None else CONTRACTS_BY_HASH.get(code_hash)


def is_token(kind: type[Contract] | None) -> bool:
    """Tell whether a contract is a fungible token."""
    return kind is not None and "ft_balance_of" in kind.methods


def is_pool(kind: type[Contract] | None) -> bool:
    """Tell whether a contract is a staking pool: it tells stakes, and is no token itself."""
    return kind is not None and "get_account_staked_balance" in kind.methods and not is_token(kind)
