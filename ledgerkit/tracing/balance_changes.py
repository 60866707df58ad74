"""Balance changes: the signed change of each asset of each account."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from ledgerkit.tracing.actions import SUCCEEDED
from ledgerkit.tracing.transfers import NEAR
from ledgerkit.tracing.tree.frame_columns import SYSTEM

if TYPE_CHECKING:
    from ledgerkit.tracing.gas import ReceiptValues
    from ledgerkit.tracing.token_events import Transfer


def balance_change_columns(values: ReceiptValues, transfers: list[Transfer]) -> dict[str, Any]:
    """Compute the columns of the balance_changes frame, by account and asset."""
    changes = {(account_id, NEAR): change for account_id, change in _near_changes(values).items()}
    for transfer in transfers:
        if transfer.asset == NEAR:
            continue
        parties = (transfer.sender_id, -transfer.amount), (transfer.receiver_id, transfer.amount)
        for account_id, change in parties:
            if account_id is not None:
                key = (account_id, transfer.asset)
                changes[key] = changes.get(key, 0) + change
    rows = sorted((key, change) for key, change in changes.items() if change)
    return {
        "account_id": [account_id for (account_id, _), _ in rows],
        "asset": [asset for (_, asset), _ in rows],
        "change": [change for _, change in rows],
    }


def _near_changes(values: ReceiptValues) -> dict[str, int]:
    """
    Sum the changes of NEAR by account.

    A deposit leaves its sender when the receipt is created, and reaches the receiver if the
    receipt succeeds; the deposit of a failed one returns with a separate refund receipt.
    """
    changes: defaultdict[str, int] = defaultdict(int)

    def add(account_id: str | None, change: int) -> None:
        if account_id is not None and account_id != SYSTEM:
            changes[account_id] += change

    add(values.tree.conversion.signer_id, -values.transaction_fee())
    for at, status in enumerate(values.status):
        deposit = values.deposits[at] or 0
        if values.refund_kinds[at] == "beneficiary":
            add(values.receivers[values.parents[at]], -deposit)
        add(values.senders[at], -deposit)
        if status in SUCCEEDED:
            add(values.receivers[at], deposit)
        add(values.receivers[at], values.rewards[at] or 0)
    return changes
