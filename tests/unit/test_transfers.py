"""What moved, and who has how much more or less: by hand-computed results."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerkit.tracing.burnt_tokens import BurntTokens, Execution, split_burnt_tokens
from ledgerkit.tracing.trace import Trace
from tests.unit.builders import (
    PRICE,
    RULES,
    body,
    call,
    call_bytes,
    delegate,
    event,
    failing,
    outcome,
    refund,
    result,
    transfer,
)

Rows = list[tuple[Any, ...]]
SHARED = Path(__file__).resolve().parents[2].parent / "shared"
CONVERSION = 3 * PRICE  # what `result` burns to take a transaction in


def traced(outcomes: Any, bodies: Any, *, rules: bool = True, **more: Any) -> Trace:
    """Trace a result, under known rules."""
    document = result(outcomes, bodies, **more)
    return Trace.from_json(document, rules=RULES if rules else None)


def moved(trace: Trace) -> Rows:
    columns = ["kind", "asset", "sender_id", "receiver_id", "amount"]
    frame = trace.transfers[columns]
    return list(frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None))


def changes(trace: Trace, asset: str = "near") -> dict[str, int]:
    frame = trace.balance_changes
    rows = frame[frame["asset"] == asset]
    return dict(zip(rows["account_id"], rows["change"], strict=True))


def test_a_transfer_and_its_fee():
    """The fee is what was burnt: what was paid in advance and refunded is in no transfer."""
    found = traced(
        [outcome("R0", ["R1"], gas=5), outcome("R1", gas=5, tokens=0)],
        [body("R0", transfer(1000)), refund("R1", 60)],
    )
    assert moved(found) == [
        ("fee", "near", "alice.near", "system", CONVERSION + 5 * PRICE),
        ("transfer", "near", "alice.near", "bob.near", 1000),
    ]
    assert found.gas["gas_refund"].tolist() == [0, 60, 0]
    assert changes(found) == {
        "alice.near": -CONVERSION - 5 * PRICE - 1000,
        "bob.near": 1000,
    }
    assert found.transfers["order"].tolist() == [pd.NA, 0]
    assert found.notes == ()


def test_a_deposit_that_failed_is_no_transfer():
    """A failed receipt delivers nothing; its deposit left its sender, and a refund returns it."""
    found = traced(
        [outcome("R0", ["R1"], status=failing()), outcome("R1", tokens=0)],
        [body("R0", transfer(400), transfer(4)), refund("R1", 404, signer="system")],
        status=failing(),
    )
    assert moved(found)[1:] == [
        ("undelivered", "near", "alice.near", "system", 404),
        ("refund_deposit", "near", "system", "alice.near", 404),
    ]
    assert changes(found) == {"alice.near": -CONVERSION - 5 * PRICE}


def test_a_refund_to_another_account():
    """A failed deposit may return to an account other than its sender (`refund_to`)."""
    found = traced(
        [outcome("R0", ["R1"], status=failing()), outcome("R1", tokens=0)],
        [body("R0", transfer(404)), refund("R1", 404, "carl.near", signer="system")],
        status=failing(),
    )
    paid = CONVERSION + 5 * PRICE
    assert changes(found) == {"alice.near": -paid - 404, "carl.near": 404}


NEW = "0s385fa6a1b92e0d4a5e6ba6cdbbc2a0ae4f0b4a1e"


def state_init(deposit: int) -> dict[str, Any]:
    return {"DeterministicStateInit": {"code": {"hash": "C"}, "data": {}, "deposit": str(deposit)}}


def test_a_state_init_keeps_only_what_its_storage_needs():
    """The rest of its deposit returns from the account, although the receipt succeeded."""
    found = traced(
        [outcome("R0", ["R1", "R2"]), *[outcome(f"R{n}", tokens=0) for n in (1, 2)]],
        [
            body("R0", state_init(5000), to=NEW),
            refund("R1", 4990, signer="system"),
            refund("R2", 60),
        ],
    )
    assert moved(found)[1:] == [
        ("deposit", "near", "alice.near", NEW, 5000),
        ("refund_deposit", "near", NEW, "alice.near", 4990),
    ]
    assert changes(found) == {NEW: 10, "alice.near": -CONVERSION - 5 * PRICE - 10}
    check_sum(found)


def test_a_refund_that_has_not_run_has_left_the_new_account():
    """Until it runs, the rest of a deposit has left the account and reached nobody."""
    bodies = [body("R0", state_init(5000), to=NEW), refund("R1", 4990, signer="system")]
    found = traced([outcome("R0", ["R1"])], bodies, to=NEW)
    assert moved(found)[-1] == ("undelivered", "near", NEW, "system", 4990)
    assert changes(found)[NEW] == 10


def test_a_state_init_before_a_deletion():
    """Of the refunds of a deleted account only that to its beneficiary is the rest it had."""
    own = [state_init(50), {"DeleteAccount": {"beneficiary_id": "heir.near"}}]
    found = traced(
        [outcome("R0", ["R1", "R2"]), *[outcome(f"R{n}", tokens=0) for n in (1, 2)]],
        [
            body("R0", *own, to="alice.near"),
            refund("R1", 40, "carl.near", signer="system"),
            refund("R2", 900, "heir.near", signer="system"),
        ],
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
    ended = outcome("R0", gas=DEPLOY_GAS, **fields) | {"block_hash": block}
    own = actions or (DEPLOY,)
    return traced([ended], [body("R0", *own, to="alice.near")])


@pytest.mark.parametrize("block", ["block of T", "block of R0"], ids=["same block", "another"])
@pytest.mark.parametrize("name", ["DeployGlobalContract", "DeployGlobalContractByAccountId"])
def test_the_bytes_of_a_global_contract_are_no_fee(name: str, block: str):
    """10^20 yocto a byte are burnt of the account that runs the action, and no gas price."""
    fee = CONVERSION + DEPLOY_GAS * PRICE
    tokens = DEPLOY_GAS * PRICE + 700 * BYTE
    found = deployed({name: {"code": "Zm9v"}}, block=block, tokens=tokens)
    assert moved(found) == [
        ("fee", "near", "alice.near", "system", fee),
        ("burnt", "near", "alice.near", "system", 700 * BYTE),
    ]
    assert changes(found) == {"alice.near": -fee - 700 * BYTE}
    assert found.gas["gas_price"].tolist() == [PRICE] * 2
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


def test_a_refund_in_the_same_block_tells_no_price_of_gas():
    """Its gas is free, so the price of a deletion beside it is that of its own gas."""
    executions = [
        Execution(300, 3, "A"),
        Execution(0, 5, "B"),
        Execution(700, 7, "B", ["DeleteKey"]),
    ]
    assert split_burnt_tokens(executions)[2] == BurntTokens(100, 0)


def test_a_contract_pays_for_the_global_contract_it_deploys():
    """The account that executes the receipt pays for the bytes, the signer for the gas."""
    tokens = DEPLOY_GAS * PRICE + 3 * BYTE
    found = traced(
        [outcome("R0", ["R1"]), outcome("R1", gas=DEPLOY_GAS, tokens=tokens)],
        [body("R0", transfer(1)), body("R1", DEPLOY, sender="bob.near")],
    )
    fee = CONVERSION + (5 + DEPLOY_GAS) * PRICE
    assert changes(found) == {"alice.near": -fee - 1, "bob.near": 1 - 3 * BYTE}


def test_a_new_account_that_deploys_a_global_contract():
    """The amount that a creation burns is a fee; it is told from the bytes of the contract."""
    gas = 7_423_182_562_500
    creation = 7_022_318_256_250_000_000_000  # gas and charge of a creation: `fees.json`
    own = ["CreateAccount", DEPLOY]
    ended = outcome("R0", gas=gas, tokens=creation + 12 * BYTE)
    receipt = body("R0", *own, to="new.alice.near")
    found = traced([ended], [receipt])
    assert changes(found)["new.alice.near"] == -12 * BYTE
    assert changes(found)["alice.near"] == -CONVERSION - creation


@pytest.mark.parametrize("status", [{"SuccessValue": ""}, failing()])
def test_a_global_contract_whose_bytes_are_not_in_the_tokens_burnt(status: Any):
    """Before protocol 83 the account's payment is unknown; a deployment that failed cost none."""
    found = deployed(status=status)
    failed = "Failure" in status
    fee = CONVERSION + DEPLOY_GAS * PRICE
    assert moved(found) == [("fee", "near", "alice.near", "system", fee)]
    assert found.gas["balance_burnt"].tolist() == [0, 0 if failed else pd.NA]
    note = "what these receipts took from the account that ran them or its gas keys is unknown: R0"
    assert found.notes == (() if failed else (note,))


def test_tokens_that_cannot_be_split_leave_the_fee_unknown():
    """Without the gas price a rest that is no number of bytes may be anything: nothing is told."""
    found = deployed(block="block of R0", tokens=DEPLOY_GAS * PRICE + 3 * BYTE + 1)
    assert moved(found) == [("fee", "near", "alice.near", "system", None)]
    assert found.balance_changes["change"].tolist() == [pd.NA]
    assert found.gas["gas_price"].tolist() == [PRICE, pd.NA]
    assert "which cost alice.near an unknown amount" in found.explain()


# Gas keys -------------------------------------------------------------------------------

KEY = "ed25519:DcA2MzgpJbrUATQLLceocVckhhAqrkingax4oJ9kZ847"
GAS_KEY = f"gas_key:{KEY}"
SIGNED_WITH_KEY = {"public_key": KEY, "nonce": 7, "nonce_index": 2}


def traced_with_key(outcomes: Any, bodies: Any, key: Any = None, to: str = "bob.near") -> Trace:
    """Trace a transaction that a gas key signed: nodes write `nonce_index` for these alone."""
    document = result(outcomes, bodies, to=to)
    document["transaction"] |= SIGNED_WITH_KEY if key is None else key
    return Trace.from_json(document, rules=RULES)


def test_a_gas_key_pays_for_gas_and_the_account_for_deposits():
    """The fee is paid by the key's balance, into which gas is refunded (NEP-611)."""
    found = traced_with_key(
        [outcome("R0", ["R1"]), outcome("R1", tokens=0)],
        [body("R0", transfer(1000)), refund("R1", 60)],
    )
    fee = CONVERSION + 5 * PRICE
    assert moved(found)[0] == ("fee", GAS_KEY, "alice.near", "system", fee)
    assert changes(found) == {"alice.near": -1000, "bob.near": 1000}
    assert changes(found, GAS_KEY) == {"alice.near": -fee}
    assert "which cost a gas key of alice.near" in found.explain()


@pytest.mark.parametrize("key", [{"public_key": KEY}, {"public_key": KEY, "nonce_index": None}])
def test_any_other_key_pays_from_its_account(key: Any):
    """Without `nonce_index` the account itself pays for gas."""
    found = traced_with_key([outcome("R0")], [body("R0")], key=key)
    assert changes(found) == {"alice.near": -CONVERSION - 5 * PRICE}


def test_a_gas_key_that_is_not_named():
    """A document may lack the key; its change is still not the account's."""
    found = traced_with_key([outcome("R0")], [body("R0")], key={"nonce_index": 0})
    assert changes(found) == {}
    assert changes(found, "gas_key") == {"alice.near": -CONVERSION - 5 * PRICE}


def gas_key_transfers(amount: int) -> tuple[Any, Any]:
    return (
        {"TransferToGasKey": {"public_key": KEY, "deposit": str(amount)}},
        {"WithdrawFromGasKey": {"public_key": KEY, "amount": str(amount)}},
    )


def test_transfers_into_and_out_of_a_gas_key():
    """What goes into a key leaves its sender, and what comes out is its account's again."""
    added, withdrawn = gas_key_transfers(900)
    found = traced([outcome("R0")], [body("R0", added)])
    assert moved(found)[1:] == [
        ("gas_key", "near", "alice.near", "system", 900),
        ("gas_key", GAS_KEY, "system", "bob.near", 900),
    ]
    assert changes(found, GAS_KEY) == {"bob.near": 900}
    assert found.receipts["deposit"].tolist() == [900]
    assert found.actions["details"].tolist() == [{"public_key": KEY}]
    assert "900 yocto to a gas key of bob.near" in found.explain()
    found = traced([outcome("R0")], [body("R0", withdrawn)])
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
        [outcome("R0", status=failing())], [body("R0", *gas_key_transfers(900))], status=failing()
    )
    assert moved(found)[1:] == [("undelivered", "near", "alice.near", "system", 900)]
    assert changes(found, GAS_KEY) == {}


def deleted(*actions: Any, left: int) -> Trace:
    """Trace a transaction to its own account that deletes keys with this balance left in them."""
    ended = outcome("R0", gas=70, tokens=70 * PRICE + left)
    ended |= {"block_hash": "block of T"}
    receipt = body("R0", *actions, to="alice.near")
    return traced([ended], [receipt])


def test_a_deleted_gas_key_burns_its_balance():
    """The balance of a deleted gas key is in the tokens burnt; it is the key's, and no fee."""
    fee = CONVERSION + 70 * PRICE
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
        ended = outcome("R0", gas=70, tokens=70 * PRICE + left)
        found = traced([ended], [body("R0", deletion)])
        assert found.gas["balance_burnt"].tolist() == [0, taken]


def test_a_refund_of_gas_to_a_gas_key_that_has_been_deleted():
    """It goes to the account (nearcore, `try_refund_gas_key_balance`): the key paid for it."""
    ended = outcome("R0", ["R1"]) | {"block_hash": "block of T"}
    own = {"DeleteKey": {"public_key": KEY}}
    found = traced_with_key(
        [ended, outcome("R1", tokens=0)],
        [body("R0", own, to="alice.near"), refund("R1", 60)],
    )
    fee = CONVERSION + 5 * PRICE + 60
    assert changes(found) == {"alice.near": 60}
    assert changes(found, GAS_KEY) == {"alice.near": -fee}
    assert moved(found)[-1] == ("refund_gas", "near", "system", "alice.near", 60)


# Contract rewards and tokens ------------------------------------------------------------


def test_a_deposit_sent_on_comes_back_to_the_contract():
    """What a contract's own receipt could not deliver is the contract's again, not the user's."""
    found = traced(
        [outcome("R0", ["R1"]), outcome("R1", ["R2"], status=failing()), outcome("R2", tokens=0)],
        [
            body("R0", transfer(90)),
            body("R1", transfer(70), sender="bob.near", to="carl.near"),
            refund("R2", 70, "bob.near", signer="system"),
        ],
    )
    assert changes(found) == {"alice.near": -CONVERSION - 10 * PRICE - 90, "bob.near": 90}


def test_a_contract_gets_its_share_of_what_calls_burn():
    """Three tenths of the gas beside the fees, at the price it was burnt at, also on failure."""
    fees = 100 + 1000 + 10 * len('m{"a": 1}')
    asked = call("m", 0, {"a": 1})
    for status in ({"SuccessValue": ""}, failing()):
        found = traced([outcome("R0", gas=fees + 37, status=status)], [body("R0", asked)])
        share = 37 * 3 // 10 * PRICE
        assert moved(found)[1:] == [("contract_reward", "near", "system", "bob.near", share)]
        assert found.gas["gas_in_calls"].tolist() == [0, 37]
        assert found.gas["contract_reward"].tolist() == [0, share]
        assert found.gas["gas_price"].tolist() == [PRICE, PRICE]
        assert changes(found)["bob.near"] == share


def profile(*gas: int) -> dict[str, Any]:
    costs = [{"cost": "X", "cost_category": "WASM_HOST_COST", "gas_used": str(g)} for g in gas]
    return {"metadata": {"version": 3, "gas_profile": costs}}


def test_a_batch_with_a_call_is_read_from_its_profile():
    """Where fees depend on what a result does not tell, the outcome's own sums are taken."""
    asked = ["CreateAccount", call()]
    ended = outcome("R0", gas=5000, **profile(100, 11))
    found = traced([ended], [body("R0", *asked)])
    assert found.gas["gas_in_calls"].tolist() == [0, 111]
    assert found.gas["contract_reward"].tolist() == [0, 33 * PRICE]


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ([call(), {"DeleteAccount": {"beneficiary_id": "x"}}], {"SuccessValue": ""}),
        (["CreateAccount", call(), call()], failing(index=2)),
    ],
    ids=["deleted", "never created"],
)
def test_who_is_not_there_gets_no_share(asked: Any, status: Any):
    """An account that is gone, or whose creation was undone, gets nothing of its calls."""
    ended = outcome("R0", gas=5000, status=status, **profile(1000))
    found = traced([ended], [body("R0", *asked)])
    assert found.gas["contract_reward"].tolist() == [0, 0]


def test_the_share_of_an_account_that_may_not_exist_is_unknown():
    """A result does not say whether a failed state init rolled back the account itself."""
    asked = [state_init(5), call()]
    ended = outcome("R0", gas=5000, status=failing(index=1), **profile(1000))
    found = traced([ended], [body("R0", *asked, to=NEW)])
    assert found.gas["contract_reward"].tolist() == [0, pd.NA]
    assert found.notes == ("contract rewards that could not be computed are not counted: R0",)


def test_without_rules_the_share_is_left_out_and_said_so():
    """What is not known is not guessed: no reward, and a note that names the receipt."""
    ended = outcome("R0", gas=5000, **profile(1000))
    found = traced([ended], [body("R0", call())], rules=False)
    assert [row[0] for row in moved(found)] == ["fee"]
    assert found.gas["contract_reward"].tolist() == [0, pd.NA]
    assert len(found.notes) == 1
    assert found.notes[0] == "contract rewards that could not be computed are not counted: R0"


def test_the_price_of_a_receipt_that_created_an_account():
    """Of the fee of a creation one part is no gas: the price is that of the rest."""
    gas = 7_423_182_562_500
    tokens = 7_022_318_256_250_000_000_000  # the worked example of a transfer with a creation
    asked = ["CreateAccount", transfer(1)]
    ended = outcome("R0", gas=gas, tokens=tokens)
    found = traced([ended], [body("R0", *asked)])
    assert found.gas["gas_price"].tolist() == [PRICE, 10**8]
    odd = outcome("R0", gas=gas, tokens=tokens + 1)
    found = traced([odd], [body("R0", *asked)])
    assert found.gas["gas_price"].tolist() == [PRICE, pd.NA]


def test_a_relayer_pays_for_what_it_relays():
    """The deposit of a delegated call comes from the relayer and goes through the signer."""
    asked = delegate("kate.near", "gold.near", call("ft_transfer", 1))
    found = traced(
        [outcome("R0", ["R1"]), outcome("R1", gas=50)],
        [
            body("R0", asked, to="kate.near"),
            body("R1", call("ft_transfer", 1), sender="kate.near", to="gold.near"),
        ],
    )
    assert moved(found)[1:] == [
        ("delegated", "near", "alice.near", "kate.near", 1),
        ("deposit", "near", "kate.near", "gold.near", 1),
    ]
    assert changes(found) == {"alice.near": -CONVERSION - 55 * PRICE - 1, "gold.near": 1}


def test_a_deleted_accounts_tokens_go_to_its_beneficiary():
    """All it had goes to another; a refund of gas that finds nobody is nobody's."""
    asked = {"DeleteAccount": {"beneficiary_id": "heir.near"}}
    missing = {"ActionError": {"index": 0, "kind": {"AccountDoesNotExist": {"account_id": "a"}}}}
    found = traced(
        [
            outcome("R0", ["R1", "R2"]),
            outcome("R1", tokens=0),
            outcome("R2", tokens=0, status={"Failure": missing}),
        ],
        [
            body("R0", asked, to="alice.near"),
            refund("R1", 5000, "heir.near", signer="system"),
            refund("R2", 60),
        ],
    )
    assert ("beneficiary", "near", "alice.near", "heir.near", 5000) in moved(found)
    paid = CONVERSION + 5 * PRICE + 60
    assert changes(found) == {"alice.near": -paid - 5000, "heir.near": 5000}
    assert (
        "a refund of gas failed because its receiver no longer exists: it is part of the fee"
        in found.explain()
    )


def test_tokens_of_three_standards():
    """Mints, burns and transfers of fungible, non-fungible and multi tokens, by asset."""
    lines = [
        event("nep141", "ft_mint", {"owner_id": "a", "amount": str(2**128 - 1), "memo": "x"}),
        event("nep141", "ft_burn", {"owner_id": "b", "amount": "5"}),
        event(
            "nep171",
            "nft_transfer",
            {"old_owner_id": "a", "new_owner_id": "c", "token_ids": ["1", "2"]},
        ),
        event(
            "nep245",
            "mt_transfer",
            {"old_owner_id": "a", "new_owner_id": "c", "token_ids": ["u"], "amounts": ["7"]},
        ),
        event("dip4", "ft_mint", {"owner_id": "a", "amount": "1"}),
    ]
    found = traced([outcome("R0", logs=lines)], [body("R0", call())])
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


@pytest.mark.parametrize(
    ("method", "line", "row"),
    [
        ("near_deposit", "Deposit 12 NEAR to ann.near", (None, "ann.near", 12)),
        ("near_withdraw", "Withdraw 3 NEAR from ann.near", ("ann.near", None, 3)),
        ("near_withdraw", "Withdraw 3 yoctoNEAR from ann.near", ("ann.near", None, 3)),
    ],
    ids=["wrap", "unwrap on mainnet", "unwrap in newer source"],
)
def test_wrapped_near_reports_mints_and_burns_in_lines(method: str, line: str, row: Any):
    """Both spellings of an unwrap are read, in any contract with the method."""
    for contract_id in ("wrap.near", "other.near"):
        receipt = body("R0", call(method), to=contract_id)
        trace = traced([outcome("R0", logs=[line], **profile())], [receipt])
        assert moved(trace)[1:] == [("token", f"nep141:{contract_id}", *row)]
        assert trace.transfers["evidence"].tolist()[1:] == ["log"]
        assert changes(trace, f"nep141:{contract_id}") == {"ann.near": 12 if row[1] else -3}
        assert trace.notes == ()


UNREAD_LINES = (
    "log lines that read like token movements, but not of a method that is known to write them, "
    "are not counted: "
)


@pytest.mark.parametrize("calls", [["m"], ["near_deposit", "m"]], ids=["alone", "in a batch"])
def test_a_line_of_another_method_is_not_counted_and_noted(calls: list[str]):
    """The same words mean other things elsewhere: a note quotes them with contract and receipt."""
    lines = ["Deposit 0 NEAR to bob.near", "hello", "Withdraw 3 NEAR from bob.near"]
    lines = lines[2 - len(calls) :]
    trace = traced([outcome("R0", logs=lines, **profile())], [body("R0", *map(call, calls))])
    assert not trace.transfers["asset"].ne("near").any()
    (note,) = trace.notes
    assert note == UNREAD_LINES + "'Withdraw 3 NEAR from bob.near' of bob.near in R0"


def test_lines_of_unknown_methods_are_noted():
    """Plain tx sends no bodies, so the method that logged a line is unknown."""
    line = "Refund 1 from bob.near to ann.near"
    document = result([outcome("R0", ["R1"]), outcome("R1", logs=[line])], [])
    del document["receipts"]
    trace = Trace.from_json(document, rules=RULES)
    assert f"{UNREAD_LINES}{line!r} of bob.near in R1" in trace.notes


def test_tokens_of_an_unknown_contract_are_noted():
    """Without a contract there is no asset to count; the receipt is named."""
    line = event("nep141", "ft_mint", {"owner_id": "a", "amount": "5"})
    document = result([outcome("R0", ["R1"]), outcome("R1", logs=[line], executor_id=None)], [])
    del document["receipts"]
    trace = Trace.from_json(document, rules=RULES)
    assert tokens(trace) == []
    note = "tokens whose contract the document does not contain are not counted"
    assert f"{note}: event of an unknown contract in R1" in trace.notes


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"owner_id": "a"}, "data[0].amount is missing"),
        ({"owner_id": "a", "amount": 5}, "data[0].amount is not a text"),
        (
            {"owner_id": "a", "amount": "-5"},
            "data[0].amount is not a whole number of 128 bits: '-5'",
        ),
        (
            {"owner_id": "a", "amount": str(2**128)},
            f"data[0].amount is not a whole number of 128 bits: '{2**128}'",
        ),
        ({"owner_id": None, "amount": "5"}, "data[0].owner_id is not a text"),
        ("owner_id", "data[0] is not an object"),
    ],
    ids=["no amount", "a number", "a sign", "too large", "nobody", "no object"],
)
def test_an_event_against_its_standard_moves_nothing_and_says_why(data: Any, reason: str):
    """It is not counted, its row and a note name the wrong member, and the next one counts."""
    good = event("nep141", "ft_mint", {"owner_id": "b", "amount": "2"})
    lines = [event("nep141", "ft_mint", data), good]
    trace = traced([outcome("R0", logs=lines, **profile())], [body("R0", transfer(1))])
    assert changes(trace, "nep141:bob.near") == {"b": 2}
    notes = trace.events["note"]
    assert notes.iloc[0] == reason
    assert notes.isna().tolist() == [False, True]
    (note,) = trace.notes
    assert note == (
        "events that do not follow their standard are not counted: "
        f"ft_mint of bob.near in R0 ({reason})"
    )


@pytest.mark.parametrize(
    ("standard", "name", "data", "reason"),
    [
        ("nep141", "ft_burn", {"owner_id": "a", "amount": "1"}, "data is not a list"),
        (
            "nep171",
            "nft_mint",
            [{"owner_id": "a", "token_ids": "1"}],
            "data[0].token_ids is not a list of texts",
        ),
        (
            "nep245",
            "mt_burn",
            [{"owner_id": "a", "token_ids": ["1"], "amounts": []}],
            "data[0].token_ids and data[0].amounts differ in length",
        ),
        (
            "nep245",
            "mt_mint",
            [{"owner_id": "a", "token_ids": ["1"], "amounts": ["x"]}],
            "data[0].amounts[0] is not a whole number of 128 bits: 'x'",
        ),
    ],
    ids=["an object", "token_ids", "lengths", "amounts"],
)
def test_the_wrong_member_of_each_standard_is_named(
    standard: str, name: str, data: Any, reason: str
):
    """Lists and their lengths are checked as the standards demand."""
    fields = {"standard": standard, "version": "1.0.0", "event": name, "data": data}
    line = "EVENT_JSON:" + json.dumps(fields)
    trace = traced([outcome("R0", logs=[line], **profile())], [body("R0", call())])
    assert trace.events["note"].tolist() == [reason]
    assert trace.notes[0].endswith(f"{name} of bob.near in R0 ({reason})")


def test_an_event_of_a_standard_without_movements_is_no_error():
    """Updates of metadata (NEP-423) and other standards move nothing and need no note."""
    lines = [event("nep171", "nft_metadata_update", {"token_ids": ["1"]})]
    trace = traced([outcome("R0", logs=lines, **profile())], [body("R0", call())])
    assert trace.notes == ()
    assert trace.events["note"].isna().all()


# Tokens without events -------------------------------------------------------------------

GOLD = "nep141:gold.near"


def tokens(trace: Trace) -> Rows:
    """List the token transfers as plain tuples: sender, receiver, amount, evidence."""
    frame = trace.transfers[trace.transfers["asset"] != "near"]
    frame = frame[["sender_id", "receiver_id", "amount", "evidence"]].astype(object)
    return list(frame.where(frame.notna(), None).itertuples(index=False, name=None))


def called(
    *calls: Any,
    logs: Any = (),
    to: str = "gold.near",
    value: Any = None,
    children: Any = (),
    **more: Any,
) -> Trace:
    """Trace a receipt of bob.near with these calls, log lines, returned value and children."""
    text = "" if value is None else base64.b64encode(json.dumps(value).encode()).decode()
    status = more.pop("status", {"SuccessValue": text})
    ids = [child["receipt_id"] for child in children]
    outcomes = [
        outcome("R0", ["R1"], **profile()),
        outcome("R1", ids, logs=list(logs), status=status, **profile()),
        *(outcome(id_, **profile()) for id_ in ids),
    ]
    receipt = body("R1", *calls, sender="bob.near", to=to)
    return traced(outcomes, [body("R0", call()), receipt, *children], **more)


def sending(amount: int, method: str = "ft_transfer", **more: Any) -> dict[str, Any]:
    """Build a call that sends tokens to carl.near."""
    return call(method, 1, {"receiver_id": "carl.near", "amount": str(amount), **more})


def resolving(amount: int = 10) -> dict[str, Any]:
    """Build the callback that settles a transfer from ann.near to carl.near."""
    arguments = {"sender_id": "ann.near", "receiver_id": "carl.near", "amount": str(amount)}
    return call("ft_resolve_transfer", args=arguments)


def unread(trace: Trace) -> str:
    """Return what the only note says could not be read."""
    (note,) = trace.notes
    start = "token movements that could not be read are not counted: "
    assert note.startswith(start)
    return note.removeprefix(start)


AMOUNTS = st.lists(st.integers(1, 2**128 - 1), min_size=1, max_size=3)


@settings(max_examples=30)
@given(AMOUNTS)
def test_a_transfer_is_the_same_whoever_reports_it(amounts: list[int]):
    """Events, lines and arguments give the same movements, each only once."""
    calls = [sending(amount) for amount in amounts]
    lines = [f"Transfer {amount} from bob.near to carl.near" for amount in amounts]
    parties = {"old_owner_id": "bob.near", "new_owner_id": "carl.near"}
    events = [
        event("nep141", "ft_transfer", {**parties, "amount": str(amount)}) for amount in amounts
    ]
    for evidence, logs in (
        ("event", events),
        ("log", lines),
        ("arguments", []),
        ("event", events + lines),
    ):
        trace = called(*calls, logs=logs)
        assert tokens(trace) == [("bob.near", "carl.near", amount, evidence) for amount in amounts]
        moved = changes(trace, GOLD)
        if sum(amounts) < 2**128:
            assert moved == {"bob.near": -sum(amounts), "carl.near": sum(amounts)}
        else:  # which no two balances differ by
            assert pd.isna(list(moved.values())).tolist() == [True, True]
        assert trace.notes == ()


def test_lines_win_over_arguments():
    """A token that keeps a part of each transfer logs what it moved; the call says otherwise."""
    lines = [
        "Transfer 97 from bob.near to carl.near",
        "Memo: rent",
        "Transfer 3 from bob.near to fees.near",
    ]
    trace = called(sending(100, memo="other"), logs=lines)
    assert tokens(trace) == [
        ("bob.near", "carl.near", 97, "log"),
        ("bob.near", "fees.near", 3, "log"),
    ]
    assert trace.transfers["memo"].dropna().tolist() == ["rent"]


def test_arguments_contain_the_memo():
    """The memo of a silent transfer is that of its arguments."""
    assert called(sending(5, memo="rent")).transfers["memo"].dropna().tolist() == ["rent"]


def test_arguments_are_read_where_the_event_is_wrong():
    """An event that cannot be read is noted, and does not hide the movement."""
    trace = called(sending(5), logs=[event("nep141", "ft_transfer", {"amount": 5})])
    assert tokens(trace) == [("bob.near", "carl.near", 5, "arguments")]
    assert "(data[0].old_owner_id is missing)" in trace.notes[0]


def test_a_wrap_that_is_sent_on_in_one_receipt():
    """wrap.near logs a line for each of the two calls, and each line is one movement."""
    lines = ["Deposit 7 NEAR to bob.near", "Transfer 7 from bob.near to carl.near"]
    calls = [call("near_deposit", 7), sending(7, "ft_transfer_call")]
    trace = called(*calls, logs=lines, to="wrap.near")
    assert tokens(trace) == [(None, "bob.near", 7, "log"), ("bob.near", "carl.near", 7, "log")]
    # A wrapped token of near-contract-standards 4 has an event for the transfer only.
    parties = {"old_owner_id": "bob.near", "new_owner_id": "carl.near", "amount": "7"}
    trace = called(*calls, logs=[lines[0], event("nep141", "ft_transfer", parties)])
    assert sorted(tokens(trace), key=str) == sorted(
        [("bob.near", "carl.near", 7, "event"), (None, "bob.near", 7, "log")], key=str
    )
    assert changes(trace, GOLD) == {"carl.near": 7}


def test_a_transfer_that_its_contract_models_as_burn_and_mint_counts_once():
    """Events are a call's movements however the contract words them."""
    events = [
        event("nep141", "ft_burn", {"owner_id": "bob.near", "amount": "5"}),
        event("nep141", "ft_mint", {"owner_id": "carl.near", "amount": "5"}),
    ]
    trace = called(sending(5), logs=[*events, "Transfer 5 from bob.near to carl.near"])
    assert changes(trace, GOLD) == {"bob.near": -5, "carl.near": 5}
    assert set(trace.transfers["evidence"].dropna()) == {"event"}


def test_a_call_that_the_others_of_its_receipt_leave_out_is_noted():
    """Where one call of a receipt is reported and another is not, the second is not guessed."""
    trace = called(call("near_deposit", 7), sending(7), logs=["Deposit 7 NEAR to bob.near"])
    assert tokens(trace) == [(None, "bob.near", 7, "log")]
    assert unread(trace).startswith("ft_transfer of gold.near in R1 (other movements")


def test_fewer_movements_than_calls_of_a_method_are_noted():
    """One of two equal calls of a receipt is reported: the other one is noted, once."""
    reported = {"old_owner_id": "bob.near", "new_owner_id": "carl.near", "amount": "7"}
    for log in (
        event("nep141", "ft_transfer", reported),
        ("Transfer 7 from bob.near to carl.near"),
    ):
        evidence = "event" if log.startswith("EVENT") else "log"
        trace = called(sending(7), sending(9), logs=[log])
        assert tokens(trace) == [("bob.near", "carl.near", 7, evidence)]
        reason = "other movements of its receipt are logged, this one is not"
        assert unread(trace) == f"ft_transfer of gold.near in R1 ({reason})"
    both = event("nep141", "ft_transfer", reported, reported)
    assert called(sending(7), sending(7), logs=[both]).notes == ()


def test_a_silent_transfer_call_needs_the_call_of_its_receiver():
    """The receiver is called with what was sent; a contract that does not call moved nothing."""
    child = body("R2", call("ft_on_transfer"), sender="gold.near", to="carl.near")
    sent = sending(5, "ft_transfer_call")
    status = {"SuccessReceiptId": "R2"}
    trace = called(sent, children=[child], status=status)
    assert tokens(trace) == [("bob.near", "carl.near", 5, "arguments")]
    child["receiver_id"] = "connector.near"
    trace = called(sent, children=[child], status=status)
    assert tokens(trace) == []
    reason = "the document has no call of ft_on_transfer of its receiver"
    assert unread(trace) == f"ft_transfer_call of gold.near in R1 ({reason})"


@pytest.mark.parametrize(
    ("logs", "value", "rows"),
    [
        ((), "10", []),
        ((), "7", [("carl.near", "ann.near", 3, "arguments")]),
        ((), "0", [("carl.near", "ann.near", 10, "arguments")]),
        (["Refund 3 from carl.near to ann.near"], "7", [("carl.near", "ann.near", 3, "log")]),
        (
            ["Refund amount 3 from carl.near to ann.near"],
            "7",
            [("carl.near", "ann.near", 3, "log")],
        ),
        (
            ["The account of the sender was deleted", "Account @ann.near burned 3"],
            "10",
            [("carl.near", None, 3, "log")],
        ),
    ],
    ids=["all used", "a part", "nothing used", "a line", "Aurora's line", "burnt"],
)
def test_the_refund_of_a_transfer_call(logs: Any, value: str, rows: Rows):
    """It is the amount less what the result says was used; burnt tokens leave the receiver."""
    trace = called(resolving(), logs=logs, value=value)
    assert tokens(trace) == rows
    assert trace.notes == ()


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"value": "11"}, "its result is more than the amount"),
        ({"value": 7}, "its result is not a text"),
        ({"value": None}, "its result is not JSON"),
        ({"status": {"SuccessReceiptId": "R9"}}, "its result is not in the document"),
        (
            {"logs": ["The account of the sender was deleted"], "value": "10"},
            "the amount burnt for a deleted account is not logged",
        ),
    ],
    ids=["too much", "a number", "nothing", "a promise", "burnt without an amount"],
)
def test_a_refund_that_cannot_be_read_is_noted(more: dict[str, Any], reason: str):
    """A note names the method, the contract, the receipt and the reason."""
    trace = called(resolving(), **more)
    assert tokens(trace) == []
    assert unread(trace) == f"ft_resolve_transfer of gold.near in R1 ({reason})"


def test_an_unwrap_without_a_line_needs_its_payment():
    """The amount of the arguments counts if the predecessor is paid as much NEAR."""
    unwrap = call("near_withdraw", 1, {"amount": "5"})
    for paid, rows in ((6, [("bob.near", None, 5, "arguments")]), (4, [])):
        child = body("R2", transfer(paid), sender="gold.near", to="bob.near")
        trace = called(unwrap, children=[child], status={"SuccessReceiptId": "R2"})
        assert tokens(trace) == rows
    assert unread(trace).endswith("(the document has no receipt that pays the amount out)")


WITHDRAWN = bytes(20) + (5).to_bytes(16, "little")  # Borsh: an address and an amount


@pytest.mark.parametrize(
    ("contract_id", "action", "logs", "row"),
    [
        (
            "aurora",
            call("finish_deposit"),
            ["Mint 5 nETH tokens for: ann.near"],
            (None, "ann.near", 5, "log"),
        ),
        ("aurora", call_bytes("withdraw", WITHDRAWN), [], ("bob.near", None, 5, "arguments")),
        (
            f"{'a' * 40}.factory.bridge.near",
            call("mint", args={"account_id": "ann.near", "amount": "5"}),
            [],
            (None, "ann.near", 5, "arguments"),
        ),
        (
            f"{'a' * 40}.factory.bridge.near",
            call("withdraw", args={"amount": "5", "recipient": "0" * 40}),
            [],
            ("bob.near", None, 5, "arguments"),
        ),
        (
            "token.skyward.near",
            call("new", args={"owner_id": "ann.near", "total_supply": "5"}),
            [],
            (None, "ann.near", 5, "arguments"),
        ),
        (
            "my-coin.tkn.near",
            call("new", args={"owner_id": "ann.near", "total_supply": "5"}),
            [],
            (None, "ann.near", 5, "arguments"),
        ),
        (
            "gold.near",
            call("storage_unregister", 1, {"force": True}),
            ["Closed @bob.near with 5"],
            ("bob.near", None, 5, "log"),
        ),
    ],
    ids=[
        "Aurora mints",
        "Aurora burns",
        "bridge mints",
        "bridge burns",
        "Skyward",
        "tkn",
        "closed",
    ],
)
def test_known_contracts_mint_and_burn(contract_id: str, action: Any, logs: Any, row: Any):
    """The contracts that the public indexers know are read as they read them."""
    trace = called(action, logs=logs, to=contract_id)
    assert tokens(trace) == [row]
    assert trace.notes == ()


META_POOL = "meta-pool.near"


@pytest.mark.parametrize(
    ("contract_id", "method", "args", "row"),
    [
        ("meta-token.near", "mint", {"account_id": "ann.near"}, (None, "ann.near")),
        ("gear.token.a11bd.near", "mint", {"receiver": "ann.near"}, (None, "ann.near")),
        ("abr.a11bd.near", "burn", {"sender": "ann.near"}, ("ann.near", None)),
        ("fusotao-token.near", "mint", {"account_id": "ann.near"}, (None, "bob.near")),
        ("fusotao-token.near", "burn", {"account_id": "ann.near"}, ("bob.near", None)),
        ("fusotao-token.near", "new", {"owner_id": "ann.near"}, (None, "bob.near")),
        ("gold.l2e.near", "new_default_meta", {"owner_id": "ann.near"}, (None, "ann.near")),
        ("token.burrow.near", "new", {"owner_id": "ann.near"}, (None, "ann.near")),
        ("token.ref-finance.near", "new", {"owner": "ann.near"}, (None, "ann.near")),
        ("token.v2.ref-finance.near", "new", {"owner": "ann.near"}, (None, "ann.near")),
    ],
)
def test_tokens_that_mint_without_a_log(contract_id: str, method: str, args: Any, row: Any):
    """They are read from the arguments, as NearBlocks reads them (services/contracts/ft)."""
    amounts = dict.fromkeys(("amount", "total_supply", "premined_balance"), "5")
    trace = called(call(method, args=args | amounts), to=contract_id)
    assert tokens(trace) == [(*row, 5, "arguments")]
    assert trace.notes == ()


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (
            {"event": "D-UNSTK", "account_id": "bob.near", "amount": "5", "shares": "4"},
            ("bob.near", None, 4, "log"),
        ),
        (
            {"event": "REM.L", "account_id": "bob.near", "near": "5", "stnear": "4"},
            (META_POOL, "bob.near", 4, "log"),
        ),
        ({"event": "NSLP.clr", "shares": "4", "amount": "5"}, (META_POOL, None, 4, "log")),
    ],
)
def test_meta_pool_logs_objects_of_its_own(line: Any, row: Any):
    """The lines are those of metapool/src/internal.rs and lib.rs (Narwallets/meta-pool)."""
    others = ["{", "[]", "{}", '{"event":["STAKE"]}', '{"event":"ADD.L"}']
    trace = called(call("unstake"), logs=[json.dumps(line), *others], to=META_POOL)
    assert tokens(trace) == [row]
    assert trace.notes == ()
    assert tokens(called(call("unstake"), logs=[json.dumps(line)])) == []


@pytest.mark.parametrize(
    ("line", "rows", "reason"),
    [
        (
            {"event": "STAKE", "account": "bob.near", "amount": "5"},
            [],
            "the stNEAR minted is not logged",
        ),
        (
            {"event": "LIQ.U", "account_id": "bob.near", "stnear": "4", "near": "5"},
            [("bob.near", META_POOL, 4, "log")],
            "what others than the pool receive of its fee is not logged",
        ),
        ({"event": "D-UNSTK", "account_id": "bob.near"}, [], "D-UNSTK.shares is missing"),
    ],
)
def test_what_meta_pool_does_not_log_is_noted(line: Any, rows: Rows, reason: str):
    """A stake is logged in NEAR alone, a swap without the parts of its fee."""
    trace = called(call("m"), logs=[json.dumps(line)], to=META_POOL)
    assert tokens(trace) == rows
    assert unread(trace) == f"{line['event']} of meta-pool.near in R1 ({reason})"


def test_nearx_mints_and_burns_by_events_of_its_own():
    """The shares are the tokens (stader-labs/nearx, contracts/near-x/src/contract/internal.rs)."""
    account = {"account_id": "bob.near"}
    lines = [
        event("nearx", "deposit_and_stake", {**account, "amount": "9", "minted_stake_shares": "8"}),
        event("nearx", "unstake", {**account, "unstaked_amount": "5", "burnt_stake_shares": "4"}),
        event("nearx", "ft_burn", {**account, "amount": "4"}),
    ]
    trace = called(call("m"), logs=lines, to="v2-nearx.stader-labs.near")
    assert tokens(trace) == [(None, "bob.near", 8, "event"), ("bob.near", None, 4, "event")]
    assert trace.notes == ()
    trace = called(call("unstake"), logs=[event("nearx", "unstake", account)])
    assert trace.notes[0].endswith("R1 (data[0].burnt_stake_shares is missing)")


@pytest.mark.parametrize("method", ["mint", "nft_mint", "ft_burn", "new", "new_default_meta"])
def test_a_mint_or_burn_that_no_event_tells_is_noted(method: str):
    """The arguments of an unknown contract are not guessed at."""
    trace = called(call(method, args={"owner_id": "a", "total_supply": "5", "amount": "5"}))
    assert tokens(trace) == []
    assert unread(trace) == f"{method} of gold.near in R1 (it logs no event of its standard)"


def test_a_mint_that_is_left_to_another_contract_needs_no_note():
    """A shop whose `mint` calls the collection minted nothing itself."""
    child = body("R2", call("nft_mint"), sender="gold.near", to="art.near")
    minted = event("nep171", "nft_mint", {"owner_id": "bob.near", "token_ids": ["1"]})
    assert called(call("mint"), logs=[minted]).notes == ()
    trace = called(call("mint"), children=[child])
    assert unread(trace) == "nft_mint of art.near in R2 (it logs no event of its standard)"
    outcomes = [
        outcome("R0", ["R1"], **profile()),
        outcome("R1", logs=[minted], **profile()),
    ]
    made = body("R1", call("make"), sender="bob.near", to="art.near")
    trace = traced(outcomes, [body("R0", call("mint")), made])
    assert tokens(trace) == [(None, "bob.near", 1, "event")]
    assert trace.notes == ()


@pytest.mark.parametrize("method", ["new", "withdraw", "finish_deposit"])
def test_common_words_are_no_token_methods_of_other_contracts(method: str):
    """Many contracts have these methods; elsewhere they neither count nor need a note."""
    arguments = {"owner_id": "a", "account_id": "a", "amount": "5"}
    trace = called(call(method, args=arguments))
    assert tokens(trace) == []
    assert trace.notes == ()


@pytest.mark.parametrize(
    ("action", "more", "reason"),
    [
        (
            sending(5),
            {"status": {"SuccessReceiptId": "R9"}},
            "it left the transfer to another receipt",
        ),
        (call("ft_transfer", 1, {"amount": "5"}), {}, "args.receiver_id is missing"),
        (call_bytes("ft_transfer", b"\x00"), {}, "args is not JSON"),
        (
            call("near_deposit", 5),
            {},
            "the amount minted is not logged, and may be less than the deposit",
        ),
        (
            call("storage_unregister", 1, {"force": True}),
            {"value": True},
            "the balance burnt is not logged",
        ),
        (sending(5, "nft_transfer", token_id="1"), {}, "it logs no event of its standard"),
        (
            sending(5, "nft_transfer", token_id="1"),
            {"logs": ["Transfer 1 from bob.near to carl.near"]},
            "it logs no event of its standard",
        ),
        (call("nft_resolve_transfer"), {"value": False}, "it logs no event of its standard"),
        (sending(5, "mt_transfer", token_id="1"), {}, "it logs no event of its standard"),
    ],
    ids=[
        "left to another",
        "no receiver",
        "no JSON",
        "a deposit",
        "a forced end",
        "nft",
        "nft with an old line",
        "nft given back",
        "multi token",
    ],
)
def test_a_token_method_that_cannot_be_read_is_noted(
    action: Any, more: dict[str, Any], reason: str
):
    """It succeeded and moved tokens: what it moved is not guessed, and the note says why."""
    trace = called(action, **more)
    assert tokens(trace) == []
    method = action["FunctionCall"]["method_name"]
    assert unread(trace) == f"{method} of gold.near in R1 ({reason})"


@pytest.mark.parametrize(
    ("action", "more"),
    [
        (call("nft_resolve_transfer"), {"value": True}),
        (call("storage_unregister", 1), {"value": True}),
        (call("storage_unregister", 1, {"force": True}), {"value": False}),
        (
            call("storage_unregister", 1, {"force": True}),
            {"value": True, "logs": ["Closed @bob.near with 0"]},
        ),
    ],
    ids=["nft kept", "not forced", "no account", "an empty account"],
)
def test_what_moves_nothing_needs_no_note(action: Any, more: dict[str, Any]):
    """A result or a line that says so is enough."""
    trace = called(action, **more)
    assert tokens(trace) == []
    assert trace.notes == ()


def test_a_delegated_transfer_counts_where_it_runs():
    """The receipt with the Delegate moves no tokens; that of the token does."""
    delegated = delegate("kate.near", "gold.near", sending(5))
    receipt = body("R1", sending(5), sender="kate.near", to="gold.near")
    trace = traced(
        [outcome("R0", ["R1"]), outcome("R1")],
        [body("R0", delegated, to="kate.near"), receipt],
    )
    assert tokens(trace) == [("kate.near", "carl.near", 5, "arguments")]
    assert trace.transfers["asset"].tolist()[-1] == GOLD


def test_a_silent_transfer_that_failed_moves_nothing():
    """Arguments of a call that failed are no evidence."""
    trace = called(sending(5), status=failing())
    assert tokens(trace) == []
    assert trace.notes == ()


def test_near_has_no_evidence():
    """The transfers of NEAR follow from receipts, which need none."""
    trace = called(call(), to="gold.near")
    assert trace.transfers["evidence"].isna().all()


def test_failed_receipts_move_no_tokens():
    """An event of a failed receipt was undone with it."""
    line = event("nep141", "ft_mint", {"owner_id": "b", "amount": "2"})
    ended = outcome("R0", logs=[line], status=failing())
    found = traced([ended], [body("R0", call())], status=failing())
    assert changes(found, "nep141:bob.near") == {}
    assert found.events["is_effective"].tolist() == [False]


def test_an_unfinished_transaction_counts_what_has_left():
    """What waits to be executed has left its sender and reached nobody; a note says so."""
    found = traced(
        [outcome("R0", ["R1"])],
        [body("R0", transfer(90)), body("R1", transfer(70), sender="bob.near", to="carl.near")],
        status="Started",
        final_execution_status="INCLUDED",
    )
    assert changes(found) == {"alice.near": -CONVERSION - 5 * PRICE - 90, "bob.near": 20}
    assert found.notes == (
        "the transaction is INCLUDED and not final yet",
        "gas bought for receipts that have not run is not counted: R1",
    )


def test_plain_tx_says_what_it_does_not_tell():
    """Without bodies refunds and deposits are unknown: a note says so, once."""
    document = result([outcome("R0", ["R1"]), outcome("R1", tokens=0)], [])
    del document["receipts"]
    found = Trace.from_json(document, rules=RULES)
    assert found.notes[0].startswith("the document has no receipt bodies")
    assert not any("R1" in note for note in found.notes)

    assert found.gas["gas_refund"].tolist() == [0, pd.NA, 0]


@pytest.mark.parametrize("name", ["rpc/tx.response", "rpc/send_tx.response"])
def test_recorded_refunds_of_unknown_amount(name: str):
    """Plain tx sends no bodies: a refund of gas is known by what it burnt, not its amount."""
    path = SHARED / "wire" / "samples" / f"{name}.json"
    if not path.exists():
        pytest.skip("the recordings are not here")
    found = Trace.load(path)
    assert found.receipts["kind"].tolist() == ["action", "refund"]
    assert found.gas["gas_refund"].tolist() == [0, pd.NA, 0]


def test_a_body_that_is_missing_is_named():
    """What a receipt without a body moves is not counted, and said so."""
    found = traced([outcome("R0", ["R1"]), outcome("R1")], [body("R0")])
    assert "deposits that the document does not contain are not counted: R1" in found.notes


def test_a_body_without_a_list_of_actions_may_have_moved_a_deposit():
    """What the frame of receipts says of its deposit, `transfers` say too: it is unknown."""
    receipt = body("R0", transfer(7))
    document = result([outcome("R0")], [receipt])
    del receipt["receipt"]["Action"]["actions"]
    found = Trace.from_json(document)
    assert found.receipts["deposit"].isna().all()
    assert "deposits that the document does not contain are not counted: R0" in found.notes


@pytest.mark.parametrize("missing", ["T", "R0"])
def test_missing_tokens_leave_the_fee_unknown(missing: str):
    """An outcome without tokens_burnt did not cost 0: fee and payer's change are missing."""
    document = result([outcome("R0")], [body("R0", transfer(90))])
    outcomes = {"T": document["transaction_outcome"], "R0": document["receipts_outcome"][0]}
    del outcomes[missing]["outcome"]["tokens_burnt"]
    found = Trace.from_json(document, rules=RULES)
    assert moved(found)[0] == ("fee", "near", "alice.near", "system", None)
    assert changes(found) == {"alice.near": pd.NA, "bob.near": 90}
    name = "the transaction" if missing == "T" else "R0"
    (note,) = [note for note in found.notes if note.startswith("the fee is unknown")]
    assert note.endswith(f"tokens_burnt is missing for {name}".replace("for R0", "for: R0"))
    assert "which cost alice.near an unknown amount" in found.explain()


def test_a_receipt_of_unknown_status_that_burnt_gas():
    """It has run: its cost counts, what it delivered is unknown, and the verdict says so."""
    parts = [outcome("R0", status="Unknown")], [body("R0", transfer(90))]
    found = traced(*parts)
    assert found.verdict == "unknown"
    assert traced(*parts, status=None, final_execution_status=None).verdict == "unknown"
    fee = CONVERSION + 5 * PRICE
    assert moved(found) == [
        ("fee", "near", "alice.near", "system", fee),
        ("undelivered", "near", "alice.near", "system", 90),
    ]
    assert found.notes == (
        "it is unknown whether these receipts succeeded, and what they did is not counted: R0",
    )
    assert "The document does not contain what was transferred." in found.explain()


@pytest.mark.parametrize("level", ["FINAL", "EXECUTED_OPTIMISTIC", None])
def test_a_receipt_that_has_run_but_is_not_given(level: str | None):
    """A result without the outcome of its first receipt is cut off: it does not wait for it."""
    found = traced([], [body("R0", transfer(90))], final_execution_status=level)
    assert found.verdict == "unknown"
    assert found.receipts["status"].tolist() == ["unknown"]
    assert moved(found) == [
        ("fee", "near", "alice.near", "system", None),
        ("undelivered", "near", "alice.near", "system", 90),
    ]
    assert changes(found) == {"alice.near": pd.NA}
    assert not any("have not run" in note for note in found.notes)
    text = found.explain()
    assert "has not run" not in text
    assert "but the document does not contain the status of all receipts." in text
    assert "The document does not contain what was transferred." in text
    assert "It burnt at least 0.000000000003 Tgas of gas, which cost alice.near an unknown" in text


def test_a_refund_may_be_missing_below_final():
    """Nodes answer EXECUTED_OPTIMISTIC before refunds have run; in a final result none waits."""
    parts = ([outcome("R0", ["R1"])], [body("R0", transfer(90)), refund("R1", 7)])
    early = traced(*parts, final_execution_status="EXECUTED_OPTIMISTIC")
    assert early.receipts["status"].tolist() == ["success_value", "not_executed"]
    assert early.verdict == "fully_succeeded"
    assert traced(*parts).receipts["status"].tolist() == ["success_value", "unknown"]


def test_a_receipt_of_unknown_status_without_gas_has_not_run():
    """Nodes write Unknown before a receipt runs: then the transaction is pending."""
    ended = outcome("R0", status="Unknown", gas=0)
    found = traced([ended], [body("R0")], final_execution_status="INCLUDED")
    assert found.verdict == "pending"
    assert found.notes == (
        "the transaction is INCLUDED and not final yet",
        "gas bought for receipts that have not run is not counted: R0",
    )


@pytest.mark.parametrize(
    "action",
    [
        {"DelegateV2": {"delegate_action": {"V3": {"actions": [transfer(5)]}}}},
        {"DelegateV2": {"signature": "s"}},
        {"Delegate": {"delegate_action": {"sender_id": "bob.near"}}},
        "Later",
        {},
    ],
    ids=["V3", "no payload", "no actions", "a word", "empty"],
)
def test_what_an_unknown_action_moves_is_unknown(action: Any):
    """Its deposit is not 0: a note names the receipt, and nobody says that nothing moved."""
    found = traced([outcome("R0")], [body("R0", action)])
    assert found.notes[0] == "deposits that the document does not contain are not counted: R0"
    assert " what was transferred." in found.explain()
    assert "None" not in found.explain()


def test_an_unknown_action_moves_its_deposit():
    """Its name and other members are shown, its deposit moves, and a note says what is unknown."""
    action = {"Later": {"deposit": "5", "level": 2}}
    found = traced([outcome("R0")], [body("R0", action)])
    assert found.actions[["action", "deposit", "details"]].iloc[0].tolist() == [
        "Later",
        5,
        {"level": 2},
    ]
    assert ("deposit", "near", "alice.near", "bob.near", 5) in moved(found)
    assert found.notes == (
        "beside their deposits, the effects of unknown kinds of actions are not known: R0",
        "contract rewards that could not be computed are not counted: R0",  # it may call
    )
    assert "Later of 5 yocto." in found.explain()


def test_only_a_finished_transaction_is_known_to_have_moved_nothing():
    """Without receipts, bodies or outcomes it is unknown, or not yet known, what it moves."""
    bodies = [body("R0", call())]
    cases: list[tuple[Any, dict[str, Any]]] = [
        ("CreateAccount", {}),
        (call(), {"status": failing()}),
    ]
    for action, ending in cases:
        trace = traced([outcome("R0", **ending)], [body("R0", action)])
        assert "Nothing was transferred." in trace.explain()
    waiting = traced([], bodies, status="Started", final_execution_status="INCLUDED")
    assert "Nothing has been transferred yet." in waiting.explain()
    document = result([], [], final_execution_status="NONE", status="NotStarted")
    del document["transaction_outcome"]
    unsent = Trace.from_json(document)
    assert "The document does not contain what was transferred." in unsent.explain()
    assert moved(unsent) == []


def test_a_call_may_have_moved_tokens_without_a_record():
    """A token that is older than events may log nothing, whatever its method is called."""
    text = traced([outcome("R0")], [body("R0", call("claim"))]).explain()
    assert "Nothing" not in text
    sentence = "No transfer was recorded, but claim on bob.near can move tokens without a record."
    assert sentence in text


def test_gas_up_to_64_bits_is_in_all_frames():
    """Gas is u64 on the wire: its largest value is exact in each frame, and so are sums."""
    largest = 2**64 - 1
    own = call(gas=largest)
    found = traced([outcome("R0", gas=largest)], [body("R0", own)], rules=False)
    assert found.receipts["gas_attached"].tolist() == [largest]
    assert found.receipts["gas_burnt"].tolist() == [largest]
    assert found.actions["gas_attached"].tolist() == [largest]
    assert found.gas["gas_burnt"].sum() == largest + 3
    assert (found.receipts["gas_attached"] - found.receipts["subtree_gas"]).tolist() == [0]
    assert "It burnt 18,446,744.07 Tgas of gas" in found.explain()


def test_shards_follow_from_the_rules():
    """Where the service does not tell shards, the layout does, for what has run."""
    found = traced(
        [outcome("R0", ["R1"])],
        [body("R0", call(), to="bob.near"), body("R1", call(), to="z.near")],
    )
    assert found.receipts["shard_id"].tolist() == [3, pd.NA]


def test_a_saved_trace_keeps_the_rules(tmp_path: Any):
    """Rewards are the same after saving and loading."""
    found = traced([outcome("R0", gas=5000)], [body("R0", call())])
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
    assert fee == sum(int(each["outcome"]["tokens_burnt"]) for each in outcomes)
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


RECORDED_TOKENS: dict[str, list[tuple[Any, ...]]] = {
    "tx/ft_transfer_success": [
        ("nep141:berryclub.ek.near", "serhii.near", "volovyk.near", 1, "log"),
    ],
    "tx/ft_transfer_call_with_callback": [
        (
            "nep141:dev-1623333795623-21399959778159",
            "serhii.testnet",
            "dev-1623693121955-71667632531176",
            10,
            "log",
        ),
        (
            "nep141:dev-1623333795623-21399959778159",
            "dev-1623693121955-71667632531176",
            "serhii.testnet",
            1,
            "log",
        ),
    ],
    "txapi/intents_execute": [
        ("nep141:wrap.near", "intents.near", None, 120314105211849496797804, "log"),
    ],
}


@pytest.mark.parametrize("with_logs", [True, False], ids=["recorded", "without lines"])
@pytest.mark.parametrize("name", RECORDED_TOKENS)
def test_recorded_tokens_without_events(name: str, with_logs: Any):
    """Contracts of mainnet and testnet without events: arguments confirm what their lines say."""
    path = SHARED / "wire" / "samples" / f"{name}.json"
    if not path.exists():
        pytest.skip("the recordings are not here")
    document = path.read_text()
    rows = RECORDED_TOKENS[name]
    if not with_logs:
        document = re.sub(r'"(Transfer|Refund|Withdraw) \d+ [^"]*"', '"no words"', document)
        rows = [(*row[:-1], "arguments") for row in rows]
    trace = Trace.from_json(document)
    frame = trace.transfers[trace.transfers["asset"].str.startswith("nep141:")]
    frame = frame[["asset", "sender_id", "receiver_id", "amount", "evidence"]].astype(object)
    assert list(frame.where(frame.notna(), None).itertuples(index=False, name=None)) == rows
    for asset, sender_id, receiver_id, amount, _ in rows[:1]:
        back = sum(row[3] for row in rows[1:])
        parties = {sender_id: back - amount} | ({receiver_id: amount - back} if receiver_id else {})
        assert changes(trace, asset) == parties
    assert not any("tokens" in note or "token movements" in note for note in trace.notes)


def test_a_contract_that_passes_a_transfer_on_is_no_token():
    """A recorded reward contract has ft_transfer, which calls the token: only the token counts."""
    path = SHARED / "wire" / "history" / "txapi_v2024" / "v2024_transactions_two.json"
    if not path.exists():
        pytest.skip("the recordings are not here")
    tx_hash = "HV42hanyDVK3MYoW8c17Ufxw83htNEQGk93bzyQRocvS"
    trace = Trace.from_json(path.read_bytes(), tx_hash=tx_hash)
    assert tokens(trace) == [
        ("reward-sweatmint.near", "lenguyenwin.near", 1191983510958904109589, "event")
    ]
    assert (
        "token movements that could not be read are not counted: "
        "ft_transfer of reward-sweatmint.near in 6f5eNwEKRtATMmmFS86h3iE9PbbY9Zh9Nan9Hyd7fxq "
        "(it left the transfer to another receipt)"
    ) in trace.notes


@pytest.mark.parametrize("path", recorded(), ids=lambda path: path.stem)
def test_recordings_lose_what_they_burn(path: Path):
    """What real nodes sent adds up as far as it has run."""
    found = Trace.from_json(path.read_bytes())
    check_transfers(found)
    if found.receipts["status"].ne("not_executed").all():
        check_sum(found)
    assert found.explain().count("\n\n") >= 4
