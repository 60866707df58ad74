"""README.md and docs/: every example prints what is stored below it, and every verb is named."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import ledgerkit as lk

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def load_tool() -> ModuleType:
    """Load tools/refresh_docs.py, which runs the examples of a page."""
    spec = importlib.util.spec_from_file_location(
        "refresh_docs", ROOT / "tools" / "refresh_docs.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = load_tool()
PAGES = TOOL.pages()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_examples_print_what_is_stored(path):
    """Each example of a page prints what is below it; tools/refresh_docs.py stores it anew."""
    stored = path.read_text(encoding="utf-8").splitlines()

    assert TOOL.refreshed(path).splitlines() == stored


def test_every_page_with_examples_is_run():
    """The README, each guide and the page of u128 hold examples."""
    guides = set((ROOT / "docs" / "guides").glob("*.md"))

    assert len(guides) > 12
    assert guides | {ROOT / "README.md", ROOT / "docs" / "u128.md"} <= set(PAGES)


def test_a_changed_output_is_stored(tmp_path):
    """The tool replaces outputs, errors and warnings, and leaves all other text alone."""
    page = tmp_path / "page.md"
    page.write_text(
        "Text.\n```pycon\n>>> 6 * 7\n41\n>>> for n in (1, 2):\n...     n\n>>> 1 / 0\n```\n"
        "```python\nlk.connect(\n```\n```console\n$ ledgerkit --version\nold\n$ make test\n```\n"
    )

    assert TOOL.refreshed(page) == (
        "Text.\n```pycon\n>>> 6 * 7\n42\n>>> for n in (1, 2):\n...     n\n1\n2\n>>> 1 / 0\n"
        "Traceback (most recent call last):\n  ...\nZeroDivisionError: division by zero\n```\n"
        "```python\nlk.connect(\n```\n```console\n$ ledgerkit --version\n"
        f"ledgerkit {lk.__version__}\n$ make test\n```\n"
    )


def test_the_readme_is_short():
    """Details belong to the guides."""
    assert len(README.splitlines()) <= 200


def test_every_verb_is_named():
    """A public verb that the README leaves out would not be found."""
    verbs = [name for name in lk.__all__ if name.islower() and name[0] != "_"]

    assert len(verbs) > 25
    assert [name for name in verbs if not re.search(rf"\b{name}\b", README)] == []


def test_the_address_to_fill_in_stands_in_one_place():
    """The badge's OWNER/REPO is the one place to change when the project is published."""
    assert re.findall(r"gh/OWNER/REPO", README) == ["gh/OWNER/REPO"]
