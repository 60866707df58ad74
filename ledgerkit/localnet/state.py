"""
The state of the chain at every height: the newest values, and the values they replaced.

A value is overwritten in place, and the old one is recorded in a journal. A rollback replays the
journal backwards; a commit moves the old values to the history. So a value at the head costs
one lookup, and an older one a search for the first change after its height.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from ledgerkit.localnet.chain_types import NO_CODE, Account, Change
from ledgerkit.protocol import AccessKey, CryptoHash

V = TypeVar("V", Account, AccessKey, int, bytes)
Cause = tuple[str, CryptoHash | None]
Journal = list[tuple["VersionedTable[Any]", str, bytes, Any]]  # with the replaced value
_HEAD = 2**64  # a height above all others


class VersionedTable(Generic[V]):
    """A table of values by account and key, at every height."""

    def __init__(self, kind: str, journal: Journal) -> None:
        self.kind = kind
        self.head: dict[str, dict[bytes, V]] = {}
        # By account and key: the heights of changes, and the values they replaced.
        self._history: dict[str, dict[bytes, tuple[list[int], list[V | None]]]] = {}
        self._journal = journal

    def get(self, account_id: str, key: bytes = b"", height: int = _HEAD) -> V | None:
        value = self.head.get(account_id, {}).get(key)
        if height == _HEAD:
            return value
        history = self._history.get(account_id, {}).get(key)
        if history is None:
            return value
        heights, replaced = history
        position = bisect_right(heights, height)
        return value if position == len(heights) else replaced[position]

    def put(self, account_id: str, key: bytes, value: V | None) -> None:
        values = self.head.setdefault(account_id, {})
        self._journal.append((self, account_id, key, values.get(key)))
        self.restore(account_id, key, value)

    def restore(self, account_id: str, key: bytes, value: V | None) -> None:
        """Write a value back without recording the replaced value."""
        values = self.head[account_id]
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value

    def add_history(self, account_id: str, key: bytes, value: V | None, height: int) -> None:
        """Record the value that was replaced at a height; later ones at the height are ignored."""
        heights, replaced = self._history.setdefault(account_id, {}).setdefault(key, ([], []))
        if not heights or heights[-1] != height:
            heights.append(height)
            replaced.append(value)

    def items(
        self, account_id: str, prefix: bytes = b"", height: int = _HEAD
    ) -> Iterator[tuple[bytes, V]]:
        """Iterate over an account's keys and values, sorted by key."""
        for key in sorted(self.keys(account_id, height)):
            if key.startswith(prefix):
                value = self.get(account_id, key, height)
                if value is not None:
                    yield key, value

    def keys(self, account_id: str, height: int) -> set[bytes]:
        """Return the keys that an account may have after the block of a height."""
        keys = set(self.head.get(account_id, ()))
        if height != _HEAD:
            keys.update(self._history.get(account_id, ()))
        return keys

    def prune(self, height: int) -> None:
        """Drop the history up to a height: older states are no longer read."""
        for account_id, histories in list(self._history.items()):
            for key, (heights, replaced) in list(histories.items()):
                pruned = bisect_right(heights, height)
                del heights[:pruned], replaced[:pruned]
                if not heights:
                    del histories[key]
            if not histories:
                del self._history[account_id]


class StateStore:
    """Accounts, access keys, gas key nonces, records of contracts, and code, at every height."""

    def __init__(self) -> None:
        self._journal: Journal = []
        self.accounts: VersionedTable[Account] = VersionedTable("account", self._journal)
        self.access_keys: VersionedTable[AccessKey] = VersionedTable("access_key", self._journal)
        # By packed public key and index, see `nonce_key`.
        self.gas_key_nonces: VersionedTable[int] = VersionedTable("gas_key_nonce", self._journal)
        self.data: VersionedTable[bytes] = VersionedTable("data", self._journal)
        self.global_codes: VersionedTable[bytes] = VersionedTable("global_code", self._journal)
        # By global contract: the number of its publications.
        self.global_nonces: VersionedTable[int] = VersionedTable("global_nonce", self._journal)
        # Code needs no history: the code of a hash never changes.
        self.codes: dict[CryptoHash, bytes] = {NO_CODE: b""}

    def mark(self) -> int:
        """Return the journal's position, to roll back to."""
        return len(self._journal)

    def rollback(self, mark: int) -> None:
        journal = self._journal
        while len(journal) > mark:
            table, account_id, key, value = journal.pop()
            table.restore(account_id, key, value)

    def commit(self, height: int, cause: Cause) -> list[Change]:
        """Move the journal's old values to the history of a height; list the changes."""
        changes = []
        seen = set()
        for table, account_id, key, value in self._journal:
            entry = (table.kind, account_id, key)
            if entry not in seen:
                seen.add(entry)
                table.add_history(account_id, key, value, height)
                new_value = table.head[account_id].get(key)
                if new_value != value:
                    changes.append(Change(cause, table.kind, account_id, key, new_value))
        self._journal.clear()
        return changes

    def prune(self, height: int) -> None:
        for table in vars(self).values():
            if isinstance(table, VersionedTable):
                table.prune(height)

    def at(self, height: int = _HEAD) -> State:
        """Return the state after the block of a height, by default the head."""
        return State(self, height)


def global_name(contract: CryptoHash | str) -> str:
    return contract.hex() if isinstance(contract, CryptoHash) else contract


def nonce_key(packed_key: bytes, index: int) -> bytes:
    """Return the key of a gas key's nonce in its table; the keys sort by index."""
    return packed_key + index.to_bytes(2, "big")


def split_nonce_key(key: bytes) -> tuple[bytes, int]:
    """Return the packed public key and the index in the key of a gas key's nonce."""
    return key[:-2], int.from_bytes(key[-2:], "big")


class State:
    """A read-only state of the chain after one block."""

    __slots__ = ("height", "store")

    def __init__(self, store: StateStore, height: int = _HEAD) -> None:
        self.store, self.height = store, height

    def account(self, account_id: str) -> Account | None:
        return self.store.accounts.get(account_id, b"", self.height)

    def access_key(self, account_id: str, packed_key: bytes) -> AccessKey | None:
        return self.store.access_keys.get(account_id, packed_key, self.height)

    def access_keys(self, account_id: str) -> Iterator[tuple[bytes, AccessKey]]:
        """Iterate over an account's access keys, sorted by packed public key."""
        return self.store.access_keys.items(account_id, b"", self.height)

    def gas_key_nonce(self, account_id: str, packed_key: bytes, index: int) -> int | None:
        key = nonce_key(packed_key, index)
        return self.store.gas_key_nonces.get(account_id, key, self.height)

    def gas_key_nonces(self, account_id: str, packed_key: bytes) -> list[int]:
        items = self.store.gas_key_nonces.items(account_id, packed_key, self.height)
        return [nonce for _, nonce in items]

    def data(self, account_id: str, key: bytes) -> bytes | None:
        """Return the value of a contract's storage record, or None."""
        return self.store.data.get(account_id, key, self.height)

    def records(self, account_id: str, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Iterate over a contract's storage records, sorted by key."""
        return self.store.data.items(account_id, prefix, self.height)

    def global_code_hash(self, contract: CryptoHash | str) -> CryptoHash | None:
        code_hash = self.store.global_codes.get(global_name(contract), b"", self.height)
        return None if code_hash is None else CryptoHash(code_hash)

    def code_hash(self, account: Account) -> CryptoHash | None:
        """Return the hash of the code that an account runs, local or global, or None."""
        if account.global_contract is not None:
            return self.global_code_hash(account.global_contract)
        return None if account.code_hash == NO_CODE else account.code_hash
