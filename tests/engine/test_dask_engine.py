"""Collecting over a Dask cluster: the same rows, whoever dies in the middle."""

from __future__ import annotations

import pickle
import random
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import dask.dataframe as dd
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, KilledWorker, LocalCluster

import ledgerkit as lk
from ledgerkit import client as ledgers
from ledgerkit.collecting import dask_engine, manifests, storage
from ledgerkit.collecting.account_sources import Subject
from ledgerkit.collecting.blocks import BlockReader
from ledgerkit.collecting.collect import AccountReader
from ledgerkit.collecting.dask_engine import Limits, PartWork, Task
from ledgerkit.collecting.part_writer import Job
from ledgerkit.errors import AuthError, FileError, InvalidRequestError, TransportError
from tests.document_host import DocumentHost, scattered
from tests.interrupts import interrupt
from tests.loopback import Reply, as_json, serve
from tests.unit.localnet.chaos import Chaos
from tests.unit.localnet.ledger import Ledger as Small
from tests.unit.localnet.ledger import do
from tests.world_hosts import documents_of, hosts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ledgerkit.collecting.manifests import Commit
    from ledgerkit.localnet.world import World

ROOT = Path(__file__).resolve().parents[2]
KEY = "PLANTED-mossw0rt-Qx42"
VIEWS = ["accounts", "ft", "nft", "staking"]
VIEWS_OF_RPC = ["blocks", "chunks", "transactions", "receipts", "events", "transfers", "intents"]
QUIET: dict[str, Any] = {"progress": False}
collect = lk.collect


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Run two workers, each a process; those that die are replaced."""
    silent = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(processes=True, silence_logs=50, **silent) as running:
        yield running


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster) as connected:
        connected.run(__import__, "ledgerkit.collecting.collect")
        yield connected


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """Serve the world `crowd` from a process of its own."""
    words = [sys.executable, "-m", "ledgerkit", "serve", "--world", "crowd", "--size", "400"]
    with subprocess.Popen(
        [*words, "--port", "0"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            yield re.findall(r"http://127\.0\.0\.1:\d+", line)[0]
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def ids() -> list[object]:
    """List the accounts of `crowd`, and entries that cannot be requested."""
    with lk.connect("local", world="crowd", size=400) as ledger:
        people: list[object] = list(ledger.world.account_ids())
    lk.disconnect()
    return [*people[:150], "NOT AN ID", people[3], None, *people[150:]]


def connect(url: str, **options: Any) -> lk.Ledger:
    """Ask a server on this machine; a failure is final at once."""
    once = lk.RetryPolicy(attempts=1, total_s=20)
    return lk.connect("lab", rpc_url=url, api_url=f"{url}/api", retries=once, **options)


@pytest.fixture(scope="module")
def expected(served: str, ids: list[object], tmp_path_factory: Any) -> dict[str, pa.Table]:
    out = tmp_path_factory.mktemp("local") / "out"
    with connect(served) as ledger:
        collect(ids, VIEWS, out, ledger=ledger, **QUIET)
    lk.disconnect()
    return rows(out)


def rows(out: Path) -> dict[str, pa.Table]:
    collection = lk.open_collection(out)
    assert collection.finished
    tables = {table: collection.arrow(table) for table in collection.tables}
    return {
        name: table.select([column for column in table.column_names if column != "fetched_at"])
        for name, table in tables.items()
    }


def assert_same(out: Path, expected: dict[str, pa.Table]) -> None:
    """Compare row for row, as they stand; and nothing else is left in the folder."""
    found = rows(out)
    assert found.keys() == expected.keys()
    for table, expected_table in expected.items():
        assert found[table].equals(expected_table), table
    there = [str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()]
    n_files = sum(name.endswith(".parquet") for name in there)
    assert n_files == lk.open_collection(out).summary()["n_files"].sum()
    assert not [name for name in there if ".tmp" in name or name.endswith(".run")]


def test_the_rows_are_those_of_the_local_engine(client, served, ids, expected, tmp_path):
    """Two workers write what one process writes, row for row and in its order."""
    out = tmp_path / "out"
    with connect(served) as ledger:
        collect(ids, VIEWS, out, engine=client, part_size=60, ledger=ledger, **QUIET)

    files = lk.open_collection(out).summary().set_index("table")["n_files"]
    assert files["subjects"] == -(-len(ids) // 60)
    assert_same(out, expected)


def test_an_address_takes_the_place_of_a_path(client, served, ids, expected, tmp_path):
    """Workers write through fsspec where `out` is an address, and leave the same files."""
    with connect(served) as ledger:
        url = f"local://{tmp_path}/out"
        collect(ids, VIEWS, url, engine=client, part_size=100, ledger=ledger, **QUIET)

    assert_same(tmp_path / "out", expected)


# Blocks -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world() -> World:
    """Return a world with transactions, and heights left out."""
    chaos = Chaos(12)
    for _ in range(10):
        chaos.block()
    chaos.world.advance(1, skip=2)
    chaos.world.settle()
    chaos.world.advance(90)
    made: World = chaos.world
    return made


@pytest.fixture(scope="module")
def block_host(world) -> DocumentHost:
    """Return a host of its documents that fails now and then."""
    final = world.chain.final.height
    return DocumentHost(documents_of(world), final=final, fault=scattered(5, 0.2))


@pytest.fixture(scope="module")
def expected_blocks(world, tmp_path_factory) -> dict[str, pa.Table]:
    """Collect its blocks with the local engine, from its node."""
    with lk.connect("local", world=world, make_default=False) as ledger:
        out = tmp_path_factory.mktemp("blocks") / "out"
        first, stop = world.chain.genesis.height, world.chain.final.height + 1
        lk.collect_blocks(first, stop, out=out, source="rpc", ledger=ledger, **QUIET)
    return rows(out)


def collect_blocks(
    world: World, out: Path, ledger: lk.Ledger, **options: Any
) -> lk.types.Collection:
    """Collect all blocks of a world from documents, in small parts."""
    first, stop = world.chain.genesis.height, world.chain.final.height + 1
    options = {"part_size": 15, "views": VIEWS_OF_RPC, **QUIET, **options}
    return lk.collect_blocks(first, stop, out=out, ledger=ledger, **options)


def test_blocks_are_read_by_workers(client, world, block_host, expected_blocks, tmp_path):
    """The rows of documents read by two workers are those of a node, in its order."""
    with hosts(world, block_host) as ledger:
        collection = collect_blocks(world, tmp_path / "out", ledger, engine=client)
    assert collection.summary()["n_files"].max() > 5
    assert_same(tmp_path / "out", expected_blocks)


def test_workers_of_this_machine_start_and_end_with_the_call(
    world, block_host, expected_blocks, tmp_path
):
    """`workers=2` needs no client; the two processes end, and a later call continues the run."""
    with hosts(world, block_host) as ledger:
        collection = collect_blocks(world, tmp_path / "out", ledger, workers=2)
        again = collect_blocks(world, tmp_path / "out", ledger)
    assert again.n_subjects == collection.n_subjects
    assert_same(tmp_path / "out", expected_blocks)


def test_processes_that_do_not_start_are_an_error(monkeypatch):
    """As those of a script that starts them while it is imported: the error says what to do."""

    def fail(**_options: Any) -> None:
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr("distributed.LocalCluster", fail)
    with (
        pytest.raises(InvalidRequestError, match='below `if __name__ == "__main__":`'),
        serving() as lab,
        dask_engine.choose("local", 2, lab.ledger),
    ):
        pass


def test_workers_complete_what_waits(client, tmp_path):
    """A later call over a stored height with a waiting transaction completes it."""
    small = Small("a.near", scripts=["s.near"])
    small.send("a.near", "s.near", do(["wait", "w", [["results"]]], ["give", "w"]))
    small.world.advance(12)
    host = DocumentHost(documents_of(small.world), final=small.world.chain.final.height)
    stop = small.world.chain.final.height + 1
    untyped: Any = lk
    with hosts(small.world, host) as ledger:
        options = {"out": tmp_path / "out", "ledger": ledger, "engine": client, **QUIET}
        with pytest.warns(UserWarning, match="not final yet"):
            untyped.collect_blocks(small.world.chain.genesis.height, stop, **options)
        small.world.advance(250)
        host.documents, host.final = documents_of(small.world), small.world.chain.final.height
        late = untyped.collect_blocks(small.world.chain.genesis.height, stop, **options)
    assert set(late.counts) == {"ok"}


# A small server whose answers a test decides -----------------------------------------------


def view(path: str) -> Reply:
    """Answer about the tokens of an account."""
    token = {"contract_id": "gold.near", "balance": "7", "last_update_block_height": None}
    return as_json({"account_id": path.split("/")[-2], "tokens": [token]})


PEOPLE = [f"person-{n}.near" for n in range(40)]


@contextmanager
def serving(handler: Callable[[str], Reply] = view, **options: Any) -> Iterator[Any]:
    """Serve, and connect to the server; its `.paths` are those of the requests."""
    with serve(lambda _method, path, _headers, _body: handler(path)) as server:
        once = lk.RetryPolicy(attempts=1, total_s=20)
        with lk.connect("lab", api_url=server.url, retries=once, **options) as ledger:
            yield SimpleNamespace(ledger=ledger, server=server)
    lk.disconnect()


@pytest.fixture
def workers_key(client: Client) -> Iterator[Callable[[str], object]]:
    """Give a function that sets the key in the workers' environments, and take it out after."""
    in_each = "import os; os.environ"  # as Dask sends it, `os.environ` itself would be a copy
    yield lambda key: client.run(exec, f"{in_each}['LEDGERKIT_API_KEY'] = {key!r}")
    client.run(exec, f"{in_each}.pop('LEDGERKIT_API_KEY', None)")


def test_workers_without_a_key_are_found_before_anything_is_asked(client, tmp_path):
    """The key is not sent to workers: one that has none in its environment is told so."""
    with serving(api_key=KEY) as lab, pytest.raises(InvalidRequestError) as caught:
        collect(PEOPLE, "ft", tmp_path / "out", engine=client, ledger=lab.ledger, **QUIET)

    assert "LEDGERKIT_API_KEY" in str(caught.value)
    assert lab.server.paths == []


def test_a_refused_key_is_the_same_error_as_here(client, workers_key, tmp_path):
    """An AuthError of a worker arrives as one; nothing is stored as an account's failure."""
    workers_key("a-wrong-key")
    out = tmp_path / "out"
    with serving(lambda _path: Reply(401, b"{}"), api_key=KEY) as lab, pytest.raises(AuthError):
        collect(PEOPLE, "ft", out, engine=client, part_size=10, ledger=lab.ledger, **QUIET)

    assert not list(out.rglob("*.parquet"))


def test_the_key_never_travels(client, cluster, workers_key, tmp_path):
    """A key of this process is in no task, nowhere on the scheduler, and in no file."""
    workers_key("the-workers-own")
    sent_tasks: list[bytes] = []

    def answer(path: str) -> Reply:
        tasks = list(cluster.scheduler.tasks.values())
        sent_tasks.extend(pickle.dumps(task.run_spec) for task in tasks)
        return view(path)

    out = tmp_path / "out"
    with serving(answer, api_key=KEY) as lab:
        collect(PEOPLE, "ft", out, engine=client, part_size=10, ledger=lab.ledger, **QUIET)
        job = Job(storage.folder(out), AccountReader(["ft"], []))
        work = PartWork(0, 1, (Subject(0, PEOPLE[0]),))
        task = Task(job, "", lab.ledger.description(), Limits(1, None), work)

    sent = b"".join(sent_tasks)
    assert b"person-0.near" in sent
    found = [sent, pickle.dumps(task), *(p.read_bytes() for p in out.rglob("*") if p.is_file())]
    assert not [body for body in found if b"PLANTED" in body or b"mossw0rt" in body]
    keys = {request.headers.get("authorization", "") for request in lab.server.requests}
    assert keys == {"Bearer the-workers-own"}


def test_the_embedded_ledger_stays_in_its_process(client, tmp_path):
    """Other processes cannot ask it: the error names the command that lets them."""
    with lk.connect("local") as ledger, pytest.raises(InvalidRequestError) as caught:
        collect(["alice.near"], "ft", tmp_path / "out", engine=client, ledger=ledger)
    lk.disconnect()

    assert "ledgerkit serve" in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_an_engine_is_local_or_an_open_client(client, tmp_path):
    """Anything else is refused by name, a closed client too."""
    with Client(client.scheduler.address) as closed:
        pass
    for engine in ("dask", closed, client.scheduler.address):
        with serving() as lab, pytest.raises(InvalidRequestError, match="engine"):
            collect(PEOPLE, "ft", tmp_path, engine=engine, ledger=lab.ledger)


def test_workers_that_see_another_folder_are_found_before_anything_is_asked(client):
    """A folder that only this process sees is refused."""
    with serving() as lab, pytest.raises(InvalidRequestError, match="every worker can access"):
        collect(PEOPLE, "ft", "memory://run", engine=client, ledger=lab.ledger, **QUIET)

    assert lab.server.paths == []


def test_failed_subjects_are_requested_again(client, tmp_path):
    """`retry_failed` over the cluster asks those alone, and ends as a run without failures."""
    broken = True

    def answer(path: str) -> Reply:
        return Reply(500, b"") if broken and "7" in path else view(path)

    run = partial(collect, PEOPLE, "ft", engine=client, part_size=10, **QUIET)
    out = tmp_path / "out"
    with serving(answer) as lab:
        with pytest.warns(UserWarning, match="4 accounts could not be read"):
            run(out, ledger=lab.ledger)
        broken, before = False, len(lab.server.paths)
        run(out, ledger=lab.ledger, retry_failed=True)
        run(tmp_path / "whole", ledger=lab.ledger)

    assert before == 40
    again = sorted(path.split("/")[-2] for path in lab.server.paths[40:44])
    assert again == ["person-17.near", "person-27.near", "person-37.near", "person-7.near"]
    assert_same(out, rows(tmp_path / "whole"))


def test_an_interrupt_lets_workers_store_what_they_have(client, tmp_path):
    """Ctrl-C ends the run; responses of unfinished parts are stored, and not requested again."""
    people = [f"person-{n}.near" for n in range(4 * 400)]
    out, counted, slow = tmp_path / "out", iter(range(10**6)), 0.0
    many = threading.Event()

    def answer(path: str) -> Reply:
        nonlocal slow
        if next(counted) == 300:
            slow = 0.1  # or all would be answered before anybody could stop
            many.set()
        return replace(view(path), delay=slow)

    with serving(answer, in_flight=16) as lab:
        run = partial(collect, people, "ft", out, engine=client, ledger=lab.ledger, **QUIET)
        interrupt(lambda: run(part_size=400), after=many)
        stored = lk.open_collection(out).n_subjects
        before, slow = len(lab.server.paths), 0.0
        run(part_size=400)

    assert 256 <= stored < 1600
    assert len(lab.server.paths) - before == 1600 - stored
    assert lk.open_collection(out).counts == {"ok": 1600}


# A worker that was believed dead -------------------------------------------------------------


def task_of(lab: Any, out: Path, run: str, size: int = 20) -> Task:
    """Make the task of the first subjects, as a worker gets it."""
    work = PartWork(0, size, tuple(Subject(n, text) for n, text in enumerate(PEOPLE[:size])))
    job = Job(storage.LocalFolder(out), AccountReader(["ft"], []))
    made = Task(job, run, lab.ledger.description(), Limits(2, None), work)
    again: Task = pickle.loads(pickle.dumps(made))  # noqa: S301 - made here
    return again


def files(out: Path) -> dict[str, tuple[bytes, int]]:
    """Read all files of a folder, and when each appeared."""
    found = [path for path in out.rglob("*") if path.is_file() and path.name != ".run"]
    return {str(p.relative_to(out)): (p.read_bytes(), p.stat().st_mtime_ns) for p in found}


@pytest.mark.parametrize("ending", [200, 401], ids=["it ends well", "its key is refused"])
def test_a_task_that_comes_too_late_changes_nothing(ending, tmp_path):
    """While a worker is believed dead another does the same: the late one's files vanish."""
    later: dict[str, Any] = {}

    def answer(path: str) -> Reply:
        if not later and path.split("/")[-2] == PEOPLE[5]:
            later["asked"] = True
            later["made"] = task_of(lab, tmp_path, run)()
            later["files"] = files(tmp_path)
            return Reply(401, b"{}") if ending == 401 else view(path)
        return view(path)

    with serving(answer) as lab, manifests.marked_run(storage.folder(tmp_path)):
        run = manifests.current_run(storage.folder(tmp_path))
        made: Commit = task_of(lab, tmp_path, run)()

    assert made == later["made"]
    assert (made.start, made.stop, made.counts) == (0, 20, {"ok": 20})
    assert files(tmp_path) == later["files"]


def test_a_task_that_is_done_already_asks_nobody(tmp_path):
    """A worker that dies after its commit leaves nothing to be asked again."""
    with serving() as lab, manifests.marked_run(storage.folder(tmp_path)):
        run = manifests.current_run(storage.folder(tmp_path))
        made = task_of(lab, tmp_path, run)()
        n_requests = len(lab.server.paths)
        before = files(tmp_path)
        again = task_of(lab, tmp_path, run)()

    assert n_requests == len(lab.server.paths) == 20
    assert made == again
    assert files(tmp_path) == before


def test_a_shorter_part_is_replaced_by_the_full_one(tmp_path):
    """What a worker stored before it failed is replaced by who does all of it: no file is left."""
    refused = True

    def answer(path: str) -> Reply:
        return Reply(401, b"{}") if refused and PEOPLE[9] in path else view(path)

    with serving(answer) as lab, manifests.marked_run(storage.folder(tmp_path)):
        run = manifests.current_run(storage.folder(tmp_path))
        with pytest.raises(AuthError):
            task_of(lab, tmp_path, run)()
        [first] = manifests.read_commits(storage.folder(tmp_path))
        refused = False
        made = task_of(lab, tmp_path, run)()

    assert (first.start, first.stop, made.stop) == (0, 9, 20)
    assert manifests.read_commits(storage.folder(tmp_path)) == [made]
    assert pq.read_table(tmp_path / "ft")["account_id"].to_pylist() == PEOPLE[:20]


@pytest.mark.parametrize("next_run", [b"another", None], ids=["another began", "it is over"])
def test_a_task_of_a_run_that_is_over_stores_nothing(next_run, tmp_path):
    """A worker that outlives its run finds out before its files appear."""
    folder = storage.folder(tmp_path)

    def answer(path: str) -> Reply:
        folder.write(".run", next_run) if next_run else folder.remove(".run")
        return view(path)

    with serving(answer) as lab, manifests.marked_run(folder):
        run = manifests.current_run(folder)
        with pytest.raises(FileError, match="has ended, or another one has started"):
            task_of(lab, tmp_path, run)()

    assert files(tmp_path) == {}


# What needs no workers ------------------------------------------------------------------------


class Lost:
    """A task whose worker died each time."""

    status = "error"

    def result(self, timeout: float) -> None:  # noqa: ARG002 - as Dask's
        worker: Any = SimpleNamespace(address="tcp://10.0.0.7:1")
        raise KilledWorker("a task", worker, 4)


class Losing:
    """A cluster that loses every task."""

    def __init__(self, workers: int = 2) -> None:
        self.workers, self.keys = workers, list[str]()

    def nthreads(self) -> dict[str, int]:
        return {"here": self.workers}

    def submit(self, *_task: object, key: str = "", pure: bool) -> Lost:  # noqa: ARG002 - as Dask's
        self.keys.append(key)
        return Lost()


def run_of(lab: Any, out: Path, cluster: object) -> Any:
    job = Job(storage.LocalFolder(out), AccountReader(["ft"], []), part_size=20)
    return dask_engine.DaskRun(cluster, job, lab.ledger)


def test_a_cluster_shares_what_the_host_accepts(tmp_path, monkeypatch):
    """All tasks together send what the public host accepts with the key, which no task holds."""
    monkeypatch.setenv("LEDGERKIT_API_KEY", "lk_planted_0123456789abcdef")
    cluster = Losing()
    with lk.connect("mainnet") as ledger:
        run = run_of(SimpleNamespace(ledger=ledger), tmp_path, cluster)
        limits = run._next_limits()
        with ledgers.reopen(run._description, in_flight=1, rate=limits.rate) as worker:
            assert (worker.limit.rate, worker.limit.per_minute) == (limits.rate, 10_000)
    lk.disconnect()
    assert limits.rate == pytest.approx(10_000 / 61 / cluster.workers)


def test_a_cluster_is_limited_by_the_host_that_it_asks(tmp_path):
    """Blocks of a node of one's own are not limited by what the public REST API accepts."""
    job = Job(storage.LocalFolder(tmp_path), BlockReader(["blocks"]), part_size=20)
    with lk.connect("mainnet", rpc_url="http://127.0.0.1:1") as ledger:
        limits = dask_engine.DaskRun(Losing(), job, ledger)._next_limits()
    assert limits is not None
    assert limits.rate is None
    lk.disconnect()


def test_a_part_that_is_lost_three_times_ends_the_run(tmp_path, monkeypatch):
    """It is submitted three times, each under a key of its own, then an error is raised."""
    monkeypatch.setattr(dask_engine, "_wait", lambda *_: None)
    cluster = Losing()
    with serving() as lab:
        run = run_of(lab, tmp_path, cluster)
        works = iter([PartWork(0, 1, (Subject(0, PEOPLE[0]),))])
        with pytest.raises(TransportError) as caught:
            list(run.execute(works, lambda _: None))

    assert [key.rpartition("-")[2] for key in cluster.keys] == ["0", "1", "2"]
    assert "lost the part at 0 3 times" in str(caught.value)
    assert "run the same command again" in str(caught.value)


def test_a_cluster_without_workers_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    """Nobody comes: an error says so."""
    monkeypatch.setattr(dask_engine, "_NO_WORKERS_S", 0.05)
    with serving() as lab, pytest.raises(TransportError, match="no workers"):
        run_of(lab, tmp_path, Losing(workers=0)).check_workers()


def test_a_worker_with_another_ledgerkit_is_refused(tmp_path):
    """What one version sends another may take for something else."""
    with serving() as lab, pytest.raises(InvalidRequestError, match=r"have ledgerkit 0\.0"):
        dask_engine._check_worker(storage.folder(tmp_path), "", lab.ledger.description(), "0.0")


def test_all_tasks_together_stay_within_the_limits_of_the_ledger():
    """However workers come and go, the active tasks stay within both limits of the ledger."""
    draw = random.Random(9)  # noqa: S311 - no secret
    limits, active = Limits(in_flight=10, rate=100.0), list[Limits]()
    for _ in range(3000):
        task_limits = limits.for_next_task(active, draw.choice([0, 1, 3, 4, 9, 40]))
        if task_limits is not None and draw.random() < 0.7:
            active.append(task_limits)
        elif active:
            active.pop(draw.randrange(len(active)))
        assert sum(t.in_flight for t in active) <= 10
        assert sum(t.rate or 0 for t in active) <= 100 + 1e-9


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(("dtype", "sign"), [("u128", 1), ("i129", -1)])
def test_amounts_of_39_digits_stay_amounts_between_workers(dtype, sign):
    """Shuffles of a cluster are exact: merges, groups, indexes, orders and comparisons."""
    large = 10**38
    sizes = [2 * large, 7, 5, None, 8, 9, large, 3, 4, 6, 1, 2]
    values = [size and size * sign for size in sizes]
    balance = pd.Series(values, dtype=dtype)
    data = pd.DataFrame({"id": range(12), "key": ["a", "b"] * 6, "balance": balance})
    frame = dd.from_pandas(data, npartitions=2)
    others = dd.from_pandas(data[["id"]].assign(other=1), npartitions=2)
    merged = frame.merge(others.shuffle("id"), on="id")
    by_key = merged.groupby("key")["balance"]
    top = by_key.apply(lambda amounts: amounts.max(), meta=("balance", object))

    assert merged.compute().dtypes["balance"] == dtype
    totals = {"a": sign * (3 * large + 18), "b": sign * 27}
    assert by_key.sum().compute().to_dict() == totals
    assert by_key.sum(split_out=2).compute().to_dict() == totals
    assert top.compute().to_dict() == {
        "a": max(filter(None, values[::2])),
        "b": max(filter(None, values[1::2])),
    }
    indexed = frame.set_index("key").compute()["balance"]
    assert indexed.groupby("key").sum().to_dict() == totals
    ordered = frame.sort_values("balance", ascending=False).compute()["balance"]
    assert ordered.dropna().tolist() == sorted(filter(None, values), reverse=True)
    assert frame[frame["balance"] * sign > large]["id"].compute().tolist() == [0]
