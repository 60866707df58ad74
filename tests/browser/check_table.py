"""A table in a page: digits through display, sort, filter, copy and files; keyboard."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

import ledgerkit as lk
from tests import hostile
from tests.browser.person import PICTURES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Locator, Page

MOST = 2**128 - 1
SUM = lk.units.from_units("0.1", 18) + lk.units.from_units("0.2", 18)
BALANCES = [5, MOST, SUM, SUM + 1, MOST - 1, None]
FRAME = f"""\
import pandas as pd
import ledgerkit as lk
frame = pd.DataFrame({{
    "account_id": ["a.near", "b.near", "c.near", "d.near", "e.near", "f.near"],
    "balance": pd.Series({BALANCES}, dtype="u128"),
    "decimals": pd.array([0, 0, 18, 18, 0, 0], dtype="Int64"),
    "symbol": ["WHOLE", "WHOLE", "GOLD", "GOLD", "WHOLE", "WHOLE"],
}})
lk.show(frame, caption="Six balances")"""
LONG = """\
import numpy as np
rows = pd.DataFrame({"n": np.arange(100_000)[::-1], "word": ["even", "odd"] * 50_000})
lk.show(rows)"""
HOSTILE = """\
from tests import hostile
texts = list(hostile.TEXTS.values())
data = {hostile.MARKUP: texts, "account_id": texts, "lists": [[text] for text in texts]}
lk.show(pd.DataFrame(data), caption=hostile.MARKUP)"""


@pytest.fixture(scope="module")
def page(opened: Any) -> Iterator[Page]:
    with opened("table", [FRAME, LONG, HOSTILE]) as page:
        expect(page.locator(".lk-table")).to_have_count(3)
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield page


def table(page: Page, number: int) -> Locator:
    return page.locator(".lk-table").nth(number)


def column(page: Page, number: int, position: int) -> list[str]:
    texts: list[str] = (
        table(page, number).locator(f"tbody tr td:nth-child({position + 1})").all_inner_texts()
    )
    return [text.removesuffix("⧉").strip() for text in texts]


def settled(page: Page, number: int) -> None:
    """Wait until a table shows what was requested last."""
    page.wait_for_timeout(400)  # the pause after which typing becomes a request
    expect(table(page, number)).not_to_have_attribute("aria-busy", "true")


def test_every_digit_survives_the_page(page: Page):
    """2^128 - 1 and 0.1 + 0.2 in tokens are shown, sorted, filtered and copied exactly."""
    first = table(page, 0)
    shown = column(page, 0, 1)
    assert shown[1:3] == ["340,282,366,920,938,463,463,374,607,431,768,211,455 WHOLE", "0.3 GOLD"]
    first.get_by_role("button", name="Exact values").click()
    exact = ["" if value is None else str(value) for value in BALANCES]
    assert column(page, 0, 1) == exact
    first.locator("th button", has_text="balance").click()
    expect(first.locator("th[aria-sort=ascending]")).to_have_count(1)
    present = sorted(value for value in BALANCES if value is not None)
    assert column(page, 0, 1) == [*map(str, present), ""]
    first.locator("th button", has_text="balance").click()
    expect(first.locator("th[aria-sort=descending]")).to_have_count(1)
    assert column(page, 0, 1) == [*map(str, reversed(present)), ""]
    first.locator("tbody td").nth(1).click()
    page.keyboard.press("Control+c")
    expect(first.get_by_text("copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == str(MOST)
    first.get_by_role("button", name="Filters").click()
    filters: dict[str, list[int | None]] = {
        f"= {MOST} units": [MOST],
        f"> {MOST - 1} whole": [MOST],
        "= 0.3 GOLD": [SUM],
        "> 0.3 GOLD": [SUM + 1],
        "0.30 gold": [SUM + 1, SUM],
        f"{str(MOST)[5:]}": [MOST],
        "empty": [None],
    }
    for text, rows in filters.items():
        first.get_by_label("Filter balance").fill(text)
        settled(page, 0)
        assert column(page, 0, 1) == ["" if row is None else str(row) for row in rows], text
    first.get_by_label("Filter balance").fill("> five")
    expect(first.get_by_role("alert")).to_contain_text("filter of balance")
    expect(first.get_by_label("Filter balance")).to_have_attribute("aria-invalid", "true")
    expect(first.get_by_role("status").first).to_have_text(
        "1 of 6 rows, as before the refused entry"
    )
    page.screenshot(path=PICTURES / "table_refused.png", full_page=True)
    first.get_by_label("Filter balance").fill("")
    settled(page, 0)
    expect(first.get_by_role("alert")).to_have_count(0)
    expect(first.get_by_role("status").first).to_have_text("6 rows")
    page.screenshot(path=PICTURES / "table.png", full_page=True)


def test_bare_numbers_and_the_order_are_those_on_the_screen(page: Page):
    """`> 0.25` means tokens as they are shown, and with exact values smallest units."""
    first = table(page, 0)
    exact = first.get_by_role("button", name="Exact values")
    exact.click()
    settled(page, 0)
    first.get_by_label("Filter balance").fill("0.25..5")
    settled(page, 0)
    expect(first.get_by_role("status").first).to_have_text("3 of 6 rows")
    exact.click()
    settled(page, 0)
    assert column(page, 0, 1) == ["5"]
    first.get_by_label("Filter balance").fill("")
    settled(page, 0)
    expect(first.get_by_role("status").first).to_have_text("6 rows")


def test_filters_do_what_their_placeholder_promises(page: Page):
    """`> 100` and `1..5` are of what is shown; `abc` is refused, and the rows marked as old."""
    first = table(page, 0)
    field, exact = first.get_by_label("Filter balance"), first.get_by_role("button", name="Exact")
    expect(field).to_have_attribute("placeholder", "> 100 or 1..5")
    most = f"{MOST:,} WHOLE"
    wanted = {  # what is shown, and its exact value; a token has 10^18 smallest units
        ("> 100", "false"): [most, f"{MOST - 1:,} WHOLE"],
        ("1..5", "false"): ["5 WHOLE"],
        ("> 100", "true"): [str(MOST), str(MOST - 1), str(SUM + 1), str(SUM)],
        ("1..5", "true"): ["5"],
    }
    for (text, is_exact), rows in wanted.items():
        if exact.get_attribute("aria-pressed") != is_exact:
            exact.click()
        field.fill(text)
        settled(page, 0)
        assert column(page, 0, 1) == rows, text
    field.fill("abc")
    settled(page, 0)
    expect(first.get_by_role("alert")).to_contain_text("filter of balance 'abc' is not valid")
    expect(first).to_have_class("lk-table lk-old")
    assert column(page, 0, 1) == ["5"]
    field.fill("")
    settled(page, 0)
    expect(first).to_have_class("lk-table")


def test_the_whole_header_sorts_and_menus_close(page: Page):
    """A click beside the name sorts too, and a menu closes when somebody goes on."""
    first = table(page, 0)
    head = first.get_by_role("columnheader", name="symbol")
    box = head.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2)
    expect(head).to_have_attribute("aria-sort", "ascending")
    page.mouse.click(box["x"] + 2, box["y"] + box["height"] / 2)
    expect(head).to_have_attribute("aria-sort", "descending")
    menu = first.locator("details.lk-columns")
    menu.locator("summary").click()
    menu.locator("label", has_text="decimals").click()
    settled(page, 0)
    expect(menu).to_have_attribute("open", "")
    expect(first.get_by_role("columnheader")).to_have_count(3)
    menu.locator("label", has_text="decimals").click()
    first.locator("caption").click()
    expect(menu).not_to_have_attribute("open", "")
    for order in ("ascending", "descending"):
        first.locator("th button", has_text="balance").click()
        expect(first.locator(f"th[aria-sort={order}]")).to_have_count(1)


def test_saved_files_have_every_digit(page: Page, tmp_path: Path):
    """CSV and Parquet files that a click saves have the selected rows, with every digit."""
    first = table(page, 0)
    saved = {}
    for label, text in (("CSV", "whole"), ("Parquet", "gold")):
        first.get_by_label("Search all columns").fill(text)
        settled(page, 0)
        with page.expect_download() as download:
            first.get_by_role("button", name=f"Save as {label}").click()
        saved[label] = tmp_path / download.value.suggested_filename
        download.value.save_as(saved[label])
    first.get_by_label("Search all columns").fill("")
    settled(page, 0)
    rows = list(csv.DictReader(io.StringIO(saved["CSV"].read_text(encoding="utf-8"))))
    assert [row["balance"] for row in rows] == [str(MOST), str(MOST - 1), "5", ""]
    assert lk.read_parquet(saved["Parquet"])["balance"].tolist() == [SUM + 1, SUM]


def test_the_keyboard_is_enough(page: Page):
    """Arrow keys reach every cell, Enter sorts, Page Down turns the page; Tab leaves the grid."""
    second = table(page, 1)
    second.get_by_label("Search all columns").focus()
    for _ in range(5):  # Filters, Columns, Exact values, CSV, Parquet
        page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    focused = second.locator(":focus")
    assert focused.inner_text() == "99999"
    page.keyboard.press("ArrowRight")
    assert focused.inner_text() == "even"
    page.keyboard.press("PageDown")
    expect(second.get_by_role("status").first).to_contain_text("Rows 26 to 50 of 100,000")
    assert focused.inner_text() in ("even", "odd")
    page.keyboard.press("Control+Home")
    assert focused.inner_text().startswith("n")
    page.keyboard.press("Enter")
    expect(second.locator("th[aria-sort=ascending]")).to_contain_text("n")
    assert column(page, 1, 0)[:3] == ["0", "1", "2"]
    assert second.locator("th :focus").count() == 1
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(second.locator("th[aria-sort=ascending]")).to_contain_text("word")
    page.keyboard.press("Tab")
    assert focused.inner_text() in ("Next", "First")


def test_the_page_does_not_see_plain_keys(page: Page):
    """JupyterLab acts on plain keys, such as "a" for a new cell: none leaves the table."""
    page.evaluate("document.addEventListener('keydown', event => { window.lastKey = event.key })")
    table(page, 1).locator("tbody td").first.click()
    for key in ("a", "ArrowDown", "Enter", "Shift+Enter"):
        page.keyboard.press(key)
    assert page.evaluate("window.lastKey") is None
    page.keyboard.press("Control+m")
    assert page.evaluate("window.lastKey") == "m"
    table(page, 1).get_by_role("button", name="Close").click()


def test_a_page_of_many_rows(page: Page):
    """The last page of 100,000 rows comes from the kernel, and only its rows are in the page."""
    second = table(page, 1)
    second.get_by_role("button", name="Last").click()
    expect(second.get_by_role("status").first).to_contain_text("Rows 99,976 to 100,000 of 100,000")
    assert second.locator("tbody tr").count() == 25
    assert second.locator("table").get_attribute("aria-rowcount") == "100002"


def test_hostile_texts_are_text(page: Page):
    """Markup in names, values and captions is read, not run, also in the whole text of a cell."""
    third = table(page, 2)
    assert hostile.MARKUP in third.locator("caption").inner_text()
    for button in third.get_by_role("button", name="whole text").all():
        button.click()
        expect(third.locator(".lk-detail pre")).to_be_visible()
        third.get_by_role("button", name="Close").click()
    assert page.evaluate(hostile.RAN) is None
    tags = third.locator("*").evaluate_all(
        "all => [...new Set(all.map(one => one.closest('.lk-copy') ? 'copy' : one.localName))]"
    )
    assert set(tags) & {"script", "img", "svg", "b", "u", "iframe", "form"} == set()
