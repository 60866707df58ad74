"""The checks of a transaction, in the node's order: each hides the ones after it."""

from functools import cache, partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.localnet import fees, transaction_validity
from ledgerkit.localnet.execution_errors import InvalidTransactionError
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.protocol import (
    AccessKey,
    Action,
    AddKey,
    CreateAccount,
    DelegateAction,
    DelegateActionV2,
    DeleteAccount,
    DeleteKey,
    DeployContract,
    DeployGlobalContract,
    DeterministicStateInit,
    FullAccess,
    FunctionCall,
    FunctionCallPermission,
    GasKeyFullAccess,
    GasKeyFunctionCall,
    PublicKey,
    SecretKey,
    Signature,
    SignedTransaction,
    Stake,
    StateInit,
    Transaction,
    Transfer,
    TransferToGasKey,
    WithdrawFromGasKey,
    deterministic_account_id,
)
from ledgerkit.units import U128_MAX
from tests.unit.localnet.ledger import START, TGAS, Ledger, N, do, public, secret

MIB = 2**20
SECP = PublicKey("secp256k1", bytes(range(1, 65)))
ORDER = """
    Expired
    TotalNumberOfActionsExceeded
    DeleteActionMustBeFinal
    DelegateActionMustBeOnlyOne
    FunctionCallZeroAttachedGas
    FunctionCallMethodNameLengthExceeded
    FunctionCallArgumentsLengthExceeded
    ContractSizeExceeded
    UnsuitableStakingKey
    InvalidAccountId
    AddKeyMethodNameLengthExceeded
    AddKeyMethodNamesNumberOfBytesExceeded
    TotalPrepaidGasExceeded
    InvalidTransactionVersion
    TransactionSizeExceeded
    InvalidSignature
    CostOverflow
    SignerDoesNotExist
    AccessKeyNotFound
    InvalidNonceIndex
    InvalidNonce
    NotEnoughBalance
    NotEnoughAllowance
    LackBalanceForState
    RequiresFullAccess
    DepositWithFunctionCall
    ReceiverMismatch
    MethodNameMismatch
""".split()
NAMES = {"account_id": "carol.near", "public_key": str(public("carol.near"))}
# [Transfer, call of `other` with 1 Tgas and a deposit of 1]: to send, at 10^8;
# and to execute, with what is attached, at 10^9.
SENT = 108_059_500_000 + 115_123_062_500 + 200_000_000_000 + 5 * 47_683_715
CARRIED = 108_059_500_000 + 115_123_062_500 + 780_000_000_000 + 5 * 2_235_934 + TGAS
GAS_COST = SENT * 10**8 + CARRIED * 10**9
STATE_BALANCE = 3 * N // 2
# A key for calls of `only`: borsh of the key, of nonce, allowance, receiver and names, and 40.
assert 33 + 8 + 1 + 17 + 10 + 4 + 8 + 40 == 121


def key_error(name, **payload):
    return {"InvalidAccessKeyError": {name: payload} if payload else name}


def action_error(name, **payload):
    return {"ActionsValidation": {name: payload} if payload else name}


ERRORS = {
    "Expired": "Expired",
    "TotalNumberOfActionsExceeded": action_error(
        "TotalNumberOfActionsExceeded", total_number_of_actions=115, limit=100
    ),
    "DeleteActionMustBeFinal": action_error("DeleteActionMustBeFinal"),
    "DelegateActionMustBeOnlyOne": action_error("DelegateActionMustBeOnlyOne"),
    "FunctionCallZeroAttachedGas": action_error("FunctionCallZeroAttachedGas"),
    "FunctionCallMethodNameLengthExceeded": action_error(
        "FunctionCallMethodNameLengthExceeded", length=257, limit=256
    ),
    "FunctionCallArgumentsLengthExceeded": action_error(
        "FunctionCallArgumentsLengthExceeded", length=4 * MIB + 1, limit=4_194_304
    ),
    "ContractSizeExceeded": action_error("ContractSizeExceeded", size=4 * MIB + 1, limit=4_194_304),
    "UnsuitableStakingKey": action_error("UnsuitableStakingKey", public_key=str(SECP)),
    "InvalidAccountId": action_error("InvalidAccountId", account_id="Upper.near"),
    "AddKeyMethodNameLengthExceeded": action_error(
        "AddKeyMethodNameLengthExceeded", length=257, limit=256
    ),
    "AddKeyMethodNamesNumberOfBytesExceeded": action_error(
        "AddKeyMethodNamesNumberOfBytesExceeded", total_number_of_bytes=2001, limit=2000
    ),
    "TotalPrepaidGasExceeded": action_error(
        "TotalPrepaidGasExceeded", total_prepaid_gas=1001 * TGAS, limit=1000 * TGAS
    ),
    "InvalidTransactionVersion": "InvalidTransactionVersion",
    "TransactionSizeExceeded": {
        # version, signer, key, nonce of a lane, receiver, block; deploy, two transfers, call;
        # mode; signature
        "TransactionSizeExceeded": {
            "size": 1 + 14 + 33 + 11 + 13 + 32 + 4 + (5 + 1_572_864) + 2 * 17 + 38 + 1 + 65,
            "limit": 1_572_864,
        }
    },
    "InvalidSignature": "InvalidSignature",
    "CostOverflow": "CostOverflow",
    "SignerDoesNotExist": {"SignerDoesNotExist": {"signer_id": "carol.near"}},
    "AccessKeyNotFound": key_error("AccessKeyNotFound", **NAMES),
    "InvalidNonceIndex": {"InvalidNonceIndex": {"tx_nonce_index": 3, "num_nonces": 0}},
    "InvalidNonce": {"InvalidNonce": {"tx_nonce": 5, "ak_nonce": 5}},
    "NotEnoughBalance": {
        "NotEnoughBalance": {
            "signer_id": "carol.near",
            "balance": str(STATE_BALANCE),
            "cost": str(GAS_COST + 2000 * N + 1),
        }
    },
    "NotEnoughAllowance": key_error(
        "NotEnoughAllowance", **NAMES, allowance="1", cost=str(GAS_COST)
    ),
    "LackBalanceForState": {
        "LackBalanceForState": {
            "signer_id": "carol.near",
            "amount": str((100 + 121 + 200_045) * 10**19 - (STATE_BALANCE - GAS_COST - 2)),
        }
    },
    "RequiresFullAccess": key_error("RequiresFullAccess"),
    "DepositWithFunctionCall": key_error("DepositWithFunctionCall"),
    "ReceiverMismatch": key_error(
        "ReceiverMismatch", tx_receiver="dave.near", ak_receiver="s.near"
    ),
    "MethodNameMismatch": key_error("MethodNameMismatch", method_name="other"),
}


class Flawed:
    """A transaction with one flaw and all that are found after it, and its chain."""

    def __init__(self, first):
        self.flaws = ORDER[ORDER.index(first) :]
        genesis = Genesis()
        if "SignerDoesNotExist" not in self.flaws:
            has_state = "LackBalanceForState" in self.flaws
            genesis.account(
                "carol.near",
                STATE_BALANCE if has_state else 10 * N,
                keys=[] if "AccessKeyNotFound" in self.flaws else [self.key()],
                records=[(b"state", bytes(200_000))] if has_state else [],
            )
        profile = "84" if "InvalidTransactionVersion" in self.flaws else "86"
        self.ledger = Ledger("s.near", "dave.near", genesis=genesis, profile=profile)
        self.world = self.ledger.world

    def key(self):
        """Make the signer's key, with a nonce of 5."""
        allowance = 1 if "NotEnoughAllowance" in self.flaws else 10 * N
        names = ["only"]
        permission = FunctionCallPermission(allowance, "s.near", names)
        return public("carol.near"), AccessKey(5, permission)

    def has(self, *names):
        """Tell whether any of these flaws is to be in it."""
        return any(name in self.flaws for name in names)

    def actions(self):
        """Gather the actions, in the order in which their flaws are found."""
        found: list[Action] = []
        if self.has("TotalNumberOfActionsExceeded"):
            found += [CreateAccount()] * 101
        if self.has("DeleteActionMustBeFinal"):
            found.append(DeleteAccount("dave.near"))
        if self.has("DelegateActionMustBeOnlyOne"):
            found += [delegate()] * 2
        return [*found, *self.calls(), *self.keys(), *self.moves()]

    def calls(self):
        found: list[Action] = []
        flaw = "FunctionCallArgumentsLengthExceeded"
        if self.has(flaw):
            name = "m" * (257 if self.has("FunctionCallMethodNameLengthExceeded") else 256)
            gas = 0 if self.has("FunctionCallZeroAttachedGas") else 1
            found.append(FunctionCall(name, big(), gas))
        if self.has("ContractSizeExceeded"):
            found.append(DeployContract(big()))
        return found

    def keys(self):
        found: list[Action] = []
        if self.has("UnsuitableStakingKey"):
            found.append(Stake(1, SECP))
        if self.has("InvalidAccountId"):
            found.append(add_key("Upper.near"))
        if self.has("AddKeyMethodNameLengthExceeded"):
            found.append(add_key("s.near", "m" * 257))
        if self.has("AddKeyMethodNamesNumberOfBytesExceeded"):
            found.append(add_key("s.near", *["m" * 199] * 9, "m" * 200))
        return found

    def moves(self):
        """Gather what costs too much, and the call that the key does not allow."""
        found: list[Action] = []
        if self.has("TotalPrepaidGasExceeded"):
            found.append(FunctionCall("m", b"", 1000 * TGAS))
        if self.has("TransactionSizeExceeded"):
            found.append(DeployContract(bytes(1_572_864)))
        if self.has("CostOverflow"):
            found.append(Transfer(U128_MAX))
        if self.has("RequiresFullAccess"):
            found.append(Transfer(2000 * N if self.has("NotEnoughBalance") else 1))
        deposit = 1 if self.has("DepositWithFunctionCall") else 0
        return [*found, FunctionCall("other", b"", TGAS, deposit)]

    def sign(self):
        tx = Transaction(
            "carol.near",
            public("carol.near"),
            5 if self.has("InvalidNonce") else 6,
            "dave.near" if self.has("ReceiverMismatch") else "s.near",
            bytes(32) if self.has("Expired") else self.world.chain.head.hash,
            self.actions(),
            version=1 if self.has("InvalidNonceIndex") else 0,
            nonce_index=3 if self.has("InvalidNonceIndex") else None,
        )
        if not self.has("InvalidSignature"):
            return tx.sign(secret("carol.near"))
        return SignedTransaction(tx, secret("dave.near").sign(tx.hash))


@cache
def big():
    """Give bytes too many for code or arguments."""
    return bytes(4 * MIB + 1)


def add_key(receiver_id, *names):
    return AddKey(public("new"), AccessKey(0, FunctionCallPermission(None, receiver_id, names)))


@cache
def delegate():
    key = secret("carol.near")
    actions = [Transfer(1)]
    wanted = DelegateAction("carol.near", "dave.near", actions, 9, 9999, key.public_key)
    return wanted.sign(key)


def refusal(ledger, signed):
    """Give the error with which a transaction is not admitted."""
    with pytest.raises(InvalidTransactionError) as caught:
        ledger.world.submit(signed)
    assert not ledger.world.is_pending(signed.hash)
    return caught.value.error


def refused_by_chunk(ledger, signed):
    """Give the error with which a transaction is not included at the next height."""
    world = ledger.world
    with pytest.raises(InvalidTransactionError) as caught:
        world.check(signed, world.chain.head.height + 1)
    return caught.value.error


# The order -------------------------------------------------------------------------------


@pytest.mark.parametrize("flaw", ["Expired", *ORDER[ORDER.index("CostOverflow") :]])
def test_the_first_flaw_wins_in_a_chunk(flaw):
    """What can change is checked again, in the same order; a missing signer has another name."""
    flawed = Flawed(flaw)
    expected = ERRORS[flaw]
    if flaw == "SignerDoesNotExist":
        expected = {"InvalidSignerId": {"signer_id": "carol.near"}}
    assert refused_by_chunk(flawed.ledger, flawed.sign()) == expected


@pytest.mark.parametrize("flaw", ORDER[ORDER.index("NotEnoughBalance") :])
def test_a_nonce_too_large_is_found_before_the_balance(flaw):
    """The nonce's upper bound comes with the nonce, before balance, allowance and permission."""
    flawed = Flawed(flaw)
    tx = flawed.sign().transaction
    signed = flawed.ledger.sign(
        "carol.near", tx.receiver_id, *tx.actions, nonce=(START + 1) * 10**6
    )
    bound = (START + 1) * 10**6
    expected = {"NonceTooLarge": {"tx_nonce": bound, "upper_bound": bound}}
    assert refused_by_chunk(flawed.ledger, signed) == expected


def test_nothing_is_wrong_with_what_has_no_flaw():
    """The key calls its method of its contract, and pays for the gas from its allowance."""
    flawed = Flawed("MethodNameMismatch")
    flawed.ledger.send("carol.near", "s.near", FunctionCall("only", b"", TGAS), nonce=6)
    flawed.world.advance()
    sent = 108_059_500_000 + 200_000_000_000 + 4 * 47_683_715
    carried = 108_059_500_000 + 780_000_000_000 + 4 * 2_235_934 + TGAS
    cost = sent * 10**8 + carried * 10**9
    held = flawed.ledger.access_key("carol.near")
    assert held.nonce == 6
    assert held.permission.allowance == 10 * N - cost
    assert flawed.ledger.account("carol.near").amount == 10 * N - cost


def test_an_empty_list_of_methods_allows_all():
    """A key that names no method may call any, of its contract alone."""
    genesis = Genesis()
    key = (public("carol.near"), AccessKey(0, FunctionCallPermission(None, "s.near")))
    genesis.account("carol.near", N, keys=[key])
    ledger = Ledger(scripts=["s.near"], genesis=genesis)
    ledger.send("carol.near", "s.near", do(gas=TGAS))
    signed = ledger.sign("carol.near", "dave.near", do(gas=TGAS))
    expected = key_error("ReceiverMismatch", tx_receiver="dave.near", ak_receiver="s.near")
    ledger.world.advance()
    assert refusal(ledger, signed) == expected
    assert ledger.access_key("carol.near").permission.allowance is None


@pytest.mark.parametrize("count", [0, 2])
def test_a_key_for_calls_signs_exactly_one(count):
    """No action, or two calls, need full access."""
    genesis = Genesis()
    key = (public("carol.near"), AccessKey(0, FunctionCallPermission(None, "s.near")))
    genesis.account("carol.near", N, keys=[key])
    ledger = Ledger("s.near", genesis=genesis)
    signed = ledger.sign("carol.near", "s.near", *[do(gas=TGAS)] * count)
    assert refusal(ledger, signed) == key_error("RequiresFullAccess")


# Limits that are kept --------------------------------------------------------------------


@pytest.mark.parametrize(
    "actions",
    [
        [CreateAccount()] * 100,
        [Transfer(1), DeleteAccount("bob.near")],
        [FunctionCall("m" * 256, b"", 1)],
        [FunctionCall("a", b"", 400 * TGAS), FunctionCall("a", b"", 600 * TGAS)],
        [DeployContract(bytes(1_572_000))],
        [add_key("s.near", *["m" * 199] * 10)],
        [add_key("s.near", "m" * 256)],
        [Stake(1, public("x"))],
    ],
    ids=["actions", "delete", "name", "gas", "size", "bytes", "key", "stake"],
)
def test_limits_are_inclusive(actions):
    """What is just within a limit is admitted."""
    ledger = Ledger("alice.near")
    ledger.send("alice.near", "alice.near", *actions)
    assert len(ledger.world.mempool) == 1


@pytest.mark.parametrize(("profile", "signature"), [("84", 0), ("86", 65), ("87", 65)])
def test_a_transaction_may_have_exactly_the_largest_size(profile, signature):
    """1,572,864 bytes pass, one more does not; since version 85 the signature counts."""
    # Source: nearcore, core/primitives/src/transaction.rs, SignedTransaction::size_for_limits.
    ledger = Ledger("alice.near", profile=profile)
    empty = ledger.sign("alice.near", "alice.near", DeployContract(b"")).transaction
    room = 1_572_864 - empty.size - signature
    ledger.send("alice.near", "alice.near", DeployContract(bytes(room)))
    signed = ledger.sign("alice.near", "alice.near", DeployContract(bytes(room + 1)))
    expected = {"TransactionSizeExceeded": {"size": 1_572_865, "limit": 1_572_864}}
    assert refusal(ledger, signed) == expected


def test_delegated_actions_are_checked_too():
    """A call without gas inside a delegate is refused like one outside."""
    ledger = Ledger("alice.near", "carol.near")
    inner = [FunctionCall("m", b"", 0)]
    key = secret("carol.near")
    wanted = DelegateAction("carol.near", "s.near", inner, 9, 9999, key.public_key)
    signed = ledger.sign("alice.near", "carol.near", wanted.sign(key))
    assert refusal(ledger, signed) == action_error("FunctionCallZeroAttachedGas")


# Age -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "error"),
    [
        ({b"k" * 2048: b""}, None),
        ({b"k" * 2049: b""}, {"KeyLengthExceeded": {"length": 2049, "limit": 2048}}),
        (
            {b"k": bytes(4 * MIB + 1)},
            {"ValueLengthExceeded": {"length": 4_194_305, "limit": 4_194_304}},
        ),
    ],
    ids=["fits", "key", "value"],
)
def test_records_of_an_initial_state_are_limited(records, error):
    """A key of 2048 bytes and a value of 4 MiB at most, as everywhere in the state."""
    ledger = Ledger("alice.near")
    state_init = StateInit("alice.near", records)
    name = deterministic_account_id(state_init)
    signed = ledger.sign("alice.near", name, DeterministicStateInit(state_init))
    if error is None:
        ledger.world.submit(signed)
        return
    ((suffix, payload),) = error.items()
    expected = action_error(f"DeterministicStateInit{suffix}", **payload)
    assert refusal(ledger, signed) == expected


def test_an_initial_state_belongs_to_one_account():
    """Its receiver is the account that is derived from it, also inside a delegated action."""
    ledger = Ledger("alice.near")
    state_init = StateInit("alice.near", {b"STATE": b"hello"})
    derived_id = "0s21441cb83e7a27d2a18e63324e553b4400964ba0"  # of the shared vectors
    action = DeterministicStateInit(state_init)
    names = {"derived_id": derived_id, "receiver_id": "alice.near"}
    expected = action_error("InvalidDeterministicStateInitReceiver", **names)
    assert refusal(ledger, ledger.sign("alice.near", "alice.near", action)) == expected
    key = secret("alice.near")
    for receiver_id in ("alice.near", derived_id):
        inner = DelegateAction("alice.near", receiver_id, [action], 9, 9999, key.public_key)
        signed = ledger.sign("alice.near", "alice.near", inner.sign(key))
        if receiver_id == derived_id:
            ledger.world.submit(signed)
        else:
            assert refusal(ledger, signed) == expected


def test_a_transaction_is_valid_for_a_day_of_blocks():
    """At head height = block height + validity it is admitted, at one more it is expired."""
    ledger = Ledger("alice.near", validity=5)
    block = ledger.world.chain.genesis.hash
    assert ledger.world.settings.validity == 5
    ledger.world.advance(5)
    ledger.send("alice.near", "alice.near", Transfer(1), block=block, nonce=3)
    ledger.world.advance()
    signed = ledger.sign("alice.near", "alice.near", Transfer(1), block=block, nonce=4)
    assert refusal(ledger, signed) == "Expired"


def test_a_transaction_expires_while_it_waits():
    """Its shard has no chunk in the last block it was valid for: it vanishes in the next."""
    ledger = Ledger("alice.near", validity=5)
    block = ledger.world.chain.genesis.hash
    ledger.world.advance(5)
    tx_hash = ledger.send("alice.near", "alice.near", Transfer(1), block=block)
    ledger.world.advance(missing=[11])
    assert ledger.world.is_pending(tx_hash)
    ledger.world.advance()
    assert ledger.world.outcome(tx_hash) is None
    assert not ledger.world.is_pending(tx_hash)
    assert ledger.access_key("alice.near").nonce == 0


def test_what_is_admitted_last_is_included():
    """The age is the parent's in both checks: at the last height a chunk still takes it."""
    ledger = Ledger("alice.near", validity=5)
    block = ledger.world.chain.genesis.hash
    ledger.world.advance(5)
    tx_hash = ledger.send("alice.near", "alice.near", Transfer(1), block=block)
    ledger.world.advance()
    assert ledger.outcome(tx_hash).block_height == START + 6


# Silent drops ----------------------------------------------------------------------------


def test_a_nonce_too_large_is_admitted_and_vanishes():
    """The RPC does not check the upper bound; the chunk does, without a word."""
    ledger = Ledger("alice.near")
    tx_hash = ledger.send("alice.near", "bob.near", Transfer(1), nonce=(START + 1) * 10**6)
    assert ledger.world.is_pending(tx_hash)
    ledger.world.advance()
    assert ledger.world.transaction(tx_hash) is None
    assert not ledger.world.is_pending(tx_hash)


def test_the_largest_nonce_is_below_a_million_per_height():
    """One less than the bound is included."""
    ledger = Ledger("alice.near")
    tx_hash = ledger.send("alice.near", "alice.near", Transfer(1), nonce=(START + 1) * 10**6 - 1)
    ledger.world.advance()
    assert ledger.outcome(tx_hash).block_height == START + 1


def test_what_the_balance_no_longer_covers_vanishes():
    """Two transfers of 600 are admitted against 1000; the second finds too little."""
    ledger = Ledger("alice.near", "bob.near")
    hashes = [ledger.send("alice.near", "bob.near", Transfer(600 * N)) for _ in range(2)]
    ledger.world.settle()
    assert [ledger.world.outcome(one) is not None for one in hashes] == [True, False]
    assert ledger.account("bob.near").amount == 1600 * N
    assert ledger.access_key("alice.near").nonce == 1


def test_the_same_bytes_may_be_sent_again():
    """While they wait they wait once; once they are in a block their nonce is spent."""
    ledger = Ledger("alice.near")
    signed = ledger.sign("alice.near", "alice.near", Transfer(1))
    for _ in range(3):
        ledger.world.submit(signed)
    assert len(ledger.world.mempool) == 1
    ledger.world.advance()
    assert refusal(ledger, signed) == {"InvalidNonce": {"tx_nonce": 1, "ak_nonce": 1}}


def test_a_monotonic_nonce_may_leave_a_gap():
    """Nonces 5 and 9 both pass; 7, which comes later, does not."""
    ledger = Ledger("alice.near")
    for nonce in (5, 9):
        ledger.send("alice.near", "alice.near", Transfer(1), nonce=nonce)
        ledger.world.advance()
    signed = ledger.sign("alice.near", "alice.near", Transfer(1), nonce=7)
    assert refusal(ledger, signed) == {"InvalidNonce": {"tx_nonce": 7, "ak_nonce": 9}}


# Nonces of the second version ------------------------------------------------------------


def test_a_strict_nonce_is_the_next_one():
    """After 5 a strict 6 is included; a strict 6 once more is refused."""
    ledger = Ledger("alice.near")
    strict = {"version": 1, "nonce_mode": "strict"}
    ledger.send("alice.near", "alice.near", Transfer(1), nonce=5)
    ledger.world.advance()
    tx_hash = ledger.send("alice.near", "alice.near", Transfer(1), nonce=6, **strict)
    ledger.world.advance()
    assert ledger.outcome(tx_hash).block_height == START + 2
    signed = ledger.sign("alice.near", "alice.near", Transfer(2), nonce=6, **strict)
    assert refusal(ledger, signed) == {"InvalidNonce": {"tx_nonce": 6, "ak_nonce": 6}}


def test_a_strict_gap_waits_for_what_is_before_it():
    """A strict 2 waits in the pool until the strict 1 is there, which may come later."""
    ledger = Ledger("alice.near", "bob.near")
    strict = {"version": 1, "nonce_mode": "strict"}
    second = ledger.send("alice.near", "bob.near", Transfer(1), nonce=2, **strict)
    ledger.world.advance(2)
    assert ledger.world.is_pending(second)
    first = ledger.send("alice.near", "bob.near", Transfer(1), nonce=1, **strict)
    ledger.world.advance(2)
    assert ledger.outcome(first).block_height == START + 3
    assert ledger.outcome(second).block_height in (START + 3, START + 4)


def test_a_strict_gap_ends_when_it_expires():
    """A strict 2 whose 1 never comes is dropped once its block is too old."""
    ledger = Ledger("alice.near", "bob.near", validity=5)
    strict = {"version": 1, "nonce_mode": "strict"}
    second = ledger.send("alice.near", "bob.near", Transfer(1), nonce=2, **strict)
    ledger.world.advance(5)
    assert ledger.world.is_pending(second)
    ledger.world.advance(2)
    assert not ledger.world.is_pending(second)
    assert ledger.world.outcome(second) is None


# Bytes -----------------------------------------------------------------------------------


@cache
def samples():
    """Make a chain, and transactions with all kinds of actions."""
    ledger = Ledger("alice.near", "carol.near", scripts=["s.near"])
    key = secret("carol.near")
    later = DelegateActionV2("carol.near", "s.near", [Transfer(1)], 9, 9999, key.public_key)
    lists = [
        [Transfer(1)],
        [do(gas=TGAS), AddKey(public("k")), add_key("s.near", "m"), Stake(1, public("k"))],
        [CreateAccount(), DeployContract(b"code"), DeleteAccount("s.near")],
        [delegate()],
        [later.sign(key)],
    ]
    signed = [ledger.sign("alice.near", "s.near", *actions) for actions in lists]
    return ledger, [one.encode() for one in signed]


@given(st.data())
def test_mangled_bytes_harm_nothing(data):
    """Whatever is changed in a transaction, it is undecodable, or refused, or as it was."""
    ledger, packed = samples()
    original = data.draw(st.sampled_from(packed))
    mangled = bytearray(original)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(mangled) - 1))
        mangled[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
        mangled = mangled or bytearray(1)
    try:
        signed = SignedTransaction.decode(bytes(mangled))
        ledger.world.check(signed)
    except (DecodeError, InvalidRequestError, InvalidTransactionError):
        return
    assert bytes(mangled) == original


# Features of protocol versions -----------------------------------------------------------

ML_DSA = PublicKey("ml-dsa-65", bytes(1952))
FULL = AccessKey(0, FullAccess())
EMPTY = StateInit("g.near", {})


def _delegated(*actions):
    """Build actions that carol.near signed, for alice.near."""
    key = secret("carol.near")
    return DelegateAction("carol.near", "alice.near", actions, 9, 9999, key.public_key).sign(key)


def _delegated_by_gas_key():
    """Build a delegated action of the second kind."""
    key = secret("carol.near")
    inner = DelegateActionV2("carol.near", "alice.near", [Transfer(1)], 9, 9999, key.public_key)
    return inner.sign(key)


def _unsupported(feature, version):
    """Build the error of a feature that a version does not have."""
    error = {"UnsupportedProtocolFeature": {"protocol_feature": feature, "version": version}}
    return {"ActionsValidation": error}


def _since_87(error):
    """Give an error to version 87 and those after it."""
    return dict.fromkeys(("87", "88"), error)


def _removed(version):
    """Build the error of delegated actions of the second kind, which a version no longer has."""
    error = {"RemovedProtocolFeature": {"protocol_feature": "DelegateV2", "version": version}}
    return {"ActionsValidation": error}


LARGE = StateInit("g.near", {number.to_bytes(2, "big"): b"" for number in range(1501)})
TOO_MANY_ENTRIES = {
    "ActionsValidation": {
        "TotalNumberOfStateInitEntriesExceeded": {"number_of_entries": 1501, "limit": 1500}
    }
}
TOO_MANY_DEPLOYMENTS = {
    "ActionsValidation": {
        "TotalNumberOfDeployActionsExceeded": {"number_of_deploy_actions": 11, "limit": 10}
    }
}
GAS_KEYS_84 = {"84": _unsupported("GasKeys", 84)}
# The errors by profile; a profile that is not there accepts the actions. Source: nearcore,
# core/primitives-core/src/version.rs and runtime/runtime/src/action_validation.rs; the limit of
# deployments from core/parameters/res/runtime_configs/84.yaml.
FEATURES: dict[str, tuple[list[Action], dict[str, Any]]] = {
    "action 11": ([DeterministicStateInit(EMPTY, 1)], {}),
    "action 12": ([TransferToGasKey(public("x"), 1)], GAS_KEYS_84),
    "action 13": ([WithdrawFromGasKey(public("x"), 1)], GAS_KEYS_84),
    "permission 2": (
        [AddKey(public("x"), AccessKey(0, GasKeyFunctionCall(0, 2, None, "s.near", [])))],
        GAS_KEYS_84,
    ),
    "permission 3": ([AddKey(public("x"), AccessKey(0, GasKeyFullAccess(0, 2)))], GAS_KEYS_84),
    "ML-DSA key": ([AddKey(ML_DSA, FULL)], {"84": _unsupported("PostQuantumSignatures", 84)}),
    "ML-DSA key in a delegate": (
        [_delegated(DeleteKey(ML_DSA))],
        {"84": _unsupported("PostQuantumSignatures", 84)},
    ),
    "DelegateV2": (
        [_delegated_by_gas_key()],
        {"84": _unsupported("DelegateV2", 84), "87": _removed(87), "88": _removed(88)},
    ),
    "withdrawal in a delegate": (
        [_delegated(WithdrawFromGasKey(public("x"), 1))],
        GAS_KEYS_84 | _since_87({"ActionsValidation": "WithdrawFromGasKeyNotAllowedInDelegate"}),
    ),
    "empty method name": (
        [FunctionCall("", b"", TGAS, 0)],
        _since_87({"ActionsValidation": "FunctionCallEmptyMethodName"}),
    ),
    "1501 records": ([DeterministicStateInit(LARGE, 1)], _since_87(TOO_MANY_ENTRIES)),
    "ten deployments": (
        [DeployContract(b"")] * 5 + [DeployGlobalContract(b"", "CodeHash")] * 5,
        {},
    ),
    "eleven deployments": (
        [DeployContract(b"")] * 11,
        dict.fromkeys(fees.PROFILES, TOO_MANY_DEPLOYMENTS),
    ),
}


@pytest.mark.parametrize("profile", fees.PROFILES)
def test_features_by_version(subtests, profile):
    """Every entry decodes; a version without it says so, and the others accept it."""
    ledger = Ledger("alice.near", profile=profile)
    for name, (actions, errors) in FEATURES.items():
        with subtests.test(name=name):
            initial = {"action 11": EMPTY, "1501 records": LARGE}.get(name)
            receiver_id = deterministic_account_id(initial) if initial else "alice.near"
            signed = ledger.sign("alice.near", receiver_id, *actions)
            assert SignedTransaction.decode(signed.encode()) == signed
            assert refused(partial(check_contents, signed, profile)) == errors.get(profile)


@pytest.mark.parametrize(("profile", "known"), [("84", False), ("86", True), ("87", True)])
def test_versions_and_modes_of_transactions(profile, known):
    """V1, a strict nonce and an ML-DSA signer came with 85; before, the version is refused."""
    ledger = Ledger("alice.near", profile=profile)
    strict = {"version": 1, "nonce_mode": "strict"}
    second = ledger.sign("alice.near", "alice.near", Transfer(1), **strict)
    by_ml_dsa = Transaction("alice.near", ML_DSA, 1, "alice.near", bytes(32), [Transfer(1)])
    forged = SignedTransaction(by_ml_dsa, Signature("ml-dsa-65", bytes(3309)))
    error = None if known else "InvalidTransactionVersion"
    assert refused(lambda: check_contents(second, profile)) == error
    error = "InvalidSignature" if known else "InvalidTransactionVersion"
    assert refused(lambda: check_contents(forged, profile)) == error


def refused(check):
    """Return the error of a check, None if it passes."""
    try:
        check()
    except InvalidTransactionError as error:
        return error.error
    return None


def check_contents(signed, profile):
    """Check a transaction's contents at a protocol version."""
    transaction_validity.check_contents(signed, fees.PROFILES[profile])


def test_a_secp256k1_key_signs_too():
    """The checks are the same for both curves; a signature of the other is none."""
    genesis = Genesis()
    key = SecretKey.generate("secp256k1")
    genesis.account("alice.near", 10 * N, keys=[key.public_key])
    ledger = Ledger(genesis=genesis)
    block = ledger.world.chain.head.hash
    tx = Transaction("alice.near", key.public_key, 1, "alice.near", block, [Transfer(1)])
    forged = SignedTransaction(tx, secret("alice.near").sign(tx.hash))
    assert refusal(ledger, forged) == "InvalidSignature"
    ledger.world.submit(tx.sign(key))
    ledger.world.settle()
    assert ledger.world.transaction(tx.hash) is not None
    with pytest.raises(DecodeError):
        SignedTransaction.decode(tx.encode())
