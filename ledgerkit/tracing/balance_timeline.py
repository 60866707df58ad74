"""
The balance changes that a transaction made, with their blocks.

`Trace.transfers` says who paid whom. Here a transfer is two changes, which may be blocks apart:
a deposit leaves the payer when its receipt is created, and arrives when the receipt runs. All gas
is bought when the transaction is included, and refunds return what was not burnt; `Trace.transfers`
lists the difference as the fee. Changes of stakes are read from the log lines of staking pools.
"""

# Source: nearcore, `runtime/runtime/src/lib.rs`: `process_transaction` takes deposits and all gas
# from the signer. `apply_action_receipt` takes the deposits of new receipts from the account that
# creates them. A refund is added when its receipt runs.

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.api.models.actions import function_calls
from ledgerkit.tracing.actions import SUCCEEDED
from ledgerkit.tracing.amount_texts import IN_INTENTS, NEAR
from ledgerkit.tracing.intent_events import TRANSFER
from ledgerkit.tracing.intents import SWAP, IntentMove
from ledgerkit.tracing.transfers import gas_key_asset
from ledgerkit.tracing.tree.frame_columns import SYSTEM

if TYPE_CHECKING:
    from ledgerkit.tracing.gas import ReceiptValues
    from ledgerkit.tracing.token_events import Transfer

    BlockTime = tuple[int | None, int | None]  # height and time in ns; None: unknown

_AT_RUN = frozenset({"contract_reward", "burnt", "token", "nft", "multi_token"})


class BalanceChange(NamedTuple):
    """A change of one balance; `order` is the receipt's (-1: the transaction itself)."""

    height: int | None
    time_ns: int | None
    order: int
    receipt_id: str | None
    method_name: str | None
    actions: str | None  # names joined by +
    kind: str  # as in `Trace.transfers`; also refund_gas, swap and two of intents.near
    asset: str
    account_id: str
    counterparty_id: str | None
    change: int | None  # None: unknown
    memo: str | None


def balance_timeline(
    values: ReceiptValues, transfers: Iterable[Transfer], included: BlockTime
) -> list[BalanceChange]:
    """List the balance changes with their blocks; `included` is the transaction's block."""
    timeline = _Timeline(values, included)
    changes = [*timeline.gas(), *timeline.unknown_rewards()]
    for transfer in transfers:
        changes += timeline.changes(transfer)
    return changes


class _Timeline:
    """The blocks in which the receipts of a transaction were created and ran."""

    def __init__(self, values: ReceiptValues, included: BlockTime) -> None:
        columns = values.forest.columns
        names = columns["receipt_id"], columns["method_name"], columns["actions"]
        blocks = columns["block_height"], columns["time"]
        self._values = values
        self._names = [*zip(*names, strict=True), (None,) * 3]
        self._blocks: list[BlockTime] = [*zip(*blocks, strict=True), included]

    def gas(self) -> Iterator[BalanceChange]:
        """List the gas that the signer bought, and its refunds."""
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
        for position, reward in enumerate(self._values.rewards):
            receiver_id = self._values.receivers[position]
            if reward is None and receiver_id is not None:
                ends = receiver_id, None
                yield self._change(position, "contract_reward", NEAR, ends=ends, change=None)

    @property
    def _gas_asset(self) -> str:
        [key] = self._values.gas_keys
        return NEAR if key is None else gas_key_asset(key)

    def _gas_refunds(self) -> Iterator[BalanceChange]:
        """List the refunds of gas to the balance that paid for it."""
        values = self._values
        for position, kind in enumerate(values.refund_kinds):
            receiver_id, amount = values.receivers[position], values.deposits[position]
            is_paid = values.status[position] in SUCCEEDED and kind == "refund_gas"
            if is_paid and receiver_id is not None and not values.is_refund_to_account(position):
                ends, asset = (receiver_id, None), self._gas_asset
                yield self._change(position, "refund_gas", asset, ends=ends, change=amount)

    def _change(
        self,
        position: int,
        kind: str,
        asset: str,
        *,
        ends: tuple[str, str | None],  # the account, and its counterparty
        change: int | None,
        memo: str | None = None,
        block: BlockTime | None = None,  # None: the block in which the receipt ran
    ) -> BalanceChange:
        receipt_id, method_name, actions = self._names[position]
        names, block = (receipt_id, method_name, actions), block or self._blocks[position]
        return BalanceChange(*block, position, *names, kind, asset, *ends, change, memo)

    def changes(self, transfer: Transfer) -> Iterator[BalanceChange]:
        position, kind, asset, sender_id, receiver_id, amount, memo, _ = transfer
        if kind == "fee":
            return
        if kind == "undelivered" and self._values.refund_kinds[position] == "beneficiary":
            kind = "beneficiary"  # the account does not exist
        if sender_id is not None and sender_id != SYSTEM:
            is_at_run = transfer.kind in _AT_RUN or asset != NEAR
            lost = None if amount is None else -amount
            options: Any = {"ends": (sender_id, receiver_id), "change": lost, "memo": memo}
            parent = position if is_at_run or position < 0 else self._values.parents[position]
            yield self._change(position, kind, asset, block=self._blocks[parent], **options)
        if receiver_id is not None and receiver_id != SYSTEM:
            ends = receiver_id, sender_id
            yield self._change(position, kind, asset, ends=ends, change=amount, memo=memo)


# Intents ----------------------------------------------------------------------------------

_INTENT_KINDS = {
    "deposit": "intents_deposit",
    "withdrawal": "intents_withdrawal",
    "storage_deposit": "intents_withdrawal",
    "refund": "refund_deposit",
}


def with_intents(changes: list[BalanceChange], moves: list[IntentMove]) -> list[BalanceChange]:
    """Name swaps, deposits and withdrawals among the changes of tokens in intents.near."""
    if not moves:
        return changes
    swapped, sent = set[tuple[int, str | None, str, bool]](), set[tuple[int, frozenset[Any], str]]()
    crossed: dict[tuple[int, str | None, str, int], list[IntentMove]] = {}
    for move in moves:
        given, received = move.given_asset or "", move.received_asset or ""
        if move.kind == SWAP:
            swapped |= {
                (move.position, move.account_id, given, True),
                (move.position, move.account_id, received, False),
            }
        elif move.kind == TRANSFER:
            sent.add((move.position, frozenset((move.account_id, move.counterparty_id)), given))
        elif move.kind in _INTENT_KINDS:
            change = (move.received or 0) - (move.given or 0)
            key = move.position, move.account_id, given or received, change
            crossed.setdefault(key, []).append(move)

    def name(change: BalanceChange) -> BalanceChange:
        if not change.asset.startswith(IN_INTENTS) or change.change is None:
            return change
        token_id, position = change.asset.removeprefix(IN_INTENTS), change.order
        matches = crossed.get((position, change.account_id, token_id, change.change))
        if change.counterparty_id is None and matches:
            move = matches.pop(0)
            kind, counterparty_id = _INTENT_KINDS[move.kind], move.counterparty_id
            return change._replace(kind=kind, counterparty_id=counterparty_id)
        parties = frozenset((change.account_id, change.counterparty_id))
        is_swap = (position, change.account_id, token_id, change.change < 0) in swapped
        if is_swap and (position, parties, token_id) not in sent:
            return change._replace(kind=SWAP)
        return change

    return list(map(name, changes))


# Stakes with pools ------------------------------------------------------------------------

# Source: near/core-contracts, `staking-pool/src/internal.rs`, logs each change of an account in
# this form, and so does `staking-farm`. A deposit's line has the attached deposit, and a
# withdrawal's line the amount of the transfer. Nearblocks/nearblocks reads the same lines.
POOL_METHODS = re.compile(r"(deposit|deposit_and_stake|(un)?stake(_all)?|withdraw(_all)?)")
_LINE = re.compile(r"@(\S+) (deposited|staking|unstaking|withdrawing) (\d{1,39})\.", re.ASCII)
# Staking and unstaking move tokens within a pool, so the balance with the pool does not change.
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
    columns = values.forest.columns
    heights, times, ids = columns["block_height"], columns["time"], columns["receipt_id"]
    methods = columns["method_name"]
    changes: list[BalanceChange] = []
    for position, pool_id in enumerate(values.receivers):
        for account_id, kind, change in _changes_in(values, position):
            block, ends = (heights[position], times[position]), (account_id, pool_id)
            names = ids[position], methods[position], "FunctionCall", kind, f"stake:{pool_id}"
            changes.append(BalanceChange(*block, position, *names, *ends, change, None))
    return changes


def _changes_in(values: ReceiptValues, position: int) -> Iterator[tuple[str, str, int]]:
    """Yield account, kind and signed amount of the changes in one receipt."""
    if values.status[position] not in SUCCEEDED or values.receivers[position] is None:
        return
    calls = function_calls(values.actions[position] or ())
    if not any(POOL_METHODS.fullmatch(call.method_name or "") for call in calls):
        return
    lines = [*read_pool_lines(values.forest.columns["logs"][position])]
    depositors = {account_id for account_id, verb, _ in lines if verb == "deposited"}
    for account_id, verb, amount in lines:
        kind, sign = _KINDS[verb]
        if verb != "staking" or account_id not in depositors:
            yield account_id, kind, sign * amount
