"""The bodies of receipts as columns: sender, receiver, actions, and the data that links them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from pandas import NA

from ledgerkit.api.models.actions import (
    Action,
    Deposit,
    FunctionCall,
    action_name,
    deposit_texts,
    function_calls,
    total_gas,
)
from ledgerkit.api.models.transactions import PIECE, ActionReceipt, DecodedList, ReceiptBody
from ledgerkit.tracing.action_fields import decode_all_args, parse_amount
from ledgerkit.tracing.tree.lists import EMPTY_LIST, JoinedLists, check_gas, parse_amounts

if TYPE_CHECKING:
    from ledgerkit.api.models.actions import Actions
    from ledgerkit.api.models.transactions import Receipt, TxResult
    from ledgerkit.tracing.tree.outcomes import Texts

_NO_BODY = ReceiptBody()
_NO_ACTIONS = ActionReceipt()
_NO_CALL = FunctionCall(gas=0)
_NO_DEPOSIT = Deposit("0")
_OTHER = Action()  # neither a call nor a transfer
_NAMES: dict[Any, str] = {FunctionCall: "FunctionCall", Deposit: "Transfer"}
_COLUMNS = (
    "predecessor_id",
    "receiver_id",
    "signer_id",
    "actions",
    "method_name",
    "args",
    "deposit",
    "gas_attached",
    "input_data_ids",
    "output_data_receivers",
)


class Bodies:
    """The bodies of receipts, in the order of the results, without data receipts."""

    def __init__(self, results: Sequence[TxResult], texts: Texts) -> None:
        self._texts = texts
        self.lists = JoinedLists()
        self.ids: list[str] = []
        self.inputs: list[tuple[int, str]] = []  # row and data_id
        self.outputs: list[tuple[int, str]] = []
        self.columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        pending: list[Receipt] = []
        for result in results:
            bodies = result.bodies or DecodedList(())
            self.lists.add(bodies.path, len(self.ids) + len(pending))
            for piece in bodies.pieces():
                pending += [r for r in piece if r.receipt is None or r.receipt.data is UNSET]
                if len(pending) >= PIECE:
                    self._add(pending)
                    pending = []
        self._add(pending)

    def add_inferred(self, bodies: Sequence[Receipt]) -> None:
        """Append bodies that were inferred because the results lack them."""
        self.lists.add("$..transaction", len(self.ids))
        self._add(bodies)

    def _add(self, bodies: Sequence[Receipt]) -> None:
        start = len(self.ids)
        contents = [(body.receipt or _NO_BODY).action or _NO_ACTIONS for body in bodies]
        inputs = [content.input_data_ids or EMPTY_LIST for content in contents]
        outputs = [content.output_data_receivers or EMPTY_LIST for content in contents]
        self.ids += [body.receipt_id for body in bodies]
        self.inputs += [(row, data_id) for row, ids in enumerate(inputs, start) for data_id in ids]
        self.outputs += [
            (row, receiver.get("data_id", ""))
            for row, receivers in enumerate(outputs, start)
            for receiver in receivers
        ]
        accounts = (
            [body.predecessor_id for body in bodies],
            [body.receiver_id for body in bodies],
            [content.signer_id for content in contents],
        )
        shared = [list(map(self._texts.setdefault, ids, ids)) for ids in accounts]
        actions = self._action_values([content.actions for content in contents], bodies)
        for name, values in zip(_COLUMNS, (*shared, *actions, inputs, outputs), strict=True):
            self.columns[name].extend(values)

    def _action_values(
        self, actions: Sequence[Actions | None], bodies: Sequence[Receipt]
    ) -> tuple[Sequence[Any], ...]:
        """Return the columns of actions: single calls and transfers at once, others one by one."""
        single = [
            listed[0] if listed and len(listed) == 1 and type(listed[0]) is Action else _OTHER
            for listed in actions
        ]
        calls = [action.function_call or _NO_CALL for action in single]
        simple = [action.function_call or action.transfer or _NO_DEPOSIT for action in single]
        start = len(self.ids) - len(bodies)
        columns: tuple[list[Any], ...] = (
            [_NAMES[type(action)] for action in simple],
            [call.method_name for call in calls],
            decode_all_args([call.args for call in calls]),
            [action.deposit for action in simple],
            [call.gas for call in calls],
        )

        def path_of(index: int) -> str:
            return f"{self.lists.path(start + index)}.receipt.Action"

        for index, action in enumerate(simple):
            if action is _NO_DEPOSIT:
                fields = _action_fields(actions[index], bodies[index], path_of(index))
                for column, value in zip(columns, fields, strict=True):
                    column[index] = value
        *others, deposits, gas = columns
        return *others, parse_amounts(deposits, path_of), check_gas(gas, path_of)


def _action_fields(actions: Actions | None, receipt: Receipt, path: str) -> tuple[Any, ...]:
    if actions is None:
        body = receipt.receipt or _NO_BODY
        return body.kind if body.action is None else None, None, NA, None, None
    calls = list(function_calls(actions))
    args = decode_all_args([call.args for call in calls])
    return (
        "+".join(map(action_name, actions)),
        "+".join([call.method_name or "" for call in calls]) if calls else None,
        NA if not args else args[0] if len(args) == 1 else args,
        _total_deposit(actions, path),
        total_gas(calls),
    )


def _total_deposit(actions: Actions, path: str) -> str | None:
    texts = deposit_texts(actions)
    if texts is None or len(texts) == 1:
        return None if texts is None else texts[0]
    return str(sum(parse_amount(text, path) for text in texts))
