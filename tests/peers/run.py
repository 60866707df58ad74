"""
Run other projects' own test suites, unmodified, with `near-sandbox` in the place of a node.

`python tests/peers/run.py --from FOLDER` runs the suites whose checkouts are in FOLDER;
`… --from FOLDER near-kit` those with that in their name. The checkouts are copied to `build/peers`,
where their environments are made too, and every case that does not pass is listed. This is no part
of the tests: the checkouts are not kept here.
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
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "peers"
SANDBOX = Path(sys.executable).with_name("near-sandbox")
START_S = 30
SUITE_S = 900
MAX_REASON = 160  # characters
# near-api-js pins a version of this package that npm no longer has.
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

    name: str
    outcome: str  # passed, failed or skipped
    reason: str = ""


@dataclass(frozen=True)
class Peer:
    """A project whose tests are run."""

    name: str
    version: str  # of the checkout
    version_file: str
    source: str
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
            *(python, "-m", "pytest", "tests/integration", *options),
            cwd=folder,
            check=False,
            NEAR_SANDBOX_URL=address,
        )
    return [_junit_case(each) for each in ET.parse(report).iter("testcase")]  # noqa: S314 - own file


def _junit_case(element: ET.Element) -> Case:
    """Read a case of a JUnit report."""
    name = f"{element.get('classname')}.{element.get('name')}"
    for tag, outcome in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        problem = element.find(tag)
        if problem is not None:
            return Case(name, outcome, problem.get("message") or "")
    return Case(name, "passed")


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
    """Install what the project develops with."""
    (folder / ".pnpmfile.cjs").write_text(PNPM_HOOK, encoding="utf-8")
    pnpm = ("npx", "--yes", "pnpm@10", "install", "--ignore-scripts", "--no-frozen-lockfile")
    run(*pnpm, cwd=folder, npm_config_manage_package_manager_versions="false")


def run_near_api_js(folder: Path) -> list[Case]:
    """Run the tests of accounts, providers and typed contracts."""
    report = folder / "report.json"
    suites = ("test/unit/accounts", "test/unit/providers", "test/integration")
    options = ("--coverage.enabled=false", "--reporter=json", f"--outputFile={report}")
    run(
        *("npx", "vitest", "run", *suites, *options),
        cwd=folder,
        check=False,
        NEAR_SANDBOX_BIN_PATH=str(SANDBOX),
    )
    outcomes = {"passed": "passed", "failed": "failed"}
    return [
        Case(
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
        "1.3.0",
        "pyproject.toml",
        "the source distribution of near-kit on PyPI",
        prepare_near_kit,
        run_near_kit,
    ),
    Peer(
        "near-api-js",
        "7.3.1",
        "package.json",
        "the repository near/near-api-js at 652c3c31f",
        prepare_near_api_js,
        run_near_api_js,
    ),
)


def checkout(peer: Peer, source: Path) -> Path:
    """Copy a checkout, whose version must be the one that is named here; make its environment."""
    original = source / peer.name
    if not original.is_dir():
        raise SystemExit(f"{original} is missing: it should have {peer.source} ({peer.version})")
    text = (original / peer.version_file).read_text(encoding="utf-8")
    match = re.search(r'^\s*"?version"?\s*[:=]\s*"([^"]+)"', text, re.MULTILINE)
    version = match[1] if match else "unknown"
    if version != peer.version:
        raise SystemExit(f"{original} has version {version}; the figures are of {peer.version}")
    copy = BUILD / peer.name
    if not copy.is_dir():
        ignored = shutil.ignore_patterns(".git", "node_modules", ".venv")
        shutil.copytree(original, copy, ignore=ignored)
        say(f"── {peer.name}: making its environment")
        peer.prepare(copy)
    return copy


def report(peer: Peer, cases: list[Case]) -> bool:
    """Print the cases that did not pass; return True if there is none but skipped ones."""
    passed = sum(case.outcome == "passed" for case in cases)
    for case in cases:
        if case.outcome != "passed":
            reason = (case.reason.splitlines() or [""])[0][:MAX_REASON]
            say(f"   {case.outcome}: {case.name}: {reason}")
    say(f"── {peer.name} {peer.version}: {passed} of {len(cases)} cases passed")
    return all(case.outcome != "failed" for case in cases) and passed > 0


def main() -> int:
    """Run the chosen suites; return the exit code."""
    parser = argparse.ArgumentParser(description="run other projects' own tests")
    parser.add_argument("--from", dest="source", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("names", nargs="*", help="parts of the projects' names; default: all")
    args = parser.parse_args()
    if not SANDBOX.is_file():
        raise SystemExit(f"{SANDBOX} is missing: install ledgerkit[serve,wasm] here")
    peers = [p for p in PEERS if not args.names or any(name in p.name for name in args.names)]
    results = [report(peer, peer.run(checkout(peer, args.source.resolve()))) for peer in peers]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
