"""The benchmarks end in targets of one form, which `tools/bench.py` collects into a table."""

import os
import re
from pathlib import Path

import pytest

from tools import bench

ROOT = Path(__file__).resolve().parents[2]
JUDGING = """
from _verdict import finish, say
say("copying: at most 2 x bare", "1.5, bare 3 ms, here", met=True)
say("at least 9 x", "3", met=False)
{then}
"""
JUDGED = [
    "| made: copying | at most 2 x bare | 1.5 | bare 3 ms, here | met |",
    "| made | at least 9 x | 3 |  | missed |",
]


@pytest.mark.parametrize(
    ("then", "code", "rows"),
    [
        ("finish()", 1, JUDGED),
        ("exit(3)", 3, ["| made | runs to its end | exit code 3 |  | failed |"]),
        ("exit(1)", 1, ["| made | runs to its end | exit code 1 |  | failed |"]),
    ],
    ids=["missed", "stopped", "stopped like a miss"],
)
def test_a_row_a_target(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, then, code, rows):
    """Targets are rows; a miss is exit code 1, and a crashed script is a failed row."""
    script = tmp_path / "made.py"
    script.write_text(JUDGING.format(then=then))
    monkeypatch.setitem(bench.SCRIPTS, "made", script)
    paths = [str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))

    done = bench.run("made", [])

    assert done.code == code
    assert bench.rows(done) == rows


def test_several_runs_are_one_row():
    """Minimum, median and maximum by number; a target that one of the runs missed is not met."""
    texts = [
        f"target: fast: {word} ({n:,} rows/s; bare {n // 2})\ntarget: exact: met (0 off)\n"
        for n, word in ((1_200, "met"), (900, "missed"), (10_000, "met"))
    ]
    assert bench.rows(*(bench.Run("made", text, int("missed" in text)) for text in texts)) == [
        "| made | fast | 900 rows/s / 1,200 rows/s / 10,000 rows/s | bare 600 | missed in 1 of 3 |",
        "| made | exact | 0 off |  | met |",
    ]


def test_every_benchmark_ends_in_its_targets():
    """Each script reports with `say`, prints no target itself, and ends in `finish`."""
    texts = {name: path.read_text(encoding="utf-8") for name, path in bench.SCRIPTS.items()}

    assert set(bench.SMALL) < set(texts)
    assert [name for name, text in texts.items() if "    finish()\n" not in text] == []
    assert [name for name, text in texts.items() if '"target: ' in text] == []


PAGE = """Before.

<!-- benchmarks begin -->
{head}| imports | quick | 1 | | met |
| removed | of a script that is gone | 1 | | met |
| u128: sum | a sum | 2 | | met |
| u128 | another | 3 | | met |

Measured on an older machine.
<!-- benchmarks end -->

| u128 | no row of the table |
"""
WRITTEN = """Before.

<!-- benchmarks begin -->
{head}| imports | a \\1 claim | 1 / 1 / 2 | | met |
| receipts | fast | 4 | | missed |
| u128: sum | a sum | 2 | | met |
| u128 | another | 3 | | met |

Three figures: minimum / median / maximum of several runs. Measured on a machine.
<!-- benchmarks end -->

| u128 | no row of the table |
"""


def test_the_rows_that_are_replaced(tmp_path: Path, monkeypatch):
    """Writing replaces the rows of the benchmarks that ran, and the machine below the table."""
    assert bench.PAGE == ROOT / "docs" / "benchmarks.md"
    page = tmp_path / "benchmarks.md"
    page.write_text(PAGE.format(head=bench.HEAD), encoding="utf-8")
    monkeypatch.setattr(bench, "PAGE", page)
    monkeypatch.setattr(bench, "machine", lambda: "a machine")

    fast = ["| receipts | fast | 4 | | missed |"]
    bench.write({"receipts": fast, "imports": ["| imports | a \\1 claim | 1 / 1 / 2 | | met |"]})

    assert page.read_text(encoding="utf-8") == WRITTEN.format(head=bench.HEAD)


def test_the_page_has_the_table():
    """The page in the docs has the marks, and only rows of benchmarks that exist."""
    marked = bench.MARKED.search(bench.PAGE.read_text(encoding="utf-8"))
    assert marked is not None
    assert {row[1] for row in bench.ROW.finditer(marked[2])} <= set(bench.SCRIPTS)


def test_the_machine_is_named():
    """The line names what figures depend on, and no path of the machine."""
    line = bench.machine()

    versions = r"Python 3[\d.]+, pandas \S+, pyarrow \S+, aiohttp \S+"
    assert re.fullmatch(rf"\d+ x .+, \d+ GiB of memory, .+, {versions}", line)
    assert str(ROOT) not in line
