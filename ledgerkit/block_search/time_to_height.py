"""Blocks by time or height: many searches at once, each from the nearest known blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.block_search.bisection import Point, Points, next_height
from ledgerkit.errors import DecodeError, InvalidRequestError, LedgerError, UnknownBlockError
from ledgerkit.validation import BlockReference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ledgerkit.api.calls import Call
    from ledgerkit.api.models import chain

    Send = Callable[[Sequence[Call[chain.Block]]], Sequence[chain.Block | LedgerError]]
    Reference = int | str

LONGEST_GAP = 64  # more heights in a row are hardly ever skipped
_FINAL = ("final", "genesis")
_ARCHIVE = "Connect with archival_rpc_url=, whose host keeps every block."


def find(send: Send, known: Points, places: Sequence[BlockReference]) -> list[Point | LedgerError]:
    """
    Find blocks, as few requests as possible and as many at once as there are searches.

    Parameters
    ----------
    send
        Sends calls at the same time; a failure stands in its call's place.
    known
        Final blocks that are known; those that are read on the way join them.
    places
        Heights, times, or other references to a block.

    Returns
    -------
    points
        One a place: of a time the last final block that is not younger, of a final height
        the block there or, where the height was skipped, the last below; or why not.
    """
    round_ = _Round(send, known)
    searches = [_search(place) for place in places]
    round_.read_ends(searches)
    while asked := {ref: None for search in searches for ref in search.wants(round_)}:
        round_.read(list(asked))
    return [search.found for search in searches]


class _Round:
    """What the searches of one call share: what is known, and which heights have no block."""

    def __init__(self, send: Send, known: Points) -> None:
        self._send = send
        self.known = known
        self.answers: dict[Reference, Point | LedgerError] = {}
        self.absent: set[int] = set()

    def read_ends(self, searches: Iterable[_Search]) -> None:
        """Read the final head and the first block, where a search lies beyond what is known."""
        last = self.known.last
        if last is None:
            needed = {end for search in searches for end in search.ends}
        else:
            needed = {"final"} if any(search.is_beyond(last) for search in searches) else set()
        self.read(sorted(needed))

    def read(self, references: Sequence[Reference]) -> None:
        """Read blocks."""
        told = (
            self._send([rpc.block(validation.block_reference(one)) for one in references])
            if references
            else ()
        )
        for reference, answer in zip(references, told, strict=True):
            self.answers[reference] = self._take(reference, answer)

    def _take(self, reference: Reference, answer: chain.Block | LedgerError) -> Point | LedgerError:
        """Take an answer in; a block that is not the one asked for is none."""
        if isinstance(answer, LedgerError):
            if isinstance(answer, UnknownBlockError) and isinstance(reference, int):
                self.absent.add(reference)
            return answer
        try:
            point = point_of(answer)
        except DecodeError as error:
            return error
        is_other = isinstance(reference, int) and reference != point.height
        if is_other or (self._is_final(reference, point) and not self.known.add(point)):
            return _contradicts(reference, point)
        return point

    def _is_final(self, reference: Reference, point: Point) -> bool:
        """Tell whether a block is of the chain for good; a hash may be that of an orphan."""
        last = self.known.last
        below = last is not None and point.height <= last.height
        return reference in _FINAL or (below and isinstance(reference, int))


def _contradicts(reference: Reference, point: Point) -> DecodeError:
    """Refuse a block out of its place."""
    asked = f"block {reference}"
    told = f"block {point.height} of {point.time_ns} ns since 1970"
    sentence = f"the answer to {asked} contradicts other blocks: {told}"
    return DecodeError(sentence, asked=asked, path="$.result.header")


def point_of(block: chain.Block) -> Point:
    """
    Take from a block what places it.

    Parameters
    ----------
    block
        The decoded block.

    Returns
    -------
    point
        Its height, time and hash, and the block before it.

    Raises
    ------
    DecodeError
        If it has no time; without one it can't be found by time.
    """
    head = block.header
    if head.time_ns is None:
        what = f"block {head.height}"
        raise DecodeError(f"{what} has no timestamp", asked=what, path="$.result.header.timestamp")
    return Point(head.height, head.time_ns, head.hash, head.prev_hash, head.prev_height)


# Searches ---------------------------------------------------------------------------------


class _Search:
    """One block to be found by a reference that names it."""

    ends: tuple[str, ...] = ()

    def __init__(self, place: BlockReference) -> None:
        self.reference: Reference = next(iter(place.params.values()), "")
        self._found: Point | LedgerError | None = None

    @property
    def found(self) -> Point | LedgerError:
        """The block, or why it was not found."""
        if self._found is None:
            msg = "the search is not at its end"
            raise AssertionError(msg)
        return self._found

    def is_beyond(self, last: Point) -> bool:  # noqa: ARG002 - of the others
        """Tell whether it needs a newer final head than the one known."""
        return False

    def wants(self, shared: _Round) -> list[Reference]:
        """Say what to read next; nothing at the end."""
        if self._found is None:
            self._found = self.step(shared)
        return [self.reference] if self._found is None else []

    def step(self, shared: _Round) -> Point | LedgerError | None:
        """Look at what is known; gives the end, or None and says in `reference` what to read."""
        return shared.answers.get(self.reference)


class _ByHeight(_Search):
    """The block of a height, or the last below where that was skipped."""

    ends = ("final",)

    def __init__(self, height: int) -> None:
        super().__init__(validation.block_reference(height))
        self._height = self._asked = height

    def is_beyond(self, last: Point) -> bool:
        """Tell whether nobody knows yet if the height is final."""
        return self._height > last.height

    def step(self, shared: _Round) -> Point | LedgerError | None:
        """Go down over heights without a block; above the final head they may still get one."""
        last = shared.known.last
        if last is None:
            return shared.answers["final"]
        while self._asked in shared.absent and self._height <= last.height:
            self._asked -= 1
        self.reference = self._asked
        if self._asked < 0 or self._height - self._asked > LONGEST_GAP:
            return _dropped(self._asked + 1, self._height)
        return shared.known.at(self._asked) or shared.answers.get(self._asked)


class _ByTime(_Search):
    """The last final block that is not younger than a time."""

    ends = _FINAL

    def __init__(self, time_ns: int) -> None:
        super().__init__(BlockReference({}))
        self._time_ns = time_ns
        self._between: tuple[Point, Point] | None = None
        self._turn = -1
        self._asked: list[int] = []  # between these two

    def is_beyond(self, last: Point) -> bool:
        """Tell whether a newer block may be the one."""
        return self._time_ns >= last.time_ns

    def step(self, shared: _Round) -> Point | LedgerError | None:
        """Narrow the bracket of known blocks until nothing is between them."""
        low, high = shared.known.around(self._time_ns)
        if high is None:
            newest = shared.answers["final"]
            return newest if isinstance(newest, LedgerError) or low is None else low
        if low is None:
            self.reference = "genesis"
            first = shared.answers.get("genesis")
            return _before(self._time_ns, first) if isinstance(first, Point) else first
        last = self._asked[-1] if self._asked else -1
        failed = None if last in shared.absent else shared.answers.get(last)
        return failed if isinstance(failed, LedgerError) else self._narrow(shared, low, high)

    def _narrow(self, shared: _Round, low: Point, high: Point) -> Point | LedgerError | None:
        """Choose what to read between two blocks, or take the lower one."""
        if high.prev_hash == low.hash:
            return low
        if self._between != (low, high):
            self._between, self._turn, self._asked = (low, high), self._turn + 1, []
        height = next_height(low, high, self._time_ns, turn=self._turn, absent=shared.absent)
        if height is None or len(self._asked) > LONGEST_GAP:
            return self._ask_parent(shared, low, high)
        self._asked.append(height)
        self.reference = height
        return None

    def _ask_parent(self, shared: _Round, low: Point, high: Point) -> Point | LedgerError | None:
        """Tell skipped heights from dropped ones: by the block before the upper one."""
        parent = shared.answers.get(high.prev_hash)
        if parent is None:
            self.reference = high.prev_hash
            return None
        if isinstance(parent, LedgerError):
            is_lost = isinstance(parent, UnknownBlockError)
            return _dropped(low.height + 1, high.height - 1) if is_lost else parent
        if len(self._asked) > LONGEST_GAP and parent.height > max(self._asked):
            return _dropped(min(self._asked), max(self._asked))
        if not low.height < parent.height < high.height or not shared.known.add(parent):
            return _contradicts(high.prev_hash, parent)
        return self.step(shared)


def _search(place: BlockReference) -> _Search:
    """Choose how a block is found."""
    if place.timestamp_ns is not None:
        return _ByTime(place.timestamp_ns)
    height = place.params.get("block_id")
    return _ByHeight(height) if isinstance(height, int) else _Search(place)


def _before(time_ns: int, first: Point) -> InvalidRequestError:
    """Refuse a time before the chain."""
    rule = f"not before the first block, {first.time_ns} ns since 1970"
    return InvalidRequestError.refuse("at", time_ns, rule)


def _dropped(first: int, last: int) -> UnknownBlockError:
    """Say that a host has forgotten what it is asked for."""
    return UnknownBlockError(
        f"this host holds no block from height {first} to {last}", remedy=_ARCHIVE
    )
