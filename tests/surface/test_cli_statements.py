"""The statement, transactions and transfers of an account on the command line."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

import ledgerkit as lk
from tests.command_line import main

if TYPE_CHECKING:
    from pathlib import Path

LOCAL = ["--network", "local"]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Run a command on the embedded ledger; return its code and what it printed."""
    code = main([*words, *LOCAL])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_statement_is_a_summary(capsys: pytest.CaptureFixture[str]):
    """Without options it is what the object says of itself, and adding up is success."""
    code, out, err = run(capsys, "statement", "bob.near")
    with lk.connect("local"):
        expected = repr(lk.statement("bob.near"))
    assert (code, err) == (0, "")
    assert out.rstrip("\n") == expected


@pytest.mark.parametrize(
    ("words", "verdict"),
    [(["--assets", "foo.near"], "? not held: "), (["--start", "final"], "? not checked: ")],
)
def test_what_was_not_checked_is_no_success(
    words: list[str], verdict: str, capsys: pytest.CaptureFixture[str]
):
    """A statement of which something is open exits with 7, in each format."""
    code, out, _ = run(capsys, "statement", "alice.near", *words)
    assert (code, verdict in out) == (7, True)
    assert run(capsys, "statement", "alice.near", *words, "--format", "csv")[0] == 7


@pytest.mark.parametrize("name", ["entries", "by_transaction", "gaps", "totals", "rewards"])
def test_each_frame_is_printed_exactly(name: str, capsys: pytest.CaptureFixture[str]):
    """JSON and CSV have the frame's columns and all digits."""
    code, out, _ = run(capsys, "statement", "bob.near", "--frame", name, "--format", "json")
    with lk.connect("local"):
        frame = getattr(lk.statement("bob.near"), name)
    assert code == 0
    assert [list(row) for row in json.loads(out)] == [list(frame.columns)] * len(frame)
    code, out, _ = run(capsys, "statement", "bob.near", "--frame", name, "--format", "csv")
    assert out.splitlines()[0] == ",".join(frame.columns)
    if name == "totals":
        assert [row["closing"] for row in rows(out)] == [str(value) for value in frame["closing"]]


def test_columns_and_assets_are_chosen(capsys: pytest.CaptureFixture[str]):
    """Columns are those of the entries, and only the named assets are read."""
    words = ["statement", "bob.near", "--assets", "near", "--columns", "asset,change"]
    code, out, _ = run(capsys, *words, "--format", "csv")
    assert code == 0
    assert {row["asset"] for row in rows(out)} == {"near"}
    assert list(rows(out)[0]) == ["asset", "change"]


def test_values_are_columns_and_a_sentence(capsys: pytest.CaptureFixture[str]):
    """The embedded ledger has no prices: no entry has a value, and each is counted."""
    words = ["statement", "bob.near", "--values", "usd"]
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "value in USD known for 0 of 7 entries, from the Transfers API; 7 have none" in out
    code, out, _ = run(capsys, *words, "--columns", "change,usd_amount", "--format", "csv")
    assert (code, {row["usd_amount"] for row in rows(out)}) == (0, {""})
    assert run(capsys, *words[:2], "--columns", "usd_amount", "--format", "csv")[0] == 2
    assert run(capsys, *words, "--dry-run")[0] == 0


def test_the_rewards_say_why_they_are_empty(capsys: pytest.CaptureFixture[str]):
    """The table is below the sentence of the summary."""
    code, out, _ = run(capsys, "statement", "ivan.near", "--frame", "rewards")
    assert code == 0
    assert out.startswith("no staking rewards: no balance with a staking pool is known")


def test_a_period_is_both_ends(capsys: pytest.CaptureFixture[str]):
    """A month has the entries between its ends, and one that is not over ends with the chain."""
    code, out, _ = run(capsys, "statement", "bob.near", "--start", "2026-08")
    assert code == 0
    assert "after block 180000000 (2026-08-01 00:00:00 UTC) and after block 180000050 " in out
    assert run(capsys, "statement", "bob.near", "--start", "2026-08-01")[1] == out
    code, out, _ = run(capsys, "history", "bob.near", "2026-08", "--format", "csv")
    assert (code, {row["block_height"] for row in rows(out)}) == (0, {"180000000", "180000050"})


def test_files_for_tax_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """They are printed, or written with --out; both have the same rows."""
    for form in ("koinly", "cointracking", "csv"):
        path = tmp_path / f"{form}.csv"
        code, out, _ = run(capsys, "statement", "bob.near", "--format", form)
        assert code == 0
        code, nothing, _ = run(
            capsys, "statement", "bob.near", "--format", form, "--out", str(path)
        )
        assert (code, nothing) == (0, "")
        assert path.read_text() == out


def test_bad_arguments(subtests: pytest.Subtests, capsys: pytest.CaptureFixture[str]):
    """They are one sentence and code 2."""
    cases = [
        (["Bob.near"], "account_id"),
        (["bob.near", "--out", "a.csv"], "csv, koinly, cointracking with --out"),
        (["bob.near", "--format", "koinly", "--columns", "asset"], "--columns"),
        (["bob.near", "--format", "koinly", "--frame", "gaps"], "--frame"),
        (["bob.near", "--columns", "colour"], "colour"),
        (["bob.near", "--start", "yesterday"], "yesterday"),
        (["bob.near", "--assets", "GOLD"], "GOLD"),
        (["bob.near", "--start", "180000030", "--stop", "180000010"], "stop"),
    ]
    for words, message in cases:
        with subtests.test(words=words):
            code, out, err = run(capsys, "statement", *words)
            assert (code, out, len(err.splitlines())) == (2, "", 1)
            assert message in err


def test_an_unknown_account(capsys: pytest.CaptureFixture[str]):
    """It has no statement: code 3."""
    assert run(capsys, "statement", "nobody.near")[0] == 3


@pytest.mark.parametrize(("command", "host"), [("transactions", "tx"), ("transfers", "transfers")])
def test_a_dry_run_sends_nothing(command: str, host: str, capsys: pytest.CaptureFixture[str]):
    """The first request and the columns are printed."""
    argv = [command, "alice.near", "--limit", "7", "--network", "mainnet", "--dry-run"]
    assert main(argv) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"POST https://{host}.main.fastnear.com/v0/" in printed
    assert "block_height" in printed


def test_a_dry_run_of_a_statement_is_its_plan(capsys: pytest.CaptureFixture[str]):
    """The plan is that of the verb, as text with the columns of the frame, or as JSON."""
    words = ["statement", "bob.near", "--start", "180000003", "--dry-run"]
    code, out, _ = run(capsys, *words, "--frame", "gaps")
    with lk.connect("local"):
        plan = lk.statement("bob.near", 180000003, dry_run=True)
    printed = capsys.readouterr().out
    assert (code, out.startswith(printed)) == (0, True)
    assert "columns of the result (statement_gaps)" in out
    code, out, _ = run(capsys, *words, "--format", "json")
    document = json.loads(out)
    assert (code, document["requests"]) == (0, plan.requests)
    assert (document["start_height"], document["seconds"]) == (180000003, plan.seconds)


@pytest.mark.parametrize(
    ("words", "verb", "options"),
    [
        (["activity", "alice.near", "--limit", "3"], "activity", {"limit": 3}),
        (["transactions", "alice.near"], "account_transactions", {}),
        (
            ["transactions", "alice.near", "--role", "signer", "--success", "--limit", "2"],
            "account_transactions",
            {"role": "signer", "success": True, "limit": 2},
        ),
        (
            ["transactions", "alice.near", "--success", "--start", "180000010"],
            "account_transactions",
            {"success": True, "start": 180000010},
        ),
        (
            ["transfers", "alice.near", "--assets", "near", "--direction", "sender"],
            "transfers_of",
            {"assets": ["near"], "direction": "sender"},
        ),
    ],
)
def test_rows_are_those_of_the_verb(
    words: list[str], verb: str, options: dict[str, Any], capsys: pytest.CaptureFixture[str]
):
    """The options are passed on, and each row is printed."""
    code, out, _ = run(capsys, *words, "--format", "csv")
    with lk.connect("local"):
        frame = getattr(lk, verb)("alice.near", progress=False, **options)
    assert code == 0
    assert len(frame)
    column = "tx_hash" if "tx_hash" in frame else frame.columns[0]
    assert [row[column] for row in rows(out)] == list(frame[column])


def test_the_activity_of_an_account_is_read_in_sentences(capsys: pytest.CaptureFixture[str]):
    """A transaction is four lines: time and verdict, headline, changes, and hash."""
    code, out, _ = run(capsys, "activity", "ivan.near", "--limit", "1")
    headline = (
        "ivan.near tried to swap 80 GOLD on dex.near; the exchange panicked and the tokens came "
        "back (the contract is paused)."
    )
    assert code == 0
    assert out.splitlines() == [
        "2026-08-01 00:00:19 UTC  succeeded with failed receipts",
        headline,
        "ivan.near: -0.00075 NEAR",
        "AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY",
        "",
    ]
