"""Blocks by time or height: several searches at once, each starting from the known blocks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.block_search.bisection import Point, Points, next_heights
from ledgerkit.errors import DecodeError, InvalidRequestError, LedgerError, UnknownBlockError
from ledgerkit.validation import BlockReference

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ledgerkit.api.calls import Call
    from ledgerkit.api.models import chain

    Send = Callable[[Sequence[Call[chain.Block]]], Sequence[chain.Block | LedgerError]]
    Reference = int | str

LONGEST_GAP = 64  # longer runs of skipped heights hardly ever occur
_FINAL = ("final", "genesis")
_ARCHIVE = "Pass archival_rpc_url= to connect(): an archival host has every block."


def find_blocks(
    send: Send, known: Points, references: Sequence[BlockReference]
) -> list[Point | LedgerError]:
    """
    Find blocks with few requests; all searches send their requests together.

    For a time, the result is the last final block at or before it; for a final height, the block
    there or, if it was skipped, the last one below; or an error. `send` returns an error in place
    of a response, and `known` receives the final blocks that are read.
    """
    batch = _Batch(send, known)
    is_alone = len(references) == 1
    searches = [_search_for(reference, is_alone=is_alone) for reference in references]
    batch.read_first(searches)
    while pending := {ref: None for search in searches for ref in search.next_reads(batch)}:
        batch.read(list(pending))
    return [search.outcome for search in searches]


class _Batch:
    """The blocks read by the searches of one `find`, and the heights without a block."""

    def __init__(self, send: Send, known: Points) -> None:
        self._send = send
        self.known = known
        self.blocks: dict[Reference, Point | LedgerError] = {}
        self.absent: set[int] = set()

    def read_first(self, searches: Sequence[_Search]) -> None:
        """Read what needs no earlier block: the ends outside the known blocks, and heights."""
        last = self.known.last
        if last is None:
            ends = {end for search in searches for end in search.ends}
        else:
            ends = {"final"} if any(search.is_beyond(last) for search in searches) else set()
        first = [reference for search in searches for reference in search.first_reads(self.known)]
        # The ends come first: a height is known to be final if it is below the final head.
        self.read(list(dict.fromkeys([*sorted(ends), *first])))

    def read(self, references: Sequence[Reference]) -> None:
        """Read blocks and add them to `blocks`."""
        if not references:
            return
        calls = [rpc.block(validation.block_reference(reference)) for reference in references]
        for reference, block in zip(references, self._send(calls), strict=True):
            self.blocks[reference] = self._check(reference, block)

    def _check(self, reference: Reference, block: chain.Block | LedgerError) -> Point | LedgerError:
        """Return the point of a block, or an error if it is not the requested block."""
        if isinstance(block, LedgerError):
            if isinstance(block, UnknownBlockError) and isinstance(reference, int):
                self.absent.add(reference)
            return block
        try:
            point = point_of(block)
        except DecodeError as error:
            return error
        is_other = isinstance(reference, int) and reference != point.height
        if is_other or (self._is_final(reference, point) and not self.known.add(point)):
            return _contradiction(reference, point)
        return point

    def _is_final(self, reference: Reference, point: Point) -> bool:
        """Return True if a block is final. A block read by hash may be of an abandoned fork."""
        last = self.known.last
        below = last is not None and point.height <= last.height
        return reference in _FINAL or (below and isinstance(reference, int))


def _contradiction(reference: Reference, point: Point) -> DecodeError:
    """Build the error for a block that does not fit the known blocks."""
    request = f"block {reference}"
    sentence = (
        f"the response to {request} contradicts other blocks: it is block {point.height} with"
        f" timestamp {point.time_ns} ns"
    )
    return DecodeError(sentence, request=request, path="$.result.header")


def point_of(block: chain.Block) -> Point:
    """Return height, time and hashes of a block; raise `DecodeError` if it has no timestamp."""
    header = block.header
    if header.time_ns is None:
        request = f"block {header.height}"
        msg = f"{request} has no timestamp"
        raise DecodeError(msg, request=request, path="$.result.header.timestamp")
    return Point(header.height, header.time_ns, header.hash, header.prev_hash, header.prev_height)


# Searches ---------------------------------------------------------------------------------


class _Search:
    """The search for a block by hash or finality, which takes one read."""

    ends: tuple[str, ...] = ()

    def __init__(self, reference: BlockReference) -> None:
        self.reads: list[Reference] = list(reference.params.values())
        self._outcome: Point | LedgerError | None = None

    @property
    def outcome(self) -> Point | LedgerError:
        """The block, or the error, once the search has ended."""
        if self._outcome is None:
            msg = "the search has not ended"
            raise AssertionError(msg)
        return self._outcome

    def is_beyond(self, last: Point) -> bool:  # noqa: ARG002 - subclasses use it
        """Return True if the search needs a newer final block than the last known one."""
        return False

    def first_reads(self, known: Points) -> list[Reference]:  # noqa: ARG002 - subclasses use it
        """Return the blocks to read that do not depend on others."""
        return self.reads

    def next_reads(self, batch: _Batch) -> list[Reference]:
        """Return the blocks to read next; none once the search has ended."""
        if self._outcome is None:
            self._outcome = self.step(batch)
        return self.reads if self._outcome is None else []

    def step(self, batch: _Batch) -> Point | LedgerError | None:
        """Return the outcome, or None after setting `reads` to the blocks to read next."""
        return batch.blocks.get(self.reads[0])


class _HeightSearch(_Search):
    """The search for the block at a height, or the last one below if it was skipped."""

    ends = ("final",)

    def __init__(self, height: int) -> None:
        super().__init__(validation.block_reference(height))
        self._height = self._candidate = height

    def is_beyond(self, last: Point) -> bool:
        """Return True if the height is above the last known final block."""
        return self._height > last.height

    def first_reads(self, known: Points) -> list[Reference]:
        """Return the height, unless its block is known."""
        return [] if known.at(self._height) else [self._height]

    def step(self, batch: _Batch) -> Point | LedgerError | None:
        """Descend over skipped heights; above the final head, a missing block may still come."""
        last = batch.known.last
        if last is None:
            return batch.blocks["final"]
        while self._candidate in batch.absent and self._height <= last.height:
            self._candidate -= 1
        self.reads = [self._candidate]
        if self._candidate < 0 or self._height - self._candidate > LONGEST_GAP:
            return _missing_blocks(self._candidate + 1, self._height)
        return batch.known.at(self._candidate) or batch.blocks.get(self._candidate)


class _TimeSearch(_Search):
    """The search for the last final block at or before a time."""

    ends = _FINAL

    def __init__(self, time_ns: int, *, is_alone: bool) -> None:
        super().__init__(BlockReference({}))
        self._time_ns = time_ns
        self._is_alone = is_alone
        self._interval: tuple[Point, Point] | None = None
        self._halve = False  # after a round that left more than half of the interval
        self._tried: list[int] = []  # heights read within the interval

    def first_reads(self, known: Points) -> list[Reference]:  # noqa: ARG002 - as the base class
        """Return none: the first height is estimated from known blocks."""
        return []

    def is_beyond(self, last: Point) -> bool:
        """Return True if the block may be newer than the last known one."""
        return self._time_ns >= last.time_ns

    def step(self, batch: _Batch) -> Point | LedgerError | None:
        """Narrow the interval of known blocks until there is no block inside it."""
        low, high = batch.known.around(self._time_ns)
        if high is None:
            newest = batch.blocks["final"]
            return newest if isinstance(newest, LedgerError) or low is None else low
        if low is None:
            self.reads = ["genesis"]
            first = batch.blocks.get("genesis")
            return _before_genesis(self._time_ns, first) if isinstance(first, Point) else first
        last = self._tried[-1] if self._tried else -1
        failure = None if last in batch.absent else batch.blocks.get(last)
        return failure if isinstance(failure, LedgerError) else self._narrow(batch, low, high)

    def _narrow(self, batch: _Batch, low: Point, high: Point) -> Point | LedgerError | None:
        """Choose the next heights to read within the interval, or end with its lower block."""
        if high.prev_hash == low.hash:
            return low
        if self._interval != (low, high):
            interval = low, high
            last = self._interval
            self._halve = last is not None and 2 * _length(interval) > _length(last) + 1
            self._interval, self._tried = interval, []
        absent, halve = batch.absent, self._halve
        heights = next_heights(low, high, self._time_ns, halve=halve, absent=absent)
        if not heights or len(self._tried) > LONGEST_GAP:
            return self._read_parent(batch, low, high)
        self._tried.append(heights[0])
        # Of many searches each reads one height: the reads of the others narrow its interval too.
        self.reads = [*heights] if self._is_alone or self._halve else [heights[0]]
        return None

    def _read_parent(self, batch: _Batch, low: Point, high: Point) -> Point | LedgerError | None:
        """Read the parent of the upper block, which shows whether heights were skipped."""
        parent = batch.blocks.get(high.prev_hash)
        if parent is None:
            self.reads = [high.prev_hash]
            return None
        if isinstance(parent, LedgerError):
            is_missing = isinstance(parent, UnknownBlockError)
            return _missing_blocks(low.height + 1, high.height - 1) if is_missing else parent
        if len(self._tried) > LONGEST_GAP and parent.height > max(self._tried):
            return _missing_blocks(min(self._tried), max(self._tried))
        if not low.height < parent.height < high.height or not batch.known.add(parent):
            return _contradiction(high.prev_hash, parent)
        return self.step(batch)


def _length(interval: tuple[Point, Point]) -> int:
    """Return the number of heights in an interval."""
    low, high = interval
    return high.height - low.height


def _search_for(reference: BlockReference, *, is_alone: bool) -> _Search:
    """Return the search for a block reference."""
    if reference.timestamp_ns is not None:
        return _TimeSearch(reference.timestamp_ns, is_alone=is_alone)
    height = reference.params.get("block_id")
    return _HeightSearch(height) if isinstance(height, int) else _Search(reference)


def _before_genesis(time_ns: int, first: Point) -> InvalidRequestError:
    """Build the error for a time before the genesis block."""
    genesis = f"{_iso_text(first.time_ns)} ({first.time_ns} ns since 1970)"
    expected = f"a time not before the first block, {genesis}"
    return InvalidRequestError.refuse("at", time_ns, expected)


def _iso_text(time_ns: int) -> str:
    """Write a time in whole seconds."""
    return f"{datetime.fromtimestamp(time_ns // 10**9, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _missing_blocks(first: int, last: int) -> UnknownBlockError:
    """Build the error for heights that the host has discarded."""
    sentence = f"this host has no block from height {first} to {last}"
    return UnknownBlockError(sentence, remedy=_ARCHIVE)
