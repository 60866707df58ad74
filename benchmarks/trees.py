"""
Trees: 200,000 receipts linked, put into causal order and summed, against networkx.

Both start from the same lists, as in a decoded result: each receipt's id, the ids it created,
and which receipt waits for the data of which. They end with the causal order, each receipt's
depth, the gas of each subtree, and all edges by name, ordered by the receipts they lead to.
Prints medians of interleaved rounds in CPU time for a bushy tree and for one chain. Target: at
least 20 times as fast.

Then a whole document: from its bytes to both frames, against json and networkx. Target: at least
6 times as fast.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import networkx as nx
import numpy as np
from _measuring import cpu_seconds, medians
from _verdict import finish, say

from ledgerkit.tracing.trace import Trace
from ledgerkit.tracing.tree import graph
from ledgerkit.tracing.tree.frame_columns import edge_columns
from ledgerkit.tracing.tree.linking import DataEdges, number_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

RECEIPTS = 200_000
TREE, DOCUMENT = 20, 6
ROUNDS = 5
WIDTH = 5
GAS = 2_428_000_000_000


class Links(NamedTuple):
    """Receipt ids, the ids each receipt created, and data_ids with the rows that have them."""

    ids: list[str]
    created: list[list[str]]
    sent: list[tuple[str, int]]
    awaited: list[tuple[str, int]]


def name(number: int) -> str:
    """Return an id of the usual length; neighbours differ in their first characters."""
    return f"{number * 2_654_435_761 % 2**40:044d}"[::-1]


def bushy(total: int) -> Links:
    """Build a tree in which each receipt creates five; the fifth waits for the first."""
    ids = [name(number) for number in range(total)]
    first = range(1, total * WIDTH, WIDTH)
    created = [ids[start : start + WIDTH] for start, _ in zip(first, ids, strict=False)]
    sent = [(f"of {ids[row]}", row) for row in range(1, total - WIDTH + 1, WIDTH)]
    awaited = [(data_id, row + WIDTH - 1) for data_id, row in sent]
    return Links(ids, created, sent, awaited)


def one_chain(total: int) -> Links:
    """Build a chain in which each receipt creates the next."""
    ids = [name(number) for number in range(total)]
    return Links(ids, [[receipt_id] for receipt_id in ids[1:]] + [[]], [], [])


def by_networkx(links: Links) -> tuple[int, int, int]:
    """Build a graph, sort it, and walk through it twice."""
    created = zip(links.ids, links.created, strict=True)
    whole = nx.DiGraph()
    whole.add_nodes_from(links.ids)
    whole.add_edges_from(
        ((parent, child) for parent, children in created for child in children), kind="creation"
    )
    whole.add_edges_from(data_by_name(links), kind="data")
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


def data_by_name(links: Links) -> list[tuple[str, str]]:
    """Pair the producers of data with the consumers."""
    producers = dict(links.sent)
    return [(links.ids[producers[data_id]], links.ids[row]) for data_id, row in links.awaited]


def creators(whole: Any, one: str) -> list[str]:
    """Return the creators of a receipt."""
    return [above for above, edge in whole.pred[one].items() if edge["kind"] == "creation"]


def by_ledgerkit(links: Links) -> tuple[int, int, int]:
    """Do what `ledgerkit.tracing.tree` does after decoding."""
    ids, parents, data = linked(links)
    depth, gas = graph.depths(parents), graph.subtree_sums(parents, np.full(len(ids), GAS))
    edges = edge_columns(ids, parents, data)
    return int(depth.max()), int(gas[0]), len(edges["kind"])


def linked(links: Links) -> tuple[np.ndarray, np.ndarray, DataEdges]:
    """Link the receipts and sort them: ids, parents and data edges in causal order."""
    n_rows = len(links.ids)
    counts = np.fromiter(map(len, links.created), dtype=np.int64, count=n_rows)
    mentioned = [*links.ids[:1], *chain.from_iterable(links.created)]
    ids, [rows] = number_ids(links.ids, mentioned)
    children = rows[1:]
    creators = np.repeat(np.arange(n_rows), counts)
    parents = np.full(n_rows, -1, dtype=np.int64)
    parents[children] = creators
    rows_of_data = dict(links.sent)
    producers = np.array([rows_of_data[data_id] for data_id, _ in links.awaited], dtype=np.int64)
    consumers = np.array([row for _, row in links.awaited], dtype=np.int64)
    data_ids = np.array([data_id for data_id, _ in links.awaited], dtype=object)
    order = graph.sort((creators, children), np.array([0]), n_rows, (producers, consumers))
    position = np.empty(n_rows, dtype=np.int64)
    position[order] = np.arange(n_rows)
    above = parents[order]
    names = np.array(ids, dtype=object)
    by_consumer = np.argsort(position[consumers], kind="stable")
    ends = position[producers][by_consumer], position[consumers][by_consumer]
    data = DataEdges(*ends, data_ids[by_consumer])
    return names[order], np.where(above < 0, -1, position[above]), data


def document(links: Links) -> bytes:
    """Build a result that contains little more than the tree."""
    sent, awaited = ({row: data_id for data_id, row in data} for data in links[2:])
    outcomes, bodies = [], []
    for row, (one, children) in enumerate(zip(links.ids, links.created, strict=True)):
        fields = {"gas_burnt": GAS, "tokens_burnt": "1", "logs": [], "receipt_ids": children}
        status = {"status": {"SuccessValue": ""}, "executor_id": "a.near"}
        outcomes.append({"id": one, "block_hash": "b", "outcome": fields | status})
        call = {"FunctionCall": {"method_name": "m", "args": "e30=", "gas": 1, "deposit": "0"}}
        outputs = [{"data_id": sent[row], "receiver_id": "a.near"}] if row in sent else []
        inputs = [awaited[row]] if row in awaited else []
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
    row_of = {one: row for row, one in enumerate(outcomes)}
    bodies = [(row_of[one["receipt_id"]], one["receipt"]["Action"]) for one in result["receipts"]]
    sent = [(out["data_id"], row) for row, body in bodies for out in body["output_data_receivers"]]
    awaited = [(data_id, row) for row, body in bodies for data_id in body["input_data_ids"]]
    return by_networkx(Links(list(outcomes), list(outcomes.values()), sent, awaited))


def read_by_ledgerkit(data: bytes) -> tuple[int, int, int]:
    """Read both frames through the public class."""
    trace = Trace.from_json(data)
    receipts = trace.receipts
    return receipts["depth"].max(), receipts["subtree_gas"].iloc[0], len(trace.edges)


def judge(
    claim: str, source: Any, least: float, contenders: Mapping[str, Callable[[Any], Any]]
) -> None:
    """Time networkx and ledgerkit, whose results are equal, and compare them with the target."""
    theirs, ours = (contender(source) for contender in contenders.values())
    assert theirs == ours
    ways = {
        name: partial(cpu_seconds, partial(contender, source))
        for name, contender in contenders.items()
    }
    taken = medians(ways, ROUNDS)
    figures = "  ".join(f"{name} {time * 1e3:.0f}" for name, time in taken.items())
    print(f"{claim.partition(':')[0]}, {RECEIPTS:,} receipts, median of {ROUNDS} in ms: {figures}")
    faster = taken["networkx"] / taken["ledgerkit"]
    say(claim, f"{faster:.1f}", met=faster >= least)


def main() -> None:
    """Measure and report."""
    for name, shape in (("bushy", bushy), ("one chain", one_chain)):
        links = shape(RECEIPTS)
        claim = f"{name}: at least {TREE} x as fast as networkx"
        judge(claim, links, TREE, {"networkx": by_networkx, "ledgerkit": by_ledgerkit})
        claim = f"{name}: a document's frames at least {DOCUMENT} x as fast as json and networkx"
        readers = {"networkx": read_by_json, "ledgerkit": read_by_ledgerkit}
        judge(claim, document(links), DOCUMENT, readers)
    finish()


if __name__ == "__main__":
    main()
