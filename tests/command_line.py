"""The command line in this process, by the entry point that an installation declares."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any


@cache  # a search reads the metadata of every installed distribution
def _program() -> EntryPoint:
    [program] = entry_points(group="console_scripts", name="ledgerkit")
    return program


def main(words: list[str]) -> Any:
    """Run `ledgerkit` with these words; return its exit code."""
    return _program().load()(words)
