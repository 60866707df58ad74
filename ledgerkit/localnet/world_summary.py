"""Summary of a world for people: accounts with published keys, contracts, transactions."""

from __future__ import annotations

from msgspec import Struct, field


class AccountSummary(Struct, frozen=True):
    """An account with its purpose and its published key."""

    account_id: str
    secret_key: str | None
    description: str


class TransactionSummary(Struct, frozen=True):
    """A transaction with a description of what it did."""

    tx_hash: str
    signer_id: str
    description: str


class WorldSummary(Struct):
    """The accounts, contracts and transactions worth knowing in a world."""

    accounts: list[AccountSummary] = field(default_factory=list)
    contracts: dict[str, str | list[str]] = field(default_factory=dict)
    transactions: list[TransactionSummary] = field(default_factory=list)
