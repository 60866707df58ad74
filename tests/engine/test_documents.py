"""Transactions by their hashes alone, from recorded documents behind a real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.api import services
from ledgerkit.block_data.protocol_rules import rules_by_height
from ledgerkit.block_data.transaction_documents import stream_documents
from ledgerkit.ledger import Ledger
from ledgerkit.transport.networks import Network
from ledgerkit.transport.settings import Cache, Settings
from tests.loopback import Reply, as_json, failure, result, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.loopback import Server

SAMPLES = Path(__file__).parents[3] / "shared/wire/samples/txapi"
NAMES = ("delegate_small", "delegate_cross_contract", "intents_execute")
UNKNOWN = "1" * 32


@pytest.fixture(scope="module")
def recorded() -> dict[str, bytes]:
    """Read the recorded documents, by hash, as bytes that no decoder has seen."""
    if not SAMPLES.exists():
        pytest.skip("the recorded answers are not here")
    texts = [(SAMPLES / f"{name}.json").read_text(encoding="utf-8") for name in NAMES]
    documents = [json.loads(text)["transactions"][0] for text in texts]
    return {
        document["transaction"]["hash"]: json.dumps(document).encode() for document in documents
    }


class Service:
    """The Transactions API with some documents, which it sends newest first."""

    def __init__(self, documents: Mapping[str, bytes]) -> None:
        self.documents = dict(documents)

    def __call__(self, method: str, path: str, _: object, body: bytes) -> Reply:
        """Answer as the server's source does: unknown hashes are left out, in no promised order."""
        assert (method, path) == ("POST", "/v0/transactions")
        hashes = json.loads(body)["tx_hashes"]
        if len(hashes) > 20:
            message = "Too many transactions requested. Limit is 20"
            return as_json({"error": "Bad request", "message": message}, 400)
        documents = [self.documents[key] for key in reversed(hashes) if key in self.documents]
        return Reply(200, b'{"transactions": [' + b", ".join(documents) + b"]}")


@pytest.fixture
def service(recorded: dict[str, bytes]) -> Service:
    return Service(recorded)


@pytest.fixture
def server(service: Service) -> Iterator[Server]:
    with serve(service) as running:
        yield running


def read(ledger: Ledger, hashes: list[str]) -> dict[str, Any]:
    return dict(pair for batch in stream_documents(ledger, hashes) for pair in batch)


def connect(server: Server, **options: Any) -> Ledger:
    """Connect to a network that has a node and a Transactions API."""
    network = Network("lab", server.url, None, None, transactions_url=server.url)
    retries = lk.RetryPolicy(attempts=1, total_s=20.0)
    return Ledger(Settings(**{"network": network, "retries": retries, **options}))


def test_documents_come_in_the_order_of_the_hashes(
    server: Server, recorded: dict[str, bytes]
) -> None:
    """An unknown hash has its error in its place, and a repeated one is read once."""
    first, second, third = recorded
    with connect(server) as ledger:
        documents = read(ledger, [third, UNKNOWN, first, third, second])

    assert list(documents) == [third, UNKNOWN, first, second]
    assert isinstance(documents[UNKNOWN], errors.UnknownTransactionError)
    assert documents[UNKNOWN].transaction_hash == UNKNOWN
    assert server.calls == [{"tx_hashes": [third, UNKNOWN, first, second]}]


def test_a_document_is_the_bytes_that_the_service_sent(
    server: Server, recorded: dict[str, bytes]
) -> None:
    """A trace saves exactly what was received: no member is encoded anew."""
    with connect(server) as ledger:
        documents = read(ledger, list(recorded))

    assert {key: document.body for key, document in documents.items()} == recorded


def test_at_most_twenty_hashes_are_in_a_request(server: Server) -> None:
    """The service refuses more (`DEFAULT_TX_LIMIT`): 45 hashes are three requests."""
    hashes = [str(number) * 32 for number in range(1, 10)] + ["A" * n for n in range(8, 44)]
    with connect(server) as ledger:
        documents = read(ledger, hashes)

    assert list(documents) == hashes
    assert sorted(len(body["tx_hashes"]) for body in server.calls) == [5, 20, 20]


def test_finished_documents_are_read_once(server: Server, recorded: dict[str, bytes]) -> None:
    """A transaction all of whose receipts ran cannot change: only unknown hashes are sent again."""
    hashes = [*recorded, UNKNOWN]
    with connect(server) as ledger:
        first, again = read(ledger, hashes), read(ledger, hashes)
        single = ledger.send(services.transaction_document(hashes[0]))

    assert [body["tx_hashes"] for body in server.calls] == [hashes, [UNKNOWN]]
    bodies = [document.body for key, document in first.items() if key != UNKNOWN]
    assert [again[key].body for key in recorded] == bodies == list(recorded.values())
    assert single.body == bodies[0]


def test_cached_documents_of_many_groups_keep_their_order(
    server: Server, recorded: dict[str, bytes]
) -> None:
    """Groups that need no request come between those that do."""
    known = list(recorded)
    unknown = ["A" * n for n in range(8, 44)]
    hashes = [*unknown[:20], *known, *unknown[20:]]
    with connect(server) as ledger:
        read(ledger, known)
        documents = read(ledger, hashes)
        only_known = read(ledger, known)

    assert list(documents) == hashes
    assert [
        key for key, document in documents.items() if not isinstance(document, Exception)
    ] == known
    assert list(only_known) == known


def test_an_unfinished_document_is_not_cached(service: Service, server: Server) -> None:
    """The service sends transactions whose receipts still run; these are read again."""
    tx_hash = _cut(service, "intents_execute")
    with connect(server) as ledger:
        unfinished = read(ledger, [tx_hash])[tx_hash]
        read(ledger, [tx_hash])

    assert not unfinished.result.has_finished()
    assert len(server.calls) == 2


def test_the_disk_cache_has_one_entry_a_transaction(
    server: Server, recorded: dict[str, bytes], tmp_path: Path
) -> None:
    """A later session reads each by its hash, whichever others it was requested with."""
    first, second, third = recorded
    cache = Cache(tmp_path)
    with connect(server, cache=cache) as ledger:
        read(ledger, [first, second, third])
        assert ledger.disk_cache is not None
        assert ledger.disk_cache.sizes()["transaction"][0] == 3
    with connect(server, cache=cache) as ledger:
        documents = read(ledger, [third, first])

    assert len(server.calls) == 1
    assert [document.body for document in documents.values()] == [recorded[third], recorded[first]]


def test_another_transaction_is_refused(service: Service, server: Server) -> None:
    """A host that answers another request is not believed."""
    _, other, *_ = service.documents
    service.documents[UNKNOWN] = service.documents[other]
    with connect(server) as ledger:
        document = read(ledger, [UNKNOWN])[UNKNOWN]

    assert isinstance(document, errors.UnmatchedResponseError)
    assert other in str(document)


def test_one_broken_document_spares_the_others(
    service: Service, server: Server, recorded: dict[str, bytes]
) -> None:
    """What cannot be decoded is an error in its place, with the path; the others are read."""
    first, second, _ = recorded
    broken = json.loads(recorded[first])
    broken["execution_outcome"]["outcome"]["gas_burnt"] = "much"
    service.documents[first] = json.dumps(broken).encode()
    with connect(server) as ledger:
        documents = read(ledger, [first, second])

    assert isinstance(documents[first], errors.DecodeError)
    assert documents[first].path == "$.execution_outcome.outcome.gas_burnt"
    assert documents[second].body == recorded[second]


def test_a_failed_request_fails_its_own_hashes(recorded: dict[str, bytes]) -> None:
    """The error stands in the place of each hash of that request, and of no other."""
    service = Service(recorded)

    def answer(method: str, path: str, headers: Any, body: bytes) -> Reply:
        if UNKNOWN in json.loads(body)["tx_hashes"]:
            return as_json("Internal server error (Clickhouse)", 500)
        return service(method, path, headers, body)

    hashes = [UNKNOWN, *("A" * n for n in range(8, 27)), *recorded]
    with serve(answer) as server, connect(server) as ledger:
        documents = read(ledger, hashes)

    assert all(isinstance(documents[key], errors.TransportError) for key in hashes[:20])
    assert [documents[key].body for key in hashes[20:]] == list(recorded.values())


def test_a_receipt_leads_to_its_transaction(recorded: dict[str, bytes]) -> None:
    """`/v0/receipt` has the document, cached by both ids, or nulls for an unknown receipt."""
    [tx_hash, *_] = recorded
    receipt_id = json.loads(recorded[tx_hash])["receipts"][0]["receipt"]["receipt_id"]

    def answer(_: str, path: str, __: object, body: bytes) -> Reply:
        assert path == "/v0/receipt"
        if json.loads(body) != {"receipt_id": receipt_id}:
            return as_json({"receipt": None, "transaction": None})
        row = json.dumps({"receipt_id": receipt_id}).encode()
        return Reply(200, b'{"receipt":' + row + b',"transaction":' + recorded[tx_hash] + b"}")

    with serve(answer) as server, connect(server) as ledger:
        call = services.receipt_document(receipt_id)
        assert ledger.send(call).body == ledger.send(call).body == recorded[tx_hash]
        assert read(ledger, [tx_hash])[tx_hash].body == recorded[tx_hash]
        assert len(server.calls) == 1
        with pytest.raises(errors.UnknownReceiptError, match=UNKNOWN):
            ledger.send(services.receipt_document(UNKNOWN))


def _cut(service: Service, name: str) -> str:
    """Remove the last receipt of a document, as if it had not run; return the hash."""
    tx_hash = list(service.documents)[NAMES.index(name)]
    document = json.loads(service.documents[tx_hash])
    children = {
        child
        for pair in document["receipts"]
        for child in pair["execution_outcome"]["outcome"]["receipt_ids"]
    }
    document["receipts"] = [
        pair for pair in document["receipts"] if pair["receipt"]["receipt_id"] != max(children)
    ]
    service.documents[tx_hash] = json.dumps(document).encode()
    return tx_hash


# Traces -----------------------------------------------------------------------------------


class Node:
    """A Transactions API and a node at one address; `methods` answer JSON-RPC calls."""

    def __init__(self, service: Service, **methods: Callable[[Any], Reply]) -> None:
        self.service, self.methods = service, methods
        self.requested: list[str] = []

    def __call__(self, method: str, path: str, headers: object, body: bytes) -> Reply:
        """Answer a request of either."""
        if path != "/":
            self.requested.append(path)
            return self.service(method, path, headers, body)
        call = json.loads(body)
        self.requested.append(call["method"])
        answer = self.methods.get(call["method"])
        if answer is None:
            return failure("METHOD_NOT_FOUND", {"method_name": call["method"]}, 400)
        return answer(call["params"])


def test_a_recorded_document_is_a_trace_without_blocks(
    service: Service, recorded: dict[str, bytes], tmp_path: Path
) -> None:
    """Heights and times are those of the document; only rules and profiles are asked of a node."""
    tx_hash = next(iter(recorded))
    node = Node(service)
    with serve(node) as server, connect(server) as ledger:
        trace = lk.trace(tx_hash, ledger=ledger)
        again = lk.Trace.load(trace.save(tmp_path / "delegate.json"))

    outcomes = [pair["execution_outcome"] for pair in json.loads(recorded[tx_hash])["receipts"]]
    by_id = trace.receipts.set_index("receipt_id")
    for outcome in outcomes:
        row = by_id.loc[outcome["id"]]
        assert row["block_height"] == outcome["block_height"]
        assert row["time"].value == outcome["block_timestamp"]
    assert len(by_id) == len(outcomes)
    assert (trace.verdict, trace.signer_id, trace.sender_id) == (
        "fully_succeeded",
        "0-relay.hot.tg",
        "manhcoi83.tg",
    )
    assert trace.receipts.attrs["source"] == "/v0/transactions"
    assert set(node.requested) == {
        "/v0/transactions",
        "EXPERIMENTAL_protocol_config",
        "EXPERIMENTAL_tx_status",
        "tx_status",  # which this node does not have
    }
    pd.testing.assert_frame_equal(again.receipts, trace.receipts)


@pytest.mark.parametrize("wait_until", ["INCLUDED_FINAL", "FINAL"])
def test_an_unfinished_transaction_is_awaited_at_a_node(service: Service, wait_until: str) -> None:
    """The document names the signer whom a node needs; a level that it has reached is not asked."""
    tx_hash = _cut(service, "intents_execute")
    asked = []

    def status(params: Any) -> Reply:
        asked.append(params)
        return failure("UNKNOWN_TRANSACTION", {"requested_transaction_hash": tx_hash})

    node = Node(service, EXPERIMENTAL_tx_status=status)
    with serve(node) as server, connect(server) as ledger:
        if wait_until == "FINAL":
            with pytest.raises(errors.UnknownTransactionError):
                lk.trace(tx_hash, blocks=False, ledger=ledger)
        else:
            trace = lk.trace(tx_hash, wait_until=wait_until, blocks=False, ledger=ledger)
            assert (trace.verdict, len(asked)) == ("pending", 0)
            return
    assert asked[0] == {
        "tx_hash": tx_hash,
        "sender_account_id": "intents.near",
        "wait_until": "FINAL",
    }


def test_a_failure_says_how_to_ask_a_node(service: Service, recorded: dict[str, bytes]) -> None:
    """Without the sender a node cannot be asked: the remedy names it."""
    with serve(service) as server, connect(server) as ledger:
        with pytest.raises(errors.UnknownTransactionError, match="Or pass the account that signed"):
            lk.trace(UNKNOWN, ledger=ledger)
        traces, failures = lk.traces(
            [*recorded, UNKNOWN], blocks=False, on_error="collect", progress=False, ledger=ledger
        )
    assert list(traces) == list(recorded)
    assert failures["subject"].tolist() == [UNKNOWN]
    with serve(lambda *_: Reply(500)) as server, connect(server) as ledger:
        with pytest.raises(errors.TransportError, match="Or pass the account that signed"):
            lk.trace(UNKNOWN, ledger=ledger)
        alone = Network("lab", server.url, None, None)
        refused = pytest.raises(errors.InvalidRequestError, match="no index of transactions")
        with Ledger(Settings(network=alone)) as node, refused:
            lk.trace(UNKNOWN, ledger=node)


def test_rules_of_many_heights_are_few_requests() -> None:
    """Rules are read where they may have changed, also where heights between do not exist."""
    with lk.connect("local", make_default=False) as local:
        config = local.rpc("EXPERIMENTAL_protocol_config", {"finality": "final"})
    border = 7_654_321

    def protocol_config(params: Any) -> Reply:
        height = params["block_id"]
        if height % 3:  # skipped, as far as the node is concerned
            return failure("UNKNOWN_BLOCK", {}, 422)
        return result(config | {"protocol_version": 80 + (height >= border)})

    node = Node(Service({}), EXPERIMENTAL_protocol_config=protocol_config)
    heights = list(range(3_000_000, 10_000_000, 6_999))
    with serve(node) as server, connect(server) as ledger:
        rules_by_height(ledger, (heights[0], heights[-1]))
        batches = [heights[at : at + 20] for at in range(0, len(heights), 20)]
        versions = [
            rules.protocol_version if rules is not None else None
            for batch in batches
            for rules in rules_by_height(ledger, batch).values()
        ]
        n_requests = len(node.requested)
        rules_by_height(ledger, heights)

    assert len(heights) > 1_000
    assert versions == [80 + (height >= border) for height in heights]
    assert n_requests == len(node.requested) < 100
