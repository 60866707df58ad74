"""
The commitments of the chain, recomputed: outcomes, roots, block hashes, validators' signatures.

The chain commits to an outcome in steps: `outcomes` hashes it into a leaf, `merkle` combines leaves
into the root of a shard and shards' roots into the block's `outcome_root`, `headers` hashes a
header into the block's hash, and `light_client` checks the signatures. No module sends requests.
"""

from ledgerkit.proofs.headers import HeaderHash, check_header, check_producer
from ledgerkit.proofs.light_client import (
    Head,
    approved_message,
    check_approvals,
    check_validators,
)
from ledgerkit.proofs.merkle import combine, root_from, root_of
from ledgerkit.proofs.outcomes import leaves, unknown_status

__all__ = [
    "Head",
    "HeaderHash",
    "approved_message",
    "check_approvals",
    "check_header",
    "check_producer",
    "check_validators",
    "combine",
    "leaves",
    "root_from",
    "root_of",
    "unknown_status",
]
