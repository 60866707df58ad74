"""
The archive flow: a widget's source, read on one ledger, hashed, minted as a token on another.

Each step is a function of its own, and `archive_widget` takes them in their order;
`archive_steps` does too, and tells at each how it stands. What a step decides is a value:
an outcome such as ``"missing_widget"``. Only what could not be asked raises. A token's id
comes from the source alone and a collection has each id once, so that a flow which broke
off anywhere is finished by taking it again.
"""

from ledgerkit.archiving.flow import (
    MEANWHILE,
    OUTCOMES,
    STATES,
    STEPS,
    Archive,
    archive_steps,
    archive_widget,
)
from ledgerkit.archiving.tokens import (
    Seen,
    TokenPlan,
    confirm_token,
    differences,
    find_token,
    mint_token,
    owner_has,
    plan_token,
    receiver_view,
)
from ledgerkit.archiving.verification import VERDICTS, Verification, verify_archive
from ledgerkit.archiving.widget_sources import Record, Widget, read_widget, recorded

__all__ = [
    "MEANWHILE",
    "OUTCOMES",
    "STATES",
    "STEPS",
    "VERDICTS",
    "Archive",
    "Record",
    "Seen",
    "TokenPlan",
    "Verification",
    "Widget",
    "archive_steps",
    "archive_widget",
    "confirm_token",
    "differences",
    "find_token",
    "mint_token",
    "owner_has",
    "plan_token",
    "read_widget",
    "receiver_view",
    "recorded",
    "verify_archive",
]
