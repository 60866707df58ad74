"""Statements that are collected, continued and planned equal those that are read in one go."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from pandas.testing import assert_frame_equal

import ledgerkit as lk
from ledgerkit.errors import AuthError, InvalidRequestError, TransportError
from ledgerkit.localnet.worlds import open_world
from ledgerkit.reconciling import entry_store, extending
from ledgerkit.verbs import account_history
from tests import lying_services
from tests.unit.collecting.builders import rewrite
from tests.unit.localnet.chaos import PEOPLE, Chaos
from tests.unit.localnet.full_world import POOL, WRAP, FullWorld
from tests.unit.localnet.ledger import START

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ledgerkit.localnet.world import World

IDS = ["alice.near", "bob.near", "ivan.near", "grace.near", "relay.near", "gold.near"]
TABLES = ("entries", "gaps", "totals", "rewards")
ONCE = lk.RetryPolicy(attempts=1)


@pytest.fixture(scope="module")
def demo() -> World:
    """Open the demo world once: nothing here changes it."""
    return open_world("demo")


@pytest.fixture
def ledger(demo: World) -> Iterator[lk.Ledger]:
    """Connect to the demo world; a failure is final at once."""
    with lk.connect("local", world=demo, retries=ONCE) as connected:
        yield connected
    lk.disconnect()


def statement(account_id: str, ledger: lk.Ledger, **options: Any) -> Any:
    return lk.statement(account_id, progress=False, ledger=ledger, **options)


def collect(ids: object, out: Path, ledger: lk.Ledger, **options: Any) -> lk.types.Collection:
    return lk.statements(ids, out, progress=False, ledger=ledger, **options)


def assert_same(one: Any, other: Any) -> None:
    """Compare two statements: entries in order, and all facts."""
    assert list(one.store) == list(other.store)
    assert one.facts == other.facts
    for table in TABLES:
        assert_frame_equal(getattr(one, table), getattr(other, table))


# Many accounts ----------------------------------------------------------------------------


def test_each_account_is_in_the_tables_as_its_statement_is(
    ledger: lk.Ledger, tmp_path: Path
) -> None:
    """The rows of an account in a table equal the frame of its statement, exactly."""
    collection = collect([*IDS, "Not An Id", "bob.near"], tmp_path / "out", ledger)
    assert collection.counts == {"ok": len(IDS), "malformed": 1, "duplicate": 1}
    assert collection.tables == (*TABLES, "subjects", "errors")
    for account_id in IDS:
        assert_same_rows(collection, statement(account_id, ledger))
    collection.check_files()


def assert_same_rows(collection: lk.types.Collection, whole: lk.Statement) -> None:
    """Compare the rows of an account in each table with the frame of its statement."""
    for table in TABLES:
        rows = collection.pandas(table, account_ids=whole.account_id).reset_index(drop=True)
        frame = getattr(whole, table)
        rows.attrs.clear()
        frame.attrs.clear()
        assert_frame_equal(rows, frame)


def test_a_run_continues_with_columns_in_another_order(ledger: lk.Ledger, tmp_path: Path) -> None:
    """Parts of an older order of columns and new ones are read by the names of columns."""
    collect(IDS[:1], tmp_path / "out", ledger)
    manifest = tmp_path / "out/manifest.json"
    rewrite(manifest, lambda document: document["schemas"]["entries"].reverse())
    collection = collect(IDS[:2], tmp_path / "out", ledger)
    for account_id in IDS[:2]:
        assert_same_rows(collection, statement(account_id, ledger))
    collection.check_files()


def test_a_period_is_that_of_each_statement(ledger: lk.Ledger, tmp_path: Path) -> None:
    """A month is both ends of a run, and the run continues with the same word."""
    for ids in (IDS[:1], IDS[:2]):
        collection = collect(ids, tmp_path / "out", ledger, start="2026-08")
    assert_same_rows(collection, statement(IDS[1], ledger, start="2026-08-01", stop="2026-09-01"))


def test_statements_of_lying_services_are_those_of_one(tmp_path: Path) -> None:
    """Gaps, and what only the node knows, are the same in the tables."""
    world, n_gaps = FullWorld(5).run(60), 0
    services = lying_services.LyingServices(world, 5)
    with lk.connect("local", transport=services, make_default=False) as ledger:
        ids, ends = [*PEOPLE, POOL, WRAP], {"start": 1000, "stop": world.chain.final.height}
        collection = collect(ids, tmp_path / "out", ledger, **ends)
        for account_id in ids:
            whole = statement(account_id, ledger, **ends)
            assert_same_rows(collection, whole)
            n_gaps += len(whole.gaps)
    assert n_gaps


def test_a_period_belongs_to_the_folder(ledger: lk.Ledger, tmp_path: Path) -> None:
    """Later calls use the blocks that the first one found, and refuse others."""
    out = tmp_path / "out"
    first = collect(IDS[:2], out, ledger, start=180000006, stop=180000031)
    again = collect(IDS[:4], out, ledger, start=180000006, stop=180000031)
    # The heights of the blocks after which balances are read: so wrote the first releases too.
    assert first.files.manifest.heights == again.files.manifest.heights == (180000005, 180000030)
    assert again.pandas("entries")["block_height"].between(180000006, 180000030).all()
    assert again.counts == {"ok": 4}
    for name, other, own in (("start", 180000005, 180000006), ("stop", 180000032, 180000031)):
        with pytest.raises(InvalidRequestError, match=f"{own}, as in the first call") as raised:
            collect(IDS, out, ledger, **{name: other})
        assert raised.value.field == name
    with pytest.raises(InvalidRequestError, match="resume=True"):
        collect(IDS, out, ledger, resume=False)
    with pytest.raises(InvalidRequestError, match="its kind is statements"):
        lk.collect(IDS, "ft", out, ledger=ledger)


def test_an_end_after_a_skipped_height_is_the_same_in_each_call(tmp_path: Path) -> None:
    """The block before `start` or `stop` may be some heights below; genesis has none before it."""
    with lk.connect("local", make_default=False) as ledger:
        world = ledger.world
        world.settle()
        skipped = world.advance(skip=3).height - 1
        world.advance(3)
        for number, start in enumerate((skipped, world.chain.genesis.height)):
            out, options = tmp_path / str(number), {"start": start, "stop": skipped + 1}
            collect(IDS[:1], out, ledger, **options)
            assert collect(IDS[:2], out, ledger, **options).counts == {"ok": 2}


@pytest.mark.parametrize(
    ("fault", "raised"), [("status=401", AuthError), ("status=503", TransportError)]
)
def test_a_run_that_failed_is_continued(
    demo: World, tmp_path: Path, fault: str, raised: type[Exception]
) -> None:
    """A host that fails for good ends the run; the next call ends with the same rows."""
    out = tmp_path / "out"
    with lk.connect("local", world=demo, retries=ONCE) as ledger:
        collect(IDS[:2], out, ledger)
        ledger.faults.add(fault)
        with pytest.raises(raised):
            collect(IDS, out, ledger, start=None)
        ledger.faults.clear()
        assert lk.open_collection(out).n_subjects == 2
        found = collect(IDS, out, ledger)
        whole = collect(IDS, tmp_path / "whole", ledger)
    assert found.counts == whole.counts == {"ok": len(IDS)}
    for table in TABLES:
        one, other = found.pandas(table), whole.pandas(table)
        one.attrs.clear()
        other.attrs.clear()
        assert_frame_equal(one, other)


def test_an_account_whose_transaction_runs_is_read_again(tmp_path: Path) -> None:
    """Its statement so far is stored; each later call reads it again, until it is complete."""
    out, ids = tmp_path / "out", ["peggy.near", "bob.near"]
    with lk.connect("local", make_default=False) as ledger:
        with pytest.warns(UserWarning, match="1 account with transactions that are not final"):
            early = collect(ids, out, ledger)
        assert early.counts == {"waiting": 1, "ok": 1}
        [row] = early.errors().itertuples()
        assert (row.subject, row.kind, row.retryable) == ("peggy.near", "waiting", True)
        assert len(early.pandas("entries", account_ids="peggy.near"))
        ledger.world.advance(300)
        late = collect(ids, out, ledger)
        whole = statement("peggy.near", ledger, stop=180_000_051)
    assert late.counts == {"ok": 2}
    totals = late.pandas("totals", account_ids="peggy.near")
    assert totals["closing"].tolist() == whole.totals["closing"].tolist()


# A later end ------------------------------------------------------------------------------


def test_continued_at_any_block(ledger: lk.Ledger) -> None:
    """Cut anywhere and continued to any block, a statement equals the one read in one go."""
    luck = random.Random(18)  # noqa: S311 - no secret
    for _ in range(6):
        start, cut, stop = sorted(luck.sample(range(180000001, 180000051), 3))
        account_id = luck.choice(IDS)
        earlier = statement(account_id, ledger, start=start, stop=cut)
        whole = statement(account_id, ledger, start=start, stop=stop)
        assert_same(earlier.extend(stop, ledger=ledger, progress=False), whole)


def test_continued_while_transactions_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was still running, or not listed yet, is read again: the chain grew meanwhile."""
    monkeypatch.setattr(extending, "_RECENT", 8)
    chaos, n_unfinished = Chaos(3), 0
    chaos.world.adjust(real_time=True)  # and without a clock, so that no read produces a block
    for _ in range(6):
        chaos.block()
    with lk.connect("local", world=chaos.world) as ledger:
        earlier: dict[str, Any] = {}
        for step in range(3):
            for _ in range(1 + 2 * step):
                chaos.block()
            if step == 2:
                chaos.world.settle()
            for account_id in PEOPLE[:2]:
                whole = statement(account_id, ledger, start="genesis")
                if account_id in earlier:
                    n_unfinished += len(earlier[account_id].facts.unfinished)
                    extended = earlier[account_id].extend(ledger=ledger, progress=False)
                    assert_same(extended, whole)
                earlier[account_id] = whole
    lk.disconnect()
    assert n_unfinished


@pytest.mark.parametrize("seed", [0, 4])
def test_continued_after_services_caught_up(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What services listed late is read again: the statement is that of services in time."""
    monkeypatch.setattr(lying_services, "CUT", 0)  # else the order in a block may be unknown
    world = FullWorld(seed).run(60)
    n_late = 0
    for account_id in (*PEOPLE[:3], POOL, WRAP):
        services = lying_services.LyingServices(world, seed, {"late": 25})
        with lk.connect("local", transport=services, make_default=False) as ledger:
            earlier = statement(account_id, ledger, start="genesis", stop=START + 12)
            n_late += len(services.fates)
            services.catch_up()
            extended = earlier.extend(ledger=ledger, progress=False)
            assert_same(extended, statement(account_id, ledger, start="genesis"))
    assert n_late


def test_a_saved_statement_is_continued(
    ledger: lk.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saving and loading changes nothing, also where most entries are in temporary files."""
    monkeypatch.setattr(entry_store, "MAX_IN_MEMORY", 4)
    earlier = statement("alice.near", ledger, stop=180000020, assets=["near", "nep141:gold.near"])
    loaded = lk.Statement.load(earlier.save(tmp_path / "alice.parquet"))
    assert_same(loaded, earlier)
    whole = statement("alice.near", ledger, assets=["near", "nep141:gold.near"])
    assert_same(loaded.extend(ledger=ledger, progress=False), whole)


def test_it_is_not_continued_backwards(ledger: lk.Ledger) -> None:
    """An earlier end is refused."""
    whole = statement("bob.near", ledger)
    with pytest.raises(InvalidRequestError, match="where the statement stops now"):
        whole.extend(180000020, ledger=ledger)


# Plans ------------------------------------------------------------------------------------


def test_a_plan_counts_requests(
    ledger: lk.Ledger, demo: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Pages of 200 and documents by 20, at the limit of each service; nothing else is sent.

    The node is asked for the blocks and balances at both ends, the rules of the first and last
    transaction, and the lockup contract; the REST API for pools and tokens.
    """
    plan = lk.statement("alice.near", 180000000, 180000050, dry_run=True, ledger=ledger)
    n_listed = len(list(account_history.transaction_rows(ledger, "alice.near", 0, 180000050)))
    assert plan.transactions == n_listed
    assert plan.requests == {
        "Transactions API": 1 + -(-n_listed // 20),
        "Transfers API": 1,
        "node": 7,
        "REST API": 2,
    }
    assert capsys.readouterr().out == f"{plan}\n"
    with lk.connect("local", world=demo, rate=2) as slow:
        paced = lk.statement("alice.near", 180000000, dry_run=True, ledger=slow)
    assert paced.seconds == pytest.approx(sum(paced.requests.values()) / 2)
    lk.disconnect()
