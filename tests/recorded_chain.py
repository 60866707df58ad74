"""
A chain made of copies of one recorded block, and a node that answers from its documents.

The receipts of the recorded block come from transactions that were not recorded, and those that it
creates ran later. In the chain of copies each transaction leads to a receipt of the next copy, and
that receipt to others of the copy after it, so that each tree is whole. Each copy has its own ids.
"""

from __future__ import annotations

import copy
import hashlib
import json
from typing import TYPE_CHECKING, Any

import base58

from tests import loopback

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tests.loopback import Reply

Json = Any
_COPIES = 2  # that a tree spans after the copy with its transaction


def chain_of(document: Json, n_blocks: int) -> dict[int, Json]:
    """
    Return documents of consecutive blocks, by height.

    The trees of the last two are not whole, and the receipts of the first two belong to
    transactions that are not there.
    """
    first = document["block"]["header"]["height"]
    copies = [_renamed(document, at) for at in range(n_blocks)]
    for at, each in enumerate(copies):
        header = each["block"]["header"]
        header["height"], header["prev_height"] = first + at, first + at - 1
        if at:
            header["prev_hash"] = copies[at - 1]["block"]["header"]["hash"]
        for chunk in [*each["block"]["chunks"], *(chunk["header"] for chunk in _chunks(each))]:
            chunk["height_created"] = chunk["height_included"] = first + at
    splits = [_split(each) for each in copies]
    for at in range(n_blocks - _COPIES):
        _link(copies[at], splits[at + 1][0], splits[at + 2][1])
    return {first + at: each for at, each in enumerate(copies)}


def _renamed(document: Json, at: int) -> Json:
    """Copy a document; give its block, chunks, transactions, receipts and data other ids."""
    ids = set(_ids(document))

    def rename(value: Json) -> Json:
        if isinstance(value, dict):
            return {name: rename(member) for name, member in value.items()}
        if isinstance(value, list):
            return [rename(item) for item in value]
        if isinstance(value, str) and value in ids:
            digest = hashlib.sha256(f"{at} {value}".encode()).digest()
            return base58.b58encode(digest).decode()
        return value

    return rename(copy.deepcopy(document))


def _ids(document: Json) -> Iterator[str]:
    """List all ids of a document."""
    yield document["block"]["header"]["hash"]
    for header in document["block"]["chunks"]:
        yield header["chunk_hash"]
    for item in _transactions(document):
        yield item["transaction"]["hash"]
        yield from item["outcome"]["execution_outcome"]["outcome"]["receipt_ids"]
    for item in _executions(document):
        body = item["receipt"]["receipt"]["Action"]
        yield item["receipt"]["receipt_id"]
        yield item["tx_hash"]
        yield from item["execution_outcome"]["outcome"]["receipt_ids"]
        yield from body["input_data_ids"]
        yield from (each["data_id"] for each in body["output_data_receivers"])
    for chunk in _chunks(document):
        for receipt in chunk["receipts"]:
            yield receipt["receipt_id"]


def _chunks(document: Json) -> Iterator[Json]:
    """List the new chunks of a document."""
    return (shard["chunk"] for shard in document["shards"] if shard["chunk"])


def _transactions(document: Json) -> Iterator[Json]:
    """List the transactions of a document."""
    return (item for chunk in _chunks(document) for item in chunk["transactions"])


def _executions(document: Json) -> Iterator[Json]:
    """List the receipts that a document's block executed."""
    return (item for shard in document["shards"] for item in shard["receipt_execution_outcomes"])


def _link(block: Json, roots: list[Json], children: list[Json]) -> None:
    """Make the transactions of a block the origin of receipts of the two blocks after it."""
    for at, item in enumerate(_transactions(block)):
        root, own = roots[at], children[at :: len(roots)]
        outcome = item["outcome"]["execution_outcome"]["outcome"]
        root_id = root["receipt"]["receipt_id"]
        outcome["receipt_ids"], outcome["status"] = [root_id], {"SuccessReceiptId": root_id}
        for each in [root, *own]:
            each["tx_hash"] = item["transaction"]["hash"]
        _adopt(root, own)


def _split(document: Json) -> tuple[list[Json], list[Json]]:
    """Return the receipts that transactions create, one each, and those that receipts create."""
    executions = sorted(_executions(document), key=_has_no_data)
    n_roots = sum(1 for _ in _transactions(document))
    roots, children = executions[:n_roots], executions[n_roots:]
    return roots, sorted(children, key=lambda item: not _body(item)["input_data_ids"])


def _has_no_data(item: Json) -> bool:
    """Return True for a receipt whose result goes to no receipt that it creates."""
    is_success = "SuccessReceiptId" in item["execution_outcome"]["outcome"]["status"]
    return not (_body(item)["output_data_receivers"] or is_success)


def _body(item: Json) -> Json:
    """Return the body of an executed receipt."""
    return item["receipt"]["receipt"]["Action"]


def _adopt(root: Json, children: list[Json]) -> None:
    """Make a receipt the creator of others; the first waits for its data if it waits for any."""
    outcome = root["execution_outcome"]["outcome"]
    outcome["receipt_ids"] = [child["receipt"]["receipt_id"] for child in children]
    if "SuccessReceiptId" in outcome["status"]:
        outcome["status"] = {"SuccessReceiptId": outcome["receipt_ids"][0]}
    for child in children:
        own = child["execution_outcome"]["outcome"]
        own["receipt_ids"] = []
        if "SuccessReceiptId" in own["status"]:
            own["status"] = {"SuccessValue": ""}
    inputs = _body(children[0])["input_data_ids"]
    for receiver, data_id in zip(_body(root)["output_data_receivers"], inputs, strict=False):
        receiver["data_id"] = data_id


# The node ----------------------------------------------------------------------------------

# The rules of mainnet at the recorded block, so far as results of transactions need them.
# Source: nearcore 2.6, core/primitives/src/shard_layout.rs, get_simple_nightshade_layout_v4, and
# core/parameters/res/runtime_configs/parameters.yaml.
PROTOCOL_CONFIG = {
    "protocol_version": 77,
    "shard_layout": {
        "V2": {
            "boundary_accounts": [
                "aurora",
                "aurora-0",
                "earn.kaiching",
                "game.hot.tg",
                "game.hot.tg-0",
                "kkuuue2akv_1630967379.near",
                "tge-lockup.sweat",
            ],
            "shard_ids": [0, 1, 8, 9, 6, 7, 4, 5],
        }
    },
    "runtime_config": {
        "transaction_costs": {
            "burnt_gas_reward": [3, 10],
            "action_receipt_creation_config": {"execution": 108_059_500_000},
            "action_creation_config": {
                "function_call_cost": {"execution": 780_000_000_000},
                "function_call_cost_per_byte": {"execution": 2_235_934},
            },
        }
    },
}


class RecordedNode:
    """
    The handler of a JSON-RPC server that knows the blocks of documents.

    It answers about blocks, chunks, transactions and the rules of protocol 77.
    """

    def __init__(self, documents: Mapping[int, Json], final: int) -> None:
        self.blocks = {h: document["block"] for h, document in documents.items()}
        self.blocks |= {
            each["block"]["header"]["hash"]: each["block"] for each in documents.values()
        }
        self.final = final
        self.chunks: dict[str, Json] = {}
        self.transactions: dict[str, Json] = {}
        self.executions: dict[str, Json] = {}
        for height, document in documents.items():
            block = document["block"]
            self.blocks[height] = self.blocks[block["header"]["hash"]] = block
            for chunk in _chunks(document):
                self._add_chunk(chunk)
            for item in _executions(document):
                self.executions[item["receipt"]["receipt_id"]] = item

    def _add_chunk(self, chunk: Json) -> None:
        """Add a chunk in the form of a node, and its transactions."""
        self.chunks[chunk["header"]["chunk_hash"]] = {
            **chunk,
            "transactions": [item["transaction"] for item in chunk["transactions"]],
        }
        for item in chunk["transactions"]:
            self.transactions[item["transaction"]["hash"]] = item

    def __call__(self, _method: str, _path: str, _headers: object, body: bytes) -> Reply:
        """Answer a request."""
        request = json.loads(body)
        params = request["params"]
        answers = {
            "block": lambda: self.blocks.get(params.get("block_id", self.final)),
            "chunk": lambda: self.chunks.get(params.get("chunk_id")),
            "EXPERIMENTAL_tx_status": lambda: self._status(params["tx_hash"]),
            "EXPERIMENTAL_protocol_config": lambda: PROTOCOL_CONFIG,
        }
        answer = answers[request["method"]]() if request["method"] in answers else None
        if answer is None and request["method"] == "block":
            return loopback.failure("UNKNOWN_BLOCK")
        if answer is None:
            return loopback.failure("METHOD_NOT_FOUND", code=-32601)
        return loopback.result(answer)

    def _status(self, tx_hash: str) -> Json:
        """Return the status of a transaction whose tree is whole."""
        item = self.transactions[tx_hash]
        conversion = item["outcome"]["execution_outcome"]
        executed = list(self._tree(conversion["outcome"]["receipt_ids"]))
        by_id = {each["receipt"]["receipt_id"]: each for each in executed}
        return {
            "final_execution_status": "FINAL",
            "status": _final_status(conversion, by_id),
            "transaction": item["transaction"],
            "transaction_outcome": conversion,
            "receipts_outcome": [each["execution_outcome"] for each in executed],
            "receipts": [each["receipt"] for each in executed],
        }

    def _tree(self, receipt_ids: Iterable[str]) -> Iterator[Json]:
        """List receipts, each before those that it created."""
        for receipt_id in receipt_ids:
            item = self.executions[receipt_id]
            yield item
            yield from self._tree(item["execution_outcome"]["outcome"]["receipt_ids"])


def _final_status(conversion: Json, executed: Mapping[str, Json]) -> Json:
    """Return the status of the receipt that has the transaction's result."""
    status = conversion["outcome"]["status"]
    while "SuccessReceiptId" in status:
        status = executed[status["SuccessReceiptId"]]["execution_outcome"]["outcome"]["status"]
    return status
