"""The command line in this process, by the entry point that an installation declares."""

from importlib.metadata import entry_points
from typing import Any


def main(words: list[str]) -> Any:
    """Run `ledgerkit` with these words; return its exit code."""
    [program] = entry_points(group="console_scripts", name="ledgerkit")
    return program.load()(words)
