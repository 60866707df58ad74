"""Traces of transactions from the tables of a collection of blocks."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec

from ledgerkit import validation
from ledgerkit.api.models.transactions import DISTRIBUTION, TransactionResponse, decode_indexed
from ledgerkit.block_data.protocol_rules import rules_by_span
from ledgerkit.errors import InvalidRequestError, UnknownTransactionError
from ledgerkit.protocol.actions import KINDS_BY_NAME, is_delegate
from ledgerkit.tracing.trace import Trace
from ledgerkit.tracing.traces import Traces
from ledgerkit.u128 import arrow, object_columns
from ledgerkit.verbs.token_facts import read_token_facts

if TYPE_CHECKING:
    from ledgerkit.api.models.protocol_rules import Rules
    from ledgerkit.collecting.committed_files import CommittedFiles
    from ledgerkit.ledger import Ledger

    Row = dict[str, Any]

NEEDED = ("blocks", "transactions", "outcomes", "actions")


def read_traces(files: CommittedFiles, tx_hashes: Iterable[str], ledger: Ledger | None) -> Traces:
    """Read the traces of transactions; `Collection.traces` has the arguments and errors."""
    if isinstance(tx_hashes, str):
        raise InvalidRequestError.refuse("tx_hashes", tx_hashes, "several hashes, such as a list")
    hashes = list(dict.fromkeys(validation.crypto_hash(h, "tx_hash") for h in tx_hashes))
    missing = [view for view in NEEDED if view not in files.manifest.views]
    if missing:
        msg = f"traces need the views {', '.join(missing)}, which this collection does not have"
        remedy = f"Collect the blocks with the views {', '.join(NEEDED)} or more, from documents."
        raise InvalidRequestError(msg, remedy=remedy, field="views", value=missing)
    if ledger is not None and ledger.network.name != files.manifest.network:
        expected = f"a ledger of {files.manifest.network}, the network of the collection"
        raise InvalidRequestError.refuse("ledger", ledger.network.name, expected)
    rows = _StoredRows(files, hashes)
    responses = [rows.response(tx_hash) for tx_hash in hashes]
    attrs = {"network": files.manifest.network, "source": str(files.folder)}
    options: dict[str, Any] = {"attrs": attrs}
    rules: list[Rules | None] = [None] * len(responses)
    if ledger is not None:
        options["tokens"] = partial(read_token_facts, ledger)
        rules = rules_by_span(ledger, [response.result.height_span() for response in responses])
    traces = [
        Trace(response.result, response.body, rules=rule, **options)
        for response, rule in zip(responses, rules, strict=True)
    ]
    return Traces(dict(zip(hashes, traces, strict=True)), attrs=attrs)


class _StoredRows:
    """The stored rows of transactions, as responses of the Transactions API."""

    def __init__(self, files: CommittedFiles, tx_hashes: Sequence[str]) -> None:
        self._files = files
        transactions = self._read("transactions", "tx_hash", tx_hashes)
        self._transactions: dict[str, Row] = {}
        for row in transactions:
            first = self._transactions.setdefault(row["tx_hash"], row)
            if first is not row:
                raise _included_twice(first, row)
        for tx_hash in tx_hashes:
            if tx_hash not in self._transactions:
                raise UnknownTransactionError(
                    f"{files.folder} does not have transaction {tx_hash}",
                    remedy="Collect the block that includes it into the same folder.",
                    transaction_hash=tx_hash,
                )
        self._read_outcomes(tx_hashes)
        executed = [*self._conversions.values(), *chain.from_iterable(self._receipts.values())]
        heights = list({row["block_height"] for row in executed})
        columns = ["block_height", "block_hash"]
        blocks = self._read("blocks", "block_height", heights, columns)
        self._hashes = {row["block_height"]: row["block_hash"] for row in blocks}
        self._actions: dict[str, list[Row]] = defaultdict(list)
        for row in self._read("actions", "receipt_id", list(self._receipts)):
            self._actions[row["receipt_id"]].append(row)

    def _read(
        self, table: str, column: str, values: Sequence[Any], names: Sequence[str] | None = None
    ) -> list[Row]:
        pa, compute = arrow.library(), arrow.library("pyarrow.compute")
        kind = pa.int64() if column == "block_height" else pa.string()
        where = compute.field(column).isin(pa.array(values, kind))
        rows = self._files.read(table, names, where)
        if "time" in rows.column_names:
            time = rows["time"].cast(pa.int64())
            rows = rows.set_column(rows.column_names.index("time"), "time", time)
        listed: list[Row] = rows.to_pylist()
        return listed

    def _read_outcomes(self, tx_hashes: Sequence[str]) -> None:
        """Read the outcomes of the transactions, and of the receipts that they led to."""
        self._conversions: dict[str, Row] = {}
        self._receipts: dict[str, list[Row]] = defaultdict(list)
        rows = self._read("outcomes", "tx_hash", tx_hashes)
        while rows:
            for row in rows:
                if row["receipt_id"] is None:
                    self._conversions[row["tx_hash"]] = row
                else:
                    self._receipts[row["receipt_id"]].append(row)
            # Documents may not name a receipt's transaction, but its creator names the receipt.
            created = {receipt_id for row in rows for receipt_id in _created(row)}
            unread = sorted(created - self._receipts.keys())
            rows = self._read("outcomes", "receipt_id", unread) if unread else []

    def response(self, tx_hash: str) -> TransactionResponse:
        row, conversion = self._transactions[tx_hash], self._conversions[tx_hash]
        receipts = self._descendants(conversion)
        first = next(iter(_created(conversion)), "")
        # A receipt of an unknown kind has no rows of actions.
        kinds = {_kind(executed) for executed in self._receipts.get(first, ())}
        names = ("signer_id", "receiver_id", "public_key")
        document = {
            "transaction": {
                "hash": tx_hash,
                **{name: row[name] for name in names},
                "nonce_index": conversion["nonce_index"],
                "actions": self._receipt_actions(first) if "Action" in kinds else None,
            },
            "execution_outcome": self._execution(tx_hash, conversion),
            "receipts": [
                {
                    "receipt": self._body(receipt),
                    "execution_outcome": self._execution(receipt["receipt_id"], receipt),
                }
                for receipt in receipts
            ],
        }
        request = f"transaction {tx_hash} of {self._files.folder}"
        return decode_indexed(msgspec.json.encode(document), request=request)

    def _descendants(self, conversion: Row) -> list[Row]:
        """
        List the receipts that a transaction led to, as far as they are stored.

        Receipts of contradictory blocks are all listed; the trace refuses them.
        """
        descendants: dict[str, list[Row]] = {}
        unvisited = [conversion]
        while unvisited:
            for receipt_id in _created(unvisited.pop()):
                if receipt_id not in descendants:
                    rows = descendants[receipt_id] = self._receipts.get(receipt_id, [])
                    unvisited += rows
        return sorted(chain.from_iterable(descendants.values()), key=itemgetter("block_height"))

    def _execution(self, execution_id: str, row: Row) -> Row:
        gas = [row[name] for name in ("wasm_gas", "host_gas", "action_gas")]
        others = row.get("other_gas")  # older collections lack it
        costs = [*gas, *(object_columns.decode(others) if others else {}).values()]
        profile = None if gas[0] is None else [{"gas_used": str(value)} for value in costs]
        return {
            "id": execution_id,
            "block_hash": self._hashes.get(row["block_height"]),
            "block_height": row["block_height"],
            "block_timestamp": row["time"],
            "shard_id": row["shard_id"],
            "outcome": {
                "executor_id": row["executor_id"],
                "status": _status(row),
                "logs": row["logs"],
                "receipt_ids": _created(row),
                "gas_burnt": _integer(row["gas_burnt"]),
                "tokens_burnt": _digits(row["tokens_burnt"]),
                "metadata": {"gas_profile": profile},
            },
        }

    def _body(self, row: Row) -> Row:
        """Build a receipt; the tables only have the contents of action receipts."""
        receivers = row["output_data_receivers"]
        body = {
            "signer_id": row["signer_id"],
            "actions": self._receipt_actions(row["receipt_id"]),
            "input_data_ids": row["input_data_ids"],
            "output_data_receivers": receivers and object_columns.decode(receivers),
        }
        kind = _kind(row)
        names = ("receipt_id", "predecessor_id", "receiver_id")
        return {
            **{name: row[name] for name in names},
            "receipt": {kind: body if kind == "Action" else {}},
        }

    def _receipt_actions(self, receipt_id: str) -> list[Any]:
        rows = self._actions.get(receipt_id, [])
        inner = defaultdict(list)
        for row in rows:
            if row["inner_index"] is not None:
                inner[row["action_index"]].append(_action(row, []))
        return [
            _action(row, inner[row["action_index"]]) for row in rows if row["inner_index"] is None
        ]


def _included_twice(*rows: Row) -> InvalidRequestError:
    # Source: near/docs, pull request 746: an account that was deleted and created anew with the
    # same key could send a transaction again, until nearcore 1.19.
    heights = sorted(row["block_height"] for row in rows)
    msg = f"transaction {rows[0]['tx_hash']} is in the blocks {heights[0]} and {heights[1]}"
    remedy = f'Read each trace with ledgerkit.trace_block({heights[0]}, source="documents").'
    return InvalidRequestError(msg, remedy=remedy, field="tx_hashes", value=rows[0]["tx_hash"])


def _kind(row: Row) -> str:
    # In older collections, receipts without a signer distribute global contracts.
    return row.get("receipt_kind") or ("Action" if row["signer_id"] else DISTRIBUTION)


def _created(row: Row) -> list[str]:
    created: list[str] | None = row["receipt_ids"]
    return created or []


def _status(row: Row) -> Any:
    status = row["status"]
    if status == "success_value":
        return {"SuccessValue": row["success_value"]}
    if status == "success_receipt_id":
        return {"SuccessReceiptId": row["success_receipt_id"]}
    sent = None if row["failure"] is None else object_columns.decode(row["failure"])
    return {"Failure": sent} if status == "failure" else sent or "Unknown"


def _action(row: Row, inner: list[Any]) -> Any:
    """Build an action; `inner` are the actions of a Delegate."""
    name, text = row["action"], row["details"]
    content: Any
    kind = KINDS_BY_NAME.get(name)
    details = object_columns.decode(text) if text is not None else None
    amount = {} if row["deposit"] is None else {"deposit": _digits(row["deposit"])}
    if name == "FunctionCall":
        gas = {} if row["gas_attached"] is None else {"gas": _integer(row["gas_attached"])}
        args = {} if row["args"] is None else {"args": _args(row)}
        content = {"method_name": row["method_name"], **args, **gas, **amount}
    elif is_delegate(name):
        content = {"delegate_action": {**(details or {}), "actions": inner}}
    elif bool(amount) if kind is None else kind.has_deposit:
        content = {**(details or {}), **amount}
    else:
        content = details
    return name if content is None else {name: content}


def _args(row: Row) -> str:
    exact: str | None = row["args_base64"]
    if exact is not None:
        return exact
    value = object_columns.decode(row["args"])
    body = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return base64.b64encode(body).decode()


def _digits(value: Any) -> str | None:
    return None if value is None else str(int(value))


def _integer(value: Any) -> int | None:
    return None if value is None else int(value)
