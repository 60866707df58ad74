"""
The rows of a block document's own tables, read from its JSON in plain Python.

An independent second reading, by which tests judge the tables that the package builds: nothing of
the package is used.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterator

Row = dict[str, Any]


def plain_rows(frame: pd.DataFrame) -> list[Row]:
    """Return the rows of a frame as plain values, to compare with these; None is missing."""
    columns = {name: [_plain(value) for value in frame[name]] for name in frame.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain(value: Any) -> Any:
    """Return a value without the types of pandas; a time as nanoseconds."""
    if isinstance(value, pd.Timestamp):
        return value.value
    return value if isinstance(value, list | dict | bytes) or not pd.isna(value) else None


_DEPOSITED = ("FunctionCall", "Transfer", "DeterministicStateInit", "TransferToGasKey")


# Reading a document ------------------------------------------------------------------------


def own_tables(document: Row) -> dict[str, list[Row]]:
    """Return the rows of the tables that one document determines, without errors' texts."""
    return {
        "chunks": list(_chunks(document)),
        "transactions": list(_transactions(document)),
        "outcomes": list(_outcomes(document)),
        "actions": list(_actions(document)),
        "balances": list(_balances(document)),
        "data_receipts": list(_data_receipts(document)),
    }


def _height(document: Row) -> int:
    return int(document["block"]["header"]["height"])


def _chunks(document: Row) -> Iterator[Row]:
    """List the chunks that the block names: those that are new in full."""
    height = _height(document)
    contents = {
        shard["chunk"]["header"]["chunk_hash"]: shard["chunk"]
        for shard in document["shards"]
        if shard["chunk"]
    }
    # Some services leave out the list of the block.
    for header in document["block"].get("chunks") or [each["header"] for each in contents.values()]:
        chunk = contents.get(header["chunk_hash"])
        local = {
            created
            for item in (chunk or {}).get("transactions", ())
            if item["transaction"]["signer_id"] == item["transaction"]["receiver_id"]
            for created in item["outcome"]["execution_outcome"]["outcome"]["receipt_ids"]
        }
        # Before documents had `local_receipts`, these were among the receipts of the chunk.
        received = [
            receipt
            for receipt in (chunk or {}).get("receipts", ())
            if "local_receipts" in (chunk or {}) or receipt["receipt_id"] not in local
        ]
        yield {
            "block_height": height,
            "shard_id": header["shard_id"],
            "chunk_hash": header["chunk_hash"],
            "author": chunk and chunk["author"],
            "is_new": header["height_included"] == height,
            "height_created": header["height_created"],
            "height_included": header["height_included"],
            "gas_used": header["gas_used"],
            "gas_limit": header["gas_limit"],
            "balance_burnt": int(header["balance_burnt"]),
            "n_transactions": chunk and len(chunk["transactions"]),
            "n_receipts": chunk and len(received),
        }


def _new_chunks(document: Row) -> Iterator[tuple[int, Row]]:
    for shard in document["shards"]:
        if shard["chunk"]:
            yield shard["shard_id"], shard["chunk"]


def _transactions(document: Row) -> Iterator[Row]:
    """List the transactions of the block's chunks."""
    for shard_id, chunk in _new_chunks(document):
        for item in chunk["transactions"]:
            transaction = item["transaction"]
            actions = transaction["actions"]
            calls = list(_calls(actions))
            yield {
                "block_height": _height(document),
                "shard_id": shard_id,
                "tx_hash": transaction["hash"],
                "signer_id": transaction["signer_id"],
                "receiver_id": transaction["receiver_id"],
                "nonce": transaction["nonce"],
                "public_key": transaction["public_key"],
                "actions": "+".join(_name(action) for action in actions),
                "method_name": "+".join(call["method_name"] for call in calls) or None,
                "deposit": sum(_deposit(action) for action in actions),
                "gas_attached": sum(call["gas"] for call in calls),
            }


def _name(action: Any) -> str:
    return action if isinstance(action, str) else next(iter(action))


def _members(action: Any) -> Row:
    return {} if isinstance(action, str) else next(iter(action.values()))


def _deposit(action: Any) -> int:
    return int(_members(action)["deposit"]) if _name(action) in _DEPOSITED else 0


def _delegated(action: Any) -> Row:
    """Return what a Delegate signs; nothing for another action."""
    inner: Row = _members(action)["delegate_action"] if _name(action).startswith("Delegate") else {}
    return inner.get("V2", inner)


def _calls(actions: Any) -> Iterator[Row]:
    """List the function calls, those in a Delegate included."""
    for action in actions:
        if _name(action) == "FunctionCall":
            yield _members(action)
        yield from _calls(_delegated(action).get("actions", ()))


def _outcomes(document: Row) -> Iterator[Row]:
    """List what each shard executed: its transactions, then its receipts."""
    for shard in document["shards"]:
        place = {
            "block_height": _height(document),
            "time": int(document["block"]["header"]["timestamp_nanosec"]),
            "shard_id": shard["shard_id"],
        }
        for item in (shard["chunk"] or {}).get("transactions", ()):
            transaction = item["transaction"]
            yield {
                **place,
                "tx_hash": transaction["hash"],
                "receipt_id": None,
                "predecessor_id": transaction["signer_id"],
                "receiver_id": transaction["receiver_id"],
                "signer_id": transaction["signer_id"],
                "input_data_ids": [],
                "output_data_receivers": [],
                **_outcome(item["outcome"]["execution_outcome"]["outcome"]),
            }
        for item in shard["receipt_execution_outcomes"]:
            receipt = item["receipt"]
            body = receipt["receipt"]["Action"]
            yield {
                **place,
                "tx_hash": item.get("tx_hash"),
                "receipt_id": receipt["receipt_id"],
                "predecessor_id": receipt["predecessor_id"],
                "receiver_id": receipt["receiver_id"],
                "signer_id": body["signer_id"],
                "input_data_ids": body["input_data_ids"],
                "output_data_receivers": body["output_data_receivers"],
                **_outcome(item["execution_outcome"]["outcome"]),
            }


def _outcome(outcome: Row) -> Row:
    status = outcome["status"]
    result = status if isinstance(status, dict) else {}
    name = "SuccessValue SuccessReceiptId Failure Unknown".split()
    own = "success_value success_receipt_id failure unknown".split()
    profile = outcome["metadata"]["gas_profile"]
    return {
        "executor_id": outcome["executor_id"],
        "status": dict(zip(name, own, strict=True))[_name(status)],
        "success_value": result.get("SuccessValue"),
        "success_receipt_id": result.get("SuccessReceiptId"),
        "receipt_ids": outcome["receipt_ids"],
        "logs": outcome["logs"],
        "gas_burnt": outcome["gas_burnt"],
        "tokens_burnt": int(outcome["tokens_burnt"]),
        "wasm_gas": _profiled(profile, "WASM_HOST_COST", of_wasm=True),
        "host_gas": _profiled(profile, "WASM_HOST_COST", of_wasm=False),
        "action_gas": _profiled(profile, "ACTION_COST", of_wasm=False),
    }


def _profiled(profile: list[Row] | None, category: str, *, of_wasm: bool) -> int | None:
    """Add up a category of a gas profile; WASM instructions are listed among the host's costs."""
    if profile is None:
        return None
    return sum(
        int(each["gas_used"])
        for each in profile
        if each["cost_category"] == category and (each["cost"] == "WASM_INSTRUCTION") == of_wasm
    )


def _actions(document: Row) -> Iterator[Row]:
    """List the actions of the receipts that ran, those in a Delegate after it."""
    for shard in document["shards"]:
        for item in shard["receipt_execution_outcomes"]:
            receipt = item["receipt"]
            for index, action in enumerate(receipt["receipt"]["Action"]["actions"]):
                key = {
                    "block_height": _height(document),
                    "tx_hash": item.get("tx_hash"),
                    "receipt_id": receipt["receipt_id"],
                    "action_index": index,
                }
                parties = receipt["predecessor_id"], receipt["receiver_id"]
                yield {**key, "inner_index": None, **_action(action, *parties)}
                inner = _delegated(action)
                for inner_index, each in enumerate(inner.get("actions", ())):
                    parties = inner["sender_id"], inner["receiver_id"]
                    yield {**key, "inner_index": inner_index, **_action(each, *parties)}


def _action(action: Any, sender_id: str, receiver_id: str) -> Row:
    name, members = _name(action), _members(action)
    is_call = name == "FunctionCall"
    return {
        "action": name,
        "sender_id": sender_id,
        "receiver_id": receiver_id,
        "method_name": members["method_name"] if is_call else None,
        "args": _args(members["args"]) if is_call else None,
        "gas_attached": members["gas"] if is_call else None,
        "deposit": _deposit(action),
    }


def _args(text: str) -> Any:
    """Decode arguments: JSON, or else bytes."""
    data = base64.b64decode(text)
    try:
        return json.loads(data)
    except ValueError:
        return data


def _balances(document: Row) -> Iterator[Row]:
    """List the changes of accounts, in the document's order."""
    origins = {
        item["receipt"]["receipt_id"]: item.get("tx_hash")
        for shard in document["shards"]
        for item in shard["receipt_execution_outcomes"]
    }
    for shard in document["shards"]:
        for item in shard["state_changes"]:
            if item["type"] not in ("account_update", "account_deletion"):
                continue
            cause, account = item["cause"], item["change"]
            receipt_id = cause.get("receipt_hash")
            yield {
                "block_height": _height(document),
                "shard_id": shard["shard_id"],
                "account_id": account["account_id"],
                "type": item["type"],
                "amount": int(account.get("amount", 0)),
                "locked": int(account.get("locked", 0)),
                "storage_usage": account.get("storage_usage", 0),
                "cause": cause["type"],
                "tx_hash": cause.get("tx_hash") or origins.get(receipt_id),
                "receipt_id": receipt_id,
            }


def _data_receipts(document: Row) -> Iterator[Row]:
    for shard_id, chunk in _new_chunks(document):
        for receipt in chunk["receipts"]:
            data = receipt["receipt"].get("Data")
            if data is not None:
                yield {
                    "block_height": _height(document),
                    "shard_id": shard_id,
                    "receipt_id": receipt["receipt_id"],
                    "data_id": data["data_id"],
                    "predecessor_id": receipt["predecessor_id"],
                    "receiver_id": receipt["receiver_id"],
                    "data": data["data"],
                    "is_promise_resume": data.get("is_promise_resume", False),
                    "kind": "Data",
                    "content": None,
                }
