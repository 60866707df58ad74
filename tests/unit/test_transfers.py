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
        body = builders.body("R0", builders.call(method), to=contract_id)
        trace = traced([builders.outcome("R0", logs=[line], **profile())], [body])
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
    trace = traced(
        [builders.outcome("R0", logs=lines, **profile())],
        [builders.body("R0", *map(builders.call, calls))],
    )
    assert not trace.transfers["asset"].ne("near").any()
    (note,) = trace.notes
    assert note == UNREAD_LINES + "'Withdraw 3 NEAR from bob.near' of bob.near in R0"


def test_lines_of_unknown_methods_are_noted():
    """Plain tx sends no bodies, so the method that logged a line is unknown."""
    line = "Refund 1 from bob.near to ann.near"
    document = builders.result(
        [builders.outcome("R0", ["R1"]), builders.outcome("R1", logs=[line])], []
    )
    del document["receipts"]
    trace = Trace.from_json(document, rules=builders.RULES)
    assert f"{UNREAD_LINES}{line!r} of bob.near in R1" in trace.notes


def test_tokens_of_an_unknown_contract_are_noted():
    """Without a contract there is no asset to count; the receipt is named."""
    line = builders.event("nep141", "ft_mint", {"owner_id": "a", "amount": "5"})
    document = builders.result(
        [builders.outcome("R0", ["R1"]), builders.outcome("R1", logs=[line], executor_id=None)], []
    )
    del document["receipts"]
    trace = Trace.from_json(document, rules=builders.RULES)
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
    good = builders.event("nep141", "ft_mint", {"owner_id": "b", "amount": "2"})
    lines = [builders.event("nep141", "ft_mint", data), good]
    trace = traced(
        [builders.outcome("R0", logs=lines, **profile())],
        [builders.body("R0", builders.transfer(1))],
    )
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
    event = {"standard": standard, "version": "1.0.0", "event": name, "data": data}
    line = "EVENT_JSON:" + json.dumps(event)
    trace = traced(
        [builders.outcome("R0", logs=[line], **profile())], [builders.body("R0", builders.call())]
    )
    assert trace.events["note"].tolist() == [reason]
    assert trace.notes[0].endswith(f"{name} of bob.near in R0 ({reason})")


def test_an_event_of_a_standard_without_movements_is_no_error():
    """Updates of metadata (NEP-423) and other standards move nothing and need no note."""
    lines = [builders.event("nep171", "nft_metadata_update", {"token_ids": ["1"]})]
    trace = traced(
        [builders.outcome("R0", logs=lines, **profile())], [builders.body("R0", builders.call())]
    )
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
        builders.outcome("R0", ["R1"], **profile()),
        builders.outcome("R1", ids, logs=list(logs), status=status, **profile()),
        *(builders.outcome(id_, **profile()) for id_ in ids),
    ]
    body = builders.body("R1", *calls, sender="bob.near", to=to)
    return traced(outcomes, [builders.body("R0", builders.call()), body, *children], **more)


def sending(amount: int, method: str = "ft_transfer", **more: Any) -> dict[str, Any]:
    """Build a call that sends tokens to carl.near."""
    return builders.call(method, 1, {"receiver_id": "carl.near", "amount": str(amount), **more})


def resolving(amount: int = 10) -> dict[str, Any]:
    """Build the callback that settles a transfer from ann.near to carl.near."""
    arguments = {"sender_id": "ann.near", "receiver_id": "carl.near", "amount": str(amount)}
    return builders.call("ft_resolve_transfer", args=arguments)


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
        builders.event("nep141", "ft_transfer", {**parties, "amount": str(amount)})
        for amount in amounts
    ]
    for evidence, logs in (
        ("event", events),
        ("log", lines),
        ("arguments", []),
        ("event", events + lines),
    ):
        trace = called(*calls, logs=logs)
        assert tokens(trace) == [("bob.near", "carl.near", amount, evidence) for amount in amounts]
        assert changes(trace, GOLD) == {"bob.near": -sum(amounts), "carl.near": sum(amounts)}
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
    trace = called(sending(5), logs=[builders.event("nep141", "ft_transfer", {"amount": 5})])
    assert tokens(trace) == [("bob.near", "carl.near", 5, "arguments")]
    assert "(data[0].old_owner_id is missing)" in trace.notes[0]


def test_a_wrap_that_is_sent_on_in_one_receipt():
    """wrap.near logs a line for each of the two calls, and each line is one movement."""
    lines = ["Deposit 7 NEAR to bob.near", "Transfer 7 from bob.near to carl.near"]
    calls = [builders.call("near_deposit", 7), sending(7, "ft_transfer_call")]
    trace = called(*calls, logs=lines, to="wrap.near")
    assert tokens(trace) == [(None, "bob.near", 7, "log"), ("bob.near", "carl.near", 7, "log")]
    # A wrapped token of near-contract-standards 4 has an event for the transfer only.
    parties = {"old_owner_id": "bob.near", "new_owner_id": "carl.near", "amount": "7"}
    trace = called(*calls, logs=[lines[0], builders.event("nep141", "ft_transfer", parties)])
    assert sorted(tokens(trace), key=str) == sorted(
        [("bob.near", "carl.near", 7, "event"), (None, "bob.near", 7, "log")], key=str
    )
    assert changes(trace, GOLD) == {"carl.near": 7}


def test_a_transfer_that_its_contract_models_as_burn_and_mint_counts_once():
    """Events are a call's movements however the contract words them."""
    events = [
        builders.event("nep141", "ft_burn", {"owner_id": "bob.near", "amount": "5"}),
        builders.event("nep141", "ft_mint", {"owner_id": "carl.near", "amount": "5"}),
    ]
    trace = called(sending(5), logs=[*events, "Transfer 5 from bob.near to carl.near"])
    assert changes(trace, GOLD) == {"bob.near": -5, "carl.near": 5}
    assert set(trace.transfers["evidence"].dropna()) == {"event"}


def test_a_call_that_the_others_of_its_receipt_leave_out_is_noted():
    """Where one call of a receipt is reported and another is not, the second is not guessed."""
    trace = called(
        builders.call("near_deposit", 7), sending(7), logs=["Deposit 7 NEAR to bob.near"]
    )
    assert tokens(trace) == [(None, "bob.near", 7, "log")]
    assert unread(trace).startswith("ft_transfer of gold.near in R1 (other movements")


def test_a_silent_transfer_call_needs_the_call_of_its_receiver():
    """The receiver is called with what was sent; a contract that does not call moved nothing."""
    child = builders.body("R2", builders.call("ft_on_transfer"), sender="gold.near", to="carl.near")
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
    unwrap = builders.call("near_withdraw", 1, {"amount": "5"})
    for paid, rows in ((6, [("bob.near", None, 5, "arguments")]), (4, [])):
        child = builders.body("R2", builders.transfer(paid), sender="gold.near", to="bob.near")
        trace = called(unwrap, children=[child], status={"SuccessReceiptId": "R2"})
        assert tokens(trace) == rows
    assert unread(trace).endswith("(the document has no receipt that pays the amount out)")


WITHDRAWN = bytes(20) + (5).to_bytes(16, "little")  # Borsh: an address and an amount


@pytest.mark.parametrize(
    ("contract_id", "call", "logs", "row"),
    [
        (
            "aurora",
            builders.call("finish_deposit"),
            ["Mint 5 nETH tokens for: ann.near"],
            (None, "ann.near", 5, "log"),
        ),
        (
            "aurora",
            builders.call_bytes("withdraw", WITHDRAWN),
            [],
            ("bob.near", None, 5, "arguments"),
        ),
        (
            f"{'a' * 40}.factory.bridge.near",
            builders.call("mint", args={"account_id": "ann.near", "amount": "5"}),
            [],
            (None, "ann.near", 5, "arguments"),
        ),
        (
            f"{'a' * 40}.factory.bridge.near",
            builders.call("withdraw", args={"amount": "5", "recipient": "0" * 40}),
            [],
            ("bob.near", None, 5, "arguments"),
        ),
        (
            "token.skyward.near",
            builders.call("new", args={"owner_id": "ann.near", "total_supply": "5"}),
            [],
            (None, "ann.near", 5, "arguments"),
        ),
        (
            "my-coin.tkn.near",
            builders.call("new", args={"owner_id": "ann.near", "total_supply": "5"}),
            [],
            (None, "ann.near", 5, "arguments"),
        ),
        (
            "gold.near",
            builders.call("storage_unregister", 1, {"force": True}),
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
def test_known_contracts_mint_and_burn(contract_id: str, call: Any, logs: Any, row: Any):
    """The contracts that the public indexers know are read as they read them."""
    trace = called(call, logs=logs, to=contract_id)
    assert tokens(trace) == [row]
    assert trace.notes == ()


@pytest.mark.parametrize("method", ["new", "mint", "withdraw", "finish_deposit"])
def test_common_words_are_no_token_methods_of_other_contracts(method: str):
    """Many contracts have these methods; elsewhere they neither count nor need a note."""
    arguments = {"owner_id": "a", "account_id": "a", "total_supply": "5", "amount": "5"}
    trace = called(builders.call(method, args=arguments))
    assert tokens(trace) == []
    assert trace.notes == ()


@pytest.mark.parametrize(
    ("call", "more", "reason"),
    [
        (
            sending(5),
            {"status": {"SuccessReceiptId": "R9"}},
            "it left the transfer to another receipt",
        ),
        (builders.call("ft_transfer", 1, {"amount": "5"}), {}, "args.receiver_id is missing"),
        (builders.call_bytes("ft_transfer", b"\x00"), {}, "args is not JSON"),
        (
            builders.call("near_deposit", 5),
            {},
            "the amount minted is not logged, and may be less than the deposit",
        ),
        (
            builders.call("storage_unregister", 1, {"force": True}),
            {"value": True},
            "the balance burnt is not logged",
        ),
        (sending(5, "nft_transfer", token_id="1"), {}, "it logs no event of its standard"),
        (
            sending(5, "nft_transfer", token_id="1"),
            {"logs": ["Transfer 1 from bob.near to carl.near"]},
            "it logs no event of its standard",
        ),
        (
            builders.call("nft_resolve_transfer"),
            {"value": False},
            "it logs no event of its standard",
        ),
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
def test_a_token_method_that_cannot_be_read_is_noted(call: Any, more: dict[str, Any], reason: str):
    """It succeeded and moved tokens: what it moved is not guessed, and the note says why."""
    trace = called(call, **more)
    assert tokens(trace) == []
    method = call["FunctionCall"]["method_name"]
    assert unread(trace) == f"{method} of gold.near in R1 ({reason})"


@pytest.mark.parametrize(
    ("call", "more"),
    [
        (builders.call("nft_resolve_transfer"), {"value": True}),
        (builders.call("storage_unregister", 1), {"value": True}),
        (builders.call("storage_unregister", 1, {"force": True}), {"value": False}),
        (
            builders.call("storage_unregister", 1, {"force": True}),
            {"value": True, "logs": ["Closed @bob.near with 0"]},
        ),
    ],
    ids=["nft kept", "not forced", "no account", "an empty account"],
)
def test_what_moves_nothing_needs_no_note(call: Any, more: dict[str, Any]):
    """A result or a line that says so is enough."""
    trace = called(call, **more)
    assert tokens(trace) == []
    assert trace.notes == ()


def test_a_delegated_transfer_counts_where_it_runs():
    """The receipt with the Delegate moves no tokens; that of the token does."""
    delegated = builders.delegate("kate.near", "gold.near", sending(5))
    body = builders.body("R1", sending(5), sender="kate.near", to="gold.near")
    trace = traced(
        [builders.outcome("R0", ["R1"]), builders.outcome("R1")],
        [builders.body("R0", delegated, to="kate.near"), body],
        actions=[delegated],
        to="kate.near",
    )
    assert tokens(trace) == [("kate.near", "carl.near", 5, "arguments")]
    assert trace.transfers["asset"].tolist()[-1] == GOLD


def test_a_silent_transfer_that_failed_moves_nothing():
    """Arguments of a call that failed are no evidence."""
    trace = called(sending(5), status=builders.failing())
    assert tokens(trace) == []
    assert trace.notes == ()


def test_near_has_no_evidence():
    """The transfers of NEAR follow from receipts, which need none."""
    trace = called(builders.call(), to="gold.near")
    assert trace.transfers["evidence"].isna().all()


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


RECORDED_TOKENS = {
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
    if found.receipts["status"].ne("not_executed").all():
        check_sum(found)
    assert found.explain().count("\n\n") >= 4
