"""The demo: one command that looks around in the world of the embedded ledger."""

import importlib
import io
import json
import re
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

import ledgerkit as lk

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"


@pytest.fixture(scope="module")
def demo() -> Iterator[ModuleType]:
    """Import the demo as it is run, with its own folder on the path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        yield importlib.import_module("demo")


@pytest.fixture
def ledger():
    with lk.connect("local") as ledger:
        yield ledger
    lk.disconnect()


def run(demo: Any, folder: Path) -> tuple[str, str]:
    """Run the demo; return what it prints, and its report."""
    path, printed = folder / "page.html", io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        demo.main(["--out", str(path)])
    lk.disconnect()
    return printed.getvalue().replace(str(path), "page.html"), path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def shown(demo: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Run the demo once."""
    return run(demo, tmp_path_factory.mktemp("report"))


@pytest.fixture
def page(shown: tuple[str, str]) -> str:
    return shown[1]


def test_demo_prints_frames_tree_and_verdict(shown: tuple[str, str]):
    """One command shows amounts in units, an exact sum, the tree, its verdict and the report."""
    printed, _ = shown
    assert printed.startswith("This data comes from the embedded ledger")
    assert "12,340.68 NEAR" in printed
    assert "340,282,366,920,926,463,463.37 MOON" in printed
    assert "340282366920938463463374607431768211455 = 2**128 - 1 is True" in printed
    assert "\n    gold.near -> dex.near  ft_on_transfer()" in printed
    assert "FAILED: Smart contract panicked: the contract is paused" in printed
    assert "Verdict: succeeded_with_failed_receipts" in printed
    assert "page.html" in printed


def test_demo_says_the_same_each_time(demo: Any, shown: tuple[str, str], tmp_path: Path):
    """Text and page are the same, letter for letter, whenever they are made."""
    assert run(demo, tmp_path) == shown


@pytest.mark.usefixtures("ledger")
def test_demo_shows_every_class_of_exposure(demo: Any):
    """Of its four people one stakes both ways, one each way, and one not at all."""
    assert demo.tables()["lk.exposure(ids)"]["exposure_class"].tolist() == [
        "mixed",
        "direct_only",
        "liquid_only",
        "no_visible_staking_position",
    ]


def test_the_tree_is_of_the_refunded_swap(demo: Any, ledger: Any):
    """The exchange refuses 80 GOLD of ivan.near, and its token's callback gives them back."""
    trace = demo.trace_described(ledger, demo.REFUNDED)

    failed = trace.receipts.query("status == 'failure'")
    assert failed[["receiver_id", "method_name"]].to_numpy().tolist() == [
        ["dex.near", "ft_on_transfer"]
    ]
    moves = [log.partition("EVENT_JSON:")[2] for logs in trace.receipts["logs"] for log in logs]
    assert [json.loads(move)["data"] for move in moves] == [
        [{"old_owner_id": "ivan.near", "new_owner_id": "dex.near", "amount": "80000000"}],
        [
            {
                "old_owner_id": "dex.near",
                "new_owner_id": "ivan.near",
                "amount": "80000000",
                "memo": "refund",
            }
        ],
    ]


def test_report_needs_nothing_else(page: str):
    """The page loads no script, style or picture, and is small enough to be sent by mail."""
    loaded = ("<script", "<link", "<img", "@import", "url(h", "http:", "https:", "data:", "src=")
    assert [word for word in loaded if word in page] == []
    assert len(page) < 250_000
    assert "the contract is paused" in page


def test_report_names_the_network(page: str):
    """Its first line says which ledger it is of, and that its accounts are invented."""
    notice = page.partition("<h2>")[0]
    assert "Network: local" in notice
    assert "Its accounts are invented" in notice


def test_report_has_amounts_in_units_and_numbers_aligned(page: str):
    """No amount is a row of 25 digits; each number is at the right, in digits of one width."""
    texts = re.sub(r'<svg.*?</svg>|<style.*?</style>|title="[^"]*"', "", page, flags=re.DOTALL)
    assert re.findall(r"\b\d{20,}\b", texts) == []
    assert re.search(r'<td style="text-align:right[^>]*>12,340\.68 NEAR</td>', page)
    assert "font-variant-numeric: tabular-nums" in page


def test_report_has_each_plot_for_light_and_for_dark_pages(page: str):
    """The style sheet hides one drawing of each pair, as the reader's system prefers."""
    for theme in ("light", "dark"):
        drawings = re.findall(rf'<div class="{theme}"><svg.*?</svg></div>', page, flags=re.DOTALL)
        assert len(drawings) == 4
        assert all("<title>" in drawing for drawing in drawings)
    assert "@media (prefers-color-scheme: dark)" in page
    assert "color-scheme: light dark" in page


def test_report_escapes_what_the_chain_says(demo: Any, ledger: Any, tmp_path: Path):
    """Markup in a name or a message of the chain is shown, never run."""
    hostile = "<script>alert(1)</script>"
    saved = (
        demo.trace_described(ledger, demo.REFUNDED).save(tmp_path / "swap.json").read_text("utf-8")
    )
    trace = lk.Trace.from_json(saved.replace("the contract is paused", hostile))
    found = {hostile: pd.DataFrame({hostile: [hostile]})}

    page = demo.page(lk.snapshot("alice.near"), found, {f"plot {hostile}": trace.plot}, trace)

    assert hostile not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 5
