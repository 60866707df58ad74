"""The frames of a statement, built from its entries and facts."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from pandas import NA

from ledgerkit import units
from ledgerkit.frames import amounts, build
from ledgerkit.frames.schemas import SCHEMAS
from ledgerkit.reconciling.model import NEAR, Entry, Evidence, Gap, StatementData, Token, unit_asset
from ledgerkit.units import U128_MAX

if TYPE_CHECKING:
    import pandas as pd


T = TypeVar("T")

PART_SIZE = 8_192  # entries in a part
VALUE_SOURCE = "Transfers API"


def token_of(facts: StatementData, asset: str) -> Token:
    if unit_asset(asset) == NEAR:
        return Token("NEAR", units.NEAR_DECIMALS)
    return facts.tokens.get(asset, Token(None, None))


def human_text(facts: StatementData, asset: str, amount: int | None) -> str | None:
    """Format an amount in whole tokens, with all digits; None if the decimals are unknown."""
    decimals = token_of(facts, asset).decimals
    return None if decimals is None or amount is None else units.to_text(amount, decimals)


def entries_frame(facts: StatementData, entries: Iterable[Entry]) -> pd.DataFrame:
    """Build the frame of the entries, with the balance before and after each."""
    return _entries_frame(facts, entries, RunningBalances(facts), Proofs(facts, entries))


def entry_frames(facts: StatementData, entries: Iterable[Entry]) -> Iterator[pd.DataFrame]:
    """Build the frame of the entries in parts, at least one, for files of any length."""
    balances, proofs = RunningBalances(facts), Proofs(facts, entries)
    for part in in_parts(entries):
        yield _entries_frame(facts, part, balances, proofs)


def in_parts(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield items in lists of limited size; no items give one empty list."""
    iterator = iter(items)
    part = list(islice(iterator, PART_SIZE))
    yield part
    while part := list(islice(iterator, PART_SIZE)):
        yield part


def _entries_frame(
    facts: StatementData, entries: Iterable[Entry], balances: RunningBalances, proofs: Proofs
) -> pd.DataFrame:
    columns: dict[str, list[Any]] = defaultdict(list)
    for entry in entries:
        before, after = balances.step(entry)
        row = entry._asdict() | {
            "account_id": facts.account_id,
            "time": entry.timestamp_ns,
            "evidence": proofs.evidence(entry),
            "balance_before": before,
            "balance_after": after,
            "symbol": token_of(facts, entry.asset).symbol,
            "amount": human_text(facts, entry.asset, entry.change),
            "usd_time": entry.usd_time_ns,
            "usd_source": None if entry.usd_time_ns is None else VALUE_SOURCE,
        }
        for name, value in row.items():
            columns[name].append(value)
    schema = "statement" if facts.n_valued is None else "statement_values"
    declared = {column.name: columns[column.name] for column in SCHEMAS[schema]}
    return build.build_frame(schema, declared)


def by_transaction_frame(facts: StatementData, entries: Iterable[Entry]) -> pd.DataFrame:
    """Build the frame of the transactions; an entry without one has a row of its own."""
    groups: dict[str | int, list[Entry]] = defaultdict(list)
    for position, entry in enumerate(entries):
        groups[entry.tx_hash or position].append(entry)
    rows = [_transaction(facts, group) for group in groups.values()]
    return build.of_rows("statement_by_transaction", rows)


def _transaction(facts: StatementData, group: Sequence[Entry]) -> dict[str, Any]:
    first, changes = group[0], Counter[str]()
    for entry in group:
        changes["fee" if entry.cause == "fee" else entry.asset] += entry.change
    return {
        "time": first.timestamp_ns,
        "headline": next(filter(None, (entry.headline for entry in group)), None),
        "causes": _joined(e.cause for e in group if e.cause != "fee") or "fee",
        "fee": changes.pop("fee", 0),
        "changes": {asset: change for asset, change in changes.items() if change},
        "counterparties": _joined(e.counterparty_id for e in group),
        "methods": _joined(e.method_name for e in group),
        "n_entries": len(group),
        "block_height": first.block_height,
        "tx_hash": first.tx_hash,
        "account_id": facts.account_id,
    }


def _joined(texts: Iterable[str | None]) -> str | None:
    return ", ".join(dict.fromkeys(filter(None, texts))) or None


class RunningBalances:
    """The balances of the assets from entry to entry; a gap corrects them after its blocks."""

    def __init__(self, facts: StatementData) -> None:
        self._balances = dict(facts.opening)
        self._gaps: dict[str, list[Gap]] = defaultdict(list)
        for gap in sorted(facts.gaps, key=lambda gap: gap.stop_height, reverse=True):
            self._gaps[gap.asset].append(gap)

    def step(self, entry: Entry) -> tuple[Any, Any]:
        """Add an entry; return the balance before and after it, NA where it is unknown."""
        asset, gaps = entry.asset, self._gaps[entry.asset]
        balance = self._balances.get(asset)
        while gaps and gaps[-1].stop_height < entry.block_height:
            missing = gaps.pop().missing
            balance = None if balance is None or missing is None else balance + missing
        self._balances[asset] = after = None if balance is None else balance + entry.change
        # Within a gap of many blocks it is unknown whether the change came before an entry.
        if gaps and gaps[-1].start_height < entry.block_height and not gaps[-1].has_block:
            return NA, NA
        return _or_na(balance), _or_na(after)


class Proofs:
    """
    The entries that readings prove: no other block has changed their asset between two readings.

    Balances were read at both ends of the statement and of each gap.
    """

    def __init__(self, facts: StatementData, entries: Iterable[Entry]) -> None:
        self._readings: dict[str, list[int]] = defaultdict(list)
        for gap in facts.gaps:
            self._readings[gap.asset] += gap.start_height, gap.stop_height
        for heights in self._readings.values():
            heights.sort()
        # The one block between two readings in which an asset changed; None: there are several.
        self._blocks: dict[tuple[str, int], int | None] = {
            (gap.asset, self._interval(gap.asset, gap.stop_height)): None for gap in facts.gaps
        }
        self._is_read = {
            asset: balance is not None and facts.closing.get(asset) is not None
            for asset, balance in facts.opening.items()
        }
        for entry in entries:
            key = entry.asset, self._interval(entry.asset, entry.block_height)
            if self._blocks.setdefault(key, entry.block_height) != entry.block_height:
                self._blocks[key] = None

    def evidence(self, entry: Entry) -> Evidence:
        key = entry.asset, self._interval(entry.asset, entry.block_height)
        is_proved = self._is_read.get(entry.asset, False) and self._blocks[key] is not None
        return "proved" if is_proved else entry.evidence

    def _interval(self, asset: str, height: int) -> int:
        return bisect_left(self._readings[asset], height)


def _or_na(balance: int | None) -> Any:
    """Return a balance; NA if it is unknown or impossible, as within a block of another order."""
    return NA if balance is None or not 0 <= balance <= U128_MAX else balance


def gaps_frame(facts: StatementData) -> pd.DataFrame:
    gaps = facts.gaps
    columns = build.columns_of(
        "statement_gaps",
        gaps,
        account_id=[facts.account_id] * len(gaps),
        missing=[amounts.difference(gap.missing) for gap in gaps],
        symbol=[token_of(facts, gap.asset).symbol for gap in gaps],
        amount=[human_text(facts, gap.asset, gap.missing) for gap in gaps],
    )
    return build.build_frame("statement_gaps", columns)


def totals_frame(facts: StatementData, entries: Iterable[Entry]) -> pd.DataFrame:
    """Build the frame of the totals: one row for each asset that was held or moved."""
    counts: Counter[str] = Counter()
    flows: dict[tuple[str, bool], Counter[str]] = defaultdict(Counter)
    for entry in entries:
        counts[entry.asset] += 1
        if entry.change:
            flows[entry.asset, entry.change > 0][entry.cause] += entry.change
    rows = [
        _total(facts, asset, counts[asset], flows[asset, True], flows[asset, False])
        for asset in _assets(facts, counts)
    ]
    return build.of_rows("statement_totals", rows)


def _total(
    facts: StatementData, asset: str, n_entries: int, inflow: Counter[str], outflow: Counter[str]
) -> dict[str, Any]:
    opening, closing = facts.opening.get(asset), facts.closing.get(asset)
    change = None if opening is None or closing is None else closing - opening
    missing = None if change is None else change - inflow.total() - outflow.total()
    token = token_of(facts, asset)
    return {
        "account_id": facts.account_id,
        "asset": asset,
        "symbol": token.symbol,
        "decimals": token.decimals,
        "n_entries": n_entries,
        "opening": NA if opening is None else opening,
        "inflow": amounts.difference(inflow.total()),
        "outflow": amounts.difference(outflow.total()),
        "in_by_cause": dict(inflow),
        "out_by_cause": dict(outflow),
        "fees": amounts.difference(inflow["fee"] + outflow["fee"]),
        "closing": NA if closing is None else closing,
        "missing": amounts.difference(missing),
    }


def _assets(facts: StatementData, counts: Counter[str]) -> Iterator[str]:
    """Yield NEAR, then the other assets that were chosen, or have an entry, gap or balance."""
    named = {NEAR, *counts, *(facts.assets or ()), *(gap.asset for gap in facts.gaps)}
    balances = {**facts.opening, **facts.closing}
    names = {NEAR, *counts, *balances} if NEAR in balances else {*counts, *balances}
    for asset in sorted(names, key=lambda name: (name != NEAR, name)):
        ends = facts.opening.get(asset), facts.closing.get(asset)
        if asset in named or any(end != 0 for end in ends):
            yield asset
