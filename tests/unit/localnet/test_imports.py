"""The embedded ledger could be a distribution of its own: it imports little of the package."""

from __future__ import annotations

import ast
from pathlib import Path

import ledgerkit.localnet

ALLOWED = {"errors", "localnet", "protocol", "units", "validation"}


def test_what_the_embedded_ledger_imports_of_the_package():
    """Only errors, units, validation and protocol: nothing of the client's side."""
    imported: set[str] = set()
    for path in Path(ledgerkit.localnet.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            assert not (isinstance(node, ast.ImportFrom) and node.level), path
            if isinstance(node, ast.ImportFrom) and node.module == "ledgerkit":
                imported.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                package, _, rest = node.module.partition(".")
                imported.update({rest.partition(".")[0]} if package == "ledgerkit" else ())
            elif isinstance(node, ast.Import):
                assert not any(alias.name.startswith("ledgerkit") for alias in node.names), path
    assert imported <= ALLOWED
