"""The package works under `python -OO`, which drops assertions, as `-O` does, and docstrings."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(ROOT.glob("ledgerkit/**/*.py"))
COMPLETED = {"errors.py", "declaring.py"}  # write docstrings, where there are any


def run(*arguments: str) -> str:
    """Run Python, with warnings as errors; return what it prints."""
    command = [sys.executable, "-W", "error", *arguments]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_no_code_depends_on_docstrings():
    """No module of the package reads a docstring; ruff sees to it that none asserts."""
    reads = re.compile(r"(?:\.__doc__|\bgetdoc)\b(?! =)")
    uses = [
        f"{path.name}: {line.strip()}"
        for path in SOURCES
        if path.name not in COMPLETED
        for line in path.read_text(encoding="utf-8").splitlines()
        if reads.search(line)
    ]
    assert uses == []


@pytest.mark.parametrize("words", [("ft", "--help"), ("ft", "alice.near", "--network", "local")])
def test_the_command_line_prints_the_same(words):
    """Neither the help of a command nor what it reads comes from docstrings or assertions."""
    assert run("-OO", "-m", "ledgerkit", *words) == run("-m", "ledgerkit", *words)
