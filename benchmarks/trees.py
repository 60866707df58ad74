"""
Trees: 200,000 receipts linked, put into causal order and summed, against graph libraries.

All start from the same lists, as in a decoded result: each receipt's id, the ids it created,
and which receipt waits for the data of which. networkx and ledgerkit end with the causal order,
each receipt's depth, the gas of each subtree, and all edges by name, ordered by the receipts they
lead to. igraph and rustworkx, whose nodes are numbers, link the ids with a dict and end with the
order alone. One limit are the depths alone, by pointer jumping, from row numbers; another is what
the ids alone take: each is hashed once, listed, and written into the edges, and nothing is looked
up. Prints medians of interleaved rounds in CPU time for a bushy tree and for one chain, and the
time by receipt from 10^3 to 10^6 receipts. Targets: at least 20 times as fast as networkx, and
linear: four times the receipts take at most 4.6 times as long.

Finally a whole document: from its bytes to both frames, against json and networkx. Target: at
least 6 times as fast.
"""

from __future__ import annotations

import gc
import json
import statistics
import time
from importlib import import_module
from itertools import chain
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from _verdict import finish, say

from ledgerkit.api.models.transactions import decode_transaction
from ledgerkit.tracing.trace import Trace
from ledgerkit.tracing.tree import graph
from ledgerkit.tracing.tree.frame_columns import edge_columns
from ledgerkit.tracing.tree.linking import DataEdges, find_rows

RECEIPTS = 200_000
AGAINST_NETWORKX = 20
LINEAR = 4.6
SIZES = (10**3, 10**4, 10**5, 10**6)
DOCUMENT = 6
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
    ids, parents, depth, data = linked(links)
    gas = graph.subtree_sums(parents, np.full(len(ids), GAS))
    edges = edge_columns(ids, parents, data)
    return int(depth.max()), int(gas[0]), len(edges["kind"])


def linked(links: Links) -> tuple[np.ndarray, np.ndarray, np.ndarray, DataEdges]:
    """Link the receipts and sort them: ids, parents, depths and data edges in causal order."""
    n_rows = len(links.ids)
    row_of = dict(zip(links.ids, range(n_rows), strict=True))
    counts = np.fromiter(map(len, links.created), dtype=np.int64, count=n_rows)
    children = find_rows(row_of, chain.from_iterable(filter(None, links.created)))
    creators = np.repeat(np.arange(n_rows), counts)
    parents = np.full(n_rows, -1, dtype=np.int64)
    parents[children] = creators
    rows_of_data = dict(links.sent)
    producers = np.array([rows_of_data[data_id] for data_id, _ in links.awaited], dtype=np.int64)
    consumers = np.array([row for _, row in links.awaited], dtype=np.int64)
    data_ids = np.array([data_id for data_id, _ in links.awaited], dtype=object)
    depths = graph.depths(parents)
    order = graph.sort((creators, children), np.array([0]), depths, (producers, consumers))
    position = np.empty(n_rows, dtype=np.int64)
    position[order] = np.arange(n_rows)
    above = parents[order]
    names = np.array(list(row_of), dtype=object)
    data = DataEdges(position[producers], position[consumers], data_ids).sort()
    return names[order], np.where(above < 0, -1, position[above]), depths[order], data


def by_library(library: str) -> Any:
    """Return a contender that links with a dict and sorts with a library of C or Rust."""
    module = import_module(library)

    def link_and_sort(links: Links) -> Any:
        row = dict(zip(links.ids, range(len(links.ids)), strict=True))
        created = zip(links.ids, links.created, strict=True)
        edges = [(row[parent], row[child]) for parent, children in created for child in children]
        edges += [(row[producer], row[consumer]) for producer, consumer in data_by_name(links)]
        if library == "igraph":
            return module.Graph(n=len(row), edges=edges, directed=True).topological_sorting()
        whole = module.PyDiGraph()
        whole.add_nodes_from(range(len(row)))
        whole.extend_from_edge_list(edges)
        return module.topological_sort(whole)

    return link_and_sort


def depths_alone(links: Links) -> Any:
    """Return the limit: the depths by pointer jumping, from the row numbers of the creators."""
    row = dict(zip(links.ids, range(len(links.ids)), strict=True))
    parents = np.full(len(row) + 1, len(row))
    for parent, children in zip(links.ids, links.created, strict=True):
        parents[[row[child] for child in children]] = row[parent]

    def jump(_: Links) -> int:
        above, depths = parents, (parents < len(row)).astype(np.int64)
        while above.min() < len(row):
            depths = depths + depths[above]
            above = above[above]
        return int(depths.max())

    return jump


def ids_alone(links: Links) -> Any:
    """Return the limit: hash and list all ids and name the edges, whose rows are known."""
    _, parents, _, data = linked(links)
    creators = np.append(parents[parents >= 0], data.producers)
    children = np.append(np.flatnonzero(parents >= 0), data.consumers)

    def name_edges(links: Links) -> int:
        n_rows = len(links.ids)
        hashes = np.fromiter(map(hash, links.ids), dtype=np.int64, count=n_rows)
        counts = np.fromiter(map(len, links.created), dtype=np.int64, count=n_rows)
        created_ids = list(chain.from_iterable(filter(None, links.created)))
        ids = np.fromiter(links.ids, dtype=object, count=n_rows)
        return sum(map(len, (hashes, counts, created_ids, ids[creators], ids[children])))

    return name_edges


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


def decode_alone(data: bytes) -> None:
    """Decode what a trace reads, and drop it; the garbage collector is paused as in ledgerkit."""
    gc.disable()
    result = decode_transaction(data, request="a document")
    for part in (result.outcomes, result.bodies):
        for _ in part or ():
            pass
    gc.enable()


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


def medians(contenders: dict[str, Any], links: Any) -> dict[str, float]:
    """Time contenders in interleaved rounds."""
    rounds = [
        [seconds(contender, links) for contender in contenders.values()] for _ in range(ROUNDS)
    ]
    taken = zip(contenders, zip(*rounds, strict=True), strict=True)
    return {name: statistics.median(times) for name, times in taken}


def rivals() -> dict[str, Any]:
    """Return the installed libraries, and print those that are not."""
    ways = {}
    for library in ("igraph", "rustworkx"):
        try:
            ways[library] = by_library(library)
        except ImportError as error:
            print(f"{library}: not installed ({error})")
    return ways


def main() -> None:
    """Measure and report."""
    others = rivals()
    print(f"{RECEIPTS:,} receipts, median of {ROUNDS} rounds, in ms")
    for shape in (bushy, one_chain):
        links = shape(RECEIPTS)
        assert by_networkx(links) == by_ledgerkit(links)
        contenders = {"networkx": by_networkx, "ledgerkit": by_ledgerkit}
        limits = {"depths": depths_alone(links), "ids": ids_alone(links)}
        taken = medians(limits | others | contenders, links)
        figures = "  ".join(f"{name} {time * 1e3:.0f}" for name, time in taken.items())
        print(f"{shape.__name__:10} {figures}")
        name = shape.__name__.replace("_", " ")
        claim = f"{name}: at least {AGAINST_NETWORKX} x as fast as networkx"
        faster = taken["networkx"] / taken["ledgerkit"]
        say(claim, f"{faster:.1f}", met=faster >= AGAINST_NETWORKX)
        judge_growth(shape)
    for shape in (bushy, one_chain):
        judge_document(shape)
    finish()


def judge_growth(shape: Any) -> None:
    """Time trees of several sizes; compare one with a tree of four times the receipts."""
    name = shape.__name__.replace("_", " ")
    by_size = {size: medians({"": by_ledgerkit}, shape(size))[""] for size in SIZES}
    figures = "  ".join(f"{size:,}: {time / size * 1e6:.2f}" for size, time in by_size.items())
    print(f"{name}, us a receipt  {figures}")
    quarter, whole = shape(RECEIPTS // 4), shape(RECEIPTS)
    rounds = [(seconds(by_ledgerkit, quarter), seconds(by_ledgerkit, whole)) for _ in range(ROUNDS)]
    short, long = map(statistics.median, zip(*rounds, strict=True))
    claim = f"{name}: four times the receipts take at most {LINEAR:g} times as long"
    say(claim, f"{long / short:.1f}", met=long / short <= LINEAR)


def judge_document(shape: Any) -> None:
    """Time a whole document, from its bytes to both frames."""
    data = document(shape(RECEIPTS))
    assert read_by_json(data) == read_by_ledgerkit(data)
    contenders = {"decode": decode_alone, "networkx": read_by_json, "ledgerkit": read_by_ledgerkit}
    taken = medians(contenders, data)
    name = shape.__name__.replace("_", " ")
    print(
        f"{name} as a document of {len(data) / 1e6:.0f} MB: decoding alone "
        f"{taken['decode'] * 1e3:.0f}, json and networkx {taken['networkx'] * 1e3:.0f}, "
        f"the two frames {taken['ledgerkit'] * 1e3:.0f}"
    )
    faster = taken["networkx"] / taken["ledgerkit"]
    claim = f"{name}: a document's frames at least {DOCUMENT} x as fast as json and networkx"
    say(claim, f"{faster:.1f}", met=faster >= DOCUMENT)


if __name__ == "__main__":
    main()
