"""What moved, and who has how much more or less: by hand-computed results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit import units
from ledgerkit.tracing.burnt_tokens import BurntTokens, Execution, split_burnt_tokens
from ledgerkit.tracing.trace import Trace
from tests.unit import builders

Rows = list[tuple[Any, ...]]
SHARED = Path(__file__).resolve().parents[2].parent / "shared"
CONVERSION = 3 * builders.PRICE  # what `builders.result` burns to take a transaction in


def traced(outcomes: Any, bodies: Any, *, rules: bool = True, **more: Any) -> Trace:
    """Trace a result, under known rules."""
    document = builders.result(outcomes, bodies, **more)
    return Trace.from_json(document, rules=builders.RULES if rules else None)


def moved(trace: Trace) -> Rows:
    """List the transfers as plain tuples."""
    columns = ["kind", "asset", "sender_id", "receiver_id", "amount"]
    frame = trace.transfers[columns]
    return list(frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None))


def changes(trace: Trace, asset: str = "near") -> dict[str, int]:
    """Map accounts to their changes."""
    frame = trace.balance_changes
    rows = frame[frame["asset"] == asset]
    return dict(zip(rows["account_id"], rows["change"], strict=True))


def test_a_transfer_and_its_fee():
    """The fee is what was burnt: what was paid in advance and refunded is in no transfer."""
    found = traced(
        [builders.outcome("R0", ["R1"], gas=5), builders.outcome("R1", gas=5, tokens=0)],
        [builders.body("R0", builders.transfer(1000)), builders.refund("R1", 60)],
    )
    assert moved(found) == [
        ("fee", "near", "alice.near", "system", CONVERSION + 5 * builders.PRICE),
        ("transfer", "near", "alice.near", "bob.near", 1000),
    ]
    assert found.gas["gas_refund"].tolist() == [0, 60, 0]
    assert changes(found) == {
        "alice.near": -CONVERSION - 5 * builders.PRICE - 1000,
        "bob.near": 1000,
    }
    assert found.transfers["order"].tolist() == [pd.NA, 0]
    assert found.notes == ()


def test_a_deposit_that_failed_is_no_transfer():
    """A failed receipt delivers nothing; its deposit left its sender, and a refund returns it."""
    found = traced(
        [
            builders.outcome("R0", ["R1"], status=builders.failing()),
            builders.outcome("R1", tokens=0),
        ],
        [
            builders.body("R0", builders.transfer(400), builders.transfer(4)),
            builders.refund("R1", 404, signer="system"),
        ],
        status=builders.failing(),
    )
    assert moved(found)[1:] == [
        ("undelivered", "near", "alice.near", "system", 404),
        ("refund_deposit", "near", "system", "alice.near", 404),
    ]
    assert changes(found) == {"alice.near": -CONVERSION - 5 * builders.PRICE}


def test_a_refund_to_another_account():
    """A failed deposit may return to an account other than its sender (`refund_to`)."""
    found = traced(
        [
            builders.outcome("R0", ["R1"], status=builders.failing()),
            builders.outcome("R1", tokens=0),
        ],
        [
            builders.body("R0", builders.transfer(404)),
            builders.refund("R1", 404, "carl.near", signer="system"),
        ],
        status=builders.failing(),
    )
    paid = CONVERSION + 5 * builders.PRICE
    assert changes(found) == {"alice.near": -paid - 404, "carl.near": 404}


NEW = "0s385fa6a1b92e0d4a5e6ba6cdbbc2a0ae4f0b4a1e"


def state_init(deposit: int) -> dict[str, Any]:
    """Write the initialization of a deterministic account."""
    return {"DeterministicStateInit": {"code": {"hash": "C"}, "data": {}, "deposit": str(deposit)}}


def test_a_state_init_keeps_only_what_its_storage_needs():
    """The rest of its deposit returns from the account, although the receipt succeeded."""
    found = traced(
        [
            builders.outcome("R0", ["R1", "R2"]),
            *[builders.outcome(f"R{n}", tokens=0) for n in (1, 2)],
        ],
        [
            builders.body("R0", state_init(5000), to=NEW),
            builders.refund("R1", 4990, signer="system"),
            builders.refund("R2", 60),
        ],
        to=NEW,
    )
    assert moved(found)[1:] == [
        ("deposit", "near", "alice.near", NEW, 5000),
        ("refund_deposit", "near", NEW, "alice.near", 4990),
    ]
    assert changes(found) == {NEW: 10, "alice.near": -CONVERSION - 5 * builders.PRICE - 10}
    check_sum(found)


def test_a_refund_that_has_not_run_has_left_the_new_account():
    """Until it runs, the rest of a deposit has left the account and reached nobody."""
    bodies = [
        builders.body("R0", state_init(5000), to=NEW),
        builders.refund("R1", 4990, signer="system"),
    ]
    found = traced([builders.outcome("R0", ["R1"])], bodies, to=NEW)
    assert moved(found)[-1] == ("undelivered", "near", NEW, "system", 4990)
    assert changes(found)[NEW] == 10


def test_a_state_init_before_a_deletion():
    """Of the refunds of a deleted account only that to its beneficiary is the rest it had."""
    own = [state_init(50), {"DeleteAccount": {"beneficiary_id": "heir.near"}}]
    found = traced(
        [
            builders.outcome("R0", ["R1", "R2"]),
            *[builders.outcome(f"R{n}", tokens=0) for n in (1, 2)],
        ],
        [
            builders.body("R0", *own, to="alice.near"),
            builders.refund("R1", 40, "carl.near", signer="system"),
            builders.refund("R2", 900, "heir.near", signer="system"),
        ],
        to="alice.near",
    )
    assert moved(found)[2:] == [
        ("refund_deposit", "near", "alice.near", "carl.near", 40),
        ("beneficiary", "near", "alice.near", "heir.near", 900),
    ]


# Tokens that an action takes from a balance ---------------------------------------------

BYTE = 10**20  # nearcore 77.yaml: global_contract_storage_amount_per_byte, 0.0001 NEAR
DEPLOY = {"DeployGlobalContract": {"code": "Zm9v"}}
DEPLOY_GAS = 11_000


def deployed(*actions: Any, block: str = "block of T", **fields: Any) -> Trace:
    """Trace a transaction to its own account that deploys a global contract."""
    ended = builders.outcome("R0", gas=DEPLOY_GAS, **fields) | {"block_hash": block}
    own = actions or (DEPLOY,)
    return traced(
        [ended], [builders.body("R0", *own, to="alice.near")], to="alice.near", actions=own
    )


@pytest.mark.parametrize("block", ["block of T", "block of R0"], ids=["same block", "another"])
@pytest.mark.parametrize("name", ["DeployGlobalContract", "DeployGlobalContractByAccountId"])
def test_the_bytes_of_a_global_contract_are_no_fee(name: str, block: str):
    """10^20 yocto a byte are burnt of the account that runs the action, and no gas price."""
    fee = CONVERSION + DEPLOY_GAS * builders.PRICE
    tokens = DEPLOY_GAS * builders.PRICE + 700 * BYTE
    found = deployed({name: {"code": "Zm9v"}}, block=block, tokens=tokens)
    assert moved(found) == [
        ("fee", "near", "alice.near", "system", fee),
        ("burnt", "near", "alice.near", "system", 700 * BYTE),
    ]
    assert changes(found) == {"alice.near": -fee - 700 * BYTE}
    assert found.gas["gas_price"].tolist() == [builders.PRICE] * 2
    assert found.gas["balance_burnt"].tolist() == [0, 700 * BYTE]
    assert "0.07 NEAR of alice.near burnt" in found.explain()
    check_sum(found)


@given(
    st.integers(1, 10**10),
    st.integers(1, 10**15),
    st.integers(1, 4 * 2**20),
    st.integers(0, 10**24),
)
def test_tokens_in_a_block_of_known_price_are_split_exactly(
    price: int, gas: int, n_bytes: int, left: int
):
    """Any number of bytes, and any balance of a gas key, is told from the price of the gas."""
    executions = [
        Execution(3 * price, 3, "B"),
        Execution(gas * price + n_bytes * BYTE, gas, "B", {"DeployGlobalContract", "AddKey"}),
        Execution(gas * price + left, gas, "B", {"DeleteAccount"}),
    ]
    assert split_burnt_tokens(executions) == [
        BurntTokens(price, 0),
        BurntTokens(price, n_bytes * BYTE),
        BurntTokens(price, left),
    ]


def test_a_contract_pays_for_the_global_contract_it_deploys():
    """The account that executes the receipt pays for the bytes, the signer for the gas."""
    tokens = DEPLOY_GAS * builders.PRICE + 3 * BYTE
    found = traced(
        [
            builders.outcome("R0", ["R1"]),
            builders.outcome("R1", gas=DEPLOY_GAS, tokens=tokens),
        ],
        [
            builders.body("R0", builders.transfer(1)),
            builders.body("R1", DEPLOY, sender="bob.near"),
        ],
    )
    fee = CONVERSION + (5 + DEPLOY_GAS) * builders.PRICE
    assert changes(found) == {"alice.near": -fee - 1, "bob.near": 1 - 3 * BYTE}


def test_a_new_account_that_deploys_a_global_contract():
    """The amount that a creation burns is a fee; it is told from the bytes of the contract."""
    gas = 7_423_182_562_500
    creation = 7_022_318_256_250_000_000_000  # gas and charge of a creation: `fees.json`
    own = ["CreateAccount", DEPLOY]
    ended = builders.outcome("R0", gas=gas, tokens=creation + 12 * BYTE)
    body = builders.body("R0", *own, to="new.alice.near")
    found = traced([ended], [body], to="new.alice.near", actions=own)
    assert changes(found)["new.alice.near"] == -12 * BYTE
    assert changes(found)["alice.near"] == -CONVERSION - creation


@pytest.mark.parametrize("status", [{"SuccessValue": ""}, builders.failing()])
def test_a_global_contract_whose_bytes_are_not_in_the_tokens_burnt(status: Any):
    """Before protocol 83 the account's payment is unknown; a deployment that failed cost none."""
    found = deployed(status=status)
    failed = "Failure" in status
    fee = CONVERSION + DEPLOY_GAS * builders.PRICE
    assert moved(found) == [("fee", "near", "alice.near", "system", fee)]
    assert found.gas["balance_burnt"].tolist() == [0, 0 if failed else pd.NA]
    note = "what these receipts took from the account that ran them or its gas keys is unknown: R0"
    assert found.notes == (() if failed else (note,))


def test_tokens_that_cannot_be_split_leave_the_fee_unknown():
    """Without the gas price a rest that is no number of bytes may be anything: nothing is told."""
    found = deployed(block="block of R0", tokens=DEPLOY_GAS * builders.PRICE + 3 * BYTE + 1)
    assert moved(found) == [("fee", "near", "alice.near", "system", None)]
    assert found.balance_changes["change"].tolist() == [pd.NA]
    assert found.gas["gas_price"].tolist() == [builders.PRICE, pd.NA]
    assert "which cost alice.near an unknown amount" in found.explain()


# Gas keys -------------------------------------------------------------------------------

KEY = "ed25519:DcA2MzgpJbrUATQLLceocVckhhAqrkingax4oJ9kZ847"
GAS_KEY = f"gas_key:{KEY}"
SIGNED_WITH_KEY = {"public_key": KEY, "nonce": 7, "nonce_index": 2}


def traced_with_key(outcomes: Any, bodies: Any, key: Any = None, to: str = "bob.near") -> Trace:
    """Trace a transaction that a gas key signed: nodes write `nonce_index` for these alone."""
    document = builders.result(outcomes, bodies, to=to)
    document["transaction"] |= SIGNED_WITH_KEY if key is None else key
    return Trace.from_json(document, rules=builders.RULES)


def test_a_gas_key_pays_for_gas_and_the_account_for_deposits():
    """The fee is paid by the key's balance, into which gas is refunded (NEP-611)."""
    found = traced_with_key(
        [builders.outcome("R0", ["R1"]), builders.outcome("R1", tokens=0)],
        [builders.body("R0", builders.transfer(1000)), builders.refund("R1", 60)],
    )
    fee = CONVERSION + 5 * builders.PRICE
    assert moved(found)[0] == ("fee", GAS_KEY, "alice.near", "system", fee)
    assert changes(found) == {"alice.near": -1000, "bob.near": 1000}
    assert changes(found, GAS_KEY) == {"alice.near": -fee}
    assert "which cost a gas key of alice.near" in found.explain()


@pytest.mark.parametrize("key", [{"public_key": KEY}, {"public_key": KEY, "nonce_index": None}])
def test_any_other_key_pays_from_its_account(key: Any):
    """Without `nonce_index` the account itself pays for gas."""
    found = traced_with_key([builders.outcome("R0")], [builders.body("R0")], key=key)
    assert changes(found) == {"alice.near": -CONVERSION - 5 * builders.PRICE}


def test_a_gas_key_that_is_not_named():
    """A document may lack the key; its change is still not the account's."""
    found = traced_with_key([builders.outcome("R0")], [builders.body("R0")], key={"nonce_index": 0})
    assert changes(found) == {}
    assert changes(found, "gas_key") == {"alice.near": -CONVERSION - 5 * builders.PRICE}


def gas_key_transfers(amount: int) -> tuple[Any, Any]:
    """Write the transfers into a gas key and out of it."""
    return (
        {"TransferToGasKey": {"public_key": KEY, "deposit": str(amount)}},
        {"WithdrawFromGasKey": {"public_key": KEY, "amount": str(amount)}},
    )


def test_transfers_into_and_out_of_a_gas_key():
    """What goes into a key leaves its sender, and what comes out is its account's again."""
    added, withdrawn = gas_key_transfers(900)
    found = traced([builders.outcome("R0")], [builders.body("R0", added)])
    assert moved(found)[1:] == [
        ("gas_key", "near", "alice.near", "system", 900),
        ("gas_key", GAS_KEY, "system", "bob.near", 900),
    ]
    assert changes(found, GAS_KEY) == {"bob.near": 900}
    assert found.receipts["deposit"].tolist() == [900]
    assert found.actions["details"].tolist() == [{"public_key": KEY}]
    assert "900 yocto to a gas key of bob.near" in found.explain()
    found = traced([builders.outcome("R0")], [builders.body("R0", withdrawn)])
    assert moved(found)[1:] == [
        ("gas_key", GAS_KEY, "bob.near", "system", 900),
        ("gas_key", "near", "system", "bob.near", 900),
    ]
    assert changes(found)["bob.near"] == 900
    assert changes(found, GAS_KEY) == {"bob.near": -900}
    assert found.actions["details"].tolist() == [{"public_key": KEY, "amount": "900"}]


def test_a_failed_transfer_to_a_gas_key_reaches_no_key():
    """Its deposit left the sender and returns with a refund; a failed withdrawal moves nothing."""
    found = traced(
        [builders.outcome("R0", status=builders.failing())],
        [builders.body("R0", *gas_key_transfers(900))],
        status=builders.failing(),
    )
    assert moved(found)[1:] == [("undelivered", "near", "alice.near", "system", 900)]
    assert changes(found, GAS_KEY) == {}


def deleted(*actions: Any, left: int) -> Trace:
    """Trace a transaction to its own account that deletes keys with this balance left in them."""
    ended = builders.outcome("R0", gas=70, tokens=70 * builders.PRICE + left)
    ended |= {"block_hash": "block of T"}
    body = builders.body("R0", *actions, to="alice.near")
    return traced([ended], [body], actions=actions, to="alice.near")


def test_a_deleted_gas_key_burns_its_balance():
    """The balance of a deleted gas key is in the tokens burnt; it is the key's, and no fee."""
    fee = CONVERSION + 70 * builders.PRICE
    deletion = {"DeleteKey": {"public_key": KEY}}
    found = deleted(deletion, left=70 * 10**20)
    assert moved(found) == [
        ("fee", "near", "alice.near", "system", fee),
        ("burnt", GAS_KEY, "alice.near", "system", 70 * 10**20),
    ]
    assert changes(found) == {"alice.near": -fee}
    assert changes(found, GAS_KEY) == {"alice.near": -70 * 10**20}
    assert [row[0] for row in moved(deleted(deletion, left=0))] == ["fee"]
    both = deleted(deletion, {"DeleteKey": {"public_key": "ed25519:other"}}, left=3)
    assert changes(both, "gas_key") == {"alice.near": -3}
    account = deleted(deletion, {"DeleteAccount": {"beneficiary_id": "heir.near"}}, left=3)
    assert changes(account, "gas_key") == {"alice.near": -3}
    assert "0.007 NEAR of a gas key of alice.near burnt" in found.explain()


def test_a_deletion_in_a_block_of_unknown_price():
    """Tokens that are a multiple of the gas are its price; other tokens are not guessed."""
    deletion = {"DeleteKey": {"public_key": KEY}}
    for left, taken in ((0, 0), (3, pd.NA)):
        ended = builders.outcome("R0", gas=70, tokens=70 * builders.PRICE + left)
        found = traced([ended], [builders.body("R0", deletion)], actions=[deletion])
        assert found.gas["balance_burnt"].tolist() == [0, taken]


def test_a_refund_of_gas_to_a_gas_key_that_has_been_deleted():
    """It goes to the account (nearcore, `try_refund_gas_key_balance`): the key paid for it."""
    ended = builders.outcome("R0", ["R1"]) | {"block_hash": "block of T"}
    own = {"DeleteKey": {"public_key": KEY}}
    found = traced_with_key(
        [ended, builders.outcome("R1", tokens=0)],
        [builders.body("R0", own, to="alice.near"), builders.refund("R1", 60)],
        to="alice.near",
    )
    fee = CONVERSION + 5 * builders.PRICE + 60
    assert changes(found) == {"alice.near": 60}
    assert changes(found, GAS_KEY) == {"alice.near": -fee}
    assert moved(found)[-1] == ("refund_gas", "near", "system", "alice.near", 60)


# Contract rewards and tokens ------------------------------------------------------------


def test_a_deposit_sent_on_comes_back_to_the_contract():
    """What a contract's own receipt could not deliver is the contract's again, not the user's."""
    found = traced(
        [
            builders.outcome("R0", ["R1"]),
            builders.outcome("R1", ["R2"], status=builders.failing()),
            builders.outcome("R2", tokens=0),
        ],
        [
            builders.body("R0", builders.transfer(90)),
            builders.body("R1", builders.transfer(70), sender="bob.near", to="carl.near"),
            builders.refund("R2", 70, "bob.near", signer="system"),
        ],
    )
    assert changes(found) == {"alice.near": -CONVERSION - 10 * builders.PRICE - 90, "bob.near": 90}


def test_a_contract_gets_its_share_of_what_calls_burn():
    """Three tenths of the gas beside the fees, at the price it was burnt at, also on failure."""
    fees = 100 + 1000 + 10 * len('m{"a": 1}')
    asked = builders.call("m", 0, {"a": 1})
    for status in ({"SuccessValue": ""}, builders.failing()):
        found = traced(
            [builders.outcome("R0", gas=fees + 37, status=status)], [builders.body("R0", asked)]
        )
        share = 37 * 3 // 10 * builders.PRICE
        assert moved(found)[1:] == [("contract_reward", "near", "system", "bob.near", share)]
        assert found.gas["gas_in_calls"].tolist() == [0, 37]
        assert found.gas["contract_reward"].tolist() == [0, share]
        assert found.gas["gas_price"].tolist() == [builders.PRICE, builders.PRICE]
        assert changes(found)["bob.near"] == share


def profile(*gas: int) -> dict[str, Any]:
    """Write what an outcome says of its calls."""
    costs = [{"cost": "X", "cost_category": "WASM_HOST_COST", "gas_used": str(g)} for g in gas]
    return {"metadata": {"version": 3, "gas_profile": costs}}


def test_a_batch_with_a_call_is_read_from_its_profile():
    """Where fees depend on what a result does not tell, the outcome's own sums are taken."""
    asked = ["CreateAccount", builders.call()]
    ended = builders.outcome("R0", gas=5000, **profile(100, 11))
    found = traced([ended], [builders.body("R0", *asked)], actions=asked)
    assert found.gas["gas_in_calls"].tolist() == [0, 111]
    assert found.gas["contract_reward"].tolist() == [0, 33 * builders.PRICE]


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ([builders.call(), {"DeleteAccount": {"beneficiary_id": "x"}}], {"SuccessValue": ""}),
        (["CreateAccount", builders.call(), builders.call()], builders.failing(index=2)),
    ],
    ids=["deleted", "never created"],
)
def test_who_is_not_there_gets_no_share(asked: Any, status: Any):
    """An account that is gone, or whose creation was undone, gets nothing of its calls."""
    ended = builders.outcome("R0", gas=5000, status=status, **profile(1000))
    found = traced([ended], [builders.body("R0", *asked)], actions=asked)
    assert found.gas["contract_reward"].tolist() == [0, 0]


def test_the_share_of_an_account_that_may_not_exist_is_unknown():
    """A result does not say whether a failed state init rolled back the account itself."""
    asked = [state_init(5), builders.call()]
    ended = builders.outcome("R0", gas=5000, status=builders.failing(index=1), **profile(1000))
    found = traced([ended], [builders.body("R0", *asked, to=NEW)], actions=asked, to=NEW)
    assert found.gas["contract_reward"].tolist() == [0, pd.NA]
    assert found.notes == ("contract rewards that could not be computed are not counted: R0",)


def test_without_rules_the_share_is_left_out_and_said_so():
    """What is not known is not guessed: no reward, and a note that names the receipt."""
    ended = builders.outcome("R0", gas=5000, **profile(1000))
    found = traced([ended], [builders.body("R0", builders.call())], rules=False)
    assert [row[0] for row in moved(found)] == ["fee"]
    assert found.gas["contract_reward"].tolist() == [0, pd.NA]
    assert len(found.notes) == 1
    assert found.notes[0] == "contract rewards that could not be computed are not counted: R0"


def test_the_price_of_a_receipt_that_created_an_account():
    """Of the fee of a creation one part is no gas: the price is that of the rest."""
    gas = 7_423_182_562_500
    tokens = 7_022_318_256_250_000_000_000  # the worked example of a transfer with a creation
    asked = ["CreateAccount", builders.transfer(1)]
    ended = builders.outcome("R0", gas=gas, tokens=tokens)
    found = traced([ended], [builders.body("R0", *asked)], actions=asked)
    assert found.gas["gas_price"].tolist() == [builders.PRICE, 10**8]
    odd = builders.outcome("R0", gas=gas, tokens=tokens + 1)
    found = traced([odd], [builders.body("R0", *asked)], actions=asked)
    assert found.gas["gas_price"].tolist() == [builders.PRICE, pd.NA]


def test_a_relayer_pays_for_what_it_relays():
    """The deposit of a delegated call comes from the relayer and goes through the signer."""
    asked = builders.delegate("kate.near", "gold.near", builders.call("ft_transfer", 1))
    found = traced(
        [builders.outcome("R0", ["R1"]), builders.outcome("R1", gas=50)],
        [
            builders.body("R0", asked, to="kate.near"),
            builders.body(
                "R1", builders.call("ft_transfer", 1), sender="kate.near", to="gold.near"
            ),
        ],
        actions=[asked],
        to="kate.near",
    )
    assert moved(found)[1:] == [
        ("delegated", "near", "alice.near", "kate.near", 1),
        ("deposit", "near", "kate.near", "gold.near", 1),
    ]
    assert changes(found) == {"alice.near": -CONVERSION - 55 * builders.PRICE - 1, "gold.near": 1}


def test_a_deleted_accounts_tokens_go_to_its_beneficiary():
    """All it had goes to another; a refund of gas that finds nobody is nobody's."""
    asked = {"DeleteAccount": {"beneficiary_id": "heir.near"}}
    missing = {"ActionError": {"index": 0, "kind": {"AccountDoesNotExist": {"account_id": "a"}}}}
    found = traced(
        [
            builders.outcome("R0", ["R1", "R2"]),
            builders.outcome("R1", tokens=0),
            builders.outcome("R2", tokens=0, status={"Failure": missing}),
        ],
        [
            builders.body("R0", asked, to="alice.near"),
            builders.refund("R1", 5000, "heir.near", signer="system"),
            builders.refund("R2", 60),
        ],
        actions=[asked],
        to="alice.near",
    )
    assert ("beneficiary", "near", "alice.near", "heir.near", 5000) in moved(found)
    paid = CONVERSION + 5 * builders.PRICE + 60
    assert changes(found) == {"alice.near": -paid - 5000, "heir.near": 5000}
    assert "a refund failed because its receiver no longer exists" in found.explain()


def test_tokens_of_three_standards():
    """Mints, burns and transfers of fungible, non-fungible and multi tokens, by asset."""
    lines = [
        builders.event(
            "nep141", "ft_mint", {"owner_id": "a", "amount": str(2**128 - 1), "memo": "x"}
        ),
        builders.event("nep141", "ft_burn", {"owner_id": "b", "amount": "5"}),
        builders.event(
            "nep171",
            "nft_transfer",
            {"old_owner_id": "a", "new_owner_id": "c", "token_ids": ["1", "2"]},
        ),
        builders.event(
            "nep245",
            "mt_transfer",
            {"old_owner_id": "a", "new_owner_id": "c", "token_ids": ["u"], "amounts": ["7"]},
        ),
        builders.event("dip4", "ft_mint", {"owner_id": "a", "amount": "1"}),
    ]
    found = traced([builders.outcome("R0", logs=lines)], [builders.body("R0", builders.call())])
    assert moved(found)[1:] == [
        ("token", "nep141:bob.near", None, "a", 2**128 - 1),
        ("token", "nep141:bob.near", "b", None, 5),
        ("nft", "nep171:bob.near:1", "a", "c", 1),
        ("nft", "nep171:bob.near:2", "a", "c", 1),
        ("multi_token", "nep245:bob.near:u", "a", "c", 7),
    ]
    assert changes(found, "nep171:bob.near:2") == {"a": -1, "c": 1}
    assert changes(found, "nep141:bob.near") == {"a": 2**128 - 1, "b": -5}
    assert found.transfers["memo"].dropna().tolist() == ["x"]
    assert len(found.events) == 5


def test_wrapped_near_says_it_in_its_own_words():
    """Its lines stand for mint and burn, in its two methods alone."""
    lines = ["Deposit 12 NEAR to bob.near", "Withdraw 3 yoctoNEAR from bob.near"]
    for method, row in (("near_deposit", (None, "bob.near", 12)), ("near_withdraw", ("bob.near",))):
        body = builders.body("R0", builders.call(method), to="wrap.near")
        found = traced([builders.outcome("R0", logs=lines)], [body])
        (kind, asset, *sides) = moved(found)[-1]
        assert (kind, asset) == ("token", "nep141:wrap.near")
        assert tuple(sides) == (row if method == "near_deposit" else ("bob.near", None, 3))
    found = traced(
        [builders.outcome("R0", logs=lines)], [builders.body("R0", builders.call("other"))]
    )
    assert [row[0] for row in moved(found)] == ["fee"]


@pytest.mark.parametrize(
    "data",
    [
        {"owner_id": "a"},
        {"owner_id": "a", "amount": 5},
        {"owner_id": "a", "amount": "-5"},
        {"owner_id": "a", "amount": str(2**128)},
        {"owner_id": None, "amount": "5"},
        "owner_id",
    ],
    ids=["no amount", "a number", "a sign", "too large", "nobody", "no object"],
)
def test_an_event_against_its_standard_moves_nothing_and_is_named(data: Any):
    """It is not counted, a note says which, and the next one counts."""
    good = builders.event("nep141", "ft_mint", {"owner_id": "b", "amount": "2"})
    lines = [builders.event("nep141", "ft_mint", data), good]
    found = traced(
        [builders.outcome("R0", logs=lines)], [builders.body("R0", builders.transfer(1))]
    )
    assert changes(found, "nep141:bob.near") == {"b": 2}
    assert found.notes == (
        "events that do not follow their standard are not counted: ft_mint of bob.near in R0",
    )


def test_failed_receipts_move_no_tokens():
    """An event of a failed receipt was undone with it."""
    line = builders.event("nep141", "ft_mint", {"owner_id": "b", "amount": "2"})
    ended = builders.outcome("R0", logs=[line], status=builders.failing())
    found = traced([ended], [builders.body("R0", builders.call())], status=builders.failing())
    assert changes(found, "nep141:bob.near") == {}
    assert found.events["is_effective"].tolist() == [False]


def test_an_unfinished_transaction_counts_what_has_left():
    """What waits to be executed has left its sender and reached nobody; a note says so."""
    found = traced(
        [builders.outcome("R0", ["R1"])],
        [
            builders.body("R0", builders.transfer(90)),
            builders.body("R1", builders.transfer(70), sender="bob.near", to="carl.near"),
        ],
        status="Started",
        final_execution_status="INCLUDED",
    )
    assert changes(found) == {"alice.near": -CONVERSION - 5 * builders.PRICE - 90, "bob.near": 20}
    assert found.notes == ("gas bought for receipts that have not run is not counted: R1",)


def test_plain_tx_says_what_it_does_not_tell():
    """Without bodies refunds and deposits are unknown: a note says so, once."""
    document = builders.result(
        [builders.outcome("R0", ["R1"]), builders.outcome("R1", tokens=0)], []
    )
    del document["receipts"]
    found = Trace.from_json(document, rules=builders.RULES)
    assert found.notes[0].startswith("the document has no receipt bodies")
    assert not any("R1" in note for note in found.notes)


def test_a_body_that_is_missing_is_named():
    """What a receipt without a body moves is not counted, and said so."""
    found = traced([builders.outcome("R0", ["R1"]), builders.outcome("R1")], [builders.body("R0")])
    assert "deposits that the document does not contain are not counted: R1" in found.notes


@pytest.mark.parametrize("missing", ["T", "R0"])
def test_missing_tokens_leave_the_fee_unknown(missing: str):
    """An outcome without tokens_burnt did not cost 0: fee and payer's change are missing."""
    document = builders.result(
        [builders.outcome("R0")], [builders.body("R0", builders.transfer(90))]
    )
    outcomes = {"T": document["transaction_outcome"], "R0": document["receipts_outcome"][0]}
    del outcomes[missing]["outcome"]["tokens_burnt"]
    found = Trace.from_json(document, rules=builders.RULES)
    assert moved(found)[0] == ("fee", "near", "alice.near", "system", None)
    assert changes(found) == {"alice.near": pd.NA, "bob.near": 90}
    name = "the transaction" if missing == "T" else "R0"
    (note,) = [note for note in found.notes if note.startswith("the fee is unknown")]
    assert note.endswith(f"tokens_burnt is missing for {name}".replace("for R0", "for: R0"))
    assert "which cost alice.near an unknown amount" in found.explain()


def test_a_receipt_of_unknown_status_that_burnt_gas():
    """It has run: its cost counts, what it delivered is unknown, and the verdict says so."""
    parts = [builders.outcome("R0", status="Unknown")], [builders.body("R0", builders.transfer(90))]
    found = traced(*parts)
    assert found.verdict == "unknown"
    assert traced(*parts, status=None, final_execution_status=None).verdict == "unknown"
    fee = CONVERSION + 5 * builders.PRICE
    assert moved(found) == [
        ("fee", "near", "alice.near", "system", fee),
        ("undelivered", "near", "alice.near", "system", 90),
    ]
    assert found.notes == (
        "it is unknown whether these receipts succeeded, and what they did is not counted: R0",
    )
    assert "Nothing was transferred" not in found.explain()


def test_a_receipt_of_unknown_status_without_gas_has_not_run():
    """Nodes write Unknown before a receipt runs: then the transaction is pending."""
    ended = builders.outcome("R0", status="Unknown", gas=0)
    found = traced([ended], [builders.body("R0")], final_execution_status="INCLUDED")
    assert found.verdict == "pending"
    assert found.notes == ("gas bought for receipts that have not run is not counted: R0",)


@pytest.mark.parametrize(
    "action",
    [
        {"DelegateV2": {"delegate_action": {"V3": {"actions": [builders.transfer(5)]}}}},
        {"DelegateV2": {"signature": "s"}},
        {"Delegate": {"delegate_action": {"sender_id": "bob.near"}}},
        {"Later": {"deposit": "5"}},
        "Later",
        {},
    ],
    ids=["V3", "no payload", "no actions", "unknown", "a word", "empty"],
)
def test_what_an_unknown_action_moves_is_unknown(action: Any):
    """Its deposit is not 0: a note names the receipt, and nobody says that nothing moved."""
    found = traced([builders.outcome("R0")], [builders.body("R0", action)], actions=[action])
    assert found.notes == ("deposits that the document does not contain are not counted: R0",)
    assert "The document does not contain what was transferred." in found.explain()
    assert "None" not in found.explain()


def test_only_a_finished_transaction_is_known_to_have_moved_nothing():
    """Without receipts, bodies or outcomes it is unknown, or not yet known, what it moves."""
    bodies = [builders.body("R0", builders.call())]
    assert "Nothing was transferred." in traced([builders.outcome("R0")], bodies).explain()
    waiting = traced([], bodies, status="Started", final_execution_status="INCLUDED")
    assert "Nothing has been transferred yet." in waiting.explain()
    document = builders.result([], [], final_execution_status="NONE", status="NotStarted")
    del document["transaction_outcome"]
    unsent = Trace.from_json(document)
    assert "The document does not contain what was transferred." in unsent.explain()
    assert moved(unsent) == []


def test_gas_up_to_64_bits_is_in_all_frames():
    """Gas is u64 on the wire: its largest value is exact in each frame, and so are sums."""
    largest = 2**64 - 1
    own = builders.call(gas=largest)
    found = traced([builders.outcome("R0", gas=largest)], [builders.body("R0", own)], rules=False)
    assert found.receipts["gas_attached"].tolist() == [largest]
    assert found.receipts["gas_burnt"].tolist() == [largest]
    assert found.actions["gas_attached"].tolist() == [largest]
    assert found.gas["gas_burnt"].sum() == largest + 3
    assert (found.receipts["gas_attached"] - found.receipts["subtree_gas"]).tolist() == [0]
    assert f"It burnt {units.gas_text(largest + 3)} of gas" in found.explain()


def test_shards_follow_from_the_rules():
    """Where the service does not tell shards, the layout does, for what has run."""
    found = traced(
        [builders.outcome("R0", ["R1"])],
        [
            builders.body("R0", builders.call(), to="bob.near"),
            builders.body("R1", builders.call(), to="z.near"),
        ],
    )
    assert found.receipts["shard_id"].tolist() == [3, pd.NA]


def test_a_saved_trace_keeps_the_rules(tmp_path: Any):
    """Rewards are the same after saving and loading."""
    found = traced([builders.outcome("R0", gas=5000)], [builders.body("R0", builders.call())])
    again = Trace.load(found.save(tmp_path / "trace.json"))
    pd.testing.assert_frame_equal(again.gas, found.gas)
    pd.testing.assert_frame_equal(again.receipts, found.receipts)
    assert again.notes == found.notes == ()


# Worked executions and recordings -------------------------------------------------------


def worked() -> list[Any]:
    """Read the worked executions, where they are."""
    path = SHARED / "vectors" / "trees.json"
    return json.loads(path.read_text())["cases"] if path.exists() else []


def recorded() -> list[Path]:
    """List the recordings with bodies, where they are."""
    folder = SHARED / "wire" / "samples"
    return [path for path in sorted(folder.glob("tx*/*_*.json")) if "signed" not in path.name]


def check_sum(found: Trace) -> None:
    """Assert that nobody's gain is anything but another's loss, or burnt."""
    burnt = found.gas["tokens_burnt"].dropna().sum()
    shares = found.gas["contract_reward"].dropna().sum()
    frame = found.balance_changes
    is_near = frame["asset"].eq("near") | frame["asset"].str.startswith("gas_key")
    assert sum(frame.loc[is_near, "change"]) == shares - burnt


def check_transfers(found: Trace) -> None:
    """Assert that the transfers of each account and asset add up to its change."""
    sums: dict[tuple[str, str], int] = {}
    columns = ["asset", "sender_id", "receiver_id", "amount"]
    for asset, sender_id, receiver_id, amount in found.transfers[columns].itertuples(index=False):
        for account_id, change in ((sender_id, -amount), (receiver_id, amount)):
            if isinstance(account_id, str) and account_id != "system":
                sums[account_id, asset] = sums.get((account_id, asset), 0) + change
    rows = found.balance_changes.itertuples(index=False, name=None)
    assert {key: change for key, change in sums.items() if change} == {
        (account_id, asset): change for account_id, asset, change in rows
    }


@pytest.mark.parametrize("case", worked(), ids=lambda case: case["name"])
def test_worked_executions_lose_what_they_burn(case: dict[str, Any]):
    """The fee is what all executions burnt; all changes of NEAR are that, with its minus."""
    found = Trace.from_json(case["result"])
    check_sum(found)
    check_transfers(found)
    (fee,) = found.transfers.loc[found.transfers["kind"] == "fee", "amount"]
    outcomes = [case["result"]["transaction_outcome"], *case["result"]["receipts_outcome"]]
    assert fee == sum(int(outcome["outcome"]["tokens_burnt"]) for outcome in outcomes)
    refunds = found.receipts[found.receipts["kind"] == "refund"]
    back = found.transfers.loc[found.transfers["kind"] == "refund_deposit", "amount"].sum()
    assert found.gas["gas_refund"].sum() + back == refunds["deposit"].sum()


WORKED_TOKENS = {
    "ft_transfer_call_all_used": 1,
    "ft_transfer_call_part_refunded": 2,
    "ft_transfer_call_receiver_panics": 2,
}


@pytest.mark.parametrize("case", worked(), ids=lambda case: case["name"])
def test_worked_executions_move_the_tokens_of_their_events(case: dict[str, Any]):
    """A transfer is one movement; what comes back is another, with the opposite ends."""
    found = Trace.from_json(case["result"]).transfers
    tokens = found[found["kind"] == "token"]
    assert len(tokens) == WORKED_TOKENS.get(case["name"], 0)
    if len(tokens) == 2:
        there, back = tokens.to_dict("records")
        ends = there["sender_id"], there["receiver_id"]
        assert (back["receiver_id"], back["sender_id"]) == ends
        assert 0 < back["amount"] <= there["amount"]


@pytest.mark.parametrize("path", recorded(), ids=lambda path: path.stem)
def test_recordings_lose_what_they_burn(path: Path):
    """What real nodes sent adds up as far as it has run."""
    found = Trace.from_json(path.read_bytes())
    check_transfers(found)
    if found.receipts["status"].ne("not_executed").all():
        check_sum(found)
    assert found.explain().count("\n\n") >= 4
