"""The Transactions API of the embedded ledger: roles, pages, documents and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ledgerkit as lk
from ledgerkit.api import calls
from ledgerkit.localnet import services
from ledgerkit.localnet.http_messages import HttpRequest, encode_json
from ledgerkit.localnet.services import documents
from ledgerkit.localnet.services.transaction_index import TransactionIndex
from ledgerkit.protocol import DelegateAction, FunctionCall, Transfer
from tests.unit.localnet.ledger import START, TGAS, Ledger, do, secret

SAMPLES = Path(__file__).parents[4] / "shared/wire/samples/txapi"
NAMES = ("delegate_small", "delegate_cross_contract", "intents_execute")
recorded = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the recordings are not here")
UNKNOWN = "1" * 32
SIGNER = {"is_signer", "is_any_signer"}
DELEGATED = {"is_delegated_signer", "is_any_signer", "is_real_signer"}


@pytest.fixture
def ledger() -> Ledger:
    """Build a world with three people and two contracts."""
    return Ledger("alice.near", "bob.near", "carol.near", scripts=("s.near", "t.near"))


def respond(ledger: Ledger, path: str, body: bytes) -> tuple[int, bytes]:
    """Send a request; return the status and the body."""
    headers = {"content-type": "application/json"}
    sent = HttpRequest("POST", f"/transactions/v0/{path}", "", headers, body)
    response = services.respond("transactions", ledger.world, sent)
    return response.status, response.body


def post(ledger: Ledger, path: str, **members: Any) -> Any:
    """Send a request that succeeds; return the decoded response."""
    status, body = respond(ledger, path, json.dumps(members).encode())
    assert status == 200, body
    return json.loads(body)


def roles(row: dict[str, Any]) -> set[str]:
    return {name for name, value in row.items() if value is True and name != "is_success"}


def relay(ledger: Ledger, *actions: Any, receiver_id: str = "s.near") -> str:
    """Let alice send what bob signed; return the transaction's hash."""
    delegated = DelegateAction(
        "bob.near", receiver_id, actions, 50, START + 100, secret("bob.near").public_key
    )
    tx_hash = ledger.send("alice.near", "bob.near", delegated.sign(secret("bob.near")))
    ledger.world.settle()
    return str(tx_hash)


def send_many(ledger: Ledger, count: int) -> None:
    """Let alice send one transfer after the other, ten in a block."""
    for number in range(count):
        ledger.send("alice.near", "bob.near", Transfer(number + 1))
        if number % 10 == 9:
            ledger.world.advance()
    ledger.world.settle()


# Roles -------------------------------------------------------------------------------------


def test_roles_in_a_relayed_transaction(ledger: Ledger) -> None:
    """The roles are those that FastNEAR's indexer gives (src/transactions.rs)."""
    event = {"version": "1", "standard": "x", "event": "y", "data": [{"new_owner_id": "eve.near"}]}
    steps = [["log", f"EVENT_JSON:{json.dumps(event)}"]]
    args = json.dumps({"steps": steps, "receiver_id": "frank.near", "owner_id": "No Account"})
    relay(ledger, FunctionCall("do", args.encode(), 30 * TGAS, 0))
    accounts = ("alice.near", "bob.near", "s.near", "frank.near", "eve.near", "system")
    rows = {name: post(ledger, "account", account_id=name)["account_txs"] for name in accounts}
    assert {name: [roles(row) for row in listed] for name, listed in rows.items()} == {
        # The relayer receives refunds, which do not make it a real receiver.
        "alice.near": [SIGNER | {"is_predecessor", "is_receiver"}],
        # Nor does a receipt with the delegate action alone.
        "bob.near": [DELEGATED | {"is_predecessor", "is_receiver"}],
        "s.near": [{"is_receiver", "is_real_receiver", "is_function_call"}],
        "frank.near": [{"is_action_arg"}],
        "eve.near": [{"is_event_log"}],
        "system": [{"is_predecessor"}],
    }


def test_roles_in_a_transaction_of_ones_own(ledger: Ledger) -> None:
    """A signer who relays for nobody is the real one; a named refund receiver has a role."""
    ledger.run("alice.near", "s.near", do(["batch", "b", "t.near", ["refund_to", "carol.near"]]))
    [row] = post(ledger, "account", account_id="alice.near")["account_txs"]
    assert roles(row) == SIGNER | {"is_real_signer", "is_predecessor", "is_receiver"}
    [row] = post(ledger, "account", account_id="carol.near")["account_txs"]
    assert roles(row) == {"is_explicit_refund_to"}


def test_filters_combine(ledger: Ledger) -> None:
    """Each filter keeps the rows with its value, false as well as true; all must hold."""
    ledger.run("alice.near", "bob.near", Transfer(1))
    ledger.run("bob.near", "alice.near", Transfer(2))
    ledger.run("alice.near", "s.near", do(["panic", "no"]))

    def count(**filters: bool) -> int:
        page = post(ledger, "account", account_id="alice.near", **filters)
        assert page["txs_count"] == len(page["account_txs"])
        return len(page["account_txs"])

    assert count() == 3
    assert (count(is_signer=True), count(is_signer=False)) == (2, 1)
    assert (count(is_success=True), count(is_success=False)) == (2, 1)
    assert count(is_signer=True, is_success=True) == 1
    assert count(is_real_receiver=True, is_signer=True) == 0


def test_a_row_changes_with_its_receipts(ledger: Ledger) -> None:
    """A row is listed with its first receipt, and succeeds once its result is known."""
    steps = do(["call", "c", "t.near", [["value", 7]]], ["give", "c"])
    tx_hash = str(ledger.send("alice.near", "s.near", steps))
    seen = []
    for _ in range(8):
        ledger.world.advance()
        rows = post(ledger, "account", account_id="alice.near")["account_txs"]
        seen.append([row["is_success"] for row in rows])
        block = post(ledger, "block", block_id=START + 1, with_transactions=True)
        listed = [row["is_completed"] for row in block.get("block_txs", [])]
        assert len(listed) == len(rows)
        documents_listed = post(ledger, "transactions", tx_hashes=[tx_hash])["transactions"]
        assert len(documents_listed) == len(rows)
    # Included at 1, final at 3; its receipt at 2, the called one at 3, its refund at 4.
    assert seen == [[], [], [], [False], [True], [True], [True], [True]]
    assert listed == [True]


# Pages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("desc", [True, False])
def test_pages_go_on_strictly_after_the_token(ledger: Ledger, desc: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """A token is the height and the index of the last row; only the first page has the count."""
    send_many(ledger, 25)
    ordered = post(ledger, "account", account_id="alice.near", desc=desc)
    assert "resume_token" not in ordered
    positions = [(row["tx_block_height"], row["tx_index"]) for row in ordered["account_txs"]]
    assert positions == sorted(positions, reverse=desc)
    assert len(positions) == ordered["txs_count"] == 25
    rows: list[Any] = []
    token: dict[str, Any] = {}
    for number in range(6):
        page = post(ledger, "account", account_id="alice.near", limit=5, desc=desc, **token)
        rows += page["account_txs"]
        assert ("txs_count" in page) == (number == 0)
        if number == 5:  # the last full page has a token, after which nothing follows
            assert (page["account_txs"], page.get("resume_token")) == ([], None)
            break
        height, index = positions[len(rows) - 1]
        token = {"resume_token": page["resume_token"]}
        assert page["resume_token"] == str(height << 32 | index)
    assert rows == ordered["account_txs"]


def test_the_newest_come_first_and_a_page_has_at_most_200(ledger: Ledger) -> None:
    """Without `desc` the newest come first; a limit is clamped to 1 to 200 (src/api.rs)."""
    send_many(ledger, 210)
    newest = post(ledger, "account", account_id="alice.near")
    assert (
        newest["account_txs"]
        == post(ledger, "account", account_id="alice.near", desc=True)["account_txs"]
    )
    assert (len(newest["account_txs"]), newest["txs_count"]) == (200, 210)
    assert len(post(ledger, "account", account_id="alice.near", limit=999)["account_txs"]) == 200
    assert len(post(ledger, "account", account_id="alice.near", limit=0)["account_txs"]) == 1


def test_heights_are_inclusive(ledger: Ledger) -> None:
    """Both bounds are compared with <= and >= (src/click.rs), though its documentation differs."""
    send_many(ledger, 30)
    every = post(ledger, "account", account_id="alice.near", desc=False)["account_txs"]
    heights = sorted({row["tx_block_height"] for row in every})
    bounds = {"from_tx_block_height": heights[0], "to_tx_block_height": heights[1]}
    page = post(ledger, "account", account_id="alice.near", desc=False, **bounds)
    assert page["account_txs"] == [r for r in every if r["tx_block_height"] <= heights[1]]
    assert {row["tx_block_height"] for row in page["account_txs"]} == set(heights[:2])
    bounds = {"from_tx_block_height": heights[1], "to_tx_block_height": heights[1]}
    page = post(ledger, "account", account_id="alice.near", **bounds)
    assert {row["tx_block_height"] for row in page["account_txs"]} == {heights[1]}


def test_duplicates_end_a_page_early(ledger: Ledger) -> None:
    """The server reads 50 rows more than a page and drops duplicates: many make it too short."""
    send_many(ledger, 100)
    ledger.world.adjust(duplicate_rows=2)
    page = post(ledger, "account", account_id="alice.near", limit=90)
    # Source: src/click.rs, get_account_txs: (90 + 50) / 3 rows, and no token; the count is 3 times.
    assert (len(page["account_txs"]), page["txs_count"]) == (47, 300)
    assert "resume_token" not in page
    page = post(ledger, "account", account_id="alice.near", limit=20)
    assert (len(page["account_txs"]), "resume_token" in page) == (20, True)


def test_a_transaction_is_indexed_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request reads the blocks that became final since the last one, and no others."""
    heights: list[int] = []
    read_block = TransactionIndex._read_block

    def count(self: TransactionIndex, block: Any) -> None:
        heights.append(block.height)
        read_block(self, block)

    monkeypatch.setattr(TransactionIndex, "_read_block", count)
    send_many(ledger, 20)
    for _ in range(3):
        post(ledger, "account", account_id="alice.near")
    ledger.world.advance()
    post(ledger, "account", account_id="bob.near")
    assert heights == list(range(START, ledger.world.chain.final.height + 1))


# Documents ---------------------------------------------------------------------------------


def shapes(value: Any, path: str = "") -> set[tuple[str, str]]:
    """List the paths of a document's members with the types of their values."""
    if isinstance(value, dict):
        return {pair for name, each in value.items() for pair in shapes(each, f"{path}.{name}")}
    if isinstance(value, list):
        return {pair for each in value for pair in shapes(each, f"{path}[]")}
    return {(path, type(value).__name__)}


@recorded
def test_a_document_has_the_members_of_the_recorded_ones() -> None:
    """A relayed call and a direct one, with a callback and a log, are as those of mainnet."""
    answers = [json.loads((SAMPLES / f"{name}.json").read_text(encoding="utf-8")) for name in NAMES]
    expected = {pair for answer in answers for pair in shapes(answer)}
    # Recorded before protocol version 85, from which on outcomes name contracts.
    ledger = Ledger("alice.near", "bob.near", scripts=("s.near", "t.near"), profile="84")
    steps = [
        ["log", "x"],
        ["call", "c", "t.near", []],
        ["then", "d", "c", "s.near", []],
    ]
    direct = str(ledger.send("alice.near", "s.near", do(*steps, ["give", "d"])))
    answer = post(ledger, "transactions", tx_hashes=[relay(ledger, do(*steps)), direct])
    assert shapes(answer) == expected


def test_a_document_is_traced_as_the_result_of_the_node() -> None:
    """Each transaction of the demo world has the same trace from both surfaces."""
    with lk.connect("local", make_default=False) as local:
        index, chain = TransactionIndex.of(local.world), local.world.chain
        blocks = {str(b.hash): (b.height, b.timestamp_ns) for b in chain.blocks()}
        transactions = [each for entry in index.blocks.values() for each in entry.transactions]
        assert len(transactions) > 40
        for transaction in transactions:
            signed = transaction.record.signed
            signer_id = str(signed.transaction.signer_id)
            params = {"tx_hash": str(signed.hash), "sender_account_id": signer_id}
            params["wait_until"] = "INCLUDED"  # one of them is never resumed
            result = local.rpc("EXPERIMENTAL_tx_status", params)
            of_node = lk.Trace.from_json(result, blocks=blocks)
            of_service = lk.Trace.from_json(encode_json(documents.document(transaction)))
            assert of_service.headline() == of_node.headline()
            for name in ("receipts", "edges", "actions", "logs", "events", "transfers"):
                frames = [getattr(trace, name) for trace in (of_service, of_node)]
                assert rows(frames[0]) == rows(frames[1]), (name, signed.hash)


def rows(frame: Any) -> list[str]:
    """List a frame's rows as texts, sorted: siblings may come in another order."""
    return sorted(map(str, frame.to_dict("records")))


def test_unknown_transactions_are_left_out(ledger: Ledger) -> None:
    """Known ones come in the order of the table, not of the request, and once."""
    hashes = [str(ledger.send("alice.near", "bob.near", Transfer(n))) for n in range(1, 6)]
    ledger.world.settle()
    request = [*sorted(hashes, reverse=True), UNKNOWN, hashes[0]]
    answer = post(ledger, "transactions", tx_hashes=request)["transactions"]
    assert [each["transaction"]["hash"] for each in answer] == sorted(hashes)
    assert post(ledger, "transactions", tx_hashes=[]) == {"transactions": []}


# Receipts and blocks -----------------------------------------------------------------------


def test_a_receipt_leads_to_its_transaction(ledger: Ledger) -> None:
    """Data receipts are found too, with the block that they appeared in before they were used."""
    steps = do(["call", "c", "t.near", []], ["then", "d", "c", "s.near", []])
    tx_hash = str(ledger.send("alice.near", "s.near", steps))
    ledger.world.settle()
    [document] = post(ledger, "transactions", tx_hashes=[tx_hash])["transactions"]
    [data] = document["data_receipts"]
    answer = post(ledger, "receipt", receipt_id=data["receipt_id"])
    assert answer["transaction"] == document
    row = answer["receipt"]
    assert (row["receipt_type"], row["transaction_hash"], row["is_success"]) == (
        "Data",
        tx_hash,
        True,
    )
    assert (row["appear_block_height"], row["appear_receipt_index"]) == (
        data["block_height"],
        data["receipt_index"],
    )
    used = document["receipts"]
    callback = next(each for each in used if each["receipt"]["receipt"]["Action"]["input_data_ids"])
    assert row["block_height"] == callback["execution_outcome"]["block_height"]
    # The indexer numbers the data before the receipt that uses it.
    assert row["receipt_index"] == callback["execution_outcome"]["index"] - 1
    assert callback["receipt"]["block_height"] < callback["execution_outcome"]["block_height"]
    assert post(ledger, "receipt", receipt_id=UNKNOWN) == {"receipt": None, "transaction": None}


def test_a_block_has_its_lists_where_they_are_asked_for(ledger: Ledger) -> None:
    """A block is found by height and by hash; a skipped or unknown one is null."""
    tx_hash = relay(ledger, Transfer(5))
    height = START + 1
    block = post(ledger, "block", block_id=height)
    assert list(block) == ["block"]
    by_hash = post(ledger, "block", block_id=block["block"]["block_hash"], with_transactions=True)
    assert by_hash["block"] == block["block"]
    [row] = by_hash["block_txs"]
    assert (row["transaction_hash"], row["is_relayed"]) == (tx_hash, True)
    assert (row["real_signer_id"], row["real_receiver_id"]) == ("bob.near", "s.near")
    [document] = post(ledger, "transactions", tx_hashes=[tx_hash])["transactions"]
    outcomes = [each["execution_outcome"]["outcome"] for each in document["receipts"]]
    # The indexer adds up the receipts, without the transaction's own outcome.
    assert row["gas_burnt"] == sum(outcome["gas_burnt"] for outcome in outcomes)
    assert row["tokens_burnt"] == str(sum(int(each["tokens_burnt"]) for each in outcomes))
    for block_id in (height - 2, UNKNOWN):
        assert post(ledger, "block", block_id=block_id, with_receipts=True) == {"block": None}


def test_the_receipts_of_a_block_are_numbered(ledger: Ledger) -> None:
    """A block's receipts are in the order of their execution, over all shards."""
    send_many(ledger, 20)
    counts = []
    for block in post(ledger, "blocks", desc=False)["blocks"]:
        page = post(ledger, "block", block_id=block["block_height"], with_receipts=True)
        indexes = [row["receipt_index"] for row in page["block_receipts"]]
        assert indexes == list(range(block["num_receipts"]))
        counts.append(block["num_transactions"])
    assert sum(counts) == 20


def test_blocks_are_listed_by_height(ledger: Ledger) -> None:
    """Both heights are inclusive, skipped ones left out; at most 100 come, the newest first."""
    ledger.world.advance(150)
    ledger.world.advance(4, skip=3)
    final = ledger.world.chain.final.height
    newest = [row["block_height"] for row in post(ledger, "blocks")["blocks"]]
    assert (len(newest), newest[0]) == (100, final)
    assert newest == sorted(newest, reverse=True)
    assert not set(range(START + 151, START + 154)) & set(newest)
    bounds = {"from_block_height": START + 5, "to_block_height": START + 7}
    listed = post(ledger, "blocks", desc=False, **bounds)["blocks"]
    assert [row["block_height"] for row in listed] == [START + 5, START + 6, START + 7]
    assert [row["block_ordinal"] for row in listed] == [5, 6, 7]


# Refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "members", "message"),
    [
        (
            "transactions",
            {"tx_hashes": [UNKNOWN] * 21},
            "Too many transactions requested. Limit is 20",
        ),
        (
            "account",
            {"account_id": "a.near", "to_tx_block_height": 10**15 + 1},
            "Block height exceeds maximum allowed value of 1000000000000000",
        ),
        (
            "blocks",
            {"from_block_height": 10**15 + 1},
            "Block height exceeds maximum allowed value of 1000000000000000",
        ),
    ],
)
def test_the_service_explains_its_own_refusals(
    ledger: Ledger, path: str, members: dict[str, Any], message: str
) -> None:
    """What the service itself checks is an object with the reason (src/api.rs)."""
    status, body = respond(ledger, path, json.dumps(members).encode())
    assert (status, json.loads(body)) == (400, {"error": "Bad request", "message": message})


def test_the_framework_refuses_in_plain_text(subtests: pytest.Subtests, ledger: Ledger) -> None:
    """A body that cannot be decoded is refused as text, which is no JSON."""
    cases = [
        ("account", b"{"),
        ("account", b"{}"),
        ("account", b'{"account_id": "NO"}'),
        ("account", b'{"account_id": "a.near", "limit": -1}'),
        ("account", b'{"account_id": "a.near", "resume_token": "x"}'),
        ("account", b'{"account_id": "a.near", "is_signer": 1}'),
        ("transactions", b'{"tx_hashes": ["no hash"]}'),
        ("transactions", b'{"tx_hashes": [1]}'),
        ("block", b'{"block_id": "no hash"}'),
    ]
    for path, body in cases:
        with subtests.test(path=path, body=body):
            status, text = respond(ledger, path, body)
            assert (status, text[:23]) == (400, b"Json deserialize error:")


def test_other_paths_and_methods_are_not_there(ledger: Ledger) -> None:
    """An unknown path is 404, and so is a known one with another method."""
    assert respond(ledger, "accounts", b"{}")[0] == 404
    sent = HttpRequest("GET", "/transactions/v0/blocks", "", {}, b"")
    response = services.respond("transactions", ledger.world, sent)
    assert response.status == 404


def test_a_ledger_reaches_the_service_in_process() -> None:
    """The embedded ledger's Transactions API is called as that of a public network."""
    with lk.connect("local", make_default=False) as local:
        body = {"limit": 1, "desc": False}
        call = calls.post("transactions", "/v0/blocks", body, dict, request="the first block")
        [row] = local.send(call)["blocks"]
        assert row["block_height"] == local.world.chain.genesis.height
