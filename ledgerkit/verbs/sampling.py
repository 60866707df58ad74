"""A range in the chain's history: its ends, and the heights or times between them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.tseries.frequencies import to_offset

from ledgerkit import validation
from ledgerkit.errors import InvalidRequestError, LedgerError
from ledgerkit.validation import BlockReference

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ledgerkit.block_search.bisection import Point

    Offset = pd.tseries.offsets.BaseOffset
    Locate = Callable[[Sequence[BlockReference]], Sequence[Point | LedgerError]]

MOST_READINGS = 10_000
_USUAL = 24
_EVERY_RULE = (
    'a number of heights such as 1000, a duration such as "6h" or "1D", or left out for '
    f"{_USUAL} readings"
)


@dataclass(frozen=True, slots=True)
class Grid:
    """
    A range and its spacing, checked.

    `width` is the number of readings at each of its points.
    """

    start: BlockReference
    stop: BlockReference
    every: int | Offset | None
    width: int

    @property
    def by_time(self) -> bool:
        """Whether its points are times; otherwise they are heights."""
        times = [end.timestamp_ns is not None for end in (self.start, self.stop)]
        return all(times) if self.every is None else not isinstance(self.every, int)

    def points(self, locate: Locate) -> list[BlockReference]:
        """List its points; ends that do not tell where they are, are located."""
        ends = [_where(end, by_time=self.by_time) for end in (self.start, self.stop)]
        unclear = [end for end, place in zip((self.start, self.stop), ends, strict=True)
                   if place is None]  # fmt: skip
        located = iter([self._place(one) for one in locate(unclear)] if unclear else [])
        first, last = (next(located) if end is None else end for end in ends)
        places = self._between(first, last)
        return [
            BlockReference({}, place) if self.by_time else validation.block_reference(place)
            for place in places
        ]

    def _place(self, found: Point | LedgerError) -> int:
        """Give the height or time of an end."""
        if isinstance(found, LedgerError):
            raise found
        return found.time_ns if self.by_time else found.height

    def check(self) -> None:
        """Refuse what can be refused before anything is sent."""
        ends = [_where(end, by_time=self.by_time) for end in (self.start, self.stop)]
        if ends[0] is not None and ends[1] is not None:
            self._between(ends[0], ends[1])

    def _between(self, first: int, last: int) -> Sequence[int]:
        """Space points evenly, the first at the start; the stop is one if it falls on them."""
        if first > last:
            shown = next(iter(self.stop.params.values()), self.stop.timestamp_ns)
            raise InvalidRequestError.refuse("stop", shown, "not before start")
        most = MOST_READINGS // self.width
        if not most:
            rule = f"at most {MOST_READINGS:,} of them"
            raise InvalidRequestError.refuse("contracts", f"{self.width:,} at each point", rule)
        if self.every is None:
            steps = min(_USUAL, most) - 1
            places = [first + (last - first) * step // max(1, steps) for step in range(steps + 1)]
            return list(dict.fromkeys(places))
        if isinstance(self.every, int):
            heights = range(first, last + 1, self.every)
            return heights if len(heights) <= most else self._too_many()
        times = _times(first, last, self.every, most + 1)
        return times if len(times) <= most else self._too_many()

    def _too_many(self) -> Sequence[int]:
        """Refuse more readings than anyone can have meant."""
        each = f", {self.width:,} at each point" if self.width > 1 else ""
        rule = f"longer, for there may be at most {MOST_READINGS:,} readings{each}"
        shown = self.every if isinstance(self.every, int | None) else self.every.freqstr
        raise InvalidRequestError.refuse("every", shown, rule)


def _where(end: BlockReference, *, by_time: bool) -> int | None:
    """Tell the height or time that an end names; None where it names neither."""
    height = end.params.get("block_id")
    return end.timestamp_ns if by_time else height if isinstance(height, int) else None


def checked(start: object, stop: object, every: object, *, width: int) -> Grid:
    """Check a range and its spacing."""
    ends = validation.block_reference(start, "start"), validation.block_reference(stop, "stop")
    grid = Grid(*ends, _every(every), max(1, width))
    grid.check()
    return grid


def _every(value: Any) -> int | Offset | None:
    """Read a spacing: heights, or a duration that goes on."""
    if value is None:
        return None
    if isinstance(value, str | timedelta | np.timedelta64 | pd.tseries.offsets.BaseOffset):
        return _forward(_offset(value), value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return validation.integer(
            value, "every", least=1, most=2**64 - 1, noun="a number of heights"
        )
    raise InvalidRequestError.refuse("every", value, _EVERY_RULE)


def _offset(value: Any) -> Offset | None:
    """Read a duration as pandas does: "6h", "MS", "2 days"; a bare number is none."""
    if isinstance(value, str) and not value.strip("0123456789. "):
        return None
    for reading in (value, _timedelta(value)):
        with suppress(ValueError, TypeError, Warning):  # a deprecated letter may be an error
            found: Offset | None = to_offset(reading)
            if found is not None:
                return found
    return None


def _timedelta(value: Any) -> pd.Timedelta | None:
    """Read a length of time."""
    with suppress(ValueError, TypeError):
        found = pd.Timedelta(value)
        return found if isinstance(found, pd.Timedelta) else None
    return None


def _forward(offset: Offset | None, value: object) -> Offset:
    """Refuse what is no duration, or does not lead into the future."""
    origin = pd.Timestamp(0, tz="UTC")
    if offset is None or not origin + offset > origin:
        raise InvalidRequestError.refuse("every", value, _EVERY_RULE)
    return offset


def _times(first: int, last: int, every: Offset, most: int) -> list[int]:
    """Step from time to time, in nanoseconds; pandas' clock ends in 2262."""
    ends = pd.Timestamp.min.value, pd.Timestamp.max.value
    time = pd.Timestamp(min(max(first, ends[0]), ends[1]), tz="UTC")
    found: list[int] = []
    with suppress(pd.errors.OutOfBoundsDatetime, OverflowError):
        time = every.rollforward(time)
        while time.value <= last and len(found) < most:
            found.append(time.value)
            time += every
    return found
