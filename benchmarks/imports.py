"""
The time of `import ledgerkit` over a bare interpreter, and the modules it loads.

Prints medians over fresh interpreters in turns. The table also shows what the first verbs load,
each against importing the same libraries directly.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

from _verdict import finish, say

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 41
TARGET_MS = 5.0

SCRIPTS = {
    "bare interpreter": "pass",
    "import ledgerkit": "import ledgerkit",
    "import aiohttp, msgspec": "import aiohttp, msgspec",
    "connect()": "import ledgerkit; ledgerkit.connect('lab', api_url='http://127.0.0.1:9')",
    "import pandas": "import pandas",
    "schema('ft')": "import ledgerkit; ledgerkit.schema('ft')",
    "connect('local')": "import ledgerkit; ledgerkit.connect('local')",
    "a frame of that": (
        "import ledgerkit; ledgerkit.connect('local'); ledgerkit.accounts('alice.near')"
    ),
}
FAST = {"bare interpreter", "import ledgerkit"}
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
    took: dict[str, list[float]] = {name: [] for name in SCRIPTS}
    for script in SCRIPTS.values():
        run(script)  # compiles, and fills the disk cache
    for turn in range(ROUNDS):  # interleaved, so that a busy moment affects all of them
        for name, script in SCRIPTS.items():
            if name in FAST or turn % 4 == 0:
                took[name].append(seconds(script))
    medians = {name: statistics.median(each) * 1e3 for name, each in took.items()}
    bare = medians["bare interpreter"]
    print(f"{'script':<24}{'ms':>8}{'over bare':>11}{'best':>8}")
    for name, median in medians.items():
        best = min(took[name]) * 1e3
        print(f"{name:<24}{median:>8.1f}{median - bare:>11.1f}{best:>8.1f}")
    loaded = run(THIRD_PARTY)
    print(f"third-party modules loaded by import and dir(): {loaded or 'none'}")
    over = statistics.median(
        ours - theirs
        for ours, theirs in zip(took["import ledgerkit"], took["bare interpreter"], strict=True)
    )
    over_ms = f"{over * 1e3:.1f} ms, median of the differences"
    say(f"at most {TARGET_MS:g} ms over a bare interpreter", over_ms, met=over * 1e3 <= TARGET_MS)
    say("no third-party module loaded", loaded or "none", met=not loaded)
    finish()


if __name__ == "__main__":
    main()
