"""The documents of a chain that goes on: each height once, through faults, gaps and outages."""

from __future__ import annotations

import threading
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from ledgerkit.block_data import following
from ledgerkit.block_data.following import DocumentFeed
from ledgerkit.block_data.headers import Skipped
from ledgerkit.errors import (
    AuthError,
    InvalidRequestError,
    TransportError,
    UnknownBlockError,
    UnmatchedResponseError,
)
from ledgerkit.transport import retry
from tests.document_host import DocumentHost, block_hash, hosting, scattered, small_documents
from tests.loopback import Reply

if TYPE_CHECKING:
    from tests.document_host import Fault

FIRST, LAST = 100, 260
# One height in seven was skipped, and more than ten in a row.
HEIGHTS = [
    height
    for height in range(FIRST, LAST + 1)
    if height == FIRST or (height % 7 and height not in range(130, 145))
]
DOCUMENTS = small_documents(HEIGHTS)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less between attempts: the host is on this machine."""
    for module, name in [(retry, "_FIRST_S"), (following, "_FIRST_PAUSE_S")]:
        monkeypatch.setattr(module, name, 0.005)
    monkeypatch.setattr(following, "_LONGEST_PAUSE_S", 0.02)


class GrowingHost(DocumentHost):
    """A host whose last final block is a later one with every few requests."""

    def __init__(self, final: int, *, pace: int = 2, fault: Fault | None = None) -> None:
        super().__init__(DOCUMENTS, final=final, fault=fault)
        self._pace, self._n_requests = pace, 0
        self._turn = threading.Lock()

    def __call__(self, *request: Any) -> Reply:
        """Answer a request, perhaps after the next block."""
        with self._turn:
            self._n_requests += 1
            if self._n_requests % self._pace == 0:
                self.final = next((h for h in HEIGHTS if h > self.final), self.final)
        return super().__call__(*request)


def heights(feed: DocumentFeed, count: int) -> tuple[list[int], list[int]]:
    """Read some heights; return them, and those of them that were skipped."""
    reads = list(islice(feed.read(), count))
    skipped = [read.height for read in reads if isinstance(read.value, Skipped)]
    return [read.height for read in reads], skipped


def ignore(_: str) -> None:
    """Show nothing."""


N_HEIGHTS = LAST - FIRST + 1
SKIPPED = [height for height in range(FIRST, LAST) if height not in DOCUMENTS]


@pytest.mark.parametrize("final", [FIRST, 150, LAST])
def test_each_height_comes_once(final: int) -> None:
    """From the first block, the middle or the end on: each height once and in order."""
    with hosting(GrowingHost(final)) as (ledger, _):
        feed = DocumentFeed(ledger, FIRST, ignore)
        assert heights(feed, N_HEIGHTS) == (list(range(FIRST, LAST + 1)), SKIPPED)
        assert feed.head == LAST


def test_a_block_at_the_head_is_one_request() -> None:
    """A block that the service waits for is read once; old ones are read in archives."""
    host = DocumentHost(DOCUMENTS, final=LAST)
    with hosting(host) as (ledger, server):
        reads = DocumentFeed(ledger, FIRST, ignore).read()
        assert len(list(islice(reads, N_HEIGHTS))) == N_HEIGHTS
        assert sum(path.endswith(".tgz") for path in server.paths) == 14
        server.requests.clear()
        host.documents = DOCUMENTS | small_documents([LAST, LAST + 1, LAST + 2])
        host.final = LAST + 2
        assert [read.height for read in islice(reads, 2)] == [LAST + 1, LAST + 2]
        assert server.paths == [f"/v0/block/{LAST + 1}", f"/v0/block/{LAST + 2}"]


@pytest.mark.parametrize("seed", range(4))
def test_faults_do_not_matter(seed: int) -> None:
    """Half of all paths fail at first: with errors, lost connections and damaged archives."""
    with hosting(GrowingHost(150, fault=scattered(seed, 0.5))) as (ledger, server):
        feed = DocumentFeed(ledger, FIRST, ignore)
        assert heights(feed, N_HEIGHTS) == (list(range(FIRST, LAST + 1)), SKIPPED)
    assert len(server.paths) > 50


def test_a_null_at_the_head_is_no_proof() -> None:
    """A block that is late, and lies in a cache as null, is read once the next one exists."""
    host = DocumentHost(DOCUMENTS, final=150, late=[151])
    texts: list[str] = []
    with hosting(host) as (ledger, _):
        feed = DocumentFeed(ledger, 150, texts.append)
        reads = feed.read()
        assert next(reads).height == 150
        host.final = 151
        timer = threading.Timer(0.3, lambda: setattr(host, "final", 153))
        timer.start()
        read = next(reads)
        timer.join()
    assert (read.height, read.value.block.header.hash) == (151, block_hash(151))  # type: ignore[union-attr]  # a block
    assert "waiting for block 151" in texts


# What ends it -----------------------------------------------------------------------------


def test_an_outage_ends_after_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the service is gone it is waited for, but not for ever; its last error is named."""
    monkeypatch.setattr(following, "MAX_SILENCE_S", 0.3)
    host = DocumentHost(DOCUMENTS, final=103)
    texts: list[str] = []
    with hosting(host) as (ledger, _):
        reads = DocumentFeed(ledger, 103, texts.append).read()
        assert next(reads).height == 103
        host.fault = lambda _path, _earlier: Reply(502, b"<html>gone</html>")
        reason = "block 104 could not be read for 0 minutes; the last error: .*502"
        with pytest.raises(TransportError, match=reason) as caught:
            next(reads)
    assert "continues after the last stored block" in str(caught.value)
    assert any(text.startswith("block 104 not read for 0 s: ") for text in texts)


def test_a_chain_that_stands_still_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that responds is not gone, however long there is no new block."""
    monkeypatch.setattr(following, "MAX_SILENCE_S", 0.05)
    host = DocumentHost(DOCUMENTS, final=104)
    with hosting(host) as (ledger, _):
        reads = DocumentFeed(ledger, 104, ignore).read()
        next(reads)
        timer = threading.Timer(0.6, lambda: setattr(host, "final", 106))
        timer.start()
        assert next(reads).height == 105
        timer.join()


def test_a_refused_key_ends_it_at_once() -> None:
    """An error that would not pass is raised without a second attempt."""
    host = DocumentHost(DOCUMENTS, final=103)
    with hosting(host) as (ledger, server):
        reads = DocumentFeed(ledger, 103, ignore).read()
        next(reads)
        host.fault = lambda _path, _earlier: Reply(401, b"Unauthorized")
        server.requests.clear()
        with pytest.raises(AuthError):
            next(reads)
    assert len(server.paths) == 1


def test_a_start_before_the_first_block_is_refused() -> None:
    """The block documents begin later than the chain; nothing is waited for."""
    with (
        hosting(DocumentHost(DOCUMENTS, final=150)) as (ledger, _),
        pytest.raises(UnknownBlockError, match="block 40"),
    ):
        next(DocumentFeed(ledger, 40, ignore).read())


def test_closing_the_ledger_ends_a_wait() -> None:
    """The wait for a block ends when another thread closes the ledger."""
    with hosting(DocumentHost(DOCUMENTS, final=103)) as (ledger, _):
        reads = DocumentFeed(ledger, 103, ignore).read()
        next(reads)
        timer = threading.Timer(0.2, ledger.close)
        timer.start()
        with pytest.raises(InvalidRequestError, match="closed"):
            next(reads)
        timer.join()


def test_another_chain_ends_it_at_once() -> None:
    """A block that does not follow on the one before is no outage: nothing is read again."""
    other = small_documents(HEIGHTS, network=1)
    host = DocumentHost({**DOCUMENTS, 123: other[123]}, final=LAST)
    with hosting(host) as (ledger, server):
        feed = DocumentFeed(ledger, 118, ignore)
        with pytest.raises(UnmatchedResponseError, match="is not of the same chain as block 122"):
            heights(feed, 10)
    assert sum(path.endswith(".tgz") for path in server.paths) < 10
