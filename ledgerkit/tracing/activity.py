"""A transaction from the view of one of its accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pandas import NA

from ledgerkit.api.models.actions import function_calls
from ledgerkit.tracing.amount_texts import GAS_KEY, NEAR
from ledgerkit.tracing.explain import headline
from ledgerkit.tracing.transfers import balance_change_columns

if TYPE_CHECKING:
    from ledgerkit.tracing.transaction_data import TransactionData


class Activity(NamedTuple):
    """The columns of the frame `activity` from a transaction's document; None if unread."""

    headline: str | None = None
    verdict: str | None = None
    amounts: str | None = None
    counterparty_id: str | None = None
    method_name: str | None = None
    near_change: Any = None
    token_changes: dict[str, int | None] | None = None


def describe_activity(tx: TransactionData, account_id: str) -> Activity:
    """Describe a transaction from the view of one of its accounts."""
    changes = _changes(tx, account_id)
    calls = function_calls((tx.request and tx.request.actions) or ())
    tokens = {
        asset: None if change is NA else change
        for asset, change in changes.items()
        if asset != NEAR and not asset.startswith(GAS_KEY)
    }
    return Activity(
        headline(tx) or None,
        tx.verdict,
        ", ".join(_signed(tx, *change) for change in changes.items()) or None,
        _counterparty(tx, account_id),
        "+".join(call.method_name or "" for call in calls) or None,
        changes.get(NEAR, 0),
        tokens,
    )


def _changes(tx: TransactionData, account_id: str) -> dict[str, Any]:
    """Return the changes of an account's balances by asset; NA where unknown."""
    columns = balance_change_columns(tx.transfers)
    rows = zip(columns["account_id"], columns["asset"], columns["change"], strict=True)
    changes = {asset: change for owner_id, asset, change in rows if owner_id == account_id}
    values = tx.values
    received = zip(
        values.receivers, values.deposits, values.rewards, values.balance_burnt, strict=True
    )
    sent = zip(values.senders, values.deposits, strict=True)
    is_unknown = any(None in row for row in (*received, *sent) if row[0] == account_id)
    if is_unknown or tx.verdict in ("pending", "unknown"):
        changes[NEAR] = NA
    return changes


def _signed(tx: TransactionData, asset: str, change: Any) -> str:
    if change is NA:
        return f"unknown change of {'NEAR' if asset == NEAR else asset}"
    return ("-" if change < 0 else "+") + tx.amounts.text(asset, abs(change))


def _counterparty(tx: TransactionData, account_id: str) -> str | None:
    """Return the only account at the other end of token transfers, else of the transaction."""
    ends = [(row.sender_id, row.receiver_id) for row in tx.transfers if row.asset.startswith("nep")]
    others = {end for pair in ends if account_id in pair for end in pair} - {account_id, None}
    if len(others) != 1 and tx.request is not None:
        is_sender = tx.request.sender_id == account_id
        others = {tx.request.receiver_id if is_sender else tx.request.sender_id} - {account_id}
    return others.pop() if len(others) == 1 else None
