"""The text of a statement: its period, whether it adds up, and its balances."""

from __future__ import annotations

import pandas as pd

from ledgerkit import cards, units
from ledgerkit.errors import cut
from ledgerkit.frames.human import plain_text
from ledgerkit.reconciling import earnings
from ledgerkit.reconciling.model import NEAR, Block, StatementData

_MAX_LINES = 10  # assets, and gaps
_MAX_NOTE = 200  # characters


def headline(facts: StatementData) -> str:
    return f"Statement of {facts.account_id}"


def sentences(facts: StatementData, n_entries: int, totals: pd.DataFrame) -> list[str]:
    """Return sentences on the period, the entries, the earnings and pending transactions."""
    entries = "1 entry" if n_entries == 1 else f"{n_entries:,} entries"
    start, stop = facts.start, facts.stop
    first, last = (f"after block {block.height}{_time(block)}" for block in (start, stop))
    lines = [
        f"{entries} between the balances {first} and {last}",
        *earnings.sentences(facts, totals),
    ]
    if facts.n_valued is not None:
        missing = n_entries - facts.n_valued
        sentence = f"value in USD known for {facts.n_valued:,} of {entries}, from the Transfers API"
        lines.insert(1, f"{sentence}; {missing:,} have none")
    if facts.unfinished:
        unfinished = units.count_text(len(facts.unfinished), "transaction")
        lines.append(f"still running at the end: {unfinished}, of which later changes are missing")
    return [*lines, *(cut(note, 2 * _MAX_NOTE) for note in facts.notes)]


def _time(block: Block) -> str:
    return f" ({plain_text(pd.Timestamp(block.timestamp_ns, tz='UTC'))})"


def verdict(totals: pd.DataFrame, gaps: pd.DataFrame) -> str:
    """Return whether the entries explain all changes of balances."""
    if len(gaps):
        return f"⚠ {units.count_text(len(gaps), 'gap')}: changes that no entry explains"
    missing = totals["missing"].astype(object)
    unknown = _assets(totals[missing.isna()])
    wrong = _assets(totals[missing.notna() & (missing != 0)])
    is_held = (totals[["n_entries", "opening", "closing"]].astype(object) != 0).any(axis=1)
    absent = _assets(totals[~is_held & (totals["asset"] != NEAR)])
    if wrong:
        return f"⚠ the entries do not add up: {wrong}"
    if unknown:
        others = "all others add up" if missing.notna().any() else "nothing was checked"
        return f"? not checked: {unknown}, of which a balance at an end is unknown; {others}"
    if absent:
        others = "all others add up" if is_held.any() else "nothing was checked"
        return f"? not held: {absent}; {others}"
    causes = zip(totals["in_by_cause"], totals["out_by_cause"], strict=True)
    if unexplained := _assets(totals[["unknown" in {**to, **out} for to, out in causes]]):
        return (
            f"? every balance adds up, but changes of unknown cause are among them: {unexplained}"
        )
    return "✓ every balance adds up: opening + entries = closing, with no gaps"


def _assets(totals: pd.DataFrame) -> str:
    names = [cut(name) for name in totals["asset"]]
    more = f" and {len(names) - _MAX_LINES:,} more" if len(names) > _MAX_LINES else ""
    return f"{', '.join(names[:_MAX_LINES])}{more}"


def text(facts: StatementData, n_entries: int, totals: pd.DataFrame, gaps: pd.DataFrame) -> str:
    lines = [
        f"{headline(facts)} on {facts.network}",
        *sentences(facts, n_entries, totals),
        verdict(totals, gaps),
    ]
    assets = cards.records(totals, len(totals))
    lines += [f"  {_gap_line(gap, assets)}" for gap in cards.records(gaps, _MAX_LINES)]
    lines += _hidden(len(gaps), "gap")
    lines += [f"  {_balance_line(row)}" for row in assets[:_MAX_LINES]]
    lines += _hidden(len(assets), "asset")
    return "\n".join(lines)


def _hidden(count: int, noun: str) -> list[str]:
    hidden = count - _MAX_LINES
    return [f"  … and {units.count_text(hidden, f'more {noun}')}"] if hidden > 0 else []


def _gap_line(gap: cards.Record, assets: list[cards.Record]) -> str:
    amount = cards.asset_amount(cards.gap_asset(gap, assets), gap["missing"])
    blocks = f"after block {gap['start_height']} up to block {gap['stop_height']}"
    return f"gap: {cut(gap['asset'])} {amount}, {blocks}: {cut(gap['note'], _MAX_NOTE)}"


def _balance_line(row: cards.Record) -> str:
    names = ("opening", "inflow", "outflow", "closing")
    opening, inflow, outflow, closing = (cards.asset_amount(row, row[name]) for name in names)
    return f"{cut(row['asset'])}: {opening} → {closing} (in {inflow}, out {outflow})"
