"""
Trees: 200,000 receipts linked, put into causal order and summed, against networkx.

Both begin with the same lists, as a decoded result holds them: each receipt's id and the ids
that it made, and which receipt waits for whose data. Both end with the causal order, each
receipt's depth, the gas of each subtree, and all edges by name in the order of the receipts
they lead to. Prints medians of rounds in CPU time for a bushy tree and for one chain. Targets:
at least 18 times as fast as networkx, 5 times for the chain, and linear: four times the
receipts take at most six times as long.

Last comes a whole document: from its bytes to both frames, against json and networkx.
"""

from __future__ import annotations

import gc
import json
import statistics
import time
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from _verdict import finish, say

from ledgerkit.api.models.transactions import collector_paused
from ledgerkit.tracing.trace import Trace
from ledgerkit.tracing.tree import graph
from ledgerkit.tracing.tree.frame_columns import edge_columns
from ledgerkit.tracing.tree.id_index import IdIndex
from ledgerkit.tracing.tree.linking import DataEdges

RECEIPTS = 200_000
LINEAR = 6.0
ROUNDS = 5
WIDTH = 5
GAS = 2_428_000_000_000


class Told(NamedTuple):
    """What a result tells of who made what: ids, ids made, and producers with their consumers."""

    ids: list[str]
    made: list[list[str]]
    data: list[tuple[str, str]]


def name(number: int) -> str:
    """Make an id of the usual length, that does not begin like its neighbours'."""
    return f"{number * 2_654_435_761 % 2**40:044d}"[::-1]


def bushy(total: int) -> Told:
    """Let each receipt make five; the fifth waits for the first."""
    ids = [name(number) for number in range(total)]
    first = range(1, total * WIDTH, WIDTH)
    made = [ids[start : start + WIDTH] for start, _ in zip(first, ids, strict=False)]
    return Told(ids, made, [(own[0], own[-1]) for own in made if len(own) == WIDTH])


def one_chain(total: int) -> Told:
    """Let each receipt make the next."""
    ids = [name(number) for number in range(total)]
    return Told(ids, [[one] for one in ids[1:]] + [[]], [])


def by_networkx(told: Told) -> tuple[int, int, int]:
    """Build a graph, sort it, and go through it twice."""
    made = zip(told.ids, told.made, strict=True)
    whole = nx.DiGraph()
    whole.add_nodes_from(told.ids)
    whole.add_edges_from(((one, child) for one, own in made for child in own), kind="creation")
    whole.add_edges_from(told.data, kind="data")
    order = list(nx.topological_sort(whole))
    depth: dict[str, int] = {}
    for one in order:
        above = creators(whole, one)
        depth[one] = depth[above[0]] + 1 if above else 0
    gas = dict.fromkeys(told.ids, GAS)
    for one in reversed(order):
        for creator in creators(whole, one):
            gas[creator] += gas[one]
    place = {one: at for at, one in enumerate(order)}
    edges = sorted(whole.edges(data="kind"), key=lambda edge: place[edge[1]])
    return max(depth.values()), gas[told.ids[0]], len(edges)


def creators(whole: Any, one: str) -> list[str]:
    """List who made a receipt."""
    return [above for above, edge in whole.pred[one].items() if edge["kind"] == "creation"]


def by_ledgerkit(told: Told) -> tuple[int, int, int]:
    """Turn ids into rows, and do the same with arrays, the collector paused as it always is."""
    with collector_paused():
        return arranged(told)


def arranged(told: Told) -> tuple[int, int, int]:
    """Do what `ledgerkit.tracing.tree` does once everything is decoded."""
    n_rows = len(told.ids)
    names = IdIndex(told.ids)
    counts = np.fromiter(map(len, told.made), dtype=np.int64, count=n_rows)
    listed = chain.from_iterable(told.made)
    children = names.rows(np.fromiter(listed, dtype=object, count=int(counts.sum())))
    created = (np.repeat(np.arange(n_rows), counts), children)
    producers, consumers = (names.rows(list(map(itemgetter(side), told.data))) for side in (0, 1))
    found = graph.arrange(created, [0], n_rows, data=(producers, consumers))
    position = np.empty(n_rows, dtype=np.int64)
    position[found.order] = np.arange(n_rows)
    above = found.parents[found.order]
    parents = np.where(above < 0, -1, position[above])
    depth = graph.depths(parents)
    gas = graph.subtree_sums(parents, np.full(n_rows, GAS), depth)
    ids = names.id_array()[found.order]
    waiting = position[consumers[found.is_kept]]
    by_consumer = np.argsort(waiting, kind="stable")
    feeding = position[producers[found.is_kept]][by_consumer]
    names_of_data = np.full(len(feeding), "data", dtype=object)
    edges = edge_columns(ids, parents, DataEdges(feeding, waiting[by_consumer], names_of_data))
    return int(depth.max()), int(gas[0]), len(edges["kind"])


def document(told: Told) -> bytes:
    """Write the result with little in it but the tree."""
    waits = {consumer: producer for producer, consumer in told.data}
    feeds = dict(told.data)
    outcomes, bodies = [], []
    for one, own in zip(told.ids, told.made, strict=True):
        ended = {"gas_burnt": GAS, "tokens_burnt": "1", "logs": [], "receipt_ids": own}
        status = {"status": {"SuccessValue": ""}, "executor_id": "a.near"}
        outcomes.append({"id": one, "block_hash": "b", "outcome": ended | status})
        call = {"FunctionCall": {"method_name": "m", "args": "e30=", "gas": 1, "deposit": "0"}}
        outputs = [{"data_id": f"of {one}", "receiver_id": "a.near"}] if one in feeds else []
        inputs = [f"of {waits[one]}"] if one in waits else []
        asked = {"signer_id": "s.near", "actions": [call], "input_data_ids": inputs}
        body = {"receipt_id": one, "predecessor_id": "a.near", "receiver_id": "a.near"}
        bodies.append(body | {"receipt": {"Action": asked | {"output_data_receivers": outputs}}})
    first = {
        "id": "T",
        "outcome": {"receipt_ids": told.ids[:1], "status": {"SuccessReceiptId": told.ids[0]}},
    }
    result = {"transaction_outcome": first, "receipts_outcome": outcomes, "receipts": bodies}
    return json.dumps(result).encode()


def read_by_json(data: bytes) -> tuple[int, int, int]:
    """Decode with the standard library, then use networkx."""
    result = json.loads(data)
    outcomes = {one["id"]: one["outcome"]["receipt_ids"] for one in result["receipts_outcome"]}
    bodies = [(one["receipt_id"], one["receipt"]["Action"]) for one in result["receipts"]]
    producers = {
        out["data_id"]: one for one, body in bodies for out in body["output_data_receivers"]
    }
    data_edges = [(producers[d], one) for one, body in bodies for d in body["input_data_ids"]]
    return by_networkx(Told(list(outcomes), list(outcomes.values()), data_edges))


def read_by_ledgerkit(data: bytes) -> tuple[int, int, int]:
    """Take the public path to both frames."""
    found = Trace.from_json(data)
    receipts = found.receipts
    return receipts["depth"].max(), receipts["subtree_gas"].iloc[0], len(found.edges)


def seconds(contender: Any, told: Any) -> float:
    """Time one contender."""
    gc.collect()
    start = time.process_time()
    contender(told)
    return time.process_time() - start


def medians(contenders: tuple[Any, ...], told: Any) -> list[float]:
    """Time contenders in interleaved rounds, after they agreed on the answer."""
    answers = {contender(told) for contender in contenders}
    assert len(answers) == 1, answers
    rounds = [[seconds(contender, told) for contender in contenders] for _ in range(ROUNDS)]
    return [statistics.median(taken) for taken in zip(*rounds, strict=True)]


def main() -> None:
    """Measure and report."""
    print(f"{RECEIPTS:,} receipts, median of {ROUNDS} rounds, in ms")
    for shape, target in ((bushy, 18), (one_chain, 5)):
        theirs, ours = medians((by_networkx, by_ledgerkit), shape(RECEIPTS))
        (quarter,) = medians((by_ledgerkit,), shape(RECEIPTS // 4))
        print(f"{shape.__name__:10} networkx {theirs * 1e3:6.0f}  ledgerkit {ours * 1e3:6.0f}")
        judge(shape.__name__.replace("_", " "), theirs / ours, target, ours / quarter)
    for shape in (bushy, one_chain):
        data = document(shape(RECEIPTS))
        theirs, ours = medians((read_by_json, read_by_ledgerkit), data)
        print(
            f"{shape.__name__:10} as a document of {len(data) / 1e6:.0f} MB: json and networkx ",
            end="",
        )
        print(f"{theirs * 1e3:.0f}, the two frames {ours * 1e3:.0f}: {theirs / ours:.1f} times")
    finish()


def judge(shape: str, faster: float, target: float, longer: float) -> None:
    """Hold a shape's figures against their targets."""
    claim = f"{shape}: at least {target} x as fast as networkx"
    say(claim, f"{faster:.1f}", met=faster >= target)
    claim = f"{shape}: four times the receipts take at most {LINEAR:g} times as long"
    say(claim, f"{longer:.1f}", met=longer <= LINEAR)


if __name__ == "__main__":
    main()
