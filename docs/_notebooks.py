"""The list of the notebooks, with their titles, linked as files."""

# ruff: noqa: INP001 - a part of the extension, in no package

import json
from pathlib import Path

import _text

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
INTRODUCTION = """\
One question each. They run on the embedded ledger and store their outputs. To run them again,
without a network, ``pip install "ledgerkit[notebook,bulk]"``.

"""


def page() -> str:
    """Return the page: the list of notebooks."""
    paths = sorted(FOLDER.glob("*.ipynb"))
    lines = [f"#. :download:`{title(path)} <../../notebooks/{path.name}>`" for path in paths]
    return _text.heading("Notebooks") + INTRODUCTION + "\n".join(lines) + "\n"


def title(path: Path) -> str:
    """Return a notebook's first heading."""
    first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"]
    return "".join(first).partition("\n")[0].lstrip("# ").replace("`", "")
