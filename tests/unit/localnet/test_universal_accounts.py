"""
Universal accounts of protocol 87: created, initialized, and what they accept before that.

Sources: NEP-655 (near/NEPs#655); nearcore, runtime/runtime/src/universal_account_id.rs,
test-loop-tests/src/tests/universal_account_id.rs, and the descriptions of #16103, #16321, #16356,
#16408 and #16415.
"""

from functools import partial
from typing import Any

import pytest

from ledgerkit.localnet import fees, rpc_json, transaction_validity
from ledgerkit.localnet.contract_sdk import Contract, call, to_json
from ledgerkit.localnet.execution_errors import InvalidTransactionError
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.protocol import (
    Action,
    AddKey,
    CreateAccount,
    DelegateAction,
    DeployContract,
    DeployGlobalContract,
    DeterministicStateInit,
    FunctionCall,
    PublicKey,
    Stake,
    StateInit,
    Transfer,
    UniversalStateInit,
    UniversalStateInitV1,
    universal_account_id,
)
from tests.unit.localnet.ledger import (
    PRICE,
    TGAS,
    Ledger,
    N,
    Script,
    do,
    index_of,
    public,
    result_of,
    secret,
)

RECEIPT, TRANSFER, KEY = 108_059_500_000, 115_123_062_500, 101_765_125_000
CREATION = 7_200_000_000_000
STATE_BASE, STATE_ENTRY, STATE_BYTE = 7_430_000_000_000, 200_000_000_000, 70_000_000
KEY_BYTES = 33 + 9 + 40  # an ed25519 key, its access key, and the record
KEY_ONLY = UniversalStateInitV1(access_keys=[public("owner")])
OWNED = universal_account_id(KEY_ONLY)


class Opener(Contract):
    """Initializes universal accounts."""

    @call(payable=True)
    def open(self, account_id: str, state_init: str) -> None:
        """Send the bytes of an initial state, with the attached deposit."""
        promise = self.vm.promise(account_id)
        promise.universal_state_init(bytes.fromhex(state_init), self.vm.attached_deposit)


def opening(account_id, state_init):
    """Call an `Opener`."""
    args = to_json({"account_id": account_id, "state_init": state_init.hex()})
    return FunctionCall("open", args, 100 * TGAS, 2 * N)


@pytest.fixture
def ledger():
    """Return a chain of protocol 87, with a contract that alice.near has published."""
    genesis = Genesis()
    genesis.account("opener.near", N, keys=[public("opener.near")], contract=Opener)
    ledger = Ledger("alice.near", "bob.near", genesis=genesis, profile="87")
    ledger.run("alice.near", "alice.near", DeployGlobalContract(Script.code, "CodeHash"))
    return ledger


def initialize(state_init, deposit=0):
    return UniversalStateInit(state_init.encode(), deposit)


def failure(outcome):
    """Return the error of a receipt, and the index of its action."""
    return result_of(outcome), index_of(outcome)


def refunded(ledger, outcome):
    """List whom a receipt returned deposits, and how much."""
    receipts = [ledger.receipt(receipt_id) for receipt_id in outcome.receipt_ids]
    returned = [r for r in receipts if (r.predecessor_id, r.signer_id) == ("system", "system")]
    return [(r.receiver_id, r.actions[0].deposit) for r in returned]


def keys_of(ledger, name):
    return {stored: key.nonce for stored, key in ledger.world.state().access_keys(name)}


# Creation and initialization -------------------------------------------------------------


def test_a_transfer_creates_an_account_without_state(ledger):
    """It has 100 bytes, no key and no code, and its first nonce is of its height."""
    outcome = ledger.run("alice.near", OWNED, Transfer(3 * N))
    account = ledger.account(OWNED)
    first_nonce = (outcome.block_height - 1) * 10**6
    assert rpc_json.account(account) == {
        "amount": str(3 * N),
        "locked": "0",
        "code_hash": "1" * 32,
        "storage_usage": 100,
        "storage_paid_at": 0,
        "state": "uninitialized",
        "bootstrap_nonce": first_nonce,
    }
    assert keys_of(ledger, OWNED) == {}
    assert outcome.gas_burnt == RECEIPT + TRANSFER + CREATION
    assert outcome.tokens_burnt == outcome.gas_burnt * PRICE + 7 * 10**21 - CREATION * PRICE
    ledger.run("bob.near", OWNED, Transfer(N))
    assert ledger.account(OWNED).amount == 4 * N
    assert ledger.account(OWNED).bootstrap_nonce == first_nonce


def test_a_state_creates_the_account_of_a_key(ledger):
    """The key has full access; the fee is that of the bytes and of adding the key."""
    action = initialize(KEY_ONLY, N)
    outcome = ledger.run("alice.near", OWNED, action)
    account = ledger.account(OWNED)
    assert (account.amount, account.storage_usage) == (0, 100 + KEY_BYTES)
    assert account.bootstrap_nonce is None
    assert "state" not in rpc_json.account(account)
    assert keys_of(ledger, OWNED) == {public("owner").stored: (outcome.block_height - 1) * 10**6}
    assert refunded(ledger, outcome) == [("alice.near", N)]
    size = 1 + 1 + 4 + 4 + 33
    assert outcome.gas_burnt == RECEIPT + STATE_BASE + size * STATE_BYTE + KEY
    signed = ledger.sign("alice.near", OWNED, action)
    cost = transaction_validity.cost_of(signed.transaction, fees.PROFILES["87"], PRICE)
    assert cost.gas_burnt == RECEIPT + 500_000_000_000 + size * 72_000_000 + KEY
    after = {"nonce": keys_of(ledger, OWNED)[public("owner").stored] + 1}
    ledger.run("alice.near", OWNED, Transfer(N))
    ledger.run(OWNED, "bob.near", Transfer(5), key="owner", **after)
    assert ledger.account("bob.near").amount == 1000 * N + 5
    assert ledger.is_whole()


def test_a_state_may_have_code_and_records(ledger):
    """The code is that of a global contract, and runs; each record has a fee."""
    state_init = UniversalStateInitV1(Script.code_hash, {b"a": b"one", b"b": b"two"})
    name = universal_account_id(state_init)
    outcome = ledger.run("bob.near", name, initialize(state_init), do(["value", 4]))
    assert result_of(outcome) == 4
    account = ledger.account(name)
    assert account.global_contract == Script.code_hash
    assert account.storage_usage == 100 + 32 + 2 * (1 + 3 + 40)
    assert dict(ledger.world.state().records(name)) == state_init.data
    missing = UniversalStateInitV1("nobody.near")
    failed = ledger.run("bob.near", universal_account_id(missing), initialize(missing, N))
    identifier = {"account_id": "nobody.near"}
    assert failure(failed) == ({"GlobalContractDoesNotExist": {"identifier": identifier}}, 0)
    assert refunded(ledger, failed) == [("bob.near", N)]


def test_records_have_a_fee_each():
    """The rates are those of deterministic accounts, but for all bytes that are sent."""
    state_init = UniversalStateInitV1("a.near", {b"a": b"one", b"b": b"two"}, [public("x")] * 2)
    action = initialize(state_init)
    fee = fees.PROFILES["87"].fee(action, "x.near")
    assert fee.execute == STATE_BASE + 2 * STATE_ENTRY + len(action.state_init) * STATE_BYTE + KEY
    # Bytes that are no state describe no records and no keys.
    fee = fees.PROFILES["87"].fee(UniversalStateInit(b"\7\7\7"), "x.near")
    assert (fee.send_other, fee.execute) == (
        500_000_000_000 + 3 * 72_000_000,
        STATE_BASE + 3 * STATE_BYTE,
    )


def test_a_state_after_a_transfer_keeps_the_balance(ledger):
    """The storage is paid for, so all of the deposit returns."""
    ledger.run("alice.near", OWNED, Transfer(3 * N))
    outcome = ledger.run("bob.near", OWNED, initialize(KEY_ONLY, N))
    account = ledger.account(OWNED)
    assert (account.amount, account.bootstrap_nonce) == (3 * N, None)
    assert list(keys_of(ledger, OWNED)) == [public("owner").stored]
    assert refunded(ledger, outcome) == [("bob.near", N)]
    assert ledger.is_whole()


def test_a_second_state_changes_nothing(ledger):
    """It succeeds and returns its deposit; keys that were deleted stay so."""
    action = initialize(KEY_ONLY, N)
    ledger.run("alice.near", OWNED, action)
    before = ledger.account(OWNED), keys_of(ledger, OWNED)
    outcome = ledger.run("bob.near", OWNED, action)
    assert result_of(outcome) is None
    assert (ledger.account(OWNED), keys_of(ledger, OWNED)) == before
    assert refunded(ledger, outcome) == [("bob.near", N)]


def test_the_account_is_of_the_bytes_that_were_sent(ledger):
    """Bytes with unsorted records are accepted, and are another account."""
    entries = "01000000 62 01000000 32 01000000 61 01000000 31"
    unsorted = bytes.fromhex(f"00 00 02000000 {entries} 00000000")
    name = universal_account_id(unsorted)
    ledger.run("alice.near", name, UniversalStateInit(unsorted))
    assert dict(ledger.world.state().records(name)) == {b"a": b"1", b"b": b"2"}
    sorted_again = UniversalStateInitV1.decode(unsorted)
    assert ledger.account(universal_account_id(sorted_again)) is None


def test_a_state_may_come_in_a_delegate(ledger):
    """Its receiver is that of the delegated actions."""
    key = secret("bob.near")
    action = initialize(KEY_ONLY)
    inner = DelegateAction("bob.near", OWNED, [action], 9, 9999, key.public_key).sign(key)
    ledger.run("alice.near", "bob.near", inner)
    assert ledger.account(OWNED).storage_usage == 100 + KEY_BYTES


def test_a_contract_initializes_an_account(ledger):
    """The bytes travel as they are; what a node would refuse fails the contract's own call."""
    ledger.run("alice.near", "opener.near", opening(OWNED, KEY_ONLY.encode()))
    assert list(keys_of(ledger, OWNED)) == [public("owner").stored]
    assert ledger.account(OWNED).amount == 0
    malformed = b"\7\7\7"
    cases: dict[str, tuple[str, Any]] = {
        "malformed": (universal_account_id(malformed), "MalformedUniversalStateInit"),
        "elsewhere": (
            "bob.near",
            {
                "InvalidUniversalStateInitReceiver": {
                    "receiver_id": "bob.near",
                    "derived_id": universal_account_id(malformed),
                }
            },
        ),
    }
    for account_id, error in cases.values():
        outcome = ledger.run("alice.near", "opener.near", opening(account_id, malformed))
        expected = {"NewReceiptValidationError": {"ActionsValidation": error}}
        assert failure(outcome) == (expected, 0)
        assert refunded(ledger, outcome) == [("alice.near", 2 * N)]
    assert ledger.is_whole()


# What is accepted ------------------------------------------------------------------------


def test_an_account_without_state_accepts_nothing_else(ledger, subtests):
    """Only a transfer and its own initial state; the account stays as it is."""
    ledger.run("alice.near", OWNED, Transfer(3 * N))
    before = ledger.account(OWNED)
    actions = (
        AddKey(public("thief")),
        Stake(N, public("thief")),
        DeployContract(b"code"),
        do(["value", 1]),
    )
    for action in actions:
        with subtests.test(action=action.name):
            outcome = ledger.run("bob.near", OWNED, action)
            assert failure(outcome) == ({"AccountNotInitialized": {"account_id": OWNED}}, 0)
    assert ledger.account(OWNED) == before
    outcome = ledger.run("bob.near", OWNED, CreateAccount())
    assert failure(outcome) == ({"AccountAlreadyExists": {"account_id": OWNED}}, 0)


def test_a_batch_creates_and_calls_but_takes_nothing(ledger):
    """A transfer, the state and a call in one receipt; a key of the sender's is refused."""
    state_init = UniversalStateInitV1(Script.code_hash)
    name = universal_account_id(state_init)
    start = Transfer(N), initialize(state_init)
    stolen = ledger.run("bob.near", name, *start, AddKey(public("bob.near")))
    denied = {"account_id": name, "actor_id": "bob.near"}
    assert failure(stolen) == ({"ActorNoPermission": denied}, 2)
    assert ledger.account(name) is None
    assert refunded(ledger, stolen) == [("bob.near", N)]
    outcome = ledger.run("bob.near", name, *start, do(["value", 7]))
    assert result_of(outcome) == 7
    assert ledger.account(name).amount == N
    other = ledger.run("bob.near", OWNED, CreateAccount())
    assert failure(other) == ({"OnlyImplicitAccountCreationAllowed": {"account_id": OWNED}}, 0)
    assert ledger.is_whole()


def test_before_87_an_id_is_a_name():
    """A transfer creates nothing and costs no more than to a name; the action is refused."""
    ledger = Ledger("alice.near", profile="86")
    outcome = ledger.run("alice.near", OWNED, Transfer(1))
    assert failure(outcome) == ({"AccountDoesNotExist": {"account_id": OWNED}}, 0)
    assert outcome.gas_burnt == RECEIPT + TRANSFER
    created = ledger.run("alice.near", OWNED, CreateAccount())
    assert list(result_of(created)) == ["CreateAccountOnlyByRegistrar"]
    feature = {"protocol_feature": "UniversalAccounts", "version": 86}
    assert refusal(ledger, OWNED, initialize(KEY_ONLY)) == {"UnsupportedProtocolFeature": feature}


def refusal(ledger, receiver_id, *actions):
    """Return the error of actions that a node does not admit."""
    with pytest.raises(InvalidTransactionError) as caught:
        ledger.world.submit(ledger.sign("alice.near", receiver_id, *actions))
    error: Any = caught.value.error
    return error["ActionsValidation"]


def test_a_state_belongs_to_its_account(ledger):
    """The receiver is compared before the bytes are read."""
    wrong = {"receiver_id": "bob.near", "derived_id": OWNED}
    refuse = partial(refusal, ledger)
    assert refuse("bob.near", initialize(KEY_ONLY)) == {"InvalidUniversalStateInitReceiver": wrong}
    malformed = b"\7\7\7"
    name = universal_account_id(malformed)
    assert refuse(name, UniversalStateInit(malformed)) == "MalformedUniversalStateInit"
    trailing = KEY_ONLY.encode() + b"\0"
    name = universal_account_id(trailing)
    assert refuse(name, UniversalStateInit(trailing)) == "MalformedUniversalStateInit"


def test_the_limits_of_a_state(ledger):
    """Of its keys and records, together in a receipt; and of a record's key."""
    refuse = partial(refusal, ledger)
    keys = [PublicKey("ed25519", number.to_bytes(32)) for number in range(1025)]
    many = UniversalStateInitV1(access_keys=keys)
    count = {"number_of_keys": 1025, "limit": 1024}
    assert refuse(universal_account_id(many), initialize(many)) == {
        "TotalNumberOfStateInitKeysExceeded": count
    }
    half = UniversalStateInitV1(access_keys=keys[:513])
    twice = [initialize(half)] * 2
    assert refuse(universal_account_id(half), *twice) == {
        "TotalNumberOfStateInitKeysExceeded": count | {"number_of_keys": 1026}
    }
    records = {number.to_bytes(2): b"" for number in range(751)}
    large = UniversalStateInitV1(data=records)
    other = DeterministicStateInit(StateInit("a.near", records))
    assert refuse(universal_account_id(large), initialize(large), other) == {
        "TotalNumberOfStateInitEntriesExceeded": {"number_of_entries": 1502, "limit": 1500}
    }
    long = UniversalStateInitV1(data={bytes(2049): b""})
    assert refuse(universal_account_id(long), initialize(long)) == {
        "UniversalStateInitKeyLengthExceeded": {"length": 2049, "limit": 2048}
    }


# An account's own first transaction ------------------------------------------------------


def test_an_account_initializes_itself(ledger):
    """A key of its state signs with the account's next nonce; further actions are its own."""
    ledger.run("alice.near", OWNED, Transfer(3 * N))
    nonce = ledger.account(OWNED).bootstrap_nonce + 1
    action = initialize(KEY_ONLY)
    signed = ledger.sign(OWNED, OWNED, action, AddKey(public("second")), key="owner", nonce=nonce)
    ledger.world.submit(signed)
    ledger.world.settle()
    record = ledger.outcome(signed.hash)
    assert result_of(ledger.outcome(record.receipt_ids[0])) is None
    account = ledger.account(OWNED)
    assert (account.bootstrap_nonce, account.locked) == (None, 0)
    keys = keys_of(ledger, OWNED)
    assert set(keys) == {public("owner").stored, public("second").stored}
    assert keys[public("owner").stored] >= nonce
    with pytest.raises(InvalidTransactionError) as caught:
        ledger.world.check(signed)
    assert list(caught.value.error) == ["InvalidNonce"]
    assert 2 * N < account.amount < 3 * N  # it paid for its gas
    assert ledger.is_whole()


def test_a_failed_state_uses_its_nonce(ledger):
    """The account stays as it was, and the next transaction needs the next nonce."""
    state_init = UniversalStateInitV1("bob.near", access_keys=[public("owner")])
    name = universal_account_id(state_init)
    ledger.run("alice.near", name, Transfer(3 * N))
    nonce = ledger.account(name).bootstrap_nonce + 1
    action = initialize(state_init)
    outcome = ledger.run(name, name, action, key="owner", nonce=nonce)
    assert list(result_of(outcome)) == ["GlobalContractDoesNotExist"]
    assert ledger.account(name).bootstrap_nonce == nonce
    assert keys_of(ledger, name) == {}
    with pytest.raises(InvalidTransactionError) as caught:
        ledger.world.submit(ledger.sign(name, name, action, key="owner", nonce=nonce))
    assert caught.value.error == {"InvalidNonce": {"tx_nonce": nonce, "ak_nonce": nonce}}
    ledger.run("bob.near", "bob.near", DeployGlobalContract(Script.code, "AccountId"))
    ledger.run(name, name, action, key="owner", nonce=nonce + 1)
    assert ledger.account(name).global_contract == "bob.near"


def test_only_its_own_state_opens_an_account(ledger, subtests):
    """Another key, another receiver or no state at all is a key that does not exist."""
    ledger.run("alice.near", OWNED, Transfer(3 * N))
    nonce = ledger.account(OWNED).bootstrap_nonce + 1
    action = initialize(KEY_ONLY)
    thief = UniversalStateInitV1(access_keys=[public("thief")])
    cases: dict[str, tuple[str, list[Action], str]] = {
        "another key": (OWNED, [action], "thief"),
        "no state": (OWNED, [Transfer(1)], "owner"),
        "another receiver": (
            universal_account_id(thief),
            [initialize(thief)],
            "thief",
        ),
    }
    for case, (receiver_id, actions, key) in cases.items():
        with subtests.test(case=case):
            signed = ledger.sign(OWNED, receiver_id, *actions, key=key, nonce=nonce)
            with pytest.raises(InvalidTransactionError) as caught:
                ledger.world.submit(signed)
            missing = {"account_id": OWNED, "public_key": str(public(key))}
            assert caught.value.error == {"InvalidAccessKeyError": {"AccessKeyNotFound": missing}}
    gap = ledger.sign(OWNED, OWNED, action, key="owner", nonce=nonce + 1)
    ledger.world.submit(gap)  # the transaction before it might still arrive
    ledger.world.settle()
    assert ledger.account(OWNED).bootstrap_nonce == nonce - 1
