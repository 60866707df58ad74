"""
Run a campaign: attack one promise of the package many times, and report each violation.

`python -m tools.campaigns` lists the campaigns, `python -m tools.campaigns byte_strings
--count 1000000 --seed 1` runs one. The same count and seed repeat a run. The exit code is 1 if
the promise was broken. Each campaign runs with a small count in `tests/campaigns` too.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from tools.campaigns._campaign import NAMES, Tally, load

if TYPE_CHECKING:
    from types import ModuleType

SHOWN = 20  # violations printed in full


def claim(campaign: ModuleType) -> str:
    """Return what a campaign claims: the first line of its docstring."""
    return (campaign.__doc__ or "").strip().partition("\n")[0]


def report(tally: Tally) -> None:
    """Print the counts, the notes and the first violations."""
    for result, times in sorted(tally.counts.items()):
        print(f"{times:>14,}  {result}")
    for line in tally.notes:
        print(line)
    for line in tally.violations[:SHOWN]:
        print(f"violation: {line}")


def main() -> int:
    """Run the named campaign, or list all, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("name", nargs="?", choices=NAMES, metavar="NAME")
    parser.add_argument("--count", type=int, help="how many cases")
    parser.add_argument("--seed", type=int, default=0, help="selects other cases")
    options = parser.parse_args()
    if options.name is None:
        for name in NAMES:
            campaign = load(name)
            print(f"{name:<16} {campaign.COUNT:>9,}  {claim(campaign)}")
        return 0
    campaign = load(options.name)
    count = options.count or campaign.COUNT
    print(f"{options.name}: {claim(campaign)}", flush=True)
    tally, begin = Tally(), time.perf_counter()
    cases = f"{count:,} cases"
    try:
        campaign.run(count, options.seed, tally)
    except KeyboardInterrupt:
        cases = f"interrupted, not all of {cases}"
    report(tally)
    if not tally.counts and not tally.violations:  # what it needs is not there
        print("nothing was tried")
        return 1
    took = time.perf_counter() - begin
    violations = len(tally.violations)
    print(f"{cases}, seed {options.seed}, {took:,.0f} s: {violations:,} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
