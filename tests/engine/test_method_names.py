"""The newer name of a method is used where a host has it, which is found out once a host."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import httpx
import pytest

import ledgerkit as lk
from ledgerkit.localnet.worlds import open_world
from tests import served_world
from tests.local_transport import LocalTransport

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW = "EXPERIMENTAL_tx_status", "tx_status"


class Node(httpx.BaseTransport):
    """A node of a protocol version, whose requests are counted by method."""

    def __init__(self, profile: str) -> None:
        self.world = open_world("demo", profile=profile)
        self._local = LocalTransport(self.world)
        self.methods: Counter[str] = Counter()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.methods[json.loads(request.read())["method"]] += 1
        return self._local.handle_request(request)

    def pairs(self) -> list[tuple[str, str]]:
        """Return the hashes and senders of some transactions."""
        return [(tx.tx_hash, tx.signer_id) for tx in self.world.summary.transactions[4:12]]


def read(pairs: list[tuple[str, str]], ledger: lk.Ledger) -> list[str]:
    """Return the verdicts of transactions that are read together."""
    traces = lk.traces(pairs, wait_until="NONE", progress=False, ledger=ledger)
    return [trace.verdict for trace in traces.values()]


@pytest.mark.parametrize(("profile", "asked"), [("86", OLD), ("87", NEW)])
def test_the_name_is_found_out_once(profile: str, asked: str) -> None:
    """Of calls that are sent together one finds out, and no later call asks again."""
    node = Node(profile)
    pairs = node.pairs()
    with lk.connect("lab", rpc_url="http://node.test", transport=node) as ledger:
        verdicts = read(pairs[:6], ledger) + read(pairs[6:], ledger)
    assert set(verdicts) <= {"fully_succeeded", "succeeded_with_failed_receipts", "failed"}
    assert node.methods[asked] == len(pairs)
    assert node.methods[NEW if asked == OLD else OLD] == (1 if asked == OLD else 0)


@pytest.mark.parametrize(("profile", "asked"), [("86", OLD), ("87", NEW)])
def test_the_source_is_the_name_that_was_asked(profile: str, asked: str, tmp_path: Path) -> None:
    """Frames name the method of the request, also if the answer comes from a cache on disk."""
    world = open_world("demo", profile=profile)
    world.advance(8)
    tx = world.summary.transactions[0]
    url = served_world.serve(world)
    hits = []
    for _ in range(2):
        with lk.connect("lab", rpc_url=url, cache=lk.Cache(tmp_path)) as ledger:
            trace = lk.trace(tx.tx_hash, tx.signer_id, ledger=ledger)
            assert trace.receipts.attrs["source"] == asked
            hits.append(lk.cache_info(ledger=ledger).set_index("kind").loc["transaction", "hits"])
    assert hits == [0, 1]


def test_nodes_have_the_newer_name_from_protocol_87_on() -> None:
    """There both names give the same result; an earlier node refuses the newer one."""
    # Source: nearcore, pull request 16270.
    (tx_hash, sender), names = Node("87").pairs()[0], ("tx_hash", "sender_account_id")
    params = dict(zip(names, (tx_hash, sender), strict=True))
    with lk.connect("local", world=open_world("demo", profile="87")) as ledger:
        assert ledger.rpc(NEW, params) == ledger.rpc(OLD, params)
    refused = pytest.raises(lk.errors.RpcMethodNotFoundError, match="no RPC method tx_status")
    with lk.connect("local", world=open_world("demo", profile="86")) as ledger, refused:
        ledger.rpc(NEW, params)


def test_a_recording_by_the_earlier_name_answers(tmp_path: Path) -> None:
    """It has no answer by the newer name, and is read by the name that was asked for."""
    node, path = Node("86"), tmp_path / "case.lk"
    pairs = node.pairs()[:2]
    with lk.connect("lab", rpc_url="http://node.test", transport=node, record=path) as ledger:
        verdicts = read(pairs, ledger)
    with lk.connect(str(path)) as ledger:
        assert read(pairs[::-1], ledger) == verdicts[::-1]
