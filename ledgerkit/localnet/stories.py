"""What a world has to tell: its accounts with their published keys, contracts, transactions."""

from __future__ import annotations

from msgspec import Struct, field


class Story(Struct, frozen=True):
    """An account, and what it is there for; its key is everybody's to use."""

    account_id: str
    secret_key: str | None
    story: str


class TxStory(Struct, frozen=True):
    """A transaction, and what happened in it."""

    tx_hash: str
    signer_id: str
    story: str


class Stories(Struct):
    """All of them."""

    accounts: list[Story] = field(default_factory=list)
    contracts: dict[str, str | list[str]] = field(default_factory=dict)
    transactions: list[TxStory] = field(default_factory=list)
