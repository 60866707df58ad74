"""marimo, which draws a panel in a shadow root of its own: mouse, keyboard and secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.browser import serving
from tests.browser.person import Person

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Locator, Page, WebSocket


MOST = 2**128 - 1
ALICE = "alice.near on local: 7 tokens, 2 NFT collections, 2 pools."
PLANTED = "planted-key-77c0ffee"
CELLS = [
    """\
import pandas as pd
import ledgerkit as lk
ledger = lk.connect("local")""",
    "lk.explore()",
    f"""\
frame = pd.DataFrame({{
    "account_id": ["a.near", "b.near", "c.near", "d.near"],
    "balance": pd.Series([5, {MOST}, {MOST - 1}, None], dtype="u128"),
}})
lk.show(frame, caption="Four balances")""",
    'lk.widgets.AccountExplorer("bob.near")',
    """\
story = next(tx for tx in ledger.world.summary.transactions if "refunded" in tx.description)
lk.widgets.TransactionExplorer(story.tx_hash, story.signer_id).press()""",
    "lk.trace(story.tx_hash, story.signer_id)",
]
# The method of each receipt in the card of a trace, and how far its line is to the right.
INDENTS = """lines => lines.map(line => [
  line.querySelector('strong').textContent, line.getBoundingClientRect().left])"""
# Of the element that has the keyboard, also inside shadow roots.
FOCUSED = """() => {
  let at = document.activeElement
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement
  const label = at.labels && at.labels.length ? at.labels[0] : at
  return (at.getAttribute('aria-label') || label.textContent).trim()
}"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("marimo") / "app.py"
    serving.write_marimo(path, CELLS)
    return path


@pytest.fixture(scope="module")
def sent() -> list[str]:
    """Collect what the kernel sends to the page."""
    return []


@pytest.fixture(scope="module")
def page(
    watching: Any,
    browser: Browser,
    file: Any,
    sent: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Page]:
    """Open the notebook as an application."""
    own = tmp_path_factory.mktemp("marimo_own")

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: sent.append(str(frame)))

    with serving.marimo(file, own) as address, watching(browser) as page:
        page.on("websocket", listen)
        page.goto(address)
        expect(page.locator(".ledgerkit-panel")).to_have_count(4)
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield page


@pytest.fixture
def explorer(page: Page) -> Person:
    return Person(page, 0)


def tab(person: Person, title: str) -> Locator:
    panels = person.panel.get_by_role("tablist", name="Panels")
    return panels.get_by_role("tab", name=title, exact=True)


def test_search_links_and_back(explorer: Person):
    """An id in a result opens its own view, and Back returns to where it was."""
    explorer.search("alice.near")
    explorer.answered(ALICE)
    explorer.open("Tokens")
    explorer.picture("marimo_account")
    grid = explorer.panel.get_by_role("grid")
    grid.get_by_role("link", name="moon.near", exact=True).click()
    expect(tab(explorer, "Account")).to_have_attribute("aria-selected", "false")
    expect(explorer.panel).to_contain_text("moon.near")

    explorer.button("Back").click()
    explorer.answered(ALICE)
    expect(tab(explorer, "Account")).to_have_attribute("aria-selected", "true")
    explorer.button("Forward").click()
    expect(tab(explorer, "Account")).to_have_attribute("aria-selected", "false")


def test_the_keyboard_alone_reaches_everything(explorer: Person, page: Page):
    """From the search box to the tabs, a form, its result and the cells of its table."""
    box = explorer.panel.get_by_role("searchbox", name="Search", exact=True)
    box.focus()
    box.fill("")
    page.keyboard.type("carol.near")
    explorer.press("Enter")
    explorer.answered("carol.near on local")
    assert page.evaluate(FOCUSED) == "Search"

    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED) == "Account"
    page.keyboard.press("ArrowRight")
    expect(tab(explorer, "Account")).to_have_attribute("aria-selected", "false")
    assert (
        page.evaluate(FOCUSED)
        == explorer.panel.locator("[aria-label=Panels] [aria-selected=true]").inner_text()
    )
    page.keyboard.press("ArrowLeft")
    expect(tab(explorer, "Account")).to_have_attribute("aria-selected", "true")
    page.wait_for_timeout(1_000)  # the tabs follow at once, their panels with the kernel

    seen = []
    for _ in range(4):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(FOCUSED))
    metadata = "Call contracts for symbols, amounts and stakes"
    assert seen[:3] == ["Account", metadata, "Look up"]
    page.keyboard.press("Home")  # of the tabs of the result, whose open page has stayed
    page.keyboard.press("ArrowRight")
    assert page.evaluate(FOCUSED) == "Activity"


def test_a_table_is_sorted_filtered_and_copied_exactly(page: Page):
    """The largest number keeps its digits in the order, in a filter and on the clipboard."""
    table = page.locator(".lk-table", has_text="Four balances")
    cells = table.locator("tbody tr td:nth-child(2)")
    table.get_by_role("button", name="Exact values").click()
    table.get_by_role("button", name="balance").click()
    expect(cells).to_have_text(["5", str(MOST - 1), str(MOST), ""])
    table.get_by_role("button", name="balance").click()
    expect(cells).to_have_text([str(MOST), str(MOST - 1), "5", ""])

    cells.first.click()
    page.keyboard.press("Control+c")
    expect(table.get_by_role("status").last).to_have_text("copied")
    assert page.evaluate("navigator.clipboard.readText()") == str(MOST)

    table.get_by_role("button", name="Filters").click()
    page.keyboard.press("Tab")
    table.get_by_label("Filter balance").fill(f"> {MOST - 1}")
    expect(cells).to_have_text([str(MOST)])
    with page.expect_download() as download:
        table.get_by_role("button", name="Save as CSV").click()
    assert str(MOST) in download.value.path().read_text(encoding="utf-8")


def test_a_trace_is_walked_with_keys(page: Page):
    """The tree of receipts follows the arrow keys, and its details come from the kernel."""
    person = Person(page, 3)
    tree = person.panel.get_by_role("tree")
    tree.focus()
    page.keyboard.press("Home")
    details = person.panel.get_by_label("Receipt", exact=True)
    expect(details.get_by_role("heading")).to_have_text("ft_transfer_call() on gold.near")
    page.keyboard.press("ArrowDown")
    expect(details.get_by_role("heading")).not_to_have_text("ft_transfer_call() on gold.near")
    person.picture("marimo_trace")
    details.get_by_role("link").first.click()
    expect(person.button("Back")).to_be_enabled()
    person.button("Back").click()
    expect(tree).to_be_visible()


def test_the_tree_of_a_card_keeps_its_indent(page: Page):
    """A receipt stands to the right of the one that created it, as far as its siblings."""
    lines = page.locator(".ledgerkit-trace li > details > summary:has(strong)")
    lines.first.scroll_into_view_if_needed()
    Person(page, 3).picture("marimo_card")
    placed = lines.evaluate_all(INDENTS)
    left, step = placed[0][1], placed[1][1] - placed[0][1]
    assert step >= 20
    assert [(name, (at - left) / step) for name, at in placed] == [
        ("ft_transfer_call", 0),
        ("ft_on_transfer", 1),
        ("refund", 2),
        ("refund", 1),
        ("ft_resolve_transfer", 1),
        ("refund", 2),
    ]


def test_a_secret_leaves_its_field(explorer: Person, page: Page, sent: list[str]):
    """A key is sent to the kernel, and comes back in no message, element or state."""
    tab(explorer, "Network").click()
    explorer.field("API key").press_sequentially(PLANTED)
    explorer.press("Enter")
    explorer.answered("Connected to local: chain localnet")
    expect(explorer.field("API key")).to_have_value("")
    assert any("Connected to local" in frame for frame in sent)
    assert PLANTED not in "".join(sent) + page.content()


def test_the_editor_keeps_its_keys_to_itself(
    watching: Any, browser: Browser, file: Any, tmp_path: Any
):
    """Where cells are edited, letters typed into a panel are text and no command."""
    with serving.marimo(file, tmp_path / "own", "edit") as address, watching(browser) as page:
        page.goto(address)
        expect(page.locator(".ledgerkit-panel")).to_have_count(4)
        person = Person(page, 0)
        box = person.panel.get_by_role("searchbox", name="Search", exact=True)
        box.press_sequentially("alice.near")
        expect(box).to_have_value("alice.near")
        person.press("Enter")
        person.answered(ALICE)
        person.picture("marimo_edit")
