"""The archive panel in a browser: its steps while they happen, and what Cancel leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.browser.person import Person

if TYPE_CHECKING:
    from collections.abc import Iterator

PANEL = """\
import ledgerkit as lk
ledger = lk.connect("local")
ledger.faults.add("latency=0.25")
lk.widgets.ArchiveFlow("heidi.near", "Clock", "alice.near", "stamps.grace.near", "grace.near")"""
TOKEN_ID = "widget-8ab0028ead1b"
STEPS = 8


@pytest.fixture
def person(opened: Any, request: pytest.FixtureRequest) -> Iterator[Person]:
    """Open a panel that is filled in, over a slow ledger of its own."""
    with opened(request.node.name, [PANEL]) as page:
        yield Person(page)


def states(person: Person) -> list[str]:
    """Read the states of the steps."""
    head, *rows = person.grid()
    return [row[head.index("state")] for row in rows]


def test_each_step_is_seen_while_it_is_taken(person):
    """Pending, running, done, with what was found; only Cancel can be pressed meanwhile."""
    person.field("Widget").press("Enter")
    person.sees("Step 2 of 8: read_source…")
    assert states(person) == ["done", "running", *["pending"] * (STEPS - 2)]
    expect(person.button("Archive")).to_be_disabled()
    expect(person.button("Cancel")).to_be_enabled()

    person.sees("Step 6 of 8: mint…")
    assert states(person) == [*["done"] * 5, "running", *["pending"] * 2]
    expect(person.panel).to_contain_text(f"{TOKEN_ID}, from SHA-256 ")
    expect(person.panel).to_contain_text("written in block 180000013")
    person.picture("archive_running")
    expect(person.panel).to_contain_text("sent by grace.near, stage included")

    person.answered("The token was minted, and its owner and source are as planned.")
    assert states(person) == ["done"] * STEPS
    person.rests("Archive")


def test_cancel_loses_no_mint(person):
    """Before the mint nothing was minted; after it was sent, taken again, the token is there."""
    person.click("Archive")
    person.sees("Step 2 of 8: read_source…")
    person.button("Cancel").focus()
    person.press("Enter")
    person.answered("Nothing was minted. Archive the widget again to finish.")
    assert states(person) == ["done", "cancelled", *["not_taken"] * (STEPS - 2)]

    person.rests("Archive")
    person.click("Archive")
    person.sees("Step 6 of 8: mint…")
    expect(person.panel).to_contain_text("sent by grace.near, stage included")
    person.click("Cancel")
    person.answered(" by transaction ")  # was, or may have been, minted
    person.sees("an existing token is found, and not minted twice.")
    person.picture("archive_cancelled")

    person.click("Archive")
    person.answered("The token already existed; nothing was minted.")
