"""The campaigns by name, and the counts of one: its results, and the violations of its claim."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))


def load(name: str) -> ModuleType:
    """
    Import a campaign.

    A campaign has `COUNT` and `SMALL`, the numbers of cases of the full run and of the test;
    `EXPECTED`, the results that must occur in both; and `run(count, seed, tally)`.
    """
    return import_module(f"tools.campaigns.{name}")


@dataclass
class Tally:
    """
    Counts of the results so far, the violations, and notes to print below them.

    A violation is a line that says how to repeat the case in which the claim did not hold.
    """

    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def count(self, result: str, times: int = 1) -> None:
        self.counts[result] += times

    def violate(self, line: str) -> None:
        self.violations.append(line)
