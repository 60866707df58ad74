"""The tables of outcomes, and of the actions of executed receipts."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pandas import NA

from ledgerkit.api.models.actions import FunctionCall, action_rows, deposit_digits, function_call
from ledgerkit.api.models.transactions import Status, WholeOutcome
from ledgerkit.errors import DecodeError, cut
from ledgerkit.frames import arrow_tables
from ledgerkit.tracing.action_fields import decode_args
from ledgerkit.tracing.actions import shared_columns
from ledgerkit.tracing.tree.outcomes import (
    FAILURE,
    STATUS_NAMES,
    Failure,
    describe_other_status,
    other_status,
    read_failure,
    status_code,
)
from ledgerkit.u128 import arrow, object_columns

if TYPE_CHECKING:
    from ledgerkit.api.models.block_documents import (
        BlockDocument,
        ConvertedTransaction,
        ExecutedReceipt,
        Execution,
        WholeActionReceipt,
    )

_FAILURE = "$..outcome.status.Failure"
_MAX_GAS = 2**64 - 1


class Executed(NamedTuple):
    """
    A transaction or a receipt that a block executed.

    A transaction has no `receipt_id` and no `body`, and its signer sends it.
    """

    execution: Execution
    tx_hash: str | None
    receipt_id: str | None
    predecessor_id: str | None
    receiver_id: str | None
    signer_id: str | None
    body: WholeActionReceipt | None
    nonce_index: int | None = None
    receipt_kind: str | None = None


def list_executed(documents: Sequence[BlockDocument]) -> list[Executed]:
    """List the executions of blocks: the transactions of each shard's chunk, then its receipts."""
    rows: list[Executed] = []
    for document in documents:
        for shard in document.shards:
            rows += map(_converted, shard.chunk.converted() if shard.chunk else ())
            rows += map(_executed, shard.receipt_execution_outcomes)
    return rows


def _converted(item: ConvertedTransaction) -> Executed:
    sent, execution = item.transaction, item.outcome.execution_outcome
    signer_id, receiver_id = sent.signer_id, sent.receiver_id
    return Executed(
        execution, sent.hash, None, signer_id, receiver_id, signer_id, None, sent.nonce_index
    )


def _executed(pair: ExecutedReceipt) -> Executed:
    receipt, body = pair.receipt, pair.receipt.receipt.action
    return Executed(
        pair.execution_outcome,
        pair.tx_hash,
        receipt.receipt_id,
        receipt.predecessor_id,
        receipt.receiver_id,
        body.signer_id if body else None,
        body,
        receipt_kind=receipt.receipt.kind,
    )


def outcomes(executed: Sequence[Executed]) -> Any:
    executions = [row.execution for row in executed]
    results = [execution.outcome for execution in executions]
    bodies = [row.body for row in executed]
    receivers = [body.output_data_receivers if body else [] for body in bodies]
    columns = {
        "block_height": [execution.block_height for execution in executions],
        "tx_hash": [row.tx_hash for row in executed],
        "receipt_id": [row.receipt_id for row in executed],
        "time": [execution.block_timestamp for execution in executions],
        "shard_id": [execution.shard_id for execution in executions],
        "predecessor_id": [row.predecessor_id for row in executed],
        "receiver_id": [row.receiver_id for row in executed],
        "signer_id": [row.signer_id for row in executed],
        "executor_id": [result.executor_id for result in results],
        **_status_columns(results),
        "receipt_ids": [result.receipt_ids for result in results],
        "input_data_ids": [body.input_data_ids if body else [] for body in bodies],
        "output_data_receivers": receivers,
        "logs": [result.logs for result in results],
        "gas_burnt": _check_gas("gas_burnt", [result.gas_burnt for result in results]),
        "tokens_burnt": [result.tokens_burnt for result in results],
        **_profile_columns(results),
        "nonce_index": [row.nonce_index for row in executed],
        "receipt_kind": [row.receipt_kind for row in executed],
    }
    return arrow_tables.of_columns("outcomes", columns)


def _status_columns(results: Sequence[WholeOutcome]) -> dict[str, Any]:
    unknown = Status()
    statuses: list[Any]
    statuses = [r.status if type(r.status) is Status else unknown for r in results]
    others = [other_status(result.status) for result in results]
    codes, decoded = list(map(status_code, statuses)), dict[bytes, Failure]()
    failures = [
        read_failure(status.failure, _FAILURE, decoded) if code == FAILURE else None
        for status, code in zip(statuses, codes, strict=True)
    ]
    values = [status.success_value for status in statuses]
    return {
        "status": [STATUS_NAMES[code] for code in codes],
        "error_kind": [failure and failure.kind for failure in failures],
        "error_message": [
            failure.message if failure else other and describe_other_status(other)
            for failure, other in zip(failures, others, strict=True)
        ],
        "failure": [
            failure.value if failure else _other_content(result.status)
            for failure, result in zip(failures, results, strict=True)
        ],
        "success_value": [value if isinstance(value, str) else None for value in values],
        "success_receipt_id": [status.success_receipt_id for status in statuses],
    }


def _other_content(status: Status | str) -> Any:
    """Return an undeclared status as it was sent; None for any other."""
    if isinstance(status, str):
        return None if status == "Unknown" else status
    return {status.other.name: status.other.content} if status.other else None


def _profile_columns(results: Sequence[WholeOutcome]) -> dict[str, Any]:
    """Build the columns of each gas profile's totals: WASM instructions, host, actions."""
    metadata = [result.profile() for result in results]
    others = [profile and profile.other_gas() for profile in metadata]
    return {
        **{
            name: _check_gas(name, [item.gas(index) if item else None for item in metadata])
            for index, name in enumerate(("wasm_gas", "host_gas", "action_gas"))
        },
        "other_gas": [gas or None for gas in others],
    }


def _check_gas(name: str, values: Sequence[int | None]) -> Sequence[int | None]:
    """Check that amounts of gas fit 64 bits, and return them; sums may not fit."""
    largest = max((value for value in values if value is not None), default=0)
    if largest > _MAX_GAS:
        row = values.index(largest)
        msg = f"{name} {cut(str(largest))} in row {row} does not fit uint64"
        raise DecodeError(msg, path=f"{name}[{row}]")
    return values


def actions(executed: Sequence[Executed]) -> Any:
    rows = list(
        action_rows(
            (item.body.actions if item.body else None, item.predecessor_id, item.receiver_id)
            for item in executed
        )
    )
    receipts = [executed[row.position] for row in rows]
    calls = [function_call(row.action) for row in rows]
    args = [None if call is None else _json_args(call) for call in calls]
    pa, shared = arrow.library(), shared_columns(rows)
    columns = {
        "block_height": [receipt.execution.block_height for receipt in receipts],
        "tx_hash": [receipt.tx_hash for receipt in receipts],
        "receipt_id": [receipt.receipt_id for receipt in receipts],
        **shared,
        "args": pa.array(args, pa.string()),
        "gas_attached": _check_gas("gas_attached", shared["gas_attached"]),
        "deposit": [deposit_digits(row.action) for row in rows],
        "args_base64": list(map(_base64_args, calls, args)),
    }
    return arrow_tables.of_columns("actions", columns)


def _json_args(call: FunctionCall) -> str | None:
    """Return the arguments of a call as JSON text; None if they are not JSON."""
    value = decode_args(call)
    return None if value is NA else object_columns.encode(value)


def _base64_args(call: FunctionCall | None, json_text: str | None) -> str | None:
    """Return the arguments of a call in base64; None if `json_text` equals them."""
    if call is None or call.args is None or call.args == (json_text or "").encode():
        return None
    return b64encode(call.args).decode()
