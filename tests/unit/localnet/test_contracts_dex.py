"""The exchange, the two creators of accounts, the counter, the shapes of promises, the receiver."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.localnet import contract_sdk
from ledgerkit.localnet.chain_types import Outcome
from ledgerkit.localnet.contracts.counter import Counter
from ledgerkit.localnet.contracts.dex import Dex, Pool
from ledgerkit.localnet.contracts.factory import Factory, TopLevelAccount
from ledgerkit.localnet.contracts.fungible_token import FungibleToken
from ledgerkit.localnet.contracts.promises import PromisePatterns
from ledgerkit.localnet.contracts.token_receiver import TokenReceiver
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.protocol import DeployContract, PublicKey
from tests.unit.localnet.contracts import CALLER_KEY, CallResult, ContractChain, ContractHarness

TGAS = 10**12
NEAR = 10**24
KEY = "ed25519:6E8sCci9badyRkXb3JoRpBj5p8C6Tw41ELDZoiihKEtp"


# The exchange ----------------------------------------------------------------------------

A, B, C = "a.near", "b.near", "c.near"


def deposit(dex: ContractHarness, token_id: str, amount: int, by: str = "olga.near") -> CallResult:
    """Deposit tokens, as their contract does by `ft_on_transfer`."""
    return dex.call("ft_on_transfer", token_id, sender_id=by, amount=str(amount), msg="")


def transfer_of(amount: int) -> tuple[str, bytes, int, int]:
    """Return the call that sends tokens to bob: method, arguments, gas and deposit."""
    args = b'{"receiver_id":"bob.near","amount":"%d"}' % amount
    return "ft_transfer", args, 6 * TGAS, 1


def swap(*actions: dict[str, Any]) -> str:
    return contract_sdk.to_json({"actions": actions}).decode()


def hop(pool_id: int, token_in: str, token_out: str, least: int = 0) -> dict[str, Any]:
    return {
        "pool_id": pool_id,
        "token_in": token_in,
        "token_out": token_out,
        "min_amount_out": str(least),
    }


@pytest.fixture
def dex() -> ContractHarness:
    """An exchange with a million of A against two million of B, and a pool of B and C."""
    pools = [{A: 1_000_000, B: 2_000_000}, {B: 100_000, C: 100_000}]
    return ContractHarness(Dex, "dex.near", Dex.genesis("olga.near", pools))


def test_swaps_in_a_row(dex):
    """Each swap of a message goes on with what the one before gave."""
    msg = swap(hop(0, A, B), hop(1, B, C))
    done = dex.call("ft_on_transfer", A, sender_id="bob.near", amount="10000", msg=msg)
    # 19_743 * 9970 = 196_837_710; * 100_000 // (100_000 * 10_000 + 196_837_710) = 16_446
    assert done.logs == [
        "Swapped 10000 a.near for 19743 b.near",
        "Swapped 19743 b.near for 16446 c.near",
    ]
    assert done.calls[0] == (C, *transfer_of(16446))


@pytest.mark.parametrize(
    ("msg", "message"),
    [
        ("swap!", "The message is not understood"),
        ("{}", "The message is not understood"),
        ('{"actions":[]}', "The message is not understood"),
        (swap(hop(0, A, B) | {"min_amount_out": "-1"}), "The message is not understood"),
        (swap(hop(0, A, B) | {"min_amount_out": 5}), "The message is not understood"),
        ("[" * 100_000, "The message is not understood"),
        (swap(hop(7, A, B)), "There is no pool 7"),
        (swap(hop(0, A, C)), "Pool 0 does not trade a.near for c.near"),
        (swap(hop(0, A, A)), "Pool 0 does not trade a.near for a.near"),
        (swap(hop(0, B, A)), "a.near is not the token to swap"),
        (swap(hop(0, A, B), hop(0, A, B)), "b.near is not the token to swap"),
        (swap(hop(0, A, B, 20_000)), "Slippage: 19743 is less than the least amount 20000"),
    ],
    ids=range(12),
)
def test_swaps_refused(dex, msg, message):
    """What can't be swapped as asked panics, so that the token gives it back."""
    before = dex.records()
    args = {"sender_id": "bob.near", "amount": "10000", "msg": msg}
    assert dex.panic_message("ft_on_transfer", A, **args) == message
    assert dex.records() == before


def test_swap_for_nothing(dex):
    """An amount too small to give anything is refused."""
    args = {"sender_id": "bob.near", "amount": "0", "msg": swap(hop(0, A, B))}
    assert dex.panic_message("ft_on_transfer", A, **args) == "The amount is too small to swap"


@given(
    amounts=st.tuples(st.integers(1, 2**100), st.integers(1, 2**100)),
    amount=st.integers(0, 2**100),
)
def test_product_never_falls(amounts, amount):
    """Whatever is swapped, the product of a pool's sides does not fall and no side is emptied."""
    out = Pool([A, B], list(amounts)).quote(A, amount, B)
    assert out is not None
    assert out < amounts[1]
    assert (amounts[0] + amount) * (amounts[1] - out) >= amounts[0] * amounts[1]


def test_paused(dex):
    """While paused it takes nothing in; deposits can be withdrawn; the owner resumes it."""
    deposit(dex, A, 5, by="bob.near")
    assert dex.call("pause", "olga.near").logs == ["Paused"]
    assert dex.view("is_paused") is True
    for msg in ("", swap(hop(0, A, B))):
        args = {"sender_id": "bob.near", "amount": "10000", "msg": msg}
        assert dex.panic_message("ft_on_transfer", A, **args) == "the contract is paused"
    dex.call("withdraw", "bob.near", deposit=1, token_id=A, amount="5")
    assert dex.call("resume", "olga.near").logs == ["Resumed"]
    assert dex.view("is_paused") is False
    assert deposit(dex, A, 5).value == "0"


@pytest.mark.parametrize("method_name", ["pause", "resume"])
def test_owner_only(dex, method_name):
    """Nobody but the owner pauses or resumes."""
    assert dex.panic_message(method_name, "bob.near") == "Only the owner may do this"


def test_deposit_and_withdraw(dex):
    """A deposit is kept until it is withdrawn, and kept again where sending it fails."""
    done = deposit(dex, C, 70, by="bob.near")
    assert (done.value, done.logs) == ("0", ["Deposited 70 c.near for bob.near"])
    done = dex.call("withdraw", "bob.near", deposit=1, token_id=C, amount="30")
    assert done.calls[0] == (C, *transfer_of(30))
    assert done.value.drafts == [done.drafts[1]]  # the callback returns the result
    assert dex.view("get_deposits", account_id="bob.near") == {C: "40"}
    callback_args = {"account_id": "bob.near", "token_id": C, "amount": "30"}
    sent = dex.call("on_sent", "dex.near", results=(b"",), **callback_args)
    assert (sent.value, sent.logs) == (True, [])
    assert dex.view("get_deposits", account_id="bob.near") == {C: "40"}
    failed = dex.call("on_sent", "dex.near", results=(None,), **callback_args)
    assert failed.value is False
    assert failed.logs == ["Could not send 30 c.near to bob.near: it is deposited"]
    assert dex.view("get_deposits", account_id="bob.near") == {C: "70"}


def test_withdrawn_whole(dex):
    """Nothing is stored of a deposit that is used up."""
    before = dex.records()
    deposit(dex, C, 70, by="bob.near")
    dex.call("withdraw", "bob.near", deposit=1, token_id=C, amount="70")
    assert dex.records() == before
    assert dex.view("get_deposits", account_id="bob.near") == {}


def test_withdraw_refused(dex):
    """A withdrawal takes one yoctoNEAR, a positive amount, and no more than there is."""
    deposit(dex, C, 70, by="bob.near")
    args = {"token_id": C, "amount": "71"}
    assert (
        dex.panic_message("withdraw", "bob.near", **args)
        == "Requires attached deposit of exactly 1 yoctoNEAR"
    )
    assert (
        dex.panic_message("withdraw", "bob.near", deposit=1, **args)
        == "bob.near has not deposited enough c.near"
    )
    assert (
        dex.panic_message("withdraw", "bob.near", deposit=1, token_id=C, amount="0")
        == "The amount should be a positive number"
    )


def test_amounts_are_bounded(dex):
    """An amount beyond 128 bits is refused, and crashes nothing."""
    deposit(dex, "eve.near", 2**128 - 1, by="eve.near")
    args = {"sender_id": "eve.near", "amount": "1", "msg": ""}
    assert dex.panic_message("ft_on_transfer", "eve.near", **args) == "An amount exceeds 128 bits"


# Creating accounts -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        {"new_account_id": "Bob", "new_public_key": KEY},
        {"new_account_id": "bob.near", "new_public_key": "ed25519:1"},
        {"new_account_id": "bob.near"},
    ],
    ids=["id", "key", "missing"],
)
def test_naming_bad_arguments(args):
    """An id or a key that is none is refused as any bad argument is."""
    message = ContractHarness(TopLevelAccount, "near").panic_message("create_account", **args)
    assert message == "Failed to deserialize input from JSON."


def test_factory_kinds():
    """The factory makes tokens of both kinds and counters, and nothing else."""
    site = ContractHarness(Factory, "make.near")
    codes = set()
    for kind in ("counter", "ft", "nft"):
        done = site.call("create", deposit=NEAR, name="one", kind=kind, args={})
        deployed = done.drafts[0].actions[3]
        assert isinstance(deployed, DeployContract)
        codes.add(deployed.code)
    assert len(codes) == 3
    message = site.panic_message("create", name="one", kind="bank", args={})
    assert message == "There is no contract of kind bank"


# The counter -----------------------------------------------------------------------------


def test_counter_counts():
    """The counter counts from 0, by 1 or more, up and down, and tells the number in its logs."""
    counter = ContractHarness(Counter, "counter.near")
    assert counter.call("increment").logs == ["Increased number to 1"]
    assert counter.call("increment", by=41).logs == ["Increased number to 42"]
    assert counter.call("decrement", by=50).logs == ["Decreased number to -8"]
    assert counter.view("get_num") == -8
    assert counter.call("reset").logs == ["Reset counter to zero"]
    assert counter.view("get_num") == 0


def test_counter_begins_elsewhere():
    """`new` begins at a number, once, and writes what the genesis writes."""
    counter = ContractHarness(Counter, "counter.near")
    assert counter.call("new", number=7).raw == b""
    assert counter.view("get_num") == 7
    assert counter.records() == dict(Counter.genesis(7)) == {b"STATE": b'{"number":7}'}
    assert counter.panic_message("new") == "The contract has already been initialized"


def test_counter_fails():
    """A failing call changes nothing and says why."""
    counter = ContractHarness(Counter, "counter.near", Counter.genesis(3))
    assert counter.panic_message("fail", message="no more") == "no more"
    assert counter.panic_message("fail") == "The counter was told to fail"
    assert counter.view("get_num") == 3


@pytest.mark.parametrize(
    ("method_name", "number"), [("increment", 2**63 - 1), ("decrement", -(2**63))]
)
def test_counter_bounds(method_name, number):
    """The number stays within 64 bits."""
    counter = ContractHarness(Counter, "counter.near", Counter.genesis(number))
    assert counter.panic_message(method_name) == "attempt to add with overflow"
    assert counter.panic_message(method_name, by=10**4000) == "attempt to add with overflow"
    assert counter.view("get_num") == number


# The receiver ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("behaviour", "msg", "answer"),
    [
        ({}, "take", b'"0"'),
        ({"unused": 400}, "take", b'"400"'),
        ({"unused": 400}, "return 7", b'"7"'),
        ({}, "return lots", b'"lots"'),
        ({"panics": "no thanks"}, "return 7", b'"7"'),
    ],
    ids=range(5),
)
def test_receiver_of_fungible(behaviour, msg, answer):
    """The message says what is returned, else what the contract was configured to."""
    site = ContractHarness(TokenReceiver, "bob.near", TokenReceiver.genesis(**behaviour))
    args = {"sender_id": "alice.near", "amount": "1000", "msg": msg}
    assert site.call("ft_on_transfer", "token.near", **args).raw == answer


@pytest.mark.parametrize(
    ("behaviour", "msg", "message"),
    [
        ({"panics": "no thanks"}, "take", "no thanks"),
        ({}, "panic no room", "no room"),
        ({"panics": "no thanks"}, "panic no room", "no room"),
    ],
    ids=range(3),
)
def test_receiver_panics(behaviour, msg, message):
    """A receiver panics where it was told to, by the message or before."""
    site = ContractHarness(TokenReceiver, "bob.near", TokenReceiver.genesis(**behaviour))
    args = {"sender_id": "alice.near", "amount": "1000", "msg": msg}
    assert site.panic_message("ft_on_transfer", "token.near", **args) == message
    token = {"sender_id": "a.near", "previous_owner_id": "a.near", "token_id": "1", "msg": msg}
    assert site.panic_message("nft_on_transfer", "nft.near", **token) == message


@pytest.mark.parametrize(
    ("unused", "msg", "answer"),
    [(0, "take", False), (1, "take", True), (0, "return true", True), (1, "return false", False)],
)
def test_receiver_of_single(unused, msg, answer):
    """A single token goes back where the message or the contract's state says so."""
    site = ContractHarness(TokenReceiver, "bob.near", TokenReceiver.genesis(unused))
    args = {"sender_id": "a.near", "previous_owner_id": "a.near", "token_id": "1", "msg": msg}
    assert site.call("nft_on_transfer", "nft.near", **args).value is answer


# On a chain ------------------------------------------------------------------------------


def chain_of(**contracts: tuple[type[contract_sdk.Contract], dict[bytes, bytes]]) -> ContractChain:
    """Build a chain with contracts, and alice and olga as callers."""
    genesis = Genesis()
    for name in ("alice.near", "olga.near"):
        genesis.account(name, 1000 * NEAR, keys=[CALLER_KEY.public_key])
    for name, (cls, records) in contracts.items():
        account_id = name.replace("_", ".")
        genesis.account(account_id, 100 * NEAR, contract=cls, records=records.items())
    return ContractChain(genesis)


def executions(outcomes: list[Outcome]) -> list[tuple[str, list[str]]]:
    """Return each outcome's executor and logs, without events."""
    return [
        (outcome.executor_id, [log for log in outcome.logs if not log.startswith("EVENT_JSON")])
        for outcome in outcomes
    ]


def test_naming_on_chain():
    """An account comes to be by a call of `near`; a second time the deposit comes back."""
    live = chain_of(near=(TopLevelAccount, {}))
    args = {"new_account_id": "bob.near", "new_public_key": KEY}
    done = live.run("near", "create_account", deposit=5 * NEAR, **args)
    assert live.result(done[0]) is True
    assert executions(done)[-1] == ("near", ["Created bob.near"])
    assert live.world.balance("bob.near") == 5 * NEAR
    key = PublicKey.from_text(KEY)
    assert live.world.state().access_key("bob.near", key.stored) is not None
    for deposit in (5 * NEAR, 0):
        before = live.balance("alice.near")
        done = live.run("near", "create_account", deposit=deposit, **args)
        message = f"Could not create bob.near: {deposit} yoctoNEAR go back to alice.near"
        assert live.result(done[0]) is False
        expected = [("near", []), ("bob.near", []), ("near", [message])]
        if deposit:
            expected += [("alice.near", [])]
        assert executions(done)[1:] == expected
        assert before - live.balance("alice.near") < NEAR // 100  # gas only


def test_a_creation_has_one_result():
    """The callback pays out for a creation only, never without its result."""
    args = {"new_account_id": "b.near", "predecessor_account_id": "a.near", "amount": "9"}
    near = ContractHarness(TopLevelAccount, "near")
    message = near.panic_message("on_account_created", "near", **args)
    assert message == "Contract expected a result on the callback"


@pytest.mark.parametrize(
    ("kind", "args", "method_name", "answer"),
    [
        ("counter", {"number": 5}, "get_num", 5),
        (
            "ft",
            {
                "owner_id": "alice.near",
                "total_supply": "77",
                "metadata": {"spec": "ft-1.0.0", "name": "N", "symbol": "S", "decimals": 0},
            },
            "ft_total_supply",
            "77",
        ),
        (
            "nft",
            {
                "owner_id": "alice.near",
                "metadata": {"spec": "nft-1.0.0", "name": "N", "symbol": "S"},
            },
            "nft_total_supply",
            "0",
        ),
    ],
    ids=["counter", "ft", "nft"],
)
def test_factory_on_chain(kind, args, method_name, answer):
    """What the factory made can be used at once, and belongs to who signed."""
    live = chain_of(make_near=(Factory, {}))
    done = live.run("make.near", "create", deposit=5 * NEAR, name="one", kind=kind, args=args)
    assert live.result(done[0]) is True
    assert executions(done)[-1] == ("make.near", ["Created one.make.near"])
    assert 0 < live.balance("one.make.near") - 5 * NEAR < NEAR // 1000  # its share of the gas
    assert live.view("one.make.near", method_name) == answer
    assert live.world.state().access_key("one.make.near", CALLER_KEY.public_key.packed) is not None


@pytest.mark.parametrize(
    ("name", "args"), [("one", {"number": "x"}), ("a.b", {})], ids=["new fails", "not a child"]
)
def test_factory_failure_on_chain(name, args):
    """Where a part fails nothing remains, the call succeeds with false, and the deposit is back."""
    live = chain_of(make_near=(Factory, {}))
    before = live.balance("alice.near")
    done = live.run("make.near", "create", deposit=5 * NEAR, name=name, kind="counter", args=args)
    assert live.result(done[0]) is False
    assert live.world.balance(f"{name}.make.near") is None
    assert before - live.balance("alice.near") < NEAR // 100
    assert live.balance("make.near") >= 100 * NEAR


@pytest.fixture
def patterns() -> ContractChain:
    """A contract that calls itself and others, and a counter."""
    return chain_of(async_near=(PromisePatterns, {}), counter_near=(Counter, {}))


PATTERNS: list[tuple[str, dict[str, Any], Any]] = [
    ("chain", {"depth": 2}, 2),
    ("chain", {"depth": 0, "made": 2}, 2),
    ("fan_out", {"width": 3}, [0, 1, 2]),
    ("fan_out", {"width": 0}, []),
    ("fan_out", {"width": 1, "receiver_id": "counter.near"}, [None]),
    ("fan_out", {"width": 128}, [*range(128)]),
    ("fan_out", {"width": 129}, 129),  # of which nobody waits
    ("join", {"receiver_ids": ["async.near", "counter.near"], "method_name": "get_num"}, [None, 0]),
    ("join", {"receiver_ids": ["async.near"], "method_name": "echo"}, [None]),
    ("swallow", {"receiver_id": "counter.near", "method_name": "fail"}, False),
    ("swallow", {"receiver_id": "async.near", "method_name": "echo"}, True),
    ("fail", {"message": "alone"}, "Smart contract panicked: alone"),
]


def test_patterns_of_promises(subtests, patterns):
    """Chains return the last result; joins return all in their order, null for what failed."""
    for method, args, result in PATTERNS:
        with subtests.test(method=method, args=args):
            done = patterns.run("async.near", method, gas=990, **args)
            assert patterns.result(done[0]) == result


def test_a_detached_failure(patterns):
    """A receipt that fails, and that nobody waits for, fails nothing else."""
    done = patterns.run("async.near", "detached_failure", message="alone")
    results = [patterns.result(outcome) for outcome in done]
    assert results == [None, None, "Smart contract panicked: alone"]


def test_wait_and_resume(patterns):
    """A call waits for data at an id it logs; whoever knows the id brings it, once."""
    done = patterns.run("async.near", "wait_for", what="a price")
    (log,) = done[1].logs
    start, _, data_id = log.rpartition(" ")
    assert start == "Waiting for a price at"

    def resume(data_id):
        outcomes = patterns.run("async.near", "resume", data_id=data_id, payload=7)
        return patterns.result(outcomes[0])

    assert resume("0OIl") == "Smart contract panicked: The data_id is not a hash"
    assert [resume(each) for each in ("1" * 32, data_id, data_id)] == [False, True, False]
    assert patterns.result(done[0]) == 7
    assert patterns.outcomes(done[0].id)[-1].logs == ("a price came",)


@pytest.fixture
def market() -> ContractChain:
    """An exchange of two tokens, of which Alice has a thousand each, and nobody else any."""
    holders = {"alice.near": 1000, "dex.near": 1_000_000, "olga.near": 0}
    token = dict(FungibleToken.genesis("olga.near", holders))
    pool = dict(Dex.genesis("olga.near", [{A: 1_000_000, B: 1_000_000}]))
    return chain_of(
        a_near=(FungibleToken, token), b_near=(FungibleToken, token), dex_near=(Dex, pool)
    )


def balances(live: ContractChain, account_id: str) -> tuple[str, str]:
    """Return an account's balances of the two tokens."""
    return tuple(live.view(token, "ft_balance_of", account_id=account_id) for token in (A, B))


def sell(
    live: ContractChain, least: int = 0, by: str = "alice.near", gas: int = 100
) -> list[Outcome]:
    """Swap 1000 of A for B."""
    args = {"receiver_id": "dex.near", "amount": "1000", "msg": swap(hop(0, A, B, least))}
    return live.run(A, "ft_transfer_call", by=by, deposit=1, gas=gas, **args)


@pytest.mark.parametrize("gas", [30, 100, 300])
def test_swap_on_chain(market, gas):
    """A swap moves both tokens, and the transaction's result is what was used."""
    done = sell(market, gas=gas)
    assert market.result(done[0]) == "1000"
    # 1000 * 9970 * 1_000_000 // (1_000_000 * 10_000 + 9_970_000) = 996
    assert executions(done)[1:] == [
        (A, []),
        ("dex.near", ["Swapped 1000 a.near for 996 b.near"]),
        (B, []),
        ("dex.near", []),
        (A, []),
    ]
    assert balances(market, "alice.near") == ("0", "1996")
    assert balances(market, "dex.near") == ("1001000", "999004")


def test_refunded_on_chain(market):
    """A swap that is refused, here for a pause or for slippage, leaves everything as it was."""
    market.run("dex.near", "pause", by="olga.near")
    done = sell(market)
    assert market.result(done[0]) == "0"
    assert market.result(done[2]) == "Smart contract panicked: the contract is paused"
    market.run("dex.near", "resume", by="olga.near")
    done = sell(market, least=997)
    assert market.result(done[0]) == "0"
    assert (
        market.result(done[2])
        == "Smart contract panicked: Slippage: 996 is less than the least amount 997"
    )
    assert balances(market, "alice.near") == ("1000", "1000")
    assert balances(market, "dex.near") == ("1000000", "1000000")


def test_unregistered_on_chain(market):
    """What can't be sent, because its receiver is not registered, is deposited for them."""
    market.run(B, "storage_unregister", deposit=1, force=True)
    done = sell(market)
    assert market.result(done[0]) == "1000"
    assert market.view("dex.near", "get_deposits", account_id="alice.near") == {B: "996"}
    market.run(B, "storage_deposit", deposit=NEAR)
    done = market.run("dex.near", "withdraw", deposit=1, token_id=B, amount="996")
    assert market.result(done[0]) is True
    assert balances(market, "alice.near") == ("0", "996")
    assert market.view("dex.near", "get_deposits", account_id="alice.near") == {}
