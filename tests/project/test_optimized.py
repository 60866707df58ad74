"""The package works under `python -OO`, which drops assertions, as `-O` does, and docstrings."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(ROOT.glob("ledgerkit/**/*.py"))
COMMANDS = """
from contextlib import suppress
from ledgerkit.cli import main
main(["ft", "alice.near", "--network", "local"])
with suppress(SystemExit):
    main(["ft", "--help"])
"""
COMPLETED = {"errors.py", "docstrings.py"}  # write docstrings, where there are any


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


def test_the_command_line_prints_the_same():
    """Neither the help of a command nor what it reads comes from docstrings or assertions."""
    printed = run("-c", COMMANDS)
    assert "usage: ledgerkit ft" in printed
    assert "gold.near" in printed
    assert run("-OO", "-c", COMMANDS) == printed
