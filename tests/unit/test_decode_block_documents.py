"""Whole blocks are decoded with the places of their outcomes, and refused with the path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ledgerkit.api.models.actions import named_content
from ledgerkit.api.models.block_documents import decode_document
from ledgerkit.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.api.models.block_documents import BlockDocument

BLOCKS = Path(__file__).resolve().parents[2].parent / "shared" / "wire" / "samples" / "blocks"


def recorded(name: str) -> bytes:
    """Read a recorded document; skip where the recordings are not here."""
    if not BLOCKS.is_dir():
        pytest.skip("the recorded blocks are not here")
    return (BLOCKS / f"{name}.json").read_bytes()


def changed(change: Callable[[Any], object]) -> bytes:
    """Return a recorded document with a change."""
    document = json.loads(recorded("borealis_mainnet_34834053"))
    change(document)
    return json.dumps(document).encode()


def decoded(body: bytes) -> BlockDocument:
    """Decode a document."""
    return decode_document(body, "the document")


def actions_of(document: Any) -> Any:
    """Return the actions of the first executed receipt of a document."""
    executed = [
        pair for shard in document["shards"] for pair in shard["receipt_execution_outcomes"]
    ]
    return executed[0]["receipt"]["receipt"]["Action"]["actions"]


def test_unknown_actions_keep_their_names_and_members() -> None:
    """An action of a later protocol is read with its name, and what it has."""
    body = changed(lambda document: actions_of(document).append({"Teleport": {"to": "mars.near"}}))
    shards = decoded(body).shards
    pairs = [pair for shard in shards for pair in shard.receipt_execution_outcomes]
    body_read = pairs[0].receipt.receipt
    assert body_read is not None
    assert body_read.action is not None
    assert body_read.action.actions is not None
    action = body_read.action.actions[-1]
    assert not isinstance(action, str)
    assert named_content(action) == ("Teleport", {"to": "mars.near"})


def outcome_of(document: Any) -> Any:
    """Return the outcome of the first executed receipt of a document."""
    executed = [
        pair for shard in document["shards"] for pair in shard["receipt_execution_outcomes"]
    ]
    return executed[0]["execution_outcome"]


@pytest.mark.parametrize(
    ("member", "value", "problem"),
    [("id", "1" * 44, "is of 1111"), ("block_hash", "1" * 44, "is of the block 1111")],
)
def test_contradictions_are_refused(member: str, value: str, problem: str) -> None:
    """An outcome of another receipt, or of another block, is an error with its shard."""
    body = changed(lambda document: outcome_of(document).update({member: value}))
    with pytest.raises(DecodeError, match=problem) as caught:
        decoded(body)
    assert str(caught.value.path).startswith("$.shards[")


def executed_again(document: Any) -> None:
    """List the first executed receipt a second time."""
    pairs = document["shards"][0]["receipt_execution_outcomes"]
    pairs.append(pairs[0])


def listed_again(document: Any) -> None:
    """List the first shard a second time."""
    document["shards"].append(document["shards"][0])


def renumbered(document: Any) -> None:
    """Give the first shard the number of another one."""
    document["shards"][0]["shard_id"] += 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (executed_again, "two outcomes of EkdeeCvozyK5zXZSd3tk2VpakH4kiGfLHCBzfXZVAVvd"),
        (listed_again, "two outcomes of "),
        (renumbered, "shard 1 has a chunk of shard 0"),
    ],
)
def test_a_document_that_contradicts_itself_is_refused(
    change: Callable[[Any], object], problem: str
) -> None:
    """A block executes a receipt once, and a shard has its own chunk."""
    with pytest.raises(DecodeError, match=problem):
        decoded(changed(change))


def test_an_entry_of_a_gas_profile_has_its_cost() -> None:
    """Without it an entry of a host function cannot be told from WASM instructions."""
    entry = {"cost_category": "WASM_HOST_COST", "gas_used": "7"}
    metadata = {"version": 3, "gas_profile": [entry]}

    def profiled(document: Any) -> None:
        """Give an outcome a profile."""
        outcome_of(document)["outcome"]["metadata"] = metadata

    with pytest.raises(DecodeError, match="an entry without its cost"):
        decoded(changed(profiled))


@pytest.mark.parametrize(
    ("of", "member"),
    [
        *[("outcome", name) for name in "logs receipt_ids gas_burnt status executor_id".split()],
        *[("receipt", name) for name in "predecessor_id receiver_id receipt".split()],
        *[("body", name) for name in "actions input_data_ids output_data_receivers".split()],
        *[("shard", name) for name in "chunk receipt_execution_outcomes state_changes".split()],
        ("chunk", "receipts"),
    ],
)
def test_no_member_is_taken_to_be_empty(of: str, member: str) -> None:
    """A document without a list of the node's own documents is refused: it is not empty."""
    # Source: nearcore, chain/indexer-primitives/src/lib.rs, IndexerShard and IndexerChunkView;
    # core/primitives/src/views.rs, ExecutionOutcomeView and ReceiptView: all are required.

    def without(document: Any) -> None:
        """Remove the member from the first object of its kind."""
        shard = document["shards"][0]
        pair = shard["receipt_execution_outcomes"][0]
        objects = {
            "outcome": pair["execution_outcome"]["outcome"],
            "receipt": pair["receipt"],
            "body": pair["receipt"]["receipt"]["Action"],
            "shard": shard,
            "chunk": shard["chunk"],
        }
        del objects[of][member]

    with pytest.raises(DecodeError, match=f"missing required field `{member}`"):
        decoded(changed(without))


@pytest.mark.parametrize("value", [-1, 2**63, "1", 1.5])
def test_wrong_types_are_refused_with_their_path(value: object) -> None:
    """A member of another type is an error with its path."""
    body = changed(lambda document: document["block"]["header"].update(height=value))
    with pytest.raises(DecodeError, match="height") as caught:
        decoded(body)
    assert caught.value.path == "$.block.header.height"


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_other_documents_are_refused(body: bytes) -> None:
    """What is no document of a block is an error."""
    with pytest.raises(DecodeError, match="the response to the document"):
        decoded(body)
