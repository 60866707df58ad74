"""
Run the benchmarks, one after the other, and end with a table of their targets.

`python tools/bench.py` runs all; `--only u128 receipts` runs these, `--small` runs the small
editions of those that have one, and `--runs 3` runs each three times. `--write` runs each six
times, and stores the rows in the table of docs/benchmarks.md. Of several runs a figure is the
minimum, the median and the maximum, and a target is met if every run met it. The exit code is 1 if
a target is missed or a benchmark fails.
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
PAGE = ROOT / "docs" / "benchmarks.md"
SCRIPTS = {path.stem: path for path in sorted((ROOT / "benchmarks").glob("[!_]*.py"))}
SMALL = {"block_documents": ["--small"], "collect": ["--small"], "statement": ["--small"]}
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
TARGET = re.compile(r"^target: (.+): (met|missed) \((.+)\)$", re.MULTILINE)
ROW = re.compile(r"^\| ([a-z]\w*)\b.*\|$", re.MULTILINE)
MARKED = re.compile(r"(<!-- benchmarks begin -->\n)(.*)(<!-- benchmarks end -->\n)", re.DOTALL)
HEAD = "| Job | Target | Figure | Beside it | |\n|---|---|---|---|---|\n"
STORED_RUNS = 6


class Run(NamedTuple):
    """A finished benchmark: its output and exit code."""

    name: str
    printed: str
    code: int


def run(name: str, arguments: list[str]) -> Run:
    """Run a benchmark without LEDGERKIT_ variables, and print its output as it comes."""
    print(f"── {name}", flush=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LEDGERKIT_")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # each import would compile its module again
    command = [sys.executable, "-u", str(SCRIPTS[name]), *arguments]
    printed = []
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, encoding="utf-8"
    ) as script:
        for line in script.stdout or ():
            print(line, end="", flush=True)
            printed.append(line)
    return Run(name, "".join(printed), script.returncode)


def rows(*runs: Run) -> list[str]:
    """Format a table row for each target of a benchmark's runs, and one more if it failed."""
    results: dict[str, list[tuple[str, str]]] = {}
    for done in runs:
        targets = TARGET.findall(done.printed)
        if not targets or done.code not in {0, 1}:
            targets.append(("runs to its end", "failed", f"exit code {done.code}"))
        for claim, word, figure in targets:
            results.setdefault(claim, []).append((word, figure))
    return [row(runs[0].name, claim, judged) for claim, judged in results.items()]


def row(name: str, claim: str, judged: list[tuple[str, str]]) -> str:
    """
    Format the row of a target.

    A claim is "job: target" or a target alone; a figure may have a rival or a limit after a comma.
    """
    job, _, target = claim.rpartition(": ")
    by_number = sorted((figure for _, figure in judged), key=number)
    median = by_number[(len(by_number) - 1) // 2]
    own, beside = zip(*map(parts, (by_number[0], median, by_number[-1])), strict=True)
    figure = own[0] if len(set(own)) == 1 else " / ".join(own)
    cells = (f"{name}: {job}" if job else name, target, figure, beside[1])
    return f"| {' | '.join(cells)} | {verdict([word for word, _ in judged])} |"


def parts(figure: str) -> tuple[str, str]:
    """Split a figure into its own number and what is beside it."""
    own, *beside = re.split("[,;] ", figure, maxsplit=1)
    return own, beside[0] if beside else ""


def number(figure: str) -> float:
    """Return the first number of a figure."""
    digits = NUMBER.search(figure)
    return float(digits[0].replace(",", "")) if digits else 0.0


def verdict(words: list[str]) -> str:
    """Return the word for all runs: "met" if each of them met the target."""
    missed = [word for word in words if word != "met"]
    if not missed or len(missed) == len(words):
        return words[0]
    return f"{missed[0]} in {len(missed)} of {len(words)}"


def processor() -> str:
    """Return the processor's model, or the machine type where the model is not known."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else ""
    model = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return model[1].strip() if model else platform.machine()


def system() -> str:
    """Return the name of the operating system."""
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:  # another system than Linux
        return platform.system()


def machine() -> str:
    """Describe the machine by what the figures depend on, without anything private."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    libraries = [f"{name} {version(name)}" for name in ("pandas", "pyarrow", "aiohttp")]
    parts = [f"{os.cpu_count()} x {processor()}", f"{memory:.0f} GiB of memory", system()]
    return ", ".join([*parts, f"Python {platform.python_version()}", *libraries])


def write(new: dict[str, list[str]]) -> None:
    """Replace the rows of some benchmarks in the table of the page, and name the machine."""
    text = PAGE.read_text(encoding="utf-8")
    marked = MARKED.search(text)
    if marked is None:
        sys.exit(f"{PAGE.name} has no place for the table: <!-- benchmarks begin -->, … end -->")
    by_name: dict[str, list[str]] = {}
    for row in ROW.finditer(marked[2]):
        by_name.setdefault(row[1], []).append(row[0])
    table = format_table({name: by_name[name] for name in by_name.keys() & SCRIPTS} | new)
    start, end = marked.span(2)
    PAGE.write_text(f"{text[:start]}{table}{text[end:]}", encoding="utf-8")


def format_table(by_name: dict[str, list[str]]) -> str:
    """Format the rows of benchmarks as a table, with the machine below it."""
    body = "".join(f"{row}\n" for _, listed in sorted(by_name.items()) for row in listed)
    explanation = "Three figures: minimum / median / maximum of several runs."
    return f"{HEAD}{body}\n{explanation} Measured on {machine()}.\n"


def main() -> int:
    """Run the chosen benchmarks, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description="Run benchmarks; end with a table of targets.")
    parser.add_argument("--only", nargs="+", choices=SCRIPTS, metavar="NAME", default=SCRIPTS)
    parser.add_argument("--small", action="store_true", help="run the small editions")
    parser.add_argument("--runs", type=int, help="run each so many times; 6 with --write")
    parser.add_argument("--write", action="store_true", help="store the table in the docs")
    options = parser.parse_args()
    if options.small and options.write:
        parser.error("the stored table is of the full editions: use --write without --small")
    n_runs = options.runs or (STORED_RUNS if options.write else 1)
    if n_runs < 1 or (options.write and n_runs != STORED_RUNS):
        parser.error(f"--runs {n_runs} is not valid: at least 1, and {STORED_RUNS} with --write")
    done = {
        name: [run(name, SMALL.get(name, []) if options.small else []) for _ in range(n_runs)]
        for name in options.only
    }
    by_name = {name: rows(*runs) for name, runs in done.items()}
    print(f"\n{format_table(by_name)}", end="")
    if options.write:
        write(by_name)
    return int(any(each.code for runs in done.values() for each in runs))


if __name__ == "__main__":
    sys.exit(main())
