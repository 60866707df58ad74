"""
The changes of balances that a transaction made, each in the block in which it happened.

`Trace.transfers` says who paid whom. Here each transfer is two changes, and they may be blocks
apart: a deposit leaves the payer when its receipt is created, and arrives when the receipt runs.
Gas is bought as a whole when the transaction is included, and what was not burnt comes back with
refunds; `Trace.transfers` has the difference, as the fee.
"""

# Source: nearcore, `runtime/runtime/src/lib.rs`: `process_transaction` takes deposits and all gas
# from the signer, `apply_action_receipt` the deposits of new receipts from the account that creates
# them; a refund is added when its receipt runs.

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.tracing.actions import SUCCEEDED
from ledgerkit.tracing.transfers import NEAR, gas_key_asset
from ledgerkit.tracing.tree.frame_columns import SYSTEM

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ledgerkit.tracing.gas import ReceiptValues
    from ledgerkit.tracing.token_events import Transfer

    Place = tuple[int | None, int | None]  # height and time in ns; None: unknown

_AT_RUN = frozenset({"contract_reward", "burnt", "token", "nft", "multi_token"})


class BalanceChange(NamedTuple):
    """A change of one balance; `order` is that of the receipt (-1: the transaction itself)."""

    height: int | None
    time_ns: int | None
    order: int
    receipt_id: str | None
    method_name: str | None
    actions: str | None  # names joined by +
    kind: str  # as in `Trace.transfers`; also refund_gas
    asset: str
    account_id: str
    counterparty_id: str | None
    change: int | None  # None: unknown
    memo: str | None


def balance_timeline(
    values: ReceiptValues, transfers: Iterable[Transfer], included: Place
) -> list[BalanceChange]:
    """Place the changes of balances; `included` is the transaction's own block."""
    timeline = _Timeline(values, included)
    changes = [*timeline.gas(), *timeline.unknown_rewards()]
    for transfer in transfers:
        changes += timeline.changes(transfer)
    return changes


class _Timeline:
    """The blocks in which the receipts of a transaction were created and ran."""

    def __init__(self, values: ReceiptValues, included: Place) -> None:
        listed = values.forest.listed
        names = map(listed, ("receipt_id", "method_name", "actions"))
        places = map(listed, ("block_height", "time"))
        self._values = values
        self._names = [*zip(*names, strict=True), (None,) * 3]
        self._ran: list[Place] = [*zip(*places, strict=True), included]

    def gas(self) -> Iterator[BalanceChange]:
        """List the gas that the signer bought, and what came back of it."""
        values = self._values
        signer_id, fee = values.forest.conversions[0].signer_id, values.transaction_fee()
        refunds = [*self._gas_refunds()]
        if signer_id is not None and fee != 0:
            amounts = [fee, *(change.change for change in refunds)]
            bought = None if None in amounts else -sum(filter(None, amounts))
            place = self._ran[-1]
            yield self._change(
                place, -1, "fee", self._gas_asset, ends=(signer_id, None), change=bought
            )
            yield from refunds

    def unknown_rewards(self) -> Iterator[BalanceChange]:
        """List the contract rewards that could not be computed, which `Trace.transfers` lacks."""
        for at, reward in enumerate(self._values.rewards):
            receiver_id = self._values.receivers[at]
            if reward is None and receiver_id is not None:
                ends = receiver_id, None
                yield self._change(
                    self._ran[at], at, "contract_reward", NEAR, ends=ends, change=None
                )

    @property
    def _gas_asset(self) -> str:
        [key] = self._values.gas_keys
        return NEAR if key is None else gas_key_asset(key)

    def _gas_refunds(self) -> Iterator[BalanceChange]:
        """List the refunds of gas to the balance that paid for it."""
        values = self._values
        for at, kind in enumerate(values.refund_kinds):
            receiver_id, amount = values.receivers[at], values.deposits[at]
            is_paid = values.status[at] in SUCCEEDED and kind == "refund_gas"
            if is_paid and receiver_id is not None and not values.is_refund_to_account(at):
                asset = self._gas_asset
                ends = receiver_id, None
                yield self._change(self._ran[at], at, "refund_gas", asset, ends=ends, change=amount)

    def _change(
        self,
        place: Place,
        at: int,
        kind: str,
        asset: str,
        *,
        ends: tuple[str, str | None],  # the account, and its counterparty
        change: int | None,
        memo: str | None = None,
    ) -> BalanceChange:
        receipt_id, method_name, actions = self._names[at]
        return BalanceChange(
            *place, at, receipt_id, method_name, actions, kind, asset, *ends, change, memo
        )

    def changes(self, transfer: Transfer) -> Iterator[BalanceChange]:
        at, kind, asset, sender_id, receiver_id, amount, memo, _ = transfer
        if kind == "fee":
            return
        if kind == "undelivered" and self._values.refund_kinds[at] == "beneficiary":
            kind = "beneficiary"  # who does not exist
        if sender_id is not None and sender_id != SYSTEM:
            place = self._ran[at] if self._is_at_run(transfer) else self._created(at)
            lost = None if amount is None else -amount
            ends = sender_id, receiver_id
            yield self._change(place, at, kind, asset, ends=ends, change=lost, memo=memo)
        if receiver_id is not None and receiver_id != SYSTEM:
            place, ends = self._ran[at], (receiver_id, sender_id)
            yield self._change(place, at, kind, asset, ends=ends, change=amount, memo=memo)

    @staticmethod
    def _is_at_run(transfer: Transfer) -> bool:
        """Return True if a transfer leaves its sender when the receipt runs."""
        return transfer.kind in _AT_RUN or transfer.asset != NEAR

    def _created(self, at: int) -> Place:
        return self._ran[self._values.parents[at]] if at >= 0 else self._ran[-1]
