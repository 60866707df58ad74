"""Gas keys (NEP-611): their nonces, their balance, and what it pays."""

import pytest

from ledgerkit.localnet.chain_types import NO_CODE
from ledgerkit.localnet.execution_errors import InvalidTransactionError
from ledgerkit.localnet.rpc import queries
from ledgerkit.protocol import (
    AccessKey,
    AddKey,
    DelegateActionV2,
    DeleteAccount,
    DeleteKey,
    FunctionCall,
    GasKeyFullAccess,
    GasKeyFunctionCall,
    Transfer,
    TransferToGasKey,
    WithdrawFromGasKey,
)
from tests.unit.localnet.ledger import (
    PRICE,
    TGAS,
    Ledger,
    N,
    do,
    index_of,
    public,
    result_of,
    secret,
)

GAS = public("gas")
FUNDS = N // 10
# Of a transfer to another account, to send and to execute.
TRANSFER_GAS = 108_059_500_000 + 115_123_062_500
PREPAID = TRANSFER_GAS * PRICE + TRANSFER_GAS * 10**9


@pytest.fixture
def ledger():
    """Return a chain whose alice has a gas key of three nonces, and 0.1 NEAR on it."""
    chain = Ledger("alice.near", "bob.near", scripts=["s.near"])
    chain.run(
        "alice.near",
        "alice.near",
        AddKey(GAS, AccessKey(77, GasKeyFullAccess(0, 3))),
        TransferToGasKey(GAS, FUNDS),
    )
    return chain


def nonces(ledger):
    return ledger.world.state().gas_key_nonces("alice.near", GAS.packed)


def balance(ledger):
    """Return what alice's gas key has."""
    return ledger.access_key("alice.near", "gas").permission.balance


def signed(ledger, receiver_id, *actions, index=0, step=1, **more):
    options = {"key": "gas", "version": 1, "nonce_index": index} | more
    known = nonces(ledger)
    nonce = (known[index] if index < len(known) else 1) + step
    return ledger.sign("alice.near", receiver_id, *actions, **({"nonce": nonce} | options))


def submit(ledger, *args, **more):
    """Send with the gas key and let it end; give the outcomes of transaction and receipt."""
    transaction = signed(ledger, *args, **more)
    ledger.world.submit(transaction)
    ledger.world.settle()
    first = ledger.outcome(transaction.hash)
    return first, ledger.outcome(first.receipt_ids[0])


def refusal(ledger, transaction):
    """Give the error with which a transaction is not admitted."""
    with pytest.raises(InvalidTransactionError) as caught:
        ledger.world.submit(transaction)
    return caught.value.error


def failure(ledger, *args, index=0):
    """Run a transaction that fails at an action; give its kind of error."""
    outcome = ledger.run(*args)
    assert index_of(outcome) == index
    assert ledger.is_whole()
    return result_of(outcome)


def rest(outcomes):
    """Sum what outcomes burnt, in yoctoNEAR."""
    return sum(outcome.tokens_burnt for outcome in outcomes)


# Adding and deleting ---------------------------------------------------------------------


def test_a_gas_key_has_a_nonce_for_each_index(ledger):
    """All begin at (height - 1) * 10^6, and its own is 0, whatever the action asks for."""
    added = next(o for o in ledger.world.chain.outcomes_at(1001) if o.executor_id == "alice.near")
    assert nonces(ledger) == [(added.block_height - 1) * 10**6] * 3
    assert ledger.access_key("alice.near", "gas") == AccessKey(0, GasKeyFullAccess(FUNDS, 3))


def test_storage_counts_each_nonce(ledger):
    """A key of 33 + 27 + 40 bytes, and three nonces of 33 + 2 + 8 + 40; deleting frees them."""
    assert ledger.account("alice.near").storage_usage == 182 + 100 + 3 * 83
    ledger.run("alice.near", "alice.near", DeleteKey(GAS))
    assert ledger.account("alice.near").storage_usage == 182
    assert nonces(ledger) == []


def test_the_balance_of_a_deleted_key_burns(ledger):
    """It is in tokens_burnt, beside the price of the gas, and nobody gets it."""
    outcome = ledger.run("alice.near", "alice.near", DeleteKey(GAS))
    assert outcome.tokens_burnt == outcome.gas_burnt * PRICE + FUNDS
    assert ledger.access_key("alice.near", "gas") is None
    assert ledger.is_whole()


def test_more_than_one_near_does_not_burn(ledger):
    """1 NEAR and a yocto is too much for a key, and for all keys of an account together."""
    ledger.run("bob.near", "alice.near", TransferToGasKey(GAS, N - FUNDS + 1))
    name = {"account_id": "alice.near"}
    error = failure(ledger, "alice.near", "alice.near", DeleteKey(GAS))
    expected = name | {"public_key": str(GAS), "balance": str(N + 1)}
    assert error == {"GasKeyBalanceTooHigh": expected}
    ledger.run("alice.near", "alice.near", WithdrawFromGasKey(GAS, 2))
    second = public("second")
    ledger.run(
        "alice.near",
        "alice.near",
        AddKey(second, AccessKey(0, GasKeyFullAccess(0, 1))),
        TransferToGasKey(second, 2),
    )
    error = failure(ledger, "alice.near", "alice.near", DeleteAccount("bob.near"))
    too_high = {**name, "balance": str(N + 1)}
    assert error == {"GasKeyBalanceTooHigh": {"public_key": None} | too_high}
    ledger.run("alice.near", "alice.near", WithdrawFromGasKey(second, 1))
    outcome = ledger.run("alice.near", "alice.near", DeleteAccount("bob.near"))
    assert outcome.tokens_burnt == outcome.gas_burnt * PRICE + N
    assert ledger.account("alice.near") is None
    assert nonces(ledger) == []
    assert ledger.is_whole()


@pytest.mark.parametrize(
    ("permission", "error"),
    [
        (
            GasKeyFullAccess(0, 0),
            {"GasKeyInvalidNumNonces": {"requested_nonces": 0, "limit": 1024}},
        ),
        (
            GasKeyFullAccess(0, 1025),
            {"GasKeyInvalidNumNonces": {"requested_nonces": 1025, "limit": 1024}},
        ),
        (GasKeyFullAccess(5, 1), {"AddGasKeyWithNonZeroBalance": {"balance": "5"}}),
        (
            GasKeyFunctionCall(0, 1, 7, "s.near"),
            "GasKeyFunctionCallAllowanceNotAllowed",
        ),
        (
            GasKeyFunctionCall(0, 0, 7, "Upper.near"),
            {"InvalidAccountId": {"account_id": "Upper.near"}},
        ),
    ],
    ids=["none", "many", "balance", "allowance", "account"],
)
def test_gas_keys_that_cannot_be(ledger, permission, error):
    """1 to 1024 nonces, no balance yet and no allowance; the permission itself comes first."""
    action = AddKey(public("new"), AccessKey(0, permission))
    wanted = ledger.sign("alice.near", "alice.near", action)
    assert refusal(ledger, wanted) == {"ActionsValidation": error}


def test_the_most_nonces(ledger):
    """1024 are added and read in order."""
    key = public("many")
    ledger.run("alice.near", "alice.near", AddKey(key, AccessKey(0, GasKeyFullAccess(0, 1024))))
    params = {"account_id": "alice.near", "public_key": str(key), "finality": "optimistic"}
    answer = queries.single_type("view_gas_key_nonces", ledger.world, params)
    assert len(answer["nonces"]) == 1024


# Its balance -----------------------------------------------------------------------------


def test_anybody_funds_and_only_the_owner_withdraws(ledger):
    """The deposit comes from the sender; what is withdrawn goes to the account."""
    before = ledger.account("alice.near").amount
    ledger.run("bob.near", "alice.near", TransferToGasKey(GAS, 7))
    assert balance(ledger) == FUNDS + 7
    assert ledger.account("alice.near").amount == before
    error = failure(ledger, "bob.near", "alice.near", WithdrawFromGasKey(GAS, 7))
    denied = {"account_id": "alice.near", "actor_id": "bob.near"}
    assert error == {"ActorNoPermission": denied}
    outcomes = ledger.run("alice.near", "alice.near", WithdrawFromGasKey(GAS, FUNDS))
    assert balance(ledger) == 7
    sent = 108_059_500_000 + 115_123_062_500 + 33 * 59_357_464
    cost = sent * PRICE + outcomes.tokens_burnt
    assert ledger.account("alice.near").amount == before + FUNDS - cost
    assert ledger.is_whole()


def test_a_withdrawal_is_at_most_the_balance(ledger):
    """A yocto more is an error with both amounts; the deposit of a failed transfer returns."""
    error = failure(ledger, "alice.near", "alice.near", WithdrawFromGasKey(GAS, FUNDS + 1))
    name = {"account_id": "alice.near", "public_key": str(GAS)}
    amounts = {"balance": str(FUNDS), "required": str(FUNDS + 1)}
    assert error == {"InsufficientGasKeyBalance": name | amounts}


@pytest.mark.parametrize("key", ["alice.near", "absent"])
def test_other_keys_hold_no_balance(ledger, key):
    """An ordinary key and a missing one are no gas keys."""
    expected = {"account_id": "alice.near", "public_key": str(public(key))}
    for action in (TransferToGasKey(public(key), N), WithdrawFromGasKey(public(key), 0)):
        error = failure(ledger, "alice.near", "alice.near", action)
        assert error == {"GasKeyDoesNotExist": expected}
    assert ledger.account("alice.near").amount > 999 * N


# Signing ---------------------------------------------------------------------------------


def test_the_key_pays_the_gas_and_the_account_the_deposit(ledger):
    """Unused gas and the better price return to the key; only the used nonce moves."""
    before, start = ledger.account("alice.near").amount, nonces(ledger)
    transaction = signed(ledger, "bob.near", Transfer(N), index=1)
    ledger.world.submit(transaction)
    ledger.world.advance()
    assert balance(ledger) == FUNDS - PREPAID
    ledger.world.settle()
    first = ledger.outcome(transaction.hash)
    receipt = ledger.outcome(first.receipt_ids[0])
    assert ledger.account("alice.near").amount == before - N
    assert balance(ledger) == FUNDS - rest([first, receipt])
    assert rest([first, receipt]) == 2 * TRANSFER_GAS * PRICE
    assert nonces(ledger) == [start[0], start[1] + 1, start[2]]
    assert ledger.access_key("alice.near", "gas").nonce == 0
    assert ledger.is_whole()


def test_a_failed_call_returns_the_deposit_to_the_account(ledger):
    """The gas goes back to the key, the deposit to the account (nearcore: test_gas_key_refund)."""
    before = ledger.account("alice.near").amount
    call = FunctionCall("nonexistent_method", b"", 50 * TGAS, 5 * N)
    first, receipt = submit(ledger, "bob.near", call)
    assert list(result_of(receipt)) == ["FunctionCallError"]
    assert ledger.account("alice.near").amount == before
    assert balance(ledger) == FUNDS - rest([first, receipt])


def test_a_refund_without_its_key_goes_to_the_account(ledger):
    """A key that is deleted while its transaction runs leaves the gas to the account."""
    transaction = signed(ledger, "bob.near", Transfer(1))
    ledger.world.submit(transaction)
    ledger.world.advance()
    ledger.send("alice.near", "alice.near", DeleteKey(GAS))
    before = ledger.account("alice.near").amount
    ledger.world.settle()
    outcome = ledger.outcome(ledger.outcome(transaction.hash).receipt_ids[0])
    refund = ledger.receipt(outcome.receipt_ids[0])
    assert refund.signer_public_key == GAS
    assert ledger.world.burnt > FUNDS - PREPAID
    deletion = 2 * (108_059_500_000 + 94_946_625_000) * PRICE
    returned = refund.actions[0].deposit
    assert ledger.account("alice.near").amount == before + returned - deletion
    assert ledger.is_whole()


def test_indexes_are_independent(ledger):
    """Lower nonces at other indexes are as good; at the same index they are used up."""
    start = nonces(ledger)
    for index, step in ((0, 5), (1, 2), (2, 1)):
        ledger.world.submit(signed(ledger, "bob.near", Transfer(1), index=index, step=step))
    ledger.world.settle()
    assert nonces(ledger) == [start[0] + 5, start[1] + 2, start[2] + 1]
    used = signed(ledger, "bob.near", Transfer(1), index=0, step=0)
    error = refusal(ledger, used)
    assert error == {"InvalidNonce": {"tx_nonce": start[0] + 5, "ak_nonce": start[0] + 5}}


def test_a_strict_nonce_waits_at_its_index(ledger):
    """The second is included after the first, and needs nothing of other indexes."""
    start = nonces(ledger)
    late = signed(ledger, "bob.near", Transfer(1), index=2, step=2, nonce_mode="strict")
    ledger.world.submit(late)
    ledger.world.advance(2)
    assert ledger.world.is_pending(late.hash)
    ledger.world.submit(signed(ledger, "bob.near", Transfer(1), index=2, nonce_mode="strict"))
    ledger.world.settle()
    assert nonces(ledger) == [start[0], start[1], start[2] + 2]


def test_an_index_belongs_to_a_gas_key(ledger):
    """A gas key needs one of its own, and another key may have none."""
    plain = signed(ledger, "bob.near", Transfer(1), version=0, nonce_index=None)
    error = {"tx_nonce_index": None, "num_nonces": 3}
    assert refusal(ledger, plain) == {"InvalidNonceIndex": error}
    beyond = signed(ledger, "bob.near", Transfer(1), index=3)
    assert refusal(ledger, beyond) == {"InvalidNonceIndex": error | {"tx_nonce_index": 3}}
    other = signed(ledger, "bob.near", Transfer(1), key="alice.near")
    error = {"tx_nonce_index": 0, "num_nonces": 0}
    assert refusal(ledger, other) == {"InvalidNonceIndex": error}


def test_the_key_must_cover_the_gas(ledger):
    """A yocto less than the prepaid gas is refused, however rich the account is."""
    ledger.run("alice.near", "alice.near", WithdrawFromGasKey(GAS, FUNDS - PREPAID + 1))
    transaction = signed(ledger, "bob.near", Transfer(1))
    amounts = {"balance": str(PREPAID - 1), "cost": str(PREPAID)}
    error = {"NotEnoughGasKeyBalance": {"signer_id": "alice.near"} | amounts}
    assert refusal(ledger, transaction) == error
    ledger.run("bob.near", "alice.near", TransferToGasKey(GAS, 1))
    ledger.world.submit(transaction)


def test_the_account_must_cover_the_deposit(ledger):
    """The deposit alone counts, and the storage that is left to pay for."""
    held = ledger.account("alice.near").amount
    error = refusal(ledger, signed(ledger, "bob.near", Transfer(held + 1)))
    fields = {"signer_id": "alice.near", "balance": str(held), "cost": str(held + 1)}
    assert error == {"NotEnoughBalanceForDeposit": fields | {"reason": "NotEnoughBalance"}}
    ledger.run("s.near", "s.near", do(["write", "k", "v" * 1000]))
    key = AddKey(GAS, AccessKey(0, GasKeyFullAccess(0, 1)))
    ledger.run("s.near", "s.near", key, TransferToGasKey(GAS, FUNDS))
    account = ledger.account("s.near")
    stake = account.storage_usage * 10**19
    nonce = ledger.world.state().gas_key_nonce("s.near", GAS.packed, 0) + 1
    options = {"key": "gas", "version": 1, "nonce_index": 0, "nonce": nonce}
    deposit = Transfer(account.amount - stake + 1)
    error = refusal(ledger, ledger.sign("s.near", "bob.near", deposit, **options))
    fields = {"signer_id": "s.near", "balance": str(stake - 1), "cost": "1"}
    assert error == {"NotEnoughBalanceForDeposit": fields | {"reason": "LackBalanceForState"}}
    assert account.code_hash != NO_CODE
    ledger.world.submit(
        ledger.sign("s.near", "bob.near", Transfer(account.amount - stake), **options)
    )


def test_a_gas_key_for_calls_signs_nothing_else(ledger):
    """Its receiver and methods bind it, before the deposit is looked at."""
    permission = GasKeyFunctionCall(0, 3, None, "s.near", ["do"])
    key = public("gas")
    ledger.run(
        "alice.near",
        "alice.near",
        DeleteKey(key),
        AddKey(key, AccessKey(0, permission)),
        TransferToGasKey(key, N // 2),
    )
    refused = {
        "RequiresFullAccess": ("s.near", Transfer(5000 * N)),
        "DepositWithFunctionCall": ("s.near", do(deposit=5000 * N)),
    }
    for name, (receiver_id, action) in refused.items():
        error = refusal(ledger, signed(ledger, receiver_id, action))
        assert error == {"InvalidAccessKeyError": name}
    error = refusal(ledger, signed(ledger, "bob.near", do()))
    receivers = {"tx_receiver": "bob.near", "ak_receiver": "s.near"}
    assert error == {"InvalidAccessKeyError": {"ReceiverMismatch": receivers}}
    _, receipt = submit(ledger, "s.near", do(["value", 3]))
    assert result_of(receipt) == 3


# Delegated actions -----------------------------------------------------------------------


def delegated(ledger, index, step=1, *actions):
    """Let alice's gas key sign a delegated action with the next nonce at an index."""
    nonce = nonces(ledger)[index if index is not None and index < 3 else 0] + step
    inner = DelegateActionV2(
        "alice.near", "bob.near", actions or (Transfer(1),), nonce, 99_999, GAS, index
    )
    return inner.sign(secret("gas"))


def test_a_gas_key_delegates_with_an_index(ledger):
    """The nonce at the index moves; the relayer pays, and the key's balance stays."""
    start = nonces(ledger)
    ledger.run("bob.near", "alice.near", delegated(ledger, 1))
    assert nonces(ledger) == [start[0], start[1] + 1, start[2]]
    assert balance(ledger) == FUNDS
    error = failure(ledger, "bob.near", "alice.near", delegated(ledger, 1, 0))
    expected = {"delegate_nonce": start[1] + 1, "ak_nonce": start[1] + 1}
    assert error == {"DelegateActionInvalidNonce": expected}


def test_a_delegated_index_belongs_to_a_gas_key(ledger):
    """No index, one too many, or one for another kind of key: the exact errors."""
    error = failure(ledger, "bob.near", "alice.near", delegated(ledger, 3))
    assert error == {"DelegateActionInvalidNonceIndex": {"nonce_index": 3, "num_nonces": 3}}
    refused = {"DelegateActionAccessKeyError": "DelegateActionRequiresNonGasKey"}
    assert failure(ledger, "bob.near", "alice.near", delegated(ledger, None)) == refused
    key = secret("alice.near")
    inner = DelegateActionV2(
        "alice.near", "bob.near", [Transfer(1)], 10**9, 99_999, key.public_key, 0
    )
    refused = {"DelegateActionAccessKeyError": "DelegateActionRequiresGasKey"}
    assert failure(ledger, "bob.near", "alice.near", inner.sign(key)) == refused


# Reading ---------------------------------------------------------------------------------


def query(ledger, request_type, **fields):
    """Return the result of a query for alice's key, without its block."""
    params = {"request_type": request_type, "account_id": "alice.near", "finality": "optimistic"}
    answer = queries.query(ledger.world, params | fields)
    return {name: answer[name] for name in answer if not name.startswith("block_")}


def test_a_gas_key_is_read(ledger):
    """Its permission has the balance and the number of nonces, which are read on their own."""
    permission = {"GasKeyFullAccess": {"balance": str(FUNDS), "num_nonces": 3}}
    answer = query(ledger, "view_access_key", public_key=str(GAS))
    assert answer == {"nonce": 0, "permission": permission}
    answer = query(ledger, "view_gas_key_nonces", public_key=str(GAS))
    assert answer == {"nonces": nonces(ledger)}
    answer = query(ledger, "view_access_key_list")
    assert {"nonce": 0, "permission": permission} in [k["access_key"] for k in answer["keys"]]
