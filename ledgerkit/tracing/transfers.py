"""Transfers of NEAR and tokens: sender, receiver and amount, in the order of receipts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.tracing.action_fields import action_name
from ledgerkit.tracing.actions import SUCCEEDED, receipt_key_columns
from ledgerkit.tracing.gas import action_deposit
from ledgerkit.tracing.token_events import Transfer, token_transfers
from ledgerkit.tracing.tree.frame_columns import SYSTEM
from ledgerkit.tracing.tree.linking import first_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledgerkit.api.models.transactions import TxResult
    from ledgerkit.tracing.action_fields import Actions
    from ledgerkit.tracing.gas import ReceiptValues
    from ledgerkit.tracing.tree import Tree

NEAR = "near"
_KIND_OF_ACTION = {
    "Transfer": "transfer",
    "TransferToGasKey": "transfer",
    "FunctionCall": "deposit",
    "DeterministicStateInit": "deposit",
}


def list_transfers(
    values: ReceiptValues, result: TxResult
) -> tuple[list[Transfer], tuple[str, ...]]:
    """Return all transfers in the order of receipts, and notes about what is not counted."""
    tokens, token_notes = token_transfers(values.tree, values.actions, result)
    transfers = sorted([*_near_transfers(values), *tokens], key=lambda transfer: transfer.at)
    return transfers, (*_unknown_values(values), *token_notes)


def _near_transfers(values: ReceiptValues) -> Iterable[Transfer]:
    """List the transfers of NEAR."""
    signer_id, fee = values.tree.conversion.signer_id, values.transaction_fee()
    if signer_id is not None and fee:
        yield Transfer(-1, "fee", NEAR, signer_id, SYSTEM, fee)
    for at, status in enumerate(values.status):
        sender_id, receiver_id = values.senders[at], values.receivers[at]
        if status in SUCCEEDED:
            refund_kind = values.refund_kinds[at]
            if refund_kind == "beneficiary":
                sender_id = values.receivers[values.parents[at]]
            for kind, amount in _deposits_by_kind(values.actions[at]):
                yield Transfer(at, refund_kind or kind, NEAR, sender_id, receiver_id, amount)
        reward = values.rewards[at]
        if reward:
            yield Transfer(at, "contract_reward", NEAR, SYSTEM, receiver_id, reward)


def _deposits_by_kind(actions: Actions | None) -> list[tuple[str, int]]:
    """Sum the deposits of a receipt's actions by kind of transfer."""
    totals: dict[str, int] = {}
    for action in actions or ():
        kind = _KIND_OF_ACTION.get(action_name(action), "delegated")
        totals[kind] = totals.get(kind, 0) + (action_deposit(action) or 0)
    return [(kind, total) for kind, total in totals.items() if total]


def _unknown_values(values: ReceiptValues) -> list[str]:
    """Describe which values are unknown and therefore not counted."""
    rows = range(len(values.tree))
    # Documents without any bodies have a note of their own.
    no_actions = [at for at in rows if values.deposits[at] is None and values.has_bodies]
    not_executed = [at for at in rows if not values.was_executed(at)]
    no_reward = [at for at in rows if values.rewards[at] is None]
    notes = (
        ("deposits that the document does not contain are not counted", no_actions),
        ("gas bought for receipts that have not run is not counted", not_executed),
        ("contract rewards that could not be computed are not counted", no_reward),
    )
    ids = values.tree.ids
    return [
        f"{note}: {first_names(ids[positions].tolist())}" for note, positions in notes if positions
    ]


def transfer_columns(tree: Tree, transfers: list[Transfer]) -> dict[str, Any]:
    """Compute the columns of the transfers frame."""
    fields = ("kind", "asset", "sender_id", "receiver_id", "amount", "memo", "evidence")
    return receipt_key_columns(tree, [transfer.at for transfer in transfers]) | {
        name: [getattr(transfer, name) for transfer in transfers] for name in fields
    }
