"""The package works under `python -OO`, which drops assertions, as `-O` does, and docstrings."""

from __future__ import annotations

import ast
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


def test_no_code_depends_on_assertions_or_docstrings():
    """No module of the package asserts, or reads a docstring."""
    uses = [
        f"{path.name}:{node.lineno}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert)
        or (
            path.name not in COMPLETED
            and isinstance(node, ast.Name | ast.Attribute)
            and reads_docstring(node)
        )
    ]
    assert uses == []


def reads_docstring(node: ast.Name | ast.Attribute) -> bool:
    """Return True if a name or attribute is a docstring that is read."""
    name = node.id if isinstance(node, ast.Name) else node.attr
    return name in ("__doc__", "getdoc") and isinstance(node.ctx, ast.Load)


@pytest.mark.parametrize("words", [("ft", "--help"), ("ft", "alice.near", "--network", "local")])
def test_the_command_line_prints_the_same(words):
    """Neither the help of a command nor what it reads comes from docstrings or assertions."""
    assert run("-OO", "-m", "ledgerkit", *words) == run("-m", "ledgerkit", *words)
