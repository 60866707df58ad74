"""
Use every panel in headless Chromium, as a person would, and compare what stands on the page.

`python tests/browser/run.py` runs all checks; more words go to pytest, such as `-k account`.
The environment is made in `build/browser`, and the pictures of the panels land there. Without
Chromium all are skipped; with `--install` Debian's is installed first, where that is possible,
and with `--prepare` no check is run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "browser"
PYTHON = BUILD / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
SOURCES = (ROOT / "pyproject.toml", HERE / "requirements.txt")
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
DEBIAN = ("chromium", "fonts-dejavu-core")


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"── browser: {text}\n")
    sys.stdout.flush()


def run(*command: object, **more: str) -> int:
    """Run a command in the project's folder; return its exit code."""
    words = [str(word) for word in command]
    env = {k: v for k, v in os.environ.items() if not k.startswith("LEDGERKIT_")} | more
    env.pop("MPLBACKEND", None)  # agg takes the figures out of notebooks
    return subprocess.run(
        words, cwd=ROOT, env=env, check=False, stdin=subprocess.DEVNULL
    ).returncode


def chromium() -> str | None:
    return next((path for name in CHROMIUMS if (path := shutil.which(name))), None)


def install() -> None:
    """Install Debian's Chromium, where this is Debian and we may."""
    apt = shutil.which("apt-get")
    if apt is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        say("Chromium is not installed, and can't be from here")
        return
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    say("installing Chromium")
    if run(apt, "-qq", "update", **quiet) == 0:
        run(apt, "-qq", "install", "-y", "--no-install-recommends", *DEBIAN, **quiet)


def is_made() -> bool:
    """Tell whether the environment was made from just these files."""
    stamp = BUILD / "venv" / "made.stamp"
    return stamp.is_file() and stamp.read_bytes() == b"".join(s.read_bytes() for s in SOURCES)


def make() -> None:
    """Install the project as who reads notebooks has it, and what drives the browser."""
    if is_made():
        return
    say("making an environment (a minute or two, the first time)")
    pip = ("-m", "pip", "--disable-pip-version-check", "--no-input", "install", "-qq")
    wanted = ("-e", ".[notebook]", "-r", SOURCES[1])
    if run(sys.executable, "-m", "venv", "--clear", BUILD / "venv") or run(PYTHON, *pip, *wanted):
        raise SystemExit("── browser: FAILED: the environment can't be made")
    (BUILD / "venv" / "made.stamp").write_bytes(b"".join(s.read_bytes() for s in SOURCES))


def main(words: list[str]) -> int:
    """Run the checks and return the exit code; to have no browser is no failure."""
    if "--install" in words and chromium() is None:
        install()
    found = chromium()
    if found is None:
        say(f"skipped: none of {', '.join(CHROMIUMS)} is on PATH")
        return 0
    make()
    if "--prepare" in words:
        return 0
    start = time.perf_counter()
    more = [word for word in words if word != "--install"]
    together = ("-n", "2", "--dist", "loadfile")  # two browsers: they mostly wait
    code = run(PYTHON, "-m", "pytest", "-q", *together, *more, HERE, CHROMIUM=found)
    say(f"{f'FAILED: exit {code}' if code else 'ok'}, {time.perf_counter() - start:.1f} s")
    return 1 if code else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
