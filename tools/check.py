"""
Run every check of the project: the static ones side by side, then, if they pass, the others.

`python tools/check.py` runs all checks; `python tools/check.py ruff mypy` runs these. `docs` builds
the documentation into build/docs, and is left out otherwise, because the tests build it too.
"""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORES = os.cpu_count() or 1
SPREAD = ["-n", str(CORES + 1), "--dist"]  # one more than cores, because many tests wait
NBVAL = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=60"]
STRICT = ["--fresh-env", "--write-all", "--quiet", "--fail-on-warning", "--keep-going", "--jobs=2"]
SANITIZE = "--nbval-sanitize-with=notebooks/nbval_sanitize.cfg"


def module(*words: str) -> list[str]:
    """Return the command that runs a module in this interpreter."""
    return [sys.executable, "-m", *words]


def script(*words: str) -> list[str]:
    """Return the command of a tool installed beside this interpreter."""
    return [str(Path(sys.executable).with_name(words[0])), *words[1:]]


def sources() -> list[str]:
    """Return the package's files, for numpydoc, which takes no folder."""
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("ledgerkit/**/*.py"))


# Quick checks first. The tests are last, so that their summary is easy to find.
STEPS = {
    "ruff": module("ruff", "check", "--quiet"),
    "format": module("ruff", "format", "--check", "--quiet"),
    "mypy": module("mypy", "--no-error-summary"),
    "pyright": module("pyright", "--warnings", "--pythonpath", sys.executable),
    "imports": script("lint-imports", "--no-logo"),
    "numpydoc": module("numpydoc", "lint", *sources()),
    # Compiles the tests once, before several processes load them.
    "collect": module("pytest", "--collect-only", "-qq"),
    "docs": module("sphinx", *STRICT, "docs", "build/docs"),
    "notebooks": module(
        *("pytest", "-q", *SPREAD, "loadfile", *NBVAL, SANITIZE),
        *("-p", "no:cacheprovider", "notebooks"),
    ),
    "tests": module("pytest", "-q", *SPREAD, "worksteal"),
}

ALL = [name for name in STEPS if name != "docs"]
# Most of these use one core, so they run side by side.
STATIC = {"ruff", "format", "mypy", "pyright", "imports", "numpydoc", "collect"}


def environment() -> dict[str, str]:
    """Return the environment without the variables that would change the results."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("LEDGERKIT_")}
    variables.pop("MPLBACKEND", None)  # with agg, notebooks show no figures
    # Each of the many processes would compile the package and the tests again.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return variables


def run(name: str) -> bool:
    """Run one check, print its time and its output, and return True if it passed."""
    if name not in STATIC:
        print(f"── {name}", flush=True)
    start = time.perf_counter()
    done = subprocess.run(
        STEPS[name],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE if name in STATIC else None,
        stderr=subprocess.STDOUT if name in STATIC else None,
        text=True,
        check=False,
    )
    text = done.stdout if done.stdout and done.returncode else ""  # of a static check that failed
    word = f"FAILED (exit {done.returncode})" if done.returncode else "ok"
    print(f"{text}   {name}: {word}, {time.perf_counter() - start:.1f} s", flush=True)
    return done.returncode == 0


def main(names: list[str]) -> int:
    """Run the named checks, or all, and return the exit code."""
    if unknown := set(names) - set(STEPS):
        print(f"no such check: {', '.join(sorted(unknown))}. Choose from: {', '.join(STEPS)}.")
        return 2
    names = names or ALL
    with ThreadPoolExecutor(CORES) as pool:
        passed = list(pool.map(run, (name for name in names if name in STATIC)))
    others = [name for name in names if name not in STATIC]
    return 0 if all(passed) and all(run(name) for name in others) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
