"""HTML tables of frames, cards and panels; the caller escapes the texts of cells."""

from __future__ import annotations

from collections.abc import Iterable

NO_MATH = "tex2jax_ignore mathjax_ignore"  # turns MathJax off: a token may be called $A$


def table(
    rows: Iterable[str], *, head: Iterable[str] = (), caption: str = "", css_class: str = ""
) -> str:
    """Build a table of rows, with a row of headings if `head` is not empty."""
    names = "".join(head)
    parts = [
        f'<table class="{css_class}">' if css_class else "<table>",
        f"<caption>{caption}</caption>" if caption else "",
        f"<thead><tr>{names}</tr></thead>" if names else "",
        f"<tbody>{''.join(rows)}</tbody></table>",
    ]
    return "".join(parts)


def heading(html: str, attributes: str = "") -> str:
    return f'<th scope="col"{attributes}>{html}</th>'


def row(cells: Iterable[str], *, name: str | None = None) -> str:
    """Build a row of cells, after its heading `name`."""
    first = "" if name is None else f'<th scope="row">{name}</th>'
    return f"<tr>{first}{''.join(cells)}</tr>"


def cell(html: str, attributes: str = "") -> str:
    return f"<td{attributes}>{html}</td>"
