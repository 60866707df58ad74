"""The small edition of each campaign in `tools/campaigns`."""

from __future__ import annotations

import pytest

from tools.campaigns._campaign import NAMES, Tally, load


@pytest.mark.parametrize("name", NAMES)
def test_small_edition_finds_no_violation(name: str) -> None:
    """The promise holds in every case, and the cases have every result they are made for."""
    campaign, tally = load(name), Tally()
    campaign.run(campaign.SMALL, 0, tally)
    assert tally.violations == []
    assert set(campaign.EXPECTED) <= set(tally.counts)
