"""
Run the benchmarks, one after the other, and end with a table of their targets.

`python tools/bench.py` runs all; `--only u128 trees` these, `--small` the small editions of
those that have one, and `--write` puts the table and the machine into the README.
The exit code is 1 if a target is missed or a benchmark does not come to its end.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
SCRIPTS = {path.stem: path for path in sorted((ROOT / "benchmarks").glob("[!_]*.py"))}
SMALL = {"collect": ["--small"], "kills": ["--accounts", "10000", "--kills", "5"]}
TARGET = re.compile(r"^target: (.+): (met|missed) \((.+)\)$", re.MULTILINE)
MARKED = re.compile(r"(<!-- benchmarks begin -->\n).*(<!-- benchmarks end -->\n)", re.DOTALL)
HEAD = "| Benchmark | Target | Figure | |\n|---|---|---|---|\n"


class Run(NamedTuple):
    """A benchmark that was run: all that it printed, and how it ended."""

    name: str
    printed: str
    code: int


def run(name: str, words: list[str]) -> Run:
    """Run a benchmark, without a person's own settings, and show what it prints as it comes."""
    print(f"── {name}", flush=True)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("LEDGERKIT_")}
    command = [sys.executable, "-u", str(SCRIPTS[name]), *words]
    printed = []
    with subprocess.Popen(
        command, cwd=ROOT, env=kept, stdout=subprocess.PIPE, encoding="utf-8"
    ) as script:
        for line in script.stdout or ():
            print(line, end="", flush=True)
            printed.append(line)
    return Run(name, "".join(printed), script.returncode)


def rows(done: Run) -> list[str]:
    """Write a row for each target, and one if the benchmark did not come to its end."""
    found = TARGET.findall(done.printed)
    if not found or done.code not in {0, 1}:
        found.append(("runs to its end", "failed", f"exit code {done.code}"))
    return [f"| {done.name} | {claim} | {figure} | {word} |" for claim, word, figure in found]


def processor() -> str:
    """Name the processor's model, or its kind where no model is told."""
    told = Path("/proc/cpuinfo")
    text = told.read_text(encoding="utf-8") if told.exists() else ""
    model = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return model[1].strip() if model else platform.machine()


def system() -> str:
    """Name the operating system."""
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:  # another system than Linux
        return platform.system()


def machine() -> str:
    """Name the machine: what the figures depend on, and nothing private."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    libraries = [f"{name} {version(name)}" for name in ("pandas", "pyarrow", "httpx")]
    parts = [f"{os.cpu_count()} x {processor()}", f"{memory:.0f} GiB of memory", system()]
    return ", ".join([*parts, f"Python {platform.python_version()}", *libraries])


def write(text: str) -> None:
    """Put the table between its two marks in the README."""
    whole = README.read_text(encoding="utf-8")
    if not MARKED.search(whole):
        sys.exit(f"{README.name} has no place for the table: <!-- benchmarks begin -->, … end -->")
    new = MARKED.sub(lambda marks: f"{marks[1]}{text}{marks[2]}", whole)
    README.write_text(new, encoding="utf-8")


def main() -> int:
    """Run what is asked for, show the table, and return the exit code."""
    parser = argparse.ArgumentParser(description="Run benchmarks; end with a table of targets.")
    parser.add_argument("--only", nargs="+", choices=SCRIPTS, metavar="NAME", default=SCRIPTS)
    parser.add_argument("--small", action="store_true", help="small editions, where there are")
    parser.add_argument("--write", action="store_true", help="put the table into the README")
    asked = parser.parse_args()
    if asked.small and asked.write:
        parser.error("the README shows the whole editions: --write without --small")
    done = [run(name, SMALL.get(name, []) if asked.small else []) for name in asked.only]
    table = HEAD + "".join(f"{row}\n" for each in done for row in rows(each))
    text = f"{table}\nMeasured on {machine()}.\n"
    print(f"\n{text}", end="")
    if asked.write:
        write(text)
    return int(any(each.code for each in done))


if __name__ == "__main__":
    sys.exit(main())
