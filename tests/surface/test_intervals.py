"""One rule of intervals in all verbs: `start` is included, `stop` is excluded."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit.errors import InvalidRequestError, UnknownBlockError
from ledgerkit.localnet import open_world
from tests.unit.localnet.chaos import PEOPLE
from tests.unit.localnet.full_world import POOL, FullWorld

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ledgerkit.localnet import World

UNTYPED: Any = lk
IDS = (*PEOPLE[:3], POOL)
SEEDS = (3, 7, 12)


@pytest.fixture(scope="module")
def worlds() -> dict[int, World]:
    """Return worlds in which much has happened; heights are left out."""
    return {seed: FullWorld(seed).run(120) for seed in SEEDS}


@pytest.fixture(params=SEEDS)
def ledger(request: pytest.FixtureRequest, worlds: dict[int, World]) -> Iterator[lk.Ledger]:
    world = worlds[request.param]
    world.adjust(real_time=True)  # so that no read produces a block
    with lk.connect("local", world=world, make_default=False) as connected:
        yield connected


def references(world: World, height: int) -> list[object]:
    """Return references to the first block from a height on: height, hash, and times up to it."""
    blocks = [block for block in world.chain.blocks() if block.height >= height]
    first = blocks[0]
    before = [block.timestamp_ns for block in world.chain.blocks() if block.height < height]
    times = [first.timestamp_ns, *(time_ns + 1 for time_ns in before[-1:])]
    return [height, str(first.hash), *(pd.Timestamp(time_ns, tz="UTC") for time_ns in times)]


def random_intervals(world: World, n: int, seed: int = 0) -> Iterator[tuple[object, object, range]]:
    """Yield ends of intervals, each as some reference, and the heights that they stand for."""
    luck = random.Random(seed)  # noqa: S311 - no secret
    heights = range(world.chain.genesis.height, world.chain.final.height + 1)
    for _ in range(n):
        start, stop = sorted(luck.sample(heights, 2))
        first, after = (luck.choice(references(world, height)) for height in (start, stop))
        yield first, after, range(start, stop)


READERS: dict[str, tuple[str, Callable[..., pd.DataFrame]]] = {
    "blocks": ("block_height", UNTYPED.blocks),
    "documents": (
        "block_height",
        lambda *ends, **options: UNTYPED.blocks(*ends, source="documents", **options),
    ),
    "follow": (
        "block_height",
        lambda start, stop, **options: pd.concat(
            [
                pd.DataFrame({"block_height": pd.Series([], dtype="Int64")}),
                *lk.follow(start, "blocks", stop=stop, **options),
            ]
        ),
    ),
    "account_transactions": (
        "tx_block_height",
        lambda *ends, **options: lk.account_transactions(IDS, *ends, **options),
    ),
    "transfers_of": (
        "block_height",
        lambda *ends, **options: lk.transfers_of(IDS, *ends, **options),
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_rows_are_those_from_start_to_before_stop(ledger: lk.Ledger, name: str) -> None:
    """Heights, hashes and times name the same interval, whatever the verb lists."""
    column, read = READERS[name]
    options: dict[str, Any] = {"ledger": ledger, "progress": False}
    genesis, after_final = ledger.world.chain.genesis.height, ledger.world.chain.final.height + 1
    heights = read(genesis, after_final, **options)[column].tolist()
    assert heights
    for start, stop, interval in random_intervals(ledger.world, 12):
        expected = [height for height in heights if height in interval]
        assert sorted(read(start, stop, **options)[column]) == sorted(expected), (start, stop)


def test_collected_blocks_are_those_of_the_interval(ledger: lk.Ledger, tmp_path: Path) -> None:
    """A dataset has the blocks that `blocks` lists."""
    options: dict[str, Any] = {"ledger": ledger, "progress": False}
    for number, (start, stop, interval) in enumerate(random_intervals(ledger.world, 6)):
        run = UNTYPED.collect_blocks(start, stop, "blocks", tmp_path / str(number), **options)
        expected = [b.height for b in ledger.world.chain.blocks() if b.height in interval]
        assert run.pandas("blocks")["block_height"].tolist() == expected, (start, stop)


# Statements -------------------------------------------------------------------------------


def events(statement: lk.Statement) -> Counter[tuple[object, ...]]:
    """Count the entries of a statement, but for rewards: a cut within an epoch divides them."""
    names = ["block_height", "asset", "tx_hash", "cause", "change"]
    rows = statement.entries[names].astype(object).itertuples(index=False)
    return Counter(tuple(row) for row in rows if row.cause != "staking_reward")


def balances(statement: lk.Statement, column: str) -> dict[str, int]:
    """Return the balances at an end that are not zero."""
    pairs = zip(statement.totals["asset"], statement.totals[column], strict=True)
    return {asset: int(balance) for asset, balance in pairs if balance}


def test_neighbours_share_balances_and_no_event(ledger: lk.Ledger) -> None:
    """The closing of one interval is the opening of the next; together they are the whole."""
    options: dict[str, Any] = {"ledger": ledger, "progress": False}
    luck, world, n_events = random.Random(41), ledger.world, 0  # noqa: S311 - no secret
    heights = range(world.chain.genesis.height + 1, world.chain.final.height + 1)
    for account_id in IDS * 2:
        cuts = sorted(luck.sample(heights, 3))
        start, cut, stop = (luck.choice(references(world, height)) for height in cuts)
        whole = lk.statement(account_id, start, stop, **options)
        options["assets"] = whole.totals["asset"].tolist()  # in a part services may list fewer
        earlier = lk.statement(account_id, start, cut, **options)
        later = lk.statement(account_id, cut, stop, **options)
        del options["assets"]
        for part, first, last in ((earlier, cuts[0], cuts[1]), (later, cuts[1], cuts[2])):
            assert part.entries["block_height"].between(first, last - 1).all()
            assert (part.totals["missing"] == 0).all()
        assert balances(earlier, "closing") == balances(later, "opening")
        assert earlier.facts.stop == later.facts.start
        assert events(earlier) + events(later) == events(whole)
        assert balances(earlier, "opening") == balances(whole, "opening")
        assert balances(later, "closing") == balances(whole, "closing")
        n_events += events(whole).total()
    assert n_events


def test_an_interval_of_no_block_has_no_event(ledger: lk.Ledger) -> None:
    """`start` may be `stop`: the balances before it are both opening and closing."""
    height = ledger.world.chain.final.height - 2
    statement = lk.statement(IDS[0], height, height, ledger=ledger, progress=False)
    assert statement.entries.empty
    assert balances(statement, "opening") == balances(statement, "closing")


def test_months_are_neighbours() -> None:
    """A month as `stop` is excluded: the block at midnight is the first one of the next month."""
    with lk.connect("local", make_default=False) as ledger:
        options: dict[str, Any] = {"ledger": ledger, "progress": False}
        world, midnight_ns = ledger.world, pd.Timestamp("2026-09-01", tz="UTC").value
        key = world.keys()["bob.near"]
        *_, before, newest = world.chain.blocks()
        block_ns = newest.timestamp_ns - before.timestamp_ns
        n_heights = (midnight_ns - newest.timestamp_ns) // block_ns
        world.advance(1, skip=n_heights - 8)
        for n in range(1, 9):
            lk.transfer("alice.near", f"{n} NEAR", signer_id="bob.near", key=key, ledger=ledger)
        assert midnight_ns in {block.timestamp_ns for block in world.chain.blocks()}
        world.settle()
        august = lk.statement("bob.near", "2026-08", "2026-09", **options)
        september = lk.statement("bob.near", "2026-09", "2026-10", **options)
        assert list(august.store) == list(lk.statement("bob.near", "2026-08", **options).store)
    assert balances(august, "closing") == balances(september, "opening")
    assert august.facts.stop == september.facts.start
    assert august.entries["time"].max() < pd.Timestamp(midnight_ns, tz="UTC")
    assert september.entries["time"].min() >= pd.Timestamp(midnight_ns, tz="UTC")
    assert len(august.entries) > 7


def test_the_first_block_is_that_before_itself(ledger: lk.Ledger) -> None:
    """A statement from the first block of the chain opens with the balances of its genesis."""
    genesis = ledger.world.chain.genesis
    options: dict[str, Any] = {"ledger": ledger, "progress": False}
    by_height = lk.statement(IDS[0], genesis.height, **options)
    by_time = lk.statement(IDS[0], pd.Timestamp(genesis.timestamp_ns, tz="UTC"), **options)
    assert by_height.facts == by_time.facts
    initial = lk.accounts(IDS[0], at=genesis.height, **options)
    expected = sum(initial[["balance", "locked"]].iloc[0].astype(object))
    assert balances(by_height, "opening")["near"] == expected
    assert by_height.totals["missing"].eq(0).all()


def test_a_first_block_whose_predecessor_is_discarded() -> None:
    """The host no longer has the block before `start`: that is no first block of a chain."""
    world = open_world("empty", archival=False, epoch_length=20, epochs_kept=2)
    world.advance(200)
    earliest = world.chain.earliest.height
    assert earliest > world.chain.genesis.height
    with lk.connect("local", world=world, make_default=False) as ledger:
        with pytest.raises(UnknownBlockError, match=str(earliest - 1)):
            lk.statement("near", earliest, ledger=ledger, progress=False)
        assert lk.statement("near", earliest + 1, ledger=ledger, progress=False).entries.empty


# Errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["statement", "account_transactions", "transfers_of"])
def test_the_wrong_end_is_named(ledger: lk.Ledger, name: str) -> None:
    """The field of an error is the argument that is wrong; nothing is sent."""
    verb = getattr(UNTYPED, name)
    for ends, field in (((5, 4), "stop"), (("x", None), "start"), ((None, "x"), "stop")):
        with pytest.raises(InvalidRequestError) as raised:
            verb(IDS[0], *ends, ledger=ledger)
        assert raised.value.field == field


@pytest.mark.parametrize("name", ["blocks", "collect_blocks", "follow"])
def test_the_wrong_end_of_blocks_is_named(ledger: lk.Ledger, name: str, tmp_path: Path) -> None:
    """The first block is required; the field of an error is the argument that is wrong."""
    options = {"out": tmp_path / "out"} if name == "collect_blocks" else {}
    verb = getattr(UNTYPED, name)
    for start, stop, field in ((5, 4, "stop"), (None, 5, "start"), (5, "x", "stop")):
        with pytest.raises(InvalidRequestError) as raised:
            verb(start, stop=stop, ledger=ledger, **options)
        assert raised.value.field == field
