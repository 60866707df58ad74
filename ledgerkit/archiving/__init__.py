"""
Archiving: mint an NFT that records the source of a social database widget.

Each step is a function. `archive_widget` runs all of them; `archive_steps` also yields the state
at each step. An expected outcome, such as ``"missing_widget"``, is returned;
only a failed request raises. The token id is derived from the source, and a collection has each
id once, so an interrupted flow can be finished by running it again.
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
    TokenPlan,
    TokenReading,
    confirm_token,
    differences,
    find_token,
    mint_token,
    owner_has,
    plan_token,
    receiver_view,
)
from ledgerkit.archiving.verification import VERDICTS, Verification, verify_archive
from ledgerkit.archiving.widget_sources import Record, Widget, parse_record, read_widget

__all__ = [
    "MEANWHILE",
    "OUTCOMES",
    "STATES",
    "STEPS",
    "VERDICTS",
    "Archive",
    "Record",
    "TokenPlan",
    "TokenReading",
    "Verification",
    "Widget",
    "archive_steps",
    "archive_widget",
    "confirm_token",
    "differences",
    "find_token",
    "mint_token",
    "owner_has",
    "parse_record",
    "plan_token",
    "read_widget",
    "receiver_view",
    "verify_archive",
]
