"""The first questions of a visitor, each asked with one search, and answered on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

import ledgerkit as lk
from tests.browser.person import Person

if TYPE_CHECKING:
    from collections.abc import Iterator

EXPLORER = """\
import ledgerkit as lk
lk.connect("local")
lk.explore(tokens=["gold.near", "moon.near"])"""
SWAP = "AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY"


@pytest.fixture(scope="module")
def explorer(opened: Any) -> Iterator[Person]:
    with opened("questions", [EXPLORER]) as page:
        yield Person(page)


def test_what_did_this_account_do_lately_and_what_went_wrong(explorer):
    """A search and the page of activity: sentences, the failed swap among them."""
    explorer.search("ivan.near")
    explorer.answered("ivan.near on local")
    explorer.open("Activity")
    swap = explorer.tables.locator("tr", has_text="tried to swap 80 GOLD").first
    expect(swap).to_contain_text("! succeeded, but receipts failed")
    expect(swap).to_contain_text("AXGjZS")


def test_who_holds_this_token(explorer, local):
    """A search for a symbol leads to the token, whose table has the share of each holder."""
    explorer.search("MOON")
    link = explorer.panel.get_by_role("link", name="moon.near").first
    link.click()
    explorer.answered("moon.near on local")
    holders = lk.top_holders("moon.near", metadata=True, ledger=local)
    rows = explorer.grid()
    names = rows[0]
    assert [row[names.index("account_id")] for row in rows[1:]] == list(holders["account_id"][:25])
    assert [row[names.index("balance")] for row in rows[1:]] == [
        str(balance) for balance in holders["balance"][:25]
    ]


def test_what_did_it_earn(explorer, local):
    """The statement says what was earned, or why there is nothing, and unfolds its entries."""
    explorer.search("bob.near")
    explorer.answered("bob.near on local")
    explorer.open("Account")
    explorer.panel.get_by_role("link", name="Statement of bob.near").click()
    explorer.answered("bob.near on local: 7 rows")
    text = "no staking rewards: the balance with 2 pools did not grow by itself"
    assert text in repr(lk.statement("bob.near", progress=False, ledger=local))
    expect(explorer.panel).to_contain_text(text)
    explorer.open("Transactions")
    line = explorer.panel.locator("summary", has_text="-50 NEAR")
    expect(line).to_contain_text("fee -0.00055 NEAR")
    line.focus()
    explorer.page.keyboard.press("Enter")
    table = explorer.panel.locator("details[open] table:visible")
    expect(table).to_contain_text("stake:north.poolv1.near")
    explorer.picture("statement_transactions")


def test_which_of_my_tokens_are_which(explorer, local):
    """The tokens have their symbols, also those whose balance is not known."""
    explorer.search("alice.near")
    explorer.answered("alice.near on local")
    explorer.open("Tokens")
    rows = explorer.grid()
    at = rows[0].index("symbol")
    tokens = lk.ft("alice.near", metadata=True, ledger=local)
    assert [(row[0], row[at]) for row in rows[1:]] == list(
        zip(tokens["contract_id"], tokens["symbol"], strict=True)
    )


def test_why_did_a_transaction_fail(explorer):
    """A hash is enough: the sentence, and the receipt that failed is selected."""
    explorer.search(SWAP)
    explorer.answered("Succeeded, but receipts failed on local: 6 receipts.")
    expect(explorer.panel).to_contain_text("ivan.near tried to swap 80 GOLD on dex.near")
    failed = explorer.panel.locator('.lk-receipt[aria-selected="true"]')
    expect(failed).to_contain_text("ft_on_transfer")
