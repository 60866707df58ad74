"""axe-core finds no fault in the explorer: its pages, wide and narrow, light and dark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.person import Person

if TYPE_CHECKING:
    from collections.abc import Iterator

EXPLORER = """\
import ledgerkit as lk
lk.connect("local")
lk.explore()"""
SWAP = "AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY"


@pytest.fixture(scope="module", params=["light", "dark"])
def explorer(request: pytest.FixtureRequest, opened: Any) -> Iterator[Person]:
    with opened("accessible", [EXPLORER], theme=request.param) as page:
        is_dark = ".lk-dark" if request.param == "dark" else ":not(.lk-dark)"
        page.locator(f".lk-explorer{is_dark}").wait_for()
        yield Person(page)


def check(person: Person, *titles: str) -> None:
    """Let axe-core look at the pages of the answer, or at what can be seen."""
    from axe_playwright_python.sync_playwright import Axe

    for title in titles or ("",):
        if title:
            person.open(title)
        for width in (700, 1400):
            person.page.set_viewport_size({"width": width, "height": 900})
            result = Axe().run(person.page, ".ledgerkit-panel")
            assert result.response["passes"], "nothing was looked at"
            assert not result.violations_count, f"{width}: {result.generate_report()}"


def test_the_first_page_and_a_refused_search(explorer):
    """Examples to search for, and what is said about a text that names nothing."""
    check(explorer)
    explorer.search("no such thing")
    explorer.sees("is not valid")
    check(explorer)


def test_an_account_and_its_statement(explorer):
    """Facts, sentences, a table with its filters, folded transactions and a picture."""
    explorer.search("ivan.near")
    explorer.answered("ivan.near on local")
    check(explorer, "Account", "Activity")
    explorer.open("Tokens")
    explorer.button("Filters").click()
    explorer.panel.locator("summary", has_text="Columns").click()
    check(explorer)
    explorer.open("Account")
    explorer.panel.get_by_role("link", name="Statement of ivan.near").click()
    explorer.answered("ivan.near on local: 22 rows")
    check(explorer, "Statement")
    explorer.open("Transactions")
    explorer.panel.locator("summary:visible").first.click()
    check(explorer)


def test_a_token_and_a_trace(explorer):
    """Holders with the curve of their shares, and receipts as a tree, a timeline and a table."""
    explorer.search("ivan.near")
    explorer.answered("ivan.near on local")
    explorer.open("Tokens")
    explorer.panel.get_by_role("link", name="gold.near", exact=True).click()
    explorer.answered("gold.near on local")
    check(explorer, "Token", "Curve")
    explorer.search(SWAP)
    explorer.answered("Succeeded, but receipts failed on local: 6 receipts.")
    check(explorer, "Trace", "Receipts")


def test_collections(explorer):
    """Cards of tokens, whose collections link to their accounts, and their table."""
    panels = explorer.page.get_by_role("tablist", name="Panels")
    panels.get_by_role("tab", name="NFTs", exact=True).click()
    explorer.panel.get_by_role("region", name="NFTs panel").wait_for()
    explorer.enter("Account", "alice.near")
    explorer.answered("2 tokens of 2 collections on local.")
    check(explorer, "Gallery", "Table")
