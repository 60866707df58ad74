"""The project: one version, declared dependencies, reasons, docstrings, no machine's paths."""

import ast
import functools
import importlib
import inspect
import io
import os
import re
import shutil
import subprocess
import sys
import tokenize
import tomllib
from pathlib import Path
from typing import Any

import pytest
from numpydoc import validate
from packaging.requirements import Requirement
from pandas.api.extensions import ExtensionArray, ExtensionDtype

import ledgerkit
from ledgerkit import _version, plots, types

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


@functools.cache
def tracked() -> list[Path]:
    """Return the files that git tracks or would add."""
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.split(b"\0")
    return [path for name in names if name and (path := ROOT / name.decode()).is_file()]


def lines(suffix: str) -> list[tuple[str, str]]:
    """Return (place, text) for each line of the tracked files with this suffix."""
    return [
        (f"{path.relative_to(ROOT)}:{number}", line)
        for path in tracked()
        if path.suffix == suffix
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    ]


def requirements(extra: str | None = None) -> dict[str, Requirement]:
    listed = PROJECT["dependencies"] if extra is None else PROJECT["optional-dependencies"][extra]
    return {r.name.replace("-", "_"): r for r in map(Requirement, listed)}


@functools.cache
def imported() -> set[str]:
    """Return the top-level modules that the package imports, at any depth of its code."""
    names = set()
    for path in (ROOT / "ledgerkit").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.split(".")[0])
    libraries = {"nacl": "pynacl", "backports": "backports.zstd"}
    names = {libraries.get(name, name) for name in names}
    later = {"compression"}  # of the standard library from Python 3.14 on
    return names - sys.stdlib_module_names - later - {"ledgerkit"}


def test_one_version_everywhere():
    """The changelog's first version is the one of the package and of its build."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    top = re.search(r"^## (\S+)", changelog, re.MULTILINE)

    assert top is not None
    assert top[1] == ledgerkit.__version__
    assert PROJECT["dynamic"] == ["version"]
    assert (ROOT / PYPROJECT["tool"]["hatch"]["version"]["path"]).samefile(_version.__file__)


def test_extras_exist():
    """The extras that the documentation names can be installed."""
    named = {"notebook", "bulk", "serve", "socks", "test", "dev"}
    assert named <= set(PROJECT["optional-dependencies"])


def test_what_is_imported_is_declared():
    """A library that the package imports is a dependency of its own, or of an extra."""
    extras = ("notebook", "bulk", "cache", "dask", "mcp", "serve", "socks")
    declared = {**requirements(), **{k: v for e in extras for k, v in requirements(e).items()}}
    brought_by_callers = {"httpx"}  # with the transport that they pass to connect()

    assert imported() - set(declared) - brought_by_callers == set()


def test_what_is_declared_is_imported():
    """The package uses every library that it requires."""
    assert set(requirements()) - imported() == set()


def test_binder_pins_what_is_declared():
    """Binder pins the package's dependencies, each within its declared bounds."""
    declared = {**requirements(), **requirements("notebook"), **requirements("bulk")}
    text = (ROOT / "binder" / "constraints.txt").read_text(encoding="utf-8")
    pins = [Requirement(line) for line in text.splitlines() if line and not line.startswith("#")]
    versions = {pin.name.replace("-", "_"): str(pin.specifier).removeprefix("==") for pin in pins}

    assert set(versions) == set(declared) - {"jupyterlab"}
    assert [
        name
        for name, r in declared.items()
        if name in versions and versions[name] not in r.specifier
    ] == []


def test_binder_scripts_can_run():
    """Binder's builder runs the script as a program and installs the package by name."""
    assert (ROOT / "binder" / "postBuild").stat().st_mode & 0o111
    assert (
        ".[notebook,bulk]"
        in (ROOT / "binder" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    )


def test_ci_runs_the_test_command_of_the_readme():
    """CI runs the test command that the README names."""
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_ignored_rule_has_its_reason():
    """A rule is switched off in pyproject.toml with a reason on the same line."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = text.partition("[tool.ruff.lint]")[2].partition("[tool.ruff.lint.flake8")[0]
    codes = [line for line in section.splitlines() if re.match(r'\s+"[A-Z]+\d*",', line)]

    assert len(codes) > 20
    assert [line for line in codes if not re.search(r"# .{6,}", line)] == []


def test_every_exception_in_the_code_has_its_reason():
    """A check that is silenced on one line says why there, or in a comment on the line above."""
    marks = re.compile(r"# noqa(: ?[A-Z0-9, ]+)?|# (type|pyright): ignore(\[[\w, -]+\])?")
    silent, above = [], ""
    for place, line in lines(".py"):
        match = marks.search(line)
        reason = marks.sub("", line[match.start() :]) if match else "not needed"
        if not re.search(r"\w{3,}", reason) and not above.strip().startswith("#"):
            silent.append(place)
        above = line

    assert silent == []


def test_type_checkers_have_something_to_read():
    """The file that pyright reads uses every public name; pyright would pass an empty folder."""
    text = (ROOT / "tests" / "typing" / "api.py").read_text(encoding="utf-8")
    unused = [n for n in ledgerkit.__all__ if not re.search(rf"\b{n}\b", text)]

    assert unused == []


def test_no_path_of_one_machine():
    """No tracked file holds a path that exists on one machine only."""
    machine = re.compile(rb"(?<![\w.~-])/(home|root|work|Users)/")
    paths = [str(path.relative_to(ROOT)) for path in tracked() if machine.search(path.read_bytes())]

    assert paths == []


@pytest.mark.parametrize("folder", ["campaigns", "engine", "live", "project", "surface", "unit"])
def test_every_test_states_its_claim(folder):
    """Each test has a docstring with its claim."""
    silent = [
        f"{path.name}::{node.name}"
        for path in sorted((ROOT / "tests" / folder).rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]

    assert silent == []


def public() -> list[str]:
    """
    Return the dotted names of exported functions, classes and public methods.

    Methods of pandas' interface are left out: pandas documents them.
    """
    names = []
    for module in (ledgerkit, types, plots):
        for name in module.__all__:
            thing, dotted = getattr(module, name), f"{module.__name__}.{name}"
            if inspect.isclass(thing):
                names += [dotted, *(f"{dotted}.{method}" for method in methods(thing))]
            elif inspect.isfunction(thing):
                names.append(dotted)
    return names


def methods(thing: type) -> list[str]:
    """Return the names of a class's own public methods that are not of pandas' interface."""
    return [
        name
        for name, member in vars(thing).items()
        if (inspect.isfunction(member) or isinstance(member, classmethod)) and name[0] != "_"
        if not hasattr(ExtensionArray, name) and not hasattr(ExtensionDtype, name)
    ]


def test_what_users_call_is_documented_in_full():
    """The docstring of a public name describes every parameter and result, with an example."""
    checked = {"EX01", "GL08", "PR01", "PR02", "PR03", "PR07", "RT01", "RT03", "SS03", "SS06"}
    reports = {name: validate.validate(name)["errors"] for name in public()}
    faults = [
        f"{name}: {message}"
        for name, errors in reports.items()
        for code, message in errors
        if code in checked and not (code == "EX01" and "U128Array." in name)  # called by pandas
    ]

    assert len(reports) > 120
    assert faults == []


PUBLIC_MODULES = {"ledgerkit", "ledgerkit.localnet"} | {
    f"ledgerkit.{name}" for name in ("errors", "plots", "protocol", "types", "units", "widgets")
}


def test_the_surface_is_tested_by_public_names():
    """`tests/surface` imports public names of documented modules, and nothing below them."""
    inner = [
        f"{path.name}:{node.lineno}"
        for path in sorted((ROOT / "tests" / "surface").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom) and not is_public(node)
    ]

    assert inner == []


def is_public(node: ast.Import | ast.ImportFrom) -> bool:
    """Return False for an import of a module of ledgerkit, or of a name, that is not public."""
    names = {alias.name for alias in node.names}
    if isinstance(node, ast.Import):
        return all(not name.startswith("ledgerkit.") for name in names)
    module = node.module or ""
    if module.partition(".")[0] != "ledgerkit":
        return True
    return module in PUBLIC_MODULES and names <= {*dir(importlib.import_module(module))}


@pytest.mark.skipif(not shutil.which("sh"), reason="there is no shell here")
def test_ctrl_c_can_be_tested_where_sigint_is_ignored():
    """The tests of Ctrl-C pass in a process that ignores SIGINT, as `nohup make test &` does."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "ctrl_c"]
    ignoring = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
    variables = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    done = subprocess.run(
        [*ignoring, "tests/engine/test_http.py"],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout


# Names of arguments that another name replaces, with that name.
ONE_NAME = {
    "asset_id": "assets",
    "contract": "contract_id",
    "hash": "tx_hash",
    "ids": "account_ids",
    "method": "method_name",
    "sender": "signer_id",
    "until": "stop or wait_until",
}


def test_arguments_have_one_name():
    """A thing has one name in all signatures, and a verb has no options besides them."""
    names = {dotted: list(signature_of(dotted).parameters.values()) for dotted in public()}
    odd = [
        f"{dotted}: {parameter.name} is {ONE_NAME[parameter.name]}"
        for dotted, parameters in names.items()
        for parameter in parameters
        if parameter.name in ONE_NAME and dotted != "ledgerkit.Ledger.rpc"  # JSON-RPC's own word
    ]
    open_ended = [
        dotted
        for dotted, parameters in names.items()
        for parameter in parameters
        if parameter.kind == parameter.VAR_KEYWORD and "U128Array" not in dotted  # as in pandas
    ]

    assert odd == []
    assert open_ended == ["ledgerkit.LedgerError", "ledgerkit.Trace.plot"]


def signature_of(dotted: str) -> inspect.Signature:
    """Return the signature of a public name, which begins with its module."""
    module, _, name = dotted.removeprefix("ledgerkit.").rpartition(".")
    thing = getattr(functools.reduce(getattr, module.split(".") if module else [], ledgerkit), name)
    return inspect.signature(thing)


# What a name holds, or a function does, is said by the field's own words.
RIDDLES = set(
    "again anew asked beside each found held kept known own settled shown some taken told wanted "
    "word".split()
)
VAGUE = {"Ask", "Give", "How", "Let", "Say", "Take", "Tell", "Want", "What", "Whether", "Who"}


@functools.cache
def functions() -> list[tuple[str, frozenset[str], str]]:
    """Return the place of each function of the package, the names in it and its docstring."""
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno}", names_in(node), ast.get_docstring(node) or "")
        for path in sorted((ROOT / "ledgerkit").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def names_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """Return the names of a function's parameters and local variables."""
    nodes = list(ast.walk(function))
    stored = [n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return frozenset([n.arg for n in nodes if isinstance(n, ast.arg)] + [n.id for n in stored])


def test_comments_begin_with_their_subject():
    """No comment begins with "of", as a fragment of a sentence does."""
    fragment = re.compile(r"#:? *of\b", re.IGNORECASE)
    fragments = [
        f"{path.relative_to(ROOT)}:{token.start[0]}"
        for path in sorted((ROOT / "ledgerkit").rglob("*.py"))
        for token in tokenize.generate_tokens(
            io.StringIO(path.read_text(encoding="utf-8")).readline
        )
        if token.type == tokenize.COMMENT and fragment.match(token.string)
    ]

    assert fragments == []


def test_names_say_what_they_hold():
    """No parameter or local variable has a name such as `found` or `told`."""
    riddles = [f"{place} {name}" for place, names, _ in functions() for name in names & RIDDLES]
    assert riddles == []


def test_docstrings_begin_with_a_verb_of_the_field():
    """A function's docstring begins with "Return" or "Parse", not with "Tell" or "Take"."""
    assert [place for place, _, text in functions() if text and text.split()[0] in VAGUE] == []
