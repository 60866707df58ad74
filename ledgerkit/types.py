"""The classes of results of verbs and of u128 columns, for annotations and `isinstance`."""

from ledgerkit.archiving import Archive, Verification
from ledgerkit.collecting.collection import Collection
from ledgerkit.collecting.diff import Diff
from ledgerkit.collecting.follow import FollowedBlock, Following
from ledgerkit.collecting.plan import Plan
from ledgerkit.reconciling.plan import StatementPlan
from ledgerkit.sending.signers import Signer
from ledgerkit.sending.submission import Submission
from ledgerkit.tracing.proof import Proof
from ledgerkit.tracing.traces import Traces
from ledgerkit.u128.array import I129Dtype, U128Array, U128Dtype
from ledgerkit.verbs.accounts import Snapshot

__all__ = [
    "Archive",
    "Collection",
    "Diff",
    "FollowedBlock",
    "Following",
    "I129Dtype",
    "Plan",
    "Proof",
    "Signer",
    "Snapshot",
    "StatementPlan",
    "Submission",
    "Traces",
    "U128Array",
    "U128Dtype",
    "Verification",
]
