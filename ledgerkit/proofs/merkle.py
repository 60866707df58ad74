"""
Merkle roots and paths over SHA-256, as the chain commits to lists.

Source: nearcore, core/primitives/src/merkle.rs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

from ledgerkit.errors import ProofError

NO_ROOT = bytes(32)  # the root of an empty list


def combine(left: bytes, right: bytes) -> bytes:
    return sha256(left + right).digest()


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root of leaves; a node without a neighbour moves up unchanged."""
    if not leaves:
        return NO_ROOT
    level = list(leaves)
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        above = [sha256(left + right).digest() for left, right in pairs]
        if len(level) % 2:
            above.append(level[-1])
        level = above
    return level[0]


def root_from(path: Iterable[tuple[bytes, bool]], leaf: bytes) -> bytes:
    """Return the root that a path leads to; an item is a hash, and True if it is on the left."""
    node = leaf
    for neighbour, is_left in path:
        node = combine(neighbour, node) if is_left else combine(node, neighbour)
    return node


def position(path: Sequence[tuple[bytes, bool]], n_leaves: int) -> int:
    """Return the position of the leaf at which a path begins; raise `ProofError` without one."""
    first, after = 0, n_leaves
    for _, is_left in reversed(path):
        middle = first + (1 << max(0, (after - first - 1).bit_length() - 1))
        first, after = (middle, after) if is_left else (first, middle)
    if first + 1 != after:
        raise ProofError(f"a path of {len(path)} steps is not one of a tree of {n_leaves} leaves")
    return first
