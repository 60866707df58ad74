"""What a later protocol adds is shown by its name, and the rest of a document stays as it was."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit.api.models.actions import Action
from ledgerkit.api.models.other_kinds import ACTIONS, OTHER, RECEIPTS, STATUSES
from ledgerkit.api.models.transactions import ReceiptBody, Status

HASH, OTHER_HASH = "1" * 32, "2" * 32
HEADER = {
    "height": 8,
    "hash": HASH,
    "prev_hash": HASH,
    "epoch_id": HASH,
    "chunks_included": 1,
    "gas_price": "100",
    "total_supply": "1000",
    "timestamp_nanosec": "5",
}
CHUNK_HEADER = {
    "chunk_hash": HASH,
    "shard_id": 3,
    "height_created": 8,
    "height_included": 8,
    "gas_used": 0,
    "gas_limit": 10**15,
    "balance_burnt": "0",
}
SIGNED = {
    "hash": HASH,
    "signer_id": "a.near",
    "receiver_id": "b.near",
    "public_key": "ed25519:" + HASH,
    "nonce": 1,
    "actions": [{"Transfer": {"deposit": "5"}}],
    "signature": "ed25519:" + HASH,
}
# Source: near-jsonrpc-client 1.0.102, EccTransactionView.
CALL = {"contract_id": "c.near", "hash": OTHER_HASH, "payload": "AAAA"}


def test_every_declared_kind_is_decoded_as_such() -> None:
    """What is wrapped as another kind is exactly what the models do not declare."""
    declared = {Action: ACTIONS, ReceiptBody: RECEIPTS, Status: STATUSES}
    for model, names in declared.items():
        assert {*names, OTHER} == set(model.__struct_encode_fields__)


def outcome(outcome_id: str, status: object, **members: object) -> dict[str, Any]:
    told = {
        "logs": [],
        "receipt_ids": [],
        "gas_burnt": 7,
        "tokens_burnt": "700",
        "executor_id": "b.near",
        "status": status,
        **members,
    }
    return {"id": outcome_id, "block_hash": HASH, "proof": [], "outcome": told}


def receipt(receipt_id: str, content: object) -> dict[str, Any]:
    parties = {"predecessor_id": "a.near", "receiver_id": "b.near"}
    return {"receipt_id": receipt_id, **parties, "receipt": content}


def action(*actions: object) -> dict[str, Any]:
    members = {"signer_id": "a.near", "input_data_ids": [], "output_data_receivers": []}
    return {"Action": {**members, "actions": actions}}


def chunk(*items: object) -> bytes:
    members = {"author": "v.near", "header": CHUNK_HEADER, "receipts": []}
    return json.dumps({**members, "transactions": items}).encode()


def whole_block(
    items: list[Any], pairs: list[tuple[Any, Any]], changes: list[Any] | None = None
) -> bytes:
    shard = {
        "shard_id": 3,
        "chunk": {
            "author": "v.near",
            "header": CHUNK_HEADER,
            "transactions": items,
            "receipts": [],
            "local_receipts": [],
        },
        "receipt_execution_outcomes": [
            {"receipt": body, "execution_outcome": execution} for body, execution in pairs
        ],
        "state_changes": changes or [],
    }
    block = {"author": "v.near", "header": HEADER, "chunks": [CHUNK_HEADER]}
    return json.dumps({"block": block, "shards": [shard]}).encode()


def converted(transaction: dict[str, Any], status: object) -> dict[str, Any]:
    return {
        "transaction": transaction,
        "outcome": {"execution_outcome": outcome(transaction["hash"], status)},
    }


def result(bodies: list[Any], outcomes: list[Any], status: object = None) -> dict[str, Any]:
    """Return the result of a transaction that created the first receipt."""
    first = outcomes[0]["id"]
    return {
        "final_execution_status": "FINAL",
        "status": {"SuccessValue": ""} if status is None else status,
        "transaction": {**SIGNED, "hash": "T"},
        "transaction_outcome": outcome("T", {"SuccessReceiptId": first}, receipt_ids=[first]),
        "receipts": bodies,
        "receipts_outcome": outcomes,
    }


@pytest.mark.parametrize("is_whole", [False, True])
def test_an_external_contract_call_is_a_row_of_its_chunk(*, is_whole: bool) -> None:
    """It has its hash and content, counts as an item, and its neighbours stay as they were."""
    alone, both = chunk(SIGNED), chunk(SIGNED, CALL)
    if is_whole:
        sent = converted(SIGNED, {"SuccessValue": ""})
        alone, both = whole_block([sent], []), whole_block([sent, CALL], [])
    frame = lk.read_response(both, "transactions")
    assert frame["kind"].tolist() == ["signed", "external_contract_call"]
    assert frame.iloc[:1].equals(lk.read_response(alone, "transactions"))
    assert frame["tx_hash"].tolist() == [HASH, OTHER_HASH]
    assert frame["content"][1] == CALL
    assert frame.loc[1, "signer_id":"gas_attached"].isna().all()
    assert lk.read_response(both, "chunks")["n_transactions"].tolist() == [2]


def test_an_item_of_an_unknown_kind_with_an_outcome_has_it() -> None:
    """Its outcome is a row like that of a transaction, and it is named by the outcome's id."""
    item = converted({"hash": OTHER_HASH}, {"SuccessValue": ""})
    item["transaction"] = {"level": 2}
    document = whole_block([item], [])
    row = lk.read_response(document, "transactions").iloc[0]
    assert (row["kind"], row["content"], row["tx_hash"]) == ("unknown", {"level": 2}, OTHER_HASH)
    outcomes = lk.read_response(document, "outcomes")
    assert outcomes[["tx_hash", "status", "executor_id"]].values.tolist() == [
        [OTHER_HASH, "success_value", "b.near"]
    ]
    assert outcomes["signer_id"].isna().all()


def test_a_signed_transaction_that_lacks_a_member_is_refused() -> None:
    """What is signed is no item of another kind: it must be whole."""
    for name in ("signer_id", "nonce", "actions"):
        lacking = {key: value for key, value in SIGNED.items() if key != name}
        with pytest.raises(lk.errors.DecodeError, match=name):
            lk.read_response(chunk(lacking), "transactions")


def test_an_unknown_action_moves_its_deposit() -> None:
    """Trees, explanations, transfers and balances have it, also beside other actions."""
    later = {"UniversalStateInitV9": {"state_init": "AA==", "deposit": str(35 * 10**23)}}
    body = action(later, {"Transfer": {"deposit": "5"}})
    trace = lk.Trace.from_json(result([receipt("R", body)], [outcome("R", {"SuccessValue": ""})]))
    assert trace.receipts["deposit"].tolist() == [35 * 10**23 + 5]
    moved = trace.transfers[trace.transfers["sender_id"] == "a.near"]
    assert sum(moved.loc[moved["kind"] != "fee", "amount"]) == 35 * 10**23 + 5
    changes = trace.balance_changes.set_index("account_id")["change"]
    assert changes["b.near"] == 35 * 10**23 + 5
    assert "UniversalStateInitV9" in trace.explain()
    assert "The document does not contain" not in trace.explain()
    assert trace.actions["details"][0] == {"state_init": "AA=="}


def test_an_unknown_action_without_a_deposit_is_not_nothing() -> None:
    """What it moved is not known; only a document that lacks something is said to lack it."""
    kinds: list[Any] = ["LaterV9", {"LaterV9": {}}, {"LaterV9": {"deposit": "0"}}]
    for later in kinds:
        body = receipt("R", action(later))
        text = lk.Trace.from_json(result([body], [outcome("R", {"SuccessValue": ""})])).explain()
        assert "Ledgerkit does not know what was transferred." in text


@pytest.mark.parametrize("signed", [{"V9": {"level": 2}}, "V9", {}])
def test_a_delegate_of_an_unknown_version_is_shown(signed: object) -> None:
    """What it asks for is not known; its neighbours stay as they were."""
    later = {"DelegateV2": {"delegate_action": signed, "signature": "ed25519:" + HASH}}
    body = action(later, {"Transfer": {"deposit": "5"}})
    executed = outcome("R", {"SuccessValue": ""})
    trace = lk.Trace.from_json(result([receipt("R", body)], [executed]))
    assert trace.actions["action"].tolist() == ["DelegateV2", "Transfer"]
    content = signed if isinstance(signed, dict) and signed else {signed or "Unknown": None}
    assert trace.actions["details"][0] == content
    assert trace.balance_changes.set_index("account_id")["change"]["b.near"] == 5
    rows = lk.read_response(whole_block([], [(receipt("R", body), executed)]), "actions")
    assert rows["details"][0] == content


@pytest.mark.parametrize("deposit", ["", "abc", "-1", "1e5", " 5", "٣", str(2**128), 5, None, {}])
def test_a_deposit_of_an_unknown_action_that_is_no_amount_is_unknown(deposit: object) -> None:
    """Nobody knows the form that it has there, so it is no error for the rest."""
    body = action({"LaterV9": {"deposit": deposit}}, {"Transfer": {"deposit": "5"}})
    executed = outcome("R", {"SuccessValue": ""})
    trace = lk.Trace.from_json(result([receipt("R", body)], [executed]))
    assert trace.receipts["deposit"].isna().all()
    assert trace.actions["details"][0] == {"deposit": deposit}
    document = whole_block([], [(receipt("R", body), executed)])
    assert lk.read_response(document, "actions")["deposit"].tolist() == [pd.NA, 5]


@pytest.mark.parametrize("content", [{"ActionV9": {"level": 2}}, "ActionV9"])
def test_a_receipt_of_an_unknown_kind_is_named(content: object) -> None:
    """In the tree, the notes and the tables of a block; what it moved is unknown, not nothing."""
    outcomes = [outcome("R", {"SuccessValue": ""}, receipt_ids=["S"]), outcome("S", "Unknown")]
    outcomes[1]["outcome"]["status"] = {"SuccessValue": ""}
    bodies = [receipt("R", action({"Transfer": {"deposit": "5"}})), receipt("S", content)]
    trace = lk.Trace.from_json(result(bodies, outcomes))
    assert trace.receipts["actions"].tolist() == ["Transfer", "ActionV9"]
    assert trace.receipts["deposit"].isna().tolist() == [False, True]
    assert "what receipts of the kind ActionV9 did is not known: S" in trace.notes
    assert not any(note.startswith("deposits that") for note in trace.notes)
    assert trace.verdict == "fully_succeeded"
    document = whole_block([], list(zip(bodies, outcomes, strict=True)))
    assert lk.read_response(document, "outcomes")["receipt_kind"].tolist() == ["Action", "ActionV9"]
    assert lk.read_response(document, "actions")["action"].tolist() == ["Transfer"]


@pytest.mark.parametrize("content", [{"ActionV9": {"level": 2}}, "ActionV9"])
def test_a_receipt_of_an_unknown_kind_that_only_a_chunk_lists_is_a_row(content: object) -> None:
    """Its kind and content stand beside the data receipts, which stay as they were."""
    data = receipt("D", {"Data": {"data_id": HASH, "data": "AA=="}})
    document = json.loads(whole_block([], []))
    document["shards"][0]["chunk"]["receipts"] = [data, receipt("A", action())]
    alone = lk.read_response(json.dumps(document).encode(), "data_receipts")
    document["shards"][0]["chunk"]["receipts"].append(receipt("S", content))
    frame = lk.read_response(json.dumps(document).encode(), "data_receipts")
    assert frame[["receipt_id", "kind"]].values.tolist() == [["D", "Data"], ["S", "ActionV9"]]
    assert frame.iloc[:1].equals(alone)
    row = frame.iloc[1]
    assert (row["predecessor_id"], row["receiver_id"]) == ("a.near", "b.near")
    assert row["content"] == (content["ActionV9"] if isinstance(content, dict) else None)
    assert row[["data_id", "data", "is_promise_resume"]].isna().all()


@pytest.mark.parametrize("status", [{"SuccessV9": "AA=="}, "SuccessV9"])
def test_a_status_that_is_not_known_is_named_and_no_success(status: object) -> None:
    """Neither the receipt nor the transaction succeeded or failed, as far as is known."""
    body = receipt("R", action({"Transfer": {"deposit": "5"}}))
    trace = lk.Trace.from_json(result([body], [outcome("R", status)], status))
    row = trace.receipts.iloc[0]
    assert (row["status"], trace.verdict) == ("unknown", "unknown")
    assert row["error_message"] == "ledgerkit does not know what the status SuccessV9 means"
    assert row["error_message"] + ": R" in trace.notes
    assert trace.actions["is_effective"].isna().all()
    text = trace.explain()
    assert (
        trace.headline()
        == "a.near asked to send 5 yocto to b.near; ledgerkit does not know the result."
    )
    assert "Ledgerkit does not know its result." in text
    assert "Ledgerkit does not know what was transferred." in text
    outcomes = lk.read_response(whole_block([], [(body, outcome("R", status))]), "outcomes")
    assert outcomes[["status", "failure"]].values.tolist() == [["unknown", status]]


def test_changes_of_state_of_unknown_kinds_are_rows() -> None:
    """Kinds, causes and what is known of the account; balances are missing, not 0."""
    known = {
        "type": "account_update",
        "cause": {"type": "bonus_v9"},
        "change": {"account_id": "a.near", "amount": "5", "locked": "0", "storage_usage": 9},
    }
    later = {"type": "vault_v9", "cause": "weather", "change": {"amount": 5}}
    other = {**known, "cause": {"BonusV9": {"level": 2}}}
    keys = {**later, "type": "access_key_update", "cause": {"type": "x"}, "change": {}}
    frame = lk.read_response(whole_block([], [], [known, later, other, keys]), "balances")
    assert frame["type"].tolist() == ["account_update", "vault_v9", "account_update"]
    assert frame["cause"].tolist() == ["bonus_v9", "weather", "BonusV9"]
    assert frame["amount"].tolist()[0] == 5
    assert frame.loc[1, ["account_id", "amount", "locked", "storage_usage"]].isna().all()


def test_gas_of_an_unknown_category_is_named() -> None:
    """Known categories keep their sums, and the gas of all others stands beside them."""
    costs = [("WASM_HOST_COST", "WASM_INSTRUCTION", "3"), ("PROOF_V9", None, "4")]
    profile = [{"cost_category": a, "cost": b, "gas_used": c} for a, b, c in costs]
    metadata = {"version": 9, "gas_profile": profile}
    executed = outcome("R", {"SuccessValue": ""}, metadata=metadata)
    row = lk.read_response(whole_block([], [(receipt("R", action()), executed)]), "outcomes").iloc[
        0
    ]
    assert (row["wasm_gas"], row["host_gas"], row["action_gas"]) == (3, 0, 0)
    assert row["other_gas"] == {"PROOF_V9": 4}


def test_a_key_of_an_unknown_kind_is_a_row() -> None:
    """It has its name, and whatever it has inside is not read as a limit or a balance."""
    kinds: list[Any] = ["FullAccess", {"VaultV9": {"balance": 5, "allowance": "x"}}, {"LockV9": 1}]
    keys = [
        {"public_key": "ed25519:" + HASH, "access_key": {"nonce": 5, "permission": kind}}
        for kind in kinds
    ]
    document = json.dumps({"keys": keys, "block_height": 8, "block_hash": HASH}).encode()
    frame = lk.read_response(document, "keys")
    assert frame["permission"].tolist() == ["FullAccess", "VaultV9", "LockV9"]
    assert frame[["balance", "allowance", "is_unlimited", "receiver_id"]].isna().all(axis=None)
