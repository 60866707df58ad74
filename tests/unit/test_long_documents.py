"""Long lists of a saved result are decoded in slices, with the same results and errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit import errors
from ledgerkit.api.models import long_documents
from ledgerkit.api.models.transactions import decode_transaction
from ledgerkit.tracing.trace import Trace

if TYPE_CHECKING:
    from ledgerkit.api.models.transactions import TxResult

COUNT = 40
TRANSFER = {"Transfer": {"deposit": "1"}}


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut every document into slices of a few elements."""
    monkeypatch.setattr(long_documents, "LONG", 2_000)
    monkeypatch.setattr(long_documents, "SLICE", 500)


def outcome(number: int, **members: Any) -> dict[str, Any]:
    following = [f"R{number + 1}"] if number + 1 < COUNT else []
    fields = {"logs": [f"log {number}"], "receipt_ids": following, "gas_burnt": number}
    fields |= {"tokens_burnt": str(number), "status": {"SuccessValue": ""}, "executor_id": "b.near"}
    return {"block_hash": f"B{number}", "id": f"R{number}", "outcome": fields | members}


def body(number: int, *actions: Any) -> dict[str, Any]:
    action = {"actions": list(actions or [TRANSFER]), "signer_id": "a.near"}
    parties = {"predecessor_id": "a.near", "receiver_id": "b.near"}
    return parties | {"receipt": {"Action": action}, "receipt_id": f"R{number}"}


def node_result(**members: Any) -> dict[str, Any]:
    own = {"id": "T", "outcome": {"receipt_ids": ["R0"], "status": {"SuccessReceiptId": "R0"}}}
    lists = {
        "receipts": [body(number) for number in range(COUNT)],
        "receipts_outcome": [outcome(number) for number in range(COUNT)],
    }
    return {"final_execution_status": "FINAL", "transaction_outcome": own, **lists, **members}


def api_document(*, several: bool = False) -> dict[str, Any]:
    """Build a Transactions API document with many receipts, whole or one element."""
    pairs: list[dict[str, Any]] = [
        {"execution_outcome": outcome(at), "receipt": body(at)} for at in range(COUNT)
    ]
    pairs[7]["execution_outcome"] = None
    own = outcome(0) | {"id": "T"}
    element = {"transaction": {"hash": "T"}, "execution_outcome": own, "receipts": pairs}
    other = {"transaction": {"hash": "other"}, "receipts": pairs[:3]}
    return {"transactions": [other, element]} if several else element


def elements(result: TxResult, name: str) -> list[Any]:
    """Return all elements of a list; none if the document lacks it."""
    return [json.loads(msgspec.json.encode(e)) for e in getattr(result, name) or ()]


def assert_same(data: bytes) -> None:
    """Check that a document in slices has the elements of the whole document, or its error."""
    whole, sliced = (decoded(data, in_slices=in_slices) for in_slices in (False, True))
    assert sliced == whole


def decoded(data: bytes, *, in_slices: bool) -> Any:
    """Return all that a document contains; of a malformed one its error."""
    try:
        if in_slices:
            result = long_documents.decode_saved(data, tx_hash="T")
        else:
            result = decode_transaction(data, request="a saved transaction", tx_hash="T")
        lists = [elements(result, name) for name in ("outcomes", "bodies")]
    except errors.LedgerError as error:
        return type(error), str(error)
    members = result.final_execution_status, result.status, result.transaction
    return *members, result.outcomes.path, result.is_indexed, lists


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\n ", " : ")])
@pytest.mark.parametrize("document", [node_result(), {"result": node_result()}, api_document()])
def test_slices_have_the_elements_of_the_whole_document(
    document: dict[str, Any], separators: tuple[str, str]
):
    """However a document is formatted, its lists are cut, and nothing is lost or moved."""
    data = json.dumps(document, separators=separators).encode()
    result = long_documents.decode_saved(data)
    assert isinstance(result.outcomes, long_documents.SlicedList)
    assert isinstance(result.bodies, long_documents.SlicedList)
    assert len(result.outcomes.slices) > 5
    assert [receipt["receipt_id"] for receipt in elements(result, "bodies")] == [
        f"R{number}" for number in range(COUNT)
    ]
    assert_same(data)
    assert_same(json.dumps(document, indent=1).encode())


def test_one_of_several_transactions():
    """The lists of another transaction are not those of the requested one."""
    assert_same(json.dumps(api_document(several=True)).encode())


def test_a_wrong_element_has_its_place():
    """An element that is not as documented is refused with its place in the whole document."""
    document = node_result()
    document["receipts_outcome"][33]["outcome"]["gas_burnt"] = "much"
    with pytest.raises(errors.DecodeError) as caught:
        Trace.from_json(json.dumps(document))
    assert caught.value.path == "$.receipts_outcome[33].outcome.gas_burnt"
    assert_same(json.dumps(document).encode())


@pytest.mark.parametrize("number", [0, 20, COUNT - 1])
def test_an_unknown_action_has_its_name(number: int):
    """An unknown action anywhere keeps its name, and its neighbours stay whole."""
    document = node_result()
    document["receipts"][number] = body(number, {"Future": {"x": 1}}, TRANSFER)
    data = json.dumps(document).encode()
    receipts = elements(long_documents.decode_saved(data), "bodies")
    assert len(receipts) == COUNT
    assert receipts[number]["receipt"]["Action"]["actions"][0][""]["name"] == "Future"
    assert_same(data)


def test_a_cut_inside_an_element_only_takes_time():
    """Where elements contain objects that begin like them, the whole document is read."""
    inner = {"block_hash": "x" * 600, "id": "inner"}
    outcomes = [outcome(at, nested=[inner, inner, inner]) for at in range(COUNT)]
    document = node_result(receipts_outcome=outcomes)
    result = long_documents.decode_saved(json.dumps(document).encode())
    assert [one["id"] for one in elements(result, "outcomes")] == [f"R{at}" for at in range(COUNT)]
    assert_same(json.dumps(document).encode())


@pytest.mark.parametrize("is_malformed", [False, True])
@pytest.mark.parametrize("place", ["before", "after", "inside", "twice"])
def test_a_list_of_that_name_elsewhere_is_not_the_list(place: str, *, is_malformed: bool):
    """Only a list at its place in the document counts; others must be JSON too."""
    others = json.dumps([body(1000 + number) for number in range(COUNT)])
    others = others.replace('"R1020"', '"R1020') if is_malformed else others
    text = json.dumps(node_result())
    if place == "twice":
        text = text[:-1] + f', "receipts": {others}}}'
    elif place == "inside":
        text = text.replace('"receipts": [', f'"receipts": [{{"receipts": {others}}}, ', 1)
    elif place == "before":
        text = f'{{"other": {{"receipts": {others}}}, ' + text[1:]
    else:
        text = text[:-1] + f', "other": {{"receipts": {others}}}}}'
    assert_same(text.encode())


def test_a_list_in_a_text_is_a_text():
    """What looks like a list in a log line is a part of that line."""
    lists = json.dumps({"receipts": [body(number) for number in range(COUNT)]})
    document = node_result(receipts_outcome=[outcome(0, logs=[lists]), outcome(1)])
    assert_same(json.dumps(document).encode())
    assert_same(json.dumps({"note": lists} | document).encode())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"log 20"', '"log 20'),
        ('"log 20"', '"\\x"'),
        ('"id": "R20"', '"id": "R20",'),
        ('}, {"block_hash": "B20"', '} {"block_hash": "B20"'),
        ('}, {"block_hash": "B20"', '}], [{"block_hash": "B20"'),
        ('}, {"block_hash": "B20"', '},, {"block_hash": "B20"'),
        ('}, {"block_hash": "B20"', '}]}, {"block_hash": "B20"'),
        ('"receipts_outcome": [', '"receipts_outcome": [,'),
        ('"receipts_outcome": [', '"receipts_outcome": [null, '),
    ],
)
def test_a_malformed_document_is_refused_as_a_whole_one(old: str, new: str):
    """A document that is not JSON raises the same error, whatever slice the mistake is in."""
    text = json.dumps(node_result())
    assert old in text
    data = text.replace(old, new, 1).encode()
    with pytest.raises(errors.DecodeError):
        Trace.from_json(data)
    assert_same(data)


@given(st.integers(0, 10_000), st.binary(min_size=0, max_size=3), st.integers(0, 600))
def test_a_damaged_document_is_read_as_a_whole_one(place: int, inserted: bytes, lost: int):
    """Bytes that are lost or inserted anywhere change slices and the whole document alike."""
    data = json.dumps(node_result(), separators=(",", ":")).encode()
    at = place % len(data)
    assert_same(data[:at] + inserted + data[at + lost :])


def test_traces_of_slices_are_those_of_the_whole_document(monkeypatch: pytest.MonkeyPatch):
    """A trace has the same frames, also those that read the lists again."""
    data = json.dumps(node_result())
    sliced = Trace.from_json(data)
    monkeypatch.setattr(long_documents, "LONG", len(data) + 1)
    whole = Trace.from_json(data)
    for name in ("receipts", "edges", "actions", "logs", "transfers", "gas"):
        assert getattr(sliced, name).equals(getattr(whole, name)), name
    assert len(sliced.receipts) == COUNT
