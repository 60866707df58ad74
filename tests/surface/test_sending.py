"""Verbs that send: what they change, what they refuse, and what concurrency does to them."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.localnet import open_world
from ledgerkit.protocol import (
    AccessKey,
    AccountId,
    AddKey,
    CryptoHash,
    Delegate,
    DelegateAction,
    DeleteAccount,
    DeployGlobalContract,
    FunctionCall,
    FunctionCallPermission,
    GasKeyFullAccess,
    GasKeyFunctionCall,
    PublicKey,
    SecretKey,
    SignedTransaction,
    Stake,
    Transaction,
    Transfer,
    TransferToGasKey,
    UniversalStateInit,
    UniversalStateInitV1,
    universal_account_id,
)
from tests.local_transport import AsyncLocalTransport

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.localnet import World

pytestmark = pytest.mark.usefixtures("no_session_left")

NEAR = 10**24
ALICE: Any = {"signer_id": "alice.near"}
UNTYPED: Any = lk  # as whoever calls it without a type checker
KEY = SecretKey.from_seed_phrase(" ".join(["abandon"] * 11 + ["about"]))
OTHER = PublicKey("secp256k1", bytes(range(64)))
HASH = str(CryptoHash.of(b"a block"))


@pytest.fixture
def world() -> World:
    """Open the demo world as the session's ledger."""
    return lk.connect("local").world


def balance(world: World, account_id: str) -> int:
    """Tell what an account has at the head."""
    found = world.balance(account_id)
    assert found is not None
    return found


@contextmanager
def refused(name: str) -> Iterator[Any]:
    """Expect an error of the ledger, whose classes are named after its variants."""
    with pytest.raises(errors.LedgerError) as caught:
        yield caught
    assert type(caught.value).__name__ == name


def delegated() -> Delegate:
    """Sign a delegated transfer, without a ledger."""
    wanted = DelegateAction("a.near", "b.near", [Transfer(1)], 1, 9, KEY.public_key)
    return wanted.sign(KEY)


def nonce(sent: lk.types.Submission) -> int:
    """Tell the nonce of what was signed here."""
    assert sent.nonce is not None
    return sent.nonce


def burnt(sent: lk.types.Submission) -> int:
    """Sum the fees of a transaction, over all its outcomes."""
    params = {"tx_hash": sent.tx_hash, "sender_account_id": sent.signer_id, "wait_until": "FINAL"}
    result = sent.ledger.rpc("tx", params)
    outcomes = [result["transaction_outcome"], *result["receipts_outcome"]]
    return sum(int(one["outcome"]["tokens_burnt"]) for one in outcomes)


# What they change -----------------------------------------------------------------------


@pytest.mark.parametrize("via", ["send_tx", "broadcast_tx_async", "broadcast_tx_commit"])
def test_a_transfer(world, via):
    """The amount and the fee leave the signer, and the amount arrives, by every method."""
    alice, dave = balance(world, "alice.near"), balance(world, "dave.near")
    sent = lk.transfer("dave.near", "0.25 NEAR", **ALICE, via=via, wait_until="FINAL")
    assert sent.fully_succeeded is True
    assert balance(world, "dave.near") == dave + NEAR // 4
    assert balance(world, "alice.near") == alice - NEAR // 4 - burnt(sent)
    assert (sent.signer_id, sent.receiver_id) == ("alice.near", "dave.near")


def test_over_an_asynchronous_transport(world):
    """A transport that works on a loop sends as well."""
    before = balance(world, "dave.near")
    ledger = lk.connect("lab", transport=AsyncLocalTransport(world))
    alice = lk.signer("alice.near", world.keys()["alice.near"])
    sent = lk.transfer("dave.near", "3 yocto", key=alice, ledger=ledger)
    assert sent.fully_succeeded is True
    assert balance(world, "dave.near") == before + 3


def test_a_call_with_each_kind_of_arguments(world):
    """Arguments are a dict, bytes as they are, or none; gas and deposit have units."""
    for args in ({"by": 2}, b'{"by":2}'):
        lk.call("counter.near", "increment", args, gas="10 Tgas", **ALICE)
    lk.call("counter.near", "increment", **ALICE)
    assert lk.view("counter.near", "get_num", at="optimistic") == 42 + 2 + 2 + 1
    sent = lk.call("wrap.near", "near_deposit", deposit="2 NEAR", gas=10**13, **ALICE)
    assert sent.fully_succeeded is True
    held = lk.view("wrap.near", "ft_balance_of", {"account_id": "alice.near"}, at="optimistic")
    assert int(held) == 4_500_000 * 10**18
    assert sent.signed.transaction.actions[0].gas == 10**13
    assert world.transaction(CryptoHash(sent.tx_hash)) is not None


def test_keys_are_added_used_and_taken(world):
    """A full key signs anything, a limited one its contract's method, a deleted one nothing."""
    del world
    full, limited = KEY, SecretKey.generate()
    assert lk.add_key(full.public_key, **ALICE).fully_succeeded
    lk.add_key(
        str(limited.public_key),
        receiver_id="counter.near",
        method_names=["increment"],
        allowance="0.5 NEAR",
        **ALICE,
    )
    held = lk.keys("alice.near", at="optimistic").set_index("public_key")
    row = held.loc[str(limited.public_key)]
    assert (row["permission"], row["receiver_id"]) == ("FunctionCall", "counter.near")
    assert (row["method_names"], row["allowance"]) == (["increment"], NEAR // 2)
    assert lk.transfer("dave.near", "1 yocto", **ALICE, key=full).fully_succeeded
    assert lk.call("counter.near", "increment", **ALICE, key=limited).fully_succeeded
    with refused("MethodNameMismatchError"):
        lk.call("counter.near", "reset", **ALICE, key=limited)
    with refused("RequiresFullAccessError"):
        lk.transfer("dave.near", "1 yocto", **ALICE, key=limited)
    assert lk.delete_key(full.public_key, **ALICE, wait_until="FINAL").fully_succeeded
    with pytest.raises(errors.UnknownAccessKeyError):
        lk.transfer("dave.near", "1 yocto", **ALICE, key=full)


def test_accounts_are_created(world):
    """One below the signer's is made in a batch; one below `near` by its contract."""
    own = lk.create_account("sub.alice.near", public_key=KEY.public_key, balance="3 NEAR", **ALICE)
    assert own.fully_succeeded is True
    assert [action.name for action in own.signed.transaction.actions] == [
        "CreateAccount",
        "Transfer",
        "AddKey",
    ]
    assert balance(world, "sub.alice.near") == 3 * NEAR
    named = lk.create_account(
        "fresh.near", public_key=KEY.public_key, balance="2 NEAR", **ALICE, wait_until="FINAL"
    )
    assert named.fully_succeeded is True
    assert balance(world, "fresh.near") == 2 * NEAR
    assert lk.transfer("dave.near", "1 yocto", signer_id="fresh.near", key=KEY).fully_succeeded
    taken = lk.create_account("bob.near", public_key=KEY.public_key, balance="2 NEAR", **ALICE)
    assert taken.wait().fully_succeeded is False
    for name in ("a.bob.near", "top", "x.sub.alice.near"):
        with pytest.raises(errors.InvalidRequestError, match="new_account_id"):
            lk.create_account(name, public_key=KEY.public_key, balance=0, **ALICE)


def test_a_contract_is_deployed(world):
    """The signer's own account gets the code, and answers by it."""
    code = lk.contract_code("counter.near")
    lk.create_account("sub.alice.near", public_key=KEY.public_key, balance="9 NEAR", **ALICE)
    own: Any = {"signer_id": "sub.alice.near", "key": KEY}
    assert lk.deploy(code, account_id="sub.alice.near", **own).fully_succeeded
    assert lk.contract_code("sub.alice.near", at="optimistic") == code
    with pytest.raises(errors.InvalidRequestError, match=r"account_id 'bob\.near'"):
        lk.deploy(code, account_id="bob.near", **own)
    with pytest.raises(errors.InvalidRequestError, match="code"):
        UNTYPED.deploy("wasm", **own)
    del world


def test_a_batch_happens_as_a_whole(world):
    """Actions of one transaction all happen, or none, and the failing one is named."""
    before = balance(world, "dave.near")
    sent = lk.send("dave.near", [Transfer(1), Transfer(2), Transfer(4)], **ALICE)
    assert sent.fully_succeeded is True
    assert balance(world, "dave.near") == before + 7
    failing = [Transfer(1), AddKey(KEY.public_key)]
    failed = lk.send("dave.near", failing, **ALICE, wait_until="FINAL")
    assert (failed.stage, failed.fully_succeeded) == ("final", False)
    assert type(failed.failure).__name__ == "ActorNoPermissionError"
    assert failed.failure.index == 1
    assert balance(world, "dave.near") == before + 7


def test_a_delegated_action_is_relayed(world):
    """Kate, who has no NEAR, signs a transfer of tokens; the relayer sends it and pays."""
    args = {"receiver_id": "alice.near", "amount": "5"}
    call = FunctionCall("ft_transfer", json.dumps(args).encode(), 15 * 10**12, 1)
    before = lk.view("gold.near", "ft_balance_of", {"account_id": "alice.near"}, at="optimistic")
    kate = balance(world, "kate.near")
    wanted = lk.delegate("gold.near", [call], signer_id="kate.near")
    assert wanted.verify()
    assert wanted.delegate_action.max_block_height == world.chain.final.height + 1200
    sent = lk.relay(wanted, signer_id="relay.near", wait_until="FINAL")
    assert sent.fully_succeeded is True
    after = lk.view("gold.near", "ft_balance_of", {"account_id": "alice.near"})
    assert int(after) == int(before) + 5
    assert balance(world, "kate.near") == kate
    again = lk.relay(wanted, signer_id="relay.near", wait_until="FINAL")
    assert type(again.failure).__name__ == "DelegateActionInvalidNonceError"
    late = lk.delegate("gold.near", [call], signer_id="kate.near", max_block_height=1)
    expired = lk.relay(late, signer_id="relay.near", wait_until="FINAL")
    assert type(expired.failure).__name__ == "DelegateActionExpiredError"


@pytest.mark.parametrize("form", [bytes, lambda data: base64.b64encode(data).decode()])
def test_a_delegate_of_a_wallet_is_relayed(world, form):
    """A relayer takes the Borsh of a SignedDelegate, as bytes or base64."""
    signed = lk.delegate("dave.near", [Transfer(7)], signer_id="bob.near")
    # near/near-api-js, encodeSignedDelegate: without the tag of an action.
    before = balance(world, "dave.near")
    assert lk.relay(form(signed.encode()[1:]), **ALICE).fully_succeeded is True
    assert balance(world, "dave.near") == before + 7


def test_two_ledgers_at_once(world):
    """Each verb sends where it is told, and their nonces have nothing to do with each other."""
    other = lk.connect("local", seed=1)
    here, there = balance(world, "dave.near"), balance(other.world, "dave.near")
    mine = lk.connect(world=world)
    for amount in (1, 2):
        lk.transfer("dave.near", f"{amount} yocto", **ALICE, ledger=mine)
        lk.transfer("dave.near", f"{10 * amount} yocto", **ALICE, ledger=other)
    assert balance(world, "dave.near") == here + 3
    assert balance(other.world, "dave.near") == there + 30


# Nothing is changed ---------------------------------------------------------------------


def test_a_dry_run_sends_nothing(world):
    """It shows what would be signed, and what it would cost at most; no block comes of it."""
    head, alice = world.chain.head, balance(world, "alice.near")
    frame = lk.transfer("dave.near", "1 NEAR", **ALICE, dry_run=True)
    assert world.chain.head == head
    assert len(world.mempool) == 0
    row = frame.iloc[0]
    final = world.chain.final
    assert (row["signer_id"], row["receiver_id"], row["actions"]) == (
        "alice.near",
        "dave.near",
        "Transfer",
    )
    assert (row["deposit"], row["gas_attached"], row["block_hash"]) == (NEAR, 0, str(final.hash))
    assert row["expires_at_height"] == final.height + 86_400
    assert list(frame) == lk.schema("dry_run")["name"].tolist()

    sent = lk.transfer("dave.near", "1 NEAR", **ALICE, wait_until="INCLUDED")
    assert (sent.tx_hash, sent.nonce) == (row["tx_hash"], row["nonce"])
    assert row["size"] == sent.signed.wire_size
    # 2 x 223,182,562,500 gas, bought at 10^9 at most.
    assert row["cost_bound"] == NEAR + 446_365_125_000 * 10**9
    assert alice - row["cost_bound"] <= balance(world, "alice.near") < alice - NEAR


@pytest.mark.parametrize(
    ("receiver_id", "actions", "gas", "deposit"),
    [
        # By the published table of fees: sending the receipt, then executing it.
        ("dave.near", [Transfer(7)], 223_182_562_500 * 2, 7),
        ("ab" * 32, [Transfer(7)], 824_947_687_500 + 7_524_947_687_500, 7),
        ("c.near", [FunctionCall("ping", b"", 5)], 308_250_234_860 + 888_068_443_736 + 5, 0),
        (
            "alice.near",
            [AddKey(KEY.public_key, AccessKey(0, FunctionCallPermission(None, "c.near", ("m",))))],
            2 * 108_059_500_000 + 2 * 102_217_625_000 + 2 * 2 * 1_925_331,
            0,
        ),
    ],
)
def test_the_cost_bound_by_hand(receiver_id, actions, gas, deposit):
    """Fees are those of the published table, at the least price that gas is bought for."""
    lk.connect("local")
    row = lk.send(receiver_id, actions, **ALICE, dry_run=True).iloc[0]
    assert row["cost_bound"] == gas * 10**9 + deposit


def test_a_cost_that_is_not_told(world):
    """Where the node tells no fees, or not this action's, the bound is missing."""
    del world
    gas_key = AddKey(KEY.public_key, AccessKey(0, GasKeyFullAccess(0, 1)))
    for stranger in (DeployGlobalContract(b"code", "CodeHash"), gas_key):
        assert lk.send("alice.near", [stranger], **ALICE, dry_run=True)["cost_bound"].isna().all()
    ledger = connected(Node("testnet"))
    row = lk.transfer(
        "dave.near", "1 yocto", signer_id="alice.near", key=KEY, ledger=ledger, dry_run=True
    ).iloc[0]
    assert pd.isna(row["cost_bound"])
    final = lk.block(ledger=ledger)["block_height"].iloc[0]
    assert (row["nonce"], row["expires_at_height"]) == (6, final + 100)


def test_dry_runs_of_the_other_verbs(world):
    """Each verb shows what it would send."""
    made: Any = {**ALICE, "dry_run": True}
    wanted = lk.delegate("dave.near", [Transfer(5)], signer_id="bob.near")
    frames = [
        lk.call("counter.near", "increment", **made),
        lk.add_key(KEY.public_key, **made),
        lk.delete_key(KEY.public_key, **made),
        lk.create_account("a.alice.near", public_key=KEY.public_key, balance="1 yocto", **made),
        lk.deploy(lk.contract_code("counter.near"), **made),
        lk.relay(wanted, **made),
    ]
    assert [frame["actions"].iloc[0] for frame in frames] == [
        "FunctionCall",
        "AddKey",
        "DeleteKey",
        "CreateAccount+Transfer+AddKey",
        "DeployContract",
        "Delegate",
    ]
    assert frames[-1]["receiver_id"].tolist() == ["bob.near"]
    assert frames[-1]["deposit"].tolist() == [5]
    assert len({frame["nonce"].iloc[0] for frame in frames}) == 1
    assert len(world.mempool) == 0


NEW_KEY: Any = {"public_key": KEY.public_key, "dry_run": True, **ALICE}
BARE: list[tuple[str, Any]] = [
    ("deposit", lambda value: lk.call("gold.near", "m", deposit=value, dry_run=True, **ALICE)),
    ("balance", lambda value: lk.create_account("a.alice.near", balance=value, **NEW_KEY)),
    ("allowance", lambda value: lk.add_key(receiver_id="x.near", allowance=value, **NEW_KEY)),
]


@pytest.mark.parametrize(("field", "verb"), BARE, ids=[field for field, _ in BARE])
def test_a_small_integer_warns_of_both_readings(world, field, verb):
    """An integer from 1 to 10**15 - 1 stays yoctoNEAR, with one warning; text never warns."""
    del world
    for value in (5, 10**15 - 1, np.int64(5)):
        with pytest.warns(UserWarning, match="without a unit") as caught:
            bare = verb(value)
        [warning] = caught
        assert str(warning.message) == (
            f'{field} {value} without a unit is {value} yoctoNEAR: write "{value} NEAR" if you mean'
            f' NEAR, and "{value} yocto" if not'
        )
        assert warning.filename == __file__
        pd.testing.assert_frame_equal(bare, verb(f"{value} yocto"))
    for silent in (0, 10**15, "0 NEAR", "5 NEAR"):
        verb(silent)


def test_a_small_integer_of_gas_warns_too(world):
    """30 is a usual number of Tgas, and no call runs with less than 10**9 gas."""
    del world
    values: list[Any] = [30, 10**9 - 1, np.int64(30)]
    for value in values:
        with pytest.warns(UserWarning, match="without a unit") as caught:
            bare = lk.call("counter.near", "increment", gas=value, dry_run=True, **ALICE)
        [warning] = caught
        assert str(warning.message) == (
            f'gas {value} without a unit is {value} units of gas: write "{value} Tgas" if you mean'
            f' Tgas, and "{value} gas" if not'
        )
        assert bare["gas_attached"].tolist() == [value]
    for silent in (10**9, 30 * 10**12, "30 gas"):
        lk.call("counter.near", "increment", gas=silent, dry_run=True, **ALICE)


@pytest.mark.parametrize("amount", ["0.991 NEAR", "5000 NEAR"])
def test_a_dry_run_above_the_balance_says_so(amount):
    """What storage needs (1000 bytes, 0.01 NEAR) cannot be spent, as nodes check it."""
    ledger = connected(Node("testnet"))
    options: Any = {"signer_id": "alice.near", "key": KEY, "ledger": ledger, "dry_run": True}
    with pytest.warns(UserWarning, match="can spend") as caught:
        lk.transfer("dave.near", amount, **options)
    [warning] = caught
    assert str(warning.message) == (
        f"alice.near can spend 0.99 NEAR, and this transaction takes at least {amount} before "
        "refunds: the network would refuse it"
    )
    assert warning.filename == __file__
    lk.transfer("dave.near", "0.99 NEAR", **options)


def test_a_dry_run_counts_the_gas_that_the_account_pays(world):
    """An amount that leaves too little gas may be refused, a larger one would be."""
    cost = 446_365_125_000 * 10**9  # as in `test_a_dry_run_sends_nothing`
    spendable = balance(world, "alice.near")  # storage of up to 770 bytes is free
    lk.transfer("dave.near", f"{spendable - cost} yocto", **ALICE, dry_run=True)
    for amount, would in ((spendable - cost + 1, "may"), (spendable + 1, "would")):
        with pytest.warns(UserWarning, match=f"the network {would} refuse it"):
            lk.transfer("dave.near", f"{amount} yocto", **ALICE, dry_run=True)
    with refused("NotEnoughBalanceError"):
        lk.transfer("dave.near", f"{spendable + 1} yocto", **ALICE)


def test_a_dry_run_of_a_deletion_names_what_would_be_lost(world):
    """A beneficiary that does not exist, or is deleted itself, receives nothing; others do."""
    del world
    for beneficiary_id, exists in {
        "nobody.near": "nobody.near does not exist",
        "ab" * 32: f"{'ab' * 32} does not exist",  # what is left creates no account
        "alice.near": "alice.near then does not exist",
    }.items():
        with pytest.warns(UserWarning, match="would be lost|has no account") as caught:
            lk.send("alice.near", [DeleteAccount(beneficiary_id)], **ALICE, dry_run=True)
        assert str(caught[-1].message) == (  # before it, the embedded ledger speaks of itself
            f"what is left of 12340.675470645764809599999996 NEAR of alice.near would be lost,"
            f" because {exists}"
        )
    lk.send("alice.near", [DeleteAccount("bob.near")], **ALICE, dry_run=True)
    # Only an account itself can delete it: the network would refuse this.
    lk.send("bob.near", [DeleteAccount("nobody.near")], **ALICE, dry_run=True)


def test_a_failed_transfer_names_the_likely_receiver(world):
    """A receiver without its top-level account has the whole name in the remedy."""
    del world
    sent = lk.transfer("dave", "1 NEAR", **ALICE, wait_until="FINAL")
    with refused("AccountDoesNotExistError") as caught:
        sent.raise_for_status()
    usual = type(caught.value).remedy
    assert caught.value.remedy == f"Did you mean 'dave.near'? {usual}"


BAD: list[tuple[str, Any, str]] = [
    ("amount", lambda: lk.transfer("dave.near", -1), "from 0 to"),
    ("amount", lambda: lk.transfer("dave.near", "1 BTC"), "text with its unit"),
    ("receiver_id", lambda: lk.transfer("Dave.near", "1 yocto"), "2 to 64 characters"),
    ("method_name", lambda: lk.call("dave.near", "m" * 257), "1 to 256 bytes"),
    ("args", lambda: lk.call("dave.near", "m", bytes(4 * 2**20 + 1)), "at most 4194304 bytes"),
    ("args", lambda: lk.call("dave.near", "m", {"a": {1, 2j}}), "JSON can encode"),
    ("transaction", lambda: lk.call("dave.near", "m", bytes(2**21), **ALICE), "1572864 bytes"),
    ("gas", lambda: lk.call("dave.near", "m", gas="1001 Tgas"), "at most 1000 Tgas"),
    ("gas", lambda: lk.call("dave.near", "m", gas=0), "above 0"),
    ("deposit", lambda: lk.send("dave.near", [Transfer(2**128 - 1)] * 2), "at most"),
    ("actions", lambda: lk.send("dave.near", [Transfer(1)] * 101), "1 to 100 actions"),
    ("actions", lambda: UNTYPED.send("dave.near", "Transfer"), "a list of actions"),
    (
        "actions",
        lambda: lk.send("dave.near", [DeleteAccount("bob.near"), Transfer(1)]),
        "last action",
    ),
    ("actions", lambda: lk.send("dave.near", [delegated(), delegated()]), "one delegated"),
    ("public_key", lambda: lk.send("dave.near", [Stake(1, OTHER)]), "ed25519"),
    ("code", lambda: lk.deploy(b"\0asm" + bytes(4 * 2**20)), "at most 4194304 bytes"),
    ("method_names", lambda: lk.add_key(KEY.public_key, method_names=["m"]), "receiver_id="),
    ("allowance", lambda: lk.add_key(KEY.public_key, allowance="1 NEAR"), "receiver_id="),
    (
        "method_names",
        lambda: lk.add_key(KEY.public_key, receiver_id="a.near", method_names=["m" * 250] * 9),
        "at most 2000 bytes",
    ),
    (
        "method_names",
        lambda: UNTYPED.add_key(KEY.public_key, receiver_id="ab", method_names="m"),
        "",
    ),
    ("wait_until", lambda: lk.transfer("dave.near", "1 yocto", wait_until="SOON"), "one of NONE"),
    ("via", lambda: lk.transfer("dave.near", "1 yocto", via="pigeon"), "one of send_tx"),
    ("timeout_s", lambda: lk.transfer("dave.near", "1 yocto", timeout_s=0), "above 0"),
    ("strict", lambda: UNTYPED.transfer("dave.near", "1 yocto", strict="yes"), "True or False"),
    (
        "strict",
        lambda: lk.transfer("dave.near", "1 yocto", strict=True, wait_until="NONE"),
        "refusal",
    ),
    ("ledger", lambda: UNTYPED.transfer("dave.near", "1 yocto", ledger="local"), "connect"),
    ("delegate", lambda: UNTYPED.relay(5), "base64 or bytes"),
    ("delegate", lambda: lk.relay("x"), "not the base64 of a Delegate"),
    ("delegate", lambda: lk.relay(b"\3"), "4 bytes are needed"),
    ("signer_id", lambda: lk.transfer("dave.near", "1 yocto", signer_id="moon.near"), "key"),
    ("signer_id", lambda: lk.transfer("dave.near", "1 yocto"), "key"),
]


def test_bad_input_is_refused_before_anything(subtests):
    """The sentence names field, value and rule; nothing was signed, sent or even read."""
    for field, verb, rule in BAD:
        with subtests.test(field=field, rule=rule):

            def never(request: httpx.Request) -> httpx.Response:
                raise AssertionError(request.content)

            lk.connect("lab", transport=httpx.MockTransport(never))
            lk.use_signer("alice.near", KEY) if field != "signer_id" else lk.use_signer(None)
            with pytest.raises(errors.InvalidRequestError) as caught:
                verb()
            assert caught.value.field == field
            assert rule in str(caught.value)


def test_a_misspelt_option_is_a_type_error():
    """What is no option is not passed over."""
    lk.connect("local")
    with pytest.raises(TypeError, match="wait_untill"):
        UNTYPED.transfer("dave.near", "1 yocto", **ALICE, wait_untill="FINAL")


def test_a_wrong_delegated_signature_is_refused(world):
    """What the sender has not signed is not sent."""
    first = lk.delegate("dave.near", [Transfer(5)], signer_id="bob.near")
    other = lk.delegate("dave.near", [Transfer(6)], signer_id="bob.near")
    forged = type(first)(first.delegate_action, other.signature)
    with pytest.raises(errors.InvalidRequestError, match="delegate"):
        lk.relay(forged, **ALICE)
    assert len(world.mempool) == 0


# The public network ---------------------------------------------------------------------


class Node:
    """A node that answers as it is told, and keeps what it was asked."""

    def __init__(self, chain_id: str, refusal: Any = None, permission: Any = "FullAccess") -> None:
        self.chain_id, self.refusal, self.permission = chain_id, refusal, permission
        self.sent: list[SignedTransaction] = []
        self.methods: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        asked = json.loads(request.content)
        self.methods.append(asked["method"])
        answer = getattr(self, "_" + asked["method"].removeprefix("EXPERIMENTAL_"))
        return httpx.Response(200, json={"id": asked["id"]} | answer(asked["params"]))

    def _status(self, _: Any) -> dict[str, Any]:
        sync = {"latest_block_hash": HASH, "latest_block_height": 100, "syncing": False}
        sync["latest_block_time"] = "2026-08-01T00:00:00Z"
        told = {
            "chain_id": self.chain_id,
            "sync_info": sync,
            "version": {"version": "1", "build": ""},
        }
        return {"result": told}

    def _query(self, _: Any) -> dict[str, Any]:
        key = {"nonce": 5, "permission": self.permission, "block_height": 100}
        # 1000 bytes of storage need 0.01 NEAR (10**19 yoctoNEAR a byte, the protocol's price).
        state = {"amount": str(NEAR), "locked": "0", "code_hash": HASH, "storage_usage": 1000}
        return {"result": key | state}

    def _block(self, _: Any) -> dict[str, Any]:
        world = lk.connect("local", world="empty")
        block: dict[str, Any] = {"result": world.rpc("block", {"finality": "final"})}
        return block

    def _send_tx(self, params: Any) -> dict[str, Any]:
        self.sent.append(SignedTransaction.from_base64(params["signed_tx_base64"]))
        data = {"TxExecutionError": {"InvalidTxError": self.refusal}}
        cause = {"name": "INVALID_TRANSACTION", "info": {}}
        error = {"name": "HANDLER_ERROR", "cause": cause, "code": -32000, "data": data}
        return {"error": error | {"message": "Server error"}}

    def _gas_price(self, _: Any) -> dict[str, Any]:
        return {"result": {"gas_price": "100000000"}}

    def _protocol_config(self, _: Any) -> dict[str, Any]:
        return {"result": {"transaction_validity_period": 100}}

    def _tx_status(self, _: Any) -> dict[str, Any]:
        cause = {"name": "UNKNOWN_TRANSACTION", "info": {}}
        error = {"name": "HANDLER_ERROR", "cause": cause, "code": -32000, "data": "none"}
        return {"error": error | {"message": "Server error"}}


def connected(node: Node, name: str = "lab") -> lk.Ledger:
    """Connect to a node of our own, under any name."""
    return lk.connect(name, transport=httpx.MockTransport(node))


@pytest.mark.parametrize("name", ["lab", "testnet", "mainnet"])
def test_nothing_is_signed_for_mainnet_unasked(name, monkeypatch):
    """Where `status` says mainnet, every verb refuses before it signs, whatever the address."""
    node = Node("mainnet")
    ledger = connected(node, name)
    signed = []
    monkeypatch.setattr(SecretKey, "sign", lambda *_: signed.append(1))
    own: Any = {"signer_id": "alice.near", "key": KEY, "ledger": ledger}
    for verb in (
        lambda: lk.transfer("dave.near", "1 yocto", **own),
        lambda: lk.call("dave.near", "m", **own),
        lambda: lk.delegate("dave.near", [Transfer(1)], **own),
    ):
        with pytest.raises(errors.InvalidRequestError, match="mainnet") as caught:
            verb()
        assert caught.value.field == "allow_mainnet"
        assert "allow_mainnet=True" in caught.value.remedy
    assert signed == []
    assert sorted(node.methods) == ["block", "query", "status"]  # reads only, once


def test_mainnet_when_it_is_meant():
    """Asked for, a transaction is signed for mainnet too, and names itself by its hash."""
    node = Node("mainnet", "InvalidSignature")
    ledger = connected(node)
    with refused("InvalidSignatureError"):
        lk.transfer(
            "dave.near",
            "1 yocto",
            signer_id="alice.near",
            key=KEY,
            allow_mainnet=True,
            ledger=ledger,
        )
    assert [signed.transaction.nonce for signed in node.sent] == [6]
    assert node.sent[0].verify()


# Refusals -------------------------------------------------------------------------------


REFUSALS: list[tuple[Any, str, Any]] = [
    ("InvalidSignature", "InvalidSignatureError", None),
    ({"NotEnoughBalance": {"balance": "7"}}, "NotEnoughBalanceError", {"balance": "7"}),
    (
        {"InvalidAccessKeyError": {"MethodNameMismatch": {"method_name": "m"}}},
        "MethodNameMismatchError",
        {"method_name": "m"},
    ),
    (
        {"ActionsValidation": "DeleteActionMustBeFinal"},
        "DeleteActionMustBeFinalError",
        None,
    ),
]


@pytest.mark.parametrize(
    ("refusal", "name", "payload"), REFUSALS, ids=["word", "fields", "key", "actions"]
)
def test_a_refusal_is_raised_as_its_class(refusal, name, payload):
    """A variant of each family is raised by the verb with its class, payload and remedy."""
    node = Node("testnet", refusal)
    ledger = connected(node)
    with refused(name) as caught:
        lk.transfer("dave.near", "1 yocto", signer_id="alice.near", key=KEY, ledger=ledger)
    assert isinstance(caught.value, errors.InvalidTransactionError)
    assert caught.value.payload == payload
    assert len(caught.value.remedy) > 10
    assert len({signed.hash for signed in node.sent}) == 1


def test_refusals_of_the_embedded_ledger(world):
    """What a node checks is refused by name, and the amounts are exact integers."""
    had = balance(world, "dave.near")
    with refused("NotEnoughBalanceError") as poor:
        lk.transfer("bob.near", had, signer_id="dave.near")
    cost = had + 223_182_562_500 * 10**8 + 223_182_562_500 * 10**9
    assert (poor.value.signer_id, poor.value.balance, poor.value.cost) == ("dave.near", had, cost)
    assert "Send NEAR to the account" in poor.value.remedy
    tx_hash = str(poor.value.request).split()[1]
    found = lk.track(tx_hash, "dave.near", timeout_s=0)
    assert (found.stage, found.fully_succeeded) == ("rejected", False)
    assert found.failure is poor.value
    assert found.stages["stage"].tolist() == ["rejected"]
    assert balance(world, "dave.near") == had


def test_a_refused_nonce_is_used_by_the_next(world):
    """What was refused leaves no gap behind."""
    with refused("NotEnoughBalanceError"):
        lk.transfer("bob.near", 10**30, signer_id="dave.near")
    one = lk.transfer("bob.near", "1 yocto", signer_id="dave.near")
    with refused("NotEnoughBalanceError"):
        lk.transfer("bob.near", 10**30, signer_id="dave.near", strict=True)
    two = lk.transfer("bob.near", "1 yocto", signer_id="dave.near", strict=True, wait_until="FINAL")
    assert nonce(two) == nonce(one) + 1
    assert two.signed is not None
    assert two.signed.transaction.nonce_mode == "strict"
    assert two.fully_succeeded is True
    del world


def test_what_was_silently_refused_blocks_no_strict_one(world):
    """A strict nonce waits neither for bytes that were refused unheard nor for lost ones."""
    own: Any = {"signer_id": "dave.near"}
    lk.transfer("bob.near", 10**30, **own, wait_until="NONE")
    world.drop_transactions(1)
    lost = lk.transfer("bob.near", "2 yocto", **own, wait_until="NONE")
    lk.delegate("bob.near", [Transfer(1)], **own)
    before = balance(world, "bob.near")
    one = lk.transfer("bob.near", "1 yocto", **own, strict=True)
    assert one.fully_succeeded is True
    assert lost.wait().fully_succeeded is True
    world.settle()
    assert balance(world, "bob.near") == before + 3


# Gas keys -------------------------------------------------------------------------------


GAS = SecretKey.from_seed_phrase(" ".join(["zoo"] * 11 + ["wrong"]))
BY_GAS_KEY: Any = {"signer_id": "alice.near", "key": GAS}


def add_gas_key(count: int = 4, funds: int = NEAR) -> None:
    access_key = AccessKey(0, GasKeyFullAccess(0, count))
    actions = [AddKey(GAS.public_key, access_key), TransferToGasKey(GAS.public_key, funds)]
    lk.send("alice.near", actions, **ALICE, wait_until="FINAL")


def gas_balance(world: World) -> int:
    """Tell what alice's gas key has at the head."""
    held = world.state().access_key("alice.near", GAS.public_key.packed)
    assert held is not None
    assert isinstance(held.permission, GasKeyFullAccess)
    return held.permission.balance


def gas_nonces(world: World) -> list[int]:
    """Tell the nonces of alice's gas key at the head."""
    return world.state().gas_key_nonces("alice.near", GAS.public_key.packed)


def test_a_gas_key_signs_like_any_key(world):
    """The key pays the gas and gets its refunds; the account pays the amount, and nothing else."""
    add_gas_key()
    alice, start = balance(world, "alice.near"), gas_nonces(world)
    one = lk.transfer("dave.near", "5 yocto", **BY_GAS_KEY, wait_until="FINAL")
    two = lk.call("counter.near", "increment", {"by": 1}, **BY_GAS_KEY, wait_until="FINAL")
    assert (one.fully_succeeded, two.fully_succeeded) == (True, True)
    assert balance(world, "alice.near") == alice - 5
    assert gas_balance(world) == NEAR - burnt(one) - burnt(two)
    assert one.signed is not None
    tx = one.signed.transaction
    assert (tx.version, tx.nonce_index, tx.nonce) == (1, 0, start[0] + 1)
    assert gas_nonces(world) == [start[0] + 2, *start[1:]]


def test_a_gas_key_sends_over_all_its_nonces(world):
    """Senders side by side use different indexes, and every transaction arrives once."""
    add_gas_key(count=3)
    before, start = balance(world, "dave.near"), gas_nonces(world)

    def one(amount: int) -> lk.types.Submission:
        strict = amount % 2 == 0
        return lk.transfer("dave.near", f"{amount} yocto", **BY_GAS_KEY, strict=strict)

    with ThreadPoolExecutor(6) as pool:
        sent = list(pool.map(one, range(1, 61)))
    world.settle()
    assert balance(world, "dave.near") == before + 60 * 61 // 2
    used = [(x.signed.transaction.nonce_index, nonce(x)) for x in sent if x.signed]
    assert len(set(used)) == 60
    assert len({index for index, _ in used}) > 1
    counts = [end - begin for begin, end in zip(start, gas_nonces(world), strict=True)]
    assert sum(counts) == 60


def test_a_universal_account_signs_its_own_initial_state():
    """Before it has that, its key signs for nothing else, and nothing is sent."""
    # Source: NEP-655, and nearcore #16321: the first nonce is one above bootstrap_nonce.
    lk.connect("local", world=open_world("demo", profile="87"))
    state = UniversalStateInitV1(access_keys=[KEY.public_key])
    owner: Any = {"signer_id": universal_account_id(state), "key": KEY}
    name, actions = owner["signer_id"], [UniversalStateInit(state.encode())]
    unknown = pytest.warns(UserWarning, match="has no account 0u")
    with unknown, pytest.raises(errors.UnknownAccountError) as raised:
        lk.send(name, actions, **owner)
    assert raised.value.remedy == "Send NEAR to the account first: a transfer creates it."
    lk.transfer(name, "3 NEAR", **ALICE)
    nonce = lk.accounts(name, at="optimistic")["bootstrap_nonce"][0]
    for attempt in (lk.transfer, lk.delegate):
        args: Any = ("bob.near", "1 NEAR" if attempt is lk.transfer else [Transfer(1)])
        with pytest.raises(errors.InvalidRequestError, match="has no initial state yet"):
            attempt(*args, **owner)
    with pytest.raises(errors.UnknownAccessKeyError):
        lk.transfer("bob.near", "1 NEAR", signer_id="alice.near", key=KEY)
    assert lk.send(name, actions, **owner, dry_run=True)["nonce"].tolist() == [nonce + 1]
    assert lk.send(name, actions, **owner).fully_succeeded
    assert lk.accounts(name, at="optimistic")["bootstrap_nonce"].isna().all()
    assert lk.transfer("bob.near", "1 NEAR", **owner).fully_succeeded


def test_a_dry_run_names_who_pays_the_gas(world):
    """The gas key, with the index of its nonce; else the account, which has none."""
    own = lk.transfer("dave.near", "5 yocto", **ALICE, dry_run=True).iloc[0]
    assert (own["gas_payer"], own.isna()["nonce_index"]) == ("alice.near", True)
    add_gas_key()
    row = lk.transfer("dave.near", "5 yocto", **BY_GAS_KEY, dry_run=True).iloc[0]
    assert (row["gas_payer"], row["nonce_index"]) == (str(GAS.public_key), 0)
    assert row["cost_bound"] == 5 + 446_365_125_000 * 10**9
    sent = lk.transfer("dave.near", "5 yocto", **BY_GAS_KEY, wait_until="INCLUDED")
    assert (sent.tx_hash, sent.nonce) == (row["tx_hash"], row["nonce"])
    assert row["size"] == sent.signed.wire_size
    assert NEAR - row["cost_bound"] + 5 <= gas_balance(world) < NEAR


def test_a_key_may_become_a_gas_key_and_back(world):
    """Whatever it was the last time, a transaction is signed as its kind needs."""
    add = AddKey(GAS.public_key)
    lk.send("alice.near", [add], **ALICE, wait_until="FINAL")
    assert (
        lk.transfer("dave.near", "1 yocto", **BY_GAS_KEY, wait_until="FINAL").fully_succeeded
        is True
    )
    for count in (1, 3, 1):
        lk.delete_key(GAS.public_key, **ALICE, wait_until="FINAL")
        add_gas_key(count)
        sent = lk.transfer("dave.near", "1 yocto", **BY_GAS_KEY, wait_until="FINAL")
        assert sent.fully_succeeded is True
    lk.delete_key(GAS.public_key, **ALICE, wait_until="FINAL")
    lk.send("alice.near", [add], **ALICE, wait_until="FINAL")
    assert lk.transfer("dave.near", "1 yocto", **BY_GAS_KEY).fully_succeeded is True
    assert gas_nonces(world) == []


def test_an_empty_gas_key_is_refused(world):
    """The account's own NEAR pays no gas; the error has the key's balance and the cost."""
    add_gas_key(funds=1)
    with refused("NotEnoughGasKeyBalanceError") as caught:
        lk.transfer("dave.near", "5 yocto", **BY_GAS_KEY)
    cost = 223_182_562_500 * (10**8 + 10**9)
    assert (caught.value.balance, caught.value.cost) == (1, cost)
    with refused("NotEnoughGasKeyBalanceError"):
        lk.transfer("dave.near", 10**30, **BY_GAS_KEY)
    lk.send("alice.near", [TransferToGasKey(GAS.public_key, NEAR)], **ALICE, wait_until="FINAL")
    with refused("NotEnoughBalanceForDepositError"):
        lk.transfer("dave.near", 10**30, **BY_GAS_KEY)
    assert gas_balance(world) == NEAR + 1
    assert lk.transfer("dave.near", "5 yocto", **BY_GAS_KEY).fully_succeeded is True


def test_a_lost_transaction_of_a_gas_key(world):
    """Lost bytes are sent again, and those whose nonce was used elsewhere count as dropped."""
    add_gas_key(count=1)
    world.drop_transactions(1)
    lost = lk.transfer("dave.near", "2 yocto", **BY_GAS_KEY, wait_until="NONE")
    assert lost.wait().fully_succeeded is True
    world.drop_transactions(1)
    overtaken = lk.transfer("dave.near", "3 yocto", **BY_GAS_KEY, wait_until="NONE")
    assert overtaken.signed is not None
    tx = overtaken.signed.transaction
    other = Transaction(
        "alice.near",
        GAS.public_key,
        tx.nonce,
        "bob.near",
        tx.block_hash,
        [Transfer(1)],
        version=1,
        nonce_index=0,
    )
    world.submit(other.sign(GAS))
    world.settle()
    assert overtaken.wait().drop_reason == "nonce overtaken"


def test_a_gas_key_signs_no_delegate_action(world):
    """A delegate action of this version has no index, so the chain would refuse it."""
    add_gas_key()
    for _ in range(2):
        with pytest.raises(errors.InvalidRequestError, match="no gas key") as caught:
            lk.delegate("dave.near", [Transfer(1)], **BY_GAS_KEY)
        assert caught.value.field == "key"
    del world


@pytest.mark.parametrize(
    ("permission", "field"),
    [
        (GasKeyFullAccess(0, 0), "num_nonces"),
        (GasKeyFullAccess(0, 1025), "num_nonces"),
        (GasKeyFullAccess(1, 1), "balance"),
        (GasKeyFunctionCall(0, 1, 5, "c.near"), "allowance"),
    ],
)
def test_a_gas_key_that_cannot_be_is_not_sent(permission, field):
    """What every node refuses is refused before anything is read."""
    lk.connect("local")
    with pytest.raises(errors.InvalidRequestError) as caught:
        lk.send("alice.near", [AddKey(KEY.public_key, AccessKey(0, permission))], **ALICE)
    assert caught.value.field == field


@pytest.mark.parametrize("fields", [{}, {"num_nonces": 0}, []])
def test_a_gas_key_of_another_shape_is_no_ordinary_key(fields):
    """A permission that cannot be read is an error, and nothing is signed as if it were known."""
    node = Node("testnet", permission={"GasKeyFullAccess": fields})
    own: Any = {"signer_id": "alice.near", "key": KEY, "ledger": connected(node)}
    with pytest.raises(errors.DecodeError) as caught:
        lk.transfer("dave.near", "1 yocto", **own)
    assert caught.value.path == "permission"
    assert node.sent == []


# Concurrency ----------------------------------------------------------------------------


def test_five_hundred_at_once_from_one_key(world):
    """500 transactions of one key over 16 threads all arrive, once each."""
    before, alice = balance(world, "dave.near"), balance(world, "alice.near")
    with ThreadPoolExecutor(16) as pool:
        sent = list(
            pool.map(lambda n: lk.transfer("dave.near", f"{n} yocto", **ALICE), range(1, 501))
        )
    assert len({one.tx_hash for one in sent}) == 500
    used = sorted(map(nonce, sent))
    assert used == list(range(used[0], used[0] + 500))
    world.settle()
    assert balance(world, "dave.near") == before + 500 * 501 // 2
    assert {one.fully_succeeded for one in sent} == {True}
    assert balance(world, "alice.near") == alice - 500 * 501 // 2 - sum(map(burnt, sent))


def test_a_strict_key_is_never_blocked(world):
    """Strict nonces of many senders leave no gap, though some are lost and some refused."""
    before = balance(world, "alice.near")
    poor: list[tuple[int, str]] = []

    def one(number: int) -> lk.types.Submission | None:
        if number % 5 == 0:
            world.drop_transactions(1)
        amount = 10**30 if number % 4 == 1 else number
        try:
            return lk.transfer("alice.near", f"{amount} yocto", signer_id="bob.near", strict=True)
        except errors.InvalidTransactionError as error:
            poor.append((number, type(error).__name__))
            return None

    with ThreadPoolExecutor(8) as pool:
        sent = [found for found in pool.map(one, range(1, 61)) if found]
    world.settle()
    assert sorted(poor) == [(n, "NotEnoughBalanceError") for n in range(1, 61, 4)]
    assert len(sent) == 45
    used = sorted(map(nonce, sent))
    assert used == list(range(used[0], used[0] + 45))
    good = sum(number for number in range(1, 61) if number % 4 != 1)
    assert balance(world, "alice.near") == before + good


# Over HTTP ------------------------------------------------------------------------------


def test_a_file_is_deployed_and_a_global_contract_used(world, tmp_path):
    """A path is read; published code is used by its hash and by its owner's id."""
    path, code = tmp_path / "counter.wasm", lk.contract_code("counter.near")
    path.write_bytes(code)
    sub: Any = {"signer_id": "alice.near", "wait_until": "FINAL", "key": world.keys()["alice.near"]}
    assert lk.deploy(path, **sub).fully_succeeded
    assert lk.contract_code("alice.near") == code
    ways: Any = (
        ("hash", CryptoHash.of(code)),
        ("account_id", AccountId("alice.near")),
    )
    for publish, identifier in ways:
        assert lk.deploy(path, publish=publish, **sub).fully_succeeded
        world.settle()
        user: Any = {"signer_id": "bob.near", "wait_until": "FINAL"}
        assert lk.deploy(identifier, **user).fully_succeeded
        assert world.state().account("bob.near").global_contract == identifier
        assert lk.view("bob.near", "get_num") == 0


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("counter.wasm", "a pathlib.Path"),
        (b"", "whose first bytes are"),
        (b"<html>", "whose first bytes are"),
        (Path("missing.wasm"), "a readable file"),
    ],
)
def test_code_that_is_none_is_refused(world, code, text):
    """A text, other bytes, and a file that is not there; nothing is sent."""
    with pytest.raises(errors.InvalidRequestError, match=text):
        lk.deploy(code, signer_id="alice.near")
    with pytest.raises(errors.InvalidRequestError, match="published already"):
        lk.deploy(AccountId("gold.near"), publish="hash", signer_id="alice.near")
    assert len(world.mempool) == 0
