"""Transfers of NEAR and tokens, in the order of receipts, and their sums by account."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pandas import NA

from ledgerkit.api.models.actions import Actions, action_name, kind_of
from ledgerkit.api.models.transactions import DISTRIBUTION
from ledgerkit.frames.amounts import difference
from ledgerkit.protocol.actions import KINDS_BY_NAME
from ledgerkit.tracing.action_fields import action_deposit, parse_amount
from ledgerkit.tracing.actions import SUCCEEDED, Event
from ledgerkit.tracing.amount_texts import GAS_KEY, NEAR, plain
from ledgerkit.tracing.burnt_tokens import KEY_DELETIONS
from ledgerkit.tracing.gas import CALLS, NO_NAMES, TRANSFERS, UNKNOWN, ReceiptValues, deleted_keys
from ledgerkit.tracing.token_events import Transfer, token_transfers
from ledgerkit.tracing.tree.frame_columns import SYSTEM
from ledgerkit.tracing.tree.linking import first_names

# The kind of transfer of receipts with these actions only.
_KIND_OF_ALL = {NO_NAMES: "", TRANSFERS: "transfer", CALLS: "deposit"}


def list_transfers(
    values: ReceiptValues, events: Sequence[Event]
) -> tuple[list[Transfer], tuple[str, ...]]:
    """Return all transfers in the order of receipts, and notes on tokens that are not counted."""
    tokens, token_notes = token_transfers(values, events)
    transfers = [*_fees(values), *_near_transfers(values), *tokens]

    def order(transfer: Transfer) -> float:
        # A transaction's own transfers precede those of its first receipt.
        position = transfer.position
        return values.starts[~position] - 0.5 if position < 0 else position

    return sorted(transfers, key=order), token_notes


def _fees(values: ReceiptValues) -> Iterator[Transfer]:
    for tree, conversion in enumerate(values.forest.conversions):
        signer_id, fee = conversion.signer_id, values.transaction_fee(tree)
        if signer_id is not None and fee != 0:
            gas_key = values.gas_keys[tree]
            asset = NEAR if gas_key is None else gas_key_asset(gas_key)
            yield Transfer(~tree, "fee", asset, signer_id, SYSTEM, fee)


def _near_transfers(values: ReceiptValues) -> Iterator[Transfer]:
    rows = zip(values.status, values.names, values.deposits, values.rewards, strict=True)
    for position, (status, names, amount, reward) in enumerate(rows):
        if status not in SUCCEEDED:
            payer = values.payer(position)
            if payer is not None and payer != SYSTEM and amount:
                yield Transfer(position, "undelivered", NEAR, payer, SYSTEM, amount)
        elif amount != 0 or names not in _KIND_OF_ALL:
            yield from _delivered_transfers(values, position)
        if reward:
            receiver_id = values.receivers[position]
            yield Transfer(position, "contract_reward", NEAR, SYSTEM, receiver_id, reward)


def _delivered_transfers(values: ReceiptValues, position: int) -> Iterator[Transfer]:
    refund_kind = values.refund_kinds[position]
    if refund_kind == "refund_gas" and not values.is_refund_to_account(position):
        return  # the fee is less refunds
    payer, receiver_id = values.payer(position), values.receivers[position]
    total, simple_kind = values.deposits[position], _KIND_OF_ALL.get(values.names[position])
    if simple_kind is not None and total is not None:  # most receipts
        yield Transfer(position, refund_kind or simple_kind, NEAR, payer, receiver_id, total)
        return
    actions = values.actions[position] or ()
    for kind, amount in _deposits_by_kind(actions):
        # A deposit to a gas key leaves the account here, and arrives in the rows below.
        target_id = SYSTEM if kind == "gas_key" else receiver_id
        yield Transfer(position, refund_kind or kind, NEAR, payer, target_id, amount)
    yield from _gas_key_transfers(position, actions, receiver_id)
    burnt = values.balance_burnt[position]
    if burnt:
        yield Transfer(position, "burnt", _asset_burnt(actions), receiver_id, SYSTEM, burnt)


def _deposits_by_kind(actions: Actions) -> list[tuple[str, int]]:
    totals: dict[str, int] = {}
    for action in actions:
        declared = kind_of(action)
        kind = "deposit" if declared is None else declared.transfer
        totals[kind] = totals.get(kind, 0) + (action_deposit(action) or 0)
    return [(kind, total) for kind, total in totals.items() if total]


def _gas_key_transfers(row: int, actions: Actions, account_id: str | None) -> Iterator[Transfer]:
    for action in actions:
        if isinstance(action, str):
            continue
        added, withdrawn = action.transfer_to_gas_key, action.withdraw_from_gas_key
        if added is not None and added.deposit is not None:
            amount = parse_amount(added.deposit, "$..TransferToGasKey.deposit")
            asset = gas_key_asset(added.public_key)
            yield Transfer(row, "gas_key", asset, SYSTEM, account_id, amount)
        if withdrawn is not None and withdrawn.amount is not None:
            amount = parse_amount(withdrawn.amount, "$..WithdrawFromGasKey.amount")
            asset = gas_key_asset(withdrawn.public_key)
            yield Transfer(row, "gas_key", asset, account_id, SYSTEM, amount)
            yield Transfer(row, "gas_key", NEAR, SYSTEM, account_id, amount)


def gas_key_asset(public_key: str | None) -> str:
    """Return the name of the NEAR that a gas key holds."""
    return f"{GAS_KEY}:{public_key}" if public_key else GAS_KEY


def _asset_burnt(actions: Actions) -> str:
    """Return the asset that actions burnt: that of a deleted gas key, or NEAR."""
    names = set(map(action_name, actions))
    if names.isdisjoint(KEY_DELETIONS):
        return NEAR
    keys = deleted_keys(actions)
    return gas_key_asset(keys[0] if len(keys) == 1 and "DeleteAccount" not in names else None)


def unknown_values(values: ReceiptValues) -> list[str]:
    """Describe which values of a tree are unknown and therefore not counted."""
    executed, ids = values.was_executed, values.forest.ids
    kinds = [
        kind if actions is None else None
        for kind, actions in zip(values.forest.columns["actions"], values.actions, strict=True)
    ]
    statuses = [
        message if status == UNKNOWN else None
        for message, status in zip(
            values.forest.columns["error_message"], values.status, strict=True
        )
    ]
    # Documents without any bodies have a note of their own.
    no_deposits = _missing(values.deposits) if values.has_bodies else []
    notes = (
        (
            "deposits that the document does not contain are not counted",
            [row for row in no_deposits if kinds[row] is None],
        ),
        *(
            (f"what receipts of the kind {plain(kind)} did is not known", positions)
            for kind, positions in _positions_by_text(kinds).items()
            if kind != DISTRIBUTION
        ),
        *_positions_by_text(statuses).items(),
        (
            "beside their deposits, the effects of unknown kinds of actions are not known",
            [row for row, names in enumerate(values.names) if not names <= KINDS_BY_NAME.keys()],
        ),
        (
            "gas bought for receipts that have not run is not counted",
            [row for row, has_run in enumerate(executed) if not has_run],
        ),
        (
            "it is unknown whether these receipts succeeded, and what they did is not counted",
            [
                row
                for row, status in enumerate(values.status)
                if status == UNKNOWN and executed[row]
            ],
        ),
        (
            "the fee is unknown, because tokens_burnt is missing for",
            [row for row in _missing(values.tokens_burnt) if executed[row]],
        ),
        (
            "what these receipts took from the account that ran them or its gas keys is unknown",
            [row for row in _missing(values.balance_burnt) if executed[row]],
        ),
        (
            "contract rewards that could not be computed are not counted",
            _missing(values.rewards),
        ),
    )
    return _describe_unknown_fee(values) + [
        f"{note}: {first_names([ids[row] for row in positions])}"
        for note, positions in notes
        if positions
    ]


def _positions_by_text(texts: Sequence[str | None]) -> dict[str, list[int]]:
    positions: dict[str, list[int]] = defaultdict(list)
    for position, text in enumerate(texts):
        if text is not None:
            positions[text].append(position)
    return positions


def _missing(amounts: Sequence[int | None]) -> list[int]:
    return [row for row, amount in enumerate(amounts) if amount is None] if None in amounts else []


def _describe_unknown_fee(values: ReceiptValues) -> list[str]:
    [first], notes = values.forest.conversions, []
    if not len(values.forest):
        return []
    if first.tokens_burnt is None:
        notes.append("the fee is unknown, because tokens_burnt is missing for the transaction")
    if first.signer_id is None:
        notes.append("the fee is not counted, because the document does not contain its payer")
    return notes


def transfer_columns(transfers: Sequence[Transfer]) -> dict[str, Any]:
    """Compute the columns of the transfers frame, by position of the receipt."""
    columns = zip(*transfers, strict=True) if transfers else [()] * len(Transfer._fields)
    return dict(zip(Transfer._fields, columns, strict=True))


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
        "change": [difference(changes[row]) for row in rows],
    }
