"""Block documents that are damaged, contradict each other or are of another chain."""

from __future__ import annotations

import json
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from pandas.testing import assert_frame_equal

import ledgerkit as lk
from ledgerkit.errors import DecodeError, TransportError, UnmatchedResponseError
from tests import document_host, loopback
from tests.document_host import DocumentHost, small_documents
from tests.loopback import Reply
from tests.unit.localnet.full_world import FullWorld
from tests.world_hosts import documents_of, hosts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from ledgerkit.localnet import World

    Documents = dict[int, Any]

FIRST, LAST = 1_000, 1_059  # the last one is final
RANGE = range(1_010, 1_020)  # the heights of one archive
ARCHIVE = "/raw/000000/001/000000001010.tgz"
DOCUMENTS = small_documents(range(FIRST, LAST + 4))
OTHER_CHAIN = small_documents(range(FIRST, LAST + 4), network=1)
BOMB = 512 << 20  # bytes
TABLES = ("blocks", "chunks", "transactions", "outcomes", "receipts", "balances")


@contextmanager
def lab(host: DocumentHost, *, node_final: int = LAST) -> Iterator[lk.Ledger]:
    """Serve documents beside a node, which knows the blocks up to one."""

    def node(body: bytes) -> Reply:
        request = json.loads(body)
        if request["method"] != "block":
            return loopback.failure("METHOD_NOT_FOUND", code=-32601)
        height = request["params"].get("block_id", node_final)
        if height > node_final:
            return loopback.failure("UNKNOWN_BLOCK")
        return loopback.result(json.loads(DOCUMENTS[height])["block"])

    def handler(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        return node(body) if method == "POST" else host(method, path, headers, body)

    retries = lk.RetryPolicy(attempts=1, total_s=20.0)
    with loopback.serve(handler) as server:
        options: Any = {"rpc_url": server.url, "blocks_url": server.url, "retries": retries}
        with lk.connect("lab", make_default=False, **options) as ledger:
            yield ledger


def collect(ledger: lk.Ledger, out: Path, heights: range = RANGE) -> lk.types.Collection:
    options: Any = {"source": "documents", "progress": False, "ledger": ledger, "out": out}
    run: lk.types.Collection = lk.collect_blocks(heights.start, heights.stop, **options)
    return run


def failing() -> Any:
    """Expect the warning of heights that could not be read."""
    return pytest.warns(UserWarning, match="could not be read")


def stored_heights(run: lk.types.Collection) -> list[int]:
    heights: set[int] = set()
    for table in TABLES:
        heights.update(run.pandas(table).filter(regex="^(tx_)?block_height$").iloc[:, 0])
    return sorted(heights)


def bomb() -> bytes:
    """Return a small archive that unpacks to half a gigabyte."""
    packer = zlib.compressobj(1, wbits=31)
    header = document_host.member("000000001010.json", b"", size=BOMB)
    pieces = [packer.compress(header)]
    pieces += [packer.compress(bytes(1 << 20)) for _ in range(BOMB >> 20)]
    return b"".join([*pieces, packer.compress(bytes(1024)), packer.flush()])


BODIES = {height: DOCUMENTS[height] for height in RANGE}
ESCAPING = document_host.member("../../000000001010.json", BODIES[1_010])


@pytest.mark.parametrize(
    "build",
    [
        lambda: document_host.tar(BODIES),
        lambda: document_host.pack(ESCAPING + bytes(1024)),
        bomb,
    ],
    ids=["no gzip", "a path", "a bomb"],
)
def test_a_hostile_archive_stores_nothing(build: Callable[[], bytes], tmp_path: Path) -> None:
    """No height of it is stored; each is listed with a typed error; the next archive is read."""
    body = build()

    def fault(path: str, _earlier: int) -> Reply | None:
        return Reply(200, body) if path.endswith(ARCHIVE) else None

    host = DocumentHost(DOCUMENTS, final=LAST, fault=fault)
    with lab(host) as ledger, failing():
        run = collect(ledger, tmp_path / "out", range(1_000, 1_030))
    assert stored_heights(run) == [*range(1_000, 1_010), *range(1_020, 1_030)]
    errors = run.errors()
    assert errors["position"].tolist() == list(RANGE)
    assert set(errors["error"]) <= {"DecodeError", "TransportError", "ResponseTooLargeError"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("body", [DOCUMENTS[1_011], b"[1]", b"{", b"null", b""])
@pytest.mark.parametrize("is_archived", [True, False])
def test_a_document_that_is_none_of_its_height(
    body: bytes, *, is_archived: bool, tmp_path: Path
) -> None:
    """A document of another height, or none at all, fails its own height only."""
    final = LAST if is_archived else 1_025
    documents = {h: own for h, own in DOCUMENTS.items() if h <= final} | {1_014: body}
    with (
        lab(DocumentHost(documents, final=final)) as ledger,
        failing(),
    ):
        run = collect(ledger, tmp_path / "out")
    errors = run.errors()
    assert errors["position"].tolist() == [1_014]
    assert set(errors["error"]) <= {"DecodeError", "UnmatchedResponseError", "TransportError"}
    assert stored_heights(run) == [height for height in RANGE if height != 1_014]


def contradictory_documents() -> dict[str, dict[int, bytes]]:
    """Return the documents of a chain with one that does not belong to it, by name."""

    def changed(**members: object) -> dict[int, bytes]:
        value = json.loads(DOCUMENTS[1_014])
        value["block"]["header"] |= members
        return {**DOCUMENTS, 1_014: json.dumps(value).encode()}

    return {
        "another chain": {**DOCUMENTS, 1_014: OTHER_CHAIN[1_014]},
        "another height": changed(height=1_015),
        "another parent": changed(prev_hash=document_host.block_hash(1_012)),
        "a parent ahead": changed(prev_height=1_014),
    }


CONTRADICTORY = contradictory_documents()


@pytest.mark.parametrize("name", list(CONTRADICTORY))
@pytest.mark.parametrize("final", [LAST, 1_025])
def test_a_document_that_does_not_follow_on_is_not_stored(
    name: str, final: int, tmp_path: Path
) -> None:
    """A block whose parent is not the block before it is refused, in archives and by itself."""
    documents = {h: body for h, body in CONTRADICTORY[name].items() if h <= final}
    with (
        lab(DocumentHost(documents, final=final)) as ledger,
        failing(),
    ):
        run = collect(ledger, tmp_path / "out")
    assert 1_014 not in stored_heights(run)
    errors = run.errors().set_index("position")
    assert errors.loc[1_014, "error"] in ("DecodeError", "UnmatchedResponseError")
    assert 1_010 in stored_heights(run)


@pytest.mark.parametrize("node_final", [LAST - 3, LAST, LAST + 3])
def test_documents_of_another_network_are_not_stored(node_final: int, tmp_path: Path) -> None:
    """A service of another chain than the node's is refused before anything is read."""
    host = DocumentHost(OTHER_CHAIN, final=LAST)
    out = tmp_path / "out"
    with (
        lab(host, node_final=node_final) as ledger,
        pytest.raises(UnmatchedResponseError, match="they are of different networks"),
    ):
        collect(ledger, out)
    with (
        lab(host, node_final=node_final) as ledger,
        pytest.raises(UnmatchedResponseError, match="they are of different networks"),
    ):
        lk.follow("final", out=out, progress=False, ledger=ledger)
    assert not out.exists()


def test_a_failed_height_is_no_other_chain(tmp_path: Path) -> None:
    """After a height that could not be read, the folder is followed on all the same."""

    def fault(path: str, _earlier: int) -> Reply | None:
        return Reply(500, b"") if path.endswith("/1019") else None

    host = DocumentHost({h: DOCUMENTS[h] for h in DOCUMENTS if h <= 1_025}, final=1_025)
    options: Any = {"views": "blocks", "out": tmp_path / "out", "progress": False}
    with lab(host, node_final=1_025) as ledger:
        host.fault = fault
        with failing():
            lk.collect_blocks(1_010, 1_020, source="documents", ledger=ledger, **options)
        host.fault = None
        blocks = lk.follow(1_010, max_blocks=2, ledger=ledger, **options)
        assert [block["block_height"].item() for block in blocks] == [1_020, 1_021]


@pytest.mark.parametrize("node_final", [LAST - 3, LAST + 3])
def test_documents_may_be_ahead_of_the_node(node_final: int, tmp_path: Path) -> None:
    """A node that is some blocks behind the documents, or ahead of them, is of the same chain."""
    with lab(DocumentHost(DOCUMENTS, final=LAST), node_final=node_final) as ledger:
        run = collect(ledger, tmp_path / "out")
    assert stored_heights(run) == list(RANGE)


def test_a_null_that_the_next_block_contradicts_is_not_stored(tmp_path: Path) -> None:
    """A missing document is no skipped height while the next block names it as its parent."""
    documents = {h: body for h, body in DOCUMENTS.items() if h <= 1_025 and h != 1_014}
    with (
        lab(DocumentHost(documents, final=1_025)) as ledger,
        failing(),
    ):
        run = collect(ledger, tmp_path / "out")
    errors = run.errors()
    assert errors["position"].tolist() == [1_014]
    assert errors["kind"].tolist() == ["failed"]
    assert errors["error"].tolist() == ["TransportError"]
    assert stored_heights(run) == [height for height in RANGE if height != 1_014]


@pytest.mark.parametrize("name", ["another chain", "another height", "another parent"])
def test_the_verbs_raise(name: str) -> None:
    """`blocks` raises a typed error for a document that does not belong to its chain."""
    with (
        lab(DocumentHost(CONTRADICTORY[name], final=LAST)) as ledger,
        pytest.raises((DecodeError, TransportError)),
    ):
        lk.blocks(RANGE.start, RANGE.stop, source="documents", progress=False, ledger=ledger)


# Contents that contradict each other --------------------------------------------------------


@pytest.fixture(scope="module")
def world() -> World:
    """Return a world of contract calls, in which everything ended."""
    return FullWorld(2).run(60)


def executions(documents: Documents) -> list[Any]:
    """List the executed receipts that a transaction of another block led to."""
    return [
        pair
        for height in sorted(documents)
        for shard in documents[height]["shards"]
        for pair in shard["receipt_execution_outcomes"]
    ]


def of_another_transaction(documents: Documents) -> None:
    """Name a transaction that did not lead to a receipt."""
    first, *others = executions(documents)
    hashes = (pair["tx_hash"] for pair in others)
    first["tx_hash"] = next(tx_hash for tx_hash in hashes if tx_hash != first["tx_hash"])


def created_twice(documents: Documents) -> None:
    """Let two receipts create the same one."""
    outcomes = [pair["execution_outcome"]["outcome"] for pair in executions(documents)]
    first, second, *_ = (outcome for outcome in outcomes if outcome["receipt_ids"])
    second["receipt_ids"] = first["receipt_ids"]


def without_a_shard(documents: Documents) -> None:
    """Leave out the shard of a chunk that the block lists as new."""
    documents[min(documents)]["shards"].pop()


def above_128_bits(documents: Documents) -> None:
    """Let a receipt burn more yoctoNEAR than there can be."""
    outcomes = [pair["execution_outcome"]["outcome"] for pair in executions(documents)]
    next(each for each in outcomes if each["tokens_burnt"] != "0")["tokens_burnt"] = str(2**128 + 5)


def balance_above_128_bits(documents: Documents) -> None:
    """Let a transaction or receipt leave more yoctoNEAR than there can be."""
    next(account_updates(documents))["change"]["amount"] = str(2**128 + 5)


def without_a_balance(documents: Documents) -> None:
    """Leave the balance out of a change of an account."""
    del next(account_updates(documents))["change"]["amount"]


def account_updates(documents: Documents) -> Iterator[Any]:
    return (
        change
        for height in sorted(documents)
        for shard in documents[height]["shards"]
        for change in shard["state_changes"]
        if change["type"] == "account_update"
    )


@pytest.mark.parametrize(
    "change",
    [
        of_another_transaction,
        created_twice,
        without_a_shard,
        above_128_bits,
        balance_above_128_bits,
        without_a_balance,
    ],
)
def test_contradictory_contents_are_not_stored(
    world: World, change: Callable[[Documents], None], tmp_path: Path
) -> None:
    """The heights that need it fail with a typed error, and are in no table; the others are."""
    ledger = lk.connect(world=world, make_default=False)
    heights = range(world.chain.genesis.height, world.chain.final.height + 1)
    documents: Documents = {h: json.loads(each) for h, each in documents_of(world).items()}
    whole = collect(ledger, tmp_path / "whole", heights)
    change(documents)
    bodies = {height: json.dumps(each).encode() for height, each in documents.items()}
    with hosts(world, DocumentHost(bodies, final=heights[-1])) as ledger, failing():
        run = collect(ledger, tmp_path / "out", heights)
    errors = run.errors()
    failed = errors.loc[errors["kind"] == "failed", ["position", "error"]]
    assert 1 <= len(failed) <= 3
    assert set(failed["error"]) == {"DecodeError"}
    for table in (*TABLES, "actions", "transfers"):
        key = "tx_block_height" if table in ("receipts", "transfers") else "block_height"
        expected = whole.pandas(table)
        expected = expected[~expected[key].isin(failed["position"])].reset_index(drop=True)
        assert_frame_equal(run.pandas(table), expected)
