"""A plot as SVG inside a page: titles under the pointer, and nothing that runs or loads."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt

import ledgerkit as lk
from ledgerkit.plots.svg import svg_text
from tests import hostile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = set("svg g defs path use text tspan title clipPath rect pattern".split())
NUMBER = r"-?[\d.]+(?:e-?\d+)?(?:px|pt|%)?"
COLOUR = r"(?:none|#[0-9a-f]{6})"
LOCAL = r"url\(#[\w-]+\)"
# Each attribute that may occur, with the values that it may have.
ATTRIBUTES = {
    **dict.fromkeys("x y width height opacity fill-opacity stroke-opacity".split(), NUMBER),
    **dict.fromkeys("stroke-width stroke-dashoffset stroke-miterlimit font-size".split(), NUMBER),
    "viewBox": rf"{NUMBER}(?: {NUMBER}){{3}}",
    "stroke-dasharray": rf"{NUMBER}(?:,? ?{NUMBER})*",
    "d": r"[MLCQZHVmlcqzhv\d\s.,e-]*",
    "transform": r"(?:(?:translate|scale|rotate|matrix)\([-\d.,\se]+\)\s*)*",
    "fill": rf"(?:{COLOUR}|{LOCAL})",
    "stroke": COLOUR,
    "clip-path": LOCAL,
    "href": r"#[\w-]+",
    "id": r"[\w-]+",
    "patternUnits": "userSpaceOnUse",
    "font-weight": r"\d+|bold|normal",
    "font-style": "normal",
    "font-family": "sans-serif",
    "role": "img",
    **dict.fromkeys("stroke-linejoin stroke-linecap text-anchor fill-rule".split(), r"[a-z]+"),
}
KINDS = ("tree", "timeline", "gas", "flow")

mpl.use("agg")


@pytest.fixture(scope="module")
def ledger() -> Iterator[Any]:
    with lk.connect("local") as ledger:
        yield ledger


@pytest.fixture(scope="module")
def trace(ledger: Any) -> Any:
    """Return a trace with failures, refunds, a callback and tokens."""
    tx_hash = "AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY"
    return lk.trace(tx_hash, "ivan.near", ledger=ledger)


def check(svg: str) -> ET.Element:
    """Check every element and attribute of an SVG; return its root."""
    assert svg.startswith("<svg ")
    root = ET.fromstring(svg)  # noqa: S314 - our own text
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    used = set(re.findall(r'(?:href="|url\()#([\w-]+)', svg))
    assert set(ids) == used
    assert len(ids) == len(used)
    for element in root.iter():
        assert element.tag.removeprefix(SVG) in ELEMENTS
        for name, value in element.attrib.items():
            if name != "aria-label":
                assert re.fullmatch(ATTRIBUTES[name], value), (name, value)
        if element.tag.removeprefix(SVG) not in ("text", "tspan", "title"):
            assert not (element.text or "").strip()
    return root


def titles(root: ET.Element) -> list[str]:
    """Return the titles, which browsers show under the pointer."""
    return [title.text or "" for title in root.iter(f"{SVG}title")]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_each_mark_has_a_title(trace: Any, kind: str, dark: bool):  # noqa: FBT001 - pytest's
    """A receipt, or a flow and an account, says under the pointer what it is."""
    root = check(svg_text(lambda: trace.plot(kind), dark=dark))
    found = titles(root)
    if kind == "flow":
        assert "ivan.near to dex.near: 80 GOLD, tokens" in found
        assert "dex.near · 80 GOLD" in found
        return
    assert len(found) >= len(trace.receipts)
    (failed,) = trace.receipts.query("status == 'failure'").itertuples()
    (title,) = {text for text in found if failed.receipt_id in text}
    start = f"ft_on_transfer · dex.near, failed, block {failed.block_height}, shard "
    assert title.startswith(start)
    assert " Tgas burnt" in title


def test_readings_and_balances_have_titles(ledger: Any):
    """Each dot of a line and each bar has its exact subject with its amount."""
    tokens = lk.ft("alice.near", metadata=True, ledger=ledger, progress=False)
    stakes = lk.staking(["bob.near"], positions=True, ledger=ledger, progress=False)
    readings = lk.history("bob.near", 180_000_000, 180_000_004, ledger=ledger, progress=False)
    assert "alice.near, GOLD · gold.near: 1,252.998 GOLD" in titles(
        check(svg_text(lambda: lk.plots.balances(tokens)))
    )
    assert "north.poolv1.near: 250.00 NEAR staked" in titles(
        check(svg_text(lambda: lk.plots.staking(stakes)))
    )
    found = titles(check(svg_text(lambda: lk.plots.history(readings))))
    assert found[0] == "balance, 2026-08-01T00:00:00: 500 NEAR"
    assert len(found) == len(readings)


def test_texts_stay_texts(trace: Any):
    """Screen readers and the search of a page read the labels."""
    root = check(svg_text(lambda: trace.plot("tree")))
    texts = {(text.text or "").strip() for text in root.iter(f"{SVG}text")}
    assert {"ft_on_transfer · dex.near", "6 receipts, 1 failed", "local"} <= texts
    assert root.get("aria-label") == "6 receipts, 1 failed"


HOSTILE: dict[str, Callable[[Any, str], Any]] = {
    "tree": lambda trace, text: lk.plots.receipt_tree(
        trace.receipts.assign(receiver_id=text, method_name=text, receipt_id=text, kind="action")
    ),
    "gas": lambda trace, text: lk.plots.gas_icicle(
        trace.receipts.assign(receiver_id=text, method_name=text), title=text
    ),
    "flow": lambda trace, text: lk.plots.token_flow(
        trace.transfers.assign(asset=text, sender_id=text, receiver_id=text), title=text
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize(
    "text",
    [
        hostile.BREAKS_OUT,
        "]]><image href='https://evil.example/x'/>",
        "url(https://evil.example/x)",
    ],
)
def test_hostile_names_are_texts(trace: Any, kind: str, text: str):
    """Markup in a name is read as a text: no element, attribute or reference comes of it."""
    root = check(svg_text(lambda: HOSTILE[kind](trace, text)))
    assert any(text[:6] in written for written in titles(root))


def test_nothing_of_matplotlib_changes(trace: Any):
    """No figure is left open, and no setting of the session is changed."""
    settings = dict(mpl.rcParams)
    for _ in range(2):
        svg_text(lambda: trace.plot("timeline"))
    assert dict(mpl.rcParams) == settings
    assert plt.get_fignums() == []
    ax = trace.plot("timeline")
    assert plt.get_fignums() == [ax.figure.number]
    plt.close("all")
