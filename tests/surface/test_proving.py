"""Proofs of transactions and blocks of the embedded ledger, which has its own code for roots."""

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

import ledgerkit as lk
from ledgerkit.errors import DecodeError, InvalidRequestError, ProofError, ProofNotReadyError
from ledgerkit.types import Proof
from tests.local_transport import LocalTransport
from tests.surface.test_stories import included
from tests.token_worlds import TOKEN, TokenWorld, call
from tests.unit.localnet.chaos import Chaos
from tests.unit.localnet.ledger import public, secret

AUTHORS = ("north.poolv1.near", "south.poolv1.near")
SWAP, SIGNER = "AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY", "ivan.near"
NOT_CONFIRMED = {
    "name": "HANDLER_ERROR",
    "cause": {"name": "NOT_CONFIRMED", "info": {"transaction_or_receipt_id": SWAP}},
    "code": -32000,
    "message": "Server error",
    "data": f"{SWAP} has not been confirmed",
}


@pytest.fixture
def ledger() -> Iterator[lk.Ledger]:
    """Connect to the demo world."""
    with lk.connect("local") as opened:
        yield opened


class Tampering(httpx.BaseTransport):
    """A host that changes the answers of one method."""

    def __init__(self, transport: httpx.BaseTransport, method: str, change) -> None:
        self._transport, self._method, self._change = transport, method, change

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Pass the request on, and change the result."""
        response = self._transport.handle_request(request)
        response.read()
        body = json.loads(request.read() or b"{}")
        if body.get("method") != self._method:
            return httpx.Response(response.status_code, content=response.content)
        answer = json.loads(response.content)
        error = self._change(answer["result"])
        if error is not None:
            answer = {"jsonrpc": "2.0", "id": answer["id"], "error": error}
        return httpx.Response(response.status_code, json=answer)


@contextmanager
def tampered(ledger: lk.Ledger, method: str, change) -> Iterator[lk.Ledger]:
    """Connect to the same world by a host that changes the answers of a method."""
    transport = Tampering(LocalTransport(ledger.world), method, change)
    url = "http://127.0.0.1:1"
    with lk.connect(
        "mainnet", rpc_url=url, api_url=url, transactions_url=None, transport=transport,
        make_default=False,
    ) as other:  # fmt: skip
        yield other


def test_a_block_that_the_caller_trusts_needs_no_signature(ledger):
    """A later one ends the paths; the transaction's own begins a chain of signed blocks."""
    trace = lk.trace(SWAP, SIGNER)
    ledger.world.advance(5)
    final = ledger.rpc("block", {"finality": "final"})["header"]
    proof = trace.verify(final["hash"])
    assert (proof.head_hash, proof.is_trusted, proof.is_anchored) == (final["hash"], True, True)
    assert set(proof.rows["proved"]) == {"block"}
    assert proof.is_complete
    genesis = ledger.rpc("block", {"sync_checkpoint": "genesis"})["header"]["hash"]
    following = ledger.rpc("next_light_client_block", {"last_block_hash": genesis})
    assert following["inner_lite"]["height"] >= final["height"]
    early = ledger.rpc("block", {"block_id": ledger.world.chain.genesis.height + 1})["header"]
    proof = trace.verify(early["hash"])
    assert (proof.is_trusted, proof.is_anchored, proof.trusted_hash) == (False, True, early["hash"])
    assert set(proof.rows["proved"]) == {"signed"}


@pytest.mark.usefixtures("ledger")
def test_a_proved_trace_says_so():
    """The frame has a column and the explanation a sentence, but not before."""
    trace = lk.trace(SWAP, SIGNER)
    assert "proved" not in trace.receipts
    assert "Proved" not in trace.explain()
    proof = trace.verify()
    assert list(trace.receipts["proved"]) == ["signed"] * len(trace.receipts)
    assert trace.explain().endswith(proof.summary)
    assert proof.summary.startswith(f"Proved: all {len(proof.rows)} outcomes are committed to by")
    assert "Proved: all" in trace._repr_html_()


def test_a_saved_trace_is_proved_by_a_ledger(ledger, tmp_path):
    """A file has no paths: they are read from the ledger that is named."""
    saved = lk.Trace.load(lk.trace(SWAP, SIGNER).save(tmp_path / "swap.json"))
    with pytest.raises(InvalidRequestError, match="is of a file or a copy"):
        saved.verify()
    assert lk.verify(saved, ledger=ledger).is_complete


@pytest.mark.parametrize("source", ["api", "node"])
def test_both_sources_of_a_trace_are_proved(ledger, source):
    """The Transactions API's document has the same outcomes as the node's."""
    ledger.world.settle()
    trace = lk.trace(SWAP, SIGNER if source == "node" else None)
    assert trace.verify().is_complete


@pytest.mark.parametrize(
    ("member", "value"),
    [("gas_burnt", 1), ("tokens_burnt", "1"), ("logs", ["x"]), ("executor_id", "x.near")],
)
def test_a_changed_outcome_is_not_proved(ledger, member, value):
    """The row says that the path does not lead to the root, and the others stay proved."""
    result = ledger.rpc("EXPERIMENTAL_tx_status", {"tx_hash": SWAP, "sender_account_id": SIGNER})
    result["receipts_outcome"][1]["outcome"][member] = value
    proof = lk.verify(lk.Trace.from_json(result), ledger=ledger)
    assert list(proof.rows["proved"]).count("no") == 1
    assert proof.rows.loc[2, "note"] == "the path does not lead to the outcome root of a block"
    assert not proof.is_complete
    assert proof.summary.startswith("Not proved: 6 of 7 outcomes lead to")


def forged(ledger: lk.Ledger, change) -> Proof:
    """Verify the trace of a result that a host has changed, against a block that is trusted."""
    result = ledger.rpc("EXPERIMENTAL_tx_status", {"tx_hash": SWAP, "sender_account_id": SIGNER})
    change(result)
    ledger.world.advance(5)
    trusted = ledger.rpc("block", {"finality": "final"})["header"]["hash"]
    return lk.verify(lk.Trace.from_json(result), trusted=trusted, ledger=ledger)


def test_a_receipt_that_is_left_out_is_named(ledger):
    """Without the outcome that failed, all others are proved, and the proof is not complete."""
    left_out = []

    def leave_out(result: Any) -> None:
        outcomes = result["receipts_outcome"]
        [failed] = [each for each in outcomes if "Failure" in each["outcome"]["status"]]
        outcomes.remove(failed)
        left_out.append(failed["id"])

    proof = forged(ledger, leave_out)
    assert not proof.is_complete
    last = proof.rows.iloc[-1]
    assert last["outcome_id"] == left_out[0]
    assert "created it, and the document does not have its outcome" in last["note"]
    assert proof.rows["proved"].isna().tolist() == [False] * (len(proof.rows) - 1) + [True]


@pytest.mark.parametrize(
    ("change", "row", "note"),
    [
        (
            lambda result: result["receipts"][1].update(receiver_id="mallory.near"),
            "receipt",
            "its receiver is not mallory.near, but dex.near",
        ),
        (
            lambda result: result["receipts"][1].update(predecessor_id="mallory.near"),
            "receipt",
            "its predecessor is not mallory.near, but gold.near",
        ),
        (
            lambda result: result["receipts"][1]["receipt"]["Action"].update(signer_id="bob.near"),
            "receipt",
            "its signer is not bob.near, but ivan.near",
        ),
        (
            lambda result: result["transaction"].update(receiver_id="mallory.near"),
            "transaction",
            "its receiver is not mallory.near, but gold.near",
        ),
        (
            lambda result: result["transaction"].update(signer_id="mallory.near"),
            "transaction",
            "its signer is not mallory.near, but ivan.near",
        ),
        (
            lambda result: result.update(status={"SuccessValue": "MQ=="}),
            "transaction",
            "the status of the result is not that of its outcomes",
        ),
        (
            lambda result: result["receipts_outcome"][1].update(block_height=1),
            "receipt",
            "it ran in block 180000034",
        ),
    ],
)
def test_what_an_outcome_contradicts_is_not_proved(ledger, change, row, note):
    """Sender, receiver, signer, status and place follow from the outcomes and their blocks."""
    proof = forged(ledger, change)
    assert not proof.is_complete
    refuted = proof.rows[proof.rows["proved"] == "no"]
    assert (refuted["kind"].tolist(), refuted["note"].tolist()) == ([row], [note])


@pytest.mark.usefixtures("ledger")
def test_tokens_of_events_are_proved_and_near_is_not():
    """An outcome commits to its log lines, and not to what a receipt asked for."""
    trace = lk.trace(SWAP, SIGNER)
    trace.verify()
    levels = trace.transfers.set_index("kind")["proved"]
    assert set(levels[["token"]]) == {"signed"}
    assert levels[["deposit"]].isna().all()
    assert set(trace.events["proved"]) == {"signed"}


def test_a_receipt_without_a_creator_is_not_proved(ledger):
    """A receipt that ran, and that no outcome lists as created, is marked as such."""
    result = ledger.rpc("EXPERIMENTAL_tx_status", {"tx_hash": SWAP, "sender_account_id": SIGNER})
    orphan = result["receipts_outcome"][0]["outcome"]["receipt_ids"].pop()
    rows = lk.verify(lk.Trace.from_json(result), ledger=ledger).rows.set_index("outcome_id")
    assert rows.loc[orphan, "proved"] == "no"
    assert rows.loc[orphan, "note"] == "no outcome lists it as created"
    assert (rows["proved"] == "no").sum() == 2


def test_what_is_proved_is_what_the_trace_shows(ledger):
    """A forged form beside the true one is not proved; two outcomes of a receipt are refused."""
    true = ledger.rpc("EXPERIMENTAL_tx_status", {"tx_hash": SWAP, "sender_account_id": SIGNER})
    forged = copy.deepcopy(true["receipts_outcome"])
    for outcome in forged:
        outcome["outcome"]["logs"] = ["forged"]
    pairs = [
        {"receipt": receipt, "execution_outcome": outcome}
        for receipt, outcome in zip(true["receipts"], forged, strict=False)
    ]
    own = {"transaction": true["transaction"], "execution_outcome": true["transaction_outcome"]}
    indexed = own | {"receipts": pairs}
    for document in (true | indexed, true | {"transactions": [indexed]}):
        trace = lk.Trace.from_json(document)
        assert trace.receipts["logs"][0] == ["forged"]
        proof = lk.verify(trace, ledger=ledger)
        assert not proof.is_complete
        assert trace.receipts["proved"][0] == "no"
    with pytest.raises(DecodeError, match="it has two outcomes of"):
        lk.Trace.from_json(true | {"receipts_outcome": [forged[0], *true["receipts_outcome"]]})


def test_a_status_has_one_form(ledger):
    """A value beside a failure, or none at all, would be shown as one and proved as the other."""
    true = ledger.rpc("EXPERIMENTAL_tx_status", {"tx_hash": SWAP, "sender_account_id": SIGNER})
    for status in ({"SuccessValue": "", "Failure": {}}, {"SuccessReceiptId": SWAP, "Failure": {}}):
        for place in (true, true["receipts_outcome"][2]["outcome"]):
            document = copy.deepcopy(true)
            changed = document if place is true else document["receipts_outcome"][2]["outcome"]
            changed["status"] = status
            with pytest.raises(DecodeError, match="more than one of SuccessValue"):
                lk.Trace.from_json(document)
    status = copy.deepcopy(true) | {"status": {"SuccessValue": None}}
    rows = lk.verify(lk.Trace.from_json(status), ledger=ledger).rows
    assert rows.loc[0, "note"] == "the status of the result is not that of its outcomes"
    true["receipts_outcome"][2]["outcome"]["status"] = {"SuccessValue": None}
    with pytest.raises(DecodeError, match="the status of an outcome has no value"):
        lk.verify(lk.Trace.from_json(true), ledger=ledger)


@pytest.mark.parametrize("invented_id", [SWAP, "1" * 31 + "2"])
def test_a_receipt_that_nothing_created_is_named(ledger, invented_id):
    """A body without an outcome is shown as a receipt, also one with the transaction's hash."""

    def invent(result: Any) -> None:
        invented = result["receipts"][0] | {"receipt_id": invented_id, "receiver_id": "bob.near"}
        result["receipts"].append(invented)

    proof = forged(ledger, invent)
    assert not proof.is_complete
    last = proof.rows.iloc[-1]
    assert (last["outcome_id"], last["kind"]) == (invented_id, "receipt")
    assert last["note"] == "the document has no outcome of it, and none that created it"


def test_the_block_of_an_outcome_is_the_one_with_its_chunk():
    """Where another shard missed a chunk, the block before is not one in which a receipt ran."""
    pair = TokenWorld()
    world = pair.world
    with lk.connect("local", world=world, make_default=False) as ledger:
        lk.use_signer("alice.near", pair.key.reveal())
        sent = lk.transfer("bob.near", "1 NEAR", ledger=ledger)
        world.advance(4, missing=[world.settings.shard_ids[0]])
        world.advance(6)
        params = {"tx_hash": sent.tx_hash, "sender_account_id": "alice.near"}
        result = ledger.rpc("EXPERIMENTAL_tx_status", params)
        assert lk.verify(lk.Trace.from_json(result), ledger=ledger).is_complete
        last = result["receipts_outcome"][-1]
        header = ledger.rpc("block", {"block_id": last["block_hash"]})["header"]
        assert header["chunk_mask"][:2] == [False, True]
        last["block_hash"] = header["prev_hash"]
        rows = lk.verify(lk.Trace.from_json(result), ledger=ledger).rows
    assert rows.loc[2, "proved"] == "no"
    assert rows.loc[2, "note"] == f"it did not run in block {header['prev_hash']}"


def test_a_changed_signature_of_the_transaction_is_noticed(ledger):
    """The key must have signed the hash."""
    result = ledger.rpc("EXPERIMENTAL_tx_status", {"tx_hash": SWAP, "sender_account_id": SIGNER})
    other = next(t for t in ledger.world.summary.transactions if t.tx_hash != SWAP)
    params = {"tx_hash": other.tx_hash, "sender_account_id": other.signer_id}
    signature = ledger.rpc("EXPERIMENTAL_tx_status", params)["transaction"]["signature"]
    result["transaction"]["signature"] = signature
    proof = lk.verify(lk.Trace.from_json(result), ledger=ledger)
    assert proof.is_signed_by_sender is False
    assert not proof.is_complete
    assert "The transaction's signature is not that of its key." in proof.summary


def change_header(result):
    """Change a member of a block's header."""
    result["header"]["gas_price"] = "1"


def change_author(result):
    result["author"] = next(each for each in AUTHORS if each != result["author"])


def change_validators(result):
    """Give a validator more stake."""
    result[0]["stake"] = "9" + result[0]["stake"]


def change_approval(result):
    """Exchange two approvals, of different validators."""
    approvals = result["approvals_after_next"]
    approvals[0], approvals[1] = approvals[1], approvals[0]


@pytest.mark.parametrize(
    ("method", "change", "reason"),
    [
        ("block", change_header, "does not have the hash"),
        ("EXPERIMENTAL_validators_ordered", change_validators, "are not those it commits to"),
        ("next_light_client_block", change_approval, "is not its own"),
    ],
)
def test_a_host_that_lies_is_caught(ledger, method, change, reason):
    """A changed header, list of validators or signature raises, and proves nothing."""
    trace = lk.trace(SWAP, SIGNER)
    with tampered(ledger, method, change) as other, pytest.raises(ProofError, match=reason):
        lk.verify(trace, ledger=other)


def test_a_path_of_another_outcome_proves_nothing(ledger):
    """The paths are exchanged, or their first step is missing."""
    trace = lk.trace(SWAP, SIGNER)

    def shorten(result):
        result["outcome_root_proof"].pop()

    with tampered(ledger, "light_client_proof", shorten) as other:
        proof = lk.verify(trace, ledger=other)
    assert set(proof.rows["proved"]) == {"no"}


def test_a_path_that_could_not_be_read_is_no_refutation(ledger):
    """Such a row is missing, with the error as its note."""
    with tampered(ledger, "light_client_proof", lambda _: NOT_CONFIRMED) as other:
        proof = lk.verify(lk.trace(SWAP, SIGNER), ledger=other)
    assert proof.rows["proved"].isna().all()
    assert proof.rows["note"].str.startswith("its path could not be read: ").all()
    assert not proof.is_complete


def test_a_receipt_before_its_creator_is_refuted_without_its_path(ledger):
    """The blocks that the document names tell that they are not those in which receipts ran."""
    result = ledger.rpc("EXPERIMENTAL_tx_status", {"tx_hash": SWAP, "sender_account_id": SIGNER})
    block_id = result["transaction_outcome"]["block_hash"]
    last = result["receipts_outcome"][-1]
    last["block_hash"] = ledger.rpc("block", {"block_id": block_id})["header"]["prev_hash"]
    with tampered(ledger, "light_client_proof", lambda _: NOT_CONFIRMED) as other:
        rows = lk.verify(lk.Trace.from_json(result), ledger=other).rows.set_index("outcome_id")
    assert rows["proved"].dropna().to_dict() == {last["id"]: "no"}
    assert rows.loc[last["id"], "note"] == "it ran before the receipt that created it"


def test_outcomes_of_missing_chunks_are_in_a_later_root():
    """The root comes with the next chunk of the shard, some blocks later."""
    pair = TokenWorld()
    world, args = pair.world, {"receiver_id": "bob.near", "amount": "1"}
    pair.send("bob.near", TOKEN, [call("storage_deposit", {}, 125 * 10**19)])
    with lk.connect("local", world=world, make_default=False) as ledger:
        lk.use_signer("alice.near", pair.key.reveal())
        sent = lk.call(TOKEN, "ft_transfer", args, deposit="1 yocto", ledger=ledger)
        world.advance(3, missing=world.settings.shard_ids)
        world.advance(6)
        assert lk.verify(sent.tx_hash, "alice.near", ledger=ledger).is_complete


def test_light_client_blocks_lead_across_epochs():
    """From the first epoch on, a trace of a later one is signed, epoch by epoch."""
    with lk.connect("local", make_default=False) as ledger:
        world = ledger.world
        [first] = [b for b in world.chain.blocks() if b.ordinal == world.chain.genesis.ordinal + 1]
        for _ in range(4):
            world.advance(6, skip=43_200)
        lk.use_signer("bob.near", world.keys()["bob.near"])
        sent = lk.transfer("dave.near", "1 NEAR", ledger=ledger).wait()
        world.advance(4)
        proof = lk.verify(sent.tx_hash, "bob.near", trusted=str(first.hash), ledger=ledger)
        assert world.chain.head.epoch_height >= 4
        assert proof.is_complete
        assert proof.is_anchored


def test_blocks_are_verified(ledger):
    """Each header has its hash, names the one before, and is approved; a changed one raises."""
    start = ledger.world.chain.genesis.height
    frame = lk.blocks(start, start + 40, verify=True)
    assert len(frame) == 40
    assert frame.attrs["proved"] == "signed"
    pandas_plain = lk.blocks(start, start + 40)
    assert frame.equals(pandas_plain)
    with tampered(ledger, "block", change_header) as other:
        assert len(lk.blocks(start, start + 3, ledger=other)) == 3
        with pytest.raises(ProofError, match="does not have the hash"):
            lk.blocks(start, start + 3, verify=True, ledger=other)
    seen = set()

    def change_first(result):
        if result["header"]["hash"] not in seen:
            seen.add(result["header"]["hash"])
            change_header(result)

    with tampered(ledger, "block", change_first) as other, pytest.raises(ProofError):
        lk.blocks(start, start + 3, verify=True, ledger=other)  # what is proved is what is shown
    ledger.world.advance(4)
    for source in ("documents", "indexer_rpc"):
        documents = lk.blocks(start, start + 40, verify=True, source=source)
        assert documents.equals(frame)
        assert documents.attrs["proved"] == "signed"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda result: result.update(author="mallory.near"), "is no validator of the epoch"),
        (change_author, "is not signed with the key"),
        (lambda result: result["header"].update(chunks_included=1), "commit to 1 new chunks"),
        (lambda result: result["chunks"].pop(), "does not commit to its chunks"),
        (lambda result: result["chunks"][0].update(height_included=1), "commit to its chunks"),
    ],
)
def test_what_a_proved_block_shows_is_compared(ledger, change, message):
    """The author signed the hash, and the header commits to the chunks and their number."""
    ledger.world.advance(8)
    last = ledger.world.chain.head.height - 8

    def change_last(result):
        if result["header"]["height"] == last:
            change(result)

    with (
        tampered(ledger, "block", change_last) as other,
        pytest.raises(ProofError, match=message),
    ):
        lk.blocks(last - 2, last + 1, verify=True, ledger=other)


def test_the_last_block_is_the_one_that_was_approved(ledger):
    """A block that its author signed, on another chain, is not what the next block approves."""
    world = ledger.world
    height = world.advance(4).height + 1
    with lk.connect("local", make_default=False) as second:
        second.world.advance(4)
        second.world.advance(4, missing=world.settings.shard_ids)
        invented = second.rpc("block", {"block_id": height})
    world.advance(4)

    def replace(result):
        if result["header"]["height"] == height:
            result.update(invented)

    with (
        tampered(ledger, "block", replace) as other,
        pytest.raises(ProofError, match=f"Block {height + 1} does not follow block {height}"),
    ):
        lk.blocks(height - 1, height + 1, verify=True, ledger=other)


def test_a_block_is_not_left_out_of_proved_ones(ledger):
    """A host says that the last height, or the only one, was skipped, and forges the next block."""
    ledger.world.advance(8)
    height = ledger.world.chain.head.height - 8
    unknown = {"name": "HANDLER_ERROR", "cause": {"name": "UNKNOWN_BLOCK", "info": {}}}
    left: list[int] = []

    def leave_out(result):
        if result["header"]["height"] == height:
            return unknown | {"code": -32000, "message": "Server error", "data": "DB Not Found"}
        if result["header"]["height"] == height + 1 and left:
            result["header"]["prev_height"] = left.pop()
        return None

    for start in (height - 2, height):
        left[:] = [height - 1]
        with tampered(ledger, "block", leave_out) as other, pytest.raises(ProofError):
            lk.blocks(start, height + 1, verify=True, ledger=other)


def test_the_last_block_waits_for_its_approval(ledger):
    """The newest block is approved by none yet, so it is not proved."""
    head = ledger.world.chain.head.height
    with pytest.raises(ProofNotReadyError, match=f"shows that block {head} is approved"):
        lk.blocks(head, head + 1, verify=True)
    ledger.world.advance(1)
    assert lk.blocks(head, head + 1, verify=True).attrs["proved"] == "signed"


class OtherChain(LocalTransport):
    """A host of an invented chain, which says that it skipped the height of a trusted block."""

    def __init__(self, world: Any, trusted: dict[str, Any]) -> None:
        super().__init__(world)
        self._trusted, self._height = trusted, trusted["header"]["height"]

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the trusted block by its hash, no document of its height, and all others."""
        body = json.loads(request.read() or b"{}")
        if body.get("params", {}) == {"block_id": self._trusted["header"]["hash"]}:
            return httpx.Response(200, json={"id": body["id"], "result": self._trusted})
        path = request.extensions.get("target", request.url.raw_path).decode()
        if ".tgz" in path:
            return httpx.Response(404, content=b"")
        if f"/v0/block/{self._height}" in path:
            return httpx.Response(200, content=b"null")
        response = super().handle_request(request)
        if f"/v0/block/{self._height + 1}" in path and response.status_code == 200:
            document = json.loads(response.read())
            document.get("block", document)["header"]["prev_height"] = self._height - 1
            return httpx.Response(200, json=document)
        return response


def test_documents_that_do_not_reach_the_trusted_block_prove_nothing(ledger):
    """An invented chain without a block at the trusted height is not what the caller named."""
    ledger.world.advance(8)
    with lk.connect("local", make_default=False) as second:
        world = second.world
    world.advance(5, missing=world.settings.shard_ids)
    world.advance(3)
    trusted = ledger.rpc("block", {"block_id": world.chain.head.height - 3})
    options: Any = {"transport": OtherChain(world, trusted), "make_default": False}
    with (
        lk.connect("local", **options) as other,
        pytest.raises(ProofError, match="of the documents is not the trusted one"),
    ):
        lk.verify(SWAP, SIGNER, trusted=trusted["header"]["hash"], source="documents", ledger=other)


def test_every_trace_is_signed_by_block_documents_too(ledger):
    """The documents of the blocks after an outcome prove it without a path from a node."""
    ledger.world.settle()
    ledger.world.advance(8)
    for each in ledger.world.summary.transactions[::4]:
        proof = lk.verify(each.tx_hash, each.signer_id, source="documents")
        assert set(proof.rows["proved"]) == {"signed"}, each.description
        by_paths = lk.verify(each.tx_hash, each.signer_id)
        columns = ["outcome_id", "leaf", "outcome_root", "block_hash", "block_height"]
        assert proof.rows[columns].equals(by_paths.rows[columns])
    trusted = ledger.rpc("block", {"finality": "final"})["header"]
    proof = lk.verify(SWAP, SIGNER, source="documents", trusted=trusted["hash"])
    assert (set(proof.rows["proved"]), proof.head_height) == ({"block"}, trusted["height"])
    assert proof.is_complete
    early = ledger.rpc("block", {"block_id": 180_000_034})["header"]["hash"]
    with pytest.raises(InvalidRequestError, match="a block from 180000037 to 180001036"):
        lk.verify(SWAP, SIGNER, source="documents", trusted=early)


class TamperingDocuments(httpx.BaseTransport):
    """A host that changes the document of one height."""

    def __init__(self, transport: httpx.BaseTransport, height: int, change) -> None:
        self._transport, self._height, self._change = transport, height, change

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._transport.handle_request(request)
        response.read()
        path = request.extensions.get("target", request.url.raw_path).decode()
        if ".tgz" in path:  # documents are then read one by one
            return httpx.Response(404, content=b"")
        is_other = f"/v0/block/{self._height}" not in path or "headers" in path
        if is_other or response.status_code != 200:
            location = {k: v for k, v in response.headers.items() if k == "location"}
            return httpx.Response(response.status_code, headers=location, content=response.content)
        document = json.loads(response.content)
        self._change(document)
        return httpx.Response(response.status_code, json=document)


def executed(document):
    """Return the outcomes of a document's receipts."""
    return [
        each["execution_outcome"]["outcome"]
        for shard in document["shards"]
        for each in shard["receipt_execution_outcomes"]
    ]


def change_gas(document):
    """Change the gas of an outcome, of which the leaf consists."""
    executed(document)[0]["gas_burnt"] += 1


def drop_outcome(document):
    shard = next(s for s in document["shards"] if s["receipt_execution_outcomes"])
    del shard["receipt_execution_outcomes"][0]


def swap_root(document):
    """Change the root in a chunk's header."""
    document["block"]["chunks"][0]["outcome_root"] = "1" * 31 + "2"


def change_author_stake(document):
    """Change a member of the header that only its hash commits to."""
    document["block"]["header"]["total_supply"] = "1"


def forge_approval(document):
    """Replace an approval by another validator's."""
    approvals = document["block"]["header"]["approvals"]
    approvals[0] = approvals[1]


def change_author_of_document(document):
    document["block"]["author"] = "mallory.near"


def change_receiver(document):
    """Let a receipt go to another account than the one that executed it."""
    shard = next(s for s in document["shards"] if s["receipt_execution_outcomes"])
    shard["receipt_execution_outcomes"][0]["receipt"]["receiver_id"] = "mallory.near"


@pytest.mark.parametrize(
    ("height", "change", "message"),
    [
        (180_000_034, change_author_of_document, "mallory.near is no validator of the epoch"),
        (180_000_034, change_receiver, "Block 180000034 does not commit to the receiver of"),
        (180_000_034, change_gas, "does not commit to the outcomes of shard"),
        (180_000_034, drop_outcome, "does not commit to the outcomes of shard"),
        (180_000_035, swap_root, "Block 180000035 does not commit to its chunks"),
        (180_000_035, change_author_stake, "does not have the hash"),
        (180_000_036, forge_approval, "does not have the hash"),
    ],
)
def test_a_changed_document_is_not_stored(ledger, tmp_path, height, change, message):
    """With verify=True a height that the chain does not commit to is missing, and says why."""
    ledger.world.advance(8)
    transport = TamperingDocuments(LocalTransport(ledger.world), height, change)
    url = "http://127.0.0.1:1"
    urls = {
        f"{name}_url": f"{url}/{name}" for name in ("transactions", "transfers", "blocks", "kv")
    }
    options: Any = {"rpc_url": url, "api_url": f"{url}/api", "transport": transport, **urls}
    heights = (180_000_033, 180_000_038)
    with lk.connect("local", make_default=False, **options) as other:
        plain = lk.collect_blocks(*heights, "outcomes", tmp_path / "plain", ledger=other)
        with pytest.warns(UserWarning, match="could not be read"):
            run = lk.collect_blocks(
                *heights, "outcomes", tmp_path / "proved", verify=True, ledger=other
            )
    assert plain.errors().empty
    errors = run.errors()
    assert set(errors["error"]) == {"ProofError"}
    assert errors["message"].str.contains(message).all()
    assert 180_000_034 in set(errors["position"])
    stored = run.pandas("outcomes")
    assert set(errors["position"]).isdisjoint(stored["block_height"])
    honest = lk.collect_blocks(*heights, "outcomes", tmp_path / "honest", verify=True)
    assert honest.errors().empty
    rows = honest.pandas("outcomes")
    kept = rows[rows["block_height"].isin(stored["block_height"])].reset_index(drop=True)
    assert stored.equals(kept)


def test_a_document_with_an_unknown_status_does_not_spoil_its_neighbours(ledger, tmp_path):
    """Only its own height, and in a trace only the outcomes of its shard, are not checked."""
    ledger.world.advance(8)
    trace = lk.trace(SWAP, SIGNER)

    def rename_status(document):
        outcomes = [each for each in executed(document) if each["executor_id"] == "dex.near"]
        outcomes[0]["status"] = {"SuccessV9": ""}

    transport = TamperingDocuments(LocalTransport(ledger.world), 180_000_034, rename_status)
    options: Any = {"rpc_url": "http://127.0.0.1:1", "blocks_url": "http://127.0.0.1:1/blocks"}
    with lk.connect("lab", transport=transport, make_default=False, **options) as other:
        with pytest.warns(UserWarning, match="1 height could not be read"):
            run = lk.collect_blocks(
                180_000_033, 180_000_038, "outcomes", tmp_path / "proved", verify=True, ledger=other
            )
        proof = lk.verify(trace, source="documents", ledger=other)
    errors = run.errors()
    assert errors[["position", "error"]].values.tolist() == [[180_000_034, "DecodeError"]]
    assert "its status 'SuccessV9' has no known encoding" in errors["message"][0]
    rows = proof.rows
    assert set(rows["proved"].dropna()) == {"signed"}
    unchecked = rows[rows["proved"].isna()]
    assert 0 < len(unchecked) < len(rows)
    assert unchecked["note"].str.contains("and its shard are not checked").all()


def test_verified_collections_are_their_own(ledger, tmp_path):
    """A proved collection is not continued by an unproved one; only whole blocks are proved."""
    ledger.world.advance(8)
    run = lk.collect_blocks(180_000_030, 180_000_033, "blocks", tmp_path / "a", verify=True)
    assert run.finished
    whole: Any = {"source": "indexer_rpc", "verify": True}
    by_node = lk.collect_blocks(180_000_030, 180_000_033, "blocks", tmp_path / "n", **whole)
    assert by_node.pandas("blocks").equals(run.pandas("blocks"))
    with pytest.raises(InvalidRequestError, match="its verified is True"):
        lk.collect_blocks(180_000_030, 180_000_035, "blocks", tmp_path / "a")
    with pytest.raises(InvalidRequestError, match=r'expected False, or source="documents"'):
        lk.collect_blocks(180_000_030, 180_000_033, out=tmp_path / "b", source="rpc", verify=True)
    head = lk.block("final")["block_height"][0]
    with pytest.warns(UserWarning, match="could not be read"):
        run = lk.collect_blocks(head - 4, head + 1, "blocks", tmp_path / "c", verify=True)
    assert set(run.errors()["error"]) == {"ProofNotReadyError"}
    ledger.world.advance(8)
    run = lk.collect_blocks(
        head - 4, head + 1, "blocks", tmp_path / "c", verify=True, retry_failed=True
    )
    assert run.errors().empty
    assert len(run.pandas("blocks")) == 5


def test_blocks_without_approvals_are_refused(ledger):
    """While validators approve nothing, blocks come, but are not proved."""
    world = ledger.world
    world.hold_finality()
    head = world.advance(3)
    with pytest.raises(ProofError, match="it takes two thirds"):
        lk.blocks(head.height - 1, head.height + 1, verify=True)


def test_every_trace_of_a_random_world_is_signed():
    """Promises, failures, refunds, yields and skipped heights: all outcomes are committed to."""
    chaos = Chaos(8)
    chaos.genesis.secret_keys[public("v")] = secret("v")  # what all of its validators sign with
    while chaos.made < 40:
        chaos.block()
    chaos.world.advance(chaos.settings.yield_timeout + 2)
    chaos.world.settle()
    chaos.world.advance(5)  # so that blocks that commit to the last outcomes are final
    with lk.connect("local", world=chaos.world, make_default=False) as ledger:
        for tx_hash, signer_id in included(chaos.world):
            proof = lk.verify(tx_hash, signer_id, ledger=ledger)
            assert proof.is_complete
            assert set(proof.rows["proved"]) == {"signed"}
            by_documents = lk.trace(tx_hash, signer_id, ledger=ledger).verify(source="documents")
            assert by_documents.is_complete
