"""Builders of transaction results as a node sends them, member by member."""

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


def transfer(amount: int) -> dict[str, Any]:
    """Build a transfer."""
    return {"Transfer": {"deposit": str(amount)}}


def call(method: str = "m", deposit: int = 0, args: Any = None, gas: int = 9) -> dict[str, Any]:
    """Build a call."""
    text = base64.b64encode(json.dumps(args or {}).encode()).decode()
    fields = {"method_name": method, "args": text, "gas": gas, "deposit": str(deposit)}
    return {"FunctionCall": fields}


def delegate(sender: str, to: str, *actions: Any) -> dict[str, Any]:
    """Build a Delegate."""
    inner = {"sender_id": sender, "receiver_id": to, "actions": list(actions)}
    return {"Delegate": {"delegate_action": inner}}


def event(standard: str, name: str, *data: Any) -> str:
    """Build an event's line."""
    document = {"standard": standard, "version": "1.0.0", "event": name, "data": list(data)}
    return "EVENT_JSON:" + json.dumps(document)


def failing(text: str = "no", index: int = 0) -> dict[str, Any]:
    """Build the status of a panic."""
    kind = {"FunctionCallError": {"ExecutionError": f"Smart contract panicked: {text}"}}
    return {"Failure": {"ActionError": {"index": index, "kind": kind}}}


def outcome(
    id_: str, created: Any = (), *, gas: int = 5, tokens: int | None = None, **members: Any
) -> dict[str, Any]:
    """Build an outcome: a success, unless `members` differ."""
    defaults = {"logs": [], "executor_id": "bob.near", "status": {"SuccessValue": ""}}
    burnt = {"gas_burnt": gas, "tokens_burnt": str(gas * PRICE if tokens is None else tokens)}
    outcome = defaults | burnt | {"receipt_ids": list(created)} | members
    return {"id": id_, "block_hash": f"block of {id_}", "outcome": outcome}


def body(
    id_: str, *actions: Any, sender: str = SIGNER, to: str = "bob.near", **members: Any
) -> dict[str, Any]:
    """Build an action receipt."""
    action = {"signer_id": SIGNER, "actions": list(actions), **members}
    return {
        "receipt_id": id_,
        "predecessor_id": sender,
        "receiver_id": to,
        "receipt": {"Action": action},
    }


def refund(id_: str, amount: int, to: str = SIGNER, *, signer: str | None = None) -> dict[str, Any]:
    """Build a refund: of gas, unless another signer is passed."""
    return body(id_, transfer(amount), sender="system", to=to, signer_id=signer or to)


def result(
    outcomes: Any, bodies: Any, *, actions: Any = None, to: str = "bob.near", **members: Any
) -> dict[str, Any]:
    """Build a transaction of which the first receipt is R0."""
    first = outcome("T", ["R0"], gas=3, status={"SuccessReceiptId": "R0"}, executor_id=SIGNER)
    transaction: dict[str, Any] = {"hash": "T", "signer_id": SIGNER, "receiver_id": to}
    transaction["actions"] = actions or [call()]
    return {
        "final_execution_status": "FINAL",
        "status": {"SuccessValue": ""},
        "transaction": transaction,
        "transaction_outcome": first,
        "receipts_outcome": list(outcomes),
        "receipts": list(bodies),
        **members,
    }
