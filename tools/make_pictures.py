"""
Draw the pictures of the README and the documentation again: each plot, and the explorer.

`python tools/make_pictures.py` draws them from the embedded ledger. The explorer is a Voila page
in headless Chromium, in the environment of tests/browser, which is created if it is missing;
`python tools/make_pictures.py --plots` leaves it out. A plot's picture has the plot's name.
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
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from playwright.sync_api import Page

PICTURES = ROOT / "docs" / "pictures"
PERSON = "alice.near"
# Three calls, of which two fail, and a callback: a small picture with many cases.
TRANSACTION = ("FqamU6mwZoARccUaCFZ4coYKvKMAidY1iAKCbKss5N5v", "peggy.near")
# A transfer of tokens to a contract that fails, so that they come back.
TOKENS_BACK = ("AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY", "ivan.near")
PEOPLE = [f"{name}.near" for name in "alice bob carol dave uma nina ivan peggy".split()]
CELL = 'import ledgerkit as lk\nlk.connect("local")\nlk.explore()'
WIDTH = 1290  # fits the widest table
MOST_BYTES = 150_000
DPI = 110
INSIDE, PLOTS = "--inside", "--plots"


def draw() -> None:
    """Draw the plots."""
    from matplotlib import pyplot as plt

    plt.switch_backend("agg")
    with lk.connect("local") as ledger:
        for name, ax in plots(ledger):
            plt.figure(ax.get_figure(root=True))
            plt.savefig(PICTURES / f"{name}.png", dpi=DPI, facecolor="white", bbox_inches="tight")
            plt.close("all")


def plots(ledger: lk.Ledger) -> Iterator[tuple[str, Axes]]:
    """Yield each plot with its name."""
    trace, returned = (lk.trace(*ids, ledger=ledger) for ids in (TRANSACTION, TOKENS_BACK))
    yield "receipt_tree", returned.plot()
    yield "timeline", trace.plot("timeline")
    yield "gas_icicle", trace.plot("gas")
    yield "token_flow", returned.plot("flow")
    tokens = lk.ft(PERSON, metadata=True, ledger=ledger)
    yield "balances", lk.plots.balances(tokens)
    yield "staking", lk.plots.staking(lk.staking(PEOPLE, positions=True, ledger=ledger))
    readings = lk.history("bob.near", 180_000_000, 180_000_012, every=1, ledger=ledger)
    yield "history", lk.plots.history(readings)
    yield "statement", lk.statement(PERSON, ledger=ledger).plot("near")
    yield "concentration", lk.plots.concentration(lk.top_holders("gold.near", ledger=ledger))
    yield "exposure", lk.plots.exposure(lk.exposure(PEOPLE, ledger=ledger))


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
    """Search for an account and a transaction, and take a screenshot of each."""
    from tests.browser.person import Person

    page.set_viewport_size({"width": WIDTH, "height": 1400})
    person = Person(page)
    person.panel.first.wait_for()
    person.search(PERSON)
    person.answered(f"{PERSON} on local")
    person.open("Tokens")
    take(page, "explorer")
    person.search(TOKENS_BACK[0])
    person.panel.get_by_role("treeitem").first.wait_for()
    take(page, "trace_view")


def take(page: Page, name: str) -> None:
    """Take a screenshot of the explorer, without the rest of the page."""
    page.wait_for_timeout(500)  # details of a receipt arrive after the tree
    page.locator(".ledgerkit").screenshot(path=PICTURES / f"{name}.png")


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
    code = 0 if words == [PLOTS] else inside()
    large = [p.name for p in PICTURES.glob("*.png") if p.stat().st_size > MOST_BYTES]
    if large:
        print(f"more than {MOST_BYTES} bytes: {', '.join(large)}")
    return code or int(bool(large))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
