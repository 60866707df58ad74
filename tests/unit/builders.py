"""Builders of transaction results: the JSON that a node sends, from a few arguments."""

import base64
import json
from typing import Any

SIGNER = "alice.near"
PRICE = 10**8
RULES: dict[str, Any] = {
    "protocol_version": 86,
    "shard_layout": {"V2": {"boundary_accounts": ["b", "m"], "shard_ids": [7, 3, 5]}},
    "runtime_config": {
        "transaction_costs": {
            "burnt_gas_reward": [3, 10],
            "action_receipt_creation_config": {"execution": 100},
            "action_creation_config": {
                "function_call_cost": {"execution": 1000},
                "function_call_cost_per_byte": {"execution": 10},
            },
        }
    },
}


def transfer(amount: int | str) -> dict[str, Any]:
    return {"Transfer": {"deposit": str(amount)}}


def call(method: str = "m", deposit: int = 0, args: Any = None, gas: int = 9) -> dict[str, Any]:
    return call_bytes(method, json.dumps(args or {}).encode(), deposit, gas)


def call_bytes(method: str, args: bytes, deposit: int = 0, gas: int = 9) -> dict[str, Any]:
    text = base64.b64encode(args).decode()
    fields = {"method_name": method, "args": text, "gas": gas, "deposit": str(deposit)}
    return {"FunctionCall": fields}


def delegate(sender: str, to: str, *actions: Any) -> dict[str, Any]:
    """Build a delegate action, signed by `sender`."""
    inner = {"sender_id": sender, "receiver_id": to, "actions": list(actions)}
    return {"Delegate": {"delegate_action": inner}}


def event(standard: str, name: str, *data: Any) -> str:
    fields = {"standard": standard, "version": "1.0.0", "event": name, "data": list(data)}
    return "EVENT_JSON:" + json.dumps(fields)


def failing(text: str = "no", index: int = 0) -> dict[str, Any]:
    kind = {"FunctionCallError": {"ExecutionError": f"Smart contract panicked: {text}"}}
    return {"Failure": {"ActionError": {"index": index, "kind": kind}}}


def outcome(
    id_: str, receipt_ids: Any = (), *, gas: int = 5, tokens: int | None = None, **fields: Any
) -> dict[str, Any]:
    """Build an outcome, by default a success; `fields` replace its fields and its place."""
    place: dict[str, Any] = {"block_hash": f"block of {id_}"}
    place |= {n: fields.pop(n) for n in tuple(fields) if n.startswith(("block_", "shard_"))}
    defaults = {"logs": [], "executor_id": "bob.near", "status": {"SuccessValue": ""}}
    burnt = {"gas_burnt": gas, "tokens_burnt": str(gas * PRICE if tokens is None else tokens)}
    all_fields = defaults | burnt | {"receipt_ids": list(receipt_ids)} | fields
    return {"id": id_, **place, "outcome": all_fields}


def body(
    id_: str, *actions: Any, sender: str = SIGNER, to: str = "bob.near", **fields: Any
) -> dict[str, Any]:
    """Build an action receipt; `fields` are added to it."""
    action_receipt = {"signer_id": SIGNER, "actions": list(actions), **fields}
    return {
        "receipt_id": id_,
        "predecessor_id": sender,
        "receiver_id": to,
        "receipt": {"Action": action_receipt},
    }


def refund(id_: str, amount: int, to: str = SIGNER, *, signer: str | None = None) -> dict[str, Any]:
    """Build a refund receipt: of gas, or with another `signer` of a deposit."""
    return body(id_, transfer(amount), sender="system", to=to, signer_id=signer or to)


def result(
    outcomes: Any, bodies: Any, *, actions: Any = None, to: str | None = None, **fields: Any
) -> dict[str, Any]:
    """
    Build a transaction's result; `fields` replace its fields.

    Its first receipt is R0, whose body has what the transaction asked for, unless told otherwise.
    """
    first = next((each for each in bodies if each["receipt_id"] == "R0"), body("R0"))
    asked = first["receipt"]["Action"]["actions"] if actions is None else actions
    transaction_outcome = outcome(
        "T", ["R0"], gas=3, status={"SuccessReceiptId": "R0"}, executor_id=SIGNER
    )
    transaction = {
        "hash": "T",
        "signer_id": SIGNER,
        "receiver_id": to or first["receiver_id"],
        "actions": asked or [call()],
    }
    return {
        "final_execution_status": "FINAL",
        "status": {"SuccessValue": ""},
        "transaction": transaction,
        "transaction_outcome": transaction_outcome,
        "receipts_outcome": list(outcomes),
        "receipts": list(bodies),
        **fields,
    }
