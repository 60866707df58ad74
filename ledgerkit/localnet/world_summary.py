"""What a world has to tell: its accounts with their published keys, contracts, transactions."""

from __future__ import annotations

from msgspec import Struct, field


class AccountSummary(Struct, frozen=True):
    """An account, and what it is there for; its key is everybody's to use."""

    account_id: str
    secret_key: str | None
    description: str


class TransactionSummary(Struct, frozen=True):
    """A transaction, and what happened in it."""

    tx_hash: str
    signer_id: str
    description: str


class WorldSummary(Struct):
    """All of them."""

    accounts: list[AccountSummary] = field(default_factory=list)
    contracts: dict[str, str | list[str]] = field(default_factory=dict)
    transactions: list[TransactionSummary] = field(default_factory=list)
