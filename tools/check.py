"""
Run every check of the project, in order, and stop at the first that fails.

`python tools/check.py` runs them all; `python tools/check.py ruff mypy` only these.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPREAD = ["-n", str((os.cpu_count() or 1) + 1), "--dist"]  # one more than cores: tests wait, too
NBVAL = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=60"]
STRICT = ["--fresh-env", "--write-all", "--quiet", "--fail-on-warning", "--keep-going", "--jobs=2"]
SANITIZE = "--nbval-sanitize-with=notebooks/nbval_sanitize.cfg"


def module(*words: str) -> list[str]:
    """Return the command that runs a module in this very interpreter."""
    return [sys.executable, "-m", *words]


def script(*words: str) -> list[str]:
    """Return the command of a tool that was installed beside this interpreter."""
    return [str(Path(sys.executable).with_name(words[0])), *words[1:]]


def sources() -> list[str]:
    """Return the package's files, for the one tool that takes no folder."""
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("ledgerkit/**/*.py"))


# The quick ones first. The tests come last, so that their closing line is easy to find.
STEPS = {
    "ruff": module("ruff", "check", "--quiet"),
    "format": module("ruff", "format", "--check", "--quiet"),
    "mypy": module("mypy", "--no-error-summary"),
    "pyright": module("pyright", "--warnings", "--pythonpath", sys.executable),
    "imports": script("lint-imports", "--no-logo"),
    "numpydoc": module("numpydoc", "lint", *sources()),
    "docs": module("sphinx", *STRICT, "docs", "build/docs"),
    "notebooks": module(
        *("pytest", "-q", *SPREAD, "loadfile", *NBVAL, SANITIZE),
        *("-p", "no:cacheprovider", "notebooks"),
    ),
    "tests": module("pytest", "-q", *SPREAD, "worksteal"),
}


def environment() -> dict[str, str]:
    """Return the environment without a person's own settings, which would change the results."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("LEDGERKIT_")}
    kept.pop("MPLBACKEND", None)  # agg takes the figures out of notebooks
    return kept


def run(name: str) -> bool:
    """Run one step, print its time, and tell whether it passed."""
    print(f"── {name}", flush=True)
    start = time.perf_counter()
    code = subprocess.run(STEPS[name], cwd=ROOT, env=environment(), check=False).returncode
    word = "ok" if code == 0 else f"FAILED (exit {code})"
    print(f"   {name}: {word}, {time.perf_counter() - start:.1f} s", flush=True)
    return code == 0


def main(names: list[str]) -> int:
    """Run the named steps, or all, and return the exit code."""
    if unknown := set(names) - set(STEPS):
        print(f"no such step: {', '.join(sorted(unknown))}. There are: {', '.join(STEPS)}.")
        return 2
    return 0 if all(run(name) for name in names or STEPS) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
