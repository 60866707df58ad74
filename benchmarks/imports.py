"""
The time of `import ledgerkit` over a bare interpreter, and the modules it loads.

The figure is the median of the differences of fresh interpreters in turns.
"""

import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from _measuring import alternate
from _verdict import finish, say

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 41
TARGET_MS = 5.0

BARE, OURS = "pass", "import ledgerkit"
THIRD_PARTY = """
import sys, sysconfig
before = set(sys.modules)
import ledgerkit
dir(ledgerkit)
site = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
own = {n for n in set(sys.modules) - before if n.split(".")[0] != "ledgerkit"}
print(*sorted(n for n in own if str(getattr(sys.modules[n], "__file__", "")).startswith(site)))
"""


def run(script: str) -> str:
    """Run a script in a fresh interpreter, from the root of the project."""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def seconds(script: str) -> float:
    begin = time.perf_counter()
    run(script)
    return time.perf_counter() - begin


def main() -> None:
    ways = {script: partial(seconds, script) for script in (BARE, OURS)}
    alternate(ways, 1)  # compiles, and fills the disk cache
    took = alternate(ways, ROUNDS)
    loaded = run(THIRD_PARTY)
    print(f"third-party modules loaded by import and dir(): {loaded or 'none'}")
    pairs = zip(took[OURS], took[BARE], strict=True)
    over = statistics.median(ours - bare for ours, bare in pairs)
    over_ms = f"{over * 1e3:.1f} ms, median of the differences"
    say(f"at most {TARGET_MS:g} ms over a bare interpreter", over_ms, met=over * 1e3 <= TARGET_MS)
    say("no third-party module loaded", loaded or "none", met=not loaded)
    finish()


if __name__ == "__main__":
    main()
