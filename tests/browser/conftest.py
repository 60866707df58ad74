"""A browser, the servers and the pages that the checks of a file share."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import ledgerkit as lk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Route

ARGUMENTS = [
    "--no-sandbox",  # root, as in a container, has none
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
ELSEWHERE = re.compile(r"^(?!http://127\.0\.0\.1:|data:|blob:)")
ICONS = "https://cdn.jsdelivr.net/npm/@fortawesome/"  # of Voila's own page; it does without


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=30_000)
    with sync_playwright() as play:
        found = play.chromium.launch(executable_path=os.environ["CHROMIUM"], args=ARGUMENTS)
        yield found
        found.close()


@contextmanager
def watched(browser: Browser) -> Iterator[Page]:
    """Open a page that reaches this machine only; what runs that should not fails the check."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.set_default_timeout(60_000)
    wrong: list[str] = []

    def refuse(route: Route) -> None:
        if not route.request.url.startswith(ICONS):
            wrong.append(f"requested {route.request.url}")
        route.abort()

    def dismiss(dialog: Dialog) -> None:
        wrong.append(f"opened a dialog: {dialog.message}")
        dialog.dismiss()

    def log(line: ConsoleMessage) -> None:
        if line.type == "error" and not line.location.get("url", "").startswith(ICONS):
            wrong.append(f"logged {line.text} at {line.location}")

    page.route(ELSEWHERE, refuse)
    page.on("pageerror", lambda error: wrong.append(f"error {error}"))
    page.on("dialog", dismiss)
    page.on("console", log)
    yield page
    page.close()
    assert wrong == []


@pytest.fixture(scope="session")
def watching() -> Any:
    """Give what opens a page and watches it."""
    return watched


@pytest.fixture(scope="session")
def voila(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Serve a folder with Voila; give its address and the folder."""
    from tests.browser import serving

    folder = tmp_path_factory.mktemp("notebooks")
    with serving.voila(folder, tmp_path_factory.mktemp("voila")) as address:
        yield address, folder


@pytest.fixture(scope="session")
def opened(browser: Browser, voila: tuple[str, Path]) -> Any:
    """Open a notebook of some cells as a page."""
    from tests.browser import serving

    @contextmanager
    def open_page(name: str, cells: Sequence[str], theme: str = "light") -> Iterator[Page]:
        address, folder = voila
        serving.write(folder / f"{name}.ipynb", cells)
        with watched(browser) as page:
            page.goto(f"{address}/{name}.ipynb?theme={theme}")
            page.locator(".ledgerkit-panel:visible").first.wait_for()
            yield page

    return open_page


@pytest.fixture(scope="session")
def local() -> Iterator[lk.Ledger]:
    """Open the world "demo" here too, to compare with what the pages show of theirs."""
    with lk.connect("local") as ledger:
        yield ledger
