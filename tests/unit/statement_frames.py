"""Build the frames of a statement from entries, with balances that follow from the openings."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.reconciling.frames import entries_frame, gaps_frame, totals_frame
from ledgerkit.reconciling.model import Block, Entry, Gap, StatementData, Token
from ledgerkit.reconciling.rewards import rewards_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

OWNER = "alice.near"
START_NS = 1_785_542_400 * 10**9  # 2026-08-01 00:00:00 UTC
FIRST = 100
ONE = 10**24


class Frames(NamedTuple):
    """The frames of a statement, and what they were built from."""

    entries: pd.DataFrame
    gaps: pd.DataFrame
    totals: pd.DataFrame
    rewards: pd.DataFrame
    facts: StatementData
    rows: Sequence[Entry]


def entry(height: int, asset: str, cause: str, change: int, **more: Any) -> Entry:
    """Build an entry; blocks are a second apart."""
    time_ns = START_NS + (height - FIRST) * 10**9
    return Entry(height, time_ns, asset, cause, change, **more)


def statement(
    entries: Sequence[Entry],
    *,
    opening: Mapping[str, int | None] | None = None,
    tokens: Mapping[str, Token] | None = None,
    gaps: Iterable[Gap] = (),
    stop: int = 200,
) -> Frames:
    """Build a statement of alice.near from block 100 on; closings include the gaps."""
    facts = StatementData(
        OWNER,
        "testnet",
        Block(FIRST, START_NS),
        Block(stop, START_NS + (stop - FIRST) * 10**9),
        opening=dict(opening or {}),
        tokens=dict(tokens or {}),
        gaps=list(gaps),
    )
    for asset in dict.fromkeys(row.asset for row in entries):
        own = accumulate(row.change for row in entries if row.asset == asset)
        facts.opening.setdefault(asset, max(0, -min(own)))  # just enough
    missing = Counter[str]()
    for gap in facts.gaps:
        missing[gap.asset] += gap.missing or 0
    for asset, balance in facts.opening.items():
        total = sum(row.change for row in entries if row.asset == asset) + missing[asset]
        facts.closing[asset] = None if balance is None else balance + total
    return Frames(
        entries_frame(facts, entries),
        gaps_frame(facts),
        totals_frame(facts, entries),
        rewards_frame(OWNER, []),
        facts,
        entries,
    )
