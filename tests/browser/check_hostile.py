"""Texts that would run if a page took them for markup, in every panel and card: they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests import hostile
from tests.browser import serving
from tests.browser.check_lab import READY
from tests.browser.person import NEWS, Person

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

WORLD = """\
import json
import httpx
import ledgerkit as lk
from IPython.display import HTML, display
from ledgerkit import client
from tests import hostile
made = hostile.world()
ledger = made.ledger
host = lk.connect("lab", transport=httpx.MockTransport(hostile.answer))
client.connect = lambda *_, **__: host  # as the panel of networks connects
w = lk.widgets

def viewer(name):
    return w.ContractViewer("trap.near", "answer", json.dumps({"name": name}), ledger=ledger)

def archived(collection):
    return lk.archiving.archive_widget(
        "near", "Clock", "near", source=ledger, target=ledger, collection=collection,
        signer=lk.signer("near", ledger.world.keys()["near"]), title=hostile.MARKUP,
    )

def press(*panels):
    for panel in panels:
        display(panel.press())"""
FRAGMENTS = ", ".join(
    [
        *("hostile.LONGEST_ID", "hostile.IMPLICIT_ID", "hostile.ETHEREUM_ID"),
        *("'near'", "'aa'", "hostile.MARKUP", "hostile.BREAKS_OUT"),
    ]
)
PANELS = [
    f"press(*(w.AccountExplorer(one, ledger=ledger) for one in ({FRAGMENTS})))",
    "press(*(viewer(name) for name in hostile.ANSWERS))",
    'press(*(w.NftGallery("near", f"{n}.near", ledger=ledger) for n in hostile.TEXTS))',
    'press(*(w.ContractViewer(f"{n}.near", "ft_metadata", ledger=ledger) for n in hostile.TEXTS))',
    """sent = [made.logged, made.odd, made.unknown, made.gone, made.formula]
press(*(w.TransactionExplorer(one.tx_hash, "near", ledger=ledger) for one in sent))""",
    """press(
    w.AccountExplorer("a.near", details=False, ledger=host),
    w.KeyLookup("ed25519:" + "1" * 32, ledger=host),
    w.NetworkPicker("testnet"),
    w.StakingExposure(["near", hostile.LONGEST_ID], nonzero=True, ledger=ledger),
    w.StakingExposure([hostile.MARKUP], ledger=ledger),
    w.ContractViewer("trap.near", "refuse", ledger=ledger),
    w.ContractViewer("trap.near", hostile.MARKUP, hostile.MARKUP, ledger=ledger),
    w.TransactionExplorer(hostile.MARKUP, hostile.MARKUP, ledger=ledger),
    w.NftGallery(hostile.MARKUP, hostile.MARKUP, ledger=ledger),
    w.SendForm(hostile.MARKUP, hostile.MARKUP, hostile.MARKUP, ledger=ledger),
    w.ArchiveFlow("near", "Clock", "near", "stamps.near", "near", ledger=ledger),
    w.ArchiveFlow("near", "Clock", "near", "refusing.near", "near", ledger=ledger),
    w.ArchiveFlow(*[hostile.MARKUP] * 5, ledger=ledger),
)
form = w.SendForm("near", "trap.near", method_name="spring",
    args=json.dumps({"bait": hostile.MARKUP}), ledger=ledger).press()
form.submit()
display(form)""",
    "explorer = lk.explore(ledger=ledger)\nexplorer",
]
CARDS = """\
done = archived("stamps.near")
checked = lk.archiving.verify_archive(done, source=ledger, target=ledger, collection="stamps.near")
sent = [made.logged, made.odd, made.unknown, made.gone, made.formula]
cards = [
    lk.snapshot("near", ledger=ledger), lk.snapshot("a.near", ledger=host), *sent,
    *(lk.trace(one.tx_hash, "near", ledger=ledger) for one in sent),
    done, archived("refusing.near"), checked,
]
display(*cards)"""
STATIC = """\
panels = [w.NftGallery("near", ledger=ledger), *(viewer(name) for name in hostile.TEXTS),
    w.TransactionExplorer(made.formula.tx_hash, "near", ledger=ledger),
    w.AccountExplorer("a.near", details=False, ledger=host)]
display(*(HTML(panel.press().static()) for panel in panels))"""
N_PANELS = 7 + len(hostile.ANSWERS) + 2 * len(hostile.TEXTS) + 5 + 14
COUNT = N_PANELS + 1 + 1  # the explorer, and the last line
DONE = 'display(HTML("<p id=done class=ledgerkit-panel>done</p>"))'
DRAWN = "[src^='data:image/png;base64,']"  # by the panel itself
OURS = ".ledgerkit-panel, .jp-OutputArea-output"
ACTIVE = f"""() => [...document.querySelectorAll("{OURS}")].flatMap(one =>
  [...one.querySelectorAll("script, svg[onload], iframe, object, embed, link, base, meta, form, *")]
    .filter(e => !e.closest(".jp-InputArea, .lm-TabBar") && (
      ["SCRIPT", "IFRAME", "OBJECT", "EMBED", "LINK", "BASE", "META"].includes(e.tagName)
      || [...e.attributes].some(a => /^on/i.test(a.name) || /^\\s*javascript:/i.test(a.value))
      || e.tagName.toLowerCase().startsWith("mjx-") || e.classList.contains("MathJax")))
    .map(e => e.outerHTML.slice(0, 200)))"""
SLOWEST_MS = 10_000


def harmless(page: Page) -> None:
    """Check that nothing of the chain ran, and that nothing of it could."""
    page.wait_for_timeout(500)
    assert page.evaluate(hostile.RAN) is None
    assert page.evaluate(ACTIVE) == []
    assert page.locator(f".ledgerkit-panel img:not({DRAWN})").count() == 0


@pytest.fixture(scope="module")
def page(opened: Any) -> Iterator[Page]:
    with opened("hostile", [WORLD, *PANELS, DONE]) as found:
        found.locator("#done").wait_for()
        expect(found.locator(".ledgerkit-panel")).to_have_count(COUNT, timeout=90_000)
        yield found


def test_panels_only_show_texts(page):
    """No script ran and no picture was tried, on any page of any answer; all of them answered."""
    shown = page.locator(".ledgerkit-panel").all_text_contents()
    assert sum(hostile.MARKUP in text for text in shown) > len(hostile.TEXTS)
    assert not any("Working…" in text or "Loading…" in text for text in shown)

    for tab in page.get_by_role("tab").all():
        if tab.is_visible():
            tab.click()

    harmless(page)
    page.set_viewport_size({"width": 1200, "height": 6_000})
    Person(page).picture("hostile")
    page.set_viewport_size({"width": 1200, "height": 900})


def test_a_panel_goes_on_after_hostile_answers(page):
    """A megabyte is cut with a mark, a wrong text is refused, and each next question answered."""
    person = Person(page)
    person.panel = page.locator(".lk-explorer")
    person.panel.get_by_role("tab", name="Contract", exact=True).click()
    person.status = person.panel.locator(NEWS).first
    person.type("Contract", "trap.near")
    person.type("Method", "answer")
    for name in ("megabyte", "numbers", "columns", "diagonal", "levels"):
        person.field("Arguments").fill('{"name": "' + name + '"}')
        person.press("Enter")
        expect(person.status).to_contain_text("returned a result.", timeout=SLOWEST_MS)
        expect(person.panel).to_contain_text("… and ")
    person.field("Method").fill(hostile.MARKUP)
    person.press("Enter")
    expect(person.status).to_contain_text("does not have the method")
    expect(person.status).to_contain_text(hostile.MARKUP)

    harmless(page)


def test_cards_only_show_texts(opened):
    """What a notebook shows of results, and of panels without a front end, is read as it is."""
    with opened("cards", [WORLD, CARDS, STATIC, DONE]) as page:
        page.locator("#done").wait_for()
        page.wait_for_timeout(2_000)  # as long as formulas take to be drawn
        text = page.locator("body").inner_text()
        assert text.count(hostile.MARKUP) > len(hostile.TEXTS)
        assert hostile.FORMULA in text

        harmless(page)
        page.set_viewport_size({"width": 1200, "height": 4_000})
        Person(page).picture("hostile_cards")


def test_cards_only_show_texts_in_lab(watching, browser: Browser, tmp_path):
    """JupyterLab reads formulas in HTML; those of the chain stay letters there."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    serving.write(folder / "cards.ipynb", [WORLD, CARDS, STATIC, DONE])
    with serving.lab(folder, tmp_path / "own") as address, watching(browser) as page:
        page.goto(f"{address}/cards.ipynb")
        page.wait_for_function(READY)
        page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
        page.locator("#done").wait_for(state="attached")
        page.wait_for_timeout(3_000)
        text = page.locator(".jp-OutputArea").all_inner_texts()
        assert any(hostile.FORMULA in one for one in text)

        harmless(page)
        Person(page).picture("hostile_lab")
