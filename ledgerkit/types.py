"""The classes of what verbs return, and of u128 columns, for annotations and `isinstance`."""

from ledgerkit.archiving import Archive, Verification
from ledgerkit.collecting.diff import Diff
from ledgerkit.collecting.follow import FollowedBlock, Following
from ledgerkit.collecting.plan import Plan
from ledgerkit.reconciling.plan import StatementPlan
from ledgerkit.tracing.proof import Proof
from ledgerkit.tracing.traces import Traces
from ledgerkit.u128.array import I129Dtype, U128Array, U128Dtype

__all__ = [
    "Archive",
    "Diff",
    "FollowedBlock",
    "Following",
    "I129Dtype",
    "Plan",
    "Proof",
    "StatementPlan",
    "Traces",
    "U128Array",
    "U128Dtype",
    "Verification",
]
