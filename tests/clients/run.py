"""
Run real clients, unmodified, against `ledgerkit serve`: four from PyPI, three from npm.

`python tests/clients/run.py` runs all of them, `… run.py near_kit` those with that in their name.
Their environments are made in `build/clients`, and nothing else with `--prepare`; without Node
the npm clients are skipped.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "clients"
PYTHON = BUILD / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
NODE = BUILD / "node"
LEDGERKIT = [sys.executable, "-m", "ledgerkit"]
ACTORS = ["dave.near", "bob.near"]  # who sends and who receives: accounts with one full key
TIMEOUT_S = 60
PREPARE = "--prepare"


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(*command: object, cwd: Path = ROOT) -> None:
    subprocess.run([str(word) for word in command], cwd=cwd, check=True, stdin=subprocess.DEVNULL)


def is_made(folder: Path, *sources: Path) -> bool:
    """Tell whether an environment was made from just these files."""
    stamp = folder / "made.stamp"
    return stamp.is_file() and stamp.read_bytes() == b"".join(s.read_bytes() for s in sources)


def stamp(folder: Path, *sources: Path) -> None:
    """Note what an environment was made from."""
    (folder / "made.stamp").write_bytes(b"".join(source.read_bytes() for source in sources))


def make_venv() -> None:
    """Install the clients of PyPI in an environment that is not the project's."""
    wanted = HERE / "requirements.txt"
    if not is_made(BUILD / "venv", wanted):
        run(sys.executable, "-m", "venv", "--clear", BUILD / "venv")
        pip = ("-m", "pip", "--disable-pip-version-check", "--no-input", "install", "-qq")
        run(PYTHON, *pip, "-r", wanted)
        stamp(BUILD / "venv", wanted)


def make_node() -> None:
    """Install the clients of npm, and put the scripts beside them, where imports are looked for."""
    wanted = HERE / "package.json", HERE / "package-lock.json"
    NODE.mkdir(parents=True, exist_ok=True)
    for path in (*wanted, *HERE.glob("*.mjs")):
        shutil.copy(path, NODE)
    if not is_made(NODE, *wanted):
        npm = shutil.which("npm")
        run(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=NODE)
        stamp(NODE, *wanted)


def world() -> str:
    """Return what the demo world tells about itself, and who acts in it, as JSON."""
    command = [*LEDGERKIT, "world", "demo", "--json"]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    return json.dumps({**json.loads(told), "actors": ACTORS})


@contextmanager
def serving() -> Iterator[str]:
    """Serve a fresh demo world on a free port; yield its address."""
    command = [*LEDGERKIT, "serve", "--world", "demo", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not (address := re.search(r"http://[\w.]+:\d+", line)):
                raise SystemExit(f"`ledgerkit serve` told no address but {line!r}")
            yield address[0]
        finally:
            process.terminate()


def ended(command: list[str], told: str) -> str:
    """Run a script with the world it is told; say how it ended."""
    try:
        done = subprocess.run(
            command, cwd=ROOT, input=told, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"FAILED: it ran for more than {TIMEOUT_S} s"
    return f"FAILED: exit {done.returncode}" if done.returncode else "ok"


def drive(script: Path, told: str) -> bool:
    """Run one client against a ledger of its own; tell whether all of its checks held."""
    if script.suffix == ".mjs":
        command = [shutil.which("node") or "node", str(NODE / script.name)]
    else:
        command = [str(PYTHON), "-m", f"tests.clients.{script.stem}"]
    start = time.perf_counter()
    with serving() as address:
        how = ended([*command, address], told)
    say(f"── {script.name}: {how}, {time.perf_counter() - start:.1f} s")
    return how == "ok"


def chosen(names: list[str]) -> list[Path]:
    """List the scripts with one of the names in theirs, or all; without Node those of PyPI."""
    found = [path for path in sorted(HERE.glob("with_*")) if path.suffix in MAKERS]
    found = [path for path in found if not names or any(name in path.name for name in names)]
    if shutil.which("node") and shutil.which("npm"):
        return found
    for path in found:
        if path.suffix == ".mjs":
            say(f"── {path.name}: skipped: no node")
    return [path for path in found if path.suffix == ".py"]


def main(words: list[str]) -> int:
    """Make what the scripts need, run them one after the other, and return the exit code."""
    scripts = chosen([word for word in words if word != PREPARE])
    suffixes = {path.suffix for path in scripts}
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda suffix: MAKERS[suffix](), suffixes))
    if PREPARE in words:
        return 0
    told = world()
    failed = [path.name for path in scripts if not drive(path, told)]
    say(f"failed: {', '.join(failed)}" if failed else f"{len(scripts)} clients are served")
    return 1 if failed else 0


MAKERS = {".py": make_venv, ".mjs": make_node}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
