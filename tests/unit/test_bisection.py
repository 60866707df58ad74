"""Blocks by time: the right one is found, whatever the clock and the gaps, with few requests."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import base58
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit import validation
from ledgerkit.api.models import chain
from ledgerkit.block_search import time_to_height
from ledgerkit.block_search.bisection import Point, Points
from ledgerkit.errors import (
    DecodeError,
    LedgerError,
    TransportError,
    UnknownBlockError,
)
from ledgerkit.validation import BlockReference

FIRST = 1000
NS = 10**9


def named(height: int) -> str:
    return base58.b58encode(bytes(range(1, 29)) + height.to_bytes(4, "big")).decode()


def height_of(block_hash: str) -> int:
    """Tell the height that a hash was invented for."""
    return int.from_bytes(base58.b58decode(block_hash)[28:], "big")


class Host:
    """A chain of some heights with their times, which counts what it is asked."""

    def __init__(self, times: dict[int, int], *, names_parents: bool = True) -> None:
        self.times = times
        self.heights = sorted(times)
        self.names_parents = names_parents
        self.kept: set[int] = set(times)
        self.told: dict[int, int] = {}
        self.asked: list[Any] = []
        self.rounds = 0

    def __call__(self, wanted: Any) -> list[Any]:
        """Answer many calls at once."""
        self.rounds += 1
        return [self._answer(call.request.removeprefix("block ")) for call in wanted]

    def _answer(self, name: str) -> Any:
        self.asked.append(name)
        ends = {"final": self.heights[-1], "genesis": self.heights[0]}
        height = ends.get(name) or (int(name) if name.isdigit() else height_of(name))
        height = self.told.get(height, height)
        known = height in self.kept or name in ends
        return self.block(height) if known else UnknownBlockError(block=name)

    def block(self, height: int) -> chain.Block:
        place = self.heights.index(height)
        before = self.heights[place - 1] if place else 0
        header = chain.BlockHeader(
            height, named(height), named(before), "epoch", 1, "1", "1",
            timestamp=self.times[height], prev_height=before if self.names_parents else None,
        )  # fmt: skip
        return chain.Block("a.near", header)

    def wanted(self, time_ns: int) -> int:
        """Tell the last height that is not younger than a time."""
        return max(height for height in self.heights if self.times[height] <= time_ns)


@st.composite
def hosts(draw: st.DrawFn) -> Host:
    """Draw a chain: uneven times, skipped heights, with or without the heights of parents."""
    gaps = draw(st.lists(st.sampled_from([1, 1, 1, 1, 2, 5, 40]), min_size=1, max_size=60))
    steps = draw(st.lists(st.integers(1, 10**12), min_size=len(gaps), max_size=len(gaps)))
    heights = list(accumulate([FIRST, *gaps]))
    times = list(accumulate([NS, *steps]))
    return Host(dict(zip(heights, times, strict=True)), names_parents=draw(st.booleans()))


def find(host: Host, known: Points, places: list[Any]) -> list[Any]:
    """Find blocks by times, given as integers, or other places."""
    return time_to_height.find_blocks(host, known, places)


def at_time(time_ns: int) -> BlockReference:
    return BlockReference({}, time_ns)


@given(hosts(), st.data())
def test_the_block_of_a_time(host: Host, data: st.DataObject) -> None:
    """For any clock and any gaps each time finds the last block that is not younger."""
    low, high = host.times[host.heights[0]], host.times[host.heights[-1]]
    edges = sorted(host.times.values())
    times = data.draw(st.lists(st.one_of(st.integers(low, high + 10), st.sampled_from(edges))))
    known = Points()
    together = find(host, known, [at_time(one) for one in times])
    assert [point.height for point in together] == [host.wanted(one) for one in times]
    alone = Points()
    for one in times:
        [point] = find(host, alone, [at_time(one)])
        assert (point.height, point.time_ns) == (host.wanted(one), host.times[host.wanted(one)])
        assert point.hash == named(point.height)


@given(hosts(), st.data())
def test_the_block_of_a_height(host: Host, data: st.DataObject) -> None:
    """A height finds its block or, where it was skipped, the last below."""
    span = st.integers(host.heights[0], host.heights[-1])
    heights = data.draw(st.lists(span, max_size=20))
    found = find(host, Points(), [validation.block_reference(one) for one in heights])
    wanted = [max(have for have in host.heights if have <= one) for one in heights]
    assert [point.height for point in found] == wanted


@given(st.lists(st.integers(1, 10**12), min_size=2, max_size=300), st.data())
def test_no_clock_makes_it_slow(steps: list[int], data: st.DataObject) -> None:
    """Without gaps a search never asks more than three times as often as halving would."""
    times = list(accumulate([NS, *steps]))
    host = Host(dict(enumerate(times, FIRST)))
    time_ns = data.draw(st.integers(times[0], times[-1] - 1))
    [point] = find(host, Points(), [at_time(time_ns)])
    assert point.height == host.wanted(time_ns)
    assert len(host.asked) <= 2 + 3 * (math.ceil(math.log2(len(times))) + 1)


@pytest.mark.parametrize("clock", ["even", "faster later"])
def test_a_usual_clock_is_quick(clock: str) -> None:
    """Of a million blocks a handful is asked."""
    speed = {"even": lambda n: n * 6, "faster later": lambda n: n * 6 + min(n, 400_000) * 6}[clock]

    class Long(Host):
        """A chain that is computed."""

        def block(self, height: int) -> chain.Block:
            header = chain.BlockHeader(
                height, named(height), named(height - 1), "epoch", 1, "1", "1",
                timestamp=NS + speed(height - FIRST) * NS // 10,
            )  # fmt: skip
            return chain.Block("a.near", header)

    host = Long({FIRST: NS, FIRST + 10**6: NS + speed(10**6) * NS // 10})
    host.kept = set(range(FIRST, FIRST + 10**6 + 1))
    times = [NS + speed(n) * NS // 10 + 7 for n in range(5, 10**6, 99_991)]
    found = find(host, Points(), [at_time(one) for one in times])
    assert [point.height for point in found] == list(range(FIRST + 5, FIRST + 10**6, 99_991))
    assert len(host.asked) < 2 + 6 * len(times)
    assert host.rounds < 15


def test_what_is_known_is_not_asked_again() -> None:
    """The second search for the same times sends nothing; one nearby asks next to nothing."""
    host = Host({FIRST + n: NS + n * NS for n in range(1000)})
    known = Points()
    find(host, known, [at_time(NS + 500 * NS)])
    host.asked.clear()
    [again] = find(host, known, [at_time(NS + 500 * NS + 1)])
    assert (again.height, host.asked) == (FIRST + 500, [])
    near: Any = find(host, known, [at_time(NS + 502 * NS)])[0]
    assert near.height == FIRST + 502
    assert len(host.asked) <= 2
    host.asked.clear()
    [newest] = find(host, known, [at_time(10**15)])
    assert (newest.height, host.asked) == (FIRST + 999, ["final"])


def test_a_hash_is_no_proof_of_finality() -> None:
    """A block named by its hash is found, and not taken for one of the final chain."""
    host = Host({FIRST + n: NS + n * NS for n in range(10)})
    known = Points()
    [found] = find(host, known, [BlockReference({"block_id": named(FIRST + 3)})])
    assert found.height == FIRST + 3
    assert len(known) == 0


def test_above_the_final_head() -> None:
    """A height that has no block yet is not known, and not the block below."""
    host = Host({FIRST + n: NS + n * NS for n in range(10)})
    [found] = find(host, Points(), [validation.block_reference(FIRST + 10)])
    assert isinstance(found, UnknownBlockError)
    assert host.asked == ["final", str(FIRST + 10)]


@pytest.mark.parametrize("names_parents", [True, False])
@pytest.mark.parametrize("kept", [3, 40, 400])
def test_dropped_blocks(kept: int, names_parents: bool) -> None:  # noqa: FBT001 - of the test
    """Blocks that a host has dropped are told from skipped ones, with the way to get them."""
    host = Host({FIRST + n: NS + n * NS for n in range(1000)}, names_parents=names_parents)
    host.kept = set(host.heights[-kept:]) | {FIRST}
    wanted = [
        at_time(NS + 300 * NS),
        validation.block_reference(FIRST + 300),
        at_time(NS + 998 * NS),
    ]
    [by_time, by_height, recent] = find(host, Points(), wanted)
    for lost in (by_time, by_height):
        assert isinstance(lost, UnknownBlockError)
        assert "archival_rpc_url=" in lost.remedy
    assert recent.height == FIRST + 998
    assert len(host.asked) <= 3 * (time_to_height.LONGEST_GAP + 3)


@pytest.mark.parametrize("lost", [[50], [49, 50], [50, 51, 52]])
def test_a_dropped_block_is_not_taken_for_a_skipped_one(lost: list[int]) -> None:
    """The block above follows on it, so the one below is not the last one at its height."""
    host = Host({FIRST + n: NS + n * NS for n in range(100)})
    host.kept -= {FIRST + n for n in lost}
    [found] = find(host, Points(), [validation.block_reference(FIRST + 50)])
    assert isinstance(found, UnknownBlockError)
    assert "archival_rpc_url=" in found.remedy


def test_failures_stand_in_their_places() -> None:
    """Where a host fails, only the search that needed the answer fails."""
    host = Host({FIRST + n: NS + n * NS for n in range(100)})

    def failing(wanted: Any) -> list[Any]:
        told = host(wanted)
        down: LedgerError = TransportError("down")
        return [
            down if call.request == f"block {FIRST + 50}" else answer
            for call, answer in zip(wanted, told, strict=True)
        ]

    found = time_to_height.find_blocks(
        failing, Points(), [validation.block_reference(FIRST + n) for n in (49, 50, 51)]
    )
    assert [getattr(one, "height", type(one)) for one in found] == [
        FIRST + 49,
        TransportError,
        FIRST + 51,
    ]
    [by_time] = time_to_height.find_blocks(failing, Points(), [at_time(NS + 50 * NS)])
    assert isinstance(by_time, TransportError)


def test_a_host_that_contradicts_itself() -> None:
    """Another block than the one asked for, or one out of time, is an error."""
    host = Host({FIRST + n: NS + n * NS for n in range(100)})
    host.told = {FIRST + 50: FIRST + 60}
    [found] = find(host, Points(), [validation.block_reference(FIRST + 50)])
    assert isinstance(found, DecodeError)
    other = Host({FIRST + n: NS + n * NS for n in range(100)})
    known = Points()
    find(other, known, [at_time(NS + 50 * NS)])
    other.times[FIRST + 20] = 10**15
    [found] = find(other, known, [validation.block_reference(FIRST + 20)])
    assert isinstance(found, DecodeError)


@pytest.mark.parametrize("end", ["final", "genesis"])
def test_ends_that_cannot_be_read(end: str) -> None:
    """Where an end of the chain can't be read, that is what is told."""
    host = Host({FIRST + n: NS + n * NS for n in range(10)})

    def failing(wanted: Any) -> list[Any]:
        told = host(wanted)
        return [
            TransportError("down") if call.request == f"block {end}" else answer
            for call, answer in zip(wanted, told, strict=True)
        ]

    [found] = time_to_height.find_blocks(failing, Points(), [at_time(NS + 5 * NS)])
    assert isinstance(found, TransportError)


def test_points_stay_in_order_and_few() -> None:
    """Points are found by height and time; of too many every second is forgotten, not the ends."""
    known = Points(limit=10)
    for n in (5, 3, 9, 0, 7, 1, 2, 8, 4, 6):
        assert known.add(Point(n, n * 10, str(n), str(n - 1)))
    assert len(known) == 10
    assert known.at(4) == (4, 40, "4", "3", None)
    assert [one and one.height for one in known.around(45)] == [4, 5]
    assert [one and one.height for one in known.around(-1)] == [None, 0]
    assert [one and one.height for one in known.around(90)] == [9, None]
    assert known.add(Point(9, 90, "9", "8"))
    assert not known.add(Point(9, 90, "other", "8"))
    assert not known.add(Point(10, 1, "10", "9"))
    assert known.add(Point(10, 100, "10", "9"))
    assert [n for n in range(11) if known.at(n)] == [0, 2, 4, 6, 8, 10]
    assert known.last == (10, 100, "10", "9", None)
