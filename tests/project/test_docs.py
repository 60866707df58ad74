"""The documentation's pages: built from the package, complete, and without warnings."""

import importlib
import inspect
import re
import shutil
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import ledgerkit
from ledgerkit import errors, plots, widgets
from ledgerkit.api import chain_errors
from ledgerkit.frames.schemas import SCHEMAS
from tools.campaigns import _registry

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SECURITY = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
MOST_BYTES = 150_000
BUILD = ("-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--jobs=2")
PLAIN = ("--define", "html_theme=basic")  # the site's own theme takes most of the time


class Site:
    """The pages, built from a copy of their sources."""

    def __init__(self, folder: Path) -> None:
        self.sources, self.pages = folder / "docs", folder / "pages"
        for name in ("docs", "notebooks"):
            shutil.copytree(ROOT / name, folder / name)
        shutil.copy(ROOT / "README.md", folder)
        words = [sys.executable, *BUILD, *PLAIN, str(self.sources), str(self.pages)]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        self.output = done.stdout + done.stderr

    def names(self) -> dict[str, str]:
        """Read the page of each name from the inventory that other projects link by."""
        packed = (self.pages / "objects.inv").read_bytes().split(b"\n", 4)[4]
        lines = [line.split() for line in zlib.decompress(packed).decode().splitlines()]
        return {words[0]: words[3].partition("#")[0] for words in lines}

    def html(self, page: str) -> str:
        """Read a page's HTML."""
        return (self.pages / page).read_text(encoding="utf-8")


class Tables(HTMLParser):
    """The rows of each frame's table."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.frame, self.cell = "", False
        self.rows: dict[str, list[list[str]]] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a frame, a row or a cell."""
        anchor = dict(attrs).get("id") or ""
        if tag == "span" and anchor.startswith("frame-"):
            self.frame = anchor.removeprefix("frame-")
            self.rows[self.frame] = []
        elif tag == "tr" and self.frame:
            self.rows[self.frame].append([])
        elif tag == "td" and self.frame:
            self.rows[self.frame][-1].append("")
            self.cell = True

    def handle_endtag(self, tag: str) -> None:
        """End a cell."""
        self.cell = self.cell and tag != "td"

    def handle_data(self, data: str) -> None:
        """Add text to the current cell."""
        if self.cell:
            self.rows[self.frame][-1][-1] += data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Build the pages once."""
    return Site(tmp_path_factory.mktemp("site"))


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a module of the extension, as conf.py does."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    for path in (ROOT / "docs").glob("_*.py"):
        monkeypatch.delitem(sys.modules, path.stem, raising=False)
    return importlib.import_module


def offered(module: Any) -> list[str]:
    """Return the dotted names of a module's public functions and classes."""
    things = {name: getattr(module, name) for name in module.__all__}
    return [
        f"{module.__name__}.{name}"
        for name, thing in things.items()
        if inspect.isclass(thing) or inspect.isfunction(thing)
    ]


def branches(error: type[errors.LedgerError]) -> set[type[errors.LedgerError]]:
    """Return an error class of the package and all its subclasses."""
    classes = {error}
    for subclass in error.__subclasses__():
        classes |= branches(subclass) if subclass.__module__.startswith("ledgerkit.") else set()
    return classes


def words(text: str) -> str:
    """Reduce HTML or plain text to its words."""
    bare = re.sub(r"<[^>]+>", "", text)
    for mark, letter in (("&quot;", '"'), ("&#x27;", "'"), ("&lt;", "<"), ("&gt;", ">")):
        bare = bare.replace(mark, letter)
    return " ".join(bare.replace("&amp;", "&").replace("`", "").split())


def test_the_pages_build_without_a_warning(site):
    """Sphinx understands every docstring, and every link leads somewhere."""
    assert site.output == ""


def test_generated_sources_are_removed(site):
    """The build removes the pages that it wrote for Sphinx to read."""
    names = {path.name for path in (ROOT / "docs").iterdir()} - {"__pycache__", "api"}

    assert {path.name for path in site.sources.iterdir()} - {"__pycache__"} == names


def test_every_public_name_has_a_page_of_its_own(site):
    """A verb, a type, a plot or a panel that is exported can be looked up."""
    names = offered(ledgerkit) + offered(plots) + offered(widgets)
    names.remove("ledgerkit.widgets.explore")  # the verb `ledgerkit.explore`
    pages = {name: site.names().get(name) for name in names}

    assert len(names) > 80
    assert [name for name, page in pages.items() if page is None] == []
    assert len({str(page).lower() for page in pages.values()}) == len(names)


def test_methods_are_on_the_page_of_their_class(site):
    """A method is documented on its class's page, an inherited one on each panel's."""
    names = site.names()

    assert names["ledgerkit.Trace.explain"] == names["ledgerkit.Trace"] == "api/types/Trace.html"
    assert names["ledgerkit.widgets.KeyLookup.press"] == "api/widgets/KeyLookup.html"
    assert "ledgerkit.U128Array.tolist" in names
    assert "ledgerkit.U128Array.repeat" not in names  # pandas documents it


def test_a_page_says_what_the_docstring_says(site):
    """Text of the docstring is there; frames and errors are links."""
    page = site.html("api/verbs/ft.html")
    doc = inspect.getdoc(ledgerkit.ft) or ""
    [about] = re.findall(r"^metadata\n((?: {4}.*\n)+)", doc, re.MULTILINE)

    assert words(about) in words(page)
    assert 'href="../frames.html#frame-ft-metadata"' in page
    assert 'href="../errors.html#ledgerkit.errors.InvalidRequestError"' in page


def test_the_index_leads_to_every_page(site):
    """Each name is in a group, with its first line."""
    index = site.html("api/index.html")
    linked = set(re.findall(r'class="reference internal" href="([\w/.]+\.html)"', index))
    pages = {str(path.relative_to(site.pages / "api")) for path in site.pages.glob("api/*/*.html")}

    assert pages - linked == set()
    assert words((inspect.getdoc(ledgerkit.ft) or "").splitlines()[0]) in words(index)


def test_a_new_verb_needs_no_list(part, monkeypatch):
    """A name added to `__all__` has a page and a line; without a group it is under More."""

    def history(account_id):
        """Read a balance over time."""
        return account_id

    monkeypatch.setattr(ledgerkit, "history", history, raising=False)
    monkeypatch.setattr(ledgerkit, "__all__", [*ledgerkit.__all__, "history"])
    pages = part("_pages").pages()

    assert ".. autofunction:: history" in pages["verbs/history"]
    more = pages["index"].partition("\nMore\n----\n")[2]
    assert "* - :doc:`history <verbs/history>`\n     - Read a balance over time." in more


def test_every_group_has_its_names(part):
    """No verb is under More, and no heading is empty."""
    pages = part("_pages")
    groups = {entry.group for entry in pages.entries()}

    assert set(pages.ORDER) - groups == {pages.MORE}


def test_every_frame_is_documented_with_every_column(site):
    """Name, dtype, unit and meaning are those that `schema` shows, in their order."""
    tables = Tables(site.html("api/frames.html")).rows
    expected = {
        name.replace("_", "-"): [
            [words(cell) for cell in row]
            for row in ledgerkit.schema(name).itertuples(index=False, name=None)
        ]
        for name in SCHEMAS
    }

    assert expected == {
        name: [[words(cell) for cell in row] for row in rows if row]
        for name, rows in tables.items()
    }


def test_every_frame_names_its_verbs(part, site):
    """Each frame links to the verbs and attributes that return it."""
    sources = {name: " ".join(links) for name, links in part("_frames").sources().items()}
    linked = {name for links in sources.values() for name in re.findall(r"<([\w.]+)>", links)}

    assert [name for name, links in sources.items() if not links] == []
    assert linked - set(site.names()) == set()
    assert "<ledgerkit.ft>" in sources["ft_metadata"]
    assert "<ledgerkit.Trace.gas>" in sources["gas"]
    assert "<ledgerkit.traces>" in sources["errors"]
    assert "Submission" not in sources["logs"]  # its logs are a list


def test_every_error_is_documented_with_its_remedy(site):
    """Each error class has an entry with its message and its remedy."""
    page, names = words(site.html("api/errors.html")), site.names()
    classes = branches(errors.LedgerError)

    assert chain_errors.InvalidNonceError in classes
    assert {names.get(f"ledgerkit.errors.{e.__name__}") for e in classes} == {"api/errors.html"}
    assert [e for e in classes if words(e.remedy) not in page] == []
    assert [e for e in classes if words(e.template) not in page] == []


def test_guides_and_notebooks_are_linked(site):
    """Each page of docs/ is in the menu, and each notebook can be downloaded."""
    home, docs = site.html("index.html"), ROOT / "docs"
    pages = {str(path.relative_to(docs).with_suffix("")) for path in docs.rglob("*.md")} - {"index"}
    downloads = {path.name for path in site.pages.glob("_downloads/*/*.ipynb")}

    assert {"u128", "guides/sending"} <= pages
    assert [name for name in pages if f'href="{name}.html"' not in home] == []
    assert downloads == {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}


def test_pictures_of_the_readme_are_there():
    """Each picture is a small PNG with a description."""
    pictures = dict(re.findall(r"^!\[([^\]]{30,})\]\[(\w+)\]$", README, re.MULTILINE))
    files = [
        ROOT / re.findall(rf"^\[{name}\]: (\S+)$", README, re.MULTILINE)[0]
        for name in pictures.values()
    ]

    assert sorted(pictures.values()) == ["explorer", "timeline", "tree"]
    assert {path.read_bytes()[:8] for path in files} == {b"\x89PNG\r\n\x1a\n"}
    assert [path.name for path in files if path.stat().st_size > MOST_BYTES] == []


def test_files_that_the_readme_links_are_there():
    """Each relative link of the README leads to a file of this repository."""
    linked = re.findall(r"\]\((?!https?:|#)([^)#]+)\)", README)

    assert "CONTRIBUTING.md" in linked
    assert [name for name in linked if not (ROOT / name).exists()] == []


def test_every_campaign_is_named_beside_its_promise():
    """The promises on the page about security name all campaigns, and no other."""
    promises = SECURITY.partition("## What is promised")[2].partition("\n## ")[0]
    groups = re.findall(r"\((`[a-z_`, ]+`)\)$", promises, re.MULTILINE)
    named = {name for group in groups for name in re.findall(r"\w+", group)}

    assert named == set(_registry.NAMES)
