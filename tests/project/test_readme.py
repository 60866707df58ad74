"""What README.md shows is what happens: its examples are run, and their output compared."""

import doctest
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import cli

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def commands() -> list[tuple[str, str]]:
    """Return each `ledgerkit` command of the README with the output shown below it."""
    prompt = re.compile(r"^\$ ", re.MULTILINE)
    parts = [part for block in blocks("console") for part in prompt.split(block)]
    pairs = [part.partition("\n") for part in parts if part.startswith("ledgerkit ")]
    return [(command, shown) for command, _, shown in pairs]


def test_examples_give_the_output_shown(monkeypatch: pytest.MonkeyPatch):
    """Every Python example of the README, in its order, prints what stands below it."""
    monkeypatch.chdir(ROOT / "notebooks")
    monkeypatch.syspath_prepend(ROOT / "notebooks")
    text = "\n".join(blocks("pycon"))
    test = doctest.DocTestParser().get_doctest(text, {}, "README.md", "README.md", 0)
    report: list[str] = []
    # as in a terminal of 100 columns, whatever the tests run in
    with pd.option_context("display.width", 100, "display.max_columns", 20):
        result = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    lk.disconnect()

    assert "".join(report) == ""
    assert result.attempted > 25


@pytest.mark.parametrize(
    ("command", "shown"), commands(), ids=[command for command, _ in commands()]
)
def test_commands_print_what_is_shown(command, shown, monkeypatch, capsys):
    """Every `ledgerkit` command of the README prints what stands below it."""
    monkeypatch.chdir(ROOT)

    cli.main(shlex.split(command)[1:])

    printed = capsys.readouterr()
    lines = (printed.out + printed.err).splitlines()
    assert [line.rstrip() for line in lines] == shown.splitlines()


def test_every_verb_is_named():
    """A public verb that the README leaves out would not be found."""
    verbs = [name for name in lk.__all__ if name.islower() and name[0] != "_"]
    unnamed = [name for name in verbs if not re.search(rf"\b{name}\b", README)]

    assert len(verbs) > 25
    assert unnamed == ["disconnect"]


def test_the_address_to_fill_in_stands_in_one_place():
    """Whoever publishes the project changes the badge's OWNER/REPO once."""
    assert re.findall(r"gh/OWNER/REPO", README) == ["gh/OWNER/REPO"]
