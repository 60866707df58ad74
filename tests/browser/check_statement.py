"""The statement of an account in a browser: opened from the account, with totals and entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

import ledgerkit as lk
from tests.browser.person import Person, cells

if TYPE_CHECKING:
    from collections.abc import Iterator


EXPLORER = """\
import ledgerkit as lk
lk.connect("local")
lk.explore()"""


@pytest.fixture(scope="module")
def explorer(opened: Any) -> Iterator[Person]:
    """Open the explorer."""
    with opened("statements", [EXPLORER]) as page:
        yield Person(page)


def go(person: Person, title: str) -> None:
    """Go to a tab of the explorer."""
    panels = person.page.get_by_role("tablist", name="Panels")
    panels.get_by_role("tab", name=title, exact=True).click()


def test_an_account_leads_to_its_statement(explorer: Person, local: lk.Ledger):
    """A link under the account opens its statement: it adds up, and each entry is exact."""
    person = explorer
    statement = lk.statement("bob.near", progress=False, ledger=local)
    go(person, "Account")
    person.enter("Account", "bob.near")
    person.answered("bob.near on local")

    person.panel.get_by_role("link", name="Statement of bob.near", exact=True).click()

    person.answered(f"bob.near on local: {len(statement.entries)} rows, 0 gaps.")
    assert person.field("Account").input_value() == "bob.near"
    text = person.panel.inner_text()
    assert "every balance adds up: opening + entries = closing, with no gaps" in text
    assert person.titles()[:2] == ["Statement", "Entries"]
    assert "Gaps" not in person.titles()
    closing = person.panel.locator("tr", has_text="nep141:gold.near").first.inner_text()
    assert closing.count("37 GOLD") == 2  # what came in, and what is there at the end
    expect(person.panel.locator("svg[role=img]").first).to_be_visible()
    person.picture("statement")
    person.open("Entries")
    shown = statement.entries.drop(columns="account_id").dropna(axis="columns", how="all")
    assert person.grid() == cells(shown)
    person.picture("statement_entries")
