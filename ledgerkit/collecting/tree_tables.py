"""The tables of receipts, events and transfers of transactions, from block documents."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec

from ledgerkit import json_decoding
from ledgerkit.api.models.transactions import (
    Action,
    ActionReceipt,
    DecodedList,
    Transaction,
    TxResult,
    decode_with_unknown_actions,
)
from ledgerkit.collecting import arrow_tables
from ledgerkit.errors import DecodeError
from ledgerkit.tracing.trace import Trace
from ledgerkit.tracing.traces import collected_frame
from ledgerkit.u128 import arrow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ledgerkit.api.models.chain import ChunkTransaction
    from ledgerkit.collecting.included_transactions import IncludedTransaction

VIEWS = ("receipts", "events", "transfers")
_ACTIONS = json_decoding.decoder(ActionReceipt)


def tree_tables(
    views: Iterable[str], transactions: Sequence[IncludedTransaction]
) -> dict[str, Any]:
    """Return a `pyarrow.Table` for each view, some of `VIEWS`; rows are by transaction."""
    blocks = [
        (height, {item.transaction.hash: _trace(item) for item in group})
        for height, group in groupby(transactions, key=lambda item: item.block_height)
    ]
    return {view: _table(view, blocks) for view in views}


def _table(view: str, blocks: Sequence[tuple[int, dict[str, Trace]]]) -> Any:
    """Combine a frame of all transactions."""
    name = f"collected_{view}"
    tables = [arrow_tables.table(name, collected_frame(view, *block)) for block in blocks]
    return arrow.library().concat_tables([arrow_tables.schema(name).empty_table(), *tables])


def _trace(included: IncludedTransaction) -> Trace:
    """Build the trace of a transaction, as far as its receipts have run."""
    executions = [receipt.execution_outcome for receipt in included.receipts]
    own = included.transaction
    conversion: Any = included.conversion  # it has the members of an ExecutionOutcome
    # The first receipt has the transaction's actions, which are needed until it has run.
    has_run = {execution.id for execution in executions}.issuperset(
        (conversion.outcome.receipt_ids or ())[:1]
    )
    result = TxResult(
        None,
        None,
        Transaction(
            own.hash,
            own.signer_id,
            own.public_key,
            own.nonce_index,
            own.receiver_id,
            None if has_run else _actions(own),
        ),
        conversion,
        DecodedList(executions, "$.receipts"),
        DecodedList(executions, "$.receipts"),
        DecodedList([receipt.receipt for receipt in included.receipts], "$.receipts"),
    )
    return Trace(result, b"", rules=included.rules)


def _actions(transaction: ChunkTransaction) -> list[Action | str] | None:
    """Decode the actions of a transaction."""
    body = msgspec.json.encode({"actions": transaction.actions})
    try:
        receipt: ActionReceipt = decode_with_unknown_actions(_ACTIONS, body)
    except msgspec.DecodeError as problem:
        sentence = f"transaction {transaction.hash} is not as documented: {problem}"
        raise DecodeError(sentence, path="$..transaction.actions") from None
    return receipt.actions
