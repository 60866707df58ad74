"""The extension that writes the reference and the tutorials before Sphinx reads them."""

# ruff: noqa: INP001 - an extension of conf.py, in no package

from __future__ import annotations

import inspect
import shutil
from typing import TYPE_CHECKING, Any

import _errors
import _frames
import _notebooks
import _pages
from sphinx.addnodes import pending_xref
from sphinx.pycode import ModuleAnalyzer

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

REFERENCE = "api"
TUTORIALS = "tutorials"


def pages() -> dict[str, str]:
    """Return every page of the reference and the tutorials, by its path."""
    reference = {**_pages.pages(), "frames": _frames.page(), **_errors.pages()}
    return {
        **{f"{REFERENCE}/{place}.rst": text for place, text in reference.items()},
        **{f"{TUTORIALS}/{name}": text for name, text in _notebooks.pages().items()},
    }


def write(app: Sphinx) -> None:
    """Write the pages where Sphinx reads them."""
    remove(app)
    for place, text in pages().items():
        path = app.srcdir / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def write_options_out(_app: Sphinx) -> None:
    """Write the options of overloads out, which ``Unpack`` abbreviates in the code."""
    for entry in _pages.entries():
        analyzer = ModuleAnalyzer.for_module(entry.thing.__module__)
        analyzer.analyze()
        overloads = analyzer.overloads.get(entry.thing.__name__, [])
        overloads[:] = [all_options(o, inspect.signature(entry.thing)) for o in overloads]


def all_options(overload: inspect.Signature, function: inspect.Signature) -> inspect.Signature:
    """Return the signature of an overload with the options that it abbreviates."""
    options = overload.parameters.get("options")
    if options is None or options.annotation not in {"Unpack[Raising]", "Unpack[Collecting]"}:
        return overload
    raises = options.annotation == "Unpack[Raising]"
    parameters = dict(function.parameters) | dict(overload.parameters)
    del parameters["options"]
    parameters["on_error"] = parameters["on_error"].replace(
        annotation="Literal['raise']" if raises else "Literal['collect']",
        default="raise" if raises else inspect.Parameter.empty,
    )
    return overload.replace(parameters=list(parameters.values()))


def remove(app: Sphinx, _: object = None) -> None:
    """Remove the written pages from the sources."""
    for folder in (REFERENCE, TUTORIALS):
        shutil.rmtree(app.srcdir / folder, ignore_errors=True)


def link_notebooks(_app: Sphinx, _name: str, source: list[str]) -> None:
    """Replace links to the files of notebooks, for the repository, by links to their pages."""
    source[0] = source[0].replace("](../../notebooks/", f"](../{TUTORIALS}/")
    source[0] = source[0].replace("](../docs/", "](../")  # the links of notebooks


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
    app.connect("builder-inited", write_options_out)
    app.connect("source-read", link_notebooks)
    app.connect("autodoc-process-docstring", link_frames, priority=100)  # before napoleon
    app.connect("doctree-read", link_errors)
    app.connect("build-finished", remove)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
