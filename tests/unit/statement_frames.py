"""Build the frames of a statement from entries, with balances that follow from the openings."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import units
from ledgerkit.frames import build
from ledgerkit.frames.schemas import SCHEMAS
from ledgerkit.reconciling.model import NEAR, STAKE, Block, Entry, Facts, Gap, Token

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
    facts: Facts
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
    facts = Facts(
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
        _frame("statement", _entry_rows(entries, facts)),
        _frame("statement_gaps", [_gap_row(gap, facts) for gap in facts.gaps]),
        _frame("statement_totals", [_total_row(asset, entries, facts) for asset in facts.opening]),
        _frame("statement_rewards", []),
        facts,
        entries,
    )


def _frame(name: str, rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Build a frame from rows with every declared column."""
    columns = {column.name: [row[column.name] for row in rows] for column in SCHEMAS[name]}
    return build.build_frame(name, columns, attrs={"network": "testnet"})


def _token(asset: str, facts: Facts) -> Token:
    """Return symbol and decimals."""
    if asset == NEAR or asset.startswith(STAKE):
        return Token("NEAR", 24)
    return facts.tokens.get(asset, Token(None, None))


def _whole(asset: str, amount: int | None, facts: Facts) -> str | None:
    """Format an amount in whole tokens."""
    decimals = _token(asset, facts).decimals
    return None if amount is None or decimals is None else units.to_text(amount, decimals)


def _entry_rows(entries: Iterable[Entry], facts: Facts) -> list[dict[str, Any]]:
    """Return rows with running balances."""
    balances = dict(facts.opening)
    rows = []
    for row in entries:
        before = balances[row.asset]
        balances[row.asset] = after = None if before is None else before + row.change
        rows.append(
            row._asdict()
            | {
                "account_id": OWNER,
                "time": row.timestamp_ns,
                "balance_before": before,
                "balance_after": after,
                "symbol": _token(row.asset, facts).symbol,
                "amount": _whole(row.asset, row.change, facts),
            }
        )
    return rows


def _gap_row(gap: Gap, facts: Facts) -> dict[str, Any]:
    """Return the row of a gap."""
    return gap._asdict() | {
        "account_id": OWNER,
        "symbol": _token(gap.asset, facts).symbol,
        "amount": _whole(gap.asset, gap.missing, facts),
    }


def _total_row(asset: str, entries: Iterable[Entry], facts: Facts) -> dict[str, Any]:
    """Return the totals of an asset."""
    own = [row for row in entries if row.asset == asset]
    flows: list[Counter[str]] = [Counter(), Counter()]
    for row in own:
        flows[row.change < 0][row.cause] += row.change
    opening, closing = facts.opening[asset], facts.closing[asset]
    inflow, outflow = (flow.total() for flow in flows)
    known = opening is not None and closing is not None
    return {
        "account_id": OWNER,
        "asset": asset,
        "symbol": _token(asset, facts).symbol,
        "decimals": _token(asset, facts).decimals,
        "n_entries": len(own),
        "opening": opening,
        "inflow": inflow,
        "outflow": outflow,
        "in_by_cause": dict(flows[0]),
        "out_by_cause": dict(flows[1]),
        "fees": sum(row.change for row in own if row.cause == "fee"),
        "closing": closing,
        "missing": (closing or 0) - (opening or 0) - inflow - outflow if known else None,
    }
