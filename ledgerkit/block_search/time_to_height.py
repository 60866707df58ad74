"""Blocks by time or height: concurrent searches that start from the known blocks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ledgerkit import errors, validation
from ledgerkit.api import rpc
from ledgerkit.block_search.bisection import Point, Points, next_heights
from ledgerkit.errors import DecodeError, InvalidRequestError, LedgerError, UnknownBlockError

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call
    from ledgerkit.api.models import chain
    from ledgerkit.validation import BlockReference

    Send = Callable[[Sequence[Call[chain.Block]]], Sequence[chain.Block | LedgerError]]
    Reference = int | str
    # Yields the blocks to read next, and returns the block or the error.
    Search = Generator[list[Reference], None, Point | LedgerError]

LONGEST_GAP = 64  # longer runs of skipped heights hardly ever occur
_FINAL = ("final", "genesis")


def find_blocks(
    send: Send, points: Points, references: Sequence[BlockReference]
) -> list[Point | LedgerError]:
    """
    Find blocks with few requests; all searches send their requests together.

    For a time, the result is the last final block at or before it; for a final height, the block
    there or, if it was skipped, the next lower block; or an error. `send` returns errors instead of
    responses, and final blocks that are read are added to `points`.
    """
    state = _SearchState(send, points)
    is_alone = len(references) == 1
    pending = {i: _search(state, ref, is_alone=is_alone) for i, ref in enumerate(references)}
    results: dict[int, Point | LedgerError] = {}
    while pending:
        requested: dict[Reference, None] = {}
        for index, search in list(pending.items()):
            try:
                requested |= dict.fromkeys(next(search))
            except StopIteration as end:
                results[index] = end.value
                del pending[index]
        state.read(list(requested))
    return [results[index] for index in range(len(references))]


class _SearchState:
    """The blocks read by concurrent searches, and the heights without a block."""

    def __init__(self, send: Send, points: Points) -> None:
        self._send = send
        self.points = points
        self.blocks: dict[Reference, Point | LedgerError] = {}
        self.absent: set[int] = set()

    def read(self, references: Sequence[Reference]) -> None:
        # The ends come first: a height is known to be final if it is below the final head.
        ordered = sorted(references, key=lambda reference: reference not in _FINAL)
        calls = [rpc.block(validation.block_reference(reference)) for reference in ordered]
        for reference, block in zip(ordered, self._send(calls), strict=True):
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
        if is_other or (self._is_final(reference, point) and not self.points.add(point)):
            return _contradiction(reference, point)
        return point

    def _is_final(self, reference: Reference, point: Point) -> bool:
        """Return True if a block is final; a block read by hash may be on an abandoned fork."""
        last = self.points.last
        below = last is not None and point.height <= last.height
        return reference in _FINAL or (below and isinstance(reference, int))


def _contradiction(reference: Reference, point: Point) -> DecodeError:
    request = f"block {reference}"
    sentence = (
        f"the response to {request} contradicts other blocks: it is block {point.height} with"
        f" timestamp {point.time_ns} ns"
    )
    return DecodeError(sentence, request=request, path="$.result.header")


def point_of(block: chain.Block) -> Point:
    """Return the point of a block; raise `DecodeError` if it has no timestamp."""
    header = block.header
    if header.time_ns is None:
        request = f"block {header.height}"
        msg = f"{request} has no timestamp"
        raise DecodeError(msg, request=request, path="$.result.header.timestamp")
    return Point(header.height, header.time_ns, header.hash, header.prev_hash, header.prev_height)


# Searches ---------------------------------------------------------------------------------


def _search(state: _SearchState, reference: BlockReference, *, is_alone: bool) -> Search:
    """Return the search for a block; it yields the blocks that it needs next."""
    if reference.timestamp_ns is not None:
        return _search_time(state, reference, reference.timestamp_ns, is_alone=is_alone)
    [block] = reference.params.values()
    return _search_height(state, block) if isinstance(block, int) else _read_block(state, block)


def _read_block(state: _SearchState, reference: str) -> Search:
    yield [reference]
    return state.blocks[reference]


def _search_height(state: _SearchState, height: int) -> Search:
    """Read the block at a height or, if it was skipped, the parent of the next block."""
    points, candidate = state.points, height
    last = points.last
    ends = ["final"] if last is None or height > last.height else []
    yield [*ends, *([] if points.at(height) else [height])]
    last = points.last
    if last is None:
        return state.blocks["final"]
    # Above the final head, a missing block may still come.
    while candidate in state.absent and height <= last.height:
        candidate += 1
        if candidate - height > LONGEST_GAP:
            return _missing_blocks_error(height, candidate - 1)
        if points.at(candidate) is None and candidate not in state.blocks:
            yield [candidate]
    block = points.at(candidate) or state.blocks[candidate]
    if candidate == height or isinstance(block, LedgerError):
        return block
    return (yield from _search_below(state, height, block))


def _search_below(state: _SearchState, height: int, above: Point) -> Search:
    """Read the parent of the first block above a height, which shows whether it was skipped."""
    if above.prev_hash not in state.blocks:
        yield [above.prev_hash]
    parent = state.blocks[above.prev_hash]
    is_below = isinstance(parent, Point) and parent.height < height
    if is_below or not isinstance(parent, Point | UnknownBlockError):
        return parent
    return _missing_blocks_error(height, above.height - 1)


def _search_time(
    state: _SearchState, reference: BlockReference, time_ns: int, *, is_alone: bool
) -> Search:
    """Read the last final block at or before a time."""
    last = state.points.last
    if last is None:
        yield [*_FINAL]
    elif time_ns >= last.time_ns:
        yield ["final"]
    low, high = state.points.around(time_ns)
    if high is None:
        newest = state.blocks["final"]
        return newest if isinstance(newest, LedgerError) or low is None else low
    if low is None and "genesis" not in state.blocks:
        yield ["genesis"]
        low, _ = state.points.around(time_ns)
    if low is None:
        first = state.blocks["genesis"]
        return _before_genesis(reference, first) if isinstance(first, Point) else first
    return (yield from _narrow(state, low, high, time_ns, is_alone=is_alone))


def _narrow(
    state: _SearchState, low: Point, high: Point, time_ns: int, *, is_alone: bool
) -> Search:
    """Narrow the interval of known blocks around a time until there is no block inside it."""
    interval: tuple[Point, Point] | None = None
    halve = False  # after a round that left more than half of the interval
    tried: list[int] = []  # heights read within the interval
    while True:
        failure = state.blocks.get(tried[-1]) if tried and tried[-1] not in state.absent else None
        if isinstance(failure, LedgerError):
            return failure
        around = state.points.around(time_ns)
        low, high = around[0] or low, around[1] or high
        if high.prev_hash == low.hash:
            return low
        if interval != (low, high):
            halve = interval is not None and 2 * _length((low, high)) > _length(interval) + 1
            interval, tried = (low, high), []
        heights = next_heights(low, high, time_ns, halve=halve, absent=state.absent)
        if heights and len(tried) <= LONGEST_GAP:
            tried.append(heights[0])
            # Each search reads one height; the results of the others narrow its interval too.
            yield [*heights] if is_alone or halve else [heights[0]]
        else:
            error = yield from _read_parent(state, low, high, tried)
            if error is not None:
                return error


def _read_parent(
    state: _SearchState, low: Point, high: Point, tried: Sequence[int]
) -> Generator[list[Reference], None, LedgerError | None]:
    """Read the parent of the upper block, which shows whether heights were skipped."""
    if high.prev_hash not in state.blocks:
        yield [high.prev_hash]
    parent = state.blocks[high.prev_hash]
    if isinstance(parent, LedgerError):
        is_missing = isinstance(parent, UnknownBlockError)
        return _missing_blocks_error(low.height + 1, high.height - 1) if is_missing else parent
    if len(tried) > LONGEST_GAP and parent.height > max(tried):
        return _missing_blocks_error(min(tried), max(tried))
    if not low.height < parent.height < high.height or not state.points.add(parent):
        return _contradiction(high.prev_hash, parent)
    return None


def _length(interval: tuple[Point, Point]) -> int:
    low, high = interval
    return high.height - low.height


def _before_genesis(reference: BlockReference, first: Point) -> InvalidRequestError:
    time = datetime.fromtimestamp(first.time_ns // 10**9, UTC)
    genesis = f"{time:%Y-%m-%d %H:%M:%S} UTC ({first.time_ns} ns since 1970)"
    expected = f"a time not before the first block, {genesis}"
    return InvalidRequestError.refuse("at", reference.written, expected)


def _missing_blocks_error(first: int, last: int) -> UnknownBlockError:
    sentence = f"this host has no block from height {first} to {last}"
    return UnknownBlockError(sentence, remedy=errors.CONNECT_ARCHIVE)
