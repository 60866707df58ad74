"""The last lines of each benchmark: its targets, met or missed, and the exit code."""

import sys
from typing import NoReturn

_lines: list[str] = []
_missed: list[str] = []


def say(claim: str, figure: str, *, met: bool, binding: bool = True) -> None:
    """Judge a target; a missed one that is not binding is told, and costs no exit code."""
    _lines.append(f"target: {claim}: {'met' if met else 'missed'} ({figure})")
    if binding and not met:
        _missed.append(claim)


def finish() -> NoReturn:
    """Print what was judged, so only by a script that came to its end; exit 1 on a miss."""
    print(*_lines, sep="\n", flush=True)
    sys.exit(1 if _missed else 0)
