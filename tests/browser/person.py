"""Somebody in front of a page: reads what stands there, types, presses keys and clicks."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page, Route

PICTURES = Path(__file__).resolve().parents[2] / "build" / "browser"
LONGEST = 100  # characters of a cell
TOKENS = (
    "contract_id balance status symbol last_update_block_height decimals metadata_status".split()
)
GATEWAY = "https://gateway.example/ipfs"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
TRIES = 3  # to type a text
TABLE = "t => [...t.rows].map(row => [...row.cells].map(cell => cell.textContent))"
GRID = """t => {
  const texts = row => [...row.cells].map(cell => cell.textContent.trim())
  return [texts(t.tHead.rows[0]), ...[...t.tBodies[0].rows].map(texts)]
}"""
NEWS = "[role=status]:not([data-old], .lk-silent), [role=alert]:not([data-old])"
AGE = "all => all.forEach(one => { one.dataset.old = 'yes' })"
FAR = """milliseconds => {
  window.plainSend ??= WebSocket.prototype.send
  const send = window.plainSend
  WebSocket.prototype.send = function (data) {
    milliseconds ? setTimeout(() => send.call(this, data), milliseconds) : send.call(this, data)
  }
}"""
FOCUS = """() => {
  const at = document.activeElement
  const label = at.labels && at.labels.length ? at.labels[0] : at
  return label.textContent.trim()
}"""


class Person:
    """
    One person, who sees the panel of one page, or of its open tab.

    Parameters
    ----------
    page
        The page.
    at
        The number of the panel, on a page of several.
    """

    def __init__(self, page: Page, at: int | None = None) -> None:
        self.page = page
        panels = page.locator(".ledgerkit-panel:visible")
        self.panel = panels if at is None else panels.nth(at)
        self.status = self.panel.locator(NEWS).first
        self.tables = self.panel.locator("table:visible")

    # Acting ---------------------------------------------------------------------------------

    def field(self, label: str) -> Locator:
        return self.panel.get_by_label(label, exact=True)

    def button(self, name: str) -> Locator:
        return self.panel.get_by_role("button", name=name, exact=True)

    def type(self, label: str, text: str) -> None:
        """Type a text in place of what stood there, letter by letter, and look at it."""
        field = self.field(label)
        for _ in range(TRIES):  # a value that the kernel sent before may arrive in between
            field.fill("")
            field.press_sequentially(text)
            if field.input_value() == text:
                return
        expect(field).to_have_value(text)

    def enter(self, label: str, text: str) -> None:
        self.type(label, text)
        self.press("Enter")

    def press(self, key: str) -> None:
        """Press a key; what the panels said before is no answer to it."""
        self.page.locator(NEWS).evaluate_all(AGE)
        self.page.keyboard.press(key)

    def click(self, name: str, times: int = 1) -> None:
        """Click a button; what the panels said before is no answer to it."""
        self.page.locator(NEWS).evaluate_all(AGE)
        self.button(name).click(click_count=times)

    def open(self, title: str) -> None:
        pages = self.panel.get_by_role("tablist", name="Pages of the result")
        pages.get_by_role("tab", name=title, exact=True).click()

    def search(self, text: str) -> None:
        """Type into the search box of the explorer, and press Enter."""
        box = self.page.get_by_role("searchbox", name="Search", exact=True)
        box.fill(text)
        self.page.locator(NEWS).evaluate_all(AGE)
        box.press("Enter")

    def tab_keys(self, first: str, count: int) -> list[str]:
        """Press Tab from a field on, and tell where the keyboard is each time."""
        self.field(first).focus()
        seen = []
        for _ in range(count):
            self.page.keyboard.press("Tab")
            seen.append(self.page.evaluate(FOCUS))
        return seen

    def moves_away(self, milliseconds: int) -> None:
        """Let what is sent to the kernel arrive later; 0 is near again."""
        self.page.evaluate(FAR, milliseconds)

    # Reading --------------------------------------------------------------------------------

    def sees(self, sentence: str) -> None:
        """Wait until the panel says this."""
        expect(self.status).to_contain_text(sentence)

    def answered(self, sentence: str) -> None:
        """Wait until the panel says this, and is ready for the next question."""
        self.sees(sentence)
        expect(self.button("Cancel")).to_be_disabled()

    def rests(self, name: str) -> None:
        """Wait until the panel is ready for the next question."""
        expect(self.button(name)).to_be_enabled()
        expect(self.button("Cancel")).to_be_disabled()

    def titles(self) -> list[str]:
        """Read the titles of the answer's pages."""
        pages = self.panel.get_by_role("tablist", name="Pages of the result")
        return pages.get_by_role("tab").all_inner_texts()

    def grid(self) -> list[list[str]]:
        """Read the one table of rows that can be seen, with its exact values."""
        exact = self.panel.get_by_role("button", name="Exact values").locator("visible=true")
        expect(exact).to_have_count(1)
        if exact.get_attribute("aria-pressed") == "false":
            exact.click()
        rows: list[list[str]] = self.panel.locator("[role=grid]:visible").evaluate(GRID)
        return rows

    def table(self) -> list[list[str]]:
        expect(self.tables).to_have_count(1)
        found: list[list[str]] = self.tables.evaluate(TABLE)
        return found

    def facts(self) -> dict[str, str]:
        return dict(self.table())

    def picture(self, name: str) -> None:
        self.page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


def serve_pictures(page: Page) -> list[str]:
    """Answer what is loaded from the gateway; return the list that the addresses go to."""
    loaded: list[str] = []

    def answer(route: Route) -> None:
        loaded.append(route.request.url)
        route.fulfill(body=PIXEL, content_type="image/png")

    page.route(f"{GATEWAY}/**", answer)
    return loaded


def cells(frame: pd.DataFrame) -> list[list[str]]:
    """Return the rows of a frame as a page should show them."""
    rows = zip(*(frame[name].tolist() for name in frame), strict=True)
    return [list(frame.columns), *([cell_text(value) for value in row] for row in rows)]


def cell_text(value: Any) -> str:
    """Return the text of a value as a page should show it."""
    line = " ".join(plain(value).split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def plain(value: Any) -> str:
    """Format a value as text: lists and objects as JSON, floats to ten digits."""
    if isinstance(value, list | dict):
        return json.dumps(value)
    if value is None or pd.isna(value):
        return ""
    return f"{value:.10g}" if isinstance(value, float) else str(value)
