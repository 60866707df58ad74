"""The bodies of receipts as columns: sender, receiver, actions, and the data that links them."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import UNSET
from pandas import NA

from ledgerkit.api.models.actions import (
    Action,
    Deposit,
    FunctionCall,
    GasKeyDeposit,
    action_name,
    deposit_texts,
    function_calls,
    total_gas,
)
from ledgerkit.api.models.transactions import ActionReceipt, ReceiptBody
from ledgerkit.tracing.action_fields import decode_all_args, parse_amount
from ledgerkit.tracing.tree.column_builders import (
    EMPTY_LIST,
    AmountColumn,
    IntegerColumn,
    ObjectColumn,
    share_texts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ledgerkit.api.models.actions import Actions
    from ledgerkit.api.models.transactions import Receipt
    from ledgerkit.tracing.tree.column_builders import PiecePath, Texts

_NO_BODY = ReceiptBody()
_NO_ACTIONS = ActionReceipt()
_NO_CALL = FunctionCall(gas=0)
_NEITHER = GasKeyDeposit(deposit="0")  # where an action is neither a call nor a transfer
_NAMES: dict[Any, str] = {FunctionCall: "FunctionCall", Deposit: "Transfer"}
_DISTRIBUTION = "GlobalContractDistribution"


class DataIds:
    """The data_ids of bodies, one after another, and how many each body has."""

    def __init__(self) -> None:
        """Start without ids."""
        self.ids: list[str] = []
        self.counts: list[int] = []

    def add(self, ids: Iterable[str], lists: Iterable[Sequence[object]]) -> None:
        """Append the ids of bodies, and the lengths of the lists that they come from."""
        self.ids += ids
        self.counts += map(len, lists)


class Bodies:
    """
    The bodies of receipts, in the order in which they are added.

    Parameters
    ----------
    texts
        Texts to share memory with.
    expected_ids
        Ids to share memory with, where the bodies come in the same order.
    """

    def __init__(self, texts: Texts, expected_ids: Sequence[str]) -> None:
        self._texts, self._expected_ids = texts, expected_ids
        self.ids: list[str] = []
        self.inputs, self.outputs = DataIds(), DataIds()
        self.predecessor_id, self.receiver_id = ObjectColumn(), ObjectColumn()
        self.signer_id = ObjectColumn()
        self.actions, self.method_name, self.args = ObjectColumn(), ObjectColumn(), ObjectColumn(NA)
        self.deposit = AmountColumn("receipt.Action")
        self.gas_attached = IntegerColumn("receipt.Action", np.uint64)
        self.input_data_ids, self.output_data_receivers = ObjectColumn(), ObjectColumn()

    def add(self, piece: Sequence[Receipt], place: PiecePath) -> None:
        """Append the bodies of a piece at `place`; data receipts are skipped."""
        receipts = [r for r in piece if r.receipt is None or r.receipt.data is UNSET]
        if not receipts:
            return
        bodies = [receipt.receipt or _NO_BODY for receipt in receipts]
        contents = [body.action or _NO_ACTIONS for body in bodies]
        ids, start = [receipt.receipt_id for receipt in receipts], len(self.ids)
        expected = self._expected_ids[start : start + len(ids)]
        self.ids += expected if expected == ids else ids
        inputs = [content.input_data_ids or EMPTY_LIST for content in contents]
        outputs = [content.output_data_receivers or EMPTY_LIST for content in contents]
        self.inputs.add(chain.from_iterable(filter(None, inputs)), inputs)
        receivers = list(chain.from_iterable(filter(None, outputs)))
        self.outputs.add([receiver.get("data_id", "") for receiver in receivers], outputs)
        self.input_data_ids.add(inputs)
        self.output_data_receivers.add(outputs)
        self.predecessor_id.add(self._share([receipt.predecessor_id for receipt in receipts]))
        self.receiver_id.add(self._share([receipt.receiver_id for receipt in receipts]))
        self.signer_id.add(self._share([content.signer_id for content in contents]))
        self._add_actions([content.actions for content in contents], bodies, place)

    def _add_actions(
        self, actions: Sequence[Any], bodies: Sequence[ReceiptBody], place: PiecePath
    ) -> None:
        """Append the actions: single calls and transfers all at once, others one by one."""
        simple = list(map(_simple_action, actions))
        calls = [action if isinstance(action, FunctionCall) else _NO_CALL for action in simple]
        columns: list[list[Any]] = [
            [_NAMES.get(type(action)) for action in simple],
            self._share([call.method_name for call in calls]),
            decode_all_args([call.args for call in calls]),
            [action.deposit for action in simple],
            [call.gas for call in calls],
        ]
        for at, action in enumerate(simple):
            if action is _NEITHER:
                fields = _action_fields(actions[at], bodies[at], place, at)
                for column, value in zip(columns, fields, strict=True):
                    column[at] = value
        names, methods, args, deposits, gas = columns
        self.actions.add(names)
        self.method_name.add(methods)
        self.args.add(args)
        self.deposit.add(deposits, place)
        self.gas_attached.add(gas, place)

    def _share(self, texts: Sequence[str | None]) -> list[str | None]:
        """Replace texts by equal ones of other receipts."""
        return share_texts(texts, self._texts)


def _simple_action(actions: Actions | None) -> FunctionCall | Deposit | GasKeyDeposit:
    """Return the call or the transfer of a receipt with one action; otherwise `_NEITHER`."""
    if not actions or len(actions) > 1 or not isinstance(actions[0], Action):
        return _NEITHER
    return actions[0].function_call or actions[0].transfer or _NEITHER


def _action_fields(
    actions: Actions | None, body: ReceiptBody, place: PiecePath, at: int
) -> tuple[Any, ...]:
    """Return names, methods, arguments, deposit (as text) and gas of a receipt's actions."""
    if actions is None:
        is_distribution = body.global_contract_distribution is not UNSET
        return _DISTRIBUTION if is_distribution else None, None, NA, None, None
    calls = list(function_calls(actions))
    args = decode_all_args([call.args for call in calls])
    return (
        "+".join(map(action_name, actions)),
        "+".join([call.method_name or "" for call in calls]) if calls else None,
        NA if not args else args[0] if len(args) == 1 else args,
        _total_deposit(actions, place, at),
        total_gas(calls),
    )


def _total_deposit(actions: Actions, place: PiecePath, at: int) -> str | None:
    texts = deposit_texts(actions)
    if texts is None or len(texts) == 1:
        return None if texts is None else texts[0]
    path = place.member("receipt.Action", at)
    return str(sum(parse_amount(text, path) for text in texts))
