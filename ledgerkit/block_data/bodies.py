"""The documents of many heights, from archives of ten heights or one by one."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.api import services
from ledgerkit.block_data.archives import HEIGHTS_PER_ARCHIVE, archive_start, read_archive
from ledgerkit.block_data.headers import DocumentHeaders, not_final_error
from ledgerkit.errors import DecodeError, LedgerError

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call
    from ledgerkit.api.models.block_documents import BlockResponse
    from ledgerkit.ledger import Ledger

    Body = BlockResponse | LedgerError | None  # None: the service has no document of the height

# The last blocks are read one by one: their archive may not be written yet.
# Source: fastnear/libs, neardata-fetcher/src/utils.rs, ARCHIVE_SYNC_THRESHOLD.
_RECENT = 20
_MIN_FROM_ARCHIVE = 3  # heights; fewer documents are less data than the archive
_AHEAD = 4  # requests; ten busy blocks are an archive of 4 MB
_HEAD_AGE_S = 1.0  # age at which the last final block is read again


def read_bodies(
    ledger: Ledger, heights: Iterable[int], *, whole: bool = False
) -> Generator[tuple[int, Body], None, None]:
    """
    Yield the document of each height, in order; requests are sent ahead.

    `whole` is an option of `decode_document`. Raises `LedgerError` if the last final block cannot
    be read.
    """
    plan = _Plan(ledger, heights, whole=whole)
    with closing(ledger.session.stream_pairs(plan.requests(), size=1, ahead=_AHEAD)) as batches:
        for [(sent, response)] in batches:
            yield from plan.bodies(sent, response)
    for height in plan.beyond:
        yield height, not_final_error(height, plan.final)


class _Archive(NamedTuple):
    start: int
    heights: list[int]


class _Plan:
    """The requests that read the documents of heights, built as they are sent."""

    def __init__(self, ledger: Ledger, heights: Iterable[int], *, whole: bool) -> None:
        self._ledger = ledger
        self._is_whole = whole
        self._heights = heights
        self.beyond: Iterable[int] = ()  # the heights above the last final block
        self.final = -1
        self._read_at = 0.0

    def requests(self) -> Iterator[tuple[_Archive | int, Call[Any]]]:
        """Yield the archives and single heights up to the last final block, with their calls."""
        groups = groupby(self._heights, archive_start)
        for start, group in groups:
            heights = list(group)
            self._update_final(start + HEIGHTS_PER_ARCHIVE + _RECENT)
            n_final = sum(height <= self.final for height in heights)
            yield from self._requests(start, heights[:n_final])
            if n_final < len(heights):
                later = (height for _, group in groups for height in group)
                self.beyond = chain(heights[n_final:], later)
                return

    def _update_final(self, height: int) -> None:
        """Read the last final block again if it is below a height and was not just read."""
        if self.final < height and self._ledger.clock.monotonic() - self._read_at > _HEAD_AGE_S:
            self.final = DocumentHeaders(self._ledger).final().height
            self._read_at = self._ledger.clock.monotonic()

    def _requests(
        self, start: int, heights: list[int]
    ) -> Iterator[tuple[_Archive | int, Call[Any]]]:
        is_written = start + HEIGHTS_PER_ARCHIVE + _RECENT <= self.final
        if is_written and len(heights) >= _MIN_FROM_ARCHIVE:
            yield _Archive(start, heights), _archive_call(self._ledger, start)
        else:
            yield from self._single_requests(heights)

    def _single_requests(
        self, heights: list[int]
    ) -> Iterator[tuple[int, Call[BlockResponse | None]]]:
        for height in heights:
            yield height, services.block_document(height, whole=self._is_whole)

    def bodies(self, sent: _Archive | int, response: Any) -> Iterator[tuple[int, Body]]:
        """Yield the document of a single height, or of each height of an archive."""
        if isinstance(sent, int):
            yield sent, response
            return
        documents = _unpack_documents(self._ledger, sent.start, response)
        if documents is None:  # the heights have no blocks, or another host has the archive
            singles = self._single_requests(sent.heights)
            with closing(self._ledger.session.stream_pairs(singles, size=1)) as batches:
                yield from chain.from_iterable(batches)
        elif isinstance(documents, LedgerError):
            yield from ((height, documents) for height in sent.heights)
        else:
            for height in sent.heights:
                yield height, self._decoded(height, documents.pop(height, None))

    def _decoded(self, height: int, body: bytes | None) -> Body:
        try:
            return None if body is None else services.read_block(body, height, whole=self._is_whole)
        except LedgerError as error:
            return error


def _archive_call(ledger: Ledger, start: int, **options: Any) -> Call[bytes | None]:
    return services.block_archive(ledger.network.archive_address(start), start, **options)


def _unpack_documents(
    ledger: Ledger, start: int, response: bytes | LedgerError | None
) -> dict[int, bytes] | LedgerError | None:
    """Return the documents of an archive; request a damaged archive once more."""
    max_bytes = ledger.session.settings.max_response_bytes
    try:
        if not isinstance(response, bytes):
            return response
        try:
            return read_archive(response, start, max_bytes)
        except DecodeError:
            second = ledger.send(_archive_call(ledger, start, fresh=True))
            return None if second is None else read_archive(second, start, max_bytes)
    except LedgerError as error:
        return error
