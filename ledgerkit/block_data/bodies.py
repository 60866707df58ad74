"""The undecoded documents of many heights, from archives of ten or single ones."""

from __future__ import annotations

from contextlib import closing
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.api import services
from ledgerkit.block_data.archives import BLOCKS, archive_start, read_archive
from ledgerkit.block_data.headers import DocumentHeaders
from ledgerkit.errors import DecodeError, LedgerError, UnknownBlockError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from ledgerkit.api.calls import Call
    from ledgerkit.ledger import Ledger

    # A height and its document; None if the service has none, or the error of reading it.
    Body = tuple[int, bytes | LedgerError | None]

# Blocks behind the last final one that are read one by one: their archive may not be written yet.
# Source: fastnear/libs, neardata-fetcher/src/utils.rs, ARCHIVE_SYNC_THRESHOLD.
_RECENT = 20
_MIN_FROM_ARCHIVE = 3  # heights; fewer are less data as single documents
_AHEAD = 4  # requests; ten busy blocks are an archive of 4 MB
_HEAD_AGE_S = 1.0  # after which the last final block is read again


def read_bodies(ledger: Ledger, heights: Iterable[int]) -> Generator[Body, None, None]:
    """
    Yield the document of each height, in order; requests are sent ahead.

    Raises `LedgerError` if the last final block cannot be read.
    """
    plan = _Plan(ledger, heights)
    with closing(ledger.session.stream_pairs(plan.requests(), size=1, ahead=_AHEAD)) as batches:
        for [(sent, answer)] in batches:
            yield from _bodies(ledger, sent, answer)
    for height in plan.beyond:
        remedy = f"The last final block is {plan.final}: wait for a later one."
        request = f"the document of block {height}"
        yield height, UnknownBlockError(block=height, request=request, remedy=remedy)


class _Request(NamedTuple):
    heights: list[int]
    start: int | None


class _Plan:
    """The requests that read the documents of heights, built as they are sent."""

    def __init__(self, ledger: Ledger, heights: Iterable[int]) -> None:
        self._ledger = ledger
        self._heights = heights
        self.beyond: Iterable[int] = ()  # heights above the last final block, the rest of all
        self.final = -1
        self._read_at = 0.0

    def requests(self) -> Iterator[tuple[_Request, Call[bytes | None]]]:
        """Yield the requests up to the last final block, with their calls."""
        groups = groupby(self._heights, archive_start)
        for start, group in groups:
            heights = list(group)
            self._update_final(start + BLOCKS + _RECENT)
            known = [height for height in heights if height <= self.final]
            yield from self._requests(start, known)
            if len(known) < len(heights):
                later = (height for _, group in groups for height in group)
                self.beyond = chain(heights[len(known) :], later)
                return

    def _update_final(self, height: int) -> None:
        """Read the last final block again, unless it is above a height or was read just now."""
        if self.final < height and self._ledger.clock.monotonic() - self._read_at > _HEAD_AGE_S:
            self.final = DocumentHeaders(self._ledger).final().height
            self._read_at = self._ledger.clock.monotonic()

    def _requests(
        self, start: int, heights: list[int]
    ) -> Iterator[tuple[_Request, Call[bytes | None]]]:
        is_written = start + BLOCKS + _RECENT <= self.final
        if is_written and len(heights) >= _MIN_FROM_ARCHIVE:
            yield _Request(heights, start), _archive_call(self._ledger, start)
            return
        for height in heights:
            yield _Request([height], None), services.block_document(height)


def _archive_call(ledger: Ledger, start: int, **options: Any) -> Call[bytes | None]:
    return services.block_archive(ledger.network.archive_address(start), start, **options)


def _bodies(
    ledger: Ledger, request: _Request, answer: bytes | LedgerError | None
) -> Iterator[Body]:
    if request.start is None:
        yield request.heights[0], answer
        return
    documents = _documents(ledger, request.start, answer)
    if documents is None:  # none of its blocks exists, or another host has the archive
        singles = ((height, services.block_document(height)) for height in request.heights)
        with closing(ledger.session.stream_pairs(singles, size=1)) as batches:
            yield from chain.from_iterable(batches)
    elif isinstance(documents, LedgerError):
        yield from ((height, documents) for height in request.heights)
    else:
        yield from ((height, documents.pop(height, None)) for height in request.heights)


def _documents(
    ledger: Ledger, start: int, answer: bytes | LedgerError | None
) -> dict[int, bytes] | LedgerError | None:
    """Return the documents of an archive; a damaged one is requested once more."""
    max_bytes = ledger.session.settings.max_answer_bytes
    try:
        if not isinstance(answer, bytes):
            return answer
        try:
            return read_archive(answer, start, max_bytes)
        except DecodeError:
            second = ledger.send(_archive_call(ledger, start, fresh=True))
            return None if second is None else read_archive(second, start, max_bytes)
    except LedgerError as error:
        return error
