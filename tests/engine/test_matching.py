"""Responses that belong to another request: none becomes a row, and its connection is closed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.api import calls, matching, rpc
from ledgerkit.errors import UnmatchedResponseError
from ledgerkit.localnet.worlds import open_world
from tests import out_of_step
from tests.local_transport import LocalTransport
from tests.loopback import Reply, as_json, asking, failure, result

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("short_pauses")

SAMPLES = Path(__file__).resolve().parents[2].parent / "shared" / "wire" / "samples"
PEOPLE = [f"person{number:07}.near" for number in range(40)]
OTHER = "FekbqN74kXhVPRd8ysAqJwLydFvTPYh7ZXHmhqCETcR3"


@pytest.fixture(scope="module")
def local() -> LocalTransport:
    """Open a world of people with different balances."""
    return LocalTransport(open_world("crowd", size=len(PEOPLE)))


def connect(server: out_of_step.Server, *, attempts: int = 8, **options: Any) -> lk.Ledger:
    retries = lk.RetryPolicy(attempts=attempts, total_s=60)
    return lk.connect("lab", rpc_url=server.url, api_url=server.url, retries=retries, **options)


# No row of another request ----------------------------------------------------------------


@pytest.mark.parametrize("fault", ["another id", "no id"])
def test_a_host_that_never_repeats_the_id_is_an_error(fault: str, local: LocalTransport) -> None:
    """After the last attempt the error is raised, and says which request it was."""
    with out_of_step.serve(local, [fault]) as server, connect(server, attempts=3) as ledger:
        lk.gas_price(ledger=ledger)  # the first response has no fault: there is no earlier one
        with pytest.raises(UnmatchedResponseError, match="the node's status") as caught:
            lk.status(ledger=ledger)
    assert isinstance(caught.value, errors.TransportError)
    assert "use another one" in str(caught.value)
    assert len(server.requests) == 4


@pytest.mark.parametrize("in_flight", [8, 16])
def test_a_wrong_response_is_asked_again_on_a_new_connection(
    in_flight: int, local: LocalTransport
) -> None:
    """The connection of a wrong response is closed, and the next attempt has one of its own."""
    with (
        out_of_step.serve(local, ["an earlier response instead"], rate=0.0) as server,
        connect(server, in_flight=in_flight) as ledger,
    ):
        lk.status(ledger=ledger)
        lk.gas_price(ledger=ledger)
        assert len({request.connection for request in server.requests}) == 1
        server.rate = 1.0
        with pytest.raises(UnmatchedResponseError):
            lk.validators(ledger=ledger)
        server.rate = 0.0
        lk.status(ledger=ledger)
    connections = [request.connection for request in server.requests]
    assert connections[0] == connections[1] == connections[2]
    assert len(set(connections[2:])) == len(connections[2:]) == 9


@pytest.mark.parametrize("fault", ["a surplus response", "half a surplus response"])
def test_unread_bytes_close_a_connection(fault: str, local: LocalTransport) -> None:
    """A connection with bytes beyond its response is not used again, so REST is safe too."""
    with out_of_step.serve(local, [fault]) as server, connect(server) as ledger:
        for name in PEOPLE[:4]:
            assert lk.ft(name, ledger=ledger)["account_id"].eq(name).all()
    assert len(server.requests) == 4
    # The first response has no fault, so its connection is used once more.
    assert len({request.connection for request in server.requests}) == 3


# Ids ----------------------------------------------------------------------------------------


def test_ids_are_unique_and_equal_calls_stay_equal(local: LocalTransport) -> None:
    """Each attempt has an id of its own; caches and saved responses see the same one always."""
    block_hash = str(local.world.chain.head.hash)
    with (
        out_of_step.serve(local, ["no id"], rate=0.0) as server,
        connect(server) as ledger,
    ):
        for _ in range(20):
            lk.gas_price(ledger=ledger)
        first = lk.block(block_hash, ledger=ledger)
        assert lk.block(block_hash, ledger=ledger).equals(first)
    bodies = [json.loads(request.body) for request in server.requests]
    assert len({body["id"] for body in bodies}) == len(bodies) == 21


def test_a_result_is_saved_without_its_id(local: LocalTransport) -> None:
    """The same response gives the same bytes in every session, so that saved files are equal."""
    status = rpc.call("status", [])
    bodies = []
    for _ in range(2):
        with lk.connect("lab", transport=local) as ledger:
            ledger.send(replace(status, read=lambda response: bodies.append(response.body)))
    assert bodies[0] == bodies[1]
    assert json.loads(bodies[0])["id"] == matching.PLACEHOLDER


# JSON-RPC 2.0, section 5: the id of an error is null if the id of the request could not be read.
PARSE_ERROR = {"name": "REQUEST_VALIDATION_ERROR", "cause": {"name": "PARSE_ERROR"}}
BUSY = {"code": -429, "message": "Rate limit exceeded"}
UNKNOWN = {"name": "HANDLER_ERROR", "cause": {"name": "UNKNOWN_ACCOUNT"}, "code": -32000}


@pytest.mark.parametrize(
    ("error", "status", "expected"),
    [
        (PARSE_ERROR, 400, errors.RequestParseError),
        (BUSY, 429, errors.RateLimitedError),
        (UNKNOWN, 200, UnmatchedResponseError),
    ],
    ids=["parse error", "rate limit", "unknown account"],
)
def test_an_error_without_an_id(
    error: dict[str, Any], status: int, expected: type[errors.LedgerError]
) -> None:
    """An error about the request or the host needs no id; one about the ledger does."""
    reply = as_json({"jsonrpc": "2.0", "id": None, "error": error}, status)
    with asking(lambda *_: reply), pytest.raises(expected) as caught:
        lk.gas_price()
    assert type(caught.value) is expected


# Members that repeat the request ------------------------------------------------------------


READS: dict[str, Callable[[lk.Ledger], object]] = {
    "ft": lambda ledger: lk.ft("a.near", ledger=ledger),
    "nft": lambda ledger: lk.nft("a.near", ledger=ledger),
    "any path": lambda ledger: ledger.get("/v1/account/a.near/ft"),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_listing_of_another_account(read: Callable[[lk.Ledger], object]) -> None:
    """A listing is about the account in the path."""
    account_id = "b.near"

    def reply(*_: object) -> Reply:
        return as_json({"account_id": account_id, "tokens": [], "pools": [{"pool_id": "p"}]})

    with asking(reply) as server:
        ledger = server.ledger
        with pytest.raises(UnmatchedResponseError, match=r"account_id is b\.near, not a\.near"):
            read(ledger)
        account_id = "a.near"
        read(ledger)


@pytest.mark.parametrize("kind", ["rpc", "other listing"])
def test_a_response_of_another_kind(kind: str) -> None:
    """A response that cannot be decoded is checked too, before it counts as undocumented."""
    wrong = {"jsonrpc": "2.0", "id": "x", "result": {}} if kind == "rpc" else {"account_id": "b"}
    with (
        asking(lambda *_: as_json({**wrong, "contracts": []})),
        pytest.raises(UnmatchedResponseError),
    ):
        lk.ft("a.near")


def test_an_error_about_another_account() -> None:
    """An account is not missing because another one is."""
    info = {"requested_account_id": "b.near", "block_height": 7, "block_hash": OTHER}
    with asking(lambda *_: failure("UNKNOWN_ACCOUNT", info)) as server:
        ledger = server.ledger
        query = {"request_type": "view_account", "finality": "final"}
        with pytest.raises(UnmatchedResponseError, match=r"account_id is b\.near"):
            ledger.rpc("query", {**query, "account_id": "a.near"})
        with pytest.raises(errors.UnknownAccountError):
            ledger.rpc("query", {**query, "account_id": "b.near"})


def test_changes_of_another_account() -> None:
    """Each change is one of an account of the request."""
    change = {"account_id": "b.near", "amount": "1", "locked": "0", "storage_usage": 1}
    row = {"type": "account_update", "cause": {"type": "initial_state"}, "change": change}
    with asking(lambda *_: result({"block_hash": OTHER, "changes": [row]})):
        assert len(lk.changes(["a.near", "b.near"])) == 1
        with pytest.raises(UnmatchedResponseError, match=r"account_id is b\.near, not a\.near"):
            lk.changes("a.near")


def test_the_transaction_that_was_sent() -> None:
    """The hash in the response to a broadcast is that of the signed bytes."""
    call = calls.rpc("broadcast_tx_async", {}, str, request="it", expected={"": OTHER})
    with pytest.raises(UnmatchedResponseError):
        call.read(calls.Response(b'{"result":"' + b"1" * 32 + b'"}'))
    assert call.read(calls.Response(f'{{"result":"{OTHER}"}}'.encode())) == OTHER


# By recording: the method, and where in the response each parameter is repeated.
RECORDED: dict[str, tuple[str, dict[str, str]]] = {
    "rpc/block.json": ("block", {"block_id": "header.hash"}),
    "rpc/chunk.json": ("chunk", {"chunk_id": "header.chunk_hash"}),
    "rpc/tx.response.json": ("tx", {"tx_hash": "transaction.hash"}),
    "rpc/EXPERIMENTAL_tx_status.response.json": (
        "EXPERIMENTAL_tx_status",
        {"tx_hash": "transaction.hash"},
    ),
    "rpc/EXPERIMENTAL_receipt.json": ("EXPERIMENTAL_receipt", {"receipt_id": "receipt_id"}),
    "rpc/EXPERIMENTAL_changes_single_access_key.json": (
        "EXPERIMENTAL_changes",
        {"block_id": "block_hash"},
    ),
    "rpc/query_view_account.json": ("query", {"block_id": "block_hash"}),
    "rpc/query_view_access_key.json": ("query", {"block_id": "block_height"}),
    "rpc/query_call_function_number.json": ("query", {"block_id": "block_height"}),
}


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the recordings are not here")
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_responses_repeat_their_request(name: str) -> None:
    """Members that repeat the request are compared: only the recorded value is accepted."""
    method, places = RECORDED[name]
    response = json.loads((SAMPLES / name).read_bytes())["result"]
    for parameter, path in places.items():
        value = response
        for member in path.split("."):
            value = value[member]
        expected = matching.expected_of_params(method, {parameter: value})
        assert expected[path] == value
        matching.check_members(response, expected, "it")
        other = OTHER if isinstance(value, str) else value + 1
        with pytest.raises(UnmatchedResponseError):
            matching.check_members(
                response, matching.expected_of_params(method, {parameter: other}), "it"
            )
