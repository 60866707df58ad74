"""
The changes of balances that a transaction made, each in the block in which it happened.

Those with staking pools are read from the pools' own log lines.

`Trace.transfers` says who paid whom. Here each transfer is two changes, and they may be blocks
apart: a deposit leaves the payer when its receipt is created, and arrives when the receipt runs.
Gas is bought as a whole when the transaction is included, and what was not burnt comes back with
refunds; `Trace.transfers` has the difference, as the fee.
"""

# Source: nearcore, `runtime/runtime/src/lib.rs`: `process_transaction` takes deposits and all gas
# from the signer, `apply_action_receipt` the deposits of new receipts from the account that creates
# them; a refund is added when its receipt runs.

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.api.models.actions import function_calls
from ledgerkit.tracing.actions import SUCCEEDED
from ledgerkit.tracing.amount_texts import NEAR
from ledgerkit.tracing.transfers import gas_key_asset
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
            yield self._change(-1, "fee", self._gas_asset, ends=(signer_id, None), change=bought)
            yield from refunds

    def unknown_rewards(self) -> Iterator[BalanceChange]:
        """List the contract rewards that could not be computed, which `Trace.transfers` lacks."""
        for at, reward in enumerate(self._values.rewards):
            receiver_id = self._values.receivers[at]
            if reward is None and receiver_id is not None:
                ends = receiver_id, None
                yield self._change(at, "contract_reward", NEAR, ends=ends, change=None)

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
                ends = receiver_id, None
                yield self._change(at, "refund_gas", self._gas_asset, ends=ends, change=amount)

    def _change(
        self,
        at: int,
        kind: str,
        asset: str,
        *,
        ends: tuple[str, str | None],  # the account, and its counterparty
        change: int | None,
        memo: str | None = None,
        place: Place | None = None,  # if not that in which the receipt ran
    ) -> BalanceChange:
        receipt_id, method_name, actions = self._names[at]
        names, place = (receipt_id, method_name, actions), place or self._ran[at]
        return BalanceChange(*place, at, *names, kind, asset, *ends, change, memo)

    def changes(self, transfer: Transfer) -> Iterator[BalanceChange]:
        at, kind, asset, sender_id, receiver_id, amount, memo, _ = transfer
        if kind == "fee":
            return
        if kind == "undelivered" and self._values.refund_kinds[at] == "beneficiary":
            kind = "beneficiary"  # who does not exist
        if sender_id is not None and sender_id != SYSTEM:
            is_at_run = transfer.kind in _AT_RUN or asset != NEAR
            lost = None if amount is None else -amount
            options: Any = {"ends": (sender_id, receiver_id), "change": lost, "memo": memo}
            place = None if is_at_run or at < 0 else self._ran[self._values.parents[at]]
            yield self._change(at, kind, asset, place=place, **options)
        if receiver_id is not None and receiver_id != SYSTEM:
            ends = receiver_id, sender_id
            yield self._change(at, kind, asset, ends=ends, change=amount, memo=memo)


# Stakes with pools ------------------------------------------------------------------------

# Source: near/core-contracts, `staking-pool/src/internal.rs`, logs each change of an account in
# this form, and so does `staking-farm`; what is deposited is the attached deposit, and what is
# withdrawn is the amount of the transfer. Nearblocks/nearblocks reads the same lines for its table
# of staking events.
POOL_METHODS = re.compile(r"(deposit|deposit_and_stake|(un)?stake(_all)?|withdraw(_all)?)")
_LINE = re.compile(r"@(\S+) (deposited|staking|unstaking|withdrawing) (\d{1,39})\.", re.ASCII)
# What staking and unstaking move within a pool is no change of the balance with it.
_KINDS = {
    "deposited": ("stake", 1),
    "staking": ("stake", 0),
    "unstaking": ("unstake", 0),
    "withdrawing": ("withdraw", -1),
}


def read_pool_lines(lines: Iterable[str]) -> Iterator[tuple[str, str, int]]:
    """Yield account, verb (such as ``deposited``) and amount of a pool's log lines."""
    for match in filter(None, map(_LINE.match, lines)):
        yield match[1], match[2], int(match[3])


def stake_changes(values: ReceiptValues) -> list[BalanceChange]:
    """List the changes that contracts with a pool's methods logged, in the order of receipts."""
    columns = ("block_height", "time", "receipt_id", "method_name")
    heights, times, ids, methods = map(values.forest.listed, columns)
    changes: list[BalanceChange] = []
    for at, pool_id in enumerate(values.receivers):
        for account_id, kind, change in _changes_in(values, at):
            place, names = (heights[at], times[at]), (ids[at], methods[at], "FunctionCall")
            ends = account_id, pool_id
            asset = f"stake:{pool_id}"
            changes.append(BalanceChange(*place, at, *names, kind, asset, *ends, change, None))
    return changes


def _changes_in(values: ReceiptValues, at: int) -> Iterator[tuple[str, str, int]]:
    """Yield account, kind and signed amount of the changes in one receipt."""
    if values.status[at] not in SUCCEEDED or values.receivers[at] is None:
        return
    calls = function_calls(values.actions[at] or ())
    if not any(POOL_METHODS.fullmatch(call.method_name or "") for call in calls):
        return
    lines = [*read_pool_lines(values.forest.columns["logs"][at])]
    depositors = {account_id for account_id, verb, _ in lines if verb == "deposited"}
    for account_id, verb, amount in lines:
        kind, sign = _KINDS[verb]
        if verb != "staking" or account_id not in depositors:
            yield account_id, kind, sign * amount
