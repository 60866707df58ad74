"""Which height to ask next for the block of a time, given the blocks that are known."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container

_MOST_POINTS = 20_000
_TURNS = 3
_TIME = attrgetter("time_ns")
_HEIGHT = attrgetter("height")


class Point(NamedTuple):
    """A block's place and time, and the block before it."""

    height: int
    time_ns: int
    hash: str
    prev_hash: str
    prev_height: int | None = None


class Points:
    """
    Final blocks that are known, in order.

    Threads may share it without a lock: a change replaces all of it at once, and a point
    that two of them lose costs a request.

    Parameters
    ----------
    limit
        Beyond so many, every second one is forgotten.
    """

    def __init__(self, limit: int = _MOST_POINTS) -> None:
        self._limit = limit
        self._points: tuple[Point, ...] = ()

    def __len__(self) -> int:
        return len(self._points)

    @property
    def last(self) -> Point | None:
        """The newest block that is known."""
        return self._points[-1] if self._points else None

    def add(self, point: Point) -> bool:
        """Keep a block; False where its time contradicts those of its neighbours."""
        points = self._points
        place = bisect_left(points, point.height, key=_HEIGHT)
        if place < len(points) and points[place].height == point.height:
            return points[place].hash == point.hash
        before, after = points[max(0, place - 1) : place], points[place : place + 1]
        times = [one.time_ns for one in (*before, point, *after)]
        if times != sorted(times):
            return False
        points = (*points[:place], point, *points[place:])
        if len(points) > self._limit:
            points = (*points[:-1:2], points[-1])
        self._points = points
        return True

    def at(self, height: int) -> Point | None:
        """Find the block of a height."""
        points = self._points
        place = bisect_left(points, height, key=_HEIGHT)
        found = points[place] if place < len(points) else None
        return found if found is not None and found.height == height else None

    def around(self, time_ns: int) -> tuple[Point | None, Point | None]:
        """Find the last block that is not younger than a time, and the first that is."""
        points = self._points
        place = bisect_right(points, time_ns, key=_TIME)
        low = points[place - 1] if place else None
        return low, points[place] if place < len(points) else None


def next_height(
    low: Point, high: Point, time_ns: int, *, turn: int = 0, absent: Container[int] = ()
) -> int | None:
    """
    Choose the height to ask next.

    Parameters
    ----------
    low
        A block that is not younger than the time.
    high
        A block that is.
    time_ns
        The time.
    turn
        How many blocks were found between them so far.
    absent
        Heights known to have no block.

    Returns
    -------
    height
        Strictly between the two, and not absent; None where there is none left. Every
        third turn halves what is between them, so that no clock makes it slow.
    """
    if high.prev_hash == low.hash:
        return None
    first = low.height + 1
    last = high.height - 1 if high.prev_height is None else min(high.prev_height, high.height - 1)
    while first in absent:
        first += 1
    while last >= first and last in absent:
        last -= 1
    if first > last:
        return None
    height = min(max(_guess(low, high, time_ns, turn % _TURNS), first), last)
    while height in absent:
        height -= 1
    return height


def _guess(low: Point, high: Point, time_ns: int, turn: int) -> int:
    """Interpolate; then aim beyond the nearer end's guess, to have it between two; then halve."""
    gap = high.height - low.height
    if turn == _TURNS - 1:
        return low.height + gap // 2
    up = gap * (time_ns - low.time_ns) // (high.time_ns - low.time_ns)
    if turn == 0:
        return low.height + up
    down = gap - up
    return low.height + up + up // 2 + 1 if up <= down else high.height - down - down // 2 - 1
