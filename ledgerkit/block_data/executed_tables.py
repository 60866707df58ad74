"""The tables of what blocks executed: outcomes, and the actions of receipts."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pandas import NA

from ledgerkit.api.models.actions import Action, action_name, action_rows, deposit_digits
from ledgerkit.api.models.transactions import Status, decode_member
from ledgerkit.block_data import arrow_columns
from ledgerkit.tracing.action_fields import decode_args
from ledgerkit.tracing.actions import action_details
from ledgerkit.tracing.tree.outcomes import FAILURE, STATUS_NAMES, failure_texts, status_code
from ledgerkit.u128 import object_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from msgspec import Raw

    from ledgerkit.api.models.actions import FunctionCall
    from ledgerkit.api.models.block_documents import (
        BlockDocument,
        ConvertedTransaction,
        ExecutedReceipt,
        Execution,
    )
    from ledgerkit.api.models.transactions import ActionReceipt, WholeOutcome

    Texts = list[str | None]

_FAILURE = "$..outcome.status.Failure"
_NONE: tuple[tuple[Any, ...], ...] = ((),) * 6  # the columns of no actions


@dataclass(slots=True)
class Executed:
    """
    What blocks executed, a row each: the transactions of each shard's chunk, then its receipts.

    A transaction has no `receipt_ids`, and its signer sends it.
    """

    executions: list[Execution] = field(default_factory=list)
    tx_hashes: Texts = field(default_factory=list)
    receipt_ids: Texts = field(default_factory=list)
    predecessors: Texts = field(default_factory=list)
    receivers: Texts = field(default_factory=list)
    signers: Texts = field(default_factory=list)
    bodies: list[ActionReceipt | None] = field(default_factory=list)
    nonce_indices: list[int | None] = field(default_factory=list)

    @classmethod
    def of(cls, documents: Sequence[BlockDocument]) -> Executed:
        """List what the blocks of documents executed."""
        executed = cls()
        for document in documents:
            for shard in document.shards:
                if shard.chunk is not None:
                    executed._add_transactions(shard.chunk.transactions)
                executed._add_receipts(shard.receipt_execution_outcomes)
        return executed

    def _add_transactions(self, items: Sequence[ConvertedTransaction]) -> None:
        """Add the transactions of a chunk."""
        sent = [item.transaction for item in items]
        signers = [transaction.signer_id for transaction in sent]
        self.executions += [item.outcome.execution_outcome for item in items]
        self.tx_hashes += [transaction.hash for transaction in sent]
        self.receipt_ids += [None] * len(sent)
        self.predecessors += signers
        self.receivers += [transaction.receiver_id for transaction in sent]
        self.signers += signers
        self.bodies += [None] * len(sent)
        self.nonce_indices += [transaction.nonce_index for transaction in sent]

    def _add_receipts(self, pairs: Sequence[ExecutedReceipt]) -> None:
        """Add the executed receipts of a shard."""
        receipts = [pair.receipt for pair in pairs]
        bodies = [receipt.receipt.action for receipt in receipts]
        self.executions += [pair.execution_outcome for pair in pairs]
        self.tx_hashes += [pair.tx_hash for pair in pairs]
        self.receipt_ids += [receipt.receipt_id for receipt in receipts]
        self.predecessors += [receipt.predecessor_id for receipt in receipts]
        self.receivers += [receipt.receiver_id for receipt in receipts]
        self.signers += [body.signer_id if body else None for body in bodies]
        self.bodies += bodies
        self.nonce_indices += [None] * len(receipts)


def outcomes(executed: Executed) -> Any:
    """Build the table of outcomes."""
    executions, bodies = executed.executions, executed.bodies
    results = [execution.outcome for execution in executions]
    texts, lists, integers = arrow_columns.texts, arrow_columns.lists, arrow_columns.integers
    return arrow_columns.table(
        "collected_outcomes",
        {
            "block_height": integers([e.block_height for e in executions], "block_height"),
            "tx_hash": texts(executed.tx_hashes),
            "receipt_id": texts(executed.receipt_ids),
            "time": arrow_columns.times([e.block_timestamp for e in executions], "time"),
            "shard_id": integers([e.shard_id for e in executions], "shard_id"),
            "predecessor_id": texts(executed.predecessors),
            "receiver_id": texts(executed.receivers),
            "signer_id": texts(executed.signers),
            "executor_id": texts([result.executor_id for result in results]),
            **_status_columns(results),
            "receipt_ids": lists([result.receipt_ids for result in results]),
            "input_data_ids": lists([body.input_data_ids if body else None for body in bodies]),
            "output_data_receivers": texts(
                [
                    object_columns.encode(body.output_data_receivers)
                    if body and body.output_data_receivers
                    else "[]"
                    for body in bodies
                ]
            ),
            "logs": lists([result.logs for result in results]),
            "gas_burnt": arrow_columns.gas([result.gas_burnt for result in results], "gas_burnt"),
            "tokens_burnt": arrow_columns.amounts_of_near(
                [result.tokens_burnt for result in results], "tokens_burnt"
            ),
            **_profile_columns(results),
            "nonce_index": integers(executed.nonce_indices, "nonce_index"),
        },
    )


def _status_columns(results: Sequence[WholeOutcome]) -> dict[str, Any]:
    """Build the columns of how each execution ended."""
    unknown = Status()
    statuses = [r.status if type(r.status) is Status else unknown for r in results]
    codes = list(map(status_code, statuses))
    failures: dict[bytes, tuple[str, str, str]] = {}  # equal ones are decoded once
    errors: list[tuple[str | None, str | None, str | None]] = [(None, None, None)] * len(results)
    for at in [at for at, code in enumerate(codes) if code == FAILURE]:
        failure: Any = statuses[at].failure
        key = bytes(failure)
        if key not in failures:
            failures[key] = *failure_texts(failure, _FAILURE), _json_failure(failure)
        errors[at] = failures[key]
    texts, values = arrow_columns.texts, [status.success_value for status in statuses]
    return {
        "status": texts([STATUS_NAMES[code] for code in codes]),
        "error_kind": texts([kind for kind, _, _ in errors]),
        "error_message": texts([message for _, message, _ in errors]),
        "failure": texts([failure for *_, failure in errors]),
        "success_value": texts([value if isinstance(value, str) else None for value in values]),
        "success_receipt_id": texts([status.success_receipt_id for status in statuses]),
    }


def _json_failure(failure: Raw) -> str:
    """Return a failure as the JSON text of its column."""
    return object_columns.encode(decode_member(failure, _FAILURE))


def _profile_columns(results: Sequence[WholeOutcome]) -> dict[str, Any]:
    """Build the columns of each gas profile's totals: WASM instructions, host, actions."""
    metadata = [result.metadata for result in results]
    return {
        name: arrow_columns.gas([m.gas(at) if m else None for m in metadata], name)
        for at, name in enumerate(("wasm_gas", "host_gas", "action_gas"))
    }


def actions(executed: Executed) -> Any:
    """Build the table of the actions of executed receipts."""
    lists = [body.actions if body else None for body in executed.bodies]
    rows = list(action_rows(zip(lists, executed.predecessors, executed.receivers, strict=True)))
    positions, indices, inner_indices, listed, senders, receivers = (
        zip(*rows, strict=True) if rows else _NONE
    )
    calls = [action.function_call if type(action) is Action else None for action in listed]
    args = [None if call is None else _json_args(call) for call in calls]
    heights = [execution.block_height for execution in executed.executions]
    gas = [call.gas if call else None for call in calls]
    integers, texts = arrow_columns.integers, arrow_columns.texts
    return arrow_columns.table(
        "collected_actions",
        {
            "block_height": integers([heights[at] for at in positions], "block_height"),
            "tx_hash": texts([executed.tx_hashes[at] for at in positions]),
            "receipt_id": texts([executed.receipt_ids[at] for at in positions]),
            "action_index": integers(indices, "action_index"),
            "inner_index": integers(inner_indices, "inner_index"),
            "action": texts(list(map(action_name, listed))),
            "sender_id": texts(senders),
            "receiver_id": texts(receivers),
            "method_name": texts([call.method_name if call else None for call in calls]),
            "args": texts(args),
            "gas_attached": arrow_columns.gas(gas, "gas_attached"),
            "deposit": arrow_columns.amounts_of_near(list(map(deposit_digits, listed)), "deposit"),
            "details": texts(
                [
                    _json_details(action) if call is None else None
                    for action, call in zip(listed, calls, strict=True)
                ]
            ),
            "args_base64": texts(
                [
                    _base64_args(call, text) if call and text is not None else None
                    for call, text in zip(calls, args, strict=True)
                ]
            ),
        },
    )


def _json_args(call: FunctionCall) -> str | None:
    """Return the arguments of a call as the JSON text of their column; None if there are none."""
    value = decode_args(call)
    return None if value is NA else object_columns.encode(value)


def _base64_args(call: FunctionCall, json_text: str) -> str | None:
    """Return the arguments of a call in base64, unless they are the JSON text of their column."""
    if call.args is None or call.args == json_text.encode():
        return None
    return b64encode(call.args).decode()


def _json_details(action: Action | str) -> str | None:
    """Return the other fields of an action as the JSON text of their column, if there are any."""
    value = action_details(action)
    return None if value is NA else object_columns.encode(value)
