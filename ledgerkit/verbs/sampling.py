"""Sampling points: evenly spaced heights or times between two points of the chain's history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Never

import numpy as np
import pandas as pd
from pandas.tseries.frequencies import to_offset

from ledgerkit import validation
from ledgerkit.errors import InvalidRequestError, LedgerError
from ledgerkit.ledger import refuse_reference
from ledgerkit.validation import BlockReference

if TYPE_CHECKING:
    from ledgerkit.block_search.bisection import Point

    Offset = pd.tseries.offsets.BaseOffset
    Locate = Callable[[Sequence[BlockReference]], Sequence[Point | LedgerError]]

MAX_READINGS = 10_000
_DEFAULT_POINTS = 24
_EVERY_RULE = (
    'a number of heights such as 1000, a duration such as "6h" or "1D", or None for '
    f"{_DEFAULT_POINTS} readings"
)


@dataclass(frozen=True, slots=True)
class SamplingRange:
    """A checked range with its spacing, and the number of readings at each of its points."""

    start: BlockReference
    stop: BlockReference
    every: int | Offset | None
    readings_per_point: int

    @property
    def by_time(self) -> bool:
        """True if the points are times, False if they are heights."""
        if self.every is None:
            return all(end.timestamp_ns is not None for end in (self.start, self.stop))
        return not isinstance(self.every, int)

    def points(self, locate: Locate) -> list[BlockReference]:
        """List the sampling points; ends of unknown position are located first."""
        ends = (self.start, self.stop)
        positions = self._positions()
        unknown = [end for end, value in zip(ends, positions, strict=True) if value is None]
        located = iter(locate(unknown) if unknown else ())
        first, last = (
            self._position_of(next(located), name) if value is None else value
            for name, value in zip(("start", "stop"), positions, strict=True)
        )
        return [
            BlockReference({}, value) if self.by_time else validation.block_reference(value)
            for value in self._between(first, last)
        ]

    def check(self) -> None:
        """Check the range as far as possible before anything is sent."""
        first, last = self._positions()
        if first is not None and last is not None:
            self._between(first, last)

    def _positions(self) -> list[int | None]:
        """Return the height or time of each end; None if it must be located."""
        ends = (self.start, self.stop)
        if self.by_time:
            return [end.timestamp_ns for end in ends]
        return [end.height for end in ends]

    def _position_of(self, point: Point | LedgerError, name: str) -> int:
        if isinstance(point, LedgerError):
            refuse_reference(point, name, getattr(self, name).as_passed)
            raise point
        return point.time_ns if self.by_time else point.height

    def _between(self, first: int, last: int) -> Sequence[int]:
        """List evenly spaced points from `first` on, up to `last` if the spacing reaches it."""
        if first > last:
            rule = "a point that is not before start"
            raise InvalidRequestError.refuse("stop", self.stop.as_passed, rule)
        max_points = MAX_READINGS // self.readings_per_point
        if not max_points:
            msg = (
                f"at most {MAX_READINGS:,} readings are made, but contracts and pools need "
                f"{self.readings_per_point:,} at each point"
            )
            raise InvalidRequestError(msg, field="contracts", value=self.readings_per_point)
        if self.every is None:
            steps = min(_DEFAULT_POINTS, max_points) - 1
            span = last - first
            points = [first + span * step // max(1, steps) for step in range(steps + 1)]
            return list(dict.fromkeys(points))
        if isinstance(self.every, int):
            heights = range(first, last + 1, self.every)
            return heights if len(heights) <= max_points else self._refuse_spacing()
        times = _times(first, last, self.every, max_points + 1)
        return times if len(times) <= max_points else self._refuse_spacing()

    def _refuse_spacing(self) -> Never:
        count = self.readings_per_point
        suffix = f", {count:,} at each point" if count > 1 else ""
        rule = f"a longer spacing: at most {MAX_READINGS:,} readings are made{suffix}"
        every = self.every if isinstance(self.every, int | None) else self.every.freqstr
        raise InvalidRequestError.refuse("every", every, rule)


def check_range(
    start: object, stop: object, every: object, *, readings_per_point: int
) -> SamplingRange:
    start, stop = validation.period_ends(start, stop)
    ends = validation.block_reference(start, "start"), validation.block_reference(stop, "stop")
    sampling = SamplingRange(*ends, _check_spacing(every), max(1, readings_per_point))
    sampling.check()
    return sampling


def _check_spacing(value: Any) -> int | Offset | None:
    if value is None:
        return None
    if isinstance(value, str | timedelta | np.timedelta64 | pd.tseries.offsets.BaseOffset):
        offset = _parse_offset(value)
        origin = pd.Timestamp(0, tz="UTC")
        if offset is not None and origin + offset > origin:
            return offset
    elif isinstance(value, int | np.integer) and not isinstance(value, bool):
        return validation.integer(
            value, "every", least=1, most=2**64 - 1, noun="a number of heights"
        )
    raise InvalidRequestError.refuse("every", value, _EVERY_RULE)


def _parse_offset(value: Any) -> Offset | None:
    """Parse a duration as pandas does ("6h", "MS", "2 days"); None if it is malformed."""
    if isinstance(value, str) and not value.strip("0123456789. "):
        return None  # pandas reads a bare number as nanoseconds
    for parse in (to_offset, lambda value: to_offset(pd.Timedelta(value))):
        with suppress(ValueError, TypeError, Warning):  # a FutureWarning may be raised
            offset: Offset = parse(value)
            return offset
    return None


def _times(first: int, last: int, every: Offset, limit: int) -> list[int]:
    """List at most `limit` times in nanoseconds; a pandas Timestamp ends in 2262."""
    earliest, latest = pd.Timestamp.min.value, pd.Timestamp.max.value
    time = pd.Timestamp(min(max(first, earliest), latest), tz="UTC")
    times: list[int] = []
    with suppress(pd.errors.OutOfBoundsDatetime, OverflowError):
        time = every.rollforward(time)
        while time.value <= last and len(times) < limit:
            times.append(time.value)
            time += every
    return times
