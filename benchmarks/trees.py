"""
Trees: 200,000 receipts linked, put into causal order and summed, against networkx.

Both start from the same lists, as in a decoded result: each receipt's id, the ids it created,
and which receipt waits for the data of which. Both end with the causal order, each receipt's
depth, the gas of each subtree, and all edges by name, ordered by the receipts they lead to.
Prints medians of rounds in CPU time for a bushy tree and for one chain. Targets: at least 18
times as fast as networkx, 5 times for the chain, and linear: four times the receipts take at
most six times as long.

Finally a whole document: from its bytes to both frames, against json and networkx.
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


class Links(NamedTuple):
    """Receipt ids, the ids each receipt created, and pairs of data producer and consumer."""

    ids: list[str]
    created: list[list[str]]
    data: list[tuple[str, str]]


def name(number: int) -> str:
    """Return an id of the usual length; neighbours differ in their first characters."""
    return f"{number * 2_654_435_761 % 2**40:044d}"[::-1]


def bushy(total: int) -> Links:
    """Build a tree in which each receipt creates five; the fifth waits for the first."""
    ids = [name(number) for number in range(total)]
    first = range(1, total * WIDTH, WIDTH)
    created = [ids[start : start + WIDTH] for start, _ in zip(first, ids, strict=False)]
    data = [(children[0], children[-1]) for children in created if len(children) == WIDTH]
    return Links(ids, created, data)


def one_chain(total: int) -> Links:
    """Build a chain in which each receipt creates the next."""
    ids = [name(number) for number in range(total)]
    return Links(ids, [[receipt_id] for receipt_id in ids[1:]] + [[]], [])


def by_networkx(links: Links) -> tuple[int, int, int]:
    """Build a graph, sort it, and walk through it twice."""
    created = zip(links.ids, links.created, strict=True)
    whole = nx.DiGraph()
    whole.add_nodes_from(links.ids)
    whole.add_edges_from(
        ((parent, child) for parent, children in created for child in children), kind="creation"
    )
    whole.add_edges_from(links.data, kind="data")
    order = list(nx.topological_sort(whole))
    depth: dict[str, int] = {}
    for one in order:
        above = creators(whole, one)
        depth[one] = depth[above[0]] + 1 if above else 0
    gas = dict.fromkeys(links.ids, GAS)
    for one in reversed(order):
        for creator in creators(whole, one):
            gas[creator] += gas[one]
    place = {one: at for at, one in enumerate(order)}
    edges = sorted(whole.edges(data="kind"), key=lambda edge: place[edge[1]])
    return max(depth.values()), gas[links.ids[0]], len(edges)


def creators(whole: Any, one: str) -> list[str]:
    """Return the creators of a receipt."""
    return [above for above, edge in whole.pred[one].items() if edge["kind"] == "creation"]


def by_ledgerkit(links: Links) -> tuple[int, int, int]:
    """Compute the same with arrays, while the garbage collector is paused as in ledgerkit."""
    with collector_paused():
        return arranged(links)


def arranged(links: Links) -> tuple[int, int, int]:
    """Do what `ledgerkit.tracing.tree` does after decoding."""
    n_rows = len(links.ids)
    names = IdIndex(links.ids)
    counts = np.fromiter(map(len, links.created), dtype=np.int64, count=n_rows)
    child_ids = chain.from_iterable(links.created)
    children = names.rows(np.fromiter(child_ids, dtype=object, count=int(counts.sum())))
    creation = (np.repeat(np.arange(n_rows), counts), children)
    producers, consumers = (names.rows(list(map(itemgetter(side), links.data))) for side in (0, 1))
    tree = graph.arrange(creation, [0], n_rows, data=(producers, consumers))
    position = np.empty(n_rows, dtype=np.int64)
    position[tree.order] = np.arange(n_rows)
    above = tree.parents[tree.order]
    parents = np.where(above < 0, -1, position[above])
    depth = graph.depths(parents)
    gas = graph.subtree_sums(parents, np.full(n_rows, GAS), depth)
    ids = names.id_array()[tree.order]
    waiting = position[consumers[tree.is_kept]]
    by_consumer = np.argsort(waiting, kind="stable")
    feeding = position[producers[tree.is_kept]][by_consumer]
    names_of_data = np.full(len(feeding), "data", dtype=object)
    edges = edge_columns(ids, parents, DataEdges(feeding, waiting[by_consumer], names_of_data))
    return int(depth.max()), int(gas[0]), len(edges["kind"])


def document(links: Links) -> bytes:
    """Build a result that contains little more than the tree."""
    waits = {consumer: producer for producer, consumer in links.data}
    feeds = dict(links.data)
    outcomes, bodies = [], []
    for one, children in zip(links.ids, links.created, strict=True):
        fields = {"gas_burnt": GAS, "tokens_burnt": "1", "logs": [], "receipt_ids": children}
        status = {"status": {"SuccessValue": ""}, "executor_id": "a.near"}
        outcomes.append({"id": one, "block_hash": "b", "outcome": fields | status})
        call = {"FunctionCall": {"method_name": "m", "args": "e30=", "gas": 1, "deposit": "0"}}
        outputs = [{"data_id": f"of {one}", "receiver_id": "a.near"}] if one in feeds else []
        inputs = [f"of {waits[one]}"] if one in waits else []
        action_receipt = {"signer_id": "s.near", "actions": [call], "input_data_ids": inputs}
        body = {"receipt_id": one, "predecessor_id": "a.near", "receiver_id": "a.near"}
        bodies.append(
            body | {"receipt": {"Action": action_receipt | {"output_data_receivers": outputs}}}
        )
    first = {
        "id": "T",
        "outcome": {"receipt_ids": links.ids[:1], "status": {"SuccessReceiptId": links.ids[0]}},
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
    return by_networkx(Links(list(outcomes), list(outcomes.values()), data_edges))


def read_by_ledgerkit(data: bytes) -> tuple[int, int, int]:
    """Read both frames through the public class."""
    trace = Trace.from_json(data)
    receipts = trace.receipts
    return receipts["depth"].max(), receipts["subtree_gas"].iloc[0], len(trace.edges)


def seconds(contender: Any, links: Any) -> float:
    """Return a contender's seconds of CPU time."""
    gc.collect()
    start = time.process_time()
    contender(links)
    return time.process_time() - start


def medians(contenders: tuple[Any, ...], links: Any) -> list[float]:
    """Check that the contenders agree, then time them in interleaved rounds."""
    answers = {contender(links) for contender in contenders}
    assert len(answers) == 1, answers
    rounds = [[seconds(contender, links) for contender in contenders] for _ in range(ROUNDS)]
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
    """Compare a shape's figures with their targets."""
    claim = f"{shape}: at least {target} x as fast as networkx"
    say(claim, f"{faster:.1f}", met=faster >= target)
    claim = f"{shape}: four times the receipts take at most {LINEAR:g} times as long"
    say(claim, f"{longer:.1f}", met=longer <= LINEAR)


if __name__ == "__main__":
    main()
