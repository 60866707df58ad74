"""The list of the notebooks, made of their own titles; they are linked as files."""

# ruff: noqa: INP001 - a part of the extension, in no package

import json
from pathlib import Path

import _text

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
INTRODUCTION = """\
One question each, run on the embedded ledger, with their outputs stored: they can be read as they
are, and run again without a network once ``pip install "ledgerkit[notebook,bulk]"`` is done.

"""


def page() -> str:
    """Write the list."""
    paths = sorted(FOLDER.glob("*.ipynb"))
    lines = [f"#. :download:`{title(path)} <../../notebooks/{path.name}>`" for path in paths]
    return _text.heading("Notebooks") + INTRODUCTION + "\n".join(lines) + "\n"


def title(path: Path) -> str:
    """Read a notebook's first heading."""
    first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"]
    return "".join(first).partition("\n")[0].lstrip("# ").replace("`", "")
