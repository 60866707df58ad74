"""The benchmarks end in targets of one form, which `tools/bench.py` collects into a table."""

import importlib.util
import os
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
JUDGING = """
from _verdict import finish, say
say("at most 2 x bare: quickly", "1.5 (best)", met=True)
say("at least 9 x", "3", met=False, binding={binding})
{then}
"""
JUDGED = [
    "| made | at most 2 x bare: quickly | 1.5 (best) | met |",
    "| made | at least 9 x | 3 | missed |",
]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Load the tool, and make the benchmarks' own modules importable for its scripts."""
    spec = importlib.util.spec_from_file_location("bench", ROOT / "tools" / "bench.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    paths = [str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    return module


@pytest.mark.parametrize(
    ("words", "code", "rows"),
    [
        ({"binding": True, "then": "finish()"}, 1, JUDGED),
        ({"binding": False, "then": "finish()"}, 0, JUDGED),
        (
            {"binding": False, "then": "exit(3)"},
            3,
            ["| made | runs to its end | exit code 3 | failed |"],
        ),
        (
            {"binding": False, "then": "exit(1)"},
            1,
            ["| made | runs to its end | exit code 1 | failed |"],
        ),
    ],
    ids=["missed", "not binding", "stopped", "stopped like a miss"],
)
def test_a_row_a_target(bench: ModuleType, tmp_path: Path, words, code, rows):
    """Targets are rows; a binding miss is exit code 1, and a crashed script is a failed row."""
    script = tmp_path / "made.py"
    script.write_text(JUDGING.format(**words))
    bench.SCRIPTS["made"] = script

    done = bench.run("made", [])

    assert done.code == code
    assert bench.rows(done) == rows


def test_several_runs_are_one_row(bench: ModuleType):
    """Minimum, median and maximum by number; a target that one of the runs missed is not met."""
    texts = [
        f"target: fast: {word} ({n:,} rows/s)\ntarget: exact: met (0 off)\n"
        for n, word in ((1_200, "met"), (900, "missed"), (10_000, "met"))
    ]
    assert bench.rows(*(bench.Run("made", text, int("missed" in text)) for text in texts)) == [
        "| made | fast | 900 rows/s / 1,200 rows/s / 10,000 rows/s | missed in 1 of 3 |",
        "| made | exact | 0 off | met |",
    ]


def test_every_benchmark_ends_in_its_targets(bench: ModuleType):
    """Each script reports with `say`, prints no target itself, and ends in `finish`."""
    texts = {name: path.read_text(encoding="utf-8") for name, path in bench.SCRIPTS.items()}

    assert set(bench.SMALL) < set(texts)
    assert [name for name, text in texts.items() if "    finish()\n" not in text] == []
    assert [name for name, text in texts.items() if '"target: ' in text] == []


def test_the_table_has_its_place(bench: ModuleType, tmp_path: Path, monkeypatch):
    """Writing replaces the table between the marks of its page, and nothing else."""
    assert bench.PAGE == ROOT / "docs" / "benchmarks.md"
    stored = bench.PAGE.read_text(encoding="utf-8")
    before, begin, table = stored.partition("<!-- benchmarks begin -->\n")
    _, end, after = table.partition("<!-- benchmarks end -->\n")
    copy = tmp_path / "benchmarks.md"
    copy.write_text(stored, encoding="utf-8")
    monkeypatch.setattr(bench, "PAGE", copy)

    bench.write("a \\1 table\n")

    assert copy.read_text(encoding="utf-8") == f"{before}{begin}a \\1 table\n{end}{after}"


def test_the_machine_is_named(bench: ModuleType):
    """The line names what figures depend on, and no path of the machine."""
    line = bench.machine()

    assert re.fullmatch(
        r"\d+ x .+, \d+ GiB of memory, .+, Python 3[\d.]+, pandas \S+, pyarrow \S+, httpx \S+", line
    )
    assert str(ROOT) not in line
