"""The explorer in a browser: each tab is used, and what it shows is compared with the verbs'."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from playwright.sync_api import expect

import ledgerkit as lk
from tests.browser.person import (
    AGE,
    GATEWAY,
    NEWS,
    TOKENS,
    Person,
    cell_text,
    cells,
    serve_pictures,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EXPLORER = """\
import ledgerkit as lk
lk.connect("local")
lk.explore()"""
FAULTS = """\
import ipywidgets
from ledgerkit import client
fault = ipywidgets.Text(description="Fault", continuous_update=False)
def add(change):
    if change["new"]:
        client.current().faults.add(change["new"])
        fault.value = ""
fault.observe(add, "value")
fault"""
ALICES = "340282366920926463463374607431768211454"  # of moon.near
SUPPLY = str(2**128 - 1)
ALICE = "alice.near on local: 7 tokens, 2 NFT collections, 2 pools."
PLANTED = "planted-key-8c1f0a77"
HELD = "entered; type another one to replace it"
LATE_MS = 3_000
FAR_MS = 400
FAR_APART = 40  # pixels from the column of names to the text of a value
GAPS = """table => [...table.rows].map(row => {
  const text = document.createRange()
  text.selectNodeContents(row.cells[1])
  const edge = row.cells[0].getBoundingClientRect().right
  return (text.getClientRects()[0]?.left ?? edge) - edge
})"""
SPENDABLE = ("12,340.68 NEAR", "12340675470645764809599999996")  # and its tooltip
COUNTED = ["account_id", "status", "n_tokens", "n_nfts", "n_pools", "last_update_block_height"]
POSITIONS = [
    *("pool_id", "source", "staked", "unstaked", "can_withdraw", "status"),
    *("last_update_block_height", "tokens"),
]


@pytest.fixture(scope="module")
def explorer(opened: Any) -> Iterator[Person]:
    """Open the explorer, with a field that makes the ledger stumble."""
    with opened("explorer", [EXPLORER, FAULTS]) as page:
        yield Person(page)


@pytest.fixture
def at(explorer: Person) -> Any:
    def go(title: str) -> Person:
        panels = explorer.page.get_by_role("tablist", name="Panels")
        panels.get_by_role("tab", name=title, exact=True).click()
        explorer.panel.get_by_role("region", name=f"{title} panel").wait_for()
        return explorer

    return go


def late(person: Person) -> None:
    field = person.page.get_by_label("Fault", exact=True)
    field.fill(f"latency={LATE_MS // 1000}; times=1")
    field.press("Enter")
    expect(field).to_have_value("")


def fails(person: Person, happened: str) -> None:
    """Wait for an error, which leaves no answer and lets ask again."""
    person.answered(happened)
    expect(person.panel.get_by_role("alert")).to_contain_text(happened)
    expect(person.tables).to_have_count(0)


def test_enter_shows_what_an_account_holds(at, local):
    """Each page of the answer is its verb's frame, to the last digit."""
    person = at("Account")
    person.enter("Account", "alice.near")
    person.answered(ALICE)
    state = lk.accounts("alice.near", ledger=local).iloc[0]

    assert person.titles() == ["Account", "Activity", "Tokens", "NFTs", "Staking"]
    assert person.panel.locator(".badge").inner_text() == "mixed"
    facts = person.facts()
    spendable = person.panel.locator("tr", has_text="spendable").locator("span")
    assert (facts["spendable"], spendable.get_attribute("title")) == SPENDABLE
    assert facts["storage_cost"] == "0.0041 NEAR"
    code = ["contract", "code_hash", "code_account_id", "bootstrap_nonce"]  # not asked for here
    assert list(facts) == list(state.index.drop(code))
    assert {n: facts[n] for n in COUNTED} == {n: cell_text(state[n]) for n in COUNTED}
    assert max(person.tables.evaluate(GAPS)) < FAR_APART
    person.picture("account")

    person.open("Tokens")
    held = lk.ft("alice.near", metadata=True, ledger=local)
    assert person.grid() == cells(held[TOKENS])
    assert ["moon.near", ALICES] in [row[:2] for row in person.grid()]
    person.picture("account_tokens")
    person.open("NFTs")
    assert person.grid() == cells(lk.nft("alice.near", ledger=local).drop(columns="account_id"))
    person.open("Staking")
    pools = lk.staking("alice.near", positions=True, ledger=local)
    assert person.grid() == cells(pools[POSITIONS])
    assert ["north.poolv1.near", "indexed", "150000000000000000123456789", "0"] in [
        row[:4] for row in person.grid()
    ]


def test_why_a_swap_failed_takes_a_search_and_two_clicks(explorer):
    """The latest transactions of an account are sentences, and each opens its transaction."""
    explorer.search("ivan.near")
    explorer.answered("ivan.near on local")
    explorer.open("Activity")
    times = [row[0] for row in explorer.table()]
    assert times == sorted(times, reverse=True)
    swap = explorer.tables.locator("tr", has_text="tried to swap 80 GOLD").first
    expect(swap).to_contain_text("! succeeded, but receipts failed")
    explorer.picture("account_activity")

    explorer.page.locator(NEWS).evaluate_all(AGE)
    swap.get_by_role("link", name="ivan.near tried to swap").click()
    explorer.answered("Succeeded, but receipts failed on local: 6 receipts.")


def test_each_row_of_an_activity_is_a_door_to_its_trace(explorer):
    """The sentence of a row is the headline of the trace that it opens, and Back returns."""
    explorer.search("ivan.near")
    explorer.answered("ivan.near on local")
    explorer.open("Activity")
    doors = explorer.tables.locator("td > a:first-child")
    sentences = doors.all_inner_texts()
    assert len(sentences) == 4
    for at, sentence in enumerate(sentences):
        doors.nth(at).click()
        expect(explorer.panel.locator(".lk-headline")).to_have_text(sentence)
        expect(explorer.panel.get_by_role("tree")).to_be_visible()
        explorer.button("Back").click()
        expect(doors.nth(at)).to_be_visible()


def test_the_other_tabs_take_the_account(explorer, at):
    """A tab without an answer asks about the account that was looked up last."""
    for account_id in ("frank.near", "erin.near"):
        explorer.search(account_id)
        explorer.answered(f"{account_id} on local")
        for title in ("Statement", "NFTs"):
            expect(at(title).field("Account")).to_have_value(account_id)


def test_a_click_asks_and_the_open_page_stays(at, local):
    """Who looks at tokens sees the tokens of the next account."""
    person = at("Account")
    person.enter("Account", "alice.near")
    person.answered(ALICE)
    person.open("Tokens")

    person.type("Account", "bob.near")
    person.click("Look up")
    person.answered("bob.near on local")

    held = lk.ft("bob.near", metadata=True, ledger=local)
    assert person.grid() == cells(held[TOKENS])


def test_what_is_no_account_is_refused(at):
    """The message says what is wrong and what to do; the answer before is gone."""
    person = at("Account")
    person.enter("Account", "alice.near")
    person.answered(ALICE)

    person.enter("Account", "<b>Alice</b>")

    fails(person, "account_id '<b>Alice</b>' is not valid: expected")
    person.picture("account_error")
    person.rests("Look up")


def test_the_keyboard_is_enough(at):
    """Tab goes from field to field to the button, and Space presses it."""
    person = at("Account")
    person.type("Account", "carol.near")

    order = person.tab_keys("Account", 2)
    person.press("Space")

    assert order == ["Call contracts for symbols, amounts and stakes", "Look up"]
    person.answered("carol.near on local")


def test_a_question_that_runs_can_be_cancelled(at):
    """Meanwhile only Cancel can be clicked; the late answer is never shown."""
    person = at("Account")
    late(person)
    person.enter("Account", "alice.near")
    person.sees("Loading…")
    expect(person.button("Look up")).to_be_disabled()
    expect(person.button("Cancel")).to_be_enabled()
    person.picture("account_waiting")

    person.click("Cancel")
    person.answered("Cancelled.")
    person.page.wait_for_timeout(LATE_MS)

    assert person.status.inner_text() == "Cancelled."
    assert person.tables.count() == 0


def test_a_kernel_far_away_is_asked_what_was_typed(at):
    """However late letters arrive, Enter and a click ask about the whole text."""
    person = at("Account")
    person.moves_away(FAR_MS)
    try:
        person.enter("Account", "carol.near")
        person.answered("carol.near on local")
        person.type("Account", "dave.near")
        person.click("Look up")
        person.answered("dave.near on local")
    finally:
        person.moves_away(0)


def test_a_key_leads_to_its_accounts(at, local):
    """The accounts of a key are listed, and a link opens one; Back returns to the list."""
    key = lk.keys("alice.near", ledger=local)["public_key"].iloc[0]
    person = at("Key")
    person.enter("Public key", key)
    person.answered("2 accounts on local.")
    listed = cells(lk.accounts_of(key, ledger=local).drop(columns="public_key"))
    assert person.grid() == listed
    person.picture("key")

    person.panel.get_by_role("link", name="alice.near", exact=True).click()

    person.answered(ALICE)
    assert person.field("Account").input_value() == "alice.near"
    person.button("Back").click()
    expect(person.field("Public key")).to_have_value(key)
    assert person.grid() == listed


def test_a_transaction_shows_its_trace_and_receipts(at, local):
    """The verdict stands first, the failed receipt is selected, and the table is exact."""
    story = "a swap that is refunded: the exchange is paused"
    swap = next(tx for tx in local.world.summary.transactions if tx.description == story)
    person = at("Transaction")
    person.type("Signer", "")
    person.enter("Transaction", swap.tx_hash)
    person.answered("Succeeded, but receipts failed on local: 6 receipts.")

    expect(person.panel.get_by_role("treeitem")).to_have_count(6)
    person.picture("transaction")
    person.open("Receipts")
    receipts = lk.receipts(swap.tx_hash, swap.signer_id, ledger=local)
    hashes = [row[0] for row in person.grid()[1:]]
    assert hashes == receipts["receipt_id"].tolist()


def test_accounts_are_classed(at, local):
    """Lines are typed, Tab leads to the button; each class has its bar, the table the evidence."""
    names = ["alice.near", "bob.near", "carol.near", "dave.near"]
    person = at("Staking")
    for name in names:
        person.field("Accounts").press_sequentially(name)
        person.press("Enter")
    order = person.tab_keys("Accounts", 2)
    assert order == ["Call pools, ignore zero positions", "Classify"]
    person.press("Enter")
    person.answered("4 accounts on local classified.")

    assert person.table() == [
        ["mixed", "", "1"],
        ["direct only", "", "1"],
        ["liquid only", "", "1"],
        ["no visible staking position", "", "1"],
    ]
    person.picture("staking")
    person.open("Accounts")
    assert person.grid() == cells(lk.exposure(names, ledger=local))


def test_a_token_leads_to_its_holders(at, local):
    """A link of an account's tokens opens the page of the token, whose holders link to accounts."""
    person = at("Account")
    person.enter("Account", "alice.near")
    person.answered(ALICE)
    person.open("Tokens")
    person.panel.get_by_role("link", name="gold.near", exact=True).click()
    person.answered("gold.near on local: 22 holders listed, with all of the supply")

    facts = person.panel.locator("table.facts")
    expect(facts).to_contain_text("485,349 GOLD")
    holders = lk.top_holders("gold.near", metadata=True, ledger=local)
    shown = holders[["rank", "account_id", "balance", "share", "status", "symbol", "decimals"]]
    exact = person.grid()
    assert [row[:3] for row in exact] == [row[:3] for row in cells(shown)]
    assert [row[1] for row in exact[1:]] == holders["account_id"].tolist()
    person.picture("token")
    person.open("Curve")
    expect(person.panel.locator("svg[role=img]:visible")).to_have_count(1)
    person.picture("token_curve")
    person.open("Token")
    person.panel.get_by_role("link", name="dex.near", exact=True).click()
    person.answered("dex.near on local")


def test_an_asset_of_a_statement_leads_to_its_token(at):
    """The asset of a token is a link to the token's page; NEAR has none."""
    person = at("Statement")
    person.enter("Account", "ivan.near")
    person.answered("ivan.near on local")
    expect(person.panel.locator(".on-light svg")).to_be_visible()
    person.open("Entries")
    expect(person.panel.get_by_role("link", name="near", exact=True)).to_have_count(0)
    person.panel.get_by_role("link", name="nep141:gold.near", exact=True).first.click()
    person.answered("gold.near on local")


def test_a_search_for_a_symbol_lists_the_tokens_that_have_it(explorer):
    """No token is opened for a symbol: the person chooses a contract, and Back returns."""
    person = explorer
    person.search("alice.near")
    person.answered(ALICE)
    person.search("Gold")
    person.sees("1 token read in this session has the symbol Gold.")
    person.picture("search_symbol")
    person.panel.get_by_role("link", name="gold.near", exact=True).click()
    person.answered("gold.near on local")
    person.button("Back").click()
    person.sees("1 token read in this session has the symbol Gold.")


def test_a_view_call_is_decoded_and_saved(at, tmp_path):
    """The largest integer is on the page, and in the file that its link saves."""
    person = at("Contract")
    person.type("Contract", "moon.near")
    person.enter("Method", "ft_total_supply")
    person.answered("ft_total_supply of moon.near on local returned a result.")
    assert person.panel.locator("pre:visible").inner_text() == f'"{SUPPLY}"'

    person.open("Table")
    assert person.grid() == [["value"], [SUPPLY]]
    assert saved(person, "CSV", tmp_path) == f"value\n{SUPPLY}\n".encode()
    parquet = pd.read_parquet(io.BytesIO(saved(person, "Parquet", tmp_path)))
    assert parquet["value"].tolist() == [SUPPLY]
    person.picture("contract")


def saved(person: Person, kind: str, folder: Path) -> bytes:
    """Click the button that saves the table, and read the file."""
    button = person.panel.get_by_role("button", name=f"Save as {kind}").locator("visible=true")
    with person.page.expect_download() as caught:
        button.click()
    name = caught.value.suggested_filename
    caught.value.save_as(folder / name)
    return (folder / name).read_bytes()


def test_tokens_are_cards(at, local):
    """All collections are asked; each token is a card, and its picture does not load."""
    person = at("NFTs")
    person.enter("Account", "alice.near")
    person.answered("2 tokens of 2 collections on local.")
    held = [
        lk.nft_tokens("alice.near", name, ledger=local)
        for name in ("stamps.grace.near", "tickets.grace.near")
    ]

    cards = person.panel.locator("figure:visible figcaption strong").all_inner_texts()
    assert cards == ["Lighthouse", "Opening night"]
    assert person.panel.locator("img").count() == 0
    person.picture("nfts")
    person.open("Table")
    table = pd.concat(held, ignore_index=True)
    table = table.assign(media_url="ipfs://demo/" + table["media"])  # at the base the world has
    assert person.grid() == cells(table.dropna(axis="columns", how="all"))


def test_pictures_are_loaded_by_a_gateway_that_is_entered(at):
    """Nothing loads before a gateway is entered; one without TLS is refused; it is asked once."""
    person = at("NFTs")
    loaded = serve_pictures(person.page)
    person.type("IPFS gateway", "")
    person.enter("Account", "alice.near")
    person.answered("2 tokens of 2 collections on local.")
    person.open("Gallery")
    expect(person.panel.locator("figure").first).to_contain_text("picture: ipfs://demo/17.svg")

    person.enter("IPFS gateway", GATEWAY.replace("https", "http"))
    fails(person, "expected an address that begins with https://")
    assert loaded == []

    person.enter("IPFS gateway", GATEWAY)
    person.answered("2 tokens of 2 collections on local.")
    expect(person.panel.get_by_role("img", name="Lighthouse")).to_be_visible()
    expect(person.panel.get_by_role("img", name="Opening night")).to_be_visible()
    assert loaded == [f"{GATEWAY}/demo/17.svg", f"{GATEWAY}/demo/A-1.svg"]
    person.picture("nfts_gateway")


def test_a_network_is_connected_to_and_a_key_leaves_its_field(at, local):
    """The node's words are exact; a key that is typed stands nowhere on the page."""
    person = at("Network")
    person.field("API key").press_sequentially(PLANTED)
    person.press("Tab")
    expect(person.field("API key")).to_have_value("")
    expect(person.field("API key")).to_have_attribute("placeholder", HELD)
    assert PLANTED not in person.page.content()

    person.click("Connect")
    person.answered("Connected to local: chain localnet, block 180000052.")

    status = lk.status(ledger=local).iloc[0]
    facts = person.facts()
    assert list(facts) == list(status.index)
    assert facts["latest_block_hash"] == status["latest_block_hash"]
    assert facts["latest_block_time"] == "2026-08-01 00:00:31 UTC"
    expect(person.field("API key")).not_to_have_attribute("placeholder", HELD)
    assert PLANTED not in person.page.content()
    person.picture("network")


def test_a_search_opens_what_it_names_and_back_returns(explorer):
    """One box takes accounts, hashes, heights and calls; Back and Forward go through them."""
    person = explorer
    person.search("carol.near")
    person.answered("carol.near on local")
    person.search("180000052")
    person.answered("Block 180000052 on local: ")
    person.search("wrap.near ft_metadata")
    person.answered("ft_metadata of wrap.near on local returned a result.")

    person.button("Back").click()
    expect(person.field("Block")).to_have_value("180000052")
    person.button("Back").click()
    expect(person.field("Account")).to_have_value("carol.near")
    person.button("Forward").click()
    expect(person.field("Block")).to_have_value("180000052")

    person.search("no such thing")
    person.sees("search 'no such thing' is not valid: expected an account id")
    person.picture("search_error")


def test_tabs_are_reached_with_arrow_keys(at):
    """The arrow keys move between tabs, Home and End go to the first and the last."""
    person = at("Account")
    selected = person.page.get_by_role("tablist", name="Panels").locator("[aria-selected=true]")
    names = []
    expect(selected).to_have_text("Account")
    selected.focus()

    for key in ("ArrowRight", "ArrowLeft", "End", "Home"):
        before = selected.inner_text()
        person.page.keyboard.press(key)
        expect(selected).not_to_have_text(before)
        expect(selected).to_be_focused()
        # The kernel repeats each selection; a late repetition would undo the next key.
        person.page.wait_for_timeout(1_000)
        names.append(selected.inner_text())

    assert names == ["Statement", "Account", "Archive", "Search"]


def test_a_panel_stays_as_it_was_left(at):
    """A text that was typed, the open page and a sorted table survive another tab."""
    person = at("Account")
    person.enter("Account", "alice.near")
    person.answered("alice.near on local")
    person.open("Tokens")
    head = person.panel.get_by_role("columnheader", name="contract_id")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    person.field("Account").fill("typed")

    at("Block")
    at("Account")

    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(person.field("Account")).to_have_value("typed")


def test_the_keyboard_stays_in_the_view(at):
    """The focus is never lost, and no plain key reaches the page, which may act on it."""
    person = at("Account")
    page = person.page
    page.evaluate("document.addEventListener('keydown', event => { window.lastKey = event.key })")
    page.get_by_role("tablist", name="Panels").get_by_role("tab", selected=True).press("a")
    person.field("Account").fill("bob.near")
    first = person.button("Look up")
    first.focus()
    page.keyboard.press("Enter")
    person.answered("bob.near on local")
    expect(first).to_be_focused()
    at("Search")
    link = person.panel.get_by_role("link", name="carol.near", exact=True)
    link.focus()
    page.keyboard.press("Enter")
    person.answered("carol.near on local")
    expect(page.locator(".lk-panel")).to_be_focused()
    page.keyboard.press("b")
    assert page.evaluate("window.lastKey") is None


@pytest.mark.parametrize("title", ["Account", "Transaction", "NFTs", "Send"])
def test_nothing_is_wider_than_a_narrow_page(at, title):
    """At 600 pixels the page does not scroll sideways."""
    person = at(title)
    person.page.set_viewport_size({"width": 600, "height": 900})
    try:
        assert person.page.evaluate("document.documentElement.scrollWidth") <= 600
        person.picture(f"narrow_{title.lower()}")
    finally:
        person.page.set_viewport_size({"width": 1200, "height": 900})
