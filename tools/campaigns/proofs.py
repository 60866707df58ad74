"""
A flipped bit anywhere in a proof is refused: in a leaf, a path, a root, a header, an approval.

The evidence is that of all outcomes of the world `demo`. One bit of one hash or signature in it is
flipped, and the step of the proof that reads it must fail.
"""

from __future__ import annotations

import random
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import asdict, replace

import ledgerkit as lk
from ledgerkit import proofs
from ledgerkit.api import rpc
from ledgerkit.errors import ProofError
from ledgerkit.proofs.headers import decode_hashes
from ledgerkit.proofs.light_client import block_hashes, decode_path
from ledgerkit.protocol import CryptoHash
from ledgerkit.protocol.types import Signature, to_base58
from ledgerkit.validation import received_hash
from tools.campaigns._byte_mutations import flip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.api.models.commitments import (
        Header,
        LightClientBlock,
        LiteBlock,
        OutcomeProof,
        PathItem,
    )
    from tools.campaigns._campaign import Tally

COUNT = 100_000
SMALL = 200
_BLOCK_MEMBERS = ("prev_block_hash", "inner_rest_hash")
_LITE_MEMBERS = (
    *("epoch_id", "next_epoch_id", "prev_state_root", "outcome_root", "next_bp_hash"),
    "block_merkle_root",
)
_HEADER_MEMBERS = (
    *("hash", "prev_hash", "chunk_receipts_root", "chunk_headers_root", "chunk_tx_root"),
    *("random_value", "last_final_block", "last_ds_final_block", "block_body_hash"),
    *("challenges_root", *_LITE_MEMBERS),
)


class Evidence(NamedTuple):
    """What proves the outcomes of a world."""

    outcomes: list[tuple[bytes, OutcomeProof]]  # leaves, and the paths from them
    headers: list[Header]
    start: proofs.Head
    block: LightClientBlock  # the one to follow from there
    head: proofs.Head  # the head after that block, to which all paths lead


def collect() -> Evidence:
    """Read the evidence for all transactions of the demo world."""
    with lk.connect("local", make_default=False) as ledger:
        ledger.world.advance(5)
        genesis = ledger.world.chain.genesis
        header = ledger.send(rpc.whole_block(received_hash(str(genesis.hash)))).header
        validators = ledger.send(rpc.validators_ordered(str(genesis.hash)))
        start = proofs.Head(genesis.hash, header, {header.epoch_id: validators})
        block = ledger.send(rpc.next_light_client_block(str(genesis.hash)))
        if block is None:
            raise LookupError("the demo world has no block for light clients")
        head_hash = str(CryptoHash(block_hashes(block).block))
        outcomes = []
        for each in ledger.world.summary.transactions:
            call = rpc.light_client_proof(
                each.tx_hash, each.signer_id, head_hash, is_transaction=True
            )
            answer = ledger.send(call)
            proof = lk.verify(each.tx_hash, each.signer_id, ledger=ledger)
            outcomes.append((decode_hashes(proof.rows["leaf"][0])[0], answer))
        hashes = [str(made.hash) for made in ledger.world.chain.blocks()]
        headers = [ledger.send(rpc.whole_block(received_hash(each))).header for each in hashes]
    return Evidence(outcomes, headers, start, block, start.advance(block))


# The steps of a proof: each raises ProofError where it does not hold ------------------------


def check_outcome(leaf: bytes, answer: OutcomeProof) -> None:
    """Follow the path from a leaf to the outcome root of its block."""
    shard_root = proofs.root_from(decode_path(answer.outcome_proof.proof), leaf)
    path = decode_path(answer.outcome_root_proof)
    root = proofs.root_from(path, sha256(shard_root).digest())
    if root != decode_hashes(answer.block_header_lite.inner_lite.outcome_root)[0]:
        raise ProofError("the path leads elsewhere")


# Flips ----------------------------------------------------------------------------------


def flip_hash(text: str, rng: random.Random) -> str:
    """Flip one bit of a hash in base58."""
    return to_base58(flip(decode_hashes(text)[0], rng))


def flip_path(path: Sequence[PathItem], rng: random.Random) -> list[PathItem]:
    """Flip one bit of a hash in a path, or the side of one."""
    changed = list(path)
    at = rng.randrange(len(changed))
    item = changed[at]
    if rng.random() < 0.1:
        other: Any = "Left" if item.direction == "Right" else "Right"
        changed[at] = replace(item, direction=other)
    else:
        changed[at] = replace(item, hash=flip_hash(item.hash, rng))
    return changed


def flip_member(record: Any, names: Sequence[str], rng: random.Random) -> Any:
    name = rng.choice([each for each in names if asdict(record)[each] is not None])
    return replace(record, **{name: flip_hash(getattr(record, name), rng)})


def flip_block(block: Any, rng: random.Random) -> Any:
    """Flip one bit of what the hash of a block is made of."""
    if rng.random() < len(_BLOCK_MEMBERS) / (len(_BLOCK_MEMBERS) + len(_LITE_MEMBERS)):
        return flip_member(block, _BLOCK_MEMBERS, rng)
    return replace(block, inner_lite=flip_member(block.inner_lite, _LITE_MEMBERS, rng))


def flip_approval(approvals: Sequence[str | None], rng: random.Random) -> list[str | None]:
    changed = list(approvals)
    at = rng.choice([at for at, approval in enumerate(changed) if approval is not None])
    signature = Signature.from_text(str(changed[at]))
    changed[at] = str(Signature(signature.curve, flip(signature.data, rng)))
    return changed


# Attacks, each of which must raise ProofError ----------------------------------------------


def leaf(evidence: Evidence, rng: random.Random) -> None:
    data, answer = rng.choice(evidence.outcomes)
    check_outcome(flip(data, rng), answer)


def path(evidence: Evidence, rng: random.Random) -> None:
    """Change the path from an outcome to the root of its shard."""
    deep = [pair for pair in evidence.outcomes if pair[1].outcome_proof.proof]
    data, answer = rng.choice(deep)
    proved = replace(answer.outcome_proof, proof=flip_path(answer.outcome_proof.proof, rng))
    check_outcome(data, replace(answer, outcome_proof=proved))


def root_path(evidence: Evidence, rng: random.Random) -> None:
    """Change the path from the root of a shard to that of the block."""
    data, answer = rng.choice(evidence.outcomes)
    changed = flip_path(answer.outcome_root_proof, rng)
    check_outcome(data, replace(answer, outcome_root_proof=changed))


def block(evidence: Evidence, rng: random.Random) -> None:
    _, answer = rng.choice(evidence.outcomes)
    lite: LiteBlock = flip_block(answer.block_header_lite, rng)
    evidence.head.check_block(lite, answer.block_proof)


def block_path(evidence: Evidence, rng: random.Random) -> None:
    """Change the path from the block of an outcome to the head."""
    _, answer = rng.choice(evidence.outcomes)
    evidence.head.check_block(answer.block_header_lite, flip_path(answer.block_proof, rng))


def head_block(evidence: Evidence, rng: random.Random) -> None:
    """Change the block that becomes the head."""
    evidence.start.advance(flip_block(evidence.block, rng))


def approval(evidence: Evidence, rng: random.Random) -> None:
    """Change a signature of that block."""
    approvals = flip_approval(evidence.block.approvals_after_next, rng)
    evidence.start.advance(replace(evidence.block, approvals_after_next=approvals))


def header(evidence: Evidence, rng: random.Random) -> None:
    proofs.check_header(flip_member(rng.choice(evidence.headers), _HEADER_MEMBERS, rng))


ATTACKS = {
    "a leaf": leaf,
    "the path to the shard's root": path,
    "the path to the outcome root": root_path,
    "a block": block,
    "the path to the head": block_path,
    "the head": head_block,
    "an approval": approval,
    "a header": header,
}
EXPECTED = tuple(f"refused, in {part}" for part in ATTACKS)


def run(count: int, seed: int, tally: Tally) -> None:
    """Check the evidence as it is, then flip one bit of it, again and again."""
    rng, evidence = random.Random(seed), collect()
    for data, answer in evidence.outcomes:
        check_outcome(data, answer)
        evidence.head.check_block(answer.block_header_lite, answer.block_proof)
    for each in evidence.headers:
        proofs.check_header(each)
    for number in range(count):
        part = rng.choice(list(ATTACKS))
        try:
            ATTACKS[part](evidence, rng)
        except ProofError:
            tally.count(f"refused, in {part}")
        else:
            tally.violate(f"seed {seed}, flip {number}: {part} was changed and is proved")
