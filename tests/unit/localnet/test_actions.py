"""What each action does, who may do it, and the exact error where somebody may not."""

from typing import Any

import pytest
from msgspec import structs

from ledgerkit.localnet.actions import EthereumWallet
from ledgerkit.localnet.chain_types import NO_CODE, DistributionReceipt
from ledgerkit.localnet.contract_sdk import Contract, call, to_json
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.localnet.promises import Promise
from ledgerkit.protocol import (
    AccessKey,
    AddKey,
    CreateAccount,
    CryptoHash,
    Delegate,
    DelegateAction,
    DelegateActionV2,
    DeleteAccount,
    DeleteKey,
    DeployContract,
    DeployGlobalContract,
    DeterministicStateInit,
    FunctionCall,
    FunctionCallPermission,
    Stake,
    StateInit,
    Transfer,
    UseGlobalContract,
    deterministic_account_id,
    implicit_account_id,
    receipt_id_of,
)
from tests.unit.localnet.ledger import (
    PRICE,
    START,
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

RECEIPT = 108_059_500_000
TRANSFER = 115_123_062_500
DELEGATE = 200_000_000_000
BYTE = 10**19  # yoctoNEAR locked for a byte
ETH = "0x" + "ab" * 20


@pytest.fixture
def ledger():
    """Return a chain with two people, a contract and the registrar."""
    return Ledger("alice.near", "bob.near", "registrar", scripts=["s.near"])


def failure(ledger, *args, index=0):
    """Run a transaction that fails at an action; give its kind of error."""
    outcome = ledger.run(*args)
    assert index_of(outcome) == index
    assert ledger.is_whole()
    return result_of(outcome)


# Creating accounts -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sub.bob.near", "a.b.alice.near", "xalice.near"])
def test_nobody_elses_sub_account(ledger, name):
    """Another's sub-account, one two labels deep, and a neighbour's name are not allowed."""
    assert failure(ledger, "alice.near", name, CreateAccount(), Transfer(N)) == {
        "CreateAccountNotAllowed": {"account_id": name, "predecessor_id": "alice.near"}
    }


def test_top_level_names_are_the_registrars(ledger):
    """Only `registrar` may create an account without a dot, however long the name."""
    name = "x" * 63
    assert failure(ledger, "alice.near", name, CreateAccount(), Transfer(N)) == {
        "CreateAccountOnlyByRegistrar": {
            "account_id": name,
            "registrar_account_id": "registrar",
            "predecessor_id": "alice.near",
        }
    }
    ledger.run("registrar", name, CreateAccount(), Transfer(N))
    assert ledger.account(name).amount == N


@pytest.mark.parametrize("name", ["ab" * 32, ETH, "0s" + "ab" * 20])
def test_implicit_names_are_not_created(ledger, name):
    """An id that stands for a key, an address or code comes to exist by a transfer only."""
    assert failure(ledger, "alice.near", name, CreateAccount(), Transfer(N)) == {
        "OnlyImplicitAccountCreationAllowed": {"account_id": name}
    }


def test_an_account_is_created_once(ledger):
    """What exists already is not created, and keeps what it has."""
    assert failure(ledger, "alice.near", "bob.near", CreateAccount()) == {
        "AccountAlreadyExists": {"account_id": "bob.near"}
    }
    error = failure(ledger, "alice.near", "a.alice.near", CreateAccount(), CreateAccount(), index=1)
    assert error == {"AccountAlreadyExists": {"account_id": "a.alice.near"}}
    assert ledger.account("a.alice.near") is None


def test_a_new_account_is_its_creators_for_that_receipt(ledger):
    """Once created in the receipt, the account itself adds keys, deploys and even deletes."""
    outcome = ledger.run(
        "alice.near",
        "sub.alice.near",
        CreateAccount(),
        Transfer(N),
        AddKey(public("k")),
        DeployContract(Script.code),
        do(["write", "k", "v"]),
    )
    account = ledger.account("sub.alice.near")
    assert account.code_hash == Script.code_hash
    # The account, a full key, the code, and a record of one letter and one.
    assert account.storage_usage == 100 + 82 + len(Script.code) + 42
    assert outcome.logs == ()
    ledger.run(
        "alice.near", "b.alice.near", CreateAccount(), Transfer(N), DeleteAccount("bob.near")
    )
    assert ledger.account("b.alice.near") is None
    assert ledger.account("bob.near").amount == 1001 * N


# Implicit accounts -----------------------------------------------------------------------


def test_a_transfer_creates_the_account_of_a_key(ledger):
    """64 hexadecimal digits: 182 bytes, and the key itself with full access."""
    name = implicit_account_id(public("ivy"))
    outcome = ledger.run("alice.near", name, Transfer(5))
    account = ledger.account(name)
    assert (account.amount, account.storage_usage) == (5, 182)
    key = ledger.access_key(name, "ivy")
    assert key == AccessKey((outcome.block_height - 1) * 10**6)
    ledger.run("alice.near", name, Transfer(N))
    assert ledger.account(name).amount == N + 5
    assert ledger.is_whole()


def test_a_transfer_creates_the_account_of_an_address(ledger):
    """`0x` and 40 digits: the shared wallet contract, and no key."""
    ledger.run("alice.near", ETH, Transfer(5))
    account = ledger.account(ETH)
    assert account.amount == 5
    assert account.code_hash == NO_CODE
    assert account.global_contract == EthereumWallet.code_hash
    assert list(ledger.world.state().access_keys(ETH)) == []
    assert account.storage_usage == 132  # the account, and the hash of the contract


@pytest.mark.parametrize(
    ("name", "actions"),
    [
        ("ab" * 32, (Transfer(1), Transfer(1))),
        ("0s" + "ab" * 20, (Transfer(1), Transfer(1))),
        ("new.near", (Transfer(1),)),
        ("ab" * 32, (do(),)),
    ],
    ids=["two", "deterministic", "named", "call"],
)
def test_only_a_lone_transfer_creates_an_account(ledger, name, actions):
    """Two transfers, a call and a named receiver create nothing."""
    error = failure(ledger, "alice.near", name, *actions)
    assert error == {"AccountDoesNotExist": {"account_id": name}}


def test_a_transfer_creates_the_account_of_a_state(ledger):
    """`0s` and 40 digits: 100 bytes, no key, and no code before the state is initialized."""
    name = "0s" + "ab" * 20
    outcome = ledger.run("alice.near", name, Transfer(5))
    account = ledger.account(name)
    assert (account.amount, account.storage_usage, account.code_hash) == (5, 100, NO_CODE)
    assert list(ledger.world.state().access_keys(name)) == []
    # The creation burns 0.007 NEAR in all, instead of 7.2 Tgas at 10^8.
    charge = 7 * 10**21 - 7_200_000_000_000 * PRICE
    assert outcome.tokens_burnt == outcome.gas_burnt * PRICE + charge
    assert failure(ledger, "bob.near", name, do()) == {
        "FunctionCallError": {"CompilationError": {"CodeDoesNotExist": {"account_id": name}}}
    }


# Keys ------------------------------------------------------------------------------------


def test_a_new_keys_nonce_is_of_its_height(ledger):
    """(executing height - 1) * 10^6, whatever the action asks for; storage grows by the key."""
    wanted = AccessKey(77, FunctionCallPermission(5, "s.near", ["a", "bc"]))
    ledger.run("alice.near", "alice.near", AddKey(public("k"), wanted))
    held = ledger.access_key("alice.near", "k")
    assert held == AccessKey(START * 10**6, wanted.permission)
    # key 33; nonce 8, kind 1, allowance 17, receiver 10, names 4 + 5 + 6; and 40.
    assert ledger.account("alice.near").storage_usage == 182 + 33 + 51 + 40


def test_a_key_is_added_once(ledger):
    """A second time the key exists already."""
    assert failure(ledger, "alice.near", "alice.near", AddKey(public("alice.near"))) == {
        "AddKeyAlreadyExists": {
            "account_id": "alice.near",
            "public_key": str(public("alice.near")),
        }
    }


@pytest.mark.parametrize(
    "action",
    [
        DeployContract(b"code"),
        Stake(1, public("v")),
        AddKey(public("k")),
        DeleteKey(public("bob.near")),
        DeleteAccount("alice.near"),
        DeployGlobalContract(b"code", "CodeHash"),
        UseGlobalContract("s.near"),
    ],
    ids=lambda action: type(action).__name__,
)
def test_what_only_the_account_itself_may(ledger, action):
    """Somebody else's account exists, but permits nothing; one that does not exist, less."""
    assert failure(ledger, "alice.near", "bob.near", action) == {
        "ActorNoPermission": {"account_id": "bob.near", "actor_id": "alice.near"}
    }
    assert failure(ledger, "alice.near", "no.alice.near", action) == {
        "AccountDoesNotExist": {"account_id": "no.alice.near"}
    }


# Deleting accounts -----------------------------------------------------------------------


def test_a_deleted_account_leaves_all_to_its_beneficiary(ledger):
    """Keys, code and records are gone, the balance arrives a block later."""
    ledger.run("s.near", "s.near", do(["write", "k", "v"]))
    outcome = ledger.run("s.near", "s.near", DeleteAccount("bob.near"))
    state = ledger.world.state()
    assert state.account("s.near") is None
    assert list(state.access_keys("s.near")) == []
    assert list(state.records("s.near")) == []
    left = ledger.receipt(outcome.receipt_ids[0])
    assert (left.predecessor_id, left.receiver_id, left.gas_price) == ("system", "bob.near", 0)
    assert ledger.account("bob.near").amount == 1000 * N + left.actions[0].deposit
    assert ledger.outcome(left.receipt_id).block_height == outcome.block_height + 1
    assert state.account("s.near") is None
    assert ledger.world.state(START).data("s.near", b"k") is None


def test_a_large_account_is_not_deleted(ledger):
    """More than 10,000 bytes without the code must be cleared first."""
    ledger.run("s.near", "s.near", do(["write", "k", "v" * 10_000]))
    assert failure(ledger, "s.near", "s.near", DeleteAccount("bob.near")) == {
        "DeleteAccountWithLargeState": {"account_id": "s.near"}
    }
    ledger.run("s.near", "s.near", do(["remove", "k"]))
    ledger.run("s.near", "s.near", DeleteAccount("bob.near"))
    assert ledger.account("s.near") is None


def test_ten_thousand_bytes_may_be_deleted():
    """The limit is inclusive, and code does not count."""
    genesis = Genesis()
    held = 10_000 - 100 - 82 - 40 - 1
    records = [(b"k", bytes(held))]
    genesis.account("x.near", N, keys=[public("x.near")], contract=Script, records=records)
    ledger = Ledger("bob.near", genesis=genesis)
    assert ledger.account("x.near").storage_usage == 10_000 + len(Script.code)
    ledger.run("x.near", "x.near", DeleteAccount("bob.near"))
    assert ledger.account("x.near") is None


def test_a_staking_account_is_not_deleted():
    """What is locked keeps the account."""
    genesis = Genesis()
    genesis.account(
        "v.near", 5 * N, keys=[public("v.near")], locked=3 * N, validator_key=public("v")
    )
    ledger = Ledger("bob.near", genesis=genesis)
    assert failure(ledger, "v.near", "v.near", DeleteAccount("bob.near")) == {
        "DeleteAccountStaking": {"account_id": "v.near"}
    }


# Storage ---------------------------------------------------------------------------------


def test_the_shortfall_is_exact():
    """A contract lacks what its bytes cost, less what it has and was sent; the index is null."""
    genesis = Genesis()
    genesis.account("poor.near", 3 * BYTE, contract=Script)
    ledger = Ledger("alice.near", genesis=genesis)
    usage = 100 + len(Script.code) + 41 + 700
    call = do(["write", "k", "v" * 700], deposit=2 * BYTE)
    outcome = ledger.run("alice.near", "poor.near", call)
    amount = str((usage - 5) * BYTE)
    assert result_of(outcome) == {
        "LackBalanceForState": {"account_id": "poor.near", "amount": amount}
    }
    assert index_of(outcome) is None
    call = do(["write", "k", "v" * 700], deposit=(usage - 3) * BYTE)
    ledger.run("alice.near", "poor.near", call)
    assert ledger.account("poor.near").storage_usage == usage


def test_small_accounts_pay_for_no_bytes():
    """Up to 770 bytes an account may be empty; at 771 it may not."""
    genesis = Genesis()
    genesis.account("free.near", 0, contract=Script)
    ledger = Ledger("alice.near", genesis=genesis)
    room = 770 - 100 - len(Script.code) - 41
    ledger.run("alice.near", "free.near", do(["write", "k", "v" * room]))
    assert ledger.account("free.near").storage_usage == 770
    held = ledger.account("free.near").amount
    assert held < BYTE * 770
    outcome = ledger.run("alice.near", "free.near", do(["write", "k", "v" * (room + 1)]))
    assert result_of(outcome) == {
        "LackBalanceForState": {"account_id": "free.near", "amount": str(771 * BYTE - held)}
    }


def test_what_is_locked_pays_for_bytes_too():
    """Balance and stake count together."""
    genesis = Genesis()
    records = [(b"k", bytes(100_000))]
    key = public("v.near")
    genesis.account("v.near", N, keys=[key], locked=2 * N, validator_key=key, records=records)
    ledger = Ledger(genesis=genesis)
    outcome = ledger.run("v.near", "v.near", Transfer(1))
    assert index_of_success(outcome)


def index_of_success(outcome):
    return not hasattr(outcome.status, "error")


# Code ------------------------------------------------------------------------------------


def test_global_code_burns_its_bytes(ledger):
    """10^20 yocto a byte of the account itself, in tokens_burnt, beside the price of the gas."""
    before = ledger.account("alice.near").amount
    outcome = ledger.run("alice.near", "alice.near", DeployGlobalContract(bytes(70), "CodeHash"))
    paid = outcome.gas_burnt * PRICE + 70 * 10**20
    assert outcome.tokens_burnt == paid
    sent = 108_059_500_000 + 184_765_750_000 + 70 * 6_812_999
    assert ledger.account("alice.near").amount == before - paid - sent * PRICE
    assert ledger.account("alice.near").storage_usage == 182
    assert ledger.is_whole()


def test_global_code_must_be_paid_for(ledger):
    """A byte more than the account has NEAR for is an error with the whole price."""
    genesis = Genesis()
    genesis.account("poor.near", N, keys=[public("poor.near")])
    ledger = Ledger(genesis=genesis)
    code = bytes(10_000)
    error = failure(ledger, "poor.near", "poor.near", DeployGlobalContract(code, "AccountId"))
    assert error == {"LackBalanceForState": {"account_id": "poor.near", "amount": str(N)}}
    assert ledger.world.state().global_code_hash("poor.near") is None


def test_local_code_is_not_global(ledger):
    """What is deployed to an account, or published by its name, has no global hash."""
    ledger.run("alice.near", "alice.near", DeployGlobalContract(Script.code, "AccountId"))
    identifier = {"hash": str(Script.code_hash)}
    error = failure(ledger, "bob.near", "bob.near", UseGlobalContract(Script.code_hash))
    assert error == {"GlobalContractDoesNotExist": {"identifier": identifier}}


def test_global_code_is_used_by_its_hash(ledger):
    """Published once, it runs elsewhere, where it takes the 32 bytes of its name."""
    ledger.run("alice.near", "alice.near", DeployGlobalContract(Script.code, "CodeHash"))
    ledger.run("bob.near", "bob.near", UseGlobalContract(Script.code_hash))
    account = ledger.account("bob.near")
    assert account.global_contract == Script.code_hash
    assert account.code_hash == NO_CODE
    assert account.storage_usage == 182 + 32
    assert result_of(ledger.run("alice.near", "bob.near", do(["value", 5]))) == 5


def test_global_code_goes_from_shard_to_shard():
    """A receipt carries it to the publisher's shard, then to the others in their order."""
    ledger = Ledger("alice.near", boundaries=("h", "p"), shard_ids=(9, 2, 5))
    for _ in range(2):
        outcome = ledger.run("alice.near", "alice.near", DeployGlobalContract(b"c", "AccountId"))
    receipts = ledger.world.receipts()
    first, second, third = [r for r in receipts if isinstance(r, DistributionReceipt)][-3:]
    height = outcome.block_height
    assert first == DistributionReceipt(
        receipt_id_of(outcome.id, height, 0),
        "alice.near",
        "system",
        "alice.near",
        CryptoHash.of(b"c"),
        target_shard=9,
        nonce=2,
    )
    second_id = receipt_id_of(first.receipt_id, height + 1, 0)
    assert second == structs.replace(
        first, receipt_id=second_id, target_shard=2, delivered_shards=(9,)
    )
    third_id = receipt_id_of(second_id, height + 2, 0)
    assert third == structs.replace(
        first, receipt_id=third_id, target_shard=5, delivered_shards=(2, 9)
    )
    # It takes the first place among the new receipts, but only the refund is in the outcome.
    assert outcome.receipt_ids == (receipt_id_of(outcome.id, height, 1),)


def test_global_code_is_not_there_at_once(ledger):
    """The next action finds none: it arrives with the next block, and then it can be used."""
    actions = [DeployGlobalContract(Script.code, "CodeHash"), UseGlobalContract(Script.code_hash)]
    error = failure(ledger, "alice.near", "alice.near", *actions, index=1)
    assert error == {"GlobalContractDoesNotExist": {"identifier": {"hash": str(Script.code_hash)}}}
    outcome = ledger.run("alice.near", "alice.near", actions[0])
    heights = (outcome.block_height, outcome.block_height + 1)
    codes = [ledger.world.state(height).global_code_hash(Script.code_hash) for height in heights]
    assert codes == [None, Script.code_hash]


def test_global_code_is_followed_by_its_owner(ledger):
    """By the publisher's name, which takes the bytes of the name; unknown names fail."""
    assert failure(ledger, "bob.near", "bob.near", UseGlobalContract("alice.near")) == {
        "GlobalContractDoesNotExist": {"identifier": {"account_id": "alice.near"}}
    }
    ledger.run("alice.near", "alice.near", DeployGlobalContract(Script.code, "AccountId"))
    ledger.run("bob.near", "bob.near", UseGlobalContract("alice.near"))
    assert ledger.account("bob.near").storage_usage == 182 + len("alice.near")
    assert result_of(ledger.run("alice.near", "bob.near", do(["value", 6]))) == 6


# Deterministic accounts ------------------------------------------------------------------


BIG = StateInit(Script.code_hash, {b"key": bytes(100_000)})
BIG_STAKE = 1_001_750_000_000_000_000_000_000  # nearcore, test-loop-tests: by_hash_above_zba


@pytest.fixture
def published(ledger):
    """Return the chain with the contract published by its hash."""
    ledger.run("alice.near", "alice.near", DeployGlobalContract(Script.code, "CodeHash"))
    return ledger


def start(ledger, state_init, deposit, *more, signer="alice.near"):
    """Initialize a deterministic account; give its id and the receipt's outcome."""
    name = deterministic_account_id(state_init)
    return name, ledger.run(signer, name, DeterministicStateInit(state_init, deposit), *more)


def deposit_refunds(ledger, outcome):
    """List whom a receipt returned deposits, and how much."""
    receipts = [ledger.receipt(receipt_id) for receipt_id in outcome.receipt_ids]
    returned = [r for r in receipts if (r.predecessor_id, r.signer_id) == ("system", "system")]
    return [(r.receiver_id, r.actions[0].deposit) for r in returned]


def test_an_initial_state_is_an_account(published):
    """Its code runs, its records are there; it has no key, and 100 + 32 bytes and its records."""
    state_init = StateInit(Script.code_hash, {b"a": b"one", b"b": b"two"})
    name, outcome = start(published, state_init, 0)
    account = published.account(name)
    assert (account.amount, account.global_contract) == (0, Script.code_hash)
    assert account.storage_usage == 100 + 32 + 2 * (1 + 3 + 40)
    assert list(published.world.state().access_keys(name)) == []
    assert dict(published.world.state().records(name)) == state_init.data
    assert result_of(published.run("bob.near", name, do(["value", 4]))) == 4
    charge = 7 * 10**21 - 7_200_000_000_000 * PRICE
    assert outcome.tokens_burnt == outcome.gas_burnt * PRICE + charge
    gas = RECEIPT + 7_430_000_000_000 + 2 * 200_000_000_000 + 8 * 70_000_000
    assert outcome.gas_burnt == gas


def test_only_the_needed_deposit_is_kept(published):
    """Exactly the storage stake stays; the rest returns to the sender of a successful receipt."""
    before = published.account("alice.near").amount
    name, outcome = start(published, BIG, 5 * N)
    assert published.account(name).amount == BIG_STAKE
    assert deposit_refunds(published, outcome) == [("alice.near", 5 * N - BIG_STAKE)]
    assert 0 < before - BIG_STAKE - published.account("alice.near").amount < N // 10
    # The second time nothing happens, and everything returns.
    _, outcome = start(published, BIG, 5 * N, signer="bob.near")
    assert index_of_success(outcome)
    assert deposit_refunds(published, outcome) == [("bob.near", 5 * N)]
    assert published.account(name).amount == BIG_STAKE
    assert published.is_whole()


def test_a_state_may_be_paid_for_before(published):
    """A transfer creates the account without code; the state then needs no deposit."""
    name = deterministic_account_id(BIG)
    error = failure(published, "alice.near", name, DeterministicStateInit(BIG, 7), index=None)
    assert error == {"LackBalanceForState": {"account_id": str(name), "amount": str(BIG_STAKE - 7)}}
    assert published.account(name) is None
    published.run("bob.near", name, Transfer(BIG_STAKE - 7))
    _, outcome = start(published, BIG, 8)
    assert published.account(name).amount == BIG_STAKE
    assert deposit_refunds(published, outcome) == [("alice.near", 1)]


def test_a_state_needs_its_code(ledger):
    """Code that nobody published fails the receipt, and all of the deposit returns."""
    state_init = StateInit("alice.near")
    name, outcome = start(ledger, state_init, N)
    identifier = {"account_id": "alice.near"}
    assert result_of(outcome) == {"GlobalContractDoesNotExist": {"identifier": identifier}}
    assert deposit_refunds(ledger, outcome) == [("alice.near", N)]
    assert ledger.account(name) is None


def test_the_creator_is_not_the_owner(published):
    """The actions after the state are the sender's: no key and no code are added."""
    state_init = StateInit(Script.code_hash)
    name, outcome = start(published, state_init, 0, AddKey(public("k")))
    denied = {"account_id": str(name), "actor_id": "alice.near"}
    assert result_of(outcome) == {"ActorNoPermission": denied}
    assert index_of(outcome) == 1
    assert published.account(name) is None
    start(published, state_init, 0, Transfer(3), do(["value", 1]))
    assert published.account(name).amount > 3  # with its reward


# Stakes ----------------------------------------------------------------------------------


def test_a_stake_locks_at_once(ledger):
    """Beyond what is locked already it comes out of the balance; less locks nothing."""
    before = ledger.account("alice.near").amount
    ledger.send("alice.near", "alice.near", Stake(30 * N, public("v")))
    ledger.world.advance()
    account = ledger.account("alice.near")
    assert account.locked == 30 * N
    assert account.amount < before - 30 * N
    ledger.run("alice.near", "alice.near", Stake(10 * N, public("v")))
    assert ledger.account("alice.near").locked == 30 * N
    assert ledger.is_whole()


def test_a_proposal_is_in_the_chunk_after(ledger):
    """The chunk that tells the results of the stake's block lists it."""
    outcome = ledger.run("alice.near", "alice.near", Stake(30 * N, public("v")))
    block = ledger.world.chain.by_height(outcome.block_height + 1)
    found = [proposal for chunk in block.chunks for proposal in chunk.validator_proposals]
    assert [(p.account_id, p.public_key, p.stake) for p in found] == [
        ("alice.near", public("v"), 30 * N)
    ]


def test_stakes_that_cannot_be(ledger):
    """Nothing to unstake, more than there is, less than the least: the exact errors."""
    assert failure(ledger, "alice.near", "alice.near", Stake(0, public("v"))) == {
        "TriesToUnstake": {"account_id": "alice.near"}
    }
    error = failure(ledger, "alice.near", "alice.near", Stake(2000 * N, public("v")))
    assert list(error) == ["TriesToStake"]
    held = error["TriesToStake"]
    assert held["account_id"] == "alice.near"
    assert (held["stake"], held["locked"]) == (str(2000 * N), "0")
    assert 999 * N < int(held["balance"]) < 1000 * N
    assert failure(ledger, "alice.near", "alice.near", Stake(N - 1, public("v"))) == {
        "InsufficientStake": {
            "account_id": "alice.near",
            "stake": str(N - 1),
            "minimum_stake": str(N),
        }
    }


def test_a_stake_that_rolls_back_is_no_proposal(ledger):
    """A batch that fails after it locks nothing and proposes nothing."""
    actions = (Stake(30 * N, public("v")), DeleteKey(public("absent")))
    failure(ledger, "alice.near", "alice.near", *actions, index=1)
    assert ledger.account("alice.near").locked == 0
    proposals = [c.validator_proposals for b in ledger.world.chain.blocks() for c in b.chunks]
    assert not any(proposals)


# Delegated actions -----------------------------------------------------------------------


def delegate(*actions, version=DelegateAction, signer="bob.near", **more):
    """Let bob sign actions for the contract."""
    key = secret(signer)
    given = {
        "sender_id": "bob.near",
        "receiver_id": "s.near",
        "nonce": 50,
        "max_block_height": START + 100,
        "public_key": key.public_key,
    }
    return version(actions=actions, **given | more).sign(key)


@pytest.mark.parametrize("version", [DelegateAction, DelegateActionV2])
def test_a_relayer_pays_for_what_another_signed(ledger, version):
    """The call's predecessor is the sender, its signer the relayer, who pays all of it."""
    steps = ["tell", "predecessor_id", "signer_id"]
    outcome = ledger.run("alice.near", "bob.near", delegate(do(steps), version=version))
    called, refund = ledger.children(outcome)
    assert result_of(called) == ["bob.near", "alice.near"]
    assert ledger.receipt(refund.id).receiver_id == "alice.near"
    assert [ledger.receipt(child).receiver_id for child in called.receipt_ids] == ["alice.near"]
    assert ledger.account("bob.near").amount == 1000 * N
    assert ledger.access_key("bob.near").nonce == 50
    assert outcome.block_height + 1 == called.block_height
    assert ledger.is_whole()


def test_a_delegate_burns_its_own_and_the_inner_sending(ledger):
    """The transaction pays for sending what is inside too, and the receipt for sending it again."""
    inner = Transfer(5 * N)
    tx_hash = ledger.send("alice.near", "bob.near", delegate(inner))
    ledger.world.advance()
    paid = 1000 * N - ledger.account("alice.near").amount
    sent = RECEIPT + DELEGATE + TRANSFER
    carried = RECEIPT + DELEGATE + TRANSFER + RECEIPT + TRANSFER
    assert paid == sent * PRICE + carried * 10**9 + 5 * N
    ledger.world.settle()
    outcome = ledger.children(ledger.outcome(tx_hash))[0]
    assert outcome.gas_burnt == RECEIPT + DELEGATE + TRANSFER
    moved, _ = ledger.children(outcome)
    assert moved.gas_burnt == RECEIPT + TRANSFER
    burnt = sent + outcome.gas_burnt + moved.gas_burnt
    assert ledger.account("alice.near").amount == 995 * N - burnt * PRICE
    assert ledger.account("s.near").amount == 1005 * N


def test_a_failed_deposit_goes_back_to_the_sender(ledger):
    """The relayer paid it; the sender, who made the receipt, gets it."""
    outcome = ledger.run("alice.near", "bob.near", delegate(do(["panic", "no"], deposit=5 * N)))
    failed, _ = ledger.children(outcome)
    deposit, gas = (ledger.receipt(child) for child in failed.receipt_ids)
    assert (deposit.receiver_id, deposit.actions) == ("bob.near", (Transfer(5 * N),))
    assert gas.receiver_id == "alice.near"
    assert ledger.account("bob.near").amount == 1005 * N
    assert ledger.is_whole()


def forged(signed):
    """Let somebody else have signed it."""
    return Delegate(signed.delegate_action, secret("alice.near").sign(signed.delegate_action.hash))


STALE = {"max_block_height": START}
OTHER = {"sender_id": "carol.near"}
UNKNOWN = {"signer": "stranger", **OTHER}
ERRORS = [
    (
        forged(delegate(Transfer(1), nonce=0, **STALE, **UNKNOWN)),
        "DelegateActionInvalidSignature",
    ),
    (delegate(Transfer(1), nonce=0, **STALE, **UNKNOWN), "DelegateActionExpired"),
    (
        delegate(Transfer(1), nonce=0, **UNKNOWN),
        {
            "DelegateActionSenderDoesNotMatchTxReceiver": {
                "sender_id": "carol.near",
                "receiver_id": "bob.near",
            }
        },
    ),
    (
        delegate(Transfer(1), nonce=0, signer="stranger"),
        {
            "DelegateActionAccessKeyError": {
                "AccessKeyNotFound": {
                    "account_id": "bob.near",
                    "public_key": str(public("stranger")),
                }
            }
        },
    ),
    (
        delegate(Transfer(1), nonce=9, signer="limited"),
        {"DelegateActionInvalidNonce": {"delegate_nonce": 9, "ak_nonce": 9}},
    ),
    (
        delegate(Transfer(1), nonce=(START + 2) * 10**6, signer="limited"),
        {
            "DelegateActionNonceTooLarge": {
                "delegate_nonce": (START + 2) * 10**6,
                "upper_bound": (START + 2) * 10**6,
            }
        },
    ),
    (
        delegate(Transfer(1), signer="limited"),
        {"DelegateActionAccessKeyError": "RequiresFullAccess"},
    ),
    (
        delegate(do(deposit=1), receiver_id="bob.near", signer="limited"),
        {"DelegateActionAccessKeyError": "DepositWithFunctionCall"},
    ),
    (
        delegate(do(), receiver_id="bob.near", signer="limited"),
        {
            "DelegateActionAccessKeyError": {
                "ReceiverMismatch": {"tx_receiver": "bob.near", "ak_receiver": "s.near"}
            }
        },
    ),
    (
        delegate(do(), signer="limited"),
        {"DelegateActionAccessKeyError": {"MethodNameMismatch": {"method_name": "do"}}},
    ),
]


@pytest.mark.parametrize(("action", "error"), ERRORS, ids=map(str, range(len(ERRORS))))
def test_delegates_fail_in_order(action, error):
    """Each has the flaws of the ones after it, as far as they go together; the first is told."""
    genesis = Genesis()
    limited = FunctionCallPermission(None, "s.near", ["only"])
    keys = [public("bob.near"), (public("limited"), AccessKey(9, limited))]
    genesis.account("bob.near", 1000 * N, keys=keys)
    ledger = Ledger("alice.near", scripts=["s.near"], genesis=genesis)
    outcome = ledger.run("alice.near", "bob.near", action)
    assert result_of(outcome) == error
    assert index_of(outcome) == 0
    assert ledger.access_key("bob.near", "limited").nonce == 9
    assert ledger.account("bob.near").amount == 1000 * N
    assert ledger.is_whole()


def test_a_delegate_that_fails_gives_the_relayer_its_deposit(ledger):
    """Nothing was sent in the sender's name, so the outer receipt's predecessor gets it."""
    outcome = ledger.run("alice.near", "bob.near", delegate(Transfer(5 * N), **STALE))
    assert result_of(outcome) == "DelegateActionExpired"
    deposit, gas = (ledger.receipt(child) for child in outcome.receipt_ids)
    assert (deposit.receiver_id, deposit.actions) == ("alice.near", (Transfer(5 * N),))
    assert gas.receiver_id == "alice.near"
    assert ledger.is_whole()


def test_a_delegate_is_valid_up_to_its_height(ledger):
    """At exactly max_block_height it still runs."""
    good = delegate(do(["value", 1]), max_block_height=START + 2)
    outcome = ledger.run("alice.near", "bob.near", good)
    assert result_of(ledger.children(outcome)[0]) == 1


def test_a_delegate_is_used_once(ledger):
    """Relayed a second time, its nonce is spent."""
    signed = delegate(Transfer(1))
    ledger.run("alice.near", "bob.near", signed)
    assert failure(ledger, "alice.near", "bob.near", signed) == {
        "DelegateActionInvalidNonce": {"delegate_nonce": 50, "ak_nonce": 50}
    }


def test_delegated_account_keys_are_the_senders(ledger):
    """A sender adds a key to itself through a relayer: actor and receiver are the same."""
    outcome = ledger.run(
        "alice.near", "bob.near", delegate(AddKey(public("k")), receiver_id="bob.near")
    )
    assert index_of_success(ledger.children(outcome)[0])
    assert ledger.access_key("bob.near", "k") is not None


# Receipts of contracts -------------------------------------------------------------------


def test_a_receipt_of_a_contract_is_checked(subtests):
    """Its actions are those that a transaction may have; otherwise the call fails."""
    ledger = Ledger("alice.near", "bob.near", scripts=["s.near"])
    cases = {
        "FunctionCallZeroAttachedGas": ["call", "a", "bob.near", [], {"gas": 0}],
        "DeleteActionMustBeFinal": [
            *("batch", "a", "bob.near"),
            *(["delete_account", "alice.near"], ["transfer", 1]),
        ],
    }
    for name, step in cases.items():
        with subtests.test(name=name):
            outcome = ledger.run("alice.near", "s.near", do(["write", "k", "v"], step, deposit=5))
            error = {"NewReceiptValidationError": {"ActionsValidation": name}}
            assert (result_of(outcome), index_of(outcome)) == (error, 0)
            assert deposit_refunds(ledger, outcome) == [("alice.near", 5)]
            assert dict(ledger.world.state().records("s.near")) == {}
    assert ledger.is_whole()


class Large(Contract):
    """Returns long texts, and waits for two of them."""

    @call()
    def make(self, size: int) -> str:
        return "x" * size

    @call()
    def wait(self, sizes: list[int]) -> Promise:
        """Count the results of two calls."""
        made = [
            self.vm.promise("large.near").function_call(
                "make", to_json({"size": size}), gas=300 * TGAS
            )
            for size in sizes
        ]
        joined = self.vm.join(*made)
        return joined.then("large.near").function_call("count", b"{}", gas=10 * TGAS)

    @call()
    def count(self) -> int:
        return len(self.vm.promise_results)


@pytest.mark.parametrize("profile", ["86", "87"])
def test_the_results_of_a_callback_have_a_limit(profile):
    """Since version 87 (nearcore #16097), 4,194,944 bytes with 5 for each; no action runs then."""
    results: list[Any] = []
    for length in (2_097_465, 2_097_466):  # of each of two texts, with two quotes and 5 bytes
        genesis = Genesis()
        genesis.account("large.near", 100 * N, keys=[public("large.near")], contract=Large)
        ledger = Ledger("alice.near", genesis=genesis, profile=profile)
        args = to_json({"sizes": [length, length]})
        outcome = ledger.run("alice.near", "large.near", FunctionCall("wait", args, 900 * TGAS))
        callback = ledger.outcome(result_of(outcome))
        results.append(result_of(callback))
    assert results[0] == 2
    if profile == "86":
        assert results[1] == 2
        return
    exceeded = {"size": 4_194_946, "limit": 4_194_944}
    assert results[1] == {"TotalPromiseInputSizeExceeded": exceeded}
    assert index_of(callback) is None
    assert callback.gas_burnt == RECEIPT
    assert ledger.is_whole()
