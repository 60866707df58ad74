"""The tables of what blocks executed: outcomes, and the actions of receipts."""

from __future__ import annotations

from base64 import b64encode
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pandas import NA

from ledgerkit.api.models.transactions import DelegateAction, Status, decode_member
from ledgerkit.collecting import arrow_columns
from ledgerkit.errors import DecodeError, cut
from ledgerkit.tracing.action_fields import (
    action_name,
    decode_args,
    delegate_action,
    deposit_digits,
)
from ledgerkit.tracing.actions import action_details
from ledgerkit.tracing.tree.outcomes import FAILURE, STATUS_NAMES, failure_texts, status_code
from ledgerkit.u128 import object_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from msgspec import Raw

    from ledgerkit.api.models.block_documents import BlockDocument, Execution
    from ledgerkit.api.models.transactions import (
        Action,
        ActionReceipt,
        CategorizedCost,
        FunctionCall,
        WholeOutcome,
    )

_FAILURE = "$..outcome.status.Failure"
_WASM, _HOST, _ACTION = range(3)
_CATEGORIES: dict[str | None, int] = {"WASM_HOST_COST": _HOST, "ACTION_COST": _ACTION}


class _Executed(NamedTuple):
    """An outcome, and the accounts and the body of its receipt; a transaction has no id."""

    execution: Execution
    tx_hash: str | None
    receipt_id: str | None
    predecessor_id: str | None
    receiver_id: str | None
    signer_id: str | None
    body: ActionReceipt | None
    nonce_index: int | None = None


def _executed(documents: Sequence[BlockDocument]) -> Iterator[_Executed]:
    """List what each shard executed: the transactions of its chunk, then receipts."""
    for document in documents:
        for shard in document.shards:
            for item in shard.chunk.transactions if shard.chunk else ():
                sent, execution = item.transaction, item.outcome.execution_outcome
                signer_id = sent.signer_id
                accounts = signer_id, sent.receiver_id, signer_id
                yield _Executed(execution, sent.hash, None, *accounts, None, sent.nonce_index)
            for pair in shard.receipt_execution_outcomes:
                receipt = pair.receipt
                body = receipt.receipt.action if receipt.receipt else None
                yield _Executed(
                    pair.execution_outcome,
                    pair.tx_hash,
                    receipt.receipt_id,
                    receipt.predecessor_id,
                    receipt.receiver_id,
                    body.signer_id if body else None,
                    body,
                )


def outcomes(documents: Sequence[BlockDocument]) -> Any:
    """Build the table of outcomes, in the order of the documents."""
    rows = list(_executed(documents))
    executions = [row.execution for row in rows]
    results = [execution.outcome for execution in executions]
    bodies = [row.body for row in rows]
    texts, lists = arrow_columns.texts, arrow_columns.lists
    return arrow_columns.table(
        "collected_outcomes",
        {
            "block_height": arrow_columns.integers([e.block_height for e in executions], "height"),
            "tx_hash": texts([row.tx_hash for row in rows]),
            "receipt_id": texts([row.receipt_id for row in rows]),
            "time": arrow_columns.times([e.block_timestamp for e in executions], "timestamp"),
            "shard_id": arrow_columns.integers([e.shard_id for e in executions], "shard_id"),
            "predecessor_id": texts([row.predecessor_id for row in rows]),
            "receiver_id": texts([row.receiver_id for row in rows]),
            "signer_id": texts([row.signer_id for row in rows]),
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
            "nonce_index": arrow_columns.integers([row.nonce_index for row in rows], "nonce_index"),
        },
    )


def _status_columns(results: Sequence[WholeOutcome]) -> dict[str, Any]:
    """Build the columns of how each execution ended."""
    statuses = [r.status if isinstance(r.status, Status) else Status() for r in results]
    codes = [status_code(result.status) for result in results]
    failures: dict[bytes, tuple[str, str, str]] = {}  # equal ones are decoded once
    errors: list[tuple[str | None, str | None, str | None]] = [(None, None, None)] * len(results)
    for at in [at for at, code in enumerate(codes) if code == FAILURE]:
        failure: Any = statuses[at].failure
        key = bytes(failure)
        if key not in failures:
            failures[key] = *failure_texts(failure, _FAILURE), _json_failure(failure)
        errors[at] = failures[key]
    texts = arrow_columns.texts
    return {
        "status": texts([STATUS_NAMES[code] for code in codes]),
        "error_kind": texts([kind for kind, _, _ in errors]),
        "error_message": texts([message for _, message, _ in errors]),
        "failure": texts([failure for *_, failure in errors]),
        "success_value": texts(
            [s.success_value if isinstance(s.success_value, str) else None for s in statuses]
        ),
        "success_receipt_id": texts([status.success_receipt_id for status in statuses]),
    }


def _json_failure(failure: Raw) -> str:
    """Return a failure as the JSON text of its column."""
    return object_columns.encode(decode_member(failure, _FAILURE))


def _profile_columns(results: Sequence[WholeOutcome]) -> dict[str, Any]:
    """Build the columns of each gas profile's totals: WASM instructions, host, actions."""
    profiles = [result.metadata and result.metadata.gas_profile for result in results]
    is_missing = np.array([profile is None for profile in profiles], dtype=bool)
    counts = np.array([len(profile or ()) for profile in profiles], dtype=np.int64)
    costs = list(chain.from_iterable(profile for profile in profiles if profile))
    gas, categories = _gas_of(costs), _categories_of(costs)
    return {
        name: arrow_columns.gas_array(_sums(gas * (categories == category), counts), is_missing)
        for category, name in enumerate(("wasm_gas", "host_gas", "action_gas"))
    }


def _categories_of(costs: Sequence[CategorizedCost]) -> np.ndarray:
    """Return the category of each entry of gas profiles."""
    # WASM instructions are listed among the host functions. Source: nearcore, core/primitives,
    # src/views.rs, impl From<ExecutionMetadata> for ExecutionMetadataView.
    try:
        codes = [
            _WASM if cost.cost == "WASM_INSTRUCTION" else _CATEGORIES[cost.cost_category]
            for cost in costs
        ]
    except KeyError as error:
        sentence = f"a gas profile has an entry of the category {cut(str(error.args[0]))!r}"
    else:
        return np.array(codes, dtype=np.int8)
    raise DecodeError(sentence, path="$..gas_profile[].cost_category")


def _gas_of(costs: Sequence[CategorizedCost]) -> np.ndarray:
    """Return the gas of each entry of gas profiles."""
    texts = [cost.gas_used for cost in costs]
    parsed = arrow_columns.gas_of_digits(texts)
    if parsed is None:
        number = next(text for text in texts if arrow_columns.gas_of_digits([text]) is None)
        sentence = f"the gas {cut(repr(number))} in a gas profile is not a whole number of 64 bits"
        raise DecodeError(sentence, path="$..gas_profile[].gas_used")
    return parsed


def _sums(gas: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Sum the gas of each profile, of which `counts` are the numbers of entries."""
    ends = np.cumsum(counts)
    # The running total may pass 64 bits; its differences are exact all the same.
    totals = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(gas, dtype=np.uint64)])
    sums: np.ndarray = totals[ends] - totals[ends - counts]
    return sums


class _ActionRow(NamedTuple):
    """One action: what executed it, its index there, its sender and receiver."""

    executed: _Executed
    action_index: int
    inner_index: int | None
    action: Action | str
    sender_id: str | None
    receiver_id: str | None


def _action_rows(documents: Sequence[BlockDocument]) -> Iterator[_ActionRow]:
    """List the actions of all executed receipts, those inside a Delegate after it."""
    for row in _executed(documents):
        body = row.body
        for index, action in enumerate((body and body.actions) or ()):
            yield _ActionRow(row, index, None, action, row.predecessor_id, row.receiver_id)
            inner = delegate_action(action) or DelegateAction()
            for inner_index, inner_action in enumerate(inner.actions or ()):
                parties = inner.sender_id, inner.receiver_id
                yield _ActionRow(row, index, inner_index, inner_action, *parties)


def actions(documents: Sequence[BlockDocument]) -> Any:
    """Build the table of the actions of executed receipts."""
    rows = list(_action_rows(documents))
    calls = [None if isinstance(row.action, str) else row.action.function_call for row in rows]
    executed = [row.executed for row in rows]
    heights = [row.execution.block_height for row in executed]
    gas = [call.gas if call else None for call in calls]
    deposits = [deposit_digits(row.action) for row in rows]
    args = [_json_args(call) for call in calls]
    integers, texts = arrow_columns.integers, arrow_columns.texts
    return arrow_columns.table(
        "collected_actions",
        {
            "block_height": integers(heights, "block_height"),
            "tx_hash": texts([row.tx_hash for row in executed]),
            "receipt_id": texts([row.receipt_id for row in executed]),
            "action_index": integers([row.action_index for row in rows], "action_index"),
            "inner_index": integers([row.inner_index for row in rows], "inner_index"),
            "action": texts([action_name(row.action) for row in rows]),
            "sender_id": texts([row.sender_id for row in rows]),
            "receiver_id": texts([row.receiver_id for row in rows]),
            "method_name": texts([call.method_name if call else None for call in calls]),
            "args": texts(args),
            "gas_attached": arrow_columns.gas(gas, "gas_attached"),
            "deposit": arrow_columns.amounts_of_near(deposits, "deposit"),
            "details": texts([_json_details(row.action) for row in rows]),
            "args_base64": texts(
                [_base64_args(call, text) for call, text in zip(calls, args, strict=True)]
            ),
        },
    )


def _json_args(call: FunctionCall | None) -> str | None:
    """Return the arguments of a call as the JSON text of their column; None if there are none."""
    value = NA if call is None else decode_args(call)
    return None if value is NA else object_columns.encode(value)


def _base64_args(call: FunctionCall | None, json_text: str | None) -> str | None:
    """Return the arguments of a call in base64, unless they are the JSON text of their column."""
    if call is None or call.args is None or json_text is None or call.args == json_text.encode():
        return None
    return b64encode(call.args).decode()


def _json_details(action: Action | str) -> str | None:
    """Return the other fields of an action as the JSON text of their column, if there are any."""
    value = action_details(action)
    return None if value is NA else object_columns.encode(value)
