"""Recorded documents of mainnet and testnet verify, and nothing that differs from them does."""

import json
import random
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ledgerkit import proofs
from ledgerkit.api.models.block_documents import decode_document
from ledgerkit.block_data.reading import DocumentRead
from ledgerkit.block_data.verified_documents import DocumentChecks
from ledgerkit.errors import LedgerError, ProofError, ProofNotReadyError
from ledgerkit.proofs.headers import decode_hashes
from ledgerkit.proofs.light_client import decode_path
from ledgerkit.protocol.borsh import u64
from ledgerkit.protocol.types import CryptoHash, to_base58
from tests import recorded_proofs as recorded

pytestmark = pytest.mark.skipif(not recorded.BLOCKS.exists(), reason="needs recorded documents")
LAKE = "lake_000107503704_shard_{}.json"


def leaf_of(execution: Any) -> bytes:
    [leaf] = proofs.leaves([execution["id"]], [recorded.outcome(execution)])
    assert leaf is not None
    return leaf


def root_of(execution: Any) -> bytes:
    return proofs.root_from(decode_path(recorded.path(execution)), leaf_of(execution))


def test_headers_have_their_hashes():
    """The hash of every recorded header, of protocol 35 to 82, is recomputed; one was edited."""
    headers = recorded.headers()
    edited = headers.pop(recorded.EDITED)
    for header in headers.values():
        assert to_base58(proofs.check_header(header).block) == header.hash
    assert {header.latest_protocol_version for header in headers.values()} > {35, 43, 63, 77, 82}
    with pytest.raises(ProofError, match="34834053 does not have the hash 3yU6bjWj12U"):
        proofs.check_header(edited)


def test_an_edited_member_is_the_one_that_its_chunk_contradicts():
    """With the root of the chunk's own header in its place, the edited header verifies."""
    chunk = recorded.documents()[recorded.EDITED]["shards"][0]["chunk"]["header"]
    leaf = sha256(decode_hashes(chunk["outgoing_receipts_root"])[0]).digest()
    header = recorded.headers()[recorded.EDITED]
    repaired = replace(header, chunk_receipts_root=to_base58(proofs.root_of([leaf])))
    assert to_base58(proofs.check_header(repaired).block) == header.hash


def test_consecutive_headers_are_linked():
    """The hash of block 107503704 is the `prev_hash` of the next."""
    headers = recorded.headers()
    first = proofs.check_header(headers["lake_000107503704_block.json"]).block
    assert headers["lake_000107503705_block.json"].prev_hash == to_base58(first)


@pytest.mark.parametrize(
    "name", ["lake_000107503705_block.json", "neardata_mainnet_151768255.json"]
)
def test_roots_of_a_header_are_those_of_its_chunks(name):
    """State, transactions, receipts and outcomes: each is the root over the chunks' own roots."""
    document = recorded.documents()[name]
    chunks = document.get("chunks") or [s["chunk"]["header"] for s in document["shards"]]
    header = recorded.headers()[name]
    for member, root in (
        ("tx_root", header.chunk_tx_root),
        ("outgoing_receipts_root", header.chunk_receipts_root),
        ("outcome_root", header.outcome_root),
        ("prev_state_root", header.prev_state_root),
    ):
        hashes = decode_hashes(*(chunk[member] for chunk in chunks))
        leaves = [sha256(each).digest() for each in hashes]
        assert to_base58(proofs.root_of(leaves)) == root, member
    included = [bytes(CryptoHash(c["chunk_hash"])) + u64(c["height_included"]) for c in chunks]
    leaves = [sha256(each).digest() for each in included]
    assert to_base58(proofs.root_of(leaves)) == header.chunk_headers_root
    assert header.chunks_included == sum(header.chunk_mask)


@pytest.mark.parametrize("shard_id", [1, 2])
def test_outcomes_lead_to_the_root_in_the_next_block(shard_id):
    """All outcomes of a shard, by their paths and as a whole, hash to its next chunk's root."""
    executions = dict(recorded.shards())[f"{LAKE.format(shard_id)} {shard_id}"]
    chunks = recorded.documents()["lake_000107503705_block.json"]["chunks"]
    (expected,) = [c["outcome_root"] for c in chunks if c["shard_id"] == shard_id]
    assert {to_base58(root_of(execution)) for execution in executions} == {expected}
    assert to_base58(proofs.root_of([leaf_of(each) for each in executions])) == expected


def test_all_outcomes_of_a_shard_lead_to_one_root():
    """Each recorded outcome with a path agrees with the others of its shard: 471 of them."""
    n_outcomes = 0
    for name, executions in recorded.shards():
        proved = [execution for execution in executions if execution.get("proof")]
        assert len({root_of(execution) for execution in proved}) <= 1, name
        n_outcomes += len(proved)
    assert n_outcomes == 471


def test_outcomes_of_an_account_in_a_block_lead_to_one_root():
    """An account is in one shard, so its outcomes in a recorded transaction's block agree."""
    roots: dict[Any, list[bytes]] = {}
    for name, execution in recorded.transaction_outcomes():
        place = name, execution["block_hash"], execution["outcome"]["executor_id"]
        roots.setdefault(place, []).append(root_of(execution))
    assert sum(map(len, roots.values())) == 30
    several = [each for each in roots.values() if len(each) > 1]
    assert [(len(each), len(set(each))) for each in several] == [(2, 1)] * 3


def test_a_changed_outcome_leads_elsewhere():
    """Each member that a leaf commits to changes the root; the gas profile does not."""
    execution = next(e for _, shard in recorded.shards() for e in shard if e.get("proof"))
    root = root_of(execution)
    for member, value in (
        ("gas_burnt", 1),
        ("tokens_burnt", "1"),
        ("executor_id", "other.near"),
        ("logs", ["other"]),
        ("receipt_ids", []),
        ("status", {"Failure": {}}),
    ):
        changed = execution | {"outcome": execution["outcome"] | {member: value}}
        assert root_of(changed) != root, member
    metadata = {"metadata": {"version": 1, "gas_profile": None}}
    assert root_of(execution | {"outcome": execution["outcome"] | metadata}) == root


def test_every_flipped_byte_of_a_header_fails():
    """One changed character of the JSON of a header is refused, unless it is not committed."""
    header = recorded.headers()["lake_000107503705_block.json"]
    rng, text = random.Random(7), msgspec.json.encode(header).decode()  # noqa: S311 - repeatable
    free = {"signature", "chunks_included"}  # not part of the hash
    for _ in range(300):
        position = rng.randrange(len(text))
        changed = text[:position] + chr(33 + rng.randrange(90)) + text[position + 1 :]
        try:
            other = msgspec.json.decode(changed, type=type(header))
            proofs.check_header(other)
        except (LedgerError, msgspec.DecodeError):
            continue
        both = zip(
            json.loads(text).items(), json.loads(msgspec.json.encode(other)).items(), strict=True
        )
        assert {mine[0] for mine, theirs in both if mine != theirs} <= free


@pytest.mark.parametrize(
    "name",
    [
        "neardata_mainnet_151768255.json",
        "neardata_testnet_232952651.json",
        "borealis_mainnet_34834052.json",
    ],
)
def test_whole_documents_are_what_their_headers_commit_to(name: str) -> None:
    """A document as a service sends it: its header has its hash, and commits to its chunks."""
    verification = DocumentChecks(None)
    assert list(verification.add(read_of(name))) == []
    [verified] = verification.end()
    assert isinstance(verified.read.value, ProofNotReadyError)  # only the next block could prove it
    ids = {each["id"] for n, shard in recorded.shards() if n.startswith(name) for each in shard}
    assert set(verified.leaves) == ids


def test_the_next_document_proves_one_or_refuses_it() -> None:
    """Of two blocks in a row the second was edited: it is refused, and proves nothing."""
    verification = DocumentChecks(None)
    assert list(verification.add(read_of("borealis_mainnet_34834052.json"))) == []
    results = list(verification.add(read_of(recorded.EDITED)))
    assert [type(result.read.value) for result in results] == [ProofError, ProofError]
    assert "does not have the hash" in str(results[1].read.value)


def read_of(name: str) -> DocumentRead:
    body = (recorded.BLOCKS / name).read_bytes()
    document = decode_document(body, name, whole=True)
    return DocumentRead(document.block.header.height, document, len(body), body)
