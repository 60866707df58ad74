"""
The state of the chain at every height: the newest values, and what they replaced.

A value is written in place and noted in a journal; rolling back replays the journal
backwards, committing moves what was replaced into the past. So the state at the head
costs one lookup, and an older one the search for the first change after it.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ledgerkit.localnet.chain_types import NO_CODE, Account, Change
from ledgerkit.protocol import AccessKey, CryptoHash

if TYPE_CHECKING:
    from collections.abc import Iterator

V = TypeVar("V", Account, AccessKey, bytes)
Cause = tuple[str, CryptoHash | None]
Journal = list[tuple["Table[Any]", str, bytes, Any]]  # what was replaced, and where
_ALWAYS = 2**64


class Table(Generic[V]):
    """
    Values by account and key, at every height.

    Parameters
    ----------
    kind
        What the values are, for the record of changes.
    journal
        Where replaced values are noted until they are committed.
    """

    def __init__(self, kind: str, journal: Journal) -> None:
        self.kind = kind
        self.head: dict[str, dict[bytes, V]] = {}
        self._past: dict[str, dict[bytes, tuple[list[int], list[V | None]]]] = {}
        self._journal = journal

    def get(self, account_id: str, key: bytes = b"", height: int = _ALWAYS) -> V | None:
        """Give a value, None where there is none."""
        held = self.head.get(account_id)
        value = None if held is None else held.get(key)
        if height == _ALWAYS:
            return value
        past = self._past.get(account_id)
        found = None if past is None else past.get(key)
        if found is None:
            return value
        heights, replaced = found
        place = bisect_right(heights, height)
        return value if place == len(heights) else replaced[place]

    def put(self, account_id: str, key: bytes, value: V | None) -> None:
        """Write a value, or with None delete it."""
        held = self.head.get(account_id)
        if held is None:
            held = self.head[account_id] = {}
        self._journal.append((self, account_id, key, held.get(key)))
        if value is None:
            held.pop(key, None)
        else:
            held[key] = value

    def restore(self, account_id: str, key: bytes, value: V | None) -> None:
        """Write back a value without noting it."""
        held = self.head[account_id]
        if value is None:
            held.pop(key, None)
        else:
            held[key] = value

    def keep(self, account_id: str, key: bytes, value: V | None, height: int) -> None:
        """Note what was replaced at a height."""
        past = self._past.setdefault(account_id, {})
        found = past.get(key)
        if found is None:
            past[key] = ([height], [value])
        elif found[0][-1] != height:
            found[0].append(height)
            found[1].append(value)

    def items(
        self, account_id: str, prefix: bytes = b"", height: int = _ALWAYS
    ) -> Iterator[tuple[bytes, V]]:
        """Go through an account's values in the order of their keys."""
        keys = set(self.head.get(account_id, ()))
        if height != _ALWAYS:
            keys.update(self._past.get(account_id, ()))
        for key in sorted(keys):
            if key.startswith(prefix):
                value = self.get(account_id, key, height)
                if value is not None:
                    yield key, value

    def forget(self, height: int) -> None:
        """Drop what was replaced at a height or before: no state before it is asked for."""
        for account_id, past in list(self._past.items()):
            for key, (heights, replaced) in list(past.items()):
                gone = bisect_right(heights, height)
                del heights[:gone], replaced[:gone]
                if not heights:
                    del past[key]
            if not past:
                del self._past[account_id]


class StateStore:
    """Accounts, access keys, records of contracts, and code."""

    def __init__(self) -> None:
        self._journal: Journal = []
        self.accounts: Table[Account] = Table("account", self._journal)
        self.access_keys: Table[AccessKey] = Table("access_key", self._journal)
        self.data: Table[bytes] = Table("data", self._journal)
        self.codes: dict[CryptoHash, bytes] = {NO_CODE: b""}  # named by itself: never out of date
        self.global_codes: Table[bytes] = Table("global_code", self._journal)

    def mark(self) -> int:
        """Remember where the journal stands."""
        return len(self._journal)

    def rollback(self, mark: int) -> None:
        """Undo everything since a mark."""
        journal = self._journal
        while len(journal) > mark:
            table, account_id, key, value = journal.pop()
            table.restore(account_id, key, value)

    def commit(self, height: int, cause: Cause) -> list[Change]:
        """Settle what was written, as of a height, and tell it."""
        changes = []
        seen = set()
        for table, account_id, key, value in self._journal:
            place = (table.kind, account_id, key)
            if place not in seen:
                seen.add(place)
                table.keep(account_id, key, value, height)
                now = table.head[account_id].get(key)
                if now != value:
                    changes.append(Change(cause, table.kind, account_id, key, now))
        self._journal.clear()
        return changes

    def settle(self) -> None:
        """Take what was written as the state at the beginning."""
        self._journal.clear()

    def forget(self, height: int) -> None:
        """Drop the states before a height."""
        for table in (self.accounts, self.access_keys, self.data, self.global_codes):
            table.forget(height)

    def at(self, height: int = _ALWAYS) -> State:
        """Look at the state after the block of a height."""
        return State(self, height)


class State:
    """
    The state after one block, to read.

    Parameters
    ----------
    store
        Of all heights.
    height
        The block's.
    """

    __slots__ = ("height", "store")

    def __init__(self, store: StateStore, height: int = _ALWAYS) -> None:
        self.store, self.height = store, height

    def account(self, account_id: str) -> Account | None:
        """Give an account."""
        return self.store.accounts.get(account_id, b"", self.height)

    def access_key(self, account_id: str, packed_key: bytes) -> AccessKey | None:
        """Give an access key, by its packed public key."""
        return self.store.access_keys.get(account_id, packed_key, self.height)

    def access_keys(self, account_id: str) -> Iterator[tuple[bytes, AccessKey]]:
        """Go through an account's keys, in the order of their packed public keys."""
        return self.store.access_keys.items(account_id, b"", self.height)

    def data(self, account_id: str, key: bytes) -> bytes | None:
        """Give a record of an account's contract."""
        return self.store.data.get(account_id, key, self.height)

    def records(self, account_id: str, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Go through the records of an account's contract, in the order of their keys."""
        return self.store.data.items(account_id, prefix, self.height)

    def global_code_hash(self, contract: CryptoHash | str) -> CryptoHash | None:
        """Find the code of a global contract."""
        if isinstance(contract, CryptoHash):
            return contract if contract in self.store.codes else None
        found = self.store.global_codes.get(contract, b"", self.height)
        return None if found is None else CryptoHash(found)

    def code_hash(self, account: Account) -> CryptoHash | None:
        """Find the code an account runs, its own or a global one; None if there is none."""
        if account.global_contract is not None:
            return self.global_code_hash(account.global_contract)
        return None if account.code_hash == NO_CODE else account.code_hash
