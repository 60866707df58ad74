"""The tutorials: the stored notebooks as pages, and the list of them."""

# ruff: noqa: INP001 - a part of the extension, in no package

import json
import re
from pathlib import Path

import _text

ROOT = Path(__file__).resolve().parents[1]
PATHS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LINE = re.compile(r"^\d+\. \[(.+)\]\(notebooks/(\w+)\.ipynb\)$", re.MULTILINE)
BINDER = re.compile(r"^\[binder\]: (\S+)$", re.MULTILINE)
INTRODUCTION = """\
Notebooks with their outputs, one question each, on the embedded ledger: no network is needed.
Begin with the first; the others can be read in any order.

"""
TO_RUN = """
To run them yourself: ``pip install ".[notebook,bulk]"`` in a clone of the repository.
Or open them in your browser, without installing anything: `Binder <{binder}>`__.

"""
DOWNLOAD = "{{download}}`Download this notebook <../../notebooks/{name}>`"


def pages() -> dict[str, str]:
    """Return the list of notebooks and a page for each, by their paths."""
    return {"index.rst": index(), **{path.name: page(path) for path in PATHS}}


def index() -> str:
    """Return the list of notebooks and the address of Binder, as in the README."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    links = [f"#. :doc:`{_text.plain(title)} <{name}>`\n" for title, name in LINE.findall(readme)]
    [binder] = BINDER.findall(readme)
    text = _text.heading("Tutorials") + INTRODUCTION + "".join(links)
    return text + TO_RUN.format(binder=binder) + _text.toctree(path.stem for path in PATHS)


def page(path: Path) -> str:
    """Return a notebook as a page in docs/, with a link to its file below the title's cell."""
    notebook = json.loads(path.read_text(encoding="utf-8").replace("](../docs/", "](../"))
    source = DOWNLOAD.format(name=path.name)
    cell = {"cell_type": "markdown", "id": "download", "metadata": {}, "source": source}
    notebook["cells"].insert(1, cell)
    return json.dumps(notebook)
