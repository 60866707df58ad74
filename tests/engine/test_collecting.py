"""`collect`: many accounts to Parquet, over a real server; nothing lost, nothing twice."""

from __future__ import annotations

import resource
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import ledgerkit as lk
from ledgerkit.errors import (
    AuthError,
    FileError,
    InvalidRequestError,
    RateLimitedError,
    TransportError,
)
from ledgerkit.transport.rate_limit import RateLimiter
from tests.loopback import Reply, Server, as_json, serve
from tests.unit.collecting.builders import rewrite

if TYPE_CHECKING:
    from pathlib import Path

LIQUID = ["token1.near"]
TABLES = ("accounts", "ft", "nft", "staking", "exposure", "subjects", "errors")
KEY = "lk_planted_0123456789abcdef"


def full(account_id: str) -> dict[str, Any]:
    """Make up what an account holds: by its id, the same each time."""
    number = zlib.crc32(account_id.encode())
    return {
        "account_id": account_id,
        "tokens": [
            {"contract_id": f"token{n}.near", "balance": str(number * 10**24 + n)}
            for n in range(number % 4)
        ],
        "nfts": [{"contract_id": "art.near", "last_update_block_height": 7}] * (number % 2),
        "pools": [{"pool_id": "node.pool.near"}] * (number % 3 == 0),
        "state": {"balance": str(number), "locked": "0", "storage_bytes": 182},
    }


def answer(_method: str, path: str, _headers: object, _body: bytes) -> Reply:
    """Answer as the service does; its view of NFTs calls them tokens."""
    told = full(path.split("/")[3])
    told["tokens"] = told["nfts"] if path.endswith("/nft") else told["tokens"]
    return as_json(told)


Script = Callable[[str], Reply | None]


def disturbed(script: Script) -> Any:
    """Answer as the service does, unless the script has something else for an account."""

    def handler(method: str, path: str, headers: object, body: bytes) -> Reply:
        return script(path.split("/")[3]) or answer(method, path, headers, body)

    return handler


@contextmanager
def lab(handler: Any = answer, **options: Any) -> Iterator[tuple[Server, lk.Ledger]]:
    """Serve, and connect; a failure is final at once."""
    options = {"retries": lk.RetryPolicy(attempts=1, total_s=20.0), "in_flight": 4, **options}
    with serve(handler) as server, lk.connect("lab", api_url=server.url, **options) as ledger:
        yield server, ledger
    lk.disconnect()


def collect(account_ids: object, out: Path, ledger: lk.Ledger, **options: Any) -> Any:
    """Collect in small parts, quietly."""
    options = {"part_size": 50, "progress": False, "liquid_tokens": LIQUID, **options}
    return lk.collect(account_ids, out=out, ledger=ledger, **options)


def names(count: int) -> list[str]:
    return [f"a{number}.near" for number in range(count)]


def rows(out: Path) -> dict[str, pd.DataFrame]:
    """Read all tables in the order of their files, without the times of reading."""
    tables = {}
    for table in TABLES:
        files = sorted((out / table).glob("*.parquet"))
        parts = [lk.read_parquet(file) for file in files]
        frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
        tables[table] = frame.drop(columns="fetched_at", errors="ignore")
    return tables


def assert_same(left: Path, right: Path) -> None:
    """Compare two datasets row by row."""
    one, other = rows(left), rows(right)
    for table in TABLES:
        assert_frame_equal(one[table], other[table])


def test_the_dataset_holds_what_the_verbs_answer(tmp_path: Path) -> None:
    """Each table equals the frame of the verb of its name, value by value."""
    ids = names(120)
    with lab() as (server, ledger):
        collect(ids, tmp_path / "out", ledger)
        assert len(server.requests) == 120
        tables = rows(tmp_path / "out")
        verbs = {
            "accounts": lk.accounts(ids, progress=False, ledger=ledger),
            "ft": lk.ft(ids, progress=False, ledger=ledger),
            "nft": lk.nft(ids, progress=False, ledger=ledger),
            "staking": lk.staking(ids, progress=False, ledger=ledger),
        }
    for table, frame in verbs.items():
        assert_frame_equal(tables[table], frame)
    assert tables["subjects"]["subject"].tolist() == ids
    assert tables["errors"].empty
    assert sorted(file.name for file in (tmp_path / "out/ft").iterdir()) == [
        "part-000000000000.parquet",
        "part-000000000050.parquet",
        "part-000000000100.parquet",
    ]


def test_exposure_is_classed_by_the_tokens_given(tmp_path: Path) -> None:
    """Two lists, of pools and liquid tokens, decide the class."""
    with lab() as (_, ledger):
        collect(names(40), tmp_path / "out", ledger)
        exposure = lk.read_parquet(tmp_path / "out/exposure")
        wanted = lk.exposure(names(40), liquid_tokens=LIQUID, ledger=ledger)
    assert exposure["exposure_class"].tolist() == wanted["exposure_class"].tolist()
    assert [list(pools) for pools in exposure["direct_pools"]] == wanted["direct_pools"].tolist()


def test_malformed_and_repeated_ids_are_recorded_and_not_asked(tmp_path: Path) -> None:
    """They are rows of errors, at their place in the source, and fail nothing."""
    ids = ["a.near", "NO", "b.near", "a.near", None, "b.near"]
    with lab() as (server, ledger):
        collect(ids, tmp_path / "out", ledger)
        assert len(server.requests) == 2
    errors = rows(tmp_path / "out")["errors"]
    assert errors["position"].tolist() == [1, 3, 4, 5]
    assert errors["kind"].tolist() == ["malformed", "duplicate", "malformed", "duplicate"]
    assert errors["subject"].tolist() == ["NO", "a.near", "None", "b.near"]
    assert "account_id 'NO' is not valid: expected 2 to 64 characters" in errors["message"][0]
    assert not errors["retryable"].any()


def test_a_second_call_asks_nothing_more(tmp_path: Path) -> None:
    """What is stored is not asked again; ids added at the end are."""
    with lab() as (server, ledger):
        collect(names(70), tmp_path / "out", ledger)
        collect(names(70), tmp_path / "out", ledger)
        assert len(server.requests) == 70
        collect(names(90), tmp_path / "out", ledger)
        assert len(server.requests) == 90
        collect(iter(names(90)), tmp_path / "peace", ledger)
    assert_same(tmp_path / "out", tmp_path / "peace")


def test_an_interrupt_keeps_what_was_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the middle of a part stores the part's beginning; the rest comes later."""
    monkeypatch.setattr("ledgerkit.collecting.outcomes.BATCH", 16)

    def interrupted() -> Iterator[str]:
        yield from names(1_500)
        raise KeyboardInterrupt

    with lab() as (server, ledger):
        with pytest.raises(KeyboardInterrupt):
            collect(interrupted(), tmp_path / "out", ledger, part_size=10_000)
        kept = rows(tmp_path / "out")["subjects"]["subject"].tolist()
        assert kept == names(len(kept))
        assert len(kept) >= 800
        before = len(server.requests)
        collect(names(1_200), tmp_path / "out", ledger, part_size=10_000)
        assert len(server.requests) - before == 1_200 - len(kept)
        collect(names(1_200), tmp_path / "peace", ledger, part_size=10_000)
    assert_same(tmp_path / "out", tmp_path / "peace")


def test_who_was_asked_in_vain_is_recorded_and_asked_again(tmp_path: Path) -> None:
    """Failures are rows of errors; retry_failed puts the answers where they would have been."""
    ill = {"a3.near", "a60.near", "a61.near", "a119.near"}
    with lab(disturbed(lambda who: Reply(503) if who in ill else None)) as (server, ledger):
        with pytest.warns(UserWarning, match=r"4 accounts could not be read.*retry_failed=True"):
            collect(names(120), tmp_path / "out", ledger)
        errors = rows(tmp_path / "out")["errors"]
        assert set(errors["subject"]) == ill
        assert set(errors["error"]) == {"TransportError"}
        assert errors["retryable"].all()
        assert set(rows(tmp_path / "out")["accounts"]["account_id"]).isdisjoint(ill)
        ill -= {"a3.near", "a60.near", "a61.near"}
        with pytest.warns(UserWarning, match="1 account could not be read"):
            collect(names(120), tmp_path / "out", ledger, retry_failed=True)
        assert len(server.requests) == 124
        assert rows(tmp_path / "out")["errors"]["subject"].tolist() == ["a119.near"]
        ill.clear()
        collect(names(120), tmp_path / "out", ledger, retry_failed=True)
        collect(names(120), tmp_path / "peace", ledger)
    assert_same(tmp_path / "out", tmp_path / "peace")


def test_a_refused_key_ends_it_at_once(tmp_path: Path) -> None:
    """It is no account's failure; what was answered before is stored."""
    with (
        lab(disturbed(lambda who: Reply(401) if who == "a80.near" else None)) as (_, ledger),
        pytest.raises(AuthError),
    ):
        collect(names(300), tmp_path / "out", ledger)
    assert rows(tmp_path / "out")["subjects"]["subject"].tolist() == names(80)
    assert rows(tmp_path / "out")["errors"].empty


def test_a_dead_service_ends_it(tmp_path: Path) -> None:
    """64 in a row without an answer are not 64 rows of errors, also where a batch ends in them."""
    dead = set(names(400)[240:])
    with lab(disturbed(lambda who: Reply(502) if who in dead else None)) as (_, ledger):
        with pytest.raises(TransportError, match="64 accounts in a row had no response") as told:
            collect(names(400), tmp_path / "out", ledger)
        assert "stored data is kept" in told.value.remedy
        assert rows(tmp_path / "out")["subjects"]["subject"].tolist() == names(240)
        assert rows(tmp_path / "out")["errors"].empty
        dead.clear()
        collect(names(400), tmp_path / "out", ledger)
        collect(names(400), tmp_path / "peace", ledger)
    assert_same(tmp_path / "out", tmp_path / "peace")


def test_a_run_that_loses_the_network_continues_where_it_was(tmp_path: Path) -> None:
    """Accounts that could not be asked are no failures and no rows: the next run asks them."""
    lost = set(names(60)[40:])  # fewer than end a run whose host answers with errors

    def script(account_id: str) -> Reply | None:
        return Reply(200, b"{}", truncate=0) if account_id in lost else None

    with lab(disturbed(script)) as (_, ledger):
        with pytest.raises(TransportError, match="not sent, because the last 10") as caught:
            collect(names(60), tmp_path / "out", ledger)
        assert "stored data is kept" in caught.value.remedy
        assert rows(tmp_path / "out")["subjects"]["subject"].tolist() == names(40)
        assert not (tmp_path / "out/errors").exists()
        lost.clear()
        collect(names(60), tmp_path / "out", ledger)
        collect(names(60), tmp_path / "peace", ledger)
    assert_same(tmp_path / "out", tmp_path / "peace")


def test_too_many_requests_are_nobodys_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that answers 429 for a while is asked again until it answers."""
    monkeypatch.setattr(RateLimiter, "record", lambda *_, **__: None)  # it would slow down
    left = [30]

    def busy(_who: str) -> Reply | None:
        left[0] -= 1
        return Reply(429, headers={"retry-after": "0"}) if left[0] > 0 else None

    with lab(disturbed(busy)) as (_, ledger):
        collect(names(60), tmp_path / "out", ledger)
    assert rows(tmp_path / "out")["errors"].empty
    assert rows(tmp_path / "out")["subjects"]["subject"].tolist() == names(60)


def test_waiting_for_a_busy_host_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that bears nothing at all ends the run with its own error, and stores no failure."""
    monkeypatch.setattr("ledgerkit.collecting.outcomes.MAX_RATE_LIMITED_S", 0.0)
    with (
        lab(disturbed(lambda _: Reply(429, headers={"retry-after": "0"}))) as (_, ledger),
        pytest.raises(RateLimitedError, match="Then run the same command again"),
    ):
        collect(names(3), tmp_path / "out", ledger)
    assert not (tmp_path / "out/errors").exists()


def test_amounts_are_stored_to_the_last_digit(tmp_path: Path) -> None:
    """Also what no decimal of 38 digits holds."""
    amounts = [2**128 - 1, 10**38, 10**38 - 1, 2**127, 0, None, ""]
    tokens = [
        {"contract_id": f"t{n}.near", "balance": str(a) if isinstance(a, int) else a}
        for n, a in enumerate(amounts)
    ]
    huge = disturbed(lambda who: as_json({**full(who), "tokens": tokens}))
    with lab(huge) as (_, ledger):
        collect("a.near", tmp_path / "out", ledger)
    ft = rows(tmp_path / "out")["ft"]
    assert ft["balance"].tolist() == [*amounts[:5], pd.NA, pd.NA]
    assert ft["status"].tolist() == ["ok"] * 5 + ["pending", "broken"]


@pytest.mark.parametrize("view", ["ft", "nft", "staking"])
def test_a_single_view_asks_for_no_more(tmp_path: Path, view: str) -> None:
    """The narrower path answers it."""
    with lab() as (server, ledger):
        collect(names(30), tmp_path / "out", ledger, views=view)
        assert set(server.paths) == {f"/v1/account/{who}/{view}" for who in names(30)}
    contracts = rows(tmp_path / "out")[view]
    assert len(contracts) == sum(
        len(full(who)[{"ft": "tokens", "nft": "nfts", "staking": "pools"}[view]])
        for who in names(30)
    )


def test_a_dry_run_asks_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It tells schema, requests, time, paths and what is there already."""
    ids = [*names(130), "NO", "a1.near"]
    with lab(rate=1_000.0) as (server, ledger):
        collect(names(100), tmp_path / "out", ledger)
        asked = len(server.requests)
        plan = collect(ids, tmp_path / "out", ledger, dry_run=True, rate=10.0)
        assert len(server.requests) == asked
        fresh = collect(iter(ids), tmp_path / "new", ledger, dry_run=True)
    assert (plan.requests, plan.stored, plan.seconds) == (30, 100, 3.0)
    assert plan.skipped == {"malformed": 1, "duplicate": 1}
    assert plan.schemas["ft"]["balance"] == "decimal128(38, 0)"
    assert fresh.requests is None
    told = capsys.readouterr().out
    assert f"would collect from lab to {tmp_path / 'out'}" in told
    assert "30 x GET /v1/account/{account_id}/full" in told
    assert "at most 10 requests a second: 3 s or more" in told
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("views", "balances"),
        ("views", ()),
        ("part_size", 0),
        ("in_flight", 0),
        ("rate", -1),
        ("engine", "cloud"),
        ("liquid_tokens", "NO"),
        ("account_ids", 3),
        ("account_ids", b"a.near"),
        ("account_ids", {"a.near": 1}),
        ("account_ids", "missing/ids.txt"),
        ("out", None),
    ],
)
def test_bad_arguments_are_refused(tmp_path: Path, field: str, value: Any) -> None:
    """Before anything is asked or written; there is no folder by default."""
    arguments: dict[str, Any] = {"account_ids": names(3), "out": tmp_path / "out", field: value}
    with lab() as (server, ledger), pytest.raises((InvalidRequestError, FileError)) as told:
        collect(ledger=ledger, **arguments)
    if isinstance(told.value, InvalidRequestError):
        assert told.value.field == field
    assert not server.requests
    assert not (tmp_path / "out").exists()


def test_a_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    """Other views, another network, somebody else's files, an older schema; each by its name."""
    out = tmp_path / "out"
    with lab() as (server, ledger):
        collect(names(3), out, ledger, views="ft")
        with pytest.raises(InvalidRequestError, match=r"its views is \['ft'\]"):
            collect(names(3), out, ledger)
        with pytest.raises(InvalidRequestError, match="pass resume=True to continue it"):
            collect(names(3), out, ledger, views="ft", resume=False)
        other = lk.connect("other", api_url=server.url)
        with pytest.raises(
            InvalidRequestError, match="its network is lab, and this run's is other"
        ):
            collect(names(3), out, other, views="ft")
        rewrite(out / "manifest.json", lambda document: document["schemas"]["ft"].pop())
        with pytest.raises(
            InvalidRequestError, match="the columns of ft are those of an older ledgerkit"
        ):
            collect(names(3), out, ledger, views="ft")
        (tmp_path / "photos").mkdir()
        (tmp_path / "photos/cat.jpg").write_bytes(b"cat")
        with pytest.raises(InvalidRequestError, match="a new or empty folder"):
            collect(names(3), tmp_path / "photos", ledger)
        assert len(server.requests) == 3


def test_another_source_is_refused(tmp_path: Path) -> None:
    """Other ids where some are stored, or fewer, would make a dataset of nothing in particular."""
    with lab() as (server, ledger):
        collect(names(60), tmp_path / "out", ledger)
        with pytest.raises(InvalidRequestError, match="the stored entries 0 to 49 differ"):
            collect(["z.near", *names(60)[1:]], tmp_path / "out", ledger)
        with pytest.raises(InvalidRequestError, match="it has 30 entries, and 60 are stored"):
            collect(names(30), tmp_path / "out", ledger)
        assert len(server.requests) == 60


def test_two_runs_never_write_to_one_folder(tmp_path: Path) -> None:
    """The second is refused while the first is at work, and only then."""
    inner: list[BaseException] = []

    def busy() -> Iterator[str]:
        try:
            collect(names(2), tmp_path / "out", ledger)
        except InvalidRequestError as error:
            inner.append(error)
        yield from names(2)

    with lab() as (_, ledger):
        collect(busy(), tmp_path / "out", ledger)
    assert "no other process is writing to" in str(inner[0])
    assert rows(tmp_path / "out")["subjects"]["subject"].tolist() == names(2)


def test_a_disk_that_takes_no_more_is_told(tmp_path: Path) -> None:
    """The error names the file; what was stored stays, and the next run completes it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with lab() as (_, ledger):
        collect(names(50), tmp_path / "out", ledger)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
        try:
            with pytest.raises(FileError, match=r"Could not write .*\.parquet: File too large"):
                collect(names(120), tmp_path / "out", ledger)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert rows(tmp_path / "out")["subjects"]["subject"].tolist() == names(50)
        assert not list((tmp_path / "out").glob("*/.*.tmp"))
        collect(names(120), tmp_path / "out", ledger)
        collect(names(120), tmp_path / "peace", ledger)
    assert_same(tmp_path / "out", tmp_path / "peace")


def test_a_disk_that_is_full_in_the_middle_of_a_file_is_told(tmp_path: Path) -> None:
    """So many rows that they are written before the part ends: the error names the file too."""

    def rich(who: str) -> Reply:
        tokens = [
            {"contract_id": f"token{n}.near", "balance": str(zlib.crc32(f"{who}{n}".encode()))}
            for n in range(3_000)
        ]
        return as_json({"account_id": who, "tokens": tokens})

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with lab(disturbed(rich)) as (_, ledger):
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        try:
            with pytest.raises(FileError, match=r"Could not write .*\.parquet: File too large"):
                collect(names(40), tmp_path / "out", ledger, views="ft")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list((tmp_path / "out").rglob("*.parquet"))


def test_the_key_is_in_no_file(tmp_path: Path) -> None:
    """Neither in the manifest, nor in a message, though the service repeats it."""
    echo = disturbed(lambda who: Reply(500, KEY.encode()) if who == "a1.near" else None)
    with lab(echo, api_key=KEY) as (server, ledger):
        with pytest.warns(UserWarning, match="1 account"):
            collect(names(9), tmp_path / "out", ledger)
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    for file in (tmp_path / "out").rglob("*"):
        assert file.is_dir() or KEY.encode() not in file.read_bytes()
    assert KEY not in str(rows(tmp_path / "out"))
