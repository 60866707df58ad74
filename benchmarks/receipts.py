"""
Receipts: from the bytes of transactions to traces, explanations and frames.

Small documents, of 8 kB and five receipts: `Trace.from_json` and `Trace.explain` of 1,000 traces,
against the typed decoding of their documents. Targets: at most 5 times its time. A transaction
with 50,000 receipts: its frame, against json and pandas.json_normalize. Targets: at least 3 times
as fast, at most 0.25 of the memory.

Prints medians of interleaved rounds of CPU time in this process, and the peak memory of fresh
processes as tracemalloc counts it. The times include the release of the results.
"""

from __future__ import annotations

import base64
import hashlib
import json
import tracemalloc
from functools import partial
from typing import Any

import base58
from _measuring import apart, cpu_seconds, medians
from _verdict import finish, say

RECEIPTS = 50_000
ROUNDS = 7
AGAINST_JSON, AGAINST_DECODE, MEMORY = 3.0, 5.0, 0.25
SMALL, TRACES = 5, 1000  # receipts of a document of 8 kB, and documents
SIGNER = "relayer.alpha.near"
COSTS = (
    "BASE",
    "CONTRACT_LOADING_BASE",
    "READ_MEMORY_BASE",
    "STORAGE_READ_BASE",
    "WASM_INSTRUCTION",
)
PANIC = "Smart contract panicked: The account doesn't have enough balance"


def ident(*parts: object) -> str:
    """Return 32 bytes in base58."""
    return base58.b58encode(hashlib.sha256(repr(parts).encode()).digest()).decode()


class Node:
    """A receipt of the tree, before its JSON is built."""

    def __init__(self, number: int, kind: str, sender: str, receiver: str, level: int) -> None:
        """Set the place in the tree; data and children follow."""
        self.number, self.kind, self.level = number, kind, level
        self.sender, self.receiver = sender, receiver
        self.inputs: list[str] = []
        self.outputs: list[dict[str, str]] = []
        self.children: list[Node] = []
        self.id = ident("receipt", number)


def grow(total: int) -> Node:
    """
    Build a tree of exactly `total` receipts.

    A call creates three calls, a callback that waits for the first of them, and a refund. A
    callback, and a call without calls, creates a refund.
    """
    root = Node(0, "call", SIGNER, "root.alpha.near", 0)
    nodes, waiting = [root], 1  # each waiting node will create a refund
    for node in nodes:
        me, level = node.receiver, node.level + 1
        if node.kind == "refund":
            continue
        waiting -= 1
        count = len(nodes)
        if node.kind == "call" and count + waiting + 9 <= total:
            i = node.number
            names = (f"token{i % 61}.alpha.near", f"pool{i % 53}.beta.near", f"dex{i % 7}.c.near")
            calls = [Node(count + k, "call", me, name, level) for k, name in enumerate(names)]
            callback = Node(count + 3, "callback", me, me, level + 1)
            callback.inputs = [ident("data", i)]
            calls[0].outputs = [{"data_id": callback.inputs[0], "receiver_id": me}]
            node.children = [*calls, callback]
            waiting += 4
        node.children.append(Node(count + len(node.children), "refund", "system", SIGNER, level))
        nodes += node.children
    refund_numbers = range(len(nodes), total)
    root.children += [Node(i, "refund", "system", SIGNER, 1) for i in refund_numbers]
    return root


def encoded(node: Node) -> str:
    """Encode the arguments of a call."""
    args = {"sender_id": node.sender, "receiver_id": f"user{node.number}.near"}
    args |= {"amount": str(10**18 + node.number * 104_729), "memo": f"payout {node.number}"}
    return base64.b64encode(json.dumps(args).encode()).decode()


def action(node: Node) -> dict[str, Any]:
    """Build the action of a receipt."""
    if node.kind == "refund":
        return {"Transfer": {"deposit": str(10**20 + node.number * 7_919)}}
    method = "ft_transfer_call" if node.kind == "call" else "ft_resolve_transfer"
    deposit = "1" if node.kind == "call" else "0"
    gas = 30_000_000_000_000 + node.number
    call = {"args": encoded(node), "deposit": deposit, "gas": gas, "method_name": method}
    return {"FunctionCall": call}


def receipt(node: Node) -> dict[str, Any]:
    """Build a receipt's JSON as a node sends it."""
    body = {
        "actions": [action(node)],
        "gas_price": "0" if node.kind == "refund" else "100000000",
        "input_data_ids": node.inputs,
        "is_promise_yield": False,
        "output_data_receivers": node.outputs,
        "refund_to": None,
        "signer_id": SIGNER,
        "signer_public_key": "ed25519:" + ident("key"),
    }
    return {
        "predecessor_id": node.sender,
        "priority": 0,
        "receipt": {"Action": body},
        "receipt_id": node.id,
        "receiver_id": node.receiver,
    }


def status(node: Node) -> dict[str, Any]:
    """Build a receipt's status: one call in 97 panics."""
    if node.inputs or node.kind == "refund" or len(node.children) > 1:
        callbacks = [child for child in node.children if child.inputs]
        return {"SuccessReceiptId": callbacks[0].id} if callbacks else {"SuccessValue": ""}
    if node.number % 97 == 0:
        kind = {"FunctionCallError": {"ExecutionError": PANIC}}
        return {"Failure": {"ActionError": {"index": 0, "kind": kind}}}
    return {"SuccessValue": "IjEi"}


def outcome(node: Node) -> dict[str, Any]:
    """Build an outcome's JSON as a node sends it, with proof and gas profile."""
    i, is_call = node.number, node.kind != "refund"
    gas = 2_428_000_000_000 + i * 17 if is_call else 223_182_562_500
    to, amount = f"user{i}.near", str(10**18 + i)
    moved = {"old_owner_id": node.receiver, "new_owner_id": to, "amount": amount}
    event = {"standard": "nep141", "version": "1.0.0", "event": "ft_transfer", "data": [moved]}
    costs = [
        {"cost": cost, "cost_category": "WASM_HOST_COST", "gas_used": str(1_000_003 * (i + k))}
        for k, cost in enumerate(COSTS)
    ]
    fields = {
        "executor_id": node.receiver,
        "gas_burnt": gas,
        "logs": ["EVENT_JSON:" + json.dumps(event, separators=(",", ":"))]
        if is_call and i % 2
        else [],
        "metadata": {"contracts": [None], "gas_profile": costs if is_call else [], "version": 4},
        "receipt_ids": [child.id for child in node.children],
        "status": status(node),
        "tokens_burnt": str(gas * 10**8) if is_call else "0",
    }
    # As in a chunk of a few dozen outcomes; a chunk of thousands has proofs twice as long.
    proof = [
        {"direction": "Left" if i & 1 << k else "Right", "hash": ident("proof", i // 4, k)}
        for k in range(3 + i % 3)
    ]
    block_hash = ident("block", node.level)
    return {"block_hash": block_hash, "id": node.id, "outcome": fields, "proof": proof}


def document(total: int) -> bytes:
    """Build a response of EXPERIMENTAL_tx_status, with receipts depth first as nodes send them."""
    root = grow(total)
    stack, nodes = [root], []
    while stack:
        nodes.append(stack.pop())
        stack += reversed(nodes[-1].children)
    transaction = {
        "actions": [action(root)],
        "hash": ident("transaction"),
        "nonce": 7,
        "priority_fee": 0,
        "public_key": "ed25519:" + ident("key"),
        "receiver_id": root.receiver,
        "signature": "ed25519:" + ident("signature") + ident("signature", 2),
        "signer_id": SIGNER,
    }
    own_outcome = outcome(root)
    converted = {"receipt_ids": [root.id], "status": {"SuccessReceiptId": root.id}}
    own_outcome |= {"id": transaction["hash"], "outcome": own_outcome["outcome"] | converted}
    result = {
        "final_execution_status": "FINAL",
        "receipts": [receipt(node) for node in nodes],
        "receipts_outcome": [outcome(node) for node in nodes],
        "status": {"SuccessValue": ""},
        "transaction": transaction,
        "transaction_outcome": own_outcome,
    }
    answer = {"jsonrpc": "2.0", "result": result, "id": "bench"}
    return json.dumps(answer, separators=(",", ":")).encode()


def by_json_normalize(data: bytes) -> Any:
    """Decode everything, flatten both lists with pandas, and join them."""
    import pandas as pd

    result = json.loads(data)["result"]
    receipts = pd.json_normalize(result["receipts"])
    outcomes = pd.json_normalize(result["receipts_outcome"])
    return receipts.merge(outcomes, left_on="receipt_id", right_on="id")


def by_ledgerkit(data: bytes) -> Any:
    """Read the frame through the public class."""
    from ledgerkit.tracing.trace import Trace

    return Trace.from_json(data).receipts


CONTENDERS = {"json + json_normalize": by_json_normalize, "ledgerkit": by_ledgerkit}


def peak(name: str, data: bytes) -> int:
    """Run a contender; return the peak of memory that Python allocated, in bytes."""
    CONTENDERS[name](document(12))  # loads the libraries before counting
    tracemalloc.start()
    result = CONTENDERS[name](data)
    assert result is not None
    return tracemalloc.get_traced_memory()[1]


def small() -> None:
    """Measure small documents, and compare the times with that of their decoding."""
    from ledgerkit.api.models.transactions import decode_transaction
    from ledgerkit.tracing.trace import Trace

    data = document(SMALL)

    def decode() -> list[Any]:
        results = [decode_transaction(data, request="a document") for _ in range(TRACES)]
        return [(list(result.outcomes), list(result.bodies or ())) for result in results]

    def read() -> list[Trace]:
        return [Trace.from_json(data) for _ in range(TRACES)]

    def explain() -> float:
        traces = read()
        return cpu_seconds(lambda: [trace.explain() for trace in traces])

    ways = {"decoding": partial(cpu_seconds, decode), "from_json": partial(cpu_seconds, read)}
    median = medians(ways | {"explain": explain}, ROUNDS)
    print(f"{TRACES:,} documents of {len(data) / 1e3:.0f} kB, median of {ROUNDS} rounds")
    for name, seconds in median.items():
        print(f"{name:32} {seconds / TRACES * 1e6:8.0f} us each")
    for name, job in (("from_json", "Trace.from_json of 8 kB"), ("explain", "explain of 8 kB")):
        longer = median[name] / median["decoding"]
        claim = f"{job}: at most {AGAINST_DECODE:g} x its decoding"
        say(claim, f"{longer:.1f}", met=longer <= AGAINST_DECODE)


def large() -> None:
    """Measure a large document, and compare time and memory with json and pandas."""
    data = document(RECEIPTS)
    assert len(by_ledgerkit(data)) == RECEIPTS
    ways = {name: partial(cpu_seconds, partial(read, data)) for name, read in CONTENDERS.items()}
    median = medians(ways, ROUNDS)
    peaks = {name: apart(peak, name, data) for name in CONTENDERS}
    print(f"{RECEIPTS:,} receipts, {len(data) / 1e6:.0f} MB, median of {ROUNDS} rounds")
    for name in CONTENDERS:
        print(f"{name:32} {median[name] * 1e3:8.0f} ms {peaks[name] / 1e6:8.0f} MB peak")
    faster = median["json + json_normalize"] / median["ledgerkit"]
    claim = f"50,000 receipts: at least {AGAINST_JSON:g} x as fast as json and json_normalize"
    say(claim, f"{faster:.1f}", met=faster >= AGAINST_JSON)
    share = peaks["ledgerkit"] / peaks["json + json_normalize"]
    claim = f"50,000 receipts: at most {MEMORY:g} x the memory of json_normalize"
    say(claim, f"{share:.3f}", met=share <= MEMORY)


if __name__ == "__main__":
    small()
    large()
    finish()
