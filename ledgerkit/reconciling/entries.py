"""The entries of an account that a transaction's receipts and logs lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.reconciling.model import GAS_KEY, Entry

if TYPE_CHECKING:
    from ledgerkit.tracing.balance_timeline import BalanceChange
    from ledgerkit.tracing.trace import Trace

_CAUSES = {
    "transfer": "transfer",
    "deposit": "deposit",
    "delegated": "deposit",
    "refund_deposit": "refund",
    "refund_gas": "fee",
    "fee": "fee",
    "contract_reward": "gas_reward",
    "burnt": "storage_burn",
    "beneficiary": "deleted",
    "gas_key": "gas_key",
    "token": "token",
    "multi_token": "token",
}


class Placed(NamedTuple):
    """An entry, and its place among those of all transactions: first by block."""

    place: tuple[int, bool, int, int, int]
    entry: Entry


def entries_of(trace: Trace, account_id: str, position: int = 0) -> tuple[list[Placed], bool]:
    """
    Return the entries of an account, and whether the document has all amounts and heights.

    `position` is that of the transaction among the others.
    """
    entries, is_complete = [], True
    for index, change in enumerate(trace.balance_timeline()):
        # The balance of an unnamed gas key is burnt: `gas_keys` finds out which one it was.
        if change.account_id != account_id or change.kind == "nft" or change.asset == GAS_KEY:
            continue
        if change.change is None or change.height is None:
            is_complete = False
        elif change.change:
            place = change.height, change.order >= 0, position, change.order, index
            entries.append(Placed(place, _entry(trace, change, change.height, change.change)))
    return sorted(entries), is_complete


def _entry(trace: Trace, change: BalanceChange, height: int, amount: int) -> Entry:
    return Entry(
        block_height=height,
        timestamp_ns=change.time_ns,
        asset=change.asset,
        cause=_cause(change, amount),
        change=amount,
        tx_hash=trace.tx_hash,
        receipt_id=change.receipt_id,
        counterparty_id=change.counterparty_id,
        method_name=change.method_name,
        memo=change.memo,
    )


def _cause(change: BalanceChange, amount: int) -> str:
    kind, actions = change.kind, (change.actions or "").split("+")
    if kind in {"token", "multi_token"} and change.counterparty_id is None:
        return "mint" if amount > 0 else "burn"
    if kind == "burnt" and change.asset.startswith(GAS_KEY):
        return "deleted"
    if kind in {"transfer", "deposit"} and amount > 0 and "CreateAccount" in actions:
        return "created"
    if kind == "undelivered":
        return "transfer" if set(actions) <= {"CreateAccount", "Transfer"} else "deposit"
    return _CAUSES[kind]
