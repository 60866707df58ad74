"""JupyterLab: the answer goes on in the next cell, and a saved notebook holds no key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

import ledgerkit as lk
from tests.browser import serving
from tests.browser.person import TABLE, Person, cells

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

CELLS = [
    'import ledgerkit as lk\nlk.connect("local")\nexplorer = lk.explore()\nexplorer',
    'explorer.account.frames["ft"][["contract_id", "balance"]]',
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
SAVED = "() => !window.jupyterapp.shell.currentWidget.context.model.dirty"
PLANTED = "planted-key-5d20c9e1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with one notebook."""
    made = tmp_path_factory.mktemp("lab")
    serving.write(made / "explorer.ipynb", CELLS)
    return made


@pytest.fixture(scope="module")
def page(
    watching: Any, browser: Browser, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Page]:
    """Open the notebook in JupyterLab, with its first cell run."""
    own = tmp_path_factory.mktemp("lab_own")
    with serving.lab(folder, own) as address, watching(browser) as found:
        found.goto(f"{address}/explorer.ipynb")
        found.wait_for_function(READY)
        run(found, 0)
        found.locator(".ledgerkit-panel:visible").wait_for()
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
    assert person.table() == cells(held.drop(columns="account_id"))

    run(page, 1)
    shown = page.locator(".jp-OutputArea table.dataframe")
    expect(shown).to_be_visible()

    wanted = cells(held[["contract_id", "balance"]].astype({"balance": object}).fillna("<NA>"))
    assert [row[1:] for row in shown.evaluate(TABLE)] == wanted
    person.picture("lab")


def test_a_saved_notebook_holds_no_key(page, folder):
    """The state of all widgets is saved with the notebook, and the key that was typed is not."""
    page.get_by_role("tab", name="Network", exact=True).first.click()
    person = Person(page)
    person.field("API key").press_sequentially(PLANTED)
    person.press("Enter")
    person.answered("Connected to local: chain localnet")
    expect(person.field("API key")).to_have_value("")

    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function(SAVED)
    page.wait_for_timeout(300)

    saved = (folder / "explorer.ipynb").read_text(encoding="utf-8")
    assert '"application/vnd.jupyter.widget-state+json"' in saved
    assert "moon.near" in saved
    assert PLANTED not in saved + page.content()
