"""Documents of many heights: archives and single ones, skipped heights, what contradicts itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit.api import calls, services
from ledgerkit.api.models.block_documents import BlockDocument
from ledgerkit.block_data.headers import Skipped
from ledgerkit.block_data.reading import (
    DocumentRead,
    read_document,
    read_documents,
)
from ledgerkit.errors import (
    DecodeError,
    InvalidRequestError,
    UnknownBlockError,
    UnmatchedResponseError,
)
from ledgerkit.localnet.worlds import open_world
from ledgerkit.transport.networks import PRESETS, Network, resolve
from ledgerkit.transport.settings import Settings
from tests.document_host import DocumentHost, hosting, small_documents
from tests.loopback import Reply, serve

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


UNTYPED: Any = lk  # as whoever calls it without a type checker
KEY = "lk_planted_0123456789abcdef"
FINAL = 199
# One height in seven was skipped, and more than ten in a row.
HEIGHTS = [
    height for height in range(100, FINAL + 1) if height % 7 and height not in range(130, 145)
]
DOCUMENTS = small_documents(HEIGHTS)


def outcomes(reads: list[DocumentRead]) -> dict[int, object]:
    """Return what was read of each height: the hash of a block, what was skipped, or an error."""
    return {
        read.height: read.value.block.header.hash
        if isinstance(read.value, BlockDocument)
        else read.value
        for read in reads
    }


def expected(heights: range, documents: dict[int, bytes] = DOCUMENTS) -> dict[int, object]:
    """Return what is to be read of heights, all of them final."""
    with hosting(DocumentHost(documents, final=max(documents))) as (ledger, _):
        answers = {height: ledger.send(services.block_headers(height)) for height in heights}
    known = list(documents)
    return {
        height: Skipped(max(other for other in known if other < height))
        if block is None
        else block.header.hash
        for height, block in answers.items()
    }


WHOLE = range(101, FINAL + 1)


@pytest.fixture(scope="module")
def whole() -> dict[int, object]:
    """Return what is to be read of `WHOLE`."""
    return expected(WHOLE)


def errors(reads: list[DocumentRead]) -> dict[int, type]:
    return {r.height: type(r.value) for r in reads if isinstance(r.value, lk.LedgerError)}


# From archives and single documents -------------------------------------------------------


def test_old_heights_come_from_archives(whole: dict[int, object]) -> None:
    """Ten heights take one request; those of the last thirty blocks or so take one each."""
    with hosting(DocumentHost(DOCUMENTS, final=FINAL)) as (ledger, server):
        reads = list(read_documents(ledger, WHOLE))
    assert outcomes(reads) == whole
    assert [read.height for read in reads] == list(WHOLE)
    assert all(read.size == len(DOCUMENTS.get(read.height, b"")) for read in reads)
    archives = {path for path in server.paths if path.startswith("/raw/000000/000/")}
    assert sorted(archives) == [
        f"/raw/000000/000/{start:012d}.tgz" for start in range(100, 170, 10)
    ]
    # The archive of 130 to 139 does not exist, because none of its blocks does.
    singles = {int(path.split("/")[3]) for path in server.paths if path.startswith("/v0/block/")}
    assert singles == {*range(130, 140), *range(170, 200)}
    assert len(server.paths) == 7 + 10 + 30 + 2  # and the last final block, by a redirect


def test_few_heights_of_an_archive_are_read_alone() -> None:
    """Two of ten heights are less data as single documents."""
    with hosting(DocumentHost(DOCUMENTS, final=FINAL)) as (ledger, server):
        reads = list(read_documents(ledger, [101, 108, 110, 114, 117, 160]))
    assert [type(read.value) for read in reads] == [BlockDocument] * 6
    assert [path for path in server.paths if "raw" in path] == ["/raw/000000/000/000000000110.tgz"]


def test_the_hosts_of_archives_of_mainnet() -> None:
    """Each host of mainnet has a range of heights; other networks have one host."""
    # Source: MAINNET_ARCHIVE_BOUNDARIES of fastnear/libs, and of Nearblocks/nearblocks.
    mainnet, testnet = PRESETS["mainnet"], PRESETS["testnet"]
    starts = [9_820_210, 121_999_990, 122_000_000, 141_999_990, 142_000_000, 176_999_990]
    numbers = [mainnet.archive_address(start) for start in [*starts, 177_000_000, 250_000_000]]
    hosts = [f"https://a{number}.mainnet.neardata.xyz/raw" for number in (0, 0, 1, 1, 2, 2, 3, 3)]
    assert numbers == hosts
    assert testnet.archive_address(200_000_000) == "https://testnet.neardata.xyz/raw"


def test_a_blocks_url_has_its_own_archives() -> None:
    """The address of another service replaces all hosts of the preset, and so does a node's."""
    own = resolve("mainnet", blocks_url="https://blocks.example/v1")
    assert own.archive_address(100_000_000) == "https://blocks.example/v1/raw"
    assert resolve("mainnet", rpc_url="https://rpc.example").archive_urls == ()
    assert resolve("mainnet", kv_url="https://kv.example").archive_urls != ()


@pytest.mark.parametrize("key_in", ["header", "query"])
def test_the_key_goes_to_the_hosts_of_archives(key_in: Any) -> None:
    """Archives are requested from their own host, with the key, also after a redirect."""
    start = 150_000_000
    documents = small_documents(range(start, start + 40))
    requests: list[httpx.Request] = []
    host = DocumentHost(documents, final=start + 39)

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        if request.url.host == "a2.mainnet.neardata.xyz":
            moved = request.url.copy_with(host="a9.mainnet.neardata.xyz")
            return httpx.Response(302, headers={"location": str(moved)})
        reply = host("GET", request.url.raw_path.decode(), {}, b"")
        return httpx.Response(reply.status, headers=dict(reply.headers), content=reply.body)

    transport = httpx.MockTransport(answer)
    options: Any = {"transport": transport, "api_key": KEY, "key_in": key_in, "make_default": False}
    with lk.connect("mainnet", **options) as ledger:
        reads = list(read_documents(ledger, range(start, start + 10)))
    assert [type(read.value) for read in reads] == [BlockDocument] * 10
    main, old, moved = (f"{name}mainnet.neardata.xyz" for name in ("", "a2.", "a9."))
    assert [request.url.host for request in requests] == [main, main, old, moved]
    assert requests[-1].url.path == "/raw/000150/000/000150000000.tgz"
    for request in requests:
        in_query = [("apiKey", KEY)] if key_in == "query" else []
        parameters = [item for item in request.url.params.multi_items() if item[0] != "fresh"]
        assert parameters == in_query
        assert request.headers.get("authorization") == (
            f"Bearer {KEY}" if key_in == "header" else None
        )


# Damaged archives -------------------------------------------------------------------------


def test_a_damaged_archive_yields_errors_for_its_heights(whole: dict[int, object]) -> None:
    """An archive that is damaged twice is an error of its ten heights; others are read."""

    def fault(path: str, _earlier: int) -> Reply | None:
        return Reply(200, b"no gzip") if path.endswith("120.tgz") else None

    with hosting(DocumentHost(DOCUMENTS, final=FINAL, fault=fault)) as (ledger, server):
        reads = list(read_documents(ledger, WHOLE))
    assert errors(reads) == dict.fromkeys(range(120, 130), DecodeError)
    others = {height: value for height, value in outcomes(reads).items() if height // 10 != 12}
    assert others == {height: value for height, value in whole.items() if height // 10 != 12}
    path = "/raw/000000/000/000000000120.tgz"
    requests = [target for target in server.paths if target.startswith(path)]
    assert requests[0] == path
    assert len(requests) == 2
    assert requests[1].startswith(f"{path}?fresh=")  # no cache has it


# Skipped heights --------------------------------------------------------------------------


def test_the_last_heights_are_proven_by_the_block_after_them() -> None:
    """A range that ends with skipped heights takes the header of the next block."""
    with hosting(DocumentHost(DOCUMENTS, final=FINAL)) as (ledger, server):
        reads = list(read_documents(ledger, range(128, 140)))
    assert [read.value for read in reads[2:]] == [Skipped(129)] * 10
    paths = [path.split("?")[0] for path in server.paths if "/headers?" in path]
    headers = {path for path in paths if path.startswith("/v0/block/1")}
    read = [FINAL, *range(140, 147)]
    assert headers == {f"/v0/block/{height}/headers" for height in read}


def test_heights_far_apart_are_proven_one_by_one() -> None:
    """Where the next requested height is far, the block after a skipped one is read."""
    with hosting(DocumentHost(DOCUMENTS, final=FINAL)) as (ledger, _):
        reads = list(read_documents(ledger, [105, 112, 126, 147, 160]))
    values = [read.value for read in reads[:4]]
    assert values == [Skipped(104), Skipped(111), Skipped(125), Skipped(146)]


def test_the_first_headers_name_no_height() -> None:
    """Where a header has no height of the block before, its hash proves the skipped heights."""
    documents = small_documents(HEIGHTS, has_heights=False)
    host = DocumentHost(documents, final=FINAL)
    with hosting(host) as (ledger, _):
        assert outcomes(list(read_documents(ledger, WHOLE))) == expected(WHOLE, documents)
        [read] = read_documents(ledger, [105])
    assert read.value == Skipped(104)


# Another chain ----------------------------------------------------------------------------


@pytest.mark.parametrize("height", [113, 114, 185])
def test_without_heights_its_neighbours_are_not_certain_either(height: int) -> None:
    """Where headers have only hashes, the next block and skipped heights before are unproven."""
    documents = small_documents(HEIGHTS, has_heights=False)
    other = small_documents(HEIGHTS, network=1, has_heights=False)
    host = DocumentHost(documents | {height: other[height]}, final=FINAL)
    with hosting(host) as (ledger, _):
        reads = list(read_documents(ledger, range(110, 190)))
    skipped_before = {height - 1} - set(HEIGHTS)
    assert errors(reads) == dict.fromkeys(
        {height, height + 1} | skipped_before, UnmatchedResponseError
    )


@pytest.mark.parametrize("heights", [[113], range(113, 120)], ids=["single", "archive"])
def test_the_document_of_another_height_is_refused(heights: Sequence[int]) -> None:
    """Whether a document comes alone or in an archive, it is of the height that is read."""
    host = DocumentHost(DOCUMENTS | {113: DOCUMENTS[114]}, final=FINAL)
    with hosting(host) as (ledger, _):
        reads = list(read_documents(ledger, heights))
    assert errors(reads) == {113: UnmatchedResponseError}


# Heights that the service does not have ---------------------------------------------------


def test_heights_above_the_last_final_block_are_not_waited_for() -> None:
    """Each is unknown, and no request is sent for it."""
    with hosting(DocumentHost(DOCUMENTS, final=FINAL)) as (ledger, server):
        reads = list(read_documents(ledger, range(FINAL - 1, FINAL + 30)))
    assert errors(reads) == dict.fromkeys(range(FINAL + 1, FINAL + 30), UnknownBlockError)
    assert "The last final block is 199" in str(reads[-1].value)
    assert sorted(server.paths[2:]) == ["/v0/block/198", "/v0/block/199"]  # at the same time


@pytest.mark.parametrize(
    ("height", "remedy"),
    [
        (99, "The block documents begin with a later block"),
        (10**15 + 1, "No block has such a height"),
        (FINAL + 11, "The chain has not come so far"),
    ],
)
def test_each_refusal_of_a_height_says_what_to_do(height: int, remedy: str) -> None:
    """A height before the first block, too far ahead or impossible is told apart by its type."""
    # Source: fastnear/neardata-server, src/api.rs, get_block_inner.
    with hosting(DocumentHost(DOCUMENTS, final=FINAL)) as (ledger, _):
        requests: list[calls.Call[Any]] = [
            services.block_document(height),
            services.block_headers(height),
        ]
        for call in requests:
            with pytest.raises(UnknownBlockError, match=remedy) as raised:
                ledger.send(call)
            assert raised.value.block == height


def test_an_unknown_path_is_no_unknown_block() -> None:
    """A 404 without the service's own words is that of an address, not of a block."""
    with serve(lambda *_: Reply(404)) as server:
        network = Network("lab", None, None, None, blocks_url=server.url)
        with lk.Ledger(Settings(network=network)) as ledger:
            with pytest.raises(InvalidRequestError, match="HTTP 404"):
                ledger.send(services.block_document(110))
            with pytest.raises(InvalidRequestError, match="HTTP 404"):
                list(read_documents(ledger, [110]))


def test_one_document() -> None:
    """A single height needs no last final block; a skipped one is proven."""
    with hosting(DocumentHost(DOCUMENTS, final=FINAL)) as (ledger, server):
        document = read_document(ledger, 150)
        assert isinstance(document, BlockDocument)
        assert document.block.header.height == 150
        assert server.paths == ["/v0/block/150"]
        assert read_document(ledger, 154) == Skipped(153)
        with pytest.raises(UnknownBlockError):
            read_document(ledger, 99)


# Ahead of the consumer --------------------------------------------------------------------


def test_few_archives_are_read_ahead() -> None:
    """Heights are taken as they are read, and closing ends the requests."""
    documents = small_documents(range(1000, 3000))
    taken: list[int] = []

    def heights() -> Iterator[int]:
        for height in range(1000, 2900):
            taken.append(height)
            yield height

    with hosting(DocumentHost(documents, final=2999)) as (ledger, server):
        reads = read_documents(ledger, heights())
        assert next(reads).height == 1000
        assert len(taken) <= 10 * 11
        reads.close()
        assert len(server.paths) <= 12


# The verbs --------------------------------------------------------------------------------


def test_blocks_are_the_same_from_either_source() -> None:
    """The frame of a range is equal from a node and from the documents, with skipped heights."""
    world = open_world("demo")
    world.advance(3, skip=2)
    world.advance(20)
    start, stop = world.chain.genesis.height + 20, world.chain.final.height + 1
    with lk.connect(world=world, make_default=False) as ledger:
        by_node = lk.blocks(start, stop, ledger=ledger)
        by_documents = lk.blocks(start, stop, source="documents", ledger=ledger)
        pd.testing.assert_frame_equal(by_documents, by_node)
        assert by_documents.attrs.keys() == by_node.attrs.keys()
        assert len(by_node) == stop - start - 2
        with pytest.raises(UnknownBlockError, match=f"block {stop + 4}"):
            lk.blocks(stop + 4, stop + 5, source="documents", ledger=ledger)
        with pytest.raises(InvalidRequestError, match=r"source 'archive' is not valid"):
            lk.blocks(start, stop, source="archive", ledger=ledger)  # type: ignore[arg-type]  # refused


TRACE_FRAMES = ["actions", "balance_changes", "edges", "events", "gas", "receipts", "transfers"]


def test_the_traces_of_a_block_are_the_same_from_either_source() -> None:
    """All frames of a block's traces are equal from a node and from the documents."""
    world = open_world("demo")
    world.advance(15)
    with lk.connect(world=world, make_default=False) as ledger:
        n_transactions = 0
        for height in range(world.chain.genesis.height, world.chain.final.height - 9):
            if world.chain.by_height(height) is None:
                continue
            by_node = lk.trace_block(height, progress=False, ledger=ledger)
            n_transactions += len(by_node)
            for source in ("documents", "indexer_rpc"):
                traces = UNTYPED.trace_block(height, source=source, ledger=ledger)
                assert list(traces) == list(by_node)
                for view in TRACE_FRAMES:
                    pd.testing.assert_frame_equal(getattr(traces, view), getattr(by_node, view))
        assert n_transactions > 20


def test_the_traces_of_an_unfinished_block_are_as_far_as_known() -> None:
    """Receipts after the last final block are not part of the traces; skipped heights have none."""
    world = open_world("demo")
    world.advance(2)
    world.advance(3, skip=1)
    heights = range(world.chain.genesis.height, world.chain.final.height)
    skipped = next(height for height in heights if world.chain.by_height(height) is None)
    with lk.connect(world=world, make_default=False) as ledger:
        with pytest.raises(UnknownBlockError, match=f"the block before is {skipped - 1}"):
            lk.trace_block(skipped, source="documents", ledger=ledger)
        with pytest.raises(UnknownBlockError):
            lk.trace_block(world.chain.final.height + 1, source="documents", ledger=ledger)
        traces, failures = lk.trace_block(
            "final", source="documents", on_error="collect", ledger=ledger
        )
        assert (len(traces), len(failures)) == (0, 0)
