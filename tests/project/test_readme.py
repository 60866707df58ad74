"""README.md, docs/ and docstrings: each example prints what is stored; each verb is named."""

import re
from inspect import signature
from pathlib import Path

import pytest

import ledgerkit as lk
from tools import refresh_docs

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


PAGES = refresh_docs.pages()
SOURCES = {path: path.read_text(encoding="utf-8") for path in (ROOT / "ledgerkit").rglob("*.py")}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_print_what_is_stored(path):
    """Each example of a page prints what is below it; tools/refresh_docs.py stores it anew."""
    stored = path.read_text(encoding="utf-8").splitlines()

    assert refresh_docs.refreshed(path).splitlines() == stored


def test_every_page_with_examples_is_run():
    """The README, each guide and the page of u128 hold examples."""
    guides = set((ROOT / "docs" / "guides").glob("*.md"))

    assert len(guides) > 12
    u128 = ROOT / "docs" / "explanations" / "u128.md"
    assert guides | {ROOT / "README.md", u128} <= set(PAGES)


def test_every_example_of_a_docstring_is_run():
    """The package has no example outside the sections that the tool runs."""
    assert [
        path for path, text in SOURCES.items() if ">>> " in refresh_docs.SECTION.sub("", text)
    ] == []


def test_examples_of_docstrings_fit_the_page():
    """Code and output have at most 86 columns, 4 fewer in a method: their page does not scroll."""
    sections = [match for text in SOURCES.values() for match in refresh_docs.SECTION.finditer(text)]
    lines = [line for match in sections for line in match[2].splitlines()]

    assert len(sections) > 110
    assert [line for line in lines if len(line) > 90] == []


def test_a_changed_output_is_stored(tmp_path):
    """The tool replaces outputs, errors and warnings, and leaves all other text alone."""
    page = tmp_path / "page.md"
    page.write_text(
        "Text.\n```pycon\n>>> 6 * 7\n41\n>>> for n in (1, 2):\n...     n\n>>> 1 / 0\n```\n"
        "```python\nlk.connect(\n```\n```console\n$ ledgerkit --version\nold\n$ make test\n```\n"
    )

    assert refresh_docs.refreshed(page) == (
        "Text.\n```pycon\n>>> 6 * 7\n42\n>>> for n in (1, 2):\n...     n\n1\n2\n>>> 1 / 0\n"
        "Traceback (most recent call last):\n  ...\nZeroDivisionError: division by zero\n```\n"
        "```python\nlk.connect(\n```\n```console\n$ ledgerkit --version\n"
        f"ledgerkit {lk.__version__}\n$ make test\n```\n"
    )


def test_a_changed_output_of_a_docstring_is_stored(tmp_path):
    """Each section of examples is a session of its own; empty lines are those of doctest."""
    module = tmp_path / "module.py"
    begin = '    """\n    Return it.\n\n    Examples\n    --------\n'
    module.write_text(
        f"def f():\n{begin}    >>> n = 7\n    >>> 6 * n\n    41\n\n    Or:\n\n"
        f'    >>> print("a\\n\\nb")\n    """\n\n\nclass C:\n{begin}    >>> n\n    """\n'
    )

    assert refresh_docs.refreshed(module) == (
        f"def f():\n{begin}    >>> n = 7\n    >>> 6 * n\n    42\n\n    Or:\n\n"
        f'    >>> print("a\\n\\nb")\n    a\n    <BLANKLINE>\n    b\n    """\n\n\n'
        f"class C:\n{begin}    >>> n\n    Traceback (most recent call last):\n      ...\n"
        f'    NameError: name \'n\' is not defined\n    """\n'
    )


def test_the_readme_is_short():
    """Details belong to the guides."""
    assert len(README.splitlines()) <= 200


def test_the_readme_begins_with_what_it_is_and_how_to_start():
    """Sixty lines have the installation, a failure with its picture, and three more answers."""
    opening = "\n".join(README.splitlines()[:60])
    marks = ["analysts", "pip install", "lk.trace(", "receipt_tree.png", "lk.ft(", "lk.statement("]
    positions = [opening.find(mark) for mark in [*marks, "trace.verify()"]]

    assert -1 not in positions
    assert positions == sorted(positions)


VERBS = (ROOT / "docs" / "verbs.md").read_text(encoding="utf-8")


def test_every_verb_is_named():
    """A public verb that the table of verbs leaves out would not be found."""
    verbs = [name for name in lk.__all__ if name.islower() and name[0] != "_"]

    assert len(verbs) > 25
    assert [name for name in verbs if not re.search(rf"\b{name}\b", VERBS)] == ["errors"]


def test_the_tables_of_verbs_have_their_arguments():
    """Each argument that a table names is a parameter of the verb, in the verb's order."""
    calls = re.findall(r"`(\w+)\(([^`\"]*)\)`", VERBS + README)
    named = [(verb, re.findall(r"[a-z_]+", arguments)) for verb, arguments in calls]
    wrong = [
        (verb, names)
        for verb, names in named
        if verb in lk.__all__
        and names != [p for p in signature(getattr(lk, verb)).parameters if p in names]
    ]

    assert len(named) > 60
    assert wrong == []


def test_the_address_of_binder_is_that_of_the_project():
    """Every address of Binder names the repository in pyproject.toml, the one place to change."""
    address = (
        f"https://mybinder.org/v2/gh/{refresh_docs.repository()}/HEAD?urlpath=lab/tree/notebooks/"
    )
    linked = re.findall(r"https://mybinder\.org/v2/\S+", README)

    assert [link.startswith(address) for link in linked] == [True]
    assert (ROOT / "notebooks" / linked[0].removeprefix(address)).is_file()


def test_a_changed_address_is_stored(tmp_path):
    """The tool replaces the repository in the address of Binder, and nothing around it."""
    page = tmp_path / "page.md"
    address = "https://mybinder.org/v2/gh/{}/HEAD?urlpath=lab/tree/notebooks/a.ipynb"
    page.write_text(f"[binder]: {address.format('old-owner/old.name')}\n")

    assert (
        refresh_docs.refreshed(page) == f"[binder]: {address.format(refresh_docs.repository())}\n"
    )
