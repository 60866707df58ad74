"""The interactive view of a trace: what its front end is sent, by receipts worked out by hand."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ledgerkit as lk
from ledgerkit.errors import InvalidRequestError
from ledgerkit.tracing.trace import Trace
from ledgerkit.widgets._trace_view import TraceView
from tests import hostile
from tests.unit.builders import (
    RULES,
    body,
    call,
    call_bytes,
    event,
    failing,
    outcome,
    refund,
    result,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLES = Path(__file__).resolve().parents[2].parent / "shared" / "wire" / "samples" / "tx"
LARGE = 2**128 - 1


def view(outcomes: Any, bodies: Any, receipt_id: str | None = None, **fields: Any) -> TraceView:
    document = result(outcomes, bodies, **fields)
    return TraceView(Trace.from_json(document, rules=RULES), receipt_id)


def chain(length: int) -> TraceView:
    """Build the view of receipts of which each created the next, one block later."""
    ids = [f"R{at}" for at in range(length)]
    outcomes = [outcome(id_, [after]) for id_, after in pairwise(ids)]
    outcomes.append(outcome(ids[-1]))
    document = result(outcomes, [body(id_, call()) for id_ in ids])
    blocks = {f"block of {id_}": (180_000_000 + at, 0) for at, id_ in enumerate(ids)}
    return TraceView(Trace.from_json(document, blocks=blocks))


def items(details: dict[str, Any], title: str) -> list[dict[str, Any]]:
    sections = {section["title"]: section["items"] for section in details["sections"]}
    return list(sections.get(title, []))


def facts(details: dict[str, Any], title: str) -> dict[str, Any]:
    """Return the facts of the only item of a section."""
    (item,) = items(details, title)
    return dict(item["facts"])


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from (*texts(name), *texts(member))
    elif isinstance(value, list | tuple):
        for member in value:
            yield from texts(member)


@pytest.fixture(scope="module")
def refunded() -> TraceView:
    """Show a transfer of which the second receipt panicked and a refund came back."""
    args = {"to": "c", "amount": LARGE}
    return view(
        [
            outcome("R0", ["R1", "R2"], gas=2_428_000_000_000, logs=["hello"]),
            outcome("R1", status=failing("paused")),
            outcome("R2", gas=5, tokens=0),
        ],
        [
            body("R0", call("pay", 3, args, gas=30_000_000_000_000)),
            body("R1", call("take"), sender="bob.near", to="dex.near"),
            refund("R2", 60),
        ],
    )


def test_receipts_are_columns_by_position(refunded: TraceView):
    """Each receipt has its creator's position, its label, receiver, status and gas."""
    payload = refunded.describe()

    assert payload["parent"] == [-1, 0, 0]
    labels = [payload["label"]["texts"][at] for at in payload["label"]["at"]]
    assert labels == ["pay()", "take()", "refund"]
    receivers = [payload["receiver"]["texts"][at] for at in payload["receiver"]["at"]]
    assert receivers == ["bob.near", "dex.near", "alice.near"]
    marks = [payload["statuses"][at] for at in payload["status"]]
    assert marks == [("✓", "succeeded", "ok"), ("✗", "failed", "bad"), ("✓", "succeeded", "ok")]
    assert payload["gas"][0] == "2.43 Tgas"
    assert payload["summary"] == "3 receipts, 1 failed"


def test_the_verdict_is_a_mark_and_words(refunded: TraceView):
    """The badge says in words what its colour says."""
    assert refunded.describe()["verdict"] == ("!", "succeeded, but receipts failed", "warn")
    assert chain(1).describe()["verdict"] == ("✓", "succeeded", "ok")
    pending = TraceView(Trace.from_json({"final_execution_status": "NONE"}))
    assert pending.describe()["verdict"] == ("…", "not finished yet", "muted")
    assert pending.describe()["details"] is None


def test_the_first_failed_receipt_is_selected_unless_one_is_named(refunded: TraceView):
    """A failed receipt opens with its details; a receipt that was searched for comes first."""
    payload = refunded.describe()
    assert payload["selected"] == payload["details"]["at"] == 1

    assert TraceView(refunded.trace, "R2").describe()["selected"] == 2
    assert chain(3).describe()["selected"] == 0
    with pytest.raises(InvalidRequestError, match="receipt_id 'R9' is not valid"):
        TraceView(refunded.trace, "R9").describe()


def test_details_have_the_error_and_what_to_do(refunded: TraceView):
    """A failed receipt has its kind of error, the contract's message and the remedy."""
    details = refunded.handle({"do": "receipt", "at": 1})

    kind = "FunctionCallError.ExecutionError"
    assert details["failure"] == f"{kind}: Smart contract panicked: paused"
    assert details["remedy"] == (
        "Do what the contract's message asks: change the call, or wait and call again."
    )
    assert refunded.handle({"do": "receipt", "at": 0})["failure"] == ""


def test_details_have_the_ids_and_the_receipts_around(refunded: TraceView):
    """Accounts can be opened; the receipts around are in the same tree."""
    own = facts(refunded.handle({"do": "receipt", "at": 0}), "Receipt")

    assert own["From"] == {"kind": "account", "text": "alice.near", "id": "alice.near"}
    assert own["To"]["id"] == "bob.near"
    assert own["Created"] == [{"at": 1, "text": "take()"}, {"at": 2, "text": "refund"}]
    created = facts(refunded.handle({"do": "receipt", "at": 2}), "Receipt")
    assert created["Created by"] == [{"at": 0, "text": "pay()"}]
    assert created["From"] == {"kind": "account", "text": "system", "id": None}


def test_arguments_are_indented_and_exact(refunded: TraceView):
    """The arguments of a call are JSON over several lines, with all digits of 2^128 - 1."""
    (action,) = items(refunded.handle({"do": "receipt", "at": 0}), "Actions")

    assert action["line"] == ["FunctionCall pay()"]
    assert (
        action["json"] == '{\n  "to": "c",\n  "amount": 340282366920938463463374607431768211455\n}'
    )
    assert dict(action["facts"]) == {
        "Deposit": {"text": "3 yocto", "exact": "3 yocto"},
        "Gas attached": {"text": "30 Tgas", "exact": "30 Tgas"},
    }


def test_gas_is_short_with_its_digits_beside(refunded: TraceView):
    """Gas and its cost are rounded for reading, and exact beside."""
    gas = facts(refunded.handle({"do": "receipt", "at": 0}), "Gas")

    assert gas["Burnt"] == {"text": "2.43 Tgas", "exact": "2.428 Tgas"}
    assert gas["Attached to calls"]["exact"] == "30 Tgas"
    assert gas["Cost"]["exact"] == "0.0002428 NEAR"


def test_logs_events_and_results_are_decoded():
    """A log line stays text, an event becomes a document, a result is decoded."""
    moved = {"old_owner_id": "a.near", "new_owner_id": "b.near", "amount": "5"}
    lines = ["plain", event("nep141", "ft_transfer", moved), "EVENT_JSON:{"]
    value = base64.b64encode(b'{"kept":[1,2]}').decode()
    shown = view(
        [outcome("R0", logs=lines, status={"SuccessValue": value})], [body("R0", call("pay"))]
    )
    details = shown.handle({"do": "receipt", "at": 0})

    assert items(details, "Logs") == [{"json": "plain"}]
    valid, broken = items(details, "Events")
    assert valid["line"] == ["nep141 1.0.0 ft_transfer"]
    assert json.loads(valid["json"]) == [moved]
    assert broken["note"].startswith("not valid JSON")
    assert items(details, "Result") == [{"json": '{\n  "kept": [\n    1,\n    2\n  ]\n}'}]
    (transfer,) = items(details, "Transfers")
    assert [part if isinstance(part, str) else part["text"] for part in transfer["line"]] == [
        "a.near", " → ", "b.near", ": ", "5 units of bob.near",
    ]  # fmt: skip
    changes = items(details, "Balance changes")
    assert [change["line"][2]["text"] for change in changes] == [
        "-5 units of bob.near",
        "+5 units of bob.near",
    ]


def test_long_documents_and_lists_are_cut_with_a_count():
    """What is too long for a page is cut, and says by how much."""
    shown = view(
        [outcome("R0", logs=["line"] * 103)], [body("R0", call("pay", args={"long": "x" * 30_000}))]
    )
    details = shown.handle({"do": "receipt", "at": 0})

    (action,) = items(details, "Actions")
    assert len(action["json"]) == 20_000
    assert action["note"] == "… and 10,016 more characters"  # of {, "long" and } over three lines
    assert len(items(details, "Logs")) == 101
    assert items(details, "Logs")[-1] == {"note": "… and 3 more in the frame"}


def test_arguments_that_are_not_json_are_bytes():
    """Bytes are shown in hexadecimal, with their number."""
    shown = view([outcome("R0")], [body("R0", call_bytes("pay", b"\xff\x00"))])
    (action,) = items(shown.handle({"do": "receipt", "at": 0}), "Actions")

    assert (action["json"], action["note"]) == ("ff00", "2 bytes, not JSON")


def test_what_moved_is_the_net_change_by_account(refunded: TraceView):
    """Accounts and their signed changes, page by page, as in the frame of balance changes."""
    moved = refunded.describe()["moved"]
    frame = refunded.trace.balance_changes

    assert moved["total"] == len(frame)
    assert [account["id"] for account, _ in moved["rows"]] == frame["account_id"].tolist()
    exact = [change["exact"] for _, change in moved["rows"]]
    assert [text.startswith("-") for text in exact] == [by < 0 for by in frame["change"]]
    tokens = [change.get("id") for _, change in moved["rows"]]
    assert tokens == [asset.partition("nep141:")[2] or None for asset in frame["asset"]]


def test_more_balance_changes_come_page_by_page():
    """Pages of 100 add up to all rows, each once."""
    lines = [
        event("nep141", "ft_mint", {"owner_id": f"user{at}.near", "amount": "1"})
        for at in range(250)
    ]
    shown = view([outcome("R0", logs=lines)], [body("R0", call())])
    first = shown.describe()["moved"]
    pages = [first, *(shown.handle({"do": "moved", "at": at}) for at in (100, 200))]
    accounts = [account["id"] for page in pages for account, _ in page["rows"]]

    assert [len(page["rows"]) for page in pages[:2]] == [100, 100]
    assert accounts == shown.trace.balance_changes["account_id"].tolist()


def test_the_timeline_counts_blocks_and_those_between():
    """Columns are blocks, counted from the first; blocks without receipts are counted."""
    document = result(
        [outcome("R0", ["R1"]), outcome("R1")], [body("R0", call()), body("R1", call())]
    )
    blocks = {"block of R0": (100, 0), "block of R1": (104, 0)}
    known = TraceView(Trace.from_json(document, blocks=blocks)).describe()["timeline"]
    unknown = TraceView(Trace.from_json(document)).describe()["timeline"]

    assert known == {
        "title": "Block, counted from 100",
        "labels": ["+0", "+4"],
        "skipped": [3],
        "column": [0, 1],
    }
    assert unknown["title"] == "Depth; blocks are unknown"
    assert unknown["labels"] == ["0", "1"]


def test_a_receipt_that_has_not_run_has_no_column():
    """A receipt that has not run is in the tree, with a word, but in no block of the timeline."""
    document = result(
        [outcome("R0", ["R1"])],
        [body("R0", call()), body("R1", call())],
        status="Started",
        final_execution_status="INCLUDED",
    )
    trace = Trace.from_json(document, blocks={"block of R0": (100, 0)})
    payload = TraceView(trace).describe()

    assert payload["timeline"]["column"] == [0, -1]
    assert payload["statuses"][payload["status"][1]] == ("…", "not run yet", "warn")
    assert payload["gas"][1] == ""


def test_arguments_of_any_depth_are_shown():
    """Arguments that are nested too deeply to indent are named, not an error."""
    for depth in (100, 900):
        nested = b"[" * depth + b"]" * depth
        shown = view([outcome("R0")], [body("R0", call_bytes("pay", nested))])
        (action,) = items(shown.handle({"do": "receipt", "at": 0}), "Actions")
        assert action.get("json", "").startswith("[") or "nested too deeply" in action["note"]


def test_ten_thousand_receipts_are_a_small_message():
    """A chain of 10,000 receipts is no recursion, and its first message less than 1 MB."""
    shown = chain(10_000)
    payload = shown.describe()

    assert payload["parent"] == list(range(-1, 9_999))
    assert len(json.dumps(payload)) < 10**6
    last = shown.handle({"do": "receipt", "at": 9_999})
    assert facts(last, "Receipt")["Created by"] == [{"at": 9_998, "text": "m()"}]


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({}, "do"),
        ({"do": "trace", "at": 0}, "do"),
        ({"do": ["receipt"], "at": 0}, "do"),
        ({"do": "receipt"}, "at"),
        ({"do": "receipt", "at": -1}, "at"),
        ({"do": "receipt", "at": 3}, "at"),
        ({"do": "receipt", "at": True}, "at"),
        ({"do": "receipt", "at": 1.0}, "at"),
        ({"do": "moved", "at": 10**9}, "at"),
    ],
)
def test_a_message_of_another_form_is_refused(
    refunded: TraceView, message: dict[str, Any], field: str
):
    """A front end cannot ask for anything but a receipt or a page that exists."""
    with pytest.raises(InvalidRequestError) as caught:
        refunded.handle(message)
    assert caught.value.field == field


def test_a_transaction_opens_as_its_trace():
    """The panel shows the view of the trace; a receipt's id selects the receipt."""
    with lk.connect("local") as ledger:
        story = ledger.world.summary.transactions[0]
        panel = lk.widgets.TransactionExplorer(story.tx_hash, story.signer_id).press()
        last = panel.value.receipts["receipt_id"].iloc[-1]
        found = lk.widgets.TransactionExplorer(last).press()

    (block,) = panel.pages()[0]["blocks"]
    assert block["kind"] == "trace"
    assert block["transaction"]["id"] == story.tx_hash
    assert block["network"] == "local"
    assert panel.value._repr_html_() in panel.static()
    assert found.error is None
    (block,) = found.pages()[0]["blocks"]
    assert block["selected"] == len(panel.value.receipts) - 1


def test_a_trace_is_shown_as_its_view(refunded: TraceView):
    """`show` returns the view of a trace without a form; without a front end it is the card."""
    shown = lk.show(refunded.trace, caption="Refunded.")

    (block,) = shown.pages()[0]["blocks"]
    assert block == {"kind": "trace", **refunded.describe()}
    assert block["network"] == "an unknown network"
    assert "Refunded." in shown.content.message
    assert refunded.trace._repr_html_() in shown.static()
    assert repr(shown) == repr(refunded.trace)
    assert shown.value is refunded.trace
    assert shown.result is refunded.trace.receipts


def test_what_cannot_be_shown_is_refused():
    """Only a frame or a trace has a view."""
    value: Any = "R0"
    with pytest.raises(InvalidRequestError, match="a pandas DataFrame, or a trace"):
        lk.show(value)


def test_hostile_texts_are_visible_text():
    """No message has an invisible character, and no id that is not shown whole."""
    made = hostile.world()
    for name in ("logged", "odd", "unknown", "gone", "formula"):
        sent = getattr(made, name)
        shown = TraceView(lk.trace(sent.tx_hash, "near", ledger=made.ledger))
        payload = shown.describe()
        pages = [shown.handle({"do": "receipt", "at": at}) for at in range(len(payload["parent"]))]
        for text in texts([payload, pages]):
            assert hostile.hidden_characters(text) == []
        json.dumps([payload, pages])


def test_recorded_transactions_are_described():
    """Every receipt of the recorded answers of nodes has details, also where parts are missing."""
    if not SAMPLES.is_dir():
        pytest.skip("the recorded answers are not here")
    for path in sorted(SAMPLES.glob("*.json")):
        if path.name == "signed_transactions.json":
            continue
        shown = TraceView(Trace.load(path))
        for at in range(len(shown.describe()["parent"])):
            assert shown.handle({"do": "receipt", "at": at})["sections"]
