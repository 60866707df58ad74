"""The interval of `start` and `stop`: its first block, and the first block after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING

from ledgerkit import validation
from ledgerkit.errors import InvalidRequestError
from ledgerkit.ledger import Ledger, locate_arguments, newest_block_in_errors

if TYPE_CHECKING:
    from ledgerkit.block_search.bisection import Point
    from ledgerkit.validation import BlockReference

    Ends = Mapping[str, BlockReference]  # by argument, without arguments that are None

_stated_height, _stated_time = attrgetter("height"), attrgetter("timestamp_ns")


def parse(start: object, stop: object, *, needs_start: bool = False) -> Ends:
    """Parse both ends; raise if one is malformed, or `stop` is surely before `start`."""
    if needs_start and start is None:
        raise InvalidRequestError.required("start", "the first block, or its time")
    start, stop = validation.period_ends(start, stop)
    ends = {
        name: validation.block_reference(end, name)
        for name, end in {"start": start, "stop": stop}.items()
        if end is not None
    }
    for position in (_stated_height, _stated_time):
        _check_order(ends, {name: position(end) for name, end in ends.items()})
    return ends


def heights(ledger: Ledger, ends: Ends) -> dict[str, int]:
    """Return the heights of the ends by argument: the first height, and the first after it."""
    return _positions(ledger, ends, _stated_height, _located_height)


def times(ledger: Ledger, ends: Ends) -> dict[str, int]:
    """Return the ends as `heights` does, but as times in nanoseconds."""
    return _positions(ledger, ends, _stated_time, _located_time)


def final_blocks(ledger: Ledger, ends: Ends, newest: Callable[[], int]) -> range:
    """
    Return the heights of an interval of final blocks; `newest` returns the last final height.

    The interval ends there if it has no stop, or a stop time that is still to come.
    """
    positions = heights(ledger, ends)
    first, stop = positions["start"], positions.get("stop")
    if stop is None or ends["stop"].timestamp_ns is not None:
        after_newest = newest() + 1
        stop = max(first, after_newest if stop is None else min(stop, after_newest))
    return range(first, stop)


def _located_height(end: BlockReference, point: Point) -> int:
    """Return the height of a block hash, or of the first block at or after a time."""
    time_ns = end.timestamp_ns
    return point.height + (time_ns is not None and point.time_ns < time_ns)


def _located_time(end: BlockReference, point: Point) -> int:
    """Return the time of a block; a skipped height is after the block below it."""
    height = end.height
    return point.time_ns + (height is not None and height != point.height)


def _positions(
    ledger: Ledger,
    ends: Ends,
    stated: Callable[[BlockReference], int | None],
    located: Callable[[BlockReference, Point], int],
) -> dict[str, int]:
    """
    Return the position of each end, a height or a time.

    `stated` returns the position of a reference, if it needs no request, and `located` the
    position of the block that was located for it.
    """
    stated_positions = {name: stated(end) for name, end in ends.items()}
    positions = {name: value for name, value in stated_positions.items() if value is not None}
    unknown = {name: end for name, end in ends.items() if name not in positions}
    with newest_block_in_errors(ledger):
        points = locate_arguments(ledger, unknown)
    positions |= {name: located(ends[name], point) for name, point in points.items()}
    _check_order(ends, positions)
    return positions


def _check_order(ends: Ends, positions: Mapping[str, int | None]) -> None:
    first, after = positions.get("start"), positions.get("stop")
    if first is not None and after is not None and after < first:
        rule = f"a block or time not before {ends['start'].as_passed}"
        raise InvalidRequestError.refuse("stop", ends["stop"].as_passed, rule)
