"""Transaction results are decoded whoever sent them, and refused with the place that is wrong."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from ledgerkit import errors
from ledgerkit.api.models import transactions as wire
from ledgerkit.api.models.actions import FunctionCall, action_name, named_content

ASKED = "transaction T of alice.near"


def outcome(id_: str, **told: Any) -> dict[str, Any]:
    return {"id": id_, "block_hash": "B", "proof": [], "outcome": {"receipt_ids": [], **told}}


def receipt(id_: str, *actions: Any) -> dict[str, Any]:
    """Write an action receipt with what matters to the test."""
    body = {"signer_id": "alice.near", "actions": list(actions), "is_promise_yield": False}
    sent = {"predecessor_id": "alice.near", "receiver_id": "bob.near", "receipt": {"Action": body}}
    return {"receipt_id": id_, "priority": 0, **sent}


def envelope(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": "x", "result": members}).encode()


def decode(data: bytes, tx_hash: str | None = None) -> wire.TxResult:
    return wire.decode_transaction(data, request=ASKED, tx_hash=tx_hash)


def bodies(result: wire.TxResult) -> list[wire.Receipt]:
    assert result.bodies is not None
    return list(result.bodies)


def outcomes(result: wire.TxResult) -> list[wire.ExecutionOutcome]:
    return list(result.outcomes)


def actions(*written: Any) -> list[Any]:
    body = bodies(decode(envelope(receipts=[receipt("R", *written)])))[0].receipt
    assert body is not None
    assert body.action is not None
    return body.action.actions or []


def test_envelope_and_bare_result_are_the_same():
    """A whole JSON-RPC answer and its bare result decode to equal outcomes."""
    members = {"status": {"SuccessValue": ""}, "receipts_outcome": [outcome("R", gas_burnt=7)]}
    whole, bare = decode(envelope(**members)), decode(json.dumps(members).encode())
    assert outcomes(whole) == outcomes(bare)
    assert outcomes(bare)[0].outcome.gas_burnt == 7
    assert whole.outcomes.path == "$.result.receipts_outcome"
    assert bare.outcomes.path == "$.receipts_outcome"


@pytest.mark.parametrize("name", ["transaction_outcome", "execution_outcome"])
def test_an_outcome_of_another_transaction_is_refused(name: str):
    """Where the hash of the transaction and the id of its outcome differ, neither is believed."""
    document = {"transaction": {"hash": "U"}, name: outcome("T")}
    with pytest.raises(errors.DecodeError, match="the outcome of U is of T"):
        decode(json.dumps(document).encode())


def test_transactions_api_document_whole_and_one_element():
    """A Transactions API element pairs bodies with outcomes; both lists come out, no status."""
    element = {
        "transaction": {"hash": "T", "signer_id": "alice.near"},
        "execution_outcome": outcome("T"),
        "receipts": [
            {"receipt": receipt("R1"), "execution_outcome": outcome("R1", gas_burnt=1)},
            {"receipt": receipt("R2"), "execution_outcome": None},
        ],
        "data_receipts": [],
    }
    for document in (element, {"transactions": [element]}):
        result = decode(json.dumps(document).encode())
        assert [body.receipt_id for body in bodies(result)] == ["R1", "R2"]
        assert [told.id for told in outcomes(result)] == ["R1"]
        assert result.status is None
        assert result.transaction is not None
        assert result.transaction.hash == "T"


def test_an_empty_list_of_transactions_is_an_unknown_transaction():
    """The service leaves unknown hashes out: an empty list means that there is none here."""
    with pytest.raises(errors.UnknownTransactionError):
        decode(b'{"transactions": []}')


def test_every_optional_member_may_be_missing_or_null():
    """Old nodes leave members out: what is missing or null is None."""
    empty = {"logs": None, "receipt_ids": None, "gas_burnt": None, "tokens_burnt": None}
    for told in ({}, empty):
        result = decode(envelope(receipts_outcome=[{"id": "R", "outcome": told}]))
        (only,) = outcomes(result)
        assert only.block_hash is None
        assert only.outcome.gas_burnt is None
        assert only.outcome.status is None
    assert bodies(decode(envelope(receipts=[{"receipt_id": "R"}])))[0].receiver_id is None
    assert decode(envelope(final_execution_status="NONE")).bodies is None


def test_actions_come_as_strings_objects_and_raw_objects():
    """A bare string stays a string, and the raw form inside a Delegate names the same action."""
    call = {"FunctionCall": {"method_name": "m", "args": "e30=", "gas": 5, "deposit": "1"}}
    inner = {"sender_id": "a", "receiver_id": "b", "actions": [{"CreateAccount": {}}, call]}
    bare, delegate = actions("CreateAccount", {"Delegate": {"delegate_action": inner}})
    assert bare == "CreateAccount"
    raw, delegated = delegate.delegate.delegate_action.actions
    assert bytes(raw.create_account) == b"{}"
    assert delegated.function_call == FunctionCall("m", b"{}", 5, "1")


def test_second_version_of_a_delegate_sits_one_member_deeper():
    """DelegateV2 keeps its actions under V2."""
    (action,) = actions({"DelegateV2": {"delegate_action": {"V2": {"actions": ["CreateAccount"]}}}})
    assert action.delegate_v2.delegate_action.v2.actions == ["CreateAccount"]


def test_unknown_actions_are_carried_through_by_name(subtests: pytest.Subtests):
    """An action of tomorrow keeps its name, whatever it carries; its neighbours stay whole."""
    cases = [{}, {"gas": "x", "args": []}, None, 3, "text", [1], {"actions": [{"Later": 1}]}]
    for payload in cases:
        with subtests.test(payload=payload):
            known = {"Transfer": {"deposit": "340282366920938463463374607431768211455"}}
            future, transfer = actions({"FutureAction": payload}, known)
            assert named_content(future) == ("FutureAction", payload)
            assert transfer.transfer.deposit == "340282366920938463463374607431768211455"


def test_unknown_actions_inside_a_delegate_and_in_the_transaction():
    """Unknown names survive in a Delegate and in the signed transaction as well."""
    delegate = {"Delegate": {"delegate_action": {"actions": [{"Later": {"gas": "x"}}]}}}
    [inner] = actions(delegate)[0].delegate.delegate_action.actions
    assert action_name(inner) == "Later"
    result = decode(envelope(transaction={"hash": "T", "actions": [{"Later": 1}]}))
    assert result.transaction is not None
    assert list(map(action_name, result.transaction.actions or ())) == ["Later"]


def test_other_kinds_of_receipts_are_told_apart():
    """Data and GlobalContractDistribution receipts are recognised; a future kind is named."""
    kinds = [{"Data": {"data_id": "D", "data": None}}, {"GlobalContractDistribution": {"id": "c"}}]
    written = [
        {"receipt_id": f"R{n}", "receipt": kind} for n, kind in enumerate([*kinds, {"X": 1}])
    ]
    data, distribution, future = [
        body.receipt for body in bodies(decode(envelope(receipts=written)))
    ]
    assert data is not None
    assert distribution is not None
    assert isinstance(data.data, msgspec.Raw)
    assert bytes(data.data) == b'{"data_id": "D", "data": null}'
    assert isinstance(distribution.global_contract_distribution, msgspec.Raw)
    assert bytes(distribution.global_contract_distribution) == b'{"id": "c"}'
    assert future is not None
    assert future.kind == "X"


def test_a_wrong_type_names_its_place():
    """A wrong type far down a long list names the list, the position and the member."""
    told = [outcome(f"R{n}", gas_burnt=n) for n in range(2000)]
    told[1500]["outcome"]["gas_burnt"] = "lots"
    with pytest.raises(errors.DecodeError) as refused:
        outcomes(decode(envelope(receipts_outcome=told)))
    assert refused.value.path == "$.result.receipts_outcome[1500].outcome.gas_burnt"
    assert refused.value.request == ASKED
    assert "Expected `int | null`, got `str`" in str(refused.value)


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ({"FunctionCall": {"gas": 1.5}}, ".FunctionCall.gas"),
        ({"FunctionCall": {"gas": -1}}, ".FunctionCall.gas"),
        ({"FunctionCall": {"args": "not base64!"}}, ".FunctionCall.args"),
        ({"Transfer": {"deposit": 5}}, ".Transfer.deposit"),
        (7, ""),
    ],
)
def test_a_wrong_action_names_its_place(written: object, path: str):
    """Inside an action the path names the action too."""
    with pytest.raises(errors.DecodeError) as refused:
        actions("CreateAccount", written)
    assert refused.value.path == f"$.result.receipts[0].receipt.Action.actions[1]{path}"


def test_wrong_places_in_a_transactions_api_document():
    """The path leads through the pairs of a Transactions API document."""
    pair = {"receipt": receipt("R"), "execution_outcome": outcome("R", tokens_burnt=3)}
    document = {"transactions": [{"transaction": {"hash": "T"}, "receipts": [pair]}]}
    with pytest.raises(errors.DecodeError) as refused:
        outcomes(decode(json.dumps(document).encode()))
    place = "$.transactions[0].receipts[0].execution_outcome.outcome.tokens_burnt"
    assert refused.value.path == place


def test_what_is_no_transaction_is_refused(subtests: pytest.Subtests):
    """Nothing, HTML, half a document, other JSON: refused, naming what was asked."""
    cases = [
        b"",
        b"   ",
        b"<!DOCTYPE html><title>502</title>",
        b'{"jsonrpc":"2.0","result":{"receipts":[{"receipt_id"',
        b'{"result":{"transaction":{"hash":"\xff"}}}',
        b"[" * 100_000,
        b'{"result":{"transaction":{"actions":['
        + b'{"Delegate":{"delegate_action":{"actions":[' * 50_000,
        b'{"result":{"transaction":{"actions":[{"Later":NaN}]}}}',
        b'"Internal server error"',
        b"[]",
        b"null",
        b"{}",
        b'{"jsonrpc":"2.0","id":1}',
        b'{"result":null}',
        b'{"result":{}}',
        b'{"result":"7hAsh"}',
        b'{"result":{"receipts":{}}}',
    ]
    for data in cases:
        with subtests.test(data=data[:20]):
            with pytest.raises(errors.DecodeError) as refused:
                decode(data)
            assert refused.value.request == ASKED
            assert ASKED in str(refused.value)
            assert str(refused.value.path).startswith("$")
            assert len(str(refused.value)) < 500


def test_an_error_answer_raises_the_typed_error():
    """A JSON-RPC error raises what the taxonomy makes of it."""
    cause = {"name": "UNKNOWN_TRANSACTION", "info": {"requested_transaction_hash": "T"}}
    error = {"name": "HANDLER_ERROR", "cause": cause, "code": -32000, "message": "Server error"}
    with pytest.raises(errors.UnknownTransactionError) as raised:
        decode(json.dumps({"jsonrpc": "2.0", "error": error, "id": "x"}).encode())
    assert raised.value.requested_transaction_hash == "T"


def test_a_null_error_is_none():
    """`error: null` beside a result is no error."""
    result = decode(b'{"error": null, "result": {"final_execution_status": "FINAL"}}')
    assert result.final_execution_status == "FINAL"


def test_blocks_are_added_to_a_document_and_read_back():
    """Added heights are one more member; the rest of the document keeps its bytes."""
    data = b' \n{"result": {"final_execution_status": "FINAL"}}'
    longer = wire.embed_context(data, wire.TraceContext({"B": (7, 9)}))
    assert longer == b'{"ledgerkit":{"blocks":{"B":[7,9]}},' + data.lstrip()[1:]
    assert wire.decode_context(longer) == wire.TraceContext({"B": (7, 9)})
    assert wire.decode_context(data) == wire.TraceContext()
    assert wire.decode_context(b'{"ledgerkit":') == wire.TraceContext()
    assert decode(longer).final_execution_status == "FINAL"


def test_added_blocks_are_read_from_a_document_that_was_formatted_anew():
    """An editor or jq adds line breaks and spaces; the heights are still read."""
    longer = wire.embed_context(b'{"result": {}}', wire.TraceContext({"B": (7, 9)}))
    formatted = json.dumps(json.loads(longer), indent=2).encode()
    assert wire.decode_context(formatted) == wire.TraceContext({"B": (7, 9)})


def test_malformed_added_blocks_are_an_error():
    """A damaged addition is refused with its place; it is not read as none."""
    for addition, path in (
        (b"3", "$.ledgerkit"),
        (b'{"blocks":{"B":["x",9]}}', "$.ledgerkit.blocks"),
    ):
        data = b'{"ledgerkit":' + addition + b',"result":{"final_execution_status":"FINAL"}}'
        with pytest.raises(
            errors.DecodeError, match="a saved transaction is not as documented"
        ) as e:
            wire.decode_context(data)
        assert str(e.value.path).startswith(path)
