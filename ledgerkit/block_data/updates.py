"""The changes that a block made to the balances of an account, from the block documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.block_data.headers import Skipped
from ledgerkit.block_data.reading import read_document
from ledgerkit.errors import DecodeError
from ledgerkit.frames import amounts

if TYPE_CHECKING:
    from ledgerkit.api.models.block_documents import StateChange
    from ledgerkit.ledger import Ledger


class AccountUpdate(NamedTuple):
    """The balances of an account after one transaction or receipt; 0 after its deletion."""

    amount: int  # yoctoNEAR
    locked: int
    storage_usage: int  # bytes
    cause_type: str
    cause_hash: str | None  # of the transaction or receipt; None for a change by the chain itself


def account_updates(ledger: Ledger, height: int, account_id: str) -> list[AccountUpdate]:
    """
    List what a block did to the balances of an account, in order; empty for a skipped height.

    The changes of a document are sorted by account, and those of one account by time.
    """
    # Source: recorded block 151,768,255 of mainnet, and nearcore, StateChangesKinds.
    document = read_document(ledger, height)
    if isinstance(document, Skipped):
        return []
    return [
        _account_update(change)
        for shard in document.shards
        for change in shard.state_changes
        if change.change.account_id == account_id
    ]


def _account_update(change: StateChange) -> AccountUpdate:
    cause, account = change.cause, change.account()
    balances = amounts.plain([account.amount, account.locked])
    if balances is None:
        path = "$.shards[].state_changes[].change"
        sentence = f"an {change.type} of {account.account_id} has no whole balance at {path}"
        raise DecodeError(sentence, path=path)
    unlocked, locked = balances
    cause_hash = cause.receipt_hash or cause.tx_hash
    return AccountUpdate(unlocked, locked, account.storage_usage or 0, cause.type, cause_hash)
