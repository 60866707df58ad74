"""
The index behind the REST API: which accounts have which keys, tokens, collections and pools.

It starts with the state at genesis, whose entries have no height, and follows the final blocks:
keys by changes of the state, tokens and collections by events (NEP-297) and by calls that move
balances without an event, pools by calls. Failed receipts do not count. A pair of account and
contract stays listed for ever; a deleted key does not. Balances are what the contracts return,
and may be some blocks older.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ledgerkit.localnet.block_follower import BlockFollower
from ledgerkit.localnet.chain_types import Account, ActionReceipt, Block, Failure, Outcome
from ledgerkit.localnet.contract_sdk import CONTRACTS_BY_HASH, Contract, decode_event, from_json
from ledgerkit.localnet.contracts.fungible_token import PREFIX, FungibleTokenBase
from ledgerkit.localnet.contracts.non_fungible_token import NonFungibleToken
from ledgerkit.localnet.contracts.staking_pool import StakingPool
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
from ledgerkit.validation import is_account_id

if TYPE_CHECKING:
    from ledgerkit.localnet.state import State
    from ledgerkit.localnet.world import World

# The members of an event's data with the accounts whose holdings it changes.
_EVENT_ACCOUNTS = {
    ("nep141", "ft_mint"): ("owner_id",),
    ("nep141", "ft_burn"): ("owner_id",),
    ("nep141", "ft_transfer"): ("old_owner_id", "new_owner_id"),
    ("nep171", "nft_mint"): ("owner_id",),
    ("nep171", "nft_burn"): ("owner_id",),
    ("nep171", "nft_transfer"): ("old_owner_id", "new_owner_id"),
}
# The methods of a pool that its delegators call.
_POOL_METHODS = frozenset(
    "deposit deposit_and_stake stake stake_all unstake unstake_all withdraw withdraw_all".split()
)
# The methods of a token that change its holders and log no event.
_TOKEN_METHODS = frozenset("near_deposit near_withdraw storage_deposit".split())
_MAX_DIGITS = len(str(U128_MAX))


class Heights(NamedTuple):
    """The heights at which a pair of account and contract was first and last seen."""

    first: int | None = None  # None: at genesis
    last: int | None = None


class Event(msgspec.Struct):
    """An event of a contract (NEP-297)."""

    standard: str
    event: str
    data: list[dict[str, Any]] = []


class StorageDepositArgs(msgspec.Struct):
    """The arguments of `storage_deposit` (NEP-145)."""

    account_id: AccountId | None = None  # None: the caller


class ContractPairs:
    """Pairs of an account and a contract, with the heights at which they were seen."""

    def __init__(self) -> None:
        self._contracts: dict[str, dict[str, Heights]] = {}  # by account id

    def add(self, account_id: str, contract_id: str, height: int | None) -> None:
        contracts = self._contracts.setdefault(account_id, {})
        heights = contracts.get(contract_id)
        contracts[contract_id] = Heights(height if heights is None else heights.first, height)

    def contracts(self, account_id: str) -> list[tuple[str, Heights]]:
        """List an account's contracts, sorted by id."""
        return sorted(self._contracts.get(account_id, {}).items())

    def accounts(self, contract_id: str) -> list[tuple[str, Heights]]:
        """List a contract's accounts, sorted by id."""
        pairs = sorted(self._contracts.items())
        return [(name, heights[contract_id]) for name, heights in pairs if contract_id in heights]


class KeyIndex:
    """Accounts by their public keys."""

    def __init__(self) -> None:
        self._accounts: dict[bytes, dict[str, bool]] = {}  # True for full access

    def update(self, packed_key: bytes, account_id: str, key: AccessKey | None) -> None:
        accounts = self._accounts.setdefault(packed_key, {})
        if key is None:
            accounts.pop(account_id, None)
        else:
            accounts[account_id] = isinstance(key.permission, FullAccess | GasKeyFullAccess)

    def accounts(self, public_key: PublicKey, *, every_kind: bool = False) -> list[str]:
        """List the accounts of a key, sorted; last the key's own implicit account, if any."""
        full_access = self._accounts.get(public_key.stored, {})
        account_ids = {name for name, is_full in full_access.items() if is_full or every_kind}
        if public_key.curve != "ed25519":
            return sorted(account_ids)
        implicit_id = str(implicit_account_id(public_key))
        return [*sorted(account_ids - {implicit_id}), implicit_id]


class Indexer(BlockFollower):
    """The index of a world."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.keys = KeyIndex()
        self.pools, self.tokens, self.collections = (ContractPairs() for _ in range(3))
        self._by_standard = {"nep141": self.tokens, "nep171": self.collections}
        self.balance_block = self.block
        self._read_genesis(world.store.at(self.block.height))

    # Reading -----------------------------------------------------------------------------

    def account(self, account_id: str) -> Account | None:
        return self._world.state(self.block.height).account(account_id)

    def tokens_of(self, account_id: str) -> list[tuple[str, str | None, int | None]]:
        """List the tokens that an account ever held, sorted: contract, balance, last height."""
        return [
            (contract_id, self._balance(account_id, contract_id, heights), heights.last)
            for contract_id, heights in self.tokens.contracts(account_id)
        ]

    def holders(self, contract_id: str) -> list[tuple[str, str | None]]:
        """List all past and present holders of a token, largest balance first, unknown last."""
        balances = [
            (account_id, self._balance(account_id, contract_id, heights))
            for account_id, heights in self.tokens.accounts(contract_id)
        ]
        return sorted(balances, key=lambda item: int(item[1] or -1), reverse=True)

    def latency_ns(self) -> int:
        """Return the nanoseconds by which the index is behind the newest block."""
        return self._world.chain.head.timestamp_ns - self.block.timestamp_ns

    def _balance(self, account_id: str, contract_id: str, heights: Heights) -> str | None:
        """
        Return a balance as digits, empty if the contract returned no amount.

        It is None if the pair is newer than the balances.
        """
        if heights.first is not None and heights.first > self.balance_block.height:
            return None
        args = msgspec.json.encode({"account_id": account_id})
        try:
            view = self._world.view(contract_id, "ft_balance_of", args, self.balance_block)
        except LocalnetError:
            return ""
        balance: str = from_json(view.result, str) or ""
        is_amount = balance.isascii() and balance.isdigit() and len(balance) <= _MAX_DIGITS
        return balance if is_amount else ""

    # Following the chain -----------------------------------------------------------------

    def catch_up(self) -> None:
        super().catch_up()
        self.balance_block = self._earlier(self.block, self._world.settings.balance_lag)

    def _read_block(self, block: Block) -> None:
        height = block.height
        for change in self._world.chain.changes(height):
            if change.kind == "access_key":
                access_key = change.value if isinstance(change.value, AccessKey) else None
                self.keys.update(change.key, str(change.account_id), access_key)
        for receipt, outcome in self._world.executions(block):
            if not isinstance(outcome.status, Failure):
                self._read_execution(receipt, outcome, height)

    def _read_execution(self, receipt: ActionReceipt, outcome: Outcome, height: int) -> None:
        contract_id = str(receipt.receiver_id)
        for log in outcome.logs:
            standard, account_ids = event_accounts(log)
            for account_id in account_ids:
                self._by_standard[standard].add(account_id, contract_id, height)
        for action in receipt.actions:
            if isinstance(action, FunctionCall):
                self._read_call(contract_id, str(receipt.predecessor_id), action, height)

    def _read_call(
        self, contract_id: str, caller_id: str, action: FunctionCall, height: int
    ) -> None:
        name = action.method_name
        if name not in _POOL_METHODS and name not in _TOKEN_METHODS:
            return
        cls = contract_class(self._world.state(height), contract_id)
        if name in _POOL_METHODS and is_pool(cls):
            self.pools.add(caller_id, contract_id, height)
        elif name in _TOKEN_METHODS and is_token(cls):
            account_id = deposit_account(action.args) if name == "storage_deposit" else None
            self.tokens.add(account_id or caller_id, contract_id, height)

    def _read_genesis(self, state: State) -> None:
        for account_id in state.store.accounts.head:
            for packed_key, key in state.access_keys(account_id):
                self.keys.update(packed_key, str(account_id), key)
            cls = contract_class(state, account_id)
            if cls is not None:
                self._read_holders(state, str(account_id), cls)

    def _read_holders(self, state: State, contract_id: str, cls: type[Contract]) -> None:
        """Add the accounts in a contract's storage records, if their layout is known."""
        layouts = (
            (FungibleTokenBase, PREFIX, self.tokens),
            (NonFungibleToken, b"n", self.collections),
            (StakingPool, StakingPool.prefix, self.pools),
        )
        for base, prefix, pairs in layouts:
            if issubclass(cls, base):
                for account_id in accounts_in_keys(state, contract_id, prefix):
                    pairs.add(account_id, contract_id, None)


def event_accounts(log: str) -> tuple[str, list[str]]:
    """Parse the standard and the accounts of the event in a log; a malformed event has none."""
    event = decode_event(log, Event)
    if event is None:
        return "", []
    members = _EVENT_ACCOUNTS.get((event.standard, event.event), ())
    values = [row.get(member) for row in event.data for member in members]
    return event.standard, [value for value in values if is_account_id(value)]


def deposit_account(args: bytes) -> str | None:
    """Parse the account of a `storage_deposit`; None for the caller."""
    decoded = from_json(args, StorageDepositArgs)
    return str(decoded.account_id) if decoded and decoded.account_id else None


def accounts_in_keys(state: State, contract_id: str, prefix: bytes) -> Iterator[str]:
    """Iterate over the account ids in the keys of a contract's storage records."""
    skip = len(prefix + text(""))
    for key, _ in state.records(contract_id, prefix):
        account_id = key[skip:].decode(errors="replace")
        if key == prefix + text(account_id):  # other records may begin with the same byte
            yield account_id


def contract_class(state: State, account_id: str) -> type[Contract] | None:
    account = state.account(account_id)
    code_hash = None if account is None else state.code_hash(account)
    return None if code_hash is None else CONTRACTS_BY_HASH.get(code_hash)


def is_token(cls: type[Contract] | None) -> bool:
    return cls is not None and "ft_balance_of" in cls.methods


def is_pool(cls: type[Contract] | None) -> bool:
    """Return True if a contract is a staking pool, and not a liquid staking token."""
    return cls is not None and "get_account_staked_balance" in cls.methods and not is_token(cls)
