"""What README.md shows is what happens: its examples are run, and their output compared."""

import contextlib
import doctest
import io
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import cli

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SERVE = "ledgerkit serve "


class Examples(NamedTuple):
    """The Python examples after a run: the folder they wrote to, and what went wrong."""

    folder: Path
    report: str
    attempted: int


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def commands(*names: str) -> list[tuple[str, str]]:
    """Return each of these commands of the README with the output shown below it."""
    prompt = re.compile(r"^\$ ", re.MULTILINE)
    parts = [part for block in blocks("console") for part in prompt.split(block)]
    pairs = [part.partition("\n") for part in parts if part.startswith(names)]
    return [(command, shown) for command, _, shown in pairs]


def told_once(message: Warning | str, category: type[Warning], *_: object) -> None:
    """Print a warning among the output, as a terminal shows it."""
    sys.stdout.write(f"<stdin>:1: {category.__name__}: {message}\n")


@contextlib.contextmanager
def terminal(folder: Path) -> Iterator[None]:
    """Run as in a terminal of 100 columns, in a folder, whatever the tests run in."""
    with (
        contextlib.chdir(folder),
        pd.option_context("display.width", 100, "display.max_columns", 20),
        warnings.catch_warnings(),
        pytest.MonkeyPatch.context() as patch,
    ):
        warnings.simplefilter("default")
        patch.setattr(warnings, "showwarning", told_once)
        patch.delenv("LEDGERKIT_NETWORK", raising=False)
        yield


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Examples:
    """Run every Python example, in their order, in a folder of their own."""
    folder = tmp_path_factory.mktemp("readme")
    text = "\n".join(blocks("pycon"))
    globs = {"__name__": "__main__"}
    test = doctest.DocTestParser().get_doctest(text, globs, "README.md", "README.md", 0)
    report: list[str] = []
    with terminal(folder):
        result = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    lk.disconnect()
    return Examples(folder, "".join(report), result.attempted)


def test_examples_give_the_output_shown(examples: Examples):
    """Every Python example of the README, in its order, prints what stands below it."""
    assert examples.report == ""
    assert examples.attempted > 50


PRINTING = [pair for pair in commands("ledgerkit ") if not pair[0].startswith(SERVE)]


@pytest.mark.parametrize(("command", "shown"), PRINTING, ids=[command for command, _ in PRINTING])
def test_commands_print_what_is_shown(command, shown, examples: Examples, monkeypatch):
    """Every `ledgerkit` command of the README prints what stands below it."""
    monkeypatch.chdir(examples.folder)
    printed = io.StringIO()

    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        cli.main(shlex.split(command)[1:])

    lines = printed.getvalue().splitlines()
    assert [line.rstrip() for line in lines] == shown.splitlines()


@contextlib.contextmanager
def serving(command: str) -> Iterator[str]:
    """Run a command that serves, and give the first line it prints."""
    words = [sys.executable, "-m", *shlex.split(command)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline() if process.stdout else ""
        finally:
            process.terminate()


def test_a_served_world_answers_what_is_shown():
    """Serving prints the line shown, and curl gets the answer shown; at a port that is free."""
    [(command, banner)] = commands(SERVE)
    [(curl, shown)] = commands("curl ")
    url = "http://127.0.0.1:3030"
    assert url in curl.split()[-1]

    with serving(command.replace("--port 3030", "--port 0")) as line:
        own = re.findall(r"http://127\.0\.0\.1:\d+", line)[0]
        answer = httpx.get(curl.split()[-1].replace(url, own))

    assert line.replace(own, url) == banner
    assert answer.text == shown.strip()


def test_every_verb_is_named():
    """A public verb that the README leaves out would not be found."""
    verbs = [name for name in lk.__all__ if name.islower() and name[0] != "_"]
    unnamed = [name for name in verbs if not re.search(rf"\b{name}\b", README)]

    assert len(verbs) > 25
    assert unnamed == ["disconnect"]


def test_the_address_to_fill_in_stands_in_one_place():
    """Whoever publishes the project changes the badge's OWNER/REPO once."""
    assert re.findall(r"gh/OWNER/REPO", README) == ["gh/OWNER/REPO"]
