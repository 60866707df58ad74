"""JupyterLab: its cells, keys and themes, and what a saved notebook holds without its kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

import ledgerkit as lk
from tests.browser import contrast, serving
from tests.browser.person import GATEWAY, PICTURES, TABLE, TOKENS, Person, cells, serve_pictures

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

CELLS = [
    'import ledgerkit as lk\nlk.connect("local")\nexplorer = lk.explore()\nexplorer',
    'explorer.account.frames["ft"][["contract_id", "balance"]]',
]
VIEWS = [
    'import ledgerkit as lk\nledger = lk.connect("local")\nlk.explore()',
    'lk.show(lk.accounts(["alice.near", "bob.near"]), caption="Two accounts")',
    """\
story = next(tx for tx in ledger.world.summary.transactions if "refunded" in tx.description)
lk.widgets.TransactionExplorer(story.tx_hash, story.signer_id).press()""",
    'lk.widgets.AccountExplorer("No Account").press()',
    f'lk.widgets.NftGallery("alice.near", gateway="{GATEWAY}").press()',
]
READY = """() => {
  const notebook = window.jupyterapp?.shell?.currentWidget
  const session = notebook?.sessionContext
  const idle = session?.isReady && session.session?.kernel?.status === 'idle'
  return idle && notebook.content.activeCell
}"""
RUN = """at => {
  window.jupyterapp.shell.currentWidget.content.activeCellIndex = at
  return window.jupyterapp.commands.execute('notebook:run-cell').then(() => true)
}"""
RESTART = """() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()
  .then(() => true)"""
THEME = "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})"
HAS_THEME = "theme => document.body.dataset.jpThemeName === theme"
OVERFLOW = """() => [...document.querySelectorAll('.ledgerkit-panel')]
  .filter(panel => panel.scrollWidth > panel.clientWidth).map(panel => panel.textContent)"""
SAVED = "() => !window.jupyterapp.shell.currentWidget.context.model.dirty"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("lab")
    serving.write(made / "explorer.ipynb", CELLS)
    serving.write(made / "views.ipynb", VIEWS)
    return made


@pytest.fixture(scope="module")
def address(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving.lab(folder, tmp_path_factory.mktemp("lab_own")) as address:
        yield address


@pytest.fixture(scope="module")
def page(watching: Any, browser: Browser, address: str) -> Iterator[Page]:
    """Open the first notebook, with its first cell run."""
    with watching(browser) as found:
        found.goto(f"{address}/explorer.ipynb")
        found.wait_for_function(READY)
        run(found, 0)
        found.get_by_role("searchbox", name="Search", exact=True).wait_for()
        yield found


@pytest.fixture(scope="module")
def views(watching: Any, browser: Browser, address: str) -> Iterator[Page]:
    """Open the second notebook in a workspace of its own, with all cells run."""
    with watching(browser) as found:
        found.set_viewport_size({"width": 1200, "height": 4000})  # else cells are not drawn
        loaded = serve_pictures(found)
        found.goto(f"{address.removesuffix('/tree')}/workspaces/views/tree/views.ipynb")
        found.wait_for_function(READY)
        found.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
        panels = found.locator(".ledgerkit-panel:visible")
        expect(panels).to_have_count(len(VIEWS))
        person = Person(found, 0)
        person.search("alice.near")
        person.answered("alice.near on local: 7 tokens")
        expect(found.get_by_role("tree")).to_be_visible()
        expect(found.get_by_role("img", name="Lighthouse")).to_be_visible()
        assert loaded == [f"{GATEWAY}/demo/17.svg", f"{GATEWAY}/demo/A-1.svg"]
        yield found


def run(page: Page, at: int) -> None:
    """Run a cell, as its menu does; keys would be lost while the page still settles."""
    page.evaluate(RUN, at)


def test_the_next_cell_goes_on_with_the_frame(page, local):
    """What a panel shows is a frame in the kernel, to the last digit."""
    outputs = page.locator(".jp-OutputArea")
    outputs.get_by_role("tab", name="Account", exact=True).first.click()
    person = Person(page)
    person.enter("Account", "alice.near")
    person.answered("alice.near on local: 7 tokens")
    person.open("Tokens")
    held = lk.ft("alice.near", metadata=True, ledger=local)
    assert person.grid() == cells(held[TOKENS])

    run(page, 1)
    shown = page.locator(".jp-OutputArea table.dataframe")
    expect(shown).to_be_visible()

    wanted = cells(held[["contract_id", "balance"]].astype({"balance": object}).fillna("<NA>"))
    assert [row[1:] for row in shown.evaluate(TABLE)] == wanted
    person.picture("lab")


def test_plain_keys_leave_the_notebook_as_it_is(page):
    """On a tab, a table or a tree, no key adds, deletes or leaves a cell, as it does in Lab."""
    cells = "window.jupyterapp.shell.currentWidget.content"
    state = f"() => [{cells}.widgets.length, {cells}.activeCellIndex]"
    panel = page.locator(".ledgerkit-panel:visible").first
    search = panel.get_by_role("searchbox", name="Search", exact=True)
    search.fill(page_transaction())
    search.press("Enter")
    tree = panel.get_by_role("tree")
    tree.wait_for()
    before = page.evaluate(state)

    for place in (tree, panel.get_by_role("tab", name="Trace"), panel.get_by_role("tab").first):
        place.focus()
        for key in ("a", "b", "d", "d", "ArrowDown", "j"):
            page.keyboard.press(key)

    assert page.evaluate(state) == before


def page_transaction() -> str:
    with lk.connect("local", make_default=False) as ledger:
        return ledger.world.summary.transactions[0].tx_hash


def test_keys_belong_to_the_panel(page):
    """Enter and Space on a tab, a button and a link act there, and no key is a cell's command."""
    run(page, 0)
    page.get_by_role("link", name="bob.near", exact=True).wait_for()  # of the new explorer
    person = Person(page)
    count = page.locator(".jp-Cell").count()
    person.search("alice.near")
    person.answered("alice.near on local: 7 tokens")
    for key in ("Tab", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    page.wait_for_timeout(1_000)  # the tabs follow at once, their panels with the kernel
    panels = page.get_by_role("tablist", name="Panels")
    expect(panels.get_by_role("tab", selected=True)).to_have_text("Account")
    expect(panels.get_by_role("tab", selected=True)).to_be_focused()
    page.keyboard.type("abxdd")
    expect(page.locator(".jp-Cell")).to_have_count(count)

    person.type("Account", "bob.near")
    for key in ("Tab", "Tab"):
        page.keyboard.press(key)
    expect(person.button("Look up")).to_be_focused()
    person.press("Enter")
    person.answered("bob.near on local")
    person.button("Back").focus()
    person.press("Enter")
    person.answered("alice.near on local")
    person.open("Tokens")
    person.panel.get_by_role("link", name="gold.near", exact=True).focus()
    page.keyboard.press("Enter")
    expect(panels.get_by_role("tab", selected=True)).not_to_have_text("Account")


@pytest.mark.parametrize("theme", ["JupyterLab Dark", "JupyterLab Light"])
@pytest.mark.parametrize("width", [1200, 600])
def test_texts_have_contrast_in_both_themes(views, theme, width):
    """Each text of an account, a table, a trace and an error has a contrast of 4.5:1, and fits."""
    views.set_viewport_size({"width": width, "height": 4000})
    views.evaluate(THEME, theme)
    views.wait_for_function(HAS_THEME, arg=theme)
    views.wait_for_timeout(500)
    views.screenshot(path=PICTURES / f"lab_{theme.split()[1].lower()}_{width}.png")
    panels = views.locator(".ledgerkit-panel:visible")
    assert [text for panel in panels.all() for text in contrast.too_low(panel)] == []
    assert views.evaluate(OVERFLOW) == []
    if width == 1200:  # the other pages of the account, of which one has filters
        pages = panels.first.get_by_role("tablist", name="Pages of the result")
        pages.get_by_role("tab", name="Tokens", exact=True).click()
        panels.first.get_by_role("button", name="Filters").locator("visible=true").click()
        assert contrast.too_low(panels.first) == []


def test_a_notebook_without_its_kernel_shows_the_content(views, folder, watching, browser, address):
    """Who opens a saved notebook sees what the panels showed, and loads no picture by it."""
    views.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    views.wait_for_function(SAVED)
    copied = folder / "reopened.ipynb"
    copied.write_bytes((folder / "views.ipynb").read_bytes())
    with watching(browser) as page:
        page.set_viewport_size({"width": 1200, "height": 4000})
        page.goto(f"{address.removesuffix('/tree')}/workspaces/reopened/tree/reopened.ipynb")
        page.wait_for_function(READY)
        panels = page.locator(".jp-OutputArea .ledgerkit-panel .ledgerkit-panel:visible")
        expect(panels).to_have_count(len(VIEWS))
        page.screenshot(path=PICTURES / "lab_reopened.png")
        expect(panels.nth(1)).to_contain_text("alice.near")
        expect(panels.nth(2)).to_contain_text("ft_on_transfer")
        expect(panels.nth(3).get_by_role("alert")).to_contain_text("No Account")
        host = GATEWAY.split("/")[2]
        pictures = panels.nth(4).get_by_role("button", name=f"Load picture from {host}")
        expect(pictures).to_have_count(2)  # a request that nobody asked for would fail the check
        expect(page.locator(".jp-OutputArea")).not_to_contain_text(["Error displaying widget"])


def test_a_restarted_kernel_shows_no_data_under_another_name(folder, watching, browser, address):
    """A panel says at once that its kernel is gone, and hides the account that it showed."""
    serving.write(folder / "restarted.ipynb", VIEWS[:1])
    with watching(browser) as page:
        page.goto(f"{address.removesuffix('/tree')}/workspaces/restarted/tree/restarted.ipynb")
        page.wait_for_function(READY)
        run(page, 0)
        person = Person(page, 0)
        person.search("bob.near")
        person.answered("bob.near on local")
        notice = page.get_by_text("The kernel does not answer")
        expect(notice).to_be_hidden()
        page.evaluate(RESTART)
        expect(notice).to_be_visible(timeout=5_000)  # sooner than a view that waits in silence
        person.type("Account", "dave.near")
        expect(page.locator(".lk-pages")).to_be_hidden()
        expect(page.locator(".lk-message")).to_be_hidden()
        run(page, 0)
        person.search("dave.near")
        person.answered("dave.near on local")
        expect(notice).to_be_hidden()
