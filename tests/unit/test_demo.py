"""The demo: one command that looks around in the world of the embedded ledger."""

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

import ledgerkit as lk

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import the demo as it is run, with its own folder on the path."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("demo")


@pytest.fixture
def ledger():
    """Connect to the world of the demo."""
    with lk.connect("local") as ledger:
        yield ledger
    lk.disconnect()


def test_demo_prints_frames_tree_and_verdict(demo: Any, tmp_path, capsys):
    """One command shows balances to the last digit, the tree, its verdict and the report."""
    demo.main(["--out", str(tmp_path / "page.html")])

    printed = capsys.readouterr().out
    assert printed.startswith("This data comes from the embedded ledger")
    assert "340282366920926463463374607431768211454" in printed
    assert "340282366920938463463374607431768211455 = 2**128 - 1 is True" in printed
    assert "\n    gold.near -> dex.near  ft_on_transfer()" in printed
    assert "FAILED: Smart contract panicked: the contract is paused" in printed
    assert "Verdict: succeeded_with_failed_receipts" in printed
    assert str(tmp_path / "page.html") in printed
    lk.disconnect()


def test_demo_says_the_same_each_time(demo: Any, tmp_path, capsys):
    """The page is the same, byte for byte, whenever it is made."""
    pages = []
    for name in ("one.html", "two.html"):
        demo.main(["--out", str(tmp_path / name)])
        pages.append((tmp_path / name).read_bytes())

    assert pages[0] == pages[1]
    assert capsys.readouterr().err == ""
    lk.disconnect()


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


def test_report_needs_nothing_else(demo: Any, tmp_path, capsys):
    """The page loads no script, style or picture, and says that its accounts are invented."""
    demo.main(["--out", str(tmp_path / "page.html")])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")

    assert [word for word in ("<script", "<link", "<img", "http:", "https:") if word in page] == []
    assert "Its accounts are invented" in page
    assert "the contract is paused" in page
    assert capsys.readouterr().err == ""
    lk.disconnect()


def test_report_escapes_what_the_chain_says(demo: Any, ledger: Any, tmp_path: Path):
    """Markup in a name or a message of the chain is shown, never run."""
    hostile = "<script>alert(1)</script>"
    saved = (
        demo.trace_described(ledger, demo.REFUNDED).save(tmp_path / "swap.json").read_text("utf-8")
    )
    trace = lk.Trace.from_json(saved.replace("the contract is paused", hostile))
    found = {hostile: pd.DataFrame({hostile: [hostile]})}

    page = demo.page(lk.snapshot("alice.near"), found, trace)

    assert hostile not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4
