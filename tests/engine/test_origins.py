"""The transaction behind a hash or a receipt id, from the recorded answers of the services."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.block_data import transaction_documents
from ledgerkit.verbs.transactions import find_trace
from ledgerkit.widgets.search import recognise

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLE = Path(__file__).parents[3] / "shared/wire/samples/txapi/delegate_small.json"
HASH = "3eWyQXxCmA4Jfu6pp2wRWsxF7MJGw3QJEaiUq6jDRQxL"
OTHER = "1" * 31 + "A"  # no account id
BLOCK_ERROR = {"name": "HANDLER_ERROR", "cause": {"name": "UNKNOWN_BLOCK", "info": {}}}


@pytest.fixture
def recorded() -> Any:
    """Read a recorded answer of /v0/transactions."""
    if not SAMPLE.exists():
        pytest.skip("the recorded answers are not here")
    return json.loads(SAMPLE.read_text(encoding="utf-8"))


def connect(answer: Any, **options: Any) -> lk.Ledger:
    """Connect to a host that answers requests with a function."""
    return lk.connect(transport=httpx.MockTransport(answer), make_default=False, **options)


def test_a_receipt_leads_to_its_recorded_transaction(recorded: Any) -> None:
    """An unknown hash is left out of /v0/transactions; /v0/receipt has the whole transaction."""
    paths = []

    def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.path)
        if request.url.path == "/v0/transactions":
            return httpx.Response(200, json={"transactions": []})
        if request.url.path != "/v0/receipt":  # a node
            return httpx.Response(400)
        assert json.loads(request.content) == {"receipt_id": OTHER}
        document = recorded["transactions"][0]
        return httpx.Response(200, json={"receipt": {"receipt_id": OTHER}, "transaction": document})

    with connect(answer, network="mainnet") as ledger:
        trace = find_trace(OTHER, ledger)
    assert (trace.tx_hash, trace.signer_id) == (HASH, "0-relay.hot.tg")
    assert [path for path in paths if path != "/"] == ["/v0/transactions", "/v0/receipt"]


def test_what_no_service_knows_is_an_unknown_transaction() -> None:
    """Both members of /v0/receipt are null for an unknown receipt."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v0/transactions":
            return httpx.Response(200, json={"transactions": []})
        return httpx.Response(200, json={"receipt": None, "transaction": None})

    unknown = pytest.raises(errors.UnknownTransactionError, match=OTHER)
    with connect(answer, network="mainnet") as ledger, unknown:
        find_trace(OTHER, ledger)


@pytest.fixture
def node() -> Iterator[lk.Ledger]:
    """Connect to a node alone, which knows one receipt and no block."""

    def answer(request: httpx.Request) -> httpx.Response:
        call = json.loads(request.content)
        head = {"jsonrpc": "2.0", "id": call["id"]}
        origin = {"transaction_hash": HASH, "sender_account_id": "0-relay.hot.tg"}
        if call["method"] != "EXPERIMENTAL_receipt_to_tx":
            return httpx.Response(200, json={**head, "error": BLOCK_ERROR})
        if call["params"] == {"receipt_id": HASH}:
            return httpx.Response(200, json={**head, "result": origin})
        cause = {"name": "UNKNOWN_RECEIPT", "info": {"receipt_id": OTHER}}
        error = {"name": "HANDLER_ERROR", "cause": cause}
        return httpx.Response(200, json={**head, "error": error})

    with connect(answer, network="lab") as ledger:
        yield ledger


def test_a_node_without_an_index_still_finds_receipts(node: lk.Ledger) -> None:
    """A custom network has no index by hash: receipts and blocks are looked up all the same."""
    assert transaction_documents.receipt_origin(node, HASH) == (HASH, "0-relay.hot.tg")
    assert recognise(HASH, node).values == {"tx_hash": HASH}

    for look_up in (find_trace, recognise):
        with pytest.raises(errors.InvalidRequestError, match="has no index of transactions"):
            look_up(OTHER, node)
