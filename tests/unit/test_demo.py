"""The demo and the recorded answers that it replays."""

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

import ledgerkit as lk

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
RECORDED = FOLDER / "recorded"


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import the demo as it is run, with its own folder on the path."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("demo")


@pytest.fixture
def replayed(demo: Any):
    """Connect to the recorded answers."""
    with lk.connect("replay", transport=demo.Replay(RECORDED)):
        yield
    lk.disconnect()


def made() -> dict[str, str]:
    """Return the recorded files as their script would write them today."""
    spec = importlib.util.spec_from_file_location("make_recorded", RECORDED / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    files: dict[str, str] = module.files()
    return files


def test_recorded_files_are_what_their_script_writes():
    """Nobody edits a recording by hand: the script makes the same bytes each time."""
    stored = {path.name: path.read_text(encoding="utf-8") for path in RECORDED.glob("*.json")}

    assert stored == made()


def test_demo_prints_frames_tree_and_verdict(demo: Any, tmp_path, capsys):
    """One command shows balances to the last digit, the tree, its verdict and the report."""
    demo.main(["--out", str(tmp_path / "page.html")])

    printed = capsys.readouterr().out
    assert "invented world" in printed
    assert "340282366920926463463374607431768211454" in printed
    assert "no_visible_staking_position" in printed
    assert "\n    gold.near -> shop.near  ft_on_transfer()" in printed
    assert "Verdict: succeeded_with_failed_receipts" in printed
    assert str(tmp_path / "page.html") in printed
    lk.disconnect()


def test_report_needs_nothing_else(demo: Any, tmp_path, capsys):
    """The page loads no script, style or picture, and says that its world is invented."""
    demo.main(["--out", str(tmp_path / "page.html")])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")

    assert [word for word in ("<script", "<link", "<img", "http:", "https:") if word in page] == []
    assert "invented world" in page
    assert "tea-07 is sold out" in page
    assert capsys.readouterr().err == ""
    lk.disconnect()


@pytest.mark.usefixtures("replayed")
def test_report_escapes_what_the_chain_says(demo: Any, tmp_path: Path):
    """Markup in a name or a message of the chain is shown, never run."""
    hostile = "<script>alert(1)</script>"
    saved = lk.trace(demo.SALE, "alice.near").save(tmp_path / "sale.json").read_text("utf-8")
    trace = lk.Trace.from_json(saved.replace("tea-07 is sold out", hostile))
    found = {hostile: pd.DataFrame({hostile: [hostile]})}

    page = demo.page(lk.snapshot("alice.near"), found, trace)

    assert hostile not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4


@pytest.mark.usefixtures("replayed")
def test_replay_knows_what_nobody_recorded():
    """An account that was not recorded is answered as the services answer about a stranger."""
    assert lk.accounts("stranger.near")["status"].tolist() == ["not_indexed"]
    assert [len(verb("stranger.near")) for verb in (lk.ft, lk.nft, lk.staking)] == [0, 0, 0]
    assert lk.accounts("stranger.near", at="final")["status"].tolist() == ["no_account"]
    with pytest.raises(lk.errors.UnknownAccountError) as caught:
        lk.keys("stranger.near")
    assert caught.value.block_height == 191_000_005


def test_replay_invents_nothing(demo: Any):
    """A question without a recorded answer fails and names the question."""
    ledger = lk.connect("replay", transport=demo.Replay(RECORDED), retries=lk.RetryPolicy(1))

    with pytest.raises(Exception, match=r"no answer was recorded for GET /v1/ft/dust\.near/top"):
        lk.top_holders("dust.near", ledger=ledger)
    with pytest.raises(Exception, match=r'no answer was recorded for block \{"block_id": 7\}'):
        lk.block(7, ledger=ledger)
    lk.disconnect()
