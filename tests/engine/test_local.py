"""`connect("local")`: verbs, third-party httpx clients and faults over the embedded ledger."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.cli import main
from ledgerkit.localnet.contract_sdk import Contract, call, view
from ledgerkit.localnet.promises import Promise  # noqa: TC001 - annotations are read when it runs
from ledgerkit.localnet.world import WorldSummary
from ledgerkit.localnet.worlds import open_world
from ledgerkit.protocol import (
    AccessKey,
    AddKey,
    CryptoHash,
    SecretKey,
    SignedTransaction,
    Transaction,
    Transfer,
)
from ledgerkit.transport import embedded
from tests.unit.localnet.ledger import Ledger as LocalAccounts
from tests.unit.localnet.ledger import public

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World

pytestmark = pytest.mark.usefixtures("no_session_left")

ROOT = Path(__file__).resolve().parents[2]
ONE_TRY = lk.RetryPolicy(attempts=1, total_s=20)
UNTYPED: Any = lk  # as whoever calls it without a type checker
IMPLICIT = "a" * 64
OWNED = 10**33  # what `near` has in the empty world
UNCHOSEN = (
    "connect() was not called: using the embedded ledger (world demo). "
    'Use connect("mainnet") to read from the public network.'
)
UNKNOWN = (
    "the embedded ledger (world empty) has no account root.near. "
    'Use connect("mainnet") to read from the public network.'
)


@pytest.fixture
def _demo_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open the empty world in every other's place: a test of which one is asked for."""
    monkeypatch.setattr(embedded, "open_world", lambda _, **__: open_world("empty"))


def paying(world: World, nonce: int = 1) -> SignedTransaction:
    """Sign a payment of 5 yoctoNEAR to an account that does not exist yet."""
    told = next(one.secret_key for one in world.summary.accounts if one.account_id == "near")
    key = SecretKey.from_text(told or "")
    head = world.chain.head.hash
    return Transaction("near", key.public_key, nonce, IMPLICIT, head, [Transfer(5)]).sign(key)


# Verbs ----------------------------------------------------------------------------------


def test_an_account_over_both_surfaces() -> None:
    """The indexer and the chain tell the same balance, exact."""
    lk.connect("local", world="empty")
    frame = lk.accounts("near")
    assert frame[["status", "balance", "locked"]].to_numpy().tolist() == [["ok", OWNED, 0]]
    pinned = lk.accounts("near", at="final")
    assert pinned["balance"].tolist() == [OWNED]
    assert frame.attrs["network"] == "local"
    assert lk.keys("near")["permission"].tolist() == ["FullAccess"]
    assert lk.status()["chain_id"].tolist() == ["localnet"]


def test_all_keys_of_an_account() -> None:
    """More keys than a node sends at once are read; the refusal of a whole list says how."""
    made = LocalAccounts("a.near")
    for start in (0, 65):
        keys = [public(f"key {number}") for number in range(start, start + 65)]
        made.run("a.near", "a.near", *[AddKey(key, AccessKey(0)) for key in keys])
    ledger = lk.connect(world=made.world)
    assert len(lk.keys("a.near", at="optimistic")) == 131
    params = {"request_type": "view_access_key_list", "account_id": "a.near"}
    with pytest.raises(errors.TooManyAccessKeysError, match=r"Read them with keys\(\)") as caught:
        ledger.rpc("query", params | {"finality": "optimistic"})
    assert (caught.value.account_id, caught.value.limit) == ("a.near", 100)


def test_a_transaction_completes_while_it_is_awaited() -> None:
    """No time passes of itself; what waits for blocks gets them."""
    ledger = lk.connect("local", world="empty")
    world = ledger.world
    start = world.chain.head.height
    lk.block()
    assert world.chain.head.height == start
    sent = ledger.rpc(
        "send_tx", {"signed_tx_base64": paying(world).to_base64(), "wait_until": "FINAL"}
    )
    assert sent["final_execution_status"] == "FINAL"
    assert sent["status"] == {"SuccessValue": ""}
    assert start + 3 <= world.chain.head.height <= start + 10
    assert world.balance(IMPLICIT) == 5
    trace = lk.trace(sent["transaction"]["hash"], "near")
    assert trace.verdict == "fully_succeeded"


class Talker(Contract):
    """A contract that says in which thread it runs, and counts its calls."""

    def _say(self) -> str:
        print("running")  # noqa: T201 - the caller is to see it
        return threading.current_thread().name

    @view
    def look(self) -> str:
        """Say where it runs."""
        return self._say()

    @view
    def count(self) -> int:
        return len(self.vm.storage_read(b"calls") or b"")

    @call
    def act(self) -> str:
        """Count the call, and press Ctrl-C if a test wants it."""
        self.vm.storage_write(b"calls", bytes(self.count() + 1))
        if interrupts:
            signal.raise_signal(interrupts.pop())
        return self._say()

    @call
    def act_twice(self) -> Promise:
        """Call itself, and be called back."""
        return (
            self.vm.promise("talker.near")
            .function_call("act", b"", weight=1)
            .then("talker.near")
            .function_call("act", b"", weight=1)
        )


interrupts: list[signal.Signals] = []  # outside of the contract, whose state is undone


def test_a_contract_runs_in_the_callers_thread(capsys: pytest.CaptureFixture[str]) -> None:
    """A single call runs a contract where a debugger and printed text are the caller's."""
    ledger = lk.connect("local", world="empty")
    ledger.world.deploy("talker.near", Talker)
    here = threading.current_thread().name
    assert lk.view("talker.near", "look") == here
    assert lk.call("talker.near", "act", signer_id="near").value == here
    assert capsys.readouterr().out == "running\nrunning\n"


@pytest.mark.parametrize("signer_id", ["near", "talker.near"])
@pytest.mark.parametrize(("method", "calls"), [("act", 1), ("act_twice", 2)])
def test_an_interrupted_call_runs_again(signer_id: str, method: str, calls: int) -> None:
    """Ctrl-C in a contract ends the verb, leaves nothing half done, and its call runs again."""
    world = lk.connect("local", world="empty").world
    world.deploy("talker.near", Talker)
    options: Any = {"signer_id": signer_id, "key": world.keys()["near"], "wait_until": "FINAL"}
    supply = world.total_supply() + world.burnt - world.minted
    interrupts.append(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as caught:
        lk.call("talker.near", method, **options)
    for done in range(calls):
        assert lk.view("talker.near", "count") == done
        assert world.is_busy
        assert world.total_supply() + world.burnt - world.minted == supply
        if done + 1 < calls:  # in the callback too
            interrupts.append(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                world.settle()
    command = re.search(r'lk\.track\("(\w+)", ', "".join(caught.value.__notes__))
    assert command is not None

    assert lk.track(command[1], signer_id, timeout_s=0).wait("FINAL").fully_succeeded
    assert lk.view("talker.near", "count") == calls
    assert world.total_supply() + world.burnt - world.minted == supply
    assert lk.transfer(IMPLICIT, "1 NEAR", **options).fully_succeeded


def test_an_open_world_is_shared() -> None:
    """A world may be opened first, and asked by several ledgers."""
    world = open_world("empty")
    one, other = lk.connect("local", world=world), lk.connect(world=world)
    assert one.world is other.world is world
    world.advance(4)
    assert (
        lk.block(ledger=one)["block_hash"].tolist() == lk.block(ledger=other)["block_hash"].tolist()
    )


THREADLESS = """
import sys, threading
import ledgerkit as lk
from ledgerkit.api import rest

def work(ledger):
    ids = [f"user{number:05}.near" for number in range(20)]
    lk.status(ledger=ledger)
    lk.ft(ids, ledger=ledger, on_error="collect", progress=False)
    list(ledger.stream((rest.ft(account_id) for account_id in ids), size=8))

with lk.connect("local", world="empty", record=sys.argv[1]) as ledger:
    work(ledger)
    lk.transfer("near", "1 NEAR", signer_id="near")
with lk.connect(sys.argv[1]) as ledger:
    work(ledger)
assert threading.enumerate() == [threading.main_thread()], threading.enumerate()
"""


def test_no_thread_is_needed_in_process(tmp_path: Path) -> None:
    """The embedded ledger and a recording answer one, many and a stream without a thread."""
    command = [sys.executable, "-c", THREADLESS, str(tmp_path / "case.lk")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ended.returncode == 0, ended.stderr


def test_liquid_tokens_are_the_worlds() -> None:
    """Which tokens count as liquid stake is told by the world's contracts."""
    world = open_world("empty")
    assert lk.connect(world=world).network.liquid_tokens == ()
    world.summary = WorldSummary(contracts={"liquid": "st.near"})
    assert lk.connect(world=world).network.liquid_tokens == ("st.near",)
    world.summary = WorldSummary(contracts={"liquid": ["a.near", "b.near"]})
    assert lk.connect(world=world).network.liquid_tokens == ("a.near", "b.near")


# Which ledger ---------------------------------------------------------------------------


@pytest.mark.usefixtures("_demo_is_empty")
def test_without_a_choice_the_embedded_ledger_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """`connect()` needs no network; a verb before it says once who answers."""
    assert lk.connect().network.name == "local"
    lk.disconnect()
    with pytest.warns(UserWarning, match="was not called") as told:
        lk.block()
    assert [str(warning.message) for warning in told] == [UNCHOSEN]
    assert told[0].filename == __file__
    lk.block()
    lk.disconnect()
    monkeypatch.setenv("LEDGERKIT_NETWORK", "local")
    assert lk.connect().world.settings.chain_id == "localnet"


@pytest.mark.usefixtures("_demo_is_empty")
def test_an_environment_chooses_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network or an address of the environment is asked before the embedded ledger."""
    monkeypatch.setenv("LEDGERKIT_RPC_URL", "http://127.0.0.1:9")
    assert lk.connect().network.name == "custom"
    assert lk.connect(world="empty").world.balance("near") == OWNED
    monkeypatch.setenv("LEDGERKIT_NETWORK", "testnet")
    assert lk.connect().network.name == "testnet"
    assert lk.connect("local").network.name == "local"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"network": "mainnet", "world": "demo"}, "world"),
        ({"network": "local", "rpc_url": "http://127.0.0.1:9", "world": "demo"}, "world"),
        ({"network": "testnet", "size": 5}, "world"),
        ({"network": "local", "world": "no-such-world"}, "world"),
        ({"network": "local", "world": 7}, "world"),
        ({"network": "local", "world": "empty", "size": 5}, "size"),
    ],
)
def test_a_world_that_cannot_be(options: dict[str, Any], field: str) -> None:
    """A world is refused by name where it is unknown, or another network is asked."""
    with pytest.raises(errors.InvalidRequestError) as caught:
        UNTYPED.connect(**options)
    assert caught.value.field == field


def test_a_size_for_an_open_world() -> None:
    """What is open already is not made larger, or another one."""
    world = open_world("empty")
    for options in ({"size": 3}, {"seed": 3}):
        with pytest.raises(errors.InvalidRequestError) as caught:
            UNTYPED.connect(world=world, **options)
        assert caught.value.field == next(iter(options))


def test_no_world_elsewhere() -> None:
    """A public network has no world to reach into, and says how to get one."""
    ledger = lk.connect("testnet")
    for name in ("world", "faults"):
        with pytest.raises(errors.InvalidRequestError, match=f"has no {name}") as caught:
            getattr(ledger, name)
        assert 'connect("local")' in str(caught.value)


# Accounts that are not there ----------------------------------------------------------------


@pytest.mark.parametrize(
    "verb", ["accounts", "ft", "nft", "staking", "exposure", "snapshot", "top_holders"]
)
def test_an_unknown_account_warns(verb: str) -> None:
    """An empty frame of the embedded ledger is not mistaken for the public network's."""
    lk.connect("local", world="empty")
    more = {"liquid_tokens": ["st.near"]} if verb == "exposure" else {}
    with pytest.warns(UserWarning, match="has no account") as told:
        getattr(lk, verb)("root.near", **more)
    assert {str(warning.message) for warning in told} == {UNKNOWN}
    assert {warning.filename for warning in told} == {__file__}


def test_an_account_without_its_top_level_is_completed() -> None:
    """The warning of one unknown name and its error suggest the whole name."""
    lk.connect("local")
    with (
        pytest.warns(
            UserWarning, match=r"no account alice\. Did you mean 'alice\.near'\? Use conn"
        ),
        pytest.raises(errors.UnknownAccountError, match=r"\. Did you mean 'alice\.near'\? Check"),
    ):
        lk.keys("alice")


def test_several_unknown_accounts_are_one_warning() -> None:
    """The first ones are named, and the known ones are not."""
    lk.connect("local", world="empty")
    with pytest.warns(UserWarning, match="has no account") as told:
        lk.ft(["near", *(f"no{n}.near" for n in range(5)), "validator.near"], progress=False)
    assert len(told) == 1
    assert "has no account no0.near, no1.near, no2.near and 2 more." in str(told[0].message)


def test_known_accounts_and_other_ledgers_do_not_warn() -> None:
    """Only the embedded ledger knows who lives there."""
    empty = {"account_id": "root.near", "tokens": []}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lk.connect("local", world="empty")
        lk.ft("near")
        lk.accounts("near", at="final")
        lk.connect("lab", transport=httpx.MockTransport(lambda _: httpx.Response(200, json=empty)))
        assert lk.ft("root.near").empty


@pytest.mark.usefixtures("_demo_is_empty")
def test_the_command_line_says_who_answers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command without a network tells on stderr whom it asked, and who is not there."""
    monkeypatch.setattr(warnings, "filters", [])
    assert main(["ft", "root.near"]) == 3
    out, err = capsys.readouterr()
    assert out.startswith("no rows (account_id")
    unknown = UNKNOWN.replace("empty", "demo").replace('connect("mainnet")', "--network mainnet")
    assert err.splitlines()[:2] == [
        "ledgerkit: using the embedded ledger; --network mainnet reads from the public network",
        f"ledgerkit: {unknown}",
    ]
    assert err.splitlines()[2].startswith("ledgerkit: root.near: Account root.near does not exist")
    assert main(["account", "near", "--network", "local"]) == 0
    assert capsys.readouterr().err == ""


# Faults and keys --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("status=429; retry-after=3", errors.RateLimitedError, "Wait a minute, lower rate="),
        ("status=503", errors.TransportError, "HTTP 503"),
        ("html", errors.TransportError, "HTTP 502"),
        ("drop", errors.TransportError, "disconnected without sending"),
        ("truncate=20", errors.TransportError, "without sending complete message body"),
        ("latency=5", errors.TransportError, "no answer within 1 s"),
        ("status=401", errors.AuthError, "key"),
    ],
)
def test_each_fault_is_the_error_of_a_real_one(
    fault: str, kind: type[errors.LedgerError], words: str
) -> None:
    """What goes wrong on demand reaches the caller as it would from a real host."""
    ledger = lk.connect("local", world="empty", retries=ONE_TRY, timeout_s=1)
    ledger.faults.add(f"{fault}; times=1")
    with pytest.raises(kind) as caught:
        lk.gas_price()
    assert words in str(caught.value)
    assert getattr(caught.value, "retry_after", None) == (3.0 if "retry-after" in fault else None)
    assert len(lk.gas_price()) == 1  # the next one goes well


def test_a_client_gets_over_a_few_failures() -> None:
    """Reads are tried again, so two failures are not seen."""
    ledger = lk.connect("local", world="empty")
    ledger.faults.add("status=503; times=2")
    assert len(lk.gas_price()) == 1


def test_a_key_that_a_world_demands(monkeypatch: pytest.MonkeyPatch) -> None:
    """The right key opens the world; none and a wrong one do not; the environment's stays."""
    world = open_world("empty", api_keys=("PLANTED-key",))
    monkeypatch.setenv("LEDGERKIT_API_KEY", "PLANTED-key")
    for options in ({}, {"api_key": "wrong"}):
        with pytest.raises(errors.AuthError) as caught:
            lk.accounts("near", ledger=UNTYPED.connect(world=world, retries=ONE_TRY, **options))
        assert "PLANTED" not in str(caught.value)
        with pytest.raises(errors.AuthError, match="requires an API key"):
            lk.gas_price()
    for way in ("header", "query"):
        lk.disconnect()
        ledger = UNTYPED.connect(world=world, api_key="PLANTED-key", key_in=way)
        assert lk.accounts("near", ledger=ledger)["status"].tolist() == ["ok"]
        assert lk.gas_price(ledger=ledger)["gas_price"].tolist() == [100_000_000]


# Plain httpx ------------------------------------------------------------------------------

PRICE = {"jsonrpc": "2.0", "result": {"gas_price": "100000000"}, "id": 7}


def test_real_time_takes_its_time() -> None:
    """In a world of real time a request waits as long as the blocks take."""
    world = open_world("empty", real_time=True, block_time_ns=20_000_000)
    ledger = lk.connect(world=world)
    start, height = time.monotonic(), world.chain.head.height
    ledger.rpc("send_tx", {"signed_tx_base64": paying(world).to_base64(), "wait_until": "FINAL"})
    blocks = world.chain.head.height - height
    assert blocks >= 3
    assert time.monotonic() - start >= 0.02 * blocks


def test_a_client_times_out_over_several_blocks() -> None:
    """What a request waits for its blocks adds up to the client's limit."""
    world = open_world("empty", real_time=True, block_time_ns=40_000_000)
    ledger = lk.connect(world=world, retries=ONE_TRY, timeout_s=0.1)
    signed = {"signed_tx_base64": paying(world).to_base64(), "wait_until": "FINAL"}
    with pytest.raises(errors.TransportError, match=r"no answer within 0\.1 s"):
        ledger.rpc("send_tx", signed)


def test_a_transaction_that_nobody_knows() -> None:
    """A hash that nobody has seen makes no blocks, and is told as not observed."""
    ledger = lk.connect("local", world="empty", retries=ONE_TRY)
    before = ledger.world.chain.head.height
    with pytest.raises(errors.TransactionTimeoutError):
        ledger.rpc("tx", [str(CryptoHash(bytes(31) + b"\1")), "near"])
    assert ledger.world.chain.head.height == before
