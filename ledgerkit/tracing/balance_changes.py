"""Balance changes: the signed change of each asset of each account, the sum of its transfers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pandas import NA

from ledgerkit.tracing.tree.frame_columns import SYSTEM

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledgerkit.tracing.token_events import Transfer


def balance_change_columns(transfers: Iterable[Transfer]) -> dict[str, Any]:
    """Compute the columns of the balance_changes frame, by account and asset."""
    changes: dict[tuple[str, str], Any] = {}
    for transfer in transfers:
        amount = NA if transfer.amount is None else transfer.amount
        for account_id, change in (transfer.sender_id, -amount), (transfer.receiver_id, amount):
            if account_id is not None and account_id != SYSTEM:
                key = (account_id, transfer.asset)
                changes[key] = changes.get(key, 0) + change
    rows = sorted(key for key, change in changes.items() if change is NA or change)
    return {
        "account_id": [account_id for account_id, _ in rows],
        "asset": [asset for _, asset in rows],
        "change": [changes[row] for row in rows],
    }
