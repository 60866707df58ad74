"""The extension that writes the reference before Sphinx reads it, and removes it after."""

# ruff: noqa: INP001 - an extension of conf.py, in no package

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import _errors
import _frames
import _notebooks
import _pages
from sphinx.addnodes import pending_xref

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

FOLDER = "api"


def pages() -> dict[str, str]:
    """Return every page of the reference, by its path in the folder."""
    return {
        **_pages.pages(),
        "frames": _frames.page(),
        "errors": _errors.page(),
        "notebooks": _notebooks.page(),
    }


def write(app: Sphinx) -> None:
    """Write the pages where Sphinx reads them."""
    remove(app)
    for place, text in pages().items():
        path = app.srcdir / FOLDER / f"{place}.rst"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def remove(app: Sphinx, _: object = None) -> None:
    """Remove the written pages from the sources."""
    shutil.rmtree(app.srcdir / FOLDER, ignore_errors=True)


def link_frames(_app: Sphinx, what: str, *about: Any) -> None:
    """Link each frame that a docstring names to its columns."""
    lines: list[str] = about[-1]
    lines[:] = [_frames.MENTION.sub(r':ref:`schema("\1") <frame-\1>`', line) for line in lines]
    if what in {"attribute", "property"}:
        # Without a comment first, napoleon takes the words before a colon for a type.
        lines[:0] = ["..", ""]


def link_errors(_app: Sphinx, page: nodes.document) -> None:
    """Add the module to each error that a docstring names without one."""
    for node in page.findall(pending_xref):
        if node.get("refdomain") == "py" and node["reftarget"] in _errors.names():
            node["reftarget"] = f"ledgerkit.errors.{node['reftarget']}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to the build."""
    app.connect("builder-inited", write)
    app.connect("autodoc-process-docstring", link_frames, priority=100)  # before napoleon
    app.connect("doctree-read", link_errors)
    app.connect("build-finished", remove)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
