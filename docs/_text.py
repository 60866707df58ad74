"""reStructuredText: headings, tables, and escaped text."""

# ruff: noqa: INP001 - a part of the extension, in no package

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_QUOTED = re.compile(r"(`+[^`]+`+)")
_MARKS = re.compile(r"([\\*_|<>\[\]])")


def heading(title: str, line: str = "=") -> str:
    """Format a title."""
    return f"{title}\n{line * len(title)}\n\n"


def plain(text: str) -> str:
    """Escape all markup of a text, except words between backticks."""
    parts = _QUOTED.split(" ".join(text.split()))
    return "".join(p if p.startswith("`") else _MARKS.sub(r"\\\1", p) for p in parts)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], widths: str) -> str:
    """Format a table; its cells are markup already."""
    options = (":header-rows: 1", f":widths: {widths}", ":width: 100%")
    lines = [".. list-table::", *(f"   {option}" for option in options), ""]
    for row in (header, *rows):
        bullets = ["   * -", *["     -"] * (len(row) - 1)]
        lines += [f"{bullet} {cell}" for bullet, cell in zip(bullets, row, strict=True)]
    return "\n".join(lines) + "\n\n"


def toctree(places: Iterable[str]) -> str:
    """Format a toctree that is in the menu only."""
    return "\n".join([".. toctree::", "   :hidden:", "", *(f"   {p}" for p in places)]) + "\n\n"


def summary(thing: object) -> str:
    """Return the first paragraph of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")
