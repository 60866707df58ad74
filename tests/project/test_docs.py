"""The documentation's pages: built from the package, complete, and without warnings."""

import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
import zlib
from html import escape
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from filelock import FileLock
from sphinx.search.en import SearchEnglish

import ledgerkit
from ledgerkit import errors, plots, widgets
from ledgerkit.api import chain_errors
from ledgerkit.frames.schemas import SCHEMAS
from tools.campaigns import _campaign

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SECURITY = (ROOT / "docs" / "explanations" / "security.md").read_text(encoding="utf-8")
MOST_BYTES = 150_000
BUILD = ("-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet")
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CODE = re.compile(r"<pre>.*?</pre>", re.DOTALL)
LOADED = re.compile(r"<(?:script|img|iframe|source|link)\b[^>]*?\s(?:src|href)=\"([^\"]+)\"")
LOADED_BY_STYLES = re.compile(r"(?:@import\s+[\"']|url\(\s*[\"']?)([^\"')]+)")


class Site:
    """The pages, built from a copy of their sources."""

    def __init__(self, folder: Path) -> None:
        self.sources, self.pages = folder / "docs", folder / "pages"
        self.log = folder / "log.txt"

    def build(self) -> None:
        """Copy the sources, as `make docs` reads them, and build the pages."""
        folder = self.sources.parent
        for name in ("docs", "notebooks"):
            shutil.copytree(ROOT / name, folder / name)
        shutil.copy(ROOT / "README.md", folder)
        words = [sys.executable, *BUILD, str(self.sources), str(self.pages)]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        self.log.write_text(done.stdout + done.stderr, encoding="utf-8")

    def names(self) -> dict[str, str]:
        """Read the page of each name from the inventory that other projects link by."""
        packed = (self.pages / "objects.inv").read_bytes().split(b"\n", 4)[4]
        lines = [line.split() for line in zlib.decompress(packed).decode().splitlines()]
        return {words[0]: words[3].partition("#")[0] for words in lines}

    def html(self, page: str) -> str:
        return (self.pages / page).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Site:
    """Build the pages once, for all processes that run these tests."""
    folder = tmp_path_factory.getbasetemp()
    folder = (folder if worker_id == "master" else folder.parent) / "site"
    site = Site(folder)
    with FileLock(folder.with_suffix(".lock")):
        if not site.log.exists():
            site.build()
    return site


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
    bare = re.sub(r"<style.*?</style>|<[^>]+>", "", text, flags=re.DOTALL)
    for mark, letter in (("&quot;", '"'), ("&#x27;", "'"), ("&lt;", "<"), ("&gt;", ">")):
        bare = bare.replace(mark, letter)
    return " ".join(bare.replace("&amp;", "&").replace("`", "").split())


def test_the_pages_build_without_a_warning(site):
    """Sphinx understands every docstring, and every link leads somewhere."""
    assert site.log.read_text(encoding="utf-8") == ""


def test_generated_sources_are_removed(site):
    """The build removes the pages that it wrote for Sphinx to read."""
    names = {path.name for path in (ROOT / "docs").iterdir()} - {"__pycache__", "api", "tutorials"}

    assert {path.name for path in site.sources.iterdir()} - {"__pycache__"} == names


def test_every_public_name_has_a_page_of_its_own(site):
    """A verb, a type, a plot or a panel that is exported can be looked up."""
    names = offered(ledgerkit) + offered(plots) + offered(widgets)
    for verb in ("explore", "show"):  # `ledgerkit.explore` and `ledgerkit.show`
        names.remove(f"ledgerkit.widgets.{verb}")
    pages = {name: site.names().get(name) for name in names}

    assert len(names) > 80
    assert [name for name, page in pages.items() if page is None] == []
    assert len({str(page).lower() for page in pages.values()}) == len(names)


def test_methods_are_on_the_page_of_their_class(site):
    """A method is documented on its class's page, an inherited one on each panel's."""
    names = site.names()

    assert names["ledgerkit.Trace.explain"] == names["ledgerkit.Trace"] == "api/types/Trace.html"
    assert names["ledgerkit.widgets.KeyLookup.press"] == "api/widgets/KeyLookup.html"
    assert "ledgerkit.types.U128Array.tolist" in names
    assert "ledgerkit.types.U128Array.repeat" not in names  # pandas documents it


def test_a_page_says_what_the_docstring_says(site):
    """Text of the docstring is there; frames and errors are links."""
    page = site.html("api/verbs/ft.html")
    doc = inspect.getdoc(ledgerkit.ft) or ""
    [about] = re.findall(r"^metadata\n((?: {4}.*\n)+)", doc, re.MULTILINE)

    assert words(about) in words(page)
    assert 'href="../frames.html#frame-ft-metadata"' in page
    assert 'href="../errors/InvalidRequestError.html#ledgerkit.errors.InvalidRequestError"' in page


def test_examples_are_on_the_page_of_their_verb(site):
    """Each verb's page has the example of its docstring, as code."""
    verbs = [name for name in offered(ledgerkit) if inspect.isfunction(attribute(name))]
    examples = {
        name: re.findall(r"^>>> (.+)$", inspect.getdoc(attribute(name)) or "", re.MULTILINE)
        for name in verbs
    }
    blocks = {name: words("".join(CODE.findall(site.html(site.names()[name])))) for name in verbs}

    assert [name for name, lines in examples.items() if not lines] == []
    assert {
        name: line
        for name, lines in examples.items()
        for line in lines
        if words(escape(line)) not in blocks[name]
    } == {}


def test_a_picture_is_on_the_page_of_each_plot(site):
    """A plot's page shows the picture of docs/pictures that has the plot's name."""
    pages = {name: site.html(f"api/plots/{name}.html") for name in plots.__all__}

    assert len(pages) > 8
    assert [name for name in pages if f'src="../../_images/{name}.png"' not in pages[name]] == []


def attribute(name: str) -> Any:
    """Return the object of a dotted name of the package."""
    return getattr(ledgerkit, name.partition(".")[2])


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
    page = BeautifulSoup(site.html("api/frames.html"), "html.parser")
    tables = {
        str(anchor["id"]).removeprefix("frame-"): [
            [words(str(cell)) for cell in row.find_all("td")]
            for body in anchor.find_all_next("tbody", limit=1)
            for row in body.find_all("tr")
        ]
        for anchor in page.select("span[id^=frame-]")
    }
    expected = {
        name.replace("_", "-"): [
            [words(cell) for cell in row]
            for row in ledgerkit.schema(name).itertuples(index=False, name=None)
        ]
        for name in SCHEMAS
    }

    assert tables == expected


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
    """Each error class has an entry with its message and its remedy, on the page of its branch."""
    names = site.names()
    places = {
        error: f"api/errors/{branch.__name__}.html"
        for branch in branches(errors.LedgerError)
        if branch.__base__ is errors.LedgerError
        for error in branches(branch)
    }
    pages = {place: words(site.html(place)) for place in places.values()}

    assert chain_errors.InvalidNonceError in places
    assert set(places) == branches(errors.LedgerError) - {errors.LedgerError}
    assert {e: names.get(f"ledgerkit.errors.{e.__name__}") for e in places} == places
    assert [e for e, place in places.items() if words(e.remedy) not in pages[place]] == []
    assert [e for e, place in places.items() if words(e.template) not in pages[place]] == []


def test_every_page_is_in_the_menu(site):
    """Each page of docs/ and the list of the notebooks are in the menu."""
    home, docs = site.html("index.html"), ROOT / "docs"
    pages = {str(path.relative_to(docs).with_suffix("")) for path in docs.rglob("*.md")} - {"index"}

    assert {"explanations/u128", "guides/sending"} <= pages
    assert [name for name in {*pages, "tutorials/index"} if f'href="{name}.html"' not in home] == []


def test_every_guide_answers_a_question_on_the_first_page():
    """The table of questions lists each guide, and begins with names that are there."""
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    guides = {f"guides/{path.name}" for path in (ROOT / "docs" / "guides").glob("*.md")}
    rows = [line for line in index.splitlines() if line.startswith("| ") and "](guides/" in line]

    assert {re.findall(r"\]\((guides/\w+\.md)\)", row)[0] for row in rows} == guides
    names = re.findall(r"`lk\.(\w+)", "\n".join(rows))
    assert len(names) > 15
    assert [name for name in names if name not in dir(ledgerkit)] == []


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_a_guide_begins_with_a_question_and_its_shortest_answer(path):
    """A question, code that answers it, and its cost on mainnet come before the first heading."""
    title, question, code, *_ = path.read_text(encoding="utf-8").split("\n\n")
    opening = path.read_text(encoding="utf-8").partition("\n## ")[0]

    assert title.startswith("# ")
    assert question.endswith("?")
    assert code.startswith("```")
    assert len(re.findall(r"^\*\*On mainnet:\*\* .*(?:request|sign)", opening, re.MULTILINE)) == 1


def test_the_menu_marks_its_page(site):
    """In its menu a page is the current one, below an open item; the others are links."""
    menu = (
        site.html("api/verbs/ft.html").partition('class="sidebar-tree"')[2].partition("</div>")[0]
    )

    assert re.findall(r'<li class="([^"]*\bcurrent\b[^"]*)"><a [^>]*href="([^"]+)"', menu) == [
        ("toctree-l1 current has-children", "../index.html"),
        ("toctree-l2 current current-page", "#"),
    ]
    assert menu.count(' checked=""') == 1
    assert menu.count('<ul class="current">') == 2
    assert 'href="nft.html"' in menu
    assert 'href="../../guides/sending.html"' in menu


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_a_page_with_its_outputs(site, path):
    """A notebook's page has its stored outputs: tables, printed text and pictures."""
    page = site.html(f"tutorials/{path.stem}.html")
    document = json.loads(path.read_text(encoding="utf-8"))
    outputs = [output for cell in document["cells"] for output in cell.get("outputs", [])]
    texts = [text for text in map(displayed_text, outputs) if text]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    pictures += [cell for cell in document["cells"] if "![" in "".join(cell["source"])]

    assert len(texts) > 5
    assert [text for text in texts if words(text) not in words(page)] == []
    assert [text for text in texts if "<script" in text] == []
    assert len(re.findall(r'<img [^>]*src="\.\./_images/', page)) == len(pictures)
    assert re.search(rf'href="\.\./_downloads/\w+/{path.name}"', page)


def displayed_text(output: dict[str, Any]) -> str:
    """Return a notebook's output as the HTML that a page shows; a picture has no text."""
    data = output.get("data", {})
    if "text/html" in data:
        return "".join(data["text/html"])
    plain = "" if "image/png" in data else data.get("text/plain") or output.get("text", "")
    return escape("".join(plain))


def test_pages_load_nothing_from_elsewhere(site):
    """Scripts, styles and pictures are beside the pages, which can be read as files."""
    pages = {path: path.read_text(encoding="utf-8") for path in site.pages.rglob("*.html")}
    links = [(path, link) for path, html in pages.items() for link in LOADED.findall(html)]
    loaded = {(path, link) for path, link in links if link != "#"}
    loaded |= {
        (path, link)
        for path in site.pages.rglob("*.css")
        for link in LOADED_BY_STYLES.findall(path.read_text(encoding="utf-8"))
        if not link.startswith("data:")
    }

    assert len(loaded) > 1000
    assert [link for path, link in loaded if not local_file(path, link).is_file()] == []


def local_file(page: Path, link: str) -> Path:
    """Return the file that a page's link names, of which a query is no part."""
    return page.parent / link.partition("?")[0].partition("#")[0]


def test_the_search_finds_staking_rewards(site):
    """The index of the search, which a page loads as a script, leads to the guide on staking."""
    script = (site.pages / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(script.removeprefix("Search.setIndex(").removesuffix(")"))
    stems = [SearchEnglish({}).stem(word) for word in ("staking", "rewards")]
    pages = [pages_of(stem, index["terms"]) | pages_of(stem, index["titleterms"]) for stem in stems]
    titles = [index["docnames"][page] for page, _ in index["alltitles"]["Staking rewards"]]

    assert '<script src="searchindex.js"' in site.html("search.html")
    assert "guides/staking" in {index["docnames"][page] for page in pages[0] & pages[1]}
    assert titles == ["guides/staking"]


def pages_of(stem: str, terms: dict[str, int | list[int]]) -> set[int]:
    """Return the numbers of the pages with a word, of which the index lists a single one bare."""
    numbers = terms.get(stem, [])
    return {numbers} if isinstance(numbers, int) else set(numbers)


def test_pictures_of_the_readme_are_there():
    """Each picture is a small PNG with a description."""
    pictures = re.findall(r"^!\[[^\]]{30,}\]\((\S+)\)$", README, re.MULTILINE)
    files = [ROOT / name for name in pictures]

    assert [path.stem for path in files] == ["receipt_tree", "explorer"]
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

    assert named == set(_campaign.NAMES)
