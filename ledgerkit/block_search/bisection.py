"""Bisection over block times: the next height to request, given the known blocks."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container
from operator import attrgetter
from typing import NamedTuple

_MAX_POINTS = 20_000
_MARGIN = 64  # the second height is 1/64 of the interval past the interpolated height
_TIME = attrgetter("time_ns")
_HEIGHT = attrgetter("height")


class Point(NamedTuple):
    """The height, time and hash of a block, and its previous block."""

    height: int
    time_ns: int
    hash: str
    prev_hash: str
    prev_height: int | None = None


class Points:
    """
    The known final blocks, ordered by height; above `limit`, every second block is dropped.

    Threads share it without a lock: a change replaces the whole tuple. If two threads add at the
    same moment a point may be lost, which costs another request later.
    """

    def __init__(self, limit: int = _MAX_POINTS) -> None:
        self._limit = limit
        self._points: tuple[Point, ...] = ()

    def __len__(self) -> int:
        return len(self._points)

    @property
    def last(self) -> Point | None:
        return self._points[-1] if self._points else None

    def add(self, point: Point) -> bool:
        """Add a block; return False if it contradicts a known block."""
        points = self._points
        index = bisect_left(points, point.height, key=_HEIGHT)
        if index < len(points) and points[index].height == point.height:
            return points[index].hash == point.hash
        before, after = points[max(0, index - 1) : index], points[index : index + 1]
        times = [neighbour.time_ns for neighbour in (*before, point, *after)]
        if times != sorted(times):
            return False
        points = (*points[:index], point, *points[index:])
        if len(points) > self._limit:
            points = (*points[:-1:2], points[-1])
        self._points = points
        return True

    def at(self, height: int) -> Point | None:
        """Return the block at a height, if it is known."""
        points = self._points
        index = bisect_left(points, height, key=_HEIGHT)
        point = points[index] if index < len(points) else None
        return point if point is not None and point.height == height else None

    def around(self, time_ns: int) -> tuple[Point | None, Point | None]:
        """Return the last known block at or before a time, and the first known block after it."""
        points = self._points
        index = bisect_right(points, time_ns, key=_TIME)
        low = points[index - 1] if index else None
        return low, points[index] if index < len(points) else None


def next_heights(
    low: Point, high: Point, time_ns: int, *, halve: bool = False, absent: Container[int] = ()
) -> list[int]:
    """
    Return the heights to request next in the search for the last block at or before a time.

    They are between `low`, a block at or before the time, and `high`, a block after it, and not in
    `absent`, the heights without a block; the list is empty if no height is left. The first height
    is the best guess: interpolated, or with `halve` in the middle, so that irregular block times
    cannot make the search slow. A second height makes the next interval short if times are even.
    """
    if high.prev_hash == low.hash:
        return []
    first = low.height + 1
    last = high.height - 1 if high.prev_height is None else min(high.prev_height, high.height - 1)
    while first in absent:
        first += 1
    while last >= first and last in absent:
        last -= 1
    if first > last:
        return []
    heights: dict[int, None] = {}
    for estimate in _estimates(low, high, time_ns, halve=halve):
        height = min(max(estimate, first), last)
        while height in absent:
            height -= 1
        heights[height] = None
    return list(heights)


def _estimates(low: Point, high: Point, time_ns: int, *, halve: bool) -> list[int]:
    """Interpolate the height of a time, and add another past it; or halve the interval first."""
    gap = high.height - low.height
    up = gap * (time_ns - low.time_ns) // (high.time_ns - low.time_ns)
    estimate = low.height + up
    if halve:
        return [low.height + gap // 2, estimate]
    # Interpolation approaches the block from one side; the second height is on the other side.
    margin = max(1, gap // _MARGIN)
    is_after = up <= gap - up or margin == 1  # an exact estimate needs only the next block
    return [estimate, estimate + margin if is_after else estimate - margin]
