"""
Statements add up, in random worlds, and whatever the services leave out is a gap.

In each world thousands of random transactions use every contract. First the changes that traces
list are compared with the chain's state: for each account, asset and block. Then every account
gets a statement: opening balance plus entries must be the closing balance, block by block, without
a gap. Then the services lie, one of them or all: they hide transactions, documents and transfers,
repeat them, end pages early, cut amounts and alter them by a yoctoNEAR. Now each hidden amount must
be in an entry that a balance proves, or in a gap; nothing may be counted twice, no reward or fee be
more than there was, and a tick stand only where what is wrong cancels out. At last late services
catch up: a statement that is continued must be the one that is read in one go.
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import ledgerkit as lk
from ledgerkit import errors
from tests.lying_services import LyingServices
from tests.surface.test_stories import traced
from tests.unit.localnet.chaos import PEOPLE
from tests.unit.localnet.full_world import POOL, WRAP, FullWorld
from tests.world_timeline import (
    block_differences,
    differences,
    minted,
    state_changes,
    traced_changes,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledgerkit.localnet.world import World
    from ledgerkit.reconciling.model import Entry
    from ledgerkit.reconciling.statement import Statement
    from tests.world_timeline import Key
    from tools.campaigns._campaign import Tally

COUNT = 20_000
SMALL = 15
EXPECTED = ("world", "statement without a gap", "statement of lying services", "hidden amount")

WORLD = 2_000  # transactions in a world
RECENT = 900  # blocks of which a continued statement reads again what was amiss
TICKED = ("cancels out", "of an asset that no service names")
INCOME = ("staking_reward", "validator_reward", "gas_reward", "fee")  # never more than there was


class Row(NamedTuple):
    """What identifies an entry."""

    height: int
    asset: str
    change: int
    tx_hash: str | None
    receipt_id: str | None


class Case(NamedTuple):
    """An account of a world, and the changes of its balances."""

    label: str
    account_id: str
    truth: Counter[Key]


def run(count: int, seed: int, tally: Tally) -> None:
    """Check worlds with this many transactions altogether."""
    for number in range(-(-count // WORLD)):
        size = min(WORLD, count - number * WORLD)
        label = f"seed {seed * 1_000 + number}, {size} transactions"
        check_world(FullWorld(seed * 1_000 + number).run(size), label, tally)


def check_world(world: World, label: str, tally: Tally) -> None:
    """Check the traces and the statements of a world."""
    tally.count("world")
    traces = traced(world)
    lk.disconnect()
    tally.count("transaction", len(traces))
    for key, by in block_differences(world, traces).items():
        tally.violate(f"{label}: the state of {key} changed by {by} more than traces say")
    expected = traced_changes(world, traces)
    expected.update(minted(world))
    final = world.chain.final.height
    changes = state_changes(world, expected)
    truth = Counter({key: by for key, by in changes.items() if key[2] <= final})
    honest = lk.connect(world=world, make_default=False)
    lying = lk.connect("local", transport=LyingServices(world, 1), make_default=False)
    for account_id in sorted({name for (name, _, _), by in truth.items() if by}):
        own: Counter[Key] = Counter({key: by for key, by in truth.items() if key[0] == account_id})
        case = Case(f"{label}, {account_id}", account_id, own)
        rows, causes = check_honest(honest, case, tally)
        check_lying(lying, case, rows, causes, tally)
    check_late(world, label, tally)
    honest.close()
    lying.close()


def read(ledger: lk.Ledger, account_id: str, stop: int | None = None) -> Statement:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the embedded ledger has no account")  # it was deleted
        return lk.statement(account_id, "genesis", stop, progress=False, ledger=ledger)


def placed(statement: Statement) -> Counter[Key]:
    """Sum entries and gaps by account, asset and block, except balances with pools."""
    sums: Counter[Key] = Counter()
    for entry in statement.store:
        sums[statement.account_id, entry.asset, entry.block_height] += entry.change
    for gap in statement.facts.gaps:
        sums[statement.account_id, gap.asset, gap.stop_height] += gap.missing or 0
    return Counter({key: by for key, by in sums.items() if not key[1].startswith("stake:")})


def check_sums(statement: Statement, label: str, tally: Tally) -> None:
    """Check that opening balance, entries and gaps are the closing balance of each asset."""
    facts = statement.facts
    sums: Counter[str] = Counter()
    for entry in statement.store:
        sums[entry.asset] += entry.change
    for gap in facts.gaps:
        if gap.missing is None:
            tally.violate(f"{label}: the balance of {gap.asset} is unknown: {gap.note}")
        sums[gap.asset] += gap.missing or 0
    for asset, opening in facts.opening.items():
        if (opening or 0) + sums[asset] != facts.closing[asset]:
            tally.violate(f"{label}: {asset} does not add up")


def sums_of(rows: Counter[Row]) -> Counter[str]:
    """Sum rows by asset."""
    sums: Counter[str] = Counter()
    for row, times in rows.items():
        sums[row.asset] += row.change * times
    return sums


def by_cause(entries: Iterable[Entry]) -> Counter[tuple[str, str]]:
    """Sum entries by asset and cause, what the account paid as a positive amount."""
    sums: Counter[tuple[str, str]] = Counter()
    for entry in entries:
        sums[entry.asset, entry.cause] += entry.change
    return Counter({key: abs(by) if key[1] == "fee" else by for key, by in sums.items()})


def check_honest(
    ledger: lk.Ledger, case: Case, tally: Tally
) -> tuple[Counter[Row], Counter[tuple[str, str]]]:
    """Check a statement of honest services; return its entries, and sums by cause."""
    statement = read(ledger, case.account_id)
    check_sums(statement, case.label, tally)
    if statement.facts.gaps:
        tally.violate(f"{case.label}: gaps {statement.facts.gaps[:3]}")
    else:
        tally.count("statement without a gap")
    for (_, asset, height), by in differences(placed(statement), case.truth).items():
        tally.violate(f"{case.label}: {asset} changed by {by} more in block {height}")
    rows = Counter(map(row_of, statement.store))
    tally.count("entry", rows.total())
    return rows, by_cause(statement.store)


def row_of(entry: Entry) -> Row:
    return Row(entry.block_height, entry.asset, entry.change, entry.tx_hash, entry.receipt_id)


def check_lying(
    ledger: lk.Ledger,
    case: Case,
    honest: Counter[Row],
    causes: Counter[tuple[str, str]],
    tally: Tally,
) -> None:
    """Check that a statement of lying services has gaps where they hide something."""
    label = f"{case.label}, lying services"
    try:
        statement = read(ledger, case.account_id)
    except errors.UnknownAccountError:
        tally.count("account of which no service knows")
        return
    tally.count("statement of lying services")
    check_sums(statement, label, tally)
    entries = {row_of(entry): entry for entry in statement.store}
    rows = Counter(map(row_of, statement.store))
    services: Any = ledger.session.settings.transport  # which knows what it hid
    for row in rows - honest:
        evidence = entries[row].evidence
        if services.fate(row.tx_hash) == "altered":
            # Another alteration of the account takes it back, or there is a gap.
            is_even = sums_of(rows - honest)[row.asset] == sums_of(honest - rows)[row.asset]
            has_gap = any(gap.asset == row.asset for gap in statement.facts.gaps)
            if not (is_even or has_gap):
                tally.violate(f"{label}: {row} was altered, and nothing says so")
            tally.count("altered amount beside a gap, or that others take back")
            continue
        if evidence == "derived":
            tally.violate(f"{label}: {row} is counted twice or was never there")
        tally.count(f"hidden amount found by other means: {evidence}")
    for (asset, cause), by in (by_cause(statement.store) - causes).items():
        if cause in INCOME:
            tally.violate(f"{label}: {by} of {asset} are no {cause}")
    check_landings(statement, services, honest - rows, case, tally)
    tally.count("gap", len(statement.facts.gaps))
    check_rest(statement, case, tally)


def check_landings(
    statement: Statement, services: Any, hidden: Counter[Row], case: Case, tally: Tally
) -> None:
    """Count where hidden amounts are, by kind of lie, and check that no tick stands over a gap."""
    has_tick = "✓" in str(statement)
    if has_tick and statement.facts.gaps:
        tally.violate(f"{case.label}, lying services: a tick over gaps")
    sums = placed(statement)
    changes = {(each.block_height, each.asset, each.change) for each in statement.store}
    for row, times in hidden.items():
        lie = services.fate(row.tx_hash)
        if row.tx_hash is not None and lie is None:
            lie = "beyond a page that ended early"
            if row.tx_hash not in services.cut_off:
                tally.violate(f"{case.label}: {row} is missing, and no service hid it")
        key = case.account_id, row.asset, row.height
        is_right = sums[key] == case.truth[key]
        if row.asset.startswith("stake:"):  # of which the truth is not known by block
            is_right = (row.height, row.asset, row.change) in changes
        landing = landing_of(row, statement, is_right=is_right)
        tally.count("hidden amount", times)
        tally.count(f"hidden amount, {lie}: {landing}", times)
        if has_tick and landing in TICKED:
            tally.count(f"under a tick: {landing}", times)


def landing_of(row: Row, statement: Statement, *, is_right: bool) -> str:
    """Return where a hidden amount is in a statement, which has the block right or not."""
    gaps = (gap for gap in statement.facts.gaps if gap.asset == row.asset)
    if any(gap.start_height < row.height <= gap.stop_height for gap in gaps):
        return "in a gap"
    if row.asset not in statement.facts.opening:
        return TICKED[1]
    return "in an entry by other means" if is_right else TICKED[0]


def check_late(world: World, label: str, tally: Tally) -> None:
    """Check that a statement which is continued after services caught up is that of one go."""
    final = world.chain.final.height
    middle = (world.chain.genesis.height + final) // 2
    for account_id in (*PEOPLE[:2], POOL, WRAP):
        services = LyingServices(world, 1, {"late": 25})
        with lk.connect("local", transport=services, make_default=False) as ledger:
            earlier = read(ledger, account_id, max(middle, final - RECENT))
            services.catch_up()
            extended, whole = (
                earlier.extend(final, ledger=ledger, progress=False),
                read(ledger, account_id, final),
            )
        tally.count("statement continued after services caught up")
        amounts = [
            Counter((e.block_height, e.asset, e.cause, e.change) for e in each.store)
            for each in (extended, whole)
        ]
        if amounts[0] != amounts[1] or extended.facts.gaps != whole.facts.gaps:
            tally.violate(f"{label}, {account_id}: continued from {earlier.facts.stop} it differs")


def check_rest(statement: Statement, case: Case, tally: Tally) -> None:
    """Check that entries and gaps are all changes, but for hidden ones that cancel out."""
    rest: Counter[str] = Counter()
    for (_, asset, _), by in differences(placed(statement), case.truth).items():
        if asset in statement.facts.opening:
            rest[asset] += by
            tally.count("hidden changes that cancel out, by block")
        else:
            tally.count("change of an asset that no service names")
    for asset, by in rest.items():
        if by:
            tally.violate(f"{case.label}: {by} of {asset} is neither an entry nor a gap")
