"""Ranges in time and height: evenly spaced, bounded, never outside their ends."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit import validation
from ledgerkit.block_search.bisection import Point
from ledgerkit.errors import InvalidRequestError, TransportError
from ledgerkit.verbs import sampling

HEIGHTS = st.integers(0, 10**9)


def points(
    start: object, stop: object, every: object = None, *, readings_per_point: int = 1
) -> list[Any]:
    """List the heights or times of a range whose ends need not be located."""
    found = sampling.check_range(start, stop, every, readings_per_point=readings_per_point).points(
        lambda _: []
    )
    return [one.params.get("block_id", one.timestamp_ns) for one in found]


@given(HEIGHTS, st.integers(0, 10**4 - 1), st.integers(1, 10**5))
def test_heights(start: int, gap: int, every: int) -> None:
    """A number of heights steps from the start; the stop is there if it falls on the grid."""
    assert points(start, start + gap, every) == [
        start + n for n in range(gap + 1) if n % every == 0
    ]


@given(HEIGHTS, HEIGHTS)
def test_the_usual_number(start: int, gap: int) -> None:
    """Without a spacing there are 24 points or, of a short range, each height; evenly, ends too."""
    found = points(start, start + gap)
    assert len(found) == min(24, gap + 1)
    assert (found[0], found[-1]) == (start, start + gap)
    steps = {high - low for low, high in pairwise(found)}
    assert not steps or max(steps) - min(steps) <= 1


@given(st.datetimes(), st.datetimes())
def test_any_two_times(one: Any, other: Any) -> None:
    """Of any two times, however far apart, there are at most 24 points, within them."""
    low, high = sorted((one, other))
    found = points(low, high)
    assert len(found) <= 24
    assert found == sorted(found)
    ends = [validation.block_reference(end).timestamp_ns for end in (low, high)]
    assert [found[0], found[-1]] == (ends if low != high else ends[:1] * 2)


def test_durations(subtests: pytest.Subtests) -> None:
    """Durations, and steps of the calendar, are what pandas takes them for."""
    cases = [
        ("1D", 11),
        ("P1D", 11),
        (" 6h ", 41),
        ("1D1h", 10),
        ("W-MON", 2),
        ("ME", 0),
        (pd.offsets.BusinessHour(), 48),
        (pd.offsets.MonthEnd(0), 0),
    ]
    for every, count in cases:
        with subtests.test(every=every):
            found = points("2026-08-01", "2026-08-11", every)
            assert len(found) == count
            assert found == sorted(set(found))


@pytest.mark.parametrize(
    ("start", "stop", "every", "count"),
    [("2262-04-10", "9999-12-31", "6h", 8), ("0001-01-01", "1700-01-01", "365D", 23)],
)
def test_beyond_pandas_clock(start: str, stop: str, every: str, count: int) -> None:
    """Times that pandas cannot count in nanoseconds end the grid; they raise nothing strange."""
    assert len(points(start, stop, every)) == count


def test_a_step_that_stands_still() -> None:
    """An offset that does not move on is refused when it would never end."""
    with pytest.raises(InvalidRequestError, match="10,000 readings"):
        points("2026-08-01", "2026-09-11", pd.offsets.MonthEnd(0))


def test_the_width_counts() -> None:
    """The more is read at each point, the fewer points there may be."""
    assert len(points(0, 999, 1, readings_per_point=10)) == 1000
    assert len(points(0, 999, readings_per_point=5000)) == 2
    with pytest.raises(InvalidRequestError, match="10 at each point"):
        points(0, 1000, 1, readings_per_point=10)
    with pytest.raises(InvalidRequestError, match="10,001 at each point") as caught:
        points(0, 1, readings_per_point=10_001)
    assert caught.value.field == "contracts"


def test_ends_that_must_be_located() -> None:
    """An end that names no height is located, alone and once; a failure there is raised."""
    asked = []

    def locate(places: Any) -> list[Any]:
        asked.extend(places)
        return [Point(120, 10**18, "h", "g")]

    grid = sampling.check_range(100, "final", 10, readings_per_point=1)
    assert [at.params["block_id"] for at in grid.points(locate)] == [100, 110, 120]
    assert asked == [validation.block_reference("final")]
    by_time = sampling.check_range("2001-09-09T01:46:30", 120, "5s", readings_per_point=1)
    assert [at.timestamp_ns for at in by_time.points(locate)] == [
        999_999_990 * 10**9,
        999_999_995 * 10**9,
        10**18,
    ]
    with pytest.raises(TransportError):
        grid.points(lambda _: [TransportError("down")])
