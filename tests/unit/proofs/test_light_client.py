"""Who signed a block: the rules of light clients, with keys and blocks of these tests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledgerkit import proofs
from ledgerkit.api.models.commitments import LightClientBlock, LiteHeader, PathItem, Validator
from ledgerkit.errors import ProofError
from ledgerkit.localnet.commitments import MerkleTree
from ledgerkit.proofs.headers import encode_validator
from ledgerkit.proofs.light_client import block_hashes, message_after_next
from ledgerkit.proofs.merkle import position
from ledgerkit.protocol import CryptoHash, SecretKey
from ledgerkit.protocol.borsh import items
from ledgerkit.protocol.types import to_base58

KEYS = [SecretKey.from_text(to_base58(bytes([number]) * 32)) for number in range(1, 5)]
STAKES = (40, 30, 20, 10)
VALIDATORS = [
    Validator(f"v{at}.near", str(key.public_key), str(stake))
    for at, (key, stake) in enumerate(zip(KEYS, STAKES, strict=True))
]
ZERO = "1" * 32
BPS_HASH = to_base58(CryptoHash.of(items([encode_validator(v) for v in VALIDATORS])))
EPOCH, NEXT, LATER = (to_base58(bytes([number]) * 32) for number in (7, 8, 9))


def lite(height, epoch_id=EPOCH, next_epoch_id=NEXT):
    return LiteHeader(height, epoch_id, next_epoch_id, ZERO, ZERO, "1", BPS_HASH, ZERO)


def block(height, signers=range(4), **members):
    """Return a block for light clients, approved by the validators at these positions."""
    made = LightClientBlock(
        prev_block_hash=ZERO,
        inner_rest_hash=ZERO,
        inner_lite=lite(height, **members),
        next_block_inner_hash=ZERO,
        next_bps=VALIDATORS,
        approvals_after_next=[],
    )
    message = message_after_next(made)
    approvals = [
        str(key.sign_as_validator(message)) if at in signers else None
        for at, key in enumerate(KEYS)
    ]
    return replace(made, approvals_after_next=approvals)


HEAD = proofs.Head(CryptoHash(ZERO), lite(10), {EPOCH: VALIDATORS})


def test_two_thirds_of_the_stake_are_not_enough():
    """More than two thirds are: of 100, at least 67. 70 is enough, 60 is not."""
    assert HEAD.advance(block(20, signers=(0, 1))).header.height == 20
    for signers in ((0, 2), (1, 2, 3), ()):
        with pytest.raises(ProofError, match="it takes two thirds"):
            HEAD.advance(block(20, signers=signers))


@pytest.mark.parametrize(("yocto", "is_enough"), [(0, False), (1, True)])
def test_exactly_two_thirds_of_the_stake_are_not_enough(yocto, is_enough):
    """The specification asks for more than two thirds of the total: one yoctoNEAR is enough."""
    third = 7 * 10**24
    stakes = (2 * third + yocto, third - yocto)
    pairs = zip(VALIDATORS, stakes, strict=False)
    two = [replace(validator, stake=str(stake)) for validator, stake in pairs]
    head = proofs.Head(CryptoHash(ZERO), lite(10), {EPOCH: two})
    message = proofs.approved_message(bytes(32), 10, 11)
    approvals = [str(KEYS[0].sign_as_validator(message)), None]
    if is_enough:
        assert head.advance(block(20, signers=(0,))).header.height == 20
        proofs.check_approvals(CryptoHash(ZERO), approvals, two, message)
        return
    reason = f"with {2 * third} of {3 * third} yoctoNEAR of stake approved it"
    with pytest.raises(ProofError, match=reason):
        head.advance(block(20, signers=(0,)))
    with pytest.raises(ProofError, match=reason):
        proofs.check_approvals(CryptoHash(ZERO), approvals, two, message)


def test_a_wrong_signature_is_refused():
    """Also where the others hold enough stake: the specification refuses the whole block."""
    good = block(20)
    approvals = [*good.approvals_after_next[:3], good.approvals_after_next[0]]
    with pytest.raises(ProofError, match=r"the approval of v3.near is not its own"):
        HEAD.advance(replace(good, approvals_after_next=approvals))


def test_the_next_epoch_needs_its_validators():
    """They are known from a block of the epoch before, and those after it must be named."""
    inside = HEAD.advance(block(20))
    across = inside.advance(block(30, epoch_id=NEXT, next_epoch_id=LATER))
    assert set(across.validators) == {NEXT, LATER}
    with pytest.raises(ProofError, match="has no known validators"):
        HEAD.advance(block(30, epoch_id=NEXT, next_epoch_id=LATER))
    unnamed = replace(block(30, epoch_id=NEXT, next_epoch_id=LATER), next_bps=None)
    with pytest.raises(ProofError, match="the validators of the epoch after it are missing"):
        inside.advance(unnamed)


def test_other_validators_than_the_header_commits_to_are_refused():
    """The list must have the hash in the header."""
    with pytest.raises(ProofError, match="are not those it commits to"):
        HEAD.advance(replace(block(20), next_bps=VALIDATORS[:3]))


def test_a_block_that_is_not_newer_is_refused():
    """The height must rise."""
    with pytest.raises(ProofError, match="height 10 is not above 10"):
        HEAD.advance(block(10))


def test_a_changed_block_is_signed_by_nobody():
    """A change of any part of the block changes what was signed."""
    good = block(20)
    for changed in (
        replace(good, prev_block_hash=EPOCH),
        replace(good, inner_rest_hash=EPOCH),
        replace(good, next_block_inner_hash=EPOCH),
        replace(good, inner_lite=replace(good.inner_lite, outcome_root=EPOCH)),
    ):
        with pytest.raises(ProofError, match="is not its own"):
            HEAD.advance(changed)


@given(st.integers(1, 70), st.data())
def test_paths_of_the_ledgers_tree_lead_to_our_root(n_leaves, data):
    """Two implementations agree on roots of all sizes, and a path leads from a leaf to its root."""
    leaves = [CryptoHash.of(bytes([number])) for number in range(n_leaves)]
    tree = MerkleTree(leaves)
    size = data.draw(st.integers(1, n_leaves))
    index = data.draw(st.integers(0, size - 1))
    root = proofs.root_of(leaves[:size])
    assert tree.root(size) == root
    assert proofs.root_from(tree.path(index, size), leaves[index]) == root
    assert position(tree.path(index, size), size) == index
    other = data.draw(st.integers(0, n_leaves - 1))
    if other != index:
        assert proofs.root_from(tree.path(index, size), leaves[other]) != root


def test_the_head_knows_the_blocks_before_it():
    """A block is found by its path among those before the head; another is not."""
    blocks = [block(height) for height in range(11, 18)]
    hashes = [CryptoHash(block_hashes(each).block) for each in blocks]
    tree = MerkleTree(hashes)
    head = proofs.Head(CryptoHash(ZERO), replace(lite(18), block_merkle_root=str(tree.root())), {})
    for at, each in enumerate(blocks):
        path = [PathItem(str(h), "Left" if is_left else "Right") for h, is_left in tree.path(at)]
        head.check_block(each, path)
        with pytest.raises(ProofError, match="is not among the blocks before"):
            head.check_block(block(99), path)
