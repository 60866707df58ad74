"""Time travel: what an account held, read of chains on which it really changed."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.localnet import open_world
from ledgerkit.protocol import CreateAccount, FunctionCall, SecretKey, Transaction, Transfer
from tests.local_transport import LocalTransport

if TYPE_CHECKING:
    from ledgerkit.localnet import World

pytestmark = pytest.mark.usefixtures("no_session_left")

NEAR = 10**24
UNTYPED: Any = lk  # as whoever calls it without a type checker


class Counting(LocalTransport):
    """The way to a world, which notes what it is asked."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.asked: list[dict[str, Any]] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.asked.append(json.loads(request.content) if request.content else {"method": "GET"})
        return super().handle_request(request)

    @property
    def methods(self) -> Counter[str]:
        return Counter(one["method"] for one in self.asked)


def counted(world: World, **options: Any) -> Counting:
    """Connect to a world; gives what counts the requests."""
    way = Counting(world)
    lk.connect(
        "lab", transport=way, rpc_url="http://x.test", api_url="http://x.test/api", **options
    )
    return way


def act(world: World, signer_id: str, receiver_id: str, *actions: Any, skip: int = 0) -> Any:
    """Send a transaction, and give the block after which all of it has happened."""
    key = SecretKey.from_text(world.keys()[signer_id])
    held = world.store.access_keys.get(signer_id, key.public_key.packed)
    nonce = (0 if held is None else held.nonce) + 1
    head = world.chain.head.hash
    signed = Transaction(signer_id, key.public_key, nonce, receiver_id, head, list(actions)).sign(
        key
    )
    world.submit(signed)
    world.advance(1, skip=skip)
    while world.is_busy:
        world.advance()
    return world.chain.head


def call(method: str, deposit: int = 0, **args: Any) -> FunctionCall:
    return FunctionCall(method, json.dumps(args).encode(), 100 * 10**12, deposit)


def time_of(block: Any) -> pd.Timestamp:
    return pd.Timestamp(block.timestamp_ns, tz="UTC")


def rows(frame: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """List the values of some columns by row, whatever is missing as None."""
    lists = [[None if pd.isna(v) else v for v in frame[c].tolist()] for c in columns]
    return list(zip(*lists, strict=True))


# Accounts -------------------------------------------------------------------------------


def test_an_account_that_is_created_and_paid() -> None:
    """Before its block an account is not there, which is no zero; after it each payment shows."""
    world = open_world("empty")
    lk.connect(world=world)
    start = world.chain.head
    world.advance(5)
    act(world, "near", "kid.near", CreateAccount(), Transfer(5 * NEAR))
    world.advance(4, skip=3)
    act(world, "near", "kid.near", Transfer(7), skip=2)
    world.advance(10)
    frame = lk.history("kid.near", start.height, "final", every=1)
    told = rows(frame, "status", "balance")
    assert list(dict.fromkeys(told)) == [
        ("no_account", None),
        ("ok", 5 * NEAR),
        ("ok", 5 * NEAR + 7),
    ]
    blocks = [block.height for block in world.chain.blocks()]
    final = world.chain.final.height
    assert frame["block_height"].tolist() == [h for h in blocks if start.height <= h <= final]
    held = [world.state(height).account("kid.near") for height in frame["block_height"]]
    assert [balance for _, balance in told] == [one and one.amount for one in held]
    there = frame[frame["status"] == "ok"]
    assert set(there["locked"]) == {0}
    assert there["storage_bytes"].tolist() == [
        world.state(height).account("kid.near").storage_usage  # type: ignore[union-attr]  # there
        for height in there["block_height"]
    ]
    assert frame["storage_bytes"].isna().sum() == len(frame) - len(there)
    assert set(frame["account_id"]) == {"kid.near"}
    assert set(frame["view"]) == {"accounts"}
    assert frame["contract_id"].isna().all()
    known = {block.height: (str(block.hash), block.timestamp_ns) for block in world.chain.blocks()}
    times = [time.as_unit("ns").value for time in frame["time"]]
    heights = frame["block_height"].tolist()
    assert list(zip(frame["block_hash"], times, strict=True)) == [known[h] for h in heights]


def test_skipped_heights_read_the_block_below() -> None:
    """A height without a block is read at the last one before, and no block twice."""
    world = open_world("empty")
    first = world.advance(2)
    last = world.advance(1, skip=6)
    world.advance(4)
    lk.connect(world=world)
    frame = lk.history("near", first.height, last.height, every=2)
    assert last.height == first.height + 7
    assert frame["block_height"].tolist() == [first.height]
    frame = lk.history("near", first.height, last.height, every=7)
    assert frame["block_height"].tolist() == [first.height, last.height]


def test_ends_of_every_kind() -> None:
    """Heights, hashes, finality names, and times of all sorts name the same range."""
    world = open_world("empty")
    world.advance(50)
    lk.connect(world=world)
    low = world.chain.by_height(world.chain.genesis.height + 10)
    high = world.chain.final
    assert low is not None
    want = lk.history("near", low.height, high.height, every=5)
    assert want["block_height"].tolist() == list(range(low.height, high.height + 1, 5))
    for start in (low.height, np.int64(low.height), str(low.hash), time_of(low)):
        for stop in (high.height, str(high.hash), "final", None, time_of(high).isoformat()):
            frame = lk.history("near", start, stop, every=5)
            pd.testing.assert_frame_equal(frame, want)
    newest = lk.history("near", low.height, "optimistic", every=1)
    assert newest["block_height"].iloc[-1] == world.chain.head.height > high.height


@pytest.mark.parametrize(
    "every",
    ["6s", "0.1min", timedelta(seconds=6), pd.Timedelta(6, "s"), np.timedelta64(6, "s"),
     pd.offsets.Second(6), "6 seconds"],
    ids=repr,
)  # fmt: skip
def test_a_grid_of_times(every: object) -> None:
    """Each reading is the last block not younger than its time, and the stop may be one."""
    world = open_world("empty")
    world.advance(60)
    lk.connect(world=world)
    start = world.chain.genesis
    stop = time_of(start) + pd.Timedelta(30, "s")
    frame = lk.history("near", time_of(start), stop, every=every)
    assert frame["time"].tolist() == [time_of(start) + pd.Timedelta(6 * n, "s") for n in range(6)]
    late = lk.history("near", time_of(start) + pd.Timedelta(1, "ns"), stop, every=every)
    assert late["time"].tolist() == frame["time"].tolist()[:-1]


def test_months_and_the_future() -> None:
    """Calendar steps go by UTC; what is still to come is read at the final block, once."""
    world = open_world("empty", block_time_ns=10**9 * 3600 * 12)
    world.advance(100)
    lk.connect(world=world)
    frame = lk.history("near", "2026-08-15T12:00+09:00", "2027-08-01", every="MS")
    final = time_of(world.chain.final)
    begun = pd.Timestamp("2026-09-01T03:00", tz="UTC")
    assert begun < final < pd.Timestamp("2026-10-01", tz="UTC")
    first = max(time_of(block) for block in world.chain.blocks() if time_of(block) <= begun)
    assert frame["time"].tolist() == [first, final]


def test_a_period_is_both_ends() -> None:
    """
    A month alone begins and ends at midnight of UTC, and one that is not over ends with the chain.

    With a second month it ends where that one begins.
    """
    world = open_world("empty", block_time_ns=10**9 * 3600 * 12)
    world.advance(100)
    lk.connect(world=world)
    august = lk.history("near", "2026-08")
    pd.testing.assert_frame_equal(august, lk.history("near", "2026-08-01", "2026-09-01"))
    september = lk.history("near", "2026-09", every="1D")
    assert september["time"].iloc[0] <= pd.Timestamp("2026-09-01", tz="UTC")
    assert september["time"].iloc[-1] == time_of(world.chain.final)
    both = lk.history("near", "2026-08", "2026-09", every="1D")
    pd.testing.assert_frame_equal(both, lk.history("near", "2026-08-01", "2026-09-01", every="1D"))
    rows = lk.account_transactions("near", "2026-08")
    assert rows.equals(lk.account_transactions("near", "2026-08-01", "2026-09-01"))


@pytest.mark.parametrize(("period", "months"), [("last month", 1), ("last year", 12)])
def test_a_period_by_the_calendar_of_today(period: str, months: int) -> None:
    """The last month and the last year are whole ones before today's, in UTC."""
    this = pd.Timestamp.now("UTC").normalize().replace(day=1)
    this = this if months == 1 else this.replace(month=1)
    start = this - pd.DateOffset(months=months)
    genesis = start - pd.Timedelta(10, "D")
    world = open_world("empty", block_time_ns=10**9 * 3600 * 12, genesis_time_ns=genesis.value)
    world.advance(2 * (20 + 31 * months))
    lk.connect(world=world)
    frame = lk.history("near", period, every="1D")
    pd.testing.assert_frame_equal(frame, lk.history("near", start, this, every="1D"))
    assert len(frame) == (this - start).days + 1
    whole = lk.statement("near", period, progress=False)
    times = pd.to_datetime(
        [whole.facts.start.timestamp_ns, whole.facts.stop.timestamp_ns], utc=True
    )
    half_day = pd.Timedelta(12, "h")
    assert start - half_day <= times[0] < start
    assert this - half_day <= times[1] < this


@pytest.mark.parametrize("text", ["2026-13", "2026-1", "next month", "July"])
def test_what_is_no_period(text: str) -> None:
    """A malformed period is refused by the name of its argument and as it was written."""
    lk.connect("local")
    with pytest.raises(lk.errors.InvalidRequestError, match="start") as caught:
        lk.history("near", text)
    assert text in str(caught.value)


def test_without_a_spacing() -> None:
    """24 readings are spread evenly, both ends among them; of fewer blocks each is read once."""
    world = open_world("empty")
    world.advance(300)
    lk.connect(world=world)
    start = world.chain.genesis.height
    frame = lk.history("near", start, start + 230)
    assert frame["block_height"].tolist() == list(range(start, start + 231, 10))
    times = lk.history("near", "2026-08-01", "2026-08-01T00:00:46")
    assert len(times) == 24
    assert times["time"].iloc[-1] <= pd.Timestamp("2026-08-01T00:00:46", tz="UTC")
    assert len(lk.history("near", start, start + 5)) == 6
    assert lk.history("near", start, start)["block_height"].tolist() == [start]


# Tokens and stakes ----------------------------------------------------------------------


def test_a_token_balance_that_changes() -> None:
    """Each transfer shows from its block on; unknown contracts and broken ones are told so."""
    world = open_world("demo")
    lk.connect(world=world)
    before = world.chain.head
    for amount in ("1000", "234"):
        args = {"receiver_id": "bob.near", "amount": amount}
        act(world, "alice.near", "gold.near", call("ft_transfer", 1, **args))
    last = world.chain.head
    world.advance(4)
    named = ["gold.near", "torn.near", "dave.near", "nowhere.near"]
    frame = lk.history(
        "alice.near", before.height, last.height, every=1, views="ft", contracts=named
    )
    held = world_balance(world, before, "alice.near")
    gold = frame[frame["contract_id"] == "gold.near"]["balance"]
    assert gold.drop_duplicates().tolist() == [held, held - 1000, held - 1234]
    blocks = [world.chain.by_height(h) for h in range(before.height, last.height + 1)]
    assert gold.tolist() == [world_balance(world, one, "alice.near") for one in blocks if one]
    words = {"gold.near": "ok", "torn.near": "broken"}
    words |= dict.fromkeys(["dave.near", "nowhere.near"], "no_contract")
    assert frame["contract_id"].tolist() == named * len(blocks)
    assert frame["status"].tolist() == [words[name] for name in frame["contract_id"]]
    assert frame[frame["status"] != "ok"]["balance"].isna().all()
    assert frame.groupby("block_height")["block_hash"].nunique().eq(1).all()


def world_balance(world: World, block: Any, account_id: str) -> int:
    """Ask the token behind the client's back."""
    args = json.dumps({"account_id": account_id}).encode()
    return int(json.loads(world.view("gold.near", "ft_balance_of", args, block).result))


def test_a_stake_that_grows_with_epochs() -> None:
    """A pool's rewards show from the block in which it was told to share them out."""
    world = open_world("demo", epoch_length=20)
    lk.connect(world=world)
    start = world.chain.head.height
    pings = []
    for _ in range(4):
        world.advance(20)
        pings.append(act(world, "carol.near", "north.poolv1.near", call("ping")).height)
    world.advance(4)
    pools = ["north.poolv1.near", "gold.near"]
    frame = lk.history("bob.near", start, "final", every=1, views=["staking"], pools=pools)
    north = frame[frame["contract_id"] == "north.poolv1.near"]
    staked = dict(rows(north, "block_height", "staked"))
    changed = [height for height in staked if staked[height] != staked.get(height - 1)]
    assert len(set(staked.values())) == 4 + 1
    assert changed[0] == start
    assert all(low <= ping for low, ping in zip(changed[1:], pings, strict=True))
    assert list(staked.values()) == sorted(staked.values())
    now = lk.staking("bob.near", positions=True).set_index("pool_id")
    assert list(staked.values())[-1] == now.loc["north.poolv1.near", "staked"]
    assert north["balance"].isna().all()
    assert set(north["unstaked"]) == {0}
    assert set(frame[frame["contract_id"] == "gold.near"]["status"]) == {"not_a_pool"}


def test_all_views_of_a_block_are_read_at_its_hash() -> None:
    """Without names the indexer tells the contracts; every row is of one block's hash."""
    way = counted(open_world("demo"))
    frame = lk.history(
        "alice.near", 180000010, 180000040, every=30, views=("staking", "accounts", "ft"),
        contracts=None,
    )  # fmt: skip
    pools = ["east.poolv1.near", "north.poolv1.near"]
    tokens = lk.ft("alice.near")["contract_id"].tolist()
    assert rows(frame, "view", "contract_id") == 2 * [
        *[("staking", pool) for pool in pools],
        ("accounts", None),
        *[("ft", token) for token in tokens],
    ]
    asked = [one["params"].get("block_id") for one in way.asked if one["method"] == "query"]
    assert set(asked) == set(frame["block_hash"])
    assert len(asked) == len(frame)
    assert frame.attrs["network"] == "lab"
    assert frame.attrs["source"] == (
        "view call get_account, query view_account, view call ft_balance_of"
    )


def test_nothing_held_is_no_row() -> None:
    """An account without tokens has an empty frame of the same dtypes."""
    lk.connect("local")
    frame, failed = lk.history("dave.near", "genesis", "final", views="staking", on_error="collect")
    assert len(frame) == len(failed) == 0
    assert frame.columns.tolist() == lk.schema("history")["name"].tolist()
    full = lk.history("dave.near", "genesis", "final")
    assert full.dtypes.astype(str).tolist() == frame.dtypes.astype(str).tolist()


def test_no_contracts_are_no_rows() -> None:
    """An empty list of contracts or pools asks for none; only None is the list of the indexer."""
    lk.connect("local")
    options: dict[str, Any] = {"contracts": [], "pools": [], "views": ["ft", "staking"]}
    frame = lk.history("alice.near", 180000010, 180000010, every=1, **options)
    assert len(frame) == 0
    assert frame.dtypes.equals(lk.history("alice.near", 180000010, 180000010, every=1).dtypes)
    options["views"] = ["ft", "accounts"]
    frame = lk.history("alice.near", 180000010, 180000010, every=1, **options)
    assert frame["view"].tolist() == ["accounts"]


# Requests -------------------------------------------------------------------------------


def test_few_requests() -> None:
    """A hundred times of three thousand blocks ask two blocks each, and again nothing."""
    world = open_world("empty")
    world.advance(3000)
    way = counted(world)
    stop = time_of(world.chain.final)
    frame = lk.history("near", "2026-08-01", stop, every="18s", progress=False)
    assert len(frame) == 100 + 1
    assert way.methods["query"] == len(frame)
    assert way.methods["block"] <= 2 * len(frame) + 2
    way.asked.clear()
    pd.testing.assert_frame_equal(
        lk.history("near", "2026-08-01", stop, every="18s", progress=False), frame
    )
    assert way.methods["query"] == 0
    assert way.methods["block"] <= 1  # whether there is a newer one


# Failures -------------------------------------------------------------------------------


def forgetful() -> World:
    """Open a world that keeps the last epochs only, and let it forget."""
    world = open_world("empty", archival=False, epoch_length=20, epochs_kept=2)
    world.advance(200)
    assert world.chain.earliest.height > world.chain.genesis.height + 100
    return world


def test_a_block_that_the_host_has_dropped() -> None:
    """A range that begins before what a host keeps is an error that names the way out."""
    world = forgetful()
    lk.connect(world=world)
    start = world.chain.genesis.height + 100
    for ends in ((start, "final"), ("2026-08-01T00:01:00", "2026-08-01T00:02:00")):
        with pytest.raises(errors.UnknownBlockError) as caught:
            lk.history("near", *ends)
        assert "archival_rpc_url=" in caught.value.remedy


def test_a_state_that_the_host_has_dropped() -> None:
    """A block whose header is here and whose state is not says which address to give."""
    world = forgetful()
    genesis = world.chain.genesis
    lk.connect(world=world)
    with pytest.raises(errors.GarbageCollectedBlockError) as caught:
        lk.history("near", str(genesis.hash), str(genesis.hash), every=1)
    assert "archival_rpc_url=" in caught.value.remedy
    assert str(genesis.height) in str(caught.value)


def test_failures_are_collected() -> None:
    """The readings that could be made are kept; each other one is listed with its reason."""
    world = forgetful()
    lk.connect(world=world)
    genesis, final = world.chain.genesis.height, world.chain.final.height
    frame, failed = lk.history("near", genesis, final, every=(final - genesis) // 2,
                               on_error="collect")  # fmt: skip
    middle = genesis + (final - genesis) // 2
    last = genesis + 2 * ((final - genesis) // 2)
    assert frame["block_height"].tolist() == [last]
    assert rows(failed, "subject", "error") == [
        (f"near at block {middle}", "UnknownBlockError"),
        (f"near at block {genesis}", "GarbageCollectedBlockError"),
    ]
    by_time, lost = lk.history(
        "near", "2026-08-01T00:01:00", time_of(world.chain.final), every="1min", on_error="collect"
    )
    assert lost["subject"].tolist() == ["near at 2026-08-01T00:01:00+00:00"]
    assert len(by_time) == 1


def test_the_archival_host_is_asked() -> None:
    """What one host has dropped the archival one tells, block and state."""
    old, kept = forgetful(), open_world("empty", epoch_length=20, epochs_kept=2)
    kept.advance(200)
    ways = {"near.test": LocalTransport(old), "archive.test": LocalTransport(kept)}

    class Both(httpx.BaseTransport):
        """Two hosts of one chain."""

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            """Ask the host that is named."""
            return ways[request.url.host].handle_request(request)

    lk.connect(
        "lab",
        transport=Both(),
        rpc_url="http://near.test",
        archival_rpc_url="http://archive.test",
    )
    frame = lk.history("near", "genesis", "final", every=50)
    assert frame["status"].tolist() == ["ok"] * 5
    assert frame["block_height"].tolist() == [180_000_000 + 50 * n for n in range(5)]


def test_a_host_that_fails() -> None:
    """An outage is raised, or is the failure of the readings it hit, never a status."""
    ledger = lk.connect("local", world="empty", retries=lk.RetryPolicy(attempts=1))
    lk.history("near", "genesis", "final", every=1)
    ledger.world.advance(2)
    ledger.faults.add("status=500; times=100")
    with pytest.raises(errors.TransportError):
        lk.history("near", "genesis", "final", every=1)


def test_a_time_before_the_chain() -> None:
    """A start before the first block is refused as such, whatever happens to failures."""
    lk.connect("local", world="empty")
    for on_error in ("raise", "collect"):
        with pytest.raises(errors.InvalidRequestError) as caught:
            UNTYPED.history("near", "2020-01-01", "2026-08-02", on_error=on_error)
        assert caught.value.field == "start"
        assert "'2020-01-01'" in str(caught.value)
        assert "first block" in str(caught.value)


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"every": 0}, "every", "from 1 to"),
    ({"every": -5}, "every", "from 1 to"),
    ({"every": True}, "every", "a number of heights"),
    ({"every": 1.5}, "every", "a number of heights"),
    ({"every": "abc"}, "every", "a duration"),
    ({"every": "10"}, "every", "a duration"),
    ({"every": ""}, "every", "a duration"),
    ({"every": "-1D"}, "every", "a duration"),
    ({"every": "0h"}, "every", "a duration"),
    ({"every": pd.NaT}, "every", "a number of heights"),
    ({"every": 1, "stop": 10**9}, "every", "10,000 readings"),
    ({"every": "1s", "start": "2026-08-01", "stop": "2026-09-01"}, "every", "10,000 readings"),
    ({"every": pd.DateOffset(seconds=1), "start": "2026-08-01", "stop": "2999-09-01"},
     "every", "10,000 readings"),
    ({"every": 1, "stop": 6000, "views": ("accounts", "ft"), "contracts": ["a.near"]},
     "every", "2 at each point"),
    ({"start": 200, "stop": 100}, "stop", "not before start"),
    ({"start": "2026-08-02", "stop": "2026-08-01"}, "stop", "not before start"),
    ({"start": "yesterday"}, "start", "a height"),
    ({"stop": 1.5}, "stop", "a height"),
    ({"views": ()}, "views", "at least one"),
    ({"views": "nft"}, "views", "accounts, ft, staking"),
    ({"views": 7}, "views", "accounts, ft, staking"),
    ({"views": [["ft"]]}, "views", "accounts, ft, staking"),
    ({"contracts": ["gold.near"]}, "contracts", '"ft" among views'),
    ({"pools": "p.near", "views": "ft"}, "pools", '"staking" among views'),
    ({"contracts": ["G"], "views": "ft"}, "contracts", "a-z, 0-9"),
    ({"account_id": "A"}, "account_id", "a-z, 0-9"),
    ({"on_error": "colect"}, "on_error", "raise, collect"),
]  # fmt: skip


def test_refused_before_sending(subtests: pytest.Subtests) -> None:
    """A malformed argument is refused by name and rule, and nothing is sent."""
    for given, field, rule in REFUSED:
        with subtests.test(given=given):
            way = counted(open_world("empty"))
            options: dict[str, Any] = {"account_id": "near", "start": 0, "stop": 100} | given
            ends = options.pop("account_id"), options.pop("start"), options.pop("stop")
            with pytest.raises(errors.InvalidRequestError) as caught:
                UNTYPED.history(*ends, **options)
            assert caught.value.field == field
            assert rule in str(caught.value)
            assert not way.asked


def test_refused_after_the_ends_were_looked_up() -> None:
    """Ends that had to be located are held to the same rules."""
    ledger = lk.connect("local", world="empty")
    head = ledger.world.chain.head.height
    with pytest.raises(errors.InvalidRequestError, match="not before start"):
        lk.history("near", "final", head - 3, every=1)
    with pytest.raises(errors.InvalidRequestError, match="10,000 readings"):
        lk.history("near", "genesis", "2099-01-01", every="1min")


class Dropping(LocalTransport):
    """The way to a world, whose node has dropped the block of one height."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Ask for a block far above the head in its place: the node does not have that either."""
        request.read()
        body = request.content.replace(b"180000030", b"999999999")
        headers = {k: v for k, v in request.headers.items() if k != "content-length"}
        changed = httpx.Request(request.method, request.url, headers=headers, content=body)
        return super().handle_request(changed)


def test_a_dropped_block_is_not_read_as_the_one_below() -> None:
    """The next block follows on it, so the chain did not skip its height."""
    # Source: nearcore, core/primitives/src/block_header.rs: `prev_height` and `prev_hash`.
    with lk.connect("local", transport=Dropping(open_world("demo")), make_default=False) as ledger:
        below, dropped, above = ledger.locate_many([180_000_029, 180_000_030, 180_000_031])
    assert [point.height for point in (below, above)] == [180_000_029, 180_000_031]  # type: ignore[union-attr]  # blocks
    assert isinstance(dropped, errors.UnknownBlockError)
    assert "archival_rpc_url=" in dropped.remedy
