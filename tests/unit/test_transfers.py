"""What moved, and who has how much more or less: by hand-computed results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

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


def test_a_transfer_its_fee_and_its_refund():
    """The signer pays what was burnt and what came back, and gets the latter again."""
    found = traced(
        [builders.outcome("R0", ["R1"], gas=5), builders.outcome("R1", gas=5, tokens=0)],
        [builders.body("R0", builders.transfer(1000)), builders.refund("R1", 60)],
    )
    assert moved(found) == [
        ("fee", "near", "alice.near", "system", CONVERSION + 5 * builders.PRICE + 60),
        ("transfer", "near", "alice.near", "bob.near", 1000),
        ("refund_gas", "near", "system", "alice.near", 60),
    ]
    assert changes(found) == {
        "alice.near": -CONVERSION - 5 * builders.PRICE - 1000,
        "bob.near": 1000,
    }
    assert found.transfers["order"].tolist() == [pd.NA, 0, 1]
    assert found.notes == ()


def test_a_deposit_that_failed_is_no_transfer():
    """A failed receipt moves nothing; its deposit goes back to who sent it, told as a refund."""
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
    assert [row[0] for row in moved(found)] == ["fee", "refund_deposit"]
    assert changes(found) == {"alice.near": -CONVERSION - 5 * builders.PRICE}


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
    assert found.notes == (
        "the transaction is INCLUDED and not final yet",
        "gas bought for receipts that have not run is not counted: R1",
    )


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
    assert sum(changes(found).values()) == shares - burnt


@pytest.mark.parametrize("case", worked(), ids=lambda case: case["name"])
def test_worked_executions_lose_what_they_burn(case: dict[str, Any]):
    """All changes of NEAR together are the fees, with their minus."""
    found = Trace.from_json(case["result"])
    check_sum(found)
    refunds = found.receipts[found.receipts["kind"] == "refund"]
    kinds = ["refund_gas", "refund_deposit"]
    told_of = found.transfers[found.transfers["kind"].isin(kinds)]
    assert told_of["amount"].sum() == refunds["deposit"].sum()


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
    if found.receipts["status"].ne("not_executed").all():
        check_sum(found)
    assert found.explain().count("\n\n") >= 4
