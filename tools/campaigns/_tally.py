"""The counts of a campaign: its results by name, and the violations of its claim."""

from __future__ import annotations

from collections import Counter


class Tally:
    """
    Counts of the results so far, and the violations.

    Attributes
    ----------
    counts
        How often each result occurred, by name.
    violations
        A line for each time that the claim did not hold; it says how to repeat the case.
    notes
        Lines to print below the counts.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []
        self.notes: list[str] = []

    def count(self, result: str, times: int = 1) -> None:
        self.counts[result] += times

    def violate(self, line: str) -> None:
        self.violations.append(line)
