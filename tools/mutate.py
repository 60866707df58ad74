"""
Change the package in one place at a time, and see whether the tests that hold it notice.

`python tools/mutate.py` tries all mutants of tools/mutants.txt, `python tools/mutate.py proofs`
those whose file has this in its path. Each is tried on a copy of the project, with the tests that
are named above it. It prints those that survive, and exits with 1 if there are any.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_name("mutants.txt")


LONGEST_S = 600


class Mutant(NamedTuple):
    """A change: the file, its words, what stands in their place, and the tests, below tests/."""

    path: str
    old: str
    new: str
    tests: str

    def __str__(self) -> str:
        return f"{self.path}: {self.old} → {self.new}"


def mutants() -> list[Mutant]:
    """Read tools/mutants.txt: a file and its tests, and below it each change as in a diff."""
    listed, path, tests, old = [], "", "", ""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        mark, words = line[:2], line[2:]
        if mark == "- ":
            old = words
        elif mark == "+ ":
            listed.append(Mutant(path, old, words, tests))
        else:
            path, _, tests = line.partition(": ")
    return listed


def mutated(mutant: Mutant) -> str:
    """Return the source of a mutant; its words must stand in the file once."""
    source = (ROOT / "ledgerkit" / mutant.path).read_text(encoding="utf-8")
    if source.count(mutant.old) != 1:
        msg = f"{mutant.path} has {source.count(mutant.old)} times: {mutant.old}"
        raise ValueError(msg)
    return source.replace(mutant.old, mutant.new)


def survives(mutant: Mutant, folder: Path) -> bool:
    """Return True if the tests pass with a mutant in a copy of the project."""
    target = folder / "ledgerkit" / mutant.path
    original = target.read_text(encoding="utf-8")
    target.write_text(mutated(mutant), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, *(f"tests/{path}" for path in mutant.tests.split())],
            cwd=folder,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_S,
        )
    except subprocess.TimeoutExpired:  # a test waits for what never comes
        return False
    finally:
        target.write_text(original, encoding="utf-8")
    if done.returncode not in {0, 1, 2}:
        raise RuntimeError(done.stdout + done.stderr)
    return done.returncode == 0


def main(words: Sequence[str]) -> int:
    """Try the chosen mutants, and return the exit code."""
    chosen = [m for m in mutants() if not words or any(word in m.path for word in words)]
    survivors = []
    with tempfile.TemporaryDirectory(dir=ROOT.parent) as name:  # tests find what lies beside
        folder = Path(name)
        for part in ("ledgerkit", "tests", "tools"):
            shutil.copytree(ROOT / part, folder / part)
        shutil.copy(ROOT / "pyproject.toml", folder)
        for mutant in chosen:
            word = "killed"
            if survives(mutant, folder):
                word = "SURVIVES"
                survivors.append(mutant)
            print(f"{word:<9}{mutant}", flush=True)
    print(f"{len(chosen)} mutants, {len(survivors)} survive")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
