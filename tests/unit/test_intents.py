"""Swaps and moves of NEAR Intents and the Omni Bridge, by values worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ledgerkit.frames.human import human
from ledgerkit.reconciling import CAUSES
from ledgerkit.reconciling.document_entries import ordered_entries
from ledgerkit.tracing.trace import Trace
from tests.unit.builders import body, call, event, failing, outcome, result

RECORDED = Path(__file__).parents[3] / "shared/wire/samples/txapi/intents_execute.json"
SOL, WRAP = "nep141:sol.omft.near", "nep141:wrap.near"
USDT = "nep141:eth-0xdac17f958d2ee523a2206206994597c13d831ec7.omft.near"
USER = "d573bb736d15cbd16382df2fb4505c12a44b52b0263f3a4453ef4f40d1d92fa1"
SOLVER = "solver-priv-liq.near"


def logged(*lines: str, at: str = "intents.near", action: Any = None, **fields: Any) -> Trace:
    """Trace one receipt of a contract that logs these lines."""
    document = result(
        [outcome("R0", logs=list(lines), executor_id=at, **fields)],
        [body("R0", action or call("execute_intents"), sender="token.near", to=at)],
    )
    return Trace.from_json(document)


def rows(trace: Trace, *columns: str) -> list[tuple[Any, ...]]:
    """List columns of the intents; missing values are None."""
    frame = trace.intents[list(columns)].astype(object)
    return list(frame.where(frame.notna(), None).itertuples(index=False, name=None))


def notes(trace: Trace) -> list[str]:
    """List the notes on intents: these traces lack the gas from which rewards are computed."""
    return [note for note in trace.notes if not note.startswith("contract rewards")]


def diff(account_id: str, changes: dict[str, str], **fields: Any) -> str:
    return event("dip4", "token_diff", {"account_id": account_id, "diff": changes, **fields})


def moved(name: str, **fields: Any) -> str:
    return event("nep245", name, fields)


def burn(owner_id: str, token_ids: list[str], amounts: list[str], memo: str = "withdraw") -> str:
    return moved("mt_burn", owner_id=owner_id, token_ids=token_ids, amounts=amounts, memo=memo)


@pytest.mark.skipif(not RECORDED.exists(), reason="the recordings are elsewhere")
class TestRecorded:
    """The recorded transaction AAU7v3EW… of mainnet."""

    def test_each_swap_and_move_is_a_row(self) -> None:
        """The user gave 0.001497 SOL, got 0.12 NEAR by two swaps of a solver, and withdrew it."""
        trace = Trace.load(RECORDED)
        columns = "kind", "account_id", "given_asset", "given", "received_asset", "received", "fee"
        assert rows(trace, *columns) == [
            ("swap", SOLVER, USDT, 131702, SOL, 1496998, 1),
            ("swap", SOLVER, WRAP, 120314225526075022872827, USDT, 131701, 120314225526075023),
            ("swap", USER, SOL, 1497000, WRAP, 120314105211849496797804, 2),
            ("transfer", USER, SOL, 3000, None, None, None),
            ("withdrawal", USER, WRAP, 120314105211849496797804, None, None, None),
        ]
        receiver = "028bacb7821fa83a3c79ed96a544d000b07ba845acbe547069689c40fc6c5e4f"
        names = trace.intents["counterparty_id"].tolist()
        assert names == [USER, USER, SOLVER, receiver, "e2e-tests-prod.near"]
        intent_hash = "AKJEp781uxsTRE8bEBuBucngWEtU7Ro9osZBQHZQsZVj"
        assert trace.intents["intent_hash"].tolist()[2:] == [intent_hash] * 3
        assert trace.intents["referral"].dropna().tolist() == ["1click-e2e_tests"]
        assert trace.intents["block_height"].unique().tolist() == [185572450]
        assert "intents" not in " ".join(trace.notes)

    def test_the_rows_add_up_to_the_balances(self) -> None:
        """What the rows give and receive is what the NEP-245 events moved, of each account."""
        trace = Trace.load(RECORDED)
        sums: dict[tuple[str, str], int] = {}
        for account_id, given_asset, given, got_asset, got, to, kind in rows(
            trace,
            *("account_id", "given_asset", "given", "received_asset", "received"),
            *("counterparty_id", "kind"),
        ):
            moves = [(account_id, given_asset, -(given or 0)), (account_id, got_asset, got or 0)]
            moves += [(to, given_asset, given)] if kind == "transfer" else []
            for name, asset, change in moves:
                sums[name, asset] = sums.get((name, asset), 0) + change
        prefix, frame = "nep245:intents.near:", trace.balance_changes
        inside = frame[frame["asset"].str.startswith(prefix)]
        changes = {
            (name, asset.removeprefix(prefix)): int(change)
            for name, asset, change in inside.itertuples(index=False)
        }
        collector = "7066024d3f20f94de601c003163367873cca78507eeca4df66d9be645f197f05"
        fees = {key: change for key, change in changes.items() if key[0] == collector}
        assert {key: change for key, change in sums.items() if change} == {
            key: change for key, change in changes.items() if key not in fees
        }
        assert sorted(fees.values()) == sorted([2, 1, 120314225526075023])

    def test_the_volume_of_users_counts_a_swap_once(self) -> None:
        """Swaps with a referral leave out the solver's and the transfers within the contract."""
        intents = Trace.load(RECORDED).intents
        swaps = intents[intents["kind"] == "swap"].dropna(subset="referral")
        assert swaps.groupby("given_asset")["given"].sum().to_dict() == {SOL: 1497000}

    def test_the_headline_names_the_swap_with_a_referral(self) -> None:
        """The relayer signed the transaction: the swap is that of the user, by its referral."""
        swap = f"{USER} swapped 1,497,000 units of sol.omft.near for"
        assert Trace.load(RECORDED).headline() == (
            f"intents.near executed intents: {swap} 120,314,105,211,849,496,797,804 units of "
            "wrap.near; with 2 other intents."
        )

    def test_the_changes_of_balances_are_named(self) -> None:
        """The swap, with its fee, the transfer and the withdrawal, with its receiver."""
        changes = [
            (change.kind, change.asset.removeprefix("nep245:intents.near:"), change.change)
            for change in Trace.load(RECORDED).balance_timeline()
            if change.account_id == USER
        ]
        assert changes == [
            ("multi_token", SOL, -3000),
            ("swap", SOL, -2),
            ("swap", SOL, -1496998),
            ("swap", WRAP, 120314105211849496797804),
            ("intents_withdrawal", WRAP, -120314105211849496797804),
        ]
        [withdrawal] = [c for c in Trace.load(RECORDED).balance_timeline() if "_w" in c.kind]
        assert withdrawal.counterparty_id == "e2e-tests-prod.near"

    def test_the_entries_of_a_statement_have_their_causes(self) -> None:
        """`ledgerkit.reconciling.CAUSES` explains each of them."""
        entries, _ = ordered_entries(Trace.load(RECORDED), USER)
        causes = [entry.cause for _, entry in entries]
        assert causes == ["token", "swap", "swap", "swap", "intents_withdrawal"]
        assert set(causes) <= CAUSES.keys()


def test_a_swap_of_several_tokens_has_a_row_for_each():
    """No pair is invented: a token of such a swap has a row with one side."""
    changes = {"nep141:a": "-5", "nep141:b": "-7", "nep171:nft:1": "1"}
    trace = logged(diff("x.near", changes, intent_hash="H", fees_collected={"nep141:a": "1"}))
    assert rows(trace, "kind", "given_asset", "given", "received_asset", "received", "fee") == [
        ("swap", "nep141:a", 5, None, None, 1),
        ("swap", "nep141:b", 7, None, None, 0),
        ("swap", None, None, "nep171:nft:1", 1, None),
    ]


def test_the_headline_names_all_tokens_of_a_swap():
    """Its rows have one side each, and are one swap."""
    trace = logged(
        diff("x.near", {"nep141:a": "-5", "nep141:b": "-7", "nep141:c": "9"}, intent_hash="H"),
        diff("y.near", {"nep141:a": "5"}, intent_hash="I"),
    )
    swap = "x.near swapped 5 units of a and 7 units of b for 9 units of c"
    assert trace.headline() == f"alice.near executed intents: {swap}; with 1 other intent."


def test_a_diff_with_one_sign_is_no_swap():
    """An intent that only gives, or only receives, exchanges nothing."""
    trace = logged(diff("x.near", {"nep141:a": "-5"}), diff("y.near", {"nep141:a": "5"}))
    assert rows(trace, "kind", "account_id", "given", "received", "counterparty_id") == [
        ("one_sided", "x.near", 5, None, "y.near"),
        ("one_sided", "y.near", None, 5, "x.near"),
    ]


def test_amounts_are_written_with_separators():
    """Decimals are unknown here, so that amounts are in the smallest units of their tokens."""
    trace = logged(diff("x.near", {"nep141:a": "-12500013", "nep141:b": "1"}))
    texts = human(trace.intents).texts()
    assert texts[["given", "received", "fee"]].values.tolist() == [
        ["12,500,013 units", "1 unit", "0 units"]
    ]


def test_a_diff_of_zero_moves_nothing():
    """It neither gives nor receives: there is no row, and the event is in the other frame."""
    trace = logged(diff("x.near", {"nep141:a": "0"}), diff("y.near", {}))
    assert (len(trace.intents), len(trace.events), notes(trace)) == (0, 2, [])


def test_the_counterparties_of_a_ring():
    """Who changes none of a swap's tokens in the opposite direction is no counterparty."""
    trace = logged(
        diff("a.near", {"nep141:a": "-1", "nep141:b": "1"}),
        diff("b.near", {"nep141:b": "-1", "nep141:c": "1"}),
        diff("c.near", {"nep141:c": "-1", "nep141:d": "1"}),
        diff("d.near", {"nep141:d": "-1", "nep141:a": "1"}),
    )
    names = trace.intents["counterparty_id"].tolist()
    assert names == ["b.near+d.near", "a.near+c.near", "b.near+d.near", "a.near+c.near"]


def test_deposits_and_refunds_by_their_memos():
    """A deposit names who sent the tokens; tokens that come back are refunds."""
    mint = {"token_ids": ["nep141:token.near"], "amounts": ["9"]}
    trace = logged(
        moved("mt_mint", owner_id="a.near", memo="deposit", **mint),
        action=call("ft_on_transfer", args={"sender_id": "b.near", "amount": "9", "msg": "a.near"}),
    )
    columns = "kind", "account_id", "received_asset", "received", "counterparty_id"
    assert rows(trace, *columns) == [("deposit", "a.near", "nep141:token.near", 9, "b.near")]
    trace = logged(moved("mt_mint", owner_id="a.near", memo="refund", **mint))
    assert rows(trace, *columns) == [("refund", "a.near", "nep141:token.near", 9, None)]
    trace = logged(burn("a.near", ["nep141:token.near"], ["9"], memo="refund"))
    assert rows(trace, "kind", "given", "received") == [("refund", 9, None)]
    trace = logged(moved("mt_mint", owner_id="a.near", **mint))
    assert rows(trace, "kind", "received") == [("mint", 9)]


def test_what_a_transfer_moves_beside_a_swap_is_no_swap():
    """Settled amounts are sums: with a transfer to the same account, the cause is not certain."""
    pair = {"old_owner_id": "a.near", "new_owner_id": "b.near", "token_ids": ["nep141:x"]}
    sent = {"account_id": "a.near", "receiver_id": "b.near", "tokens": {"nep141:x": "2"}}
    trace = logged(
        diff("a.near", {"nep141:x": "-5", "nep141:y": "1"}),
        diff("b.near", {"nep141:x": "5", "nep141:y": "-1"}),
        event("dip4", "transfer", sent),
        moved("mt_transfer", amounts=["7"], **pair),
    )
    changes = [c.kind for c in trace.balance_timeline() if c.account_id == "a.near"]
    assert changes == ["multi_token"]


def test_withdrawals_take_their_facts_from_the_intent():
    """Burnt tokens are matched with the intents that asked for them, one by one."""
    withdraw = {"account_id": "a.near", "token": "t.near", "receiver_id": "t.near", "amount": "5"}
    trace = logged(
        event("dip4", "ft_withdraw", withdraw | {"memo": "WITHDRAW_TO:bc1q", "intent_hash": "H"}),
        event("dip4", "ft_withdraw", withdraw | {"receiver_id": "b.near", "storage_deposit": "3"}),
        event("dip4", "native_withdraw", {**withdraw, "receiver_id": "c.near", "amount": "3"}),
        burn("a.near", ["nep141:t.near"], ["5"]),
        burn("a.near", ["nep141:t.near", WRAP], ["5", "3"]),
        burn("a.near", [WRAP], ["3"]),
    )
    columns = "kind", "given_asset", "given", "counterparty_id", "address", "intent_hash"
    assert rows(trace, *columns) == [
        ("withdrawal", "nep141:t.near", 5, "t.near", "bc1q", "H"),
        ("withdrawal", "nep141:t.near", 5, "b.near", None, None),
        ("storage_deposit", WRAP, 3, "b.near", None, None),
        ("withdrawal", WRAP, 3, "c.near", None, None),
    ]


def test_withdrawals_of_other_standards():
    """An NFT and tokens of another multi-token contract are named by their token ids."""
    nft = {"account_id": "a.near", "token": "n.near", "receiver_id": "b.near", "token_id": "1"}
    many = {"account_id": "a.near", "token": "m.near", "receiver_id": "b.near"}
    trace = logged(
        event("dip4", "nft_withdraw", nft),
        event("dip4", "mt_withdraw", many | {"token_ids": ["x", "y"], "amounts": ["2", "3"]}),
        burn("a.near", ["nep171:n.near:1", "nep245:m.near:x"], ["1", "2"]),
        burn("a.near", ["nep245:m.near:y"], ["3"]),
    )
    assert rows(trace, "given_asset", "given", "counterparty_id") == [
        ("nep171:n.near:1", 1, "b.near"),
        ("nep245:m.near:x", 2, "b.near"),
        ("nep245:m.near:y", 3, "b.near"),
    ]


def test_tokens_of_another_multi_token_contract():
    """What intents.near logged for intent DaqjLUF4… on mainnet: SOL for a token of HOT Bridge."""
    user = "69307005629debbd360f5a567fe151a96d3d67082bfbe175273ff784e094927f"
    collector = "7066024d3f20f94de601c003163367873cca78507eeca4df66d9be645f197f05"
    token_id = "56_11111111111111111111"
    hot, got = f"nep245:v2_1.omni.hot.tg:{token_id}", "2541550816890741"
    answer, request = {SOL: "18999981", hot: "-2541553358444100"}, {SOL: "-19000000", hot: got}
    withdrawal = {"token": "v2_1.omni.hot.tg", "receiver_id": "bridge-refuel.hot.tg"}
    withdrawal |= {"msg": '{"amount_native":"13000000000000"}', "min_gas": "91300000000000"}
    settled = [(SOLVER, user, hot, got), (SOLVER, collector, hot, "2541553359")]
    settled += [(user, SOLVER, SOL, "18999981"), (user, collector, SOL, "19")]
    trace = logged(
        diff(SOLVER, answer, fees_collected={hot: "2541553359"}),
        diff(user, request, referral="1click-rango", fees_collected={SOL: "19"}),
        event(
            "dip4",
            "mt_withdraw",
            {"account_id": user, "token_ids": [token_id], "amounts": [got], **withdrawal},
        ),
        event(
            "nep245",
            "mt_transfer",
            *(
                {"old_owner_id": a, "new_owner_id": b, "token_ids": [t], "amounts": [amount]}
                for a, b, t, amount in settled
            ),
        ),
        burn(user, [hot], [got]),
    )
    columns = "kind", "account_id", "given_asset", "given", "received_asset", "received", "fee"
    assert rows(trace, *columns) == [
        ("swap", SOLVER, hot, 2541553358444100, SOL, 18999981, 2541553359),
        ("swap", user, SOL, 19000000, hot, 2541550816890741, 19),
        ("withdrawal", user, hot, 2541550816890741, None, None, None),
    ]
    assert trace.intents["counterparty_id"].tolist() == [user, SOLVER, "bridge-refuel.hot.tg"]
    frame = trace.balance_changes[trace.balance_changes["asset"] != "near"]
    changes = frame.set_index(["account_id", "asset"])["change"].to_dict()
    assert changes == {
        (user, f"nep245:intents.near:{SOL}"): -19000000,
        (SOLVER, f"nep245:intents.near:{SOL}"): 18999981,
        (SOLVER, f"nep245:intents.near:{hot}"): -2541553358444100,
        (collector, f"nep245:intents.near:{SOL}"): 19,
        (collector, f"nep245:intents.near:{hot}"): 2541553359,
    }


def test_a_storage_deposit_of_older_events_names_its_receiver_twice():
    """Its last `account_id` is who the storage is for: the burnt tokens name who paid."""
    deposit = {"contract_id": "t.near", "amount": "8", "account_id": "for.near"}
    line = event("dip4", "storage_deposit", {"account_id": "a.near", "X": deposit})
    trace = logged(
        line.replace('"X": {', "").replace("}}]", "}]"),
        burn("a.near", [WRAP], ["8"]),
    )
    assert rows(trace, "kind", "account_id", "given", "counterparty_id") == [
        ("storage_deposit", "a.near", 8, "t.near")
    ]


def test_transfers_without_an_intent():
    """A call of mt_transfer is a transfer; in a receipt with intents it settles them."""
    sent = {"old_owner_id": "a.near", "new_owner_id": "b.near", "token_ids": [WRAP]}
    line = moved("mt_transfer", amounts=["4"], **sent)
    columns = "kind", "account_id", "given", "counterparty_id"
    assert rows(logged(line), *columns) == [("transfer", "a.near", 4, "b.near")]
    intents = logged(diff("a.near", {WRAP: "-4"}), line)
    assert rows(intents, *columns) == [("one_sided", "a.near", 4, None)]


BAD = [
    ({"diff": {WRAP: "1"}}, "data[0].account_id is missing"),
    ({"account_id": "a.near"}, "data[0].diff is not an object of texts"),
    ({"account_id": "a.near", "diff": {WRAP: -1}}, "data[0].diff is not an object of texts"),
    ({"account_id": "a.near", "diff": {WRAP: "--1"}}, "is not a whole number of 128 bits: '-1'"),
    ({"account_id": "a.near", "diff": {WRAP: "1e3"}}, "is not a whole number of 128 bits: '1e3'"),
    ({"account_id": "a.near", "diff": {WRAP: f"-{2**128}"}}, "is not a whole number of 128 bits"),
    ({"account_id": "a.near", "diff": {}, "referral": 1}, "data[0].referral is not a text"),
]


def test_intents_that_cannot_be_read_are_noted(subtests: pytest.Subtests):
    """A malformed event is a note in `notes` and in `events`, and no row."""
    for item, reason in BAD:
        with subtests.test(reason=reason):
            trace = logged(event("dip4", "token_diff", item))
            [note] = notes(trace)
            assert note.startswith("intents that could not be read are not counted: token_diff of")
            assert reason in note
            assert reason in trace.events["note"].iloc[0]
            assert trace.intents.empty
    for line in (
        event("dip4", "teleport", {}),
        'EVENT_JSON:{"standard":"dip4","event":"transfer"}',
    ):
        with subtests.test(line=line):
            assert len(notes(logged(line))) == 1


def test_only_the_verifier_contract_counts():
    """Any contract can log such events: they are named in a note, and move nothing."""
    trace = logged(diff("a.near", {WRAP: "-1"}), at="fake.near")
    assert trace.intents.empty
    note = "DIP-4 events of contracts other than intents.near are not counted: token_diff of fake."
    assert notes(trace)[0].startswith(note)


def test_a_receipt_that_failed_moved_nothing():
    """Its events are logged, and without effect."""
    trace = logged(diff("a.near", {WRAP: "-1"}), status=failing())
    assert (len(trace.events), len(trace.intents)) == (1, 0)


# The Omni Bridge ----------------------------------------------------------------------------


def bridged(name: str, **fields: Any) -> str:
    message = {
        "origin_nonce": 7,
        "token": "near:sol.omft.near",
        "amount": "1000",
        "recipient": "sol:JA3iQS6ZSv6L2jhnKR2XMCJThJVorvNydUmYDf6Bwhs6",
        "fee": {"fee": "25", "native_fee": "0"},
        "sender": "near:intents.near",
        "msg": "",
        "destination_nonce": 3,
        "origin_transfer_id": None,
    }
    return json.dumps({name: {"transfer_message": message | fields}})


def test_moves_over_the_bridge():
    """Out is given with the fee, in is received without it; chain and address are the log's."""
    inbound = {"sender": "eth:0xab", "recipient": "near:a.near", "token": "eth:0xcd"}
    trace = logged(
        bridged("InitTransferEvent"),
        bridged("FinTransferEvent", **inbound),
        bridged("FinTransferEvent", sender="eth:0xab"),
        bridged("SignTransferEvent"),
        "Transfer 5",
        at="omni.bridge.near",
    )
    columns = "kind", "account_id", "given", "received_asset", "received", "fee", "chain", "address"
    recipient = "sol", "JA3iQS6ZSv6L2jhnKR2XMCJThJVorvNydUmYDf6Bwhs6"
    assert rows(trace, *columns) == [
        ("bridge_out", "intents.near", 1000, None, None, 25, *recipient),
        ("bridge_in", "a.near", None, "eth:0xcd", 975, 25, "eth", "0xab"),
        ("bridge_through", None, None, SOL, 975, 25, *recipient),
    ]
    assert trace.intents["given_asset"].tolist()[0] == SOL
    assert notes(trace) == []


def test_a_withdrawal_to_the_bridge_names_its_destination():
    """The message of the withdrawal has the address, in either form that the bridge reads."""
    withdraw = {"account_id": "a.near", "token": "t.near", "receiver_id": "omni.bridge.near"}
    for message in ({"recipient": "eth:0x1"}, {"InitTransfer": {"recipient": "eth:0x1"}}):
        trace = logged(
            event("dip4", "ft_withdraw", withdraw | {"amount": "5", "msg": json.dumps(message)}),
            burn("a.near", ["nep141:t.near"], ["5"]),
        )
        assert rows(trace, "kind", "chain", "address") == [("withdrawal", "eth", "0x1")]


def test_bridge_events_that_cannot_be_read_are_noted(subtests: pytest.Subtests):
    """A new kind of move is named, and so is a member that is wrong."""
    lines = {
        '{"UtxoTransferEvent":{"token_id":"nbtc.bridge.near","amount":"5"}}': "UtxoTransferEvent",
        bridged("InitTransferEvent", amount=5): "InitTransferEvent.amount is not a text",
        bridged("InitTransferEvent", amount="5"): "InitTransferEvent.fee is above the amount",
        bridged("InitTransferEvent", fee=None): "InitTransferEvent.fee.fee is missing",
    }
    for line, reason in lines.items():
        with subtests.test(reason=reason):
            trace = logged(line, at="omni.bridge.near")
            assert trace.intents.empty
            start = "moves over the Omni Bridge that could not be read are not counted: R0"
            assert notes(trace) == [f"{start} ({reason})"]


def test_without_intents_the_frame_is_empty():
    """It has its columns and dtypes all the same."""
    trace = logged("hello", at="bob.near")
    assert trace.intents.empty
    assert trace.intents["given"].dtype == pd.Series([], dtype="u128").dtype
