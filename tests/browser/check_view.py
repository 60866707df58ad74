"""The view on a page of its own, whose kernel is this test: silence, and two pages of one view."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

import ledgerkit as lk
from ledgerkit.widgets._window import javascript

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

MODEL = """() => {
  const on = (event, act) => { if (event === "msg:custom") model.hear = act };
  window.model = { get: () => "", on, off() {}, sent: [],
    send: (message) => model.sent.push(message) };
  render({ model, el: host })
}"""


@pytest.fixture
def page(browser: Browser, watching: Any) -> Iterator[Page]:
    """Open a page with a view that has sent its first message."""
    with watching(browser) as page:
        page.clock.install()
        page.set_content("<!doctype html><div id=host></div>")
        page.add_script_tag(type="module", content=f"{javascript()}\nwindow.render = render")
        page.wait_for_function("() => window.render")
        page.evaluate(MODEL)
        yield page


@pytest.fixture
def messages() -> Iterator[list[Any]]:
    """What the kernel sends to a page that opens a table."""
    with lk.connect("local"):
        shown = lk.show(lk.validators())
        sent: list[Any] = []
        shown.window.view.send = sent.append
        shown.window.receive({"type": "ready"})
        yield json.loads(json.dumps(sent))


def hear(page: Page, messages: list[Any]) -> None:
    page.evaluate("messages => messages.forEach((message) => model.hear(message))", messages)


def test_a_silent_kernel_is_named_until_it_answers(page: Page, messages: list[Any]):
    """A page whose kernel has stopped does not wait without a word."""
    hear(page, messages)
    notice = page.get_by_text("The kernel does not answer")
    page.clock.fast_forward(60_000)
    expect(notice).to_have_count(0)

    page.get_by_role("columnheader").first.get_by_role("button").click()
    page.clock.fast_forward(9_000)
    expect(notice).to_be_visible()
    hear(page, messages[:1])

    expect(notice).to_have_count(0)


def test_a_second_page_leaves_the_first_as_it_is(page: Page, messages: list[Any]):
    """The messages to a page that opens later reach every page: nothing is drawn again."""
    hear(page, messages)
    page.get_by_role("button", name="Filters").click()
    field = page.get_by_role("textbox", name="Filter account_id", exact=True)
    field.fill("ali")

    hear(page, messages)

    expect(field).to_have_value("ali")
    expect(field).to_be_focused()
