"""`import ledgerkit` loads nothing heavy, and hides nothing from whoever looks."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ledgerkit as lk

ROOT = Path(__file__).resolve().parents[2]
HEAVY = (
    "IPython",
    "aiohttp",
    "dask",
    "duckdb",
    "ipywidgets",
    "matplotlib",
    "polars",
)
SUBMODULES = {"archiving", "errors", "plots", "protocol", "types", "units", "widgets"}


def run(code: str) -> Any:
    """Run code in a fresh interpreter, where warnings are errors, and decode what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return json.loads(done.stdout)


def test_import_loads_no_third_party_module() -> None:
    """The import alone adds the package and parts of the standard library."""
    added = run(
        "import json, sys\n"
        "before = set(sys.modules)\n"
        "import ledgerkit\n"
        "added = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(json.dumps(sorted(added - set(sys.stdlib_module_names))))"
    )
    assert added == ["ledgerkit"]


def test_import_loads_few_modules_of_ledgerkit() -> None:
    """The import alone leaves the errors, the models and the schemas for later."""
    loaded = run(
        "import json, sys, ledgerkit\n"
        "print(json.dumps(sorted(n for n in sys.modules if n.startswith('ledgerkit'))))"
    )
    assert loaded == [
        "ledgerkit",
        "ledgerkit._version",
        "ledgerkit.u128",
        "ledgerkit.u128.registration",
    ]


FT_CALL = """
import json, sys
import httpx
import ledgerkit as lk

def answer(request):
    return httpx.Response(200, json={"tokens": []})

with lk.connect("lab", transport=httpx.MockTransport(answer)):
    frame = lk.ft(["a.near", "b.near"])
names = HEAVY
print(json.dumps([len(frame), [name for name in names if name in sys.modules]]))
"""


def test_a_first_verb_loads_nothing_to_draw_with() -> None:
    """Plots, widgets and the bulk transport stay out of a plain call."""
    assert run(FT_CALL.replace("HEAVY", repr(HEAVY))) == [0, []]


def test_a_ledger_loads_no_command_line_of_httpx() -> None:
    """The libraries of httpx's command line stay out, and can be imported afterwards."""
    loaded = run(
        "import json, sys\n"
        "import ledgerkit as lk\n"
        "lk.connect('local')\n"
        "found = len(lk.accounts('alice.near'))\n"
        "loaded = [name for name in ('click', 'rich', 'httpx._main') if name in sys.modules]\n"
        "import httpx._main\n"
        "print(json.dumps([found, loaded, callable(httpx._main.main)]))"
    )
    assert loaded == [1, [], True]


def test_errors_need_no_pandas() -> None:
    """A caught error costs no pandas."""
    loaded = run(
        "import json, sys\n"
        "import ledgerkit as lk\n"
        "try:\n"
        "    lk.connect('mainet')\n"
        "except lk.errors.InvalidRequestError:\n"
        "    pass\n"
        "print(json.dumps([n for n in ('pandas', 'numpy', 'matplotlib') if n in sys.modules]))"
    )
    assert loaded == []


def test_every_public_name_resolves() -> None:
    """Each name of `__all__` is there, and once."""
    assert len(set(lk.__all__)) == len(lk.__all__)
    assert [name for name in lk.__all__ if getattr(lk, name, None) is None] == []


def test_dir_lists_every_public_name_before_any_is_loaded() -> None:
    """`dir` and tab completion show all names and submodules in a fresh interpreter."""
    listed, completions = run(
        "import json, rlcompleter\n"
        "import ledgerkit as lk\n"
        "listed = dir(lk)\n"
        "complete = rlcompleter.Completer({'lk': lk}).complete\n"
        "matches = iter(lambda counter=iter(range(999)): complete('lk.', next(counter)), None)\n"
        "print(json.dumps([listed, list(matches)]))"
    )
    names = {*lk.__all__, *SUBMODULES}
    assert names <= set(listed)
    completed = {match.removeprefix("lk.").rstrip("()") for match in completions}
    assert {name for name in names if not name.startswith("_")} <= completed


def test_a_star_import_gives_every_public_name() -> None:
    """`from ledgerkit import *` gives what `__all__` lists."""
    given = run(
        "import json\n"
        "space = {}\n"
        "exec('from ledgerkit import *', space)\n"
        "print(json.dumps(sorted(space)))"
    )
    assert set(lk.__all__) <= set(given)


def test_type_checkers_see_what_runs() -> None:
    """The imports for type checkers and the table of homes name the same things."""
    tree = ast.parse((ROOT / "ledgerkit" / "__init__.py").read_text(encoding="utf-8"))
    guarded = next(
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    seen = {
        alias.asname or alias.name: node.module
        for node in guarded.body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ledgerkit")
        for alias in node.names
    }
    assert {seen.pop(name) for name in SUBMODULES} == {"ledgerkit"}
    assert seen == {name: f"ledgerkit.{home}" for name, home in lk._HOME_OF.items()}
    assert set(seen) | {"errors", "__version__"} == set(lk.__all__)


def test_a_misspelt_name_names_the_likely_one(subtests: pytest.Subtests) -> None:
    """The error suggests a public name, so that a notebook shows it too."""
    cases = [
        ("ledgerkit", "account", "accounts"),
        ("ledgerkit", "widget", "widgets"),
        ("ledgerkit.units", "yotco", "yocto"),
        ("ledgerkit.plots", "tokenflow", "token_flow"),
        ("ledgerkit.widgets", "AcountExplorer", "AccountExplorer"),
        ("ledgerkit.protocol", "Transaktion", "Transaction"),
        ("ledgerkit.errors", "UnknownAcountError", "UnknownAccountError"),
        ("ledgerkit.localnet", "World_", "World"),
    ]
    for module, name, likely in cases:
        with subtests.test(name=name):
            with pytest.raises(AttributeError) as caught:
                getattr(importlib.import_module(module), name)
            expected = f"module '{module}' has no attribute '{name}'; did you mean '{likely}'?"
            assert str(caught.value) == expected


def test_the_interpreter_adds_no_suggestion_of_its_own() -> None:
    """The last line of a traceback has one suggestion, and a private name has none."""
    code = "import ledgerkit; ledgerkit.account"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        "AttributeError: module 'ledgerkit' has no attribute 'account'; did you mean 'accounts'?"
    )
    with pytest.raises(AttributeError, match=r"no attribute '_repr_html_'$"):
        _ = lk._repr_html_


CLASHES = """
import json
import ledgerkit as lk
for name in FIRST:
    getattr(lk, name)
import importlib, pkgutil
for module in pkgutil.walk_packages(lk.__path__, "ledgerkit."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(json.dumps([name for name in lk.__all__ if type(getattr(lk, name)).__name__ == "module"]))
"""


@pytest.mark.parametrize(
    "first", [[], ["ft", "trace", "Trace", "receipts", "read_response"]], ids=str
)
def test_no_module_hides_a_verb(first: list[str]) -> None:
    """Whatever was loaded, and in whichever order, each verb stays a verb."""
    assert run(CLASHES.replace("FIRST", repr(first))) == ["errors"]
