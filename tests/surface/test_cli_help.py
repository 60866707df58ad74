"""The help of the command line: it fits 80 columns, and its examples work."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.command_line import main


def help_page(capsys, *words):
    """Return the help page of a command, in a terminal of 80 columns."""
    with pytest.raises(SystemExit) as stopped:
        main([*words, "--help"])
    assert stopped.value.code == 0
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def _columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def test_each_page_fits_80_columns_and_has_an_example(capsys, subtests):
    """No line is longer, and the last one is a command that begins like the page's own."""
    commands = re.findall(r"^    ([a-z][\w-]+)", help_page(capsys), flags=re.MULTILINE)
    pages = [[], *([name] for name in commands), ["sandbox", "init"], ["sandbox", "run"]]
    pages.append(["sandbox", "view-state", "dump-state"])
    assert len(pages) > 20
    for words in pages:
        with subtests.test(words=words):
            lines = help_page(capsys, *words).splitlines()
            assert max(map(len, lines)) <= 80
            assert lines[-1].startswith(f"example: ledgerkit {' '.join(words[:1])}")


EXAMPLES = [
    *("account", "ft", "nft", "staking", "lockups", "keys", "history", "transactions", "transfers"),
    *("block", "view", "trace", "receipts", "statement", "follow", "world", "completion"),
]


@pytest.mark.parametrize("command", EXAMPLES)
def test_an_example_runs(command, capsys):
    """Whoever copies the example of a page gets a result, here on the embedded ledger."""
    line = help_page(capsys, command).splitlines()[-1].removeprefix("example: ledgerkit ")
    words = shlex.split(line.removesuffix(" --network mainnet"))
    assert main(words) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("form", ["csv", "json"])
def test_short_forms(form, capsys):
    """--csv and --json print what --format csv and json print; the last one counts."""
    printed = []
    for words in (["--format", form], [f"--{form}"], ["--format", "table", f"--{form}"]):
        assert main(["ft", "alice.near", *words, "--network", "local"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed == printed[:1] * 3
