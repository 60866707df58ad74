"""Actions, log lines and events: one row each, whatever contracts wrote."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ledgerkit.frames.schemas import SCHEMAS
from ledgerkit.tracing.trace import Trace
from tests.unit.builders import (
    body,
    call,
    delegate,
    event,
    failing,
    outcome,
    result,
    transfer,
)

EMPTY = {"final_execution_status": "NONE"}


def logging(*lines: str, **more: Any) -> Trace:
    """Trace a call that logs these lines."""
    ended = outcome("R0", logs=list(lines), **more)
    return Trace.from_json(result([ended], [body("R0", call())]))


@pytest.mark.parametrize(
    "name", ["actions", "logs", "events", "transfers", "balance_changes", "gas"]
)
def test_empty_and_full_frames_have_the_declared_columns_and_dtypes(name: str):
    """Columns and dtypes are a promise, with rows and without."""
    line = event("nep141", "ft_mint", {"owner_id": "a.near", "amount": "1"})
    full = getattr(logging(line), name)
    empty = getattr(Trace.from_json(EMPTY), name)
    assert list(full) == [column.name for column in SCHEMAS[name]]
    assert list(empty) == list(full)
    assert empty.dtypes.tolist() == full.dtypes.tolist()
    assert len(full) >= 1
    assert len(empty) == (1 if name == "gas" else 0)


def test_each_action_of_a_batch_is_a_row():
    """A batch is told action by action, with what each moves and its other members."""
    key = {"AddKey": {"public_key": "ed25519:1", "access_key": {"nonce": 0}}}
    asked = ["CreateAccount", transfer(7), key, call("new", 2, {"a": 1}, gas=11)]
    found = Trace.from_json(result([outcome("R0")], [body("R0", *asked)])).actions
    assert found["action"].tolist() == ["CreateAccount", "Transfer", "AddKey", "FunctionCall"]
    assert found["action_index"].tolist() == [0, 1, 2, 3]
    assert found["inner_index"].isna().all()
    assert found["deposit"].tolist() == [0, 7, 0, 2]
    assert found["gas_attached"].tolist() == [pd.NA, pd.NA, pd.NA, 11]
    assert found["args"].iloc[3] == {"a": 1}
    assert found["method_name"].isna().tolist() == [True, True, True, False]
    assert found["details"].iloc[2] == {"public_key": "ed25519:1", "access_key": {"nonce": 0}}
    assert found["details"].isna().tolist() == [True, True, False, True]


def test_what_is_inside_a_delegate_is_its_signers():
    """Delegated actions follow the Delegate, with the one who signed them as sender."""
    asked = delegate("kate.near", "gold.near", call("ft_transfer", 1), transfer(5))
    receipt = body("R0", asked, to="kate.near")
    trace = Trace.from_json(result([outcome("R0")], [receipt]))
    found = trace.actions
    assert found["action"].tolist() == ["Delegate", "FunctionCall", "Transfer"]
    assert found["inner_index"].tolist() == [pd.NA, 0, 1]
    assert found["sender_id"].tolist() == ["alice.near", "kate.near", "kate.near"]
    assert found["receiver_id"].tolist() == ["kate.near", "gold.near", "gold.near"]
    assert found["details"].iloc[0] == {"sender_id": "kate.near", "receiver_id": "gold.near"}
    assert (trace.signer_id, trace.sender_id) == ("alice.near", "kate.near")
    assert "of kate.near, relayed by alice.near" in repr(trace)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({}, {}, [True, False, True]),
        ({}, {"status": failing()}, [True, False, False]),
        ({}, None, [True, False, pd.NA]),  # has not run
    ],
)
def test_an_action_in_a_delegate_is_repeated_by_its_receipt(first, second, expected):
    """Only rows that took effect may be summed: not the inner one, nor those of failed receipts."""
    bodies = [
        body("R0", delegate("kate.near", "gold.near", transfer(5)), to="kate.near"),
        body("R1", transfer(5), sender="kate.near", to="gold.near"),
    ]
    outcomes = [outcome("R0", ["R1"], **first)]
    outcomes += [] if second is None else [outcome("R1", **second)]
    found = Trace.from_json(result(outcomes, bodies)).actions
    assert found["deposit"].tolist() == [0, 5, 5]
    assert found["is_effective"].tolist() == expected


def test_a_delegate_that_expired_repeats_nothing():
    """The actions in a Delegate that failed were never executed."""
    asked = delegate("kate.near", "gold.near", transfer(5))
    expired = {"Failure": {"ActionError": {"index": 0, "kind": "DelegateActionExpired"}}}
    trace = Trace.from_json(result([outcome("R0", status=expired)], [body("R0", asked)]))
    assert trace.actions["is_effective"].tolist() == [False, False]


def test_a_recorded_delegate_is_counted_once():
    """Of a relayed transaction of mainnet, each executed action is one effective row."""
    path = Path(__file__).parents[3] / "shared/wire/samples/txapi/delegate_small.json"
    if not path.exists():
        pytest.skip("the recordings are not beside this checkout")
    found = Trace.from_json(json.loads(path.read_text())).actions
    assert found.loc[found["is_effective"], "action"].tolist() == [
        *("Delegate", "FunctionCall", "Transfer"),
    ]
    assert found.loc[found["inner_index"].notna(), "is_effective"].tolist() == [False]


def test_the_first_receipt_asks_what_the_transaction_asked():
    """A first receipt whose body was left out has the transaction's actions."""
    found = Trace.from_json(result([outcome("R0")], [], actions=[transfer(9)]))
    assert found.actions["deposit"].tolist() == [9]
    assert found.actions["receipt_id"].tolist() == ["R0"]


def test_log_lines_say_where_they_come_from_and_whether_they_count():
    """Lines of failed receipts are there, and marked."""
    outcomes = [
        outcome("R0", ["R1"], logs=["one", event("x", "y")]),
        outcome("R1", logs=["two"], status=failing()),
    ]
    bodies = [body("R0", call()), body("R1", call(), to="carl.near")]
    found = Trace.from_json(result(outcomes, bodies)).logs
    assert found["receipt_id"].tolist() == ["R0", "R0", "R1"]
    assert found["log_index"].tolist() == [0, 1, 0]
    assert found["contract_id"].tolist() == ["bob.near", "bob.near", "carl.near"]
    assert found["is_event"].tolist() == [False, True, False]
    assert found["is_effective"].tolist() == [True, True, False]


def test_events_of_any_standard():
    """An event is decoded whatever its standard; data may be missing or of any shape."""
    bare = 'EVENT_JSON: {"standard":"dip4","version":"2","event":"swap"}'
    data = {"owner_id": "a.near", "amount": "3"}
    found = logging("plain", event("nep141", "ft_mint", data), bare).events
    assert found["standard"].tolist() == ["nep141", "dip4"]
    assert found["version"].tolist() == ["1.0.0", "2"]
    assert found["event"].tolist() == ["ft_mint", "swap"]
    assert found["data"].iloc[0] == [data]
    assert found["data"].isna().tolist() == [False, True]
    assert found["log_index"].tolist() == [1, 2]
    assert found["note"].isna().all()


def test_a_broken_event_is_a_row_with_a_note(subtests: pytest.Subtests):
    """What can't be read is told, and does not keep the others from being read."""
    cases = [
        ('EVENT_JSON:{"standard":', "not valid JSON"),
        ("EVENT_JSON:", "not valid JSON"),
        ("EVENT_JSON:[1]", "not a JSON object: [1]"),
        ('EVENT_JSON:{"standard":1,"event":"x"}', 'standard is not a text: {"standard":1'),
        ('EVENT_JSON:{"event":"x"}', 'standard is missing: {"event":"x"}'),
        ('EVENT_JSON:{"standard":"x"}', "event is missing"),
        ('EVENT_JSON:{"standard":"x","event":""}', "event is empty"),
        ('EVENT_JSON:{"standard":"nep141","event":"ft_mint"}', "data is missing"),
        ('EVENT_JSON:{"standard":"nep171","event":"nft_burn","data":{}}', "data is not a list"),
        ("EVENT_JSON:" + "[" * 200_000, "not valid JSON"),
    ]
    for line, note in cases:
        with subtests.test(line=line):
            found = logging(line, event("nep141", "ft_mint")).events
            assert found["note"].iloc[0].startswith(note)
            assert found["event"].tolist()[1] == "ft_mint"
            assert len(found["note"].iloc[0]) < 250


def test_a_receipt_with_ten_megabytes_of_logs_is_read_in_time():
    """Size alone is no trouble: rows, all lines, and no more than seconds."""
    line = event("nep141", "ft_mint", {"owner_id": "a.near", "amount": "1", "memo": "m" * 900})
    begun = time.process_time()
    found = logging(*[line] * 10_000)
    assert len(found.events) == 10_000
    assert found.balance_changes["change"].tolist()[:1] == [10_000]
    assert found.explain()
    assert time.process_time() - begun < 20
