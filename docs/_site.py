"""The extension that writes the reference and the tutorials before Sphinx reads them."""

# ruff: noqa: INP001 - an extension of conf.py, in no package

from __future__ import annotations

import inspect
import shutil
from functools import cache
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


LINK = '"><a class="reference internal" href="{}">'
CURRENT_LIST = '<ul class="current">'


@cache
def menu_beside(builder: Any, page: str, **options: Any) -> str:
    """Return the menu of a page that is not in it, as Sphinx gives it to themes."""
    menu: str = builder._get_local_toctree(page, **options)  # noqa: SLF001 - there is no other way
    return menu


def share_menu(app: Sphinx, page: str, _name: str, context: dict[str, Any], _: object) -> None:
    """Mark a page in its folder's menu: resolving one per page took half of the build."""
    builder: Any = app.builder
    neighbour = "".join(page.rpartition("/")[:2]) + "neighbour"
    parents = {child: name for name, pages in app.env.toctree_includes.items() for child in pages}

    def toctree(**options: Any) -> str:
        menu, name = menu_beside(builder, neighbour, **options), page
        while name in parents:
            link = LINK.format(builder.get_relative_uri(neighbour, name))
            before, _, after = menu.partition(link)
            if name == page:
                link = LINK.format("#").replace("reference", "current reference")
            else:
                after = after.replace("<ul>", CURRENT_LIST, 1)
            name = parents[name]
            if name == app.config.root_doc:
                before = f"</p>\n{CURRENT_LIST}".join(before.rsplit("</p>\n<ul>", 1))
            menu = f"{before} current{link}{after}"
        return menu

    context["toctree"] = toctree


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to the build."""
    app.connect("builder-inited", write)
    app.connect("builder-inited", write_options_out)
    app.connect("source-read", link_notebooks)
    app.connect("autodoc-process-docstring", link_frames, priority=100)  # before napoleon
    app.connect("doctree-read", link_errors)
    app.connect("html-page-context", share_menu, priority=400)  # before the theme
    app.connect("build-finished", remove)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
