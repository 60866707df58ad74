"""The networks that every verb is tried on: what is known about each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import ledgerkit as lk

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """
    What is published about a network and does not change.

    Parameters
    ----------
    account_id
        An account with tokens and access keys.
    token
        The wrapped NEAR contract, which has 24 decimals.
    collection
        An NFT contract; None if none is known.
    tx_hash, sender, receiver, amount
        A transfer of NEAR that succeeded.
    """

    account_id: str
    token: str
    collection: str | None
    tx_hash: str
    sender: str
    receiver: str
    amount: int


@dataclass(frozen=True, slots=True)
class Site:
    """An open ledger and the facts about its network."""

    name: str
    ledger: lk.Ledger
    facts: Facts


def _mainnet(_ledger: lk.Ledger) -> Facts:
    # The transfer is one of the examples in FastNEAR's documentation of the Transactions API.
    return Facts(
        account_id="mob.near",
        token="wrap.near",
        collection="mint.sharddog.near",
        tx_hash="7ZKnhzt2MqMNmsk13dV8GAjGu3Db8aHzSBHeNeu9MJCq",
        sender="root.near",
        receiver="escrow.ai.near",
        amount=35 * 10**23,
    )


def _testnet(_ledger: lk.Ledger) -> Facts:
    # The transfer is the example of `tx` in the documentation of NEAR.
    return Facts(
        account_id="wrap.testnet",
        token="wrap.testnet",
        collection=None,
        tx_hash="6zgh2u9DqHHiXzdy9ouTP7oGky2T4nugqzqt9wJZwNFm",
        sender="sender.testnet",
        receiver="receiver.testnet",
        amount=10**24,
    )


def _local(ledger: lk.Ledger) -> Facts:
    """Return the facts of the embedded ledger, with a transfer made for this purpose."""
    sent = lk.transfer("dave.near", "2 NEAR", signer_id="alice.near", ledger=ledger)
    ledger.world.advance(8)  # the transfer and its refund are final
    return Facts(
        account_id="alice.near",
        token="wrap.near",
        collection="stamps.grace.near",
        tx_hash=sent.tx_hash,
        sender="alice.near",
        receiver="dave.near",
        amount=2 * 10**24,
    )


FACTS: dict[str, Callable[[lk.Ledger], Facts]] = {
    "local": _local,
    "mainnet": _mainnet,
    "testnet": _testnet,
}


def open_site(name: str) -> Site:
    """Connect to a network; a key of the environment is used, and raises the rate limit."""
    ledger = lk.connect(name)
    return Site(name, ledger, FACTS[name](ledger))
