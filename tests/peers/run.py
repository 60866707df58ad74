"""
Run other projects' own test suites, unmodified, with `near-sandbox` in the place of a node.

`python tests/peers/run.py --from FOLDER` runs the suites whose checkouts are in FOLDER,
`… --from FOLDER near-kit` those with that in their name, and `--prepare` makes their environments
only. The checkouts are copied to `build/peers`, and every case that does not pass is listed. This
is no part of the tests, because the checkouts are not kept here.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "peers"
SANDBOX = BUILD / "near-sandbox"
# What the console script of that name runs, from this checkout instead of an installed one.
LAUNCHER = f"""#!{sys.executable}
import sys

sys.path.insert(0, {str(ROOT)!r})
from ledgerkit.cli import near_sandbox

sys.exit(near_sandbox())
"""
START_S = 30
SUITE_S = 900
MAX_REASON = 160  # characters
# near-api-js pins 0.3.1 of this package, which npm does not have.
PNPM_HOOK = """
const readPackage = (manifest) => {
  const versions = manifest.devDependencies ?? {};
  if (versions["near-sandbox"]) versions["near-sandbox"] = "0.3.4";
  return manifest;
};
module.exports = { hooks: { readPackage } };
"""


class Case(NamedTuple):
    """A case of a suite."""

    file: str
    name: str
    outcome: str  # passed, failed or skipped
    reason: str = ""


@dataclass(frozen=True)
class Peer:
    """A project whose tests are run."""

    name: str  # of the folder with the checkout
    source: str
    revision: str  # a commit, or the version of a source distribution
    prepare: Callable[[Path], None]
    run: Callable[[Path], list[Case]]


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(*command: object, cwd: Path, check: bool = True, **variables: str) -> None:
    """Run a command without the project's own variables."""
    words = [str(word) for word in command]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | variables
    subprocess.run(
        words,
        cwd=cwd,
        env=environment,
        check=check,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        timeout=SUITE_S,
    )


# near-kit (Python): it is told where a sandbox listens -----------------------------------------


def prepare_near_kit(folder: Path) -> None:
    """Install the project in an environment of its own."""
    run(sys.executable, "-m", "venv", "--clear", folder / ".venv", cwd=folder)
    pip = (folder / ".venv" / "bin" / "python", "-m", "pip", "install", "-qq")
    run(*pip, "-e", ".", "pytest>=8", "pytest-asyncio", "pytest-cov", cwd=folder)


def run_near_kit(folder: Path) -> list[Case]:
    """Run the tests that need a sandbox."""
    report = folder / "report.xml"
    with sandbox() as address:
        python = folder / ".venv" / "bin" / "python"
        options = ("-q", "--no-cov", f"--junitxml={report}")
        run(
            *(python, "-m", "pytest", "tests/integration", "tests/plugin", *options),
            cwd=folder,
            check=False,
            NEAR_SANDBOX_URL=address,
        )
    return [_junit_case(each) for each in ET.parse(report).iter("testcase")]  # noqa: S314 - own file


def _junit_case(element: ET.Element) -> Case:
    file, _, group = (element.get("classname") or "").removeprefix("tests.").partition(".Test")
    name = f"{group}.{element.get('name')}".lstrip(".")
    for tag, outcome in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        problem = element.find(tag)
        if problem is not None:
            return Case(file, name, outcome, problem.get("message") or "")
    return Case(file, name, "passed")


@contextmanager
def sandbox() -> Iterator[str]:
    """Serve a sandbox of the account `sandbox`, whose key is made from that seed."""
    with tempfile.TemporaryDirectory() as home:
        command = [str(SANDBOX), "--home", home]
        init = [*command, "init", "--account-id", "sandbox", "--test-seed", "sandbox", "--fast"]
        subprocess.run(init, check=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        address = f"http://127.0.0.1:{port}"
        with subprocess.Popen([*command, "run", "--rpc-addr", f"127.0.0.1:{port}"]) as process:
            try:
                _await_node(f"{address}/status")
                yield address
            finally:
                process.terminate()


def _await_node(url: str) -> None:
    """Wait until a node answers."""
    until = time.monotonic() + START_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=1):  # noqa: S310 - an address of this machine
                return
        except (urllib.error.URLError, OSError):
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


# near-api-js: it starts sandboxes itself -------------------------------------------------------


def prepare_near_api_js(folder: Path) -> None:
    (folder / ".pnpmfile.cjs").write_text(PNPM_HOOK, encoding="utf-8")
    pnpm = ("npx", "--yes", "pnpm@10", "install", "--ignore-scripts", "--no-frozen-lockfile")
    # A version that the project names would be fetched, whose signature a mirror may not have.
    run(*pnpm, cwd=folder, npm_config_manage_package_manager_versions="false")


def run_near_api_js(folder: Path) -> list[Case]:
    """Run the tests of accounts, providers and typed contracts."""
    report = folder / "report.json"
    suites = ("test/unit/accounts", "test/unit/providers", "test/integration")
    disabled = ("--coverage.enabled=false", "--typecheck.enabled=false")
    options = (*disabled, "--reporter=json", f"--outputFile={report}")
    run(
        *("npx", "vitest", "run", *suites, *options),
        cwd=folder,
        check=False,
        NEAR_SANDBOX_BIN_PATH=str(SANDBOX),
    )
    outcomes = {"passed": "passed", "failed": "failed"}
    return [
        Case(
            file["name"].removeprefix(f"{folder}/test/"),
            each["fullName"],
            outcomes.get(each["status"], "skipped"),
            (each["failureMessages"] or [""])[0],
        )
        for file in json.loads(report.read_text(encoding="utf-8"))["testResults"]
        for each in file["assertionResults"]
    ]


PEERS = (
    Peer(
        "near-kit-py",
        "the source distribution of near-kit on PyPI",
        "1.3.0",
        prepare_near_kit,
        run_near_kit,
    ),
    Peer(
        "near-api-js",
        "a clone of near/near-api-js on GitHub",
        "652c3c31f44d",
        prepare_near_api_js,
        run_near_api_js,
    ),
)


def revision(checkout: Path) -> str:
    """Read the commit of a clone, or the version of a source distribution."""
    if (checkout / ".git").exists():
        command = ("git", "-C", str(checkout), "rev-parse", "HEAD")
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    metadata = checkout / "PKG-INFO"
    text = metadata.read_text(encoding="utf-8") if metadata.is_file() else ""
    version = re.search(r"^Version: (.+)$", text, re.MULTILINE)
    return version[1] if version else "unknown"


def prepare(peer: Peer, source: Path) -> Path:
    """Copy a checkout of the revision that is named here, and make its environment."""
    checkout, copy = source / peer.name, BUILD / peer.name
    if not checkout.is_dir():
        raise SystemExit(f"{checkout} is missing: it should be {peer.source}, {peer.revision}")
    actual = revision(checkout)
    if not actual.startswith(peer.revision):
        raise SystemExit(f"{checkout} is of revision {actual} instead of {peer.revision}")
    stamp = copy / "made.stamp"
    if not (stamp.is_file() and stamp.read_text(encoding="utf-8") == actual):
        say(f"── {peer.name}: making its environment")
        shutil.rmtree(copy, ignore_errors=True)
        ignored = shutil.ignore_patterns(".git", "node_modules", ".venv")
        shutil.copytree(checkout, copy, ignore=ignored)
        peer.prepare(copy)
        stamp.write_text(actual, encoding="utf-8")
    SANDBOX.write_text(LAUNCHER, encoding="utf-8")
    SANDBOX.chmod(0o755)
    return copy


def report(peer: Peer, cases: list[Case]) -> bool:
    """Print each file's count and the cases that did not pass; return True if none failed."""
    for file, group in groupby(sorted(cases), key=lambda case: case.file):
        outcomes = [case.outcome for case in group]
        say(f"   {outcomes.count('passed'):3} of {len(outcomes):3}  {file}")
    for case in cases:
        if case.outcome != "passed":
            reason = (case.reason.splitlines() or [""])[0][:MAX_REASON]
            say(f"   {case.outcome}: {case.file}: {case.name}: {reason}")
    passed = sum(case.outcome == "passed" for case in cases)
    say(f"── {peer.name} {peer.revision}: {passed} of {len(cases)} cases passed")
    return all(case.outcome != "failed" for case in cases) and passed > 0


def main() -> int:
    """Run the chosen suites; return the exit code."""
    parser = argparse.ArgumentParser(description="run other projects' own tests")
    parser.add_argument("--from", dest="source", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--prepare", action="store_true", help="make the environments only")
    parser.add_argument("names", nargs="*", help="parts of the projects' names; default: all")
    args = parser.parse_args()
    peers = [p for p in PEERS if not args.names or any(name in p.name for name in args.names)]
    copies = [prepare(peer, args.source.resolve()) for peer in peers]
    if args.prepare:
        return 0
    results = [report(p, p.run(copy)) for p, copy in zip(peers, copies, strict=True)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
