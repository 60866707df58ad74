"""The frames of a statement that are built from its facts."""

from __future__ import annotations

from ledgerkit.reconciling.frames import entries_frame
from ledgerkit.reconciling.model import Gap
from tests.unit.statement_frames import ONE, entry, statement


def test_what_readings_prove():
    """Balances are read at the ends and beside gaps; one block in between is proved."""
    entries = [
        entry(110, "near", "transfer", ONE),
        entry(110, "near", "fee", -1),
        entry(120, "near", "transfer", ONE),
        entry(130, "near", "transfer", ONE),
        entry(140, "near", "transfer", ONE),
        entry(150, "nep141:x.near", "token", 1, evidence="indexed"),
        entry(160, "nep141:y.near", "token", 1),
    ]
    gaps = [Gap("near", 112, 125, ONE, "?")]
    facts = statement(entries, opening={"nep141:y.near": None}, gaps=gaps).facts
    evidence = entries_frame(facts, entries)["evidence"]
    assert evidence.tolist() == [
        *("proved", "proved"),  # both in the one block before the gap
        "derived",  # within the gap
        *("derived", "derived"),  # two blocks after it
        "proved",
        "derived",  # its balance at the start is unknown
    ]
