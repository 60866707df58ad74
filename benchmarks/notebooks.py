"""
The time to the first frame in a fresh kernel, and the time of all notebooks.

Prints medians over kernels in turns. A cell is timed from sending it to the kernel's reply,
including its frame as HTML; the start of the kernel is measured separately. All notebooks run
as in the step `notebooks` of tools/check.py.
"""

import re
import runpy
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

from _verdict import finish, say
from jupyter_client.manager import start_new_kernel

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 5
TIMEOUT_S = 60
TARGET_FRAME_S = 2.0
TARGET_SUITE_S = 60.0

CELLS = {
    "pandas, a frame": "import pandas\npandas.DataFrame({'balance': [1, 2, 3]})",
    "ledgerkit, a frame": (
        "import ledgerkit as lk\nledger = lk.connect('local')\nlk.accounts('alice.near')"
    ),
    "ledgerkit, a snapshot": (
        "import ledgerkit as lk\nledger = lk.connect('local')\nlk.snapshot('alice.near')"
    ),
}


def seconds(cell: str) -> tuple[float, float]:
    """Start a kernel and run a cell; return the seconds of each."""
    begin = time.perf_counter()
    kernel, client = start_new_kernel(cwd=str(ROOT), stderr=subprocess.DEVNULL)
    started = time.perf_counter()
    tables: list[str] = []

    def collect(message: dict[str, Any]) -> None:
        if message["msg_type"] == "execute_result":
            tables.append(message["content"]["data"]["text/html"])

    try:
        begun = time.perf_counter()
        reply = client.execute_interactive(cell, timeout=TIMEOUT_S, output_hook=collect)
        took = time.perf_counter() - begun
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
    assert reply["content"]["status"] == "ok", reply["content"]
    assert len(tables) == 1
    assert "<table" in tables[0]
    return started - begin, took


def suite() -> tuple[float, int]:
    """Compare all notebooks with their stored outputs; return the seconds and the cells."""
    check = runpy.run_path(str(ROOT / "tools" / "check.py"))
    begin = time.perf_counter()
    done = subprocess.run(
        check["STEPS"]["notebooks"],
        cwd=ROOT,
        env=check["environment"](),
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.perf_counter() - begin
    assert done.returncode == 0, done.stdout[-3000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    return took, int(passed[1])


def main() -> None:
    starts: list[float] = []
    took: dict[str, list[float]] = {name: [] for name in CELLS}
    for turn in range(ROUNDS + 1):  # interleaved, so that a busy moment affects all of them
        for name, cell in CELLS.items():
            start, ran = seconds(cell)
            if turn:  # the first round compiles, and fills the disk cache
                starts.append(start)
                took[name].append(ran)
    base = statistics.median(took["pandas, a frame"])
    print(f"fresh kernels, median of {ROUNDS}; starting one: {statistics.median(starts):.2f} s")
    print(f"{'first cell':<24}{'s':>8}{'x pandas':>10}{'best':>8}")
    for name, each in took.items():
        median = statistics.median(each)
        print(f"{name:<24}{median:>8.2f}{median / base:>10.2f}{min(each):>8.2f}")
    whole, cells = suite()
    print(f"all notebooks, {cells} cells compared: {whole:.1f} s")
    first = statistics.median(took["ledgerkit, a frame"])
    claim = f"the first frame of a fresh kernel within {TARGET_FRAME_S:g} s"
    say(claim, f"{first:.2f} s", met=first <= TARGET_FRAME_S)
    claim = f"all notebooks within {TARGET_SUITE_S:g} s"
    say(claim, f"{whole:.1f} s", met=whole <= TARGET_SUITE_S)
    finish()


if __name__ == "__main__":
    main()
