"""Lockup contracts of both kinds: what they hold, stake, and let their owner spend."""

from __future__ import annotations

import base64
import hashlib
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import base58
import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import errors
from tests.local_transport import LocalTransport
from tests.loopback import Reply, as_json, failure, result, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

NEAR = 10**24
YEAR_NS = 365 * 86_400 * 10**9
PERSON, POOL = "maria.near", "north.poolv1.near"
HASH = hashlib.sha256(PERSON.encode()).hexdigest()[:40]
LOCKUP, VENEAR_LOCKUP = f"{HASH}.lockup.near", f"{HASH}.venear.dao"
SELECTED = "get_staking_pool_account_id"
AMOUNTS = ("balance", "deposited", "locked", "pending", "unvested", "liquid")


def rows(frame: Any, *columns: str) -> list[tuple[Any, ...]]:
    """List the values of columns by row, missing ones as None."""
    objects = frame[list(columns)].astype(object)
    return list(objects.where(objects.notna(), None).itertuples(index=False, name=None))


class Mainnet:
    """A mainnet of a few view methods: their JSON by contract and method; others are missing."""

    def __init__(self, **views: dict[str, Any]) -> None:
        self.views = {name.replace("__", "."): methods for name, methods in views.items()}
        self.rest: dict[str, Any] = {}
        self.called: list[tuple[str, str, Any]] = []

    def __call__(self, method: str, path: str, _headers: object, body: bytes) -> Reply:
        """Answer one request."""
        if method == "GET":
            self.called.append(("GET", path, None))
            account_id = path.split("/")[3]
            listed = {"account_id": account_id, "pools": [], "tokens": [], "nfts": []}
            state = {"balance": "1", "locked": "0", "storage_bytes": 100}
            return as_json(listed | {"state": state} | self.rest.get(account_id, {}))
        request = json.loads(body)
        if request["method"] == "block":
            return result(BLOCK)
        params = request["params"]
        contract_id, name = params["account_id"], params["method_name"]
        args = json.loads(base64.b64decode(params["args_base64"]) or b"{}")
        self.called.append((contract_id, name, args))
        methods = self.views.get(contract_id)
        if methods is None:
            return failure("UNKNOWN_ACCOUNT", {"requested_account_id": contract_id, **PLACE})
        value = methods.get(name, NO_METHOD)
        if isinstance(value, Reply):
            return value
        if isinstance(value, dict) and "error" in value:
            error = f"wasm execution failed with error: {value['error']}"
            return result({"error": error, "logs": [], **PLACE})
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        return result({"result": list(data), "logs": [], **PLACE})


BLOCK_HASH = base58.b58encode(bytes(range(32))).decode()
PLACE = {"block_height": 7, "block_hash": BLOCK_HASH}
BLOCK = {
    "author": "v.near",
    "chunks": [],
    "header": {
        **dict.fromkeys(("hash", "prev_hash", "epoch_id", "last_final_block"), BLOCK_HASH),
        "height": 7,
        "chunks_included": 0,
        "gas_price": "100000000",
        "total_supply": "1",
        "timestamp": 1,
        "timestamp_nanosec": "1",
        "latest_protocol_version": 80,
        "chunk_mask": [],
    },
}
NO_METHOD = {"error": "MethodResolveError(MethodNotFound)"}
NO_CODE = {"error": f'CompilationError(CodeDoesNotExist {{ account_id: "{LOCKUP}" }})'}


@contextmanager
def mainnet(handler: Mainnet) -> Iterator[lk.Ledger]:
    """Connect to mainnet, at another address."""
    retries = lk.RetryPolicy(attempts=1, total_s=20.0)
    with (
        serve(handler) as server,
        lk.connect(
            "mainnet", rpc_url=server.url, api_url=server.url, retries=retries, make_default=False
        ) as ledger,
    ):
        yield ledger


def lockup(vesting: Any = "None", **changed: Any) -> dict[str, Any]:
    """Invent the view methods of a contract below lockup.near."""
    return {
        SELECTED: POOL,
        "get_balance": str(500 * NEAR),
        "get_known_deposited_balance": str(300 * NEAR),
        "get_locked_amount": str(2**128 - 1),
        "get_liquid_owners_balance": "7",
        "get_vesting_information": vesting,
        "get_unvested_amount": str(40 * NEAR),
        "are_transfers_enabled": True,
        **changed,
    }


def venear(**changed: Any) -> dict[str, Any]:
    """Invent the view methods of a contract of House of Stake."""
    return {
        SELECTED: None,
        "get_balance": "100",
        "get_known_deposited_balance": "0",
        "get_venear_locked_balance": "60",
        "get_venear_pending_balance": "0",
        "get_venear_liquid_balance": "40",
        "get_liquid_owners_balance": "98",
        "get_venear_unlock_timestamp": "1700000000000000001",
        **changed,
    }


def read(views: dict[str, Any], contract_id: str = LOCKUP) -> Any:
    """Return the row of one contract of the person."""
    with mainnet(Mainnet(**{contract_id.replace(".", "__"): views})) as ledger:
        frame = lk.lockups(PERSON, ledger=ledger)
    return frame[frame["lockup_id"] == contract_id].iloc[0]


# The contracts' statements ---------------------------------------------------------------


def test_an_account_without_lockups_costs_two_requests() -> None:
    """There is none: a status, no amounts, and no more requests than one for each kind."""
    handler = Mainnet()
    with mainnet(handler) as ledger:
        frame = lk.lockups(PERSON, ledger=ledger)
    assert rows(frame, "source", "lockup_id", "status", *AMOUNTS) == [
        ("lockup", LOCKUP, "no_account", *[None] * 6),
        ("venear", VENEAR_LOCKUP, "no_account", *[None] * 6),
    ]
    called = sorted((contract_id, name) for contract_id, name, _ in handler.called)
    assert called == [(LOCKUP, SELECTED), (VENEAR_LOCKUP, SELECTED)]
    assert frame.attrs["block_height"] == 7


SCHEDULE = {
    "start_timestamp": "1600000000000000000",
    "cliff_timestamp": "1631536000000000000",
    "end_timestamp": "1726144000000000001",
}


def test_vesting_is_what_the_contract_says() -> None:
    """A public schedule is sent back for what has not vested; a private one stays unknown.

    Source: near/core-contracts, lockup/src/types.rs (VestingInformation) and getters.rs.
    """
    ending = {"Terminating": {"unvested_amount": "9", "status": "UnstakingInProgress"}}
    told = {
        "VestingSchedule": ({"VestingSchedule": SCHEDULE}, 40 * NEAR),
        "VestingHash": ({"VestingHash": "aGFzaA=="}, None),
        "Terminating": (ending, 9),
        "None": ("None", 0),
        "Later": ({"Later": [1]}, None),
    }
    for kind, (vesting, unvested) in told.items():
        row = read(lockup(vesting))
        values = (row["vesting"], row["status"], row["staking_pool_id"])
        assert values == (kind, "ok", POOL)
        assert row["unvested"] == unvested if unvested is not None else row["unvested"] is pd.NA
        liquid = 0 if kind == "Terminating" else 7
        assert (row["balance"], row["locked"], row["liquid"]) == (500 * NEAR, 2**128 - 1, liquid)
    row = read(lockup({"VestingSchedule": SCHEDULE}))
    assert row["vesting_end"].value == 1726144000000000001
    assert row["vesting_cliff"].isoformat() == "2021-09-13T12:26:40+00:00"


def test_without_transfers_nothing_is_liquid() -> None:
    """The contract refuses transfers before they are enabled, whatever it states as liquid.

    Source: near/core-contracts, lockup/src/owner.rs (transfer).
    """
    for enabled, liquid, status in ((False, [0], "ok"), (NO_METHOD, [pd.NA], "broken")):
        row = read(lockup(are_transfers_enabled=enabled))
        assert ([row["liquid"]], row["status"]) == (liquid, status)


def test_the_schedule_is_the_argument() -> None:
    """The contract takes the schedule that it stated, as texts of nanoseconds."""
    handler = Mainnet(**{LOCKUP.replace(".", "__"): lockup({"VestingSchedule": SCHEDULE})})
    with mainnet(handler) as ledger:
        lk.lockups(PERSON, ledger=ledger)
    sent = [args for _, name, args in handler.called if name == "get_unvested_amount"]
    assert sent == [{"vesting_schedule": SCHEDULE}]


def test_what_is_locked_for_venear_is_not_liquid() -> None:
    """A transfer needs both limits, so the lower one can be spent.

    Source: houseofstake/house-of-stake-contracts, lockup-contract/src/owner.rs (transfer).
    """
    row = read(venear(), VENEAR_LOCKUP)
    assert (row["locked"], row["pending"], row["liquid"], row["status"]) == (60, 0, 40, "ok")
    assert row["unlock_time"] is pd.NaT  # the time of an earlier unlocking
    staked = read(venear(get_liquid_owners_balance="5"), VENEAR_LOCKUP)
    assert staked["liquid"] == 5
    unlocking = read(venear(get_venear_pending_balance="1"), VENEAR_LOCKUP)
    assert unlocking["unlock_time"].value == 1700000000000000001


@pytest.mark.parametrize(
    ("changed", "missing"),
    [
        ({"get_balance": "lots"}, "balance"),
        ({"get_balance": -1}, "balance"),
        ({"get_balance": str(2**128)}, "balance"),
        ({"get_locked_amount": None}, "locked"),
        ({"get_locked_amount": b"\xff"}, "locked"),
        ({"get_liquid_owners_balance": NO_METHOD}, "liquid"),
        ({"get_vesting_information": NO_METHOD}, "vesting"),
        ({"get_vesting_information": {}}, "vesting_end"),
        (
            {
                "get_vesting_information": {
                    "VestingSchedule": SCHEDULE | {"end_timestamp": "9" * 20}
                }
            },
            "vesting_end",
        ),
        ({"get_vesting_information": {"VestingSchedule": ["1", "2"]}}, "vesting"),
        ({"get_vesting_information": {"Terminating": {}}}, "unvested"),
    ],
)
def test_a_hostile_contract_states_nothing(changed: dict[str, Any], missing: str) -> None:
    """What is no amount or no time is missing, never 0, and the status says so."""
    row = read(lockup(**changed))
    assert row["status"] == "broken"
    assert row[[missing]].isna().all()
    others = {"balance": 500 * NEAR, "deposited": 300 * NEAR}
    assert all(row[name] == value for name, value in others.items() if name != missing)


@pytest.mark.parametrize(
    ("selected", "status"),
    [
        (NO_METHOD, "broken"),
        (NO_CODE, "no_contract"),
        (7, "broken"),
        ("<b>not an account</b>", "broken"),
    ],
)
def test_a_contract_that_its_owner_replaced(selected: Any, status: str) -> None:
    """After the last release an owner can deploy anything: there is a status, and no amount."""
    row = read(lockup(**{SELECTED: selected}))
    assert row["status"] == status
    assert row[list(AMOUNTS)].isna().all()


def test_a_lockup_that_could_not_be_read() -> None:
    """Not reaching a contract is a failure, never an absent one."""
    for method in (SELECTED, "get_locked_amount"):
        views = {LOCKUP.replace(".", "__"): lockup(**{method: Reply(500)})}
        with mainnet(Mainnet(**views)) as ledger:
            frame, failures = lk.lockups(PERSON, on_error="collect", ledger=ledger)
            with pytest.raises(errors.TransportError):
                lk.lockups(PERSON, ledger=ledger)
        assert frame["source"].tolist() == ["venear"]
        assert failures["subject"].tolist() == [f"{PERSON} in {LOCKUP}"]


def test_a_node_that_answers_something_else_is_a_failure() -> None:
    """What a node sends instead of a result is no statement of the contract."""
    other = result({"result": "no bytes", **PLACE})
    views = {LOCKUP.replace(".", "__"): lockup(get_balance=other)}
    with mainnet(Mainnet(**views)) as ledger:
        frame, failures = lk.lockups(PERSON, on_error="collect", ledger=ledger)
    assert frame["source"].tolist() == ["venear"]
    assert failures["subject"].tolist() == [f"{PERSON} in {LOCKUP}"]
    assert failures["error"].tolist() == ["DecodeError"]


def test_lockups_are_not_known_on_testnet() -> None:
    """The verb is refused before anything is sent."""
    with pytest.raises(errors.InvalidRequestError, match="testnet"):
        lk.lockups("a.testnet", ledger=lk.connect("testnet", make_default=False))


# All stake of a person -------------------------------------------------------------------


def with_stakes() -> Mainnet:
    """Invent a person with stakes of every kind; nothing of the lockups is indexed."""

    def positions(**staked: int) -> dict[str, Any]:
        return {
            "staked_balance": str(sum(staked.values())),
            "unstaked_balance": "0",
            "can_withdraw": True,
        }

    handler = Mainnet(
        **{
            LOCKUP.replace(".", "__"): lockup(),
            VENEAR_LOCKUP.replace(".", "__"): venear(**{SELECTED: "linear-protocol.near"}),
            POOL.replace(".", "__"): {"get_account": positions(pool=5)},
            "linear-protocol__near": {
                "get_account": positions(liquid=6),
                "ft_price": str(3 * NEAR // 2),
            },
            "meta-pool__near": {"get_st_near_price": "free"},
        }
    )
    tokens = [
        {"contract_id": "linear-protocol.near", "balance": "101"},
        {"contract_id": "meta-pool.near", "balance": "8"},
        {"contract_id": "lst.rhealab.near", "balance": None},
        {"contract_id": "v2-nearx.stader-labs.near", "balance": "0"},
        {"contract_id": "usdt.near", "balance": "1"},
    ]
    handler.rest[PERSON] = {"tokens": tokens, "pools": [{"pool_id": POOL}]}
    handler.rest[LOCKUP] = {"pools": [{"pool_id": "gone.poolv1.near"}]}
    return handler


def test_all_stakes_of_a_person_have_a_source() -> None:
    """Pools, both lockups and liquid tokens are rows; a token without a rate has no worth."""
    with mainnet(with_stakes()) as ledger:
        frame = lk.staking([PERSON, "bob.near"], positions=True, progress=False, ledger=ledger)
    assert rows(frame, "pool_id", "source", "staked", "tokens", "status") == [
        (POOL, "indexed", 5, None, "ok"),
        ("gone.poolv1.near", "lockup", None, None, "not_a_pool"),
        (POOL, "lockup", 5, None, "ok"),
        ("linear-protocol.near", "venear", 6, None, "ok"),
        ("linear-protocol.near", "liquid", 151, 101, "ok"),  # 101 * 1.5, rounded down
        ("meta-pool.near", "liquid", None, 8, "no_rate"),
        ("lst.rhealab.near", "liquid", None, None, "pending"),
    ]
    assert set(frame["account_id"]) == {PERSON}


def test_a_liquid_token_that_is_read_as_a_pool_counts_once() -> None:
    """LiNEAR's `get_account` is the worth of the tokens; that of a lockup's tokens is its own.

    Source: linear-protocol/LiNEAR, contracts/linear/src/view.rs.
    """
    token = "linear-protocol.near"
    with mainnet(with_stakes()) as ledger:
        frame = lk.staking(PERSON, pools=[token], progress=False, ledger=ledger)
    linear = frame[frame["pool_id"] == token]
    assert rows(linear, "source", "staked") == [("asked", 6), ("venear", 6)]
    handler = with_stakes()
    handler.views[token]["get_account"]["staked_balance"] = "0"  # it knows nothing of tokens
    with mainnet(handler) as ledger:
        frame = lk.staking(PERSON, pools=[token], progress=False, ledger=ledger)
    linear = frame[frame["pool_id"] == token]
    assert rows(linear, "source", "staked") == [("asked", 0), ("venear", 0), ("liquid", 151)]


@pytest.mark.parametrize(("selected", "status"), [(NO_METHOD, "broken"), (NO_CODE, "no_contract")])
def test_stakes_of_a_lockup_that_names_no_pool(selected: Any, status: str) -> None:
    """What the indexer lists is read, and a note says that there may be more."""
    handler = with_stakes()
    handler.views[LOCKUP][SELECTED] = selected
    with mainnet(handler) as ledger:
        frame = lk.staking(PERSON, positions=True, progress=False, ledger=ledger)
        classes = lk.exposure(PERSON, lockups=True, ledger=ledger)
    assert frame["pool_id"][frame["source"] == "lockup"].tolist() == ["gone.poolv1.near"]
    reason = "a pool that only its contract knows is not read"
    note = f"the lockup of {PERSON}, {LOCKUP}, has the status {status}: {reason}"
    assert frame.attrs["notes"] == classes.attrs["notes"] == [note]


def test_an_account_without_any_stake_costs_three_requests() -> None:
    """One request to the indexer, and one for each kind of lockup contract."""
    handler = Mainnet()
    with mainnet(handler) as ledger:
        frame = lk.staking(PERSON, positions=True, ledger=ledger)
    assert len(frame) == 0
    called = sorted((contract_id, name) for contract_id, name, _ in handler.called)
    full = ("GET", f"/v1/account/{PERSON}/full")
    assert called == [(LOCKUP, SELECTED), (VENEAR_LOCKUP, SELECTED), full]


def test_a_rate_that_could_not_be_read() -> None:
    """Without an answer there is no row, but a failure; a worth beyond u128 is no worth."""
    handler = with_stakes()
    handler.views["linear-protocol.near"]["ft_price"] = Reply(500)
    handler.views["meta-pool.near"]["get_st_near_price"] = str(2**128 - 1)
    handler.rest[PERSON]["tokens"][1]["balance"] = str(2**128 - 1)
    with mainnet(handler) as ledger:
        frame, failures = lk.staking(
            PERSON, positions=True, on_error="collect", progress=False, ledger=ledger
        )
    liquid = frame[frame["source"] == "liquid"]
    assert rows(liquid, "pool_id", "staked", "status") == [
        ("meta-pool.near", None, "no_rate"),
        ("lst.rhealab.near", None, "pending"),
    ]
    assert failures["subject"].tolist() == [f"{PERSON} in linear-protocol.near"]


def test_exposure_names_its_sources() -> None:
    """The sources that count are listed, and with `nonzero` only those with an amount."""
    handler = with_stakes()
    handler.views[POOL]["get_account"]["staked_balance"] = "0"
    handler.rest[LOCKUP] = {}
    with mainnet(handler) as ledger:
        frame = lk.exposure(PERSON, lockups=True, ledger=ledger)
        owning = lk.exposure(PERSON, lockups=True, nonzero=True, ledger=ledger)
        plain = lk.exposure(PERSON, ledger=ledger)
    assert frame["sources"].tolist() == [["indexed", "lockup", "venear", "liquid"]]
    assert frame["direct_pools"].tolist() == [[POOL, "linear-protocol.near"]]
    assert owning["sources"].tolist() == [["venear", "liquid"]]
    assert owning["direct_pools"].tolist() == [["linear-protocol.near"]]
    assert "sources" not in plain


def test_a_lockup_that_could_not_be_read_hides_nothing_else() -> None:
    """The panel of an account lists the error, leaves the exposure unknown, and shows the rest."""
    handler = with_stakes()
    handler.views[LOCKUP][SELECTED] = Reply(500)
    with mainnet(handler) as ledger:
        panel = lk.widgets.AccountExplorer(PERSON, ledger=ledger).press()
    assert panel.error is None
    assert panel.frames["staking"]["source"].unique().tolist() == ["indexed", "venear", "liquid"]
    assert panel.frames["errors"]["subject"].tolist() == [PERSON, f"{PERSON} in {LOCKUP}"]
    assert ">unknown</strong>" in panel.static()


def test_staking_on_testnet_says_what_is_left_out() -> None:
    """Lockup contracts are not read there, which is a note and not an absence."""
    handler = Mainnet()
    with serve(handler) as server:
        ledger = lk.connect("testnet", rpc_url=server.url, api_url=server.url, make_default=False)
        frame = lk.staking("a.testnet", positions=True, ledger=ledger)
    assert frame.attrs["notes"] == [
        "lockup contracts of the kind lockup are not known on testnet",
        "lockup contracts of the kind venear are not known on testnet",
    ]
    assert [name for contract_id, name, _ in handler.called if contract_id != "GET"] == []


def test_a_network_without_a_preset_has_no_known_house_of_stake() -> None:
    """On an own node, what is not known is a note; on mainnet there is none."""
    handler = Mainnet(**{LOCKUP.replace(".", "__"): lockup()})
    with serve(handler) as server:
        ledger = lk.connect("own", rpc_url=server.url, api_url=server.url, make_default=False)
        frame = lk.lockups(PERSON, ledger=ledger)
    assert frame["source"].tolist() == ["lockup"]
    note = "lockup contracts of the kind venear are not known on own"
    assert frame.attrs["notes"] == [note]
    with mainnet(handler) as ledger:
        assert "notes" not in lk.lockups(PERSON, ledger=ledger).attrs


# A person of the embedded ledger ---------------------------------------------------------


@pytest.fixture
def person() -> Iterator[Any]:
    """Open the person's world, a year and some blocks later."""
    with lk.connect("local", world="person") as ledger:
        lk.use_signer(PERSON, ledger.world.keys()[PERSON])
        yield ledger


def test_vesting_is_linear(person: Any) -> None:
    """Of 400 NEAR over four years, what is left of the time is left to vest.

    Source: near/core-contracts, lockup/src/getters.rs (get_unvested_amount, get_locked_amount,
    get_liquid_owners_balance) and lib.rs (MIN_BALANCE_FOR_STORAGE).
    """
    for skip in (0, 20_000_000, 200_000_000):  # blocks of 0.6 seconds
        person.world.advance(3, skip=skip)
        frame = lk.lockups(PERSON)
        row = frame.iloc[0]
        now_ns = lk.block(frame.attrs["block_height"])["time"].iloc[0].value
        end_ns = 1_785_542_400 * 10**9 + 2 * YEAR_NS
        unvested = 400 * NEAR * max(end_ns - now_ns, 0) // (4 * YEAR_NS)
        assert row["vesting_end"].value == end_ns
        assert (row["unvested"], row["locked"]) == (unvested, unvested)
        assert row["deposited"] == 300 * NEAR
        own = row["balance"] - 300 * NEAR
        expected = min(row["balance"] - unvested, own - 35 * NEAR // 10)
        assert row["liquid"] == expected
    assert unvested == 0


@pytest.mark.usefixtures("person")
@pytest.mark.parametrize("source", ["lockup", "venear"])
def test_liquid_is_what_can_be_spent(source: str) -> None:
    """The whole amount can be transferred, and one NEAR more cannot."""
    frame: Any = lk.lockups(PERSON).set_index("source")
    lockup_id, liquid = frame.loc[source, "lockup_id"], int(frame.loc[source, "liquid"])
    deposit = "1 yocto" if source == "venear" else "0 yocto"

    def transfer(amount: int) -> str:
        args = {"amount": str(amount), "receiver_id": "friend.near"}
        sent = lk.call(lockup_id, "transfer", args, deposit=deposit, wait_until="FINAL")
        return lk.trace(sent.tx_hash, PERSON).verdict

    assert (source, liquid > NEAR) == (source, True)
    # The contract's account earns a part of the gas that is burnt there.
    assert transfer(liquid + NEAR) == "failed"
    assert transfer(liquid) == "fully_succeeded"


def test_a_fork_of_mainnet_has_its_lockups(person: Any) -> None:
    """A fork knows the contract of House of Stake, and reads both kinds from its network."""
    expected = rows(lk.lockups(PERSON), "source", "lockup_id", *AMOUNTS)
    transport = LocalTransport(person.world)
    with (
        lk.connect("mainnet", transport=transport, make_default=False) as network,
        lk.connect("local", fork=network, make_default=False) as fork,
    ):
        assert rows(lk.lockups(PERSON, ledger=fork), "source", "lockup_id", *AMOUNTS) == expected


def test_the_rewards_of_both_lockups_count(person: Any) -> None:
    """A statement has the rewards of each contract, beside its owner's, in proportion."""
    for _ in range(3):
        person.world.advance(2, skip=43_200)
        lk.call(POOL, "ping", wait_until="FINAL")
    statement = lk.statement(PERSON, "genesis")
    earned = statement.rewards.groupby("account_id")["reward"].sum()
    assert set(earned.index) == {PERSON, LOCKUP, VENEAR_LOCKUP}
    # Stakes of 100, 300 and 25 NEAR at the same prices of a share; a pool rounds each.
    assert abs(earned[LOCKUP] - 3 * earned[PERSON]) < 10
    assert abs(4 * earned[VENEAR_LOCKUP] - earned[PERSON]) < 20
    assert earned[PERSON] > NEAR // 100
    total = lk.staking(PERSON, positions=True).set_index("source")["staked"]
    assert total["lockup"] == 300 * NEAR + earned[LOCKUP]
    assert total["venear"] == 25 * NEAR + earned[VENEAR_LOCKUP]


def test_venear_grows_in_one_gap(person: Any) -> None:
    """Voting power grows every second: one gap has all of it, and the search ends there.

    Source: houseofstake/house-of-stake-contracts, common/src/venear.rs; the rate is that of
    voteagora/near-deployment-guides, MAINNET.md.
    """
    person.world.advance(300)
    statement = lk.statement(PERSON, "genesis")
    assert rows(statement.gaps, "asset", "note") == [
        ("nep141:venear.dao", "veNEAR grows every second, without events")
    ]
    entries = statement.entries[statement.entries["asset"] == "nep141:venear.dao"]
    times = [time.value // 10**9 for time in entries["time"]]
    stop_s = lk.block(int(statement.gaps["stop_height"].iloc[0]))["time"].iloc[0].value // 10**9
    # 0.1 NEAR is locked by the registration, then 50 more, then 10 less. The event of a change
    # has the growth since the last one; unlocking drops all that had grown.
    first, last = (
        12_860_000_000_000 * 10**9 * seconds * milli * 10**21 // 10**30
        for seconds, milli in ((times[1] - times[0], 100), (stop_s - times[2], 40_100))
    )
    assert entries["change"].tolist() == [NEAR // 10, 50 * NEAR + first, -10 * NEAR - first]
    assert statement.gaps["missing"].tolist() == [last]


@pytest.mark.usefixtures("person")
def test_votes_are_no_tokens_in_tax_files(tmp_path: Any) -> None:
    """The NEAR of a new lockup is sent, and buys no veNEAR; nothing else mentions the votes."""
    with pytest.warns(UserWarning, match="1 gap"):
        path = lk.statement(PERSON).to_csv(tmp_path / "koinly.csv", format="koinly")
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert "VENEAR" not in {*table["Sent Currency"], *table["Received Currency"]}
    created = table[table["Description"].str.contains("deploy_lockup")]
    assert created["Sent Amount"].tolist()[0] == "2.1"
    assert set(created["Received Amount"]) == {""}
