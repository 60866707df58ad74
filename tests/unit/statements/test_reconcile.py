"""Gaps between entries and balances: each is found, in its block, with its amount."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.reconciling.reconcile import BalanceReader, Sums, find_gaps

if TYPE_CHECKING:
    from collections.abc import Iterable

START, STOP = 1_000, 10_000_000
changes = st.dictionaries(
    st.integers(START + 1, STOP), st.integers(-(10**30), 10**30).filter(bool), max_size=30
)
missing_changes = st.dictionaries(st.integers(START + 1, STOP), st.integers(1, 10**30), max_size=12)


class Balances(BalanceReader):
    """The balances of an archive, computed from the changes of each block."""

    def __init__(self, real: dict[int, int], unreadable: Iterable[range] = ()) -> None:
        self._real, self._unreadable = real, tuple(unreadable)
        self.readings: dict[tuple[str, int], int | None] = {}
        self.growing_asset = ""

    @property
    def n_readings(self) -> int:
        return len(self.readings)

    def read(self, places: Iterable[tuple[str, int]]) -> None:
        for asset, height in places:
            balance = sum(change for at, change in self._real.items() if at <= height)
            is_known = not any(height in heights for heights in self._unreadable)
            self.readings[asset, height] = 10**40 + balance if is_known else None

    def balance(self, asset: str, height: int) -> int | None:
        return self.readings[asset, height]


@given(changes, missing_changes)
def test_each_missing_change_is_a_gap_in_its_block(
    entries: dict[int, int], missing: dict[int, int]
) -> None:
    """Whatever the entries are, each amount that they lack is found in its block."""
    real = {
        height: entries.get(height, 0) + missing.get(height, 0)
        for height in entries.keys() | missing.keys()
    }
    balances = Balances(real)
    gaps = find_gaps(balances, {"near": Sums(entries.items())}, START, STOP)
    assert {gap.stop_height: gap.missing for gap in gaps} == missing
    assert all(gap.stop_height - gap.start_height == 1 for gap in gaps)
    # Two readings at the ends, and for each gap a bisection among entries, then among blocks.
    assert balances.n_readings <= 2 + len(missing) * 32


@given(changes)
def test_entries_that_add_up_need_two_readings(entries: dict[int, int]) -> None:
    """Nothing between the ends is read if the sums hold there."""
    balances = Balances(entries)
    assert find_gaps(balances, {"near": Sums(entries.items())}, START, STOP) == []
    assert balances.n_readings == 2


@given(changes, st.integers(START + 1, STOP))
def test_errors_that_cancel_out_are_not_searched(entries: dict[int, int], height: int) -> None:
    """An entry in the wrong block leaves both ends as they are: the sums hold, with no gap."""
    real = dict(entries)
    real[height] = real.get(height, 0) + 5
    listed = [*entries.items(), (START + 1 if height == STOP else STOP, 5)]
    assert find_gaps(Balances(real), {"near": Sums(listed)}, START, STOP) == []


def test_several_assets_are_searched_at_once() -> None:
    """The gaps of one asset do not change those of another."""
    sums = {"near": Sums([(2_000, 7)]), "nep141:gold.near": Sums([])}
    gaps = find_gaps(Balances({2_000: 7, 5_000: 9}), sums, START, STOP)
    assert [(gap.asset, gap.stop_height, gap.missing) for gap in gaps] == [
        ("nep141:gold.near", 2_000, 7),
        ("near", 5_000, 9),
        ("nep141:gold.near", 5_000, 9),
    ]


def test_balances_that_cannot_be_read_leave_a_wide_gap() -> None:
    """Where the contract returns no balance, the gap has the blocks around, and its amount."""
    broken = Balances({500_000: 4}, [range(START + 1, STOP)])
    [gap] = find_gaps(broken, {"near": Sums([])}, START, STOP)
    assert gap[:4] == ("near", START, STOP, 4)
    assert "does not return a balance" in gap.note


@pytest.mark.parametrize(("low", "high"), list(pairwise([1, 10, 100, 1_000])))
def test_a_probe_lies_between(low: int, high: int) -> None:
    """The height of a reading is between the two, beside an entry if there is one."""
    assert low < Sums([]).probe(low, high) < high
    middle = (low + high) // 2
    assert Sums([(middle, 1)]).probe(low, high) in {middle, middle - 1}
