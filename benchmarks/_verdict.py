"""The last lines of each benchmark: its targets, met or missed, and the exit code."""

import os
import sys
from typing import NoReturn

# The interpreters that a benchmark starts read compiled modules, as where a package is installed:
# compiling all of them each time would take longer than what is measured.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

_lines: list[str] = []
_missed: list[str] = []


def say(claim: str, figure: str, *, met: bool) -> None:
    """Record a target; a missed one makes the exit code 1."""
    _lines.append(f"target: {claim}: {'met' if met else 'missed'} ({figure})")
    if not met:
        _missed.append(claim)


def finish() -> NoReturn:
    """Print the targets and exit; a script that fails earlier prints none."""
    print(*_lines, sep="\n", flush=True)
    sys.exit(1 if _missed else 0)
