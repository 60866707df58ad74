"""
Comparing the entries of an account with its balances: where they differ, and by how much.

The difference between the real balance and the sum of the entries is known at both ends. If it
changed, the blocks in between are bisected, all assets and intervals at once, until each change is
located in one block. Two changes that cancel out between two readings cannot be noticed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.errors import LedgerError
from ledgerkit.reconciling.balances import read_balances
from ledgerkit.reconciling.model import Entry, Gap
from ledgerkit.tracing.token_standards import FUNGIBLE

if TYPE_CHECKING:
    from ledgerkit.block_search.bisection import Point
    from ledgerkit.ledger import Ledger

_MAX_READINGS = 50_000


class BalanceReader:
    """The balances of one account after blocks, each read once."""

    def __init__(self, ledger: Ledger, account_id: str, *, progress: bool = True) -> None:
        self._ledger, self._account_id, self.progress = ledger, account_id, progress
        self._points: dict[int, Point] = {}
        self._balances: dict[tuple[str, int], int | None] = {}
        # The token whose balance changes in nearly every block, on networks that have it.
        self.growing_asset = f"{FUNGIBLE}:{ledger.network.venear_id}"

    @property
    def n_readings(self) -> int:
        return len(self._balances)

    def read(self, keys: Iterable[tuple[str, int]]) -> None:
        """Read the balances of assets after heights that have not been read yet."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._balances]
        heights = [height for _, height in missing if height not in self._points]
        self.locate(dict.fromkeys(heights))
        points = [(asset, self._points[height]) for asset, height in missing]
        account_id, progress = self._account_id, self.progress
        balances = read_balances(self._ledger, account_id, points, progress=progress)
        self._balances.update(zip(missing, balances, strict=True))

    def locate(self, heights: Iterable[int]) -> None:
        """Locate the blocks at heights; for a skipped height, the last block below it."""
        unknown = [height for height in heights if height not in self._points]
        for height, point in zip(unknown, self._ledger.locate_many(unknown), strict=True):
            if isinstance(point, LedgerError):
                raise point
            self._points[height] = point

    def balance(self, asset: str, height: int) -> int | None:
        """Return a balance that has been read."""
        return self._balances[asset, height]

    def point(self, height: int) -> Point:
        """Return a block that has been located."""
        return self._points[height]

    def time_ns(self, height: int) -> int | None:
        """Return the time of a block; None if it has not been located."""
        point = self._points.get(height)
        return None if point is None else point.time_ns


class Sums:
    """The sums of an asset's entries up to each height."""

    def __init__(self, changes: Iterable[tuple[int, int]] = ()) -> None:
        self._heights = array("q")
        self._sums = [0]
        for height, change in changes:
            self.add(height, change)

    def add(self, height: int, change: int) -> None:
        """Add a change; it is fast in the order of heights."""
        index = bisect_left(self._heights, height)
        if index == len(self._heights) or self._heights[index] != height:
            self._heights.insert(index, height)
            self._sums.insert(index + 1, self._sums[index])
        for later in range(index + 1, len(self._sums)):
            self._sums[later] += change

    def up_to(self, height: int) -> int:
        """Return the sum of all entries up to a height, inclusive."""
        return self._sums[bisect_right(self._heights, height)]

    def probe(self, low: int, high: int) -> int:
        """Return a height between two others to read at: next to an entry, if there is one."""
        first, last = bisect_right(self._borders, low), bisect_left(self._borders, high)
        return self._borders[(first + last) // 2] if first < last else (low + high) // 2

    @cached_property
    def _borders(self) -> array[int]:
        """The heights that show the balances before and after each entry."""
        return array("q", sorted({h - 1 for h in self._heights} | set(self._heights)))


def sums_by_asset(entries: Iterable[Entry]) -> dict[str, Sums]:
    sums: dict[str, Sums] = defaultdict(Sums)
    for entry in entries:
        sums[entry.asset].add(entry.block_height, entry.change)
    return sums


class _Interval(NamedTuple):
    """Heights between which the difference of an asset changes, and the difference at each."""

    asset: str
    low: int
    high: int
    low_difference: int
    high_difference: int


def find_gaps(
    reader: BalanceReader, sums: dict[str, Sums], start_height: int, stop_height: int
) -> list[Gap]:
    """Return the gaps of each asset between two heights, sorted by height."""
    reader.read((asset, height) for asset in sums for height in (start_height, stop_height))
    gaps: list[Gap] = []
    open_intervals = []
    for asset, asset_sums in sums.items():
        ends = start_height, stop_height
        low, high = (_difference(reader, asset_sums, asset, height) for height in ends)
        if low is not None and high is not None:  # the totals report an unknown balance
            interval = _Interval(asset, *ends, low, high)
            if asset != reader.growing_asset:
                open_intervals.append(interval)
            elif low != high:
                # Source: houseofstake/house-of-stake-contracts, `common/src/venear.rs`.
                gaps.append(_gap(interval, "veNEAR grows every second, without events"))
    while open_intervals:
        open_intervals = [
            interval
            for interval in open_intervals
            if interval.low_difference != interval.high_difference
        ]
        narrow = [interval for interval in open_intervals if interval.high - interval.low == 1]
        gaps += [_gap(interval, "no source names a cause") for interval in narrow]
        wide = [interval for interval in open_intervals if interval.high - interval.low > 1]
        if reader.n_readings > _MAX_READINGS:
            note = f"not searched further after {_MAX_READINGS:,} readings"
            gaps += [_gap(interval, note) for interval in wide]
            break
        open_intervals, unreadable = _split(reader, sums, wide)
        note = "the contract does not return a balance there"
        gaps += [_gap(interval, note) for interval in unreadable]
    return sorted(gaps, key=lambda gap: (gap.stop_height, gap.asset))


def _difference(reader: BalanceReader, sums: Sums, asset: str, height: int) -> int | None:
    balance = reader.balance(asset, height)
    return None if balance is None else balance - sums.up_to(height)


def _split(
    reader: BalanceReader, sums: dict[str, Sums], intervals: Sequence[_Interval]
) -> tuple[list[_Interval], list[_Interval]]:
    probes = [(asset, sums[asset].probe(low, high)) for asset, low, high, *_ in intervals]
    reader.read(probes)
    halves, unreadable = [], []
    for interval, (asset, height) in zip(intervals, probes, strict=True):
        difference = _difference(reader, sums[asset], asset, height)
        if difference is None:
            unreadable.append(interval)
            continue
        halves.append(interval._replace(high=height, high_difference=difference))
        halves.append(interval._replace(low=height, low_difference=difference))
    return halves, unreadable


def _gap(interval: _Interval, note: str) -> Gap:
    missing = interval.high_difference - interval.low_difference
    return Gap(interval.asset, interval.low, interval.high, missing, note)
