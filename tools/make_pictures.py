"""
Draw the pictures of the README again: the explorer, a receipt tree and a timeline.

`python tools/make_pictures.py` draws them from the embedded ledger. The explorer is a Voila page
in headless Chromium, in the environment of tests/browser, which is created if it is missing.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # tests/ is installed nowhere

import ledgerkit as lk  # noqa: E402 - found through the line above, like the next
from tests.browser import run  # noqa: E402 - as above

if TYPE_CHECKING:
    from playwright.sync_api import Page

PICTURES = ROOT / "docs" / "pictures"
PERSON = "alice.near"
# Three calls, of which two fail, and a callback: a small picture with many cases.
TRANSACTION = ("GcxQHZKBPfmuBk6v6rakcVwMGLk9AcjdjtcRwaVFBHEb", "peggy.near")
DRAWN = {"tree": "receipt_tree", "timeline": "timeline"}
CELL = 'import ledgerkit as lk\nlk.connect("local")\nlk.explore()'
WIDTH = 1290  # fits the widest table
MOST_BYTES = 150_000
INSIDE = "--inside"


def draw() -> None:
    """Draw the transaction's pictures."""
    from matplotlib import pyplot as plt

    plt.switch_backend("agg")
    with lk.connect("local") as ledger:
        trace = lk.trace(*TRANSACTION, ledger=ledger)
    for form, name in DRAWN.items():
        trace.plot(form)
        plt.savefig(PICTURES / f"{name}.png", dpi=140, facecolor="white", bbox_inches="tight")
    plt.close("all")


def photograph() -> None:
    """Look up an account in the explorer, and take a screenshot."""
    from playwright.sync_api import sync_playwright

    from tests.browser import conftest, serving

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        notebooks, own = Path(folder, "notebooks"), Path(folder, "voila")
        notebooks.mkdir()
        serving.write(notebooks / "explorer.ipynb", [CELL])
        chromium = os.environ["CHROMIUM"]
        browser = play.chromium.launch(executable_path=chromium, args=conftest.ARGUMENTS)
        with serving.voila(notebooks, own) as address, conftest.watched(browser) as page:
            page.goto(f"{address}/explorer.ipynb")
            look_up(page)
        browser.close()


def look_up(page: Page) -> None:
    """Type an account id, press Enter, and take a screenshot."""
    from tests.browser.person import Person

    page.set_viewport_size({"width": WIDTH, "height": 900})
    person = Person(page)
    person.panel.first.wait_for()
    page.get_by_role("tab", name="Account", exact=True).first.click()
    person.enter("Account", PERSON)
    person.answered(f"{PERSON} on local")
    person.open("Tokens")
    box = page.locator(".widget-tab").first.bounding_box()
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": round(box["y"] * 2 + box["height"])}
    page.screenshot(path=PICTURES / "explorer.png", clip=clip)


def inside() -> int:
    """Take the screenshot with the interpreter of the browser tests."""
    chromium = run.chromium()
    if chromium is None:
        print(
            f"the explorer's picture is not updated: none of {', '.join(run.CHROMIUMS)} is on PATH"
        )
        return 0
    run.make()
    return run.run(run.PYTHON, __file__, INSIDE, CHROMIUM=chromium)


def main(words: list[str]) -> int:
    """Draw all pictures; the exit code is 1 if one is too large for a page."""
    if words == [INSIDE]:
        photograph()
        return 0
    PICTURES.mkdir(exist_ok=True)
    draw()
    code = inside()
    large = [p.name for p in PICTURES.glob("*.png") if p.stat().st_size > MOST_BYTES]
    if large:
        print(f"more than {MOST_BYTES} bytes: {', '.join(large)}")
    return code or int(bool(large))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
