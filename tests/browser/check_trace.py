"""The view of a trace in Chromium: by mouse and keys, 300 and 10,000 receipts, hostile texts."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

import ledgerkit as lk
from ledgerkit import units
from ledgerkit.tracing.trace import Trace
from ledgerkit.widgets import _window
from ledgerkit.widgets._trace_view import TraceView
from tests import hostile
from tests.browser.person import PICTURES
from tests.unit import builders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Locator, Page

SWAP = "a swap that is refunded: the exchange is paused"
HAS_DETAILS = """() => document.querySelector('[aria-selected=true]')
  .getAttribute('aria-label').startsWith(document.querySelector('#host h5').textContent)"""


class Opened:
    """A page with the view of a trace."""

    def __init__(self, page: Page, view: TraceView) -> None:
        self.page, self.view = page, view
        self.opened: list[tuple[str, str]] = []
        self.tree = page.get_by_role("tree")
        self.details = page.get_by_label("Receipt", exact=True)

    def row(self, text: str) -> Locator:
        return self.tree.get_by_role("treeitem").filter(has_text=text)

    def selected(self) -> str:
        """Return the selected row, as a screen reader announces it."""
        name = self.tree.get_attribute("aria-activedescendant")
        return str(self.page.locator(f"#{name}").get_attribute("aria-label"))

    def press(self, *keys: str) -> None:
        for key in keys:
            self.tree.press(key)

    def picture(self, name: str) -> None:
        self.page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


@pytest.fixture
def shown(browser: Browser, watching: Any) -> Any:
    """Return what opens the view of a trace on a page of its own."""

    @contextmanager
    def show(view: TraceView) -> Iterator[Opened]:
        with watching(browser) as page:
            page.set_viewport_size({"width": 1200, "height": 1000})
            opened = Opened(page, view)
            page.expose_function(
                "answer", lambda message: json.loads(json.dumps(view.handle(message)))
            )
            page.expose_function("opened", lambda *target: opened.opened.append(target))
            style = _window._read("style.css")
            host = "<div id=host class='ledgerkit'></div>"
            page.set_content(f"<!doctype html><style>{style}</style>{host}")
            module = f"{_window.javascript()}\nwindow.renderTrace = renderTrace"
            page.add_script_tag(type="module", content=module)
            page.wait_for_function("() => window.renderTrace")
            page.evaluate(
                "payload => renderTrace(host, payload, {request: answer, open: opened})",
                json.loads(json.dumps(view.describe())),
            )
            yield opened

    return show


@pytest.fixture(scope="module")
def swap() -> Iterator[TraceView]:
    """Trace the swap that the demo's exchange refuses."""
    with lk.connect("local") as ledger:
        stories = ledger.world.summary.transactions
        story = next(tx for tx in stories if tx.description == SWAP)
        yield TraceView(lk.trace(story.tx_hash, story.signer_id, ledger=ledger))


def test_the_failed_receipt_opens_with_its_remedy(shown: Any, swap: TraceView):
    """The badge, the tree and the details agree about what failed, and say what to do."""
    with shown(swap) as view:
        expect(view.page.get_by_text("! succeeded, but receipts failed")).to_be_visible()
        assert view.selected() == "ft_on_transfer() on dex.near, failed, 1.95 Tgas"
        expect(view.details).to_contain_text("Smart contract panicked: the contract is paused")
        expect(view.details).to_contain_text("What to do: Do what the contract's message asks")
        view.picture("trace")


def test_clicks_select_receipts_and_open_ids(shown: Any, swap: TraceView):
    """A row, a link to another receipt and a bar of the timeline select; an id opens its view."""
    with shown(swap) as view:
        view.row("ft_transfer_call()").click()
        expect(view.details).to_contain_text('"receiver_id": "dex.near"')
        expect(view.details).to_contain_text("150 Tgas")
        view.details.get_by_role("button", name="ft_resolve_transfer()").click()
        expect(view.details.get_by_role("heading")).to_have_text(
            "ft_resolve_transfer() on gold.near"
        )
        assert view.selected().startswith("ft_resolve_transfer() on gold.near, succeeded")
        view.page.locator(".lk-box.lk-tone-bad").click()
        expect(view.details.get_by_role("heading")).to_have_text("ft_on_transfer() on dex.near")
        view.details.get_by_role("link", name="dex.near").first.click()
        assert view.opened == [("account", "dex.near")]


def test_the_tree_is_walked_with_keys_alone(shown: Any, swap: TraceView):
    """Arrows, Home, End and Enter move, fold and unfold as in any tree."""
    with shown(swap) as view:
        view.tree.focus()
        view.press("Home")
        assert view.selected().startswith("ft_transfer_call() on gold.near")
        view.press("ArrowLeft")
        expect(view.tree.get_by_role("treeitem")).to_have_count(1)
        assert view.row("ft_transfer_call").get_attribute("aria-expanded") == "false"
        view.press("ArrowRight", "ArrowRight", "ArrowDown")
        assert view.selected().startswith("refund on ivan.near")
        view.press("ArrowLeft")
        assert view.selected().startswith("ft_on_transfer() on dex.near")
        view.press("Enter", "End")
        assert view.selected().startswith("refund on ivan.near")
        expect(view.tree.get_by_role("treeitem")).to_have_count(5)
        expect(view.details.get_by_role("heading")).to_have_text("refund on ivan.near")


def test_folding_what_is_selected_selects_what_folds_it(shown: Any, swap: TraceView):
    """A selected receipt never disappears from the tree."""
    with shown(swap) as view:
        view.page.get_by_role("button", name="Fold all", exact=True).click()
        assert view.selected().startswith("ft_transfer_call() on gold.near")
        view.page.get_by_role("button", name="Next failed").click()
        assert view.selected().startswith("ft_on_transfer() on dex.near, failed")


def test_what_moved_has_all_digits_on_hover(shown: Any, swap: TraceView):
    """Amounts are short, and whole in their title; what came back is no change."""
    with shown(swap) as view:
        moved = view.page.get_by_label("What moved").get_by_role("table")
        expect(moved.get_by_role("row")).to_have_count(4)
        change = moved.get_by_role("row").filter(has_text="ivan.near").locator(".lk-amount")
        (exact,) = swap.trace.balance_changes.query("account_id == 'ivan.near'")["change"]
        assert change.get_attribute("title") == units.to_text(exact, 24, "NEAR")
        expect(moved).not_to_contain_text("GOLD")


def grown(count: int) -> Trace:
    """Trace receipts that each create three more; of 97 one fails, and each mints a token."""
    children = [[f"R{3 * at + k}" for k in (1, 2, 3) if 3 * at + k < count] for at in range(count)]
    outcomes, bodies, blocks = [], [], {}
    for at, created in enumerate(children):
        minted = builders.event("nep141", "ft_mint", {"owner_id": f"user{at}.near", "amount": "1"})
        status = builders.failing("empty") if at % 97 == 96 else {"SuccessValue": ""}
        outcomes.append(builders.outcome(f"R{at}", created, logs=[minted], status=status))
        bodies.append(builders.body(f"R{at}", builders.call("grow"), to=f"token{at % 7}.near"))
        blocks[f"block of R{at}"] = (180_000_000 + (3 * at).bit_length(), 0)
    document = builders.result(outcomes, bodies)
    return Trace.from_json(document, blocks=blocks, rules=builders.RULES)


@pytest.mark.parametrize("count", [300, 10_000])
def test_large_traces_draw_what_is_in_sight(shown: Any, count: int):
    """A tree of any size has a screen of rows, and the last receipt is a key away."""
    trace = grown(count)
    with shown(TraceView(trace)) as view:
        assert view.tree.get_by_role("treeitem").count() < 40
        view.page.get_by_role("button", name="Unfold all").click()
        view.tree.focus()
        view.press("End")
        assert view.tree.get_by_role("treeitem").count() < 40
        last = view.tree.get_by_role("treeitem").last
        assert last.get_attribute("aria-selected") == "true"
        view.page.wait_for_function(HAS_DETAILS)
        assert view.page.locator(".lk-timeline *").count() < 2_000
        rows = view.page.get_by_label("What moved").locator("tbody tr")
        expect(rows).to_have_count(100)
        view.page.get_by_role("button", name="Show more").click()
        expect(rows).to_have_count(200)
        view.picture(f"trace-{count}")


def test_a_chain_is_walked_to_its_end(shown: Any):
    """Receipts of any depth are in sight, with their depth written where indents end."""
    ids = [f"R{at}" for at in range(2_000)]
    outcomes = [builders.outcome(id_, ids[at + 1 : at + 2]) for at, id_ in enumerate(ids)]
    bodies = [builders.body(id_, builders.call("go")) for id_ in ids]
    with shown(TraceView(Trace.from_json(builders.result(outcomes, bodies)))) as view:
        view.page.get_by_role("button", name="Unfold all").click()
        view.tree.focus()
        view.press("End")
        last = view.tree.get_by_role("treeitem").last
        expect(last).to_have_attribute("aria-level", "2000")
        expect(last).to_contain_text("1999 ✓ go()")
        view.press("ArrowLeft")
        assert view.tree.get_by_role("treeitem").last.get_attribute("aria-selected") == "false"


def test_hostile_texts_stay_texts(shown: Any):
    """Names, arguments, logs, events and errors that look like markup run and load nothing."""
    made = hostile.world()
    for name in ("logged", "odd", "unknown", "gone", "formula"):
        sent = getattr(made, name)
        with shown(TraceView(lk.trace(sent.tx_hash, "near", ledger=made.ledger))) as view:
            rows = view.tree.get_by_role("treeitem")
            view.tree.focus()
            view.press("Home")
            for _ in range(rows.count()):
                view.page.wait_for_function(HAS_DETAILS)
                view.press("ArrowDown")
            assert view.page.evaluate("window.hurt") is None
            assert view.page.locator("#host script, #host img, #host iframe").count() == 0
