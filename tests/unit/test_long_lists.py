"""Long lists of a result are decoded piece by piece, with the same results and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ledgerkit import errors
from ledgerkit.api.models.transactions import PIECE
from ledgerkit.tracing.trace import Trace

COUNT = 2 * PIECE + 40
TRANSFER = {"Transfer": {"deposit": "1"}}


def outcome(number: int) -> dict[str, Any]:
    following = [f"R{number + 1}"] if number + 1 < COUNT else []
    fields = {"logs": [f"log {number}"], "receipt_ids": following, "gas_burnt": number}
    fields |= {"tokens_burnt": str(number), "status": {"SuccessValue": ""}, "executor_id": "b.near"}
    return {"block_hash": f"B{number}", "id": f"R{number}", "outcome": fields}


def body(number: int, *actions: Any) -> dict[str, Any]:
    action = {"actions": list(actions or [TRANSFER]), "signer_id": "a.near"}
    parties = {"predecessor_id": "a.near", "receiver_id": "b.near"}
    return parties | {"receipt": {"Action": action}, "receipt_id": f"R{number}"}


def node_result() -> dict[str, Any]:
    own = {"id": "T", "outcome": {"receipt_ids": ["R0"], "status": {"SuccessReceiptId": "R0"}}}
    lists = {
        "receipts": [body(number) for number in range(COUNT)],
        "receipts_outcome": [outcome(number) for number in range(COUNT)],
    }
    return {"final_execution_status": "FINAL", "transaction_outcome": own, **lists}


def test_an_element_of_a_later_piece_keeps_its_place():
    """The rows of all pieces are those of the document."""
    receipts = Trace.from_json(node_result()).receipts
    assert receipts["receipt_id"].tolist() == [f"R{number}" for number in range(COUNT)]


def test_a_wrong_element_has_its_place():
    """An element that is not as documented is refused with its place in the whole document."""
    document = node_result()
    document["receipts_outcome"][PIECE + 33]["outcome"]["gas_burnt"] = "much"
    with pytest.raises(errors.DecodeError) as caught:
        Trace.from_json(json.dumps(document))
    assert caught.value.path == f"$.receipts_outcome[{PIECE + 33}].outcome.gas_burnt"


@pytest.mark.parametrize("number", [0, PIECE, COUNT - 1])
def test_an_unknown_action_has_its_name(number: int):
    """An unknown action anywhere keeps its name, and its neighbours stay whole."""
    document = node_result()
    document["receipts"][number] = body(number, {"Future": {"x": 1}}, TRANSFER)
    receipts = Trace.from_json(document).receipts
    assert len(receipts) == COUNT
    assert receipts["actions"][number] == "Future+Transfer"
