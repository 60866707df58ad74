"""The endless feed of a chain's documents from a height on, which waits for new blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from ledgerkit.api import services
from ledgerkit.api.models.block_documents import BlockDocument, BlockResponse
from ledgerkit.block_data.headers import source_headers
from ledgerkit.block_data.reading import ChainOrder, DocumentRead, Link, read_documents
from ledgerkit.errors import LedgerError, RateLimitedError, TransportError, UnknownBlockError

if TYPE_CHECKING:
    from ledgerkit.ledger import Ledger

MAX_SILENCE_S = 600.0  # time without a usable response
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 5.0
_HEAD_S = 10.0  # age at which the head is read again
_CALL_AGAIN = "Make the same call again later; with out= it continues after the last stored block."


class DocumentFeed:
    """
    The documents of a chain from a height on, or proofs that heights were skipped.

    `show` is called with a text about each wait; `previous` is the previous block, if it is known.
    """

    def __init__(
        self,
        ledger: Ledger,
        height: int,
        show: Callable[[str], object],
        *,
        source: str = "documents",
        previous: Link | None = None,
    ) -> None:
        self._ledger = ledger
        self._source = source
        self._height = height  # to read next
        self._previous = previous
        self._head = 0
        self._head_read_at = -math.inf
        self._show = show
        self._failing_since: float | None = None
        self._pause_s = _FIRST_PAUSE_S

    @property
    def head(self) -> int:
        """The height of the last final block, as far as it is known."""
        return self._head

    def read(self) -> Generator[DocumentRead, None, None]:
        """
        Yield each height; wait for new blocks.

        Requests without a usable response are repeated. Raises `TransportError` if all failed for
        ten minutes, errors that would not pass, and `UnmatchedResponseError` if a block does not
        follow on the previous block.
        """
        while True:
            try:
                yield from self._read_known() if self._height <= self._head else self._read_next()
            except LedgerError as error:
                self.wait_after(error)

    def wait_after(self, error: LedgerError) -> None:
        """Wait after an error; raise if it would not pass, or after ten minutes of errors."""
        if not _may_pass(error) or (self._previous is None and not error.retryable):
            raise error
        now = self._ledger.clock.monotonic()
        self._failing_since = self._failing_since or now
        silent_s = now - self._failing_since
        if silent_s > MAX_SILENCE_S:
            request = f"block {self._height}"
            sentence = f"{request} could not be read for {silent_s / 60:.0f} minutes"
            sentence = f"{sentence}; the last error: {error.sentence}"
            raise TransportError(sentence, remedy=_CALL_AGAIN, request=request)
        self._show(f"block {self._height:,} not read for {silent_s:.0f} s: {error.sentence}")
        self._ledger.session.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    def _read_known(self) -> Iterator[DocumentRead]:
        heights = range(self._height, self._head + 1)
        options: dict[str, Any] = {"source": self._source, "previous": self._previous}
        with closing(read_documents(self._ledger, heights, **options)) as reads:
            yield from map(self._advance, reads)

    def _read_next(self) -> Iterator[DocumentRead]:
        """Yield the block after the head if it exists; the services wait for it."""
        height = self._height
        self._show(f"waiting for block {height:,}")
        if self._source == "documents":
            yield from self._wait_for_next()
        if self._height == height:
            # The block is late, which a service reports as an error, or the height was skipped,
            # which the next block shows.
            self._read_head()
            if self._head < height:
                self._ledger.session.wait_for_block(self._pause_s)

    def _wait_for_next(self) -> Iterator[DocumentRead]:
        call = services.block_document(self._height)
        [response] = self._ledger.send_many([call], on_error="collect", progress=False)
        if isinstance(response, BlockResponse):
            order = ChainOrder(self._ledger, self._previous)
            yield from map(self._advance, order.add(self._height, response))
        elif response is not None and not _may_pass(response):
            raise response

    def _read_head(self) -> None:
        height = source_headers(self._ledger, self._source).final().height
        self._head = max(self._head, height)
        self._head_read_at, self._failing_since = self._ledger.clock.monotonic(), None

    def _advance(self, read: DocumentRead) -> DocumentRead:
        """Move to the next height, or raise the error of this height."""
        if isinstance(read.value, LedgerError):
            raise read.value
        if isinstance(read.value, BlockDocument):
            header = read.value.block.header
            self._previous = Link(header.height, header.hash)
        self._failing_since, self._pause_s = None, _FIRST_PAUSE_S
        self._height, self._head = read.height + 1, max(self._head, read.height)
        if self._ledger.clock.monotonic() > self._head_read_at + _HEAD_S:
            self._head_read_at = self._ledger.clock.monotonic()
            # A failing host also fails the next request.
            with suppress(TransportError, RateLimitedError):
                self._read_head()
        return read


def _may_pass(error: LedgerError) -> bool:
    """Return True for an error that may pass: hosts of one service differ in their last block."""
    return error.retryable or isinstance(error, UnknownBlockError)
